//! Steps of a timeline, as the API shows them.

use crate::app::App;
use crate::past::Known;
use crate::show_ledger::{LedgerView, amount, month, too_large};
use leasehold_api as api;
use leasehold_api::{Problem, TimelineKind, When};
use leasehold_books::{Books, HourUsage, InvoicedLine, Request, Row, StepKind, Timeline, TimelineStep, TimelineWhat};
use leasehold_engine::State;
use leasehold_ledger::{Amount, rounded};
use leasehold_model::ledger::Item;
use leasehold_model::{AllocationState, AttemptEnd, LeaseNo, Quanta, Residual, quantity};
use std::collections::BTreeMap;

/// Leases that are named before the rest is counted.
const NAMED: usize = 3;

fn kind_of(kind: StepKind) -> TimelineKind {
    match kind {
        StepKind::Submitted | StepKind::Changed | StepKind::HoldSet | StepKind::HoldCleared => TimelineKind::Request,
        StepKind::Granted
        | StepKind::Denied
        | StepKind::LeaseDenied
        | StepKind::Placed
        | StepKind::PreemptionDecided
        | StepKind::ReservationDropped
        | StepKind::ReservationTakenOver
        | StepKind::HeadProtected => TimelineKind::Decision,
        StepKind::Renewed
        | StepKind::Released
        | StepKind::Expired
        | StepKind::Revoked
        | StepKind::TeardownStarted
        | StepKind::TornDown
        | StepKind::Fenced
        | StepKind::Unfenced
        | StepKind::EndCorrected
        | StepKind::WindowAnnounced => TimelineKind::Lease,
        StepKind::Started
        | StepKind::Checkpointing
        | StepKind::Checkpointed
        | StepKind::Suspended
        | StepKind::Requeued
        | StepKind::Completed
        | StepKind::Failed
        | StepKind::Cancelled => TimelineKind::Allocation,
        StepKind::UsageRecorded => TimelineKind::Usage,
        StepKind::Posted => TimelineKind::Entry,
        StepKind::Corrected => TimelineKind::Correction,
        StepKind::Invoiced => TimelineKind::Invoice,
    }
}

/// The first of some words, and the number of the others.
fn listed(all: &[String]) -> String {
    match all.len().checked_sub(NAMED).filter(|more| *more > 1) {
        Some(more) => format!("{} and {more} more", all[..NAMED].join(", ")),
        None => all.join(", "),
    }
}

/// What is needed to tell a timeline.
pub(crate) struct TimelineView<'v> {
    pub(crate) app: &'v App,
    pub(crate) state: &'v State,
    pub(crate) books: &'v Books,
    pub(crate) found: &'v Timeline,
}

