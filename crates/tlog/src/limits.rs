//! The size of everything that comes from outside, in one place.

/// Leaves in a tree. Far beyond any journal, and low enough that sizes and spans never overflow.
pub const TREE_SIZE_MAX: u64 = 1 << 62;

/// Hashes in one proof. A tree of [`TREE_SIZE_MAX`] needs no more, and tlog-witness allows no more.
pub const PROOF_HASHES_MAX: usize = 63;

/// Bytes of unauthenticated extra data in a proof file.
pub const PROOF_EXTRA_BYTES_MAX: usize = 64 << 10;

/// Bytes of a whole proof file: the extra data in base64, the hash lines, and a note.
pub const PROOF_FILE_BYTES_MAX: usize = NOTE_BYTES_MAX + (128 << 10);

/// Bytes of a whole note, signatures included.
pub const NOTE_BYTES_MAX: usize = 1 << 20;

/// Signature lines in one note: what signed-note asks every verifier to accept, and no more.
pub const NOTE_SIGNATURES_MAX: usize = 16;

/// Bytes of a key name or an origin. tlog-cosignature gives both a one-byte length.
pub const NAME_BYTES_MAX: usize = 255;

/// Extension lines of a checkpoint. Together with the next limit, a checkpoint always fits a note.
pub const EXTENSION_LINES_MAX: usize = 16;

/// Bytes of one extension line.
pub const EXTENSION_BYTES_MAX: usize = 1024;

/// Seconds since the epoch in a cosignature (tlog-cosignature: "MUST NOT exceed 2^63 - 1").
pub const COSIGNATURE_SECONDS_MAX: u64 = (1 << 63) - 1;
