//! Which key was in force from which size on, read from the journal: its genesis record and its key rotations.
//!
//! The records are scanned once, and afterwards only what has been added.

use crate::app::App;
use crate::scans::unreadable;
use leasehold_api::{KeyList, KeyStatus, Problem, SigningKey, When, codes};
use leasehold_journal::{Journal, ReadError};
use leasehold_model::{Body, Instant, hex};
use leasehold_tlog::VerifierKey;
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// The keys found so far.
#[derive(Debug, Default)]
pub(crate) struct KeyHistory(Mutex<Found>);

#[derive(Clone, Debug, Default)]
struct Found {
    /// The records before this one were scanned.
    scanned: u64,
    keys: Vec<Since>,
}

/// A key, and the record that put it in force.
#[derive(Clone, Copy, Debug)]
struct Since {
    key: [u8; 32],
    sequence: u64,
    stamp: Instant,
}

impl KeyHistory {
    /// Reads what was added to the journal; empty if the beginning was moved away.
    fn read(&self, journal: &dyn Journal) -> Result<Vec<Since>, ReadError> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = found.scanned;
        let scanned = journal.scan(from, &mut |sequence, raw| {
            found.scanned = sequence + 1;
            if sequence == 0 || raw.kind() == Ok(KEY_ROTATED) {
                // What is durable was decoded before.
                let Ok(record) = raw.decode() else { return ControlFlow::Continue(()) };
                let stamp = record.stamp;
                if let Body::Genesis(genesis) = &record.body {
                    found.keys.push(Since { key: genesis.public_key, sequence, stamp });
                } else if let Body::KeyRotated(rotated) = &record.body {
                    found.keys.push(Since { key: rotated.new_key, sequence, stamp });
                }
            }
            ControlFlow::Continue(())
        });
        match scanned {
            Ok(()) => Ok(found.keys.clone()),
            Err(ReadError::Archived { .. }) if from == 0 => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl KeyHistory {
    /// The sequences of all key rotations.
    pub(crate) fn rotations(&self, journal: &dyn Journal) -> Result<Vec<u64>, ReadError> {
        let keys = self.read(journal)?;
        // The first record is the genesis.
        Ok(keys.into_iter().map(|since| since.sequence).filter(|sequence| *sequence > 0).collect())
    }
}

/// The code of `journal.key_rotated`.
const KEY_ROTATED: u64 = 4;

/// All keys of the journal: those that its records name, and those in the key file that they do not.
pub(crate) fn key_list(app: &App) -> Result<KeyList, Problem> {
    let history = app.key_history.read(app.journal.as_ref()).map_err(|error| unreadable(&error))?;
    let in_force = app.now.read(|state| *state.public_key());
    let signing = app.keys.still_signing(&in_force);
    let mut order: Vec<[u8; 32]> = history.iter().map(|since| since.key).collect();
    let held = app.keys.retired().into_iter().chain(signing.iter().cloned());
    for key in held.map(|key| key.public_key()).chain([in_force]) {
        if !order.contains(&key) {
            order.push(key);
        }
    }
    let origin = app.journal.origin();
    let keys = order.into_iter().map(|key| {
        let status = match key {
            key if key == in_force => KeyStatus::InForce,
            key if signing.iter().any(|signing| signing.public_key() == key) => KeyStatus::StillSigning,
            _ => KeyStatus::Retired,
        };
        // A key that was in force twice is shown with its last time.
        let since = history.iter().rev().find(|since| since.key == key);
        let verifier = VerifierKey::new(origin, &key)
            .map_err(|error| codes::INTERNAL.problem(format!("A key of the journal is not usable: {error}.")))?;
        Ok(SigningKey {
            id: verifier.id().to_string(),
            status,
            verifier_key: verifier.to_string(),
            public_key: hex::encode(&key),
            fingerprint: hex::encode(&Sha256::digest(key)),
            from_size: since.map(|since| since.sequence + 1),
            since: since.map(|since| When(since.stamp)),
        })
    });
    Ok(KeyList { origin: origin.to_owned(), keys: keys.collect::<Result<_, Problem>>()? })
}
