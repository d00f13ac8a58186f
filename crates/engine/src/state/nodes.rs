//! Folding the records of nodes: capacity, agents and heat.

use super::fold::put;
use super::{State, entry, entry_mut};
use crate::claims::ChangedAt;
use crate::follow::Follower;
use crate::heat::{self, Heat};
use crate::node::{Agent, Condition, Node, NodeClass};
use leasehold_model::body::{AgentRegistered, NodePut};
use leasehold_model::{Instant, LeaseNo, NodeNo, Span};

type Folded = Result<(), &'static str>;

/// The rules version from which reports stand, and fences with one deadline heat a node once.
const STANDING_REPORTS: u32 = 4;

impl State {
    pub(super) fn fold_node(&mut self, n: &NodePut, to: &mut impl Follower) -> Folded {
        let number = n.node;
        let mut node = match self.nodes.get_mut(number.0 as usize).and_then(Option::take) {
            Some(old) => {
                self.names.nodes.remove(&old.name);
                self.count_node(&old, false, to)?;
                old
            }
            None => Node::new(number, n.name.clone(), n.pool),
        };
        self.names.nodes.insert(n.name.clone(), number.0);
        node.name = n.name.clone();
        node.pool = n.pool;
        node.rack = n.rack.clone();
        node.zone = n.zone.clone();
        node.labels = n.labels.clone();
        node.teardown = n.teardown;
        let before = std::mem::take(&mut node.classes);
        for (class, capacity) in &n.capacity {
            let spec = entry(&self.classes, u32::from(class.0)).ok_or("no such class")?;
            let per_device = spec.has_devices().then_some(spec.quanta_per_unit);
            let mut now = NodeClass::new(*class, *capacity, per_device);
            if let Some(old) = before.iter().find(|c| c.class == *class) {
                now.held = old.held;
                now.tearing_down = old.tearing_down;
                now.fenced = old.fenced;
                now.reserved = old.reserved;
                for (new, old) in now.devices.iter_mut().zip(&old.devices) {
                    *new = *old;
                }
            }
            node.classes.push(now);
        }
        self.count_node(&node, true, to)?;
        put(&mut self.nodes, number.0, node)?;
        self.end_protection_on(number, to);
        to.recheck_queue();
        to.node_put(self, number);
        self.fill_reservations(number, to)
    }

    /// Counts a node in or out of its pool.
    pub(super) fn count_node(&mut self, node: &Node, added: bool, to: &mut impl Follower) -> Folded {
        let pool = entry_mut(&mut self.pools, node.pool.0).ok_or("no such pool")?;
        let (one, gpu) = (1, u32::from(node.has_gpus()));
        match added {
            true => (pool.nodes, pool.gpu_nodes) = (pool.nodes + one, pool.gpu_nodes + gpu),
            false => (pool.nodes, pool.gpu_nodes) = (pool.nodes - one, pool.gpu_nodes - gpu),
        }
        // Shares on the pool may be of something else from now on.
        to.standings_changed();
        Ok(())
    }

    pub(super) fn set_node_state(
        &mut self,
        node: NodeNo,
        at: ChangedAt,
        change: impl FnOnce(&mut Node),
        to: &mut impl Follower,
    ) -> Folded {
        self.recount_claim(node, at, to, |state, _| {
            change(entry_mut(&mut state.nodes, node.0).ok_or("no such node")?);
            Ok(())
        })?;
        self.end_protection_on(node, to);
        to.recheck_queue();
        to.node_put(self, node);
        Ok(())
    }

    pub(super) fn fold_agent(&mut self, registered: &AgentRegistered) -> Folded {
        let node = entry_mut(&mut self.nodes, registered.node.0).ok_or("no such node")?;
        let generation = registered.generation;
        if node.last_generation.checked_add(1) != Some(generation) {
            return Err("the agent's generation is out of order");
        }
        node.last_generation = generation;
        node.agent = Some(Agent { generation, instance: registered.instance });
        Ok(())
    }

