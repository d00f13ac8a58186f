//! Invoices for people: a page to print, from a template that a site can replace, and a table for a spreadsheet.

use crate::config::{Config, Issuer};
use crate::template::{BYTES_MAX, Template};
use leasehold_api as api;
use leasehold_api::{Invoice, InvoiceFigures, InvoiceLine, InvoiceSection, LedgerAmount, When};
use leasehold_model::ledger::currency_decimals;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{Instant, Month, Steps};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// The template that is used unless a site has its own.
pub(crate) const DEFAULT_TEMPLATE: &str = include_str!("invoice.html");

/// The names that a template may use; `docs/how-to/bill.md` explains them.
pub(crate) const NAMES: &[&str] = &[
    "title",
    "is_draft",
    "is_credit_note",
    "number",
    "month",
    "issued_on",
    "due_on",
    "currency",
    "issuer_name",
    "issuer_address",
    "issuer_tax_id",
    "issuer_bank",
    "tenant_name",
    "tenant_address",
    "tenant_tax_id",
    "sections",
    "heading",
    "lines",
    "project",
    "description",
    "usage_month",
    "quantity",
    "unit",
    "amount",
    "subtotal",
    "lines_total",
    "rounding",
    "net",
    "taxes",
    "percent",
    "taxed_net",
    "tax",
    "total",
    "is_issued",
    "is_paid",
    "is_overdue",
    "paid",
    "prepaid",
    "is_settled",
    "owed",
    "settled_through",
];

/// How this site prints invoices. A reload of the configuration changes it.
#[derive(Debug)]
pub(crate) struct InvoicePrinting(RwLock<Arc<Printed>>);

/// The template and the issuer.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) issuer: Issuer,
    template: Template,
}

/// Reads the template of a site; the reason if it cannot be used.
pub(crate) fn load_template(path: Option<&Path>) -> Result<Template, String> {
    let own;
    let text = match path {
        None => DEFAULT_TEMPLATE,
        Some(path) => {
            let size = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?.len();
            if size > BYTES_MAX as u64 {
                return Err(format!("is longer than {BYTES_MAX} bytes"));
            }
            own = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
            &own
        }
    };
    Template::parse(text, NAMES).map_err(|why| why.to_string())
}

impl Printed {
    fn load(config: &Config) -> Result<Self, String> {
        let template = load_template(config.ledger.invoice_template.as_deref())?;
        Ok(Self { issuer: config.issuer.clone(), template })
    }
}

impl InvoicePrinting {
    pub(crate) fn new(config: &Config) -> Result<Self, String> {
        Ok(Self(RwLock::new(Arc::new(Printed::load(config)?))))
    }

