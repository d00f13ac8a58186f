//! What records take on disk. The journal's cost, and how long a disk lasts, follow from these.

use crate::samples::{NEW_YEAR, granted, name};
use crate::sealing::bytes_on_disk;
use expect_test::expect;
use leasehold_model::body::{Body, Expired, Granted, Member, Released, Renewal, Renewed, Reported, ReportedLeases};
use leasehold_model::*;
use smallvec::smallvec;

/// A lifecycle record in a batch of its own may take this much.
const LIFECYCLE_BYTES_MAX: usize = 160;

const STAMP: Instant = Instant(NEW_YEAR.0 + 86_400_123_456_789);
const LEASE: LeaseNo = LeaseNo(654_321);

/// A record as a busy cluster makes them: 100 million records in, tenants and users in the 100,000s.
fn typical(body: impl Into<Body>) -> Record {
    let identity = Identity {
        tenant: Some(TenantNo(154_321)),
        project: Some(ProjectNo(223_456)),
        user: Some(UserNo(301_234)),
        workload: None,
        token: Some(TokenNo(412_345)),
    };
    Record { identity, ..Record::new(100_000_000, STAMP, body) }
}

fn with_key(mut record: Record) -> Record {
    let key = leasehold_model::Key::new(b"6f1c2f9e-97f2-4c0b-9f0e-6f8d4f1f7a11").expect("a key");
    assert_eq!(key.len(), 36);
    record.idempotency = Some(Idempotency { owner: record.identity.tenant, key, payload: [0xab; 16] });
    record
}

fn grant() -> Granted {
    // Eight whole GPUs of seven slices.
    let member = Member { class: ClassNo(3), quanta: Quanta(56), devices: 0xff };
    Granted { first_lease: LEASE, node: NodeNo(4_321), members: smallvec![member], ..granted() }
}

/// What the holder of eight GPUs reports after a minute, to the millisecond.
fn report_in_millis() -> Activity {
    Activity {
        covered: Span::from_secs(60),
        busy: 56 * 51_234 * 1_000_000,
        active: Span::from_millis(57_891),
        waiting: [Span::ZERO, Span::from_millis(1_234), Span::ZERO, Span::from_millis(456), Span::ZERO],
    }
}

/// The same to the nanosecond.
fn report_in_nanos() -> Activity {
    let coarse = report_in_millis();
    Activity {
        covered: Span(coarse.covered.0 + 123_457),
        busy: coarse.busy + 7_654_321,
        active: Span(coarse.active.0 + 654_321),
        waiting: coarse.waiting.map(|wait| if wait == Span::ZERO { wait } else { Span(wait.0 + 12_347) }),
    }
}

fn renewal(lease: LeaseNo, activity: Option<Activity>) -> Renewal {
    Renewal { lease, expires_at: STAMP.saturating_add(Span::from_secs(3600)), activity }
}

fn renew(activity: Option<Activity>) -> Renewed {
    Renewed { renewals: smallvec![renewal(LEASE, activity)] }
}

fn release(activity: Option<Activity>) -> Released {
    Released { leases: ReportedLeases(smallvec![Reported { lease: LEASE, activity }]), closed: false }
}

/// Noticed 1.234567 ms after the deadline; nobody asked, so only the tenant is named.
fn expire(leases: impl Iterator<Item = LeaseNo>) -> Record {
    let mut record = typical(Expired { leases: leases.collect(), closed: false, belongs_to: None });
    record.identity = Identity { tenant: record.identity.tenant, ..Identity::default() };
    record.effective_at = Instant(record.stamp.0 - 1_234_567);
    record
}

/// A thousand of a hundred thousand leases, spread at random but the same each time.
fn a_thousand_leases() -> Vec<LeaseNo> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut picked = std::collections::BTreeSet::new();
    while picked.len() < 1000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        picked.insert(LeaseNo(600_000 + (state >> 33) % 100_000));
    }
    picked.into_iter().collect()
}

fn renew_thousand(activity: impl Fn(u64) -> Option<Activity>) -> Record {
    let leases = (0u64..).zip(a_thousand_leases());
    typical(Renewed { renewals: leases.map(|(i, lease)| renewal(lease, activity(i))).collect() })
}

