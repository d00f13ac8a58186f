//! Refusals and denials as problems.

use crate::access::Caller;
use crate::refusal_names::Names;
use crate::reserved_capacity::explain_reserved;
use crate::show_apps::app_name;
use crate::unavailable_node::explain_unavailable_node;
use leasehold_api::{Problem, When, codes};
use leasehold_cell::Unsealed;
use leasehold_engine::{ByNumber, CeilingScope, Naming, Refusal, RefusalClass, State};
use leasehold_model::body::Denied;
use leasehold_model::{
    DenyCause, Fraction, HolderScope, Identity, Measure, NodeScope, ProjectNo, Quanta, QuotaNo, Record, ResourceKind,
    TenantNo, quantity,
};

/// A refusal of the engine as a problem, without names. Nothing was sealed.
pub(crate) fn refused(refusal: &Refusal) -> Problem {
    problem(refusal, &ByNumber)
}

/// A refusal as a problem for this caller, with the names that it may know.
pub(crate) fn refusal_for(state: &State, caller: &Caller, refusal: &Refusal) -> Problem {
    // Objects that the caller may not see are not named: they may belong to others.
    let unknown = matches!(
        refusal,
        Refusal::UnknownTenant { .. }
            | Refusal::UnknownProject { .. }
            | Refusal::UnknownUser { .. }
            | Refusal::UnknownQuota { .. }
            | Refusal::UnknownToken { .. }
    );
    let names = Names { state, caller: (!unknown).then_some(caller) };
    let answer = problem(refusal, &names);
    match refusal {
        Refusal::NodeClaimed { node } => {
            let claim = state.node(*node).and_then(|node| node.custody.claim());
            // Only operators and members of the same tenant learn who the holder is.
            let knows = |of: TenantNo| caller.sees_all() || caller.tenant == Some(of);
            let claim = claim.filter(|claim| knows(claim.by.tenant));
            let Some(claim) = claim else { return answer };
            let holder = crate::show_custody::holder(state, claim);
            let detail = format!(
                "{} is already claimed by user \"{}\" of tenant \"{}\" for project \"{}\"; there is no waiting \
                 list, so claim another node",
                sentence(&names.node(*node)),
                holder.user,
                holder.tenant,
                holder.project
            );
            let holder = serde_json::to_value(holder).expect("a holder is valid JSON");
            Problem { detail, ..answer.with("holder", holder) }
        }
        Refusal::ClaimOverQuota { tenant, quota, used, requested, limit } => {
            let amounts = Amounts::of_fractions(state, *quota, *used, *requested, *limit);
            let tenant = names.tenant(*tenant);
            let detail = format!("{} would exceed {} ({amounts})", sentence(&tenant), names.quota(*quota));
            let answer = amounts.of(Problem { detail, ..answer });
            match state.quota(*quota).and_then(|quota| state.tenant(quota.scope.tenant)) {
                Some(tenant) => answer.with("tenant", tenant.settings.name.as_str()),
                None => answer,
            }
        }
        Refusal::ClaimNeedsUntil { of } | Refusal::ClaimOverCeiling { of, .. } => match state.project(of.project) {
            Some(project) => answer.with("project", project.name.as_str()),
            None => answer,
        },
        Refusal::CeilingExceeded { of, .. } => {
            let answer = match state.project(of.project) {
                Some(project) => answer.with("project", project.name.as_str()),
                None => answer,
            };
            match of.app_instance {
                Some(app) => answer.with("app_instance", app_name(state, app)),
                None => answer,
            }
        }
        _ => answer,
    }
}

