//! The declaration of every endpoint, one row each. Everything else that needs the list of endpoints is made from it.
//!
//! A row reads `id { "summary" Method "path" {parameter} "path" for ROLES query[…] body Type => status Answer }`.
//! The roles are named in `roles.rs`. A query parameter is the name of a constant in `parameter.rs`, or
//! `(name constant)`, or `(name "description" schema)` with a schema of `schemas.rs`. `body Type or none` also takes a
//! request without a body. The answer is a type of this crate, or `Text`, `Bytes` or `Stream` with its media type;
//! `also` names further media types.
//!
//! To add an endpoint, add a row here and write the handler under its id in `server/src/routes/`.

/// Calls the macro `$callback` with the rows of all endpoints, in the order of the OpenAPI document.
#[macro_export]
macro_rules! for_each_endpoint { ($callback:ident) => { $callback! {
    // The daemon and the caller.
    about { "Show the identity of the journal and the version of the daemon"
        Get "/api/v1/about" for ALL => 200 About }
    whoami { "Show the token of the caller"
        Get "/api/v1/whoami" for ALL => 200 WhoAmI }
    status { "Show what is going on now: capacity, tenants, queue, fences, quarantines, disk, checkpoint and scrub"
        Get "/api/v1/status" for READERS => 200 Status }

    // Deliveries of events.
    accounting_status { "Show how deliveries of events go"
        Get "/api/v1/deliveries" for TOKEN_READERS => 200 AccountingStatus }
    list_webhooks { "List webhooks"
        Get "/api/v1/deliveries/webhooks" for TOKEN_READERS query[tenant page] => 200 WebhookList }
    create_webhook { "Make a webhook, to which events are delivered from now on; the answer shows its secret once"
        Post "/api/v1/deliveries/webhooks" for ADMINS body NewWebhook => 201 WebhookPut }
    show_webhook { "Show a webhook"
        Get "/api/v1/deliveries/webhooks/" {webhook} for TOKEN_READERS query[(tenant whose_webhook)] => 200 Webhook }
    change_webhook { "Change a webhook, and enable it if it was disabled; an absent field keeps its value"
        Patch "/api/v1/deliveries/webhooks/" {webhook} for ADMINS
            query[(tenant whose_webhook)] body WebhookChange => 200 WebhookPut }
    delete_webhook { "Delete a webhook, and forget how far its deliveries came"
        Delete "/api/v1/deliveries/webhooks/" {webhook} for ADMINS query[(tenant whose_webhook)] => 200 Changed }
    disable_webhook { "Deliver nothing more to a webhook until it is changed"
        Post "/api/v1/deliveries/webhooks/" {webhook} "/disable" for ADMINS
            query[(tenant whose_webhook)] => 200 Changed }
    rotate_webhook_secret { "Give a webhook a new secret; the old one is used as well for a while"
        Post "/api/v1/deliveries/webhooks/" {webhook} "/secrets" for ADMINS
            query[(tenant whose_webhook)] body RotateWebhookSecret or none => 201 WebhookSecret }
    test_webhook { "Send a webhook one event that says nothing, and show what it answers"
        Post "/api/v1/deliveries/webhooks/" {webhook} "/test" for ADMINS
            query[(tenant whose_webhook)] => 200 DeliveryAttempt }
    list_attempts { "List the last attempts to deliver to a webhook"
        Get "/api/v1/deliveries/webhooks/" {webhook} "/attempts" for TOKEN_READERS
            query[(tenant whose_webhook)] => 200 DeliveryAttempts }
    list_dead_letters { "List the events that could not be delivered to a webhook and were set aside"
        Get "/api/v1/deliveries/webhooks/" {webhook} "/dead-letters" for TOKEN_READERS
            query[(tenant whose_webhook) page] => 200 DeadLetterList }
    retry_deliveries { "Send events again that were set aside"
        Post "/api/v1/deliveries/webhooks/" {webhook} "/retry" for ADMINS
            query[(tenant whose_webhook)] body RetryDeliveries or none
            => 200 DeliveriesSent or 202 DeliveryJob as ResendAnswer }
    replay_deliveries { "Send all events again from a record on"
        Post "/api/v1/deliveries/webhooks/" {webhook} "/replay" for ADMINS
            query[(tenant whose_webhook)] body ReplayDeliveries
            => 200 DeliveriesSent or 202 DeliveryJob as ResendAnswer }
    reconcile_deliveries { "Compare what was due with what was acknowledged, and send what is missing"
        Post "/api/v1/deliveries/webhooks/" {webhook} "/reconcile" for ADMINS
            query[(tenant whose_webhook)] body ReconcileDeliveries
            => 200 DeliveriesReconciled or 202 DeliveryJob as ReconcileAnswer }
    show_delivery_job { "Show how far the retry, replay or reconciliation of a webhook is, or how the last one ended"
        Get "/api/v1/deliveries/webhooks/" {webhook} "/job" for TOKEN_READERS
            query[(tenant whose_webhook)] => 200 DeliveryJob }

    // Tenants, projects, their ceilings, and users.
    list_tenants { "List tenants"
        Get "/api/v1/tenants" for TENANCY query[page] => 200 TenantList }
    create_tenant { "Create a tenant"
        Post "/api/v1/tenants" for OPERATOR body NewTenant => 201 TenantPut }
    show_tenant { "Show a tenant"
        Get "/api/v1/tenants/" {tenant} for TENANCY => 200 Tenant }
    change_tenant { "Change a tenant and its limits, as PATCH does: this PUT does not replace; an absent field keeps its value, null clears it"
        Put "/api/v1/tenants/" {tenant} for QUOTA_AUTHORITY body TenantChange => 200 TenantPut }
    update_tenant { "Change a tenant and its limits; an absent field keeps its value, null clears it"
        Patch "/api/v1/tenants/" {tenant} for QUOTA_AUTHORITY body TenantChange => 200 TenantPut }
    tenant_usage { "Show how much of its budgets a tenant has used, as the queue counts it"
        Get "/api/v1/tenants/" {tenant} "/usage" for TENANCY
            query[(days "Length of the window in days. 90 if absent." days)] => 200 TenantUsage }
    delete_tenant { "Delete a tenant that has no leases and no allocations"
        Delete "/api/v1/tenants/" {tenant} for OPERATOR => 200 Changed }
    list_projects { "List projects"
        Get "/api/v1/projects" for TENANCY query[tenant page] => 200 ProjectList }
    create_project { "Create a project"
        Post "/api/v1/projects" for ADMINS body NewProject => 201 ProjectPut }
    show_project { "Show a project"
        Get "/api/v1/projects/" {project} for TENANCY query[(tenant whose_project)] => 200 Project }
    change_project { "Rename a project"
        Patch "/api/v1/projects/" {project} for ADMINS
            query[(tenant whose_project)] body ProjectChange => 200 ProjectPut }
    delete_project { "Delete a project that has no leases and no allocations"
        Delete "/api/v1/projects/" {project} for ADMINS query[(tenant whose_project)] => 200 Changed }
    set_pool_access { "Set how the work of a project is admitted to a pool"
        Put "/api/v1/projects/" {project} "/pool-access" for QUOTA_AUTHORITY
            query[(tenant whose_project)] body PoolAccessChange => 200 ProjectPut }
    list_ceilings { "List the cost ceilings of a project and its app instances"
        Get "/api/v1/projects/" {project} "/ceilings" for TENANCY
            query[(tenant whose_project) page] => 200 CeilingList }
    show_ceiling { "Show a cost ceiling and the amounts that count against it"
        Get "/api/v1/projects/" {project} "/ceiling" for TENANCY query[ceiling] => 200 Ceiling }
    put_ceiling { "Set the cost ceiling of a project or app instance; the amount already spent is kept"
        Put "/api/v1/projects/" {project} "/ceiling" for QUOTA_AUTHORITY
            query[ceiling] body CeilingChange => 200 CeilingPut }
    delete_ceiling { "Delete a cost ceiling and the amount spent under it"
        Delete "/api/v1/projects/" {project} "/ceiling" for QUOTA_AUTHORITY query[ceiling] => 200 Changed }
    list_users { "List users"
        Get "/api/v1/users" for TENANCY query[tenant page] => 200 UserList }
    create_user { "Create a user"
        Post "/api/v1/users" for ADMINS body NewUser => 201 UserPut }
    show_user { "Show a user"
        Get "/api/v1/users/" {user} for TENANCY query[(tenant whose_user)] => 200 User }
    change_user { "Rename a user"
        Patch "/api/v1/users/" {user} for ADMINS query[(tenant whose_user)] body UserChange => 200 UserPut }
    delete_user { "Delete a user"
        Delete "/api/v1/users/" {user} for ADMINS query[(tenant whose_user)] => 200 Changed }

    // App runtimes.
    list_usage_units { "List the units in which app runtimes report usage"
        Get "/api/v1/usage-units" for CATALOG query[page] => 200 UsageUnitList }
    create_usage_unit { "Define a usage unit of this site"
        Post "/api/v1/usage-units" for OPERATOR body NewUsageUnit => 201 UsageUnitPut }
    list_unit_prices { "List the prices of usage units"
        Get "/api/v1/unit-prices" for PRICE_READERS query[page] => 200 UnitPriceList }
    create_unit_price { "Set the price of a usage unit from an instant on"
        Post "/api/v1/unit-prices" for OPERATOR body NewUnitPrice => 201 UnitPricePut }
    list_apps { "List the kinds of apps"
        Get "/api/v1/apps" for CATALOG query[page] => 200 AppList }
    create_app { "Register a kind of app"
        Post "/api/v1/apps" for OPERATOR body NewApp => 201 AppPut }
    show_app { "Show a kind of app"
        Get "/api/v1/apps/" {app} for CATALOG => 200 App }
    change_app { "Change the origin or the usage units of a kind of app"
        Patch "/api/v1/apps/" {app} for OPERATOR body AppChange => 200 AppPut }
    delete_app { "Delete a kind of app that has no instances"
        Delete "/api/v1/apps/" {app} for OPERATOR => 200 Changed }
    list_app_instances { "List app instances: the runtimes of projects, and those of the platform"
        Get "/api/v1/app-instances" for PRICE_READERS query[tenant (project of_project) page] => 200 AppInstanceList }
    create_app_instance { "Register a runtime of a project"
        Post "/api/v1/app-instances" for ADMINS body NewAppInstance => 201 AppInstancePut }
    show_app_instance { "Show an app instance"
        Get "/api/v1/app-instances/" {app_instance} for PRICE_READERS query[(tenant whose_app)] => 200 AppInstance }
    change_app_instance { "Rename an app instance; nothing else of it can change"
        Patch "/api/v1/app-instances/" {app_instance} for ADMINS
            query[(tenant whose_app)] body AppInstanceChange => 200 AppInstancePut }
    delete_app_instance { "Delete an app instance that has no leases, allocations or attachments"
        Delete "/api/v1/app-instances/" {app_instance} for ADMINS query[(tenant whose_app)] => 200 Changed }
    record_usage { "Report usage of app runtimes: one record, several, or CloudEvents"
        Post "/api/v1/usage-records" for USAGE_REPORTERS
            body UsageReports => 201 UsageAccepted or 200 UsageAnswer as UsageAnswer }
    show_usage_record { "Show a usage record by the ID that its source gave it"
        Get "/api/v1/usage-records/" {id} for USAGE_RECORD_READERS
            query[
                (source "Who reported it: the name of the token. The name of the caller's own token if absent." text)
                (tenant "Tenant of the token that reported it: name or number. That of the caller if absent; `-` for an operator." text)
            ] => 200 UsageRecord }
    list_refused_usage { "List the usage of a month that entitlements refused"
        Get "/api/v1/refused-usage" for LEDGER_READERS
            query[(month "Month as YYYY-MM. The present one if absent." text) tenant] => 200 RefusedUsageList }
    list_entitlements { "List how much of usage units may be used in a month, and what was used"
        Get "/api/v1/entitlements" for TENANCY query[tenant (project of_project) page] => 200 EntitlementList }
    put_entitlement { "Set how much of a usage unit a project may use in a month, or may be used on an app instance"
        Put "/api/v1/entitlements" for QUOTA_AUTHORITY body EntitlementChange => 200 EntitlementPut }
    delete_entitlement { "Delete an entitlement: nothing limits the unit there any more"
        Delete "/api/v1/entitlements" for QUOTA_AUTHORITY
            query[
                (usage_unit "Usage unit." text required)
                (tenant "Tenant of the project or app instance: name or number. That of the token if absent." text)
                (project "Project: name or number. Absent if it is for all projects." text)
                (app_instance "App instance: name or number. Absent if it is for all." text)
            ] => 200 Changed }
    list_policies { "List the policies about the usage of app runtimes"
        Get "/api/v1/policies" for PRICE_READERS query[tenant page] => 200 AppPolicyList }
    put_policy { "Set the policy of an app, of an app for a tenant, or of an app instance, as a whole"
        Put "/api/v1/policies" for ADMINS body AppPolicyChange => 200 AppPolicyPut }
    list_sharing { "List the policies about sharing the cost of control planes"
        Get "/api/v1/sharing" for PRICE_READERS query[tenant page] => 200 SharingList }
    put_sharing { "Set how the cost of control planes is shared: for an app, for a tenant's use of it, or for an instance"
        Put "/api/v1/sharing" for ADMINS body SharingChange => 200 SharingPut }
    sharing_history { "Show all versions of a sharing policy"
        Get "/api/v1/sharing/" {app} "/history" for PRICE_READERS
            query[
                (tenant "Tenant: name or number. That of the token if absent; `-` for the policy for all tenants." text)
                (app_instance "App instance: name or number. Absent for the policy for all." text)
            ] => 200 SharingHistory }
    list_shares { "List the shares of a month's cost of control planes; those of an open month are a draft"
        Get "/api/v1/shares" for LEDGER_READERS
            query[
                (month "Month as YYYY-MM. The first month that is not closed if absent." text) tenant
                (app_instance "App instance: name or number. Absent for all." text) page
            ] => 200 CostShareList }
    policy_history { "Show all versions of a policy"
        Get "/api/v1/policies/" {app} "/history" for PRICE_READERS
            query[
                (tenant "Tenant: name or number. That of the token if absent; `-` for the policy for all tenants." text)
                (app_instance "App instance: name or number. Absent for the policy for all." text)
            ] => 200 AppPolicyHistory }
    list_attachments { "List what projects lend to shared runtimes"
        Get "/api/v1/attachments" for PRICE_READERS query[tenant (project of_project) page] => 200 AttachmentList }
    create_attachment { "Lend to a shared runtime of the tenant: the project pays for what the owner holds by it"
        Post "/api/v1/attachments" for HOLDERS body NewAttachment => 201 AttachmentPut }
    show_attachment { "Show an attachment that has not ended"
        Get "/api/v1/attachments/" {attachment} for PRICE_READERS => 200 Attachment }
    end_attachment { "End an attachment: what waits on its account is cancelled, what runs is no longer renewed"
        Post "/api/v1/attachments/" {attachment} "/end" for HOLDERS => 200 Changed }

    // Classes, pools, nodes, claims and agents.
    list_classes { "List resource classes"
        Get "/api/v1/classes" for CATALOG query[page] => 200 ClassList }
    create_class { "Create a resource class"
        Post "/api/v1/classes" for OPERATOR body NewClass => 201 ClassPut }
    show_class { "Show a resource class"
        Get "/api/v1/classes/" {class} for CATALOG => 200 Class }
    change_class { "Change a resource class"
        Patch "/api/v1/classes/" {class} for OPERATOR body ClassChange => 200 ClassPut }
    list_pools { "List pools"
        Get "/api/v1/pools" for CATALOG query[page] => 200 PoolList }
    create_pool { "Create a pool"
        Post "/api/v1/pools" for OPERATOR body NewPool => 201 PoolPut }
    show_pool { "Show a pool"
        Get "/api/v1/pools/" {pool} for CATALOG => 200 Pool }
    change_pool { "Change a pool"
        Patch "/api/v1/pools/" {pool} for OPERATOR body PoolChange => 200 PoolPut }
    delete_pool { "Delete a pool that has no nodes"
        Delete "/api/v1/pools/" {pool} for OPERATOR => 200 Changed }
    list_nodes { "List nodes"
        Get "/api/v1/nodes" for NODE_READERS
            query[
                (pool of_pool)
                (empty_for "Only nodes without leases, reservations and claims for this long or longer, such as `30m`." span)
                page
            ] => 200 NodeList }
    create_node { "Create a node"
        Post "/api/v1/nodes" for OPERATOR body NewNode => 201 NodePut }
    show_node { "Show a node"
        Get "/api/v1/nodes/" {node} for NODE_READERS => 200 Node }
    change_node { "Change a node"
        Patch "/api/v1/nodes/" {node} for OPERATOR body NodeChange => 200 NodePut }
    delete_node { "Delete a node that has no leases"
        Delete "/api/v1/nodes/" {node} for OPERATOR => 200 Changed }
    drain_node { "Drain a node: place no new work on it"
        Post "/api/v1/nodes/" {node} "/drain" for OPERATOR body WithReason or none => 200 NodePut }
    resume_node { "Resume a drained node: place work on it again"
        Post "/api/v1/nodes/" {node} "/resume" for OPERATOR body WithReason or none => 200 NodePut }
    lose_node { "Declare a node lost; its leases end at the instant at which it was last seen"
        Post "/api/v1/nodes/" {node} "/lose" for OPERATOR body LoseNode or none => 200 NodePut }
    return_node { "Return a lost node to service"
        Post "/api/v1/nodes/" {node} "/return" for OPERATOR => 200 NodePut }
    clear_quarantine { "Clear the quarantine of a node"
        Post "/api/v1/nodes/" {node} "/clear-quarantine" for OPERATOR => 200 NodePut }
    report_wipe { "Report whether a released node is clean"
        Post "/api/v1/nodes/" {node} "/wipe" for AGENTS body ReportWipe => 200 NodePut }
    report_failed_start { "Report that the work of an allocation could not be started on a node; its leases are released"
        Post "/api/v1/nodes/" {node} "/failed-starts" for AGENTS body FailedStart => 200 AllocationChanged }
    list_claims { "List nodes that are claimed for sensitive work; operators also see nodes that are being wiped or quarantined"
        Get "/api/v1/claims" for ALLOCATION_READERS query[page] => 200 ClaimList }
    claim_nodes { "Claim nodes for a user's sensitive work"
        Post "/api/v1/claims" for HOLDERS body NewClaim => 201 ClaimPut }
    release_nodes { "Release claimed nodes; they are wiped before anyone else can use them"
        Post "/api/v1/claims/release" for HOLDERS body ReleaseNodes => 200 ClaimPut }
    list_windows { "List maintenance windows that have not ended"
        Get "/api/v1/windows" for OPERATOR query[page] => 200 WindowList }
    reserve_nodes { "Reserve nodes for maintenance; the holders of leases on them are told"
        Post "/api/v1/windows" for OPERATOR body NewWindow => 201 WindowPut }
    unreserve_nodes { "Cancel a maintenance window"
        Delete "/api/v1/windows/" {window} for OPERATOR => 200 Changed }
    register_agent { "Register an agent with its node"
        Post "/api/v1/nodes/" {node} "/agent" for AGENTS body RegisterAgent => 200 AgentRegistered }
    detach_agent { "Detach the agent of a node, so that another agent can register"
        Delete "/api/v1/nodes/" {node} "/agent" for OPERATOR => 200 DetachedAgent }
    heartbeat { "Send a heartbeat; the answer lists the leases to tear down"
        Post "/api/v1/nodes/" {node} "/heartbeat" for AGENTS body Heartbeat => 200 HeartbeatAnswer }
    confirm_teardowns { "Confirm the teardown of leases"
        Post "/api/v1/nodes/" {node} "/teardowns" for AGENTS body ConfirmTeardowns => 200 TeardownsConfirmed }

    // Quotas.
    list_quotas { "List quotas and their current use"
        Get "/api/v1/quotas" for TENANCY query[tenant page] => 200 QuotaList }
    create_quota { "Create a quota"
        Post "/api/v1/quotas" for QUOTA_AUTHORITY body NewQuota => 201 QuotaPut }
    show_quota { "Show a quota"
        Get "/api/v1/quotas/" {quota} for TENANCY => 200 Quota }
    change_quota { "Change the limit of a quota"
        Patch "/api/v1/quotas/" {quota} for QUOTA_AUTHORITY body QuotaChange => 200 QuotaPut }
    delete_quota { "Delete a quota"
        Delete "/api/v1/quotas/" {quota} for QUOTA_AUTHORITY => 200 Changed }

    // Reports from the books.
    usage { "Report exact usage, by group"
        Get "/api/v1/usage" for BOOK_READERS
            query[
                books grouped bucketed (peak "Whether to report peaks, that is the most that was held at once." flag)
                (utilisation "Whether to report how busy the held capacity was. Not with `bucket`." flag)
            ] => 200 UsageReport }
    capacity { "Report how capacity was used: held, tearing down, reserved, fenced, offline or idle"
        Get "/api/v1/usage/capacity" for READERS
            query[
                window (by "Group by pool or node, in addition to class." capacity_grouping) pool node class
            ] => 200 CapacityReport }
    costs { "Report costs, at the prices in force at each second"
        Get "/api/v1/costs" for BOOK_READERS query[books grouped bucketed] => 200 CostReport }
    cost_rate { "Report the hourly cost of the leases that are held now"
        Get "/api/v1/costs/rate" for BOOK_READERS query[books grouped] => 200 CostRate }
    forecast { "Forecast the cost of the current month"
        Get "/api/v1/costs/forecast" for BOOK_READERS
            query[books zone] => 200 Forecast }
    waste { "Report capacity that was held and not used, idle, or fragmented"
        Get "/api/v1/waste" for BOOK_READERS
            query[
                books grouped
                (sort "Order of the groups: by name, or the largest cost or number of leases first. By name if absent." waste_order)
                (top "The most groups to report, the first in the order. All if absent." count)
                (headline "Only leases with this headline." waste_class)
                (limit "The most leases to list." page_limit)
            ] => 200 WasteReport }
    sensitivity { "Report how much workloads depend on each kind of resource"
        Get "/api/v1/sensitivity" for BOOK_READERS query[books] => 200 SensitivityReport }

    // Rate cards and charge policies.
    list_rate_cards { "List rate cards, the built-in card first"
        Get "/api/v1/rate-cards" for PRICE_READERS query[(pool of_pool) page] => 200 RateCardList }
    create_rate_card { "Create a rate card; prices that are not given are copied from the card in force"
        Post "/api/v1/rate-cards" for OPERATOR body NewRateCard => 201 RateCardPut }
    current_rate_card { "Show the rate card in force"
        Get "/api/v1/rate-cards/current" for PRICE_READERS
            query[(pool "The card in force in this pool: name or number." text)] => 200 RateCard }
    show_rate_card { "Show a rate card, by number or `built-in`"
        Get "/api/v1/rate-cards/" {card} for PRICE_READERS => 200 RateCard }
    change_rate_card { "Change a rate card that is not yet in force; an absent field keeps its value, null clears it"
        Patch "/api/v1/rate-cards/" {card} for OPERATOR body RateCardChange => 200 RateCardPut }
    delete_rate_card { "Delete a rate card that is not yet in force"
        Delete "/api/v1/rate-cards/" {card} for OPERATOR => 200 Changed }
    list_charge_policies { "List charge policies, the built-in policy first"
        Get "/api/v1/charge-policies" for CHARGE_READERS query[page] => 200 ChargePolicyList }
    create_charge_policy {
        "Create a charge policy; charges that are not given are copied from the policy in force"
        Post "/api/v1/charge-policies" for OPERATOR body NewChargePolicy => 201 ChargePolicyPut }
    change_charge_policy { "Change a charge policy that is not yet in force"
        Patch "/api/v1/charge-policies/" {policy} for OPERATOR body NewChargePolicy => 200 ChargePolicyPut }

    // The ledger, months, invoices, payments and tax.
    ledger_status { "Show how far usage is posted, which month is open, and whether settlement lags"
        Get "/api/v1/ledger" for LEDGER_READERS => 200 LedgerStatus }
    open_ledger { "Open the ledger: usage is posted from an hour on"
        Post "/api/v1/ledger/open" for LEDGER_KEEPERS body OpenLedger or none => 201 LedgerOpened }
    settle_ledger { "Settle all hours that are over now, and wait until they are posted"
        Post "/api/v1/ledger/settle" for LEDGER_KEEPERS => 200 LedgerSettled }
    ledger_draft { "Show usage that is rated and not posted yet, by payer"
        Get "/api/v1/ledger/draft" for LEDGER_READERS query[tenant (project of_project) currency] => 200 LedgerDraft }
    list_entries { "List entries of the ledger"
        Get "/api/v1/ledger/entries" for LEDGER_READERS
            query[
                tenant (project of_project) currency (month "Only booked in this month." month)
                (kind "Only of this kind." entry_kind)
                (account "Only on an account of this kind." account_kind) page
            ] => 200 LedgerEntryList }
    post_entry { "Book an entry by hand; its amounts must sum to zero"
        Post "/api/v1/ledger/entries" for LEDGER_KEEPERS body NewLedgerEntry => 201 LedgerEntryPut }
    show_entry { "Show an entry"
        Get "/api/v1/ledger/entries/" {entry} for LEDGER_READERS => 200 LedgerEntry }
    explain_entry { "Explain where the amount of an entry comes from: leases, seconds, prices, factors and arithmetic"
        Get "/api/v1/ledger/entries/" {entry} "/explain" for LEDGER_READERS => 200 LedgerExplanation }
    list_balances { "List balances of accounts, derived from their entries"
        Get "/api/v1/ledger/balances" for LEDGER_READERS
            query[
                tenant (project of_project) currency (account "Only accounts of this kind." account_kind) page
            ] => 200 LedgerBalanceList }
    correct_entry { "Correct an entry: reverse it and, if an amount is given, replace it"
        Post "/api/v1/ledger/corrections" for LEDGER_KEEPERS body NewCorrection => 201 CorrectionPut }
    list_disputes { "List entries that are disputed"
        Get "/api/v1/ledger/disputes" for LEDGER_READERS query[tenant page] => 200 LedgerEntryList }
    dispute_entry { "Mark an entry as disputed"
        Post "/api/v1/ledger/disputes" for DISPUTERS body NewDispute => 201 LedgerEntryPut }
    close_dispute { "Close the dispute of an entry"
        Post "/api/v1/ledger/disputes/close" for DISPUTERS body NewDispute => 200 LedgerEntryPut }
    list_periods { "List the months of the ledger"
        Get "/api/v1/periods" for LEDGER_READERS query[page] => 200 PeriodList }
    show_period { "Show a month, what is missing before it can be closed, and its draft invoices"
        Get "/api/v1/periods/" {month} for LEDGER_READERS => 200 PeriodDetail }
    close_period { "Settle and close a month; its invoices are issued in the background"
        Post "/api/v1/periods/" {month} "/close" for LEDGER_KEEPERS => 202 PeriodClosing }
    list_invoices { "List invoices and credit notes"
        Get "/api/v1/invoices" for INVOICE_READERS
            query[
                tenant currency (month "Only for this month." month)
                (status "Only with this status." invoice_status) page
            ] => 200 InvoiceList }
    draft_invoices { "Show what the invoices of a tenant for an open month would be now"
        Get "/api/v1/invoices/draft" for INVOICE_READERS
            query[
                (tenant "Tenant: name or number. The tenant of the token if absent." text)
                (month "Month that is not closed. The first open month if absent." month) currency invoice_format
            ] => 200 InvoiceDrafts also "text/csv" "text/html" }
    show_invoice { "Show an invoice or credit note, as JSON, for a spreadsheet, or as a page to print"
        Get "/api/v1/invoices/" {number} for INVOICE_READERS query[invoice_format]
            => 200 Invoice also "text/csv" "text/html" }
    prove_invoice { "Download the file that proves an invoice, for `leasehold-verify invoice`"
        Get "/api/v1/invoices/" {number} "/proof" for INVOICE_READERS
            query[(since_size "Prove, too, that the journal continues that of this size, for readers who know a checkpoint of it." sequence)]
            => 200 Bytes "application/octet-stream" }
    list_payments { "List payments"
        Get "/api/v1/payments" for INVOICE_READERS
            query[
                tenant currency (invoice "Only for this invoice." text) page
            ] => 200 PaymentList }
    record_payment { "Record a payment; the same reference with the same payment returns the first answer"
        Post "/api/v1/payments" for LEDGER_KEEPERS body NewPayment => 201 PaymentPut }
    list_prepaid { "List prepaid credit: what is left, what is reserved, and the credits"
        Get "/api/v1/prepaid" for LEDGER_READERS query[tenant (project of_project) currency page] => 200 PrepaidList }
    top_up { "Add prepaid credit; the same reference with the same figures returns the first answer"
        Post "/api/v1/prepaid/top-ups" for LEDGER_KEEPERS body NewTopUp => 201 PrepaidPut }
    put_prepaid_policy { "Set when prepaid credit is low, and what happens when it comes to its end"
        Put "/api/v1/prepaid/policy" for LEDGER_KEEPERS body PrepaidPolicyChange => 200 PrepaidPut }
    end_credit { "End a credit: what is not spent of it lapses now"
        Post "/api/v1/prepaid/ended-credits" for LEDGER_KEEPERS body CreditEnd => 200 PrepaidPut }
    show_tax_rate { "Show the tax rates of a tenant"
        Get "/api/v1/tenants/" {tenant} "/tax-rate" for INVOICE_READERS => 200 TaxRates }
    set_tax_rate { "Set the tax rate of a tenant from a month on"
        Put "/api/v1/tenants/" {tenant} "/tax-rate" for LEDGER_KEEPERS body TaxRateChange => 200 TaxRatePut }

    // Leases and explanations.
    list_leases {
        "List leases; closed leases only if a time, an allocation or the state `closed` is given"
        Get "/api/v1/leases" for LEASE_READERS
            query[
                tenant (project of_project) (user of_user) node pool class
                (allocation "Only of this allocation, including closed leases: its number, or `alloc-` and the number." text)
                (state "Only in this state." lease_state) priority
                (at "Only leases that were held at this instant, including closed ones." time)
                (from "Only leases that were held at this instant or later, including closed ones." time)
                (to "Only leases that were held before this instant, including closed ones." time)
                (window "A day, week, month or length of time up to now, instead of `from` and `to`." time) time_zone
                page
            ] => 200 LeaseList }
    request_lease { "Request a lease"
        Post "/api/v1/leases" for HOLDERS body RequestLease => 201 Granted or 202 Submitted as Requested }
    quote_lease { "Quote a request: what it would cost, and whether it would be granted; nothing is changed"
        Post "/api/v1/leases/quote" for HOLDERS body RequestLease => 200 Quote }
    batch { "Run several operations in one request, each with its own idempotency key and result"
        Post "/api/v1/leases/batch" for BATCHERS body Batch => 200 BatchResults }
    show_lease { "Show a lease, also if it is closed"
        Get "/api/v1/leases/" {lease} for LEASE_READERS => 200 Lease }
    explain_lease { "Explain why a lease was granted on its node: the checks, the scores and the deciding term"
        Get "/api/v1/leases/" {lease} "/explain" for EXPLAINED => 200 Explanation }
    explain_allocation { "Explain why an allocation waits, or why it was placed on its nodes"
        Get "/api/v1/allocations/" {allocation} "/explain" for EXPLAINED => 200 Explanation }
    explain_node { "Explain whether a node gets work, and why"
        Get "/api/v1/nodes/" {node} "/explain" for READERS => 200 NodeExplanation }
    explain_decision { "Explain a recorded decision, and decide it again from the journal"
        Get "/api/v1/audit/decisions/" {sequence} for EXPLAINED => 200 Explanation }
    timeline { "Tell everything about a correlation ID in order: requests, decisions, leases, usage, entries and invoices"
        Get "/api/v1/timeline/" {correlation_id} for ALLOCATION_READERS query[page] => 200 Timeline }
    lease_history { "List the records of a lease"
        Get "/api/v1/leases/" {lease} "/history" for LEASE_READERS query[page] => 200 History }
    renew_lease { "Renew a lease"
        Post "/api/v1/leases/" {lease} "/renew" for HOLDERS body Renew => 200 Renewed }
    release_lease { "Release a lease"
        Post "/api/v1/leases/" {lease} "/release" for HOLDERS body Release or none => 200 Released }
    revoke_lease { "Revoke a lease"
        Post "/api/v1/leases/" {lease} "/revoke" for ADMINS body Revoke or none => 200 Revoked }
    lease_ready { "Report that the holder of a revoked lease is ready before the grace ends"
        Post "/api/v1/leases/" {lease} "/ready" for HOLDERS => 200 ReadyAnswer }
    report_activity { "Report the activity of a lease"
        Post "/api/v1/leases/" {lease} "/activity" for HOLDERS body Activity => 200 Reported }
    confirm_teardown { "Confirm the teardown of one lease"
        Post "/api/v1/leases/" {lease} "/teardown" for AGENTS body Fences or none => 200 Confirmed }
    unfence_lease { "Clear the fence of a lease, so that its capacity is free again"
        Post "/api/v1/leases/" {lease} "/unfence" for OPERATOR body WithReason or none => 200 Unfenced }

    // Allocations.
    list_allocations {
        "List allocations; those that are over only if a time or one of their states is given"
        Get "/api/v1/allocations" for ALLOCATION_READERS
            query[
                tenant (project of_project) (user of_user)
                (pool "Only allocations that must run in this pool: name or number." text)
                (state "Only in this state." allocation_state) priority
                (at "Only allocations that were waiting or running at this instant." time)
                (from "Only allocations that were waiting or running at this instant or later." time)
                (to "Only allocations that were submitted before this instant." time)
                (window "A day, week, month or length of time up to now, instead of `from` and `to`." time) time_zone
                page
            ] => 200 AllocationList }
    submit_allocation { "Submit an allocation; it starts at once or waits in the queue"
        Post "/api/v1/allocations" for HOLDERS body SubmitAllocation => 201 Submitted }
    show_allocation { "Show an allocation with its attempts and, while it waits, the reason"
        Get "/api/v1/allocations/" {allocation} for ALLOCATION_READERS => 200 AllocationDetail }
    start_allocation { "Report that a staged allocation runs now"
        Post "/api/v1/allocations/" {allocation} "/start" for HOLDERS => 200 AllocationChanged }
    begin_checkpoint { "Report that a checkpoint is being written"
        Post "/api/v1/allocations/" {allocation} "/checkpointing" for HOLDERS => 200 AllocationChanged }
    report_checkpoint { "Report that a checkpoint was written; during the grace this also reports that nothing runs any more"
        Post "/api/v1/allocations/" {allocation} "/checkpoint" for HOLDERS
            body CheckpointReport => 200 AllocationChanged }
    complete_allocation { "Report that the work is complete or has failed; all leases are released"
        Post "/api/v1/allocations/" {allocation} "/complete" for HOLDERS
            body CompleteAllocation or none => 200 AllocationChanged }
    cancel_allocation { "Cancel an allocation that waits or runs"
        Post "/api/v1/allocations/" {allocation} "/cancel" for HOLDERS => 200 AllocationChanged }

    change_allocation { "Change an allocation that waits"
        Patch "/api/v1/allocations/" {allocation} for HOLDERS body AllocationChange => 200 AllocationChanged }
    hold_allocation { "Put an allocation that waits on hold: it keeps its place and does not start"
        Post "/api/v1/allocations/" {allocation} "/hold" for HOLDERS body WithReason or none => 200 AllocationChanged }
    release_hold { "Release the hold of an allocation"
        Post "/api/v1/allocations/" {allocation} "/release" for HOLDERS => 200 AllocationChanged }

    // Tokens.
    list_tokens { "List tokens, without their secrets"
        Get "/api/v1/tokens" for TOKEN_READERS query[tenant page] => 200 TokenList }
    issue_token { "Issue a token; its secret is shown only once"
        Post "/api/v1/tokens" for ADMINS body NewToken => 201 IssuedToken }
    show_token { "Show a token"
        Get "/api/v1/tokens/" {token} for TOKEN_READERS => 200 Token }
    revoke_token { "Revoke a token"
        Delete "/api/v1/tokens/" {token} for ADMINS => 200 Changed }

    // The journal: records, proofs, copies, the event stream; and settings.
    list_records { "List records as JSON"
        Get "/api/v1/audit/records" for LEASE_READERS
            query[
                (after "Only records after this sequence number. From the first record if absent." sequence) tenant
                (kind "Only records of this kind or family, such as `lease.granted` or `lease`." text) page
            ] => 200 RecordPage }
    audit_status { "Show what is signed, and what the scrub of the journal and the books found"
        Get "/api/v1/audit/status" for READERS => 200 AuditStatus }
    begin_scrub { "Begin a pass of the scrub now, which reads the whole journal again"
        Post "/api/v1/audit/scrub" for OPERATOR => 202 ScrubBegun }
    checkpoint { "Show the newest signed checkpoint"
        Get "/api/v1/audit/checkpoint" for ALL => 200 Checkpoint }
    list_keys { "List the signing keys of the journal, without their secrets"
        Get "/api/v1/audit/keys" for ALL => 200 KeyList }
    rotate_key { "Replace the signing key; until the rotation is finished, the old key signs as well"
        Post "/api/v1/audit/keys/rotate" for OPERATOR => 200 KeyRotated }
    finish_key_rotation { "Finish a rotation: the old key stops signing, and its secret is removed"
        Post "/api/v1/audit/keys/finish" for OPERATOR => 200 KeyRotationFinished }
    prove_inclusion { "Prove that a record is in the journal"
        Get "/api/v1/audit/proofs/inclusion" for ALL
            query[(sequence "Sequence number of the record." sequence required)] => 200 InclusionProof }
    prove_consistency { "Prove that the journal only grew"
        Get "/api/v1/audit/proofs/consistency" for ALL
            query[
                (from "Size of the journal that was seen before." sequence required)
                (to "Size to prove up to. The size of the newest checkpoint if absent." sequence)
            ] => 200 ConsistencyProof }
    export { "Export all records as JSON, one per line, with the names in use at the time"
        Get "/api/v1/audit/export" for READERS
            query[
                (from "Sequence number of the first record. The first of the journal if absent." sequence)
                (to "Sequence number of the last record. The newest if absent." sequence)
            ] => 200 Text "application/x-ndjson" }
    batches { "Download sealed batches as bytes, for a collector"
        Get "/api/v1/audit/batches" for READERS
            query[
                (
                    from
                    "A sequence number: the answer begins with the batch that contains it. The first record if absent."
                    sequence
                )
            ] => 200 Bytes "application/octet-stream" }
    events { "Stream records as server-sent events as they become durable"
        Get "/api/v1/events" for LEASE_READERS
            query[
                (after "Begin after this sequence number. The header `Last-Event-ID` does the same and takes precedence." sequence)
                tenant (kind "Only records of this kind or family, such as `lease.revoked` or `lease`." text)
                (node "Only records about leases on this node: name or number." text)
                (lease "Only records about this lease." text)
            ] => 200 Stream "text/event-stream" }
    show_settings { "Show the settings of the engine"
        Get "/api/v1/settings" for CATALOG => 200 Settings }
    change_settings { "Change the settings of the engine"
        Patch "/api/v1/settings" for OPERATOR body SettingsChange => 200 Changed }

    // The document, health and metrics.
    openapi { "Get this OpenAPI document"
        Get "/api/v1/openapi.json" for NOBODY_IN_PARTICULAR => 200 Text "application/json" }
    docs { "Show this document as a page for people"
        Get "/api/docs" for NOBODY_IN_PARTICULAR => 200 Text "text/html" }
    problem_page { "Explain a problem code: its cause, and what to do"
        Get "/problems/" {code} for NOBODY_IN_PARTICULAR => 200 Text "text/html" }
    healthz { "Check whether the daemon is alive"
        Get "/healthz" for NOBODY_IN_PARTICULAR => 200 Health }
    readyz { "Check whether the daemon accepts commands"
        Get "/readyz" for NOBODY_IN_PARTICULAR => 200 Health }
    metrics { "Get metrics in the Prometheus text format"
        Get "/metrics" for READERS => 200 Text "text/plain" }
} } }
