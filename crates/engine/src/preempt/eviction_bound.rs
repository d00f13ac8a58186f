//! A lower bound for what must be evicted on each node, in so few bytes per node that a plan can read those of all nodes.
//!
//! The bounds are derived from the nodes' classes and evictable leases, and are recomputed before the first plan after
//! either has changed. The planner reads the leases only of nodes whose bound is low enough.

use crate::evictable::{Evictable, EvictableClass, EvictableNode, Evictables};
use crate::node::{Node, NodeClass};
use crate::state::State;
use leasehold_model::{ClassNo, NodeNo, Priority};

/// Victims are scavengers only (level 0), or scavengers and standard (level 1).
const LEVELS: usize = 2;
/// How many devices are listed individually, those with the least in use.
const CHEAPEST: usize = 4;

/// The bound for one class on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvictionBound {
    /// Quanta of one device; zero for kinds without devices.
    unit: u64,
    /// What is free in one piece: on one device, for kinds with devices.
    free: u64,
    /// What evictions could make free in one piece, by level. Zero if the node lacks the class.
    room: [u64; LEVELS],
    /// The least quanta in use on devices that are in use and can be cleared by evictions, by level.
    sizes: [[u32; CHEAPEST]; LEVELS],
    /// The fewest leases on such devices, counting leases on a single device only.
    leases: [[u16; CHEAPEST]; LEVELS],
    /// The number of devices that are idle or can be cleared, by level.
    clear: [u8; LEVELS],
    idle: u8,
    /// Whether an evictable lease may share its gang with other leases of this class, or with any other leases.
    in_crowds: bool,
    in_gangs: bool,
}

/// A lower bound for the victims of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeastEviction {
    /// The highest priority among the victims.
    pub(super) highest: Priority,
    pub(super) leases: usize,
    pub(super) quanta: u64,
}

impl EvictionBound {
    const NOTHING: Self = Self {
        unit: 0,
        free: 0,
        room: [0; LEVELS],
        sizes: [[u32::MAX; CHEAPEST]; LEVELS],
        leases: [[u16::MAX; CHEAPEST]; LEVELS],
        clear: [0; LEVELS],
        idle: 0,
        in_crowds: false,
        in_gangs: false,
    };

    pub(crate) fn of(class: &NodeClass, evictable: &EvictableClass) -> Self {
        let (in_crowds, in_gangs) = (evictable.in_crowds > 0, evictable.in_gangs > 0);
        let mut bound = Self { unit: class.per_device, in_crowds, in_gangs, ..Self::NOTHING };
        if class.per_device == 0 {
            bound.add_piece(class.free(), &evictable.on[0]);
            return bound;
        }
        for (used, on) in class.devices.iter().zip(&evictable.on) {
            bound.add_piece(class.per_device - used, on);
            if *used == 0 {
                bound.idle += 1;
                bound.clear.iter_mut().for_each(|clear| *clear += 1);
            } else {
                bound.add_device_in_use(*used, on);
            }
        }
        bound
    }

    /// Adds one device, or a node without devices: what is free in one piece, and what evictions could make free.
    fn add_piece(&mut self, free: u64, on: &Evictable) {
        self.free = self.free.max(free);
        let mut room = free;
        for (level, quanta) in on.quanta.iter().take(LEVELS).enumerate() {
            room += quanta;
            self.room[level] = self.room[level].max(room);
        }
    }

    /// Adds a device that is in use, at each level at which evictions would clear it.
    fn add_device_in_use(&mut self, used: u64, on: &Evictable) {
        let (mut quanta, mut leases) = (0, 0);
        for level in 0..LEVELS {
            quanta += on.quanta[level];
            leases += on.leases[level];
            if quanta == used {
                self.clear[level] += 1;
                keep_least(&mut self.sizes[level], u32::try_from(used).unwrap_or(u32::MAX));
                keep_least(&mut self.leases[level], u16::try_from(leases).unwrap_or(u16::MAX));
            }
        }
    }

