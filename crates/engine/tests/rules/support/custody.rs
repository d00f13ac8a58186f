//! Claims, failed starts and lost nodes in stories.

use super::Story;
use super::line::Line;
use leasehold_engine::Command;
use leasehold_engine::command::{ClaimNodes, FailStart};

impl Story {
    /// `claim n1 n2 until=100`, `claim-for n1`, `fail-start @1 node=n1 generation=1`, and `settle #0 claim=12 part`, in
    /// which the daemon names what ended after a node was last seen.
    pub(super) fn custody(&mut self, verb: &str, first: &str, line: &Line<'_>) -> Command {
        match verb {
            "claim" | "claim-for" => {
                let nodes = line.words.iter().map(|node| self.node(node)).collect();
                let until = line.options.get("until").map(|at| self.names.read_time(at));
                let claim = ClaimNodes { nodes, until };
                if verb == "claim" { Command::ClaimNodes(claim) } else { Command::ClaimForUser(claim) }
            }
            "fail-start" => {
                let (allocation, node) = (self.allocation(first), line.options.get("node").map(|node| self.node(node)));
                Command::FailStart(FailStart { allocation, node, generation: line.number("generation") })
            }
            _ => {
                let (loss, claim) = (line.number("loss"), line.number("claim"));
                crate::losses::settlement(self.world.state(), &line.leases(), loss, claim, !line.flag("part"))
            }
        }
    }
}
