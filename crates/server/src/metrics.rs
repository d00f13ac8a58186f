//! Metrics for Prometheus: counters of requests, and gauges computed for each page.
//!
//! Counting is a few atomic additions. Everything about leases, nodes and quotas is read from the view of durable
//! records when the page is made, in small steps, so that publishing never waits long. `docs/reference/metrics.md`
//! lists all metrics.

pub mod deliveries;
pub(crate) mod gauges;
mod page;

use crate::listen::Counters;
use crate::rate::Limiter;
use crate::scrub::Figures;
use deliveries::DeliveryFigures;
pub use gauges::LedgerFigures;
use leasehold_api::endpoint::ENDPOINTS;
use leasehold_cell::{Cell, Histogram, LATENCY_BOUNDS_NS, Reply, Unsealed};
use leasehold_engine::{CommandKind, Refusal};
use leasehold_model::{Body, FORMAT_VERSION, RULES_VERSION};
use page::Page;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Media type of the page.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Endpoint of requests that no route answers.
pub const UNROUTED: usize = usize::MAX;

/// Statuses with a counter of their own; the others share one.
const STATUSES: [u16; 23] =
    [200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 406, 408, 409, 410, 413, 415, 422, 429, 431, 500, 501, 503, 507];
/// Results of a command.
const RESULTS: [&str; 8] = ["sealed", "denied", "repeated", "archived", "refused", "journal_full", "busy", "stopped"];

/// Requests of one endpoint.
#[derive(Debug)]
struct Served {
    /// One for each of [`STATUSES`], and one for all others.
    by_status: [AtomicU64; STATUSES.len() + 1],
    took_ns: Histogram,
}

/// Counters of this process.
#[derive(Debug)]
pub struct Metrics {
    started_ms: u64,
    endpoints: Vec<&'static str>,
    /// In the order of the table of endpoints; the last is for requests that no route answers.
    served: Box<[Served]>,
    commands: Box<[[AtomicU64; RESULTS.len()]]>,
    /// In the order of [`Refusal::CODES`].
    refusals: Box<[AtomicU64]>,
    connections: Arc<Counters>,
}

