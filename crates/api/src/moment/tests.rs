use super::*;

/// A Thursday; in Tallinn 15:14:15.5, in Los Angeles 05:14:15.5.
const NOW: &str = "2026-01-15T13:14:15.5Z";

fn now() -> Instant {
    NOW.parse::<When>().expect("an instant").0
}

fn zone(name: &str) -> Zone {
    name.parse().expect("a zone")
}

fn resolved(text: &str, zone_name: &str, toward: Toward) -> Result<String, String> {
    let moment: Moment = text.parse().map_err(|bad: BadMoment| bad.to_string())?;
    moment.instant(now(), &zone(zone_name), toward).map(|at| at.to_string()).map_err(|bad| bad.to_string())
}

#[test]
fn times_are_written_in_many_ways() {
    use Toward::{Future, Past};
    for (text, zone, toward, expected) in [
        ("now", "UTC", Past, NOW),
        ("today", "UTC", Past, "2026-01-15T00:00:00Z"),
        ("today", "Europe/Tallinn", Past, "2026-01-14T22:00:00Z"),
        ("yesterday", "UTC", Past, "2026-01-14T00:00:00Z"),
        ("tomorrow", "Europe/Tallinn", Future, "2026-01-15T22:00:00Z"),
        ("week", "UTC", Past, "2026-01-12T00:00:00Z"),
        ("last-week", "UTC", Past, "2026-01-05T00:00:00Z"),
        ("last-week", "America/Los_Angeles", Past, "2026-01-05T08:00:00Z"),
        ("next-week", "UTC", Future, "2026-01-19T00:00:00Z"),
        ("month", "UTC", Past, "2026-01-01T00:00:00Z"),
        ("last-month", "Europe/Tallinn", Past, "2025-11-30T22:00:00Z"),
        ("next-month", "UTC", Future, "2026-02-01T00:00:00Z"),
        ("2025-02", "UTC", Past, "2025-02-01T00:00:00Z"),
        ("7d", "UTC", Past, "2026-01-08T13:14:15.5Z"),
        ("7d", "UTC", Future, "2026-01-22T13:14:15.5Z"),
        ("1w", "UTC", Past, "2026-01-08T13:14:15.5Z"),
        ("1w2d", "UTC", Past, "2026-01-06T13:14:15.5Z"),
        ("1h30m", "UTC", Past, "2026-01-15T11:44:15.5Z"),
        // The last Friday and the next one; today is a Thursday.
        ("friday", "UTC", Past, "2026-01-09T00:00:00Z"),
        ("friday", "UTC", Future, "2026-01-16T00:00:00Z"),
        ("Friday", "UTC", Past, "2026-01-09T00:00:00Z"),
        ("thursday", "UTC", Past, "2026-01-15T00:00:00Z"),
        ("thursday", "UTC", Future, "2026-01-22T00:00:00Z"),
        ("thursday 12:00", "UTC", Past, "2026-01-15T12:00:00Z"),
        ("thursday 14:00", "UTC", Past, "2026-01-08T14:00:00Z"),
        ("thursday 14:00", "UTC", Future, "2026-01-15T14:00:00Z"),
        ("thursday 12:00", "UTC", Future, "2026-01-22T12:00:00Z"),
        ("yesterday 14:03", "Europe/Tallinn", Past, "2026-01-14T12:03:00Z"),
        ("2025-02-28", "UTC", Past, "2025-02-28T00:00:00Z"),
        ("2025-02-28T01:02:03.25Z", "Europe/Tallinn", Past, "2025-02-28T01:02:03.25Z"),
        ("2025-02-28T01:02Z", "Europe/Tallinn", Past, "2025-02-28T01:02:00Z"),
        ("2025-02-28T01:02", "UTC", Past, "2025-02-28T01:02:00Z"),
        ("2025-02-28t01:02", "UTC", Past, "2025-02-28T01:02:00Z"),
        ("2025-02-28 01:02", "UTC", Past, "2025-02-28T01:02:00Z"),
        ("2025-02-28 01:02:03", "Europe/Tallinn", Past, "2025-02-27T23:02:03Z"),
        ("2025-07-28 01:02:03.000000001", "Europe/Tallinn", Past, "2025-07-27T22:02:03.000000001Z"),
        ("2026-01-15T13:14:15+02:00", "UTC", Past, "2026-01-15T11:14:15Z"),
        ("2026-01-15 13:14-07:30", "Europe/Tallinn", Past, "2026-01-15T20:44:00Z"),
        // Clocks go forward at midnight: the day begins at one.
        ("2025-04-25", "Africa/Cairo", Past, "2025-04-24T22:00:00Z"),
    ] {
        assert_eq!(resolved(text, zone, toward), Ok(expected.to_owned()), "{text} in {zone}, {toward:?}");
    }
}

