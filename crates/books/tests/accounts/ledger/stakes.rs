//! Whether a change of evidence has consequences. What is not charged can be changed without any.

use leasehold_bill::{Evidence, Fold, UsedLines, check};
use leasehold_meter::Window;
use leasehold_model::body::InvoiceIssued;
use leasehold_model::rate::Decimal;
use leasehold_model::{Body, Record};
use std::collections::BTreeMap;

/// What the hours of the month used as of its cut, and what that costs; `None` if the records contradict each other.
fn used(evidence: &Evidence) -> Option<UsedLines> {
    let tenants = BTreeMap::from([(evidence.tenant, evidence.list_at_start.clone())]);
    let mut fold = Fold::from_lists(evidence.common_at_start.clone(), tenants, evidence.claimed_nodes.clone());
    fold.keep(evidence.tenant, evidence.month.start());
    let in_range = evidence.records.iter().filter(|evident| evident.sequence < evidence.statement.1.cut);
    for evident in in_range {
        fold.take(&evident.record).ok()?;
    }
    let window = Window::new(evidence.month.start(), evidence.month.end());
    let mut used = fold.used(evidence.tenant, window).ok()?;
    used.retain(|(_, currency), _| *currency == evidence.currency);
    Some(used)
}

/// The month used something else, or that costs something else.
pub(super) fn usage(before: &Evidence, after: &Evidence) -> bool {
    let after = used(after);
    after.is_some() && used(before) != after
}

/// The record of the invoice, and its sequence.
pub(super) fn invoice(evidence: &Evidence) -> Option<(u64, &InvoiceIssued)> {
    let of = (evidence.month, evidence.currency);
    evidence.records.iter().find_map(|evident| match &evident.record.body {
        Body::InvoiceIssued(invoice) if (invoice.month, invoice.currency) == of => Some((evident.sequence, invoice)),
        _ => None,
    })
}

/// The records up to the invoice.
pub(super) fn until_invoice(evidence: &Evidence) -> impl Iterator<Item = &Record> {
    let issued_at = invoice(evidence).map_or(0, |(sequence, _)| sequence);
    evidence.records.iter().filter(move |evident| evident.sequence <= issued_at).map(|evident| &evident.record)
}

/// The tax rate of the month.
fn tax_rate(evidence: &Evidence) -> Decimal {
    let mut rates: BTreeMap<_, _> = evidence.list_at_start.tax_rates.iter().copied().collect();
    for record in until_invoice(evidence) {
        if let Body::TaxRatePut(put) = &record.body {
            rates.insert(put.from, put.rate);
        }
    }
    rates.range(..=evidence.month).next_back().map_or(Decimal(0), |(_, rate)| *rate)
}

/// Something that was posted for the month is taxed otherwise.
pub(super) fn tax(before: &Evidence, after: &Evidence) -> bool {
    let of_month = check(before).lines.into_iter().filter(|line| line.key.month == before.month);
    tax_rate(before) != tax_rate(after) && of_month.map(|line| line.posted.0).sum::<i128>() != 0
}

/// A payer of the list has posted something since.
pub(super) fn carried_over(before: &Evidence, _after: &Evidence) -> bool {
    let posts = |record: &&Record| match &record.body {
        Body::LedgerPosted(posted) => posted.currency == before.currency,
        Body::LedgerCorrected(corrected) => corrected.currency == before.currency,
        _ => false,
    };
    let payers = &before.list_at_start.payers;
    until_invoice(before).filter(posts).any(|record| {
        let project = record.identity.project;
        payers.iter().any(|payer| payer.currency == before.currency && Some(payer.project) == project)
    })
}

pub(super) fn always(_before: &Evidence, _after: &Evidence) -> bool {
    true
}
