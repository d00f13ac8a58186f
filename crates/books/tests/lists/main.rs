//! Compares lists of leases and allocations with a pass over all records.

mod asked;
mod naive;
mod timelines;
mod world;

use asked::{compare_allocations, compare_leases, compare_one};
use leasehold_books::{AllocationQuestion, Books, BooksError, Filter, Keeper, LeaseQuestion, Opened};
use leasehold_journal::{Journal, Keys, MacKey, MemoryJournal, Secret};
use leasehold_meter::Window;
use leasehold_model::{Batch, Instant, LeaseNo, NodeNo, Record};
use leasehold_sim::{Dice, tell_seed};
use naive::Naive;
use redb::{ReadableTable, TableDefinition};
use std::path::Path;
use std::sync::Arc;
use world::{NODES, long_history};

fn books_key() -> MacKey {
    Secret::new([7; 32]).books().clone()
}

fn books_of(records: &[Record]) -> Books {
    let mut books = Keeper::in_memory().books;
    records.iter().for_each(|record| books.apply(record).unwrap_or_else(|error| panic!("{error}\n  {record:?}")));
    books
}

fn keys() -> Keys {
    Keys::new("sim.example", &[9; 32]).expect("a valid origin")
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

/// LEASEHOLD_LISTS_SEEDS and LEASEHOLD_LISTS_FROM choose other seeds.
#[test]
fn lists_of_the_simulators_histories_are_what_a_pass_over_all_records_gives() {
    let from_env = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let from: u64 = from_env("LEASEHOLD_LISTS_FROM", 0);
    for seed in from..from + from_env("LEASEHOLD_LISTS_SEEDS", 200) {
        let (_, mut records) = tell_seed(seed, 300).unwrap_or_else(|failure| panic!("{failure}"));
        let mut dice = Dice::new(seed ^ 0x1157);
        if dice.one_in(2) {
            records.truncate(1 + dice.index(records.len()));
        }
        println!("seed {seed}, {} records", records.len());
        let (books, naive) = (books_of(&records), Naive::of(&records));
        for _ in 0..20 {
            compare_leases(&books, &naive, &mut dice);
            compare_allocations(&books, &naive, &mut dice);
            compare_one(&books, &naive, &mut dice);
        }
    }
}

/// A long history, applied in several runs with commits between them, then queried.
#[test]
fn lists_of_a_long_history_are_the_same_after_any_restart_and_read_little() {
    let records = long_history(200_000, 7, keys().public_keys()[0]);
    let journal = journal_of(&records);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("books");
    let mut dice = Dice::new(5);
    let (mut keeper, opened) = Keeper::open(&path, &journal, &books_key()).expect("opened");
    assert_eq!(opened, Opened::New);
    while keeper.books.size() < records.len() as u64 {
        keeper.follow(&journal, 1 + dice.below(150_000)).expect("followed");
        if dice.percent(70) {
            keeper.commit(&journal).expect("committed");
        }
        if dice.percent(50) {
            // What was not committed is followed again; in mid-history the answers are those of mid-history.
            drop(keeper);
            keeper = Keeper::open(&path, &journal, &books_key()).expect("opened").0;
            let naive = Naive::of(&records[..usize::try_from(keeper.books.size()).expect("in memory")]);
            (0..3).for_each(|_| compare_leases(&keeper.books, &naive, &mut dice));
        }
    }
    let naive = Naive::of(&records);
    let ask = |books: &Books, dice: &mut Dice, times: usize| {
        for _ in 0..times {
            compare_leases(books, &naive, dice);
            compare_allocations(books, &naive, dice);
            compare_one(books, &naive, dice);
        }
    };
    ask(&keeper.books, &mut dice, 20);
    keeper.commit(&journal).expect("committed");
    ask(&keeper.books, &mut dice, 15);
    drop(keeper);
    let (keeper, opened) = Keeper::open(&path, &journal, &books_key()).expect("opened");
    assert_eq!(opened, Opened::Continued);
    ask(&keeper.books, &mut dice, 40);
    reads_little(&keeper.books, &records, &mut dice);
}

/// The number of reads depends on the answer, not on the history: here there are about fifty chunks, fifty index pages
/// and five hundred lists by node.
fn reads_little(books: &Books, records: &[Record], dice: &mut Dice) {
    let (first, last) = (records[0].stamp, records[records.len() - 1].stamp);
    for _ in 0..40 {
        let at = Instant(dice.between(first.0, last.0));
        let window = Some(Window::new(at, Instant(at.0 + 1)));
        let filter = Filter { node: Some(NodeNo(dice.small(NODES))), ..Filter::default() };
        let question = LeaseQuestion { filter, window, limit: 1000, ..LeaseQuestion::default() };
        let before = books.reads();
        let page = books.leases(&question, |_| true).expect("an answer");
        let read = books.reads() - before;
        assert_eq!(page.next, None);
        // Its lists, of which there are one or two for a node, and for each lease at most a page and a chunk.
        let most = 2 + 2 * (page.leases.len() as u64 + 4);
        assert!(read <= most, "{read} entries for {} leases", page.leases.len());
    }
    // The first page of everything is in a few chunks, wherever it begins.
    let before = books.reads();
    let page = books.leases(&LeaseQuestion { limit: 100, ..LeaseQuestion::default() }, |_| true).expect("an answer");
    assert_eq!(page.leases.len(), 100);
    assert!(books.reads() - before <= 60, "{} entries for a page", books.reads() - before);
}

/// Two entries of the file that were swapped: each checksum is valid only at its own position.
#[test]
fn an_entry_at_another_place_is_noticed() {
    let records = long_history(12_000, 3, keys().public_keys()[0]);
    let journal = journal_of(&records);
    for table in ["finder", "rows", "stories", "correlations"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("books");
        let (mut keeper, _) = Keeper::open(&path, &journal, &books_key()).expect("opened");
        keeper.follow(&journal, u64::MAX / 2).expect("followed");
        keeper.commit(&journal).expect("committed");
        drop(keeper);
        swap_first_two(&path, table);
        let (keeper, opened) = Keeper::open(&path, &journal, &books_key()).expect("opened");
        assert_eq!(opened, Opened::Continued);
        let answer = match table {
            "stories" => {
                let question = AllocationQuestion { limit: 1000, ..AllocationQuestion::default() };
                keeper.books.allocations(&question, |_| true).map(drop)
            }
            "finder" => keeper.books.lease(LeaseNo(0)).map(drop),
            "correlations" => timelines::ids_of(&records)
                .iter()
                .try_for_each(|id| keeper.books.timeline(&timelines::question(*id, None, 100), |_, _| true).map(drop)),
            _ => keeper.books.leases(&LeaseQuestion { limit: 10, ..LeaseQuestion::default() }, |_| true).map(drop),
        };
        assert_eq!(answer, Err(BooksError::Damaged), "{table}");
        assert!(keeper.books.check().is_err(), "{table}: nothing more is answered");
    }
}

fn swap_first_two(path: &Path, table: &str) {
    let file = redb::Database::create(path).expect("a file");
    let writing = file.begin_write().expect("a transaction");
    {
        let mut entries = writing.open_table(TableDefinition::<u64, &[u8]>::new(table)).expect("a table");
        let first_two = entries.iter().expect("entries").take(2).map(|entry| {
            let (key, value) = entry.expect("an entry");
            (key.value(), value.value().to_vec())
        });
        let first_two: Vec<(u64, Vec<u8>)> = first_two.collect();
        let [(a, of_a), (b, of_b)] = &first_two[..] else { panic!("two entries in {table}") };
        entries.insert(a, of_b.as_slice()).expect("written");
        entries.insert(b, of_a.as_slice()).expect("written");
    }
    writing.commit().expect("written");
}
