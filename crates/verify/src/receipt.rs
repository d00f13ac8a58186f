//! The result as text and as JSON.

use crate::failure::Failure;
use crate::progress::thousands;
use crate::report::{ProvedBy, Report, Statements};
use leasehold_model::Instant;
use serde_json::{Value, json};
use std::fmt::Write;

/// Colours of the verdict on a terminal.
#[derive(Clone, Copy)]
pub(crate) struct Colours(pub(crate) bool);

impl Colours {
    fn paint(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
    pub(crate) fn yes(self) -> String {
        self.paint("1;32", "yes")
    }
    pub(crate) fn no(self) -> String {
        self.paint("1;31", "no")
    }
}

/// The verdict in one line, and below it what it is based on.
pub(crate) fn receipt(report: &Report, now: Instant, colours: Colours) -> String {
    let mut text = format!("{}: {}\n\n", colours.yes(), answer(report));
    // Writing to a string cannot fail; so below.
    let mut line = |name: &str, value: &str| writeln!(text, "  {name:<12}{value}").unwrap_or(());
    line("origin", &report.origin);
    if report.first_sequence > 0 {
        let earlier = thousands(report.first_sequence);
        line(
            "from",
            &format!("record {earlier}; the {earlier} before it are not here: archived or deleted, and not verified"),
        );
    }
    let segments = report.segments.map_or("none".to_owned(), |(first, last)| format!("{first} to {last}"));
    line("segments", &format!("{segments}, {} bytes", thousands(report.bytes)));
    line("head", &leasehold_model::hex::encode(&report.head));
    line("root", &leasehold_model::hex::encode(&report.root));
    let key = report.key_in_force.as_ref().map_or(String::new(), |key| format!(", key {} is in force", key.id()));
    line("signed", &format!("up to size {}{key}", thousands(report.checkpoint_size)));
    line("complete", &completeness(report));
    for witness in &report.witnessed {
        let at = Instant::from_secs(witness.seconds.min(u64::MAX / 1_000_000_000));
        line("witness", &format!("{} saw size {} at {at}", witness.name, thousands(witness.size)));
    }
    for name in &report.missing_witnesses {
        line(
            "warning",
            &format!("witness {name} has not cosigned the checkpoint of size {}", thousands(report.checkpoint_size)),
        );
    }
    if let Some(Statements::Recomputed(count)) = report.statements {
        line("statements", &format!("{} recomputed from the records of their months", thousands(count)));
    }
    for rotation in &report.rotations {
        let sequence = thousands(rotation.sequence);
        line("rotation", &format!("record {sequence}: key {} to {}", rotation.old_key, rotation.new_key));
    }
    warnings(report, now).iter().for_each(|(_, warning)| line("warning", warning));
    notes(report).iter().for_each(|note| line("note", note));
    line("took", &format!("{} ms", thousands(u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX))));
    text
}

fn answer(report: &Report) -> String {
    let at_hand = report.records - report.first_sequence;
    match report.stamps {
        None => "no records, and no checkpoint covers any".to_owned(),
        Some((first, last)) => {
            let records = if at_hand == 1 { "record" } else { "records" };
            let signed = match report.records_after_checkpoint() {
                0 => "all chained and signed".to_owned(),
                after => format!("all chained; the last {} not signed", thousands(after.min(at_hand))),
            };
            format!("{} {records}, from {first} to {last}, {signed}", thousands(at_hand))
        }
    }
}

fn completeness(report: &Report) -> String {
    let by = match &report.proved_by {
        ProvedBy::Pinned => "by the checkpoint pinned in the trust file".to_owned(),
        ProvedBy::Witness(witness) => format!("by witness {}", witness.name),
        ProvedBy::Anchor => "only by the local anchor".to_owned(),
    };
    format!("up to size {}, proved {by}", thousands(report.complete_up_to))
}

/// What an auditor should look into although the journal is intact, each with a stable code.
fn warnings(report: &Report, now: Instant) -> Vec<(&'static str, String)> {
    let ahead = report.stamp_ahead(now).zip(report.stamps).map(|(ahead, (_, last))| {
        let sentence = format!(
            "the last record is stamped {last}, which is {} s in the future of this machine's clock; one of the two \
             clocks is wrong, and usage is computed from these stamps",
            thousands(ahead.as_secs())
        );
        ("stamp_in_future", sentence)
    });
    ahead.into_iter().collect()
}

fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    let unproved = report.checkpoint_size.saturating_sub(report.complete_up_to);
    if unproved > 0 {
        notes.push(format!(
            "{} later records are covered only by the local anchor; no outside evidence",
            thousands(unproved)
        ));
    }
    let after = report.records_after_checkpoint();
    if after > 0 {
        let after = thousands(after);
        notes.push(format!(
            "{after} records after the checkpoint are chained, not signed; missing ones cannot be detected"
        ));
    }
    if let Some(Statements::OutOfReach { first }) = report.statements {
        notes.push(format!(
            "statements about months were not recomputed, because the records before {} are not here; if they are \
             archived, pass their directory with --archive",
            thousands(first)
        ));
    }
    if let Some(torn) = report.torn_tail {
        notes.push(format!(
            "segment {} ends with {} bytes of an interrupted write, from byte {} on; it was never acknowledged",
            torn.segment,
            thousands(torn.bytes),
            thousands(torn.offset)
        ));
    }
    if report.anchor_slot_damaged {
        notes.push("one of the anchor's two slots is damaged; the other one was used".to_owned());
    }
    if !report.duplicate_segments.is_empty() {
        let numbers: Vec<String> = report.duplicate_segments.iter().map(u32::to_string).collect();
        let numbers = numbers.join(", ");
        notes.push(format!("segments found in more than one directory: {numbers}; the first directory given was used"));
    }
    notes
}

/// What is wrong, and where.
pub(crate) fn refusal(failure: &Failure, colours: Colours) -> String {
    let mut text = format!("{}: {failure}\n\n", colours.no());
    let mut line = |name: &str, value: &str| writeln!(text, "  {name:<12}{value}").unwrap_or(());
    if let Some(sequence) = failure.sequence {
        line("record", &thousands(sequence));
    }
    if let Some(segment) = failure.segment {
        let offset = failure.offset.map_or(String::new(), |offset| format!(", byte {}", thousands(offset)));
        line("segment", &format!("{segment}{offset}"));
    }
    if let Some(file) = &failure.file {
        line("file", &file.display().to_string());
    }
    if failure.agreed_up_to > 0 {
        line(
            "agreed",
            &format!("the first {} records agree with a signed checkpoint", thousands(failure.agreed_up_to)),
        );
    }
    line("code", failure.code());
    text
}

pub(crate) fn report_json(report: &Report, now: Instant) -> Value {
    let proved_by = match &report.proved_by {
        ProvedBy::Pinned => json!({ "kind": "pinned_checkpoint" }),
        ProvedBy::Witness(witness) => json!({ "kind": "witness", "name": witness.name }),
        ProvedBy::Anchor => json!({ "kind": "anchor" }),
    };
    json!({
        "verdict": "yes",
        "origin": report.origin,
        "records": report.records,
        "first_sequence": report.first_sequence,
        "first_stamp": report.stamps.map(|(first, _)| first.to_string()),
        "last_stamp": report.stamps.map(|(_, last)| last.to_string()),
        "bytes": report.bytes,
        "first_segment": report.segments.map(|(first, _)| first),
        "last_segment": report.segments.map(|(_, last)| last),
        "head": leasehold_model::hex::encode(&report.head),
        "root": leasehold_model::hex::encode(&report.root),
        "checkpoint_size": report.checkpoint_size,
        "records_after_checkpoint": report.records_after_checkpoint(),
        "complete_up_to": report.complete_up_to,
        "proved_by": proved_by,
        "witnesses": report.witnessed.iter().map(|witness| json!({
            "name": witness.name, "size": witness.size, "seconds": witness.seconds,
        })).collect::<Vec<_>>(),
        "missing_witnesses": report.missing_witnesses,
        "required_witnesses": report.required_witnesses,
        "keys": report.keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "rotations": report.rotations.iter().map(|rotation| json!({
            "sequence": rotation.sequence,
            "old_key": rotation.old_key.to_string(),
            "new_key": rotation.new_key.to_string(),
        })).collect::<Vec<_>>(),
        "statements_recomputed": match report.statements {
            None => Some(0),
            Some(Statements::Recomputed(count)) => Some(count),
            Some(Statements::OutOfReach { .. }) => None,
        },
        "torn_tail": report.torn_tail.map(|torn| json!({
            "segment": torn.segment, "offset": torn.offset, "bytes": torn.bytes,
        })),
        "anchor_slot_damaged": report.anchor_slot_damaged,
        "duplicate_segments": report.duplicate_segments,
        "warnings": warnings(report, now).into_iter().map(|(code, sentence)| json!({
            "code": code, "sentence": sentence,
        })).collect::<Vec<_>>(),
        "newest_checkpoint": report.newest_checkpoint,
        "duration_ms": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
    })
}

pub(crate) fn failure_json(failure: &Failure) -> Value {
    json!({
        "verdict": "no",
        "code": failure.code(),
        "sentence": failure.to_string(),
        "sequence": failure.sequence,
        "segment": failure.segment,
        "offset": failure.offset,
        "file": failure.file.as_ref().map(|file| file.display().to_string()),
        "agreed_up_to": failure.agreed_up_to,
    })
}
