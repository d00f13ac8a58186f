//! Timers and their order (SEMANTICS 2).

use crate::custody::Custody;
use crate::lease::{Lease, Phase};
use crate::quota::burst_of;
use crate::violation::{Checked, demand, found};
use crate::world::World;
use leasehold_model::{Body, Instant, QuarantineCause, Record, body, policy};

/// In the order of SEMANTICS 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerKind {
    Expiry,
    Grace,
    Teardown,
    Wipe,
    Burst,
    QuotaUntil,
    WindowEnd,
    WindowStart,
    /// The expiry of prepaid credit.
    Credit,
    /// Prepaid credit has another state since a whole minute.
    PrepaidMinute,
}

/// Sorted as in SEMANTICS 2: by due instant, kind, ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub(crate) due: Instant,
    pub(crate) kind: TimerKind,
    /// The number of the lease; of the node for a wipe; of the quota for a burst or a temporary limit; of the window.
    pub(crate) id: u64,
}

/// The timer of a lease, if it has one.
fn timer_of(lease: &Lease) -> Option<Timer> {
    let (due, kind) = match lease.phase {
        Phase::Active => (lease.expires_at, TimerKind::Expiry),
        Phase::Revoking => (lease.limit_at?, TimerKind::Grace),
        Phase::Releasing | Phase::Expired | Phase::TearingDown => (lease.limit_at?, TimerKind::Teardown),
        Phase::Fenced | Phase::Closed => return None,
    };
    Some(Timer { due, kind, id: lease.number.0 })
}

/// The timer that a record applies, with the IDs; none if it applies no timer.
pub(crate) fn applied_by(record: &Record) -> Option<(TimerKind, Vec<u64>)> {
    let numbers = |leases: &body::Leases| leases.0.iter().map(|lease| lease.0).collect();
    match &record.body {
        Body::Expired(expired) => Some((TimerKind::Expiry, numbers(&expired.leases))),
        Body::TeardownStarted(started) if started.cause == policy::TeardownCause::GraceEnded => {
            Some((TimerKind::Grace, numbers(&started.leases)))
        }
        Body::Fenced(fenced) => Some((TimerKind::Teardown, numbers(&fenced.leases))),
        Body::NodeQuarantined(late) if late.cause == QuarantineCause::WipeTimedOut => {
            Some((TimerKind::Wipe, vec![u64::from(late.node.0)]))
        }
        Body::BurstEnded(ended) => Some((TimerKind::Burst, vec![u64::from(ended.quota.0)])),
        Body::QuotaUntilReached(ended) => Some((TimerKind::QuotaUntil, vec![u64::from(ended.quota.0)])),
        Body::WindowEnded(ended) if !ended.cancelled => Some((TimerKind::WindowEnd, vec![u64::from(ended.window.0)])),
        Body::WindowStarted(started) => Some((TimerKind::WindowStart, vec![u64::from(started.window.0)])),
        #[rustfmt::skip]
        Body::WindowPut(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!()
        | Body::ClassPut(_) | Body::TenantPut(_) | Body::Granted(_) | Body::Denied(_) | Body::Released(_)
        | Body::Revoked(_) | Body::TeardownStarted(_) | Body::Genesis(_) | Body::Started(_) | Body::Heartbeat(_)
        | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_) | Body::SettingsChanged(_) | Body::PoolPut(_)
        | Body::PoolDeleted(_) | Body::TenantDeleted(_) | Body::ProjectPut(_) | Body::ProjectDeleted(_)
        | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaPut(_) | Body::QuotaDeleted(_) | Body::RateCardPut(_)
        | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_) | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
        | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::NodePut(_) | Body::NodeDeleted(_)
        | Body::NodeDrained(_) | Body::NodeResumed(_) | Body::NodeLost(_) | Body::NodeReturned(_)
        | Body::NodeCondition(_) | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_) | Body::Renewed(_)
        | Body::TornDown(_) | Body::Unfenced(_) | Body::ActivityReported(_) | Body::Preempted(_)
        | Body::PreemptionDecided(_) | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenIssued(_) | Body::TokenRevoked(_)
        | Body::AllocationSubmitted(_) | Body::AllocationDenied(_) | Body::AllocationPlaced(_)
        | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_) | Body::AllocationCheckpointed(_)
        | Body::AllocationSuspended(_) | Body::AllocationRequeued(_) | Body::AllocationCompleted(_)
        | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_) | Body::NodesClaimed(_) | Body::NodesReleased(_)
        | Body::NodeWiped(_) | Body::NodeQuarantined(_) | Body::QuarantineCleared(_) | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_)
        | Body::CeilingDeleted(_) | Body::Unknown { .. } => None,
    }
}

