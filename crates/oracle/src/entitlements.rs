//! Entitlements: how much of a usage unit may be used in a month (SEMANTICS 13, "Entitlements").
//!
//! What is used is summed up from all usage records each time. Where a record exceeds several entitlements, the rules do
//! not say which one is named, nor in which order warnings follow: each of them is expected, in any order.

use crate::apps::{those, unless};
use crate::command::Command;
use crate::foretell::{Caller, Foretold, Told, sealed};
use crate::oracle::Oracle;
use crate::usage_records::{Accepted, UsageWish};
use crate::violation::{Checked, broken, demand, found};
use crate::world::World;
use leasehold_model::body::{
    EntitlementDeleted, EntitlementPut, EntitlementScope, EntitlementWarned, UsageRecorded, UsageRefused, UsageReport,
    UsedInMonth,
};
use leasehold_model::limits::{ENTITLEMENTS_PER_TENANT_MAX, LATE_WINDOW, REFUSED_USAGE_MAX, USAGE_QUANTITY_MAX};
use leasehold_model::{
    AppInstanceNo, ControlPlaneScope, Instant, Month, ProjectNo, Record, TenantNo, UnitQuantity, UsageCharge, UserNo,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub(crate) struct Entitlement {
    pub(crate) tenant: TenantNo,
    pub(crate) put: EntitlementPut,
    /// The months for which a warning was given since it was set.
    warned: BTreeSet<Month>,
}

/// Usage that was refused: what was reported, and whose it was.
type Content = (TenantNo, ProjectNo, Option<UserNo>, UsageReport);

/// What the records say about entitlements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entitlements {
    pub(crate) all: BTreeMap<EntitlementScope, Entitlement>,
    refused: Vec<Content>,
}

/// An entitlement with its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntitlementLine {
    pub tenant: TenantNo,
    pub soft: Option<UnitQuantity>,
    pub hard: Option<UnitQuantity>,
    /// What was used in the months that usage could be reported for when some was accepted last, and whether it was
    /// warned of; without those in which nothing was used.
    pub months: BTreeMap<Month, (UsedInMonth, bool)>,
}

/// What usage is counted as: whose it is, on which instance, and how much of it is billed in which month.
#[derive(Clone, Copy)]
struct Counted {
    project: ProjectNo,
    app_instance: AppInstanceNo,
    month: Month,
    billed: u128,
}

fn billed(charge: UsageCharge, quantity: UnitQuantity) -> u128 {
    if charge == UsageCharge::Billed { quantity.0 } else { 0 }
}

fn is_about(of: &EntitlementScope, project: ProjectNo, app_instance: AppInstanceNo) -> bool {
    of.project.is_none_or(|own| own == project) && of.app_instance.is_none_or(|own| own == app_instance)
}

fn fault_of_limits(soft: Option<UnitQuantity>, hard: Option<UnitQuantity>) -> bool {
    let too_large = |limit: Option<UnitQuantity>| limit.is_some_and(|limit| limit > USAGE_QUANTITY_MAX);
    let crossed = matches!((soft, hard), (Some(soft), Some(hard)) if soft > hard);
    (soft.is_none() && hard.is_none()) || crossed || too_large(soft) || too_large(hard)
}

fn content(wish: &UsageWish) -> Content {
    (wish.tenant, wish.project, wish.user, wish.report.clone())
}

impl World {
    /// What is used of an entitlement in a month.
    fn entitled_use(&self, of: &EntitlementScope, month: Month) -> u128 {
        let counts = |known: &&Accepted| {
            let report = &known.recorded.report;
            report.unit == of.unit && is_about(of, known.project, report.app_instance) && Month::of(report.to) == month
        };
        let all = self.newest_usage().filter(counts);
        all.map(|known| billed(known.recorded.charge, known.recorded.report.quantity)).sum()
    }

    /// The entitlements that a billed record is about, with what was used in its month before it and with it.
    fn entitlements_about(&self, wish: &UsageWish, recorded: &UsageRecorded) -> Vec<(&Entitlement, u128, u128)> {
        let report = &wish.report;
        let new = Counted {
            project: wish.project,
            app_instance: report.app_instance,
            month: Month::of(report.to),
            billed: billed(recorded.charge, report.quantity),
        };
        let old = recorded.replaces.as_ref().map(|old| Counted {
            project: old.project,
            app_instance: report.app_instance,
            month: Month::of(old.to),
            billed: billed(old.charge, old.quantity),
        });
        let mut about = Vec::new();
        if recorded.charge != UsageCharge::Billed {
            return about;
        }
        for (of, entitlement) in &self.entitlements.all {
            if of.unit != report.unit || !is_about(of, new.project, new.app_instance) {
                continue;
            }
            let same = old.filter(|old| old.month == new.month && is_about(of, old.project, old.app_instance));
            let before = self.entitled_use(of, new.month);
            about.push((entitlement, before, before - same.map_or(0, |old| old.billed) + new.billed));
        }
        about
    }

