//! What is explained is what is decided: the winner told for a replica is the node it gets, and what is promised to the
//! first in the queue is no candidate for others.

use crate::allocations::RACKS;
use crate::support::Story;
use leasehold_engine::{Deciding, Exclusion, Placement};
use leasehold_model::{
    AllocationSpec, ClassNo, DenyCause, Domain, Fraction, Identity, Instant, NodeNo, ProjectNo, Quanta, Span, TenantNo,
};
use smallvec::smallvec;

fn who(number: u32) -> Identity {
    Identity { tenant: Some(TenantNo(number)), project: Some(ProjectNo(number)), ..Identity::default() }
}

fn gang(gpus: u64, replicas: u32, together: Option<Domain>, apart: Option<Domain>) -> AllocationSpec {
    let asks = smallvec![(ClassNo(0), Quanta(gpus))];
    AllocationSpec { replicas, together, apart, walltime: Some(Span::from_secs(3600)), ..AllocationSpec::of(asks) }
}

/// One node is in use, so that the best first place lies where not all of a gang has room.
const IN_USE: &str = "
    0 b grant gpu 2 node=n1 ttl=10h
    0 b grant gpu 1 node=n3 ttl=10h
";

#[test]
fn the_winner_of_each_replica_is_the_node_that_it_gets() {
    let domains = [(None, None), (Some(Domain::Rack), None), (None, Some(Domain::Rack)), (None, Some(Domain::Node))];
    let words = ["", " together=rack", " apart=rack", " apart=node"];
    for (gpus, replicas) in [(1, 2), (2, 2), (3, 2), (1, 4), (4, 2)] {
        for ((together, apart), word) in domains.iter().zip(words) {
            let mut story = Story::on(RACKS);
            story.play(IN_USE);
            let state = story.world.state().clone();
            let index = Placement::of(&state);
            story.play(&format!("1 a submit gpu {gpus} x={replicas} wall=1h{word}"));
            let granted = story.world.state().leases();
            let got: Vec<NodeNo> = granted.iter().filter(|l| l.of.is_some()).map(|l| l.node).collect();
            let spec = gang(gpus, replicas, *together, *apart);
            let at = Instant::from_secs(1);
            let told = |replica| {
                index.view(&state).explain_gang(at, &who(0), &spec, Some(replica), 8).expect("it has a holder")
            };
            let first = told(1);
            assert_eq!(first.denied.is_some(), got.is_empty(), "gpu {gpus} x={replicas}{word}");
            for (replica, node) in (1..).zip(&got) {
                let why = told(replica);
                assert_eq!(why.replica, replica);
                let best = why.placement.best.first().expect("a winner");
                assert_eq!(best.node, *node, "replica {replica} of gpu {gpus} x={replicas}{word}: {why:?}");
                assert!(why.deciding.is_some());
                assert_eq!(why.replicas[replica as usize - 1].node, *node);
                assert_eq!((why.replicas.len(), why.replica_count), (got.len(), replicas));
            }
            if got.is_empty() {
                assert_eq!((first.deciding, first.replicas.len()), (None, 0));
            }
        }
    }
}

#[test]
fn many_replicas_are_told_in_part() {
    let story = Story::on(RACKS);
    let view = story.world.engine.view();
    let spec = AllocationSpec { asks: smallvec![(ClassNo(1), Quanta(1))], ..gang(1, 100, None, None) };
    let why = view.explain_gang(Instant::from_secs(1), &who(0), &spec, Some(77), 8).expect("it has a holder");
    assert_eq!((why.replica, why.replica_count, why.replicas.len()), (77, 100, 16));
    assert!(why.deciding.is_some_and(|term| term != Deciding::Alone));
}

#[test]
fn a_quota_judges_the_whole_gang_and_nothing_decides_where_nothing_is_placed() {
    let mut story = Story::on(RACKS);
    story.play("0 op quota q a gpu hard=8");
    let spec = gang(4, 3, None, None);
    let view = story.world.engine.view();
    let why = view.explain_gang(Instant::from_secs(1), &who(0), &spec, None, 8).expect("it has a holder");
    assert_eq!(why.quotas[0].requested, Fraction::new(12, 1));
    assert!(matches!(why.denied, Some(DenyCause::Quota { requested: 12, limit: 8, .. })), "{why:?}");
    assert_eq!(why.deciding, None);
}

#[test]
fn what_is_promised_to_the_first_is_no_candidate() {
    let mut story = Story::on(RACKS);
    story.play(
        "
        0 a submit gpu 4 x=3 wall=100s
        1 a submit gpu 4 x=4 wall=1h
        ",
    );
    // Readers do not know who stands first: it is found anew.
    let at = Instant::from_secs(2);
    let told = |walltime| {
        let spec = AllocationSpec { walltime: Some(Span::from_secs(walltime)), ..gang(1, 1, None, None) };
        story.world.readers.view(|view| view.explain_gang(at, &who(1), &spec, None, 8)).expect("it has a holder")
    };
    let late = told(3600);
    assert_eq!(
        (late.placement.candidates, late.placement.excluded.get(&Exclusion::Reserved)),
        (0, Some(&1)),
        "{late:?}"
    );
    assert_eq!(late.placement.excluded.get(&Exclusion::Capacity), Some(&3));
    // What is gone before it starts is in nobody's way.
    let soon = told(30);
    assert_eq!((soon.placement.candidates, soon.placement.excluded.get(&Exclusion::Reserved)), (1, None), "{soon:?}");
}
