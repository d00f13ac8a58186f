//! Rate cards and charge policies.

use crate::once;
use crate::patch::Patch;
use crate::time::{Ttl, When};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A price or a factor as text, exact: never negative, up to nine decimals. It is parsed by the handler, so that an
/// error can name the field.
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

/// A price as text, exact: never negative, up to nine decimals, and per second unless `/h` (hour) or `/d` (day) follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price(pub String);

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for Price {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Price".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9]{1,7}(\\.[0-9]{1,9})?(/[shd])?$",
            "description": "A price, exact: never negative, up to nine decimals; per second, or with `/h` per hour and with `/d` per day.",
            "examples": ["0.01", "2.00/h"],
        })
    }
}

/// Prices per unit and second (or hour, or day), by kind of resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PricesByKind {
    /// Price of one GPU.
    pub gpu: Price,
    /// Price of one core.
    pub cpu: Price,
    /// Price of one GiB of memory.
    pub mem: Price,
    /// Price of one GiB of storage.
    pub block: Price,
    /// Price of one Gb/s.
    pub net: Price,
}

/// Factors on prices, by priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactorsByPriority {
    /// Factor for priority `scavenger`.
    pub scavenger: Decimal,
    /// Factor for priority `standard`.
    pub standard: Decimal,
    /// Factor for priority `guaranteed`.
    pub guaranteed: Decimal,
}

/// Prices. One unit costs, per second, hour or day: the price of its class (or of its kind, if the class has none) times the factors
/// of its tier and priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prices {
    /// Currency code of three capital letters, as in ISO 4217.
    pub currency: String,
    /// Price per unit, by kind of resource.
    pub kinds: PricesByKind,
    /// Prices of single classes, which replace the price of the kind.
    pub classes: BTreeMap<String, Price>,
    /// Factors by tier; 1 for tiers that are not listed.
    pub tiers: BTreeMap<String, Decimal>,
    /// Factor on the price, by priority.
    pub priorities: FactorsByPriority,
}

/// Whether a rate card or charge policy is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CardState {
    /// Takes effect later, and can still be changed.
    Waiting,
    /// In force now.
    InForce,
    /// Replaced by a later one.
    Past,
}

/// Prices that are valid from an instant on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateCard {
    /// Number of the card; null on the built-in card.
    pub id: Option<u32>,
    /// Whether it is the built-in card, which applies where no card has been set.
    pub built_in: bool,
    /// Name of the pool; null on a card for all pools without a card of their own.
    pub pool: Option<String>,
    /// Number of that pool; null on a card for all pools.
    pub pool_id: Option<u32>,
    /// Whether the card is in force.
    pub state: CardState,
    /// When it takes effect; null on the built-in card.
    pub from: Option<When>,
    /// When it was created or last changed; null on the built-in card.
    pub set_at: Option<When>,
    /// The prices.
    pub prices: Prices,
}

/// Changes prices by kind. An absent price keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KindPriceChange {
    /// New price of one GPU. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Price>,
    /// New price of one core. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Price>,
    /// New price of one GiB of memory. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem: Option<Price>,
    /// New price of one GiB of storage. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Price>,
    /// New price of one Gb/s. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<Price>,
}

/// Changes factors by priority. An absent factor keeps its value.
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

/// Changes prices. An absent field keeps its value; null removes a class or tier.
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
    pub classes: BTreeMap<String, Option<Price>>,
    /// New factors by tier; null removes one.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, Option<Decimal>>,
    /// New factors by priority.
    #[serde(default)]
    pub priorities: PriorityFactorChange,
}

/// Creates a rate card that replaces the one in force. Prices that are not given are copied from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRateCard {
    /// Pool that the card is for: name or number. All pools without a card of their own unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// When it takes effect; not in the past. Now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
    /// Prices that differ from those of the card in force.
    #[serde(default)]
    pub prices: PriceChange,
}

/// Changes a rate card that is not yet in force. An absent field keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateCardChange {
    /// Pool that the card is for: name or number. Absent keeps it, null means all pools without a card of their own.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub pool: Patch<String>,
    /// When it takes effect; not in the past. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
    /// Prices that change.
    #[serde(default)]
    pub prices: PriceChange,
}

/// A rate card that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateCardPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The rate card as it is now.
    pub rate_card: RateCard,
}

/// One page of rate cards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateCardList {
    /// The built-in card first, then the others in order of their numbers.
    pub rate_cards: Vec<RateCard>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What is charged for a lease: the time held, nothing, or the time held minus its last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// All of the time held.
    Full,
    /// Nothing.
    None,
    /// The time held, except for its last part of this length.
    MinusLast(Ttl),
}

/// What is charged for leases, by how they were interrupted. All other leases are charged in full.
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

/// What is charged for interrupted leases, from an instant on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargePolicy {
    /// Number of the policy; null on the built-in policy.
    pub id: Option<u32>,
    /// Whether it is the built-in policy, which applies where no policy has been set.
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

/// Changes charges. An absent charge keeps its value.
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

/// Creates a charge policy that replaces the one in force; charges that are not given are copied from it. Also used to
/// change a policy that is not yet in force; an absent field then keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewChargePolicy {
    /// When it takes effect; not in the past. Now unless given; absent in a change keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
    /// Charges that differ.
    #[serde(default)]
    pub charges: ChargesChange,
}

/// A charge policy that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargePolicyPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The charge policy as it is now.
    pub charge_policy: ChargePolicy,
}

/// One page of charge policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargePolicyList {
    /// The built-in policy first, then the others in order of their numbers.
    pub charge_policies: Vec<ChargePolicy>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
