//! Cost ceilings: the most that a project, or one of its app instances, may cost (SEMANTICS 4).
//!
//! A ceiling counts the cost of ended leases, and reserves for each held lease what it will have cost by its deadline.
//! What a lease does not use of its reservation is returned when it ends. The engine computes all of this from the
//! leases and the rate cards of its own state.

use crate::ask::Ask;
use crate::claim_cost::{CeilingUse, ClaimCost};
use crate::follow::Follower;
use crate::lease::Lease;
use crate::queue::minute;
use crate::state::State;
use ethnum::U256;
use leasehold_meter::{billionths_up, rate};
use leasehold_model::body::{CeilingPut, Granted};
use leasehold_model::limits::LEASE_COST_MAX;
use leasehold_model::rate::{Currency, Period};
use leasehold_model::{
    Amount, AppInstanceNo, CeilingMode, ClassNo, DenyCause, Instant, LeaseNo, NodeNo, PoolNo, Priority, ProjectNo,
    Span, TenantNo,
};
use std::collections::BTreeMap;

/// What a ceiling applies to: a project, or one of its app instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CeilingScope {
    pub project: ProjectNo,
    pub app_instance: Option<AppInstanceNo>,
}

/// A ceiling with the amounts that count against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceiling {
    pub scope: CeilingScope,
    pub amount: Amount,
    /// Costs in other currencies are not counted.
    pub currency: Currency,
    pub mode: CeilingMode,
    /// Costs are counted from here on.
    pub since: Instant,
    /// The cost of ended leases.
    pub spent: Amount,
    /// The sum that is reserved for held leases.
    pub reserved: Amount,
    /// The amount that is reserved for each held lease.
    held: BTreeMap<LeaseNo, Amount>,
    /// What claimed nodes cost so far; see `claim_cost.rs`.
    pub(crate) claims: BTreeMap<NodeNo, ClaimCost>,
}

impl Ceiling {
    pub(crate) fn new(scope: CeilingScope, put: &CeilingPut, since: Instant) -> Self {
        let (amount, currency, mode) = (put.amount, put.currency, put.mode);
        let (spent, reserved, held, claims) = (Amount::ZERO, Amount::ZERO, BTreeMap::new(), BTreeMap::new());
        Self { scope, amount, currency, mode, since, spent, reserved, held, claims }
    }

    /// The amount that is reserved for each held lease, by number.
    pub fn held(&self) -> impl Iterator<Item = (LeaseNo, Amount)> + '_ {
        self.held.iter().map(|(lease, cost)| (*lease, *cost))
    }
    /// The claimed nodes whose cost counts.
    pub fn claimed_nodes(&self) -> impl Iterator<Item = NodeNo> + '_ {
        self.claims.keys().copied()
    }
    pub(crate) fn reserved_for(&self, lease: LeaseNo) -> Amount {
        self.held.get(&lease).copied().unwrap_or_default()
    }

    /// Denies another `requested` that would exceed a hard ceiling. What costs nothing is never denied.
    pub(crate) fn judge(&self, used: CeilingUse, requested: Amount) -> Result<(), DenyCause> {
        let after = used.total().saturating_add(requested);
        if self.mode == CeilingMode::Soft || requested == Amount::ZERO || after <= self.amount {
            return Ok(());
        }
        let (app_instance, amount) = (self.scope.app_instance, self.amount);
        let CeilingUse { spent, reserved } = used;
        Err(DenyCause::Ceiling { app_instance, spent, reserved, requested, amount })
    }

    /// Reserves an amount for a lease, replacing what was reserved for it.
    pub(crate) fn hold(&mut self, lease: LeaseNo, cost: Amount) {
        let before = self.held.insert(lease, cost).unwrap_or_default();
        self.reserved = self.reserved.saturating_sub(before).saturating_add(cost);
    }

    /// Counts the cost of an ended lease, and returns the rest of its reservation.
    fn end(&mut self, lease: LeaseNo, cost: Amount) {
        let before = self.held.remove(&lease).unwrap_or_default();
        self.reserved = self.reserved.saturating_sub(before);
        self.spent = self.spent.saturating_add(cost);
    }
}

