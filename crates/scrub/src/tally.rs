//! Counting usage again, from the records of leases alone.
//!
//! What a record means for a lease is written down here a second time, on purpose: an error in the books that follows the
//! same rule twice would not be noticed (SEMANTICS 2, 4).

use crate::entries::{self, Accounts};
use leasehold_books::End;
use leasehold_meter::{QuantaNs, Window};
use leasehold_model::body::{Body, Granted};
use leasehold_model::codec::Field;
use leasehold_model::{
    AllocationNo, AttemptEnd, ClassNo, Instant, LeaseNo, NodeNo, ProjectNo, Reason, Record, TenantNo,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Leases that can be open at once; with more, the books are not compared. A hundred bytes each are half of the memory
/// that a scrub may use.
pub const OPEN_MAX: usize = 1_000_000;

/// Quanta × nanoseconds by who pays and for what.
pub(crate) type Sums = BTreeMap<(TenantNo, ClassNo), QuantaNs>;

/// The life of an open lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Held = 0,
    TearingDown = 1,
    Fenced = 2,
}

/// One lease as its records say. Small: there may be a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) from: Instant,
    /// The deadline while it is held; then the end of billing.
    pub(crate) to: Instant,
    pub(crate) quanta: u64,
    /// The sequence of its grant.
    pub(crate) granted: u64,
    /// A short hash of the fields that are compared only as a whole: [`others_of`].
    pub(crate) others: [u8; 8],
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) node: NodeNo,
    pub(crate) class: ClassNo,
    pub(crate) phase: Phase,
    pub(crate) end: End,
    /// How it will have ended, if it was revoked; [`End::Held`] if it was not.
    pub(crate) revoked: End,
    pub(crate) fenced: bool,
}

const _: () = assert!(size_of::<Lease>() <= 64, "a million open leases must fit the memory of a scrub");

/// A lease whose capacity became free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) number: LeaseNo,
    pub(crate) lease: Lease,
    pub(crate) at: Instant,
}

/// Why counting cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// The record contradicts those before it.
    Contradiction(&'static str),
    /// More leases are open than fit the memory.
    TooManyOpen,
}

/// What was counted up to a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) open: BTreeMap<u64, Lease>,
    /// Of the leases that have ended.
    pub(crate) ended: Sums,
    /// Leases that were closed.
    pub(crate) closed: u64,
    /// Leases that were closed and are billed to an earlier instant since, in the order of the records.
    pub(crate) corrected: Vec<(LeaseNo, Instant)>,
    /// Nodes with claims that had ended and are billed to an earlier instant since, and when the node was declared lost.
    pub(crate) corrected_claims: Vec<(NodeNo, (Instant, Instant))>,
    /// When nodes were declared lost, by the sequences of the records that said so.
    pub(crate) losses: BTreeMap<u64, Instant>,
    /// The last decision to evict, and the tenant that it was made for.
    pub(crate) evictor: Option<(u64, TenantNo)>,
    /// Who submitted the allocations that are not over, and the leases of their last attempts.
    pub(crate) allocations: BTreeMap<u64, Submitted>,
    /// The balances of the ledger.
    pub(crate) accounts: Accounts,
}

leasehold_model::fields! {
    /// An allocation that is not over.
    #[derive(Copy)]
    pub struct Submitted { pub tenant: TenantNo, pub first_lease: u64, pub leases: u32 }
}

/// The fields of a grant that are compared as one.
pub(crate) fn others_of(put: impl FnOnce(&mut Vec<u8>)) -> [u8; 8] {
    let mut bytes = Vec::with_capacity(128);
    put(&mut bytes);
    let hash = Sha256::digest(&bytes);
    hash[..8].try_into().expect("a hash has 32 bytes")
}

fn end_for(reason: Reason) -> End {
    match reason {
        Reason::Preempted { .. } => End::Preempted,
        Reason::NodeLost => End::NodeLost,
        Reason::Quota { .. } | Reason::Budget | Reason::Operator | Reason::Policy | Reason::DuplicateHolder => {
            End::Revoked
        }
    }
}

