//! All search trees of the placement index, and where in them each node is.
//!
//! Nodes share a tree if they are in the same pool, have the same classes with similar capacities, and
//! are all hot or all not. Nodes with a single class without devices are in rows instead, sorted by what
//! is free; the nodes of a row have the same zone and capacity, and none is hot. Everything here is
//! derived from the state: it is not in snapshots, and a restart rebuilds it (ADR 12).

use super::curve::curve;
use super::node_tree::{Key, NodeTree, Slot};
use super::ranking::Ranking;
use super::stock::Stock;
use crate::heat::Heat;
use crate::node::Node;
use leasehold_model::{ClassNo, Name, NodeNo, PoolNo};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The number that stands for "no rack" or "no zone"; nodes with it are not neighbours.
pub(crate) const NOWHERE: u32 = 0;

/// The most rows of a pool; nodes that would need more rows are put into trees.
const ROWS_MAX: usize = 32;

/// Nodes that differ only in what is free.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) class: ClassNo,
    pub(crate) total: u64,
    pub(crate) zone: u32,
    pub(crate) ranking: Ranking,
}

/// The row or the tree that contains a node, with the node's sort key there.
#[derive(Clone, Copy, Debug)]
enum Location {
    Row { row: u32, free: u64 },
    Tree { tree: u32, key: Key },
}

/// What the nodes of a tree have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    pool: PoolNo,
    is_hot: bool,
    /// Each class with the size of its capacity, in quarters of a power of two.
    classes: Vec<(ClassNo, u32)>,
}

/// Where one node is, in the index and in the data centre.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing {
    location: Location,
    pub(crate) zone: u32,
    pub(crate) rack: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTrees {
    trees: Vec<NodeTree>,
    by_kind: BTreeMap<Kind, u32>,
    by_pool: Vec<Vec<u32>>,
    rows: Vec<Row>,
    rows_by_pool: Vec<Vec<u32>>,
    /// By node.
    listings: Vec<Option<Listing>>,
    /// By node: the stocks of nodes in trees, for those that are scored one by one.
    stocks: Vec<Stocks>,
    /// Numbers of zones and of racks. Racks of different zones may have the same name.
    zones: BTreeMap<Name, u32>,
    racks: BTreeMap<(Option<Name>, Name), u32>,
    /// By rack: the nodes in it that may be given work.
    in_rack: Vec<Vec<NodeNo>>,
}

type Stocks = SmallVec<[Stock; 4]>;

fn stocks_of(node: &Node) -> Stocks {
    let mut stocks = Stocks::from_elem(Stock::NONE, node.classes.len());
    for (stock, class) in stocks.iter_mut().zip(&node.classes) {
        stock.refresh(class);
    }
    stocks
}

/// The size of a capacity in quarters of a power of two, so that nodes with slightly different memory share a tree.
fn size_of(capacity: u64) -> u32 {
    let log = (capacity | 1).ilog2();
    let quarter = if log >= 2 { capacity >> (log - 2) & 3 } else { 0 };
    4 * log + u32::try_from(quarter).expect("two bits")
}

fn number_of<K: Ord + Clone>(numbers: &mut BTreeMap<K, u32>, key: &K) -> u32 {
    let next = u32::try_from(numbers.len() + 1).expect("fewer than 2^32 racks and zones");
    *numbers.entry(key.clone()).or_insert(next)
}

impl NodeTrees {
    pub(crate) fn of_pool(&self, pool: PoolNo) -> impl Iterator<Item = &NodeTree> {
        let numbers = self.by_pool.get(pool.0 as usize).into_iter().flatten();
        numbers.map(|number| &self.trees[*number as usize]).filter(|tree| !tree.is_empty())
    }

    pub(crate) fn rows_of(&self, pool: PoolNo) -> impl Iterator<Item = &Row> {
        let numbers = self.rows_by_pool.get(pool.0 as usize).into_iter().flatten();
        numbers.map(|number| &self.rows[*number as usize]).filter(|row| !row.ranking.is_empty())
    }

    /// The tree that contains a node, and its stocks in the order of the tree's classes. `None` if it is in a row.
    pub(crate) fn stocks(&self, node: NodeNo) -> Option<(&NodeTree, &[Stock])> {
        match self.listing(node)?.location {
            Location::Tree { tree, .. } => Some((&self.trees[tree as usize], &self.stocks[node.0 as usize])),
            Location::Row { .. } => None,
        }
    }

    pub(crate) fn listing(&self, node: NodeNo) -> Option<&Listing> {
        self.listings.get(node.0 as usize)?.as_ref()
    }

    /// The numbers of a node's zone and rack, also of a node that is not in the index.
    pub(crate) fn site(&self, node: &Node) -> (u32, u32) {
        if let Some(listing) = self.listing(node.number) {
            return (listing.zone, listing.rack);
        }
        let zone = node.zone.as_ref().and_then(|zone| self.zones.get(zone));
        let rack = node.rack.as_ref().and_then(|rack| self.racks.get(&(node.zone.clone(), rack.clone())));
        (zone.copied().unwrap_or(NOWHERE), rack.copied().unwrap_or(NOWHERE))
    }

    pub(crate) fn in_rack(&self, rack: u32) -> &[NodeNo] {
        self.in_rack.get(rack as usize).map_or(&[], Vec::as_slice)
    }

