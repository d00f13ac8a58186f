//! `leasehold tenant …`, `project …` and `user …`.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::patch::{patch, something};
use super::session::Session;
use crate::cli::tenancy::{MemberChangeArgs, ProjectCommand, TenantCommand, TenantField, TenantSetArgs, UserCommand};
use crate::numbers::{counted, thousands};
use crate::problem::Problem;
use crate::table::{Align, Table};
use leasehold_api::{
    Decimal, NewProject, NewTenant, NewUser, PoolAccessChange, Project, ProjectChange, Tenant, TenantChange,
    TenantUsage, User, UserChange,
};

pub(super) async fn tenant(session: &Session, command: TenantCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        TenantCommand::List => session.list(client.list_tenants(), tenants).await,
        TenantCommand::Show(one) => session.show(client.show_tenant(&one.name), |t| one_tenant(session, t)).await,
        TenantCommand::Usage(args) => {
            let call = client.tenant_usage(&args.tenant).maybe("days", args.days);
            session.show(call, |usage| budgets(session, usage)).await
        }
        TenantCommand::Create(args) => {
            let new = NewTenant {
                name: args.name,
                accounting_tag: args.accounting_tag,
                contact: args.contact,
                billing_address: args.billing_address.map(|address| address.0),
                tax_id: args.tax_id,
                when_over_quota: None,
                max_priority: args.max_priority,
                max_evicted_quanta_per_hour: args.max_evicted_quanta_per_hour,
            };
            let call = client.create_tenant(&new);
            session.change(call, &args.change, |put| made("tenant", &put.tenant.name, put.tenant.id)).await
        }
        TenantCommand::Set(args) => {
            let call = client.change_tenant(&args.tenant, &changed(&args)?);
            session.change(call, &args.change, |put| one_tenant(session, &put.tenant)).await
        }
        TenantCommand::Delete(args) => {
            let call = client.delete_tenant(&args.name);
            session.change(call, &args.change, |_| gone("tenant", &args.name)).await
        }
    }
}

fn changed(args: &TenantSetArgs) -> Result<TenantChange, Problem> {
    let clear = &args.clear;
    let priority = args.max_priority;
    let evicted = args.max_evicted_quanta_per_hour;
    something(TenantChange {
        name: args.name.clone(),
        accounting_tag: patch(args.accounting_tag.clone(), clear, TenantField::AccountingTag)?,
        contact: patch(args.contact.clone(), clear, TenantField::Contact)?,
        billing_address: patch(
            args.billing_address.clone().map(|address| address.0),
            clear,
            TenantField::BillingAddress,
        )?,
        tax_id: patch(args.tax_id.clone(), clear, TenantField::TaxId)?,
        when_over_quota: patch(args.when_over_quota, clear, TenantField::WhenOverQuota)?,
        max_priority: patch(priority, clear, TenantField::MaxPriority)?,
        max_evicted_quanta_per_hour: patch(evicted, clear, TenantField::MaxEvictedQuantaPerHour)?,
        max_nodes: patch(args.max_nodes, clear, TenantField::MaxNodes)?,
        max_leases: patch(args.max_leases, clear, TenantField::MaxLeases)?,
        max_concurrent_allocations: patch(
            args.max_concurrent_allocations,
            clear,
            TenantField::MaxConcurrentAllocations,
        )?,
        gpu_hours_budget: patch(args.gpu_hours_budget, clear, TenantField::GpuHoursBudget)?,
        node_hours_budget: patch(args.node_hours_budget, clear, TenantField::NodeHoursBudget)?,
        budget_period_days: patch(args.budget_period_days, clear, TenantField::BudgetPeriodDays)?,
        fair_share_target: patch(args.fair_share_target.clone().map(Decimal), clear, TenantField::FairShareTarget)?,
        burst_allowance: patch(args.burst_allowance, clear, TenantField::BurstAllowance)?,
        max_pending: patch(args.max_pending, clear, TenantField::MaxPending)?,
    })
}

