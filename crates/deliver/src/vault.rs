//! Secrets of HashiCorp Vault: the key-value store, version 2, over HTTP; with a token, or an AppRole that logs in.

use crate::guard::Endpoint;
use crate::http::{Answer, Client, certificates};
use crate::secret::Secret;
use crate::secret_ref::{SecretError, Variables, read_file};
use crate::webhook::{resolve, server_name};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST};
use leasehold_model::{Instant, Span};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::Mutex;

const TIMEOUT: Duration = Duration::from_secs(10);

/// How the daemon proves to Vault who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultAuth {
    AppRole {
        role_id: String,
        /// A private file.
        secret_id_file: PathBuf,
        /// Where the method is mounted; usually `approle`.
        mount: String,
    },
    /// A private file that somebody else, such as the Vault agent, keeps up to date.
    TokenFile(PathBuf),
    TokenEnv(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultConfig {
    /// For example `https://vault.example.com:8200`. Without TLS only on this machine.
    pub address: String,
    pub namespace: Option<String>,
    /// Certificates that are trusted besides those of the system.
    pub ca_pem: Option<Vec<u8>>,
    pub auth: VaultAuth,
}

/// What Vault did not give. Contains neither secrets nor answers of Vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultError {
    Config(String),
    Unreachable(String),
    /// It refused the token, or the login.
    Refused {
        doing: String,
        status: u16,
    },
    NoSecret {
        place: String,
    },
    NoField {
        place: String,
        field: String,
    },
    Answer {
        doing: String,
        status: u16,
    },
    /// The daemon's own secret for Vault.
    Own(Box<SecretError>),
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(why) => write!(f, "the configuration of Vault: {why}"),
            Self::Unreachable(why) => write!(f, "Vault cannot be reached: {why}"),
            Self::Refused { doing, status } => {
                write!(f, "Vault refused {doing} with status {status}; check the role and its policies")
            }
            Self::NoSecret { place } => write!(f, "Vault has no secret at {place}"),
            Self::NoField { place, field } => write!(f, "the secret of Vault at {place} has no text field {field}"),
            Self::Answer { doing, status } => write!(f, "Vault did not answer {doing} as expected (status {status})"),
            Self::Own(error) => error.fmt(f),
        }
    }
}
impl std::error::Error for VaultError {}

#[derive(Deserialize)]
struct Login {
    auth: LoginAuth,
}

#[derive(Deserialize)]
struct LoginAuth {
    client_token: String,
    /// In seconds; 0 is for ever.
    #[serde(default)]
    lease_duration: u64,
}

#[derive(Deserialize)]
struct Read {
    data: ReadData,
}

#[derive(Deserialize)]
struct ReadData {
    data: Option<BTreeMap<String, serde_json::Value>>,
}

struct Token {
    secret: Secret,
    /// From then on a new one is asked for.
    until: Option<Instant>,
}

pub struct Vault {
    config: VaultConfig,
    endpoint: Endpoint,
    client: Client,
    variables: Variables,
    token: Mutex<Option<Token>>,
}

impl Vault {
    pub fn new(config: VaultConfig, variables: Variables) -> Result<Self, VaultError> {
        let bad = |why: &dyn fmt::Display| VaultError::Config(why.to_string());
        let endpoint = Endpoint::parse(&config.address).map_err(|_| bad(&"the address is not a URL"))?;
        if endpoint.path != "/" {
            return Err(bad(&"the address must not have a path"));
        }
        let is_local = endpoint.literal().is_some_and(|address| address.ip().is_loopback());
        if !endpoint.is_tls && !is_local {
            return Err(bad(&"the address must begin with https://, unless it is a loopback address"));
        }
        let roots = config.ca_pem.as_deref().map(certificates).transpose().map_err(|error| bad(&error))?;
        let client = Client::new(roots.unwrap_or_default(), TIMEOUT).map_err(|error| bad(&error))?;
        Ok(Self { config, endpoint, client, variables, token: Mutex::default() })
    }

