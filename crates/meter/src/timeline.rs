//! Step functions over time with their integrals, one per series, to the nanosecond.
//!
//! All changes are in one list in order of time. The list is split into segments, and each segment starts with the
//! level and the integral of every series. So the amounts of all series over a window of any length need two segments,
//! one at each end. The highest levels are stored per segment, so a peak does not read the segments in between.
//!
//! The latest changes are in the tail, which is not packed. Most changes are appended there, but a late change can
//! belong anywhere (the loss of a node takes effect when it was last seen).
//!
//! At the same instant, decreases come before increases, so that a hand-over is not counted twice in a peak (SEMANTICS
//! 2).

mod segment;

pub use segment::Segment;

use crate::QuantaNs;
use crate::interval::Window;
use leasehold_model::{Instant, Span};

/// From `at` on, the level of a series is higher by `delta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Instant,
    pub series: u32,
    pub delta: i64,
}

impl Event {
    fn order(&self) -> (Instant, bool) {
        (self.at, self.delta > 0)
    }
}

/// The level and the moment of every series: `level × t − moment` is the integral up to `t`, as long as nothing
/// changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    level: Vec<i64>,
    moment: Vec<i128>,
}

impl State {
    fn grow(&mut self, series: usize) {
        self.level.resize(series, 0);
        self.moment.resize(series, 0);
    }
    #[inline]
    fn apply(&mut self, event: Event) {
        let place = event.series as usize;
        self.level[place] += event.delta;
        self.moment[place] += i128::from(event.delta) * i128::from(event.at.0);
    }
    /// The integral of a series up to `at`; no event may be later than `at`.
    #[inline]
    pub fn integral(&self, series: u32, at: Instant) -> QuantaNs {
        let place = series as usize;
        (i128::from(self.level[place]) * i128::from(at.0) - self.moment[place]).cast_unsigned()
    }
}

/// The summary of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHead {
    pub first: Instant,
    pub last: Instant,
    /// Its key in the storage.
    pub place: u64,
}

/// Stores segments.
pub trait Keep {
    /// Stores a new segment and returns its key.
    fn put(&mut self, segment: Segment) -> u64;
    /// Removes a segment that was reopened.
    fn drop(&mut self, place: u64);
}

/// Reads stored segments.
pub trait Lookup {
    fn with<T>(&self, place: u64, look: impl FnOnce(&Segment) -> T) -> T;
}

/// The fewest events of a segment. Small in debug builds, so that tests create and reopen segments.
const EVENTS_MIN: usize = if cfg!(debug_assertions) { 64 } else { 16_384 };
/// Events per series, so that the start of a segment is a small part of it.
const EVENTS_PER_SERIES: usize = 4;
/// How late a change can be without reopening a segment, unless the tail is too long to wait for it.
const LATE: Span = Span::from_secs(60);
/// The most events of a tail that waits for late changes, of 24 bytes each. A busy cluster has millions in [`LATE`].
const TAIL_MAX: usize = if cfg!(debug_assertions) { 512 } else { 1 << 19 };

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    heads: Vec<SegmentHead>,
    /// The state before the tail.
    base: State,
    tail: Vec<Event>,
    /// The state after the last event.
    levels: Vec<i64>,
    /// The last event when a late change reopened a segment. Others often follow, because a lost node ends many leases.
    reopened_at: Option<Instant>,
}

/// Which series are wanted.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'w> {
    All,
    These(&'w [u32]),
}

