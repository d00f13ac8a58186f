//! Formats figures of reports. They are decimal texts and are never converted to floating point.

use crate::numbers;
use crate::term::{self, fine_bar};
use leasehold_api::{Amount, Of, Stretch, When};
use leasehold_meter::round_together;
use leasehold_model::Group;
use std::collections::{BTreeMap, BTreeSet};

/// A decimal text with up to nine decimals in billionths; `None` if it is invalid or too large.
pub(super) fn billionths(text: &str) -> Option<u128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 9 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let decimals: u128 = format!("{decimals:0<9}").parse().ok()?;
    whole.parse::<u128>().ok()?.checked_mul(1_000_000_000)?.checked_add(decimals)
}

const SECOND: u128 = 1_000_000_000;
const HOUR: u128 = 3600 * SECOND;

/// The unit of the amounts in a table: hours, or seconds if all amounts are small.
pub(super) struct Scale {
    hours: bool,
}

impl Scale {
    pub(super) fn of<'a>(amounts: impl IntoIterator<Item = &'a str>) -> Self {
        let is_large = |text: &str| billionths(text).is_none_or(|amount| amount >= HOUR);
        Self { hours: amounts.into_iter().any(is_large) }
    }

    /// `12.50 GPU-h` or `7.21 GPU-s`, rounded down; a small amount is shown as `<0.01`.
    pub(super) fn show(&self, unit_seconds: &str, unit: &str) -> String {
        let (size, letter) = if self.hours { (HOUR, 'h') } else { (SECOND, 's') };
        match billionths(unit_seconds) {
            Some(0) => format!("0 {unit}-{letter}"),
            Some(amount) if amount < size / 100 => format!("<0.01 {unit}-{letter}"),
            Some(amount) if amount / size <= u128::from(u64::MAX) => {
                format!("{} {unit}-{letter}", numbers::decimal(amount, size, 2))
            }
            _ => format!("{unit_seconds} {unit}-s"),
        }
    }
}

/// The parts of a whole as `12.5 %`, rounded so that they add up to `100.0 %`.
pub(super) fn percents<const N: usize>(parts: [&str; N]) -> [String; N] {
    let amounts: Option<Vec<u128>> = parts.iter().map(|part| billionths(part)?.checked_mul(1000)).collect();
    let whole = amounts.iter().flatten().try_fold(0u128, |sum, amount| sum.checked_add(*amount));
    match (amounts, whole) {
        // In steps of a thousandth of the whole.
        (Some(amounts), Some(whole @ 1..)) => {
            let shares = round_together(&amounts, whole / 1000);
            std::array::from_fn(|i| if amounts[i] == 0 { "-".into() } else { permille(shares[i]) })
        }
        (Some(_), Some(0)) => parts.map(|_| "-".into()),
        _ => parts.map(|_| "?".into()),
    }
}

/// `12.5 %`, rounded down.
pub(super) fn percent(part: &str, whole: &str) -> String {
    match (billionths(part), billionths(whole)) {
        (Some(0), _) => "-".into(),
        (Some(part), Some(whole)) if whole > 0 => match part.checked_mul(1000) {
            Some(part) => permille(part / whole),
            None => permille(part / (whole / 1000).max(1)),
        },
        _ => "?".into(),
    }
}

pub(super) fn permille(permille: u128) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

/// A fraction in 2^20 steps, at least 1 if it is not zero.
pub(super) fn scaled(part: u128, whole: u128) -> u64 {
    const STEPS: u128 = 1 << 20;
    // Avoids an overflow; a bar would not show the lost digits.
    let shift = (128 - whole.leading_zeros()).saturating_sub(100);
    let steps = (part >> shift) * STEPS / (whole >> shift).max(1);
    u64::try_from(steps.min(STEPS)).unwrap_or(0).max(u64::from(part > 0))
}

/// The width of bars; `None` without a terminal.
pub(super) fn bar_width() -> Option<usize> {
    term::screen().map(|(width, _)| if width >= 100 { 16 } else { 8 })
}

