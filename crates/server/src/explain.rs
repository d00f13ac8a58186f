//! Explanations as JSON. Tenants see other tenants as "another tenant", and only the names of nodes on which they have
//! leases.

pub(crate) mod decision;
pub(crate) mod ending;
mod eviction;
mod node;

use crate::access::Caller;
use crate::app::App;
use crate::problem::{Amounts, denial, quota_words};
use crate::show::{self, whole};
use leasehold_api as api;
use leasehold_api::{Ttl, When};
use leasehold_engine::{
    Candidate, CeilingCheck, Explanation, Lease, PossibleEviction, PrepaidCheck, PrepaidScope, QueueStanding,
    QuotaCheck, QuotaSaid, ReplicaPlace, State,
};
use leasehold_model::{
    Amount, CeilingMode, DenyCause, Instant, LeaseNo, LimitKind, NodeNo, PoolNo, Profile, ResourceKind, TenantNo,
    quantity,
};
use std::collections::BTreeMap;

/// Candidates and evictions that are listed.
pub(crate) const TOP: usize = 8;

/// A number of 2^-20ths as a decimal.
fn fraction(value: u64) -> String {
    decimal(i128::from(value), 1 << 20)
}

/// A quotient with four decimals, rounded down.
fn decimal(value: i128, of: i128) -> String {
    let (sign, value) = if value < 0 { ("-", -value) } else { ("", value) };
    let scaled = value * 10_000 / of;
    format!("{sign}{}.{:04}", scaled / 10_000, scaled % 10_000)
}

pub(crate) struct Explainer<'a> {
    pub(crate) app: &'a App,
    pub(crate) state: &'a State,
    pub(crate) caller: &'a Caller,
    /// Nodes of the explained object; the caller may know them because it may see the object.
    pub(crate) own: &'a [NodeNo],
}

/// Whether the caller may see the node itself, or a lease on it.
pub(crate) fn may_name_node(state: &State, caller: &Caller, node: NodeNo) -> bool {
    let sees_lease = |lease: &Lease| caller.sees_lease(lease.tenant, Some(lease.project), lease.node);
    caller.sees_node(node) || state.leases_on(node).into_iter().any(sees_lease)
}

