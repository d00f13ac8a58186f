//! The fields of record bodies: the type and the description of each.

use super::parts;
use serde_json::{Map, Value, json};

/// How a field is written.
pub(super) enum Of {
    /// The name under the field's own name, and the number under `…_id`. Either may be null.
    Named(&'static str),
    /// The instant in RFC 3339, and under `…_ns` its nanoseconds.
    Instant(&'static str),
    MaybeInstant(&'static str),
    /// The length of time as text, and under `…_ns` its nanoseconds.
    Span(&'static str),
    MaybeSpan(&'static str),
    /// A value of this schema.
    Plain(&'static str, Value),
    /// Several fields in its place.
    Several(&'static [&'static str]),
}

use Of::{Instant, MaybeInstant, MaybeSpan, Named, Plain, Several, Span};

/// A count is a number, and a string of digits above 2^53 - 1.
fn count() -> Value {
    json!({ "type": ["integer", "string"] })
}
fn maybe_count() -> Value {
    json!({ "type": ["integer", "string", "null"] })
}
fn number() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}
fn maybe_number() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0 })
}
fn text() -> Value {
    json!({ "type": "string" })
}
fn maybe_text() -> Value {
    json!({ "type": ["string", "null"] })
}
fn flag() -> Value {
    json!({ "type": "boolean" })
}
fn maybe_lines() -> Value {
    json!({ "type": ["array", "null"], "items": { "type": "string" } })
}
fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}
fn decimals() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}
fn lease() -> Value {
    json!({ "type": "string", "pattern": "^lease-[0-9]+$" })
}

/// The row of a field.
pub(super) fn row(name: &str) -> Of {
    match name {
        "tenant" => Named("tenant"),
        "project" => Named("project"),
        "source_project" => Named("project that pays, if it is another one"),
        "user" => Named("user"),
        "pool" => Named("pool"),
        "node" => Named("node"),
        "class" => Named("resource class"),
        "token" => Named("token"),
        "app_instance" => Named("app instance"),
        "app" => Named("app"),
        "creditor" => Named("project that is credited with what it costs"),
        "share_owner" => Named("project that owns the app instance"),
        "policy_app" => Named("app of the policy that decided"),
        "policy_tenant" => Named("tenant of the policy that decided"),
        "policy_app_instance" => Named("app instance of the policy that decided"),
        "entitled_project" => Named("project of the entitlement"),
        "entitled_app_instance" => Named("app instance of the entitlement"),

        "ttl" => Span("Time to live"),
        "ttl_max_setting" => Span("Longest TTL of any pool"),
        "grace" => Span("Time that the holder has before the teardown starts"),
        "grace_default" => Span("Grace of pools that have none of their own"),
        "grace_or_default" => MaybeSpan("Grace of the pool; null for that of the settings"),
        "teardown_deadline" => Span("Time that a node has to confirm a teardown"),
        "node_timeout" => Span("Silence after which a node counts as lost"),
        "idempotency_window" => Span("How long idempotency keys are remembered"),
        "heat_half_life" => Span("Time in which the heat of a node halves"),
        "head_wait_max" => Span("How long the head of a line waits before it is protected"),
        "min_runtime_before_eviction" => Span("How long a lease is held before it may be evicted"),
        "window" => Span("It is pending when it would be used up within this time; 0 for never"),
        "prepaid_grace" => MaybeSpan("Grace of leases that are revoked; null for that of their pools"),
        "took" => Span("How long it took"),
        "walltime" => MaybeSpan("Longest duration of an attempt; null without a limit"),
        "maybe_ttl" => MaybeSpan("TTL of the leases; null for that of the pool"),
        "covered" => Span("Time that the report covers"),
        "active" => Span("How long any part of the lease was in use"),
        "burst_ttl" => Span("How long a burst may last"),
        "minus_last" => Span("The part before the end that is not charged"),
        "scavenger" => MaybeSpan("For scavenger priority; null without a limit"),
        "standard" => MaybeSpan("For standard priority; null without a limit"),
        "guaranteed" => MaybeSpan("For guaranteed priority; null without a limit"),

        "through" => Instant("End of the last hour that is posted"),
        "hour" => Instant("Start of the hour in which it was used"),
        "due_at" => Instant("When it has to be paid"),
        "received_at" => Instant("When the payment was received"),
        "expires_at" => Instant("Deadline"),
        "maybe_expires_at" => MaybeInstant("When it expires; null if it does not"),
        "wall_clock" => Instant("The wall clock at that moment"),
        "last_stamp" => Instant("Stamp of the last record"),
        "last_seen" => Instant("When it was last seen"),
        "since" => Instant("Since when"),
        "reconciled_since" => Instant("Beginning of the time that was compared"),
        "reconciled_until" => Instant("End of the time that was compared"),
        "copied_at" => Instant("When the copy was made"),
        "from" => Instant("First instant at which it is in force"),
        "usage_from" => Instant("From when on it was used"),
        "usage_to" => Instant("Until when it was used"),
        "ends_at" => Instant("When the burst ends"),
        "until" => Instant("When the temporary limit ends"),
        "claim_until" => MaybeInstant("How long the claimer expects to keep them; null if that was not given"),

        "spec" => Several(&[
            "pool",
            "asks",
            "replicas",
            "priority",
            "walltime",
            "ttl=maybe_ttl",
            "staged",
            "requeue",
            "labels",
            "together",
            "apart",
            "profile",
            "sensitive",
            "control_plane",
            "correlation_id",
            "correlation_given",
            "app_instance",
            "attachment_id",
            "source_project",
        ]),
        "belongs_to" => Several(&["allocation_id=maybe_allocation_id", "correlation_id"]),
        other => plain(other),
    }
}

