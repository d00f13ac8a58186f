//! An index from the number of a closed lease to its row.
//!
//! Numbers are assigned in order without gaps, so the index is an array. It is split into pages; changes since the
//! last commit are in memory until the next commit writes them into their pages.

use crate::bytes::{optional, present};
use crate::facts::{Books, BooksError};
use crate::seal::Commit;
use crate::store::{FINDER, Store};
use leasehold_meter::Window;
use leasehold_meter::column::Column;
use leasehold_model::codec::{DecodeError, Reader};
use leasehold_model::{Instant, LeaseNo};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Leases of one page.
const PAGE_PLACES: usize = 4096;
const PAGE_LEASES: u64 = PAGE_PLACES as u64;

/// The index of a lease in its page.
fn in_page(lease: u64) -> usize {
    usize::try_from(lease % PAGE_LEASES).expect("below a small constant")
}

leasehold_model::fields! {
    /// The summary of a page, kept in memory.
    #[derive(Copy)]
    pub struct PageHead {
        /// When the first of its leases was granted, and the sequence of that record.
        pub earliest: Instant,
        pub granted: u64,
        /// When the last of its closed leases ended.
        pub latest: Instant,
        /// The commit that wrote the page last; its cursor is 0 if none did.
        pub cursor: u64,
        pub hash: [u8; 32],
    }
}

/// Where the row of a closed lease is, and the sequence of its grant.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: u64,
    granted: u64,
}

#[derive(Default)]
pub(crate) struct Finder {
    pub(crate) pages: Vec<PageHead>,
    /// Positions that are not in the file yet, and the sequences of the grants.
    fresh: BTreeMap<u64, Entry>,
}

impl Finder {
    /// Adds a granted lease.
    pub(crate) fn granted(&mut self, lease: LeaseNo, at: Instant, sequence: u64) {
        let page = usize::try_from(lease.0 / PAGE_LEASES).expect("fewer than 2^64 pages");
        while self.pages.len() <= page {
            self.pages.push(PageHead { earliest: at, granted: sequence, latest: Instant(0), cursor: 0, hash: [0; 32] });
        }
    }

    /// Sets the position of a lease's row, and the sequence of its grant.
    pub(crate) fn closed(&mut self, lease: LeaseNo, ended: Instant, place: u64, granted: u64) {
        self.fresh.insert(lease.0, Entry { place, granted });
        if let Some(head) = usize::try_from(lease.0 / PAGE_LEASES).ok().and_then(|page| self.pages.get_mut(page)) {
            head.latest = head.latest.max(ended);
        }
    }

    /// The changed pages with their bytes, for a commit.
    pub(crate) fn dirty(&self, store: &Store) -> Result<Vec<(u64, Vec<u8>)>, BooksError> {
        let pages: BTreeSet<u64> = self.fresh.keys().map(|lease| lease / PAGE_LEASES).collect();
        let first =
            |page: u64| usize::try_from(page).ok().and_then(|page| self.pages.get(page)).map_or(0, |head| head.granted);
        pages.into_iter().map(|page| Ok((page, encode(&self.page(page, store)?, first(page))))).collect()
    }

    /// The heads of all pages, once a commit has written those that have changed.
    pub(crate) fn heads_after(&self, commit: &Commit) -> Vec<PageHead> {
        let mut pages = self.pages.clone();
        for lease in self.fresh.keys() {
            if let Some(head) = usize::try_from(lease / PAGE_LEASES).ok().and_then(|page| pages.get_mut(page)) {
                (head.cursor, head.hash) = (commit.cursor, commit.hash);
            }
        }
        pages
    }

    pub(crate) fn written(&mut self, commit: &Commit) {
        self.pages = self.heads_after(commit);
        self.fresh.clear();
    }

    /// The leases of a page, in order of number; `None` for leases that are not closed.
    fn page(&self, page: u64, store: &Store) -> Result<Vec<Option<Entry>>, BooksError> {
        let head = usize::try_from(page).ok().and_then(|page| self.pages.get(page));
        let written = head.map_or(Commit::default(), |head| Commit { cursor: head.cursor, hash: head.hash });
        let mut places = match store.entry_of_commit(FINDER, page)? {
            // An older version of the page, or one that a later state wrote, is not the page.
            Some((commit, bytes)) if commit == written => {
                decode(&bytes, head.map_or(0, |head| head.granted)).map_err(|_| store.damage())?
            }
            None if written.cursor == 0 => vec![None; PAGE_PLACES],
            _ => return Err(store.damage()),
        };
        let first = page * PAGE_LEASES;
        for (lease, entry) in self.fresh.range(first..first + PAGE_LEASES) {
            places[in_page(*lease)] = Some(*entry);
        }
        Ok(places)
    }
}

