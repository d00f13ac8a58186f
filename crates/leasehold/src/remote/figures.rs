//! Formats figures of reports. They are decimal texts and are never converted to floating point.

use crate::numbers;
use crate::term::{self, fine_bar};
use leasehold_api::{Amount, Of, Stretch, When};
use leasehold_model::Group;

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

/// Formats money with two to six decimals, as many as the amounts of a table need, so that sums are exact.
pub(super) struct MoneyFormat(usize);

impl MoneyFormat {
    pub(super) fn of<'a>(amounts: impl IntoIterator<Item = &'a str>) -> Self {
        let needed = |text: &str| {
            let decimals = text.split_once('.').map_or("", |(_, decimals)| decimals);
            decimals.trim_end_matches('0').len()
        };
        Self(amounts.into_iter().map(needed).max().unwrap_or(0).max(2))
    }

    /// `1,234.50`.
    pub(super) fn show(&self, amount: &str) -> String {
        let (whole, decimals) = amount.split_once('.').unwrap_or((amount, ""));
        let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
        let whole = digits.parse().map_or_else(|_| digits.to_owned(), numbers::thousands);
        format!("{sign}{whole}.{:0<width$.width$}", decimals, width = self.0)
    }
}

/// One amount per currency: `12.50 EUR, 3.00 CHF`.
pub(super) fn money<'a>(amounts: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let shown = |(amount, currency): (&str, &str)| format!("{} {currency}", MoneyFormat::of([amount]).show(amount));
    let all: Vec<String> = amounts.into_iter().map(shown).collect();
    if all.is_empty() { "0".into() } else { all.join(", ") }
}

pub(super) fn amounts(all: &[Amount]) -> String {
    money(all.iter().map(|one| (one.amount.as_str(), one.currency.as_str())))
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
        Group::Class => of.class.clone(),
        Group::Kind => of.kind.clone(),
        Group::Tier => of.tier.clone(),
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
        let format = MoneyFormat::of(["1234.500000", "0.125000"]);
        assert_eq!([format.show("1234.500000"), format.show("0.125000")], ["1,234.500", "0.125"]);
        assert_eq!(money([("3.000000", "EUR"), ("0.000001", "CHF")]), "3.00 EUR, 0.000001 CHF");
        assert_eq!((scaled(1, 2), scaled(0, 0), scaled(u128::MAX / 2, u128::MAX)), (1 << 19, 0, (1 << 19) - 1));
    }
}
