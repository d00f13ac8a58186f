//! `leasehold invoice …`, `payment …` and `tax …`.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::ledger::money;
use super::session::Session;
use crate::cli::ledger::{
    InvoiceCommand, InvoiceDraftArgs, InvoiceFormArgs, InvoiceListArgs, InvoiceShowArgs, PaymentCommand,
    PaymentRecordArgs, TaxCommand,
};
use crate::output::print;
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::{self, Style};
use crate::time_format::to_the_second;
use leasehold_api::{
    Decimal, Invoice, InvoiceDrafts, InvoiceFigures, InvoiceHead, InvoiceKind, InvoiceLine, InvoiceSection,
    InvoiceStatus, LedgerAmount, MonthText, NewPayment, Payment, TaxRateChange, TaxRates,
};
use leasehold_client::{Call, Json};
use serde::de::DeserializeOwned;

pub(super) async fn invoice(session: &Session, command: InvoiceCommand) -> Result<(), Failed> {
    match command {
        InvoiceCommand::List(args) => list(session, args).await,
        InvoiceCommand::Show(InvoiceShowArgs { number, form }) => {
            let call = session.client.show_invoice(number);
            write(session, call, &form, |invoice| one(session, invoice)).await
        }
        InvoiceCommand::Draft(args) => draft(session, args).await,
        InvoiceCommand::Prove(args) => super::invoice_prove::prove(session, args).await,
        InvoiceCommand::Diff(args) => super::invoice_diff::diff(session, args).await,
    }
}

async fn list(session: &Session, args: InvoiceListArgs) -> Result<(), Failed> {
    let call = session.client.list_invoices().maybe("tenant", args.tenant).maybe("month", args.month);
    session.list(call.maybe("currency", args.currency).maybe("status", args.status), invoices).await
}

/// Prints an answer, or writes it in the format that was chosen.
async fn write<T: DeserializeOwned + Send + 'static>(
    session: &Session,
    call: Call<Json<T>>,
    form: &InvoiceFormArgs,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Failed> {
    let format = match (form.html, form.csv) {
        (true, _) => Some("html"),
        (_, true) => Some("csv"),
        _ => None,
    };
    let Some(format) = format else {
        return match &form.out {
            None => session.show(call, text).await,
            Some(_) => Err(Problem::usage("usage", "--out needs a format").advice("add --html or --csv").into()),
        };
    };
    if session.json {
        return Err(Problem::usage("usage", format!("--{format} and --json cannot be combined")).into());
    }
    let written = call.query("format", format).text().await?;
    let Some(path) = &form.out else { return Ok(print(&written)?) };
    std::fs::write(path, written)
        .map_err(|error| Problem::refused("output_failed", format!("{} cannot be written: {error}", path.display())))?;
    term::say(&format!("leasehold: written to {}\n", path.display()));
    Ok(())
}

fn style(status: InvoiceStatus) -> Style {
    match status {
        InvoiceStatus::Open => Style::Yellow,
        InvoiceStatus::Paid => Style::Green,
        InvoiceStatus::Overdue => Style::Red,
    }
}

/// The day alone.
fn day(at: leasehold_api::When) -> String {
    to_the_second(at).chars().take(10).collect()
}

fn invoices(invoices: &[InvoiceHead]) -> Table {
    let headings = [
        ("number", Align::Left),
        ("tenant", Align::Left),
        ("month", Align::Left),
        ("issued", Align::Left),
        ("due", Align::Left),
        ("total", Align::Right),
        ("owed", Align::Right),
        ("", Align::Left),
        ("status", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["issued", "month", "due"]);
    for invoice in invoices {
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            plain(invoice.number.clone()),
            plain(invoice.tenant.clone()),
            plain(invoice.month.to_string()),
            plain(day(invoice.issued_at)),
            plain(day(invoice.due_at)),
            plain(money(&invoice.total)),
            plain(money(&invoice.owed)),
            plain(invoice.currency.clone()),
            (invoice.status.to_string(), style(invoice.status)),
        ]);
    }
    table
}

/// The app instance, and who holds or uses what the project pays for or is credited with.
fn of_app(line: &InvoiceLine) -> String {
    let app = or_dash(line.app_instance.as_ref());
    match (line.held_by != line.project, line.usage_unit.is_some()) {
        (false, _) => app,
        (true, false) => format!("{app}, held by {}", line.held_by),
        (true, true) => format!("{app}, used by {}", line.held_by),
    }
}

fn lines(lines: &[InvoiceLine]) -> Table {
    let headings = [
        ("project", Align::Left),
        ("what", Align::Left),
        ("class or unit", Align::Left),
        ("app instance", Align::Left),
        ("pool", Align::Left),
        ("priority", Align::Left),
        ("month", Align::Left),
        ("quantity", Align::Right),
        ("amount", Align::Right),
    ];
    let mut table = Table::new(&headings).shrink_first(&["month", "pool", "priority"]);
    for line in lines {
        let what = word(line.section).replace('_', " ");
        table.row([
            line.project.clone(),
            match (line.correction, line.class.as_ref().or(line.usage_unit.as_ref())) {
                (true, Some(_)) => "correction".into(),
                (true, None) => "by hand".into(),
                (false, _) => what,
            },
            or_dash(line.class.as_ref().or(line.usage_unit.as_ref())),
            of_app(line),
            or_dash(line.pool.as_ref()),
            or_dash(line.priority.map(word)),
            line.month.to_string(),
            or_dash(line.unit_hours.as_ref().or(line.quantity.as_ref())),
            money(&line.amount),
        ]);
    }
    table
}

