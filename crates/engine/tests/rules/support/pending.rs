//! How stories speak of allocations that wait, and of nodes that are empty: `a hold @1`, `op unhold @1`,
//! `a change @1 prio=guaranteed wall=1h ttl=-`, `op empty n1 since=10`.

use super::Story;
use super::line::Line;
use leasehold_engine::Command;
use leasehold_engine::command::{ChangeAllocation, HoldAllocation, NoteEmptyNode};

impl Story {
    pub(super) fn pending(&mut self, verb: &str, first: &str, line: &Line<'_>) -> Command {
        let cleared = |option: &str| line.options.get(option).is_some_and(|word| *word == "-");
        let span = |option: &str| if cleared(option) { Some(None) } else { line.span(option).map(Some) };
        match verb {
            "hold" => {
                let (allocation, reason) = (self.allocation(first), line.name("reason"));
                Command::HoldAllocation(HoldAllocation { allocation, reason })
            }
            "unhold" => Command::ReleaseHold(self.allocation(first)),
            "change" => Command::ChangeAllocation(ChangeAllocation {
                allocation: self.allocation(first),
                priority: line.priority("prio"),
                pool: None,
                walltime: span("wall"),
                ttl: span("ttl"),
                requeue: line.flag("requeue").then_some(true),
            }),
            _ => Command::NoteEmptyNode(NoteEmptyNode {
                node: self.node(first),
                since: self.names.read_time(line.options["since"]),
            }),
        }
    }
}
