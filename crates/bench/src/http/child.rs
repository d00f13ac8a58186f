//! The daemon in a separate process: this program, started again.

use crate::bulk::{operate_all, send_all};
use crate::scratch;
use crate::work::{cluster, large_cluster};
use leasehold_cell::SystemClock;
use leasehold_engine::command::RequestLease;
use leasehold_engine::{Command, Request};
use leasehold_model::{Body, ClassNo, Identity, PoolNo, ProjectNo, Quanta, Span, TenantNo};
use leasehold_server::config::Config;
use leasehold_server::{Daemon, Start, listen};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use tokio::net::TcpListener;

const ASKED: &str = "--serve-for-bench";
/// With an existing journal.
const ASKED_AS_IT_IS: &str = "--serve-as-it-is-for-bench";
/// With a large cluster and no leases.
const ASKED_LARGE: &str = "--serve-large-for-bench";
/// With runtimes that report usage, and the IDs of earlier records.
const ASKED_USAGE: &str = "--serve-usage-for-bench";
/// With deliveries to webhooks on this machine.
const ASKED_DELIVERIES: &str = "--serve-deliveries-for-bench";
/// The file in which the child notes its memory.
const RESIDENT_BEFORE: &str = "resident-before";
pub(super) const TENANTS: u32 = 1000;
const NODES: u32 = 1000;
const STANDING: u32 = 2000;
pub(super) const LARGE_NODES: u32 = 10_000;

/// In the child: serves the directory given on the command line until it is killed.
pub(super) fn serve_if_asked() -> bool {
    let mut arguments = std::env::args().skip(1);
    let asked = arguments.next();
    let known = [ASKED, ASKED_AS_IT_IS, ASKED_LARGE, ASKED_USAGE, ASKED_DELIVERIES];
    let Some(asked) = asked.filter(|asked| known.contains(&asked.as_str())) else { return false };
    let folder = arguments.next().expect("a directory");
    run_to_end(serve(Path::new(&folder), asked));
    true
}

/// Runs a server on as many threads as the daemon has.
pub(crate) fn run_to_end(server: impl Future<Output = ()>) {
    listen::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(server);
}

/// Any free port.
pub(crate) fn bind() -> TcpListener {
    listen::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port")
}

/// Reports to the parent where the server listens, and anything else on the same line.
pub(super) fn report(listener: &TcpListener, more: &str) {
    println!("{} {more}", listener.local_addr().expect("an address"));
    std::io::stdout().flush().expect("the parent reads");
}

async fn serve(folder: &Path, asked: String) {
    let furnished = asked == ASKED_AS_IT_IS;
    let data = if furnished { folder.to_owned() } else { folder.join("data") };
    let mut config = Config { data, origin: Some(scratch::ORIGIN.into()), ..Config::default() };
    config.limits.connections = 12_000;
    config.limits.streams = 11_000;
    // One token sends everything, and what it could send is what is measured.
    config.rate.operations_per_second = 0;
    if asked == ASKED_DELIVERIES {
        config.accounting.enabled = true;
        config.accounting.webhooks.allowed_networks = vec!["127.0.0.0/8".to_owned()];
    }
    let start = Start {
        clock: Arc::new(SystemClock::new()),
        // An existing journal may be of any time.
        accept_clock: furnished,
        unproved_tail: leasehold_server::UnprovedTail::Refuse,
        new_operator_token: false,
        on_failure: Arc::new(|why| panic!("{why}")),
    };
    let daemon = tokio::task::spawn_blocking(move || {
        let daemon = Daemon::open(config, start).unwrap_or_else(|error| panic!("{error}"));
        match asked.as_str() {
            ASKED | ASKED_DELIVERIES => furnish(&daemon),
            ASKED_LARGE => operate_all(daemon.cell(), large_cluster(LARGE_NODES, TENANTS)),
            ASKED_USAGE => super::usage_records::furnish(&daemon),
            _ => {}
        }
        daemon
    });
    let daemon = daemon.await.expect("the daemon opens");
    let listener = bind();
    let token = daemon.operator_token.clone().unwrap_or_else(|| {
        std::fs::read_to_string(daemon.data_directory().operator_token()).expect("a token").trim().to_owned().into()
    });
    report(&listener, &token);
    daemon.serve(listener, std::future::pending()).await.expect("the daemon serves");
}

/// A thousand nodes, a thousand tenants with two quotas each, and leases that stay live.
fn furnish(daemon: &Daemon) {
    operate_all(daemon.cell(), cluster(NODES, TENANTS));
    let requests = (0..STANDING).map(|lease| {
        let tenant = lease % TENANTS;
        let identity =
            Identity { tenant: Some(TenantNo(tenant)), project: Some(ProjectNo(tenant)), ..Identity::default() };
        let mut ask = RequestLease::of(ClassNo(0), Quanta(1000), Span::from_secs(23 * 3600));
        ask.pool = Some(PoolNo(0));
        (Request::new(identity, Command::Request(ask)), 0)
    });
    send_all(daemon.cell(), requests, |_, sealed| {
        assert!(matches!(sealed.records[0].body, Body::Granted(_)), "there is room");
    });
}