#[test]
fn what_is_not_a_time_is_refused() {
    for text in [
        "",
        " ",
        "tomorow",
        "2025-02-29",
        "2025-13",
        "2026-1-1",
        "7",
        "-7d",
        "w",
        "1ww",
        "-1w",
        "+1w",
        "99999999999w",
        "2025-02-28T24:00",
        "2025-02-28T01:60",
        "2025-02-28T01:02:60",
        "2025-02-28T01",
        "2025-02-28T01:02:03.",
        "2025-02-28T01:02:03.0000000001",
        "2025-02-28T01:02:03+2:00",
        "2025-02-28T01:02:03+24:00",
        "2025-02-28  01:02",
        "2025-02-28T",
        "friday 25:00",
        "friday 12:00Z",
        "fridayT12:00",
        "1969-12-31T23:59:59Z",
        "２026-01-01",
    ] {
        assert!(text.parse::<Moment>().is_err(), "{text:?}");
    }
    let error = "tomorow".parse::<Moment>().expect_err("not a time").to_string();
    assert!(error.starts_with("`tomorow` is not a time; expected 2026-11-10, 2026-11-10T14:03"), "{error}");
}

#[test]
fn times_beyond_the_clock_are_refused() {
    for text in ["1969-12-31", "2600-01-01", "9999-12-31"] {
        let refused = resolved(text, "UTC", Toward::Past).expect_err(text);
        assert_eq!(refused, format!("`{text}` is outside the supported range, which is 1970 to 2554"));
    }
    // Before 1970 began in UTC, but not in New York.
    assert_eq!(resolved("1969-12-31 20:00", "America/New_York", Toward::Past), Ok("1970-01-01T01:00:00Z".into()));
    assert!(resolved("30000w", "UTC", Toward::Future).is_err());
    assert_eq!(resolved("30000w", "UTC", Toward::Past), Ok("1970-01-01T00:00:00Z".into()));
}

#[test]
fn times_that_do_not_exist_or_exist_twice_are_refused() {
    assert_eq!(
        resolved("2026-03-29T03:30", "Europe/Tallinn", Toward::Past),
        Err("`2026-03-29T03:30` does not exist in Europe/Tallinn, because clocks are set forward then; give another \
             time"
            .into())
    );
    assert_eq!(
        resolved("2026-10-25T03:30", "Europe/Tallinn", Toward::Past),
        Err("`2026-10-25T03:30` exists twice in Europe/Tallinn, because clocks are set back then; append the offset, \
             +03:00 or +02:00"
            .into())
    );
    for (text, expected) in
        [("2026-10-25T03:30+03:00", "2026-10-25T00:30:00Z"), ("2026-10-25T03:30+02:00", "2026-10-25T01:30:00Z")]
    {
        assert_eq!(resolved(text, "Europe/Tallinn", Toward::Past), Ok(expected.to_owned()));
    }
}

