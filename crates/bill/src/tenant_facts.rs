//! Names, tax rates, app instances and payers of a tenant, record by record.

use crate::common::{Common, known_app};
use crate::fold::Contradiction;
use crate::tenant::Tenant;
use leasehold_model::body::{EntitlementPut, EntitlementScope};
use leasehold_model::{AppInstanceNo, Body, Record};

impl Tenant {
    /// A record about how the tenant is set up; others change nothing here.
    pub(crate) fn set_up(&mut self, body: &Body) {
        if let Body::TenantPut(put) = body {
            (self.name, self.tag) = (Some(put.settings.name.clone()), put.settings.accounting_tag.clone());
        } else if let Body::ProjectPut(put) = body {
            self.projects.insert(put.project, put.name.clone());
        } else if let Body::ProjectDeleted(gone) = body {
            self.projects.remove(&gone.project);
            self.limits.retain(|(project, ..), _| *project != gone.project);
        } else if let Body::AppInstancePut(put) = body {
            self.app_instances.insert(put.app_instance, known_app(put));
        } else if let Body::AppInstanceDeleted(gone) = body {
            self.app_instances.remove(&gone.app_instance);
            self.sharing.retain(|of, _| of.app_instance != Some(gone.app_instance));
            self.drop_limits_on(gone.app_instance);
        } else if let Body::SharingPut(put) = body {
            self.sharing.insert(put.of, put.clone());
        } else if let Body::EntitlementPut(put) = body {
            self.put_limit(put);
        } else if let Body::EntitlementDeleted(gone) = body {
            self.put_limit(&EntitlementPut { of: gone.of, soft: None, hard: None });
        }
    }

    /// The hard limit of a project; soft ones, and those of app instances alone, change no bill.
    fn put_limit(&mut self, put: &EntitlementPut) {
        let EntitlementScope { project, app_instance, unit } = put.of;
        let Some(project) = project else { return };
        let of = (project, app_instance, unit);
        match put.hard {
            Some(hard) => drop(self.limits.insert(of, hard)),
            None => drop(self.limits.remove(&of)),
        }
    }

    /// The limits on an app instance go with it, whoever it belongs to.
    pub(crate) fn drop_limits_on(&mut self, app: AppInstanceNo) {
        self.limits.retain(|(_, of, _), _| *of != Some(app));
    }

    /// A record of the ledger.
    pub(crate) fn book(&mut self, record: &Record, common: &Common) -> Result<(), Contradiction> {
        if let Body::LedgerPosted(posted) = &record.body {
            self.posted(record, posted.currency, Some(posted.residual));
        } else if let Body::LedgerCorrected(corrected) = &record.body {
            self.posted(record, corrected.currency, Some(corrected.residual));
        } else if let Body::LedgerAdjusted(adjusted) = &record.body {
            self.posted(record, adjusted.currency, None);
        } else if let Body::LedgerShared(shared) = &record.body {
            self.posted(record, shared.currency, None);
        } else if let Body::TaxRatePut(put) = &record.body {
            self.tax_rates.insert(put.from, put.rate);
        } else if let Body::UsageRecorded(recorded) = &record.body
            && let Some(kept) = &mut self.kept
        {
            if !recorded.has_times_before(record.stamp) {
                return Err(Contradiction::Says("it reports usage at times that cannot be"));
            }
            let number = recorded.report.app_instance;
            let app = self.app_instances.get(&number).or_else(|| common.app_instances.get(&number));
            let app = app.ok_or(Contradiction::Says("it reports usage of an unknown app instance"))?;
            let project = record.identity.project.ok_or(Contradiction::Says("it reports usage without a project"))?;
            kept.reported.add(common, app.app_type, project, recorded)?;
        }
        Ok(())
    }
}
