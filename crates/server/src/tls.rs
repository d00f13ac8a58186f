//! TLS from two PEM files, which are loaded again when they change.
//!
//! One server configuration exists as long as the daemon; only the certificate in it is replaced, between two
//! handshakes.

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// How often the files are checked.
const CHECK_EVERY: Duration = Duration::from_secs(3);

/// A certificate with its key, shared by all listeners.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    files: Arc<Files>,
}

#[derive(Debug)]
struct Files {
    in_force: Arc<InForce>,
    tried: Mutex<Tried>,
}

/// The files that were loaded last, whether or not that succeeded, and their state at that time.
#[derive(Debug)]
struct Tried {
    cert: PathBuf,
    key: PathBuf,
    stamps: [Stamp; 2],
}

/// The certificate for the next handshake.
#[derive(Debug)]
struct InForce(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for InForce {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Identifies a version of a file; also notices a symbolic link that points elsewhere.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

/// Result of checking the files.
#[derive(Debug)]
pub enum Reload {
    Unchanged,
    Replaced,
    /// The files changed but cannot be used; the previous certificate stays in use.
    Kept(TlsError),
}

impl Tls {
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let stamps = [stamp(cert), stamp(key)];
        let provider = Arc::new(ring::default_provider());
        let in_force = Arc::new(InForce(RwLock::new(read(cert, key, &provider)?)));
        let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = versions.expect("ring has the suites of TLS 1.2 and 1.3").with_no_client_auth();
        let mut config = builder.with_cert_resolver(Arc::clone(&in_force) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tried = Mutex::new(Tried { cert: cert.to_owned(), key: key.to_owned(), stamps });
        let files = Files { in_force, tried };
        Ok(Self { config: Arc::new(config), files: Arc::new(files) })
    }

    pub fn acceptor(&self) -> tokio_rustls::TlsAcceptor {
        Arc::clone(&self.config).into()
    }

    /// Loads the files if they changed since they were last tried.
    pub fn reload_if_changed(&self) -> Reload {
        self.reload(None)
    }

    /// Loads these files from now on. If they cannot be used, the previous ones are checked on.
    pub fn reload_from(&self, cert: &Path, key: &Path) -> Reload {
        self.reload(Some((cert, key)))
    }

    fn reload(&self, from: Option<(&Path, &Path)>) -> Reload {
        let files = &*self.files;
        let mut tried = files.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let (cert, key) = from.unwrap_or((&tried.cert, &tried.key));
        // Taken before reading, so that a change meanwhile is noticed at the next check.
        let stamps = [stamp(cert), stamp(key)];
        if tried.stamps == stamps {
            return Reload::Unchanged;
        }
        let fresh = read(cert, key, self.config.crypto_provider());
        if from.is_none() || fresh.is_ok() {
            *tried = Tried { cert: cert.to_owned(), key: key.to_owned(), stamps };
        }
        match fresh {
            Ok(fresh) => {
                *files.in_force.0.write().unwrap_or_else(PoisonError::into_inner) = fresh;
                Reload::Replaced
            }
            Err(error) => Reload::Kept(error),
        }
    }

    /// Checks the files regularly. Never returns.
    pub async fn follow(self) {
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            // Reads files, so it must not run on a thread that serves requests.
            let tls = self.clone();
            match tokio::task::spawn_blocking(move || tls.reload_if_changed()).await {
                Ok(Reload::Replaced) => tracing::info!("the TLS certificate was replaced"),
                Ok(Reload::Kept(error)) => {
                    tracing::error!("cannot use the new TLS files, the previous certificate stays in use: {error}")
                }
                Ok(Reload::Unchanged) | Err(_) => {}
            }
        }
    }
}

fn read(cert: &Path, key: &Path, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
    let pem = |path: &Path, why: &'static str, error: pem::Error| match error {
        pem::Error::Io(error) => TlsError::unreadable(path, &error),
        error => TlsError {
            path: path.to_owned(),
            what: format!("{why}: {error}"),
            advice: "give a PEM file",
            about_key: false,
        },
    };
    let certificates = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| pem(cert, "cannot read the certificates", error))?;
    if certificates.is_empty() {
        let advice = "give the certificate of the server in PEM format, followed by its chain";
        return Err(TlsError {
            path: cert.to_owned(),
            what: "the file contains no certificate".into(),
            advice,
            about_key: false,
        });
    }
    let about_key = |error: TlsError| TlsError { about_key: true, ..error };
    check_rights(key).map_err(about_key)?;
    let secret =
        PrivateKeyDer::from_pem_file(key).map_err(|error| about_key(pem(key, "cannot read the key", error)))?;
    CertifiedKey::from_der(certificates, secret, provider).map(Arc::new).map_err(|error| TlsError {
        path: key.to_owned(),
        what: format!("the key and the certificate cannot be used together: {error}"),
        advice: "give the key of the certificate",
        about_key: true,
    })
}

