//! Usage that the runtimes of apps report (SEMANTICS 13, "Usage records"): what is accepted, and how it counts against
//! ceilings and prepaid credit.
//!
//! Every record is kept for ever. Where a report has several faults, the rules do not say which one is named: each of
//! them is expected.

use crate::apps::{those, unless};
use crate::booking::{PER_BILLIONTH, Part, measure_of, parts};
use crate::ceiling::{Ceiling, Scope};
use crate::command::Command;
use crate::foretell::{Foretold, Told};
use crate::ledger::Fraction;
use crate::oracle::Oracle;
use crate::prepaid::AccountKey;
use crate::violation::{Checked, demand, found};
use crate::world::World;
use ethnum::{I256, U256};
use leasehold_model::app::UPTIME_HOURS;
use leasehold_model::body::{AppInstancePut, ReplacedUsage, UsageRecorded, UsageReport};
use leasehold_model::ledger::{ExactSteps, Item, LineKey, Magnitude};
use leasehold_model::limits::{LATE_WINDOW, USAGE_PER_MONTH_MAX, USAGE_QUANTITY_MAX, USAGE_SPAN_MAX};
use leasehold_model::rate::Currency;
use leasehold_model::{
    Amount, AppInstanceNo, AppTypeNo, Body, ControlPlaneScope, Instant, Month, Name, Priority, ProjectNo, Record,
    TenantNo, UnitMeasure, UsageCharge, UserNo,
};
use std::collections::{BTreeMap, BTreeSet};

/// Usage that a runtime wants to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageWish {
    /// Whose usage it is.
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub user: Option<UserNo>,
    pub report: UsageReport,
    /// The number of records in which the sender has looked for the IDs.
    pub known_to: u64,
}

/// A usage record that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) sequence: u64,
    pub(crate) stamp: Instant,
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) user: Option<UserNo>,
    pub(crate) recorded: UsageRecorded,
    /// The app of the instance, which may be deleted later.
    instance: AppInstancePut,
    /// How many prices were known when it was accepted.
    prices_known: usize,
}

impl Accepted {
    pub(crate) fn app_type(&self) -> AppTypeNo {
        self.instance.app_type
    }
}

/// What the records say about reported usage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    pub(crate) accepted: Vec<Accepted>,
    /// Who was posted something, up to which hour, and from how many records.
    posted: Vec<((ProjectNo, Currency), Instant, u64)>,
    /// The hours of which all payers were posted, and from how many records.
    settled: Vec<(Instant, u64)>,
    /// What each posting contains of usage units, in 10^-27 of the currency, and what those that lack parts contain so far.
    unit_costs: Vec<((ProjectNo, Currency), I256)>,
    partial: BTreeMap<(ProjectNo, Currency), I256>,
}

/// Whether something that ended at an instant is still within the time of late records.
fn is_recent(end: Instant, now: Instant) -> bool {
    now <= end.saturating_add(LATE_WINDOW)
}

impl World {
    /// The last record with an ID.
    fn ever_with_id(&self, report: &UsageReport, id: &Name) -> Option<&Accepted> {
        let same = |known: &&Accepted| {
            let of = &known.recorded.report;
            (of.reporter, &of.source, &of.id) == (report.reporter, &report.source, id)
        };
        self.reports.accepted.iter().rfind(same)
    }

    /// The last record with an ID, if the ID is remembered.
    fn usage_with_id(&self, report: &UsageReport, id: &Name, now: Instant) -> Option<&Accepted> {
        self.ever_with_id(report, id).filter(|known| is_recent(known.recorded.report.to, now))
    }

    /// The record that supersedes another one.
    fn superseded_by(&self, sequence: u64) -> Option<u64> {
        let names = |known: &&Accepted| known.recorded.replaces.as_ref().is_some_and(|old| old.sequence == sequence);
        self.reports.accepted.iter().find(names).map(|known| known.sequence)
    }

    /// Those that count.
    pub(crate) fn newest_usage(&self) -> impl Iterator<Item = &Accepted> {
        self.reports.accepted.iter().filter(|known| self.superseded_by(known.sequence).is_none())
    }

