//! The expected answer to a lease request (SEMANTICS 4), by trying everything.

use crate::custody::Claimer;
use crate::placement::{ClassSeen, NodeSeen, Site, score};
use crate::queue::Guard;
use crate::quota::{Demand, Ruling};
use crate::world::{Node, World};
use leasehold_model::limits::{CLASSES_PER_REQUEST_MAX, QUANTA_PER_NODE_MAX};
use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, AttachmentNo, ClassNo, DenyCause, Instant, Name, NodeNo, PoolNo,
    Priority, Profile, ProjectNo, Quanta, QuotaNo, Span, TenantNo, UserNo, WindowNo,
};
use std::cmp::Reverse;

fn has_labels(node: &Node, labels: &[(Name, Name)]) -> bool {
    labels.iter().all(|label| node.put.labels.contains(label))
}

/// The contents of a lease request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub user: Option<UserNo>,
    /// It may run only on nodes that the user has claimed.
    pub sensitive: bool,
    pub pool: Option<PoolNo>,
    pub node: Option<NodeNo>,
    pub asks: Vec<(ClassNo, u64)>,
    pub ttl: Span,
    pub priority: Priority,
    /// Required labels of the node.
    pub labels: Vec<(Name, Name)>,
    pub profile: Option<Profile>,
    pub app_instance: Option<AppInstanceNo>,
    /// Neither can be named by a lease request.
    pub attachment: Option<AttachmentNo>,
    pub source_project: Option<ProjectNo>,
}

/// The expected answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    Granted {
        node: NodeNo,
        /// The device set of each ask, in the order of the request.
        devices: Vec<u64>,
        ttl: Span,
        over_soft: Vec<QuotaNo>,
        capped_by: Option<QuotaNo>,
        /// The maintenance window that shortened the TTL.
        capped_by_window: Option<WindowNo>,
    },
    /// There is no room; it evicts and waits for its victims as an allocation (SEMANTICS 5).
    Submitted(Box<AllocationSpec>, Option<NodeNo>),
    Denied(DenyCause),
    /// Invalid: nothing is recorded. Which of several faults is named is not predicted.
    Refused(&'static str),
}

/// The combined rulings of all quotas on a request on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    over_soft: Vec<QuotaNo>,
    until: Option<(Instant, QuotaNo)>,
    pub(crate) refusal: Option<DenyCause>,
}

impl Terms {
    /// Soft quotas that are exceeded, each once.
    pub(crate) fn over_soft(&self) -> Vec<QuotaNo> {
        let mut over_soft = self.over_soft.clone();
        over_soft.sort();
        over_soft.dedup();
        over_soft
    }

    /// The TTL after bursts, and the quota that shortened it.
    pub(crate) fn ttl(&self, asked: Span, now: Instant) -> (Span, Option<QuotaNo>) {
        let capped = self.until.map(|(at, quota)| (at.since(now), quota)).filter(|(ttl, _)| *ttl < asked);
        capped.map_or((asked, None), |(ttl, quota)| (ttl, Some(quota)))
    }

    pub(crate) fn hear(&mut self, number: QuotaNo, ruling: Ruling) {
        match ruling {
            Ruling::Passes => {}
            Ruling::OverSoft => self.over_soft.push(number),
            Ruling::Until(at) if self.until.is_none_or(|(until, _)| at < until) => self.until = Some((at, number)),
            Ruling::Until(_) => {}
            Ruling::Refused(cause) => {
                self.refusal.get_or_insert(cause);
            }
        }
    }
}

impl RequestFacts {
    pub(crate) fn claimer(&self) -> Option<Claimer> {
        Some((self.tenant, self.user.filter(|_| self.sensitive)?))
    }

    pub(crate) fn demand(&self) -> Demand {
        Demand {
            tenant: self.tenant,
            project: self.project,
            payer: self.project,
            priority: self.priority,
            asks: self.asks.clone(),
            replicas: None,
            claimer: self.claimer(),
            node: self.node,
            spec: None,
            who: (self.user, self.app_instance),
            number: None,
            evicts: None,
        }
    }
}

impl World {
    pub(crate) fn expect_request(&self, facts: &RequestFacts, now: Instant) -> Expected {
        if let Some(fault) = self.fault_of(facts) {
            return Expected::Refused(fault);
        }
        let facts = &self.downgraded(facts);
        self.expect_with(facts, self.guard_for(&facts.demand(), facts.pool, now), now)
    }

