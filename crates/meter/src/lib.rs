//! The arithmetic of usage and money.
//!
//! In: intervals of held capacity, prices, windows. Out: integrals, peaks, exact costs and splits, as integers and
//! fractions of integers.
//!
//! Never: I/O, a clock, floating point, implicit rounding. The crate does not know where the numbers come from: the
//! books and the engine use the same arithmetic.

pub mod column;
pub mod exact;
pub mod interval;
pub mod rating;
pub mod split;
pub mod timeline;
pub mod units;

pub use exact::{Exact, Money, Overflow, Units};
pub use interval::{Window, billable_end};
pub use rating::{Rate, Schedule, billionths_up, rate};
pub use split::{round_together, split};
pub use timeline::{Event, Segment, SegmentHead, Timeline, Wanted};
pub use units::{UnitPart, unit_parts};

/// Quanta times nanoseconds.
pub type QuantaNs = u128;
