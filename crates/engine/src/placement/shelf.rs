//! Nodes that are alike, in an order in which neighbours have much the same free: leaves of a few
//! nodes, and over them levels of summaries. A search looks at summaries first, and into the leaves
//! that may hold what it wants.
//!
//! Order is between leaves only; within a leaf there is none. A change mostly stays within its leaf.

use super::stock::{Range, Stock};
use crate::heat::Heat;
use leasehold_model::{ClassNo, NodeNo};

/// A node's place: nodes with much the same free have much the same `curve` (see `curve.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) curve: u64,
    pub(crate) node: NodeNo,
}

/// The most nodes in a leaf.
const LEAF_MAX: usize = 32;
/// A leaf of fewer is put together with a neighbour.
const LEAF_MIN: usize = 6;
/// How many summaries, or leaves, one summary covers.
pub(crate) const FAN: usize = 16;

/// A few nodes. What each has of the shelf's classes stands one after the other in `stocks`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaf {
    pub(crate) keys: Vec<Key>,
    pub(crate) heats: Vec<Heat>,
    stocks: Vec<Stock>,
}

/// What is known of some nodes together, apart from the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The lowest number among them: where scores are equal it decides.
    pub(crate) first: NodeNo,
    /// None of them is cooler than this.
    pub(crate) heat: Heat,
}

impl Head {
    fn of(parts: impl Iterator<Item = Self>) -> Self {
        let least = |a: Self, b: Self| Self { first: a.first.min(b.first), heat: a.heat.least(b.heat) };
        parts.reduce(least).unwrap_or(Self { first: NodeNo(u32::MAX), heat: Heat::NONE })
    }
}

/// Summaries of leaves, or of summaries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    pub(crate) heads: Vec<Head>,
    ranges: Vec<Range>,
}

#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    /// What the nodes have; there are as many stocks to a node.
    pub(crate) classes: Vec<ClassNo>,
    pub(crate) zone: u32,
    pub(crate) is_hot: bool,
    leaves: Vec<Leaf>,
    /// Where each leaf begins; the first begins before everything.
    from: Vec<Key>,
    /// The lowest summarises the leaves. The highest has at most [`FAN`].
    levels: Vec<Level>,
}

const BEFORE_ALL: Key = Key { curve: 0, node: NodeNo(0) };

impl Shelf {
    pub(crate) fn new(classes: Vec<ClassNo>, zone: u32, is_hot: bool) -> Self {
        let mut shelf =
            Self { classes, zone, is_hot, leaves: vec![Leaf::default()], from: vec![BEFORE_ALL], levels: Vec::new() };
        shelf.summarise();
        shelf
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.leaves[0].keys.is_empty()
    }