    /// The longest TTL that any pool allows which the request may use.
    pub(crate) fn longest_ttl(&self, facts: &RequestFacts) -> Span {
        let pools = self.pools.keys().filter(|pool| self.may_look_in(facts, **pool));
        let longest = pools.map(|pool| self.grant_ttl_max(*pool, facts.priority)).max();
        longest.unwrap_or(self.settings.ttl_max)
    }

    /// The same for facts that were taken from a grant: which pools the request named is not known, and neither is its
    /// exact rank. It had at most the best one.
    pub(crate) fn expect_grant(&self, facts: &RequestFacts, now: Instant) -> Expected {
        let elsewhere = self.standing_on(facts.tenant, None, None, now);
        let standing = self.standing_on(facts.tenant, facts.node, facts.pool, now).max(elsewhere);
        let rank = (Reverse(facts.priority), (false, Reverse(standing)), now, AllocationNo(u64::MAX));
        self.expect_with(facts, self.guard(&self.heads_at(now), rank, now), now)
    }

    fn expect_with(&self, facts: &RequestFacts, guard: Guard<'_>, now: Instant) -> Expected {
        if let Some(fault) = self.fault_of(facts) {
            return Expected::Refused(fault);
        }
        // Classes with devices first, because they are scarce; then by number.
        let mut asks = facts.asks.clone();
        asks.sort_by_key(|(class, _)| (!self.classes[class].has_devices(), *class));

        let spec = AllocationSpec {
            pool: facts.pool,
            priority: facts.priority,
            ttl: Some(facts.ttl),
            sensitive: facts.sensitive,
            labels: facts.labels.clone(),
            profile: facts.profile,
            app_instance: facts.app_instance,
            ..AllocationSpec::of(asks.iter().map(|(class, quanta)| (*class, Quanta(*quanta))).collect())
        };
        let gang = Demand::of_gang(facts.tenant, facts.project, facts.user, &spec);
        let gang = Demand { node: facts.node, ..gang };
        // It evicts, and waits for that as an allocation.
        let submitted = || {
            if self.is_full(facts.tenant) {
                return Expected::Refused("too_many_pending");
            }
            Expected::Submitted(Box::new(spec.clone()), facts.node)
        };
        // One that a quota denies may evict leases of its own tenant instead.
        let denied = |cause: DenyCause| match cause {
            DenyCause::Quota { .. } | DenyCause::KindQuota { .. } => match self.plan_own(&gang, &spec, &guard, now) {
                Some(Ok(_)) => submitted(),
                _ => Expected::Denied(cause),
            },
            DenyCause::BurstOver { .. }
            | DenyCause::Capacity { .. }
            | DenyCause::Ceiling { .. }
            | DenyCause::Prepaid { .. } => Expected::Denied(cause),
        };
        if let Some(cause) = self.terms(facts, None, now).refusal {
            return denied(cause);
        }
        let too_dear = self.request_cost_refusal(facts, now);
        if let Some(cause) = too_dear.or_else(|| self.request_prepaid_refusal(facts, now)) {
            return Expected::Denied(cause);
        }
        let candidates = self.looked_at(facts);
        let stay = Some((None, facts.priority));
        let fits = |number: &&NodeNo| {
            let node = &self.nodes[*number];
            guard.allows(**number, stay)
                && asks.iter().all(|(class, quanta)| self.place(**number, node, *class, *quanta).is_some())
        };
        let mut ranked: Vec<_> = candidates.iter().filter(fits).collect();
        // The highest score first, then the lowest number.
        ranked.sort_by_key(|number| (Reverse(self.score(facts, &asks, **number, now)), **number));
        let refusal = |number: NodeNo| self.terms(facts, Some((self.nodes[&number].put.pool, number)), now).refusal;
        if let Some(number) = ranked.iter().find(|number| refusal(***number).is_none()) {
            return self.grant_at(facts, **number, now);
        }
        let allowed: Vec<NodeNo> = candidates.iter().copied().filter(|number| guard.allows(*number, stay)).collect();
        match ranked.first() {
            Some(best) => denied(refusal(**best).expect("no node is without one")),
            // One that names its node may evict there.
            None => match self.plan_for(&gang, &spec, &guard, now) {
                Some(Ok(_)) => submitted(),
                _ => Expected::Denied(self.scarcest(&asks, &allowed)),
            },
        }
    }