fn tenants(tenants: &[Tenant]) -> Table {
    let headings = [
        ("tenant", Align::Left),
        ("number", Align::Right),
        ("leases", Align::Right),
        ("max leases", Align::Right),
        ("max nodes", Align::Right),
        ("max priority", Align::Left),
        ("accounting tag", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["number", "accounting tag", "max nodes"]);
    for tenant in tenants {
        table.row([
            tenant.name.clone(),
            tenant.id.to_string(),
            thousands(tenant.live_leases.into()),
            or_dash(tenant.max_leases.map(thousands)),
            or_dash(tenant.max_nodes.map(thousands)),
            word(tenant.max_priority),
            or_dash(tenant.accounting_tag.as_ref()),
        ]);
    }
    table
}

fn one_tenant(session: &Session, tenant: &Tenant) -> String {
    Details::new()
        .add("tenant", &tenant.name)
        .add("number", tenant.id)
        .maybe("contact", tenant.contact.as_ref())
        .maybe("billing address", (!tenant.billing_address.is_empty()).then(|| tenant.billing_address.join("; ")))
        .maybe("tax ID", tenant.tax_id.as_ref())
        .add("leases", thousands(tenant.live_leases.into()))
        .add("max leases", or_dash(tenant.max_leases.map(thousands)))
        .add("max nodes", or_dash(tenant.max_nodes.map(thousands)))
        .add("max priority", word(tenant.max_priority))
        .add("when over quota", word(tenant.when_over_quota))
        .maybe("max running allocations", tenant.max_concurrent_allocations.map(thousands))
        .maybe("max waiting allocations", tenant.max_pending.map(thousands))
        .maybe("GPU-hour budget", tenant.gpu_hours_budget.map(|hours| of_days(hours, tenant)))
        .maybe("burst allowance", tenant.burst_allowance.map(|hours| format!("{} GPU hours", thousands(hours))))
        .maybe("node-hour budget", tenant.node_hours_budget.map(|hours| of_days(hours, tenant)))
        .maybe("fair-share target", tenant.fair_share_target.as_ref())
        .maybe("max evictions per hour", tenant.max_evicted_quanta_per_hour.map(|n| format!("{} quanta", thousands(n))))
        .maybe("accounting tag", tenant.accounting_tag.as_ref())
        .text(session.paint)
}

fn of_days(hours: u64, tenant: &Tenant) -> String {
    format!("{} in {}", thousands(hours), counted(tenant.budget_period_days.into(), "day"))
}

fn budgets(session: &Session, usage: &TenantUsage) -> String {
    let headings = [("", Align::Left), ("used", Align::Right), ("budget", Align::Right), ("fraction", Align::Right)];
    let mut table = Table::new(&headings);
    for (what, of) in [("GPU hours", &usage.gpu_hours), ("node hours", &usage.node_hours)] {
        // Three decimals are enough for people; the JSON has nine.
        let used = of.used.get(..of.used.len().saturating_sub(6)).unwrap_or(&of.used).to_owned();
        table.row([what.to_owned(), used, or_dash(of.budget.map(thousands)), or_dash(of.fraction.as_ref())]);
    }
    let days = format!("{}, up to {}", counted(usage.days.into(), "day"), crate::time_format::to_the_second(usage.to));
    let details = Details::new()
        .add("tenant", &usage.tenant)
        .add("window", days)
        .maybe("burst allowance", usage.burst_allowance.map(|hours| format!("{} GPU hours", thousands(hours))))
        .add("budget factor", &usage.factor)
        .maybe("fair-share target", usage.fair_share_target.as_ref())
        .add("fair-share deficit", &usage.fair_share_deficit);
    format!("{}\n{}", details.text(session.paint), session.lines(&table).join("\n") + "\n")
}

pub(super) async fn project(session: &Session, command: ProjectCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        ProjectCommand::List(args) => session.list(client.list_projects().maybe("tenant", args.tenant), projects).await,
        ProjectCommand::Show(args) => {
            let call = client.show_project(&args.name).maybe("tenant", args.tenant);
            session.show(call, |project| one_project(session, project)).await
        }
        ProjectCommand::Create(MemberChangeArgs { member, change }) => {
            let call = client.create_project(&NewProject { name: member.name, tenant: member.tenant });
            session.change(call, &change, |put| made("project", &put.project.name, put.project.id)).await
        }
        ProjectCommand::Set(args) => {
            let change = ProjectChange { name: args.new_name };
            let call = client.change_project(&args.member.name, &change).maybe("tenant", args.member.tenant);
            session.change(call, &args.change, |put| one_project(session, &put.project)).await
        }
        ProjectCommand::Delete(MemberChangeArgs { member, change }) => {
            let call = client.delete_project(&member.name).maybe("tenant", member.tenant);
            session.change(call, &change, |_| gone("project", &member.name)).await
        }
        ProjectCommand::Access(args) => {
            let change = PoolAccessChange { pool: args.pool, access: args.access };
            let call = client.set_pool_access(&args.member.name, &change).maybe("tenant", args.member.tenant);
            session.change(call, &args.change, |put| one_project(session, &put.project)).await
        }
    }
}