/// A bar relative to the largest amount.
pub(super) fn small_bar(part: u128, largest: u128) -> String {
    bar_width().map_or_else(String::new, |width| fine_bar(scaled(part, largest), 1 << 20, width))
}

/// The number of decimals of a currency, as in ISO 4217.
fn decimals(currency: &str) -> u32 {
    match currency {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "UYI" | "VND"
        | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        "CLF" | "UYW" => 4,
        _ => 2,
    }
}

/// Amounts of money with the decimals of their currency: `1,234.50`. Those of one currency are rounded so that they add
/// up to their total, which is rounded half to even.
pub(super) fn money_together(amounts: &[(&str, &str)]) -> Vec<String> {
    let mut shown: Vec<String> = amounts.iter().map(|(amount, _)| (*amount).to_owned()).collect();
    let mut currencies: Vec<&str> = amounts.iter().map(|(_, currency)| *currency).collect();
    currencies.sort_unstable();
    currencies.dedup();
    for currency in currencies {
        let places: Vec<usize> = (0..amounts.len()).filter(|place| amounts[*place].1 == currency).collect();
        let all: Option<Vec<u128>> = places.iter().map(|place| billionths(amounts[*place].0)).collect();
        // An amount that cannot be read is shown as it is.
        let Some(all) = all else { continue };
        let decimals = decimals(currency);
        for (place, steps) in places.into_iter().zip(round_together(&all, 10u128.pow(9 - decimals))) {
            shown[place] = in_steps(steps, decimals);
        }
    }
    shown
}

fn in_steps(steps: u128, decimals: u32) -> String {
    numbers::decimal(steps, 10u128.pow(decimals), decimals)
}

/// One amount with the decimals of its currency. What is too small for them is shown as `<0.01`.
pub(super) fn one_amount(amount: &str, currency: &str) -> String {
    let smallest = 10u128.pow(9 - decimals(currency));
    match billionths(amount) {
        Some(billionths @ 1..) if billionths * 2 <= smallest => format!("<{}", in_steps(1, decimals(currency))),
        _ => money_together(&[(amount, currency)]).remove(0),
    }
}

/// A price with at least the decimals of its currency: `2` is shown as `2.00`, `0.1/d` as `0.10/d`, and `0.0005` stays.
pub(super) fn price(text: &str, currency: &str) -> String {
    let (number, period) = text.split_at(text.find('/').unwrap_or(text.len()));
    let decimals = decimals(currency) as usize;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    match decimals.max(part.len()) {
        0 => format!("{whole}{period}"),
        places => format!("{whole}.{part:0<places$}{period}"),
    }
}

/// One amount per currency: `12.50 EUR, 3.00 CHF`.
pub(super) fn money<'a>(amounts: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let shown = |(amount, currency): (&str, &str)| format!("{} {currency}", one_amount(amount, currency));
    let all: Vec<String> = amounts.into_iter().map(shown).collect();
    if all.is_empty() { "0".into() } else { all.join(", ") }
}

pub(super) fn amounts(all: &[Amount]) -> String {
    money(all.iter().map(|one| (one.amount.as_str(), one.currency.as_str())))
}

/// A quantity as people write it: `634/7` is shown as `90.57`, rounded down; a part of a unit such as `3/7` stays.
pub(super) fn quantity(text: &str) -> String {
    let parts = text.split_once('/').and_then(|(a, b)| Some((a.parse::<u128>().ok()?, b.parse::<u128>().ok()?)));
    match parts {
        Some((numerator, denominator @ 1..=1_000_000_000_000)) if numerator > denominator => {
            numbers::decimal(numerator, denominator, 2)
        }
        _ => text.to_owned(),
    }
}

