//! Predicts the answers to commands about tokens, agents, tenants and prices, with refusals.

use crate::access::{is_expired, is_of_tenants, scope_fits};
use crate::apps::{AppInstanceWish, AppTypeWish, UnitPriceWish};
use crate::attachments::{AttachmentWish, RenewalWish};
use crate::foretell_quota::QuotaWish;
use crate::oracle::Oracle;
use crate::policies::PolicyWish;
use crate::prepaid_records::TopUpWish;
use crate::request::{Expected, RequestFacts};
use crate::shares::{CLOSE_FAULTS, INVOICE_FAULTS};
use crate::sharing::SharingWish;
use crate::sinks::SinkWish;
use crate::submission::Word;
use crate::usage_records::UsageWish;
use crate::window::WindowWish;
use crate::world::World;
use leasehold_model::body::{
    AccountingReconciled, AgentDetached, AgentRegistered, BudgetsPut, CeilingDeleted, CeilingPut, EntitlementPut,
    EntitlementScope, NodeCondition, PeriodStated, PrepaidPolicyPut, QuotaDeleted, QuotaPut, SinkDisabledCause,
    TenantPut, TokenIssued, TokenRevoked,
};
use leasehold_model::limits::{BUDGET_DAYS_MAX, BUDGET_HOURS_MAX, QUOTAS_PER_TENANT_MAX};
use leasehold_model::rate::{Charges, Currency, Prices};
use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, AppTypeNo, AttachmentNo, Body, Budgets, Instant, LeaseNo, Level,
    LimitKind, Measure, Name, NodeNo, PoolNo, ProjectNo, QuotaNo, QuotaScope, Role, SinkNo, TenantNo,
    TenantSettingsChange, TokenNo, TokenScope, UnitMeasure, UserNo, WhenOverQuota, WindowNo,
};

/// The caller of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub tenant: Option<TenantNo>,
    pub project: Option<ProjectNo>,
    pub user: Option<UserNo>,
    pub token: Option<TokenNo>,
    /// Whether it has an idempotency key, which belongs to the tenant.
    pub keyed: bool,
}

/// The contents of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    IssueToken {
        name: Name,
        hash: [u8; 32],
        role: Role,
        scope: TokenScope,
        expires_at: Option<Instant>,
    },
    RevokeToken(TokenNo),
    RegisterAgent {
        node: NodeNo,
        instance: u128,
        takeover: bool,
    },
    ReportCondition {
        node: NodeNo,
        generation: u64,
        load: Level,
        errors: Level,
        throttled: bool,
    },
    DetachAgent(NodeNo),
    ClaimNodes {
        nodes: Vec<NodeNo>,
        until: Option<Instant>,
        /// An operator's claim for a user.
        by_operator: bool,
    },
    ReleaseNodes(Vec<NodeNo>),
    ReportWipe {
        node: NodeNo,
        generation: Option<u64>,
        clean: bool,
    },
    ClearQuarantine(NodeNo),
    ReserveNodes(WindowWish),
    UnreserveNodes(WindowNo),
    LoseNode {
        node: NodeNo,
        last_seen: Instant,
    },
    /// Names what ended on a lost node after it was last seen.
    SettleLoss {
        loss: u64,
        leases: Vec<LeaseNo>,
    },
    /// The work of an allocation could not be started; without a generation an operator says so.
    FailStart {
        allocation: AllocationNo,
        node: Option<NodeNo>,
        generation: Option<u64>,
    },
    DeleteNode(NodeNo),
    DeleteTenant(TenantNo),
    DeleteProject(ProjectNo),
    DeleteUser(UserNo),
    ConfirmTeardown {
        node: NodeNo,
        generation: Option<u64>,
    },
    /// Absent fields keep their value; present and empty fields are cleared (SEMANTICS 4).
    UpdateTenant {
        tenant: TenantNo,
        max_nodes: Option<Option<u64>>,
        max_leases: Option<Option<u64>>,
        max_concurrent_allocations: Option<Option<u64>>,
        budgets: Box<BudgetWishes>,
        settings: TenantSettingsChange,
    },
    PutRateCard {
        card: Option<u32>,
        pool: Option<PoolNo>,
        from: Option<Instant>,
        prices: Prices,
    },
    DeleteRateCard(u32),
    PutChargePolicy {
        policy: Option<u32>,
        from: Option<Instant>,
        charges: Charges,
    },
    Lease(Box<RequestFacts>),
    PutCeiling(CeilingPut),
    DeleteCeiling(CeilingDeleted),
    RecordUsage(Box<UsageWish>),
    PutEntitlement(EntitlementPut),
    DeleteEntitlement(EntitlementScope),
    PutAppPolicy(PolicyWish),
    PutSharing(SharingWish),
    ShareCost {
        app_instance: AppInstanceNo,
        currency: Currency,
    },
    PutSink(SinkWish),
    DeleteSink(SinkNo),
    DisableSink {
        sink: SinkNo,
        cause: SinkDisabledCause,
    },
    Reconciled(AccountingReconciled),
    /// An invoice; whether shares are pending is predicted.
    IssueInvoice,
    /// What the records of a month say about a tenant.
    StatePeriod {
        tenant: TenantNo,
        stated: Box<PeriodStated>,
    },
    /// The end of the month that is being closed, likewise.
    FinishPeriod,
    /// A posting that was computed from so many records; whether it is too late for it is predicted.
    PostUsage {
        as_of_size: u64,
    },
    Submit(Box<AllocationSpec>, Option<WhenOverQuota>),
    PutQuota(Box<QuotaWish>),
    Say(AllocationNo, Word),
    TopUp(Box<TopUpWish>),
    PutPrepaidPolicy {
        tenant: TenantNo,
        project: Option<ProjectNo>,
        put: PrepaidPolicyPut,
    },
    EndCredit {
        tenant: TenantNo,
        project: Option<ProjectNo>,
        currency: Currency,
        credit: u64,
    },
    PutUsageUnit {
        name: Name,
        measure: UnitMeasure,
    },
    PutUnitPrice(UnitPriceWish),
    PutAppType(AppTypeWish),
    DeleteAppType(AppTypeNo),
    PutAppInstance(AppInstanceWish),
    DeleteAppInstance(AppInstanceNo),
    MakeAttachment(AttachmentWish),
    EndAttachment(AttachmentNo),
    Renew(Vec<RenewalWish>),
    /// A command for which only the checks of the caller are predicted.
    Other,
}

