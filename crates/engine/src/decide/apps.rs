//! Commands about the registry of app runtimes, and what requests say about them (SEMANTICS 9 and 12).

use super::Draft;
use super::admission::RequestContext;
use super::inventory::number;
use super::rates::{may_wait, starts};
use crate::apps::AppInstance;
use crate::command::{MakeAttachment, PutAppInstance, PutAppType, PutUnitPrice, PutUsageUnit, RequestLease};
use crate::refusal::Refusal;
use leasehold_model::app::{FIRST_SITE_UNIT, MODES_AND_SCOPES};
use leasehold_model::body::{
    AllocationCancelled, AppInstanceDeleted, AppInstancePut, AppTypeDeleted, AppTypePut, AttachmentEnded,
    AttachmentMade, UnitPricePut, UsageUnitPut,
};
use leasehold_model::limits::{
    APP_INSTANCES_PER_TENANT_MAX, APP_TYPES_MAX, ATTACHMENTS_PER_TENANT_MAX, UNIT_PRICE_MAX, UNITS_PER_APP_TYPE_MAX,
    USAGE_UNITS_MAX,
};
use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, AppTypeNo, AttachmentNo, ControlPlaneScope, Identity, ProjectNo,
    TenantNo, UnitList, UnitNo,
};

impl Draft<'_> {
    pub(super) fn put_usage_unit(&mut self, put: &PutUsageUnit) -> Result<(), Refusal> {
        if self.state().unit_named(put.name.as_str()).is_some() {
            return Err(Refusal::NameTaken);
        }
        let defined = self.state().apps.units.len();
        if defined >= USAGE_UNITS_MAX {
            return Err(Refusal::RegistryFull { what: "usage units", limit: USAGE_UNITS_MAX });
        }
        let unit = UnitNo(FIRST_SITE_UNIT.0 + number(None, defined)?);
        self.plain(UsageUnitPut { unit, name: put.name.clone(), measure: put.measure });
        Ok(())
    }

    pub(super) fn put_unit_price(&mut self, put: &PutUnitPrice) -> Result<(), Refusal> {
        let state = self.state();
        let PutUnitPrice { unit, app_type, currency, price, from } = *put;
        state.unit(unit).ok_or(Refusal::UnknownUnit { unit })?;
        if let Some(app_type) = app_type {
            state.app_type(app_type).ok_or(Refusal::UnknownAppType { app_type })?;
        }
        if price > UNIT_PRICE_MAX {
            return Err(Refusal::BadUnitPrice { max: UNIT_PRICE_MAX });
        }
        let from = starts(from, self.now)?;
        may_wait(from, self.now, state.unit_prices().iter().filter(|other| other.from > self.now).count())?;
        let price_no = number(None, state.unit_prices().len() + 1)?;
        self.plain(UnitPricePut { price_no, unit, app_type, currency, price, from });
        Ok(())
    }

    pub(super) fn put_app_type(&mut self, put: &PutAppType) -> Result<(), Refusal> {
        let state = self.state();
        let all = state.apps.types.len();
        let app_type = AppTypeNo(number(put.app_type.map(|given| given.0), all)?);
        match put.app_type {
            Some(app_type) => {
                let old = state.app_type(app_type).ok_or(Refusal::UnknownAppType { app_type })?;
                if old.slug != put.slug {
                    return Err(Refusal::AppFixed { what: "the slug of an app" });
                }
            }
            None if all >= APP_TYPES_MAX => {
                return Err(Refusal::RegistryFull { what: "apps", limit: APP_TYPES_MAX });
            }
            None if state.app_type_named(put.slug.as_str()).is_some() => return Err(Refusal::NameTaken),
            None => {}
        }
        if let Some(unit) = put.units.iter().find(|unit| state.unit(**unit).is_none()) {
            return Err(Refusal::UnknownUnit { unit: *unit });
        }
        let units = UnitList::new(put.units.iter().copied());
        let units = units.ok_or(Refusal::RegistryFull { what: "units of an app", limit: UNITS_PER_APP_TYPE_MAX })?;
        self.plain(AppTypePut { app_type, slug: put.slug.clone(), origin: put.origin, units });
        Ok(())
    }

    pub(super) fn delete_app_type(&mut self, app_type: AppTypeNo) -> Result<(), Refusal> {
        let state = self.state();
        state.app_type(app_type).ok_or(Refusal::UnknownAppType { app_type })?;
        if state.app_instances_after(None).any(|instance| instance.app_type == app_type) {
            return Err(Refusal::AppTypeInUse { app_type });
        }
        self.plain(AppTypeDeleted { app_type });
        Ok(())
    }

    pub(super) fn put_app_instance(&mut self, put: &PutAppInstance) -> Result<(), Refusal> {
        let state = self.state();
        let found = state.project(put.project).filter(|found| self.may_see(found.tenant));
        let tenant = found.ok_or(Refusal::UnknownProject { project: put.project })?.tenant;
        state.app_type(put.app_type).ok_or(Refusal::UnknownAppType { app_type: put.app_type })?;
        if !MODES_AND_SCOPES.contains(&(put.mode, put.scope)) {
            return Err(Refusal::BadModeAndScope { mode: put.mode, scope: put.scope });
        }
        let of_platform = put.scope == ControlPlaneScope::Platform;
        if of_platform && self.identity.tenant.is_some() {
            return Err(Refusal::PlatformByOperator);
        }
        let app_instance = match put.app_instance {
            Some(app_instance) => {
                let old = state.app_instance(app_instance).filter(|old| old.tenant == tenant);
                let old = old.ok_or(Refusal::UnknownAppInstance { app_instance })?;
                let fixed = (old.project, old.app_type, old.mode, old.scope, old.backend);
                if fixed != (put.project, put.app_type, put.mode, put.scope, put.backend) {
                    return Err(Refusal::AppFixed { what: "all of an app instance but its name" });
                }
                app_instance
            }
            None => {
                let limit = APP_INSTANCES_PER_TENANT_MAX;
                if state.app_instances_after(None).filter(|other| other.tenant == tenant).count() >= limit {
                    return Err(Refusal::RegistryFull { what: "app instances of a tenant", limit });
                }
                Some(state.apps.next_instance)
                    .filter(|next| *next < u64::MAX)
                    .map(AppInstanceNo)
                    .ok_or(Refusal::Numbers)?
            }
        };
        if state.apps.is_taken(&put.name, tenant, of_platform, app_instance) {
            return Err(Refusal::NameTaken);
        }
        let PutAppInstance { project, app_type, mode, scope, backend, .. } = *put;
        let body = AppInstancePut { app_instance, project, name: put.name.clone(), app_type, mode, scope, backend };
        self.emit(Some(tenant), body, |_| {});
        Ok(())
    }

    /// The instance, if it is one of the tenant.
    pub(super) fn known_app_instance(
        &self,
        tenant: TenantNo,
        app_instance: AppInstanceNo,
    ) -> Result<&AppInstance, Refusal> {
        let found = self.state().app_instance(app_instance).filter(|found| found.tenant == tenant);
        found.ok_or(Refusal::UnknownAppInstance { app_instance })
    }

    pub(super) fn delete_app_instance(&mut self, app_instance: AppInstanceNo) -> Result<(), Refusal> {
        let state = self.state();
        let found = state.app_instance(app_instance).filter(|found| self.may_see(found.tenant));
        let tenant = found.ok_or(Refusal::UnknownAppInstance { app_instance })?.tenant;
        let by = if state.ceilings.apps().values().any(|of| *of == app_instance) {
            Some("leases")
        } else if state.has_allocations(|allocation| allocation.spec.app_instance == Some(app_instance)) {
            Some("allocations")
        } else if state.attachments_after(None).any(|attachment| attachment.app_instance == app_instance) {
            Some("attachments")
        } else {
            None
        };
        if let Some(by) = by {
            return Err(Refusal::AppInstanceInUse { app_instance, by });
        }
        self.check_app_owes_nothing(app_instance)?;
        self.emit(Some(tenant), AppInstanceDeleted { app_instance }, |_| {});
        Ok(())
    }

    /// Refuses to delete an instance while that would change who pays: what it used is not posted yet, or what its control
    /// plane cost in a month that is not closed is to be shared.
    fn check_app_owes_nothing(&self, app_instance: AppInstanceNo) -> Result<(), Refusal> {
        let state = self.state();
        if !state.is_app_posted(app_instance) {
            return Err(Refusal::UnpostedAppUsage { app_instance });
        }
        match state.month_to_share(app_instance) {
            Some(month) => Err(Refusal::UnsharedCost { app_instance, month }),
            None => Ok(()),
        }
    }

    pub(super) fn make_attachment(&mut self, make: &MakeAttachment) -> Result<(), Refusal> {
        let state = self.state();
        let MakeAttachment { app_instance, source_project, allocation } = *make;
        let found = state.app_instance(app_instance).filter(|found| self.may_see(found.tenant));
        let instance = found.ok_or(Refusal::UnknownAppInstance { app_instance })?;
        let tenant = instance.tenant;
        if instance.scope != ControlPlaneScope::Tenant {
            return Err(Refusal::NotShared { app_instance });
        }
        let project = state.project(source_project).filter(|project| project.tenant == tenant);
        project.ok_or(Refusal::UnknownProject { project: source_project })?;
        if instance.project == source_project {
            return Err(Refusal::OwnAttachment { app_instance });
        }
        if let Some(allocation) = allocation {
            let lent = state.allocation(allocation).filter(|lent| lent.project == source_project);
            lent.ok_or(Refusal::AllocationNotFound { allocation })?;
            if state.attachments_after(None).any(|other| other.allocation == Some(allocation)) {
                return Err(Refusal::AllocationLent { allocation });
            }
        }
        let limit = ATTACHMENTS_PER_TENANT_MAX;
        if state.attachments_after(None).filter(|other| other.tenant == tenant).count() >= limit {
            return Err(Refusal::RegistryFull { what: "attachments of a tenant", limit });
        }
        let attachment = AttachmentNo(state.apps.next_attachment);
        self.emit(Some(tenant), AttachmentMade { attachment, app_instance, source_project, allocation }, |_| {});
        Ok(())
    }

    /// Ends an attachment. What waits on its account is cancelled; what runs goes on until its deadline.
    pub(super) fn end_attachment(&mut self, attachment: AttachmentNo) -> Result<(), Refusal> {
        let state = self.state();
        let found = state.attachment(attachment).filter(|found| self.may_see(found.tenant));
        let tenant = found.ok_or(Refusal::UnknownAttachment { attachment })?.tenant;
        let waiting: Vec<(AllocationNo, Identity)> = state
            .allocations_after(None)
            .filter(|waiting| waiting.lent().is_some_and(|lent| lent.0 == attachment) && waiting.state.is_queued())
            .map(|waiting| (waiting.number, waiting.identity()))
            .collect();
        self.emit(Some(tenant), AttachmentEnded { attachment }, |_| {});
        for (allocation, identity) in waiting {
            self.emit_shaped(&identity, AllocationCancelled { allocation }, |_| {});
        }
        Ok(())
    }
}

