//! One fixed record of every kind, and of every variant inside the kinds.

use leasehold_model::TenantSettings;
use leasehold_model::body::*;
use leasehold_model::limits::{FACTOR_MAX, RATE_MAX};
use leasehold_model::policy::TeardownCause;
use leasehold_model::rate::{BILLION, Charge, Charges, Currency, Decimal, Factors, PerKind, Period, Periods, Prices};
use leasehold_model::*;
use smallvec::smallvec;

#[path = "samples_apps.rs"]
mod samples_apps;
#[path = "samples_later.rs"]
mod samples_later;
#[path = "samples_ledger.rs"]
mod samples_ledger;
#[path = "samples_queue.rs"]
mod samples_queue;
#[path = "samples_sinks.rs"]
mod samples_sinks;
pub(crate) use samples_apps::tenant_with_contact;

/// 2026-01-01T00:00:00Z.
pub(crate) const NEW_YEAR: Instant = Instant::from_secs(1_767_225_600);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

pub(crate) fn leases(numbers: &[u64]) -> Leases {
    numbers.iter().map(|n| LeaseNo(*n)).collect()
}

pub(crate) fn activity() -> Activity {
    Activity {
        covered: Span::from_secs(60),
        busy: 2_500_000_000,
        active: Span(59_999_999_999),
        waiting: [Span::from_millis(250), Span::ZERO, Span(1_500), Span::ZERO, Span::from_secs(1)],
    }
}

pub(crate) fn class_spec() -> ClassSpec {
    ClassSpec {
        name: name("gpu-h100"),
        kind: ResourceKind::Gpu,
        tier: Some(name("h100")),
        quanta_per_unit: 7,
        premium: true,
    }
}

pub(crate) fn granted() -> Granted {
    Granted {
        first_lease: LeaseNo(42),
        node: NodeNo(300),
        pool: PoolNo(1),
        ttl: Span::from_secs(3600),
        priority: Priority::Standard,
        rules_version: 1,
        members: smallvec![Member { class: ClassNo(0), quanta: Quanta(14), devices: 0b1010 }],
        sensitive: false,
        control_plane: false,
        correlation: None,
        allocation: None,
        app_instance: None,
        attachment: None,
        source_project: None,
        over_soft: smallvec![],
        capped_by: None,
        profile: None,
        weighing: None,
        labels: Vec::new(),
        capped_by_window: None,
    }
}

/// A grant with everything that a grant can have.
pub(crate) fn granted_in_full() -> Granted {
    let mut granted = granted();
    granted.members.push(Member { class: ClassNo(2), quanta: Quanta(81_920), devices: 0 });
    Granted {
        sensitive: true,
        control_plane: true,
        correlation: Some(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210),
        allocation: Some(AllocationNo(9)),
        app_instance: Some(AppInstanceNo(10)),
        attachment: Some(AttachmentNo(11)),
        source_project: Some(ProjectNo(12)),
        over_soft: smallvec![QuotaNo(3), QuotaNo(200)],
        capped_by: Some(QuotaNo(4)),
        ..granted
    }
}

/// A grant of rules that score.
pub(crate) fn scored(profile: Option<Profile>, weighing: Weighing) -> Granted {
    Granted { rules_version: 2, profile, weighing: Some(weighing), ..granted() }
}

pub(crate) fn weights() -> Weights {
    Weights { pressure: 0, fit: 1, locality: 299, fragmentation: 700 }
}

pub(crate) fn profile() -> Profile {
    use Sensitivity::{Critical, Indifferent, Low, Moderate, Unused};
    Profile([Critical, Moderate, Low, Indifferent, Unused])
}

pub(crate) fn denied(cause: DenyCause) -> Denied {
    Denied {
        pool: Some(PoolNo(1)),
        asks: smallvec![(ClassNo(0), Quanta(70))],
        ttl: Span::from_millis(1_500),
        priority: Priority::Guaranteed,
        rules_version: 1,
        cause,
        particulars: Particulars::default(),
    }
}

