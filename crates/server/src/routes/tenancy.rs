//! Tenants, projects and users.

use super::page::page;
use crate::access::Caller;
use crate::context::{Answer, Context, json};
use crate::{names, show};
use leasehold_api::{
    Changed, Decimal, NewProject, NewTenant, NewUser, Patch, PoolAccessChange, Priority, Problem, ProjectChange,
    ProjectList, ProjectPut, Role, TenantChange, TenantList, TenantPut, UserChange, UserList, UserPut, codes,
};
use leasehold_engine::command::{PutProject, PutTenant, PutUser, SetPoolAccess, UpdateTenant};
use leasehold_engine::{Command, State};
use leasehold_model::limits::ADDRESS_LINES_MAX;
use leasehold_model::{Address, Body, ProjectNo, TenantNo, TenantSettings, TenantSettingsChange, UserNo};

pub(super) async fn list_tenants(context: Context) -> Answer {
    let listed = context.app.now.read(|state| {
        let visible = state.tenants().filter(|tenant| context.caller().sees_tenant(tenant.number));
        page(
            &context,
            visible.filter_map(|tenant| Some((u64::from(tenant.number.0), show::tenant(state, tenant.number)?))),
        )
    });
    let (tenants, next_cursor) = listed?;
    json(200, &TenantList { tenants, next_cursor })
}

pub(super) async fn show_tenant(context: Context) -> Answer {
    let found = context.app.now.read(|state| {
        let number = names::tenant(state, context.caller(), context.subject())?;
        show::tenant(state, number).ok_or_else(|| show::gone_already("tenant"))
    });
    json(200, &found?)
}

/// An address in place of `old`, line by line.
fn address(lines: &[String], old: Option<&Address>) -> Result<Address, Problem> {
    let old = |place: usize| old.and_then(|old| old.lines().get(place));
    let named = lines.iter().enumerate();
    let named = named.map(|(place, line)| names::new_text("billing_address", line, old(place)));
    Address::new(named.collect::<Result<_, _>>()?).ok_or_else(|| {
        let detail = format!("`billing_address` must have between 1 and {ADDRESS_LINES_MAX} lines.");
        codes::BAD_BODY.problem(detail).with("field", "billing_address")
    })
}

/// Answers with the tenant after a change.
fn tenant_put(context: &Context, status: u16, sequence: u64, tenant: TenantNo) -> Answer {
    let tenant = context.app.now.read(|state| show::tenant(state, tenant));
    json(status, &TenantPut { sequence, tenant: tenant.ok_or_else(|| show::gone_already("tenant"))? })
}

pub(super) async fn create_tenant(context: Context) -> Answer {
    let new: NewTenant = context.body()?;
    let settings = TenantSettings {
        name: names::new_name(&new.name, None)?,
        accounting_tag: names::optional_text("accounting_tag", new.accounting_tag.as_deref())?,
        max_priority: new.max_priority.unwrap_or_default(),
        max_evicted_quanta_per_hour: new.max_evicted_quanta_per_hour,
        contact: names::optional_text("contact", new.contact.as_deref())?,
        when_over_quota: new.when_over_quota,
        billing_address: new.billing_address.as_deref().map(|lines| address(lines, None)).transpose()?,
        tax_id: names::optional_text("tax_id", new.tax_id.as_deref())?,
    };
    let sealed = context.seal(Command::PutTenant(PutTenant { tenant: None, settings })).await?;
    let Body::TenantPut(put) = &sealed.first().body else { unreachable!("a tenant was put") };
    tenant_put(&context, 201, sealed.sequence(), put.tenant)
}

pub(super) async fn update_tenant(context: Context) -> Answer {
    change_tenant(context).await
}

