//! The data directory's own secret, and the MACs that it makes (SEMANTICS 11, "Local authenticity").
//!
//! The daemon reads back only what it wrote itself: records after the anchor, the anchor, snapshots and the books carry
//! an HMAC-SHA-256 under a key that is derived from `local.secret`. The secret is independent of the signing key, and
//! nobody else needs it: what is signed can be verified without it.

use crate::private_file;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use leasehold_model::frame::Authenticated;
use sha2::Sha256;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

const SECRET_BYTES: usize = 32;

/// 32 random bytes. Never printed.
#[derive(Clone)]
pub struct Secret {
    bytes: Arc<[u8; SECRET_BYTES]>,
    pub(crate) batch: MacKey,
    pub(crate) anchor: MacKey,
    pub(crate) snapshot: MacKey,
    books: MacKey,
    scrub: MacKey,
    statements: MacKey,
    deliveries: MacKey,
}

/// Why a secret could not be read or written.
#[derive(Debug)]
pub enum SecretError {
    /// The file does not have exactly 32 bytes.
    Malformed,
    /// Others may read the file.
    TooOpen {
        mode: u32,
    },
    Io(io::Error),
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => write!(f, "the file is not a secret of 32 bytes; restore it from a copy"),
            Self::TooOpen { mode } => write!(
                f,
                "the file has mode {mode:03o}, so other users may read it; run chmod 600 on it if nobody has, \
                 and remove it otherwise"
            ),
            Self::Io(error) => error.fmt(f),
        }
    }
}
impl std::error::Error for SecretError {}
impl From<io::Error> for SecretError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Secret {
    /// The bytes are the caller's best randomness; the simulator and the golden bytes use fixed ones.
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        let derived = Hkdf::<Sha256>::new(None, &bytes);
        let key = |label: &str| MacKey::derive(&derived, label);
        Self {
            batch: key("leasehold/v2/batch"),
            anchor: key("leasehold/v2/anchor"),
            snapshot: key("leasehold/v2/snapshot"),
            books: key("leasehold/v2/books"),
            scrub: key("leasehold/v2/scrub"),
            statements: key("leasehold/v2/statements"),
            deliveries: key("leasehold/v2/deliveries"),
            bytes: Arc::new(bytes),
        }
    }

    /// The key that authenticates the entries of the books.
    pub fn books(&self) -> &MacKey {
        &self.books
    }

    /// The key that authenticates the progress of the scrub.
    pub fn scrub(&self) -> &MacKey {
        &self.scrub
    }

    /// The key that authenticates where the statements of the next month begin.
    pub fn statements(&self) -> &MacKey {
        &self.statements
    }

    /// The key that authenticates how far deliveries came.
    pub fn deliveries(&self) -> &MacKey {
        &self.deliveries
    }

    /// Reads a secret from a file that only its owner may read. `None` if there is no file.
    pub fn load(path: &Path) -> Result<Option<Self>, SecretError> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mode = file.metadata()?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(SecretError::TooOpen { mode });
        }
        let mut bytes = Vec::with_capacity(SECRET_BYTES + 1);
        (&mut file).take(SECRET_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let bytes = <[u8; SECRET_BYTES]>::try_from(bytes).map_err(|_| SecretError::Malformed)?;
        Ok(Some(Self::new(bytes)))
    }

    /// Writes the secret, readable by its owner only. If it returns `Ok`, it is durable.
    pub fn save(&self, path: &Path) -> Result<(), SecretError> {
        Ok(private_file::replace(path, &[self.bytes.as_slice()])?)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A key for HMAC-SHA-256.
#[derive(Clone)]
pub struct MacKey(Hmac<Sha256>);

impl MacKey {
    fn derive(from: &Hkdf<Sha256>, label: &str) -> Self {
        let mut key = [0; 32];
        from.expand(label.as_bytes(), &mut key).expect("32 bytes are few for HKDF");
        Self(Hmac::new_from_slice(&key).expect("an HMAC key may have any length"))
    }

    /// The MAC of these bytes, one after the other.
    pub fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.after(parts).finalize().into_bytes().into()
    }

    /// Whether `mac` is that of these bytes. Takes the same time for every wrong one.
    pub fn fits(&self, parts: &[&[u8]], mac: &[u8]) -> bool {
        self.after(parts).verify_slice(mac).is_ok()
    }

    fn after(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut hmac = self.0.clone();
        parts.iter().for_each(|part| hmac.update(part));
        hmac
    }

    /// The MAC of a batch of records.
    pub(crate) fn batch_mac(&self, bound: &Authenticated) -> [u8; 32] {
        self.mac(&[&bound.message()])
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_model::hex;
    use std::fs;

    fn bytes(text: &str) -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        // Test case 1, with the message in two parts.
        let key = MacKey(Hmac::new_from_slice(&[0x0b; 20]).unwrap());
        let expected = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        assert_eq!(hex::encode(&key.mac(&[b"Hi ", b"There"])), expected);
        assert!(key.fits(&[b"Hi There"], &bytes(expected)));
        assert!(!key.fits(&[b"Hi there"], &bytes(expected)));
        assert!(!key.fits(&[b"Hi There"], &bytes(expected)[..31]));
    }

    #[test]
    fn hkdf_is_that_of_rfc_5869() {
        // Test case 3: neither salt nor info.
        let derived = Hkdf::<Sha256>::new(None, &[0x0b; 22]);
        let mut out = [0; 42];
        derived.expand(b"", &mut out).unwrap();
        let expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8";
        assert_eq!(hex::encode(&out), expected);
    }

    /// The keys, fixed: a directory written today must open in ten years.
    #[test]
    fn derived_keys_are_these() {
        let secret = Secret::new([7; 32]);
        let Secret { batch, anchor, snapshot, books, scrub, statements, deliveries, .. } = &secret;
        let shown = [batch, anchor, snapshot, books, scrub, statements, deliveries].map(|key| key.mac(&[b"x"]));
        let shown: Vec<_> = shown.iter().map(|mac| hex::encode(mac)).collect();
        expect_test::expect![[r#"
            3c4d716a906e72e2db13dc2c6258d43e42c85abc7e97afac9cfb364e07bc82b0
            1ca1782bb2a2c2a9093cd2d79e7646809f3297cd9584ae40b69e9b383b65f92e
            7c1202df67ac0c3f32eb50c11e5e632393e6753c3c366d4d9e7b40f65ebef764
            b93a7715f6dba604742c63c29d13f06c7d68060bc59f3d365cfaab6236a121b8
            63e0bdc98fcc299c915875144f73e74d1b1089d6fb27012d15fc8fc0c631c2d0
            b280d0c3f6c81c89071a22402da91234bb6b65f713e255deaac78ad56c65e70e
            0d0f945ce15b66820ff4872c127a35a5cad47f499107a3decd46f14d9d5a3266"#]]
        .assert_eq(&shown.join("\n"));
    }

    #[test]
    fn a_secret_survives_its_file_and_is_never_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("local.secret");
        assert!(Secret::load(&path).unwrap().is_none());
        let secret = Secret::new([7; 32]);
        secret.save(&path).unwrap();
        secret.save(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let loaded = Secret::load(&path).unwrap().unwrap();
        assert_eq!(loaded.batch.mac(&[b"x"]), secret.batch.mac(&[b"x"]));
        assert!(!format!("{loaded:?}{:?}", loaded.books()).contains('7'));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Secret::load(&path), Err(SecretError::TooOpen { mode: 0o640 })));
        for length in [0, 31, 33] {
            fs::write(&path, vec![1; length]).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(matches!(Secret::load(&path), Err(SecretError::Malformed)));
        }
    }
}
