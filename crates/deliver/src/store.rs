//! The file `deliveries.redb`: how far each sink came, its dead letters and its last attempts.
//!
//! Every value has a MAC under a key of the data directory, over the file's own identity, the table, the key and the
//! value (SEMANTICS 11, "Local authenticity"). An older value that is put back can only cause repetitions. A file that
//! cannot be used is set aside, not deleted; sinks then begin again where they were created.

use crate::event::{Place, SinkId};
use crate::progress::{Attempt, Changes, DeadLetter, Progress, Stored};
use leasehold_journal::MacKey;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

type ByNumber = TableDefinition<'static, u64, &'static [u8]>;
type ByPlace = TableDefinition<'static, (u64, u64, u16), &'static [u8]>;
const META: ByNumber = TableDefinition::new("meta");
const PROGRESS: ByNumber = TableDefinition::new("progress");
const ATTEMPTS: ByNumber = TableDefinition::new("attempts");
const DEAD: ByPlace = TableDefinition::new("dead");

const MAC_BYTES: usize = 32;
const FILE_BYTES: usize = 16;
const VERSION: u8 = 1;
const CACHE_BYTES: usize = 8 << 20;

/// How the file was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    Continued,
    /// There was none.
    New,
    /// It could not be used, and was set aside under this name.
    Replaced {
        why: String,
        kept_as: PathBuf,
    },
}

/// The file cannot be read or written now, or is used by another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError(pub String);

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deliveries.redb: {}", self.0)
    }
}
impl std::error::Error for StoreError {}

/// What is stored for a sink is damaged, or was not written by this daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged(pub &'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deliveries.redb: {} is damaged, or was not written with local.secret", self.0)
    }
}
impl std::error::Error for Damaged {}

/// Authenticates the values of one file.
struct Seal {
    key: MacKey,
    file: [u8; FILE_BYTES],
}

impl Seal {
    fn bound(&self, table: &str, key: &[u8]) -> Vec<u8> {
        let mut bound = self.file.to_vec();
        for part in [table.as_bytes(), key] {
            bound.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bound.extend_from_slice(part);
        }
        bound
    }
    fn sealed(&self, table: &str, key: &[u8], body: &[u8]) -> Vec<u8> {
        let mut all = self.key.mac(&[&self.bound(table, key), body]).to_vec();
        all.extend_from_slice(body);
        all
    }
    fn opened<'a>(&self, table: &str, key: &[u8], all: &'a [u8]) -> Option<&'a [u8]> {
        let (mac, body) = all.split_at_checked(MAC_BYTES)?;
        self.key.fits(&[&self.bound(table, key), body], mac).then_some(body)
    }
}

fn place_key(sink: SinkId, place: Place) -> [u8; 18] {
    let mut key = [0; 18];
    key[..8].copy_from_slice(&sink.0.to_le_bytes());
    key[8..16].copy_from_slice(&place.sequence.to_le_bytes());
    key[16..].copy_from_slice(&place.position.to_le_bytes());
    key
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain structures can be written as JSON")
}

pub struct Store {
    database: Database,
    seal: Seal,
}

/// Why a file was not opened.
enum Unusable {
    Discard(String),
    Later(StoreError),
}

fn unusable(error: redb::Error) -> Unusable {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    match error {
        redb::Error::Io(error) if !matches!(error.kind(), InvalidData | UnexpectedEof) => {
            Unusable::Later(StoreError(error.to_string()))
        }
        redb::Error::DatabaseAlreadyOpen => Unusable::Later(StoreError("another process uses it".to_owned())),
        error => Unusable::Discard(error.to_string()),
    }
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    StoreError(error.into().to_string())
}

