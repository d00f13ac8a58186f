//! Commands about prepaid credit, and what happens when it comes to its end (SEMANTICS 12).

use super::{Draft, Engine};
use crate::ceiling::Priced;
use crate::claims::ClaimedNode;
use crate::command::{EndCredit, PutPrepaidPolicy, TopUp};
use crate::lease::{Lease, Phase};
use crate::prepaid::{Prepaid, PrepaidKey, PrepaidScope};
use crate::queue::minute_begin;
use crate::refusal::Refusal;
use crate::timer::Entry;
use leasehold_ledger::round_to_currency;
use leasehold_model::body::{
    AllocationChanged, PrepaidApplied, PrepaidChanged, PrepaidLapsed, PrepaidPolicyPut, PrepaidToppedUp,
};
use leasehold_model::limits::{LIMIT_SPAN_MAX, PREPAID_AMOUNT_MAX, PREPAID_CREDITS_MAX, PREPAID_WINDOW_MAX};
use leasehold_model::rate::Currency;
use leasehold_model::{
    AllocationNo, Amount, Batch, Funds, Identity, Instant, InvoiceNo, LeaseNo, Month, PrepaidAction, PrepaidState,
    Priority, ProjectNo, Reason, Span, Steps, TenantNo,
};
use std::collections::BTreeSet;

const MINUTE: Span = Span::from_secs(60);