    /// A field of a secret. A token that is refused is replaced once.
    pub async fn read(&self, mount: &str, path: &str, field: &str, now: Instant) -> Result<Secret, VaultError> {
        let place = format!("{mount}/{path}");
        let doing = format!("to read {place}");
        let mut token = self.token.lock().await;
        let is_over = |token: &Token| token.until.is_some_and(|until| now >= until);
        let mut is_new = false;
        loop {
            if token.as_ref().is_none_or(is_over) {
                *token = Some(self.log_in(now).await?);
                is_new = true;
            }
            let used = token.as_ref().map(|token| token.secret.clone());
            let answer = self.call("GET", &format!("/v1/{mount}/data/{path}"), used.as_ref(), Bytes::new()).await?;
            match answer.status {
                200 => {
                    let unexpected = |_| VaultError::Answer { doing: doing.clone(), status: 200 };
                    let read: Read = serde_json::from_slice(&answer.body).map_err(unexpected)?;
                    // A deleted version has no data.
                    let mut fields = read.data.data.ok_or(VaultError::NoSecret { place: place.clone() })?;
                    return match fields.remove(field) {
                        Some(serde_json::Value::String(text)) if !text.is_empty() => Ok(Secret::new(text)),
                        _ => Err(VaultError::NoField { place, field: field.to_owned() }),
                    };
                }
                404 => return Err(VaultError::NoSecret { place }),
                401 | 403 => {
                    *token = None;
                    if is_new {
                        return Err(VaultError::Refused { doing, status: answer.status });
                    }
                }
                status => return Err(VaultError::Answer { doing, status }),
            }
        }
    }

    async fn log_in(&self, now: Instant) -> Result<Token, VaultError> {
        let own = |error| VaultError::Own(Box::new(error));
        match &self.config.auth {
            VaultAuth::TokenFile(path) => Ok(Token { secret: read_file(path, true).map_err(own)?, until: None }),
            VaultAuth::TokenEnv(name) => {
                let missing = || VaultError::Config(format!("the variable {name} is not set"));
                let text = (self.variables)(name).filter(|text| !text.is_empty()).ok_or_else(missing)?;
                Ok(Token { secret: Secret::new(text), until: None })
            }
            VaultAuth::AppRole { role_id, secret_id_file, mount } => {
                let secret_id = read_file(secret_id_file, true).map_err(own)?;
                let body = serde_json::json!({"role_id": role_id, "secret_id": secret_id.expose()}).to_string();
                let answer = self.call("POST", &format!("/v1/auth/{mount}/login"), None, body.into()).await?;
                let doing = || "the login of the role".to_owned();
                match answer.status {
                    200 => {}
                    status @ (400 | 401 | 403) => return Err(VaultError::Refused { doing: doing(), status }),
                    status => return Err(VaultError::Answer { doing: doing(), status }),
                }
                let unexpected = |_| VaultError::Answer { doing: doing(), status: 200 };
                let Login { auth } = serde_json::from_slice(&answer.body).map_err(unexpected)?;
                // A new one is asked for a little before the old one ends.
                let lasts = Span::from_secs(auth.lease_duration.min(1 << 32) / 10 * 9);
                let until = (auth.lease_duration > 0).then(|| now.saturating_add(lasts));
                Ok(Token { secret: Secret::new(auth.client_token), until })
            }
        }
    }

    async fn call(&self, method: &str, path: &str, token: Option<&Secret>, body: Bytes) -> Result<Answer, VaultError> {
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.endpoint.authority);
        request = request.header("x-vault-request", "true").header(CONTENT_TYPE, "application/json");
        if let Some(namespace) = &self.config.namespace {
            request = request.header("x-vault-namespace", namespace);
        }
        if let Some(token) = token {
            request = request.header("x-vault-token", token.expose());
        }
        let malformed = |_| VaultError::Config("a token, a namespace or a mount has characters not allowed".to_owned());
        let request = request.body(Full::new(body)).map_err(malformed)?;
        let sent = async {
            let addresses = resolve(&self.endpoint).await?;
            let name = self.endpoint.is_tls.then(|| server_name(&self.endpoint)).transpose()?;
            self.client.send(&addresses, name, request).await.map_err(|error| error.to_string())
        };
        match tokio::time::timeout(TIMEOUT, sent).await {
            Ok(sent) => sent.map_err(VaultError::Unreachable),
            Err(_) => Err(VaultError::Unreachable("no answer within 10 s".to_owned())),
        }
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault({})", self.config.address)
    }
}