    /// The number of the highest level.
    pub(crate) fn top(&self) -> usize {
        self.levels.len() - 1
    }
    pub(crate) fn level(&self, level: usize) -> &Level {
        &self.levels[level]
    }
    pub(crate) fn range(&self, level: usize, place: usize, column: usize) -> &Range {
        &self.levels[level].ranges[place * self.classes.len() + column]
    }
    pub(crate) fn leaf(&self, place: usize) -> &Leaf {
        &self.leaves[place]
    }
    pub(crate) fn stock<'l>(&self, leaf: &'l Leaf, place: usize, column: usize) -> &'l Stock {
        &leaf.stocks[place * self.classes.len() + column]
    }

    /// The most that is free of a class, if the nodes have it.
    pub(crate) fn most_free(&self, class: ClassNo) -> Option<u64> {
        let column = self.classes.iter().position(|known| *known == class)?;
        let top = self.levels.last()?.ranges.iter().skip(column).step_by(self.classes.len());
        top.map(|range| range.free_hi).max()
    }

    fn leaf_of(&self, key: Key) -> usize {
        self.from.partition_point(|from| *from <= key) - 1
    }

    pub(crate) fn insert(&mut self, key: Key, heat: Heat, stocks: &[Stock]) {
        let at = self.leaf_of(key);
        let leaf = &mut self.leaves[at];
        leaf.keys.push(key);
        leaf.heats.push(heat);
        leaf.stocks.extend_from_slice(stocks);
        if leaf.keys.len() > LEAF_MAX {
            self.split(at);
            self.summarise();
        } else {
            self.look_again(at);
        }
    }

    pub(crate) fn remove(&mut self, key: Key) {
        let width = self.classes.len();
        let at = self.leaf_of(key);
        let leaf = &mut self.leaves[at];
        let place = leaf.place_of(key);
        let last = leaf.keys.len() - 1;
        leaf.keys.swap_remove(place);
        leaf.heats.swap_remove(place);
        leaf.stocks.copy_within(last * width.., place * width);
        leaf.stocks.truncate(last * width);
        if last < LEAF_MIN && self.join(at) {
            self.summarise();
        } else {
            self.look_again(at);
        }
    }

    /// A node that is at `before` now has `stocks`, and belongs at `after`.
    pub(crate) fn change(&mut self, before: Key, after: Key, heat: Heat, stocks: &[Stock]) {
        let at = self.leaf_of(before);
        let stays = self.from[at] <= after && self.from.get(at + 1).is_none_or(|next| after < *next);
        if !stays {
            self.remove(before);
            self.insert(after, heat, stocks);
            return;
        }
        let width = self.classes.len();
        let leaf = &mut self.leaves[at];
        let place = leaf.place_of(before);
        leaf.keys[place] = after;
        leaf.heats[place] = heat;
        let known = &mut leaf.stocks[place * width..][..width];
        let ranges = &mut self.levels[0].ranges[at * width..][..width];
        let mut kept = !self.is_hot;
        let mut widened = false;
        for ((range, old), new) in ranges.iter_mut().zip(known).zip(stocks) {
            let was = *range;
            kept &= range.follow(&Range::of(old), &Range::of(new));
            widened |= *range != was;
            *old = *new;
        }
        if !kept || widened {
            self.look_again(at);
        }
    }

    /// Makes two of a leaf that has become too large.
    fn split(&mut self, at: usize) {
        let width = self.classes.len();
        let leaf = &mut self.leaves[at];
        let mut order: Vec<usize> = (0..leaf.keys.len()).collect();
        order.sort_unstable_by_key(|place| leaf.keys[*place]);
        let upper = order.split_off(order.len() / 2);
        let pick = |places: &[usize]| Leaf {
            keys: places.iter().map(|place| leaf.keys[*place]).collect(),
            heats: places.iter().map(|place| leaf.heats[*place]).collect(),
            stocks: places.iter().flat_map(|place| &leaf.stocks[place * width..][..width]).copied().collect(),
        };
        let (lower, upper) = (pick(&order), pick(&upper));
        let from = upper.keys[0];
        self.leaves[at] = lower;
        self.leaves.insert(at + 1, upper);
        self.from.insert(at + 1, from);
    }

    /// Puts a leaf that has become small into the one beside it, if that has room.
    fn join(&mut self, at: usize) -> bool {
        let first = at.saturating_sub(1);
        let Some(second) = self.leaves.get(first + 1) else { return false };
        if self.leaves[first].keys.len() + second.keys.len() > LEAF_MAX / 2 {
            return false;
        }
        let Leaf { keys, heats, stocks } = self.leaves.remove(first + 1);
        self.from.remove(first + 1);
        let leaf = &mut self.leaves[first];
        leaf.keys.extend(keys);
        leaf.heats.extend(heats);
        leaf.stocks.extend(stocks);
        true
    }

    /// Makes all summaries anew: leaves were added or taken away.
    fn summarise(&mut self) {
        self.levels.clear();
        loop {
            let below = self.levels.last().map_or(self.leaves.len(), |level| level.heads.len());
            let count = if self.levels.is_empty() { below } else { below.div_ceil(FAN) };
            let number = self.levels.len();
            let mut level = Level::default();
            for place in 0..count {
                level.heads.push(self.head_of(number, place));
                (0..self.classes.len()).for_each(|column| level.ranges.push(self.range_of(number, place, column)));
            }
            self.levels.push(level);
            if count <= FAN {
                return;
            }
        }
    }

    /// Brings the summaries over a leaf in line with it, up to where they do not change.
    fn look_again(&mut self, leaf: usize) {
        let width = self.classes.len();
        let mut place = leaf;
        for number in 0..self.levels.len() {
            let head = self.head_of(number, place);
            let mut same = self.levels[number].heads[place] == head && number > 0;
            self.levels[number].heads[place] = head;
            for column in 0..width {
                let range = self.range_of(number, place, column);
                let known = &mut self.levels[number].ranges[place * width + column];
                same &= *known == range;
                *known = range;
            }
            if same {
                return;
            }
            place /= FAN;
        }
    }

    fn head_of(&self, level: usize, place: usize) -> Head {
        match level.checked_sub(1) {
            None => {
                let leaf = &self.leaves[place];
                Head::of(leaf.keys.iter().zip(&leaf.heats).map(|(key, heat)| Head { first: key.node, heat: *heat }))
            }
            Some(below) => Head::of(self.levels[below].heads.chunks(FAN).nth(place).into_iter().flatten().copied()),
        }
    }

    fn range_of(&self, level: usize, place: usize, column: usize) -> Range {
        let width = self.classes.len();
        let mut range = Range::NONE;
        match level.checked_sub(1) {
            None => {
                let stocks = self.leaves[place].stocks.iter().skip(column).step_by(width);
                stocks.for_each(|stock| range.widen(&Range::of(stock)));
            }
            Some(below) => {
                let ranges = self.levels[below].ranges.chunks(FAN * width).nth(place).unwrap_or_default();
                ranges.iter().skip(column).step_by(width).for_each(|part| range.widen(part));
            }
        }
        range
    }
}

impl Leaf {
    fn place_of(&self, key: Key) -> usize {
        self.keys.iter().position(|other| other.node == key.node).expect("a node is where its key says")
    }
}
