//! Names, tax rates, app instances and payers of a tenant, record by record.

use crate::common::Common;
use crate::fold::Contradiction;
use crate::list::KnownApp;
use crate::tenant::Tenant;
use leasehold_model::{Body, Record};

impl Tenant {
    /// A record about how the tenant is set up; others change nothing here.
    pub(crate) fn set_up(&mut self, body: &Body) {
        if let Body::TenantPut(put) = body {
            (self.name, self.tag) = (Some(put.settings.name.clone()), put.settings.accounting_tag.clone());
        } else if let Body::ProjectPut(put) = body {
            self.projects.insert(put.project, put.name.clone());
        } else if let Body::ProjectDeleted(gone) = body {
            self.projects.remove(&gone.project);
        } else if let Body::AppInstancePut(put) = body {
            let (app_instance, app_type, name) = (put.app_instance, put.app_type, put.name.clone());
            self.app_instances.insert(app_instance, KnownApp { app_instance, app_type, name });
        } else if let Body::AppInstanceDeleted(gone) = body {
            self.app_instances.remove(&gone.app_instance);
        }
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
