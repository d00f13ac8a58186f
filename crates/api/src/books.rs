//! What can be asked of the books: usage, cost, waste, sensitivity, and what a lease would cost.

use crate::lease::RequestLease;
use crate::time::{Ttl, When};
use leasehold_model::{Priority, Sensitivity, WasteClass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an amount is of, as far as it was asked to be told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Of {
    /// Name of the tenant. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Name of the project. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Name of the user. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Name of the pool. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Name of the node. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Priority class. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Accounting tag of the tenant. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting_tag: Option<String>,
    /// Number of the allocation. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<String>,
    /// Number of the app instance. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// Name of the workload. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// `lease`, or `idle_claim`: nobody's lease, on a node that the payer has claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_as: Option<String>,
    /// Name of the resource class. Absent if the line is not grouped by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Kind of resource. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Tier of the class. Absent if the line is not grouped by it or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
}

/// A stretch of time, from `from` up to but without `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// First instant of the window.
    pub from: When,
    /// First instant after the window.
    pub to: When,
}

/// What was held of one class or kind, by one holder, over one stretch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageLine {
    #[serde(flatten)]
    pub of: Of,
    #[serde(flatten)]
    pub stretch: Stretch,
    /// What one unit is: GPU, core, GiB, Gb/s.
    pub unit: String,
    /// Units times seconds, as a decimal number of nine decimals, rounded half to even.
    pub unit_seconds: String,
    /// The same without rounding: a fraction in lowest terms.
    pub exact: String,
    /// Quanta times nanoseconds, where the line is of one class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quanta_ns: Option<String>,
    /// The most that was held at once, in units; if it was asked for and the line is of one class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<String>,
}

/// What was held, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Up to where the journal is known; what was asked for beyond it is left out.
    pub as_of: When,
    /// One line per group.
    pub lines: Vec<UsageLine>,
}

/// Where the capacity of a class was: the six parts add up to `capacity`. Unit-seconds with nine decimals.
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
    /// On nodes that are drained, lost, being wiped or quarantined, in unit-seconds with nine decimals.
    pub offline: String,
    /// Free, in unit-seconds with nine decimals.
    pub idle: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// One line per group.
    pub lines: Vec<CapacityUse>,
}

/// Money, exact and as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    /// Currency code of three capital letters, as in ISO 4217.
    pub currency: String,
    /// Six decimals, rounded half to even.
    pub amount: String,
    /// The same without rounding: a fraction in lowest terms.
    pub exact: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostLine {
    #[serde(flatten)]
    pub of: Of,
    #[serde(flatten)]
    pub stretch: Stretch,
    #[serde(flatten)]
    pub cost: Amount,
}

/// What it cost, by the prices of each second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// One line per group.
    pub lines: Vec<CostLine>,
    /// All lines together, by currency.
    pub total: Vec<Amount>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostRateLine {
    #[serde(flatten)]
    pub of: Of,
    /// In an hour.
    #[serde(flatten)]
    pub cost: Amount,
}

/// What the leases that are held now cost in an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostRate {
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// One line per group: cost per hour.
    pub lines: Vec<CostRateLine>,
    /// All lines together, one amount per currency.
    pub total: Vec<Amount>,
}

/// What a month will have cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// The month.
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// From its first instant up to `as_of`.
    pub accrued: Vec<Amount>,
    /// At its end, if every lease ends at its deadline and none is taken any more.
    pub to_deadlines: Vec<Amount>,
    /// At its end, if every lease that is held now is held until then.
    pub to_month_end: Vec<Amount>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WastedLease {
    /// ID of the lease.
    pub lease: String,
    #[serde(flatten)]
    pub of: Of,
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Still held.
    pub live: bool,
    /// The classification that weighs most.
    pub headline: WasteClass,
    /// All that match, the headline first.
    pub classes: Vec<WasteClass>,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Unit-seconds held, covered by reports, busy, and wasted; nine decimals.
    pub held: String,
    /// Time covered by activity reports, in unit-seconds with nine decimals.
    pub covered: String,
    /// Time in use according to those reports, in unit-seconds with nine decimals.
    pub busy: String,
    /// Time held and not used, in unit-seconds with nine decimals.
    pub wasted: String,
    /// The wasted part of its cost; nine decimals, rounded down.
    pub wasted_cost: Vec<WastedCost>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WastedCost {
    /// Currency code of three capital letters, as in ISO 4217.
    pub currency: String,
    /// Amount with nine decimals, rounded down.
    pub amount: String,
}

/// Leases of one headline together.
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
    /// Cost of the time held and not used, one amount per currency.
    pub wasted_cost: Vec<WastedCost>,
}

/// Idle capacity, and what it would have earned as scavenger work.
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

/// Free slices of devices that are partly in use: no whole device can be made of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FragmentedNode {
    /// Name of the node.
    pub node: String,
    /// Name of the resource class.
    pub class: String,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Units.
    pub free_in_parts: String,
    /// Number of devices that are partly in use.
    pub devices: u64,
}

/// What was held and not used, what was idle, and what is in pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WasteReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// By tenant, node, class and headline as asked.
    pub sums: Vec<WasteSum>,
    /// The leases with the most waste first, at most `limit`.
    pub leases: Vec<WastedLease>,
    /// For operators and auditors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stranded: Vec<Stranded>,
    /// Nodes with free parts of devices. For operators and auditors; absent for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fragmented: Vec<FragmentedNode>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KindSensitivity {
    /// Kind of resource.
    pub kind: String,
    /// How much the workload depends on it.
    pub level: Sensitivity,
    /// Thousandths of its cost, and of the reported time in which it waited for this kind; rounded down.
    pub cost_permille: u32,
    /// Thousandths of the reported time in which it waited for this kind, rounded down.
    pub waiting_permille: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSensitivity {
    /// Name of the workload.
    pub workload: String,
    /// One entry per kind of resource.
    pub kinds: Vec<KindSensitivity>,
}

/// What workloads depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SensitivityReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// One entry per workload.
    pub workloads: Vec<WorkloadSensitivity>,
}

/// A request that is only asked about.
pub type QuoteRequest = RequestLease;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuoteLine {
    /// Name of the resource class.
    pub class: String,
    /// Units.
    pub quantity: String,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Cost for the whole TTL, one amount per currency.
    pub cost: Vec<Amount>,
}

/// What a request would come to if it were made now. Nothing is promised and nothing is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quote {
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// It would be granted; at once, unless `evicts` is given.
    pub admitted: bool,
    /// How many leases of lower priority would have to make room first. It would wait for them (status 202).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicts: Option<u64>,
    /// Why not, if it would be denied: the code and the words that the denial would have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why it would be denied, as a sentence. Absent if it would be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Name of the pool in which it would be placed. Absent if it would be denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// For those who see nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What would be held: shorter than asked if a burst quota ends it.
    pub ttl: Ttl,
    /// Whether a soft quota would be passed.
    pub over_soft: bool,
    /// One line per resource class.
    pub lines: Vec<QuoteLine>,
    /// For the whole TTL, at the prices known for that time.
    pub total: Vec<Amount>,
}
