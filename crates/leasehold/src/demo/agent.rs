//! The agents on the nodes: they give signs of life, and confirm a teardown once it is done.

use super::cluster::nodes_with_agent;
use super::scene::Scene;
use crate::dice::Dice;
use leasehold_cell::{Replies, Reply, Submission};
use leasehold_engine::command::{ConfirmTeardown, LeaseList};
use leasehold_engine::{Command, Request, State};
use leasehold_model::{Identity, LeaseNo, NodeNo, TeardownMode};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUND: Duration = Duration::from_millis(20);

/// An agent does not wait for the answer: what was not taken it says again.
struct Nobody;
impl Replies for Nobody {
    fn put(&self, _: u64, _: Reply) {}
    fn wake(&self) {}
}

pub(crate) fn run(scene: &Scene, seed: u64) {
    let mut dice = Dice(seed ^ 0xa9e2_7000);
    let mut spoke_at = None;
    // When the teardown of a lease will be done.
    let mut teardowns: BTreeMap<LeaseNo, (NodeNo, Instant)> = BTreeMap::new();
    let nobody = Arc::new(Nobody);
    while !scene.is_over() {
        let now = Instant::now();
        let dark = *scene.dark.lock().expect("no one panics with it");
        let hung = *scene.hung.lock().expect("no one panics with it");
        if spoke_at.is_none_or(|at: Instant| now - at >= Duration::from_millis(80)) {
            spoke_at = Some(now);
            // A hung agent still answers pings: that is what makes it treacherous.
            nodes_with_agent().filter(|node| Some(*node) != dark).for_each(|node| scene.cell.node_seen(node));
        }
        let due = scene.cell.now().read(to_tear_down);
        teardowns.retain(|lease, (node, _)| due.contains(&(*lease, *node)));
        for (lease, node) in due {
            teardowns.entry(lease).or_insert_with(|| (node, now + scene.pace.ms(dice.between(60, 500))));
        }
        let mut done: BTreeMap<NodeNo, LeaseList> = BTreeMap::new();
        for (lease, (node, done_at)) in &mut teardowns {
            if *done_at <= now && Some(*node) != dark && Some(*node) != hung {
                done.entry(*node).or_default().push(*lease);
                *done_at = now + Duration::from_millis(500);
            }
        }
        scene.cell.submit(done.into_iter().map(|(node, leases)| Submission {
            request: Request::new(Identity::default(), Command::ConfirmTeardown(ConfirmTeardown { node, leases, generation: None })),
            to: nobody.clone(),
            tag: 0,
        }));
        std::thread::sleep(ROUND);
    }
}

/// The leases that wait for their node's word.
fn to_tear_down(state: &State) -> Vec<(LeaseNo, NodeNo)> {
    let confirms = |node| state.node(node).is_some_and(|node| node.teardown == TeardownMode::Confirmed);
    let leases = state.leases().into_iter().filter(|lease| lease.phase.is_tearing_down() && confirms(lease.node));
    leases.map(|lease| (lease.number, lease.node)).collect()
}
