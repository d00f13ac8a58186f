//! Checks a configuration and collects all problems, each with advice.

mod accounting;

use super::text::show_size;
use super::{Config, is_origin_character};
use leasehold_model::limits::{
    ADDRESS_LINES_MAX, BATCH_RECORDS_MAX, HEAT_HALF_LIFE_MIN, IDEMPOTENCY_SURE, LIMIT_SPAN_MAX, TTL_MAX,
};
use leasehold_model::{Name, Span};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key, with its section.
    pub key: &'static str,
    pub what: String,
    pub advice: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}; {}", self.key, self.what, self.advice)
    }
}

/// All problems, one per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if place == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
impl std::error::Error for Problems {}

/// A segment must be larger than the space that is kept free for one command.
const SEGMENT_BYTES: (u64, u64) = (4 << 20, 1 << 30);
/// Bodies are held in memory while they are read.
const BODY_BYTES: (u64, u64) = (1 << 10, 256 << 20);
/// Proofs of invoices are made in memory.
const PROOF_BYTES: (u64, u64) = (1 << 10, 2 << 30);
/// Timeouts are checked a few times a second, so shorter ones could not be kept.
const TIMEOUT: (Span, Span) = (Span::from_millis(100), Span::from_secs(86_400));

/// A pass takes its time; an hour between two is plenty, and one a year is hardly any.
const SCRUB_EVERY: (Span, Span) = (Span::from_secs(3600), Span::from_secs(366 * 86_400));
/// Less would take years for a large journal; more is faster than disks are.
const SCRUB_RATE: (u64, u64) = (1 << 20, 16 << 30);

/// Invoices are due within a year.
const PAYMENT_TERMS_DAYS_MAX: u32 = 366;

impl Config {
    /// All problems that would keep the daemon from running, as far as they can be known beforehand.
    pub fn check(&self) -> Result<(), Problems> {
        let mut found = Found(Vec::new());
        self.check_addresses(&mut found);
        self.check_tls(&mut found);
        self.check_limits(&mut found);
        self.check_journal(&mut found);
        self.check_scrub(&mut found);
        self.check_engine(&mut found);
        self.check_ledger(&mut found);
        accounting::check(&self.accounting, &mut found);
        if found.0.is_empty() { Ok(()) } else { Err(Problems(found.0)) }
    }

    /// The address to listen on.
    pub fn listen_address(&self) -> Result<SocketAddr, Problem> {
        self.listen.parse().map_err(|_| Problem {
            key: "listen",
            what: format!("`{}` is not an address and port", self.listen),
            advice: "write it like 127.0.0.1:8420, 0.0.0.0:8420 or [::]:8420".into(),
        })
    }

    fn check_addresses(&self, found: &mut Found) {
        found.0.extend(self.listen_address().err());
        let data = &self.data;
        if data.as_os_str().is_empty() {
            found.add("data", "is empty", "give a directory");
        } else if data.exists() {
            if !data.is_dir() {
                found.add(
                    "data",
                    format!("{} is not a directory", data.display()),
                    "give a directory, or a path where one can be created",
                );
            }
        } else if !parent(data).is_dir() {
            let missing = parent(data).display();
            found.add(
                "data",
                format!("cannot create {} because {missing} does not exist", data.display()),
                "create it first, or give another directory",
            );
        }
        if let Some(origin) = &self.origin
            && (Name::new(origin).is_err() || !origin.chars().all(is_origin_character))
        {
            found.add(
                "origin",
                format!("`{origin}` is not a valid origin"),
                "use 1 to 128 visible bytes without spaces and plus signs, such as example.org/cluster-1",
            );
        }
    }

    fn check_tls(&self, found: &mut Found) {
        match (&self.tls.cert, &self.tls.key) {
            (None, None) => {}
            (Some(_), None) => {
                found.add("tls.key", "is missing although `tls.cert` is given", "give both, or neither for plain HTTP")
            }
            (None, Some(_)) => {
                found.add("tls.cert", "is missing although `tls.key` is given", "give both, or neither for plain HTTP")
            }
            (Some(cert), Some(key)) => {
                if let Err(error) = crate::tls::Tls::load(cert, key) {
                    let (what, advice) = error.what_and_advice();
                    found.add(if error.is_about_key() { "tls.key" } else { "tls.cert" }, what, advice);
                }
            }
        }
    }

