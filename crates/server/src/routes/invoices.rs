//! Invoices and credit notes, and drafts of them.

use super::books_query::word;
use super::ledger::not_open;
use super::ledger_scope::{OwnerText, asked_currency, asked_month};
use super::page::page;
use crate::access::Caller;
use crate::app::App;
use crate::books::{consult, problem};
use crate::context::{Answer, Context, json};
use crate::invoice_page;
use crate::names;
use crate::show;
use crate::show_ledger::{LedgerView, amount, month as shown_month, sum, too_large, unit_hours, unit_quantity};
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, Response};
use leasehold_api as api;
use leasehold_api::{
    InvoiceDrafts, InvoiceFigures, InvoiceKind, InvoiceLine, InvoiceList, InvoiceSection, InvoiceStatus, InvoiceTax,
    Problem, When, codes,
};
use leasehold_books::{Books, InvoiceHead, InvoiceLineKey};
use leasehold_engine::Refusal;
use leasehold_ledger::{total, total_rounding};
use leasehold_model::body::TaxLine;
use leasehold_model::ledger::{InvoiceSeries, Item};
use leasehold_model::rate::Currency;
use leasehold_model::{Instant, InvoiceNo, Month, Steps, TenantNo};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) fn unknown(text: &str) -> Problem {
    names::not_found("invoice", text, std::iter::empty())
}

fn kind(number: InvoiceNo) -> InvoiceKind {
    match number.series {
        InvoiceSeries::Invoice => InvoiceKind::Invoice,
        InvoiceSeries::CreditNote => InvoiceKind::CreditNote,
    }
}

fn status(owed: Steps, due_at: Instant, now: Instant) -> InvoiceStatus {
    match owed {
        Steps::ZERO => InvoiceStatus::Paid,
        _ if due_at < now => InvoiceStatus::Overdue,
        _ => InvoiceStatus::Open,
    }
}

/// What is owed of the invoices of some tenants; each tenant is computed once.
#[derive(Default)]
struct Owed(BTreeMap<(TenantNo, Currency), BTreeMap<InvoiceNo, Steps>>);

impl Owed {
    fn of(&mut self, books: &Books, head: &InvoiceHead) -> Steps {
        let key = (head.tenant, head.currency);
        let all = self.0.entry(key).or_insert_with(|| books.owed(head.tenant, head.currency).0);
        all.get(&head.number).copied().unwrap_or_default()
    }
}

pub(super) async fn list_invoices(context: Context) -> Answer {
    let (currency, month) = (asked_currency(&context)?, asked_month(&context)?);
    let (wanted, asked) = (word::<InvoiceStatus>(&context, "status")?, OwnerText::of(&context));
    let (app, caller) = (Arc::clone(&context.app), context.caller().clone());
    let listed = consult(&app, &caller.clone(), move |app, books| {
        let (now, mut owed) = (app.time(), Owed::default());
        app.now.read(|state| {
            let owner = asked.find(state, books, &caller)?;
            let view = LedgerView { app, state, books };
            let all = books.invoices().iter().filter(|head| {
                owner.tenant.is_none_or(|tenant| tenant == head.tenant)
                    && currency.is_none_or(|currency| currency == head.currency)
                    && month.is_none_or(|month| month == head.month)
            });
            let shown = all.filter_map(|head| {
                let owed = owed.of(books, head);
                let status = status(owed, head.due_at, now);
                let shown = api::InvoiceHead {
                    number: head.number.to_string(),
                    kind: kind(head.number),
                    tenant: view.tenant(head.tenant),
                    tenant_id: head.tenant.0,
                    month: shown_month(head.month),
                    currency: head.currency.to_string(),
                    total: amount(head.total),
                    owed: amount(owed),
                    status,
                    issued_at: When(head.issued_at),
                    due_at: When(head.due_at),
                    sequence: head.sequence,
                };
                wanted.is_none_or(|wanted| wanted == status).then_some((head.sequence, shown))
            });
            let (invoices, next_cursor) = page(&context, shown)?;
            Ok(InvoiceList { invoices, next_cursor })
        })
    })
    .await?;
    json(200, &listed)
}

/// An invoice or a draft, before it is shown.
struct Bill<'b> {
    tenant: TenantNo,
    month: Month,
    currency: Currency,
    lines: &'b [(InvoiceLineKey, leasehold_books::InvoiceLine)],
    taxes: &'b [TaxLine],
}

