//! The journal over HTTP.

use super::events::filter;
use crate::app::App;
use crate::context::{Answer, Context, json};
use crate::history::{scan, unreadable};
use crate::records::Filter;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use leasehold_api::{Checkpoint, Problem, RecordPage, limits};
use std::ops::ControlFlow;

pub(super) async fn list_records(context: Context) -> Answer {
    let filter = filter(&context)?;
    let (after, limit) = (context.number("after")?, context.limit()?);
    let page = scan(&context.app, move |app| page(app, &filter, after, limit)).await?;
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
        None => Ok(RecordPage { records, next_after, size: app.journal.head().size }),
    }
}

fn signed(app: &App) -> Checkpoint {
    let checkpoint = app.journal.checkpointed();
    Checkpoint {
        origin: app.journal.origin().to_owned(),
        size: checkpoint.size(),
        root: BASE64_STANDARD.encode(checkpoint.position.tree.root()),
        note: checkpoint.note,
    }
}

pub(super) async fn checkpoint(context: Context) -> Answer {
    json(200, &signed(&context.app))
}

pub(super) async fn prove_inclusion(context: Context) -> Answer {
    let _ = &context.app.proofs;
    Err(leasehold_api::codes::NO_SUCH_RECORD.problem("not yet"))
}
pub(super) async fn prove_consistency(_: Context) -> Answer {
    Err(leasehold_api::codes::NO_SUCH_RECORD.problem("not yet"))
}
pub(super) async fn export(_: Context) -> Answer {
    Err(leasehold_api::codes::NO_SUCH_RECORD.problem("not yet"))
}
pub(super) async fn batches(_: Context) -> Answer {
    Err(leasehold_api::codes::NO_SUCH_RECORD.problem("not yet"))
}
