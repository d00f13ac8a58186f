//! Cost ceilings (SEMANTICS 4), by pricing all leases each time.
//!
//! The cost of an ended lease follows from the cards in force. The reserved amount of a held lease follows from the
//! cards that were known when its deadline was last set, or when the ceiling was created. So all changes of cards are
//! kept. What claims count under the ceilings of projects is in `ceiling_claims.rs`.

use crate::accounts::{DAY, price_by};
use crate::apps::unless;
use crate::foretell::{Told, sealed};
use crate::lease::Lease;
use crate::quota::Demand;
use crate::request::RequestFacts;
use crate::violation::{Checked, demand, found};
use crate::world::World;
use ethnum::U256;
use leasehold_model::body::{CeilingDeleted, CeilingPut, RateCardPut};
use leasehold_model::limits::{CEILING_AMOUNT_MAX, CEILINGS_PER_TENANT_MAX, LEASE_COST_MAX};
use leasehold_model::rate::Currency;
use leasehold_model::{
    AllocationSpec, Amount, AppInstanceNo, Body, CeilingMode, ClassNo, DenyCause, Instant, LeaseNo, PoolNo, Priority,
    ProjectNo, Record, Span, TenantNo,
};
use std::collections::BTreeMap;

/// A payer, or what it pays for one app instance.
pub(crate) type Scope = (ProjectNo, Option<AppInstanceNo>);

#[derive(Clone, Debug)]
pub(crate) struct Ceiling {
    pub(crate) put: CeilingPut,
    pub(crate) since: Instant,
    /// The sequence of its creation.
    pub(crate) put_by: u64,
}

/// A change of a card: created or deleted.
#[derive(Clone, Debug)]
pub(crate) struct CardChange {
    pub(crate) sequence: u64,
    pub(crate) card: u32,
    pub(crate) put: Option<RateCardPut>,
}

/// Capacity to be priced.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub(crate) class: ClassNo,
    pub(crate) quanta: u64,
    pub(crate) pool: PoolNo,
    pub(crate) priority: Priority,
}

pub(crate) fn held(lease: &Lease) -> Held {
    Held { class: lease.class, quanta: lease.quanta, pool: lease.pool, priority: lease.priced_as }
}

const MINUTE: u64 = 60_000_000_000;