    fn check_limits(&self, found: &mut Found) {
        let limits = &self.limits;
        found.not_zero("limits.connections", limits.connections.into());
        if limits.connections_per_address == Some(0) {
            found.add("limits.connections_per_address", "is zero", "remove it for a quarter of limits.connections");
        }
        found.not_zero("limits.streams", limits.streams.into());
        found.not_zero("limits.queued_requests", limits.queued_requests.into());
        for (key, timeout) in [
            ("limits.header_timeout", limits.header_timeout),
            ("limits.body_timeout", limits.body_timeout),
            ("limits.request_timeout", limits.request_timeout),
            ("limits.idle_timeout", limits.idle_timeout),
        ] {
            found.span_within(key, timeout, TIMEOUT);
        }
        found.size_within("limits.body_bytes", limits.body_bytes, BODY_BYTES);
        found.size_within("limits.batch_body_bytes", limits.batch_body_bytes, BODY_BYTES);
        found.size_within("limits.proof_bytes", limits.proof_bytes, PROOF_BYTES);
        if self.rate.operations_per_second == 0 && self.rate.burst > 0 {
            found.add("rate.burst", "has no effect without a rate", "set rate.operations_per_second, or remove it");
        }
    }

    fn check_journal(&self, found: &mut Found) {
        let journal = &self.journal;
        found.size_within("journal.segment_bytes", journal.segment_bytes, SEGMENT_BYTES);
        found.not_zero("journal.snapshot_every", journal.snapshot_every);
        found.span_within(
            "journal.checkpoint_every",
            journal.checkpoint_every,
            (Span::from_millis(1), Span::from_secs(60)),
        );
        if !(1..=BATCH_RECORDS_MAX).contains(&journal.batch_records_max) {
            let what = format!("{} is not between 1 and {BATCH_RECORDS_MAX}", journal.batch_records_max);
            found.add("journal.batch_records_max", what, "the default is 1000");
        }
        found.span_within("clock.max_gap", self.clock.max_gap, (Span::from_secs(1), Span::from_secs(3650 * 86_400)));
    }

    fn check_scrub(&self, found: &mut Found) {
        found.span_within("scrub.every", self.scrub.every, SCRUB_EVERY);
        found.size_within("scrub.bytes_per_second", self.scrub.bytes_per_second, SCRUB_RATE);
    }

    fn check_ledger(&self, found: &mut Found) {
        let days = self.ledger.payment_terms_days;
        if days > PAYMENT_TERMS_DAYS_MAX {
            let what = format!("{days} days are too many");
            found.add("ledger.payment_terms_days", what, format!("use 0 to {PAYMENT_TERMS_DAYS_MAX}"));
        }
        if let Some(path) = &self.ledger.invoice_template
            && let Err(why) = crate::invoice_page::load_template(Some(path))
        {
            let what = format!("{}: {why}", path.display());
            found.add("ledger.invoice_template", what, "correct the template, or remove the key for the built-in one");
        }
        for (key, lines) in [("issuer.address", &self.issuer.address), ("issuer.bank", &self.issuer.bank)] {
            if lines.len() > ADDRESS_LINES_MAX {
                found.add(key, format!("has {} lines", lines.len()), format!("use at most {ADDRESS_LINES_MAX}"));
            }
        }
    }

    fn check_engine(&self, found: &mut Found) {
        let engine = &self.engine;
        for (key, value, range) in [
            ("engine.ttl_max", engine.ttl_max, (Span(1), TTL_MAX)),
            ("engine.grace_default", engine.grace_default, (Span(0), LIMIT_SPAN_MAX)),
            ("engine.teardown_deadline", engine.teardown_deadline, (Span(1), LIMIT_SPAN_MAX)),
            ("engine.node_timeout", engine.node_timeout, (Span(1), LIMIT_SPAN_MAX)),
            ("engine.idempotency_window", engine.idempotency_window, (IDEMPOTENCY_SURE, LIMIT_SPAN_MAX)),
            ("engine.idle_node_after", engine.idle_node_after, (Span::from_millis(1), TTL_MAX)),
            ("engine.heat_half_life", engine.heat_half_life, (HEAT_HALF_LIFE_MIN, LIMIT_SPAN_MAX)),
            ("engine.head_wait_max", engine.head_wait_max, (Span(1), LIMIT_SPAN_MAX)),
        ] {
            if let Some(value) = value {
                found.span_within(key, value, range);
            }
        }
    }
}

/// The parent directory; that of a single component is the current directory.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

struct Found(Vec<Problem>);

impl Found {
    fn add(&mut self, key: &'static str, what: impl Into<String>, advice: impl Into<String>) {
        self.0.push(Problem { key, what: what.into(), advice: advice.into() });
    }
    fn not_zero(&mut self, key: &'static str, value: u64) {
        if value == 0 {
            self.add(key, "is zero", "use at least 1, or remove it for the default");
        }
    }
    fn span_within(&mut self, key: &'static str, value: Span, (least, most): (Span, Span)) {
        if !(least..=most).contains(&value) {
            self.add(
                key,
                format!("{value} is too {}", if value < least { "short" } else { "long" }),
                format!("use {least} to {most}"),
            );
        }
    }
    fn size_within(&mut self, key: &'static str, value: u64, (least, most): (u64, u64)) {
        if !(least..=most).contains(&value) {
            let what = format!("{} is too {}", show_size(value), if value < least { "small" } else { "large" });
            self.add(key, what, format!("use {} to {}", show_size(least), show_size(most)));
        }
    }
}
