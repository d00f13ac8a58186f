//! Usage by tenant, computed exactly from the records of the journal.
//!
//! A lease is billed over [granted, end) (SEMANTICS 2); a lease that is still held counts up to the last stamp. Usage
//! is split into before and during this run at the last stamp before the run.

use crate::problem::Problem;
use leasehold_journal::{ReadOnly, Scanned};
use leasehold_model::{Body, ClassNo, ClassSpec, Instant, LeaseNo, Name, NodeNo, Quanta, Record, TenantNo};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Quanta × nanoseconds.
pub(crate) type QuantaNs = u128;

struct Held {
    tenant: TenantNo,
    node: NodeNo,
    class: ClassNo,
    quanta: Quanta,
    granted_at: Instant,
}

/// A value before this run, and one for this run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Split<T> {
    pub(crate) before: T,
    pub(crate) run: T,
}

impl<T> Split<T> {
    fn part(&mut self, in_this_run: bool) -> &mut T {
        if in_this_run { &mut self.run } else { &mut self.before }
    }
}

impl Split<QuantaNs> {
    pub(crate) fn all(self) -> QuantaNs {
        self.before + self.run
    }
    fn add(&mut self, more: Self) {
        self.before += more.before;
        self.run += more.run;
    }
}

/// Counts of one tenant's requests and leases.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) granted: u64,
    pub(crate) denied: u64,
    pub(crate) over_soft: u64,
    pub(crate) expired: u64,
    pub(crate) revoked: u64,
    pub(crate) fenced: u64,
}

impl Counts {
    pub(crate) fn of(self) -> [u64; 6] {
        [self.granted, self.over_soft, self.denied, self.expired, self.revoked, self.fenced]
    }
}

#[derive(Default)]
pub(crate) struct Usage {
    held: BTreeMap<LeaseNo, Held>,
    by_tenant: BTreeMap<(TenantNo, ClassNo), Split<QuantaNs>>,
    by_node: BTreeMap<(NodeNo, ClassNo), Split<QuantaNs>>,
    pub(crate) tenants: BTreeMap<TenantNo, (Name, Split<Counts>)>,
    pub(crate) classes: BTreeMap<ClassNo, ClassSpec>,
    /// Records by kind.
    pub(crate) kinds: BTreeMap<&'static str, Split<u64>>,
    pub(crate) first_stamp: Option<Instant>,
    /// The last stamp before this run.
    split_at: Instant,
    last_stamp: Instant,
}

impl Usage {
    /// Reads the whole journal; this run starts with record `first`.
    pub(crate) fn of(journal: &ReadOnly, first: u64) -> Result<(Self, Scanned), Problem> {
        let mut usage = Self::default();
        let mut undecodable = None;
        let scanned = journal.scan_from_genesis(&mut |entry| match entry.raw.decode() {
            Ok(record) => {
                usage.add(&record, record.sequence >= first);
                ControlFlow::Continue(())
            }
            Err(error) => {
                undecodable = Some(format!("record {}: {error}", entry.sequence));
                ControlFlow::Break(())
            }
        });
        let scanned = scanned.map_err(|error| Problem::told(error.code(), &error))?;
        if let Some(what) = undecodable {
            return Err(Problem::not_verified("record_undecodable", what));
        }
        let now = usage.last_stamp;
        let open: Vec<LeaseNo> = usage.held.keys().copied().collect();
        usage.end(open.into_iter(), now);
        Ok((usage, scanned))
    }

