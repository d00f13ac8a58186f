//! Random commands about app runtimes and what projects lend to them, and requests that name them. They are drawn from
//! dice of their own: other draws would change what every kept seed does.

use crate::requests::{name, small};
use leasehold_cell::Reply;
use leasehold_engine::command::{
    IssueToken, MakeAttachment, PutAppInstance, PutAppType, PutCeiling, PutQuota, PutUnitPrice, PutUsageUnit,
    RequestLease, SubmitAllocation,
};
use leasehold_engine::{AppInstance, Attachment, Command, State};
use leasehold_model::app::MODES_AND_SCOPES;
use leasehold_model::limits::UNIT_PRICE_MAX;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    AllocationNo, AllocationSpec, Amount, AppInstanceNo, AppOrigin, AppTypeNo, AttachmentNo, CeilingMode, ClassNo,
    ControlPlaneScope, HolderScope, Identity, Instant, LimitKind, Measure, OperatingMode, Priority, ProjectNo, Quanta,
    QuotaScope, RuntimeBackend, Span, TenantNo, UnitMeasure, UnitNo, UserNo,
};
use leasehold_oracle::{Dice, Oracle, RequestFacts};

/// How many commands [`founding`] makes.
pub(crate) const FOUNDING: u64 = 16;

/// A die from everything that was drawn so far.
fn own_die(state: &State, now: Instant, drawn: &str) -> Dice {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    Dice::new(drawn.bytes().fold(now.0.rotate_left(23) ^ state.size() << 19, mix))
}

/// The runtimes that a cluster has from the beginning.
pub(crate) fn founding(state: &State, step: u64) -> Option<Command> {
    let settings = state.settings();
    let mut dice = Dice::new(settings.ttl_max.0 ^ settings.heat_half_life.0 << 9 ^ state.size() << 40 ^ step << 50);
    match step {
        0..2 => Some(Command::PutAppType(PutAppType {
            app_type: None,
            slug: name(["slurm", "ray"][usize::from(step == 1)]),
            origin: *dice.pick(AppOrigin::ALL),
            units: vec![UnitNo(0), UnitNo(2), UnitNo(4)],
        })),
        2..9 => {
            let project = ProjectNo(u32::try_from(step - 2).expect("small"));
            (!dice.one_in(3)).then(|| Command::PutAppInstance(of_project(state, project, &mut dice)))
        }
        _ => Some(Command::MakeAttachment(attachment(state, &mut dice))),
    }
}

/// A command about the registry, at times.
pub(crate) fn any(state: &State, now: Instant) -> Option<(Identity, Command)> {
    let mut dice = own_die(state, now, "registry");
    if !dice.one_in(3) {
        return None;
    }
    let operator = Identity::default();
    Some(match dice.below(36) {
        0 => (operator, unit(&mut dice)),
        1 | 2 => (operator, price(state, now, &mut dice)),
        3 | 4 => (operator, app_type(state, &mut dice)),
        5 => (operator, Command::DeleteAppType(some_type(state, &mut dice))),
        6..12 => {
            let put = instance(state, &mut dice);
            let tenant = tenant_of(state, put.project).unwrap_or(TenantNo(small(&mut dice, 4)));
            (who(tenant, &mut dice), Command::PutAppInstance(put))
        }
        12..17 => {
            let number = limited_instance(state, &mut dice).unwrap_or_else(|| some_instance(state, &mut dice));
            let tenant = state.app_instance(number).map_or(TenantNo(small(&mut dice, 4)), |found| found.tenant);
            (who(tenant, &mut dice), Command::DeleteAppInstance(number))
        }
        17..25 => {
            let make = attachment(state, &mut dice);
            let tenant = tenant_of(state, make.source_project).unwrap_or(TenantNo(small(&mut dice, 4)));
            (who(tenant, &mut dice), Command::MakeAttachment(make))
        }
        25..29 => {
            let number = some_attachment(state, &mut dice);
            let tenant = state.attachment(number).map_or(TenantNo(small(&mut dice, 4)), |found| found.tenant);
            (who(tenant, &mut dice), Command::EndAttachment(number))
        }
        29 => (operator, Command::DeleteProject(tied_project(state, &mut dice)?)),
        30 | 31 => (operator, ceiling_of_lender(state, &mut dice)?),
        32 => (operator, quota_of_unused(state, &mut dice)?),
        _ => (operator, quota_of_lender(state, &mut dice)?),
    })
}