/// Fields with one property.
fn plain(name: &str) -> Of {
    let (about, schema) = match name {
        "format_version" => ("Version of the format", number()),
        "origin" => ("Name of the journal, under which its checkpoints are signed", text()),
        "public_key" => ("The signing key, in hexadecimal", text()),
        "old_key" => ("The key that signed before, in hexadecimal", text()),
        "new_key" => ("The key that signs from now on, in hexadecimal", text()),
        "software" => ("Name and version of the program", text()),
        "epoch" => ("How many times the journal has been opened for writing", count()),
        "rules_version" => ("Version of the rules that decided", number()),
        "clock_accepted" => ("The gap of the clock that an operator accepted; null if there was none", parts::clock()),
        "action" => ("What became of the records: `cut` or `accepted`", text()),
        "records" => ("Number of whole records", count()),
        "records_restored" => ("Number of records that the copy contained", count()),
        "bytes" => ("Size in bytes", count()),
        "unknown_bytes" => ("The body, in hexadecimal", text()),
        "kind_code" => ("Code of the kind", number()),
        "class_kind" => ("Kind of resource", text()),
        "tier" => ("Tier or model; null if it has none", maybe_text()),
        "quanta_per_unit" => ("Quanta in one billing unit", count()),
        "unit" => ("Billing unit", text()),
        "premium" => ("Whether it is a premium class", flag()),
        "strategy" => ("Placement strategy", text()),
        "ttl_max" => ("Longest TTL, by priority", parts::per_priority()),
        "lifetime_max" => ("Longest lifetime including renewals, by priority", parts::per_priority()),
        "weights" => ("Strategy, or own weights, that scored the nodes; null if none did", parts::weighing()),
        "own_weights" => ("Own weights of the pool; null for those of its strategy", parts::weights()),
        "accounting_tag" => ("Accounting tag; null if there is none", maybe_text()),
        "max_priority" => ("Highest priority that may be requested", text()),
        "max_evicted_quanta_per_hour" => {
            ("Most quanta that may be evicted per hour; null without a limit", maybe_count())
        }
        "contact" => ("Whom to contact; null if nobody is named", maybe_text()),
        "billing_address" => ("Address for invoices, line by line; null if there is none", maybe_lines()),
        "tax_id" => ("Number with the tax authority; null if there is none", maybe_text()),
        "quota_id" => ("Number of the quota", number()),
        "evict_own_lower" => ("Whether requests may evict leases of lower priority that it counts", flag()),
        "headroom_quota_id" => ("Number of the quota in which the victims make headroom", number()),
        "quota_scope" => ("What the quota counts", parts::quota_scope()),
        "measure" => ("The measure in which the quota counts", text()),
        "limit" => ("The limit, and what happens beyond it", parts::limit()),
        "by_operator" => ("Whether an operator did it; only an operator releases it then", flag()),
        "hold_reason" => ("The reason that was given", text()),
        "operator_reason" => ("The reason that the operator gave", text()),
        "temporary_limit" => ("The limit until then", parts::limit()),
        "and_above" => ("Whether it counts higher priorities as well", flag()),
        "which_holders" => ("`each` or `one`", text()),
        "when_over_quota" => (
            "What becomes of allocations that would exceed a quota: `refuse` or `wait`; null if not given",
            maybe_text(),
        ),
        "access" => ("How the work is admitted: `normal`, `deprioritised` or `paused`", text()),
        "requeue_limit" => ("How often an allocation is requeued before it fails", number()),
        "card_id" => ("Number of the rate card", number()),
        "policy_id" => ("Number of the charge policy", number()),
        "currency" => ("Currency", text()),
        "month" => ("Month in which it is booked, such as `2026-11`", text()),
        "original_month" => ("Month that it is about", text()),
        "from_month" => ("First month to which it applies", text()),
        "complete" => ("Whether the payer's postings up to that instant are complete with it", flag()),
        "as_of_size" => ("Number of records that it is computed from", count()),
        "previous_sequence" => {
            ("Sequence of the payer's previous posting or correction; null if there is none", maybe_count())
        }
        "posted_lines" => ("Lines, each an entry of the ledger", list(parts::posted_line())),
        "residual" => ("What exact costs exceed postings by afterwards, in units of 10^-30 of the currency", text()),
        "corrects" => ("The entry that it corrects", text()),
        "corrected_line" => {
            ("The usage of the corrected entry; null if it was booked by hand", parts::corrected_line())
        }
        "legs" => ("Amounts on accounts, which sum to zero", list(parts::leg())),
        "rounding" => ("Rounding that keeps the residual within half a step", text()),
        "entry_reason" => ("The reason that was given", text()),
        "entry" => ("The entry", text()),
        "dispute_open" => ("Whether the dispute is open from now on", flag()),
        "invoice_number" => ("Number of the invoice", text()),
        "invoice_projects" => ("What each project was posted", list(parts::invoice_project())),
        "taxes" => ("Net and tax by tax rate", list(parts::tax_line())),
        "total" => ("What has to be paid", text()),
        "line_count" => ("Number of lines", count()),
        "lines_hash" => ("SHA-256 of the encoded lines", text()),
        "from_sequence" => ("First record of the range", count()),
        "border_sequence" => ("First record of the range of the next month", count()),
        "cut_sequence" => ("Record `period.closing`, before which the range ends", count()),
        "tenant_records" => ("The tenant's records in the range", parts::record_set()),
        "common_records" => ("Records in the range on which all bills depend", parts::record_set()),
        "set_count" => ("Number of records", count()),
        "set_root" => ("RFC 6962 root of their hashes", text()),
        "list_at_start" => ("SHA-256 of the tenant's list before the range", text()),
        "list_at_border" => ("SHA-256 of the tenant's list before the range of the next month", text()),
        "common_at_start" => ("SHA-256 of the common list before the range", text()),
        "common_at_border" => ("SHA-256 of the common list before the range of the next month", text()),
        "claimed_nodes" => ("SHA-256 of the list of nodes that the tenant claimed in the range", text()),
        "maybe_statements" => ("Number of statements; null in records of earlier versions", maybe_count()),
        "invoices" => ("Number of invoices", count()),
        "credit_notes" => ("Number of credit notes", count()),
        "paid_amount" => ("Amount that was paid", text()),
        "paid_invoice" => ("Invoice that it was for; null if none was named", maybe_text()),
        "reference" => ("Reference of the payment", text()),
        "credit" => ("Number of the credit within its account", count()),
        "credit_amount" => ("Amount that was added", text()),
        "credit_priority" => ("Credits of a lower number are used first", number()),
        "source" => ("`paid`, or `granted` for a gift", text()),
        "credit_reference" => ("Reference of the credit; unique within its account", text()),
        "low_below" => ("It is low when less than this is left", text()),
        "low" => ("What happens while it is low", text()),
        "pending" => ("What happens while it will soon be used up", text()),
        "depleted" => ("What happens when nothing is left", text()),
        "lapsed_amount" => ("What was not spent of it", text()),
        "from_state" => ("The state before", text()),
        "to_state" => ("The state from now on", text()),
        "balance" => ("What is left, without what is reserved; negative if more was used than was paid", text()),
        "prepaid_action" => ("What happens from now on", text()),
        "credited_invoice" => ("The invoice that it pays", text()),
        "applied_amount" => ("What is taken from the credit; negative if it is given back", text()),
        "credited" => ("By how much less has to be paid", text()),
        "uncovered" => ("What was posted and is not covered, so that the invoice asks for it", text()),
        "rate" => ("Tax rate as a factor: 0.19 is 19 %", text()),
        "priced_as" => ("Priority by whose price it is charged; null for a usage unit", maybe_text()),
        "line_priority" => ("Priority class; null for a usage unit", maybe_text()),
        "tag" => ("Accounting tag; null if there is none", maybe_text()),
        "control_plane_line" => ("Whether it is the control plane of an app instance", flag()),
        "maybe_card_id" => {
            ("Number of the rate card, or of the price of the usage unit; null for the default prices", maybe_number())
        }
        "usage_quanta_ns" => (
            "Usage in quanta times nanoseconds, negative where less was used than posted before; null for a usage unit",
            maybe_text(),
        ),
        "usage_unit_parts" => {
            ("Usage in 10^-18 units, negative where less was used than posted before; null for a class", maybe_text())
        }
        "usage_source" => ("Who reported it: the name of the token", text()),
        "replaced_sequence" => ("Sequence of its record", count()),
        "usage_id" => ("ID of the usage record; unique for the source", text()),
        "unit_quantity" => ("Quantity of the usage unit", text()),
        "supersedes" => ("ID of the usage record that it supersedes; null if it supersedes none", maybe_text()),
        "usage_charge" => ("`billed`, or `reported` if it is only shown", text()),
        "webhook_id" => ("Number of the webhook", number()),
        "webhook_name" => ("Name of the webhook", text()),
        "webhook_url" => ("Where events are delivered to", text()),
        "webhook_events" => ("Types of events, or families of them", list(text())),
        "webhook_signature" => ("How deliveries are signed: `hmac` or `ed25519`", text()),
        "webhook_disabled_cause" => ("`gone` if the receiver answered 410, or `requested`", text()),
        "events_due" => ("Events of this time", count()),
        "events_acknowledged" => ("Events that had been acknowledged before", count()),
        "events_pending" => ("Events that wait for their ordinary delivery", count()),
        "events_sent" => ("Missing events that were sent and are acknowledged now", count()),
        "events_failed" => ("Missing events that were sent and not acknowledged", count()),
        "entitlement_used" => ("What was used in the month", text()),
        "entitlement_soft" => ("The soft limit", text()),
        "entitlement_hard" => ("The hard limit", text()),
        "maybe_soft" => ("The soft limit, beyond which an alert is raised; null if there is none", maybe_text()),
        "maybe_hard" => ("The hard limit, beyond which usage is refused; null if there is none", maybe_text()),
        "policy_version" => ("Version of the policy of this scope", count()),
        "maybe_units" => ("Names of usage units; null if the policy does not say", parts::or_null(list(maybe_text()))),
        "attribution" => ("Whose usage it is: `owner` or `caller`; null if the policy does not say", maybe_text()),
        "maybe_flag" => ("Whether it is so; null if the policy does not say", parts::or_null(flag())),
        "maybe_sharing_method" => ("How cost is divided; null if the policy does not say", maybe_text()),
        "sharing_method" => ("How the cost is divided", text()),
        "shared_as" => ("`entries`, or `report` if nothing is booked; null if the policy does not say", maybe_text()),
        "maybe_usage_unit" => ("Name of the usage unit that decides; null if none does", maybe_text()),
        "share_weights" => ("Percentages of projects; null for other methods", parts::share_weights()),
        "service_tiers" => ("Service tiers with their weights; null for other methods", parts::service_tiers()),
        "tier_projects" => ("Service tiers of projects; null for other methods", parts::tier_projects()),
        "default_tier" => ("Service tier of all other projects; null if they take no part", maybe_text()),
        "percent" => ("Percentage", text()),
        "tier_name" => ("Name of the tier", text()),
        "tier_weight" => ("Weight of the tier", text()),
        "share_tier" => ("Service tier of the project; null if none decides", maybe_text()),
        "share_weight" => (
            "What the share is in proportion to: 10^-18 units for `by_usage`, 10^-9 units, percent or weight for \
             `by_quota`, `fixed` and `by_tier`",
            text(),
        ),
        "total_weight" => ("The sum of all weights", text()),
        "share_pool" => ("What the control plane cost", text()),
        "share_amount" => ("What of it falls to the project", text()),
        "share_booked" => ("What is booked as a debit of the project; negative for what is credited", text()),
        "no_submitter" => ("Whether nobody is known to have asked for it", flag()),
        "replaced_usage" => ("The usage record that is superseded; null if there is none", parts::replaced_usage()),
        "exact_steps" => ("Exact cost as a fraction of 10^-6 of the currency", text()),
        "posted" => ("Posted amount", text()),
        "net_amount" => ("Net amount, rounded to the decimals of the currency", text()),
        "tax" => ("Tax", text()),
        "account" => ("Kind of account", text()),
        "leg_amount" => ("Amount; a debit is positive", text()),
        "kinds" => ("Prices by kind of resource", decimals()),
        "classes" => ("Prices by class", decimals()),
        "tiers" => ("Factors by tier", decimals()),
        "priorities" => ("Factors by priority", decimals()),
        "charge" => ("What is charged for such an end", parts::charge()),
        "gpu_hours_budget" => ("Budget in GPU hours; null without one", maybe_count()),
        "node_hours_budget" => ("Budget in node hours; null without one", maybe_count()),
        "budget_period_days" => ("Length of the budget period in days", number()),
        "fair_share_target_thousandths" => ("Target share in thousandths; null without one", maybe_number()),
        "burst_allowance_gpu_hours" => {
            ("GPU hours that may be used beyond the budget; null without any", maybe_count())
        }
        "max_pending" => ("Most allocations that may wait; null without a limit", maybe_count()),
        "sensitive_pool_size" => ("Most nodes that may be claimed; null without a limit", maybe_count()),
        "rack" => ("Rack; null if it is not known", maybe_text()),
        "zone" => ("Zone; null if it is not known", maybe_text()),
        "labels" => ("Labels", list(parts::label())),
        "teardown" => ("Whether the node confirms teardowns", text()),
        "capacity" => ("Capacity by class", list(parts::amount())),
        "load" => ("Level of load", text()),
        "errors" => ("Level of errors", text()),
        "throttled" => ("Whether it is throttled", flag()),
        "generation" => ("Generation of the agent", count()),
        "instance" => ("ID of the agent's process, in hexadecimal", text()),
        "first_lease" => ("The first lease; the others have the numbers after it", lease()),
        "priority" => ("Priority class", text()),
        "maybe_priority" => ("Priority class; null for all of them", maybe_text()),
        "members" => ("What each lease holds", list(parts::member())),
        "sensitive" => ("Whether it is sensitive work", flag()),
        "control_plane" => ("Whether it belongs to the control plane", flag()),
        "correlation_id" => ("Correlation ID; null if it is not known", maybe_text()),
        "correlation_given" => ("Whether the caller gave the correlation ID", flag()),
        "allocation_id" => ("The allocation: `alloc-` and its number", text()),
        "maybe_allocation_id" => ("The allocation: `alloc-` and its number; null if it belongs to none", maybe_text()),
        "attachment_id" => ("Number of the attachment; null if there is none", maybe_count()),
        "over_soft_quota_ids" => ("Numbers of the soft quotas that it exceeded", list(number())),
        "capped_by_quota_id" => ("Number of the burst quota that shortened the TTL; null if none did", maybe_number()),
        "capped_by_window_id" => {
            ("Number of the maintenance window that shortened the TTL; null if none did", maybe_number())
        }
        "window_id" => ("Number of the maintenance window", number()),
        "window_reason" => ("Why the nodes are reserved; null if that was not given", maybe_text()),
        "begun" => ("Whether it had begun, so that its nodes were drained", flag()),
        "cancelled" => ("Whether an operator cancelled it", flag()),
        "profile" => {
            ("How much the workload depends on each kind of resource; null if it is not known", parts::profile())
        }
        "asks" => ("Amounts by class", list(parts::amount())),
        "deny_cause" => ("Why it was denied", parts::deny_cause()),
        "teardown_cause" => ("Why the teardown started", text()),
        "quarantine_cause" => ("Why it may not be clean", text()),
        "severity" => ("Always `critical`: an operator must act", text()),
        "renewals" => ("The new deadline of each lease", list(parts::renewal())),
        "reported_leases" => ("The leases, with their activity", list(parts::reported())),
        "leases" => ("The leases", list(lease())),
        "lease" => ("The lease", lease()),
        "lease_count" => ("Number of leases", number()),
        "victims" => ("The leases that are evicted", list(lease())),
        "awaited" => ("The leases that are ending already and are waited for", list(lease())),
        "dropped" => ("The allocations that lose their reservations: `alloc-` and the number of each", list(text())),
        "loss_sequence" => ("Sequence of the record that declared the node lost", count()),
        "corrected_claim" => ("Sequence of the record of the claim", count()),
        "claim_sequence" => ("Sequence of the record of the claim; null in records of earlier versions", maybe_count()),
        "closed" => ("Whether the capacity is free again", flag()),
        "activity" => ("Activity since the last report; null if none was reported", parts::activity()),
        "places" => ("The capacity that is reserved", list(parts::place())),
        "fingerprint" => ("The first eight digits of the hash of the secret", text()),
        "role" => ("Role", text()),
        "token_scope" => ("What the token is limited to", parts::token_scope()),
        "usage_unit" => ("Name of the usage unit; null if it is unknown", maybe_text()),
        "usage_units" => ("Names of the units in which its instances report usage", list(maybe_text())),
        "unit_measure" => ("`time` or `count`", text()),
        "price_number" => ("Number of the price", number()),
        "unit_price" => ("Price of one unit", text()),
        "app_origin" => ("`internal` or `third_party`", text()),
        "operating_mode" => ("`tenant_dedicated` or `platform_managed`", text()),
        "control_plane_scope" => ("`project`, `tenant` or `platform`", text()),
        "runtime_backend" => ("What runs its work", text()),
        "app_instance_ids" => ("Numbers of the app instances", list(count())),
        "replicas" => ("Number of replicas", number()),
        "staged" => ("Whether the holder reports when it runs", flag()),
        "requeue" => ("Whether it waits again when it is interrupted without a checkpoint", flag()),
        "together" => ("Domain in which all replicas must be; null without one", maybe_text()),
        "apart" => ("Domain of which each replica needs its own; null without one", maybe_text()),
        "attempt" => ("Number of the attempt, counted from 1", number()),
        "end" => ("Why the attempt ended", text()),
        "exit_status" => ("Exit status; null if none was reported", maybe_number()),
        "storage_written" => ("Bytes of storage written; null if that is not known", maybe_count()),
        "nodes" => ("The nodes", list(parts::node())),
        "which_nodes" => ("`all`, `each` or `one`", text()),
        "amount" => ("Amount of money", text()),
        "mode" => ("Whether the ceiling is soft or hard", text()),
        "quanta" => ("Amount in quanta", count()),
        "units" => ("Amount in billing units with the unit; null if the class is not known", maybe_text()),
        "devices" => ("Indexes of the devices", list(number())),
        "key" => ("Name of the label", text()),
        "value" => ("Value of the label", text()),
        "type" => ("Which of them it is", text()),
        "limit_value" => ("The base limit", count()),
        "burst_limit" => ("The most that may be held during a burst", count()),
        "used" => ("Amount already counted", count()),
        "requested" => ("Amount requested", count()),
        "most_free" => ("The most that is free on one node", count()),
        "spent" => ("Money spent", text()),
        "reserved" => ("Money reserved", text()),
        "busy_quantum_ns" => ("Use in quantum-nanoseconds", text()),
        "waiting_ns" => ("Nanoseconds spent waiting, by kind of resource", decimals()),
        "pressure" | "fit" | "locality" | "fragmentation" => ("Weight of this term", text()),
        "gpu" | "cpu" | "mem" | "block" | "net" => ("How much it depends on this kind", text()),
        other => unreachable!("the field {other} of records is not described"),
    };
    Plain(about, schema)
}

