//! A short journal that a person can follow: what a small cluster does in its first minutes.

use crate::samples::{NEW_YEAR, activity, class_spec, granted, key_rotation, leases, name, whole_tenant};
use crate::sealing::seal;
use leasehold_model::TenantSettings;
use leasehold_model::body::*;
use leasehold_model::policy::TeardownCause;
use leasehold_model::rate::{Charge, Charges, Currency, Decimal, Prices};
use leasehold_model::*;
use leasehold_view::Directory;
use serde_json::Value;
use smallvec::smallvec;

fn at(secs: u64) -> Instant {
    NEW_YEAR.saturating_add(Span::from_secs(secs))
}

fn of_physics(mut record: Record) -> Record {
    record.identity.tenant = Some(TenantNo(1));
    record.identity.project = Some(ProjectNo(2));
    record.identity.user = Some(UserNo(3));
    record.identity.token = Some(TokenNo(4));
    record
}

/// Everything that exists before the first lease.
fn beginnings() -> Vec<Body> {
    vec![
        Genesis {
            format_version: 1,
            origin: name("cluster-1.example.org"),
            public_key: [0x11; 32],
            software: name("leasehold 0.1.0"),
        }
        .into(),
        ClassPut { class: ClassNo(0), spec: class_spec() }.into(),
        ClassPut {
            class: ClassNo(1),
            spec: ClassSpec {
                name: name("mem-dram"),
                kind: ResourceKind::Mem,
                tier: Some(name("dram")),
                quanta_per_unit: 1024,
                premium: false,
            },
        }
        .into(),
        PoolPut {
            pool: PoolNo(1),
            name: name("training"),
            strategy: Strategy::BinPack,
            ttl_max: PerPriority([Some(Span::from_secs(3600)), None, None]),
            lifetime_max: PerPriority::default(),
            grace: Some(Span::from_secs(60)),
        }
        .into(),
        TenantPut {
            tenant: TenantNo(1),
            settings: TenantSettings {
                accounting_tag: Some(name("cost-4711")),
                max_priority: Priority::Guaranteed,
                ..TenantSettings::named(name("physics"))
            },
        }
        .into(),
        ProjectPut { project: ProjectNo(2), tenant: TenantNo(1), name: name("lattice") }.into(),
        UserPut { user: UserNo(3), tenant: TenantNo(1), name: name("ada") }.into(),
        NodePut {
            node: NodeNo(300),
            name: name("gpu-300"),
            pool: PoolNo(1),
            rack: Some(name("r7")),
            zone: Some(name("z1")),
            labels: vec![(name("driver"), name("570"))],
            teardown: TeardownMode::Confirmed,
            capacity: vec![(ClassNo(0), Quanta(56)), (ClassNo(1), Quanta(1_048_576))],
        }
        .into(),
        QuotaPut {
            quota: QuotaNo(5),
            scope: QuotaScope { class: Some(ClassNo(0)), ..whole_tenant() },
            measure: Measure::Quanta,
            limit: LimitKind::Burst { limit: 28, burst_limit: 56, burst_ttl: Span::from_secs(600) },
            temporary: None,
            evict_own_lower: false,
        }
        .into(),
    ]
}

/// The life of a gang of two leases, and a few neighbours.
fn leasing() -> Vec<Record> {
    let new = |secs, body: Body| Record::new(0, at(secs), body);
    let gang = Granted {
        members: smallvec![
            Member { class: ClassNo(0), quanta: Quanta(14), devices: 0b1010 },
            Member { class: ClassNo(1), quanta: Quanta(81_920), devices: 0 },
        ],
        ..granted()
    };
    let mut grant = of_physics(new(10, gang.into()));
    grant.identity.workload = Some(name("train-7b"));
    grant.dra_claim_id = Some(name("claim-9"));
    let key = leasehold_model::Key::new(b"6f1c2f9e-97f2-4c0b-9f0e-6f8d4f1f7a11").expect("a key");
    grant.idempotency = Some(Idempotency { owner: Some(TenantNo(1)), key, payload: [0xab; 16] });

    let denied = Denied {
        pool: None,
        asks: smallvec![(ClassNo(0), Quanta(49))],
        ttl: Span::from_secs(60),
        priority: Priority::Standard,
        rules_version: 1,
        cause: DenyCause::Quota { quota: QuotaNo(5), used: 14, requested: 49, limit: 56 },
        particulars: Particulars::default(),
    };
    let renewal = |lease, activity| Renewal { lease: LeaseNo(lease), expires_at: at(7270), activity };
    let renewed = Renewed { renewals: smallvec![renewal(42, Some(activity())), renewal(43, None)] };
    let mut revoked =
        new(100, Revoked { leases: leases(&[42, 43]), grace: Span::from_secs(60), belongs_to: None }.into());
    revoked.identity.tenant = Some(TenantNo(1));
    revoked.reason = Some(Reason::Operator);
    let started =
        TeardownStarted { leases: leases(&[42, 43]), cause: TeardownCause::Ready, closed: false, belongs_to: None };
    let mut torn_down = new(135, TornDown { node: NodeNo(300), leases: leases(&[42, 43]), belongs_to: None }.into());
    torn_down.identity.tenant = Some(TenantNo(1));
    let bare_node = NodePut {
        node: NodeNo(301),
        name: name("gpu-301"),
        pool: PoolNo(1),
        rack: None,
        zone: None,
        labels: vec![],
        teardown: TeardownMode::Immediate,
        capacity: vec![(ClassNo(0), Quanta(7))],
    };
    let second = Granted {
        first_lease: LeaseNo(44),
        node: NodeNo(301),
        ttl: Span::from_secs(60),
        members: smallvec![Member { class: ClassNo(0), quanta: Quanta(3), devices: 1 }],
        ..granted()
    };
    // Noticed a second and a half late, and closed at once: the node has no agent.
    let mut expired = Record::new(
        0,
        Instant(at(261).0 + 500_000_000),
        Expired { leases: leases(&[44]), closed: true, belongs_to: None },
    );
    expired.effective_at = at(260);
    expired.identity.tenant = Some(TenantNo(1));
    vec![
        grant,
        of_physics(new(20, denied.into())),
        of_physics(new(70, renewed.into())),
        revoked,
        of_physics(new(130, started.into())),
        torn_down,
        new(150, bare_node.into()),
        of_physics(new(200, second.into())),
        expired,
    ]
}

