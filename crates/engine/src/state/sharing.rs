//! How records change what there is to share.

use super::State;
use super::ledger::{TOO_LARGE, owner};
use crate::follow::Follower;
use crate::sharing::ClosingShares;
use leasehold_ledger::{payer_amount, shared_legs};
use leasehold_meter::unit_parts;
use leasehold_model::body::{
    LedgerCorrected, LedgerPosted, LedgerShared, ReplacedUsage, SharingPut, UsageRecorded, UsageReport,
};
use leasehold_model::rate::Currency;
use leasehold_model::{Instant, LineKey, Month, ProjectNo, Record, Steps, TenantNo, UnitMeasure, UnitQuantity};

type Folded = Result<(), &'static str>;

impl State {
    pub(super) fn fold_sharing_policy(&mut self, put: &SharingPut) -> Folded {
        let before = self.sharing.policies.get(&put.of).map_or(0, |old| old.version);
        if put.version != before + 1 {
            return Err("the version of a sharing policy is out of order");
        }
        self.sharing.policies.insert(put.of, put.clone());
        Ok(())
    }

    /// Adds what a posting says about control planes to what there is to share.
    pub(super) fn pool_posted(&mut self, payer: ProjectNo, posted: &LedgerPosted) -> Folded {
        for line in posted.lines.iter().filter(|line| line.key.control_plane) {
            if Month::of(line.key.hour) == posted.month {
                self.add_to_pool(payer, &line.key, posted.currency, line.posted)?;
            }
        }
        Ok(())
    }

    pub(super) fn pool_corrected(&mut self, payer: ProjectNo, corrected: &LedgerCorrected, amount: Steps) -> Folded {
        match &corrected.line {
            Some(line) if line.key.control_plane && corrected.original_month == corrected.month => {
                self.add_to_pool(payer, &line.key, corrected.currency, amount)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn add_to_pool(&mut self, payer: ProjectNo, key: &LineKey, currency: Currency, amount: Steps) -> Folded {
        let Some(app) = key.app_instance else { return Ok(()) };
        if self.app_instance(app).is_none_or(|instance| instance.project != payer) {
            return Ok(());
        }
        let of = (Month::of(key.hour), app, currency);
        let sum = self.sharing.pools.get(&of).copied().unwrap_or_default().checked_add(amount).ok_or(TOO_LARGE)?;
        if sum == Steps::ZERO {
            self.sharing.pools.remove(&of);
        } else {
            self.sharing.pools.insert(of, sum);
        }
        Ok(())
    }

    /// Counts reported work, and no longer what it replaces. Months that are being closed stay as they are.
    pub(super) fn count_work(&mut self, project: ProjectNo, recorded: &UsageRecorded) {
        if self.ledger.opened.is_none() {
            return;
        }
        let report = &recorded.report;
        if !report.control_plane {
            self.add_work(project, report, (report.from, report.to), report.quantity, 1);
        }
        if let Some(ReplacedUsage { project, control_plane: false, quantity, from, to, .. }) = recorded.replaces {
            self.add_work(project, report, (from, to), quantity, -1);
        }
    }

    fn add_work(
        &mut self,
        project: ProjectNo,
        report: &UsageReport,
        (from, to): (Instant, Instant),
        quantity: UnitQuantity,
        sign: i128,
    ) {
        let measure = self.unit(report.unit).map_or(UnitMeasure::Count, |unit| unit.measure);
        let open = self.ledger.open_month();
        for part in unit_parts(measure, quantity, (from, to), []) {
            let month = Month::of(part.hour);
            if month < open {
                continue;
            }
            let of = (month, report.app_instance, report.unit, project);
            let by = sign * part.quantity.cast_signed();
            let sum = self.sharing.work.get(&of).copied().unwrap_or_default().saturating_add(by);
            if sum == 0 {
                self.sharing.work.remove(&of);
            } else {
                self.sharing.work.insert(of, sum);
            }
        }
    }

    pub(super) fn fold_shared(&mut self, record: &Record, shared: &LedgerShared, to: &mut impl Follower) -> Folded {
        let (tenant, project) = owner(record)?;
        if self.ledger.closing.as_ref().is_none_or(|closing| closing.month != shared.month) {
            return Err("a share of a month that is not being closed");
        }
        let closing = self.sharing.closing.as_mut().ok_or("a share of a month that is not being closed")?;
        closing.done.insert((shared.app_instance, shared.currency));
        let amount = payer_amount(&shared_legs(project, shared), project).ok_or(TOO_LARGE)?;
        let payer = self.ledger.payer_mut(record, shared.currency)?;
        if payer.last != shared.previous {
            return Err("the share follows another entry than the payer's last");
        }
        payer.last = Some(record.sequence);
        payer.add(shared.month, amount).ok_or(TOO_LARGE)?;
        self.count_correction((tenant, project, shared.currency), (shared.month, amount), to)
    }

    /// The policies of the cut are those by which the month is shared.
    pub(super) fn begin_shares(&mut self) {
        let policies = self.sharing.policies.clone();
        self.sharing.closing = Some(ClosingShares { policies, done: Default::default() });
    }

    pub(super) fn end_shares(&mut self, month: Month) {
        self.sharing.closing = None;
        self.sharing.pools.retain(|(of, ..), _| *of > month);
        self.sharing.work.retain(|(of, ..), _| *of > month);
    }

    /// The policies of a tenant go with it, and what there was to share of its app instances.
    pub(super) fn drop_sharing_of(&mut self, tenant: TenantNo) {
        let instances = &self.apps.instances;
        let is_there = |app| instances.contains_key(&app);
        let sharing = &mut self.sharing;
        sharing.policies.retain(|of, _| of.tenant != Some(tenant) && of.app_instance.is_none_or(is_there));
        sharing.pools.retain(|(_, app, _), _| is_there(*app));
        sharing.work.retain(|(_, app, ..), _| is_there(*app));
    }
}