/// Changes to a tenant's budgets; absent fields keep their value, empty ones are cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetWishes {
    pub gpu_hours: Option<Option<u64>>,
    pub node_hours: Option<Option<u64>>,
    pub period_days: Option<Option<u64>>,
    pub fair_share: Option<Option<u64>>,
    pub burst_allowance: Option<Option<u64>>,
    pub max_pending: Option<Option<u64>>,
}

impl BudgetWishes {
    fn apply(&self, old: Budgets) -> Result<Option<Budgets>, &'static str> {
        if *self == Self::default() {
            return Ok(None);
        }
        let within = |value: Option<u64>, max: u64| match value {
            Some(value) if value < 1 || value > max => Err("bad_budget"),
            value => Ok(value),
        };
        let small = |value: Option<u64>| value.map(|value| u32::try_from(value).expect("within its limit"));
        let old_share = old.fair_share.map(u64::from);
        let days = self.period_days.unwrap_or(Some(u64::from(old.period_days))).unwrap_or(90);
        Ok(Some(Budgets {
            gpu_hours: within(self.gpu_hours.unwrap_or(old.gpu_hours), BUDGET_HOURS_MAX)?,
            node_hours: within(self.node_hours.unwrap_or(old.node_hours), BUDGET_HOURS_MAX)?,
            period_days: small(within(Some(days), u64::from(BUDGET_DAYS_MAX))?).expect("it was given"),
            fair_share: small(within(self.fair_share.unwrap_or(old_share), 1000)?),
            burst_allowance: within(self.burst_allowance.unwrap_or(old.burst_allowance), BUDGET_HOURS_MAX)?,
            max_pending: self.max_pending.unwrap_or(old.max_pending),
        }))
    }
}

