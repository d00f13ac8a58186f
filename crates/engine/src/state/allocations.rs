//! Folding the records of allocations and of the capacity that is reserved for them.

use super::{State, entry_mut};
use crate::allocation::{Allocation, Hold};
use crate::apps::PAYERS_COUNT;
use crate::follow::Follower;
use crate::lease::{Lease, Phase};
use crate::queue::ShapeKey;
use crate::reservation::Reservation;
use leasehold_model::body::{
    AllocationHoldSet, AllocationPlaced, AllocationSubmitted, Leases, PreemptionDecided, ReservationTakenOver,
};
use leasehold_model::{
    AllocationNo, AllocationSpec, AllocationState, AttemptEnd, ClassNo, Instant, LeaseNo, NodeNo, Reason, Record,
    TenantNo,
};

type Folded = Result<(), &'static str>;

impl State {
    fn queued(&mut self, number: AllocationNo) -> Result<&mut Allocation, &'static str> {
        let found = self.allocations.get_mut(number).ok_or("no such allocation")?;
        if found.state.is_queued() { Ok(found) } else { Err("the allocation is not waiting") }
    }

    fn placed(&mut self, number: AllocationNo) -> Result<&mut Allocation, &'static str> {
        let found = self.allocations.get_mut(number).ok_or("no such allocation")?;
        if found.state.is_placed() { Ok(found) } else { Err("the allocation holds no capacity") }
    }

    pub(super) fn fold_submitted(
        &mut self,
        record: &Record,
        submitted: &AllocationSubmitted,
        to: &mut impl Follower,
    ) -> Folded {
        let number = AllocationNo(record.sequence);
        let new = Allocation::new(record, submitted, self.follows_rules(PAYERS_COUNT));
        let new = new.ok_or("an allocation without a tenant or a project")?;
        self.tenant(new.tenant).ok_or("no such tenant")?;
        self.project(new.project).and(self.project(new.payer)).ok_or("no such project")?;
        let key = self.queue.key(&new);
        self.queue.add(&key, &new);
        to.waits(number);
        self.allocations.live.insert(number, Box::new(new));
        Ok(())
    }

    /// An attempt begins. The grants of its leases follow as records of their own.
    pub(super) fn fold_placed(&mut self, record: &Record, placed: &AllocationPlaced, to: &mut impl Follower) -> Folded {
        let number = placed.allocation;
        let waits = self.queued(number)?.clone();
        if waits.on_hold.is_some() {
            return Err("the allocation is on hold");
        }
        if placed.attempt != waits.attempt + 1 || u64::from(placed.leases) != waits.spec.leases() {
            return Err("the attempt has the wrong number or the wrong number of leases");
        }
        self.empty_reservation(number, to);
        self.leave_queue(&waits, to);
        let staged = waits.spec.staged;
        let found = self.allocations.get_mut(number).expect("it was found above");
        found.state = if staged { AllocationState::Staging } else { AllocationState::Running };
        found.attempt = placed.attempt;
        found.placed_at = record.stamp;
        found.first_lease = placed.first_lease;
        found.leases = placed.leases;
        found.held = 0;
        found.checkpointed = false;
        found.ends = None;
        if let Some(bound) = found.bound() {
            self.bounds.insert((bound, number));
        }
        self.count_allocation(&waits, true, record.stamp, to);
        Ok(())
    }

    pub(super) fn fold_allocation_state(&mut self, number: AllocationNo, state: AllocationState) -> Folded {
        self.placed(number)?.state = state;
        Ok(())
    }

    pub(super) fn fold_checkpointed(&mut self, number: AllocationNo) -> Folded {
        let found = self.placed(number)?;
        found.checkpointed = true;
        found.state = AllocationState::Running;
        Ok(())
    }

    /// The attempt is over, and the allocation goes back into the queue.
    pub(super) fn fold_back_in_queue(
        &mut self,
        number: AllocationNo,
        state: AllocationState,
        stamp: Instant,
        to: &mut impl Follower,
    ) -> Folded {
        self.end_attempt(number, stamp, to)?;
        let found = self.allocations.get_mut(number).expect("end_attempt has found it");
        found.state = state;
        found.ends = None;
        found.queued_at = stamp;
        let found = &*self.allocations.live[&number];
        let key = self.queue.key(found);
        self.queue.add(&key, found);
        to.waits(number);
        Ok(())
    }

    /// Puts a waiting allocation on hold. What was reserved for it is free.
    pub(super) fn fold_hold_set(
        &mut self,
        record: &Record,
        held: &AllocationHoldSet,
        to: &mut impl Follower,
    ) -> Folded {
        if self.queued(held.allocation)?.on_hold.is_some() {
            return Err("the allocation is on hold already");
        }
        let freed = self.step_out_of_line(held.allocation, to);
        let hold = Hold { by_operator: held.by_operator, reason: held.reason.clone(), since: record.stamp };
        self.queued(held.allocation)?.on_hold = Some(hold);
        self.queue.on_hold.insert(held.allocation);
        freed.into_iter().try_for_each(|node| self.fill_reservations(node, to))
    }

    pub(super) fn fold_hold_cleared(&mut self, number: AllocationNo, to: &mut impl Follower) -> Folded {
        self.queued(number)?.on_hold.take().ok_or("the allocation is not on hold")?;
        self.queue.on_hold.remove(&number);
        self.step_into_line(number, to);
        Ok(())
    }

    /// A waiting allocation asks for something else. What was reserved for it is free.
    pub(super) fn fold_changed(
        &mut self,
        number: AllocationNo,
        spec: &AllocationSpec,
        to: &mut impl Follower,
    ) -> Folded {
        self.queued(number)?;
        let freed = self.step_out_of_line(number, to);
        let found = self.queued(number)?;
        found.spec = spec.clone();
        if found.on_hold.is_none() {
            self.step_into_line(number, to);
        }
        freed.into_iter().try_for_each(|node| self.fill_reservations(node, to))
    }

    /// Takes an allocation that goes on waiting out of the line, or from those that wait for their victims. Returns the
    /// nodes on which capacity became free.
    fn step_out_of_line(&mut self, number: AllocationNo, to: &mut impl Follower) -> Vec<NodeNo> {
        let freed = self.empty_reservation(number, to);
        let waits = &*self.allocations.live[&number];
        let key = self.queue.key(waits);
        self.queue.reserved.remove(&number);
        self.queue.step_out(&key, waits);
        to.waits_no_longer(&key, waits);
        self.end_protection(number, to);
        freed
    }

    fn step_into_line(&mut self, number: AllocationNo, to: &mut impl Follower) {
        let waits = &*self.allocations.live[&number];
        let key = self.queue.key(waits);
        self.queue.line_up(&key, waits);
        to.waits(number);
    }

    fn leave_queue(&mut self, waits: &Allocation, to: &mut impl Follower) {
        let key = self.queue.key(waits);
        self.queue.remove(&key, waits);
        to.waits_no_longer(&key, waits);
        self.end_protection(waits.number, to);
    }

    pub(super) fn fold_over(
        &mut self,
        number: AllocationNo,
        state: AllocationState,
        stamp: Instant,
        to: &mut impl Follower,
    ) -> Folded {
        let found = self.allocations.get(number).ok_or("no such allocation")?;
        if found.state.is_queued() {
            let found = found.clone();
            let freed = self.empty_reservation(number, to);
            self.leave_queue(&found, to);
            freed.into_iter().try_for_each(|node| self.fill_reservations(node, to))?;
        } else {
            self.end_attempt(number, stamp, to)?;
        }
        self.allocations.close(number, state, stamp);
        Ok(())
    }

    fn end_attempt(&mut self, number: AllocationNo, stamp: Instant, to: &mut impl Follower) -> Folded {
        let found = self.placed(number)?.clone();
        if let Some(bound) = found.bound() {
            self.bounds.remove(&(bound, number));
        }
        to.attempt_over(number);
        self.count_allocation(&found, false, stamp, to);
        Ok(())
    }

    /// Adds a placed allocation to the quotas of its tenant, or removes it from them.
    fn count_allocation(&mut self, allocation: &Allocation, added: bool, stamp: Instant, to: &mut impl Follower) {
        let tenant = super::entry(&self.tenants, allocation.tenant.0).expect("an allocation's tenant exists");
        for number in &tenant.quotas {
            let quota = entry_mut(&mut self.quotas, number.0).expect("a listed quota exists");
            if let Some(due) = quota.count_allocation(allocation, added, stamp) {
                to.comes_due(crate::timer::Entry::burst(*number, due));
            }
        }
        if !added {
            to.headroom(self, allocation.tenant);
        }
    }

    pub(super) fn fold_preemption(
        &mut self,
        record: &Record,
        decided: &PreemptionDecided,
        to: &mut impl Follower,
    ) -> Folded {
        let number = decided.allocation;
        if self.queued(number)?.reservation.is_some() {
            return Err("the allocation has a reservation already");
        }
        let reservation = Reservation::new(record.sequence, &decided.places, &decided.victims, decided.headroom);
        self.reserve(number, reservation, &decided.victims, record.stamp, to)
    }

    /// Capacity that lower priorities had reserved is reserved for an allocation.
    pub(super) fn fold_taken_over(
        &mut self,
        record: &Record,
        taken: &ReservationTakenOver,
        to: &mut impl Follower,
    ) -> Folded {
        let number = taken.allocation;
        if self.queued(number)?.reservation.is_some() {
            return Err("the allocation has a reservation already");
        }
        let mut freed = Vec::new();
        for dropped in &taken.dropped {
            freed.extend(self.drop_reservation(*dropped, to)?);
        }
        let mut all: Vec<LeaseNo> = taken.victims.0.iter().chain(&taken.awaited.0).copied().collect();
        all.sort_unstable();
        let reservation = Reservation::new(record.sequence, &taken.places, &all.into_iter().collect(), None);
        self.reserve(number, reservation, &taken.victims, record.stamp, to)?;
        freed.into_iter().try_for_each(|node| self.fill_reservations(node, to))
    }

    /// Reserves capacity for a waiting allocation, for which `victims` are evicted.
    fn reserve(
        &mut self,
        number: AllocationNo,
        reservation: Reservation,
        victims: &Leases,
        stamp: Instant,
        to: &mut impl Follower,
    ) -> Folded {
        let nodes: Vec<NodeNo> = reservation.places.iter().map(|place| place.node).collect();
        let waits = self.queued(number)?;
        waits.reservation = Some(Box::new(reservation));
        let waits = waits.clone();
        let key = self.queue.key(&waits);
        self.queue.reserve(&key, &waits);
        to.waits_no_longer(&key, &waits);
        // What it needs is reserved for it from now on.
        self.end_protection(number, to);
        let tenant = entry_mut(&mut self.tenants, waits.tenant.0).ok_or("no such tenant")?;
        if !victims.0.is_empty() {
            let evicted = victims.0.iter().filter_map(|lease| self.leases.get(*lease)).map(|l| l.quanta.0).sum();
            tenant.evict(stamp, evicted);
        }
        nodes.into_iter().try_for_each(|node| self.fill_reservations(node, to))
    }

    pub(super) fn fold_reservation_dropped(&mut self, number: AllocationNo, to: &mut impl Follower) -> Folded {
        let freed = self.drop_reservation(number, to)?;
        freed.into_iter().try_for_each(|node| self.fill_reservations(node, to))
    }

    /// Puts an allocation with a reservation back into the queue. Returns the nodes on which capacity became free.
    fn drop_reservation(&mut self, number: AllocationNo, to: &mut impl Follower) -> Result<Vec<NodeNo>, &'static str> {
        self.queued(number)?.reservation.as_ref().ok_or("the allocation has no reservation")?;
        let freed = self.empty_reservation(number, to);
        self.queue.reserved.remove(&number);
        self.step_into_line(number, to);
        Ok(freed)
    }

    /// Frees the capacity that is reserved for an allocation. Returns the nodes on which it was.
    fn empty_reservation(&mut self, number: AllocationNo, to: &mut impl Follower) -> Vec<NodeNo> {
        let found = self.allocations.get_mut(number).expect("the caller has found it");
        let tenant = found.tenant;
        let Some(mut reservation) = found.reservation.take() else { return Vec::new() };
        if self.queue.headroom.remove(&number).is_some() {
            to.headroom(self, tenant);
        }
        for place in &mut reservation.places {
            for kept in &mut place.members {
                self.change_class(place.node, kept.class, |class| kept.empty(class));
            }
            to.freed(self, place.node);
            to.node_changed(self, place.node);
        }
        reservation.places.iter().map(|place| place.node).collect()
    }

    /// Moves free capacity of a node into the reservations that lack capacity there, in order of allocation number.
    pub(super) fn fill_reservations(&mut self, node: NodeNo, to: &mut impl Follower) -> Folded {
        if self.queue.reserved.is_empty() {
            return Ok(());
        }
        let waiting: Vec<AllocationNo> = self.queue.reserved.iter().copied().collect();
        let mut changed = false;
        for number in waiting {
            let Some(found) = self.allocations.get_mut(number) else { return Err("no such allocation") };
            let Some(mut reservation) = found.reservation.take() else { continue };
            for place in reservation.places.iter_mut().filter(|place| place.node == node) {
                for kept in &mut place.members {
                    let class = self.node(node).and_then(|node| node.class(kept.class));
                    if !class.ok_or("the node does not have the class")?.has_devices(kept.devices) {
                        return Err("the node does not have the device");
                    }
                    self.change_class(node, kept.class, |class| kept.fill(class));
                    changed = true;
                }
            }
            self.allocations.get_mut(number).expect("it was found above").reservation = Some(reservation);
        }
        // Reserved capacity is not free: the placement index must be updated.
        if changed {
            to.node_changed(self, node);
        }
        Ok(())
    }

    /// A lease of an allocation was revoked. The first lease to end determines how the attempt ends.
    pub(super) fn follow_revoked(&mut self, lease: &Lease, reason: Option<Reason>, to: &mut impl Follower) {
        let end = match reason {
            Some(Reason::Preempted { .. }) => AttemptEnd::Preempted,
            Some(Reason::NodeLost) => AttemptEnd::NodeLost,
            _ => AttemptEnd::Revoked,
        };
        self.follow_end(lease, end, false, to);
    }

    /// A lease of an allocation is no longer held.
    pub(super) fn follow_ended(&mut self, lease: &Lease, to: &mut impl Follower) {
        let end = match lease.phase {
            Phase::Expired => AttemptEnd::Expired,
            _ => AttemptEnd::Revoked,
        };
        self.follow_end(lease, end, true, to);
    }

    fn follow_end(&mut self, lease: &Lease, end: AttemptEnd, ended: bool, to: &mut impl Follower) {
        let Some(number) = lease.of else { return };
        let Some(found) = self.allocations.get_mut(number).filter(|found| found.has_lease(lease.number)) else {
            return;
        };
        if ended {
            found.held -= 1;
            found.ended_at = found.ended_at.max(lease.ended_at);
        }
        let at_bound = found.bound().is_some_and(|bound| lease.expires_at >= bound);
        let end = if end == AttemptEnd::Expired && at_bound { AttemptEnd::Walltime } else { end };
        found.ends.get_or_insert(end);
        to.attempt_ends(number);
    }

    /// Links a new lease to the allocation that its grant names, if that is placed and the lease is one of its gang.
    pub(super) fn join_allocation(&mut self, of: Option<AllocationNo>, lease: &mut Lease) {
        let found = of.and_then(|of| self.allocations.get_mut(of)).filter(|found| found.has_lease(lease.number));
        let Some(found) = found else { return };
        found.held += 1;
        lease.of = Some(found.number);
        lease.crowd = found.spec.replicas > 1;
    }

    /// Quanta of a class that are reserved on a node: one number for each device, or a single one for kinds without
    /// devices.
    pub fn reserved(&self, node: NodeNo, class: ClassNo) -> Vec<u64> {
        let devices = self.node(node).and_then(|node| node.class(class)).map_or(0, |class| class.devices.len());
        let mut sums = vec![0; devices.max(1)];
        let waiting = self.queue.reserved.iter().filter_map(|number| self.allocation(*number)?.reservation.as_deref());
        for place in waiting.flat_map(|kept| &kept.places).filter(|place| place.node == node) {
            for kept in place.members.iter().filter(|kept| kept.class == class) {
                kept.add_to(&mut sums);
            }
        }
        sums
    }

    /// Whether requests of a tenant may evict leases of the tenant itself to make headroom in a quota.
    pub(crate) fn evicts_own(&self, tenant: TenantNo) -> bool {
        self.quotas_of(tenant).any(|quota| quota.evict_own_lower)
    }

    /// Whether the tenant has limits that depend on the node or on evictions, so that a gang of another tenant may fit
    /// where an equal one of this tenant does not; or soft quotas or projects because of which some of its gangs rank
    /// behind others.
    fn has_own_shapes(&self, tenant: TenantNo) -> bool {
        let alone = |quota: &crate::quota::Quota| quota.depends_on_node() || quota.is_soft() || quota.evict_own_lower;
        let is_own = |project| self.project(project).is_some_and(|found| found.tenant == tenant);
        self.tenant(tenant).is_some_and(|tenant| tenant.settings.max_evicted_quanta_per_hour.is_some())
            || self.quotas_of(tenant).any(alone)
            || self.pool_access.has(is_own)
    }

    /// The limits of a tenant have changed: groups its waiting allocations accordingly.
    pub(super) fn regroup(&mut self, tenant: TenantNo, to: &mut impl Follower) {
        let own_shapes = self.has_own_shapes(tenant);
        to.queue_affected(self);
        if own_shapes == self.queue.has_own_shapes(tenant) {
            return;
        }
        let queue = &mut self.queue;
        let all = self.allocations.live.values().filter(|found| found.tenant == tenant);
        let waiting = || all.clone().filter(|found| found.is_in_line());
        let before: Vec<ShapeKey> = waiting().map(|found| queue.key(found)).collect();
        queue.set_own_shapes(tenant, own_shapes);
        for (found, from) in waiting().zip(before) {
            let key = queue.key(found);
            queue.step_out(&from, found);
            queue.line_up(&key, found);
            to.regrouped(&from, &key, found);
        }
    }

    /// Sets the groups of all tenants, for a queue that is being rebuilt.
    pub(crate) fn find_own_shapes(&mut self) {
        let numbers: Vec<TenantNo> = self.tenants().map(|tenant| tenant.number).collect();
        for tenant in numbers {
            let own_shapes = self.has_own_shapes(tenant);
            self.queue.set_own_shapes(tenant, own_shapes);
        }
    }

    /// Whether some live allocation satisfies `of`.
    pub(crate) fn has_allocations(&self, of: impl Fn(&Allocation) -> bool) -> bool {
        self.allocations.live.values().any(|allocation| of(allocation))
    }
}
