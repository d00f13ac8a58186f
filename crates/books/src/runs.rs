//! A sorted set of small keys in the file, for indexes that grow with history.
//!
//! The keys of a commit are a run: pages of keys in order, which are never rewritten. Runs of similar size are merged,
//! so that there are few of them (the size at least doubles from one to the one before it), and memory holds only where
//! each run begins. A key is found by a binary search over the pages of each run.

use crate::facts::BooksError;
use crate::seal::Seal;
use crate::store::{self, Definition, Store};
use leasehold_meter::column::Column;
use leasehold_model::codec::{DecodeError, Reader, put_varint};
use leasehold_model::{Month, fields};
use std::collections::BTreeSet;

/// A key: numbers that are compared one after the other. Numbers that are equal in a whole page take no space.
pub(crate) type RunKey = [u64; 5];

/// Keys in a page.
const PAGE_KEYS: usize = 256;

fields! {
    /// A run: so many pages from one on.
    #[derive(Copy)]
    pub struct Run { pub first: u64, pub pages: u64, pub keys: u64 }
}

fields! {
    /// The runs of an index in the file, the oldest and largest first.
    #[derive(Default)]
    pub struct RunHeads { pub runs: Vec<Run>, pub next_page: u64 }
}

/// A month as a part of a key: later ones have greater numbers.
pub(crate) fn month_number(month: Month) -> u64 {
    u64::from(month.year()) * 12 + u64::from(month.month())
}

#[derive(Default)]
pub(crate) struct Runs {
    pub(crate) heads: RunHeads,
    /// Keys that are not in the file yet.
    fresh: BTreeSet<RunKey>,
}

fn encode(keys: &[RunKey]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(keys.len() as u64, &mut out);
    for part in 0..5 {
        Column::put(keys.iter().map(|key| key[part]), &mut out);
    }
    out
}

fn decode(bytes: &[u8]) -> Result<Vec<RunKey>, DecodeError> {
    let mut r = Reader::new(bytes);
    let count = r.count(PAGE_KEYS)?;
    let mut keys = vec![RunKey::default(); count];
    for part in 0..5 {
        let column = Column::get(count, &mut r)?;
        keys.iter_mut().enumerate().for_each(|(place, key)| key[part] = column.at(place));
    }
    r.finish()?;
    Ok(keys)
}

/// One page. Pages are never absent, and never empty.
fn page(table: Definition, store: &Store, number: u64) -> Result<Vec<RunKey>, BooksError> {
    let keys = decode(&store.expect_entry(table, number)?).map_err(|_| store.damage())?;
    if keys.is_empty() { Err(store.damage()) } else { Ok(keys) }
}

/// The keys of a run, in order.
struct Walk<'s> {
    table: Definition,
    store: &'s Store,
    /// Pages that were not read yet.
    next: u64,
    end: u64,
    keys: std::vec::IntoIter<RunKey>,
}

impl Walk<'_> {
    fn next(&mut self) -> Result<Option<RunKey>, BooksError> {
        loop {
            if let Some(key) = self.keys.next() {
                return Ok(Some(key));
            }
            if self.next == self.end {
                return Ok(None);
            }
            self.keys = page(self.table, self.store, self.next)?.into_iter();
            self.next += 1;
        }
    }
}

impl Run {
    fn walk(self, table: Definition, store: &Store) -> Walk<'_> {
        let keys = Vec::new().into_iter();
        Walk { table, store, next: self.first, end: self.first + self.pages, keys }
    }

    /// Adds the keys from one on, up to another, but no more than `most`.
    fn collect(
        self,
        (table, store): (Definition, &Store),
        (from, to): (&RunKey, &RunKey),
        most: usize,
        found: &mut Vec<RunKey>,
    ) -> Result<(), BooksError> {
        // The last page that begins at or before `from`, or the first page.
        let (mut low, mut high) = (self.first, self.first + self.pages);
        let mut known = None;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let keys = page(table, store, middle)?;
            if keys[0] <= *from {
                (low, known) = (middle, Some(keys));
            } else {
                high = middle;
            }
        }
        let known = known.map_or_else(|| page(table, store, low), Ok)?;
        let mut walk = Walk { table, store, next: low + 1, end: self.first + self.pages, keys: known.into_iter() };
        let mut taken = 0;
        while let Some(key) = walk.next()?.filter(|key| key <= to && taken < most) {
            if key >= *from {
                found.push(key);
                taken += 1;
            }
        }
        Ok(())
    }
}

impl Runs {
    /// With pages from a number on.
    pub(crate) fn from_page(next_page: u64) -> Self {
        Self { heads: RunHeads { runs: Vec::new(), next_page }, fresh: BTreeSet::new() }
    }

    /// The number of keys.
    pub(crate) fn keys(&self) -> u64 {
        self.heads.runs.iter().map(|run| run.keys).sum::<u64>() + self.fresh.len() as u64
    }

