//! The ledger: its state, entries, balances and drafts, corrections and disputes.

use super::books_query::word;
use super::ledger_scope::{
    OwnerText, asked_currency, asked_month, bad, currency, entry, for_all_tenants, month, reason, sees, sees_all, steps,
};
use super::page::page;
use super::tenancy::find_owner_project;
use crate::books::{ask, consult, problem};
use crate::context::{Answer, Context, cursor_after, json};
use crate::names;
use crate::settlement::{Unsettled, settle_now};
use crate::show_ledger::{LedgerView, amount, month as shown_month, sum, too_large};
use leasehold_api::{
    AccountKind, CorrectionPut, DraftLine, DraftPayer, LedgerBalanceList, LedgerDraft, LedgerEntryList, LedgerEntryPut,
    LedgerOpened, LedgerSettled, LedgerStatus, LedgerTotal, NewCorrection, NewDispute, NewLedgerEntry, NewLeg,
    OpenLedger, Problem, When, codes,
};
use leasehold_books::{Books, Entry, EntryQuestion, PayerPosting};
use leasehold_engine::command::{self, AdjustLedger, CorrectEntry, DisputeEntry};
use leasehold_engine::{Command, Refusal, State};
use leasehold_ledger::{Amount, PostUsage, RatedLine, payer_amount, rounded};
use leasehold_model::body::CorrectedLine;
use leasehold_model::ledger::{HOUR_NS, hour_of};
use leasehold_model::limits::LEDGER_LEGS_MAX;
use leasehold_model::rate::Currency;
use leasehold_model::{Account, Body, EntryId, EntryKind, Instant, Leg, ProjectNo, Steps, TenantNo};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An hour that has been over for longer should be settled.
const LAG: u64 = 5 * 60_000_000_000;

pub(super) fn not_open() -> Problem {
    crate::problem::refused(&Refusal::LedgerNotOpen)
}

/// Hours that are over and not settled.
pub(super) fn hours_between(settled: Instant, until: Instant) -> u64 {
    hour_of(until).0.saturating_sub(settled.0) / HOUR_NS
}

pub(super) async fn ledger_status(context: Context) -> Answer {
    let caller = context.caller().clone();
    let status = consult(&context.app, context.caller(), move |app, books| {
        let (now, opened, settled) = (app.time(), books.ledger_opened(), books.settled_through());
        let all = sees_all(&caller);
        let mut disputes = 0;
        for id in books.disputes() {
            let seen = all || books.entry(id).map_err(|error| problem(&error))?.is_some_and(|one| sees(&caller, &one));
            disputes += u64::from(seen);
        }
        let is_lagging = opened.is_some() && now.0.saturating_sub(LAG) >= settled.0.saturating_add(HOUR_NS);
        Ok(LedgerStatus {
            open: opened.is_some(),
            opened_from: opened.map(When),
            settled_through: opened.map(|_| When(settled)),
            hours_unsettled: opened.map_or(0, |_| hours_between(settled, now)),
            lagging: is_lagging,
            trouble: app.settlement.trouble().filter(|_| all),
            first_open_month: opened.map(|_| shown_month(books.first_open_month())),
            closing_month: books.closing_month().map(shown_month),
            entries: all.then(|| books.entry_count()),
            disputes,
            as_of: When(now),
            as_of_size: books.size(),
        })
    });
    json(200, &status.await?)
}

pub(super) async fn open_ledger(context: Context) -> Answer {
    let open: OpenLedger = context.body()?;
    for_all_tenants(&context)?;
    let command = Command::OpenLedger(command::OpenLedger { from: open.from.map(|from| from.0) });
    let sealed = context.seal(command).await?;
    let Body::LedgerOpened(opened) = &sealed.first().body else { unreachable!("the ledger was opened") };
    json(201, &LedgerOpened { sequence: sealed.sequence(), from: When(opened.from) })
}

fn unsettled(why: &Unsettled) -> Problem {
    match why {
        Unsettled::Books(error) => problem(error),
        Unsettled::Behind => {
            codes::BOOKS_BEHIND.problem("The books do not follow fast enough; try again.").with("retry_after", 5)
        }
        Unsettled::Refused(refusal) => crate::problem::refused(refusal),
        Unsettled::Unsealed(unsealed) => crate::problem::unanswered(unsealed),
    }
}

