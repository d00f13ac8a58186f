//! Counts notable events of app runtimes and of what is lent to them in a history.

use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, AttachmentNo, AttemptEnd, Body, ControlPlaneScope, DenyCause,
    HolderScope, LeaseNo, Measure, ProjectNo, QuotaNo, Reason, Record, TenantNo,
};
use std::collections::{BTreeMap, BTreeSet};

type Events = Vec<&'static str>;

#[derive(Default)]
struct Seen {
    /// The project, the measure and the app instance of quotas.
    quotas: BTreeMap<QuotaNo, (Option<ProjectNo>, Measure, Option<AppInstanceNo>)>,
    ceilings: BTreeSet<(ProjectNo, Option<AppInstanceNo>)>,
    /// Tenants or projects that have prepaid credit.
    credit: BTreeSet<(TenantNo, Option<ProjectNo>)>,
    instances: BTreeMap<AppInstanceNo, ControlPlaneScope>,
    specs: BTreeMap<AllocationNo, AllocationSpec>,
    checkpointed: BTreeSet<AllocationNo>,
    running: BTreeSet<AllocationNo>,
    ended: BTreeSet<AttachmentNo>,
    /// Lent leases, with whose they are.
    lent: BTreeMap<LeaseNo, ProjectNo>,
    /// The attachment whose end this command records.
    ending: Option<AttachmentNo>,
    /// Whether the command has changed the state of prepaid credit.
    changing: bool,
}

pub(crate) fn count(records: &[Record], notable: &mut BTreeMap<&'static str, u64>) {
    let mut seen = Seen::default();
    for record in records {
        if !record.continues {
            (seen.ending, seen.changing) = (None, false);
        }
        let mut events = seen.see_registry(record);
        events.extend(seen.see_money(record));
        events.extend(seen.see_lent(record));
        for what in events {
            *notable.entry(what).or_insert(0) += 1;
        }
    }
}

impl Seen {
    fn see_registry(&mut self, record: &Record) -> Events {
        let mut events = Events::new();
        if let Body::AppInstancePut(put) = &record.body {
            let known = self.instances.insert(put.app_instance, put.scope).is_some();
            events.push(match (known, put.scope) {
                (true, _) => "apps: instance renamed",
                (false, ControlPlaneScope::Project) => "apps: instance of a project",
                (false, ControlPlaneScope::Tenant) => "apps: shared instance",
                (false, ControlPlaneScope::Platform) => "apps: instance of the platform",
            });
        } else if let Body::AppInstanceDeleted(gone) = &record.body {
            let app = Some(gone.app_instance);
            let (quotas, ceilings) = (self.quotas.len(), self.ceilings.len());
            self.quotas.retain(|_, (_, _, of)| *of != app);
            self.ceilings.retain(|(_, of)| *of != app);
            events.push("apps: instance deleted");
            events.extend((self.quotas.len() < quotas).then_some("apps: quota deleted with its instance"));
            events.extend((self.ceilings.len() < ceilings).then_some("apps: ceiling deleted with its instance"));
        } else if let Body::QuotaPut(put) = &record.body {
            let app = if let Some(HolderScope::One(app)) = put.scope.further.app_instance { Some(app) } else { None };
            events.extend(app.map(|_| "apps: quota on an instance"));
            self.quotas.insert(put.quota, (put.scope.project, put.measure, app));
        } else if let Body::QuotaDeleted(gone) = &record.body {
            self.quotas.remove(&gone.quota);
        } else if let Body::ProjectDeleted(gone) = &record.body {
            self.quotas.retain(|_, (project, ..)| *project != Some(gone.project));
            self.ceilings.retain(|(project, _)| *project != gone.project);
        } else if let Body::CeilingDeleted(gone) = &record.body {
            self.ceilings.remove(&(gone.project, gone.app_instance));
        } else if let Body::CeilingPut(put) = &record.body {
            events.extend(put.app_instance.map(|_| "apps: ceiling on an instance"));
            self.ceilings.insert((put.project, put.app_instance));
        } else if let Body::TokenIssued(issued) = &record.body {
            events.extend((!issued.scope.app_instances.is_empty()).then_some("apps: token for instances"));
        } else if let Body::AttachmentMade(made) = &record.body {
            events.push(if made.allocation.is_some() { "lent: an allocation as it is" } else { "lent: on account" });
        }
        events
    }

