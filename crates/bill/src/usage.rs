//! What each line used, as the records so far say (SEMANTICS 2, 7 and 10 to 12).

use crate::fold::Fold;
use crate::idle::idle_steps;
use crate::kept::Kept;
use crate::list::{Ending, OpenLease};
use crate::tenant::Tenant;
use leasehold_ledger::Amount;
use leasehold_meter::{Money, Overflow, Schedule, Window, billable_end, rate};
use leasehold_model::ledger::{HOUR_NS, hour_of};
use leasehold_model::rate::{Charge, Currency, DEFAULT_PRICES};
use leasehold_model::{
    AppInstanceNo, AttachmentNo, ClassNo, Instant, Item, LineKey, Name, PoolNo, Priority, ProjectNo, TenantNo,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What was used of a line, and what that costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Quanta × nanoseconds, or 10^-18 of a usage unit; negative for what is credited.
    pub usage: i128,
    pub exact: Amount,
}

/// The lines of a tenant, by payer and currency.
pub type UsedLines = BTreeMap<(ProjectNo, Currency), BTreeMap<LineKey, Used>>;

/// Usage alone.
pub(crate) type Usage = BTreeMap<(ProjectNo, Currency), BTreeMap<LineKey, i128>>;

/// Lines of usage that are computed for one invoice. A lease has one for each hour since it began, and a list can say that
/// it began in 1970: the memory must not follow from what a file claims.
pub(crate) const LINES_MAX: usize = 1 << 24;

/// There are more than [`LINES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyLines;

/// Usage that is being added up.
struct Adding {
    usage: Usage,
    lines: usize,
    lines_max: usize,
}

impl Adding {
    fn add(&mut self, payer: (ProjectNo, Currency), key: LineKey, amount: i128) -> Result<(), TooManyLines> {
        match self.usage.entry(payer).or_default().entry(key) {
            Entry::Occupied(mut sum) => *sum.get_mut() = sum.get().saturating_add(amount),
            Entry::Vacant(_) if self.lines == self.lines_max => return Err(TooManyLines),
            Entry::Vacant(new) => {
                new.insert(amount);
                self.lines += 1;
            }
        }
        Ok(())
    }
}

/// What the lines of a lease have in common, with the payer. All leases with the same attributes are one step function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series {
    pub(crate) payer: ProjectNo,
    pub(crate) project: ProjectNo,
    pub(crate) pool: PoolNo,
    pub(crate) class: ClassNo,
    pub(crate) priority: Priority,
    pub(crate) priced: Priority,
    pub(crate) tag: Option<Name>,
    pub(crate) app_instance: Option<AppInstanceNo>,
    pub(crate) attachment: Option<AttachmentNo>,
    pub(crate) control_plane: bool,
}

/// Changes of quanta, each from an instant on.
pub(crate) type Steps = BTreeMap<Series, Vec<(Instant, i128)>>;

impl Series {
    fn of(lease: &OpenLease) -> Self {
        let OpenLease { payer, project, pool, class, priority, priced, .. } = *lease;
        let OpenLease { app_instance, attachment, control_plane, .. } = *lease;
        let tag = lease.tag.clone();
        #[rustfmt::skip]
        let series = Self { payer, project, pool, class, priority, priced, tag, app_instance, attachment, control_plane };
        series
    }

    fn key(&self, hour: Instant, card: Option<u32>) -> LineKey {
        LineKey {
            hour,
            project: self.project,
            pool: self.pool,
            item: Item::Class(self.class),
            priority: self.priority,
            priced: self.priced,
            tag: self.tag.clone(),
            app_instance: self.app_instance,
            attachment: self.attachment,
            control_plane: self.control_plane,
            card,
        }
    }
}