/// Settles all hours that are over.
pub(super) async fn settle_hours(context: &Context) -> Result<(), Problem> {
    let app = Arc::clone(&context.app);
    let settled = tokio::task::spawn_blocking(move || settle_now(&app));
    let settled = settled.await.map_err(|_| codes::INTERNAL.problem("The settlement failed; the log has the details."));
    settled?.map_err(|why| unsettled(&why))
}

pub(super) async fn settle_ledger(context: Context) -> Answer {
    for_all_tenants(&context)?;
    let before = context.app.now.read(|state| state.ledger().opened.map(|_| state.ledger().settled_through));
    let before = before.ok_or_else(not_open)?;
    settle_hours(&context).await?;
    let settled = consult(&context.app, context.caller(), move |app, books| {
        let through = books.settled_through();
        Ok(LedgerSettled {
            hours: through.0.saturating_sub(before.0) / HOUR_NS,
            settled_through: When(through),
            hours_unsettled: hours_between(through, app.time()),
            entries: books.entry_count(),
        })
    });
    json(200, &settled.await?)
}

/// The lines of one part of a posting, rounded as the engine would.
fn draft_lines(
    view: &LedgerView<'_>,
    part: &PostUsage,
    residual: &mut leasehold_model::Residual,
) -> Result<(Vec<DraftLine>, Steps), Problem> {
    let exact = part.lines.iter().map(|line| Amount::decoded(&line.exact)).collect::<Option<Vec<_>>>();
    let posted = rounded(*residual, &exact.ok_or_else(too_large)?).map_err(|_| too_large())?;
    *residual = posted.residual;
    let total = sum(posted.lines.iter().copied())?;
    let line = |(line, posted): (&RatedLine, Steps)| {
        Ok(DraftLine { line: view.line(&line.key, line.usage.0, &line.exact)?, amount: amount(posted) })
    };
    let lines = part.lines.iter().zip(posted.lines).map(line).collect::<Result<_, Problem>>()?;
    Ok((lines, total))
}

fn draft_payer(view: &LedgerView<'_>, posting: &PayerPosting) -> Result<Option<(DraftPayer, Steps)>, Problem> {
    let Some(first) = posting.parts.first() else { return Ok(None) };
    let (mut lines, mut total) = (Vec::new(), Steps::ZERO);
    let mut residual = view.books.residual_of(first.project, first.currency);
    for part in &posting.parts {
        let (some, sum_of_part) = draft_lines(view, part, &mut residual)?;
        lines.extend(some);
        total = sum([total, sum_of_part])?;
    }
    let payer = DraftPayer {
        tenant: view.tenant(first.tenant),
        tenant_id: first.tenant.0,
        payer: view.project(first.project),
        payer_id: first.project.0,
        currency: first.currency.to_string(),
        amount: amount(total),
        lines,
    };
    Ok(Some((payer, total)))
}

pub(super) async fn ledger_draft(context: Context) -> Answer {
    let (wanted, asked) = (asked_currency(&context)?, OwnerText::of(&context));
    let (app, caller) = (Arc::clone(&context.app), context.caller().clone());
    let draft = ask(&context.app, context.caller(), move |books, known| {
        if books.ledger_opened().is_none() {
            return Err(not_open());
        }
        let owner = app.now.read(|state| asked.find(state, books, &caller))?;
        let unposted = books.unposted(known.as_of).map_err(|error| problem(&error))?;
        let is_asked = |posting: &&PayerPosting| {
            posting.parts.first().is_some_and(|first| {
                owner.tenant.is_none_or(|tenant| tenant == first.tenant)
                    && owner.project.is_none_or(|project| project == first.project)
                    && wanted.is_none_or(|currency| currency == first.currency)
            })
        };
        let asked: Vec<&PayerPosting> = unposted.iter().filter(is_asked).collect();
        super::books::too_many(asked.iter().flat_map(|one| &one.parts).map(|part| part.lines.len()).sum())?;
        let mut totals: BTreeMap<Currency, Steps> = BTreeMap::new();
        let payers = app.now.read(|state| {
            let view = LedgerView { app: &app, state, books };
            let mut payers = Vec::new();
            for posting in asked {
                if let Some((payer, total)) = draft_payer(&view, posting)? {
                    let all = totals.entry(posting.parts[0].currency).or_default();
                    *all = sum([*all, total])?;
                    payers.push(payer);
                }
            }
            Ok::<_, Problem>(payers)
        })?;
        let total =
            |(currency, all): (Currency, Steps)| LedgerTotal { currency: currency.to_string(), amount: amount(all) };
        Ok(LedgerDraft {
            settled_through: When(books.settled_through()),
            as_of: When(known.as_of),
            as_of_size: known.size,
            payers,
            totals: totals.into_iter().map(total).collect(),
        })
    });
    json(200, &draft.await?)
}

