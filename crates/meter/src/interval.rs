//! Half-open intervals of time (SEMANTICS 2).

use leasehold_model::rate::Charge;
use leasehold_model::{Instant, Span};

/// `[from, to)`; empty if `to` is not after `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    pub from: Instant,
    pub to: Instant,
}

impl Window {
    pub const fn new(from: Instant, to: Instant) -> Self {
        Self { from, to }
    }
    pub const fn length(self) -> Span {
        self.to.since(self.from)
    }
    pub const fn is_empty(self) -> bool {
        self.to.0 <= self.from.0
    }
    /// The intersection of two windows.
    pub fn clip(self, other: Self) -> Self {
        let from = self.from.max(other.from);
        Self { from, to: self.to.min(other.to).max(from) }
    }
    /// Whether an interval overlaps the window.
    pub fn meets(self, other: Self) -> bool {
        !self.clip(other).is_empty()
    }
}

/// The end of billing of a lease that was held over `held` and is charged in this way.
pub fn billable_end(held: Window, charge: Charge) -> Instant {
    match charge {
        Charge::Full => held.to,
        Charge::None => held.from,
        Charge::MinusLast(span) => Instant(held.to.0.saturating_sub(span.0)).max(held.from),
    }
}
