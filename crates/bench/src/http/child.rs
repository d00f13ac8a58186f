//! The daemon in a process of its own: this program, started again.

use crate::scratch;
use crate::work::{cluster, large_cluster};
use leasehold_cell::{Sealed, SystemClock};
use leasehold_engine::command::RequestLease;
use leasehold_engine::{Command, Request};
use leasehold_model::{ClassNo, Identity, PoolNo, ProjectNo, Quanta, Span, TenantNo};
use leasehold_server::config::Config;
use leasehold_server::{Daemon, Start, listen};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;

const ASKED: &str = "--serve-for-bench";
/// On a journal that lies there already.
const ASKED_AS_IT_IS: &str = "--serve-as-it-is-for-bench";
/// For a large cluster without a standing load.
const ASKED_LARGE: &str = "--serve-large-for-bench";
pub(super) const TENANTS: u32 = 1000;
const NODES: u32 = 1000;
const STANDING: u32 = 2000;
pub(super) const LARGE_NODES: u32 = 10_000;

/// In the child: serves the folder that the command line names until it is killed.
pub fn serve_if_asked() -> bool {
    let mut arguments = std::env::args().skip(1);
    let asked = arguments.next();
    let Some(asked @ (ASKED | ASKED_AS_IT_IS | ASKED_LARGE)) = asked.as_deref() else { return false };
    let folder = arguments.next().expect("a folder");
    listen::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(serve(Path::new(&folder), asked.to_owned()));
    true
}

async fn serve(folder: &Path, asked: String) {
    let furnished = asked == ASKED_AS_IT_IS;
    let data = if furnished { folder.to_owned() } else { folder.join("data") };
    let mut config = Config { data, origin: Some(scratch::ORIGIN.into()), ..Config::default() };
    config.limits.connections = 12_000;
    config.limits.streams = 11_000;
    let start = Start {
        clock: Arc::new(SystemClock::new()),
        // What lies there already may be of any time.
        accept_clock: furnished,
        unproved_tail: leasehold_server::UnprovedTail::Refuse,
        new_operator_token: false,
        on_failure: Arc::new(|why| panic!("{why}")),
    };
    let daemon = tokio::task::spawn_blocking(move || {
        let daemon = Daemon::open(config, start).unwrap_or_else(|error| panic!("{error}"));
        match asked.as_str() {
            ASKED => furnish(&daemon),
            ASKED_LARGE => operate(&daemon, large_cluster(LARGE_NODES, TENANTS)),
            _ => {}
        }
        daemon
    });
    let daemon = daemon.await.expect("the daemon opens");
    let listener = listen::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    println!("{} {}", listener.local_addr().expect("an address"), daemon.operator_token.clone().expect("a new folder"));
    std::io::stdout().flush().expect("the parent listens");
    daemon.serve(listener, std::future::pending()).await.expect("the daemon serves");
}

fn operate(daemon: &Daemon, commands: Vec<Command>) {
    for command in commands {
        assert!(matches!(daemon.cell().operate(command), Ok(Sealed { repeated: false, .. })), "the cluster is valid");
    }
}

/// A thousand nodes, a thousand tenants with two quotas each, and a standing load.
fn furnish(daemon: &Daemon) {
    operate(daemon, cluster(NODES, TENANTS));
    for lease in 0..STANDING {
        let tenant = lease % TENANTS;
        let identity =
            Identity { tenant: Some(TenantNo(tenant)), project: Some(ProjectNo(tenant)), ..Identity::default() };
        let mut ask = RequestLease::of(ClassNo(0), Quanta(1000), Span::from_secs(23 * 3600));
        ask.pool = Some(PoolNo(0));
        let reply = daemon.cell().call(Request::new(identity, Command::Request(ask)));
        assert!(matches!(reply, Ok(Sealed { repeated: false, .. })), "there is room");
    }
}

/// The daemon, while it is measured.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    /// Gone with it.
    folder: Option<tempfile::TempDir>,
}

impl Served {
    pub(super) fn start() -> Self {
        Self::anew(ASKED)
    }

    /// With ten thousand nodes of three kinds.
    pub(super) fn start_large() -> Self {
        Self::anew(ASKED_LARGE)
    }

    fn anew(how: &str) -> Self {
        let folder = scratch::folder();
        let mut served = Self::run(how, folder.path());
        served.folder = Some(folder);
        served
    }

    /// On a journal that lies there already.
    #[cfg(feature = "peers")]
    pub(crate) fn on(folder: &Path) -> Self {
        Self::run(ASKED_AS_IT_IS, folder)
    }

    fn run(how: &str, folder: &Path) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Process::new(program);
        child.arg(how).arg(folder).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn().expect("this program starts again");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("the daemon speaks");
        let (address, token) = line.trim().split_once(' ').expect("an address and a token");
        Self { address: address.parse().expect("an address"), token: token.to_owned(), child, folder: None }
    }

    /// Processor time the daemon has used.
    pub(super) fn processor_seconds(&self) -> f64 {
        processor_seconds(&self.child.id().to_string())
    }

    /// Files the daemon has open; every connection is one.
    pub(super) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("the daemon runs").count()
    }

    /// Memory the daemon takes up.
    pub(super) fn resident_bytes(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the daemon runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a figure");
        let kib: f64 = line.split_whitespace().nth(1).expect("a figure").parse().expect("a number");
        kib * 1024.0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Nothing of it is kept.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of a process, or of this one (`self`).
pub(super) fn processor_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the process runs");
    // The name may hold anything; what follows its closing bracket is numbers.
    let after = stat.rsplit_once(')').expect("a name").1;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().map(|place| fields[*place].parse::<f64>().expect("a number")).sum();
    ticks / 100.0
}
