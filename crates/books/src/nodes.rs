//! The capacity of each node by state: held, being torn down, reserved, fenced, offline, or idle (SEMANTICS 3).
//!
//! Every change moves quanta from one series to another at one instant. So the series add up to the capacity at every
//! instant, even if a change took effect before it was noticed.

use crate::facts::{Books, BooksError};
use crate::store::Store;
use crate::table::{Table, signed};
use leasehold_meter::{Money, QuantaNs, Wanted, Window};
use leasehold_model::body::NodePut;
use leasehold_model::rate::Currency;
use leasehold_model::{ClassNo, Instant, NodeNo, PoolNo, words};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

words! {
    /// A series of a node and class. Idle capacity is the rest and has no series.
    pub enum CapacitySeries {
        Capacity = 1 "capacity",
        Held = 2 "held",
        TearingDown = 3 "tearing_down",
        Fenced = 4 "fenced",
        /// Free, on a node that is drained, being wiped or quarantined; everything that is not held on a lost node.
        Offline = 5 "offline",
        /// The part of the idle capacity that a claimer pays for.
        ClaimedIdle = 6 "claimed_idle",
        /// Free, and reserved for an allocation whose victims are being torn down.
        Reserved = 7 "reserved",
        /// The part of the held capacity that was billed after a lost node was last seen. It was offline.
        HeldLost = 8 "held_lost",
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

words! {
    /// Whether a node can be used.
    pub enum Service {
        In = 1 "in",
        /// Drained, being wiped, or quarantined.
        Out = 2 "out",
        /// All of its capacity is offline, whatever its leases do (SEMANTICS 11).
        Lost = 3 "lost",
    }
}

/// The series in which quanta of a state are counted.
fn series_of(state: QuantaState, service: Service) -> &'static [CapacitySeries] {
    use CapacitySeries as S;
    match (state, service) {
        (QuantaState::Held, Service::Lost) => &[S::Held, S::HeldLost],
        (QuantaState::Held, _) => &[S::Held],
        (_, Service::Lost) | (QuantaState::Free, Service::Out) => &[S::Offline],
        (QuantaState::Free, Service::In) => &[],
        (QuantaState::TearingDown, _) => &[S::TearingDown],
        (QuantaState::Fenced, _) => &[S::Fenced],
        (QuantaState::Reserved, _) => &[S::Reserved],
    }
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
    fn states(&self) -> [(QuantaState, u64); 5] {
        [
            (QuantaState::Free, self.free()),
            (QuantaState::Held, self.held),
            (QuantaState::TearingDown, self.tearing_down),
            (QuantaState::Fenced, self.fenced),
            (QuantaState::Reserved, self.reserved),
        ]
    }
}

/// The most changes of its service that a node remembers. Only what is noticed late needs them.
const SERVICE_STEPS_MAX: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct NodeBook {
    pub(crate) pool: PoolNo,
    /// When it joined this pool; earlier changes are booked at this instant.
    pub(crate) since: Instant,
    pub(crate) drained: bool,
    /// How many maintenance windows keep it out of service.
    pub(crate) windows: u32,
    pub(crate) lost: bool,
    /// Being wiped, or quarantined.
    pub(crate) unclean: bool,
    /// The last instant at which something on it changed.
    pub(crate) last_used: Instant,
    /// Whether it could be used, from each of these instants on, in order.
    pub(crate) service: Vec<(Instant, Service)>,
    pub(crate) classes: Vec<ClassBook>,
}

impl NodeBook {
    pub(crate) fn is_available(&self) -> bool {
        self.service_now() == Service::In
    }

    fn service_now(&self) -> Service {
        match (self.lost, self.drained || self.windows > 0 || self.unclean) {
            (true, _) => Service::Lost,
            (false, true) => Service::Out,
            (false, false) => Service::In,
        }
    }

    /// Notes whether it can be used from an instant on.
    fn note_service(&mut self, from: Instant) {
        let now = self.service_now();
        self.service.retain(|(at, _)| *at < from);
        if self.service.last().is_none_or(|(_, last)| *last != now) {
            self.service.push((from, now));
        }
        if self.service.len() > SERVICE_STEPS_MAX {
            self.service.remove(0);
        }
    }

    /// Whether it could be used, from `at` on.
    fn service_from(&self, at: Instant) -> impl Iterator<Item = (Instant, Service)> + '_ {
        let first = self.service.partition_point(|(from, _)| *from <= at).saturating_sub(1);
        self.service[first..].iter().map(move |(from, service)| ((*from).max(at), *service))
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
        let fresh = NodeBook {
            pool: put.pool,
            since: at,
            drained: false,
            windows: 0,
            lost: false,
            unclean: false,
            last_used: at,
            service: vec![(at, Service::In)],
            classes: Vec::new(),
        };
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
        after.note_service(at);
        self.replace(node, Some(&before), Some(&after), at, store);
        self.books.insert(node, after);
        Ok(())
    }

    /// A node was lost: from when it was last seen, all of its capacity was offline.
    pub(crate) fn lose(&mut self, node: NodeNo, last_seen: Instant, store: &mut Store) -> Result<(), &'static str> {
        let book = self.books.get_mut(&node).ok_or(UNKNOWN)?;
        book.lost = true;
        book.note_service(last_seen);
        let here = self.series.numbered().filter(|(_, key)| key.node == node);
        let places: BTreeSet<(PoolNo, ClassNo)> = here.map(|(_, key)| (key.pool, key.class)).collect();
        for (pool, class) in places {
            self.lose_class(node, pool, class, last_seen, store);
        }
        Ok(())
    }

    /// Replaces the levels of one class from an instant on by those of a lost node.
    fn lose_class(&mut self, node: NodeNo, pool: PoolNo, class: ClassNo, from: Instant, store: &mut Store) {
        use CapacitySeries as S;
        let all = [S::Capacity, S::Held, S::TearingDown, S::Fenced, S::Reserved, S::Offline, S::HeldLost];
        let numbers = all.map(|series| self.series.number(CapacitySeriesKey { node, pool, class, series }));
        let mut sorted = numbers;
        sorted.sort_unstable();
        let (levels, later) = self.series.timeline.since(&sorted, from, store);
        let series = |number: u32| all[numbers.iter().position(|one| *one == number).expect("one of them")];
        let first = sorted.iter().zip(levels).map(|(number, level)| (from, series(*number), level));
        let changes = first.chain(later.iter().map(|event| (event.at, series(event.series), event.delta)));
        let mut booked: Vec<(Instant, CapacitySeries, i64)> = Vec::new();
        for (at, series, by) in changes {
            match series {
                S::Capacity => booked.push((at, S::Offline, by)),
                S::Held => booked.extend([(at, S::Offline, -by), (at, S::HeldLost, by)]),
                // What they were before does not count any longer.
                S::TearingDown | S::Fenced | S::Reserved | S::Offline | S::HeldLost => booked.push((at, series, -by)),
                S::ClaimedIdle => {}
            }
        }
        // Increases come before decreases, so that no series becomes negative.
        booked.sort_by_key(|(_, _, by)| *by < 0);
        for (at, series, by) in booked {
            self.change(CapacitySeriesKey { node, pool, class, series }, at, by, store);
        }
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
            let service = book.service_now();
            for class in &book.classes {
                let key = |series| CapacitySeriesKey { node, pool: book.pool, class: class.class, series };
                self.change(key(CapacitySeries::Capacity), at, sign * signed(class.capacity), store);
                for (state, quanta) in class.states() {
                    for series in series_of(state, service) {
                        self.change(key(*series), at, sign * signed(quanta), store);
                    }
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

    /// Moves quanta of a node from one state to another, from an instant on.
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
        let (pool, at) = (book.pool, at.max(book.since));
        book.last_used = book.last_used.max(at);
        // In most cases its service has not changed since then.
        let now = book.service.last().filter(|(from, _)| *from <= at).map(|(_, service)| *service);
        let pieces: SmallVec<[(Instant, Service); 2]> =
            if now.is_none() { book.service_from(at).collect() } else { SmallVec::new() };
        let class_book =
            book.classes.iter_mut().find(|known| known.class == class).ok_or("the node does not have the class")?;
        for (state, sign) in [(from, -1), (to, 1)] {
            let level = match state {
                QuantaState::Free => None,
                QuantaState::Held => Some(&mut class_book.held),
                QuantaState::TearingDown => Some(&mut class_book.tearing_down),
                QuantaState::Fenced => Some(&mut class_book.fenced),
                QuantaState::Reserved => Some(&mut class_book.reserved),
            };
            if let Some(level) = level {
                *level = level.checked_add_signed(sign * signed(quanta)).ok_or("more is freed than was held")?;
            }
        }
        if let Some(service) = now {
            let (from, to) = (series_of(from, service), series_of(to, service));
            if from != to {
                for (series, sign) in from.iter().map(|one| (one, -1)).chain(to.iter().map(|one| (one, 1))) {
                    let number = self.series.number(CapacitySeriesKey { node, pool, class, series: *series });
                    self.series.change(number, at, sign * signed(quanta), store);
                }
            }
            return Ok(());
        }
        let mut counted: (&[CapacitySeries], &[CapacitySeries]) = (&[], &[]);
        let mut changes: SmallVec<[(Instant, CapacitySeries, i64); 8]> = SmallVec::new();
        for (start, service) in pieces {
            let here = (series_of(from, service), series_of(to, service));
            if here != counted && here.0 != here.1 {
                changes.extend(here.1.iter().map(|series| (start, *series, 1)));
                changes.extend(here.0.iter().map(|series| (start, *series, -1)));
            }
            if here != counted && counted.0 != counted.1 {
                changes.extend(counted.0.iter().map(|series| (start, *series, 1)));
                changes.extend(counted.1.iter().map(|series| (start, *series, -1)));
            }
            counted = here;
        }
        // Increases come before decreases, so that no series becomes negative.
        changes.sort_by_key(|(_, _, sign)| *sign < 0);
        for (start, series, sign) in changes {
            self.change(CapacitySeriesKey { node, pool, class, series }, start, sign * signed(quanta), store);
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
        let part = match series {
            CapacitySeries::Capacity => &mut self.capacity,
            CapacitySeries::Held => &mut self.held,
            CapacitySeries::TearingDown => &mut self.tearing_down,
            CapacitySeries::Fenced => &mut self.fenced,
            CapacitySeries::Offline => &mut self.offline,
            CapacitySeries::Reserved => &mut self.reserved,
            CapacitySeries::HeldLost => {
                // It is a part of held, whose amount may come later.
                self.held = self.held.wrapping_sub(amount);
                &mut self.offline
            }
            // It is a part of idle.
            CapacitySeries::ClaimedIdle => return,
        };
        *part = part.wrapping_add(amount);
    }
}

/// A node without leases, reservations and claims.
#[derive(Clone, Debug, PartialEq)]
pub struct EmptyNode {
    pub node: NodeNo,
    pub since: Instant,
    /// What its idle capacity would have earned since then at scavenger priority.
    pub could_have_earned: Vec<(Currency, Money)>,
}

/// The group of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapacityKey {
    pub pool: Option<PoolNo>,
    pub node: Option<NodeNo>,
    pub class: ClassNo,
}

impl Books {
    /// The nodes that have been empty since an instant or longer, and since when.
    pub fn nodes_empty_since(&self, since: Instant) -> Vec<(NodeNo, Instant)> {
        let is_empty = |(node, book): &(&NodeNo, &NodeBook)| {
            let is_used = book.classes.iter().any(|class| class.free() < class.capacity);
            !is_used && book.last_used <= since && !self.claims.contains_key(node)
        };
        self.nodes.books.iter().filter(is_empty).map(|(node, book)| (*node, book.last_used)).collect()
    }

    /// The nodes that have been empty since an instant or longer, as of `as_of`.
    pub fn empty_nodes(&self, since: Instant, as_of: Instant) -> Result<Vec<EmptyNode>, BooksError> {
        let mut empty = Vec::new();
        for (node, book) in &self.nodes.books {
            let is_used = book.classes.iter().any(|class| class.free() < class.capacity);
            if is_used || book.last_used > since || self.claims.contains_key(node) {
                continue;
            }
            let window = Window::new(book.last_used, as_of.max(book.last_used));
            let mut earned: BTreeMap<Currency, Money> = BTreeMap::new();
            for class in &book.classes {
                for (currency, money) in self.stranded(book.pool, class.class, Some(*node), window)? {
                    earned.entry(currency).or_default().add_all(&money)?;
                }
            }
            let could_have_earned = earned.into_iter().collect();
            empty.push(EmptyNode { node: *node, since: book.last_used, could_have_earned });
        }
        Ok(empty)
    }

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
        // A lease ends at its deadline, even if its expiry is not recorded yet.
        for row in self.overdue_rows().filter(|row| takes(row.pool, row.node, row.class)) {
            let key =
                CapacityKey { pool: by_pool.then_some(row.pool), node: by_node.then_some(row.node), class: row.class };
            let over = Window::new(row.held.to, window.to.max(row.held.to)).clip(window).length();
            if let Some(line) = lines.get_mut(&key) {
                let amount = u128::from(row.quanta) * u128::from(over.0);
                (line.held, line.tearing_down) = (line.held.wrapping_sub(amount), line.tearing_down + amount);
            }
        }
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
