//! What a project, or one of its app instances, may cost (SEMANTICS 4).
//!
//! A ceiling counts what leases cost that have ended, and keeps back what those that are held will have cost by their
//! deadline. What a lease does not use of that returns when it ends. All of it is the engine's own: from the leases, and
//! from the rate cards that it knows.

use crate::ask::Ask;
use crate::follow::Follower;
use crate::lease::Lease;
use crate::queue::minute;
use crate::state::State;
use ethnum::U256;
use leasehold_meter::{billionths_up, factor};
use leasehold_model::body::{CeilingPut, Granted};
use leasehold_model::limits::LEASE_COST_MAX;
use leasehold_model::rate::Currency;
use leasehold_model::{
    Amount, AppInstanceNo, CeilingMode, ClassNo, DenyCause, Instant, LeaseNo, PoolNo, Priority, ProjectNo, Span,
    TenantNo,
};
use std::collections::BTreeMap;

/// What a ceiling is of: a project, or one of its app instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CeilingScope {
    pub project: ProjectNo,
    pub app_instance: Option<AppInstanceNo>,
}

/// A ceiling with what counts against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceiling {
    pub scope: CeilingScope,
    pub amount: Amount,
    /// What is priced in another currency is not counted.
    pub currency: Currency,
    pub mode: CeilingMode,
    /// What is held from here on counts.
    pub since: Instant,
    /// What leases cost that have ended.
    pub spent: Amount,
    /// What is kept back for those that are held, in all.
    pub reserved: Amount,
    /// The same for each of them.
    held: BTreeMap<LeaseNo, Amount>,
}

impl Ceiling {
    pub(crate) fn new(scope: CeilingScope, put: &CeilingPut, since: Instant) -> Self {
        let (amount, currency, mode) = (put.amount, put.currency, put.mode);
        let (spent, reserved, held) = (Amount::ZERO, Amount::ZERO, BTreeMap::new());
        Self { scope, amount, currency, mode, since, spent, reserved, held }
    }

    /// Spent and reserved together.
    pub fn used(&self) -> Amount {
        self.spent.saturating_add(self.reserved)
    }
    pub fn is_exceeded(&self) -> bool {
        self.used() > self.amount
    }
    /// What each lease under it may still cost, by number.
    pub fn held(&self) -> impl Iterator<Item = (LeaseNo, Amount)> + '_ {
        self.held.iter().map(|(lease, cost)| (*lease, *cost))
    }
    pub(crate) fn reserved_for(&self, lease: LeaseNo) -> Amount {
        self.held.get(&lease).copied().unwrap_or_default()
    }

    /// What stands against another `requested`. What costs nothing is never refused.
    pub(crate) fn judge(&self, requested: Amount) -> Result<(), DenyCause> {
        let after = self.used().saturating_add(requested);
        if self.mode == CeilingMode::Soft || requested == Amount::ZERO || after <= self.amount {
            return Ok(());
        }
        let (app_instance, amount) = (self.scope.app_instance, self.amount);
        Err(DenyCause::Ceiling { app_instance, spent: self.spent, reserved: self.reserved, requested, amount })
    }

    /// Keeps so much back for a lease, instead of what was.
    pub(crate) fn hold(&mut self, lease: LeaseNo, cost: Amount) {
        let before = self.held.insert(lease, cost).unwrap_or_default();
        self.reserved = self.reserved.saturating_sub(before).saturating_add(cost);
    }

    /// A lease has ended, and cost so much; the rest of what was kept back for it returns.
    fn end(&mut self, lease: LeaseNo, cost: Amount) {
        let before = self.held.remove(&lease).unwrap_or_default();
        self.reserved = self.reserved.saturating_sub(before);
        self.spent = self.spent.saturating_add(cost);
    }
}

/// All ceilings, and the app instances of the leases that are for one, until they are closed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ceilings {
    by_scope: BTreeMap<CeilingScope, Ceiling>,
    apps: BTreeMap<LeaseNo, AppInstanceNo>,
}

impl Ceilings {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_scope.is_empty()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ceiling> {
        self.by_scope.values()
    }
    pub(crate) fn get(&self, scope: CeilingScope) -> Option<&Ceiling> {
        self.by_scope.get(&scope)
    }
    pub(crate) fn insert(&mut self, ceiling: Ceiling) {
        self.by_scope.insert(ceiling.scope, ceiling);
    }
    pub(crate) fn retain(&mut self, stays: impl Fn(&Ceiling) -> bool) {
        self.by_scope.retain(|_, ceiling| stays(ceiling));
    }
    pub(crate) fn apps(&self) -> &BTreeMap<LeaseNo, AppInstanceNo> {
        &self.apps
    }
    pub(crate) fn set_app(&mut self, lease: LeaseNo, app: AppInstanceNo) {
        self.apps.insert(lease, app);
    }

