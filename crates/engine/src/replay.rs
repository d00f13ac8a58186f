//! Repeats a sealed decision on the state on which it was made, and compares the records.

use crate::command::{Command, Request, RequestLease, SubmitAllocation};
use crate::decide::Engine;
use crate::state::State;
use leasehold_model::body::{AllocationFailed, AllocationSubmitted, Body, Denied, Granted, Particulars};
use leasehold_model::{
    AllocationSpec, AttemptEnd, Batch, ClassNo, Identity, NodeNo, Quanta, RULES_VERSION, Record, Span, WhenOverQuota,
};

/// The result of repeating a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// The same records.
    Same,
    /// Different records: these.
    Differs(Vec<Record>),
    /// The decision was made under another rules version than that of this program.
    OtherRules(u32),
    /// The record is not a decision of the engine that can be repeated.
    NotADecision,
    /// The record is part of a decision that begins earlier; this is its own sequence.
    PartOf(u64),
}

/// A decision that can be made again.
struct Decision {
    /// The rules version that the record names; `None` if it was decided under that of the running process.
    rules_version: Option<u32>,
    /// The command that caused it, as far as the record contains it; `None` if the engine decided on its own.
    command: Option<Command>,
}

/// The decision that a record begins, if it begins one.
fn decision(body: &Body) -> Option<Decision> {
    let of_command = |rules_version, command| Some(Decision { rules_version, command: Some(command) });
    let of_engine = |rules_version| Some(Decision { rules_version, command: None });
    match body {
        Body::Granted(granted) => of_command(Some(granted.rules_version), Command::Request(request_of_grant(granted))),
        Body::Denied(denied) => of_command(Some(denied.rules_version), Command::Request(request_of_denial(denied))),
        Body::AllocationDenied(denied) => {
            of_command(Some(denied.rules_version), submission(&denied.spec, denied.when_over_quota))
        }
        Body::AllocationSubmitted(AllocationSubmitted { spec, node: Some(node), .. }) => {
            of_command(None, Command::Request(request_on_node(spec, *node)))
        }
        Body::AllocationSubmitted(submitted) => {
            of_command(None, submission(&submitted.spec, submitted.when_over_quota))
        }
        Body::AllocationPlaced(placed) => of_engine(Some(placed.rules_version)),
        Body::PreemptionDecided(decided) => of_engine(Some(decided.rules_version)),
        Body::ReservationTakenOver(taken) => of_engine(Some(taken.rules_version)),
        Body::HeadProtected(protected) => of_engine(Some(protected.rules_version)),
        Body::ReservationDropped(_) | Body::AllocationSuspended(_) | Body::AllocationRequeued(_) => of_engine(None),
        // A failure that was reported was not decided by the engine.
        Body::AllocationFailed(AllocationFailed { end: AttemptEnd::Reported | AttemptEnd::FailedStart, .. }) => None,
        Body::AllocationFailed(_) => of_engine(None),
        leasehold_model::setup_kinds!()
        | leasehold_model::ledger_kinds!()
        | Body::NodePut(_)
        | Body::NodeDeleted(_)
        | Body::NodeDrained(_)
        | Body::NodeResumed(_)
        | Body::WindowPut(_)
        | Body::WindowStarted(_)
        | Body::WindowEnded(_)
        | Body::WindowAnnounced(_)
        | Body::EndsCorrected(_)
        | Body::ClaimEndCorrected(_)
        | Body::LossSettled(_)
        | Body::NodeLost(_)
        | Body::NodeReturned(_)
        | Body::NodeCondition(_)
        | Body::AgentRegistered(_)
        | Body::AgentDetached(_)
        | Body::NodeEmpty(_)
        | Body::Renewed(_)
        | Body::Released(_)
        | Body::Expired(_)
        | Body::Revoked(_)
        | Body::TeardownStarted(_)
        | Body::TornDown(_)
        | Body::Fenced(_)
        | Body::Unfenced(_)
        | Body::ActivityReported(_)
        | Body::Preempted(_)
        | Body::AllocationStarted(_)
        | Body::AllocationCheckpointing(_)
        | Body::AllocationCheckpointed(_)
        | Body::AllocationCompleted(_)
        | Body::AllocationCancelled(_)
        | Body::AllocationHoldSet(_)
        | Body::AllocationHoldCleared(_)
        | Body::AllocationChanged(_)
        | Body::NodesClaimed(_)
        | Body::NodesReleased(_)
        | Body::NodeWiped(_)
        | Body::NodeQuarantined(_)
        | Body::QuarantineCleared(_)
        | Body::Unknown { .. } => None,
    }
}