impl Bill<'_> {
    fn section(&self, key: &InvoiceLineKey) -> InvoiceSection {
        match key {
            key if key.correction || key.month != self.month => InvoiceSection::Adjustment,
            key if key.is_share() => InvoiceSection::Share,
            key if key.control_plane => InvoiceSection::ControlPlane,
            _ => InvoiceSection::Workload,
        }
    }

    fn line(
        &self,
        view: &LedgerView<'_>,
        key: &InvoiceLineKey,
        line: &leasehold_books::InvoiceLine,
    ) -> Result<InvoiceLine, Problem> {
        let (spec, usage_unit) = match key.item {
            Some(Item::Class(class)) => (view.books.class(class), None),
            Some(Item::Unit(unit)) => (None, Some(view.unit(unit))),
            None => (None, None),
        };
        let hours = spec.map(|spec| unit_hours(line.usage.0, spec.quanta_per_unit, 6)).transpose()?;
        Ok(InvoiceLine {
            section: self.section(key),
            month: shown_month(key.month),
            project: view.project(key.project),
            project_id: key.project.0,
            held_by: view.project(key.holder),
            correction: key.correction,
            pool: key.pool.filter(|_| usage_unit.is_none()).map(|pool| view.pool(pool)),
            class: spec.map(|spec| spec.name.to_string()),
            unit: spec.map(|spec| spec.kind.unit().to_owned()).or_else(|| usage_unit.clone()),
            priority: key.priority.filter(|_| usage_unit.is_none()),
            app_instance: key.app_instance.map(|app| view.app_instance(app)),
            control_plane: key.control_plane,
            unit_hours: hours,
            quantity: usage_unit.as_ref().map(|_| unit_quantity(line.usage.0)),
            usage_unit,
            amount: amount(line.posted),
        })
    }

    fn figures(&self, view: &LedgerView<'_>, issuer: api::Issuer) -> Result<InvoiceFigures, Problem> {
        let tax = |line: &TaxLine| InvoiceTax {
            rate: api::Decimal(line.rate.to_string()),
            posted: amount(line.posted),
            net: amount(line.net),
            tax: amount(line.tax),
        };
        let of = |section: InvoiceSection| {
            let lines = self.lines.iter().filter(|(key, _)| self.section(key) == section);
            sum(lines.map(|(_, line)| line.posted)).map(amount)
        };
        let settings = view.state.tenant(self.tenant).map(|tenant| &tenant.settings);
        Ok(InvoiceFigures {
            tenant: view.tenant(self.tenant),
            tenant_id: self.tenant.0,
            billing_address: show::address(settings.and_then(|settings| settings.billing_address.as_ref())),
            tax_id: show::text(settings.and_then(|settings| settings.tax_id.as_ref())),
            issuer,
            month: shown_month(self.month),
            currency: self.currency.to_string(),
            lines: self.lines.iter().map(|(key, line)| self.line(view, key, line)).collect::<Result<_, _>>()?,
            workload: of(InvoiceSection::Workload)?,
            control_plane: of(InvoiceSection::ControlPlane)?,
            shares: of(InvoiceSection::Share)?,
            adjustments: of(InvoiceSection::Adjustment)?,
            posted: amount(sum(self.lines.iter().map(|(_, line)| line.posted))?),
            rounding: amount(total_rounding(self.taxes).ok_or_else(too_large)?),
            net: amount(sum(self.taxes.iter().map(|line| line.net))?),
            taxes: self.taxes.iter().map(tax).collect(),
            tax: amount(sum(self.taxes.iter().map(|line| line.tax))?),
            total: amount(total(self.taxes).ok_or_else(too_large)?),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Csv,
    Html,
}

fn format(context: &Context) -> Result<Format, Problem> {
    match context.query("format") {
        None | Some("json") => Ok(Format::Json),
        Some("csv") => Ok(Format::Csv),
        Some("html") => Ok(Format::Html),
        Some(_) => Err(codes::BAD_QUERY.problem("`format` must be json, csv or html.").with("field", "format")),
    }
}

fn typed(media: &'static str, headers: &[(HeaderName, String)], text: String) -> Answer {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// A page runs no scripts and loads nothing; a template may contain styles and images.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

fn html(text: String) -> Answer {
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY.to_owned()),
        (HeaderName::from_static("x-content-type-options"), "nosniff".to_owned()),
        (HeaderName::from_static("x-frame-options"), "DENY".to_owned()),
        (HeaderName::from_static("referrer-policy"), "no-referrer".to_owned()),
    ];
    typed("text/html; charset=utf-8", &headers, text)
}

fn csv(name: &str, text: String) -> Answer {
    let disposition = (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.csv\""));
    typed("text/csv; charset=utf-8", &[disposition], text)
}

