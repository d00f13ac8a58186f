//! Cost ceilings.

use crate::time::When;
use leasehold_model::CeilingMode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A sum of money as text, exact. It is parsed by the handler, so that an error can name the field.
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

/// A cost ceiling and the amounts that count against it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Name of the tenant.
    pub tenant: String,
    /// Name of the project.
    pub project: String,
    /// Number of the project.
    pub project_id: u32,
    /// Name of the app instance. Absent for the ceiling of the whole project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// The most that may be spent and reserved together.
    pub amount: Money,
    /// Currency code of three capital letters, as in ISO 4217. Leases priced in another currency do not count.
    pub currency: String,
    /// Whether requests beyond the ceiling are denied (`hard`) or marked (`soft`).
    pub mode: CeilingMode,
    /// Capacity held since this instant counts.
    pub since: When,
    /// Cost of leases that have ended, and of claimed nodes so far.
    pub spent: Money,
    /// Highest possible cost of the leases that are held, up to their deadlines, and of claimed nodes up to their expected
    /// ends. What they do not use becomes available again.
    pub reserved: Money,
    /// Amount that is neither spent nor reserved; zero if the ceiling is exceeded.
    pub left: Money,
    /// Number of leases that are held under the ceiling.
    pub leases: u64,
    /// Number of claimed nodes that count against the ceiling, each as a whole.
    #[serde(default)]
    pub claimed_nodes: u64,
    /// Whether more is spent and reserved than the ceiling allows.
    pub exceeded: bool,
}

/// Sets a ceiling. Updating a ceiling keeps the amount already spent. An absent field keeps its value; a new ceiling is
/// hard and in the currency of the prices unless given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CeilingChange {
    /// The most that may be spent and reserved together; above zero.
    pub amount: Money,
    /// Whether requests beyond the ceiling are denied (`hard`) or marked (`soft`). Absent keeps it; `hard` for a new
    /// ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<CeilingMode>,
    /// Currency code of three capital letters. It cannot change while the ceiling exists. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

/// A cost ceiling that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The ceiling as it is now.
    pub ceiling: Ceiling,
}

/// One page of cost ceilings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingList {
    /// The ceilings of the project and of its app instances.
    pub ceilings: Vec<Ceiling>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
