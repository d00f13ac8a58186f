//! How leases and attempts came to their end, as their records say.

use crate::app::App;
use crate::history::{closes, names, touched, unreadable};
use leasehold_api::{Problem, Revocation, When, codes};
use leasehold_engine::{Lease, Phase};
use leasehold_journal::ReadError;
use leasehold_model::body::Body;
use leasehold_model::{AllocationNo, AttemptEnd, Instant, LeaseNo, Reason, Record, Span};
use std::ops::{ControlFlow, Range};

/// By what something ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Revoked(Reason),
    Expired,
    Released,
}

/// The record by which leases began to end.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) how: How,
    pub(crate) sequence: u64,
    pub(crate) at: Instant,
    /// When it took effect.
    pub(crate) effective_at: Instant,
    /// Of a revocation.
    pub(crate) grace: Option<Span>,
    /// Nobody asked for it: it follows from what ended before.
    pub(crate) by_itself: bool,
    /// The first of the leases that it names.
    pub(crate) lease: LeaseNo,
}

impl Ended {
    /// What a record says of the end of the leases it names, if it is the beginning of that.
    pub(crate) fn begin(record: &Record) -> Option<Self> {
        let (how, grace) = match &record.body {
            Body::Revoked(revoked) => (How::Revoked(record.reason?), Some(revoked.grace)),
            Body::Expired(_) => (How::Expired, None),
            Body::Released(_) => (How::Released, None),
            _ => return None,
        };
        let mut first = None;
        touched(&record.body, |lease| first = first.or(Some(lease)));
        Some(Self {
            how,
            sequence: record.sequence,
            at: record.stamp,
            effective_at: record.effective_at,
            grace,
            by_itself: record.identity.token.is_none(),
            lease: first?,
        })
    }

    /// The decision to evict them.
    pub(crate) fn preempted_by(&self) -> Option<u64> {
        match self.how {
            How::Revoked(Reason::Preempted { by }) => Some(by),
            _ => None,
        }
    }

    /// Grace ends no later than the lease does.
    pub(crate) fn revocation(&self, expires_at: Instant) -> Option<Revocation> {
        let How::Revoked(reason) = self.how else { return None };
        let grace_ends_at = self.at.saturating_add(self.grace?).min(expires_at);
        Some(Revocation {
            reason: reason.word().to_owned(),
            sequence: self.sequence,
            at: When(self.at),
            grace_ends_at: When(grace_ends_at),
            preempted_by: self.preempted_by(),
        })
    }
}

/// The earliest instant at which a lease that is not closed can have begun to end; none where it has not.
pub(crate) fn began_after(lease: &Lease) -> Option<Instant> {
    let latest = match lease.phase {
        Phase::Active => return None,
        Phase::Revoking => lease.limit_at,
        _ => lease.ended_at,
    };
    Some(Instant(latest.0.saturating_sub(lease.grace.0)))
}

/// How a lease that is not closed came to end, no earlier than `after`.
pub(crate) fn of_live(app: &App, lease: LeaseNo, after: Instant) -> Result<Option<Ended>, Problem> {
    let mut ended = None;
    each(app, first_at(app, after)?, |record| {
        ended = Ended::begin(record).filter(|_| names(&record.body, lease));
        if ended.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(ended)
}

/// How a lease that is closed came to end, by the records from a sequence on, and where its billing stopped.
pub(crate) fn of_closed(app: &App, lease: LeaseNo, from: u64) -> Result<(Option<Ended>, Option<Instant>), Problem> {
    let (mut ended, mut ended_at) = (None, None);
    each(app, from, |record| {
        if !names(&record.body, lease) {
            return ControlFlow::Continue(());
        }
        ended = ended.take().or_else(|| Ended::begin(record));
        if matches!(record.body, Body::TeardownStarted(_) | Body::Released(_) | Body::Expired(_)) {
            ended_at = Some(record.effective_at);
        }
        if closes(&record.body) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok((ended, ended_at))
}

/// The first record stamped at an instant or later: stamps never go back.
fn first_at(app: &App, at: Instant) -> Result<u64, Problem> {
    let (mut low, mut high) = (0, app.journal.head().size);
    while low < high {
        let middle = low + (high - low) / 2;
        let found = match app.journal.record(middle) {
            // What was moved away is older than all that is left.
            Err(ReadError::Archived { .. }) => None,
            found => found.map_err(|error| unreadable(&error))?,
        };
        let stamp = found.and_then(|found| found.raw().decode().ok()).map(|record| record.stamp);
        match stamp {
            Some(stamp) if stamp >= at => high = middle,
            _ => low = middle + 1,
        }
    }
    Ok(low)
}

fn each(app: &App, from: u64, mut visit: impl FnMut(&Record) -> ControlFlow<()>) -> Result<(), Problem> {
    let mut broken = false;
    let scanned = app.journal.scan(from, &mut |_, raw| match raw.decode() {
        Ok(record) => visit(&record),
        Err(_) => {
            broken = true;
            ControlFlow::Break(())
        }
    });
    scanned.map_err(|error| unreadable(&error))?;
    if broken { Err(codes::INTERNAL.problem("A record of the journal cannot be read.")) } else { Ok(()) }
}

/// What became of an allocation that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Completed,
    Failed(AttemptEnd, Option<u32>),
    Cancelled,
}

/// The last attempt of an allocation.
#[derive(Debug, Default)]
pub(crate) struct LastAttempt {
    /// The record that placed it; none where it never was.
    pub(crate) placed: Option<u64>,
    leases: Range<u64>,
    /// The first of its leases to end, where that was before its work was done.
    pub(crate) ended: Option<Ended>,
    /// How it was settled, where it waits again.
    pub(crate) settled: Option<AttemptEnd>,
    /// How it is over, and by which record, sealed when.
    pub(crate) over: Option<(Over, u64, Instant)>,
}

impl LastAttempt {
    /// Reads the allocation's story, from its submission to its end.
    pub(crate) fn find(app: &App, number: AllocationNo) -> Result<Self, Problem> {
        let mut told = Self::default();
        each(app, number.0, |record| told.follow(number, record))?;
        Ok(told)
    }

    fn follow(&mut self, own: AllocationNo, record: &Record) -> ControlFlow<()> {
        let over = match &record.body {
            Body::AllocationPlaced(placed) if placed.allocation == own => {
                let first = placed.first_lease.0;
                *self = Self {
                    placed: Some(record.sequence),
                    leases: first..first + u64::from(placed.leases),
                    ..Self::default()
                };
                None
            }
            Body::AllocationSuspended(suspended) if suspended.allocation == own => {
                self.settled = Some(suspended.end);
                None
            }
            Body::AllocationRequeued(requeued) if requeued.allocation == own => {
                self.settled = Some(requeued.end);
                None
            }
            Body::AllocationCompleted(done) if done.allocation == own => Some(Over::Completed),
            Body::AllocationFailed(failed) if failed.allocation == own => {
                Some(Over::Failed(failed.end, failed.exit_status))
            }
            Body::AllocationCancelled(cancelled) if cancelled.allocation == own => Some(Over::Cancelled),
            body => {
                let mut is_own = false;
                touched(body, |lease| is_own |= self.leases.contains(&lease.0));
                if is_own && self.ended.is_none() {
                    self.ended = Ended::begin(record);
                }
                None
            }
        };
        self.over = over.map(|over| (over, record.sequence, record.stamp));
        if self.over.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
