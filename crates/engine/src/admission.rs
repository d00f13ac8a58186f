//! The checks of a request against quotas and cost ceilings (SEMANTICS 4). Deciding stops at the first check that
//! refuses; an explanation shows all of them.

use crate::ask::Ask;
use crate::ceiling::{Ceiling, CeilingScope};
use crate::claim_cost::CeilingUse;
use crate::placement::Counted;
use crate::quota::{Facts, Quota, Verdict};
use crate::state::State;
use crate::tally::{Count, Holder};
use leasehold_model::rate::Currency;
use leasehold_model::{
    Amount, CeilingMode, ClassNo, DenyCause, Fraction, Instant, LimitKind, Measure, NodeScope, Quanta, QuotaNo, Span,
};
use smallvec::SmallVec;

/// The check of one quota.
struct Check<'s> {
    quota: &'s Quota,
    /// The amount that one replica counts; for quotas on allocations, the whole allocation.
    each: Count,
    requested: Count,
    /// `None` if it depends on the node.
    verdict: Option<Verdict>,
}

impl Check<'_> {
    /// What the ask counts by itself, wherever it is placed. Zero if it may avoid the quota by its choice of nodes.
    fn alone(&self, ask: &Ask<'_>) -> Count {
        let scope = &self.quota.scope;
        let is_inside = scope.pool.is_none() || scope.pool == ask.pool;
        match (self.quota.measure, scope.node) {
            _ if !is_inside => 0,
            // How many nodes it needs is not known before it is placed.
            (Measure::Nodes, _) | (_, NodeScope::One(_)) => 0,
            (_, NodeScope::Each) => self.each,
            (_, NodeScope::All) => self.requested,
        }
    }
}

/// Quotas whose verdict depends on the node, with the amount that one replica counts in each.
pub(crate) type NodeQuotas = SmallVec<[(QuotaNo, Count); 4]>;

/// The conditions that quotas attach to a grant.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    pub(crate) over_soft: SmallVec<[QuotaNo; 1]>,
    /// The earliest end that a burst quota allows, with that quota.
    until: Option<(Instant, QuotaNo)>,
}

impl Terms {
    pub(crate) fn add(&mut self, quota: QuotaNo, verdict: Verdict) -> Result<(), DenyCause> {
        match verdict {
            Verdict::Within => {}
            Verdict::OverSoft => self.over_soft.push(quota),
            Verdict::Until(end) => {
                if self.until.is_none_or(|(found, _)| end < found) {
                    self.until = Some((end, quota));
                }
            }
            Verdict::Refused(cause) => return Err(cause),
        }
        Ok(())
    }

    /// Sorts the exceeded soft quotas and removes duplicates.
    pub(crate) fn settle(&mut self) {
        self.over_soft.sort_unstable();
        self.over_soft.dedup();
    }

    /// The TTL that the quotas allow, and the quota that shortened it.
    pub(crate) fn ttl(&self, asked: Span, now: Instant) -> (Span, Option<QuotaNo>) {
        match self.until {
            Some((end, quota)) if end.since(now) < asked => (end.since(now), Some(quota)),
            _ => (asked, None),
        }
    }
}

/// The check of one quota, for an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaCheck {
    pub quota: QuotaNo,
    pub used: Fraction,
    pub requested: Fraction,
    pub limit: LimitKind,
    pub said: QuotaSaid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaSaid {
    Within,
    OverSoft,
    /// Granted, but no longer than this.
    Until(Instant),
    Refused(DenyCause),
    /// The verdict depends on the node: each candidate has its own.
    ByNode,
}

/// The check of one cost ceiling, for an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeilingCheck {
    pub scope: CeilingScope,
    pub mode: CeilingMode,
    pub currency: Currency,
    pub spent: Amount,
    pub reserved: Amount,
    pub requested: Amount,
    pub amount: Amount,
}

impl CeilingCheck {
    /// Whether the request would exceed the ceiling.
    pub fn is_passed(&self) -> bool {
        let sum = self.spent.saturating_add(self.reserved).saturating_add(self.requested);
        self.requested > Amount::ZERO && sum > self.amount
    }
}

impl Quota {
    /// The holder under whom an ask is counted.
    pub(crate) fn holder_of(&self, ask: &Ask<'_>) -> Holder {
        self.holder(ask.user, ask.app_instance)
    }

