//! The daemon's one configuration file: YAML, every key optional, unknown keys refused.
//!
//! `packaging/leasehold.example.yaml` has every key with its default; a test holds it to the structs here.

mod check;
mod text;

pub use check::{Problem, Problems};
pub use leasehold_service::log::{Format, Level};
pub use leasehold_yaml::LoadError;

use leasehold_api::limits::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX};
use leasehold_cell::{CellOptions, StartOptions};
use leasehold_engine::Settings;
use leasehold_journal::Options as JournalOptions;
use leasehold_model::Span;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use text::{maybe_span, section, size, span};

/// The commented file that `leasehold config example` prints.
pub const EXAMPLE: &str = include_str!("../../../packaging/leasehold.example.yaml");

/// Every key, with its section. A test holds the list to the structs.
pub const KEYS: &[&str] = &[
    "data",
    "listen",
    "origin",
    "tls.cert",
    "tls.key",
    "limits.connections",
    "limits.connections_per_address",
    "limits.header_timeout",
    "limits.body_timeout",
    "limits.request_timeout",
    "limits.idle_timeout",
    "limits.body_bytes",
    "limits.batch_body_bytes",
    "limits.streams",
    "limits.queued_requests",
    "rate.operations_per_second",
    "rate.burst",
    "journal.segment_bytes",
    "journal.snapshot_every",
    "journal.checkpoint_every",
    "journal.batch_records_max",
    "journal.archive",
    "engine.ttl_max",
    "engine.grace_default",
    "engine.teardown_deadline",
    "engine.node_timeout",
    "engine.idempotency_window",
    "engine.heat_half_life",
    "engine.sensitive_pool_size",
    "clock.max_gap",
    "metrics.open",
    "log.level",
    "log.format",
    "log.requests",
];

/// Where the daemon listens unless told otherwise.
pub const LISTEN: &str = "127.0.0.1:8420";

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The folder with journal, anchor and key.
    pub data: PathBuf,
    /// Address and port.
    pub listen: String,
    /// The name under which a new journal signs; one that exists keeps its own.
    pub origin: Option<String>,
    #[serde(deserialize_with = "section")]
    pub tls: Tls,
    #[serde(deserialize_with = "section")]
    pub limits: Limits,
    #[serde(deserialize_with = "section")]
    pub rate: Rate,
    #[serde(deserialize_with = "section")]
    pub journal: Journal,
    #[serde(deserialize_with = "section")]
    pub engine: Engine,
    #[serde(deserialize_with = "section")]
    pub clock: Clock,
    #[serde(deserialize_with = "section")]
    pub metrics: Metrics,
    #[serde(deserialize_with = "section")]
    pub log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: "/var/lib/leasehold".into(),
            listen: LISTEN.into(),
            origin: None,
            tls: Tls::default(),
            limits: Limits::default(),
            rate: Rate::default(),
            journal: Journal::default(),
            engine: Engine::default(),
            clock: Clock::default(),
            metrics: Metrics::default(),
            log: Log::default(),
        }
    }
}

/// PEM files; both or neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// What one client, and all of them together, can take up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Open connections; more are turned away.
    pub connections: u32,
    /// Of one address; absent is no limit of its own.
    pub connections_per_address: Option<u32>,
    /// For the head of a request, from its first byte; also for a TLS handshake and for a new connection to begin.
    #[serde(deserialize_with = "span")]
    pub header_timeout: Span,
    /// For the body of a request, from the end of its head.
    #[serde(deserialize_with = "span")]
    pub body_timeout: Span,
    /// For the answer to begin, from the end of the request.
    #[serde(deserialize_with = "span")]
    pub request_timeout: Span,
    /// Between requests, and for a client to take what is sent to it.
    #[serde(deserialize_with = "span")]
    pub idle_timeout: Span,
    #[serde(deserialize_with = "size")]
    pub body_bytes: u64,
    #[serde(deserialize_with = "size")]
    pub batch_body_bytes: u64,
    /// Open event streams.
    pub streams: u32,
    /// Operations that wait for the engine; more are turned away as busy.
    pub queued_requests: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_address: None,
            header_timeout: Span::from_secs(10),
            body_timeout: Span::from_secs(30),
            request_timeout: Span::from_secs(60),
            idle_timeout: Span::from_secs(75),
            body_bytes: BODY_BYTES_MAX as u64,
            batch_body_bytes: BATCH_BODY_BYTES_MAX as u64,
            streams: 1000,
            queued_requests: 100_000,
        }
    }
}

/// Operations of one token; an operation of a batch counts as one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rate {
    /// Zero: no limit.
    pub operations_per_second: u32,
    /// Zero: what two seconds allow.
    pub burst: u32,
}

