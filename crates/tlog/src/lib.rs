//! The transparency log over the sealed journal: an RFC 6962 tree, its proofs and its signed heads.
//!
//! In: record hashes in journal order, keys, and texts from others (checkpoints, proofs, cosignatures).
//! Out: tree roots, proofs that a record is in the log or that the log only grew, and signed notes in the
//! C2SP forms (signed-note, tlog-checkpoint, tlog-proof, tlog-cosignature, the request of tlog-witness).
//! Not here: how records are encoded or stored, ML-DSA, tiles, any network.
//!
//! It must never read a clock, a file or randomness, know what a lease is, trust a text before its
//! signature is checked, or panic on its input. Every limit is in [`limits`].

mod atoms;
mod checkpoint;
mod cosignature;
mod frontier;
mod hash;
mod key;
pub mod limits;
mod multiproof;
mod note;
mod proof;
mod proof_builder;
mod proof_file;
mod span;
mod subtree;

pub use atoms::decode_hash as hash_from_base64;
pub use checkpoint::{Checkpoint, CheckpointError};
pub use cosignature::{CosignatureError, WitnessKey, WitnessSigningKey};
pub use frontier::{Frontier, FrontierError};
pub use hash::{Hash, empty_root, leaf_hash, leaf_hashes, node_hash, perfect_root};
pub use key::{BadSignature, KeyError, KeyId, SigningKey, VerifierKey, verify_raw};
pub use multiproof::{Multiproof, MultiproofBuilder, multiproof_root};
pub use note::{Note, NoteError, NoteSignature};
pub use proof::{ConsistencyProof, InclusionProof, ProofError};
pub use proof_builder::{ConsistencyBuilder, InclusionBuilder};
pub use proof_file::{ConsistencyFile, InclusionFile, ProofFileError};
pub use subtree::{Subtree, SubtreeRoots};
