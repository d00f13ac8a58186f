//! The journal over HTTP.

mod batches;
mod export;
mod status;

pub(super) use batches::batches;
pub(super) use export::export;
pub(super) use status::{audit_status, begin_scrub, status_of};

use super::events::{exists, filter};
use crate::app::App;
use crate::context::{Answer, Context, cursor_after, json};
use crate::proofs::{prove_growth, prove_record};
use crate::records::Filter;
use crate::scans::{scan, unreadable};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use leasehold_api::{Checkpoint, ConsistencyProof, InclusionProof, Problem, RecordPage, codes, limits};
use leasehold_journal::SignedCheckpoint;
use leasehold_tlog::limits::PROOF_EXTRA_BYTES_MAX;
use leasehold_tlog::{ConsistencyFile, Hash, InclusionFile, Note, ProofFileError};
use std::ops::ControlFlow;

pub(super) async fn list_records(context: Context) -> Answer {
    let filter = filter(&context)?;
    let (cursor, limit) = (context.cursor()?, context.limit()?);
    let after = context.number("after")?;
    if cursor.is_some() && after.is_some() {
        return Err(codes::BAD_QUERY.problem("Give `cursor` or `after`, not both."));
    }
    let after = cursor.or(after);
    exists(&context.app, after)?;
    let page = scan(&context.app, context.caller(), move |app| page(app, &filter, after, limit)).await?;
    json(200, &page)
}

fn page(app: &App, filter: &Filter, after: Option<u64>, limit: usize) -> Result<RecordPage, Problem> {
    let from = after.map_or(0, |after| after.saturating_add(1));
    let mut directory = app.live.names();
    let (mut records, mut failed) = (Vec::new(), None);
    let mut next_after = after.unwrap_or(0);
    let scanned = app.journal.scan(from, &mut |sequence, raw| {
        if records.len() >= limit || sequence - from >= limits::RECORDS_SCANNED_MAX {
            return ControlFlow::Break(());
        }
        match filter.show(app, &mut directory, &raw) {
            Ok(shown) => records.extend(shown.map(|(_, shown)| shown)),
            Err(problem) => {
                failed = Some(problem);
                return ControlFlow::Break(());
            }
        }
        next_after = sequence;
        ControlFlow::Continue(())
    });
    scanned.map_err(|error| unreadable(&error))?;
    match failed {
        Some(problem) => Err(problem),
        None => {
            let size = app.journal.head().size;
            let next_cursor = (next_after + 1 < size).then(|| cursor_after(next_after));
            Ok(RecordPage { records, next_cursor, next_after, size })
        }
    }
}

fn shown(app: &App, signed: &SignedCheckpoint) -> Checkpoint {
    Checkpoint {
        origin: app.journal.origin().to_owned(),
        size: signed.size(),
        root: base64(&signed.position.tree.root()),
        note: signed.note.clone(),
    }
}

fn base64(hash: &Hash) -> String {
    BASE64_STANDARD.encode(hash)
}

pub(super) async fn checkpoint(context: Context) -> Answer {
    json(200, &shown(&context.app, &context.app.journal.checkpointed()))
}

/// A required number in the query.
fn needed(context: &Context, name: &str) -> Result<u64, Problem> {
    context.number(name)?.ok_or_else(|| codes::BAD_QUERY.problem(format!("`{name}` is required.")))
}

/// The problem if no checkpoint covers what was asked for.
fn not_covered(what: &str, size: u64) -> Problem {
    let detail = format!(
        "{what} is not in the newest checkpoint, which has {size} records; if it was just sealed, try again in a moment."
    );
    codes::NO_SUCH_RECORD.problem(detail).with("checkpoint_size", size)
}

pub(super) async fn prove_inclusion(context: Context) -> Answer {
    let sequence = needed(&context, "sequence")?;
    let signed = context.app.journal.checkpointed();
    if sequence >= signed.size() {
        return Err(not_covered(&format!("Record {sequence}"), signed.size()));
    }
    let filter = Filter { caller: context.caller().clone(), tenant: None, kind: None, node: None, lease: None };
    let look = move |app: &App, proof: &leasehold_tlog::InclusionProof, signed: &SignedCheckpoint| {
        let record = app.journal.record(sequence).map_err(|error| unreadable(&error))?;
        let record = record.ok_or_else(|| not_covered(&format!("Record {sequence}"), signed.size()))?;
        // Callers that may not see the record still get the proof, because a hash reveals nothing about the record.
        let visible = filter.show(app, &mut app.live.names(), &record.raw())?.is_some();
        let hash = record.raw().hash();
        let extra = Some(record.bytes).filter(|bytes| visible && bytes.len() <= PROOF_EXTRA_BYTES_MAX);
        let file =
            note(signed).and_then(|note| InclusionFile::new(proof, note, extra)).map_err(|error| unwritten(&error))?;
        Ok(InclusionProof {
            sequence,
            record_hash: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            path: proof.hashes.iter().map(base64).collect(),
            checkpoint: shown(app, signed),
            proof: file.to_string(),
        })
    };
    json(200, &prove_record(&context.app, context.caller(), sequence, signed, look).await?)
}

pub(super) async fn prove_consistency(context: Context) -> Answer {
    let from = needed(&context, "from")?;
    let signed = context.app.journal.checkpointed();
    let to = context.number("to")?.unwrap_or_else(|| signed.size());
    if to > signed.size() {
        return Err(not_covered(&format!("The size {to}"), signed.size()));
    }
    if from > to {
        let given = context.query("to").is_some();
        let beyond = || not_covered(&format!("The size {from}"), to);
        return Err(if given { codes::BAD_QUERY.problem("`from` is larger than `to`.") } else { beyond() });
    }
    let (growth, signed) = prove_growth(&context.app, context.caller(), from, to, signed).await?;
    let proof = match to == signed.size() {
        false => None,
        true => Some(
            note(&signed)
                .and_then(|note| ConsistencyFile::new(&growth.proof, note))
                .map_err(|error| unwritten(&error))?,
        ),
    };
    let answer = ConsistencyProof {
        from,
        to,
        from_root: base64(&growth.from_root),
        to_root: base64(&growth.to_root),
        path: growth.proof.hashes.iter().map(base64).collect(),
        checkpoint: shown(&context.app, &signed),
        proof: proof.map(|file| file.to_string()),
    };
    json(200, &answer)
}

fn note(signed: &SignedCheckpoint) -> Result<Note, ProofFileError> {
    Ok(Note::parse(&signed.note)?)
}

fn unwritten(error: &ProofFileError) -> Problem {
    tracing::error!(%error, "cannot encode a proof");
    codes::INTERNAL.problem("Cannot encode the proof; the daemon's log has the details.")
}
