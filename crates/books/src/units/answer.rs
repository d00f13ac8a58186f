//! Reported usage in answers about usage and cost.

use super::UnitSeries;
use crate::ask::{Anchors, Dim, Filter, Key, LINES_MAX, NONE, Question, anchor_value, key_of};
use crate::facts::{Books, BooksError};
use ethnum::U256;
use leasehold_meter::{Money, Overflow};
use leasehold_model::rate::{BILLION, Currency};
use leasehold_model::{UnitNo, UsageCharge};
use std::collections::BTreeMap;

/// What was reported of one unit, for one key, over one interval of the question.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitLine {
    pub key: Key,
    pub unit: UnitNo,
    pub charge: UsageCharge,
    pub bucket: u32,
    /// In billionths of a billionth of the unit.
    pub quantity: i128,
    /// What is charged for it.
    pub costs: Vec<(Currency, Money)>,
}

/// A quantity, and what is charged for it.
type Sum = (i128, BTreeMap<Currency, Money>);

/// Whether reported usage can be told apart by a question: it has no pool, node, user or class.
fn takes(filter: &Filter, series: &UnitSeries) -> bool {
    let Filter {
        tenant,
        project,
        payer,
        users,
        pool,
        node,
        priority,
        tag,
        allocation,
        app_instance,
        workload,
        classes,
        control_plane,
    } = filter;
    let has_none = users.is_some()
        || pool.is_some()
        || node.is_some()
        || priority.is_some()
        || tag.is_some()
        || allocation.is_some()
        || workload.is_some()
        || classes.is_some();
    !has_none
        && tenant.is_none_or(|tenant| tenant == series.tenant)
        && project.is_none_or(|project| project == series.project)
        && payer.is_none_or(|payer| payer == series.payer)
        && app_instance.is_none_or(|app| app == series.app_instance)
        && control_plane.is_none_or(|wanted| wanted == series.control_plane)
}

fn unit_key(dims: &[Dim], series: &UnitSeries, anchors: &Anchors) -> Key {
    key_of(dims, |dim| match dim {
        Dim::Tenant => series.tenant.0.into(),
        Dim::Project => series.payer.0.into(),
        Dim::AppInstance => series.app_instance.0,
        Dim::ControlPlane => series.control_plane.into(),
        Dim::App | Dim::OperatingMode | Dim::ControlPlaneScope | Dim::RuntimeBackend => {
            anchor_value(anchors, dim, Some(series.app_instance))
        }
        Dim::User
        | Dim::Pool
        | Dim::Node
        | Dim::Priority
        | Dim::Tag
        | Dim::Allocation
        | Dim::Workload
        | Dim::HeldAs => NONE,
    })
}

impl Books {
    /// Reported usage with its cost, in order of key, unit, charge and interval. It is shown in the hour in which it is
    /// booked, and an hour belongs to the interval in which it begins.
    pub fn unit_usage(&self, question: &Question) -> Result<Vec<UnitLine>, BooksError> {
        self.unit_lines(question, |series| series.payer == series.project)
    }

    /// What projects are credited with, because others used the capacity that they pay for.
    pub fn unit_credits(&self, question: &Question) -> Result<Vec<UnitLine>, BooksError> {
        self.unit_lines(question, |series| series.payer != series.project)
    }

    fn unit_lines(
        &self,
        question: &Question,
        is_wanted: impl Fn(&UnitSeries) -> bool,
    ) -> Result<Vec<UnitLine>, BooksError> {
        let mut sums: BTreeMap<(Key, UnitNo, UsageCharge, u32), Sum> = BTreeMap::new();
        let units = &self.units;
        let takes = |series: &UnitSeries| is_wanted(series) && takes(&question.filter, series);
        let wanted: Vec<bool> = units.series.iter().map(takes).collect();
        if !wanted.contains(&true) {
            return Ok(Vec::new());
        }
        let window = question.window();
        let mut overflow = false;
        units.hours.used(window.from..window.to, &self.store, |hour, number, used| {
            if !wanted[number as usize] || sums.len() > LINES_MAX {
                return;
            }
            let series = &units.series[number as usize];
            // What is credited is told as what it is, and not as less usage.
            let used = if series.payer == series.project { used } else { -used };
            let bucket = question.borders.partition_point(|border| *border <= hour).saturating_sub(1);
            let bucket = crate::usage::bucket_no(bucket);
            let of = (unit_key(&question.dims, series, &units.apps), series.unit, series.charge, bucket);
            let (quantity, costs) = sums.entry(of).or_default();
            *quantity += used;
            let price = series.price.and_then(|price| units.price(price));
            if let Some(price) = price.filter(|_| series.charge == UsageCharge::Billed) {
                // A part of a unit has 18 decimals, a price 9, and money 36.
                let cost = U256::from(used.unsigned_abs()) * U256::from(price.price.0) * U256::from(BILLION);
                overflow |= used < 0 || costs.entry(price.currency).or_default().add(1, cost).is_err();
            }
        })?;
        if overflow {
            return Err(Overflow.into());
        }
        if sums.len() > LINES_MAX {
            return Err(BooksError::TooMuch);
        }
        let line = |((key, unit, charge, bucket), (quantity, costs)): (_, Sum)| UnitLine {
            key,
            unit,
            charge,
            bucket,
            quantity,
            costs: costs.into_iter().collect(),
        };
        let lines = sums.into_iter().map(line);
        Ok(lines.filter(|line| line.quantity != 0 || line.costs.iter().any(|(_, cost)| !cost.is_zero())).collect())
    }
}
