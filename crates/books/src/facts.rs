//! What the books know, as of one record.

use crate::chunk::{CHUNK_ROWS, Chunk, ChunkHead, Depth, encode};
use crate::claims::Claims;
use crate::finder::Finder;
use crate::nodes::Nodes;
use crate::overdue::Deadlines;
use crate::reserved::Reserved;
use crate::row::Row;
use crate::stays::Stays;
use crate::store::{ROWS, Store};
use crate::stories::Stories;
use crate::table::Table;
use leasehold_meter::Schedule;
use leasehold_model::{ClassNo, ClassSpec, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo, TenantNo};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What the price and the payer of held capacity depend on. Usage by any part of it is a sum of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BillingKey {
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) tag: Option<u32>,
    pub(crate) class: ClassNo,
    pub(crate) pool: PoolNo,
    pub(crate) priority: Priority,
}

/// Where an open lease is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Held,
    TearingDown,
    Fenced,
}

/// A lease that is held, being torn down, or fenced.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) row: Row,
    pub(crate) phase: Phase,
    /// Its series.
    pub(crate) billing: u32,
    /// Why it was revoked, if it was.
    pub(crate) revoked: Option<crate::row::End>,
}

/// Why no answer is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BooksError {
    /// The file is not as it was written; the books are made anew.
    Damaged,
    Overflow(leasehold_meter::Overflow),
    /// The answer would be too long, or too long in the making.
    TooMuch,
    /// A record that does not follow from those before.
    Inconsistent {
        sequence: u64,
        what: &'static str,
    },
    /// The journal or the file cannot be read or written.
    Io(String),
}

impl fmt::Display for BooksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => f.write_str("the books are damaged and are being made anew from the journal; ask again"),
            Self::Overflow(overflow) => overflow.fmt(f),
            Self::TooMuch => f.write_str(
                "the answer would be too long; narrow the window, the filter or the grouping, or cut it less finely",
            ),
            Self::Inconsistent { sequence, what } => write!(f, "record {sequence} does not fit the books: {what}"),
            Self::Io(why) => write!(f, "the books cannot be kept: {why}"),
        }
    }
}
impl std::error::Error for BooksError {}

impl From<leasehold_meter::Overflow> for BooksError {
    fn from(overflow: leasehold_meter::Overflow) -> Self {
        Self::Overflow(overflow)
    }
}

/// The books as of one record.
pub struct Books {
    /// Records taken up so far.
    pub(crate) cursor: u64,
    pub(crate) last_stamp: Instant,
    pub(crate) classes: BTreeMap<ClassNo, ClassSpec>,
    /// Tags live for ever, as in the engine: leases keep the one they were granted under.
    pub(crate) tags: Vec<Name>,
    pub(crate) tenant_tags: BTreeMap<TenantNo, u32>,
    pub(crate) open: BTreeMap<LeaseNo, Open>,
    pub(crate) deadlines: Deadlines,
    pub(crate) billing: Table<BillingKey>,
    /// The series by tenant and class, and then by the rest: the order in which most ask.
    pub(crate) payers: Vec<u32>,
    /// The series of a tenant, by number.
    pub(crate) of_tenant: BTreeMap<TenantNo, Vec<u32>>,
    pub(crate) nodes: Nodes,
    pub(crate) claims: Claims,
    pub(crate) reserved: Reserved,
    pub(crate) schedule: Schedule,
    /// Closed leases that do not fill a chunk yet.
    pub(crate) tail: Vec<Row>,
    pub(crate) chunks: Vec<ChunkHead>,
    /// Encoded chunks that are not in the file, and the number of the first.
    pub(crate) fresh_chunks: Vec<Vec<u8>>,
    pub(crate) finder: Finder,
    pub(crate) stays: Stays,
    /// The open leases of each node.
    pub(crate) open_on: BTreeSet<(NodeNo, LeaseNo)>,
    pub(crate) stories: Stories,
    pub(crate) store: Store,
}

impl Default for Books {
    fn default() -> Self {
        Self::new(Store::in_memory())
    }
}

