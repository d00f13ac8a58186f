//! The load by hour and day of the week (UTC), in percent of the busiest hour.

use leasehold_model::Instant;

pub(super) const HOUR_NS: u64 = 3_600_000_000_000;
pub(super) const DAY_NS: u64 = 24 * HOUR_NS;

/// The load of a working day, by hour.
const HOURS: [u64; 24] = [
    45, 40, 40, 40, 40, 40, 45, 55, 75, 100, 100, 100, //
    85, 100, 100, 100, 100, 95, 80, 70, 60, 55, 50, 50,
];
/// The load on Saturdays and Sundays, in percent of a working day.
const WEEKEND: u64 = 60;

/// The load at an instant; never zero.
pub(super) fn percent(at: Instant) -> u64 {
    let hour = usize::try_from(at.0 % DAY_NS / HOUR_NS).expect("below 24");
    let of_day = HOURS[hour];
    if is_weekend(at) { of_day * WEEKEND / 100 } else { of_day }
}

fn is_weekend(at: Instant) -> bool {
    // 1 January 1970 was a Thursday; day 0 is Monday here.
    let day = (at.0 / DAY_NS + 3) % 7;
    day >= 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nights_and_weekends_are_quiet() {
        let at = |text: &str| percent(text.parse::<leasehold_api::When>().expect("an instant").0);
        assert_eq!(at("2025-11-14T10:30:00Z"), 100, "a Friday");
        assert_eq!(at("2025-11-15T10:30:00Z"), 60, "a Saturday");
        assert_eq!(at("2025-11-16T03:00:00Z"), 24, "a Sunday night");
        assert_eq!(at("2025-11-17T03:00:00Z"), 40, "a Monday");
    }
}