impl Tally {
    /// Counts a record; leases that it closes are added to `closed`.
    pub(crate) fn take(&mut self, record: &Record, closed: &mut Vec<Closed>) -> Result<(), Stuck> {
        match &record.body {
            leasehold_model::ledger_kinds!() => {
                entries::take(&mut self.accounts, record).map_err(Stuck::Contradiction)?;
            }
            Body::Granted(granted) => self.grant(record, granted)?,
            Body::Renewed(renewed) => {
                for renewal in &renewed.renewals {
                    self.lease(renewal.lease)?.to = renewal.expires_at;
                }
            }
            Body::Released(released) => {
                for lease in released.leases.leases() {
                    let end = match self.lease(lease)?.revoked {
                        // Within the grace of an eviction, or because the work could not be started.
                        end @ (End::ReleasedEvicted | End::FailedStart) => end,
                        End::EvictedByOwn => End::ReleasedByOwn,
                        _ => End::Released,
                    };
                    self.end(lease, record, end, released.closed, closed)?;
                }
            }
            Body::Expired(expired) => {
                for lease in &expired.leases.0 {
                    self.end(*lease, record, End::Expired, expired.closed, closed)?;
                }
            }
            Body::Revoked(revoked) => {
                for lease in &revoked.leases.0 {
                    // Since rules version 4 a victim is charged as preempted even if it is released before grace ends,
                    // and in full if it was evicted for its own tenant.
                    let charged = revoked.belongs_to.is_some();
                    let evictor = self.evictor;
                    let lease = self.lease(*lease)?;
                    lease.revoked = match record.reason {
                        Some(Reason::Preempted { by }) if charged && evictor == Some((by, lease.tenant)) => {
                            End::EvictedByOwn
                        }
                        Some(Reason::Preempted { .. }) if charged => End::ReleasedEvicted,
                        reason => reason.map_or(End::Revoked, end_for),
                    };
                }
            }
            Body::TeardownStarted(started) => {
                for lease in &started.leases.0 {
                    let revoked = match self.lease(*lease)?.revoked {
                        End::Held => End::Revoked,
                        End::ReleasedEvicted => End::Preempted,
                        end => end,
                    };
                    let end = match (record.reason.map(end_for), revoked) {
                        (Some(End::NodeLost), _) => End::NodeLost,
                        (_, End::EvictedByOwn) => End::EvictedByOwn,
                        (reason, revoked) => reason.unwrap_or(revoked),
                    };
                    self.end(*lease, record, end, started.closed, closed)?;
                }
            }
            Body::TornDown(torn) => self.free(&torn.leases.0, Phase::TearingDown, record.stamp, closed)?,
            Body::Unfenced(unfenced) => self.free(&unfenced.leases.0, Phase::Fenced, record.stamp, closed)?,
            Body::Fenced(fenced) => {
                for lease in &fenced.leases.0 {
                    let lease = self.lease(*lease)?;
                    (lease.phase, lease.fenced) = (Phase::Fenced, true);
                }
            }
            Body::EndsCorrected(ended) => {
                for lease in &ended.leases.0 {
                    self.correct(*lease, record.effective_at);
                }
            }
            Body::NodeLost(_) => drop(self.losses.insert(record.sequence, record.stamp)),
            Body::LossSettled(settled) => drop(self.losses.remove(&settled.loss)),
            Body::ClaimEndCorrected(ended) => {
                let lost = *self.losses.get(&ended.loss).ok_or(Stuck::Contradiction("a correction without a loss"))?;
                self.corrected_claims.push((ended.node, (record.effective_at, lost)));
            }
            Body::AllocationSubmitted(_) => {
                let tenant = record.identity.tenant.ok_or(Stuck::Contradiction("a submission without a tenant"))?;
                self.allocations.insert(record.sequence, Submitted { tenant, first_lease: 0, leases: 0 });
            }
            Body::AllocationPlaced(placed) => {
                if let Some(known) = self.allocations.get_mut(&placed.allocation.0) {
                    (known.first_lease, known.leases) = (placed.first_lease.0, placed.leases);
                }
            }
            Body::PreemptionDecided(decided) => self.note_evictor(record, decided.allocation),
            Body::ReservationTakenOver(taken) => self.note_evictor(record, taken.allocation),
            Body::AllocationFailed(failed) => {
                let known = self.allocations.remove(&failed.allocation.0);
                if let Some(of) = known.filter(|_| failed.end == AttemptEnd::FailedStart) {
                    self.fail_start(of);
                }
            }
            Body::AllocationCompleted(over) => drop(self.allocations.remove(&over.allocation.0)),
            Body::AllocationCancelled(over) => drop(self.allocations.remove(&over.allocation.0)),
            // These change neither who holds a lease nor for how long.
            leasehold_model::setup_kinds!()
            | Body::ActivityReported(_)
            | Body::NodePut(_)
            | Body::NodeDeleted(_)
            | Body::NodeDrained(_)
            | Body::NodeResumed(_)
            | Body::WindowPut(_)
            | Body::WindowStarted(_)
            | Body::WindowEnded(_)
            | Body::WindowAnnounced(_)
            | Body::NodeReturned(_)
            | Body::NodeCondition(_)
            | Body::AgentRegistered(_)
            | Body::AgentDetached(_)
            | Body::NodeEmpty(_)
            | Body::NodesClaimed(_)
            | Body::NodesReleased(_)
            | Body::NodeWiped(_)
            | Body::NodeQuarantined(_)
            | Body::QuarantineCleared(_)
            | Body::Denied(_)
            | Body::AllocationDenied(_)
            | Body::AllocationStarted(_)
            | Body::AllocationCheckpointing(_)
            | Body::AllocationCheckpointed(_)
            | Body::AllocationSuspended(_)
            | Body::AllocationRequeued(_)
            | Body::AllocationHoldSet(_)
            | Body::AllocationHoldCleared(_)
            | Body::AllocationChanged(_)
            | Body::Preempted(_)
            | Body::ReservationDropped(_)
            | Body::HeadProtected(_)
            | Body::Unknown { .. } => {}
        }
        Ok(())
    }