    /// The app instance, as far as it exists for the tenant whose usage it is, and for the one that reports.
    fn instance_for(&self, wish: &UsageWish) -> Option<&AppInstancePut> {
        let (of, put) = self.apps.instances.get(&wish.report.app_instance)?;
        let may_report = wish.report.reporter.is_none_or(|reporter| reporter == *of);
        (may_report && (*of == wish.tenant || put.scope == ControlPlaneScope::Platform)).then_some(put)
    }

    /// What is wrong with what the report says of whom, when, and how much.
    fn faults_of_report(&self, wish: &UsageWish, now: Instant) -> Vec<&'static str> {
        let report = &wish.report;
        let instance = self.instance_for(wish);
        let measure = measure_of(report.unit, &self.apps.units);
        let app = instance.and_then(|found| self.apps.types.get(&found.app_type));
        let of_owner = instance.is_some_and(|found| match found.scope {
            ControlPlaneScope::Project => report.control_plane || !self.is_of_caller(found, wish.tenant),
            ControlPlaneScope::Tenant => report.control_plane,
            ControlPlaneScope::Platform => false,
        });
        let excluded = |found: &AppInstancePut| !self.is_unit_accepted(found, wish.tenant, report.unit);
        let own_project = self.projects.get(&wish.project).is_some_and(|found| found.tenant == wish.tenant);
        let own_user = |user| self.users.get(&user).is_some_and(|found| found.tenant == wish.tenant);
        those(&[
            (!self.tenants.contains_key(&wish.tenant), "unknown_tenant"),
            (!own_project, "unknown_project"),
            (wish.user.is_some_and(|user| !own_user(user)), "unknown_user"),
            (instance.is_none(), "unknown_app_instance"),
            (measure.is_none(), "unknown_usage_unit"),
            (app.is_some_and(|app| !app.units.contains(report.unit)), "unit_not_enabled"),
            (instance.is_some_and(excluded), "unit_not_accepted"),
            (of_owner && instance.is_some_and(|found| found.project != wish.project), "usage_of_owner"),
            (report.quantity > USAGE_QUANTITY_MAX, "usage_quantity_too_large"),
            (report.to < report.from, "usage_ends_first"),
            (measure == Some(UnitMeasure::Time) && report.to <= report.from, "no_usage_time"),
            (report.to >= now, "usage_in_future"),
            (report.to > report.from.saturating_add(USAGE_SPAN_MAX), "usage_too_long"),
            (!is_recent(report.to, now), "too_late"),
        ])
    }

    /// What is wrong with the attachment and the allocation. The rules do not say what the fault is called if the
    /// attachment does not lend to the instance.
    fn faults_of_lent_usage(&self, wish: &UsageWish, now: Instant) -> Vec<&'static str> {
        let (report, tenant) = (&wish.report, wish.tenant);
        let needs_both = report.attachment.is_some() != report.allocation.is_some();
        let mut faults = those(&[(needs_both, "lent_usage_needs_both")]);
        if let Some(number) = report.attachment {
            let lives = self.apps.attachments.get(&number).map(|(of, made, _)| (of, made));
            let ended = self.apps.ended.get(&number).filter(|(.., at)| is_recent(*at, now));
            let known = lives.or(ended.map(|(of, made, _)| (of, made)));
            let lends = known.is_some_and(|(of, made)| *of == tenant && made.app_instance == report.app_instance);
            if !lends {
                faults.extend(["unknown_attachment", "attachment_mismatch"]);
            }
            if let (Some((_, made)), Some(allocation)) = (known, report.allocation) {
                faults.extend(self.faults_of_named(made, allocation, wish.known_to));
            }
        }
        faults
    }

    /// What is wrong with the ID that is superseded.
    fn faults_of_superseding(&self, wish: &UsageWish, now: Instant) -> Vec<&'static str> {
        let Some(id) = &wish.report.supersedes else { return Vec::new() };
        let Some(old) = self.usage_with_id(&wish.report, id, now) else {
            // Whoever has not looked far enough may be told so first, also where the ID would be found to be forgotten.
            let behind = self.ever_with_id(&wish.report, id).is_some_and(|old| old.sequence >= wish.known_to);
            return those(&[(true, "unknown_usage_record"), (behind, "usage_ids_behind")]);
        };
        let of = &old.recorded.report;
        let other = (of.unit, of.app_instance) != (wish.report.unit, wish.report.app_instance);
        let behind = old.sequence >= wish.known_to;
        let mut faults = those(&[
            (behind, "usage_ids_behind"),
            (self.superseded_by(old.sequence).is_some(), "usage_superseded"),
            (old.tenant != wish.tenant, "supersedes_other_tenant"),
        ]);
        if other {
            // The rules do not say what this fault is called.
            faults.extend(["unknown_usage_record", "usage_superseded"]);
        }
        faults
    }

    /// What a project used of a unit of an instance in the month of the report, if it is accepted.
    fn used_in_month(&self, wish: &UsageWish, replaced: Option<u64>) -> u128 {
        let report = &wish.report;
        let same = |known: &&Accepted| {
            let of = &known.recorded.report;
            known.project == wish.project
                && (of.app_instance, of.unit) == (report.app_instance, report.unit)
                && Month::of(of.to) == Month::of(report.to)
                && Some(known.sequence) != replaced
        };
        self.newest_usage().filter(same).map(|known| known.recorded.report.quantity.0).sum::<u128>() + report.quantity.0
    }

    fn faults_of_usage(&self, wish: &UsageWish, now: Instant) -> Vec<&'static str> {
        let mut faults = self.faults_of_report(wish, now);
        faults.extend(self.faults_of_lent_usage(wish, now));
        faults.extend(self.faults_of_superseding(wish, now));
        let taken = self.usage_with_id(&wish.report, &wish.report.id, now).is_some();
        let replaced = self.replaced_by(wish, now).map(|old| old.sequence);
        let too_much = self.used_in_month(wish, replaced) > USAGE_PER_MONTH_MAX;
        faults.extend(those(&[(taken, "usage_id_taken"), (too_much, "too_much_usage")]));
        faults
    }

    fn replaced_by(&self, wish: &UsageWish, now: Instant) -> Option<ReplacedUsage> {
        let old = self.usage_with_id(&wish.report, wish.report.supersedes.as_ref()?, now)?;
        let of = &old.recorded.report;
        Some(ReplacedUsage {
            sequence: old.sequence,
            project: old.project,
            quantity: of.quantity,
            from: of.from,
            to: of.to,
            control_plane: of.control_plane,
            attachment: of.attachment,
            charge: old.recorded.charge,
        })
    }

    /// The project that was credited with what the superseded record cost.
    fn replaced_creditor(&self, wish: &UsageWish, now: Instant) -> Option<ProjectNo> {
        let old = self.usage_with_id(&wish.report, wish.report.supersedes.as_ref()?, now)?;
        old.recorded.creditor
    }

    /// Who is credited with work on a runtime that a tenant shares, if it is charged: the source project of the
    /// attachment, or else the owner of the runtime. Its own work is not charged.
    fn creditor_of(&self, wish: &UsageWish, instance: &AppInstancePut) -> Option<ProjectNo> {
        let lent = wish.report.attachment.map(|number| {
            let lives = self.apps.attachments.get(&number).map(|(_, made, _)| made);
            lives.or_else(|| self.apps.ended.get(&number).map(|(_, made, _)| made))
        });
        let creditor = match lent {
            Some(made) => made.expect("it lends to the instance").source_project,
            None => instance.project,
        };
        let is_billed = self.is_work_billed(instance, wish.tenant, wish.report.unit);
        let lives = self.projects.contains_key(&creditor);
        (is_billed && lives && creditor != wish.project).then_some(creditor)
    }

    /// The record of a report without faults.
    fn usage_record_of(&self, wish: &UsageWish, instance: &AppInstancePut, now: Instant) -> UsageRecorded {
        let is_work = instance.scope == ControlPlaneScope::Tenant && !wish.report.control_plane;
        let is_unsubmitted = is_work && wish.user.is_none() && wish.project == instance.project;
        // A worker that is up is no job, so nobody is missing.
        let no_submitter = is_unsubmitted && wish.report.unit != UPTIME_HOURS;
        let creditor = (is_work && !is_unsubmitted).then(|| self.creditor_of(wish, instance)).flatten();
        let is_billed = !is_work || creditor.is_some();
        UsageRecorded {
            report: wish.report.clone(),
            charge: if is_billed { UsageCharge::Billed } else { UsageCharge::Reported },
            no_submitter,
            replaces: self.replaced_by(wish, now),
            creditor,
            replaced_creditor: self.replaced_creditor(wish, now),
        }
    }

    pub(crate) fn foretell_usage(&self, wish: &UsageWish, now: Instant) -> Told {
        let same = |known: &&Accepted| {
            known.recorded.report == wish.report
                && (known.tenant, known.project, known.user) == (wish.tenant, wish.project, wish.user)
        };
        if let Some(first) = self.usage_with_id(&wish.report, &wish.report.id, now).filter(same) {
            return Ok(Foretold::FirstAnswer { sequence: first.sequence });
        }
        // It is too late for it, but a first answer that somebody still remembers does no harm.
        if self.reports.accepted.iter().any(|known| same(&known)) {
            return Ok(Foretold::Open);
        }
        let mut faults = self.faults_of_usage(wish, now);
        // IDs are remembered at least so long: the engine may know some for longer, and refuse them.
        if self.ever_with_id(&wish.report, &wish.report.id).is_some() {
            if faults.is_empty() {
                return Ok(Foretold::Open);
            }
            faults.push("usage_id_taken");
        }
        unless(faults, || {
            let instance = self.instance_for(wish).expect("it has no fault");
            let recorded = self.usage_record_of(wish, instance, now);
            let exceeded = self.entitlements_exceeded(wish, &recorded);
            if !exceeded.is_empty() {
                return self.foretell_refused_usage(wish, exceeded);
            }
            let warnings = self.warnings_after(wish, &recorded);
            let tenant = Some(wish.tenant);
            // The rules for records check several warnings, which come in any order.
            if warnings.len() > 1 {
                return Ok(Foretold::OneOf { tenant, bodies: vec![recorded.into()] });
            }
            let bodies = [Body::from(recorded)].into_iter().chain(warnings.into_iter().map(Body::from)).collect();
            Ok(Foretold::Sealed { tenant, bodies })
        })
    }

    /// The record of a report, or what is wrong with that; entitlements are not looked at.
    pub(crate) fn usage_record_without_fault(
        &self,
        wish: &UsageWish,
        now: Instant,
    ) -> Result<UsageRecorded, Vec<&'static str>> {
        let faults = self.faults_of_usage(wish, now);
        match self.instance_for(wish) {
            Some(instance) if faults.is_empty() => Ok(self.usage_record_of(wish, instance, now)),
            _ => Err(faults),
        }
    }

    pub(crate) fn usage_recorded(
        &mut self,
        command: &mut Command,
        record: &Record,
        recorded: &UsageRecorded,
    ) -> Checked {
        let tenant = found!(record.identity.tenant, "usage", "without a tenant");
        let project = found!(record.identity.project, "usage", "without a project");
        let (user, report) = (record.identity.user, recorded.report.clone());
        let wish = UsageWish { tenant, project, user, report, known_to: record.sequence };
        let faults = self.faults_of_usage(&wish, record.stamp);
        demand!(faults.is_empty(), "usage", "must be refused: {faults:?}");
        let instance = self.instance_for(&wish).expect("it has no fault").clone();
        let expected = self.usage_record_of(&wish, &instance, record.stamp);
        demand!(*recorded == expected, "usage", "{recorded:?} instead of {expected:?}");
        let exceeded = self.entitlements_exceeded(&wish, recorded);
        demand!(exceeded.is_empty(), "entitlement-exceeded", "{exceeded:?}");
        command.warnings.extend(self.warnings_after(&wish, recorded));
        let (sequence, stamp) = (record.sequence, record.stamp);
        let (prices_known, recorded) = (self.apps.prices.len(), recorded.clone());
        self.reports.accepted.push(Accepted {
            sequence,
            stamp,
            tenant,
            project,
            user,
            recorded,
            instance,
            prices_known,
        });
        Ok(())
    }

    /// Notes what was posted, so that it no longer counts as accrued.
    pub(crate) fn follow_usage_postings(&mut self, record: &Record) {
        if let (Body::LedgerPosted(posted), Some(project)) = (&record.body, record.identity.project) {
            let payer = (project, posted.currency);
            let units = posted.lines.iter().filter(|line| matches!(line.key.item, Item::Unit(_)));
            let parts = self.reports.partial.entry(payer).or_insert(I256::ZERO);
            *parts += units.map(|line| unit_cost(&line.exact)).sum::<I256>();
            if posted.complete {
                self.reports.unit_costs.push((payer, *parts));
                *parts = I256::ZERO;
                self.reports.posted.push((payer, posted.through, posted.as_of_size));
            }
        } else if let Body::HourSettled(settled) = &record.body {
            self.reports.settled.push((settled.through, settled.as_of_size));
        }
    }

    /// The parts of a billed record in one currency, by the prices that were known when it was accepted.
    fn billed_parts(&self, known: &Accepted, currency: Currency) -> Vec<Part<'_>> {
        let report = &known.recorded.report;
        let measure =
            measure_of(report.unit, &self.apps.units).filter(|_| known.recorded.charge == UsageCharge::Billed);
        let prices = &self.apps.prices[..known.prices_known];
        let all = measure.map_or(Vec::new(), |measure| parts(report, measure, known.instance.app_type, prices));
        all.into_iter().filter(|part| part.is_in(currency)).collect()
    }

    /// What accepted usage counts under a ceiling: the cost of each record is rounded up.
    pub(crate) fn spent_by_usage(&self, (project, app): Scope, ceiling: &Ceiling) -> Amount {
        let counts = |known: &&Accepted| {
            let of = &known.recorded.report;
            known.project == project
                && app.is_none_or(|app| app == of.app_instance)
                && known.sequence > ceiling.put_by
                && of.to >= ceiling.since
        };
        let cost = |known: &Accepted| Amount(rounded_up(&self.billed_parts(known, ceiling.put.currency)));
        self.newest_usage().filter(counts).map(cost).sum()
    }

    /// Whether a record was posted for a payer, as of a record that may supersede it.
    fn is_posted(&self, payer: (ProjectNo, Currency), part: &Part<'_>, by: u64) -> bool {
        let covers = |(of, through, size): &((ProjectNo, Currency), Instant, u64)| {
            *of == payer && part.hour < *through && by < *size
        };
        let settles = |(through, size): &(Instant, u64)| part.hour < *through && by < *size;
        self.reports.posted.iter().any(covers) || self.reports.settled.iter().any(settles)
    }

    /// What the accepted usage of an account's projects costs, less what was posted for it; also what was accepted before
    /// the account was opened. The sum of each project is rounded up (U5).
    pub(crate) fn accrued_by_usage(&self, key: AccountKey) -> i128 {
        let mut sums = self.unposted_sums(key.currency);
        sums.retain(|project, _| self.uses_account(*project, key));
        let per = I256::from(PER_BILLIONTH);
        // Division rounds towards zero, which is up for what is to be given back.
        let up = |exact: I256| {
            let more = if exact > I256::ZERO { per - I256::ONE } else { I256::ZERO };
            ((exact + more) / per).as_i128()
        };
        sums.into_values().map(up).sum()
    }

    /// What accepted usage costs each project, less what was posted for it, and what it is credited with.
    fn unposted_sums(&self, currency: Currency) -> BTreeMap<ProjectNo, I256> {
        let mut sums: BTreeMap<ProjectNo, I256> = BTreeMap::new();
        let Some(opened) = self.ledger.opened else { return sums };
        for known in &self.reports.accepted {
            let old = known.recorded.replaces.as_ref().map(|old| old.sequence);
            let old = old.and_then(|old| self.reports.accepted.iter().find(|other| other.sequence == old));
            let both = [(Some(known), I256::ONE), (old, I256::MINUS_ONE)];
            for (of, sign) in both.into_iter().filter_map(|(of, sign)| Some((of?, sign))) {
                // Hours before the opening are never posted.
                let parts = self.billed_parts(of, currency).into_iter().filter(|part| part.hour >= opened);
                let cost = sign * parts.map(|part| part.cost().as_i256()).sum::<I256>();
                *sums.entry(of.project).or_insert(I256::ZERO) += cost;
                if let Some(creditor) = of.recorded.creditor {
                    *sums.entry(creditor).or_insert(I256::ZERO) -= cost;
                }
            }
        }
        for (payer, cost) in &self.reports.unit_costs {
            if payer.1 == currency {
                *sums.entry(payer.0).or_insert(I256::ZERO) -= *cost;
            }
        }
        sums
    }

    /// Whether a project has billed usage that is still to be posted, or is to be given back what was; also as the
    /// creditor of work.
    pub(crate) fn has_unposted_usage(&self, project: ProjectNo) -> bool {
        let is_of = |known: &&Accepted| known.project == project || known.recorded.creditor == Some(project);
        self.reports.accepted.iter().filter(is_of).any(|known| self.is_unposted(known, project))
    }

    /// The same of all projects that used an app instance.
    pub(crate) fn has_unposted_usage_on(&self, app: AppInstanceNo) -> bool {
        let of_app = |known: &&Accepted| known.recorded.report.app_instance == app;
        self.reports.accepted.iter().filter(of_app).any(|known| {
            self.is_unposted(known, known.project)
                || known.recorded.creditor.is_some_and(|creditor| self.is_unposted(known, creditor))
        })
    }

    fn is_unposted(&self, known: &Accepted, payer: ProjectNo) -> bool {
        let Some(opened) = self.ledger.opened else { return false };
        let currencies: Vec<Currency> = self.apps.prices.iter().map(|put| put.currency).collect();
        currencies.iter().any(|currency| {
            let parts = self.billed_parts(known, *currency);
            let due = |part: &Part<'_>| part.quantity > 0 && part.hour >= opened;
            let posted = |part: &Part<'_>, by: u64| self.is_posted((payer, *currency), part, by);
            let waits = |part: &Part<'_>| match self.superseded_by(known.sequence) {
                None => !posted(part, known.sequence),
                Some(by) => posted(part, known.sequence) && !posted(part, by),
            };
            parts.iter().any(|part| due(part) && waits(part))
        })
    }

    /// Whether usage was ever reported for an app instance.
    pub(crate) fn has_usage_on(&self, app: AppInstanceNo) -> bool {
        self.reports.accepted.iter().any(|known| known.recorded.report.app_instance == app)
    }
}