    /// Numbers the zone and the rack of a node that is not in the index.
    pub(crate) fn note_site(&mut self, node: &Node) {
        if let Some(zone) = &node.zone {
            number_of(&mut self.zones, zone);
        }
        if let Some(rack) = &node.rack {
            number_of(&mut self.racks, &(node.zone.clone(), rack.clone()));
        }
    }

    /// Adds a node that may be given work. `heat` is its heat now.
    pub(crate) fn insert(&mut self, node: &Node, heat: Heat) {
        let zone = node.zone.as_ref().map_or(NOWHERE, |zone| number_of(&mut self.zones, zone));
        let rack = node.rack.as_ref().map(|rack| number_of(&mut self.racks, &(node.zone.clone(), rack.clone())));
        let rack = rack.unwrap_or(NOWHERE);
        if rack != NOWHERE {
            let index = rack as usize;
            if self.in_rack.len() <= index {
                self.in_rack.resize_with(index + 1, Vec::new);
            }
            self.in_rack[index].push(node.number);
        }
        self.insert_at(node, heat, zone, rack);
    }

    fn insert_at(&mut self, node: &Node, heat: Heat, zone: u32, rack: u32) {
        let location = match self.row_for(node, heat, zone) {
            Some(row) => {
                let free = node.classes[0].free();
                self.rows[row as usize].ranking.insert((free, node.number));
                Location::Row { row, free }
            }
            None => {
                let stocks = stocks_of(node);
                let key = Key { curve: curve(&stocks, heat.level), node: node.number };
                let tree = self.tree_for(node, heat.level > 0);
                self.trees[tree as usize].insert(Slot { key, zone }, heat, &stocks);
                let index = node.number.0 as usize;
                if self.stocks.len() <= index {
                    self.stocks.resize_with(index + 1, Stocks::new);
                }
                self.stocks[index] = stocks;
                Location::Tree { tree, key }
            }
        };
        let index = node.number.0 as usize;
        if self.listings.len() <= index {
            self.listings.resize(index + 1, None);
        }
        self.listings[index] = Some(Listing { location, zone, rack });
    }

    /// The row of a node; `None` if it has to be in a tree.
    fn row_for(&mut self, node: &Node, heat: Heat, zone: u32) -> Option<u32> {
        let [class] = node.classes.as_slice() else { return None };
        if class.per_device > 0 || heat.level > 0 {
            return None;
        }
        let pool = node.pool.0 as usize;
        if self.rows_by_pool.len() <= pool {
            self.rows_by_pool.resize_with(pool + 1, Vec::new);
        }
        let same = |row: &Row| (row.class, row.total, row.zone) == (class.class, class.capacity, zone);
        let rows = &mut self.rows_by_pool[pool];
        if let Some(number) = rows.iter().find(|number| same(&self.rows[**number as usize])) {
            return Some(*number);
        }
        if rows.len() >= ROWS_MAX {
            return None;
        }
        let number = u32::try_from(self.rows.len()).expect("few rows per pool");
        rows.push(number);
        self.rows.push(Row { class: class.class, total: class.capacity, zone, ranking: Ranking::default() });
        Some(number)
    }

    fn tree_for(&mut self, node: &Node, is_hot: bool) -> u32 {
        let classes = node.classes.iter().map(|class| (class.class, size_of(class.capacity))).collect();
        let kind = Kind { pool: node.pool, is_hot, classes };
        if let Some(number) = self.by_kind.get(&kind) {
            return *number;
        }
        let number = u32::try_from(self.trees.len()).expect("fewer trees than nodes");
        self.trees.push(NodeTree::new(kind.pool, kind.classes.iter().map(|(class, _)| *class).collect(), is_hot));
        let pool = kind.pool.0 as usize;
        if self.by_pool.len() <= pool {
            self.by_pool.resize_with(pool + 1, Vec::new);
        }
        self.by_pool[pool].push(number);
        self.by_kind.insert(kind, number);
        number
    }

    pub(crate) fn remove(&mut self, node: NodeNo) {
        let Some(listing) = self.listings.get_mut(node.0 as usize).and_then(Option::take) else { return };
        self.leave(node, listing.location);
        if listing.rack != NOWHERE {
            self.in_rack[listing.rack as usize].retain(|other| *other != node);
        }
    }

    fn leave(&mut self, node: NodeNo, location: Location) {
        match location {
            Location::Row { row, free } => self.rows[row as usize].ranking.remove((free, node)),
            Location::Tree { tree, key } => self.trees[tree as usize].remove(key),
        }
    }

    /// Updates an indexed node of which only the free capacity or the heat has changed.
    pub(crate) fn change(&mut self, node: &Node, heat: Heat) {
        let Some(Some(listing)) = self.listings.get_mut(node.number.0 as usize) else { return };
        match &mut listing.location {
            Location::Row { row, free } if heat.level == 0 => {
                let now = node.classes[0].free();
                self.rows[*row as usize].ranking.change(node.number, *free, now);
                *free = now;
            }
            Location::Tree { tree, key } if self.trees[*tree as usize].is_hot == (heat.level > 0) => {
                let stocks = stocks_of(node);
                let now = Key { curve: curve(&stocks, heat.level), node: node.number };
                let slot = Slot { key: *key, zone: listing.zone };
                *key = self.trees[*tree as usize].change(slot, now, heat, &stocks);
                self.stocks[node.number.0 as usize] = stocks;
            }
            _ => {
                let Listing { location, zone, rack } = *listing;
                self.leave(node.number, location);
                self.insert_at(node, heat, zone, rack);
            }
        }
    }
}
