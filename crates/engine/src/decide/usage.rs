//! Commands of runtimes that report usage (SEMANTICS 9 and 12).

use super::{Draft, Engine};
use crate::apps::AppInstance;
use crate::command::{Command, RecordUsage, Request};
use crate::refusal::Refusal;
use crate::sealed::{Sealed, Sequences};
use leasehold_model::body::{ReplacedUsage, UsageRecorded, UsageReport};
use leasehold_model::limits::{LATE_WINDOW, USAGE_PER_MONTH_MAX, USAGE_QUANTITY_MAX, USAGE_SPAN_MAX};
use leasehold_model::{ControlPlaneScope, Identity, Month, UnitMeasure, UsageCharge};

impl Engine {
    /// Looks up the ID of reported usage: what was reported before gets its earlier answer, and another payload under the
    /// same ID is refused.
    pub(super) fn check_usage_id(&self, request: &Request) -> Result<Option<Sealed<Sequences>>, Refusal> {
        let Command::RecordUsage(RecordUsage { tenant, project, user, report, known_to, .. }) = &request.command else {
            return Ok(None);
        };
        let usage = &self.state.usage;
        if *known_to < usage.recent_from {
            return Err(Refusal::UsageIdsBehind { known_to: usage.recent_from });
        }
        let identity = Identity { tenant: Some(*tenant), project: Some(*project), user: *user, ..Identity::default() };
        match self.usage_ids.find(usage, report.key()) {
            Some(found) if found.payload == report.payload(&identity) => {
                Ok(Some(Sealed::again(Sequences { first: found.sequence, count: 0 })))
            }
            Some(found) => Err(Refusal::UsageIdTaken { sequence: found.sequence }),
            None => Ok(None),
        }
    }
}

impl Draft<'_> {
    pub(super) fn record_usage(&mut self, command: &RecordUsage) -> Result<(), Refusal> {
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
        let of_owner = instance.scope == ControlPlaneScope::Project || is_shared && report.control_plane;
        if of_owner && project != owner {
            return Err(Refusal::UsageOfOwner { app_instance: report.app_instance, project: owner });
        }
        self.check_unit_of_usage(instance, report)?;
        self.check_time_of_usage(report)?;
        self.check_attachment_of_usage(report)?;
        let replaces = self.check_superseded(command)?;
        let month = Month::of(report.to);
        let (app, unit) = (report.app_instance, report.unit);
        let replaced = replaces.filter(|old| (Month::of(old.to), old.project) == (month, project));
        let used = state.usage.used_in(month, project, app, unit).0;
        let after = (used + report.quantity.0).saturating_sub(replaced.map_or(0, |old| old.quantity.0));
        if after > USAGE_PER_MONTH_MAX && after > used {
            return Err(Refusal::TooMuchUsage { unit, month });
        }
        let charge = if is_shared && !report.control_plane { UsageCharge::Reported } else { UsageCharge::Billed };
        let no_submitter = is_shared && !report.control_plane && project == owner && user.is_none();
        let identity =
            Identity { tenant: Some(tenant), project: Some(project), user, workload: None, token: self.identity.token };
        let body = UsageRecorded { report: report.clone(), charge, no_submitter, replaces };
        self.emit_shaped(&identity, body, |_| {});
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

    fn check_unit_of_usage(&self, instance: &AppInstance, report: &UsageReport) -> Result<(), Refusal> {
        let unit = report.unit;
        let found = self.state().unit(unit).ok_or(Refusal::UnknownUnit { unit })?;
        let app_type = instance.app_type;
        if !self.state().app_type(app_type).is_some_and(|app| app.units.contains(unit)) {
            return Err(Refusal::UnitNotEnabled { unit, app_type });
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
        if report.to > self.now {
            return Err(Refusal::UsageInFuture { now: self.now });
        }
        if report.to.since(report.from) > USAGE_SPAN_MAX {
            return Err(Refusal::UsageTooLong { limit: USAGE_SPAN_MAX });
        }
        let until = report.to.saturating_add(LATE_WINDOW);
        if until < self.now { Err(Refusal::UsageTooLate { until }) } else { Ok(()) }
    }

    /// A record about a lent worker names the attachment and the allocation that holds it.
    fn check_attachment_of_usage(&self, report: &UsageReport) -> Result<(), Refusal> {
        match (report.attachment, report.allocation) {
            (None, None) => Ok(()),
            (Some(_), None) | (None, Some(_)) => Err(Refusal::LentUsageNeedsBoth),
            (Some(attachment), Some(allocation)) => {
                let known = self.state().apps.lender(attachment);
                let (app_instance, _) = known.ok_or(Refusal::UnknownAttachment { attachment })?;
                if app_instance != report.app_instance {
                    return Err(Refusal::AttachmentMismatch { attachment });
                }
                if allocation.0 >= self.state().size() {
                    return Err(Refusal::AllocationNotFound { allocation });
                }
                Ok(())
            }
        }
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
        match usage.replaced.get(&replaced.sequence) {
            Some(by) => Err(Refusal::UsageSuperseded { by: *by }),
            None => Ok(Some(replaced)),
        }
    }
}