impl Oracle {
    /// Whether postings lack something of what a project used, or is credited with.
    pub fn has_usage_to_post(&self, project: ProjectNo) -> bool {
        let currencies = self.world.apps.prices.iter().map(|put| put.currency);
        currencies.into_iter().any(|of| self.world.unposted_sums(of).get(&project).is_some_and(|sum| *sum != 0))
    }

    /// The lines of all billed usage that counts, one for each part and payer: with the payer, the usage and the exact
    /// cost. The creditor's are negative.
    pub fn unit_lines(&self) -> Vec<((ProjectNo, Currency), LineKey, i128, ExactSteps)> {
        let mut lines = Vec::new();
        let currencies: BTreeSet<Currency> = self.world.apps.prices.iter().map(|put| put.currency).collect();
        for known in self.world.newest_usage() {
            let report = &known.recorded.report;
            for currency in currencies.iter().copied() {
                for part in self.world.billed_parts(known, currency) {
                    let key = LineKey {
                        hour: part.hour,
                        project: known.project,
                        pool: LineKey::NO_POOL,
                        item: Item::Unit(report.unit),
                        priority: Priority::Standard,
                        priced: Priority::Standard,
                        tag: None,
                        app_instance: Some(report.app_instance),
                        attachment: report.attachment,
                        control_plane: report.control_plane,
                        card: part.price.map(|put| put.price_no),
                    };
                    let usage = i128::try_from(part.quantity).expect("below 2^127");
                    let exact = |negative| Fraction::of_parts(negative, part.cost(), U256::new(10).pow(21)).write();
                    let creditor = known.recorded.creditor;
                    lines.extend(creditor.map(|of| ((of, currency), key.clone(), -usage, exact(true))));
                    lines.push(((known.project, currency), key, usage, exact(false)));
                }
            }
        }
        lines
    }
}

/// The cost on a line of a usage unit, in 10^-27 of the currency.
fn unit_cost(exact: &ExactSteps) -> I256 {
    let number =
        |magnitude: &Magnitude| magnitude.digits().iter().fold(U256::ZERO, |sum, digit| sum * 256 + U256::from(*digit));
    let size = number(&exact.numerator) * (U256::new(10).pow(21) / number(&exact.denominator));
    if exact.negative { -size.as_i256() } else { size.as_i256() }
}

/// The cost of parts in one currency, rounded up to a billionth.
fn rounded_up(parts: &[Part<'_>]) -> u128 {
    let exact: U256 = parts.iter().map(Part::cost).sum();
    ((exact + U256::from(PER_BILLIONTH - 1)) / U256::from(PER_BILLIONTH)).as_u128()
}
