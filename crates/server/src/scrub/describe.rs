//! Findings in words: for the log and for `audit status`.

use crate::app::App;
use leasehold_api::{ScrubFinding, ScrubFindingKind};
use leasehold_model::{ClassNo, TenantNo};
use leasehold_scrub::Finding;

/// A finding with the names that its reader knows.
pub(super) fn describe(app: &App, finding: Finding) -> ScrubFinding {
    let empty = |kind, detail| ScrubFinding {
        kind,
        detail,
        file: None,
        segment: None,
        offset: None,
        sequence: None,
        resumed_at: None,
        lease: None,
        tenant: None,
        class: None,
        figure: None,
        books: None,
        records: None,
    };
    match finding {
        Finding::Journal(damage) => ScrubFinding {
            file: Some(damage.file.clone()),
            segment: Some(damage.segment),
            offset: Some(damage.offset),
            sequence: Some(damage.sequence),
            resumed_at: damage.resumed_at,
            ..empty(
                ScrubFindingKind::Journal,
                format!(
                    "{} is damaged at byte {} (record {}): {}; restore the file from a copy, with the daemon stopped.",
                    damage.file, damage.offset, damage.sequence, damage.why
                ),
            )
        },
        Finding::Record { sequence, what } => ScrubFinding {
            sequence: Some(sequence),
            ..empty(
                ScrubFindingKind::Record,
                format!("Record {sequence} contradicts the ones before it: {what}; run leasehold-verify on a copy."),
            )
        },
        Finding::Statement { sequence, what } => ScrubFinding {
            sequence: Some(sequence),
            ..empty(
                ScrubFindingKind::Record,
                format!(
                    "Record {sequence} is wrong about the statements of a month: {what}; run leasehold-verify on a copy."
                ),
            )
        },
        Finding::Lease { lease, figure, books, records } => ScrubFinding {
            lease: Some(lease.to_string()),
            figure: Some(figure.to_owned()),
            ..empty(
                ScrubFindingKind::Lease,
                format!(
                    "The books differ from the records of lease-{}: {figure} is {books} in the books and {records} \
                     by the records; {REBUILD}",
                    lease.0
                ),
            )
        }
        .with(books, records),
        Finding::Total { tenant, class, books, records } => {
            let (tenant, class) = (tenant_name(app, tenant), class_name(app, class));
            ScrubFinding {
                tenant: Some(tenant.clone()),
                class: Some(class.clone()),
                figure: Some("held".to_owned()),
                ..empty(
                    ScrubFindingKind::Total,
                    format!(
                        "The books differ from the records: what {tenant} held of {class} is {books} quanta × ns in \
                         the books, and {records} as the sum over its leases; {REBUILD}"
                    ),
                )
            }
            .with(books.to_string(), records.to_string())
        }
        Finding::Books { what } => {
            empty(ScrubFindingKind::Books, format!("The books differ from the records: {what}; {REBUILD}"))
        }
    }
}

const REBUILD: &str = "stop the daemon, remove books.redb and start it again to rebuild the books.";

trait With {
    fn with(self, books: String, records: String) -> Self;
}

impl With for ScrubFinding {
    /// With both values.
    fn with(mut self, books: String, records: String) -> Self {
        (self.books, self.records) = (Some(books), Some(records));
        self
    }
}

fn tenant_name(app: &App, tenant: TenantNo) -> String {
    let name = app.now.read(|state| state.tenant(tenant).map(|tenant| tenant.settings.name.to_string()));
    name.unwrap_or_else(|| format!("tenant-{}", tenant.0))
}

fn class_name(app: &App, class: ClassNo) -> String {
    let name = app.now.read(|state| state.class(class).map(|class| class.name.to_string()));
    name.unwrap_or_else(|| format!("class-{}", class.0))
}

/// One line for each finding, with what a person needs to look at it.
pub(super) fn log(finding: &ScrubFinding) {
    let ScrubFinding { detail, file, offset, sequence, lease, .. } = finding;
    match finding.kind {
        ScrubFindingKind::Journal => {
            let (segment, offset, record) = (file.as_deref().unwrap_or_default(), offset, sequence);
            tracing::error!(segment, offset, record, "the scrub found damage in the journal: {detail}");
        }
        ScrubFindingKind::Record => {
            tracing::error!(record = sequence, "the scrub found an impossible record: {detail}")
        }
        ScrubFindingKind::Lease | ScrubFindingKind::Total | ScrubFindingKind::Books => {
            tracing::error!(lease = lease.as_deref(), "the scrub found wrong books: {detail}");
        }
    }
}
