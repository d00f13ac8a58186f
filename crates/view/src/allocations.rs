//! Allocations and preemptions as JSON.

use super::body::{amount, denial_cause, labels, nodes};
use super::correlation::correlation_id;
use super::object::{Object, count, devices};
use super::{Directory, placement};
use leasehold_model::allocation::{AllocationSpec, Domain, WhenOverQuota};
use leasehold_model::body::{AllocationDenied, Asks, Body, Correlation, ReplicaPlacement};
use leasehold_model::id::AllocationNo;
use leasehold_model::record::Record;
use serde_json::Value;

pub(super) fn show<'a>(shown: Object<'a>, directory: &'a Directory, record: &Record) -> Object<'a> {
    let of = |shown: Object<'a>, number: AllocationNo| shown.field("allocation_id", number.to_string());
    match &record.body {
        // The number of an allocation is the sequence of its submission.
        Body::AllocationSubmitted(submitted) => {
            let shown = shown.field("allocation_id", AllocationNo(record.sequence).to_string());
            let shown = spec(shown, directory, record.sequence, &submitted.spec);
            shown
                .named("node", submitted.node)
                .field("when_over_quota", submitted.when_over_quota.map(WhenOverQuota::word))
        }
        Body::AllocationDenied(body) => denied(shown, directory, record, body),
        Body::AllocationPlaced(body) => of(shown, body.allocation)
            .field("attempt", body.attempt)
            .field("first_lease", body.first_lease.to_string())
            .field("leases", body.leases)
            .field("rules_version", body.rules_version),
        Body::AllocationStarted(body) => of(shown, body.allocation),
        Body::AllocationCheckpointing(body) => of(shown, body.allocation),
        Body::AllocationCheckpointed(body) => {
            of(shown, body.allocation).count("bytes", body.bytes).span("took", body.took)
        }
        Body::AllocationSuspended(body) => of(shown, body.allocation).field("end", body.end.word()),
        Body::AllocationRequeued(body) => of(shown, body.allocation).field("end", body.end.word()),
        Body::AllocationCompleted(body) => of(shown, body.allocation)
            .field("exit_status", body.exit_status)
            .known_count("storage_written", body.storage_written),
        Body::AllocationFailed(body) => of(shown, body.allocation)
            .field("end", body.end.word())
            .field("exit_status", body.exit_status)
            .known_count("storage_written", body.storage_written),
        Body::AllocationCancelled(body) => of(shown, body.allocation),
        Body::AllocationHoldSet(body) => {
            let shown = of(shown, body.allocation).field("by_operator", body.by_operator);
            match &body.reason {
                Some(reason) => shown.field("hold_reason", reason.as_str()),
                None => shown,
            }
        }
        Body::AllocationHoldCleared(body) => of(shown, body.allocation),
        Body::AllocationChanged(body) => spec(of(shown, body.allocation), directory, body.allocation.0, &body.spec),
        Body::PreemptionDecided(body) => {
            let shown = of(shown, body.allocation)
                .field("priority", body.priority.word())
                .field("rules_version", body.rules_version)
                .field("places", body.places.iter().map(|place| kept(directory, place)).collect::<Value>())
                .leases("victims", &body.victims.0);
            match body.headroom {
                None => shown,
                Some(quota) => shown.field("headroom_quota_id", quota.0),
            }
        }
        Body::ReservationDropped(body) => of(shown, body.allocation),
        Body::ReservationTakenOver(body) => of(shown, body.allocation)
            .field("priority", body.priority.word())
            .field("rules_version", body.rules_version)
            .field("places", body.places.iter().map(|place| kept(directory, place)).collect::<Value>())
            .leases("victims", &body.victims.0)
            .leases("awaited", &body.awaited.0)
            .field("dropped", body.dropped.iter().map(|number| Value::from(number.to_string())).collect::<Value>()),
        Body::HeadProtected(body) => of(shown, body.allocation)
            .field("rules_version", body.rules_version)
            .field("nodes", nodes(directory, &body.nodes)),
        #[rustfmt::skip]
        Body::ClassPut(_) | Body::TenantPut(_) | Body::Granted(_) | Body::Denied(_) | Body::Released(_)
        | Body::Expired(_) | Body::Revoked(_) | Body::TeardownStarted(_) | Body::Fenced(_) | Body::Genesis(_)
        | Body::Started(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_)
        | Body::SettingsChanged(_) | Body::PoolPut(_) | Body::PoolDeleted(_) | Body::TenantDeleted(_)
        | Body::ProjectPut(_) | Body::ProjectDeleted(_) | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaPut(_)
        | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!() | Body::RateCardPut(_) | Body::RateCardDeleted(_)
        | Body::ChargePolicyPut(_) | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::PlacementChanged(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
        | Body::SensitiveChanged(_) | Body::NodePut(_) | Body::NodeDeleted(_) | Body::NodeDrained(_)
        | Body::NodeResumed(_) | Body::NodeLost(_) | Body::NodeReturned(_) | Body::NodeCondition(_)
        | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_) | Body::Renewed(_) | Body::TornDown(_)
        | Body::Unfenced(_) | Body::ActivityReported(_) | Body::Preempted(_) | Body::TokenIssued(_)
        | Body::TokenRevoked(_) | Body::NodesClaimed(_) | Body::NodesReleased(_) | Body::NodeWiped(_)
        | Body::NodeQuarantined(_) | Body::QuarantineCleared(_) | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_) | Body::CeilingDeleted(_)
        | Body::Unknown { .. } => {
            unreachable!("only kinds about allocations are shown here")
        }
    }
}

fn kept(directory: &Directory, place: &ReplicaPlacement) -> Value {
    let members = place
        .members
        .iter()
        .map(|member| amount(directory, member.class, member.quanta).field("devices", devices(member.devices)).done());
    Object::new(directory).named("node", place.node).field("members", members.collect::<Value>()).done()
}

fn asks(directory: &Directory, asks: &Asks) -> Value {
    asks.iter().map(|(class, quanta)| amount(directory, *class, *quanta).done()).collect()
}

/// `number` is that of the allocation, from which its correlation ID is derived if none was given.
fn spec<'a>(shown: Object<'a>, directory: &'a Directory, number: u64, spec: &AllocationSpec) -> Object<'a> {
    let correlation = Correlation::or_derived(spec.correlation, number);
    shown
        .named("pool", spec.pool)
        .field("asks", asks(directory, &spec.asks))
        .field("replicas", spec.replicas)
        .field("priority", spec.priority.word())
        .span("walltime", spec.walltime)
        .span("ttl", spec.ttl)
        .field("staged", spec.staged)
        .field("requeue", spec.requeue)
        .field("labels", labels(directory, &spec.labels))
        .field("together", spec.together.map(Domain::word))
        .field("apart", spec.apart.map(Domain::word))
        .field("profile", spec.profile.map(placement::profile))
        .field("sensitive", spec.sensitive)
        .field("control_plane", spec.control_plane)
        .field("correlation_id", correlation_id(directory, correlation))
        .field("correlation_given", spec.correlation.is_some())
        .named("app_instance", spec.app_instance)
        .field("attachment_id", spec.attachment.map(|no| count(no.0)))
        .named("source_project", spec.source_project)
}

fn denied<'a>(shown: Object<'a>, directory: &'a Directory, record: &Record, denied: &AllocationDenied) -> Object<'a> {
    spec(shown, directory, record.sequence, &denied.spec)
        .field("rules_version", denied.rules_version)
        .field("cause", denial_cause(directory, denied.cause))
        .field("when_over_quota", denied.when_over_quota.map(WhenOverQuota::word))
}
