//! Leases, and why they are where they are.

use super::Method::{Get, Post};
use super::roles::*;
use super::schemas::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tenant = "Only of this tenant: its name or number.";
    vec![
        endpoint::<LeaseList>(
            "list_leases",
            Get,
            "/api/v1/leases",
            "Leases by number: those that are not closed, unless a time, an allocation or the state `closed` is asked for",
            LEASE_READERS,
        )
        .query("tenant", tenant, text)
        .query("project", "Only of this project: its name (with `tenant`) or number.", text)
        .query("user", "Only of this user: its name (with `tenant`) or number.", text)
        .query("node", "Only on this node: its name or number.", text)
        .query("pool", "Only in this pool: its name or number.", text)
        .query("class", "Only of this class: its name or number.", text)
        .query("allocation", "Only of this allocation, closed or not: its number, or `alloc-` and the number.", text)
        .query("state", "Only in this state.", lease_state)
        .query("priority", "Only of this priority.", priority)
        .query("at", "Only those that were held at this instant, closed or not.", instant)
        .query("from", "Only those that were held at this instant or later, closed or not.", instant)
        .query("to", "Only those that were held before this instant, closed or not.", instant)
        .page(),
        endpoint::<Granted>("request_lease", Post, "/api/v1/leases", "Ask for capacity", HOLDERS)
            .body::<RequestLease>()
            .status(201)
            .or_wait::<Submitted>(),
        endpoint::<Quote>(
            "quote_lease",
            Post,
            "/api/v1/leases/quote",
            "What a request would cost, whether it would be admitted, and where; nothing is changed",
            HOLDERS,
        )
        .body::<RequestLease>(),
        endpoint::<BatchResults>(
            "batch",
            Post,
            "/api/v1/leases/batch",
            "Many operations in one request, each with its own key and result",
            BATCHERS,
        )
        .body::<Batch>(),
        endpoint::<Lease>(
            "show_lease",
            Get,
            "/api/v1/leases/{lease}",
            "One lease, also when it is closed",
            LEASE_READERS,
        ),
        endpoint::<Explanation>(
            "explain_lease",
            Get,
            "/api/v1/leases/{lease}/explain",
            "Why a lease was granted where it was: the checks, the scores and the deciding term",
            EXPLAINED,
        ),
        endpoint::<Explanation>(
            "explain_allocation",
            Get,
            "/api/v1/allocations/{allocation}/explain",
            "Why an allocation waits, or why it started where it did",
            EXPLAINED,
        ),
        endpoint::<NodeExplanation>(
            "explain_node",
            Get,
            "/api/v1/nodes/{node}/explain",
            "Why a node gets work, or gets none",
            READERS,
        ),
        endpoint::<Explanation>(
            "explain_decision",
            Get,
            "/api/v1/audit/decisions/{sequence}",
            "A sealed decision explained, and made again from the journal",
            EXPLAINED,
        ),
        endpoint::<History>(
            "lease_history",
            Get,
            "/api/v1/leases/{lease}/history",
            "What happened to a lease",
            LEASE_READERS,
        )
        .page(),
        endpoint::<Renewed>("renew_lease", Post, "/api/v1/leases/{lease}/renew", "Move the deadline", HOLDERS)
            .body::<Renew>(),
        endpoint::<Released>("release_lease", Post, "/api/v1/leases/{lease}/release", "Give a lease back", HOLDERS)
            .body_or_none::<Release>(),
        endpoint::<Revoked>("revoke_lease", Post, "/api/v1/leases/{lease}/revoke", "Take a lease back", ADMINS)
            .body_or_none::<Revoke>(),
        endpoint::<ReadyAnswer>(
            "lease_ready",
            Post,
            "/api/v1/leases/{lease}/ready",
            "The holder of a revoked lease is ready before grace ends",
            HOLDERS,
        ),
        endpoint::<Reported>("report_activity", Post, "/api/v1/leases/{lease}/activity", "Report activity", HOLDERS)
            .body::<Activity>(),
        endpoint::<Confirmed>(
            "confirm_teardown",
            Post,
            "/api/v1/leases/{lease}/teardown",
            "Confirm that one lease is torn down",
            AGENTS,
        )
        .body_or_none::<Fences>(),
        endpoint::<Unfenced>(
            "unfence_lease",
            Post,
            "/api/v1/leases/{lease}/unfence",
            "Vouch for fenced capacity",
            OPERATOR,
        ),
    ]
}
