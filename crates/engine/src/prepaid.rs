//! Prepaid credit: what tenants and projects paid in advance, and what is left of it (SEMANTICS 12).
//!
//! An account counts what was posted since it was opened, and what accrued since the last hour that was posted
//! (`meter.rs`). A project with an account of its own does not use that of its tenant.

mod credits;
mod meter;

pub use credits::Credit;
pub(crate) use credits::Credits;
pub(crate) use meter::{Item, Meter};

use crate::ask::Ask;
use crate::ledger::{ByMonth, in_month};
use crate::queue::minute_begin;
use crate::state::State;
use leasehold_model::policy::TeardownCause;
use leasehold_model::rate::Currency;
use leasehold_model::{
    AllocationSpec, Amount, Body, DenyCause, Funds, Instant, Month, Name, PrepaidAction, PrepaidPolicy, PrepaidState,
    Priority, ProjectNo, QuarantineCause, Record, Span, Steps, TenantNo,
};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Whose credit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrepaidScope {
    Tenant(TenantNo),
    Project(ProjectNo),
}

impl PrepaidScope {
    /// The project whose credit it is; none if it is the tenant's.
    pub const fn project(self) -> Option<ProjectNo> {
        match self {
            Self::Project(project) => Some(project),
            Self::Tenant(_) => None,
        }
    }
}

/// An account: whose it is, and its currency.
pub type PrepaidKey = (PrepaidScope, Currency);

/// One account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepaid {
    /// Accounts are numbered in the order in which they are opened.
    pub(crate) number: u32,
    pub tenant: TenantNo,
    pub policy: PrepaidPolicy,
    pub state: PrepaidState,
    /// All credit that was ever added.
    pub credited: Steps,
    /// What lapsed of it.
    pub lapsed: Steps,
    /// What paid for invoices.
    pub applied: Steps,
    /// What was posted since the account was opened, as far as it is not owed by invoices.
    pub posted: Steps,
    /// What was posted for months that are not invoiced yet; no amount is zero.
    pub(crate) unbilled: ByMonth,
    pub(crate) credits: Credits,
    /// The credits by their references, with the sequences of their records.
    pub references: BTreeMap<Name, u64>,
}

impl Prepaid {
    pub(crate) fn new(number: u32, tenant: TenantNo) -> Self {
        Self {
            number,
            tenant,
            policy: PrepaidPolicy::DEFAULT,
            state: PrepaidState::Enough,
            credited: Steps::ZERO,
            lapsed: Steps::ZERO,
            applied: Steps::ZERO,
            posted: Steps::ZERO,
            unbilled: SmallVec::new(),
            credits: Credits::default(),
            references: BTreeMap::new(),
        }
    }

    /// What happens in its present state.
    pub fn action(&self) -> PrepaidAction {
        self.policy.action(self.state)
    }

    /// Whether work must be covered: otherwise more may be used than was paid.
    pub(crate) fn must_cover(&self) -> bool {
        self.policy.depleted >= PrepaidAction::Block
    }

    /// What is left without what accrued since the last posting.
    pub(crate) fn after_postings(&self) -> Funds {
        Funds::from(self.credited).minus(self.lapsed.into()).minus(self.posted.into())
    }

    /// What the operator owes for credit that was not used for invoices yet.
    pub(crate) fn liability(&self) -> Steps {
        Steps(self.credited.0 - self.lapsed.0 - self.applied.0)
    }

    pub(crate) fn unbilled_in(&self, month: Month) -> Steps {
        in_month(&self.unbilled, month)
    }
}

/// The check of one account, for an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepaidCheck {
    pub scope: PrepaidScope,
    pub currency: Currency,
    pub state: PrepaidState,
    /// What may still be reserved.
    pub available: Funds,
    pub requested: Amount,
    pub is_refused: bool,
}

/// What is left of an account at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepaidUse {
    /// What was posted, and what accrued since.
    pub spent: Funds,
    /// What held leases and claims will cost from now to their ends.
    pub reserved: Funds,
    /// What is left without what is reserved.
    pub balance: Funds,
    /// What may still be reserved.
    pub available: Funds,
}

