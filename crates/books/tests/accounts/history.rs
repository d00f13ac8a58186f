//! Histories that are written as records without an engine, with rare timings.

use leasehold_journal::Keys;
use leasehold_model::body::{
    BelongsTo, Body, ClassPut, Correlation, Expired, Fenced, Genesis, Granted, Leases, Member, NodeDrained, NodeLost,
    NodePut, NodeResumed, NodeReturned, NodeWiped, NodesClaimed, NodesReleased, Released, Renewal, Renewed, Reported,
    ReportedLeases, Revoked, TeardownStarted, TenantPut, TornDown, Unfenced,
};
use leasehold_model::policy::TeardownCause;
use leasehold_model::rate::{Charge, ChargePolicyPut, Charges, Currency, Decimal, Prices, RateCardPut};
use leasehold_model::{
    Activity, AllocationNo, AppInstanceNo, AttachmentNo, ClassNo, ClassSpec, FORMAT_VERSION, Identity, Instant,
    LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo, Quanta, Reason, Record, ResourceKind, Span, TeardownMode,
    TenantNo, TenantSettings, UserNo,
};
use smallvec::SmallVec;

pub(crate) fn keys() -> Keys {
    Keys::new("sim.example", &[9; 32]).expect("a valid origin")
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// The fields of a grant, with defaults.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) tenant: u32,
    pub(crate) project: u32,
    pub(crate) user: Option<u32>,
    pub(crate) workload: Option<&'static str>,
    pub(crate) pool: u32,
    pub(crate) node: u32,
    pub(crate) members: Vec<(u16, u64)>,
    pub(crate) priority: Priority,
    pub(crate) allocation: Option<u64>,
    pub(crate) app_instance: Option<u64>,
    /// The project that lends it, and pays for it.
    pub(crate) source: Option<u32>,
    pub(crate) ttl: Span,
}

pub(crate) const GPU: u16 = 0;
pub(crate) const MEM: u16 = 1;

/// One GPU for tenant and project 0 on node 0 in pool 0, for an hour.
pub(crate) fn gpu() -> Grant {
    Grant {
        tenant: 0,
        project: 0,
        user: None,
        workload: None,
        pool: 0,
        node: 0,
        members: vec![(GPU, 7)],
        priority: Priority::Standard,
        allocation: None,
        app_instance: None,
        source: None,
        ttl: Span::from_secs(3600),
    }
}

pub(crate) struct History {
    pub(crate) records: Vec<Record>,
    pub(crate) now: Instant,
    next_lease: u64,
}

impl History {
    /// GPUs in sevenths with a tier, memory in MiB, cores in thousandths; three tenants, two with a tag.
    pub(crate) fn begin(now: Instant) -> Self {
        let mut history = Self { records: Vec::new(), now, next_lease: 0 };
        history.push(Genesis {
            format_version: FORMAT_VERSION,
            origin: name("sim.example"),
            public_key: keys().public_keys()[0],
            software: name("written by hand"),
        });
        let classes = [
            ("gpu", ResourceKind::Gpu, Some("h100"), 7),
            ("mem", ResourceKind::Mem, None, 1024),
            ("cpu", ResourceKind::Cpu, None, 1000),
        ];
        for (class, (text, kind, tier, quanta_per_unit)) in (0..).zip(classes) {
            let spec =
                ClassSpec { name: name(text), kind, tier: tier.map(name), quanta_per_unit, premium: class == GPU };
            history.push(ClassPut { class: ClassNo(class), spec });
        }
        for (tenant, tag) in (0..).zip([Some("cc-1"), Some("cc-2"), None]) {
            history.tenant(tenant, tag);
        }
        history
    }

    pub(crate) fn push(&mut self, body: impl Into<Body>) -> &mut Record {
        self.records.push(Record::new(self.records.len() as u64, self.now, body));
        self.records.last_mut().expect("just pushed")
    }

