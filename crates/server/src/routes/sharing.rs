//! Policies about sharing the cost of control planes.

use super::page::page;
use super::policies::{history_scope, scope, sees};
use super::usage_records::quantity;
use crate::access::Caller;
use crate::books::look_up;
use crate::context::{Answer, Context, json};
use crate::show_apps::{app_name, project, slug, tenant, unit_name};
use crate::{names, show};
use leasehold_api as api;
use leasehold_api::{Problem, SharingChange, SharingHistory, SharingList, SharingPolicy, SharingVersion, When, codes};
use leasehold_engine::command::PutSharing;
use leasehold_engine::{Command, State};
use leasehold_model::body::{
    Body, ServiceTier, ServiceTiers, SharedAs, Sharing, SharingBasis, SharingMethod, SharingPut,
};
use leasehold_model::rate::Decimal;
use leasehold_model::{ControlPlaneScope, Name, ProjectNo, TenantNo};
use std::sync::Arc;

/// A policy without the projects of others.
fn shown(state: &State, caller: &Caller, put: &SharingPut) -> SharingPolicy {
    SharingPolicy {
        app: slug(state, put.of.app_type),
        tenant: put.of.tenant.map(|of| tenant(state, of)),
        app_instance: put.of.app_instance.map(|app| app_name(state, app)),
        version: put.version,
        control_plane_billable: put.control_plane_billable,
        distributable: put.distributable,
        sharing: put.sharing.as_ref().map(|sharing| shown_sharing(state, caller, put.of.tenant, sharing)),
    }
}

fn text_of(decimal: Decimal) -> api::UnitQuantityText {
    api::UnitQuantityText::Text(decimal.to_string())
}

fn shown_sharing(state: &State, caller: &Caller, of: Option<TenantNo>, sharing: &Sharing) -> api::Sharing {
    let mut shown = api::Sharing {
        method: sharing.basis.method(),
        result: if sharing.entries { SharedAs::Entries } else { SharedAs::Report },
        usage_unit: sharing.basis.unit().map(|unit| unit_name(state, unit)),
        weights: Vec::new(),
        tiers: Vec::new(),
        projects: Vec::new(),
        default_tier: None,
    };
    // The tenant is told where it is not that of the policy.
    let named = |number: ProjectNo| match state.project(number).map(|found| found.tenant) {
        Some(own) if Some(own) == of => Some((None, project(state, number))),
        Some(own) => caller.sees_project(own, number).then(|| (Some(tenant(state, own)), project(state, number))),
        None => caller.sees_all().then(|| (None, number.to_string())),
    };
    match &sharing.basis {
        SharingBasis::None
        | SharingBasis::Owner
        | SharingBasis::Even
        | SharingBasis::ByUsage(_)
        | SharingBasis::ByQuota(_) => {}
        SharingBasis::Fixed(weights) => {
            shown.weights = weights
                .iter()
                .filter_map(|(number, percent)| {
                    let (tenant, project) = named(*number)?;
                    Some(api::ShareWeight { tenant, project, percent: text_of(*percent) })
                })
                .collect();
        }
        SharingBasis::ByTier(tiers) => {
            let name = |place: u32| tiers.tiers.get(place as usize).map(|tier| tier.name.to_string());
            let tier =
                |tier: &ServiceTier| api::ServiceTier { name: tier.name.to_string(), weight: text_of(tier.weight) };
            shown.tiers = tiers.tiers.iter().map(tier).collect();
            shown.projects = tiers
                .projects
                .iter()
                .filter_map(|(number, place)| {
                    let (tenant, project) = named(*number)?;
                    Some(api::TierOfProject { tenant, project, tier: name(*place)? })
                })
                .collect();
            shown.default_tier = tiers.default_tier.and_then(name);
        }
    }
    shown
}

pub(super) async fn list_sharing(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let visible = |put: &&SharingPut| {
            sees(caller, put.of) && (of.is_none() || put.of.tenant.is_none() || put.of.tenant == of)
        };
        page(&context, (1..).zip(state.sharing_policies().filter(visible).map(|put| shown(state, caller, put))))
    });
    let (policies, next_cursor) = listed?;
    json(200, &SharingList { policies, next_cursor })
}

