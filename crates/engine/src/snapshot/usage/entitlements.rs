//! Encoding and decoding of entitlements and policies.

use super::super::BadSnapshot;
use crate::entitlement::{Entitled, Entitlement};
use crate::state::State;
use leasehold_model::body::{AppPolicyPut, EntitlementPut};
use leasehold_model::codec::{Field, Reader, put_varint};

pub(super) fn put(state: &State, out: &mut Vec<u8>) {
    put_varint(state.entitlements.len() as u64, out);
    for entitlement in state.entitlements.values() {
        let Entitlement { of, soft, hard, .. } = *entitlement;
        EntitlementPut { of, soft, hard }.put(out);
        put_varint(entitlement.months.len() as u64, out);
        for (month, entitled) in &entitlement.months {
            month.put(out);
            entitled.used.put(out);
            entitled.warned.put(out);
        }
    }
    put_varint(state.policies.len() as u64, out);
    state.policies.values().for_each(|policy| policy.put(out));
}

pub(super) fn get(state: &mut State, r: &mut Reader<'_>) -> Result<(), BadSnapshot> {
    let wrong = BadSnapshot::Inconsistent;
    for _ in 0..r.count(usize::MAX)? {
        let EntitlementPut { of, soft, hard } = Field::get(r)?;
        if state.entitlements.last_key_value().is_some_and(|(last, _)| *last >= of) {
            return Err(wrong("entitlements are out of order"));
        }
        let tenant = state.tenant_of_entitlement(of).ok_or(wrong("an entitlement of nobody"))?;
        let mut entitlement = Entitlement { tenant, of, soft, hard, months: Default::default() };
        for _ in 0..r.count(usize::MAX)? {
            let (month, used, warned) = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
            entitlement.months.insert(month, Entitled { used, warned });
        }
        state.entitlements.insert(of, entitlement);
    }
    for _ in 0..r.count(usize::MAX)? {
        let policy: AppPolicyPut = Field::get(r)?;
        if state.policies.last_key_value().is_some_and(|(last, _)| *last >= policy.of) {
            return Err(wrong("policies are out of order"));
        }
        state.policies.insert(policy.of, policy);
    }
    Ok(())
}
