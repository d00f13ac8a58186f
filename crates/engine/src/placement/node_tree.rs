//! A search tree over similar nodes: leaves of a few nodes with similar free capacity, and above them
//! levels of summaries. A search reads summaries first, and then only leaves that may contain the best
//! node.
//!
//! The order of the nodes only makes the ranges of summaries narrow; they are correct in any order.
//! Therefore a leaf is not sorted, and a node stays in its leaf until its key is beyond the
//! neighbouring leaves.

use super::stock::{Range, Stock};
use crate::heat::Heat;
use leasehold_model::{ClassNo, NodeNo, PoolNo, Quanta};

/// The sort key under which a node was inserted. Nodes with similar free capacity have a similar `curve` (`curve.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) curve: u64,
    pub(crate) node: NodeNo,
}

/// The most nodes in a leaf.
const LEAF_MAX: usize = 32;
/// A leaf with fewer nodes is merged with a neighbour, if they fit together.
const LEAF_MIN: usize = 8;
/// How many summaries, or leaves, one summary covers.
pub(crate) const FAN: usize = 8;

/// A node in a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) key: Key,
    pub(crate) zone: u32,
}

/// A few nodes. `stocks` contains, node after node, the stock of each class of the tree and their sum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaf {
    pub(crate) slots: Vec<Slot>,
    /// Empty unless the tree is hot.
    heats: Vec<Heat>,
    stocks: Vec<Stock>,
}

/// A summary of some nodes, apart from the ranges of their stocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The lowest number among them, which decides between equal scores.
    pub(crate) first: NodeNo,
    /// The set of their zones, as bits by zone number modulo 64.
    pub(crate) zones: u64,
    /// The heat of the coolest of them.
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

