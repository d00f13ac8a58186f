//! One allocation. Ended allocations are kept.

use crate::custody::Claimer;
use crate::lease::{Lease, Phase};
use crate::quota::Demand;
use crate::reservation::Reservation;
use crate::world::World;
use leasehold_model::{
    AllocationNo, AllocationSpec, AllocationState, AttemptEnd, Identity, Instant, LeaseNo, Name, NodeNo, ProjectNo,
    TenantNo, UserNo,
};

/// References that the caller chose: an HCL entry and a DRA claim.
pub(crate) type References = (Option<Name>, Option<Name>);

#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) number: AllocationNo,
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) user: Option<UserNo>,
    pub(crate) workload: Option<Name>,
    /// The HCL entry and the DRA claim that its submission named.
    pub(crate) references: References,
    pub(crate) spec: AllocationSpec,
    /// The only node that it may use.
    pub(crate) node: Option<NodeNo>,
    pub(crate) state: AllocationState,
    /// Determines its age in the queue, also after it is requeued.
    pub(crate) submitted_at: Instant,
    pub(crate) attempts: u32,
    pub(crate) placed_at: Instant,
    /// The first lease of the last attempt.
    pub(crate) first_lease: LeaseNo,
    /// Whether this attempt has a checkpoint.
    pub(crate) checkpointed: bool,
    /// Why this attempt is interrupted; set by the first of its leases that ends.
    pub(crate) ends: Option<AttemptEnd>,
    /// When it last entered the queue.
    pub(crate) queued_at: Instant,
    /// The nodes on which it is protected.
    pub(crate) protected_on: Vec<NodeNo>,
    /// How often it was requeued.
    pub(crate) requeues: u32,
    pub(crate) reservation: Option<Reservation>,
    /// Whether it is on hold, and if so whether an operator did that.
    pub(crate) hold: Option<bool>,
}

impl Allocation {
    /// When this attempt must end, if it has a walltime.
    pub(crate) fn bound(&self) -> Option<Instant> {
        self.spec.walltime.filter(|_| self.state.is_placed()).map(|walltime| self.placed_at.saturating_add(walltime))
    }

    /// The project that pays: the one that lends to it, or else its own (SEMANTICS 13).
    pub(crate) fn payer(&self) -> ProjectNo {
        self.spec.source_project.unwrap_or(self.project)
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity {
            tenant: Some(self.tenant),
            project: Some(self.project),
            user: self.user,
            workload: self.workload.clone(),
            token: None,
        }
    }

    /// The claimer whose nodes it uses; `None` if it is not sensitive.
    pub(crate) fn claimer(&self) -> Option<Claimer> {
        Some((self.tenant, self.user.filter(|_| self.spec.sensitive)?))
    }

    pub(crate) fn demand(&self) -> Demand {
        let gang = Demand::of_gang(self.tenant, self.project, self.user, &self.spec);
        Demand { node: self.node, number: Some(self.number), ..gang }
    }

    /// Whether it waits in the queue: neither placed, nor ended, nor on hold, nor waiting for its victims.
    pub(crate) fn is_in_line(&self) -> bool {
        self.state.is_queued() && self.reservation.is_none() && self.hold.is_none()
    }
}

impl World {
    /// The leases of an allocation's last attempt.
    pub(crate) fn gang_of(&self, of: &Allocation) -> impl Iterator<Item = &Lease> {
        let (number, first) = (of.number, of.first_lease);
        let from = self.leases.partition_point(move |lease| lease.number < first);
        self.leases[from..].iter().filter(move |lease| lease.of == Some(number))
    }

    /// The placed allocation of a lease, if the lease belongs to its running attempt.
    pub(crate) fn attempt_of(&self, lease: &Lease) -> Option<&Allocation> {
        let found = self.allocations.get(&lease.of?)?;
        (found.state.is_placed() && lease.number >= found.first_lease).then_some(found)
    }

    /// Notes that a lease ends involuntarily.
    pub(crate) fn begin_end(&mut self, number: LeaseNo, end: AttemptEnd) {
        let lease = self.lease(number).expect("a lease that was looked up");
        let Some(found) = self.attempt_of(lease) else { return };
        let at_bound = found.bound().is_some_and(|bound| lease.expires_at >= bound);
        let end = if end == AttemptEnd::Expired && at_bound { AttemptEnd::Walltime } else { end };
        let number = found.number;
        self.allocations.get_mut(&number).expect("just found").ends.get_or_insert(end);
    }

    pub(crate) fn held_of(&self, of: &Allocation) -> Vec<LeaseNo> {
        self.gang_of(of).filter(|lease| lease.phase.is_held()).map(|lease| lease.number).collect()
    }

    pub(crate) fn active_of(&self, of: &Allocation) -> Vec<LeaseNo> {
        self.gang_of(of).filter(|lease| lease.phase == Phase::Active).map(|lease| lease.number).collect()
    }
}
