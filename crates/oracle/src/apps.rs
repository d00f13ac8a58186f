//! The registry of app runtimes (SEMANTICS 13): usage units and their prices, apps and app instances. What projects
//! lend is in `attachments.rs`.
//!
//! Where a command has several faults, the rules do not say which one is named: each of them is expected.

use crate::foretell::{Caller, Foretold, Told, sealed};
use crate::lease::{Lease, Phase};
use crate::violation::{Checked, demand, found};
use crate::world::World;
use leasehold_model::app::{FIRST_SITE_UNIT, MODES_AND_SCOPES, STANDARD_UNITS};
use leasehold_model::body::{
    AppInstanceDeleted, AppInstancePut, AppTypeDeleted, AppTypePut, AttachmentMade, UnitPricePut, UsageUnitPut,
};
use leasehold_model::limits::{
    APP_INSTANCES_PER_TENANT_MAX, APP_TYPES_MAX, UNIT_PRICE_MAX, UNITS_PER_APP_TYPE_MAX, USAGE_UNITS_MAX,
};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    AllocationSpec, AppInstanceNo, AppOrigin, AppTypeNo, AttachmentNo, Body, ControlPlaneScope, DenyCause, HolderScope,
    Instant, Name, OperatingMode, ProjectNo, Record, RuntimeBackend, TenantNo, UnitList, UnitMeasure, UnitNo,
};
use std::collections::BTreeMap;

/// What the records say about app runtimes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apps {
    /// Units that the site has defined, in order.
    pub(crate) units: Vec<UsageUnitPut>,
    pub(crate) prices: Vec<UnitPricePut>,
    pub(crate) types: BTreeMap<AppTypeNo, AppTypePut>,
    /// With their tenants.
    pub(crate) instances: BTreeMap<AppInstanceNo, (TenantNo, AppInstancePut)>,
    /// The highest number of an app instance in any record.
    highest: Option<u64>,
    /// Those that have not ended, with their tenants and since when they hold.
    pub(crate) attachments: BTreeMap<AttachmentNo, (TenantNo, AttachmentMade, Instant)>,
    /// Those that have ended, with their tenants and when they did.
    pub(crate) ended: BTreeMap<AttachmentNo, (TenantNo, AttachmentMade, Instant)>,
}

/// A kind of app to register or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppTypeWish {
    pub app_type: Option<AppTypeNo>,
    pub slug: Name,
    pub origin: AppOrigin,
    pub units: Vec<UnitNo>,
}

/// An app instance to register or rename.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppInstanceWish {
    pub app_instance: Option<AppInstanceNo>,
    pub project: ProjectNo,
    pub name: Name,
    pub app_type: AppTypeNo,
    pub mode: OperatingMode,
    pub scope: ControlPlaneScope,
    pub backend: RuntimeBackend,
}

/// A price of a usage unit; from now on if it does not say from when on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPriceWish {
    pub unit: UnitNo,
    pub app_type: Option<AppTypeNo>,
    pub currency: Currency,
    pub price: Decimal,
    pub from: Option<Instant>,
}