pub(crate) fn quota(scope: QuotaScope, limit: LimitKind) -> QuotaPut {
    QuotaPut { quota: QuotaNo(5), scope, measure: Measure::Quanta, limit, temporary: None, evict_own_lower: false }
}

/// A quota with everything that was added later.
fn quota_in_full() -> QuotaPut {
    let further = FurtherScope {
        kind: Some(ResourceKind::Gpu),
        user: Some(HolderScope::One(UserNo(3))),
        app_instance: Some(HolderScope::Each),
        and_above: true,
    };
    let scope = QuotaScope { priority: Some(Priority::Standard), further, ..whole_tenant() };
    let temporary = Some(TemporaryLimit { limit: LimitKind::Soft { limit: 9 }, until: NEW_YEAR });
    QuotaPut { temporary, ..quota(scope, LimitKind::Hard { limit: 7 }) }
}

pub(crate) fn whole_tenant() -> QuotaScope {
    QuotaScope::of_tenant(TenantNo(1))
}

/// Prices with a line of everything, from nothing to the most there may be.
pub(crate) fn prices() -> Prices {
    Prices {
        currency: Currency::new("CHF").expect("three letters"),
        kinds: PerKind([RATE_MAX, Decimal(1), Decimal(0), Decimal(120_000_000), Decimal(300_000)]),
        classes: vec![(ClassNo(0), Decimal(12_000_000)), (ClassNo(300), Decimal(0))],
        tiers: vec![(name("a100"), Decimal(1_250_000_000)), (name("h100"), FACTOR_MAX)],
        priorities: Factors([Decimal(0), Decimal::ONE, Decimal(2 * BILLION)]),
        periods: Periods::SECONDS,
    }
}

/// Prices for other periods than a second.
pub(crate) fn prices_per_hour_and_day() -> Prices {
    let kinds = [Period::Hour, Period::Day, Period::Second, Period::Second, Period::Hour];
    Prices { periods: Periods { kinds, classes: vec![(ClassNo(300), Period::Day)] }, ..prices() }
}

pub(crate) fn charges() -> Charges {
    Charges {
        preempted: Charge::MinusLast(Span::from_secs(90)),
        fenced: Charge::Full,
        node_lost: Charge::MinusLast(Span::from_millis(1_500)),
        failed_start: Charge::None,
    }
}

