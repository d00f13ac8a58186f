//! Prepaid credit (SEMANTICS 12), by going through all leases, claims and postings each time.
//!
//! Kept are only facts: the credits, what was posted and on which account it counts, and what invoices used. Every
//! figure is computed from them when it is needed. Which records may follow is in `prepaid_records.rs`, what is denied
//! or refused in `prepaid_admission.rs`.

use crate::ceiling::{Held, held};
use crate::lease::Lease;
use crate::prepaid_credits::CreditEvent;
use crate::queue::last_minute;
use crate::world::World;
use ethnum::U256;
use leasehold_model::body::{PrepaidApplied, RateCardPut};
use leasehold_model::rate::Currency;
use leasehold_model::{
    ClassNo, Funds, Instant, Month, PoolNo, PrepaidPolicy, PrepaidState, Priority, ProjectNo, Span, Steps, TenantNo,
};
use std::collections::BTreeMap;

/// Billionths in one step.
pub(crate) const PER_STEP: i128 = 1000;

/// Whose an account is, in which currency. That of the tenant comes before those of its projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccountKey {
    pub(crate) tenant: TenantNo,
    pub(crate) project: Option<ProjectNo>,
    pub(crate) currency: Currency,
}

#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// The record that opened it.
    pub(crate) opened_by: u64,
    pub(crate) policy: PrepaidPolicy,
    /// The state that the last record says.
    pub(crate) state: PrepaidState,
    /// Every credit that was added or ended.
    pub(crate) events: Vec<CreditEvent>,
    pub(crate) applied: Vec<PrepaidApplied>,
}

/// What was posted, corrected or booked by hand for a project, and the account on which it counts.
#[derive(Clone, Debug)]
pub(crate) struct CountedEntry {
    pub(crate) account: AccountKey,
    /// The month in which it is booked.
    pub(crate) month: Month,
    pub(crate) amount: Steps,
}

/// A part of a posting: its record, the month in which it is booked, and its amount.
pub(crate) type Part = (u64, Month, Steps);

/// Of each account the state that the records say, and the one that it has.
pub(crate) type States = BTreeMap<AccountKey, (PrepaidState, PrepaidState)>;

/// Everything that the records say about prepaid credit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepaid {
    pub(crate) accounts: BTreeMap<AccountKey, Account>,
    pub(crate) entries: Vec<CountedEntry>,
    /// Parts of postings that lack others.
    pub(crate) parts: BTreeMap<(ProjectNo, Currency), Vec<Part>>,
    /// The end of the last hour of which a payer has a complete posting.
    pub(crate) posted_through: BTreeMap<(ProjectNo, Currency), Instant>,
    /// Up to which whole minute the states were looked at.
    pub(crate) minute: u64,
}

/// Usage of a project that is rounded together.
type Group = (ProjectNo, PoolNo, ClassNo, Priority);

impl World {
    /// The account that a project uses: its own, or else that of its tenant.
    pub(crate) fn account_of(&self, project: ProjectNo, currency: Currency) -> Option<AccountKey> {
        self.account_for(self.projects.get(&project)?.tenant, project, currency)
    }

    /// The same for a project that may have been deleted.
    pub(crate) fn account_for(&self, tenant: TenantNo, project: ProjectNo, currency: Currency) -> Option<AccountKey> {
        let own = AccountKey { tenant, project: Some(project), currency };
        let keys = [own, AccountKey { project: None, ..own }];
        keys.into_iter().find(|key| self.prepaid.accounts.contains_key(key))
    }

    /// The accounts that a project uses: its own first, then in the order of their currencies.
    pub(crate) fn accounts_of(&self, project: ProjectNo) -> Vec<AccountKey> {
        let mut currencies: Vec<Currency> = self.prepaid.accounts.keys().map(|key| key.currency).collect();
        currencies.sort();
        currencies.dedup();
        let mut keys: Vec<AccountKey> =
            currencies.into_iter().filter_map(|currency| self.account_of(project, currency)).collect();
        keys.sort_by_key(|key| (key.project.is_none(), key.currency));
        keys
    }

    pub(crate) fn uses_account(&self, project: ProjectNo, key: AccountKey) -> bool {
        self.account_of(project, key.currency) == Some(key)
    }

    /// The record from which on the usage of a project is known: the first that opened an account which it may use.
    pub(crate) fn metered_since(&self, project: ProjectNo, currency: Currency) -> u64 {
        let Some(tenant) = self.projects.get(&project).map(|found| found.tenant) else { return 0 };
        let own = |key: &AccountKey| {
            (key.tenant, key.currency) == (tenant, currency) && key.project.is_none_or(|own| own == project)
        };
        let accounts = self.prepaid.accounts.iter().filter(|(key, _)| own(key));
        accounts.map(|(_, account)| account.opened_by).min().unwrap_or(0)
    }

