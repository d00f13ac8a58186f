//! Random commands about tokens, agents, tenants and prices, and their translation for the oracle.

use crate::requests::{name, small};
use crate::{ceilings, prices};
use leasehold_engine::command::{
    ChangeAllocation, IssueToken, PutSink, RegisterAgent, RenewOne, ReportCondition, UpdateTenant,
};
use leasehold_engine::{Command, State};
use leasehold_model::body::{CeilingDeleted, CeilingPut, EntitlementPut, PrepaidPolicyPut, PrepaidToppedUp};
use leasehold_model::{
    Address, AppInstanceNo, Identity, Instant, Level, NodeNo, Priority, ProjectNo, Role, TenantNo,
    TenantSettingsChange, TokenNo, TokenScope, UserNo, WhenOverQuota,
};
use leasehold_oracle::Dice;
use leasehold_oracle::{
    AppInstanceWish, AppTypeWish, AttachmentWish, BudgetWishes, Change, PolicyWish, QuotaWish, RenewalWish,
    SharingWish, SinkWish, TopUpWish, UnitPriceWish, UsageWish, WindowWish, Wish, Word,
};

/// A command in the oracle's types.
pub(crate) fn wish(command: &Command) -> Wish {
    match command {
        Command::IssueToken(issue) => Wish::IssueToken {
            name: issue.name.clone(),
            hash: issue.hash,
            role: issue.role,
            scope: issue.scope.clone(),
            expires_at: issue.expires_at,
        },
        Command::RevokeToken(token) => Wish::RevokeToken(*token),
        Command::RegisterAgent(register) => {
            Wish::RegisterAgent { node: register.node, instance: register.instance, takeover: register.takeover }
        }
        Command::ReportCondition(report) => Wish::ReportCondition {
            node: report.node,
            generation: report.generation,
            load: report.load,
            errors: report.errors,
            throttled: report.throttled,
        },
        Command::DetachAgent(node) => Wish::DetachAgent(*node),
        Command::ClaimNodes(claim) => {
            Wish::ClaimNodes { nodes: claim.nodes.clone(), until: claim.until, by_operator: false }
        }
        Command::ClaimForUser(claim) => {
            Wish::ClaimNodes { nodes: claim.nodes.clone(), until: claim.until, by_operator: true }
        }
        Command::LoseNode(lost) => Wish::LoseNode { node: lost.node, last_seen: lost.last_seen },
        Command::SettleLoss(settle) => {
            Wish::SettleLoss { loss: settle.loss, leases: settle.leases.iter().map(|ended| ended.lease).collect() }
        }
        Command::FailStart(failed) => {
            Wish::FailStart { allocation: failed.allocation, node: failed.node, generation: failed.generation }
        }
        Command::ReleaseNodes(nodes) => Wish::ReleaseNodes(nodes.clone()),
        Command::ReportWipe(report) => {
            Wish::ReportWipe { node: report.node, generation: report.generation, clean: report.clean }
        }
        Command::ReserveNodes(reserve) => Wish::ReserveNodes(WindowWish {
            nodes: reserve.nodes.clone(),
            from: reserve.from,
            until: reserve.until,
            reason: reserve.reason.clone(),
        }),
        Command::UnreserveNodes(window) => Wish::UnreserveNodes(*window),
        Command::ClearQuarantine(node) => Wish::ClearQuarantine(*node),
        Command::DeleteNode(node) => Wish::DeleteNode(*node),
        Command::DeleteTenant(tenant) => Wish::DeleteTenant(*tenant),
        Command::DeleteProject(project) => Wish::DeleteProject(*project),
        Command::DeleteUser(user) => Wish::DeleteUser(*user),
        Command::ConfirmTeardown(confirm) => {
            Wish::ConfirmTeardown { node: confirm.node, generation: confirm.generation }
        }
        Command::UpdateTenant(update) => Wish::UpdateTenant {
            tenant: update.tenant,
            max_nodes: update.max_nodes,
            max_leases: update.max_leases,
            max_concurrent_allocations: update.max_concurrent_allocations,
            budgets: Box::new(BudgetWishes {
                gpu_hours: update.gpu_hours_budget,
                node_hours: update.node_hours_budget,
                period_days: update.budget_period_days,
                fair_share: update.fair_share_target,
                burst_allowance: update.burst_allowance,
                max_pending: update.max_pending,
            }),
            settings: update.settings.clone(),
        },
        Command::PutRateCard(put) => {
            Wish::PutRateCard { card: put.card, pool: put.pool, from: put.from, prices: put.prices.clone() }
        }
        Command::DeleteRateCard(card) => Wish::DeleteRateCard(*card),
        Command::PutChargePolicy(put) => {
            Wish::PutChargePolicy { policy: put.policy, from: put.from, charges: put.charges.clone() }
        }
        Command::PutCeiling(put) => Wish::PutCeiling(CeilingPut {
            project: put.project,
            app_instance: put.app_instance,
            amount: put.amount,
            currency: put.currency,
            mode: put.mode,
        }),
        Command::DeleteCeiling(gone) => {
            Wish::DeleteCeiling(CeilingDeleted { project: gone.project, app_instance: gone.app_instance })
        }
        Command::PutQuota(put) => Wish::PutQuota(Box::new(QuotaWish {
            quota: put.quota,
            scope: put.scope.clone(),
            measure: put.measure,
            limit: put.limit,
            until: put.until,
            percent: put.percent.as_ref().map(|percent| (percent.limit, percent.burst_limit)),
            evict_own_lower: put.evict_own_lower,
        })),
        Command::SubmitAllocation(submit) => Wish::Submit(Box::new(submit.spec.clone()), submit.when_over_quota),
        Command::StartAllocation(number) => Wish::Say(*number, Word::Start),
        Command::BeginCheckpoint(number) => Wish::Say(*number, Word::BeginCheckpoint),
        Command::ReportCheckpoint(report) => Wish::Say(report.allocation, Word::Checkpoint(report.took)),
        Command::CompleteAllocation(done) => Wish::Say(done.allocation, Word::Complete(done.exit_status)),
        Command::CancelAllocation(number) => Wish::Say(*number, Word::Cancel),
        Command::HoldAllocation(hold) => Wish::Say(hold.allocation, Word::Hold),
        Command::ReleaseHold(number) => Wish::Say(*number, Word::Release),
        Command::ChangeAllocation(change) => {
            let ChangeAllocation { allocation, priority, pool, walltime, ttl, requeue } = *change;
            Wish::Say(allocation, Word::Change(Change { priority, pool, walltime, ttl, requeue }))
        }
        Command::TopUp(put) => Wish::TopUp(Box::new(TopUpWish {
            tenant: put.tenant,
            project: put.project,
            put: PrepaidToppedUp {
                currency: put.currency,
                credit: 0,
                amount: put.amount,
                priority: put.priority,
                expires_at: put.expires_at,
                source: put.source,
                reference: put.reference.clone(),
            },
        })),
        Command::PutPrepaidPolicy(put) => Wish::PutPrepaidPolicy {
            tenant: put.tenant,
            project: put.project,
            put: PrepaidPolicyPut { currency: put.currency, policy: put.policy },
        },
        Command::PutUsageUnit(put) => Wish::PutUsageUnit { name: put.name.clone(), measure: put.measure },
        Command::PutUnitPrice(put) => Wish::PutUnitPrice(UnitPriceWish {
            unit: put.unit,
            app_type: put.app_type,
            currency: put.currency,
            price: put.price,
            from: put.from,
        }),
        Command::PutAppType(put) => Wish::PutAppType(AppTypeWish {
            app_type: put.app_type,
            slug: put.slug.clone(),
            origin: put.origin,
            units: put.units.clone(),
        }),
        Command::DeleteAppType(app_type) => Wish::DeleteAppType(*app_type),
        Command::PutAppInstance(put) => Wish::PutAppInstance(AppInstanceWish {
            app_instance: put.app_instance,
            project: put.project,
            name: put.name.clone(),
            app_type: put.app_type,
            mode: put.mode,
            scope: put.scope,
            backend: put.backend,
        }),
        Command::DeleteAppInstance(number) => Wish::DeleteAppInstance(*number),
        Command::MakeAttachment(make) => Wish::MakeAttachment(AttachmentWish {
            app_instance: make.app_instance,
            source_project: make.source_project,
            allocation: make.allocation,
        }),
        Command::EndAttachment(number) => Wish::EndAttachment(*number),
        Command::RecordUsage(usage) => Wish::RecordUsage(Box::new(UsageWish {
            tenant: usage.tenant,
            project: usage.project,
            user: usage.user,
            report: usage.report.clone(),
            known_to: usage.known_to,
        })),
        // Several together are those of one by one, all or none; stories of the engine have them.
        Command::RecordUsageTogether(_) => unreachable!("the simulator reports usage one by one"),
        Command::PutEntitlement(put) => {
            Wish::PutEntitlement(EntitlementPut { of: put.of, soft: put.soft, hard: put.hard })
        }
        Command::DeleteEntitlement(of) => Wish::DeleteEntitlement(*of),
        Command::PutAppPolicy(put) => Wish::PutAppPolicy(PolicyWish {
            of: put.of,
            units: put.units.clone(),
            attribution: put.attribution,
            billed_work: put.billed_work.clone(),
        }),
        Command::PutSharing(put) => Wish::PutSharing(SharingWish {
            of: put.of,
            control_plane_billable: put.control_plane_billable,
            distributable: put.distributable,
            sharing: put.sharing.clone(),
        }),
        Command::ShareCost(share) => Wish::ShareCost { app_instance: share.app_instance, currency: share.currency },
        Command::PutSink(put) => {
            let PutSink { sink, tenant, name, url, events, signature } = put.clone();
            Wish::PutSink(SinkWish { sink, tenant, name, url, events, signature })
        }
        Command::DeleteSink(sink) => Wish::DeleteSink(*sink),
        Command::DisableSink(disable) => Wish::DisableSink { sink: disable.sink, cause: disable.cause },
        Command::RecordReconciliation(done) => Wish::Reconciled(done.clone()),
        Command::IssueInvoice(_) => Wish::IssueInvoice,
        Command::StatePeriod(state) => Wish::StatePeriod { tenant: state.tenant, stated: Box::new(state.stated) },
        Command::FinishPeriod(_) => Wish::FinishPeriod,
        Command::PostUsage(post) => Wish::PostUsage { as_of_size: post.as_of_size },
        Command::Renew(renewals) => {
            let one = |one: &RenewOne| RenewalWish { lease: one.lease, ttl: one.ttl, reports: one.activity.is_some() };
            Wish::Renew(renewals.iter().map(one).collect())
        }
        Command::EndCredit(end) => {
            Wish::EndCredit { tenant: end.tenant, project: end.project, currency: end.currency, credit: end.credit }
        }
        #[rustfmt::skip]
        Command::Request(_) | Command::Release(_) | Command::Revoke(_) | Command::Ready(_)
        | Command::Unfence(_) | Command::ReportActivity(_) | Command::PutTenant(_) | Command::PutProject(_) | Command::SetPoolAccess(_)
        | Command::PutUser(_) | Command::PutPool(_) | Command::DeletePool(_) | Command::PutClass(_)
        | Command::PutNode(_) | Command::DrainNode(_) | Command::ResumeNode(_)
        | Command::ReturnNode(_) | Command::DeleteQuota(_) | Command::ChangeSettings(_)
        | Command::OpenLedger(_) | Command::SettleHour(_) | Command::CorrectEntry(_)
        | Command::AdjustLedger(_) | Command::DisputeEntry(_) | Command::ClosePeriod(_)
        | Command::RecordPayment(_) | Command::PutTaxRate(_)
        | Command::NoteEmptyNode(_) | Command::RotateKey(_) | Command::Heartbeat(_) | Command::NoticeClockJump(_) => Wish::Other,
    }
}

