//! Usage records in batches, with their IDs checked against those that are remembered; what the memory of the daemon
//! grows by, and how long it takes to start again.
//!
//! `make bench` remembers two million IDs, so that it stays short. `make bench-usage-ids` remembers as many as the goal
//! says, which takes a quarter of an hour and 12 GB of disk.

use super::child::{Served, note_resident};
use super::load::{self, Client, Until};
use super::request::post;
use crate::Outcome;
use crate::bulk::{operate_all, send_all};
use crate::work::{cluster, name};
use leasehold_engine::command::{PutAppInstance, PutAppType, PutUnitPrice, RecordUsage};
use leasehold_engine::{Command, Request};
use leasehold_model::app::STANDARD_UNITS;
use leasehold_model::body::UsageReport;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    AppInstanceNo, AppOrigin, AppTypeNo, ControlPlaneScope, Identity, Instant, Name, OperatingMode, ProjectNo,
    RuntimeBackend, Span, TenantNo, UnitNo, UnitQuantity,
};
use leasehold_server::Daemon;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as Stopwatch};

const RECORDS: u64 = 1000;
const CONNECTIONS: u64 = 8;
const TENANTS: u32 = 100;

/// Batches that were sent again because the books were behind.
static BEHIND: AtomicU64 = AtomicU64::new(0);

fn ids() -> u64 {
    let asked = std::env::var("LEASEHOLD_BENCH_USAGE_IDS").ok();
    asked.map_or(2_000_000, |text| text.parse().expect("LEASEHOLD_BENCH_USAGE_IDS is a number"))
}

fn requests() -> UnitNo {
    STANDARD_UNITS.iter().find(|(_, name, _)| *name == "requests").expect("a standard unit").0
}

/// In the child: a runtime of each tenant, and the IDs of earlier records.
pub(super) fn furnish(daemon: &Daemon) {
    let cell = daemon.cell();
    operate_all(cell, cluster(1, TENANTS));
    let unit = requests();
    let price =
        PutUnitPrice { unit, app_type: None, currency: Currency::DEFAULT, price: Decimal(5_000_000), from: None };
    let app = PutAppType { app_type: None, slug: name("chat"), origin: AppOrigin::Internal, units: vec![unit] };
    operate_all(cell, vec![Command::PutUnitPrice(price), Command::PutAppType(app)]);
    let instance = |tenant: u32| {
        Command::PutAppInstance(PutAppInstance {
            app_instance: None,
            project: ProjectNo(tenant),
            name: name("llama"),
            app_type: AppTypeNo(0),
            mode: OperatingMode::TenantDedicated,
            scope: ControlPlaneScope::Project,
            backend: RuntimeBackend::Serving,
        })
    };
    operate_all(cell, (0..TENANTS).map(instance).collect());
    note_resident(daemon);
    // They ended at different hours of the last days.
    let now = cell.now().read(leasehold_engine::State::last_stamp);
    let requests = (0..ids()).map(|number| {
        let tenant = (number % u64::from(TENANTS)) as u32;
        let to = Instant(now.0 - 1_000_000_000 - number % (20 * 24 * 3600) * 1_000_000_000);
        let report = UsageReport {
            reporter: None,
            source: name("gateway"),
            id: Name::new(&format!("old-{number:010}")).expect("a name"),
            app_instance: AppInstanceNo(u64::from(tenant)),
            unit,
            quantity: UnitQuantity::of_whole(1),
            from: to,
            to,
            correlation: u128::from(number),
            control_plane: false,
            attachment: None,
            allocation: None,
            supersedes: None,
        };
        let record = RecordUsage {
            tenant: TenantNo(tenant),
            project: ProjectNo(tenant),
            user: None,
            report,
            replaces: None,
            replaced_creditor: None,
            named: None,
            // Nobody asked the books: these IDs differ.
            known_to: u64::MAX,
        };
        (Request::new(Identity::default(), Command::RecordUsage(record)), 0)
    });
    send_all(cell, requests, |_, _| {});
}

struct Gateway {
    token: String,
    connection: u64,
    sent: u64,
    at: String,
    /// The last batch was not accepted as a whole, because the books were behind: it is sent again, as a client does.
    /// What was recorded of it is not recorded twice.
    is_sent_again: bool,
}

impl Gateway {
    fn new(token: &str, connection: u64, at: &str) -> Self {
        Self { token: token.to_owned(), connection, sent: 0, at: at.to_owned(), is_sent_again: false }
    }
}

