//! Commands of runtimes that report usage (SEMANTICS 9 and 12).

use super::entitlements::EntitledBefore;
use super::{Draft, Engine};
use crate::apps::AppInstance;
use crate::command::{NamedAllocation, RecordUsage};
use crate::refusal::Refusal;
use leasehold_model::app::UPTIME_HOURS;
use leasehold_model::body::{Attribution, ReplacedUsage, UsageRecorded, UsageRefused, UsageReport};
use leasehold_model::limits::{
    LATE_WINDOW, USAGE_PER_MONTH_MAX, USAGE_QUANTITY_MAX, USAGE_RECORDS_TOGETHER_MAX, USAGE_SPAN_MAX,
};
use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, ControlPlaneScope, Identity, Month, ProjectNo, TenantNo, UnitMeasure,
    UnitNo, UsageCharge,
};
use std::collections::{BTreeMap, BTreeSet};

impl Engine {
    /// The first record with the ID of reported usage, if there is one among the last; another payload under the same ID
    /// is refused. It is not inlined, because every command passes the place where it is called.
    #[inline(never)]
    pub(super) fn recorded_before(&self, command: &RecordUsage) -> Result<Option<u64>, Refusal> {
        let RecordUsage { tenant, project, user, report, known_to, .. } = command;
        let usage = &self.state.usage;
        if *known_to < usage.recent_from {
            return Err(Refusal::UsageIdsBehind { known_to: usage.recent_from });
        }
        let identity = Identity { tenant: Some(*tenant), project: Some(*project), user: *user, ..Identity::default() };
        match self.usage_ids.find(usage, report.key()) {
            Some(found) if found.payload == report.payload(&identity) => Ok(Some(found.sequence)),
            Some(found) => Err(Refusal::UsageIdTaken { sequence: found.sequence }),
            None => Ok(None),
        }
    }
}

/// What the records before it in the same command use, by month.
#[derive(Default)]
struct UsedBefore {
    months: BTreeMap<(Month, ProjectNo, AppInstanceNo, UnitNo), u128>,
    entitled: EntitledBefore,
}

/// Why a report is not accepted.
enum Unaccepted {
    Refused(Refusal),
    /// An entitlement is used up, which is sealed.
    NotEntitled(Identity, Box<UsageRefused>),
}

impl From<Refusal> for Unaccepted {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Draft<'_> {
    pub(super) fn record_usage(&mut self, command: &RecordUsage) -> Result<(), Refusal> {
        let (identity, body) = match self.check_usage(command, &mut UsedBefore::default()) {
            Ok(checked) => checked,
            Err(Unaccepted::Refused(refusal)) => return Err(refusal),
            Err(Unaccepted::NotEntitled(identity, refused)) => {
                let of = (command.report.key(), command.report.payload(&identity));
                if self.state().usage.refused.contains_key(&of) {
                    return Err(Refusal::not_entitled(&refused));
                }
                self.emit_shaped(&identity, *refused, |_| {});
                return Ok(());
            }
        };
        self.emit_usage(&identity, body);
        Ok(())
    }

    fn emit_usage(&mut self, identity: &Identity, body: UsageRecorded) {
        let warned = (body.charge == UsageCharge::Billed).then(|| body.report.clone());
        self.emit_shaped(identity, body, |_| {});
        if let (Some(report), Some(project)) = (warned, identity.project) {
            self.warn_of_entitlements(project, &report);
        }
    }

    /// Records all or none. Those that were recorded before are left out.
    pub(super) fn record_usage_together(&mut self, commands: &[RecordUsage]) -> Result<(), Refusal> {
        if commands.is_empty() || commands.len() > USAGE_RECORDS_TOGETHER_MAX {
            return Err(Refusal::TooManyUsageRecords { limit: USAGE_RECORDS_TOGETHER_MAX });
        }
        let mut used = UsedBefore::default();
        let (mut ids, mut superseded) = (BTreeSet::new(), BTreeSet::new());
        let mut bodies = Vec::with_capacity(commands.len());
        for (place, command) in commands.iter().enumerate() {
            // Which one it is does not matter to those who ask the books again.
            let told = |why: Refusal| {
                let is_behind = matches!(why, Refusal::UsageIdsBehind { .. });
                if is_behind { why } else { Refusal::UsageBatchRefused { place, why: Box::new(why) } }
            };
            if self.engine.recorded_before(command).map_err(told)?.is_some() {
                continue;
            }
            let (identity, body) = self.check_usage(command, &mut used).map_err(|why| match why {
                Unaccepted::Refused(refusal) => told(refusal),
                Unaccepted::NotEntitled(_, refused) => told(Refusal::not_entitled(&refused)),
            })?;
            let is_new = ids.insert(body.report.key())
                && body.replaces.is_none_or(|replaced| superseded.insert(replaced.sequence));
            if !is_new {
                return Err(Refusal::UsageTwice);
            }
            bodies.push((identity, body));
        }
        if bodies.is_empty() {
            return Err(Refusal::UsageKnown);
        }
        for (identity, body) in bodies {
            self.emit_usage(&identity, body);
        }
        Ok(())
    }

