//! The life cycle of leases: which record may follow which (SEMANTICS 2 and 3).

use crate::allocation::Allocation;
use crate::command::Command;
use crate::lease::{Lease, Phase};
use crate::violation::{Broken, Checked, demand, found};
use crate::world::World;
use leasehold_model::body::{
    Expired, Fenced, Released, Renewal, Renewed, Reported, Revoked, TeardownStarted, TornDown, Unfenced,
};
use leasehold_model::limits::LIMIT_SPAN_MAX;
use leasehold_model::{Activity, AttemptEnd, Instant, LeaseNo, Reason, Record, Span};
use std::collections::BTreeSet;

impl World {
    /// Checks that the leases exist, are sorted, and belong to the tenant of the record: a record contains data of one
    /// tenant only (SEMANTICS 3).
    pub(crate) fn check_leases(&self, record: &Record, numbers: &[LeaseNo]) -> Checked {
        demand!(!numbers.is_empty(), "leases", "the list of leases is empty");
        demand!(numbers.is_sorted_by(|a, b| a < b), "leases", "{numbers:?} is not sorted");
        for number in numbers {
            let lease = found!(self.lease(*number), "unknown-lease", "there is no {number}");
            demand!(
                record.identity.tenant == Some(lease.tenant),
                "one-tenant",
                "{number} is of {}, the record of {:?}",
                lease.tenant,
                record.identity.tenant
            );
        }
        Ok(())
    }

    fn check_phase(&self, numbers: &[LeaseNo], legal: impl Fn(Phase) -> bool) -> Checked {
        for number in numbers {
            let phase = self.lease(*number).map(|lease| lease.phase);
            demand!(phase.is_some_and(&legal), "phase", "{number} is {:?}", phase.map(Phase::word));
        }
        Ok(())
    }

    /// If the record has a project, it must hold the leases: the project of a lease is fixed at the grant (SEMANTICS
    /// 2).
    fn check_holder(&self, record: &Record, numbers: &[LeaseNo]) -> Checked {
        let Some(project) = record.identity.project else { return Ok(()) };
        let other = numbers.iter().find(|number| self.lease(**number).is_some_and(|l| l.project != project));
        demand!(other.is_none(), "holder", "{other:?} is not held by {project}");
        Ok(())
    }

    fn is_on_immediate_node(&self, number: LeaseNo) -> bool {
        let node = self.lease(number).and_then(|lease| self.nodes.get(&lease.node));
        node.is_some_and(|node| node.is_immediate())
    }

    /// A record closes its leases exactly if all of them are on nodes without an agent (SEMANTICS 3). For a mixed
    /// record, returns those without an agent, which the command must close separately.
    fn check_closed(&self, numbers: &[LeaseNo], closed: bool) -> Result<Vec<LeaseNo>, Broken> {
        let immediate: Vec<_> = numbers.iter().copied().filter(|number| self.is_on_immediate_node(*number)).collect();
        let all = immediate.len() == numbers.len();
        demand!(closed == all, "closed", "closed is {closed}, but these are on nodes without an agent: {immediate:?}");
        Ok(if closed { Vec::new() } else { immediate })
    }

    pub(crate) fn renewed(&mut self, record: &Record, renewed: &Renewed) -> Checked {
        let numbers: Vec<_> = renewed.renewals.iter().map(|r| r.lease).collect();
        self.check_leases(record, &numbers)?;
        self.check_holder(record, &numbers)?;
        for renewal in &renewed.renewals {
            let lease = self.lease(renewal.lease).expect("it was just found");
            self.check_renewal(record.stamp, lease, renewal)?;
        }
        for renewal in &renewed.renewals {
            // Each renewal counts against the ceilings of the following ones.
            let lease = self.lease(renewal.lease).expect("it was just found");
            self.check_renewal_cost(record, lease, renewal.expires_at)?;
            self.check_renewal_credit(record, lease, renewal.expires_at)?;
            let lease = self.lease_mut(renewal.lease);
            lease.expires_at = renewal.expires_at;
            lease.reckoned_by = record.sequence;
            if renewal.activity.is_some() {
                lease.reported_to = record.stamp;
            }
        }
        Ok(())
    }

    fn check_renewal(&self, stamp: Instant, lease: &Lease, renewal: &Renewal) -> Checked {
        let number = lease.number;
        demand!(lease.phase == Phase::Active, "phase", "{number} is {}", lease.phase.word());
        // A renewal at or after the deadline is refused (SEMANTICS 2).
        demand!(stamp < lease.expires_at, "renewed-late", "{number} expired at {}", lease.expires_at);
        demand!(renewal.expires_at > stamp, "renewed-into-past", "{number} until {}", renewal.expires_at);
        let longest = self.ttl_max(lease.pool, lease.priority);
        let ttl = renewal.expires_at.since(stamp);
        demand!(ttl <= longest, "ttl", "{number} for {ttl} of at most {longest}");
        if let Some(life) = self.lifetime_max(lease.pool, lease.priority) {
            let last = lease.granted_at.saturating_add(life);
            demand!(renewal.expires_at <= last, "lifetime", "{number} past {last}");
        }
        let ended = self.has_ended(lease.attachment);
        demand!(!ended, "attachment-ended", "{number} was lent by {:?}", lease.attachment);
        self.check_before_window(lease.node, renewal.expires_at)?;
        if let Some(bound) = self.attempt_of(lease).and_then(Allocation::bound) {
            demand!(renewal.expires_at <= bound, "walltime", "{number} past {bound}");
        }
        if let Some((quota, ends_at)) = self.renewal_ends(lease) {
            demand!(renewal.expires_at <= ends_at, "burst", "{number} past {ends_at}, the end of {quota}'s burst");
        }
        check_activity(stamp, lease, renewal.activity.as_ref())
    }

