//! Secrets from Vault, against a server that behaves as Vault does where it matters: key-value version 2, tokens that
//! end, and AppRole.

use leasehold_deliver::{
    Secret, SecretError, SecretReader, SecretRef, Variables, Vault, VaultAuth, VaultConfig, VaultError,
};
use leasehold_model::Instant;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[derive(Default)]
struct State {
    /// Secrets by mount and path.
    secrets: HashMap<String, serde_json::Value>,
    /// Tokens that are good now.
    tokens: Vec<String>,
    logins: u32,
    lease_duration: u64,
    /// Answers everything with this status.
    sealed: Option<u16>,
    requests: Vec<String>,
}

struct FakeVault {
    state: Arc<Mutex<State>>,
    address: String,
}

const SECRET_ID: &str = "s3cret-id";

impl FakeVault {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let state = Arc::new(Mutex::new(State { lease_duration: 100, ..State::default() }));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                tokio::spawn(async move {
                    let mut buffer = Vec::new();
                    while stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
                        let Some((request, length)) = whole(&buffer) else { continue };
                        buffer.drain(..length);
                        let (status, body) = state.lock().expect("sound").answer(&request);
                        let body = body.to_string();
                        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { state, address }
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().expect("sound"))
    }
}

/// A whole request at the beginning of the bytes, and how long it is.
fn whole(buffer: &[u8]) -> Option<(String, usize)> {
    let text = std::str::from_utf8(buffer).ok()?;
    let head = text.find("\r\n\r\n")? + 4;
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().expect("a number"));
    (buffer.len() >= head + length).then(|| (text[..head + length].to_owned(), head + length))
}

impl State {
    fn answer(&mut self, request: &str) -> (u16, serde_json::Value) {
        let none = serde_json::json!({"errors": []});
        self.requests.push(request.lines().next().expect("a line").to_owned());
        if let Some(status) = self.sealed {
            return (status, none);
        }
        let header = |name: &str| request.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        let path = request.split(' ').nth(1).expect("a path");
        if request.starts_with("POST /v1/auth/approle/login ") {
            let body: serde_json::Value =
                serde_json::from_str(request.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
            if body["role_id"] != "leasehold" || body["secret_id"] != SECRET_ID {
                return (400, serde_json::json!({"errors": ["invalid role or secret ID"]}));
            }
            self.logins += 1;
            let token = format!("hvs.token-{}", self.logins);
            self.tokens.push(token.clone());
            let auth = serde_json::json!({"client_token": token, "lease_duration": self.lease_duration});
            return (200, serde_json::json!({"auth": auth}));
        }
        if !header("x-vault-token").is_some_and(|token| self.tokens.iter().any(|good| good == token)) {
            return (403, serde_json::json!({"errors": ["permission denied"]}));
        }
        assert_eq!(header("x-vault-namespace"), Some("hpc"));
        match path.strip_prefix("/v1/").and_then(|path| self.secrets.get(path)) {
            Some(secret) => (200, serde_json::json!({"data": {"data": secret, "metadata": {"version": 3}}})),
            None => (404, none),
        }
    }
}

fn at(seconds: u64) -> Instant {
    Instant::from_secs(1_770_000_000 + seconds)
}

fn no_variables() -> Variables {
    Arc::new(|_| None)
}

fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
    path
}

fn config(fake: &FakeVault, auth: VaultAuth) -> VaultConfig {
    VaultConfig { address: fake.address.clone(), namespace: Some("hpc".to_owned()), ca_pem: None, auth }
}

fn approle(fake: &FakeVault, folder: &Path) -> VaultConfig {
    let secret_id_file = private(folder, "secret-id", &format!("{SECRET_ID}\n"));
    let (role_id, mount) = ("leasehold".to_owned(), "approle".to_owned());
    config(fake, VaultAuth::AppRole { role_id, secret_id_file, mount })
}

fn put(fake: &FakeVault, token: &str) {
    let place = "lattice/data/waldur-token".to_owned();
    fake.change(|state| state.secrets.insert(place, serde_json::json!({"token": token, "count": 3})));
}

