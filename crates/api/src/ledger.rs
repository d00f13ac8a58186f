//! The ledger: its entries, balances and drafts, corrections and disputes.

use crate::books::Stretch;
use crate::rate::Decimal;
use crate::sharing::CostShare;
use crate::time::When;
use leasehold_model::{AccountKind, ControlPlaneScope, EntryKind, OperatingMode, Priority, RuntimeBackend};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// An amount of the ledger as text, with six decimals; negative for what is given back. It is parsed by the handler, so
/// that an error can name the field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerAmount(pub String);

impl fmt::Display for LedgerAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for LedgerAmount {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "LedgerAmount".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^-?[0-9]{1,28}(\\.[0-9]{1,6})?$",
            "description": "An amount with up to six decimals; negative for what is given back.",
            "examples": ["12.500000"],
        })
    }
}

/// A month in UTC as text, such as `2026-11`. It is parsed by the handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MonthText(pub String);

impl fmt::Display for MonthText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for MonthText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Month".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])$",
            "description": "A month in UTC.",
            "examples": ["2026-11"],
        })
    }
}

/// The state of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerStatus {
    /// Whether the ledger is open, so that usage is posted.
    pub open: bool,
    /// Usage is posted from this hour on; null if the ledger is not open.
    pub opened_from: Option<When>,
    /// Usage before this instant is posted; null if the ledger is not open.
    pub settled_through: Option<When>,
    /// Number of hours that are over and not settled yet.
    pub hours_unsettled: u64,
    /// Whether an hour has been over for more than five minutes and is not settled.
    pub lagging: bool,
    /// Why hours that are over are not settled; null if nothing is wrong, or if the caller does not see all tenants.
    pub trouble: Option<String>,
    /// First month that is not closed; null if the ledger is not open.
    pub first_open_month: Option<MonthText>,
    /// Month that is being closed; null if there is none.
    pub closing_month: Option<MonthText>,
    /// Number of entries; null if the caller does not see all tenants.
    pub entries: Option<u64>,
    /// Number of entries that are disputed, of those that the caller sees.
    pub disputes: u64,
    /// Entries that changed a line after it had been corrected by hand, of those that the caller sees: the newest
    /// hundred. Somebody should look at both.
    pub changed_after_correction: Vec<String>,
    /// Instant as of which this is the state.
    pub as_of: When,
    /// Number of records that the state is computed from.
    pub as_of_size: u64,
}

/// Opens the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenLedger {
    /// Start of the first hour whose usage is posted. The present hour unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
}

/// The ledger was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerOpened {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// Usage is posted from this hour on.
    pub from: When,
}

/// Hours were settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerSettled {
    /// Number of hours that were settled while the request was served.
    pub hours: u64,
    /// Usage before this instant is posted.
    pub settled_through: When,
    /// Number of hours that are over and could not be settled.
    pub hours_unsettled: u64,
    /// Number of entries after the settlement.
    pub entries: u64,
}