/// Whether a record is the same as another. Grants are compared by what was chosen: the journal lacks some details of the
/// request, such as the pool if none was named.
fn is_same(sealed: &Record, again: &Record) -> bool {
    if let (Body::Granted(sealed), Body::Granted(again)) = (&sealed.body, &again.body) {
        let chosen = |granted: &Granted| (granted.first_lease, granted.node, granted.members.clone());
        return chosen(sealed) == chosen(again) && sealed.over_soft == again.over_soft;
    }
    sealed.body == again.body
}

/// Repeats a decision on the state before it, which is consumed. `sealed` are its records: the first one and those that
/// continue it.
pub fn replay(state: State, sealed: &[Record]) -> Replayed {
    let Some(first) = sealed.first() else { return Replayed::NotADecision };
    if first.continues {
        return Replayed::PartOf(first.sequence);
    }
    let Some(decision) = decision(&first.body) else { return Replayed::NotADecision };
    let version = decision.rules_version.or(state.rules_version).unwrap_or(RULES_VERSION);
    if version != RULES_VERSION {
        return Replayed::OtherRules(version);
    }
    let mut engine = Engine::new(state);
    let mut batch = Batch::new(engine.state().size());
    // Makes the decisions that the engine takes on its own. Before a command there are none left to make: they were
    // sealed before it.
    engine.advance(first.stamp, &mut batch, 1);
    if let Some(command) = decision.command {
        let identity = Identity { token: None, ..first.identity.clone() };
        // After a refusal there are no records to compare, which counts as a difference.
        let _ = engine.decide(first.stamp, &Request::new(identity, command), &mut batch);
    }
    let again = batch.frames().filter_map(|frame| frame.ok()?.decode().ok()).collect::<Vec<Record>>();
    let own = again.iter().take(1).chain(again.iter().skip(1).take_while(|record| record.continues));
    let own: Vec<Record> = own.cloned().collect();
    let same = own.len() == sealed.len() && own.iter().zip(sealed).all(|(again, sealed)| is_same(sealed, again));
    if same { Replayed::Same } else { Replayed::Differs(own) }
}

/// The command that caused the decision of a record, as far as the record contains it.
pub fn asked_by(record: &Record) -> Option<Command> {
    decision(&record.body)?.command
}

fn request_of_grant(granted: &Granted) -> RequestLease {
    RequestLease {
        pool: Some(granted.pool),
        // A node that was not chosen by weights was named by the request.
        node: Some(granted.node).filter(|_| granted.weighing.is_none()),
        asks: granted.members.iter().map(|member| (member.class, member.quanta)).collect(),
        priority: granted.priority,
        sensitive: granted.sensitive,
        labels: granted.labels.clone(),
        profile: granted.profile,
        app_instance: granted.app_instance,
        ..RequestLease::of(ClassNo(0), Quanta(0), granted.ttl)
    }
}

/// The request for a lease on a certain node that became an allocation.
fn request_on_node(spec: &AllocationSpec, node: NodeNo) -> RequestLease {
    RequestLease {
        pool: spec.pool,
        node: Some(node),
        asks: spec.asks.clone(),
        priority: spec.priority,
        sensitive: spec.sensitive,
        control_plane: spec.control_plane,
        correlation: spec.correlation,
        app_instance: spec.app_instance,
        attachment: spec.attachment,
        source_project: spec.source_project,
        labels: spec.labels.clone(),
        profile: spec.profile,
        ..RequestLease::of(ClassNo(0), Quanta(0), spec.ttl.unwrap_or(Span::ZERO))
    }
}

fn request_of_denial(denied: &Denied) -> RequestLease {
    let Particulars { sensitive, node, labels, profile, app_instance, correlation } = denied.particulars.clone();
    RequestLease {
        pool: denied.pool,
        node,
        asks: denied.asks.clone(),
        priority: denied.priority,
        sensitive,
        labels,
        profile,
        app_instance,
        correlation,
        ..RequestLease::of(ClassNo(0), Quanta(0), denied.ttl)
    }
}

fn submission(spec: &AllocationSpec, when_over_quota: Option<WhenOverQuota>) -> Command {
    Command::SubmitAllocation(SubmitAllocation { when_over_quota, ..spec.clone().into() })
}
