//! Steps in the life of a lease or an allocation: the records that a timeline tells.

use leasehold_model::{Instant, Record, fields, words};

words! {
    /// What a step of a timeline is; named as the kind of its record.
    pub enum StepKind {
        Granted = 40 "lease.granted",
        Renewed = 42 "lease.renewed",
        Released = 43 "lease.released",
        Expired = 44 "lease.expired",
        Revoked = 45 "lease.revoked",
        TeardownStarted = 46 "lease.teardown_started",
        TornDown = 47 "lease.torn_down",
        Fenced = 48 "lease.fenced",
        Unfenced = 49 "lease.unfenced",
        PreemptionDecided = 52 "preemption.decided",
        ReservationDropped = 53 "reservation.dropped",
        Submitted = 70 "allocation.submitted",
        LeaseDenied = 41 "lease.denied",
        Denied = 71 "allocation.denied",
        Placed = 72 "allocation.placed",
        Started = 73 "allocation.started",
        Checkpointing = 74 "allocation.checkpointing",
        Checkpointed = 75 "allocation.checkpointed",
        Suspended = 76 "allocation.suspended",
        Requeued = 77 "allocation.requeued",
        Completed = 78 "allocation.completed",
        Failed = 79 "allocation.failed",
        Cancelled = 80 "allocation.cancelled",
        ReservationTakenOver = 110 "reservation.taken_over",
        HeadProtected = 111 "head.protected",
        EndCorrected = 115 "lease.end_corrected",
        HoldSet = 118 "allocation.hold_set",
        HoldCleared = 119 "allocation.hold_cleared",
        Changed = 120 "allocation.changed",
        WindowAnnounced = 126 "lease.window_announced",
        Posted = 141 "ledger.posted",
        Corrected = 143 "ledger.corrected",
        Invoiced = 151 "invoice.issued",
        UsageRecorded = 168 "usage.recorded",
    }
}

fields! {
    /// One record of a life, or several of the same kind one after the other, of which this is the last.
    #[derive(Copy)]
    pub struct TrailStep { pub kind: StepKind, pub sequence: u64, pub at: Instant, pub count: u32 }
}

/// The most steps of one life that are told apart.
const STEPS_MAX: usize = 512;

impl TrailStep {
    pub(crate) fn of(kind: StepKind, record: &Record) -> Self {
        Self { kind, sequence: record.sequence, at: record.stamp, count: 1 }
    }
}

/// Adds a step. Repetitions count as one step, and so does everything after the most that are told apart.
pub(crate) fn note(trail: &mut Vec<TrailStep>, step: TrailStep) {
    let is_full = trail.len() >= STEPS_MAX;
    match trail.last_mut().filter(|last| last.kind == step.kind || is_full) {
        Some(last) => *last = TrailStep { count: last.count.saturating_add(step.count), ..step },
        None => trail.push(step),
    }
}
