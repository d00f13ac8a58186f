//! Many quantities over time, with their integrals: what was held, of everything, at every nanosecond.
//!
//! All changes lie in one list in the order of time. It is cut into segments, and each begins with the level and the
//! integral of every series at its start. So the amounts of all series over any window take two segments, one at each
//! end, however long the window and however long the list; and each segment's highest levels spare a peak the reading of
//! all segments between.
//!
//! The last changes lie open in the tail: nearly everything happens there, but a change may come late and lie anywhere (a
//! node's loss takes effect when it was last seen).
//!
//! Within an instant ends come before starts: a hand-over does not count twice in a peak (SEMANTICS 2).

mod segment;

pub use segment::Segment;

use crate::QuantaNs;
use crate::interval::Window;
use leasehold_model::{Instant, Span};

/// From `at` on the level of a series is higher by `delta`.
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

/// The level of every series, and what makes its integral: `level × t − moment` is the integral up to `t`, as long as
/// nothing changes.
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
    /// The level of a series.
    pub fn level(&self, series: u32) -> u64 {
        u64::try_from(self.level[series as usize]).unwrap_or(0)
    }
    /// The integral of a series up to `at`, which no event has passed.
    #[inline]
    pub fn integral(&self, series: u32, at: Instant) -> QuantaNs {
        let place = series as usize;
        (i128::from(self.level[place]) * i128::from(at.0) - self.moment[place]).cast_unsigned()
    }
}

/// A segment, and what is known of it without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHead {
    pub first: Instant,
    pub last: Instant,
    /// Where it lies, in words of whoever keeps it.
    pub place: u64,
}

/// Keeps segments.
pub trait Keep {
    /// Keeps a new one and answers where.
    fn put(&mut self, segment: Segment) -> u64;
    /// Forgets one that was opened again.
    fn drop(&mut self, place: u64);
}

/// Finds segments that are kept.
pub trait Lookup {
    fn with<T>(&self, place: u64, look: impl FnOnce(&Segment) -> T) -> T;
}

/// Events in a segment, at the least.
const EVENTS_MIN: usize = 16_384;
/// Events for each series: what a segment's beginning costs is a small part of the whole.
const EVENTS_PER_SERIES: usize = 4;
/// How late a change may come without a segment being opened again.
const LATE: Span = Span::from_secs(60);

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    heads: Vec<SegmentHead>,
    /// Before the tail.
    base: State,
    tail: Vec<Event>,
    /// After everything.
    levels: Vec<i64>,
}

/// Which series are asked for.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'w> {
    All,
    /// In order.
    These(&'w [u32]),
}