/// Most callers have no token, some a valid one, a few an invalid one.
pub(crate) fn some_token(state: &State, dice: &mut Dice) -> Option<TokenNo> {
    if !dice.one_in(4) {
        return None;
    }
    let known: Vec<TokenNo> = state.tokens().map(|token| token.number).collect();
    if dice.one_in(12) {
        return Some(TokenNo(small(dice, 30)));
    }
    (!known.is_empty()).then(|| *dice.pick(&known))
}

fn tenant_or_operator(dice: &mut Dice) -> Identity {
    let tenant = dice.one_in(3).then(|| TenantNo(small(dice, 4)));
    Identity { tenant, ..Identity::default() }
}

pub(crate) fn any(state: &State, now: Instant, dice: &mut Dice) -> (Identity, Command) {
    let node = NodeNo(small(dice, 5));
    match dice.below(28) {
        0..6 => issue(state, now, dice),
        6..9 => (tenant_or_operator(dice), Command::RevokeToken(TokenNo(small(dice, 12)))),
        9..12 => {
            let instance = u128::from(dice.below(3));
            let register = RegisterAgent { node, instance, takeover: dice.one_in(3) };
            (Identity::default(), Command::RegisterAgent(register))
        }
        12..15 => {
            let report = ReportCondition {
                node,
                generation: some_generation(state, node, dice).unwrap_or(0),
                load: *dice.pick(Level::ALL),
                errors: if dice.one_in(3) { *dice.pick(Level::ALL) } else { Level::Normal },
                throttled: dice.one_in(4),
            };
            (Identity::default(), Command::ReportCondition(report))
        }
        15 => (Identity::default(), Command::DetachAgent(node)),
        16..20 => (tenant_or_operator(dice), Command::UpdateTenant(update(dice))),
        20..24 => (Identity::default(), prices::any(now, dice)),
        _ => (tenant_or_operator(dice), ceilings::any(state, dice)),
    }
}

