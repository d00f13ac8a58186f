//! Folding the records of prepaid credit, and counting what uses it.

use super::State;
use crate::claims::{ChangedAt, ClaimedNode};
use crate::follow::Follower;
use crate::lease::Lease;
use crate::ledger::add_in_month;
use crate::prepaid::{Credit, Meter, PrepaidKey, PrepaidScope, Prepaids};
use crate::snapshot::BadSnapshot;
use crate::timer::Entry;
use leasehold_model::body::{PrepaidApplied, PrepaidChanged, PrepaidLapsed, PrepaidPolicyPut, PrepaidToppedUp};
use leasehold_model::rate::Currency;
use leasehold_model::{Funds, Instant, Month, ProjectNo, Record, Steps, TenantNo};

type Folded = Result<(), &'static str>;

const NO_ACCOUNT: &str = "no such prepaid account";
const TOO_LARGE: &str = "an amount is too large";

/// The account that a record is about.
fn key_of(record: &Record, currency: Currency) -> Result<PrepaidKey, &'static str> {
    let tenant = record.identity.tenant.ok_or("prepaid credit without an owner")?;
    let scope = record.identity.project.map_or(PrepaidScope::Tenant(tenant), PrepaidScope::Project);
    Ok((scope, currency))
}

impl State {
    /// Makes a change of the meters of a project, one for each currency in which it uses prepaid credit.
    fn with_meters(
        &mut self,
        (tenant, project): (TenantNo, ProjectNo),
        to: &mut impl Follower,
        mut change: impl FnMut(&Self, &mut Meter, Currency),
    ) {
        let keys = self.prepaids.keys_for(tenant, project);
        for key in keys {
            let of = (tenant, project, key.1);
            // A change reads prices and claims, and no meters.
            let known = self.prepaids.meters.remove(&of);
            let mut meter = known.unwrap_or_else(|| self.new_meter(project, key.1));
            change(self, &mut meter, key.1);
            self.prepaids.meters.insert(of, meter);
            self.touch(key, to);
        }
    }

    /// Tells that what is left of an account, or how fast it is used, may have changed.
    fn touch(&self, key: PrepaidKey, to: &mut impl Follower) {
        let account = self.prepaids.get(key).expect("the account exists");
        to.prepaid_touched(account.number);
        to.headroom(self, account.tenant);
    }

    /// What a project used of prepaid credit has changed otherwise than by leases and claims.
    pub(super) fn touch_prepaid(
        &self,
        (tenant, project, currency): (TenantNo, ProjectNo, Currency),
        to: &mut impl Follower,
    ) {
        if let Some(key) = self.prepaids.key_for(tenant, project, currency) {
            self.touch(key, to);
        }
    }

    fn new_meter(&self, project: ProjectNo, currency: Currency) -> Meter {
        let payer = self.ledger.payer(project, currency).filter(|payer| payer.complete);
        let from = payer.map_or(Instant(0), |payer| payer.through).max(self.ledger.settled_through);
        Meter { from, ..Meter::default() }
    }

    pub(crate) fn begin_prepaid(&mut self, lease: &Lease, to: &mut impl Follower) {
        if !self.prepaids.is_empty() && self.is_metered(lease) {
            self.with_meters((lease.tenant, lease.payer), to, |state, meter, currency| {
                state.begin_on(meter, lease, currency);
            });
        }
    }

    /// Counts the new deadline of a lease.
    pub(crate) fn extend_prepaid(&mut self, lease: &Lease, before: Instant, to: &mut impl Follower) {
        if !self.prepaids.is_empty() && self.is_metered(lease) {
            self.with_meters((lease.tenant, lease.payer), to, |state, meter, currency| {
                state.extend_on(meter, lease, before, currency);
            });
        }
    }

    /// Counts the end of a lease.
    pub(crate) fn end_prepaid(&mut self, lease: &Lease, to: &mut impl Follower) {
        if !self.prepaids.is_empty() && !self.is_counted_by_claim(lease) {
            self.with_meters((lease.tenant, lease.payer), to, |state, meter, currency| {
                state.end_on(meter, lease, currency);
            });
        }
    }

    /// Counts the change of what a claimed node counts.
    pub(crate) fn count_claim_in_prepaid(
        &mut self,
        before: Option<&ClaimedNode>,
        after: Option<&ClaimedNode>,
        at: ChangedAt,
        to: &mut impl Follower,
    ) {
        if self.prepaids.is_empty() {
            return;
        }
        let Some(claimed) = before.or(after) else { return };
        let goes_on = after.is_some_and(|after| after.quanta.is_some());
        let since = if before.is_some() { at.effective } else { at.stamp };
        let of = (claimed.claim.by.tenant, claimed.claim.project);
        self.with_meters(of, to, |state, meter, currency| {
            state.claim_on(meter, claimed.node, before, goes_on.then_some(since), at.effective, currency);
        });
    }

