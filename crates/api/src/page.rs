//! The answer to a change without further details.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change that was sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// Sequence number of the record that sealed it.
    pub sequence: u64,
}