    /// Whether it could count an ask, but the ask does not name the user or the app instance that it counts by.
    fn lacks_holder(&self, ask: &Ask<'_>, facts: &[Facts]) -> Option<Missing> {
        let further = &self.scope.further;
        let user = further.user.is_some() && ask.user.is_none();
        let app_instance = further.app_instance.is_some() && ask.app_instance.is_none();
        let missing = match (user, app_instance) {
            (true, _) => Missing::User,
            (false, true) => Missing::AppInstance,
            (false, false) => return None,
        };
        let elsewhere = ask.pool.is_some_and(|pool| self.scope.pool.is_some_and(|of| of != pool));
        let counts = match self.measure {
            Measure::Allocations => ask.is_allocation,
            Measure::Quanta | Measure::Leases | Measure::Nodes => true,
        };
        (counts && !elsewhere && facts.iter().any(|facts| self.concerns_anyone(facts))).then_some(missing)
    }
}

/// What a request must name because a quota counts by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    User,
    AppInstance,
}

impl State {
    pub(crate) fn facts_of_ask(&self, ask: &Ask<'_>) -> SmallVec<[Facts; 2]> {
        // What runs on claimed nodes is counted by the claims.
        if ask.claimer.is_some() && self.counts_whole_claims() { SmallVec::new() } else { self.all_facts_of(ask) }
    }

    fn all_facts_of(&self, ask: &Ask<'_>) -> SmallVec<[Facts; 2]> {
        let Ask { payer: project, priority, user, app_instance, .. } = *ask;
        let facts = |(class, quanta): &(ClassNo, Quanta)| {
            let spec = self.class(*class).expect("a requested class exists");
            let (kind, quanta_per_unit) = (spec.kind, spec.quanta_per_unit);
            Facts { project, user, app_instance, class: *class, kind, quanta_per_unit, priority, quanta: quanta.0 }
        };
        ask.asks.iter().map(facts).collect()
    }

    /// The first quota for which the ask must name a user or an app instance and does not (SEMANTICS 11).
    pub(crate) fn missing_holder(&self, ask: &Ask<'_>) -> Option<(QuotaNo, Missing)> {
        let mut quotas = self.quotas_of(ask.tenant).filter(|quota| quota.scope.further.counts_by_holder()).peekable();
        quotas.peek()?;
        let (facts, all) = (self.facts_of_ask(ask), self.all_facts_of(ask));
        quotas.find_map(|quota| {
            // Allocations on claimed nodes still count in quotas on allocations.
            let facts = if quota.measure == Measure::Allocations { &all } else { &facts };
            Some((quota.number, quota.lacks_holder(ask, facts)?))
        })
    }

    /// Calls `show` for every quota in which the ask counts, by number, until it returns an error.
    #[inline]
    fn check_quotas<'s>(
        &'s self,
        ask: &Ask<'_>,
        mut show: impl FnMut(Check<'s>) -> Result<(), DenyCause>,
    ) -> Result<(), DenyCause> {
        let Ask { payer: project, priority, user, app_instance, .. } = *ask;
        let facts = self.facts_of_ask(ask);
        for quota in self.quotas_of(ask.tenant) {
            let counts_gang = ask.is_allocation && quota.counts_allocation(project, priority, user, app_instance);
            let each = if counts_gang { 1 } else { quota.asked(&facts) };
            if each == 0 {
                continue;
            }
            let requested = if counts_gang { 1 } else { each.saturating_mul(u128::from(ask.replicas)) };
            let depends_on_node = !counts_gang && quota.depends_on_node();
            let judge = || {
                let (held, freed) = self.headroom_beside(quota, ask);
                let beside = Counted { held, freed, ..Counted::default() };
                let verdict = quota.judge(requested, quota.holder_of(ask), None, ask.now, beside);
                ask.heed(quota.number, verdict)
            };
            let verdict = (!depends_on_node).then(judge);
            show(Check { quota, each, requested, verdict })?;
        }
        Ok(())
    }

