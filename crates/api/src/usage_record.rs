//! Usage that the runtimes of apps report.

use crate::id::AllocationId;
use crate::problem::Problem;
use crate::time::When;
use leasehold_model::{ControlPlaneScope, OperatingMode, RuntimeBackend, UsageCharge, UsageSource};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A quantity of a usage unit: a decimal number with up to nine decimals as text, or an integer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum UnitQuantityText {
    Text(String),
    Integer(u64),
}

/// Takes what JSON has for numbers, and says what is wrong with those that cannot be exact.
impl<'de> Deserialize<'de> for UnitQuantityText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Quantity;

        impl Visitor<'_> for Quantity {
            type Value = UnitQuantityText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer, or a decimal number as text such as \"1.5\"")
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(UnitQuantityText::Text(text.to_owned()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(UnitQuantityText::Integer(number))
            }
            /// A negative number, which is refused like its text.
            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(UnitQuantityText::Text(number.to_string()))
            }
        }

        deserializer.deserialize_any(Quantity)
    }
}

impl JsonSchema for UnitQuantityText {
    fn schema_name() -> Cow<'static, str> {
        "UnitQuantity".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Quantity of a usage unit: a decimal number with up to nine decimals as text, or an integer. At most 10^12.",
            "anyOf": [
                { "type": "string", "pattern": "^[0-9]{1,13}(\\.[0-9]{1,9})?$", "maxLength": 23 },
                { "type": "integer", "minimum": 0, "maximum": 1_000_000_000_000u64 },
            ],
        })
    }
}

/// Usage that a runtime reports. All anchors are stated, and compared with the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUsageRecord {
    /// ID, unique for the source. The same ID with the same content gets the first answer again; with other content 409.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub id: Option<String>,
    /// Source, if it is stated: the name of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Tenant whose usage it is: name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
    /// Project whose usage it is: name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// App instance: name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance_id: Option<String>,
    /// Slug of its app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_slug: Option<String>,
    /// Operating mode of the app instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operating_mode: Option<OperatingMode>,
    /// Scope of its control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_scope: Option<ControlPlaneScope>,
    /// Its runtime backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_backend: Option<RuntimeBackend>,
    /// Correlation ID: a UUID, or 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Where it comes from. `app_runtime` unless given, which is the only value accepted here: usage of allocations comes
    /// from their leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_source: Option<UsageSource>,
    /// Usage unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_unit: Option<String>,
    /// How much was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<UnitQuantityText>,
    /// From when on it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
    /// Until when it was used; at most 35 days ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<When>,
    /// User who asked for it: name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by_user_id: Option<String>,
    /// Whether the control plane used it, and not the work that it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_plane_component: bool,
    /// Attachment that lends the worker on which it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment_id: Option<u64>,
    /// Allocation that holds the lent worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<AllocationId>,
    /// ID of the usage record that it supersedes, the newest of its chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
}

/// Several usage records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUsageRecords {
    /// Usage records, up to 10,000, or up to 1,000 with `atomic`.
    pub records: Vec<NewUsageRecord>,
    /// All of them are recorded, or none. Otherwise each is answered by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub atomic: bool,
}

/// One usage record, or several. CloudEvents are accepted as well, with their own media types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum UsageReports {
    Several(NewUsageRecords),
    One(Box<NewUsageRecord>),
}

/// A usage record that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageAccepted {
    /// Sequence number of the record that sealed it.
    pub sequence: u64,
    /// ID by which it was reported.
    pub id: String,
    /// Whether it was recorded before, and nothing was done now.
    pub repeated: bool,
    /// What it does to the accounts of its project.
    pub charge: UsageCharge,
    /// Whether nobody is known to have asked for it, so that it is the owner's.
    pub no_submitter: bool,
}

/// The result of one usage record of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageResult {
    /// HTTP status that the record would have had by itself.
    pub status: u16,
    /// The record, if it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<UsageAccepted>,
    /// Why it was refused, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// The results of several usage records, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageResults {
    /// How many were accepted, also before.
    pub accepted: u64,
    /// How many were refused.
    pub refused: u64,
    /// One result for each record.
    pub results: Vec<UsageResult>,
}

/// The answer to one usage record that was recorded before, or to several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum UsageAnswer {
    Several(UsageResults),
    One(UsageAccepted),
}

/// A usage record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRecord {
    /// Sequence number of the record that sealed it.
    pub sequence: u64,
    /// When it was recorded.
    pub recorded_at: When,
    /// ID, unique for the source.
    pub id: String,
    /// Who reported it.
    pub source: String,
    /// Name of the tenant whose usage it is.
    pub org_id: String,
    /// Name of the project whose usage it is.
    pub project_id: String,
    /// Name of the app instance.
    pub app_instance_id: String,
    /// Slug of its app; as everything about the app instance, also after it was deleted.
    pub app_slug: Option<String>,
    /// Operating mode of the app instance.
    pub operating_mode: Option<OperatingMode>,
    /// Scope of its control plane.
    pub control_plane_scope: Option<ControlPlaneScope>,
    /// Its runtime backend.
    pub runtime_backend: Option<RuntimeBackend>,
    /// Correlation ID.
    pub correlation_id: String,
    /// Where it comes from.
    pub usage_source: UsageSource,
    /// Usage unit.
    pub usage_unit: String,
    /// How much was used.
    pub quantity: String,
    /// From when on it was used.
    pub from: When,
    /// Until when it was used.
    pub to: When,
    /// Name of the user who asked for it; null if nobody is known.
    pub requested_by_user_id: Option<String>,
    /// Whether the control plane used it.
    pub control_plane_component: bool,
    /// Attachment that lends the worker; null if it was not used on a lent worker.
    pub attachment_id: Option<u64>,
    /// Allocation that holds the lent worker; null if there is none.
    pub allocation_id: Option<AllocationId>,
    /// ID of the record that it supersedes; null if it supersedes none.
    pub supersedes: Option<String>,
    /// Sequence number of the record that superseded it; null if none did.
    pub superseded_by: Option<u64>,
    /// What it does to the accounts of its project.
    pub charge: UsageCharge,
    /// Whether nobody is known to have asked for it, so that it is the owner's.
    pub no_submitter: bool,
}
