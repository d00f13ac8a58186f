//! The origin's signing keys: the one in force and those before or after it.
//!
//! The file `key` is the only secret of the folder. It is not read through [`crate::disk::Disk`]: a simulated journal
//! is handed its keys, and a real one wants them in a file that nobody else may read.

use crate::error::KeyringError;
use crate::text::Lines;
use leasehold_model::frame::Signer;
use leasehold_model::hex;
use leasehold_tlog::{KeyId, SigningKey};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::RwLock;

/// The keys of one origin, oldest first. Shared between the threads that sign; never printed.
pub struct Keys {
    origin: String,
    keys: RwLock<Vec<SigningKey>>,
}

impl Keys {
    /// A keyring with one key. The seed is 32 bytes of the caller's best randomness.
    pub fn new(origin: &str, seed: &[u8; 32]) -> Result<Self, KeyringError> {
        let keys = Self { origin: origin.to_owned(), keys: RwLock::default() };
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
        let mut keys = self.keys.write().expect("no one panics with the keys");
        if !keys.iter().any(|held| held.public_key() == public_key) {
            keys.push(key);
        }
        Ok(public_key)
    }

    /// The public keys, oldest first.
    pub fn public_keys(&self) -> Vec<[u8; 32]> {
        self.read(|keys| keys.iter().map(SigningKey::public_key).collect())
    }

    pub(crate) fn oldest(&self) -> SigningKey {
        self.read(|keys| keys[0].clone())
    }
    pub(crate) fn by_public_key(&self, public_key: &[u8; 32]) -> Option<SigningKey> {
        self.read(|keys| keys.iter().find(|k| k.public_key() == *public_key).cloned())
    }
    pub(crate) fn by_id(&self, id: KeyId) -> Option<SigningKey> {
        self.read(|keys| keys.iter().find(|k| k.verifier().id() == id).cloned())
    }

    fn read<T>(&self, look: impl FnOnce(&[SigningKey]) -> T) -> T {
        look(&self.keys.read().expect("no one panics with the keys"))
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
        lines.exactly(HEADER)?;
        let origin = lines.value("origin")?;
        let keys = match Self::new(origin, &hex::decode_hash(lines.value("seed")?)?) {
            Ok(keys) => keys,
            Err(error) => return Some(Err(error)),
        };
        while !lines.0.is_empty() {
            if let Err(error) = keys.add(&hex::decode_hash(lines.value("seed")?)?) {
                return Some(Err(error));
            }
        }
        Some(Ok(keys))
    }

    /// Writes the keyring, readable by its owner only. If it returns `Ok`, it is durable.
    pub fn save(&self, path: &Path) -> Result<(), KeyringError> {
        let mut text = format!("{HEADER}\norigin {}\n", self.origin);
        self.read(|keys| {
            for key in keys {
                text.push_str(&format!("seed {}\n", hex::encode(&key.secret_seed())));
            }
        });
        let temporary = path.with_extension("tmp");
        // One that is there may be readable by others: the mode given here counts for new files only.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(())
    }
}

const HEADER: &str = "leasehold-key v1";

impl Signer for Keys {
    fn sign(&self, public_key: &[u8; 32], message: &[u8]) -> Option<[u8; 64]> {
        Some(self.by_public_key(public_key)?.sign_raw(message))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.read(|keys| keys.iter().map(|key| key.verifier().id().to_string()).collect::<Vec<_>>());
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
    fn other_files_are_no_keyrings() {
        for text in ["", "leasehold-key v1\n", "leasehold-key v1\norigin a\n", "leasehold-key v2\norigin a\nseed 00\n"]
        {
            assert!(Keys::parse(text).is_none(), "{text:?}");
        }
    }
}