/// Usage of one hour on one line: everything that lines tell apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerLine {
    /// Start of the hour in which it was used.
    pub hour: When,
    /// Name of the project that held it.
    pub project: String,
    /// Number of that project.
    pub project_id: u32,
    /// Name of the pool; null for a usage unit.
    pub pool: Option<String>,
    /// Number of the pool; null for a usage unit.
    pub pool_id: Option<u32>,
    /// Name of the resource class; null for a usage unit.
    pub class: Option<String>,
    /// Number of the class; null for a usage unit.
    pub class_id: Option<u16>,
    /// Name of the usage unit that an app reported; null for a class.
    pub usage_unit: Option<String>,
    /// Unit of the class, such as GPU, or the usage unit.
    pub unit: String,
    /// Priority of the leases; null for a usage unit.
    pub priority: Option<Priority>,
    /// Priority by whose price it is charged; null for a usage unit.
    pub priced_as: Option<Priority>,
    /// Accounting tag; null if there is none.
    pub accounting_tag: Option<String>,
    /// Name of the app instance; null if there is none.
    pub app_instance: Option<String>,
    /// Slug of the app. Absent if there is no app instance, or it was used before there was a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_slug: Option<String>,
    /// Operating mode of the app instance. Absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operating_mode: Option<OperatingMode>,
    /// Scope of the control plane of the app instance. Absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_scope: Option<ControlPlaneScope>,
    /// Backend of the app instance. Absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_backend: Option<RuntimeBackend>,
    /// Number of the attachment that lends the capacity; null if there is none.
    pub attachment: Option<u64>,
    /// Whether it runs the control plane of an app instance.
    pub control_plane: bool,
    /// Number of the rate card; null for the built-in prices, and for a usage unit.
    pub rate_card: Option<u32>,
    /// Number of the price of the usage unit; null for a class.
    pub unit_price: Option<u32>,
    /// Units times hours, with nine decimals; negative where less was used than posted before. Null for a usage unit.
    pub unit_hours: Option<String>,
    /// Quantity of the usage unit; negative where less was used than posted before. Null for a class.
    pub quantity: Option<String>,
    /// Exact cost as a fraction of the currency.
    pub exact: String,
}

/// One side of an entry. A positive amount is a debit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerLeg {
    /// Kind of the account.
    pub account: AccountKind,
    /// Tenant whose account it is. Absent if it is not the account of a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project whose account it is. Absent if it is not the account of a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Class whose revenue it is. Absent if it is not that of a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Usage unit whose revenue it is. Absent if it is not that of a usage unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_unit: Option<String>,
    /// App instance whose cost is shared. Absent if it is not the account of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// Amount; the amounts of an entry sum to zero.
    pub amount: LedgerAmount,
}

/// An entry of the ledger: amounts on accounts that sum to zero. Entries never change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntry {
    /// ID of the entry: `entry-`, the sequence number of its record, and its position in it.
    pub id: String,
    /// ID of 128 bits, accepted wherever an entry is named.
    pub uid: String,
    /// What it is.
    pub kind: EntryKind,
    /// When it was booked.
    pub at: When,
    /// Sequence number of the record that contains it.
    pub sequence: u64,
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Name of the project that pays; null for tax, rounding and payments of a tenant.
    pub project: Option<String>,
    /// Number of that project.
    pub project_id: Option<u32>,
    /// Currency code of three capital letters.
    pub currency: String,
    /// Change of what the payer owes.
    pub amount: LedgerAmount,
    /// Month in which it is booked; null for payments.
    pub month: Option<MonthText>,
    /// Month that it is about; null for payments.
    pub original_month: Option<MonthText>,
    /// Amounts on accounts; they sum to zero.
    pub legs: Vec<LedgerLeg>,
    /// Usage that it comes from; null if it does not come from usage.
    pub line: Option<LedgerLine>,
    /// ID of the entry that it corrects. Absent if it corrects none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrects: Option<String>,
    /// ID of the reversal that takes it back. Absent if it was not corrected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected_by: Option<String>,
    /// Reason that was given for it. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of its invoice. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invoice: Option<String>,
    /// Reference of the payment. Absent unless it is a payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Number of records that a posting was computed from. Absent unless it is usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of_size: Option<u64>,
    /// Idempotency key of the request that booked it. Absent if the request had none, if the daemon booked it by itself,
    /// as it does with usage and invoices, or if the key is not printable text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The same key in hexadecimal digits, if it is not printable text. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key_hex: Option<String>,
    /// Whether the entry is disputed.
    pub disputed: bool,
}

/// One page of entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntryList {
    /// Entries in the order in which they were booked.
    pub entries: Vec<LedgerEntry>,
    /// Pass as `cursor` to get the next page. Absent on the last page. A page can have fewer entries than its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A line that is rated and not posted yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DraftLine {
    /// The usage and its exact cost.
    #[serde(flatten)]
    pub line: LedgerLine,
    /// Amount that would be posted now.
    pub amount: LedgerAmount,
}

