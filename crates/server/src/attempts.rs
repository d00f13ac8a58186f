//! What became of an allocation, read from the journal: its number is the sequence of the record it begins with, so
//! its story is found without an index, and ends where it does.

use crate::access::Caller;
use crate::app::App;
use crate::endings::Ended;
use crate::history::unreadable;
use crate::show_allocations::{as_submitted, replica};
use leasehold_api as api;
use leasehold_api::{AllocationDetail, AllocationState, Problem, Ttl, When, codes};
use leasehold_model::body::Body;
use leasehold_model::{AllocationNo, Instant, Record};
use std::ops::{ControlFlow, Range};

/// The allocation with its attempts, if there is one of that number and it exists for the caller. While it is not
/// over, its state is what the journal's end says.
pub(crate) fn find(app: &App, caller: &Caller, number: AllocationNo) -> Result<Option<AllocationDetail>, Problem> {
    if number.0 >= app.journal.head().size {
        return Ok(None);
    }
    let mut story: Option<Story<'_>> = None;
    let mut broken = false;
    let scanned = app.journal.scan(number.0, &mut |_, raw| {
        let Ok(record) = raw.decode() else {
            broken = true;
            return ControlFlow::Break(());
        };
        match &mut story {
            None => {
                story = Story::begin(app, caller, &record);
                if story.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
            Some(story) => story.follow(&record),
        }
    });
    scanned.map_err(|error| unreadable(&error))?;
    if broken {
        return Err(codes::INTERNAL.problem("A record of the journal cannot be read."));
    }
    Ok(story.map(|story| story.told))
}

struct Story<'a> {
    app: &'a App,
    number: AllocationNo,
    staged: bool,
    walltime: Option<leasehold_model::Span>,
    /// The leases of the last attempt, and until when they are held: of several, as of the last one heard of.
    leases: Range<u64>,
    expires_at: Instant,
    told: AllocationDetail,
}

impl<'a> Story<'a> {
    fn begin(app: &'a App, caller: &Caller, record: &Record) -> Option<Self> {
        let Body::AllocationSubmitted(submitted) = &record.body else { return None };
        let (tenant, project) = (record.identity.tenant?, record.identity.project?);
        if !caller.sees_project(tenant, project) {
            return None;
        }
        let (number, spec) = (AllocationNo(record.sequence), &submitted.spec);
        let shown = |state: &_| as_submitted(app, state, number, &record.identity, spec, record.stamp);
        let told = AllocationDetail {
            allocation: app.now.read(shown),
            waiting: None,
            exit_status: None,
            storage_written: None,
            attempts: Vec::new(),
        };
        Some(Self {
            app,
            number,
            staged: spec.staged,
            walltime: spec.walltime,
            leases: 0..0,
            expires_at: Instant(0),
            told,
        })
    }

    fn follow(&mut self, record: &Record) -> ControlFlow<()> {
        let own = self.number;
        let at = record.effective_at;
        match &record.body {
            Body::AllocationPlaced(placed) if placed.allocation == own => {
                let state = if self.staged { AllocationState::Staging } else { AllocationState::Running };
                self.told.allocation.state = state;
                self.told.allocation.attempt = placed.attempt;
                self.told.allocation.placed_at = Some(When(record.stamp));
                self.told.allocation.ends_by =
                    self.walltime.map(|walltime| When(record.stamp.saturating_add(walltime)));
                self.leases = placed.first_lease.0..placed.first_lease.0 + u64::from(placed.leases);
                self.told.attempts.push(api::Attempt {
                    number: placed.attempt,
                    placed_at: When(record.stamp),
                    ended_at: None,
                    end: None,
                    revocation: None,
                    replicas: Vec::new(),
                    checkpoints: Vec::new(),
                });
            }
            Body::Granted(granted) if granted.allocation == Some(own) => {
                let shown = self.app.now.read(|state| replica(self.app, state, record, granted));
                self.expires_at = shown.expires_at.0;
                if let Some(attempt) = self.told.attempts.last_mut() {
                    attempt.replicas.push(shown);
                }
            }
            Body::Revoked(revoked) if revoked.leases.0.iter().any(|lease| self.leases.contains(&lease.0)) => {
                if let Some(attempt) = self.told.attempts.last_mut().filter(|attempt| attempt.revocation.is_none()) {
                    attempt.revocation = Ended::begin(record).and_then(|ended| ended.revocation(self.expires_at));
                }
            }
            Body::Renewed(renewed) => {
                let own = renewed.renewals.iter().find(|one| self.leases.contains(&one.lease.0));
                self.expires_at = own.map_or(self.expires_at, |one| one.expires_at);
            }
            Body::AllocationStarted(started) if started.allocation == own => {
                self.told.allocation.state = AllocationState::Running;
            }
            Body::AllocationCheckpointing(begun) if begun.allocation == own => {
                self.told.allocation.state = AllocationState::Checkpointing;
            }
            Body::AllocationCheckpointed(written) if written.allocation == own => {
                self.told.allocation.state = AllocationState::Running;
                let checkpoint =
                    api::WrittenCheckpoint { at: When(record.stamp), bytes: written.bytes, took: Ttl(written.took) };
                if let Some(attempt) = self.told.attempts.last_mut() {
                    attempt.checkpoints.push(checkpoint);
                }
            }
            Body::AllocationSuspended(suspended) if suspended.allocation == own => {
                self.end_attempt(AllocationState::Suspended, at, Some(suspended.end));
            }
            Body::AllocationRequeued(requeued) if requeued.allocation == own => {
                self.end_attempt(AllocationState::Pending, at, Some(requeued.end));
            }
            Body::AllocationCompleted(completed) if completed.allocation == own => {
                self.told.exit_status = completed.exit_status;
                self.told.storage_written = Some(completed.storage_written);
                return self.end(AllocationState::Completed, at, None);
            }
            Body::AllocationFailed(failed) if failed.allocation == own => {
                self.told.exit_status = failed.exit_status;
                self.told.storage_written = Some(failed.storage_written);
                return self.end(AllocationState::Failed, at, Some(failed.end));
            }
            Body::AllocationCancelled(cancelled) if cancelled.allocation == own => {
                return self.end(AllocationState::Cancelled, at, None);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn end_attempt(&mut self, state: AllocationState, at: Instant, end: Option<api::AttemptEnd>) {
        self.told.allocation.state = state;
        (self.told.allocation.placed_at, self.told.allocation.ends_by) = (None, None);
        let running = self.told.attempts.last_mut().filter(|attempt| attempt.ended_at.is_none());
        if let Some(attempt) = running {
            (attempt.ended_at, attempt.end) = (Some(When(at)), end);
        }
    }

    fn end(&mut self, state: AllocationState, at: Instant, end: Option<api::AttemptEnd>) -> ControlFlow<()> {
        self.end_attempt(state, at, end);
        self.told.allocation.ended_at = Some(When(at));
        ControlFlow::Break(())
    }
}
