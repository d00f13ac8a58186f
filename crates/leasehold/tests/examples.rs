//! The examples of the document that asked for the billing of app runtimes, on the command line: from the registry to the
//! invoice and the timeline. A core costs 0.002 EUR a second and a GPU 0.01, so that two hours of them are 14.40 and 72.00.
//!
//! The daemon runs in this process, because months have to pass; the commands are those of the built program.

use leasehold_cell::ManualClock;
use leasehold_model::{Instant, Span};
use leasehold_server::config::Config;
use leasehold_server::{Daemon, Start, UnprovedTail};
use serde_json::Value;
use std::process::Command;
use std::sync::Arc;
use tokio::sync::oneshot;

/// 2026-01-31 21:20 in UTC.
const BEGAN: Instant = Instant(1_769_894_400_000_000_000);
const HOUR: u64 = 3600;
const STORY: &str = "7a0e1c52-90fd-4a51-8f7e-0a1f5c6b2d10";

struct Site {
    url: String,
    token: String,
    clock: Arc<ManualClock>,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<Result<(), String>>>,
    runtime: tokio::runtime::Runtime,
    _folder: tempfile::TempDir,
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.stop.take().expect("it runs").send(());
        let served = self.served.take().expect("it runs");
        self.runtime.block_on(served).expect("no panic").expect("the daemon stops");
    }
}

impl Site {
    /// A tenant `bio` with projects, and an app whose units have prices.
    fn open(projects: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(ManualClock::at(BEGAN));
        let config = Config { data: folder.path().join("data"), listen: "127.0.0.1:0".into(), ..Config::default() };
        let start = Start {
            clock: Arc::clone(&clock) as Arc<_>,
            accept_clock: false,
            unproved_tail: UnprovedTail::Refuse,
            new_operator_token: false,
            on_failure: Arc::new(|why| panic!("the journal failed: {why}")),
        };
        let daemon = Daemon::open(config, start).unwrap_or_else(|error| panic!("{error}"));
        let token = std::fs::read_to_string(daemon.data_directory().operator_token()).expect("a token");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (stop, stopped) = oneshot::channel::<()>();
        let served = runtime.spawn(daemon.serve(listener, async {
            let _ = stopped.await;
        }));
        let token = token.trim().to_owned();
        let (stop, served) = (Some(stop), Some(served));
        let site = Self { url, token, clock, stop, served, runtime, _folder: folder };
        site.all(&["class create h100 --kind gpu", "class create core --kind cpu", "pool create main"]);
        site.all(&["node create n1 --pool main --teardown immediate --class h100=8 --class core=64"]);
        site.run("tenant create bio");
        projects.iter().for_each(|project| drop(site.run(&format!("project create {project} --tenant bio"))));
        for (unit, price) in [("job_hours", "0.25"), ("gpu_hours", "0.5"), ("uptime_hours", "1"), ("requests", "0.005")]
        {
            site.run(&format!("unit price {unit} {price}"));
        }
        let units = "--unit job_hours --unit gpu_hours --unit uptime_hours --unit requests";
        site.run(&format!("app create app --origin third-party {units}"));
        site
    }

    #[track_caller]
    fn run(&self, line: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .args(line.split_whitespace())
            .env("LEASEHOLD_URL", &self.url)
            .env("LEASEHOLD_TOKEN", &self.token)
            .env("NO_COLOR", "1")
            .output()
            .expect("the program runs");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{line}\n{out}{err}");
        out.into_owned()
    }