impl RequestContext<'_> {
    /// Checks what a request says about an app: it exists, its owner holds the capacity, and capacity that another
    /// project pays for is lent by an attachment that has not ended.
    pub(super) fn check_app(&self, spec: AppOfRequest) -> Result<(), Refusal> {
        let AppOfRequest { app_instance, attachment, source_project } = spec;
        let view = self.view;
        if let Some(app_instance) = app_instance {
            let found = view.app_instance(app_instance).filter(|found| Some(found.tenant) == self.identity.tenant);
            let found = found.ok_or(Refusal::UnknownAppInstance { app_instance })?;
            if Some(found.project) != self.identity.project {
                return Err(Refusal::AppOfOtherProject { app_instance, project: found.project });
            }
        }
        match (attachment, source_project) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(Refusal::SourceNeedsAttachment),
            (Some(attachment), source_project) => {
                let found = view.attachment(attachment).filter(|found| Some(found.tenant) == self.identity.tenant);
                let found = found.ok_or(Refusal::UnknownAttachment { attachment })?;
                let agrees = app_instance == Some(found.app_instance) && source_project == Some(found.source_project);
                if agrees { Ok(()) } else { Err(Refusal::AttachmentMismatch { attachment }) }
            }
        }
    }
}

/// What a request says about an app.
#[derive(Clone, Copy)]
pub(super) struct AppOfRequest {
    app_instance: Option<AppInstanceNo>,
    attachment: Option<AttachmentNo>,
    source_project: Option<ProjectNo>,
}

impl From<&AllocationSpec> for AppOfRequest {
    fn from(spec: &AllocationSpec) -> Self {
        let AllocationSpec { app_instance, attachment, source_project, .. } = *spec;
        Self { app_instance, attachment, source_project }
    }
}

impl From<&RequestLease> for AppOfRequest {
    fn from(request: &RequestLease) -> Self {
        let RequestLease { app_instance, attachment, source_project, .. } = *request;
        Self { app_instance, attachment, source_project }
    }
}
