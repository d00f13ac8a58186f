//! All records as JSON, one per line, with the names in use at the time.
//!
//! The journal is read further only when the reader has accepted the previous piece: a slow reader holds one piece of
//! memory and no reader's place, and reading stops when the reader disconnects.

use crate::access::Caller;
use crate::app::App;
use crate::context::{Answer, Context};
use crate::scans::{scan_on, unreadable};
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use leasehold_api::{Problem, codes, limits};
use leasehold_view::Directory;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Approximate size of the pieces that are read.
const PIECE_BYTES: usize = 256 * 1024;

struct Export {
    app: Arc<App>,
    /// The export ends if the token of the caller is revoked meanwhile.
    caller: Caller,
    /// Follows the journal from the first record, because names change over time.
    directory: Directory,
    /// The next sequence to read.
    next: u64,
    /// The first sequence to show, and the one after the last.
    from: u64,
    until: u64,
}

pub(in crate::routes) async fn export(context: Context) -> Answer {
    let (from, to) = (context.number("from")?.unwrap_or(0), context.number("to")?);
    let size = context.app.journal.head().size;
    if from >= size {
        let detail = format!("There is no record {from}: the journal has {size} records.");
        return Err(codes::NO_SUCH_RECORD.problem(detail));
    }
    if to.is_some_and(|to| to < from) {
        return Err(codes::BAD_QUERY.problem("`from` is larger than `to`."));
    }
    let until = to.map_or(size, |to| to.saturating_add(1).min(size));
    let (app, caller) = (Arc::clone(&context.app), context.caller().clone());
    let export = Export { app, caller, directory: Directory::new(), next: 0, from, until };
    // An error in the first piece is answered with a status; later errors can only end the body.
    let (export, first) = export.read_on().await?;
    let later = stream::unfold(Some(export), |export| async {
        match export?.next_piece().await {
            Ok(None) => None,
            Ok(Some((export, piece))) => Some((Ok(piece), Some(export))),
            Err(problem) => {
                tracing::warn!(%problem, "an export failed");
                Some((Err(io::Error::other(problem.detail)), None))
            }
        }
    });
    let body = stream::iter([Ok::<Bytes, io::Error>(first)]).chain(later);
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

impl Export {
    /// The next lines; `None` at the end.
    async fn next_piece(mut self) -> Result<Option<(Self, Bytes)>, Problem> {
        while self.next < self.until {
            if self.app.live.is_stopping() {
                return Err(codes::STOPPING.problem("The daemon is stopping."));
            }
            if !self.is_still_authorised() {
                return Err(codes::UNAUTHENTICATED.problem("The token was revoked or has expired."));
            }
            let (read, piece) = self.read_on().await?;
            if !piece.is_empty() {
                return Ok(Some((read, piece)));
            }
            self = read;
        }
        Ok(None)
    }

    fn is_still_authorised(&self) -> bool {
        let now = self.app.time();
        self.app.now.read(|state| state.token(self.caller.token).is_some_and(|token| token.is_live(state, now)))
    }

    async fn read_on(mut self) -> Result<(Self, Bytes), Problem> {
        let (app, caller) = (Arc::clone(&self.app), self.caller.clone());
        scan_on(&app, &caller, move |_| {
            let piece = self.read()?;
            Ok((self, piece))
        })
        .await
    }

    /// Reads a part of the journal; empty if none of it is to be shown.
    fn read(&mut self) -> Result<Bytes, Problem> {
        let (begin, until, from) = (self.next, self.until, self.from);
        let (mut lines, mut broken) = (Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8), None);
        let (next, directory) = (&mut self.next, &mut self.directory);
        let scanned = self.app.journal.scan(begin, &mut |sequence, raw| {
            if sequence >= until || lines.len() >= PIECE_BYTES || sequence - begin >= limits::RECORDS_SCANNED_MAX {
                return ControlFlow::Break(());
            }
            let hash = raw.hash();
            let looked_at = if sequence < from {
                directory.pass(&raw, &hash)
            } else {
                // Writing to memory cannot fail.
                directory.show(&raw, &hash).map(|shown| drop(writeln!(lines, "{shown}")))
            };
            if let Err(error) = looked_at {
                broken = Some((sequence, error));
                return ControlFlow::Break(());
            }
            *next = sequence + 1;
            ControlFlow::Continue(())
        });
        scanned.map_err(|error| unreadable(&error))?;
        match broken {
            None => Ok(lines.into()),
            Some((sequence, error)) => {
                tracing::error!(sequence, %error, "cannot decode a record");
                Err(codes::INTERNAL.problem(format!("Cannot decode record {sequence}.")))
            }
        }
    }
}
