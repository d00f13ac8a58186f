//! One usage record, found by its ID.

use super::known::read_usage;
use super::resolve::name;
use crate::books::look_up;
use crate::context::{Answer, Context, json};
use crate::past::Known as KnownNames;
use crate::show_apps::unit_name;
use crate::{names, show};
use leasehold_api::{AllocationId, Problem, UsageRecord, When, codes};
use leasehold_books::KnownUsage;
use leasehold_model::body::{UsageRecorded, UsageReport};
use leasehold_model::{CorrelationId, Record, UsageSource};
use std::sync::Arc;

pub(in crate::routes) async fn show_usage_record(context: Context) -> Answer {
    let caller = context.caller();
    let not_found = || {
        let detail = "There is no usage record with this ID of this source, or it is too old to be found by its ID.";
        codes::NOT_FOUND.problem(detail)
    };
    let key = context.app.now.read(|state| {
        let own = state.token(caller.token).map(|token| token.name.clone());
        let source = match context.query("source") {
            Some(text) => name("source", text)?,
            None => own.ok_or_else(not_found)?,
        };
        let reporter = match context.query("tenant") {
            Some("-") => None,
            Some(text) => Some(names::tenant(state, caller, text)?),
            None => caller.tenant,
        };
        Ok::<_, Problem>(UsageReport::key_for(reporter, &source, &name("id", context.subject())?))
    })?;
    let found = look_up(&context.app, caller, move |_, books| books.known_usage(key)).await?;
    let known = found.ok_or_else(not_found)?;
    let app = Arc::clone(&context.app);
    let read = tokio::task::spawn_blocking(move || read_usage(&app, known.sequence)).await;
    let (record, recorded) = read.map_err(|_| codes::INTERNAL.problem("The record could not be read."))??;
    let seen = record.identity.tenant.is_some_and(|tenant| caller.sees_tenant(tenant))
        || recorded
            .report
            .reporter
            .is_some_and(|tenant| caller.sees_app_instance(tenant, recorded.report.app_instance));
    if !seen {
        return Err(not_found());
    }
    let shown = context.app.books.with_books(|books| {
        Ok(context.app.now.read(|state| shown(&KnownNames { state, books }, &record, &recorded, &known)))
    });
    json(200, &shown.map_err(|error| crate::books::problem(&error))?)
}

fn shown(known: &KnownNames<'_>, record: &Record, recorded: &UsageRecorded, of: &KnownUsage) -> UsageRecord {
    let report = &recorded.report;
    // The books have these also of an instance that is deleted.
    let anchors = known.books.app_anchors(report.app_instance);
    let identity = &record.identity;
    UsageRecord {
        sequence: record.sequence,
        recorded_at: When(record.stamp),
        id: report.id.to_string(),
        source: report.source.to_string(),
        org_id: identity.tenant.map(|tenant| known.tenant(tenant)).unwrap_or_default(),
        project_id: identity.project.map(|project| known.project(project)).unwrap_or_default(),
        app_instance_id: known.app_instance(report.app_instance),
        app_slug: anchors.and_then(|of| known.app(of.app_type)),
        operating_mode: anchors.map(|of| of.mode),
        control_plane_scope: anchors.map(|of| of.scope),
        runtime_backend: anchors.map(|of| of.backend),
        correlation_id: CorrelationId(report.correlation).to_string(),
        usage_source: UsageSource::AppRuntime,
        usage_unit: unit_name(known.state, report.unit),
        quantity: report.quantity.to_string(),
        from: When(report.from),
        to: When(report.to),
        requested_by_user_id: identity.user.map(|user| known.user(user)),
        control_plane_component: report.control_plane,
        attachment_id: report.attachment.map(|attachment| attachment.0),
        allocation_id: report.allocation.map(AllocationId::from),
        supersedes: show::text(report.supersedes.as_ref()),
        superseded_by: of.superseded_by,
        charge: recorded.charge,
        no_submitter: recorded.no_submitter,
    }
}
