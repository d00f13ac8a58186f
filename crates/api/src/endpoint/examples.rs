//! An example of each request body, under the name of its type. The OpenAPI document and `/api/docs` show them; a test
//! checks each against its schema.

use serde_json::{Map, Value, json};

/// The example of a type of body; `None` if there is none.
pub(crate) fn example(name: &str) -> Option<Value> {
    Some(match name {
        "NewTenant" => json!({ "name": "physics", "accounting_tag": "cc-4711", "max_priority": "guaranteed" }),
        "TenantChange" => json!({ "max_nodes": 200, "accounting_tag": null }),
        "NewProject" => json!({ "name": "lattice", "tenant": "physics" }),
        "ProjectChange" => json!({ "name": "lattice-2" }),
        "PoolAccessChange" => json!({ "pool": "training", "access": "paused" }),
        "CeilingChange" => json!({ "amount": "1500", "mode": "hard", "currency": "EUR" }),
        "NewUsageUnit" => json!({ "name": "images", "measure": "count" }),
        "NewUnitPrice" => json!({ "usage_unit": "requests", "price": "0.0004", "currency": "EUR" }),
        "NewApp" => json!({ "slug": "slurm", "origin": "internal", "usage_units": ["job_hours", "gpu_hours"] }),
        "AppChange" => json!({ "usage_units": ["job_hours"] }),
        "NewAppInstance" => json!({
            "name": "slurm-shared", "project": "hpc", "tenant": "physics", "app": "slurm",
            "operating_mode": "tenant_dedicated", "control_plane_scope": "tenant", "runtime_backend": "slurm",
        }),
        "AppInstanceChange" => json!({ "name": "slurm-prod" }),
        "UsageReports" => json!({
            "id": "job-4711", "org_id": "physics", "project_id": "lattice", "app_instance_id": "slurm-lattice",
            "app_slug": "slurm", "operating_mode": "tenant_dedicated", "control_plane_scope": "project",
            "runtime_backend": "slurm", "correlation_id": "0b9f4e9c-52d8-4a43-9a3d-1f3a4d1e9f10",
            "usage_source": "app_runtime", "usage_unit": "job_hours", "quantity": "1.5",
            "from": "2026-11-02T10:00:00Z", "to": "2026-11-02T11:30:00Z"
        }),
        "NewAttachment" => json!({ "app_instance": "slurm-shared", "source_project": "lattice", "tenant": "physics" }),
        "NewWebhook" => json!({
            "name": "biller", "url": "https://bills.example.com/hooks/leasehold", "events": ["accounting"],
        }),
        "WebhookChange" => json!({ "url": "https://bills.example.com/hooks/v2" }),
        "RotateWebhookSecret" => json!({ "overlap": "1h" }),
        "RetryDeliveries" => json!({ "event_id": "9f2c01aa8806000000000000000010e1" }),
        "ReplayDeliveries" => json!({ "from_sequence": 4321 }),
        "ReconcileDeliveries" => json!({
            "since": "2026-03-01T00:00:00Z", "until": "2026-03-02T00:00:00Z", "dry_run": true,
        }),
        "NewUser" => json!({ "name": "ada", "tenant": "physics" }),
        "UserChange" => json!({ "name": "ada-l" }),
        "NewClass" => json!({ "name": "h100", "kind": "gpu", "tier": "h100", "quanta_per_unit": 7 }),
        "ClassChange" => json!({ "premium": true }),
        "NewPool" => json!({ "name": "training", "strategy": "bin_pack", "ttl_max": { "standard": "8h" } }),
        "PoolChange" => json!({ "grace": "2m" }),
        "NewNode" => json!({
            "name": "gpu-7", "pool": "training", "rack": "r7", "zone": "z1", "labels": { "driver": "570" },
            "capacity": { "h100": 8, "dram": "1024GiB" },
        }),
        "NodeChange" => json!({ "labels": { "driver": "580" } }),
        "LoseNode" => json!({ "last_seen": "2026-11-30T14:03:00Z" }),
        "WithReason" => json!({ "reason": "new power supply" }),
        "ReportWipe" => json!({ "clean": true }),
        "NewWindow" => json!({
            "nodes": ["gpu-7", "gpu-8"], "from": "2026-11-20T06:00:00Z", "until": "2026-11-20T10:00:00Z",
            "reason": "firmware"
        }),
        "NewClaim" => json!({ "nodes": ["gpu-7"], "tenant": "physics", "project": "lattice", "user": "ada" }),
        "ReleaseNodes" => json!({ "nodes": ["gpu-7"] }),
        "RegisterAgent" => json!({ "instance": "6f1c2f9e97f24c0b9f0e6f8d4f1f7a11", "capacity": { "h100": 8 } }),
        "Heartbeat" => json!({ "generation": 3, "condition": { "load": "high" } }),
        "ConfirmTeardowns" => json!({ "generation": 3, "leases": ["lease-42"] }),
        "NewQuota" => json!({
            "tenant": "physics", "class": "h100", "measure": "quanta", "limit": { "type": "hard", "limit": 56 },
        }),
        "QuotaChange" => json!({
            "limit": { "type": "burst", "limit": 56, "burst_limit": 84, "burst_ttl": "2h" },
            "evict_own_lower": true,
        }),
        "NewRateCard" => json!({
            "pool": "training", "from": "2026-12-01T00:00:00Z", "prices": { "kinds": { "gpu": "0.0006" } },
        }),
        "RateCardChange" => json!({ "prices": { "tiers": { "h100": "1.5" } } }),
        "NewChargePolicy" => json!({
            "from": "2026-12-01T00:00:00Z", "charges": { "preempted": { "minus_last": "10m" } },
        }),
        "OpenLedger" => json!({ "from": "2026-11-01T00:00:00Z" }),
        "NewLedgerEntry" => json!({
            "tenant": "physics", "project": "lattice", "currency": "EUR", "reason": "goodwill for the outage of 3 November",
            "legs": [{ "account": "receivable", "amount": "-25.00" }, { "account": "operator_loss", "amount": "25.00" }],
        }),
        "NewCorrection" => json!({ "entry": "entry-48211-0", "amount": "12.50", "reason": "price agreed by contract" }),
        "NewDispute" => json!({ "entry": "entry-48211-0", "reason": "the node did not respond" }),
        "NewPayment" => json!({ "invoice": "INV-000012", "amount": "1190.00", "reference": "bank 2026-12-09/17" }),
        "TaxRateChange" => json!({ "rate": "0.24", "from": "2026-12" }),
        "RequestLease" => json!({
            "tenant": "physics", "project": "lattice", "ttl": "1h",
            "asks": [{ "class": "h100", "quantity": 2 }, { "class": "dram", "quantity": "80GiB" }],
        }),
        "Batch" => json!({
            "operations": [
                { "key": "renew-42-1", "lease": "lease-42", "renew": { "ttl": "1h" } },
                { "key": "release-43", "lease": "lease-43", "release": {} },
            ],
        }),
        "Renew" => json!({ "ttl": "1h" }),
        "Release" => json!({}),
        "Revoke" => json!({ "reason": "operator", "grace": "2m" }),
        "Activity" => json!({ "covered": "1m", "active": "50s", "busy_quantum_ns": "40000000000" }),
        "Fences" => json!({ "generation": 3 }),
        "SubmitAllocation" => json!({
            "tenant": "physics", "project": "lattice", "asks": [{ "class": "h100", "quantity": 8 }], "replicas": 4,
            "walltime": "12h", "priority": "standard",
        }),
        "AllocationChange" => json!({ "priority": "guaranteed", "walltime": "4h" }),
        "CheckpointReport" => json!({ "bytes": 80_000_000_000u64, "took": "45s" }),
        "FailedStart" => json!({ "allocation": "alloc-17", "generation": 3 }),
        "CompleteAllocation" => json!({ "exit_status": 0 }),
        "NewToken" => json!({ "name": "ci", "role": "project_member", "tenant": "physics", "project": "lattice" }),
        "SettingsChange" => json!({ "node_timeout": "1m" }),
        _ => return None,
    })
}

/// Adds the examples to the schemas of the document.
pub(crate) fn add_examples(schemas: &mut Map<String, Value>) {
    for (name, schema) in schemas {
        if let Some(example) = example(name) {
            schema["examples"] = json!([example]);
        }
    }
}