impl Timeline {
    /// As it was kept.
    pub fn restore(heads: Vec<SegmentHead>, base: Vec<(i64, i128)>, tail: Vec<Event>) -> Option<Self> {
        let series = base.len();
        let (level, moment) = base.into_iter().unzip();
        let mut levels: Vec<i64> = Clone::clone(&level);
        for event in &tail {
            *levels.get_mut(event.series as usize)? += event.delta;
        }
        let sound = levels.len() == series && tail.is_sorted_by_key(Event::order);
        sound.then_some(Self { heads, base: State { level, moment }, tail, levels })
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
    /// How many series there are.
    pub fn series(&self) -> usize {
        self.levels.len()
    }
    /// The level of a series from its last change on.
    pub fn last_level(&self, series: u32) -> u64 {
        u64::try_from(self.levels[series as usize]).unwrap_or(0)
    }

    /// A new series; its number is the next.
    pub fn add(&mut self) -> u32 {
        let number = u32::try_from(self.levels.len()).expect("fewer than 2^32 series");
        self.levels.push(0);
        self.base.grow(self.levels.len());
        number
    }

    /// From `at` on the level of a series is higher by `delta`.
    pub fn change(&mut self, series: u32, at: Instant, delta: i64, keep: &mut (impl Keep + Lookup)) {
        if delta == 0 {
            return;
        }
        let level = &mut self.levels[series as usize];
        *level += delta;
        assert!(*level >= 0, "what ends was held before");
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
        while let Some(head) = self.heads.pop_if(|head| event.at <= head.last) {
            let (base, mut events) = keep
                .with(head.place, |segment| (segment.state(self.levels.len()), segment.events().collect::<Vec<_>>()));
            keep.drop(head.place);
            events.append(&mut self.tail);
            (self.tail, self.base) = (events, base);
        }
        let place = self.tail.partition_point(|other| other.order() <= event.order());
        self.tail.insert(place, event);
    }

    fn cut_if_long(&mut self, keep: &mut impl Keep) {
        let events = EVENTS_MIN.max(self.levels.len() * EVENTS_PER_SERIES);
        while self.tail.len() >= 2 * events {
            // An instant lies in one segment.
            let cut = events + self.tail[events..].partition_point(|event| event.at == self.tail[events - 1].at);
            let settled = self.tail.get(cut).zip(self.tail.last());
            if settled.is_none_or(|(next, last)| last.at.since(next.at) < LATE) {
                return;
            }
            let events = &self.tail[..cut];
            let (first, last) = (events[0].at, events[cut - 1].at);
            let segment = Segment::encode(&self.base, events);
            self.heads.push(SegmentHead { first, last, place: keep.put(segment) });
            events.iter().for_each(|event| self.base.apply(*event));
            self.tail.drain(..cut);
        }
    }

    /// The segment that holds what happened up to an instant; none if that is the tail.
    fn segment_of(&self, at: Instant) -> Option<usize> {
        if self.tail.first().is_some_and(|first| first.at <= at) {
            return None;
        }
        self.heads.partition_point(|head| head.first <= at).checked_sub(1)
    }

    /// Every series as it was at an instant.
    pub fn state_at(&self, at: Instant, lookup: &impl Lookup) -> State {
        let mut walk = Walk::begin(self);
        walk.go_to(at, lookup);
        walk.state
    }

    /// The integrals of a few series up to each of the instants.
    fn integrals_of(&self, series: &[u32], at: Instant, lookup: &impl Lookup) -> Vec<QuantaNs> {
        let value = |level: i64, moment: i128| (i128::from(level) * i128::from(at.0) - moment).cast_unsigned();
        let Some(place) = self.segment_of(at) else {
            let began = self.tail.first().is_some_and(|first| first.at <= at);
            if !began {
                return vec![0; series.len()];
            }
            let until = self.tail.partition_point(|event| event.at <= at);
            let start = |one: &u32| (self.base.level[*one as usize], self.base.moment[*one as usize]);
            let mut states: Vec<(i64, i128)> = series.iter().map(start).collect();
            sum_up(self.tail[..until].iter().copied(), series, self.levels.len(), &mut states);
            return states.into_iter().map(|(level, moment)| value(level, moment)).collect();
        };
        lookup.with(self.heads[place].place, |segment| {
            let mut states: Vec<(i64, i128)> = series.iter().map(|one| segment.start(*one)).collect();
            sum_up(segment.events_until(at), series, self.levels.len(), &mut states);
            states.into_iter().map(|(level, moment)| value(level, moment)).collect()
        })
    }

    /// The amounts over each stretch between two neighbouring borders, which are in order: `each` gets the place of the
    /// stretch, the series and its amount, for those that have any.
    pub fn amounts(
        &self,
        borders: &[Instant],
        wanted: Wanted<'_>,
        lookup: &impl Lookup,
        mut each: impl FnMut(usize, u32, QuantaNs),
    ) {
        match wanted {
            Wanted::These(series) if borders.len() <= 3 => {
                let ends: Vec<Vec<QuantaNs>> =
                    borders.iter().map(|border| self.integrals_of(series, *border, lookup)).collect();
                for (piece, pair) in ends.windows(2).enumerate() {
                    for (place, one) in series.iter().enumerate() {
                        let amount = pair[1][place] - pair[0][place];
                        if amount > 0 {
                            each(piece, *one, amount);
                        }
                    }
                }
            }
            _ => {
                let all: Vec<u32>;
                let series = match wanted {
                    Wanted::These(series) => series,
                    Wanted::All => {
                        all = (0..u32::try_from(self.levels.len()).expect("as numbered")).collect();
                        &all
                    }
                };
                let mut walk = Walk::begin(self);
                let mut before = vec![0; series.len()];
                for (place, border) in borders.iter().enumerate() {
                    walk.go_to(*border, lookup);
                    for (before, one) in before.iter_mut().zip(series) {
                        let now = walk.state.integral(*one, *border);
                        if place > 0 && now > *before {
                            each(place - 1, *one, now - *before);
                        }
                        *before = now;
                    }
                }
            }
        }
    }

    /// The highest level of each group of series within each stretch; `group_of` has the group of every series, or
    /// [`NO_GROUP`]. `each` gets the place of the stretch, the group and its peak, for those that have any.
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
            let state = self.state_at(window.from, lookup);
            let mut sweep = Sweep { level: vec![0; groups], peak: vec![0; groups], group_of };
            for (place, group) in group_of.iter().enumerate().filter(|(_, group)| **group != NO_GROUP) {
                sweep.level[*group as usize] += state.level[place];
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
            lookup.with(head.place, |segment| {
                if whole && alone {
                    sweep.raise(segment);
                } else {
                    let inside = segment.events().filter(|event| event.at > window.from && event.at < window.to);
                    inside.for_each(|event| sweep.step(event));
                }
            });
        }
        let first = self.tail.partition_point(|event| event.at <= window.from);
        self.tail[first..].iter().take_while(|event| event.at < window.to).for_each(|event| sweep.step(*event));
    }
}