/// An agent takes over a node and finds it hot; the tenant gets a token for its nightly jobs and loses it again.
fn agents_and_tokens() -> Vec<Record> {
    let new = |secs, body: Body| Record::new(0, at(secs), body);
    let registered =
        AgentRegistered { node: NodeNo(300), generation: 2, instance: 0x7f3c_9f0e_6f8d_4f1f_97f2_4c0b_9f0e_0001 };
    let hot = NodeCondition { node: NodeNo(300), load: Level::High, errors: Level::Normal, throttled: true };
    let scope =
        TokenScope { tenant: Some(TenantNo(1)), project: Some(ProjectNo(2)), user: None, ..TokenScope::default() };
    let issued = TokenIssued {
        token: TokenNo(5),
        name: name("nightly jobs"),
        hash: [0x5e; 32],
        role: Role::ProjectMember,
        scope,
        expires_at: Some(at(86_400)),
    };
    let of_tenant = |mut record: Record| {
        record.identity.tenant = Some(TenantNo(1));
        record
    };
    vec![
        new(270, registered.into()),
        new(275, hot.into()),
        new(280, AgentDetached { node: NodeNo(300) }.into()),
        of_tenant(new(285, issued.into())),
        of_tenant(new(290, TokenRevoked { token: TokenNo(5) }.into())),
    ]
}

/// Dearer from the next day on, and nothing for what was evicted or never started.
fn money() -> Vec<Record> {
    let mut prices = Prices::default_card();
    prices.classes = vec![(ClassNo(0), Decimal(12_500_000))];
    prices.tiers = vec![(name("dram"), Decimal(1_250_000_000))];
    let charges =
        Charges { preempted: Charge::MinusLast(Span::from_secs(60)), failed_start: Charge::None, ..Charges::DEFAULT };
    let from = at(86_400);
    let card = RateCardPut { card: 0, pool: Some(PoolNo(1)), from, prices };
    vec![
        Record::new(0, at(292), card),
        Record::new(0, at(294), ChargePolicyPut { policy: 0, from, charges }),
        Record::new(0, at(296), RateCardDeleted { card: 0 }),
    ]
}