/// Mostly the tenant or an operator, sometimes another tenant.
pub(crate) fn who(tenant: TenantNo, dice: &mut Dice) -> Identity {
    let tenant = match dice.below(10) {
        0 => Some(TenantNo(small(dice, 4))),
        1..6 => Some(tenant),
        _ => None,
    };
    Identity { tenant, ..Identity::default() }
}

fn tenant_of(state: &State, project: ProjectNo) -> Option<TenantNo> {
    state.projects().find(|(number, _)| *number == project).map(|(_, found)| found.tenant)
}

fn projects_of(state: &State, tenant: TenantNo) -> Vec<ProjectNo> {
    state.projects().filter(|(_, project)| project.tenant == tenant).map(|(number, _)| number).collect()
}

fn instances(state: &State) -> Vec<&AppInstance> {
    state.app_instances_after(None).collect()
}

fn attachments(state: &State) -> Vec<&Attachment> {
    state.attachments_after(None).collect()
}

fn pick<T: Copy>(from: &[T], dice: &mut Dice) -> Option<T> {
    (!from.is_empty()).then(|| *dice.pick(from))
}

fn some_unit(state: &State, dice: &mut Dice) -> UnitNo {
    let known: Vec<UnitNo> = state.units().map(|unit| unit.number).collect();
    if dice.one_in(12) { UnitNo(small(dice, 80)) } else { *dice.pick(&known) }
}

fn some_type(state: &State, dice: &mut Dice) -> AppTypeNo {
    let known: Vec<AppTypeNo> = state.app_types().map(|found| found.number).collect();
    pick(&known, dice).filter(|_| !dice.one_in(12)).unwrap_or(AppTypeNo(small(dice, 6)))
}

fn some_instance(state: &State, dice: &mut Dice) -> AppInstanceNo {
    let known: Vec<AppInstanceNo> = instances(state).iter().map(|found| found.number).collect();
    pick(&known, dice).filter(|_| !dice.one_in(12)).unwrap_or(AppInstanceNo(dice.below(12)))
}

/// Often an instance that has quotas or ceilings, and nothing else that names it.
fn limited_instance(state: &State, dice: &mut Dice) -> Option<AppInstanceNo> {
    let ceilings = state.ceilings().filter_map(|ceiling| ceiling.scope.app_instance);
    let quotas = state.quotas().filter_map(|quota| match quota.scope.further.app_instance {
        Some(HolderScope::One(app)) => Some(app),
        Some(HolderScope::Each) | None => None,
    });
    let quotas: Vec<AppInstanceNo> = quotas.filter(|app| !is_named(state, *app)).collect();
    let ceilings: Vec<AppInstanceNo> = ceilings.filter(|app| !is_named(state, *app)).collect();
    pick(&quotas, dice).or_else(|| pick(&ceilings, dice)).filter(|_| !dice.one_in(4))
}

/// Whether an instance cannot be deleted.
fn is_named(state: &State, app: AppInstanceNo) -> bool {
    attachments(state).iter().any(|lent| lent.app_instance == app)
        || state.allocations_after(None).any(|found| found.spec.app_instance == Some(app))
        || state.leases().iter().any(|lease| state.app_instance_of(lease.number) == Some(app))
}

