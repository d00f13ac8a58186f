//! Answers from the books: usage, cost, waste, sensitivity and quotes.

use crate::lease::RequestLease;
use crate::time::{Ttl, When};
use leasehold_model::{
    ControlPlaneScope, OperatingMode, Priority, RuntimeBackend, Sensitivity, UsageCharge, WasteClass,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a line is grouped by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Of {
    /// Name of the tenant. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Number of the tenant, which tells it from others of the same name, for instance one that was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<u32>,
    /// Name of the project. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Number of the project, which tells it from others of the same name, for instance one that was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<u32>,
    /// Name of the user. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Number of the user, which tells it from others of the same name, for instance one that was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<u32>,
    /// Name of the pool. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Number of the pool, which tells it from others of the same name, for instance one that was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_id: Option<u32>,
    /// Name of the node. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Number of the node, which tells it from others of the same name, for instance one that was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<u32>,
    /// Priority class. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Accounting tag of the tenant. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting_tag: Option<String>,
    /// The allocation: `alloc-` and its number. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<String>,
    /// Name of the app instance. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// Name of the workload. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// `lease`, or `idle_claim` for capacity that no lease holds on a node that the payer has claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_as: Option<String>,
    /// Whether it is the control plane of an app instance. Absent if the line is not grouped by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Slug of the app. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Operating mode of the app instance. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operating_mode: Option<OperatingMode>,
    /// Scope of the control plane of the app instance. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_scope: Option<ControlPlaneScope>,
    /// Backend of the app instance. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_backend: Option<RuntimeBackend>,
    /// Name of the resource class. Absent if the line is not grouped by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Number of the resource class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_id: Option<u16>,
    /// Usage unit that an app reported. Absent for capacity, and in costs that are not grouped by class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_unit: Option<String>,
    /// Kind of resource. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Tier of the class. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
}

/// A window of time: `from` is included, `to` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// First instant of the window.
    pub from: When,
    /// First instant after the window.
    pub to: When,
}

/// Amount of one class or kind that was held in one group during one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageLine {
    #[serde(flatten)]
    pub of: Of,
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Name of the bucket in the time zone that was asked for: `2026-11-10` for a day, `2026-11` for a month,
    /// `2026-11-10T14:00+02:00` for an hour or minute. Absent without `bucket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Units times seconds, with nine decimals, rounded half to even.
    pub unit_seconds: String,
    /// The same amount without rounding: a fraction in lowest terms.
    pub exact: String,
    /// Quanta times nanoseconds. Absent if the line has several classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quanta_ns: Option<String>,
    /// The most that was held at once, in billing units, without rounding. Absent unless asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<String>,
    /// How much of it was busy, as far as activity was reported. Absent unless asked for, and without reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<Utilisation>,
}

/// How busy held capacity was, according to the activity reports of its leases. Each lease counts as a whole, also
/// outside of the window that selected it: reports do not say when a lease was busy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Utilisation {
    /// Time covered by activity reports, in unit-seconds with nine decimals.
    pub covered: String,
    /// Time in use according to those reports, in unit-seconds with nine decimals.
    pub busy: String,
    /// Thousandths of the covered time that were busy, rounded down; null if less than half of the time held is
    /// covered.
    pub permille: Option<u32>,
}

/// Amounts that were held, by group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated. Later parts of the window are left out.
    pub as_of: When,
    /// Size of the journal on which the figures are based. A checkpoint of this size or larger signs every record that
    /// they follow from.
    pub as_of_size: u64,
    /// One line per group.
    pub lines: Vec<UsageLine>,
    /// What apps reported, one line per group, usage unit and charge. It is shown in the hour in which it is booked. Empty
    /// if the question is about something that reported usage does not have, such as a pool or a class.
    pub reported: Vec<ReportedLine>,
}

