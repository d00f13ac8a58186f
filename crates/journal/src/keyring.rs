//! The origin's signing keys: the one in force and those before or after it.
//!
//! The file `key` is the only secret of the folder besides `local.secret`. It is not read through
//! [`crate::disk::Disk`]: a simulated journal is handed its keys, and a real one wants them in a file that nobody else
//! may read.
//!
//! A rotation has three steps, each of which leaves a usable file: the new key is added to the file, the record that
//! puts it in force is sealed (from then on both keys sign checkpoints), and the old key is removed from the file.

use crate::error::KeyringError;
use crate::private_file;
use crate::text::Lines;
use leasehold_model::frame::Signer;
use leasehold_model::hex;
use leasehold_tlog::{KeyId, SigningKey, VerifierKey};
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::RwLock;

/// The keys of one origin, oldest first. Shared between the threads that sign; never printed.
pub struct Keys {
    origin: String,
    ring: RwLock<Ring>,
}

#[derive(Clone, Default)]
struct Ring {
    /// Keys whose secret was removed. They have signed for sizes before the first held key was in force.
    retired: Vec<VerifierKey>,
    held: Vec<SigningKey>,
}

impl Keys {
    /// A keyring with one key. The seed is 32 bytes of the caller's best randomness.
    pub fn new(origin: &str, seed: &[u8; 32]) -> Result<Self, KeyringError> {
        let keys = Self { origin: origin.to_owned(), ring: RwLock::default() };
        keys.add(seed)?;
        Ok(keys)
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Adds a key, as before a rotation, and returns its public half. Save the keyring before the rotation is appended.
    pub fn add(&self, seed: &[u8; 32]) -> Result<[u8; 32], KeyringError> {
        let key = SigningKey::from_seed(&self.origin, seed).map_err(KeyringError::BadOrigin)?;
        let public_key = key.public_key();
        let mut ring = self.ring.write().expect("no one panics with the keys");
        if !ring.held.iter().any(|held| held.public_key() == public_key) {
            ring.held.push(key);
        }
        Ok(public_key)
    }

    /// The public halves of the keys that are held, oldest first.
    pub fn public_keys(&self) -> Vec<[u8; 32]> {
        self.read(|ring| ring.held.iter().map(SigningKey::public_key).collect())
    }
    /// The keys whose secret was removed, oldest first.
    pub fn retired(&self) -> Vec<VerifierKey> {
        self.read(|ring| ring.retired.clone())
    }
    /// The keys before the one in force that still sign with it, oldest first: those of an unfinished rotation.
    pub fn still_signing(&self, in_force: &[u8; 32]) -> Vec<VerifierKey> {
        self.read(|ring| ring.before(in_force).iter().map(SigningKey::verifier).collect())
    }

    pub(crate) fn oldest(&self) -> SigningKey {
        self.read(|ring| ring.held[0].clone())
    }
    pub(crate) fn by_public_key(&self, public_key: &[u8; 32]) -> Option<SigningKey> {
        self.read(|ring| ring.held.iter().find(|k| k.public_key() == *public_key).cloned())
    }
    /// The public half of a key, held or retired.
    pub(crate) fn verifier(&self, id: KeyId) -> Option<VerifierKey> {
        self.read(|ring| {
            let held = ring.held.iter().map(SigningKey::verifier);
            held.chain(ring.retired.iter().cloned()).find(|key| key.id() == id)
        })
    }
    /// The key in force, then those that sign with it; none if it is not held.
    pub(crate) fn signing(&self, in_force: &[u8; 32]) -> Option<Vec<SigningKey>> {
        self.read(|ring| {
            let key = ring.held.iter().find(|key| key.public_key() == *in_force)?;
            Some([std::slice::from_ref(key), ring.before(in_force)].concat())
        })
    }

    /// Makes the key that will follow the one in force durable, and returns its public half. If an interrupted rotation
    /// has left one, that is used; otherwise it is made from the seed.
    pub fn prepare_next(&self, path: &Path, in_force: &[u8; 32], seed: &[u8; 32]) -> Result<[u8; 32], KeyringError> {
        let mut ring = self.ring.write().expect("no one panics with the keys");
        if let Some(next) = ring.after(in_force).first() {
            return Ok(next.public_key());
        }
        let key = SigningKey::from_seed(&self.origin, seed).map_err(KeyringError::BadOrigin)?;
        let public_key = key.public_key();
        let mut changed = ring.clone();
        changed.held.push(key);
        self.write(path, &changed)?;
        *ring = changed;
        Ok(public_key)
    }

    /// Removes the secrets of all keys before the one in force, and returns them. If it returns `Ok`, the file no longer
    /// contains them, and they no longer sign. Only to be called when a checkpoint signed by the key in force is durable.
    pub fn retire_before(&self, path: &Path, in_force: &[u8; 32]) -> Result<Vec<VerifierKey>, KeyringError> {
        let mut ring = self.ring.write().expect("no one panics with the keys");
        let gone: Vec<VerifierKey> = ring.before(in_force).iter().map(SigningKey::verifier).collect();
        if gone.is_empty() {
            return Ok(gone);
        }
        let mut changed = ring.clone();
        changed.held.drain(..gone.len());
        changed.retired.extend(gone.iter().cloned());
        self.write(path, &changed)?;
        *ring = changed;
        Ok(gone)
    }

    fn read<T>(&self, look: impl FnOnce(&Ring) -> T) -> T {
        look(&self.ring.read().expect("no one panics with the keys"))
    }

    /// Reads a keyring from a file that only its owner may read.
    pub fn load(path: &Path) -> Result<Self, KeyringError> {
        let mode = fs::metadata(path)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyringError::TooOpen { mode });
        }
        Self::parse(&fs::read_to_string(path)?).ok_or(KeyringError::Malformed)?
    }

    fn parse(text: &str) -> Option<Result<Self, KeyringError>> {
        let mut lines = Lines(text);
        let with_retired = lines.0.starts_with(HEADER_RETIRED);
        lines.exactly(if with_retired { HEADER_RETIRED } else { HEADER })?;
        let origin = lines.value("origin")?;
        let mut retired = Vec::new();
        while with_retired && lines.0.starts_with("retired ") {
            match VerifierKey::new(origin, &hex::decode_hash(lines.value("retired")?)?) {
                Ok(key) => retired.push(key),
                Err(error) => return Some(Err(KeyringError::BadOrigin(error))),
            }
        }
        let keys = match Self::new(origin, &hex::decode_hash(lines.value("seed")?)?) {
            Ok(keys) => keys,
            Err(error) => return Some(Err(error)),
        };
        while !lines.0.is_empty() {
            if let Err(error) = keys.add(&hex::decode_hash(lines.value("seed")?)?) {
                return Some(Err(error));
            }
        }
        keys.ring.write().expect("no one panics with the keys").retired = retired;
        Some(Ok(keys))
    }

    /// Writes the keyring, readable by its owner only. If it returns `Ok`, it is durable.
    pub fn save(&self, path: &Path) -> Result<(), KeyringError> {
        let ring = self.read(Ring::clone);
        self.write(path, &ring)
    }

    fn write(&self, path: &Path, ring: &Ring) -> Result<(), KeyringError> {
        let header = if ring.retired.is_empty() { HEADER } else { HEADER_RETIRED };
        let mut text = format!("{header}\norigin {}\n", self.origin);
        for key in &ring.retired {
            text.push_str(&format!("retired {}\n", hex::encode(&key.public_key())));
        }
        for key in &ring.held {
            text.push_str(&format!("seed {}\n", hex::encode(&key.secret_seed())));
        }
        Ok(private_file::replace(path, &[text.as_bytes()])?)
    }
}