/// A cursor is one number: the sequence of the record, and the position in it.
const POSITION_BITS: u32 = 16;

fn cursor_of(id: EntryId) -> String {
    cursor_after(id.sequence << POSITION_BITS | u64::from(id.position))
}

fn entry_after(context: &Context) -> Result<Option<EntryId>, Problem> {
    let position = |cursor: u64| u16::try_from(cursor & ((1 << POSITION_BITS) - 1)).unwrap_or(u16::MAX);
    let cursor = context.cursor()?;
    Ok(cursor.map(|cursor| EntryId { sequence: cursor >> POSITION_BITS, position: position(cursor) }))
}

/// Entries on accounts of one kind: which account it is depends on the entry.
fn is_on(entry: &Entry, account: Option<AccountKind>) -> bool {
    account.is_none_or(|kind| entry.legs.iter().any(|leg| leg.account.kind() == kind))
}

/// The most pages of the books that are read for one answer.
const READS: usize = 8;

pub(super) async fn list_entries(context: Context) -> Answer {
    let (after, limit) = (entry_after(&context)?, context.limit()?);
    let asked = OwnerText::of(&context);
    let (currency, month) = (asked_currency(&context)?, asked_month(&context)?);
    let (kind, account) = (word::<EntryKind>(&context, "kind")?, word::<AccountKind>(&context, "account")?);
    let caller = context.caller().clone();
    let listed = consult(&context.app, context.caller(), move |app, books| {
        let owner = app.now.read(|state| asked.find(state, books, &caller))?;
        let mut question = EntryQuestion {
            tenant: owner.tenant,
            project: owner.project,
            currency,
            month,
            kind,
            account: None,
            after,
            limit,
        };
        let (mut found, mut next) = (Vec::new(), None);
        for _ in 0..READS {
            question.limit = limit - found.len();
            let page = books.entries(&question).map_err(|error| problem(&error))?;
            found.extend(page.entries.into_iter().filter(|entry| sees(&caller, entry) && is_on(entry, account)));
            (next, question.after) = (page.next, page.next);
            if next.is_none() || found.len() == limit {
                break;
            }
        }
        app.now.read(|state| {
            let view = LedgerView { app, state, books };
            let entries = found.iter().map(|entry| view.entry(entry)).collect::<Result<_, _>>()?;
            Ok(LedgerEntryList { entries, next_cursor: next.map(cursor_of) })
        })
    });
    json(200, &listed.await?)
}

pub(super) async fn list_disputes(context: Context) -> Answer {
    let (after, limit, asked) = (entry_after(&context)?, context.limit()?, OwnerText::of(&context));
    let caller = context.caller().clone();
    let listed = consult(&context.app, context.caller(), move |app, books| {
        let owner = app.now.read(|state| asked.find(state, books, &caller))?;
        let (mut found, mut next) = (Vec::new(), None);
        for id in books.disputes().filter(|id| after.is_none_or(|after| *id > after)) {
            let entry = books.entry(id).map_err(|error| problem(&error))?;
            let is_asked = |entry: &Entry| sees(&caller, entry) && owner.tenant.is_none_or(|one| one == entry.tenant);
            let Some(entry) = entry.filter(is_asked) else { continue };
            if found.len() == limit {
                next = found.last().map(|entry: &Entry| entry.id);
                break;
            }
            found.push(entry);
        }
        app.now.read(|state| {
            let view = LedgerView { app, state, books };
            let entries = found.iter().map(|entry| view.entry(entry)).collect::<Result<_, _>>()?;
            Ok(LedgerEntryList { entries, next_cursor: next.map(cursor_of) })
        })
    });
    json(200, &listed.await?)
}

