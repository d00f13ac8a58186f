//! Commands that end leases: release, revocation, readiness, teardown and fences.

use super::renewal::{by_tenant, ended};
use super::{Draft, Few, Partial, in_order};
use crate::command::{ConfirmTeardown, ReleaseOne, Revoke, Unfence};
use crate::holder::{Holder, by_holder};
use crate::lease::{Lease, Phase};
use crate::refusal::Refusal;
use leasehold_model::body::{
    AllocationCompleted, Leases, Released, Reported, ReportedLeases, Revoked, TeardownStarted, TornDown, Unfenced,
};
use leasehold_model::limits::{LEASES_PER_RECORD_MAX, LIMIT_SPAN_MAX};
use leasehold_model::policy::TeardownCause;
use leasehold_model::{AllocationNo, LeaseNo, NodeNo, Reason, Span, TeardownMode, TenantNo};
use std::collections::BTreeMap;

impl Draft<'_> {
    pub(super) fn release(&mut self, releases: &[ReleaseOne]) -> Partial {
        let mut refused = Vec::new();
        if let [one] = releases {
            // The usual case is one lease: nothing to sort, nothing to group by tenant.
            let lease = self.holder_of(one.lease)?;
            if !lease.phase.is_held() {
                return Err(ended(lease));
            }
            if lease.of.is_some() {
                self.complete_whole(&[one.lease])?;
            }
            let lease = self.holder_of(one.lease)?;
            let (tenant, closed) = (lease.tenant, self.tears_down_at_once(lease));
            let activity = self.checked_activity(one.lease, one.activity, &mut refused);
            let leases = ReportedLeases(Few::from_buf([Reported { lease: one.lease, activity }]));
            self.emit(Some(tenant), Released { leases, closed }, |_| {});
            return Ok(refused);
        }
        let mut accepted = Few::new();
        for one in in_order(releases, |one| one.lease)? {
            match self.holder_of(one.lease) {
                Ok(lease) if lease.phase.is_held() => {
                    let tenant = lease.tenant;
                    if let Some(allocation) = self.partly_released_gang(lease, releases) {
                        refused.push((one.lease, Refusal::LeaseOfAllocation { lease: one.lease, allocation }));
                        continue;
                    }
                    let activity = self.checked_activity(one.lease, one.activity, &mut refused);
                    accepted.push((tenant, Reported { lease: one.lease, activity }));
                }
                Ok(lease) => refused.push((one.lease, ended(lease))),
                Err(refusal) => refused.push((one.lease, refusal)),
            }
        }
        for (tenant, leases) in by_tenant(accepted, &refused)? {
            let numbers: Few<LeaseNo> = leases.iter().map(|r| r.lease).collect();
            self.complete_whole(&numbers)?;
            let closed = self.all_immediate(&numbers);
            self.emit(Some(tenant), Released { leases: ReportedLeases(leases), closed }, |_| {});
            self.close_immediate(tenant, &numbers, closed);
        }
        Ok(refused)
    }

    /// The allocation of a lease, if the command releases only a part of what its gang holds.
    fn partly_released_gang(&self, lease: &Lease, releases: &[ReleaseOne]) -> Option<AllocationNo> {
        let state = self.state();
        let found = state.allocation(lease.of?).filter(|found| found.has_lease(lease.number))?;
        // Leases that have ended already give nothing back.
        let is_held = |number: LeaseNo| state.lease(number).is_some_and(|lease| lease.phase.is_held());
        let named = releases.iter().filter(|one| found.has_lease(one.lease) && is_held(one.lease)).count();
        (named < found.held as usize).then_some(found.number)
    }

    /// Completes the allocations whose leases are all released. Refuses to release only some leases of a gang.
    fn complete_whole(&mut self, leases: &[LeaseNo]) -> Result<(), Refusal> {
        let state = self.state();
        let of = leases.iter().filter_map(|lease| state.lease(*lease)).filter_map(|lease| {
            let found = state.allocation(lease.of?).filter(|found| found.has_lease(lease.number))?;
            Some((found.number, lease.number))
        });
        let mut whole: BTreeMap<AllocationNo, Vec<LeaseNo>> = BTreeMap::new();
        of.for_each(|(number, lease)| whole.entry(number).or_default().push(lease));
        let found = |allocation| state.allocation(allocation).expect("it was found above");
        // All of them first: a command that is refused has no records.
        for (allocation, named) in &whole {
            if named.len() < found(*allocation).held as usize {
                return Err(Refusal::LeaseOfAllocation { lease: named[0], allocation: *allocation });
            }
        }
        let whole: Vec<_> = whole.into_keys().map(|allocation| (allocation, found(allocation).identity())).collect();
        for (allocation, identity) in whole {
            self.emit_for(&identity, AllocationCompleted { allocation, exit_status: None, storage_written: 0 });
        }
        Ok(())
    }

    /// Whether all leases are on nodes whose teardown needs no confirmation.
    pub(super) fn all_immediate(&self, leases: &[LeaseNo]) -> bool {
        leases.iter().all(|lease| self.is_immediate(*lease))
    }

    fn is_immediate(&self, lease: LeaseNo) -> bool {
        self.tears_down_at_once(self.state().lease(lease).expect("an accepted lease is live"))
    }

    fn tears_down_at_once(&self, lease: &Lease) -> bool {
        self.state().node(lease.node).expect("a lease's node exists").teardown == TeardownMode::Immediate
    }

    /// If a record ended leases on nodes with and without confirmed teardown, closes those without by additional
    /// records, one per node.
    pub(super) fn close_immediate(&mut self, tenant: TenantNo, leases: &[LeaseNo], closed: bool) {
        if closed {
            return;
        }
        let mut by_node: BTreeMap<NodeNo, Vec<LeaseNo>> = BTreeMap::new();
        for lease in leases.iter().filter(|lease| self.is_immediate(**lease)) {
            let node = self.state().lease(*lease).expect("an accepted lease is live").node;
            by_node.entry(node).or_default().push(*lease);
        }
        for (node, leases) in by_node {
            let leases = leases.into_iter().collect();
            self.emit(Some(tenant), TornDown { node, leases, belongs_to: None }, |_| {});
        }
    }

    pub(super) fn revoke(&mut self, revoke: &Revoke) -> Partial {
        if revoke.grace.is_some_and(|grace| grace > LIMIT_SPAN_MAX) {
            return Err(Refusal::GraceTooLong { limit: LIMIT_SPAN_MAX });
        }
        let mut refused = Vec::new();
        let mut accepted: Few<(TenantNo, LeaseNo)> = Few::new();
        for number in in_order(&revoke.leases, |lease| *lease)? {
            match self.holder_of(number) {
                Ok(lease) if lease.phase == Phase::Active => {
                    accepted.extend(self.with_gang(lease).into_iter().map(|no| (lease.tenant, no)));
                }
                Ok(lease) if lease.phase == Phase::Revoking => {
                    refused.push((number, Refusal::LeaseRevoking { lease: number }));
                }
                Ok(lease) => refused.push((number, ended(lease))),
                Err(refusal) => refused.push((number, refusal)),
            }
        }
        accepted.sort_unstable();
        accepted.dedup();
        let accepted = numbers(by_tenant(accepted, &refused)?);
        self.revoke_active(&accepted, revoke.grace, revoke.reason);
        Ok(refused)
    }

    /// The active leases of the gang that a lease belongs to: an involuntary end of one member revokes the others
    /// (SEMANTICS 3).
    pub(super) fn with_gang(&self, lease: &Lease) -> Vec<LeaseNo> {
        let of = lease.of.and_then(|number| self.state().allocation(number));
        let gang: Vec<LeaseNo> = match of.filter(|found| found.has_lease(lease.number)) {
            Some(found) => found.lease_numbers().collect(),
            None => (0..u64::from(lease.gang_len)).map(|i| LeaseNo(lease.gang.0 + i)).collect(),
        };
        let active = |no: &LeaseNo| self.state().lease(*no).is_some_and(|l| l.phase == Phase::Active);
        gang.into_iter().filter(active).collect()
    }

    /// Revokes active leases, whole gangs of them. Without a grace, each pool has its own; there is one record for each
    /// holder and length.
    pub(super) fn revoke_active(&mut self, leases: &[LeaseNo], grace: Option<Span>, reason: Reason) {
        let found = leases.iter().filter_map(|lease| self.state().lease(*lease));
        let grace_of = |lease: &Lease| grace.unwrap_or_else(|| self.pool_grace(lease.number));
        let groups = by_holder(found.map(|lease| (lease, grace_of(lease))));
        for ((holder, grace), leases) in groups {
            for leases in leases.chunks(LEASES_PER_RECORD_MAX) {
                let leases: Leases = leases.iter().copied().collect();
                let body = Revoked { leases, grace, belongs_to: Some(holder.belongs_to) };
                self.emit_shaped(&holder.identity(), body, |r| r.reason = Some(reason));
            }
        }
    }

    /// The grace of a revocation if the command sets none.
    pub(super) fn pool_grace(&self, lease: LeaseNo) -> Span {
        let state = self.state();
        let pool = state.lease(lease).and_then(|lease| state.pool(lease.pool));
        pool.and_then(|pool| pool.grace).unwrap_or(state.settings.grace_default)
    }

    pub(super) fn ready(&mut self, leases: &[LeaseNo]) -> Partial {
        let check = |draft: &Self, number| {
            let lease = draft.holder_of(number)?;
            match lease.phase {
                Phase::Revoking => Ok(lease.tenant),
                Phase::Active => Err(Refusal::LeaseNotRevoking { lease: number }),
                _ => Err(ended(lease)),
            }
        };
        let (groups, refused) = self.split(leases, check)?;
        for (tenant, leases) in groups {
            let closed = self.all_immediate(&leases);
            let body = TeardownStarted {
                leases: leases.iter().copied().collect(),
                cause: TeardownCause::Ready,
                closed,
                belongs_to: None,
            };
            self.emit(Some(tenant), body, |_| {});
            self.close_immediate(tenant, &leases, closed);
        }
        Ok(refused)
    }

    pub(super) fn confirm_teardown(&mut self, confirm: &ConfirmTeardown) -> Partial {
        let node = confirm.node;
        if self.state().node(node).is_none() {
            return Err(Refusal::UnknownNode { node });
        }
        if let Some(generation) = confirm.generation {
            self.check_generation(node, generation)?;
        }
        let check = |draft: &Self, number| {
            let lease = draft.holder_of(number)?;
            if lease.node != node {
                return Err(Refusal::LeaseElsewhere { lease: number, node });
            }
            match lease.phase {
                phase if phase.is_tearing_down() => Ok(lease.tenant),
                // A late confirmation does not clear a fence: only an operator does.
                Phase::Fenced => Err(Refusal::LeaseFenced { lease: number }),
                _ => Err(Refusal::LeaseNotTearingDown { lease: number }),
            }
        };
        let (groups, refused) = self.split(&confirm.leases, check)?;
        if confirm.generation.is_some() {
            for (tenant, leases) in groups {
                let leases = leases.into_iter().collect();
                self.emit(Some(tenant), TornDown { node, leases, belongs_to: None }, |_| {});
            }
            return Ok(refused);
        }
        // An operator's word: the record carries whose leases they are.
        for ((holder, ()), leases) in self.grouped(&numbers(groups)) {
            let (leases, belongs_to) = (leases.into_iter().collect(), Some(holder.belongs_to));
            self.emit_for(&holder.identity(), TornDown { node, leases, belongs_to });
        }
        Ok(refused)
    }

    pub(super) fn unfence(&mut self, unfence: &Unfence) -> Partial {
        let check = |draft: &Self, number| {
            let lease = draft.holder_of(number)?;
            if lease.phase == Phase::Fenced { Ok(lease.tenant) } else { Err(Refusal::LeaseNotFenced { lease: number }) }
        };
        let (groups, refused) = self.split(&unfence.leases, check)?;
        for ((holder, ()), leases) in self.grouped(&numbers(groups)) {
            let (leases, belongs_to) = (leases.into_iter().collect(), Some(holder.belongs_to));
            self.emit_for(&holder.identity(), Unfenced { leases, belongs_to, reason: unfence.reason.clone() });
        }
        Ok(refused)
    }

    /// Live leases by their holder.
    fn grouped(&self, leases: &[LeaseNo]) -> BTreeMap<(Holder, ()), Vec<LeaseNo>> {
        by_holder(leases.iter().filter_map(|lease| Some((self.state().lease(*lease)?, ()))))
    }

    /// Splits the leases of a command into the accepted ones, by tenant, and the refused ones.
    #[expect(clippy::type_complexity, reason = "used only here")]
    fn split(
        &self,
        leases: &[LeaseNo],
        check: impl Fn(&Self, LeaseNo) -> Result<TenantNo, Refusal>,
    ) -> Result<(Few<(TenantNo, Few<LeaseNo>)>, Vec<(LeaseNo, Refusal)>), Refusal> {
        let mut refused = Vec::new();
        let mut accepted = Few::new();
        for number in in_order(leases, |lease| *lease)? {
            match check(self, number) {
                Ok(tenant) => accepted.push((tenant, number)),
                Err(refusal) => refused.push((number, refusal)),
            }
        }
        Ok((by_tenant(accepted, &refused)?, refused))
    }

    /// Ends all leases on a lost node at the instant it was last seen.
    pub(super) fn end_all_on(&mut self, node: NodeNo, last_seen: leasehold_model::Instant) {
        let held = self.state().leases_on(node).into_iter().filter(|lease| lease.phase.is_held());
        let groups = by_holder(held.map(|lease| (lease, ())));
        for ((holder, ()), leases) in groups {
            let (identity, belongs_to) = (holder.identity(), Some(holder.belongs_to));
            for leases in leases.chunks(LEASES_PER_RECORD_MAX) {
                // Leases that are being revoked have a reason already.
                let is_active = |no: &LeaseNo| self.state().lease(*no).is_some_and(|l| l.phase == Phase::Active);
                let active: Leases = leases.iter().copied().filter(is_active).collect();
                if !active.0.is_empty() {
                    let revoked = Revoked { leases: active, grace: leasehold_model::Span::ZERO, belongs_to };
                    self.emit_shaped(&identity, revoked, |r| r.reason = Some(Reason::NodeLost));
                }
                let closed = self.all_immediate(leases);
                let leases = leases.iter().copied().collect();
                let body = TeardownStarted { leases, cause: TeardownCause::GraceEnded, closed, belongs_to };
                self.emit_shaped(&identity, body, |r| {
                    r.reason = Some(Reason::NodeLost);
                    r.effective_at = last_seen;
                });
            }
        }
    }
}

/// The leases of all groups, in rising order.
fn numbers(groups: Few<(TenantNo, Few<LeaseNo>)>) -> Vec<LeaseNo> {
    let mut all: Vec<LeaseNo> = groups.into_iter().flat_map(|(_, leases)| leases).collect();
    all.sort_unstable();
    all
}