    /// The refusals that a record may get: one for each entitlement that it exceeds.
    pub(crate) fn entitlements_exceeded(&self, wish: &UsageWish, recorded: &UsageRecorded) -> Vec<UsageRefused> {
        let refusal = |(entitlement, used, after): (&Entitlement, u128, u128)| {
            let hard = entitlement.put.hard.filter(|hard| after > used && after > hard.0)?;
            Some(UsageRefused {
                report: wish.report.clone(),
                of: entitlement.put.of,
                month: Month::of(wish.report.to),
                used: UsedInMonth(used),
                hard,
            })
        };
        self.entitlements_about(wish, recorded).into_iter().filter_map(refusal).collect()
    }

    /// The warnings that follow a record.
    pub(crate) fn warnings_after(&self, wish: &UsageWish, recorded: &UsageRecorded) -> Vec<EntitlementWarned> {
        let month = Month::of(wish.report.to);
        let warning = |(entitlement, _, used): (&Entitlement, u128, u128)| {
            let soft = entitlement.put.soft.filter(|soft| used > soft.0)?;
            let first = !entitlement.warned.contains(&month);
            first.then_some(EntitlementWarned { of: entitlement.put.of, month, used: UsedInMonth(used), soft })
        };
        self.entitlements_about(wish, recorded).into_iter().filter_map(warning).collect()
    }

    /// Whether the same content was refused before, and that is remembered.
    fn was_refused(&self, wish: &UsageWish) -> bool {
        self.entitlements.refused.iter().rev().take(REFUSED_USAGE_MAX).any(|known| *known == content(wish))
    }

    /// What is told of usage that exceeds entitlements.
    pub(crate) fn foretell_refused_usage(&self, wish: &UsageWish, exceeded: Vec<UsageRefused>) -> Told {
        if self.was_refused(wish) {
            return Err("entitlement_exceeded");
        }
        Ok(Foretold::OneOf { tenant: Some(wish.tenant), bodies: exceeded.into_iter().map(Into::into).collect() })
    }

    pub(crate) fn usage_refused(&mut self, record: &Record, refused: &UsageRefused) -> Checked {
        let tenant = found!(record.identity.tenant, "usage-refused", "without a tenant");
        let project = found!(record.identity.project, "usage-refused", "without a project");
        let (user, report) = (record.identity.user, refused.report.clone());
        let wish = UsageWish { tenant, project, user, report, known_to: record.sequence };
        demand!(!record.continues, "usage-refused", "within another decision");
        let recorded = match self.usage_record_without_fault(&wish, record.stamp) {
            Ok(recorded) => recorded,
            Err(faults) => broken!("usage-refused", "must be refused otherwise: {faults:?}"),
        };
        let expected = self.entitlements_exceeded(&wish, &recorded);
        demand!(expected.contains(refused), "usage-refused", "{refused:?} instead of {expected:?}");
        demand!(!self.was_refused(&wish), "usage-refused", "the same was refused before");
        self.entitlements.refused.push(content(&wish));
        Ok(())
    }

    pub(crate) fn entitlement_warned(
        &mut self,
        command: &mut Command,
        record: &Record,
        warned: &EntitlementWarned,
    ) -> Checked {
        let at = command.warnings.iter().position(|expected| expected == warned);
        let at = found!(at, "entitlement-warned", "expected are {:?}", command.warnings);
        demand!(record.continues, "entitlement-warned", "apart from the usage");
        command.warnings.remove(at);
        let entitlement = self.entitlements.all.get_mut(&warned.of).expect("it was looked at");
        let tenant = entitlement.tenant;
        demand!(record.identity.tenant == Some(tenant), "entitlement-warned", "{:?} is of {tenant}", warned.of);
        entitlement.warned.insert(warned.month);
        Ok(())
    }

    /// The tenant of the project or, without a project, of the instance.
    fn tenant_of_entitlement(&self, of: &EntitlementScope) -> Option<TenantNo> {
        match (of.project, of.app_instance) {
            (Some(project), _) => self.projects.get(&project).map(|found| found.tenant),
            (None, Some(app)) => self.apps.instances.get(&app).map(|(tenant, _)| *tenant),
            (None, None) => None,
        }
    }

