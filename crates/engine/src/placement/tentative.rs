//! The capacity that the earlier replicas of a decision take, before any record of it exists.

use super::Placed;
use crate::lease::Lease;
use crate::node::{Node, NodeClass};
use crate::quota::Quota;
use crate::reservation::ReservedMember;
use crate::state::State;
use crate::tally::{Count, Holder};
use leasehold_model::{ClassNo, NodeNo, QuotaNo};

/// The changes on one node: its classes as they would be, and the amounts that count in quotas.
#[derive(Clone, Debug)]
struct Taken {
    node: NodeNo,
    classes: Vec<NodeClass>,
    counted: Vec<(QuotaNo, Count)>,
}

/// An overlay over the state: the nodes that differ from it, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tentative {
    taken: Vec<Taken>,
}

impl Tentative {
    pub(crate) const NOTHING: &'static Self = &Self { taken: Vec::new() };

    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    fn find(&self, node: NodeNo) -> Result<usize, usize> {
        if self.taken.is_empty() { Err(0) } else { self.taken.binary_search_by_key(&node, |taken| taken.node) }
    }

    pub(crate) fn touches(&self, node: NodeNo) -> bool {
        self.find(node).is_ok()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeNo> + '_ {
        self.taken.iter().map(|taken| taken.node)
    }

    /// A node's classes with the changes of this overlay.
    pub(crate) fn classes<'s>(&'s self, node: &'s Node) -> &'s [NodeClass] {
        self.find(node.number).map_or(&node.classes, |index| &self.taken[index].classes)
    }

    pub(crate) fn class<'s>(&'s self, node: &'s Node, class: ClassNo) -> Option<&'s NodeClass> {
        self.classes(node).iter().find(|c| c.class == class)
    }

    fn classes_mut(&mut self, node: &Node) -> &mut Taken {
        let index = self.find(node.number).unwrap_or_else(|index| {
            let taken = Taken { node: node.number, classes: node.classes.clone(), counted: Vec::new() };
            self.taken.insert(index, taken);
            index
        });
        &mut self.taken[index]
    }

    /// Removes a lease from its node.
    pub(crate) fn vacate(&mut self, node: &Node, lease: &Lease) {
        let taken = self.classes_mut(node);
        let class = taken.classes.iter_mut().find(|class| class.class == lease.class);
        let class = class.expect("a lease's class exists on its node");
        match lease.phase.is_held() {
            true => class.held -= lease.quanta.0,
            false => class.tearing_down -= lease.quanta.0,
        }
        class.occupy_devices(lease.devices, lease.quanta, false);
    }

    /// Frees what is reserved on a node for one replica.
    pub(crate) fn unreserve(&mut self, node: &Node, members: &[ReservedMember]) {
        let taken = self.classes_mut(node);
        for kept in members {
            let class = taken.classes.iter_mut().find(|class| class.class == kept.class);
            kept.clone().empty(class.expect("a reserved class exists on its node"));
        }
    }

    /// Takes the capacity of a placed replica, and counts it in the quotas that it was placed under.
    pub(crate) fn take(&mut self, state: &State, placed: &Placed, node_quotas: &[(QuotaNo, Count)]) {
        let taken = self.classes_mut(state.node(placed.node).expect("the chosen node exists"));
        for member in &placed.members {
            let class = taken.classes.iter_mut().find(|class| class.class == member.class);
            let class = class.expect("the chosen node has the class");
            class.held += member.quanta.0;
            class.occupy_devices(member.devices, member.quanta, true);
        }
        self.count(state, placed, node_quotas);
    }

    /// Counts a replica in quotas whose capacity was reserved before.
    pub(crate) fn count(&mut self, state: &State, placed: &Placed, node_quotas: &[(QuotaNo, Count)]) {
        let taken = self.classes_mut(state.node(placed.node).expect("the chosen node exists"));
        for (number, amount) in node_quotas {
            let quota = state.quota(*number).expect("a listed quota exists");
            if quota.covers(placed.pool, placed.node) {
                taken.counted.push((*number, *amount));
            }
        }
    }

    /// What the overlay adds to a quota, all of it for `holder`. `node` is the node that [`Counted::here`] refers to.
    pub(crate) fn counted(&self, quota: &Quota, holder: Holder, node: NodeNo) -> Counted {
        let mut counted = Counted::default();
        for taken in &self.taken {
            let of_quota = taken.counted.iter().filter(|(number, _)| *number == quota.number);
            let amount: Count = of_quota.map(|(_, amount)| amount).sum();
            if amount > 0 {
                counted.amount += amount;
                counted.new_nodes += Count::from(quota.used_on(holder, taken.node).is_none());
                if taken.node == node {
                    counted.here = amount;
                }
            }
        }
        counted
    }
}

/// What counts in a quota besides its use: what earlier replicas of a decision add, and headroom.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// In all.
    pub(crate) amount: Count,
    /// On the node in question.
    pub(crate) here: Count,
    /// Nodes that the quota did not count before.
    pub(crate) new_nodes: Count,
    /// Headroom that is held for others.
    pub(crate) held: Count,
    /// What will be freed before the request starts.
    pub(crate) freed: Count,
}
