//! The naive model: a pass over all records that keeps everything, and a filter over it. Shares no code with the
//! books.

use leasehold_model::body::Body;
use leasehold_model::{AllocationNo, AllocationSpec, AllocationState, Instant, Reason, Record};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lease {
    pub(crate) tenant: u32,
    pub(crate) project: u32,
    pub(crate) user: Option<u32>,
    pub(crate) workload: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) node: u32,
    pub(crate) pool: u32,
    pub(crate) class: u16,
    pub(crate) priority: u8,
    pub(crate) quanta: u64,
    pub(crate) devices: u64,
    pub(crate) gang: u64,
    pub(crate) allocation: Option<u64>,
    pub(crate) app: Option<u64>,
    pub(crate) correlation: Option<u128>,
    pub(crate) labels: usize,
    pub(crate) flags: (bool, bool),
    pub(crate) sequence: u64,
    pub(crate) granted: Instant,
    pub(crate) expires: Instant,
    pub(crate) ended: Option<Instant>,
    pub(crate) closed: Option<Instant>,
    pub(crate) fenced: Option<Instant>,
    pub(crate) state: &'static str,
    /// The first record that announced its end, its stamp, and the reason of a revocation.
    pub(crate) ending: Option<(u64, Instant)>,
    pub(crate) revoked: Option<(Reason, u64)>,
}

