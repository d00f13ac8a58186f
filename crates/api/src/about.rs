//! The daemon and the caller's token.

use crate::time::When;
use crate::token::Token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Identity of the journal and version of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// Name of the journal, under which its checkpoints are signed.
    pub origin: String,
    /// Public key that signs now, in hexadecimal.
    pub public_key: String,
    /// Hash of the first record, in hexadecimal.
    pub genesis: String,
    /// Version of the daemon.
    pub version: String,
    /// Number of durable records.
    pub size: u64,
    /// Time of the daemon's clock.
    pub now: When,
}

/// The token of the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhoAmI {
    /// The token that the request carried.
    pub token: Token,
}

/// Health of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok` if the daemon is healthy. Otherwise the answer is a problem.
    pub status: String,
}
