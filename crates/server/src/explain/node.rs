//! Explains whether a node gets work, and why.

use super::Explainer;
use leasehold_api as api;
use leasehold_api::When;
use leasehold_engine::{AssuredStart, View};
use leasehold_model::{Instant, NodeNo, Priority};

impl Explainer<'_> {
    pub(crate) fn node_explained(&self, view: View<'_>, number: NodeNo, at: Instant) -> Option<api::NodeExplanation> {
        let node = self.state.node(number)?;
        let why = match (node.lost, node.is_drained()) {
            (true, _) if node.agent.is_none() => {
                "It is lost: an operator declared it lost. It gets work again when it returns."
            }
            (true, _) => {
                "It is lost: its agent stopped sending heartbeats, or an operator declared it lost. It gets work again when it returns."
            }
            (false, true) if !node.drained => {
                "It is reserved for maintenance. It gets work again when the maintenance window ends or is cancelled."
            }
            (false, true) => {
                "It is drained: an operator took it out of service. It gets work again when it is resumed."
            }
            (false, false) if node.custody.claim().is_some() => {
                "It is claimed: only sensitive work of one user runs there. The project of the claim pays for idle capacity."
            }
            (false, false) if node.custody.word() == "wiping" => {
                "It was released and is being wiped. It gets work again when its agent or an operator reports that it is clean."
            }
            (false, false) if node.custody.word() == "quarantined" => {
                "It is quarantined: its wipe failed or took too long. It gets work again when an operator clears the quarantine."
            }
            (false, false) => {
                "It gets work. Its score for a request depends on its free capacity, its location and its heat."
            }
        };
        let classes = node.classes.iter().map(|class| {
            let split = node.split(class.class);
            let name = self.state.class(class.class).map_or_else(String::new, |spec| spec.name.to_string());
            api::NodeClassExplained {
                class: name,
                capacity: class.capacity,
                held: split.held,
                tearing_down: split.tearing_down,
                reserved: split.reserved,
                fenced: split.fenced,
                offline: split.offline,
                idle: split.idle,
                evictable: self.state.evictable_on(number, class.class, Priority::Guaranteed),
            }
        });
        let waiting = || self.state.allocations_after(None).filter(|found| found.state.is_queued());
        let kept = waiting().filter(|found| found.reserved_on().any(|on| on == number));
        let promised = view.assured_starts(at).into_iter().filter(|(_, assured)| assured.nodes.contains(&number));
        let promised = promised.map(|(allocation, AssuredStart { start, .. })| api::NodePromise {
            allocation_id: allocation.into(),
            starts_by: When(start),
        });
        Some(api::NodeExplanation {
            as_of: When(at),
            node: node.name.to_string(),
            pool: self.pool(node.pool),
            available: node.is_available(),
            why: why.to_owned(),
            heat: node.heat.at(at, self.state.settings().heat_half_life),
            classes: classes.collect(),
            leases: self.state.leases_on(number).len() as u64,
            reserved_for: kept.map(|found| found.number.into()).collect(),
            promised_to: promised.collect(),
        })
    }
}