    /// Those that something of a project and an app instance counts against, the project's first.
    pub(crate) fn of(&self, project: ProjectNo, app: Option<AppInstanceNo>) -> impl Iterator<Item = &Ceiling> {
        let own = app.map(|app| CeilingScope { project, app_instance: Some(app) });
        let scopes = [Some(CeilingScope { project, app_instance: None }), own];
        scopes.into_iter().flatten().filter_map(|scope| self.by_scope.get(&scope))
    }
    /// Those that a lease counts against.
    pub(crate) fn over(&self, lease: &Lease) -> impl Iterator<Item = &Ceiling> {
        self.of(lease.project, self.apps.get(&lease.number).copied())
    }
}

/// Capacity that has a price.
#[derive(Clone, Copy)]
pub(crate) struct Priced {
    pub(crate) class: ClassNo,
    pub(crate) quanta: u64,
    pub(crate) pool: PoolNo,
    pub(crate) priority: Priority,
}

impl Priced {
    fn of(lease: &Lease) -> Self {
        Self { class: lease.class, quanta: lease.quanta.0, pool: lease.pool, priority: lease.priority }
    }
}

const MINUTE: Span = Span::from_secs(60);

impl State {
    pub fn ceilings(&self) -> impl Iterator<Item = &Ceiling> {
        self.ceilings.iter()
    }
    pub fn ceiling(&self, scope: CeilingScope) -> Option<&Ceiling> {
        self.ceilings.get(scope)
    }
    /// Those of one tenant, by project and app instance.
    pub fn ceilings_of(&self, tenant: TenantNo) -> impl Iterator<Item = &Ceiling> {
        self.ceilings().filter(move |ceiling| self.project(ceiling.scope.project).is_some_and(|p| p.tenant == tenant))
    }
    /// The app instance that a lease was granted to, until it is closed.
    pub fn app_instance_of(&self, lease: LeaseNo) -> Option<AppInstanceNo> {
        self.ceilings.apps().get(&lease).copied()
    }

    /// What it costs to hold something from one instant to another, by the cards known now: in one currency, rounded up
    /// to a billionth.
    pub(crate) fn cost(&self, what: Priced, from: Instant, to: Instant, currency: Currency) -> Amount {
        let spec = self.class(what.class).expect("what is priced has a class");
        let mut sum = U256::ZERO;
        let mut at = from;
        while at < to {
            let until = self.card_starts(what.pool).filter(|start| *start > at).min().unwrap_or(to).min(to);
            let prices = self.prices_at(what.pool, at);
            if prices.currency == currency {
                let quanta_ns = u128::from(what.quanta) * u128::from(until.since(at).0);
                sum += U256::from(quanta_ns) * factor(prices, what.class, spec, what.priority);
            }
            at = until;
        }
        let cost = billionths_up(sum, spec.quanta_per_unit);
        u128::try_from(cost).map_or(LEASE_COST_MAX, |cost| Amount(cost).min(LEASE_COST_MAX))
    }

    /// When the prices of a pool change, or changed.
    fn card_starts(&self, pool: PoolNo) -> impl Iterator<Item = Instant> {
        let of_pool = move |of: Option<PoolNo>| of.is_none_or(|of| of == pool);
        self.rate_cards().filter(move |card| of_pool(card.pool)).map(|card| card.from)
    }

    /// What it costs to hold something for a time from now on, at the most that this becomes within the minute of
    /// `now`. So those that wait are judged alike for a whole minute, whenever in it the queue is looked at.
    fn cost_within_minute(&self, what: Priced, ttl: Span, now: Instant, currency: Currency) -> Amount {
        let begin = Instant(minute(now) * MINUTE.0);
        let end = begin.saturating_add(MINUTE);
        // A window that moves changes how fast its cost grows only where one of its ends meets another card.
        let meets = self.card_starts(what.pool).flat_map(|start| [start.0, start.0.saturating_sub(ttl.0)]);
        let inside = meets.map(Instant).filter(|at| *at > begin && *at < end);
        let starts = [begin, end].into_iter().chain(inside);
        starts.map(|at| self.cost(what, at, at.saturating_add(ttl), currency)).max().unwrap_or_default()
    }

    /// The dearest of the pools that something may lie in: where it will is not known yet.
    fn dearest(&self, pool: Option<PoolNo>, cost: impl Fn(PoolNo) -> Option<Amount>) -> Amount {
        let pools = self.pools().filter(|(number, found)| found.nodes > 0 && pool.is_none_or(|pool| pool == *number));
        pools.filter_map(|(number, _)| cost(number)).max().unwrap_or_default()
    }