/// Codes of refusals, each with whether it applies.
pub(crate) type Faults<'a> = &'a [(bool, &'static str)];

/// Those that apply.
pub(crate) fn those(faults: Faults<'_>) -> Vec<&'static str> {
    faults.iter().filter(|(wrong, _)| *wrong).map(|(_, code)| *code).collect()
}

/// What is told unless there are faults.
pub(crate) fn unless(faults: Vec<&'static str>, told: impl FnOnce() -> Told) -> Told {
    match faults[..] {
        [] => told(),
        [fault] => Err(fault),
        _ => Ok(Foretold::RefusedAs(faults)),
    }
}

/// The app instances that a record names.
fn named_by(body: &Body) -> Vec<AppInstanceNo> {
    let of_cause =
        |cause: &DenyCause| if let DenyCause::Ceiling { app_instance, .. } = cause { *app_instance } else { None };
    let of_spec = |spec: &AllocationSpec| spec.app_instance;
    let named: Vec<Option<AppInstanceNo>> = if let Body::Granted(granted) = body {
        vec![granted.app_instance]
    } else if let Body::Denied(denied) = body {
        vec![denied.particulars.app_instance, of_cause(&denied.cause)]
    } else if let Body::AllocationSubmitted(submitted) = body {
        vec![of_spec(&submitted.spec)]
    } else if let Body::AllocationDenied(denied) = body {
        vec![of_spec(&denied.spec), of_cause(&denied.cause)]
    } else if let Body::AllocationChanged(changed) = body {
        vec![of_spec(&changed.spec)]
    } else if let Body::QuotaPut(put) = body {
        match put.scope.further.app_instance {
            Some(HolderScope::One(app)) => vec![Some(app)],
            Some(HolderScope::Each) | None => Vec::new(),
        }
    } else if let Body::TokenIssued(issued) = body {
        issued.scope.app_instances.iter().copied().map(Some).collect()
    } else if let Body::CeilingPut(put) = body {
        vec![put.app_instance]
    } else if let Body::CeilingDeleted(gone) = body {
        vec![gone.app_instance]
    } else if let Body::LedgerPosted(posted) = body {
        posted.lines.iter().map(|line| line.key.app_instance).collect()
    } else if let Body::LedgerCorrected(corrected) = body {
        corrected.line.iter().map(|line| line.key.app_instance).collect()
    } else if let Body::AppInstancePut(put) = body {
        vec![Some(put.app_instance)]
    } else {
        Vec::new()
    };
    named.into_iter().flatten().collect()
}

impl World {
    /// Whether app instances are registered before they are named. Nothing is demanded before a process has started.
    pub(crate) fn has_registry(&self) -> bool {
        self.rules_version.is_some_and(|version| version >= 6)
    }

    /// After each record: numbers of app instances are above all that were ever named.
    pub(crate) fn follow_instances(&mut self, record: &Record) {
        for number in named_by(&record.body) {
            self.apps.highest = self.apps.highest.max(Some(number.0));
        }
    }

    fn next_instance(&self) -> AppInstanceNo {
        AppInstanceNo(self.apps.highest.map_or(0, |highest| highest + 1))
    }

    pub(crate) fn unit_exists(&self, unit: UnitNo) -> bool {
        STANDARD_UNITS.iter().any(|(number, ..)| *number == unit) || self.apps.units.iter().any(|put| put.unit == unit)
    }

    /// An app instance of a tenant; those of other tenants do not exist for it.
    pub(crate) fn instance_of(&self, tenant: TenantNo, number: AppInstanceNo) -> Option<&AppInstancePut> {
        self.apps.instances.get(&number).filter(|(of, _)| *of == tenant).map(|(_, put)| put)
    }

    /// Whether something names an app instance that is not there, or is another tenant's.
    pub(crate) fn is_foreign(&self, tenant: TenantNo, number: AppInstanceNo) -> bool {
        self.has_registry() && self.instance_of(tenant, number).is_none()
    }

    fn next_unit(&self) -> UnitNo {
        UnitNo(FIRST_SITE_UNIT.0 + u32::try_from(self.apps.units.len()).expect("at most 1000"))
    }

    fn faults_of_unit(&self, name: &Name) -> Vec<&'static str> {
        let taken = STANDARD_UNITS.iter().any(|(_, standard, _)| *standard == name.as_str())
            || self.apps.units.iter().any(|put| put.name == *name);
        those(&[(taken, "name_taken"), (self.apps.units.len() >= USAGE_UNITS_MAX, "registry_full")])
    }

    pub(crate) fn usage_unit_put(&mut self, put: &UsageUnitPut) -> Checked {
        let faults = self.faults_of_unit(&put.name);
        demand!(faults.is_empty(), "usage-unit", "must be refused: {faults:?}");
        demand!(put.unit == self.next_unit(), "number", "{} where {} is next", put.unit, self.next_unit());
        self.apps.units.push(put.clone());
        Ok(())
    }

    pub(crate) fn foretell_unit(&self, caller: &Caller, name: &Name, measure: UnitMeasure) -> Told {
        let put = UsageUnitPut { unit: self.next_unit(), name: name.clone(), measure };
        unless(self.faults_of_unit(name), || sealed(caller.tenant, put))
    }

    fn faults_of_price(&self, put: &UnitPricePut, now: Instant) -> Vec<&'static str> {
        those(&[
            (!self.unit_exists(put.unit), "unknown_usage_unit"),
            (put.app_type.is_some_and(|app| !self.apps.types.contains_key(&app)), "unknown_app"),
            (put.price > UNIT_PRICE_MAX, "bad_unit_price"),
            (put.from < now, "start_in_past"),
        ])
    }

    pub(crate) fn unit_price_put(&mut self, record: &Record, put: &UnitPricePut) -> Checked {
        let faults = self.faults_of_price(put, record.stamp);
        demand!(faults.is_empty(), "unit-price", "must be refused: {faults:?}");
        let next = self.apps.prices.len() + 1;
        demand!(put.price_no as usize == next, "number", "price {} where {next} is next", put.price_no);
        self.apps.prices.push(put.clone());
        Ok(())
    }

    pub(crate) fn foretell_unit_price(&self, caller: &Caller, wish: &UnitPriceWish, now: Instant) -> Told {
        let put = UnitPricePut {
            price_no: u32::try_from(self.apps.prices.len() + 1).expect("few prices"),
            unit: wish.unit,
            app_type: wish.app_type,
            currency: wish.currency,
            price: wish.price,
            from: wish.from.unwrap_or(now),
        };
        unless(self.faults_of_price(&put, now), || sealed(caller.tenant, put))
    }

    /// What is wrong with an app, apart from its number.
    fn faults_of_app_type(&self, number: Option<AppTypeNo>, slug: &Name, units: &[UnitNo]) -> Vec<&'static str> {
        let old = number.and_then(|number| self.apps.types.get(&number));
        let taken = self.apps.types.values().any(|other| Some(other.app_type) != number && other.slug == *slug);
        let too_many = units.len() > UNITS_PER_APP_TYPE_MAX;
        let full = number.is_none() && self.apps.types.len() >= APP_TYPES_MAX;
        those(&[
            (taken, "name_taken"),
            (old.is_some_and(|old| old.slug != *slug), "app_fixed"),
            (units.iter().any(|unit| !self.unit_exists(*unit)), "unknown_usage_unit"),
            (too_many || full, "registry_full"),
        ])
    }

    pub(crate) fn app_type_put(&mut self, put: &AppTypePut) -> Checked {
        let known = self.apps.types.contains_key(&put.app_type);
        let units: Vec<UnitNo> = put.units.iter().collect();
        let faults = self.faults_of_app_type(known.then_some(put.app_type), &put.slug, &units);
        demand!(faults.is_empty(), "app-type", "must be refused: {faults:?}");
        if !known {
            self.check_new_number("app type", u64::from(put.app_type.0))?;
        }
        self.take_number("app type", u64::from(put.app_type.0));
        self.apps.types.insert(put.app_type, put.clone());
        Ok(())
    }

    pub(crate) fn foretell_app_type(&self, caller: &Caller, wish: &AppTypeWish) -> Told {
        let unknown = wish.app_type.is_some_and(|number| !self.apps.types.contains_key(&number));
        let mut faults = self.faults_of_app_type(wish.app_type, &wish.slug, &wish.units);
        faults.extend(unknown.then_some("unknown_app"));
        unless(faults, || {
            let app_type = wish.app_type.unwrap_or(AppTypeNo(self.next_number("app type")));
            let units = UnitList::new(wish.units.iter().copied()).expect("not too many");
            sealed(caller.tenant, AppTypePut { app_type, slug: wish.slug.clone(), origin: wish.origin, units })
        })
    }

    fn faults_of_app_type_gone(&self, number: AppTypeNo) -> Vec<&'static str> {
        let used = self.apps.instances.values().any(|(_, instance)| instance.app_type == number);
        those(&[(!self.apps.types.contains_key(&number), "unknown_app"), (used, "app_in_use")])
    }

    pub(crate) fn app_type_deleted(&mut self, gone: &AppTypeDeleted) -> Checked {
        let faults = self.faults_of_app_type_gone(gone.app_type);
        demand!(faults.is_empty(), "app-type", "must be refused: {faults:?}");
        self.apps.types.remove(&gone.app_type);
        self.drop_policies();
        Ok(())
    }

    pub(crate) fn foretell_app_type_gone(&self, caller: &Caller, app_type: AppTypeNo) -> Told {
        unless(self.faults_of_app_type_gone(app_type), || sealed(caller.tenant, AppTypeDeleted { app_type }))
    }

    /// What is wrong with an app instance, whoever registers it.
    fn faults_of_instance(&self, wish: &AppInstanceWish) -> Vec<&'static str> {
        let tenant = self.projects.get(&wish.project).map(|project| project.tenant);
        let old = wish.app_instance.and_then(|number| self.apps.instances.get(&number)).map(|(_, old)| old);
        let fixed = |old: &AppInstancePut| {
            (old.project, old.app_type) == (wish.project, wish.app_type)
                && (old.mode, old.scope, old.backend) == (wish.mode, wish.scope, wish.backend)
        };
        let is_platform = |scope: ControlPlaneScope| scope == ControlPlaneScope::Platform;
        let taken = self.apps.instances.values().any(|(of, other)| {
            let both_of_platform = is_platform(other.scope) && is_platform(wish.scope);
            let in_reach = Some(*of) == tenant || both_of_platform;
            in_reach && Some(other.app_instance) != wish.app_instance && other.name == wish.name
        });
        let own = self.apps.instances.values().filter(|(of, _)| Some(*of) == tenant).count();
        those(&[
            (tenant.is_none(), "unknown_project"),
            (!self.apps.types.contains_key(&wish.app_type), "unknown_app"),
            (!MODES_AND_SCOPES.contains(&(wish.mode, wish.scope)), "bad_mode_and_scope"),
            (old.is_some_and(|old| !fixed(old)), "app_fixed"),
            (taken, "name_taken"),
            (old.is_none() && own >= APP_INSTANCES_PER_TENANT_MAX, "registry_full"),
        ])
    }

    pub(crate) fn app_instance_put(&mut self, record: &Record, put: &AppInstancePut) -> Checked {
        let number = put.app_instance;
        let known = self.apps.instances.contains_key(&number);
        let next = self.next_instance();
        demand!(known || number == next, "number", "{number} where {next} is next");
        let wish = AppInstanceWish {
            app_instance: known.then_some(number),
            project: put.project,
            name: put.name.clone(),
            app_type: put.app_type,
            mode: put.mode,
            scope: put.scope,
            backend: put.backend,
        };
        let faults = self.faults_of_instance(&wish);
        demand!(faults.is_empty(), "app-instance", "must be refused: {faults:?}");
        let tenant = self.projects[&put.project].tenant;
        demand!(record.identity.tenant == Some(tenant), "app-instance", "{number} is of {tenant}");
        self.apps.instances.insert(number, (tenant, put.clone()));
        Ok(())
    }

    pub(crate) fn foretell_instance(&self, caller: &Caller, wish: &AppInstanceWish) -> Told {
        let mut faults = self.faults_of_instance(wish);
        let tenant = self.projects.get(&wish.project).map(|project| project.tenant);
        let of_platform = wish.mode == OperatingMode::PlatformManaged || wish.scope == ControlPlaneScope::Platform;
        let may_see = |tenant: TenantNo| caller.tenant.is_none_or(|own| own == tenant);
        let old = wish.app_instance.map(|number| self.apps.instances.get(&number));
        let hidden = old.is_some_and(|old| !old.is_some_and(|(of, _)| may_see(*of)));
        // The project and the instance of different tenants: for each of them the other one does not exist.
        let apart = old.flatten().is_some_and(|(of, _)| tenant.is_some_and(|tenant| tenant != *of));
        faults.extend(those(&[
            (apart || tenant.is_some_and(|tenant| !may_see(tenant)), "unknown_project"),
            (caller.tenant.is_some() && of_platform, "platform_by_operator"),
            (apart || hidden, "unknown_app_instance"),
        ]));
        unless(faults, || {
            let put = AppInstancePut {
                app_instance: wish.app_instance.unwrap_or_else(|| self.next_instance()),
                project: wish.project,
                name: wish.name.clone(),
                app_type: wish.app_type,
                mode: wish.mode,
                scope: wish.scope,
                backend: wish.backend,
            };
            sealed(tenant, put)
        })
    }

    /// Whether leases, allocations or attachments name an app instance. Fenced leases do not count, because they are
    /// over for their tenant.
    fn is_named(&self, number: AppInstanceNo) -> bool {
        let named = Some(number);
        self.leases.iter().any(|lease| lease.app_instance == named && lease.phase.counts_for_quota())
            || self.allocations.values().any(|found| found.spec.app_instance == named && !found.state.is_over())
            || self.apps.attachments.values().any(|(_, made, _)| made.app_instance == number)
    }

    pub(crate) fn app_instance_deleted(&mut self, record: &Record, gone: &AppInstanceDeleted) -> Checked {
        let number = gone.app_instance;
        let (tenant, _) = found!(self.apps.instances.get(&number), "app-instance", "there is no {number}");
        demand!(record.identity.tenant == Some(*tenant), "app-instance", "{number} is of {tenant}");
        demand!(!self.is_named(number), "app-instance", "{number} is in use");
        demand!(!self.has_unposted_usage_on(number), "unposted-app-usage", "{number}");
        demand!(!self.is_to_be_shared(number), "unshared-cost", "{number}");
        self.apps.instances.remove(&number);
        self.quotas.retain(|_, quota| quota.put.scope.further.app_instance != Some(HolderScope::One(number)));
        self.ceilings.retain(|(_, app), _| *app != Some(number));
        self.drop_entitlements();
        self.drop_policies();
        Ok(())
    }

    pub(crate) fn foretell_instance_gone(&self, caller: &Caller, app_instance: AppInstanceNo) -> Told {
        let found = self.apps.instances.get(&app_instance);
        let (tenant, _) =
            found.filter(|(of, _)| caller.tenant.is_none_or(|own| own == *of)).ok_or("unknown_app_instance")?;
        if self.is_named(app_instance) {
            return Err("app_instance_in_use");
        }
        // The rules do not say whether a fenced lease still counts.
        let fenced = |lease: &Lease| lease.phase == Phase::Fenced && lease.app_instance == Some(app_instance);
        let is_fenced = self.leases.iter().any(fenced);
        if self.has_unposted_usage_on(app_instance) || self.is_to_be_shared(app_instance) {
            let mut codes = vec!["unposted_app_usage", "unshared_cost"];
            codes.extend(is_fenced.then_some("app_instance_in_use"));
            return Ok(Foretold::RefusedAs(codes));
        }
        // Whether all of it is posted is not predicted.
        let is_used = self.leases.iter().any(|lease| lease.app_instance == Some(app_instance));
        if self.ledger.opened.is_some() && (is_used || self.has_usage_on(app_instance)) {
            return Ok(Foretold::Open);
        }
        if is_fenced {
            return Ok(Foretold::Open);
        }
        sealed(Some(*tenant), AppInstanceDeleted { app_instance })
    }
}