    /// Opens an account unless there is one, and begins to meter those who use it.
    fn open_prepaid(&mut self, key: PrepaidKey, tenant: TenantNo, to: &mut impl Follower) {
        if self.prepaids.get(key).is_some() {
            return;
        }
        self.prepaids.open(key, tenant);
        // The tenant's account no longer pays for the project.
        let common = (PrepaidScope::Tenant(tenant), key.1);
        if self.prepaids.get(common).is_some() {
            self.touch(common, to);
        }
        let mut prepaids = std::mem::take(&mut self.prepaids);
        self.fill_meters(&mut prepaids, |of| of == key);
        self.prepaids = prepaids;
    }

    /// Builds the meters that are missing, of those who use certain accounts, from held leases and claims.
    fn fill_meters(&self, prepaids: &mut Prepaids, which: impl Fn(PrepaidKey) -> bool) {
        let mut fresh = std::collections::BTreeMap::new();
        let mut meters = |tenant: TenantNo, project: ProjectNo, change: &mut dyn FnMut(&mut Meter, Currency)| {
            for key in prepaids.keys_for(tenant, project).into_iter().filter(|key| which(*key)) {
                let of = (tenant, project, key.1);
                if !prepaids.meters.contains_key(&of) {
                    change(fresh.entry(of).or_insert_with(|| self.new_meter(project, key.1)), key.1);
                }
            }
        };
        for lease in self.leases.in_any_order().filter(|lease| self.is_metered(lease)) {
            meters(lease.tenant, lease.payer, &mut |meter, currency| self.begin_on(meter, lease, currency));
        }
        for claimed in self.nodes().filter_map(|node| self.claimed_node(node.number)) {
            if claimed.quanta.is_some() {
                let since = self.node(claimed.node).map_or(Instant(0), |node| node.claim_counted_since);
                meters(claimed.claim.by.tenant, claimed.claim.project, &mut |meter, _| {
                    meter.claims.insert(claimed.node, since);
                });
            }
        }
        prepaids.meters.append(&mut fresh);
    }

    /// Counts held leases in meters that were read from a snapshot, which has only what has ended.
    pub(crate) fn restore_meters(&mut self) -> Result<(), BadSnapshot> {
        let mut prepaids = std::mem::take(&mut self.prepaids);
        for lease in self.leases.in_any_order().filter(|lease| self.is_metered(lease)) {
            for key in prepaids.keys_for(lease.tenant, lease.payer) {
                let meter = prepaids.meters.get_mut(&(lease.tenant, lease.payer, key.1));
                let meter = meter.ok_or(BadSnapshot::Inconsistent("a lease that no meter counts"))?;
                self.begin_on(meter, lease, key.1);
            }
        }
        self.prepaids = prepaids;
        Ok(())
    }

    /// A part of a posting: what it says is spent counts once the posting is complete, because it has accrued so far.
    pub(super) fn count_posting(
        &mut self,
        (tenant, project, currency): (TenantNo, ProjectNo, Currency),
        (month, sum): (Month, Steps),
        through: Option<Instant>,
        to: &mut impl Follower,
    ) -> Folded {
        let Some(key) = self.prepaids.key_for(tenant, project, currency) else { return Ok(()) };
        let of = (tenant, project, currency);
        let mut meter = self.prepaids.meters.remove(&of).unwrap_or_else(|| self.new_meter(project, currency));
        add_in_month(&mut meter.parts, month, sum).ok_or(TOO_LARGE)?;
        if let Some(through) = through {
            let account = self.prepaids.get_mut(key).ok_or(NO_ACCOUNT)?;
            for (month, sum) in std::mem::take(&mut meter.parts) {
                account.posted = account.posted.checked_add(sum).ok_or(TOO_LARGE)?;
                add_in_month(&mut account.unbilled, month, sum).ok_or(TOO_LARGE)?;
            }
            self.advance_on(&mut meter, through, currency);
        }
        self.prepaids.meters.insert(of, meter);
        self.touch(key, to);
        Ok(())
    }

    /// A correction, or an entry that was booked by hand.
    pub(super) fn count_correction(
        &mut self,
        (tenant, project, currency): (TenantNo, ProjectNo, Currency),
        (month, amount): (Month, Steps),
        to: &mut impl Follower,
    ) -> Folded {
        let Some(key) = self.prepaids.key_for(tenant, project, currency) else { return Ok(()) };
        let account = self.prepaids.get_mut(key).ok_or(NO_ACCOUNT)?;
        account.posted = account.posted.checked_add(amount).ok_or(TOO_LARGE)?;
        add_in_month(&mut account.unbilled, month, amount).ok_or(TOO_LARGE)?;
        self.touch(key, to);
        Ok(())
    }

