//! What each project bears of the cost of a control plane (SEMANTICS 13, "Sharing the cost of a control plane"), from all
//! entries and all usage records each time.

use crate::acts::{Line, Script};
use crate::apps::unless;
use crate::booking::{measure_of, parts};
use crate::command::Command;
use crate::foretell::{Foretold, Told};
use crate::sharing::Decides;
use crate::usage_records::Accepted;
use crate::violation::{Checked, demand, found};
use crate::world::World;
use leasehold_model::body::{
    AppInstancePut, EntitlementScope, LedgerShared, ShareWeight, Sharing, SharingBasis, SharingMethod, SharingPut,
};
use leasehold_model::ledger::{Account, Steps};
use leasehold_model::rate::Currency;
use leasehold_model::{
    AppInstanceNo, Body, ControlPlaneScope, Identity, Month, Name, ProjectNo, Record, TenantNo, UnitNo,
};
use num_bigint::BigInt;
use num_integer::Integer;
use std::collections::{BTreeMap, BTreeSet};

/// Who takes part, with the weight and the service tier, in the order of their numbers.
type Parts = Vec<(ProjectNo, u128, Option<Name>)>;

/// An instance with its tenant.
type Instance<'a> = (TenantNo, &'a AppInstancePut);

/// Whole steps in proportion to weights: rounded towards zero, and what is missing goes to the largest remainders.
fn divided(pool: i128, weights: &[u128]) -> Vec<i128> {
    let total: BigInt = weights.iter().map(|weight| BigInt::from(*weight)).sum();
    let sign = pool.signum();
    let mut shares = Vec::new();
    let mut rests = Vec::new();
    for (place, weight) in weights.iter().enumerate() {
        let (whole, rest) = (BigInt::from(pool.abs()) * *weight).div_rem(&total);
        shares.push(i128::try_from(whole).expect("not more than the pool"));
        rests.push((rest, place));
    }
    let missing = pool.abs() - shares.iter().sum::<i128>();
    rests.sort_by(|(one, first), (other, second)| other.cmp(one).then(first.cmp(second)));
    for (_, place) in rests.into_iter().take(usize::try_from(missing).expect("fewer than there are shares")) {
        shares[place] += 1;
    }
    shares.into_iter().map(|share| sign * share).collect()
}

impl World {
    /// What projects used of each unit of an instance in a month, by the records between the opening of the ledger and a
    /// cut, in 10^-18 units. What is taken back may not have counted: a sum can be below zero.
    fn work(&self, instance: AppInstanceNo, month: Month, cut: u64) -> BTreeMap<(ProjectNo, UnitNo), i128> {
        let mut sums = BTreeMap::new();
        let mut add = |known: &Accepted, sign: i128| {
            let report = &known.recorded.report;
            let measure = measure_of(report.unit, &self.apps.units).expect("a unit that exists");
            let own = parts(report, measure, known.app_type(), &[]);
            let own = own.into_iter().filter(|part| Month::of(part.hour) == month);
            let quantity = own.map(|part| i128::try_from(part.quantity).expect("below 2^127")).sum::<i128>();
            if !report.control_plane {
                *sums.entry((known.project, report.unit)).or_insert(0) += sign * quantity;
            }
        };
        let since = self.ledger.opened_by.unwrap_or(u64::MAX);
        let counts = |known: &&Accepted| {
            known.recorded.report.app_instance == instance && known.sequence > since && known.sequence < cut
        };
        for known in self.reports.accepted.iter().filter(counts) {
            add(known, 1);
            if let Some(old) = &known.recorded.replaces {
                let old = self.reports.accepted.iter().find(|other| other.sequence == old.sequence);
                add(old.expect("it was superseded"), -1);
            }
        }
        sums
    }

    /// Whether a project can bear something of an instance's cost.
    fn may_bear(&self, (tenant, instance): Instance<'_>, project: ProjectNo) -> bool {
        let found = self.projects.get(&project);
        found.is_some_and(|found| instance.scope == ControlPlaneScope::Platform || found.tenant == tenant)
    }