/// A server in a separate process: this program, started again. Dropping it kills the process.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts the program with two arguments; returns the server and what it reported beside its address.
    pub(super) fn start(how: &str, folder: &Path) -> (Self, String) {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Process::new(program);
        child.arg(how).arg(folder).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn().expect("this program starts again");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("the server reports");
        let (address, more) = line.trim_end_matches('\n').split_once(' ').expect("an address");
        (Self { address: address.parse().expect("an address"), child }, more.to_owned())
    }

    /// Processor time that the server has used.
    pub(super) fn processor_seconds(&self) -> f64 {
        processor_seconds(&self.child.id().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing it wrote is kept.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The daemon, while it is measured.
pub(crate) struct Served {
    pub(super) server: Server,
    pub(crate) token: String,
    /// Removed after the process has ended.
    folder: Option<tempfile::TempDir>,
}

impl Served {
    pub(super) fn start() -> Self {
        Self::in_new_directory(ASKED)
    }

    /// With ten thousand nodes of three kinds.
    pub(super) fn start_large() -> Self {
        Self::in_new_directory(ASKED_LARGE)
    }

    /// With runtimes that report usage.
    pub(super) fn start_with_usage() -> Self {
        Self::in_new_directory(ASKED_USAGE)
    }

    /// With deliveries to webhooks on this machine.
    pub(super) fn start_with_deliveries() -> Self {
        Self::in_new_directory(ASKED_DELIVERIES)
    }

    /// Kills the process, and starts it again on the same directory.
    pub(super) fn again(self) -> Self {
        let Self { server, folder, .. } = self;
        drop(server);
        let data = folder.as_ref().expect("a directory of its own").path().join("data");
        Self { folder, ..Self::run(ASKED_AS_IT_IS, &data) }
    }

    fn in_new_directory(how: &str) -> Self {
        let folder = scratch::folder();
        let mut served = Self::run(how, folder.path());
        served.folder = Some(folder);
        served
    }

    /// With an existing journal.
    #[cfg(feature = "ledger")]
    pub(crate) fn on(folder: &Path) -> Self {
        Self::run(ASKED_AS_IT_IS, folder)
    }

    fn run(how: &str, folder: &Path) -> Self {
        let (server, token) = Server::start(how, folder);
        Self { server, token, folder: None }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Processor time that the daemon has used.
    pub(super) fn processor_seconds(&self) -> f64 {
        self.server.processor_seconds()
    }

    /// Files the daemon has open; every connection is one.
    pub(super) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.server.child.id())).expect("the daemon runs").count()
    }

    /// Resident memory of the daemon.
    pub(super) fn resident_bytes(&self) -> f64 {
        resident_bytes(&self.server.child.id().to_string())
    }

    /// What the daemon wrote down before it was furnished.
    pub(super) fn resident_before(&self) -> f64 {
        let folder = self.folder.as_ref().expect("a directory of its own");
        let text = std::fs::read_to_string(folder.path().join(RESIDENT_BEFORE)).expect("it was written down");
        text.parse().expect("a number")
    }

    /// Waits until the books have everything that is durable now, so that what they need for it is not counted later.
    pub(super) fn wait_for_books(&self) {
        let began = std::time::Instant::now();
        loop {
            let (status, answer) = super::fetch::fetch(self, &super::request::get("/api/v1/usage", &self.token));
            if status == 200 {
                return;
            }
            let why = String::from_utf8_lossy(&answer);
            assert!(status == 503 && began.elapsed().as_secs() < 900, "the books follow: {status} {why}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

/// In the child: writes down its memory before anything is added.
pub(super) fn note_resident(daemon: &Daemon) {
    let folder = daemon.data_directory().data.parent().expect("a directory of its own").to_owned();
    std::fs::write(folder.join(RESIDENT_BEFORE), resident_bytes("self").to_string()).expect("the file is written");
}

/// Resident memory of a process, or of this one (`self`).
fn resident_bytes(process: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a figure");
    let kib: f64 = line.split_whitespace().nth(1).expect("a figure").parse().expect("a number");
    kib * 1024.0
}

/// Processor time of a process, or of this one (`self`).
pub(super) fn processor_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the process runs");
    // The name may contain anything; only numbers follow its closing bracket.
    let after = stat.rsplit_once(')').expect("a name").1;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().map(|place| fields[*place].parse::<f64>().expect("a number")).sum();
    ticks / 100.0
}