impl Lease {
    pub(crate) fn is_held_within(&self, (from, to): (Instant, Instant)) -> bool {
        let end = self.ended.unwrap_or(self.expires);
        self.granted < to && (end > from || end == self.granted && self.granted >= from)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) sequence: u64,
    pub(crate) placed: Instant,
    pub(crate) leases: (u64, u32),
    pub(crate) ended: Option<Instant>,
    pub(crate) end: Option<String>,
    pub(crate) checkpoints: Vec<(Instant, u64, u64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Allocation {
    pub(crate) tenant: u32,
    pub(crate) project: u32,
    pub(crate) user: Option<u32>,
    pub(crate) workload: Option<String>,
    pub(crate) spec: AllocationSpec,
    pub(crate) state: AllocationState,
    pub(crate) submitted: Instant,
    pub(crate) ended: Option<Instant>,
    pub(crate) attempts: Vec<Attempt>,
    /// The record of its end, its stamp, the exit status and the bytes written.
    pub(crate) over: Option<(u64, Instant, Option<u32>, Option<u64>)>,
}

impl Allocation {
    pub(crate) fn exists_within(&self, (from, to): (Instant, Instant)) -> bool {
        let over_by = |end: Instant| end <= from && !(end == self.submitted && end >= from);
        self.submitted < to && !self.ended.is_some_and(over_by)
    }
}

#[derive(Default)]
pub(crate) struct Naive {
    pub(crate) leases: BTreeMap<u64, Lease>,
    pub(crate) allocations: BTreeMap<u64, Allocation>,
    tags: BTreeMap<u32, String>,
}

impl Naive {
    pub(crate) fn of(records: &[Record]) -> Self {
        let mut naive = Self::default();
        records.iter().for_each(|record| naive.take(record));
        naive
    }

    fn lease(&mut self, number: u64) -> &mut Lease {
        self.leases.get_mut(&number).expect("granted before")
    }

    fn ends(&mut self, number: u64, record: &Record, state: &'static str, closed: bool, says_so: bool) {
        let lease = self.lease(number);
        lease.ended = Some(record.effective_at.max(lease.granted).min(lease.expires));
        lease.state = if closed { "closed" } else { state };
        if closed {
            lease.closed = Some(record.stamp);
        }
        if says_so && lease.ending.is_none() {
            lease.ending = Some((record.sequence, record.stamp));
        }
    }

    fn closes(&mut self, number: u64, record: &Record) {
        let lease = self.lease(number);
        (lease.state, lease.closed) = ("closed", Some(record.stamp));
    }

    fn allocation(&mut self, number: AllocationNo) -> &mut Allocation {
        self.allocations.get_mut(&number.0).expect("submitted before")
    }

    fn attempt_ends(&mut self, number: AllocationNo, record: &Record, state: AllocationState, end: Option<String>) {
        let found = self.allocation(number);
        found.state = state;
        if let Some(last) = found.attempts.last_mut()
            && last.ended.is_none()
        {
            (last.ended, last.end) = (Some(record.effective_at), end);
        }
    }

    fn is_over(&mut self, number: AllocationNo, record: &Record, status: Option<u32>, bytes: Option<u64>) {
        let found = self.allocation(number);
        found.ended = Some(record.effective_at);
        found.over = Some((record.sequence, record.stamp, status, bytes));
    }

    fn take(&mut self, record: &Record) {
        let who = &record.identity;
        let workload = who.workload.as_ref().map(ToString::to_string);
        match &record.body {
            Body::TenantPut(put) => {
                match &put.settings.accounting_tag {
                    Some(tag) => self.tags.insert(put.tenant.0, tag.to_string()),
                    None => self.tags.remove(&put.tenant.0),
                };
            }
            Body::Granted(granted) => {
                for (place, member) in (0..).zip(&granted.members) {
                    let tenant = who.tenant.expect("a tenant").0;
                    let lease = Lease {
                        tenant,
                        project: who.project.expect("a project").0,
                        user: who.user.map(|user| user.0),
                        workload: workload.clone(),
                        tag: self.tags.get(&tenant).cloned(),
                        node: granted.node.0,
                        pool: granted.pool.0,
                        class: member.class.0,
                        priority: granted.priority as u8,
                        quanta: member.quanta.0,
                        devices: member.devices,
                        gang: granted.first_lease.0,
                        allocation: granted.allocation.map(|no| no.0),
                        app: granted.app_instance.map(|no| no.0),
                        correlation: granted.correlation,
                        labels: granted.labels.len(),
                        flags: (granted.sensitive, !granted.over_soft.is_empty()),
                        sequence: record.sequence,
                        granted: record.stamp,
                        expires: Instant(record.stamp.0 + granted.ttl.0),
                        ended: None,
                        closed: None,
                        fenced: None,
                        state: "active",
                        ending: None,
                        revoked: None,
                    };
                    self.leases.insert(granted.first_lease.0 + place, lease);
                }
            }
            Body::Renewed(renewed) => {
                renewed.renewals.iter().for_each(|one| self.lease(one.lease.0).expires = one.expires_at);
            }
            Body::Revoked(revoked) => {
                for number in &revoked.leases.0 {
                    let lease = self.lease(number.0);
                    lease.state = "revoking";
                    if lease.ending.is_none() {
                        lease.ending = Some((record.sequence, record.stamp));
                        lease.revoked = Some((record.reason.expect("a reason"), revoked.grace.0));
                    }
                }
            }
            Body::Released(one) => {
                one.leases.leases().for_each(|no| self.ends(no.0, record, "releasing", one.closed, true));
            }
            Body::Expired(one) => {
                one.leases.0.iter().for_each(|no| self.ends(no.0, record, "expired", one.closed, true));
            }
            Body::TeardownStarted(one) => {
                one.leases.0.iter().for_each(|no| self.ends(no.0, record, "tearing_down", one.closed, false));
            }
            Body::TornDown(one) => one.leases.0.iter().for_each(|no| self.closes(no.0, record)),
            Body::Unfenced(one) => one.leases.0.iter().for_each(|no| self.closes(no.0, record)),
            Body::Fenced(one) => {
                for number in &one.leases.0 {
                    let lease = self.lease(number.0);
                    (lease.state, lease.fenced) = ("fenced", Some(record.stamp));
                }
            }
            Body::EndsCorrected(one) => {
                for number in &one.leases.0 {
                    let lease = self.lease(number.0);
                    lease.ended = lease.ended.map(|ended| ended.min(record.effective_at).max(lease.granted));
                }
            }
            Body::AllocationSubmitted(one) => {
                let allocation = Allocation {
                    tenant: who.tenant.expect("a tenant").0,
                    project: who.project.expect("a project").0,
                    user: who.user.map(|user| user.0),
                    workload,
                    spec: one.spec.clone(),
                    state: AllocationState::Pending,
                    submitted: record.stamp,
                    ended: None,
                    attempts: Vec::new(),
                    over: None,
                };
                self.allocations.insert(record.sequence, allocation);
            }
            Body::AllocationPlaced(one) => {
                let found = self.allocation(one.allocation);
                found.state = if found.spec.staged { AllocationState::Staging } else { AllocationState::Running };
                found.attempts.push(Attempt {
                    number: one.attempt,
                    sequence: record.sequence,
                    placed: record.stamp,
                    leases: (one.first_lease.0, one.leases),
                    ended: None,
                    end: None,
                    checkpoints: Vec::new(),
                });
            }
            Body::AllocationStarted(one) => self.allocation(one.allocation).state = AllocationState::Running,
            Body::AllocationCheckpointing(one) => {
                self.allocation(one.allocation).state = AllocationState::Checkpointing;
            }
            Body::AllocationCheckpointed(one) => {
                let found = self.allocation(one.allocation);
                found.state = AllocationState::Running;
                let last = found.attempts.last_mut().expect("it runs");
                last.checkpoints.push((record.stamp, one.bytes, one.took.0));
            }
            Body::AllocationSuspended(one) => {
                self.attempt_ends(one.allocation, record, AllocationState::Suspended, Some(one.end.to_string()));
            }
            Body::AllocationRequeued(one) => {
                self.attempt_ends(one.allocation, record, AllocationState::Pending, Some(one.end.to_string()));
            }
            Body::AllocationCompleted(one) => {
                self.attempt_ends(one.allocation, record, AllocationState::Completed, None);
                self.is_over(one.allocation, record, one.exit_status, Some(one.storage_written));
            }
            Body::AllocationFailed(one) => {
                self.attempt_ends(one.allocation, record, AllocationState::Failed, Some(one.end.to_string()));
                self.is_over(one.allocation, record, one.exit_status, Some(one.storage_written));
            }
            Body::AllocationCancelled(one) => {
                self.attempt_ends(one.allocation, record, AllocationState::Cancelled, None);
                self.is_over(one.allocation, record, None, None);
            }
            Body::AllocationChanged(one) => {
                self.allocation(one.allocation).spec = one.spec.clone();
            }
            #[rustfmt::skip]
            Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_)
            | Body::ClassPut(_) | Body::Denied(_) | Body::Genesis(_) | Body::Started(_) | Body::Heartbeat(_)
            | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_) | Body::SettingsChanged(_) | Body::PoolPut(_)
            | Body::PoolDeleted(_) | Body::TenantDeleted(_) | Body::ProjectPut(_) | Body::ProjectDeleted(_)
            | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaPut(_) | Body::QuotaDeleted(_)
            | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!() | Body::RateCardPut(_) | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_)
            | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
            | Body::NodePut(_) | Body::NodeDeleted(_) | Body::NodeDrained(_) | Body::NodeResumed(_)
            | Body::NodeLost(_) | Body::NodeReturned(_) | Body::NodeCondition(_) | Body::AgentRegistered(_)
            | Body::AgentDetached(_) | Body::ActivityReported(_) | Body::Preempted(_) | Body::PreemptionDecided(_)
            | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenIssued(_) | Body::TokenRevoked(_) | Body::AllocationDenied(_) | Body::NodeEmpty(_)
            | Body::NodesClaimed(_) | Body::NodesReleased(_) | Body::NodeWiped(_) | Body::NodeQuarantined(_)
            | Body::QuarantineCleared(_) | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => {}
        }
    }
}