/// What apps reported of one usage unit in one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedLine {
    #[serde(flatten)]
    pub of: Of,
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Name of the bucket in the time zone that was asked for. Absent without `bucket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// What it does to the accounts of its project.
    pub charge: UsageCharge,
    /// Exact quantity.
    pub quantity: String,
}

/// How the capacity of a class was used, in unit-seconds without rounding: fractions in lowest terms. The six parts add
/// up to `capacity`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExactCapacity {
    /// The whole capacity.
    pub capacity: String,
    /// Held by leases.
    pub held: String,
    /// Held by leases that ended and are being torn down.
    pub tearing_down: String,
    /// Reserved for allocations whose victims are being torn down.
    pub reserved: String,
    /// Held by leases whose teardown was not confirmed in time.
    pub fenced: String,
    /// On nodes that are drained, lost, being wiped or quarantined.
    pub offline: String,
    /// Free.
    pub idle: String,
}

/// How the capacity of a class was used, in unit-seconds with nine decimals. The capacity is rounded half to even, and
/// the six parts are rounded so that they add up to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityUse {
    #[serde(flatten)]
    pub of: Of,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// The whole capacity, in unit-seconds with nine decimals.
    pub capacity: String,
    /// Held by leases, in unit-seconds with nine decimals.
    pub held: String,
    /// Held by leases that ended and are being torn down, in unit-seconds with nine decimals.
    pub tearing_down: String,
    /// Reserved for allocations whose victims are being torn down, in unit-seconds with nine decimals.
    pub reserved: String,
    /// Held by leases whose teardown was not confirmed in time, in unit-seconds with nine decimals.
    pub fenced: String,
    /// On nodes that are drained, being wiped or quarantined, and all of a node from the instant at which it was last
    /// seen before it was lost; in unit-seconds with nine decimals.
    pub offline: String,
    /// Free, in unit-seconds with nine decimals.
    pub idle: String,
    /// The same without rounding.
    pub exact: ExactCapacity,
}

/// Use of capacity, by group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// Size of the journal on which the figures are based. A checkpoint of this size or larger signs every record that
    /// they follow from.
    pub as_of_size: u64,
    /// One line per group.
    pub lines: Vec<CapacityUse>,
}

/// A sum of money, rounded and exact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    /// Currency code of three capital letters, as in ISO 4217.
    pub currency: String,
    /// Amount with six decimals, rounded half to even. The lines of a report are rounded so that they add up to its
    /// total.
    pub amount: String,
    /// The same amount without rounding: a fraction in lowest terms.
    pub exact: String,
}

/// Cost of one group in one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostLine {
    #[serde(flatten)]
    pub of: Of,
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Name of the bucket in the time zone that was asked for: `2026-11-10` for a day, `2026-11` for a month,
    /// `2026-11-10T14:00+02:00` for an hour or minute. Absent without `bucket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    #[serde(flatten)]
    pub cost: Amount,
}

/// Costs by group, at the prices in force at each second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// Size of the journal on which the figures are based. A checkpoint of this size or larger signs every record that
    /// they follow from.
    pub as_of_size: u64,
    /// One line per group.
    pub lines: Vec<CostLine>,
    /// All lines together, one amount per currency.
    pub total: Vec<Amount>,
    /// What is credited by group, because others used capacity that is paid for by the group. What is owed is the cost
    /// less this.
    pub credits: Vec<CostLine>,
    /// All credits together, one amount per currency.
    pub total_credited: Vec<Amount>,
}

/// Hourly cost of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostRateLine {
    #[serde(flatten)]
    pub of: Of,
    /// Cost per hour.
    #[serde(flatten)]
    pub cost: Amount,
}

/// Hourly cost of the leases that are held now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostRate {
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// Size of the journal on which the figures are based. A checkpoint of this size or larger signs every record that
    /// they follow from.
    pub as_of_size: u64,
    /// One line per group: cost per hour.
    pub lines: Vec<CostRateLine>,
    /// All lines together, one amount per currency.
    pub total: Vec<Amount>,
}

/// Forecast of the cost of the current month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// The month.
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// Size of the journal on which the figures are based. A checkpoint of this size or larger signs every record that
    /// they follow from.
    pub as_of_size: u64,
    /// Cost from the beginning of the month up to `as_of`.
    pub accrued: Vec<Amount>,
    /// Cost of the month if every lease ends at its deadline and no lease is granted or renewed.
    pub to_deadlines: Vec<Amount>,
    /// Cost of the month if every lease that is held now is held until the end of the month.
    pub to_month_end: Vec<Amount>,
    /// The part for capacity that leases hold.
    pub leases: ForecastPart,
    /// The part for capacity that no lease holds on claimed nodes. A claim has no deadline: it is charged until the node
    /// is released.
    pub claims: ForecastPart,
}

/// Leases, or claims, in the forecast. The two parts add up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForecastPart {
    /// Cost from the beginning of the month up to `as_of`.
    pub accrued: Vec<Amount>,
    /// Cost of the month if every lease ends at its deadline and no claim is released.
    pub to_deadlines: Vec<Amount>,
    /// Cost of the month if nothing that is held now is given back.
    pub to_month_end: Vec<Amount>,
}

/// Waste of one lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WastedLease {
    /// The lease: `lease-` and its number.
    pub lease: String,
    #[serde(flatten)]
    pub of: Of,
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Whether the lease is still held.
    pub live: bool,
    /// The most important classification of its waste.
    pub headline: WasteClass,
    /// All classifications that apply, the headline first.
    pub classes: Vec<WasteClass>,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Time held, in unit-seconds with nine decimals.
    pub held: String,
    /// Time covered by activity reports, in unit-seconds with nine decimals.
    pub covered: String,
    /// Time in use according to those reports, in unit-seconds with nine decimals.
    pub busy: String,
    /// Time held and not used, in unit-seconds with nine decimals.
    pub wasted: String,
    /// Cost of the time held and not used, one amount per currency, with nine decimals, rounded down.
    pub wasted_cost: Vec<WastedCost>,
}

