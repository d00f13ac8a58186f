//! What projects lend to shared runtimes (SEMANTICS 13): attachments, the requests that name them, and their ends.

use crate::acts::Line;
use crate::allocation::Allocation;
use crate::apps::{those, unless};
use crate::command::Command;
use crate::foretell::{Caller, Foretold, Told, sealed};
use crate::lease::{Lease, Phase};
use crate::oracle::Oracle;
use crate::violation::{Checked, demand, found};
use crate::world::World;
use leasehold_model::body::{AllocationCancelled, AttachmentEnded, AttachmentMade};
use leasehold_model::limits::ATTACHMENTS_PER_TENANT_MAX;
use leasehold_model::{
    AllocationNo, AppInstanceNo, AttachmentNo, Body, ControlPlaneScope, Instant, LeaseNo, ProjectNo, Record, Span,
    TenantNo,
};

/// What a project wants to lend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachmentWish {
    pub app_instance: AppInstanceNo,
    pub source_project: ProjectNo,
    pub allocation: Option<AllocationNo>,
}

/// A lease to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalWish {
    pub lease: LeaseNo,
    pub ttl: Span,
    /// Whether it comes with a report, which may be wrong.
    pub reports: bool,
}

/// The app instance, the attachment and the lending project that some work names.
pub(crate) type Lent = (Option<AppInstanceNo>, Option<AttachmentNo>, Option<ProjectNo>);

impl Oracle {
    /// Whether a lease was lent by an attachment that has ended.
    pub fn is_no_longer_lent(&self, lease: LeaseNo) -> bool {
        self.world.lease(lease).is_some_and(|lease| self.world.has_ended(lease.attachment))
    }
}

