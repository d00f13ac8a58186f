//! Sharing the cost of control planes: the policies, what there is to share of the months that are not closed, and what
//! the shares are in proportion to (SEMANTICS 9 and 12).

mod division;

pub use division::{Division, Share};

use crate::apps::AppInstance;
use crate::state::State;
use leasehold_model::body::{PolicyScope, Sharing, SharingBasis, SharingPut};
use leasehold_model::rate::Currency;
use leasehold_model::{AppInstanceNo, ControlPlaneScope, Month, ProjectNo, Steps, UnitNo};
use std::collections::{BTreeMap, BTreeSet};

/// The sharing policies in force.
pub(crate) type SharingPolicies = BTreeMap<PolicyScope, SharingPut>;

/// The shares of a month that is being closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClosingShares {
    /// The policies that were in force at the cut.
    pub(crate) policies: SharingPolicies,
    /// What is shared already.
    pub(crate) done: BTreeSet<(AppInstanceNo, Currency)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedCosts {
    pub(crate) policies: SharingPolicies,
    /// What the control planes of app instances cost their owners; none is zero.
    pub(crate) pools: BTreeMap<(Month, AppInstanceNo, Currency), Steps>,
    /// What projects used, the control plane apart, in the parts of a line; none is zero. It no longer changes for a
    /// month that is being closed.
    pub(crate) work: BTreeMap<(Month, AppInstanceNo, UnitNo, ProjectNo), i128>,
    pub(crate) closing: Option<ClosingShares>,
}

/// What the policies say about an app instance, each with the policy that says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingRules<'a> {
    /// The policy by which the control plane is not billable.
    pub not_billable: Option<&'a SharingPut>,
    /// The policy by which nothing is divided.
    pub not_distributable: Option<&'a SharingPut>,
    pub sharing: Option<(&'a SharingPut, &'a Sharing)>,
}

impl<'a> SharingRules<'a> {
    /// Of policies that are given from the narrowest on.
    fn of(policies: impl Iterator<Item = &'a SharingPut> + Clone) -> Self {
        let said = |what: fn(&SharingPut) -> Option<bool>| {
            policies.clone().find(|put| what(put).is_some()).filter(|put| what(put) == Some(false))
        };
        Self {
            not_billable: said(|put| put.control_plane_billable),
            not_distributable: said(|put| put.distributable),
            sharing: policies.clone().find_map(|put| Some((put, put.sharing.as_ref()?))),
        }
    }

    /// Whether anything is recorded about the cost.
    fn decides(&self) -> bool {
        self.not_billable.is_some() || self.applied().is_some()
    }

    /// How cost is divided, if it is and that is recorded.
    pub fn applied(&self) -> Option<(&'a SharingPut, &'a Sharing)> {
        self.sharing.filter(|(_, sharing)| match sharing.basis.divides() {
            true => self.not_distributable.is_none(),
            false => sharing.basis != SharingBasis::None,
        })
    }
}

/// The scopes of the policies for an app instance, the narrowest first. What all tenants share is not for its owner's
/// tenant to decide.
fn scopes(instance: &AppInstance) -> impl Iterator<Item = PolicyScope> + Clone {
    let app_type = instance.app_type;
    let own = PolicyScope { app_type, tenant: Some(instance.tenant), app_instance: Some(instance.number) };
    let of_tenant = PolicyScope { app_type, tenant: Some(instance.tenant), app_instance: None };
    let of_tenant = (instance.scope != ControlPlaneScope::Platform).then_some(of_tenant);
    let of_app = PolicyScope { app_type, tenant: None, app_instance: None };
    [Some(own), of_tenant, Some(of_app)].into_iter().flatten()
}

