//! The registry of app runtimes: usage units and their prices, kinds of apps, app instances, and attachments
//! (SEMANTICS 9 and 12).

use crate::state::{LastUse, State, Table, entry};
use leasehold_model::app::{FIRST_SITE_UNIT, STANDARD_UNITS};
use leasehold_model::limits::LATE_WINDOW;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    AllocationNo, AppInstanceNo, AppOrigin, AppTypeNo, AttachmentNo, ControlPlaneScope, Instant, Name, OperatingMode,
    ProjectNo, RuntimeBackend, TenantNo, UnitList, UnitMeasure, UnitNo,
};
use std::collections::BTreeMap;

/// The rules version from which numbers of attachments are above all that were named before.
pub(crate) const ATTACHMENTS_ABOVE_ALL: u32 = 7;

/// The rules version from which what is lent counts on the project that lends it.
pub(crate) const PAYERS_COUNT: u32 = 6;

/// A usage unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<'a> {
    pub number: UnitNo,
    pub name: &'a str,
    pub measure: UnitMeasure,
}

/// The price of a usage unit from an instant on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPrice {
    /// Numbered from 1.
    pub number: u32,
    pub unit: UnitNo,
    /// The kind of app that it is for; `None` for all that have none of their own.
    pub app_type: Option<AppTypeNo>,
    pub currency: Currency,
    pub price: Decimal,
    pub from: Instant,
}

/// A kind of app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppType {
    pub number: AppTypeNo,
    pub slug: Name,
    pub origin: AppOrigin,
    /// The units in which its runtimes report usage.
    pub units: UnitList,
}

/// A runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppInstance {
    pub number: AppInstanceNo,
    pub tenant: TenantNo,
    /// Its owner.
    pub project: ProjectNo,
    pub name: Name,
    pub app_type: AppTypeNo,
    pub mode: OperatingMode,
    pub scope: ControlPlaneScope,
    pub backend: RuntimeBackend,
}

/// What a project lends to a shared runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    pub number: AttachmentNo,
    pub tenant: TenantNo,
    pub app_instance: AppInstanceNo,
    pub source_project: ProjectNo,
    pub allocation: Option<AllocationNo>,
    pub made_at: Instant,
}

/// An attachment that has ended: usage of what was lent may still be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedAttachment {
    pub(crate) tenant: TenantNo,
    pub(crate) app_instance: AppInstanceNo,
    pub(crate) source_project: ProjectNo,
    pub(crate) allocation: Option<AllocationNo>,
    pub(crate) at: Instant,
}

/// What an attachment lends, or lent while usage could still be reported for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lends {
    pub(crate) app_instance: AppInstanceNo,
    pub(crate) source_project: ProjectNo,
    /// The one allocation that it lends, if it names one.
    pub(crate) allocation: Option<AllocationNo>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Apps {
    /// Those that the site defines.
    pub(crate) units: Vec<(Name, UnitMeasure)>,
    pub(crate) prices: Vec<UnitPrice>,
    pub(crate) types: Table<AppType>,
    pub(crate) instances: BTreeMap<AppInstanceNo, AppInstance>,
    /// Above every number in a record, also in those from before there was a registry.
    pub(crate) next_instance: u64,
    /// When instances were last used: the end of a lease for them, or usage that was reported.
    pub(crate) last_use: BTreeMap<AppInstanceNo, LastUse>,
    /// Those that have not ended.
    pub(crate) attachments: BTreeMap<AttachmentNo, Attachment>,
    pub(crate) next_attachment: u64,
    /// Those that have ended, as long as usage can be reported for them.
    pub(crate) ended: BTreeMap<AttachmentNo, EndedAttachment>,
    /// Instances by name. Those of the platform are found by all tenants.
    names: BTreeMap<(TenantNo, Name), AppInstanceNo>,
    platform_names: BTreeMap<Name, AppInstanceNo>,
}

impl Apps {
    pub(crate) fn note_instance(&mut self, number: AppInstanceNo) {
        self.next_instance = self.next_instance.max(number.0.saturating_add(1));
    }

    /// New attachments get numbers above all that records name.
    pub(crate) fn note_attachment(&mut self, number: AttachmentNo) {
        self.next_attachment = self.next_attachment.max(number.0.saturating_add(1));
    }

    /// Notes that an instance was used, if there is one: before there was a registry, leases named any.
    pub(crate) fn note_use(&mut self, number: AppInstanceNo, used: LastUse) {
        if self.instances.contains_key(&number) {
            self.last_use.insert(number, used);
        }
    }

    /// Whether another instance has the name: of the tenant or, for one of the platform, of the platform.
    pub(crate) fn is_taken(&self, name: &Name, tenant: TenantNo, of_platform: bool, by: AppInstanceNo) -> bool {
        let own = self.names.get(&(tenant, name.clone()));
        let shared = self.platform_names.get(name).filter(|_| of_platform);
        own.into_iter().chain(shared).any(|other| *other != by)
    }

    pub(crate) fn insert(&mut self, instance: AppInstance) {
        self.note_instance(instance.number);
        let last_use = self.last_use.get(&instance.number).copied();
        self.remove(instance.number);
        self.last_use.extend(last_use.map(|used| (instance.number, used)));
        self.names.insert((instance.tenant, instance.name.clone()), instance.number);
        if instance.scope == ControlPlaneScope::Platform {
            self.platform_names.insert(instance.name.clone(), instance.number);
        }
        self.instances.insert(instance.number, instance);
    }