    /// The record that a report becomes.
    fn check_usage(
        &self,
        command: &RecordUsage,
        used_before: &mut UsedBefore,
    ) -> Result<(Identity, UsageRecorded), Unaccepted> {
        let RecordUsage { tenant, project, user, report, .. } = command;
        let (tenant, project, user) = (*tenant, *project, *user);
        let instance = self.instance_of_usage(command)?;
        let state = self.state();
        let found = state.project(project).filter(|found| found.tenant == tenant);
        found.ok_or(Refusal::UnknownProject { project })?;
        if let Some(user) = user {
            let found = state.user(user).filter(|found| found.tenant == tenant);
            found.ok_or(Refusal::UnknownUser { user })?;
        }
        let owner = instance.project;
        let is_shared = instance.scope == ControlPlaneScope::Tenant;
        let of_owner = match instance.scope {
            ControlPlaneScope::Project => report.control_plane || state.attribution_for(instance) == Attribution::Owner,
            ControlPlaneScope::Tenant => report.control_plane,
            ControlPlaneScope::Platform => false,
        };
        if of_owner && project != owner {
            return Err(Refusal::UsageOfOwner { app_instance: report.app_instance, project: owner }.into());
        }
        self.check_unit_of_usage(instance, tenant, report)?;
        self.check_time_of_usage(report)?;
        self.check_attachment_of_usage(command)?;
        let replaces = self.check_superseded(command)?;
        self.check_month_of_usage(project, report, replaces.as_ref(), used_before)?;
        let is_work = is_shared && !report.control_plane;
        let is_unsubmitted = is_work && project == owner && user.is_none();
        let no_submitter = is_unsubmitted && report.unit != UPTIME_HOURS;
        let creditor = self.creditor_of(instance, report).filter(|creditor| {
            is_work && !is_unsubmitted && *creditor != project && state.bills_work(instance, report.unit)
        });
        let charge = if is_work && creditor.is_none() { UsageCharge::Reported } else { UsageCharge::Billed };
        let identity =
            Identity { tenant: Some(tenant), project: Some(project), user, workload: None, token: self.identity.token };
        if charge == UsageCharge::Billed {
            let checked = self.check_entitlements(project, report, replaces.as_ref(), &mut used_before.entitled);
            checked.map_err(|refused| Unaccepted::NotEntitled(identity.clone(), refused))?;
        }
        self.free_entitlements((project, charge), report, replaces.as_ref(), &mut used_before.entitled);
        let replaced_creditor = replaces.and(command.replaced_creditor);
        let body =
            UsageRecorded { report: report.clone(), charge, no_submitter, replaces, creditor, replaced_creditor };
        Ok((identity, body))
    }

    /// Who pays for the capacity that work on a shared runtime uses: the project that lends it, or the owner.
    fn creditor_of(&self, instance: &AppInstance, report: &UsageReport) -> Option<ProjectNo> {
        let state = self.state();
        let lent = report.attachment.and_then(|attachment| state.apps.lends(attachment, self.now));
        let source = lent.map(|lent| lent.source_project);
        Some(source.unwrap_or(instance.project)).filter(|project| state.project(*project).is_some())
    }

    /// A project uses only so much in a month; less than before always passes.
    fn check_month_of_usage(
        &self,
        project: ProjectNo,
        report: &UsageReport,
        replaces: Option<&ReplacedUsage>,
        used_before: &mut UsedBefore,
    ) -> Result<(), Refusal> {
        let of = (Month::of(report.to), project, report.app_instance, report.unit);
        let (month, _, app, unit) = of;
        let used = self.state().usage.used_in(month, project, app, unit).0;
        let used = used + used_before.months.get(&of).copied().unwrap_or(0);
        let replaced = replaces.filter(|old| (Month::of(old.to), old.project) == (month, project));
        let after = (used + report.quantity.0).saturating_sub(replaced.map_or(0, |old| old.quantity.0));
        if after > USAGE_PER_MONTH_MAX && after > used {
            return Err(Refusal::TooMuchUsage { unit, month });
        }
        *used_before.months.entry(of).or_default() += after.saturating_sub(used);
        Ok(())
    }

    /// The instance, if it may be reported for: by its own tenant or an operator, and for its own tenant or, if it is one
    /// of the platform, for any.
    fn instance_of_usage(&self, command: &RecordUsage) -> Result<&AppInstance, Refusal> {
        let app_instance = command.report.app_instance;
        let is_known = |found: &&AppInstance| {
            let for_any = found.scope == ControlPlaneScope::Platform;
            self.may_see(found.tenant) && (for_any || found.tenant == command.tenant)
        };
        let is_own_source = command.report.reporter == self.identity.tenant;
        let found = self.state().app_instance(app_instance).filter(is_known).filter(|_| is_own_source);
        found.ok_or(Refusal::UnknownAppInstance { app_instance })
    }

