//! Records about prepaid credit (SEMANTICS 12): which may follow, and what follows from them.

use crate::acts::{Line, Script};
use crate::command::Command;
use crate::due::{Timer, TimerKind};
use crate::eviction::unit_of;
use crate::foretell::{Caller, Foretold, Told};
use crate::lease::Phase;
use crate::ledger::{payer_of, rounded_steps};
use crate::prepaid::{Account, AccountKey, CountedEntry, PER_STEP};
use crate::prepaid_credits::{Credit, CreditEvent};
use crate::queue::minute_of;
use crate::violation::{Broken, Checked, demand, found};
use crate::world::World;
use leasehold_model::body::{
    AllocationChanged, InvoiceIssued, LedgerPosted, PrepaidApplied, PrepaidChanged, PrepaidLapsed, PrepaidPolicyPut,
    PrepaidToppedUp,
};
use leasehold_model::limits::{PREPAID_AMOUNT_MAX, PREPAID_WINDOW_MAX};
use leasehold_model::rate::Currency;
use leasehold_model::{
    Body, Identity, Instant, LeaseNo, Leg, Month, PrepaidAction, PrepaidPolicy, PrepaidState, Priority, ProjectNo,
    Reason, Record, Steps, TenantNo,
};
use std::collections::BTreeSet;

const MINUTE: u64 = 60_000_000_000;

/// Credit to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopUpWish {
    pub tenant: TenantNo,
    pub project: Option<ProjectNo>,
    pub put: PrepaidToppedUp,
}

impl AccountKey {
    pub(crate) fn identity(self) -> Identity {
        Identity { tenant: Some(self.tenant), project: self.project, ..Identity::default() }
    }
}

/// The account in the head of a record.
fn account_in(record: &Record, currency: Currency) -> Result<AccountKey, Broken> {
    let tenant = found!(record.identity.tenant, "prepaid", "credit of nobody");
    Ok(AccountKey { tenant, project: record.identity.project, currency })
}

