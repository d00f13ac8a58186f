//! The frozen journals since rules version 4 (`tests/frozen`): what the books say of them was right when it was frozen.

use crate::ledger::{compare_lines, same_lines};
use crate::{books_of, check, compare_reserved};
use leasehold_books::{Dim, Keeper, Question};
use leasehold_journal::{ReadOnly, RealDisk};
use leasehold_meter::Window;
use leasehold_model::rate::Currency;
use leasehold_model::{Body, Instant, LineKey, ProjectNo, Record};
use leasehold_oracle::ledger::{Audit, DueLine};
use leasehold_sim::Dice;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn records_in(data: &Path) -> Vec<Record> {
    let journal = ReadOnly::open(Arc::new(RealDisk::new(data)), Vec::new()).unwrap();
    let mut records = Vec::new();
    let scanned = journal.scan_from_genesis(&mut |entry| {
        records.push(entry.raw.decode().unwrap());
        ControlFlow::Continue(())
    });
    scanned.unwrap_or_else(|error| panic!("{}: {error}", data.display()));
    records
}

fn folders(rules: u32, at_least: usize) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/frozen/rules-{rules}"));
    let mut folders: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() >= at_least, "only {} journals of rules {rules} were found", folders.len());
    folders
}

#[test]
fn the_books_of_frozen_journals_agree_with_the_accounts() {
    for folder in [folders(4, 15), folders(5, 10), folders(6, 7), folders(7, 8)].concat() {
        let records = records_in(&folder.join("data"));
        compare_reserved(&records).unwrap_or_else(|what| panic!("{}: {what}", folder.display()));
        let mut dice = Dice::new(records.len() as u64);
        for part in [records.len() / 3, records.len() / 2, records.len() - 1, records.len()] {
            let part = &records[..part];
            let checked = check(part, &books_of(part), 30, &mut dice);
            checked.unwrap_or_else(|what| panic!("{}, {} records: {what}", folder.display(), part.len()));
        }
    }
}

#[test]
fn the_ledgers_of_frozen_journals_agree_with_the_audit() {
    let mut postings = 0;
    for folder in [folders(5, 10), folders(6, 7), folders(7, 8)].concat() {
        let checked = check_ledger(&records_in(&folder.join("data")));
        postings += checked.unwrap_or_else(|what| panic!("{}: {what}", folder.display()));
    }
    assert!(postings > 300, "only {postings} postings");
}

/// Reported usage is what the records say that were not superseded.
#[test]
fn the_units_of_frozen_journals_agree_with_their_records() {
    let mut reports = 0;
    for folder in [folders(6, 7), folders(7, 8)].concat() {
        let records = records_in(&folder.join("data"));
        for part in [records.len() / 2, records.len()] {
            let checked = check_units(&records[..part]);
            reports += checked.unwrap_or_else(|what| panic!("{}, {part} records: {what}", folder.display()));
            let checked = check_refused(&records[..part]);
            checked.unwrap_or_else(|what| panic!("{}, {part} records: {what}", folder.display()));
        }
    }
    assert!(reports > 200, "only {reports} reports");
}

/// Compares quantities by project, app instance and unit with the sums over all records. Returns the number of reports.
fn check_units(records: &[Record]) -> Result<usize, String> {
    let mut said = BTreeMap::new();
    for record in records {
        let Body::UsageRecorded(recorded) = &record.body else { continue };
        let superseded = recorded.replaces.map(|old| said.remove(&old.sequence).ok_or("a record that nobody made"));
        superseded.transpose()?;
        said.insert(record.sequence, (record.identity.project.ok_or("usage without a project")?, recorded));
    }
    let mut theirs: BTreeMap<_, i128> = BTreeMap::new();
    for (project, recorded) in said.values() {
        let report = &recorded.report;
        let key = (u64::from(project.0), report.app_instance.0, u64::from(report.control_plane));
        let quantity = i128::try_from(report.quantity.in_line_parts()).map_err(|error| error.to_string())?;
        *theirs.entry((key, report.unit, recorded.charge)).or_default() += quantity;
    }
    theirs.retain(|_, sum| *sum != 0);
    let window = Window::new(Instant(0), Instant(u64::MAX / 2));
    let question = Question::over(window, &[Dim::Project, Dim::AppInstance, Dim::ControlPlane]);
    let ours = books_of(records).unit_usage(&question).map_err(|error| error.to_string())?;
    let ours: BTreeMap<_, i128> = ours
        .iter()
        .map(|line| (((line.key[0], line.key[1], line.key[2]), line.unit, line.charge), line.quantity))
        .collect();
    if ours != theirs {
        return Err(format!("reported usage\n  books {ours:?}\n  records {theirs:?}"));
    }
    Ok(said.len())
}