/// Mostly one that has not ended, and rather one that something waits or runs on account of.
fn some_attachment(state: &State, dice: &mut Dice) -> AttachmentNo {
    let used: Vec<AttachmentNo> = state.allocations_after(None).filter_map(|found| found.spec.attachment).collect();
    let known: Vec<AttachmentNo> = attachments(state).iter().map(|found| found.number).collect();
    let used = pick(&used, dice).filter(|_| dice.one_in(2));
    let one = used.or_else(|| pick(&known, dice)).filter(|_| !dice.one_in(12));
    one.unwrap_or(AttachmentNo(dice.below(12)))
}

fn unit(dice: &mut Dice) -> Command {
    let text = *dice.pick(&["images", "frames", "render_hours", "requests", "core_hours", "emails"]);
    Command::PutUsageUnit(PutUsageUnit { name: name(text), measure: *dice.pick(UnitMeasure::ALL) })
}

fn price(state: &State, now: Instant, dice: &mut Dice) -> Command {
    let from = match dice.below(6) {
        0 => Some(Instant(now.0.saturating_sub(dice.below(2)))),
        1 | 2 => Some(Instant(now.0 + dice.below(100_000_000_000))),
        _ => None,
    };
    Command::PutUnitPrice(PutUnitPrice {
        unit: some_unit(state, dice),
        app_type: dice.one_in(2).then(|| some_type(state, dice)),
        currency: Currency::new(if dice.one_in(4) { "CHF" } else { "EUR" }).expect("three letters"),
        price: if dice.one_in(8) { Decimal(UNIT_PRICE_MAX.0 + dice.below(2)) } else { Decimal(dice.below(1 << 34)) },
        from,
    })
}

fn app_type(state: &State, dice: &mut Dice) -> Command {
    let slugs = ["slurm", "ray", "vllm", "triton", "jupyter"];
    let app_type = dice.one_in(2).then(|| some_type(state, dice));
    let own = app_type.and_then(|number| state.app_type(number)).map(|found| found.slug.clone());
    let slug = own.filter(|_| !dice.one_in(4)).unwrap_or_else(|| name(slugs[dice.index(5)]));
    let units = (0..dice.below(4)).map(|_| some_unit(state, dice)).collect();
    let units = if dice.one_in(20) { (0..65).map(UnitNo).collect() } else { units };
    Command::PutAppType(PutAppType { app_type, slug, origin: *dice.pick(AppOrigin::ALL), units })
}

fn some_name(dice: &mut Dice) -> leasehold_model::Name {
    name(&format!("app-{}", ["a", "b", "c", "d", "e", "f", "g", "h", "i"][dice.index(9)]))
}

/// A new instance of a project, mostly shared within its tenant.
fn of_project(state: &State, project: ProjectNo, dice: &mut Dice) -> PutAppInstance {
    let (mode, scope) = match dice.below(12) {
        0..7 => (OperatingMode::TenantDedicated, ControlPlaneScope::Tenant),
        7 => (*dice.pick(OperatingMode::ALL), *dice.pick(ControlPlaneScope::ALL)),
        _ => *dice.pick(&MODES_AND_SCOPES),
    };
    PutAppInstance {
        app_instance: None,
        project,
        name: some_name(dice),
        app_type: some_type(state, dice),
        mode,
        scope,
        backend: *dice.pick(RuntimeBackend::ALL),
    }
}

/// A new instance, or an old one with another name and sometimes something else.
fn instance(state: &State, dice: &mut Dice) -> PutAppInstance {
    let projects: Vec<ProjectNo> = state.projects().map(|(number, _)| number).collect();
    let drawn = ProjectNo(small(dice, 8));
    let project = pick(&projects, dice).filter(|_| !dice.one_in(15)).unwrap_or(drawn);
    let fresh = of_project(state, project, dice);
    if !dice.one_in(3) {
        return fresh;
    }
    let number = some_instance(state, dice);
    let Some(old) = state.app_instance(number) else { return PutAppInstance { app_instance: Some(number), ..fresh } };
    let mut put = PutAppInstance {
        app_instance: Some(number),
        project: old.project,
        name: if dice.one_in(5) { old.name.clone() } else { fresh.name },
        app_type: old.app_type,
        mode: old.mode,
        scope: old.scope,
        backend: old.backend,
    };
    match dice.below(12) {
        0 => put.project = fresh.project,
        1 => put.app_type = fresh.app_type,
        2 => (put.mode, put.scope) = (fresh.mode, fresh.scope),
        3 => put.backend = fresh.backend,
        _ => {}
    }
    put
}

