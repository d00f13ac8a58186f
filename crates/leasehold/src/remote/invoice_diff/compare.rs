//! The difference of two invoices: what is new, gone, used more or less, or has another price.

use super::super::details::word;
use crate::problem::Problem;
use leasehold_api::{Decimal, InvoiceFigures, InvoiceLine, InvoiceSection, LedgerAmount};
use leasehold_ledger::difference::{Cause, Side, causes};
use leasehold_model::Steps;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Decimals of a quantity of a usage unit; those of hours are fewer.
const QUANTITY_DECIMALS: usize = 18;

/// An invoice or a draft, with the name that the caller gave it.
pub(super) struct Bill {
    pub(super) name: String,
    pub(super) figures: InvoiceFigures,
}

/// The difference of two bills.
#[derive(Serialize)]
pub(super) struct Difference {
    pub(super) currency: String,
    pub(super) before: Head,
    pub(super) after: Head,
    pub(super) difference: String,
    /// Lines that differ, then rounding and taxes.
    pub(super) parts: Vec<Part>,
}

#[derive(Serialize)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) month: String,
    pub(super) total: String,
}

/// A line, the rounding, or a tax.
#[derive(Serialize)]
pub(super) struct Part {
    pub(super) what: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    pub(super) usage_before: Option<String>,
    pub(super) usage_after: Option<String>,
    pub(super) difference: String,
    pub(super) causes: Vec<Because>,
}

#[derive(Serialize)]
pub(super) struct Because {
    pub(super) cause: &'static str,
    pub(super) amount: String,
}

/// What makes a line the same line on both invoices. Its month counts only if it is not that of the invoice.
type Key = (Option<String>, u32, String, u8, bool, [Option<String>; 5]);

/// Lines with the same key, summed.
#[derive(Clone, Default)]
struct Summed {
    what: String,
    unit: Option<String>,
    usage: Option<i128>,
    amount: i128,
}

fn key(line: &InvoiceLine, of: &InvoiceFigures) -> Key {
    let section = match line.section {
        InvoiceSection::Workload => 0,
        InvoiceSection::ControlPlane => 1,
        InvoiceSection::Share => 2,
        InvoiceSection::Adjustment => 3,
    };
    let month = (line.month != of.month).then(|| line.month.to_string());
    let names = [&line.class, &line.usage_unit, &line.pool, &line.app_instance].map(Clone::clone);
    let [class, unit, pool, app] = names;
    let names = [class, unit, pool, line.priority.map(word), app];
    (month, line.project_id, line.held_by.clone(), section, line.correction, names)
}

fn describe(line: &InvoiceLine, of: &InvoiceFigures) -> String {
    let what = match (line.correction, line.class.as_ref().or(line.usage_unit.as_ref())) {
        (true, Some(item)) => format!("correction of {item}"),
        (true, None) => "booked by hand".into(),
        (false, Some(item)) => item.clone(),
        (false, None) => word(line.section).replace('_', " "),
    };
    let mut text = format!("{}: {what}", line.project);
    if let Some(pool) = &line.pool {
        text.push_str(&format!(" in {pool}"));
    }
    if let Some(priority) = line.priority {
        text.push_str(&format!(", {}", word(priority)));
    }
    if let Some(app) = &line.app_instance {
        text.push_str(&format!(", for {app}"));
    }
    if line.control_plane {
        text.push_str(", control plane");
    }
    if line.held_by != line.project {
        text.push_str(&format!(", held by {}", line.held_by));
    }
    if line.month != of.month {
        text.push_str(&format!(", of {}", line.month));
    }
    text
}

fn summed(bill: &Bill) -> Result<BTreeMap<Key, Summed>, Problem> {
    let mut lines: BTreeMap<Key, Summed> = BTreeMap::new();
    for line in &bill.figures.lines {
        let sum = lines.entry(key(line, &bill.figures)).or_default();
        sum.what = describe(line, &bill.figures);
        let hours = |unit: &String| if line.unit_hours.is_some() { format!("{unit}-hours") } else { unit.clone() };
        sum.unit = line.unit.as_ref().map(hours);
        if let Some(usage) = line.unit_hours.as_ref().or(line.quantity.as_ref()) {
            let usage = quantity(usage).ok_or_else(|| unreadable(bill, usage))?;
            sum.usage = Some(sum.usage.unwrap_or(0).checked_add(usage).ok_or_else(|| unreadable(bill, "usage"))?);
        }
        let amount = steps(bill, &line.amount)?;
        sum.amount = sum.amount.checked_add(amount.0).ok_or_else(|| unreadable(bill, &line.amount.0))?;
    }
    Ok(lines)
}