/// All accounts, and the meters of the projects that use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prepaids {
    accounts: BTreeMap<PrepaidKey, Prepaid>,
    /// By number.
    keys: Vec<Option<PrepaidKey>>,
    pub(crate) meters: BTreeMap<(TenantNo, ProjectNo, Currency), Meter>,
    /// Every timer before this instant has been applied.
    pub(crate) timers_through: Instant,
}

impl Prepaids {
    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Notes how far timers have been applied. A command comes after all timers that are due; the start of a process comes
    /// before them, and a timer after those before it.
    pub(crate) fn note_timers(&mut self, record: &Record) {
        let body = &record.body;
        let is_start = matches!(
            body,
            Body::Started(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_) | Body::Genesis(_)
        );
        if record.continues || is_start {
            return;
        }
        let is_timer = matches!(
            body,
            Body::Expired(_)
                | Body::Fenced(_)
                | Body::BurstEnded(_)
                | Body::QuotaUntilReached(_)
                | Body::WindowEnded(_)
                | Body::WindowStarted(_)
                | Body::PrepaidLapsed(_)
                | Body::PrepaidChanged(_)
        ) || matches!(body, Body::TeardownStarted(started) if started.cause == TeardownCause::GraceEnded)
            || matches!(body, Body::NodeQuarantined(found) if found.cause == QuarantineCause::WipeTimedOut);
        let through = if is_timer { record.effective_at } else { Instant(record.stamp.0.saturating_add(1)) };
        self.timers_through = self.timers_through.max(through);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PrepaidKey, &Prepaid)> {
        self.accounts.iter().map(|(key, account)| (*key, account))
    }
    pub(crate) fn get(&self, key: PrepaidKey) -> Option<&Prepaid> {
        self.accounts.get(&key)
    }
    pub(crate) fn get_mut(&mut self, key: PrepaidKey) -> Option<&mut Prepaid> {
        self.accounts.get_mut(&key)
    }
    pub(crate) fn key_of(&self, number: u32) -> Option<PrepaidKey> {
        self.keys.get(number as usize).copied().flatten()
    }
    /// The keys by number; those of accounts that are gone are empty.
    pub(crate) fn keys(&self) -> &[Option<PrepaidKey>] {
        &self.keys
    }

    pub(crate) fn open(&mut self, key: PrepaidKey, tenant: TenantNo) {
        let number = u32::try_from(self.keys.len()).expect("accounts are fewer than projects and tenants");
        self.keys.push(Some(key));
        self.accounts.insert(key, Prepaid::new(number, tenant));
    }

    /// Puts an account of a snapshot in its place.
    pub(crate) fn restore(&mut self, key: PrepaidKey, account: Prepaid) -> Option<()> {
        let place = self.keys.get_mut(account.number as usize).filter(|place| place.is_none())?;
        *place = Some(key);
        self.accounts.insert(key, account).is_none().then_some(())
    }

    pub(crate) fn reserve_numbers(&mut self, count: usize) {
        self.keys.resize(count, None);
    }

    /// Removes the accounts and meters of projects and tenants that are gone.
    pub(crate) fn retain(&mut self, stays: impl Fn(PrepaidScope) -> bool) {
        let keys = &mut self.keys;
        self.accounts.retain(|key, account| {
            let stays = stays(key.0);
            if !stays {
                keys[account.number as usize] = None;
            }
            stays
        });
        self.meters.retain(|(_, project, _), _| stays(PrepaidScope::Project(*project)));
    }

    /// The account that a project uses in a currency.
    pub(crate) fn key_for(&self, tenant: TenantNo, project: ProjectNo, currency: Currency) -> Option<PrepaidKey> {
        let own = (PrepaidScope::Project(project), currency);
        let common = (PrepaidScope::Tenant(tenant), currency);
        [own, common].into_iter().find(|key| self.accounts.contains_key(key))
    }

    /// The accounts that a project uses, one for each currency.
    pub(crate) fn keys_for(&self, tenant: TenantNo, project: ProjectNo) -> SmallVec<[PrepaidKey; 2]> {
        let of = |scope| self.accounts.range((scope, Currency::FIRST)..).take_while(move |((s, _), _)| *s == scope);
        let own = of(PrepaidScope::Project(project)).map(|(key, _)| *key);
        let mut keys: SmallVec<[PrepaidKey; 2]> = own.collect();
        for (key, _) in of(PrepaidScope::Tenant(tenant)) {
            if keys.iter().all(|own| own.1 != key.1) {
                keys.push(*key);
            }
        }
        keys
    }