impl Books {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            cursor: 0,
            last_stamp: Instant(0),
            classes: BTreeMap::new(),
            tags: Vec::new(),
            tenant_tags: BTreeMap::new(),
            open: BTreeMap::new(),
            deadlines: Deadlines::default(),
            billing: Table::default(),
            payers: Vec::new(),
            of_tenant: BTreeMap::new(),
            nodes: Nodes::default(),
            claims: Claims::new(),
            reserved: Reserved::default(),
            schedule: Schedule::default(),
            tail: Vec::new(),
            chunks: Vec::new(),
            fresh_chunks: Vec::new(),
            finder: Finder::default(),
            stays: Stays::default(),
            open_on: BTreeSet::new(),
            stories: Stories::default(),
            store,
        }
    }

    /// Records taken up so far.
    pub fn size(&self) -> u64 {
        self.cursor
    }
    pub fn last_stamp(&self) -> Instant {
        self.last_stamp
    }
    pub fn class(&self, class: ClassNo) -> Option<&ClassSpec> {
        self.classes.get(&class)
    }
    pub fn classes(&self) -> impl Iterator<Item = (ClassNo, &ClassSpec)> {
        self.classes.iter().map(|(number, spec)| (*number, spec))
    }
    pub fn tag(&self, tag: u32) -> Option<&Name> {
        self.tags.get(tag as usize)
    }
    pub fn tag_named(&self, name: &str) -> Option<u32> {
        let place = self.tags.iter().position(|tag| tag.as_str() == name)?;
        u32::try_from(place).ok()
    }
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }
    /// Closed leases in the books.
    pub fn closed(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.rows)).sum::<u64>() + self.tail.len() as u64
    }

    /// The series of a payer.
    pub(crate) fn payer(&mut self, key: BillingKey) -> u32 {
        let known = self.billing.keys.len();
        let number = self.billing.number(key);
        if self.billing.keys.len() > known {
            self.list_payer(number);
        }
        number
    }

    /// Takes up a series that is new.
    pub(crate) fn list_payer(&mut self, number: u32) {
        let order = |number: u32| {
            let key = &self.billing.keys[number as usize];
            (key.tenant, key.class, key.project, key.pool, key.priority, key.tag)
        };
        let place = self.payers.partition_point(|other| order(*other) < order(number));
        self.payers.insert(place, number);
        let tenant = self.billing.keys[number as usize].tenant;
        self.of_tenant.entry(tenant).or_default().push(number);
    }

    /// A lease is over, or what lay idle of a claimed node.
    pub(crate) fn close(&mut self, row: Row) {
        if row.is_lease() {
            let place = (self.chunks.len() * CHUNK_ROWS + self.tail.len()) as u64;
            self.finder.closed(row.lease, row.held.to, place);
            self.stays.add(&row);
        }
        self.tail.push(row);
        if self.tail.len() == CHUNK_ROWS {
            self.chunks.push(ChunkHead::of(&self.tail));
            self.fresh_chunks.push(encode(&self.tail));
            self.tail.clear();
        }
    }

    /// A chunk by its number.
    pub(crate) fn chunk(&self, number: usize, depth: Depth) -> Result<Chunk, BooksError> {
        let stored = self.chunks.len() - self.fresh_chunks.len();
        let decoded = match number.checked_sub(stored) {
            Some(place) => Chunk::decode(&self.fresh_chunks[place], depth),
            None => Chunk::decode(&self.store.expect_entry(ROWS, number as u64)?, depth),
        };
        decoded.map_err(|_| self.store.damage())
    }

    /// Entries of the file that were read so far, series apart: what questions about single leases cost.
    pub fn reads(&self) -> u64 {
        self.store.reads()
    }

    /// After an answer: whether everything it read was sound.
    pub(crate) fn sound<T>(&self, answer: T) -> Result<T, BooksError> {
        if self.store.is_damaged() { Err(BooksError::Damaged) } else { Ok(answer) }
    }
    /// Whether everything that was read so far was sound.
    pub fn check(&self) -> Result<(), BooksError> {
        self.sound(())
    }
}