fn unreadable(bill: &Bill, value: &str) -> Problem {
    Problem::refused("bad_invoice", format!("{} has a value that cannot be read: {value:?}", bill.name))
}

fn steps(bill: &Bill, amount: &LedgerAmount) -> Result<Steps, Problem> {
    amount.0.parse().map_err(|_| unreadable(bill, &amount.0))
}

/// A decimal number in units of 10^-18.
fn quantity(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(part) || part.len() > QUANTITY_DECIMALS {
        return None;
    }
    format!("{whole}{part:0<QUANTITY_DECIMALS$}").parse::<i128>().ok().map(|number| sign * number)
}

/// A quantity as text, without superfluous zeros.
fn quantity_text(quantity: i128) -> String {
    let digits = format!("{:019}", quantity.unsigned_abs());
    let (whole, part) = digits.split_at(digits.len() - QUANTITY_DECIMALS);
    let text = format!("{whole}.{part}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if quantity < 0 { format!("-{text}") } else { text.to_owned() }
}

pub(super) fn compare(before: &Bill, after: &Bill) -> Result<Difference, Problem> {
    let (old, new) = (&before.figures, &after.figures);
    if old.currency != new.currency {
        let what = format!("{} is in {}, {} is in {}", before.name, old.currency, after.name, new.currency);
        return Err(Problem::refused("other_currency", format!("{what}: amounts cannot be compared")));
    }
    let (olds, news) = (summed(before)?, summed(after)?);
    let mut parts = Vec::new();
    let keys: BTreeSet<&Key> = olds.keys().chain(news.keys()).collect();
    for key in keys {
        parts.extend(line_part(olds.get(key), news.get(key))?);
    }
    parts.extend(flat_part("rounding to what can be paid", before, &old.rounding, after, &new.rounding, "rounding")?);
    parts.extend(tax_parts(before, after)?);
    let head = |bill: &Bill| Head {
        name: bill.name.clone(),
        month: bill.figures.month.to_string(),
        total: bill.figures.total.to_string(),
    };
    let all = minus(steps(after, &new.total)?, steps(before, &old.total)?)?;
    let explained = parts.iter().try_fold(Steps::ZERO, |sum, part| {
        part.difference.parse().ok().and_then(|part: Steps| sum.checked_add(part)).ok_or_else(too_large)
    })?;
    if explained != all {
        let what = format!("the parts add up to {explained}, but the totals differ by {all}");
        return Err(Problem::refused("bad_invoice", format!("{what}: one of the two does not add up")));
    }
    let currency = old.currency.clone();
    Ok(Difference { currency, before: head(before), after: head(after), difference: all.to_string(), parts })
}

fn too_large() -> Problem {
    Problem::refused("bad_invoice", "an amount is too large to be compared")
}

fn minus(after: Steps, before: Steps) -> Result<Steps, Problem> {
    after.checked_add(-before).ok_or_else(too_large)
}

fn line_part(old: Option<&Summed>, new: Option<&Summed>) -> Result<Option<Part>, Problem> {
    let side = |line: &Summed| Side { usage: line.usage, amount: Steps(line.amount) };
    let found = causes(old.map(side), new.map(side)).map_err(|_| too_large())?;
    let usage = |line: Option<&Summed>| line.and_then(|line| line.usage);
    if found.is_empty() && usage(old) == usage(new) {
        return Ok(None);
    }
    let amount = |line: Option<&Summed>| line.map(|line| Steps(line.amount).to_string());
    let (was, is) = (old.map_or(0, |line| line.amount), new.map_or(0, |line| line.amount));
    let shown = |line: Option<&Summed>| {
        let (line, usage) = (line?, usage(line)?);
        let unit = line.unit.as_deref().unwrap_or("");
        Some(format!("{} {unit}", quantity_text(usage)).trim_end().to_owned())
    };
    Ok(Some(Part {
        what: new.or(old).map_or_else(String::new, |line| line.what.clone()),
        before: amount(old),
        after: amount(new),
        usage_before: shown(old),
        usage_after: shown(new),
        difference: minus(Steps(is), Steps(was))?.to_string(),
        causes: found.iter().map(|(cause, amount)| because(cause_word(*cause), *amount)).collect(),
    }))
}

fn because(cause: &'static str, amount: Steps) -> Because {
    Because { cause, amount: amount.to_string() }
}

fn cause_word(cause: Cause) -> &'static str {
    match cause {
        Cause::New => "new",
        Cause::Gone => "gone",
        Cause::MoreUsage => "more_usage",
        Cause::LessUsage => "less_usage",
        Cause::HigherPrice => "higher_price",
        Cause::LowerPrice => "lower_price",
        Cause::Rounding => "rounding",
        Cause::OtherAmount => "other_amount",
    }
}

