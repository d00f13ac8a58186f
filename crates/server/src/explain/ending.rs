//! How a lease or an attempt came to its end, told to its holder.

use super::Teller;
use super::decision::read;
use super::eviction::Evicted;
use crate::access::Caller;
use crate::app::App;
use crate::endings::{Ended, How, LastAttempt, Over};
use crate::problem::quota_words;
use leasehold_api::{Ending, Problem, Ttl, When};
use leasehold_engine::Phase;
use leasehold_model::body::Body;
use leasehold_model::{AllocationNo, AttemptEnd, Instant, Reason, Record, Span};

/// Seconds are enough for people.
fn rounded(span: Span) -> Ttl {
    Ttl(if span.0 < 1_000_000_000 { span } else { Span::from_secs(span.as_secs()) })
}

/// The walltime of an allocation.
fn walltime_of(app: &App, allocation: Option<AllocationNo>) -> Result<Option<Span>, Problem> {
    let Some(allocation) = allocation else { return Ok(None) };
    Ok(match read(app, allocation.0)?.body {
        Body::AllocationSubmitted(submitted) => submitted.spec.walltime,
        _ => None,
    })
}

/// What an end means, in a word and in words; to be completed by what follows from it.
fn plain(app: &App, ended: &Ended) -> (String, String) {
    let (how, why) = match ended.how {
        How::Revoked(Reason::Quota { quota }) => {
            let quota = app.now.read(|state| quota_words(state, quota));
            ("quota", format!("It was revoked for {quota}."))
        }
        How::Revoked(reason @ Reason::Policy) if ended.by_itself => {
            (reason.word(), "It was revoked with the rest of its gang, of which a lease had ended.".to_owned())
        }
        How::Revoked(reason) => {
            let why = match reason {
                Reason::Budget => "It was revoked because a budget is used up.",
                Reason::Operator => "An operator revoked it.",
                Reason::NodeLost => "A node was lost; what was held there ended where the node was last seen.",
                Reason::Policy => "It was revoked by policy.",
                Reason::DuplicateHolder => "It was revoked because it had two holders.",
                Reason::Preempted { .. } | Reason::Quota { .. } => "It was revoked.",
            };
            (reason.word(), why.to_owned())
        }
        How::Expired => ("expired", "Its deadline passed; it was not renewed in time.".to_owned()),
        How::Released => ("released", "Its holder gave it back.".to_owned()),
    };
    (how.to_owned(), why)
}

/// The end by one record, with why it was this one that had to fall, if it did.
fn by_record(app: &App, caller: &Caller, ended: &Ended) -> Result<Ending, Problem> {
    let (how, mut why) = plain(app, ended);
    let (mut priority, mut remaining) = (None, None);
    if let Some(by) = ended.preempted_by() {
        let evicted = Evicted::find(app, by)?;
        let who = app.now.read(|state| evicted.requester_name(&Teller { app, state, caller, own: &[] }));
        why = format!("It was evicted for a {} request of {who}, as decided in record {by}.", evicted.priority());
        if let Some((of, left)) = evicted.chosen(ended.lease) {
            let left = rounded(left);
            why += &format!(
                " Those of lower priority fall, the lowest first, then those with the least time left: it was {of}, with \
                 {left} to go."
            );
            (priority, remaining) = (Some(of.to_string()), Some(left));
        }
    }
    // Told while there is some left.
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
    ending.why = format!("It ran for as long as it may: its walltime{of} was over.");
}

/// How a lease ended.
pub(super) fn of_lease(
    app: &App,
    caller: &Caller,
    grant: &Record,
    ended: &Ended,
    ended_at: Option<Instant>,
) -> Result<Ending, Problem> {
    let mut ending = by_record(app, caller, ended)?;
    if ended.how == How::Expired {
        let allocation = match &grant.body {
            Body::Granted(granted) => granted.allocation,
            _ => None,
        };
        let walltime = walltime_of(app, allocation)?;
        if walltime.is_some_and(|walltime| grant.stamp.saturating_add(walltime) <= ended.effective_at) {
            make_walltime(&mut ending, walltime);
        }
    }
    let at_once = (ended.how == How::Expired || ended.how == How::Released).then_some(ended.effective_at);
    ending.ended_at = ended_at.or(at_once).map(When);
    Ok(ending)
}

/// How the last attempt of an allocation ended; `None` while it does not.
pub(super) fn of_attempt(
    app: &App,
    caller: &Caller,
    number: AllocationNo,
    last: &LastAttempt,
) -> Result<Option<Ending>, Problem> {
    let said = |how: &str, why: String, sequence, at| Ending {
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
    let involuntary = || last.ended.as_ref().map(|ended| by_record(app, caller, ended)).transpose();
    let mut ending = match last.over {
        Some((Over::Completed, sequence, at)) => {
            return Ok(Some(said("completed", "Its work is done.".to_owned(), sequence, at)));
        }
        Some((Over::Cancelled, sequence, at)) => {
            return Ok(Some(said("cancelled", "It was cancelled.".to_owned(), sequence, at)));
        }
        Some((Over::Failed(AttemptEnd::Reported, status), sequence, at)) => {
            let status = status.map_or_else(String::new, |status| format!(", with exit status {status}"));
            return Ok(Some(said("failed", format!("Its holder reported that it failed{status}."), sequence, at)));
        }
        Some((Over::Failed(end, _), sequence, at)) => {
            let mut ending = match involuntary()? {
                Some(ending) => ending,
                None => said(end.word(), "Its attempt ended.".to_owned(), sequence, at),
            };
            if end == AttemptEnd::Walltime {
                make_walltime(&mut ending, walltime_of(app, Some(number))?);
                ending.why += " So it failed.";
            } else {
                ending.why += " It had no checkpoint in that attempt and had not asked to be requeued, so it failed.";
            }
            ending.ended_at = Some(When(at));
            ending
        }
        None => {
            let Some(ending) = involuntary()? else { return Ok(None) };
            ending
        }
    };
    if last.over.is_none() && last.settled.is_some() {
        ending.why += " It waits again.";
    }
    Ok(Some(ending))
}
