//! Lists: how things stand at a sequence, as far as a bill depends on them. They are encoded like records, with one
//! encoding for each list, and known by their SHA-256.

use crate::sorted::{Sorted, keyed};
use leasehold_model::body::{ChargePolicyPut, PolicyScope, RateCardPut, SharingPut, UnitPricePut, UsageUnitPut};
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::record::Hash;
use leasehold_model::{
    AllocationNo, AppInstanceNo, AppTypeNo, AttachmentNo, ClassNo, ClassSpec, Instant, LeaseNo, Month, Name, NodeNo,
    PoolNo, Priority, ProjectNo, Quanta, Residual, TenantNo, UnitNo, UnitQuantity, fields, words,
};
use sha2::{Digest, Sha256};

fn hash_of(list: &impl Field) -> Hash {
    Sha256::digest(list.to_bytes()).into()
}

/// A rate card. Its prices must be the last field of what contains them, so the card is encoded with its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card(pub RateCardPut);

impl Field for Card {
    fn put(&self, out: &mut Vec<u8>) {
        let bytes = self.0.to_bytes();
        put_varint(bytes.len() as u64, out);
        out.extend_from_slice(&bytes);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.count(usize::MAX)?;
        RateCardPut::from_bytes(r.take(n)?).map(Self)
    }
}

fields! {
    /// An app instance, as far as the price of its usage and the sharing of its cost depend on it.
    pub struct KnownApp {
        pub app_instance: AppInstanceNo,
        pub app_type: AppTypeNo,
        pub name: Name,
        /// The project that owns it.
        pub project: ProjectNo,
    }
}

fields! {
    /// What the bills of all tenants depend on.
    #[derive(Default)]
    pub struct CommonList {
        /// The hour from which on usage is posted.
        pub opened: Option<Instant>,
        pub classes: Sorted<(ClassNo, ClassSpec)>,
        pub pools: Sorted<(PoolNo, Name)>,
        pub cards: Sorted<Card>,
        pub policies: Sorted<ChargePolicyPut>,
        pub units: Sorted<UsageUnitPut>,
        pub unit_prices: Sorted<UnitPricePut>,
        pub app_types: Sorted<(AppTypeNo, Name)>,
        /// Those of the platform, which all tenants may use.
        pub app_instances: Sorted<KnownApp>,
        /// The sharing policies for all tenants, and those for app instances of the platform.
        pub sharing: Sorted<SharingPut>,
    }
}

impl CommonList {
    pub fn hash(&self) -> Hash {
        hash_of(self)
    }
}

words! {
    /// The life of a lease that is not closed.
    pub enum Phase {
        Held = 1 "held",
        /// It has ended, and its capacity is not free yet.
        TearingDown = 2 "tearing_down",
        /// Its teardown was not confirmed in time.
        Fenced = 3 "fenced",
    }
}

words! {
    /// How a lease ended, as far as a charge policy tells ends apart.
    pub enum Ending {
        /// It has not ended.
        None = 0 "none",
        Plain = 1 "plain",
        Preempted = 2 "preempted",
        /// Evicted for a request of its own tenant, which is charged in full.
        ForOwn = 3 "for_own",
        NodeLost = 4 "node_lost",
        /// Its work could not be started.
        FailedStart = 5 "failed_start",
    }
}

words! {
    /// How a lease was revoked.
    pub enum Revocation {
        None = 0 "none",
        Plain = 1 "plain",
        /// Evicted. It is charged as preempted even if its holder releases it.
        Preempted = 2 "preempted",
        /// Evicted under rules before version 4: not charged as preempted if its holder releases it.
        PreemptedBefore = 3 "preempted_before",
        /// Evicted for a request of its own tenant.
        ForOwn = 4 "for_own",
        NodeLost = 5 "node_lost",
    }
}

fields! {
    /// A lease that is not closed, with everything that its lines and its end depend on.
    pub struct OpenLease {
        pub lease: LeaseNo,
        /// Who pays, and who holds it.
        pub payer: ProjectNo,
        pub project: ProjectNo,
        pub pool: PoolNo,
        pub node: NodeNo,
        pub class: ClassNo,
        pub quanta: Quanta,
        pub priority: Priority,
        /// The priority by whose price it is charged.
        pub priced: Priority,
        pub tag: Option<Name>,
        pub app_instance: Option<AppInstanceNo>,
        pub attachment: Option<AttachmentNo>,
        pub control_plane: bool,
        pub from: Instant,
        /// The deadline while it is held; then the end of billing.
        pub to: Instant,
        pub phase: Phase,
        pub ending: Ending,
        pub revoked: Revocation,
        /// Whether it belongs to an attempt whose work could not be started.
        pub failed_start: bool,
        /// From when on its capacity counts as fenced.
        pub fenced_from: Option<Instant>,
        /// Its end before that was corrected because its node had been lost earlier.
        pub ended: Option<Instant>,
    }
}

fields! {
    /// A stretch of time in which a node was drained or lost.
    #[derive(Copy)]
    pub struct Outage { pub from: Instant, pub to: Instant }
}