/// Reports differ from lease to lease, within what the first bytes of the sample have.
fn varied(report: Activity, i: u64, step: u64) -> Activity {
    let vary = |span: Span, by: u64| if span == Span::ZERO { span } else { Span(span.0 + i * by * step) };
    Activity {
        covered: report.covered,
        busy: report.busy + u128::from(i * 3 * step),
        active: vary(report.active, 1),
        waiting: report.waiting.map(|wait| vary(wait, 1)),
    }
}

fn table(rows: &[(&str, usize)]) -> String {
    rows.iter().map(|(what, bytes)| format!("{what}: {bytes}\n")).collect()
}

#[test]
fn lifecycle_records_stay_small() {
    let mut with_workload = with_key(typical(grant()));
    with_workload.identity.workload = Some(name("train-7b"));
    let with_correlation = Granted { correlation: Some(u128::MAX), ..grant() };
    let with_node = Granted {
        members: smallvec![
            Member { class: ClassNo(3), quanta: Quanta(56), devices: 0xff },
            Member { class: ClassNo(1), quanta: Quanta(96_000), devices: 0 },
            Member { class: ClassNo(2), quanta: Quanta(1_048_576), devices: 0 },
        ],
        ..grant()
    };
    let report = Some(report_in_millis());

    let within = [
        ("grant, key of 36 bytes", with_key(typical(grant()))),
        ("grant, no key", typical(grant())),
        ("renew", typical(renew(None))),
        ("renew, key", with_key(typical(renew(None)))),
        ("renew, activity", typical(renew(report))),
        ("release", typical(release(None))),
        ("release, key", with_key(typical(release(None)))),
        ("release, activity", typical(release(report))),
        ("expire", expire([LEASE].into_iter())),
    ]
    .map(|(what, record)| (what, bytes_on_disk(&record)));
    expect![[r#"
        grant, key of 36 bytes: 151
        grant, no key: 94
        renew: 92
        renew, key: 149
        renew, activity: 107
        release: 84
        release, key: 141
        release, activity: 99
        expire: 78
    "#]]
    .assert_eq(&table(&within));
    for (what, bytes) in within {
        assert!(bytes <= LIFECYCLE_BYTES_MAX, "{what} takes {bytes} bytes");
    }

    // Not promised to stay below: everything a caller may add.
    let beyond = [
        ("grant, key, workload of 8 bytes", with_workload),
        ("grant, key, correlation", with_key(typical(with_correlation))),
        ("grant of gpu, cpu and mem, key", with_key(typical(with_node))),
        ("renew, key, activity", with_key(typical(renew(report)))),
        ("renew, key, activity to the nanosecond", with_key(typical(renew(Some(report_in_nanos()))))),
        ("release, key, activity", with_key(typical(release(report)))),
    ]
    .map(|(what, record)| (what, bytes_on_disk(&record)));
    expect![[r#"
        grant, key, workload of 8 bytes: 161
        grant, key, correlation: 167
        grant of gpu, cpu and mem, key: 161
        renew, key, activity: 164
        renew, key, activity to the nanosecond: 180
        release, key, activity: 156
    "#]]
    .assert_eq(&table(&beyond));
}

#[test]
fn a_thousand_leases_fit_one_small_record() {
    let millis = |i| Some(varied(report_in_millis(), i, 1_000_000));
    let nanos = |i| Some(varied(report_in_nanos(), i, 1));
    let rows = [
        ("expired", bytes_on_disk(&expire(a_thousand_leases().into_iter())), 8_000),
        ("renewed", bytes_on_disk(&renew_thousand(|_| None)), 8_000),
        ("renewed with activity to the millisecond", bytes_on_disk(&renew_thousand(millis)), 32_000),
        ("renewed with activity to the nanosecond", bytes_on_disk(&renew_thousand(nanos)), usize::MAX),
    ];
    expect![[r#"
        expired: 1367
        renewed: 2380
        renewed with activity to the millisecond: 17375
        renewed with activity to the nanosecond: 33373
    "#]]
    .assert_eq(&table(&rows.map(|(what, bytes, _)| (what, bytes))));
    for (what, bytes, limit) in rows {
        assert!(bytes <= limit, "a thousand leases {what} take {bytes} bytes");
    }
}