impl World {
    /// Every timer due at or before `now` that has not been applied, in order.
    pub(crate) fn due(&self, now: Instant) -> Vec<Timer> {
        let leases = self.leases.iter().filter_map(timer_of);
        let bursts = self.quotas.iter().filter_map(|(number, quota)| {
            let below_since = quota.episode?.below_since?;
            let due = below_since.saturating_add(burst_of(quota)?.ttl);
            Some(Timer { due, kind: TimerKind::Burst, id: u64::from(number.0) })
        });
        let wipes = self.nodes.iter().filter_map(|(number, node)| match node.custody {
            Custody::Wiping { limit_at: due, .. } => {
                Some(Timer { due, kind: TimerKind::Wipe, id: u64::from(number.0) })
            }
            _ => None,
        });
        let until = self.quotas.iter().filter_map(|(number, quota)| {
            let due = quota.put.temporary?.until;
            Some(Timer { due, kind: TimerKind::QuotaUntil, id: u64::from(number.0) })
        });
        let ends = self.windows.values().map(|window| Timer {
            due: window.put.until,
            kind: TimerKind::WindowEnd,
            id: u64::from(window.put.window.0),
        });
        let to_come = self.windows.values().filter(|window| !window.has_begun);
        let starts = to_come.map(|window| Timer {
            due: window.put.from,
            kind: TimerKind::WindowStart,
            id: u64::from(window.put.window.0),
        });
        let all = leases.chain(wipes).chain(bursts).chain(until).chain(ends).chain(starts);
        let all = all.chain(self.prepaid_timers(now));
        let mut due: Vec<Timer> = all.filter(|timer| timer.due <= now).collect();
        due.sort();
        due
    }

    /// Before a command is decided, every timer that is due by its stamp must have been applied.
    pub(crate) fn check_none_due(&self, now: Instant) -> Checked {
        let due = self.due(now);
        demand!(due.is_empty(), "timer-missed", "{:?} is due and was not applied first", due[0]);
        Ok(())
    }

    /// Timers are applied in order, and take effect when they are due. One record can apply the same timer for several
    /// leases that are due at the same instant.
    pub(crate) fn check_timer(&self, record: &Record, kind: TimerKind, ids: &[u64]) -> Checked {
        let due = self.due(record.stamp);
        for id in ids {
            let timer = due.iter().find(|timer| timer.kind == kind && timer.id == *id);
            let timer = found!(timer, "timer-not-due", "no {kind:?} of {id} is due at {}", record.stamp);
            demand!(
                timer.due == record.effective_at,
                "timer-effective",
                "{timer:?} takes effect when it is due, not at {}",
                record.effective_at
            );
        }
        let head = due.first().map(|timer| (timer.due, timer.kind, timer.id));
        let first = ids.first().map(|id| (record.effective_at, kind, *id));
        demand!(head == first, "timer-order", "{head:?} comes before {first:?}");
        Ok(())
    }

    /// Restarts the limits for holders and nodes after a start, so that an outage of the daemon does not fence the
    /// cluster. Grace never extends past `expires_at`; expiries and bursts do not move.
    pub(crate) fn restart_limits(&mut self, stamp: Instant) {
        let teardown_limit = self.teardown_limit(stamp);
        for lease in &mut self.leases {
            if lease.phase == Phase::Revoking {
                lease.limit_at = Some(stamp.saturating_add(lease.grace).min(lease.expires_at));
            } else if lease.phase.is_tearing_down() {
                lease.limit_at = Some(teardown_limit);
            }
        }
        self.restart_wipes(stamp);
    }
}