    /// The terms for an ask as far as they do not depend on the node, and the quotas that do; or the cause of its
    /// denial.
    pub(crate) fn admission(&self, ask: &Ask<'_>) -> Result<(Terms, NodeQuotas), DenyCause> {
        let mut terms = Terms::default();
        let mut of_nodes = NodeQuotas::new();
        self.check_quotas(ask, |check| {
            match check.verdict {
                Some(verdict) => terms.add(check.quota.number, verdict)?,
                None => of_nodes.push((check.quota.number, check.each)),
            }
            Ok(())
        })?;
        let mut hard = self.ceilings_for(ask).filter(|c| c.mode == CeilingMode::Hard);
        hard.try_for_each(|ceiling| {
            ceiling.judge(self.ceiling_use(ceiling, ask.now), self.cost_of(ask, ceiling.currency))
        })?;
        self.judge_prepaid(ask)?;
        Ok((terms, of_nodes))
    }

    /// Whether the ask exceeds the base limit of a hard or burst quota all by itself, so that it could never start
    /// within it.
    pub(crate) fn exceeds_a_base(&self, ask: &Ask<'_>) -> bool {
        let mut exceeds = false;
        let all = self.check_quotas(ask, |check| {
            let quota = check.quota;
            let is_soft = matches!(quota.base(), LimitKind::Soft { .. });
            exceeds |= !is_soft && quota.in_units(check.alone(ask)).exceeds(quota.base().limit());
            Ok(())
        });
        all.expect("the callback never fails");
        exceeds
    }

    /// A burst quota under which an ask could never start: it exceeds the base limit all by itself, and would run for
    /// longer than a burst lasts (SEMANTICS 11). While a temporary limit applies, that must hold with and without it.
    pub(crate) fn never_within_burst(&self, ask: &Ask<'_>) -> Option<QuotaNo> {
        let walltime = ask.walltime?;
        let mut found = None;
        let all = self.check_quotas(ask, |check| {
            let quota = check.quota;
            let alone = quota.in_units(check.alone(ask));
            let forbids = |limit: LimitKind| match limit {
                LimitKind::Burst { limit, burst_ttl, .. } => walltime > burst_ttl && alone.exceeds(limit),
                LimitKind::Hard { .. } | LimitKind::Soft { .. } => false,
            };
            if forbids(quota.limit) && forbids(quota.base()) {
                found.get_or_insert(quota.number);
            }
            Ok(())
        });
        all.expect("the callback never fails");
        found
    }

    /// All quotas that depend on the node, even if another one denies the ask.
    pub(crate) fn node_quotas(&self, ask: &Ask<'_>) -> NodeQuotas {
        let mut of_nodes = NodeQuotas::new();
        let all = self.check_quotas(ask, |check| {
            of_nodes.extend(check.verdict.is_none().then_some((check.quota.number, check.each)));
            Ok(())
        });
        all.expect("the callback never fails");
        of_nodes
    }

    pub(crate) fn quota_checks(&self, ask: &Ask<'_>) -> Vec<QuotaCheck> {
        let mut checks = Vec::new();
        let all = self.check_quotas(ask, |Check { quota, requested, verdict, .. }| {
            let said = match verdict {
                None => QuotaSaid::ByNode,
                Some(Verdict::Within) => QuotaSaid::Within,
                Some(Verdict::OverSoft) => QuotaSaid::OverSoft,
                Some(Verdict::Until(until)) => QuotaSaid::Until(until),
                Some(Verdict::Refused(cause)) => QuotaSaid::Refused(cause),
            };
            let (held, _) = self.headroom_beside(quota, ask);
            let used = quota.in_units(quota.used_of(quota.holder_of(ask)) + held);
            let (requested, limit) = (quota.in_units(requested), quota.limit);
            checks.push(QuotaCheck { quota: quota.number, used, requested, limit, said });
            Ok(())
        });
        all.expect("the callback never fails");
        checks
    }

    pub(crate) fn ceiling_checks(&self, ask: &Ask<'_>) -> Vec<CeilingCheck> {
        let check = |ceiling: &Ceiling| {
            let CeilingUse { spent, reserved } = self.ceiling_use(ceiling, ask.now);
            CeilingCheck {
                scope: ceiling.scope,
                mode: ceiling.mode,
                currency: ceiling.currency,
                spent,
                reserved,
                requested: self.cost_of(ask, ceiling.currency),
                amount: ceiling.amount,
            }
        };
        self.ceilings_for(ask).map(check).collect()
    }
}
