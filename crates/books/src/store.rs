//! Where blocks, chunks and the rest lie: one file with redb, or nowhere but in memory.
//!
//! Everything in the file has a checksum of its own. What does not fit it is noticed when it is read: the answer is given
//! up, and the books are made anew from the journal.

use crate::column::{sealed, unsealed};
use crate::mix::MixMap;
use leasehold_meter::series::Lookup;
use leasehold_meter::{Block, Payloads};
use redb::{Database, ReadOnlyTable, ReadableDatabase, TableDefinition, TableHandle};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) type Definition = TableDefinition<'static, u64, &'static [u8]>;
pub(crate) const BLOCKS: Definition = TableDefinition::new("blocks");
pub(crate) const HEADS: Definition = TableDefinition::new("heads");
pub(crate) const ROWS: Definition = TableDefinition::new("rows");
pub(crate) const STATE: Definition = TableDefinition::new("state");

/// Pages that the store itself keeps in memory.
const PAGES_BYTES: usize = 48 << 20;
/// Blocks that are kept in memory once they were read.
const CACHE_BYTES: usize = 384 << 20;

/// Blocks that were read, in two generations: the older is forgotten when the younger has grown to its half.
#[derive(Default)]
struct Cache {
    young: MixMap<u64, Arc<Block>>,
    old: MixMap<u64, Arc<Block>>,
    young_bytes: usize,
}

/// What a block costs beside its bytes: the map's place, two allocations.
const OVERHEAD: usize = 64;

impl Cache {
    fn get(&mut self, block: u64) -> Option<Arc<Block>> {
        if let Some(found) = self.young.get(&block) {
            return Some(Arc::clone(found));
        }
        let found = self.old.remove(&block)?;
        self.put(block, Arc::clone(&found));
        Some(found)
    }

    fn put(&mut self, number: u64, block: Arc<Block>) {
        self.young_bytes += block.size() + OVERHEAD;
        self.young.insert(number, block);
        if self.young_bytes > CACHE_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}

/// A file, as it was after its last commit.
pub(crate) struct File {
    pub(crate) database: Database,
    blocks: Option<ReadOnlyTable<u64, &'static [u8]>>,
}

pub(crate) struct Store {
    pub(crate) file: Option<File>,
    pub(crate) next_block: u64,
    /// Made since the last commit, in order; in memory only they stay here.
    fresh: MixMap<u64, Arc<Block>>,
    pub(crate) fresh_numbers: Vec<u64>,
    pub(crate) dropped: Vec<u64>,
    cache: Mutex<Cache>,
    damaged: AtomicBool,
}

impl Store {
    pub(crate) fn in_memory() -> Self {
        Self {
            file: None,
            next_block: 0,
            fresh: MixMap::default(),
            fresh_numbers: Vec::new(),
            dropped: Vec::new(),
            cache: Mutex::default(),
            damaged: AtomicBool::new(false),
        }
    }

    /// Opens a file, or makes one.
    ///
    /// The store trusts what it finds in its pages, and may panic where that is damaged; so all of their checksums are
    /// looked at once, before anything is believed. That reads the whole file.
    pub(crate) fn open(path: &Path) -> Result<Self, redb::Error> {
        let mut database = Database::builder().set_cache_size(PAGES_BYTES).create(path)?;
        if !database.check_integrity()? {
            return Err(redb::Error::Corrupted("its pages do not fit their checksums".to_owned()));
        }
        let mut store = Self { file: Some(File { database, blocks: None }), ..Self::in_memory() };
        store.look_again()?;
        Ok(store)
    }

    /// After a commit: what was written can be read, and need not be kept.
    pub(crate) fn look_again(&mut self) -> Result<(), redb::Error> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.blocks = match file.database.begin_read()?.open_table(BLOCKS) {
            Ok(table) => Some(table),
            Err(redb::TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    /// The bytes of a new block, as they are kept.
    pub(crate) fn fresh_block(&self, number: u64) -> Option<Vec<u8>> {
        self.fresh.get(&number).map(|block| sealed(BLOCKS.name(), number, block.as_bytes()))
    }

    /// Forgets all new blocks at once: they were all written.
    pub(crate) fn forget_all_fresh(&mut self) {
        self.fresh = MixMap::default();
        self.fresh_numbers.clear();
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }
    pub(crate) fn mark_damaged(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    fn read(&self, number: u64) -> Option<Arc<Block>> {
        let table = self.file.as_ref()?.blocks.as_ref()?;
        let value = table.get(number).ok()??;
        Block::from_bytes(unsealed(BLOCKS.name(), number, value.value())?).map(Arc::new)
    }

    /// One entry of the file, if it is sound.
    pub(crate) fn entry(&self, table: Definition, key: u64) -> Option<Vec<u8>> {
        let file = self.file.as_ref()?;
        let entries = file.database.begin_read().ok()?.open_table(table).ok()?;
        let value = entries.get(key).ok()??;
        unsealed(table.name(), key, value.value()).map(<[u8]>::to_vec)
    }
}

impl Payloads for Store {
    fn put(&mut self, block: Block) -> u64 {
        let number = self.next_block;
        self.next_block += 1;
        self.fresh.insert(number, Arc::new(block));
        self.fresh_numbers.push(number);
        number
    }

    fn drop(&mut self, block: u64) {
        if self.fresh.remove(&block).is_none() {
            self.dropped.push(block);
        }
    }
}

impl Lookup for Store {
    fn with<T>(&self, number: u64, look: impl FnOnce(&Block) -> T) -> T {
        if let Some(block) = self.fresh.get(&number) {
            return look(block);
        }
        let found = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(number);
        if let Some(block) = found {
            return look(&block);
        }
        let Some(block) = self.read(number) else {
            self.mark_damaged();
            return look(&Block::empty());
        };
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).put(number, Arc::clone(&block));
        look(&block)
    }
}
