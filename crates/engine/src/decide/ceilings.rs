//! Commands about cost ceilings, and the check of renewals against them (SEMANTICS 4).

use super::Draft;
use crate::ceiling::CeilingScope;
use crate::command::{DeleteCeiling, PutCeiling};
use crate::lease::Lease;
use crate::prepaid::PrepaidKey;
use crate::refusal::Refusal;
use leasehold_model::body::{CeilingDeleted, CeilingPut};
use leasehold_model::ceiling::can_be_a_ceiling;
use leasehold_model::limits::{CEILING_AMOUNT_MAX, CEILINGS_PER_TENANT_MAX};
use leasehold_model::{Amount, CeilingMode, Instant, ProjectNo, TenantNo};
use std::collections::BTreeMap;

/// What the renewals of one command take so far.
#[derive(Default)]
pub(super) struct Taken {
    ceilings: BTreeMap<CeilingScope, Amount>,
    prepaid: Vec<(PrepaidKey, Amount)>,
}

impl Draft<'_> {
    fn tenant_of_project(&self, project: ProjectNo) -> Result<TenantNo, Refusal> {
        let found = self.state().project(project).map(|found| found.tenant);
        found.filter(|tenant| self.may_see(*tenant)).ok_or(Refusal::UnknownProject { project })
    }

    pub(super) fn put_ceiling(&mut self, put: &PutCeiling) -> Result<(), Refusal> {
        let (project, app_instance) = (put.project, put.app_instance);
        let tenant = self.tenant_of_project(project)?;
        if !can_be_a_ceiling(put.amount) {
            return Err(Refusal::BadCeiling { max: CEILING_AMOUNT_MAX });
        }
        let old = self.state().ceiling(CeilingScope { project, app_instance });
        if let (None, Some(app_instance)) = (old, app_instance) {
            self.known_app_instance(tenant, app_instance)?;
        }
        match old {
            Some(old) if old.currency != put.currency => return Err(Refusal::CurrencyFixed { currency: old.currency }),
            None if self.state().ceilings_of(tenant).count() >= CEILINGS_PER_TENANT_MAX => {
                return Err(Refusal::TooManyCeilings { limit: CEILINGS_PER_TENANT_MAX });
            }
            _ => {}
        }
        let (amount, currency, mode) = (put.amount, put.currency, put.mode);
        self.emit(Some(tenant), CeilingPut { project, app_instance, amount, currency, mode }, |_| {});
        Ok(())
    }

    pub(super) fn delete_ceiling(&mut self, gone: &DeleteCeiling) -> Result<(), Refusal> {
        let (project, app_instance) = (gone.project, gone.app_instance);
        let tenant = self.tenant_of_project(project)?;
        if self.state().ceiling(CeilingScope { project, app_instance }).is_none() {
            return Err(Refusal::UnknownCeiling { project });
        }
        self.emit(Some(tenant), CeilingDeleted { project, app_instance }, |_| {});
        Ok(())
    }

    /// Checks that the hard ceilings cover a lease until `until`: the extension, and the effect of price changes since
    /// its deadline was set. A deadline that does not move later is never refused. Adds the cost to `taken`.
    pub(super) fn check_renewal_cost(&self, lease: &Lease, until: Instant, taken: &mut Taken) -> Result<(), Refusal> {
        let state = self.state();
        self.check_prepaid_renewal(lease, until, &mut taken.prepaid)?;
        if state.ceilings.is_empty() {
            return Ok(());
        }
        let taken = &mut taken.ceilings;
        let mut extras = BTreeMap::new();
        for ceiling in state.ceilings_over(lease).filter(|ceiling| ceiling.mode == CeilingMode::Hard) {
            let cost = state.cost_under(ceiling, lease, until);
            let requested = cost.saturating_sub(ceiling.reserved_for(lease.number));
            let others = taken.get(&ceiling.scope).copied().unwrap_or_default();
            let used = state.ceiling_use(ceiling, self.now).total().saturating_add(others);
            let extends = until > lease.expires_at && requested > Amount::ZERO;
            if extends && used.saturating_add(requested) > ceiling.amount {
                let (amount, currency) = (ceiling.amount, ceiling.currency);
                let (lease, of) = (lease.number, ceiling.scope);
                return Err(Refusal::CeilingExceeded { lease, of, requested, used, amount, currency });
            }
            extras.insert(ceiling.scope, others.saturating_add(requested));
        }
        taken.extend(extras);
        Ok(())
    }
}
