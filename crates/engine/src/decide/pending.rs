//! Commands about allocations that wait: hold, release the hold, change what is asked for.

use super::Draft;
use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::command::{ChangeAllocation, HoldAllocation};
use crate::refusal::Refusal;
use leasehold_model::AllocationNo;
use leasehold_model::body::{AllocationChanged, AllocationHoldCleared, AllocationHoldSet};

impl Draft<'_> {
    /// The allocation, if the caller may act for its holder and it waits.
    fn waiting_allocation(&self, number: AllocationNo) -> Result<&Allocation, Refusal> {
        let found = self.own_allocation(number)?;
        if found.state.is_queued() {
            return Ok(found);
        }
        Err(Refusal::AllocationNotWaiting { allocation: number, state: found.state })
    }

    /// Whether the caller acts for no tenant.
    fn is_operator(&self) -> bool {
        self.identity.tenant.is_none()
    }

    pub(super) fn hold_allocation(&mut self, hold: &HoldAllocation) -> Result<(), Refusal> {
        let number = hold.allocation;
        let found = self.waiting_allocation(number)?;
        if found.on_hold.is_some() {
            return Err(Refusal::AllocationOnHold { allocation: number });
        }
        let (identity, by_operator) = (found.identity(), self.is_operator());
        self.emit_for(&identity, AllocationHoldSet { allocation: number, by_operator, reason: hold.reason.clone() });
        Ok(())
    }

    pub(super) fn release_hold(&mut self, number: AllocationNo) -> Result<(), Refusal> {
        let found = self.waiting_allocation(number)?;
        match &found.on_hold {
            None => return Err(Refusal::AllocationNotOnHold { allocation: number }),
            Some(hold) if hold.by_operator && !self.is_operator() => {
                return Err(Refusal::HeldByOperator { allocation: number });
            }
            Some(_) => {}
        }
        let identity = found.identity();
        self.emit_for(&identity, AllocationHoldCleared { allocation: number });
        Ok(())
    }

    /// Changes a waiting allocation. It is checked as a submission is; quotas are examined when it could start.
    pub(super) fn change_allocation(&mut self, change: &ChangeAllocation) -> Result<(), Refusal> {
        let number = change.allocation;
        let found = self.waiting_allocation(number)?;
        let (identity, mut spec) = (found.identity(), found.spec.clone());
        spec.priority = change.priority.unwrap_or(spec.priority);
        spec.pool = change.pool.unwrap_or(spec.pool);
        spec.walltime = change.walltime.unwrap_or(spec.walltime);
        spec.ttl = change.ttl.unwrap_or(spec.ttl);
        spec.requeue = change.requeue.unwrap_or(spec.requeue);
        if spec == found.spec {
            return Err(Refusal::AllocationUnchanged { allocation: number });
        }
        let spec = self.check_spec(&identity, &spec)?;
        let ask = Ask::of_spec(&identity, &spec, self.now).expect("an allocation has a holder");
        self.request_context().check_named_holder(&ask)?;
        self.check_possible(&ask)?;
        self.emit_for(&identity, AllocationChanged { allocation: number, spec });
        Ok(())
    }
}
