//! Compares the books with the oracle's accounts, which compute every answer by a pass over all records.

mod asks;
mod capacity;
mod directed;
mod files;
mod folded;
mod frozen;
mod history;
mod ledger;
mod random;
mod spice;
mod waste;

use asks::Asker;
use leasehold_books::{Books, Keeper};
use leasehold_engine::State;
use leasehold_model::Record;
use leasehold_oracle::accounts::Accounts;
use leasehold_sim::{Dice, tell_seed};
use spice::spiced;

pub(crate) fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

pub(crate) fn books_of(records: &[Record]) -> Books {
    let mut books = Keeper::in_memory().books;
    records.iter().for_each(|record| books.apply(record).unwrap_or_else(|error| panic!("{error}\n  {record:?}")));
    books
}

/// Asks a number of questions of each kind.
pub(crate) fn check(records: &[Record], books: &Books, questions: u32, dice: &mut Dice) -> Result<(), String> {
    let asker = Asker::new(records);
    let given = |answer: Result<(), Option<String>>| answer.map_err(|why| why.unwrap_or("no answer".to_owned()));
    for _ in 0..questions {
        given(asker.compare(books, dice))?;
    }
    for _ in 0..questions.div_ceil(3) {
        given(asker.compare_capacity(books, dice))?;
    }
    Ok(())
}

/// Checks that the engine's reserved capacity on each node equals the accounts; returns how often it was not zero.
fn compare_reserved(records: &[Record]) -> Result<usize, String> {
    let accounts = Accounts::of(records);
    let mut state = State::new();
    let mut found = 0;
    for (place, record) in records.iter().enumerate() {
        state.apply(record).map_err(|error| error.to_string())?;
        if records.get(place + 1).is_some_and(|next| next.stamp == record.stamp) {
            continue;
        }
        for (node, class) in state.nodes().flat_map(|node| node.classes.iter().map(move |class| (node, class.class))) {
            let ours: u64 = state.reserved(node.number, class).iter().sum();
            let theirs = accounts.reserved_at(node.number, class, record.stamp);
            if ours != theirs {
                return Err(format!("record {place}, {} {class:?}: engine {ours}, accounts {theirs}", node.number));
            }
            found += usize::from(ours > 0);
        }
    }
    Ok(found)
}

/// Checks one seed of the simulator at the end and at some earlier record; returns how often something was reserved.
fn one_seed(seed: u64) -> usize {
    let (_, records) = tell_seed(seed, 440).unwrap_or_else(|failure| panic!("{failure}"));
    let reserved = compare_reserved(&records).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    let mut dice = Dice::new(seed ^ 0x00ac_c075);
    let records = spiced(records, &mut dice);
    let books = books_of(&records);
    check(&records, &books, 12, &mut dice).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    let part = &records[..1 + dice.index(records.len())];
    let books = books_of(part);
    check(part, &books, 6, &mut dice).unwrap_or_else(|what| panic!("seed {seed}, {} records: {what}", part.len()));
    reserved
}

/// In two tests that run in parallel. LEASEHOLD_ACCOUNTS_SEEDS and LEASEHOLD_ACCOUNTS_FROM choose other seeds.
fn half(which: u64) {
    let count = from_env("LEASEHOLD_ACCOUNTS_SEEDS", 2000) / 2;
    let from = from_env("LEASEHOLD_ACCOUNTS_FROM", 0) + which * count;
    let reserved: usize = (from..from + count).map(one_seed).sum();
    assert!(reserved as u64 > count, "only {reserved} times anything was reserved in {count} seeds");
}

#[test]
fn first_half() {
    half(0);
}

#[test]
fn second_half() {
    half(1);
}
