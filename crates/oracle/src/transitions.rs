//! The life cycle of allocations: which record may follow which (SEMANTICS 5).

use crate::acts::Sealing;
use crate::allocation::Allocation;
use crate::command::Command;
use crate::gang::Occupancy;
use crate::holder::correlation;
use crate::lease::{Lease, Phase, priced_as};
use crate::quota::Demand;
use crate::reservation::Reservation;
use crate::violation::{Broken, Checked, broken, demand, found};
use crate::world::World;
use leasehold_model::body::{
    AllocationChanged, AllocationCheckpointed, AllocationCompleted, AllocationDenied, AllocationFailed,
    AllocationHoldSet, AllocationPlaced, AllocationSubmitted, Granted, PreemptionDecided, ReservationTakenOver,
};
use leasehold_model::{
    AllocationNo, AllocationSpec, AllocationState, AttemptEnd, Body, DenyCause, Fraction, Identity, Instant, LeaseNo,
    LimitKind, Priority, Reason, Record, Span,
};

impl World {
    pub(crate) fn allocation(&mut self, number: AllocationNo) -> Result<&mut Allocation, Broken> {
        let allocation = found!(self.allocations.get_mut(&number), "unknown-allocation", "there is no {number}");
        Ok(allocation)
    }

    fn in_state(
        &mut self,
        record: &Record,
        number: AllocationNo,
        legal: impl Fn(AllocationState) -> bool,
    ) -> Result<&mut Allocation, Broken> {
        let found = self.allocation(number)?;
        demand!(legal(found.state), "allocation-state", "{number} is {}", found.state);
        let identity = Identity { token: None, ..record.identity.clone() };
        demand!(identity == found.identity(), "one-tenant", "{number} is of another than {identity:?}");
        Ok(found)
    }

    /// Automatic records are legal only if they were predicted.
    pub(crate) fn check_unforetold(&self, record: &Record, was_foretold: bool) -> Checked {
        let preempted = matches!(record.reason, Some(Reason::Preempted { .. }));
        let follows = matches!(
            record.body,
            Body::PreemptionDecided(_)
                | Body::ReservationTakenOver(_)
                | Body::HeadProtected(_)
                | Body::ReservationDropped(_)
                | Body::AllocationPlaced(_)
                | Body::AllocationSuspended(_)
                | Body::AllocationRequeued(_)
        );
        demand!(was_foretold || !preempted && !follows, "follows", "{} was not expected", record.body.word());
        Ok(())
    }

    /// A submission; the allocation starts at once if it can.
    pub(crate) fn submitted(
        &mut self,
        command: &mut Command,
        record: &Record,
        submitted: &AllocationSubmitted,
        sealing: Sealing,
    ) -> Checked {
        let identity = &record.identity;
        let (Some(tenant), Some(project)) = (identity.tenant, identity.project) else {
            broken!("unknown-tenant", "the allocation has no tenant or project")
        };
        let spec = &submitted.spec;
        let payer = spec.source_project.unwrap_or(project);
        // What was asked for is tested; quotas for the lowest priority may not suit what was made of it.
        let of_downgrade = |fault: &&str| *fault == "walltime_beyond_burst" && self.is_downgraded(payer);
        let fault = self.fault_of_spec(tenant, Some(project), identity.user, spec);
        if let Some(fault) = fault.filter(|fault| !of_downgrade(fault)) {
            broken!("submission-of-invalid", "must be refused: {fault}");
        }
        demand!(self.in_order(spec) == *spec, "submission-order", "asks and labels must be sorted");
        let downgraded = self.is_downgraded(payer) && spec.priority > Priority::Scavenger;
        demand!(!downgraded, "prepaid", "submitted at {}", spec.priority);
        let gang = Demand::of_gang(tenant, project, identity.user, spec);
        let demand = Demand { node: submitted.node, ..gang };
        let guard = self.guard_for(&demand, spec.pool, record.stamp);
        let allow = |node| guard.allows(node, Some((spec.walltime, spec.priority)));
        let gang = self.place_gang(&demand, spec, &Occupancy::of(self), record.stamp, &allow).ok();
        let number = AllocationNo(record.sequence);
        let allocation = Allocation {
            number,
            tenant,
            project,
            user: identity.user,
            workload: identity.workload.clone(),
            references: (record.hcl_entry.clone(), record.dra_claim_id.clone()),
            spec: spec.clone(),
            node: submitted.node,
            state: AllocationState::Pending,
            submitted_at: record.stamp,
            attempts: 0,
            placed_at: Instant(0),
            first_lease: LeaseNo(0),
            checkpointed: false,
            ends: None,
            queued_at: record.stamp,
            protected_on: Vec::new(),
            requeues: 0,
            reservation: None,
            hold: None,
        };
        command.script = gang.map(|gang| self.start(&allocation, &gang, sealing)).unwrap_or_default().into();
        self.allocations.insert(number, allocation);
        Ok(())
    }

