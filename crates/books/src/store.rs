//! Storage of segments, chunks and the rest: one redb file, or memory only.
//!
//! Every entry in the file has a checksum. If one does not match, the answer fails and the books are rebuilt from the
//! journal.

use crate::bytes::{sealed, unsealed};
use crate::facts::BooksError;
use crate::mix::MixMap;
use leasehold_meter::Segment;
use leasehold_meter::timeline::{Keep, Lookup};
use redb::{Database, ReadOnlyTable, ReadableDatabase, Table, TableDefinition, TableHandle};
use std::ops::ControlFlow;
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

/// The page cache of the store.
const PAGES_BYTES: usize = 48 << 20;
/// The most decoded segments in the cache.
const CACHE_BYTES: usize = 512 << 20;

/// Entries are split into pieces of this size. The store allocates powers of two, of which these leave little unused.
const PIECE_BYTES: usize = (64 << 10) - 256;
const PIECE_BITS: u32 = 16;

/// Writes an entry.
pub(crate) fn write(
    table: &mut Table<'_, u64, &'static [u8]>,
    of: Definition,
    key: u64,
    body: &[u8],
) -> redb::Result<()> {
    let mut all = u32::try_from(body.len().div_ceil(PIECE_BYTES)).expect("far below 4 GiB").to_le_bytes().to_vec();
    all.extend_from_slice(body);
    for (place, piece) in (key << PIECE_BITS..).zip(all.chunks(PIECE_BYTES)) {
        table.insert(place, sealed(of.name(), place, piece).as_slice())?;
    }
    Ok(())
}

/// Removes an entry.
pub(crate) fn remove(table: &mut Table<'_, u64, &'static [u8]>, key: u64) -> redb::Result<()> {
    let first = key << PIECE_BITS;
    table.retain_in(first..first + (1 << PIECE_BITS), |_, _| false)
}

/// The stored bytes are damaged.
struct Unsound;

/// Joins the pieces of an entry; the first one starts with their number.
fn whole(all: Vec<u8>) -> Result<Vec<u8>, Unsound> {
    let (pieces, body) = all.split_first_chunk().ok_or(Unsound)?;
    // Detects pieces that remained from an earlier, longer entry.
    let sound = body.len().div_ceil(PIECE_BYTES) == u32::from_le_bytes(*pieces) as usize;
    if sound { Ok(body.to_vec()) } else { Err(Unsound) }
}

/// Reads an entry, if there is one.
fn read(table: &ReadOnlyTable<u64, &'static [u8]>, of: Definition, key: u64) -> Result<Option<Vec<u8>>, Unsound> {
    let first = key << PIECE_BITS;
    let mut all = Vec::new();
    for (place, entry) in (first..).zip(table.range(first..first + (1 << PIECE_BITS)).map_err(|_| Unsound)?) {
        let (found, piece) = entry.map_err(|_| Unsound)?;
        if found.value() != place {
            return Err(Unsound);
        }
        all.extend_from_slice(unsealed(of.name(), place, piece.value()).ok_or(Unsound)?);
    }
    if all.is_empty() { Ok(None) } else { whole(all).map(Some) }
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

/// The file as of its last commit.
pub(crate) struct File {
    pub(crate) database: Database,
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
    pub(crate) fn open(path: &Path) -> Result<Self, redb::Error> {
        let mut database = Database::builder().set_cache_size(PAGES_BYTES).create(path)?;
        if !database.check_integrity()? {
            return Err(redb::Error::Corrupted("page checksums do not match".to_owned()));
        }
        let mut store = Self { file: Some(File { database, segments: None }), ..Self::in_memory() };
        store.look_again()?;
        Ok(store)
    }

    /// After a commit: reads from the new version, and drops what was written from memory.
    pub(crate) fn look_again(&mut self) -> Result<(), redb::Error> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.segments = match file.database.begin_read()?.open_table(SEGMENTS) {
            Ok(table) => Some(table),
            Err(redb::TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(error.into()),
        };
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
        let table = self.file.as_ref()?.segments.as_ref()?;
        let mut segment = Segment::from_bytes(read(table, SEGMENTS, place).ok()??).ok()?;
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
        let Some(file) = &self.file else { return Ok(None) };
        match file.database.begin_read().map_err(|_| Unsound)?.open_table(table) {
            Ok(entries) => Ok(Some(entries)),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            Err(_) => Err(Unsound),
        }
    }

    /// One entry of the file, if it exists.
    pub(crate) fn entry(&self, table: Definition, key: u64) -> Result<Option<Vec<u8>>, BooksError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let entries = self.table(table).map_err(|Unsound| self.damage())?;
        let entry = entries.map(|entries| read(&entries, table, key)).transpose();
        entry.map(Option::flatten).map_err(|Unsound| self.damage())
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
            let sound = |place, piece: &[u8]| unsealed(table.name(), place, piece).map(<[u8]>::to_vec).ok_or(Unsound);
            let mut all = sound(place, piece.value()).map_err(damage)?;
            while let Some(Ok((next, _))) = pieces.peek()
                && next.value() >> PIECE_BITS == key
            {
                let (next, piece) = pieces.next().expect("just seen").map_err(|_| self.damage())?;
                place += 1;
                if next.value() != place {
                    return Err(self.damage());
                }
                all.extend(sound(place, piece.value()).map_err(damage)?);
            }
            self.reads.fetch_add(1, Ordering::Relaxed);
            if each(key, &whole(all).map_err(damage)?).is_break() {
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
