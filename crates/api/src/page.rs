//! What every change answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change that was sealed and has nothing more to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The sequence of the record that sealed it.
    pub sequence: u64,
}