    fn check_unit_of_usage(
        &self,
        instance: &AppInstance,
        tenant: TenantNo,
        report: &UsageReport,
    ) -> Result<(), Refusal> {
        let unit = report.unit;
        let found = self.state().unit(unit).ok_or(Refusal::UnknownUnit { unit })?;
        let app_type = instance.app_type;
        if !self.state().app_type(app_type).is_some_and(|app| app.units.contains(unit)) {
            return Err(Refusal::UnitNotEnabled { unit, app_type });
        }
        if !self.state().accepts_unit(instance, tenant, unit) {
            return Err(Refusal::UnitNotAccepted { unit, app_instance: instance.number });
        }
        if report.quantity > USAGE_QUANTITY_MAX {
            return Err(Refusal::UsageQuantityTooLarge);
        }
        let is_instant = report.from == report.to;
        if found.measure == UnitMeasure::Time && is_instant {
            return Err(Refusal::NoUsageTime { unit });
        }
        Ok(())
    }

    fn check_time_of_usage(&self, report: &UsageReport) -> Result<(), Refusal> {
        if report.to < report.from {
            return Err(Refusal::UsageEndsFirst);
        }
        // What ends at the present instant would get a price that is set at the same instant, after it was counted.
        if report.to >= self.now {
            return Err(Refusal::UsageInFuture { now: self.now });
        }
        if report.to.since(report.from) > USAGE_SPAN_MAX {
            return Err(Refusal::UsageTooLong { limit: USAGE_SPAN_MAX });
        }
        let until = report.to.saturating_add(LATE_WINDOW);
        if until < self.now { Err(Refusal::UsageTooLate { until }) } else { Ok(()) }
    }

    /// A record about a lent worker names the attachment and the allocation that holds it.
    fn check_attachment_of_usage(&self, command: &RecordUsage) -> Result<(), Refusal> {
        let report = &command.report;
        let (attachment, allocation) = match (report.attachment, report.allocation) {
            (None, None) => return Ok(()),
            (Some(_), None) | (None, Some(_)) => return Err(Refusal::LentUsageNeedsBoth),
            (Some(attachment), Some(allocation)) => (attachment, allocation),
        };
        let lends = self.state().apps.lends(attachment, self.now);
        let lends = lends.ok_or(Refusal::UnknownAttachment { attachment })?;
        if lends.app_instance != report.app_instance {
            return Err(Refusal::AttachmentMismatch { attachment });
        }
        let not_lent = Refusal::AllocationNotLent { allocation, attachment };
        let Some(named) = self.allocation_of_usage(command, allocation)? else { return Err(not_lent) };
        let source = lends.source_project;
        let is_submitted_on_it = named.attachment == Some(attachment) && named.source_project == Some(source);
        let is_of_source = named.project == source && named.source_project.is_none_or(|pays| pays == source);
        let is_lent = is_submitted_on_it || is_of_source && lends.allocation.is_none_or(|lent| lent == allocation);
        if is_lent { Ok(()) } else { Err(not_lent) }
    }

    /// The allocation that a record names: one that lives, or one that the books know.
    fn allocation_of_usage(
        &self,
        command: &RecordUsage,
        number: AllocationNo,
    ) -> Result<Option<NamedAllocation>, Refusal> {
        if let Some(live) = self.state().allocation(number) {
            let AllocationSpec { attachment, source_project, .. } = live.spec;
            return Ok(Some(NamedAllocation { project: live.project, attachment, source_project }));
        }
        // One that was submitted and has ended since has to be looked up again.
        if (command.known_to..self.state().size()).contains(&number.0) {
            return Err(Refusal::UsageIdsBehind { known_to: number.0 + 1 });
        }
        Ok(command.named)
    }

    /// A record supersedes the newest one of its chain.
    fn check_superseded(&self, command: &RecordUsage) -> Result<Option<ReplacedUsage>, Refusal> {
        let Some(key) = command.report.superseded_key() else { return Ok(None) };
        let usage = &self.state().usage;
        // One that the books do not have yet has to be looked up there.
        if let Some(recent) = self.engine.usage_ids.find(usage, key)
            && recent.sequence >= command.known_to
        {
            return Err(Refusal::UsageIdsBehind { known_to: recent.sequence + 1 });
        }
        let replaced = command.replaces.ok_or(Refusal::UnknownUsage)?;
        let of_other = |project: &crate::state::Project| project.tenant != command.tenant;
        if self.state().project(replaced.project).is_some_and(of_other) {
            return Err(Refusal::SupersedesOtherTenant);
        }
        match usage.replaced.get(&replaced.sequence) {
            Some(by) => Err(Refusal::UsageSuperseded { by: *by }),
            None => Ok(Some(replaced)),
        }
    }
}
