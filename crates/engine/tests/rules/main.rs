//! The rules of SEMANTICS 2 to 4 as the engine keeps them. Each test is a story and what it must
//! tell (`support/script.rs` says how to read one); each step of each story is also held to the
//! invariants of DESIGN (`support/world.rs`).

mod support;
mod takeover;

mod absurd_requests;
mod agents;
mod allocations;
mod apps;
mod bad_input;
mod best_node;
mod bounds;
mod bulk;
mod burst;
mod ceilings;
mod claims;
mod commands;
mod custody;
mod deadlines;
mod devices;
mod drawn;
mod entitlements;
mod explain;
mod full_cluster;
mod gangs;
mod holds;
mod idempotency;
mod identity;
mod laws;
mod ledger_size;
mod lifecycle;
mod losses;
mod nodes;
mod outstanding;
mod over_quota;
mod own_evictions;
mod placement;
mod plans;
mod pool_access;
mod preemption;
mod prepaid;
mod prices;
mod protection;
mod queue;
mod quota_scopes;
mod quotas;
mod reference;
mod revocation;
mod sharing;
mod sinks;
mod snapshots;
mod standings;
mod statements;
mod teardown;
mod tenancy;
mod timers;
mod tokens;
mod upgrades;
mod usage;
mod windows;

/// For `bad_input`: the codes of refusals that other files reach.
fn codes_elsewhere() -> Vec<&'static str> {
    [
        &quota_scopes::CODES[..],
        windows::CODES,
        losses::CODES,
        claims::CODES,
        holds::CODES,
        own_evictions::CODES,
        prepaid::CODES,
        apps::CODES,
        usage::CODES,
        entitlements::CODES,
        outstanding::CODES,
        sharing::CODES,
        sinks::CODES,
        statements::CODES,
        LEDGER,
    ]
    .concat()
}

/// What is posted is computed from the books, so that these are reached in `books/tests/ledger`.
const LEDGER: &[&str] = &[
    "ledger_not_open",
    "ledger_already_open",
    "ledger_in_future",
    "not_an_hour",
    "stale_posting",
    "posting_incomplete",
    "hour_out_of_order",
    "period_is_closing",
    "period_closed",
    "no_such_period",
    "period_not_over",
    "period_out_of_order",
    "period_not_settled",
    "no_period_closing",
    "bad_posting_lines",
    "too_many_posting_lines",
    "too_many_legs",
    "bad_exact_amount",
    "amount_too_large",
    "unbalanced",
    "other_projects_account",
    "account_not_by_hand",
    "entry_disputed",
    "entry_not_disputed",
    "invoice_exists",
    "invoice_mismatch",
    "invoice_missing",
    "unknown_invoice",
    "payment_exists",
    "bad_payment_amount",
    "payment_in_future",
    "bad_tax_rate",
    "unposted_usage",
    "project_has_balance",
    "tenant_has_balance",
];
