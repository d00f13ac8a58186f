//! One lease with its billed interval, from the records.

use super::Accounts;
use super::capacity::NodeEvent;
use leasehold_model::body::{Body, Granted};
use leasehold_model::{
    AllocationNo, AppInstanceNo, AttachmentNo, AttemptEnd, ClassNo, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority,
    ProjectNo, Reason, Record, TenantNo, UserNo,
};

/// The number of idle capacity, which has no lease.
pub(super) const NO_LEASE: LeaseNo = LeaseNo(u64::MAX);

/// What leases can be grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Tenant,
    /// The one that pays.
    Project,
    User,
    Pool,
    Node,
    Priority,
    Tag,
    Allocation,
    AppInstance,
    Workload,
    HeldAs,
    ControlPlane,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is still held.
    None,
    Plain,
    Preempted,
    /// Evicted for a request of its own tenant, which is charged in full (SEMANTICS 11).
    PreemptedForOwn,
    NodeLost,
    /// Its work could not be started.
    FailedStart,
}

/// One lease.
#[derive(Clone, Debug)]
pub struct Tenure {
    pub lease: LeaseNo,
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub user: Option<UserNo>,
    pub pool: PoolNo,
    pub node: NodeNo,
    pub class: ClassNo,
    pub priority: Priority,
    /// The priority by which it is priced.
    pub(super) priced_as: Priority,
    pub tag: Option<Name>,
    pub allocation: Option<AllocationNo>,
    pub app_instance: Option<AppInstanceNo>,
    /// Who lends it, and pays for it.
    pub(super) source_project: Option<ProjectNo>,
    pub(super) attachment: Option<AttachmentNo>,
    pub workload: Option<Name>,
    pub control_plane: bool,
    pub quanta: u64,
    /// The devices as a bit set.
    pub(super) devices: u64,
    /// Half-open; `to` is the deadline while it is held.
    pub from: Instant,
    pub to: Instant,
    /// Its end, if that was corrected because its node had been lost before it.
    pub(super) ended: Option<Instant>,
    pub ending: Ending,
    pub(super) is_over: bool,
    /// Its teardown deadline, if that passed.
    pub(super) fence_due: Option<Instant>,
    /// When its capacity became free.
    pub(super) closed_at: Option<Instant>,
    /// Whether the record of its end also closed it.
    pub(super) at_once: bool,
    pub(super) revoked: Ending,
    /// Whether it counts as preempted although its holder releases it.
    pub(super) charged_as_preempted: bool,
    /// Whether it belongs to an attempt whose work could not be started.
    pub(super) failed_to_start: bool,
}

impl Tenure {
    /// An empty lease, to be filled in.
    pub(super) fn new(
        lease: LeaseNo,
        (tenant, project): (TenantNo, ProjectNo),
        (pool, node, class): (PoolNo, NodeNo, ClassNo),
        (from, to): (Instant, Instant),
    ) -> Self {
        Self {
            lease,
            tenant,
            project,
            user: None,
            pool,
            node,
            class,
            priority: Priority::Standard,
            priced_as: Priority::Standard,
            tag: None,
            allocation: None,
            app_instance: None,
            source_project: None,
            attachment: None,
            workload: None,
            control_plane: false,
            quanta: 0,
            devices: 0,
            from,
            to,
            ended: None,
            ending: Ending::None,
            is_over: false,
            fence_due: None,
            closed_at: None,
            at_once: false,
            revoked: Ending::Plain,
            charged_as_preempted: false,
            failed_to_start: false,
        }
    }
    /// The project to which its usage and its cost belong (SEMANTICS 13).
    pub fn payer(&self) -> ProjectNo {
        self.source_project.unwrap_or(self.project)
    }
    pub fn value(&self, by: By) -> Option<String> {
        match by {
            By::Tenant => Some(self.tenant.0.to_string()),
            By::Project => Some(self.payer().0.to_string()),
            By::User => self.user.map(|user| user.0.to_string()),
            By::Pool => Some(self.pool.0.to_string()),
            By::Node => Some(self.node.0.to_string()),
            By::Priority => Some(self.priority.to_string()),
            By::Tag => self.tag.as_ref().map(Name::to_string),
            By::Allocation => self.allocation.map(|no| no.0.to_string()),
            By::AppInstance => self.app_instance.map(|no| no.0.to_string()),
            By::Workload => self.workload.as_ref().map(Name::to_string),
            By::HeldAs => Some(if self.lease == NO_LEASE { "idle_claim" } else { "lease" }.to_owned()),
            By::ControlPlane => Some(u8::from(self.control_plane).to_string()),
        }
    }
    pub fn was_fenced(&self) -> bool {
        self.fence_due.is_some()
    }
    pub fn is_closed(&self) -> bool {
        self.closed_at.is_some()
    }
}

fn ending(reason: Reason) -> Ending {
    match reason {
        Reason::Preempted { .. } => Ending::Preempted,
        Reason::NodeLost => Ending::NodeLost,
        _ => Ending::Plain,
    }
}