    pub(crate) fn remove(&mut self, number: AppInstanceNo) -> Option<AppInstance> {
        let gone = self.instances.remove(&number)?;
        self.last_use.remove(&number);
        self.names.remove(&(gone.tenant, gone.name.clone()));
        if gone.scope == ControlPlaneScope::Platform {
            self.platform_names.remove(&gone.name);
        }
        Some(gone)
    }

    /// The instances and attachments of a tenant go with it.
    pub(crate) fn forget_tenant(&mut self, tenant: TenantNo) {
        let own = |instance: &&AppInstance| instance.tenant == tenant;
        let gone: Vec<AppInstanceNo> = self.instances.values().filter(own).map(|instance| instance.number).collect();
        gone.into_iter().for_each(|number| drop(self.remove(number)));
        self.attachments.retain(|_, attachment| attachment.tenant != tenant);
        self.ended.retain(|_, attachment| attachment.tenant != tenant);
    }

    /// What an attachment lends, or lent while usage could still be reported.
    pub(crate) fn lends(&self, number: AttachmentNo, now: Instant) -> Option<Lends> {
        if let Some(Attachment { app_instance, source_project, allocation, .. }) =
            self.attachments.get(&number).copied()
        {
            return Some(Lends { app_instance, source_project, allocation });
        }
        let lately = |ended: &&EndedAttachment| ended.at.saturating_add(LATE_WINDOW) >= now;
        let EndedAttachment { app_instance, source_project, allocation, .. } =
            *self.ended.get(&number).filter(lately)?;
        Some(Lends { app_instance, source_project, allocation })
    }
}

impl State {
    pub fn unit(&self, number: UnitNo) -> Option<Unit<'_>> {
        if let Some((number, name, measure)) = STANDARD_UNITS.iter().find(|(standard, ..)| *standard == number) {
            return Some(Unit { number: *number, name, measure: *measure });
        }
        let site = number.0.checked_sub(FIRST_SITE_UNIT.0)?;
        let (name, measure) = self.apps.units.get(site as usize)?;
        Some(Unit { number, name: name.as_str(), measure: *measure })
    }
    /// All usage units, those of every site first.
    pub fn units(&self) -> impl Iterator<Item = Unit<'_>> {
        let of_site = (FIRST_SITE_UNIT.0..).zip(&self.apps.units).map(|(number, _)| UnitNo(number));
        STANDARD_UNITS.iter().map(|(number, ..)| *number).chain(of_site).filter_map(|number| self.unit(number))
    }
    pub fn unit_named(&self, name: &str) -> Option<Unit<'_>> {
        self.units().find(|unit| unit.name == name)
    }
    /// All prices of usage units, in order of their numbers.
    pub fn unit_prices(&self) -> &[UnitPrice] {
        &self.apps.prices
    }

    /// The price of a unit that is in force at an instant, among those for one app, or for all.
    pub fn unit_price_at(&self, unit: UnitNo, app_type: Option<AppTypeNo>, at: Instant) -> Option<&UnitPrice> {
        let begun = |price: &&UnitPrice| price.unit == unit && price.app_type == app_type && price.from <= at;
        self.apps.prices.iter().filter(begun).max_by_key(|price| (price.from, price.number))
    }

    pub fn app_type(&self, number: AppTypeNo) -> Option<&AppType> {
        entry(&self.apps.types, number.0)
    }
    pub fn app_types(&self) -> impl Iterator<Item = &AppType> {
        self.apps.types.iter().flatten()
    }
    pub fn app_type_named(&self, slug: &str) -> Option<&AppType> {
        self.app_types().find(|found| found.slug.as_str() == slug)
    }

    pub fn app_instance(&self, number: AppInstanceNo) -> Option<&AppInstance> {
        self.apps.instances.get(&number)
    }
    /// The app instances after a number, in order.
    pub fn app_instances_after(&self, after: Option<AppInstanceNo>) -> impl Iterator<Item = &AppInstance> {
        let from = after.map_or(AppInstanceNo(0), |after| AppInstanceNo(after.0.saturating_add(1)));
        self.apps.instances.range(from..).map(|(_, instance)| instance)
    }
    /// The instance that a tenant means by a name: one of its own, or else one of the platform.
    pub fn app_instance_named(&self, tenant: TenantNo, name: &Name) -> Option<&AppInstance> {
        let own = self.apps.names.get(&(tenant, name.clone()));
        self.app_instance(*own.or_else(|| self.apps.platform_names.get(name))?)
    }

    /// An attachment that has not ended.
    pub fn attachment(&self, number: AttachmentNo) -> Option<&Attachment> {
        self.apps.attachments.get(&number)
    }
    /// The attachments after a number that have not ended, in order.
    pub fn attachments_after(&self, after: Option<AttachmentNo>) -> impl Iterator<Item = &Attachment> {
        let from = after.map_or(AttachmentNo(0), |after| AttachmentNo(after.0.saturating_add(1)));
        self.apps.attachments.range(from..).map(|(_, attachment)| attachment)
    }
}