impl World {
    /// Whether there is such an owner, and a ledger.
    fn fault_of_owner(&self, key: AccountKey) -> Option<&'static str> {
        let own = |project: ProjectNo| self.projects.get(&project).is_some_and(|found| found.tenant == key.tenant);
        let faults = [
            (self.ledger.opened.is_none(), "ledger_not_open"),
            (!self.tenants.contains_key(&key.tenant), "unknown_tenant"),
            (key.project.is_some_and(|project| !own(project)), "unknown_project"),
        ];
        faults.into_iter().find(|(wrong, _)| *wrong).map(|(_, word)| word)
    }

    fn open_account(&mut self, key: AccountKey, opened_by: u64) -> &mut Account {
        self.prepaid.accounts.entry(key).or_insert_with(|| Account {
            opened_by,
            policy: PrepaidPolicy::DEFAULT,
            state: PrepaidState::Enough,
            events: Vec::new(),
            applied: Vec::new(),
        })
    }

    /// The credits that have not ended and expire.
    pub(crate) fn expiries(&self) -> Vec<(Instant, AccountKey, u64)> {
        let mut all = Vec::new();
        for key in self.prepaid.accounts.keys() {
            for left in self.shares(*key).credits {
                all.extend(left.credit.expires_at.map(|at| (at, *key, left.credit.number)));
            }
        }
        all
    }

    pub(crate) fn topped_up(&mut self, record: &Record, put: &PrepaidToppedUp) -> Checked {
        let key = account_in(record, put.currency)?;
        let fault = self.fault_of_owner(key).or_else(|| fault_of_top_up(put, record.stamp));
        demand!(fault.is_none(), "prepaid", "must be refused: {fault:?}");
        let twice = self.credits_ever(key).any(|credit| credit.reference == put.reference);
        demand!(!twice, "prepaid", "{:?} was used before", put.reference);
        let number = self.credits_ever(key).count() as u64 + 1;
        demand!(put.credit == number, "prepaid", "credit {} where {number} is next", put.credit);
        self.open_account(key, record.sequence);
        let spent = self.spent_of(key, record.stamp);
        let credit = Credit {
            number,
            amount: put.amount,
            priority: put.priority,
            expires_at: put.expires_at,
            source: put.source,
            reference: put.reference.clone(),
            sequence: record.sequence,
        };
        self.open_account(key, record.sequence).events.push(CreditEvent::Added { credit, spent });
        Ok(())
    }

    pub(crate) fn prepaid_policy_put(&mut self, record: &Record, put: &PrepaidPolicyPut) -> Checked {
        let key = account_in(record, put.currency)?;
        let fault = self.fault_of_owner(key).or_else(|| self.fault_of_account(key));
        let fault = fault.or_else(|| fault_of_policy(&put.policy));
        demand!(fault.is_none(), "prepaid", "must be refused: {fault:?}");
        self.open_account(key, record.sequence).policy = put.policy;
        Ok(())
    }

    pub(crate) fn prepaid_lapsed(&mut self, record: &Record, lapsed: &PrepaidLapsed) -> Checked {
        let key = account_in(record, lapsed.currency)?;
        demand!(self.prepaid.accounts.contains_key(&key), "prepaid", "there is no {key:?}");
        let left = self.left_of(key, lapsed.credit, record.effective_at).unwrap_or_default();
        demand!(left == lapsed.amount, "prepaid", "{left:?} is left of {key:?} credit {}", lapsed.credit);
        let spent = self.spent_of(key, record.effective_at);
        let (credit, lapsed) = (lapsed.credit, lapsed.amount);
        self.open_account(key, record.sequence).events.push(CreditEvent::Ended { credit, lapsed, spent });
        Ok(())
    }

    /// What a record of the ledger adds to what the projects of accounts were posted.
    pub(crate) fn count_postings(&mut self, record: &Record) -> Checked {
        if let Body::LedgerPosted(posted) = &record.body {
            self.count_part(record, posted)?;
        } else if let Body::LedgerCorrected(corrected) = &record.body {
            let legs = corrected.reversal.iter().chain(&corrected.replacement);
            self.count_legs(record, corrected.currency, corrected.month, legs, corrected.rounding)?;
        } else if let Body::LedgerAdjusted(adjusted) = &record.body {
            self.count_legs(record, adjusted.currency, adjusted.month, adjusted.legs.iter(), Steps::ZERO)?;
        } else if let Body::LedgerShared(shared) = &record.body {
            self.count_legs(record, shared.currency, shared.month, [].iter(), shared.booked)?;
        }
        Ok(())
    }

    /// A posting in several parts counts when its last part is recorded.
    fn count_part(&mut self, record: &Record, posted: &LedgerPosted) -> Checked {
        let (tenant, project) = payer_of(record)?;
        let payer = (project, posted.currency);
        let sum = Steps(posted.lines.iter().map(|line| line.posted.0).sum());
        self.prepaid.parts.entry(payer).or_default().push((record.sequence, posted.month, sum));
        if posted.complete {
            let parts = self.prepaid.parts.remove(&payer).unwrap_or_default();
            let account = self.account_for(tenant, project, posted.currency);
            // What was recorded before the project had an account does not count.
            let since = self.metered_since(project, posted.currency);
            for (_, month, amount) in parts.into_iter().filter(|(sequence, ..)| *sequence > since) {
                self.prepaid.entries.extend(account.map(|account| CountedEntry { account, month, amount }));
            }
            let through = self.prepaid.posted_through.entry(payer).or_default();
            *through = posted.through.max(*through);
        }
        Ok(())
    }

    fn count_legs<'a>(
        &mut self,
        record: &Record,
        currency: Currency,
        month: Month,
        legs: impl Iterator<Item = &'a Leg>,
        rounding: Steps,
    ) -> Checked {
        let (tenant, project) = payer_of(record)?;
        let own = legs.filter(|leg| leg.account == leasehold_model::Account::Receivable(project));
        let amount = Steps(own.map(|leg| leg.amount.0).sum::<i128>() + rounding.0);
        let account = self.account_for(tenant, project, currency);
        self.prepaid.entries.extend(account.map(|account| CountedEntry { account, month, amount }));
        Ok(())
    }

    /// Credit pays for what was posted for the month of an invoice: that of the tenant first, then those of projects.
    pub(crate) fn applications(&self, record: &Record, invoice: &InvoiceIssued) -> Script {
        let Some(tenant) = record.identity.tenant else { return Script::new() };
        let own = |key: &&AccountKey| key.tenant == tenant && key.currency == invoice.currency;
        let net: i128 = invoice.taxes.iter().map(|line| line.net.0).sum();
        let posted: i128 = invoice.projects.iter().map(|(_, amount)| amount.0).sum();
        let rounded = |sum: i128| if sum == posted { net } else { rounded_steps(sum, invoice.currency) };
        let (mut script, mut sum) = (Script::new(), 0);
        for key in self.prepaid.accounts.keys().filter(own) {
            let entries = self.prepaid.entries.iter().filter(|one| one.account == *key && one.month == invoice.month);
            let due: i128 = entries.map(|entry| entry.amount.0).sum();
            let used = self.used_by_invoices(*key);
            let left = (self.credited(*key) - self.lapsed(*key)) / PER_STEP - used;
            let amount = if due > 0 { due.min(left.max(0)) } else { due.max(-used.max(0)) };
            if due == 0 {
                continue;
            }
            let credited = rounded(sum + amount) - if sum == 0 { 0 } else { rounded(sum) };
            sum += amount;
            let body = PrepaidApplied {
                currency: invoice.currency,
                invoice: invoice.number,
                month: invoice.month,
                amount: Steps(amount),
                credited: Steps(credited),
                uncovered: Steps(due - amount),
            };
            script.push(Line::new(body, key.identity(), record.stamp));
        }
        script
    }

    pub(crate) fn prepaid_applied(&mut self, record: &Record, applied: &PrepaidApplied) -> Checked {
        let key = account_in(record, applied.currency)?;
        demand!(self.prepaid.accounts.contains_key(&key), "prepaid", "there is no {key:?}");
        self.open_account(key, record.sequence).applied.push(applied.clone());
        Ok(())
    }

    pub(crate) fn prepaid_changed(
        &mut self,
        command: &mut Command,
        record: &Record,
        changed: &PrepaidChanged,
    ) -> Checked {
        let key = account_in(record, changed.currency)?;
        let account = found!(self.prepaid.accounts.get(&key), "prepaid", "there is no {key:?}");
        let (at, from) = (record.effective_at, account.state);
        let to = self.prepaid_state(key, at);
        demand!(to != from, "prepaid", "{key:?} is {from} as before, with {}", self.funds(key, at));
        let balance = self.funds(key, at);
        let action = account.policy.action(to);
        let expected = PrepaidChanged { currency: key.currency, from, to, balance, action };
        demand!(*changed == expected, "prepaid", "{changed:?} instead of {expected:?}");
        self.open_account(key, record.sequence).state = to;
        command.script = match action {
            PrepaidAction::Alert | PrepaidAction::Block => Script::new(),
            PrepaidAction::Downgrade => self.downgrades(key, record.stamp),
            PrepaidAction::Drain => self.drained(key, record.stamp),
        }
        .into();
        Ok(())
    }

    /// Allocations that wait are changed to the lowest priority, in order of number.
    fn downgrades(&self, key: AccountKey, now: Instant) -> Script {
        let waits = self.allocations.values().filter(|found| found.state.is_queued());
        let own = waits.filter(|found| self.uses_account(found.payer(), key));
        let line = |found: &crate::allocation::Allocation| {
            let body = AllocationChanged { allocation: found.number, spec: self.downgraded_spec(&found.spec) };
            Line::new(body, found.identity(), now)
        };
        own.filter(|found| found.spec.priority > Priority::Scavenger).map(line).collect()
    }

    /// The active leases that cost something in the currency are revoked, with whole gangs.
    fn drained(&self, key: AccountKey, now: Instant) -> Script {
        let active = || self.leases_under(key).filter(|lease| lease.phase == Phase::Active);
        let cards = self.cards_known(u64::MAX);
        let costs = |lease: &&crate::lease::Lease| {
            let what = crate::ceiling::held(lease);
            self.exact_cost(what, (now, Instant(now.0 + 1)), key.currency, &cards) > 0
        };
        let units: BTreeSet<_> = active().filter(costs).map(unit_of).collect();
        let leases: Vec<LeaseNo> =
            active().filter(|lease| units.contains(&unit_of(lease))).map(|lease| lease.number).collect();
        self.revocations_within(&leases, Reason::Budget, self.prepaid.accounts[&key].policy.grace, now)
    }

    /// Checks, after a command, that every account whose state it changed has a record that says so.
    pub(crate) fn check_states_said(&self, command: &Command) -> Checked {
        let Some((at, before)) = &command.prepaid else { return Ok(()) };
        for (key, account) in &self.prepaid.accounts {
            // What time alone has changed is said at the next whole minute.
            let (said, was) = before.get(key).copied().unwrap_or((account.state, account.state));
            let is = self.prepaid_state(*key, *at);
            let silent = said == was && is != account.state;
            demand!(!silent, "prepaid-state", "{key:?} was {was} and is {is} with {}", self.funds(*key, *at));
        }
        Ok(())
    }

    /// Credits that have expired, and accounts whose state is another since a whole minute.
    pub(crate) fn prepaid_timers(&self, now: Instant) -> Vec<Timer> {
        let id = |key: &AccountKey, credit: u64| (self.prepaid.accounts[key].opened_by << 32) + credit;
        let expiries = self.expiries().into_iter().filter(|(at, ..)| *at <= now);
        // Also those of which nothing is left, so that nothing that is given back later can lapse with them.
        let credits = expiries.map(|(due, key, credit)| Timer { due, kind: TimerKind::Credit, id: id(&key, credit) });
        let mut timers: Vec<Timer> = credits.collect();
        for (key, account) in &self.prepaid.accounts {
            let last = if self.is_running(*key) { minute_of(now) } else { minute_of(now).min(self.prepaid.minute + 1) };
            let minutes = self.prepaid.minute + 1..=last;
            let changes = |minute: &u64| self.prepaid_state(*key, Instant(minute * MINUTE)) != account.state;
            timers.extend(minutes.into_iter().find(changes).map(|minute| Timer {
                due: Instant(minute * MINUTE),
                kind: TimerKind::PrepaidMinute,
                id: id(key, 0),
            }));
        }
        timers
    }

    /// The timer that a record about prepaid credit applies, if it does.
    pub(crate) fn prepaid_timer_of(&self, record: &Record) -> Option<(TimerKind, Vec<u64>)> {
        let place = |key: AccountKey| Some(self.prepaid.accounts.get(&key)?.opened_by);
        if let Body::PrepaidLapsed(lapsed) = &record.body {
            let key = account_in(record, lapsed.currency).ok()?;
            let due = |(at, of, number): &(Instant, AccountKey, u64)| {
                *at <= record.stamp && *of == key && *number == lapsed.credit
            };
            self.expiries().iter().find(|expiry| due(expiry))?;
            Some((TimerKind::Credit, vec![(place(key)? << 32) + lapsed.credit]))
        } else if let Body::PrepaidChanged(changed) = &record.body
            && !record.continues
        {
            let key = account_in(record, changed.currency).ok()?;
            Some((TimerKind::PrepaidMinute, vec![place(key)? << 32]))
        } else {
            None
        }
    }

    /// Notes up to which minute the states were looked at.
    pub(crate) fn follow_minutes(&mut self, record: &Record, is_timer: bool) {
        if record.continues {
            return;
        }
        let at = if is_timer { Instant(record.effective_at.0.saturating_sub(1)) } else { record.stamp };
        // A start comes before the timers that became due during the outage.
        if !matches!(record.body, Body::Genesis(_) | Body::Started(_)) {
            self.prepaid.minute = minute_of(at).max(self.prepaid.minute);
        }
    }

    pub(crate) fn foretell_top_up(&self, caller: &Caller, wish: &TopUpWish, now: Instant) -> Told {
        let TopUpWish { tenant, project, put } = wish;
        let key = AccountKey { tenant: *tenant, project: *project, currency: put.currency };
        if let Some(fault) = self.fault_of_caller(caller, key) {
            return Err(fault);
        }
        let known = self.credits_ever(key).find(|credit| credit.reference == put.reference);
        if let Some(known) = known {
            let same = (known.amount, known.priority, known.expires_at, known.source)
                == (put.amount, put.priority, put.expires_at, put.source);
            return match (same, fault_of_top_up(put, now)) {
                (true, _) | (false, None) => Ok(Foretold::Again { sequence: known.sequence }),
                (false, Some(_)) => Ok(Foretold::Faulty),
            };
        }
        if let Some(fault) = fault_of_top_up(put, now) {
            return Err(fault);
        }
        let credit = self.credits_ever(key).count() as u64 + 1;
        let body = PrepaidToppedUp { credit, ..put.clone() };
        Ok(Foretold::OneOf { tenant: Some(key.tenant), bodies: vec![body.into()] })
    }

    /// The first credit opens an account.
    fn fault_of_account(&self, key: AccountKey) -> Option<&'static str> {
        (!self.prepaid.accounts.contains_key(&key)).then_some("no_prepaid_account")
    }

    fn fault_of_caller(&self, caller: &Caller, key: AccountKey) -> Option<&'static str> {
        let visible = caller.tenant.is_none_or(|own| own == key.tenant);
        if visible { self.fault_of_owner(key) } else { Some("unknown_tenant") }
    }

    pub(crate) fn foretell_prepaid_policy(
        &self,
        caller: &Caller,
        (tenant, project): (TenantNo, Option<ProjectNo>),
        put: &PrepaidPolicyPut,
    ) -> Told {
        let key = AccountKey { tenant, project, currency: put.currency };
        let fault = self.fault_of_caller(caller, key).or_else(|| self.fault_of_account(key));
        if let Some(fault) = fault.or_else(|| fault_of_policy(&put.policy)) {
            return Err(fault);
        }
        Ok(Foretold::OneOf { tenant: Some(tenant), bodies: vec![put.clone().into()] })
    }

    pub(crate) fn foretell_credit_end(
        &self,
        caller: &Caller,
        (tenant, project): (TenantNo, Option<ProjectNo>),
        (currency, credit): (Currency, u64),
        now: Instant,
    ) -> Told {
        let key = AccountKey { tenant, project, currency };
        if let Some(fault) = self.fault_of_caller(caller, key) {
            return Err(fault);
        }
        self.prepaid.accounts.get(&key).ok_or("unknown_credit")?;
        let left = self.left_of(key, credit, now).filter(|left| *left > Steps::ZERO);
        let amount = left.ok_or("unknown_credit")?;
        let body = PrepaidLapsed { currency, credit, amount };
        Ok(Foretold::OneOf { tenant: Some(tenant), bodies: vec![body.into()] })
    }
}

fn fault_of_top_up(put: &PrepaidToppedUp, now: Instant) -> Option<&'static str> {
    let faults = [
        (put.amount <= Steps::ZERO || put.amount > PREPAID_AMOUNT_MAX, "bad_top_up"),
        (put.expires_at.is_some_and(|at| at <= now), "credit_expired"),
    ];
    faults.into_iter().find(|(wrong, _)| *wrong).map(|(_, word)| word)
}

fn fault_of_policy(policy: &PrepaidPolicy) -> Option<&'static str> {
    let faults = [
        (policy.low_below < Steps::ZERO || policy.low_below > PREPAID_AMOUNT_MAX, "bad_prepaid_threshold"),
        (policy.window > PREPAID_WINDOW_MAX, "prepaid_window_too_long"),
    ];
    faults.into_iter().find(|(wrong, _)| *wrong).map(|(_, word)| word)
}
