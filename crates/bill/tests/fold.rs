//! Whose records are whose, what lists say after them, and what contradicts them.

use leasehold_bill::{ClaimedNodes, Concern, Contradiction, Ending, Fold, Phase, Revocation};
use leasehold_model::body::{
    AllocationFailed, AllocationPlaced, AppInstanceDeleted, AppInstancePut, AppTypeDeleted, BelongsTo, Body, ClassPut,
    Correlation, EntitlementPut, EntitlementScope, Expired, Fenced, Granted, Heartbeat, Leases, LedgerAdjusted, Member,
    NodeDrained, NodeLost, NodePut, NodeReturned, Nodes, NodesClaimed, NodesReleased, PolicyScope, PreemptionDecided,
    ProjectPut, Released, Renewal, Renewed, ReplicaPlacement, Reported, ReportedLeases, Revoked, SharingPut,
    TeardownStarted, TenantPut, TornDown, UserPut,
};
use leasehold_model::policy::TeardownCause;
use leasehold_model::rate::Currency;
use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, AppTypeNo, AttemptEnd, ClassNo, ClassSpec, ControlPlaneScope,
    Identity, Instant, LeaseNo, Month, Name, NodeNo, OperatingMode, PoolNo, Priority, ProjectNo, Quanta, RULES_VERSION,
    Reason, Record, ResourceKind, RuntimeBackend, Span, TeardownMode, TenantNo, TenantSettings, UnitNo, UnitQuantity,
    UserNo,
};
use std::collections::BTreeMap;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

const A: Option<u32> = Some(0);
const B: Option<u32> = Some(1);
const NOBODY: Option<u32> = None;

/// Records one after the other, a second apart.
struct Tape {
    fold: Fold,
    next: u64,
}

impl Tape {
    fn new() -> Self {
        Self { fold: Fold::new(), next: 0 }
    }

    fn record(&self, tenant: Option<u32>, body: impl Into<Body>) -> Record {
        let tenant = tenant.map(TenantNo);
        let project = tenant.map(|tenant| ProjectNo(tenant.0 + 10));
        let identity = Identity { tenant, project, ..Identity::default() };
        Record { identity, ..Record::new(self.next, Instant::from_secs(100 + self.next), body) }
    }

    fn take(&mut self, record: &Record) -> Result<Concern, Contradiction> {
        self.next = record.sequence + 1;
        self.fold.take(record)
    }

    fn put(&mut self, tenant: Option<u32>, body: impl Into<Body>) -> Result<Concern, Contradiction> {
        let record = self.record(tenant, body);
        self.take(&record)
    }

    fn ok(&mut self, tenant: Option<u32>, body: impl Into<Body>) -> Concern {
        self.put(tenant, body).expect("it can follow")
    }

    /// Phase, ending and revocation of a lease of the first tenant; none if it is closed.
    fn lease(&self, number: u64) -> Option<(Phase, Ending, Revocation)> {
        let list = self.fold.tenant_list(TenantNo(0));
        list.leases.get(&LeaseNo(number)).map(|lease| (lease.phase, lease.ending, lease.revoked))
    }
}

fn of(tenant: u32) -> Concern {
    Concern::Tenant(TenantNo(tenant))
}

fn leases(numbers: &[u64]) -> Leases {
    numbers.iter().copied().map(LeaseNo).collect()
}

fn belongs_to() -> Option<BelongsTo> {
    Some(BelongsTo { allocation: None, correlation: Correlation::Derived(1) })
}

fn grant(first: u64) -> Granted {
    Granted {
        first_lease: LeaseNo(first),
        node: NodeNo(0),
        pool: PoolNo(0),
        ttl: Span::from_secs(60),
        priority: Priority::Standard,
        rules_version: RULES_VERSION,
        members: [Member { class: ClassNo(0), quanta: Quanta(2), devices: 0 }].into_iter().collect(),
        sensitive: false,
        control_plane: false,
        correlation: None,
        allocation: None,
        app_instance: None,
        attachment: None,
        source_project: None,
        over_soft: Default::default(),
        capped_by: None,
        profile: None,
        weighing: None,
        labels: Vec::new(),
        capped_by_window: None,
    }
}

fn released(number: u64, closed: bool) -> Released {
    let one = Reported { lease: LeaseNo(number), activity: None };
    Released { leases: ReportedLeases([one].into_iter().collect()), closed }
}

fn renewed(number: u64) -> Renewed {
    let renewal = Renewal { lease: LeaseNo(number), expires_at: Instant::from_secs(500), activity: None };
    Renewed { renewals: [renewal].into_iter().collect() }
}

