//! What the journals of rules version 5 hold: everything that the ledger and prepaid credit record, and the cases that
//! are easy to fold otherwise.

use crate::contents::{Has, demand};
use crate::folded;
use leasehold_books::{EntryQuestion, Keeper};
use leasehold_model::body::{
    Body, InvoiceIssued, LedgerCorrected, LedgerPosted, PostedLine, PrepaidApplied, PrepaidChanged, PrepaidToppedUp,
};
use leasehold_model::ledger::InvoiceSeries;
use leasehold_model::{
    AccountKind, CreditSource, DenyCause, EntryKind, Month, PrepaidAction, PrepaidState, Priority, Reason, Record,
    Steps,
};
use std::collections::BTreeSet;

const ADDED: &[(&str, Has)] = &[
    ("tenant: billing_address", |r| matches!(&r.body, Body::TenantPut(b) if b.settings.billing_address.is_some())),
    ("tenant: tax_id", |r| matches!(&r.body, Body::TenantPut(b) if b.settings.tax_id.is_some())),
    ("denied: credit of the tenant", |r| denied(r, true)),
    ("denied: credit of the project", |r| denied(r, false)),
    ("revoked: for lack of money", |r| matches!(r.body, Body::Revoked(_)) && r.reason == Some(Reason::Budget)),
    (
        "changed: downgraded with a state",
        |r| matches!(&r.body, Body::AllocationChanged(b) if r.continues && b.spec.priority == Priority::Scavenger),
    ),
    ("opened: from the past", |r| matches!(&r.body, Body::LedgerOpened(b) if b.from.0 + 600_000_000_000 < r.stamp.0)),
    ("posted: first part", |r| posted(r, |b| !b.complete)),
    ("posted: nothing before", |r| posted(r, |b| b.previous.is_none())),
    ("posted: residual", |r| posted(r, |b| b.residual.units() != 0)),
    ("posted: negative residual", |r| posted(r, |b| b.residual.units() < 0)),
    ("posted: in JPY", |r| posted(r, |b| b.currency.as_str() == "JPY")),
    ("posted: usage of an earlier month", |r| posted(r, |b| b.lines.iter().any(|of| Month::of(of.key.hour) < b.month))),
    ("line: not whole steps", |r| line(r, |b| b.exact.denominator.digits() != [1])),
    ("line: less usage than before", |r| line(r, |b| b.usage.0 < 0 && b.posted < Steps::ZERO)),
    ("line: held by another project", |r| line(r, |b| r.identity.project != Some(b.key.project))),
    ("line: tag", |r| line(r, |b| b.key.tag.is_some())),
    ("line: app instance", |r| line(r, |b| b.key.app_instance.is_some())),
    ("line: attachment", |r| line(r, |b| b.key.attachment.is_some())),
    ("line: control plane", |r| line(r, |b| b.key.control_plane)),
    ("line: default prices", |r| line(r, |b| b.key.card.is_none())),
    ("line: priced otherwise", |r| line(r, |b| b.key.priced != b.key.priority)),
    ("corrected: usage", |r| corrected(r, |b| b.line.is_some())),
    ("corrected: by hand", |r| corrected(r, |b| b.line.is_none())),
    ("corrected: a correction", |r| corrected(r, |b| b.corrects.position == 1 && !b.replacement.is_empty())),
    ("corrected: without replacement", |r| corrected(r, |b| b.replacement.is_empty())),
    ("corrected: rounding", |r| corrected(r, |b| b.rounding != Steps::ZERO)),
    ("corrected: of a closed month", |r| corrected(r, |b| b.original_month < b.month)),
    ("adjusted: of a closed month", |r| matches!(&r.body, Body::LedgerAdjusted(b) if b.original_month < b.month)),
    ("disputed", |r| matches!(&r.body, Body::LedgerDisputed(b) if b.open)),
    ("dispute closed", |r| matches!(&r.body, Body::LedgerDisputed(b) if !b.open)),
    ("invoice", |r| issued(r, |b| b.number.series == InvoiceSeries::Invoice)),
    ("credit note", |r| issued(r, |b| b.number.series == InvoiceSeries::CreditNote)),
    ("invoice: several projects", |r| issued(r, |b| b.projects.len() > 1)),
    ("invoice: several tax rates", |r| issued(r, |b| b.taxes.len() > 1)),
    ("invoice: rounded", |r| issued(r, |b| b.taxes.iter().any(|tax| tax.net != tax.posted))),
    ("invoice: in JPY", |r| {
        issued(r, |b| b.currency.as_str() == "JPY" && b.taxes.iter().any(|tax| tax.net != tax.posted))
    }),
    (
        "closed: with invoices and credit notes",
        |r| matches!(&r.body, Body::PeriodClosed(b) if b.invoices > 0 && b.credit_notes > 0),
    ),
    ("payment: of an invoice", |r| matches!(&r.body, Body::PaymentRecorded(b) if b.invoice.is_some())),
    ("payment: of none", |r| matches!(&r.body, Body::PaymentRecorded(b) if b.invoice.is_none())),
    ("payment: back", |r| matches!(&r.body, Body::PaymentRecorded(b) if b.amount < Steps::ZERO)),
    ("payment: received before", |r| matches!(&r.body, Body::PaymentRecorded(b) if b.received_at < r.stamp)),
    ("tax rate: of a later month", |r| matches!(&r.body, Body::TaxRatePut(b) if b.from > Month::of(r.stamp))),
    ("credit: paid", |r| topped(r, |b| b.source == CreditSource::Paid)),
    ("credit: granted", |r| topped(r, |b| b.source == CreditSource::Granted)),
    ("credit: expires", |r| topped(r, |b| b.expires_at.is_some())),
    ("credit: priority", |r| topped(r, |b| b.priority > 0)),
    ("credit: of the tenant", |r| topped(r, |_| r.identity.project.is_none())),
    ("credit: of a project", |r| topped(r, |_| r.identity.project.is_some())),
    ("credit: in another currency", |r| topped(r, |b| b.currency.as_str() != "EUR")),
    ("policy: grace", |r| matches!(&r.body, Body::PrepaidPolicyPut(b) if b.policy.grace.is_some())),
    ("policy: window", |r| matches!(&r.body, Body::PrepaidPolicyPut(b) if b.policy.window.0 > 0)),
    ("lapsed: expired", |r| lapsed(r, |amount| amount > Steps::ZERO && r.effective_at < r.stamp)),
    ("lapsed: ended", |r| lapsed(r, |amount| amount > Steps::ZERO && r.effective_at == r.stamp)),
    ("lapsed: used up", |r| lapsed(r, |amount| amount == Steps::ZERO)),
    ("changed: enough", |r| changed(r, |b| b.to == PrepaidState::Enough)),
    ("changed: low", |r| changed(r, |b| b.to == PrepaidState::Low)),
    ("changed: pending", |r| changed(r, |b| b.to == PrepaidState::Pending)),
    ("changed: depleted", |r| changed(r, |b| b.to == PrepaidState::Depleted)),
    ("changed: alert", |r| changed(r, |b| b.action == PrepaidAction::Alert)),
    ("changed: downgrade", |r| changed(r, |b| b.action == PrepaidAction::Downgrade)),
    ("changed: block", |r| changed(r, |b| b.action == PrepaidAction::Block)),
    ("changed: drain", |r| changed(r, |b| b.action == PrepaidAction::Drain)),
    ("changed: by a command", |r| changed(r, |_| r.continues)),
    ("changed: by time", |r| changed(r, |_| !r.continues)),
    ("changed: balance below zero", |r| changed(r, |b| b.balance.0 < 0)),
    ("applied: covered", |r| applied(r, |b| b.uncovered == Steps::ZERO && b.amount > Steps::ZERO)),
    ("applied: not covered", |r| applied(r, |b| b.uncovered > Steps::ZERO)),
    ("applied: given back", |r| applied(r, |b| b.amount < Steps::ZERO)),
    ("applied: rounded", |r| applied(r, |b| b.credited != b.amount)),
    ("applied: of the tenant", |r| applied(r, |_| r.identity.project.is_none())),
    ("applied: of a project", |r| applied(r, |_| r.identity.project.is_some())),
];

