//! The output of the collector: a progress line on the terminal, and the reports.

use super::collector::{Collector, Progress};
use super::refusal::Refusal;
use crate::numbers::{bytes, thousands};
use crate::term;
use crate::time_format;
use leasehold_journal::Mirror;
use leasehold_model::Span;
use leasehold_model::hex;
use leasehold_verify::Cosigned;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the progress line is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// An idle daemon writes a heartbeat record each minute: if the newest record is older than this, a warning is printed.
const QUIET: Span = Span::from_secs(5 * 60);

/// The progress line; draws nothing without a terminal.
pub(super) struct Line {
    began: Instant,
    drawn: Option<Instant>,
    drawable: bool,
}

impl Line {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), drawn: None, drawable: term::drawable().is_some() }
    }

    pub(super) fn draw(&mut self, progress: Progress) {
        let now = Instant::now();
        if !self.drawable || self.drawn.is_some_and(|drawn| now - drawn < DRAW_EVERY) {
            return;
        }
        self.drawn = Some(now);
        let milliseconds = u64::try_from((now - self.began).as_millis()).unwrap_or(u64::MAX).max(1);
        let per_second = progress.bytes.saturating_mul(1000) / milliseconds;
        let text = format!(
            "collecting  {} of {} records  {}/s",
            thousands(progress.records),
            thousands(progress.records_total),
            bytes(per_second)
        );
        term::say(&format!("\r{text}\x1b[K"));
    }

    /// Removes the line.
    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            term::say("\r\x1b[K");
        }
    }
}

/// Warns once when the newest record is too old, until a newer one arrives.
#[derive(Default)]
pub(super) struct Quiet(bool);

impl Quiet {
    pub(super) fn check(&mut self, collector: &Collector) {
        let age = time_format::now().since(collector.mirror.stamp());
        let quiet = collector.mirror.proved() > 0 && age > QUIET;
        if quiet && !self.0 {
            term::say(&format!(
                "leasehold: the newest record is {} old, although a running daemon writes one each minute; the daemon may have stopped, or it serves an old state\n",
                time_format::span(age)
            ));
        }
        self.0 = quiet;
    }
}

/// What was collected since the last report.
pub(super) struct Collected<'a> {
    pub(super) url: &'a str,
    pub(super) records: u64,
    pub(super) bytes: u64,
    /// Evidence of forks that this run or an earlier one has stored.
    pub(super) evidence: Vec<PathBuf>,
    pub(super) cosigned: &'a Cosigned,
}

impl Collected<'_> {
    /// For people.
    pub(super) fn text(&self, mirror: &Mirror, data: &Path, trust: &Path) -> String {
        let proved = thousands(mirror.proved());
        let word = |path: &Path| term::shell_word(&path.display().to_string());
        let forks: String =
            self.evidence.iter().map(|path| format!("evidence of a fork  {}\n", path.display())).collect();
        format!(
            "Collected {} records ({}) from {}; {proved} in total, proved by the checkpoint of {proved} records.\n\
             newest record  {}\n\
             {forks}verify the copy with  leasehold-verify {} --trust {}\n",
            thousands(self.records),
            bytes(self.bytes),
            self.url,
            mirror.stamp(),
            word(data),
            word(trust),
        )
    }

    /// For programs.
    pub(super) fn json(&self, mirror: &Mirror, origin: &str, data: &Path) -> Value {
        let position = mirror.proved_position();
        json!({
            "verdict": "yes",
            "origin": origin,
            "url": self.url,
            "data": data.display().to_string(),
            "collected": self.records,
            "bytes": self.bytes,
            "records": mirror.proved(),
            "last_stamp": mirror.stamp().to_string(),
            "evidence": self.evidence.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "witnesses": self.cosigned.by.iter().map(|witness| &witness.name).collect::<Vec<_>>(),
            "missing_witnesses": self.cosigned.missing,
            "key": mirror.key().map(|key| key.id().to_string()),
            "checkpoint": {
                "size": position.size(),
                "root": hex::encode(&position.tree.root()),
                "head": hex::encode(&position.head.hash),
                "note": mirror.note(),
            },
        })
    }
}

/// The contradiction, for programs.
pub(super) fn refusal_json(refusal: &Refusal, proved: u64, evidence: Option<&PathBuf>) -> Value {
    json!({
        "verdict": "no",
        "code": refusal.code,
        "sentence": refusal.what,
        "sequence": refusal.sequence,
        "records": proved,
        "evidence": evidence.map(|path| path.display().to_string()),
    })
}
