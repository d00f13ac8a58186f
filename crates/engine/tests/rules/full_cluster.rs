//! A cluster on which everything is held by scavengers, so that others have to evict, or to take over.

use crate::commands::small_cluster;
use crate::support::World;
use leasehold_engine::command::RequestLease;
use leasehold_engine::{Command, Request};
use leasehold_model::{
    AllocationSpec, ClassNo, Identity, Instant, NodeNo, Priority, ProjectNo, Quanta, Span, TenantNo,
};

/// The cluster of `small_cluster`, with all GPUs and cores held, and two allocations that evict and wait.
pub(crate) fn full_cluster() -> World {
    let mut world = small_cluster();
    let holder = Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() };
    let mut decide = |command| {
        let (answer, _) = world.step(Instant(0), &Request::new(holder.clone(), command));
        answer.expect("the stage stands");
    };
    for node in 0..4 {
        for (class, quanta) in [(0, 7), (0, 7), (1, 20), (1, 20)] {
            let asked = RequestLease::of(ClassNo(class), Quanta(quanta), Span::from_secs(72_000));
            let (node, priority) = (Some(NodeNo(node)), Priority::Scavenger);
            decide(Command::Request(RequestLease { node, priority, ..asked }));
        }
    }
    for (class, quanta) in [(0, 7), (1, 20)] {
        let asks = [(ClassNo(class), Quanta(quanta))].into_iter().collect();
        decide(Command::SubmitAllocation(AllocationSpec::of(asks).into()));
    }
    world
}