/// Mostly another project of the tenant of a shared instance.
fn attachment(state: &State, dice: &mut Dice) -> MakeAttachment {
    let known = instances(state);
    let shared: Vec<&AppInstance> =
        known.iter().copied().filter(|found| found.scope == ControlPlaneScope::Tenant).collect();
    let one = if dice.one_in(12) { pick(&known, dice) } else { pick(&shared, dice) };
    let app_instance = one.map_or(AppInstanceNo(dice.below(12)), |found| found.number);
    let others: Vec<ProjectNo> = one.map_or(Vec::new(), |found| {
        projects_of(state, found.tenant).into_iter().filter(|project| *project != found.project).collect()
    });
    let source_project = pick(&others, dice).filter(|_| !dice.one_in(10)).unwrap_or(ProjectNo(small(dice, 8)));
    let own = state.allocations_after(None).filter(|found| found.project == source_project);
    let own: Vec<AllocationNo> = own.map(|found| found.number).collect();
    let lent: Vec<AllocationNo> = attachments(state).iter().filter_map(|found| found.allocation).collect();
    let allocation = match dice.below(12) {
        0 => Some(AllocationNo(dice.below(state.size() + 2))),
        1 => pick(&lent, dice),
        2..5 => pick(&own, dice),
        _ => None,
    };
    MakeAttachment { app_instance, source_project, allocation }
}

/// A project that lends or has instances.
fn tied_project(state: &State, dice: &mut Dice) -> Option<ProjectNo> {
    let lend = attachments(state).into_iter().map(|found| found.source_project);
    let tied: Vec<ProjectNo> = lend.chain(instances(state).into_iter().map(|found| found.project)).collect();
    pick(&tied, dice)
}

/// A ceiling on what a project lends, for all or for the runtime that it lends to.
fn ceiling_of_lender(state: &State, dice: &mut Dice) -> Option<Command> {
    let lent = pick(&attachments(state), dice)?;
    Some(Command::PutCeiling(PutCeiling {
        project: lent.source_project,
        app_instance: dice.one_in(2).then_some(lent.app_instance),
        amount: Amount(u128::from(1 + dice.below(60_000_000_000))),
        currency: Currency::DEFAULT,
        mode: if dice.one_in(6) { CeilingMode::Soft } else { CeilingMode::Hard },
    }))
}

/// A quota on what a project pays for.
fn quota_of_lender(state: &State, dice: &mut Dice) -> Option<Command> {
    let lent = pick(&attachments(state), dice)?;
    let project = if dice.one_in(3) { state.app_instance(lent.app_instance)?.project } else { lent.source_project };
    let mut scope = QuotaScope { project: Some(project), ..QuotaScope::of_tenant(lent.tenant) };
    let measure = *dice.pick(Measure::ALL);
    scope.class = (measure == Measure::Quanta).then_some(ClassNo(0));
    if dice.one_in(3) {
        scope.further.app_instance = Some(HolderScope::One(lent.app_instance));
    }
    let limit = match measure {
        Measure::Quanta => 7 * dice.below(6),
        Measure::Nodes => dice.below(3),
        Measure::Leases | Measure::Allocations => dice.below(5),
    };
    let limit = match dice.below(3) {
        _ if measure == Measure::Nodes => LimitKind::Hard { limit },
        0 => LimitKind::Hard { limit },
        1 => LimitKind::Soft { limit },
        _ => LimitKind::Burst { limit, burst_limit: limit + 1, burst_ttl: Span::from_secs(1 + dice.below(90)) },
    };
    let put = PutQuota::new(None, scope, measure, limit);
    Some(Command::PutQuota(PutQuota { evict_own_lower: dice.one_in(3).then_some(true), ..put }))
}

