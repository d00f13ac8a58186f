//! Finds objects by name or number, and suggests the nearest name if there is none.

use crate::access::Caller;
use leasehold_api::{Problem, codes};
use leasehold_engine::{AppInstance, ChargePolicy, RateCard, State};
use leasehold_model::name::is_blank_letter;
use leasehold_model::{
    AppInstanceNo, AppTypeNo, ClassNo, ControlPlaneScope, Name, NodeNo, PoolNo, ProjectNo, QuotaNo, TenantNo, TokenNo,
    UnitNo, UserNo,
};
use std::collections::BTreeSet;
use std::str::FromStr;

/// A valid name, to find or filter by.
pub(crate) fn name(what: &str, text: &str) -> Result<Name, Problem> {
    Name::new(text).map_err(|why| codes::BAD_NAME.problem(format!("Invalid {what}: {why}.")).with("field", what))
}

pub(crate) fn optional_name(what: &str, text: Option<&str>) -> Result<Option<Name>, Problem> {
    text.map(|text| name(what, text)).transpose()
}

/// A name by which a new object will be found, or the new name of an object that is called `old`.
///
/// A name of digits only is refused, because requests could mean the object with that number. These rules are checked
/// here and not by the engine: the engine also decides again what old journals contain, where such names are valid.
pub(crate) fn new_name(text: &str, old: Option<&Name>) -> Result<Name, Problem> {
    let name = new_text("name", text, old)?;
    if old != Some(&name) && text.bytes().all(|b| b.is_ascii_digit()) {
        let detail = "Invalid name: a name must not consist of digits only, because it could be taken for a number.";
        return Err(codes::BAD_NAME.problem(detail).with("field", "name"));
    }
    Ok(name)
}

/// A text that people will read, such as a tag or a workload, in place of `old`.
pub(crate) fn new_text(what: &str, text: &str, old: Option<&Name>) -> Result<Name, Problem> {
    let name = name(what, text)?;
    match text.chars().find(|c| is_blank_letter(*c)) {
        Some(blank) if old != Some(&name) => {
            let detail = format!("Invalid {what}: it contains the invisible character U+{:04X}.", u32::from(blank));
            Err(codes::BAD_NAME.problem(detail).with("field", what))
        }
        _ => Ok(name),
    }
}

pub(crate) fn optional_text(what: &str, text: Option<&str>) -> Result<Option<Name>, Problem> {
    text.map(|text| new_text(what, text, None)).transpose()
}

/// The number that a text of digits stands for. Objects whose names consist of digits can be found by number only.
pub(crate) fn digits<N: FromStr>(text: &str) -> Option<N> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// How similar two names must be for one to be suggested.
const NEAR: f64 = 0.75;

/// The name that is most similar to a text, if any is similar enough.
pub(crate) fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let likeness = |name: &&str| strsim::jaro_winkler(&text.to_lowercase(), &name.to_lowercase());
    let scored = names.map(|name| (likeness(&name), name)).filter(|(score, _)| *score > NEAR);
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// A problem that says that the object does not exist, and suggests the most similar visible name.
pub(crate) fn not_found<'n>(what: &str, text: &str, names: impl Iterator<Item = &'n str>) -> Problem {
    let nearest = nearest(text, names);
    let shown: String = text.chars().take(128).collect();
    let shown = shown.escape_debug();
    let (code, words) = (format!("unknown_{what}"), what.replace('_', " "));
    match nearest {
        Some(nearest) => {
            let detail = format!("There is no {words} \"{shown}\"; did you mean \"{nearest}\"?");
            Problem::new(404, &code, detail).with("nearest", nearest)
        }
        None => Problem::new(404, &code, format!("There is no {words} \"{shown}\".")),
    }
}

pub(crate) fn tenant(state: &State, caller: &Caller, text: &str) -> Result<TenantNo, Problem> {
    let number = digits(text).map(TenantNo).or_else(|| state.tenant_named(text));
    let found = number.filter(|number| state.tenant(*number).is_some() && caller.sees_tenant(*number));
    found.ok_or_else(|| {
        let visible = state.tenants().filter(|tenant| caller.sees_tenant(tenant.number));
        not_found("tenant", text, visible.map(|tenant| tenant.settings.name.as_str()))
    })
}

/// The tenant of a request: the one it names, or the tenant of the caller.
pub(crate) fn tenant_or_own(state: &State, caller: &Caller, text: Option<&str>) -> Result<TenantNo, Problem> {
    match (text, caller.tenant) {
        (Some(text), _) => tenant(state, caller, text),
        (None, Some(own)) => Ok(own),
        (None, None) => Err(codes::TENANT_NEEDED.problem("The token belongs to no tenant; give one in `tenant`.")),
    }
}