/// Adds the properties of the named fields.
pub(super) fn add(fields: &[&str], properties: &mut Map<String, Value>) {
    for field in fields {
        let (name, of) = field.split_once('=').unwrap_or((field, field));
        let mut put = |suffix: &str, about: String, mut schema: Value| {
            schema["description"] = about.into();
            properties.insert(format!("{name}{suffix}"), schema);
        };
        // The value as people read it, and its nanoseconds as a string of digits.
        let mut exact = |about: &str, readable: Value, nanoseconds: Value| {
            put("", format!("{about}."), readable);
            put("_ns", format!("{about}, in nanoseconds."), nanoseconds);
        };
        match row(of) {
            Named(what) => {
                put("", format!("Name of the {what}; null if there is none or it is not known."), maybe_text());
                // Only the numbers of app instances can be long.
                let number = if of == "app_instance" { maybe_count() } else { maybe_number() };
                put("_id", format!("Number of the {what}; null if there is none."), number);
            }
            Instant(about) => exact(about, parts::when(false), text()),
            MaybeInstant(about) => exact(about, parts::when(true), maybe_text()),
            Span(about) => exact(about, text(), text()),
            MaybeSpan(about) => exact(about, maybe_text(), maybe_text()),
            Plain(about, schema) => put("", format!("{about}."), schema),
            Several(fields) => add(fields, properties),
        }
    }
}
