//! Deleting archived segments: what is kept, what is refused, and interrupted at every operation.

use crate::faulty_disk::{FaultyDisk, Image, OPTIONS, Random, create};
use leasehold_journal::conformance::{genesis, keys, local};
use leasehold_journal::disk::Disk;
use leasehold_journal::{
    ArchiveError, Archiver, Deleted, Deleter, DeletionError, DeletionPlan, FileJournal, Journal, Kept, Keys, Local,
    Places, Plan, ReadOnly, SensitiveWork, Wanted,
};
use leasehold_model::body::{Heartbeat, Nodes, NodesClaimed};
use leasehold_model::{Batch, Instant, Name, NodeNo, Record, Retention, Span};
use std::ops::ControlFlow;
use std::sync::Arc;

const DAY: u64 = 86_400_000_000_000;
const RECORDS: u64 = 144;
const SEVEN_YEARS: Retention = Retention::Years(7);
/// 2020-02-01, so that the journal goes over leap days.
const BEGIN: u64 = 1_580_515_200_000_000_000;

/// A record every fifty days: almost twenty years.
fn at(sequence: u64) -> Instant {
    Instant(BEGIN + sequence * 50 * DAY)
}

fn record(sequence: u64, claims: &[u64], keys: &Keys) -> Record {
    let mut record = match sequence {
        0 => genesis(keys),
        _ if claims.contains(&sequence) => {
            Record::new(sequence, at(sequence), NodesClaimed { nodes: Nodes(vec![NodeNo(1)]), until: None })
        }
        _ => Record::new(sequence, at(sequence), Heartbeat {}),
    };
    let workload = format!("a workload with a name as long as they tend to be, number {sequence:08}");
    (record.stamp, record.effective_at) = (at(sequence), at(sequence));
    record.identity.workload = Some(Name::new(&workload).unwrap());
    record
}

/// A data directory and an archive with all that may be moved there.
#[derive(Clone)]
struct Site {
    keys: Arc<Keys>,
    data: Image,
    archive: Image,
}

