//! The checks of a request against quotas and cost ceilings (SEMANTICS 4). Deciding stops at the first check that
//! refuses; an explanation shows all of them.

use crate::ask::Ask;
use crate::ceiling::{Ceiling, CeilingScope};
use crate::quota::{Facts, Quota, Verdict};
use crate::state::State;
use leasehold_model::rate::Currency;
use leasehold_model::{Amount, CeilingMode, ClassNo, DenyCause, Instant, LimitKind, Quanta, QuotaNo, Span};
use smallvec::SmallVec;

/// The check of one quota.
struct Check<'s> {
    quota: &'s Quota,
    /// The amount that one replica counts; for quotas on allocations, the whole allocation.
    each: u64,
    requested: u64,
    /// `None` if it depends on the node.
    verdict: Option<Verdict>,
}

/// Quotas whose verdict depends on the node, with the amount that one replica counts in each.
pub(crate) type NodeQuotas = SmallVec<[(QuotaNo, u64); 4]>;

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
    pub used: u64,
    pub requested: u64,
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

impl State {
    /// Calls `show` for every quota in which the ask counts, by number, until it returns an error.
    #[inline]
    fn check_quotas<'s>(
        &'s self,
        ask: &Ask<'_>,
        mut show: impl FnMut(Check<'s>) -> Result<(), DenyCause>,
    ) -> Result<(), DenyCause> {
        let Ask { project, priority, .. } = *ask;
        let facts = |(class, quanta): &(ClassNo, Quanta)| Facts { project, class: *class, priority, quanta: quanta.0 };
        let facts: SmallVec<[Facts; 2]> = ask.asks.iter().map(facts).collect();
        for quota in self.quotas_of(ask.tenant) {
            let counts_gang = ask.is_allocation && quota.counts_allocation(project, priority);
            let each = if counts_gang { 1 } else { quota.asked(&facts) };
            if each == 0 {
                continue;
            }
            let requested = if counts_gang { 1 } else { each.saturating_mul(u64::from(ask.replicas)) };
            let depends_on_node = !counts_gang && quota.depends_on_node();
            let judge = || ask.heed(quota.number, quota.judge(requested, None, ask.now));
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
        let mut hard = self.ceilings.of(ask.project, ask.app_instance).filter(|c| c.mode == CeilingMode::Hard);
        hard.try_for_each(|ceiling| ceiling.judge(self.cost_of(ask, ceiling.currency)))?;
        Ok((terms, of_nodes))
    }

    /// A burst quota under which an ask could never start: it exceeds the base limit all by itself, and would run for
    /// longer than a burst lasts (SEMANTICS 11).
    pub(crate) fn never_within_burst(&self, ask: &Ask<'_>) -> Option<QuotaNo> {
        let walltime = ask.walltime?;
        let mut found = None;
        let all = self.check_quotas(ask, |Check { quota, each, requested, verdict }| {
            let alone = if verdict.is_some() { requested } else { each };
            if let LimitKind::Burst { limit, burst_ttl, .. } = quota.limit
                && alone > limit
                && walltime > burst_ttl
            {
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
            let (used, limit) = (quota.used, quota.limit);
            checks.push(QuotaCheck { quota: quota.number, used, requested, limit, said });
            Ok(())
        });
        all.expect("the callback never fails");
        checks
    }

    pub(crate) fn ceiling_checks(&self, ask: &Ask<'_>) -> Vec<CeilingCheck> {
        let check = |ceiling: &Ceiling| CeilingCheck {
            scope: ceiling.scope,
            mode: ceiling.mode,
            currency: ceiling.currency,
            spent: ceiling.spent,
            reserved: ceiling.reserved,
            requested: self.cost_of(ask, ceiling.currency),
            amount: ceiling.amount,
        };
        self.ceilings.of(ask.project, ask.app_instance).map(check).collect()
    }
}
