//! Registration, heartbeats and detachment of node agents.

use super::capacity::{as_put, find_node, labels, node_capacity};
use crate::app::hex_id;
use crate::context::{Answer, Context, json};
use crate::problem::refusal_for;
use crate::show;
use leasehold_api::{
    AgentRegistered, Condition, DetachedAgent, Heartbeat, HeartbeatAnswer, NodeWork, Problem, RegisterAgent, Ttl, When,
    codes,
};
use leasehold_engine::command::{self, ReportCondition};
use leasehold_engine::{Command, Custody, Lease, Refusal, RegisteredGeneration, State};
use leasehold_model::{Body, NodeNo, quantity};

fn node_name(state: &State, node: NodeNo) -> String {
    state.node(node).map_or_else(String::new, |node| node.name.as_str().to_owned())
}

pub(super) async fn register_agent(context: Context) -> Answer {
    let register: RegisterAgent = context.body()?;
    let app = &context.app;
    let node = find_node(&context)?;
    let instance = hex_id(&register.instance)
        .ok_or_else(|| codes::BAD_ID.problem("`instance` is not 32 hexadecimal digits.").with("field", "instance"))?;
    let now = app.time();
    let (put, old, timeout, registered) = app.now.read(|state| {
        let old = as_put(state, node)?;
        let mut put = old.clone();
        if let Some(written) = &register.capacity {
            put.capacity = node_capacity(state, written)?;
        }
        if let Some(written) = &register.labels {
            put.labels = labels(written)?;
        }
        let registered = state.node(node).and_then(|node| node.agent.as_ref()).map(|agent| agent.instance);
        Ok::<_, Problem>((put, old, state.settings().node_timeout, registered))
    })?;
    let takeover = app.agents.is_silent(node, now, timeout);
    let another = registered.is_some_and(|registered| registered != instance);
    // The capacity is recorded before the registration, so that a registered agent has always reported it. An agent
    // that will be refused must not change it.
    if put != old && (!another || takeover) {
        app.seal(context.caller(), context.caller().identity(), Command::PutNode(put), None).await?;
    }
    let command = command::RegisterAgent { node, instance, takeover };
    let sealed = context.seal(Command::RegisterAgent(command)).await?;
    app.agents.heard_of(node, now);
    app.cell.node_seen(node);
    let Body::AgentRegistered(registered) = &sealed.first().body else {
        unreachable!("the command registers an agent")
    };
    let answer = app.now.read(|state| AgentRegistered {
        sequence: sealed.sequence(),
        node: node_name(state, node),
        node_id: node.0,
        generation: registered.generation,
        node_timeout: Ttl(state.settings().node_timeout),
        teardown_deadline: Ttl(state.settings().teardown_deadline),
    });
    json(200, &answer)
}

pub(super) async fn detach_agent(context: Context) -> Answer {
    let node = find_node(&context)?;
    let sealed = context.seal(Command::DetachAgent(node)).await?;
    let node = context.app.now.read(|state| node_name(state, node));
    json(200, &DetachedAgent { sequence: sealed.sequence(), node })
}

pub(super) async fn heartbeat(context: Context) -> Answer {
    let beat: Heartbeat = context.body()?;
    let app = &context.app;
    let node = find_node(&context)?;
    let known = app.now.read(|state| state.node(node).map(|node| (node.agent, node.condition)));
    let (agent, condition) = known.ok_or_else(|| show::gone_already("node"))?;
    let registered = RegisteredGeneration(agent.map(|agent| agent.generation));
    if registered.0 != Some(beat.generation) {
        let stale = Refusal::StaleGeneration { node, generation: beat.generation, registered };
        return Err(app.now.read(|state| refusal_for(state, context.caller(), &stale)));
    }
    let now = app.time();
    app.agents.heard_of(node, now);
    app.cell.node_seen(node);
    if let Some(reported) = beat.condition
        && reported != (Condition { load: condition.load, errors: condition.errors, throttled: condition.throttled })
    {
        let report = ReportCondition {
            node,
            generation: beat.generation,
            load: reported.load,
            errors: reported.errors,
            throttled: reported.throttled,
        };
        match context.seal(Command::ReportCondition(report)).await {
            Err(problem) if problem.code == "condition_unchanged" => {}
            sealed => drop(sealed?),
        }
    }
    let answer = app.now.read(|state| {
        let work = |lease: &&Lease| {
            let class = state.class(lease.class);
            NodeWork {
                lease: app.lease_uid(lease.number),
                id: lease.number.to_string(),
                state: show::lease_state(lease.phase),
                class: class.map_or_else(String::new, |class| class.name.as_str().to_owned()),
                quantity: class.map_or_else(String::new, |class| quantity::display(lease.quanta, class)),
                devices: show::devices(lease.devices),
                teardown_by: lease.phase.is_tearing_down().then_some(When(lease.limit_at)),
                expires_at: When(lease.expires_at),
            }
        };
        let leases = state.leases_on(node);
        let of = |take: &dyn Fn(&Lease) -> bool| leases.iter().filter(|lease| take(lease)).map(work).collect();
        HeartbeatAnswer {
            sequence: state.size(),
            teardown: of(&|lease| lease.phase.is_tearing_down()),
            held: of(&|lease| lease.phase.is_held()),
            fenced: of(&|lease| !lease.phase.is_held() && !lease.phase.is_tearing_down()),
            wipe_by: state.node(node).and_then(|node| match node.custody {
                Custody::Wiping { limit_at, .. } => Some(When(limit_at)),
                _ => None,
            }),
        }
    });
    json(200, &answer)
}
