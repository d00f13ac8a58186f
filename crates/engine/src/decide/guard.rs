//! Which nodes work may use without delaying the heads of lines and protected heads.

use crate::ask::Ask;
use crate::assured_start::{AssuredStart, Stay};
use crate::node::Node;
use crate::preempt::Plan;
use crate::protection::Effect;
use crate::queue::{Line, Rank};
use crate::scheduler::Blocked;
use crate::view::View;
use leasehold_model::{AllocationNo, Instant};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The assured starts of the heads of the lines, computed on demand.
pub(crate) struct AssuredStarts {
    pub(crate) heads: BTreeMap<Line, Rank>,
    pub(super) computed: RefCell<ComputedStarts>,
}

/// What was computed for allocations on the present state.
#[derive(Default)]
pub(crate) struct ComputedStarts {
    /// The assured starts of heads; `None` for those that have none.
    assured: BTreeMap<AllocationNo, Option<AssuredStart>>,
    /// What the protection of heads means for others.
    protections: BTreeMap<AllocationNo, Effect>,
}

impl AssuredStarts {
    pub(crate) fn new(heads: BTreeMap<Line, Rank>) -> Self {
        Self { heads, computed: RefCell::default() }
    }

    /// When a head starts at the latest, if that is known.
    pub(crate) fn start_of(&self, view: View<'_>, head: AllocationNo, now: Instant) -> Option<Instant> {
        let assured = self.computed_for(view, head, now).map(|assured| assured.start);
        assured.or_else(|| match view.protection_of(view.allocation(head)?, now) {
            Effect::Until(start) => Some(start),
            Effect::None | Effect::Open => None,
        })
    }

    fn computed_for(&self, view: View<'_>, head: AllocationNo, now: Instant) -> Option<AssuredStart> {
        let compute = || view.allocation(head).and_then(|waits| view.assured_start(waits, now));
        self.computed.borrow_mut().assured.entry(head).or_insert_with(compute).clone()
    }

    /// The head whose protection keeps work from a node.
    pub(crate) fn protected_head(&self, view: View<'_>, node: &Node, now: Instant, stay: Stay) -> Option<AllocationNo> {
        let head = view.state.protected_against(node.number, stay)?;
        let mut computed = self.computed.borrow_mut();
        let effect = computed.protections.entry(head.number).or_insert_with(|| view.protection_of(head, now));
        let is_gone = |by: Instant| !stay.evicts && view.gone_by(node, now, stay).is_some_and(|gone| gone <= by);
        let allowed = match *effect {
            Effect::None => true,
            Effect::Until(start) => is_gone(start),
            Effect::Open => false,
        };
        (!allowed).then_some(head.number)
    }

    /// Whether work may use a node without delaying the head of its line or a protected head. Work for which others
    /// would be evicted may not use the nodes of these heads at all.
    pub(crate) fn allow(&self, view: View<'_>, node: &Node, now: Instant, stay: Stay) -> bool {
        if self.protected_head(view, node, now, stay).is_some() {
            return false;
        }
        let Some((_, _, _, number)) = self.heads.get(&Line::at(node)) else { return true };
        let mut computed = self.computed.borrow_mut();
        let assured = computed.assured.entry(*number).or_insert_with(|| {
            let waits = view.allocation(*number)?;
            view.assured_start(waits, now)
        });
        let Some(assured) = assured else { return true };
        !assured.nodes.contains(&node.number)
            || !stay.evicts && view.gone_by(node, now, stay).is_some_and(|gone| gone <= assured.start)
    }
}

/// A filter for the nodes that may be used.
pub(crate) type Guard<'s> = Box<dyn Fn(&Node) -> bool + 's>;

impl<'a> View<'a> {
    /// The eviction plan for an ask that finds no capacity, if it may evict. `known` is a plan that was made on the
    /// same state for the same nodes.
    pub(crate) fn plan_for(&self, ask: &Ask<'_>, known: Option<Plan>) -> Option<Result<Plan, Blocked>> {
        if !self.could_evict(ask) {
            return None;
        }
        let (_, of_nodes) = self.admission(ask).ok()?;
        let plan = || self.plan_preemption(ask, &of_nodes);
        // Verdicts of quotas about a node can change with time alone.
        let known = known.filter(|_| of_nodes.is_empty());
        debug_assert!(known.is_none() || known == plan(), "the known plan was made on the same state");
        let plan = known.or_else(plan)?;
        let tenant = self.tenant(ask.tenant).expect("an allocation's tenant exists");
        let limit = tenant.settings.max_evicted_quanta_per_hour;
        let after = tenant.evicted(ask.now).saturating_add(plan.quanta);
        Some(if limit.is_none_or(|limit| after <= limit) { Ok(plan) } else { Err(Blocked::Evictions) })
    }

    /// The nodes that an ask may use without delaying those of `heads` that go before it. `None`: all nodes.
    pub(crate) fn guard(&self, heads: &BTreeMap<Line, Rank>, ask: &Ask<'_>) -> Option<Guard<'a>> {
        self.guard_for(heads, ask, ask.stay())
    }

    /// The nodes on which an ask may evict: not those of an assured start of `heads` that go before it.
    pub(crate) fn sparing(&self, heads: &BTreeMap<Line, Rank>, ask: &Ask<'_>) -> Option<Guard<'a>> {
        self.guard_for(heads, ask, ask.stay_after_eviction())
    }

    fn guard_for(&self, heads: &BTreeMap<Line, Rank>, ask: &Ask<'_>, stay: Stay) -> Option<Guard<'a>> {
        if heads.is_empty() && self.queue.protected_nodes.is_empty() {
            return None;
        }
        let rank = self.rank(ask);
        let before = heads.iter().filter(|(_, head)| **head < rank);
        let assured = AssuredStarts::new(before.map(|(line, head)| (*line, *head)).collect());
        let (view, now) = (*self, ask.now);
        Some(Box::new(move |node| assured.allow(view, node, now, stay)))
    }
}
