//! One quantity over time, as a step function with its integral: what was held, at every nanosecond.
//!
//! The function is kept as its changes. Old changes lie in blocks, each with the level and the integral at its start, so
//! that the amount over any window takes two look-ups, however long the window; and with its highest level, so that a
//! peak reads no more than the two blocks at the window's ends. The last changes lie open in the tail: nearly everything
//! happens there, but a change may come late and lie anywhere (a node's loss takes effect when it was last seen).
//!
//! Intervals are half-open, so ends and starts at one instant are one change by their difference: a hand-over does not
//! count twice in a peak (SEMANTICS 2).

mod block;

pub use block::Block;

use crate::QuantaNs;
use crate::interval::Window;
use leasehold_model::Instant;

/// From `at` on the level is higher by `delta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub at: Instant,
    pub delta: i64,
}

/// Where a block begins, and what is known of it without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The instant of its first point.
    pub first: Instant,
    /// The level before that point.
    pub level: u64,
    /// The integral up to that point.
    pub integral: QuantaNs,
    /// The highest level from its first point up to the next block's.
    pub peak: u64,
    /// Where its points lie, in words of whoever keeps them.
    pub block: u64,
}

/// Keeps the points of blocks.
pub trait Payloads {
    /// Keeps a new block and answers where.
    fn put(&mut self, block: Block) -> u64;
    /// Forgets one that was opened again.
    fn drop(&mut self, block: u64);
}

/// Finds the points of blocks that are kept.
pub trait Lookup {
    fn with<T>(&self, block: u64, look: impl FnOnce(&Block) -> T) -> T;
}

/// Points in a block.
pub const BLOCK_POINTS: usize = 64;
/// The tail is cut when it has so many: what comes a little late finds its place in it.
const TAIL_POINTS_MAX: usize = BLOCK_POINTS + 32;

#[derive(Clone, Debug, Default)]
pub struct Series {
    heads: Vec<Head>,
    /// The newest points, after all blocks.
    tail: Vec<Point>,
    /// Level before the tail's first point, and the integral up to it.
    level: u64,
    integral: QuantaNs,
    /// Level after the last point.
    last_level: u64,
    /// Of the heads, those that are as their keeper last had them.
    heads_kept: usize,
}

/// Where a reader stands in a series that it reads from the front.
struct Sum {
    level: u64,
    integral: QuantaNs,
    at: Instant,
}

impl Sum {
    fn advance(&mut self, to: Instant) {
        self.integral += u128::from(self.level) * u128::from(to.since(self.at).0);
        self.at = to;
    }
    fn step(&mut self, point: Point) {
        self.advance(point.at);
        self.level = after(self.level, point.delta);
    }
    /// What has been added since.
    fn since(&self, integral: QuantaNs) -> QuantaNs {
        self.integral.saturating_sub(integral)
    }
}

/// The level after a change, for readers. That none is below nothing was seen to as it was made; past a block that cannot
/// be read it may seem so: its keeper knows, and gives no answer.
fn after(level: u64, delta: i64) -> u64 {
    level.saturating_add_signed(delta)
}

impl Series {
    /// As it was kept: its blocks' heads in order, and its tail.
    pub fn restore(heads: Vec<Head>, tail: Vec<Point>, level: u64, integral: QuantaNs) -> Option<Self> {
        let mut last_level = level;
        for point in &tail {
            last_level = last_level.checked_add_signed(point.delta)?;
        }
        let heads_kept = heads.len();
        Some(Self { heads, tail, level, integral, last_level, heads_kept })
    }
    pub fn heads(&self) -> &[Head] {
        &self.heads
    }
    /// How many of the first heads are as they were at [`Self::keep_heads`], or restored. A block may be opened and cut
    /// again within one change: their number alone does not say it.
    pub fn heads_kept(&self) -> usize {
        self.heads_kept
    }
    /// Whoever keeps the heads has all of them.
    pub fn keep_heads(&mut self) {
        self.heads_kept = self.heads.len();
    }
    pub fn tail(&self) -> &[Point] {
        &self.tail
    }
    /// Level before the tail, and the integral up to its first point.
    pub fn tail_base(&self) -> (u64, QuantaNs) {
        (self.level, self.integral)
    }
    /// The level from the last change on.
    pub fn last_level(&self) -> u64 {
        self.last_level
    }

