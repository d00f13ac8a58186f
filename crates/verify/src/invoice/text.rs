//! The result about an invoice as text and as JSON: the verdict first, then the invoice, then what it rests on.

use super::names::Names;
use super::words::{mismatch, not_proved, place, proved, verdict};
use super::{Checked, Judged, NoProof};
use crate::receipt::Colours;
use leasehold_bill::CheckedLine;
use leasehold_model::hex;
use serde_json::{Value, json};
use std::fmt::Write;

/// Mismatches that are printed; JSON has all.
const SHOWN_MAX: usize = 20;

/// The verdict, and below it the invoice with the check of each line.
pub(super) fn receipt(judged: &Judged, colours: Colours) -> String {
    let checked = &judged.checked;
    let names = Names::of(&checked.evidence);
    let mut text = format!("{}\n\n", verdict_line(judged, &names, colours));
    invoice(&mut text, checked, &names);
    for (file, names) in all(judged).map(|file| (file, Names::of(&file.evidence))) {
        let found = &file.report.mismatches;
        section(&mut text, "wrong", found.iter().take(SHOWN_MAX).map(|found| mismatch(found, &names)));
        if found.len() > SHOWN_MAX {
            section(&mut text, "", [format!("and {} more; --json lists all", found.len() - SHOWN_MAX)]);
        }
    }
    section(&mut text, "wrong", judged.broken.iter().map(ToString::to_string));
    if judged.is_proved() {
        section(&mut text, "proved", proved(checked));
        section(&mut text, "proved", judged.earlier.iter().map(with));
    }
    section(&mut text, "not proved", not_proved(judged));
    text
}

fn with(earlier: &Checked) -> String {
    format!("{} of {} too, and that both are about one journal", earlier.number, earlier.evidence.month)
}

/// The invoice and the earlier ones.
fn all(judged: &Judged) -> impl Iterator<Item = &Checked> {
    std::iter::once(&judged.checked).chain(&judged.earlier)
}

fn verdict_line(judged: &Judged, names: &Names, colours: Colours) -> String {
    let checked = &judged.checked;
    let (number, month) = (checked.number, checked.evidence.month);
    let tenant = names.tenant.clone().unwrap_or_else(|| format!("tenant {}", checked.evidence.tenant.0));
    if judged.is_proved() {
        let total = checked.report.invoice.as_ref().map_or_else(String::new, |(_, issued)| issued.total.to_string());
        let currency = checked.evidence.currency;
        return format!(
            "{}: {number} of {tenant} for {month}, {total} {currency}, follows from the records",
            colours.yes()
        );
    }
    let first = all(judged).find_map(|file| file.report.mismatches.first().map(|found| (file, found)));
    let why = match (first, judged.broken.first()) {
        (Some((file, found)), _) => mismatch(found, &Names::of(&file.evidence)),
        (None, Some(broken)) => broken.to_string(),
        (None, None) => "the invoice is not among the records".to_owned(),
    };
    format!("{}: {number} of {tenant} for {month} does not follow from the records: {why}", colours.no())
}

// Writing to a string cannot fail; so below.
fn section(text: &mut String, name: &str, sentences: impl IntoIterator<Item = String>) {
    for sentence in sentences {
        writeln!(text, "  {name:<12}{sentence}").unwrap_or(());
    }
}