impl World {
    /// Whether the record may change reserved money without changing the queue otherwise.
    pub(crate) fn moves_money(&self, record: &Record) -> bool {
        match &record.body {
            Body::RateCardPut(_) | Body::RateCardDeleted(_) => {
                !self.ceilings.is_empty() || !self.prepaid.accounts.is_empty()
            }
            // Usage that is superseded by less gives money back.
            Body::UsageRecorded(_) => !self.ceilings.is_empty() || !self.prepaid.accounts.is_empty(),
            leasehold_model::ledger_kinds!() => !self.prepaid.accounts.is_empty(),
            Body::Renewed(renewed) => {
                let mut leases = renewed.renewals.iter().filter_map(|renewal| self.lease(renewal.lease));
                leases.any(|lease| {
                    if !self.accounts_of(lease.payer).is_empty() {
                        return true;
                    }
                    let scopes = [(lease.payer, None), (lease.payer, lease.app_instance)];
                    scopes.iter().any(|scope| self.ceilings.contains_key(scope))
                })
            }
            #[rustfmt::skip]
            Body::ClassPut(_) | Body::TenantPut(_) | Body::Granted(_) | Body::Denied(_) | Body::Released(_)
            | Body::Expired(_) | Body::Revoked(_) | Body::TeardownStarted(_) | Body::Fenced(_) | Body::Genesis(_)
            | Body::Started(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_)
            | Body::SettingsChanged(_) | Body::PoolPut(_) | Body::PoolDeleted(_) | Body::TenantDeleted(_)
            | Body::ProjectPut(_) | Body::ProjectDeleted(_) | Body::UserPut(_) | Body::UserDeleted(_)
            | Body::QuotaPut(_) | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | Body::ChargePolicyPut(_)
            | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
            | Body::NodePut(_) | Body::NodeDeleted(_) | Body::NodeDrained(_) | Body::NodeResumed(_)
            | Body::NodeLost(_) | Body::NodeReturned(_) | Body::NodeCondition(_) | Body::AgentRegistered(_)
            | Body::AgentDetached(_) | Body::TornDown(_) | Body::Unfenced(_) | Body::ActivityReported(_)
            | Body::Preempted(_) | Body::PreemptionDecided(_) | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenIssued(_) | Body::NodeEmpty(_)
            | Body::TokenRevoked(_) | Body::AllocationSubmitted(_) | Body::AllocationDenied(_)
            | Body::AllocationPlaced(_) | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_)
            | Body::AllocationCheckpointed(_) | Body::AllocationSuspended(_) | Body::AllocationRequeued(_)
            | Body::AllocationCompleted(_) | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_)
            | Body::NodesClaimed(_) | Body::NodesReleased(_) | Body::NodeWiped(_) | Body::NodeQuarantined(_)
            | Body::QuarantineCleared(_) | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => false,
        }
    }

    /// The cards that were known after a record.
    pub(crate) fn cards_known(&self, sequence: u64) -> Vec<&RateCardPut> {
        let mut cards: BTreeMap<u32, &RateCardPut> = BTreeMap::new();
        for change in self.card_changes.iter().filter(|change| change.sequence <= sequence) {
            match &change.put {
                Some(put) => cards.insert(change.card, put),
                None => cards.remove(&change.card),
            };
        }
        cards.into_values().collect()
    }

    /// Priced interval by interval; the sum is rounded up to a billionth once.
    pub(crate) fn cost(
        &self,
        what: Held,
        from: Instant,
        to: Instant,
        currency: Currency,
        cards: &[&RateCardPut],
    ) -> Amount {
        let up = self.billionths_up(what.class, self.exact_cost(what, (from, to), currency, cards));
        if up > U256::from(LEASE_COST_MAX.0) { LEASE_COST_MAX } else { Amount(up.as_u128()) }
    }

    /// An exact cost of capacity of a class, rounded up to a billionth.
    pub(crate) fn billionths_up(&self, class: ClassNo, exact: U256) -> U256 {
        let per = U256::from(self.classes[&class].quanta_per_unit) * U256::from(DAY) * U256::new(10).pow(27);
        (exact + per - U256::ONE) / per
    }

    /// Priced interval by interval, not rounded: in parts that depend on the class only.
    pub(crate) fn exact_cost(
        &self,
        what: Held,
        (from, to): (Instant, Instant),
        currency: Currency,
        cards: &[&RateCardPut],
    ) -> U256 {
        if to <= from {
            return U256::ZERO;
        }
        let mut borders: Vec<Instant> =
            cards.iter().map(|card| card.from).filter(|at| *at > from && *at < to).collect();
        borders.extend([from, to]);
        borders.sort();
        let spec = &self.classes[&what.class];
        let mut sum = U256::ZERO;
        for pair in borders.windows(2) {
            let (of, price) = price_by(cards, spec, (what.class, what.pool, what.priority), pair[0]);
            if of == currency {
                sum += price * U256::from(what.quanta) * U256::from(pair[1].since(pair[0]).0);
            }
        }
        sum
    }

    /// Whether a scope contains a lease.
    fn is_over(scope: Scope, lease: &Lease) -> bool {
        scope.0 == lease.payer && (scope.1.is_none() || scope.1 == lease.app_instance)
    }

    /// The cost of ended leases and claims, and of reported usage.
    pub(crate) fn spent_by_ended(&self, scope: Scope, ceiling: &Ceiling) -> Amount {
        let claims = self.claims_under(scope, ceiling, Instant(0)).into_values().filter(|claim| claim.has_ended);
        claims.fold(self.spent_for_good(scope, ceiling), |sum, claim| sum.saturating_add(claim.spent))
    }

    /// The cost of ended leases and of reported usage, and what claims have cost so far.
    fn spent(&self, scope: Scope, ceiling: &Ceiling, now: Instant) -> Amount {
        let claims = self.claims_under(scope, ceiling, now).into_values();
        claims.fold(self.spent_for_good(scope, ceiling), |sum, claim| sum.saturating_add(claim.spent))
    }

    fn spent_for_good(&self, scope: Scope, ceiling: &Ceiling) -> Amount {
        self.spent_by_leases(scope, ceiling).saturating_add(self.spent_by_usage(scope, ceiling))
    }

    fn spent_by_leases(&self, scope: Scope, ceiling: &Ceiling) -> Amount {
        let cards = self.cards_known(u64::MAX);
        let ended = self.leases.iter().filter(|lease| Self::is_over(scope, lease));
        let cost = |lease: &Lease| {
            let from = lease.granted_at.max(ceiling.since);
            let to = match self.left_to_claims_since(scope, lease.sensitive) {
                None => lease.ended_at?,
                Some(since) => lease.ended_at.unwrap_or(since).min(since),
            };
            Some(self.cost(held(lease), from, to, ceiling.put.currency, &cards))
        };
        ended.filter_map(cost).sum()
    }

    /// The amount that is reserved for a held lease.
    fn reserved_for(&self, ceiling: &Ceiling, lease: &Lease) -> Amount {
        let cards = self.cards_known(lease.reckoned_by.max(ceiling.put_by));
        let from = lease.granted_at.max(ceiling.since);
        self.cost(held(lease), from, lease.expires_at, ceiling.put.currency, &cards)
    }

    pub(crate) fn reserved(&self, scope: Scope, ceiling: &Ceiling) -> BTreeMap<LeaseNo, Amount> {
        let live = self.leases.iter().filter(|lease| lease.phase.is_held() && Self::is_over(scope, lease));
        let live = live.filter(|lease| self.left_to_claims_since(scope, lease.sensitive).is_none());
        live.map(|lease| (lease.number, self.reserved_for(ceiling, lease))).collect()
    }

    /// Everything that is reserved, for leases and for claims.
    fn reserved_in_all(&self, scope: Scope, ceiling: &Ceiling, now: Instant) -> Amount {
        let leases = self.reserved(scope, ceiling).into_values().sum::<Amount>();
        let claims = self.claims_under(scope, ceiling, now).into_values();
        claims.fold(leases, |sum, claim| sum.saturating_add(claim.reserved))
    }

    /// Hard ceilings that apply to work of a project and an app instance, the project's first. Those of projects do not
    /// apply to sensitive work, because they count the claims of its nodes.
    pub(crate) fn hard(
        &self,
        project: ProjectNo,
        app: Option<AppInstanceNo>,
        sensitive: bool,
    ) -> Vec<(Scope, &Ceiling)> {
        let scopes = [Some((project, None)), app.map(|app| (project, Some(app)))];
        let known = scopes.into_iter().flatten().filter_map(|scope| Some((scope, self.ceilings.get(&scope)?)));
        known
            .filter(|(_, ceiling)| ceiling.put.mode == CeilingMode::Hard)
            .filter(|(scope, _)| self.left_to_claims_since(*scope, sensitive).is_none())
            .collect()
    }

    pub(crate) fn judge(&self, scope: Scope, ceiling: &Ceiling, requested: Amount, now: Instant) -> Option<DenyCause> {
        let (spent, reserved) = (self.spent(scope, ceiling, now), self.reserved_in_all(scope, ceiling, now));
        let amount = ceiling.put.amount;
        let passes = requested == Amount::ZERO || spent.0 + reserved.0 + requested.0 <= amount.0;
        (!passes).then_some(DenyCause::Ceiling { app_instance: scope.1, spent, reserved, requested, amount })
    }

    /// The most expensive of the pools that may be used.
    fn dearest(&self, pool: Option<PoolNo>, cost: impl Fn(PoolNo) -> Option<Amount>) -> Amount {
        let has_nodes = |pool: &PoolNo| self.nodes.values().any(|node| node.put.pool == *pool);
        let pools = self.pools.keys().filter(|own| pool.is_none_or(|pool| pool == **own) && has_nodes(own));
        pools.filter_map(|pool| cost(*pool)).max().unwrap_or_default()
    }

    /// The ceiling that denies a lease request, if any: its whole TTL must be affordable now.
    pub(crate) fn request_cost_refusal(&self, facts: &RequestFacts, now: Instant) -> Option<DenyCause> {
        self.hard(facts.project, facts.app_instance, facts.sensitive).into_iter().find_map(|(scope, ceiling)| {
            let requested = self.request_cost(facts, ceiling.put.currency, now);
            self.judge(scope, ceiling, requested, now)
        })
    }

    /// The cost of a request on the most expensive pool.
    pub(crate) fn request_cost(&self, facts: &RequestFacts, currency: Currency, now: Instant) -> Amount {
        let named = facts.pool.or_else(|| Some(self.nodes.get(&facts.node?)?.put.pool));
        let cards = self.cards_known(u64::MAX);
        let priority = self.priced_as(facts.priority, facts.sensitive);
        self.dearest(named, |pool| {
            let one = |(class, quanta): &(ClassNo, u64)| {
                let what = Held { class: *class, quanta: *quanta, pool, priority };
                self.cost(what, now, now.saturating_add(facts.ttl), currency, &cards)
            };
            let allows = facts.ttl <= self.grant_ttl_max(pool, facts.priority);
            allows.then(|| facts.asks.iter().map(one).sum())
        })
    }

    /// The ceiling that denies a gang, if any, at the most expensive instant of the minute.
    pub(crate) fn gang_cost_refusal(&self, demand: &Demand, now: Instant) -> Option<DenyCause> {
        let spec = demand.spec.as_ref()?;
        self.hard(demand.payer, spec.app_instance, spec.sensitive).into_iter().find_map(|(scope, ceiling)| {
            let requested = self.gang_cost(spec, ceiling.put.currency, now);
            self.judge(scope, ceiling, requested, now)
        })
    }

    pub(crate) fn gang_cost(&self, spec: &AllocationSpec, currency: Currency, now: Instant) -> Amount {
        let cards = self.cards_known(u64::MAX);
        let priority = self.priced_as(spec.priority, spec.sensitive);
        let one = self.dearest(spec.pool, |pool| {
            let ttl = self.gang_ttl(pool, spec)?;
            let ask = |(class, quanta): &(ClassNo, leasehold_model::Quanta)| {
                let what = Held { class: *class, quanta: quanta.0, pool, priority };
                let at = |at: Instant| self.cost(what, at, at.saturating_add(ttl), currency, &cards);
                turning_points(&cards, ttl, now).into_iter().map(at).max().unwrap_or_default()
            };
            Some(spec.asks.iter().map(ask).sum())
        });
        Amount((one.0 * u128::from(spec.replicas)).min(Amount::MAX.0))
    }

    /// A renewal must stay below every hard ceiling, unless it needs no more than is reserved already.
    pub(crate) fn check_renewal_cost(&self, record: &Record, lease: &Lease, until: Instant) -> Checked {
        if until <= lease.expires_at {
            return Ok(());
        }
        let cards = self.cards_known(record.sequence);
        for (scope, ceiling) in self.hard(lease.payer, lease.app_instance, lease.sensitive) {
            let from = lease.granted_at.max(ceiling.since);
            let cost = self.cost(held(lease), from, until, ceiling.put.currency, &cards);
            let requested = cost.saturating_sub(self.reserved_for(ceiling, lease));
            let refusal = self.judge(scope, ceiling, requested, record.stamp);
            demand!(refusal.is_none(), "ceiling", "{} to {until}: {refusal:?}", lease.number);
        }
        Ok(())
    }

    /// Whether a renewal may have been refused for its cost: some ceiling has these figures and would be exceeded.
    pub(crate) fn stands_against(
        &self,
        lease: LeaseNo,
        requested: Amount,
        used: Amount,
        amount: Amount,
        now: Instant,
    ) -> bool {
        let Some(lease) = self.lease(lease).filter(|lease| lease.phase.is_held()) else { return false };
        self.hard(lease.payer, lease.app_instance, lease.sensitive).into_iter().any(|(scope, ceiling)| {
            ceiling.put.amount == amount
                && self.used_in_all(scope, ceiling, now) == used
                && requested > Amount::ZERO
                && used.saturating_add(requested) > amount
        })
    }

    /// Everything that is spent or reserved.
    pub(crate) fn used_in_all(&self, scope: Scope, ceiling: &Ceiling, now: Instant) -> Amount {
        self.spent(scope, ceiling, now).saturating_add(self.reserved_in_all(scope, ceiling, now))
    }

    fn check_ceiling(&self, put: &CeilingPut) -> Result<TenantNo, &'static str> {
        let tenant = self.projects.get(&put.project).map(|project| project.tenant).ok_or("unknown_project")?;
        if put.app_instance.is_some_and(|app| self.is_foreign(tenant, app)) {
            return Err("unknown_app_instance");
        }
        if put.amount == Amount::ZERO || put.amount > CEILING_AMOUNT_MAX {
            return Err("bad_ceiling");
        }
        match self.ceilings.get(&(put.project, put.app_instance)) {
            Some(old) if old.put.currency != put.currency => return Err("currency_fixed"),
            Some(_) => {}
            None => {
                let own = |(project, _): &&Scope| self.projects.get(project).is_some_and(|p| p.tenant == tenant);
                if self.ceilings.keys().filter(own).count() >= CEILINGS_PER_TENANT_MAX {
                    return Err("too_many_ceilings");
                }
            }
        }
        Ok(tenant)
    }

    pub(crate) fn ceiling_put(&mut self, record: &Record, put: &CeilingPut) -> Checked {
        let fault = self.check_ceiling(put);
        demand!(fault.is_ok(), "ceiling", "must be refused: {fault:?}");
        let fresh = Ceiling { put: put.clone(), since: record.stamp, put_by: record.sequence };
        self.ceilings.entry((put.project, put.app_instance)).or_insert(fresh).put = put.clone();
        Ok(())
    }

    pub(crate) fn ceiling_deleted(&mut self, gone: &CeilingDeleted) -> Checked {
        let known = self.ceilings.remove(&(gone.project, gone.app_instance));
        found!(known, "ceiling", "{} has none for {:?}", gone.project, gone.app_instance);
        Ok(())
    }

    /// Checks the figures of a denial, and that the request could not be paid even if all reserved money were
    /// returned.
    pub(crate) fn check_denied_for_cost(&self, record: &Record, cause: DenyCause, spec: &AllocationSpec) -> Checked {
        let DenyCause::Ceiling { app_instance, spent, requested, amount, .. } = cause else {
            unreachable!("asked for")
        };
        let project = found!(record.identity.project, "denial", "a denial without a project");
        let payer = spec.source_project.unwrap_or(project);
        let hard = self.hard(payer, app_instance, spec.sensitive);
        let known = hard.into_iter().find(|(scope, _)| scope.1 == app_instance);
        let (scope, ceiling) = found!(known, "denial", "{payer} has no hard ceiling for {app_instance:?}");
        let judged = self.judge(scope, ceiling, requested, record.stamp);
        demand!(judged == Some(cause), "denial", "{cause:?} does not hold");
        demand!(
            spent.saturating_add(requested) > amount,
            "denial",
            "it would fit once reserved money is returned: {cause:?}"
        );
        Ok(())
    }

    pub(crate) fn foretell_ceiling(&self, tenant: Option<TenantNo>, put: &CeilingPut) -> Told {
        self.own_project(tenant, put.project)?;
        let of = match self.check_ceiling(put) {
            // It may have another fault as well.
            Err(fault @ "unknown_app_instance") => {
                let other = self.check_ceiling(&CeilingPut { app_instance: None, ..put.clone() }).err();
                return unless([Some(fault), other].into_iter().flatten().collect(), || unreachable!("it has a fault"));
            }
            of => of?,
        };
        sealed(Some(of), put.clone())
    }

    pub(crate) fn foretell_ceiling_deleted(&self, tenant: Option<TenantNo>, gone: &CeilingDeleted) -> Told {
        let of = self.own_project(tenant, gone.project)?;
        self.ceilings.get(&(gone.project, gone.app_instance)).ok_or("unknown_ceiling")?;
        sealed(Some(of), gone.clone())
    }

    fn own_project(&self, tenant: Option<TenantNo>, project: ProjectNo) -> Result<TenantNo, &'static str> {
        let of = self.projects.get(&project).map(|project| project.tenant);
        of.filter(|of| tenant.is_none_or(|tenant| tenant == *of)).ok_or("unknown_project")
    }
}

/// The possible starts, within the minute of `now`, at which a window of this length costs most.
fn turning_points(cards: &[&RateCardPut], ttl: Span, now: Instant) -> Vec<Instant> {
    let begin = now.0 / MINUTE * MINUTE;
    let mut points = vec![begin, begin + MINUTE];
    for card in cards {
        points.extend(
            [card.from.0, card.from.0.saturating_sub(ttl.0)]
                .into_iter()
                .filter(|at| (begin..=begin + MINUTE).contains(at)),
        );
    }
    points.into_iter().map(Instant).collect()
}
