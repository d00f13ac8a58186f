//! Usage that the runtimes of apps report: what was used in each hour, what of it is not posted yet, and all IDs.
//!
//! A report is divided at the borders of months and prices (`leasehold_meter::unit_parts`); each part belongs to a series
//! and an hour.

mod answer;
mod filter;
mod hours;
mod ids;
mod persist;
mod refused;
mod unposted;

pub use answer::UnitLine;
pub use ids::KnownUsage;

use crate::ask::Anchors;
use crate::correlations::LinePart;
use crate::facts::{Books, BooksError};
use crate::runs::Runs;
use crate::store::USAGE_BEHIND;
use hours::UnitHours;
pub(crate) use ids::{UsageIds, WrittenIds};
use leasehold_meter::unit_parts;
use leasehold_model::app::STANDARD_UNITS;
use leasehold_model::body::{
    AppInstancePut, AppPolicyPut, PolicyScope, SharingPut, UnitPricePut, UsageRecorded, UsageUnitPut,
};
use leasehold_model::ledger::{HOUR_NS, LineKey};
use leasehold_model::{
    AppInstanceNo, AppTypeNo, AttachmentNo, ControlPlaneScope, Instant, Item, OperatingMode, ProjectNo, Record,
    RuntimeBackend, TenantNo, UnitMeasure, UnitNo, UnitQuantity, UsageCharge, fields,
};
use std::collections::BTreeMap;
use std::sync::Arc;
pub(crate) use unposted::Unposted;

fields! {
    /// What never changes of an app instance.
    #[derive(Copy)]
    pub struct AppAnchors {
        pub app_type: AppTypeNo,
        pub mode: OperatingMode,
        pub scope: ControlPlaneScope,
        pub backend: RuntimeBackend,
    }
}

fields! {
    /// What reported usage has in common beside its hour.
    #[derive(Copy, PartialOrd, Ord, Hash)]
    pub struct UnitSeries {
        pub tenant: TenantNo,
        /// Whose usage it is.
        pub project: ProjectNo,
        /// The project itself, or one that is credited with what it costs.
        pub payer: ProjectNo,
        pub app_instance: AppInstanceNo,
        pub attachment: Option<AttachmentNo>,
        pub control_plane: bool,
        pub unit: UnitNo,
        /// The number of its price; none if the unit had no price.
        pub price: Option<u32>,
        pub charge: UsageCharge,
    }
}

/// A part of a report, in the parts of a line; negative if it no longer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contribution {
    pub(crate) series: u32,
    pub(crate) hour: Instant,
    pub(crate) by: i128,
}

#[derive(Default)]
pub(crate) struct UnitBook {
    pub(crate) series: Vec<UnitSeries>,
    numbers: BTreeMap<UnitSeries, u32>,
    /// All prices; the first one has the number 1.
    pub(crate) prices: Vec<UnitPricePut>,
    /// Each instance, also deleted ones.
    pub(crate) apps: Arc<Anchors>,
    /// The units that the site defines.
    pub(crate) measures: BTreeMap<UnitNo, UnitMeasure>,
    pub(crate) hours: UnitHours,
    pub(crate) unposted: Unposted,
    pub(crate) ids: UsageIds,
    /// The records behind each series and hour.
    pub(crate) behind: Runs,
    /// Usage that entitlements refused, by month, tenant and project.
    pub(crate) refused: Runs,
    /// The records of all versions of policies.
    pub(crate) policies: BTreeMap<(PolicyScope, u32), u64>,
    pub(crate) sharing: BTreeMap<(PolicyScope, u32), u64>,
}

/// Whose usage a report, or the one that it replaces, is about.
#[derive(Clone, Copy)]
struct Reported {
    project: ProjectNo,
    attachment: Option<AttachmentNo>,
    control_plane: bool,
    charge: UsageCharge,
    quantity: UnitQuantity,
    from: Instant,
    to: Instant,
}

