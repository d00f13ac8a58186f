//! `leasehold invoice diff`: why one invoice is higher than another, line by line.
//!
//! Both sides are what the daemon shows, or files that `invoice show --json` and `invoice draft --json` wrote: a draft
//! is gone once its month is closed. The parts add up to the difference of the totals exactly, or nothing is shown.

mod compare;

use super::details::or_dash;
use super::failure::Failed;
use super::ledger::money;
use super::session::Session;
use crate::cli::ledger::InvoiceDiffArgs;
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::Style;
use compare::{Bill, Difference, Head, Part, compare};
use leasehold_api::{Invoice, InvoiceDrafts, InvoiceFigures, LedgerAmount};
use leasehold_model::{InvoiceNo, Steps};
use serde_json::Value;
use std::path::Path;

/// Files are as large as the answers of the daemon, which have a limit of their own.
const FILE_BYTES_MAX: u64 = 64 << 20;

pub(super) async fn diff(session: &Session, args: InvoiceDiffArgs) -> Result<(), Failed> {
    let before = find(session, &args.before, &args).await?;
    let after = find(session, &args.after, &args).await?;
    let found = compare(&before, &after)?;
    if session.json {
        return Ok(print_json(&serde_json::to_value(&found).expect("strings have a JSON form"))?);
    }
    Ok(print(&text(session, &found))?)
}

async fn find(session: &Session, name: &str, args: &InvoiceDiffArgs) -> Result<Bill, Failed> {
    let of = |figures| Ok(Bill { name: name.to_owned(), figures });
    if InvoiceNo::parse(name).is_some() {
        return of(session.client.show_invoice(name.to_owned()).await?.figures);
    }
    if name == "draft" {
        let call = session.client.draft_invoices().maybe("tenant", args.tenant.as_ref());
        let drafts = call.maybe("month", args.month).maybe("currency", args.currency.as_ref()).await?;
        return of(only(drafts, name)?);
    }
    of(from_file(Path::new(name), args.currency.as_deref())?)
}

fn only(mut drafts: InvoiceDrafts, name: &str) -> Result<InvoiceFigures, Problem> {
    match (drafts.drafts.pop(), drafts.drafts.is_empty()) {
        (Some(draft), true) => Ok(draft),
        (None, _) => Err(Problem::refused("no_draft", format!("{name} has no draft of an invoice"))),
        (Some(_), false) => Err(Problem::usage("usage", format!("{name} has drafts in several currencies"))
            .advice("choose one with --currency")),
    }
}

/// A file with the JSON of an invoice or of drafts.
fn from_file(path: &Path, currency: Option<&str>) -> Result<InvoiceFigures, Problem> {
    let shown = path.display();
    let bad = |why: String| {
        Problem::usage("usage", format!("{shown} is not the number of an invoice, `draft`, or a file with one: {why}"))
            .advice("write a file with `leasehold invoice show NUMBER --json` or `leasehold invoice draft --json`")
    };
    let length = std::fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
    if length > FILE_BYTES_MAX {
        return Err(bad("it is too large".into()));
    }
    let bytes = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    if value.get("drafts").is_none() {
        let invoice: Invoice = serde_json::from_value(value).map_err(|error| bad(error.to_string()))?;
        return Ok(invoice.figures);
    }
    let mut drafts: InvoiceDrafts = serde_json::from_value(value).map_err(|error| bad(error.to_string()))?;
    drafts.drafts.retain(|draft| currency.is_none_or(|currency| draft.currency == currency));
    only(drafts, &shown.to_string())
}

fn in_words(part: &Part) -> String {
    let causes: Vec<String> = part
        .causes
        .iter()
        .map(|because| {
            let words = because.cause.replace('_', " ");
            match part.causes.len() {
                1 => words,
                _ => format!("{} {words}", signed(&because.amount)),
            }
        })
        .collect();
    match (&part.usage_before, &part.usage_after) {
        (Some(old), Some(new)) if old != new => format!("{} ({old} → {new})", causes.join(", ")),
        (None, Some(usage)) | (Some(usage), None) => format!("{} ({usage})", causes.join(", ")),
        _ => causes.join(", "),
    }
}

fn signed(amount: &str) -> String {
    let shown = money(&LedgerAmount(amount.to_owned()));
    if shown.starts_with('-') { shown } else { format!("+{shown}") }
}

fn text(session: &Session, found: &Difference) -> String {
    let head = |head: &Head| {
        let total = money(&LedgerAmount(head.total.clone()));
        format!("{} of {} over {total} {}", head.name, head.month, found.currency)
    };
    let amount = money(&LedgerAmount(found.difference.trim_start_matches('-').to_owned()));
    let verdict = match found.difference.parse() {
        Ok(Steps::ZERO) => "the totals are equal".to_owned(),
        _ if found.difference.starts_with('-') => format!("{amount} {} less", found.currency),
        _ => format!("{amount} {} more", found.currency),
    };
    let verdict = session.paint.paint(Style::Bold, &verdict);
    let title = format!("{verdict}: from {} to {}\n", head(&found.before), head(&found.after));
    if found.parts.is_empty() {
        return format!("{title}\nNo line differs.\n");
    }
    let headings = [
        ("what", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("difference", Align::Right),
        ("why", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["what", "why"]);
    let shown = |amount: &Option<String>| or_dash(amount.as_ref().map(|amount| money(&LedgerAmount(amount.clone()))));
    for part in &found.parts {
        table.row([
            part.what.clone(),
            shown(&part.before),
            shown(&part.after),
            signed(&part.difference),
            in_words(part),
        ]);
    }
    format!("{title}\n{}\n", session.lines(&table).join("\n"))
}
