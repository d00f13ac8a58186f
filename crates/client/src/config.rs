//! The address of the daemon, the token and the time limits.

use crate::secret::Secret;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Config {
    /// Such as `https://leasehold.example.org:8420`; a path in front of `/api/v1` is kept.
    pub url: String,
    /// Sent as `Authorization: Bearer …`. A few endpoints need none.
    pub token: Option<Secret>,
    /// Trust only the CA certificates in this PEM file; by default those of the system.
    pub ca_file: Option<PathBuf>,
    pub timeouts: Timeouts,
}

impl Config {
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), token: None, ca_file: None, timeouts: Timeouts::default() }
    }

    #[must_use]
    pub fn token(mut self, token: Secret) -> Self {
        self.token = Some(token);
        self
    }
}

/// Time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For connecting.
    pub connect: Duration,
    /// For the whole answer of one attempt.
    pub answer: Duration,
    /// For all attempts together, pauses included.
    pub total: Duration,
    /// For retries while nothing listens at the address; at most `total`.
    pub listener: Duration,
    /// For the next bytes of an event stream, before it counts as broken.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(30),
            total: Duration::from_secs(60),
            listener: Duration::from_secs(60),
            silence: Duration::from_secs(45),
        }
    }
}

/// Invalid settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub code: &'static str,
    what: String,
    advice: String,
}

impl ConfigError {
    pub(crate) fn new(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { code, what: what.into(), advice: advice.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.advice)
    }
}
impl std::error::Error for ConfigError {}