    #[track_caller]
    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.run(&format!("{line} --json"))).expect("JSON")
    }

    fn all(&self, lines: &[&str]) {
        lines.iter().for_each(|line| drop(self.run(line)));
    }

    fn instance(&self, project: &str, more: &str) {
        self.run(&format!("app-instance create rt --tenant bio --project {project} --app app {more}"));
    }

    /// Holds something for two hours.
    fn hold(&self, project: &str, what: &str) {
        self.run(&format!("lease request --tenant bio --project {project} --ttl 2h --app-instance rt {what}"));
    }

    /// Two hours later the runtime reports usage from 21:30 to 22:30.
    fn report(&self, project: &str, unit: &str, quantity: &str, more: &str) -> String {
        self.run(&format!(
            "usage-record report rt --id {project}-{unit}-{quantity} --tenant bio --project {project} --unit {unit} \
             --quantity {quantity} --from 2026-01-31T21:30:00Z --to 2026-01-31T22:30:00Z --correlation {STORY} {more}"
        ))
    }

    fn pass(&self, hours: u64) {
        self.clock.advance(Span::from_secs(hours * HOUR));
        // Something is recorded at this time, so that everything before it is known.
        self.run("tenant set bio --accounting-tag passed");
        self.run("ledger settle");
    }

    /// Closes the month, and shows the invoice of the tenant and the story.
    fn bill(&self, tenant: &str) -> (String, String) {
        if self.json("period show 2026-01")["state"] != "closed" {
            self.pass(4);
            self.run("period close 2026-01 --yes");
        }
        let list = self.json(&format!("invoice list --tenant {tenant}"));
        let number = list["invoices"][0]["number"].as_str().expect("a number").to_owned();
        (self.run(&format!("invoice show {number}")), self.run(&format!("timeline {STORY}")))
    }
}

/// The rows of a table that have all of these words.
#[track_caller]
fn row(text: &str, words: &[&str]) {
    let found = text.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(found, "no row with {words:?} in\n{text}");
}

#[test]
fn slurm_of_a_project() {
    let site = Site::open(&["dev"]);
    site.instance("dev", "--backend slurm");
    site.hold("dev", "--cpu 2 --control-plane");
    site.hold("dev", "--gpu 1");
    site.pass(2);
    site.report("dev", "job_hours", "2", "");
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["dev", "control plane", "core", "28.800000"]);
    row(&invoice, &["dev", "workload", "h100", "72.000000"]);
    row(&invoice, &["dev", "workload", "job_hours", "0.500000"]);
    row(&invoice, &["total", "101.300000"]);
    for event in ["usage.recorded", "ledger.posted", "invoice.issued"] {
        row(&story, &[event]);
    }
}

/// The controller is shared by what was used: `c`, which lends nothing, used one GPU-hour and `a` two. The GPU that `a`
/// lends (72.00) stays with `a`, and the two that `b` lends (144.00) with `b`, which used nothing.
#[test]
fn slurm_that_a_tenant_shares() {
    let site = Site::open(&["hpc", "a", "b", "c"]);
    site.instance("hpc", "--backend slurm --scope tenant");
    site.hold("hpc", "--cpu 2 --control-plane");
    let lend = |project: &str, gpus: u32| {
        let lent =
            site.json(&format!("attachment make rt --project {project} --tenant bio"))["attachment"]["id"].to_string();
        let submit = format!(
            "alloc submit --gpu {gpus} --ttl 2h --tenant bio --project hpc --app-instance rt --attachment {lent}"
        );
        let held = site.json(&submit)["id"].as_str().expect("an allocation").to_owned();
        (lent, held)
    };
    let (lent, held) = lend("a", 1);
    lend("b", 2);
    site.run("sharing set app --tenant bio --app-instance rt --method by-usage --unit gpu_hours");
    site.pass(2);
    let worker = format!("--attachment {lent} --allocation {held}");
    row(&site.report("c", "gpu_hours", "1", &worker), &["reported"]);
    site.report("a", "gpu_hours", "2", &worker);
    let draft = site.run("sharing shares");
    row(&draft, &["draft"]);
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["hpc", "control plane", "core", "28.800000"]);
    row(&invoice, &["hpc", "share", "rt", "-28.800000"]);
    row(&invoice, &["a", "share", "19.200000"]);
    row(&invoice, &["c", "share", "9.600000"]);
    row(&invoice, &["a", "workload", "h100", "rt, held by hpc", "72.000000"]);
    row(&invoice, &["b", "workload", "h100", "rt, held by hpc", "144.000000"]);
    row(&invoice, &["total", "244.800000"]);
    row(&story, &["usage.recorded"]);
    row(&site.run("ledger balances --account shared_runtime"), &["rt", "0.000000"]);
    let shares = site.json("sharing shares --month 2026-01");
    let entry = shares["shares"][2]["entry"].as_str().expect("an entry").to_owned();
    row(&site.run(&format!("ledger explain {entry}")), &["28.800000 EUR × 1 / 3", "9.600000"]);
}

