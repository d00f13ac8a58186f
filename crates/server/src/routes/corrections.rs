//! Entries that people book: by hand, as corrections, and what they dispute.

use super::ledger_scope::{bad, currency, entry, month, reason, steps};
use super::tenancy::find_owner_project;
use crate::app::App;
use crate::books::{consult, problem};
use crate::context::{Answer, Context, json};
use crate::names;
use crate::show_ledger::{LedgerView, amount, sum, too_large};
use leasehold_api::{
    AccountKind, CorrectionPut, LedgerEntryPut, NewCorrection, NewDispute, NewLedgerEntry, NewLeg, Problem, codes,
};
use leasehold_books::{Books, Entry};
use leasehold_engine::command::{AdjustLedger, CorrectEntry, DisputeEntry};
use leasehold_engine::{Command, Refusal, State};
use leasehold_ledger::payer_amount;
use leasehold_model::body::{Body, CorrectedLine, LedgerCorrected};
use leasehold_model::limits::LEDGER_LEGS_MAX;
use leasehold_model::{Account, AppInstanceNo, EntryId, EntryKind, Leg, Name, ProjectNo, Steps, TenantNo};

/// The entries of a record, in order.
fn entries_of(books: &Books, sequence: u64) -> Result<Vec<Entry>, Problem> {
    let found = (0..3).map(|position| books.entry(EntryId { sequence, position }));
    let found = found.collect::<Result<Vec<_>, _>>().map_err(|error| problem(&error))?;
    Ok(found.into_iter().flatten().collect())
}

/// Answers with an entry after a change.
async fn entry_put(context: &Context, status: u16, sequence: u64, id: EntryId) -> Answer {
    let put = consult(&context.app, context.caller(), move |app, books| {
        let entry = books.entry(id).map_err(|error| problem(&error))?;
        let entry = entry.ok_or_else(|| codes::INTERNAL.problem("The books lack an entry."))?;
        let entry = app.now.read(|state| LedgerView { app, state, books }.entry(&entry))?;
        Ok(LedgerEntryPut { sequence, entry })
    });
    json(status, &put.await?)
}

fn new_leg(state: &State, project: ProjectNo, leg: &NewLeg) -> Result<Leg, Problem> {
    let class = leg.class.as_deref().map(|text| names::class(state, text)).transpose()?;
    if let Some(unit) = leg.usage_unit.as_deref() {
        if leg.account != AccountKind::Revenue || class.is_some() {
            return Err(bad("legs", "may name a usage unit only with the account revenue, and instead of a class"));
        }
        let account = Account::UnitRevenue(names::unit(state, unit)?);
        return Ok(Leg { account, amount: steps("legs", &leg.amount)? });
    }
    let account = match (leg.account, class) {
        (AccountKind::Revenue, Some(class)) => Account::Revenue(class),
        (AccountKind::Revenue, None) => {
            return Err(bad("legs", "must name the class or the usage unit of a revenue account"));
        }
        (_, Some(_)) => return Err(bad("legs", "may name a class only with the account revenue")),
        (AccountKind::Receivable, None) => Account::Receivable(project),
        (AccountKind::Adjustments, None) => Account::Adjustments(project),
        (AccountKind::Rounding, None) => Account::Rounding,
        (AccountKind::OperatorLoss, None) => Account::OperatorLoss,
        // The engine refuses those that change by invoices, payments, prepaid credit and shares only.
        (AccountKind::Invoiced, None) => Account::Invoiced(TenantNo(0)),
        (AccountKind::Tax, None) => Account::Tax,
        (AccountKind::CashClearing, None) => Account::CashClearing,
        (AccountKind::Prepaid, None) => Account::ProjectPrepaid(project),
        (AccountKind::ExpiredCredits, None) => Account::ExpiredCredits,
        (AccountKind::SharedRuntime, None) => Account::SharedRuntime(AppInstanceNo(0)),
    };
    Ok(Leg { account, amount: steps("legs", &leg.amount)? })
}