    fn faults_of_entitlement(&self, put: &EntitlementPut) -> Vec<&'static str> {
        let of = &put.of;
        let tenant = self.tenant_of_entitlement(of);
        let no_project = of.project.is_some_and(|project| !self.projects.contains_key(&project));
        // A project can use instances of its tenant and those of the platform.
        let no_instance = of.app_instance.is_some_and(|app| {
            self.apps.instances.get(&app).is_none_or(|(owner, found)| {
                let reached = found.scope == ControlPlaneScope::Platform || Some(*owner) == tenant;
                of.project.is_some() && !reached
            })
        });
        let own = self.entitlements.all.values().filter(|other| Some(other.tenant) == tenant).count();
        let is_new = !self.entitlements.all.contains_key(of);
        those(&[
            (of.project.is_none() && of.app_instance.is_none(), "entitlement_of_nobody"),
            (no_project, "unknown_project"),
            (no_instance, "unknown_app_instance"),
            (!self.unit_exists(of.unit), "unknown_usage_unit"),
            (fault_of_limits(put.soft, put.hard), "bad_entitlement"),
            (is_new && own >= ENTITLEMENTS_PER_TENANT_MAX, "registry_full"),
        ])
    }

    pub(crate) fn entitlement_put(&mut self, record: &Record, put: &EntitlementPut) -> Checked {
        let faults = self.faults_of_entitlement(put);
        demand!(!self.is_divided_by_limits(put.of.unit), "limits-in-use", "{:?}", put.of);
        demand!(faults.is_empty(), "entitlement", "must be refused: {faults:?}");
        let tenant = self.tenant_of_entitlement(&put.of).expect("it has no fault");
        demand!(record.identity.tenant == Some(tenant), "entitlement", "{:?} is of {tenant}", put.of);
        let new = Entitlement { tenant, put: put.clone(), warned: BTreeSet::new() };
        self.entitlements.all.insert(put.of, new);
        Ok(())
    }

    pub(crate) fn foretell_entitlement(&self, caller: &Caller, put: &EntitlementPut) -> Told {
        let tenant = self.tenant_of_entitlement(&put.of);
        let mut faults = self.faults_of_entitlement(put);
        faults.extend(self.is_divided_by_limits(put.of.unit).then_some("limits_in_use"));
        if let (Some(own), Some(tenant)) = (caller.tenant, tenant)
            && own != tenant
        {
            // What is another tenant's does not exist for the caller.
            let code = if put.of.project.is_some() { "unknown_project" } else { "unknown_app_instance" };
            faults.push(code);
        }
        unless(faults, || sealed(tenant, put.clone()))
    }

    pub(crate) fn entitlement_deleted(&mut self, record: &Record, gone: &EntitlementDeleted) -> Checked {
        demand!(!self.is_divided_by_limits(gone.of.unit), "limits-in-use", "{:?}", gone.of);
        let known = found!(self.entitlements.all.remove(&gone.of), "entitlement", "there is no {:?}", gone.of);
        demand!(record.identity.tenant == Some(known.tenant), "entitlement", "{:?} is of {}", gone.of, known.tenant);
        Ok(())
    }

    pub(crate) fn foretell_entitlement_gone(&self, caller: &Caller, of: EntitlementScope) -> Told {
        let known = self.entitlements.all.get(&of);
        let known = known.filter(|known| caller.tenant.is_none_or(|own| own == known.tenant));
        let tenant = known.ok_or("unknown_entitlement")?.tenant;
        if self.is_divided_by_limits(of.unit) {
            return Err("limits_in_use");
        }
        sealed(Some(tenant), EntitlementDeleted { of })
    }

    /// Entitlements go with their projects and their instances.
    pub(crate) fn drop_entitlements(&mut self) {
        let (projects, instances) = (&self.projects, &self.apps.instances);
        self.entitlements.all.retain(|of, _| {
            of.project.is_none_or(|project| projects.contains_key(&project))
                && of.app_instance.is_none_or(|app| instances.contains_key(&app))
        });
    }

    /// Months that nothing can be reported for any more are forgotten when the next usage is accepted.
    pub(crate) fn entitlement_lines(&self) -> BTreeMap<EntitlementScope, EntitlementLine> {
        let Some(last) = self.reports.accepted.last().map(|known| known.stamp) else {
            let line = |(of, known): (&EntitlementScope, &Entitlement)| (*of, known.line(BTreeMap::new()));
            return self.entitlements.all.iter().map(line).collect();
        };
        let is_open = |month: &Month| last < month.end().saturating_add(LATE_WINDOW);
        let months = self.reports.accepted.iter().map(|known| Month::of(known.recorded.report.to));
        let months: BTreeSet<Month> = months.filter(is_open).collect();
        let line = |(of, known): (&EntitlementScope, &Entitlement)| {
            let in_month = |month: &Month| {
                let (used, warned) = (self.entitled_use(of, *month), known.warned.contains(month));
                (used > 0 || warned).then_some((*month, (UsedInMonth(used), warned)))
            };
            (*of, known.line(months.iter().filter_map(in_month).collect()))
        };
        self.entitlements.all.iter().map(line).collect()
    }
}

impl Entitlement {
    fn line(&self, months: BTreeMap<Month, (UsedInMonth, bool)>) -> EntitlementLine {
        EntitlementLine { tenant: self.tenant, soft: self.put.soft, hard: self.put.hard, months }
    }
}

impl Oracle {
    /// Whether an entitlement refuses a report with these figures.
    pub fn is_refused_by(
        &self,
        wish: &UsageWish,
        (of, month): (EntitlementScope, Month),
        (used, hard): (UsedInMonth, UnitQuantity),
        now: Instant,
    ) -> bool {
        let stated = UsageRefused { report: wish.report.clone(), of, month, used, hard };
        let recorded = self.world.usage_record_without_fault(wish, now);
        recorded.is_ok_and(|recorded| self.world.entitlements_exceeded(wish, &recorded).contains(&stated))
    }
}
