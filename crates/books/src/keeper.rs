//! The books in their file: opens or rebuilds them, follows the journal, and commits.
//!
//! A commit is one transaction, so the file always contains the books as of one record. The file is never ahead of the
//! journal: only durable records are applied, and on opening, the last applied record must be in the journal.

use crate::facts::{Books, BooksError};
use crate::persist::{BOOKS_VERSION, Indexes};
use crate::runs::Runs;
use crate::seal::{Commit, FILE_BYTES, Seal};
use crate::store::{
    self, CORRELATIONS, Definition, ENTRIES, FINDER, HEADS, INVOICES, LINE_HOURS, PAYER_ENTRIES, ROWS, SEGMENTS,
    SHARES, STATE, STAYS, STORIES, Store, UNIT_HOURS, USAGE_BEHIND, USAGE_FILTERS, USAGE_IDS, USAGE_REFUSED,
};
use crate::units::WrittenIds;
use leasehold_journal::disk::is_out_of_files;
use leasehold_journal::{Journal, MacKey, ReadError};
use leasehold_model::codec::Field;
use leasehold_model::record::Hash;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const VERSION_KEY: u64 = 0;
const LAST_KEY: u64 = 1;
const STATE_KEY: u64 = 2;
/// The number of entries of `STORIES`, the one table in which an entry may be absent.
const STORIES_KEY: u64 = 3;
/// The file's own identity; not bound to itself.
const FILE_KEY: u64 = 4;

/// The result of opening the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The file was loaded.
    Continued,
    /// There was no file.
    New,
    /// The file was discarded, because it has another version, belongs to another journal, is ahead of it, is damaged,
    /// or was not written with this secret.
    Rebuilt(&'static str),
}

