//! References to secrets in the configuration, and reading them (ADR 26).
//!
//! A configuration never contains a secret, only where it is: `vault://MOUNT/PATH#FIELD`, `file:///PATH`, `env://NAME`
//! or `credential://NAME` (systemd). It is read at the start, again when it may have changed, and once more after the
//! other side refused it. An error says where the secret should have been, never what was found.

use crate::secret::Secret;
use crate::vault::{Vault, VaultError};
use leasehold_model::{Instant, Span};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use tokio::sync::Mutex;
use zeroize::Zeroizing;

/// The field of a Vault secret that is read when the reference names none.
const FIELD: &str = "token";
const SECRET_BYTES_MAX: u64 = 64 << 10;
/// How often secrets of Vault are read again.
const VAULT_EVERY: Span = Span::from_secs(300);
/// How often a file is looked at.
const FILE_EVERY: Span = Span::from_secs(10);
/// The least time between two readings because the secret was refused.
const REFUSED_EVERY: Span = Span::from_secs(60);

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretRef {
    Vault { mount: String, path: String, field: String },
    File(PathBuf),
    Env(String),
    Credential(String),
}

/// Why a secret cannot be had. Contains no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretError {
    /// It is no reference, perhaps the secret itself.
    Literal,
    Malformed(&'static str),
    TooOpen {
        path: PathBuf,
        mode: u32,
    },
    Missing {
        place: String,
        why: String,
    },
    NoVault,
    Vault(VaultError),
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal => f.write_str(
                "a secret must not be written in the configuration; refer to it with vault://, file://, env:// or \
                 credential://",
            ),
            Self::Malformed(why) => write!(f, "malformed reference to a secret: {why}"),
            Self::TooOpen { path, mode } => write!(
                f,
                "{} has mode {mode:03o}, so other users may read the secret; run chmod 600 on it",
                path.display()
            ),
            Self::Missing { place, why } => write!(f, "the secret at {place} cannot be read: {why}"),
            Self::NoVault => f.write_str("the secret is in Vault, but Vault is not configured"),
            Self::Vault(error) => error.fmt(f),
        }
    }
}
impl std::error::Error for SecretError {}

impl From<VaultError> for SecretError {
    fn from(error: VaultError) -> Self {
        Self::Vault(error)
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

impl FromStr for SecretRef {
    type Err = SecretError;
    fn from_str(text: &str) -> Result<Self, SecretError> {
        let (scheme, rest) = text.split_once("://").ok_or(SecretError::Literal)?;
        match scheme {
            "vault" => {
                let (place, field) = rest.split_once('#').unwrap_or((rest, FIELD));
                let bad = SecretError::Malformed("it should be vault://MOUNT/PATH#FIELD");
                let (mount, path) = place.split_once('/').ok_or(bad.clone())?;
                let parts = |part: &str| is_plain(part) && part != "." && part != "..";
                if !parts(mount) || !path.split('/').all(parts) || !is_plain(field) {
                    return Err(bad);
                }
                Ok(Self::Vault { mount: mount.to_owned(), path: path.to_owned(), field: field.to_owned() })
            }
            "file" if rest.starts_with('/') => Ok(Self::File(PathBuf::from(rest))),
            "file" => Err(SecretError::Malformed("it should be file:///PATH, with an absolute path")),
            "env" if is_plain(rest) => Ok(Self::Env(rest.to_owned())),
            "env" => Err(SecretError::Malformed("it should be env://NAME")),
            "credential" if is_plain(rest) && rest != "." && rest != ".." => Ok(Self::Credential(rest.to_owned())),
            "credential" => Err(SecretError::Malformed("it should be credential://NAME")),
            // What stands there may be a secret that happens to contain the separator.
            _ => Err(SecretError::Literal),
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vault { mount, path, field } => write!(f, "vault://{mount}/{path}#{field}"),
            Self::File(path) => write!(f, "file://{}", path.display()),
            Self::Env(name) => write!(f, "env://{name}"),
            Self::Credential(name) => write!(f, "credential://{name}"),
        }
    }
}

/// The variables of the process.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Those of this process.
pub fn process_variables() -> Variables {
    Arc::new(|name| std::env::var(name).ok())
}

/// Tells one version of a file from another.
type Stamp = (u64, u64, i64, i64);

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

/// Reads a secret from a file, without the line break at its end.
pub(crate) fn read_file(path: &Path, is_private: bool) -> Result<Secret, SecretError> {
    let missing = |why: String| SecretError::Missing { place: path.display().to_string(), why };
    let file = File::open(path).map_err(|error| missing(error.to_string()))?;
    let found = file.metadata().map_err(|error| missing(error.to_string()))?;
    let mode = found.permissions().mode() & 0o777;
    if is_private && mode & 0o077 != 0 {
        return Err(SecretError::TooOpen { path: path.to_owned(), mode });
    }
    let mut text = Zeroizing::new(String::new());
    let read = file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|_| missing("it is not a text".to_owned()))?;
    if text.len() as u64 > SECRET_BYTES_MAX {
        return Err(missing("it is too long for a secret".to_owned()));
    }
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(missing("it is empty".to_owned())),
        text => Ok(Secret::new(text)),
    }
}

