//! Commands about allocations: submit, start, checkpoint, complete, cancel.

use super::admission::RequestContext;
use super::{Draft, Few};
use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::command::{CompleteAllocation, FailStart, ReportCheckpoint, SubmitAllocation};
use crate::gang::NoGang;
use crate::lease::Phase;
use crate::placement::Tentative;
use crate::refusal::Refusal;
use leasehold_model::body::{
    AllocationCancelled, AllocationCheckpointed, AllocationCheckpointing, AllocationCompleted, AllocationDenied,
    AllocationFailed, AllocationStarted, AllocationSubmitted, Released, Reported, ReportedLeases, TeardownStarted,
};
use leasehold_model::limits::{ALLOCATION_LEASES_MAX, LABELS_PER_ALLOCATION_MAX, TTL_MAX};
use leasehold_model::policy::TeardownCause;
use leasehold_model::{
    AllocationNo, AllocationSpec, AllocationState, AttemptEnd, DenyCause, Identity, LeaseNo, RULES_VERSION, Record,
    Span, WhenOverQuota,
};

impl SubmitAllocation {
    /// Adds the references of the caller to a record.
    fn refer(&self, record: &mut Record) {
        record.hcl_entry = self.hcl_entry.clone();
        record.dra_claim_id = self.dra_claim_id.clone();
    }
}

