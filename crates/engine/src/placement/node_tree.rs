//! Nodes that are alike, in an order in which neighbours have much the same free: leaves of a few
//! nodes, and over them levels of summaries. A search looks at summaries first, and into the leaves
//! that may hold what it wants.
//!
//! The order only makes summaries narrow; what they say is true in any order. So there is none
//! within a leaf, and a node stays where it is until it belongs further away than next door.

use super::stock::{Range, Stock};
use crate::heat::Heat;
use leasehold_model::{ClassNo, NodeNo, PoolNo, Quanta};

/// Where a node was put: nodes with much the same free have much the same `curve` (see `curve.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) curve: u64,
    pub(crate) node: NodeNo,
}

/// The most nodes in a leaf.
const LEAF_MAX: usize = 32;
/// A leaf of fewer is put together with a neighbour.
const LEAF_MIN: usize = 8;
/// How many summaries, or leaves, one summary covers.
pub(crate) const FAN: usize = 8;

/// A node in a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) key: Key,
    pub(crate) zone: u32,
}

/// A few nodes. What each has of the tree's classes, and their sum, stands one after the other in `stocks`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaf {
    pub(crate) slots: Vec<Slot>,
    /// Of a hot tree only.
    heats: Vec<Heat>,
    stocks: Vec<Stock>,
}

/// What is known of some nodes together, apart from the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The lowest number among them: where scores are equal it decides.
    pub(crate) first: NodeNo,
    /// In which zones they are: the bit of a zone's number, round after round.
    pub(crate) zones: u64,
    /// None of them is cooler than this.
    pub(crate) heat: Heat,
}

pub(crate) fn zone_bit(zone: u32) -> u64 {
    1 << (zone % u64::BITS)
}

impl Summary {
    const NONE: Self = Self { first: NodeNo(u32::MAX), zones: 0, heat: Heat::NONE };

    fn of_slot(slot: &Slot, heat: Heat) -> Self {
        Self { first: slot.key.node, zones: zone_bit(slot.zone), heat }
    }

    fn with(self, other: Self) -> Self {
        if self.first == Self::NONE.first {
            return other;
        }
        let first = self.first.min(other.first);
        Self { first, zones: self.zones | other.zones, heat: self.heat.least(other.heat) }
    }
}

/// Summaries of leaves, or of summaries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    pub(crate) summaries: Vec<Summary>,
    ranges: Vec<Range>,
}

#[derive(Clone, Debug)]
pub(crate) struct NodeTree {
    pub(crate) pool: PoolNo,
    pub(crate) classes: Vec<ClassNo>,
    pub(crate) is_hot: bool,
    leaves: Vec<Leaf>,
    /// Where each leaf begins; the first begins before everything.
    from: Vec<Key>,
    /// The lowest summarises the leaves. The highest has at most [`FAN`].
    levels: Vec<Level>,
}

const BEFORE_ALL: Key = Key { curve: 0, node: NodeNo(0) };

impl NodeTree {
    pub(crate) fn new(pool: PoolNo, classes: Vec<ClassNo>, is_hot: bool) -> Self {
        let mut tree = Self {
            pool,
            classes,
            is_hot,
            leaves: vec![Leaf::default()],
            from: vec![BEFORE_ALL],
            levels: vec![Level::default()],
        };
        tree.levels[0].summaries.push(Summary::NONE);
        let width = tree.width();
        tree.levels[0].ranges.resize(width, Range::NONE);
        tree
    }