    /// Takes over a new configuration; the old one stays if the template cannot be used.
    pub(crate) fn set(&self, config: &Config) -> Result<(), String> {
        let new = Arc::new(Printed::load(config)?);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    pub(crate) fn get(&self) -> Arc<Printed> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// `November 2026`
fn long_month(text: &str) -> String {
    let month: Option<Month> = text.parse().ok();
    month.map_or_else(|| text.to_owned(), |month| format!("{} {}", MONTHS[month.month() as usize - 1], month.year()))
}

/// `1 December 2026`
fn long_day(at: Instant) -> String {
    let text = at.to_string();
    let month = Month::of(at);
    let day = text.get(8..10).unwrap_or_default().trim_start_matches('0');
    format!("{day} {} {}", MONTHS[month.month() as usize - 1], month.year())
}

fn steps(amount: &LedgerAmount) -> Steps {
    amount.0.parse().unwrap_or_default()
}

/// With six decimals, and commas between thousands.
fn fine(amount: &LedgerAmount) -> String {
    grouped(&amount.0)
}

/// With the decimals in which the currency is paid, if that is exact.
fn coarse(amount: &LedgerAmount, currency: &str) -> String {
    let decimals = Currency::new(currency).map_or(2, currency_decimals) as usize;
    let text = &amount.0;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.get(decimals..).is_some_and(|rest| rest.bytes().any(|digit| digit != b'0')) {
        return grouped(text);
    }
    let part = part.get(..decimals).unwrap_or(part);
    grouped(&if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") })
}

/// `1234567.5` as `1,234,567.5`.
fn grouped(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("\u{2212}", digits));
    let (whole, part) = digits.split_once('.').map_or((digits, None), |(whole, part)| (whole, Some(part)));
    let mut out = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    part.into_iter().for_each(|part| out.extend([".", part]));
    out
}

fn is_zero(decimal: &str) -> bool {
    decimal.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0')
}

/// `24 %` for 0.24.
fn percent(rate: &api::Decimal) -> String {
    let rate: Decimal = rate.0.parse().unwrap_or_default();
    format!("{} %", Decimal(rate.0.saturating_mul(100)))
}

fn description(line: &InvoiceLine) -> String {
    let mut words = match (&line.class, &line.usage_unit) {
        (Some(class), _) => format!("{class}, pool {}", line.pool.as_deref().unwrap_or("-")),
        (None, Some(unit)) => unit.clone(),
        (None, None) if line.section == InvoiceSection::Share => {
            let of = line.app_instance.as_deref().unwrap_or("-");
            let is_credit = steps(&line.amount) < Steps::ZERO;
            let words = if is_credit { "Borne by others" } else { "Share" };
            return format!("{words}: control plane of {of}");
        }
        (None, None) => return "Entry by hand".into(),
    };
    if let Some(priority) = line.priority {
        words += &format!(", {priority}");
    }
    if let Some(app) = &line.app_instance {
        words += &format!(", app instance {app}");
    }
    if line.held_by != line.project {
        // Whoever lends capacity is credited with what others use of it.
        let credited = line.usage_unit.is_some();
        let verb = if credited { "credit for use by" } else { "held by" };
        words += &format!(", {verb} {}", line.held_by);
    }
    match (line.section, line.correction, line.control_plane) {
        (InvoiceSection::Adjustment, true, _) => words = format!("Correction: {words}"),
        (InvoiceSection::Adjustment, false, true) => words = format!("Control plane: {words}"),
        _ => {}
    }
    words
}

fn section(heading: &str, of: InvoiceSection, figures: &InvoiceFigures, subtotal: &LedgerAmount) -> Option<Value> {
    let lines: Vec<Value> = figures
        .lines
        .iter()
        .filter(|line| line.section == of)
        .map(|line| {
            let usage_month = (line.month != figures.month).then(|| long_month(&line.month.0));
            // A correction keeps the usage and changes its amount.
            let is_shown = |quantity: &&str| !line.correction || !is_zero(quantity);
            let hours = line.unit_hours.as_deref().filter(is_shown);
            let reported = line.quantity.as_deref().filter(is_shown);
            json!({
                "project": line.project,
                "description": description(line),
                "usage_month": usage_month,
                "quantity": hours.or(reported).map(grouped),
                "unit": match reported {
                    Some(_) => line.unit.clone(),
                    None => hours.and(line.unit.as_deref()).map(|unit| format!("{unit}-h")),
                },
                "amount": fine(&line.amount),
            })
        })
        .collect();
    (!lines.is_empty()).then(|| json!({ "heading": heading, "lines": lines, "subtotal": fine(subtotal) }))
}

/// The values for a template.
fn values(issuer: &Issuer, figures: &InvoiceFigures, issued: Option<&api::Invoice>, settled: Option<When>) -> Value {
    let is_credit_note = match issued {
        Some(invoice) => invoice.kind == api::InvoiceKind::CreditNote,
        None => steps(&figures.net) < Steps::ZERO,
    };
    let title = match (issued.is_some(), is_credit_note) {
        (true, false) => "Invoice",
        (true, true) => "Credit note",
        (false, false) => "Draft invoice",
        (false, true) => "Draft credit note",
    };
    let sections = [
        section("Workloads", InvoiceSection::Workload, figures, &figures.workload),
        section("Control planes", InvoiceSection::ControlPlane, figures, &figures.control_plane),
        section("Shared control planes", InvoiceSection::Share, figures, &figures.shares),
        section("Adjustments", InvoiceSection::Adjustment, figures, &figures.adjustments),
    ];
    let money = |amount: &LedgerAmount| coarse(amount, &figures.currency);
    let taxes: Vec<Value> = figures
        .taxes
        .iter()
        .filter(|tax| steps(&tax.tax) != Steps::ZERO || figures.taxes.len() > 1)
        .map(|tax| json!({ "percent": percent(&tax.rate), "taxed_net": money(&tax.net), "tax": money(&tax.tax) }))
        .collect();
    let prepaid = issued.and_then(|invoice| invoice.prepaid.as_ref());
    let by_credit = prepaid.map_or(Steps::ZERO, steps);
    let paid = issued.map(|invoice| Steps(steps(&figures.total).0 - steps(&invoice.owed).0 - by_credit.0));
    let status = |wanted: api::InvoiceStatus| issued.is_some_and(|invoice| invoice.status == wanted);
    json!({
        "title": title,
        "is_draft": issued.is_none(),
        "is_issued": issued.is_some(),
        "is_credit_note": is_credit_note,
        "number": issued.map(|invoice| invoice.number.clone()),
        "month": long_month(&figures.month.0),
        "issued_on": issued.map(|invoice| long_day(invoice.issued_at.0)),
        "due_on": issued.map(|invoice| long_day(invoice.due_at.0)),
        "settled_through": settled.map(|at| at.to_string()),
        "currency": figures.currency,
        "issuer_name": issuer.name,
        "issuer_address": issuer.address,
        "issuer_tax_id": issuer.tax_id,
        "issuer_bank": issuer.bank,
        "tenant_name": figures.tenant,
        "tenant_address": figures.billing_address,
        "tenant_tax_id": figures.tax_id,
        "sections": sections.into_iter().flatten().collect::<Vec<_>>(),
        "lines_total": fine(&figures.posted),
        "rounding": fine(&figures.rounding),
        "net": money(&figures.net),
        "taxes": taxes,
        "total": money(&figures.total),
        "prepaid": prepaid.map(money),
        "is_settled": prepaid.is_some() || paid.is_some_and(|paid| paid != Steps::ZERO),
        "paid": paid.filter(|paid| *paid != Steps::ZERO).map(|paid| money(&LedgerAmount(paid.to_string()))),
        "owed": issued.map(|invoice| money(&invoice.owed)),
        "is_paid": status(api::InvoiceStatus::Paid),
        "is_overdue": status(api::InvoiceStatus::Overdue),
    })
}

impl Printed {
    /// The issuer, as the API shows it.
    pub(crate) fn shown_issuer(&self) -> api::Issuer {
        let Issuer { name, address, tax_id, bank } = self.issuer.clone();
        api::Issuer { name, address, tax_id, bank }
    }

    pub(crate) fn page(&self, invoice: &api::Invoice) -> String {
        self.template.render(&values(&self.issuer, &invoice.figures, Some(invoice), None))
    }

    pub(crate) fn draft_page(&self, figures: &InvoiceFigures, settled: When) -> String {
        self.template.render(&values(&self.issuer, figures, None, Some(settled)))
    }
}

/// Spreadsheets run a cell that begins with one of these as a formula.
const BEGINS_FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// A cell of text: quoted if necessary, and marked as text if a spreadsheet would run it.
fn text_cell(text: &str) -> String {
    let text = if text.starts_with(BEGINS_FORMULA) { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

const HEADINGS: &str = "invoice,row,section,month,tenant,project,held_by,pool,class,priority,app_instance,control_plane,\
                        unit_hours,unit,quantity,currency,amount\n";

/// A table: one row for each line, then rounding, tax by rate, and the total, to which the rows above add up. For an
/// invoice two rows follow: what prepaid credit pays of the total, and what is still owed.
pub(crate) fn csv<'f>(all: impl IntoIterator<Item = (Option<&'f Invoice>, &'f InvoiceFigures)>) -> String {
    let mut out = HEADINGS.to_owned();
    for (invoice, figures) in all {
        let number = invoice.map_or("draft", |invoice| &invoice.number);
        let tenant = text_cell(&figures.tenant);
        let text = |text: Option<&str>| text.map(text_cell).unwrap_or_default();
        for line in &figures.lines {
            let cells = [
                number.to_owned(),
                "line".into(),
                crate::show_ledger::section_word(line.section).to_owned(),
                line.month.to_string(),
                tenant.clone(),
                text_cell(&line.project),
                text_cell(&line.held_by),
                text(line.pool.as_deref()),
                text(line.class.as_deref()),
                line.priority.map(|priority| priority.to_string()).unwrap_or_default(),
                text(line.app_instance.as_deref()),
                line.control_plane.to_string(),
                line.unit_hours.clone().unwrap_or_default(),
                text(line.unit.as_deref()),
                line.quantity.clone().unwrap_or_default(),
                figures.currency.clone(),
                line.amount.to_string(),
            ];
            out.push_str(&(cells.join(",") + "\n"));
        }
        let mut row = |kind: &str, amount: &LedgerAmount| {
            let (month, currency) = (&figures.month, &figures.currency);
            out.push_str(&format!("{number},{kind},,{month},{tenant},,,,,,,,,,,{currency},{amount}\n"));
        };
        row("rounding", &figures.rounding);
        for tax in &figures.taxes {
            row(&format!("tax {}", tax.rate), &tax.tax);
        }
        row("total", &figures.total);
        if let Some(invoice) = invoice {
            invoice.prepaid.iter().for_each(|prepaid| row("prepaid", prepaid));
            row("owed", &invoice.owed);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_printed_for_people() {
        let amount = |text: &str| LedgerAmount(text.into());
        assert_eq!(fine(&amount("1234567.500000")), "1,234,567.500000");
        assert_eq!(coarse(&amount("-1234.500000"), "EUR"), "\u{2212}1,234.50");
        assert_eq!(coarse(&amount("100.000000"), "JPY"), "100");
        assert_eq!(coarse(&amount("0.001000"), "EUR"), "0.001000", "what cannot be paid is shown in full");
        assert_eq!(percent(&api::Decimal("0.245".into())), "24.5 %");
        assert_eq!(long_month("2026-11"), "November 2026");
    }

    #[test]
    fn a_cell_is_never_a_formula() {
        assert_eq!(text_cell("=1+1"), "'=1+1");
        assert_eq!(text_cell("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    /// Names are free text: none of them may end a cell, or be run by a spreadsheet.
    #[test]
    fn every_name_of_a_line_is_a_cell_of_text() {
        let amount = || LedgerAmount("1.000000".into());
        let named = |what: &str| Some(format!("={what},\""));
        let line = InvoiceLine {
            section: InvoiceSection::Workload,
            month: api::MonthText("2026-11".into()),
            project: "=project,\"".into(),
            project_id: 0,
            held_by: "=holder,\"".into(),
            correction: false,
            pool: named("pool"),
            class: named("class"),
            unit: named("unit"),
            usage_unit: None,
            priority: None,
            app_instance: named("app"),
            control_plane: false,
            unit_hours: Some("1.000000".into()),
            quantity: None,
            amount: amount(),
        };
        let figures = InvoiceFigures {
            tenant: "=tenant,\"".into(),
            tenant_id: 0,
            billing_address: Vec::new(),
            tax_id: None,
            issuer: api::Issuer { name: None, address: Vec::new(), tax_id: None, bank: Vec::new() },
            month: line.month.clone(),
            currency: "EUR".into(),
            lines: vec![line],
            workload: amount(),
            control_plane: amount(),
            shares: amount(),
            adjustments: amount(),
            posted: amount(),
            rounding: amount(),
            net: amount(),
            taxes: Vec::new(),
            tax: amount(),
            total: amount(),
        };
        let table = csv([(None, &figures)]);
        for what in ["tenant", "project", "holder", "pool", "class", "app", "unit"] {
            assert!(table.contains(&format!(",\"'={what},\"\"\",")), "{what} in {table}");
        }
    }

    #[test]
    fn the_own_template_uses_names_that_exist() {
        load_template(None).expect("a valid template");
    }
}
