//! Random usage records of app runtimes, sent as by a server that has asked its books for the IDs. They are drawn from
//! dice of their own: other draws would change what every kept seed does.
//!
//! There are no books here: what they would know is looked up in the first records of the journal. Sometimes those are
//! fewer than there are, as if the books were behind, or as if two reports with the same ID had come at once.

use crate::entitlements;
use crate::requests::{name, small};
use crate::shares;
use leasehold_engine::command::{NamedAllocation, PutUnitPrice, RecordUsage};
use leasehold_engine::{AppInstance, Command, State};
use leasehold_model::body::{Attribution, ReplacedUsage, UsageRecorded, UsageRefused, UsageReport};
use leasehold_model::limits::{LATE_WINDOW, USAGE_QUANTITY_MAX, USAGE_SPAN_MAX};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, AttachmentNo, Body, ControlPlaneScope, Identity, Instant, Month, Name,
    ProjectNo, Record, TenantNo, UnitNo, UnitQuantity, UserNo,
};
use leasehold_oracle::Dice;
use std::collections::BTreeSet;

/// The seconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// A usage record in the books.
#[derive(Clone, Copy)]
struct Known<'a> {
    record: &'a Record,
    recorded: &'a UsageRecorded,
}

/// Often a report that an entitlement is about. `records` are those that are known to be durable.
pub(crate) fn aimed(state: &State, records: &[Record], now: Instant) -> Option<(Identity, Command)> {
    let dice = Dice::new(now.0.rotate_left(13) ^ state.size() << 23 ^ 0xa13ed);
    let mut drawn = Drawn { state, records, now, dice };
    let usage = drawn.dice.one_in(2).then(|| drawn.at_a_limit())??;
    drawn.sent(usage).map(by_reporter)
}

/// Work on a shared runtime, often in the month before, at times.
pub(crate) fn work(state: &State, records: &[Record], now: Instant, often: bool) -> Vec<(Identity, Command)> {
    let dice = Dice::new(now.0.rotate_left(19) ^ state.size() << 29 ^ 0x3043c);
    let mut drawn = Drawn { state, records, now, dice };
    let costly = shares::costly(records);
    // Mostly where its cost may be shared: elsewhere it would crowd out other work.
    let count = match (often, costly.is_empty()) {
        (true, _) => drawn.dice.below(4),
        (false, true) => u64::from(drawn.dice.one_in(12)),
        (false, false) => drawn.dice.below(3),
    };
    let mut all = Vec::new();
    for _ in 0..count {
        let usage = drawn.shared_work(&costly);
        all.extend(usage.and_then(|usage| drawn.sent(usage)).map(by_reporter));
    }
    all
}

fn by_reporter(usage: RecordUsage) -> (Identity, Command) {
    let identity = Identity { tenant: usage.report.reporter, ..Identity::default() };
    (identity, Command::RecordUsage(usage))
}

/// A report or a price of a usage unit, at times. `records` are those that are known to be durable.
pub(crate) fn any(state: &State, records: &[Record], now: Instant) -> Option<(Identity, Command)> {
    let dice = Dice::new(now.0.rotate_left(31) ^ state.size() << 21 ^ 0x05a6e);
    let mut drawn = Drawn { state, records, now, dice };
    if !drawn.dice.one_in(2) {
        return None;
    }
    if drawn.dice.one_in(6) {
        return drawn.price().map(|command| (Identity::default(), command));
    }
    drawn.usage().map(by_reporter)
}

fn known(record: &Record) -> Option<Known<'_>> {
    if let Body::UsageRecorded(recorded) = &record.body { Some(Known { record, recorded }) } else { None }
}

struct Drawn<'a> {
    state: &'a State,
    records: &'a [Record],
    now: Instant,
    dice: Dice,
}