/// A quota on an instance that nothing names, so that it may be deleted with it.
fn quota_of_unused(state: &State, dice: &mut Dice) -> Option<Command> {
    let unused = state.app_instances_after(None).filter(|found| !is_named(state, found.number));
    let found = pick(&unused.map(|found| (found.tenant, found.number)).collect::<Vec<_>>(), dice)?;
    let mut scope = QuotaScope::of_tenant(found.0);
    scope.further.app_instance = Some(HolderScope::One(found.1));
    let limit = LimitKind::Hard { limit: 1 + dice.below(5) };
    Some(Command::PutQuota(PutQuota::new(None, scope, Measure::Leases, limit)))
}

/// Lets a command that was drawn name app instances that exist, and attachments; sometimes wrong ones.
pub(crate) fn adapt(
    state: &State,
    now: Instant,
    identity: &mut Identity,
    command: &mut Command,
    facts: &mut Option<RequestFacts>,
) {
    let mut dice = own_die(state, now, &format!("{identity:?}{command:?}"));
    if let Command::Request(request) = command {
        adapt_request(state, identity, request, &mut dice);
        if let Some(facts) = facts {
            facts.app_instance = request.app_instance;
            (facts.attachment, facts.source_project) = (request.attachment, request.source_project);
        }
    } else if let Command::SubmitAllocation(submit) = command {
        adapt_submission(state, identity, submit, &mut dice);
    } else if let Command::PutQuota(put) = command
        && put.quota.is_none()
        && let Some(HolderScope::One(app)) = &mut put.scope.further.app_instance
    {
        *app = of_tenant(state, put.scope.tenant, &mut dice).unwrap_or(*app);
    } else if let Command::PutCeiling(put) = command
        && put.app_instance.is_some()
    {
        let tenant = tenant_of(state, put.project);
        put.app_instance = tenant.and_then(|tenant| of_tenant(state, tenant, &mut dice)).or(put.app_instance);
    } else if let Command::IssueToken(issue) = command {
        adapt_token(state, issue, &mut dice);
    }
}

fn of_tenant(state: &State, tenant: TenantNo, dice: &mut Dice) -> Option<AppInstanceNo> {
    let own = state.app_instances_after(None).filter(|found| found.tenant == tenant);
    let own: Vec<AppInstanceNo> = own.map(|found| found.number).collect();
    pick(&own, dice).filter(|_| !dice.one_in(12))
}

/// Mostly an instance of the project, if it has one; sometimes any.
fn of_holder(state: &State, identity: &Identity, dice: &mut Dice) -> Option<AppInstanceNo> {
    let own = state.app_instances_after(None).filter(|found| Some(found.project) == identity.project);
    let own: Vec<AppInstanceNo> = own.map(|found| found.number).collect();
    match dice.below(24) {
        0 => Some(some_instance(state, dice)),
        1 => identity.tenant.and_then(|tenant| of_tenant(state, tenant, dice)),
        _ => pick(&own, dice),
    }
}

/// Whether a quota of the tenant counts by app instance.
fn must_name(state: &State, identity: &Identity) -> bool {
    state
        .quotas()
        .any(|quota| Some(quota.scope.tenant) == identity.tenant && quota.scope.further.app_instance.is_some())
}

fn adapt_request(state: &State, identity: &Identity, request: &mut RequestLease, dice: &mut Dice) {
    let names_one = request.app_instance.is_some() || dice.one_in(3) || must_name(state, identity);
    request.app_instance = names_one.then(|| of_holder(state, identity, dice)).flatten();
    if dice.one_in(100) {
        request.attachment = Some(some_attachment(state, dice));
    }
    if dice.one_in(100) {
        request.source_project = Some(ProjectNo(small(dice, 6)));
    }
}