fn bodies() -> Vec<Body> {
    let reported = |activity| ReportedLeases(smallvec![Reported { lease: LeaseNo(42), activity }]);
    let renewal = |lease, secs, activity| Renewal {
        lease: LeaseNo(lease),
        expires_at: NEW_YEAR.saturating_add(Span::from_secs(secs)),
        activity,
    };
    let narrow = QuotaScope {
        project: Some(ProjectNo(2)),
        class: Some(ClassNo(0)),
        pool: Some(PoolNo(1)),
        node: NodeScope::One(NodeNo(300)),
        priority: Some(Priority::Scavenger),
        ..whole_tenant()
    };
    let each_node = QuotaScope { node: NodeScope::Each, ..whole_tenant() };
    vec![
        Genesis {
            format_version: 1,
            origin: name("cluster-1.example.org"),
            public_key: [0x11; 32],
            software: name("leasehold 0.1.0"),
        }
        .into(),
        Started { epoch: 1, software: name("leasehold 0.1.0"), rules_version: 1, clock_accepted: None }.into(),
        Started {
            epoch: 2,
            software: name("leasehold 0.1.0"),
            rules_version: 1,
            clock_accepted: Some(ClockAccepted { last_stamp: Instant(1), wall_clock: NEW_YEAR }),
        }
        .into(),
        Heartbeat {}.into(),
        KeyRotated { old_key: [0x11; 32], new_key: [0x22; 32] }.into(),
        ClockJumped { wall_clock: Instant(NEW_YEAR.0 + 1) }.into(),
        SettingsChanged {
            ttl_max: Span::from_secs(604_800),
            grace_default: Span::from_secs(60),
            teardown_deadline: Span::from_secs(120),
            node_timeout: Span::from_millis(30_500),
            idempotency_window: Span::from_secs(86_400),
        }
        .into(),
        ClassPut { class: ClassNo(0), spec: class_spec() }.into(),
        PoolPut {
            pool: PoolNo(1),
            name: name("training"),
            strategy: Strategy::BinPack,
            ttl_max: PerPriority([Some(Span::from_secs(3600)), None, None]),
            lifetime_max: PerPriority([None, Some(Span::from_secs(86_400)), None]),
            grace: Some(Span::ZERO),
        }
        .into(),
        PoolDeleted { pool: PoolNo(1) }.into(),
        TenantPut {
            tenant: TenantNo(1),
            settings: TenantSettings {
                accounting_tag: Some(name("cost-4711")),
                max_priority: Priority::Guaranteed,
                max_evicted_quanta_per_hour: Some(700),
                ..TenantSettings::named(name("physics"))
            },
        }
        .into(),
        TenantDeleted { tenant: TenantNo(1) }.into(),
        ProjectPut { project: ProjectNo(2), tenant: TenantNo(1), name: name("Röntgen") }.into(),
        ProjectDeleted { project: ProjectNo(2) }.into(),
        UserPut { user: UserNo(3), tenant: TenantNo(1), name: name("ada") }.into(),
        UserDeleted { user: UserNo(3) }.into(),
        quota(whole_tenant(), LimitKind::Hard { limit: 200 }).into(),
        quota(narrow, LimitKind::Soft { limit: 0 }).into(),
        quota(each_node, LimitKind::Burst { limit: 56, burst_limit: u64::MAX, burst_ttl: Span::from_secs(600) }).into(),
        QuotaDeleted { quota: QuotaNo(5) }.into(),
        BurstEnded { quota: QuotaNo(5) }.into(),
        NodePut {
            node: NodeNo(300),
            name: name("gpu-300"),
            pool: PoolNo(1),
            rack: Some(name("r7")),
            zone: None,
            labels: vec![(name("driver"), name("570"))],
            teardown: TeardownMode::Confirmed,
            capacity: vec![(ClassNo(0), Quanta(56)), (ClassNo(2), Quanta(1_048_576))],
        }
        .into(),
        NodeDeleted { node: NodeNo(300) }.into(),
        NodeDrained { node: NodeNo(300), reason: None }.into(),
        NodeResumed { node: NodeNo(300), reason: None }.into(),
        NodeLost { node: NodeNo(300), last_seen: Instant(NEW_YEAR.0 - 5) }.into(),
        NodeReturned { node: NodeNo(300) }.into(),
        granted().into(),
        granted_in_full().into(),
        denied(DenyCause::Quota { quota: QuotaNo(5), used: 195, requested: 10, limit: 200 }).into(),
        denied(DenyCause::BurstOver { quota: QuotaNo(5), ends_at: NEW_YEAR }).into(),
        denied(DenyCause::Capacity { class: ClassNo(0), requested: Quanta(70), most_free: Quanta(56) }).into(),
        Renewed { renewals: smallvec![renewal(42, 3600, None)] }.into(),
        Renewed { renewals: smallvec![renewal(42, 7200, Some(activity())), renewal(50, 3600, None)] }.into(),
        Released { leases: reported(None), closed: true }.into(),
        Released { leases: reported(Some(activity())), closed: false }.into(),
        Expired { leases: leases(&[42, 43, 400]), closed: false, belongs_to: None }.into(),
        Revoked { leases: leases(&[42]), grace: Span::from_secs(60), belongs_to: None }.into(),
        TeardownStarted { leases: leases(&[42]), cause: TeardownCause::Ready, closed: false, belongs_to: None }.into(),
        TeardownStarted { leases: leases(&[42]), cause: TeardownCause::GraceEnded, closed: true, belongs_to: None }
            .into(),
        TornDown { node: NodeNo(300), leases: leases(&[42]), belongs_to: None }.into(),
        Fenced { leases: leases(&[42]), belongs_to: None }.into(),
        Unfenced { leases: leases(&[42]), belongs_to: None, reason: None }.into(),
        ActivityReported { leases: reported(Some(activity())) }.into(),
        Preempted { node: NodeNo(300), priority: Priority::Guaranteed, rules_version: 1, victims: leases(&[7, 42]) }
            .into(),
        Body::Unknown { kind: 4_000, bytes: vec![0xca, 0xfe] },
    ]
}

