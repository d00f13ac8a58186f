//! The records in the life of a lease or an allocation, from what the books keep of them.

use crate::facts::Books;
use crate::follow::end_kind;
use crate::row::Row;
use crate::stories::Story;
use crate::trail::{StepKind, TrailStep};
use leasehold_model::AllocationState;

/// One record.
fn step(kind: StepKind, sequence: u64, at: leasehold_model::Instant) -> TrailStep {
    TrailStep { kind, sequence, at, count: 1 }
}

/// The records of an allocation, without those of its leases.
pub(super) fn of_allocation(story: &Story) -> Vec<TrailStep> {
    let outline = &story.outline;
    let mut steps = vec![step(StepKind::Submitted, outline.number.0, outline.submitted_at)];
    steps.extend(story.attempts.iter().map(|attempt| step(StepKind::Placed, attempt.sequence, attempt.placed_at)));
    steps.extend(&story.trail);
    if let Some(over) = story.over {
        let kind = match outline.state {
            AllocationState::Completed => StepKind::Completed,
            AllocationState::Cancelled => StepKind::Cancelled,
            _ => StepKind::Failed,
        };
        steps.push(step(kind, over.sequence, over.at));
    }
    steps
}

/// The records of a lease. Renewals are one step, at the last of them.
pub(super) fn of_lease(books: &Books, row: &Row) -> Vec<TrailStep> {
    let life = &row.life;
    let mut steps = vec![step(StepKind::Granted, life.sequence, row.held.from)];
    if let Some(renewed) = life.renewed {
        steps.push(TrailStep { count: renewed.count, ..step(StepKind::Renewed, renewed.sequence, renewed.at) });
    }
    if let Some(ending) = life.ending {
        let kind = if row.revocation().is_some() { StepKind::Revoked } else { end_kind(row.end) };
        steps.push(step(kind, ending.sequence, ending.at));
    }
    steps.extend(row.rare.iter().flat_map(|rare| &rare.trail));
    if let Some(corrected) = books.end_corrections.get(&row.lease) {
        steps.push(step(StepKind::EndCorrected, corrected.sequence, corrected.at));
    }
    if let (Some(sequence), Some(at)) = (life.closed_by, life.closed_at)
        && steps.iter().all(|step| step.sequence != sequence)
    {
        let kind = if row.fenced { StepKind::Unfenced } else { StepKind::TornDown };
        steps.push(step(kind, sequence, at));
    }
    steps
}
