//! The activity reports of simulated holders.

use leasehold_model::{Activity, Quanta, Span};

/// A report that `quanta` were busy for `busy` percent of the time `covered`.
pub(crate) fn report(quanta: Quanta, covered: Span, busy: u64) -> Activity {
    // A holder's clock is coarser than the engine's: microseconds, rounded down.
    let covered = (covered.0 / 1000).max(1) * 1000;
    let share = |of: u64, percent: u64| of / 100_000 * percent * 1000;
    let active = share(covered, (busy + 10).min(100));
    let waiting = share(covered, (100 - busy) / 3);
    Activity {
        covered: Span(covered),
        busy: u128::from(quanta.0) * u128::from(share(covered, busy)),
        active: Span(active),
        waiting: [Span::ZERO, Span::ZERO, Span(waiting), Span(waiting / 2), Span::ZERO],
    }
}
