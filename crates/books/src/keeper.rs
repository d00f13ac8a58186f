//! The books in their file: opens or rebuilds them, follows the journal, and commits.
//!
//! A commit is one transaction, so the file always contains the books as of one record. The file is never ahead of the
//! journal: only durable records are applied, and on opening, the last applied record must be in the journal.

use crate::facts::{Books, BooksError};
use crate::persist::BOOKS_VERSION;
use crate::store::{self, FINDER, HEADS, ROWS, SEGMENTS, STATE, STAYS, STORIES, Store};
use leasehold_journal::Journal;
use leasehold_model::codec::Field;
use leasehold_model::record::Hash;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const VERSION_KEY: u64 = 0;
const LAST_KEY: u64 = 1;
const STATE_KEY: u64 = 2;

/// The result of opening the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The file was loaded.
    Continued,
    /// There was no file.
    New,
    /// The file was discarded, because it has another version, belongs to another journal, is ahead of it, or is
    /// damaged.
    Rebuilt(&'static str),
}

/// Records between commits.
pub const COMMIT_RECORDS: u64 = 500_000;

/// The books and their file.
pub struct Keeper {
    pub books: Books,
    path: Option<PathBuf>,
    committed: u64,
}

fn io(error: impl std::fmt::Display) -> BooksError {
    BooksError::Io(error.to_string())
}

fn encoded(field: &impl Field) -> Vec<u8> {
    let mut out = Vec::new();
    field.put(&mut out);
    out
}

/// The hash of the last record before `size`.
fn hash_before(journal: &dyn Journal, size: u64) -> Result<Hash, BooksError> {
    let mut hash = [0; 32];
    if let Some(last) = size.checked_sub(1) {
        let mut found = false;
        let scanned = journal.scan(last, &mut |_, raw| {
            (hash, found) = (raw.hash(), true);
            ControlFlow::Break(())
        });
        scanned.map_err(io)?;
        if !found {
            return Err(BooksError::Inconsistent { sequence: last, what: "the journal does not contain it" });
        }
    }
    Ok(hash)
}

impl Keeper {
    /// In memory only.
    pub fn in_memory() -> Self {
        Self { books: Books::default(), path: None, committed: 0 }
    }

    /// Opens the books at `path` for this journal, or starts with empty books.
    pub fn open(path: &Path, journal: &dyn Journal) -> Result<(Self, Opened), BooksError> {
        let existed = path.exists();
        // If panics abort the process, a file that causes a panic would prevent every start. A marker file next to it
        // shows that the last attempt to open it did not finish.
        let mark = path.with_extension("opening");
        let loaded = if mark.exists() {
            Err("the last attempt to open it did not finish")
        } else {
            std::fs::write(&mark, []).map_err(io)?;
            Self::load(path, journal)
        };
        let why = match loaded {
            Ok(Some(keeper)) => {
                std::fs::remove_file(&mark).map_err(io)?;
                return Ok((keeper, Opened::Continued));
            }
            Ok(None) => "it is empty",
            Err(why) => why,
        };
        if existed {
            std::fs::remove_file(path).map_err(io)?;
        }
        std::fs::remove_file(&mark).map_err(io)?;
        let books = Books::new(Store::open(path).map_err(io)?);
        let opened = if existed { Opened::Rebuilt(why) } else { Opened::New };
        Ok((Self { books, path: Some(path.to_owned()), committed: 0 }, opened))
    }

