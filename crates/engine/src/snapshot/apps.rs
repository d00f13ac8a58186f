//! Encoding and decoding of the registry of app runtimes, as the records that would make it.

use super::{BadSnapshot, get_table, put_table};
use crate::apps::{AppInstance, AppType, Apps, Attachment, EndedAttachment, UnitPrice};
use crate::state::State;
use leasehold_model::body::{AppInstancePut, AppTypePut, AttachmentMade, UnitPricePut};
use leasehold_model::codec::{Field, Reader, put_varint};
use leasehold_model::{AppInstanceNo, AppTypeNo, AttachmentNo, Name, UnitMeasure};

pub(super) fn put(apps: &Apps, out: &mut Vec<u8>) {
    put_varint(apps.units.len() as u64, out);
    for (name, measure) in &apps.units {
        name.put(out);
        measure.put(out);
    }
    put_varint(apps.prices.len() as u64, out);
    for one in &apps.prices {
        let UnitPrice { number: price_no, unit, app_type, currency, price, from } = *one;
        UnitPricePut { price_no, unit, app_type, currency, price, from }.put(out);
    }
    put_table(&apps.types, out, |one, out| {
        let AppType { number: app_type, slug, origin, units } = one.clone();
        AppTypePut { app_type, slug, origin, units }.put(out);
    });
    apps.next_instance.put(out);
    put_varint(apps.instances.len() as u64, out);
    for one in apps.instances.values() {
        let AppInstance { number: app_instance, project, app_type, mode, scope, backend, .. } = *one;
        AppInstancePut { app_instance, project, name: one.name.clone(), app_type, mode, scope, backend }.put(out);
    }
    put_varint(apps.last_use.len() as u64, out);
    for (number, used) in &apps.last_use {
        number.put(out);
        used.put(out);
    }
    apps.next_attachment.put(out);
    put_varint(apps.attachments.len() as u64, out);
    for one in apps.attachments.values() {
        let Attachment { number: attachment, app_instance, source_project, allocation, made_at, .. } = *one;
        AttachmentMade { attachment, app_instance, source_project, allocation }.put(out);
        made_at.put(out);
    }
    put_varint(apps.ended.len() as u64, out);
    for (number, ended) in &apps.ended {
        let EndedAttachment { tenant, app_instance, source_project, allocation, at } = *ended;
        number.put(out);
        tenant.put(out);
        app_instance.put(out);
        source_project.put(out);
        allocation.put(out);
        at.put(out);
    }
}

/// Decodes the registry. The projects of the state must be decoded already.
pub(super) fn get(state: &State, r: &mut Reader<'_>) -> Result<Apps, BadSnapshot> {
    let wrong = BadSnapshot::Inconsistent;
    let mut apps = Apps::default();
    for _ in 0..r.count(usize::MAX)? {
        apps.units.push((Name::get(r)?, UnitMeasure::get(r)?));
    }
    for number in 1..=r.count(usize::MAX)? {
        let UnitPricePut { price_no, unit, app_type, currency, price, from } = Field::get(r)?;
        if price_no as usize != number {
            return Err(wrong("the prices of usage units are out of order"));
        }
        apps.prices.push(UnitPrice { number: price_no, unit, app_type, currency, price, from });
    }
    apps.types = get_table(r, |number, r| {
        let AppTypePut { app_type, slug, origin, units } = Field::get(r)?;
        if app_type != AppTypeNo(number) {
            return Err(wrong("the kinds of apps are out of order"));
        }
        Ok(AppType { number: app_type, slug, origin, units })
    })?;
    let next_instance = u64::get(r)?;
    for _ in 0..r.count(usize::MAX)? {
        let AppInstancePut { app_instance: number, project, name, app_type, mode, scope, backend } = Field::get(r)?;
        let tenant = state.project(project).ok_or(wrong("an app instance of a project that does not exist"))?.tenant;
        if crate::state::entry(&apps.types, app_type.0).is_none() {
            return Err(wrong("an app instance of a kind that does not exist"));
        }
        if number.0 >= next_instance || apps.instances.last_key_value().is_some_and(|(last, _)| *last >= number) {
            return Err(wrong("the app instances are out of order"));
        }
        apps.insert(AppInstance { number, tenant, project, name, app_type, mode, scope, backend });
    }
    apps.next_instance = next_instance;
    for _ in 0..r.count(usize::MAX)? {
        let number = AppInstanceNo::get(r)?;
        if !apps.instances.contains_key(&number)
            || apps.last_use.last_key_value().is_some_and(|(last, _)| *last >= number)
        {
            return Err(wrong("the uses of app instances are out of order"));
        }
        apps.last_use.insert(number, Field::get(r)?);
    }
    apps.next_attachment = Field::get(r)?;
    for _ in 0..r.count(usize::MAX)? {
        let AttachmentMade { attachment: number, app_instance, source_project, allocation } = Field::get(r)?;
        let made_at = Field::get(r)?;
        let instance = apps.instances.get(&app_instance).ok_or(wrong("an attachment to nothing"))?;
        let tenant = instance.tenant;
        if state.project(source_project).is_none_or(|project| project.tenant != tenant) {
            return Err(wrong("an attachment of a project that does not exist"));
        }
        if number.0 >= apps.next_attachment
            || apps.attachments.last_key_value().is_some_and(|(last, _)| *last >= number)
        {
            return Err(wrong("the attachments are out of order"));
        }
        let attachment = Attachment { number, tenant, app_instance, source_project, allocation, made_at };
        apps.attachments.insert(number, attachment);
    }
    for _ in 0..r.count(usize::MAX)? {
        let number = AttachmentNo::get(r)?;
        let (tenant, app_instance, source_project) = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
        if number.0 >= apps.next_attachment
            || apps.attachments.contains_key(&number)
            || apps.ended.last_key_value().is_some_and(|(last, _)| *last >= number)
        {
            return Err(wrong("the attachments that have ended are out of order"));
        }
        let (allocation, at) = (Field::get(r)?, Field::get(r)?);
        apps.ended.insert(number, EndedAttachment { tenant, app_instance, source_project, allocation, at });
    }
    Ok(apps)
}