impl Explainer<'_> {
    fn node(&self, node: NodeNo) -> Option<String> {
        let seen = self.own.contains(&node) || may_name_node(self.state, self.caller, node);
        self.state.node(node).filter(|_| seen).map(|node| node.name.to_string())
    }

    fn pool(&self, pool: PoolNo) -> String {
        self.state.pool(pool).map_or_else(|| pool.to_string(), |pool| pool.name.to_string())
    }

    fn tenant(&self, tenant: TenantNo) -> String {
        match self.state.tenant(tenant) {
            _ if !self.caller.sees_tenant(tenant) => "another tenant".to_owned(),
            Some(tenant) => tenant.settings.name.to_string(),
            None => tenant.to_string(),
        }
    }

    fn quota(&self, check: &QuotaCheck) -> api::QuotaChecked {
        let said = match check.said {
            QuotaSaid::Within => "within",
            QuotaSaid::OverSoft => "over_soft",
            QuotaSaid::Until(_) => "until",
            QuotaSaid::Refused(_) => "refused",
            QuotaSaid::ByNode => "by_node",
        };
        let limit = match check.limit {
            LimitKind::Burst { burst_limit, .. } => burst_limit,
            kind => kind.limit(),
        };
        let amounts = Amounts::of_fractions(self.state, check.quota, check.used, check.requested, limit);
        let unit = amounts.is_capacity.then(|| amounts.unit.to_owned());
        let [used_exact, requested_exact, limit_exact] = amounts.amounts;
        api::QuotaChecked {
            quota_id: check.quota.0,
            what: quota_words(self.state, check.quota),
            limit_type: check.limit.word().to_owned(),
            used: whole(check.used),
            requested: whole(check.requested),
            limit,
            unit,
            used_exact,
            requested_exact,
            limit_exact,
            said: said.to_owned(),
        }
    }

    fn ceiling(&self, check: &CeilingCheck) -> api::CeilingChecked {
        let money = |amount: Amount| api::Money(amount.to_string());
        let said = match (check.is_passed(), check.mode) {
            (false, _) => "within",
            (true, CeilingMode::Soft) => "over_soft",
            (true, CeilingMode::Hard) => "refused",
        };
        api::CeilingChecked {
            app_instance: check.scope.app_instance.map(|app| crate::show_apps::app_name(self.state, app)),
            mode: check.mode.to_string(),
            currency: check.currency.to_string(),
            spent: money(check.spent),
            reserved: money(check.reserved),
            requested: money(check.requested),
            amount: money(check.amount),
            said: said.to_owned(),
        }
    }

    fn candidate(&self, one: &Candidate) -> api::CandidateScore {
        api::CandidateScore {
            node: self.node(one.node),
            pool: self.pool(one.pool),
            score: fraction(one.score),
            pressure: fraction(one.pressure),
            fit: fraction(one.fit),
            locality: fraction(one.locality),
            fragmentation: fraction(one.fragmentation),
            heat: decimal(i128::from(one.heat), 1000),
            weights: one.weighing.word().to_owned(),
            weighed: show::weights(one.weighing.weights()),
        }
    }

    fn replica(&self, (replica, one): (u32, &ReplicaPlace)) -> api::ReplicaScore {
        api::ReplicaScore {
            replica,
            node: self.node(one.node),
            pool: self.pool(one.pool),
            score: fraction(one.score),
            deciding: one.deciding.map(|term| term.word().to_owned()),
        }
    }

    /// The holder as project and user, for those who may see the lease.
    fn holder(&self, lease: &Lease) -> String {
        if !self.caller.sees_lease(lease.tenant, Some(lease.project), lease.node) {
            return self.tenant(lease.tenant);
        }
        let project =
            self.state.project(lease.project).map_or_else(|| lease.project.to_string(), |p| p.name.to_string());
        let user = lease.user.and_then(|user| self.state.user(user)).map(|user| format!(", {}", user.name));
        format!("{}/{project}{}", self.tenant(lease.tenant), user.unwrap_or_default())
    }

    /// A lease that is or would be evicted at `at`.
    fn victim(&self, lease: &Lease, at: Instant) -> api::Victim {
        let seen = self.caller.sees_lease(lease.tenant, Some(lease.project), lease.node);
        let class = self.state.class(lease.class);
        let capacity = class.map(|class| format!("{} {}", quantity::display(lease.quanta, class), class.kind.unit()));
        api::Victim {
            lease_id: seen.then(|| lease.number.to_string()),
            lease_uid: seen.then(|| self.app.lease_uid(lease.number)),
            tenant: self.tenant(lease.tenant),
            holder: self.holder(lease),
            priority: lease.priority.to_string(),
            class: class.map_or_else(String::new, |class| class.name.to_string()),
            quanta: lease.quanta.0,
            capacity: capacity.unwrap_or_default(),
            node: self.node(lease.node),
            expires_at: When(lease.expires_at),
            remaining: Ttl(lease.expires_at.since(at)),
            gone: false,
        }
    }

    fn victims(&self, leases: &[LeaseNo], at: Instant) -> Vec<api::Victim> {
        leases.iter().filter_map(|lease| self.state.lease(*lease)).map(|lease| self.victim(lease, at)).collect()
    }

    fn eviction(&self, one: &PossibleEviction, at: Instant) -> api::Eviction {
        api::Eviction {
            node: self.node(one.node),
            highest_priority: one.highest.to_string(),
            gangs: one.gangs as u64,
            quanta: one.quanta,
            victims: self.victims(&one.victims, at),
        }
    }

    /// Why a request is denied, as a sentence.
    pub(crate) fn cause(&self, tenant: Option<TenantNo>, cause: &DenyCause) -> String {
        denial(self.state, tenant, cause).detail
    }

    fn queue(place: &QueueStanding) -> api::QueuePlace {
        api::QueuePlace {
            position: place.waits.position,
            deprioritised: !place.standing.is_preferred,
            budget_factor: fraction(u64::from(place.standing.factor)),
            fair_share_deficit: decimal(i128::from(place.standing.deficit), 1 << 20),
            starts_by: place.waits.assured_start.as_ref().map(|assured| When(assured.start)),
        }
    }

    /// An explanation without checks.
    pub(crate) fn bare(at: Instant, outcome: &str, why: String) -> api::Explanation {
        api::Explanation {
            as_of: When(at),
            sequence: None,
            part: None,
            outcome: outcome.to_owned(),
            why,
            replayed: None,
            profile: BTreeMap::new(),
            quotas: Vec::new(),
            ceilings: Vec::new(),
            prepaid: Vec::new(),
            replica: None,
            replica_count: None,
            replicas: Vec::new(),
            candidates: Vec::new(),
            candidate_count: 0,
            unfit: BTreeMap::new(),
            deciding: None,
            evictions: Vec::new(),
            decided: None,
            ending: None,
            queue: None,
        }
    }

    /// An explanation with an outcome and a sentence.
    pub(crate) fn explanation(
        &self,
        at: Instant,
        outcome: &str,
        why: String,
        explained: &Explanation,
    ) -> api::Explanation {
        let placement = &explained.placement;
        let unfit = placement.excluded.iter().map(|(unfit, count)| (unfit.word().to_owned(), *count));
        let is_gang = explained.replica_count > 1;
        // Nothing was scored if it was placed on capacity freed by an eviction.
        let is_scored = placement.candidates > 0 || !placement.excluded.is_empty();
        api::Explanation {
            profile: explained.profile.map_or_else(BTreeMap::new, profile),
            quotas: explained.quotas.iter().map(|check| self.quota(check)).collect(),
            ceilings: explained.ceilings.iter().map(|check| self.ceiling(check)).collect(),
            prepaid: explained.prepaid.iter().map(prepaid).collect(),
            replica: (is_gang && is_scored).then_some(explained.replica),
            replica_count: is_gang.then_some(explained.replica_count),
            replicas: (1..).zip(&explained.replicas).map(|one| self.replica(one)).collect(),
            candidates: placement.best.iter().map(|one| self.candidate(one)).collect(),
            candidate_count: placement.candidates,
            unfit: unfit.collect(),
            deciding: explained.deciding.map(|term| term.word().to_owned()),
            evictions: explained.evictions.iter().map(|one| self.eviction(one, at)).collect(),
            queue: explained.queue.as_ref().map(Self::queue),
            ..Self::bare(at, outcome, why)
        }
    }
}

/// The sensitivity to each kind of resource; unused kinds are left out.
fn profile(profile: Profile) -> BTreeMap<String, String> {
    let kinds = ResourceKind::ALL.iter().map(|kind| (kind, profile.of(*kind)));
    let known = kinds.filter(|(_, level)| *level != leasehold_model::Sensitivity::Unused);
    known.map(|(kind, level)| (kind.word().to_owned(), level.word().to_owned())).collect()
}

fn prepaid(check: &PrepaidCheck) -> api::PrepaidChecked {
    api::PrepaidChecked {
        of: match check.scope {
            PrepaidScope::Tenant(_) => "tenant".to_owned(),
            PrepaidScope::Project(_) => "project".to_owned(),
        },
        currency: check.currency.to_string(),
        state: check.state,
        available: api::FundsText(check.available.to_string()),
        requested: api::Money(check.requested.to_string()),
        said: if check.is_refused { "refused".to_owned() } else { "within".to_owned() },
    }
}