impl Draft<'_> {
    pub(super) fn submit_allocation(&mut self, submit: &SubmitAllocation) -> Result<(), Refusal> {
        let context = self.request_context();
        let (tenant, project) = context.check_holder(submit.spec.source_project)?;
        context.check_app((&submit.spec).into())?;
        let (mut spec, when_over_quota) = (self.check_spec(self.identity, &submit.spec)?, submit.when_over_quota);
        let payer = spec.source_project.unwrap_or(project);
        context.view.lower(&mut spec, tenant, payer);
        let ask = Ask::of_spec(self.identity, &spec, self.now).expect("check_holder has found the holder");
        context.check_named_holder(&ask)?;
        let guard = context.view.guard(context.heads, &ask);
        let found = context.view.place_gang(&Ask { allow: guard.as_deref(), ..ask }, &mut Tentative::default());
        if let Err(NoGang::Room) = found {
            self.check_possible(&ask)?;
        }
        drop(guard);
        let cause = match &found {
            Err(NoGang::Quota(cause @ (DenyCause::Quota { .. } | DenyCause::KindQuota { .. }))) => {
                let own = self.state().tenant(tenant).and_then(|tenant| tenant.settings.when_over_quota);
                let waits = when_over_quota.or(own) == Some(WhenOverQuota::Wait);
                let is_denied = !waits || self.state().exceeds_a_base(&ask);
                Some(*cause).filter(|_| is_denied && !context.evicts_own(&ask))
            }
            // Reserved money may be returned, so the request waits for it; spent money is never returned.
            Err(NoGang::Quota(cause @ DenyCause::Ceiling { spent, requested, amount, .. }))
                if spent.saturating_add(*requested) > *amount =>
            {
                Some(*cause)
            }
            _ => None,
        };
        if let Some(cause) = cause {
            let denied = AllocationDenied { spec, rules_version: RULES_VERSION, cause, when_over_quota };
            self.emit(None, denied, |record| submit.refer(record));
            return Ok(());
        }
        if found.is_err() {
            self.request_context().check_pending(tenant)?;
        }
        let number = AllocationNo(self.state().size());
        self.emit(None, AllocationSubmitted { spec, when_over_quota, node: None }, |record| submit.refer(record));
        // The allocations before it were considered on the last pass, so it may start now.
        if let Ok(gang) = found {
            self.start_gang(number, gang);
        }
        Ok(())
    }

    /// Validates the parts of a submission that do not depend on the nodes.
    pub(super) fn check_spec(&self, of: &Identity, spec: &AllocationSpec) -> Result<AllocationSpec, Refusal> {
        let context = RequestContext { identity: of, ..self.request_context() };
        context.check_holder(spec.source_project)?;
        let mut spec = spec.clone();
        spec.asks = context.check_asks(&spec.asks)?;
        context.check_pool(spec.pool)?;
        context.check_priority(spec.priority)?;
        context.check_sensitive(spec.sensitive, None)?;
        if spec.replicas == 0 {
            return Err(Refusal::NoReplicas);
        }
        if spec.leases() > ALLOCATION_LEASES_MAX as u64 {
            return Err(Refusal::GangTooManyLeases { leases: spec.leases(), limit: ALLOCATION_LEASES_MAX });
        }
        if spec.walltime == Some(Span::ZERO) || spec.ttl == Some(Span::ZERO) {
            return Err(Refusal::ZeroTtl);
        }
        if spec.walltime.is_some_and(|walltime| walltime > TTL_MAX) {
            return Err(Refusal::WalltimeTooLong);
        }
        let longest = self.state().longest_ttl(spec.pool, spec.priority);
        if spec.ttl.is_some_and(|ttl| ttl > longest) {
            return Err(Refusal::TtlTooLong { limit: longest });
        }
        if spec.labels.len() > LABELS_PER_ALLOCATION_MAX {
            return Err(Refusal::TooManyLabels { limit: LABELS_PER_ALLOCATION_MAX });
        }
        spec.labels.sort();
        if spec.labels.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Refusal::DuplicateLabel);
        }
        if spec.contradicts_itself() {
            return Err(Refusal::ContradictoryAffinity);
        }
        let ask = Ask::of_spec(of, &spec, self.now).expect("check_holder has found the holder");
        if let Some(quota) = self.state().never_within_burst(&ask) {
            return Err(Refusal::WalltimeBeyondBurst { quota });
        }
        Ok(spec)
    }

    /// Checks that it would fit an empty cluster. An allocation that can never start is refused instead of queued.
    pub(super) fn check_possible(&self, ask: &Ask<'_>) -> Result<(), Refusal> {
        let (fits, labelled) = self.state().could_hold(ask);
        if !labelled && !ask.labels.is_empty() {
            return Err(Refusal::ImpossibleLabels);
        }
        if fits < u64::from(ask.replicas) {
            return Err(Refusal::GangTooLarge { replicas: ask.replicas, most: fits });
        }
        let mut pools = self.state().pools().filter(|(number, _)| ask.pool.is_none_or(|pool| pool == *number));
        if !pools.any(|(_, pool)| self.state().ttl_in(pool, ask).is_some()) {
            return Err(Refusal::WalltimeTooLong);
        }
        Ok(())
    }

    /// The allocation, if the caller may act for its holder.
    pub(super) fn own_allocation(&self, number: AllocationNo) -> Result<&Allocation, Refusal> {
        let identity = self.identity;
        let is_theirs = |tenant, project| {
            identity.tenant.is_none_or(|own| own == tenant) && identity.project.is_none_or(|own| own == project)
        };
        let Some(found) = self.state().allocation(number) else {
            let over = self.state().allocation_over(number).filter(|over| is_theirs(over.tenant, over.project));
            return Err(match over {
                Some(over) => Refusal::AllocationOver { allocation: number, state: over.state, at: over.at },
                None => Refusal::AllocationNotFound { allocation: number },
            });
        };
        if !is_theirs(found.tenant, found.project) {
            return Err(Refusal::AllocationNotFound { allocation: number });
        }
        Ok(found)
    }

    /// The allocation, if the caller may act for its holder and it holds capacity.
    fn placed_allocation(&self, number: AllocationNo) -> Result<&Allocation, Refusal> {
        let found = self.own_allocation(number)?;
        if found.state.is_placed() {
            return Ok(found);
        }
        Err(Refusal::AllocationNotRunning { allocation: number, state: found.state })
    }

    pub(super) fn start_allocation(&mut self, number: AllocationNo) -> Result<(), Refusal> {
        let found = self.placed_allocation(number)?;
        if found.state != AllocationState::Staging {
            return Err(Refusal::AllocationNotStaging { allocation: number, state: found.state });
        }
        let identity = found.identity();
        self.emit_for(&identity, AllocationStarted { allocation: number });
        Ok(())
    }

    pub(super) fn begin_checkpoint(&mut self, number: AllocationNo) -> Result<(), Refusal> {
        let found = self.placed_allocation(number)?;
        if found.state != AllocationState::Running {
            return Err(Refusal::AllocationNotRunning { allocation: number, state: found.state });
        }
        let identity = found.identity();
        self.emit_for(&identity, AllocationCheckpointing { allocation: number });
        Ok(())
    }

    /// A checkpoint was written. If the gang is being revoked, it is ready to be torn down, and its billing stops.
    pub(super) fn report_checkpoint(&mut self, report: &ReportCheckpoint) -> Result<(), Refusal> {
        let number = report.allocation;
        let found = self.placed_allocation(number)?;
        if found.state == AllocationState::Staging {
            return Err(Refusal::AllocationNotRunning { allocation: number, state: found.state });
        }
        let ran = self.now.since(found.placed_at);
        if report.took > ran {
            return Err(Refusal::CheckpointTooLong { allocation: number, ran });
        }
        let identity = found.identity();
        self.emit_for(&identity, AllocationCheckpointed { allocation: number, bytes: report.bytes, took: report.took });
        let held = self.leases_of(number, |phase| phase == Phase::Revoking);
        if held.is_empty() {
            return Ok(());
        }
        let closed = self.all_immediate(&held);
        let leases = held.iter().copied().collect();
        self.emit_for(&identity, TeardownStarted { leases, cause: TeardownCause::Ready, closed, belongs_to: None });
        let tenant = identity.tenant.expect("an allocation has a tenant");
        self.close_immediate(tenant, &held, closed);
        self.settle_own(number);
        Ok(())
    }

    pub(super) fn leases_of(&self, number: AllocationNo, which: impl Fn(Phase) -> bool) -> Vec<LeaseNo> {
        let state = self.state();
        let Some(found) = state.allocation(number) else { return Vec::new() };
        let leases = found.lease_numbers().filter_map(|lease| state.lease(lease));
        leases.filter(|lease| lease.of == Some(number) && which(lease.phase)).map(|lease| lease.number).collect()
    }

    pub(super) fn complete_allocation(&mut self, complete: &CompleteAllocation) -> Result<(), Refusal> {
        let number = complete.allocation;
        let found = self.placed_allocation(number)?;
        if complete.exit_status.is_some_and(|status| status > EXIT_STATUS_MAX) {
            return Err(Refusal::BadExitStatus { limit: EXIT_STATUS_MAX });
        }
        let (identity, storage_written) = (found.identity(), complete.storage_written);
        let held = self.leases_of(number, Phase::is_held);
        let (allocation, exit_status) = (number, complete.exit_status);
        match exit_status {
            Some(1..) => {
                let end = AttemptEnd::Reported;
                self.emit_for(&identity, AllocationFailed { allocation, end, exit_status, storage_written });
            }
            _ => self.emit_for(&identity, AllocationCompleted { allocation, exit_status, storage_written }),
        }
        self.give_back(&identity, &held);
        Ok(())
    }

    /// The work could not be started, as the agent of a node or an operator reports. A holder cannot report it: it
    /// decides what is charged (SEMANTICS 11, "Start failures and grace").
    pub(super) fn fail_start(&mut self, failed: &FailStart) -> Result<(), Refusal> {
        let allocation = failed.allocation;
        if let (Some(node), Some(generation)) = (failed.node, failed.generation) {
            self.check_generation(node, generation)?;
        }
        let found = self.placed_allocation(allocation)?;
        if found.state != AllocationState::Staging {
            return Err(Refusal::AllocationNotStaging { allocation, state: found.state });
        }
        let identity = found.identity();
        let held = self.leases_of(allocation, Phase::is_held);
        if let Some(node) = failed.node
            && !held.iter().filter_map(|lease| self.state().lease(*lease)).any(|lease| lease.node == node)
        {
            return Err(Refusal::AllocationNotOnNode { allocation, node });
        }
        let end = AttemptEnd::FailedStart;
        self.emit_for(&identity, AllocationFailed { allocation, end, exit_status: None, storage_written: 0 });
        self.give_back(&identity, &held);
        Ok(())
    }

    pub(super) fn cancel_allocation(&mut self, number: AllocationNo) -> Result<(), Refusal> {
        let found = self.own_allocation(number)?;
        let identity = found.identity();
        let held = self.leases_of(number, Phase::is_held);
        self.emit_for(&identity, AllocationCancelled { allocation: number });
        self.give_back(&identity, &held);
        Ok(())
    }

    /// Releases the leases that a gang still holds.
    fn give_back(&mut self, identity: &Identity, held: &[LeaseNo]) {
        if held.is_empty() {
            return;
        }
        let closed = self.all_immediate(held);
        let leases: Few<Reported> = held.iter().map(|lease| Reported { lease: *lease, activity: None }).collect();
        self.emit_for(identity, Released { leases: ReportedLeases(leases), closed });
        let tenant = identity.tenant.expect("an allocation has a tenant");
        self.close_immediate(tenant, held, closed);
    }
}

/// The largest exit status of a process.
const EXIT_STATUS_MAX: u32 = 255;
