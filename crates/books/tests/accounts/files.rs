//! The file of the books: reopened, behind the journal, of another journal, and damaged.

use crate::asks::Asker;
use crate::directed::late_loss;
use crate::history::keys;
use crate::random::{tell, tell_unlent};
use crate::spice::spiced;
use crate::{check, from_env};
use leasehold_books::{BooksError, Dim, Keeper, Opened, Question};
use leasehold_journal::{Journal, MacKey, MemoryJournal, Secret};
use leasehold_meter::Window;
use leasehold_model::body::Body;
use leasehold_model::{Batch, Instant, LeaseNo, Record};
use leasehold_sim::{Dice, tell_seed};
use redb::{ReadableTable, TableDefinition};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn books_key() -> MacKey {
    Secret::new([7; 32]).books().clone()
}

fn journal_of(records: &[Record]) -> MemoryJournal {
    let journal = MemoryJournal::new(Arc::new(keys()));
    for some in records.chunks(500) {
        let mut batch = Batch::new(some[0].sequence);
        some.iter().for_each(|record| batch.push(record));
        journal.append(&mut batch).expect("sealed");
    }
    journal
}

/// Histories from the simulator, and a long generated one.
fn some_records(seed: u64, dice: &mut Dice) -> Vec<Record> {
    if seed.is_multiple_of(3) {
        let (_, records) = tell_seed(seed, 300).unwrap_or_else(|failure| panic!("{failure}"));
        spiced(records, dice)
    } else {
        tell(700, dice)
    }
}

fn follow_all(keeper: &mut Keeper, journal: &MemoryJournal) -> Result<(), BooksError> {
    keeper.follow(journal, u64::MAX / 2).map(drop)
}

#[test]
fn books_come_back_as_they_were() {
    for seed in 0..from_env("LEASEHOLD_ACCOUNTS_FILES", 30) {
        let mut dice = Dice::new(seed ^ 0xf17e);
        let records = some_records(seed, &mut dice);
        let journal = journal_of(&records);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("books");
        let (mut keeper, opened) = Keeper::open(&path, &journal, &books_key()).expect("opened");
        assert_eq!(opened, Opened::New);
        let mut lives = 0;
        while keeper.books.size() < records.len() as u64 {
            let most = 1 + dice.below(records.len() as u64 / 2);
            keeper.follow(&journal, most).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            if dice.one_in(2) {
                keeper.commit(&journal).expect("committed");
                assert_eq!(keeper.uncommitted(), 0);
            }
            if dice.one_in(2) {
                // Whatever was not committed is followed again.
                lives += 1;
                drop(keeper);
                keeper = Keeper::open(&path, &journal, &books_key()).expect("opened").0;
            }
        }
        let so = |what: String| panic!("seed {seed}, after {lives} lives: {what}");
        check(&records, &keeper.books, 6, &mut dice).unwrap_or_else(so);
        keeper.commit(&journal).expect("committed");
        check(&records, &keeper.books, 4, &mut dice).unwrap_or_else(so);
        drop(keeper);
        let (keeper, opened) = Keeper::open(&path, &journal, &books_key()).expect("opened");
        assert_eq!((opened, keeper.books.size()), (Opened::Continued, records.len() as u64));
        check(&records, &keeper.books, 6, &mut dice).unwrap_or_else(so);
    }
}

fn granted(record: &Record) -> Vec<LeaseNo> {
    let Body::Granted(granted) = &record.body else { return Vec::new() };
    (0..granted.members.len() as u64).map(|member| LeaseNo(granted.first_lease.0 + member)).collect()
}

/// Between the commit of the file and the moment at which the books in memory learn of it, they are read as before.
#[test]
fn books_can_be_read_while_they_are_written() {
    for seed in 0..from_env("LEASEHOLD_ACCOUNTS_FILES", 10) {
        let mut dice = Dice::new(seed ^ 0x3ead);
        let records = some_records(seed, &mut dice);
        let journal = journal_of(&records);
        let folder = tempfile::tempdir().expect("a folder");
        let (mut keeper, _) = Keeper::open(&folder.path().join("books"), &journal, &books_key()).expect("opened");
        while keeper.books.size() < records.len() as u64 {
            keeper.follow(&journal, 1 + dice.below(records.len() as u64 / 4)).expect("followed");
            let written = keeper.write(&journal).expect("written");
            let so_far = &records[..usize::try_from(keeper.books.size()).expect("few")];
            check(so_far, &keeper.books, 2, &mut dice).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
            let leases: Vec<LeaseNo> = so_far.iter().flat_map(granted).collect();
            let found = keeper.books.leases_of(leases.iter().copied()).expect("every lease is found");
            assert_eq!(found.len(), leases.len(), "seed {seed}");
            keeper.written(written).expect("noted");
            check(so_far, &keeper.books, 2, &mut dice).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        }
    }
}

