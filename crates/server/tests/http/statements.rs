//! Statements about the records of a month, from the close over HTTP to a data directory that an auditor verifies (ADR 25).

use crate::ledger::Ledger;
use crate::scrub::scrubbed;
use crate::world::World;
use leasehold_api::ScrubFindingKind;
use leasehold_cell::ManualClock;
use leasehold_journal::{FileJournal, Journal, Keys, Local, Options, RealDisk, Secret};
use leasehold_model::body::PeriodStated;
use leasehold_model::{Batch, Body, Record, TenantNo};
use leasehold_tlog::VerifierKey;
use leasehold_verify::{Failure, Report, Statements, Trust, verify};
use serde_json::json;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

const HOUR: u64 = 3600;

fn layout() -> Options {
    Options { segment_bytes: 4 << 20, ..Options::default() }
}

fn keys(data: &Path) -> Arc<Keys> {
    Arc::new(Keys::load(&data.join("key")).expect("the key"))
}

fn local(data: &Path) -> Local {
    Local::new(Secret::load(&data.join("local.secret")).expect("readable").expect("a secret"))
}

/// The records in the data directory of a stopped daemon.
pub(crate) fn records(data: &Path) -> Vec<Record> {
    let disk = Arc::new(RealDisk::new(data));
    let opened = FileJournal::open(disk, layout(), keys(data), local(data), leasehold_model::Instant(0));
    let journal = opened.expect("the journal").0;
    let mut all = Vec::new();
    let scanned = journal.scan(0, &mut |_, raw| {
        all.push(raw.decode().expect("a record"));
        ControlFlow::Continue(())
    });
    scanned.expect("a scan");
    journal.close(leasehold_model::Instant(0)).expect("closed");
    all
}

/// A data directory with these records, sealed and signed anew with the keys of another one.
fn resealed(from: &Path, records: &[Record]) -> tempfile::TempDir {
    resealed_in(from, records, layout())
}

pub(crate) fn resealed_in(from: &Path, records: &[Record], layout: Options) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("created");
    for file in ["key", "local.secret", "operator.token"] {
        std::fs::copy(from.join(file), data.join(file)).expect("copied");
    }
    let stamp = records[0].stamp;
    let disk = Arc::new(RealDisk::new(&data));
    let journal = FileJournal::create(disk, layout, keys(&data), local(&data), stamp).expect("a journal");
    for record in records {
        journal.prepare().expect("room");
        let mut batch = Batch::new(record.sequence);
        batch.push(record);
        journal.append(&mut batch).expect("appended");
        journal.checkpoint(record.stamp).expect("signed");
    }
    let last = records.last().expect("records").stamp;
    journal.close(last).expect("closed");
    folder
}

fn audit(data: &Path) -> Result<Report, Failure> {
    let keys = keys(data);
    let trust = Trust::new(VerifierKey::new(keys.origin(), &keys.public_keys()[0]).expect("a key"));
    let options =
        leasehold_verify::Options { data: data.to_owned(), archives: Vec::new(), trust, threads: 2, progress: None };
    verify(&options)
}

type Forge = fn(&mut PeriodStated);

fn stated(records: &[Record]) -> Vec<(TenantNo, PeriodStated)> {
    let each = records.iter().filter_map(|record| match &record.body {
        Body::PeriodStated(stated) => Some((record.identity.tenant?, *stated)),
        _ => None,
    });
    each.collect()
}

/// Every tenant with an invoice gets a statement, and the list at the border of a month is the one at the start of the
/// next. The second month begins with what the first one saved, and so does the third one, because somebody altered what
/// the second one saved.
#[tokio::test(flavor = "multi_thread")]
async fn months_are_stated_and_verified() {
    let ledger = Ledger::open().await;
    let world = &ledger.world;
    assert_eq!(ledger.get("/api/v1/periods/2026-01").await["statements"], 0);
    ledger.close_january().await;
    assert_eq!(ledger.get("/api/v1/periods/2026-01").await["statements"], 2);
    let saved = world.folder.path().join("data/statements");
    let file = std::fs::metadata(saved.join("2026-02")).expect("the fold at the border");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);

    for (month, days) in [("2026-02", 28), ("2026-03", 31)] {
        let request = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h",
            "asks": [{ "class": "h100", "quantity": 3 }] });
        world.post("/api/v1/leases", request).await.expect(201);
        ledger.pass(days * 24 * HOUR).await;
        world.post(&format!("/api/v1/periods/{month}/close"), json!({})).await.expect(202);
        let closed = world.until(&format!("/api/v1/periods/{month}"), |period| period["state"] == "closed").await;
        assert_eq!(closed["statements"], 1, "chemistry used nothing: {closed}");
        // What somebody changed is not used.
        let path = saved.join(if month == "2026-02" { "2026-03" } else { "2026-04" });
        let mut bytes = std::fs::read(&path).expect("the fold at the border");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).expect("written");
    }

    let folder = ledger.world.stop().await;
    let data = folder.path().join("data");
    assert_eq!(audit(&data).expect("intact").statements, Some(Statements::Recomputed(4)));
    let all = records(&data);
    let stated = stated(&all);
    let own = stated.last().expect("a statement").0;
    let physics: Vec<&PeriodStated> = stated.iter().filter(|(tenant, _)| *tenant == own).map(|(_, of)| of).collect();
    assert_eq!(physics.len(), 3);
    for pair in physics.windows(2) {
        assert_eq!((pair[0].border, pair[0].list_at_border), (pair[1].from, pair[1].list_at_start));
        assert_eq!(pair[0].common_at_border, pair[1].common_at_start);
        assert!(pair[0].from < pair[0].border && pair[0].border < pair[0].cut);
    }
    for of in &physics {
        assert!(matches!(&all[usize::try_from(of.cut).expect("small")].body, Body::PeriodClosing(_)));
    }
    let counts = all.iter().filter_map(|record| match &record.body {
        Body::PeriodClosed(closed) => closed.statements,
        _ => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), [2, 1, 1]);
}

