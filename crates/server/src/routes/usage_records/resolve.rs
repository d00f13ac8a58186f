//! A report as it came, compared with the registry and made a command.

use crate::access::Caller;
use crate::names;
use crate::routes::leases::correlation;
use leasehold_api::{NewUsageRecord, Problem, UnitQuantityText, codes};
use leasehold_engine::command::RecordUsage;
use leasehold_engine::{AppInstance, State};
use leasehold_model::body::UsageReport;
use leasehold_model::{
    AllocationNo, AppInstanceNo, AttachmentNo, ControlPlaneScope, Name, Role, TenantNo, UnitQuantity, UsageSource,
};

fn missing(field: &str) -> Problem {
    let detail = format!("The usage record lacks `{field}`; every usage record states it.");
    codes::MISSING_ANCHOR.problem(detail).with("field", field)
}

fn unknown(field: &str, text: &str, why: &str) -> Problem {
    let detail = format!("`{field}` names \"{}\", {why}.", text.escape_debug());
    codes::UNKNOWN_ANCHOR.problem(detail).with("field", field)
}

fn mismatch(field: &str, registered: &str) -> Problem {
    let detail = format!("`{field}` differs from the registry, where it is {registered}.");
    codes::ANCHOR_MISMATCH.problem(detail).with("field", field)
}

pub(super) fn name(field: &str, text: &str) -> Result<Name, Problem> {
    Name::new(text).map_err(|why| codes::BAD_NAME.problem(format!("`{field}`: {why}.")).with("field", field))
}

/// The token by whose name a record is told from those of others.
pub(super) struct Source {
    pub(super) name: Name,
    pub(super) tenant: Option<TenantNo>,
}

/// The instance that a record is about, if the caller reports for it.
fn instance<'s>(state: &'s State, caller: &Caller, text: &str) -> Option<&'s AppInstance> {
    let may_report = |instance: &&AppInstance| match caller.role {
        Role::AppOperator => caller.app_instances.contains(&instance.number),
        _ => true,
    };
    let by_number = names::digits(text).and_then(|number| state.app_instance(AppInstanceNo(number)));
    let found = by_number.or_else(|| {
        let name = Name::new(text).ok()?;
        match caller.tenant {
            Some(tenant) => state.app_instance_named(tenant, &name),
            // An operator names one of any tenant, if there is only one of that name.
            None => {
                let mut named = state.app_instances_after(None).filter(|one| one.name == name);
                named.next().filter(|_| named.next().is_none())
            }
        }
    });
    found.filter(may_report)
}

/// The command that a report becomes, without what the books know.
pub(super) fn resolve(
    state: &State,
    caller: &Caller,
    source: &Source,
    new: &NewUsageRecord,
) -> Result<RecordUsage, Problem> {
    fn stated<'t>(field: &str, text: Option<&'t String>) -> Result<&'t str, Problem> {
        text.map(String::as_str).filter(|text| !text.is_empty()).ok_or_else(|| missing(field))
    }
    let id = name("id", stated("id", new.id.as_ref())?)?;
    if let Some(given) = new.source.as_ref().filter(|given| given.as_str() != source.name.as_str()) {
        let own = format!("but this token reports as \"{}\"", source.name);
        return Err(unknown("source", given, &own));
    }
    let org = stated("org_id", new.org_id.as_ref())?;
    let in_project = stated("project_id", new.project_id.as_ref())?;
    let app = stated("app_instance_id", new.app_instance_id.as_ref())?;
    let slug = stated("app_slug", new.app_slug.as_ref())?;
    let mode = new.operating_mode.ok_or_else(|| missing("operating_mode"))?;
    let scope = new.control_plane_scope.ok_or_else(|| missing("control_plane_scope"))?;
    let backend = new.runtime_backend.ok_or_else(|| missing("runtime_backend"))?;
    let correlation = correlation(Some(stated("correlation_id", new.correlation_id.as_ref())?))?;
    if new.usage_source == Some(UsageSource::Allocation) {
        return Err(unknown("usage_source", "allocation", "which is not reported: leases are in the journal already"));
    }
    let unit_name = stated("usage_unit", new.usage_unit.as_ref())?;
    let quantity = quantity("quantity", new.quantity.as_ref().ok_or_else(|| missing("quantity"))?)?;
    let from = new.from.ok_or_else(|| missing("from"))?.0;
    let to = new.to.ok_or_else(|| missing("to"))?.0;

    let not_own = "which does not exist, or is not one that this token reports for";
    let instance = instance(state, caller, app).ok_or_else(|| unknown("app_instance_id", app, not_own))?;
    let of_platform = instance.scope == ControlPlaneScope::Platform;
    let tenant = names::digits(org).map(TenantNo).or_else(|| state.tenant_named(org));
    let tenant = tenant.filter(|tenant| state.tenant(*tenant).is_some() && (of_platform || *tenant == instance.tenant));
    let tenant = tenant.ok_or_else(|| unknown("org_id", org, "which is not the tenant of the app instance"))?;
    let of_tenant = |project: &leasehold_model::ProjectNo| state.project(*project).is_some_and(|p| p.tenant == tenant);
    let project = names::digits(in_project).map(leasehold_model::ProjectNo);
    let project = project.or_else(|| state.project_named(tenant, in_project)).filter(of_tenant);
    let project = project.ok_or_else(|| unknown("project_id", in_project, "which is no project of this tenant"))?;
    let user = new.requested_by_user_id.as_deref().map(|text| {
        let number = names::digits(text).map(leasehold_model::UserNo).or_else(|| state.user_named(tenant, text));
        let number = number.filter(|user| state.user(*user).is_some_and(|user| user.tenant == tenant));
        number.ok_or_else(|| unknown("requested_by_user_id", text, "which is no user of this tenant"))
    });
    let registered = state.app_type(instance.app_type).map_or("", |app| app.slug.as_str());
    if slug != registered {
        return Err(mismatch("app_slug", registered));
    }
    if mode != instance.mode {
        return Err(mismatch("operating_mode", instance.mode.word()));
    }
    if scope != instance.scope {
        return Err(mismatch("control_plane_scope", instance.scope.word()));
    }
    if backend != instance.backend {
        return Err(mismatch("runtime_backend", instance.backend.word()));
    }
    let unit = state.unit_named(unit_name).map(|unit| unit.number);
    let report = UsageReport {
        reporter: source.tenant,
        source: source.name.clone(),
        id,
        app_instance: instance.number,
        unit: unit.ok_or_else(|| unknown("usage_unit", unit_name, "which does not exist"))?,
        quantity,
        from,
        to,
        correlation: correlation.ok_or_else(|| missing("correlation_id"))?,
        control_plane: new.control_plane_component,
        attachment: new.attachment_id.map(AttachmentNo),
        allocation: new.allocation_id.map(|allocation| AllocationNo(allocation.0)),
        supersedes: new.supersedes.as_deref().map(|text| name("supersedes", text)).transpose()?,
    };
    Ok(RecordUsage {
        tenant,
        project,
        user: user.transpose()?,
        report,
        replaces: None,
        replaced_creditor: None,
        named: None,
        known_to: 0,
    })
}

pub(in crate::routes) fn quantity(field: &'static str, given: &UnitQuantityText) -> Result<UnitQuantity, Problem> {
    let text = match given {
        UnitQuantityText::Text(text) => text.clone(),
        UnitQuantityText::Integer(number) => number.to_string(),
    };
    let bad = |why| codes::BAD_QUANTITY.problem(format!("`{field}` {why}.")).with("field", field);
    text.parse().map_err(bad)
}
