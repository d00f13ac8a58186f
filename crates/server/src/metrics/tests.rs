use super::deliveries::SinkFigures;
use super::*;
use crate::config::Rate;
use expect_test::expect;
use leasehold_cell::{CellOptions, ManualClock, Sealed, StartOptions};
use leasehold_deliver::{Counters, Place, SinkId, SinkStatus};
use leasehold_engine::command::{
    LoseNode, PutClass, PutNode, PutPool, PutProject, PutQuota, PutTenant, PutUser, RequestLease, Revoke,
};
use leasehold_engine::{Command, Request};
use leasehold_journal::{Journal, Keys, MemoryJournal};
use leasehold_model::body::PerPriority;
use leasehold_model::{
    ClassNo, ClassSpec, HolderScope, Identity, Instant, LeaseNo, LimitKind, Measure, Name, NodeNo, PoolNo, ProjectNo,
    Quanta, QuotaScope, Reason, ResourceKind, Span, Strategy, TeardownMode, TenantNo, TenantSettings, TokenNo, UserNo,
};
use smallvec::smallvec;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command as Process, Stdio};

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// A cell with metrics, without a listener.
struct Scene {
    cell: Cell,
    metrics: Metrics,
    limiter: Limiter,
    deliveries: DeliveryFigures,
}

impl Scene {
    fn new() -> Self {
        let keys = Arc::new(Keys::new("metrics.example", &[5; 32]).expect("a valid origin"));
        let options = CellOptions::new(StartOptions::new(name("metrics test"), keys.public_keys()[0]));
        let journal = MemoryJournal::new(keys);
        journal.prepare().expect("there is room");
        let clock = Arc::new(ManualClock::at(Instant::from_secs(1_767_225_600)));
        let (cell, _) = Cell::start(Arc::new(journal), clock, options).expect("it starts");
        let limiter = Limiter::new(&Rate { operations_per_second: 1, burst: 1 });
        Self { cell, metrics: Metrics::new(), limiter, deliveries: DeliveryFigures::default() }
    }

    fn send(&self, identity: Identity, command: Command) -> Reply {
        let kind = command.kind();
        let reply = self.cell.call(Request::new(identity, command));
        self.metrics.replied(kind, &reply);
        reply
    }
    fn operate(&self, command: Command) {
        let reply = self.send(Identity::default(), command);
        assert!(matches!(reply, Ok(Sealed { repeated: false, .. })), "{reply:?}");
    }
    fn ask(&self, quanta: u64) -> Reply {
        let identity = Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() };
        self.send(identity, Command::Request(RequestLease::of(ClassNo(0), Quanta(quanta), Span::from_secs(3600))))
    }

    fn node(&self, text: &str) {
        self.operate(Command::PutNode(PutNode {
            node: None,
            name: name(text),
            pool: PoolNo(0),
            rack: None,
            zone: None,
            labels: vec![],
            teardown: TeardownMode::Confirmed,
            capacity: vec![(ClassNo(0), Quanta(4000))],
        }));
    }
    fn quota(&self, measure: Measure, limit: LimitKind) {
        let class = (measure == Measure::Quanta).then_some(ClassNo(0));
        let scope = QuotaScope { class, ..QuotaScope::of_tenant(TenantNo(0)) };
        self.operate(Command::PutQuota(PutQuota::new(None, scope, measure, limit)));
    }

    /// Two nodes, one of them lost; a tenant with quotas of every kind; a grant that is revoked, denials, refusals.
    fn played() -> Self {
        let scene = Self::new();
        let spec =
            ClassSpec { name: name("cpu"), kind: ResourceKind::Cpu, tier: None, quanta_per_unit: 1000, premium: false };
        scene.operate(Command::PutClass(PutClass { class: None, spec }));
        scene.operate(Command::PutPool(PutPool {
            pool: None,
            name: name("ma\"in"),
            strategy: Strategy::Spread,
            ttl_max: PerPriority::default(),
            lifetime_max: PerPriority::default(),
            grace: None,
            weights: None,
            queue: None,
        }));
        scene.node("node-0");
        scene.node("node-1");
        scene.operate(Command::PutTenant(PutTenant { tenant: None, settings: TenantSettings::named(name("physics")) }));
        scene.operate(Command::PutProject(PutProject { project: None, tenant: TenantNo(0), name: name("atlas") }));
        let last_seen = scene.cell.now().read(leasehold_engine::State::last_stamp);
        scene.operate(Command::LoseNode(LoseNode { node: NodeNo(1), last_seen }));
        scene.quota(Measure::Quanta, LimitKind::Hard { limit: 3000 });
        scene.quota(Measure::Leases, LimitKind::Soft { limit: 1 });
        let burst_ttl = Span::from_secs(600);
        scene.quota(Measure::Nodes, LimitKind::Burst { limit: 5, burst_limit: 9, burst_ttl });
        for quanta in [1000, 500, 1500, 1, 5000] {
            scene.ask(quanta).expect("granted or denied");
        }
        scene.ask(0).expect_err("nothing is asked for");
        let revoke =
            Revoke { leases: smallvec![LeaseNo(0)], reason: Reason::Operator, grace: Some(Span::from_secs(60)) };
        scene.operate(Command::Revoke(revoke));
        scene
    }

    fn page(&self) -> String {
        let sources = Sources {
            cell: &self.cell,
            limiter: &self.limiter,
            streams: 3,
            books: 1,
            data: Path::new("/"),
            scrub: Figures::default(),
            ledger: LedgerFigures::default(),
            deliveries: &self.deliveries,
        };
        self.metrics.render(&sources)
    }
}

