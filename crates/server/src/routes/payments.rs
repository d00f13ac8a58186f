//! Payments, and the tax rates of tenants.

use super::ledger_scope::{OwnerText, asked_currency, bad, currency, month, steps};
use super::page::page;
use crate::books::consult;
use crate::context::{Answer, Context, json};
use crate::names;
use crate::show_ledger::{LedgerView, amount, month as shown_month};
use leasehold_api::{
    DatedTaxRate, Decimal, NewPayment, Payment, PaymentList, PaymentPut, Problem, TaxRateChange, TaxRatePut, TaxRates,
    When, codes,
};
use leasehold_books::{Books, InvoiceHead};
use leasehold_engine::command::{PutTaxRate, RecordPayment};
use leasehold_engine::{Command, Refusal};
use leasehold_model::{Account, InvoiceNo, Month, TenantNo};
use std::sync::Arc;

fn unknown_invoice(text: &str) -> Problem {
    names::not_found("invoice", text, std::iter::empty())
}

fn payment(view: &LedgerView<'_>, of: &leasehold_books::Payment) -> Payment {
    Payment {
        sequence: of.sequence,
        tenant: view.tenant(of.tenant),
        tenant_id: of.tenant.0,
        currency: of.currency.to_string(),
        amount: amount(of.amount),
        invoice: of.invoice.map(|invoice| invoice.to_string()),
        reference: of.reference.to_string(),
        received_at: When(of.received_at),
        recorded_at: When(of.recorded_at),
    }
}

pub(super) async fn list_payments(context: Context) -> Answer {
    let (wanted, asked) = (asked_currency(&context)?, OwnerText::of(&context));
    let invoice = context.query("invoice").map(|text| InvoiceNo::parse(text).ok_or_else(|| unknown_invoice(text)));
    let invoice = invoice.transpose()?;
    let (app, caller) = (Arc::clone(&context.app), context.caller().clone());
    let listed = consult(&app, &caller.clone(), move |app, books| {
        app.now.read(|state| {
            let owner = asked.find(state, books, &caller)?;
            let view = LedgerView { app, state, books };
            let all = books.payments().iter().filter(|one| {
                owner.tenant.is_none_or(|tenant| tenant == one.tenant)
                    && wanted.is_none_or(|currency| currency == one.currency)
                    && (invoice.is_none() || invoice == one.invoice)
            });
            let (payments, next_cursor) = page(&context, all.map(|one| (one.sequence, payment(&view, one))))?;
            Ok(PaymentList { payments, next_cursor })
        })
    })
    .await?;
    json(200, &listed)
}

/// The invoice that a payment names, if the caller may see it.
fn named_invoice(context: &Context, books: &Books, text: &str) -> Result<InvoiceHead, Problem> {
    let number = InvoiceNo::parse(text).ok_or_else(|| unknown_invoice(text))?;
    let found = books.invoices().iter().find(|head| head.number == number);
    let found = found.filter(|head| context.caller().sees_tenant(head.tenant));
    found.cloned().ok_or_else(|| unknown_invoice(text))
}

async fn to_record(context: Arc<Context>, new: NewPayment) -> Result<RecordPayment, Problem> {
    let (app, caller) = (Arc::clone(&context.app), context.caller().clone());
    consult(&app, &caller, move |app, books| {
        let invoice = new.invoice.as_deref().map(|text| named_invoice(&context, books, text)).transpose()?;
        let tenant =
            new.tenant.as_deref().map(|text| app.now.read(|state| names::tenant(state, context.caller(), text)));
        let tenant = match (tenant.transpose()?, &invoice) {
            (Some(tenant), Some(head)) if head.tenant != tenant => {
                return Err(unknown_invoice(&head.number.to_string()));
            }
            (Some(tenant), _) => tenant,
            (None, Some(head)) => head.tenant,
            (None, None) => {
                return Err(codes::TENANT_NEEDED.problem("Give the tenant that paid, or the invoice that was paid."));
            }
        };
        let given = new.currency.as_deref().map(|text| currency("currency", text)).transpose()?;
        let currency = match (given, &invoice) {
            (Some(given), Some(head)) if head.currency != given => {
                let detail = format!("{} is in {}, and the payment in {given}.", head.number, head.currency);
                return Err(codes::CURRENCY_MISMATCH.problem(detail).with("currency", head.currency.as_str()));
            }
            (Some(given), _) => given,
            (None, Some(head)) => head.currency,
            (None, None) => return Err(bad("currency", "is needed if no invoice is named")),
        };
        Ok(RecordPayment {
            tenant,
            currency,
            amount: steps("amount", &new.amount)?,
            invoice: invoice.map(|head| head.number),
            reference: names::new_text("reference", &new.reference, None)?,
            received_at: new.received_at.map(|at| at.0),
        })
    })
    .await
}

