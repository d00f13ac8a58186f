//! What the bills of one tenant depend on, record by record (SEMANTICS 2, 7, 10 to 12).

use crate::fold::Contradiction;
use crate::kept::Kept;
use crate::leases::{Lease, Leases};
use crate::list::{
    Attempt, Ending, KnownApp, Limit, OpenClaim, OpenLease, Outage, Payer, Phase, Revocation, TenantList,
};
use crate::sorted::{Keyed, Sorted};
use leasehold_model::body::{AllocationFailed, Granted, PolicyScope, Revoked, SharingPut, TeardownStarted};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    AppInstanceNo, AttemptEnd, Instant, LeaseNo, Month, Name, NodeNo, Priority, ProjectNo, Reason, Record, Residual,
    TenantNo, UnitNo, UnitQuantity,
};
use std::collections::BTreeMap;

/// The rules version from which leases on claimed nodes are priced as guaranteed.
const CLAIMED_AS_GUARANTEED_SINCE: u32 = 4;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tenant {
    pub(crate) name: Option<Name>,
    pub(crate) tag: Option<Name>,
    pub(crate) projects: BTreeMap<ProjectNo, Name>,
    pub(crate) app_instances: BTreeMap<AppInstanceNo, KnownApp>,
    pub(crate) tax_rates: BTreeMap<Month, Decimal>,
    pub(crate) sharing: BTreeMap<PolicyScope, SharingPut>,
    pub(crate) limits: BTreeMap<(ProjectNo, Option<AppInstanceNo>, UnitNo), UnitQuantity>,
    pub(crate) leases: Leases,
    pub(crate) claims: BTreeMap<NodeNo, OpenClaim>,
    pub(crate) attempts: BTreeMap<u64, Attempt>,
    pub(crate) payers: BTreeMap<(ProjectNo, Currency), Payer>,
    /// What is not open any more, where usage is computed.
    pub(crate) kept: Option<Box<Kept>>,
}

const NOT_OPEN: Contradiction = Contradiction::Says("it names a lease of the tenant that is not open");

fn ending_for(reason: Reason) -> Ending {
    match reason {
        Reason::Preempted { .. } => Ending::Preempted,
        Reason::NodeLost => Ending::NodeLost,
        Reason::Quota { .. } | Reason::Budget | Reason::Operator | Reason::Policy | Reason::DuplicateHolder => {
            Ending::Plain
        }
    }
}

impl Tenant {
    pub(crate) fn list(&self, tenant: TenantNo) -> TenantList {
        TenantList {
            tenant,
            name: self.name.clone(),
            tag: self.tag.clone(),
            projects: Sorted::new(self.projects.iter().map(|(number, name)| (*number, name.clone()))),
            app_instances: Sorted::new(self.app_instances.values().cloned()),
            tax_rates: Sorted::new(self.tax_rates.iter().map(|(month, rate)| (*month, *rate))),
            sharing: Sorted::new(self.sharing.values().cloned()),
            limits: Sorted::new(self.limits.iter().map(|(&(project, app_instance, unit), hard)| Limit {
                project,
                app_instance,
                unit,
                hard: *hard,
            })),
            leases: Sorted::new(self.leases.list()),
            claims: Sorted::new(self.claims.values().cloned()),
            attempts: Sorted::new(self.attempts.values().copied()),
            payers: Sorted::new(self.payers.values().copied()),
        }
    }

    pub(crate) fn of(list: TenantList) -> Self {
        let mut leases = Leases::default();
        list.leases.iter().for_each(|lease| assert!(leases.add(lease), "each number is in the list once"));
        Self {
            name: list.name,
            tag: list.tag,
            projects: list.projects.into_iter().collect(),
            app_instances: list.app_instances.into_iter().map(|app| (app.app_instance, app)).collect(),
            tax_rates: list.tax_rates.into_iter().collect(),
            sharing: list.sharing.into_iter().map(|put| (put.of, put)).collect(),
            limits: list.limits.into_iter().map(|limit| (limit.key(), limit.hard)).collect(),
            leases,
            claims: list.claims.into_iter().map(|claim| (claim.node, claim)).collect(),
            attempts: list.attempts.into_iter().map(|attempt| (attempt.allocation.0, attempt)).collect(),
            payers: list.payers.into_iter().map(|payer| ((payer.project, payer.currency), payer)).collect(),
            kept: None,
        }
    }

    fn held(&mut self, lease: LeaseNo) -> Result<&mut Lease, Contradiction> {
        let lease = self.leases.get_mut(lease).ok_or(NOT_OPEN)?;
        if lease.phase == Phase::Held {
            Ok(lease)
        } else {
            Err(Contradiction::Says("it is about a lease that has ended"))
        }
    }