fn problem(refusal: &Refusal, naming: &dyn Naming) -> Problem {
    let problem = Problem::new(status_of(refusal), refusal.code(), sentence(&refusal.message(naming)));
    let three = |problem: Problem, used: u64, requested: u64, limit: u64| {
        Amounts { unit: "node", is_capacity: false, amounts: [used, requested, limit].map(|n| n.to_string()) }
            .of(problem)
    };
    match refusal {
        Refusal::SensitivePoolFull { used, requested, limit } => three(problem, *used, *requested, *limit),
        Refusal::ClaimOverQuota { quota, .. } => problem.with("quota_id", quota.0),
        Refusal::ClaimNeedsUntil { .. } | Refusal::ClaimUntilPast { .. } | Refusal::ClaimNeedsEnd { .. } => {
            problem.with("field", "until")
        }
        Refusal::ClaimNotCovered { requested, available, currency }
        | Refusal::PrepaidExhausted { requested, available, currency, .. } => problem
            .with("requested", requested.to_string())
            .with("available", available.to_string())
            .with("unit", currency.as_str())
            .with("currency", currency.as_str()),
        Refusal::ClaimOverCeiling { requested, used, amount, currency, .. } => problem
            .with("requested", requested.to_string())
            .with("used", used.to_string())
            .with("amount", amount.to_string())
            .with("unit", currency.as_str())
            .with("currency", currency.as_str()),
        Refusal::UsageBatchRefused { place, why } => problem.with("place", *place).with("cause", why.code()),
        Refusal::UsageOfOwner { .. } => problem.with("field", "project_id"),
        Refusal::UsageQuantityTooLarge | Refusal::TooMuchUsage { .. } => problem.with("field", "quantity"),
        Refusal::NoUsageTime { .. }
        | Refusal::UsageEndsFirst
        | Refusal::UsageInFuture { .. }
        | Refusal::UsageTooLate { .. } => problem.with("field", "to"),
        Refusal::UsageTooLong { .. } => problem.with("field", "from"),
        Refusal::UsageIdTaken { .. } => problem.with("field", "id"),
        Refusal::UnknownUsage | Refusal::UsageSuperseded { .. } | Refusal::SupersedesOtherTenant => {
            problem.with("field", "supersedes")
        }
        Refusal::UnitNotEnabled { .. } | Refusal::UnitNotAccepted { .. } => problem.with("field", "usage_unit"),
        Refusal::EntitlementExceeded { used, hard, .. } => {
            problem.with("field", "quantity").with("used", used.to_string()).with("limit", hard.to_string())
        }
        Refusal::AttributionFixed { .. } => problem.with("field", "attribution"),
        Refusal::PolicyByOperator => problem.with("field", "tenant"),
        Refusal::AllocationNotLent { .. } => problem.with("field", "allocation_id"),
        Refusal::LentUsageNeedsBoth => problem.with("field", "attachment_id"),
        Refusal::BadPrices { why } => problem.with("field", format!("prices.{}", why.field())),
        Refusal::StartInPast { .. } | Refusal::SameStart { .. } => problem.with("field", "from"),
        Refusal::SettingOutOfRange { setting, .. } => problem.with("field", *setting),
        Refusal::BadBudget { field, .. } => problem.with("field", *field),
        Refusal::BadCeiling { .. } => problem.with("field", "amount"),
        Refusal::CurrencyFixed { .. } => problem.with("field", "currency"),
        Refusal::CeilingExceeded { requested, used, amount, currency, .. } => problem
            .with("requested", requested.to_string())
            .with("used", used.to_string())
            .with("amount", amount.to_string())
            .with("unit", currency.as_str())
            .with("currency", currency.as_str()),
        _ => problem,
    }
}

/// Capitalises the first letter of a sentence.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    // Names keep their spelling: `lease-7` does not become `Lease-7`.
    let named = text.split(' ').next().is_some_and(|word| word.contains('-') || word.contains('_'));
    if named { text.to_owned() } else { first + chars.as_str() }
}

fn status_of(refusal: &Refusal) -> u16 {
    match refusal.class() {
        RefusalClass::Malformed => 400,
        RefusalClass::Unauthenticated => 401,
        RefusalClass::NotFound => 404,
        RefusalClass::Conflict => 409,
        RefusalClass::Invalid => 422,
        RefusalClass::TooMany => 429,
    }
}

