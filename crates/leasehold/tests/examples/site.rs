//! A daemon in this process, because months have to pass; the commands are those of the built program.

use super::STORY;
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

pub(super) struct Site {
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
    pub(super) fn open(projects: &[&str]) -> Self {
        Self::with(projects, |_| {})
    }

    pub(super) fn with(projects: &[&str], shape: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(ManualClock::at(BEGAN));
        let mut config = Config { data: folder.path().join("data"), listen: "127.0.0.1:0".into(), ..Config::default() };
        shape(&mut config);
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

    fn output(&self, line: &str) -> (bool, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .args(line.split_whitespace())
            .env("LEASEHOLD_URL", &self.url)
            .env("LEASEHOLD_TOKEN", &self.token)
            .env("NO_COLOR", "1")
            .output()
            .expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    }

    #[track_caller]
    pub(super) fn run(&self, line: &str) -> String {
        let (good, out, err) = self.output(line);
        assert!(good, "{line}\n{out}{err}");
        out
    }

    /// Runs a command that is refused with a code.
    #[track_caller]
    pub(super) fn refused(&self, line: &str, code: &str) {
        let (good, out, err) = self.output(line);
        assert!(!good && err.contains(&format!("({code})")), "{line}\n{out}{err}");
    }

    #[track_caller]
    pub(super) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.run(&format!("{line} --json"))).expect("JSON")
    }

    pub(super) fn all(&self, lines: &[&str]) {
        lines.iter().for_each(|line| drop(self.run(line)));
    }

    pub(super) fn instance(&self, project: &str, more: &str) {
        self.run(&format!("app-instance create rt --tenant bio --project {project} --app app {more}"));
    }

    /// Holds something for two hours.
    pub(super) fn hold(&self, project: &str, what: &str) {
        self.run(&format!("lease request --tenant bio --project {project} --ttl 2h --app-instance rt {what}"));
    }

    /// Two hours later the runtime reports usage from 21:30 to 22:30.
    pub(super) fn report(&self, project: &str, unit: &str, quantity: &str, more: &str) -> String {
        self.run(&format!(
            "usage-record report rt --id {project}-{unit}-{quantity} --tenant bio --project {project} --unit {unit} \
             --quantity {quantity} --from 2026-01-31T21:30:00Z --to 2026-01-31T22:30:00Z --correlation {STORY} {more}"
        ))
    }

    /// Lets time pass.
    pub(super) fn advance(&self, hours: u64) {
        self.clock.advance(Span::from_secs(hours * HOUR));
    }

    pub(super) fn pass(&self, hours: u64) {
        self.advance(hours);
        // Something is recorded at this time, so that everything before it is known.
        self.run("tenant set bio --accounting-tag passed");
        self.run("ledger settle");
    }

    /// Closes the month, and shows the invoice of the tenant and the story.
    pub(super) fn bill(&self, tenant: &str) -> (String, String) {
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
pub(super) fn row(text: &str, words: &[&str]) {
    let found = text.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(found, "no row with {words:?} in\n{text}");
}
