//! Queries for leases, live or closed: one by its number, or those that were held within a window.
//!
//! Lists are in order of number, which is also the order of grants. Leases keep their numbers when they close, so a
//! cursor stays valid between pages.

use crate::ask::Filter;
use crate::chunk::{CHUNK_ROWS, ChunkHead, Depth};
use crate::facts::{Books, BooksError, Open, Phase};
use crate::finder::Found;
use crate::row::{End, Row};
use leasehold_meter::Window;
use leasehold_model::{Instant, LeaseNo, LeaseState};
use std::collections::BTreeMap;

/// A query for a list of leases. Fields that are not set match everything.
#[derive(Clone, Debug, Default)]
pub struct LeaseQuestion {
    pub filter: Filter,
    /// Matches leases that were held at some instant of the window.
    pub window: Option<Window>,
    pub standing: Option<LeaseState>,
    /// The page starts after this number.
    pub after: Option<LeaseNo>,
    /// The size of the page.
    pub limit: usize,
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeasePage {
    /// In order of number.
    pub leases: Vec<(Row, LeaseState)>,
    /// The cursor of the next page; none on the last page. A page that needs many reads ends early.
    pub next: Option<LeaseNo>,
}

/// Chunks that one page reads before it ends early, except for the rest of a batch.
const CHUNKS_READ_MAX: usize = 256;
/// Up to this number of chunks, all of them are read without further selection.
const FEW_CHUNKS: usize = 8;
/// Open leases that one page examines before it ends early.
const OPEN_LOOKED_MAX: usize = 200_000;
/// Closed leases of a node that are considered for one page.
const STAYS_MAX: usize = 50_000;
/// The most leases that are looked up one by one in a batch.
const IN_ORDER_MAX: usize = 1024;
/// Numbers that are examined in a batch, at first and at most.
const BATCH_FIRST: u64 = 1024;
const BATCH_MAX: u64 = 1 << 18;

const ALWAYS: Window = Window::new(Instant(0), Instant::MAX);

/// The rows of a page so far, and the number up to which it is complete.
struct Part {
    found: BTreeMap<LeaseNo, (Row, LeaseState)>,
    complete_to: u64,
}

impl Part {
    fn new() -> Self {
        Self { found: BTreeMap::new(), complete_to: u64::MAX }
    }

    /// Adds a lease; if the page overflows, the lowest numbers are kept.
    fn take(&mut self, row: Row, standing: LeaseState, limit: usize) {
        self.found.insert(row.lease, (row, standing));
        if self.found.len() > limit {
            self.found.pop_last();
            let last = self.found.last_key_value().map_or(0, |(lease, _)| lease.0);
            self.complete_to = self.complete_to.min(last);
        }
    }

    /// Whether the page is full with numbers below this one.
    fn is_full_before(&self, number: u64, limit: usize) -> bool {
        self.found.len() >= limit && self.found.last_key_value().is_none_or(|(last, _)| last.0 < number)
    }

    /// Marks that leases from this number on were not examined.
    fn stop_before(&mut self, number: u64) {
        self.complete_to = self.complete_to.min(number.saturating_sub(1));
    }
}

fn standing(open: &Open) -> LeaseState {
    match (open.phase, open.row.end) {
        (Phase::Held, _) if open.revoked.is_some() => LeaseState::Revoking,
        (Phase::Held, _) => LeaseState::Active,
        (Phase::TearingDown, End::Released | End::ReleasedEvicted | End::ReleasedByOwn | End::FailedStart) => {
            LeaseState::Releasing
        }
        (Phase::TearingDown, End::Expired) => LeaseState::Expired,
        (Phase::TearingDown, _) => LeaseState::TearingDown,
        (Phase::Fenced, _) => LeaseState::Fenced,
    }
}

impl Books {
    /// The lease with this number, if it was ever granted.
    pub fn lease(&self, lease: LeaseNo) -> Result<Option<(Row, LeaseState)>, BooksError> {
        Ok(self.leases_of([lease])?.pop())
    }

