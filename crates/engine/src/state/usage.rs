//! Folding reported usage, and counting it in ceilings and prepaid credit.

use super::{LastUse, State};
use crate::ceiling::CeilingScope;
use crate::follow::Follower;
use crate::usage::{RecentId, UnitPayer, UsageCost, Used, in_billionths};
use ethnum::I256;
use leasehold_model::body::{LedgerPosted, UsageRecorded};
use leasehold_model::limits::LATE_WINDOW;
use leasehold_model::{Instant, Month, ProjectNo, Record, TenantNo, UnitQuantity, UsageCharge};

type Folded = Result<(), &'static str>;

impl State {
    pub(super) fn fold_usage(&mut self, record: &Record, recorded: &UsageRecorded, to: &mut impl Follower) -> Folded {
        let report = &recorded.report;
        let tenant = record.identity.tenant.ok_or("usage without a tenant")?;
        let project = record.identity.project.ok_or("usage without a project")?;
        self.app_instance(report.app_instance).ok_or("usage of an app instance that does not exist")?;
        if !recorded.has_times_before(record.stamp) {
            return Err("usage that was not over");
        }
        self.forget_old_months(record.stamp);
        self.apps.note_use(report.app_instance, LastUse { at: record.stamp, sequence: record.sequence });
        let key = report.key();
        let id = RecentId { key, payload: report.payload(&record.identity), sequence: record.sequence };
        let oldest = self.usage.remember(id);
        to.usage_id_added(self.usage.newest_place(), key);
        if let Some(oldest) = oldest {
            to.usage_id_forgotten(self.usage.forgotten_place(), oldest.key);
            self.usage.forget_replaced();
        }
        let none = UnitQuantity::default();
        let of = (Month::of(report.to), project, report.app_instance, report.unit);
        self.usage.count(of, (report.quantity, none), recorded.charge);
        if recorded.charge == UsageCharge::Billed {
            self.count_entitled(project, report, (report.to, report.quantity, none));
        }
        let used = Used::of(report, recorded.charge);
        self.count_usage((tenant, project), &used, false, to);
        if let Some(creditor) = recorded.creditor {
            self.count_accepted((tenant, creditor), &self.cost_of_usage(&used), true, to);
            self.note_use_of(creditor, record);
        }
        if let Some(replaced) = &recorded.replaces {
            self.usage.note_replaced(replaced.sequence, record.sequence);
            // It is given something back, which is posted later.
            self.note_use_of(replaced.project, record);
            let of = (Month::of(replaced.to), replaced.project, report.app_instance, report.unit);
            self.usage.count(of, (none, replaced.quantity), replaced.charge);
            if replaced.charge == UsageCharge::Billed {
                self.count_entitled(replaced.project, report, (replaced.to, none, replaced.quantity));
            }
            let used = Used::replaced(report, replaced);
            self.count_usage((tenant, replaced.project), &used, true, to);
            if let Some(creditor) = recorded.replaced_creditor {
                self.count_accepted((tenant, creditor), &self.cost_of_usage(&used), false, to);
                self.note_use_of(creditor, record);
            }
        }
        self.count_work(project, recorded);
        self.note_use(record);
        Ok(())
    }

    /// Nothing can be reported any more for a month that ended too long ago.
    fn forget_old_months(&mut self, now: Instant) {
        let is_over = |month: Month| month.end().saturating_add(LATE_WINDOW) < now;
        let before = self.usage.months.len();
        while let Some(oldest) = self.usage.months.first_entry() {
            if !is_over(oldest.key().0) {
                break;
            }
            oldest.remove();
        }
        if self.usage.months.len() == before {
            return;
        }
        for entitlement in self.entitlements.values_mut() {
            while entitlement.months.first_entry().is_some_and(|oldest| is_over(*oldest.key())) {
                entitlement.months.pop_first();
            }
        }
    }

    /// Counts what usage costs in ceilings and prepaid credit, or takes it away from them.
    fn count_usage(
        &mut self,
        (tenant, project): (TenantNo, ProjectNo),
        used: &Used,
        is_taken_back: bool,
        to: &mut impl Follower,
    ) {
        let costs = self.cost_of_usage(used);
        self.count_usage_in_ceilings((tenant, project), used, &costs, is_taken_back, to);
        self.count_accepted((tenant, project), &costs, is_taken_back, to);
    }

    /// Counts what usage costs as accrued until it is posted, or takes it away.
    fn count_accepted(
        &mut self,
        (tenant, project): (TenantNo, ProjectNo),
        costs: &[UsageCost],
        is_taken_back: bool,
        to: &mut impl Follower,
    ) {
        for UsageCost { currency, hour, exact } in costs.iter().copied() {
            let change = if is_taken_back { -exact } else { exact };
            let of = (tenant, project, currency);
            match self.ledger.opened {
                Some(from) if hour >= from => {
                    self.change_unposted(of, |unposted| unposted.accepted += change);
                    self.touch_prepaid(of, to);
                }
                // The hours before its opening are never posted.
                Some(_) => {}
                None => {
                    let sum = self.usage.before_ledger.entry((of, hour)).or_insert(I256::ZERO);
                    *sum += change;
                    if *sum == I256::ZERO {
                        self.usage.before_ledger.remove(&(of, hour));
                    }
                }
            }
        }
    }

    /// The ledger posts what was accepted for its hours before it was opened.
    pub(super) fn open_unposted(&mut self, from: Instant) {
        for ((of, hour), sum) in std::mem::take(&mut self.usage.before_ledger) {
            if hour >= from {
                self.change_unposted(of, |unposted| unposted.accepted += sum);
            }
        }
    }

    fn count_usage_in_ceilings(
        &mut self,
        (tenant, project): (TenantNo, ProjectNo),
        used: &Used,
        costs: &[UsageCost],
        is_taken_back: bool,
        to: &mut impl Follower,
    ) {
        let own = CeilingScope { project, app_instance: Some(used.app_instance) };
        for scope in [CeilingScope { project, app_instance: None }, own] {
            let Some(ceiling) = self.ceilings.get_mut(scope).filter(|ceiling| used.to >= ceiling.since) else {
                continue;
            };
            let counted = costs.iter().filter(|cost| cost.currency == ceiling.currency);
            let amount = in_billionths(counted.fold(I256::ZERO, |sum, cost| sum + cost.exact).as_u256());
            if is_taken_back {
                ceiling.spent = ceiling.spent.saturating_sub(amount);
                to.headroom(self, tenant);
            } else {
                ceiling.spent = ceiling.spent.saturating_add(amount);
                to.queue_affected(self);
            }
        }
    }

    fn change_unposted(&mut self, of: UnitPayer, change: impl FnOnce(&mut crate::usage::Unposted)) {
        let unposted = self.usage.unposted.entry(of).or_default();
        change(unposted);
        if *unposted == Default::default() {
            self.usage.unposted.remove(&of);
        }
    }

    /// What a posting says of usage units is no longer unposted, once the posting is complete.
    pub(super) fn count_posted_units(&mut self, of: UnitPayer, posted: &LedgerPosted) {
        let costs = posted.lines.iter().map(|line| self.cost_of_unit_line(&line.key, line.usage.0));
        let sum = costs.fold(I256::ZERO, |sum, cost| sum + cost);
        if sum == I256::ZERO && !self.usage.unposted.contains_key(&of) {
            return;
        }
        self.change_unposted(of, |unposted| {
            unposted.in_parts += sum;
            if posted.complete {
                unposted.accepted -= std::mem::replace(&mut unposted.in_parts, I256::ZERO);
            }
        });
    }
}
