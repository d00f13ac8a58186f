//! The declaration of every endpoint, one row each; everything else that must know the endpoints is made from it.
//!
//! A row reads `id { "summary" Method "path" {parameter} "path" for ROLES query[…] body Type => status Answer }`.
//! The roles are named in `roles.rs`. A query parameter is the name of a constant in `parameter.rs`, or
//! `(name constant)`, or `(name "description" schema)` with a schema of `schemas.rs`. `body Type or none` also takes a
//! request without a body. The answer is a type of this crate, or `Text`, `Bytes` or `Stream` with its media type.
//!
//! To add an endpoint, add a row here and write the handler under its id in `server/src/routes/`.

/// Calls the macro `$callback` with the rows of all endpoints, in the order of the OpenAPI document.
#[macro_export]
macro_rules! for_each_endpoint { ($callback:ident) => { $callback! {
    // Which daemon this is, and who asks.
    about { "Which journal this is and which program keeps it"
        Get "/api/v1/about" for ALL => 200 About }
    whoami { "The token that asks"
        Get "/api/v1/whoami" for ALL => 200 WhoAmI }

    // Tenants, projects, their ceilings, and users.
    list_tenants { "Tenants, by number"
        Get "/api/v1/tenants" for TENANCY query[page] => 200 TenantList }
    create_tenant { "Make a tenant"
        Post "/api/v1/tenants" for OPERATOR body NewTenant => 201 TenantPut }
    show_tenant { "One tenant, by name or number"
        Get "/api/v1/tenants/" {tenant} for TENANCY => 200 Tenant }
    change_tenant { "Change a tenant and its limits: absent keeps, null clears, all at once"
        Put "/api/v1/tenants/" {tenant} for QUOTA_AUTHORITY body TenantChange => 200 TenantPut }
    tenant_usage { "What a tenant used of its budgets over the last days, as the queue sees it"
        Get "/api/v1/tenants/" {tenant} "/usage" for TENANCY
            query[
                (days "How many days; 90 if absent." days)
            ] => 200 TenantUsage }
    delete_tenant { "Delete a tenant without leases and allocations"
        Delete "/api/v1/tenants/" {tenant} for OPERATOR => 200 Changed }
    list_projects { "Projects, by number"
        Get "/api/v1/projects" for TENANCY query[tenant page] => 200 ProjectList }
    create_project { "Make a project"
        Post "/api/v1/projects" for ADMINS body NewProject => 201 ProjectPut }
    show_project { "One project, by name or number"
        Get "/api/v1/projects/" {project} for TENANCY query[(tenant whose_project)] => 200 Project }
    change_project { "Rename a project"
        Put "/api/v1/projects/" {project} for ADMINS
            query[(tenant whose_project)] body ProjectChange => 200 ProjectPut }
    delete_project { "Delete a project without leases and allocations"
        Delete "/api/v1/projects/" {project} for ADMINS query[(tenant whose_project)] => 200 Changed }
    list_ceilings { "Cost ceilings of a project and its app instances, with what counts against them"
        Get "/api/v1/projects/" {project} "/ceilings" for TENANCY
            query[(tenant whose_project) page] => 200 CeilingList }
    show_ceiling { "One cost ceiling, with what counts against it"
        Get "/api/v1/projects/" {project} "/ceiling" for TENANCY query[ceiling] => 200 Ceiling }
    put_ceiling { "Set what a project, or one of its app instances, may cost; what was spent stays"
        Put "/api/v1/projects/" {project} "/ceiling" for QUOTA_AUTHORITY
            query[ceiling] body CeilingChange => 200 CeilingPut }
    delete_ceiling { "Delete a cost ceiling; what was spent under it is forgotten"
        Delete "/api/v1/projects/" {project} "/ceiling" for QUOTA_AUTHORITY query[ceiling] => 200 Changed }
    list_users { "Users, by number"
        Get "/api/v1/users" for TENANCY query[tenant page] => 200 UserList }
    create_user { "Make a user"
        Post "/api/v1/users" for ADMINS body NewUser => 201 UserPut }
    show_user { "One user, by name or number"
        Get "/api/v1/users/" {user} for TENANCY query[(tenant whose_user)] => 200 User }
    change_user { "Rename a user"
        Put "/api/v1/users/" {user} for ADMINS query[(tenant whose_user)] body UserChange => 200 UserPut }
    delete_user { "Delete a user"
        Delete "/api/v1/users/" {user} for ADMINS query[(tenant whose_user)] => 200 Changed }

    // Classes, pools, nodes, claims on them and their agents.
    list_classes { "Resource classes, by number"
        Get "/api/v1/classes" for CATALOG query[page] => 200 ClassList }
    create_class { "Make a resource class"
        Post "/api/v1/classes" for OPERATOR body NewClass => 201 ClassPut }
    show_class { "One class, by name or number"
        Get "/api/v1/classes/" {class} for CATALOG => 200 Class }
    change_class { "Change a class"
        Put "/api/v1/classes/" {class} for OPERATOR body ClassChange => 200 ClassPut }
    list_pools { "Pools, by number"
        Get "/api/v1/pools" for CATALOG query[page] => 200 PoolList }
    create_pool { "Make a pool"
        Post "/api/v1/pools" for OPERATOR body NewPool => 201 PoolPut }
    show_pool { "One pool, by name or number"
        Get "/api/v1/pools/" {pool} for CATALOG => 200 Pool }
    change_pool { "Change a pool"
        Put "/api/v1/pools/" {pool} for OPERATOR body PoolChange => 200 PoolPut }
    delete_pool { "Delete a pool without nodes"
        Delete "/api/v1/pools/" {pool} for OPERATOR => 200 Changed }
    list_nodes { "Nodes, by number"
        Get "/api/v1/nodes" for NODE_READERS query[(pool of_pool) page] => 200 NodeList }
    create_node { "Make a node"
        Post "/api/v1/nodes" for OPERATOR body NewNode => 201 NodePut }
    show_node { "One node, by name or number"
        Get "/api/v1/nodes/" {node} for NODE_READERS => 200 Node }
    change_node { "Change a node"
        Put "/api/v1/nodes/" {node} for OPERATOR body NodeChange => 200 NodePut }
    delete_node { "Delete a node without leases"
        Delete "/api/v1/nodes/" {node} for OPERATOR => 200 Changed }
    drain_node { "Give out no more of a node"
        Post "/api/v1/nodes/" {node} "/drain" for OPERATOR => 200 NodePut }
    resume_node { "Give a drained node out again"
        Post "/api/v1/nodes/" {node} "/resume" for OPERATOR => 200 NodePut }
    lose_node { "Declare a node lost; its leases end when it was last seen"
        Post "/api/v1/nodes/" {node} "/lose" for OPERATOR body LoseNode or none => 200 NodePut }
    return_node { "A lost node is back"
        Post "/api/v1/nodes/" {node} "/return" for OPERATOR => 200 NodePut }
    clear_quarantine { "Vouch that a quarantined node is clean"
        Post "/api/v1/nodes/" {node} "/clear-quarantine" for OPERATOR => 200 NodePut }
    report_wipe { "Say whether a released node is clean"
        Post "/api/v1/nodes/" {node} "/wipe" for AGENTS body ReportWipe => 200 NodePut }
    list_claims { "Nodes that are claimed for sensitive work; to operators also those being wiped or quarantined"
        Get "/api/v1/claims" for ALLOCATION_READERS query[page] => 200 ClaimList }
    claim_nodes { "Claim nodes for a user's sensitive work"
        Post "/api/v1/claims" for HOLDERS body NewClaim => 201 ClaimPut }
    release_nodes { "Give claimed nodes back; they are wiped before anyone gets them"
        Post "/api/v1/claims/release" for HOLDERS body ReleaseNodes => 200 ClaimPut }
    register_agent { "An agent takes up its node"
        Post "/api/v1/nodes/" {node} "/agent" for AGENTS body RegisterAgent => 200 AgentRegistered }
    detach_agent { "Forget the node's agent, so that another may take up the node"
        Delete "/api/v1/nodes/" {node} "/agent" for OPERATOR => 200 DetachedAgent }
    heartbeat { "A sign of life; answers what is to be torn down"
        Post "/api/v1/nodes/" {node} "/heartbeat" for AGENTS body Heartbeat => 200 HeartbeatAnswer }
    confirm_teardowns { "Confirm that leases are torn down"
        Post "/api/v1/nodes/" {node} "/teardowns" for AGENTS body ConfirmTeardowns => 200 TeardownsConfirmed }

    // Quotas.
    list_quotas { "Quotas with what is used of them"
        Get "/api/v1/quotas" for TENANCY query[tenant page] => 200 QuotaList }
    create_quota { "Make a quota"
        Post "/api/v1/quotas" for QUOTA_AUTHORITY body NewQuota => 201 QuotaPut }
    show_quota { "One quota, by number"
        Get "/api/v1/quotas/" {quota} for TENANCY => 200 Quota }
    change_quota { "Change a quota's limit"
        Put "/api/v1/quotas/" {quota} for QUOTA_AUTHORITY body QuotaChange => 200 QuotaPut }
    delete_quota { "Delete a quota"
        Delete "/api/v1/quotas/" {quota} for QUOTA_AUTHORITY => 200 Changed }

    // What can be asked of the books.
    usage { "What was held, by whom, exactly"
        Get "/api/v1/usage" for BOOK_READERS
            query[
                books grouped bucketed
                (peak "Whether to tell the most that was held at once." flag)
            ] => 200 UsageReport }
    capacity { "Where the cluster's capacity was: held, tearing down, reserved, fenced, offline or idle"
        Get "/api/v1/usage/capacity" for READERS
            query[
                from to
                (by "Told apart by pool or node, beside class." capacity_grouping)
                pool node class
            ] => 200 CapacityReport }
    costs { "What it cost, by the prices of each second"
        Get "/api/v1/costs" for BOOK_READERS query[books grouped bucketed] => 200 CostReport }
    cost_rate { "What the leases that are held now cost in an hour"
        Get "/api/v1/costs/rate" for BOOK_READERS query[books grouped] => 200 CostRate }
    forecast { "What the month will have cost: up to now, to the deadlines, and to its end"
        Get "/api/v1/costs/forecast" for BOOK_READERS
            query[
                books
                (zone "The IANA time zone in which the month begins; UTC if absent." text)
            ] => 200 Forecast }
    waste { "What was held and not used, what was idle, and what is in pieces"
        Get "/api/v1/waste" for BOOK_READERS
            query[
                books
                (by "How leases are summed up; by class if absent." waste_grouping)
                (headline "Only leases of this headline." waste_class)
                (limit "How many leases to name at most." page_limit)
            ] => 200 WasteReport }
    sensitivity { "What workloads depend on, by their share of the cost and by what they wait for"
        Get "/api/v1/sensitivity" for BOOK_READERS query[books] => 200 SensitivityReport }

    // Rate cards and charge policies.
    list_rate_cards { "Rate cards, the built-in one first, then by number"
        Get "/api/v1/rate-cards" for PRICE_READERS query[(pool of_pool) page] => 200 RateCardList }
    create_rate_card { "Set prices from now or from a later day on; what is not named is as in the card in force"
        Post "/api/v1/rate-cards" for OPERATOR body NewRateCard => 201 RateCardPut }
    current_rate_card { "The card by which this second is rated"
        Get "/api/v1/rate-cards/current" for PRICE_READERS
            query[
                (pool "In this pool: its name or number." text)
            ] => 200 RateCard }
    show_rate_card { "One rate card, by number, or `built-in`"
        Get "/api/v1/rate-cards/" {card} for PRICE_READERS => 200 RateCard }
    change_rate_card { "Change a rate card that waits: absent keeps, null clears"
        Put "/api/v1/rate-cards/" {card} for OPERATOR body RateCardChange => 200 RateCardPut }
    delete_rate_card { "Withdraw a rate card that waits"
        Delete "/api/v1/rate-cards/" {card} for OPERATOR => 200 Changed }
    list_charge_policies { "What is charged for leases that end badly: the built-in policy first, then by number"
        Get "/api/v1/charge-policies" for CHARGE_READERS query[page] => 200 ChargePolicyList }
    create_charge_policy {
        "Set what is charged from now or from a later day on; what is not named is as in the policy in force"
        Post "/api/v1/charge-policies" for OPERATOR body NewChargePolicy => 201 ChargePolicyPut }
    change_charge_policy { "Change a charge policy that waits"
        Put "/api/v1/charge-policies/" {policy} for OPERATOR body NewChargePolicy => 200 ChargePolicyPut }

    // Leases, and why they are where they are.
    list_leases {
        "Leases by number: those that are not closed, unless a time, an allocation or the state `closed` is asked for"
        Get "/api/v1/leases" for LEASE_READERS
            query[
                tenant (project of_project) (user of_user) node pool class
                (allocation "Only of this allocation, closed or not: its number, or `alloc-` and the number." text)
                (state "Only in this state." lease_state)
                priority
                (at "Only those that were held at this instant, closed or not." instant)
                (from "Only those that were held at this instant or later, closed or not." instant)
                (to "Only those that were held before this instant, closed or not." instant)
                page
            ] => 200 LeaseList }
    request_lease { "Ask for capacity"
        Post "/api/v1/leases" for HOLDERS body RequestLease => 201 Granted or 202 Submitted as Requested }
    quote_lease { "What a request would cost, whether it would be admitted, and where; nothing is changed"
        Post "/api/v1/leases/quote" for HOLDERS body RequestLease => 200 Quote }
    batch { "Many operations in one request, each with its own key and result"
        Post "/api/v1/leases/batch" for BATCHERS body Batch => 200 BatchResults }
    show_lease { "One lease, also when it is closed"
        Get "/api/v1/leases/" {lease} for LEASE_READERS => 200 Lease }
    explain_lease { "Why a lease was granted where it was: the checks, the scores and the deciding term"
        Get "/api/v1/leases/" {lease} "/explain" for EXPLAINED => 200 Explanation }
    explain_allocation { "Why an allocation waits, or why it started where it did"
        Get "/api/v1/allocations/" {allocation} "/explain" for EXPLAINED => 200 Explanation }
    explain_node { "Why a node gets work, or gets none"
        Get "/api/v1/nodes/" {node} "/explain" for READERS => 200 NodeExplanation }
    explain_decision { "A sealed decision explained, and made again from the journal"
        Get "/api/v1/audit/decisions/" {sequence} for EXPLAINED => 200 Explanation }
    lease_history { "What happened to a lease"
        Get "/api/v1/leases/" {lease} "/history" for LEASE_READERS query[page] => 200 History }
    renew_lease { "Move the deadline"
        Post "/api/v1/leases/" {lease} "/renew" for HOLDERS body Renew => 200 Renewed }
    release_lease { "Give a lease back"
        Post "/api/v1/leases/" {lease} "/release" for HOLDERS body Release or none => 200 Released }
    revoke_lease { "Take a lease back"
        Post "/api/v1/leases/" {lease} "/revoke" for ADMINS body Revoke or none => 200 Revoked }
    lease_ready { "The holder of a revoked lease is ready before grace ends"
        Post "/api/v1/leases/" {lease} "/ready" for HOLDERS => 200 ReadyAnswer }
    report_activity { "Report activity"
        Post "/api/v1/leases/" {lease} "/activity" for HOLDERS body Activity => 200 Reported }
    confirm_teardown { "Confirm that one lease is torn down"
        Post "/api/v1/leases/" {lease} "/teardown" for AGENTS body Fences or none => 200 Confirmed }
    unfence_lease { "Vouch for fenced capacity"
        Post "/api/v1/leases/" {lease} "/unfence" for OPERATOR => 200 Unfenced }

    // Allocations.
    list_allocations {
        "Allocations by number: those that are not over, unless a time or a state in which they are is asked for"
        Get "/api/v1/allocations" for ALLOCATION_READERS
            query[
                tenant (project of_project) (user of_user)
                (pool "Only those that must lie in this pool: its name or number." text)
                (state "Only in this state." allocation_state)
                priority
                (at "Only those that had been submitted and were not over at this instant." instant)
                (from "Only those that were not over before this instant." instant)
                (to "Only those that were submitted before this instant." instant)
                page
            ] => 200 AllocationList }
    submit_allocation { "Ask for a gang: it starts whole, or waits in the queue"
        Post "/api/v1/allocations" for HOLDERS body SubmitAllocation => 201 Submitted }
    show_allocation { "One allocation, also when it is over: its attempts and, while it waits, what for"
        Get "/api/v1/allocations/" {allocation} for ALLOCATION_READERS => 200 AllocationDetail }
    start_allocation { "What was staged runs from now on"
        Post "/api/v1/allocations/" {allocation} "/start" for HOLDERS => 200 AllocationChanged }
    begin_checkpoint { "A checkpoint is being written"
        Post "/api/v1/allocations/" {allocation} "/checkpointing" for HOLDERS => 200 AllocationChanged }
    report_checkpoint { "A checkpoint was written; within grace this also says that nothing runs any more"
        Post "/api/v1/allocations/" {allocation} "/checkpoint" for HOLDERS
            body CheckpointReport => 200 AllocationChanged }
    complete_allocation { "The work is done, or has failed; all its leases are given back"
        Post "/api/v1/allocations/" {allocation} "/complete" for HOLDERS
            body CompleteAllocation or none => 200 AllocationChanged }
    cancel_allocation { "Take an allocation out of the queue, or end it"
        Post "/api/v1/allocations/" {allocation} "/cancel" for HOLDERS => 200 AllocationChanged }

    // Tokens.
    list_tokens { "Tokens, by number, without their secrets"
        Get "/api/v1/tokens" for TOKEN_READERS query[tenant page] => 200 TokenList }
    issue_token { "Issue a token; its secret is shown once"
        Post "/api/v1/tokens" for ADMINS body NewToken => 201 IssuedToken }
    show_token { "One token, by number"
        Get "/api/v1/tokens/" {token} for TOKEN_READERS => 200 Token }
    revoke_token { "Revoke a token"
        Delete "/api/v1/tokens/" {token} for ADMINS => 200 Changed }

    // The journal: records, proofs, copies, the live stream; and settings.
    list_records { "Records after a sequence, as JSON"
        Get "/api/v1/audit/records" for LEASE_READERS
            query[
                (after "The last sequence already seen; from the first record if absent." sequence)
                tenant
                (kind "Only of this kind or family: `lease.granted`, `lease`." text)
                (limit "How many records at most." page_limit)
            ] => 200 RecordPage }
    checkpoint { "The newest signed checkpoint"
        Get "/api/v1/audit/checkpoint" for ALL => 200 Checkpoint }
    prove_inclusion { "Prove that a record is in the journal"
        Get "/api/v1/audit/proofs/inclusion" for ALL
            query[(sequence "Which record." sequence required)] => 200 InclusionProof }
    prove_consistency { "Prove that the journal only grew"
        Get "/api/v1/audit/proofs/consistency" for ALL
            query[
                (from "The size that was seen before." sequence required)
                (to "The size to prove up to; that of the newest checkpoint if absent." sequence)
            ] => 200 ConsistencyProof }
    export { "All records as JSON, one per line, with the names they had"
        Get "/api/v1/audit/export" for READERS
            query[
                (from "The first sequence." sequence)
                (to "The last sequence." sequence)
            ] => 200 Text "application/x-ndjson" }
    batches { "Sealed batches as their own bytes, for a collector"
        Get "/api/v1/audit/batches" for READERS
            query[
                (
                    from
                    "A sequence; the answer begins with the batch that holds it. From the first record if absent."
                    sequence
                )
            ] => 200 Bytes "application/octet-stream" }
    events { "Records as they become durable, as server-sent events"
        Get "/api/v1/events" for LEASE_READERS
            query[
                (after "Begin after this sequence; `Last-Event-ID` does the same and wins." sequence)
                tenant
                (kind "Only of this kind or family: `lease.revoked`, `lease`." text)
                (node "Only of leases on this node: its name or number." text)
                (lease "Only of this lease." text)
            ] => 200 Stream "text/event-stream" }
    show_settings { "The engine's own limits"
        Get "/api/v1/settings" for CATALOG => 200 Settings }
    change_settings { "Change the engine's own limits"
        Put "/api/v1/settings" for OPERATOR body SettingsChange => 200 Changed }

    // The document, health and metrics.
    openapi { "This document"
        Get "/api/v1/openapi.json" for NOBODY_IN_PARTICULAR => 200 Text "application/json" }
    docs { "This document, for people"
        Get "/api/docs" for NOBODY_IN_PARTICULAR => 200 Text "text/html" }
    healthz { "Whether the daemon lives"
        Get "/healthz" for NOBODY_IN_PARTICULAR => 200 Health }
    readyz { "Whether the daemon takes commands"
        Get "/readyz" for NOBODY_IN_PARTICULAR => 200 Health }
    metrics { "Figures for Prometheus"
        Get "/metrics" for READERS => 200 Text "text/plain" }
} } }