impl Store {
    /// Opens the file, or creates it. `key` authenticates its values.
    pub fn open(path: &Path, key: &MacKey) -> Result<(Self, Opened), StoreError> {
        let io = |error: std::io::Error| StoreError(error.to_string());
        let existed = path.try_exists().map_err(io)?;
        // A damaged file can make the database panic, and with it the process; this shows it at the next start.
        let mark = path.with_extension("opening");
        let unfinished = mark.try_exists().map_err(io)?;
        let loaded = if existed && unfinished {
            Err(Unusable::Discard("the last attempt to open it did not finish".to_owned()))
        } else {
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&mark).map_err(io)?;
            Self::load(path, key)
        };
        let opened = match loaded {
            Ok(store) => Ok((store, if existed { Opened::Continued } else { Opened::New })),
            Err(Unusable::Later(error)) => Err(error),
            Err(Unusable::Discard(why)) => {
                let kept_as = path.with_extension("redb.damaged");
                std::fs::rename(path, &kept_as).map_err(io)?;
                match Self::load(path, key) {
                    Ok(store) => Ok((store, Opened::Replaced { why, kept_as })),
                    Err(Unusable::Later(error)) => Err(error),
                    Err(Unusable::Discard(why)) => Err(StoreError(why)),
                }
            }
        };
        std::fs::remove_file(&mark).map_err(io)?;
        opened
    }

    fn load(path: &Path, key: &MacKey) -> Result<Self, Unusable> {
        let open = || -> Result<Database, redb::Error> {
            // The database would create the file with the permissions of the process.
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
            let mut database = Database::builder().set_cache_size(CACHE_BYTES).create(path)?;
            match database.check_integrity()? {
                true => Ok(database),
                false => Err(redb::Error::Corrupted("page checksums do not match".to_owned())),
            }
        };
        let opened = std::panic::catch_unwind(open).map_err(|_| Unusable::Discard("it is damaged".to_owned()))?;
        Self::identify(opened.map_err(unusable)?, key)
    }

    /// In memory only, for tests.
    pub fn in_memory(key: &MacKey) -> Result<Self, StoreError> {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).map_err(failed)?;
        Self::identify(database, key).map_err(|error| match error {
            Unusable::Later(error) => error,
            Unusable::Discard(why) => StoreError(why),
        })
    }

    /// Reads the identity of the file, or gives it one.
    fn identify(database: Database, key: &MacKey) -> Result<Self, Unusable> {
        let unusable = |error: redb::Error| unusable(error);
        let mut seal = Seal { key: key.clone(), file: [0; FILE_BYTES] };
        let write = database.begin_write().map_err(|error| unusable(error.into()))?;
        {
            let mut meta = write.open_table(META).map_err(|error| unusable(error.into()))?;
            let stored = meta.get(0).map_err(|error| unusable(error.into()))?.map(|value| value.value().to_vec());
            match stored {
                Some(all) => {
                    let foreign = || Unusable::Discard("it was not written with local.secret".to_owned());
                    let body = seal.opened("meta", &[], &all).ok_or_else(foreign)?;
                    let (version, file) = body.split_first().ok_or_else(foreign)?;
                    if *version != VERSION {
                        return Err(Unusable::Discard("it has another format version".to_owned()));
                    }
                    seal.file = file.try_into().map_err(|_| foreign())?;
                }
                None => {
                    let mut file = [0; FILE_BYTES];
                    getrandom::fill(&mut file).map_err(|error| Unusable::Later(StoreError(error.to_string())))?;
                    let mut body = vec![VERSION];
                    body.extend_from_slice(&file);
                    meta.insert(0, &*seal.sealed("meta", &[], &body)).map_err(|error| unusable(error.into()))?;
                    seal.file = file;
                }
            }
        }
        for table in [PROGRESS, ATTEMPTS] {
            write.open_table(table).map_err(|error| unusable(error.into()))?;
        }
        write.open_table(DEAD).map_err(|error| unusable(error.into()))?;
        write.commit().map_err(|error| unusable(error.into()))?;
        Ok(Self { database, seal })
    }

    fn value<T: DeserializeOwned>(&self, table: &str, key: &[u8], all: &[u8]) -> Option<T> {
        serde_json::from_slice(self.seal.opened(table, key, all)?).ok()
    }

    fn numbered<T: DeserializeOwned>(&self, table: ByNumber, sink: SinkId) -> Result<Option<T>, Damaged> {
        const WHAT: Damaged = Damaged("the progress of a sink");
        let read = self.database.begin_read().map_err(|_| WHAT)?;
        let entries = read.open_table(table).map_err(|_| WHAT)?;
        let Some(all) = entries.get(sink.0).map_err(|_| WHAT)? else { return Ok(None) };
        self.value(table.name(), &sink.0.to_le_bytes(), all.value()).map(Some).ok_or(WHAT)
    }

    /// What is stored for a sink. `None` if nothing is.
    pub fn load_sink(&self, sink: SinkId) -> Result<Option<Stored>, Damaged> {
        let Some(progress) = self.numbered::<Progress>(PROGRESS, sink)? else { return Ok(None) };
        if !progress.done.is_sound() || !progress.dropped.is_sound() || !progress.lost.is_sound() {
            return Err(Damaged("the progress of a sink"));
        }
        let letters = self.dead_letters(sink, Place::default(), usize::MAX)?;
        let dead: Vec<_> = letters.into_iter().map(|letter| letter.place).collect();
        if dead.len() as u64 != progress.dead {
            return Err(Damaged("the list of dead letters"));
        }
        // Attempts are only shown.
        let attempts = self.numbered::<Vec<Attempt>>(ATTEMPTS, sink).ok().flatten().unwrap_or_default();
        Ok(Some(Stored { progress, dead, attempts }))
    }

    /// Dead letters of a sink from a place on, oldest first.
    pub fn dead_letters(&self, sink: SinkId, from: Place, most: usize) -> Result<Vec<DeadLetter>, Damaged> {
        const WHAT: Damaged = Damaged("a dead letter");
        let read = self.database.begin_read().map_err(|_| WHAT)?;
        let entries = read.open_table(DEAD).map_err(|_| WHAT)?;
        let range = (sink.0, from.sequence, from.position)..=(sink.0, u64::MAX, u16::MAX);
        let mut letters = Vec::new();
        for entry in entries.range(range).map_err(|_| WHAT)?.take(most) {
            let (key, all) = entry.map_err(|_| WHAT)?;
            let (_, sequence, position) = key.value();
            let key = place_key(sink, Place { sequence, position });
            letters.push(self.value(DEAD.name(), &key, all.value()).ok_or(WHAT)?);
        }
        Ok(letters)
    }

    /// Writes what has changed, of all sinks together. If it returns `Ok`, it is durable.
    pub fn commit(&self, changes: &[(SinkId, Changes)]) -> Result<(), StoreError> {
        let write = self.database.begin_write().map_err(failed)?;
        {
            let mut progress = write.open_table(PROGRESS).map_err(failed)?;
            let mut attempts = write.open_table(ATTEMPTS).map_err(failed)?;
            let mut dead = write.open_table(DEAD).map_err(failed)?;
            for (sink, changed) in changes {
                let key = sink.0.to_le_bytes();
                let body = self.seal.sealed(PROGRESS.name(), &key, &json(&changed.progress));
                progress.insert(sink.0, &*body).map_err(failed)?;
                if let Some(last) = &changed.attempts {
                    let body = self.seal.sealed(ATTEMPTS.name(), &key, &json(last));
                    attempts.insert(sink.0, &*body).map_err(failed)?;
                }
                for (place, letter) in &changed.dead {
                    let at = (sink.0, place.sequence, place.position);
                    match letter {
                        Some(letter) => {
                            let body = self.seal.sealed(DEAD.name(), &place_key(*sink, *place), &json(letter));
                            dead.insert(at, &*body).map_err(failed)?;
                        }
                        None => drop(dead.remove(at).map_err(failed)?),
                    }
                }
            }
        }
        write.commit().map_err(failed)
    }

    /// The sinks of which something is stored.
    pub fn sinks(&self) -> Result<Vec<SinkId>, StoreError> {
        let read = self.database.begin_read().map_err(failed)?;
        let progress = read.open_table(PROGRESS).map_err(failed)?;
        let all = progress.iter().map_err(failed)?;
        all.map(|entry| Ok(SinkId(entry.map_err(failed)?.0.value()))).collect()
    }

    /// Forgets a sink.
    pub fn forget(&self, sink: SinkId) -> Result<(), StoreError> {
        let write = self.database.begin_write().map_err(failed)?;
        {
            write.open_table(PROGRESS).map_err(failed)?.remove(sink.0).map_err(failed)?;
            write.open_table(ATTEMPTS).map_err(failed)?.remove(sink.0).map_err(failed)?;
            let mut dead = write.open_table(DEAD).map_err(failed)?;
            dead.retain_in((sink.0, 0, 0)..=(sink.0, u64::MAX, u16::MAX), |_, _| false).map_err(failed)?;
        }
        write.commit().map_err(failed)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store(..)")
    }
}

#[cfg(test)]
mod tests;