pub(super) async fn post_entry(context: Context) -> Answer {
    let new: NewLedgerEntry = context.body()?;
    let original_month = new.original_month.as_ref().map(|text| month(&text.0)).transpose()?;
    let (currency, reason) = (currency("currency", &new.currency)?, reason(&new.reason)?);
    if new.legs.len() > LEDGER_LEGS_MAX {
        return Err(crate::problem::refused(&Refusal::TooManyLegs { limit: LEDGER_LEGS_MAX }));
    }
    let (project, legs) = context.app.now.read(|state| {
        let project = find_owner_project(state, context.caller(), new.tenant.as_deref(), &new.project)?;
        let legs = new.legs.iter().map(|leg| new_leg(state, project, leg)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, Problem>((project, legs))
    })?;
    let adjust = AdjustLedger { project, currency, original_month, legs, reason };
    let sealed = context.seal(Command::AdjustLedger(adjust)).await?;
    let sequence = sealed.sequence();
    entry_put(&context, 201, sequence, EntryId { sequence, position: 0 }).await
}

/// What takes an entry back, and what replaces it.
fn correction(books: &Books, found: &Entry, amount: Option<Steps>) -> Result<CorrectEntry, Problem> {
    let wrong_kind = || {
        let detail = format!(
            "An entry of kind `{}` cannot be corrected; correct the usage or the entry by hand that it follows from.",
            found.kind
        );
        codes::ENTRY_NOT_CORRECTABLE.problem(detail).with("kind", found.kind.word())
    };
    let of_usage =
        matches!(found.kind, EntryKind::Usage | EntryKind::Reversal | EntryKind::Replacement | EntryKind::Adjustment);
    let (Some(project), Some(original_month), true) = (found.project, found.original_month, of_usage) else {
        return Err(wrong_kind());
    };
    let reversal: Vec<Leg> = found.legs.iter().map(|leg| Leg { amount: -leg.amount, ..*leg }).collect();
    let replacement = match amount {
        None | Some(Steps::ZERO) => Vec::new(),
        Some(amount) => replacement(found, project, amount)?,
    };
    let line = found.line.as_ref();
    let line = line.map(|line| CorrectedLine { key: line.key.clone(), usage: line.usage, exact: line.exact.clone() });
    Ok(CorrectEntry {
        tenant: found.tenant,
        project,
        currency: found.currency,
        original_month,
        corrects: found.id,
        previous: books.last_entry_of(project, found.currency),
        line,
        reversal,
        replacement,
        reason: Name::new("-").expect("a valid name"),
    })
}

/// A correction that was made before: what the payer's chain was then, and what to tell about it.
struct Before {
    previous: Option<u64>,
    told: Problem,
}

fn before(app: &App, books: &Books, found: &Entry) -> Result<Option<Before>, Problem> {
    let Some(sequence) = books.correction_of(found.id) else { return Ok(None) };
    let record = crate::explain::decision::read(app, sequence)?;
    let Body::LedgerCorrected(LedgerCorrected { previous, .. }) = &record.body else {
        return Err(codes::INTERNAL.problem("The books name a record that is no correction."));
    };
    let (by, next) = (EntryId { sequence, position: 0 }, EntryId { sequence, position: 1 });
    let replaced = books.entry(next).map_err(|error| problem(&error))?.is_some();
    let advice = if replaced { format!("correct its replacement {next}") } else { format!("correct {by}") };
    let detail = format!("{} was corrected already, by {by}; {advice} instead.", found.id);
    let told = codes::ENTRY_CORRECTED.problem(detail).with("corrected_by", by.to_string());
    Ok(Some(Before { previous: *previous, told }))
}

/// The same accounts with another amount. With more than two accounts it is not known which of them changes.
fn replacement(found: &Entry, project: ProjectNo, amount: Steps) -> Result<Vec<Leg>, Problem> {
    let own = |leg: &Leg| leg.account == Account::Receivable(project);
    match found.legs[..] {
        [one, other] if own(&one) != own(&other) => {
            let leg = |leg: Leg| Leg { account: leg.account, amount: if own(&leg) { amount } else { -amount } };
            Ok(vec![leg(one), leg(other)])
        }
        _ => Err(bad(
            "amount",
            "cannot be given for an entry that is not between the receivable and one other account; reverse the entry \
             and book another one",
        )),
    }
}

pub(super) async fn correct_entry(context: Context) -> Answer {
    let new: NewCorrection = context.body()?;
    let reason = reason(&new.reason)?;
    let amount_given = new.amount.as_ref().map(|amount| steps("amount", amount)).transpose()?;
    let (caller, text) = (context.caller().clone(), new.entry.clone());
    let correct = consult(&context.app, context.caller(), move |app, books| {
        let found = entry(app, books, &caller, &text)?;
        Ok((correction(books, &found, amount_given)?, before(app, books, &found)?))
    });
    let (correct, before) = correct.await?;
    let mut correct = CorrectEntry { reason, ..correct };
    // The same request once more is the same command, and has the answer of the first if it has the same key.
    if let Some(Before { previous, .. }) = &before {
        correct.previous = *previous;
    }
    let (project, corrects) = (correct.project, correct.corrects);
    let stale = Refusal::StalePosting { project }.code();
    let sealed = context.seal(Command::CorrectEntry(correct)).await;
    let sealed = sealed.map_err(|problem| match before {
        Some(Before { told, .. }) if problem.code == stale => told,
        Some(_) | None => problem,
    })?;
    let sequence = sealed.sequence();
    let put = consult(&context.app, context.caller(), move |app, books| {
        let entries = entries_of(books, sequence)?;
        let change = entries.iter().map(|entry| payer_amount(&entry.legs, project));
        let change = change.collect::<Option<Vec<_>>>().ok_or_else(too_large)?;
        app.now.read(|state| {
            let view = LedgerView { app, state, books };
            Ok(CorrectionPut {
                sequence,
                corrects: corrects.to_string(),
                change: amount(sum(change)?),
                entries: entries.iter().map(|entry| view.entry(entry)).collect::<Result<_, _>>()?,
            })
        })
    });
    json(201, &put.await?)
}

async fn dispute(context: Context, open: bool) -> Answer {
    let new: NewDispute = context.body()?;
    let reason = reason(&new.reason)?;
    let caller = context.caller().clone();
    let found = consult(&context.app, context.caller(), move |app, books| entry(app, books, &caller, &new.entry));
    let found = found.await?;
    let Some(project) = found.project else {
        let detail = format!("An entry of kind `{}` cannot be disputed; dispute what it follows from.", found.kind);
        return Err(codes::ENTRY_NOT_DISPUTABLE.problem(detail).with("kind", found.kind.word()));
    };
    let dispute = DisputeEntry { tenant: found.tenant, project, entry: found.id, open, reason };
    let sealed = context.seal(Command::DisputeEntry(dispute)).await?;
    entry_put(&context, if open { 201 } else { 200 }, sealed.sequence(), found.id).await
}

pub(super) async fn dispute_entry(context: Context) -> Answer {
    dispute(context, true).await
}

pub(super) async fn close_dispute(context: Context) -> Answer {
    dispute(context, false).await
}