/// Positions, and the distances of the grants from the first one of the page.
fn encode(leases: &[Option<Entry>], first: u64) -> Vec<u8> {
    let mut out = Vec::new();
    Column::put(leases.iter().map(|lease| optional(lease.map(|entry| entry.place))), &mut out);
    Column::put(leases.iter().map(|lease| lease.map_or(0, |entry| entry.granted - first)), &mut out);
    out
}

fn decode(bytes: &[u8], first: u64) -> Result<Vec<Option<Entry>>, DecodeError> {
    let mut r = Reader::new(bytes);
    let (places, granted) = (Column::get(PAGE_PLACES, &mut r)?, Column::get(PAGE_PLACES, &mut r)?);
    r.finish()?;
    let entry = |lease: usize, place: u64| Entry { place, granted: first.wrapping_add(granted.at(lease)) };
    Ok((0..PAGE_PLACES).map(|lease| present(places.at(lease)).map(|place| entry(lease, place))).collect())
}

/// A closed lease and the position of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) place: u64,
    pub(crate) lease: u64,
}

impl Books {
    /// The positions of those of the leases that are closed; `leases` must be sorted.
    pub(crate) fn find(&self, leases: impl IntoIterator<Item = u64>) -> Result<Vec<Found>, BooksError> {
        let mut found = Vec::new();
        let mut open: Option<(u64, Vec<Option<Entry>>)> = None;
        for lease in leases {
            let page = lease / PAGE_LEASES;
            if page >= self.finder.pages.len() as u64 {
                break;
            }
            if open.as_ref().is_none_or(|(number, _)| *number != page) {
                open = Some((page, self.finder.page(page, &self.store)?));
            }
            let places = &open.as_ref().expect("just read").1;
            found.extend(places[in_page(lease)].map(|Entry { place, .. }| Found { place, lease }));
        }
        Ok(found)
    }

    /// The leases that the record with this sequence granted, live or closed, in order of number.
    pub(crate) fn granted_by(&self, sequence: u64) -> Result<Vec<LeaseNo>, BooksError> {
        let pages = &self.finder.pages;
        // A grant may go on in the next page, which begins with its sequence then.
        let after = pages.partition_point(|page| page.granted <= sequence);
        let before = pages[..after].partition_point(|page| page.granted < sequence).saturating_sub(1);
        let mut found = Vec::new();
        for page in before as u64..after as u64 {
            let first = page * PAGE_LEASES;
            let leases = self.finder.page(page, &self.store)?;
            let closed =
                (first..).zip(leases).filter(|(_, entry)| entry.is_some_and(|entry| entry.granted == sequence));
            found.extend(closed.map(|(lease, _)| LeaseNo(lease)));
            let open = self.open.range(LeaseNo(first)..LeaseNo(first + PAGE_LEASES));
            found.extend(open.filter(|(_, open)| open.row.life.sequence == sequence).map(|(lease, _)| *lease));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// The next range of at most `most` numbers, from `from` on, that may contain a closed lease in the window.
    pub(crate) fn stretch(&self, from: u64, most: u64, window: Window) -> Option<Range<u64>> {
        let pages = &self.finder.pages;
        let first = usize::try_from(from / PAGE_LEASES).ok()?;
        let begins = |page: &PageHead| page.earliest < window.to;
        let page = (first..pages.len()).find(|page| !begins(&pages[*page]) || pages[*page].latest >= window.from)?;
        if !begins(&pages[page]) {
            return None;
        }
        let from = from.max(page as u64 * PAGE_LEASES);
        let wanted = |page: &PageHead| begins(page) && page.latest >= window.from;
        let last = page + pages[page..].iter().take_while(|page| wanted(page)).count();
        Some(from..(last as u64 * PAGE_LEASES).min(from.saturating_add(most)))
    }
}