    /// What all that is asked for would cost by the deadline of its first leases, if it were granted now. One that waits is
    /// asked once a minute, so that the dearest instant of the minute counts.
    pub(crate) fn cost_of(&self, ask: &Ask<'_>, currency: Currency) -> Amount {
        let pool = ask.pool.or_else(|| ask.node.and_then(|node| self.node(node)).map(|node| node.pool));
        let one = self.dearest(pool, |number| {
            let ttl = self.pool(number).and_then(|pool| self.ttl_in(pool, ask))?;
            let priced = |(class, quanta): &(ClassNo, leasehold_model::Quanta)| {
                let what = Priced { class: *class, quanta: quanta.0, pool: number, priority: ask.priority };
                match ask.is_allocation {
                    true => self.cost_within_minute(what, ttl, ask.now, currency),
                    false => self.cost(what, ask.now, ask.now.saturating_add(ttl), currency),
                }
            };
            Some(ask.asks.iter().map(priced).sum())
        });
        one.times(u64::from(ask.replicas))
    }

    /// What a lease will have cost under a ceiling, if it is held to `until`.
    pub(crate) fn cost_under(&self, ceiling: &Ceiling, lease: &Lease, until: Instant) -> Amount {
        self.cost(Priced::of(lease), lease.granted_at.max(ceiling.since), until, ceiling.currency)
    }

    /// What each ceiling over a lease has to say of it, if it is held to `until`.
    fn costs_of(&self, lease: &Lease, until: Instant) -> [Option<(CeilingScope, Amount)>; 2] {
        let mut costs = self.ceilings.over(lease).map(|c| (c.scope, self.cost_under(c, lease, until)));
        [costs.next(), costs.next()]
    }

    /// A lease is granted.
    pub(crate) fn count_cost(&mut self, lease: &Lease, granted: &Granted, to: &mut impl Follower) {
        if let Some(app) = granted.app_instance {
            self.ceilings.set_app(lease.number, app);
        }
        self.reserve_cost(lease, to);
    }

    /// Keeps back what a held lease will have cost by its deadline.
    pub(crate) fn reserve_cost(&mut self, lease: &Lease, to: &mut impl Follower) {
        if self.ceilings.is_empty() {
            return;
        }
        for (scope, cost) in self.costs_of(lease, lease.expires_at).into_iter().flatten() {
            let ceiling = self.ceilings.by_scope.get_mut(&scope).expect("it was just found");
            let before = ceiling.reserved_for(lease.number);
            ceiling.hold(lease.number, cost);
            if cost < before {
                to.headroom(self, lease.tenant);
            } else {
                to.queue_affected(self);
            }
        }
    }

    /// A lease has ended: what it cost is spent, and what it did not use returns.
    pub(crate) fn settle_cost(&mut self, lease: &Lease, to: &mut impl Follower) {
        if !self.ceilings.is_empty() {
            for (scope, cost) in self.costs_of(lease, lease.ended_at).into_iter().flatten() {
                self.ceilings.by_scope.get_mut(&scope).expect("it was just found").end(lease.number, cost);
                to.headroom(self, lease.tenant);
            }
        }
    }

    /// A lease is closed: nobody asks whose it was any more.
    pub(crate) fn forget_app(&mut self, lease: LeaseNo) {
        self.ceilings.apps.remove(&lease);
    }

    pub(crate) fn fold_ceiling(
        &mut self,
        put: &CeilingPut,
        stamp: Instant,
        to: &mut impl Follower,
    ) -> Result<(), &'static str> {
        let scope = CeilingScope { project: put.project, app_instance: put.app_instance };
        let tenant = self.project(put.project).ok_or("no such project")?.tenant;
        match self.ceilings.by_scope.get_mut(&scope) {
            Some(old) if old.currency != put.currency => return Err("a ceiling that changes its currency"),
            Some(old) => (old.amount, old.mode) = (put.amount, put.mode),
            None => {
                let mut ceiling = Ceiling::new(scope, put, stamp);
                let is_under = |lease: &&Lease| {
                    let app = self.ceilings.apps.get(&lease.number).copied();
                    lease.phase.is_held()
                        && lease.project == scope.project
                        && (scope.app_instance.is_none() || app == scope.app_instance)
                };
                for lease in self.leases.in_any_order().filter(is_under) {
                    ceiling.hold(lease.number, self.cost_under(&ceiling, lease, lease.expires_at));
                }
                self.ceilings.insert(ceiling);
            }
        }
        to.headroom(self, tenant);
        Ok(())
    }

    pub(crate) fn fold_ceiling_deleted(
        &mut self,
        scope: CeilingScope,
        to: &mut impl Follower,
    ) -> Result<(), &'static str> {
        self.ceilings.by_scope.remove(&scope).ok_or("no such ceiling")?;
        let tenant = self.project(scope.project).ok_or("no such project")?.tenant;
        to.headroom(self, tenant);
        Ok(())
    }
}
