//! Renewals, which set a new deadline within the limits on lifetime, walltime and burst; and activity reports.

use super::ceilings::Taken;
use super::{Draft, Few, Partial, in_order};
use crate::allocation::Allocation;
use crate::command::{ReleaseOne, RenewOne};
use crate::lease::{Lease, Phase};
use crate::refusal::Refusal;
use leasehold_model::body::{ActivityReported, Renewal, Renewed, Reported, ReportedLeases};
use leasehold_model::{Activity, Instant, LeaseNo, TenantNo};
use smallvec::SmallVec;

impl Draft<'_> {
    pub(super) fn renew(&mut self, renewals: &[RenewOne]) -> Partial {
        let mut refused = Vec::new();
        if let [one] = renewals {
            // The usual case is one lease: nothing to sort, nothing to group by tenant.
            let (tenant, expires_at) = self.renew_one(one, &mut Taken::default())?;
            let activity = self.checked_activity(one.lease, one.activity, &mut refused);
            let renewal = Renewal { lease: one.lease, expires_at, activity };
            self.emit(Some(tenant), Renewed { renewals: Few::from_buf([renewal]) }, |_| {});
            return Ok(refused);
        }
        let mut accepted: Few<(TenantNo, Renewal)> = Few::new();
        let mut taken = Taken::default();
        for one in in_order(renewals, |one| one.lease)? {
            match self.renew_one(&one, &mut taken) {
                Ok((tenant, expires_at)) => {
                    // An invalid activity report does not refuse the renewal (SEMANTICS 8).
                    let activity = self.checked_activity(one.lease, one.activity, &mut refused);
                    accepted.push((tenant, Renewal { lease: one.lease, expires_at, activity }));
                }
                Err(refusal) => refused.push((one.lease, refusal)),
            }
        }
        let groups = by_tenant(accepted, &refused)?;
        for (tenant, renewals) in groups {
            self.emit(Some(tenant), Renewed { renewals }, |_| {});
        }
        Ok(refused)
    }

    fn renew_one(&self, one: &RenewOne, taken: &mut Taken) -> Result<(TenantNo, Instant), Refusal> {
        let lease = self.holder_of(one.lease)?;
        match lease.phase {
            Phase::Active => {}
            Phase::Revoking => return Err(Refusal::LeaseRevoking { lease: one.lease }),
            _ => return Err(ended(lease)),
        }
        self.check_renewal_ttl(one.ttl, lease.pool, lease.priority)?;
        let asked = self.now.saturating_add(one.ttl);
        let mut expires_at = asked;
        let pool = self.state().pool(lease.pool).expect("a lease's pool exists");
        if let Some(lifetime) = pool.lifetime_max.of(lease.priority) {
            let end = lease.granted_at.saturating_add(lifetime);
            // A renewal is shortened to this end. A lease whose deadline is there already cannot be renewed further.
            if asked > end && end <= lease.expires_at {
                return Err(Refusal::LifetimeReached { lease: one.lease, at: end });
            }
            expires_at = expires_at.min(end);
        }
        // Renewals cannot extend an attempt past its walltime.
        let of = lease.of.and_then(|number| self.state().allocation(number));
        if let Some((attachment, _)) = of.and_then(Allocation::lent)
            && self.state().attachment(attachment).is_none()
        {
            return Err(Refusal::AttachmentEnded { attachment });
        }
        if let Some(end) = of.filter(|found| found.has_lease(one.lease)).and_then(Allocation::bound) {
            if asked > end && end <= lease.expires_at {
                return Err(Refusal::LifetimeReached { lease: one.lease, at: end });
            }
            expires_at = expires_at.min(end);
        }
        if !self.state().windows.is_empty() {
            expires_at = self.before_window(lease, asked, expires_at)?;
        }
        let tenant = self.state().tenant(lease.tenant).expect("a lease's tenant exists");
        let facts = self.state().facts_of(lease);
        for number in &tenant.quotas {
            let quota = self.state().quota(*number).expect("a listed quota exists");
            if let Some(end) = quota.renewal_limit(&facts, lease, self.now)
                && expires_at > end
            {
                // A burst quota may shorten the extension, but not what was granted before.
                if end <= lease.expires_at {
                    return Err(Refusal::BurstOver { lease: one.lease, quota: *number, at: end });
                }
                expires_at = end;
            }
        }
        self.check_renewal_cost(lease, expires_at, taken)?;
        Ok((lease.tenant, expires_at))
    }

    /// Renewals cannot extend a lease into a maintenance window. One whose deadline is there already stays as it is.
    fn before_window(&self, lease: &Lease, asked: Instant, expires_at: Instant) -> Result<Instant, Refusal> {
        let node = self.state().node(lease.node).expect("a lease's node exists");
        match node.windows.next {
            Some((at, window)) if asked > at && at <= lease.expires_at => {
                Err(Refusal::WindowReached { lease: lease.number, window, at })
            }
            Some((at, _)) => Ok(expires_at.min(at)),
            None => Ok(expires_at),
        }
    }

    pub(super) fn report_activity(&mut self, reports: &[ReleaseOne]) -> Partial {
        let mut refused = Vec::new();
        let mut accepted = Few::new();
        for one in in_order(reports, |one| one.lease)? {
            let lease = match self.holder_of(one.lease) {
                Ok(lease) if lease.phase.is_held() => lease,
                Ok(lease) => {
                    refused.push((one.lease, ended(lease)));
                    continue;
                }
                Err(refusal) => {
                    refused.push((one.lease, refusal));
                    continue;
                }
            };
            let tenant = lease.tenant;
            // A missing report counts as one that covers no time.
            let report = Some(one.activity.unwrap_or_default());
            if let Some(activity) = self.checked_activity(one.lease, report, &mut refused) {
                accepted.push((tenant, Reported { lease: one.lease, activity: Some(activity) }));
            }
        }
        for (tenant, reports) in by_tenant(accepted, &refused)? {
            self.emit(Some(tenant), ActivityReported { leases: ReportedLeases(reports) }, |_| {});
        }
        Ok(refused)
    }

    /// The report if it is plausible. Otherwise adds a refusal for the report alone.
    pub(super) fn checked_activity(
        &self,
        number: LeaseNo,
        activity: Option<Activity>,
        refused: &mut Vec<(LeaseNo, Refusal)>,
    ) -> Option<Activity> {
        let report = activity?;
        let lease = self.state().lease(number)?;
        match report.check(lease.quanta, self.now.since(lease.reported_to)) {
            Ok(()) => Some(report),
            Err(why) => {
                refused.push((number, Refusal::BadActivityReport { lease: number, why }));
                None
            }
        }
    }

    /// The lease, if the caller may act for its holder. Leases of other tenants are answered as not found.
    pub(super) fn holder_of(&self, number: LeaseNo) -> Result<&Lease, Refusal> {
        let identity = &self.identity;
        let Some(lease) = self.state().lease(number) else {
            let gone = self.state().gone(number);
            let gone = gone.filter(|gone| identity.tenant.is_none_or(|tenant| tenant == gone.tenant));
            return Err(match gone {
                None => Refusal::LeaseNotFound { lease: number },
                // The fence was cleared, so the lease is closed.
                Some(gone) if gone.phase == Phase::Fenced => Refusal::LeaseClosed { lease: number, at: gone.at },
                Some(gone) => ended_as(number, gone.phase, gone.at),
            });
        };
        if identity.tenant.is_some_and(|tenant| tenant != lease.tenant) {
            return Err(Refusal::LeaseNotFound { lease: number });
        }
        match identity.project {
            Some(project) if project != lease.project => Err(Refusal::WrongHolder { lease: number, project }),
            _ => Ok(lease),
        }
    }
}