fn node(number: u32) -> NodePut {
    NodePut {
        node: NodeNo(number),
        name: name(&format!("n{number}")),
        pool: PoolNo(3),
        rack: None,
        zone: None,
        labels: Vec::new(),
        teardown: TeardownMode::Confirmed,
        capacity: vec![(ClassNo(0), Quanta(8))],
    }
}

fn claim(number: u32) -> NodesClaimed {
    NodesClaimed { nodes: Nodes(vec![NodeNo(number)]), until: None }
}

fn app(number: u64, scope: ControlPlaneScope) -> AppInstancePut {
    AppInstancePut {
        app_instance: AppInstanceNo(number),
        project: ProjectNo(10),
        name: name("app"),
        app_type: AppTypeNo(0),
        mode: OperatingMode::PlatformManaged,
        scope,
        backend: RuntimeBackend::Ray,
    }
}

fn sharing(tenant: Option<u32>, app_instance: Option<u64>) -> SharingPut {
    let of = PolicyScope {
        app_type: AppTypeNo(0),
        tenant: tenant.map(TenantNo),
        app_instance: app_instance.map(AppInstanceNo),
    };
    SharingPut { of, version: 1, control_plane_billable: Some(false), distributable: None, sharing: None }
}

fn limit(app_instance: Option<u64>, hard: Option<u128>) -> EntitlementPut {
    let of = EntitlementScope {
        project: Some(ProjectNo(10)),
        app_instance: app_instance.map(AppInstanceNo),
        unit: UnitNo(4),
    };
    EntitlementPut { of, soft: None, hard: hard.map(UnitQuantity) }
}

/// What the operator says for all, or for a runtime of the platform, concerns all; the rest its tenant.
#[test]
fn sharing_policies_and_limits_are_listed_with_those_whom_they_concern() {
    let mut tape = Tape::new();
    tape.ok(A, app(1, ControlPlaneScope::Tenant));
    tape.ok(A, app(2, ControlPlaneScope::Platform));
    assert_eq!(tape.ok(NOBODY, sharing(None, None)), Concern::Common);
    assert_eq!(tape.ok(A, sharing(Some(0), Some(2))), Concern::Common);
    assert_eq!(tape.ok(A, sharing(Some(0), Some(1))), of(0));
    assert_eq!(tape.ok(B, sharing(Some(1), None)), of(1));
    for (on, hard) in [(None, Some(5)), (Some(1), Some(6)), (Some(2), Some(7)), (None, None)] {
        assert_eq!(tape.ok(A, limit(on, hard)), of(0));
    }
    let listed = |tape: &Tape| {
        let (common, own) = (tape.fold.common_list(), tape.fold.tenant_list(TenantNo(0)));
        let limits: Vec<_> =
            own.limits.iter().map(|limit| (limit.app_instance.map(|app| app.0), limit.hard.0)).collect();
        (common.sharing.len(), own.sharing.len(), limits)
    };
    assert_eq!(listed(&tape), (2, 1, vec![(Some(1), 6), (Some(2), 7)]));
    tape.ok(A, AppInstanceDeleted { app_instance: AppInstanceNo(2) });
    assert_eq!(listed(&tape), (1, 1, vec![(Some(1), 6)]));
    tape.ok(A, AppInstanceDeleted { app_instance: AppInstanceNo(1) });
    assert_eq!(listed(&tape), (1, 0, vec![]));
    tape.ok(NOBODY, AppTypeDeleted { app_type: AppTypeNo(0) });
    assert_eq!((listed(&tape).0, tape.fold.tenant_list(TenantNo(1)).sharing.len()), (0, 0));
}

#[test]
fn it_follows_from_a_record_whose_it_is() {
    let mut tape = Tape::new();
    let spec = ClassSpec { name: name("c"), kind: ResourceKind::Cpu, tier: None, quanta_per_unit: 1, premium: false };
    assert_eq!(tape.ok(NOBODY, ClassPut { class: ClassNo(0), spec }), Concern::Common);
    assert_eq!(tape.ok(NOBODY, Heartbeat {}), Concern::Nobody);
    let settings = TenantSettings::named(name("a"));
    assert_eq!(tape.ok(NOBODY, TenantPut { tenant: TenantNo(0), settings }), of(0));
    assert_eq!(tape.ok(NOBODY, ProjectPut { project: ProjectNo(10), tenant: TenantNo(0), name: name("p") }), of(0));
    assert_eq!(tape.ok(NOBODY, UserPut { user: UserNo(0), tenant: TenantNo(1), name: name("u") }), of(1));
    assert_eq!(tape.ok(A, grant(0)), of(0));
    // The tenant in the head owns the runtime; all tenants may use it.
    assert_eq!(tape.ok(A, app(1, ControlPlaneScope::Platform)), Concern::Common);
    assert_eq!(tape.ok(A, app(2, ControlPlaneScope::Project)), of(0));
    assert_eq!(tape.fold.common_list().app_instances.len(), 1);
    assert_eq!(tape.fold.tenant_list(TenantNo(0)).app_instances.len(), 1);
}

