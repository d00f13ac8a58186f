//! Storage of segments, chunks and the rest: one redb file, or memory only.
//!
//! Every entry in the file has a MAC (`seal.rs`). If one does not match, because the entry is damaged or somebody else
//! wrote it, the answer fails and the books are rebuilt from the journal.

use crate::facts::BooksError;
use crate::mix::MixMap;
use crate::seal::{Commit, FILE_BYTES, Seal};
use leasehold_meter::Segment;
use leasehold_meter::timeline::{Keep, Lookup};
use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, Table, TableDefinition};
use std::fs::OpenOptions;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) type Definition = TableDefinition<'static, u64, &'static [u8]>;
pub(crate) const SEGMENTS: Definition = TableDefinition::new("segments");
pub(crate) const ROWS: Definition = TableDefinition::new("rows");
pub(crate) const STATE: Definition = TableDefinition::new("state");
/// Summaries of chunks.
pub(crate) const HEADS: Definition = TableDefinition::new("heads");
/// Pages of the index from lease numbers to rows.
pub(crate) const FINDER: Definition = TableDefinition::new("finder");
/// The index of leases by node.
pub(crate) const STAYS: Definition = TableDefinition::new("stays");
/// Ended allocations, by number.
pub(crate) const STORIES: Definition = TableDefinition::new("stories");
/// Records with entries of the ledger, by sequence.
pub(crate) const ENTRIES: Definition = TableDefinition::new("entries");
/// Requests by the correlation ID that they were given.
pub(crate) const CORRELATIONS: Definition = TableDefinition::new("correlations");
/// Records with entries by payer, and those with lines by payer and hour.
pub(crate) const PAYER_ENTRIES: Definition = TableDefinition::new("payer_entries");
pub(crate) const LINE_HOURS: Definition = TableDefinition::new("line_hours");
/// Invoices with their lines.
pub(crate) const INVOICES: Definition = TableDefinition::new("invoices");

/// What was used of usage units, by hour.
pub(crate) const UNIT_HOURS: Definition = TableDefinition::new("unit_hours");
/// The IDs of usage records, and the filters of their runs.
pub(crate) const USAGE_IDS: Definition = TableDefinition::new("usage_ids");
pub(crate) const USAGE_FILTERS: Definition = TableDefinition::new("usage_filters");

/// The usage records behind each series and hour.
pub(crate) const USAGE_BEHIND: Definition = TableDefinition::new("usage_behind");

/// Shares of the cost of control planes.
pub(crate) const SHARES: Definition = TableDefinition::new("shares");

/// Usage that entitlements refused.
pub(crate) const USAGE_REFUSED: Definition = TableDefinition::new("usage_refused");

/// The page cache of the store.
const PAGES_BYTES: usize = 48 << 20;
/// The most decoded segments in the cache.
const CACHE_BYTES: usize = 512 << 20;

/// Entries are split into pieces of this size. The store allocates powers of two, of which these leave little unused.
pub(crate) const PIECE_BYTES: usize = (64 << 10) - 256;
const PIECE_BITS: u32 = 16;

/// Writes an entry; `commit` binds one that is rewritten in place. Answers whether there was none before.
pub(crate) fn write(
    table: &mut Table<'_, u64, &'static [u8]>,
    seal: &Seal,
    of: Definition,
    key: u64,
    commit: Option<&Commit>,
    body: &[u8],
) -> redb::Result<bool> {
    let all = seal.sealed(of, key, commit, body);
    let mut new = false;
    for (place, piece) in (key << PIECE_BITS..).zip(all.chunks(PIECE_BYTES)) {
        let before = table.insert(place, piece)?;
        new |= before.is_none() && place == key << PIECE_BITS;
    }
    Ok(new)
}

/// Removes an entry.
pub(crate) fn remove(table: &mut Table<'_, u64, &'static [u8]>, key: u64) -> redb::Result<()> {
    let first = key << PIECE_BITS;
    table.retain_in(first..first + (1 << PIECE_BITS), |_, _| false)
}

/// The stored bytes are damaged.
struct Unsound;

/// Reads the bytes of an entry, if there is one.
fn read(table: &ReadOnlyTable<u64, &'static [u8]>, key: u64) -> Result<Option<Vec<u8>>, Unsound> {
    let first = key << PIECE_BITS;
    let mut all = Vec::new();
    for (place, entry) in (first..).zip(table.range(first..first + (1 << PIECE_BITS)).map_err(|_| Unsound)?) {
        let (found, piece) = entry.map_err(|_| Unsound)?;
        if found.value() != place {
            return Err(Unsound);
        }
        all.extend_from_slice(piece.value());
    }
    Ok(if all.is_empty() { None } else { Some(all) })
}

