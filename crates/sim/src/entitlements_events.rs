//! Counts notable events of entitlements and policies in a history.

use leasehold_model::body::{
    AppPolicyPut, Attribution, EntitlementPut, EntitlementScope, EntitlementWarned, PolicyScope, UsageRecorded,
    UsageRefused, UsageReport,
};
use leasehold_model::{
    AppInstanceNo, AppTypeNo, Body, ControlPlaneScope, Month, Name, ProjectNo, Record, TenantNo, UnitNo, UnitQuantity,
    UsageCharge,
};
use std::collections::{BTreeMap, BTreeSet};

/// Who reports, and the ID.
type Key = (Option<TenantNo>, Name, Name);

struct Instance {
    tenant: Option<TenantNo>,
    project: ProjectNo,
    app: AppTypeNo,
    scope: ControlPlaneScope,
}

#[derive(Default)]
struct Seen {
    instances: BTreeMap<AppInstanceNo, Instance>,
    projects: BTreeMap<ProjectNo, Option<TenantNo>>,
    entitlements: BTreeMap<EntitlementScope, EntitlementPut>,
    policies: BTreeMap<PolicyScope, AppPolicyPut>,
    /// What was used, by project, instance, unit and month.
    used: BTreeMap<(ProjectNo, AppInstanceNo, UnitNo, Month), u128>,
    warned: BTreeSet<(EntitlementScope, Month)>,
    /// What was refused last, and by which entitlement.
    refused: BTreeMap<Key, (UsageReport, EntitlementScope)>,
}

fn key(report: &UsageReport) -> Key {
    (report.reporter, report.source.clone(), report.id.clone())
}

pub(crate) fn count(records: &[Record], notable: &mut BTreeMap<&'static str, u64>) {
    let mut seen = Seen::default();
    for record in records {
        for what in seen.see(record) {
            *notable.entry(what).or_insert(0) += 1;
        }
    }
}

