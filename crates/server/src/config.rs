//! The configuration file of the daemon: YAML, every key optional, unknown keys refused.
//!
//! `packaging/leasehold.example.yaml` has every key with its default; a test compares it with the structs here.

mod accounting;
mod check;
mod text;
mod values;

pub use accounting::{
    Accounting, AppRole, BUFFER_SIZE_MAX, OnOverflow, Provider, VaultAuthSection, VaultSection, Waldur, Webhooks,
};
pub use check::{Problem, Problems};
pub use leasehold_service::log::{Format, Level};
pub use leasehold_yaml::LoadError;

use leasehold_api::limits::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX};
use leasehold_cell::{CellOptions, StartOptions};
use leasehold_engine::Settings;
use leasehold_journal::Options as JournalOptions;
use leasehold_model::{Retention, Span};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use text::{maybe_span, retention, section, size, span};

/// The commented file that `leasehold config example` prints.
pub const EXAMPLE: &str = include_str!("../../../packaging/leasehold.example.yaml");

/// Every key, with its section. A test compares the list with the structs.
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
    "limits.proof_bytes",
    "limits.streams",
    "limits.queued_requests",
    "rate.operations_per_second",
    "rate.burst",
    "journal.segment_bytes",
    "journal.snapshot_every",
    "journal.checkpoint_every",
    "journal.batch_records_max",
    "journal.archive",
    "journal.sensitive_retention",
    "scrub.enabled",
    "scrub.every",
    "scrub.bytes_per_second",
    "engine.ttl_max",
    "engine.grace_default",
    "engine.teardown_deadline",
    "engine.node_timeout",
    "engine.idempotency_window",
    "engine.heat_half_life",
    "engine.sensitive_pool_size",
    "engine.head_wait_max",
    "engine.idle_node_after",
    "ledger.auto_open",
    "ledger.payment_terms_days",
    "ledger.invoice_template",
    "issuer.name",
    "issuer.address",
    "issuer.tax_id",
    "issuer.bank",
    "accounting.enabled",
    "accounting.provider",
    "accounting.buffer_size",
    "accounting.disk_buffer_path",
    "accounting.disk_buffer_max_events",
    "accounting.on_overflow",
    "accounting.webhooks.allowed_networks",
    "accounting.webhooks.allow_http",
    "accounting.webhooks.ca",
    "accounting.waldur.api_url",
    "accounting.waldur.allow_http",
    "accounting.waldur.token_secret_ref",
    "accounting.waldur.push_interval_seconds",
    "accounting.waldur.buffer_size",
    "accounting.waldur.disk_buffer_path",
    "accounting.waldur.disk_buffer_max_events",
    "accounting.vault.address",
    "accounting.vault.namespace",
    "accounting.vault.ca",
    "accounting.vault.auth.approle.role_id",
    "accounting.vault.auth.approle.secret_id_file",
    "accounting.vault.auth.approle.mount",
    "accounting.vault.auth.token_file",
    "accounting.vault.auth.token_env",
    "clock.max_gap",
    "metrics.open",
    "log.level",
    "log.format",
    "log.requests",
];

/// Default address of the daemon.
pub const LISTEN: &str = "127.0.0.1:8420";

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The data directory, with the journal, the anchor and the key.
    pub data: PathBuf,
    /// Address and port to listen on.
    pub listen: String,
    /// Name under which a new journal signs its checkpoints. An existing journal keeps its own.
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
    pub scrub: Scrub,
    #[serde(deserialize_with = "section")]
    pub engine: Engine,
    #[serde(deserialize_with = "section")]
    pub ledger: Ledger,
    #[serde(deserialize_with = "section")]
    pub issuer: Issuer,
    #[serde(deserialize_with = "section")]
    pub accounting: Accounting,
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
            scrub: Scrub::default(),
            engine: Engine::default(),
            ledger: Ledger::default(),
            issuer: Issuer::default(),
            accounting: Accounting::default(),
            clock: Clock::default(),
            metrics: Metrics::default(),
            log: Log::default(),
        }
    }
}

/// PEM files; both or neither must be given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// Limits per client and for all clients together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Open connections; further ones are rejected. Lowered if the limit of open files leaves no room for them.
    pub connections: u32,
    /// Open connections per address; a quarter of all if absent. This machine's own addresses are exempt.
    pub connections_per_address: Option<u32>,
    /// Timeout for the head of a request, from its first byte; also for a TLS handshake, and for the first byte of a
    /// new connection.
    #[serde(deserialize_with = "span")]
    pub header_timeout: Span,
    /// Timeout for the body of a request, from the end of its head.
    #[serde(deserialize_with = "span")]
    pub body_timeout: Span,
    /// Timeout for the start of the answer, from the end of the request.
    #[serde(deserialize_with = "span")]
    pub request_timeout: Span,
    /// Timeout between requests, and for a client to accept what is sent.
    #[serde(deserialize_with = "span")]
    pub idle_timeout: Span,
    #[serde(deserialize_with = "size")]
    pub body_bytes: u64,
    #[serde(deserialize_with = "size")]
    pub batch_body_bytes: u64,
    /// The largest proof of an invoice, which is made in memory.
    #[serde(deserialize_with = "size")]
    pub proof_bytes: u64,
    /// Open event streams.
    pub streams: u32,
    /// Operations that wait for the engine; further ones are refused with `busy`.
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
            proof_bytes: 512 << 20,
            streams: 1000,
            queued_requests: 100_000,
        }
    }
}

