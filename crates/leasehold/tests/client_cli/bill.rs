//! The bill of a tenant, from the closed month to the proof that its payer checks, against a real daemon. Its journal was
//! begun in the month before last, with a simulated clock.

use super::{Daemon, refuses, tells};
use leasehold_cell::{Clock as _, Core, ManualClock, Now, Pending, StartOptions, SystemClock, commit, publish};
use leasehold_engine::command::{OpenLedger, PutClass, PutNode, PutPool, PutProject, PutTenant, RequestLease};
use leasehold_engine::{Command, Request};
use leasehold_journal::{Journal, Local, Options};
use leasehold_model::body::PerPriority;
use leasehold_model::{
    ClassNo, ClassSpec, Identity, Instant, Month, Name, PoolNo, ProjectNo, Quanta, ResourceKind, Span, Strategy,
    TeardownMode, TenantNo, TenantSettings,
};
use leasehold_server::{DataDirectory, software};
use leasehold_verify::invoice::{InvoiceArgs, run};
use serde_json::json;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ORIGIN: &str = "bill.example";

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// A journal that is written decision by decision.
struct Past {
    core: Core,
    now: Now,
    journal: Arc<dyn Journal>,
    clock: Arc<ManualClock>,
    pending: Pending<()>,
}

impl Past {
    fn begin(data: &Path, at: Instant) -> Self {
        let directory = DataDirectory::prepare(data).expect("a data directory");
        let keys = Arc::new(directory.keys(Some(ORIGIN), ORIGIN).expect("keys"));
        let clock = Arc::new(ManualClock::at(at));
        let local = Local::new(directory.secret().expect("a secret"));
        let options = StartOptions::new(software(), keys.public_keys()[0]);
        let (journal, _) = directory.open_journal(keys, Options::default(), local, &*clock).expect("a journal");
        let journal: Arc<dyn Journal> = Arc::new(journal);
        let (core, now, _) = Core::open(Arc::clone(&journal), clock.clone(), &options).expect("a cell");
        Self { core, now, journal, clock, pending: Pending::new() }
    }

    fn write(&mut self) {
        commit(&*self.journal, &mut self.pending).expect("it is durable");
        publish(&*self.journal, &self.now, &mut self.pending, |(), _| {}).expect("it is applied");
        self.journal.prepare().expect("there is space");
    }

    fn decide(&mut self, of: Option<(u32, u32)>, command: Command) {
        let (tenant, project) = of.map(|(tenant, project)| (TenantNo(tenant), ProjectNo(project))).unzip();
        let request = Request::new(Identity { tenant, project, ..Identity::default() }, command);
        let mut requests = VecDeque::from([((), request)]);
        self.core.decide(&mut requests, &mut self.pending, 0);
        assert!(requests.is_empty(), "there is room");
        let before = self.journal.head().size;
        self.write();
        assert!(self.journal.head().size > before, "it was not refused");
    }

    /// Advances the clock; timers that become due on the way are applied when they are due.
    fn advance_to(&mut self, at: Instant) {
        loop {
            let due = self.core.next_due().max(self.clock.wall()).min(at);
            self.clock.advance(due.since(self.clock.wall()));
            while !self.core.tick(&mut self.pending, 0) {
                self.write();
            }
            self.write();
            if due >= at {
                return;
            }
        }
    }

    fn lease(&mut self, of: (u32, u32), gpus: u64) {
        let request = RequestLease::of(ClassNo(0), Quanta(gpus), Span::from_secs(2 * 3600));
        self.decide(Some(of), Command::Request(request));
    }
}

/// In the first month `physics` holds two GPUs for two hours, in the second one three. `chemistry` holds one in each.
fn two_months(data: &Path, first: Month) {
    let hour = Span::from_secs(3600);
    let mut past = Past::begin(data, first.start().saturating_add(hour));
    let spec =
        ClassSpec { name: name("h100"), kind: ResourceKind::Gpu, tier: None, quanta_per_unit: 1, premium: false };
    let none = PerPriority([None, None, None]);
    let pool = PutPool {
        pool: None,
        name: name("main"),
        strategy: Strategy::Spread,
        ttl_max: none,
        lifetime_max: none,
        grace: None,
        weights: None,
        queue: None,
    };
    let node = PutNode {
        node: None,
        name: name("n1"),
        pool: PoolNo(0),
        rack: None,
        zone: None,
        labels: Vec::new(),
        teardown: TeardownMode::Immediate,
        capacity: vec![(ClassNo(0), Quanta(8))],
    };
    past.decide(None, Command::OpenLedger(OpenLedger { from: None }));
    past.decide(None, Command::PutClass(PutClass { class: None, spec }));
    past.decide(None, Command::PutPool(pool));
    past.decide(None, Command::PutNode(node));
    for (tenant, text) in [(0, "physics"), (1, "chemistry")] {
        past.decide(None, Command::PutTenant(PutTenant { tenant: None, settings: TenantSettings::named(name(text)) }));
        let project = name(&format!("{text}-main"));
        past.decide(None, Command::PutProject(PutProject { project: None, tenant: TenantNo(tenant), name: project }));
    }
    for (month, gpus) in [(first, 2), (first.next(), 3)] {
        past.advance_to(month.start().saturating_add(Span(2 * hour.0)));
        past.lease((0, 0), gpus);
        past.lease((1, 1), 1);
        past.advance_to(month.start().saturating_add(Span(6 * hour.0)));
    }
    past.write();
    past.journal.close(past.clock.wall()).expect("it is closed");
}