    fn note_evictor(&mut self, record: &Record, allocation: AllocationNo) {
        self.evictor = self.allocations.get(&allocation.0).map(|known| (record.sequence, known.tenant));
    }

    /// The leases of an attempt that could not be started, unless they were being evicted.
    fn fail_start(&mut self, of: Submitted) {
        for number in (of.first_lease..).take(of.leases as usize) {
            let lease = self.open.get_mut(&number);
            let evicted = |lease: &Lease| matches!(lease.revoked, End::ReleasedEvicted | End::EvictedByOwn);
            if let Some(lease) = lease.filter(|lease| !evicted(lease)) {
                lease.revoked = End::FailedStart;
            }
        }
    }

    /// A lease that has ended is billed to an instant at the most. One that is closed is not known here any more.
    fn correct(&mut self, number: LeaseNo, last_seen: Instant) {
        let Some(lease) = self.open.get_mut(&number.0) else {
            self.corrected.push((number, last_seen));
            return;
        };
        let before = held(lease, lease.to);
        lease.to = lease.to.min(last_seen).max(lease.from);
        let less = before - held(lease, lease.to);
        let key = (lease.tenant, lease.class);
        *self.ended.entry(key).or_default() -= less;
    }

    fn lease(&mut self, lease: LeaseNo) -> Result<&mut Lease, Stuck> {
        self.open.get_mut(&lease.0).ok_or(Stuck::Contradiction("it names a lease that is not open"))
    }

    fn grant(&mut self, record: &Record, granted: &Granted) -> Result<(), Stuck> {
        const NOBODY: Stuck = Stuck::Contradiction("a grant without a tenant and a project");
        let (tenant, project) = record.identity.tenant.zip(record.identity.project).ok_or(NOBODY)?;
        let deadline = record.stamp.checked_add(granted.ttl);
        let deadline = deadline.ok_or(Stuck::Contradiction("its deadline is beyond all time"))?;
        for (number, member) in (granted.first_lease.0..).zip(&granted.members) {
            let lease = Lease {
                from: record.stamp,
                to: deadline,
                quanta: member.quanta.0,
                granted: record.sequence,
                others: others_of(|out| {
                    record.identity.user.put(out);
                    granted.pool.put(out);
                    out.push(granted.priority as u8);
                    granted.allocation.put(out);
                    granted.app_instance.put(out);
                    record.identity.workload.put(out);
                    member.devices.put(out);
                    granted.sensitive.put(out);
                }),
                tenant,
                project,
                node: granted.node,
                class: member.class,
                phase: Phase::Held,
                end: End::Held,
                revoked: End::Held,
                fenced: false,
            };
            if self.open.insert(number, lease).is_some() {
                return Err(Stuck::Contradiction("it grants a lease that is open"));
            }
        }
        if self.open.len() > OPEN_MAX { Err(Stuck::TooManyOpen) } else { Ok(()) }
    }

    /// Billing ends at the effective instant, but not before the grant or after the deadline.
    fn end(
        &mut self,
        number: LeaseNo,
        record: &Record,
        end: End,
        closes: bool,
        closed: &mut Vec<Closed>,
    ) -> Result<(), Stuck> {
        let lease = self.lease(number)?;
        if lease.phase != Phase::Held {
            return Err(Stuck::Contradiction("it ends a lease that has ended"));
        }
        lease.to = record.effective_at.max(lease.from).min(lease.to);
        (lease.end, lease.phase) = (end, Phase::TearingDown);
        let (key, amount) = ((lease.tenant, lease.class), held(lease, lease.to));
        *self.ended.entry(key).or_default() += amount;
        if closes { self.free(&[number], Phase::TearingDown, record.stamp, closed) } else { Ok(()) }
    }

    fn free(&mut self, leases: &[LeaseNo], from: Phase, at: Instant, closed: &mut Vec<Closed>) -> Result<(), Stuck> {
        for number in leases {
            let lease = *self.lease(*number)?;
            if lease.phase != from {
                return Err(Stuck::Contradiction("it frees a lease in another phase"));
            }
            self.open.remove(&number.0);
            self.closed += 1;
            closed.push(Closed { number: *number, lease, at });
        }
        Ok(())
    }

    /// The sums up to an instant: of all leases that have ended, and of those that are held.
    pub(crate) fn sums(&self, until: Instant) -> Sums {
        let mut sums = self.ended.clone();
        for lease in self.open.values().filter(|lease| lease.phase == Phase::Held) {
            *sums.entry((lease.tenant, lease.class)).or_default() += held(lease, until);
        }
        sums
    }
}

/// What a lease held, up to an instant or its deadline.
fn held(lease: &Lease, until: Instant) -> QuantaNs {
    let window = Window::new(lease.from, lease.to).clip(Window::new(Instant(0), until));
    QuantaNs::from(lease.quanta) * QuantaNs::from(window.length().0)
}