    /// Prices have changed, and with them how fast credit is used.
    pub(super) fn reprice_prepaid(&mut self, to: &mut impl Follower) {
        self.reprice_meters();
        for (key, _) in self.prepaids.iter() {
            self.touch(key, to);
        }
    }

    /// An hour is settled: what was used before its end is posted.
    pub(super) fn advance_meters(&mut self, through: Instant, to: &mut impl Follower) {
        if self.prepaids.is_empty() {
            return;
        }
        let mut meters = std::mem::take(&mut self.prepaids.meters);
        for ((.., currency), meter) in &mut meters {
            self.advance_on(meter, through, *currency);
        }
        self.prepaids.meters = meters;
        for (key, _) in self.prepaids.iter() {
            self.touch(key, to);
        }
    }

    pub(super) fn fold_topped_up(
        &mut self,
        record: &Record,
        topped: &PrepaidToppedUp,
        to: &mut impl Follower,
    ) -> Folded {
        let key = key_of(record, topped.currency)?;
        let tenant = record.identity.tenant.ok_or("prepaid credit without an owner")?;
        self.open_prepaid(key, tenant, to);
        let spent = self.spent(key, record.stamp);
        let account = self.prepaids.get_mut(key).ok_or(NO_ACCOUNT)?;
        if topped.credit != account.credits.numbers + 1 {
            return Err("the number of the credit is out of order");
        }
        account.credited = account.credited.checked_add(topped.amount).ok_or(TOO_LARGE)?;
        account.credits.count(spent);
        account.credits.add(Credit {
            number: topped.credit,
            amount: topped.amount,
            left: Funds::from(topped.amount),
            priority: topped.priority,
            expires_at: topped.expires_at,
        });
        if account.references.insert(topped.reference.clone(), record.sequence).is_some() {
            return Err("the reference of the credit is not unique");
        }
        if let Some(due) = topped.expires_at {
            to.comes_due(Entry::credit(account.number, due));
        }
        self.touch(key, to);
        Ok(())
    }

    pub(super) fn fold_prepaid_policy(
        &mut self,
        record: &Record,
        put: &PrepaidPolicyPut,
        to: &mut impl Follower,
    ) -> Folded {
        let key = key_of(record, put.currency)?;
        self.prepaids.get_mut(key).ok_or(NO_ACCOUNT)?.policy = put.policy;
        self.touch(key, to);
        Ok(())
    }

    pub(super) fn fold_lapsed(&mut self, record: &Record, lapsed: &PrepaidLapsed, to: &mut impl Follower) -> Folded {
        let key = key_of(record, lapsed.currency)?;
        let spent = self.spent(key, record.effective_at);
        let account = self.prepaids.get_mut(key).ok_or(NO_ACCOUNT)?;
        account.credits.count(spent);
        account.credits.lapse(lapsed.credit, lapsed.amount).ok_or("no such credit")?;
        account.lapsed = account.lapsed.checked_add(lapsed.amount).ok_or(TOO_LARGE)?;
        self.touch(key, to);
        Ok(())
    }

    pub(super) fn fold_prepaid_changed(
        &mut self,
        record: &Record,
        changed: &PrepaidChanged,
        to: &mut impl Follower,
    ) -> Folded {
        let key = key_of(record, changed.currency)?;
        let account = self.prepaids.get_mut(key).ok_or(NO_ACCOUNT)?;
        if account.state != changed.from {
            return Err("prepaid credit is in another state");
        }
        account.state = changed.to;
        let tenant = account.tenant;
        to.headroom(self, tenant);
        Ok(())
    }

    pub(super) fn fold_applied(&mut self, record: &Record, applied: &PrepaidApplied, to: &mut impl Follower) -> Folded {
        let key = key_of(record, applied.currency)?;
        let account = self.prepaids.get_mut(key).ok_or(NO_ACCOUNT)?;
        account.applied = account.applied.checked_add(applied.amount).ok_or(TOO_LARGE)?;
        account.posted = account.posted.checked_add(-applied.uncovered).ok_or(TOO_LARGE)?;
        account.unbilled.retain(|(month, _)| *month != applied.month);
        let tenant = account.tenant;
        self.ledger.invoiced_add(tenant, applied.currency, -applied.credited)?;
        self.touch(key, to);
        Ok(())
    }
}
