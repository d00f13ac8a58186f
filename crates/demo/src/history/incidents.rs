//! The incidents of the generated week, and what the operator did about them.

use super::super::cluster::{NODE_TO_DRAIN, STUDENTS_QUOTA};
use super::rhythm::{DAY_NS, HOUR_NS};
use leasehold_model::{Instant, NodeNo, QuotaNo, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Incident {
    Drain(NodeNo),
    Resume(NodeNo),
    /// The agent of the busiest node hangs, and recovers.
    Hang,
    Recover,
    /// The busiest node is lost, and returns.
    Lose,
    Return,
    /// The operator checks the nodes and clears the fences.
    ClearFences,
    /// The largest gang is revoked.
    Revoke {
        grace: Span,
    },
    /// A quota is raised by one GPU.
    Raise(QuotaNo),
}

const MINUTE_NS: u64 = HOUR_NS / 60;

/// Day (counted from the first), hour, minute and incident.
const WEEK: [(u64, u64, u64, Incident); 17] = {
    use Incident::{ClearFences, Drain, Hang, Lose, Raise, Recover, Resume, Return, Revoke};
    const MINUTES_15: Span = Span::from_secs(900);
    const MINUTES_5: Span = Span::from_secs(300);
    [
        (1, 7, 30, Drain(NODE_TO_DRAIN)),
        (1, 11, 10, Resume(NODE_TO_DRAIN)),
        (1, 14, 5, Revoke { grace: MINUTES_15 }),
        (2, 9, 40, Hang),
        (2, 9, 55, Recover),
        (2, 10, 35, ClearFences),
        (2, 16, 20, Revoke { grace: MINUTES_5 }),
        (3, 13, 17, Lose),
        (3, 14, 19, Return),
        (3, 14, 50, ClearFences),
        (4, 10, 0, Raise(STUDENTS_QUOTA)),
        (4, 15, 45, Revoke { grace: MINUTES_15 }),
        (5, 8, 0, Drain(NodeNo(30))),
        (5, 17, 30, Resume(NodeNo(30))),
        (5, 11, 30, Revoke { grace: Span::ZERO }),
        (6, 6, 0, Revoke { grace: MINUTES_5 }),
        (6, 12, 40, ClearFences),
    ]
};

/// Incidents at so many minutes before the end. Their fences are left for the running demo.
const BEFORE_END: [(u64, Incident); 2] = [(52, Incident::Hang), (41, Incident::Recover)];

/// The incidents between two instants.
pub(super) fn between(from: Instant, to: Instant) -> impl Iterator<Item = (Instant, Incident)> {
    let midnight = from.0 / DAY_NS * DAY_NS;
    let at = move |day, hour, minute| Instant(midnight + day * DAY_NS + hour * HOUR_NS + minute * MINUTE_NS);
    let week = WEEK.into_iter().map(move |(day, hour, minute, incident)| (at(day, hour, minute), incident));
    let before_end = move |minutes| Instant(to.0.saturating_sub(minutes * MINUTE_NS));
    let last = BEFORE_END.into_iter().map(move |(minutes, incident)| (before_end(minutes), incident));
    // Later fences are not cleared, so that the running demo starts with some.
    let quiet = before_end(BEFORE_END[0].0);
    week.filter(move |(at, _)| *at < quiet).chain(last).filter(move |(at, _)| *at > from)
}
