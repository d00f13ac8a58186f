//! The kinds of records, and the fields of their bodies in the order of the view. A field is named by a row of
//! `fields.rs`; `name=row` is a field that another kind uses with another meaning.
//!
//! To add a kind, add a row here. To add a field, name it here and describe it in `fields.rs`. A test checks every
//! record of the HTTP tests against these rows.

/// One kind of record.
pub(super) struct Kind {
    pub(super) word: &'static str,
    /// What such a record says.
    pub(super) about: &'static str,
    pub(super) fields: &'static [&'static str],
}

const fn kind(word: &'static str, about: &'static str, fields: &'static [&'static str]) -> Kind {
    Kind { word, about, fields }
}

const ALLOCATION: &[&str] = &["allocation_id"];
const NODE: &[&str] = &["node"];

/// Every kind, in the order of their codes.
pub(super) const KINDS: &[Kind] = &[
    kind(
        "journal.genesis",
        "The first record. It identifies the journal.",
        &["format_version", "origin", "public_key", "software"],
    ),
    kind(
        "journal.started",
        "A daemon became the writer of the journal.",
        &["epoch", "software", "rules_version", "clock_accepted"],
    ),
    kind("journal.heartbeat", "The daemon was running although nothing happened.", &[]),
    kind("journal.key_rotated", "From here on the new key signs.", &["old_key", "new_key"]),
    kind("journal.clock_jumped", "The wall clock jumped; the daemon did not follow it.", &["wall_clock"]),
    kind(
        "settings.changed",
        "The settings of the engine changed.",
        &["ttl_max=ttl_max_setting", "grace_default", "teardown_deadline", "node_timeout", "idempotency_window"],
    ),
    kind("journal.converted", "From here on the journal has another format version.", &["format_version"]),
    kind(
        "journal.tail_resolved",
        "Records that could not be authenticated were discarded or accepted.",
        &["action", "records", "bytes"],
    ),
    kind(
        "class.put",
        "A resource class was created or changed.",
        &["class", "kind=class_kind", "tier", "quanta_per_unit", "unit", "premium"],
    ),
    kind(
        "pool.put",
        "A pool was created or changed.",
        &["pool", "strategy", "ttl_max", "lifetime_max", "grace=grace_or_default"],
    ),
    kind("pool.deleted", "A pool was deleted.", &["pool"]),
    kind(
        "tenant.put",
        "A tenant was created or changed.",
        &["tenant", "accounting_tag", "max_priority", "max_evicted_quanta_per_hour", "contact", "when_over_quota"],
    ),
    kind("tenant.deleted", "A tenant was deleted.", &["tenant"]),
    kind("project.put", "A project was created or renamed.", &["project", "tenant"]),
    kind("project.deleted", "A project was deleted.", &["project"]),
    kind("user.put", "A user was created or renamed.", &["user", "tenant"]),
    kind("user.deleted", "A user was deleted.", &["user"]),
    kind(
        "quota.updated",
        "A quota was created or changed.",
        &["quota_id", "scope=quota_scope", "measure", "limit", "temporary_limit?", "until?"],
    ),
    kind("quota.deleted", "A quota was deleted.", &["quota_id"]),
    kind("quota.burst_ended", "A burst is over; the next one may start.", &["quota_id"]),
    kind(
        "rate_card.put",
        "A rate card was created or changed.",
        &["card_id", "pool", "from", "currency", "kinds", "classes", "tiers", "priorities"],
    ),
    kind("rate_card.deleted", "A rate card was deleted.", &["card_id"]),
    kind(
        "charge_policy.put",
        "A charge policy was created or changed.",
        &["policy_id", "from", "preempted=charge", "fenced=charge", "node_lost=charge", "failed_start=charge"],
    ),
    kind(
        "quota.budgets_updated",
        "The budgets of a tenant changed.",
        &[
            "tenant",
            "gpu_hours_budget",
            "node_hours_budget",
            "budget_period_days",
            "fair_share_target_thousandths",
            "burst_allowance_gpu_hours",
            "max_pending",
        ],
    ),
    kind("pool.placement_put", "The placement weights of a pool changed.", &["pool", "weights=own_weights"]),
    kind("settings.placement_changed", "The settings of placement changed.", &["heat_half_life"]),
    kind("settings.sensitive_changed", "The settings of sensitive work changed.", &["sensitive_pool_size"]),
    kind(
        "node.put",
        "A node was created or changed.",
        &["node", "pool", "rack", "zone", "labels", "teardown", "capacity"],
    ),
    kind("node.deleted", "A node was deleted.", NODE),
    kind("node.drained", "A node was drained.", &["node", "operator_reason?"]),
    kind("node.resumed", "A drained node was resumed.", &["node", "operator_reason?"]),
    kind("node.lost", "A node was declared lost.", &["node", "last_seen"]),
    kind("node.returned", "A lost node was returned to service.", NODE),
    kind("node.condition", "The condition of a node changed.", &["node", "load", "errors", "throttled"]),
    kind("node.agent_registered", "An agent registered with its node.", &["node", "generation", "instance"]),
    kind("node.agent_detached", "The agent of a node was detached.", NODE),
    kind(
        "lease.granted",
        "A request was granted.",
        &[
            "first_lease",
            "node",
            "pool",
            "ttl",
            "expires_at",
            "priority",
            "rules_version",
            "members",
            "sensitive",
            "control_plane",
            "correlation_id",
            "correlation_given",
            "allocation_id=maybe_allocation_id",
            "app_instance_id",
            "attachment_id",
            "source_project",
            "over_soft_quota_ids",
            "capped_by_quota_id",
            "profile",
            "weights",
            "labels",
            "capped_by_window_id",
        ],
    ),
    kind(
        "lease.denied",
        "A request was denied.",
        &[
            "pool",
            "asks",
            "ttl",
            "priority",
            "rules_version",
            "cause=deny_cause",
            "sensitive",
            "node",
            "labels",
            "profile",
            "app_instance_id",
        ],
    ),
    kind("lease.renewed", "Leases were renewed.", &["renewals"]),
    kind("lease.released", "Leases were released.", &["leases=reported_leases", "closed"]),
    kind("lease.expired", "The deadlines of leases passed.", &["leases", "closed", "belongs_to"]),
    kind("lease.revoked", "Leases were revoked.", &["leases", "grace", "belongs_to"]),
    kind(
        "lease.teardown_started",
        "The teardown of revoked leases started.",
        &["leases", "cause=teardown_cause", "closed", "belongs_to"],
    ),
    kind("lease.torn_down", "A node confirmed the teardown of leases.", &["node", "leases", "belongs_to"]),
    kind("lease.fenced", "The teardown of leases was not confirmed in time.", &["leases", "belongs_to"]),
    kind("lease.unfenced", "The fences of leases were cleared.", &["leases", "belongs_to", "operator_reason?"]),
    kind("lease.activity", "The activity of leases was reported.", &["leases=reported_leases"]),
    kind(
        "lease.preempted",
        "An eviction was decided, by rules of version 1.",
        &["node", "priority", "rules_version", "victims"],
    ),
    kind(
        "preemption.decided",
        "An eviction was decided for an allocation.",
        &["allocation_id", "priority", "rules_version", "places", "victims"],
    ),
    kind("reservation.dropped", "An allocation lost the capacity that was reserved for it.", ALLOCATION),
    kind(
        "token.issued",
        "A token was issued.",
        &["token", "fingerprint", "role", "scope=token_scope", "expires_at=maybe_expires_at"],
    ),
    kind("token.revoked", "A token was revoked.", &["token"]),
    kind("allocation.submitted", "An allocation was submitted.", &["allocation_id", "spec", "node", "when_over_quota"]),
    kind(
        "allocation.denied",
        "An allocation was denied.",
        &["spec", "rules_version", "cause=deny_cause", "when_over_quota"],
    ),
    kind(
        "allocation.placed",
        "An attempt of an allocation was placed.",
        &["allocation_id", "attempt", "first_lease", "leases=lease_count", "rules_version"],
    ),
    kind("allocation.started", "A staged allocation runs.", ALLOCATION),
    kind("allocation.checkpointing", "A checkpoint is being written.", ALLOCATION),
    kind("allocation.checkpointed", "A checkpoint was written.", &["allocation_id", "bytes", "took"]),
    kind(
        "allocation.suspended",
        "An allocation was interrupted after a checkpoint and waits again.",
        &["allocation_id", "end"],
    ),
    kind(
        "allocation.requeued",
        "An allocation was interrupted without a checkpoint and waits again.",
        &["allocation_id", "end"],
    ),
    kind("allocation.completed", "An allocation was completed.", &["allocation_id", "exit_status", "storage_written"]),
    kind("allocation.failed", "An allocation failed.", &["allocation_id", "end", "exit_status", "storage_written"]),
    kind("allocation.cancelled", "An allocation was cancelled.", ALLOCATION),
    kind("node.claimed", "Nodes were claimed for a user's sensitive work.", &["nodes", "until=claim_until"]),
    kind("node.released", "Claimed nodes were released.", &["nodes", "claim_sequence"]),
    kind("node.wiped", "A released node is clean.", &["node", "claim_sequence"]),
    kind(
        "node.quarantined",
        "A released node may not be clean.",
        &["node", "cause=quarantine_cause", "severity", "claim_sequence"],
    ),
    kind("node.quarantine_cleared", "The quarantine of a node was cleared.", NODE),
    kind("ceiling.put", "A cost ceiling was set.", &["project", "app_instance_id", "amount", "currency", "mode"]),
    kind("ceiling.deleted", "A cost ceiling was deleted.", &["project", "app_instance_id"]),
    kind(
        "reservation.taken_over",
        "An allocation took over capacity that was reserved for others of lower priority.",
        &["allocation_id", "priority", "rules_version", "places", "victims", "awaited", "dropped"],
    ),
    kind(
        "head.protected",
        "An allocation has waited too long, and others are kept from the nodes on which it will start.",
        &["allocation_id", "rules_version", "nodes"],
    ),
    kind(
        "pool.queue_put",
        "The limits of a pool on evictions and requeues changed.",
        &["pool", "min_runtime_before_eviction", "requeue_limit"],
    ),
    kind("settings.queue_changed", "The settings of the queue changed.", &["head_wait_max"]),
    kind(
        "project.pool_put",
        "How the work of a project is admitted to a pool was set.",
        &["project", "pool", "access"],
    ),
    kind(
        "lease.end_corrected",
        "Leases that ended after their node was last seen are billed up to that instant only.",
        &["loss_sequence", "leases", "belongs_to"],
    ),
    kind("quota.until_reached", "The temporary limit of a quota ended.", &["quota_id"]),
    kind(
        "claim.end_corrected",
        "A claim that ended after its node was last seen is billed up to that instant only.",
        &["loss_sequence", "node", "claim_sequence=corrected_claim"],
    ),
    kind(
        "node.loss_settled",
        "Everything that ended on a lost node after it was last seen has been named.",
        &["loss_sequence", "node"],
    ),
    kind(
        "window.put",
        "Nodes were reserved for maintenance.",
        &["window_id", "from", "until", "reason=window_reason", "nodes"],
    ),
    kind("window.started", "A maintenance window began; its nodes are drained.", &["window_id", "nodes"]),
    kind("window.ended", "A maintenance window ended or was cancelled.", &["window_id", "nodes", "begun", "cancelled"]),
    kind(
        "lease.window_announced",
        "The holder of leases was told that their nodes are reserved for maintenance.",
        &["window_id", "from", "until", "reason=window_reason", "leases", "belongs_to"],
    ),
    kind(
        "allocation.hold_set",
        "A waiting allocation was put on hold.",
        &["allocation_id", "by_operator", "hold_reason?"],
    ),
    kind("allocation.hold_cleared", "The hold of an allocation was released.", ALLOCATION),
    kind("allocation.changed", "A waiting allocation was changed.", &["allocation_id", "spec"]),
    kind("node.empty", "A node has been empty for as long as the configuration says.", &["node", "since"]),
    kind("unknown", "A record of a kind that this version does not know.", &["kind_code", "bytes=unknown_bytes"]),
];