pub(super) async fn show_entry(context: Context) -> Answer {
    let (text, caller) = (context.subject().to_owned(), context.caller().clone());
    let found = consult(&context.app, context.caller(), move |app, books| {
        let found = entry(app, books, &caller, &text)?;
        app.now.read(|state| LedgerView { app, state, books }.entry(&found))
    });
    json(200, &found.await?)
}

/// The place of a balance in the list, as one number.
fn place(account: Account, currency: Currency) -> u64 {
    let (kind, number) = match account {
        Account::Receivable(project) => (1, project.0),
        Account::Invoiced(tenant) => (2, tenant.0),
        Account::Adjustments(project) => (3, project.0),
        Account::Revenue(class) => (4, class.0.into()),
        Account::Rounding => (5, 0),
        Account::Tax => (6, 0),
        Account::CashClearing => (7, 0),
        Account::OperatorLoss => (8, 0),
    };
    let letters = currency.as_str().bytes().fold(0, |sum, letter| sum * 26 + u64::from(letter - b'A'));
    1 + (kind << 47 | u64::from(number) << 15 | letters)
}

pub(super) async fn list_balances(context: Context) -> Answer {
    let (currency, account) = (asked_currency(&context)?, word::<AccountKind>(&context, "account")?);
    let (asked, caller, app) = (OwnerText::of(&context), context.caller().clone(), Arc::clone(&context.app));
    let listed = consult(&app, &caller.clone(), move |app, books| {
        app.now.read(|state| {
            let owner = asked.find(state, books, &caller)?;
            let view = LedgerView { app, state, books };
            let is_own = |of: Account| match of {
                Account::Receivable(project) | Account::Adjustments(project) => {
                    owner.project.is_none_or(|wanted| wanted == project)
                        && owner.tenant.is_none_or(|wanted| view.tenant_of(project) == Some(wanted))
                }
                Account::Invoiced(tenant) => {
                    owner.project.is_none() && owner.tenant.is_none_or(|wanted| wanted == tenant)
                }
                _ => owner.tenant.is_none() && owner.project.is_none() && sees_all(&caller),
            };
            let all = books.account_balances().filter(|(of, in_currency, _)| {
                currency.is_none_or(|wanted| wanted == *in_currency)
                    && account.is_none_or(|wanted| wanted == of.kind())
                    && is_own(*of)
            });
            let all = all.map(|(of, currency, sum)| (place(of, currency), view.balance(of, currency, sum)));
            let (balances, next_cursor) = page(&context, all)?;
            Ok(LedgerBalanceList { as_of_size: books.size(), balances, next_cursor })
        })
    })
    .await?;
    json(200, &listed)
}

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
    let account = match (leg.account, class) {
        (AccountKind::Revenue, Some(class)) => Account::Revenue(class),
        (AccountKind::Revenue, None) => return Err(bad("legs", "must name the class of a revenue account")),
        (_, Some(_)) => return Err(bad("legs", "may name a class only with the account revenue")),
        (AccountKind::Receivable, None) => Account::Receivable(project),
        (AccountKind::Adjustments, None) => Account::Adjustments(project),
        (AccountKind::Rounding, None) => Account::Rounding,
        (AccountKind::OperatorLoss, None) => Account::OperatorLoss,
        // The engine refuses those that change by invoices and payments only.
        (AccountKind::Invoiced, None) => Account::Invoiced(TenantNo(0)),
        (AccountKind::Tax, None) => Account::Tax,
        (AccountKind::CashClearing, None) => Account::CashClearing,
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
    if let Some(sequence) = books.correction_of(found.id) {
        let by = EntryId { sequence, position: 0 };
        let next = EntryId { sequence, position: 1 };
        let detail = format!("{} was corrected already, by {by}; correct {next} if there is a replacement.", found.id);
        return Err(codes::ENTRY_CORRECTED.problem(detail).with("corrected_by", by.to_string()));
    }
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
        reason: leasehold_model::Name::new("-").expect("a valid name"),
    })
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
        correction(books, &found, amount_given)
    });
    let correct = CorrectEntry { reason, ..correct.await? };
    let (project, corrects) = (correct.project, correct.corrects);
    let sealed = context.seal(Command::CorrectEntry(correct)).await?;
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