/// What one payer would be posted now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DraftPayer {
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Name of the project that pays.
    pub payer: String,
    /// Number of that project.
    pub payer_id: u32,
    /// Currency code of three capital letters.
    pub currency: String,
    /// Sum of the lines.
    pub amount: LedgerAmount,
    /// Lines in the order in which they would be posted.
    pub lines: Vec<DraftLine>,
}

/// A sum in one currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerTotal {
    /// Currency code of three capital letters.
    pub currency: String,
    /// The sum.
    pub amount: LedgerAmount,
}

/// Usage that is rated and not posted: the running hour, and what has changed in earlier hours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerDraft {
    /// Usage before this instant is posted, as far as it was known then.
    pub settled_through: When,
    /// Usage before this instant is in the draft.
    pub as_of: When,
    /// Number of records that it is computed from.
    pub as_of_size: u64,
    /// What each payer would be posted.
    pub payers: Vec<DraftPayer>,
    /// Sums by currency.
    pub totals: Vec<LedgerTotal>,
}

/// The balance of an account in one currency, derived from its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerBalance {
    /// Kind of the account.
    pub account: AccountKind,
    /// Name of the tenant whose account it is; null for an account of the platform.
    pub tenant: Option<String>,
    /// Number of that tenant.
    pub tenant_id: Option<u32>,
    /// Name of the project whose account it is; null if it is not the account of a project.
    pub project: Option<String>,
    /// Number of that project.
    pub project_id: Option<u32>,
    /// Name of the class whose revenue it is; null if it is not that of a class.
    pub class: Option<String>,
    /// Name of the usage unit whose revenue it is; null if it is not that of a usage unit.
    pub usage_unit: Option<String>,
    /// Name of the app instance whose cost is shared; null if it is not the account of one.
    pub app_instance: Option<String>,
    /// Currency code of three capital letters.
    pub currency: String,
    /// Sum of all amounts on the account; positive if debits exceed credits.
    pub balance: LedgerAmount,
}

/// One page of balances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerBalanceList {
    /// Number of records that the balances are derived from.
    pub as_of_size: u64,
    /// Balances in order of account and currency.
    pub balances: Vec<LedgerBalance>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One side of an entry that is booked by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLeg {
    /// Kind of the account: receivable, adjustments, revenue, rounding or operator_loss. Receivable and adjustments are
    /// those of the project.
    pub account: AccountKind,
    /// Class of a revenue account: name or number. Only with the account revenue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Usage unit of a revenue account. Only with the account revenue, instead of a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_unit: Option<String>,
    /// Amount; positive for a debit. A debit of the receivable makes the project owe more.
    pub amount: LedgerAmount,
}

/// Books an entry by hand, in the first open month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLedgerEntry {
    /// Project that it concerns: name (with `tenant`) or number.
    pub project: String,
    /// Tenant of the project: name or number. Needed if several tenants have a project of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Currency code of three capital letters.
    pub currency: String,
    /// Month that it is about. The first open month unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_month: Option<MonthText>,
    /// Amounts on accounts; they must sum to zero.
    pub legs: Vec<NewLeg>,
    /// Reason, as shown in the ledger and to the tenant.
    pub reason: String,
}

/// An entry that was booked or marked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntryPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The entry as it is now.
    pub entry: LedgerEntry,
}

/// Corrects an entry: it is reversed and, if an amount is given, replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCorrection {
    /// ID of the entry.
    pub entry: String,
    /// Right amount, which takes the place of the wrong one. The entry is only reversed unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<LedgerAmount>,
    /// Reason, as shown in the ledger and to the tenant.
    pub reason: String,
}

/// A correction that was booked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectionPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// ID of the entry that was corrected.
    pub corrects: String,
    /// Change of what the payer owes by the correction as a whole.
    pub change: LedgerAmount,
    /// The reversal, the replacement if there is one, and rounding if it was needed.
    pub entries: Vec<LedgerEntry>,
}