    pub(crate) fn at_secs(&mut self, secs: u64) {
        assert!(self.now <= Instant::from_secs(secs), "stamps never go backwards");
        self.now = Instant::from_secs(secs);
    }
    pub(crate) fn pass(&mut self, span: Span) {
        self.now = self.now.saturating_add(span);
    }

    pub(crate) fn tenant(&mut self, tenant: u32, tag: Option<&str>) {
        self.push(TenantPut {
            tenant: TenantNo(tenant),
            settings: TenantSettings {
                accounting_tag: tag.map(name),
                max_priority: Priority::Guaranteed,
                ..TenantSettings::named(name(&format!("tenant {tenant}")))
            },
        });
    }

    pub(crate) fn node(&mut self, node: u32, pool: u32, capacity: &[(u16, u64)]) {
        let capacity = capacity.iter().map(|(class, quanta)| (ClassNo(*class), Quanta(*quanta))).collect();
        self.push(NodePut {
            node: NodeNo(node),
            name: name(&format!("node {node}")),
            pool: PoolNo(pool),
            rack: None,
            zone: None,
            labels: Vec::new(),
            teardown: TeardownMode::Confirmed,
            capacity,
        });
    }

    /// Appends a grant; returns the number of its first lease.
    pub(crate) fn grant(&mut self, grant: &Grant) -> u64 {
        let first = self.next_lease;
        self.next_lease += grant.members.len() as u64;
        let member =
            |(class, quanta): &(u16, u64)| Member { class: ClassNo(*class), quanta: Quanta(*quanta), devices: 0 };
        let record = self.push(Granted {
            first_lease: LeaseNo(first),
            node: NodeNo(grant.node),
            pool: PoolNo(grant.pool),
            ttl: grant.ttl,
            priority: grant.priority,
            rules_version: 1,
            members: grant.members.iter().map(member).collect(),
            sensitive: false,
            control_plane: false,
            correlation: None,
            allocation: grant.allocation.map(AllocationNo),
            app_instance: grant.app_instance.map(AppInstanceNo),
            attachment: grant.source.map(|source| AttachmentNo(u64::from(source))),
            source_project: grant.source.map(ProjectNo),
            over_soft: SmallVec::new(),
            capped_by: None,
            profile: None,
            weighing: None,
            labels: Vec::new(),
            capped_by_window: None,
        });
        record.identity = Identity {
            tenant: Some(TenantNo(grant.tenant)),
            project: Some(ProjectNo(grant.project)),
            user: grant.user.map(UserNo),
            workload: grant.workload.map(name),
            token: None,
        };
        first
    }

    pub(crate) fn renew(&mut self, lease: u64, expires_at: Instant) {
        let renewal = Renewal { lease: LeaseNo(lease), expires_at, activity: None };
        self.push(Renewed { renewals: SmallVec::from_buf([renewal]) });
    }

    pub(crate) fn release(&mut self, lease: u64, closed: bool, activity: Option<Activity>) {
        let leases = ReportedLeases(SmallVec::from_buf([Reported { lease: LeaseNo(lease), activity }]));
        self.push(Released { leases, closed });
    }

    pub(crate) fn expire(&mut self, leases: &[u64], deadline: Instant, closed: bool) {
        self.push(Expired { leases: numbers(leases), closed, belongs_to: None }).effective_at = deadline;
    }

    pub(crate) fn revoke(&mut self, lease: u64, reason: Reason) {
        let belongs_to = BelongsTo { allocation: None, correlation: Correlation::Derived(0) };
        self.revoke_as(lease, reason, Some(belongs_to));
    }

    /// A revocation as rules before version 4 wrote it.
    pub(crate) fn revoke_by_old_rules(&mut self, lease: u64, reason: Reason) {
        self.revoke_as(lease, reason, None);
    }

    fn revoke_as(&mut self, lease: u64, reason: Reason, belongs_to: Option<BelongsTo>) {
        self.push(Revoked { leases: numbers(&[lease]), grace: Span::from_secs(30), belongs_to }).reason = Some(reason);
    }