fn decimal(field: &'static str, text: &api::UnitQuantityText) -> Result<Decimal, Problem> {
    let given = quantity(field, text)?;
    let too_large = || codes::BAD_BODY.problem(format!("`{field}` is too large.")).with("field", field);
    u64::try_from(given.0).map(Decimal).map_err(|_| too_large())
}

fn in_sharing(field: &'static str) -> impl Fn(Problem) -> Problem {
    move |problem| problem.with("field", field)
}

/// What a policy is given as, before the projects in it are looked up.
struct Given<'g> {
    state: &'g State,
    caller: &'g Caller,
    /// The tenant whose projects are meant if none is named.
    tenant: Option<TenantNo>,
    sharing: &'g api::Sharing,
}

impl Given<'_> {
    fn project(&self, of: Option<&str>, text: &str) -> Result<ProjectNo, Problem> {
        let of = of.map(|text| names::tenant(self.state, self.caller, text)).transpose()?;
        names::project(self.state, self.caller, of.or(self.tenant), text)
    }

    fn basis(&self) -> Result<SharingBasis, Problem> {
        let sharing = self.sharing;
        let unit = || {
            let needed = || {
                let detail = format!("`{}` needs a `usage_unit`.", sharing.method.word());
                codes::BAD_BODY.problem(detail).with("field", "usage_unit")
            };
            let text = sharing.usage_unit.as_deref().ok_or_else(needed)?;
            names::unit(self.state, text).map_err(in_sharing("usage_unit"))
        };
        let basis = match sharing.method {
            SharingMethod::None => SharingBasis::None,
            SharingMethod::Owner => SharingBasis::Owner,
            SharingMethod::Even => SharingBasis::Even,
            SharingMethod::ByUsage => SharingBasis::ByUsage(unit()?),
            SharingMethod::ByQuota => SharingBasis::ByQuota(unit()?),
            SharingMethod::Fixed => SharingBasis::Fixed(self.weights()?),
            SharingMethod::ByTier => SharingBasis::ByTier(self.tiers()?),
            SharingMethod::NotBillable => {
                let detail = "Say `control_plane_billable: false` instead of a method.";
                return Err(codes::BAD_BODY.problem(detail).with("field", "method"));
            }
        };
        self.refuse_other_fields(&basis)?;
        Ok(basis)
    }

    /// A field that the method does not use would be a mistake that nobody notices.
    fn refuse_other_fields(&self, basis: &SharingBasis) -> Result<(), Problem> {
        let sharing = self.sharing;
        let is_fixed = matches!(basis, SharingBasis::Fixed(_));
        let is_by_tier = matches!(basis, SharingBasis::ByTier(_));
        let wrong = [
            ("usage_unit", sharing.usage_unit.is_some() && basis.unit().is_none()),
            ("weights", !sharing.weights.is_empty() && !is_fixed),
            ("tiers", !sharing.tiers.is_empty() && !is_by_tier),
            ("projects", !sharing.projects.is_empty() && !is_by_tier),
            ("default_tier", sharing.default_tier.is_some() && !is_by_tier),
        ];
        match wrong.into_iter().find(|(_, is_wrong)| *is_wrong) {
            Some((field, _)) => {
                let detail = format!("The method `{}` has no `{field}`.", sharing.method.word());
                Err(codes::BAD_BODY.problem(detail).with("field", field))
            }
            None => Ok(()),
        }
    }

    fn weights(&self) -> Result<Vec<(ProjectNo, Decimal)>, Problem> {
        let one = |weight: &api::ShareWeight| {
            let project = self.project(weight.tenant.as_deref(), &weight.project).map_err(in_sharing("weights"))?;
            Ok((project, decimal("percent", &weight.percent)?))
        };
        let mut weights = self.sharing.weights.iter().map(one).collect::<Result<Vec<_>, Problem>>()?;
        weights.sort_unstable_by_key(|(project, _)| *project);
        Ok(weights)
    }

    fn tiers(&self) -> Result<ServiceTiers, Problem> {
        let given = &self.sharing.tiers;
        let one = |tier: &api::ServiceTier| {
            let bad = |why| codes::BAD_BODY.problem(format!("The name of a tier {why}.")).with("field", "tiers");
            Ok(ServiceTier { name: Name::new(&tier.name).map_err(bad)?, weight: decimal("weight", &tier.weight)? })
        };
        let place = |text: &str| {
            let found = given.iter().position(|tier| tier.name == text).and_then(|place| u32::try_from(place).ok());
            found.ok_or_else(|| {
                let names: Vec<&str> = given.iter().map(|tier| tier.name.as_str()).collect();
                let detail = format!("There is no tier \"{text}\" among: {}.", names.join(", "));
                codes::BAD_BODY.problem(detail).with("field", "tier")
            })
        };
        let of_project = |one: &api::TierOfProject| {
            let project = self.project(one.tenant.as_deref(), &one.project).map_err(in_sharing("projects"))?;
            Ok((project, place(&one.tier)?))
        };
        let mut projects = self.sharing.projects.iter().map(of_project).collect::<Result<Vec<_>, Problem>>()?;
        projects.sort_unstable_by_key(|(project, _)| *project);
        Ok(ServiceTiers {
            tiers: given.iter().map(one).collect::<Result<Vec<_>, Problem>>()?,
            projects,
            default_tier: self.sharing.default_tier.as_deref().map(place).transpose()?,
        })
    }
}