pub(super) async fn change_tenant(context: Context) -> Answer {
    let change: TenantChange = context.body()?;
    let priority = match change.max_priority {
        Patch::Keep => None,
        Patch::Clear => Some(Priority::default()),
        Patch::Set(priority) => Some(priority),
    };
    let (tenant, old) = context.app.now.read(|state| {
        let number = names::tenant(state, context.caller(), context.subject())?;
        let tenant = state.tenant(number).ok_or_else(|| show::gone_already("tenant"))?;
        Ok::<_, Problem>((number, tenant.settings.clone()))
    })?;
    let settings = TenantSettingsChange {
        name: change.name.as_deref().map(|name| names::new_name(name, Some(&old.name))).transpose()?,
        accounting_tag: change
            .accounting_tag
            .try_map(|tag| names::new_text("accounting_tag", &tag, old.accounting_tag.as_ref()))?
            .nested(),
        max_priority: priority,
        max_evicted_quanta_per_hour: change.max_evicted_quanta_per_hour.nested(),
        contact: change.contact.try_map(|contact| names::new_text("contact", &contact, old.contact.as_ref()))?.nested(),
        when_over_quota: change.when_over_quota.nested(),
        billing_address: change
            .billing_address
            .try_map(|lines| address(&lines, old.billing_address.as_ref()))?
            .nested(),
        tax_id: change.tax_id.try_map(|text| names::new_text("tax_id", &text, old.tax_id.as_ref()))?.nested(),
    };
    let apart_from_billing = TenantSettingsChange { billing_address: None, tax_id: None, ..settings.clone() };
    if context.caller().role == Role::BillingAuthority && !apart_from_billing.is_empty() {
        let detail = "The role billing_authority may change limits, budgets, `billing_address` and `tax_id` only.";
        return Err(codes::ROLE_FORBIDS.problem(detail));
    }
    let update = UpdateTenant {
        tenant,
        max_nodes: change.max_nodes.nested(),
        max_leases: change.max_leases.nested(),
        max_concurrent_allocations: change.max_concurrent_allocations.nested(),
        gpu_hours_budget: change.gpu_hours_budget.nested(),
        node_hours_budget: change.node_hours_budget.nested(),
        budget_period_days: change.budget_period_days.nested(),
        fair_share_target: change.fair_share_target.try_map(|share| thousandths(&share))?.nested(),
        burst_allowance: change.burst_allowance.nested(),
        max_pending: change.max_pending.nested(),
        settings,
    };
    let sealed = context.seal(Command::UpdateTenant(update)).await?;
    tenant_put(&context, 200, sealed.sequence(), tenant)
}

/// A share between 0 and 1, with up to three decimals.
fn thousandths(share: &Decimal) -> Result<u64, Problem> {
    let (whole, part) = share.0.split_once('.').unwrap_or((&share.0, "000"));
    let digits = |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let number = format!("{whole}{part:0<3}").parse().ok().filter(|_| digits(whole, 1) && digits(part, 3));
    number.filter(|number| (1..=1000).contains(number)).ok_or_else(|| {
        let detail = "`fair_share_target` must be a decimal between 0.001 and 1 with up to three decimals, as text.";
        Problem::new(422, "bad_budget", detail).with("field", "fair_share_target")
    })
}

pub(super) async fn delete_tenant(context: Context) -> Answer {
    let tenant = context.app.now.read(|state| names::tenant(state, context.caller(), context.subject()))?;
    changed(&context, Ok(Command::DeleteTenant(tenant))).await
}

/// Submits a change, and answers with its sequence only.
pub(super) async fn changed(context: &Context, command: Result<Command, leasehold_api::Problem>) -> Answer {
    let sealed = context.seal(command?).await?;
    json(200, &Changed { sequence: sealed.sequence() })
}

pub(super) async fn list_projects(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let visible = state.projects().filter(|(number, project)| {
            of.is_none_or(|tenant| tenant == project.tenant) && caller.sees_project(project.tenant, *number)
        });
        page(&context, visible.filter_map(|(number, _)| Some((u64::from(number.0), show::project(state, number)?))))
    });
    let (projects, next_cursor) = listed?;
    json(200, &ProjectList { projects, next_cursor })
}

/// A project by name or number, of the tenant that the request names or of that of the caller.
pub(super) fn find_owner_project(
    state: &State,
    caller: &Caller,
    tenant: Option<&str>,
    project: &str,
) -> Result<ProjectNo, Problem> {
    let of = tenant.map(|text| names::tenant(state, caller, text)).transpose()?;
    names::project(state, caller, of, project)
}

pub(super) fn find_project(context: &Context) -> Result<ProjectNo, leasehold_api::Problem> {
    let caller = context.caller();
    context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        names::project(state, caller, of, context.subject())
    })
}

pub(super) async fn show_project(context: Context) -> Answer {
    let number = find_project(&context)?;
    let project = context.app.now.read(|state| show::project(state, number));
    json(200, &project.ok_or_else(|| show::gone_already("project"))?)
}

