//! Deciding once more what the journal says was decided, on the state it was decided on.

use crate::command::{Command, Request, RequestLease};
use crate::decide::Engine;
use crate::state::State;
use leasehold_model::body::{Body, Granted, Particulars};
use leasehold_model::{AttemptEnd, Batch, ClassNo, Identity, Quanta, RULES_VERSION, Record};

/// What deciding again came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// The same.
    Same,
    /// These records, not those that were sealed.
    Differs(Vec<Record>),
    /// The record was sealed under rules that this program does not have.
    OtherRules(u32),
    /// The record seals no decision that can be made again: what was asked for, not what was chosen.
    NotADecision,
    /// The record belongs to the decision that begins with this one.
    PartOf(u64),
}

/// The rules that a decision was made under, if it is one: those it names, or those of the process that made it.
fn rules(body: &Body, state: &State) -> Option<u32> {
    let of_process = state.rules_version.unwrap_or(RULES_VERSION);
    match body {
        Body::Granted(granted) => Some(granted.rules_version),
        Body::Denied(denied) => Some(denied.rules_version),
        Body::AllocationDenied(denied) => Some(denied.rules_version),
        Body::AllocationPlaced(placed) => Some(placed.rules_version),
        Body::PreemptionDecided(decided) => Some(decided.rules_version),
        Body::AllocationSubmitted(_) | Body::ReservationDropped(_) | Body::AllocationSuspended(_) => Some(of_process),
        // What its holder reports was not decided.
        Body::AllocationFailed(failed) if failed.end == AttemptEnd::Reported => None,
        Body::AllocationRequeued(_) | Body::AllocationFailed(_) => Some(of_process),
        _ => None,
    }
}

/// Whether a record says the same as another, but for what an asker alone knew.
fn says_the_same(sealed: &Record, again: &Record) -> bool {
    match (&sealed.body, &again.body) {
        (Body::Granted(sealed), Body::Granted(again)) => {
            let chosen = |granted: &Granted| (granted.first_lease, granted.node, granted.members.clone());
            chosen(sealed) == chosen(again) && sealed.over_soft == again.over_soft
        }
        (sealed, again) => sealed == again,
    }
}

/// Decides again what `sealed` says, the first record of a decision and those that continue it, on the state before
/// it. The state is used up.
pub fn replay(state: State, sealed: &[Record]) -> Replayed {
    let Some(first) = sealed.first() else { return Replayed::NotADecision };
    if first.continues {
        return Replayed::PartOf(first.sequence);
    }
    match rules(&first.body, &state) {
        None => return Replayed::NotADecision,
        Some(version) if version != RULES_VERSION => return Replayed::OtherRules(version),
        Some(_) => {}
    }
    let mut engine = Engine::new(state);
    let mut batch = Batch::new(engine.state().size());
    let by_itself = !is_asked_for(first);
    // Before a command is decided, all that follows by itself has been said; so this says nothing then.
    engine.advance(first.stamp, &mut batch, 1);
    if !by_itself && let Some(command) = asked_by(first) {
        let identity = Identity { token: None, ..first.identity.clone() };
        // A refusal shows as records that are missing.
        let _ = engine.decide(first.stamp, &Request::new(identity, command), &mut batch);
    }
    let again = batch.frames().filter_map(|frame| frame.ok()?.decode().ok()).collect::<Vec<Record>>();
    let own = again.iter().take(1).chain(again.iter().skip(1).take_while(|record| record.continues));
    let own: Vec<Record> = own.cloned().collect();
    let same = own.len() == sealed.len() && own.iter().zip(sealed).all(|(again, sealed)| says_the_same(sealed, again));
    if same { Replayed::Same } else { Replayed::Differs(own) }
}

/// Whether someone asked for it, by a command of their own.
fn is_asked_for(record: &Record) -> bool {
    let body = &record.body;
    matches!(body, Body::Granted(_) | Body::Denied(_) | Body::AllocationSubmitted(_) | Body::AllocationDenied(_))
}

/// What must have been asked, as far as the record of a decision tells.
pub fn asked_by(record: &Record) -> Option<Command> {
    let request = |pool, asks: Vec<(ClassNo, Quanta)>, ttl, priority| RequestLease {
        pool,
        asks: asks.into_iter().collect(),
        priority,
        ..RequestLease::of(ClassNo(0), Quanta(0), ttl)
    };
    match &record.body {
        Body::Granted(granted) => {
            let asks = granted.members.iter().map(|member| (member.class, member.quanta)).collect();
            Some(Command::Request(RequestLease {
                // Where no weights chose the node, the request did.
                node: Some(granted.node).filter(|_| granted.weighing.is_none()),
                sensitive: granted.sensitive,
                labels: granted.labels.clone(),
                profile: granted.profile,
                app_instance: granted.app_instance,
                ..request(Some(granted.pool), asks, granted.ttl, granted.priority)
            }))
        }
        Body::Denied(denied) => {
            let Particulars { sensitive, node, labels, profile, app_instance } = denied.particulars.clone();
            Some(Command::Request(RequestLease {
                node,
                sensitive,
                labels,
                profile,
                app_instance,
                ..request(denied.pool, denied.asks.to_vec(), denied.ttl, denied.priority)
            }))
        }
        Body::AllocationDenied(denied) => Some(Command::SubmitAllocation(denied.spec.clone())),
        Body::AllocationSubmitted(submitted) => Some(Command::SubmitAllocation(submitted.spec.clone())),
        _ => None,
    }
}