/// A late change reopens segments that are in the file, and replaces them.
#[test]
fn blocks_that_were_opened_again_are_written_again() {
    let records = late_loss().records;
    let journal = journal_of(&records);
    for step in [1, 7, 40, 150] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("books");
        let (mut keeper, _) = Keeper::open(&path, &journal, &books_key()).expect("opened");
        while keeper.books.size() < records.len() as u64 {
            // Step by step only around the loss: every commit waits for the disk.
            let most = if keeper.books.size() < 800 { 800 } else { step };
            keeper.follow(&journal, most).expect("followed");
            keeper.commit(&journal).expect("committed");
        }
        drop(keeper);
        let (keeper, opened) = Keeper::open(&path, &journal, &books_key()).expect("opened");
        assert_eq!(opened, Opened::Continued);
        let mut dice = Dice::new(step);
        check(&records, &keeper.books, 30, &mut dice).unwrap_or_else(|what| panic!("steps of {step}: {what}"));
    }
}

/// A file that is ahead of the journal, or belongs to another one, is discarded.
#[test]
fn books_of_another_journal_are_made_anew() {
    let mut dice = Dice::new(5);
    let (records, others) = (tell(60, &mut dice), tell(60, &mut dice));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("books");
    let journal = journal_of(&records);
    let (mut keeper, _) = Keeper::open(&path, &journal, &books_key()).expect("opened");
    follow_all(&mut keeper, &journal).expect("followed");
    keeper.commit(&journal).expect("committed");
    drop(keeper);
    for (other, why) in [(&records[..20], "it is ahead of the journal"), (&others[..], "it belongs to another journal")]
    {
        let copy = folder.path().join("copy");
        std::fs::copy(&path, &copy).expect("copied");
        let other_journal = journal_of(other);
        if other_journal.head().size < journal.head().size && why.contains("another") {
            continue;
        }
        let (mut keeper, opened) = Keeper::open(&copy, &other_journal, &books_key()).expect("opened");
        assert_eq!(opened, Opened::Rebuilt(why));
        follow_all(&mut keeper, &other_journal).expect("followed");
        check(other, &keeper.books, 5, &mut dice).unwrap_or_else(|what| panic!("{what}"));
    }
}

/// A file that crashed the process on opening is discarded at the next start.
#[test]
fn an_opening_that_never_ended_is_not_tried_again() {
    let records = tell(60, &mut Dice::new(7));
    let folder = tempfile::tempdir().expect("a folder");
    let (path, journal) = (folder.path().join("books"), journal_of(&records));
    let (mut keeper, _) = Keeper::open(&path, &journal, &books_key()).expect("opened");
    follow_all(&mut keeper, &journal).expect("followed");
    keeper.commit(&journal).expect("committed");
    drop(keeper);
    std::fs::write(path.with_extension("opening"), []).expect("written");
    let (mut keeper, opened) = Keeper::open(&path, &journal, &books_key()).expect("opened");
    assert_eq!(opened, Opened::Rebuilt("the last attempt to open it did not finish"));
    follow_all(&mut keeper, &journal).expect("followed");
    keeper.commit(&journal).expect("committed");
    drop(keeper);
    assert_eq!(Keeper::open(&path, &journal, &books_key()).expect("opened").1, Opened::Continued);
}

type Entries = TableDefinition<'static, u64, &'static [u8]>;