/// A journal of 144 records in eight segments, of which these are claims, with a snapshot in the seventh.
fn site(claims: &[u64]) -> Site {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for round in 0..16 {
        journal.prepare().unwrap();
        let first = journal.head().size;
        let mut batch = Batch::new(first);
        (first..first + 9).for_each(|sequence| batch.push(&record(sequence, claims, &keys)));
        journal.append(&mut batch).unwrap();
        let checkpoint = journal.checkpoint(at(first + 8)).unwrap().unwrap();
        if round == 12 {
            journal.put_snapshot(&checkpoint.position, b"state").unwrap();
        }
    }
    journal.close(at(RECORDS)).unwrap();
    drop(journal);
    let archive = FaultyDisk::default();
    let secret = local().secret;
    let plan = Plan::make(&arc(&disk), Some(&secret), RECORDS).unwrap();
    assert_eq!(plan.segments().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    Archiver::new(arc(&disk), arc(&archive)).unwrap().run(&plan, &mut |_| true).unwrap();
    Site { keys, data: disk.image(), archive: archive.image() }
}

fn arc(disk: &FaultyDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

/// The site on disks that can fail, and what is asked for.
struct Run {
    data: FaultyDisk,
    archive: FaultyDisk,
    others: Vec<FaultyDisk>,
    before: Instant,
    wall_clock: Instant,
    sensitive: Retention,
    books: u64,
    deliveries: Option<u64>,
}

impl Site {
    /// Everything that can be deleted, as far as the time goes.
    fn run(&self) -> Run {
        Run {
            data: FaultyDisk::from_image(&self.data),
            archive: FaultyDisk::from_image(&self.archive),
            others: Vec::new(),
            before: at(RECORDS - 1),
            wall_clock: at(RECORDS),
            sensitive: SEVEN_YEARS,
            books: RECORDS,
            deliveries: None,
        }
    }

    /// Opens what is left, and checks that it is the end of the same journal, and from which record on.
    fn check_rest(&self, run: &Run, first: u64) {
        let local = Local { archives: vec![arc(&run.archive)], ..local() };
        let data = FaultyDisk::from_image(&run.data.image());
        let (journal, _) = FileJournal::open(arc(&data), OPTIONS, self.keys.clone(), local, at(RECORDS)).unwrap();
        assert_eq!(journal.missing_segment(), (first > 0).then_some(1));
        assert!(journal.genesis().unwrap().is_some());
        drop(journal);
        let scanned = ReadOnly::open(arc(&run.data), vec![arc(&run.archive)]).unwrap();
        let scanned = scanned.scan(&mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((scanned.first, scanned.size), (first, RECORDS));
    }
}

impl Run {
    fn places(&self) -> Places {
        Places { data: arc(&self.data), archive: arc(&self.archive), others: self.others.iter().map(arc).collect() }
    }

    fn plan(&self) -> Result<DeletionPlan, DeletionError> {
        let secret = local().secret;
        let wanted = Wanted {
            before: self.before,
            wall_clock: self.wall_clock,
            sensitive: self.sensitive,
            tells: &|record| record.body.tells_of_sensitive_work(),
            secret: Some(&secret),
            books: self.books,
            deliveries: self.deliveries,
        };
        DeletionPlan::make(&self.places(), &wanted, &mut |_| true)
    }

    fn delete(&self) -> Result<(Option<Deleted>, Option<Kept>), DeletionError> {
        let deleter = Deleter::new(self.places())?;
        let plan = self.plan()?;
        let deleted = deleter.run(&plan)?;
        deleter.reported()?;
        Ok((deleted, plan.kept))
    }

    fn code(&self) -> &'static str {
        let (data, archive) = (self.data.image(), self.archive.image());
        let error = self.plan().expect_err("a refusal");
        assert!(error.to_string().contains("; "), "{error} has no advice");
        assert_eq!(self.delete().expect_err("a refusal").code(), error.code());
        assert!(self.data.image() == data && self.archive.image() == archive, "a refusal changes nothing");
        error.code()
    }

    fn archived(&self) -> Vec<String> {
        self.archive.image().into_keys().filter(|name| name.ends_with(".seg")).collect()
    }
}

/// The first record of each segment.
fn firsts(site: &Site) -> Vec<u64> {
    let header = |name: &str| {
        let bytes = site.archive.get(name).or(site.data.get(&format!("journal/{name}"))).expect("a segment");
        u64::from_le_bytes(bytes[16..24].try_into().unwrap())
    };
    (1..=8).map(|number| header(&format!("{number:08}.seg"))).collect()
}

#[test]
fn old_segments_are_deleted_and_the_rest_is_the_end_of_the_same_journal() {
    let site = site(&[]);
    let firsts = firsts(&site);
    let mut run = site.run();
    // A segment goes if its last record is older, not if it is as old.
    run.before = at(firsts[2] - 1);
    let (operations, planned) = (run.archive.operations(), run.plan().unwrap());
    assert_eq!((run.archive.operations(), run.data.operations()), (operations, 0), "a plan changes nothing");
    assert_eq!(planned.planned().unwrap().segments, 1..=1);
    run.before = Instant(run.before.0 + 1);
    let (deleted, kept) = run.delete().unwrap();
    let hash = site.data["journal/00000007.seg"][24..56].to_vec();
    let deleted = deleted.unwrap();
    assert_eq!((deleted.segments.clone(), deleted.first_sequence, deleted.last_sequence), (1..=2, 0, firsts[2] - 1));
    assert_eq!((deleted.first_stamp, deleted.last_stamp), (at(0), at(firsts[2] - 1)));
    let bytes = ["00000001.seg", "00000002.seg"].map(|name| site.archive[name].len() as u64);
    assert_eq!((deleted.bytes, deleted.continued), (bytes.iter().sum(), false));
    assert_eq!(deleted.last_hash[..], site.archive["00000003.seg"][24..56], "the next record continues it");
    assert_eq!(kept, Some(Kept::NotBefore { segment: 3, last: at(firsts[3] - 1) }));
    assert!(!run.archive.image().contains_key("00000002.tree"));
    site.check_rest(&run, firsts[2]);

    // Nothing more is due, and then everything that a restart does not need.
    assert_eq!(run.delete().unwrap().0, None);
    run.before = at(RECORDS - 1);
    let (deleted, kept) = run.delete().unwrap();
    let deleted = deleted.unwrap();
    assert_eq!((deleted.segments, deleted.first_sequence), (3..=6, firsts[2]));
    assert_eq!(deleted.last_hash[..], hash);
    assert_eq!(kept, Some(Kept::InData { segment: 7 }));
    assert_eq!(run.archived(), [""; 0]);
    site.check_rest(&run, firsts[6]);
}

#[test]
fn no_record_of_sensitive_work_is_deleted_before_its_time() {
    let firsts = firsts(&site(&[]));
    let last_of = |segment: u32| firsts[segment as usize] - 1;
    for claim in (1..firsts[6]).step_by(7) {
        let site = site(&[claim]);
        for now in (0..RECORDS).step_by(5) {
            let mut run = site.run();
            (run.wall_clock, run.before) = (at(now), at(now));
            let plan = run.plan().unwrap();
            let deleted = plan.planned().map_or(0, |planned| *planned.segments.end());
            for segment in 1..=deleted {
                let last = last_of(segment);
                let is_free = last < claim;
                assert!(is_free || SEVEN_YEARS.until(at(last)) <= at(now), "claim {claim}, {segment} at {now}");
            }
            // And nothing else is kept: the next one is the first that must be.
            match plan.kept.unwrap() {
                Kept::Sensitive { segment, last, until, work } => {
                    assert_eq!((last, until), (at(last_of(segment)), SEVEN_YEARS.until(last)));
                    assert!(until > at(now) && last < at(now) && segment == deleted + 1);
                    assert_eq!(work, SensitiveWork::Since(claim));
                    assert!(claim <= last_of(segment));
                }
                Kept::NotBefore { segment, last } => assert!(segment == deleted + 1 && last >= at(now)),
                kept => assert_eq!(kept, Kept::InData { segment: 7 }),
            }
        }
    }
}

#[test]
fn the_period_ends_at_the_same_date_years_later() {
    let site = site(&[1]);
    let last = at(firsts(&site)[1] - 1);
    let until = SEVEN_YEARS.until(last);
    // Two leap days lie between, or one.
    assert!([2556 * DAY, 2557 * DAY].contains(&until.since(last).0));
    let check = |wall_clock: Instant, expected: Option<u32>| {
        let mut run = site.run();
        (run.wall_clock, run.before) = (wall_clock, wall_clock);
        assert_eq!(run.plan().unwrap().planned().map(|planned| *planned.segments.end()), expected);
    };
    check(Instant(until.0 - 1), None);
    check(until, Some(1));
    // A length of time counts as it is.
    let mut run = site.run();
    run.sensitive = Retention::For(Span(30 * 365 * DAY));
    assert!(matches!(run.plan().unwrap().kept, Some(Kept::Sensitive { segment: 1, .. })));
    run.sensitive = Retention::For(Span(0));
    assert_eq!(run.plan().unwrap().planned().unwrap().segments, 1..=6);
}

#[test]
fn a_clock_that_is_ahead_deletes_nothing_early() {
    let site = site(&[1]);
    // The newest record is stamped not quite twenty years after the first: a clock in the next century changes nothing.
    let mut run = site.run();
    let planned = run.plan().unwrap().planned();
    run.wall_clock = Instant(at(RECORDS).0 + 100 * 365 * DAY);
    let plan = run.plan().unwrap();
    assert_eq!((plan.clock, plan.planned()), (at(RECORDS - 1), planned));
    // Neither does one that asks for it.
    run.before = Instant(at(RECORDS - 1).0 + 1);
    assert_eq!(run.code(), "deletion_in_future");
    // A clock that is behind counts as it is.
    run.wall_clock = at(60);
    run.before = at(60);
    assert_eq!(run.plan().unwrap().clock, at(60));
    run.before = at(61);
    assert_eq!(run.code(), "deletion_in_future");
}

#[test]
fn what_was_deleted_before_is_remembered_and_unknown_without() {
    let clean = site(&[]);
    let firsts = firsts(&clean);
    let mut run = clean.run();
    run.before = at(firsts[1]);
    run.delete().unwrap();
    run.before = at(RECORDS - 1);
    // The journal begins late, and it is known that there was no sensitive work before.
    assert_eq!(run.plan().unwrap().planned().unwrap().segments, 2..=6);
    // Without that knowledge, every record may be about some.
    let mut image = run.archive.image();
    let state = image.remove("deletion.state").unwrap();
    let forgetful = Run { archive: FaultyDisk::from_image(&image), ..clean.run() };
    let plan = forgetful.plan().unwrap();
    assert!(matches!(plan.kept, Some(Kept::Sensitive { work: SensitiveWork::Unknown, .. })), "{:?}", plan.kept);
    for at in 0..state.len() {
        let mut damaged = state.clone();
        damaged[at] ^= 1;
        image.insert("deletion.state".into(), damaged);
        let run = Run { archive: FaultyDisk::from_image(&image), ..clean.run() };
        assert_eq!(run.plan().unwrap().kept, plan.kept, "a flip at {at}");
    }
    // What another archive remembers counts as well.
    image.remove("deletion.state");
    let other = FaultyDisk::from_image(&Image::from([("deletion.state".to_owned(), state)]));
    let run = Run { archive: FaultyDisk::from_image(&image), others: vec![other], ..clean.run() };
    assert_eq!(run.plan().unwrap().planned().unwrap().segments, 2..=6);

    // Once there was sensitive work, what follows is kept, also when the record that told of it is gone.
    let claimed = site(&[3]);
    let run = claimed.run();
    let (deleted, kept) = run.delete().unwrap();
    let next = *deleted.unwrap().segments.end() + 1;
    assert!(
        matches!(kept, Some(Kept::Sensitive { segment, work: SensitiveWork::Since(3), .. }) if segment == next),
        "{kept:?}"
    );
    assert_eq!(run.delete().unwrap(), (None, kept));
}

#[test]
fn what_a_restart_or_a_delivery_needs_stays() {
    let site = site(&[]);
    let firsts = firsts(&site);
    let mut run = site.run();
    run.deliveries = Some(firsts[2] + 3);
    assert_eq!(run.plan().unwrap().planned().unwrap().segments, 1..=2);
    assert_eq!(run.plan().unwrap().kept, Some(Kept::Undelivered { segment: 3, next: firsts[2] + 3 }));
    run.deliveries = Some(firsts[3]);
    assert_eq!(run.plan().unwrap().planned().unwrap().segments, 1..=3);
    run.books = firsts[1];
    assert_eq!(run.plan().unwrap().planned(), None);
    assert!(matches!(run.plan().unwrap().kept, Some(Kept::Needed { segment: 1, .. })));
    run.books = firsts[1] + 1;
    assert_eq!(run.plan().unwrap().planned().unwrap().segments, 1..=1);
    let mut data = site.data.clone();
    data.retain(|name, _| !name.starts_with("snapshots/"));
    run = Run { data: FaultyDisk::from_image(&data), ..site.run() };
    assert!(matches!(run.plan().unwrap().kept, Some(Kept::Needed { segment: 1, snapshot: None, .. })));
    // Without its tree file the next segment cannot be the first one.
    let mut archive = site.archive.clone();
    archive.remove("00000002.tree");
    run = Run { archive: FaultyDisk::from_image(&archive), ..site.run() };
    assert!(matches!(run.plan().unwrap().kept, Some(Kept::Needed { segment: 1, .. })));
}

#[test]
fn what_is_not_one_whole_journal_is_refused() {
    let site = site(&[]);
    let with = |change: &dyn Fn(&mut Image)| {
        let mut archive = site.archive.clone();
        change(&mut archive);
        Run { archive: FaultyDisk::from_image(&archive), ..site.run() }
    };
    assert_eq!(with(&|archive| drop(archive.remove("00000003.seg"))).code(), "archive_incomplete");
    // Damage anywhere that records are; a wrong header; another record at the end.
    for at in (0..site.archive["00000002.seg"].len()).step_by(37) {
        let run = with(&|archive| archive.get_mut("00000002.seg").unwrap()[at] ^= 1);
        assert_eq!(run.code(), "archive_damaged", "a flip at {at}");
    }
    let cut = with(&|archive| archive.get_mut("00000006.seg").unwrap().truncate(900));
    assert_eq!(cut.code(), "archive_damaged");
    // Whole segments of another journal of the same name.
    let other = self::site(&[5]);
    let foreign = with(&|archive| drop(archive.insert("00000001.seg".into(), other.archive["00000001.seg"].clone())));
    assert_eq!(foreign.code(), "archive_damaged");

    // Copies elsewhere would still be read.
    let mut run = site.run();
    let copy = |name: &str| Image::from([(name.to_owned(), site.archive["00000002.seg"].clone())]);
    run.others = vec![FaultyDisk::from_image(&copy("journal/00000002.seg"))];
    assert_eq!(run.code(), "archive_has_copy");
    let mut data = site.data.clone();
    data.extend(copy("journal/00000002.seg"));
    data.insert("journal/00000003.seg".into(), site.archive["00000003.seg"].clone());
    for number in 4..7 {
        data.insert(format!("journal/{number:08}.seg"), site.archive[&format!("{number:08}.seg")].clone());
    }
    let run = Run { data: FaultyDisk::from_image(&data), ..site.run() };
    assert_eq!(run.code(), "archive_has_copy");

    // The oldest go first, wherever they are.
    let (mut first, mut rest) = (site.archive.clone(), site.archive.clone());
    first.retain(|name, _| name.as_str() < "00000003");
    rest.retain(|name, _| name.as_str() >= "00000003");
    let mut run = site.run();
    (run.archive, run.others) = (FaultyDisk::from_image(&rest), vec![FaultyDisk::from_image(&first)]);
    assert_eq!(run.code(), "archive_not_oldest");
    (run.archive, run.others) = (FaultyDisk::from_image(&first), vec![FaultyDisk::from_image(&rest)]);
    let (deleted, kept) = run.delete().unwrap();
    assert_eq!((deleted.unwrap().segments, kept), (1..=2, Some(Kept::InOther { segment: 3 })));

    // Somebody else is at work.
    let run = site.run();
    let _archiver = Archiver::new(arc(&run.data), arc(&run.archive)).unwrap();
    let refused = Deleter::new(run.places()).err();
    assert!(matches!(refused, Some(DeletionError::Archive(ArchiveError::InUse))), "{refused:?}");
}

#[test]
fn a_kill_at_any_operation_is_continued_and_reported_as_one() {
    let site = site(&[2]);
    let whole = site.run();
    let (expected, kept) = whole.delete().unwrap();
    let expected = expected.unwrap();
    let left = whole.archive.image();
    assert!(*expected.segments.end() >= 3, "several segments go");
    for at in 1..=whole.archive.operations() {
        for seed in 0..4 {
            let run = site.run();
            run.archive.crash_at(at);
            assert!(run.delete().is_err(), "crash at {at}");
            let archive = run.archive.after_crash(&mut Random(at << 8 | seed));
            let run = Run { archive, ..site.run() };
            // Whatever is left is the end of the journal, and can be started from.
            let first = run.archived().first().map(|name| site.archive[name][16..24].to_vec()).expect("some are left");
            let first = u64::from_le_bytes(first.try_into().unwrap());
            site.check_rest(&run, first);
            let (deleted, again) = run.delete().unwrap();
            assert_eq!(again, kept);
            match deleted {
                Some(deleted) => {
                    let continued = deleted.continued;
                    assert_eq!(Deleted { continued: false, ..deleted }, expected, "crash at {at}, seed {seed}");
                    assert_eq!(continued, first > 0, "crash at {at}: whether an earlier run deleted something");
                }
                // It was reported already.
                None => assert!(at + 6 > whole.archive.operations(), "crash at {at}"),
            }
            let files = run.archive.image();
            assert_eq!(files.keys().collect::<Vec<_>>(), left.keys().collect::<Vec<_>>(), "crash at {at}");
            assert_eq!(run.delete().unwrap().0, None, "it was reported");
        }
    }
}