pub(super) async fn put_sharing(context: Context) -> Answer {
    let change: SharingChange = context.body()?;
    let caller = context.caller();
    let put = context.app.now.read(|state| {
        let app_type = names::app_type(state, &change.app).map_err(|problem| problem.with("field", "app"))?;
        let of = change.tenant.as_deref().map(|text| names::tenant(state, caller, text)).transpose()?;
        let of = scope(state, caller, app_type, (of.or(caller.tenant), change.app_instance.as_deref()))?;
        let instance = of.app_instance.and_then(|app| state.app_instance(app));
        let is_for_all = instance.is_some_and(|found| found.scope == ControlPlaneScope::Platform);
        let sharing = change.sharing.as_ref().map(|sharing| {
            let given = Given { state, caller, tenant: of.tenant.filter(|_| !is_for_all), sharing };
            Ok::<_, Problem>(Sharing { basis: given.basis()?, entries: sharing.result == SharedAs::Entries })
        });
        Ok::<_, Problem>(PutSharing {
            of,
            control_plane_billable: change.control_plane_billable,
            distributable: change.distributable,
            sharing: sharing.transpose()?,
        })
    })?;
    let of = put.of;
    let sealed = context.seal(Command::PutSharing(put)).await?;
    let shown = context.app.now.read(|state| state.sharing_policy(of).map(|put| shown(state, caller, put)));
    let policy = shown.ok_or_else(|| show::gone_already("policy"))?;
    json(200, &api::SharingPut { sequence: sealed.sequence(), policy })
}

pub(super) async fn sharing_history(context: Context) -> Answer {
    let caller = context.caller().clone();
    let of = history_scope(&context)?;
    let versions = look_up(&context.app, &caller, move |_, books| Ok(books.sharing_versions(of))).await?;
    let app = Arc::clone(&context.app);
    let read = tokio::task::spawn_blocking(move || {
        let mut all = Vec::with_capacity(versions.len());
        for (_, sequence) in versions {
            let record = crate::explain::decision::read(&app, sequence)?;
            let Body::SharingPut(put) = &record.body else {
                return Err(codes::INTERNAL.problem("The books name a record that is no policy."));
            };
            let policy = app.now.read(|state| shown(state, &caller, put));
            all.push(SharingVersion { sequence, from: When(record.stamp), policy });
        }
        Ok(all)
    });
    let versions = read.await.map_err(|_| codes::INTERNAL.problem("The records could not be read."))??;
    json(200, &SharingHistory { versions })
}
