//! Time for the cell: makes stamps that never decrease from the wall clock and the monotonic clock.

use crate::notice::ClockJump;
use leasehold_model::{Instant, Span};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of time.
pub trait Clock: Send + Sync {
    /// The wall clock, which people and NTP can set.
    fn wall(&self) -> Instant;
    /// A clock that never goes backwards, counted from an arbitrary start.
    fn monotonic(&self) -> Span;
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    began: std::time::Instant,
}

impl SystemClock {
    pub fn new() -> Self {
        Self { began: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Instant {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 is read as 1970, which is far outside the accepted gap and therefore refused.
        Instant(since.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
    fn monotonic(&self) -> Span {
        Span(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Clocks that change only when they are told to, for tests, the simulator and generated histories.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall: AtomicU64,
    monotonic: AtomicU64,
}

impl ManualClock {
    pub fn at(wall: Instant) -> Self {
        Self { wall: AtomicU64::new(wall.0), monotonic: AtomicU64::new(0) }
    }
    /// Advances both clocks.
    pub fn advance(&self, by: Span) {
        self.wall.fetch_add(by.0, Ordering::SeqCst);
        self.monotonic.fetch_add(by.0, Ordering::SeqCst);
    }
    /// Sets the wall clock.
    pub fn set_wall(&self, wall: Instant) {
        self.wall.store(wall.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Instant {
        Instant(self.wall.load(Ordering::SeqCst))
    }
    fn monotonic(&self) -> Span {
        Span(self.monotonic.load(Ordering::SeqCst))
    }
}

/// The wall clock may drift this far from the monotonic one before it counts as a jump.
const JUMP: Span = Span::from_secs(1);

/// Makes stamps: the wall clock at startup plus the time that has passed on the monotonic clock. So a jump of the wall
/// clock cannot expire leases (SEMANTICS 2).
#[derive(Clone, Debug)]
pub struct Stamper {
    base: Instant,
    began: Span,
    last: Instant,
    /// The difference between the wall clock and the stamps, as of the last reported jump.
    offset: i128,
}

impl Stamper {
    /// Starts at the wall clock, or at `last_stamp` if that is later.
    pub fn start(clock: &dyn Clock, last_stamp: Instant) -> Self {
        let wall = clock.wall();
        let base = wall.max(last_stamp);
        Self { base, began: clock.monotonic(), last: base, offset: distance(wall, base) }
    }

    /// The stamp for the present instant.
    pub fn now(&mut self, clock: &dyn Clock) -> Instant {
        self.last = self.last.max(self.at(clock));
        self.last
    }

    /// The present instant by the clock of the engine, for those who make no stamps.
    pub fn at(&self, clock: &dyn Clock) -> Instant {
        let elapsed = Span(clock.monotonic().0.saturating_sub(self.began.0));
        self.base.saturating_add(elapsed)
    }

    /// The jump of the wall clock since the last call, if there was one.
    pub fn jumped(&mut self, clock: &dyn Clock) -> Option<ClockJump> {
        let now = self.now(clock);
        let wall = clock.wall();
        let offset = distance(wall, now);
        if offset.abs_diff(self.offset) <= u128::from(JUMP.0) {
            return None;
        }
        let expected = u64::try_from(i128::from(now.0) + self.offset).unwrap_or(0);
        self.offset = offset;
        Some(ClockJump { wall, expected: Instant(expected) })
    }
}

fn distance(wall: Instant, stamp: Instant) -> i128 {
    i128::from(wall.0) - i128::from(stamp.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_follow_the_monotonic_clock_and_tell_of_a_jump_once() {
        let clock = ManualClock::at(Instant::from_secs(1000));
        let mut stamper = Stamper::start(&clock, Instant(0));
        clock.advance(Span::from_secs(5));
        assert_eq!(stamper.now(&clock), Instant::from_secs(1005));
        assert_eq!(stamper.jumped(&clock), None);
        for (expected, wall) in [(1005, 500_000), (500_000, 10)] {
            let jump = ClockJump { wall: Instant::from_secs(wall), expected: Instant::from_secs(expected) };
            clock.set_wall(jump.wall);
            assert_eq!(stamper.now(&clock), Instant::from_secs(1005));
            assert_eq!(stamper.jumped(&clock), Some(jump));
            assert_eq!(stamper.jumped(&clock), None);
            assert_eq!((jump.is_forward(), jump.size()), (wall > expected, Span::from_secs(wall.abs_diff(expected))));
        }
    }

    #[test]
    fn stamps_never_begin_before_the_last_one() {
        let clock = ManualClock::at(Instant::from_secs(10));
        let mut stamper = Stamper::start(&clock, Instant::from_secs(99));
        assert_eq!(stamper.now(&clock), Instant::from_secs(99));
        clock.advance(Span::from_secs(1));
        assert_eq!(stamper.now(&clock), Instant::from_secs(100));
    }
}