impl Ring {
    fn place(&self, in_force: &[u8; 32]) -> Option<usize> {
        self.held.iter().position(|key| key.public_key() == *in_force)
    }
    /// The held keys that were in force earlier. One that is not in force yet comes after.
    fn before(&self, in_force: &[u8; 32]) -> &[SigningKey] {
        &self.held[..self.place(in_force).unwrap_or(0)]
    }
    fn after(&self, in_force: &[u8; 32]) -> &[SigningKey] {
        self.place(in_force).map_or(&[], |place| &self.held[place + 1..])
    }
}

const HEADER: &str = "leasehold-key v1";
/// Of a file that also names keys whose secret was removed.
const HEADER_RETIRED: &str = "leasehold-key v2";

impl Signer for Keys {
    fn sign(&self, public_key: &[u8; 32], message: &[u8]) -> Option<[u8; 64]> {
        Some(self.by_public_key(public_key)?.sign_raw(message))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.read(|ring| ring.held.iter().map(|key| key.verifier().id().to_string()).collect::<Vec<_>>());
        f.debug_struct("Keys").field("origin", &self.origin).field("ids", &ids).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyring_survives_its_file_and_never_shows_a_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let keys = Keys::new("cluster.example", &[7; 32]).unwrap();
        keys.add(&[8; 32]).unwrap();
        keys.save(&path).unwrap();
        keys.save(&path).unwrap();
        let loaded = Keys::load(&path).unwrap();
        assert_eq!(loaded.public_keys(), keys.public_keys());
        assert_eq!(loaded.origin(), "cluster.example");
        assert!(!format!("{loaded:?}").contains("0707"));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Keys::load(&path), Err(KeyringError::TooOpen { mode: 0o640 })));
    }

    #[test]
    fn a_rotation_leaves_a_usable_file_at_every_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let keys = Keys::new("cluster.example", &[7; 32]).unwrap();
        keys.save(&path).unwrap();
        let first = keys.public_keys()[0];

        // The new key is in the file before anything else happens. After a crash it is used, not made again.
        let second = keys.prepare_next(&path, &first, &[8; 32]).unwrap();
        let keys = Keys::load(&path).unwrap();
        assert_eq!(keys.public_keys(), [first, second]);
        assert_eq!(keys.prepare_next(&path, &first, &[9; 32]).unwrap(), second);
        // It does not sign before it is in force, and the older one signs with it afterwards.
        let public = |keys: Vec<SigningKey>| keys.iter().map(SigningKey::public_key).collect::<Vec<_>>();
        assert_eq!(public(keys.signing(&first).unwrap()), [first]);
        assert_eq!(public(keys.signing(&second).unwrap()), [second, first]);

        // The older one is removed from the file, and remains known.
        assert_eq!(keys.retire_before(&path, &first).unwrap(), []);
        assert_eq!(keys.retire_before(&path, &second).unwrap()[0].public_key(), first);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&hex::encode(&[7; 32])) && text.contains("leasehold-key v2\n"), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let keys = Keys::load(&path).unwrap();
        assert_eq!(keys.public_keys(), [second]);
        assert_eq!(keys.verifier(keys.retired()[0].id()).unwrap().public_key(), first);
        assert!(keys.signing(&first).is_none());
        assert_eq!(public(keys.signing(&second).unwrap()), [second]);
    }

    #[test]
    fn other_files_are_no_keyrings() {
        for text in ["", "leasehold-key v1\n", "leasehold-key v1\norigin a\n", "leasehold-key v3\norigin a\nseed 00\n"]
        {
            assert!(Keys::parse(text).is_none(), "{text:?}");
        }
    }
}