impl UnitBook {
    pub(crate) fn put_price(&mut self, put: &UnitPricePut) {
        self.prices.push(put.clone());
    }
    pub(crate) fn put_instance(&mut self, put: &AppInstancePut) {
        let AppInstancePut { app_instance, app_type, mode, scope, backend, .. } = *put;
        Arc::make_mut(&mut self.apps).insert(app_instance, AppAnchors { app_type, mode, scope, backend });
    }
    pub(crate) fn put_policy(&mut self, put: &AppPolicyPut, sequence: u64) {
        self.policies.insert((put.of, put.version), sequence);
    }
    pub(crate) fn put_sharing(&mut self, put: &SharingPut, sequence: u64) {
        self.sharing.insert((put.of, put.version), sequence);
    }
    pub(crate) fn put_unit(&mut self, put: &UsageUnitPut) {
        self.measures.insert(put.unit, put.measure);
    }

    fn measure(&self, unit: UnitNo) -> Option<UnitMeasure> {
        let standard = STANDARD_UNITS.iter().find(|(number, ..)| *number == unit).map(|(.., measure)| *measure);
        standard.or_else(|| self.measures.get(&unit).copied())
    }

    /// The price of a unit for an app at an instant: its own, or else the one for all apps.
    fn price_at(&self, unit: UnitNo, app: AppTypeNo, at: Instant) -> Option<u32> {
        let in_force = |of: Option<AppTypeNo>| {
            let begun =
                self.prices.iter().filter(|price| price.unit == unit && price.app_type == of && price.from <= at);
            begun.max_by_key(|price| (price.from, price.price_no)).map(|price| price.price_no)
        };
        in_force(Some(app)).or_else(|| in_force(None))
    }

    pub(crate) fn price(&self, number: u32) -> Option<&UnitPricePut> {
        self.prices.get(number.checked_sub(1)? as usize)
    }

    pub(crate) fn number(&mut self, series: UnitSeries) -> u32 {
        let next = u32::try_from(self.series.len()).expect("fewer than 2^32 series");
        let number = *self.numbers.entry(series).or_insert(next);
        if number == next {
            self.series.push(series);
        }
        number
    }

    fn parts(
        &mut self,
        tenant: TenantNo,
        (app_instance, unit): (AppInstanceNo, UnitNo),
        reported: &Reported,
        (payer, is_taken_back): (ProjectNo, bool),
    ) -> Result<Vec<Contribution>, &'static str> {
        let measure = self.measure(unit).ok_or("an unknown usage unit")?;
        let app = self.apps.get(&app_instance).ok_or("an unknown app instance")?.app_type;
        let of_unit: Vec<Instant> =
            self.prices.iter().filter(|price| price.unit == unit).map(|price| price.from).collect();
        let Reported { project, attachment, control_plane, charge, quantity, from, to } = *reported;
        let part = |part: leasehold_meter::UnitPart| {
            let price = self.price_at(unit, app, part.priced_at);
            let series =
                UnitSeries { tenant, project, payer, app_instance, attachment, control_plane, unit, price, charge };
            let by = i128::try_from(part.quantity).map_err(|_| "usage is too large")?;
            let by = if is_taken_back { -by } else { by };
            Ok(Contribution { series: self.number(series), hour: part.hour, by })
        };
        unit_parts(measure, quantity, (from, to), of_unit).into_iter().map(part).collect()
    }
}

