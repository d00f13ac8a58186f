//! The registry of app runtimes: usage units and their prices, kinds of apps, app instances, and attachments.

use crate::id::AllocationId;
use crate::rate::Decimal;
use crate::time::When;
use leasehold_model::{AppOrigin, ControlPlaneScope, OperatingMode, RuntimeBackend, UnitMeasure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A unit in which app runtimes report usage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageUnit {
    /// Name of the unit, such as `requests`.
    pub name: String,
    /// Whether it measures time or counts pieces.
    pub measure: UnitMeasure,
}

/// One page of usage units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageUnitList {
    /// In order of their numbers.
    pub usage_units: Vec<UsageUnit>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Defines a usage unit. It cannot be changed or deleted, because usage is recorded in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUsageUnit {
    /// Name of the unit.
    pub name: String,
    /// Whether it measures time or counts pieces.
    pub measure: UnitMeasure,
}

/// The usage unit that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageUnitPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The usage unit as it is now.
    pub usage_unit: UsageUnit,
}

/// The price of a usage unit from an instant on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitPrice {
    /// Number of the price.
    pub id: u32,
    /// Name of the usage unit.
    pub usage_unit: String,
    /// Slug of the app that it is for; null if it is for all that have no price of their own.
    pub app: Option<String>,
    /// Price of one unit.
    pub price: Decimal,
    /// Currency code of three capital letters, as in ISO 4217.
    pub currency: String,
    /// When it takes effect.
    pub from: When,
    /// Whether it is in force now.
    pub in_force: bool,
}

/// One page of prices of usage units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitPriceList {
    /// In order of their numbers.
    pub unit_prices: Vec<UnitPrice>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Sets the price of a usage unit. Past usage keeps its price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUnitPrice {
    /// Name of the usage unit.
    pub usage_unit: String,
    /// App that it is for, by slug or number. All that have no price of their own unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Price of one unit, for instance of an hour or of a request.
    pub price: Decimal,
    /// Currency code of three capital letters. That of the prices of capacity unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// When it takes effect; not in the past. Now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
}

/// The price that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitPricePut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The price as it is now.
    pub unit_price: UnitPrice,
}

/// A kind of app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct App {
    /// Number of the app.
    pub id: u32,
    /// Short name of the app; unique.
    pub slug: String,
    /// Whether the operator or somebody else makes it. Both are billed the same way.
    pub origin: AppOrigin,
    /// Names of the units in which its instances report usage.
    pub usage_units: Vec<String>,
}

/// One page of apps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppList {
    /// In order of their numbers.
    pub apps: Vec<App>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Registers a kind of app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApp {
    /// Short name of the app; unique, and fixed.
    pub slug: String,
    /// Whether the operator or somebody else makes it.
    pub origin: AppOrigin,
    /// Names of the units in which its instances report usage. None unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage_units: Vec<String>,
}

/// Changes a kind of app. An absent field keeps its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppChange {
    /// Whether the operator or somebody else makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<AppOrigin>,
    /// Names of the units in which its instances report usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_units: Option<Vec<String>>,
}

/// The app that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The app as it is now.
    pub app: App,
}

/// A runtime that a project owns, or one of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppInstance {
    /// Number of the app instance.
    pub id: u64,
    /// Name of the app instance; unique within its tenant.
    pub name: String,
    /// Name of its tenant.
    pub tenant: String,
    /// Number of its tenant.
    pub tenant_id: u32,
    /// Name of the project that owns it.
    pub project: String,
    /// Number of that project.
    pub project_id: u32,
    /// Slug of the app.
    pub app: String,
    /// For whom it is operated.
    pub operating_mode: OperatingMode,
    /// Whose control plane it has.
    pub control_plane_scope: ControlPlaneScope,
    /// What runs its work.
    pub runtime_backend: RuntimeBackend,
}

/// One page of app instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppInstanceList {
    /// In order of their numbers.
    pub app_instances: Vec<AppInstance>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Registers a runtime. Only its name can be changed afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAppInstance {
    /// Name of the app instance; unique within its tenant.
    pub name: String,
    /// Project that owns it: name or number.
    pub project: String,
    /// Tenant of the project: name or number. Needed if the project is given by name and the token belongs to no tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The app: slug or number.
    pub app: String,
    /// For whom it is operated. `tenant_dedicated` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operating_mode: Option<OperatingMode>,
    /// Whose control plane it has. Unless given, `project`, or `platform` if it is managed by the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_scope: Option<ControlPlaneScope>,
    /// What runs its work.
    pub runtime_backend: RuntimeBackend,
}

/// Renames an app instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppInstanceChange {
    /// The new name.
    pub name: String,
}

/// The app instance that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppInstancePut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The app instance as it is now.
    pub app_instance: AppInstance,
}

/// Capacity that a project lends to a shared runtime of its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Number of the attachment.
    pub id: u64,
    /// Name of the tenant.
    pub tenant: String,
    /// Name of the runtime.
    pub app_instance: String,
    /// Name of the project that owns the runtime and holds the capacity.
    pub owner_project: String,
    /// Name of the project that lends the capacity and pays for it.
    pub source_project: String,
    /// The allocation that is lent as it is; null if there is none.
    pub allocation_id: Option<AllocationId>,
    /// When it was made.
    pub made_at: When,
}

/// One page of attachments that have not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachmentList {
    /// In order of their numbers.
    pub attachments: Vec<Attachment>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Lends to a shared runtime of the tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAttachment {
    /// The runtime: name or number.
    pub app_instance: String,
    /// Project that lends and pays: name or number. The project of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_project: Option<String>,
    /// Tenant of both: name or number. Needed if the runtime is given by name and the token belongs to no tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// An allocation of the project that it lends as it is. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<AllocationId>,
}

/// The attachment that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachmentPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The attachment as it is now.
    pub attachment: Attachment,
}