    pub(crate) fn grant(&mut self, record: &Record, granted: &Granted) -> Result<(), Contradiction> {
        let project = record.identity.project.ok_or(Contradiction::Says("a grant without a project"))?;
        let to = record.stamp.checked_add(granted.ttl);
        let to = to.ok_or(Contradiction::Says("its deadline is beyond all time"))?;
        // On a claimed node, whatever the priority is (SEMANTICS 11).
        let as_guaranteed = granted.sensitive && granted.rules_version >= CLAIMED_AS_GUARANTEED_SINCE;
        let mut lease = OpenLease {
            lease: granted.first_lease,
            payer: granted.source_project.unwrap_or(project),
            project,
            pool: granted.pool,
            node: granted.node,
            class: leasehold_model::ClassNo(0),
            quanta: leasehold_model::Quanta(0),
            priority: granted.priority,
            priced: if as_guaranteed { Priority::Guaranteed } else { granted.priority },
            tag: self.tag.clone(),
            app_instance: granted.app_instance,
            attachment: granted.attachment,
            control_plane: granted.control_plane,
            from: record.stamp,
            to,
            phase: Phase::Held,
            ending: Ending::None,
            revoked: Revocation::None,
            failed_start: false,
            fenced_from: None,
            ended: None,
        };
        for member in &granted.members {
            (lease.class, lease.quanta) = (member.class, member.quanta);
            if !self.leases.add(&lease) {
                return Err(Contradiction::Says("it grants a lease that is open"));
            }
            let next = lease.lease.0.checked_add(1);
            lease.lease = LeaseNo(next.ok_or(Contradiction::Says("lease numbers are used up"))?);
        }
        Ok(())
    }

    pub(crate) fn renew(&mut self, lease: LeaseNo, expires_at: Instant) -> Result<(), Contradiction> {
        self.held(lease)?.to = expires_at;
        Ok(())
    }

    pub(crate) fn release(&mut self, number: LeaseNo, record: &Record, closed: bool) -> Result<(), Contradiction> {
        let lease = self.held(number)?;
        // A preempted lease that is released within its grace is charged as preempted (SEMANTICS 11).
        let ending = match lease.revoked {
            Revocation::Preempted => Ending::Preempted,
            Revocation::ForOwn => Ending::ForOwn,
            Revocation::None | Revocation::Plain | Revocation::PreemptedBefore | Revocation::NodeLost => Ending::Plain,
        };
        self.end(number, record, ending, closed)
    }

    /// Ends a lease. One whose node needs no confirmation is closed at once.
    pub(crate) fn end(
        &mut self,
        number: LeaseNo,
        record: &Record,
        ending: Ending,
        closed: bool,
    ) -> Result<(), Contradiction> {
        self.held(number)?.end(record.effective_at, ending);
        if closed { self.close(number, Phase::TearingDown, record.stamp) } else { Ok(()) }
    }

    /// `for_own`: it was evicted for a request of its own tenant.
    pub(crate) fn revoke(&mut self, record: &Record, revoked: &Revoked, for_own: bool) -> Result<(), Contradiction> {
        // Rules version 4 and later say what the leases belong to.
        let since_4 = revoked.belongs_to.is_some();
        let how = match record.reason.map_or(Ending::Plain, ending_for) {
            Ending::Preempted if since_4 && for_own => Revocation::ForOwn,
            Ending::Preempted if since_4 => Revocation::Preempted,
            Ending::Preempted => Revocation::PreemptedBefore,
            Ending::NodeLost => Revocation::NodeLost,
            Ending::None | Ending::Plain | Ending::ForOwn | Ending::FailedStart => Revocation::Plain,
        };
        for lease in &revoked.leases.0 {
            self.held(*lease)?.revoked = how;
        }
        Ok(())
    }

    pub(crate) fn tear_down(&mut self, record: &Record, started: &TeardownStarted) -> Result<(), Contradiction> {
        let said = record.reason.map(ending_for);
        for number in &started.leases.0 {
            let revoked = match self.held(*number)?.revoked {
                Revocation::None | Revocation::Plain => Ending::Plain,
                Revocation::Preempted | Revocation::PreemptedBefore => Ending::Preempted,
                Revocation::ForOwn => Ending::ForOwn,
                Revocation::NodeLost => Ending::NodeLost,
            };
            let ending = match said {
                None | Some(Ending::Preempted) if revoked == Ending::ForOwn => Ending::ForOwn,
                said => said.unwrap_or(revoked),
            };
            self.end(*number, record, ending, started.closed)?;
        }
        Ok(())
    }

