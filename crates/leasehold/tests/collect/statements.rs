//! Statements about months are recomputed when a month was closed.

use super::daemon::Origin;
use super::{Auditor, ORIGIN};
use leasehold_journal::{FileJournal, Journal, Keys, Local, Options, RealDisk, Secret};
use leasehold_model::body::{LedgerOpened, PeriodClosed, PeriodClosing, PeriodStated, RecordSet};
use leasehold_model::{Batch, Body, Identity, Instant, Month, Record, TenantNo};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Closes a month in the journal of a stopped daemon, with a statement that the records do not lead to if it is `forged`.
fn close_a_month(data: &Path, forged: bool) {
    let disk = Arc::new(RealDisk::new(data));
    let keys = Arc::new(Keys::load(&data.join("key")).expect("the key"));
    let local = Local::new(Secret::load(&data.join("local.secret")).expect("readable").expect("a secret"));
    let options = Options { segment_bytes: 4 << 20, ..Options::default() };
    let journal = FileJournal::open(disk, options, keys, local, Instant(0)).expect("the journal").0;
    let (mut last, mut open_from): (Option<Record>, Option<Instant>) = (None, None);
    let scanned = journal.scan(0, &mut |_, raw| {
        let record = raw.decode().expect("a record");
        if let Body::LedgerOpened(opened) = &record.body {
            open_from = Some(opened.from);
        }
        last = Some(record);
        ControlFlow::Continue(())
    });
    scanned.expect("a scan");
    let last = last.expect("records");
    // The daemon opens the ledger by itself, but not always before it is stopped.
    let month = open_from.map_or(Month::of(last.stamp).previous(), Month::of);
    let cut = last.sequence + if open_from.is_some() { 1 } else { 2 };
    let empty = RecordSet { count: 0, root: [0; 32] };
    let zeroes = [0; 32];
    let stated = PeriodStated {
        month,
        from: 0,
        border: 0,
        cut,
        records: empty,
        common: empty,
        list_at_start: zeroes,
        list_at_border: zeroes,
        common_at_start: zeroes,
        common_at_border: zeroes,
        claimed_nodes: zeroes,
    };
    let opened = LedgerOpened { from: Instant(month.end().0 - 3600 * 1_000_000_000) };
    let mut bodies: Vec<Body> = if open_from.is_some() { Vec::new() } else { vec![opened.into()] };
    bodies.push(PeriodClosing { month }.into());
    bodies.extend(forged.then(|| stated.into()));
    let statements = Some(u64::from(forged));
    bodies.push(PeriodClosed { month, invoices: 0, credit_notes: 0, statements }.into());
    let mut batch = Batch::new(last.sequence + 1);
    for (body, sequence) in bodies.into_iter().zip(last.sequence + 1..) {
        let tenant = matches!(body, Body::PeriodStated(_)).then_some(TenantNo(0));
        let identity = Identity { tenant, ..Identity::default() };
        let (stamp, effective_at) = (last.stamp, last.stamp);
        let (reason, idempotency, continues) = (None, None, false);
        batch.push(&Record {
            sequence,
            stamp,
            effective_at,
            identity,
            reason,
            idempotency,
            continues,
            body,
            ..last.clone()
        });
    }
    journal.prepare().expect("room");
    journal.append(&mut batch).expect("appended");
    journal.checkpoint(last.stamp).expect("signed");
    journal.close(last.stamp).expect("closed");
}

#[test]
fn statements_are_recomputed_when_a_month_was_closed() {
    for forged in [false, true] {
        let mut origin = Origin::named(ORIGIN);
        origin.seal(3);
        let auditor = Auditor::of(&origin);
        auditor.collect(&origin.url()).ok();
        let folder = origin.stop();
        close_a_month(&folder.path().join("data"), forged);
        let mut origin = Origin::in_folder(folder, ORIGIN, 3);
        for _ in 0..2 {
            let size = origin.seal(2).size;
            let said = auditor.collect(&origin.url());
            let told = said.json();
            if forged {
                assert!(said.code == 3 && said.err.contains("(bad_statement)"), "{said:?}");
                assert_eq!((&told["verdict"], &told["code"]), (&"no".into(), &"bad_statement".into()));
                assert!(told["sequence"].as_u64().is_some(), "{told}");
            } else {
                assert_eq!((said.code, &told["verdict"]), (0, &"yes".into()), "{said:?}");
            }
            assert!(told["records"].as_u64().expect("a number") >= size, "everything is kept: {told}");
        }
        origin.stop();
    }
}