#[test]
fn the_availability_of_a_node_concerns_who_has_claimed_it() {
    let mut tape = Tape::new();
    assert_eq!(tape.ok(NOBODY, node(1)), Concern::Nobody);
    let drained = || NodeDrained { node: NodeNo(1), reason: None };
    assert_eq!(tape.ok(NOBODY, drained()), Concern::Nobody);
    assert_eq!(tape.ok(B, claim(1)), of(1));
    let lost_at = Instant::from_secs(101);
    assert_eq!(tape.ok(NOBODY, NodeLost { node: NodeNo(1), last_seen: lost_at }), of(1));
    let claimed = |tape: &Tape| tape.fold.tenant_list(TenantNo(1)).claims.iter().next().cloned();
    let found = claimed(&tape).expect("a claim");
    assert_eq!((found.claim, found.pool, found.lost, found.drained), (2, PoolNo(3), Some(lost_at), None));
    assert_eq!(tape.ok(NOBODY, NodeReturned { node: NodeNo(1) }), of(1));
    let found = claimed(&tape).expect("a claim");
    assert_eq!((found.lost, found.outages.len()), (None, 1));
    assert_eq!(tape.ok(B, NodesReleased { nodes: Nodes(vec![NodeNo(1)]), claim: Some(2) }), of(1));
    assert_eq!(tape.ok(NOBODY, drained()), Concern::Nobody);
    assert_eq!(claimed(&tape), None);
}

#[test]
fn a_lease_is_listed_until_it_is_closed() {
    let mut tape = Tape::new();
    tape.ok(A, grant(0));
    tape.ok(A, renewed(0));
    let held = tape.fold.tenant_list(TenantNo(0)).leases.get(&LeaseNo(0)).expect("it is open").clone();
    assert_eq!((held.from, held.to, held.payer), (Instant::from_secs(100), Instant::from_secs(500), ProjectNo(10)));
    tape.ok(A, released(0, false));
    assert_eq!(tape.lease(0), Some((Phase::TearingDown, Ending::Plain, Revocation::None)));
    tape.ok(A, Fenced { leases: leases(&[0]), belongs_to: belongs_to() });
    assert_eq!(tape.lease(0).map(|lease| lease.0), Some(Phase::Fenced));
    tape.ok(A, grant(1));
    tape.ok(A, Expired { leases: leases(&[1]), closed: true, belongs_to: belongs_to() });
    assert_eq!((tape.lease(1), tape.fold.open_leases()), (None, 1));
    let saved = Fold::from_bytes(&tape.fold.to_bytes()).expect("what was saved can be read");
    assert_eq!(saved.tenant_list(TenantNo(0)), tape.fold.tenant_list(TenantNo(0)));
}

/// The decision names no tenant. A fold over the records of a tenant is told whether it was made for the tenant itself.
#[test]
fn an_eviction_for_oneself_is_told_from_others() {
    let mut tape = Tape::new();
    let submitted = |tape: &mut Tape, tenant: Option<u32>| {
        let spec = AllocationSpec::of(Default::default());
        tape.ok(tenant, leasehold_model::body::AllocationSubmitted { spec, when_over_quota: None, node: None });
        tape.next - 1
    };
    let (own, other) = (submitted(&mut tape, A), submitted(&mut tape, B));
    for (first, allocation, expected) in [(0, own, Revocation::ForOwn), (1, other, Revocation::Preempted)] {
        tape.ok(A, grant(first));
        let place = ReplicaPlacement { node: NodeNo(0), members: grant(0).members };
        let decided = PreemptionDecided {
            allocation: AllocationNo(allocation),
            priority: Priority::Guaranteed,
            rules_version: RULES_VERSION,
            places: vec![place],
            victims: leases(&[first]),
            headroom: None,
        };
        let by = tape.next;
        assert_eq!(tape.ok(NOBODY, decided), Concern::Nobody);
        let revoked = Revoked { leases: leases(&[first]), grace: Span::ZERO, belongs_to: belongs_to() };
        let record = Record { reason: Some(Reason::Preempted { by }), ..tape.record(A, revoked) };
        tape.take(&record).expect("it can follow");
        assert_eq!(tape.lease(first), Some((Phase::Held, Ending::None, expected)));
        let cause = TeardownCause::GraceEnded;
        let started = TeardownStarted { leases: leases(&[first]), cause, closed: false, belongs_to: belongs_to() };
        tape.ok(A, started);
        let ending = if first == 0 { Ending::ForOwn } else { Ending::Preempted };
        assert_eq!(tape.lease(first), Some((Phase::TearingDown, ending, expected)));
    }
}