    /// The meters of the projects that use an account.
    fn meters_under(&self, key: PrepaidKey) -> impl Iterator<Item = &Meter> {
        let tenant = self.accounts.get(&key).map_or(TenantNo(0), |account| account.tenant);
        let range = (tenant, ProjectNo(0), Currency::FIRST)..;
        let of_tenant = self.meters.range(range).take_while(move |((of, ..), _)| *of == tenant);
        let used = move |(tenant, project, currency): (TenantNo, ProjectNo, Currency)| {
            currency == key.1 && self.key_for(tenant, project, currency) == Some(key)
        };
        of_tenant.filter(move |(of, _)| used(**of)).map(|(_, meter)| meter)
    }
}

fn sum(amounts: impl Iterator<Item = Amount>) -> Funds {
    amounts.sum::<Amount>().into()
}

impl State {
    /// All accounts.
    pub fn prepaid_accounts(&self) -> impl Iterator<Item = (PrepaidKey, &Prepaid)> {
        self.prepaids.iter()
    }
    /// The first whole minute whose timers were not applied yet.
    pub(crate) fn next_prepaid_minute(&self) -> Instant {
        let last = Instant(self.prepaids.timers_through.0.saturating_sub(1));
        minute_begin(last).saturating_add(Span::from_secs(60))
    }
    pub fn prepaid_account(&self, key: PrepaidKey) -> Option<&Prepaid> {
        self.prepaids.get(key)
    }

    /// What is left of an account. What is reserved for claims is taken at the last whole minute, so that all decisions
    /// of a minute see the same.
    pub fn prepaid_use(&self, key: PrepaidKey, now: Instant) -> Option<PrepaidUse> {
        let account = self.prepaids.get(key)?;
        let accrued = self.accrued(key, now);
        let balance = account.after_postings().minus(accrued);
        let committed = self.committed(key, now);
        let spent = Funds::from(account.posted).plus(accrued);
        let available = account.after_postings().minus(committed);
        Some(PrepaidUse { spent, reserved: committed.minus(accrued).max(Funds::ZERO), balance, available })
    }

    /// What accrued since the last posting.
    pub(crate) fn accrued(&self, key: PrepaidKey, at: Instant) -> Funds {
        let leased = sum(self.prepaids.meters_under(key).map(|meter| self.accrued_on(meter, key.1, at)));
        leased.plus(self.unposted_under(key))
    }

    /// What was accepted of reported usage and is not posted yet, of all who use an account.
    fn unposted_under(&self, key: PrepaidKey) -> Funds {
        let Some(tenant) = self.prepaids.get(key).map(|account| account.tenant) else { return Funds::ZERO };
        let of_tenant = self.usage.unposted.range((tenant, ProjectNo(0), Currency::FIRST)..);
        let of_tenant = of_tenant.take_while(|((of, ..), _)| *of == tenant);
        let own = of_tenant.filter(|((_, project, currency), _)| {
            *currency == key.1 && self.prepaids.key_for(tenant, *project, *currency) == Some(key)
        });
        own.fold(Funds::ZERO, |sum, (of, _)| sum.plus(self.unposted_units(*of)))
    }

    /// What accrued since the last posting, and will until the ends of leases and claims.
    fn committed(&self, key: PrepaidKey, now: Instant) -> Funds {
        let minute = minute_begin(now);
        let leased = sum(self.prepaids.meters_under(key).map(|meter| self.committed_on(meter, key.1, minute)));
        leased.plus(self.unposted_under(key))
    }

    /// What may still be reserved.
    pub(crate) fn prepaid_available(&self, key: PrepaidKey, now: Instant) -> Funds {
        let account = self.prepaids.get(key).expect("the account exists");
        account.after_postings().minus(self.committed(key, now))
    }

    /// The credits of an account with what is left of each at an instant.
    pub fn credits_left(&self, key: PrepaidKey, now: Instant) -> Vec<Credit> {
        let Some(account) = self.prepaids.get(key) else { return Vec::new() };
        let mut credits = account.credits.clone();
        credits.count(self.spent(key, now));
        credits.all().to_vec()
    }

