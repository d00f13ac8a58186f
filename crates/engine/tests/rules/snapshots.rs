//! Snapshots are files: whatever they hold, reading one ends in a state or in an error.

use crate::commands::{history, small_cluster};
use crate::support::World;
use leasehold_engine::command::RequestLease;
use leasehold_engine::{Command, Engine, Request, State};
use leasehold_model::{Batch, ClassNo, Identity, Instant, ProjectNo, Quanta, Span, TenantNo};
use proptest::prelude::*;

/// A change to bytes, at a place taken modulo their length.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Flip(usize, u8),
    Set(usize, u8),
    Insert(usize, u8),
    Remove(usize),
    Cut(usize),
    Copy(usize, usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<usize>;
    prop_oneof![
        4 => (at(), 0..8u8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Insert(at, byte)),
        2 => at().prop_map(Edit::Remove),
        1 => at().prop_map(Edit::Cut),
        2 => (at(), at(), 1..80usize).prop_map(|(from, to, n)| Edit::Copy(from, to, n)),
    ]
}

fn apply(edit: Edit, bytes: &mut Vec<u8>) {
    let n = bytes.len().max(1);
    match edit {
        _ if bytes.is_empty() => {}
        Edit::Flip(at, bit) => bytes[at % n] ^= 1 << bit,
        Edit::Set(at, byte) => bytes[at % n] = byte,
        Edit::Insert(at, byte) => bytes.insert(at % n, byte),
        Edit::Remove(at) => {
            bytes.remove(at % n);
        }
        Edit::Cut(at) => bytes.truncate(at % n),
        Edit::Copy(from, to, len) => {
            let piece: Vec<u8> = bytes[from % n..].iter().take(len).copied().collect();
            let at = to % n;
            bytes.splice(at..at, piece);
        }
    }
}

fn lived(steps: &[crate::commands::Step]) -> World {
    let mut world = small_cluster();
    let mut now = Instant(0);
    for step in steps {
        now = step.at(now, &world.engine);
        if let Some(request) = step.request(world.state()) {
            let _ = world.step(now, &request);
        }
    }
    world
}

/// What reads back must be what was read, must balance, and must go on working.
fn read(bytes: &[u8]) {
    let Ok(state) = State::from_snapshot(bytes) else { return };
    assert_eq!(state.to_snapshot(), bytes, "a snapshot has one spelling");
    crate::support::invariants::balance(&state);
    let now = Instant(state.last_stamp().0.saturating_add(Span::from_secs(1).0));
    if now > Instant::from_secs(1 << 32) || state.size() > 1 << 60 {
        return;
    }
    let mut batch = Batch::new(state.size());
    let mut engine = Engine::new(state);
    engine.advance(now, &mut batch, u32::MAX);
    let identity = Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() };
    let ask = Command::Request(RequestLease::of(ClassNo(1), Quanta(1), Span::from_secs(60)));
    let _ = engine.decide(now, &Request::new(identity, ask), &mut batch);
    let far = now.saturating_add(Span::from_secs(40 * 86_400));
    engine.advance(far, &mut batch, u32::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes);
        // The version is right, the rest is not.
        read(&[&[4u8][..], &bytes].concat());
    }

    #[test]
    fn changed_bytes(steps in history(30), edits in proptest::collection::vec(proptest::collection::vec(edit(), 1..3), 200)) {
        let bytes = lived(&steps).state().to_snapshot();
        read(&bytes);
        for edits in edits {
            let mut changed = bytes.clone();
            edits.into_iter().for_each(|edit| apply(edit, &mut changed));
            read(&changed);
        }
    }
}

/// Every byte of one snapshot, changed in every way that one byte can be.
#[test]
fn every_single_byte() {
    let mut story = crate::support::Story::on(crate::support::STAGE);
    story.play(
        "
        0 op tenant a tag=t
        0 op user a/u
        0 op quota q a core burst=1..9/60s
        0 op quota r a count=nodes hard=3
        1 a grant gpu 1 core 2 node=n1
        1 a grant gpu 3/7 node=n1 key=k
        2 op revoke #2 grace=60s
        3 a grant core 5 node=n1 user=a/u
        4 a release #3
        4 op agent n1 instance=7
        4 op condition n1 generation=1 load=high
        4 op issue t role=project_member tenant=a project=a/a of=a/u expires=100
        4 op issue s role=node_agent node=n1
        4 op withdraw 1
        4 op card class.gpu=0.05 tier.h100=2 pool=main
        4 op card from=9
        4 op card from=8
        4 op delete card 2
        4 op policy fenced=60s from=9
        4 op issue u role=app_operator tenant=a apps=3
        4 op update a max=guaranteed gpuh=1 share=500
        4 a submit gpu 1 prio=scavenger wall=1h x=2 staged labels=ssd apart=node
        4 a submit core 2 prio=scavenger wall=1h requeue
        4 a submit core 8 x=9 wall=1h
        4 a submit core 30 prio=guaranteed
        5 a cancel @1
        ",
    );
    let bytes = story.world.state().to_snapshot();
    for at in 0..bytes.len() {
        for byte in 0..=255u8 {
            let mut changed = bytes.clone();
            changed[at] = byte;
            read(&changed);
        }
    }
}

/// A gang waits for two whole devices where one is free: one byte makes it ask for a device and a part of another.
#[test]
fn every_single_byte_of_a_gang_that_waits_for_devices() {
    let mut story = crate::support::Story::on(crate::support::STAGE);
    story.play(
        "
        0 a grant gpu 1 node=n1
        1 a submit gpu 2 wall=1h
        ",
    );
    let bytes = story.world.state().to_snapshot();
    for at in 0..bytes.len() {
        for byte in 0..=255u8 {
            let mut changed = bytes.clone();
            changed[at] = byte;
            read(&changed);
        }
    }
}
