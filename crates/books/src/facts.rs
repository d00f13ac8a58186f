//! The contents of the books, as of one record.

use crate::chunk::{CHUNK_ROWS, Chunk, ChunkHead, Depth, encode};
use crate::claims::Claims;
use crate::finder::Finder;
use crate::ledger::LedgerBook;
use crate::losses::{EndCorrection, EndedClaim};
use crate::names::Names;
use crate::nodes::Nodes;
use crate::overdue::Deadlines;
use crate::reserved::Reserved;
use crate::row::Row;
use crate::runs::Runs;
use crate::stays::Stays;
use crate::store::{ROWS, Store};
use crate::stories::Stories;
use crate::table::Table;
use crate::units::UnitBook;
use leasehold_meter::Schedule;
use leasehold_model::{
    AppInstanceNo, AttachmentNo, ClassNo, ClassSpec, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo,
    TenantNo,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What the price and the payer of held capacity depend on. There is one series per key; usage by any part of the key
/// is a sum of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BillingKey {
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) tag: Option<u32>,
    pub(crate) class: ClassNo,
    pub(crate) pool: PoolNo,
    pub(crate) priority: Priority,
    /// The priority by whose price it is charged; see [`Row::by_claim`].
    pub(crate) priced: Priority,
    /// Who pays: the source project of lent capacity, else the project that holds it.
    pub(crate) payer: ProjectNo,
    pub(crate) app_instance: Option<AppInstanceNo>,
    pub(crate) attachment: Option<AttachmentNo>,
    pub(crate) control_plane: bool,
}

/// The phase of an open lease.
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
    /// The number of its billing series.
    pub(crate) billing: u32,
    /// How it will have ended, if it was revoked.
    pub(crate) revoked: Option<crate::row::End>,
    /// Its allocation could not be started; the record of its release follows.
    pub(crate) failed_start: bool,
}

/// Why a question is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BooksError {
    /// The file is damaged; the books are being rebuilt.
    Damaged,
    Overflow(leasehold_meter::Overflow),
    /// The answer would be too long, or take too long.
    TooMuch,
    /// A record contradicts the ones before it.
    Inconsistent {
        sequence: u64,
        what: &'static str,
    },
    /// The journal or the file cannot be read or written.
    Io(String),
    /// The journal, or the file for lack of disk space or of files that may be open, cannot be read at the moment. The
    /// books are as they were.
    Unread(String),
}

