//! A timeline against the plainest step functions there are: a list of changes each, added up afresh for every question.

use leasehold_meter::timeline::{Keep, Lookup, NO_GROUP};
use leasehold_meter::{Segment, Timeline, Wanted};
use leasehold_model::Instant;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Segments in memory. One that was dropped is gone: asking for it again fails the test.
#[derive(Default)]
struct Kept {
    segments: BTreeMap<u64, Segment>,
    next: u64,
    dropped: u64,
}

impl Keep for Kept {
    fn put(&mut self, segment: Segment) -> u64 {
        // As it would come back from a file.
        let segment = Segment::from_bytes(segment.as_bytes().to_vec()).expect("a segment reads back");
        self.segments.insert(self.next, segment);
        self.next += 1;
        self.next - 1
    }
    fn drop(&mut self, place: u64) {
        self.dropped += 1;
        self.segments.remove(&place).expect("it is dropped once");
    }
}

impl Lookup for Kept {
    fn with<T>(&self, place: u64, look: impl FnOnce(&Segment) -> T) -> T {
        look(&self.segments[&place])
    }
}

/// The changes of some series, by instant.
#[derive(Clone, Debug, Default)]
struct Naive {
    changes: BTreeMap<u64, i128>,
}

impl Naive {
    fn change(&mut self, at: u64, delta: i128) {
        *self.changes.entry(at).or_default() += delta;
    }
    fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        all.for_each(|one| one.changes.iter().for_each(|(at, delta)| sum.change(*at, *delta)));
        sum
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
        let mut level: i128 = self.changes.range(..=from).map(|(_, delta)| delta).sum();
        let mut peak = level;
        for (_, delta) in self.changes.range((std::ops::Bound::Excluded(from), std::ops::Bound::Excluded(to))) {
            level += delta;
            peak = peak.max(level);
        }
        peak
    }
}

/// A lease: of which series, how long after the one before it starts, how long it is held, how much, and when it is known
/// that it ended: at once, or only so many leases later.
type Booking = (u32, u64, u64, u64, usize);

const SECOND: u64 = 1_000_000_000;
const SERIES: u32 = 6;

/// Many on whole tens of seconds: several end, and start, at one instant.
fn bookings(most: usize) -> impl Strategy<Value = Vec<Booking>> {
    let gap = prop_oneof![3 => Just(0u64), 2 => 1..40u64, 6 => 1..(20 * SECOND), 1 => 1..(500 * SECOND), 4 => Just(10 * SECOND)];
    let length = prop_oneof![1 => Just(0u64), 2 => 1..60u64, 6 => 1..(90 * SECOND), 8 => Just(30 * SECOND)];
    let quanta = prop_oneof![5 => 1..9u64, 1 => 1..(1u64 << 44)];
    let late = prop_oneof![6 => 0..4usize, 1 => 0..400usize];
    prop::collection::vec((0..SERIES, gap, length, quanta, late), 1..most)
}

struct Both {
    timeline: Timeline,
    kept: Kept,
    naive: Vec<Naive>,
    instants: Vec<u64>,
}

impl Both {
    fn change(&mut self, series: u32, at: u64, delta: i64) {
        while self.timeline.series() <= series as usize {
            self.timeline.add();
            self.naive.push(Naive::default());
        }
        self.timeline.change(series, Instant(at), delta, &mut self.kept);
        self.naive[series as usize].change(at, delta.into());
        self.instants.push(at);
    }
}

/// Starts in order of time; ends when they are noticed, which may be long after they took effect.
fn book(bookings: &[Booking]) -> Both {
    let mut both =
        Both { timeline: Timeline::default(), kept: Kept::default(), naive: Vec::new(), instants: Vec::new() };
    let mut ends: BTreeMap<(usize, usize), (u32, u64, i64)> = BTreeMap::new();
    let mut now = 1000;
    for (i, (series, gap, length, quanta, late)) in bookings.iter().enumerate() {
        now += gap;
        let quanta = i64::try_from(*quanta).expect("below 2^44");
        both.change(*series, now, quanta);
        ends.insert((i + late, i), (*series, now + length, quanta));
        while let Some(first) = ends.first_entry().filter(|first| first.key().0 <= i) {
            let (series, at, quanta) = first.remove();
            both.change(series, at, -quanta);
        }
    }
    both
}

