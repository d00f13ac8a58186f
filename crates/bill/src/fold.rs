//! The fold: reads records and keeps the lists.

use crate::common::Common;
use crate::concern::Concern;
use crate::kept::Kept;
use crate::kinds::{allocation_kinds, inventory_kinds, lease_kinds};
use crate::list::{Attempt, ClaimedNodes, CommonList, Ending, OpenClaim, Phase, TenantList};
use crate::outside::{Outside, Source};
use crate::reported::Work;
use crate::tenant::Tenant;
use leasehold_model::body::{AllocationPlaced, NodesClaimed};
use leasehold_model::{Body, Instant, LeaseNo, Month, NodeNo, Reason, Record, TenantNo};
use std::collections::BTreeMap;
use std::fmt;

/// Why a record cannot follow those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// A record about leases or claims does not say whose they are: it was made under rules before version 4.
    NoTenant,
    /// What contradicts the records before it.
    Says(&'static str),
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTenant => "it does not say whose leases it is about, as records before rules version 4 do not",
            Self::Says(what) => what,
        })
    }
}
impl std::error::Error for Contradiction {}

/// Calculations with months end a few years later.
const STAMP_MAX: Instant = Instant::from_secs(18_000_000_000);

/// How things stand after some records. A fold that returned an error must not be used any more.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    pub(crate) next: u64,
    pub(crate) last_stamp: Instant,
    pub(crate) common: Common,
    pub(crate) tenants: BTreeMap<TenantNo, Tenant>,
    /// Who has claimed which node.
    pub(crate) claimed: BTreeMap<NodeNo, TenantNo>,
    pub(crate) source: Source,
}

impl Fold {
    /// Before the first record of a journal. It has to take every record.
    pub fn new() -> Self {
        Self::default()
    }

    /// As lists say. It takes the common records and those of the tenants in the lists; what other records say about their
    /// claims is in `claimed_nodes`.
    pub fn from_lists(
        common: CommonList,
        tenants: BTreeMap<TenantNo, TenantList>,
        claimed_nodes: ClaimedNodes,
    ) -> Self {
        let mut fold = Self { common: Common::of(common), source: Source::Stated(claimed_nodes), ..Self::default() };
        fold.put_lists(tenants);
        fold
    }

    pub(crate) fn put_lists(&mut self, tenants: BTreeMap<TenantNo, TenantList>) {
        for (tenant, list) in tenants {
            self.claimed.extend(list.claims.iter().map(|claim| (claim.node, tenant)));
            self.tenants.insert(tenant, Tenant::of(list));
        }
    }

    /// Keeps what a tenant closes from now on, and what it is reported to use, so that [`Self::used`] can be asked. `start`
    /// is the first instant of the month: what was closed before it is not known.
    pub fn keep(&mut self, tenant: TenantNo, start: Instant) {
        self.tenants.entry(tenant).or_default().kept = Some(Box::new(Kept::since(start)));
    }

    /// Whether a record since then changed what something of the tenant costs that had ended before.
    pub(crate) fn has_unknown(&self, tenant: TenantNo) -> bool {
        self.tenants.get(&tenant).and_then(|of| of.kept.as_ref()).is_some_and(|kept| kept.unknown)
    }

    /// What the projects of a tenant used of app instances in a month, since the start. It has to keep what the tenant
    /// closes.
    pub(crate) fn work(&self, tenant: TenantNo, month: Month) -> Work {
        let Some(kept) = self.tenants.get(&tenant).and_then(|of| of.kept.as_ref()) else { return Work::new() };
        kept.reported.work.iter().filter(|((of, ..), _)| *of == month).map(|(of, sum)| (*of, *sum)).collect()
    }

