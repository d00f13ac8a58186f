//! Snapshots: folded state with the position it belongs to, each in its own file.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | `LHSNAPSH` |
//! | 8 | 4 | version, LE: 3 |
//! | 12 | 4 | number of tree parts, LE |
//! | 16 | 8 | size, LE |
//! | 24 | 8 | length of the state, LE |
//! | 32 | 32 | hash of the last record |
//! | 64 | 32 | SHA-256 of the origin's name |
//! | 96 | 32 | SHA-256 of the state |
//! | 128 | 32 | hash of the first record of the journal |
//! | 160 | 32 × n | tree parts, as in a tree file |
//! | | 32 | MAC of everything before, by the data directory's secret |
//! | | … | the state |
//!
//! The MAC binds the state, by its hash, to its position (SEMANTICS 11, "Local authenticity"). It covers the head alone:
//! recovery needs the position and does not read a hundred megabytes for it. The hash of the first record identifies the
//! journal after its first segment was moved away. Version 2 lacks it. Version 1 had a SHA-256 in place of the MAC, which
//! anybody can recompute; such a snapshot is not used.

use super::layout::{SNAPSHOTS, snapshot_named, snapshot_path, write_whole};
use super::segment::origin_hash;
use crate::disk::{Access, Disk, DiskFile, read_full};
use crate::provider::{DamagedSnapshot, Head, LoadedSnapshot, Position, Snapshot};
use crate::secret::MacKey;
use leasehold_model::record::Hash;
use leasehold_tlog::Frontier;
use sha2::{Digest, Sha256};
use std::io;
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"LHSNAPSH";
const VERSION: u32 = 3;
/// Without the hash of the first record.
const VERSION_2: u32 = 2;
const FIXED_BYTES: usize = 128;
const HASH_BYTES: usize = 32;
const PARTS_MAX: usize = 64;

/// Whose snapshots count.
pub(super) struct Owner<'a> {
    pub(super) origin: &'a str,
    /// None for those who have no secret and only want to know how far snapshots go.
    pub(super) mac: Option<&'a MacKey>,
}

/// Writes a snapshot of the journal that begins with the record of the hash `genesis`. If it returns `Ok`, it is durable.
pub(super) fn write(disk: &dyn Disk, owner: &Owner<'_>, genesis: &Hash, at: &Position, state: &[u8]) -> io::Result<()> {
    let parts = at.tree.parts();
    assert!(parts.len() <= PARTS_MAX, "a tree has at most 62 parts");
    let mut head = Vec::with_capacity(FIXED_BYTES + HASH_BYTES * (parts.len() + 2));
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&at.head.size.count_ones().to_le_bytes());
    head.extend_from_slice(&at.head.size.to_le_bytes());
    head.extend_from_slice(&(state.len() as u64).to_le_bytes());
    head.extend_from_slice(&at.head.hash);
    head.extend_from_slice(&origin_hash(owner.origin));
    head.extend_from_slice(&Sha256::digest(state));
    head.extend_from_slice(genesis);
    for part in parts {
        head.extend_from_slice(part);
    }
    let mac = owner.mac.expect("who writes snapshots has the secret").mac(&[&head]);
    head.extend_from_slice(&mac);
    let put = || write_whole(disk, SNAPSHOTS, &snapshot_path(at.head.size), &[&head, state]);
    match put() {
        // Somebody removed the directory while the journal is open.
        Err(error) if error.kind() == io::ErrorKind::NotFound => disk.create_dir(SNAPSHOTS).and_then(|()| put()),
        written => written,
    }
}

/// The sizes of all snapshots, ascending. None if the directory is missing: snapshots can be deleted at any time.
pub(super) fn list(disk: &dyn Disk) -> io::Result<Vec<u64>> {
    let names = match disk.list(SNAPSHOTS) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names?,
    };
    let mut sizes: Vec<u64> = names.iter().filter_map(|name| snapshot_named(name)).collect();
    sizes.sort_unstable();
    Ok(sizes)
}

/// The newest undamaged snapshot of at most this size.
pub(super) fn load(disk: &dyn Disk, owner: &Owner<'_>, size_max: u64) -> io::Result<LoadedSnapshot> {
    let mut loaded = LoadedSnapshot::default();
    for size in list(disk)?.into_iter().rev().filter(|s| *s <= size_max) {
        match SnapshotFile::open(disk, owner, size).and_then(SnapshotFile::load) {
            Ok(snapshot) => {
                loaded.snapshot = Some(snapshot);
                break;
            }
            Err(Unusable::Damaged(why)) => loaded.damaged.push(DamagedSnapshot { size, why: why.into() }),
            Err(Unusable::Io(error)) => return Err(error),
        }
    }
    Ok(loaded)
}

