//! A series against the plainest step function there is: a list of changes, added up afresh for every question.

use leasehold_meter::series::Lookup;
use leasehold_meter::{Block, Payloads, Point, Series, Window};
use leasehold_model::Instant;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Blocks in memory. One that was dropped is gone: asking for it again fails the test.
#[derive(Default)]
struct Kept {
    blocks: BTreeMap<u64, Block>,
    next: u64,
}

impl Payloads for Kept {
    fn put(&mut self, block: Block) -> u64 {
        // As it would come back from a file.
        let block = Block::from_bytes(block.as_bytes()).expect("a block reads back");
        self.blocks.insert(self.next, block);
        self.next += 1;
        self.next - 1
    }
    fn drop(&mut self, block: u64) {
        self.blocks.remove(&block).expect("it is dropped once");
    }
}

impl Lookup for Kept {
    fn with<T>(&self, block: u64, look: impl FnOnce(&Block) -> T) -> T {
        look(&self.blocks[&block])
    }
}

/// Leases as they were booked: quanta, from, to.
#[derive(Clone, Debug, Default)]
struct Naive {
    changes: BTreeMap<u64, i128>,
}

impl Naive {
    fn change(&mut self, at: u64, delta: i64) {
        let sum = self.changes.entry(at).or_default();
        *sum += i128::from(delta);
        if *sum == 0 {
            self.changes.remove(&at);
        }
    }
    fn level(&self, at: u64) -> i128 {
        self.changes.range(..=at).map(|(_, delta)| delta).sum()
    }
    fn amount(&self, from: u64, to: u64) -> u128 {
        let mut sum = 0;
        for (at, delta) in &self.changes {
            sum += delta * i128::from(to.saturating_sub(*at));
            sum -= delta * i128::from(from.saturating_sub(*at));
        }
        u128::try_from(sum).expect("levels are not negative")
    }
    fn peak(&self, from: u64, to: u64) -> i128 {
        let inside = self.changes.range(from..to.max(from)).map(|(at, _)| self.level(*at));
        if from >= to { 0 } else { inside.chain([self.level(from)]).max().expect("one at least") }
    }
}

/// A lease: how long after the one before it starts, how long it is held, how much, and when it is known that it ended:
/// at once, or only so many leases later.
type Booking = (u64, u64, u64, usize);

fn bookings(most: usize) -> impl Strategy<Value = Vec<Booking>> {
    let gap = prop_oneof![3 => Just(0u64), 6 => 1..40u64, 1 => 1..5_000_000_000u64];
    let length = prop_oneof![1 => Just(0u64), 6 => 1..60u64, 1 => 1..9_000_000_000u64];
    let quanta = prop_oneof![5 => 1..9u64, 1 => 1..(1u64 << 48)];
    let late = prop_oneof![6 => 0..4usize, 1 => 0..400usize];
    prop::collection::vec((gap, length, quanta, late), 1..most)
}

struct Both {
    series: Series,
    kept: Kept,
    naive: Naive,
    last: u64,
    reopened: bool,
}

impl Both {
    fn change(&mut self, at: u64, delta: i64) {
        let blocks = self.kept.next;
        let heads = self.series.heads().len();
        self.series.change(Instant(at), delta, &mut self.kept);
        self.naive.change(at, delta);
        self.reopened |= self.kept.next > blocks && self.series.heads().len() <= heads;
    }
}

/// Starts in order of time; ends when they are noticed, which may be long after they took effect.
fn book(bookings: &[Booking]) -> Both {
    let mut both =
        Both { series: Series::default(), kept: Kept::default(), naive: Naive::default(), last: 0, reopened: false };
    let mut ends: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    let mut now = 1000;
    for (i, (gap, length, quanta, late)) in bookings.iter().enumerate() {
        now += gap;
        both.change(now, i64::try_from(*quanta).expect("below 2^48"));
        ends.insert((i + late, i), (now + length, *quanta));
        while let Some(first) = ends.first_entry().filter(|first| first.key().0 <= i) {
            let (at, quanta) = first.remove();
            both.change(at, -i64::try_from(quanta).expect("below 2^48"));
            now = now.max(at);
        }
        both.last = now;
    }
    both
}

fn instant(both: &Both, draw: u64) -> u64 {
    // Often an instant at which something changed, or the nanosecond beside it.
    let changes = &both.naive.changes;
    match (changes.keys().nth(usize::try_from(draw % 997).expect("small") % changes.len().max(1)), draw % 8) {
        (Some(at), 0..3) => *at,
        (Some(at), 3) => at + 1,
        (Some(at), 4) => at - 1,
        _ => draw % (both.last + 2000),
    }
}

