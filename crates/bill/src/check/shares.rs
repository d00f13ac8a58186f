//! Shares of the cost of control planes (SEMANTICS 9 and 12): each follows from the policy at the cut, from what projects
//! used, and from what the control plane cost.

use super::Place;
use super::chain::entry;
use super::checker::Checker;
use super::replay::Replayed;
use crate::fold::Fold;
use crate::sharing::{Rule, Runtime, Weights};
use crate::tenant::Tenant;
use leasehold_ledger::{InvoiceLineKey, shared};
use leasehold_model::body::{LedgerShared, PolicyScope, SharingMethod};
use leasehold_model::{AppInstanceNo, LineKey, Name, ProjectNo, Steps, UnitNo};
use std::collections::{BTreeMap, BTreeSet};

/// A share that was recorded for the month.
struct SharedEntry<'e> {
    sequence: u64,
    project: ProjectNo,
    shared: &'e LedgerShared,
}

impl SharedEntry<'_> {
    fn place(&self) -> Place {
        Place::Entry(entry(self.sequence, 0))
    }
}

/// How the cost of a control plane was divided: what was recorded of it, and by what, as of the first of these records.
pub(super) struct Decision<'e> {
    runtime: Option<Runtime>,
    rule: Option<Rule>,
    weights: Weights,
    /// The sum of all weights, where it can be told.
    total: Option<u128>,
    /// The projects of the tenant.
    projects: BTreeSet<ProjectNo>,
    records: Vec<SharedEntry<'e>>,
}

/// Between which amounts something lies, whatever the sign of what is divided.
type Bounds = (u128, u128);

impl Decision<'_> {
    fn new(fold: &Fold, checker: &Checker<'_>, shared: &LedgerShared) -> Self {
        let number = checker.evidence.tenant;
        let nobody = Tenant::default();
        let tenant = fold.tenants.get(&number).unwrap_or(&nobody);
        let runtime = Runtime::of(&fold.common, tenant, shared.app_instance);
        let rule = runtime.as_ref().and_then(|runtime| runtime.rule(&fold.common, (number, tenant)));
        let (weights, total) = match (&runtime, &rule) {
            (Some(runtime), Some(rule)) => runtime.weights(rule, tenant, &checker.work, shared.total_weight.0),
            _ => (Weights::new(), None),
        };
        let projects = tenant.projects.keys().copied().collect();
        Self { runtime, rule, weights, total, projects, records: Vec::new() }
    }

    fn is_own(&self) -> bool {
        self.runtime.as_ref().is_some_and(|runtime| runtime.is_own)
    }

    fn owner(&self) -> Option<ProjectNo> {
        self.runtime.as_ref().map(|runtime| runtime.app.project)
    }

    fn weight_of(&self, project: ProjectNo) -> (u128, Option<&Name>) {
        self.weights.get(&project).map_or((0, None), |(weight, tier)| (*weight, tier.as_ref()))
    }

    /// What each project of the tenant bears of a cost, apart from the owner. Where all weights are known that is one
    /// amount, and otherwise one of two: whose remainder is larger, others' weights decide.
    fn borne(&self, pool: Steps, total: u128) -> BTreeMap<ProjectNo, Bounds> {
        let weights: Vec<u128> = self.weights.values().map(|(weight, _)| *weight).collect();
        let all_known = self.total.is_some();
        let exact = if all_known { shared(pool, &weights).ok().flatten() } else { None };
        let mut borne = BTreeMap::new();
        for (place, (project, (weight, _))) in self.weights.iter().enumerate() {
            let bounds = match &exact {
                Some(parts) => (parts[place].0.unsigned_abs(), parts[place].0.unsigned_abs()),
                None if all_known => (0, 0),
                None => share_bounds(pool, *weight, total),
            };
            // What falls to a project that is gone, or to one of another tenant, stays with the owner.
            if self.projects.contains(project) && Some(*project) != self.owner() {
                borne.insert(*project, bounds);
            }
        }
        borne
    }

    /// What the owner bears: all that others do not. What those of other tenants bear is known only if there are none.
    fn borne_by_owner(&self, pool: Steps, total: u128, borne: &BTreeMap<ProjectNo, Bounds>) -> Bounds {
        let others = borne.values().fold(0, |sum: u128, (low, _)| sum.saturating_add(*low));
        let high = pool.0.unsigned_abs().saturating_sub(others);
        let own = self.owner().map_or(0, |owner| self.weight_of(owner).0);
        let is_alone = self.is_own() || total == 0 || self.is_owners();
        (if is_alone { high } else { share_bounds(pool, own, total).0.min(high) }, high)
    }

    /// Whether nobody but the owner bears anything.
    fn is_owners(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.method() == SharingMethod::Owner)
    }
}

impl<'e> Checker<'e> {
    /// Counts what a control plane cost its owner.
    pub(super) fn add_to_pool(&mut self, payer: ProjectNo, key: &LineKey, amount: Steps) {
        if let Some(app) = key.app_instance.filter(|_| key.control_plane) {
            let pool = self.pools.entry((app, payer)).or_default();
            pool.0 = pool.0.saturating_add(amount.0);
        }
    }

