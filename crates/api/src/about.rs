//! Who answers, and who asks.

use crate::time::When;
use crate::token::Token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which journal this is and which program keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// The name under which the journal signs.
    pub origin: String,
    /// The key in force, in hex.
    pub public_key: String,
    /// The hash of the first record, in hex.
    pub genesis: String,
    /// Version of the program.
    pub version: String,
    /// Number of durable records.
    pub size: u64,
    /// The daemon's clock.
    pub now: When,
}

/// The token that asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhoAmI {
    /// The token that the request carried.
    pub token: Token,
}

/// Whether the daemon lives, or takes commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`, or what is wrong.
    pub status: String,
}