/// A reply without records.
pub(crate) fn unanswered(unsealed: &Unsealed) -> Problem {
    match unsealed {
        Unsealed::Refused(refusal) => refused(refusal),
        Unsealed::JournalFull => codes::JOURNAL_FULL
            .problem("The disk of the journal has no space for more records; free some and try again. Reads continue."),
        Unsealed::Busy => codes::BUSY.problem("Too many requests are waiting; nothing was done. Try again."),
        Unsealed::Stopped => codes::STOPPING.problem(
            "The daemon is stopping; whether this was recorded is not known. Send it again with the same idempotency key.",
        ),
        Unsealed::Archived { sequence } => codes::ARCHIVED
            .problem(format!("This request was recorded before, as record {sequence}, in a segment that has been moved away or deleted."))
            .with("sequence", *sequence),
    }
}

/// A denial. It is recorded, and repeated under its idempotency key.
pub(crate) fn denied(state: &State, record: &Record, denied: &Denied) -> Problem {
    let (who, asked) = (&record.identity, &denied.particulars);
    let problem = denial(state, who, &denied.cause).with("sequence", record.sequence);
    match denied.cause {
        DenyCause::Capacity { .. } => {
            let problem = explain_reserved(state, denied, problem);
            explain_unavailable_node(state, who, asked.sensitive, asked.node, problem)
        }
        _ => problem,
    }
}

/// The tenant whose request was denied, and the project that would have paid.
pub(crate) struct Whose {
    tenant: Option<TenantNo>,
    project: Option<ProjectNo>,
}

impl From<&Identity> for Whose {
    fn from(who: &Identity) -> Self {
        Self { tenant: who.tenant, project: who.project }
    }
}
impl From<(TenantNo, ProjectNo)> for Whose {
    fn from((tenant, project): (TenantNo, ProjectNo)) -> Self {
        Self { tenant: Some(tenant), project: Some(project) }
    }
}
impl From<Option<TenantNo>> for Whose {
    fn from(tenant: Option<TenantNo>) -> Self {
        Self { tenant, project: None }
    }
}

/// What is used, what was requested, and the limit, as requests are written, with their unit.
pub(crate) struct Amounts {
    pub(crate) unit: &'static str,
    /// Whether it is capacity. What else is counted, the sentence says already.
    pub(crate) is_capacity: bool,
    pub(crate) amounts: [String; 3],
}

impl Amounts {
    /// In billing units if the quota counts one class.
    fn of_quota(state: &State, quota: QuotaNo, used: u64, requested: u64, limit: u64) -> Self {
        let quota = state.quota(quota);
        let class = quota.filter(|quota| quota.measure == Measure::Quanta).and_then(|quota| quota.scope.class);
        match class.and_then(|class| state.class(class)) {
            Some(class) => Self {
                unit: class.kind.unit(),
                is_capacity: true,
                amounts: [used, requested, limit].map(|n| quantity::display(Quanta(n), class)),
            },
            None => Self {
                unit: quota.map_or("quantum", |quota| counted(quota.measure)),
                is_capacity: false,
                amounts: [used, requested, limit].map(|n| n.to_string()),
            },
        }
    }

    /// The same where a quota on a kind counts in fractions of a billing unit.
    pub(crate) fn of_fractions(state: &State, quota: QuotaNo, used: Fraction, requested: Fraction, limit: u64) -> Self {
        let kind = state.quota(quota).filter(|quota| quota.measure == Measure::Quanta);
        match kind.and_then(|quota| quota.scope.further.kind) {
            Some(kind) => Self {
                unit: kind.unit(),
                is_capacity: true,
                amounts: [used.to_string(), requested.to_string(), limit.to_string()],
            },
            None => {
                let whole = |count: Fraction| u64::try_from(count.numerator()).unwrap_or(u64::MAX);
                Self::of_quota(state, quota, whole(used), whole(requested), limit)
            }
        }
    }