/// The lines of these metrics.
fn lines(page: &str, names: &[&str]) -> String {
    let wanted = |line: &&str| names.iter().any(|name| line.starts_with(name));
    page.lines().filter(wanted).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_page_shows_the_state() {
    let page = Scene::played().page();
    let shown = lines(
        &page,
        &[
            "leasehold_leases",
            "leasehold_nodes",
            "leasehold_capacity_quanta",
            "leasehold_class_",
            "leasehold_quota",
            "leasehold_journal_records",
            "leasehold_commands_total",
            "leasehold_refusals_total",
            "leasehold_records_total",
            "leasehold_queue",
            "leasehold_event_streams",
        ],
    );
    expect![[r#"
        leasehold_event_streams 3
        leasehold_commands_total{kind="request",result="sealed"} 3
        leasehold_commands_total{kind="request",result="denied"} 2
        leasehold_commands_total{kind="request",result="refused"} 1
        leasehold_commands_total{kind="revoke",result="sealed"} 1
        leasehold_commands_total{kind="put_tenant",result="sealed"} 1
        leasehold_commands_total{kind="put_project",result="sealed"} 1
        leasehold_commands_total{kind="put_pool",result="sealed"} 1
        leasehold_commands_total{kind="put_class",result="sealed"} 1
        leasehold_commands_total{kind="put_node",result="sealed"} 2
        leasehold_commands_total{kind="lose_node",result="sealed"} 1
        leasehold_commands_total{kind="put_quota",result="sealed"} 3
        leasehold_refusals_total{code="zero_quantity"} 1
        leasehold_journal_records 18
        leasehold_queue_length 0
        leasehold_records_total{kind="journal.genesis"} 1
        leasehold_records_total{kind="journal.started"} 1
        leasehold_records_total{kind="class.put"} 1
        leasehold_records_total{kind="pool.put"} 1
        leasehold_records_total{kind="tenant.put"} 1
        leasehold_records_total{kind="project.put"} 1
        leasehold_records_total{kind="quota.updated"} 3
        leasehold_records_total{kind="node.put"} 2
        leasehold_records_total{kind="node.lost"} 1
        leasehold_records_total{kind="lease.granted"} 3
        leasehold_records_total{kind="lease.denied"} 2
        leasehold_records_total{kind="lease.revoked"} 1
        leasehold_leases_granted_total 3
        leasehold_leases_denied_total{cause="quota"} 2
        leasehold_leases_denied_total{cause="burst"} 0
        leasehold_leases_denied_total{cause="capacity"} 0
        leasehold_leases_denied_total{cause="ceiling"} 0
        leasehold_leases_denied_total{cause="prepaid"} 0
        leasehold_leases{state="active"} 2
        leasehold_leases{state="revoking"} 1
        leasehold_leases{state="releasing"} 0
        leasehold_leases{state="expired"} 0
        leasehold_leases{state="tearing_down"} 0
        leasehold_leases{state="fenced"} 0
        leasehold_nodes{state="available"} 1
        leasehold_nodes{state="claimed"} 0
        leasehold_nodes{state="drained"} 0
        leasehold_nodes{state="lost"} 1
        leasehold_nodes{state="quarantined"} 0
        leasehold_nodes{state="wiping"} 0
        leasehold_nodes_empty 0
        leasehold_nodes_without_agent 2
        leasehold_nodes_hot 1
        leasehold_capacity_quanta{class="cpu",pool="ma\"in",state="held"} 3000
        leasehold_capacity_quanta{class="cpu",pool="ma\"in",state="tearing_down"} 0
        leasehold_capacity_quanta{class="cpu",pool="ma\"in",state="reserved"} 0
        leasehold_capacity_quanta{class="cpu",pool="ma\"in",state="fenced"} 0
        leasehold_capacity_quanta{class="cpu",pool="ma\"in",state="offline"} 4000
        leasehold_capacity_quanta{class="cpu",pool="ma\"in",state="idle"} 1000
        leasehold_class_quanta_per_unit{class="cpu"} 1000
        leasehold_quotas{condition="within"} 1
        leasehold_quotas{condition="at_limit"} 1
        leasehold_quotas{condition="over_soft"} 1
        leasehold_quotas{condition="bursting"} 0
        leasehold_quotas_left_out 0
        leasehold_quota_used{quota="quota-0",tenant="physics",project="",class="cpu",pool="",node="",priority="",measure="quanta",kind="hard"} 3000
        leasehold_quota_used{quota="quota-1",tenant="physics",project="",class="",pool="",node="",priority="",measure="leases",kind="soft"} 3
        leasehold_quota_used{quota="quota-2",tenant="physics",project="",class="",pool="",node="",priority="",measure="nodes",kind="burst"} 1
        leasehold_quota_limit{quota="quota-0",tenant="physics",project="",class="cpu",pool="",node="",priority="",measure="quanta",kind="hard"} 3000
        leasehold_quota_limit{quota="quota-1",tenant="physics",project="",class="",pool="",node="",priority="",measure="leases",kind="soft"} 1
        leasehold_quota_limit{quota="quota-2",tenant="physics",project="",class="",pool="",node="",priority="",measure="nodes",kind="burst"} 5
        leasehold_quota_burst_limit{quota="quota-2",tenant="physics",project="",class="",pool="",node="",priority="",measure="nodes",kind="burst"} 9
    "#]].assert_eq(&shown);
}

#[test]
fn requests_are_counted_by_endpoint_and_status_and_nothing_a_client_sends_makes_a_series() {
    let scene = Scene::new();
    let about = ENDPOINTS.iter().position(|endpoint| endpoint.id == "about").expect("it is there");
    scene.metrics.served(about, 200, Duration::from_micros(30));
    scene.metrics.served(about, 200, Duration::from_millis(30));
    scene.metrics.served(about, 299, Duration::from_secs(100));
    scene.metrics.served(UNROUTED, 404, Duration::ZERO);
    assert_eq!(scene.limiter.take(TokenNo(1), 1), Ok(()));
    assert!(scene.limiter.take(TokenNo(1), 1).is_err());
    let page = scene.page();
    let names = [
        "leasehold_http_requests",
        "leasehold_http_request_duration_seconds_bucket{le=\"0.00005\"",
        "leasehold_http_request_duration_seconds_bucket{le=\"0.05\"",
        "leasehold_http_request_duration_seconds_bucket{le=\"+Inf\"",
        "leasehold_http_request_duration_seconds_sum",
        "leasehold_rate_limited",
    ];
    let shown = lines(&page, &names);
    expect![[r#"
        leasehold_http_requests_total{endpoint="about",status="200"} 2
        leasehold_http_requests_total{endpoint="about",status="other"} 1
        leasehold_http_requests_total{endpoint="none",status="404"} 1
        leasehold_http_request_duration_seconds_sum{endpoint="about"} 100.03003
        leasehold_http_request_duration_seconds_bucket{le="0.00005",endpoint="about"} 1
        leasehold_http_request_duration_seconds_bucket{le="0.05",endpoint="about"} 2
        leasehold_http_request_duration_seconds_sum{endpoint="none"} 0.0
        leasehold_http_request_duration_seconds_bucket{le="0.00005",endpoint="none"} 1
        leasehold_http_request_duration_seconds_bucket{le="0.05",endpoint="none"} 1
        leasehold_rate_limited_total 1
    "#]]
    .assert_eq(&shown);
}

#[test]
fn with_too_many_quotas_only_their_sums_are_shown() {
    let scene = Scene::played();
    for _ in 0..40 {
        let tenants = scene.cell.now().read(|state| state.tenants().count());
        let put = PutTenant { tenant: None, settings: TenantSettings::named(name(&format!("tenant-{tenants}"))) };
        scene.operate(Command::PutTenant(put));
        let tenant = TenantNo(u32::try_from(tenants).expect("few"));
        for user in 0..128 {
            scene.operate(Command::PutUser(PutUser { user: None, tenant, name: name(&format!("user-{user}")) }));
            let mut scope = QuotaScope::of_tenant(tenant);
            let users = scene.cell.now().read(|state| state.users().count());
            let last = UserNo(u32::try_from(users - 1).expect("few"));
            scope.further.user = Some(HolderScope::One(last));
            let put = PutQuota::new(None, scope, Measure::Leases, LimitKind::Hard { limit: 0 });
            scene.operate(Command::PutQuota(put));
        }
    }
    expect![[r#"
        leasehold_quotas{condition="within"} 1
        leasehold_quotas{condition="at_limit"} 5121
        leasehold_quotas{condition="over_soft"} 1
        leasehold_quotas{condition="bursting"} 0
        leasehold_quotas_left_out 5123
    "#]]
    .assert_eq(&lines(&scene.page(), &["leasehold_quota"]));
}

/// A webhook with something in every figure.
fn sink(number: u64) -> SinkFigures {
    let counters = Counters { attempts: 900, delivered: 800, failures: 100, dead: 9, dropped: 7, dropped_open: 3 };
    let status = SinkStatus {
        id: SinkId(number),
        name: format!("hook-{number}"),
        enabled: true,
        cursor: Place::start_of(5),
        lag_records: 40,
        lag_events: 30,
        in_memory_events: 10,
        in_memory_bytes: 4_000,
        on_disk_events: 20,
        oldest: Some(Instant::from_secs(1)),
        oldest_age: Some(Span::from_millis(90_999)),
        counters,
        dead_letters: 2,
        memory_permille: 812,
        is_memory_high: true,
        is_over_threshold: true,
        backs_off_until: Some(Instant::from_secs(9)),
        last_error: None,
        last_success: None,
        lost_records: Vec::new(),
        restarted: None,
        source_error: None,
    };
    SinkFigures { tenant: "physics".into(), status }
}

/// One webhook that fails, and one that is disabled and cannot be read for.
fn delivering() -> DeliveryFigures {
    let mut disabled = sink(2);
    disabled.tenant.clear();
    disabled.status.source_error = Some("the books are behind".into());
    disabled.status = SinkStatus { enabled: false, oldest_age: None, memory_permille: 0, ..disabled.status };
    DeliveryFigures {
        is_enabled: true,
        has_trouble: false,
        events_per_minute: 100,
        is_token_readable: Some(false),
        sinks: vec![sink(1), disabled],
    }
}

#[test]
fn without_deliveries_there_is_only_the_counter_of_dropped_events() {
    let page = Scene::new().page();
    expect![[r#"
        leasehold_accounting_enabled 0
        leasehold_accounting_events_dropped_total 0
    "#]]
    .assert_eq(&lines(&page, &["leasehold_accounting"]));
    let scene = Scene {
        deliveries: DeliveryFigures { is_enabled: true, has_trouble: true, ..DeliveryFigures::default() },
        ..Scene::new()
    };
    expect![[r#"
        leasehold_accounting_enabled 1
        leasehold_accounting_events_dropped_total 0
        leasehold_accounting_not_running 1
        leasehold_accounting_events_per_minute 0
        leasehold_accounting_webhooks 0
    "#]]
    .assert_eq(&lines(&scene.page(), &["leasehold_accounting"]));
}

#[test]
fn each_webhook_has_its_series() {
    let scene = Scene { deliveries: delivering(), ..Scene::new() };
    expect![[r#"
        leasehold_accounting_enabled 1
        leasehold_accounting_events_dropped_total{webhook="1",name="hook-1",tenant="physics"} 7
        leasehold_accounting_events_dropped_total{webhook="2",name="hook-2",tenant=""} 7
        leasehold_accounting_not_running 0
        leasehold_accounting_events_per_minute 100
        leasehold_accounting_token_readable 0
        leasehold_accounting_webhooks 2
        leasehold_accounting_events_dropped_open{webhook="1",name="hook-1",tenant="physics"} 3
        leasehold_accounting_events_dropped_open{webhook="2",name="hook-2",tenant=""} 3
        leasehold_accounting_lag_events{webhook="1",name="hook-1",tenant="physics"} 30
        leasehold_accounting_lag_events{webhook="2",name="hook-2",tenant=""} 30
        leasehold_accounting_lag_records{webhook="1",name="hook-1",tenant="physics"} 40
        leasehold_accounting_lag_records{webhook="2",name="hook-2",tenant=""} 40
        leasehold_accounting_oldest_event_age_seconds{webhook="1",name="hook-1",tenant="physics"} 90
        leasehold_accounting_oldest_event_age_seconds{webhook="2",name="hook-2",tenant=""} 0
        leasehold_accounting_memory_events{webhook="1",name="hook-1",tenant="physics"} 10
        leasehold_accounting_memory_events{webhook="2",name="hook-2",tenant=""} 10
        leasehold_accounting_disk_events{webhook="1",name="hook-1",tenant="physics"} 20
        leasehold_accounting_disk_events{webhook="2",name="hook-2",tenant=""} 20
        leasehold_accounting_dead_letters{webhook="1",name="hook-1",tenant="physics"} 2
        leasehold_accounting_dead_letters{webhook="2",name="hook-2",tenant=""} 2
        leasehold_accounting_disabled{webhook="1",name="hook-1",tenant="physics"} 0
        leasehold_accounting_disabled{webhook="2",name="hook-2",tenant=""} 1
        leasehold_accounting_unreachable{webhook="1",name="hook-1",tenant="physics"} 1
        leasehold_accounting_unreachable{webhook="2",name="hook-2",tenant=""} 0
        leasehold_accounting_unread{webhook="1",name="hook-1",tenant="physics"} 0
        leasehold_accounting_unread{webhook="2",name="hook-2",tenant=""} 1
        leasehold_accounting_over_threshold{webhook="1",name="hook-1",tenant="physics"} 1
        leasehold_accounting_over_threshold{webhook="2",name="hook-2",tenant=""} 1
        leasehold_accounting_memory_used_ratio{webhook="1",name="hook-1",tenant="physics"} 0.812
        leasehold_accounting_memory_used_ratio{webhook="2",name="hook-2",tenant=""} 0.0
        leasehold_accounting_attempts_total{webhook="1",name="hook-1",tenant="physics"} 900
        leasehold_accounting_attempts_total{webhook="2",name="hook-2",tenant=""} 900
        leasehold_accounting_delivered_total{webhook="1",name="hook-1",tenant="physics"} 800
        leasehold_accounting_delivered_total{webhook="2",name="hook-2",tenant=""} 800
        leasehold_accounting_failures_total{webhook="1",name="hook-1",tenant="physics"} 100
        leasehold_accounting_failures_total{webhook="2",name="hook-2",tenant=""} 100
    "#]]
    .assert_eq(&lines(&scene.page(), &["leasehold_accounting"]));
}

#[test]
fn webhooks_beyond_the_first_two_hundred_share_their_series() {
    let mut sinks: Vec<SinkFigures> = (0..1000).map(sink).collect();
    sinks[700].status.oldest_age = Some(Span::from_secs(5_000));
    sinks[701].status.enabled = false;
    let scene = Scene { deliveries: DeliveryFigures { sinks, ..delivering() }, ..Scene::new() };
    let page = scene.page();
    let others: String =
        page.lines().filter(|line| line.contains("webhook=\"others\"")).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        leasehold_accounting_events_dropped_total{webhook="others",name="",tenant=""} 5600
        leasehold_accounting_events_dropped_open{webhook="others",name="",tenant=""} 2400
        leasehold_accounting_lag_events{webhook="others",name="",tenant=""} 24000
        leasehold_accounting_lag_records{webhook="others",name="",tenant=""} 40
        leasehold_accounting_oldest_event_age_seconds{webhook="others",name="",tenant=""} 5000
        leasehold_accounting_memory_events{webhook="others",name="",tenant=""} 8000
        leasehold_accounting_disk_events{webhook="others",name="",tenant=""} 16000
        leasehold_accounting_dead_letters{webhook="others",name="",tenant=""} 1600
        leasehold_accounting_disabled{webhook="others",name="",tenant=""} 1
        leasehold_accounting_unreachable{webhook="others",name="",tenant=""} 799
        leasehold_accounting_unread{webhook="others",name="",tenant=""} 0
        leasehold_accounting_over_threshold{webhook="others",name="",tenant=""} 800
        leasehold_accounting_memory_used_ratio{webhook="others",name="",tenant=""} 0.812
        leasehold_accounting_attempts_total{webhook="others",name="",tenant=""} 720000
        leasehold_accounting_delivered_total{webhook="others",name="",tenant=""} 640000
        leasehold_accounting_failures_total{webhook="others",name="",tenant=""} 80000
    "#]]
    .assert_eq(&others);
    assert_eq!(lines(&page, &["leasehold_accounting_lag_events{"]).lines().count(), 201);
}

/// The metrics on the page, with their types.
fn names_on(page: &str) -> BTreeSet<(String, String)> {
    let typed = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    typed.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect()
}

#[test]
fn the_reference_page_lists_all_metrics() {
    let mut scene = Scene::played();
    scene.deliveries = delivering();
    scene.metrics.served(0, 200, Duration::ZERO);
    let shown = names_on(&scene.page());
    let reference = include_str!("../../../../docs/reference/metrics.md");
    let rows = reference.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `leasehold_")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`');
        Some((format!("leasehold_{name}"), cells.next()?.to_owned()))
    });
    assert_eq!(shown, rows.collect());
}

/// Runs promtool, which `make test` installs.
fn promtool(args: &[&str], input: &str) {
    let mut child = Process::new("promtool")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is in the PATH; Debian's package prometheus has it");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool {args:?}: {said}");
}

#[test]
fn prometheus_can_read_the_page_and_the_rules() {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus");
    let rules = format!("{packaging}/leasehold.rules.yml");
    promtool(&["check", "rules", &rules], "");
    promtool(&["test", "rules", &format!("{packaging}/leasehold.rules.test.yml")], "");
    let mut scene = Scene::played();
    scene.deliveries = delivering();
    promtool(&["check", "metrics"], &scene.page());
}

#[test]
fn every_alert_has_a_runbook_and_uses_existing_metrics() {
    let rules = include_str!("../../../../packaging/prometheus/leasehold.rules.yml");
    let runbook = include_str!("../../../../docs/how-to/monitor.md");
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 10);
    for alert in &alerts {
        assert!(runbook.contains(&format!("\n### {alert}\n")), "{alert} has no paragraph");
        let link = format!("runbook: docs/how-to/monitor.md#{}\n", alert.to_lowercase());
        assert!(rules.contains(&link), "{alert} has no link to its paragraph");
        let tests = include_str!("../../../../packaging/prometheus/leasehold.rules.test.yml");
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert} is not tested");
    }
    let reference = include_str!("../../../../docs/reference/metrics.md");
    for text in [rules, runbook] {
        for word in text
            .split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
            .filter(|word| word.starts_with("leasehold_") && *word != "leasehold_server")
        {
            let base = word.trim_end_matches("_bucket");
            assert!(reference.contains(&format!("| `{base}` |")), "{word} is not on the reference page");
        }
    }
}
