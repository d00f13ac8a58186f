//! The capacity of each node by state: held, being torn down, reserved, fenced, offline, or idle (SEMANTICS 3).
//!
//! Every change moves quanta from one series to another at one instant. So the series add up to the capacity at every
//! instant, even if a change took effect before it was noticed.

use crate::facts::{Books, BooksError};
use crate::store::Store;
use crate::table::{Table, signed};
use leasehold_meter::{QuantaNs, Wanted, Window};
use leasehold_model::body::NodePut;
use leasehold_model::{ClassNo, Instant, NodeNo, PoolNo, words};
use std::collections::BTreeMap;

words! {
    /// A series of a node and class. Idle capacity is the rest and has no series.
    pub enum CapacitySeries {
        Capacity = 1 "capacity",
        Held = 2 "held",
        TearingDown = 3 "tearing_down",
        Fenced = 4 "fenced",
        /// Free, on a node that is drained, lost, being wiped or quarantined.
        Offline = 5 "offline",
        /// The part of the idle capacity that a claimer pays for.
        ClaimedIdle = 6 "claimed_idle",
        /// Free, and reserved for an allocation whose victims are being torn down.
        Reserved = 7 "reserved",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CapacitySeriesKey {
    pub(crate) node: NodeNo,
    pub(crate) pool: PoolNo,
    pub(crate) class: ClassNo,
    pub(crate) series: CapacitySeries,
}

/// The state of quanta of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuantaState {
    Free,
    Held,
    TearingDown,
    Fenced,
    Reserved,
}

#[derive(Clone, Debug)]
pub(crate) struct ClassBook {
    pub(crate) class: ClassNo,
    pub(crate) capacity: u64,
    pub(crate) held: u64,
    pub(crate) tearing_down: u64,
    pub(crate) fenced: u64,
    pub(crate) reserved: u64,
}

impl ClassBook {
    /// Quanta that are neither held nor fenced.
    pub(crate) fn unheld(&self) -> u64 {
        self.capacity.saturating_sub(self.held + self.fenced)
    }
    /// Quanta that are not in use and not reserved.
    pub(crate) fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.held + self.tearing_down + self.fenced + self.reserved)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct NodeBook {
    pub(crate) pool: PoolNo,
    /// When it joined this pool; earlier changes are booked at this instant.
    pub(crate) since: Instant,
    pub(crate) drained: bool,
    pub(crate) lost: bool,
    /// Being wiped, or quarantined.
    pub(crate) unclean: bool,
    pub(crate) classes: Vec<ClassBook>,
}

impl NodeBook {
    pub(crate) fn is_available(&self) -> bool {
        !self.drained && !self.lost && !self.unclean
    }
}

#[derive(Default)]
pub(crate) struct Nodes {
    pub(crate) books: BTreeMap<NodeNo, NodeBook>,
    pub(crate) series: Table<CapacitySeriesKey>,
}

const UNKNOWN: &str = "unknown node";

impl Nodes {
    pub(crate) fn change(&mut self, key: CapacitySeriesKey, at: Instant, delta: i64, store: &mut Store) {
        if delta != 0 {
            let number = self.series.number(key);
            self.series.change(number, at, delta, store);
        }
    }

    pub(crate) fn put(&mut self, put: &NodePut, at: Instant, store: &mut Store) {
        let fresh =
            NodeBook { pool: put.pool, since: at, drained: false, lost: false, unclean: false, classes: Vec::new() };
        let before = self.books.get(&put.node).cloned();
        let mut book = before.clone().unwrap_or(fresh);
        for class in &mut book.classes {
            let capacity = put.capacity.iter().find(|(number, _)| *number == class.class);
            class.capacity = capacity.map_or(0, |(_, quanta)| quanta.0);
        }
        for (class, capacity) in &put.capacity {
            if !book.classes.iter().any(|known| known.class == *class) {
                let capacity = capacity.0;
                let none = ClassBook { class: *class, capacity, held: 0, tearing_down: 0, fenced: 0, reserved: 0 };
                book.classes.push(none);
            }
        }
        if book.pool != put.pool {
            (book.pool, book.since) = (put.pool, at);
        }
        self.replace(put.node, before.as_ref(), Some(&book), at, store);
        self.books.insert(put.node, book);
    }

    pub(crate) fn delete(&mut self, node: NodeNo, at: Instant, store: &mut Store) {
        let before = self.books.remove(&node);
        self.replace(node, before.as_ref(), None, at, store);
    }

    pub(crate) fn set(
        &mut self,
        node: NodeNo,
        at: Instant,
        store: &mut Store,
        change: impl FnOnce(&mut NodeBook),
    ) -> Result<(), &'static str> {
        let before = self.books.get(&node).cloned().ok_or(UNKNOWN)?;
        let mut after = before.clone();
        change(&mut after);
        self.replace(node, Some(&before), Some(&after), at, store);
        self.books.insert(node, after);
        Ok(())
    }

    /// Books the difference between two states of a node at one instant.
    fn replace(
        &mut self,
        node: NodeNo,
        before: Option<&NodeBook>,
        after: Option<&NodeBook>,
        at: Instant,
        store: &mut Store,
    ) {
        for (book, sign) in [(before, -1), (after, 1)] {
            let Some(book) = book else { continue };
            for class in &book.classes {
                let offline = if book.is_available() { 0 } else { class.free() };
                let levels = [
                    (CapacitySeries::Capacity, class.capacity),
                    (CapacitySeries::Held, class.held),
                    (CapacitySeries::TearingDown, class.tearing_down),
                    (CapacitySeries::Fenced, class.fenced),
                    (CapacitySeries::Reserved, class.reserved),
                    (CapacitySeries::Offline, offline),
                ];
                for (series, level) in levels {
                    let key = CapacitySeriesKey { node, pool: book.pool, class: class.class, series };
                    self.change(key, at, sign * signed(level), store);
                }
            }
        }
    }

    /// Reserves free quanta of a node, or frees reserved ones.
    pub(crate) fn reserve(
        &mut self,
        node: NodeNo,
        class: ClassNo,
        quanta: u64,
        taken: bool,
        at: Instant,
        store: &mut Store,
    ) -> Result<(), &'static str> {
        let way =
            if taken { (QuantaState::Free, QuantaState::Reserved) } else { (QuantaState::Reserved, QuantaState::Free) };
        self.shift(node, class, way, quanta, at, store)
    }

    /// Moves quanta of a node from one state to another.
    pub(crate) fn shift(
        &mut self,
        node: NodeNo,
        class: ClassNo,
        (from, to): (QuantaState, QuantaState),
        quanta: u64,
        at: Instant,
        store: &mut Store,
    ) -> Result<(), &'static str> {
        let book = self.books.get_mut(&node).ok_or(UNKNOWN)?;
        let (pool, available, at) = (book.pool, book.is_available(), at.max(book.since));
        let class_book =
            book.classes.iter_mut().find(|known| known.class == class).ok_or("the node does not have the class")?;
        for (state, sign) in [(from, -1), (to, 1)] {
            let (series, level) = match state {
                QuantaState::Free if available => continue,
                QuantaState::Free => (CapacitySeries::Offline, None),
                QuantaState::Held => (CapacitySeries::Held, Some(&mut class_book.held)),
                QuantaState::TearingDown => (CapacitySeries::TearingDown, Some(&mut class_book.tearing_down)),
                QuantaState::Fenced => (CapacitySeries::Fenced, Some(&mut class_book.fenced)),
                QuantaState::Reserved => (CapacitySeries::Reserved, Some(&mut class_book.reserved)),
            };
            if let Some(level) = level {
                *level = level.checked_add_signed(sign * signed(quanta)).ok_or("more is freed than was held")?;
            }
            let number = self.series.number(CapacitySeriesKey { node, pool, class, series });
            self.series.change(number, at, sign * signed(quanta), store);
        }
        Ok(())
    }
}

