//! The secrets that requests to webhooks are signed with: one file of mode 0600, never the journal (SEMANTICS 13).
//!
//! A secret is random and shown once. Rotation adds a new one; the old one signs as well until the overlap is over.

use crate::event::{SignatureKind, SinkId};
use crate::secret::Secret;
use crate::signature::Signer;
use leasehold_journal::private_file;
use leasehold_model::{Instant, Span};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroizing;

/// How long an old secret signs beside the new one.
pub const OVERLAP: Span = Span::from_secs(86_400);
/// The most secrets of one sink at the same time.
pub const SECRETS_MAX: usize = 5;
const FILE_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone)]
struct Entry {
    secret: Secret,
    signer: Signer,
    until: Option<Instant>,
}

/// What is in the file.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    version: u32,
    #[serde(borrow)]
    sinks: BTreeMap<u64, Vec<KeptSecret<'a>>>,
}

#[derive(Serialize, Deserialize)]
struct KeptSecret<'a> {
    secret: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ns: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookSecretsError {
    /// Others may read the file.
    TooOpen {
        mode: u32,
    },
    /// The file is not one of ours. Its contents are not repeated.
    Malformed,
    /// The sink has as many secrets as it may have; an old one has to end first.
    TooMany,
    Io(String),
}

impl fmt::Display for WebhookSecretsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooOpen { mode } => write!(
                f,
                "the file of webhook secrets has mode {mode:03o}, so other users may read it; run chmod 600 on it, and \
                 rotate the secrets if somebody may have read it"
            ),
            Self::Malformed => f.write_str("the file of webhook secrets is malformed; restore it from a copy"),
            Self::TooMany => write!(f, "the sink already has {SECRETS_MAX} secrets; wait until an old one ends"),
            Self::Io(error) => write!(f, "the file of webhook secrets: {error}"),
        }
    }
}
impl std::error::Error for WebhookSecretsError {}

fn io(error: impl fmt::Display) -> WebhookSecretsError {
    WebhookSecretsError::Io(error.to_string())
}

/// What is shown once: the shared secret, or the public key.
#[derive(Clone, Debug)]
pub struct Shown(pub Secret);

/// The secrets of all webhooks.
pub struct WebhookSecrets {
    path: PathBuf,
    sinks: Mutex<BTreeMap<SinkId, Vec<Entry>>>,
}

impl WebhookSecrets {
    /// Reads the file; there may be none.
    pub fn load(path: &Path) -> Result<Self, WebhookSecretsError> {
        let mut sinks = BTreeMap::new();
        match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(io(error)),
            Ok(file) => {
                let mode = file.metadata().map_err(io)?.permissions().mode() & 0o777;
                if mode & 0o077 != 0 {
                    return Err(WebhookSecretsError::TooOpen { mode });
                }
                let mut text = Zeroizing::new(String::new());
                file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(io)?;
                let kept: Kept<'_> = serde_json::from_str(&text).map_err(|_| WebhookSecretsError::Malformed)?;
                if kept.version != 1 {
                    return Err(WebhookSecretsError::Malformed);
                }
                for (sink, secrets) in kept.sinks {
                    let entries: Option<Vec<_>> = secrets.iter().map(KeptSecret::entry).collect();
                    sinks.insert(SinkId(sink), entries.ok_or(WebhookSecretsError::Malformed)?);
                }
            }
        }
        Ok(Self { path: path.to_owned(), sinks: Mutex::new(sinks) })
    }

    /// Gives the sink a new secret. Those that it has end after `overlap`. Durable when it returns.
    pub fn rotate(
        &self,
        sink: SinkId,
        kind: SignatureKind,
        now: Instant,
        overlap: Span,
    ) -> Result<Shown, WebhookSecretsError> {
        let secret = Signer::generate(kind).map_err(io)?;
        let signer = Signer::parse(&secret).map_err(io)?;
        let shown = Shown(signer.public_key().map_or_else(|| secret.clone(), Secret::new));
        self.change(|sinks| {
            let entries = sinks.entry(sink).or_default();
            entries.retain(|entry| entry.until.is_none_or(|until| now < until));
            if entries.len() >= SECRETS_MAX {
                return Err(WebhookSecretsError::TooMany);
            }
            let until = now.saturating_add(overlap);
            entries.iter_mut().for_each(|entry| entry.until = Some(entry.until.map_or(until, |old| old.min(until))));
            entries.retain(|entry| entry.until.is_none_or(|until| now < until));
            entries.push(Entry { secret, signer, until: None });
            Ok(())
        })?;
        Ok(shown)
    }

    /// Removes the secrets of a sink. Durable when it returns.
    pub fn remove(&self, sink: SinkId) -> Result<(), WebhookSecretsError> {
        self.change(|sinks| {
            sinks.remove(&sink);
            Ok(())
        })
    }

    /// Removes the secrets of all other sinks. Durable when it returns. Returns of how many.
    pub fn keep_only(&self, ids: &BTreeSet<SinkId>) -> Result<usize, WebhookSecretsError> {
        let gone = {
            let sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
            sinks.keys().filter(|sink| !ids.contains(sink)).count()
        };
        if gone > 0 {
            self.change(|sinks| {
                sinks.retain(|sink, _| ids.contains(sink));
                Ok(())
            })?;
        }
        Ok(gone)
    }

    /// What signs for the sink now, the newest first.
    pub fn signers(&self, sink: SinkId, now: Instant) -> Vec<Signer> {
        let sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = sinks.get(&sink).map_or(&[][..], Vec::as_slice);
        let valid = entries.iter().rev().filter(|entry| entry.until.is_none_or(|until| now < until));
        valid.map(|entry| entry.signer.clone()).collect()
    }

    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<SinkId, Vec<Entry>>) -> Result<(), WebhookSecretsError>,
    ) -> Result<(), WebhookSecretsError> {
        let mut sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = sinks.clone();
        change(&mut changed)?;
        let kept = changed.iter().map(|(sink, entries)| (sink.0, entries.iter().map(Entry::kept).collect()));
        let kept = Kept { version: 1, sinks: kept.collect() };
        let text = Zeroizing::new(serde_json::to_vec(&kept).map_err(|_| WebhookSecretsError::Malformed)?);
        private_file::replace(&self.path, &[&text]).map_err(io)?;
        *sinks = changed;
        Ok(())
    }
}

