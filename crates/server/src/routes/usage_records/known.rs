//! What the books know of the IDs of reports, and what it decides.

use crate::access::Caller;
use crate::app::App;
use crate::books::glance;
use leasehold_api::{Problem, UsageAccepted, codes};
use leasehold_books::{KnownUsage, Story};
use leasehold_engine::Refusal;
use leasehold_engine::command::{NamedAllocation, RecordUsage};
use leasehold_model::body::{Body, ReplacedUsage, UsageKey, UsageRecorded};
use leasehold_model::{AllocationNo, AllocationSpec, Identity, Name, ProjectNo, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// IDs that are remembered.
const USAGE_IDS_MAX: u64 = 200_000_000;

/// What the books know of some IDs.
pub(super) struct FromBooks {
    known: BTreeMap<UsageKey, KnownUsage>,
    /// The records of those that are known.
    records: UsageRecords,
    /// The allocations that reports name.
    allocations: BTreeMap<AllocationNo, NamedAllocation>,
    known_to: u64,
    /// Whether no other ID is remembered.
    full: bool,
}

impl FromBooks {
    /// Refuses the whole request if it has reports that nobody knows and no other ID is remembered. What was recorded
    /// before is answered in any case.
    pub(super) fn has_room_for<'s>(&self, steps: impl IntoIterator<Item = &'s Step>) -> Result<(), Problem> {
        if !self.full || steps.into_iter().all(|step| matches!(step, Step::Decided(_))) {
            return Ok(());
        }
        let detail = format!("{USAGE_IDS_MAX} IDs of usage records are remembered; no other is accepted for now.");
        Err(codes::TOO_MANY_USAGE_IDS.problem(detail).with("limit", USAGE_IDS_MAX.to_string()))
    }
}

/// Usage records by their sequence number, as the journal has them.
pub(super) type UsageRecords = BTreeMap<u64, (Record, UsageRecorded)>;

/// Reads usage records, where waiting for the disk delays nobody else.
pub(super) async fn read_all(app: &Arc<App>, sequences: Vec<u64>) -> Result<UsageRecords, Problem> {
    if sequences.is_empty() {
        return Ok(UsageRecords::new());
    }
    let app = Arc::clone(app);
    let read = move || sequences.into_iter().map(|at| Ok((at, read_usage(&app, at)?))).collect();
    let unread = |_| codes::INTERNAL.problem("Usage records could not be read.");
    tokio::task::spawn_blocking(read).await.map_err(unread)?
}

fn of_sequence(records: &UsageRecords, sequence: u64) -> Result<&(Record, UsageRecorded), Problem> {
    records.get(&sequence).ok_or_else(|| codes::INTERNAL.problem("A usage record was not read."))
}

/// Asks the books for the IDs of reports, for those that they supersede, and for the allocations that they name.
pub(super) async fn ask_books<'c>(
    app: &Arc<App>,
    caller: &Caller,
    commands: impl IntoIterator<Item = &'c RecordUsage>,
    at_least: u64,
) -> Result<FromBooks, Problem> {
    let (mut keys, mut named) = (Vec::new(), BTreeSet::new());
    for RecordUsage { report, .. } in commands {
        keys.push(report.key());
        keys.extend(report.superseded_key());
        named.extend(report.allocation);
    }
    let books = Arc::clone(&app.books);
    let caught_up = tokio::task::spawn_blocking(move || books.wait_for(at_least, std::time::Duration::from_secs(10)));
    if !caught_up.await.unwrap_or(false) {
        let detail = "The books have to catch up before usage is accepted; try again in a few seconds.";
        return Err(codes::BOOKS_BEHIND.problem(detail).with("retry_after", 5));
    }
    // As they are: the engine knows the last records.
    let answer = glance(app, caller, move |books| {
        let mut known = BTreeMap::new();
        for key in keys {
            known.extend(books.known_usage(key)?.map(|found| (key, found)));
        }
        let mut allocations = BTreeMap::new();
        for number in named {
            allocations.extend(books.allocation(number)?.map(|found| (number, named_allocation(&found))));
        }
        Ok((known, allocations, books.size(), books.usage_ids() >= USAGE_IDS_MAX))
    });
    let (known, allocations, known_to, full) = answer.await?;
    let records = read_all(app, known.values().map(|found| found.sequence).collect()).await?;
    Ok(FromBooks { known, records, allocations, known_to, full })
}

fn named_allocation(found: &Story) -> NamedAllocation {
    let AllocationSpec { attachment, source_project, .. } = found.spec;
    NamedAllocation { project: found.outline.project, attachment, source_project }
}

pub(super) fn read_usage(app: &App, sequence: u64) -> Result<(Record, UsageRecorded), Problem> {
    let record = crate::explain::decision::read(app, sequence)?;
    let Body::UsageRecorded(recorded) = &record.body else {
        return Err(codes::INTERNAL.problem("The books name a record that is no usage record."));
    };
    let recorded = recorded.clone();
    Ok((record, recorded))
}

