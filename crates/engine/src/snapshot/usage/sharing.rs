//! Encoding and decoding of what there is to share.

use super::super::BadSnapshot;
use super::super::ledger::{get_map, get_set};
use crate::sharing::{ClosingShares, SharedCosts, SharingPolicies};
use leasehold_model::body::SharingPut;
use leasehold_model::codec::{Field, Reader, put_varint};
use leasehold_model::rate::Currency;
use leasehold_model::{AppInstanceNo, Month, ProjectNo, Steps, UnitNo, UsageDelta};
use std::collections::BTreeMap;

fn put_map<K: Field, V: Field>(map: impl ExactSizeIterator<Item = (K, V)>, out: &mut Vec<u8>) {
    put_varint(map.len() as u64, out);
    for (key, value) in map {
        key.put(out);
        value.put(out);
    }
}

fn get_fields<K: Field + Ord, V: Field>(r: &mut Reader<'_>) -> Result<BTreeMap<K, V>, BadSnapshot> {
    get_map(r, |r| Ok((K::get(r)?, V::get(r)?)))
}

fn put_policies(policies: &SharingPolicies, out: &mut Vec<u8>) {
    put_varint(policies.len() as u64, out);
    policies.values().for_each(|policy| policy.put(out));
}

fn get_policies(r: &mut Reader<'_>) -> Result<SharingPolicies, BadSnapshot> {
    get_map(r, |r| {
        let policy = SharingPut::get(r)?;
        Ok((policy.of, policy))
    })
}

pub(super) fn put(sharing: &SharedCosts, out: &mut Vec<u8>) {
    put_policies(&sharing.policies, out);
    let pools = sharing.pools.iter();
    put_map(pools.map(|((month, app, currency), pool)| (((*month, *app), *currency), *pool)), out);
    let work = sharing.work.iter();
    put_map(
        work.map(|((month, app, unit, project), used)| (((*month, *app), (*unit, *project)), UsageDelta(*used))),
        out,
    );
    out.push(u8::from(sharing.closing.is_some()));
    if let Some(closing) = &sharing.closing {
        put_policies(&closing.policies, out);
        put_varint(closing.done.len() as u64, out);
        closing.done.iter().for_each(|of| of.put(out));
    }
}

pub(super) fn get(r: &mut Reader<'_>) -> Result<SharedCosts, BadSnapshot> {
    let policies = get_policies(r)?;
    let pools = get_fields::<((Month, AppInstanceNo), Currency), Steps>(r)?;
    let work = get_fields::<((Month, AppInstanceNo), (UnitNo, ProjectNo)), UsageDelta>(r)?;
    let closing = match bool::get(r)? {
        true => Some(ClosingShares { policies: get_policies(r)?, done: get_set(r)? }),
        false => None,
    };
    if pools.values().any(|pool| *pool == Steps::ZERO) || work.values().any(|used| used.0 == 0) {
        return Err(BadSnapshot::Inconsistent("nothing to share"));
    }
    Ok(SharedCosts {
        policies,
        pools: pools.into_iter().map(|(((month, app), currency), pool)| ((month, app, currency), pool)).collect(),
        work: work
            .into_iter()
            .map(|(((month, app), (unit, project)), used)| ((month, app, unit, project), used.0))
            .collect(),
        closing,
    })
}