    /// The capacity of a lease in that phase is free again.
    pub(crate) fn close(&mut self, number: LeaseNo, phase: Phase, at: Instant) -> Result<(), Contradiction> {
        let lease = self.leases.get_mut(number).ok_or(NOT_OPEN)?;
        if lease.phase != phase {
            return Err(Contradiction::Says("it frees a lease in another phase"));
        }
        let closed = self.leases.remove(number).ok_or(NOT_OPEN)?;
        if let Some(kept) = &mut self.kept {
            kept.closed(closed, at);
        }
        Ok(())
    }

    pub(crate) fn fence(&mut self, number: LeaseNo, from: Instant) -> Result<(), Contradiction> {
        let lease = self.leases.get_mut(number).ok_or(NOT_OPEN)?;
        if lease.phase != Phase::TearingDown {
            return Err(Contradiction::Says("it fences a lease that is not being torn down"));
        }
        lease.fence(from);
        Ok(())
    }

    /// A lease that ended after its node was last seen is billed up to then. It may be closed.
    pub(crate) fn correct_end(&mut self, number: LeaseNo, last_seen: Instant) -> Result<(), Contradiction> {
        match self.leases.get_mut(number) {
            Some(lease) if lease.phase == Phase::Held => {
                Err(Contradiction::Says("it corrects the end of a held lease"))
            }
            Some(lease) => {
                lease.correct_end(last_seen);
                Ok(())
            }
            None => {
                self.kept.iter_mut().for_each(|kept| kept.correct_end(number, last_seen));
                Ok(())
            }
        }
    }

    pub(crate) fn fail(&mut self, failed: &AllocationFailed) {
        let attempt = self.attempts.remove(&failed.allocation.0);
        let Some(attempt) = attempt.filter(|_| failed.end == AttemptEnd::FailedStart) else { return };
        let named = attempt.first_lease.0..attempt.first_lease.0.saturating_add(attempt.leases.into());
        // A record may name far more leases than there are.
        let mut known = self.leases.fail_starts(&named);
        if let Some(kept) = &mut self.kept {
            known += kept.leases.fail_starts(&named);
            kept.unknown |= known < u64::from(attempt.leases);
        }
    }

    pub(crate) fn release_claim(&mut self, node: NodeNo, at: Instant) -> Result<(), Contradiction> {
        let claim = self.claims.remove(&node).ok_or(Contradiction::Says("it releases a node that is not claimed"))?;
        if let Some(kept) = &mut self.kept {
            kept.released(claim, at);
        }
        Ok(())
    }

    /// A claimed node is drained (or resumed) from an instant on.
    pub(crate) fn drain(&mut self, node: NodeNo, from: Option<Instant>, at: Instant) {
        let Some(claim) = self.claims.get_mut(&node) else { return };
        let ended = std::mem::replace(&mut claim.drained, from);
        note_outage(claim, ended, at);
    }

    /// A claimed node has been lost since it was last seen, or has returned.
    pub(crate) fn lose(&mut self, node: NodeNo, last_seen: Option<Instant>, at: Instant) {
        let Some(claim) = self.claims.get_mut(&node) else { return };
        let ended = std::mem::replace(&mut claim.lost, last_seen);
        if last_seen.is_none() {
            note_outage(claim, ended, at);
        }
        if let (Some(kept), Some(last_seen)) = (&mut self.kept, last_seen) {
            kept.loss_reaches(last_seen);
        }
    }

    /// What a payer's last posting or correction left; an entry by hand leaves the residual as it is.
    pub(crate) fn posted(&mut self, record: &Record, currency: Currency, residual: Option<Residual>) {
        let Some(project) = record.identity.project else { return };
        let new = Payer { project, currency, last: record.sequence, residual: Residual::NONE };
        let payer = self.payers.entry((project, currency)).or_insert(new);
        payer.last = record.sequence;
        payer.residual = residual.unwrap_or(payer.residual);
    }

    /// The tax rate of a month.
    pub(crate) fn tax_rate(&self, month: Month) -> Decimal {
        self.tax_rates.range(..=month).next_back().map_or(Decimal::default(), |(_, rate)| *rate)
    }
}

fn note_outage(claim: &mut OpenClaim, since: Option<Instant>, to: Instant) {
    let Some(from) = since.filter(|from| *from < to) else { return };
    let earlier = std::mem::take(&mut claim.outages);
    claim.outages = Sorted::new(earlier.into_iter().chain([Outage { from, to }]));
}
