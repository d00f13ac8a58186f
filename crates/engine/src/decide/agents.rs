//! Commands about agents: the process on each node that reports for it.

use super::Draft;
use crate::command::{RegisterAgent, ReportCondition};
use crate::node::{Condition, Node};
use crate::refusal::{Refusal, RegisteredGeneration};
use leasehold_model::NodeNo;
use leasehold_model::body::{AgentDetached, AgentRegistered, NodeCondition};

impl Draft<'_> {
    fn known_node(&self, node: NodeNo) -> Result<&Node, Refusal> {
        self.state().node(node).ok_or(Refusal::UnknownNode { node })
    }

    /// Only the registered agent may report for its node. A replaced agent must not confirm teardowns of which its
    /// successor does not know.
    pub(super) fn check_generation(&self, node: NodeNo, generation: u64) -> Result<(), Refusal> {
        let registered = self.known_node(node)?.agent.map(|agent| agent.generation);
        if registered == Some(generation) {
            return Ok(());
        }
        Err(Refusal::StaleGeneration { node, generation, registered: RegisteredGeneration(registered) })
    }

    pub(super) fn register_agent(&mut self, register: &RegisterAgent) -> Result<(), Refusal> {
        let (node, instance) = (register.node, register.instance);
        let found = self.known_node(node)?;
        if let Some(agent) = found.agent.filter(|agent| agent.instance != instance && !register.takeover) {
            return Err(Refusal::AgentAlreadyRunning { node, generation: agent.generation });
        }
        let generation = found.last_generation.checked_add(1).ok_or(Refusal::Numbers)?;
        self.plain(AgentRegistered { node, generation, instance });
        Ok(())
    }

    pub(super) fn detach_agent(&mut self, node: NodeNo) -> Result<(), Refusal> {
        if self.known_node(node)?.agent.is_none() {
            return Err(Refusal::NodeAlready { node, state: "without an agent" });
        }
        self.plain(AgentDetached { node });
        Ok(())
    }

    pub(super) fn report_condition(&mut self, report: &ReportCondition) -> Result<(), Refusal> {
        let node = report.node;
        self.check_generation(node, report.generation)?;
        let condition = Condition { load: report.load, errors: report.errors, throttled: report.throttled };
        if self.known_node(node)?.condition == condition {
            return Err(Refusal::ConditionUnchanged { node });
        }
        let Condition { load, errors, throttled } = condition;
        self.plain(NodeCondition { node, load, errors, throttled });
        Ok(())
    }
}
