//! Months of the ledger, invoices, payments and tax rates.

use crate::ledger::{LedgerAmount, MonthText};
use crate::rate::Decimal;
use crate::time::When;
use leasehold_model::{InvoiceStatus, PeriodState, Priority};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A month of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Period {
    /// The month.
    pub month: MonthText,
    /// Its first instant.
    pub from: When,
    /// The first instant after it.
    pub to: When,
    /// Whether it is closed.
    pub state: PeriodState,
    /// When it was closed; null if it is not.
    pub closed_at: Option<When>,
    /// Number of its invoices and credit notes that are issued, of those that the caller sees.
    pub invoices_issued: u64,
    /// Number of its invoices and credit notes that are still to be issued, of those that the caller sees.
    pub invoices_due: u64,
    /// Number of tenants that can prove their invoices by a sealed statement, of those that the caller sees.
    #[serde(default)]
    pub statements: u64,
}

/// The months of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeriodList {
    /// Months in order, up to the present one.
    pub periods: Vec<Period>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Something that has to happen before a month can be closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeriodMissing {
    /// Code of the problem that closing the month would be answered with.
    pub code: String,
    /// What is missing.
    pub detail: String,
}

/// The sum of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvoiceTotal {
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Currency code of three capital letters.
    pub currency: String,
    /// Number of lines.
    pub lines: u64,
    /// Sum of the lines.
    pub posted: LedgerAmount,
    /// That, rounded to the decimals of the currency.
    pub net: LedgerAmount,
    /// Tax on the net.
    pub tax: LedgerAmount,
    /// Net and tax.
    pub total: LedgerAmount,
}

/// A month of the ledger, and what is missing before it can be closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeriodDetail {
    /// The month.
    #[serde(flatten)]
    pub period: Period,
    /// Usage before this instant is posted.
    pub settled_through: When,
    /// Number of hours of the month that are not settled.
    pub hours_unsettled: u64,
    /// Whether closing the month now would be accepted.
    pub can_close: bool,
    /// What has to happen before the month can be closed.
    pub missing: Vec<PeriodMissing>,
    /// IDs of disputed entries of the month, of those that the caller sees, up to 1000. A dispute does not stop a close.
    pub disputes: Vec<String>,
    /// Number of reports of usage that entitlements refused in the month, of those that the caller sees, up to 1000. They
    /// are listed by `GET /api/v1/refused-usage`.
    pub refused_usage: u64,
    /// Invoices that the month would have now.
    pub drafts: Vec<InvoiceTotal>,
    /// Number of records that this is computed from.
    pub as_of_size: u64,
}

/// A month that is being closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeriodClosing {
    /// Sequence number of the record that began to close it: what was recorded before belongs to the month.
    pub sequence: u64,
    /// The month. Its state becomes `closed` when all invoices are issued.
    pub period: Period,
}

/// Whether an invoice asks for money or gives it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InvoiceKind {
    /// The net is not negative.
    Invoice,
    /// The net is negative.
    CreditNote,
}

/// The issuer of invoices, as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Issuer {
    /// Name of the issuer; null if none is configured.
    pub name: Option<String>,
    /// Address, line by line.
    pub address: Vec<String>,
    /// Number with the tax authority; null if none is configured.
    pub tax_id: Option<String>,
    /// Bank account, line by line.
    pub bank: Vec<String>,
}

/// What a line of an invoice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InvoiceSection {
    /// Usage of the month by workloads.
    Workload,
    /// Usage of the month by control planes of app instances.
    ControlPlane,
    /// Shares of what control planes cost: what is borne for others, and what others bear.
    Share,
    /// Corrections, entries by hand, and changes of closed months.
    Adjustment,
}

/// One line of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvoiceLine {
    /// What it is about.
    pub section: InvoiceSection,
    /// Month of the usage; before that of the invoice for changes of closed months.
    pub month: MonthText,
    /// Name of the project that pays.
    pub project: String,
    /// Number of that project.
    pub project_id: u32,
    /// Name of the project that held the capacity.
    pub held_by: String,
    /// Whether it comes from a correction or an entry by hand.
    pub correction: bool,
    /// Name of the pool; null for entries by hand.
    pub pool: Option<String>,
    /// Name of the resource class; null for entries by hand.
    pub class: Option<String>,
    /// Name of the usage unit that an app reported; null for everything else.
    pub usage_unit: Option<String>,
    /// Unit of the class, such as GPU, or the usage unit; null for entries by hand.
    pub unit: Option<String>,
    /// Priority of the leases; null for entries by hand.
    pub priority: Option<Priority>,
    /// Name of the app instance; null if there is none.
    pub app_instance: Option<String>,
    /// Whether it runs the control plane of an app instance.
    pub control_plane: bool,
    /// Units times hours, with six decimals; null for usage units and entries by hand.
    pub unit_hours: Option<String>,
    /// Quantity of the usage unit; null for everything else.
    pub quantity: Option<String>,
    /// Amount.
    pub amount: LedgerAmount,
}

/// The tax on the part of an invoice with one rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvoiceTax {
    /// Rate as a factor: 0.19 is 19 %.
    pub rate: Decimal,
    /// Sum of the lines with this rate.
    pub posted: LedgerAmount,
    /// That, rounded to the decimals of the currency.
    pub net: LedgerAmount,
    /// Tax on the net.
    pub tax: LedgerAmount,
}

