//! One method per endpoint, named by its id. A test holds this list to the table in `leasehold_api::endpoint`.

use crate::call::{Bytes, Call, Json, Text};
use crate::client::Client;
use crate::dice;
use leasehold_api::*;
use std::fmt::Display;

macro_rules! endpoints {
    ($(
        $(#[$about:meta])*
        $id:ident($($place:ident),*) $([$body:ty])? $method:ident $path:literal => $answer:ty;
    )*) => {
        impl Client {$(
            $(#[$about])*
            pub fn $id(&self, $($place: impl Display,)* $(body: &$body)?) -> Call<$answer> {
                let places = [$($place.to_string()),*];
                Call::new(self, Method::$method, $path, &places)$(.body::<$body>(body))?
            }
        )*}

        /// Id, method, path and whether there is a body.
        #[cfg(test)]
        const METHODS: &[(&str, Method, &str, bool)] =
            &[$((stringify!($id), Method::$method, $path, $(!stringify!($body).is_empty() ||)? false)),*];
    };
}

endpoints! {
    about() Get "/api/v1/about" => Json<About>;
    whoami() Get "/api/v1/whoami" => Json<WhoAmI>;

    list_tenants() Get "/api/v1/tenants" => Json<TenantList>;
    create_tenant() [NewTenant] Post "/api/v1/tenants" => Json<TenantPut>;
    show_tenant(tenant) Get "/api/v1/tenants/{tenant}" => Json<Tenant>;
    change_tenant(tenant) [TenantChange] Put "/api/v1/tenants/{tenant}" => Json<TenantPut>;
    /// Query: `days`.
    tenant_usage(tenant) Get "/api/v1/tenants/{tenant}/usage" => Json<TenantUsage>;
    delete_tenant(tenant) Delete "/api/v1/tenants/{tenant}" => Json<Changed>;
    /// Query: `tenant`.
    list_projects() Get "/api/v1/projects" => Json<ProjectList>;
    create_project() [NewProject] Post "/api/v1/projects" => Json<ProjectPut>;
    /// Query: `tenant`, as for the two below.
    show_project(project) Get "/api/v1/projects/{project}" => Json<Project>;
    change_project(project) [ProjectChange] Put "/api/v1/projects/{project}" => Json<ProjectPut>;
    delete_project(project) Delete "/api/v1/projects/{project}" => Json<Changed>;
    /// Query: `tenant`.
    list_ceilings(project) Get "/api/v1/projects/{project}/ceilings" => Json<CeilingList>;
    /// Query: `tenant`, `app_instance`, as for the two below.
    show_ceiling(project) Get "/api/v1/projects/{project}/ceiling" => Json<Ceiling>;
    put_ceiling(project) [CeilingChange] Put "/api/v1/projects/{project}/ceiling" => Json<CeilingPut>;
    delete_ceiling(project) Delete "/api/v1/projects/{project}/ceiling" => Json<Changed>;
    /// Query: `tenant`.
    list_users() Get "/api/v1/users" => Json<UserList>;
    create_user() [NewUser] Post "/api/v1/users" => Json<UserPut>;
    /// Query: `tenant`, as for the two below.
    show_user(user) Get "/api/v1/users/{user}" => Json<User>;
    change_user(user) [UserChange] Put "/api/v1/users/{user}" => Json<UserPut>;
    delete_user(user) Delete "/api/v1/users/{user}" => Json<Changed>;

    list_classes() Get "/api/v1/classes" => Json<ClassList>;
    create_class() [NewClass] Post "/api/v1/classes" => Json<ClassPut>;
    show_class(class) Get "/api/v1/classes/{class}" => Json<Class>;
    change_class(class) [ClassChange] Put "/api/v1/classes/{class}" => Json<ClassPut>;
    list_pools() Get "/api/v1/pools" => Json<PoolList>;
    create_pool() [NewPool] Post "/api/v1/pools" => Json<PoolPut>;
    show_pool(pool) Get "/api/v1/pools/{pool}" => Json<Pool>;
    change_pool(pool) [PoolChange] Put "/api/v1/pools/{pool}" => Json<PoolPut>;
    delete_pool(pool) Delete "/api/v1/pools/{pool}" => Json<Changed>;
    /// Query: `pool`.
    list_nodes() Get "/api/v1/nodes" => Json<NodeList>;
    create_node() [NewNode] Post "/api/v1/nodes" => Json<NodePut>;
    show_node(node) Get "/api/v1/nodes/{node}" => Json<Node>;
    change_node(node) [NodeChange] Put "/api/v1/nodes/{node}" => Json<NodePut>;
    delete_node(node) Delete "/api/v1/nodes/{node}" => Json<Changed>;
    clear_quarantine(node) Post "/api/v1/nodes/{node}/clear-quarantine" => Json<NodePut>;
    report_wipe(node) [ReportWipe] Post "/api/v1/nodes/{node}/wipe" => Json<NodePut>;
    list_claims() Get "/api/v1/claims" => Json<ClaimList>;
    claim_nodes() [NewClaim] Post "/api/v1/claims" => Json<ClaimPut>;
    release_nodes() [ReleaseNodes] Post "/api/v1/claims/release" => Json<ClaimPut>;
    drain_node(node) Post "/api/v1/nodes/{node}/drain" => Json<NodePut>;
    resume_node(node) Post "/api/v1/nodes/{node}/resume" => Json<NodePut>;
    lose_node(node) [LoseNode] Post "/api/v1/nodes/{node}/lose" => Json<NodePut>;
    return_node(node) Post "/api/v1/nodes/{node}/return" => Json<NodePut>;
    register_agent(node) [RegisterAgent] Post "/api/v1/nodes/{node}/agent" => Json<AgentRegistered>;
    detach_agent(node) Delete "/api/v1/nodes/{node}/agent" => Json<DetachedAgent>;
    heartbeat(node) [Heartbeat] Post "/api/v1/nodes/{node}/heartbeat" => Json<HeartbeatAnswer>;
    confirm_teardowns(node) [ConfirmTeardowns] Post "/api/v1/nodes/{node}/teardowns" => Json<TeardownsConfirmed>;

    /// Query: `tenant`.
    list_quotas() Get "/api/v1/quotas" => Json<QuotaList>;
    create_quota() [NewQuota] Post "/api/v1/quotas" => Json<QuotaPut>;
    show_quota(quota) Get "/api/v1/quotas/{quota}" => Json<Quota>;
    change_quota(quota) [QuotaChange] Put "/api/v1/quotas/{quota}" => Json<QuotaPut>;
    delete_quota(quota) Delete "/api/v1/quotas/{quota}" => Json<Changed>;

    /// Query: all of [`crate::BookQuery`].
    usage() Get "/api/v1/usage" => Json<UsageReport>;
    /// Query: `from`, `to`, `by` (pool or node), `pool`, `node`, `class`.
    capacity() Get "/api/v1/usage/capacity" => Json<CapacityReport>;
    /// Query: all of [`crate::BookQuery`] but `peak`.
    costs() Get "/api/v1/costs" => Json<CostReport>;
    /// Query: the filters of [`crate::BookQuery`], and `by`.
    cost_rate() Get "/api/v1/costs/rate" => Json<CostRate>;
    /// Query: the filters of [`crate::BookQuery`], and `zone`.
    forecast() Get "/api/v1/costs/forecast" => Json<Forecast>;
    /// Query: window and filters of [`crate::BookQuery`], `by` (tenant, project, node or class), `headline`, `limit`.
    waste() Get "/api/v1/waste" => Json<WasteReport>;
    /// Query: window and filters of [`crate::BookQuery`].
    sensitivity() Get "/api/v1/sensitivity" => Json<SensitivityReport>;

    /// Query: `pool`.
    list_rate_cards() Get "/api/v1/rate-cards" => Json<RateCardList>;
    create_rate_card() [NewRateCard] Post "/api/v1/rate-cards" => Json<RateCardPut>;
    /// Query: `pool`.
    current_rate_card() Get "/api/v1/rate-cards/current" => Json<RateCard>;
    show_rate_card(card) Get "/api/v1/rate-cards/{card}" => Json<RateCard>;
    change_rate_card(card) [RateCardChange] Put "/api/v1/rate-cards/{card}" => Json<RateCardPut>;
    delete_rate_card(card) Delete "/api/v1/rate-cards/{card}" => Json<Changed>;
    list_charge_policies() Get "/api/v1/charge-policies" => Json<ChargePolicyList>;
    create_charge_policy() [NewChargePolicy] Post "/api/v1/charge-policies" => Json<ChargePolicyPut>;
    change_charge_policy(policy) [NewChargePolicy] Put "/api/v1/charge-policies/{policy}" => Json<ChargePolicyPut>;

    /// Query: `tenant`, `project`, `user`, `node`, `pool`, `class`, `state`, `priority`.
    list_leases() Get "/api/v1/leases" => Json<LeaseList>;
    /// Granted; or, where others must make room first, an allocation that waits for them.
    request_lease() [RequestLease] Post "/api/v1/leases" => Json<Requested>;
    /// What it would cost and whether it would be admitted; nothing is changed.
    quote_lease() [RequestLease] Post "/api/v1/leases/quote" => Json<Quote>;
    /// Sends the operations as they are; [`Client::batch`] gives each a key first.
    batch_as_it_is() [Batch] Post "/api/v1/leases/batch" => Json<BatchResults>;
    show_lease(lease) Get "/api/v1/leases/{lease}" => Json<Lease>;
    explain_lease(lease) Get "/api/v1/leases/{lease}/explain" => Json<Explanation>;
    explain_allocation(allocation) Get "/api/v1/allocations/{allocation}/explain" => Json<Explanation>;
    explain_node(node) Get "/api/v1/nodes/{node}/explain" => Json<NodeExplanation>;
    explain_decision(sequence) Get "/api/v1/audit/decisions/{sequence}" => Json<Explanation>;
    lease_history(lease) Get "/api/v1/leases/{lease}/history" => Json<History>;
    renew_lease(lease) [Renew] Post "/api/v1/leases/{lease}/renew" => Json<Renewed>;
    release_lease(lease) [Release] Post "/api/v1/leases/{lease}/release" => Json<Released>;
    revoke_lease(lease) [Revoke] Post "/api/v1/leases/{lease}/revoke" => Json<Revoked>;
    lease_ready(lease) Post "/api/v1/leases/{lease}/ready" => Json<ReadyAnswer>;
    report_activity(lease) [Activity] Post "/api/v1/leases/{lease}/activity" => Json<Reported>;
    confirm_teardown(lease) [Fences] Post "/api/v1/leases/{lease}/teardown" => Json<Confirmed>;
    unfence_lease(lease) Post "/api/v1/leases/{lease}/unfence" => Json<Unfenced>;

    /// Query: `tenant`, `project`, `user`, `pool`, `state`, `priority`.
    list_allocations() Get "/api/v1/allocations" => Json<AllocationList>;
    submit_allocation() [SubmitAllocation] Post "/api/v1/allocations" => Json<Submitted>;
    show_allocation(allocation) Get "/api/v1/allocations/{allocation}" => Json<AllocationDetail>;
    start_allocation(allocation) Post "/api/v1/allocations/{allocation}/start" => Json<AllocationChanged>;
    begin_checkpoint(allocation) Post "/api/v1/allocations/{allocation}/checkpointing" => Json<AllocationChanged>;
    report_checkpoint(allocation) [CheckpointReport] Post "/api/v1/allocations/{allocation}/checkpoint" => Json<AllocationChanged>;
    complete_allocation(allocation) [CompleteAllocation] Post "/api/v1/allocations/{allocation}/complete" => Json<AllocationChanged>;
    cancel_allocation(allocation) Post "/api/v1/allocations/{allocation}/cancel" => Json<AllocationChanged>;

    /// Query: `tenant`.
    list_tokens() Get "/api/v1/tokens" => Json<TokenList>;
    /// The secret is absent where the first answer was lost and the request had to be sent again.
    issue_token() [NewToken] Post "/api/v1/tokens" => Json<IssuedToken>;
    show_token(token) Get "/api/v1/tokens/{token}" => Json<Token>;
    revoke_token(token) Delete "/api/v1/tokens/{token}" => Json<Changed>;

    /// Query: `after`, `tenant`, `kind`, `limit`.
    list_records() Get "/api/v1/audit/records" => Json<RecordPage>;
    checkpoint() Get "/api/v1/audit/checkpoint" => Json<Checkpoint>;
    /// Query: `sequence`.
    prove_inclusion() Get "/api/v1/audit/proofs/inclusion" => Json<InclusionProof>;
    /// Query: `from`, `to`.
    prove_consistency() Get "/api/v1/audit/proofs/consistency" => Json<ConsistencyProof>;
    /// Query: `from`, `to`. It may be long: [`Call::download`] hands it out in pieces.
    export() Get "/api/v1/audit/export" => Text;
    /// Query: `from`.
    batches() Get "/api/v1/audit/batches" => Bytes;
    show_settings() Get "/api/v1/settings" => Json<Settings>;
    change_settings() [SettingsChange] Put "/api/v1/settings" => Json<Changed>;

    openapi() Get "/api/v1/openapi.json" => Text;
    docs() Get "/api/docs" => Text;
    healthz() Get "/healthz" => Json<Health>;
    readyz() Get "/readyz" => Json<Health>;
    metrics() Get "/metrics" => Text;
}

impl Client {
    /// Many operations in one request. Each gets a key of its own unless it has one, so that the whole is safe to send
    /// again.
    pub fn batch(&self, mut operations: Vec<Operation>) -> Call<Json<BatchResults>> {
        for operation in &mut operations {
            operation.key.get_or_insert_with(dice::key);
        }
        self.batch_as_it_is(&Batch { operations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_endpoint_has_its_method() {
        let ours: BTreeMap<&str, _> =
            METHODS.iter().map(|&(id, method, path, body)| (id, (method.word(), path, body))).collect();
        for endpoint in endpoint::endpoints() {
            let id = match endpoint.id {
                // A stream, not a call.
                "events" => continue,
                "batch" => "batch_as_it_is",
                id => id,
            };
            let theirs = (endpoint.method.word(), endpoint.path, endpoint.body.is_some());
            assert_eq!(ours.get(id), Some(&theirs), "{id}");
        }
        assert_eq!(ours.len(), endpoint::endpoints().len() - 1, "a method without an endpoint");
    }
}
