//! How the records of the registry of app runtimes change the state.

use super::State;
use super::fold::put;
use crate::apps::{ATTACHMENTS_ABOVE_ALL, AppInstance, AppType, Attachment, EndedAttachment, UnitPrice};
use crate::follow::Follower;
use leasehold_model::app::FIRST_SITE_UNIT;
use leasehold_model::body::{AppInstancePut, AppTypePut, AttachmentMade, UnitPricePut, UsageUnitPut};
use leasehold_model::limits::LATE_WINDOW;
use leasehold_model::{AllocationSpec, AppInstanceNo, AppTypeNo, AttachmentNo, Body, HolderScope, Instant, Record};

impl State {
    pub(super) fn fold_usage_unit(&mut self, put: &UsageUnitPut) -> Result<(), &'static str> {
        if u64::from(put.unit.0) != u64::from(FIRST_SITE_UNIT.0) + self.apps.units.len() as u64 {
            return Err("the number of a usage unit is out of order");
        }
        self.apps.units.push((put.name.clone(), put.measure));
        Ok(())
    }

    pub(super) fn fold_unit_price(&mut self, put: &UnitPricePut) -> Result<(), &'static str> {
        if put.price_no as usize != self.apps.prices.len() + 1 {
            return Err("the number of a unit price is out of order");
        }
        self.unit(put.unit).ok_or("no such usage unit")?;
        let UnitPricePut { price_no: number, unit, app_type, currency, price, from } = put.clone();
        self.apps.prices.push(UnitPrice { number, unit, app_type, currency, price, from });
        Ok(())
    }

    pub(super) fn fold_app_type(&mut self, kind: &AppTypePut) -> Result<(), &'static str> {
        let AppTypePut { app_type: number, slug, origin, units } = kind.clone();
        put(&mut self.apps.types, number.0, AppType { number, slug, origin, units })
    }

    pub(super) fn fold_app_type_deleted(&mut self, number: AppTypeNo) -> Result<(), &'static str> {
        let gone = self.apps.types.get_mut(number.0 as usize).and_then(Option::take);
        self.policies.retain(|of, _| of.app_type != number);
        self.sharing.policies.retain(|of, _| of.app_type != number);
        gone.map(drop).ok_or("no such kind of app")
    }

    pub(super) fn fold_app_instance(&mut self, put: &AppInstancePut) -> Result<(), &'static str> {
        let AppInstancePut { app_instance: number, project, name, app_type, mode, scope, backend } = put.clone();
        let tenant = self.project(project).ok_or("no such project")?.tenant;
        self.app_type(app_type).ok_or("no such kind of app")?;
        self.apps.insert(AppInstance { number, tenant, project, name, app_type, mode, scope, backend });
        Ok(())
    }

    pub(super) fn fold_app_instance_deleted(
        &mut self,
        number: AppInstanceNo,
        to: &mut impl Follower,
    ) -> Result<(), &'static str> {
        self.apps.remove(number).ok_or("no such app instance")?;
        let own = Some(HolderScope::One(number));
        self.drop_quotas_of(|quota| quota.scope.further.app_instance == own, to);
        self.ceilings.retain(|ceiling| ceiling.scope.app_instance != Some(number));
        self.drop_entitlements_on(number);
        self.policies.retain(|of, _| of.app_instance != Some(number));
        self.sharing.forget_instance(number);
        Ok(())
    }

    pub(super) fn fold_attachment(&mut self, record: &Record, made: &AttachmentMade) -> Result<(), &'static str> {
        let AttachmentMade { attachment: number, app_instance, source_project, allocation } = made.clone();
        let is_next = number.0 == self.apps.next_attachment;
        let is_known = self.apps.attachments.contains_key(&number) || self.apps.ended.contains_key(&number);
        if is_known || (!is_next && self.follows_rules(ATTACHMENTS_ABOVE_ALL)) {
            return Err("the number of an attachment is out of order");
        }
        let tenant = self.app_instance(app_instance).ok_or("no such app instance")?.tenant;
        self.apps.note_attachment(number);
        let made_at = record.stamp;
        let attachment = Attachment { number, tenant, app_instance, source_project, allocation, made_at };
        self.apps.attachments.insert(number, attachment);
        Ok(())
    }

    pub(super) fn fold_attachment_ended(&mut self, number: AttachmentNo, at: Instant) -> Result<(), &'static str> {
        let ended = self.apps.attachments.remove(&number).ok_or("no such attachment")?;
        let Attachment { tenant, app_instance, source_project, allocation, .. } = ended;
        self.apps.ended.retain(|_, ended| ended.at.saturating_add(LATE_WINDOW) >= at);
        self.apps.ended.insert(number, EndedAttachment { tenant, app_instance, source_project, allocation, at });
        Ok(())
    }

    /// Numbers that records name are never given to new app instances and attachments. Before there was a registry any
    /// number was accepted.
    pub(super) fn note_numbers(&mut self, body: &Body) {
        let of_spec = |spec: &AllocationSpec| (spec.app_instance, spec.attachment);
        let (app_instance, attachment) = if let Body::Granted(granted) = body {
            (granted.app_instance, granted.attachment)
        } else if let Body::AllocationSubmitted(submitted) = body {
            of_spec(&submitted.spec)
        } else if let Body::AllocationChanged(changed) = body {
            of_spec(&changed.spec)
        } else if let Body::AllocationDenied(denied) = body {
            of_spec(&denied.spec)
        } else if let Body::Denied(denied) = body {
            (denied.particulars.app_instance, None)
        } else if let Body::CeilingPut(put) = body {
            (put.app_instance, None)
        } else if let Body::QuotaPut(put) = body
            && let Some(HolderScope::One(app)) = put.scope.further.app_instance
        {
            (Some(app), None)
        } else if let Body::TokenIssued(issued) = body {
            (issued.scope.app_instances.iter().copied().max(), None)
        } else {
            return;
        };
        if let Some(app_instance) = app_instance {
            self.apps.note_instance(app_instance);
        }
        if let Some(attachment) = attachment {
            self.apps.note_attachment(attachment);
        }
    }
}