    /// A share of the month. Projects and limits count as they are at the first record of a decision.
    pub(super) fn take_decision(&mut self, fold: &Fold, of: (u64, ProjectNo), shared: &'e LedgerShared) {
        let (sequence, project) = of;
        let mut decision = match self.decisions.remove(&shared.app_instance) {
            Some(decision) => decision,
            None => Decision::new(fold, self, shared),
        };
        self.shared_apps.insert(shared.app_instance);
        decision.records.push(SharedEntry { sequence, project, shared });
        self.decisions.insert(shared.app_instance, decision);
    }

    pub(super) fn check_shares(&mut self, replayed: &Replayed) {
        for (app, decision) in std::mem::take(&mut self.decisions) {
            self.check_decision(app, &decision);
        }
        self.check_all_shared(replayed);
    }

    fn check_decision(&mut self, app: AppInstanceNo, decision: &Decision<'_>) {
        let Some(first) = decision.records.first() else { return };
        let Some((runtime, rule)) = decision.runtime.as_ref().zip(decision.rule.as_ref()) else {
            let why = match decision.runtime {
                None => format!("Neither the tenant nor the platform has {app}."),
                Some(_) => format!("No policy divides the cost of {app}."),
            };
            for found in &decision.records {
                self.spoil(InvoiceLineKey::of_share(found.project, found.shared));
                self.differ(found.place(), "no share", found.shared.share, why.clone());
            }
            return;
        };
        let (pool, said) = (first.shared.pool, first.shared.total_weight.0);
        let total = decision.total.unwrap_or(said);
        let borne = decision.borne(pool, total);
        let mut seen = BTreeSet::new();
        for found in &decision.records {
            let before = self.wrong_so_far();
            if !seen.insert(found.project) {
                let why = format!("The cost of {app} was shared with the project before.");
                self.differ(found.place(), "one share", "a second one", why);
            }
            self.check_rule(found, runtime, rule);
            self.check_weights(found, decision, (pool, total));
            let is_owner = found.project == runtime.app.project;
            let bounds = match is_owner {
                true if decision.rule.as_ref().is_some_and(Rule::is_not_billable) => (0, 0),
                true => decision.borne_by_owner(pool, total, &borne),
                false => borne.get(&found.project).copied().unwrap_or((0, 0)),
            };
            self.check_amounts(found, rule, is_owner, bounds);
            if self.wrong_so_far() > before {
                self.spoil(InvoiceLineKey::of_share(found.project, found.shared));
            }
        }
        // Of what is divided, everybody who bears something has a record, and so has the owner.
        let least = borne.iter().filter(|(_, (low, _))| *low > 0).map(|(project, (low, _))| (*project, *low));
        let owner = runtime.app.project;
        let owners = (decision.projects.contains(&owner) && !seen.contains(&owner)).then_some((owner, 0));
        for (project, low) in least.chain(owners).filter(|(project, _)| !seen.contains(project)) {
            let why = format!("There is no share of the cost of {app} for {project}.");
            self.differ(Place::Invoice("shares"), magnitude(low, pool), "none", why);
        }
        self.leave_shares_open(app, decision);
    }

    /// Owner and policy are those at the cut.
    fn check_rule(&mut self, found: &SharedEntry<'_>, runtime: &Runtime, rule: &Rule) {
        let SharedEntry { shared, .. } = found;
        let app = shared.app_instance;
        let owner = runtime.app.project;
        if shared.owner != owner {
            self.differ(found.place(), owner, shared.owner, format!("{app} has another owner."));
        }
        let (expected, stated) = (policy(rule.of, rule.version), policy(shared.policy, shared.version));
        if (shared.policy, shared.version) != (rule.of, rule.version) {
            let why = format!("Another policy, or version of it, decided about {app} at the cut.");
            self.differ(found.place(), expected, stated, why);
        }
        if (shared.method, shared.unit) != (rule.method(), rule.unit()) {
            let text = |method: &dyn std::fmt::Display, unit: Option<UnitNo>| {
                unit.map_or_else(|| method.to_string(), |unit| format!("{method} of {unit}"))
            };
            let expected = text(&rule.method(), rule.unit());
            let why = format!("The policy divides the cost of {app} in another way.");
            self.differ(found.place(), expected, text(&shared.method, shared.unit), why);
        }
    }