    /// Checks that the quota of a denial belongs to the tenant and that its figures are right. Whether it is the
    /// expected quota is checked where the whole submission is known.
    pub(crate) fn allocation_denied(&self, record: &Record, denied: &AllocationDenied) -> Checked {
        if let DenyCause::Ceiling { .. } = denied.cause {
            return self.check_denied_for_cost(record, denied.cause, &denied.spec);
        }
        let (quota, limit, is_over) = match denied.cause {
            DenyCause::Quota { quota, used, requested, limit } => (quota, limit, used + requested > limit),
            DenyCause::KindQuota { quota, used, requested, limit } => {
                let wide = |fraction: Fraction| (fraction.numerator(), u128::from(fraction.denominator()));
                let ((a, b), (c, d)) = (wide(used), wide(requested));
                (quota, limit, a * d + c * b > u128::from(limit) * b * d)
            }
            DenyCause::BurstOver { .. }
            | DenyCause::Capacity { .. }
            | DenyCause::Ceiling { .. }
            | DenyCause::Prepaid { .. } => {
                broken!("denial", "without room it must wait: {:?}", denied.cause)
            }
        };
        let known = found!(self.quotas.get(&quota), "unknown-quota", "there is no {quota}");
        demand!(Some(known.put.scope.tenant) == record.identity.tenant, "denial", "{quota} is another's");
        let stands = match known.limit() {
            LimitKind::Hard { limit } => limit,
            LimitKind::Burst { burst_limit, .. } => burst_limit,
            LimitKind::Soft { .. } => broken!("denial", "{quota} is soft"),
        };
        demand!(limit == stands && is_over, "denial", "{:?}", denied.cause);
        Ok(())
    }

    /// An attempt starts; it was predicted with its grants.
    pub(crate) fn placed(&mut self, record: &Record, placed: &AllocationPlaced) -> Checked {
        let found = self.in_state(record, placed.allocation, AllocationState::is_queued)?;
        demand!(placed.attempt == found.attempts + 1, "attempt", "{} after {}", placed.attempt, found.attempts);
        demand!(found.hold.is_none(), "allocation-state", "{} is on hold", placed.allocation);
        let staged = found.spec.staged;
        found.state = if staged { AllocationState::Staging } else { AllocationState::Running };
        found.attempts = placed.attempt;
        found.placed_at = record.stamp;
        found.first_lease = placed.first_lease;
        found.checkpointed = false;
        found.ends = None;
        found.reservation = None;
        demand!(
            !self.placed_in_run.contains(&placed.allocation),
            "placed-twice",
            "{} was placed before, and nobody asked for anything since",
            placed.allocation
        );
        self.placed_in_run.insert(placed.allocation);
        Ok(())
    }