impl Client for Gateway {
    fn next(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_sent_again) {
            self.sent -= 1;
        }
        let mut body = String::with_capacity(420 * RECORDS as usize);
        body.push_str(r#"{"records":["#);
        for n in 0..RECORDS {
            let comma = if n > 0 { "," } else { "" };
            let number = self.sent * RECORDS + n;
            let (tenant, connection, at) = (number % u64::from(TENANTS), self.connection, &self.at);
            write!(
                body,
                r#"{comma}{{"id":"new-{connection}-{number}","org_id":"tenant-{tenant:04}","project_id":"main","app_instance_id":"{tenant}","app_slug":"chat","operating_mode":"tenant_dedicated","control_plane_scope":"project","runtime_backend":"serving","correlation_id":"{number:032x}","usage_source":"app_runtime","usage_unit":"requests","quantity":1,"from":"{at}","to":"{at}"}}"#
            )
            .expect("memory takes everything");
        }
        body.push_str("]}");
        self.sent += 1;
        out.extend_from_slice(&post("/api/v1/usage-records", &self.token, None, &body));
    }

    fn take(&mut self, status: u16, body: &[u8]) -> u64 {
        if status == 200 && is_accepted(body) {
            return RECORDS;
        }
        let text = String::from_utf8_lossy(body);
        let said = || text.chars().take(500).collect::<String>();
        assert!([200, 503].contains(&status) && text.contains("books_behind"), "{status} {}", said());
        BEHIND.fetch_add(1, Ordering::Relaxed);
        self.is_sent_again = true;
        0
    }
}

/// Whether all records of a batch are accepted.
fn is_accepted(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains(&format!(r#""accepted":{RECORDS}"#))
}

/// Ten minutes ago, as the API writes it.
fn earlier() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let at = u64::try_from(now.as_nanos()).expect("before 2554") - Span::from_secs(600).0;
    leasehold_api::When(Instant(at)).to_string()
}

pub(crate) fn run() -> Vec<Outcome> {
    let began = Stopwatch::now();
    let served = Served::start_with_usage();
    eprintln!("  usage: {} IDs remembered after {:.0} s", ids(), began.elapsed().as_secs_f64());
    let at = earlier();
    served.wait_for_books();
    wait_until_accepted(&served, 9_998, &at);
    eprintln!("  usage: the books have them after {:.0} s", began.elapsed().as_secs_f64());
    let (before, remembering) = (served.resident_before(), served.resident_bytes());
    let load = |seed: u64, batches: u64| {
        let gateway = |n: u64| Gateway::new(&served.token, seed * 100 + n, &at);
        load::run(served.address(), (0..CONNECTIONS).map(gateway).collect(), Until::Answered(batches))
    };
    load(0, 10);
    let rounds: Vec<f64> = (1..=3)
        .map(|round| {
            let loaded = load(round, 50);
            let (rate, wait) = (loaded.per_second(), loaded.percentile(990) / 1000.0);
            eprintln!("  usage: {rate:.0} records/s in batches of {RECORDS}, p99 of a batch {wait:.0} ms");
            rate
        })
        .collect();
    let best = rounds.iter().copied().fold(0.0, f64::max);
    let resident = served.resident_bytes();
    let mib = |bytes: f64| bytes / 1_048_576.0;
    eprintln!(
        "  usage: {:.0} MiB before the IDs, {:.0} MiB with them, {:.0} MiB after the load",
        mib(before),
        mib(remembering),
        mib(resident)
    );
    let started = Stopwatch::now();
    let again = served.again();
    let restart = started.elapsed();
    wait_until_accepted(&again, 9_999, &at);
    let accepting = started.elapsed();
    eprintln!("  usage: restarted in {restart:.1?}, usage is accepted after {accepting:.1?}");
    let remembered = format!("{} IDs remembered", ids());
    let behind = format!("{remembered}; {} batches sent again, with the books behind", BEHIND.load(Ordering::Relaxed));
    vec![
        Outcome::at_least("usage_records.rate", best, "1/s", ">= 50000", 50_000.0).note(behind),
        Outcome::at_most("usage_records.memory", mib(remembering - before), "MiB", "< 200", 200.0)
            .note(format!("{remembered}; {:.0} MiB in all after the load", mib(resident))),
        Outcome::at_most("usage_records.restart", accepting.as_secs_f64(), "s", "<= 5", 5.0).note(remembered),
    ]
}

/// Usage is accepted once the books have caught up.
fn wait_until_accepted(served: &Served, connection: u64, at: &str) {
    let deadline = Stopwatch::now() + Duration::from_secs(600);
    loop {
        // The same again and again: they are accepted once.
        let mut gateway = Gateway::new(&served.token, connection, at);
        let mut request = Vec::new();
        gateway.next(&mut request);
        let (status, body) = super::fetch::fetch(served, &request);
        if status == 200 && is_accepted(&body) {
            return;
        }
        assert!(Stopwatch::now() < deadline, "usage is accepted after a restart");
        std::thread::sleep(Duration::from_millis(50));
    }
}
