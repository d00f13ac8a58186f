//! Folding the ends of leases, and the counters that change with a lease.

use super::{GONE_KEPT, Gone, LastUse, State, entry, entry_mut};
use crate::claims::ChangedAt;
use crate::follow::Follower;
use crate::lease::{Lease, NONE, Phase};
use crate::node::NodeClass;
use crate::timer::Entry;
use leasehold_model::{ClassNo, Instant, LeaseNo, NodeNo, Quanta, Record};

type Folded = Result<(), &'static str>;

impl State {
    pub(super) fn held_slot(&self, lease: LeaseNo) -> Result<u32, &'static str> {
        let slot = self.leases.slot(lease).ok_or("no such lease")?;
        if self.leases.at(slot).phase.is_held() { Ok(slot) } else { Err("the lease is no longer held") }
    }

    /// Held leases end: billing stops at the record's effective instant.
    pub(super) fn fold_ends(
        &mut self,
        leases: impl Iterator<Item = LeaseNo>,
        record: &Record,
        phase: Phase,
        closed: bool,
        to: &mut impl Follower,
    ) -> Folded {
        let limit_at = record.stamp.saturating_add(self.settings.teardown_deadline);
        for number in leases {
            let slot = self.held_slot(number)?;
            let lease = self.leases.at_mut(slot);
            let (was_evictable, was_ending) = (lease.is_evictable(), lease.phase == Phase::Revoking);
            lease.phase = phase;
            lease.ended_at = record.effective_at.clamp(lease.granted_at, lease.expires_at);
            lease.limit_at = limit_at;
            let lease = lease.clone();
            if was_evictable {
                to.evictable(&lease, false);
            }
            if was_ending == closed {
                self.count_ending(lease.node, !closed);
            }
            self.note_end(lease.node, lease.ended_at);
            self.forget_lifetime(&lease);
            self.meter_end(&lease, record.stamp, to);
            self.settle_cost(&lease, to);
            self.end_prepaid(&lease, to);
            to.queue_affected(self);
            if lease.of.is_some() {
                self.follow_ended(&lease, to);
            }
            if closed {
                self.close(slot, &lease, record.stamp, Phase::Active, to);
            } else {
                self.move_capacity(&lease, |class, quanta| {
                    class.held -= quanta;
                    class.tearing_down += quanta;
                });
                to.evictable_changed(self, lease.node);
                to.lease_due(self, slot);
            }
        }
        Ok(())
    }

    pub(super) fn fold_closed(
        &mut self,
        leases: &[LeaseNo],
        stamp: Instant,
        from: impl Fn(Phase) -> bool,
        to: &mut impl Follower,
    ) -> Folded {
        for number in leases {
            let slot = self.leases.slot(*number).ok_or("no such lease")?;
            let lease = self.leases.at(slot).clone();
            if !from(lease.phase) {
                return Err("the lease is in another phase");
            }
            self.close(slot, &lease, stamp, lease.phase, to);
        }
        Ok(())
    }

    /// Fenced leases are the operator's loss: they no longer count in the tenant's quotas (SEMANTICS 3).
    pub(super) fn fold_fenced(&mut self, leases: &[LeaseNo], at: ChangedAt, to: &mut impl Follower) -> Folded {
        for number in leases {
            let slot = self.leases.slot(*number).ok_or("no such lease")?;
            let lease = self.leases.at_mut(slot);
            if !lease.phase.is_tearing_down() {
                return Err("the lease is not being torn down");
            }
            lease.phase = Phase::Fenced;
            let lease = lease.clone();
            self.count_ending(lease.node, false);
            self.recount_claim(lease.node, at, to, |state, _| {
                state.move_capacity(&lease, |class, quanta| {
                    class.tearing_down -= quanta;
                    class.fenced += quanta;
                });
            });
            self.count_in_quotas(&lease, false, at.stamp, to);
            to.headroom(self, lease.tenant);
        }
        Ok(())
    }

    /// Restarts all grace periods and teardown deadlines at startup: an outage of the daemon must not fence the
    /// cluster.
    pub(super) fn restart_limits(&mut self, stamp: Instant, to: &mut impl Follower) {
        let teardown = self.settings.teardown_deadline;
        for lease in self.leases.in_any_order_mut() {
            if lease.phase == Phase::Revoking {
                lease.limit_at = stamp.saturating_add(lease.grace).min(lease.expires_at);
            } else if lease.phase.is_tearing_down() {
                lease.limit_at = stamp.saturating_add(teardown);
            }
        }
        self.restart_wipes(stamp);
        to.limits_restarted(self);
    }

    /// Removes a lease and frees its capacity, which was counted as held, tearing down or fenced according to
    /// `counted_as`.
    fn close(&mut self, slot: u32, lease: &Lease, stamp: Instant, counted_as: Phase, to: &mut impl Follower) {
        let index = usize::try_from(lease.number.0 % GONE_KEPT as u64).expect("below a small constant");
        if self.gone.len() <= index {
            self.gone.resize(GONE_KEPT, None);
        }
        self.gone[index] =
            Some(Gone { lease: lease.number, tenant: lease.tenant, phase: lease.phase, at: lease.ended_at });
        if counted_as == Phase::Fenced {
            self.recount_claim(lease.node, stamp.into(), to, |state, _| {
                state.move_capacity(lease, |class, quanta| class.fenced -= quanta);
            });
        } else {
            self.move_capacity(lease, |class, quanta| match counted_as.is_held() {
                true => class.held -= quanta,
                false => class.tearing_down -= quanta,
            });
        }
        let node = entry_mut(&mut self.nodes, lease.node.0).expect("a lease's node exists");
        node.class_mut(lease.class).occupy_devices(lease.devices, lease.quanta, false);
        if counted_as.is_tearing_down() {
            self.count_ending(lease.node, false);
        }
        if counted_as != Phase::Fenced {
            self.count_in_quotas(lease, false, stamp, to);
            to.headroom(self, lease.tenant);
        }
        to.freed(self, lease.node);
        self.fill_reservations(lease.node, to).expect("the classes of a reservation exist on its node");
        to.node_changed(self, lease.node);
        entry_mut(&mut self.tenants, lease.tenant.0).expect("a lease's tenant exists").leases -= 1;
        let last_use = LastUse { at: stamp, sequence: self.size };
        let project = entry_mut(&mut self.projects, lease.project.0).expect("a lease's project exists");
        project.leases -= 1;
        project.last_use = last_use;
        if lease.payer != lease.project {
            let payer = entry_mut(&mut self.projects, lease.payer.0).expect("a lease's payer exists");
            payer.leases -= 1;
            payer.last_use = last_use;
        }
        self.unchain_from_node(lease);
        if let Some(app) = self.forget_app(lease.number) {
            self.apps.note_use(app, last_use);
        }
        self.leases.remove(slot);
        to.lease_closed(self);
    }

    /// Takes the capacity of a lease. The caller reports the node as changed, once for all leases of a grant.
    pub(super) fn occupy(&mut self, lease: &Lease, to: &mut impl Follower) -> Folded {
        let node = entry(&self.nodes, lease.node.0).ok_or("no such node")?;
        let class = node.class(lease.class).ok_or("the node does not have the class")?;
        if class.free() < lease.quanta.0 {
            return Err("the node has too little free capacity");
        }
        if !class.can_occupy_devices(lease.devices, lease.quanta) {
            return Err("a device that holds more than it has");
        }
        self.move_capacity(lease, |class, quanta| class.held += quanta);
        if lease.is_evictable() {
            to.evictable(lease, true);
        }
        let node = entry_mut(&mut self.nodes, lease.node.0).expect("it was found above");
        node.class_mut(lease.class).occupy_devices(lease.devices, lease.quanta, true);
        Ok(())
    }

    /// Changes the counters of a lease's class on its node. A caller that changes the free capacity reports the node as
    /// changed.
    fn move_capacity(&mut self, lease: &Lease, change: impl FnOnce(&mut NodeClass, u64)) {
        let Quanta(quanta) = lease.quanta;
        self.change_class(lease.node, lease.class, |class| change(class, quanta));
    }

    /// Changes the counters of a class on a node; the caller reports as for `move_capacity`.
    pub(super) fn change_class(&mut self, number: NodeNo, of: ClassNo, change: impl FnOnce(&mut NodeClass)) {
        let node = entry_mut(&mut self.nodes, number.0).expect("the node exists");
        change(node.class_mut(of));
    }

    /// Counts the leases that are ending on a node.
    pub(crate) fn count_ending(&mut self, number: NodeNo, added: bool) {
        let node = entry_mut(&mut self.nodes, number.0).expect("a lease's node exists");
        node.ending = if added { node.ending + 1 } else { node.ending - 1 };
        match node.ending {
            0 => self.ending.remove(&number),
            _ => self.ending.insert(number),
        };
    }

    pub(super) fn count_in_quotas(&mut self, lease: &Lease, added: bool, stamp: Instant, to: &mut impl Follower) {
        if !self.is_counted_by_claim(lease) {
            self.count_lease_in_quotas(lease, added, stamp, to);
        }
    }

    fn count_lease_in_quotas(&mut self, lease: &Lease, added: bool, stamp: Instant, to: &mut impl Follower) {
        let tenant = entry(&self.tenants, lease.tenant.0).expect("a lease's tenant exists");
        if tenant.quotas.is_empty() {
            return;
        }
        let facts = self.facts_of(lease);
        for number in &tenant.quotas {
            let quota = entry_mut(&mut self.quotas, number.0).expect("a listed quota exists");
            if let Some(due) = quota.count(lease, &facts, added, stamp) {
                to.comes_due(Entry::burst(*number, due));
            }
        }
    }

    /// From here on a lease is counted by the claim on its node, and no longer by itself.
    pub(crate) fn stop_counting(&mut self, lease: &Lease, stamp: Instant, to: &mut impl Follower) {
        if lease.phase != Phase::Fenced {
            self.count_lease_in_quotas(lease, false, stamp, to);
        }
        if lease.phase.is_held() {
            self.stop_metering(lease, ChangedAt::from(stamp), to);
            self.settle_project_cost(lease, stamp, to);
        }
    }

    pub(crate) fn chain_to_node(&mut self, slot: u32) {
        let node = self.leases.at(slot).node;
        let node = entry_mut(&mut self.nodes, node.0).expect("a lease's node exists");
        let next = std::mem::replace(&mut node.first_lease, slot);
        self.leases.at_mut(slot).node_next = next;
        if next != NONE {
            self.leases.at_mut(next).node_prev = slot;
        }
    }

    fn unchain_from_node(&mut self, lease: &Lease) {
        let (next, prev) = (lease.node_next, lease.node_prev);
        if next != NONE {
            self.leases.at_mut(next).node_prev = prev;
        }
        if prev == NONE {
            entry_mut(&mut self.nodes, lease.node.0).expect("a lease's node exists").first_lease = next;
        } else {
            self.leases.at_mut(prev).node_next = next;
        }
    }

    /// The leases on a node, in arbitrary order.
    pub(crate) fn chain_of(&self, node: NodeNo) -> impl Iterator<Item = &Lease> {
        let first = self.node(node).map_or(NONE, |node| node.first_lease);
        let at = |slot: u32| (slot != NONE).then(|| self.leases.at(slot));
        std::iter::successors(at(first), move |lease| at(lease.node_next))
    }

    /// The leases on a node, by number.
    pub fn leases_on(&self, node: NodeNo) -> Vec<&Lease> {
        let mut leases: Vec<&Lease> = self.chain_of(node).collect();
        leases.sort_unstable_by_key(|lease| lease.number);
        leases
    }
}
