//! The arithmetic of usage and money.
//!
//! In: intervals of held capacity, prices, windows. Out: integrals, peaks, exact costs and splits that add up, as integers
//! and fractions of integers.
//!
//! Never: I/O, a clock, floating point, a rounding that is not asked for. Where the numbers come from or go is not known
//! here: the books, the engine and the verifier use the same arithmetic.

pub mod column;
pub mod exact;
pub mod interval;
pub mod rating;
pub mod split;
pub mod timeline;

pub use exact::{Exact, Money, Overflow, Units};
pub use interval::{Window, billable_end};
pub use rating::{Schedule, billionths_up, factor};
pub use split::split;
pub use timeline::{Event, Segment, SegmentHead, Timeline, Wanted};

/// Quanta times nanoseconds.
pub type QuantaNs = u128;
