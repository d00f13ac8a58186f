//! The lines of the ledger for usage that the runtimes of apps report (SEMANTICS 13, "Posting").

use super::{Accounts, Cost, Costs, lowest_terms};
use crate::booking::{measure_of, parts};
use ethnum::{I256, U256};
use leasehold_model::body::{UnitPricePut, UsageRecorded, UsageReport, UsageUnitPut};
use leasehold_model::ledger::{Item, LineKey};
use leasehold_model::{AppInstanceNo, AppTypeNo, Body, Instant, Priority, ProjectNo, Record, UsageCharge};
use std::collections::BTreeMap;

/// What the records say about reported usage.
#[derive(Clone, Debug, Default)]
pub(super) struct Reported {
    units: Vec<UsageUnitPut>,
    prices: Vec<UnitPricePut>,
    /// The apps of all instances that there ever were: an instance never changes its app.
    apps: BTreeMap<AppInstanceNo, AppTypeNo>,
    /// What counts: billed or not, and not superseded.
    reports: Vec<Report>,
}

#[derive(Clone, Debug)]
struct Report {
    /// Whose usage it is, and who is credited with it.
    project: ProjectNo,
    creditor: Option<ProjectNo>,
    said: UsageReport,
    charge: UsageCharge,
}

impl Reported {
    pub(super) fn take(&mut self, record: &Record) {
        if let Body::UsageUnitPut(put) = &record.body {
            self.units.push(put.clone());
        } else if let Body::UnitPricePut(put) = &record.body {
            self.prices.push(put.clone());
        } else if let Body::AppInstancePut(put) = &record.body {
            self.apps.insert(put.app_instance, put.app_type);
        } else if let Body::UsageRecorded(recorded) = &record.body {
            self.recorded(record, recorded);
        }
    }

    /// The last record of the source with the ID that is superseded no longer counts. Whether it may be superseded is
    /// not asked here.
    fn recorded(&mut self, record: &Record, recorded: &UsageRecorded) {
        let report = &recorded.report;
        if let Some(id) = &report.supersedes {
            let same = |old: &Report| {
                (old.said.reporter, &old.said.source, &old.said.id) == (report.reporter, &report.source, id)
            };
            let place = self.reports.iter().rposition(same).expect("a record that is superseded");
            self.reports.remove(place);
        }
        let project = record.identity.project.expect("usage has a project");
        let (creditor, charge) = (recorded.creditor, recorded.charge);
        self.reports.push(Report { project, creditor, said: report.clone(), charge });
    }
}

impl Accounts {
    /// Adds the lines of reported usage in the hours between two instants.
    pub(super) fn add_unit_lines(&self, (from, through): (Instant, Instant), costs: &mut Costs) {
        let billed = self.reported.reports.iter().filter(|report| report.charge == UsageCharge::Billed);
        for Report { project, creditor, said: report, .. } in billed {
            let measure = measure_of(report.unit, &self.reported.units).expect("a unit that exists");
            let app = self.reported.apps[&report.app_instance];
            for part in parts(report, measure, app, &self.reported.prices) {
                let Some(price) = part.price.filter(|_| part.hour >= from && part.hour < through) else { continue };
                let key = LineKey {
                    hour: part.hour,
                    project: *project,
                    pool: LineKey::NO_POOL,
                    item: Item::Unit(report.unit),
                    // A line must have some priority; it means nothing.
                    priority: Priority::Standard,
                    priced: Priority::Standard,
                    tag: None,
                    app_instance: Some(report.app_instance),
                    attachment: report.attachment,
                    control_plane: report.control_plane,
                    card: Some(price.price_no),
                };
                let usage = i128::try_from(part.quantity).expect("below 2^127");
                let cost = Cost { usage, numerator: part.cost().as_i256() };
                // What the project pays for work on a shared runtime is given to who pays for the capacity.
                if let Some(creditor) = creditor {
                    let sum = costs.entry((*creditor, price.currency)).or_default().entry(key.clone()).or_default();
                    *sum = sum.less(cost);
                }
                let sum = costs.entry((*project, price.currency)).or_default().entry(key).or_default();
                *sum = sum.plus(cost);
            }
        }
    }
}

/// A cost of a usage unit in steps of 10^-6, as a fraction in lowest terms: sign, numerator and denominator.
pub(super) fn unit_fraction(cost: Cost) -> (bool, U256, U256) {
    // Quantities have eighteen decimals and prices nine; a step takes six away.
    let (numerator, denominator) = lowest_terms(cost.numerator.unsigned_abs(), U256::new(10).pow(21));
    (cost.numerator < I256::ZERO, numerator, denominator)
}