pub(crate) fn project(state: &State, caller: &Caller, of: Option<TenantNo>, text: &str) -> Result<ProjectNo, Problem> {
    let of = of.or(caller.tenant);
    let by_name = || match of {
        Some(tenant) => Ok(state.project_named(tenant, text)),
        None => {
            let mut named = state.projects().filter(|(_, project)| project.name.as_str() == text);
            match (named.next(), named.next()) {
                (Some(_), Some(_)) => Err(codes::TENANT_NEEDED
                    .problem(format!("More than one tenant has a project \"{text}\"; give the tenant."))),
                (only, _) => Ok(only.map(|(number, _)| number)),
            }
        }
    };
    let number = match digits(text) {
        Some(number) => Some(ProjectNo(number)),
        None => by_name()?,
    };
    let visible = |number: ProjectNo| {
        state.project(number).is_some_and(|project| {
            of.is_none_or(|tenant| tenant == project.tenant) && caller.sees_project(project.tenant, number)
        })
    };
    number.filter(|number| visible(*number)).ok_or_else(|| {
        let names = state.projects().filter(|(number, _)| visible(*number));
        not_found("project", text, names.map(|(_, project)| project.name.as_str()))
    })
}

/// An app instance that the caller may see: of its tenant or, for those who see all tenants, of the given one or of any.
/// Runtimes of the platform are found by all.
pub(crate) fn app_instance(
    state: &State,
    caller: &Caller,
    of: Option<TenantNo>,
    text: &str,
) -> Result<AppInstanceNo, Problem> {
    let of = of.or(caller.tenant);
    let visible = |instance: &AppInstance| {
        let of_platform = instance.scope == ControlPlaneScope::Platform;
        of_platform
            || of.is_none_or(|tenant| tenant == instance.tenant)
                && caller.sees_app_instance(instance.tenant, instance.number)
    };
    let by_name = || {
        let name = Name::new(text).ok()?;
        match of {
            Some(tenant) => Ok(state.app_instance_named(tenant, &name)).transpose(),
            None => {
                let mut named = state.app_instances_after(None).filter(|instance| instance.name == name);
                match (named.next(), named.next()) {
                    (Some(_), Some(_)) => Some(Err(codes::TENANT_NEEDED
                        .problem(format!("More than one tenant has an app instance \"{text}\"; give the tenant.")))),
                    (only, _) => only.map(Ok),
                }
            }
        }
    };
    let found = match digits(text) {
        Some(number) => state.app_instance(AppInstanceNo(number)),
        None => by_name().transpose()?,
    };
    found.filter(|found| visible(found)).map(|found| found.number).ok_or_else(|| {
        let names = state.app_instances_after(None).filter(|instance| visible(instance));
        not_found("app_instance", text, names.map(|instance| instance.name.as_str()))
    })
}

/// A kind of app, by its slug or number.
pub(crate) fn app_type(state: &State, text: &str) -> Result<AppTypeNo, Problem> {
    let found = match digits(text) {
        Some(number) => state.app_type(AppTypeNo(number)),
        None => state.app_type_named(text),
    };
    let slugs = || state.app_types().map(|found| found.slug.as_str());
    found.map(|found| found.number).ok_or_else(|| not_found("app", text, slugs()))
}

/// A usage unit by its name.
pub(crate) fn unit(state: &State, text: &str) -> Result<UnitNo, Problem> {
    let names = || state.units().map(|unit| unit.name);
    state.unit_named(text).map(|unit| unit.number).ok_or_else(|| not_found("usage_unit", text, names()))
}

pub(crate) fn user(state: &State, caller: &Caller, of: Option<TenantNo>, text: &str) -> Result<UserNo, Problem> {
    let of = of.or(caller.tenant);
    let by_name = || match of {
        Some(tenant) => Ok(state.user_named(tenant, text)),
        None => {
            let mut named = state.users().filter(|(_, user)| user.name.as_str() == text);
            match (named.next(), named.next()) {
                (Some(_), Some(_)) => Err(codes::TENANT_NEEDED
                    .problem(format!("More than one tenant has a user \"{text}\"; give the tenant."))),
                (only, _) => Ok(only.map(|(number, _)| number)),
            }
        }
    };
    let number = match digits(text) {
        Some(number) => Some(UserNo(number)),
        None => by_name()?,
    };
    let visible = |number: UserNo| {
        state
            .user(number)
            .is_some_and(|user| of.is_none_or(|tenant| tenant == user.tenant) && caller.sees_tenant(user.tenant))
    };
    number.filter(|number| visible(*number)).ok_or_else(|| {
        let names = state.users().filter(|(number, _)| visible(*number));
        not_found("user", text, names.map(|(_, user)| user.name.as_str()))
    })
}

/// The users of a name or number. Without a tenant, users of several tenants can have the same name.
pub(crate) fn users(
    state: &State,
    caller: &Caller,
    of: Option<TenantNo>,
    text: &str,
) -> Result<BTreeSet<UserNo>, Problem> {
    if of.or(caller.tenant).is_some() || digits::<u32>(text).is_some() {
        return user(state, caller, of, text).map(|user| [user].into());
    }
    let visible = || state.users().filter(|(_, user)| caller.sees_tenant(user.tenant));
    let named: BTreeSet<UserNo> =
        visible().filter(|(_, user)| user.name.as_str() == text).map(|(number, _)| number).collect();
    if named.is_empty() {
        return Err(not_found("user", text, visible().map(|(_, user)| user.name.as_str())));
    }
    Ok(named)
}

