//! Idle capacity of claimed nodes, which the claimer pays as guaranteed (SEMANTICS 10).

use crate::kept::Kept;
use crate::list::{OpenClaim, OpenLease, Outage};
use crate::tenant::Tenant;
use crate::usage::{Series, Steps, add_interval};
use leasehold_meter::Window;
use leasehold_model::{ClassNo, Instant, NodeNo, PoolNo, Priority, Quanta};
use std::collections::BTreeMap;

/// Changes of taken quanta by node and class.
type Taken = BTreeMap<(NodeNo, ClassNo), Vec<(Instant, i128)>>;

/// Adds what was idle on the claimed nodes of a tenant.
pub(crate) fn idle_steps(of: &Tenant, kept: &Kept, leases: &[OpenLease], window: Window, steps: &mut Steps) {
    let open = of.claims.values().map(|claim| (claim, Instant::MAX));
    let claims: Vec<(&OpenClaim, Instant)> = kept.claims.iter().map(|(claim, to)| (claim, *to)).chain(open).collect();
    if claims.is_empty() {
        return;
    }
    let mut taken = Taken::new();
    for lease in leases {
        let on_node = taken.entry((lease.node, lease.class)).or_default();
        // What a lease held when its node was lost is not idle, even if the lease is billed to an earlier instant.
        let held_to = lease.ended.unwrap_or(lease.to);
        add_interval(on_node, Window::new(lease.from, held_to), lease.quanta.0);
        if let Some(fenced) = lease.fenced_from {
            let closed = kept.closed_at.get(&lease.lease).copied().unwrap_or(Instant::MAX);
            add_interval(on_node, Window::new(fenced.max(held_to), closed), lease.quanta.0);
        }
    }
    taken.values_mut().for_each(|changes| changes.sort_unstable());
    for (claim, to) in claims {
        let claimed = Window::new(claim.from, to).clip(window);
        let outages = merged_outages(claim);
        for (class, Quanta(capacity)) in &claim.capacity {
            let changes = taken.get(&(claim.node, *class)).map_or(&[][..], Vec::as_slice);
            let idle = steps.entry(series(claim, claim.pool, *class)).or_default();
            let mut add = |stretch: Window, taken: i128| {
                let quanta = u64::try_from(i128::from(*capacity) - taken).unwrap_or(0);
                in_service(stretch, &outages, |window| add_interval(idle, window, quanta));
            };
            let (mut level, mut at) = (0, claimed.from);
            for (next, by) in changes {
                if *next > at {
                    add(Window::new(at, *next).clip(claimed), level);
                    at = (*next).max(at);
                }
                level += by;
            }
            add(Window::new(at, claimed.to), level);
        }
    }
}

fn series(claim: &OpenClaim, pool: PoolNo, class: ClassNo) -> Series {
    Series {
        payer: claim.project,
        project: claim.project,
        pool,
        class,
        priority: Priority::Guaranteed,
        priced: Priority::Guaranteed,
        tag: claim.tag.clone(),
        app_instance: None,
        attachment: None,
        control_plane: false,
    }
}

/// When the node was out of service, in order and without overlaps.
fn merged_outages(claim: &OpenClaim) -> Vec<Outage> {
    let standing = claim.drained.into_iter().chain(claim.lost).map(|from| Outage { from, to: Instant::MAX });
    let mut all: Vec<Outage> = claim.outages.iter().copied().chain(standing).collect();
    all.sort_unstable_by_key(|outage| outage.from);
    let mut merged: Vec<Outage> = Vec::new();
    for outage in all {
        match merged.last_mut() {
            Some(last) if outage.from <= last.to => last.to = last.to.max(outage.to),
            _ => merged.push(outage),
        }
    }
    merged
}

/// The parts of a stretch of time that lie outside of all outages.
fn in_service(stretch: Window, outages: &[Outage], mut each: impl FnMut(Window)) {
    let mut from = stretch.from;
    for outage in outages.iter().filter(|outage| outage.to > stretch.from && outage.from < stretch.to) {
        each(Window::new(from, outage.from.min(stretch.to)));
        from = from.max(outage.to);
    }
    each(Window::new(from, stretch.to));
}