/// An allocation on account of an attachment on whose account none waits, at times.
pub(crate) fn on_account(state: &State, now: Instant) -> Option<(Identity, Command)> {
    let mut dice = own_die(state, now, "on account");
    if !dice.one_in(6) {
        return None;
    }
    let waits =
        |lent: &&Attachment| state.allocations_after(None).any(|found| found.spec.attachment == Some(lent.number));
    let idle: Vec<&Attachment> = state.attachments_after(None).filter(|lent| !waits(lent)).collect();
    let lent = pick(&idle, &mut dice)?;
    let owner = state.app_instance(lent.app_instance)?.project;
    let spec = AllocationSpec {
        app_instance: Some(lent.app_instance),
        attachment: Some(lent.number),
        source_project: Some(lent.source_project),
        ..AllocationSpec::of([(ClassNo(0), Quanta(1))].into_iter().collect())
    };
    let identity = Identity { tenant: Some(lent.tenant), project: Some(owner), ..Identity::default() };
    Some((identity, Command::SubmitAllocation(SubmitAllocation::from(spec))))
}

/// Often on account of an attachment, sometimes not quite.
fn adapt_submission(state: &State, identity: &mut Identity, submit: &mut SubmitAllocation, dice: &mut Dice) {
    let spec = &mut submit.spec;
    let lent = pick(&attachments(state), dice).filter(|_| !spec.sensitive && dice.one_in(3));
    let Some((lent, owner)) = lent.and_then(|lent| Some((lent, state.app_instance(lent.app_instance)?))) else {
        let names_one = spec.app_instance.is_some() || dice.one_in(3) || must_name(state, identity);
        spec.app_instance = names_one.then(|| of_holder(state, identity, dice)).flatten();
        if dice.one_in(60) {
            spec.source_project = Some(ProjectNo(small(dice, 6)));
        }
        return;
    };
    let users: Vec<UserNo> =
        state.users().filter(|(_, user)| user.tenant == lent.tenant).map(|(number, _)| number).collect();
    let user = pick(&users, dice).filter(|_| dice.one_in(3));
    *identity = Identity { tenant: Some(lent.tenant), project: Some(owner.project), user, ..identity.clone() };
    let max = state.tenant(lent.tenant).map_or(Priority::Standard, |tenant| tenant.settings.max_priority);
    spec.priority = spec.priority.min(max);
    spec.control_plane = dice.one_in(8);
    (spec.app_instance, spec.attachment) = (Some(lent.app_instance), Some(lent.number));
    spec.source_project = Some(lent.source_project);
    let other = ProjectNo(small(dice, 8));
    match dice.below(50) {
        0 => spec.attachment = Some(AttachmentNo(dice.below(12))),
        1 => spec.attachment = None,
        2 => spec.source_project = Some(other),
        3 => spec.source_project = None,
        4 => spec.app_instance = Some(some_instance(state, dice)),
        5 => spec.app_instance = None,
        6 => identity.project = Some(other),
        7 => identity.tenant = Some(TenantNo(small(dice, 4))),
        _ => {}
    }
}

fn adapt_token(state: &State, issue: &mut IssueToken, dice: &mut Dice) {
    let Some(tenant) = issue.scope.tenant else { return };
    let apps = &mut issue.scope.app_instances;
    for app in apps.iter_mut() {
        *app = of_tenant(state, tenant, dice).unwrap_or(*app);
    }
    if !dice.one_in(8) {
        apps.sort_unstable();
        apps.dedup();
    }
}

/// Checks that what is lent is refused a renewal only after the end of its attachment, also among other leases.
pub(crate) fn check_refusals(oracle: &Oracle, reply: &Reply) -> Result<(), String> {
    let Ok(sealed) = reply else { return Ok(()) };
    for (lease, refusal) in sealed.refused.iter() {
        if refusal.code() == "attachment_ended" && !oracle.is_no_longer_lent(*lease) {
            return Err(format!("{lease} is still lent: {refusal:?}"));
        }
    }
    Ok(())
}