    /// A node's heat for comparison: a node that has cooled down equals one that was never hot.
    pub(crate) fn heat_left(&self, node: &Node) -> Heat {
        if node.heat.at(self.last_stamp, self.settings.heat_half_life) == 0 {
            return Heat::NONE;
        }
        node.heat
    }

    /// Raises the heat of a node that had trouble, so that placement avoids it for a while.
    pub(super) fn heat(&mut self, number: NodeNo, by: u16, stamp: Instant, to: &mut impl Follower) -> Folded {
        let half_life = self.settings.heat_half_life;
        entry_mut(&mut self.nodes, number.0).ok_or("no such node")?.heat.rise(by, stamp, half_life);
        to.node_changed(self, number);
        Ok(())
    }

    /// The agent reported a condition. Its report stands until the next one.
    pub(super) fn fold_condition(
        &mut self,
        number: NodeNo,
        condition: Condition,
        stamp: Instant,
        to: &mut impl Follower,
    ) -> Folded {
        let node = entry_mut(&mut self.nodes, number.0).ok_or("no such node")?;
        let before = std::mem::replace(&mut node.condition, condition);
        self.heat(number, heat::of_report(before, condition), stamp, to)?;
        self.set_standing(number, stamp, to)
    }

    /// The report of an agent that was detached, or whose node was lost, no longer stands.
    pub(super) fn drop_report(&mut self, number: NodeNo, stamp: Instant, to: &mut impl Follower) -> Folded {
        if self.follows_rules(STANDING_REPORTS) {
            entry_mut(&mut self.nodes, number.0).ok_or("no such node")?.condition = Condition::default();
            self.set_standing(number, stamp, to)?;
        }
        Ok(())
    }

    /// Keeps the heat of a node at or above what its standing report adds.
    fn set_standing(&mut self, number: NodeNo, stamp: Instant, to: &mut impl Follower) -> Folded {
        let (applies, half_life) = (self.follows_rules(STANDING_REPORTS), self.settings.heat_half_life);
        let node = entry_mut(&mut self.nodes, number.0).ok_or("no such node")?;
        let floor = if applies { heat::floor_of(node.condition) } else { 0 };
        if floor != node.heat.floor {
            node.heat.set_floor(floor, stamp, half_life);
            to.node_changed(self, number);
        }
        Ok(())
    }

    /// The rules of the process that starts now apply to the reports that stand.
    pub(super) fn restart_reports(&mut self, stamp: Instant, to: &mut impl Follower) {
        let numbers: Vec<NodeNo> = self.nodes().map(|node| node.number).collect();
        for number in numbers {
            self.set_standing(number, stamp, to).expect("the node was just listed");
        }
    }

    pub(super) fn fold_fences(
        &mut self,
        leases: &[LeaseNo],
        (stamp, due): (Instant, Instant),
        to: &mut impl Follower,
    ) -> Folded {
        self.fold_fenced(leases, ChangedAt { stamp, effective: due }, to)?;
        let mut nodes: Vec<NodeNo> = leases.iter().filter_map(|lease| Some(self.lease(*lease)?.node)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        // Records are made for each holder, but a node that missed one deadline had trouble once.
        let by_deadline = self.follows_rules(STANDING_REPORTS);
        for number in nodes {
            let node = entry_mut(&mut self.nodes, number.0).ok_or("no such node")?;
            if node.fenced_at.replace(due) != Some(due) || !by_deadline {
                self.heat(number, heat::FENCED, stamp, to)?;
            }
            self.end_protection_on(number, to);
        }
        Ok(())
    }

    /// Changes the half-life: the present heat of each node is kept and decays with the new half-life.
    pub(super) fn fold_half_life(&mut self, half_life: Span, stamp: Instant, to: &mut impl Follower) {
        let old = std::mem::replace(&mut self.settings.heat_half_life, half_life);
        for place in 0..self.nodes.len() {
            let Some(node) = &mut self.nodes[place] else { continue };
            if node.heat != Heat::NONE {
                node.heat.regrid(stamp, old, half_life);
                let number = node.number;
                to.node_changed(self, number);
            }
        }
    }
}