impl TimelineView<'_> {
    fn known(&self) -> Known<'_> {
        Known { state: self.state, books: self.books }
    }
    fn ledger(&self) -> LedgerView<'_> {
        LedgerView { app: self.app, state: self.state, books: self.books }
    }

    pub(crate) fn step(&self, step: &TimelineStep) -> Result<api::TimelineStep, Problem> {
        let blank = |kind: TimelineKind, event: &str| api::TimelineStep {
            at: When(step.at),
            sequence: step.sequence,
            kind,
            event: event.to_owned(),
            text: String::new(),
            allocation_id: None,
            lease_ids: Vec::new(),
            count: 1,
            usage: None,
            entries: Vec::new(),
            invoice: None,
        };
        let allocation = |request: &Request| match request {
            Request::Allocation(number) => Some(api::AllocationId::from(*number)),
            Request::Grant(_) | Request::Denial(_) | Request::Usage(_) => None,
        };
        Ok(match &step.what {
            TimelineWhat::Record { kind, request, leases, count } => api::TimelineStep {
                text: self.record_text(*kind, *request, leases, step),
                allocation_id: allocation(request),
                lease_ids: leases.iter().map(ToString::to_string).collect(),
                count: *count,
                ..blank(kind_of(*kind), kind.word())
            },
            TimelineWhat::Usage { request, usage } => {
                let shown = self.usage(usage)?;
                let api::LedgerLine { class, pool, unit, unit_hours, .. } = &shown.line;
                let quantity = unit_hours.as_deref().unwrap_or_default();
                let quantity = quantity.trim_end_matches('0').trim_end_matches('.');
                let (class, pool) = (class.as_deref().unwrap_or_default(), pool.as_deref().unwrap_or_default());
                api::TimelineStep {
                    text: format!("{quantity} {unit}-hours of {class} in {pool}, {} {}", shown.cost.0, shown.currency),
                    allocation_id: allocation(request),
                    usage: Some(Box::new(shown)),
                    ..blank(TimelineKind::Usage, "usage")
                }
            }
            TimelineWhat::Entries { kind, entries, .. } => {
                let view = self.ledger();
                let entries = entries.iter().map(|entry| view.entry(entry)).collect::<Result<Vec<_>, _>>()?;
                let one = |entry: &api::LedgerEntry| {
                    format!("{} {} {} {}", entry.id, entry.kind, entry.amount.0, entry.currency)
                };
                let text = listed(&entries.iter().map(one).collect::<Vec<_>>());
                api::TimelineStep { text, entries, ..blank(kind_of(*kind), kind.word()) }
            }
            TimelineWhat::Invoice { number, month: of, currency, lines, .. } => {
                let lines: Vec<_> = lines.iter().map(|line| self.invoice_line(line)).collect();
                let one = |line: &api::TimelineInvoiceLine| format!("line {}: {} {currency}", line.line, line.amount.0);
                let text = format!("{number}, {}", listed(&lines.iter().map(one).collect::<Vec<_>>()));
                let (number, currency) = (number.to_string(), currency.to_string());
                let invoice = api::TimelineInvoice { number, month: month(*of), currency, lines };
                api::TimelineStep {
                    text,
                    invoice: Some(invoice),
                    ..blank(TimelineKind::Invoice, StepKind::Invoiced.word())
                }
            }
        })
    }

    fn usage(&self, usage: &HourUsage) -> Result<api::TimelineUsage, Problem> {
        let view = self.ledger();
        let quantity = i128::try_from(usage.usage).map_err(|_| too_large())?;
        let exact = Amount::decoded(&usage.cost).ok_or_else(too_large)?;
        let posted = rounded(Residual::NONE, &[exact]).map_err(|_| too_large())?;
        Ok(api::TimelineUsage {
            line: view.line(&usage.key, quantity, &usage.cost)?,
            payer: view.project(usage.payer),
            cost: amount(posted.lines[0]),
            currency: usage.currency.to_string(),
        })
    }

    fn invoice_line(&self, line: &InvoicedLine) -> api::TimelineInvoiceLine {
        let view = self.ledger();
        let (class, usage_unit) = match line.key.item {
            Some(Item::Class(class)) => (Some(view.class(class)), None),
            Some(Item::Unit(unit)) => (None, Some(view.unit(unit))),
            None => (None, None),
        };
        let is_class = class.is_some();
        api::TimelineInvoiceLine {
            line: line.number,
            month: month(line.key.month),
            project: view.project(line.key.project),
            pool: line.key.pool.filter(|_| is_class).map(|pool| view.pool(pool)),
            class,
            usage_unit,
            priority: line.key.priority.filter(|_| is_class),
            correction: line.key.correction,
            amount: amount(line.line.posted),
        }
    }

    /// The nodes of leases, each with what they hold there.
    fn on_nodes(&self, leases: &[LeaseNo]) -> String {
        let rows: Vec<&Row> = leases.iter().filter_map(|lease| self.found.leases.get(lease)).collect();
        let mut nodes: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for row in rows {
            let held = self.books.class(row.class).map_or_else(
                || row.class.to_string(),
                |class| format!("{} {}", quantity::display(Quanta(row.quanta), class), class.name),
            );
            nodes.entry(row.node).or_default().push(held);
        }
        let one = |(node, held): (_, Vec<String>)| format!("{} on {}", held.join(" + "), self.known().node(node));
        listed(&nodes.into_iter().map(one).collect::<Vec<_>>())
    }

    /// What was reported.
    fn reported_text(&self, sequence: u64) -> String {
        let record = crate::explain::decision::read(self.app, sequence);
        let Ok(leasehold_model::Body::UsageRecorded(recorded)) = record.map(|record| record.body) else {
            return format!("usage record {sequence}");
        };
        let (report, view) = (&recorded.report, self.ledger());
        let instance = view.app_instance(report.app_instance);
        let (quantity, unit, charge) = (report.quantity, view.unit(report.unit), recorded.charge);
        let mut text = format!("{}: {quantity} {unit} of {instance}, {charge}", report.id);
        if report.control_plane {
            text += ", control plane";
        }
        if recorded.no_submitter {
            text += ", without a submitter";
        }
        if let Some(superseded) = &report.supersedes {
            text += &format!(", in place of {superseded}");
        }
        text
    }

    fn record_text(&self, kind: StepKind, request: Request, leases: &[LeaseNo], step: &TimelineStep) -> String {
        let names = listed(&leases.iter().map(ToString::to_string).collect::<Vec<_>>());
        let row = leases.first().and_then(|lease| self.found.leases.get(lease));
        let story = match request {
            Request::Allocation(number) => self.found.allocations.get(&number),
            Request::Grant(_) | Request::Denial(_) | Request::Usage(_) => None,
        };
        // How the attempt ended that this record interrupted.
        let interrupted = || {
            let attempts = story.map_or(&[][..], |story| &story.attempts[..]);
            let placed = attempts.iter().rev().find(|attempt| step.sequence.is_some_and(|at| attempt.sequence < at));
            placed.and_then(|attempt| Some(format!("attempt {}: {}", attempt.number, attempt.end?)))
        };
        match (kind, row, story) {
            (StepKind::Granted, ..) => format!("{names}: {}", self.on_nodes(leases)),
            (StepKind::Renewed, Some(row), _) => format!("{names}, until {}", When(row.life.expires_at)),
            (StepKind::Revoked, Some(row), _) => {
                let reason = row.revocation().map_or("operator", |revoked| revoked.reason.word());
                format!("{names}: {reason}")
            }
            (StepKind::EndCorrected, Some(row), _) => format!("{names}: billed until {}", When(row.held.to)),
            (StepKind::Submitted, _, Some(story)) => {
                let outline = &story.outline;
                let (tenant, project) = (self.known().tenant(outline.tenant), self.known().project(outline.project));
                format!("{} of {tenant}/{project}, {}", outline.number, outline.priority)
            }
            (StepKind::Denied, ..) => "the request can never be met; explain the decision for the reasons".to_owned(),
            (StepKind::UsageRecorded, ..) => self.reported_text(step.sequence.unwrap_or_default()),
            (StepKind::LeaseDenied, ..) => {
                let number = step.sequence.unwrap_or_default();
                format!("the request was denied; `leasehold audit replay --sequence {number}` shows why")
            }
            (StepKind::Placed, _, Some(story)) => {
                let placed = story.attempts.iter().find(|attempt| Some(attempt.sequence) == step.sequence);
                placed.map_or_else(String::new, |attempt| {
                    let leases = if attempt.leases == 1 { "lease" } else { "leases" };
                    format!("attempt {}, {} {leases}", attempt.number, attempt.leases)
                })
            }
            (StepKind::Suspended | StepKind::Requeued, ..) => interrupted().unwrap_or_default(),
            (StepKind::Failed, _, Some(story)) if story.outline.state == AllocationState::Failed => {
                let end = story.over.and_then(|over| over.end);
                end.map_or_else(String::new, |end: AttemptEnd| end.to_string())
            }
            _ => names,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn long_lists_are_counted() {
        let all: Vec<String> = (1..=6).map(|n| n.to_string()).collect();
        assert_eq!(listed(&all[..3]), "1, 2, 3");
        assert_eq!(listed(&all[..4]), "1, 2, 3, 4");
        assert_eq!(listed(&all), "1, 2, 3 and 3 more");
        assert_eq!(listed(&[]), "");
    }
}
