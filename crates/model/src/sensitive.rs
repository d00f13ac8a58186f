//! Which records tell by themselves that there was sensitive work (SEMANTICS 10).

use crate::Body;

impl Body {
    /// Whether this record tells by itself of sensitive work: of a claim of nodes and what ends it, or of a request, a
    /// lease or an allocation with the sensitive flag.
    ///
    /// Others can be about sensitive work as well, such as the renewal of a lease, but each of them follows a record that
    /// tells. A kind that this version does not know counts.
    pub fn tells_of_sensitive_work(&self) -> bool {
        match self {
            Self::NodesClaimed(_)
            | Self::NodesReleased(_)
            | Self::NodeWiped(_)
            | Self::NodeQuarantined(_)
            | Self::QuarantineCleared(_)
            | Self::ClaimEndCorrected(_)
            | Self::Unknown { .. } => true,
            Self::Granted(granted) => granted.sensitive,
            Self::Denied(denied) => denied.particulars.sensitive,
            Self::AllocationSubmitted(submitted) => submitted.spec.sensitive,
            Self::AllocationDenied(denied) => denied.spec.sensitive,
            Self::AllocationChanged(changed) => changed.spec.sensitive,
            Self::Renewed(_)
            | Self::Released(_)
            | Self::Expired(_)
            | Self::Revoked(_)
            | Self::TeardownStarted(_)
            | Self::TornDown(_)
            | Self::Fenced(_)
            | Self::Unfenced(_)
            | Self::ActivityReported(_)
            | Self::Preempted(_)
            | Self::PreemptionDecided(_)
            | Self::ReservationDropped(_)
            | Self::ReservationTakenOver(_)
            | Self::HeadProtected(_)
            | Self::EndsCorrected(_)
            | Self::LossSettled(_)
            | Self::WindowAnnounced(_)
            | Self::AllocationPlaced(_)
            | Self::AllocationStarted(_)
            | Self::AllocationCheckpointing(_)
            | Self::AllocationCheckpointed(_)
            | Self::AllocationSuspended(_)
            | Self::AllocationRequeued(_)
            | Self::AllocationCompleted(_)
            | Self::AllocationFailed(_)
            | Self::AllocationCancelled(_)
            | Self::AllocationHoldSet(_)
            | Self::AllocationHoldCleared(_)
            | Self::NodePut(_)
            | Self::NodeDeleted(_)
            | Self::NodeDrained(_)
            | Self::NodeResumed(_)
            | Self::NodeLost(_)
            | Self::NodeReturned(_)
            | Self::NodeCondition(_)
            | Self::AgentRegistered(_)
            | Self::AgentDetached(_)
            | Self::NodeEmpty(_)
            | Self::WindowPut(_)
            | Self::WindowStarted(_)
            | Self::WindowEnded(_)
            | crate::setup_kinds!()
            | crate::ledger_kinds!() => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::AllocationSpec;
    use crate::body::{AllocationSubmitted, Asks, Heartbeat, Nodes, NodesClaimed, SensitiveChanged};
    use crate::id::NodeNo;

    #[test]
    fn claims_and_the_sensitive_flag_tell() {
        let submitted = |sensitive| {
            let spec = AllocationSpec { sensitive, ..AllocationSpec::of(Asks::new()) };
            Body::from(AllocationSubmitted { spec, when_over_quota: None, node: None })
        };
        let claimed = NodesClaimed { nodes: Nodes(vec![NodeNo(1)]), until: None };
        assert!(Body::from(claimed).tells_of_sensitive_work());
        assert!(submitted(true).tells_of_sensitive_work());
        assert!(!submitted(false).tells_of_sensitive_work());
        assert!(Body::Unknown { kind: 9999, bytes: Vec::new() }.tells_of_sensitive_work());
        // A limit on the number of claimed nodes is a setting, also where nothing is ever claimed.
        assert!(!Body::from(SensitiveChanged { pool_size: Some(4) }).tells_of_sensitive_work());
        assert!(!Body::from(Heartbeat {}).tells_of_sensitive_work());
    }
}
