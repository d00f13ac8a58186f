//! Prepaid credit.

use crate::ceiling::Money;
use crate::ledger::LedgerAmount;
use crate::time::{Ttl, When};
use leasehold_model::{CreditSource, PrepaidAction, PrepaidState};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// What is left of prepaid credit, as text with up to nine decimals; negative where more was used than was paid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FundsText(pub String);

impl fmt::Display for FundsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for FundsText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Funds".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^-?[0-9]{1,28}(\\.[0-9]{1,9})?$",
            "description": "What is left, with up to nine decimals; negative where more was used than was paid.",
            "examples": ["3.75"],
        })
    }
}

/// When prepaid credit is low, and what happens when it comes to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrepaidPolicy {
    /// It is low when less than this is left.
    pub low_below: LedgerAmount,
    /// It is pending when what is held now would use it up within this time; `0s` for never.
    pub window: Ttl,
    /// What happens while it is low.
    pub low: PrepaidAction,
    /// What happens while it is pending.
    pub pending: PrepaidAction,
    /// What happens when nothing is left. With `block` or `drain`, all work must be covered.
    pub depleted: PrepaidAction,
    /// Time that leases have when they are revoked. Absent for the grace of their pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Ttl>,
}

/// A credit with what is left of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrepaidCredit {
    /// Number within the account.
    pub credit: u64,
    /// Amount that was added.
    pub amount: LedgerAmount,
    /// What is left of it.
    pub left: FundsText,
    /// Credits of a lower number are used first.
    pub priority: u32,
    /// What is not spent by then lapses. Absent if it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<When>,
}

/// The prepaid credit of a tenant or a project in one currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrepaidAccount {
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Name of the project. Absent if the credit is the tenant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Number of the project. Absent if the credit is the tenant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<u32>,
    /// Currency code of three capital letters.
    pub currency: String,
    /// Whether there is enough.
    pub state: PrepaidState,
    /// What happens in this state.
    pub action: PrepaidAction,
    /// All credit that was ever added.
    pub credited: LedgerAmount,
    /// What lapsed of it.
    pub lapsed: LedgerAmount,
    /// What was posted, and what was used since the last posting.
    pub spent: FundsText,
    /// Cost of what is held, from now to its deadlines.
    pub reserved: FundsText,
    /// What is left, without what is reserved.
    pub balance: FundsText,
    /// What new work may cost.
    pub available: FundsText,
    /// When it is low, and what happens then.
    pub policy: PrepaidPolicy,
    /// Credits that are not used up, in the order of their use.
    pub credits: Vec<PrepaidCredit>,
}

/// One page of accounts with prepaid credit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrepaidList {
    /// The accounts, by tenant, then by project.
    pub accounts: Vec<PrepaidAccount>,
    /// Cursor of the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Adds prepaid credit. The same reference with the same figures returns the first answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTopUp {
    /// Tenant: name or number. The tenant of the project or of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project: name or number. The credit is the tenant's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Currency code of three capital letters. That of the default prices unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Amount, without tax; above zero.
    pub amount: LedgerAmount,
    /// Credits of a lower number are used first. 0 unless given.
    #[serde(default)]
    pub priority: u32,
    /// What is not spent by then lapses. It does not expire unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<When>,
    /// Whether it was paid for or is a gift. `paid` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CreditSource>,
    /// Reference, such as that of the order; unique within the account.
    pub reference: String,
}

/// Sets when prepaid credit is low, and what happens then. What is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrepaidPolicyChange {
    /// Tenant: name or number. The tenant of the project or of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project: name or number. The credit is the tenant's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Currency code of three capital letters. That of the default prices unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// It is low when less than this is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_below: Option<Money>,
    /// It is pending when what is held now would use it up within this time; `0s` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Ttl>,
    /// What happens while it is low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<PrepaidAction>,
    /// What happens while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PrepaidAction>,
    /// What happens when nothing is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depleted: Option<PrepaidAction>,
    /// Time that leases have when they are revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Ttl>,
}

/// Ends a credit: what is not spent of it lapses now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreditEnd {
    /// Tenant: name or number. The tenant of the project or of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project: name or number. The credit is the tenant's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Currency code of three capital letters. That of the default prices unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Number of the credit.
    pub credit: u64,
}

/// An account after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrepaidPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The account as it is now.
    pub account: PrepaidAccount,
}