    /// The hard limit of a project on a unit: for the instance, or else for all instances.
    fn hard_limit(&self, project: ProjectNo, app: AppInstanceNo, unit: UnitNo) -> Option<u128> {
        let limit = |app_instance: Option<AppInstanceNo>| {
            let of = EntitlementScope { project: Some(project), app_instance, unit };
            self.entitlements.all.get(&of)?.put.hard.map(|hard| hard.0)
        };
        limit(Some(app)).or_else(|| limit(None))
    }

    /// Who takes part, with those that are gone or of another tenant, whose shares stay with the owner. Nobody takes part if
    /// nobody used the runtime.
    fn parts_of(&self, of: Instance<'_>, basis: &SharingBasis, work: &BTreeMap<(ProjectNo, UnitNo), i128>) -> Parts {
        let used: BTreeSet<ProjectNo> =
            work.iter().filter(|(_, sum)| **sum > 0).map(|((project, _), _)| *project).collect();
        let parts: Parts = match basis {
            SharingBasis::None => Vec::new(),
            SharingBasis::Owner => return vec![(of.1.project, 1, None)],
            SharingBasis::Even => used.iter().map(|project| (*project, 1, None)).collect(),
            SharingBasis::ByUsage(unit) => {
                let of_unit = work.iter().filter(|((_, of), sum)| of == unit && **sum > 0);
                of_unit.map(|((project, _), sum)| (*project, sum.unsigned_abs(), None)).collect()
            }
            SharingBasis::ByQuota(unit) => {
                let all = self.projects.keys().copied().filter(|project| self.may_bear(of, *project));
                let limit = |project| self.hard_limit(project, of.1.app_instance, *unit);
                all.filter_map(|project| Some((project, limit(project)?, None))).collect()
            }
            SharingBasis::Fixed(weights) => {
                weights.iter().map(|(project, percent)| (*project, u128::from(percent.0), None)).collect()
            }
            SharingBasis::ByTier(tiers) => {
                let tier = |project| tiers.of(project).map(|tier| (u128::from(tier.weight.0), tier.name.clone()));
                let in_tier = |project| tier(project).map(|(weight, name)| (project, weight, Some(name)));
                used.iter().copied().filter_map(in_tier).collect()
            }
        };
        if used.is_empty() || parts.iter().all(|(_, weight, _)| *weight == 0) { Vec::new() } else { parts }
    }

    /// The records of a decision by a method, in the order of projects.
    fn shares_by(
        &self,
        of: Instance<'_>,
        (put, sharing): (&SharingPut, &Sharing),
        work: &BTreeMap<(ProjectNo, UnitNo), i128>,
        plain: &LedgerShared,
    ) -> BTreeMap<ProjectNo, LedgerShared> {
        let (owner, pool) = (of.1.project, plain.pool.0);
        let parts = self.parts_of(of, &sharing.basis, work);
        let weights: Vec<u128> = parts.iter().map(|(_, weight, _)| *weight).collect();
        let total_weight = ShareWeight(weights.iter().sum());
        let plain = LedgerShared {
            policy: put.of,
            version: put.version,
            method: sharing.basis.method(),
            unit: sharing.basis.unit(),
            total_weight,
            ..plain.clone()
        };
        let mut records = BTreeMap::from([(owner, plain.clone())]);
        let shares = if parts.is_empty() { Vec::new() } else { divided(pool, &weights) };
        let mut others = 0;
        for ((project, weight, tier), share) in parts.into_iter().zip(shares) {
            if project == owner {
                let own = records.get_mut(&owner).expect("it was put there");
                (own.weight, own.tier) = (ShareWeight(weight), tier);
            } else if share != 0 && self.may_bear(of, project) {
                others += share;
                let (weight, share) = (ShareWeight(weight), Steps(share));
                records.insert(project, LedgerShared { tier, weight, share, booked: share, ..plain.clone() });
            }
        }
        // The owner keeps whatever nobody else bears.
        let own = records.get_mut(&owner).expect("it was put there");
        (own.share, own.booked) = (Steps(pool - others), Steps(-others));
        if !sharing.entries {
            records.values_mut().for_each(|record| record.booked = Steps::ZERO);
        }
        records
    }