/// Whatever a crash left unsealed is made by the successor, from the same records.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_two_statements() {
    let ledger = Ledger::open().await;
    ledger.close_january().await;
    let folder = ledger.world.stop().await;
    let whole = records(&folder.path().join("data"));
    let first = whole.iter().position(|record| matches!(record.body, Body::PeriodStated(_))).expect("a statement");
    for kept in [first, first + 1, first + 2] {
        let cut_short = resealed(&folder.path().join("data"), &whole[..kept]);
        let clock = ManualClock::at(whole[kept - 1].stamp);
        let world = World::at(Arc::new(clock), cut_short, |_| {}).await;
        world.until("/api/v1/periods/2026-01", |period| period["state"] == "closed").await;
        let cut_short = world.stop().await;
        let data = cut_short.path().join("data");
        assert_eq!(audit(&data).expect("intact").statements, Some(Statements::Recomputed(2)), "{kept} records");
        assert_eq!(stated(&records(&data)), stated(&whole), "{kept} records");
    }
}

/// The operator has the keys, and can seal what it likes: but not a statement that the records do not bear out.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_statement_is_found() {
    let ledger = Ledger::open().await;
    ledger.close_january().await;
    let folder = ledger.world.stop().await;
    let data = folder.path().join("data");
    let whole = records(&data);
    let at = whole.iter().rposition(|record| matches!(record.body, Body::PeriodStated(_))).expect("a statement");
    let forgeries: [(&str, Forge); 12] = [
        ("the root of the tenant's records", |of| of.records.root[0] ^= 1),
        ("the count of the tenant's records", |of| of.records.count -= 1),
        ("the root of the common records", |of| of.common.root[31] ^= 1),
        ("the tenant's list at the border", |of| of.list_at_border[3] ^= 1),
        ("the nodes that the tenant claimed", |of| of.claimed_nodes[3] ^= 1),
        ("the first record of the range", |of| of.from += 1),
        ("the first record of the next range", |of| of.border -= 1),
        ("the cut", |of| of.cut -= 1),
        ("the count of the common records", |of| of.common.count += 1),
        ("the tenant's list at the start", |of| of.list_at_start[3] ^= 1),
        ("the common list at the start", |of| of.common_at_start[3] ^= 1),
        ("no `period.closing` of its month", |of| of.month = of.month.previous()),
    ];
    for (what, forge) in forgeries {
        let mut records = whole.clone();
        let Body::PeriodStated(of) = &mut records[at].body else { unreachable!("it is one") };
        forge(of);
        let forged = resealed(&data, &records);
        let failure = audit(&forged.path().join("data")).expect_err(what);
        assert_eq!((failure.code(), failure.sequence), ("bad_statement", Some(at as u64)), "{failure}");
        assert!(failure.to_string().contains(what), "{failure}");
    }
    // A record about a tenant that is taken from it: what was stated no longer fits.
    let mut records = whole.clone();
    let grant = whole.iter().rposition(|record| matches!(record.body, Body::Granted(_))).expect("a grant");
    records[grant].identity.workload = leasehold_model::Name::new("another").ok();
    let forged = resealed(&data, &records);
    assert_eq!(audit(&forged.path().join("data")).expect_err("another grant").code(), "bad_statement");
    let untouched = resealed(&data, &whole);
    assert!(audit(&untouched.path().join("data")).is_ok(), "sealing anew changes nothing");
}

/// Changes the records from the first statement to the end of the month, and numbers them anew.
fn with_end(records: &[Record], change: impl FnOnce(&mut Vec<Record>)) -> Vec<Record> {
    let of_end = |record: &&Record| matches!(record.body, Body::PeriodClosed(_));
    let end = records.iter().find(of_end).expect("the month is closed").sequence;
    let mut changed = records[..=usize::try_from(end).expect("small")].to_vec();
    change(&mut changed);
    (0..).zip(&mut changed).for_each(|(sequence, record)| record.sequence = sequence);
    changed
}