struct Loaded {
    secret: Secret,
    stamp: Option<Stamp>,
    /// When it was last looked at, and last read because it was refused.
    looked_at: Instant,
    refused_at: Option<Instant>,
    /// When it was last read.
    read_at: Instant,
    /// Why it could not be read when that was tried last.
    trouble: Option<SecretError>,
}

/// How reading a secret went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretState {
    /// When it was last read.
    pub read_at: Instant,
    /// Why it could not be read when that was tried last; the secret that was read before is used.
    pub trouble: Option<SecretError>,
}

/// A secret that is kept up to date.
pub struct SecretReader {
    reference: SecretRef,
    vault: Option<Arc<Vault>>,
    variables: Variables,
    loaded: Mutex<Loaded>,
}

impl SecretReader {
    /// Reads the secret for the first time.
    pub async fn load(
        reference: SecretRef,
        vault: Option<Arc<Vault>>,
        variables: Variables,
        now: Instant,
    ) -> Result<Self, SecretError> {
        let (secret, stamp) = read(&reference, vault.as_deref(), &variables, now).await?;
        let loaded = Loaded { secret, stamp, looked_at: now, refused_at: None, read_at: now, trouble: None };
        let loaded = Mutex::new(loaded);
        Ok(Self { reference, vault, variables, loaded })
    }

    /// The secret. It is read again if its time has come or its file has changed; if that fails, the last one is used.
    pub async fn get(&self, now: Instant) -> Secret {
        let mut loaded = self.loaded.lock().await;
        let every = match self.reference {
            SecretRef::Vault { .. } => VAULT_EVERY,
            SecretRef::File(_) | SecretRef::Credential(_) => FILE_EVERY,
            // It cannot change while the process runs.
            SecretRef::Env(_) => return loaded.secret.clone(),
        };
        if now.since(loaded.looked_at) >= every {
            loaded.looked_at = now;
            let is_same = self.path().is_some_and(|path| stamp(&path).is_some() && stamp(&path) == loaded.stamp);
            if !is_same || loaded.trouble.is_some() {
                self.read_again(&mut loaded, now).await;
            }
        }
        loaded.secret.clone()
    }

    /// The other side refused `used`: a different secret to try once, if there is one by now.
    pub async fn refused(&self, used: &Secret, now: Instant) -> Option<Secret> {
        let mut loaded = self.loaded.lock().await;
        if loaded.secret == *used {
            if loaded.refused_at.is_some_and(|at| now.since(at) < REFUSED_EVERY) {
                return None;
            }
            loaded.refused_at = Some(now);
            self.read_again(&mut loaded, now).await;
        }
        (loaded.secret != *used).then(|| loaded.secret.clone())
    }