impl SharedCosts {
    /// What projects used of an app instance in a month, by unit.
    pub(crate) fn work_on(
        &self,
        month: Month,
        app: AppInstanceNo,
    ) -> impl Iterator<Item = (UnitNo, ProjectNo, u128)> + '_ {
        let first = (month, app, UnitNo(0), ProjectNo(0));
        let last = (month, app, UnitNo(u32::MAX), ProjectNo(u32::MAX));
        self.work.range(first..=last).filter_map(|((_, _, unit, project), used)| {
            let used = u128::try_from(*used).ok().filter(|used| *used > 0)?;
            Some((*unit, *project, used))
        })
    }

    /// What goes with an app instance.
    pub(crate) fn forget_instance(&mut self, app: AppInstanceNo) {
        self.policies.retain(|of, _| of.app_instance != Some(app));
        self.pools.retain(|(_, of, _), _| *of != app);
        self.work.retain(|(_, of, ..), _| *of != app);
    }
}

impl State {
    pub fn sharing_policy(&self, of: PolicyScope) -> Option<&SharingPut> {
        self.sharing.policies.get(&of)
    }
    /// All sharing policies in force, in order of their scopes.
    pub fn sharing_policies(&self) -> impl Iterator<Item = &SharingPut> {
        self.sharing.policies.values()
    }

    /// What the policies in force say about an app instance.
    pub fn sharing_rules(&self, instance: &AppInstance) -> SharingRules<'_> {
        SharingRules::of(scopes(instance).filter_map(|of| self.sharing.policies.get(&of)))
    }

    /// What the policies said at the cut of the month that is being closed.
    pub(crate) fn sharing_rules_at_cut(&self, instance: &AppInstance) -> SharingRules<'_> {
        let Some(closing) = &self.sharing.closing else { return SharingRules::default() };
        SharingRules::of(scopes(instance).filter_map(|of| closing.policies.get(&of)))
    }

    /// What the control plane of an app instance cost its owner in a month that is not closed.
    pub fn shared_pool(&self, month: Month, app: AppInstanceNo, currency: Currency) -> Steps {
        self.sharing.pools.get(&(month, app, currency)).copied().unwrap_or_default()
    }

    /// The control planes that cost something in a month that is not closed, and the currencies.
    pub fn shared_pools(&self, month: Month) -> impl Iterator<Item = (AppInstanceNo, Currency)> + '_ {
        let first = (month, AppInstanceNo(0), Currency::FIRST);
        let pools = self.sharing.pools.range(first..).take_while(move |((of, ..), _)| *of == month);
        pools.map(|((_, app, currency), _)| (*app, *currency))
    }

    /// The first month, among those that are not closed, in which the control plane of an app instance cost something that
    /// the policies share.
    pub(crate) fn month_to_share(&self, app: AppInstanceNo) -> Option<Month> {
        let instance = self.app_instance(app)?;
        let closing = self.ledger().closing.as_ref().map(|closing| closing.month);
        let is_shared = |month: Month| {
            let at_cut = closing == Some(month);
            let rules = if at_cut { self.sharing_rules_at_cut(instance) } else { self.sharing_rules(instance) };
            rules.decides()
        };
        let mut months = self.sharing.pools.keys().filter(|(_, of, _)| *of == app).map(|(month, ..)| *month);
        months.find(|month| is_shared(*month))
    }

    /// Whether the month that is being closed is divided by limits on a unit, and that is still to be done. Invoices come
    /// after all shares.
    pub(crate) fn is_divided_by_limits(&self, unit: UnitNo) -> bool {
        let is_due = self.ledger().closing.as_ref().is_some_and(|closing| closing.issued.is_empty());
        let by_limits =
            |put: &SharingPut| put.sharing.as_ref().is_some_and(|sharing| sharing.basis == SharingBasis::ByQuota(unit));
        is_due && self.sharing.closing.as_ref().is_some_and(|shares| shares.policies.values().any(by_limits))
    }

    /// The control planes whose cost in the month that is being closed is still to be shared, and the currencies.
    pub fn shares_due(&self) -> impl Iterator<Item = (AppInstanceNo, Currency)> + '_ {
        let closing = self.ledger().closing.as_ref().zip(self.sharing.closing.as_ref());
        let of_month = closing
            .into_iter()
            .flat_map(move |(closing, shares)| self.shared_pools(closing.month).filter(|of| !shares.done.contains(of)));
        of_month.filter(|(app, _)| {
            self.app_instance(*app).is_some_and(|instance| self.sharing_rules_at_cut(instance).decides())
        })
    }
}
