//! What rules version 5 added, field by field: the ledger and prepaid credit in the state, and the entries, balances and
//! invoices of the books.

use crate::further::add;
use crate::state::{at, span, text};
use leasehold_books::{Books, Entry, EntryQuestion, Invoice, InvoiceHead, PrepaidEntry, PrepaidEvent};
use leasehold_engine::ledger::{Ledger, Payer};
use leasehold_engine::{Prepaid, PrepaidKey, PrepaidScope, State};
use leasehold_model::body::TaxLine;
use leasehold_model::rate::Currency;
use leasehold_model::{
    Account, Funds, InvoiceNo, Item, Leg, LineKey, Month, Name, PrepaidPolicy, ProjectNo, Steps, TenantNo,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Adds the fields of rules version 5 to the view of a state.
pub(crate) fn extend(view: &mut Value, state: &State) {
    let tenants = state.tenants().map(|tenant| {
        let address = tenant.settings.billing_address.as_ref();
        json!({
            "billing_address": address.map(|address| address.lines().iter().map(Name::as_str).collect::<Vec<_>>()),
            "tax_id": tenant.settings.tax_id.as_ref().map(Name::as_str),
        })
    });
    add(view, "tenants", tenants);
    let projects = state.projects().map(|(_, project)| {
        let last = project.last_use;
        json!({ "last_use": [at(last.at), last.sequence.to_string()] })
    });
    add(view, "projects", projects);
    let found = state.ledger();
    view["ledger"] = json!([ledger(found)]);
    view["payers"] = found.payers.iter().map(|((project, currency), of)| payer(*project, *currency, of)).collect();
    let invoiced = found.invoiced.iter().map(
        |((tenant, currency), owed)| json!({ "tenant": tenant.0, "currency": currency.as_str(), "owed": steps(*owed) }),
    );
    view["invoiced"] = invoiced.collect();
    let payments = found.payments.iter().map(|((tenant, reference), sequence)| {
        json!({ "tenant": tenant.0, "reference": reference.as_str(), "record": sequence })
    });
    view["payments"] = payments.collect();
    let rates = found
        .tax_rates
        .iter()
        .map(|((tenant, from), rate)| json!({ "tenant": tenant.0, "from": month(*from), "rate": rate.0.to_string() }));
    view["tax_rates"] = rates.collect();
    view["disputed"] = found.disputed.iter().map(|entry| json!(entry.to_string())).collect();
    view["prepaid"] = state.prepaid_accounts().map(|(key, account)| prepaid(state, key, account)).collect();
}

fn ledger(ledger: &Ledger) -> Value {
    let closing = ledger.closing.as_ref().map(|closing| {
        json!({
            "month": month(closing.month),
            "cut": closing.cut,
            "issued": closing.issued.iter().map(|(tenant, of)| json!([tenant.0, of.as_str()])).collect::<Vec<_>>(),
            "invoices": closing.invoices,
            "credit_notes": closing.credit_notes,
        })
    });
    json!({
        "opened": ledger.opened.map(at),
        "settled_through": at(ledger.settled_through),
        "settled_size": ledger.settled_size,
        "first_open": ledger.opened.map(|_| month(ledger.first_open)),
        "open_month": ledger.opened.map(|_| month(ledger.open_month())),
        "closing": closing,
        "invoices": ledger.invoices,
        "credit_notes": ledger.credit_notes,
    })
}

fn payer(project: ProjectNo, currency: Currency, payer: &Payer) -> Value {
    json!({
        "project": project.0,
        "currency": currency.as_str(),
        "tenant": payer.tenant.0,
        "last": payer.last,
        "through": at(payer.through),
        "as_of_size": payer.as_of_size,
        "complete": payer.complete,
        "last_line": payer.last_line.as_ref().map(|last| json!([month(last.0), line_key(&last.1)])),
        "residual": payer.residual.units().to_string(),
        "unbilled": payer.unbilled.iter().map(|(of, amount)| json!([month(*of), steps(*amount)])).collect::<Vec<_>>(),
    })
}

fn prepaid(state: &State, key: PrepaidKey, account: &Prepaid) -> Value {
    let now = state.last_stamp();
    let (project, currency) = (key.0.project(), key.1);
    let used = state.prepaid_use(key, now).expect("an account of the state");
    let credits = state.credits_left(key, now).into_iter().map(|credit| {
        json!({
            "credit": credit.number,
            "amount": steps(credit.amount),
            "left": funds(credit.left),
            "priority": credit.priority,
            "expires_at": credit.expires_at.map(at),
        })
    });
    let references = account.references.iter().map(|(reference, sequence)| json!([reference.as_str(), sequence]));
    json!({
        "tenant": account.tenant.0,
        "of_tenant": matches!(key.0, PrepaidScope::Tenant(_)),
        "project": project.map(|project| project.0),
        "currency": currency.as_str(),
        "policy": policy(&account.policy),
        "state": text(account.state),
        "action": text(account.action()),
        "credited": steps(account.credited),
        "lapsed": steps(account.lapsed),
        "applied": steps(account.applied),
        "posted": steps(account.posted),
        "spent": funds(used.spent),
        "reserved": funds(used.reserved),
        "balance": funds(used.balance),
        "available": funds(used.available),
        "credits": credits.collect::<Vec<_>>(),
        "references": references.collect::<Vec<_>>(),
    })
}

fn policy(policy: &PrepaidPolicy) -> Value {
    let actions = [policy.low, policy.pending, policy.depleted].map(text);
    json!({
        "low_below": steps(policy.low_below),
        "window": span(policy.window),
        "actions": actions,
        "grace": policy.grace.map(span),
    })
}

/// Adds what the books say of the ledger to their view.
pub(crate) fn extend_books(view: &mut Value, books: &Books) {
    let opened = books.ledger_opened();
    view["ledger"] = json!([{
        "opened": opened.map(at),
        "settled_through": at(books.settled_through()),
        "first_open": opened.map(|_| month(books.first_open_month())),
        "closing": books.closing_month().map(month),
        "closed": books.closed_months().map(|(of, when)| json!([month(of), at(when)])).collect::<Vec<_>>(),
        "entries": books.entry_count(),
        "disputed": books.disputes().map(|entry| entry.to_string()).collect::<Vec<_>>(),
        "changed_after_correction": books.changed_after_correction().iter().map(ToString::to_string).collect::<Vec<_>>(),
    }]);
    let all = books.entries(&EntryQuestion { limit: usize::MAX, ..EntryQuestion::default() }).expect("all entries");
    assert_eq!(all.next, None, "all entries are on one page");
    view["entries"] = all.entries.iter().map(|found| entry(books, found)).collect();
    let balances =
        books.account_balances().map(|(of, currency, sum)| json!([account(of), currency.as_str(), steps(sum)]));
    view["balances"] = balances.collect();
    let payers: BTreeSet<(ProjectNo, Currency)> =
        all.entries.iter().filter_map(|found| found.project.map(|project| (project, found.currency))).collect();
    let residuals = payers.into_iter().map(|(project, currency)| {
        let (last, residual) = (books.last_entry_of(project, currency), books.residual_of(project, currency));
        json!([project.0, currency.as_str(), last, residual.units().to_string()])
    });
    view["residuals"] = residuals.collect();
    view["invoices"] = books.invoices().iter().map(|head| invoice(books, head)).collect();
    let drafts = opened.into_iter().flat_map(|_| {
        let open = books.first_open_month();
        [open, open.next()].into_iter().flat_map(|of| {
            let due = books.invoices_due(of).into_iter();
            due.filter_map(move |(tenant, currency)| draft(books, of, tenant, currency))
        })
    });
    view["drafts"] = drafts.collect();
    let payments = books.payments().iter().map(|payment| {
        json!({
            "record": payment.sequence,
            "tenant": payment.tenant.0,
            "currency": payment.currency.as_str(),
            "amount": steps(payment.amount),
            "invoice": payment.invoice.map(number),
            "reference": payment.reference.as_str(),
            "received_at": at(payment.received_at),
        })
    });
    view["payments"] = payments.collect();
    view["prepaid"] = books.prepaid().iter().map(prepaid_event).collect();
}

fn entry(books: &Books, entry: &Entry) -> Value {
    let line = entry.line.as_ref().map(|line| {
        let usage = line.usage.0.to_string();
        json!({ "key": line_key(&line.key), "usage": usage, "exact": line.exact.to_string() })
    });
    json!({
        "entry": entry.id.to_string(),
        "kind": text(entry.kind),
        "at": at(entry.at),
        "tenant": entry.tenant.0,
        "project": entry.project.map(|project| project.0),
        "currency": entry.currency.as_str(),
        "month": entry.month.map(month),
        "original_month": entry.original_month.map(month),
        "legs": entry.legs.iter().map(leg).collect::<Vec<_>>(),
        "line": line,
        "corrects": entry.corrects.map(|id| id.to_string()),
        "corrected_by": books.correction_of(entry.id),
        "reason": entry.reason.as_ref().map(Name::as_str),
        "invoice": entry.invoice.map(number),
        "reference": entry.reference.as_ref().map(Name::as_str),
        "as_of_size": entry.as_of_size,
    })
}

fn invoice(books: &Books, head: &InvoiceHead) -> Value {
    let found = books.invoice(head.number).expect("the books can be read").expect("an invoice of the books");
    let Invoice { head, lines, taxes } = &found;
    let (owed, _) = books.owed(head.tenant, head.currency);
    let lines = lines.iter().map(|(key, line)| {
        json!([
            month(key.month),
            key.project.0,
            key.correction,
            key.holder.0,
            key.pool.map(|pool| pool.0),
            key.item.map(item),
            key.priority.map(text),
            key.app_instance.map(|app| app.0),
            key.control_plane,
            line.usage.0.to_string(),
            steps(line.posted),
        ])
    });
    json!({
        "number": number(head.number),
        "record": head.sequence,
        "issued_at": at(head.issued_at),
        "tenant": head.tenant.0,
        "month": month(head.month),
        "currency": head.currency.as_str(),
        "total": steps(head.total),
        "due_at": at(head.due_at),
        "lines": lines.collect::<Vec<_>>(),
        "taxes": taxes.iter().map(tax).collect::<Vec<_>>(),
        "prepaid": steps(books.prepaid_on(head.number)),
        "owed": owed.get(&head.number).copied().map(steps),
    })
}

fn draft(books: &Books, of: Month, tenant: TenantNo, currency: Currency) -> Option<Value> {
    let draft = books.invoice_draft(tenant, of, currency).expect("the books can be read")?;
    Some(json!({
        "month": month(of),
        "tenant": tenant.0,
        "currency": currency.as_str(),
        "lines": draft.lines.len(),
        "posted": steps(draft.posted().expect("a sum")),
        "taxes": draft.taxes.iter().map(tax).collect::<Vec<_>>(),
        "total": steps(draft.total().expect("a sum")),
    }))
}

fn tax(line: &TaxLine) -> Value {
    json!([line.rate.0.to_string(), steps(line.posted), steps(line.net), steps(line.tax)])
}

fn prepaid_event(entry: &PrepaidEntry) -> Value {
    let event = match &entry.event {
        PrepaidEvent::ToppedUp(topped) => json!({
            "credit": topped.credit,
            "added": steps(topped.amount),
            "priority": topped.priority,
            "expires_at": topped.expires_at.map(at),
            "source": text(topped.source),
            "reference": topped.reference.as_str(),
        }),
        PrepaidEvent::Lapsed(lapsed) => json!({ "credit": lapsed.credit, "lapsed": steps(lapsed.amount) }),
        PrepaidEvent::Applied(applied) => json!({
            "invoice": number(applied.invoice),
            "month": month(applied.month),
            "amount": steps(applied.amount),
            "credited": steps(applied.credited),
            "uncovered": steps(applied.uncovered),
        }),
    };
    json!({
        "record": entry.sequence,
        "at": at(entry.at),
        "tenant": entry.tenant.0,
        "project": entry.project.map(|project| project.0),
        "currency": entry.event.currency().as_str(),
        "event": event,
    })
}

fn line_key(key: &LineKey) -> Value {
    json!({
        "hour": at(key.hour),
        "project": key.project.0,
        "pool": key.pool.0,
        "item": item(key.item),
        "priority": text(key.priority),
        "priced": text(key.priced),
        "tag": key.tag.as_ref().map(Name::as_str),
        "app_instance": key.app_instance.map(|app| app.0),
        "attachment": key.attachment.map(|attachment| attachment.0),
        "control_plane": key.control_plane,
        "card": key.card,
    })
}

/// Since rules version 6 there are lines of usage units. Later versions know other items; none of them is in these
/// journals.
#[allow(unreachable_patterns, clippy::match_wildcard_for_single_variants)]
pub(crate) fn item(item: Item) -> Value {
    match item {
        Item::Class(class) => json!({ "class": class.0 }),
        Item::Unit(unit) => json!({ "unit": unit.0 }),
        _ => panic!("an item that rules version 6 does not know"),
    }
}

fn leg(leg: &Leg) -> Value {
    json!([account(leg.account), steps(leg.amount)])
}

#[allow(unreachable_patterns, clippy::match_wildcard_for_single_variants)]
fn account(account: Account) -> Value {
    let word = account.word();
    match account {
        Account::Receivable(of) | Account::Adjustments(of) | Account::ProjectPrepaid(of) => {
            json!([word, "project", of.0])
        }
        Account::Invoiced(of) | Account::TenantPrepaid(of) => json!([word, "tenant", of.0]),
        Account::Revenue(of) => json!([word, "class", of.0]),
        Account::UnitRevenue(of) => json!([word, "unit", of.0]),
        Account::Rounding | Account::Tax | Account::CashClearing | Account::OperatorLoss | Account::ExpiredCredits => {
            json!([word])
        }
        _ => panic!("an account that rules version 6 does not know"),
    }
}

fn steps(amount: Steps) -> String {
    amount.to_string()
}

/// Billionths of a currency, as digits.
fn funds(funds: Funds) -> String {
    funds.0.to_string()
}

fn month(month: Month) -> String {
    month.to_string()
}

fn number(invoice: InvoiceNo) -> String {
    invoice.to_string()
}
