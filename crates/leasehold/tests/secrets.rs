//! Secrets stay where they are: none is in the log, an answer, an error, the metrics, the journal or what commands print.

mod common;

use common::daemon::Daemon;
use common::{leasehold, said};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

// Each is unmistakable.
const SECRET_ID: &str = "planted-secret-id-7f3a";
const VAULT_TOKEN: &str = "hvs.planted-vault-token-b1c9";
const WALDUR_TOKEN: &str = "planted-waldur-token-55e0";
const LITERAL: &str = "planted-literal-d00d";

/// A Vault, and a receiver of webhooks, that repeat in their answers everything they are told.
struct Echo {
    address: String,
    /// Whether Vault gives what it is asked for.
    is_open: Arc<AtomicBool>,
    logins: Arc<AtomicU32>,
    delivered: Arc<AtomicU32>,
}

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let echo = Self { address, is_open: Arc::default(), logins: Arc::default(), delivered: Arc::default() };
        let (is_open, logins, delivered) =
            (Arc::clone(&echo.is_open), Arc::clone(&echo.logins), Arc::clone(&echo.delivered));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some((stream, request)) = read_request(stream) else { continue };
                let open = is_open.load(Ordering::SeqCst);
                let (status, body) = if request.starts_with("POST /v1/auth/approle/login ") {
                    logins.fetch_add(1, Ordering::SeqCst);
                    let auth = format!(r#"{{"auth":{{"client_token":"{VAULT_TOKEN}","lease_duration":3600}}}}"#);
                    if open { (200, auth) } else { (403, request) }
                } else if request.starts_with("GET /v1/lattice/data/waldur-token ") {
                    (200, format!(r#"{{"data":{{"data":{{"token":"{WALDUR_TOKEN}"}}}}}}"#))
                } else {
                    delivered.fetch_add(1, Ordering::SeqCst);
                    (500, request)
                };
                answer(stream, status, &body);
            }
        });
        echo
    }
}

fn read_request(mut stream: TcpStream) -> Option<(TcpStream, String)> {
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; 4096];
        let read = stream.read(&mut some).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&some[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap_or(0) {
            let whole = text.into_owned();
            return Some((stream, whole));
        }
    }
}

fn answer(mut stream: TcpStream, status: u16, body: &str) {
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    // The other side may have given up.
    let _ = stream.write_all((head + body).as_bytes());
}