    fn of(&self, problem: Problem) -> Problem {
        let [used, requested, limit] = self.amounts.clone();
        problem.with("used", used).with("requested", requested).with("limit", limit).with("unit", self.unit)
    }
}

impl std::fmt::Display for Amounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [used, requested, limit] = &self.amounts;
        write!(f, "used {used}, requested {requested}, limit {limit}")?;
        if self.is_capacity { write!(f, " {}", self.unit) } else { Ok(()) }
    }
}

/// What a quota counts that does not count capacity of one class.
fn counted(measure: Measure) -> &'static str {
    match measure {
        Measure::Quanta => "quantum",
        Measure::Leases => "lease",
        Measure::Nodes => "node",
        Measure::Allocations => "allocation",
    }
}

/// Why a request is, or would be, denied.
pub(crate) fn denial(state: &State, whose: impl Into<Whose>, cause: &DenyCause) -> Problem {
    let Whose { tenant, project } = whose.into();
    let tenant = tenant.and_then(|tenant| state.tenant(tenant));
    let tenant = tenant.map_or("?", |tenant| tenant.settings.name.as_str());
    match *cause {
        DenyCause::Quota { quota, used, requested, limit } => {
            let amounts = Amounts::of_quota(state, quota, used, requested, limit);
            let what = quota_words(state, quota);
            let problem = codes::QUOTA_EXCEEDED
                .problem(format!("Tenant \"{tenant}\" would exceed {what} ({amounts})."))
                .with("tenant", tenant)
                .with("quota_id", quota.0);
            amounts.of(problem)
        }
        DenyCause::KindQuota { quota, used, requested, limit } => {
            let kind = state.quota(quota).and_then(|quota| quota.scope.further.kind);
            let unit = kind.map_or("", ResourceKind::unit);
            let what = quota_words(state, quota);
            codes::QUOTA_EXCEEDED
                .problem(format!(
                    "Tenant \"{tenant}\" would exceed {what} (used {used}, requested {requested}, limit {limit} {unit})."
                ))
                .with("tenant", tenant)
                .with("quota_id", quota.0)
                .with("used", used.to_string())
                .with("requested", requested.to_string())
                .with("limit", limit.to_string())
                .with("unit", unit)
        }
        DenyCause::BurstOver { quota, ends_at } => codes::BURST_EXHAUSTED
            .problem(format!(
                "Tenant \"{tenant}\" is above the base limit of {}, and its burst ends at {}; request less, or a shorter TTL.",
                quota_words(state, quota),
                When(ends_at)
            ))
            .with("tenant", tenant)
            .with("quota_id", quota.0)
            .with("burst_ends_at", When(ends_at).to_string()),
        DenyCause::Capacity { class, requested, most_free } => {
            let spec = state.class(class);
            let name = spec.map_or("?", |spec| spec.name.as_str());
            let units = |quanta| spec.map_or_else(String::new, |spec| quantity::display(quanta, spec));
            let (asked, most) = (units(requested), units(most_free));
            // `most_free` leaves out capacity reserved for waiting allocations. A part of a device must be in one
            // device.
            let detail = match most_free < requested {
                true => format!("No node has {asked} of {name} available; the most on one node is {most}."),
                false => format!("No node has {asked} of {name} available together with the other requested classes."),
            };
            codes::NO_CAPACITY
                .problem(detail)
                .with("class", name)
                .with("requested", asked)
                .with("most_free", most)
                .with("unit", spec.map_or("quantum", |spec| spec.kind.unit()))
        }
        DenyCause::Ceiling { app_instance, spent, reserved, requested, amount } => {
            let app = app_instance.map(|app| format!(" of app instance \"{}\"", app_name(state, app)));
            let scope = project.map(|project| CeilingScope { project, app_instance });
            let ceiling = scope.and_then(|scope| state.ceiling(scope));
            let project = project.and_then(|project| state.project(project)).map(|project| project.name.as_str());
            let of_project = project.map(|project| format!(" of project \"{project}\""));
            let of: String = [app, of_project].into_iter().flatten().collect();
            let problem = codes::CEILING_EXCEEDED.problem(format!(
                "Tenant \"{tenant}\" would exceed the cost ceiling{of} (spent {spent}, reserved {reserved}, requested \
                 {requested}, ceiling {amount})."
            ));
            let problem = problem
                .with("tenant", tenant)
                .with("spent", spent.to_string())
                .with("reserved", reserved.to_string())
                .with("requested", requested.to_string())
                .with("amount", amount.to_string());
            let problem = match project {
                Some(project) => problem.with("project", project),
                None => problem,
            };
            let problem = match ceiling {
                Some(ceiling) => problem.with("unit", ceiling.currency.as_str()),
                None => problem,
            };
            match app_instance {
                Some(app) => problem.with("app_instance", app_name(state, app)),
                None => problem,
            }
        }
        DenyCause::Prepaid { of_tenant, state: credit, available, requested } => {
            let project = project.and_then(|project| state.project(project)).map(|project| project.name.as_str());
            let of = match project.filter(|_| !of_tenant) {
                Some(project) => format!("project \"{project}\""),
                None => format!("tenant \"{tenant}\""),
            };
            let detail = match available < requested.into() {
                true => format!(
                    "The prepaid credit of {of} does not cover the request: it would cost {requested}, and {available} \
                     may still be reserved. Top it up, or ask for less."
                ),
                false => format!("The prepaid credit of {of} is {}, and new work is blocked.", credit.word()),
            };
            let problem = codes::PREPAID_NOT_COVERED.problem(detail);
            let problem = match project.filter(|_| !of_tenant) {
                Some(project) => problem.with("project", project),
                None => problem.with("tenant", tenant),
            };
            problem
                .with("state", credit.word())
                .with("available", available.to_string())
                .with("requested", requested.to_string())
        }
    }
}