    /// The records of the decision about an instance and a currency in the month that is being closed, if there is one
    /// to make.
    fn shares_of(&self, app: AppInstanceNo, currency: Currency) -> Option<Vec<(Identity, LedgerShared)>> {
        let (month, cut) = self.ledger.closing?;
        let (tenant, instance) = self.apps.instances.get(&app)?;
        let (of, owner) = ((*tenant, instance), instance.project);
        let pool = Steps(self.ledger.pool(app, owner, currency, month));
        if pool == Steps::ZERO || self.ledger.is_shared(app, currency, month) {
            return None;
        }
        let decides = self.decided_at_cut(of);
        let (put, method) = match decides {
            Decides::Nothing => return None,
            Decides::NotBillable(put) => (put, SharingMethod::NotBillable),
            Decides::By(put, sharing) => (put, sharing.basis.method()),
        };
        let plain = LedgerShared {
            app_instance: app,
            owner,
            month,
            currency,
            previous: None,
            policy: put.of,
            version: put.version,
            method,
            unit: None,
            tier: None,
            weight: ShareWeight(0),
            total_weight: ShareWeight(0),
            pool,
            share: Steps::ZERO,
            booked: Steps::ZERO,
        };
        let mut records = match decides {
            Decides::Nothing => return None,
            Decides::NotBillable(_) => BTreeMap::from([(owner, LedgerShared { booked: -pool, ..plain })]),
            Decides::By(put, sharing) => self.shares_by(of, (put, sharing), &self.work(app, month, cut), &plain),
        };
        for (project, record) in &mut records {
            record.previous = self.ledger.payers.get(&(*project, currency)).and_then(|payer| payer.last);
        }
        let identity = |project: ProjectNo| Identity {
            tenant: Some(self.projects[&project].tenant),
            project: Some(project),
            ..Identity::default()
        };
        Some(records.into_iter().map(|(project, record)| (identity(project), record)).collect())
    }

    /// Whether what the control plane of an instance cost, in a month that is not closed, is to be shared.
    pub(crate) fn is_to_be_shared(&self, app: AppInstanceNo) -> bool {
        let Some((tenant, instance)) = self.apps.instances.get(&app) else { return false };
        let closing = self.ledger.closing.map(|(month, _)| month);
        self.ledger.open_pools(app, instance.project).into_iter().any(|month| {
            let decides = match closing == Some(month) {
                true => self.decided_at_cut((*tenant, instance)),
                false => self.decided_now((*tenant, instance)),
            };
            !matches!(decides, Decides::Nothing)
        })
    }

    /// The decisions that are still to be made before the month can be closed.
    pub(crate) fn shares_due(&self) -> BTreeSet<(AppInstanceNo, Currency)> {
        let currencies: BTreeSet<Currency> = self.ledger.payers.keys().map(|(_, currency)| *currency).collect();
        let all = self.apps.instances.keys().flat_map(|app| currencies.iter().map(|currency| (*app, *currency)));
        all.filter(|(app, currency)| self.shares_of(*app, *currency).is_some()).collect()
    }

    pub(crate) fn check_all_shared(&self) -> Checked {
        let due = self.shares_due();
        demand!(due.is_empty(), "shares-pending", "{due:?}");
        Ok(())
    }

    pub(crate) fn ledger_shared(
        &mut self,
        command: &mut Command,
        record: &Record,
        shared: &LedgerShared,
        was_foretold: bool,
    ) -> Checked {
        let LedgerShared { app_instance, currency, .. } = *shared;
        if !was_foretold {
            demand!(!record.continues, "shares", "within another decision");
            let partial = self.ledger.partial();
            demand!(partial.is_none(), "posting-incomplete", "{partial:?}");
            let expected = found!(self.shares_of(app_instance, currency), "shares", "nothing is to be shared");
            let line = |(identity, body)| Line::new(Body::from(body), identity, record.stamp);
            let mut script: Script = expected.into_iter().map(line).collect();
            script.remove(0).check(record)?;
            command.script = script.into();
        }
        self.ledger.take(record)?;
        self.count_postings(record)?;
        if command.script.is_empty() {
            let left = self.ledger.balances().get(&(Account::SharedRuntime(app_instance), currency)).copied();
            demand!(left.is_none(), "shares", "{left:?} is left on the account of {app_instance}");
        }
        Ok(())
    }