fn compare(both: &Both, draws: &[u64]) -> Result<(), TestCaseError> {
    let (series, kept, naive) = (&both.series, &both.kept, &both.naive);
    let mut borders: Vec<u64> = draws.iter().map(|draw| instant(both, *draw)).collect();
    for pair in borders.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let (window, amount) = (Window::new(Instant(from), Instant(to)), naive.amount(from.min(to), to));
        let (integral, level) = series.at(Instant(from), kept);
        prop_assert_eq!(integral, naive.amount(0, from), "integral up to {}", from);
        prop_assert_eq!(i128::from(level), naive.level(from), "level at {}", from);
        prop_assert_eq!(series.amount(window, kept), amount, "amount {}..{}", from, to);
        prop_assert_eq!(i128::from(series.peak(window, kept)), naive.peak(from, to), "peak {}..{}", from, to);
        let mut points = Vec::new();
        series.points(window, kept, |Point { at, delta }| points.push((at.0, i128::from(delta))));
        let inside = naive.changes.iter().filter(|(at, _)| **at > from && **at < to);
        prop_assert_eq!(points, inside.map(|(at, delta)| (*at, *delta)).collect::<Vec<_>>(), "points {}..{}", from, to);
    }
    borders.sort_unstable();
    let stretches: Vec<Instant> = borders.iter().copied().map(Instant).collect();
    let mut amounts = vec![0; borders.len()];
    series.amounts(&stretches, kept, |place, amount| amounts[place] += amount);
    for (place, pair) in borders.windows(2).enumerate() {
        prop_assert_eq!(amounts[place], naive.amount(pair[0], pair[1]), "{:?} of {:?}", pair, borders);
    }
    // The parts of a stretch of time add up to it.
    let whole = Window::new(stretches[0], stretches[stretches.len() - 1]);
    prop_assert_eq!(amounts.iter().sum::<u128>(), series.amount(whole, kept));
    prop_assert_eq!(i128::from(series.last_level()), naive.changes.values().sum::<i128>());
    // No block is kept that no head speaks of.
    prop_assert_eq!(kept.blocks.len(), series.heads().len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_series_is_its_changes(bookings in bookings(700), draws in prop::collection::vec(any::<u64>(), 2..24)) {
        compare(&book(&bookings), &draws)?;
    }

    /// What is kept of a series, its heads and its tail, is all there is to it.
    #[test]
    fn a_series_comes_back(bookings in bookings(400), draws in prop::collection::vec(any::<u64>(), 2..24)) {
        let mut both = book(&bookings);
        let (level, integral) = both.series.tail_base();
        let (heads, tail) = (both.series.heads().to_vec(), both.series.tail().to_vec());
        both.series = Series::restore(heads, tail, level, integral).expect("sound");
        compare(&both, &draws)?;
    }

    /// Σ over parts of a series, however it is parted among holders, is the series of all.
    #[test]
    fn holders_add_up(bookings in bookings(300), holders in 1..5usize, draws in prop::collection::vec(any::<u64>(), 2..8)) {
        let all = book(&bookings);
        let mut parts: Vec<(Series, Kept)> = (0..holders).map(|_| (Series::default(), Kept::default())).collect();
        let mut now = 1000;
        for (i, (gap, length, quanta, _)) in bookings.iter().enumerate() {
            let (series, kept) = &mut parts[i % holders];
            now += gap;
            let quanta = i64::try_from(*quanta).expect("below 2^48");
            series.change(Instant(now), quanta, kept);
            series.change(Instant(now + length), -quanta, kept);
        }
        // The same leases, booked without delay: the instants differ, so only this story is compared with itself.
        let mut whole = (Series::default(), Kept::default());
        let mut now = 1000;
        for (gap, length, quanta, _) in &bookings {
            now += gap;
            let quanta = i64::try_from(*quanta).expect("below 2^48");
            whole.0.change(Instant(now), quanta, &mut whole.1);
            whole.0.change(Instant(now + length), -quanta, &mut whole.1);
        }
        for pair in draws.windows(2) {
            let window = Window::new(Instant(instant(&all, pair[0])), Instant(instant(&all, pair[1])));
            let sum: u128 = parts.iter().map(|(series, kept)| series.amount(window, kept)).sum();
            prop_assert_eq!(sum, whole.0.amount(window, &whole.1));
        }
    }
}

/// Far back, past the border of several blocks, and then everything at once: blocks are opened and cut again.
#[test]
fn a_change_far_back_opens_blocks_again() {
    let many: Vec<Booking> = (0..500).map(|i| (7, 3, 1 + i % 5, if i == 10 { 480 } else { 0 })).collect();
    let both = book(&many);
    assert!(both.series.heads().len() > 3 && both.reopened, "blocks were cut and opened");
    compare(&both, &(0..60).map(|i| i * 0x9e37_79b9).collect::<Vec<_>>()).expect("equal");
}

/// All of it is taken back: nothing is left, also not of the blocks.
#[test]
fn what_cancels_leaves_nothing() {
    let (mut series, mut kept) = (Series::default(), Kept::default());
    for at in 0..300u64 {
        series.change(Instant(10 * at), 2, &mut kept);
    }
    for at in 0..300u64 {
        series.change(Instant(10 * at), -2, &mut kept);
    }
    let all = Window::new(Instant(0), Instant::MAX);
    assert_eq!((series.amount(all, &kept), series.peak(all, &kept), series.last_level()), (0, 0, 0));
    assert!(kept.blocks.is_empty() && series.heads().is_empty());
    series.change(Instant(5), 3, &mut kept);
    assert_eq!(series.amount(Window::new(Instant(0), Instant(10)), &kept), 15);
}

/// What a store is told to keep of the heads: those that were opened since are to be kept again, also if as many as
/// before are left.
#[test]
fn heads_that_were_opened_again_are_not_as_they_were_kept() {
    let (mut series, mut kept) = (Series::default(), Kept::default());
    for at in 0..320u64 {
        series.change(Instant(100 + 10 * at), if at % 2 == 0 { 5 } else { -5 }, &mut kept);
    }
    series.keep_heads();
    let before = series.heads().to_vec();
    assert_eq!(series.heads_kept(), before.len());
    series.change(Instant(100 + 10 * 140 + 3), 2, &mut kept);
    series.change(Instant(100 + 10 * 320), -2, &mut kept);
    assert!(series.heads().len() >= before.len(), "the blocks were cut again at once");
    let same = series.heads().iter().zip(&before).take_while(|(now, then)| now == then).count();
    assert!(
        same < before.len() && series.heads_kept() <= same,
        "{} are said to be kept, {same} are",
        series.heads_kept()
    );
}