/// The end of billing, by the charge policy in force when the lease ended.
fn billed_to(lease: &OpenLease, schedule: &Schedule) -> Instant {
    let charges = schedule.charges_at(lease.to);
    let charge = match lease.ending {
        Ending::None | Ending::ForOwn => Charge::Full,
        Ending::Preempted => charges.preempted,
        Ending::NodeLost => charges.node_lost,
        Ending::FailedStart => charges.failed_start,
        Ending::Plain if lease.fenced_from.is_some() => charges.fenced,
        Ending::Plain => Charge::Full,
    };
    billable_end(Window::new(lease.from, lease.to), charge)
}

pub(crate) fn add_interval(steps: &mut Vec<(Instant, i128)>, window: Window, quanta: u64) {
    if !window.is_empty() {
        steps.extend([(window.from, i128::from(quanta)), (window.to, -i128::from(quanta))]);
    }
}

impl Fold {
    /// What the lines of a tenant used in a window, and what that costs. See [`Self::keep`].
    pub fn used(&self, tenant: TenantNo, window: Window) -> Result<UsedLines, Overflow> {
        let mut used = UsedLines::new();
        for (payer, lines) in self.usage(tenant, window, usize::MAX).map_err(|TooManyLines| Overflow)? {
            let of = used.entry(payer).or_default();
            for (key, usage) in lines {
                let (_, each) = self.unit_cost(&key)?.ok_or(Overflow)?;
                let cost = each.times(usage.unsigned_abs());
                of.insert(key, Used { usage, exact: if usage < 0 { -cost } else { cost } });
            }
        }
        Ok(used)
    }

    /// What a tenant used in a window, by the records so far. It has to keep what the tenant closes; nothing before the
    /// opening of the ledger counts.
    pub(crate) fn usage(&self, tenant: TenantNo, window: Window, lines_max: usize) -> Result<Usage, TooManyLines> {
        let nothing = Ok(Usage::new());
        let (Some(of), Some(opened)) = (self.tenants.get(&tenant), self.common.opened) else { return nothing };
        let Some(kept) = of.kept.as_deref() else { return nothing };
        let window = window.clip(Window::new(opened, Instant::MAX));
        if window.is_empty() {
            return nothing;
        }
        let schedule = self.common.schedule();
        let mut adding = Adding { usage: Usage::new(), lines: 0, lines_max };
        for (series, steps) in all_steps(of, kept, &schedule, window) {
            add_series(&series, steps, &schedule, window, &mut adding)?;
        }
        for (payer, lines) in &kept.reported.lines {
            let inside = lines.iter().filter(|(key, _)| key.hour >= window.from && key.hour < window.to);
            for (key, amount) in inside {
                adding.add(*payer, key.clone(), *amount)?;
            }
        }
        let mut usage = adding.usage;
        usage.values_mut().for_each(|lines| lines.retain(|_, usage| *usage != 0));
        usage.retain(|_, lines| !lines.is_empty());
        Ok(usage)
    }

    /// The cost of one part of what a line counts, and its currency; `None` if there is no such class, card or price.
    pub(crate) fn unit_cost(&self, key: &LineKey) -> Result<Option<(Currency, Amount)>, Overflow> {
        Ok(match key.item {
            Item::Class(class) => {
                let prices = match key.card {
                    None => Some(&DEFAULT_PRICES),
                    Some(card) => self.common.cards.get(&card).map(|card| &card.prices),
                };
                // A class out of bounds was never valid, but a list may say so.
                let spec = self.common.classes.get(&class).filter(|spec| spec.check().is_ok());
                let Some((prices, spec)) = prices.zip(spec) else { return Ok(None) };
                let each = Amount::of_money(&Money::of(1, rate(prices, class, spec, key.priced))?)?;
                Some((prices.currency, each))
            }
            Item::Unit(unit) => {
                let price = key.card.and_then(|card| self.common.unit_prices.get(&card));
                // A part is 10^-18 of a unit, and a price has nine decimals; a step takes six away.
                let each = |price: u64| Amount::new(price.into(), 1_000_000_000_000_000_000_000);
                price.filter(|price| price.unit == unit).map(|price| (price.currency, each(price.price.0)))
            }
        })
    }
}