fn figures(session: &Session, figures: &InvoiceFigures) -> String {
    let mut sums = Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Left)]);
    let mut add = |name: &str, amount: &LedgerAmount, style: Style| {
        sums.styled([(name.to_owned(), Style::Dim), (money(amount), style), (figures.currency.clone(), Style::Plain)]);
    };
    add("workloads", &figures.workload, Style::Plain);
    add("control planes", &figures.control_plane, Style::Plain);
    if figures.lines.iter().any(|line| line.section == InvoiceSection::Share) {
        add("shared control planes", &figures.shares, Style::Plain);
    }
    add("adjustments", &figures.adjustments, Style::Plain);
    add("rounding", &figures.rounding, Style::Plain);
    add("net", &figures.net, Style::Plain);
    for tax in &figures.taxes {
        add(&format!("tax {} on {}", tax.rate, money(&tax.net)), &tax.tax, Style::Plain);
    }
    add("total", &figures.total, Style::Bold);
    let lines = session.lines(&lines(&figures.lines)).join("\n");
    format!("{lines}\n\n{}\n", session.lines(&sums).join("\n"))
}

fn one(session: &Session, invoice: &Invoice) -> String {
    let of = &invoice.figures;
    let kind = match invoice.kind {
        InvoiceKind::Invoice => "invoice",
        InvoiceKind::CreditNote => "credit note",
    };
    let head = Details::new()
        .add(kind, &invoice.number)
        .add("tenant", &of.tenant)
        .maybe("address", (!of.billing_address.is_empty()).then(|| of.billing_address.join("; ")))
        .maybe("tax ID", of.tax_id.as_ref())
        .add("month", &of.month)
        .add("issued", day(invoice.issued_at))
        .add("due", day(invoice.due_at))
        .add("status", session.paint.paint(style(invoice.status), &invoice.status.to_string()))
        .maybe("prepaid", invoice.prepaid.as_ref().map(|paid| format!("{} {}", money(paid), of.currency)))
        .add("owed", format!("{} {}", money(&invoice.owed), of.currency));
    format!("{}\n{}", head.text(session.paint), figures(session, of))
}

async fn draft(session: &Session, args: InvoiceDraftArgs) -> Result<(), Failed> {
    let call = session.client.draft_invoices().maybe("tenant", args.tenant).maybe("month", args.month);
    let call = call.maybe("currency", args.currency);
    let text = |drafts: &InvoiceDrafts| {
        let settled = to_the_second(drafts.settled_through);
        term::say(&format!("leasehold: a draft of what was posted before {settled}; it changes until the close\n"));
        if drafts.drafts.is_empty() {
            return "Nothing was posted for the month yet.\n".into();
        }
        let one = |of: &InvoiceFigures| {
            let head = Details::new().add("draft for", &of.tenant).add("month", &of.month);
            format!("{}\n{}", head.text(session.paint), figures(session, of))
        };
        drafts.drafts.iter().map(one).collect::<Vec<_>>().join("\n")
    };
    write(session, call, &args.form, text).await
}

pub(super) async fn payment(session: &Session, command: PaymentCommand) -> Result<(), Failed> {
    match command {
        PaymentCommand::Record(args) => record(session, args).await,
        PaymentCommand::List(args) => {
            let call = session.client.list_payments().maybe("tenant", args.tenant);
            session.list(call.maybe("currency", args.currency).maybe("invoice", args.invoice), payments).await
        }
    }
}

async fn record(session: &Session, args: PaymentRecordArgs) -> Result<(), Failed> {
    let received_at = session.times.past("--received", args.received.as_ref())?;
    let new = NewPayment {
        tenant: args.tenant,
        amount: LedgerAmount(args.amount),
        currency: args.currency,
        invoice: args.invoice,
        reference: args.reference,
        received_at,
    };
    let text = |put: &leasehold_api::PaymentPut| {
        let Payment { tenant, amount, currency, reference, .. } = &put.payment;
        let owed = money(&put.owed);
        let rest = match owed.strip_prefix('-') {
            Some(credit) => format!("{tenant} has a credit of {credit} {currency}"),
            None => format!("{tenant} still owes {owed} {currency}"),
        };
        let (amount, record) = (money(amount), put.sequence);
        format!("{amount} {currency} of {tenant} recorded under {reference:?} (record {record}); {rest}\n")
    };
    session.change(session.client.record_payment(&new), &args.change, text).await
}

fn payments(payments: &[Payment]) -> Table {
    let headings = [
        ("received", Align::Left),
        ("tenant", Align::Left),
        ("amount", Align::Right),
        ("", Align::Left),
        ("invoice", Align::Left),
        ("reference", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["reference"]);
    for payment in payments {
        table.row([
            to_the_second(payment.received_at),
            payment.tenant.clone(),
            money(&payment.amount),
            payment.currency.clone(),
            or_dash(payment.invoice.as_ref()),
            payment.reference.clone(),
        ]);
    }
    table
}

pub(super) async fn tax(session: &Session, command: TaxCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        TaxCommand::Show(args) => session.show(client.show_tax_rate(args.tenant), |tax| rates(session, tax)).await,
        TaxCommand::Set(args) => {
            let from = args.from.map(|month| MonthText(month.to_string()));
            let call = client.set_tax_rate(args.tenant, &TaxRateChange { rate: Decimal(args.rate), from });
            session.change(call, &args.change, |put| rates(session, &put.tax)).await
        }
    }
}

fn rates(session: &Session, tax: &TaxRates) -> String {
    let mut details = Details::new().add("tenant", &tax.tenant).add("rate now", &tax.rate);
    for dated in &tax.rates {
        details = details.add(&format!("from {}", dated.from), &dated.rate);
    }
    details.text(session.paint)
}