    pub(crate) fn spent(&self, key: PrepaidKey, at: Instant) -> Funds {
        let posted = self.prepaids.get(key).map_or(Steps::ZERO, |account| account.posted);
        Funds::from(posted).plus(self.accrued(key, at))
    }

    /// The state that an account is in at an instant, and what is left of it.
    pub(crate) fn prepaid_state(&self, key: PrepaidKey, at: Instant) -> (PrepaidState, Funds) {
        let account = self.prepaids.get(key).expect("the account exists");
        let balance = account.after_postings().minus(self.accrued(key, at));
        let policy = &account.policy;
        let runs_out = || {
            let until = at.saturating_add(policy.window);
            let burnt = sum(self.prepaids.meters_under(key).map(|meter| self.burnt_on(meter, key.1, (at, until))));
            burnt > Funds::ZERO && balance.minus(burnt) <= Funds::ZERO
        };
        let state = match () {
            () if balance <= Funds::ZERO => PrepaidState::Depleted,
            () if policy.window.0 > 0 && runs_out() => PrepaidState::Pending,
            () if balance < Funds::from(policy.low_below) => PrepaidState::Low,
            () => PrepaidState::Enough,
        };
        (state, balance)
    }

    /// Whether anything is used that an account pays.
    pub(crate) fn is_burning(&self, key: PrepaidKey) -> bool {
        self.prepaids.meters_under(key).any(Meter::is_running)
    }

    /// Denies what prepaid credit does not cover. What costs nothing is never denied.
    pub(crate) fn judge_prepaid(&self, ask: &Ask<'_>) -> Result<(), DenyCause> {
        if self.prepaids.is_empty() {
            return Ok(());
        }
        match self.prepaid_checks(ask).into_iter().find(|check| check.is_refused) {
            None => Ok(()),
            Some(PrepaidCheck { scope, state, available, requested, .. }) => {
                let of_tenant = matches!(scope, PrepaidScope::Tenant(_));
                Err(DenyCause::Prepaid { of_tenant, state, available, requested })
            }
        }
    }

    /// The accounts that pay for a request, and what each has left for it. Claims pay for what runs on their nodes.
    pub(crate) fn prepaid_checks(&self, ask: &Ask<'_>) -> Vec<PrepaidCheck> {
        if self.prepaids.is_empty() || ask.claimer.is_some() {
            return Vec::new();
        }
        let check = |key: PrepaidKey| {
            let account = self.prepaids.get(key).expect("it was just found");
            let is_blocked = account.action() >= PrepaidAction::Block;
            let requested = self.cost_of(ask, key.1);
            let available = self.prepaid_available(key, ask.now);
            let lacks = account.must_cover() && available < Funds::from(requested);
            let is_refused = requested > Amount::ZERO && (is_blocked || lacks);
            PrepaidCheck { scope: key.0, currency: key.1, state: account.state, available, requested, is_refused }
        };
        self.prepaids.keys_for(ask.tenant, ask.payer).into_iter().map(check).collect()
    }

    /// The priority of new work: the lowest one where prepaid credit is to be spared.
    pub(crate) fn priority_now(&self, tenant: TenantNo, project: ProjectNo, asked: Priority) -> Priority {
        if self.prepaids.is_empty() {
            return asked;
        }
        let keys = self.prepaids.keys_for(tenant, project);
        let is_lowered = |key: &PrepaidKey| {
            self.prepaids.get(*key).is_some_and(|account| account.action() == PrepaidAction::Downgrade)
        };
        if keys.iter().any(is_lowered) { Priority::Scavenger } else { asked }
    }

    /// Gives an allocation the lowest priority where prepaid credit is to be spared.
    pub(crate) fn lower(&self, spec: &mut AllocationSpec, tenant: TenantNo, project: ProjectNo) {
        let priority = self.priority_now(tenant, project, spec.priority);
        if priority != spec.priority {
            spec.priority = priority;
            let longest = self.longest_ttl(spec.pool, priority);
            spec.ttl = spec.ttl.map(|ttl| ttl.min(longest));
        }
    }
}