/// A gang of two waits for its victims, runs, is evicted in turn after a checkpoint, and runs to its end.
fn allocations() -> Vec<Record> {
    let new = |secs, body: Body| of_physics(Record::new(0, at(secs), body));
    let own = |secs, body: Body| Record::new(0, at(secs), body);
    let budgets = Budgets { gpu_hours: Some(5000), fair_share: Some(250), ..Budgets::NONE };
    let spec = AllocationSpec {
        pool: Some(PoolNo(1)),
        replicas: 2,
        walltime: Some(Span::from_secs(7200)),
        labels: vec![(name("driver"), name("570"))],
        apart: Some(Domain::Node),
        ..AllocationSpec::of(smallvec![(ClassNo(0), Quanta(14))])
    };
    let first = u64::try_from(beginnings().len() + leasing().len() + agents_and_tokens().len() + money().len());
    let allocation = AllocationNo(first.expect("a short story") + 1);
    let place = |node| ReplicaPlacement {
        node: NodeNo(node),
        members: smallvec![Member { class: ClassNo(0), quanta: Quanta(14), devices: 0b11 }],
    };
    let decided = PreemptionDecided {
        allocation: AllocationNo(allocation.0 + 8),
        priority: Priority::Guaranteed,
        rules_version: 1,
        places: vec![place(300)],
        victims: leases(&[45, 46]),
        headroom: None,
    };
    let placed = |attempt, first_lease| AllocationPlaced {
        allocation,
        attempt,
        first_lease: LeaseNo(first_lease),
        leases: 2,
        rules_version: 1,
    };
    let mut revoked =
        own(299, Revoked { leases: leases(&[45, 46]), grace: Span::from_secs(60), belongs_to: None }.into());
    revoked.identity.tenant = Some(TenantNo(1));
    revoked.reason = Some(Reason::Preempted { by: allocation.0 + 6 });
    let mut records = vec![
        own(297, BudgetsPut { tenant: TenantNo(1), budgets }.into()),
        new(298, AllocationSubmitted { spec, when_over_quota: None, node: None }.into()),
        new(298, placed(1, 45).into()),
    ];
    for (lease, node) in [(45, 300), (46, 301)] {
        let members = smallvec![Member { class: ClassNo(0), quanta: Quanta(14), devices: 0b11 }];
        let (first_lease, node, allocation) = (LeaseNo(lease), NodeNo(node), Some(allocation));
        records.push(new(298, Granted { first_lease, node, allocation, members, ..granted() }.into()));
    }
    records.extend([
        new(298, AllocationCheckpointing { allocation }.into()),
        new(299, AllocationCheckpointed { allocation, bytes: 48 << 30, took: Span::from_secs(1) }.into()),
        own(299, decided.into()),
        revoked,
        new(
            299,
            TeardownStarted { leases: leases(&[45, 46]), cause: TeardownCause::Ready, closed: false, belongs_to: None }
                .into(),
        ),
        new(299, TornDown { node: NodeNo(301), leases: leases(&[46]), belongs_to: None }.into()),
        new(299, TornDown { node: NodeNo(300), leases: leases(&[45]), belongs_to: None }.into()),
        new(299, AllocationSuspended { allocation, end: AttemptEnd::Preempted }.into()),
        new(299, AllocationCompleted { allocation, exit_status: Some(0), storage_written: 9 << 30 }.into()),
    ]);
    records
}

/// What the project may cost, and what that stands against.
fn ceilings() -> Vec<Record> {
    let (project, app_instance) = (ProjectNo(2), None);
    let amount = Amount(50_000_000_000);
    let put = CeilingPut { project, app_instance, amount, currency: Currency::DEFAULT, mode: CeilingMode::Hard };
    let cause = DenyCause::Ceiling {
        app_instance,
        spent: Amount(20_300_000_000),
        reserved: Amount::ZERO,
        requested: Amount(72_000_000_000),
        amount,
    };
    let spec = AllocationSpec {
        pool: Some(PoolNo(1)),
        walltime: Some(Span::from_secs(3600)),
        app_instance,
        ..AllocationSpec::of(smallvec![(ClassNo(0), Quanta(14))])
    };
    let denied = AllocationDenied { spec, rules_version: 2, cause, when_over_quota: None };
    vec![
        Record::new(0, at(361), put),
        of_physics(Record::new(0, at(362), denied)),
        Record::new(0, at(363), CeilingDeleted { project, app_instance }),
    ]
}

/// A node that somebody claims, gives back, and that cannot be wiped.
fn claims() -> Vec<Record> {
    let nodes = || Nodes(vec![NodeNo(300)]);
    let quarantined = NodeQuarantined { node: NodeNo(300), cause: QuarantineCause::WipeTimedOut, claim: None };
    vec![
        of_physics(Record::new(0, at(370), NodesClaimed { nodes: nodes(), until: None })),
        of_physics(Record::new(0, at(380), NodesReleased { nodes: nodes(), claim: None })),
        of_physics(Record::new(0, at(2180), quarantined)),
        Record::new(0, at(2400), QuarantineCleared { node: NodeNo(300) }),
    ]
}

pub(crate) fn records() -> Vec<Record> {
    let mut records: Vec<Record> = beginnings().into_iter().map(|body| Record::new(0, NEW_YEAR, body)).collect();
    records.extend(leasing());
    records.extend(agents_and_tokens());
    records.extend(money());
    records.extend(allocations());
    records.push(Record { stamp: at(300), effective_at: at(300), ..key_rotation(0) });
    records.push(Record::new(0, at(360), Body::Unknown { kind: 4_000, bytes: vec![0xca, 0xfe] }));
    records.extend(ceilings());
    records.extend(claims());
    for (sequence, record) in (0u64..).zip(&mut records) {
        record.sequence = sequence;
    }
    records
}

/// Shows records that a journal holds, to a directory that may know something already.
pub(crate) fn show_to(directory: &mut Directory, records: &[Record]) -> Vec<Value> {
    let batch = seal(records);
    let batch = RawBatch::read(&batch).expect("a batch that was just sealed");
    let frames = batch.records().map(|frame| frame.expect("a good frame"));
    frames.map(|frame| directory.show(&frame, &frame.hash()).expect("a record that was just encoded")).collect()
}

pub(crate) fn show(records: &[Record]) -> Vec<Value> {
    show_to(&mut Directory::new(), records)
}
