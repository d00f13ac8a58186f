//! Times, weights and limits as stories write them.

use super::world::name;
use leasehold_model::{Instant, LimitKind, Name, Weights};
use std::collections::BTreeMap;

/// Instants as a story writes them.
pub(super) fn read_time(text: &str) -> (Instant, bool) {
    let fraction = |text: &str| -> u64 {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let whole: u64 = whole.parse().expect("seconds");
        let nanos: u64 = format!("{decimals:0<9}").parse().expect("decimals");
        whole * 1_000_000_000 + nanos
    };
    let parts: Vec<&str> = text.split(':').collect();
    let hours = |part: &str| part.parse::<u64>().expect("a clock");
    match parts.as_slice() {
        [seconds] => (Instant(fraction(seconds)), false),
        [h, m] => (Instant::from_secs(hours(h) * 3600 + hours(m) * 60), true),
        [h, m, s] => (Instant(Instant::from_secs(hours(h) * 3600 + hours(m) * 60).0 + fraction(s)), true),
        _ => panic!("`{text}` is no time"),
    }
}

/// `500,200,200,100`, in thousandths; `-` for those of the strategy.
pub(super) fn weights(text: &str) -> Option<Weights> {
    let parts: Vec<u16> = text.split(',').filter_map(|part| part.parse().ok()).collect();
    let [pressure, fit, locality, fragmentation] = parts[..] else { return None };
    Some(Weights { pressure, fit, locality, fragmentation })
}

/// `hard=10`, `soft=10`, or `burst=10..15/60s`: from base to ceiling for one episode.
pub(super) fn limit(options: &BTreeMap<&str, &str>) -> LimitKind {
    let number = |text: &str| text.parse().expect("a limit");
    if let Some(limit) = options.get("hard") {
        return LimitKind::Hard { limit: number(limit) };
    }
    if let Some(limit) = options.get("soft") {
        return LimitKind::Soft { limit: number(limit) };
    }
    let (limits, ttl) = options["burst"].split_once('/').expect("a burst");
    let (limit, burst_limit) = limits.split_once("..").expect("base and ceiling");
    LimitKind::Burst { limit: number(limit), burst_limit: number(burst_limit), burst_ttl: ttl.parse().expect("a span") }
}

/// `ssd,gpu:h100`; what has no value has `yes`.
pub(super) fn labels(all: Option<&&str>) -> Vec<(Name, Name)> {
    let pairs = all.into_iter().flat_map(|all| all.split(','));
    let pairs = pairs.map(|label| label.split_once(':').unwrap_or((label, "yes")));
    pairs.map(|(key, value)| (name(key), name(value))).collect()
}