/// Whether a payment that was recorded is the one that is to be recorded.
fn is_same(recorded: &leasehold_books::Payment, record: &RecordPayment) -> bool {
    recorded.amount == record.amount
        && recorded.currency == record.currency
        && recorded.invoice == record.invoice
        && record.received_at.is_none_or(|at| at == recorded.received_at)
}

pub(super) async fn record_payment(context: Context) -> Answer {
    let new: NewPayment = context.body()?;
    let context = Arc::new(context);
    let record = to_record(Arc::clone(&context), new).await?;
    let exists = Refusal::PaymentExists { sequence: 0 }.code();
    let (sequence, refused) = match context.seal(Command::RecordPayment(record.clone())).await {
        Ok(sealed) => (Some(sealed.sequence()), None),
        Err(problem) if problem.code == exists => (None, Some(problem)),
        Err(problem) => return Err(problem),
    };
    let put = consult(&context.app, context.caller(), move |app, books| {
        let mut all = books.payments().iter();
        let found = match sequence {
            Some(sequence) => all.find(|one| one.sequence == sequence),
            // The same payment again gets the first answer.
            None => all
                .find(|one| one.tenant == record.tenant && one.reference == record.reference && is_same(one, &record)),
        };
        let Some(found) = found else {
            return Err(refused.unwrap_or_else(|| codes::INTERNAL.problem("The books lack a payment.")));
        };
        let owed = books.account_balance(Account::Invoiced(found.tenant), found.currency);
        app.now.read(|state| {
            let payment = payment(&LedgerView { app, state, books }, found);
            Ok(PaymentPut { sequence: payment.sequence, payment, owed: amount(owed) })
        })
    });
    json(201, &put.await?)
}

fn tax_rates(view: &LedgerView<'_>, tenant: TenantNo, now: Month) -> TaxRates {
    let decimal = |rate: leasehold_model::rate::Decimal| Decimal(rate.to_string());
    let rates = view.books.tax_rates(tenant);
    TaxRates {
        tenant: view.tenant(tenant),
        tenant_id: tenant.0,
        rate: decimal(view.books.tax_rate(tenant, now)),
        rates: rates.map(|(from, rate)| DatedTaxRate { from: shown_month(from), rate: decimal(rate) }).collect(),
    }
}

async fn shown_rates(context: &Context, tenant: TenantNo) -> Result<TaxRates, Problem> {
    let rates = consult(&context.app, context.caller(), move |app, books| {
        let now = Month::of(app.time());
        Ok(app.now.read(|state| tax_rates(&LedgerView { app, state, books }, tenant, now)))
    });
    rates.await
}

pub(super) async fn show_tax_rate(context: Context) -> Answer {
    let tenant = context.app.now.read(|state| names::tenant(state, context.caller(), context.subject()))?;
    json(200, &shown_rates(&context, tenant).await?)
}

pub(super) async fn set_tax_rate(context: Context) -> Answer {
    let change: TaxRateChange = context.body()?;
    let tenant = context.app.now.read(|state| names::tenant(state, context.caller(), context.subject()))?;
    let rate = change.rate.0.parse().map_err(|why| bad("rate", why))?;
    let from = change.from.as_ref().map(|text| month(&text.0)).transpose()?;
    let sealed = context.seal(Command::PutTaxRate(PutTaxRate { tenant, from, rate })).await?;
    json(200, &TaxRatePut { sequence: sealed.sequence(), tax: shown_rates(&context, tenant).await? })
}
