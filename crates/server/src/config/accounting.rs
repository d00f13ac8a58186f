//! How events are delivered: limits of all sinks, webhooks, the accounting system, and where its secrets are.

use super::text::{secret_ref, section};
use leasehold_deliver::{SecretError, SecretRef, VaultAuth, VaultConfig};
use serde::Deserialize;
use std::path::PathBuf;

/// The most events of one sink in memory.
pub const BUFFER_SIZE_MAX: u32 = 1_000_000;

/// How events are delivered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Accounting {
    /// Whether events are delivered at all.
    pub enabled: bool,
    /// The accounting system that usage is for.
    pub provider: Option<Provider>,
    /// Events in memory for each sink. Further ones are read from the journal when there is room.
    pub buffer_size: u32,
    /// Accepted for configurations of other systems. The journal is the buffer, so nothing is written there.
    pub disk_buffer_path: Option<PathBuf>,
    /// How many events a sink may be behind before `on_overflow` applies.
    pub disk_buffer_max_events: u64,
    pub on_overflow: OnOverflow,
    #[serde(deserialize_with = "section")]
    pub webhooks: Webhooks,
    #[serde(deserialize_with = "section")]
    pub waldur: Waldur,
    #[serde(deserialize_with = "section")]
    pub vault: VaultSection,
}

impl Default for Accounting {
    fn default() -> Self {
        let limits = leasehold_deliver::Limits::default();
        Self {
            enabled: false,
            provider: None,
            buffer_size: u32::try_from(limits.buffer_size).unwrap_or(u32::MAX),
            disk_buffer_path: None,
            disk_buffer_max_events: limits.disk_buffer_max_events,
            on_overflow: OnOverflow::Alert,
            webhooks: Webhooks::default(),
            waldur: Waldur::default(),
            vault: VaultSection::default(),
        }
    }
}

impl Accounting {
    /// Events in memory for Waldur.
    pub fn waldur_buffer_size(&self) -> u32 {
        self.waldur.buffer_size.unwrap_or(self.buffer_size)
    }

    /// How many events Waldur may be behind before `on_overflow` applies.
    pub fn waldur_disk_buffer_max_events(&self) -> u64 {
        self.waldur.disk_buffer_max_events.unwrap_or(self.disk_buffer_max_events)
    }
}

/// An accounting system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    Waldur,
}

impl Provider {
    pub fn word(self) -> &'static str {
        match self {
            Self::Waldur => "waldur",
        }
    }
}

/// What happens to a sink that is too far behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOverflow {
    /// Everything is kept, and an alert is raised.
    #[default]
    Alert,
    /// The oldest events are skipped, counted and remembered; `leasehold admin accounting reconcile` sends them.
    Drop,
}

/// Where webhooks may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Webhooks {
    /// Networks that may be used although they are not public, such as 10.0.0.0/8.
    pub allowed_networks: Vec<String>,
    /// Whether public addresses may be used without TLS.
    pub allow_http: bool,
    /// PEM file with certificates that are trusted besides those of the system.
    pub ca: Option<PathBuf>,
}

/// The Waldur that usage is for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Waldur {
    pub api_url: Option<String>,
    /// Whether `api_url` may be without TLS, although it is not on this machine.
    pub allow_http: bool,
    /// Where the token is. What stands in the file instead of a reference may be the token itself, so it is not kept.
    #[serde(deserialize_with = "secret_ref")]
    pub token_secret_ref: Option<Result<SecretRef, SecretError>>,
    pub push_interval_seconds: u32,
    /// These three take the place of those for all sinks.
    pub buffer_size: Option<u32>,
    pub disk_buffer_path: Option<PathBuf>,
    pub disk_buffer_max_events: Option<u64>,
}

impl Default for Waldur {
    fn default() -> Self {
        Self {
            api_url: None,
            allow_http: false,
            token_secret_ref: None,
            push_interval_seconds: 60,
            buffer_size: None,
            disk_buffer_path: None,
            disk_buffer_max_events: None,
        }
    }
}

/// The Vault that references `vault://…` point into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VaultSection {
    pub address: Option<String>,
    pub namespace: Option<String>,
    /// PEM file with certificates that are trusted besides those of the system.
    pub ca: Option<PathBuf>,
    #[serde(deserialize_with = "section")]
    pub auth: VaultAuthSection,
}

/// How the daemon proves to Vault who it is: exactly one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VaultAuthSection {
    #[serde(deserialize_with = "section")]
    pub approle: AppRole,
    pub token_file: Option<PathBuf>,
    pub token_env: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AppRole {
    pub role_id: Option<String>,
    pub secret_id_file: Option<PathBuf>,
    /// Where the method is mounted.
    pub mount: String,
}

impl Default for AppRole {
    fn default() -> Self {
        Self { role_id: None, secret_id_file: None, mount: "approle".into() }
    }
}

impl VaultSection {
    /// What the reader of secrets needs; `None` if there is no address, or not one way to log in. Reads the certificates.
    pub fn config(&self) -> Result<Option<VaultConfig>, String> {
        let (Some(address), Some(auth)) = (&self.address, self.auth.one()) else { return Ok(None) };
        let read = |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        let ca_pem = self.ca.as_ref().map(read).transpose()?;
        Ok(Some(VaultConfig { address: address.clone(), namespace: self.namespace.clone(), ca_pem, auth }))
    }
}

impl VaultAuthSection {
    /// How many of the three are given, even in part.
    pub(super) fn given(&self) -> usize {
        let has_role = self.approle.role_id.is_some() || self.approle.secret_id_file.is_some();
        usize::from(has_role) + usize::from(self.token_file.is_some()) + usize::from(self.token_env.is_some())
    }

    fn one(&self) -> Option<VaultAuth> {
        match (&self.approle, &self.token_file, &self.token_env) {
            (AppRole { role_id: Some(role_id), secret_id_file: Some(secret_id_file), mount }, None, None) => {
                Some(VaultAuth::AppRole {
                    role_id: role_id.clone(),
                    secret_id_file: secret_id_file.clone(),
                    mount: mount.clone(),
                })
            }
            (AppRole { role_id: None, secret_id_file: None, .. }, Some(path), None) => {
                Some(VaultAuth::TokenFile(path.clone()))
            }
            (AppRole { role_id: None, secret_id_file: None, .. }, None, Some(name)) => {
                Some(VaultAuth::TokenEnv(name.clone()))
            }
            _ => None,
        }
    }
}