/// What a path answers once it is as wanted.
fn until(daemon: &Daemon, path: &str, is_so: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let began = Instant::now();
    loop {
        let shown = serde_json::from_str(&daemon.get(path)).expect("JSON");
        if is_so(&shown) {
            return shown;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{shown:#}\n{:#?}", daemon.logged());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// All files below a folder, except for the one that holds the secrets of webhooks.
fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            files(&entry, found);
        } else if entry.file_name().is_some_and(|name| name != "webhook-secrets.json") {
            // A file may be replaced meanwhile.
            found.extend(fs::read(&entry).ok().map(|bytes| (entry.display().to_string(), bytes)));
        }
    }
}

fn private(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("ours");
}

#[test]
fn no_secret_is_shown_anywhere() {
    let echo = Echo::start();
    // The daemon makes its own folder; the private file is beside it.
    let beside = tempfile::tempdir().expect("a folder");
    private(&beside.path().join("secret-id"), &format!("{SECRET_ID}\n"));
    let config = format!(
        "
log: {{ level: trace, requests: all }}
journal: {{ segment_bytes: 4MiB }}
accounting:
  enabled: true
  provider: waldur
  webhooks: {{ allowed_networks: [127.0.0.0/8] }}
  waldur:
    api_url: http://{address}/api/
    token_secret_ref: vault://lattice/waldur-token
  vault:
    address: http://{address}
    auth:
      approle: {{ role_id: leasehold, secret_id_file: {beside}/secret-id }}
",
        address = echo.address,
        beside = beside.path().display(),
    );
    let daemon = Daemon::configured(&config, None);
    let mut shown: Vec<(String, Vec<u8>)> = Vec::new();
    let mut keep = |what: &str, bytes: Vec<u8>| shown.push((what.to_owned(), bytes));

    // Vault refuses the login, and repeats the secret ID in its answer.
    let refused = until(&daemon, "/api/v1/deliveries", |shown| shown["provider"]["token_trouble"].is_string());
    let trouble = refused["provider"]["token_trouble"].as_str().expect("a text");
    assert!(trouble.contains("Vault refused the login of the role with status 403"), "{trouble}");
    keep("deliveries", refused.to_string().into_bytes());
    daemon.until_logged("the token of the accounting system cannot be read");
    echo.is_open.store(true, Ordering::SeqCst);
    until(&daemon, "/api/v1/deliveries", |shown| shown["provider"]["token_readable"] == true);
    daemon.until_logged("the token of the accounting system was read");
    daemon.until_logged("does not send usage to it yet");
    assert!(echo.logins.load(Ordering::SeqCst) >= 2);

    // A receiver that repeats the request, with its signature, in its answer.
    let mut secrets = vec![SECRET_ID.to_owned(), VAULT_TOKEN.to_owned(), WALDUR_TOKEN.to_owned(), LITERAL.to_owned()];
    for (name, signature) in [("shared", "hmac"), ("keyed", "ed25519")] {
        let new = format!(r#"{{"name":"{name}","url":"http://{}/hook","signature":"{signature}"}}"#, echo.address);
        let (status, made) = daemon.http("POST", "/api/v1/deliveries/webhooks", &new);
        assert_eq!(status, 201, "{made}");
        let made: serde_json::Value = serde_json::from_str(&made).expect("JSON");
        let secret = made["secret"].as_str().expect("a secret");
        if let Some(shared) = secret.strip_prefix("whsec_") {
            secrets.push(shared.to_owned());
        }
    }
    // The private key was shown to nobody; it is in the file.
    let kept = fs::read_to_string(daemon.path("data/webhook-secrets.json")).expect("a file");
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    for entries in kept["sinks"].as_object().expect("sinks").values() {
        let secret = entries[0]["secret"].as_str().expect("a secret");
        secrets.push(secret.split_once('_').expect("a prefix").1.to_owned());
    }
    assert_eq!(secrets.len(), 7);
    daemon.furnish();
    daemon.run("lease request --tenant physics --project lattice --gpu 1 --ttl 10m").ok();
    until(&daemon, "/api/v1/deliveries", |shown| shown["deliveries"][1]["failures"].as_u64() > Some(0));
    assert!(echo.delivered.load(Ordering::SeqCst) > 0);
    let test = daemon.http("POST", "/api/v1/deliveries/webhooks/shared/test", "{}");
    keep("test", format!("{test:?}").into_bytes());

    for path in [
        "/metrics",
        "/api/v1/status",
        "/api/v1/deliveries",
        "/api/v1/deliveries/webhooks",
        "/api/v1/deliveries/webhooks/shared",
        "/api/v1/deliveries/webhooks/shared/attempts",
        "/api/v1/deliveries/webhooks/keyed/attempts",
        "/api/v1/deliveries/webhooks/shared/dead-letters",
        "/api/v1/settings",
        "/api/v1/about",
        "/api/v1/audit/records?limit=1000",
        "/readyz",
    ] {
        keep(path, daemon.get(path).into_bytes());
    }
    keep("leasehold status", format!("{:?}", daemon.run("status")).into_bytes());
    let file = daemon.path("leasehold.yaml");
    let check = leasehold(["config".as_ref(), "check".as_ref(), file.as_os_str()]);
    // The folder for data exists only while the daemon says so on its command line.
    keep("config check", format!("{check:?}").into_bytes());

    // A configuration with a secret in it is read again, checked, and started with.
    let literal = config.replace("vault://lattice/waldur-token", LITERAL);
    fs::write(&file, &literal).expect("written");
    kill_process(Pid::from_child(&daemon.process), Signal::HUP).expect("a signal");
    let refused = daemon.until_logged("SIGHUP: the configuration cannot be used");
    assert!(refused.contains("a secret must not be written in the configuration"), "{refused}");
    for flags in [&["config", "check"][..], &["config", "check", "--json"], &["serve", "--data", "data", "--config"]] {
        let mut command = Command::new(common::BINARY);
        command.args(flags).arg(&file).current_dir(beside.path());
        let said = said(command);
        assert_ne!(said.code, 0, "{said:?}");
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains("a secret must not be written in the configuration"), "{flags:?}: {all}");
        keep("a literal", all.into_bytes());
    }
    fs::remove_file(&file).expect("it was there");

    let command_line = fs::read(format!("/proc/{}/cmdline", daemon.process.id())).expect("it runs");
    keep("command line", command_line);
    let (folder, log) = daemon.stop();
    keep("log", log.join("\n").into_bytes());
    let mut left = Vec::new();
    files(folder.path(), &mut left);
    assert!(left.iter().any(|(path, _)| path.ends_with(".seg")), "there is a journal");
    left.into_iter().for_each(|(path, bytes)| keep(&path, bytes));
    for (what, bytes) in &shown {
        for secret in &secrets {
            let is_in = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!is_in, "{secret} is in {what}: {}", String::from_utf8_lossy(&bytes[..bytes.len().min(4_000)]));
        }
    }
}
