//! What prepaid credit denies, refuses and downgrades (SEMANTICS 12).

use crate::ceiling::{Held, held};
use crate::lease::Lease;
use crate::oracle::Oracle;
use crate::prepaid::AccountKey;
use crate::quota::Demand;
use crate::request::RequestFacts;
use crate::violation::{Checked, demand};
use crate::world::World;
use leasehold_model::rate::Currency;
use leasehold_model::{
    AllocationSpec, Amount, ClassNo, DenyCause, Funds, Instant, LeaseNo, NodeNo, PrepaidAction, Priority, ProjectNo,
    Record,
};

impl World {
    /// What happens on an account in its present state.
    fn prepaid_action(&self, key: AccountKey) -> PrepaidAction {
        let account = &self.prepaid.accounts[&key];
        account.policy.action(account.state)
    }

    /// Whether everything must be covered.
    fn must_cover(&self, key: AccountKey) -> bool {
        matches!(self.prepaid.accounts[&key].policy.depleted, PrepaidAction::Block | PrepaidAction::Drain)
    }

    fn is_blocked(&self, key: AccountKey) -> bool {
        matches!(self.prepaid_action(key), PrepaidAction::Block | PrepaidAction::Drain)
    }

    /// Whether credit does not pay for something of that cost.
    fn is_beyond_credit(&self, key: AccountKey, requested: Amount, now: Instant) -> bool {
        let short = || self.must_cover(key) && Funds::from(requested) > self.available(key, now);
        requested > Amount::ZERO && (self.is_blocked(key) || short())
    }

    /// The account that denies work of a project, if any, by its cost in each currency. Work on claimed nodes is paid
    /// for with the nodes.
    fn denied_by_prepaid(
        &self,
        project: ProjectNo,
        sensitive: bool,
        cost: impl Fn(Currency) -> Amount,
        now: Instant,
    ) -> Option<DenyCause> {
        self.accounts_of(project).into_iter().filter(|_| !sensitive).find_map(|key| {
            let requested = cost(key.currency);
            let state = self.prepaid.accounts[&key].state;
            let cause = || DenyCause::Prepaid {
                of_tenant: key.project.is_none(),
                state,
                available: self.available(key, now),
                requested,
            };
            self.is_beyond_credit(key, requested, now).then(cause)
        })
    }

    pub(crate) fn request_prepaid_refusal(&self, facts: &RequestFacts, now: Instant) -> Option<DenyCause> {
        let cost = |currency| self.request_cost(facts, currency, now);
        self.denied_by_prepaid(facts.project, facts.sensitive, cost, now)
    }

    pub(crate) fn gang_prepaid_refusal(&self, demand: &Demand, now: Instant) -> Option<DenyCause> {
        let spec = demand.spec.as_ref()?;
        let cost = |currency| self.gang_cost(spec, currency, now);
        self.denied_by_prepaid(demand.payer, spec.sensitive, cost, now)
    }

    /// Whether new work for which a project pays gets the lowest priority.
    pub(crate) fn is_downgraded(&self, project: ProjectNo) -> bool {
        self.accounts_of(project).into_iter().any(|key| self.prepaid_action(key) == PrepaidAction::Downgrade)
    }

    /// The same at the lowest priority, with a TTL that it allows.
    pub(crate) fn downgraded_spec(&self, spec: &AllocationSpec) -> AllocationSpec {
        let mut spec = AllocationSpec { priority: Priority::Scavenger, ..spec.clone() };
        spec.ttl = spec.ttl.map(|ttl| ttl.min(self.longest(&spec)));
        spec
    }

    /// A request as it is decided.
    pub(crate) fn downgraded(&self, facts: &RequestFacts) -> RequestFacts {
        if !self.is_downgraded(facts.project) || facts.priority == Priority::Scavenger {
            return facts.clone();
        }
        let facts = RequestFacts { priority: Priority::Scavenger, ..facts.clone() };
        RequestFacts { ttl: facts.ttl.min(self.longest_ttl(&facts)), ..facts }
    }