    fn check_reports(&self, record: &Record, reports: &[Reported]) -> Result<Vec<LeaseNo>, Broken> {
        let numbers: Vec<_> = reports.iter().map(|report| report.lease).collect();
        self.check_leases(record, &numbers)?;
        self.check_holder(record, &numbers)?;
        self.check_phase(&numbers, Phase::is_held)?;
        for report in reports {
            let lease = self.lease(report.lease).expect("it was just found");
            check_activity(record.stamp, lease, report.activity.as_ref())?;
        }
        Ok(numbers)
    }

    pub(crate) fn reported(&mut self, record: &Record, reports: &[Reported]) -> Checked {
        self.check_reports(record, reports)?;
        for report in reports.iter().filter(|report| report.activity.is_some()) {
            self.lease_mut(report.lease).reported_to = record.stamp;
        }
        Ok(())
    }

    /// Released by the holder, from active or revoking.
    pub(crate) fn released(&mut self, command: &mut Command, record: &Record, released: &Released) -> Checked {
        let numbers = self.check_reports(record, &released.leases.0)?;
        // Leases of an allocation are released only when it ends.
        let torn = numbers.iter().find(|number| self.lease(**number).is_some_and(|l| self.attempt_of(l).is_some()));
        demand!(torn.is_none(), "gang-split", "{torn:?} belongs to an allocation that has not ended");
        let owed = self.check_closed(&numbers, released.closed)?;
        self.reported(record, &released.leases.0)?;
        self.end(&numbers, record, Phase::Releasing, released.closed);
        command.must_close.extend(owed);
        Ok(())
    }

    /// Ends the billing of leases at the record's effective instant; the teardown deadline is counted from its stamp
    /// (SEMANTICS 2).
    fn end(&mut self, numbers: &[LeaseNo], record: &Record, phase: Phase, closed: bool) {
        let limit_at = self.teardown_limit(record.stamp);
        for number in numbers {
            let lease = self.lease_mut(*number);
            lease.end(record.effective_at, record.sequence);
            lease.begin_teardown(phase, closed, limit_at);
        }
    }

    /// The leases of a timer's record are all on nodes with an agent, or all on nodes without.
    fn check_uniform(&self, numbers: &[LeaseNo], closed: bool) -> Checked {
        let owed = self.check_closed(numbers, closed)?;
        demand!(owed.is_empty(), "closed", "one timer record for nodes with and without an agent: {owed:?}");
        Ok(())
    }

    /// Expiry; whether it was due is checked as a timer.
    pub(crate) fn expired(&mut self, record: &Record, expired: &Expired) -> Checked {
        let numbers = &expired.leases.0;
        self.check_leases(record, numbers)?;
        self.check_phase(numbers, |phase| phase == Phase::Active)?;
        self.check_carries(record, numbers, expired.belongs_to)?;
        self.check_uniform(numbers, expired.closed)?;
        for number in numbers {
            self.begin_end(*number, AttemptEnd::Expired);
        }
        self.end(numbers, record, Phase::Expired, expired.closed);
        Ok(())
    }

    pub(crate) fn revoked(&mut self, command: &mut Command, record: &Record, revoked: &Revoked) -> Checked {
        let numbers = &revoked.leases.0;
        self.check_leases(record, numbers)?;
        self.check_phase(numbers, |phase| phase == Phase::Active)?;
        self.check_carries(record, numbers, revoked.belongs_to)?;
        demand!(record.reason.is_some(), "reason", "a revocation without a reason");
        demand!(revoked.grace <= LIMIT_SPAN_MAX, "grace", "a grace of {}", revoked.grace);
        if let Some((node, _)) = command.lost {
            let plain = record.reason == Some(Reason::NodeLost) && revoked.grace == Span::ZERO;
            demand!(plain, "lost-leases", "a lost node's leases end as node_lost without grace");
            self.check_on_node(numbers, node)?;
        }
        let end = match record.reason {
            Some(Reason::Preempted { .. }) => AttemptEnd::Preempted,
            Some(Reason::NodeLost) => AttemptEnd::NodeLost,
            _ => AttemptEnd::Revoked,
        };
        for number in numbers {
            self.begin_end(*number, end);
            let lease = self.lease_mut(*number);
            lease.phase = Phase::Revoking;
            lease.grace = revoked.grace;
            // Grace never extends past `expires_at` (SEMANTICS 2).
            lease.limit_at = Some(record.stamp.saturating_add(revoked.grace).min(lease.expires_at));
            command.revoked_gangs.insert(lease.gang);
            command.revoked_of.extend(lease.of.filter(|_| command.lost.is_none()));
        }
        Ok(())
    }

