//! Buckets in time zones.

use leasehold_books::{BadBuckets, Bucket, Buckets, month_of};
use leasehold_meter::Window;
use leasehold_model::Instant;

const HOUR: u64 = 3600;

/// Splits a window of seconds; returns the lengths of the buckets, in seconds.
fn lengths(bucket: Bucket, zone: Option<&str>, from: u64, to: u64) -> Vec<u64> {
    let window = Window::new(Instant::from_secs(from), Instant::from_secs(to));
    let borders = Buckets::new(bucket, zone).expect("a zone").borders(window).expect("not too many");
    assert_eq!((borders[0], borders[borders.len() - 1]), (window.from, window.to));
    assert!(borders.is_sorted_by(|a, b| a < b), "{borders:?}");
    borders.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect()
}

#[test]
fn days_of_23_and_of_25_hours() {
    // 2026-03-28T00:00+02:00 to 2026-03-31T00:00+03:00: the 29th has 23 hours.
    let day = |hours: &[u64]| hours.iter().map(|hours| hours * HOUR).collect::<Vec<_>>();
    assert_eq!(lengths(Bucket::Day, Some("Europe/Tallinn"), 1_774_648_800, 1_774_904_400), day(&[24, 23, 24]));
    // 2026-10-24T00:00+03:00 to 2026-10-27T00:00+02:00: the 25th has 25.
    assert_eq!(lengths(Bucket::Day, Some("Europe/Tallinn"), 1_792_789_200, 1_793_052_000), day(&[24, 25, 24]));
    // Hours are hours, on both.
    assert_eq!(lengths(Bucket::Hour, Some("Europe/Tallinn"), 1_774_735_200, 1_774_818_000), vec![HOUR; 23]);
    assert_eq!(lengths(Bucket::Hour, Some("Europe/Tallinn"), 1_792_875_600, 1_792_965_600), vec![HOUR; 25]);
}

/// Samoa had no 30 December 2011.
#[test]
fn a_day_that_never_was() {
    // 2011-12-28T00:00-10:00 to 2012-01-02T00:00+14:00.
    let days = lengths(Bucket::Day, Some("Pacific/Apia"), 1_325_066_400, 1_325_412_000);
    assert_eq!(days, [24 * HOUR; 4], "28, 29, 31 December and 1 January");
    let months = lengths(Bucket::Month, Some("Pacific/Apia"), 1_325_066_400, 1_325_412_000);
    assert_eq!(months, [3 * 24 * HOUR, 24 * HOUR]);
}

/// On Lord Howe Island clocks go back by half an hour: one bucket of an hour and a half, or two of which one is short,
/// but never one without an end.
#[test]
fn half_hours_of_daylight_saving() {
    // 2026-04-04T13:00Z to 18:00Z; at 15:00Z +11:00 becomes +10:30.
    let hours = lengths(Bucket::Hour, Some("Australia/Lord_Howe"), 1_775_307_600, 1_775_325_600);
    assert_eq!(hours.iter().sum::<u64>(), 5 * HOUR);
    assert!(hours.iter().all(|length| (HOUR / 2..=HOUR * 3 / 2).contains(length)), "{hours:?}");
    // 2026-10-03T13:00Z to 18:00Z; at 15:30Z it is +11:00 again.
    let hours = lengths(Bucket::Hour, Some("Australia/Lord_Howe"), 1_791_032_400, 1_791_050_400);
    assert_eq!(hours.iter().sum::<u64>(), 5 * HOUR);
    assert!(hours.iter().all(|length| (HOUR / 2..=HOUR * 3 / 2).contains(length)), "{hours:?}");
}

#[test]
fn months_of_utc_with_a_leap_day() {
    // 2028-01-31T23:00Z to 2028-03-01T01:00Z.
    assert_eq!(lengths(Bucket::Month, None, 1_832_972_400, 1_835_485_200), [HOUR, 29 * 24 * HOUR, HOUR]);
    let february = month_of(Instant::from_secs(1_833_000_000), None).expect("a month");
    assert_eq!((february.length().as_secs(), february.from), (29 * 24 * HOUR, Instant::from_secs(1_832_976_000)));
    assert_eq!(month_of(february.from, None), Ok(february));
    assert_eq!(month_of(Instant(february.from.0 - 1), None).expect("a month").to, february.from);
    // As Tallinn counts, it begins two hours earlier.
    let there = month_of(Instant::from_secs(1_833_000_000), Some("Europe/Tallinn")).expect("a month");
    assert_eq!(there.from, Instant::from_secs(1_832_976_000 - 2 * HOUR));
}

#[test]
fn ends_that_are_no_borders() {
    assert_eq!(lengths(Bucket::Minute, None, 30, 150), [30, 60, 30]);
    assert_eq!(lengths(Bucket::Minute, None, 60, 120), [60]);
    let nanos = Window::new(Instant(59_999_999_999), Instant(60_000_000_001));
    let borders = Buckets::new(Bucket::Minute, None).expect("UTC").borders(nanos).expect("few");
    assert_eq!(borders, [nanos.from, Instant::from_secs(60), nanos.to]);
    // An offset of a quarter of an hour.
    assert_eq!(lengths(Bucket::Hour, Some("Asia/Kathmandu"), 0, 2 * HOUR).len(), 3);
    let empty = Window::new(Instant(5), Instant(5));
    assert_eq!(Buckets::new(Bucket::Day, None).expect("UTC").borders(empty), Ok(vec![Instant(5), Instant(5)]));
}

#[test]
fn what_cannot_be_cut_says_why() {
    assert_eq!(
        Buckets::new(Bucket::Day, Some("Mars/Olympus")).err(),
        Some(BadBuckets::UnknownZone("Mars/Olympus".to_owned()))
    );
    let century = Window::new(Instant(0), Instant::from_secs(3_000_000_000));
    assert_eq!(Buckets::new(Bucket::Minute, None).expect("UTC").borders(century), Err(BadBuckets::TooMany));
    let forever = Window::new(Instant(0), Instant::MAX);
    assert!(Buckets::new(Bucket::Month, None).expect("UTC").borders(forever).is_ok());
}