    /// The leases with these numbers; `leases` must be sorted.
    pub fn leases_of(&self, leases: impl IntoIterator<Item = LeaseNo>) -> Result<Vec<(Row, LeaseState)>, BooksError> {
        let mut all = BTreeMap::new();
        let mut closed = Vec::new();
        for lease in leases {
            match self.open.get(&lease) {
                Some(open) => drop(all.insert(lease, (open.row.clone(), standing(open)))),
                None => closed.push(lease.0),
            }
        }
        self.visit(self.find(closed)?, &Filter::default(), |row| {
            drop(all.insert(row.lease, (row, LeaseState::Closed)))
        })?;
        Ok(all.into_values().collect())
    }

    /// A page of the leases for which `sees` returns true.
    pub fn leases(&self, question: &LeaseQuestion, sees: impl Fn(&Row) -> bool) -> Result<LeasePage, BooksError> {
        let asks = |standing| question.standing.is_none_or(|asked| asked == standing);
        let takes = |row: &Row| {
            question.filter.takes_row(row) && question.window.is_none_or(|window| row.meets(window)) && sees(row)
        };
        let mut part = Part::new();
        if question.standing != Some(LeaseState::Closed) {
            self.open_leases(question, &mut part, |open| asks(standing(open)) && takes(&open.row));
        }
        if asks(LeaseState::Closed) {
            self.closed_leases(question, &mut part, &takes)?;
        }
        let mut found: Vec<_> = part.found.into_iter().collect();
        found.retain(|(lease, _)| lease.0 <= part.complete_to);
        let next = (part.complete_to < u64::MAX).then_some(LeaseNo(part.complete_to));
        Ok(LeasePage { leases: found.into_iter().map(|(_, found)| found).collect(), next })
    }

    fn open_leases(&self, question: &LeaseQuestion, part: &mut Part, takes: impl Fn(&Open) -> bool) {
        let from = LeaseNo(question.after.map_or(0, |after| after.0.saturating_add(1)));
        let mut looked = 0;
        let mut look = |open: &Open| {
            let number = open.row.lease.0;
            if looked == OPEN_LOOKED_MAX || part.is_full_before(number, question.limit) {
                part.stop_before(number);
                return false;
            }
            looked += 1;
            if takes(open) {
                part.take(open.row.clone(), standing(open), question.limit);
            }
            true
        };
        match question.filter.node {
            Some(node) => {
                let there = self.open_on.range((node, from)..=(node, LeaseNo(u64::MAX)));
                there.filter_map(|(_, lease)| self.open.get(lease)).take_while(|open| look(open)).count()
            }
            None => self.open.range(from..).take_while(|(_, open)| look(open)).count(),
        };
    }

    fn closed_leases(
        &self,
        question: &LeaseQuestion,
        part: &mut Part,
        takes: &impl Fn(&Row) -> bool,
    ) -> Result<(), BooksError> {
        let from = question.after.map_or(0, |after| after.0.saturating_add(1));
        let (filter, window) = (&question.filter, question.window.unwrap_or(ALWAYS));
        if let Some(allocation) = filter.allocation
            && let Some(story) = self.stories.story(allocation, &self.store)?
        {
            let numbers = story.attempts.iter().flat_map(|attempt| attempt.numbers()).filter(|lease| *lease >= from);
            return self.take_in_order(&numbers.collect::<Vec<_>>(), question, part, takes);
        }
        if let Some(node) = filter.node {
            let (numbers, more) = self.stays(node, from, window, STAYS_MAX)?;
            if let (true, Some(last)) = (more, numbers.last()) {
                part.stop_before(last + 1);
            }
            return self.take_in_order(&numbers.into_iter().collect::<Vec<_>>(), question, part, takes);
        }
        let wanted = |head: &ChunkHead| head.last >= from && head.may_have(filter, window);
        let chunks = || self.chunks.iter().enumerate().filter(|(_, head)| wanted(head)).map(|(number, _)| number);
        if chunks().nth(FEW_CHUNKS).is_some() {
            return self.walk(from, question, part, takes);
        }
        let mut take = |row: Row| {
            if row.is_lease() && row.lease.0 >= from && takes(&row) {
                part.take(row, LeaseState::Closed, question.limit);
            }
        };
        for number in chunks() {
            let chunk = self.chunk(number, Depth::Lives)?;
            let wanted = |row: &usize| chunk.lease(*row).0 >= from && filter.takes_brief(&chunk.brief(*row));
            (0..chunk.rows).filter(wanted).for_each(|row| take(chunk.row(row)));
        }
        self.tail.iter().cloned().for_each(take);
        Ok(())
    }

