//! Agents: a node has at most one; each registration is a generation.

use crate::heat::of_report;
use crate::violation::{Checked, demand, found};
use crate::world::{Condition, World};
use leasehold_model::body::{AgentRegistered, NodeCondition};
use leasehold_model::{Instant, NodeNo};

impl World {
    /// Generations of a node increase by one, also after an agent was detached.
    pub(crate) fn agent_registered(&mut self, registered: &AgentRegistered, stamp: Instant) -> Checked {
        let number = registered.node;
        let node = found!(self.nodes.get_mut(&number), "unknown-node", "there is no {number}");
        let (last, next) = (node.last_generation, registered.generation);
        demand!(next == last + 1, "generation", "{next} on {number} after {last}");
        node.last_generation = next;
        node.agent = Some((next, registered.instance));
        self.shows_life(number, stamp);
        Ok(())
    }

    pub(crate) fn agent_detached(&mut self, number: NodeNo, stamp: Instant) -> Checked {
        let node = found!(self.nodes.get_mut(&number), "unknown-node", "there is no {number}");
        demand!(node.agent.is_some(), "node-already", "{number} has no agent");
        node.agent = None;
        self.report_falls(number, stamp);
        Ok(())
    }

    /// Recorded only if something changes (SEMANTICS 5), and only for nodes with an agent.
    pub(crate) fn node_condition(&mut self, condition: &NodeCondition, stamp: Instant) -> Checked {
        let number = condition.node;
        let node = found!(self.nodes.get_mut(&number), "unknown-node", "there is no {number}");
        let new: Condition = (condition.load, condition.errors, condition.throttled);
        demand!(node.agent.is_some(), "condition", "{number} has no agent");
        demand!(node.condition != new, "condition", "{number} is in that condition already");
        let before = std::mem::replace(&mut node.condition, new);
        self.shows_life(number, stamp);
        self.heats(number, of_report(before, new), stamp);
        self.report_stands(number, stamp);
        Ok(())
    }
}
