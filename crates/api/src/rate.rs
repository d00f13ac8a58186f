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
    pub gpu: Decimal,
    pub cpu: Decimal,
    pub mem: Decimal,
    pub block: Decimal,
    pub net: Decimal,
}

/// Factors on the price, by priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactorsByPriority {
    pub scavenger: Decimal,
    pub standard: Decimal,
    pub guaranteed: Decimal,
}

/// A second of a unit costs the price of its class, or else of its kind, times the factors of its tier and priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prices {
    /// Three capital letters, as ISO 4217 has them.
    pub currency: String,
    pub kinds: PricesByKind,
    /// Instead of the kind's, for single classes.
    pub classes: BTreeMap<String, Decimal>,
    /// Factors by tier; 1 for all others.
    pub tiers: BTreeMap<String, Decimal>,
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
    pub pool_id: Option<u32>,
    pub state: CardState,
    /// Since when, or from when on; absent on the card that is built in.
    pub from: Option<When>,
    /// When it was made, or last changed.
    pub set_at: Option<When>,
    pub prices: Prices,
}

/// Prices of kinds that are to be others; an absent one keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KindPriceChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Decimal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Decimal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem: Option<Decimal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Decimal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<Decimal>,
}

/// Factors of priorities that are to be others; an absent one keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorityFactorChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scavenger: Option<Decimal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard: Option<Decimal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guaranteed: Option<Decimal>,
}

/// Prices that are to be others: what is absent keeps its value, a class or tier that is null has no line of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    #[serde(default)]
    pub kinds: KindPriceChange,
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, Option<Decimal>>,
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, Option<Decimal>>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
    #[serde(default)]
    pub prices: PriceChange,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateCardPut {
    pub sequence: u64,
    pub rate_card: RateCard,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateCardList {
    pub rate_cards: Vec<RateCard>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What is charged for a lease: what was held, nothing, or what was held less its last stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    Full,
    None,
    MinusLast(Ttl),
}

/// The bill of a lease by how it ended badly; all others are charged in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Charges {
    pub preempted: Charge,
    pub fenced: Charge,
    pub node_lost: Charge,
    pub failed_start: Charge,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargePolicy {
    /// Absent on the policy that is built in.
    pub id: Option<u32>,
    /// The policy that holds where nobody has set one.
    pub built_in: bool,
    pub state: CardState,
    pub from: Option<When>,
    pub set_at: Option<When>,
    pub charges: Charges,
}

/// Charges that are to be others; an absent one keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChargesChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted: Option<Charge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fenced: Option<Charge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_lost: Option<Charge>,
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
    #[serde(default)]
    pub charges: ChargesChange,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargePolicyPut {
    pub sequence: u64,
    pub charge_policy: ChargePolicy,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargePolicyList {
    pub charge_policies: Vec<ChargePolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
