//! Entitlements: how much of a usage unit may be used in a month (SEMANTICS 12).

use crate::state::State;
use leasehold_model::body::{EntitlementScope, UsageReport, UsedInMonth};
use leasehold_model::{Month, ProjectNo, TenantNo, UnitQuantity};
use std::collections::BTreeMap;

/// What was used in a month that an entitlement counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entitled {
    pub used: UsedInMonth,
    /// Whether it was said that this is beyond the soft limit.
    pub warned: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entitlement {
    /// The tenant of the project or, if it is about an app instance only, of that.
    pub tenant: TenantNo,
    pub of: EntitlementScope,
    pub soft: Option<UnitQuantity>,
    pub hard: Option<UnitQuantity>,
    /// By the month in which usage ended; only those in which something was used.
    pub(crate) months: BTreeMap<Month, Entitled>,
}

impl Entitlement {
    pub fn in_month(&self, month: Month) -> Entitled {
        self.months.get(&month).copied().unwrap_or_default()
    }
    /// The months that usage can still be reported for.
    pub fn months(&self) -> impl DoubleEndedIterator<Item = (Month, Entitled)> + '_ {
        self.months.iter().map(|(month, entitled)| (*month, *entitled))
    }

    pub(crate) fn count(&mut self, month: Month, more: u128, less: u128) {
        let entitled = self.months.entry(month).or_default();
        entitled.used = UsedInMonth((entitled.used.0 + more).saturating_sub(less));
        if *entitled == Entitled::default() {
            self.months.remove(&month);
        }
    }
}

pub(crate) type Entitlements = BTreeMap<EntitlementScope, Entitlement>;

/// The scopes that usage of a project counts in.
pub(crate) fn scopes_of(project: ProjectNo, report: &UsageReport) -> [EntitlementScope; 3] {
    let (app_instance, unit) = (Some(report.app_instance), report.unit);
    [
        EntitlementScope { project: Some(project), app_instance, unit },
        EntitlementScope { project: Some(project), app_instance: None, unit },
        EntitlementScope { project: None, app_instance, unit },
    ]
}

impl State {
    pub fn entitlement(&self, of: EntitlementScope) -> Option<&Entitlement> {
        self.entitlements.get(&of)
    }
    /// All entitlements, in order.
    pub fn entitlements(&self) -> impl Iterator<Item = &Entitlement> {
        self.entitlements.values()
    }

    /// What was used so far within a scope, by month.
    pub(crate) fn used_within(&self, of: EntitlementScope) -> BTreeMap<Month, Entitled> {
        let mut months: BTreeMap<Month, Entitled> = BTreeMap::new();
        for ((month, project, app, unit), used) in &self.usage.months {
            let counts = *unit == of.unit
                && of.project.is_none_or(|own| own == *project)
                && of.app_instance.is_none_or(|own| own == *app);
            if counts && used.billed.0 > 0 {
                months.entry(*month).or_default().used.0 += used.billed.0;
            }
        }
        months
    }
}