/// The value of a line in one dimension.
pub(super) fn field(of: &Of, name: &str) -> Option<String> {
    match Group::from_word(name)? {
        Group::Tenant => of.tenant.clone(),
        Group::Project => of.project.clone(),
        Group::User => of.user.clone(),
        Group::Pool => of.pool.clone(),
        Group::Node => of.node.clone(),
        Group::Priority => of.priority.map(super::details::word),
        Group::Tag => of.accounting_tag.clone(),
        Group::Allocation => of.allocation.clone(),
        Group::AppInstance => of.app_instance.clone(),
        Group::Workload => of.workload.clone(),
        Group::HeldAs => of.held_as.clone(),
        Group::ControlPlane => of.control_plane.map(|is| is.to_string()),
        Group::App => of.app.clone(),
        Group::OperatingMode => of.operating_mode.map(super::details::word),
        Group::ControlPlaneScope => of.control_plane_scope.map(super::details::word),
        Group::RuntimeBackend => of.runtime_backend.map(super::details::word),
        // What an app reported has a unit in place of a class.
        Group::Class => of.class.clone().or_else(|| of.usage_unit.clone()),
        Group::Kind => of.kind.clone(),
        Group::Tier => of.tier.clone(),
    }
}

/// The number of the object in one dimension.
fn id(of: &Of, name: &str) -> Option<u32> {
    match Group::from_word(name)? {
        Group::Tenant => of.tenant_id,
        Group::Project => of.project_id,
        Group::User => of.user_id,
        Group::Pool => of.pool_id,
        Group::Node => of.node_id,
        Group::Class => of.class_id.map(u32::from),
        Group::Priority
        | Group::Tag
        | Group::Allocation
        | Group::AppInstance
        | Group::Workload
        | Group::HeldAs
        | Group::App
        | Group::OperatingMode
        | Group::ControlPlaneScope
        | Group::RuntimeBackend
        | Group::ControlPlane
        | Group::Kind
        | Group::Tier => None,
    }
}

/// The headings of the numbers of objects in a CSV file, for those columns that have one.
pub(super) fn id_columns(columns: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    let ids = [
        ("tenant", "tenant_id"),
        ("project", "project_id"),
        ("user", "user_id"),
        ("pool", "pool_id"),
        ("node", "node_id"),
        ("class", "class_id"),
    ];
    ids.into_iter().filter(|(name, _)| columns.contains(name)).collect()
}

/// The cells for these headings.
pub(super) fn ids<'a>(of: &'a Of, columns: &'a [(&'static str, &'static str)]) -> impl Iterator<Item = String> + 'a {
    columns.iter().map(|(name, _)| id(of, name).map_or_else(String::new, |id| id.to_string()))
}

/// Names that several objects of a report have, for instance a project and a deleted one before it.
pub(super) struct SharedNames(BTreeMap<(&'static str, String), BTreeSet<Option<u32>>>);

impl SharedNames {
    pub(super) fn of<'a>(columns: &[&'static str], lines: impl Iterator<Item = &'a Of> + Clone) -> Self {
        let mut all: BTreeMap<(&'static str, String), BTreeSet<Option<u32>>> = BTreeMap::new();
        for name in columns {
            for of in lines.clone() {
                if let Some(text) = field(of, name) {
                    all.entry((name, text)).or_default().insert(id(of, name));
                }
            }
        }
        all.retain(|_, ids| ids.len() > 1);
        Self(all)
    }

    /// The name of an object, with its number if another one has the same name.
    pub(super) fn field(&self, of: &Of, name: &'static str) -> Option<String> {
        let text = field(of, name)?;
        match id(of, name).filter(|_| self.0.contains_key(&(name, text.clone()))) {
            Some(id) => Some(format!("{text} (number {id})")),
            None => Some(text),
        }
    }
}

/// The columns: the requested dimensions in their order, then those that the daemon added.
pub(super) fn columns<'a>(by: &[String], lines: impl Iterator<Item = &'a Of> + Clone) -> Vec<&'static str> {
    let mut columns: Vec<&'static str> = Vec::new();
    for name in by {
        columns.extend(Group::from_word(name).map(Group::word).filter(|field| !columns.contains(field)));
    }
    for name in Group::ALL.iter().map(|group| group.word()) {
        if !columns.contains(&name) && lines.clone().any(|of| field(of, name).is_some()) {
            columns.push(name);
        }
    }
    columns
}

