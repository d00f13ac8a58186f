//! The journal: records, proofs, copies, the live stream; and settings.

use super::Method::{Get, Put};
use super::roles::*;
use super::schemas::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tenant = "Only of this tenant: its name or number.";
    vec![
        endpoint::<RecordPage>(
            "list_records",
            Get,
            "/api/v1/audit/records",
            "Records after a sequence, as JSON",
            LEASE_READERS,
        )
        .query("after", "The last sequence already seen; from the first record if absent.", sequence)
        .query("tenant", tenant, text)
        .query("kind", "Only of this kind or family: `lease.granted`, `lease`.", text)
        .query("limit", "How many records at most.", page_limit),
        endpoint::<Checkpoint>("checkpoint", Get, "/api/v1/audit/checkpoint", "The newest signed checkpoint", ALL),
        endpoint::<InclusionProof>(
            "prove_inclusion",
            Get,
            "/api/v1/audit/proofs/inclusion",
            "Prove that a record is in the journal",
            ALL,
        )
        .query("sequence", "Which record.", sequence),
        endpoint::<ConsistencyProof>(
            "prove_consistency",
            Get,
            "/api/v1/audit/proofs/consistency",
            "Prove that the journal only grew",
            ALL,
        )
        .query("from", "The size that was seen before.", sequence)
        .query("to", "The size to prove up to; that of the newest checkpoint if absent.", sequence),
        endpoint::<()>(
            "export",
            Get,
            "/api/v1/audit/export",
            "All records as JSON, one per line, with the names they had",
            READERS,
        )
        .query("from", "The first sequence.", sequence)
        .query("to", "The last sequence.", sequence)
        .text("application/x-ndjson"),
        endpoint::<()>(
            "batches",
            Get,
            "/api/v1/audit/batches",
            "Sealed batches as their own bytes, for a collector",
            READERS,
        )
        .query(
            "from",
            "A sequence; the answer begins with the batch that holds it. From the first record if absent.",
            sequence,
        )
        .bytes("application/octet-stream"),
        endpoint::<()>(
            "events",
            Get,
            "/api/v1/events",
            "Records as they become durable, as server-sent events",
            LEASE_READERS,
        )
        .query("after", "Begin after this sequence; `Last-Event-ID` does the same and wins.", sequence)
        .query("tenant", tenant, text)
        .query("kind", "Only of this kind or family: `lease.revoked`, `lease`.", text)
        .query("node", "Only of leases on this node: its name or number.", text)
        .query("lease", "Only of this lease.", text)
        .text("text/event-stream"),
        endpoint::<Settings>("show_settings", Get, "/api/v1/settings", "The engine's own limits", CATALOG),
        endpoint::<Changed>("change_settings", Put, "/api/v1/settings", "Change the engine's own limits", OPERATOR)
            .body::<SettingsChange>(),
    ]
}