    /// The sequence after that of the last record.
    pub fn next_sequence(&self) -> u64 {
        self.next
    }
    pub fn last_stamp(&self) -> Instant {
        self.last_stamp
    }
    pub fn common_list(&self) -> CommonList {
        self.common.list()
    }
    /// The list of a tenant; an empty one if nothing is recorded about it.
    pub fn tenant_list(&self, tenant: TenantNo) -> TenantList {
        self.tenants.get(&tenant).map_or_else(|| TenantList::empty(tenant), |found| found.list(tenant))
    }
    /// The tenants about which something is recorded.
    pub fn tenants(&self) -> impl Iterator<Item = TenantNo> + '_ {
        self.tenants.keys().copied()
    }
    /// How many leases are not closed.
    pub fn open_leases(&self) -> usize {
        self.tenants.values().map(|tenant| tenant.leases.len()).sum()
    }

    /// What the last record told a tenant that no record of its own tells.
    pub(crate) fn take_outside(&mut self) -> Vec<(TenantNo, Outside)> {
        self.source.take_outside()
    }

    fn check_order(&mut self, record: &Record) -> Result<(), Contradiction> {
        if record.sequence < self.next {
            return Err(Contradiction::Says("its sequence is not after that of the record before it"));
        }
        if record.stamp < self.last_stamp {
            return Err(Contradiction::Says("it is stamped before the record before it"));
        }
        if record.stamp > STAMP_MAX {
            return Err(Contradiction::Says("it is stamped centuries from now"));
        }
        (self.next, self.last_stamp) = (record.sequence.saturating_add(1), record.stamp);
        Ok(())
    }

    /// Reads a record after the cut of a month. It can change what was posted and how that is taxed, but not what was used:
    /// leases and claims are left as they were.
    pub(crate) fn take_after_cut(&mut self, record: &Record) -> Result<Concern, Contradiction> {
        self.check_order(record)?;
        let concern = self.concern(record);
        if let Concern::Tenant(tenant) = concern {
            let of = self.tenants.entry(tenant).or_default();
            of.kept = None;
            // Costs are shared by the policies at the cut.
            if !matches!(record.body, Body::SharingPut(_)) {
                of.set_up(&record.body);
            }
            of.book(record, &self.common)?;
        }
        Ok(concern)
    }

    /// Reads a common record. What tenants have set for an app or a runtime goes with it.
    pub(crate) fn take_common(&mut self, record: &Record) {
        self.common.take(&record.body);
        if let Body::AppInstanceDeleted(gone) = &record.body {
            self.tenants.values_mut().for_each(|of| of.drop_limits_on(gone.app_instance));
        } else if let Body::AppTypeDeleted(gone) = &record.body {
            self.tenants.values_mut().for_each(|of| of.sharing.retain(|scope, _| scope.app_type != gone.app_type));
        }
    }

    /// Reads the next record.
    pub fn take(&mut self, record: &Record) -> Result<Concern, Contradiction> {
        self.check_order(record)?;
        let concern = self.concern(record);
        self.source.note(record, concern);
        match concern {
            Concern::Common => self.take_common(record),
            Concern::Tenant(tenant) => self.take_of(tenant, record)?,
            Concern::Nobody => check_nobody(&record.body)?,
        }
        Ok(concern)
    }

    /// A record of a tenant.
    fn take_of(&mut self, tenant: TenantNo, record: &Record) -> Result<(), Contradiction> {
        let stamp = record.stamp;
        let of = self.tenants.entry(tenant).or_default();
        match &record.body {
            Body::Granted(granted) => of.grant(record, granted)?,
            Body::Renewed(renewed) => {
                renewed.renewals.iter().try_for_each(|renewal| of.renew(renewal.lease, renewal.expires_at))?;
            }
            Body::Released(released) => {
                released.leases.leases().try_for_each(|lease| of.release(lease, record, released.closed))?;
            }
            Body::Expired(expired) => {
                let mut leases = expired.leases.0.iter();
                leases.try_for_each(|lease| of.end(*lease, record, Ending::Plain, expired.closed))?;
            }
            Body::Revoked(revoked) => {
                let by = if let Some(Reason::Preempted { by }) = record.reason { Some(by) } else { None };
                let for_own = by.is_some_and(|by| self.source.is_for_own(by, tenant));
                of.revoke(record, revoked, for_own)?;
            }
            Body::TeardownStarted(started) => of.tear_down(record, started)?,
            Body::TornDown(torn) => close_all(of, &torn.leases.0, Phase::TearingDown, stamp)?,
            Body::Unfenced(unfenced) => close_all(of, &unfenced.leases.0, Phase::Fenced, stamp)?,
            Body::Fenced(fenced) => {
                fenced.leases.0.iter().try_for_each(|lease| of.fence(*lease, record.effective_at))?;
            }
            Body::EndsCorrected(ended) => {
                ended.leases.0.iter().try_for_each(|lease| of.correct_end(*lease, record.effective_at))?;
            }
            Body::ClaimEndCorrected(ended) => {
                of.kept.iter_mut().for_each(|kept| kept.correct_claim(ended.claim, ended.node, record.effective_at));
            }
            Body::AllocationPlaced(placed) => drop(of.attempts.insert(placed.allocation.0, attempt(placed))),
            Body::AllocationFailed(failed) => of.fail(failed),
            Body::AllocationCompleted(over) => drop(of.attempts.remove(&over.allocation.0)),
            Body::AllocationCancelled(over) => drop(of.attempts.remove(&over.allocation.0)),
            Body::NodesClaimed(claimed) => self.claim(tenant, record, claimed)?,
            Body::NodesReleased(released) => {
                for node in &released.nodes.0 {
                    of.release_claim(*node, stamp)?;
                    self.claimed.remove(node);
                }
            }
            Body::NodeDrained(drained) => of.drain(drained.node, Some(stamp), stamp),
            Body::NodeResumed(resumed) => of.drain(resumed.node, None, stamp),
            Body::NodeLost(lost) => of.lose(lost.node, Some(lost.last_seen), stamp),
            Body::NodeReturned(returned) => of.lose(returned.node, None, stamp),
            leasehold_model::setup_kinds!() => of.set_up(&record.body),
            leasehold_model::ledger_kinds!() => of.book(record, &self.common)?,
            allocation_kinds!() | inventory_kinds!() => {}
        }
        Ok(())
    }

    fn claim(&mut self, tenant: TenantNo, record: &Record, claimed: &NodesClaimed) -> Result<(), Contradiction> {
        let project = record.identity.project.ok_or(Contradiction::Says("a claim without a project"))?;
        for node in &claimed.nodes.0 {
            let found = self.source.claimed_node(tenant, record.sequence, *node);
            let found = found.ok_or(Contradiction::Says("it claims a node of unknown capacity"))?;
            if self.claimed.insert(*node, tenant).is_some() {
                return Err(Contradiction::Says("it claims a node that is claimed"));
            }
            let of = self.tenants.entry(tenant).or_default();
            let claim = OpenClaim {
                node: *node,
                claim: record.sequence,
                project,
                pool: found.pool,
                tag: of.tag.clone(),
                from: record.stamp,
                capacity: found.capacity,
                drained: None,
                lost: None,
                outages: crate::sorted::Sorted::default(),
            };
            of.claims.insert(*node, claim);
        }
        Ok(())
    }
}

/// A record without a tenant changes no list. One about leases has to have one.
fn check_nobody(body: &Body) -> Result<(), Contradiction> {
    match body {
        lease_kinds!() => Err(Contradiction::NoTenant),
        leasehold_model::setup_kinds!()
        | leasehold_model::ledger_kinds!()
        | allocation_kinds!()
        | inventory_kinds!()
        | Body::NodeDrained(_)
        | Body::NodeResumed(_)
        | Body::NodeLost(_)
        | Body::NodeReturned(_) => Ok(()),
    }
}

fn close_all(of: &mut Tenant, leases: &[LeaseNo], phase: Phase, at: Instant) -> Result<(), Contradiction> {
    leases.iter().try_for_each(|lease| of.close(*lease, phase, at))
}

fn attempt(placed: &AllocationPlaced) -> Attempt {
    Attempt { allocation: placed.allocation, first_lease: placed.first_lease, leases: placed.leases }
}