impl Entry {
    fn kept(&self) -> KeptSecret<'_> {
        KeptSecret { secret: self.secret.expose(), until_ns: self.until.map(|until| until.0) }
    }
}

impl KeptSecret<'_> {
    fn entry(&self) -> Option<Entry> {
        let secret = Secret::new(self.secret);
        let signer = Signer::parse(&secret).ok()?;
        Some(Entry { secret, signer, until: self.until_ns.map(Instant) })
    }
}

impl fmt::Debug for WebhookSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecrets(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn rotation_keeps_the_old_secret_for_a_while() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("webhook-secrets.json");
        let (sink, start) = (SinkId(7), Instant::from_secs(1_000));
        let secrets = WebhookSecrets::load(&path).expect("empty");
        let Shown(first) = secrets.rotate(sink, SignatureKind::Hmac, start, OVERLAP).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let signs = |secrets: &WebhookSecrets, now| {
            secrets.signers(sink, now).iter().map(|signer| signer.sign("a", 1, b"b")).collect::<Vec<_>>()
        };
        let by = |secret: &Secret| Signer::parse(secret).expect("a secret").sign("a", 1, b"b");
        assert_eq!(signs(&secrets, start), [by(&first)]);
        let later = Instant::from_secs(2_000);
        let Shown(second) = secrets.rotate(sink, SignatureKind::Hmac, later, OVERLAP).expect("written");
        // Also after a restart.
        let secrets = WebhookSecrets::load(&path).expect("read");
        assert_eq!(signs(&secrets, later), [by(&second), by(&first)]);
        let end = later.saturating_add(OVERLAP);
        assert_eq!(signs(&secrets, Instant(end.0 - 1)).len(), 2);
        assert_eq!(signs(&secrets, end), [by(&second)]);
        // Without an overlap the old ones end at once.
        let Shown(third) = secrets.rotate(sink, SignatureKind::Hmac, later, Span::ZERO).expect("written");
        assert_eq!(signs(&secrets, later), [by(&third)]);
        for _ in 1..SECRETS_MAX {
            secrets.rotate(sink, SignatureKind::Hmac, later, OVERLAP).expect("written");
        }
        let more = secrets.rotate(sink, SignatureKind::Hmac, later, OVERLAP);
        assert_eq!(more.err(), Some(WebhookSecretsError::TooMany));
        // Those of sinks that are not there any more end with them.
        let other = SinkId(8);
        secrets.rotate(other, SignatureKind::Hmac, later, OVERLAP).expect("written");
        assert_eq!(secrets.keep_only(&BTreeSet::from([sink, SinkId(9)])), Ok(1));
        let read = WebhookSecrets::load(&path).expect("read");
        assert_eq!((read.signers(other, later).len(), read.signers(sink, later).len()), (0, SECRETS_MAX));
        assert_eq!(secrets.keep_only(&BTreeSet::from([sink])), Ok(0));
        secrets.remove(sink).expect("written");
        assert!(WebhookSecrets::load(&path).expect("read").signers(sink, later).is_empty());
        assert!(!fs::read_to_string(&path).expect("read").contains("whsec_"));
    }

    #[test]
    fn only_the_public_key_is_shown_and_a_readable_file_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("webhook-secrets.json");
        let secrets = WebhookSecrets::load(&path).expect("empty");
        let Shown(shown) =
            secrets.rotate(SinkId(1), SignatureKind::Ed25519, Instant::from_secs(1), OVERLAP).expect("written");
        assert!(shown.expose().starts_with("whpk_"));
        assert_eq!(format!("{secrets:?}"), "WebhookSecrets(..)");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("ours");
        assert_eq!(WebhookSecrets::load(&path).err(), Some(WebhookSecretsError::TooOpen { mode: 0o640 }));
        let bad = "{\"version\":1,\"sinks\":{\"1\":[{\"secret\":\"hunter2\"}]}}";
        fs::write(&path, bad).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
        let error = WebhookSecrets::load(&path).expect_err("refused");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