fn find(app: &App, books: &Books, caller: &Caller, text: &str) -> Result<api::Invoice, Problem> {
    let number = InvoiceNo::parse(text).ok_or_else(|| unknown(text))?;
    let found = books.invoice(number).map_err(|error| problem(&error))?;
    let found = found.filter(|invoice| caller.sees_tenant(invoice.head.tenant)).ok_or_else(|| unknown(text))?;
    let head = &found.head;
    let owed = Owed::default().of(books, head);
    app.now.read(|state| {
        let view = LedgerView { app, state, books };
        let bill = Bill {
            tenant: head.tenant,
            month: head.month,
            currency: head.currency,
            lines: &found.lines,
            taxes: &found.taxes,
        };
        Ok(api::Invoice {
            number: head.number.to_string(),
            kind: kind(head.number),
            issued_at: When(head.issued_at),
            due_at: When(head.due_at),
            prepaid: Some(books.prepaid_on(head.number)).filter(|of| *of != Steps::ZERO).map(amount),
            owed: amount(owed),
            status: status(owed, head.due_at, app.time()),
            sequence: head.sequence,
            figures: bill.figures(&view, app.printing.get().shown_issuer())?,
        })
    })
}

pub(super) async fn show_invoice(context: Context) -> Answer {
    let format = format(&context)?;
    let (text, caller) = (context.subject().to_owned(), context.caller().clone());
    let found = consult(&context.app, context.caller(), move |app, books| find(app, books, &caller, &text));
    let invoice = found.await?;
    match format {
        Format::Json => json(200, &invoice),
        Format::Csv => csv(&invoice.number, invoice_page::csv([(Some(&invoice), &invoice.figures)])),
        Format::Html => html(context.app.printing.get().page(&invoice)),
    }
}

pub(super) async fn draft_invoices(context: Context) -> Answer {
    let (format, currency, month) = (format(&context)?, asked_currency(&context)?, asked_month(&context)?);
    let (asked, caller) = (OwnerText::of(&context), context.caller().clone());
    let drafts = consult(&context.app, context.caller(), move |app, books| {
        books.ledger_opened().ok_or_else(not_open)?;
        let month = month.unwrap_or(books.first_open_month());
        if month < books.first_open_month() {
            return Err(crate::problem::refused(&Refusal::PeriodIsClosed { month }));
        }
        if month > Month::of(app.time()).max(books.first_open_month()) {
            return Err(crate::problem::refused(&Refusal::NoSuchPeriod { month }));
        }
        app.now.read(|state| {
            let owner = asked.find(state, books, &caller)?;
            let needed = || codes::TENANT_NEEDED.problem("The token belongs to no tenant; give one in `tenant`.");
            let tenant = owner.tenant.ok_or_else(needed)?;
            let view = LedgerView { app, state, books };
            let mut drafts = Vec::new();
            for (_, of) in books.invoices_due(month).into_iter().filter(|(of, _)| *of == tenant) {
                if currency.is_some_and(|wanted| wanted != of) {
                    continue;
                }
                let draft = books.invoice_draft(tenant, month, of).map_err(|error| problem(&error))?;
                let Some(draft) = draft else { continue };
                let bill = Bill { tenant, month, currency: of, lines: &draft.lines, taxes: &draft.taxes };
                drafts.push(bill.figures(&view, app.printing.get().shown_issuer())?);
            }
            Ok(InvoiceDrafts { settled_through: When(books.settled_through()), as_of_size: books.size(), drafts })
        })
    });
    let drafts = drafts.await?;
    match format {
        Format::Json => json(200, &drafts),
        Format::Csv => csv("draft", invoice_page::csv(drafts.drafts.iter().map(|figures| (None, figures)))),
        Format::Html => match &drafts.drafts[..] {
            [figures] => html(context.app.printing.get().draft_page(figures, drafts.settled_through)),
            [] => Err(codes::NOT_FOUND.problem("Nothing was posted for the month yet, so there is nothing to print.")),
            several => {
                let all: Vec<&str> = several.iter().map(|figures| figures.currency.as_str()).collect();
                let detail = format!("There is a draft for each of {}; choose one by `currency`.", all.join(", "));
                Err(codes::BAD_QUERY.problem(detail).with("field", "currency"))
            }
        },
    }
}