fields! {
    /// A claimed node.
    pub struct OpenClaim {
        pub node: NodeNo,
        /// The sequence of the record that claimed it.
        pub claim: u64,
        pub project: ProjectNo,
        pub pool: PoolNo,
        pub tag: Option<Name>,
        pub from: Instant,
        pub capacity: Sorted<(ClassNo, Quanta)>,
        /// Since when it has been drained, and lost.
        pub drained: Option<Instant>,
        pub lost: Option<Instant>,
        /// Earlier outages since it was claimed, in the order of their ends.
        pub outages: Sorted<Outage>,
    }
}

fields! {
    /// The leases of the last attempt of an allocation that is not over: all of them are charged as failed at their start
    /// if it fails there.
    #[derive(Copy)]
    pub struct Attempt { pub allocation: AllocationNo, pub first_lease: LeaseNo, pub leases: u32 }
}

fields! {
    /// So much a project may use of a unit in a month, by which the cost of control planes may be shared.
    #[derive(Copy)]
    pub struct Limit {
        pub project: ProjectNo,
        /// That of one app instance, or of all.
        pub app_instance: Option<AppInstanceNo>,
        pub unit: UnitNo,
        pub hard: UnitQuantity,
    }
}

fields! {
    /// What a payer carries over to its next posting in a currency.
    #[derive(Copy)]
    pub struct Payer {
        pub project: ProjectNo,
        pub currency: Currency,
        /// The sequence of its last posting or correction.
        pub last: u64,
        pub residual: Residual,
    }
}

fields! {
    /// What the bills of one tenant depend on.
    pub struct TenantList {
        pub tenant: TenantNo,
        pub name: Option<Name>,
        /// The accounting tag of what is granted from now on.
        pub tag: Option<Name>,
        pub projects: Sorted<(ProjectNo, Name)>,
        pub app_instances: Sorted<KnownApp>,
        /// Tax rates, each from a month on.
        pub tax_rates: Sorted<(Month, Decimal)>,
        /// The sharing policies for this tenant and for its app instances.
        pub sharing: Sorted<SharingPut>,
        pub limits: Sorted<Limit>,
        pub leases: Sorted<OpenLease>,
        pub claims: Sorted<OpenClaim>,
        pub attempts: Sorted<Attempt>,
        pub payers: Sorted<Payer>,
    }
}

impl TenantList {
    /// That of a tenant about which nothing is recorded.
    pub fn empty(tenant: TenantNo) -> Self {
        Self {
            tenant,
            name: None,
            tag: None,
            projects: Sorted::default(),
            app_instances: Sorted::default(),
            tax_rates: Sorted::default(),
            sharing: Sorted::default(),
            limits: Sorted::default(),
            leases: Sorted::default(),
            claims: Sorted::default(),
            attempts: Sorted::default(),
            payers: Sorted::default(),
        }
    }
    pub fn hash(&self) -> Hash {
        hash_of(self)
    }
}

fields! {
    /// A node as it was when it was claimed. Neither its pool nor its capacity changes before it is released.
    pub struct ClaimedNode {
        /// The sequence of the record that claimed it.
        pub claim: u64,
        pub node: NodeNo,
        pub pool: PoolNo,
        pub capacity: Sorted<(ClassNo, Quanta)>,
    }
}

fields! {
    /// What a tenant's bill depends on and neither its own nor the common records of the range say: they are recorded
    /// together with what concerns others.
    #[derive(Default)]
    pub struct ClaimedNodes {
        /// The nodes that the tenant claimed in the range.
        pub nodes: Sorted<ClaimedNode>,
        /// The sequences of decisions to evict leases of the tenant for a request of its own. Those are charged in full.
        pub own_evictions: Sorted<u64>,
    }
}

impl ClaimedNodes {
    pub fn hash(&self) -> Hash {
        hash_of(self)
    }
}

keyed! {
    u64, u64, |item| *item;
    (ClassNo, ClassSpec), ClassNo, |item| item.0;
    (ClassNo, Quanta), ClassNo, |item| item.0;
    (PoolNo, Name), PoolNo, |item| item.0;
    (AppTypeNo, Name), AppTypeNo, |item| item.0;
    (ProjectNo, Name), ProjectNo, |item| item.0;
    (Month, Decimal), Month, |item| item.0;
    Card, u32, |item| item.0.card;
    ChargePolicyPut, u32, |item| item.policy;
    UsageUnitPut, UnitNo, |item| item.unit;
    UnitPricePut, u32, |item| item.price_no;
    SharingPut, PolicyScope, |item| item.of;
    Limit, (ProjectNo, Option<AppInstanceNo>, UnitNo), |item| (item.project, item.app_instance, item.unit);
    KnownApp, AppInstanceNo, |item| item.app_instance;
    OpenLease, LeaseNo, |item| item.lease;
    OpenClaim, NodeNo, |item| item.node;
    Outage, (Instant, Instant), |item| (item.to, item.from);
    Attempt, AllocationNo, |item| item.allocation;
    Payer, (ProjectNo, Currency), |item| (item.project, item.currency);
    ClaimedNode, (u64, NodeNo), |item| (item.claim, item.node);
}