impl Draft<'_> {
    /// Who owns the account that a command names.
    fn prepaid_owner(&self, tenant: TenantNo, project: Option<ProjectNo>) -> Result<PrepaidScope, Refusal> {
        self.open_ledger()?;
        if !self.may_see(tenant) || self.state().tenant(tenant).is_none() {
            return Err(Refusal::UnknownTenant { tenant });
        }
        match project {
            Some(project) if self.state().project(project).is_none_or(|found| found.tenant != tenant) => {
                Err(Refusal::UnknownProject { project })
            }
            Some(project) => Ok(PrepaidScope::Project(project)),
            None => Ok(PrepaidScope::Tenant(tenant)),
        }
    }

    pub(super) fn top_up(&mut self, top: &TopUp) -> Result<(), Refusal> {
        let scope = self.prepaid_owner(top.tenant, top.project)?;
        let account = self.state().prepaid_account((scope, top.currency));
        if let Some(sequence) = account.and_then(|account| account.references.get(&top.reference)) {
            return Err(Refusal::TopUpExists { sequence: *sequence });
        }
        if top.amount <= Steps::ZERO || top.amount > PREPAID_AMOUNT_MAX {
            return Err(Refusal::BadTopUp { max: PREPAID_AMOUNT_MAX });
        }
        if let Some(at) = top.expires_at.filter(|at| *at <= self.now) {
            return Err(Refusal::CreditExpired { at });
        }
        if account.is_some_and(|account| account.credits.all().len() >= PREPAID_CREDITS_MAX) {
            return Err(Refusal::TooManyCredits { limit: PREPAID_CREDITS_MAX });
        }
        let credited = account.map_or(Steps::ZERO, |account| account.credited);
        credited.checked_add(top.amount).ok_or(Refusal::AmountTooLarge)?;
        let body = PrepaidToppedUp {
            currency: top.currency,
            credit: account.map_or(0, |account| account.credits.numbers) + 1,
            amount: top.amount,
            priority: top.priority,
            expires_at: top.expires_at,
            source: top.source,
            reference: top.reference.clone(),
        };
        self.emit_of((top.tenant, top.project), body, |_| {});
        Ok(())
    }

    pub(super) fn put_prepaid_policy(&mut self, put: &PutPrepaidPolicy) -> Result<(), Refusal> {
        let scope = self.prepaid_owner(put.tenant, put.project)?;
        // An account without any credit would be depleted at once.
        self.state().prepaid_account((scope, put.currency)).ok_or(Refusal::NoPrepaidAccount)?;
        let policy = put.policy;
        if policy.low_below < Steps::ZERO || policy.low_below > PREPAID_AMOUNT_MAX {
            return Err(Refusal::BadPrepaidThreshold { max: PREPAID_AMOUNT_MAX });
        }
        if policy.window > PREPAID_WINDOW_MAX {
            return Err(Refusal::PrepaidWindowTooLong { limit: PREPAID_WINDOW_MAX });
        }
        if policy.grace.is_some_and(|grace| grace > LIMIT_SPAN_MAX) {
            return Err(Refusal::GraceTooLong { limit: LIMIT_SPAN_MAX });
        }
        self.emit_of((put.tenant, put.project), PrepaidPolicyPut { currency: put.currency, policy }, |_| {});
        Ok(())
    }

    pub(super) fn end_credit(&mut self, end: &EndCredit) -> Result<(), Refusal> {
        let scope = self.prepaid_owner(end.tenant, end.project)?;
        let key = (scope, end.currency);
        let left = self.state().credits_left(key, self.now);
        let credit = left.iter().find(|credit| credit.number == end.credit);
        let credit = credit.ok_or(Refusal::UnknownCredit { credit: end.credit })?;
        let (currency, credit, amount) = (end.currency, credit.number, credit.left.whole_steps());
        self.emit_of((end.tenant, end.project), PrepaidLapsed { currency, credit, amount }, |_| {});
        Ok(())
    }

    /// The refusal of what prepaid credit does not cover: the extension of leases, or a claim.
    pub(super) fn check_prepaid(
        &self,
        (tenant, project): (TenantNo, ProjectNo),
        taken: &mut Vec<(PrepaidKey, Amount)>,
        cost: impl Fn(Currency) -> Amount,
        refusal: impl Fn(Currency, Amount, Funds) -> Refusal,
    ) -> Result<(), Refusal> {
        let state = self.state();
        if state.prepaids.is_empty() {
            return Ok(());
        }
        let mut extras = Vec::new();
        for key in state.prepaids.keys_for(tenant, project) {
            let requested = cost(key.1);
            if requested == Amount::ZERO || !state.prepaids.get(key).is_some_and(Prepaid::must_cover) {
                continue;
            }
            let others: Amount = taken.iter().filter(|(of, _)| *of == key).map(|(_, amount)| *amount).sum();
            let available = state.prepaid_available(key, self.now).minus(others.into());
            if Funds::from(requested) > available {
                return Err(refusal(key.1, requested, available));
            }
            extras.push((key, requested));
        }
        taken.append(&mut extras);
        Ok(())
    }

    /// Checks that prepaid credit covers the extension of a lease. Earlier deadlines are never refused.
    pub(super) fn check_prepaid_renewal(
        &self,
        lease: &Lease,
        until: Instant,
        taken: &mut Vec<(PrepaidKey, Amount)>,
    ) -> Result<(), Refusal> {
        let state = self.state();
        if state.prepaids.is_empty() || !state.is_metered(lease) || until <= lease.expires_at {
            return Ok(());
        }
        let what = Priced { class: lease.class, quanta: lease.quanta.0, pool: lease.pool, priority: lease.priority };
        let cost = |currency| state.cost(what, lease.expires_at, until, currency);
        let number = lease.number;
        self.check_prepaid((lease.tenant, lease.payer), taken, cost, |currency, requested, available| {
            Refusal::PrepaidExhausted { lease: number, requested, available, currency }
        })
    }

    /// Checks that prepaid credit covers a claim up to its expected end.
    pub(super) fn check_prepaid_claim(
        &self,
        (tenant, project): (TenantNo, ProjectNo),
        until: Option<Instant>,
        claimed: &[ClaimedNode],
    ) -> Result<(), Refusal> {
        let (state, now) = (self.state(), self.now);
        let mut keys = state.prepaids.keys_for(tenant, project).into_iter();
        if !keys.any(|key| state.prepaids.get(key).is_some_and(Prepaid::must_cover)) {
            return Ok(());
        }
        let until = until.ok_or(Refusal::ClaimNeedsEnd { project })?;
        let cost = |currency| state.cost_of_claiming(claimed, now, until, currency);
        self.check_prepaid((tenant, project), &mut Vec::new(), cost, |currency, requested, available| {
            Refusal::ClaimNotCovered { requested, available, currency }
        })
    }

    /// Credit of the tenant and of its projects pays for what was posted for the month of an invoice.
    pub(super) fn apply_prepaid(
        &mut self,
        (tenant, currency): (TenantNo, Currency),
        (invoice, month): (InvoiceNo, Month),
        (owed, net): (Steps, Steps),
    ) {
        let of_invoice = |(key, account): &(PrepaidKey, &Prepaid)| key.1 == currency && account.tenant == tenant;
        let figures = |(key, account): (PrepaidKey, &Prepaid)| {
            (key.0, account.liability(), account.applied, account.unbilled_in(month))
        };
        let accounts = self.state().prepaid_accounts().filter(of_invoice).map(figures);
        let accounts: Vec<_> = accounts.filter(|(.., posted)| *posted != Steps::ZERO).collect();
        // Both sums, so that what is credited is rounded once, and an invoice that is covered asks for nothing.
        let (mut amounts, mut credits) = (Steps::ZERO, Steps::ZERO);
        for (scope, left, applied, posted) in accounts {
            let amount = Steps(posted.0.min(left.0.max(0)).max(-applied.0));
            amounts = Steps(amounts.0 + amount.0);
            let rounded = || round_to_currency(&amounts.into(), currency).unwrap_or(amounts);
            let all = if amounts == owed { net } else { rounded() };
            let credited = Steps(all.0 - credits.0);
            credits = all;
            let uncovered = Steps(posted.0 - amount.0);
            let project = scope.project();
            let body = PrepaidApplied { currency, invoice, month, amount, credited, uncovered };
            self.emit_of((tenant, project), body, |_| {});
        }
    }

    /// Records the states that accounts have come into by this command.
    #[inline]
    pub(super) fn note_prepaid(&mut self) {
        if self.engine.timers.touched.is_empty() {
            return;
        }
        for number in self.engine.arm_touched() {
            self.note_account(number, self.now);
        }
    }

    /// Records the state that an account is in, if it is another one than before, and does what follows from that.
    fn note_account(&mut self, number: u32, at: Instant) -> bool {
        let Some(key) = self.state().prepaids.key_of(number) else { return false };
        let (to, balance) = self.state().prepaid_state(key, at);
        let account = self.state().prepaids.get(key).expect("the account has a key");
        let (from, tenant, action, grace) =
            (account.state, account.tenant, account.policy.action(to), account.policy.grace);
        if from == to {
            return false;
        }
        let project = key.0.project();
        let body = PrepaidChanged { currency: key.1, from, to, balance, action };
        self.emit_of((tenant, project), body, |record| record.effective_at = at);
        if to != PrepaidState::Enough {
            match action {
                PrepaidAction::Alert | PrepaidAction::Block => {}
                PrepaidAction::Downgrade => self.downgrade_waiting(key),
                PrepaidAction::Drain => self.drain_prepaid(key, grace),
            }
        }
        true
    }

    /// Whether a project uses an account.
    fn uses(&self, key: PrepaidKey, tenant: TenantNo, project: ProjectNo) -> bool {
        self.state().prepaids.key_for(tenant, project, key.1) == Some(key)
    }

    fn downgrade_waiting(&mut self, key: PrepaidKey) {
        let found = self.state().allocations_after(None).filter(|found| {
            found.state.is_queued()
                && found.spec.priority > Priority::Scavenger
                && self.uses(key, found.tenant, found.payer)
        });
        let waiting: Vec<AllocationNo> = found.map(|found| found.number).collect();
        for allocation in waiting {
            let Some(found) = self.state().allocation(allocation) else { continue };
            let (identity, mut spec) = (found.identity(), found.spec.clone());
            self.state().lower(&mut spec, found.tenant, found.payer);
            self.emit_for(&identity, AllocationChanged { allocation, spec });
        }
    }

    /// Revokes the leases that an account pays. Claims go on, and so do the leases that they count.
    fn drain_prepaid(&mut self, key: PrepaidKey, grace: Option<Span>) {
        let state = self.state();
        let now = self.now;
        let is_paid = |lease: &&Lease| {
            lease.phase == Phase::Active
                && state.is_metered(lease)
                && self.uses(key, lease.tenant, lease.payer)
                && state.costs_in(lease, now, key.1)
        };
        let paid = state.leases.in_any_order().filter(is_paid);
        let leases: BTreeSet<LeaseNo> = paid.flat_map(|lease| self.with_gang(lease)).collect();
        let leases: Vec<LeaseNo> = leases.into_iter().collect();
        self.revoke_active(&leases, grace, Reason::Budget);
    }
}