impl Books {
    pub(crate) fn usage_recorded(&mut self, record: &Record, recorded: &UsageRecorded) -> Result<(), &'static str> {
        let tenant = record.identity.tenant.ok_or("usage without a tenant")?;
        let project = record.identity.project.ok_or("usage without a project")?;
        if !recorded.has_times_before(record.stamp) {
            return Err("usage that was not over");
        }
        let report = &recorded.report;
        let what = (report.app_instance, report.unit);
        let reported = Reported {
            project,
            attachment: report.attachment,
            control_plane: report.control_plane,
            charge: recorded.charge,
            quantity: report.quantity,
            from: report.from,
            to: report.to,
        };
        // Whoever is credited gets back what the project pays.
        let mut parts = self.units.parts(tenant, what, &reported, (project, false))?;
        if let Some(creditor) = recorded.creditor {
            parts.extend(self.units.parts(tenant, what, &reported, (creditor, true))?);
        }
        for part in &parts {
            let part = LinePart { series: part.series, hour: part.hour };
            self.index_usage(record, tenant, report.correlation, part);
        }
        if let Some(old) = &recorded.replaces {
            let replaced = Reported {
                project: old.project,
                attachment: old.attachment,
                control_plane: old.control_plane,
                charge: old.charge,
                quantity: old.quantity,
                from: old.from,
                to: old.to,
            };
            parts.extend(self.units.parts(tenant, what, &replaced, (old.project, true))?);
            if let Some(creditor) = recorded.replaced_creditor {
                parts.extend(self.units.parts(tenant, what, &replaced, (creditor, false))?);
            }
        }
        let units = &mut self.units;
        for part in parts.into_iter().filter(|part| part.by != 0) {
            units.hours.add(part);
            units.behind.add([part.series.into(), part.hour.0 / HOUR_NS, record.sequence, 0, 0]);
            let series = &units.series[part.series as usize];
            if series.charge == UsageCharge::Billed && series.price.is_some() {
                units.unposted.add(record.sequence, part, self.ledger.opened);
            }
        }
        units.ids.add(record, recorded);
        self.forget_contributions(record.sequence);
        Ok(())
    }

    /// The usage records behind a payer's line of a usage unit, in order, up to a limit; and whether there are more.
    pub fn line_records(&self, payer: ProjectNo, key: &LineKey, limit: usize) -> Result<(Vec<u64>, bool), BooksError> {
        let is_of = |series: &UnitSeries| {
            Item::Unit(series.unit) == key.item
                && series.payer == payer
                && series.charge == UsageCharge::Billed
                && (series.project, Some(series.app_instance)) == (key.project, key.app_instance)
                && (series.attachment, series.control_plane) == (key.attachment, key.control_plane)
                && series.price == key.card
        };
        let Some(series) = self.units.series.iter().position(is_of) else { return Ok((Vec::new(), false)) };
        let (series, hour) = (series as u64, key.hour.0 / HOUR_NS);
        let range = ([series, hour, 0, 0, 0], [series, hour, u64::MAX, 0, 0]);
        let mut found: Vec<u64> =
            self.units.behind.range(USAGE_BEHIND, &self.store, range, limit + 1)?.iter().map(|key| key[2]).collect();
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok((found, has_more))
    }

    pub fn unit_series(&self, number: u32) -> Option<&UnitSeries> {
        self.units.series.get(number as usize)
    }

    /// The records of all versions of the policy of a scope, the oldest first.
    pub fn policy_versions(&self, of: PolicyScope) -> Vec<(u32, u64)> {
        let all = self.units.policies.range((of, 0)..=(of, u32::MAX));
        all.map(|((_, version), sequence)| (*version, *sequence)).collect()
    }

    /// The same of the sharing policy of a scope.
    pub fn sharing_versions(&self, of: PolicyScope) -> Vec<(u32, u64)> {
        let all = self.units.sharing.range((of, 0)..=(of, u32::MAX));
        all.map(|((_, version), sequence)| (*version, *sequence)).collect()
    }

    /// What never changes of an app instance, also of a deleted one.
    pub fn app_anchors(&self, instance: AppInstanceNo) -> Option<&AppAnchors> {
        self.units.apps.get(&instance)
    }

    pub fn unit_price(&self, number: u32) -> Option<&UnitPricePut> {
        self.units.price(number)
    }
}