    /// A renewal must be covered.
    pub(crate) fn check_renewal_credit(&self, record: &Record, lease: &Lease, until: Instant) -> Checked {
        let refusal = self.renewal_beyond_credit(lease, until, record.stamp);
        demand!(refusal.is_none(), "prepaid", "{} to {until}: {refusal:?}", lease.number);
        Ok(())
    }

    /// What a renewal costs that credit does not cover: what it adds, and what is available.
    fn renewal_beyond_credit(&self, lease: &Lease, until: Instant, now: Instant) -> Option<(Amount, Funds, Currency)> {
        if lease.sensitive {
            return None;
        }
        let cards = self.cards_known(u64::MAX);
        self.accounts_of(lease.payer).into_iter().filter(|key| self.must_cover(*key)).find_map(|key| {
            let requested = self.cost(held(lease), lease.expires_at, until, key.currency, &cards);
            let available = self.available(key, now);
            let short = requested > Amount::ZERO && Funds::from(requested) > available;
            short.then_some((requested, available, key.currency))
        })
    }

    /// The cost of nodes at guaranteed priority, rounded up for each class.
    fn nodes_cost(&self, nodes: &[NodeNo], (now, until): (Instant, Instant), currency: Currency) -> Amount {
        let cards = self.cards_known(u64::MAX);
        let put = nodes.iter().map(|node| &self.nodes[node].put);
        let classes = put.flat_map(|put| put.capacity.iter().map(|(class, quanta)| (put.pool, *class, quanta.0)));
        let one = |(pool, class, quanta): (_, ClassNo, u64)| {
            let what = Held { class, quanta, pool, priority: Priority::Guaranteed };
            self.cost(what, now, until, currency, &cards)
        };
        classes.map(one).sum()
    }

    /// The first account that does not cover a claim, with its cost and what is available.
    fn claim_beyond_credit(
        &self,
        project: ProjectNo,
        nodes: &[NodeNo],
        until: Instant,
        now: Instant,
    ) -> Option<(Amount, Funds, Currency)> {
        self.accounts_of(project).into_iter().find_map(|key| {
            let requested = self.nodes_cost(nodes, (now, until), key.currency);
            let available = self.available(key, now);
            let short = requested > Amount::ZERO && Funds::from(requested) > available;
            (self.must_cover(key) && short).then_some((requested, available, key.currency))
        })
    }

    /// Why prepaid credit refuses a claim, if so.
    pub(crate) fn fault_of_claim_credit(
        &self,
        project: ProjectNo,
        nodes: &[NodeNo],
        until: Option<Instant>,
        now: Instant,
    ) -> Option<&'static str> {
        let Some(until) = until else {
            let covers = self.accounts_of(project).into_iter().any(|key| self.must_cover(key));
            return covers.then_some("claim_needs_end");
        };
        self.claim_beyond_credit(project, nodes, until, now).map(|_| "claim_not_covered")
    }
}

/// What something costs, what is available, and in which currency.
pub type Shortfall = (Amount, Funds, Currency);

impl Oracle {
    /// The account that refuses a renewal of a lease in a currency, with what is available on it. The new deadline is
    /// not known.
    pub fn credit_against(&self, lease: LeaseNo, currency: Currency, now: Instant) -> Option<Funds> {
        let world = &self.world;
        let lease = world.lease(lease).filter(|lease| lease.phase.is_held() && !lease.sensitive)?;
        let key = world.account_of(lease.payer, currency).filter(|key| world.must_cover(*key))?;
        Some(world.available(key, now))
    }

    /// What refuses a claim: its cost, and what is available.
    pub fn credit_against_claim(
        &self,
        project: ProjectNo,
        (nodes, until): (&[NodeNo], Instant),
        now: Instant,
    ) -> Option<Shortfall> {
        self.world.claim_beyond_credit(project, nodes, until, now)
    }
}