/// A missing or swapped entry is detected when it is read: no answer, no further record, no commit, and no panic.
#[test]
fn entries_that_are_not_theirs_are_noticed() {
    let mut dice = Dice::new(11);
    let records = tell_unlent(13_000, &mut dice);
    let folder = tempfile::tempdir().expect("a folder");
    let (sound, path) = (folder.path().join("sound"), folder.path().join("books"));
    let journal = journal_of(&records);
    let (mut keeper, _) = Keeper::open(&sound, &journal, &books_key()).expect("opened");
    keeper.follow(&journal, records.len() as u64 * 9 / 10).expect("followed");
    keeper.commit(&journal).expect("committed");
    let (from, to) = (records[0].stamp, keeper.books.last_stamp());
    drop(keeper);
    for (table, swap) in [("segments", false), ("segments", true), ("rows", false), ("rows", true)] {
        std::fs::copy(&sound, &path).expect("copied");
        let database = redb::Database::open(&path).expect("opened");
        let writing = database.begin_write().expect("writing");
        {
            let mut entries = writing.open_table(Entries::new(table)).expect("a table");
            let all: Vec<(u64, Vec<u8>)> = entries
                .iter()
                .expect("entries")
                .map(|entry| entry.map(|(key, value)| (key.value(), value.value().to_vec())).expect("an entry"))
                .collect();
            for (i, (key, _)) in all.iter().enumerate() {
                if swap {
                    let other = &all[(i + 1) % all.len()].1;
                    entries.insert(key, other.as_slice()).expect("written");
                } else {
                    entries.remove(key).expect("removed");
                }
            }
        }
        writing.commit().expect("committed");
        drop(database);
        let (mut keeper, opened) = Keeper::open(&path, &journal, &books_key()).expect("opened");
        assert_eq!(opened, Opened::Continued, "they are not looked at before they are needed");
        // From rows if told apart by user, else from segments.
        let dim = if table == "rows" { Dim::User } else { Dim::Tenant };
        let mut question = Question::over(Window::new(from, to), &[dim]);
        question.borders = (0..50).map(|i| Instant(from.0 + (to.0 - from.0) / 49 * i)).collect();
        assert_eq!(keeper.books.usage(&question).map(drop), Err(BooksError::Damaged), "{table}, {swap}");
        assert_eq!(keeper.books.peaks(&question).map(drop), Err(BooksError::Damaged), "{table}, {swap}");
        assert_eq!(keeper.books.cost(&question).map(drop), Err(BooksError::Damaged), "{table}, {swap}");
        let capacity = keeper.books.capacity(question.window(), true, true, |_, _, _| true);
        assert_eq!(capacity.map(drop), Err(BooksError::Damaged), "{table}, {swap}");
        assert!(matches!(follow_all(&mut keeper, &journal), Err(BooksError::Damaged)));
        assert!(matches!(keeper.commit(&journal), Err(BooksError::Damaged)));
    }
}

/// Changes entries of a file with the store's own checksums made right.
fn tamper(path: &Path, table: &'static str, change: impl FnOnce(&mut redb::Table<'_, u64, &'static [u8]>)) {
    let database = redb::Database::open(path).expect("opened");
    let writing = database.begin_write().expect("writing");
    change(&mut writing.open_table(Entries::new(table)).expect("a table"));
    writing.commit().expect("committed");
}

fn entries_of(path: &Path, table: &'static str) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    tamper(path, table, |entries| {
        let found = entries.iter().expect("entries").map(|entry| entry.expect("an entry"));
        all.extend(found.map(|(key, value)| (key.value(), value.value().to_vec())));
    });
    all
}

/// Whether nothing is answered from the file: it is discarded at once, or what is read from it is.
fn is_not_believed(path: &Path, journal: &MemoryJournal, records: &[Record]) -> bool {
    let (mut keeper, opened) = Keeper::open(path, journal, &books_key()).expect("opened");
    if opened != Opened::Continued {
        return true;
    }
    let window = Window::new(records[0].stamp, keeper.books.last_stamp());
    let ask = |dim| {
        // Many borders, so that blocks in the middle are read as well.
        let mut question = Question::over(window, &[dim]);
        let (from, to) = (window.from.0, window.to.0);
        question.borders = (0..50).map(|i| Instant(from + (to - from) / 49 * i)).collect();
        keeper.books.usage(&question).map(drop)
    };
    let (by_user, by_tenant) = (ask(Dim::User), ask(Dim::Tenant));
    let most = 1 + records.len() as u64;
    let found: Result<Vec<_>, _> = (0..most)
        .map(|number| {
            let lease = keeper.books.lease(leasehold_model::LeaseNo(number));
            let story = keeper.books.allocation(leasehold_model::AllocationNo(number));
            lease.map(drop).and(story.map(drop))
        })
        .collect();
    let nodes = keeper.books.check();
    let followed = follow_all(&mut keeper, journal);
    [by_user, by_tenant, found.map(drop), nodes, followed].contains(&Err(BooksError::Damaged))
}