/// One level of summaries, each over up to [`FAN`] summaries of the level below; the lowest level has one per leaf.
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
    /// The first key of each leaf; that of the first leaf is below all keys.
    from: Vec<Key>,
    /// From the lowest to the highest. The highest has at most [`FAN`] summaries.
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

    /// The number of stocks per node: one for each class, and one for the sum of their shares if there are several.
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
    /// The ranges of the nodes under a summary, by class; the last is the sum of all classes, if there are several.
    pub(crate) fn ranges(&self, level: usize, index: usize) -> &[Range] {
        &self.levels[level].ranges[index * self.width()..][..self.width()]
    }
    pub(crate) fn leaf(&self, index: usize) -> &Leaf {
        &self.leaves[index]
    }
    pub(crate) fn stocks<'l>(&self, leaf: &'l Leaf, index: usize) -> &'l [Stock] {
        &leaf.stocks[index * self.width()..][..self.width()]
    }

    /// The range of the class in a column over all nodes of the tree.
    pub(crate) fn whole_range(&self, column: usize) -> Range {
        let mut all = Range::NONE;
        let top = self.levels[self.top()].ranges.iter().skip(column).step_by(self.width());
        top.for_each(|range| all.widen(range));
        all
    }

    /// The most of a class that a request for `quanta` could get on one node; `None` if the nodes lack the class. See
    /// [`NodeClass::room_for`].
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
        let index = leaf.index_of(key);
        let last = leaf.slots.len() - 1;
        let gone: smallvec::SmallVec<[Stock; 5]> = leaf.stocks[index * width..][..width].into();
        leaf.slots.swap_remove(index);
        if self.is_hot {
            leaf.heats.swap_remove(index);
        }
        leaf.stocks.copy_within(last * width.., index * width);
        leaf.stocks.truncate(last * width);
        if last < LEAF_MIN && self.join(at) {
            return;
        }
        for (column, stock) in gone.iter().enumerate() {
            self.follow(at, column, Range::of(stock), Range::NONE);
        }
        // A summary with too many zones, or with less heat than its coolest node has, is still correct and only makes
        // some searches slower. A first number that is too low would slow down all searches with equal scores.
        if self.is_hot || self.levels[0].summaries[at].first == key.node {
            self.recompute_summaries(at);
        }
    }

    /// Updates the node that was inserted at `slot.key` and whose key would now be `key`. Returns the key under which
    /// it is stored.
    pub(crate) fn change(&mut self, slot: Slot, key: Key, heat: Heat, stocks: &[Stock]) -> Key {
        let at = self.leaf_of(slot.key);
        let slack = usize::from(self.classes.len() > 1);
        let is_near =
            self.from[at.saturating_sub(slack)] <= key && self.from.get(at + 1 + slack).is_none_or(|end| key < *end);
        if !is_near {
            self.remove(slot.key);
            self.insert(Slot { key, ..slot }, heat, stocks);
            return key;
        }
        let width = self.width();
        let leaf = &mut self.leaves[at];
        let index = leaf.index_of(slot.key);
        if self.is_hot {
            leaf.heats[index] = heat;
        }
        let sum = Stock::sum(stocks);
        for (column, new) in stocks.iter().chain([&sum]).take(width).enumerate() {
            let old = std::mem::replace(&mut self.leaves[at].stocks[index * width + column], *new);
            if old != *new {
                self.follow(at, column, Range::of(&old), Range::of(new));
            }
        }
        if self.is_hot {
            self.recompute_summaries(at);
        }
        slot.key
    }

    /// Updates the summaries above a leaf after one of its stocks changed from `before` to `after`, up to
    /// the level at which nothing changes.
    fn follow(&mut self, leaf: usize, column: usize, mut before: Range, mut after: Range) {
        let mut index = leaf;
        for number in 0..self.levels.len() {
            let at = index * self.width() + column;
            let was = self.levels[number].ranges[at];
            if was == before && number == 0 && after == Range::NONE && !self.leaves[leaf].slots.is_empty() {
                // All nodes of the leaf had the same, and the remaining ones still have it.
                return;
            }
            let mut now = was;
            if !now.follow(&before, &after) {
                now = self.range_of(number, index, column);
            }
            if now == was {
                return;
            }
            self.levels[number].ranges[at] = now;
            (before, after, index) = (was, now, index / FAN);
        }
    }

    fn widen_summaries(&mut self, leaf: usize, part: Summary) {
        let mut index = leaf;
        for level in &mut self.levels {
            let summary = level.summaries[index].with(part);
            if std::mem::replace(&mut level.summaries[index], summary) == summary {
                return;
            }
            index /= FAN;
        }
    }

    fn recompute_summaries(&mut self, leaf: usize) {
        let mut index = leaf;
        for number in 0..self.levels.len() {
            let summary = self.summary_of(number, index);
            if std::mem::replace(&mut self.levels[number].summaries[index], summary) == summary {
                return;
            }
            index /= FAN;
        }
    }

    /// Splits a leaf that has become too large.
    fn split(&mut self, at: usize) {
        let width = self.width();
        let leaf = &mut self.leaves[at];
        let mut order: Vec<usize> = (0..leaf.slots.len()).collect();
        order.sort_unstable_by_key(|index| leaf.slots[*index].key);
        let upper = order.split_off(order.len() / 2);
        let pick = |indexes: &[usize]| Leaf {
            slots: indexes.iter().map(|index| leaf.slots[*index]).collect(),
            heats: indexes.iter().filter_map(|index| leaf.heats.get(*index)).copied().collect(),
            stocks: indexes.iter().flat_map(|index| &leaf.stocks[index * width..][..width]).copied().collect(),
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

    /// Merges a leaf that has become small with a neighbour, if they fit together.
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

    /// Recomputes the higher levels from a leaf on, because the leaves after it have moved.
    fn summarise_from(&mut self, leaf: usize) {
        let (width, mut index) = (self.width(), leaf);
        let mut number = 1;
        while self.levels[number - 1].summaries.len() > FAN {
            index /= FAN;
            if self.levels.len() == number {
                self.levels.push(Level::default());
            }
            let known = &mut self.levels[number];
            index = index.min(known.summaries.len());
            known.summaries.truncate(index);
            known.ranges.truncate(index * width);
            for index in index..self.levels[number - 1].summaries.len().div_ceil(FAN) {
                let summary = self.summary_of(number, index);
                self.levels[number].summaries.push(summary);
                for column in 0..width {
                    let range = self.range_of(number, index, column);
                    self.levels[number].ranges.push(range);
                }
            }
            number += 1;
        }
        self.levels.truncate(number);
    }

    fn summary_of(&self, level: usize, index: usize) -> Summary {
        match level.checked_sub(1) {
            None => {
                let leaf = &self.leaves[index];
                let summary = |(index, slot)| Summary::of_slot(slot, leaf.heat(index));
                leaf.slots.iter().enumerate().map(summary).reduce(Summary::with).unwrap_or(Summary::NONE)
            }
            Some(below) => {
                let summaries = &self.levels[below].summaries;
                let summaries = &summaries[index * FAN..summaries.len().min((index + 1) * FAN)];
                summaries.iter().copied().reduce(Summary::with).unwrap_or(Summary::NONE)
            }
        }
    }

    fn range_of(&self, level: usize, index: usize, column: usize) -> Range {
        let width = self.width();
        let mut range = Range::NONE;
        match level.checked_sub(1) {
            None => {
                let stocks = self.leaves[index].stocks.iter().skip(column).step_by(width);
                stocks.for_each(|stock| range.widen(&Range::of(stock)));
            }
            Some(below) => {
                let ranges = &self.levels[below].ranges;
                let ranges = &ranges[index * FAN * width..ranges.len().min((index + 1) * FAN * width)];
                ranges.iter().skip(column).step_by(width).for_each(|part| range.widen(part));
            }
        }
        range
    }
}

impl Leaf {
    /// [`Heat::NONE`] if the tree is not hot.
    #[inline]
    pub(crate) fn heat(&self, index: usize) -> Heat {
        self.heats.get(index).copied().unwrap_or(Heat::NONE)
    }

    fn index_of(&self, key: Key) -> usize {
        self.slots.iter().position(|slot| slot.key.node == key.node).expect("a node is in the leaf of its key")
    }
}