/// The capacity of a class by state over a window, in quanta × nanoseconds. The parts add up to the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapacityLine {
    pub capacity: QuantaNs,
    pub held: QuantaNs,
    pub tearing_down: QuantaNs,
    pub reserved: QuantaNs,
    pub fenced: QuantaNs,
    pub offline: QuantaNs,
    pub idle: QuantaNs,
}

impl CapacityLine {
    fn add(&mut self, series: CapacitySeries, amount: QuantaNs) {
        *match series {
            CapacitySeries::Capacity => &mut self.capacity,
            CapacitySeries::Held => &mut self.held,
            CapacitySeries::TearingDown => &mut self.tearing_down,
            CapacitySeries::Fenced => &mut self.fenced,
            CapacitySeries::Offline => &mut self.offline,
            CapacitySeries::Reserved => &mut self.reserved,
            // It is a part of idle.
            CapacitySeries::ClaimedIdle => return,
        } += amount;
    }
}

/// The group of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapacityKey {
    pub pool: Option<PoolNo>,
    pub node: Option<NodeNo>,
    pub class: ClassNo,
}

impl Books {
    /// Capacity by state, per class, and per pool or node on request.
    pub fn capacity(
        &self,
        window: Window,
        by_pool: bool,
        by_node: bool,
        takes: impl Fn(PoolNo, NodeNo, ClassNo) -> bool,
    ) -> Result<Vec<(CapacityKey, CapacityLine)>, BooksError> {
        let mut lines: BTreeMap<CapacityKey, CapacityLine> = BTreeMap::new();
        let all = &self.nodes.series;
        let wanted = all.numbered().filter(|(_, key)| takes(key.pool, key.node, key.class));
        let wanted: Vec<u32> = wanted.map(|(number, _)| number).collect();
        let borders = [window.from, window.to.max(window.from)];
        all.timeline.amounts(&borders, Wanted::These(&wanted), &self.store, |_, series, amount| {
            let key = &all.keys[series as usize];
            let line =
                CapacityKey { pool: by_pool.then_some(key.pool), node: by_node.then_some(key.node), class: key.class };
            lines.entry(line).or_default().add(key.series, amount);
        });
        self.sound(())?;
        for (key, line) in &mut lines {
            let used = line.held + line.tearing_down + line.reserved + line.fenced + line.offline;
            line.idle = line.capacity.checked_sub(used).ok_or(BooksError::Inconsistent {
                sequence: self.cursor,
                what: if key.node.is_some() {
                    "more is in use on a node than its capacity"
                } else {
                    "more is in use than the capacity"
                },
            })?;
        }
        Ok(lines.into_iter().collect())
    }
}