impl fmt::Display for BooksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => {
                f.write_str("the books are damaged and are being rebuilt from the journal; try again later")
            }
            Self::Overflow(overflow) => overflow.fmt(f),
            Self::TooMuch => f.write_str(
                "the answer would be too long; use a shorter window, a narrower filter, fewer groups or longer buckets",
            ),
            Self::Inconsistent { sequence, what } => write!(f, "record {sequence} contradicts the books: {what}"),
            Self::Io(why) => write!(f, "cannot read or write the books: {why}"),
            Self::Unread(why) => write!(f, "cannot read what the books need: {why}"),
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
    /// The number of records that were applied.
    pub(crate) cursor: u64,
    pub(crate) last_stamp: Instant,
    pub(crate) classes: BTreeMap<ClassNo, ClassSpec>,
    /// Tags are never removed, as in the engine: leases keep the tag of their grant.
    pub(crate) tags: Vec<Name>,
    pub(crate) tenant_tags: BTreeMap<TenantNo, u32>,
    pub(crate) names: Names,
    pub(crate) open: BTreeMap<LeaseNo, Open>,
    pub(crate) deadlines: Deadlines,
    pub(crate) billing: Table<BillingKey>,
    /// The numbers of the billing series, sorted by tenant and class: the order of most questions.
    pub(crate) payers: Vec<u32>,
    /// The billing series of each tenant.
    pub(crate) of_tenant: BTreeMap<TenantNo, Vec<u32>>,
    /// What charge policies do not charge, by the number of the billing series.
    pub(crate) forgiven: Table<u32>,
    pub(crate) ledger: LedgerBook,
    /// Usage that runtimes report; see `units.rs`.
    pub(crate) units: UnitBook,
    pub(crate) nodes: Nodes,
    pub(crate) claims: Claims,
    pub(crate) reserved: Reserved,
    pub(crate) schedule: Schedule,
    /// Closed leases that are not in a chunk yet.
    pub(crate) tail: Vec<Row>,
    /// The corrected ends of rows in chunks, by their position; see `losses.rs`.
    pub(crate) corrected: BTreeMap<u64, Instant>,
    /// Leases that had ended when the start of their allocation was reported as failed; see [`Row::ended_plainly`].
    pub(crate) failed_starts: BTreeSet<LeaseNo>,
    /// Claims that ended on a node since it was last known to be running.
    pub(crate) ended_claims: BTreeMap<NodeNo, Vec<EndedClaim>>,
    /// The last decision to evict, and the tenant that it was made for.
    pub(crate) evictor: Option<(u64, TenantNo)>,
    pub(crate) chunks: Vec<ChunkHead>,
    /// Encoded chunks that are not in the file yet.
    pub(crate) fresh_chunks: Vec<Vec<u8>>,
    pub(crate) finder: Finder,
    pub(crate) stays: Stays,
    /// The open leases of each node.
    pub(crate) open_on: BTreeSet<(NodeNo, LeaseNo)>,
    pub(crate) stories: Stories,
    /// Requests by the correlation ID that they were given; see `correlations.rs`.
    pub(crate) correlations: Runs,
    /// The records that corrected the ends of leases.
    pub(crate) end_corrections: BTreeMap<LeaseNo, EndCorrection>,
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
            names: Names::new(),
            open: BTreeMap::new(),
            deadlines: Deadlines::default(),
            billing: Table::default(),
            payers: Vec::new(),
            of_tenant: BTreeMap::new(),
            forgiven: Table::default(),
            ledger: LedgerBook::default(),
            units: UnitBook::default(),
            nodes: Nodes::default(),
            claims: Claims::new(),
            reserved: Reserved::default(),
            schedule: Schedule::default(),
            tail: Vec::new(),
            corrected: BTreeMap::new(),
            failed_starts: BTreeSet::new(),
            ended_claims: BTreeMap::new(),
            evictor: None,
            chunks: Vec::new(),
            fresh_chunks: Vec::new(),
            finder: Finder::default(),
            stays: Stays::default(),
            open_on: BTreeSet::new(),
            stories: Stories::default(),
            correlations: Runs::default(),
            end_corrections: BTreeMap::new(),
            store,
        }
    }

    /// The number of records that were applied.
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

    /// Adds a new series to the indexes.
    pub(crate) fn list_payer(&mut self, number: u32) {
        let order = |number: u32| {
            let key = &self.billing.keys[number as usize];
            let of_app = (key.app_instance, key.attachment, key.control_plane, key.payer);
            (key.tenant, key.class, key.project, key.pool, key.priority, key.priced, key.tag, of_app)
        };
        let place = self.payers.partition_point(|other| order(*other) < order(number));
        self.payers.insert(place, number);
        let tenant = self.billing.keys[number as usize].tenant;
        self.of_tenant.entry(tenant).or_default().push(number);
    }

    /// Adds the row of a closed lease, or of idle capacity of a claimed node.
    pub(crate) fn close(&mut self, row: Row) {
        if row.is_lease() {
            let place = (self.chunks.len() * CHUNK_ROWS + self.tail.len()) as u64;
            self.finder.closed(row.lease, row.held.to, place, row.life.sequence);
            self.stays.add(&row);
        }
        self.tail.push(row);
        if self.tail.len() == CHUNK_ROWS {
            self.set_corrections_aside();
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
        let mut chunk = decoded.map_err(|_| self.store.damage())?;
        if !self.corrected.is_empty() {
            let first = (number * CHUNK_ROWS) as u64;
            let here = self.corrected.range(first..first + CHUNK_ROWS as u64);
            chunk.correct(here.map(|(place, end)| (place - first, *end)));
        }
        Ok(chunk)
    }

    /// The number of file entries that were read, without segments: the cost of questions about single leases.
    pub fn reads(&self) -> u64 {
        self.store.reads()
    }

    /// Returns the answer, unless something that was read is damaged.
    pub(crate) fn sound<T>(&self, answer: T) -> Result<T, BooksError> {
        if self.store.is_damaged() { Err(BooksError::Damaged) } else { Ok(answer) }
    }
    /// Fails if anything that was read so far is damaged.
    pub fn check(&self) -> Result<(), BooksError> {
        self.sound(())
    }
}
