//! Allocations.

use super::Method::{Get, Post};
use super::roles::*;
use super::schemas::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tenant = "Only of this tenant: its name or number.";
    vec![
        endpoint::<AllocationList>(
            "list_allocations",
            Get,
            "/api/v1/allocations",
            "Allocations by number: those that are not over, unless a time or a state in which they are is asked for",
            ALLOCATION_READERS,
        )
        .query("tenant", tenant, text)
        .query("project", "Only of this project: its name (with `tenant`) or number.", text)
        .query("user", "Only of this user: its name (with `tenant`) or number.", text)
        .query("pool", "Only those that must lie in this pool: its name or number.", text)
        .query("state", "Only in this state.", allocation_state)
        .query("priority", "Only of this priority.", priority)
        .query("at", "Only those that had been submitted and were not over at this instant.", instant)
        .query("from", "Only those that were not over before this instant.", instant)
        .query("to", "Only those that were submitted before this instant.", instant)
        .page(),
        endpoint::<Submitted>(
            "submit_allocation",
            Post,
            "/api/v1/allocations",
            "Ask for a gang: it starts whole, or waits in the queue",
            HOLDERS,
        )
        .body::<SubmitAllocation>()
        .status(201),
        endpoint::<AllocationDetail>(
            "show_allocation",
            Get,
            "/api/v1/allocations/{allocation}",
            "One allocation, also when it is over: its attempts and, while it waits, what for",
            ALLOCATION_READERS,
        ),
        endpoint::<AllocationChanged>(
            "start_allocation",
            Post,
            "/api/v1/allocations/{allocation}/start",
            "What was staged runs from now on",
            HOLDERS,
        ),
        endpoint::<AllocationChanged>(
            "begin_checkpoint",
            Post,
            "/api/v1/allocations/{allocation}/checkpointing",
            "A checkpoint is being written",
            HOLDERS,
        ),
        endpoint::<AllocationChanged>(
            "report_checkpoint",
            Post,
            "/api/v1/allocations/{allocation}/checkpoint",
            "A checkpoint was written; within grace this also says that nothing runs any more",
            HOLDERS,
        )
        .body::<CheckpointReport>(),
        endpoint::<AllocationChanged>(
            "complete_allocation",
            Post,
            "/api/v1/allocations/{allocation}/complete",
            "The work is done, or has failed; all its leases are given back",
            HOLDERS,
        )
        .body_or_none::<CompleteAllocation>(),
        endpoint::<AllocationChanged>(
            "cancel_allocation",
            Post,
            "/api/v1/allocations/{allocation}/cancel",
            "Take an allocation out of the queue, or end it",
            HOLDERS,
        ),
    ]
}