#[test]
fn records_that_contradict_others_are_refused() {
    let says = |result: Result<Concern, Contradiction>| result.expect_err("a contradiction").to_string();
    let fresh = || {
        let mut tape = Tape::new();
        tape.ok(A, grant(0));
        tape
    };
    assert_eq!(fresh().put(NOBODY, renewed(0)), Err(Contradiction::NoTenant));
    assert!(says(fresh().put(B, renewed(0))).contains("not open"));
    assert!(says(fresh().put(A, renewed(1))).contains("not open"));
    assert!(says(fresh().put(A, grant(0))).contains("that is open"));
    let torn = TornDown { node: NodeNo(0), leases: leases(&[0]), belongs_to: None };
    assert!(says(fresh().put(A, torn)).contains("another phase"));
    let fenced = Fenced { leases: leases(&[0]), belongs_to: None };
    assert!(says(fresh().put(A, fenced)).contains("not being torn down"));
    assert!(says(fresh().put(A, claim(1))).contains("unknown capacity"));
    let mut tape = fresh();
    tape.ok(A, released(0, false));
    assert!(says(tape.put(A, released(0, false))).contains("has ended"));
    let mut tape = fresh();
    tape.next = 0;
    assert!(says(tape.put(A, grant(5))).contains("sequence"));
    let mut tape = fresh();
    let earlier = Record { stamp: Instant(1), effective_at: Instant(1), ..tape.record(A, grant(1)) };
    assert!(says(tape.take(&earlier)).contains("stamped before"));
}

/// An entry by hand is a link of the chain and leaves the residual as it is.
#[test]
fn payers_carry_over_their_last_entry() {
    let mut tape = Tape::new();
    let month = Month::new(2026, 11).expect("a month");
    let (currency, previous, legs, reason) = (Currency::DEFAULT, None, Vec::new(), name("r"));
    tape.ok(A, LedgerAdjusted { currency, month, original_month: month, previous, legs, reason });
    let list = tape.fold.tenant_list(TenantNo(0));
    let payer = list.payers.get(&(ProjectNo(10), currency)).expect("a payer");
    assert_eq!((payer.last, payer.residual.units()), (0, 0));
}

/// A fold from the lists goes on as the one that made them.
#[test]
fn lists_are_all_that_a_tenant_has_to_know() {
    let mut tape = Tape::new();
    tape.ok(NOBODY, node(1));
    tape.ok(B, claim(1));
    tape.ok(B, grant(0));
    let lists = BTreeMap::from([(TenantNo(1), tape.fold.tenant_list(TenantNo(1)))]);
    let mut told = Fold::from_lists(tape.fold.common_list(), lists, ClaimedNodes::default());
    for body in [Body::from(renewed(0)), NodeDrained { node: NodeNo(1), reason: None }.into(), released(0, true).into()]
    {
        let tenant = if matches!(body, Body::NodeDrained(_)) { NOBODY } else { B };
        let record = tape.record(tenant, body);
        assert_eq!((tape.take(&record), told.take(&record)), (Ok(of(1)), Ok(of(1))));
        assert_eq!(told.tenant_list(TenantNo(1)), tape.fold.tenant_list(TenantNo(1)));
    }
    assert_eq!(told.tenants().collect::<Vec<_>>(), [TenantNo(1)]);
}

/// A record may name far more leases than there are, or than there are numbers: that takes no time, and changes those that
/// are there.
#[test]
fn an_attempt_may_name_more_leases_than_there_are() {
    for (first, leases, failed) in [(1, u32::MAX, true), (u64::MAX - 5, u32::MAX, false), (1, 1, true), (2, 1, false)] {
        let mut tape = Tape::new();
        tape.ok(A, grant(1));
        let (allocation, first_lease) = (AllocationNo(7), LeaseNo(first));
        tape.ok(A, AllocationPlaced { allocation, attempt: 1, first_lease, leases, rules_version: RULES_VERSION });
        tape.ok(
            A,
            AllocationFailed { allocation, end: AttemptEnd::FailedStart, exit_status: None, storage_written: 0 },
        );
        let list = tape.fold.tenant_list(TenantNo(0));
        let lease = list.leases.get(&LeaseNo(1)).expect("it is open");
        assert_eq!(lease.failed_start, failed, "{leases} from {first} on");
    }
}