#[tokio::test]
async fn a_role_logs_in_once_and_again_when_its_token_ends_or_is_revoked() {
    let (fake, folder) = (FakeVault::start().await, tempfile::tempdir().expect("a directory"));
    put(&fake, "hunter2");
    let vault = Arc::new(Vault::new(approle(&fake, folder.path()), no_variables()).expect("made"));
    let read = |now| {
        let vault = Arc::clone(&vault);
        async move { vault.read("lattice", "waldur-token", "token", now).await }
    };
    for seconds in [0, 89] {
        assert_eq!(read(at(seconds)).await, Ok(Secret::new("hunter2")));
    }
    assert_eq!(fake.change(|state| state.logins), 1);
    // A little before its end, 100 seconds, there is a new one.
    assert_eq!(read(at(90)).await, Ok(Secret::new("hunter2")));
    assert_eq!(fake.change(|state| state.logins), 2);
    // Revoked before its end.
    fake.change(|state| state.tokens.clear());
    assert_eq!(read(at(91)).await, Ok(Secret::new("hunter2")));
    assert_eq!(fake.change(|state| state.logins), 3);
    // A role that may log in and read nothing: no endless logins.
    fake.change(|state| (state.tokens.clear(), state.requests.clear()));
    fs::write(folder.path().join("secret-id"), "wrong").expect("written");
    let error = read(at(92)).await.expect_err("refused");
    assert!(matches!(error, VaultError::Refused { status: 400, .. }), "{error:?}");
    assert_eq!(fake.change(|state| state.requests.len()), 2);
    assert!(!format!("{error} {error:?} {vault:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_secret_is_read_again_after_a_while_and_after_it_was_refused() {
    let (fake, folder) = (FakeVault::start().await, tempfile::tempdir().expect("a directory"));
    put(&fake, "first");
    let vault = Arc::new(Vault::new(approle(&fake, folder.path()), no_variables()).expect("made"));
    let reference: SecretRef = "vault://lattice/waldur-token".parse().expect("a reference");
    let reader = SecretReader::load(reference, Some(vault), no_variables(), at(0)).await.expect("read");
    put(&fake, "second");
    assert_eq!(reader.get(at(299)).await, Secret::new("first"));
    assert_eq!(reader.get(at(300)).await, Secret::new("second"));
    put(&fake, "third");
    assert_eq!(reader.refused(&Secret::new("second"), at(301)).await, Some(Secret::new("third")));
    assert_eq!(reader.refused(&Secret::new("third"), at(302)).await, None);
    // While Vault is sealed, the last secret is used.
    fake.change(|state| state.sealed = Some(503));
    assert_eq!(reader.get(at(900)).await, Secret::new("third"));
}

#[tokio::test]
async fn tokens_come_from_a_file_or_the_environment() {
    let (fake, folder) = (FakeVault::start().await, tempfile::tempdir().expect("a directory"));
    put(&fake, "hunter2");
    fake.change(|state| state.tokens = vec!["hvs.a".to_owned()]);
    let file = private(folder.path(), "token", "hvs.a\n");
    let vault = Vault::new(config(&fake, VaultAuth::TokenFile(file.clone())), no_variables()).expect("made");
    let read = || vault.read("lattice", "waldur-token", "token", at(0));
    assert_eq!(read().await, Ok(Secret::new("hunter2")));
    // The agent wrote a new one.
    fake.change(|state| state.tokens = vec!["hvs.b".to_owned()]);
    private(folder.path(), "token", "hvs.b\n");
    assert_eq!(read().await, Ok(Secret::new("hunter2")));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("ours");
    fake.change(|state| state.tokens.clear());
    let too_open = SecretError::TooOpen { path: file, mode: 0o644 };
    assert_eq!(read().await, Err(VaultError::Own(Box::new(too_open))));
    let variables: Variables = Arc::new(|name| (name == "VAULT_TOKEN").then(|| "hvs.c".to_owned()));
    let auth = VaultAuth::TokenEnv("VAULT_TOKEN".to_owned());
    let vault = Vault::new(config(&fake, auth), variables).expect("made");
    let refused = vault.read("lattice", "waldur-token", "token", at(0)).await;
    assert!(matches!(refused, Err(VaultError::Refused { status: 403, .. })), "{refused:?}");
    fake.change(|state| state.tokens.push("hvs.c".to_owned()));
    assert_eq!(vault.read("lattice", "waldur-token", "token", at(0)).await, Ok(Secret::new("hunter2")));
}

#[tokio::test]
async fn what_is_missing_is_named_and_a_remote_vault_needs_tls() {
    let (fake, folder) = (FakeVault::start().await, tempfile::tempdir().expect("a directory"));
    put(&fake, "hunter2");
    let vault = Vault::new(approle(&fake, folder.path()), no_variables()).expect("made");
    let place = "lattice/nothing".to_owned();
    assert_eq!(vault.read("lattice", "nothing", "token", at(0)).await, Err(VaultError::NoSecret { place }));
    for field in ["count", "absent"] {
        let error = vault.read("lattice", "waldur-token", field, at(0)).await.expect_err("no such field");
        assert!(matches!(error, VaultError::NoField { .. }), "{error:?}");
    }
    let mut config = approle(&fake, folder.path());
    for address in ["http://vault.example.com:8200", "http://10.0.0.1:8200", "https://vault/ui", "vault:8200"] {
        config.address = address.to_owned();
        assert!(matches!(Vault::new(config.clone(), no_variables()), Err(VaultError::Config(_))), "{address}");
    }
    config.address = format!("http://127.0.0.1:{}", crate::receiver::closed_port().await);
    let vault = Vault::new(config, no_variables()).expect("made");
    let unreachable = vault.read("lattice", "waldur-token", "token", at(0)).await;
    assert!(matches!(unreachable, Err(VaultError::Unreachable(_))), "{unreachable:?}");
}