/// The figures of an invoice, or of the draft of one. Lines, rounding and tax add up to the total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvoiceFigures {
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Address of the tenant, line by line, as it is now.
    pub billing_address: Vec<String>,
    /// Number of the tenant with the tax authority, as it is now; null if none is set.
    pub tax_id: Option<String>,
    /// The issuer, as configured now.
    pub issuer: Issuer,
    /// Month that it is for.
    pub month: MonthText,
    /// Currency code of three capital letters.
    pub currency: String,
    /// Lines by month, project, pool, class, priority and app instance.
    pub lines: Vec<InvoiceLine>,
    /// Sum of the lines of workloads.
    pub workload: LedgerAmount,
    /// Sum of the lines of control planes.
    pub control_plane: LedgerAmount,
    /// Sum of the shares of what control planes cost.
    pub shares: LedgerAmount,
    /// Sum of the adjustments.
    pub adjustments: LedgerAmount,
    /// Sum of all lines.
    pub posted: LedgerAmount,
    /// Difference between the sum of all lines and the net.
    pub rounding: LedgerAmount,
    /// Sum of all lines, rounded to the decimals of the currency for each tax rate.
    pub net: LedgerAmount,
    /// Tax by rate.
    pub taxes: Vec<InvoiceTax>,
    /// Sum of the taxes.
    pub tax: LedgerAmount,
    /// Net and tax: what has to be paid, or is given back if it is negative.
    pub total: LedgerAmount,
}

/// An invoice or a credit note, without its lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvoiceHead {
    /// Number, such as `INV-000012` or `CN-000003`.
    pub number: String,
    /// Whether it is an invoice or a credit note.
    pub kind: InvoiceKind,
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Month that it is for.
    pub month: MonthText,
    /// Currency code of three capital letters.
    pub currency: String,
    /// What has to be paid, or is given back if it is negative.
    pub total: LedgerAmount,
    /// What is still owed.
    pub owed: LedgerAmount,
    /// Whether it is paid.
    pub status: InvoiceStatus,
    /// When it was issued.
    pub issued_at: When,
    /// When it is due.
    pub due_at: When,
    /// Sequence number of its record.
    pub sequence: u64,
}

/// One page of invoices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvoiceList {
    /// Invoices in the order in which they were issued.
    pub invoices: Vec<InvoiceHead>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An invoice or a credit note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Invoice {
    /// Number, such as `INV-000012` or `CN-000003`.
    pub number: String,
    /// Whether it is an invoice or a credit note.
    pub kind: InvoiceKind,
    /// When it was issued.
    pub issued_at: When,
    /// When it is due.
    pub due_at: When,
    /// What prepaid credit pays of it. Absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepaid: Option<LedgerAmount>,
    /// What is still owed.
    pub owed: LedgerAmount,
    /// Whether it is paid.
    pub status: InvoiceStatus,
    /// Sequence number of its record.
    pub sequence: u64,
    /// Tenant, lines and sums.
    #[serde(flatten)]
    pub figures: InvoiceFigures,
}

/// What the invoices of an open month would be now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvoiceDrafts {
    /// Usage before this instant is posted and in the drafts.
    pub settled_through: When,
    /// Number of records that they are computed from.
    pub as_of_size: u64,
    /// One draft for each currency.
    pub drafts: Vec<InvoiceFigures>,
}

/// A payment that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Payment {
    /// Sequence number of its record.
    pub sequence: u64,
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Currency code of three capital letters.
    pub currency: String,
    /// Amount; negative if it was paid back.
    pub amount: LedgerAmount,
    /// Number of the invoice that it is for; null if the payer named none.
    pub invoice: Option<String>,
    /// Reference; unique for the tenant.
    pub reference: String,
    /// When it was received.
    pub received_at: When,
    /// When it was recorded.
    pub recorded_at: When,
}

/// Records a payment. The same reference with the same payment returns the first answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPayment {
    /// Tenant that paid: name or number. The tenant of the invoice unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Amount; negative if it was paid back.
    pub amount: LedgerAmount,
    /// Currency code of three capital letters. The currency of the invoice unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Number of the invoice that it is for. Without one, it is for the oldest invoices that are not paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invoice: Option<String>,
    /// Reference, such as that of the bank; unique for the tenant.
    pub reference: String,
    /// When it was received. Now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_at: Option<When>,
}

/// A payment that was recorded, now or before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The payment.
    pub payment: Payment,
    /// What the tenant still owes in this currency; negative if it has credit.
    pub owed: LedgerAmount,
}

/// One page of payments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentList {
    /// Payments in the order in which they were recorded.
    pub payments: Vec<Payment>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A tax rate that applies from a month on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DatedTaxRate {
    /// First month in which it applies.
    pub from: MonthText,
    /// Rate as a factor: 0.19 is 19 %.
    pub rate: Decimal,
}

/// The tax rates of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaxRates {
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Rate of the present month as a factor; 0 if none is set.
    pub rate: Decimal,
    /// All rates that were set, by the month from which they apply.
    pub rates: Vec<DatedTaxRate>,
}

/// Sets the tax rate of a tenant from a month on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaxRateChange {
    /// Rate as a factor: 0.19 is 19 %. At most 1.
    pub rate: Decimal,
    /// First month in which it applies; not closed. The present month unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<MonthText>,
}

/// A tax rate that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaxRatePut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The tax rates as they are now.
    pub tax: TaxRates,
}