impl Accounts {
    pub(super) fn take(&mut self, record: &Record) {
        self.reported.take(record);
        let stamp = record.stamp;
        self.last_stamp = stamp;
        match &record.body {
            Body::ClassPut(put) => drop(self.classes.insert(put.class, put.spec.clone())),
            Body::TenantPut(put) => {
                self.tags.remove(&put.tenant);
                self.tags.extend(put.settings.accounting_tag.clone().map(|tag| (put.tenant, tag)));
            }
            Body::RateCardPut(card) => {
                self.cards.retain(|old| old.card != card.card);
                self.cards.push(card.clone());
            }
            Body::RateCardDeleted(gone) => self.cards.retain(|card| card.card != gone.card),
            Body::ChargePolicyPut(policy) => {
                self.policies.retain(|old| old.policy != policy.policy);
                self.policies.push(policy.clone());
            }
            Body::NodePut(put) => self.nodes.push((stamp, put.node, NodeEvent::Put(put.clone()))),
            Body::NodeDeleted(gone) => self.nodes.push((stamp, gone.node, NodeEvent::Deleted)),
            Body::NodeDrained(n) => self.nodes.push((stamp, n.node, NodeEvent::Drained(true))),
            Body::NodeResumed(n) => self.nodes.push((stamp, n.node, NodeEvent::Drained(false))),
            Body::WindowStarted(begun) => {
                self.nodes.extend(begun.nodes.0.iter().map(|node| (stamp, *node, NodeEvent::InWindow(true))));
            }
            Body::WindowEnded(ended) => {
                let drained = ended.nodes.0.iter().filter(|_| ended.begun);
                self.nodes.extend(drained.map(|node| (stamp, *node, NodeEvent::InWindow(false))));
            }
            Body::NodeLost(n) => self.nodes.push((stamp, n.node, NodeEvent::Lost(Some(n.last_seen)))),
            Body::NodeReturned(n) => self.nodes.push((stamp, n.node, NodeEvent::Lost(None))),
            Body::NodesClaimed(claimed) => claimed.nodes.0.iter().for_each(|node| self.claimed(record, *node)),
            Body::NodesReleased(released) => {
                for node in &released.nodes.0 {
                    self.unclaimed(stamp, *node);
                    self.nodes.push((stamp, *node, NodeEvent::Unclean(true)));
                }
            }
            Body::NodeWiped(wiped) => self.nodes.push((stamp, wiped.node, NodeEvent::Unclean(false))),
            Body::QuarantineCleared(clean) => self.nodes.push((stamp, clean.node, NodeEvent::Unclean(false))),
            Body::Granted(granted) => self.grant(record, granted),
            Body::Renewed(renewed) => {
                renewed.renewals.iter().for_each(|renewal| self.tenure(renewal.lease).to = renewal.expires_at);
            }
            Body::Released(released) => {
                for lease in released.leases.leases() {
                    // SEMANTICS 11: a preempted lease that is released within its grace is charged as preempted.
                    let tenure = self.tenure(lease);
                    let why = if tenure.charged_as_preempted { tenure.revoked } else { Ending::Plain };
                    self.end(lease, record, why, released.closed);
                }
            }
            Body::Expired(expired) => {
                expired.leases.0.iter().for_each(|lease| self.end(*lease, record, Ending::Plain, expired.closed));
            }
            Body::Revoked(revoked) => {
                let why = record.reason.map_or(Ending::Plain, ending);
                // Since rules version 4, which also seals whose leases they are.
                let since_4 = revoked.belongs_to.is_some();
                for lease in &revoked.leases.0 {
                    let of_own = since_4 && self.is_for_own_tenant(record.reason, self.tenures[lease].tenant);
                    let why = if of_own { Ending::PreemptedForOwn } else { why };
                    let preempted = matches!(why, Ending::Preempted | Ending::PreemptedForOwn);
                    let tenure = self.tenure(*lease);
                    (tenure.revoked, tenure.charged_as_preempted) = (why, since_4 && preempted);
                }
            }
            Body::TeardownStarted(started) => {
                for lease in &started.leases.0 {
                    let revoked = self.tenure(*lease).revoked;
                    let why = match record.reason.map(ending) {
                        None | Some(Ending::Preempted) if revoked == Ending::PreemptedForOwn => revoked,
                        said => said.unwrap_or(revoked),
                    };
                    self.end(*lease, record, why, started.closed);
                }
            }
            Body::TornDown(torn) => {
                torn.leases.0.iter().for_each(|lease| self.tenure(*lease).closed_at = Some(stamp));
            }
            Body::Unfenced(clean) => {
                clean.leases.0.iter().for_each(|lease| self.tenure(*lease).closed_at = Some(stamp));
            }
            Body::Fenced(fenced) => {
                for lease in &fenced.leases.0 {
                    self.tenure(*lease).fence_due = Some(record.effective_at);
                }
            }
            Body::EndsCorrected(corrected) => {
                for lease in &corrected.leases.0 {
                    let tenure = self.tenure(*lease);
                    tenure.ended.get_or_insert(tenure.to);
                    tenure.to = tenure.to.min(record.effective_at.max(tenure.from));
                }
            }
            Body::ClaimEndCorrected(corrected) => {
                self.claim_corrected(corrected.claim, corrected.node, record.effective_at);
            }
            Body::AllocationSubmitted(_) => {
                let tenant = record.identity.tenant.expect("an allocation has a tenant");
                self.tenants.insert(AllocationNo(record.sequence), tenant);
            }
            Body::PreemptionDecided(decided) => drop(self.decisions.insert(record.sequence, decided.allocation)),
            Body::ReservationTakenOver(taken) => drop(self.decisions.insert(record.sequence, taken.allocation)),
            Body::AllocationPlaced(placed) => {
                let last = LeaseNo(placed.first_lease.0 + u64::from(placed.leases));
                self.attempts.insert(placed.allocation, placed.first_lease..last);
            }
            Body::AllocationFailed(failed) if failed.end == AttemptEnd::FailedStart => {
                self.failed_to_start(failed.allocation);
            }
            // These do not change leases.
            #[rustfmt::skip]
            Body::Genesis(_) | Body::Started(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_)
            | Body::SettingsChanged(_) | Body::PoolPut(_) | Body::PoolDeleted(_) | Body::TenantDeleted(_)
            | Body::ProjectPut(_) | Body::ProjectDeleted(_) | Body::UserPut(_) | Body::UserDeleted(_)
            | Body::QuotaPut(_) | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowAnnounced(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!() | Body::BudgetsPut(_)
            | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::PlacementChanged(_) | Body::SensitiveChanged(_)
            | Body::NodeCondition(_) | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::Denied(_)
            | Body::ActivityReported(_) | Body::Preempted(_) | Body::ReservationDropped(_) | Body::TokenIssued(_) | Body::TokenRevoked(_)
            | Body::AllocationDenied(_) | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_) | Body::AllocationCheckpointed(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_) | Body::HeadProtected(_) | Body::NodeEmpty(_)
            | Body::AllocationSuspended(_) | Body::AllocationRequeued(_) | Body::AllocationCompleted(_)
            | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_) | Body::NodeQuarantined(_)
            | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => {}
        }
    }

    fn tenure(&mut self, lease: LeaseNo) -> &mut Tenure {
        self.tenures.get_mut(&lease).expect("a lease that was granted")
    }

    fn grant(&mut self, record: &Record, granted: &Granted) {
        let tenant = record.identity.tenant.expect("a grant has a tenant");
        // On a claimed node, whatever the priority is (SEMANTICS 11).
        let as_guaranteed = granted.sensitive && granted.rules_version >= 4;
        for (i, member) in (0..).zip(&granted.members) {
            let project = record.identity.project.expect("a grant has a project");
            let place = (granted.pool, granted.node, member.class);
            let held = (record.stamp, Instant(record.stamp.0 + granted.ttl.0));
            let tenure = Tenure {
                user: record.identity.user,
                priority: granted.priority,
                priced_as: if as_guaranteed { Priority::Guaranteed } else { granted.priority },
                tag: self.tags.get(&tenant).cloned(),
                allocation: granted.allocation,
                app_instance: granted.app_instance,
                source_project: granted.source_project,
                attachment: granted.attachment,
                workload: record.identity.workload.clone(),
                control_plane: granted.control_plane,
                quanta: member.quanta.0,
                devices: member.devices,
                ..Tenure::new(LeaseNo(granted.first_lease.0 + i), (tenant, project), place, held)
            };
            self.tenures.insert(tenure.lease, tenure);
        }
    }

    /// Whether the decision that a reason names was made for a request of this tenant.
    fn is_for_own_tenant(&self, reason: Option<Reason>, tenant: TenantNo) -> bool {
        let Some(Reason::Preempted { by }) = reason else { return false };
        self.decisions.get(&by).and_then(|allocation| self.tenants.get(allocation)) == Some(&tenant)
    }

    /// All leases of the attempt, also those that have ended, unless they were evicted or their node was lost.
    fn failed_to_start(&mut self, allocation: AllocationNo) {
        let attempt = self.attempts.get(&allocation).cloned().expect("an attempt");
        for (_, tenure) in self.tenures.range_mut(attempt) {
            if matches!(tenure.revoked, Ending::Preempted | Ending::PreemptedForOwn) {
                continue;
            }
            tenure.failed_to_start = true;
            if tenure.is_over && tenure.ending == Ending::Plain {
                tenure.ending = Ending::FailedStart;
            }
        }
    }

    /// Billing ends at the effective instant, but not before the grant and not after the deadline.
    fn end(&mut self, lease: LeaseNo, record: &Record, ending: Ending, closed: bool) {
        let tenure = self.tenure(lease);
        assert!(!tenure.is_over, "{lease} ends once");
        tenure.to = record.effective_at.min(tenure.to).max(tenure.from);
        tenure.ending = if tenure.failed_to_start { Ending::FailedStart } else { ending };
        tenure.is_over = true;
        tenure.closed_at = closed.then_some(record.stamp);
        tenure.at_once = closed;
    }
}