    fn check_on_node(&self, numbers: &[LeaseNo], node: leasehold_model::NodeNo) -> Checked {
        let elsewhere = numbers.iter().find(|number| self.lease(**number).is_none_or(|l| l.node != node));
        demand!(elsewhere.is_none(), "elsewhere", "{elsewhere:?} is not on {node}");
        Ok(())
    }

    /// The teardown starts because the holder is ready, grace ended (checked as a timer), or the node is lost.
    pub(crate) fn teardown_started(
        &mut self,
        command: &mut Command,
        record: &Record,
        started: &TeardownStarted,
        is_timer: bool,
    ) -> Checked {
        let numbers = &started.leases.0;
        self.check_leases(record, numbers)?;
        self.check_phase(numbers, |phase| phase == Phase::Revoking)?;
        if let Some((node, _)) = command.lost.filter(|_| !is_timer) {
            self.check_on_node(numbers, node)?;
        }
        if is_timer || command.lost.is_some() {
            self.check_carries(record, numbers, started.belongs_to)?;
        }
        if is_timer {
            self.check_uniform(numbers, started.closed)?;
        }
        let owed = self.check_closed(numbers, started.closed)?;
        self.end(numbers, record, Phase::TearingDown, started.closed);
        command.must_close.extend(owed);
        Ok(())
    }

    /// The node confirmed the teardown; or the node has no agent, and the record belongs to the command that ended the
    /// leases.
    pub(crate) fn torn_down(&mut self, command: &mut Command, record: &Record, torn: &TornDown) -> Checked {
        let numbers = &torn.leases.0;
        self.check_leases(record, numbers)?;
        self.check_phase(numbers, Phase::is_tearing_down)?;
        self.check_on_node(numbers, torn.node)?;
        // A node confirms for all of a tenant at once; an operator's word is grouped.
        if torn.belongs_to.is_some() {
            self.check_carries(record, numbers, torn.belongs_to)?;
        }
        for number in numbers {
            self.lease_mut(*number).close();
            command.must_close.remove(number);
        }
        // An agent, or an operator in its place, said so; a node without an agent says nothing.
        if !self.nodes[&torn.node].is_immediate() {
            self.shows_life(torn.node, record.stamp);
        }
        Ok(())
    }

    /// The teardown was not confirmed in time; the timeout is checked as a timer.
    pub(crate) fn fenced(&mut self, record: &Record, fenced: &Fenced) -> Checked {
        let leases = &fenced.leases;
        self.check_leases(record, &leases.0)?;
        self.check_carries(record, &leases.0, fenced.belongs_to)?;
        self.check_phase(&leases.0, Phase::is_tearing_down)?;
        for number in &leases.0 {
            let lease = self.lease_mut(*number);
            lease.phase = Phase::Fenced;
            lease.limit_at = None;
        }
        // A node that missed a deadline is heated once, however many records say so; before rules version 4, once for
        // each record.
        let nodes: BTreeSet<_> = leases.0.iter().filter_map(|number| Some(self.lease(*number)?.node)).collect();
        let by_deadline = self.rules_version.is_none_or(|version| version >= 4);
        for node in nodes {
            let missed = self.missed.insert(node, record.effective_at);
            if missed != Some(record.effective_at) || !by_deadline {
                self.heats(node, 250, record.stamp);
            }
        }
        Ok(())
    }

    /// Only an operator clears a fence.
    pub(crate) fn unfenced(&mut self, record: &Record, unfenced: &Unfenced) -> Checked {
        let leases = &unfenced.leases;
        self.check_leases(record, &leases.0)?;
        self.check_carries(record, &leases.0, unfenced.belongs_to)?;
        self.check_phase(&leases.0, |phase| phase == Phase::Fenced)?;
        for number in &leases.0 {
            self.lease_mut(*number).close();
        }
        Ok(())
    }
}

/// Checks that an activity report is consistent (SEMANTICS 8: invalid reports are refused and never recorded).
fn check_activity(stamp: Instant, lease: &Lease, activity: Option<&Activity>) -> Checked {
    let Some(report) = activity else { return Ok(()) };
    let covered = report.covered;
    let unreported = stamp.since(lease.reported_to);
    demand!(covered > Span::ZERO, "activity", "{} covers no time", lease.number);
    demand!(covered <= unreported, "activity", "{} covers {covered} of {unreported}", lease.number);
    let held = u128::from(lease.quanta) * u128::from(covered.0);
    demand!(report.busy <= held, "activity", "{} was busy {} of {held}", lease.number, report.busy);
    demand!(report.active <= covered, "activity", "{} was active {} of {covered}", lease.number, report.active);
    let longest = report.waiting.iter().max().expect("five kinds");
    demand!(*longest <= covered, "activity", "{} waited {longest} of {covered}", lease.number);
    Ok(())
}