/// A table of a version, if it exists.
fn table_of(
    version: &ReadTransaction,
    table: Definition,
) -> Result<Option<ReadOnlyTable<u64, &'static [u8]>>, redb::TableError> {
    match version.open_table(table) {
        Ok(entries) => Ok(Some(entries)),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A cache of segments in two generations: the older one is dropped when the younger one is full.
#[derive(Default)]
struct Cache {
    young: MixMap<u64, Arc<Segment>>,
    old: MixMap<u64, Arc<Segment>>,
    young_bytes: usize,
}

impl Cache {
    fn get(&mut self, place: u64) -> Option<Arc<Segment>> {
        if let Some(found) = self.young.get(&place) {
            return Some(Arc::clone(found));
        }
        let found = self.old.remove(&place)?;
        self.put(place, Arc::clone(&found));
        Some(found)
    }

    fn put(&mut self, place: u64, segment: Arc<Segment>) {
        self.young_bytes += segment.size();
        self.young.insert(place, segment);
        if self.young_bytes > CACHE_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}

/// The file, and its version that the books in memory continue. A commit adds a version to the file before the books in
/// memory know of it, and they can be read meanwhile; so everything is read from this version.
pub(crate) struct File {
    pub(crate) database: Database,
    pub(crate) seal: Seal,
    version: Option<ReadTransaction>,
    segments: Option<ReadOnlyTable<u64, &'static [u8]>>,
}

pub(crate) struct Store {
    pub(crate) file: Option<File>,
    pub(crate) next_place: u64,
    /// New since the last commit; without a file they stay here.
    fresh: MixMap<u64, Arc<Segment>>,
    pub(crate) fresh_places: Vec<u64>,
    pub(crate) dropped: Vec<u64>,
    cache: Mutex<Cache>,
    damaged: AtomicBool,
    /// The number of entries that were read, without segments.
    reads: AtomicU64,
}

impl Store {
    pub(crate) fn in_memory() -> Self {
        Self {
            file: None,
            next_place: 0,
            fresh: MixMap::default(),
            fresh_places: Vec::new(),
            dropped: Vec::new(),
            cache: Mutex::default(),
            damaged: AtomicBool::new(false),
            reads: AtomicU64::new(0),
        }
    }

    /// Opens the file, or creates it.
    ///
    /// The store trusts its pages and can panic if they are damaged, so all checksums are verified first. This reads
    /// the whole file.
    pub(crate) fn open(path: &Path, seal: Seal) -> Result<Self, redb::Error> {
        // The database would create the file with the permissions of the process; these are for its owner alone.
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let mut database = Database::builder().set_cache_size(PAGES_BYTES).create(path)?;
        if !database.check_integrity()? {
            return Err(redb::Error::Corrupted("page checksums do not match".to_owned()));
        }
        let mut store =
            Self { file: Some(File { database, seal, version: None, segments: None }), ..Self::in_memory() };
        store.look_again()?;
        Ok(store)
    }

    /// The identity of the file, once it was read.
    pub(crate) fn set_file(&mut self, id: [u8; FILE_BYTES]) {
        if let Some(file) = &mut self.file {
            file.seal.file = id;
        }
    }

    /// After a commit: reads from the new version. After an error, from the version before.
    pub(crate) fn look_again(&mut self) -> Result<(), redb::Error> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let version = file.database.begin_read()?;
        file.segments = table_of(&version, SEGMENTS)?;
        file.version = Some(version);
        Ok(())
    }

    /// The bytes of a new segment.
    pub(crate) fn fresh_segment(&self, place: u64) -> Option<&[u8]> {
        self.fresh.get(&place).map(|segment| segment.as_bytes())
    }

    /// Marks all new segments as written.
    pub(crate) fn forget_fresh(&mut self) {
        self.fresh = MixMap::default();
        self.fresh_places.clear();
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }
    pub(crate) fn mark_damaged(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    fn read_segment(&self, place: u64) -> Option<Segment> {
        let file = self.file.as_ref()?;
        let all = read(file.segments.as_ref()?, place).ok()??;
        let mut segment = Segment::from_bytes(file.seal.opened(SEGMENTS, place, &all)?).ok()?;
        // It is only in the file.
        drop(segment.take_bytes());
        Some(segment)
    }

    /// Notes that the file is damaged; the books will be rebuilt.
    pub(crate) fn damage(&self) -> BooksError {
        self.mark_damaged();
        BooksError::Damaged
    }

    /// A table of the file, if it exists.
    fn table(&self, table: Definition) -> Result<Option<ReadOnlyTable<u64, &'static [u8]>>, Unsound> {
        let Some(version) = self.file.as_ref().and_then(|file| file.version.as_ref()) else { return Ok(None) };
        table_of(version, table).map_err(|_| Unsound)
    }

    /// The stored bytes of an entry, if it is there.
    fn stored(&self, table: Definition, key: u64) -> Result<Option<(&Seal, Vec<u8>)>, BooksError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let damage = |Unsound| self.damage();
        let Some(entries) = self.table(table).map_err(damage)? else { return Ok(None) };
        let all = read(&entries, key).map_err(damage)?;
        Ok(all.zip(self.file.as_ref()).map(|(all, file)| (&file.seal, all)))
    }

    /// One entry of the file, if it exists.
    pub(crate) fn entry(&self, table: Definition, key: u64) -> Result<Option<Vec<u8>>, BooksError> {
        let Some((seal, all)) = self.stored(table, key)? else { return Ok(None) };
        seal.opened(table, key, &all).map(Some).ok_or_else(|| self.damage())
    }

    /// One entry that is rewritten in place, with the commit that wrote it.
    pub(crate) fn entry_of_commit(&self, table: Definition, key: u64) -> Result<Option<(Commit, Vec<u8>)>, BooksError> {
        let Some((seal, all)) = self.stored(table, key)? else { return Ok(None) };
        seal.opened_of_commit(table, key, &all).map(Some).ok_or_else(|| self.damage())
    }

    /// How many entries a table has.
    pub(crate) fn count(&self, table: Definition) -> Result<u64, BooksError> {
        let Some(entries) = self.table(table).map_err(|Unsound| self.damage())? else { return Ok(0) };
        let mut count = 0;
        for piece in entries.iter().map_err(|_| self.damage())? {
            let (place, _) = piece.map_err(|_| self.damage())?;
            count += u64::from(place.value() % (1 << PIECE_BITS) == 0);
        }
        Ok(count)
    }

    /// One entry that must exist.
    pub(crate) fn expect_entry(&self, table: Definition, key: u64) -> Result<Vec<u8>, BooksError> {
        self.entry(table, key)?.ok_or_else(|| self.damage())
    }

    /// Calls `each` for entries from a key on, in order, until it breaks.
    pub(crate) fn entries(
        &self,
        table: Definition,
        from: u64,
        mut each: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), BooksError> {
        let damage = |Unsound| self.damage();
        let Some(entries) = self.table(table).map_err(damage)? else { return Ok(()) };
        let mut pieces = entries.range(from << PIECE_BITS..).map_err(|_| self.damage())?.peekable();
        while let Some(piece) = pieces.next() {
            let (place, piece) = piece.map_err(|_| self.damage())?;
            let (key, mut place) = (place.value() >> PIECE_BITS, place.value());
            let mut all = piece.value().to_vec();
            while let Some(Ok((next, _))) = pieces.peek()
                && next.value() >> PIECE_BITS == key
            {
                let (next, piece) = pieces.next().expect("just seen").map_err(|_| self.damage())?;
                place += 1;
                if next.value() != place {
                    return Err(self.damage());
                }
                all.extend_from_slice(piece.value());
            }
            self.reads.fetch_add(1, Ordering::Relaxed);
            let body = self.file.as_ref().and_then(|file| file.seal.opened(table, key, &all));
            if each(key, &body.ok_or_else(|| self.damage())?).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The number of entries that were read so far, without segments.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl Keep for Store {
    fn put(&mut self, segment: Segment) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        self.fresh.insert(place, Arc::new(segment));
        self.fresh_places.push(place);
        place
    }

    fn drop(&mut self, place: u64) {
        if self.fresh.remove(&place).is_none() {
            self.dropped.push(place);
        }
    }
}

impl Lookup for Store {
    fn with<T>(&self, place: u64, look: impl FnOnce(&Segment) -> T) -> T {
        if let Some(segment) = self.fresh.get(&place) {
            return look(segment);
        }
        let found = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(place);
        if let Some(segment) = found {
            return look(&segment);
        }
        let Some(segment) = self.read_segment(place).map(Arc::new) else {
            self.mark_damaged();
            return look(&Segment::empty());
        };
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).put(place, Arc::clone(&segment));
        look(&segment)
    }
}