/// Often an instant at which something changed, or the nanosecond beside it.
fn instant(both: &Both, draw: u64) -> u64 {
    let last = both.instants.iter().max().copied().unwrap_or(0);
    let at = both.instants[usize::try_from(draw / 8).expect("64 bits") % both.instants.len()];
    match draw % 8 {
        0..3 => at,
        3 => at + 1,
        4 => at - 1,
        _ => (draw / 8) % (last + 2000),
    }
}

fn compare(both: &Both, draws: &[u64], groups: &[u32]) -> Result<(), TestCaseError> {
    let (timeline, kept, naive) = (&both.timeline, &both.kept, &both.naive);
    let mut borders: Vec<u64> = draws.iter().map(|draw| instant(both, *draw)).collect();
    borders.sort_unstable();
    let stretches: Vec<Instant> = borders.iter().copied().map(Instant).collect();
    let count = u32::try_from(naive.len()).expect("few");
    let some: Vec<u32> = (0..count).filter(|series| groups[*series as usize] > 0).collect();
    for wanted in [Wanted::All, Wanted::These(&some)] {
        let mut amounts = BTreeMap::new();
        timeline.amounts(&stretches, wanted, kept, |place, series, amount| {
            assert!(amounts.insert((place, series), amount).is_none(), "each once");
        });
        let series = match wanted {
            Wanted::All => (0..count).collect(),
            Wanted::These(some) => some.to_vec(),
        };
        for one in series {
            let mut sum = 0;
            for (place, pair) in borders.windows(2).enumerate() {
                let found = amounts.remove(&(place, one)).unwrap_or(0);
                prop_assert_eq!(found, naive[one as usize].amount(pair[0], pair[1]), "series {} over {:?}", one, pair);
                sum += found;
            }
            // The parts of a stretch of time add up to it.
            prop_assert_eq!(sum, naive[one as usize].amount(borders[0], borders[borders.len() - 1]));
        }
        prop_assert!(amounts.is_empty(), "of others: {:?}", amounts);
    }
    for (series, one) in (0..count).zip(naive) {
        prop_assert_eq!(i128::from(timeline.last_level(series)), one.changes.values().sum::<i128>());
    }
    // From any instant on, the level there and the changes after it.
    for from in &borders {
        let (levels, later) = timeline.since(&some, Instant(*from), kept);
        prop_assert!(later.is_sorted_by_key(|event| event.at));
        for (one, level) in some.iter().zip(&levels) {
            let known = &naive[*one as usize].changes;
            prop_assert_eq!(i128::from(*level), known.range(..=from).map(|(_, delta)| delta).sum::<i128>());
            let mut changes: BTreeMap<u64, i128> = BTreeMap::new();
            for event in later.iter().filter(|event| event.series == *one) {
                *changes.entry(event.at.0).or_default() += i128::from(event.delta);
            }
            let after = (std::ops::Bound::Excluded(*from), std::ops::Bound::Unbounded);
            let expected: BTreeMap<u64, i128> = known.range(after).map(|(at, delta)| (*at, *delta)).collect();
            prop_assert_eq!(changes, expected);
        }
    }
    // In groups, and each by itself, where highest levels that are known spare the reading.
    let grouped: Vec<u32> =
        groups.iter().take(naive.len()).map(|group| group.checked_sub(1).unwrap_or(NO_GROUP)).collect();
    let alone: Vec<u32> = (0..count).collect();
    for (group_of, groups) in [(grouped, 3), (alone, naive.len())] {
        let mut peaks = BTreeMap::new();
        timeline.peaks(&stretches, &group_of, groups, kept, |place, group, peak| {
            assert!(peaks.insert((place, group), peak).is_none(), "each once");
        });
        for group in 0..u32::try_from(groups).expect("few") {
            let of_group = naive.iter().zip(&group_of).filter(|(_, of)| **of == group).map(|(one, _)| one);
            let sum = Naive::sum(of_group);
            for (place, pair) in borders.windows(2).enumerate().filter(|(_, pair)| pair[0] < pair[1]) {
                let found = peaks.remove(&(place, group)).unwrap_or(0);
                prop_assert_eq!(i128::from(found), sum.peak(pair[0], pair[1]), "group {} over {:?}", group, pair);
            }
        }
        prop_assert!(peaks.is_empty(), "of empty stretches or others: {:?}", peaks);
    }
    // No segment is kept that no head speaks of, and all lie in order.
    prop_assert_eq!(kept.segments.len(), timeline.heads().len());
    prop_assert!(timeline.heads().windows(2).all(|pair| pair[0].last < pair[1].first));
    Ok(())
}

