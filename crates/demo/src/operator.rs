//! The operator on duty: maintenance, a revocation, a machine that dies and one whose agent hangs, and the fences
//! that only a person clears.

use super::cluster::{H100, NODE_TO_DRAIN, SANDBOX, nodes_with_agent};
use super::scene::{STORY, Scene};
use leasehold_cell::{Sealed, Unsealed};
use leasehold_engine::command::{LeaseList, Revoke};
use leasehold_engine::{Command, Lease, Phase, State};
use leasehold_model::{NodeNo, Reason, Span};
use std::sync::Mutex;

#[derive(Clone, Copy)]
enum Beat {
    Drain,
    AgentHangs,
    PowerFails,
    RevokeWithGrace,
    Resume,
    RevokeAtOnce,
    AgentRestarts,
    PowerBack,
    ClearFences,
}

/// The story, by thousandths of its length; it is told again as long as the demo runs. At the fastest pace, too, an agent
/// hangs for longer than the teardown deadline, and the power is off for longer than loses a node.
const BEATS: [(u32, Beat); 9] = [
    (60, Beat::Drain),
    (100, Beat::AgentHangs),
    (200, Beat::PowerFails),
    (260, Beat::RevokeWithGrace),
    (400, Beat::Resume),
    (500, Beat::RevokeAtOnce),
    (560, Beat::AgentRestarts),
    (610, Beat::PowerBack),
    (700, Beat::ClearFences),
];

pub(crate) fn run(scene: &Scene) {
    if scene.cell.now().read(|state| state.node(NODE_TO_DRAIN).is_some_and(|node| node.drained)) {
        act(scene, Command::ResumeNode(NODE_TO_DRAIN), "resumed {}, drained in an earlier run");
    }
    let story = scene.pace.ms(u64::try_from(STORY.as_millis()).expect("a short story"));
    for round in 0u32.. {
        for (at, beat) in BEATS {
            if !scene.wait_until(story * round + story * at / 1000) {
                return;
            }
            perform(scene, beat);
        }
    }
}

fn perform(scene: &Scene, beat: Beat) {
    match beat {
        Beat::Drain => {
            act(scene, Command::DrainNode(NODE_TO_DRAIN), "drained {} for maintenance: nothing new goes there")
        }
        Beat::Resume => act(scene, Command::ResumeNode(NODE_TO_DRAIN), "resumed {}"),
        Beat::AgentHangs => {
            let node = trouble(scene, &scene.hung);
            note_node(scene, "node", node, "the agent on {} hangs: teardowns there are not confirmed");
            // Someone has to go while it hangs, so that it matters.
            revoke(scene, Span::ZERO, |state| last_on(state, node));
        }
        Beat::AgentRestarts => {
            if let Some(node) = take(&scene.hung) {
                note_node(scene, "node", node, "the agent on {} is back; what was fenced stays fenced");
            }
        }
        Beat::PowerFails => {
            let node = trouble(scene, &scene.dark);
            let text = "{} loses power, and its agent with it: its leases will bill up to when it was last seen";
            note_node(scene, "node", node, text);
        }
        Beat::PowerBack => {
            if let Some(node) = take(&scene.dark) {
                note_node(scene, "node", node, "{} has power again and returns");
            }
        }
        Beat::RevokeWithGrace => revoke(scene, scene.pace.span(2500), largest_gang),
        Beat::RevokeAtOnce => revoke(scene, Span::ZERO, largest_gang),
        Beat::ClearFences => clear_fences(scene),
    }
}

type Which = Mutex<Option<NodeNo>>;

fn take(which: &Which) -> Option<NodeNo> {
    which.lock().expect("no one panics with it").take()
}

/// Gives trouble of one sort to the node where it shows most: of those without any, the one with the most leases.
fn trouble(scene: &Scene, which: &Which) -> NodeNo {
    let [dark, hung] = [&scene.dark, &scene.hung].map(|which| *which.lock().expect("no one panics with it"));
    let well = nodes_with_agent().filter(|node| Some(*node) != dark && Some(*node) != hung);
    let chosen = scene.cell.now().read(|state| {
        let held = |node: NodeNo| state.leases_on(node).into_iter().filter(|lease| is_theirs(lease)).count();
        well.max_by_key(|node| held(*node)).expect("there are more nodes than troubles")
    });
    *which.lock().expect("no one panics with it") = Some(chosen);
    chosen
}

fn node_name(scene: &Scene, node: NodeNo) -> String {
    scene.cell.now().read(|state| state.node(node).map_or(node.to_string(), |node| node.name.to_string()))
}

fn note_node(scene: &Scene, who: &'static str, node: NodeNo, text: &str) {
    scene.note(who, text.replace("{}", &node_name(scene, node)));
}

/// Does something to a node, and says so if it was done.
fn act(scene: &Scene, command: Command, text: &str) {
    match scene.cell.operate(command) {
        Ok(Sealed { repeated: false, .. }) => note_node(scene, "operator", NODE_TO_DRAIN, text),
        Err(Unsealed::Refused(refusal)) => scene.note("operator", format!("was refused: {refusal}")),
        _ => {}
    }
}

/// The largest gang on the big GPUs whose holder has reported, so it is alive; of several, the youngest.
fn largest_gang(state: &State) -> Option<&Lease> {
    let gang = |lease: &&Lease| is_theirs(lease) && lease.class == H100 && lease.gang_len > 1;
    let alive = |lease: &&Lease| lease.reported_to > lease.granted_at;
    state.leases().into_iter().filter(gang).filter(alive).max_by_key(|lease| (lease.quanta, lease.number))
}

/// What was granted last on a node.
fn last_on(state: &State, node: NodeNo) -> Option<&Lease> {
    state.leases_on(node).into_iter().filter(|lease| is_theirs(lease)).max_by_key(|lease| lease.number)
}

/// Held, but not by the one who watches.
fn is_theirs(lease: &Lease) -> bool {
    lease.phase == Phase::Active && lease.project != SANDBOX
}

fn revoke(scene: &Scene, grace: Span, victim: impl Fn(&State) -> Option<&Lease>) {
    let found = scene.cell.now().read(|state| {
        let lease = victim(state)?;
        let tenant =
            state.tenant(lease.tenant).map_or(lease.tenant.to_string(), |tenant| tenant.settings.name.to_string());
        Some((lease.number, lease.gang_len, tenant))
    });
    let Some((lease, gang_len, tenant)) = found else { return };
    let revoke = Revoke { leases: LeaseList::from_slice(&[lease]), reason: Reason::Operator, grace: Some(grace) };
    if let Ok(Sealed { repeated: false, .. }) = scene.cell.operate(Command::Revoke(revoke)) {
        let how = if grace == Span::ZERO { "at once".to_owned() } else { format!("with {grace} of grace") };
        let what = if gang_len > 1 { "the gang of " } else { "" };
        scene.note("operator", format!("revoked {what}{lease}, held by {tenant}, {how}"));
    }
}

fn clear_fences(scene: &Scene) {
    let fenced = scene.cell.now().read(|state| -> LeaseList {
        let leases = state.leases().into_iter().filter(|lease| lease.phase == Phase::Fenced);
        leases.take(leasehold_model::limits::LEASES_PER_RECORD_MAX).map(|lease| lease.number).collect()
    });
    let count = fenced.len();
    if count == 0 {
        return;
    }
    if let Ok(Sealed { repeated: false, .. }) = scene.cell.operate(Command::Unfence(fenced)) {
        let fences = if count == 1 { "a fence".to_owned() } else { format!("{count} fences") };
        scene.note("operator", format!("looked at the machines and cleared {fences}"));
    }
}