    /// The weight follows from the tenant's own records; the total weight is known, or at least the sum of its own.
    fn check_weights(&mut self, found: &SharedEntry<'_>, decision: &Decision<'_>, (pool, total): (Steps, u128)) {
        let SharedEntry { shared, project, .. } = found;
        let app = shared.app_instance;
        let (weight, tier) = decision.weight_of(*project);
        if shared.weight.0 != weight {
            let why = format!("The weight of the project for {app} is not what its records and the policy say.");
            self.differ(found.place(), weight, shared.weight.0, why);
        }
        if shared.tier.as_ref() != tier {
            let text = |tier: Option<&Name>| tier.map_or_else(|| "none".to_owned(), |tier| tier.as_str().to_owned());
            let why = format!("The project has another service tier by the policy for {app}.");
            self.differ(found.place(), text(tier), text(shared.tier.as_ref()), why);
        }
        let own = decision.weights.values().fold(0, |sum: u128, (weight, _)| sum.saturating_add(*weight));
        if shared.total_weight.0 != total.max(own) {
            let why = format!("The sum of the weights for {app} is another one.");
            self.differ(found.place(), total.max(own), shared.total_weight.0, why);
        }
        // What was divided is one amount, and that is what it cost the owner.
        let cost = decision.owner().filter(|owner| decision.projects.contains(owner)).map(|owner| {
            let cost = self.pools.get(&(app, owner)).copied();
            cost.unwrap_or_default()
        });
        if shared.pool != cost.unwrap_or(pool) {
            let why = format!("The control plane of {app} cost its owner another amount in the month.");
            self.differ_in(found.place(), cost.unwrap_or(pool), shared.pool, why);
        }
    }

    fn check_amounts(&mut self, found: &SharedEntry<'_>, rule: &Rule, is_owner: bool, (low, high): Bounds) {
        let SharedEntry { shared, .. } = found;
        let app = shared.app_instance;
        let has_sign = shared.share == Steps::ZERO || (shared.share < Steps::ZERO) == (shared.pool < Steps::ZERO);
        if !has_sign || !(low..=high).contains(&shared.share.0.unsigned_abs()) {
            let why = format!("The share of the cost of {app} is not in proportion to its weight.");
            self.differ_in(found.place(), magnitude(low, shared.pool), shared.share, why);
        }
        let booked = match (rule.entries, is_owner) {
            (false, _) => 0,
            (true, true) => shared.share.0.saturating_sub(shared.pool.0),
            (true, false) => shared.share.0,
        };
        if shared.booked.0 != booked {
            let why = "What is booked is the share, less the whole cost for the owner, and nothing if it is a report.";
            self.differ_in(found.place(), Steps(booked), shared.booked, why);
        }
    }

    fn leave_shares_open(&mut self, app: AppInstanceNo, decision: &Decision<'_>) {
        if decision.is_own() || decision.rule.as_ref().is_some_and(Rule::is_not_billable) {
            return;
        }
        let mut open = Vec::new();
        if decision.total.is_none() {
            open.push(format!("The total weight for {app}: the weights of other tenants are not in the file."));
        }
        if decision.owner().is_none_or(|owner| !decision.projects.contains(&owner)) {
            open.push(format!("What the control plane of {app} cost: its owner is a project of another tenant."));
        } else if !decision.is_owners() {
            open.push(format!("What projects of other tenants bear of the cost of {app}."));
        }
        if !open.is_empty() {
            self.partly_shared.insert(app);
        }
        open.into_iter().for_each(|what| self.leave_open(None, what));
    }

    /// What the control planes of the tenant's projects cost was shared, if a policy divides it.
    fn check_all_shared(&mut self, replayed: &Replayed) {
        let number = self.evidence.tenant;
        let Some(tenant) = replayed.tenant(number) else { return };
        let common = &replayed.fold.common;
        for ((app, payer), pool) in self.pools.clone() {
            let runtime = Runtime::of(common, tenant, app).filter(|runtime| runtime.app.project == payer);
            let Some(rule) = runtime.and_then(|runtime| runtime.rule(common, (number, tenant))) else { continue };
            let is_shared = self.shared_apps.contains(&app) || self.deleted.contains(&app);
            if pool != Steps::ZERO && !is_shared {
                let why = format!("The cost of {app} was not shared, as {} says.", policy(rule.of, rule.version));
                self.differ(Place::Invoice("shares"), pool, "none", why);
            }
        }
    }
}

/// A policy in words.
fn policy(of: PolicyScope, version: u32) -> String {
    let PolicyScope { app_type, tenant, app_instance } = of;
    let scope = match (app_instance, tenant) {
        (Some(app), _) => app.to_string(),
        (None, Some(tenant)) => format!("{app_type} for {tenant}"),
        (None, None) => app_type.to_string(),
    };
    format!("version {version} of the policy for {scope}")
}

/// An amount with the sign of what is divided.
fn magnitude(of: u128, pool: Steps) -> Steps {
    let amount = i128::try_from(of).unwrap_or(i128::MAX);
    Steps(if pool < Steps::ZERO { -amount } else { amount })
}

/// A share is rounded down, or up if its remainder is among the largest.
fn share_bounds(pool: Steps, weight: u128, total: u128) -> Bounds {
    if total == 0 || weight == 0 {
        return (0, 0);
    }
    let exact = leasehold_ledger::Amount::new(1, total);
    let product = exact.times(weight).times(pool.0.unsigned_abs());
    let (Ok((Steps(low), rest)), Ok(_)) = (product.floor(), i128::try_from(total)) else { return (0, u128::MAX) };
    let low = low.unsigned_abs();
    (low, if rest.is_zero() { low } else { low + 1 })
}