/// How the journal is laid out and how often it is signed and folded; nothing here changes what is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Journal {
    #[serde(deserialize_with = "size")]
    pub segment_bytes: u64,
    /// Records between snapshots.
    pub snapshot_every: u64,
    #[serde(deserialize_with = "span")]
    pub checkpoint_every: Span,
    pub batch_records_max: u32,
    /// Directories with segments that were moved away, which the daemon also reads.
    pub archive: Vec<PathBuf>,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            snapshot_every: 1_000_000,
            checkpoint_every: Span::from_millis(50),
            batch_records_max: 1000,
            archive: Vec::new(),
        }
    }
}

/// The engine's own limits. They are sealed; what is absent stays as it was sealed last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Engine {
    #[serde(deserialize_with = "maybe_span")]
    pub ttl_max: Option<Span>,
    #[serde(deserialize_with = "maybe_span")]
    pub grace_default: Option<Span>,
    #[serde(deserialize_with = "maybe_span")]
    pub teardown_deadline: Option<Span>,
    #[serde(deserialize_with = "maybe_span")]
    pub node_timeout: Option<Span>,
    #[serde(deserialize_with = "maybe_span")]
    pub idempotency_window: Option<Span>,
    #[serde(deserialize_with = "maybe_span")]
    pub heat_half_life: Option<Span>,
    pub sensitive_pool_size: Option<u64>,
}

impl Engine {
    /// The settings that should be in force, by those that are.
    pub fn over(&self, in_force: &Settings) -> Settings {
        Settings {
            ttl_max: self.ttl_max.unwrap_or(in_force.ttl_max),
            grace_default: self.grace_default.unwrap_or(in_force.grace_default),
            teardown_deadline: self.teardown_deadline.unwrap_or(in_force.teardown_deadline),
            node_timeout: self.node_timeout.unwrap_or(in_force.node_timeout),
            idempotency_window: self.idempotency_window.unwrap_or(in_force.idempotency_window),
            heat_half_life: self.heat_half_life.unwrap_or(in_force.heat_half_life),
            sensitive_pool_size: self.sensitive_pool_size.or(in_force.sensitive_pool_size),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clock {
    /// How far the clock may lie after the last record at a start.
    #[serde(deserialize_with = "span")]
    pub max_gap: Span,
}

impl Default for Clock {
    fn default() -> Self {
        Self { max_gap: Span::from_secs(7 * 86_400) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Whether `/metrics` is answered without a token.
    pub open: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    pub level: Level,
    pub format: Format,
    pub requests: Requests,
}

/// Which requests are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requests {
    All,
    /// Those that were refused, failed or took long.
    #[default]
    Refused,
    None,
}

const YAML: leasehold_yaml::Reader =
    leasehold_yaml::Reader { see: "`leasehold config example` shows every key", section_of };

/// The section that has a key of this name, if it is the only one.
fn section_of(key: &str) -> Option<&'static str> {
    let mut sections = KEYS.iter().filter_map(|path| path.split_once('.')).filter(|(_, last)| *last == key);
    let (section, _) = sections.next()?;
    sections.next().is_none().then_some(section)
}

impl Config {
    /// Reads the file. Whether it makes sense is asked with [`check`](Self::check).
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        YAML.load(path)
    }

    /// Reads the text of a file; `file` is what errors call it.
    pub fn parse(text: &str, file: &Path) -> Result<Self, LoadError> {
        YAML.parse(text, file)
    }

    /// The name of a new journal: the one that is set, or one after the machine.
    pub fn origin_or_default(&self) -> String {
        self.origin.clone().unwrap_or_else(default_origin)
    }

    /// How the journal is laid out.
    pub fn journal_options(&self) -> JournalOptions {
        JournalOptions { segment_bytes: self.journal.segment_bytes, ..JournalOptions::default() }
    }

    /// How the cell runs. The engine's settings are left as they are sealed: they can only be changed
    /// ([`Engine::over`]) once it is known what they are.
    pub fn cell_options(&self, start: StartOptions) -> CellOptions {
        let start = StartOptions {
            max_clock_gap: self.clock.max_gap,
            batch_records_max: self.journal.batch_records_max,
            ..start
        };
        CellOptions {
            requests_max: self.limits.queued_requests as usize,
            checkpoint_every: self.journal.checkpoint_every.into(),
            snapshot_every: self.journal.snapshot_every,
            ..CellOptions::new(start)
        }
    }
}

/// A journal is named after the machine that begins it: `host/leasehold`.
pub fn default_origin() -> String {
    let name = rustix::system::uname();
    let host: String = name.nodename().to_string_lossy().chars().filter(|c| is_origin_character(*c)).take(64).collect();
    if host.is_empty() { "leasehold".into() } else { format!("{}/leasehold", host.to_lowercase()) }
}

/// What the name of a signing key may hold.
fn is_origin_character(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && c != '+'
}

#[cfg(test)]
mod tests;
