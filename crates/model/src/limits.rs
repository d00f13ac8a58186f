//! All limits of the core (ARCHITECTURE, invariant 7). `docs/reference/limits.md` lists them for users.

use crate::ceiling::Amount;
use crate::instant::Span;
use crate::ledger::Steps;
use crate::rate::{BILLION, Decimal};
use crate::usage::UnitQuantity;

/// Bytes of a name, tag, label or workload.
pub const NAME_BYTES_MAX: usize = 128;
/// Bytes of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 64;
/// Idempotency keys of one tenant that are remembered for longer than [`IDEMPOTENCY_SURE`].
pub const IDEMPOTENCY_KEYS_PER_TENANT_MAX: u32 = 1_000_000;
/// Idempotency keys that one tenant can use within [`IDEMPOTENCY_SURE`].
pub const IDEMPOTENCY_KEYS_SURE_MAX: u32 = 10_000_000;
/// How long every idempotency key is remembered; the shortest `idempotency_window`.
pub const IDEMPOTENCY_SURE: Span = Span::from_secs(600);
/// Leases in one record, and in one command.
pub const LEASES_PER_RECORD_MAX: usize = 1024;
/// Classes in one request.
pub const CLASSES_PER_REQUEST_MAX: usize = 16;
/// Leases of one allocation; one record can contain all of them.
pub const ALLOCATION_LEASES_MAX: usize = LEASES_PER_RECORD_MAX;
/// Reservations that one decision can take over.
pub const RESERVATIONS_TAKEN_MAX: usize = 1024;
/// Labels that one allocation can require.
pub const LABELS_PER_ALLOCATION_MAX: usize = 16;
/// Waiting allocations of a tenant that has no own limit.
pub const PENDING_PER_TENANT_MAX: u64 = 100_000;
/// Waiting allocations of all tenants.
pub const PENDING_MAX: usize = 1_000_000;
/// The longest window of a budget, in days.
pub const BUDGET_DAYS_MAX: u32 = 366;
/// The most GPU or node hours of a budget.
pub const BUDGET_HOURS_MAX: u64 = 1_000_000_000_000;
/// Maintenance windows that have not ended.
pub const WINDOWS_MAX: usize = 1024;
/// Nodes that one command can claim, release or reserve for maintenance.
pub const NODES_PER_CLAIM_MAX: usize = 256;
/// How long the wipe of a released node may take before the node is quarantined.
pub const WIPE_DEADLINE: Span = Span::from_secs(30 * 60);
/// Devices of one class on one node; a grant records them as a 64-bit set.
pub const DEVICES_PER_CLASS_MAX: u64 = 64;
/// Quanta of one class on one node. A century of quanta × nanoseconds fits into 128 bits.
pub const QUANTA_PER_NODE_MAX: u64 = 1 << 48;
/// Quanta of a billing unit.
pub const QUANTA_PER_UNIT_MAX: u64 = 1 << 32;
/// The longest TTL and lifetime that can be configured.
pub const TTL_MAX: Span = Span::from_secs(366 * 86_400);
/// The longest grace, teardown, wipe or heartbeat limit.
pub const LIMIT_SPAN_MAX: Span = Span::from_secs(7 * 86_400);
/// The shortest half-life of a node's heat.
pub const HEAT_HALF_LIFE_MIN: Span = Span::from_secs(1);
/// Labels of a node, and of a request.
pub const LABELS_PER_NODE_MAX: usize = 64;
/// Classes of a node.
pub const CLASSES_PER_NODE_MAX: usize = 64;
/// Quotas of one tenant.
pub const QUOTAS_PER_TENANT_MAX: usize = 256;
/// Valid tokens of one tenant.
pub const TOKENS_PER_TENANT_MAX: u32 = 10_000;
/// Valid tokens in all.
pub const TOKENS_MAX: u32 = 100_000;
/// App instances in the scope of one token.
pub const APP_INSTANCES_PER_TOKEN_MAX: usize = 64;
/// Bytes of one encoded record, without signatures.
pub const RECORD_BYTES_MAX: usize = 256 * 1024;
/// Signatures of one record.
pub const SIGNERS_MAX: usize = 2;
/// Records in one batch (one write, one fsync).
pub const BATCH_RECORDS_MAX: u32 = 1 << 16;
/// Bytes of one batch.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Classes, and tiers, in one rate card.
pub const RATE_LINES_MAX: usize = 1024;
/// The highest price of a unit-second.
pub const RATE_MAX: Decimal = Decimal(1_000_000 * BILLION);
/// The highest factor on a price.
pub const FACTOR_MAX: Decimal = Decimal(1000 * BILLION);
/// Rate cards, and charge policies, that have not taken effect yet.
pub const CARDS_WAITING_MAX: usize = 64;
/// Cost ceilings of one tenant.
pub const CEILINGS_PER_TENANT_MAX: usize = 1000;
/// The highest cost ceiling.
pub const CEILING_AMOUNT_MAX: Amount = Amount(1_000_000_000_000_000 * BILLION as u128);
/// The highest cost that is computed for one lease: above every ceiling, but low enough that the sum over all live
/// leases can be encoded.
pub const LEASE_COST_MAX: Amount = Amount(1 << 88);
/// Lines in one part of a posting: deciding one part must not delay other requests.
pub const LEDGER_LINES_MAX: usize = 256;
/// Legs of an entry that is booked by hand.
pub const LEDGER_LEGS_MAX: usize = 16;
/// The highest tax rate, as a factor.
pub const TAX_RATE_MAX: Decimal = Decimal(BILLION);
/// Credits of one account that are not used up.
pub const PREPAID_CREDITS_MAX: usize = 1000;
/// The highest prepaid credit, and the highest threshold of a policy.
pub const PREPAID_AMOUNT_MAX: Steps = Steps(1_000_000_000_000_000 * 1_000_000);
/// The longest window of a policy.
pub const PREPAID_WINDOW_MAX: Span = Span::from_secs(366 * 86_400);
/// Usage units that a site defines.
pub const USAGE_UNITS_MAX: usize = 1000;
/// Usage units of one kind of app.
pub const UNITS_PER_APP_TYPE_MAX: usize = 64;
/// Kinds of apps.
pub const APP_TYPES_MAX: usize = 1000;
/// App instances of one tenant.
pub const APP_INSTANCES_PER_TENANT_MAX: usize = 10_000;
/// Attachments of one tenant that have not ended.
pub const ATTACHMENTS_PER_TENANT_MAX: usize = 10_000;
/// The highest price of a usage unit.
pub const UNIT_PRICE_MAX: Decimal = Decimal(1_000_000 * BILLION);
/// The largest quantity of a usage record: 10^12 units.
pub const USAGE_QUANTITY_MAX: UnitQuantity = UnitQuantity(1_000_000_000_000 * BILLION as u128);
/// The most of a usage unit that one project uses of one app instance in a month: 10^15 units.
pub const USAGE_PER_MONTH_MAX: u128 = 1_000_000_000_000_000 * BILLION as u128;
/// The time that a usage record covers.
pub const USAGE_SPAN_MAX: Span = Span::from_secs(366 * 86_400);
/// How long a usage record is accepted after its end, and its ID is remembered.
pub const LATE_WINDOW: Span = Span::from_secs(35 * 86_400);
/// The IDs of usage records that the engine remembers. Older ones are known to the books.
pub const RECENT_USAGE_IDS: usize = 1_000_000;
/// Entitlements of a tenant.
pub const ENTITLEMENTS_PER_TENANT_MAX: usize = 10_000;
/// Refused usage that the engine remembers, so that it is sealed once however often it is sent.
pub const REFUSED_USAGE_MAX: usize = 10_000;
/// Projects that a sharing policy names.
pub const SHARING_PROJECTS_MAX: usize = 1000;
/// Service tiers of a sharing policy.
pub const SERVICE_TIERS_MAX: usize = 50;
/// Usage records that are recorded together, all or none.
pub const USAGE_RECORDS_TOGETHER_MAX: usize = 1000;
/// The records after which the amounts of a posting are out of date.
pub const POSTING_RECORDS_MAX: u64 = 500_000;
/// Webhooks of one tenant, and of the operator.
pub const SINKS_PER_OWNER_MAX: usize = 50;
/// Webhooks of all.
pub const SINKS_MAX: usize = 1000;
/// Types of events, or families of them, that a webhook names.
pub const SINK_EVENTS_MAX: usize = 64;
/// Bytes of an address on the web.
pub const WEB_ADDRESS_BYTES_MAX: usize = 2048;
/// Lines of a postal address.
pub const ADDRESS_LINES_MAX: usize = 8;
