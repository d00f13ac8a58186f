//! How a lease or an attempt ended, as its holder may see it.

use super::Explainer;
use super::eviction::Evicted;
use crate::access::Caller;
use crate::app::App;
use crate::past::is_held;
use crate::problem::quota_words;
use leasehold_api::{Ending, Problem, Ttl, When};
use leasehold_books::{Books, BooksError, End, Row, Story};
use leasehold_engine::Phase;
use leasehold_model::{AllocationState, AttemptEnd, Instant, LeaseNo, LeaseState, Reason, Span};

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Revoked(Reason),
    Expired,
    Released,
}

/// The record by which a lease began to end.
#[derive(Clone, Copy, Debug)]
struct Ended {
    how: How,
    sequence: u64,
    at: Instant,
    /// Of a revocation.
    grace: Option<Span>,
    /// Nobody requested it: it follows from another end.
    by_itself: bool,
    lease: LeaseNo,
}

impl Ended {
    fn of(row: &Row) -> Option<Self> {
        let (ending, revoked) = (row.life.ending?, row.revocation());
        let how = match (revoked, row.end) {
            (Some(revoked), _) => How::Revoked(revoked.reason),
            (None, End::Expired) => How::Expired,
            (None, _) => How::Released,
        };
        Some(Self {
            how,
            sequence: ending.sequence,
            at: ending.at,
            grace: revoked.map(|revoked| revoked.grace),
            by_itself: revoked.is_some_and(|revoked| revoked.by_itself),
            lease: row.lease,
        })
    }

    /// The sequence of the decision to evict it.
    fn preempted_by(&self) -> Option<u64> {
        match self.how {
            How::Revoked(Reason::Preempted { by }) => Some(by),
            _ => None,
        }
    }
}

/// An allocation, with the leases of its last attempt.
pub(crate) struct LastAttempt {
    pub(super) story: Story,
    leases: Vec<(Row, LeaseState)>,
}

impl LastAttempt {
    pub(crate) fn of(books: &Books, story: Story) -> Result<Self, BooksError> {
        let numbers = story.attempts.last().map_or(0..0, leasehold_books::Attempt::numbers);
        let leases = books.leases_of(numbers.map(LeaseNo))?;
        Ok(Self { story, leases })
    }

    /// The sequence of the record that placed it; `None` if it was never placed.
    pub(super) fn placed(&self) -> Option<u64> {
        self.story.attempts.last().map(|attempt| attempt.sequence)
    }

    /// The first of its leases to end.
    fn ended(&self) -> Option<Ended> {
        let ended = self.leases.iter().filter_map(|(row, _)| Ended::of(row));
        ended.min_by_key(|ended| (ended.sequence, ended.lease))
    }
}

/// Rounded to seconds.
fn rounded(span: Span) -> Ttl {
    Ttl(if span.0 < 1_000_000_000 { span } else { Span::from_secs(span.as_secs()) })
}

/// The end as a word and as a sentence.
fn plain(app: &App, ended: &Ended) -> (String, String) {
    let (how, why) = match ended.how {
        How::Revoked(Reason::Quota { quota }) => {
            let quota = app.now.read(|state| quota_words(state, quota));
            ("quota", format!("It was revoked because of {quota}."))
        }
        How::Revoked(reason @ Reason::Policy) if ended.by_itself => (
            reason.word(),
            "It was revoked with the rest of its gang, because another lease of the gang had ended.".to_owned(),
        ),
        How::Revoked(reason) => {
            let why = match reason {
                Reason::Budget => "It was revoked because a budget was used up.",
                Reason::Operator => "An operator revoked it.",
                Reason::NodeLost => "Its node was lost; it ended when the node was last seen.",
                Reason::Policy => "It was revoked by policy.",
                Reason::DuplicateHolder => "It was revoked because it had two holders.",
                Reason::Preempted { .. } | Reason::Quota { .. } => "It was revoked.",
            };
            (reason.word(), why.to_owned())
        }
        How::Expired => ("expired", "Its deadline passed; it was not renewed in time.".to_owned()),
        How::Released => ("released", "Its holder released it.".to_owned()),
    };
    (how.to_owned(), why)
}

