//! The proof of an invoice, as a file.
//!
//! It is made in a task of its own. If that takes long, the answer begins with the first line of the file, so that neither
//! the daemon's time limit nor the caller's ends it; the rest follows when the file is made and checked.

use super::invoices::unknown;
use crate::access::Caller;
use crate::books::{consult, problem};
use crate::context::{Answer, Context};
use crate::invoice_proof::{Provable, check_ready, prove_invoice as prove};
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use leasehold_api::{Problem, codes};
use leasehold_bill::proof_file::FIRST_LINE;
use leasehold_books::Books;
use leasehold_model::InvoiceNo;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};

/// Longer than most proofs take. With a shorter time limit for requests, half of that counts.
const BEGIN_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn prove_invoice(context: Context) -> Answer {
    let (text, caller) = (context.subject().to_owned(), context.caller().clone());
    let since_size = context.number("since_size")?;
    let found = consult(&context.app, context.caller(), move |_, books| find(books, &caller, &text)).await?;
    let found = Provable { since_size, ..found };
    check_ready(&context.app, found)?;
    let waiting = Arc::new(());
    let (app, caller) = (Arc::clone(&context.app), context.caller().clone());
    let task = tokio::spawn(prove(app, caller, found, Arc::downgrade(&waiting)));
    let within = BEGIN_WITHIN.min(context.app.request_timeout / 2);
    let mut response = Response::new(Making { task, _waiting: waiting }.body(within).await?);
    let disposition = format!("attachment; filename=\"{}.proof\"", found.number);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_str(&disposition).expect("a number is plain text"));
    Ok(response)
}

/// A file that is being made. Dropping it ends the work.
struct Making {
    task: JoinHandle<Result<Vec<u8>, Problem>>,
    /// While this is held, somebody waits for the file.
    _waiting: Arc<()>,
}

impl Drop for Making {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Making {
    /// The whole file if it is made in time; otherwise a body that begins now. Only in the first case a failure can be
    /// answered with its reason: later it ends the body, which the caller sees as an answer that breaks off.
    async fn body(mut self, within: Duration) -> Result<Body, Problem> {
        if let Ok(made) = tokio::time::timeout(within, &mut self.task).await {
            return made.unwrap_or_else(|error| Err(broken(&error))).map(Body::from);
        }
        let rest = async move {
            let made = (&mut self.task).await.unwrap_or_else(|error| Err(broken(&error)));
            let file = made.map_err(|problem| {
                tracing::warn!(%problem, "an invoice could not be proved, after the answer had begun");
                io::Error::other(problem.detail)
            })?;
            Ok(Bytes::from(file).slice(FIRST_LINE.len()..))
        };
        let first = stream::iter([Ok::<Bytes, io::Error>(Bytes::from_static(FIRST_LINE))]);
        Ok(Body::from_stream(first.chain(rest.into_stream())))
    }
}

fn broken(error: &JoinError) -> Problem {
    tracing::error!(%error, "making the proof of an invoice failed");
    codes::INTERNAL.problem("Making the proof failed; the daemon's log has the details.")
}

fn find(books: &Books, caller: &Caller, text: &str) -> Result<Provable, Problem> {
    let number = InvoiceNo::parse(text).ok_or_else(|| unknown(text))?;
    let found = books.invoice(number).map_err(|error| problem(&error))?;
    let found = found.filter(|invoice| caller.sees_tenant(invoice.head.tenant)).ok_or_else(|| unknown(text))?;
    let (tenant, month, issued_at) = (found.head.tenant, found.head.month, found.head.sequence);
    if !books.closed_months().any(|(closed, _)| closed == month) {
        let detail = format!("{month} is being closed; the invoice can be proved once that is done.");
        return Err(codes::PROOF_NOT_READY.problem(detail));
    }
    let stated_at = books.statement(tenant, month).ok_or_else(|| {
        codes::NO_STATEMENT.problem(format!(
            "{month} was closed without statements about its records, so that its invoices cannot be proved."
        ))
    })?;
    Ok(Provable { number, tenant, month, issued_at, stated_at, since_size: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use tokio::sync::oneshot;

    type Finish = oneshot::Sender<Result<Vec<u8>, Problem>>;

    /// A file that is made when the sender says so, and whether somebody waits for it.
    fn making() -> (Finish, Making, crate::invoice_proof::Waiting) {
        let (finish, finished) = oneshot::channel();
        let waiting = Arc::new(());
        let watched = Arc::downgrade(&waiting);
        let task = tokio::spawn(async { finished.await.expect("it is finished") });
        (finish, Making { task, _waiting: waiting }, watched)
    }

    fn file() -> Vec<u8> {
        [FIRST_LINE, b"and the rest"].concat()
    }

    #[tokio::test]
    async fn an_answer_begins_before_the_file_is_made_and_ends_with_it() {
        let (finish, making, _) = making();
        let mut body = making.body(Duration::ZERO).await.expect("it begins");
        let first = body.frame().await.expect("a frame").expect("no error").into_data().expect("data");
        assert_eq!(first, FIRST_LINE);
        finish.send(Ok(file())).expect("somebody waits");
        assert_eq!(body.collect().await.expect("no error").to_bytes().as_ref(), b"and the rest");
    }

    #[tokio::test]
    async fn what_is_made_in_time_is_answered_at_once_and_failures_with_their_reason() {
        let (finish, first, _) = making();
        finish.send(Ok(file())).expect("somebody waits");
        let body = first.body(Duration::from_secs(60)).await.expect("a file");
        assert_eq!(body.collect().await.expect("no error").to_bytes(), file());
        let (finish, second, _) = making();
        finish.send(Err(codes::PROOF_FAILED.problem("why"))).expect("somebody waits");
        assert_eq!(second.body(Duration::from_secs(60)).await.expect_err("a problem").code, "proof_failed");
    }

    #[tokio::test]
    async fn a_failure_after_the_beginning_breaks_the_answer_off() {
        let (finish, making, _) = making();
        let body = making.body(Duration::ZERO).await.expect("it begins");
        finish.send(Err(codes::PROOF_FAILED.problem("why"))).expect("somebody waits");
        assert!(body.collect().await.is_err());
    }

    #[tokio::test]
    async fn nobody_waits_for_an_answer_that_was_dropped() {
        let (_finish, making, watched) = making();
        let body = making.body(Duration::ZERO).await.expect("it begins");
        assert_eq!(watched.strong_count(), 1);
        drop(body);
        assert_eq!(watched.strong_count(), 0);
    }
}
