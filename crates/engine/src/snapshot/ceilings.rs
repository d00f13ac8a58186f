//! Encoding and decoding of cost ceilings, with the amount that each reserves for each lease. That depends on the rate
//! cards at the time of the grant or the last renewal, so it is written instead of derived.

use super::BadSnapshot;
use crate::ceiling::{Ceiling, CeilingScope, Ceilings};
use crate::claim_cost::ClaimCost;
use crate::lease::Lease;
use crate::state::State;
use leasehold_model::body::CeilingPut;
use leasehold_model::ceiling::can_be_a_ceiling;
use leasehold_model::codec::{Field, Reader, put_varint};
use leasehold_model::limits::LEASE_COST_MAX;
use leasehold_model::{Amount, LeaseNo, NodeNo};

pub(super) fn put(ceilings: &Ceilings, out: &mut Vec<u8>) {
    put_varint(ceilings.apps().len() as u64, out);
    for (lease, app) in ceilings.apps() {
        lease.put(out);
        app.put(out);
    }
    put_varint(ceilings.iter().count() as u64, out);
    for ceiling in ceilings.iter() {
        let CeilingScope { project, app_instance } = ceiling.scope;
        let (amount, currency, mode) = (ceiling.amount, ceiling.currency, ceiling.mode);
        CeilingPut { project, app_instance, amount, currency, mode }.put(out);
        ceiling.since.put(out);
        ceiling.spent.put(out);
        put_varint(ceiling.held().count() as u64, out);
        for (lease, cost) in ceiling.held() {
            lease.put(out);
            cost.put(out);
        }
        put_varint(ceiling.claims.len() as u64, out);
        for (node, cost) in &ceiling.claims {
            node.put(out);
            cost.settled.put(out);
            cost.from.put(out);
        }
    }
}

/// Decodes ceilings into a state. Its leases must be decoded already.
pub(super) fn get(state: &mut State, r: &mut Reader<'_>) -> Result<(), BadSnapshot> {
    let wrong = BadSnapshot::Inconsistent;
    let mut last = None;
    for _ in 0..r.count(usize::MAX)? {
        let lease = LeaseNo::get(r)?;
        if state.lease(lease).is_none() || last.replace(lease).is_some_and(|last| last >= lease) {
            return Err(wrong("an app instance of a lease that does not exist or is out of order"));
        }
        state.ceilings.set_app(lease, Field::get(r)?);
    }
    let mut last = None;
    for _ in 0..r.count(usize::MAX)? {
        let put = CeilingPut::get(r)?;
        let scope = CeilingScope { project: put.project, app_instance: put.app_instance };
        if state.project(put.project).is_none() || last.replace(scope).is_some_and(|last| last >= scope) {
            return Err(wrong("a ceiling of a project that does not exist or is out of order"));
        }
        let mut ceiling = Ceiling::new(scope, &put, Field::get(r)?);
        ceiling.spent = Field::get(r)?;
        if !can_be_a_ceiling(ceiling.amount) || ceiling.since > state.last_stamp() {
            return Err(wrong("a ceiling with an invalid amount or start"));
        }
        get_held(state, &mut ceiling, r)?;
        get_claims(state, &mut ceiling, r)?;
        state.ceilings.insert(ceiling);
    }
    Ok(())
}

/// Decodes the reserved amounts of a ceiling. It has one for each lease that is held under it, and no other.
fn get_held(state: &State, ceiling: &mut Ceiling, r: &mut Reader<'_>) -> Result<(), BadSnapshot> {
    let is_under = |lease: &Lease| {
        let app = ceiling.scope.app_instance;
        lease.phase.is_held()
            && lease.payer == ceiling.scope.project
            && match app {
                Some(_) => state.app_instance_of(lease.number) == app,
                None => !state.is_counted_by_claim(lease),
            }
    };
    let mut under: Vec<LeaseNo> =
        state.leases.in_any_order().filter(|lease| is_under(lease)).map(|l| l.number).collect();
    under.sort_unstable();
    if r.count(usize::MAX)? != under.len() {
        return Err(BadSnapshot::Inconsistent("a reserved amount that belongs to no held lease"));
    }
    for expected in under {
        let (lease, cost) = (LeaseNo::get(r)?, Amount::get(r)?);
        if lease != expected || cost > LEASE_COST_MAX {
            return Err(BadSnapshot::Inconsistent("a reserved amount that belongs to no held lease"));
        }
        ceiling.hold(lease, cost);
    }
    Ok(())
}

/// Decodes the cost of claims under a ceiling. It has one for each claim that counts against it, and no other.
fn get_claims(state: &State, ceiling: &mut Ceiling, r: &mut Reader<'_>) -> Result<(), BadSnapshot> {
    let under: Vec<NodeNo> = state.claims_under(ceiling.scope).collect();
    if r.count(usize::MAX)? != under.len() {
        return Err(BadSnapshot::Inconsistent("the cost of a claim that does not exist"));
    }
    for expected in under {
        let (node, cost) = (NodeNo::get(r)?, ClaimCost { settled: Field::get(r)?, from: Field::get(r)? });
        if node != expected || cost.from > state.last_stamp() {
            return Err(BadSnapshot::Inconsistent("the cost of a claim that does not exist"));
        }
        ceiling.claims.insert(node, cost);
    }
    Ok(())
}
