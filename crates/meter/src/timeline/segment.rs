//! A stretch of the timeline, packed: how every series stood at its start, its events, and the highest levels in it.

use super::{Event, State};
use crate::column::{Column, put_count, unzigzag, zigzag};
use leasehold_model::Instant;
use leasehold_model::codec::{DecodeError, Field, Reader};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    bytes: Vec<u8>,
    first: Instant,
    /// Of every series at the start: its level, and its integral up to the first instant.
    level: Column,
    integral: Column,
    /// The highest level after an event of this segment, and the level at its end.
    peak: Column,
    end: Column,
    /// Of every event: its distance from the first instant, its series, its change.
    at: Column,
    series: Column,
    delta: Column,
}

impl Segment {
    pub(super) fn encode(base: &State, events: &[Event]) -> Self {
        let first = events[0].at;
        let mut level = base.level.clone();
        let mut peak = vec![0i64; level.len()];
        for event in events {
            let place = event.series as usize;
            level[place] += event.delta;
            peak[place] = peak[place].max(level[place]);
        }
        let unsigned = |level: &i64| u64::try_from(*level).unwrap_or(0);
        let mut bytes = Vec::with_capacity(events.len() * 8 + level.len() * 16);
        put_count(level.len(), &mut bytes);
        put_count(events.len(), &mut bytes);
        first.put(&mut bytes);
        Column::put(base.level.iter().map(unsigned), &mut bytes);
        let integral =
            |(level, moment): (&i64, &i128)| (i128::from(*level) * i128::from(first.0) - moment).cast_unsigned();
        Column::put_wide(base.level.iter().zip(&base.moment).map(integral), &mut bytes);
        Column::put(peak.iter().map(unsigned), &mut bytes);
        Column::put(level.iter().map(unsigned), &mut bytes);
        Column::put(events.iter().map(|event| event.at.since(first).0), &mut bytes);
        Column::put(events.iter().map(|event| event.series.into()), &mut bytes);
        Column::put(events.iter().map(|event| zigzag(event.delta)), &mut bytes);
        Self::from_bytes(bytes).expect("what was just written")
    }

    /// As it was kept.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, DecodeError> {
        let mut r = Reader::new(&bytes);
        let (series, events) = (r.count(1 << 32)?, r.count(1 << 32)?);
        let first = Field::get(&mut r)?;
        let mut of_series = || Column::get(series, &mut r);
        let (level, integral, peak, end) = (of_series()?, of_series()?, of_series()?, of_series()?);
        let mut of_events = || Column::get(events, &mut r);
        let (at, of, delta) = (of_events()?, of_events()?, of_events()?);
        r.finish()?;
        if (0..events).any(|event| of.at(event) >= series as u64) {
            return Err(DecodeError::BadInteger);
        }
        // The bytes themselves are only for whoever keeps them.
        Ok(Self { bytes, first, level, integral, peak, end, at, series: of, delta })
    }

    /// What is kept of it, unless it was taken out.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes what is kept of it out of it: the columns are enough to read.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Stands in for one that cannot be read.
    pub fn empty() -> Self {
        let mut bytes = vec![0, 0];
        Instant(0).put(&mut bytes);
        (0..7).for_each(|_| Column::put(std::iter::empty(), &mut bytes));
        Self::from_bytes(bytes).expect("an empty one")
    }

    /// Memory that it takes.
    pub fn size(&self) -> usize {
        let columns = [&self.level, &self.integral, &self.peak, &self.end, &self.at, &self.series, &self.delta];
        self.bytes.len() + columns.iter().map(|column| column.size()).sum::<usize>()
    }

    /// Series that it knows; those after came later.
    pub(super) fn series(&self) -> usize {
        self.level.len()
    }

    /// Level and moment of a series at the start.
    pub(super) fn start(&self, series: u32) -> (i64, i128) {
        let place = series as usize;
        if place >= self.level.len() {
            return (0, 0);
        }
        let level = self.level.at(place).cast_signed();
        (level, i128::from(level) * i128::from(self.first.0) - self.integral.at_wide(place).cast_signed())
    }

    /// The highest level of a series after an event in it, and its level at the end.
    pub(super) fn peak(&self, series: usize) -> (i64, i64) {
        (self.peak.at(series).cast_signed(), self.end.at(series).cast_signed())
    }

    pub(super) fn state_into(&self, state: &mut State) {
        let known = self.level.len().min(state.level.len());
        for place in 0..known {
            let level = self.level.at(place).cast_signed();
            state.level[place] = level;
            state.moment[place] =
                i128::from(level) * i128::from(self.first.0) - self.integral.at_wide(place).cast_signed();
        }
        state.level[known..].fill(0);
        state.moment[known..].fill(0);
    }

    pub(super) fn state(&self, series: usize) -> State {
        let mut state = State::default();
        state.grow(series);
        self.state_into(&mut state);
        state
    }

    #[inline]
    fn event(&self, place: usize) -> Event {
        Event {
            at: Instant(self.first.0.wrapping_add(self.at.at(place))),
            series: u32::try_from(self.series.at(place)).unwrap_or(0),
            delta: unzigzag(self.delta.at(place)),
        }
    }

    pub(super) fn events_from(&self, first: usize) -> impl Iterator<Item = Event> + '_ {
        (first..self.at.len()).map(|place| self.event(place))
    }
    pub(super) fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.events_from(0)
    }

    /// Its events up to an instant.
    pub(super) fn events_until(&self, at: Instant) -> impl Iterator<Item = Event> + '_ {
        let distance = at.since(self.first).0;
        let (mut low, mut high) = (0, self.at.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.at.at(middle) <= distance {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (0..low).map(|place| self.event(place))
    }
}