/// The policy bills GPU-hours: `c` pays 10 × 0.50 for the GPU that `a` lends, and `a` gets it back.
#[test]
fn work_on_a_shared_slurm_is_charged() {
    let site = Site::open(&["hpc", "a", "c"]);
    site.instance("hpc", "--backend slurm --scope tenant");
    let lent = site.json("attachment make rt --project a --tenant bio")["attachment"]["id"].to_string();
    let submit =
        format!("alloc submit --gpu 1 --ttl 2h --tenant bio --project hpc --app-instance rt --attachment {lent}");
    let held = site.json(&submit)["id"].as_str().expect("an allocation").to_owned();
    site.run("policy set app --tenant bio --app-instance rt --billed-work gpu_hours");
    site.pass(2);
    let worker = format!("--attachment {lent} --allocation {held}");
    row(&site.report("c", "gpu_hours", "10", &worker), &["billed"]);
    let costs = site.json("cost --by project --tenant bio --from 2026-01-31T21:00:00Z");
    assert_eq!(costs["total_credited"][0]["amount"], "5.000000", "{costs}");
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["a", "workload", "h100", "72.000000"]);
    row(&invoice, &["a", "gpu_hours", "-10", "-5.000000"]);
    row(&invoice, &["c", "gpu_hours", "5.000000"]);
    row(&invoice, &["total", "72.000000"]);
    row(&story, &["invoice.issued"]);
}

#[test]
fn private_model_serving() {
    let site = Site::open(&["chat"]);
    site.instance("chat", "--backend serving");
    site.hold("chat", "--gpu 1");
    site.pass(2);
    site.report("chat", "uptime_hours", "1", "");
    site.report("chat", "requests", "1000", "");
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["chat", "h100", "72.000000"]);
    row(&invoice, &["chat", "uptime_hours", "1.000000"]);
    row(&invoice, &["chat", "requests", "5.000000"]);
    row(&invoice, &["total", "78.000000"]);
    row(&story, &["invoice.issued"]);
}

/// The overhead (57.60) is divided by service tiers: three parts for `chat` (gold), one for `map` of another tenant.
#[test]
fn platform_managed_inference() {
    let site = Site::open(&["ops", "chat"]);
    site.all(&["tenant create geo", "project create map --tenant geo"]);
    site.instance("ops", "--backend serving --mode platform-managed");
    site.hold("ops", "--cpu 4 --control-plane");
    site.run(
        "sharing set app --tenant bio --app-instance rt --method by-tier --tier gold=3 --tier bronze=1 \
         --project-tier bio/chat=gold --default-tier bronze",
    );
    site.pass(2);
    site.report("chat", "requests", "1000", "");
    site.run(&format!(
        "usage-record report rt --id m1 --tenant geo --project map --unit requests --quantity 200 \
         --from 2026-01-31T21:30:00Z --to 2026-01-31T22:30:00Z --correlation {STORY}"
    ));
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["chat", "requests", "5.000000"]);
    row(&invoice, &["chat", "share", "43.200000"]);
    row(&invoice, &["ops", "control plane", "57.600000"]);
    row(&invoice, &["ops", "share", "-57.600000"]);
    row(&invoice, &["total", "48.200000"]);
    let (invoice, _) = site.bill("geo");
    row(&invoice, &["map", "requests", "1.000000"]);
    row(&invoice, &["map", "share", "14.400000"]);
    row(&invoice, &["total", "15.400000"]);
    row(&story, &["invoice.issued"]);
}

#[test]
fn the_head_of_a_ray_cluster_and_its_workers() {
    let site = Site::open(&["train"]);
    site.instance("train", "--backend ray");
    site.hold("train", "--cpu 4 --control-plane");
    site.hold("train", "--gpu 2");
    site.pass(2);
    site.report("train", "uptime_hours", "1", "--control-plane");
    site.report("train", "gpu_hours", "3", "");
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["train", "control plane", "core", "57.600000"]);
    row(&invoice, &["train", "control plane", "uptime_hours", "1.000000"]);
    row(&invoice, &["train", "workload", "h100", "144.000000"]);
    row(&invoice, &["train", "workload", "gpu_hours", "1.500000"]);
    row(&invoice, &["total", "204.100000"]);
    row(&story, &["invoice.issued"]);
}