impl Timeline {
    /// Restores a timeline from its stored parts.
    pub fn restore(heads: Vec<SegmentHead>, base: Vec<(i64, i128)>, tail: Vec<Event>) -> Option<Self> {
        let series = base.len();
        let (level, moment) = base.into_iter().unzip();
        let mut levels: Vec<i64> = Clone::clone(&level);
        for event in &tail {
            *levels.get_mut(event.series as usize)? += event.delta;
        }
        let sound = levels.len() == series && tail.is_sorted_by_key(Event::order);
        sound.then_some(Self { heads, base: State { level, moment }, tail, levels, reopened_at: None })
    }
    pub fn heads(&self) -> &[SegmentHead] {
        &self.heads
    }
    pub fn tail(&self) -> &[Event] {
        &self.tail
    }
    /// Level and moment of every series before the tail.
    pub fn base(&self) -> impl ExactSizeIterator<Item = (i64, i128)> + '_ {
        self.base.level.iter().copied().zip(self.base.moment.iter().copied())
    }
    /// The number of series.
    pub fn series(&self) -> usize {
        self.levels.len()
    }
    /// The current level of a series.
    pub fn last_level(&self, series: u32) -> u64 {
        u64::try_from(self.levels[series as usize]).unwrap_or(0)
    }

    /// Creates a series with the next number.
    pub fn add(&mut self) -> u32 {
        let number = u32::try_from(self.levels.len()).expect("fewer than 2^32 series");
        self.levels.push(0);
        self.base.grow(self.levels.len());
        number
    }

    /// From `at` on, the level of a series is higher by `delta`.
    pub fn change(&mut self, series: u32, at: Instant, delta: i64, keep: &mut (impl Keep + Lookup)) {
        if delta == 0 {
            return;
        }
        let level = &mut self.levels[series as usize];
        *level += delta;
        assert!(*level >= 0, "a level cannot be negative");
        let event = Event { at, series, delta };
        if self.tail.last().is_none_or(|last| last.order() <= event.order())
            && self.heads.last().is_none_or(|head| at > head.last)
        {
            self.tail.push(event);
        } else {
            self.change_before_the_end(event, keep);
        }
        self.cut_if_long(keep);
    }

    fn change_before_the_end(&mut self, event: Event, keep: &mut (impl Keep + Lookup)) {
        let mut reopened = Vec::new();
        while let Some(head) = self.heads.pop_if(|head| event.at <= head.last) {
            let (base, mut events) = keep.with(head.place, |segment| {
                (segment.state(self.levels.len()), segment.events(|_| true).collect::<Vec<_>>())
            });
            events.sort_by_key(Event::order);
            keep.drop(head.place);
            reopened.push(events);
            self.base = base;
        }
        if !reopened.is_empty() {
            self.reopened_at = self.tail.last().map(|last| last.at);
            let later = std::mem::take(&mut self.tail);
            self.tail = reopened.into_iter().rev().chain([later]).flatten().collect();
        }
        let place = self.tail.partition_point(|other| other.order() <= event.order());
        self.tail.insert(place, event);
    }

    fn cut_if_long(&mut self, keep: &mut impl Keep) {
        let events = EVENTS_MIN.max(self.levels.len() * EVENTS_PER_SERIES);
        // Only if at least half of it can be packed, because moving the rest takes time.
        if self.tail.len() < 2 * events || !self.is_settled(self.tail.len() / 2, events) {
            return;
        }
        let mut done = 0;
        while self.tail.len() - done >= 2 * events {
            let rest = &self.tail[done..];
            // Events of the same instant are in the same segment.
            let cut = events + rest[events..].partition_point(|event| event.at == rest[events - 1].at);
            if !self.is_settled(done + cut, events) {
                break;
            }
            let (first, last) = (rest[0].at, rest[cut - 1].at);
            let segment = Segment::encode(&self.base, &rest[..cut]);
            self.heads.push(SegmentHead { first, last, place: keep.put(segment) });
            rest[..cut].iter().for_each(|event| self.base.apply(*event));
            done += cut;
        }
        self.tail.drain(..done);
    }

    /// Whether the events before `next` may be packed into segments of `events`: late changes are no longer expected
    /// there, or the tail is too long. A little late are many changes, so the later half of a long tail stays.
    fn is_settled(&self, next: usize, events: usize) -> bool {
        let Some((first_kept, last)) = self.tail.get(next).zip(self.tail.last()) else { return false };
        let expects_more = || self.reopened_at.is_some_and(|at| last.at.since(at) < LATE);
        let is_too_long = self.tail.len() >= TAIL_MAX.max(4 * events);
        last.at.since(first_kept.at) >= LATE || (is_too_long && next <= self.tail.len() / 2 && !expects_more())
    }

    /// The segment that contains an instant; `None` if it is in the tail.
    fn segment_of(&self, at: Instant) -> Option<usize> {
        if self.tail.first().is_some_and(|first| first.at <= at) {
            return None;
        }
        self.heads.partition_point(|head| head.first <= at).checked_sub(1)
    }

    /// The integral of each wanted series up to an instant.
    fn integrals(&self, series: &[u32], at: Instant, lookup: &impl Lookup) -> Vec<QuantaNs> {
        if let Some(place) = self.segment_of(at) {
            return lookup.with(self.heads[place].place, |segment| segment.integrals(series, at));
        }
        let state = self.state_in_tail(at);
        series.iter().map(|one| state.integral(*one, at)).collect()
    }

    /// The level of each wanted series at an instant.
    fn levels_at(&self, at: Instant, lookup: &impl Lookup) -> Vec<i64> {
        if let Some(place) = self.segment_of(at) {
            return lookup.with(self.heads[place].place, |segment| {
                (0..self.levels.len()).map(|series| segment.level(series, at)).collect()
            });
        }
        self.state_in_tail(at).level
    }

    /// The level of some series at an instant, and their later changes in order of time. `series` must be sorted.
    pub fn since(&self, series: &[u32], from: Instant, lookup: &impl Lookup) -> (Vec<i64>, Vec<Event>) {
        let all = self.levels_at(from, lookup);
        let levels = series.iter().map(|one| all[*one as usize]).collect();
        let is_wanted = |one: u32| series.binary_search(&one).is_ok();
        let mut later = Vec::new();
        let start = self.heads.partition_point(|head| head.last <= from);
        for head in &self.heads[start..] {
            lookup.with(head.place, |segment| {
                later.extend(segment.events(is_wanted).filter(|event| event.at > from));
            });
        }
        let first = self.tail.partition_point(|event| event.at <= from);
        later.extend(self.tail[first..].iter().filter(|event| is_wanted(event.series)));
        later.sort_by_key(Event::order);
        (levels, later)
    }

    /// The state at an instant in the tail, or before all events.
    fn state_in_tail(&self, at: Instant) -> State {
        let until = self.tail.partition_point(|event| event.at <= at);
        if until == 0 {
            let mut nothing = State::default();
            nothing.grow(self.levels.len());
            return nothing;
        }
        let mut state = self.base.clone();
        self.tail[..until].iter().for_each(|event| state.apply(*event));
        state
    }

    /// The amounts over each interval between two neighbouring borders, which must be sorted. `each` gets the index of
    /// the interval, the series and its amount; zeros are omitted.
    pub fn amounts(
        &self,
        borders: &[Instant],
        wanted: Wanted<'_>,
        lookup: &impl Lookup,
        mut each: impl FnMut(usize, u32, QuantaNs),
    ) {
        let all: Vec<u32>;
        let series = match wanted {
            Wanted::These(series) => series,
            Wanted::All => {
                all = (0..u32::try_from(self.levels.len()).expect("as numbered")).collect();
                &all
            }
        };
        let Some(first) = borders.first() else { return };
        let mut before = self.integrals(series, *first, lookup);
        for (stretch, border) in borders[1..].iter().enumerate() {
            let now = self.integrals(series, *border, lookup);
            for ((one, before), now) in series.iter().zip(&before).zip(&now) {
                if now > before {
                    each(stretch, *one, now - before);
                }
            }
            before = now;
        }
    }

    /// The highest level of each group of series within each interval; `group_of` has the group of every series, or
    /// [`NO_GROUP`]. `each` gets the index of the interval, the group and its peak; zeros are omitted.
    pub fn peaks(
        &self,
        borders: &[Instant],
        group_of: &[u32],
        groups: usize,
        lookup: &impl Lookup,
        mut each: impl FnMut(usize, u32, u64),
    ) {
        let mut members = vec![0u32; groups];
        group_of.iter().filter(|group| **group != NO_GROUP).for_each(|group| members[*group as usize] += 1);
        let alone = members.iter().all(|count| *count <= 1);
        for (piece, pair) in borders.windows(2).enumerate() {
            let window = Window::new(pair[0], pair[1]);
            if window.is_empty() {
                continue;
            }
            let levels = self.levels_at(window.from, lookup);
            let mut sweep = Sweep { level: vec![0; groups], peak: vec![0; groups], group_of };
            for (level, group) in levels.iter().zip(group_of).filter(|(_, group)| **group != NO_GROUP) {
                sweep.level[*group as usize] += level;
            }
            sweep.peak.copy_from_slice(&sweep.level);
            self.sweep(window, alone, &mut sweep, lookup);
            for (group, peak) in (0u32..).zip(&sweep.peak) {
                if let Ok(peak @ 1..) = u64::try_from(*peak) {
                    each(piece, group, peak);
                }
            }
        }
    }

    fn sweep(&self, window: Window, alone: bool, sweep: &mut Sweep<'_>, lookup: &impl Lookup) {
        let start = self.heads.partition_point(|head| head.last <= window.from);
        for head in self.heads[start..].iter().take_while(|head| head.first < window.to) {
            let whole = head.first > window.from && head.last < window.to;
            lookup.with(head.place, |segment| match alone {
                true => sweep.raise(segment, (!whole).then_some(window)),
                false => {
                    let of_groups = segment.events(|series| sweep.group_of[series as usize] != NO_GROUP);
                    let mut events: Vec<Event> =
                        of_groups.filter(|event| event.at > window.from && event.at < window.to).collect();
                    events.sort_by_key(Event::order);
                    events.into_iter().for_each(|event| sweep.step(event));
                }
            });
        }
        // Series that form a group alone used the stored peaks, so their level is the one before the tail.
        if alone {
            for (level, group) in self.base.level.iter().zip(sweep.group_of).filter(|(_, group)| **group != NO_GROUP) {
                sweep.level[*group as usize] = *level;
            }
            let passed = self.tail.partition_point(|event| event.at <= window.from);
            for event in &self.tail[..passed] {
                sweep.pass(*event);
            }
        }
        let first = self.tail.partition_point(|event| event.at <= window.from);
        self.tail[first..].iter().take_while(|event| event.at < window.to).for_each(|event| sweep.step(*event));
    }
}

/// Marks a series that is in no group.
pub const NO_GROUP: u32 = u32::MAX;

struct Sweep<'g> {
    level: Vec<i64>,
    peak: Vec<i64>,
    group_of: &'g [u32],
}

impl Sweep<'_> {
    fn pass(&mut self, event: Event) -> Option<usize> {
        let group = self.group_of[event.series as usize];
        (group != NO_GROUP).then(|| {
            self.level[group as usize] += event.delta;
            group as usize
        })
    }

    fn step(&mut self, event: Event) {
        if let Some(group) = self.pass(event) {
            self.peak[group] = self.peak[group].max(self.level[group]);
        }
    }

    /// Adds a segment series by series: the highest level in it, or in its part inside a window.
    fn raise(&mut self, segment: &Segment, inside: Option<Window>) {
        for (series, group) in self.group_of.iter().enumerate().take(segment.series()) {
            if *group != NO_GROUP {
                let whole = segment.peak(series);
                let peak = &mut self.peak[*group as usize];
                if whole > *peak {
                    *peak = inside.map_or(whole, |window| segment.peak_inside(series, window)).max(*peak);
                }
            }
        }
    }
}
