//! What makes an entry of the file ours: a MAC by the data directory's secret (SEMANTICS 11, "Local authenticity").
//!
//! The MAC binds the entry to its file, table, key and number of pieces, so that no entry passes for another. What is
//! rewritten in place is also bound to the commit that wrote it, so that an older version of it does not pass for the
//! present one.

use crate::store::Definition;
use leasehold_journal::MacKey;
use leasehold_model::record::Hash;
use redb::TableHandle;

const MAC_BYTES: usize = 32;
/// Number of pieces and MAC.
pub(crate) const HEAD_BYTES: usize = 4 + MAC_BYTES;
const COMMIT_BYTES: usize = 8 + 32;
/// Bytes that identify a file.
pub(crate) const FILE_BYTES: usize = 16;

/// The record up to which the books had followed the journal when something was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) cursor: u64,
    /// The hash of the last record before the cursor.
    pub(crate) hash: Hash,
}

impl Commit {
    fn bytes(&self) -> [u8; COMMIT_BYTES] {
        let mut bytes = [0; COMMIT_BYTES];
        bytes[..8].copy_from_slice(&self.cursor.to_le_bytes());
        bytes[8..].copy_from_slice(&self.hash);
        bytes
    }

    fn parse(bytes: &[u8; COMMIT_BYTES]) -> Self {
        let (cursor, hash) = bytes.split_first_chunk().expect("40 bytes");
        Self { cursor: u64::from_le_bytes(*cursor), hash: hash.try_into().expect("32 bytes") }
    }
}

/// Authenticates the entries of one file.
#[derive(Clone, Debug)]
pub(crate) struct Seal {
    pub(crate) key: MacKey,
    /// Random: entries of one file do not pass for those of another.
    pub(crate) file: [u8; FILE_BYTES],
}

impl Seal {
    fn parts(&self, of: Definition, key: u64, pieces: u32) -> Vec<u8> {
        let table = of.name().as_bytes();
        let mut bound = self.file.to_vec();
        bound.extend_from_slice(&(table.len() as u64).to_le_bytes());
        bound.extend_from_slice(table);
        bound.extend_from_slice(&key.to_le_bytes());
        bound.extend_from_slice(&pieces.to_le_bytes());
        bound
    }

    /// The entry as it is stored: number of pieces, MAC, the commit where it is bound to one, body.
    pub(crate) fn sealed(&self, of: Definition, key: u64, commit: Option<&Commit>, body: &[u8]) -> Vec<u8> {
        let commit = commit.map(Commit::bytes);
        let commit = commit.as_ref().map_or(&[][..], |bytes| &bytes[..]);
        let length = HEAD_BYTES + commit.len() + body.len();
        let pieces = u32::try_from(length.div_ceil(crate::store::PIECE_BYTES)).expect("far below 4 GiB");
        let mac = self.key.mac(&[&self.parts(of, key, pieces), &[u8::from(!commit.is_empty())], commit, body]);
        let mut all = Vec::with_capacity(length);
        all.extend_from_slice(&pieces.to_le_bytes());
        all.extend_from_slice(&mac);
        all.extend_from_slice(commit);
        all.extend_from_slice(body);
        all
    }

    /// The body of an entry, if it was written here.
    pub(crate) fn opened(&self, of: Definition, key: u64, all: &[u8]) -> Option<Vec<u8>> {
        let (_, body) = self.split(of, key, all, 0)?;
        Some(body.to_vec())
    }

    /// The same of an entry that is bound to the commit that wrote it.
    pub(crate) fn opened_of_commit(&self, of: Definition, key: u64, all: &[u8]) -> Option<(Commit, Vec<u8>)> {
        let (commit, body) = self.split(of, key, all, COMMIT_BYTES)?;
        Some((Commit::parse(commit.try_into().ok()?), body.to_vec()))
    }

    fn split<'b>(&self, of: Definition, key: u64, all: &'b [u8], commit: usize) -> Option<(&'b [u8], &'b [u8])> {
        let (pieces, rest) = all.split_first_chunk()?;
        let pieces = u32::from_le_bytes(*pieces);
        let (mac, rest) = rest.split_first_chunk::<MAC_BYTES>()?;
        let (commit, body) = rest.split_at_checked(commit)?;
        // Pieces that an earlier, longer entry left behind would show here.
        let whole = all.len().div_ceil(crate::store::PIECE_BYTES) == pieces as usize;
        let bound = self.parts(of, key, pieces);
        let own = self.key.fits(&[&bound, &[u8::from(!commit.is_empty())], commit, body], mac);
        (whole && own).then_some((commit, body))
    }
}