    /// The least that must be evicted for `asked` to fit; `None` if evicting everything below a priority is not enough.
    pub(super) fn least_eviction(&self, asked: u64, below: Priority) -> Option<LeastEviction> {
        let mut levels = (0..LEVELS).take(below.index());
        if self.unit == 0 || asked <= self.unit {
            let level = levels.find(|level| self.room[*level] >= asked)?;
            let quanta = asked.saturating_sub(self.free);
            return Some(LeastEviction { highest: Priority::ALL[level], leases: usize::from(quanta > 0), quanta });
        }
        let wanted = usize::try_from(asked / self.unit).ok()?;
        // The lowest priority is evicted first; the next only if that is not enough.
        let level = levels.find(|level| usize::from(self.clear[*level]) >= wanted)?;
        let in_use = wanted.saturating_sub(usize::from(self.idle));
        let quanta = sum_of_least(self.sizes[level].map(u64::from), in_use);
        let leases = sum_of_least(self.leases[level].map(u64::from), in_use);
        let leases = usize::try_from(leases.max(u64::from(quanta > 0))).ok()?;
        Some(LeastEviction { highest: Priority::ALL[level], leases, quanta })
    }

    /// The least number of gangs that this many leases of the class can belong to.
    pub(super) fn gangs(&self, leases: usize) -> usize {
        if self.in_crowds { leases.min(1) } else { leases }
    }

    /// Whether leases of other classes may belong to the gangs of this one.
    pub(super) fn shares_gangs(&self) -> bool {
        self.in_gangs
    }
}

/// Inserts a value into the list of the least ones, which is sorted.
fn keep_least<T: Ord + Copy>(least: &mut [T; CHEAPEST], mut one: T) {
    for kept in least {
        if one < *kept {
            std::mem::swap(kept, &mut one);
        }
    }
}

/// A lower bound for the sum of the `count` least values: values that are not listed are no less than the last listed.
fn sum_of_least(least: [u64; CHEAPEST], count: usize) -> u64 {
    let known: u64 = least.iter().take(count).sum();
    known + least[CHEAPEST - 1].saturating_mul(count.saturating_sub(CHEAPEST) as u64)
}

/// The bounds of every class on every node.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvictionBounds {
    /// By class, then by node.
    by_class: Vec<Vec<EvictionBound>>,
    /// By node: whether its bounds must be recomputed before they are used.
    is_outdated: Vec<bool>,
    /// These nodes.
    outdated: Vec<NodeNo>,
}

impl EvictionBounds {
    /// Notes that the free capacity or the evictable leases of a node have changed. Its bounds are recomputed when
    /// they are needed: most grants and ends are not followed by a plan.
    pub(crate) fn mark_outdated(&mut self, node: NodeNo) {
        let place = node.0 as usize;
        if self.is_outdated.len() <= place {
            self.is_outdated.resize(place + 1, false);
        }
        if !std::mem::replace(&mut self.is_outdated[place], true) {
            self.outdated.push(node);
        }
    }

    pub(super) fn is_outdated(&self, node: NodeNo) -> bool {
        self.is_outdated.get(node.0 as usize).copied().unwrap_or(false)
    }

    /// Recomputes the bounds of all nodes that have changed.
    pub(crate) fn refresh(&mut self, state: &State, evictables: &Evictables) {
        for number in std::mem::take(&mut self.outdated) {
            self.is_outdated[number.0 as usize] = false;
            if let Some(node) = state.node(number) {
                self.update(node, evictables.on(number));
            }
        }
    }

    /// Recomputes the bounds of a node.
    pub(crate) fn update(&mut self, node: &Node, evictable: &EvictableNode) {
        for (class, evictable) in node.classes.iter().zip(evictable) {
            let place = class.class.0 as usize;
            if self.by_class.len() <= place {
                self.by_class.resize_with(place + 1, Vec::new);
            }
            let (of_class, place) = (&mut self.by_class[place], node.number.0 as usize);
            if of_class.len() <= place {
                of_class.resize(place + 1, EvictionBound::NOTHING);
            }
            of_class[place] = EvictionBound::of(class, evictable);
        }
    }

    /// The bounds of one class, by node number; nodes at the end that never had the class may be missing.
    pub(super) fn of_class(&self, class: ClassNo) -> &[EvictionBound] {
        self.by_class.get(class.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether the bounds of a node are right, or known to be outdated.
    pub(super) fn match_node(&self, node: &Node, evictable: &EvictableNode) -> bool {
        if self.is_outdated(node.number) {
            return true;
        }
        let known = |class: &NodeClass| self.of_class(class.class).get(node.number.0 as usize);
        let mut classes = node.classes.iter().zip(evictable);
        classes.all(|(class, evictable)| known(class) == Some(&EvictionBound::of(class, evictable)))
    }

    /// Clears the bounds of a node whose capacity has changed: it may lack classes that it had.
    pub(crate) fn forget(&mut self, node: NodeNo) {
        for of_class in &mut self.by_class {
            if let Some(bound) = of_class.get_mut(node.0 as usize) {
                *bound = EvictionBound::NOTHING;
            }
        }
    }
}