fn project_put(context: &Context, status: u16, sequence: u64, project: ProjectNo) -> Answer {
    let project = context.app.now.read(|state| show::project(state, project));
    json(status, &ProjectPut { sequence, project: project.ok_or_else(|| show::gone_already("project"))? })
}

pub(super) async fn create_project(context: Context) -> Answer {
    let new: NewProject = context.body()?;
    let tenant = context.app.now.read(|state| names::tenant_or_own(state, context.caller(), new.tenant.as_deref()))?;
    let put = PutProject { project: None, tenant, name: names::new_name(&new.name, None)? };
    let sealed = context.seal(Command::PutProject(put)).await?;
    let Body::ProjectPut(put) = &sealed.first().body else { unreachable!("a project was put") };
    project_put(&context, 201, sealed.sequence(), put.project)
}

pub(super) async fn change_project(context: Context) -> Answer {
    let change: ProjectChange = context.body()?;
    let project = find_project(&context)?;
    let old = context.app.now.read(|state| state.project(project).map(|old| (old.tenant, old.name.clone())));
    let (tenant, old) = old.ok_or_else(|| show::gone_already("project"))?;
    let put = PutProject { project: Some(project), tenant, name: names::new_name(&change.name, Some(&old))? };
    let sealed = context.seal(Command::PutProject(put)).await?;
    project_put(&context, 200, sealed.sequence(), project)
}

pub(super) async fn set_pool_access(context: Context) -> Answer {
    let change: PoolAccessChange = context.body()?;
    let project = find_project(&context)?;
    let pool = context.app.now.read(|state| names::pool(state, &change.pool))?;
    let set = SetPoolAccess { project, pool, access: change.access };
    let sealed = context.seal(Command::SetPoolAccess(set)).await?;
    project_put(&context, 200, sealed.sequence(), project)
}

pub(super) async fn delete_project(context: Context) -> Answer {
    let project = find_project(&context)?;
    changed(&context, Ok(Command::DeleteProject(project))).await
}

pub(super) async fn list_users(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let visible = state
            .users()
            .filter(|(_, user)| of.is_none_or(|tenant| tenant == user.tenant) && caller.sees_tenant(user.tenant));
        page(&context, visible.filter_map(|(number, _)| Some((u64::from(number.0), show::user(state, number)?))))
    });
    let (users, next_cursor) = listed?;
    json(200, &UserList { users, next_cursor })
}

fn find_user(context: &Context) -> Result<UserNo, leasehold_api::Problem> {
    let caller = context.caller();
    context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        names::user(state, caller, of, context.subject())
    })
}

pub(super) async fn show_user(context: Context) -> Answer {
    let number = find_user(&context)?;
    let user = context.app.now.read(|state| show::user(state, number));
    json(200, &user.ok_or_else(|| show::gone_already("user"))?)
}

fn user_put(context: &Context, status: u16, sequence: u64, user: UserNo) -> Answer {
    let user = context.app.now.read(|state| show::user(state, user));
    json(status, &UserPut { sequence, user: user.ok_or_else(|| show::gone_already("user"))? })
}

pub(super) async fn create_user(context: Context) -> Answer {
    let new: NewUser = context.body()?;
    let tenant = context.app.now.read(|state| names::tenant_or_own(state, context.caller(), new.tenant.as_deref()))?;
    let put = PutUser { user: None, tenant, name: names::new_name(&new.name, None)? };
    let sealed = context.seal(Command::PutUser(put)).await?;
    let Body::UserPut(put) = &sealed.first().body else { unreachable!("a user was put") };
    user_put(&context, 201, sealed.sequence(), put.user)
}

pub(super) async fn change_user(context: Context) -> Answer {
    let change: UserChange = context.body()?;
    let user = find_user(&context)?;
    let old = context.app.now.read(|state| state.user(user).map(|old| (old.tenant, old.name.clone())));
    let (tenant, old) = old.ok_or_else(|| show::gone_already("user"))?;
    let put = PutUser { user: Some(user), tenant, name: names::new_name(&change.name, Some(&old))? };
    let sealed = context.seal(Command::PutUser(put)).await?;
    user_put(&context, 200, sealed.sequence(), user)
}

pub(super) async fn delete_user(context: Context) -> Answer {
    let user = find_user(&context);
    changed(&context, user.map(Command::DeleteUser)).await
}
