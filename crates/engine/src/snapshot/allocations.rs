//! Encoding and decoding of live allocations, their reservations, and the most recently ended allocations.

use super::BadSnapshot;
use crate::allocation::{Allocation, Allocations, Hold, OVER_KEPT, Over};
use crate::reservation::{Reservation, ReservedMember, ReservedReplica};
use crate::state::{State, entry_mut};
use leasehold_model::body::Leases;
use leasehold_model::codec::{Field, Reader, put_varint};
use leasehold_model::limits::{
    ALLOCATION_LEASES_MAX, CLASSES_PER_REQUEST_MAX, DEVICES_PER_CLASS_MAX, LEASES_PER_RECORD_MAX, QUANTA_PER_NODE_MAX,
};
use leasehold_model::{AllocationNo, AllocationSpec, Instant, LeaseNo, Name};

pub(super) fn put(allocations: &Allocations, out: &mut Vec<u8>) {
    put_varint(allocations.live.len() as u64, out);
    for allocation in allocations.live.values() {
        put_one(allocation, out);
    }
    // Ended allocations, in the order in which they ended.
    put_varint(allocations.over.len() as u64, out);
    let (later, earlier) = allocations.over.split_at(oldest(allocations));
    for over in earlier.iter().chain(later) {
        over.allocation.put(out);
        over.tenant.put(out);
        over.project.put(out);
        over.state.put(out);
        over.at.put(out);
    }
}

/// The index of the oldest ended allocation.
fn oldest(allocations: &Allocations) -> usize {
    if allocations.over.len() < OVER_KEPT { 0 } else { allocations.next_over }
}

fn put_one(a: &Allocation, out: &mut Vec<u8>) {
    a.number.put(out);
    a.tenant.put(out);
    a.project.put(out);
    a.payer.put(out);
    a.user.put(out);
    a.workload.put(out);
    a.hcl_entry.put(out);
    a.dra_claim_id.put(out);
    a.spec.put(out);
    a.node.put(out);
    a.state.put(out);
    a.submitted_at.put(out);
    a.attempt.put(out);
    a.placed_at.put(out);
    a.first_lease.put(out);
    a.leases.put(out);
    a.checkpointed.put(out);
    a.ends.put(out);
    a.ended_at.put(out);
    a.requeues.put(out);
    a.queued_at.put(out);
    put_varint(a.protected_on.len() as u64, out);
    a.protected_on.iter().for_each(|node| node.put(out));
    let hold = a.on_hold.as_ref();
    hold.map(|hold| (hold.by_operator, (hold.reason.clone(), hold.since))).put(out);
    out.push(u8::from(a.reservation.is_some()));
    if let Some(reservation) = &a.reservation {
        reservation.sequence.put(out);
        reservation.headroom.put(out);
        put_varint(reservation.victims.0.len() as u64, out);
        reservation.victims.0.iter().for_each(|lease| lease.put(out));
        put_varint(reservation.places.len() as u64, out);
        for place in &reservation.places {
            place.node.put(out);
            put_varint(place.members.len() as u64, out);
            for kept in &place.members {
                kept.class.put(out);
                kept.devices.put(out);
                kept.each.put(out);
                kept.have.put(out);
            }
        }
    }
}

fn bad<T>(what: &'static str) -> Result<T, BadSnapshot> {
    Err(BadSnapshot::Inconsistent(what))
}

/// Decodes allocations into a state. Its nodes and leases must be decoded already.
pub(super) fn get(state: &mut State, r: &mut Reader<'_>) -> Result<(), BadSnapshot> {
    let mut last = None;
    for _ in 0..r.count(usize::MAX)? {
        let found = get_one(r)?;
        if last.is_some_and(|last| last >= found.number) {
            return bad("allocations out of order");
        }
        last = Some(found.number);
        check(state, &found)?;
        state.restore_allocation(found)?;
    }
    for _ in 0..r.count(OVER_KEPT)? {
        let (allocation, tenant, project) = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
        state.allocations.over.push(Over { allocation, tenant, project, state: Field::get(r)?, at: Field::get(r)? });
    }
    state.allocations.next_over = state.allocations.over.len() % OVER_KEPT;
    Ok(())
}