/// What somebody else wrote into the file is not believed, although every checksum fits (issue 13).
#[test]
fn forged_entries_are_not_believed() {
    let mut dice = Dice::new(12);
    let records = tell_unlent(9_000, &mut dice);
    let folder = tempfile::tempdir().expect("a folder");
    let (older, newer) = (folder.path().join("older"), folder.path().join("newer"));
    let (other, path) = (folder.path().join("other"), folder.path().join("books"));
    let journal = journal_of(&records);
    let all = records.len() as u64;
    let (mut keeper, _) = Keeper::open(&newer, &journal, &books_key()).expect("opened");
    keeper.follow(&journal, all / 2).expect("followed");
    keeper.commit(&journal).expect("committed");
    std::fs::copy(&newer, &older).expect("copied");
    keeper.follow(&journal, all / 3).expect("followed");
    keeper.commit(&journal).expect("committed");
    drop(keeper);
    let (mut keeper, _) = Keeper::open(&other, &journal, &books_key()).expect("opened");
    keeper.follow(&journal, all / 2 + all / 3).expect("followed");
    keeper.commit(&journal).expect("committed");
    drop(keeper);

    let fresh = || std::fs::copy(&newer, &path).expect("copied");
    fresh();
    assert!(!is_not_believed(&path, &journal, &records), "what was not touched is believed");
    for table in ["segments", "rows", "heads", "finder", "stories", "state"] {
        let entries = entries_of(&newer, table);
        if table == "stories" && entries.is_empty() {
            continue;
        }
        // One byte of a body.
        fresh();
        tamper(&path, table, |stored| {
            for (key, mut bytes) in entries.clone() {
                *bytes.last_mut().expect("bytes") ^= 1;
                stored.insert(key, bytes.as_slice()).expect("written");
            }
        });
        assert!(is_not_believed(&path, &journal, &records), "{table}: altered");
        // The same entries of another file of the same journal and secret.
        fresh();
        let foreign = entries_of(&other, table);
        tamper(&path, table, |stored| {
            for (key, bytes) in &foreign {
                stored.insert(key, bytes.as_slice()).expect("written");
            }
        });
        assert!(is_not_believed(&path, &journal, &records), "{table}: of another file");
        // None at all.
        fresh();
        tamper(&path, table, |stored| stored.retain(|_, _| false).expect("removed"));
        assert!(is_not_believed(&path, &journal, &records), "{table}: removed");
    }
    // What is rewritten in place, as it was before.
    for table in ["finder", "state"] {
        let (before, now) = (entries_of(&older, table), entries_of(&newer, table));
        let rewritten: Vec<_> =
            before.iter().filter(|entry| now.iter().any(|n| n.0 == entry.0 && n != *entry)).collect();
        assert!(!rewritten.is_empty(), "{table}");
        for (key, bytes) in rewritten {
            fresh();
            tamper(&path, table, |stored| drop(stored.insert(key, bytes.as_slice()).expect("written")));
            assert!(is_not_believed(&path, &journal, &records), "{table}: {key} as it was before");
        }
    }
    // Another secret.
    fresh();
    let stranger = Secret::new([8; 32]);
    let (_, opened) = Keeper::open(&path, &journal, stranger.books()).expect("opened");
    assert!(matches!(opened, Opened::Rebuilt(_)));
}