    pub(crate) fn foretell_share(&self, app: AppInstanceNo, currency: Currency) -> Told {
        let Some(records) = self.shares_of(app, currency) else {
            // The rules do not say what comes first.
            let mut faults = vec!["nothing_to_share", "posting_incomplete"];
            faults.extend((!self.apps.instances.contains_key(&app)).then_some("unknown_app_instance"));
            faults.extend(self.ledger.opened.is_none().then_some("ledger_not_open"));
            faults.extend(self.ledger.closing.is_none().then_some("no_period_closing"));
            faults.retain(|code| *code != "posting_incomplete" || self.ledger.partial().is_some());
            return unless(faults, || Ok(Foretold::Open));
        };
        if self.ledger.partial().is_some() {
            return Err("posting_incomplete");
        }
        let tenant = records.first().and_then(|(identity, _)| identity.tenant);
        Ok(Foretold::Sealed { tenant, bodies: records.into_iter().map(|(_, record)| record.into()).collect() })
    }

    /// Neither invoices nor the end of the month come before all shares. Only that is foretold.
    pub(crate) fn foretell_end_of_month(&self, others: &[&'static str]) -> Told {
        if self.shares_due().is_empty() {
            return Ok(Foretold::OpenBut("shares_pending"));
        }
        Ok(Foretold::RefusedAs(others.iter().copied().chain(["shares_pending"]).collect()))
    }

    /// Nothing is posted into a month of which something was shared or invoiced. Only that is foretold.
    pub(crate) fn foretell_posting(&self, as_of_size: u64) -> Told {
        match self.ledger.closing {
            Some((month, cut)) if cut == as_of_size => {
                let is_shared = self.ledger.shared.iter().any(|(_, _, of)| *of == month);
                if is_shared || self.ledger.invoices.iter().any(|one| one.month == month) {
                    // Whatever else is wrong may be said first.
                    return Ok(Foretold::RefusedAs(POSTING_FAULTS.to_vec()));
                }
                Ok(Foretold::OpenBut("period_is_closing"))
            }
            _ => Ok(Foretold::Open),
        }
    }
}

/// What a posting is refused for.
const POSTING_FAULTS: &[&str] = &[
    "period_is_closing",
    "stale_posting",
    "posting_incomplete",
    "hour_out_of_order",
    "bad_posting_lines",
    "bad_exact_amount",
    "unknown_project",
    "unknown_tenant",
    "amount_too_large",
    "period_closed",
];

/// What invoices are refused for.
pub(crate) const INVOICE_FAULTS: &[&str] =
    &["posting_incomplete", "invoice_mismatch", "invoice_exists", "unknown_tenant"];

/// What the end of a month is refused for.
pub(crate) const CLOSE_FAULTS: &[&str] = &["posting_incomplete", "invoice_missing", "no_period_closing"];

#[cfg(test)]
mod tests {
    use super::*;

    /// The first among equal remainders, also of what is given back.
    #[test]
    fn steps_are_divided_by_the_largest_remainders() {
        for (pool, weights, shares) in [
            (10, vec![1, 1, 1], vec![4, 3, 3]),
            (-10, vec![1, 1, 1], vec![-4, -3, -3]),
            (11, vec![1, 1, 1], vec![4, 4, 3]),
            (5, vec![1, 3], vec![1, 4]),
            (-7, vec![0, 5, 2], vec![0, -5, -2]),
            (1, vec![2, 3], vec![0, 1]),
        ] {
            assert_eq!(divided(pool, &weights), shares, "{pool} by {weights:?}");
        }
    }
}
