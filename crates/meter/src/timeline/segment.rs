//! A segment of the timeline, packed by series: the state of each at the start, its events, and its highest level. A
//! question about a few series reads only their data.

use super::{Event, State};
use crate::QuantaNs;
use crate::column::{Column, put_count, unzigzag, zigzag};
use crate::interval::Window;
use leasehold_model::Instant;
use leasehold_model::codec::{DecodeError, Field, Reader};
use std::ops::Range;

/// Series whose integrals are computed together.
const TOGETHER: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    bytes: Vec<u8>,
    first: Instant,
    /// For every series: its level at the start, and its integral up to the first instant.
    level: Column,
    integral: Column,
    /// The highest level after an event of this segment, and the level at its end.
    peak: Column,
    end: Column,
    /// The end of each series in the list of events; it starts where the previous series ends.
    ends: Column,
    /// For every event, by series and then by time: its difference from the first instant, and its change.
    at: Column,
    delta: Column,
}

impl Segment {
    pub(super) fn encode(base: &State, events: &[Event]) -> Self {
        let first = events[0].at;
        let mut by_series = events.to_vec();
        // A stable sort keeps the order of time within a series.
        by_series.sort_by_key(|event| event.series);
        let mut level = base.level.clone();
        let mut peak = vec![0i64; level.len()];
        let mut ends = vec![0u64; level.len()];
        for event in &by_series {
            let place = event.series as usize;
            level[place] += event.delta;
            peak[place] = peak[place].max(level[place]);
            ends[place] += 1;
        }
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            *count = end;
        }
        let unsigned = |level: &i64| u64::try_from(*level).unwrap_or(0);
        let integral =
            |(level, moment): (&i64, &i128)| (i128::from(*level) * i128::from(first.0) - moment).cast_unsigned();
        let mut bytes = Vec::with_capacity(events.len() * 8 + level.len() * 20);
        put_count(level.len(), &mut bytes);
        put_count(events.len(), &mut bytes);
        first.put(&mut bytes);
        Column::put(base.level.iter().map(unsigned), &mut bytes);
        Column::put_wide(base.level.iter().zip(&base.moment).map(integral), &mut bytes);
        Column::put(peak.iter().map(unsigned), &mut bytes);
        Column::put(level.iter().map(unsigned), &mut bytes);
        Column::put(ends.iter().copied(), &mut bytes);
        Column::put(by_series.iter().map(|event| event.at.since(first).0), &mut bytes);
        Column::put(by_series.iter().map(|event| zigzag(event.delta)), &mut bytes);
        Self::from_bytes(bytes).expect("it was just encoded")
    }

    /// Decodes a stored segment.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, DecodeError> {
        let mut r = Reader::new(&bytes);
        let (series, events) = (r.count(1 << 32)?, r.count(1 << 32)?);
        let first = Field::get(&mut r)?;
        let mut of_series = || Column::get(series, &mut r);
        let (level, integral, peak) = (of_series()?, of_series()?, of_series()?);
        let (end, ends) = (of_series()?, of_series()?);
        let (at, delta) = (Column::get(events, &mut r)?, Column::get(events, &mut r)?);
        r.finish()?;
        let rises = (1..series).all(|place| ends.at(place - 1) <= ends.at(place));
        if !rises || (series > 0 && ends.at(series - 1) != events as u64) {
            return Err(DecodeError::BadInteger);
        }
        Ok(Self { bytes, first, level, integral, peak, end, ends, at, delta })
    }

    /// The encoded bytes, unless they were taken.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the encoded bytes; the columns remain readable.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// An empty segment, used in place of one that cannot be read.
    pub fn empty() -> Self {
        let mut bytes = vec![0, 0];
        Instant(0).put(&mut bytes);
        (0..7).for_each(|_| Column::put(std::iter::empty(), &mut bytes));
        Self::from_bytes(bytes).expect("an empty one")
    }

    /// The memory in use.
    pub fn size(&self) -> usize {
        let columns = [&self.level, &self.integral, &self.peak, &self.end, &self.ends, &self.at, &self.delta];
        self.bytes.len() + columns.iter().map(|column| column.size()).sum::<usize>()
    }

    /// The number of its series; later series were created after it.
    pub(super) fn series(&self) -> usize {
        self.level.len()
    }

    #[inline]
    fn events_of(&self, series: usize) -> Range<usize> {
        let place = |end: u64| usize::try_from(end).unwrap_or(usize::MAX);
        let begin = if series == 0 { 0 } else { place(self.ends.at(series - 1)) };
        begin..place(self.ends.at(series))
    }

    #[inline]
    fn event(&self, series: u32, place: usize) -> Event {
        let at = Instant(self.first.0.wrapping_add(self.at.at(place)));
        Event { at, series, delta: unzigzag(self.delta.at(place)) }
    }

    /// The integral of each of some series up to an instant that is not before the first.
    ///
    /// A segment is rarely in the CPU cache, and the data of a series is in several places. So some series are begun
    /// together, and their events are touched before any of them is added up: the processor waits for all of them at once
    /// and not for one after the other.
    pub(super) fn integrals(&self, series: &[u32], at: Instant) -> Vec<QuantaNs> {
        let distance = at.since(self.first).0;
        let mut sums = Vec::with_capacity(series.len());
        let mut begun: [(i128, Range<usize>); TOGETHER] = std::array::from_fn(|_| (0, 0..0));
        for some in series.chunks(TOGETHER) {
            for (begun, one) in begun.iter_mut().zip(some) {
                *begun = self.begin(*one as usize, distance);
            }
            let begun = &begun[..some.len()];
            let touched = begun.iter().map(|(_, events)| self.at.at(events.start) ^ self.delta.at(events.start));
            std::hint::black_box(touched.fold(0, std::ops::BitXor::bitxor));
            sums.extend(begun.iter().map(|(start, events)| self.add_events(*start, events.clone(), distance)));
        }
        sums
    }

    /// The integral without the events of the segment, and the events.
    #[inline]
    fn begin(&self, series: usize, distance: u64) -> (i128, Range<usize>) {
        if series >= self.level.len() {
            return (0, 0..0);
        }
        let start = self.integral.at_wide(series) + u128::from(self.level.at(series)) * u128::from(distance);
        (start.cast_signed(), self.events_of(series))
    }

    #[inline]
    fn add_events(&self, mut sum: i128, events: Range<usize>, distance: u64) -> QuantaNs {
        for place in events {
            let Some(passed) = distance.checked_sub(self.at.at(place)) else { break };
            sum += i128::from(unzigzag(self.delta.at(place))) * i128::from(passed);
        }
        sum.cast_unsigned()
    }

    /// The level of a series at an instant that is not before the first.
    pub(super) fn level(&self, series: usize, at: Instant) -> i64 {
        if series >= self.level.len() {
            return 0;
        }
        let distance = at.since(self.first).0;
        let changes = self.events_of(series).take_while(|place| self.at.at(*place) <= distance);
        self.level.at(series).cast_signed() + changes.map(|place| unzigzag(self.delta.at(place))).sum::<i64>()
    }

    /// The highest level of a series after an event in it.
    pub(super) fn peak(&self, series: usize) -> i64 {
        self.peak.at(series).cast_signed()
    }

    /// The highest level after an event strictly inside the window.
    pub(super) fn peak_inside(&self, series: usize, window: Window) -> i64 {
        let (mut level, mut peak) = (self.level.at(series).cast_signed(), 0);
        for place in self.events_of(series) {
            let event = self.event(0, place);
            level += event.delta;
            if event.at > window.from && event.at < window.to {
                peak = peak.max(level);
            }
        }
        peak
    }

    /// Level and moment of every series at the start.
    pub(super) fn state(&self, series: usize) -> State {
        let mut state = State::default();
        state.grow(series);
        for place in 0..self.level.len().min(series) {
            let level = self.level.at(place).cast_signed();
            state.level[place] = level;
            state.moment[place] =
                i128::from(level) * i128::from(self.first.0) - self.integral.at_wide(place).cast_signed();
        }
        state
    }

    /// The events of the wanted series, series by series.
    pub(super) fn events(&self, wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = Event> {
        let series = (0u32..).take(self.level.len()).filter(move |series| wanted(*series));
        series.flat_map(move |series| self.events_of(series as usize).map(move |place| self.event(series, place)))
    }
}