/// Unreadable segments that a late change reopens before any question was asked.
#[test]
fn a_change_in_a_block_that_is_gone() {
    let records = late_loss().records;
    let loss = records.iter().position(|record| matches!(record.body, Body::NodeLost(_))).expect("a loss");
    let folder = tempfile::tempdir().expect("a folder");
    let (path, journal) = (folder.path().join("books"), journal_of(&records));
    let (mut keeper, _) = Keeper::open(&path, &journal, &books_key()).expect("opened");
    keeper.follow(&journal, loss as u64).expect("followed");
    keeper.commit(&journal).expect("committed");
    drop(keeper);
    let database = redb::Database::open(&path).expect("opened");
    let writing = database.begin_write().expect("writing");
    writing.delete_table(Entries::new("segments")).expect("deleted");
    writing.commit().expect("committed");
    drop(database);
    let (mut keeper, opened) = Keeper::open(&path, &journal, &books_key()).expect("opened");
    assert_eq!(opened, Opened::Continued);
    assert_eq!(follow_all(&mut keeper, &journal), Err(BooksError::Damaged));
    // Whoever still asks gets no answer, and nobody falls over.
    for dims in [&[][..], &[Dim::Tenant], &[Dim::Node]] {
        let mut question = Question::over(Window::new(records[0].stamp, keeper.books.last_stamp()), dims);
        let (from, to) = (question.borders[0].0, question.borders[1].0);
        question.borders = (0..40).map(|i| Instant(from + (to - from) / 39 * i)).collect();
        let answers = [
            keeper.books.usage(&question).map(drop),
            keeper.books.peaks(&question).map(drop),
            keeper.books.cost(&question).map(drop),
        ];
        assert!(answers.iter().all(|answer| *answer == Err(BooksError::Damaged)), "{answers:?}");
    }
    assert_eq!(keeper.commit(&journal), Err(BooksError::Damaged));
}

/// One flipped byte: the answers are correct, or there are none and the books are rebuilt. They are never wrong, even
/// after another commit.
#[test]
fn a_damaged_file_never_answers_wrongly() {
    let mut tally = (0, 0, 0);
    for seed in 0..from_env("LEASEHOLD_ACCOUNTS_FILES", 30) / 3 {
        let mut dice = Dice::new(seed ^ 0xf11b);
        let records = some_records(seed + 1, &mut dice);
        let journal = journal_of(&records);
        let asker = Asker::new(&records);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("books");
        let (mut keeper, _) = Keeper::open(&path, &journal, &books_key()).expect("opened");
        // Left half-way, so that opened blocks of the file are changed later.
        keeper.follow(&journal, records.len() as u64 * 3 / 4).expect("followed");
        keeper.commit(&journal).expect("committed");
        drop(keeper);
        let sound = std::fs::read(&path).expect("read");
        let used: Vec<usize> = (0..sound.len()).filter(|place| sound[*place] != 0).collect();
        for flip in 0..8 {
            let place = if dice.one_in(4) { dice.index(sound.len()) } else { *dice.pick(&used) };
            let mut bytes = sound.clone();
            bytes[place] ^= 1 << dice.below(8);
            std::fs::write(&path, &bytes).expect("written");
            let so = format!("seed {seed}, flip {flip} at byte {place} of {}", sound.len());
            match look(&path, &journal, &asker, &mut dice, &so) {
                Look::Right => tally.0 += 1,
                Look::Rebuilt => tally.1 += 1,
                Look::Refused => tally.2 += 1,
            }
        }
    }
    println!("{} right, {} rebuilt, {} gave no answer", tally.0, tally.1, tally.2);
    assert!(tally.0 > 0 && tally.1 > 0, "{tally:?}: some flips are harmless, some are not");
}

enum Look {
    Right,
    Rebuilt,
    Refused,
}

fn look(path: &Path, journal: &MemoryJournal, asker: &Asker, dice: &mut Dice, so: &str) -> Look {
    let (mut keeper, opened) =
        Keeper::open(path, journal, &books_key()).unwrap_or_else(|error| panic!("{so}: {error}"));
    let mut seen = if opened == Opened::Continued { Look::Right } else { Look::Rebuilt };
    for round in 0..2 {
        let followed = follow_all(&mut keeper, journal);
        let mut refused = followed == Err(BooksError::Damaged);
        assert!(refused || followed.is_ok(), "{so}: {followed:?}");
        for _ in 0..if refused { 0 } else { 4 } {
            for answer in [asker.compare(&keeper.books, dice), asker.compare_capacity(&keeper.books, dice)] {
                match answer {
                    Ok(()) => {}
                    Err(None) => refused = true,
                    Err(Some(wrong)) => panic!("{so}, round {round}: {wrong}"),
                }
            }
        }
        let committed = keeper.commit(journal);
        if refused {
            assert!(keeper.books.check().is_err() && committed.is_err(), "{so}: what is damaged is not committed");
            seen = Look::Refused;
        }
        drop(keeper);
        if refused || committed.is_err() {
            std::fs::remove_file(path).expect("removed");
        }
        keeper = Keeper::open(path, journal, &books_key()).unwrap_or_else(|error| panic!("{so}: {error}")).0;
    }
    seen
}