impl World {
    /// Why work of a project may not name these, if so: the app instance first, then the attachment.
    pub(crate) fn fault_of_lent(&self, tenant: TenantNo, project: ProjectNo, lent: Lent) -> Option<&'static str> {
        let (app, attachment, source) = lent;
        if !self.has_registry() {
            return None;
        }
        if let Some(number) = app {
            match self.instance_of(tenant, number) {
                None => return Some("unknown_app_instance"),
                Some(found) if found.project != project => return Some("app_of_other_project"),
                Some(_) => {}
            }
        }
        let Some(number) = attachment else { return source.map(|_| "source_needs_attachment") };
        let known = self.apps.attachments.get(&number).filter(|(of, ..)| *of == tenant);
        let Some((_, made, _)) = known else { return Some("unknown_attachment") };
        let same = (app, source) == (Some(made.app_instance), Some(made.source_project));
        (!same).then_some("attachment_mismatch")
    }

    /// Whether the attachment by which something is lent has ended.
    pub(crate) fn has_ended(&self, attachment: Option<AttachmentNo>) -> bool {
        self.has_registry() && attachment.is_some_and(|number| !self.apps.attachments.contains_key(&number))
    }

    /// What is wrong with an attachment. A tenant sees its own app instances only.
    fn faults_of_attachment(&self, wish: &AttachmentWish, seen_by: Option<TenantNo>) -> Vec<&'static str> {
        let tenant = self.projects.get(&wish.source_project).map(|project| project.tenant);
        let instance = match seen_by.or(tenant) {
            Some(tenant) => self.instance_of(tenant, wish.app_instance),
            None => self.apps.instances.get(&wish.app_instance).map(|(_, found)| found),
        };
        let own = |found: &&Allocation| found.project == wish.source_project;
        let named = wish.allocation.map(|number| self.allocations.get(&number).filter(own));
        // Those that are over may be forgotten.
        let over = named.flatten().is_some_and(|found| found.state.is_over());
        let lent =
            |number: AllocationNo| self.apps.attachments.values().any(|(_, made, _)| made.allocation == Some(number));
        let count = self.apps.attachments.values().filter(|(of, ..)| Some(*of) == tenant).count();
        those(&[
            (tenant.is_none(), "unknown_project"),
            (instance.is_none(), "unknown_app_instance"),
            (instance.is_some_and(|found| found.scope != ControlPlaneScope::Tenant), "app_not_shared"),
            (instance.is_some_and(|found| found.project == wish.source_project), "own_attachment"),
            (over || named.is_some_and(|found| found.is_none()), "allocation_not_found"),
            (over, "allocation_over"),
            (wish.allocation.is_some_and(lent), "allocation_lent"),
            (count >= ATTACHMENTS_PER_TENANT_MAX, "registry_full"),
        ])
    }

    pub(crate) fn attachment_made(&mut self, record: &Record, made: &AttachmentMade) -> Checked {
        let AttachmentMade { attachment, app_instance, source_project, allocation } = *made;
        let faults = self.faults_of_attachment(&AttachmentWish { app_instance, source_project, allocation }, None);
        demand!(faults.is_empty(), "attachment", "must be refused: {faults:?}");
        self.check_new_number("attachment", attachment.0)?;
        let tenant = self.projects[&source_project].tenant;
        demand!(record.identity.tenant == Some(tenant), "attachment", "{attachment} is of {tenant}");
        self.take_number("attachment", attachment.0);
        self.apps.attachments.insert(attachment, (tenant, made.clone(), record.stamp));
        Ok(())
    }

    pub(crate) fn foretell_attachment(&self, caller: &Caller, wish: &AttachmentWish) -> Told {
        let tenant = self.projects.get(&wish.source_project).map(|project| project.tenant);
        let hidden = tenant.is_some_and(|tenant| caller.tenant.is_some_and(|own| own != tenant));
        let mut faults = self.faults_of_attachment(wish, caller.tenant);
        faults.extend(hidden.then_some("unknown_project"));
        // For an operator both exist; they do not belong together.
        let instance = self.apps.instances.get(&wish.app_instance).filter(|_| caller.tenant.is_none());
        if let Some((_, found)) = instance.filter(|(of, _)| Some(*of) != tenant) {
            faults.push("unknown_project");
            faults.extend((found.scope != ControlPlaneScope::Tenant).then_some("app_not_shared"));
        }
        unless(faults, || {
            let attachment = AttachmentNo(u64::from(self.next_number("attachment")));
            let AttachmentWish { app_instance, source_project, allocation } = *wish;
            sealed(tenant, AttachmentMade { attachment, app_instance, source_project, allocation })
        })
    }

    /// What is wrong with an allocation that usage of a lent worker names.
    pub(crate) fn faults_of_named(
        &self,
        made: &AttachmentMade,
        number: AllocationNo,
        known_to: u64,
    ) -> Vec<&'static str> {
        let Some(found) = self.allocations.get(&number) else {
            // The engine keeps no allocations that have ended: whoever has not looked so far is told to look first.
            let may_be_one = number.0 >= known_to;
            return those(&[(true, "allocation_not_lent"), (may_be_one, "usage_ids_behind")]);
        };
        let is_submitted_on_it =
            (found.spec.attachment, found.spec.source_project) == (Some(made.attachment), Some(made.source_project));
        let is_of_source = found.project == made.source_project && found.payer() == made.source_project;
        let is_lent = is_submitted_on_it || is_of_source && made.allocation.is_none_or(|only| only == number);
        those(&[
            (!is_lent, "allocation_not_lent"),
            // The sender has to look for one that is over.
            (found.state.is_over() && number.0 >= known_to, "usage_ids_behind"),
        ])
    }

    /// Allocations that wait on the account of an attachment, in order of number.
    fn waiting_on(&self, number: AttachmentNo) -> impl Iterator<Item = &Allocation> {
        let waits = move |found: &&Allocation| found.state.is_queued() && found.spec.attachment == Some(number);
        self.allocations.values().filter(waits)
    }

    /// What runs goes on; what waits is cancelled by the same command.
    pub(crate) fn attachment_ended(
        &mut self,
        command: &mut Command,
        record: &Record,
        ended: &AttachmentEnded,
    ) -> Checked {
        let number = ended.attachment;
        let (tenant, ..) = found!(self.apps.attachments.get(&number), "attachment", "there is no {number}");
        demand!(record.identity.tenant == Some(*tenant), "attachment", "{number} is of {tenant}");
        let cancelled = |found: &Allocation| {
            Line::new(AllocationCancelled { allocation: found.number }, found.identity(), record.stamp)
        };
        command.script = self.waiting_on(number).map(cancelled).collect();
        if let Some((tenant, made, _)) = self.apps.attachments.remove(&number) {
            self.apps.ended.insert(number, (tenant, made, record.stamp));
        }
        Ok(())
    }

    pub(crate) fn foretell_attachment_end(&self, caller: &Caller, attachment: AttachmentNo) -> Told {
        let known = self.apps.attachments.get(&attachment);
        let (tenant, ..) =
            known.filter(|(of, ..)| caller.tenant.is_none_or(|own| own == *of)).ok_or("unknown_attachment")?;
        let mut bodies: Vec<Body> = vec![AttachmentEnded { attachment }.into()];
        bodies.extend(self.waiting_on(attachment).map(|found| AllocationCancelled { allocation: found.number }.into()));
        Ok(Foretold::Sealed { tenant: Some(*tenant), bodies })
    }

    /// Whether nothing that comes before the attachment is wrong with the renewal of a lease: it is held by the
    /// caller, and neither its TTL nor its lifetime is too long.
    fn reaches_attachment(&self, caller: &Caller, wish: &RenewalWish, lease: &Lease, now: Instant) -> bool {
        let ends_at = now.saturating_add(wish.ttl);
        let life = self.lifetime_max(lease.pool, lease.priority);
        lease.phase == Phase::Active
            && now < lease.expires_at
            && caller.tenant.is_none_or(|tenant| tenant == lease.tenant)
            && caller.project.is_none_or(|project| project == lease.project)
            && wish.ttl > Span::ZERO
            && wish.ttl <= self.ttl_max(lease.pool, lease.priority)
            && life.is_none_or(|life| ends_at <= lease.granted_at.saturating_add(life))
    }

    /// What is lent is not renewed after the end of its attachment. Nothing else about renewals is predicted; of several
    /// leases each one is renewed or refused by itself.
    pub(crate) fn foretell_renewals(&self, caller: &Caller, wishes: &[RenewalWish], now: Instant) -> Foretold {
        let [wish] = wishes else { return Foretold::Open };
        match self.lease(wish.lease).filter(|lease| self.has_ended(lease.attachment)) {
            None => Foretold::OpenBut("attachment_ended"),
            Some(lease) if !wish.reports && self.reaches_attachment(caller, wish, lease, now) => {
                Foretold::Refused("attachment_ended")
            }
            Some(_) => Foretold::Faulty,
        }
    }

    /// Whether a project has app instances, and whether it lends.
    pub(crate) fn ties_of(&self, project: ProjectNo) -> (bool, bool) {
        let has_instances = self.apps.instances.values().any(|(_, instance)| instance.project == project);
        let lends = self.apps.attachments.values().any(|(_, made, _)| made.source_project == project);
        (has_instances, lends)
    }
}