impl Engine {
    /// Has the accounts that may have come into another state looked at when the minute is over. Returns them.
    pub(super) fn arm_touched(&mut self) -> BTreeSet<u32> {
        let touched = std::mem::take(&mut self.timers.touched);
        let next = minute_begin(self.state.last_stamp()).saturating_add(MINUTE);
        touched.iter().for_each(|number| self.timers.arm_minute(*number, next));
        touched
    }

    fn prepaid_draft<'a>(&'a mut self, now: Instant, identity: &'a Identity, out: &'a mut Batch) -> Draft<'a> {
        let first = self.state.size();
        Draft { engine: self, out, now, identity, key: None, first, count: 0 }
    }

    /// The minute's look at an account. Returns whether there are records.
    pub(super) fn prepaid_minute(&mut self, now: Instant, due: Entry, out: &mut Batch) -> bool {
        let number = u32::try_from(due.id()).expect("account numbers fit 32 bits");
        if !self.timers.minute_came(number, due.due()) {
            return false;
        }
        let identity = Identity::default();
        let changed = self.prepaid_draft(now, &identity, out).note_account(number, due.due());
        self.timers.touched.remove(&number);
        if self.state.prepaids.key_of(number).is_some_and(|key| self.state.is_burning(key)) {
            self.timers.arm_minute(number, due.due().saturating_add(MINUTE));
        }
        changed
    }

    /// Credits that expire: what is not spent of them lapses. Returns whether there are records.
    pub(super) fn expire_credits(&mut self, now: Instant, due: Entry, out: &mut Batch) -> bool {
        let number = u32::try_from(due.id()).expect("account numbers fit 32 bits");
        let Some(key) = self.state.prepaids.key_of(number) else { return false };
        let at = due.due();
        let account = self.state.prepaids.get(key).expect("the account has a key");
        let due_now = account.credits.all().iter().filter(|credit| credit.expires_at == Some(at));
        let Some(credit) = due_now.map(|credit| credit.number).min() else { return false };
        // Also if it is used up: what is given back later is no part of it.
        let left = self.state.credits_left(key, at).into_iter().find(|left| left.number == credit);
        let amount = left.map_or(Steps::ZERO, |left| left.left.whole_steps());
        let project = key.0.project();
        let tenant = account.tenant;
        let body = PrepaidLapsed { currency: key.1, credit, amount };
        let identity = Identity::default();
        let mut draft = self.prepaid_draft(now, &identity, out);
        draft.emit_of((tenant, project), body, |record| record.effective_at = at);
        draft.note_account(number, at);
        // There may be others that expire now.
        self.timers.push(due);
        true
    }
}
