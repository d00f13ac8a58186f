//! The evictable leases of each node, counted, so that planning an eviction has to examine few nodes.

use crate::lease::Lease;
use crate::node::{Node, NodeClass};
use crate::prefetch::prefetch;
use crate::state::State;
use leasehold_model::{ClassNo, NodeNo, Priority};

/// Evictable leases on one device or, for kinds without devices, on the node; by priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evictable {
    pub(crate) quanta: [u64; 3],
    /// The number of leases that use no other device.
    pub(crate) leases: [u32; 3],
}

impl Evictable {
    fn change(&mut self, lease: &Lease, quanta: u64, added: bool) {
        let (index, one) = (lease.priority.index(), u32::from(lease.devices.count_ones() <= 1));
        let (of, count) = (&mut self.quanta[index], &mut self.leases[index]);
        (*of, *count) = if added { (*of + quanta, *count + one) } else { (*of - quanta, *count - one) };
    }
}

/// The evictable leases of one class on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvictableClass {
    class: ClassNo,
    /// For each device; kinds without devices have one entry.
    pub(crate) on: Vec<Evictable>,
    /// How many may share their gang with other leases of this class, and how many with any other leases.
    pub(crate) in_crowds: u32,
    pub(crate) in_gangs: u32,
}

impl EvictableClass {
    fn none_of(class: &NodeClass) -> Self {
        let on = vec![Evictable::default(); class.devices.len().max(1)];
        Self { class: class.class, on, in_crowds: 0, in_gangs: 0 }
    }

    fn count(&mut self, lease: &Lease, added: bool) {
        let by = |count: &mut u32| *count = if added { *count + 1 } else { *count - 1 };
        if lease.crowd {
            by(&mut self.in_crowds);
        }
        if lease.crowd || lease.gang_len > 1 {
            by(&mut self.in_gangs);
        }
        if lease.devices == 0 {
            self.on[0].change(lease, lease.quanta.0, added);
            return;
        }
        let each = lease.quanta.0 / u64::from(lease.devices.count_ones());
        let mut rest = lease.devices;
        while rest != 0 {
            self.on[rest.trailing_zeros() as usize].change(lease, each, added);
            rest &= rest - 1;
        }
    }

    fn quanta(&self, priority: usize) -> u64 {
        self.on.iter().map(|on| on.quanta[priority]).sum()
    }
}

/// The evictable leases of one node, by class in the node's own order.
pub(crate) type EvictableNode = Vec<EvictableClass>;

pub(crate) fn count(node: &mut EvictableNode, lease: &Lease, added: bool) {
    let class = node.iter_mut().find(|known| known.class == lease.class);
    class.expect("a lease's class exists on its node").count(lease, added);
}

/// The evictable leases of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evictables {
    nodes: Vec<EvictableNode>,
    /// Quanta on all nodes, by class and priority.
    sums: Vec<[u64; 3]>,
}

impl Evictables {
    pub(crate) fn on(&self, node: NodeNo) -> &EvictableNode {
        const NOTHING: &EvictableNode = &Vec::new();
        self.nodes.get(node.0 as usize).unwrap_or(NOTHING)
    }

    /// Loads where the counts of a node are.
    pub(crate) fn prefetch(&self, node: NodeNo) {
        if let Some(counted) = self.nodes.get(node.0 as usize) {
            prefetch(counted);
        }
    }
    /// Loads the counts of the first class of a node.
    pub(crate) fn prefetch_first(&self, node: NodeNo) {
        if let Some(first) = self.on(node).first() {
            prefetch(first);
        }
    }

    /// Evictable quanta of a class below a priority, on all nodes.
    pub(crate) fn below(&self, class: ClassNo, priority: Priority) -> u64 {
        let held = self.sums.get(class.0 as usize).copied().unwrap_or_default();
        held[..priority.index()].iter().sum()
    }

    /// Evictable quanta of a class below a priority, on one node.
    pub(crate) fn below_on(&self, node: NodeNo, class: ClassNo, priority: Priority) -> u64 {
        let known = self.on(node).iter().find(|known| known.class == class);
        known.map_or(0, |known| (0..priority.index()).map(|below| known.quanta(below)).sum())
    }

    /// Counts a lease that has become evictable, or is no longer.
    pub(crate) fn count(&mut self, lease: &Lease, added: bool) {
        count(&mut self.nodes[lease.node.0 as usize], lease, added);
        let sum = &mut self.sums[lease.class.0 as usize][lease.priority.index()];
        *sum = if added { *sum + lease.quanta.0 } else { *sum - lease.quanta.0 };
    }

    /// Recounts the leases of a node.
    pub(crate) fn recount(&mut self, state: &State, number: NodeNo) {
        let place = number.0 as usize;
        if self.nodes.len() <= place {
            self.nodes.resize_with(place + 1, Vec::new);
        }
        self.add_to_sums(place, false);
        self.nodes[place] = state.node(number).map_or_else(Vec::new, |node| Self::counted(state, node));
        self.add_to_sums(place, true);
    }

    fn counted(state: &State, node: &Node) -> EvictableNode {
        let mut counted = node.classes.iter().map(EvictableClass::none_of).collect();
        for lease in state.chain_of(node.number).filter(|lease| lease.is_evictable()) {
            count(&mut counted, lease, true);
        }
        counted
    }

    fn add_to_sums(&mut self, place: usize, added: bool) {
        for known in &self.nodes[place] {
            let class = known.class.0 as usize;
            if self.sums.len() <= class {
                self.sums.resize(class + 1, [0; 3]);
            }
            for (priority, sum) in self.sums[class].iter_mut().enumerate() {
                let quanta = known.quanta(priority);
                *sum = if added { *sum + quanta } else { *sum - quanta };
            }
        }
    }

    /// Whether the counts of a node are up to date.
    pub(crate) fn match_node(&self, state: &State, node: &Node) -> bool {
        *self.on(node.number) == Self::counted(state, node)
    }
}