fn flat_part(
    what: &str,
    before: &Bill,
    old: &LedgerAmount,
    after: &Bill,
    new: &LedgerAmount,
    cause: &'static str,
) -> Result<Option<Part>, Problem> {
    let (was, is) = (steps(before, old)?, steps(after, new)?);
    let difference = minus(is, was)?;
    Ok((difference != Steps::ZERO).then(|| Part {
        what: what.to_owned(),
        before: Some(was.to_string()),
        after: Some(is.to_string()),
        usage_before: None,
        usage_after: None,
        difference: difference.to_string(),
        causes: vec![because(cause, difference)],
    }))
}

/// Taxes with the same rate differ because the net does; others are new or gone.
fn tax_parts(before: &Bill, after: &Bill) -> Result<Vec<Part>, Problem> {
    let zero = LedgerAmount("0".into());
    let find = |bill: &Bill, rate: &Decimal| {
        bill.figures.taxes.iter().find(|tax| tax.rate == *rate).map(|tax| (tax.net.clone(), tax.tax.clone()))
    };
    let mut rates: Vec<&Decimal> = Vec::new();
    for tax in before.figures.taxes.iter().chain(&after.figures.taxes) {
        if !rates.contains(&&tax.rate) {
            rates.push(&tax.rate);
        }
    }
    let mut parts = Vec::new();
    for rate in rates {
        let (old, new) = (find(before, rate), find(after, rate));
        let cause = match (&old, &new) {
            (Some(_), Some(_)) => "other_net",
            (None, _) => "new",
            (_, None) => "gone",
        };
        let net = |side: &Option<_>| side.as_ref().map(|(net, _): &(LedgerAmount, LedgerAmount)| format!("net {net}"));
        let tax = |side: &Option<(LedgerAmount, LedgerAmount)>| side.as_ref().map_or(&zero, |(_, tax)| tax).clone();
        let part = flat_part(&format!("tax {rate}"), before, &tax(&old), after, &tax(&new), cause)?;
        parts.extend(part.map(|part| Part { usage_before: net(&old), usage_after: net(&new), ..part }));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn line(class: &str, hours: &str, amount: &str) -> Value {
        json!({
            "section": "workload", "month": "2026-11", "project": "lattice", "project_id": 3, "held_by": "lattice",
            "correction": false, "pool": "training", "class": class, "usage_unit": null, "unit": "GPU",
            "priority": "standard", "app_instance": null, "control_plane": false, "unit_hours": hours,
            "quantity": null, "amount": amount,
        })
    }

    fn by_hand(amount: &str) -> Value {
        let mut line = line("x", "0", amount);
        for field in ["pool", "class", "unit", "priority", "unit_hours"] {
            line[field] = Value::Null;
        }
        line["section"] = "adjustment".into();
        line["correction"] = true.into();
        line
    }

    /// A bill with these lines, this rounding, and these (rate, net, tax).
    fn bill(name: &str, lines: Vec<Value>, rounding: &str, taxes: &[(&str, &str, &str)], total: &str) -> Bill {
        let taxes: Vec<Value> = taxes
            .iter()
            .map(|(rate, net, tax)| json!({ "rate": rate, "posted": net, "net": net, "tax": tax }))
            .collect();
        let figures = json!({
            "tenant": "physics", "tenant_id": 1, "billing_address": [], "tax_id": null,
            "issuer": { "name": null, "address": [], "tax_id": null, "bank": [] },
            "month": "2026-11", "currency": "EUR", "lines": lines, "workload": "0", "control_plane": "0",
            "shares": "0", "adjustments": "0", "posted": "0", "rounding": rounding, "net": "0", "taxes": taxes,
            "tax": "0", "total": total,
        });
        Bill { name: name.into(), figures: serde_json::from_value(figures).expect("figures") }
    }

    /// Part by part: what it is about, by how much it differs, and why.
    fn parts(found: &Difference) -> Vec<(String, String, String)> {
        let why = |part: &Part| {
            part.causes.iter().map(|by| format!("{} {}", by.cause, by.amount)).collect::<Vec<_>>().join(", ")
        };
        found.parts.iter().map(|part| (part.what.clone(), part.difference.clone(), why(part))).collect()
    }

    /// 10 h at 2.00 become 15 h at 3.00; 4 h of another class are gone, a third is new; −1.00 was given back. The net
    /// grows from 28.00 to 47.50, and the tax is 19 % of it.
    #[test]
    fn a_difference_is_explained_line_by_line_and_adds_up() {
        let old = vec![line("a", "10.000000", "20.000000"), line("b", "4.000000", "8.004000")];
        let before = bill("INV-1", old, "-0.004000", &[("0.19", "28.000000", "5.320000")], "33.320000");
        let new = vec![line("a", "15.000000", "45.000000"), line("c", "1.000000", "3.500000"), by_hand("-1.000000")];
        let after = bill("INV-2", new, "0.000000", &[("0.19", "47.500000", "9.030000")], "56.530000");
        let found = compare(&before, &after).expect("a difference");
        assert_eq!(found.difference, "23.210000");
        let row = |what: &str, by: &str, why: &str| (what.to_owned(), by.to_owned(), why.to_owned());
        assert_eq!(
            parts(&found),
            [
                row("lattice: a in training, standard", "25.000000", "more_usage 10.000000, higher_price 15.000000"),
                row("lattice: b in training, standard", "-8.004000", "gone -8.004000"),
                row("lattice: c in training, standard", "3.500000", "new 3.500000"),
                row("lattice: booked by hand", "-1.000000", "new -1.000000"),
                row("rounding to what can be paid", "0.004000", "rounding 0.004000"),
                row("tax 0.19", "3.710000", "other_net 3.710000"),
            ]
        );
        assert_eq!(found.parts[0].usage_after.as_deref(), Some("15 GPU-hours"));
        assert!(compare(&before, &before).expect("no difference").parts.is_empty());
    }

    #[test]
    fn another_rate_is_one_tax_gone_and_one_new() {
        let lines = || vec![line("a", "10.000000", "20.000000")];
        let before = bill("INV-1", lines(), "0", &[("0.19", "20.000000", "3.800000")], "23.800000");
        let after = bill("INV-2", lines(), "0", &[("0.2", "20.000000", "4.000000")], "24.000000");
        let found = compare(&before, &after).expect("a difference");
        let causes: Vec<_> = found.parts.iter().map(|part| (part.what.as_str(), part.causes[0].cause)).collect();
        assert_eq!(causes, [("tax 0.19", "gone"), ("tax 0.2", "new")]);
    }

    #[test]
    fn bills_that_do_not_add_up_or_compare_are_refused() {
        let good = || bill("INV-1", vec![line("a", "1.000000", "2.000000")], "0", &[], "2.000000");
        let code = |before: &Bill, after: &Bill| compare(before, after).err().expect("a refusal").code().to_owned();
        let mut wrong = good();
        wrong.figures.total = LedgerAmount("3.000000".into());
        assert_eq!(code(&good(), &wrong), "bad_invoice");
        let mut dollars = good();
        dollars.figures.currency = "USD".into();
        assert_eq!(code(&good(), &dollars), "other_currency");
        for nonsense in ["", "x", "1e5", "99999999999999999999999999999999999999999", "1.0000000000000000001"] {
            let mut wrong = good();
            wrong.figures.lines[0].unit_hours = Some(nonsense.into());
            assert_eq!(code(&good(), &wrong), "bad_invoice", "{nonsense:?}");
        }
    }

    #[test]
    fn quantities_are_exact() {
        for text in ["0", "1", "-2.5", "0.000000000000000001", "123456789.25"] {
            assert_eq!(quantity_text(quantity(text).expect("a number")), text);
        }
    }
}
