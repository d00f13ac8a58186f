//! Formats numbers for people. Only integers are used; what is rounded is rounded down.

/// `12,345`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 lease`, `2 leases`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// `numerator / denominator` with `places` decimals, rounded down.
pub fn decimal(numerator: u128, denominator: u128, places: u32) -> String {
    let scale = 10u128.pow(places);
    let (whole, rest) = (numerator / denominator, numerator % denominator);
    let whole = thousands(u64::try_from(whole).unwrap_or(u64::MAX));
    if places == 0 {
        return whole;
    }
    // No overflow: the rest is smaller than the denominator, which is at most 2^32 × 10^13.
    let decimals = rest * scale / denominator;
    format!("{whole}.{decimals:0width$}", width = places as usize)
}

/// `1.9 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{} {unit}", decimal(bytes.into(), (*size).into(), 1)),
        None => format!("{bytes} B"),
    }
}

/// `1.94 ms`, from nanoseconds.
pub fn latency(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1000),
        1_000_000..1_000_000_000 => format!("{} ms", decimal(ns.into(), 1_000_000, 2)),
        _ => format!("{} s", decimal(ns.into(), 1_000_000_000, 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!([0, 1, 2, 1000].map(|n| counted(n, "lease")), ["0 leases", "1 lease", "2 leases", "1,000 leases"]);
        assert_eq!(decimal(22, 7, 3), "3.142");
        assert_eq!(decimal(7_000, 2, 0), "3,500");
        assert_eq!(bytes(1_999_999), "1.9 MiB");
        assert_eq!(bytes(12), "12 B");
        assert_eq!(latency(1_940_000), "1.94 ms");
        assert_eq!(latency(940_000), "940 µs");
    }
}