/// Mostly the current generation of the node, sometimes another.
pub(crate) fn some_generation(state: &State, node: NodeNo, dice: &mut Dice) -> Option<u64> {
    match state.node(node).and_then(|node| node.agent) {
        Some(agent) if !dice.one_in(4) => Some(agent.generation),
        Some(agent) => Some(agent.generation.saturating_sub(1) + 2 * dice.below(2)),
        None => dice.one_in(4).then(|| dice.below(3)),
    }
}

fn update(dice: &mut Dice) -> UpdateTenant {
    fn some<T>(dice: &mut Dice, value: impl FnOnce(&mut Dice) -> T) -> Option<T> {
        dice.one_in(3).then(|| value(dice))
    }
    fn cleared_or<T>(dice: &mut Dice, value: impl FnOnce(&mut Dice) -> T) -> Option<T> {
        (!dice.one_in(3)).then(|| value(dice))
    }
    let tenant = TenantNo(small(dice, 4));
    let settings = TenantSettingsChange {
        name: some(dice, |dice| name(&format!("tenant-{}", dice.below(9)))),
        accounting_tag: some(dice, |dice| cleared_or(dice, |dice| name(&format!("cc-{}", dice.below(3))))),
        max_priority: some(dice, |dice| *dice.pick(Priority::ALL)),
        max_evicted_quanta_per_hour: some(dice, |dice| cleared_or(dice, |dice| dice.below(9))),
        contact: None,
        when_over_quota: None,
        billing_address: None,
        tax_id: None,
    };
    let update = UpdateTenant {
        tenant,
        max_nodes: some(dice, |dice| cleared_or(dice, |dice| 1 + dice.below(4))),
        max_leases: some(dice, |dice| cleared_or(dice, |dice| 1 + dice.below(12))),
        max_concurrent_allocations: some(dice, |dice| cleared_or(dice, |dice| 1 + dice.below(4))),
        gpu_hours_budget: some(dice, |dice| cleared_or(dice, |dice| dice.below(4))),
        node_hours_budget: some(dice, |dice| cleared_or(dice, |dice| 1 + dice.below(9))),
        budget_period_days: some(dice, |dice| cleared_or(dice, |dice| dice.below(4))),
        fair_share_target: some(dice, |dice| cleared_or(dice, |dice| 100 * dice.below(12))),
        burst_allowance: some(dice, |dice| cleared_or(dice, |dice| 1 + dice.below(9))),
        max_pending: some(dice, |dice| cleared_or(dice, |dice| dice.below(9))),
        settings,
    };
    // Taken from what was drawn already: another draw would change what every kept seed does.
    let contact = update.max_pending.map(|n| n.map(|n| name(&format!("ops-{n}@example.org"))));
    let when_over_quota = update.max_leases.map(|n| n.map(|n| WhenOverQuota::ALL[usize::from(n % 3 == 0)]));
    let tax_id = update.max_nodes.map(|n| n.map(|n| name(&format!("tax-{n}"))));
    let lines = |n: u64| (0..n.min(3)).map(|line| name(&format!("line {line}"))).collect();
    let billing_address = update.burst_allowance.map(|n| n.and_then(|n| Address::new(lines(n))));
    let settings = TenantSettingsChange { contact, when_over_quota, billing_address, tax_id, ..update.settings };
    UpdateTenant { settings, ..update }
}

