//! The state of the daemon's own checks of its files.

use crate::audit::Checkpoint;
use crate::time::{Ttl, When};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is signed, what is not signed yet, and what the scrub found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditStatus {
    /// Whether damage is known: the last complete pass or the present one found some.
    pub damaged: bool,
    /// Number of durable records.
    pub size: u64,
    /// The newest signed checkpoint.
    pub checkpoint: Checkpoint,
    /// Number of durable records that no signed checkpoint covers yet. They are chained, not signed.
    pub unsigned_records: u64,
    /// Whether passes begin by themselves.
    pub scrub_enabled: bool,
    /// Time from the beginning of one pass to the next.
    pub scrub_every: Ttl,
    /// When the next pass begins by itself. Absent while one runs, and if passes do not begin by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<When>,
    /// The pass that runs now, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present: Option<ScrubPass>,
    /// The last pass that ended. Absent if none has ended in this data directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ScrubPass>,
}

/// The state of a pass of the scrub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScrubState {
    /// It waits until the books have processed the journal.
    #[default]
    Waiting,
    /// It reads the segments.
    Running,
    /// It has read everything up to its checkpoint.
    Complete,
    /// It ended early because a file could not be read; `error` says why.
    Failed,
}

/// How far a pass has compared the books with the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScrubBooks {
    /// The comparison is under way.
    #[default]
    Comparing,
    /// Every closed lease and every total was compared.
    Compared,
    /// They were not compared, or not to the end; `books_reason` says why.
    NotCompared,
}

/// One pass of the scrub over all segments and the books.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScrubPass {
    /// The state of the pass.
    pub state: ScrubState,
    /// When it began.
    pub began_at: When,
    /// When it ended. Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<When>,
    /// How often it was continued after a restart of the daemon.
    pub resumed: u32,
    /// Size of the signed checkpoint that the records are compared with.
    pub checkpoint_size: u64,
    /// Sequence number of the first record that was read: 0, unless earlier segments were moved away or deleted.
    pub first_sequence: u64,
    /// Records that were read and found intact, counted from the first record of the journal.
    pub records: u64,
    /// How much of the records up to the checkpoint was read, in percent.
    pub percent: u8,
    /// Bytes of segments that were read.
    pub bytes: u64,
    /// Batches whose authentication code is not by the present `local.secret`. They are covered by the signature; the
    /// secret was replaced, or the code was altered.
    pub batches_of_another_secret: u64,
    /// How far the books were compared with the records.
    pub books: ScrubBooks,
    /// Number of records that the books had processed when the pass began; they are compared as of then.
    pub books_size: u64,
    /// Why the books were not compared to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub books_reason: Option<String>,
    /// Closed leases that were compared with their records.
    pub leases: u64,
    /// Statements about months that were made again from the records and found to be right. Absent until that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<u64>,
    /// Why the statements were not made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements_reason: Option<String>,
    /// Number of findings. At most 100 are listed.
    pub damage_count: u64,
    /// What is damaged or differs.
    pub damage: Vec<ScrubFinding>,
    /// Why the pass ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a finding of the scrub is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScrubFindingKind {
    /// A file of the journal is not as it was written and signed.
    Journal,
    /// A record is intact, but cannot follow the ones before it, or states wrongly what they say.
    Record,
    /// A figure of a closed lease differs between the books and its records.
    Lease,
    /// A total differs between the books and the sum over the records.
    Total,
    /// The books lack a lease, contain one too many, or cannot be read.
    Books,
}

/// Something that a pass found damaged or different.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScrubFinding {
    /// What it is about.
    pub kind: ScrubFindingKind,
    /// What is wrong, as a sentence.
    pub detail: String,
    /// The file, relative to the data directory or to its archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Number of the segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<u32>,
    /// Where in the file the damaged header or batch begins, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Sequence number of the first record that is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The first record after the damage that was checked again. Absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<u64>,
    /// The lease: `lease-` and its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Name of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Name of the resource class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The figure that differs. Totals are in quanta times nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// What the books contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub books: Option<String>,
    /// What follows from the records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<String>,
}

/// The answer to a request for a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScrubBegun {
    /// Whether the request began a pass. If one was running already, it goes on.
    pub begun: bool,
}