impl<'a> Drawn<'a> {
    fn all_usage(&self) -> Vec<Known<'a>> {
        self.records.iter().filter_map(known).collect()
    }

    /// What the books find under an ID, as of so many records: none if the ID is forgotten.
    fn find(&self, report: &UsageReport, id: &Name, size: u64) -> Option<Known<'a>> {
        let within = self.records.iter().filter(|record| record.sequence < size).filter_map(known);
        let mut same = within.filter(|known| {
            let of = &known.recorded.report;
            (of.reporter, &of.source, &of.id) == (report.reporter, &report.source, id)
        });
        let recent = |known: &Known<'_>| self.now <= known.recorded.report.to.saturating_add(LATE_WINDOW);
        same.next_back().filter(recent)
    }

    /// Whether the books know a record that supersedes another.
    fn is_superseded(&self, sequence: u64, size: u64) -> bool {
        let mut within = self.records.iter().filter(|record| record.sequence < size).filter_map(known);
        within.any(|known| known.recorded.replaces.as_ref().is_some_and(|old| old.sequence == sequence))
    }

    /// A price of a unit that some app reports.
    fn price(&mut self) -> Option<Command> {
        let apps: Vec<_> = self.state.app_types().collect();
        if apps.is_empty() {
            return None;
        }
        let app = *self.dice.pick(&apps);
        let units: Vec<UnitNo> = app.units.iter().collect();
        if units.is_empty() {
            return None;
        }
        let from = match self.dice.below(4) {
            0 => Some(Instant(self.now.0 + self.dice.below(100_000_000_000))),
            1 => Some(Instant(self.now.0 + self.dice.below(4 * DAY))),
            _ => None,
        };
        Some(Command::PutUnitPrice(PutUnitPrice {
            unit: *self.dice.pick(&units),
            app_type: self.dice.one_in(2).then_some(app.number),
            currency: Currency::new(if self.dice.one_in(5) { "CHF" } else { "EUR" }).expect("three letters"),
            price: Decimal(if self.dice.one_in(8) { 0 } else { 1 + self.dice.below(1 << 32) }),
            from,
        }))
    }

    fn some_instance(&mut self) -> Option<&'a AppInstance> {
        let known: Vec<&AppInstance> = self.state.app_instances_after(None).collect();
        // What is billed counts for entitlements, and policies have most to say about the runtimes of single projects.
        let billed: Vec<&AppInstance> =
            known.iter().copied().filter(|found| found.scope != ControlPlaneScope::Tenant).collect();
        let from = if billed.is_empty() || self.dice.one_in(2) { known } else { billed };
        (!from.is_empty()).then(|| *self.dice.pick(&from))
    }

    /// Whether a policy may attribute usage to the project that asked for it.
    fn may_be_of_caller(&self, instance: &AppInstance) -> bool {
        self.state
            .app_policies()
            .any(|put| put.of.app_type == instance.app_type && put.attribution == Some(Attribution::Caller))
    }

    fn projects(&self, tenant: Option<TenantNo>) -> Vec<(ProjectNo, TenantNo)> {
        let all = self.state.projects().map(|(number, project)| (number, project.tenant));
        all.filter(|(_, of)| tenant.is_none_or(|tenant| tenant == *of)).collect()
    }

    /// When it was used: mostly just now, sometimes long ago, too long, or not yet.
    fn interval(&mut self) -> (Instant, Instant) {
        let (now, dice) = (self.now.0, &mut self.dice);
        let back = match dice.below(20) {
            0..6 => 0,
            6..9 => dice.below(100_000_000_000),
            9..12 => now % 3_600_000_000_000,
            12 | 13 => dice.below(3 * DAY),
            14 | 15 => dice.below(35 * DAY),
            16 => LATE_WINDOW.0,
            17 => LATE_WINDOW.0 + 1,
            18 => LATE_WINDOW.0 - dice.below(DAY),
            _ => dice.below(40 * DAY),
        };
        let to = if dice.one_in(40) { now + 1 } else { now.saturating_sub(back) };
        let span = match dice.below(16) {
            0 => 0,
            1 => 1,
            2..6 => dice.below(100_000_000_000),
            6..10 => dice.below(3 * 3_600_000_000_000),
            10..14 => dice.below(70 * DAY),
            14 => USAGE_SPAN_MAX.0 + dice.below(2),
            _ => dice.below(400 * DAY),
        };
        let from = if dice.one_in(60) { to + dice.below(3) } else { to.saturating_sub(span) };
        (Instant(from), Instant(to))
    }

    fn quantity(&mut self) -> UnitQuantity {
        UnitQuantity(match self.dice.below(12) {
            0 => 0,
            1 => 1,
            2 if self.dice.one_in(6) => USAGE_QUANTITY_MAX.0,
            3..7 => u128::from(self.dice.below(20)) * 1_000_000_000,
            _ => u128::from(self.dice.below(40_000_000_000)),
        })
    }

    /// An attachment of the instance, or one that has ended, or any; with an allocation.
    fn lent(&mut self, instance: AppInstanceNo) -> (Option<AttachmentNo>, Option<AllocationNo>) {
        let made: Vec<AttachmentNo> = self
            .records
            .iter()
            .filter_map(|record| {
                let Body::AttachmentMade(made) = &record.body else { return None };
                (made.app_instance == instance).then_some(made.attachment)
            })
            .collect();
        if !self.dice.one_in(if made.is_empty() { 15 } else { 2 }) {
            return (None, None);
        }
        let any = AttachmentNo(self.dice.below(12));
        let attachment = if made.is_empty() || self.dice.one_in(12) { any } else { *self.dice.pick(&made) };
        let allocation = self.allocation_of(attachment);
        match self.dice.below(16) {
            0 => (Some(attachment), None),
            1 => (None, Some(allocation)),
            _ => (Some(attachment), Some(allocation)),
        }
    }

    /// An allocation that an attachment may lend, or any number.
    fn allocation_of(&mut self, attachment: AttachmentNo) -> AllocationNo {
        let drawn = self.dice.below(self.state.size());
        let made = self.records.iter().find_map(|record| {
            let Body::AttachmentMade(made) = &record.body else { return None };
            (made.attachment == attachment).then_some(made.source_project)
        });
        let of_source = self.records.iter().filter(|record| {
            let Body::AllocationSubmitted(submitted) = &record.body else { return false };
            made.is_some() && submitted.spec.source_project.or(record.identity.project) == made
        });
        let lent: Vec<u64> = of_source.map(|record| record.sequence).collect();
        let is_any = lent.is_empty() || drawn.is_multiple_of(8);
        AllocationNo(if is_any { drawn } else { lent[self.dice.index(lent.len())] })
    }

    /// What the books know of the allocation that a report names.
    fn named(&self, report: &UsageReport, size: u64) -> Option<NamedAllocation> {
        let number = report.allocation.filter(|number| number.0 < size)?;
        let record = self.records.iter().find(|record| record.sequence == number.0)?;
        let Body::AllocationSubmitted(submitted) = &record.body else { return None };
        let AllocationSpec { attachment, source_project, .. } = submitted.spec;
        Some(NamedAllocation { project: record.identity.project?, attachment, source_project })
    }

    /// A new report that is mostly right.
    fn fresh(&mut self) -> Option<RecordUsage> {
        let instance = self.some_instance()?;
        let tenant = match instance.scope {
            ControlPlaneScope::Platform => None,
            ControlPlaneScope::Project | ControlPlaneScope::Tenant => Some(instance.tenant),
        };
        let control_plane = self.dice.one_in(3);
        let of_owner = match instance.scope {
            ControlPlaneScope::Project => !self.may_be_of_caller(instance) || self.dice.one_in(3),
            ControlPlaneScope::Tenant => control_plane || self.dice.one_in(3),
            ControlPlaneScope::Platform => self.dice.one_in(3),
        };
        let mut projects = self.projects(tenant);
        projects.retain(|(project, _)| !of_owner || *project == instance.project);
        if projects.is_empty() || self.dice.one_in(20) {
            projects = vec![(ProjectNo(small(&mut self.dice, 8)), TenantNo(small(&mut self.dice, 4)))];
        }
        let (project, tenant) = *self.dice.pick(&projects);
        let tenant = if self.dice.one_in(50) { TenantNo(small(&mut self.dice, 4)) } else { tenant };
        let users = self.state.users().filter(|(_, user)| user.tenant == tenant || self.now.0.is_multiple_of(7));
        let users: Vec<UserNo> = users.map(|(number, _)| number).collect();
        let user = (!users.is_empty() && self.dice.one_in(2)).then(|| *self.dice.pick(&users));
        let enabled: Vec<UnitNo> =
            self.state.app_type(instance.app_type).map_or(Vec::new(), |app| app.units.iter().collect());
        let unit = if enabled.is_empty() || self.dice.one_in(12) {
            UnitNo(small(&mut self.dice, 70))
        } else {
            *self.dice.pick(&enabled)
        };
        let (from, to) = self.interval();
        let (attachment, allocation) = self.lent(instance.number);
        let number = if self.dice.one_in(30) { AppInstanceNo(self.dice.below(14)) } else { instance.number };
        let report = UsageReport {
            reporter: self.dice.one_in(2).then_some(instance.tenant),
            source: name(["slurm-token", "ray-token"][self.dice.index(2)]),
            id: name(&format!("use-{}", self.dice.below(60))),
            app_instance: number,
            unit,
            quantity: self.quantity(),
            from,
            to,
            correlation: u128::from(self.dice.below(9)),
            control_plane,
            attachment,
            allocation,
            supersedes: None,
        };
        Some(RecordUsage {
            tenant,
            project,
            user,
            report,
            replaces: None,
            replaced_creditor: None,
            named: None,
            known_to: 0,
        })
    }

    /// A report that supersedes another one, mostly the newest of its chain.
    fn superseding(&mut self, old: Known<'_>) -> Option<RecordUsage> {
        let fresh = self.fresh()?;
        let of = &old.recorded.report;
        let mut report = UsageReport { supersedes: Some(of.id.clone()), id: fresh.report.id.clone(), ..of.clone() };
        let identity = &old.record.identity;
        let (mut tenant, mut project) = (identity.tenant?, identity.project?);
        report.quantity = fresh.report.quantity;
        if self.dice.one_in(3) {
            (report.from, report.to) = (fresh.report.from, fresh.report.to);
        }
        match self.dice.below(12) {
            0 => report.unit = fresh.report.unit,
            1 => report.app_instance = fresh.report.app_instance,
            2 => report.supersedes = Some(fresh.report.id),
            3 => report.source = fresh.report.source,
            4 => report.control_plane = fresh.report.control_plane,
            7 => (report.attachment, report.allocation) = self.lent(report.app_instance),
            // A server does not let a record of another tenant be superseded; the engine can tell while its project exists.
            5 | 6 if fresh.tenant == tenant || self.state.project(project).is_some() => {
                (tenant, project) = (fresh.tenant, fresh.project);
            }
            _ => {}
        }
        let moves = self.state.app_instance(report.app_instance).is_some_and(|found| match found.scope {
            ControlPlaneScope::Platform => true,
            ControlPlaneScope::Tenant => !report.control_plane,
            ControlPlaneScope::Project => self.may_be_of_caller(found),
        });
        let others = self.projects(Some(tenant));
        if moves && !others.is_empty() && self.dice.one_in(3) {
            project = self.dice.pick(&others).0;
        }
        let user = identity.user.filter(|_| !self.dice.one_in(4));
        let mut usage = RecordUsage {
            tenant,
            project,
            user,
            report,
            replaces: None,
            replaced_creditor: None,
            named: None,
            known_to: 0,
        };
        entitlements::reach_a_limit(self.state, &mut usage, Some(of.quantity), &mut self.dice);
        Some(usage)
    }

    /// The same ID again, with the same content or with other content.
    fn again(&mut self, first: Known<'_>) -> Option<RecordUsage> {
        let identity = &first.record.identity;
        let mut report = first.recorded.report.clone();
        match self.dice.below(6) {
            0 => report.quantity = self.quantity(),
            1 => report.correlation += 1,
            2 => report.control_plane = !report.control_plane,
            _ => {}
        }
        let user = identity.user.filter(|_| !self.dice.one_in(8));
        Some(RecordUsage {
            tenant: identity.tenant?,
            project: identity.project?,
            user,
            report,
            replaces: None,
            replaced_creditor: None,
            named: None,
            known_to: 0,
        })
    }

    /// Usage that an entitlement is about, mostly just now.
    fn at_a_limit(&mut self) -> Option<RecordUsage> {
        let all: Vec<_> = self.state.entitlements().collect();
        let of = if all.is_empty() { None } else { Some(self.dice.pick(&all).of) }?;
        let has_unit =
            |found: &&AppInstance| self.state.app_type(found.app_type).is_some_and(|app| app.units.contains(of.unit));
        let is_used = |found: &&AppInstance| match of.app_instance {
            Some(number) => found.number == number,
            None => Some(found.project) == of.project || found.scope == ControlPlaneScope::Platform,
        };
        let fitting = self.state.app_instances_after(None).filter(has_unit).filter(is_used);
        let fitting: Vec<&AppInstance> = fitting.collect();
        let instance = if fitting.is_empty() { None } else { Some(*self.dice.pick(&fitting)) }?;
        let everybody = self.projects((instance.scope != ControlPlaneScope::Platform).then_some(instance.tenant));
        let caller =
            of.project.or((instance.scope == ControlPlaneScope::Platform).then(|| self.dice.pick(&everybody).0));
        let project = caller.unwrap_or(instance.project);
        let mut usage = self.fresh()?;
        (usage.project, usage.tenant) = (project, self.state.project(project)?.tenant);
        usage.user = None;
        let report = &mut usage.report;
        (report.app_instance, report.unit) = (instance.number, of.unit);
        (report.attachment, report.allocation) = (None, None);
        report.reporter = report.reporter.map(|_| instance.tenant);
        report.control_plane = match instance.scope {
            ControlPlaneScope::Project => project == instance.project && self.dice.one_in(3),
            ControlPlaneScope::Tenant => !self.dice.one_in(6),
            ControlPlaneScope::Platform => self.dice.one_in(3),
        };
        if !self.dice.one_in(3) {
            let back = self.dice.below(3_600_000_000_000);
            report.to = Instant(self.now.0 - 1 - back);
            report.from = Instant(report.to.0 - 1 - self.dice.below(3_600_000_000_000));
        }
        entitlements::reach_a_limit(self.state, &mut usage, None, &mut self.dice);
        Some(usage)
    }

    /// Work of some project on a shared runtime, in units of the app.
    fn shared_work(&mut self, costly: &BTreeSet<AppInstanceNo>) -> Option<RecordUsage> {
        let is_shared = |found: &&AppInstance| found.scope != ControlPlaneScope::Project;
        let mut shared: Vec<&AppInstance> = self.state.app_instances_after(None).filter(is_shared).collect();
        if shared.iter().any(|found| costly.contains(&found.number)) && !self.dice.one_in(4) {
            shared.retain(|found| costly.contains(&found.number));
        }
        let instance = if shared.is_empty() { None } else { Some(*self.dice.pick(&shared)) }?;
        let is_platform = instance.scope == ControlPlaneScope::Platform;
        let projects = self.projects((!is_platform).then_some(instance.tenant));
        let (project, tenant) = *self.dice.pick(&projects);
        let mut usage = self.fresh()?;
        (usage.project, usage.tenant) = (project, tenant);
        let users = self.state.users().filter(|(_, user)| user.tenant == tenant);
        let users: Vec<UserNo> = users.map(|(number, _)| number).collect();
        usage.user = (!users.is_empty() && !self.dice.one_in(3)).then(|| *self.dice.pick(&users));
        let enabled: Vec<UnitNo> = self.state.app_type(instance.app_type)?.units.iter().collect();
        let unit = if enabled.is_empty() { None } else { Some(*self.dice.pick(&enabled)) }?;
        let (attachment, allocation) = self.lent(instance.number);
        let report = &mut usage.report;
        report.id = name(&format!("work-{}", self.dice.below(400)));
        (report.app_instance, report.unit, report.control_plane) = (instance.number, unit, self.dice.one_in(10));
        (report.attachment, report.allocation) = (attachment, allocation);
        report.reporter = report.reporter.map(|_| instance.tenant);
        if report.control_plane && !is_platform {
            usage.project = instance.project;
        }
        // Up to the end of the last month, or a little beyond it.
        let border = Month::of(self.now).start().0;
        let since = self.now.0 - border;
        if !self.dice.one_in(4) && since > 0 && since < 30 * DAY {
            let late = if self.dice.one_in(3) { self.dice.below(since) } else { 0 };
            report.to = Instant(border + late - u64::from(late == 0) * self.dice.below(DAY / 8));
            report.from = Instant(report.to.0 - 1 - self.dice.below(DAY / 4));
        }
        Some(usage)
    }

    /// What was refused is sent again, with the same content or with other content.
    fn refused_again(&mut self, (record, refused): (&Record, &UsageRefused)) -> Option<RecordUsage> {
        let identity = &record.identity;
        let mut report = refused.report.clone();
        match self.dice.below(8) {
            0 => report.quantity = self.quantity(),
            1 => report.correlation += 1,
            _ => {}
        }
        let (tenant, project) = (identity.tenant?, identity.project?);
        Some(RecordUsage {
            tenant,
            project,
            user: identity.user,
            report,
            replaces: None,
            replaced_creditor: None,
            named: None,
            known_to: 0,
        })
    }

    /// A new report, one that supersedes another, or one that was sent before.
    fn usage(&mut self) -> Option<RecordUsage> {
        let all = self.all_usage();
        let refused: Vec<_> = self.records.iter().filter_map(entitlements::refused).collect();
        let usage = match self.dice.below(12) {
            10.. if !refused.is_empty() => {
                let latest = &refused[refused.len().saturating_sub(5)..];
                let one = *self.dice.pick(latest);
                self.refused_again(one)?
            }
            0..3 if !all.is_empty() => {
                let old = *self.dice.pick(&all);
                self.superseding(old)?
            }
            3 if !all.is_empty() => {
                let first = *self.dice.pick(&all);
                self.again(first)?
            }
            _ => {
                let mut fresh = self.fresh()?;
                entitlements::reach_a_limit(self.state, &mut fresh, None, &mut self.dice);
                fresh
            }
        };
        self.sent(usage)
    }

    /// A report as a server sends it, or none if the server can answer from the books.
    fn sent(&mut self, mut usage: RecordUsage) -> Option<RecordUsage> {
        let size = self.records.len() as u64;
        let behind = match self.dice.below(6) {
            0 => self.dice.below(40),
            1 => self.dice.below(size),
            _ => 0,
        };
        usage.known_to = size.saturating_sub(behind);
        // The books have the ID. Had they been asked a little earlier, they would not have had it.
        if let Some(first) = self.find(&usage.report, &usage.report.id, usage.known_to) {
            usage.known_to = first.record.sequence;
        }
        if let Some(id) = &usage.report.supersedes {
            let found = self.find(&usage.report, id, usage.known_to);
            if let Some(old) = found {
                let of = &old.recorded.report;
                let fits = (of.unit, of.app_instance) == (usage.report.unit, usage.report.app_instance);
                if !fits || self.is_superseded(old.record.sequence, usage.known_to) {
                    // The server refuses that by itself.
                    return None;
                }
                usage.replaces = Some(replaced(old)?);
                usage.replaced_creditor = old.recorded.creditor;
            }
        }
        usage.named = self.named(&usage.report, usage.known_to);
        Some(usage)
    }
}

fn replaced(old: Known<'_>) -> Option<ReplacedUsage> {
    let of = &old.recorded.report;
    Some(ReplacedUsage {
        sequence: old.record.sequence,
        project: old.record.identity.project?,
        quantity: of.quantity,
        from: of.from,
        to: of.to,
        control_plane: of.control_plane,
        attachment: of.attachment,
        charge: old.recorded.charge,
    })
}