/// What the page is made from, in addition to the counters.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    pub cell: &'a Cell,
    pub limiter: &'a Limiter,
    /// Open event streams.
    pub streams: usize,
    /// Number of records that the books have processed.
    pub books: u64,
    /// The data directory.
    pub data: &'a Path,
    pub scrub: Figures,
    pub ledger: LedgerFigures,
    pub deliveries: &'a DeliveryFigures,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut ids: Vec<&'static str> = ENDPOINTS.iter().map(|endpoint| endpoint.id).collect();
        ids.push("none");
        let zero = |_| AtomicU64::new(0);
        let served = ids
            .iter()
            .map(|_| Served { by_status: std::array::from_fn(zero), took_ns: Histogram::new(LATENCY_BOUNDS_NS) });
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            started_ms: u64::try_from(started.as_millis()).unwrap_or(0),
            served: served.collect(),
            endpoints: ids,
            commands: CommandKind::ALL.iter().map(|_| std::array::from_fn(zero)).collect(),
            refusals: Refusal::CODES.iter().map(|_| AtomicU64::new(0)).collect(),
            connections: Arc::default(),
        }
    }

    /// The counters of the listener.
    pub fn connections(&self) -> &Arc<Counters> {
        &self.connections
    }

    /// Counts a request that was answered by the endpoint at this index of the table, or by none ([`UNROUTED`]).
    pub fn served(&self, endpoint: usize, status: u16, took: Duration) {
        let served = &self.served[endpoint.min(self.served.len() - 1)];
        let place = STATUSES.binary_search(&status).unwrap_or(STATUSES.len());
        served.by_status[place].fetch_add(1, Ordering::Relaxed);
        served.took_ns.add_time(took);
    }

    /// Counts a command that was answered.
    pub fn replied(&self, kind: CommandKind, reply: &Reply) {
        let result = match reply {
            Ok(sealed) if sealed.repeated => 2,
            Ok(sealed) => {
                sealed.refused.iter().for_each(|(_, refusal)| self.refused(refusal));
                usize::from(matches!(sealed.first().body, Body::Denied(_)))
            }
            Err(Unsealed::Archived { .. }) => 3,
            Err(Unsealed::Refused(refusal)) => {
                self.refused(refusal);
                4
            }
            Err(Unsealed::JournalFull) => 5,
            Err(Unsealed::Busy) => 6,
            Err(Unsealed::Stopped) => 7,
        };
        self.commands[kind as usize][result].fetch_add(1, Ordering::Relaxed);
    }

    fn refused(&self, refusal: &Refusal) {
        let code = refusal.code();
        if let Some(place) = Refusal::CODES.iter().position(|known| *known == code) {
            self.refusals[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The page. With a million leases it takes some milliseconds, so it must not run on a thread that serves requests.
    pub fn render(&self, sources: &Sources<'_>) -> String {
        let mut page = Page::default();
        self.process(&mut page);
        self.requests(&mut page, sources);
        self.commands(&mut page);
        gauges::journal(&mut page, sources);
        gauges::scrub(&mut page, &sources.scrub);
        gauges::ledger(&mut page, sources.cell.now(), sources.ledger);
        gauges::cell(&mut page, sources.cell);
        gauges::leases(&mut page, sources.cell.now());
        gauges::allocations(&mut page, sources.cell.now());
        gauges::nodes(&mut page, sources.cell.now());
        gauges::ceilings(&mut page, sources.cell.now());
        gauges::quotas(&mut page, sources.cell.now());
        deliveries::show(&mut page, sources.deliveries);
        page.text()
    }

    fn process(&self, page: &mut Page) {
        let (format, rules) = (FORMAT_VERSION.to_string(), RULES_VERSION.to_string());
        page.gauge("build_info", "Version of the daemon, of the journal format and of the rules.")
            .with([("version", env!("CARGO_PKG_VERSION")), ("format", &format), ("rules", &rules)], 1);
        page.gauge("process_start_time_seconds", "When the process started, in seconds since 1970.")
            .milliseconds(self.started_ms);
        if let Some(bytes) = resident_bytes() {
            page.gauge("process_resident_memory_bytes", "Resident memory of the process.").set(bytes);
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            page.gauge("process_open_files", "Open files and sockets of the process.").set(open.count() as u64);
        }
    }

    fn requests(&self, page: &mut Page, sources: &Sources<'_>) {
        let statuses: Vec<String> = STATUSES.iter().map(u16::to_string).chain(["other".into()]).collect();
        let requests = page.counter("http_requests_total", "Requests that were answered, by endpoint and status.");
        for (id, served) in self.endpoints.iter().zip(&self.served) {
            for (status, count) in statuses.iter().zip(&served.by_status) {
                requests.unless_zero([("endpoint", id), ("status", status)], count);
            }
        }
        let took = page.histogram(
            "http_request_duration_seconds",
            "How long the answer took, from the end of the request's head.",
        );
        for (id, served) in self.endpoints.iter().zip(&self.served).filter(|(_, served)| served.took_ns.count() > 0) {
            took.times([("endpoint", id)], &served.took_ns);
        }
        let Counters { open, accepted, turned_away, timed_out, handshakes_failed, accept_errors } = &*self.connections;
        page.gauge("http_connections", "Open connections.").of(open);
        page.counter("http_connections_accepted_total", "Connections that were accepted.").of(accepted);
        page.counter("http_connections_turned_away_total", "Connections that were rejected because of the limits.")
            .of(turned_away);
        page.counter(
            "http_timeouts_total",
            "Connections closed, or requests answered 408, because they took too long.",
        )
        .of(timed_out);
        page.counter("tls_handshake_failures_total", "TLS handshakes that failed.").of(handshakes_failed);
        page.counter(
            "accept_errors_total",
            "How often accepting a connection failed, for example for lack of file descriptors.",
        )
        .of(accept_errors);
        page.gauge("event_streams", "Open event streams.").set(sources.streams as u64);
        page.counter("rate_limited_total", "Requests that were refused because their token exceeded its rate.")
            .set(sources.limiter.refused());
    }

    fn commands(&self, page: &mut Page) {
        let commands = page.counter("commands_total", "Commands of callers, by kind and result.");
        for &kind in CommandKind::ALL {
            for (result, count) in RESULTS.iter().zip(&self.commands[kind as usize]) {
                commands.unless_zero([("kind", kind.word()), ("result", result)], count);
            }
        }
        let refusals = page.counter("refusals_total", "Refusals by code; a command on many leases may have several.");
        for (code, count) in Refusal::CODES.iter().zip(&self.refusals) {
            refusals.unless_zero([("code", code)], count);
        }
    }
}

/// The second number in `statm` is the resident set, in pages.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests;
