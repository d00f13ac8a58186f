//! Explanations as JSON. To a tenant other tenants are "another tenant", and nodes have no names.

use crate::access::Caller;
use crate::app::App;
use crate::problem::{denial, quota_words};
use leasehold_api as api;
use leasehold_api::When;
use leasehold_engine::{
    Candidate, CeilingCheck, Explanation, Lease, Place, Promise, QuotaCheck, QuotaSaid, Sacrifice, State,
};
use leasehold_model::{
    Amount, CeilingMode, DenyCause, Instant, LeaseNo, LimitKind, NodeNo, PoolNo, Priority, TenantNo,
};

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

pub(crate) struct Teller<'a> {
    pub(crate) app: &'a App,
    pub(crate) state: &'a State,
    pub(crate) caller: &'a Caller,
}

impl Teller<'_> {
    fn node(&self, node: NodeNo) -> Option<String> {
        let seen = self.caller.sees_node(node);
        self.state.node(node).filter(|_| seen).map(|node| node.name.to_string())
    }

    fn pool(&self, pool: PoolNo) -> String {
        self.state.pool(pool).map_or_else(|| pool.to_string(), |pool| pool.name.to_string())
    }

    fn tenant(&self, tenant: TenantNo) -> String {
        match self.state.tenant(tenant) {
            _ if !self.caller.sees_tenant(tenant) => "another tenant".to_owned(),
            Some(tenant) => tenant.name.to_string(),
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
        api::QuotaChecked {
            quota_id: check.quota.0,
            what: quota_words(self.state, check.quota),
            limit_type: check.limit.word().to_owned(),
            used: check.used,
            requested: check.requested,
            limit,
            said: said.to_owned(),
        }
    }

    fn ceiling(check: &CeilingCheck) -> api::CeilingChecked {
        let money = |amount: Amount| api::Money(amount.to_string());
        let said = match (check.is_passed(), check.mode) {
            (false, _) => "within",
            (true, CeilingMode::Soft) => "over_soft",
            (true, CeilingMode::Hard) => "refused",
        };
        api::CeilingChecked {
            app_instance: check.scope.app_instance.map(|app| app.0),
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
        }
    }

    fn victim(&self, lease: &Lease) -> api::Victim {
        let seen = self.caller.sees_lease(lease.tenant, Some(lease.project), lease.node);
        api::Victim {
            lease_id: seen.then(|| self.app.lease_id(lease.number)),
            tenant: self.tenant(lease.tenant),
            priority: lease.priority.to_string(),
            class: self.state.class(lease.class).map_or_else(String::new, |class| class.name.to_string()),
            quanta: lease.quanta.0,
            expires_at: When(lease.expires_at),
        }
    }

    pub(crate) fn victims(&self, leases: &[LeaseNo]) -> Vec<api::Victim> {
        leases.iter().filter_map(|lease| self.state.lease(*lease)).map(|lease| self.victim(lease)).collect()
    }

    fn eviction(&self, one: &Sacrifice) -> api::Eviction {
        api::Eviction {
            node: self.node(one.node),
            highest_priority: one.highest.to_string(),
            gangs: one.gangs as u64,
            quanta: one.quanta,
            victims: self.victims(&one.victims),
        }
    }

    /// What stands in the way, in words.
    pub(crate) fn cause(&self, tenant: Option<TenantNo>, cause: &DenyCause) -> String {
        denial(self.state, tenant, cause).detail
    }

    fn queue(place: &Place) -> api::QueuePlace {
        api::QueuePlace {
            position: place.waits.position,
            budget_factor: fraction(u64::from(place.standing.factor)),
            fair_share_deficit: decimal(i128::from(place.standing.deficit), 1 << 20),
            starts_by: place.waits.promise.as_ref().map(|promise| When(promise.start)),
        }
    }

    /// The explanation, under an outcome and a sentence.
    pub(crate) fn tell(&self, at: Instant, outcome: &str, why: String, explained: &Explanation) -> api::Explanation {
        let unfit = explained.placement.unfit.iter().map(|(unfit, count)| (unfit.word().to_owned(), *count));
        api::Explanation {
            as_of: When(at),
            sequence: None,
            outcome: outcome.to_owned(),
            why,
            replayed: None,
            quotas: explained.quotas.iter().map(|check| self.quota(check)).collect(),
            ceilings: explained.ceilings.iter().map(Self::ceiling).collect(),
            candidates: explained.placement.best.iter().map(|one| self.candidate(one)).collect(),
            candidate_count: explained.placement.candidates,
            unfit: unfit.collect(),
            deciding: explained.deciding.map(|term| term.word().to_owned()),
            evictions: explained.evictions.iter().map(|one| self.eviction(one)).collect(),
            queue: explained.queue.as_ref().map(Self::queue),
        }
    }

    pub(crate) fn node_explained(&self, number: NodeNo, at: Instant) -> Option<api::NodeExplanation> {
        let node = self.state.node(number)?;
        let why = match (node.lost, node.drained) {
            (true, _) => "It is lost: its agent fell silent. It takes work again when it returns.",
            (false, true) => "It is drained: an operator took it out of service. Resume it to give it work.",
            (false, false) if node.custody.claim().is_some() => {
                "It is claimed: one user's sensitive work runs there, and nothing else. What lies idle is the claimer's to pay."
            }
            (false, false) if node.custody.word() == "wiping" => {
                "It was released and is being wiped: it takes work again when its agent, or an operator, says it is clean."
            }
            (false, false) if node.custody.word() == "quarantined" => {
                "It is quarantined: its wipe failed or took too long. It takes work again when an operator clears it."
            }
            (false, false) => {
                "It takes work; what it is worth to a request depends on what is free, its place and its heat."
            }
        };
        let classes = node.classes.iter().map(|class| {
            let split = node.split(class.class);
            let name = self.state.class(class.class).map_or_else(String::new, |spec| spec.name.to_string());
            api::NodeClassExplained {
                class: name,
                capacity: class.capacity,
                held: split.held,
                tearing_down: split.tearing_down,
                reserved: split.reserved,
                fenced: split.fenced,
                offline: split.offline,
                idle: split.idle,
                evictable: class.evictable_below(Priority::Guaranteed),
            }
        });
        let waiting = || self.state.allocations_after(None).filter(|found| found.state.is_queued());
        let kept = waiting().filter(|found| found.reserved_on().any(|on| on == number));
        let promised = self.state.promises(at).into_iter().filter(|(_, promise)| promise.nodes.contains(&number));
        let promised = promised.map(|(allocation, Promise { start, .. })| api::NodePromise {
            allocation_id: allocation.0,
            starts_by: When(start),
        });
        Some(api::NodeExplanation {
            as_of: When(at),
            node: node.name.to_string(),
            pool: self.pool(node.pool),
            available: node.is_available(),
            why: why.to_owned(),
            heat: decimal(i128::from(node.heat.at(at, self.state.settings().heat_half_life)), 1000),
            classes: classes.collect(),
            leases: self.state.leases_on(number).len() as u64,
            reserved_for: kept.map(|found| found.number.0).collect(),
            promised_to: promised.collect(),
        })
    }
}