/// What `leasehold-verify invoice FILE --trust TRUST` exits with.
fn verify(file: &Path, trust: &Path) -> u8 {
    run(&InvoiceArgs { file: file.to_owned(), trust: trust.to_owned(), with: Vec::new(), json: false })
}

fn written(daemon: &Daemon, file: &str, bytes: &[u8]) -> PathBuf {
    let path = daemon.path(file);
    fs::write(&path, bytes).expect("a file");
    path
}

#[test]
fn a_payer_proves_its_bill_and_compares_two_months() {
    let folder = tempfile::tempdir().expect("a folder");
    let second = Month::of(SystemClock::new().wall()).previous();
    let first = second.previous();
    two_months(&folder.path().join("data"), first);
    let daemon = Daemon::serving(folder, "--listen 127.0.0.1:0 --data {}/data --accept-clock");
    daemon.run("token issue payer --role tenant-admin --tenant physics --out {}/payer.token").ok();
    tells(&daemon.run(&format!("period close {first} --yes")).ok(), &["closed"]);
    // A GPU costs 0.01 EUR a second: two of them for two hours are 144, three are 216.
    let draft = daemon.by("payer.token", "invoice draft --json").ok().json();
    assert_eq!(draft["drafts"][0]["total"], "216.000000", "{draft}");
    let draft = written(&daemon, "draft.json", draft.to_string().as_bytes());
    let post = "--tenant physics --currency EUR --reason fee --leg receivable=25 --leg adjustments=-25";
    daemon.run(&format!("ledger post physics-main {post}")).ok();
    tells(&daemon.run(&format!("period close {second} --yes")).ok(), &["closed"]);
    let listed = daemon.by("payer.token", "invoice list --json").ok().json();
    let invoices = listed["invoices"].as_array().expect("a list");
    let number = |month: Month| {
        let of_month = |invoice: &&serde_json::Value| invoice["month"] == month.to_string().as_str();
        let found = invoices.iter().find(of_month).expect("an invoice");
        (found["number"].as_str().expect("text").to_owned(), found["total"].clone())
    };
    let ((one, one_total), (two, two_total)) = (number(first), number(second));
    assert_eq!((one_total, two_total), (json!("144.000000"), json!("241.000000")));

    // The difference of two months, and of a draft and what became of it.
    let diff = daemon.by("payer.token", &format!("invoice diff {one} {two}")).ok();
    tells(&diff, &["97.000000 EUR more", "h100", "+72.000000", "booked by hand", "+25.000000"]);
    let diff = daemon.by("payer.token", &format!("invoice diff {} {two}", draft.display())).ok();
    tells(&diff, &["25.000000 EUR more", "booked by hand", "+25.000000"]);

    // The proof, with the tenant's own token; that of another tenant is not for it.
    let file = daemon.path("bill.proof");
    let about: serde_json::Value = serde_json::from_str(&daemon.get("/api/v1/about")).expect("JSON");
    daemon.until_signed_beyond(about["size"].as_u64().expect("a size") - 1);
    daemon.by("payer.token", &format!("invoice prove {two} --out {}", file.display())).ok();
    let others = daemon.json("invoice list --tenant chemistry")["invoices"][0]["number"].clone();
    let others = others.as_str().expect("text").to_owned();
    refuses(&daemon.by("payer.token", &format!("invoice prove {others}")), 1, "unknown_invoice");
    let trust = daemon.run("audit trust --data {}/data").ok().out;
    let trust = written(&daemon, "my.trust", trust.as_bytes());
    assert_eq!(verify(&file, &trust), 0);
    let bytes = fs::read(&file).expect("a file");
    let mut changed = bytes.clone();
    *changed.get_mut(bytes.len() / 2).expect("a byte") ^= 1;
    for (what, bytes) in [
        ("changed", changed),
        ("padded", [&bytes[..], &[0]].concat()),
        ("cut", bytes[..bytes.len() - 1].to_vec()),
        ("doubled", [&bytes[..], &bytes[..]].concat()),
    ] {
        assert_eq!(verify(&written(&daemon, what, &bytes), &trust), 3, "{what}");
    }
}
