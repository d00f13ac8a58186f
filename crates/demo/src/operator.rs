//! The simulated operator: maintenance, revocations, a node that loses power, an agent that hangs, and clearing
//! fences. Causes the faults as well.

use super::cluster::{H100, NODE_TO_DRAIN, SANDBOX, nodes_with_agent};
use super::scene::{LOCK, ROUND, Scene};
use leasehold_cell::{Sealed, Unsealed};
use leasehold_engine::command::{LeaseList, Revoke};
use leasehold_engine::{Command, Lease, Phase, State};
use leasehold_model::{NodeNo, Reason, Span};
use std::sync::Mutex;

#[derive(Clone, Copy)]
enum Event {
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

/// When each event happens, in thousandths of a round; rounds repeat as long as the demo runs. Even at the fastest
/// pace the agent hangs for longer than the teardown deadline, and the power is off for longer than the node timeout.
const SCRIPT: [(u32, Event); 9] = [
    (60, Event::Drain),
    (100, Event::AgentHangs),
    (200, Event::PowerFails),
    (260, Event::RevokeWithGrace),
    (400, Event::Resume),
    (500, Event::RevokeAtOnce),
    (560, Event::AgentRestarts),
    (610, Event::PowerBack),
    (700, Event::ClearFences),
];

pub(crate) fn run(scene: &Scene) {
    if scene.cell.now().read(|state| state.node(NODE_TO_DRAIN).is_some_and(|node| node.drained)) {
        act(scene, Command::ResumeNode(NODE_TO_DRAIN.into()), "resumed {}, which was drained in an earlier run");
    }
    let length = scene.pace.ms(u64::try_from(ROUND.as_millis()).expect("a few seconds"));
    for round in 0u32.. {
        for (at, event) in SCRIPT {
            if !scene.wait_until(length * round + length * at / 1000) {
                return;
            }
            perform(scene, event);
        }
    }
}

fn perform(scene: &Scene, event: Event) {
    match event {
        Event::Drain => {
            act(scene, Command::DrainNode(NODE_TO_DRAIN.into()), "drained {} for maintenance; it gets no new leases")
        }
        Event::Resume => act(scene, Command::ResumeNode(NODE_TO_DRAIN.into()), "resumed {}"),
        Event::AgentHangs => {
            let node = choose_node(scene, &scene.hung);
            note_node(scene, "node", node, "the agent on {} hangs and does not confirm teardowns");
            // A teardown has to become due while the agent hangs, so that it is fenced.
            revoke(scene, Span::ZERO, |state| newest_on(state, node));
        }
        Event::AgentRestarts => {
            if let Some(node) = take(&scene.hung) {
                note_node(scene, "node", node, "the agent on {} works again; fenced capacity stays fenced");
            }
        }
        Event::PowerFails => {
            let node = choose_node(scene, &scene.without_power);
            let text = "{} loses power; its leases are billed until it was last seen";
            note_node(scene, "node", node, text);
        }
        Event::PowerBack => {
            if let Some(node) = take(&scene.without_power) {
                note_node(scene, "node", node, "{} has power again and comes back");
            }
        }
        Event::RevokeWithGrace => revoke(scene, scene.pace.span(2500), largest_gang),
        Event::RevokeAtOnce => revoke(scene, Span::ZERO, largest_gang),
        Event::ClearFences => clear_fences(scene),
    }
}

type Which = Mutex<Option<NodeNo>>;

fn take(which: &Which) -> Option<NodeNo> {
    which.lock().expect(LOCK).take()
}

/// Chooses a node for a fault: of those without a fault, the one with the most leases.
fn choose_node(scene: &Scene, which: &Which) -> NodeNo {
    let [without_power, hung] = [&scene.without_power, &scene.hung].map(|which| *which.lock().expect(LOCK));
    let healthy = nodes_with_agent().filter(|node| Some(*node) != without_power && Some(*node) != hung);
    let chosen = scene.cell.now().read(|state| {
        let held = |node: NodeNo| state.leases_on(node).into_iter().filter(|lease| is_simulated(lease)).count();
        healthy.max_by_key(|node| held(*node)).expect("there are more nodes than faults")
    });
    *which.lock().expect(LOCK) = Some(chosen);
    chosen
}

fn node_name(scene: &Scene, node: NodeNo) -> String {
    scene.cell.now().read(|state| state.node(node).map_or(node.to_string(), |node| node.name.to_string()))
}

fn note_node(scene: &Scene, who: &'static str, node: NodeNo, text: &str) {
    scene.note(who, text.replace("{}", &node_name(scene, node)));
}

/// Sends a command about the node that is drained, and notes the outcome.
fn act(scene: &Scene, command: Command, text: &str) {
    match scene.cell.operate(command) {
        Ok(Sealed { repeated: false, .. }) => note_node(scene, "operator", NODE_TO_DRAIN, text),
        Err(Unsealed::Refused(refusal)) => scene.note("operator", format!("command refused: {refusal}")),
        _ => {}
    }
}

/// The largest gang on the large GPUs whose holder has sent a report and so is alive; among equals, the newest.
fn largest_gang(state: &State) -> Option<&Lease> {
    let gang = |lease: &&Lease| is_simulated(lease) && lease.class == H100 && lease.gang_len > 1;
    let alive = |lease: &&Lease| lease.reported_to > lease.granted_at;
    state.leases().into_iter().filter(gang).filter(alive).max_by_key(|lease| (lease.quanta, lease.number))
}

/// The newest lease on a node.
fn newest_on(state: &State, node: NodeNo) -> Option<&Lease> {
    state.leases_on(node).into_iter().filter(|lease| is_simulated(lease)).max_by_key(|lease| lease.number)
}

/// Whether a simulated holder holds the lease, and not the user of the demo.
fn is_simulated(lease: &Lease) -> bool {
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
    if let Ok(Sealed { repeated: false, .. }) = scene.cell.operate(Command::Unfence(fenced.into())) {
        let leases = if count == 1 { "a fenced lease".to_owned() } else { format!("{count} fenced leases") };
        scene.note("operator", format!("checked the nodes and cleared {leases}"));
    }
}
