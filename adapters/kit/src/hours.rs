//! Hours as decimals with nine places, which is what a usage record takes. No float is involved.

/// Decimals of a quantity.
const PLACES: u32 = 9;

/// `amount / per` as hours, where `amount` is in units of which `per` make an hour. Rounded half up at the ninth decimal,
/// so that the error is less than two microseconds. `None` if it is too large for a quantity.
pub fn hours(amount: u128, per: u128) -> Option<String> {
    let scale = 10u128.pow(PLACES);
    let scaled = amount.checked_mul(scale)?.checked_add(per / 2)? / per;
    let (whole, rest) = (scaled / scale, scaled % scale);
    let rest = format!("{rest:09}");
    let rest = rest.trim_end_matches('0');
    Some(if rest.is_empty() { whole.to_string() } else { format!("{whole}.{rest}") })
}

#[cfg(test)]
mod tests {
    use super::hours;

    #[test]
    fn seconds_become_hours_with_nine_decimals() {
        for (seconds, expected) in [
            (0, "0"),
            (1, "0.000277778"),
            (2, "0.000555556"),
            (5, "0.001388889"),
            (1800, "0.5"),
            (3600, "1"),
            (5400, "1.5"),
            (86_400 * 366 * 64, "562176"),
        ] {
            assert_eq!(hours(seconds, 3600).as_deref(), Some(expected), "{seconds} s");
        }
        assert_eq!(hours(1, 3_600_000).as_deref(), Some("0.000000278"));
        assert_eq!(hours(u128::MAX, 3600), None);
    }
}