    /// One replica of a gang.
    pub(crate) fn gang_granted(&mut self, record: &Record, granted: &Granted, number: AllocationNo) -> Checked {
        let of = &self.allocations[&number];
        let (tenant, project, payer, user) = (of.tenant, of.project, of.payer(), of.user);
        let workload = of.workload.clone();
        let bound = of.bound();
        let expires_at = record.stamp.saturating_add(granted.ttl);
        demand!(bound.is_none_or(|bound| expires_at <= bound), "walltime", "{number} past {bound:?}");
        let tag = self.tenants[&tenant].settings.accounting_tag.clone();
        let on_pool_without_gpus = self.counts_cores(granted.pool);
        for (position, member) in (0u64..).zip(&granted.members) {
            let number_of_lease = LeaseNo(granted.first_lease.0 + position);
            self.check_new_number("lease", number_of_lease.0)?;
            self.take_number("lease", number_of_lease.0);
            self.leases.push(Lease {
                number: number_of_lease,
                on_pool_without_gpus,
                gang: granted.first_lease,
                of: Some(number),
                sensitive: granted.sensitive,
                tenant,
                project,
                payer,
                user,
                workload: workload.clone(),
                correlation: correlation(granted, Some(number), record.sequence),
                node: granted.node,
                pool: granted.pool,
                class: member.class,
                quanta: member.quanta.0,
                devices: member.devices,
                priority: granted.priority,
                priced_as: priced_as(granted),
                tag: tag.clone(),
                granted_at: record.stamp,
                expires_at,
                phase: Phase::Active,
                ended_at: None,
                end_effective: None,
                billed_to: None,
                granted_by: record.sequence,
                ended_by: None,
                grace: Span::ZERO,
                limit_at: None,
                reported_to: record.stamp,
                app_instance: granted.app_instance,
                attachment: granted.attachment,
                reckoned_by: record.sequence,
            });
        }
        Ok(())
    }

    pub(crate) fn started_running(&mut self, record: &Record, number: AllocationNo) -> Checked {
        let found = self.in_state(record, number, |state| state == AllocationState::Staging)?;
        found.state = AllocationState::Running;
        Ok(())
    }

    pub(crate) fn checkpointing(&mut self, record: &Record, number: AllocationNo) -> Checked {
        let found = self.in_state(record, number, |state| state == AllocationState::Running)?;
        found.state = AllocationState::Checkpointing;
        Ok(())
    }

    pub(crate) fn checkpointed(
        &mut self,
        command: &mut Command,
        record: &Record,
        report: &AllocationCheckpointed,
    ) -> Checked {
        let runs = |state| matches!(state, AllocationState::Running | AllocationState::Checkpointing);
        let found = self.in_state(record, report.allocation, runs)?;
        let ran = record.stamp.since(found.placed_at);
        demand!(report.took <= ran, "checkpoint", "took {} of {ran}", report.took);
        found.state = AllocationState::Running;
        found.checkpointed = true;
        command.script = self.after_checkpoint(report.allocation, record.stamp).into();
        Ok(())
    }

    /// The attempt ended and the allocation waits again, as predicted.
    pub(crate) fn back_in_queue(&mut self, record: &Record, number: AllocationNo, state: AllocationState) -> Checked {
        let found = self.in_state(record, number, AllocationState::is_placed)?;
        found.state = state;
        found.ends = None;
        found.requeues += u32::from(state == AllocationState::Pending);
        found.queued_at = record.stamp;
        Ok(())
    }

    pub(crate) fn completed(&mut self, record: &Record, done: &AllocationCompleted) -> Checked {
        demand!(
            done.exit_status.is_none_or(|status| status == 0),
            "exit-status",
            "{:?} is no success",
            done.exit_status
        );
        let found = self.in_state(record, done.allocation, AllocationState::is_placed)?;
        found.state = AllocationState::Completed;
        Ok(())
    }

    pub(crate) fn failed(&mut self, record: &Record, failed: &AllocationFailed, was_foretold: bool) -> Checked {
        if !was_foretold && failed.end == AttemptEnd::FailedStart {
            return self.failed_to_start(record, failed);
        }
        if !was_foretold {
            let status = failed.exit_status;
            let reported = failed.end == AttemptEnd::Reported && status.is_some_and(|s| (1..=255).contains(&s));
            demand!(reported, "exit-status", "{} with {status:?}", failed.end);
        }
        let found = self.in_state(record, failed.allocation, AllocationState::is_placed)?;
        found.state = AllocationState::Failed;
        Ok(())
    }

    /// The work could not be started (SEMANTICS 11). That its leases are released is checked after the command.
    fn failed_to_start(&mut self, record: &Record, failed: &AllocationFailed) -> Checked {
        demand!(self.is_by_rules_4(), "failed-start", "earlier rules do not know it");
        let empty = failed.exit_status.is_none() && failed.storage_written == 0;
        demand!(empty, "failed-start", "work that never ran has no results: {failed:?}");
        let found = self.in_state(record, failed.allocation, |state| state == AllocationState::Staging)?;
        found.state = AllocationState::Failed;
        Ok(())
    }

