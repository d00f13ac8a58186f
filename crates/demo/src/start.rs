//! The demo's daemon: in this process, on embedded defaults.

use super::scene::Pace;
use crate::data_directory::Place;
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

/// Says plainly what it is, in every signature.
pub(crate) const ORIGIN: &str = "demo.leasehold.local";

/// Small segments: a demo should not fill a disk, and may well go over from one to the next.
pub(crate) const SEGMENT_BYTES: u64 = 16 << 20;

/// A running daemon, and what was found at its start.
pub(crate) struct Opened {
    pub(crate) cell: Arc<Cell>,
    pub(crate) served: Served,
    pub(crate) url: String,
    /// The usual port was taken, so it is another one.
    pub(crate) port_taken: bool,
    /// What was there before, if anything was.
    pub(crate) recovered: Option<Recovered>,
    pub(crate) snapshot_size: u64,
    pub(crate) replayed: u64,
    /// The first record of this run.
    pub(crate) first_sequence: u64,
}

pub(crate) fn open(place: &Place, pace: Pace) -> Result<Opened, Problem> {
    let config = configuration(place, pace);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime =
        runtime.map_err(|error| Problem::refused("no_threads", format!("the threads cannot start: {error}")))?;
    let start = Start {
        clock: Arc::new(SystemClock::new()),
        accept_clock: false,
        new_operator_token: false,
        // Whoever shows the demo looks at the cell all the time, and ends it.
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
        // Whoever drops the other end wants it to stop, too.
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

fn configuration(place: &Place, pace: Pace) -> Config {
    Config {
        data: place.data().to_owned(),
        origin: Some(ORIGIN.to_owned()),
        journal: config::Journal { segment_bytes: SEGMENT_BYTES, ..config::Journal::default() },
        engine: config::Engine {
            ttl_max: Some(Span::from_secs(24 * 3600)),
            grace_default: Some(pace.span(2500)),
            // Real processes have to keep these, beside whatever else this machine does.
            teardown_deadline: Some(pace.span(4000).max(Span::from_secs(4))),
            node_timeout: Some(pace.span(3000).max(Span::from_secs(3))),
            idempotency_window: Some(Span::from_secs(3600)),
            // A fault of a node is over within the demo.
            heat_half_life: Some(pace.span(20_000).max(Span::from_secs(1))),
            sensitive_pool_size: None,
        },
        // A demo's folder may lie for long before someone goes on with it.
        clock: config::Clock { max_gap: Span::from_secs(3650 * 86_400) },
        ..Config::default()
    }
}

/// The usual address, or another port of it.
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

/// A daemon that answers.
pub(crate) struct Served {
    runtime: Runtime,
    serving: JoinHandle<Result<(), String>>,
    stop: oneshot::Sender<()>,
}

impl Served {
    /// Lets requests in flight finish and closes the journal.
    pub(crate) fn stop(self) -> Result<(), String> {
        drop(self.stop);
        self.runtime.block_on(self.serving).unwrap_or_else(|_| Err("the daemon broke off".into()))
    }
}
