//! The proof of an invoice, as a file.

use super::invoices::unknown;
use crate::access::Caller;
use crate::books::{consult, problem};
use crate::context::{Answer, Context};
use crate::invoice_proof::{self, Provable};
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};
use leasehold_api::{Problem, codes};
use leasehold_books::Books;
use leasehold_model::InvoiceNo;

pub(super) async fn prove_invoice(context: Context) -> Answer {
    let (text, caller) = (context.subject().to_owned(), context.caller().clone());
    let found = consult(&context.app, context.caller(), move |_, books| find(books, &caller, &text)).await?;
    let file = invoice_proof::prove_invoice(&context.app, context.caller(), found).await?;
    let disposition = format!("attachment; filename=\"{}.proof\"", found.number);
    let mut response = Response::new(Body::from(file));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_str(&disposition).expect("a number is plain text"));
    Ok(response)
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
    Ok(Provable { number, tenant, month, issued_at, stated_at })
}
