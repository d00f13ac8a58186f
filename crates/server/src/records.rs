//! The records that a caller may see, for pages of records, the event stream and histories.

use crate::access::Caller;
use crate::app::App;
use crate::record_leases::{learn_leases, touched};
use leasehold_api::{Problem, Role, codes};
use leasehold_model::body::Nodes;
use leasehold_model::{Body, LeaseNo, NodeNo, RawRecord, Record, TenantNo};
use leasehold_view::Directory;
use serde_json::Value;

/// Selects records: what the caller may see, narrowed by the query.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) caller: Caller,
    pub(crate) tenant: Option<TenantNo>,
    /// A kind, or a family of kinds.
    pub(crate) kind: Option<String>,
    pub(crate) node: Option<NodeNo>,
    pub(crate) lease: Option<LeaseNo>,
}

impl Filter {
    /// Checks everything that does not need the leases of the record.
    fn may_take(&self, record: &Record) -> bool {
        let of_kind = |wanted: &String| {
            let word = record.body.word();
            word == wanted || word.split_once('.').is_some_and(|(family, _)| family == wanted)
        };
        let of_caller = match self.caller.role {
            Role::Operator | Role::Auditor => true,
            Role::TenantAdmin | Role::ProjectMember => record.identity.tenant == self.caller.tenant,
            Role::NodeAgent => true,
            Role::AppOperator | Role::BillingAuthority => false,
        };
        of_caller
            && self.tenant.is_none_or(|tenant| record.identity.tenant == Some(tenant))
            && self.kind.as_ref().is_none_or(of_kind)
    }

    /// Checks the rest, for a record whose leases are in the directory.
    fn takes(&self, directory: &Directory, record: &Record) -> bool {
        let mut leases = Vec::new();
        touched(&record.body, |lease| leases.push(lease));
        let on = |node: NodeNo| {
            let there = |lease: &LeaseNo| directory.holder(*lease).is_some_and(|(_, _, on)| on == node);
            (!leases.is_empty() && leases.iter().all(there)) || node_of(&record.body) == Some(node)
        };
        let visible = match self.caller.role {
            Role::ProjectMember => {
                let own = self.caller.project;
                let held = |lease: &LeaseNo| directory.holder(*lease).is_some_and(|(_, project, _)| project == own);
                match leases.is_empty() {
                    true => is_of_project(&record.body) && record.identity.project == own,
                    false => leases.iter().all(held),
                }
            }
            Role::NodeAgent => self.caller.node.is_some_and(on),
            _ => true,
        };
        visible && self.node.is_none_or(on) && self.lease.is_none_or(|lease| leases.contains(&lease))
    }

    /// Whether the filter needs the leases of a record.
    fn needs_leases(&self) -> bool {
        self.node.is_some() || matches!(self.caller.role, Role::ProjectMember | Role::NodeAgent)
    }

    /// The record as JSON, if the filter selects it.
    pub(crate) fn show(
        &self,
        app: &App,
        directory: &mut Directory,
        raw: &RawRecord<'_>,
    ) -> Result<Option<(Record, Value)>, Problem> {
        let unreadable = |_| codes::INTERNAL.problem("Cannot decode a record of the journal.");
        let record = raw.decode().map_err(unreadable)?;
        if !self.may_take(&record) {
            return Ok(None);
        }
        if !self.needs_leases() && !self.takes(directory, &record) {
            return Ok(None);
        }
        learn_leases(app, directory, &record)?;
        if !self.takes(directory, &record) {
            return Ok(None);
        }
        let shown = directory.show_known(raw, &raw.hash()).map_err(unreadable)?;
        Ok(Some((record, shown)))
    }

    /// Whether the filter selects a record whose leases are in the directory.
    pub(crate) fn takes_known(&self, directory: &Directory, record: &Record) -> bool {
        self.may_take(record) && self.takes(directory, record)
    }
}

/// Whether a record without leases belongs to the project that it names.
fn is_of_project(body: &Body) -> bool {
    matches!(
        body,
        Body::Denied(_)
            | Body::AllocationSubmitted(_)
            | Body::AllocationDenied(_)
            | Body::AllocationPlaced(_)
            | Body::AllocationStarted(_)
            | Body::AllocationCheckpointing(_)
            | Body::AllocationCheckpointed(_)
            | Body::AllocationSuspended(_)
            | Body::AllocationRequeued(_)
            | Body::AllocationCompleted(_)
            | Body::AllocationFailed(_)
            | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_)
            | Body::AllocationHoldCleared(_)
            | Body::AllocationChanged(_)
            | Body::ReservationDropped(_)
            | Body::NodesClaimed(_)
            | Body::NodesReleased(_)
    )
}

fn only(nodes: &Nodes) -> Option<NodeNo> {
    match nodes.0[..] {
        [node] => Some(node),
        _ => None,
    }
}

/// The node that a record is about.
pub(crate) fn node_of(body: &Body) -> Option<NodeNo> {
    match body {
        Body::NodePut(put) => Some(put.node),
        Body::NodeDeleted(gone) => Some(gone.node),
        Body::NodeDrained(drained) => Some(drained.node),
        Body::NodeResumed(resumed) => Some(resumed.node),
        Body::NodeLost(lost) => Some(lost.node),
        Body::NodeReturned(returned) => Some(returned.node),
        Body::NodeCondition(condition) => Some(condition.node),
        Body::AgentRegistered(registered) => Some(registered.node),
        Body::AgentDetached(detached) => Some(detached.node),
        Body::NodeEmpty(empty) => Some(empty.node),
        // An agent may not see the other nodes of a claim; its heartbeats tell it about its own.
        Body::NodesClaimed(claimed) => only(&claimed.nodes),
        Body::NodesReleased(released) => only(&released.nodes),
        Body::WindowPut(put) => only(&put.nodes),
        Body::WindowStarted(started) => only(&started.nodes),
        Body::WindowEnded(ended) => only(&ended.nodes),
        Body::NodeWiped(wiped) => Some(wiped.node),
        Body::NodeQuarantined(quarantined) => Some(quarantined.node),
        Body::QuarantineCleared(cleared) => Some(cleared.node),
        leasehold_model::setup_kinds!()
        | Body::Granted(_)
        | Body::Renewed(_)
        | Body::Released(_)
        | Body::ActivityReported(_)
        | Body::Expired(_)
        | Body::Revoked(_)
        | Body::TeardownStarted(_)
        | Body::TornDown(_)
        | Body::Fenced(_)
        | Body::Unfenced(_)
        | Body::WindowAnnounced(_)
        | Body::EndsCorrected(_)
        | Body::ClaimEndCorrected(_)
        | Body::LossSettled(_)
        | leasehold_model::ledger_kinds!()
        | Body::Preempted(_)
        | Body::Denied(_)
        | Body::PreemptionDecided(_)
        | Body::ReservationDropped(_)
        | Body::ReservationTakenOver(_)
        | Body::HeadProtected(_)
        | Body::AllocationSubmitted(_)
        | Body::AllocationDenied(_)
        | Body::AllocationPlaced(_)
        | Body::AllocationStarted(_)
        | Body::AllocationCheckpointing(_)
        | Body::AllocationCheckpointed(_)
        | Body::AllocationSuspended(_)
        | Body::AllocationRequeued(_)
        | Body::AllocationCompleted(_)
        | Body::AllocationFailed(_)
        | Body::AllocationCancelled(_)
        | Body::AllocationHoldSet(_)
        | Body::AllocationHoldCleared(_)
        | Body::AllocationChanged(_)
        | Body::Unknown { .. } => None,
    }
}