    /// Starts the teardown of a revoked lease.
    pub(crate) fn ready(&mut self, lease: u64, closed: bool) {
        self.push(TeardownStarted { leases: numbers(&[lease]), cause: TeardownCause::Ready, closed, belongs_to: None });
    }

    pub(crate) fn torn_down(&mut self, node: u32, lease: u64) {
        self.push(TornDown { node: NodeNo(node), leases: numbers(&[lease]), belongs_to: None });
    }
    /// Fences a lease whose teardown was due at an instant.
    pub(crate) fn fence(&mut self, lease: u64, due: Instant) {
        self.push(Fenced { leases: numbers(&[lease]), belongs_to: None }).effective_at = due;
    }
    pub(crate) fn unfence(&mut self, lease: u64) {
        self.push(Unfenced { leases: numbers(&[lease]), belongs_to: None, reason: None });
    }
    pub(crate) fn drain(&mut self, node: u32, drained: bool) {
        match drained {
            true => self.push(NodeDrained { node: NodeNo(node), reason: None }),
            false => self.push(NodeResumed { node: NodeNo(node), reason: None }),
        };
    }

    /// Loses a node that was last seen a while ago; its leases end then.
    pub(crate) fn lose(&mut self, node: u32, last_seen: Instant, leases: &[u64], closed: bool) {
        self.push(NodeLost { node: NodeNo(node), last_seen });
        if !leases.is_empty() {
            let teardown =
                TeardownStarted { leases: numbers(leases), cause: TeardownCause::GraceEnded, closed, belongs_to: None };
            let record = self.push(teardown);
            (record.effective_at, record.reason) = (last_seen, Some(Reason::NodeLost));
        }
    }
    pub(crate) fn find(&mut self, node: u32) {
        self.push(NodeReturned { node: NodeNo(node) });
    }

    /// A user of a tenant claims a node for sensitive work.
    pub(crate) fn claim(&mut self, node: u32, tenant: u32, user: u32) {
        let nodes = [NodeNo(node)].into_iter().collect();
        self.push(NodesClaimed { nodes, until: None }).identity = Identity {
            tenant: Some(TenantNo(tenant)),
            project: Some(ProjectNo(tenant * 10)),
            user: Some(UserNo(user)),
            ..Identity::default()
        };
    }
    pub(crate) fn unclaim(&mut self, node: u32) {
        self.push(NodesReleased { nodes: [NodeNo(node)].into_iter().collect(), claim: None });
    }
    pub(crate) fn wiped(&mut self, node: u32) {
        self.push(NodeWiped { node: NodeNo(node), claim: None });
    }

    pub(crate) fn card(&mut self, card: u32, pool: Option<u32>, from: Instant, prices: Prices) {
        self.push(RateCardPut { card, pool: pool.map(PoolNo), from, prices });
    }

    pub(crate) fn policy(&mut self, policy: u32, from: Instant, charges: Charges) {
        self.push(ChargePolicyPut { policy, from, charges });
    }
}

pub(crate) fn numbers(leases: &[u64]) -> Leases {
    leases.iter().map(|lease| LeaseNo(*lease)).collect()
}

/// A card in some currency, with these billionths for a GPU-second, a factor on its tier and one class of its own.
pub(crate) fn prices(currency: &str, gpu: u64) -> Prices {
    let mut prices = Prices::default_card();
    prices.currency = Currency::new(currency).expect("three letters");
    prices.kinds.0[0] = Decimal(gpu);
    prices.classes = vec![(ClassNo(MEM), Decimal(gpu / 3 + 1))];
    prices.tiers = vec![(name("h100"), Decimal(1_234_567_891))];
    prices
}

pub(crate) fn charges(preempted: Charge, fenced: Charge, node_lost: Charge) -> Charges {
    Charges { preempted, fenced, node_lost, failed_start: Charge::Full }
}