#[test]
fn days_weeks_and_months_are_periods() {
    let period = |text: &str, in_zone: &str, toward| {
        let moment: Moment = text.parse().expect(text);
        let period = moment.period(now(), &zone(in_zone), toward);
        period.map(|(from, to)| format!("{from} {to}")).map_err(|bad| bad.to_string())
    };
    for (text, zone, toward, expected) in [
        ("yesterday", "UTC", Toward::Past, "2026-01-14T00:00:00Z 2026-01-15T00:00:00Z"),
        ("today", "UTC", Toward::Past, "2026-01-15T00:00:00Z 2026-01-16T00:00:00Z"),
        ("last-week", "UTC", Toward::Past, "2026-01-05T00:00:00Z 2026-01-12T00:00:00Z"),
        ("last-month", "Europe/Tallinn", Toward::Past, "2025-11-30T22:00:00Z 2025-12-31T22:00:00Z"),
        ("friday", "UTC", Toward::Past, "2026-01-09T00:00:00Z 2026-01-10T00:00:00Z"),
        ("friday", "UTC", Toward::Future, "2026-01-16T00:00:00Z 2026-01-17T00:00:00Z"),
        ("2026-02", "UTC", Toward::Past, "2026-02-01T00:00:00Z 2026-03-01T00:00:00Z"),
        ("2026-01-31", "UTC", Toward::Past, "2026-01-31T00:00:00Z 2026-02-01T00:00:00Z"),
        ("7d", "UTC", Toward::Past, "2026-01-08T13:14:15.5Z 2026-01-15T13:14:15.5Z"),
        ("7d", "UTC", Toward::Future, "2026-01-15T13:14:15.5Z 2026-01-22T13:14:15.5Z"),
        // Days of 23 and 25 hours.
        ("2026-03-29", "Europe/Tallinn", Toward::Past, "2026-03-28T22:00:00Z 2026-03-29T21:00:00Z"),
        ("2026-10-25", "Europe/Tallinn", Toward::Past, "2026-10-24T21:00:00Z 2026-10-25T22:00:00Z"),
    ] {
        assert_eq!(period(text, zone, toward), Ok(expected.to_owned()), "{text}");
    }
    for text in ["now", "2026-01-15T13:14:15Z", "2026-01-15 13:14", "friday 18:00"] {
        let error = period(text, "UTC", Toward::Past).expect_err(text);
        assert!(error.contains("is a point in time, not a period"), "{error}");
    }
    assert!(period("2554-07", "UTC", Toward::Past).is_err(), "the month ends after the last instant");
}

#[test]
fn zones_have_iana_names() {
    assert_eq!(zone("europe/tallinn").to_string(), "Europe/Tallinn");
    assert_eq!(Zone::default().to_string(), "UTC");
    for name in ["", "Tallin", "local", "+02:00"] {
        assert!(name.parse::<Zone>().is_err(), "{name}");
    }
    let noon: When = "2026-07-15T12:00:00.5Z".parse().expect("an instant");
    assert_eq!(zone("Europe/Tallinn").local(noon.0), "2026-07-15T15:00:00+03:00");
    assert_eq!(zone("America/St_Johns").local(noon.0), "2026-07-15T09:30:00-02:30");
    assert_eq!(zone("UTC").local(noon.0), "2026-07-15T12:00:00Z");
    assert_eq!(zone("Asia/Tokyo").date(Instant(noon.0.0 + 4 * 3_600_000_000_000)), "2026-07-16");
}

proptest::proptest! {
    /// Every instant that the daemon prints is a time that it accepts, and means the same in every zone.
    #[test]
    fn printed_instants_are_accepted(ns in proptest::prelude::any::<u64>()) {
        let text = Instant(ns).to_string();
        let moment: Moment = text.parse().expect("an instant");
        for name in ["UTC", "Europe/Tallinn"] {
            proptest::prop_assert_eq!(moment.instant(now(), &zone(name), Toward::Past), Ok(Instant(ns)));
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in ".{0,24}") {
        if let Ok(moment) = text.parse::<Moment>() {
            let _ = moment.instant(now(), &zone("Europe/Tallinn"), Toward::Future);
            let _ = moment.period(now(), &zone("Europe/Tallinn"), Toward::Past);
        }
    }
}