/// All ceilings, and the app instance of each lease that has one, until the lease is closed.
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
    pub(crate) fn get_mut(&mut self, scope: CeilingScope) -> Option<&mut Ceiling> {
        self.by_scope.get_mut(&scope)
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

    /// The ceilings that apply to a project and an app instance, the project's first.
    pub(crate) fn of(&self, project: ProjectNo, app: Option<AppInstanceNo>) -> impl Iterator<Item = &Ceiling> {
        let own = app.map(|app| CeilingScope { project, app_instance: Some(app) });
        let scopes = [Some(CeilingScope { project, app_instance: None }), own];
        scopes.into_iter().flatten().filter_map(|scope| self.by_scope.get(&scope))
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

const MINUTE: Span = Span::from_secs(60);

impl State {
    pub fn ceilings(&self) -> impl Iterator<Item = &Ceiling> {
        self.ceilings.iter()
    }
    pub fn ceiling(&self, scope: CeilingScope) -> Option<&Ceiling> {
        self.ceilings.get(scope)
    }
    /// The ceilings of one tenant, by project and app instance.
    pub fn ceilings_of(&self, tenant: TenantNo) -> impl Iterator<Item = &Ceiling> {
        self.ceilings().filter(move |ceiling| self.project(ceiling.scope.project).is_some_and(|p| p.tenant == tenant))
    }
    /// The ceilings that apply to a lease. The claim on its node counts in that of the project (SEMANTICS 11).
    pub(crate) fn ceilings_over(&self, lease: &Lease) -> impl Iterator<Item = &Ceiling> {
        let by_claim = self.is_counted_by_claim(lease);
        let all = self.ceilings.of(lease.payer, self.app_instance_of(lease.number));
        all.filter(move |ceiling| !by_claim || ceiling.scope.app_instance.is_some())
    }

    /// The ceilings that an ask counts against.
    pub(crate) fn ceilings_for(&self, ask: &Ask<'_>) -> impl Iterator<Item = &Ceiling> {
        let by_claim = ask.claimer.is_some() && self.counts_whole_claims();
        let all = self.ceilings.of(ask.payer, ask.app_instance);
        all.filter(move |ceiling| !by_claim || ceiling.scope.app_instance.is_some())
    }

    /// The app instance that a lease was granted to, until the lease is closed.
    pub fn app_instance_of(&self, lease: LeaseNo) -> Option<AppInstanceNo> {
        self.ceilings.apps().get(&lease).copied()
    }

    /// The cost of holding capacity from one instant to another by the current rate cards, in one currency, rounded up to
    /// a billionth.
    pub(crate) fn cost(&self, what: Priced, from: Instant, to: Instant, currency: Currency) -> Amount {
        let spec = self.class(what.class).expect("the class of priced capacity exists");
        let divisor = spec.quanta_per_unit * Period::Day.seconds();
        let cost = billionths_up(self.exact_cost(what, from, to, currency), divisor);
        u128::try_from(cost).map_or(LEASE_COST_MAX, |cost| Amount(cost).min(LEASE_COST_MAX))
    }

    /// The same, before it is rounded: in parts of a billionth, as many as a day has seconds for each quantum of a unit.
    pub(crate) fn exact_cost(&self, what: Priced, from: Instant, to: Instant, currency: Currency) -> U256 {
        let spec = self.class(what.class).expect("the class of priced capacity exists");
        // Prices for different periods are added up as parts of a day.
        let divisor = spec.quanta_per_unit * Period::Day.seconds();
        let mut sum = U256::ZERO;
        let mut at = from;
        while at < to {
            let until = self.card_starts(what.pool).filter(|start| *start > at).min().unwrap_or(to).min(to);
            let prices = self.prices_at(what.pool, at);
            if prices.currency == currency {
                let quanta_ns = u128::from(what.quanta) * u128::from(until.since(at).0);
                let rate = rate(prices, what.class, spec, what.priority);
                sum += U256::from(quanta_ns) * rate.factor * U256::from(divisor / rate.divisor);
            }
            at = until;
        }
        sum
    }

    /// The instants at which the prices of a pool change.
    fn card_starts(&self, pool: PoolNo) -> impl Iterator<Item = Instant> {
        let of_pool = move |of: Option<PoolNo>| of.is_none_or(|of| of == pool);
        self.rate_cards().filter(move |card| of_pool(card.pool)).map(|card| card.from)
    }

    /// The highest cost of holding capacity for a TTL from any instant in the minute of `now` on. Waiting allocations
    /// thus get the same verdict during a whole minute, no matter when a scheduling pass runs.
    fn cost_within_minute(&self, what: Priced, ttl: Span, now: Instant, currency: Currency) -> Amount {
        let begin = Instant(minute(now) * MINUTE.0);
        let end = begin.saturating_add(MINUTE);
        // The cost of a moving window is linear except where one of its ends meets the start of a card, so its maximum
        // is at one of these instants or at an end of the minute.
        let meets = self.card_starts(what.pool).flat_map(|start| [start.0, start.0.saturating_sub(ttl.0)]);
        let inside = meets.map(Instant).filter(|at| *at > begin && *at < end);
        let starts = [begin, end].into_iter().chain(inside);
        starts.map(|at| self.cost(what, at, at.saturating_add(ttl), currency)).max().unwrap_or_default()
    }

    /// The highest cost over the pools that may be used, because the pool is not chosen yet.
    fn dearest(&self, pool: Option<PoolNo>, cost: impl Fn(PoolNo) -> Option<Amount>) -> Amount {
        let pools = self.pools().filter(|(number, found)| found.nodes > 0 && pool.is_none_or(|pool| pool == *number));
        pools.filter_map(|(number, _)| cost(number)).max().unwrap_or_default()
    }

    /// What a request would cost by the deadline of its first leases if it were granted now. For allocations, the most
    /// expensive instant of the minute counts, because waiting ones are checked once a minute.
    pub(crate) fn cost_of(&self, ask: &Ask<'_>, currency: Currency) -> Amount {
        let pool = ask.pool.or_else(|| ask.node.and_then(|node| self.node(node)).map(|node| node.pool));
        let one = self.dearest(pool, |number| {
            let ttl = self.pool(number).and_then(|pool| self.ttl_in(pool, ask))?;
            let priced = |(class, quanta): &(ClassNo, leasehold_model::Quanta)| {
                // On a claimed node everything is priced as guaranteed.
                let by_claim = ask.claimer.is_some() && self.counts_whole_claims();
                let priority = if by_claim { Priority::Guaranteed } else { ask.priority };
                let what = Priced { class: *class, quanta: quanta.0, pool: number, priority };
                match ask.is_allocation {
                    true => self.cost_within_minute(what, ttl, ask.now, currency),
                    false => self.cost(what, ask.now, ask.now.saturating_add(ttl), currency),
                }
            };
            Some(ask.asks.iter().map(priced).sum())
        });
        one.times(u64::from(ask.replicas))
    }

    /// The cost of a lease that counts against a ceiling, if it is held until `until`.
    pub(crate) fn cost_under(&self, ceiling: &Ceiling, lease: &Lease, until: Instant) -> Amount {
        let priority = if self.is_counted_by_claim(lease) { Priority::Guaranteed } else { lease.priority };
        let what = Priced { class: lease.class, quanta: lease.quanta.0, pool: lease.pool, priority };
        self.cost(what, lease.granted_at.max(ceiling.since), until, ceiling.currency)
    }

    /// The cost of a lease under each ceiling that applies to it, if it is held until `until`.
    fn costs_of(&self, lease: &Lease, until: Instant) -> [Option<(CeilingScope, Amount)>; 2] {
        let mut costs = self.ceilings_over(lease).map(|c| (c.scope, self.cost_under(c, lease, until)));
        [costs.next(), costs.next()]
    }

    /// Records the app instance of a new lease, and reserves its cost.
    pub(crate) fn count_cost(&mut self, lease: &Lease, granted: &Granted, to: &mut impl Follower) {
        if let Some(app) = granted.app_instance {
            self.ceilings.set_app(lease.number, app);
        }
        self.reserve_cost(lease, to);
    }

    /// Reserves what a held lease will have cost by its deadline.
    pub(crate) fn reserve_cost(&mut self, lease: &Lease, to: &mut impl Follower) {
        if self.ceilings.is_empty() {
            return;
        }
        for (scope, cost) in self.costs_of(lease, lease.expires_at).into_iter().flatten() {
            let ceiling = self.ceilings.by_scope.get_mut(&scope).expect("the ceiling exists");
            let before = ceiling.reserved_for(lease.number);
            ceiling.hold(lease.number, cost);
            if cost < before {
                to.headroom(self, lease.tenant);
            } else {
                to.queue_affected(self);
            }
        }
    }

    /// Counts the cost of an ended lease as spent, and returns the rest of its reservation.
    pub(crate) fn settle_cost(&mut self, lease: &Lease, to: &mut impl Follower) {
        if !self.ceilings.is_empty() {
            for (scope, cost) in self.costs_of(lease, lease.ended_at).into_iter().flatten() {
                self.ceilings.by_scope.get_mut(&scope).expect("the ceiling exists").end(lease.number, cost);
                to.headroom(self, lease.tenant);
            }
        }
    }

    /// Counts the cost of a held lease up to now as spent by its project, which counts it no longer.
    pub(crate) fn settle_project_cost(&mut self, lease: &Lease, stamp: Instant, to: &mut impl Follower) {
        let scope = CeilingScope { project: lease.payer, app_instance: None };
        let Some(ceiling) = self.ceilings.get(scope) else { return };
        let what = Priced { class: lease.class, quanta: lease.quanta.0, pool: lease.pool, priority: lease.priority };
        let cost = self.cost(what, lease.granted_at.max(ceiling.since), stamp, ceiling.currency);
        self.ceilings.by_scope.get_mut(&scope).expect("it was just found").end(lease.number, cost);
        to.headroom(self, lease.tenant);
    }

    /// Forgets the app instance of a closed lease, and returns it.
    pub(crate) fn forget_app(&mut self, lease: LeaseNo) -> Option<AppInstanceNo> {
        self.ceilings.apps.remove(&lease)
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
            Some(old) if old.currency != put.currency => return Err("the currency of a ceiling changed"),
            Some(old) => (old.amount, old.mode) = (put.amount, put.mode),
            None => {
                let mut ceiling = Ceiling::new(scope, put, stamp);
                let is_under = |lease: &&Lease| {
                    let app = self.ceilings.apps.get(&lease.number).copied();
                    lease.phase.is_held()
                        && lease.payer == scope.project
                        && (scope.app_instance.is_none() && !self.is_counted_by_claim(lease)
                            || scope.app_instance.is_some() && app == scope.app_instance)
                };
                for lease in self.leases.in_any_order().filter(is_under) {
                    ceiling.hold(lease.number, self.cost_under(&ceiling, lease, lease.expires_at));
                }
                ceiling.claims = self.claims_from(scope, stamp);
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