pub(crate) fn class(state: &State, text: &str) -> Result<ClassNo, Problem> {
    let number = digits(text).map(ClassNo).or_else(|| state.class_named(text));
    number
        .filter(|number| state.class(*number).is_some())
        .ok_or_else(|| not_found("class", text, state.classes().map(|(_, class)| class.name.as_str())))
}

pub(crate) fn pool(state: &State, text: &str) -> Result<PoolNo, Problem> {
    let number = digits(text).map(PoolNo).or_else(|| state.pool_named(text));
    number
        .filter(|number| state.pool(*number).is_some())
        .ok_or_else(|| not_found("pool", text, state.pools().map(|(_, pool)| pool.name.as_str())))
}

pub(crate) fn node(state: &State, caller: &Caller, text: &str) -> Result<NodeNo, Problem> {
    let found = node_for_request(state, text).ok().filter(|number| caller.sees_node(*number));
    found.ok_or_else(|| {
        let visible = state.nodes().filter(|node| caller.sees_node(node.number));
        not_found("node", text, visible.map(|node| node.name.as_str()))
    })
}

/// A node on which a request wants to be placed. Everybody may know the names of nodes, but not what runs there.
pub(crate) fn node_for_request(state: &State, text: &str) -> Result<NodeNo, Problem> {
    let number = digits(text).map(NodeNo).or_else(|| state.node_named(text));
    number.filter(|number| state.node(*number).is_some()).ok_or_else(|| not_found("node", text, std::iter::empty()))
}

pub(crate) fn quota(state: &State, caller: &Caller, text: &str) -> Result<QuotaNo, Problem> {
    let number = digits(text).map(QuotaNo);
    let visible = |number: &QuotaNo| {
        let quota = state.quota(*number);
        quota.is_some_and(|quota| sees_quota(caller, quota))
    };
    number.filter(visible).ok_or_else(|| not_found("quota", text, std::iter::empty()))
}

pub(crate) fn rate_card<'s>(state: &'s State, text: &str) -> Result<&'s RateCard, Problem> {
    let found = digits(text).and_then(|number| state.rate_card(number));
    found.ok_or_else(|| not_found("rate_card", text, std::iter::empty()))
}

pub(crate) fn charge_policy<'s>(state: &'s State, text: &str) -> Result<&'s ChargePolicy, Problem> {
    let found = digits(text).and_then(|number| state.charge_policy(number));
    found.ok_or_else(|| not_found("charge_policy", text, std::iter::empty()))
}

/// Members of a project see the quotas that can limit them: those of the project and those of the whole tenant.
pub(crate) fn sees_quota(caller: &Caller, quota: &leasehold_engine::Quota) -> bool {
    let of_other_project = caller.project.is_some_and(|own| quota.scope.project.is_some_and(|project| project != own));
    caller.sees_tenant(quota.scope.tenant) && !of_other_project
}

pub(crate) fn token(state: &State, caller: &Caller, text: &str) -> Result<TokenNo, Problem> {
    let number = digits(text).map(TokenNo);
    let visible = |number: &TokenNo| state.token(*number).is_some_and(|token| sees_token(caller, token));
    number.filter(visible).ok_or_else(|| not_found("token", text, std::iter::empty()))
}

pub(crate) fn sees_token(caller: &Caller, token: &leasehold_engine::Token) -> bool {
    match caller.tenant {
        None => true,
        Some(own) => token.scope.tenant == Some(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &Result<Name, Problem>) -> Option<&str> {
        name.as_ref().err().map(|problem| problem.code.as_str())
    }

    #[test]
    fn new_names_cannot_be_taken_for_numbers_or_for_other_names() {
        for bad in
            ["1", "007", "99999999999999999999", "\u{115f}", "pay\u{3164}roll", "a\u{fe0f}", "\u{2800}", "x\u{e0100}"]
        {
            assert_eq!(refused(&new_name(bad, None)), Some("bad_name"), "{bad:?}");
            let old = Name::new(bad).expect("valid in a record");
            assert!(new_name(bad, Some(&old)).is_ok(), "an old name may be sent again: {bad:?}");
            assert_eq!(refused(&new_name(bad, Name::new("other").ok().as_ref())), Some("bad_name"), "{bad:?}");
        }
        for good in ["1a", "h100", "0.5", "-1", "대학", "Röntgen lab", "𝟙"] {
            assert!(new_name(good, None).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn tags_and_workloads_may_consist_of_digits() {
        assert!(new_text("workload", "4711", None).is_ok());
        assert_eq!(refused(&new_text("workload", "4711\u{ffa0}", None)), Some("bad_name"));
    }
}