fn held(facts: &[(bool, &'static str)]) -> Vec<&'static str> {
    facts.iter().filter(|(holds, _)| *holds).map(|(_, what)| *what).collect()
}

impl Seen {
    fn see(&mut self, record: &Record) -> Vec<&'static str> {
        if let Body::UsageRecorded(recorded) = &record.body {
            self.see_usage(record, recorded)
        } else if let Body::UsageRefused(refused) = &record.body {
            self.see_refused(record, refused)
        } else if let Body::EntitlementWarned(warned) = &record.body {
            self.see_warned(record, warned)
        } else if let Body::EntitlementPut(put) = &record.body {
            self.see_entitlement(record, put)
        } else if let Body::AppPolicyPut(put) = &record.body {
            self.see_policy(put)
        } else {
            self.see_registry(record)
        }
    }

    fn see_registry(&mut self, record: &Record) -> Vec<&'static str> {
        if let Body::AppInstancePut(put) = &record.body {
            let (tenant, project, app, scope) = (record.identity.tenant, put.project, put.app_type, put.scope);
            self.instances.insert(put.app_instance, Instance { tenant, project, app, scope });
        } else if let Body::ProjectPut(put) = &record.body {
            self.projects.insert(put.project, Some(put.tenant));
        } else if let Body::EntitlementDeleted(gone) = &record.body {
            self.entitlements.remove(&gone.of);
            return vec!["entitlements: deleted"];
        } else if let Body::ProjectDeleted(gone) = &record.body {
            let is_gone = |of: &EntitlementScope| of.project == Some(gone.project);
            return held(&[(self.drop_entitlements(is_gone), "entitlements: gone with the project")]);
        } else if let Body::AppInstanceDeleted(gone) = &record.body {
            let is_gone = |of: &EntitlementScope| of.app_instance == Some(gone.app_instance);
            let policies = self.drop_policies(|of| of.app_instance == Some(gone.app_instance));
            return held(&[
                (self.drop_entitlements(is_gone), "entitlements: gone with the instance"),
                (policies, "policies: gone with the instance"),
            ]);
        } else if let Body::AppTypeDeleted(gone) = &record.body {
            return held(&[(self.drop_policies(|of| of.app_type == gone.app_type), "policies: gone with the app")]);
        } else if let Body::TenantDeleted(gone) = &record.body {
            let of_tenant = Some(gone.tenant);
            let projects = &self.projects;
            let instances = &self.instances;
            let is_gone: Vec<EntitlementScope> = self
                .entitlements
                .keys()
                .copied()
                .filter(|of| {
                    of.project.is_some_and(|project| projects[&project] == of_tenant)
                        || of.app_instance.is_some_and(|app| instances[&app].tenant == of_tenant)
                })
                .collect();
            let policies = self.drop_policies(|of| of.tenant == of_tenant);
            return held(&[
                (self.drop_entitlements(|of| is_gone.contains(of)), "entitlements: gone with the tenant"),
                (policies, "policies: gone with the tenant"),
            ]);
        }
        Vec::new()
    }

    fn drop_entitlements(&mut self, is_gone: impl Fn(&EntitlementScope) -> bool) -> bool {
        let before = self.entitlements.len();
        self.entitlements.retain(|of, _| !is_gone(of));
        self.entitlements.len() < before
    }

    fn drop_policies(&mut self, is_gone: impl Fn(&PolicyScope) -> bool) -> bool {
        let before = self.policies.len();
        self.policies.retain(|of, _| !is_gone(of));
        self.policies.len() < before
    }

    fn used(&self, of: &EntitlementScope, month: Month) -> u128 {
        let counts = |(project, app, unit, at): &(ProjectNo, AppInstanceNo, UnitNo, Month)| {
            of.project.is_none_or(|own| own == *project)
                && of.app_instance.is_none_or(|own| own == *app)
                && (of.unit, month) == (*unit, *at)
        };
        self.used.iter().filter(|(key, _)| counts(key)).map(|(_, used)| *used).sum()
    }

    /// What was used in the month in which most was.
    fn most_used(&self, of: &EntitlementScope) -> u128 {
        let months: BTreeSet<Month> = self.used.keys().map(|(.., month)| *month).collect();
        months.into_iter().map(|month| self.used(of, month)).max().unwrap_or(0)
    }

    fn see_entitlement(&mut self, record: &Record, put: &EntitlementPut) -> Vec<&'static str> {
        let used = self.most_used(&put.of);
        let old = self.entitlements.insert(put.of, put.clone());
        let warned_before = self.warned.len();
        self.warned.retain(|(of, _)| *of != put.of);
        let hard_before = old.as_ref().and_then(|old| old.hard);
        let lowered = matches!((hard_before, put.hard), (Some(before), Some(hard)) if hard < before);
        let raised = hard_before.is_some_and(|before| put.hard.is_none_or(|hard| hard > before));
        let foreign = put.of.project.is_some()
            && put.of.app_instance.is_some_and(|app| self.instances[&app].tenant != record.identity.tenant);
        held(&[
            (put.of.app_instance.is_none(), "entitlements: of a project"),
            (put.of.project.is_none(), "entitlements: of an instance"),
            (put.of.project.is_some() && put.of.app_instance.is_some(), "entitlements: of a project on an instance"),
            (foreign, "entitlements: on another tenant's runtime"),
            (put.hard.is_none(), "entitlements: only soft"),
            (put.soft.is_none(), "entitlements: only hard"),
            (put.soft.is_some() && put.hard.is_some(), "entitlements: soft and hard"),
            (old.is_none() && used > 0, "entitlements: set after usage"),
            (lowered && put.hard.is_some_and(|hard| hard.0 < used), "entitlements: lowered below usage"),
            (raised, "entitlements: raised"),
            (old.is_some_and(|old| old == *put), "entitlements: set again as it was"),
            (self.warned.len() < warned_before, "entitlements: set again after a warning"),
        ])
    }

    /// The entitlements about usage of a project on an instance.
    fn about(&self, project: ProjectNo, report: &UsageReport) -> Vec<EntitlementPut> {
        let scopes =
            [(Some(project), None), (None, Some(report.app_instance)), (Some(project), Some(report.app_instance))];
        let of = scopes.map(|(project, app_instance)| EntitlementScope { project, app_instance, unit: report.unit });
        of.iter().filter_map(|of| self.entitlements.get(of)).cloned().collect()
    }

    fn see_usage(&mut self, record: &Record, recorded: &UsageRecorded) -> Vec<&'static str> {
        let report = &recorded.report;
        let (Some(project), month) = (record.identity.project, Month::of(report.to)) else { return Vec::new() };
        let about = self.about(project, report);
        let before: Vec<u128> = about.iter().map(|put| self.used(&put.of, month)).collect();
        let old = recorded.replaces.as_ref().filter(|old| old.charge == UsageCharge::Billed);
        if recorded.charge == UsageCharge::Billed {
            *self.used.entry((project, report.app_instance, report.unit, month)).or_insert(0) += report.quantity.0;
        }
        if let Some(old) = old {
            let key = (old.project, report.app_instance, report.unit, Month::of(old.to));
            *self.used.entry(key).or_insert(0) -= old.quantity.0;
        }
        let limits = about.iter().zip(before).map(|(put, before)| (put, before, self.used(&put.of, month)));
        let limits: Vec<(&EntitlementPut, u128, u128)> = limits.collect();
        let any = |test: &dyn Fn(u128, u128, u128) -> bool| {
            limits.iter().any(|(put, before, after)| put.hard.is_some_and(|hard| test(hard.0, *before, *after)))
        };
        let exactly =
            |limit: Option<UnitQuantity>, after: u128| limit.is_some_and(|limit| limit.0 == after && after > 0);
        let within = any(&|hard, before, after| after > before && after <= hard);
        let moved = old.is_some_and(|old| Month::of(old.to) != month);
        let other_project = old.is_some_and(|old| old.project != project);
        let refused = self.refused.get(&key(report)).cloned();
        let instance = &self.instances[&report.app_instance];
        let of_caller = instance.scope == ControlPlaneScope::Project && instance.project != project;
        let attributes =
            |put: &AppPolicyPut| put.of.app_type == instance.app && put.attribution == Some(Attribution::Caller);
        let caller_policy = self.policies.values().any(attributes) && instance.scope == ControlPlaneScope::Project;
        held(&[
            (within, "entitlements: used within the limit"),
            (any(&|hard, before, after| after == hard && after > before), "entitlements: used up exactly"),
            (limits.iter().any(|(put, _, after)| exactly(put.soft, *after)), "entitlements: exactly the soft limit"),
            (
                any(&|hard, before, after| before > hard && after == before),
                "entitlements: nothing added above the limit",
            ),
            (any(&|hard, before, after| before > hard && after < before), "entitlements: lowered above the limit"),
            (any(&|hard, before, after| before > hard && after <= hard), "entitlements: brought back within the limit"),
            (within && old.is_some(), "entitlements: difference within the limit"),
            (within && moved, "entitlements: moved to another month"),
            (other_project && !limits.is_empty(), "entitlements: moved to another project"),
            (
                recorded.charge == UsageCharge::Reported && !about.is_empty(),
                "entitlements: reported usage does not count",
            ),
            (refused.as_ref().is_some_and(|(first, _)| first == report), "entitlements: refused usage accepted later"),
            (refused.is_some_and(|(first, _)| first != *report), "entitlements: accepted instead of refused usage"),
            (of_caller, "policies: usage of the caller"),
            (caller_policy && report.control_plane, "policies: control plane despite the caller"),
        ])
    }

    fn see_refused(&mut self, record: &Record, refused: &UsageRefused) -> Vec<&'static str> {
        let report = &refused.report;
        let of = &refused.of;
        let before = self.refused.insert(key(report), (report.clone(), *of));
        let months: BTreeSet<Month> = self.used.keys().map(|(.., month)| *month).collect();
        let elsewhere = months.into_iter().any(|month| month != refused.month && self.used(of, month) > refused.hard.0);
        let foreign = of.project.is_none()
            && of.app_instance.is_some_and(|app| self.instances[&app].tenant != record.identity.tenant);
        held(&[
            (of.app_instance.is_none(), "entitlements: refused by that of the project"),
            (of.project.is_none(), "entitlements: refused by that of the instance"),
            (of.project.is_some() && of.app_instance.is_some(), "entitlements: refused by that of both"),
            (refused.used.0 + report.quantity.0 == refused.hard.0 + 1, "entitlements: refused for a billionth"),
            (refused.used.0 > refused.hard.0, "entitlements: refused above a lowered limit"),
            (report.supersedes.is_some(), "entitlements: a superseding record refused"),
            (refused.month < Month::of(record.stamp), "entitlements: refused in a past month"),
            (elsewhere, "entitlements: used up in several months"),
            (foreign, "entitlements: refused for another tenant"),
            (before.is_some_and(|(first, _)| first != *report), "entitlements: other content refused under an ID"),
        ])
    }

    fn see_warned(&mut self, record: &Record, warned: &EntitlementWarned) -> Vec<&'static str> {
        let several = self.warned.iter().any(|(of, month)| *of == warned.of && *month != warned.month);
        self.warned.insert((warned.of, warned.month));
        let hard = self.entitlements[&warned.of].hard;
        held(&[
            (true, "entitlements: warned"),
            (hard.is_some(), "entitlements: warned below a hard limit"),
            (several, "entitlements: warned in several months"),
            (warned.month < Month::of(record.stamp), "entitlements: warned in a past month"),
        ])
    }

    fn see_policy(&mut self, put: &AppPolicyPut) -> Vec<&'static str> {
        let old = self.policies.insert(put.of, put.clone());
        let taken = put.units.is_some();
        held(&[
            (put.of.tenant.is_none() && taken, "policies: units of an app"),
            (
                put.of.tenant.is_some() && put.of.app_instance.is_none() && taken,
                "policies: units of an app for a tenant",
            ),
            (put.of.app_instance.is_some() && taken, "policies: units of an instance"),
            (put.of.tenant.is_none() && put.attribution.is_some(), "policies: attribution of an app"),
            (put.of.app_instance.is_some() && put.attribution.is_some(), "policies: attribution of an instance"),
            (
                old.is_some_and(|old| old.attribution.is_some() && put.attribution.is_none()),
                "policies: left open again",
            ),
            (put.version > 2, "policies: a third version"),
        ])
    }
}
