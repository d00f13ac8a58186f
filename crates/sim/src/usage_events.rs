//! Counts notable events of reported usage in a history.

use leasehold_model::body::UsageRecorded;
use leasehold_model::{
    AppInstanceNo, AttachmentNo, Body, ControlPlaneScope, Month, ProjectNo, Record, TenantNo, UnitNo, UsageCharge,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Seen {
    /// The tenant and the scope of each instance.
    instances: BTreeMap<AppInstanceNo, (Option<TenantNo>, ControlPlaneScope)>,
    ended: BTreeSet<AttachmentNo>,
    ceilings: BTreeSet<(ProjectNo, Option<AppInstanceNo>)>,
    credit: BTreeSet<TenantNo>,
    priced: BTreeSet<UnitNo>,
    /// Records that superseded another.
    superseding: BTreeSet<u64>,
}

pub(crate) fn count(records: &[Record], notable: &mut BTreeMap<&'static str, u64>) {
    let mut seen = Seen::default();
    for record in records {
        if let Body::AppInstancePut(put) = &record.body {
            seen.instances.insert(put.app_instance, (record.identity.tenant, put.scope));
        } else if let Body::AttachmentEnded(ended) = &record.body {
            seen.ended.insert(ended.attachment);
        } else if let Body::CeilingPut(put) = &record.body {
            seen.ceilings.insert((put.project, put.app_instance));
        } else if let Body::PrepaidToppedUp(_) = &record.body {
            seen.credit.extend(record.identity.tenant);
        } else if let Body::UnitPricePut(put) = &record.body {
            seen.priced.insert(put.unit);
        } else if let Body::UsageRecorded(recorded) = &record.body {
            for what in seen.events(record, recorded) {
                *notable.entry(what).or_insert(0) += 1;
            }
        }
    }
}

impl Seen {
    fn events(&mut self, record: &Record, recorded: &UsageRecorded) -> Vec<&'static str> {
        let (report, identity) = (&recorded.report, &record.identity);
        let (owner, scope) = self.instances[&report.app_instance];
        let billed = recorded.charge == UsageCharge::Billed;
        let priced = billed && self.priced.contains(&report.unit);
        let under = |app: Option<AppInstanceNo>| {
            priced && identity.project.is_some_and(|project| self.ceilings.contains(&(project, app)))
        };
        let old = recorded.replaces.as_ref();
        let facts = [
            (billed && scope == ControlPlaneScope::Project, "usage: billed to a project"),
            (billed && scope == ControlPlaneScope::Tenant, "usage: of a shared control plane"),
            (scope == ControlPlaneScope::Platform && identity.tenant != owner, "usage: of another tenant's runtime"),
            (!billed, "usage: only reported"),
            (recorded.no_submitter, "usage: without a submitter"),
            (report.attachment.is_some(), "usage: of a lent worker"),
            (report.attachment.is_some_and(|lent| self.ended.contains(&lent)), "usage: of a worker no longer lent"),
            (old.is_some(), "usage: superseded"),
            (old.is_some_and(|old| self.superseding.contains(&old.sequence)), "usage: superseded again"),
            (old.is_some_and(|old| Some(old.project) != identity.project), "usage: moved to another project"),
            (old.is_some_and(|old| old.charge != recorded.charge), "usage: charged otherwise than before"),
            (Month::of(report.to) < Month::of(record.stamp), "usage: of a past month"),
            (Month::of(report.from) < Month::of(report.to), "usage: over several months"),
            (under(None), "usage: under a ceiling"),
            (under(Some(report.app_instance)), "usage: under a ceiling on the instance"),
            (priced && identity.tenant.is_some_and(|of| self.credit.contains(&of)), "usage: paid in advance"),
        ];
        if old.is_some() {
            self.superseding.insert(record.sequence);
        }
        facts.into_iter().filter(|(holds, _)| *holds).map(|(_, what)| what).collect()
    }
}