    /// The end of the last hour that was posted for a project.
    fn posted_through(&self, project: ProjectNo, currency: Currency) -> Instant {
        let own = self.prepaid.posted_through.get(&(project, currency)).copied();
        own.unwrap_or_default().max(self.ledger.settled)
    }

    pub(crate) fn credited(&self, key: AccountKey) -> i128 {
        let added = self.prepaid.accounts[&key].events.iter().map(|event| match event {
            CreditEvent::Added { credit, .. } => credit.amount.0,
            CreditEvent::Ended { .. } => 0,
        });
        added.sum::<i128>() * PER_STEP
    }

    pub(crate) fn lapsed(&self, key: AccountKey) -> i128 {
        let ended = self.prepaid.accounts[&key].events.iter().map(|event| match event {
            CreditEvent::Added { .. } => 0,
            CreditEvent::Ended { lapsed, .. } => lapsed.0,
        });
        ended.sum::<i128>() * PER_STEP
    }

    /// What invoices used of the credit so far, less what they gave back.
    pub(crate) fn used_by_invoices(&self, key: AccountKey) -> i128 {
        self.prepaid.accounts[&key].applied.iter().map(|applied| applied.amount.0).sum()
    }

    /// What was posted, without what invoices ask for.
    fn posted_on(&self, key: AccountKey) -> i128 {
        let entries = self.prepaid.entries.iter().filter(|entry| entry.account == key);
        let posted: i128 = entries.map(|entry| entry.amount.0).sum();
        let uncovered: i128 = self.prepaid.accounts[&key].applied.iter().map(|applied| applied.uncovered.0).sum();
        (posted - uncovered) * PER_STEP
    }

    /// The sum of exact costs, each group rounded up to a billionth.
    fn rounded_up(&self, groups: BTreeMap<Group, U256>) -> i128 {
        let up = |((_, _, class, _), exact): (Group, U256)| {
            i128::try_from(self.billionths_up(class, exact)).unwrap_or(i128::MAX >> 8)
        };
        groups.into_iter().map(up).sum()
    }

    /// The leases of the projects of an account. Those on claimed nodes are paid for with the nodes.
    pub(crate) fn leases_under(&self, key: AccountKey) -> impl Iterator<Item = &Lease> {
        let own = move |lease: &&Lease| !lease.sensitive && self.uses_account(lease.payer, key);
        self.leases.iter().filter(own)
    }

    /// The cost of what was used since the last posted hour of each project. What a claimed node counts at present is
    /// rounded up by itself.
    pub(crate) fn accrued(&self, key: AccountKey, now: Instant) -> i128 {
        let cards = self.cards_known(u64::MAX);
        let open = self.held_under(key).into_iter().filter_map(|(project, what, _, claimed)| {
            Some(self.cost_since(key, project, what, (claimed?, now), &cards))
        });
        open.sum::<i128>() + self.rounded_up(self.known_groups(key, now, &cards)) + self.accrued_by_usage(key)
    }

    /// The cost of a claimed node, or a part of it, from an instant or the last posted hour on.
    fn cost_since(
        &self,
        key: AccountKey,
        project: ProjectNo,
        what: Held,
        (since, to): (Instant, Instant),
        cards: &[&RateCardPut],
    ) -> i128 {
        let from = since.max(self.posted_through(project, key.currency));
        i128::try_from(self.cost(what, from, to, key.currency, cards).0).expect("small enough")
    }

    /// The cost of what was used since the last posted hour, not rounded, without what claims count at present.
    fn known_groups(&self, key: AccountKey, now: Instant, cards: &[&RateCardPut]) -> BTreeMap<Group, U256> {
        let is_known = |project: ProjectNo, ended_by: Option<u64>| {
            ended_by.is_none_or(|by| by > self.metered_since(project, key.currency))
        };
        let mut groups: BTreeMap<Group, U256> = BTreeMap::new();
        let mut add = |project: ProjectNo, what: Held, from: Instant, to: Instant| {
            let from = from.max(self.posted_through(project, key.currency));
            let cost = self.exact_cost(what, (from, to), key.currency, cards);
            *groups.entry((project, what.pool, what.class, what.priority)).or_insert(U256::ZERO) += cost;
        };
        for lease in self.leases_under(key).filter(|lease| is_known(lease.payer, lease.ended_by)) {
            add(lease.payer, held(lease), lease.granted_at, lease.ended_at.unwrap_or(now).min(now));
        }
        for claim in self.claims.iter().filter(|claim| self.uses_account(claim.project, key)) {
            let pieces = claim.pieces().into_iter().filter(|piece| is_known(claim.project, piece.ended_by));
            for (piece, to) in pieces.filter_map(|piece| Some((piece.clone(), piece.to?))) {
                for (class, quanta) in piece.counted {
                    let what = Held { class, quanta, pool: claim.pool, priority: Priority::Guaranteed };
                    add(claim.project, what, piece.from, to.min(now));
                }
            }
        }
        groups
    }