    fn load(path: &Path, journal: &dyn Journal) -> Result<Option<Self>, &'static str> {
        if !path.exists() {
            return Ok(None);
        }
        const DAMAGED: &str = "it is damaged";
        // A damaged file can make the store panic; this is treated as damage.
        let opened = std::panic::catch_unwind(|| Store::open(path)).map_err(|_| DAMAGED)?;
        let store = opened.map_err(|_| DAMAGED)?;
        let entry = |key| store.entry(STATE, key).map_err(|_| DAMAGED);
        let Some(version) = entry(VERSION_KEY)? else { return Ok(None) };
        if version != BOOKS_VERSION.to_le_bytes() {
            return Err("it has another format version");
        }
        let state = entry(STATE_KEY)?.ok_or(DAMAGED)?;
        let last = entry(LAST_KEY)?.ok_or(DAMAGED)?;
        let mut books = Books::new(store);
        let chunks = books.read_state(&state).map_err(|_| DAMAGED)?;
        books.read_heads(chunks).map_err(|_| DAMAGED)?;
        if books.cursor > journal.head().size {
            return Err("it is ahead of the journal");
        }
        if hash_before(journal, books.cursor).map_err(|_| "the journal does not contain its last record")?[..]
            != last[..]
        {
            return Err("it belongs to another journal");
        }
        let committed = books.cursor;
        Ok(Some(Self { books, path: Some(path.to_owned()), committed }))
    }

    /// Applies durable records, up to a maximum; returns their number. They are not committed yet.
    pub fn follow(&mut self, journal: &dyn Journal, most: u64) -> Result<u64, BooksError> {
        let first = self.books.cursor;
        let mut failed = None;
        let scanned = journal.scan(first, &mut |sequence, raw| {
            if sequence >= first + most {
                return ControlFlow::Break(());
            }
            let applied = match raw.decode() {
                Ok(record) => self.books.apply(&record),
                Err(_) => Err(BooksError::Inconsistent { sequence, what: "it cannot be decoded" }),
            };
            match applied {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        scanned.map_err(io)?;
        match failed {
            Some(error) => Err(error),
            None => Ok(self.books.cursor - first),
        }
    }

    /// The number of records that were applied but not committed.
    pub fn uncommitted(&self) -> u64 {
        self.books.cursor - self.committed
    }

    /// Writes the changes. The books can be read meanwhile but must not change.
    pub fn write(&self, journal: &dyn Journal) -> Result<Written, BooksError> {
        let Some(file) = &self.books.store.file else { return Ok(Written { cursor: self.books.cursor }) };
        let books = &self.books;
        // After damage, nothing must be written.
        books.sound(())?;
        let last = hash_before(journal, books.cursor)?;
        let writing = file.database.begin_write().map_err(io)?;
        {
            let mut segments = writing.open_table(SEGMENTS).map_err(io)?;
            for place in &books.store.fresh_places {
                if let Some(bytes) = books.store.fresh_segment(*place) {
                    store::write(&mut segments, SEGMENTS, *place, bytes).map_err(io)?;
                }
            }
            for place in &books.store.dropped {
                store::remove(&mut segments, *place).map_err(io)?;
            }
            let mut rows = writing.open_table(ROWS).map_err(io)?;
            let first = books.chunks.len() - books.fresh_chunks.len();
            for (number, chunk) in (first as u64..).zip(&books.fresh_chunks) {
                store::write(&mut rows, ROWS, number, chunk).map_err(io)?;
            }
            let mut heads = writing.open_table(HEADS).map_err(io)?;
            for (number, head) in (first as u64..).zip(&books.chunks[first..]) {
                store::write(&mut heads, HEADS, number, &encoded(head)).map_err(io)?;
            }
            let mut finder = writing.open_table(FINDER).map_err(io)?;
            for (page, bytes) in books.finder.dirty(&books.store)? {
                store::write(&mut finder, FINDER, page, &bytes).map_err(io)?;
            }
            let mut stays = writing.open_table(STAYS).map_err(io)?;
            for (list, bytes) in books.stays.fresh() {
                store::write(&mut stays, STAYS, list, bytes).map_err(io)?;
            }
            let mut stories = writing.open_table(STORIES).map_err(io)?;
            for (number, bytes) in books.stories.fresh() {
                store::write(&mut stories, STORIES, number, bytes).map_err(io)?;
            }
            let mut state = writing.open_table(STATE).map_err(io)?;
            let entries: [(u64, &[u8]); 3] =
                [(VERSION_KEY, &BOOKS_VERSION.to_le_bytes()), (LAST_KEY, &last), (STATE_KEY, &books.to_state())];
            for (key, bytes) in entries {
                store::remove(&mut state, key).map_err(io)?;
                store::write(&mut state, STATE, key, bytes).map_err(io)?;
            }
        }
        writing.commit().map_err(io)?;
        Ok(Written { cursor: books.cursor })
    }

    /// After [`Self::write`]: drops from memory what is in the file.
    pub fn written(&mut self, written: Written) -> Result<(), BooksError> {
        assert_eq!(written.cursor, self.books.cursor, "the books did not change while they were written");
        self.committed = written.cursor;
        let books = &mut self.books;
        if books.store.file.is_none() {
            return Ok(());
        }
        books.fresh_chunks.clear();
        books.finder.written();
        books.stays.written();
        books.stories.written();
        books.store.dropped.clear();
        books.store.forget_fresh();
        books.store.look_again().map_err(io)
    }

    /// Writes the changes.
    pub fn commit(&mut self, journal: &dyn Journal) -> Result<(), BooksError> {
        let written = self.write(journal)?;
        self.written(written)
    }

    /// The size of the file in bytes.
    pub fn disk_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let file = self.path.as_ref().and_then(|path| std::fs::metadata(path).ok());
        file.map_or(0, |file| file.blocks() * 512)
    }
}

/// A finished commit.
#[must_use]
pub struct Written {
    cursor: u64,
}