/// A key that everyone can read is not secret.
fn check_rights(key: &Path) -> Result<(), TlsError> {
    let found = fs::metadata(key).map_err(|error| TlsError::unreadable(key, &error))?;
    if found.mode() & 0o007 == 0 {
        return Ok(());
    }
    let what = format!("everyone can read the key (mode {:o})", found.mode() & 0o777);
    Err(TlsError { path: key.to_owned(), what, advice: "restrict its permissions: chmod o-rwx", about_key: true })
}

/// Why the files cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    path: PathBuf,
    what: String,
    advice: &'static str,
    about_key: bool,
}

impl TlsError {
    fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self {
            path: path.to_owned(),
            what: error.to_string(),
            advice: "check the path and its permissions",
            about_key: false,
        }
    }
    pub fn code(&self) -> &'static str {
        "tls_unusable"
    }
    pub(crate) fn what_and_advice(&self) -> (String, &'static str) {
        (format!("{}: {}", self.path.display(), self.what), self.advice)
    }
    pub(crate) fn is_about_key(&self) -> bool {
        self.about_key
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, advice) = self.what_and_advice();
        write!(f, "{what}; {advice}")
    }
}
impl std::error::Error for TlsError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn unusable_files_are_explained() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let file = |name: &str, text: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its rights");
            path
        };
        let cert = file("cert.pem", &made.cert.pem(), 0o644);
        let key = file("key.pem", &made.signing_key.serialize_pem(), 0o640);
        assert!(Tls::load(&cert, &key).is_ok());
        // Another pair of files can be named later; one that does not fit changes nothing.
        let tls = Tls::load(&cert, &key).expect("two good files");
        let moved = [
            file("moved-cert.pem", &made.cert.pem(), 0o644),
            file("moved-key.pem", &made.signing_key.serialize_pem(), 0o640),
        ];
        assert!(matches!(tls.reload_from(&cert, &key), Reload::Unchanged));
        assert!(matches!(tls.reload_from(&moved[0], &folder.path().join("none.pem")), Reload::Kept(_)));
        assert!(matches!(tls.reload_from(&moved[0], &moved[1]), Reload::Replaced));
        assert!(matches!(tls.reload_if_changed(), Reload::Unchanged));
        let other = file("other.pem", &other.signing_key.serialize_pem(), 0o600);
        let open = file("open.pem", &made.signing_key.serialize_pem(), 0o644);
        let empty = file("empty.pem", "", 0o600);
        for (cert, key, about_key, words) in [
            (&folder.path().join("none.pem"), &key, false, "No such file"),
            (&empty, &key, false, "contains no certificate"),
            (&cert, &folder.path().join("none.pem"), true, "No such file"),
            (&cert, &empty, true, "cannot read the key"),
            (&cert, &other, true, "cannot be used together"),
            (&cert, &open, true, "everyone can read the key (mode 644); restrict"),
        ] {
            let error = Tls::load(cert, key).expect_err(words);
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(error.is_about_key(), about_key, "{error}");
        }
    }
}