    /// Columns of a node: its classes, and the sum of their shares where there are several.
    #[inline]
    fn width(&self) -> usize {
        self.classes.len() + usize::from(self.classes.len() > 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.leaves.len() == 1 && self.leaves[0].slots.is_empty()
    }

    /// The number of the highest level.
    pub(crate) fn top(&self) -> usize {
        self.levels.len() - 1
    }
    pub(crate) fn summaries(&self, level: usize) -> &[Summary] {
        &self.levels[level].summaries
    }
    /// What the nodes under a summary have: of each class, and, last, of all of them together.
    pub(crate) fn ranges(&self, level: usize, place: usize) -> &[Range] {
        &self.levels[level].ranges[place * self.width()..][..self.width()]
    }
    pub(crate) fn leaf(&self, place: usize) -> &Leaf {
        &self.leaves[place]
    }
    pub(crate) fn stocks<'l>(&self, leaf: &'l Leaf, place: usize) -> &'l [Stock] {
        &leaf.stocks[place * self.width()..][..self.width()]
    }

    /// What all of them have of the class in a column.
    pub(crate) fn whole_range(&self, column: usize) -> Range {
        let mut all = Range::NONE;
        let top = self.levels[self.top()].ranges.iter().skip(column).step_by(self.width());
        top.for_each(|range| all.widen(range));
        all
    }

    /// The most that a node has room for of a class, if the nodes have it. See [`NodeClass::room_for`].
    ///
    /// [`NodeClass::room_for`]: crate::node::NodeClass::room_for
    pub(crate) fn most_room(&self, class: ClassNo, quanta: Quanta, per_device: u64) -> Option<u64> {
        let column = self.classes.iter().position(|known| *known == class)?;
        let range = self.whole_range(column);
        let of_devices = per_device > 0 && quanta.0 > per_device;
        Some(if of_devices { u64::from(range.whole_hi) * per_device } else { range.room_hi })
    }

    fn leaf_of(&self, key: Key) -> usize {
        self.from.partition_point(|from| *from <= key) - 1
    }

    pub(crate) fn insert(&mut self, slot: Slot, heat: Heat, stocks: &[Stock]) {
        let at = self.leaf_of(slot.key);
        let leaf = &mut self.leaves[at];
        leaf.slots.push(slot);
        if self.is_hot {
            leaf.heats.push(heat);
        }
        leaf.stocks.extend_from_slice(stocks);
        let sum = Stock::sum(stocks);
        if stocks.len() > 1 {
            leaf.stocks.push(sum);
        }
        if leaf.slots.len() > LEAF_MAX {
            self.split(at);
            return;
        }
        for (column, stock) in stocks.iter().chain([&sum]).take(self.width()).enumerate() {
            self.follow(at, column, Range::NONE, Range::of(stock));
        }
        self.widen_summaries(at, Summary::of_slot(&slot, heat));
    }

    pub(crate) fn remove(&mut self, key: Key) {
        let width = self.width();
        let at = self.leaf_of(key);
        let leaf = &mut self.leaves[at];
        let place = leaf.place_of(key);
        let last = leaf.slots.len() - 1;
        let gone: smallvec::SmallVec<[Stock; 5]> = leaf.stocks[place * width..][..width].into();
        leaf.slots.swap_remove(place);
        if self.is_hot {
            leaf.heats.swap_remove(place);
        }
        leaf.stocks.copy_within(last * width.., place * width);
        leaf.stocks.truncate(last * width);
        if last < LEAF_MIN && self.join(at) {
            return;
        }
        for (column, stock) in gone.iter().enumerate() {
            self.follow(at, column, Range::of(stock), Range::NONE);
        }
        // A summary that knows of a zone too many, or of one cooler than there is, makes a search look
        // where it need not; one that knows of a lower number does so wherever scores are equal.
        if self.is_hot || self.levels[0].summaries[at].first == key.node {
            self.recompute_summaries(at);
        }
    }

    /// The node that was put at `slot.key` has changed, and now belongs at `key`. Answers where it is.
    pub(crate) fn change(&mut self, slot: Slot, key: Key, heat: Heat, stocks: &[Stock]) -> Key {
        let at = self.leaf_of(slot.key);
        let slack = usize::from(self.classes.len() > 1);
        let next_door =
            self.from[at.saturating_sub(slack)] <= key && self.from.get(at + 1 + slack).is_none_or(|end| key < *end);
        if !next_door {
            self.remove(slot.key);
            self.insert(Slot { key, ..slot }, heat, stocks);
            return key;
        }
        let width = self.width();
        let leaf = &mut self.leaves[at];
        let place = leaf.place_of(slot.key);
        if self.is_hot {
            leaf.heats[place] = heat;
        }
        let sum = Stock::sum(stocks);
        for (column, new) in stocks.iter().chain([&sum]).take(width).enumerate() {
            let old = std::mem::replace(&mut self.leaves[at].stocks[place * width + column], *new);
            if old != *new {
                self.follow(at, column, Range::of(&old), Range::of(new));
            }
        }
        if self.is_hot {
            self.recompute_summaries(at);
        }
        slot.key
    }

    /// Something in a leaf had `before` and has `after`: its summaries follow, up to where that
    /// makes no difference.
    fn follow(&mut self, leaf: usize, column: usize, mut before: Range, mut after: Range) {
        let mut place = leaf;
        for number in 0..self.levels.len() {
            let at = place * self.width() + column;
            let was = self.levels[number].ranges[at];
            if was == before && number == 0 && after == Range::NONE && !self.leaves[leaf].slots.is_empty() {
                // All of them had the same, and those that are left still have it.
                return;
            }
            let mut now = was;
            if !now.follow(&before, &after) {
                now = self.range_of(number, place, column);
            }
            if now == was {
                return;
            }
            self.levels[number].ranges[at] = now;
            (before, after, place) = (was, now, place / FAN);
        }
    }

    fn widen_summaries(&mut self, leaf: usize, part: Summary) {
        let mut place = leaf;
        for level in &mut self.levels {
            let summary = level.summaries[place].with(part);
            if std::mem::replace(&mut level.summaries[place], summary) == summary {
                return;
            }
            place /= FAN;
        }
    }

    fn recompute_summaries(&mut self, leaf: usize) {
        let mut place = leaf;
        for number in 0..self.levels.len() {
            let summary = self.summary_of(number, place);
            if std::mem::replace(&mut self.levels[number].summaries[place], summary) == summary {
                return;
            }
            place /= FAN;
        }
    }

    /// Makes two of a leaf that has become too large.
    fn split(&mut self, at: usize) {
        let width = self.width();
        let leaf = &mut self.leaves[at];
        let mut order: Vec<usize> = (0..leaf.slots.len()).collect();
        order.sort_unstable_by_key(|place| leaf.slots[*place].key);
        let upper = order.split_off(order.len() / 2);
        let pick = |places: &[usize]| Leaf {
            slots: places.iter().map(|place| leaf.slots[*place]).collect(),
            heats: places.iter().filter_map(|place| leaf.heats.get(*place)).copied().collect(),
            stocks: places.iter().flat_map(|place| &leaf.stocks[place * width..][..width]).copied().collect(),
        };
        let (lower, upper) = (pick(&order), pick(&upper));
        self.from.insert(at + 1, upper.slots[0].key);
        self.leaves[at] = lower;
        self.leaves.insert(at + 1, upper);
        let lowest = &mut self.levels[0];
        lowest.summaries.insert(at + 1, Summary::NONE);
        lowest.ranges.splice(at * width..at * width, std::iter::repeat_n(Range::NONE, width));
        self.summarise_leaf(at);
        self.summarise_leaf(at + 1);
        self.summarise_from(at);
    }

    /// Puts a leaf that has become small into the one beside it, if that has room.
    fn join(&mut self, at: usize) -> bool {
        let first = at.saturating_sub(1);
        let Some(second) = self.leaves.get(first + 1) else { return false };
        if self.leaves[first].slots.len() + second.slots.len() > LEAF_MAX / 2 {
            return false;
        }
        let Leaf { slots, heats, stocks } = self.leaves.remove(first + 1);
        self.from.remove(first + 1);
        self.leaves[first].slots.extend(slots);
        self.leaves[first].heats.extend(heats);
        self.leaves[first].stocks.extend(stocks);
        let width = self.width();
        let lowest = &mut self.levels[0];
        lowest.summaries.remove(first + 1);
        lowest.ranges.drain(first * width..(first + 1) * width);
        self.summarise_leaf(first);
        self.summarise_from(first);
        true
    }

    fn summarise_leaf(&mut self, at: usize) {
        self.levels[0].summaries[at] = self.summary_of(0, at);
        for column in 0..self.width() {
            let range = self.range_of(0, at, column);
            let width = self.width();
            self.levels[0].ranges[at * width + column] = range;
        }
    }

    /// Makes the summaries of summaries anew from that leaf on: those behind it have moved.
    fn summarise_from(&mut self, leaf: usize) {
        let (width, mut place) = (self.width(), leaf);
        let mut number = 1;
        while self.levels[number - 1].summaries.len() > FAN {
            place /= FAN;
            if self.levels.len() == number {
                self.levels.push(Level::default());
            }
            let known = &mut self.levels[number];
            place = place.min(known.summaries.len());
            known.summaries.truncate(place);
            known.ranges.truncate(place * width);
            for place in place..self.levels[number - 1].summaries.len().div_ceil(FAN) {
                let summary = self.summary_of(number, place);
                self.levels[number].summaries.push(summary);
                for column in 0..width {
                    let range = self.range_of(number, place, column);
                    self.levels[number].ranges.push(range);
                }
            }
            number += 1;
        }
        self.levels.truncate(number);
    }

    fn summary_of(&self, level: usize, place: usize) -> Summary {
        match level.checked_sub(1) {
            None => {
                let leaf = &self.leaves[place];
                let summary = |(place, slot)| Summary::of_slot(slot, leaf.heat(place));
                leaf.slots.iter().enumerate().map(summary).reduce(Summary::with).unwrap_or(Summary::NONE)
            }
            Some(below) => {
                let summaries = &self.levels[below].summaries;
                let summaries = &summaries[place * FAN..summaries.len().min((place + 1) * FAN)];
                summaries.iter().copied().reduce(Summary::with).unwrap_or(Summary::NONE)
            }
        }
    }

    fn range_of(&self, level: usize, place: usize, column: usize) -> Range {
        let width = self.width();
        let mut range = Range::NONE;
        match level.checked_sub(1) {
            None => {
                let stocks = self.leaves[place].stocks.iter().skip(column).step_by(width);
                stocks.for_each(|stock| range.widen(&Range::of(stock)));
            }
            Some(below) => {
                let ranges = &self.levels[below].ranges;
                let ranges = &ranges[place * FAN * width..ranges.len().min((place + 1) * FAN * width)];
                ranges.iter().skip(column).step_by(width).for_each(|part| range.widen(part));
            }
        }
        range
    }
}

impl Leaf {
    /// None where the tree is not hot.
    #[inline]
    pub(crate) fn heat(&self, place: usize) -> Heat {
        self.heats.get(place).copied().unwrap_or(Heat::NONE)
    }

    fn place_of(&self, key: Key) -> usize {
        self.slots.iter().position(|slot| slot.key.node == key.node).expect("a node is where its key says")
    }
}