fn denied(record: &Record, tenants: bool) -> bool {
    let Body::Denied(denied) = &record.body else { return false };
    matches!(denied.cause, DenyCause::Prepaid { of_tenant, .. } if of_tenant == tenants)
}

fn posted(record: &Record, has: impl Fn(&LedgerPosted) -> bool) -> bool {
    matches!(&record.body, Body::LedgerPosted(posted) if has(posted))
}

fn line(record: &Record, has: impl Fn(&PostedLine) -> bool) -> bool {
    posted(record, |posted| posted.lines.iter().any(&has))
}

fn corrected(record: &Record, has: impl Fn(&LedgerCorrected) -> bool) -> bool {
    matches!(&record.body, Body::LedgerCorrected(corrected) if has(corrected))
}

fn issued(record: &Record, has: impl Fn(&InvoiceIssued) -> bool) -> bool {
    matches!(&record.body, Body::InvoiceIssued(issued) if has(issued))
}

fn topped(record: &Record, has: impl Fn(&PrepaidToppedUp) -> bool) -> bool {
    matches!(&record.body, Body::PrepaidToppedUp(topped) if has(topped))
}

fn lapsed(record: &Record, has: impl Fn(Steps) -> bool) -> bool {
    matches!(&record.body, Body::PrepaidLapsed(lapsed) if has(lapsed.amount))
}

