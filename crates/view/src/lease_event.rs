//! Lease events: what a record did to each of its leases, in a format for billing systems.
//!
//! All fields are always present; unknown values are null.

use super::Directory;
use super::correlation::belongs_to;
use super::directory::granted_leases;
use super::object::{Object, count, devices, text, units};
use super::record::public_id;
use leasehold_model::body::{Body, Leases, Renewal};
use leasehold_model::class::ResourceKind;
use leasehold_model::id::{IdKind, LeaseNo};
use leasehold_model::policy::Reason;
use leasehold_model::record::Record;
use serde_json::{Value, json};

/// The events of a record, one per lease in the order of the record; `None` for records that are not about leases.
pub(super) fn show_all(directory: &Directory, record: &Record) -> Option<Value> {
    let event = |(position, (lease, event_type))| show(directory, record, position, lease, event_type);
    Some((0u16..).zip(touched(record)?).map(event).collect())
}

/// The leases that a record touches, each with the type of its event.
fn touched(record: &Record) -> Option<Vec<(LeaseNo, Value)>> {
    fn all(leases: impl Iterator<Item = LeaseNo>, event_type: impl Into<Value>) -> Vec<(LeaseNo, Value)> {
        let event_type = event_type.into();
        leases.map(|lease| (lease, event_type.clone())).collect()
    }
    let each = |leases: &Leases, event_type: Value| all(leases.0.iter().copied(), event_type);
    Some(match &record.body {
        Body::Granted(granted) => {
            let duration_secs = count(granted.ttl.as_secs());
            all(granted_leases(granted), json!({ "Allocated": { "duration_secs": duration_secs } }))
        }
        Body::Renewed(renewed) => {
            let renewed_to = |renewal: &Renewal| {
                let at = renewal.expires_at;
                json!({ "Renewed": { "new_expires_at": at.to_string(), "new_expires_at_ns": at.0.to_string() } })
            };
            renewed.renewals.iter().map(|renewal| (renewal.lease, renewed_to(renewal))).collect()
        }
        Body::Released(released) => all(released.leases.leases(), "Released"),
        Body::Expired(expired) => each(&expired.leases, "Expired".into()),
        Body::Revoked(revoked) => {
            each(&revoked.leases, json!({ "Revoked": { "reason": record.reason.map(Reason::word) } }))
        }
        Body::TeardownStarted(started) => each(&started.leases, "TeardownStarted".into()),
        Body::TornDown(torn) => each(&torn.leases, "TornDown".into()),
        Body::Fenced(fenced) => each(&fenced.leases, "Fenced".into()),
        Body::Unfenced(unfenced) => each(&unfenced.leases, "Unfenced".into()),
        Body::ActivityReported(reported) => all(reported.leases.leases(), "ActivityReported"),
        Body::WindowAnnounced(told) => {
            let begins = json!({ "begins_at": told.from.to_string(), "begins_at_ns": told.from.0.to_string() });
            let what = if told.cancelled == Some(true) { "MaintenanceCancelled" } else { "MaintenanceAnnounced" };
            each(&told.leases, json!({ what: begins }))
        }
        Body::EndsCorrected(corrected) => each(&corrected.leases, "EndCorrected".into()),
        // A denial has no lease; victims of a preemption are revoked by their own records.
        Body::Denied(_) | Body::Preempted(_) => Vec::new(),
        // Records that are not about leases.
        #[rustfmt::skip]
        Body::ClassPut(_) | Body::TenantPut(_) | Body::Genesis(_) | Body::Started(_) | Body::Heartbeat(_)
        | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_) | Body::SettingsChanged(_) | Body::PoolPut(_)
        | Body::PoolDeleted(_) | Body::TenantDeleted(_) | Body::ProjectPut(_) | Body::ProjectDeleted(_)
        | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaPut(_) | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!()
        | Body::RateCardPut(_) | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_) | Body::BudgetsPut(_)
        | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_) | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::NodePut(_)
        | Body::NodeDeleted(_) | Body::NodeDrained(_) | Body::NodeResumed(_) | Body::NodeLost(_)
        | Body::NodeReturned(_) | Body::NodeCondition(_) | Body::AgentRegistered(_) | Body::AgentDetached(_)
        | Body::PreemptionDecided(_) | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenIssued(_) | Body::TokenRevoked(_) | Body::NodeEmpty(_)
        | Body::AllocationSubmitted(_) | Body::AllocationDenied(_) | Body::AllocationPlaced(_)
        | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_) | Body::AllocationCheckpointed(_)
        | Body::AllocationSuspended(_) | Body::AllocationRequeued(_) | Body::AllocationCompleted(_)
        | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_) | Body::NodesClaimed(_) | Body::NodesReleased(_)
        | Body::NodeWiped(_) | Body::NodeQuarantined(_) | Body::QuarantineCleared(_) | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_)
        | Body::CeilingDeleted(_) | Body::Unknown { .. } => return None,
    })
}

fn show(directory: &Directory, record: &Record, position: u16, number: LeaseNo, event_type: Value) -> Value {
    let lease = directory.lease(number);
    let class = lease.and_then(|lease| directory.class(lease.class));
    let torn_down_on = if let Body::TornDown(torn) = &record.body { Some(torn.node) } else { None };
    let node = torn_down_on.or(lease.map(|lease| lease.node));
    // Billing uses the effective instant: an expiry that was noticed late is not billed late (SEMANTICS 2). A lease that
    // was granted after its node was last seen ends when it was granted.
    let happened_at = lease.map_or(record.effective_at, |lease| record.effective_at.max(lease.granted_at));
    let shown = Object::new(directory)
        .field("event_id", public_id(directory, IdKind::LeaseEvent, position, record.sequence))
        .instant("timestamp", happened_at)
        .field("event_type", event_type)
        .field("lease_id", public_id(directory, IdKind::Lease, 0, number.0))
        .field("lease", number.to_string())
        // A record contains data of one tenant only, so its tenant is that of the lease.
        .named("tenant", lease.and_then(|lease| lease.tenant).or(record.identity.tenant))
        .named("project", lease.and_then(|lease| lease.project))
        .named("user", lease.and_then(|lease| lease.user))
        .field("workload", text(lease.and_then(|lease| lease.workload.as_ref())))
        .field("accounting_tag", text(lease.and_then(|lease| lease.tag.as_deref())))
        .field("resource_type", class.map(|class| resource_type(class.kind)))
        .field("tier_kind", text(class.and_then(|class| class.tier.as_ref())))
        .named("class", lease.map(|lease| lease.class))
        .field("capacity", lease.map(|lease| count(lease.quanta.0)))
        .field("capacity_units", lease.map(|lease| units(lease.quanta, class)))
        .named("node", node)
        .field("devices", lease.map(|lease| devices(lease.devices)))
        .instant("granted_at", lease.map(|lease| lease.granted_at))
        .instant("expires_at", lease.map(|lease| lease.expires_at));
    belongs_to(shown, directory, lease.map(|lease| lease.belongs_to)).done()
}

/// The names of resource kinds in lease events.
const fn resource_type(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Gpu => "Gpu",
        ResourceKind::Cpu => "Cpu",
        ResourceKind::Mem => "Mem",
        ResourceKind::Block => "Block",
        ResourceKind::Net => "Net",
    }
}
