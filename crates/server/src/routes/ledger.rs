//! The ledger: its state, entries, balances and drafts.

use super::books_query::word;
use super::ledger_scope::{OwnerText, asked_currency, asked_month, entry, for_all_tenants, sees, sees_all};
use super::page::page;
use crate::books::{ask, consult, problem};
use crate::context::{Answer, Context, cursor_after, json};
use crate::settlement::{Unsettled, settle_now};
use crate::show_ledger::{LedgerView, amount, month as shown_month, sum, too_large};
use leasehold_api::{
    AccountKind, DraftLine, DraftPayer, LedgerBalanceList, LedgerDraft, LedgerEntryList, LedgerOpened, LedgerSettled,
    LedgerStatus, LedgerTotal, OpenLedger, Problem, When, codes,
};
use leasehold_books::{Entry, EntryQuestion, PayerPosting};
use leasehold_engine::{Command, Refusal, command};
use leasehold_ledger::{Amount, PostUsage, RatedLine, rounded};
use leasehold_model::ledger::{HOUR_NS, hour_of};
use leasehold_model::rate::Currency;
use leasehold_model::{Account, Body, EntryId, EntryKind, Instant, Steps};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An hour that has been over for longer should be settled.
const LAG: u64 = 5 * 60_000_000_000;

pub(super) fn not_open() -> Problem {
    crate::problem::refused(&Refusal::LedgerNotOpen)
}

/// The most entries that the status names.
const CHANGED_MAX: usize = 100;

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
        let mut changed = Vec::new();
        for id in books.changed_after_correction().iter().rev() {
            if changed.len() == CHANGED_MAX {
                break;
            }
            if all || books.entry(*id).map_err(|error| problem(&error))?.is_some_and(|one| sees(&caller, &one)) {
                changed.push(id.to_string());
            }
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
            changed_after_correction: changed,
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
        Unsettled::Behind | Unsettled::Interrupted => {
            codes::BOOKS_BEHIND.problem("The books do not follow fast enough; try again.").with("retry_after", 5)
        }
        Unsettled::Refused(refusal) => crate::problem::refused(refusal),
        Unsettled::Unsealed(unsealed) => crate::problem::unanswered(unsealed),
        Unsettled::NotStated(_) | Unsettled::Unreadable(_) => {
            codes::INTERNAL.problem(format!("The month cannot be closed: {why}."))
        }
    }
}

/// Settles all hours that are over, as far as the records that are durable now tell.
pub(super) async fn settle_hours(context: &Context) -> Result<(), Problem> {
    consult(&context.app, context.caller(), |_, _| Ok(())).await?;
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
        Account::Receivable(project) => (1, project.0.into()),
        Account::Invoiced(tenant) => (2, tenant.0.into()),
        Account::Adjustments(project) => (3, project.0.into()),
        Account::Revenue(class) => (4, class.0.into()),
        Account::Rounding => (5, 0),
        Account::Tax => (6, 0),
        Account::CashClearing => (7, 0),
        Account::OperatorLoss => (8, 0),
        Account::TenantPrepaid(tenant) => (9, tenant.0.into()),
        Account::ProjectPrepaid(project) => (10, project.0.into()),
        Account::ExpiredCredits => (11, 0),
        Account::UnitRevenue(unit) => (12, unit.0.into()),
        Account::SharedRuntime(app) => (13, app.0),
    };
    let letters = currency.as_str().bytes().fold(0, |sum, letter| sum * 26 + u64::from(letter - b'A'));
    1 + (kind << 47 | number << 15 | letters)
}

pub(super) async fn list_balances(context: Context) -> Answer {
    let (currency, account) = (asked_currency(&context)?, word::<AccountKind>(&context, "account")?);
    let (asked, caller, app) = (OwnerText::of(&context), context.caller().clone(), Arc::clone(&context.app));
    let listed = consult(&app, &caller.clone(), move |app, books| {
        app.now.read(|state| {
            let owner = asked.find(state, books, &caller)?;
            let view = LedgerView { app, state, books };
            let is_own = |of: Account| match of {
                Account::Receivable(project) | Account::Adjustments(project) | Account::ProjectPrepaid(project) => {
                    owner.project.is_none_or(|wanted| wanted == project)
                        && owner.tenant.is_none_or(|wanted| view.tenant_of(project) == Some(wanted))
                }
                Account::Invoiced(tenant) | Account::TenantPrepaid(tenant) => {
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
