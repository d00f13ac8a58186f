//! `leasehold audit status` and `leasehold audit scrub`: what the daemon knows about the integrity of its own files.

use super::details::{Details, word};
use super::failure::Failed;
use super::session::Session;
use crate::numbers::{counted, thousands};
use crate::output::{print, print_json};
use crate::problem::{EXIT_NOT_VERIFIED, EXIT_OK};
use crate::term::Style;
use leasehold_api::{AuditStatus, ScrubBooks, ScrubPass};
use std::time::Duration;

/// How often `--wait` asks.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Shows the status. The exit code is 3 if there is damage.
pub(super) async fn status(session: &Session, wait: bool) -> Result<u8, Failed> {
    let mut status = session.client.audit_status().await?;
    while wait && status.present.is_some() {
        tokio::time::sleep(ASK_EVERY).await;
        status = session.client.audit_status().await?;
    }
    if session.json {
        print_json(&serde_json::to_value(&status).unwrap_or_default())?;
    } else {
        print(&text(session, &status))?;
    }
    Ok(if status.damaged { EXIT_NOT_VERIFIED } else { EXIT_OK })
}

/// Begins a pass, and waits for its result if that is wanted.
pub(super) async fn scrub(session: &Session, wait: bool) -> Result<u8, Failed> {
    let before = session.client.audit_status().await?.last.map(|last| last.began_at);
    let answer = session.client.begin_scrub().json().await?;
    if !wait {
        if session.json {
            print_json(&answer)?;
        } else {
            let begun = answer.get("begun").and_then(serde_json::Value::as_bool) == Some(true);
            let what = if begun { "A pass has begun" } else { "A pass is running already" };
            print(&format!("{what}. `leasehold audit status` shows how far it is.\n"))?;
        }
        return Ok(EXIT_OK);
    }
    // The pass begins a moment after it was asked for.
    loop {
        let status = session.client.audit_status().await?;
        if status.present.is_none() && status.last.as_ref().map(|last| last.began_at) != before {
            break;
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
    self::status(session, false).await
}

fn text(session: &Session, status: &AuditStatus) -> String {
    let signed = match status.unsigned_records {
        0 => format!("all {}", counted(status.size, "record")),
        unsigned => format!(
            "{} of {} records; the last {} are chained, not signed yet",
            thousands(status.checkpoint.size),
            thousands(status.size),
            thousands(unsigned)
        ),
    };
    let scrub = match (status.scrub_enabled, status.next_at) {
        (false, _) => "only when an operator asks".to_owned(),
        (true, None) => format!("every {}", status.scrub_every),
        (true, Some(next)) => format!("every {}, next at {next}", status.scrub_every),
    };
    let mut details = Details::new()
        .add("signed", signed)
        .add("checkpoint", format!("size {}, root {}", thousands(status.checkpoint.size), status.checkpoint.root))
        .add("scrub", scrub);
    if let Some(present) = &status.present {
        details = pass(details.add("present pass", progress(present)), present);
    }
    details = match &status.last {
        None => details.add("last pass", "none has ended yet"),
        Some(last) => pass(details.add("last pass", ended(last)), last),
    };
    let mut text = details.text(session.paint);
    let passes = [&status.present, &status.last].into_iter().flatten();
    let findings: Vec<&str> = passes.flat_map(|pass| &pass.damage).map(|finding| finding.detail.as_str()).collect();
    match (status.damaged, &status.last) {
        (true, _) => {
            text.push_str(&format!("\n{}\n", session.paint.paint(Style::Red, "Damage was found:")));
            findings.iter().for_each(|detail| text.push_str(&format!("  {detail}\n")));
        }
        (false, Some(_)) => text.push_str("\nNo damage was found.\n"),
        (false, None) => {}
    }
    text
}

fn progress(pass: &ScrubPass) -> String {
    let (state, percent) = (word(pass.state), pass.percent);
    let of = thousands(pass.checkpoint_size);
    let resumed = if pass.resumed > 0 { ", continued after a restart" } else { "" };
    let records = thousands(pass.records);
    format!("{state}, {percent} %: {records} of {of} records since {}{resumed}", pass.began_at)
}

fn ended(pass: &ScrubPass) -> String {
    let state = word(pass.state);
    let at = pass.ended_at.map_or_else(String::new, |at| format!(" to {at}"));
    let error = pass.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
    format!("{state}, {}{at}{error}", pass.began_at)
}

/// What a pass has checked.
fn pass(details: Details, pass: &ScrubPass) -> Details {
    let journal = match pass.records.checked_sub(1) {
        None => "nothing yet".to_owned(),
        Some(last) => format!(
            "records {} to {}, {} bytes, against the checkpoint of size {}",
            thousands(pass.first_sequence),
            thousands(last),
            thousands(pass.bytes),
            thousands(pass.checkpoint_size)
        ),
    };
    let leases = counted(pass.leases, "closed lease");
    let as_of = thousands(pass.books_size);
    let books = match (pass.books, &pass.books_reason) {
        (ScrubBooks::Comparing, _) => format!("{leases} so far"),
        (ScrubBooks::Compared, _) => format!("{leases} and all totals, as of size {as_of}"),
        (ScrubBooks::NotCompared, reason) => format!("not compared: {}", reason.as_deref().unwrap_or("unknown")),
    };
    let foreign = (pass.batches_of_another_secret > 0).then(|| {
        let batches = thousands(pass.batches_of_another_secret);
        format!("{batches} batches are authenticated by another secret than the present one; they are signed")
    });
    let statements = match (pass.statements, &pass.statements_reason) {
        (Some(count), _) => Some(format!("{} made again from the records", thousands(count))),
        (None, Some(reason)) => Some(format!("not made again: {reason}")),
        (None, None) => None,
    };
    details.add("  journal", journal).add("  books", books).maybe("  statements", statements).maybe("  note", foreign)
}