    fn score(&self, facts: &RequestFacts, asks: &[(ClassNo, u64)], number: NodeNo, now: Instant) -> u64 {
        let node = &self.nodes[&number];
        let classes = asks.iter().map(|(class, asked)| ClassSeen {
            asked: *asked,
            free: self.free(number, node, *class),
            total: node.capacity(*class),
            sensitivity: facts.profile.map(|profile| profile.of(self.classes[class].kind)),
        });
        let site = Site { node: number, rack: node.put.rack.clone(), zone: node.put.zone.clone() };
        let seen = NodeSeen { site, heat: self.heat(number, now), classes: classes.collect() };
        score(&seen, &[], self.weighing(node.put.pool).weights())
    }

    /// Why the request is not one of its holder's, if so: the first of these faults is named.
    pub(crate) fn fault_of_holders(&self, facts: &RequestFacts) -> Option<&'static str> {
        if !self.tenants.contains_key(&facts.tenant) {
            return Some("unknown_tenant");
        }
        let own = |project: &ProjectNo| self.projects.get(project).is_some_and(|p| p.tenant == facts.tenant);
        let own_user = |user: UserNo| self.users.get(&user).is_some_and(|u| u.tenant == facts.tenant);
        let lent = self.fault_of_lent(facts.tenant, facts.project, (facts.app_instance, None, facts.source_project));
        let faults = [
            (!own(&facts.project), "unknown_project"),
            (facts.source_project.is_some_and(|source| !own(&source)), "unknown_project"),
            (facts.user.is_some_and(|user| !own_user(user)), "unknown_user"),
            (facts.attachment.is_some() && self.has_registry(), "attachment_needs_allocation"),
            (lent.is_some(), lent.unwrap_or_default()),
        ];
        faults.into_iter().find(|(wrong, _)| *wrong).map(|(_, code)| code)
    }

    /// Why the request is invalid, if it is.
    pub(crate) fn fault_of(&self, facts: &RequestFacts) -> Option<&'static str> {
        if let Some(fault) = self.fault_of_holders(facts) {
            return Some(fault);
        }
        let tenant = &self.tenants[&facts.tenant];
        let sensitive = facts.sensitive.then(|| self.fault_of_sensitive(facts.claimer(), facts.node)).flatten();
        let in_pool = |node| {
            let node = self.nodes.get(&node);
            facts.pool.is_none_or(|pool| node.is_none_or(|node| node.put.pool == pool))
        };
        let twice = |i: usize| facts.asks[..i].iter().any(|(class, _)| *class == facts.asks[i].0);
        let fault = [
            (facts.pool.is_some_and(|pool| !self.pools.contains_key(&pool)), "unknown_pool"),
            (facts.node.is_some_and(|node| !self.nodes.contains_key(&node)), "unknown_node"),
            (facts.node.is_some_and(|node| !in_pool(node)), "node_not_in_pool"),
            (facts.asks.is_empty(), "nothing_asked"),
            (facts.asks.len() > CLASSES_PER_REQUEST_MAX, "too_many_classes"),
            (facts.asks.iter().any(|(class, _)| !self.classes.contains_key(class)), "unknown_class"),
            ((0..facts.asks.len()).any(twice), "duplicate_class"),
            (facts.asks.iter().any(|(_, quanta)| *quanta == 0), "zero_quantity"),
            (facts.asks.iter().any(|(_, quanta)| *quanta > QUANTA_PER_NODE_MAX), "quantity_too_large"),
            (facts.asks.iter().any(|(class, quanta)| self.splits_devices(*class, *quanta)), "not_whole_devices"),
            (facts.ttl == Span::ZERO, "zero_ttl"),
            (!self.ttl_is_possible(facts), "ttl_too_long"),
            (facts.priority > tenant.settings.max_priority, "priority_above_max"),
            (!self.labels_exist(facts), "impossible_labels"),
            (sensitive.is_some(), sensitive.unwrap_or_default()),
        ];
        let fault = fault.into_iter().find(|(wrong, _)| *wrong).map(|(_, word)| word);
        let paused = || self.is_paused_everywhere(&facts.demand(), facts.pool).then_some("pool_paused");
        fault.or_else(paused).or_else(|| self.fault_of_holder(&facts.demand(), facts.pool))
    }

    fn splits_devices(&self, class: ClassNo, quanta: u64) -> bool {
        self.classes.get(&class).is_some_and(|spec| {
            spec.has_devices() && quanta > spec.quanta_per_unit && !quanta.is_multiple_of(spec.quanta_per_unit)
        })
    }

    fn ttl_is_possible(&self, facts: &RequestFacts) -> bool {
        let mut pools = self.pools.keys().filter(|pool| self.may_look_in(facts, **pool)).peekable();
        if pools.peek().is_none() {
            return facts.ttl <= self.settings.ttl_max;
        }
        pools.any(|pool| facts.ttl <= self.grant_ttl_max(*pool, facts.priority))
    }

    /// Whether some node that the request may use has all labels, even if the node is offline.
    fn labels_exist(&self, facts: &RequestFacts) -> bool {
        let mut nodes = self.nodes.iter().filter(|(number, node)| {
            facts.node.is_none_or(|asked| asked == **number) && facts.pool.is_none_or(|asked| asked == node.put.pool)
        });
        facts.labels.is_empty() || nodes.any(|(_, node)| has_labels(node, &facts.labels))
    }

    fn may_look_in(&self, facts: &RequestFacts, pool: PoolNo) -> bool {
        let of_node = facts.node.and_then(|node| self.nodes.get(&node)).map(|node| node.put.pool);
        facts.pool.is_none_or(|asked| asked == pool) && of_node.is_none_or(|own| own == pool)
    }

    /// The candidate nodes. Pools that do not allow the TTL are skipped.
    fn looked_at(&self, facts: &RequestFacts) -> Vec<NodeNo> {
        let may_go = |number: &NodeNo, node: &Node| {
            node.is_open_to(facts.claimer())
                && facts.node.is_none_or(|asked| asked == *number)
                && facts.pool.is_none_or(|asked| asked == node.put.pool)
                && !self.is_paused(&facts.demand(), node.put.pool)
                && facts.ttl <= self.grant_ttl_max(node.put.pool, facts.priority)
                && has_labels(node, &facts.labels)
        };
        self.nodes.iter().filter(|(number, node)| may_go(number, node)).map(|(number, _)| *number).collect()
    }

    /// The terms of the quotas: without a node, of those that do not depend on nodes; with one, of the others.
    fn terms(&self, facts: &RequestFacts, place: Option<(PoolNo, NodeNo)>, now: Instant) -> Terms {
        let mut terms = Terms::default();
        for (number, quota) in &self.quotas {
            if quota.depends_on_node() == place.is_some()
                && let Some(ruling) = self.rule(*number, quota, &facts.demand(), place, &[], now)
            {
                terms.hear(*number, ruling);
            }
        }
        terms
    }

    fn grant_at(&self, facts: &RequestFacts, number: NodeNo, now: Instant) -> Expected {
        let node = &self.nodes[&number];
        let anywhere = self.terms(facts, None, now);
        let here = self.terms(facts, Some((node.put.pool, number)), now);
        let terms = Terms {
            over_soft: [anywhere.over_soft, here.over_soft].concat(),
            until: match (anywhere.until, here.until) {
                (Some(any), Some(here)) => Some(if here.0 < any.0 { here } else { any }),
                (any, here) => any.or(here),
            },
            refusal: None,
        };
        let (ttl, capped_by) = terms.ttl(facts.ttl, now);
        let (ttl, capped_by_window) = self.ttl_to_window(number, ttl, now);
        let capped_by = capped_by.filter(|_| capped_by_window.is_none());
        let place = |(class, quanta): &(ClassNo, u64)| self.place(number, node, *class, *quanta);
        Expected::Granted {
            node: number,
            devices: facts.asks.iter().map(|ask| place(ask).expect("it was seen to fit")).collect(),
            ttl,
            over_soft: terms.over_soft(),
            capped_by,
            capped_by_window,
        }
    }

    /// The first ask that no node can satisfy by itself, else the first ask.
    fn scarcest(&self, asks: &[(ClassNo, u64)], candidates: &[NodeNo]) -> DenyCause {
        let most_free = |(class, quanta): &(ClassNo, u64)| {
            let on_node = |number: &NodeNo| self.class_on_node(*number, &self.nodes[number], *class);
            let room = candidates.iter().filter_map(on_node).map(|found| found.room_for(*quanta));
            room.max().unwrap_or(0)
        };
        let short = asks.iter().find(|ask| most_free(ask) < ask.1).unwrap_or(&asks[0]);
        DenyCause::Capacity { class: short.0, requested: Quanta(short.1), most_free: Quanta(most_free(short)) }
    }
}