/// The refusal for a lease that is no longer held.
pub(super) fn ended(lease: &Lease) -> Refusal {
    ended_as(lease.number, lease.phase, lease.ended_at)
}

fn ended_as(lease: LeaseNo, phase: Phase, at: Instant) -> Refusal {
    match phase {
        Phase::Expired => Refusal::LeaseExpired { lease, at },
        Phase::Releasing => Refusal::LeaseReleased { lease, at },
        Phase::Fenced => Refusal::LeaseFenced { lease },
        Phase::Active | Phase::Revoking | Phase::TearingDown => Refusal::LeaseRevoked { lease, at },
    }
}

/// One group per tenant, in order of tenant number, because no record contains data of two tenants. If nothing is
/// accepted, returns the first refusal.
pub(super) fn by_tenant<T>(
    mut accepted: Few<(TenantNo, T)>,
    refused: &[(LeaseNo, Refusal)],
) -> Result<Few<(TenantNo, Few<T>)>, Refusal> {
    if accepted.is_empty() {
        let (_, first) = refused.first().expect("each lease is accepted or refused");
        return Err(first.clone());
    }
    if accepted.len() == 1 {
        let (tenant, item) = accepted.remove(0);
        return Ok(SmallVec::from_buf([(tenant, SmallVec::from_buf([item]))]));
    }
    // The sort is stable: within a tenant the leases stay in order of their numbers.
    accepted.sort_by_key(|(tenant, _)| *tenant);
    let mut groups: Few<(TenantNo, Few<T>)> = Few::new();
    for (tenant, item) in accepted {
        match groups.last_mut() {
            Some((last, items)) if *last == tenant => items.push(item),
            _ => groups.push((tenant, SmallVec::from_buf([item]))),
        }
    }
    Ok(groups)
}