    pub(crate) fn add(&mut self, key: RunKey) {
        self.fresh.insert(key);
    }

    /// The first keys from one on, up to another: in order, and no more than `most`.
    pub(crate) fn range(
        &self,
        table: Definition,
        store: &Store,
        (from, to): (RunKey, RunKey),
        most: usize,
    ) -> Result<Vec<RunKey>, BooksError> {
        let mut found: Vec<RunKey> = self.fresh.range(from..=to).take(most).copied().collect();
        for run in &self.heads.runs {
            run.collect((table, store), (&from, &to), most, &mut found)?;
        }
        found.sort_unstable();
        found.truncate(most);
        Ok(found)
    }

    /// Adds the keys of a range in which all keys begin with the same digest: what is new, and what certain runs have.
    /// Digests are spread evenly, so that a page is found where the digest says.
    pub(crate) fn range_of_digests(
        &self,
        table: Definition,
        store: &Store,
        (from, to): (RunKey, RunKey),
        runs: impl Iterator<Item = usize>,
        found: &mut Vec<RunKey>,
    ) -> Result<(), BooksError> {
        found.extend(self.fresh.range(from..=to));
        for run in runs.filter_map(|place| self.heads.runs.get(place)) {
            let guess = (u128::from(from[0]) * u128::from(run.pages)) >> 64;
            let mut number = run.first + u64::try_from(guess).expect("below the number of pages");
            let mut keys = page(table, store, number)?;
            while number > run.first && keys[0] > from {
                number -= 1;
                keys = page(table, store, number)?;
            }
            loop {
                found.extend(keys.iter().filter(|key| **key >= from && **key <= to));
                number += 1;
                if number == run.first + run.pages || keys.last().is_some_and(|last| *last > to) {
                    break;
                }
                keys = page(table, store, number)?;
            }
        }
        Ok(())
    }

    /// Writes what is new as a run, merged with the runs before it that are not much larger.
    pub(crate) fn write(
        &self,
        table: Definition,
        store: &Store,
        seal: &Seal,
        to: &mut redb::Table<'_, u64, &'static [u8]>,
    ) -> Result<RunHeads, BooksError> {
        self.write_noting(table, store, seal, to, &mut |_, _| {})
    }

    /// The same; calls `note` with the number of keys of the new run and each of them.
    pub(crate) fn write_noting(
        &self,
        table: Definition,
        store: &Store,
        seal: &Seal,
        to: &mut redb::Table<'_, u64, &'static [u8]>,
        note: &mut dyn FnMut(u64, &RunKey),
    ) -> Result<RunHeads, BooksError> {
        let mut heads = self.heads.clone();
        if self.fresh.is_empty() {
            return Ok(heads);
        }
        let mut keys = self.fresh.len() as u64;
        let mut merged = Vec::new();
        while let Some(last) = heads.runs.pop_if(|last| last.keys <= 2 * keys) {
            keys += last.keys;
            merged.push(last);
        }
        let io = |error: redb::StorageError| BooksError::Io(error.to_string());
        let mut run = Run { first: heads.next_page, pages: 0, keys: 0 };
        let mut put = |keys: &mut Vec<RunKey>| {
            if keys.is_empty() {
                return Ok(());
            }
            store::write(to, seal, table, run.first + run.pages, None, &encode(keys)).map_err(io)?;
            run.pages += 1;
            run.keys += keys.len() as u64;
            keys.clear();
            Ok::<_, BooksError>(())
        };
        let mut walks: Vec<Walk<'_>> = merged.iter().map(|run| run.walk(table, store)).collect();
        let mut fresh = self.fresh.iter().copied();
        // The next key of each source; the last source is what is new.
        let mut next = walks.iter_mut().map(Walk::next).collect::<Result<Vec<_>, _>>()?;
        next.push(fresh.next());
        let mut gathered = Vec::with_capacity(PAGE_KEYS);
        while let Some((least, source)) =
            next.iter().enumerate().filter_map(|(source, key)| key.map(|key| (key, source))).min()
        {
            note(keys, &least);
            gathered.push(least);
            next[source] = match walks.get_mut(source) {
                Some(walk) => walk.next()?,
                None => fresh.next(),
            };
            if gathered.len() == PAGE_KEYS {
                put(&mut gathered)?;
            }
        }
        put(&mut gathered)?;
        for old in &merged {
            for number in old.first..old.first + old.pages {
                store::remove(to, number).map_err(io)?;
            }
        }
        assert_eq!(run.keys, keys, "merging keeps every key");
        heads.next_page += run.pages;
        heads.runs.push(run);
        Ok(heads)
    }

    /// Everything is in the file.
    pub(crate) fn written(&mut self, heads: RunHeads) {
        self.heads = heads;
        self.fresh.clear();
    }
}