/// Marks an entry as disputed, or closes its dispute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDispute {
    /// ID of the entry.
    pub entry: String,
    /// Reason of the dispute, or how it was resolved.
    pub reason: String,
}

/// The price of the usage of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedPrice {
    /// Number of the rate card; null for the built-in prices.
    pub rate_card: Option<u32>,
    /// Price of one unit, such as `2/h`: per second, or with `/h` per hour and with `/d` per day.
    pub price: String,
    /// Factor of the tier; 1 if the tier has none.
    pub tier_factor: String,
    /// Factor of the priority.
    pub priority_factor: String,
    /// Currency code of three capital letters.
    pub currency: String,
}

/// A lease behind the usage of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedLease {
    /// ID of the lease.
    pub lease: String,
    /// Name of the node. Absent unless the caller may see nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Part of the lease in the hour, while the price of the entry was in force.
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Quantity that was held, in units.
    pub quantity: String,
    /// Quantity that was held, in quanta.
    pub quanta: u64,
    /// Seconds that were held, with nine decimals.
    pub seconds: String,
    /// Seconds of these that the charge policy does not charge, with nine decimals.
    pub forgiven_seconds: String,
    /// Number of the charge policy that does not charge them, which was in force when the lease ended. Absent if all of
    /// them are charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge_policy: Option<u32>,
    /// How the lease ended; `held` if it has not.
    pub end: String,
    /// Units times hours that are charged, with nine decimals.
    pub unit_hours: String,
}

/// The price of a usage unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedUnitPrice {
    /// Number of the price.
    pub number: u32,
    /// Price of one unit.
    pub price: Decimal,
    /// Currency code of three capital letters.
    pub currency: String,
}

/// A usage record behind a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedUsage {
    /// Sequence number of the record.
    pub sequence: u64,
    /// Who reported it.
    pub source: String,
    /// ID by which it was reported.
    pub id: String,
    /// The time that the whole record covers.
    pub stretch: Stretch,
    /// Quantity of the whole record.
    pub quantity: String,
    /// ID of the record that it supersedes, whose quantity it takes back; null if it supersedes none.
    pub supersedes: Option<String>,
}

/// Where the amount of an entry comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerExplanation {
    /// The entry.
    pub entry: LedgerEntry,
    /// Hour of the usage; null if the entry does not come from usage.
    pub hour: Option<Stretch>,
    /// Price of the usage; null if the entry does not come from usage.
    pub price: Option<ExplainedPrice>,
    /// Price of the usage unit; null if the entry does not come from reported usage.
    pub unit_price: Option<ExplainedUnitPrice>,
    /// Usage records behind the line, up to 1000.
    pub usage_records: Vec<ExplainedUsage>,
    /// Whether there are more usage records.
    pub more_usage_records: bool,
    /// Leases behind the usage, as they are known now, up to 1000.
    pub leases: Vec<ExplainedLease>,
    /// Whether there are more leases.
    pub more_leases: bool,
    /// Numbers of the charge policies that were in force when these leases ended, or are in force now for those that are
    /// held. A line can have several. Empty if there was none, so that all held time is charged.
    pub charge_policies: Vec<u32>,
    /// Units times hours that are charged for these leases, with nine decimals.
    pub lease_unit_hours: String,
    /// Units times hours of the line that these leases do not explain: idle capacity of claimed nodes, what was posted
    /// for the hour before, or what has changed since.
    pub other_unit_hours: String,
    /// The computation, step by step.
    pub arithmetic: Vec<String>,
    /// Exact amount as a fraction of the currency; null if the entry does not come from usage.
    pub exact: Option<String>,
    /// What the share comes from; null if the entry is not a share of the cost of a control plane.
    pub share: Option<CostShare>,
    /// Corrections that followed, and what they corrected, in order.
    pub corrections: Vec<LedgerEntry>,
}