/// The position of a snapshot, if its head is authentic.
pub(super) fn position(disk: &dyn Disk, owner: &Owner<'_>, size: u64) -> io::Result<Option<Position>> {
    Ok(head(disk, owner, size)?.map(|head| head.position))
}

/// What the head of a snapshot says.
pub(super) struct SnapshotHead {
    pub(super) position: Position,
    /// The hash of the first record; snapshots of version 2 do not contain it.
    pub(super) genesis: Option<Hash>,
}

/// The head of a snapshot, if it is authentic.
pub(super) fn head(disk: &dyn Disk, owner: &Owner<'_>, size: u64) -> io::Result<Option<SnapshotHead>> {
    match SnapshotFile::open(disk, owner, size) {
        Ok(file) => Ok(Some(SnapshotHead { position: file.position, genesis: file.genesis })),
        Err(Unusable::Damaged(_)) => Ok(None),
        Err(Unusable::Io(error)) => Err(error),
    }
}

/// The hash of the journal's first record, as the newest usable snapshot contains it.
pub(super) fn genesis(disk: &dyn Disk, owner: &Owner<'_>) -> io::Result<Option<Hash>> {
    for size in list(disk)?.into_iter().rev() {
        if let Some(SnapshotHead { genesis: Some(genesis), .. }) = head(disk, owner, size)? {
            return Ok(Some(genesis));
        }
    }
    Ok(None)
}

enum Unusable {
    Damaged(&'static str),
    Io(io::Error),
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A snapshot whose head is authentic.
struct SnapshotFile {
    file: Arc<dyn DiskFile>,
    position: Position,
    genesis: Option<Hash>,
    state_at: u64,
    state_bytes: u64,
    state_hash: Hash,
}

impl SnapshotFile {
    fn open(disk: &dyn Disk, owner: &Owner<'_>, size: u64) -> Result<Self, Unusable> {
        let file = disk.open(&snapshot_path(size), Access::Read)?;
        let mut bytes = vec![0; FIXED_BYTES + HASH_BYTES * (PARTS_MAX + 2)];
        let read = read_full(file.as_ref(), &mut bytes, 0)?;
        let bytes = &bytes[..read];
        let fixed = bytes
            .first_chunk::<FIXED_BYTES>()
            .filter(|fixed| fixed[..8] == MAGIC)
            .ok_or(Unusable::Damaged("it is not a snapshot"))?;
        let word = |at: usize| u32::from_le_bytes(fixed[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(fixed[at..at + 8].try_into().expect("8 bytes"));
        let hash = |at: usize| -> Hash { fixed[at..at + 32].try_into().expect("32 bytes") };
        let parts_begin = match word(8) {
            VERSION => FIXED_BYTES + HASH_BYTES,
            VERSION_2 => FIXED_BYTES,
            1 => return Err(Unusable::Damaged("it is of version 1, which cannot be authenticated")),
            _ => return Err(Unusable::Damaged("it is of another version")),
        };
        // Bounded before it is used: the MAC is checked only after it.
        let parts_end = parts_begin + HASH_BYTES * (word(12) as usize).min(PARTS_MAX);
        let mac = bytes.get(parts_end..parts_end + HASH_BYTES);
        let fits = |mac| owner.mac.is_none_or(|key| key.fits(&[&bytes[..parts_end]], mac));
        if !mac.is_some_and(fits) {
            return Err(Unusable::Damaged("it is damaged, or was not written with local.secret"));
        }
        if long(16) != size || hash(64) != origin_hash(owner.origin) {
            return Err(Unusable::Damaged("it is of another size or origin"));
        }
        let genesis = bytes[FIXED_BYTES..parts_begin].first_chunk::<HASH_BYTES>().copied();
        let parts = bytes[parts_begin..parts_end]
            .chunks_exact(HASH_BYTES)
            .map(|part| part.try_into().expect("32 bytes"))
            .collect();
        let tree =
            Frontier::from_parts(size, parts).map_err(|_| Unusable::Damaged("its tree does not fit its size"))?;
        Ok(Self {
            file,
            position: Position { head: Head { size, hash: hash(32) }, tree },
            genesis,
            state_at: (parts_end + HASH_BYTES) as u64,
            state_bytes: long(24),
            state_hash: hash(96),
        })
    }

    fn load(self) -> Result<Snapshot, Unusable> {
        if self.file.len()? != self.state_at + self.state_bytes {
            return Err(Unusable::Damaged("it is cut short or too long"));
        }
        let length = usize::try_from(self.state_bytes).map_err(|_| Unusable::Damaged("it is larger than memory"))?;
        let mut state = vec![0; length];
        let read = read_full(self.file.as_ref(), &mut state, self.state_at)?;
        if read != length || Sha256::digest(&state).as_slice() != self.state_hash {
            return Err(Unusable::Damaged("its state does not match its hash"));
        }
        Ok(Snapshot { position: self.position, state })
    }
}
