//! The events of a sink that are in memory, in lanes.
//!
//! A lane has the events with one order key. Only the first event of a lane may be in flight, so events of a key
//! arrive in order. Lanes that failed by themselves wait until their own time.

use crate::event::Place;
use crate::message::Message;
use leasehold_model::Instant;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A job that sends events again: a retry, a replay or a reconciliation.
pub type JobNo = u64;

/// Why an event is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was read in the course of things; the number counts the events that were read.
    Cursor { ordinal: u64 },
    /// A job sends it again.
    Job(JobNo),
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) message: Arc<Message>,
    pub(crate) origin: Origin,
}

#[derive(Debug, Default)]
pub(crate) struct Lane {
    places: BTreeSet<Place>,
    /// The event that is in flight.
    flying: Option<Place>,
    /// Not before this time.
    retry_at: Option<Instant>,
    /// Where it is entered in `ready`.
    ready: Option<Place>,
    /// Failures of the first event, for whatever cause.
    pub(crate) failures: u32,
    /// Failures of the first event while other lanes succeeded, and since when.
    pub(crate) alone: u32,
    pub(crate) alone_since: Option<Instant>,
    /// How many successes the sink had when it failed last.
    pub(crate) successes_then: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    items: BTreeMap<Place, Item>,
    lanes: HashMap<Arc<str>, Lane>,
    /// The first events of lanes that may be sent.
    ready: BTreeSet<Place>,
    /// Lanes that wait for their own time.
    waiting: BTreeSet<(Instant, Arc<str>)>,
    bytes: usize,
    of_jobs: usize,
    flying: usize,
}

impl Lanes {
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
    pub(crate) fn flying(&self) -> usize {
        self.flying
    }
    /// How many are not of jobs.
    pub(crate) fn of_cursor(&self) -> usize {
        self.items.len() - self.of_jobs
    }
    pub(crate) fn get(&self, place: Place) -> Option<&Item> {
        self.items.get(&place)
    }

    /// The events that are not of jobs with their ordinals, in order.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = (Place, u64, &Item)> {
        self.items.iter().filter_map(|(place, item)| match item.origin {
            Origin::Cursor { ordinal } => Some((*place, ordinal, item)),
            Origin::Job(_) => None,
        })
    }

    pub(crate) fn is_flying(&self, item: &Item) -> bool {
        self.lanes.get(&item.message.order).is_some_and(|lane| lane.flying == Some(item.message.place))
    }

    pub(crate) fn lane(&mut self, order: &Arc<str>) -> &mut Lane {
        self.lanes.entry(Arc::clone(order)).or_default()
    }

    /// Adds an event. It must not be there.
    pub(crate) fn add(&mut self, message: Message, origin: Origin) {
        let order = Arc::clone(&message.order);
        self.bytes += message.size();
        self.of_jobs += usize::from(matches!(origin, Origin::Job(_)));
        self.lane(&order).places.insert(message.place);
        let before = self.items.insert(message.place, Item { message: Arc::new(message), origin });
        assert!(before.is_none(), "an event was added twice");
        self.enter(&order);
    }

    /// Makes an event of a job one of another job.
    pub(crate) fn adopt(&mut self, place: Place, job: JobNo) {
        if let Some(item) = self.items.get_mut(&place) {
            item.origin = Origin::Job(job);
        }
    }

    /// Removes an event, whether it is in flight or not.
    pub(crate) fn remove(&mut self, place: Place) -> Item {
        let item = self.items.remove(&place).expect("an event that is in memory");
        self.bytes -= item.message.size();
        self.of_jobs -= usize::from(matches!(item.origin, Origin::Job(_)));
        let order = Arc::clone(&item.message.order);
        let lane = self.lane(&order);
        let was_first = lane.places.first() == Some(&place);
        lane.places.remove(&place);
        if lane.flying == Some(place) {
            lane.flying = None;
            self.flying -= 1;
        }
        if was_first {
            // What failed was this event; the next one has not been tried.
            let lane = self.lane(&order);
            (lane.failures, lane.alone, lane.alone_since, lane.successes_then) = (0, 0, None, None);
            self.wait(&order, None);
        } else {
            self.enter(&order);
        }
        item
    }

    /// Remembers that the lane failed alone before the event that is first now.
    pub(crate) fn suspect(&mut self, order: &Arc<str>, alone: u32, since: Option<Instant>) {
        if let Some(lane) = self.lanes.get_mut(order) {
            (lane.alone, lane.alone_since) = (alone, since);
        }
    }

    /// Enters the lane where it belongs: among those that may send, or among those that wait; or removes it.
    fn enter(&mut self, order: &Arc<str>) {
        let Some(lane) = self.lanes.get_mut(order) else { return };
        if let Some(place) = lane.ready.take() {
            self.ready.remove(&place);
        }
        match lane.places.first() {
            None => drop(self.lanes.remove(order)),
            Some(first) if lane.flying.is_none() && lane.retry_at.is_none() => {
                lane.ready = Some(*first);
                self.ready.insert(*first);
            }
            Some(_) => {}
        }
    }

    /// Lets the lane wait until its own time, or no longer.
    pub(crate) fn wait(&mut self, order: &Arc<str>, until: Option<Instant>) {
        let Some(lane) = self.lanes.get_mut(order) else { return };
        if let Some(before) = lane.retry_at.take() {
            self.waiting.remove(&(before, Arc::clone(order)));
        }
        lane.retry_at = until;
        if let Some(until) = until {
            self.waiting.insert((until, Arc::clone(order)));
        }
        self.enter(order);
    }

    /// Lets the lanes go on whose time has come.
    pub(crate) fn release(&mut self, now: Instant) {
        while let Some((at, order)) = self.waiting.first()
            && *at <= now
        {
            let order = Arc::clone(order);
            self.wait(&order, None);
        }
    }

    /// When the next lane may go on.
    pub(crate) fn next_release(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// The oldest event that may be sent.
    pub(crate) fn oldest_ready(&self) -> Option<Place> {
        self.ready.first().copied()
    }

    /// The event that may be sent whose lane failed least: what probes an endpoint should not be what fails itself.
    pub(crate) fn least_failed(&self) -> Option<Place> {
        let failures = |place: &Place| self.lanes.get(&self.items[place].message.order).map_or(0, |lane| lane.failures);
        self.ready.iter().copied().min_by_key(|place| (failures(place), *place))
    }

    /// Marks an event that may be sent as sent.
    pub(crate) fn start(&mut self, place: Place) -> Arc<Message> {
        let message = Arc::clone(&self.items[&place].message);
        let lane = self.lane(&message.order);
        assert!(lane.flying.is_none() && lane.ready == Some(place), "two events of one key in flight");
        lane.flying = Some(place);
        self.flying += 1;
        self.enter(&message.order);
        message
    }

    /// Takes back an event that was sent: it stays first in its lane.
    pub(crate) fn land(&mut self, place: Place) -> Arc<str> {
        let order = Arc::clone(&self.items[&place].message.order);
        let lane = self.lane(&order);
        assert_eq!(lane.flying.take(), Some(place), "an answer for something that was not sent");
        self.flying -= 1;
        self.enter(&order);
        order
    }
}
