//! Slices of nodes and jobs as drafts of usage records.

use crate::answer::{Kind, RESOURCE_PARTS};
use crate::config::{JobUnit, NodeUnit, RaySection};
use crate::sighting::{Memory, Thing};
use crate::slices::{Slice, slices};
use leasehold_adapter_kit::{Anchors, Draft, Times, derived, hours};
use leasehold_client::api::{NewUsageRecord, UnitQuantityText, When};
use leasehold_model::Instant;

/// Ten-thousandths of a millisecond in an hour.
const PARTS_PER_HOUR: u128 = 3_600_000 * RESOURCE_PARTS as u128;

/// Usage that ended longer ago is not accepted (SEMANTICS 13).
const ACCEPTED_MS: u64 = 35 * 24 * HOUR_MS;
const HOUR_MS: u64 = 3_600_000;

pub(crate) fn drafts(ray: &RaySection, anchors: &Anchors, times: Times, memory: &Memory) -> Vec<Draft> {
    let begin_ms = times.begin.0.div_ceil(1_000_000);
    // After the state was lost, what is too old to be accepted was reported long ago. Only whole hours are left out, so
    // that no slice changes.
    let oldest_ms = (times.now.0 / 1_000_000).saturating_sub(ACCEPTED_MS).div_ceil(HOUR_MS) * HOUR_MS;
    let of_thing = |(id, thing): (&String, &Thing)| {
        let units = units(ray, &thing.kind);
        let record = record(ray, anchors, thing, id);
        let oldest_ms = if thing.reported_ms == 0 { oldest_ms } else { 0 };
        let mut drafts = Vec::new();
        for slice in slices(thing.start_ms.max(begin_ms).max(oldest_ms), thing.due_ms(), thing.reported_ms) {
            drafts.extend(units.iter().filter_map(|unit| draft(ray, id, &record, slice, *unit)));
        }
        drafts
    };
    memory.things.iter().flat_map(of_thing).collect()
}

/// The units of a thing, each with how many ten-thousandths of it count.
fn units(ray: &RaySection, kind: &Kind) -> Vec<(&'static str, u64)> {
    let of_node = |unit: &NodeUnit, resources: &crate::answer::Resources| match unit {
        NodeUnit::Uptime => ("uptime_hours", RESOURCE_PARTS),
        NodeUnit::Gpus => ("gpu_hours", resources.gpus),
        NodeUnit::Cpus => ("cpu_hours", resources.cpus),
    };
    match kind {
        Kind::Head { resources } => ray.head.iter().map(|unit| of_node(unit, resources)).collect(),
        Kind::Worker { resources, .. } => ray.workers.iter().map(|unit| of_node(unit, resources)).collect(),
        Kind::Job { .. } => ray.jobs.iter().map(|JobUnit::JobHours| ("job_hours", RESOURCE_PARTS)).collect(),
    }
}

/// What all records of a thing have in common.
fn record(ray: &RaySection, anchors: &Anchors, thing: &Thing, id: &str) -> NewUsageRecord {
    let cluster = ray.cluster.as_str();
    match &thing.kind {
        Kind::Head { .. } => NewUsageRecord {
            control_plane_component: true,
            correlation_id: Some(derived(&["ray", cluster, id])),
            ..anchors.record(anchors.owner(), None)
        },
        Kind::Worker { labels, .. } => {
            let lent = labels.iter().find_map(|(name, value)| ray.lent.get(&format!("{name}={value}")));
            NewUsageRecord {
                correlation_id: Some(derived(&["ray", cluster, id])),
                ..anchors.record(anchors.owner(), lent)
            }
        }
        Kind::Job { submission, metadata } => {
            let project = metadata.get(&ray.project_key).and_then(|word| ray.projects.get(word));
            let user = metadata.get(&ray.user_key).filter(|user| !user.is_empty());
            let whose = anchors.submitter(project.map(String::as_str), user.map(String::as_str));
            NewUsageRecord {
                correlation_id: Some(derived(&["ray", cluster, "job", submission])),
                ..anchors.record(whose, None)
            }
        }
    }
}

fn draft(
    ray: &RaySection,
    id: &str,
    record: &NewUsageRecord,
    slice: Slice,
    (unit, parts): (&'static str, u64),
) -> Option<Draft> {
    let amount = u128::from(slice.to_ms - slice.from_ms) * u128::from(parts);
    let quantity = hours(amount, PARTS_PER_HOUR).filter(|_| parts > 0)?;
    let at = |ms: u64| Some(When(Instant(ms.checked_mul(1_000_000)?)));
    Some(Draft {
        key: format!("ray/{}/{id}/{unit}/{}", ray.cluster, slice.hour()),
        record: NewUsageRecord {
            usage_unit: Some(unit.into()),
            quantity: Some(UnitQuantityText::Text(quantity)),
            from: at(slice.from_ms),
            to: at(slice.to_ms),
            ..record.clone()
        },
    })
}