    fn see_money(&mut self, record: &Record) -> Events {
        let mut events = Events::new();
        if let (Body::PrepaidToppedUp(_), Some(tenant)) = (&record.body, record.identity.tenant) {
            self.credit.insert((tenant, record.identity.project));
        } else if let Body::PrepaidChanged(_) = &record.body {
            self.changing = true;
        } else if let Body::Revoked(revoked) = &record.body {
            let drained = self.changing && record.continues && record.reason == Some(Reason::Budget);
            let lent = revoked.leases.0.iter().any(|lease| self.lent.contains_key(lease));
            events.extend((drained && lent).then_some("lent: drained by the payer's credit"));
        } else if let Body::AllocationChanged(changed) = &record.body {
            let downgraded = record.continues && changed.spec.source_project.is_some();
            events.extend(downgraded.then_some("lent: downgraded by the payer's credit"));
        } else if let Body::AllocationDenied(denied) = &record.body
            && let Some(source) = denied.spec.source_project
        {
            let quota = match denied.cause {
                DenyCause::Quota { quota, .. } | DenyCause::KindQuota { quota, .. } => self.quotas.get(&quota),
                DenyCause::Ceiling { app_instance, .. } => {
                    events.push(match app_instance {
                        Some(_) => "lent: denied by the payer's ceiling on the instance",
                        None => "lent: denied by the payer's ceiling",
                    });
                    None
                }
                _ => None,
            };
            events.extend(quota.filter(|(project, ..)| *project == Some(source)).map(
                |(_, measure, _)| match measure {
                    Measure::Quanta => "lent: denied by the payer's quota on quanta",
                    Measure::Leases => "lent: denied by the payer's quota on leases",
                    Measure::Nodes => "lent: denied by the payer's quota on nodes",
                    Measure::Allocations => "lent: denied by the payer's quota on allocations",
                },
            ));
        }
        events
    }

    fn see_lent(&mut self, record: &Record) -> Events {
        let mut events = Events::new();
        if let Body::AllocationSubmitted(submitted) = &record.body {
            self.specs.insert(AllocationNo(record.sequence), submitted.spec.clone());
        } else if let Body::AllocationPlaced(placed) = &record.body {
            self.running.insert(placed.allocation);
            self.checkpointed.remove(&placed.allocation);
        } else if let Body::AllocationCheckpointed(done) = &record.body {
            self.checkpointed.insert(done.allocation);
        } else if let Body::Granted(granted) = &record.body
            && let (Some(source), Some(tenant)) = (granted.source_project, record.identity.tenant)
        {
            let numbers = (granted.first_lease.0..).map(LeaseNo).take(granted.members.len());
            self.lent.extend(numbers.map(|number| (number, source)));
            let owned = |(project, ..): &&(Option<ProjectNo>, Measure, Option<AppInstanceNo>)| *project == Some(source);
            let ceilings = [(source, None), (source, granted.app_instance)];
            let of_instance = granted.app_instance.is_some() && self.ceilings.contains(&ceilings[1]);
            events.push("lent: granted");
            events.extend(self.quotas.values().any(|quota| owned(&quota)).then_some("lent: under the payer's quota"));
            events.extend(self.ceilings.contains(&ceilings[0]).then_some("lent: under the payer's ceiling"));
            events.extend(of_instance.then_some("lent: under the payer's ceiling on the instance"));
            let of_payer = self.credit.contains(&(tenant, Some(source)));
            events.extend(of_payer.then_some("lent: paid by the payer's own credit"));
            let over = granted.over_soft.iter().filter_map(|quota| self.quotas.get(quota)).any(|quota| owned(&quota));
            events.extend(over.then_some("lent: over the payer's soft quota"));
        } else if let Body::AttachmentEnded(ended) = &record.body {
            self.ending = Some(ended.attachment);
            self.ended.insert(ended.attachment);
            let named = |of: &&AllocationNo| self.specs.get(of).is_some_and(|spec| spec.attachment == self.ending);
            events.push("lent: attachment ended");
            events.extend(self.running.iter().any(|of| named(&of)).then_some("lent: attachment ended while work ran"));
        } else if let Body::AllocationCancelled(gone) = &record.body {
            let by_end = record.continues && self.ending.is_some();
            events.extend(by_end.then_some("lent: cancelled by the end of the attachment"));
            self.running.remove(&gone.allocation);
        } else if let Body::AllocationCompleted(done) = &record.body {
            self.running.remove(&done.allocation);
        } else if let Body::AllocationFailed(failed) = &record.body {
            let spec = self.specs.get(&failed.allocation);
            let ended = spec.and_then(|spec| spec.attachment).is_some_and(|number| self.ended.contains(&number));
            let interrupted =
                !matches!(failed.end, AttemptEnd::Walltime | AttemptEnd::Reported | AttemptEnd::FailedStart);
            if ended && interrupted {
                let checkpointed = self.checkpointed.contains(&failed.allocation);
                events.extend(checkpointed.then_some("lent: failed instead of being suspended"));
                let requeue = !checkpointed && spec.is_some_and(|spec| spec.requeue);
                events.extend(requeue.then_some("lent: failed instead of being requeued"));
            }
            self.running.remove(&failed.allocation);
        } else if let Body::AllocationSuspended(back) = &record.body {
            self.running.remove(&back.allocation);
        } else if let Body::AllocationRequeued(back) = &record.body {
            self.running.remove(&back.allocation);
        }
        events
    }
}