/// Compares the usage that was refused in each month, for all tenants and for each of them, with the records.
fn check_refused(records: &[Record]) -> Result<(), String> {
    let mut theirs: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
    for record in records {
        let Body::UsageRefused(refused) = &record.body else { continue };
        for tenant in [None, record.identity.tenant] {
            theirs.entry((refused.month, tenant)).or_default().insert(record.sequence);
        }
    }
    let books = books_of(records);
    for ((month, tenant), theirs) in theirs {
        let (ours, _) = books.refused_usage(month, tenant, usize::MAX - 1).map_err(|error| error.to_string())?;
        if ours.len() != theirs.len() || !ours.iter().all(|sequence| theirs.contains(sequence)) {
            return Err(format!("refused in {month} of {tenant:?}\n  books {ours:?}\n  records {theirs:?}"));
        }
    }
    Ok(())
}

type Payer = (ProjectNo, Currency);
type Lines = BTreeMap<LineKey, DueLine>;

/// Compares every posting with what was due, every invoice with its lines, and the balances at the end. Returns the
/// number of postings.
fn check_ledger(records: &[Record]) -> Result<usize, String> {
    let (mut audit, mut books) = (Audit::default(), Keeper::in_memory().books);
    // Postings that lack parts: what was due, and what was posted of it.
    let mut begun: BTreeMap<Payer, (Lines, Lines)> = BTreeMap::new();
    let mut postings = 0;
    for record in records {
        if let Body::LedgerPosted(posted) = &record.body {
            let payer = (record.identity.project.ok_or("a posting without a payer")?, posted.currency);
            let mut due = || audit.due(posted.as_of_size, posted.through).remove(&payer).unwrap_or_default();
            let (due, found) = begun.entry(payer).or_insert_with(|| (due(), Lines::new()));
            found.extend(posted.lines.iter().map(|line| (line.key.clone(), (line.usage.0, line.exact.clone()))));
            if posted.complete {
                let one = |lines: &Lines| BTreeMap::from([(payer, lines.clone())]);
                compare_lines(&format!("record {}", record.sequence), &one(found), &one(due))?;
                begun.remove(&payer);
                postings += 1;
            }
        }
        audit.observe(record).map_err(|violation| violation.to_string())?;
        books.apply(record).map_err(|error| error.to_string())?;
        if let (Body::InvoiceIssued(issued), Some(tenant)) = (&record.body, record.identity.tenant) {
            let found = books.invoice(issued.number).map_err(|error| error.to_string())?;
            let found = found.ok_or_else(|| format!("the books have no {}", issued.number))?;
            same_lines(&found.lines, &audit.ledger.invoice_lines(tenant, issued.currency, issued.month))?;
        }
    }
    let theirs = audit.ledger.balances();
    let recounted = books.recount_balances().map_err(|error| error.to_string())?;
    let followed = books.account_balances().map(|(account, currency, sum)| ((account, currency), sum));
    for mut ours in [recounted, followed.collect()] {
        ours.retain(|_, sum| sum.0 != 0);
        if !ours.iter().map(|(of, sum)| (*of, sum.0)).eq(theirs.iter().map(|(of, sum)| (*of, *sum))) {
            return Err(format!("balances\n  books {ours:?}\n  audit {theirs:?}"));
        }
    }
    for ((project, currency), last, residual) in audit.ledger.payers() {
        let ours = (books.last_entry_of(project, currency), books.residual_of(project, currency));
        if ours != (last, residual) {
            return Err(format!("{project} {currency}: books {ours:?}, audit {:?}", (last, residual)));
        }
    }
    audit.check_residuals().map_err(|violation| violation.to_string())?;
    Ok(postings)
}
