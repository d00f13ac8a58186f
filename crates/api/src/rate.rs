//! What capacity costs: rate cards, and what is charged for leases that end badly.

use crate::once;
use crate::patch::Patch;
use crate::time::{Ttl, When};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A price or a factor as text, exact: never negative, up to nine decimals. It stays text until the field it stands in
/// is known, so that what is wrong with it can be told by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decimal(pub String);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for Decimal {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Decimal".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9]{1,7}(\\.[0-9]{1,9})?$",
            "description": "A price or a factor, exact: never negative, up to nine decimals.",
            "examples": ["0.01"],
        })
    }
}

/// Prices per unit-second, by kind of resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PricesByKind {
    /// Price of one GPU for one second.
    pub gpu: Decimal,
    /// Price of one core for one second.
    pub cpu: Decimal,
    /// Price of one GiB of memory for one second.
    pub mem: Decimal,
    /// Price of one GiB of storage for one second.
    pub block: Decimal,
    /// Price of one Gb/s for one second.
    pub net: Decimal,
}

/// Factors on the price, by priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactorsByPriority {
    /// Factor for priority `scavenger`.
    pub scavenger: Decimal,
    /// Factor for priority `standard`.
    pub standard: Decimal,
    /// Factor for priority `guaranteed`.
    pub guaranteed: Decimal,
}

/// A second of a unit costs the price of its class, or else of its kind, times the factors of its tier and priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prices {
    /// Three capital letters, as ISO 4217 has them.
    pub currency: String,
    /// Price per unit-second, by kind of resource.
    pub kinds: PricesByKind,
    /// Instead of the kind's, for single classes.
    pub classes: BTreeMap<String, Decimal>,
    /// Factors by tier; 1 for all others.
    pub tiers: BTreeMap<String, Decimal>,
    /// Factor on the price, by priority.
    pub priorities: FactorsByPriority,
}

/// Whether it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CardState {
    /// It begins later, and can still be changed.
    Waiting,
    InForce,
    /// Another one has taken its place.
    Past,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateCard {
    /// Absent on the card that is built in.
    pub id: Option<u32>,
    /// The card that holds where nobody has set one.
    pub built_in: bool,
    /// Absent on a card for all pools that have none of their own.
    pub pool: Option<String>,
    /// Number of that pool. Absent on a card for all pools.
    pub pool_id: Option<u32>,
    /// Whether the card is in force.
    pub state: CardState,
    /// Since when, or from when on; absent on the card that is built in.
    pub from: Option<When>,
    /// When it was made, or last changed.
    pub set_at: Option<When>,
    /// The prices.
    pub prices: Prices,
}

/// Prices of kinds that are to be others; an absent one keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KindPriceChange {
    /// New price of one GPU for one second. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Decimal>,
    /// New price of one core for one second. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Decimal>,
    /// New price of one GiB of memory for one second. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem: Option<Decimal>,
    /// New price of one GiB of storage for one second. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Decimal>,
    /// New price of one Gb/s for one second. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<Decimal>,
}

/// Factors of priorities that are to be others; an absent one keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorityFactorChange {
    /// New factor for priority `scavenger`. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scavenger: Option<Decimal>,
    /// New factor for priority `standard`. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard: Option<Decimal>,
    /// New factor for priority `guaranteed`. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guaranteed: Option<Decimal>,
}

/// Prices that are to be others: what is absent keeps its value, a class or tier that is null has no line of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceChange {
    /// New currency: three capital letters. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// New prices by kind of resource.
    #[serde(default)]
    pub kinds: KindPriceChange,
    /// New prices of single classes, by name or number; null removes one.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, Option<Decimal>>,
    /// New factors by tier; null removes one.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, Option<Decimal>>,
    /// New factors by priority.
    #[serde(default)]
    pub priorities: PriorityFactorChange,
}

/// A card that succeeds the one in force; prices that are not named are those of that one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRateCard {
    /// Only for this pool: its name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Now, unless given; never in the past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
    /// Prices that differ from those of the card in force.
    #[serde(default)]
    pub prices: PriceChange,
}

/// A change of a card that waits: what is absent keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateCardChange {
    /// Null: for all pools that have none of their own.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub pool: Patch<String>,
    /// When it takes effect; never in the past. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
    /// Prices that change.
    #[serde(default)]
    pub prices: PriceChange,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateCardPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The rate card as it is now.
    pub rate_card: RateCard,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateCardList {
    /// The built-in card first, then the others in order of their numbers.
    pub rate_cards: Vec<RateCard>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What is charged for a lease: what was held, nothing, or what was held less its last stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// All that was held.
    Full,
    /// Nothing.
    None,
    /// What was held except for the last part of this length.
    MinusLast(Ttl),
}

/// The bill of a lease by how it ended badly; all others are charged in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Charges {
    /// What is charged for leases that were preempted.
    pub preempted: Charge,
    /// What is charged for leases that were fenced.
    pub fenced: Charge,
    /// What is charged for leases whose node was lost.
    pub node_lost: Charge,
    /// What is charged for leases that failed at their start.
    pub failed_start: Charge,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargePolicy {
    /// Absent on the policy that is built in.
    pub id: Option<u32>,
    /// The policy that holds where nobody has set one.
    pub built_in: bool,
    /// Whether the policy is in force.
    pub state: CardState,
    /// When it takes effect; null on the built-in policy.
    pub from: Option<When>,
    /// When it was created or last changed; null on the built-in policy.
    pub set_at: Option<When>,
    /// What is charged.
    pub charges: Charges,
}

/// Charges that are to be others; an absent one keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChargesChange {
    /// What is charged for leases that were preempted. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted: Option<Charge>,
    /// What is charged for leases that were fenced. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fenced: Option<Charge>,
    /// What is charged for leases whose node was lost. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_lost: Option<Charge>,
    /// What is charged for leases that failed at their start. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_start: Option<Charge>,
}

/// A policy that succeeds the one in force; charges that are not named are those of that one. Or a change of one that
/// waits, which keeps what is not named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewChargePolicy {
    /// A new one begins now, unless given; never in the past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
    /// Charges that differ.
    #[serde(default)]
    pub charges: ChargesChange,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargePolicyPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The charge policy as it is now.
    pub charge_policy: ChargePolicy,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargePolicyList {
    /// The built-in policy first, then the others in order of their numbers.
    pub charge_policies: Vec<ChargePolicy>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