/// Describes the scope of a quota, for messages about exceeding it.
pub(crate) fn quota_words(state: &State, number: QuotaNo) -> String {
    let Some(quota) = state.quota(number) else { return format!("quota {}", number.0) };
    let scope = &quota.scope;
    let what = match quota.measure {
        Measure::Quanta => match scope.class.and_then(|class| state.class(class)) {
            Some(class) => format!("its quota of {}", class.name),
            None => match scope.further.kind {
                Some(kind) => format!("its quota of all {} classes", kind.word()),
                None => "its quota".to_owned(),
            },
        },
        Measure::Leases => "max_leases".to_owned(),
        Measure::Nodes => "max_nodes".to_owned(),
        Measure::Allocations => "max_concurrent_allocations".to_owned(),
    };
    let project =
        scope.project.and_then(|project| state.project(project)).map(|p| format!(" for project \"{}\"", p.name));
    let pool = scope.pool.and_then(|pool| state.pool(pool)).map(|p| format!(" in pool \"{}\"", p.name));
    let node = match scope.node {
        NodeScope::All => None,
        NodeScope::One(node) => state.node(node).map(|node| format!(" on node \"{}\"", node.name)),
        NodeScope::Each => Some(" on each node".to_owned()),
    };
    let above = if scope.further.and_above { " or higher" } else { "" };
    let priority = scope.priority.map(|priority| format!(" at {}{above} priority", priority.word()));
    let user = scope.further.user.map(|user| match user {
        HolderScope::Each => " for each user".to_owned(),
        HolderScope::One(user) => {
            format!(" for user \"{}\"", state.user(user).map_or("?", |user| user.name.as_str()))
        }
    });
    let app = scope.further.app_instance.map(|app| match app {
        HolderScope::Each => " for each app instance".to_owned(),
        HolderScope::One(app) => format!(" for app instance {}", app.0),
    });
    [Some(what), project, user, app, pool, node, priority].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_a_page() {
        let pages = leasehold_api::code_pages();
        for code in Refusal::CODES {
            assert!(pages.contains_key(code), "{code} is not in the first part of docs/reference/codes.md");
        }
    }
}