fn changed(record: &Record, has: impl Fn(&PrepaidChanged) -> bool) -> bool {
    matches!(&record.body, Body::PrepaidChanged(changed) if has(changed))
}

fn applied(record: &Record, has: impl Fn(&PrepaidApplied) -> bool) -> bool {
    matches!(&record.body, Body::PrepaidApplied(applied) if has(applied))
}

#[test]
fn everything_that_rules_5_added_is_there() {
    demand(5, ADDED);
}

/// The books of these journals have every kind of entry, on every kind of account, as rules version 5 knew them.
#[test]
fn every_kind_of_entry_is_there() {
    let (mut kinds, mut accounts) = (BTreeSet::new(), BTreeSet::new());
    for frozen in folded().iter().filter(|frozen| frozen.name.starts_with("rules-5/")) {
        let mut books = Keeper::in_memory().books;
        frozen.records.iter().for_each(|record| books.apply(record).expect("a journal that the books follow"));
        let all = books.entries(&EntryQuestion { limit: usize::MAX, ..EntryQuestion::default() }).expect("all entries");
        kinds.extend(all.entries.iter().map(|entry| entry.kind.word()));
        accounts.extend(all.entries.iter().flat_map(|entry| &entry.legs).map(|leg| leg.account.word()));
    }
    for kind in [
        EntryKind::Usage,
        EntryKind::Reversal,
        EntryKind::Replacement,
        EntryKind::Rounding,
        EntryKind::Adjustment,
        EntryKind::Invoice,
        EntryKind::Tax,
        EntryKind::Payment,
        EntryKind::TopUp,
        EntryKind::Lapse,
        EntryKind::PrepaidUse,
    ] {
        assert!(kinds.contains(kind.word()), "no entry is a {kind}");
    }
    for account in [
        AccountKind::Receivable,
        AccountKind::Invoiced,
        AccountKind::Adjustments,
        AccountKind::Revenue,
        AccountKind::Rounding,
        AccountKind::Tax,
        AccountKind::CashClearing,
        AccountKind::OperatorLoss,
        AccountKind::Prepaid,
        AccountKind::ExpiredCredits,
    ] {
        assert!(accounts.contains(account.word()), "no entry is on {account}");
    }
}