/// A record whose head has every part it can have.
pub(crate) fn head_in_full(sequence: u64) -> Record {
    Record {
        effective_at: Instant(NEW_YEAR.0 - 1_500_000),
        identity: Identity {
            tenant: Some(TenantNo(1)),
            project: Some(ProjectNo(2)),
            user: Some(UserNo(3)),
            workload: Some(name("train-7b")),
            token: Some(TokenNo(4)),
        },
        reason: Some(Reason::Preempted { by: 300 }),
        idempotency: Some(Idempotency {
            owner: Some(TenantNo(1)),
            key: leasehold_model::Key::new(b"key-1").expect("a key"),
            payload: [0xab; 16],
        }),
        hcl_entry: Some(name("hcl/9")),
        dra_claim_id: Some(name("claim-9")),
        signers: smallvec![[0x33; 32]],
        continues: true,
        ..Record::new(sequence, NEW_YEAR, Revoked { leases: leases(&[42]), grace: Span::ZERO, belongs_to: None })
    }
}

fn budgets() -> Budgets {
    Budgets {
        gpu_hours: Some(100_000),
        node_hours: Some(9_000),
        period_days: 30,
        fair_share: Some(250),
        burst_allowance: Some(500),
        max_pending: Some(64),
    }
}

/// An allocation that says everything it can say.
pub(crate) fn gang() -> AllocationSpec {
    AllocationSpec {
        pool: Some(PoolNo(1)),
        asks: smallvec![(ClassNo(0), Quanta(7)), (ClassNo(300), Quanta(64_000))],
        replicas: 8,
        priority: Priority::Guaranteed,
        walltime: Some(Span::from_secs(7200)),
        ttl: Some(Span::from_secs(600)),
        staged: true,
        requeue: true,
        labels: vec![(name("disk"), name("nvme"))],
        together: Some(Domain::Zone),
        apart: Some(Domain::Node),
        profile: Some(profile()),
        sensitive: true,
        control_plane: true,
        correlation: Some(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210),
        app_instance: Some(AppInstanceNo(10)),
        attachment: Some(AttachmentNo(11)),
        source_project: Some(ProjectNo(2)),
    }
}

/// A record of every kind, one after the other.
pub(crate) fn every_kind() -> Vec<Record> {
    let mut records: Vec<Record> =
        (0u64..).zip(bodies()).map(|(sequence, body)| Record::new(sequence, NEW_YEAR, body)).collect();
    for record in &mut records {
        if let Body::KeyRotated(rotated) = &record.body {
            record.signers = smallvec![rotated.old_key, rotated.new_key];
        }
    }
    let reasons = [
        Reason::Quota { quota: QuotaNo(5) },
        Reason::Budget,
        Reason::Operator,
        Reason::NodeLost,
        Reason::Policy,
        Reason::DuplicateHolder,
    ];
    for reason in reasons {
        let body = Revoked { leases: leases(&[42]), grace: Span::ZERO, belongs_to: None };
        let mut record = Record::new(records.len() as u64, NEW_YEAR, body);
        record.reason = Some(reason);
        records.push(record);
    }
    records.push(head_in_full(records.len() as u64));
    for body in samples_later::bodies()
        .into_iter()
        .chain(samples_queue::bodies())
        .chain(samples_ledger::bodies())
        .chain(samples_apps::bodies())
        .chain(samples_sinks::bodies())
    {
        records.push(Record::new(records.len() as u64, NEW_YEAR, body));
    }
    records
}

/// A record that changes the key, signed by both.
pub(crate) fn key_rotation(sequence: u64) -> Record {
    let rotated = KeyRotated { old_key: [0x11; 32], new_key: [0x22; 32] };
    let signers = smallvec![rotated.old_key, rotated.new_key];
    Record { signers, ..Record::new(sequence, NEW_YEAR, rotated) }
}