fn get_one(r: &mut Reader<'_>) -> Result<Allocation, BadSnapshot> {
    let mut found = Allocation {
        number: Field::get(r)?,
        tenant: Field::get(r)?,
        project: Field::get(r)?,
        payer: Field::get(r)?,
        user: Field::get(r)?,
        workload: Field::get(r)?,
        hcl_entry: Field::get(r)?,
        dra_claim_id: Field::get(r)?,
        spec: AllocationSpec::get(r)?,
        node: Field::get(r)?,
        state: Field::get(r)?,
        submitted_at: Field::get(r)?,
        attempt: Field::get(r)?,
        placed_at: Field::get(r)?,
        first_lease: Field::get(r)?,
        leases: Field::get(r)?,
        held: 0,
        checkpointed: Field::get(r)?,
        ends: Field::get(r)?,
        ended_at: Field::get(r)?,
        requeues: Field::get(r)?,
        queued_at: Field::get(r)?,
        protected_on: (0..r.count(ALLOCATION_LEASES_MAX)?).map(|_| Field::get(r)).collect::<Result<_, _>>()?,
        on_hold: None,
        reservation: None,
    };
    let hold = <Option<(bool, (Option<Name>, Instant))>>::get(r)?;
    found.on_hold = hold.map(|(by_operator, (reason, since))| Hold { by_operator, reason, since });
    if bool::get(r)? {
        let (sequence, headroom) = (Field::get(r)?, Field::get(r)?);
        let count = r.count(2 * LEASES_PER_RECORD_MAX)?;
        let victims = (0..count).map(|_| Field::get(r)).collect::<Result<Leases, _>>()?;
        let mut places = Vec::new();
        for _ in 0..r.count(ALLOCATION_LEASES_MAX)? {
            let node = Field::get(r)?;
            let mut members = Vec::new();
            for _ in 0..r.count(CLASSES_PER_REQUEST_MAX)? {
                members.push(ReservedMember {
                    class: Field::get(r)?,
                    devices: Field::get(r)?,
                    each: Field::get(r)?,
                    have: Field::get(r)?,
                });
            }
            places.push(ReservedReplica { node, members });
        }
        found.reservation = Some(Box::new(Reservation { sequence, places, victims, headroom }));
    }
    Ok(found)
}

/// Checks that an allocation is possible in the state.
fn check(state: &State, found: &Allocation) -> Result<(), BadSnapshot> {
    let of_tenant = |project| state.project(project).is_some_and(|project| project.tenant == found.tenant);
    if !of_tenant(found.project) || !of_tenant(found.payer) {
        return bad("an allocation without a project of its tenant");
    }
    if found.state.is_over() || found.number.0 >= state.size {
        return bad("a live allocation that has ended or has a future number");
    }
    let spec = &found.spec;
    let asks = (1..=CLASSES_PER_REQUEST_MAX).contains(&spec.asks.len());
    if !asks || spec.replicas == 0 || spec.leases() > ALLOCATION_LEASES_MAX as u64 {
        return bad("an allocation with no leases or too many");
    }
    for (index, (class, quanta)) in spec.asks.iter().enumerate() {
        let Some(known) = state.class(*class) else { return bad("an allocation of a class that does not exist") };
        let per_device = known.quanta_per_unit;
        let is_whole = !known.has_devices() || quanta.0 <= per_device || quanta.0.is_multiple_of(per_device);
        let is_new = spec.asks[..index].iter().all(|(other, _)| other != class);
        if !(1..=QUANTA_PER_NODE_MAX).contains(&quanta.0) || !is_whole || !is_new {
            return bad("an allocation with an invalid quantity or a duplicate class");
        }
    }
    let placed = found.state.is_placed();
    if placed && (u64::from(found.leases) != spec.leases() || found.attempt == 0 || found.reservation.is_some()) {
        return bad("a placed allocation with an invalid attempt");
    }
    if found.on_hold.is_some() && (placed || found.reservation.is_some()) {
        return bad("an allocation on hold that is placed or has a reservation");
    }
    if found.first_lease.0 > state.next_lease || u64::from(found.leases) > state.next_lease - found.first_lease.0 {
        return bad("an attempt with lease numbers that are not assigned yet");
    }
    let protected = &found.protected_on;
    if !protected.is_empty() && (placed || found.reservation.is_some()) {
        return bad("a protected allocation that is not waiting for capacity");
    }
    if !protected.is_sorted_by(|a, b| a < b) || protected.iter().any(|node| state.node(*node).is_none()) {
        return bad("an allocation that is protected on nodes that do not exist or are out of order");
    }
    let Some(reservation) = &found.reservation else { return Ok(()) };
    for place in &reservation.places {
        let Some(node) = state.node(place.node) else { return bad("a reservation on a node that does not exist") };
        for kept in &place.members {
            let Some(class) = node.class(kept.class) else {
                return bad("a reservation of a class that the node does not have");
            };
            let devices = kept.devices.count_ones() as usize;
            let fits = u64::from(64 - kept.devices.leading_zeros()) <= class.devices.len() as u64
                && class.devices.len() as u64 <= DEVICES_PER_CLASS_MAX
                && (class.per_device > 0) == (devices > 0)
                && kept.have.len() == devices.max(1)
                && kept.each <= if devices > 0 { class.per_device } else { class.capacity }
                && kept.have.iter().all(|have| *have <= kept.each);
            if !fits {
                return bad("a reservation that exceeds the capacity of the node");
            }
        }
    }
    Ok(())
}