fn projects(projects: &[Project]) -> Table {
    let headings =
        [("project", Align::Left), ("tenant", Align::Left), ("number", Align::Right), ("leases", Align::Right)];
    let mut table = Table::new(&headings).shrink_first(&["number", "tenant"]);
    for project in projects {
        let leases = thousands(project.live_leases.into());
        table.row([project.name.clone(), project.tenant.clone(), project.id.to_string(), leases]);
    }
    table
}

fn one_project(session: &Session, project: &Project) -> String {
    Details::new()
        .add("project", &project.name)
        .add("number", project.id)
        .add("tenant", &project.tenant)
        .add("leases", thousands(project.live_leases.into()))
        .maybe("access", (!project.pool_access.is_empty()).then(|| access(project)))
        .text(session.paint)
}

/// `training paused, inference deprioritised`.
fn access(project: &Project) -> String {
    let all = project.pool_access.iter().map(|one| format!("{} {}", one.pool, one.access.word()));
    all.collect::<Vec<_>>().join(", ")
}

pub(super) async fn user(session: &Session, command: UserCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        UserCommand::List(args) => session.list(client.list_users().maybe("tenant", args.tenant), users).await,
        UserCommand::Show(args) => {
            let call = client.show_user(&args.name).maybe("tenant", args.tenant);
            session.show(call, |user| one_user(session, user)).await
        }
        UserCommand::Create(MemberChangeArgs { member, change }) => {
            let call = client.create_user(&NewUser { name: member.name, tenant: member.tenant });
            session.change(call, &change, |put| made("user", &put.user.name, put.user.id)).await
        }
        UserCommand::Set(args) => {
            let change = UserChange { name: args.new_name };
            let call = client.change_user(&args.member.name, &change).maybe("tenant", args.member.tenant);
            session.change(call, &args.change, |put| one_user(session, &put.user)).await
        }
        UserCommand::Delete(MemberChangeArgs { member, change }) => {
            let call = client.delete_user(&member.name).maybe("tenant", member.tenant);
            session.change(call, &change, |_| gone("user", &member.name)).await
        }
    }
}

fn users(users: &[User]) -> Table {
    let headings = [("user", Align::Left), ("tenant", Align::Left), ("number", Align::Right)];
    let mut table = Table::new(&headings).shrink_first(&["number", "tenant"]);
    for user in users {
        table.row([user.name.clone(), user.tenant.clone(), user.id.to_string()]);
    }
    table
}

fn one_user(session: &Session, user: &User) -> String {
    Details::new().add("user", &user.name).add("number", user.id).add("tenant", &user.tenant).text(session.paint)
}

/// The message after creating an object.
pub(super) fn made(what: &str, name: &str, number: u32) -> String {
    format!("{what} {name} was created; its number is {number}\n")
}

/// The message after deleting an object.
pub(super) fn gone(what: &str, name: &str) -> String {
    format!("{what} {name} was deleted\n")
}