/// The end by one record; for an eviction, also why this lease was chosen.
fn by_record(app: &App, caller: &Caller, ended: &Ended) -> Result<Ending, Problem> {
    let (how, mut why) = plain(app, ended);
    let (mut priority, mut remaining) = (None, None);
    if let Some(by) = ended.preempted_by() {
        let evicted = Evicted::find(app, by)?;
        let who = app.now.read(|state| evicted.requester_name(&Explainer { app, state, caller, own: &[] }));
        why = format!("It was evicted for a {} request of {who}, as decided in record {by}.", evicted.priority());
        if let Some((of, left)) = evicted.chosen(ended.lease) {
            let left = rounded(left);
            why += &format!(
                " The lowest priority is evicted first, then the least time left: it had priority {of} and \
                 {left} left."
            );
            (priority, remaining) = (Some(of.to_string()), Some(left));
        }
    }
    // Shown only while the grace lasts.
    let grace_ends_at = app.now.read(|state| {
        let lease = state.lease(ended.lease).filter(|lease| lease.phase == Phase::Revoking)?;
        Some(lease.limit_at)
    });
    Ok(Ending {
        how,
        why,
        sequence: ended.sequence,
        at: When(ended.at),
        grace: ended.grace.map(Ttl),
        grace_ends_at: grace_ends_at.map(When),
        preempted_by: ended.preempted_by(),
        priority,
        remaining,
        ended_at: None,
    })
}

fn make_walltime(ending: &mut Ending, walltime: Option<Span>) {
    ending.how = "walltime".to_owned();
    let of = walltime.map_or_else(String::new, |walltime| format!(" of {}", Ttl(walltime)));
    ending.why = format!("It reached its walltime{of}.");
}

/// How a lease ended or is about to end; `None` otherwise. `walltime` is that of its allocation.
pub(super) fn of_lease(
    app: &App,
    caller: &Caller,
    (row, standing): &(Row, LeaseState),
    walltime: Option<Span>,
) -> Result<Option<Ending>, Problem> {
    let Some(ended) = Ended::of(row) else { return Ok(None) };
    let mut ending = by_record(app, caller, &ended)?;
    let granted_at = row.held.from;
    if ended.how == How::Expired && walltime.is_some_and(|walltime| granted_at.saturating_add(walltime) <= row.held.to)
    {
        make_walltime(&mut ending, walltime);
    }
    ending.ended_at = (!is_held(*standing)).then_some(When(row.held.to));
    Ok(Some(ending))
}

/// How the last attempt of an allocation ended; `None` otherwise.
pub(super) fn of_attempt(app: &App, caller: &Caller, last: &LastAttempt) -> Result<Option<Ending>, Problem> {
    let ended = |how: &str, why: String, sequence, at| Ending {
        how: how.to_owned(),
        why,
        sequence,
        at: When(at),
        grace: None,
        grace_ends_at: None,
        preempted_by: None,
        priority: None,
        remaining: None,
        ended_at: Some(When(at)),
    };
    let story = &last.story;
    let involuntary = || last.ended().map(|ended| by_record(app, caller, &ended)).transpose();
    let Some(over) = story.over else {
        let Some(mut ending) = involuntary()? else { return Ok(None) };
        if story.attempts.last().is_some_and(|attempt| attempt.ended_at.is_some()) {
            ending.why += " It waits in the queue again.";
        }
        return Ok(Some(ending));
    };
    Ok(Some(match (story.outline.state, over.end) {
        (AllocationState::Cancelled, _) => ended("cancelled", "It was cancelled.".to_owned(), over.sequence, over.at),
        (_, None) => ended("completed", "It was completed.".to_owned(), over.sequence, over.at),
        (_, Some(AttemptEnd::FailedStart)) => {
            let why = "A node's agent or an operator reported that it could not be started.".to_owned();
            ended("failed", why, over.sequence, over.at)
        }
        (_, Some(AttemptEnd::Reported)) => {
            let status = over.exit_status.map_or_else(String::new, |status| format!(", with exit status {status}"));
            ended("failed", format!("Its holder reported that it failed{status}."), over.sequence, over.at)
        }
        (_, Some(end)) => {
            let mut ending = match involuntary()? {
                Some(ending) => ending,
                None => ended(end.word(), "Its attempt ended.".to_owned(), over.sequence, over.at),
            };
            if end == AttemptEnd::Walltime {
                make_walltime(&mut ending, story.spec.walltime);
                ending.why += " It failed.";
            } else {
                ending.why +=
                    " It had no checkpoint in that attempt and was submitted without `requeue`, so it failed.";
            }
            ending.ended_at = Some(When(over.at));
            ending
        }
    }))
}
