//! What can be asked of the books: usage, cost, waste, sensitivity, and what a lease would cost.

use crate::lease::RequestLease;
use crate::time::{Ttl, When};
use leasehold_model::{Priority, Sensitivity, WasteClass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an amount is of, as far as it was asked to be told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Of {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting_tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// `lease`, or `idle_claim`: nobody's lease, on a node that the payer has claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_as: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
}

/// A stretch of time, from `from` up to but without `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    pub from: When,
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
    pub lines: Vec<UsageLine>,
}

/// Where the capacity of a class was: the six parts add up to `capacity`. Unit-seconds with nine decimals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityUse {
    #[serde(flatten)]
    pub of: Of,
    pub unit: String,
    pub capacity: String,
    pub held: String,
    pub tearing_down: String,
    pub reserved: String,
    pub fenced: String,
    pub offline: String,
    pub idle: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    pub as_of: When,
    pub lines: Vec<CapacityUse>,
}

/// Money, exact and as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
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
    pub as_of: When,
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
    pub as_of: When,
    pub lines: Vec<CostRateLine>,
    pub total: Vec<Amount>,
}

/// What a month will have cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// The month.
    #[serde(flatten)]
    pub stretch: Stretch,
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
    pub lease: String,
    #[serde(flatten)]
    pub of: Of,
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Still held.
    pub live: bool,
    pub headline: WasteClass,
    /// All that match, the headline first.
    pub classes: Vec<WasteClass>,
    pub unit: String,
    /// Unit-seconds held, covered by reports, busy, and wasted; nine decimals.
    pub held: String,
    pub covered: String,
    pub busy: String,
    pub wasted: String,
    /// The wasted part of its cost; nine decimals, rounded down.
    pub wasted_cost: Vec<WastedCost>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WastedCost {
    pub currency: String,
    pub amount: String,
}

/// Leases of one headline together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WasteSum {
    #[serde(flatten)]
    pub of: Of,
    pub headline: WasteClass,
    pub leases: u64,
    pub unit: String,
    pub held: String,
    pub wasted: String,
    pub wasted_cost: Vec<WastedCost>,
}

/// Idle capacity, and what it would have earned as scavenger work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stranded {
    #[serde(flatten)]
    pub of: Of,
    pub unit: String,
    pub idle: String,
    pub capacity: String,
    pub could_have_earned: Vec<Amount>,
}

/// Free slices of devices that are partly in use: no whole device can be made of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FragmentedNode {
    pub node: String,
    pub class: String,
    pub unit: String,
    /// Units.
    pub free_in_parts: String,
    pub devices: u64,
}

/// What was held and not used, what was idle, and what is in pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WasteReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    pub as_of: When,
    /// By tenant, node, class and headline as asked.
    pub sums: Vec<WasteSum>,
    /// The leases with the most waste first, at most `limit`.
    pub leases: Vec<WastedLease>,
    /// For operators and auditors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stranded: Vec<Stranded>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fragmented: Vec<FragmentedNode>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KindSensitivity {
    pub kind: String,
    pub level: Sensitivity,
    /// Thousandths of its cost, and of the reported time in which it waited for this kind; rounded down.
    pub cost_permille: u32,
    pub waiting_permille: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSensitivity {
    pub workload: String,
    pub kinds: Vec<KindSensitivity>,
}

/// What workloads depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SensitivityReport {
    #[serde(flatten)]
    pub stretch: Stretch,
    pub as_of: When,
    pub workloads: Vec<WorkloadSensitivity>,
}

/// A request that is only asked about.
pub type QuoteRequest = RequestLease;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuoteLine {
    pub class: String,
    /// Units.
    pub quantity: String,
    pub unit: String,
    pub cost: Vec<Amount>,
}

/// What a request would come to if it were made now. Nothing is promised and nothing is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quote {
    pub as_of: When,
    /// It would be granted; at once, unless `evicts` is given.
    pub admitted: bool,
    /// How many leases of lower priority would have to make room first. It would wait for them (status 202).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicts: Option<u64>,
    /// Why not, if it would be denied: the code and the words that the denial would have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// For those who see nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What would be held: shorter than asked if a burst quota ends it.
    pub ttl: Ttl,
    /// Whether a soft quota would be passed.
    pub over_soft: bool,
    pub lines: Vec<QuoteLine>,
    /// For the whole TTL, at the prices known for that time.
    pub total: Vec<Amount>,
}
