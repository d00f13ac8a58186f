//! Live allocations: those that wait in the queue or hold a gang of leases.

use crate::custody::Claimer;
use crate::holder::identity;
use crate::reservation::Reservation;
use leasehold_model::AttachmentNo;
use leasehold_model::body::AllocationSubmitted;
use leasehold_model::{
    AllocationNo, AllocationSpec, AllocationState, AttemptEnd, Identity, Instant, LeaseNo, Name, NodeNo, ProjectNo,
    Record, TenantNo, UserNo,
};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The sequence of the record that submitted it.
    pub number: AllocationNo,
    pub tenant: TenantNo,
    pub project: ProjectNo,
    /// Who pays: its project, or the one that lends it the capacity.
    pub payer: ProjectNo,
    pub user: Option<UserNo>,
    pub workload: Option<Name>,
    /// References of the caller, which the grants of its leases carry as well.
    pub hcl_entry: Option<Name>,
    pub dra_claim_id: Option<Name>,
    pub spec: AllocationSpec,
    /// The only node that it may use, if it was requested as a lease on that node.
    pub node: Option<NodeNo>,
    pub state: AllocationState,
    /// When it was submitted. It keeps this age when it is requeued.
    pub submitted_at: Instant,
    /// The number of attempts so far.
    pub attempt: u32,
    /// When the last attempt began.
    pub placed_at: Instant,
    /// The first lease of the last attempt; the others have the following numbers.
    pub first_lease: LeaseNo,
    pub leases: u32,
    /// How many leases of the last attempt are still held.
    pub held: u32,
    /// Whether this attempt has written a checkpoint.
    pub checkpointed: bool,
    /// Why this attempt is being ended involuntarily, if it is.
    pub ends: Option<AttemptEnd>,
    /// The latest end among those of its leases that have ended.
    pub ended_at: Instant,
    /// When it last entered the queue.
    pub queued_at: Instant,
    /// The nodes on which it is protected; empty if it is not.
    pub protected_on: Vec<NodeNo>,
    /// How often it was requeued without a checkpoint, since the first process with rules version 4.
    pub requeues: u32,
    /// Set while it is on hold: it keeps its place in the queue, and is not scheduled.
    pub on_hold: Option<Hold>,
    pub(crate) reservation: Option<Box<Reservation>>,
}

/// Why a waiting allocation is on hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Whether an operator did it; only an operator releases it then.
    pub by_operator: bool,
    pub reason: Option<Name>,
    pub since: Instant,
}

impl Allocation {
    /// `lends`: a source project pays for it. Before rules version 6 it was only recorded.
    pub(crate) fn new(record: &Record, submitted: &AllocationSubmitted, lends: bool) -> Option<Self> {
        let identity = &record.identity;
        Some(Self {
            number: AllocationNo(record.sequence),
            tenant: identity.tenant?,
            project: identity.project?,
            payer: submitted.spec.source_project.filter(|_| lends).or(identity.project)?,
            user: identity.user,
            workload: identity.workload.clone(),
            hcl_entry: record.hcl_entry.clone(),
            dra_claim_id: record.dra_claim_id.clone(),
            spec: submitted.spec.clone(),
            node: submitted.node,
            state: AllocationState::Pending,
            submitted_at: record.stamp,
            attempt: 0,
            placed_at: Instant(0),
            first_lease: LeaseNo(0),
            leases: 0,
            held: 0,
            checkpointed: false,
            ends: None,
            ended_at: Instant(0),
            queued_at: record.stamp,
            protected_on: Vec::new(),
            requeues: 0,
            on_hold: None,
            reservation: None,
        })
    }

    /// The attachment on whose account it runs, and the project that pays. What was submitted before rules version 6
    /// could name any, and was not lent anything.
    pub(crate) fn lent(&self) -> Option<(AttachmentNo, ProjectNo)> {
        let (attachment, source) = (self.spec.attachment?, self.spec.source_project?);
        (source == self.payer && source != self.project).then_some((attachment, source))
    }

    /// The identity that its records carry.
    pub(crate) fn identity(&self) -> Identity {
        identity(self.tenant, self.project, self.user, self.workload.clone())
    }

    /// The user on whose claimed nodes it runs. `None` unless it is sensitive.
    pub fn claimer(&self) -> Option<Claimer> {
        let user = self.user.filter(|_| self.spec.sensitive)?;
        Some(Claimer { tenant: self.tenant, user })
    }

    /// The numbers of the leases of the last attempt.
    pub fn lease_numbers(&self) -> impl Iterator<Item = LeaseNo> + use<> {
        (self.first_lease.0..self.first_lease.0 + u64::from(self.leases)).map(LeaseNo)
    }

    pub(crate) fn has_lease(&self, lease: LeaseNo) -> bool {
        self.state.is_placed() && (self.first_lease.0..self.first_lease.0 + u64::from(self.leases)).contains(&lease.0)
    }

    /// When this attempt ends at the latest, if it has a walltime.
    pub fn bound(&self) -> Option<Instant> {
        self.spec.walltime.filter(|_| self.state.is_placed()).map(|walltime| self.placed_at.saturating_add(walltime))
    }

    /// Whether scheduling passes consider it: it waits, is not on hold, and does not wait for its victims.
    pub(crate) fn is_in_line(&self) -> bool {
        self.state.is_queued() && self.reservation.is_none() && self.on_hold.is_none()
    }

    /// Whether its attempt is ending and the record that settles it has not been made yet.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.state.is_placed() && self.ends.is_some()
    }

    /// The sequence of the eviction decision whose victims it is waiting for.
    pub fn kept_by(&self) -> Option<u64> {
        self.reservation.as_deref().map(|reservation| reservation.sequence)
    }

    /// The nodes on which capacity is reserved for it.
    pub fn reserved_on(&self) -> impl Iterator<Item = NodeNo> + '_ {
        self.reservation.iter().flat_map(|reservation| reservation.places.iter().map(|place| place.node))
    }
}

/// How an allocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    pub allocation: AllocationNo,
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub state: AllocationState,
    pub at: Instant,
}

/// How many ended allocations are remembered, so that a late report gets a precise answer.
pub(crate) const OVER_KEPT: usize = 4096;

/// Live allocations by number, and the most recently ended ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allocations {
    pub(crate) live: BTreeMap<AllocationNo, Box<Allocation>>,
    /// A ring buffer of ended allocations; the oldest is overwritten first.
    pub(crate) over: Vec<Over>,
    pub(crate) next_over: usize,
}

impl Allocations {
    pub(crate) fn get(&self, number: AllocationNo) -> Option<&Allocation> {
        self.live.get(&number).map(|allocation| &**allocation)
    }
    pub(crate) fn get_mut(&mut self, number: AllocationNo) -> Option<&mut Allocation> {
        self.live.get_mut(&number).map(|allocation| &mut **allocation)
    }

    pub(crate) fn close(&mut self, number: AllocationNo, state: AllocationState, at: Instant) -> Option<Allocation> {
        let closed = self.live.remove(&number)?;
        let over = Over { allocation: number, tenant: closed.tenant, project: closed.project, state, at };
        if self.over.len() < OVER_KEPT {
            self.over.push(over);
        } else {
            self.over[self.next_over] = over;
        }
        self.next_over = (self.next_over + 1) % OVER_KEPT;
        Some(*closed)
    }

    pub(crate) fn over(&self, number: AllocationNo) -> Option<&Over> {
        self.over.iter().find(|over| over.allocation == number)
    }
}