/// A token, mostly a valid one.
fn issue(state: &State, now: Instant, dice: &mut Dice) -> (Identity, Command) {
    let role = *dice.pick(Role::ALL);
    let identity = tenant_or_operator(dice);
    let projects: Vec<(ProjectNo, TenantNo)> = state.projects().map(|(no, project)| (no, project.tenant)).collect();
    let drawn = (ProjectNo(small(dice, 8)), TenantNo(small(dice, 4)));
    let (project, tenant) = if projects.is_empty() || dice.one_in(6) { drawn } else { *dice.pick(&projects) };
    let tenant = identity.tenant.filter(|_| !dice.one_in(6)).unwrap_or(tenant);
    let mut fitting = |on: bool| on != dice.one_in(16);
    let of_tenant = matches!(role, Role::TenantAdmin | Role::ProjectMember | Role::AppOperator);
    let scope = TokenScope {
        tenant: fitting(of_tenant).then_some(tenant),
        project: fitting(role == Role::ProjectMember).then_some(project),
        user: None,
        node: fitting(role == Role::NodeAgent).then(|| NodeNo(small(dice, 5))),
        app_instances: Vec::new(),
    };
    let apps = if role == Role::AppOperator { dice.below(4) } else { 0 };
    let app_instances = (0..apps).map(|_| AppInstanceNo(dice.below(9))).collect();
    let user = (of_tenant && dice.one_in(6)).then(|| UserNo(small(dice, 3)));
    let expires_at = match dice.below(12) {
        0 => Some(Instant(now.0 - dice.below(2))),
        1..5 => Some(Instant(now.0 + 1 + dice.below(120_000_000_000))),
        _ => None,
    };
    let hash = [u8::try_from(dice.below(40)).expect("small"); 32];
    let scope = TokenScope { user, app_instances, ..scope };
    (identity, Command::IssueToken(IssueToken { name: name("token"), hash, role, scope, expires_at }))
}
