//! Downloads of sealed batches, for a collector that keeps a copy.

use super::not_covered;
use crate::app::App;
use crate::context::{Answer, Context};
use crate::scans::{scan, unreadable};
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};
use leasehold_api::limits::BATCHES_BYTES_MAX;
use leasehold_api::{CHECKPOINT_SIZE, FIRST_SEQUENCE, NEXT_FROM, Problem};
use std::ops::ControlFlow;

/// Consecutive batches.
struct Stretch {
    bytes: Vec<u8>,
    first: u64,
    next: u64,
}

/// Only batches that the newest checkpoint covers, so that the collector can verify them.
pub(in crate::routes) async fn batches(context: Context) -> Answer {
    let from = context.number("from")?.unwrap_or(0);
    let size = context.app.journal.checkpointed().size();
    if from > size {
        return Err(not_covered(&format!("Record {from}"), size));
    }
    let stretch = scan(&context.app, context.caller(), move |app| read(app, from, size)).await?;
    let mut response = Response::new(Body::from(stretch.bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(FIRST_SEQUENCE, stretch.first.into());
    headers.insert(NEXT_FROM, stretch.next.into());
    headers.insert(CHECKPOINT_SIZE, size.into());
    Ok(response)
}

fn read(app: &App, from: u64, size: u64) -> Result<Stretch, Problem> {
    let mut stretch = Stretch { bytes: Vec::new(), first: from, next: from };
    let scanned = app.journal.scan_batches(from, &mut |first, batch| {
        let next = first + u64::from(batch.count());
        let together = stretch.bytes.len() + batch.bytes_total();
        if next > size || !stretch.bytes.is_empty() && together > BATCHES_BYTES_MAX {
            return ControlFlow::Break(());
        }
        if stretch.bytes.is_empty() {
            stretch.first = first;
        }
        stretch.bytes.extend_from_slice(batch.bytes());
        stretch.next = next;
        ControlFlow::Continue(())
    });
    scanned.map_err(|error| unreadable(&error))?;
    Ok(stretch)
}
