//! Entitlements: how much of a usage unit may be used in a month; and usage that they refused.

use crate::ledger::MonthText;
use crate::time::When;
use crate::usage_record::UnitQuantityText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was used in a month under an entitlement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntitledMonth {
    /// The month in which the usage ended.
    pub month: MonthText,
    /// What was used, of billed usage.
    pub used: String,
    /// Whether the soft limit was exceeded, and an alert was raised.
    pub warned: bool,
}

/// How much of a usage unit may be used in a month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entitlement {
    /// Name of the tenant that it belongs to.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Name of the project; null if it is for all projects.
    pub project: Option<String>,
    /// Number of the project.
    pub project_id: Option<u32>,
    /// Name of the app instance; null if it is for all.
    pub app_instance: Option<String>,
    /// Number of the app instance.
    pub app_instance_id: Option<u64>,
    /// Name of the usage unit.
    pub usage_unit: String,
    /// Beyond this an alert is raised; null if there is no such limit.
    pub soft: Option<String>,
    /// Beyond this usage is refused; null if there is no such limit.
    pub hard: Option<String>,
    /// The months that usage can still be reported for, and in which something was used, the oldest first.
    pub months: Vec<EntitledMonth>,
}

/// Sets an entitlement. One for the same project, app instance and unit is replaced; what was used counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntitlementChange {
    /// Tenant of the project or of the app instance: name or number. Absent for that of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project whose usage is limited: name or number. Absent for that of all projects on the app instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// App instance on which usage is limited: name or number. Absent for that on all app instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// Usage unit.
    pub usage_unit: String,
    /// Beyond this an alert is raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<UnitQuantityText>,
    /// Beyond this usage is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<UnitQuantityText>,
}

/// An entitlement that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntitlementPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The entitlement as it is now.
    pub entitlement: Entitlement,
}

/// One page of entitlements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntitlementList {
    /// The entitlements.
    pub entitlements: Vec<Entitlement>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Usage that an entitlement refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedUsage {
    /// Sequence number of the record.
    pub sequence: u64,
    /// When it was refused.
    pub refused_at: When,
    /// Who reported it: the name of the token.
    pub source: String,
    /// ID of the usage record.
    pub id: String,
    /// Name of the tenant whose usage it is.
    pub tenant: String,
    /// Name of the project whose usage it is.
    pub project: String,
    /// Name of the app instance.
    pub app_instance: String,
    /// Name of the usage unit.
    pub usage_unit: String,
    /// What was reported.
    pub quantity: String,
    /// From when on it was used.
    pub from: When,
    /// Until when it was used.
    pub to: When,
    /// What was used in the month before.
    pub used: String,
    /// The hard limit that it would have exceeded.
    pub hard: String,
    /// Sequence number of the record by which the same usage was accepted later; null if it was not.
    pub accepted_later: Option<u64>,
}

/// Usage of a month that entitlements refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedUsageList {
    /// The month.
    pub month: MonthText,
    /// In order of tenant, project and time, up to 1000.
    pub refused: Vec<RefusedUsage>,
    /// Whether there is more.
    pub has_more: bool,
}