impl State {
    fn restore_allocation(&mut self, found: Allocation) -> Result<(), BadSnapshot> {
        for place in found.reservation.iter().flat_map(|reservation| &reservation.places) {
            let node = entry_mut(&mut self.nodes, place.node.0).expect("it was checked before");
            for kept in &place.members {
                let class = node.class_mut(kept.class);
                let sum = kept.have.iter().sum::<u64>();
                if class.free() < sum {
                    return bad("a reservation that exceeds the free capacity of the node");
                }
                class.reserved += sum;
                let indexes = (0..64usize).filter(|index| kept.devices >> index & 1 == 1);
                for (index, have) in indexes.zip(&kept.have) {
                    if class.per_device - class.devices[index] < *have {
                        return bad("a reservation that exceeds the free capacity of a device");
                    }
                    class.devices[index] += have;
                }
            }
        }
        self.allocations.live.insert(found.number, Box::new(found));
        Ok(())
    }

    /// Rebuilds what is derived from the allocations and leases: the queue, the counters, the ends of walltimes.
    pub(super) fn rebuild_queue(&mut self) {
        let mut held: Vec<(AllocationNo, LeaseNo)> = Vec::new();
        for lease in self.leases.in_any_order().filter(|lease| lease.phase.is_held()) {
            held.extend(lease.of.map(|of| (of, lease.number)));
        }
        for (of, lease) in held {
            if let Some(found) = self.allocations.get_mut(of).filter(|found| found.has_lease(lease)) {
                found.held += 1;
            }
        }
        self.find_own_shapes();
        for found in self.allocations.live.values() {
            if found.state.is_queued() {
                let key = self.queue.key(found);
                self.queue.add(&key, found);
                self.queue.protected_nodes.extend(found.protected_on.iter().map(|node| (*node, found.number)));
                if found.reservation.is_some() {
                    self.queue.reserve(&key, found);
                } else if found.on_hold.is_some() {
                    self.queue.step_out(&key, found);
                    self.queue.on_hold.insert(found.number);
                }
                continue;
            }
            if let Some(bound) = found.bound() {
                self.bounds.insert((bound, found.number));
            }
            let tenant = crate::state::entry(&self.tenants, found.tenant.0).expect("it was checked before");
            for number in &tenant.quotas {
                let quota = entry_mut(&mut self.quotas, number.0).expect("a listed quota exists");
                quota.tally_allocation(found, true);
            }
        }
    }
}
