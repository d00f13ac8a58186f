//! The signing keys of a journal, from its files: the genesis record, the key rotations, and who signed the newest
//! checkpoint.

use super::open;
use crate::cli::JournalArgs;
use crate::journal_files::JournalFiles;
use crate::problem::Problem;
use leasehold_api::{KeyList, KeyStatus, SigningKey, When};
use leasehold_model::{Body, Instant, hex};
use leasehold_tlog::VerifierKey;
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;

/// A key, and the record that put it in force.
pub(super) struct Since {
    pub(super) key: VerifierKey,
    pub(super) sequence: u64,
    pub(super) stamp: Instant,
}

/// The keys that the first `size` records put in force, oldest first; at least that of the genesis record.
pub(super) fn history(files: &JournalFiles, size: u64) -> Result<Vec<Since>, Problem> {
    let origin = &files.signed().origin;
    let mut keys = Vec::new();
    files.scan_from_genesis(&mut |entry| {
        if entry.sequence >= size.max(1) {
            return Ok(ControlFlow::Break(()));
        }
        let undecodable = |error| {
            let what = format!("record {} cannot be read: {error}", entry.sequence);
            Problem::not_verified("record_undecodable", what).advice("run leasehold audit verify")
        };
        let record = entry.raw.decode().map_err(undecodable)?;
        let key = if entry.sequence == 0 {
            let Body::Genesis(genesis) = &record.body else {
                return Err(not_derivable("the first record is not a genesis record"));
            };
            if genesis.origin.as_str() != origin {
                return Err(not_derivable("the first record does not name the anchor's origin"));
            }
            genesis.public_key
        } else if let Body::KeyRotated(rotated) = &record.body {
            rotated.new_key
        } else {
            return Ok(ControlFlow::Continue(()));
        };
        let key = VerifierKey::new(origin, &key).map_err(|error| not_derivable(&error.to_string()))?;
        keys.push(Since { key, sequence: entry.sequence, stamp: record.stamp });
        Ok(ControlFlow::Continue(()))
    })?;
    if keys.is_empty() {
        return Err(Problem::refused("journal_empty", "the journal has no record yet").advice("try again in a moment"));
    }
    Ok(keys)
}

pub(super) fn not_derivable(why: &str) -> Problem {
    Problem::not_verified("trust_not_derivable", why).advice("the segments do not belong to this anchor")
}

/// `leasehold key show --data`.
pub(crate) fn list(args: &JournalArgs) -> Result<KeyList, Problem> {
    let files = open(args)?;
    let signed = files.signed();
    let history = history(&files, u64::MAX)?;
    let in_force = history.last().expect("there is a first key").key.clone();
    let keys = history.into_iter().map(|Since { key, sequence, stamp }| {
        let signing = signed.note.signatures().iter().any(|signature| signature.key_id() == key.id());
        let status = match () {
            () if key == in_force => KeyStatus::InForce,
            () if signing => KeyStatus::StillSigning,
            () => KeyStatus::Retired,
        };
        SigningKey {
            id: key.id().to_string(),
            status,
            verifier_key: key.to_string(),
            public_key: hex::encode(&key.public_key()),
            fingerprint: hex::encode(&Sha256::digest(key.public_key())),
            from_size: Some(sequence + 1),
            since: Some(When(stamp)),
        }
    });
    Ok(KeyList { origin: signed.origin.clone(), keys: keys.collect() })
}