    async fn read_again(&self, loaded: &mut Loaded, now: Instant) {
        match read(&self.reference, self.vault.as_deref(), &self.variables, now).await {
            Ok((secret, stamp)) => {
                if secret != loaded.secret {
                    tracing::info!(reference = %self.reference, "a secret has changed");
                } else if loaded.trouble.is_some() {
                    tracing::info!(reference = %self.reference, "a secret can be read again; it has not changed");
                }
                (loaded.secret, loaded.stamp) = (secret, stamp);
                (loaded.read_at, loaded.trouble) = (now, None);
            }
            Err(error) => {
                // Once, not at every attempt.
                if loaded.trouble.as_ref() != Some(&error) {
                    tracing::warn!(%error, "a secret could not be read again; the last one is used");
                }
                loaded.trouble = Some(error);
            }
        }
    }

    /// How the last reading went.
    pub async fn state(&self) -> SecretState {
        let loaded = self.loaded.lock().await;
        SecretState { read_at: loaded.read_at, trouble: loaded.trouble.clone() }
    }

    fn path(&self) -> Option<PathBuf> {
        match &self.reference {
            SecretRef::File(path) => Some(path.clone()),
            SecretRef::Credential(name) => credential(name, &self.variables).ok(),
            SecretRef::Vault { .. } | SecretRef::Env(_) => None,
        }
    }
}

fn credential(name: &str, variables: &Variables) -> Result<PathBuf, SecretError> {
    let why = "$CREDENTIALS_DIRECTORY is not set; is the service started by systemd with LoadCredential?";
    let missing = || SecretError::Missing { place: format!("credential://{name}"), why: why.to_owned() };
    Ok(Path::new(&variables("CREDENTIALS_DIRECTORY").ok_or_else(missing)?).join(name))
}

async fn read(
    reference: &SecretRef,
    vault: Option<&Vault>,
    variables: &Variables,
    now: Instant,
) -> Result<(Secret, Option<Stamp>), SecretError> {
    match reference {
        SecretRef::Vault { mount, path, field } => {
            Ok((vault.ok_or(SecretError::NoVault)?.read(mount, path, field, now).await?, None))
        }
        SecretRef::File(path) => {
            let before = stamp(path);
            Ok((read_file(path, true)?, before))
        }
        SecretRef::Credential(name) => {
            // systemd keeps the directory private.
            let path = credential(name, variables)?;
            let before = stamp(&path);
            Ok((read_file(&path, false)?, before))
        }
        SecretRef::Env(name) => {
            let missing = || SecretError::Missing { place: reference.to_string(), why: "it is not set".to_owned() };
            let text = variables(name).filter(|text| !text.is_empty()).ok_or_else(missing)?;
            Ok((Secret::new(text), None))
        }
    }
}