/// The record that a report supersedes, as the engine wants to know it.
fn replaced(
    records: &UsageRecords,
    command: &RecordUsage,
    known: &KnownUsage,
) -> Result<(ReplacedUsage, Option<ProjectNo>), Problem> {
    let report = &command.report;
    let tell = |refusal: Refusal| crate::problem::refused(&refusal);
    if let Some(by) = known.superseded_by {
        return Err(tell(Refusal::UsageSuperseded { by }));
    }
    let (record, old) = of_sequence(records, known.sequence)?;
    if (old.report.unit, old.report.app_instance) != (report.unit, report.app_instance) {
        return Err(codes::ANCHOR_MISMATCH
            .problem("The usage record in `supersedes` is about another unit or app instance.")
            .with("field", "supersedes"));
    }
    if record.identity.tenant != Some(command.tenant) {
        return Err(tell(Refusal::SupersedesOtherTenant));
    }
    let project = record.identity.project.ok_or_else(|| codes::INTERNAL.problem("Usage without a project."))?;
    let replaced = ReplacedUsage {
        sequence: known.sequence,
        project,
        quantity: old.report.quantity,
        from: old.report.from,
        to: old.report.to,
        control_plane: old.report.control_plane,
        attachment: old.report.attachment,
        charge: old.charge,
    };
    Ok((replaced, old.creditor))
}

/// What became of a report so far.
pub(super) enum Step {
    Decided(Result<UsageAccepted, Problem>),
    Waits(Box<RecordUsage>),
}

/// Adds what the books know to a command, or decides it by that.
pub(super) fn with_books(books: &FromBooks, mut command: Box<RecordUsage>) -> Step {
    let report = &command.report;
    if let Some(found) = books.known.get(&report.key()) {
        let identity = Identity {
            tenant: Some(command.tenant),
            project: Some(command.project),
            user: command.user,
            ..Identity::default()
        };
        if found.payload == report.payload(&identity) {
            return Step::Decided(again(&books.records, &report.id, found.sequence));
        }
        return Step::Decided(Err(crate::problem::refused(&Refusal::UsageIdTaken { sequence: found.sequence })));
    }
    let superseded = report.superseded_key().and_then(|key| books.known.get(&key));
    match superseded.map(|known| replaced(&books.records, &command, known)).transpose() {
        Ok(replaces) => {
            command.replaces = replaces.map(|(replaced, _)| replaced);
            command.replaced_creditor = replaces.and_then(|(_, creditor)| creditor);
            command.named = command.report.allocation.and_then(|number| books.allocations.get(&number).copied());
            command.known_to = books.known_to;
            Step::Waits(command)
        }
        Err(problem) => Step::Decided(Err(problem)),
    }
}

pub(super) fn again(records: &UsageRecords, id: &Name, sequence: u64) -> Result<UsageAccepted, Problem> {
    let (_, recorded) = of_sequence(records, sequence)?;
    Ok(accepted(id, sequence, recorded, true))
}

pub(super) fn accepted(id: &Name, sequence: u64, recorded: &UsageRecorded, repeated: bool) -> UsageAccepted {
    UsageAccepted {
        sequence,
        id: id.to_string(),
        repeated,
        charge: recorded.charge,
        no_submitter: recorded.no_submitter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_model::body::UsageReport;
    use leasehold_model::{AppInstanceNo, Instant, TenantNo, UnitNo, UnitQuantity, UsageCharge};

    fn command(id: &str) -> Box<RecordUsage> {
        let report = UsageReport {
            reporter: None,
            source: Name::new("adapter").expect("a name"),
            id: Name::new(id).expect("a name"),
            app_instance: AppInstanceNo(0),
            unit: UnitNo(0),
            quantity: UnitQuantity::of_whole(1),
            from: Instant(0),
            to: Instant(1),
            correlation: 7,
            control_plane: false,
            attachment: None,
            allocation: None,
            supersedes: None,
        };
        Box::new(RecordUsage {
            tenant: TenantNo(0),
            project: ProjectNo(0),
            user: None,
            report,
            replaces: None,
            replaced_creditor: None,
            named: None,
            known_to: 0,
        })
    }

    /// Books that know the record `old`, as record 3.
    fn books(full: bool) -> FromBooks {
        let RecordUsage { tenant, project, report, .. } = *command("old");
        let identity = Identity { tenant: Some(tenant), project: Some(project), ..Identity::default() };
        let found = KnownUsage { sequence: 3, payload: report.payload(&identity), superseded_by: None };
        let recorded = UsageRecorded {
            report: report.clone(),
            charge: UsageCharge::Billed,
            no_submitter: false,
            replaces: None,
            creditor: None,
            replaced_creditor: None,
        };
        let record = Record::new(3, Instant(0), recorded.clone());
        let known = BTreeMap::from([(report.key(), found)]);
        FromBooks {
            known,
            records: BTreeMap::from([(3, (record, recorded))]),
            allocations: BTreeMap::new(),
            known_to: 4,
            full,
        }
    }

    #[test]
    fn when_no_other_id_is_remembered_those_that_are_known_are_answered() {
        for full in [false, true] {
            let books = books(full);
            let old = with_books(&books, command("old"));
            assert!(matches!(&old, Step::Decided(Ok(accepted)) if accepted.repeated && accepted.sequence == 3));
            assert!(books.has_room_for([&old]).is_ok());
            let new = with_books(&books, command("new"));
            assert!(matches!(&new, Step::Waits(_)));
            let told = books.has_room_for([&old, &new]).map_err(|problem| (problem.status, problem.code));
            assert_eq!(told, if full { Err((429, "too_many_usage_ids".to_owned())) } else { Ok(()) });
        }
    }
}
