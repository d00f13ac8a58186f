//! Usage that runtimes reported, as lines of the ledger (SEMANTICS 12, "Usage records").

use crate::common::Common;
use crate::fold::Contradiction;
use leasehold_meter::unit_parts;
use leasehold_model::body::UsageRecorded;
use leasehold_model::rate::Currency;
use leasehold_model::{
    AppInstanceNo, AppTypeNo, AttachmentNo, Instant, Item, LineKey, Month, Priority, ProjectNo, UnitNo, UnitQuantity,
    UsageCharge,
};
use std::collections::BTreeMap;

/// What was reported since the start, by payer and line: superseded reports count with their difference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    pub(crate) lines: BTreeMap<(ProjectNo, Currency), BTreeMap<LineKey, i128>>,
    pub(crate) work: Work,
}

/// What projects used of app instances, the control plane apart, in the parts of a line: by it the cost of the control
/// plane may be shared.
pub(crate) type Work = BTreeMap<(Month, AppInstanceNo, ProjectNo, UnitNo), i128>;

/// A report that begins or ceases to count.
struct Counted {
    project: ProjectNo,
    creditor: Option<ProjectNo>,
    quantity: UnitQuantity,
    times: (Instant, Instant),
    control_plane: bool,
    attachment: Option<AttachmentNo>,
    charge: UsageCharge,
    sign: i128,
}

impl Reported {
    /// Adds a report of an app of this type, and takes away the one that it replaces.
    pub(crate) fn add(
        &mut self,
        common: &Common,
        app: AppTypeNo,
        project: ProjectNo,
        recorded: &UsageRecorded,
    ) -> Result<(), Contradiction> {
        let report = &recorded.report;
        let new = Counted {
            project,
            creditor: recorded.creditor,
            quantity: report.quantity,
            times: (report.from, report.to),
            control_plane: report.control_plane,
            attachment: report.attachment,
            charge: recorded.charge,
            sign: 1,
        };
        if common.opened.is_some() {
            self.add_work(common, project, recorded)?;
        }
        let old = recorded.replaces.map(|old| Counted {
            project: old.project,
            creditor: recorded.replaced_creditor,
            quantity: old.quantity,
            times: (old.from, old.to),
            control_plane: old.control_plane,
            attachment: old.attachment,
            charge: old.charge,
            sign: -1,
        });
        for counted in old.into_iter().chain([new]).filter(|counted| counted.charge == UsageCharge::Billed) {
            self.count(common, app, recorded, &counted)?;
        }
        Ok(())
    }

    /// Work counts whatever it is charged; what is taken back may not have counted, so that a sum can be below zero.
    fn add_work(&mut self, common: &Common, project: ProjectNo, recorded: &UsageRecorded) -> Result<(), Contradiction> {
        let report = &recorded.report;
        let measure = common.measure(report.unit).ok_or(Contradiction::Says("it reports an unknown usage unit"))?;
        let new = Some((project, report.control_plane, report.quantity, (report.from, report.to), 1));
        let old = recorded.replaces.map(|old| (old.project, old.control_plane, old.quantity, (old.from, old.to), -1));
        let counted = new.into_iter().chain(old).filter(|(_, control_plane, ..)| !control_plane);
        for (project, _, quantity, times, sign) in counted {
            for part in unit_parts(measure, quantity, times, []) {
                let quantity = i128::try_from(part.quantity).map_err(|_| Contradiction::Says("it reports too much"))?;
                let of = (Month::of(part.hour), report.app_instance, project, report.unit);
                let sum = self.work.entry(of).or_default();
                *sum = sum.checked_add(sign * quantity).ok_or(Contradiction::Says("it reports too much"))?;
            }
        }
        Ok(())
    }

    fn count(
        &mut self,
        common: &Common,
        app: AppTypeNo,
        recorded: &UsageRecorded,
        counted: &Counted,
    ) -> Result<(), Contradiction> {
        let unit = recorded.report.unit;
        let measure = common.measure(unit).ok_or(Contradiction::Says("it reports an unknown usage unit"))?;
        let changes = common.unit_prices.values().filter(|put| put.unit == unit).map(|put| put.from);
        for part in unit_parts(measure, counted.quantity, counted.times, changes) {
            let Some(price) = common.unit_price(unit, app, part.priced_at) else { continue };
            let key = LineKey {
                hour: part.hour,
                project: counted.project,
                pool: LineKey::NO_POOL,
                item: Item::Unit(unit),
                // A line must have some priority; it means nothing.
                priority: Priority::Standard,
                priced: Priority::Standard,
                tag: None,
                app_instance: Some(recorded.report.app_instance),
                attachment: counted.attachment,
                control_plane: counted.control_plane,
                card: Some(price.price_no),
            };
            let quantity = i128::try_from(part.quantity).map_err(|_| Contradiction::Says("it reports too much"))?;
            let usage = counted.sign * quantity;
            // What a project pays for work on a shared runtime is given to who pays for the capacity.
            let parties = [(Some(counted.project), usage), (counted.creditor, -usage)];
            for (payer, usage) in parties.into_iter().filter_map(|(payer, usage)| Some((payer?, usage))) {
                let sum = self.lines.entry((payer, price.currency)).or_default().entry(key.clone()).or_default();
                *sum = sum.checked_add(usage).ok_or(Contradiction::Says("it reports too much"))?;
            }
        }
        Ok(())
    }
}