/// Rate limit per token. Each operation of a batch counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rate {
    /// Zero means no limit.
    pub operations_per_second: u32,
    /// Zero means the operations of two seconds.
    pub burst: u32,
}

impl Default for Rate {
    fn default() -> Self {
        Self { operations_per_second: 20_000, burst: 0 }
    }
}

/// Layout of the journal, and how often it is signed and snapshotted. Nothing here changes what is recorded.
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
    /// For how long `leasehold journal delete` keeps records of sensitive work.
    #[serde(deserialize_with = "retention")]
    pub sensitive_retention: Retention,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            snapshot_every: 1_000_000,
            checkpoint_every: Span::from_millis(50),
            batch_records_max: 1000,
            archive: Vec::new(),
            sensitive_retention: Retention::Years(7),
        }
    }
}

/// The pass that reads the whole journal again and compares the books with it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scrub {
    /// Whether passes begin by themselves. An operator can always begin one.
    pub enabled: bool,
    /// From the beginning of one pass to the next.
    #[serde(deserialize_with = "span")]
    pub every: Span,
    /// The most that a pass reads from the disk.
    #[serde(deserialize_with = "size")]
    pub bytes_per_second: u64,
}

impl Default for Scrub {
    fn default() -> Self {
        Self { enabled: true, every: Span::from_secs(86_400), bytes_per_second: 32 << 20 }
    }
}

/// Settings of the engine. They are recorded in the journal; absent ones keep their recorded value.
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
    #[serde(deserialize_with = "maybe_span")]
    pub head_wait_max: Option<Span>,
    /// A record says so when a node has been empty for this long. It is no recorded setting. None: no such records.
    #[serde(deserialize_with = "maybe_span")]
    pub idle_node_after: Option<Span>,
}

impl Engine {
    /// The settings that should be in force, given the present ones.
    pub fn over(&self, in_force: &Settings) -> Settings {
        Settings {
            ttl_max: self.ttl_max.unwrap_or(in_force.ttl_max),
            grace_default: self.grace_default.unwrap_or(in_force.grace_default),
            teardown_deadline: self.teardown_deadline.unwrap_or(in_force.teardown_deadline),
            node_timeout: self.node_timeout.unwrap_or(in_force.node_timeout),
            idempotency_window: self.idempotency_window.unwrap_or(in_force.idempotency_window),
            heat_half_life: self.heat_half_life.unwrap_or(in_force.heat_half_life),
            sensitive_pool_size: self.sensitive_pool_size.or(in_force.sensitive_pool_size),
            head_wait_max: self.head_wait_max.unwrap_or(in_force.head_wait_max),
        }
    }
}

/// How usage is posted and invoiced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ledger {
    /// Whether a new journal opens its ledger by itself.
    pub auto_open: bool,
    /// Days from the issue of an invoice until it is due.
    pub payment_terms_days: u32,
    /// The template of printed invoices; a built-in one if absent.
    pub invoice_template: Option<PathBuf>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { auto_open: true, payment_terms_days: 30, invoice_template: None }
    }
}

impl Ledger {
    /// How long after its issue an invoice is due.
    pub fn payment_terms(&self) -> Span {
        Span::from_secs(u64::from(self.payment_terms_days) * 86_400)
    }
}

/// Who issues invoices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Issuer {
    pub name: Option<String>,
    /// Line by line.
    pub address: Vec<String>,
    pub tax_id: Option<String>,
    /// The bank account, line by line.
    pub bank: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clock {
    /// How far the clock may be ahead of the last record at startup.
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
    /// Whether `/metrics` can be read without a token.
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
    /// Requests that were refused, failed or were slow.
    #[default]
    Refused,
    None,
}

const YAML: leasehold_yaml::Reader =
    leasehold_yaml::Reader { see: "`leasehold config example` shows every key", section_of };

/// The only section with a key of this name.
fn section_of(key: &str) -> Option<&'static str> {
    let mut sections = KEYS.iter().filter_map(|path| path.rsplit_once('.')).filter(|(_, last)| *last == key);
    let (section, _) = sections.next()?;
    sections.next().is_none().then_some(section)
}

impl Config {
    /// Reads the file. [`check`](Self::check) checks its values.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        YAML.load(path)
    }

    /// Parses the text of a file; `file` is its name in errors.
    pub fn parse(text: &str, file: &Path) -> Result<Self, LoadError> {
        YAML.parse(text, file)
    }

    /// Parses the text of a file and collects all mistakes. There is a configuration to check if the text is YAML.
    pub fn parse_all(text: &str, file: &Path) -> (Option<Self>, Vec<LoadError>) {
        YAML.parse_all(text, file)
    }

    /// The origin of a new journal: the configured one, or one derived from the host name.
    pub fn origin_or_default(&self) -> String {
        self.origin.clone().unwrap_or_else(default_origin)
    }

    /// Options of the journal.
    pub fn journal_options(&self) -> JournalOptions {
        JournalOptions { segment_bytes: self.journal.segment_bytes, ..JournalOptions::default() }
    }

    /// Options of the cell. The settings of the engine are changed later ([`Engine::over`]), once the recorded ones are
    /// known.
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

/// Default origin of a new journal: `host/leasehold`.
pub fn default_origin() -> String {
    let name = rustix::system::uname();
    let host: String = name.nodename().to_string_lossy().chars().filter(|c| is_origin_character(*c)).take(64).collect();
    if host.is_empty() { "leasehold".into() } else { format!("{}/leasehold", host.to_lowercase()) }
}

/// Whether the name of a signing key may contain the character.
fn is_origin_character(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && c != '+'
}

#[cfg(test)]
mod tests;