/// Why the file could not be loaded.
enum Unusable {
    /// It is no good, and is built again.
    Discarded(&'static str),
    /// It, or the journal, could not be read: the disk is full or fails, or a segment is not available. The file is kept.
    Unread(String),
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

/// The journal may be readable later, for example when an archive is mounted again.
fn unread(error: ReadError) -> BooksError {
    BooksError::Unread(error.to_string())
}

/// Whether it says nothing about the file: the disk is full, or too many files are open.
fn passes(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
        || is_out_of_files(error)
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
        scanned.map_err(unread)?;
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

    /// Opens the books at `path` for this journal, or starts with empty books. `key` authenticates the file's entries.
    pub fn open(path: &Path, journal: &dyn Journal, key: &MacKey) -> Result<(Self, Opened), BooksError> {
        let existed = path.exists();
        // If panics abort the process, a file that causes a panic would prevent every start. A marker file next to it
        // shows that the last attempt to open it did not finish.
        let mark = path.with_extension("opening");
        let loaded = if mark.exists() {
            Err(Unusable::Discarded("the last attempt to open it did not finish"))
        } else {
            let making = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&mark);
            making.map_err(|error| BooksError::Unread(error.to_string()))?;
            Self::load(path, journal, key)
        };
        let why = match loaded {
            Ok(Some(keeper)) => {
                std::fs::remove_file(&mark).map_err(io)?;
                return Ok((keeper, Opened::Continued));
            }
            Ok(None) => "it is empty",
            // Nothing is wrong with the file: it can be opened later.
            Err(Unusable::Unread(why)) => {
                std::fs::remove_file(&mark).map_err(io)?;
                return Err(BooksError::Unread(why));
            }
            Err(Unusable::Discarded(why)) => why,
        };
        if existed {
            std::fs::remove_file(path).map_err(io)?;
        }
        std::fs::remove_file(&mark).map_err(io)?;
        let mut file = [0; FILE_BYTES];
        getrandom::fill(&mut file).map_err(io)?;
        let store = Store::open(path, Seal { key: key.clone(), file }).map_err(|error| match error {
            redb::Error::Io(error) if passes(&error) => BooksError::Unread(error.to_string()),
            error => io(error),
        })?;
        let books = Books::new(store);
        let opened = if existed { Opened::Rebuilt(why) } else { Opened::New };
        Ok((Self { books, path: Some(path.to_owned()), committed: 0 }, opened))
    }

    /// Whether the books at `path` can be continued; if not, why. The file is left as it is.
    pub fn check(path: &Path, journal: &dyn Journal, key: &MacKey) -> Result<(), &'static str> {
        match Self::load(path, journal, key) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err("there is none, or it contains nothing"),
            Err(Unusable::Discarded(why)) => Err(why),
            Err(Unusable::Unread(_)) => Err("it, or its last record in the journal, cannot be read"),
        }
    }

    fn load(path: &Path, journal: &dyn Journal, key: &MacKey) -> Result<Option<Self>, Unusable> {
        if !path.exists() {
            return Ok(None);
        }
        const DAMAGED: Unusable = Unusable::Discarded("it is damaged, or was not written with local.secret");
        // A damaged file can make the store panic; this is treated as damage.
        let anonymous = Seal { key: key.clone(), file: [0; FILE_BYTES] };
        let opened = std::panic::catch_unwind(|| Store::open(path, anonymous)).map_err(|_| DAMAGED)?;
        let mut store = opened.map_err(|error| match error {
            redb::Error::Io(error) if passes(&error) => Unusable::Unread(error.to_string()),
            _ => DAMAGED,
        })?;
        let Some(file) = store.entry(STATE, FILE_KEY).map_err(|_| DAMAGED)? else { return Ok(None) };
        store.set_file(file.try_into().map_err(|_| DAMAGED)?);
        let entry = |key| store.entry_of_commit(STATE, key).map_err(|_| DAMAGED)?.ok_or(DAMAGED);
        let (commit, version) = entry(VERSION_KEY)?;
        if version != BOOKS_VERSION.to_le_bytes() {
            return Err(Unusable::Discarded("it has another format version"));
        }
        let [last, state, stories] = [entry(LAST_KEY)?, entry(STATE_KEY)?, entry(STORIES_KEY)?];
        // Each was written by the same commit: none of them is older than the others.
        if [&last, &state, &stories].iter().any(|(of, _)| *of != commit) || last.1 != commit.hash {
            return Err(DAMAGED);
        }
        let (state, stories) = (state.1, stories.1);
        let mut books = Books::new(store);
        let (chunks, usage_ids) = books.read_state(&state).map_err(|_| DAMAGED)?;
        books.read_heads(chunks).map_err(|_| DAMAGED)?;
        books.units.ids.read(usage_ids, &books.store).map_err(|_| DAMAGED)?;
        let kept = books.store.count(STORIES).map_err(|_| DAMAGED)?;
        let entries = books.store.count(ENTRIES).map_err(|_| DAMAGED)?;
        let invoices = books.store.count(INVOICES).map_err(|_| DAMAGED)?;
        if !books.ledger.is_complete(entries, invoices) {
            return Err(DAMAGED);
        }
        if books.cursor != commit.cursor || stories != kept.to_le_bytes() {
            return Err(DAMAGED);
        }
        books.stories.kept = kept;
        if books.cursor > journal.head().size {
            return Err(Unusable::Discarded("it is ahead of the journal"));
        }
        let last = hash_before(journal, books.cursor).map_err(|error| match error {
            BooksError::Unread(why) => Unusable::Unread(why),
            _ => Unusable::Discarded("the journal does not contain its last record"),
        })?;
        if last != commit.hash {
            return Err(Unusable::Discarded("it belongs to another journal"));
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
        let taken = self.books.cursor - first;
        match (failed, scanned.map_err(unread)) {
            (Some(error), _) => Err(error),
            // What was applied counts; the rest is read later.
            (None, Err(_)) if taken > 0 => Ok(taken),
            (None, scanned) => scanned.map(|()| taken),
        }
    }

    /// The number of records that were applied but not committed.
    pub fn uncommitted(&self) -> u64 {
        self.books.cursor - self.committed
    }

    /// Writes the changes. The books can be read meanwhile but must not change.
    pub fn write(&self, journal: &dyn Journal) -> Result<Written, BooksError> {
        let books = &self.books;
        let Some(file) = &books.store.file else {
            let commit = Commit { cursor: books.cursor, hash: [0; 32] };
            let (indexes, usage_ids) = (Indexes::default(), WrittenIds::default());
            return Ok(Written { commit, stories_kept: 0, indexes, usage_ids });
        };
        // After damage, nothing must be written.
        books.sound(())?;
        let commit = Commit { cursor: books.cursor, hash: hash_before(journal, books.cursor)? };
        let seal = &file.seal;
        let writing = file.database.begin_write().map_err(io)?;
        let (stories_kept, indexes, usage_ids);
        {
            let mut segments = writing.open_table(SEGMENTS).map_err(io)?;
            for place in &books.store.fresh_places {
                if let Some(bytes) = books.store.fresh_segment(*place) {
                    store::write(&mut segments, seal, SEGMENTS, *place, None, bytes).map_err(io)?;
                }
            }
            for place in &books.store.dropped {
                store::remove(&mut segments, *place).map_err(io)?;
            }
            let mut rows = writing.open_table(ROWS).map_err(io)?;
            let first = books.chunks.len() - books.fresh_chunks.len();
            for (number, chunk) in (first as u64..).zip(&books.fresh_chunks) {
                store::write(&mut rows, seal, ROWS, number, None, chunk).map_err(io)?;
            }
            let mut heads = writing.open_table(HEADS).map_err(io)?;
            for (number, head) in (first as u64..).zip(&books.chunks[first..]) {
                store::write(&mut heads, seal, HEADS, number, None, &encoded(head)).map_err(io)?;
            }
            let mut finder = writing.open_table(FINDER).map_err(io)?;
            for (page, bytes) in books.finder.dirty(&books.store)? {
                store::write(&mut finder, seal, FINDER, page, Some(&commit), &bytes).map_err(io)?;
            }
            let mut stays = writing.open_table(STAYS).map_err(io)?;
            for (list, bytes) in books.stays.fresh() {
                store::write(&mut stays, seal, STAYS, list, None, bytes).map_err(io)?;
            }
            let mut stories = writing.open_table(STORIES).map_err(io)?;
            let mut kept = books.stories.kept;
            for (number, bytes) in books.stories.fresh() {
                kept += u64::from(store::write(&mut stories, seal, STORIES, number, None, bytes).map_err(io)?);
            }
            let mut ledger = writing.open_table(ENTRIES).map_err(io)?;
            for (sequence, bytes) in &books.ledger.fresh_entries {
                store::write(&mut ledger, seal, ENTRIES, *sequence, None, bytes).map_err(io)?;
            }
            let mut invoices = writing.open_table(INVOICES).map_err(io)?;
            for (number, bytes) in &books.ledger.fresh_invoices {
                store::write(&mut invoices, seal, INVOICES, *number, None, bytes).map_err(io)?;
            }
            let index = |runs: &Runs, of: Definition| {
                let mut table = writing.open_table(of).map_err(io)?;
                runs.write(of, &books.store, seal, &mut table)
            };
            let mut hours = writing.open_table(UNIT_HOURS).map_err(io)?;
            for (hour, bytes) in books.units.hours.dirty(&books.store)? {
                store::write(&mut hours, seal, UNIT_HOURS, hour, Some(&commit), &bytes).map_err(io)?;
            }
            let mut ids = writing.open_table(USAGE_IDS).map_err(io)?;
            let mut filters = writing.open_table(USAGE_FILTERS).map_err(io)?;
            let now = books.last_stamp;
            usage_ids = books.units.ids.write(now, &books.store, seal, &mut ids, &mut filters)?;
            indexes = Indexes {
                usage_ids: usage_ids.heads().collect(),
                correlations: index(&books.correlations, CORRELATIONS)?,
                payer_entries: index(&books.ledger.payer_entries, PAYER_ENTRIES)?,
                line_hours: index(&books.ledger.line_hours, LINE_HOURS)?,
                usage_behind: index(&books.units.behind, USAGE_BEHIND)?,
                usage_refused: index(&books.units.refused, USAGE_REFUSED)?,
                shares: index(&books.ledger.shares, SHARES)?,
            };
            let mut state = writing.open_table(STATE).map_err(io)?;
            let entries: [(u64, &[u8]); 4] = [
                (VERSION_KEY, &BOOKS_VERSION.to_le_bytes()),
                (LAST_KEY, &commit.hash),
                (STATE_KEY, &books.to_state(&commit, &indexes)),
                (STORIES_KEY, &kept.to_le_bytes()),
            ];
            for (key, bytes) in entries {
                store::remove(&mut state, key).map_err(io)?;
                store::write(&mut state, seal, STATE, key, Some(&commit), bytes).map_err(io)?;
            }
            // Under no identity, so that it can be read before it is known.
            let anonymous = Seal { key: seal.key.clone(), file: [0; FILE_BYTES] };
            store::write(&mut state, &anonymous, STATE, FILE_KEY, None, &seal.file).map_err(io)?;
            stories_kept = kept;
        }
        writing.commit().map_err(io)?;
        Ok(Written { commit, stories_kept, indexes, usage_ids })
    }

    /// After [`Self::write`]: drops from memory what is in the file.
    pub fn written(&mut self, written: Written) -> Result<(), BooksError> {
        assert_eq!(written.commit.cursor, self.books.cursor, "the books did not change while they were written");
        let books = &mut self.books;
        // First, because it can fail: then memory and the version that is read stay as they are, which fit together.
        books.store.look_again().map_err(io)?;
        self.committed = written.commit.cursor;
        if books.store.file.is_none() {
            return Ok(());
        }
        books.fresh_chunks.clear();
        books.finder.written(&written.commit);
        books.stays.written();
        books.stories.written(written.stories_kept);
        books.ledger.written();
        books.correlations.written(written.indexes.correlations);
        books.ledger.payer_entries.written(written.indexes.payer_entries);
        books.ledger.line_hours.written(written.indexes.line_hours);
        books.units.behind.written(written.indexes.usage_behind);
        books.units.refused.written(written.indexes.usage_refused);
        books.ledger.shares.written(written.indexes.shares);
        books.units.hours.written(&written.commit);
        books.units.ids.written(written.usage_ids);
        books.store.dropped.clear();
        books.store.forget_fresh();
        Ok(())
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
    commit: Commit,
    /// Entries of `STORIES` in the file.
    stories_kept: u64,
    indexes: Indexes,
    usage_ids: WrittenIds,
}
