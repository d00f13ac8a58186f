//! An index of closed leases by node: their numbers and the seconds in which they were held, in the order in which
//! they closed.

use crate::facts::{Books, BooksError};
use crate::row::Row;
use crate::store::{STAYS, Store};
use leasehold_meter::Window;
use leasehold_meter::column::Column;
use leasehold_model::codec::{DecodeError, Reader, put_varint};
use leasehold_model::{Instant, NodeNo};
use std::collections::{BTreeMap, BTreeSet};

/// Stays per entry of the file; an entry is slightly smaller than the store's page of 4 KiB.
const LIST_STAYS: usize = 400;

leasehold_model::fields! {
    /// A lease on a node, with the whole seconds that contain its interval.
    #[derive(Copy)]
    pub struct Stay { pub lease: u64, pub from: u64, pub to: u64 }
}

leasehold_model::fields! {
    /// The summary of a list, kept in memory.
    #[derive(Copy)]
    pub struct ListHead {
        /// Its number in the file.
        pub list: u64,
        /// The highest lease number in it.
        pub last: u64,
        pub from: u64,
        pub to: u64,
    }
}

const SECOND: u64 = 1_000_000_000;

impl Stay {
    fn of(row: &Row) -> Self {
        Self { lease: row.lease.0, from: row.held.from.0 / SECOND, to: row.held.to.0.div_ceil(SECOND) }
    }
}

/// Whether an interval of seconds may overlap the window.
fn may_meet(from: u64, to: u64, window: Window) -> bool {
    Instant(from.saturating_mul(SECOND)) < window.to && Instant(to.saturating_mul(SECOND)) >= window.from
}

#[derive(Default)]
pub(crate) struct OnNode {
    pub(crate) heads: Vec<ListHead>,
    pub(crate) tail: Vec<Stay>,
}

#[derive(Default)]
pub(crate) struct Stays {
    pub(crate) nodes: BTreeMap<NodeNo, OnNode>,
    pub(crate) lists: u64,
    /// Lists that are not in the file yet.
    fresh: BTreeMap<u64, Vec<u8>>,
}

impl Stays {
    pub(crate) fn add(&mut self, row: &Row) {
        let on = self.nodes.entry(row.node).or_default();
        on.tail.push(Stay::of(row));
        if on.tail.len() == LIST_STAYS {
            let head = ListHead {
                list: self.lists,
                last: on.tail.iter().map(|stay| stay.lease).max().unwrap_or(0),
                from: on.tail.iter().map(|stay| stay.from).min().unwrap_or(0),
                to: on.tail.iter().map(|stay| stay.to).max().unwrap_or(0),
            };
            self.fresh.insert(self.lists, encode(&on.tail));
            on.heads.push(head);
            on.tail.clear();
            self.lists += 1;
        }
    }

    pub(crate) fn fresh(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.fresh.iter().map(|(list, bytes)| (*list, bytes.as_slice()))
    }

    pub(crate) fn written(&mut self) {
        self.fresh.clear();
    }

    fn list(&self, list: u64, store: &Store) -> Result<Vec<Stay>, BooksError> {
        let decoded = match self.fresh.get(&list) {
            Some(bytes) => decode(bytes),
            None => decode(&store.expect_entry(STAYS, list)?),
        };
        decoded.map_err(|_| store.damage())
    }
}

fn encode(stays: &[Stay]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(stays.len() as u64, &mut out);
    Column::put(stays.iter().map(|stay| stay.lease), &mut out);
    Column::put(stays.iter().map(|stay| stay.from), &mut out);
    Column::put(stays.iter().map(|stay| stay.to - stay.from), &mut out);
    out
}

fn decode(bytes: &[u8]) -> Result<Vec<Stay>, DecodeError> {
    let mut r = Reader::new(bytes);
    let count = r.count(LIST_STAYS)?;
    let (lease, from, length) = (Column::get(count, &mut r)?, Column::get(count, &mut r)?, Column::get(count, &mut r)?);
    r.finish()?;
    let stay = |row| Stay { lease: lease.at(row), from: from.at(row), to: from.at(row).saturating_add(length.at(row)) };
    Ok((0..count).map(stay).collect())
}

impl Books {
    /// The lowest numbers from a number on, up to a maximum, of closed leases that were on a node and may overlap the
    /// window; and whether there are more.
    pub(crate) fn stays(
        &self,
        node: NodeNo,
        from: u64,
        window: Window,
        most: usize,
    ) -> Result<(BTreeSet<u64>, bool), BooksError> {
        let (mut found, mut more) = (BTreeSet::new(), false);
        let mut look = |stays: &[Stay]| {
            for stay in stays.iter().filter(|stay| stay.lease >= from && may_meet(stay.from, stay.to, window)) {
                found.insert(stay.lease);
                if found.len() > most {
                    found.pop_last();
                    more = true;
                }
            }
        };
        if let Some(on) = self.stays.nodes.get(&node) {
            for head in on.heads.iter().filter(|head| head.last >= from && may_meet(head.from, head.to, window)) {
                look(&self.stays.list(head.list, &self.store)?);
            }
            look(&on.tail);
        }
        Ok((found, more))
    }
}