    /// Adds the matching leases of these, in order of number, until the page is full.
    fn take_in_order(
        &self,
        numbers: &[u64],
        question: &LeaseQuestion,
        part: &mut Part,
        takes: &impl Fn(&Row) -> bool,
    ) -> Result<(), BooksError> {
        let mut read = 0;
        for some in numbers.chunks(question.limit.clamp(1, IN_ORDER_MAX)) {
            if read > CHUNKS_READ_MAX || part.is_full_before(some[0], question.limit) {
                part.stop_before(some[0]);
                return Ok(());
            }
            read += self.take_found(self.find(some.iter().copied())?, question, part, takes)?;
        }
        Ok(())
    }

    /// Examines the closed leases in order of number, in batches, until the page is full.
    fn walk(
        &self,
        from: u64,
        question: &LeaseQuestion,
        part: &mut Part,
        takes: &impl Fn(&Row) -> bool,
    ) -> Result<(), BooksError> {
        let window = question.window.unwrap_or(ALWAYS);
        let (mut from, mut most, mut read) = (from, BATCH_FIRST, 0);
        while let Some(stretch) = self.stretch(from, most, window) {
            if read > CHUNKS_READ_MAX || part.is_full_before(stretch.start, question.limit) {
                part.stop_before(stretch.start);
                return Ok(());
            }
            (from, most) = (stretch.end, (most * 2).min(BATCH_MAX));
            let mut found = self.find(stretch)?;
            found.retain(|found| {
                let head = self.chunks.get(chunk_of(found.place));
                head.is_none_or(|head| head.may_have(&question.filter, window))
            });
            read += self.take_found(found, question, part, takes)?;
        }
        Ok(())
    }

    fn take_found(
        &self,
        found: Vec<Found>,
        question: &LeaseQuestion,
        part: &mut Part,
        takes: &impl Fn(&Row) -> bool,
    ) -> Result<usize, BooksError> {
        self.visit(found, &question.filter, |row| {
            if takes(&row) {
                part.take(row, LeaseState::Closed, question.limit);
            }
        })
    }

    /// Calls `each` for those of these rows that match the filter's columns, chunk by chunk; returns the number of
    /// chunks that were read.
    fn visit(&self, mut found: Vec<Found>, filter: &Filter, mut each: impl FnMut(Row)) -> Result<usize, BooksError> {
        found.sort_unstable();
        let mut read = 0;
        for some in found.chunk_by(|a, b| chunk_of(a.place) == chunk_of(b.place)) {
            let number = chunk_of(some[0].place);
            let rows = some.iter().map(|found| row_of(found.place));
            if number == self.chunks.len() {
                rows.filter_map(|row| self.tail.get(row)).cloned().for_each(&mut each);
                continue;
            }
            let chunk = self.chunk(number, Depth::Lives)?;
            read += 1;
            if rows.clone().any(|row| row >= chunk.rows) {
                return Err(self.store.damage());
            }
            rows.filter(|row| filter.takes_brief(&chunk.brief(*row))).for_each(|row| each(chunk.row(row)));
        }
        Ok(read)
    }
}

fn chunk_of(place: u64) -> usize {
    usize::try_from(place / CHUNK_ROWS as u64).unwrap_or(usize::MAX)
}
fn row_of(place: u64) -> usize {
    usize::try_from(place % CHUNK_ROWS as u64).expect("below a small constant")
}