    pub(crate) fn spent_of(&self, key: AccountKey, now: Instant) -> i128 {
        self.posted_on(key) + self.accrued(key, now)
    }

    /// What is left, without what is reserved.
    pub(crate) fn funds(&self, key: AccountKey, now: Instant) -> Funds {
        Funds(self.credited(key) - self.lapsed(key) - self.spent_of(key, now))
    }

    /// What is held now: leases with their deadlines, and claimed nodes with their expected ends and since when they
    /// count.
    fn held_under(&self, key: AccountKey) -> Vec<(ProjectNo, Held, Option<Instant>, Option<Instant>)> {
        let leases = self.leases_under(key).filter(|lease| lease.phase.is_held());
        let mut all: Vec<_> = leases.map(|lease| (lease.payer, held(lease), Some(lease.expires_at), None)).collect();
        let open = self.claims.iter().filter(|claim| claim.ended.is_none());
        for claim in open.filter(|claim| self.uses_account(claim.project, key)) {
            let last = claim.pieces().pop().expect("it has begun");
            for (class, quanta) in last.counted {
                let what = Held { class, quanta, pool: claim.pool, priority: Priority::Guaranteed };
                all.push((claim.project, what, claim.until, Some(last.from)));
            }
        }
        all
    }

    /// Whether time alone changes what is left.
    pub(crate) fn is_running(&self, key: AccountKey) -> bool {
        !self.held_under(key).is_empty()
    }

    /// What is left beyond what is reserved: leases up to their deadlines, and claims up to their expected ends or the
    /// last whole minute, if that is later.
    pub(crate) fn available(&self, key: AccountKey, now: Instant) -> Funds {
        let minute = last_minute(now);
        let cards = self.cards_known(u64::MAX);
        let mut groups = self.known_groups(key, now, &cards);
        let mut open = 0;
        for (project, what, until, claimed) in self.held_under(key) {
            let Some(since) = claimed else {
                let until = until.expect("a lease has a deadline");
                let cost = self.exact_cost(what, (now, until), key.currency, &cards);
                *groups.entry((project, what.pool, what.class, what.priority)).or_insert(U256::ZERO) += cost;
                continue;
            };
            let to = until.unwrap_or(minute).max(minute);
            open += self.cost_since(key, project, what, (since, to), &cards);
        }
        let left = self.credited(key) - self.lapsed(key) - self.posted_on(key);
        Funds(left - self.rounded_up(groups) - open - self.accrued_by_usage(key))
    }

    /// The cost of everything that is held now, if it goes on for so long.
    fn cost_of_window(&self, key: AccountKey, window: Span, now: Instant) -> i128 {
        let cards = self.cards_known(u64::MAX);
        let mut groups: BTreeMap<Group, U256> = BTreeMap::new();
        for (project, what, ..) in self.held_under(key) {
            let cost = self.exact_cost(what, (now, now.saturating_add(window)), key.currency, &cards);
            *groups.entry((project, what.pool, what.class, what.priority)).or_insert(U256::ZERO) += cost;
        }
        self.rounded_up(groups)
    }

    /// The state that follows from what is left.
    pub(crate) fn prepaid_state(&self, key: AccountKey, now: Instant) -> PrepaidState {
        let policy = &self.prepaid.accounts[&key].policy;
        let left = self.funds(key, now).0;
        if left <= 0 {
            PrepaidState::Depleted
        } else if policy.window > Span::ZERO && self.cost_of_window(key, policy.window, now) >= left {
            PrepaidState::Pending
        } else if left < policy.low_below.0 * PER_STEP {
            PrepaidState::Low
        } else {
            PrepaidState::Enough
        }
    }

    pub(crate) fn prepaid_states(&self, now: Instant) -> States {
        let states = |(key, account): (&AccountKey, &Account)| (*key, (account.state, self.prepaid_state(*key, now)));
        self.prepaid.accounts.iter().map(states).collect()
    }
}