/// A series that is in no group.
pub const NO_GROUP: u32 = u32::MAX;

struct Sweep<'g> {
    level: Vec<i64>,
    peak: Vec<i64>,
    group_of: &'g [u32],
}

impl Sweep<'_> {
    fn step(&mut self, event: Event) {
        let group = self.group_of[event.series as usize];
        if group != NO_GROUP {
            let group = group as usize;
            self.level[group] += event.delta;
            self.peak[group] = self.peak[group].max(self.level[group]);
        }
    }

    /// Takes a segment as a whole: its highest levels, and its levels at its end, which only matter to later steps.
    fn raise(&mut self, segment: &Segment) {
        for (place, group) in self.group_of.iter().enumerate().take(segment.series()) {
            if *group != NO_GROUP {
                let group = *group as usize;
                let (peak, end) = segment.peak(place);
                self.peak[group] = self.peak[group].max(peak);
                self.level[group] = end;
            }
        }
    }
}

/// Adds events of a few series to their states.
fn sum_up(events: impl Iterator<Item = Event>, series: &[u32], all: usize, states: &mut [(i64, i128)]) {
    let mut slots = vec![u32::MAX; all];
    for (slot, one) in (0u32..).zip(series) {
        slots[*one as usize] = slot;
    }
    for event in events {
        if let Some(slot) = slots.get(event.series as usize).filter(|slot| **slot != u32::MAX) {
            let (level, moment) = &mut states[*slot as usize];
            *level += event.delta;
            *moment += i128::from(event.delta) * i128::from(event.at.0);
        }
    }
}

/// A reader that goes forward, from segment to segment or over many at once.
struct Walk<'t> {
    timeline: &'t Timeline,
    state: State,
    /// The segment whose events are being applied, and how many were; the tail comes after the last.
    segment: Option<usize>,
    applied: usize,
}

impl<'t> Walk<'t> {
    fn begin(timeline: &'t Timeline) -> Self {
        let mut state = State::default();
        state.grow(timeline.levels.len());
        Self { timeline, state, segment: None, applied: 0 }
    }

    fn go_to(&mut self, at: Instant, lookup: &impl Lookup) {
        let timeline = self.timeline;
        let tail = timeline.heads.len();
        let target = match timeline.segment_of(at) {
            Some(place) => place,
            None if timeline.tail.first().is_some_and(|first| first.at <= at) => tail,
            None => return,
        };
        if self.segment != Some(target) {
            (self.segment, self.applied) = (Some(target), 0);
            if target == tail {
                self.state.clone_from(&timeline.base);
            } else {
                lookup.with(timeline.heads[target].place, |segment| segment.state_into(&mut self.state));
            }
        }
        let (state, applied) = (&mut self.state, &mut self.applied);
        if target == tail {
            for event in timeline.tail[*applied..].iter().take_while(|event| event.at <= at) {
                state.apply(*event);
                *applied += 1;
            }
        } else {
            lookup.with(timeline.heads[target].place, |segment| {
                for event in segment.events_from(*applied).take_while(|event| event.at <= at) {
                    state.apply(event);
                    *applied += 1;
                }
            });
        }
    }
}