    /// From `at` on the level is higher by `delta`.
    pub fn change(&mut self, at: Instant, delta: i64, payloads: &mut (impl Payloads + Lookup)) {
        if delta == 0 {
            return;
        }
        self.last_level = self.last_level.checked_add_signed(delta).expect("what ends was held before");
        match self.tail.last_mut() {
            Some(last) if at > last.at => self.tail.push(Point { at, delta }),
            Some(last) if at == last.at && last.delta + delta != 0 => last.delta += delta,
            _ => self.change_before_the_end(at, delta, payloads),
        }
        if self.tail.len() >= TAIL_POINTS_MAX {
            self.cut(payloads);
        }
    }

    fn change_before_the_end(&mut self, at: Instant, delta: i64, payloads: &mut (impl Payloads + Lookup)) {
        while self.tail.first().is_none_or(|first| at < first.at) && !self.heads.is_empty() {
            self.reopen(payloads);
        }
        match self.tail.binary_search_by_key(&at, |point| point.at) {
            Ok(place) => {
                self.tail[place].delta += delta;
                if self.tail[place].delta == 0 {
                    self.drop_point(place);
                }
            }
            Err(0) => {
                // The integral up to the first point is that of the level before it.
                if let Some(first) = self.tail.first() {
                    self.integral -= u128::from(self.level) * u128::from(first.at.since(at).0);
                }
                self.tail.insert(0, Point { at, delta });
            }
            Err(place) => self.tail.insert(place, Point { at, delta }),
        }
        while self.tail.len() >= TAIL_POINTS_MAX {
            self.cut(payloads);
        }
    }

    fn drop_point(&mut self, place: usize) {
        let gone = self.tail.remove(place);
        if place == 0
            && let Some(first) = self.tail.first()
        {
            self.integral += u128::from(self.level) * u128::from(first.at.since(gone.at).0);
        }
    }

    /// Makes a block of the oldest points of the tail.
    fn cut(&mut self, payloads: &mut impl Payloads) {
        let points = &self.tail[..BLOCK_POINTS];
        let first = points[0].at;
        let mut sum = Sum { level: self.level, integral: self.integral, at: first };
        let mut peak = 0;
        for point in points {
            sum.step(*point);
            peak = peak.max(sum.level);
        }
        sum.advance(self.tail[BLOCK_POINTS].at);
        let block = payloads.put(Block::encode(points));
        self.heads.push(Head { first, level: self.level, integral: self.integral, peak, block });
        self.tail.drain(..BLOCK_POINTS);
        (self.level, self.integral) = (sum.level, sum.integral);
    }

    /// Takes the last block back into the tail.
    fn reopen(&mut self, payloads: &mut (impl Payloads + Lookup)) {
        let head = self.heads.pop().expect("it was asked for");
        self.heads_kept = self.heads_kept.min(self.heads.len());
        let mut points: Vec<Point> = payloads.with(head.block, |block| block.points(head.first).collect());
        payloads.drop(head.block);
        points.append(&mut self.tail);
        self.tail = points;
        (self.level, self.integral) = (head.level, head.integral);
    }

    /// The block in which an instant lies; none if it lies in the tail or before everything.
    fn block_of(&self, at: Instant) -> Option<&Head> {
        if self.tail.first().is_some_and(|first| first.at <= at) {
            return None;
        }
        self.heads.partition_point(|head| head.first <= at).checked_sub(1).map(|place| &self.heads[place])
    }

    /// The integral from the beginning of time up to an instant, and the level there.
    pub fn at(&self, at: Instant, lookup: &impl Lookup) -> (QuantaNs, u64) {
        if let Some(head) = self.block_of(at) {
            return lookup.with(head.block, |block| block.at(head, at));
        }
        let Some(first) = self.tail.first().filter(|first| first.at <= at) else {
            return (0, 0);
        };
        let mut sum = Sum { level: self.level, integral: self.integral, at: first.at };
        for point in self.tail.iter().take_while(|point| point.at <= at) {
            sum.step(*point);
        }
        sum.advance(at);
        (sum.integral, sum.level)
    }

    /// The integral over a window.
    pub fn amount(&self, window: Window, lookup: &impl Lookup) -> QuantaNs {
        if window.is_empty() {
            return 0;
        }
        // Never less, but where a block cannot be read.
        self.at(window.to, lookup).0.saturating_sub(self.at(window.from, lookup).0)
    }