impl fmt::Debug for SecretReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretReader({})", self.reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(1_770_000_000 + seconds)
    }

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Arc::new(move |name| pairs.iter().find(|(one, _)| one == name).map(|(_, value)| value.clone()))
    }

    #[test]
    fn references_are_read_strictly_and_a_literal_is_not_repeated() {
        for text in [
            "vault://lattice/waldur-token#token",
            "vault://kv/teams/a/waldur#api_key",
            "file:///etc/secret",
            "env://WALDUR_TOKEN",
            "credential://waldur-token",
        ] {
            assert_eq!(text.parse::<SecretRef>().map(|reference| reference.to_string()), Ok(text.to_owned()));
        }
        let short: SecretRef = "vault://lattice/waldur-token".parse().expect("a reference");
        assert_eq!(short.to_string(), "vault://lattice/waldur-token#token");
        for text in [
            "vault://lattice",
            "vault:///a",
            "vault://a/",
            "vault://a//b",
            "vault://a/../sys/b",
            "vault://a/b#",
            "env://",
            "vault://a/b?version=1",
            "file://relative",
            "env://A B",
            "credential://a/b",
            "credential://..",
        ] {
            assert!(matches!(text.parse::<SecretRef>(), Err(SecretError::Malformed(_))), "{text}");
        }
        for text in ["hunter2-is-my-token", "", "hunter2://token", "https://hunter2@example.com"] {
            let error = text.parse::<SecretRef>().expect_err("a literal");
            assert_eq!(error, SecretError::Literal);
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }

    #[tokio::test]
    async fn a_file_is_private_and_read_again_when_it_changes() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("token");
        let write = |text: &str, mode| {
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        };
        let reference: SecretRef = format!("file://{}", path.display()).parse().expect("a reference");
        let load = || SecretReader::load(reference.clone(), None, variables(&[]), at(0));
        assert!(matches!(load().await, Err(SecretError::Missing { .. })));
        for mode in [0o640, 0o604, 0o666] {
            write("hunter2\n", mode);
            assert_eq!(load().await.err(), Some(SecretError::TooOpen { path: path.clone(), mode }));
        }
        write("\n", 0o600);
        assert!(matches!(load().await, Err(SecretError::Missing { .. })));
        write("first\n", 0o600);
        let reader = load().await.expect("read");
        assert_eq!(reader.get(at(0)).await.expose(), "first");
        write("the second\n", 0o600);
        assert_eq!(reader.get(at(9)).await.expose(), "first");
        assert_eq!(reader.get(at(10)).await.expose(), "the second");
        assert_eq!(reader.state().await, SecretState { read_at: at(10), trouble: None });
        // A file that cannot be read for a while does not take the secret away.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("ours");
        fs::rename(&path, folder.path().join("away")).expect("ours");
        assert_eq!(reader.get(at(20)).await.expose(), "the second");
        let state = reader.state().await;
        assert!(
            matches!(state, SecretState { read_at, trouble: Some(SecretError::Missing { .. }) } if read_at == at(10))
        );
        // It is back as it was: that is noticed.
        fs::rename(folder.path().join("away"), &path).expect("ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
        assert_eq!(reader.get(at(30)).await.expose(), "the second");
        assert_eq!(reader.state().await, SecretState { read_at: at(30), trouble: None });
        write("the third one\n", 0o600);
        // Refused: read at once, but not again and again.
        let used = Secret::new("the second");
        assert_eq!(reader.refused(&used, at(31)).await, Some(Secret::new("the third one")));
        assert_eq!(reader.refused(&used, at(31)).await, Some(Secret::new("the third one")));
        let used = Secret::new("the third one");
        assert_eq!(reader.refused(&used, at(32)).await, None);
        write("the fourth!\n", 0o600);
        assert_eq!(reader.refused(&used, at(33)).await, None, "a minute has not passed");
        assert_eq!(reader.refused(&used, at(93)).await, Some(Secret::new("the fourth!")));
        assert!(!format!("{reader:?}").contains("fourth"));
    }

    #[tokio::test]
    async fn the_environment_and_credentials_of_systemd() {
        let folder = tempfile::tempdir().expect("a directory");
        fs::write(folder.path().join("waldur"), "from systemd\n").expect("written");
        let directory = folder.path().display().to_string();
        let all = variables(&[("TOKEN", "from env"), ("EMPTY", ""), ("CREDENTIALS_DIRECTORY", &directory)]);
        for (text, expected) in [
            ("env://TOKEN", Some("from env")),
            ("env://EMPTY", None),
            ("env://ABSENT", None),
            ("credential://waldur", Some("from systemd")),
            ("credential://absent", None),
        ] {
            let reference: SecretRef = text.parse().expect("a reference");
            let reader = SecretReader::load(reference, None, Arc::clone(&all), at(0)).await;
            let secret = match &reader {
                Ok(reader) => Some(reader.get(at(9_999)).await),
                Err(_) => None,
            };
            assert_eq!(secret, expected.map(Secret::new), "{text}");
        }
        let reference: SecretRef = "credential://waldur".parse().expect("a reference");
        let alone = SecretReader::load(reference, None, variables(&[]), at(0)).await;
        assert!(alone.is_err_and(|error| error.to_string().contains("LoadCredential")));
        let reference: SecretRef = "vault://a/b".parse().expect("a reference");
        assert_eq!(SecretReader::load(reference, None, all, at(0)).await.err(), Some(SecretError::NoVault));
    }
}
