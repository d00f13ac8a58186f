//! What a project may cost.

use crate::time::When;
use leasehold_model::CeilingMode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A sum of money as text, exact. It stays text until it is read, so that what is wrong with it can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money(pub String);

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for Money {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Money".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9]{1,28}(\\.[0-9]{1,9})?$",
            "description": "A sum of money, exact: never negative, up to nine decimals.",
            "examples": ["1500"],
        })
    }
}

/// A cost ceiling, with what counts against it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Name of the tenant.
    pub tenant: String,
    /// Name of the project.
    pub project: String,
    /// Number of the project.
    pub project_id: u32,
    /// Absent where it is of the whole project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<u64>,
    /// The most that may be spent and reserved.
    pub amount: Money,
    /// What is priced in another currency is not counted.
    pub currency: String,
    /// Whether requests beyond it are refused.
    pub mode: CeilingMode,
    /// What is held from here on counts.
    pub since: When,
    /// What leases cost that have ended.
    pub spent: Money,
    /// What those that are held will have cost by their deadline; what they do not use of it returns.
    pub reserved: Money,
    /// What neither is spent nor reserved; zero where the ceiling is exceeded.
    pub left: Money,
    /// How many leases are held under it.
    pub leases: u64,
    /// Whether more is spent and reserved than it allows.
    pub exceeded: bool,
}

/// A ceiling as it shall be. What is absent is as it was; of a new one it is hard, in the currency of the prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CeilingChange {
    /// The most that may be spent and reserved; above zero.
    pub amount: Money,
    /// Whether requests beyond it are refused. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<CeilingMode>,
    /// Three capital letters. It cannot change while the ceiling stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The ceiling as it is now.
    pub ceiling: Ceiling,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingList {
    /// The ceilings of the project and of its app instances.
    pub ceilings: Vec<Ceiling>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
