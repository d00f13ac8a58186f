//! The months of the ledger.

use super::ledger::{hours_between, not_open, settle_hours};
use super::ledger_scope::{for_all_tenants, month, sees, sees_all};
use super::page::page;
use crate::access::Caller;
use crate::books::{consult, problem};
use crate::context::{Answer, Context, json};
use crate::show_ledger::{LedgerView, amount, month as shown_month, sum, too_large};
use leasehold_api::{
    InvoiceTotal, Period, PeriodClosing, PeriodDetail, PeriodList, PeriodMissing, PeriodState, Problem, When, limits,
};
use leasehold_books::{Books, InvoiceDraft};
use leasehold_engine::{Command, Refusal};
use leasehold_ledger::total;
use leasehold_model::{Instant, Month, TenantNo};
use std::sync::Arc;

/// The month in the path.
fn named_month(context: &Context) -> Result<Month, Problem> {
    let unknown = |problem: Problem| Problem::new(404, "no_such_period", problem.detail);
    month(context.subject()).map_err(unknown)
}

/// Whether the caller sees what concerns a tenant as a whole.
fn sees_invoices(caller: &Caller, tenant: TenantNo) -> bool {
    caller.sees_tenant(tenant) && caller.project.is_none()
}

fn period(books: &Books, caller: &Caller, of: Month) -> Period {
    let closed_at = books.closed_months().find(|(month, _)| *month == of).map(|(_, at)| at);
    let state = match (closed_at, books.closing_month()) {
        (Some(_), _) => PeriodState::Closed,
        (None, Some(closing)) if closing == of => PeriodState::Closing,
        _ => PeriodState::Open,
    };
    let issued = books.invoices().iter().filter(|head| head.month == of && sees_invoices(caller, head.tenant));
    let due = books.invoices_due(of).into_iter().filter(|(tenant, _)| sees_invoices(caller, *tenant));
    let statements = books.statements(of).filter(|(tenant, _)| sees_invoices(caller, *tenant));
    Period {
        month: shown_month(of),
        from: When(of.start()),
        to: When(of.end()),
        state,
        closed_at: closed_at.map(When),
        invoices_issued: issued.count() as u64,
        invoices_due: due.count() as u64,
        statements: statements.count() as u64,
    }
}

/// The months from the opening of the ledger to the present one.
fn months(books: &Books, now: Instant) -> Result<impl Iterator<Item = Month>, Problem> {
    let first = Month::of(books.ledger_opened().ok_or_else(not_open)?);
    let last = Month::of(now).max(first);
    Ok(std::iter::successors(Some(first), move |month| Some(month.next()).filter(|next| *next <= last)))
}

pub(super) async fn list_periods(context: Context) -> Answer {
    let (app, caller) = (Arc::clone(&context.app), context.caller().clone());
    let listed = consult(&app, &caller.clone(), move |app, books| {
        let all = months(books, app.time())?;
        let place = |month: Month| u64::from(month.year()) * 12 + u64::from(month.month());
        let (periods, next_cursor) = page(&context, all.map(|of| (place(of), period(books, &caller, of))))?;
        Ok(PeriodList { periods, next_cursor })
    })
    .await?;
    json(200, &listed)
}

/// Why a close would be refused; unsettled hours are settled by it.
fn missing(books: &Books, of: Month, now: Instant) -> Vec<PeriodMissing> {
    let mut all = Vec::new();
    let mut add = |refusal: &Refusal| {
        let problem = crate::problem::refused(refusal);
        all.push(PeriodMissing { code: problem.code, detail: problem.detail });
    };
    if let Some(month) = books.closing_month() {
        add(&Refusal::PeriodIsClosing { month });
    }
    if now < of.end() {
        add(&Refusal::PeriodNotOver { month: of, at: of.end() });
    }
    if of > books.first_open_month() {
        add(&Refusal::PeriodOutOfOrder { month: books.first_open_month() });
    }
    all
}

fn draft_total(view: &LedgerView<'_>, draft: &InvoiceDraft) -> Result<InvoiceTotal, Problem> {
    Ok(InvoiceTotal {
        tenant: view.tenant(draft.tenant),
        tenant_id: draft.tenant.0,
        currency: draft.currency.to_string(),
        lines: draft.lines.len() as u64,
        posted: amount(sum(draft.lines.iter().map(|(_, line)| line.posted))?),
        net: amount(sum(draft.taxes.iter().map(|line| line.net))?),
        tax: amount(sum(draft.taxes.iter().map(|line| line.tax))?),
        total: amount(total(&draft.taxes).ok_or_else(too_large)?),
    })
}

/// IDs of disputed entries of a month.
fn disputes(books: &Books, caller: &Caller, of: Month) -> Result<Vec<String>, Problem> {
    let mut found = Vec::new();
    for id in books.disputes() {
        let entry = books.entry(id).map_err(|error| problem(&error))?;
        if entry.is_some_and(|entry| sees(caller, &entry) && entry.month == Some(of)) {
            found.push(id.to_string());
        }
        if found.len() == limits::PAGE_MAX {
            break;
        }
    }
    Ok(found)
}

/// How many reports of usage were refused in a month.
fn refused_usage(books: &Books, caller: &Caller, of: Month) -> Result<u64, Problem> {
    let (found, _) = books.refused_usage(of, caller.tenant, limits::PAGE_MAX).map_err(|error| problem(&error))?;
    Ok(found.len() as u64)
}

pub(super) async fn show_period(context: Context) -> Answer {
    let (of, caller) = (named_month(&context)?, context.caller().clone());
    let shown = consult(&context.app, context.caller(), move |app, books| {
        let now = app.time();
        if !months(books, now)?.any(|month| month == of) {
            return Err(crate::problem::refused(&Refusal::NoSuchPeriod { month: of }));
        }
        let period = period(books, &caller, of);
        let is_open = period.state == PeriodState::Open;
        let missing = if period.state == PeriodState::Closed { Vec::new() } else { missing(books, of, now) };
        let settled = books.settled_through();
        let from = settled.max(of.start());
        let mut drafts = Vec::new();
        for (tenant, currency) in books.invoices_due(of) {
            if sees_invoices(&caller, tenant) {
                let draft = books.invoice_draft(tenant, of, currency).map_err(|error| problem(&error))?;
                drafts.extend(draft);
            }
        }
        let drafts = app.now.read(|state| {
            let view = LedgerView { app, state, books };
            drafts.iter().map(|draft| draft_total(&view, draft)).collect::<Result<_, _>>()
        })?;
        Ok(PeriodDetail {
            can_close: is_open && missing.is_empty() && sees_all(&caller),
            missing,
            settled_through: When(settled),
            hours_unsettled: hours_between(from, now.min(of.end())),
            disputes: disputes(books, &caller, of)?,
            refused_usage: refused_usage(books, &caller, of)?,
            drafts,
            as_of_size: books.size(),
            period,
        })
    });
    json(200, &shown.await?)
}

pub(super) async fn close_period(context: Context) -> Answer {
    let of = named_month(&context)?;
    for_all_tenants(&context)?;
    // Whatever settling cannot do, closing is refused for.
    settle_hours(&context).await?;
    let sealed = context.seal(Command::ClosePeriod(of)).await?;
    let (sequence, caller) = (sealed.sequence(), context.caller().clone());
    let closing = consult(&context.app, context.caller(), move |_, books| {
        Ok(PeriodClosing { sequence, period: period(books, &caller, of) })
    });
    json(202, &closing.await?)
}