/// The predicted answer, unless the command was decided before under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foretold {
    /// Refused with this code; nothing is recorded.
    Refused(&'static str),
    /// Refused with one of these codes.
    RefusedAs(Vec<&'static str>),
    /// Recorded with exactly these bodies, on behalf of that tenant.
    Sealed { tenant: Option<TenantNo>, bodies: Vec<Body> },
    /// Recorded; the first record has one of these bodies, on behalf of that tenant.
    OneOf { tenant: Option<TenantNo>, bodies: Vec<Body> },
    /// It was done before, by that record. The daemon answers with it if the request is the same.
    Again { sequence: u64 },
    /// Nothing is recorded: it gets the answer of the first record.
    FirstAnswer { sequence: u64 },
    /// Refused for one of several faults; which one is not predicted.
    Faulty,
    /// Recorded; the rules for records check the contents.
    Stands,
    /// No prediction, except that none of [`Self::CODES`] is returned.
    Open,
    /// The same, and neither is this code.
    OpenBut(&'static str),
}

impl Foretold {
    /// Codes that are always predicted; without a prediction they must not be returned.
    pub const CODES: &'static [&'static str] = &["token_not_live", "stale_generation"];
}

pub(crate) type Told = Result<Foretold, &'static str>;

pub(crate) fn sealed(tenant: Option<TenantNo>, body: impl Into<Body>) -> Told {
    Ok(Foretold::Sealed { tenant, bodies: vec![body.into()] })
}

impl Oracle {
    /// The predicted answer to a command that is decided at `now`, after all timers that are due by then.
    pub fn foretell(&self, caller: &Caller, wish: &Wish, now: Instant) -> Foretold {
        self.world.foretell(caller, wish, now).unwrap_or_else(Foretold::Refused)
    }
}

impl World {
    fn foretell(&self, caller: &Caller, wish: &Wish, now: Instant) -> Told {
        if caller.token.is_some_and(|no| !self.tokens.get(&no).is_some_and(|token| self.is_live(token, now))) {
            return Err("token_not_live");
        }
        if caller.keyed && caller.tenant.is_some_and(|tenant| !self.tenants.contains_key(&tenant)) {
            return Err("unknown_tenant");
        }
        match wish {
            Wish::IssueToken { .. } => self.foretell_issue(caller, wish, now),
            Wish::RevokeToken(token) => self.foretell_revoke(caller, *token, now),
            Wish::RegisterAgent { node, instance, takeover } => {
                let found = self.nodes.get(node).ok_or("unknown_node")?;
                if found.agent.is_some_and(|(_, running)| running != *instance) && !takeover {
                    return Err("agent_already_running");
                }
                let generation = found.last_generation + 1;
                sealed(caller.tenant, AgentRegistered { node: *node, generation, instance: *instance })
            }
            Wish::ReportCondition { node, generation, load, errors, throttled } => {
                self.check_generation(*node, Some(*generation))?;
                let (load, errors, throttled) = (*load, *errors, *throttled);
                if self.nodes[node].condition == (load, errors, throttled) {
                    return Err("condition_unchanged");
                }
                sealed(caller.tenant, NodeCondition { node: *node, load, errors, throttled })
            }
            Wish::DetachAgent(node) => {
                let found = self.nodes.get(node).ok_or("unknown_node")?;
                found.agent.ok_or("node_already")?;
                sealed(caller.tenant, AgentDetached { node: *node })
            }
            Wish::ConfirmTeardown { node, generation } => {
                self.check_generation(*node, *generation)?;
                Ok(Foretold::Open)
            }
            Wish::ClaimNodes { nodes, until, by_operator } => {
                self.foretell_claim(caller, (nodes, *until), *by_operator, now)
            }
            Wish::LoseNode { node, last_seen } => self.foretell_loss(*node, *last_seen, now),
            Wish::SettleLoss { loss, leases } => self.foretell_settling(*loss, leases),
            Wish::FailStart { allocation, node, generation } => {
                self.foretell_failed_start(caller, *allocation, *node, *generation)
            }
            Wish::ReleaseNodes(nodes) => self.foretell_giving_back(caller, nodes),
            Wish::ReportWipe { node, generation, clean } => self.foretell_wipe(*node, *generation, *clean),
            Wish::ClearQuarantine(node) => self.foretell_clearing(caller, *node),
            Wish::ReserveNodes(wish) => self.foretell_window(wish, now),
            Wish::UnreserveNodes(window) => self.foretell_window_cancelled(*window),
            Wish::DeleteNode(node) => self.foretell_node_gone(caller, *node),
            Wish::DeleteTenant(tenant) => self.foretell_tenant_gone(*tenant),
            Wish::DeleteProject(project) => self.foretell_project_gone(*project),
            Wish::DeleteUser(user) => self.foretell_user_gone(caller, *user),
            Wish::UpdateTenant { .. } => self.foretell_update(caller, wish),
            Wish::PutRateCard { card, pool, from, prices } => {
                self.foretell_card(caller.tenant, *card, (*pool, *from, prices), now)
            }
            Wish::DeleteRateCard(card) => self.foretell_card_deleted(caller.tenant, *card, now),
            Wish::PutChargePolicy { policy, from, charges } => {
                self.foretell_policy(caller.tenant, *policy, (*from, charges), now)
            }
            Wish::Lease(facts) => match self.fault_of_holders(facts) {
                Some(fault) => Err(fault),
                None if self.fault_of(facts).is_some() => Ok(Foretold::Faulty),
                // Only one that evicts would have to wait.
                None if self.is_full(facts.tenant) => match self.expect_request(facts, now) {
                    Expected::Refused(fault) => Err(fault),
                    _ => Ok(Foretold::Stands),
                },
                None => Ok(Foretold::Stands),
            },
            Wish::PutCeiling(put) => self.foretell_ceiling(caller.tenant, put),
            Wish::DeleteCeiling(gone) => self.foretell_ceiling_deleted(caller.tenant, gone),
            Wish::PutQuota(put) => self.foretell_quota(caller, put, now),
            Wish::Submit(spec, when_over_quota) => self.foretell_submission(caller, spec, *when_over_quota, now),
            Wish::Say(number, word) => self.foretell_word(caller, *number, *word, now),
            Wish::TopUp(wish) => self.foretell_top_up(caller, wish, now),
            Wish::PutPrepaidPolicy { tenant, project, put } => {
                self.foretell_prepaid_policy(caller, (*tenant, *project), put)
            }
            Wish::EndCredit { tenant, project, currency, credit } => {
                self.foretell_credit_end(caller, (*tenant, *project), (*currency, *credit), now)
            }
            Wish::PutUsageUnit { name, measure } => self.foretell_unit(caller, name, *measure),
            Wish::PutUnitPrice(wish) => self.foretell_unit_price(caller, wish, now),
            Wish::PutAppType(wish) => self.foretell_app_type(caller, wish),
            Wish::DeleteAppType(app_type) => self.foretell_app_type_gone(caller, *app_type),
            Wish::PutAppInstance(wish) => self.foretell_instance(caller, wish),
            Wish::DeleteAppInstance(number) => self.foretell_instance_gone(caller, *number),
            Wish::MakeAttachment(wish) => self.foretell_attachment(caller, wish),
            Wish::EndAttachment(number) => self.foretell_attachment_end(caller, *number),
            Wish::RecordUsage(wish) => self.foretell_usage(wish, now),
            Wish::PutEntitlement(put) => self.foretell_entitlement(caller, put),
            Wish::DeleteEntitlement(of) => self.foretell_entitlement_gone(caller, *of),
            Wish::PutAppPolicy(wish) => self.foretell_app_policy(caller, wish),
            Wish::PutSharing(wish) => self.foretell_sharing(caller, wish),
            Wish::ShareCost { app_instance, currency } => self.foretell_share(*app_instance, *currency),
            Wish::PutSink(wish) => self.foretell_sink(caller, wish),
            Wish::DeleteSink(sink) => self.foretell_sink_gone(caller, *sink),
            Wish::DisableSink { sink, cause } => self.foretell_sink_disabled(caller, *sink, *cause),
            Wish::Reconciled(done) => self.foretell_reconciled(caller, done),
            Wish::IssueInvoice => self.foretell_end_of_month(INVOICE_FAULTS),
            Wish::StatePeriod { tenant, stated } => self.ledger.foretell_statement(*tenant, stated),
            Wish::FinishPeriod => self.foretell_end_of_month(CLOSE_FAULTS),
            Wish::PostUsage { as_of_size } => self.foretell_posting(*as_of_size),
            Wish::Renew(wishes) => Ok(self.foretell_renewals(caller, wishes, now)),
            Wish::Other => Ok(Foretold::Open),
        }
    }

    pub(crate) fn check_generation(&self, node: NodeNo, generation: Option<u64>) -> Result<(), &'static str> {
        let registered = self.nodes.get(&node).ok_or("unknown_node")?.agent.map(|(generation, _)| generation);
        if generation.is_some() && generation != registered { Err("stale_generation") } else { Ok(()) }
    }

    fn foretell_issue(&self, caller: &Caller, wish: &Wish, now: Instant) -> Told {
        let Wish::IssueToken { name, hash, role, scope, expires_at } = wish else { unreachable!("asked for one") };
        let beyond_caller = caller.tenant.is_some() && (!is_of_tenants(*role) || scope.tenant != caller.tenant);
        if beyond_caller || !scope_fits(*role, scope) {
            return Err("bad_token_scope");
        }
        let foreign = scope.tenant.is_some_and(|of| scope.app_instances.iter().any(|app| self.is_foreign(of, *app)));
        if let Some(code) = self.missing(scope).or(foreign.then_some("unknown_app_instance")) {
            return Err(code);
        }
        if expires_at.is_some_and(|end| end <= now) {
            return Err("token_expiry_past");
        }
        if self.tokens.values().any(|token| token.hash == *hash && !is_expired(token, now)) {
            return Err("token_exists");
        }
        if self.tokens_are_full(scope.tenant, now) {
            return Err("too_many_tokens");
        }
        let mut scope = scope.clone();
        scope.app_instances.sort();
        let token = TokenNo(self.next_number("token"));
        let (name, hash, role, expires_at) = (name.clone(), *hash, *role, *expires_at);
        sealed(scope.tenant, TokenIssued { token, name, hash, role, scope, expires_at })
    }

    fn foretell_revoke(&self, caller: &Caller, token: TokenNo, now: Instant) -> Told {
        let visible = |of: &TokenIssued| caller.tenant.is_none() || of.scope.tenant == caller.tenant;
        let found = self.tokens.get(&token).filter(|found| !is_expired(found, now) && visible(found));
        let found = found.ok_or("unknown_token")?;
        if caller.tenant.is_some() && !is_of_tenants(found.role) {
            return Err("bad_token_scope");
        }
        sealed(found.scope.tenant, TokenRevoked { token })
    }

    fn foretell_update(&self, caller: &Caller, wish: &Wish) -> Told {
        let Wish::UpdateTenant { tenant, max_nodes, max_leases, max_concurrent_allocations, budgets, settings } = wish
        else {
            unreachable!("asked for one")
        };
        let visible = caller.tenant.is_none_or(|own| own == *tenant);
        let mut put: TenantPut = self.tenants.get(tenant).filter(|_| visible).ok_or("unknown_tenant")?.clone();
        let mut bodies: Vec<Body> = Vec::new();
        if let Some(name) = &settings.name {
            let taken = self.tenants.values().any(|other| other.tenant != *tenant && other.settings.name == *name);
            if taken {
                return Err("name_taken");
            }
            put.settings.name = name.clone();
        }
        if let Some(tag) = &settings.accounting_tag {
            put.settings.accounting_tag = tag.clone();
        }
        if let Some(priority) = settings.max_priority {
            put.settings.max_priority = priority;
        }
        if let Some(quanta) = settings.max_evicted_quanta_per_hour {
            put.settings.max_evicted_quanta_per_hour = quanta;
        }
        if let Some(when_over_quota) = settings.when_over_quota {
            put.settings.when_over_quota = when_over_quota;
        }
        if let Some(contact) = &settings.contact {
            put.settings.contact = contact.clone();
        }
        if let Some(address) = &settings.billing_address {
            put.settings.billing_address = address.clone();
        }
        if let Some(tax_id) = &settings.tax_id {
            put.settings.tax_id = tax_id.clone();
        }
        let names_tenant_field = settings.name.is_some()
            || settings.accounting_tag.is_some()
            || settings.max_priority.is_some()
            || settings.max_evicted_quanta_per_hour.is_some()
            || settings.contact.is_some()
            || settings.when_over_quota.is_some()
            || settings.billing_address.is_some()
            || settings.tax_id.is_some();

        let scope = QuotaScope::of_tenant(*tenant);
        let mut count = self.quotas.values().filter(|quota| quota.put.scope.tenant == *tenant).count();
        let mut next = self.next_number("quota");
        let limits = [
            (Measure::Nodes, max_nodes),
            (Measure::Leases, max_leases),
            (Measure::Allocations, max_concurrent_allocations),
        ];
        for (measure, change) in limits {
            let Some(change) = change else { continue };
            let mut own = self.quotas.values().filter(|q| q.put.scope == scope && q.put.measure == measure);
            let own = own.next();
            let evict_own_lower = own.is_some_and(|own| own.put.evict_own_lower);
            match (own.map(|own| own.put.quota), *change) {
                (None, None) => {}
                (Some(quota), None) => {
                    count -= 1;
                    bodies.push(QuotaDeleted { quota }.into());
                }
                (found, Some(limit)) => {
                    let quota = found.unwrap_or(QuotaNo(next));
                    if found.is_none() {
                        if count >= QUOTAS_PER_TENANT_MAX {
                            return Err("too_many_quotas");
                        }
                        count += 1;
                        next += 1;
                    }
                    let limit = LimitKind::Hard { limit };
                    let scope = scope.clone();
                    bodies.push(QuotaPut { quota, scope, measure, limit, temporary: None, evict_own_lower }.into());
                }
            }
        }
        let of_budgets = budgets.apply(self.budgets.get(tenant).cloned().unwrap_or_default())?;
        bodies.extend(of_budgets.map(|budgets| BudgetsPut { tenant: *tenant, budgets }.into()));
        if names_tenant_field || bodies.is_empty() {
            bodies.insert(0, put.into());
        }
        Ok(Foretold::Sealed { tenant: Some(*tenant), bodies })
    }

    /// The next number of a kind.
    pub(crate) fn next_number(&self, noun: &'static str) -> u32 {
        let next = self.highest.get(noun).map_or(0, |highest| highest + 1);
        u32::try_from(next).expect("small in every test")
    }
}
