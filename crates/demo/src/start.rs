//! The demo's daemon. It runs in this process, with the default configuration.

use super::scene::Pace;
use crate::data_directory::DemoDirectory;
use crate::problem::Problem;
use leasehold_cell::{Cell, SystemClock};
use leasehold_journal::Recovered;
use leasehold_model::Span;
use leasehold_server::config::{self, Config, LISTEN};
use leasehold_server::{Daemon, Start, listen};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The name under which checkpoints are signed. It shows that they are those of a demo.
pub(crate) const ORIGIN: &str = "demo.leasehold.local";

/// Small segments, so that a demo needs little disk space and uses more than one segment.
pub(crate) const SEGMENT_BYTES: u64 = 16 << 20;

/// A running daemon, and what it recovered at startup.
pub(crate) struct Opened {
    pub(crate) cell: Arc<Cell>,
    pub(crate) served: Served,
    pub(crate) url: String,
    /// The default port was in use, so that another one was chosen.
    pub(crate) port_taken: bool,
    /// The earlier journal, if there was one.
    pub(crate) recovered: Option<Recovered>,
    pub(crate) snapshot_size: u64,
    pub(crate) replayed: u64,
    /// The first record of this run.
    pub(crate) first_sequence: u64,
}

pub(crate) fn open(directory: &DemoDirectory, pace: Pace) -> Result<Opened, Problem> {
    let config = configuration(directory, pace);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Problem::refused("no_threads", format!("cannot start threads: {error}")))?;
    let start = Start {
        clock: Arc::new(SystemClock::new()),
        accept_clock: false,
        unproved_tail: leasehold_server::UnprovedTail::Refuse,
        new_operator_token: false,
        // The threads of the demo check the cell all the time and end with it.
        on_failure: Arc::new(|_| {}),
    };
    let mut daemon = Daemon::open(config, start).map_err(|error| Problem::told(error.code(), &error))?;
    let (listener, port_taken) = {
        let _inside = runtime.enter();
        bind()?
    };
    let address = listener.local_addr().map_err(|error| Problem::refused("listen_failed", error.to_string()))?;
    let (snapshot_size, replayed) = (daemon.opened.snapshot_size, daemon.opened.replayed);
    let recovered = daemon.recovered.take().filter(|recovered| recovered.size > 0);
    let cell = Arc::clone(daemon.cell());
    let (stop, stopped) = oneshot::channel();
    let serving = runtime.spawn(async move {
        // Dropping the sender stops the daemon as well.
        daemon.serve(listener, async { drop(stopped.await) }).await
    });
    Ok(Opened {
        cell,
        served: Served { runtime, serving, stop },
        url: format!("http://{address}"),
        port_taken,
        recovered,
        snapshot_size,
        replayed,
        first_sequence: snapshot_size + replayed,
    })
}

fn configuration(directory: &DemoDirectory, pace: Pace) -> Config {
    Config {
        data: directory.data().to_owned(),
        origin: Some(ORIGIN.to_owned()),
        journal: config::Journal { segment_bytes: SEGMENT_BYTES, ..config::Journal::default() },
        engine: config::Engine {
            ttl_max: Some(Span::from_secs(24 * 3600)),
            grace_default: Some(pace.span(2500)),
            // The agents are real processes and must meet these deadlines on a busy machine.
            teardown_deadline: Some(pace.span(4000).max(Span::from_secs(4))),
            node_timeout: Some(pace.span(3000).max(Span::from_secs(3))),
            idempotency_window: Some(Span::from_secs(3600)),
            // So that heat decays within the demo.
            heat_half_life: Some(pace.span(20_000).max(Span::from_secs(1))),
            head_wait_max: None,
            sensitive_pool_size: None,
            idle_node_after: None,
        },
        // A demo can be continued after a long time.
        clock: config::Clock { max_gap: Span::from_secs(3650 * 86_400) },
        ..Config::default()
    }
}

/// Listens on the default address, or on a free port if the default port is in use.
fn bind() -> Result<(TcpListener, bool), Problem> {
    let usual: SocketAddr = LISTEN.parse().expect("an address");
    if let Ok(listener) = listen::bind(usual) {
        return Ok((listener, false));
    }
    let any = SocketAddr::new(usual.ip(), 0);
    let listener = listen::bind(any)
        .map_err(|error| Problem::refused("listen_failed", format!("cannot listen on {}: {error}", usual.ip())))?;
    Ok((listener, true))
}

/// A daemon that serves requests.
pub(crate) struct Served {
    runtime: Runtime,
    serving: JoinHandle<Result<(), String>>,
    stop: oneshot::Sender<()>,
}

impl Served {
    /// Waits for requests in flight and closes the journal.
    pub(crate) fn stop(self) -> Result<(), String> {
        drop(self.stop);
        self.runtime.block_on(self.serving).unwrap_or_else(|_| Err("the daemon stopped unexpectedly".into()))
    }
}