fn draws(most: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(any::<u64>(), 2..most)
}

fn groups() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0..4u32, SERIES as usize)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_timeline_is_its_changes(bookings in bookings(900), draws in draws(24), groups in groups()) {
        compare(&book(&bookings), &draws, &groups)?;
    }

    /// What is kept of it, its heads, its base and its tail, is all there is to it.
    #[test]
    fn a_timeline_comes_back(bookings in bookings(600), draws in draws(12), groups in groups()) {
        let mut both = book(&bookings);
        let (heads, tail) = (both.timeline.heads().to_vec(), both.timeline.tail().to_vec());
        both.timeline = Timeline::restore(heads, both.timeline.base().collect(), tail).expect("sound");
        compare(&both, &draws, &groups)?;
    }
}

/// Far back, past the border of several segments: they are opened again, and cut again.
#[test]
fn a_change_far_back_opens_segments_again() {
    let late = |i: u32| if i == 10 { 880 } else { 0 };
    let many: Vec<Booking> =
        (0..900).map(|i| (i % SERIES, 7 * SECOND, 3 * SECOND, 1 + u64::from(i % 5), late(i))).collect();
    let both = book(&many);
    assert!(both.timeline.heads().len() > 3, "segments are cut");
    assert!(both.kept.dropped > 3, "and were opened");
    let draws: Vec<u64> = (1..60).map(|i| i * 0x9e37_79b9_7f4a).collect();
    compare(&both, &draws, &[1, 2, 1, 0, 3, 3]).expect("equal");
}

/// Integrals are computed for some series together: there are more of them here than that.
#[test]
fn many_series_have_each_its_own_integral() {
    const MANY: u32 = 75;
    let many: Vec<Booking> = (0..2000)
        .map(|i| (i * 31 % MANY, 7 * SECOND, u64::from(1 + i % 9) * SECOND, 1 + u64::from(i % 5), 0))
        .collect();
    let both = book(&many);
    assert!(both.timeline.heads().len() > 2, "segments are cut");
    let draws: Vec<u64> = (1..60).map(|i| i * 0x9e37_79b9_7f4a).collect();
    let groups: Vec<u32> = (0..MANY).map(|series| series % 4).collect();
    compare(&both, &draws, &groups).expect("equal");
}

/// A series that is new when segments lie closed has nothing in them, also if its first change lies there.
#[test]
fn a_late_series_has_no_past() {
    let many: Vec<Booking> = (0..700).map(|i| (i % 3, 5 * SECOND, 2 * SECOND, 2, 0)).collect();
    let mut both = book(&many);
    assert!(both.timeline.heads().len() > 2);
    let number = both.timeline.add();
    both.naive.push(Naive::default());
    let draws: Vec<u64> = (1..40).map(|i| i * 0x9e37_79b9_7f4a).collect();
    compare(&both, &draws, &[1, 1, 0, 2, 0, 0]).expect("equal");
    both.change(number, 900 * SECOND, 4);
    both.change(number, 2000 * SECOND, -4);
    compare(&both, &draws, &[1, 1, 0, 2, 0, 0]).expect("equal");
}

/// Thousands of changes in a few seconds are packed before late ones can be excluded. After one that was late, the
/// next minute is kept unpacked, because reopening segments for each of the others would take long.
#[test]
fn a_busy_minute_is_not_kept_unpacked() {
    const MILLISECOND: u64 = SECOND / 1000;
    let many: Vec<Booking> = (0..4000).map(|i| (i % SERIES, MILLISECOND, MILLISECOND / 2, 2, 0)).collect();
    let mut both = book(&many);
    assert!(both.timeline.tail().len() <= 512, "{} events in the tail", both.timeline.tail().len());
    let draws: Vec<u64> = (1..40).map(|i| i * 0x9e37_79b9_7f4a).collect();
    compare(&both, &draws, &[1, 2, 1, 0, 3, 3]).expect("equal");

    let late = 1000 + MILLISECOND;
    both.change(0, late, 1);
    let (reopened, dropped) = (both.timeline.tail().len(), both.kept.dropped);
    assert!(reopened > 7000, "all segments are open again, {reopened} events");
    both.change(1, late, 1);
    assert_eq!((both.timeline.tail().len(), both.kept.dropped), (reopened + 1, dropped), "the second finds them open");
    compare(&both, &draws, &[1, 2, 1, 0, 3, 3]).expect("equal");
}
