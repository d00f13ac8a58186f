//! Patterns for the kinds of records that a fold treats alike. Those of `model` cover the others.

/// What happens to leases and claims. Since rules version 4 the head of each names the tenant.
macro_rules! lease_kinds {
    () => {
        leasehold_model::Body::Granted(_)
            | leasehold_model::Body::Renewed(_)
            | leasehold_model::Body::Released(_)
            | leasehold_model::Body::Expired(_)
            | leasehold_model::Body::Revoked(_)
            | leasehold_model::Body::TeardownStarted(_)
            | leasehold_model::Body::TornDown(_)
            | leasehold_model::Body::Fenced(_)
            | leasehold_model::Body::Unfenced(_)
            | leasehold_model::Body::EndsCorrected(_)
            | leasehold_model::Body::ClaimEndCorrected(_)
            | leasehold_model::Body::NodesClaimed(_)
            | leasehold_model::Body::NodesReleased(_)
            | leasehold_model::Body::AllocationPlaced(_)
            | leasehold_model::Body::AllocationFailed(_)
            | leasehold_model::Body::AllocationCompleted(_)
            | leasehold_model::Body::AllocationCancelled(_)
    };
}

/// What happens to allocations and requests without changing what a lease is charged.
macro_rules! allocation_kinds {
    () => {
        leasehold_model::Body::Denied(_)
            | leasehold_model::Body::ActivityReported(_)
            | leasehold_model::Body::AllocationSubmitted(_)
            | leasehold_model::Body::AllocationDenied(_)
            | leasehold_model::Body::AllocationStarted(_)
            | leasehold_model::Body::AllocationCheckpointing(_)
            | leasehold_model::Body::AllocationCheckpointed(_)
            | leasehold_model::Body::AllocationSuspended(_)
            | leasehold_model::Body::AllocationRequeued(_)
            | leasehold_model::Body::AllocationHoldSet(_)
            | leasehold_model::Body::AllocationHoldCleared(_)
            | leasehold_model::Body::AllocationChanged(_)
            | leasehold_model::Body::WindowAnnounced(_)
            | leasehold_model::Body::PreemptionDecided(_)
            | leasehold_model::Body::ReservationTakenOver(_)
            | leasehold_model::Body::ReservationDropped(_)
            | leasehold_model::Body::HeadProtected(_)
            | leasehold_model::Body::Preempted(_)
    };
}

/// What happens to nodes, except whether they are available.
macro_rules! inventory_kinds {
    () => {
        leasehold_model::Body::NodePut(_)
            | leasehold_model::Body::NodeDeleted(_)
            | leasehold_model::Body::NodeCondition(_)
            | leasehold_model::Body::NodeEmpty(_)
            | leasehold_model::Body::AgentRegistered(_)
            | leasehold_model::Body::AgentDetached(_)
            | leasehold_model::Body::NodeWiped(_)
            | leasehold_model::Body::NodeQuarantined(_)
            | leasehold_model::Body::QuarantineCleared(_)
            | leasehold_model::Body::WindowPut(_)
            | leasehold_model::Body::WindowStarted(_)
            | leasehold_model::Body::WindowEnded(_)
            | leasehold_model::Body::LossSettled(_)
            | leasehold_model::Body::Unknown { .. }
    };
}

pub(crate) use {allocation_kinds, inventory_kinds, lease_kinds};
