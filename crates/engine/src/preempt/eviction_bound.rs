//! What could be evicted from each node, at a bound: so few bytes for each node that a plan can look at all of them.
//!
//! All of it follows from the nodes' classes and is made anew with them: when what is free on a node changes, or who
//! may fall there. It only has to bound a plan from below; the plan itself looks at the leases.

use crate::evictable::{Evictable, EvictableClass, EvictableNode};
use crate::node::{Node, NodeClass};
use leasehold_model::{ClassNo, NodeNo, Priority};

/// Those that fall to others are scavengers, or they are scavengers and standard: one level for each.
const LEVELS: usize = 2;
/// Of so many devices the cheapest are known by themselves.
const CHEAPEST: usize = 4;

/// One class on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvictionBound {
    /// Quanta of one device; zero for kinds without.
    unit: u64,
    /// What is free in one piece: on one device, where there are any.
    free: u64,
    /// What could be made free in one piece, by level. Nothing where the node lacks the class.
    room: [u64; LEVELS],
    /// The least that is used of devices that can be cleared and are not idle, by level.
    sizes: [[u32; CHEAPEST]; LEVELS],
    /// The fewest leases on such devices that lie on no other.
    leases: [[u16; CHEAPEST]; LEVELS],
    /// Devices that can be cleared, the idle ones among them, by level.
    clear: [u8; LEVELS],
    idle: u8,
    /// Whether any that may fall share a gang with others of this class, or with others at all.
    in_crowds: bool,
    in_gangs: bool,
}

/// The least that must fall of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeastEviction {
    /// The highest priority among it.
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

    /// What is free in one piece, and what would be.
    fn add_piece(&mut self, free: u64, on: &Evictable) {
        self.free = self.free.max(free);
        let mut room = free;
        for (level, quanta) in on.quanta.iter().take(LEVELS).enumerate() {
            room += quanta;
            self.room[level] = self.room[level].max(room);
        }
    }

    /// A device that is in use, by levels at which nothing of it would be left.
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

    /// The least that must fall for `asked` to fit; `None` if all below a priority would not be enough.
    pub(super) fn least_eviction(&self, asked: u64, below: Priority) -> Option<LeastEviction> {
        let mut levels = (0..LEVELS).take(below.index());
        if self.unit == 0 || asked <= self.unit {
            let level = levels.find(|level| self.room[*level] >= asked)?;
            let quanta = asked.saturating_sub(self.free);
            return Some(LeastEviction { highest: Priority::ALL[level], leases: usize::from(quanta > 0), quanta });
        }
        let wanted = usize::try_from(asked / self.unit).ok()?;
        // Those of lower priority fall first: where they are enough, no other does.
        let level = levels.find(|level| usize::from(self.clear[*level]) >= wanted)?;
        let in_use = wanted.saturating_sub(usize::from(self.idle));
        let quanta = sum_of_least(self.sizes[level].map(u64::from), in_use);
        let leases = sum_of_least(self.leases[level].map(u64::from), in_use);
        let leases = usize::try_from(leases.max(u64::from(quanta > 0))).ok()?;
        Some(LeastEviction { highest: Priority::ALL[level], leases, quanta })
    }

    /// How many gangs so many leases of the class are at least.
    pub(super) fn gangs(&self, leases: usize) -> usize {
        if self.in_crowds { leases.min(1) } else { leases }
    }

    /// Whether leases of other classes may fall with those of this one.
    pub(super) fn shares_gangs(&self) -> bool {
        self.in_gangs
    }
}

/// Keeps the least of what it is shown, in order.
fn keep_least<T: Ord + Copy>(least: &mut [T; CHEAPEST], mut one: T) {
    for kept in least {
        if one < *kept {
            std::mem::swap(kept, &mut one);
        }
    }
}

/// At least what the `count` least come to: those that are not known by themselves are no less than the last known.
fn sum_of_least(least: [u64; CHEAPEST], count: usize) -> u64 {
    let known: u64 = least.iter().take(count).sum();
    known + least[CHEAPEST - 1].saturating_mul(count.saturating_sub(CHEAPEST) as u64)
}

/// Every class on every node.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvictionBounds {
    /// By class, then by node.
    by_class: Vec<Vec<EvictionBound>>,
}

impl EvictionBounds {
    /// What is free on a node has changed, or who may fall there.
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

    /// One class on all nodes, by number; those that never had it may be missing at the end.
    pub(super) fn of_class(&self, class: ClassNo) -> &[EvictionBound] {
        self.by_class.get(class.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether all that is known of a node is what there is.
    pub(super) fn match_node(&self, node: &Node, evictable: &EvictableNode) -> bool {
        let known = |class: &NodeClass| self.of_class(class.class).get(node.number.0 as usize);
        let mut classes = node.classes.iter().zip(evictable);
        classes.all(|(class, evictable)| known(class) == Some(&EvictionBound::of(class, evictable)))
    }

    /// A node has another capacity: it may lack classes that it had.
    pub(crate) fn forget(&mut self, node: NodeNo) {
        for of_class in &mut self.by_class {
            if let Some(bound) = of_class.get_mut(node.0 as usize) {
                *bound = EvictionBound::NOTHING;
            }
        }
    }
}