    pub(crate) fn cancelled(&mut self, record: &Record, number: AllocationNo) -> Checked {
        let found = self.in_state(record, number, |state| !state.is_over())?;
        found.state = AllocationState::Cancelled;
        found.reservation = None;
        Ok(())
    }

    /// A hold: it waits as before and is left out. What was reserved for it is not any more.
    pub(crate) fn hold_set(&mut self, record: &Record, held: &AllocationHoldSet) -> Checked {
        let found = self.in_state(record, held.allocation, AllocationState::is_queued)?;
        demand!(found.hold.is_none(), "allocation-state", "{} is on hold already", held.allocation);
        found.hold = Some(held.by_operator);
        found.reservation = None;
        Ok(())
    }

    pub(crate) fn hold_cleared(&mut self, record: &Record, number: AllocationNo) -> Checked {
        let found = self.in_state(record, number, AllocationState::is_queued)?;
        demand!(found.hold.take().is_some(), "allocation-state", "{number} is not on hold");
        Ok(())
    }

    /// It asks for something else, and keeps its place by submission. What was reserved for it is not any more.
    pub(crate) fn changed(&mut self, record: &Record, changed: &AllocationChanged, was_foretold: bool) -> Checked {
        let found = self.in_state(record, changed.allocation, AllocationState::is_queued)?;
        let old = std::mem::replace(&mut found.spec, changed.spec.clone());
        found.reservation = None;
        let may_differ = AllocationSpec {
            pool: old.pool,
            priority: old.priority,
            walltime: old.walltime,
            ttl: old.ttl,
            requeue: old.requeue,
            ..changed.spec.clone()
        };
        demand!(may_differ == old, "allocation-changed", "{} changed more than it may", changed.allocation);
        let (tenant, project, user) = (found.tenant, found.project, found.user);
        // Nobody asked for a downgrade.
        let fault = self.fault_of_spec(tenant, Some(project), user, &changed.spec).filter(|_| !was_foretold);
        if let Some(fault) = fault {
            broken!("allocation-changed", "{}: {fault}", changed.allocation)
        }
        Ok(())
    }

    /// A preemption decision, as predicted.
    pub(crate) fn preempted(&mut self, record: &Record, decided: &PreemptionDecided) -> Checked {
        let evicted = decided.victims.0.iter().filter_map(|lease| self.lease(*lease)).map(|lease| lease.quanta).sum();
        let found = self.allocation(decided.allocation)?;
        demand!(found.is_in_line(), "allocation-state", "{} is not in the queue", decided.allocation);
        let tenant = found.tenant;
        found.reservation =
            Some(Reservation::new(decided.places.clone(), decided.victims.0.to_vec(), decided.headroom));
        self.evictions.push((tenant, record.stamp, evicted));
        Ok(())
    }

    /// Reservations of lower priority are taken over, as predicted: their holders wait in the queue again.
    pub(crate) fn taken_over(&mut self, record: &Record, taken: &ReservationTakenOver) -> Checked {
        let evicted: u64 =
            taken.victims.0.iter().filter_map(|lease| self.lease(*lease)).map(|lease| lease.quanta).sum();
        for number in &taken.dropped {
            let found = self.allocation(*number)?;
            demand!(found.reservation.is_some(), "allocation-state", "{number} has no reservation");
            demand!(found.spec.priority < taken.priority, "takeover", "{number} is not of lower priority");
            found.reservation = None;
        }
        let found = self.allocation(taken.allocation)?;
        demand!(found.is_in_line(), "allocation-state", "{} is not in the queue", taken.allocation);
        let tenant = found.tenant;
        let leases = taken.victims.0.iter().chain(&taken.awaited.0).copied().collect();
        found.reservation = Some(Reservation::new(taken.places.clone(), leases, None));
        self.evictions.push((tenant, record.stamp, evicted));
        Ok(())
    }

    pub(crate) fn reservation_dropped(&mut self, record: &Record, number: AllocationNo) -> Checked {
        let found = self.in_state(record, number, AllocationState::is_queued)?;
        demand!(found.reservation.is_some(), "allocation-state", "{number} has no reservation");
        found.reservation = None;
        Ok(())
    }
}