fn invoice(text: &mut String, checked: &Checked, names: &Names) {
    let row = |line: &CheckedLine| {
        let month =
            if line.key.month == checked.evidence.month { String::new() } else { format!(" ({})", line.key.month) };
        [
            format!("{}{month}", names.line(&line.key)),
            names.usage(&line.key, line.usage),
            line.posted.to_string(),
            verdict(line.verdict).1.to_owned(),
        ]
    };
    let mut rows: Vec<[String; 4]> = checked.report.lines.iter().map(row).collect();
    if let Some((_, issued)) = &checked.report.invoice {
        let mut sum = |what: String, amount: String| rows.push([what, String::new(), amount, String::new()]);
        if let Some(rounding) = leasehold_ledger::total_rounding(&issued.taxes).filter(|rounding| rounding.0 != 0) {
            sum("rounding to what can be paid".into(), rounding.to_string());
        }
        for tax in issued.taxes.iter().filter(|tax| tax.rate.0 != 0) {
            sum(format!("tax {} on {}", tax.rate, tax.net), tax.tax.to_string());
        }
        sum(format!("total in {}", issued.currency), issued.total.to_string());
        for (_, applied) in &checked.report.prepaid {
            sum("paid from prepaid credit".into(), applied.credited.to_string());
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (what, usage, amount) = (width(0), width(1), width(2));
    for [line, used, posted, found] in &rows {
        let row = format!("  {line:<what$}  {used:>usage$}  {posted:>amount$}  {found}");
        writeln!(text, "{}", row.trim_end()).unwrap_or(());
    }
    text.push('\n');
}

/// Why a file proves nothing.
pub(super) fn refusal(file: &str, why: &NoProof, colours: Colours) -> String {
    format!("{}: {file} proves nothing: {why}\n\n  code        {}\n", colours.no(), why.code())
}

pub(super) fn refusal_json(file: &str, why: &NoProof) -> Value {
    json!({ "verdict": "no", "file": file, "code": why.code(), "sentence": why.to_string() })
}

pub(super) fn judged_json(judged: &Judged) -> Value {
    let names = Names::of(&judged.checked.evidence);
    let mut value = checked_json(&judged.checked);
    value["verdict"] = if judged.is_proved() { "yes" } else { "no" }.into();
    value["sentence"] = verdict_line(judged, &names, Colours(false)).into();
    value["proved"] = if judged.is_proved() { proved(&judged.checked) } else { Vec::new() }.into();
    value["not_proved"] = not_proved(judged).into();
    value["earlier"] = judged.earlier.iter().map(checked_json).collect::<Vec<_>>().into();
    value["broken"] = judged.broken.iter().map(ToString::to_string).collect::<Vec<_>>().into();
    value
}

fn checked_json(checked: &Checked) -> Value {
    let names = Names::of(&checked.evidence);
    let (evidence, report) = (&checked.evidence, &checked.report);
    let lines = report.lines.iter().map(|line| {
        json!({
            "line": names.line(&line.key),
            "month": line.key.month.to_string(),
            "usage": names.usage(&line.key, line.usage),
            "amount": line.posted.to_string(),
            "verdict": verdict(line.verdict).0,
        })
    });
    let wrong = report.mismatches.iter().map(|found| {
        json!({
            "where": place(&found.place, &names),
            "expected": found.expected,
            "found": found.found,
            "difference": found.difference,
            "why": found.why,
        })
    });
    let issued = report.invoice.as_ref().map(|(sequence, issued)| {
        let tax = |tax: &leasehold_model::body::TaxLine| {
            json!({ "rate": tax.rate.to_string(), "net": tax.net.to_string(), "tax": tax.tax.to_string() })
        };
        json!({
            "sequence": sequence,
            "taxes": issued.taxes.iter().map(tax).collect::<Vec<_>>(),
            "total": issued.total.to_string(),
        })
    });
    json!({
        "invoice": checked.number.to_string(),
        "tenant": names.tenant,
        "tenant_id": evidence.tenant.0,
        "month": evidence.month.to_string(),
        "currency": evidence.currency.to_string(),
        "issued": issued,
        "lines": lines.collect::<Vec<_>>(),
        "wrong": wrong.collect::<Vec<_>>(),
        "records": checked.records,
        "checkpoint": { "size": checked.size, "root": hex::encode(&checked.root) },
        "witnesses": checked.cosigned.by.iter().map(|by| by.name.clone()).collect::<Vec<_>>(),
    })
}