/// A statement that is missing, repeated, or of a tenant without an invoice, and an end of the month that counts wrongly.
#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_statements_is_verified() {
    let ledger = Ledger::open().await;
    ledger.close_january().await;
    let folder = ledger.world.stop().await;
    let data = folder.path().join("data");
    let whole = records(&data);
    let at = |is: fn(&Body) -> bool| whole.iter().position(|record| is(&record.body)).expect("a record");
    let (invoice, first) =
        (at(|body| matches!(body, Body::InvoiceIssued(_))), at(|body| matches!(body, Body::PeriodStated(_))));
    let end = at(|body| matches!(body, Body::PeriodClosed(_)));
    let count = |records: &mut Vec<Record>, by: i64| {
        let Some(Body::PeriodClosed(closed)) = records.last_mut().map(|record| &mut record.body) else { panic!() };
        closed.statements = closed.statements.and_then(|count| count.checked_add_signed(by));
    };
    let counts = |counted, found| format!("it counts {counted} statements of its month, and the journal has {found}");
    let cases = [
        ("omitted", with_end(&whole, |of| drop(of.remove(first))), end - 1, counts(2, 1)),
        ("all omitted", with_end(&whole, |of| drop(of.drain(first..end))), first, counts(2, 0)),
        ("counted too low", with_end(&whole, |of| count(of, -1)), end, counts(1, 2)),
        ("counted too high", with_end(&whole, |of| count(of, 1)), end, counts(3, 2)),
        (
            "repeated",
            with_end(&whole, |of| {
                of.insert(first + 1, of[first].clone());
                count(of, 1);
            }),
            first + 1,
            "its tenant has an earlier statement of the month".into(),
        ),
        (
            "without an invoice",
            with_end(&whole, |of| drop(of.remove(invoice))),
            first - 1,
            "no invoice of the month was issued to its tenant before it".into(),
        ),
        (
            "after the end",
            with_end(&whole, |of| {
                let moved = of.remove(first);
                count(of, -1);
                of.push(moved);
            }),
            end,
            "the month was closed before it".into(),
        ),
    ];
    for (what, records, sequence, why) in cases {
        let forged = resealed(&data, &records);
        let failure = audit(&forged.path().join("data")).expect_err(what);
        assert_eq!((failure.code(), failure.sequence), ("bad_statement", Some(sequence as u64)), "{what}: {failure}");
        assert!(failure.to_string().contains(&why), "{what}: {failure}");
    }
    // A month that was closed without statements, and says so, is not wrong.
    let without = with_end(&whole, |of| {
        of.drain(first..end);
        count(of, -2);
    });
    let without = resealed(&data, &without);
    assert_eq!(audit(&without.path().join("data")).expect("intact").statements, None);
}

/// Without the first records statements cannot be recomputed, and the report says so.
#[tokio::test(flavor = "multi_thread")]
async fn statements_need_the_first_records() {
    let ledger = Ledger::open().await;
    ledger.close_january().await;
    let folder = ledger.world.stop().await;
    let data = folder.path().join("data");
    let small = Options { segment_bytes: 4096, ..Options::default() };
    let parts = resealed_in(&data, &records(&data), small);
    let data = parts.path().join("data");
    assert_eq!(audit(&data).expect("intact").statements, Some(Statements::Recomputed(2)));
    std::fs::remove_file(data.join("journal/00000001.seg")).expect("archived");
    let report = audit(&data).expect("the rest is intact");
    assert_eq!(report.statements, Some(Statements::OutOfReach { first: report.first_sequence }));
}

/// The scrub makes the statements again, too, and names the one that is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn the_scrub_makes_statements_again() {
    let ledger = Ledger::open().await;
    ledger.close_january().await;
    let folder = ledger.world.stop().await;
    let data = folder.path().join("data");
    let mut records = records(&data);
    let statement = records.iter().rposition(|record| matches!(record.body, Body::PeriodStated(_)));
    let end = records.iter().rposition(|record| matches!(record.body, Body::PeriodClosed(_)));
    let (statement, end) = (statement.expect("a statement"), end.expect("the end of the month"));
    for (at, wrong) in [(end, false), (end, true), (statement, true)] {
        match &mut records[at].body {
            Body::PeriodStated(of) => of.common.count += u64::from(wrong),
            Body::PeriodClosed(of) => of.statements = Some(2 + u64::from(wrong)),
            _ => unreachable!("it is one of the two"),
        }
        let clock = ManualClock::at(records.last().expect("records").stamp);
        let world = World::at(Arc::new(clock), resealed(&data, &records), |_| {}).await;
        let pass = scrubbed(&world).await;
        assert_eq!((pass.statements, pass.statements_reason), ((!wrong).then_some(2), None));
        let found: Vec<_> = pass.damage.iter().map(|finding| (finding.kind, finding.sequence)).collect();
        let expected = wrong.then_some((ScrubFindingKind::Record, Some(at as u64)));
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        world.stop().await;
    }
}