    fn add(&mut self, record: &Record, in_this_run: bool) {
        self.first_stamp.get_or_insert(record.stamp);
        self.last_stamp = record.stamp;
        if !in_this_run {
            self.split_at = record.stamp;
        }
        *self.kinds.entry(record.body.word()).or_default().part(in_this_run) += 1;
        let count = |usage: &mut Self, change: &dyn Fn(&mut Counts)| {
            let tenant = record.identity.tenant.and_then(|tenant| usage.tenants.get_mut(&tenant));
            if let Some((_, counts)) = tenant {
                change(counts.part(in_this_run));
            }
        };
        let tenant = record.identity.tenant;
        match &record.body {
            Body::ClassPut(put) => {
                self.classes.insert(put.class, put.spec.clone());
            }
            Body::TenantPut(put) => {
                let counts = self.tenants.get(&put.tenant).map(|(_, counts)| *counts).unwrap_or_default();
                self.tenants.insert(put.tenant, (put.settings.name.clone(), counts));
            }
            Body::Granted(granted) => {
                let Some(tenant) = tenant else { return };
                for (number, member) in (granted.first_lease.0..).zip(&granted.members) {
                    let (class, quanta) = (member.class, member.quanta);
                    let held = Held { tenant, node: granted.node, class, quanta, granted_at: record.stamp };
                    self.held.insert(LeaseNo(number), held);
                }
                count(self, &|counts| {
                    counts.granted += 1;
                    counts.over_soft += u64::from(!granted.over_soft.is_empty());
                });
            }
            Body::Denied(_) => count(self, &|counts| counts.denied += 1),
            Body::Released(released) => self.end(released.leases.leases(), record.effective_at),
            Body::Expired(expired) => {
                count(self, &|counts| counts.expired += expired.leases.0.len() as u64);
                self.end(expired.leases.0.iter().copied(), record.effective_at);
            }
            Body::Revoked(revoked) => count(self, &|counts| counts.revoked += revoked.leases.0.len() as u64),
            Body::TeardownStarted(started) => self.end(started.leases.0.iter().copied(), record.effective_at),
            Body::Fenced(fenced) => count(self, &|counts| counts.fenced += fenced.leases.0.len() as u64),
            // The report does not count these.
            #[rustfmt::skip]
            Body::Genesis(_) | Body::Started(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_)
            | Body::SettingsChanged(_) | Body::PoolPut(_) | Body::PoolDeleted(_) | Body::TenantDeleted(_)
            | Body::ProjectPut(_) | Body::ProjectDeleted(_) | Body::UserPut(_) | Body::UserDeleted(_)
            | Body::QuotaPut(_) | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!() | Body::RateCardPut(_)
            | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_) | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
            | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::NodePut(_) | Body::NodeDeleted(_)
            | Body::NodeDrained(_) | Body::NodeResumed(_) | Body::NodeLost(_) | Body::NodeReturned(_)
            | Body::NodeCondition(_) | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_) | Body::Renewed(_)
            | Body::TornDown(_) | Body::Unfenced(_) | Body::ActivityReported(_) | Body::Preempted(_)
            | Body::PreemptionDecided(_) | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenIssued(_) | Body::TokenRevoked(_)
            | Body::AllocationSubmitted(_) | Body::AllocationDenied(_) | Body::AllocationPlaced(_)
            | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_) | Body::AllocationCheckpointed(_)
            | Body::AllocationSuspended(_) | Body::AllocationRequeued(_) | Body::AllocationCompleted(_)
            | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_) | Body::NodesClaimed(_)
            | Body::NodesReleased(_) | Body::NodeWiped(_) | Body::NodeQuarantined(_) | Body::QuarantineCleared(_)
            | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => {}
        }
    }

    fn end(&mut self, leases: impl Iterator<Item = LeaseNo>, at: Instant) {
        for lease in leases {
            let Some(held) = self.held.remove(&lease) else { continue };
            let until = |at: Instant| u128::from(held.quanta.0) * u128::from(at.since(held.granted_at).0);
            let before = until(at.min(self.split_at));
            let amount = Split { before, run: until(at) - before };
            self.by_tenant.entry((held.tenant, held.class)).or_default().add(amount);
            self.by_node.entry((held.node, held.class)).or_default().add(amount);
        }
    }

    pub(crate) fn of_tenant(&self, tenant: TenantNo, class: ClassNo) -> Split<QuantaNs> {
        self.by_tenant.get(&(tenant, class)).copied().unwrap_or_default()
    }

    /// The total of a class; asserts that the sums over tenants and over nodes are equal (DESIGN, invariant 4).
    pub(crate) fn total(&self, class: ClassNo) -> Split<QuantaNs> {
        let by_tenant = sum(self.by_tenant.iter().filter(|((_, c), _)| *c == class).map(|(_, amount)| *amount));
        let by_node = sum(self.by_node.iter().filter(|((_, c), _)| *c == class).map(|(_, amount)| *amount));
        assert_eq!(
            (by_tenant.before, by_tenant.run),
            (by_node.before, by_node.run),
            "usage by tenants and by nodes has the same total"
        );
        by_tenant
    }
}

fn sum(amounts: impl Iterator<Item = Split<QuantaNs>>) -> Split<QuantaNs> {
    amounts.fold(Split::default(), |mut sum, amount| {
        sum.add(amount);
        sum
    })
}