/// The step functions of all leases and of the idle capacity of claims.
fn all_steps(of: &Tenant, kept: &Kept, schedule: &Schedule, window: Window) -> Steps {
    let mut leases = of.leases.list();
    leases.extend(kept.leases.list());
    let mut steps = Steps::new();
    for lease in &leases {
        let billed = Window::new(lease.from, billed_to(lease, schedule)).clip(window);
        if !billed.is_empty() {
            add_interval(steps.entry(Series::of(lease)).or_default(), billed, lease.quanta.0);
        }
    }
    idle_steps(of, kept, &leases, window, &mut steps);
    steps
}

/// Integrates a step function over each hour and each card.
fn add_series(
    series: &Series,
    mut steps: Vec<(Instant, i128)>,
    schedule: &Schedule,
    window: Window,
    adding: &mut Adding,
) -> Result<(), TooManyLines> {
    steps.sort_unstable();
    let changes = schedule.changes(series.pool, window);
    let mut changes = changes.into_iter().peekable();
    let (mut level, mut at) = (0_i128, window.from);
    for (next, by) in steps.into_iter().chain([(window.to, 0)]) {
        while at < next && level != 0 {
            while changes.next_if(|change| *change <= at).is_some() {}
            let hour_end = Instant(hour_of(at).0.saturating_add(HOUR_NS));
            let end = hour_end.min(next).min(changes.peek().copied().unwrap_or(Instant::MAX));
            let (card, prices) = schedule.version_at(series.pool, at);
            let amount = level.saturating_mul(i128::from(end.since(at).0));
            adding.add((series.payer, prices.currency), series.key(hour_of(at), card), amount)?;
            at = end;
        }
        (level, at) = (level + by, next);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::{ClaimedNodes, CommonList, Phase, Revocation, TenantList};
    use crate::sorted::Sorted;
    use leasehold_model::{LeaseNo, NodeNo, Quanta};

    /// A tenant with a lease that has been held since 1970.
    fn since_1970() -> Fold {
        let lease = OpenLease {
            lease: LeaseNo(1),
            payer: ProjectNo(0),
            project: ProjectNo(0),
            pool: PoolNo(0),
            node: NodeNo(0),
            class: ClassNo(0),
            quanta: Quanta(3),
            priority: Priority::Standard,
            priced: Priority::Standard,
            tag: None,
            app_instance: None,
            attachment: None,
            control_plane: false,
            from: Instant(0),
            to: Instant::MAX,
            phase: Phase::Held,
            ending: Ending::None,
            revoked: Revocation::None,
            failed_start: false,
            fenced_from: None,
            ended: None,
        };
        let list = TenantList { leases: Sorted::new([lease]), ..TenantList::empty(TenantNo(0)) };
        let common = CommonList { opened: Some(Instant(0)), ..CommonList::default() };
        let mut fold = Fold::from_lists(common, BTreeMap::from([(TenantNo(0), list)]), ClaimedNodes::default());
        fold.keep(TenantNo(0), Instant(0));
        fold
    }

    #[test]
    fn the_lines_of_an_invoice_are_limited() {
        let (fold, window) = (since_1970(), Window::new(Instant(0), Instant(10 * HOUR_NS)));
        let lines =
            |lines_max| fold.usage(TenantNo(0), window, lines_max).map(|usage| usage.values().map(BTreeMap::len).sum());
        assert_eq!(lines(10), Ok(10));
        assert_eq!(lines(9), Err(TooManyLines));
        // Until the end of all time there are five million hours: it ends long before them.
        let for_ever = Window::new(Instant(0), Instant::MAX);
        assert_eq!(fold.usage(TenantNo(0), for_ever, 1000), Err(TooManyLines));
    }
}