/// The columns for people: kind and tier follow from the class and are omitted unless requested.
pub(super) fn shown<'a>(by: &[String], lines: impl Iterator<Item = &'a Of> + Clone) -> Vec<&'static str> {
    let mut all = columns(by, lines);
    if all.contains(&"class") {
        all.retain(|name| !matches!(*name, "kind" | "tier") || by.iter().any(|asked| asked == name));
    }
    all
}

/// Whether the lines have different time buckets.
pub(super) fn is_cut<'a>(mut lines: impl Iterator<Item = &'a Stretch>) -> bool {
    let first = lines.next();
    lines.any(|line| Some(line) != first)
}

/// Prints up to which time the figures are complete.
pub(super) fn say_as_of(as_of: When, as_of_size: u64, stretch: &Stretch) {
    let second = crate::time_format::to_the_second;
    let (as_of, from, to) = (second(as_of), second(stretch.from), second(stretch.to));
    term::say(&format!("leasehold: as of {as_of}, journal size {as_of_size}, from {from} to {to}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_adds_up() {
        let lines = [("0.333333", "EUR"), ("0.333333", "EUR"), ("0.333334", "EUR"), ("5.4", "JPY"), ("5.4", "JPY")];
        assert_eq!(money_together(&lines), ["0.33", "0.33", "0.34", "6", "5"]);
        assert_eq!(money([("1.000000", "EUR")]), "1.00 EUR", "the total");
        assert_eq!(percents(["1.0", "1.0", "1.0"]), ["33.4 %", "33.3 %", "33.3 %"]);
        assert_eq!(percents(["0.0", "2.0"]), ["-", "100.0 %"]);
        assert_eq!(percents(["0.0", "0.0"]), ["-", "-"]);
    }

    #[test]
    fn prices_have_the_decimals_of_their_currency() {
        let shown = ["2", "2.5/h", "0.1/d", "0.0005", "0.010"].map(|text| price(text, "EUR"));
        assert_eq!(shown, ["2.00", "2.50/h", "0.10/d", "0.0005", "0.010"]);
        assert_eq!([price("300", "JPY"), price("0.5/h", "JPY"), price("2", "KWD")], ["300", "0.5/h", "2.000"]);
        assert_eq!([one_amount("20.3", "EUR"), one_amount("0.001", "EUR")], ["20.30", "<0.01"]);
    }

    #[test]
    fn figures_are_read_without_floats() {
        assert_eq!(billionths("12.5"), Some(12_500_000_000));
        assert_eq!(billionths("7"), Some(7_000_000_000));
        for text in ["", "-1", "1.0000000001", "1.+5", "x", "999999999999999999999999999999999999999"] {
            assert_eq!(billionths(text), None, "{text}");
        }
        let hours = Scale::of(["45000.000000000", "7.2"]);
        assert_eq!([hours.show("45000.000000000", "GPU"), hours.show("7.2", "GPU")], ["12.50 GPU-h", "<0.01 GPU-h"]);
        let seconds = Scale::of(["0.000000000", "7.219999999"]);
        assert_eq!(
            [seconds.show("7.219999999", "GPU"), seconds.show("0.000000000", "core")],
            ["7.21 GPU-s", "0 core-s"]
        );
        let beyond = "999999999999999999999999999999999999999.0";
        assert_eq!(Scale::of([beyond]).show(beyond, "GiB"), format!("{beyond} GiB-s"));
        assert_eq!([percent("1.0", "8.0"), percent("0.0", "8.0"), percent("8.0", "8.0")], ["12.5 %", "-", "100.0 %"]);
        assert_eq!(money([("3.000000", "EUR"), ("0.000001", "CHF")]), "3.00 EUR, <0.01 CHF");
        assert_eq!(money([("1234.500000", "JPY"), ("1.000500000", "KWD")]), "1,234 JPY, 1.000 KWD");
        assert_eq!([quantity("634/7"), quantity("1/7"), quantity("8")], ["90.57", "1/7", "8"]);
        assert_eq!((scaled(1, 2), scaled(0, 0), scaled(u128::MAX / 2, u128::MAX)), (1 << 19, 0, (1 << 19) - 1));
    }
}