    /// The integral over each stretch between two neighbouring borders, which are in order. `each` gets the place of the
    /// stretch and its amount, for those that have any.
    pub fn amounts(&self, borders: &[Instant], lookup: &impl Lookup, mut each: impl FnMut(usize, QuantaNs)) {
        let [first, .., _] = borders else { return };
        let (integral, level) = self.at(*first, lookup);
        let mut walk = Walk { sum: Sum { level, integral, at: *first }, from: integral, next: 1, borders };
        let start = self.heads.partition_point(|head| head.first <= *first).saturating_sub(1);
        for (place, head) in self.heads.iter().enumerate().skip(start) {
            if walk.is_done() {
                return;
            }
            let end = self.heads.get(place + 1).map(|next| next.first).or(self.tail.first().map(|point| point.at));
            if let Some(end) = end.filter(|end| walk.borders[walk.next] >= *end && head.first >= *first) {
                // No border inside: it need not be read.
                let (integral, level) = match self.heads.get(place + 1) {
                    Some(next) => (next.integral, next.level),
                    None => (self.integral, self.level),
                };
                walk.sum = Sum { level, integral, at: end };
                continue;
            }
            lookup.with(head.block, |block| {
                for point in block.points(head.first).filter(|point| point.at > *first) {
                    if walk.reach(point, &mut each) {
                        break;
                    }
                }
            });
        }
        for point in self.tail.iter().filter(|point| point.at > *first) {
            if walk.reach(*point, &mut each) {
                return;
            }
        }
        walk.finish(&mut each);
    }

    /// The highest level within a window.
    pub fn peak(&self, window: Window, lookup: &impl Lookup) -> u64 {
        if window.is_empty() {
            return 0;
        }
        let mut peak = self.at(window.from, lookup).1;
        let first = self.heads.partition_point(|head| head.first <= window.from).saturating_sub(1);
        for (place, head) in self.heads.iter().enumerate().skip(first) {
            if head.first >= window.to {
                return peak;
            }
            let end = self.heads.get(place + 1).map(|next| next.first).or(self.tail.first().map(|point| point.at));
            if head.first >= window.from && end.is_none_or(|end| end <= window.to) {
                peak = peak.max(head.peak);
            } else if head.peak > peak {
                peak = peak.max(lookup.with(head.block, |block| block.peak(head, window)));
            }
        }
        let mut level = self.level;
        for point in &self.tail {
            level = after(level, point.delta);
            if point.at >= window.to {
                break;
            }
            if point.at >= window.from {
                peak = peak.max(level);
            }
        }
        peak
    }

    /// Every change after an instant and before another, in order: what a peak over several series is swept from.
    pub fn points(&self, window: Window, lookup: &impl Lookup, mut each: impl FnMut(Point)) {
        let first = self.heads.partition_point(|head| head.first <= window.from).saturating_sub(1);
        let inside = |point: &Point| point.at > window.from && point.at < window.to;
        for head in self.heads.iter().skip(first).take_while(|head| head.first < window.to) {
            lookup.with(head.block, |block| block.points(head.first).filter(inside).for_each(&mut each));
        }
        self.tail.iter().filter(|point| inside(point)).copied().for_each(each);
    }
}

/// A walk over borders.
struct Walk<'b> {
    sum: Sum,
    /// The integral at the last border.
    from: QuantaNs,
    next: usize,
    borders: &'b [Instant],
}

impl Walk<'_> {
    fn is_done(&self) -> bool {
        self.next >= self.borders.len()
    }

    fn pass(&mut self, each: &mut impl FnMut(usize, QuantaNs)) {
        self.sum.advance(self.borders[self.next]);
        let amount = self.sum.since(self.from);
        if amount > 0 {
            each(self.next - 1, amount);
        }
        self.from = self.sum.integral;
        self.next += 1;
    }

    /// Goes on to a point; answers whether the last border is passed.
    fn reach(&mut self, point: Point, each: &mut impl FnMut(usize, QuantaNs)) -> bool {
        while !self.is_done() && self.borders[self.next] <= point.at {
            if self.sum.level == 0 && self.sum.since(self.from) == 0 {
                // Nothing is held up to the point: the borders before it have nothing to say.
                let skipped = self.borders[self.next..].partition_point(|border| *border <= point.at);
                self.next += skipped;
                self.sum.at = self.borders[self.next - 1];
            } else {
                self.pass(each);
            }
        }
        if self.is_done() {
            return true;
        }
        self.sum.step(point);
        false
    }

    fn finish(&mut self, each: &mut impl FnMut(usize, QuantaNs)) {
        while !self.is_done() {
            self.pass(each);
        }
    }
}