/// A sum of money, with nine decimals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WastedCost {
    /// Currency code of three capital letters, as in ISO 4217.
    pub currency: String,
    /// Amount with nine decimals, rounded down.
    pub amount: String,
}

/// Leases with the same headline, summed up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WasteSum {
    #[serde(flatten)]
    pub of: Of,
    /// Classification of these leases.
    pub headline: WasteClass,
    /// Number of leases.
    pub leases: u64,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Time held, in unit-seconds with nine decimals.
    pub held: String,
    /// Time held and not used, in unit-seconds with nine decimals.
    pub wasted: String,
    /// How much of it was busy. Absent without activity reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<Utilisation>,
    /// Cost of the time held and not used, one amount per currency.
    pub wasted_cost: Vec<WastedCost>,
}

/// Idle capacity, and what it would have earned at scavenger priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stranded {
    #[serde(flatten)]
    pub of: Of,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Free capacity, in unit-seconds with nine decimals.
    pub idle: String,
    /// The whole capacity, in unit-seconds with nine decimals.
    pub capacity: String,
    /// What the free capacity would have cost at scavenger priority, one amount per currency.
    pub could_have_earned: Vec<Amount>,
}

/// Free parts of devices that are partly in use. They cannot be combined into a whole device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FragmentedNode {
    /// Name of the node.
    pub node: String,
    /// Name of the resource class.
    pub class: String,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Amount that is free in parts, in billing units.
    pub free_in_parts: String,
    /// Number of devices that are partly in use.
    pub devices: u64,
}

/// Capacity that was held and not used, idle, or fragmented.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WasteReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// Size of the journal on which the figures are based. A checkpoint of this size or larger signs every record that
    /// they follow from.
    pub as_of_size: u64,
    /// Sums by headline and by the grouping that was asked for.
    pub sums: Vec<WasteSum>,
    /// The leases with the most waste, at most `limit`.
    pub leases: Vec<WastedLease>,
    /// Idle capacity by pool and class. For operators and auditors; absent for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stranded: Vec<Stranded>,
    /// Nodes with free parts of devices. For operators and auditors; absent for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fragmented: Vec<FragmentedNode>,
}

/// How much a workload depends on one kind of resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KindSensitivity {
    /// Kind of resource.
    pub kind: String,
    /// How much the workload depends on it.
    pub level: Sensitivity,
    /// Share of this kind in the cost of the workload, in thousandths, rounded down.
    pub cost_permille: u32,
    /// Thousandths of the reported time in which it waited for this kind, rounded down.
    pub waiting_permille: u32,
}

/// How much one workload depends on each kind of resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSensitivity {
    /// Name of the workload.
    pub workload: String,
    /// One entry per kind of resource.
    pub kinds: Vec<KindSensitivity>,
}

/// How much workloads depend on each kind of resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SensitivityReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// Size of the journal on which the figures are based. A checkpoint of this size or larger signs every record that
    /// they follow from.
    pub as_of_size: u64,
    /// One entry per workload.
    pub workloads: Vec<WorkloadSensitivity>,
}

/// A request for a lease that is only quoted.
pub type QuoteRequest = RequestLease;

/// Cost of one resource class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuoteLine {
    /// Name of the resource class.
    pub class: String,
    /// Amount in billing units.
    pub quantity: String,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Cost for the whole TTL, one amount per currency.
    pub cost: Vec<Amount>,
}

/// What a request would cost and whether it would be granted if it were made now. Nothing is reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quote {
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// Whether it would be granted. It would start at once unless `evicts` is given.
    pub admitted: bool,
    /// Number of leases of lower priority that would be evicted first; the request would wait for them (status 202).
    /// Absent if none would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicts: Option<u64>,
    /// Code of the denial. Absent if it would be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why it would be denied, as a sentence; without figures if the request names a node on which the caller may not
    /// see anything. Absent if it would be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Name of the pool in which it would be placed; if it would be denied, the pool that was asked for. Absent if
    /// there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Name of the node on which it would be placed. Absent if it would be denied, and for callers that may not see
    /// nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// TTL that it would be granted: shorter than asked for if a burst quota limits it.
    pub ttl: Ttl,
    /// Whether a soft quota would be exceeded.
    pub over_soft: bool,
    /// One line per resource class.
    pub lines: Vec<QuoteLine>,
    /// Cost for the whole TTL at the prices known for that time, one amount per currency.
    pub total: Vec<Amount>,
}
