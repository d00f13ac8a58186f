//! The auditor's program: verifies that a journal is intact, from its files alone.
//!
//! In: the data directory of a cell or a copy of it, directories with archived segments, and the auditor's own trust
//! file. Out: yes, with how far completeness is proved and by what; or no, with the first problem found.
//!
//! The checks are those listed in `docs/reference/journal-format.md`. Memory is bounded for any input, except
//! that recomputing statements about months needs as much as there are open leases.
//! Never: write into the directory, use the network, trust a text from the directory before its signature is checked,
//! panic on its input, or share code with the server beyond the format (`model`), the tree (`tlog`) and what the records
//! of a month amount to (`bill`).

mod anchor_file;
mod chain;
mod chunks;
pub mod cli;
mod cosigned;
pub mod evidence;
mod failure;
pub mod invoice;
mod join;
mod keys;
mod progress;
mod receipt;
mod report;
mod segments;
mod statements;
mod text;
mod torn;
mod tree;
mod trust;
mod work;

pub use cosigned::{Cosigned, cosigned};
pub use failure::{Document, Failure, Why};
pub use keys::Rotation;
pub use report::{ProvedBy, Report, STAMP_TOLERANCE, Statements, TornTail, Witnessed};
pub use trust::{Pinned, Trust, TrustError};

use anchor_file::{ANCHOR_BYTES, Anchor, AnchorFile, read_anchor};
use chunks::{ChunkReader, Flaw, read_trees};
use join::Joiner;
use segments::{Segments, read_small, unreadable};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What to verify, and against what.
pub struct Options<'a> {
    /// The directory that contains `journal` and `anchor`.
    pub data: PathBuf,
    /// Directories with archived segments.
    pub archives: Vec<PathBuf>,
    pub trust: Trust,
    /// 0 for the number of cores.
    pub threads: usize,
    /// Called from time to time, from any thread.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

/// How much has been verified so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub bytes: u64,
    /// Size of the files with their padding, which is not all read: `bytes` may end below it.
    pub bytes_total: u64,
    pub records: u64,
}

/// Verifies a journal.
///
/// # Errors
/// The first problem, in journal order. [`Failure::is_unreadable`] distinguishes files that could not be read from a
/// journal that is not intact.
pub fn verify(options: &Options<'_>) -> Result<Report, Failure> {
    const ATTEMPTS_MAX: u32 = 8;
    let mut before: Option<Failure> = None;
    for attempt in 1.. {
        let failure = match verify_once(options) {
            Ok(report) => return Ok(report),
            Err(failure) => failure,
        };
        // A running cell may be writing after the last signed record: what was incomplete may be complete by now. A real
        // problem is found again by the next attempt.
        let same = before.as_ref().is_some_and(|b| b.sequence == failure.sequence && b.code() == failure.code());
        if same || attempt == ATTEMPTS_MAX || failure.agreed_up_to == 0 || failure.is_unreadable() {
            return Err(failure);
        }
        before = Some(failure);
    }
    unreachable!("the last attempt returns")
}

/// Verifies the files as they are now.
fn verify_once(options: &Options<'_>) -> Result<Report, Failure> {
    let began = Instant::now();
    let trust = &options.trust;
    // The anchor is read first: a journal that is being written may be ahead of it, but never behind.
    let (anchor, anchor_slot_damaged) = find_anchor(&options.data)?;
    if anchor.origin != trust.origin() {
        let found = Some(anchor.origin);
        return Err(anchor_failure(&options.data, Why::WrongOrigin { expected: trust.origin().to_owned(), found }));
    }
    let segments = Segments::find(&options.data, &options.archives)?;
    let mut marks: Vec<u64> = trust.pinned().map(|pinned| pinned.checkpoint.size()).into_iter().collect();
    marks.push(anchor.size);
    marks.sort_unstable();
    marks.dedup();

    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let (reader, joiner) = (ChunkReader::new(&segments), Joiner::new(trust, &anchor));
    let (mut joiner, flaw) = work::run(reader, joiner, &marks, threads, segments.bytes_total(), options.progress);
    let agreed_up_to = joiner.agreed_up_to;
    let finished = finish(&mut joiner, flaw, &segments, &anchor, trust).map_err(|flaw| Failure {
        agreed_up_to: agreed_up_to.max(joiner.agreed_up_to),
        file: flaw.failure.file.clone().or_else(|| file_of(&flaw.failure, &segments, &options.data)),
        ..*flaw.failure
    });
    let torn_tail = finished?;
    let statements = statements::recompute(&joiner, &segments, options.progress)?;
    let found = (statements, torn_tail);
    Ok(Report::new(joiner, &anchor, trust, &segments, found, anchor_slot_damaged, began.elapsed()))
}

fn find_anchor(data: &Path) -> Result<(Anchor, bool), Failure> {
    // Distinguishes a directory that cannot be read from one without a journal.
    std::fs::read_dir(data).map_err(|error| unreadable(data, error))?;
    let journal = data.join("journal");
    if !journal.try_exists().map_err(|error| unreadable(&journal, error))? {
        return Err(Failure::new(Why::NoJournal).in_file(data));
    }
    let bytes = read_small(&data.join("anchor"), ANCHOR_BYTES)?;
    match read_anchor(&bytes.ok_or_else(|| anchor_failure(data, Why::NoAnchor))?) {
        AnchorFile::Good { anchor, slot_damaged } => Ok((*anchor, slot_damaged)),
        AnchorFile::NewerFormat(version) => Err(anchor_failure(data, Why::NewerFormat(version))),
        AnchorFile::Bad(why) => Err(anchor_failure(data, Why::BadAnchor(why))),
    }
}

fn anchor_failure(data: &Path, why: Why) -> Failure {
    Failure::new(why).in_file(data.join("anchor"))
}

/// The checks that need the end of the journal: whether it is torn or damaged, and whether more records were signed.
fn finish(
    joiner: &mut Joiner<'_>,
    flaw: Option<Flaw>,
    segments: &Segments,
    anchor: &Anchor,
    trust: &Trust,
) -> Result<Option<TornTail>, Flaw> {
    let torn_tail = match flaw {
        None => None,
        Some(flaw) => Some(torn_or_damaged(flaw, joiner, segments)?),
    };
    joiner.settle()?;
    let records = joiner.size();
    let last_begun = segments.files[..segments.begun].last().map_or(0, |file| file.number);
    // Segments without records have consecutive numbers too: if one is missing, it was not empty.
    for (number, file) in (last_begun + 1..).zip(&segments.files[segments.begun..]) {
        if file.number != number {
            return Err(Failure::new(Why::MissingSegment(number)).into());
        }
    }
    // A tree file is written once its segment contains a record: if it exists, so did the segment, with its header.
    let last_whole = match torn_tail {
        Some(TornTail { segment, offset: 0, .. }) => segment - 1,
        _ => last_begun,
    };
    if let Some(number) = segments.trees.keys().find(|number| **number > last_whole) {
        let ahead = read_trees(segments, *number)?.iter().map(|tree| tree.tree.size()).max();
        return Err(Failure::new(match ahead {
            Some(tree) if tree > records => Why::TreeAhead { tree, records },
            _ => Why::MissingSegment(*number),
        })
        .into());
    }
    if anchor.size > records {
        return Err(Failure::new(Why::AnchorAhead { anchor: anchor.size, records }).at_sequence(records).into());
    }
    match trust.pinned().map(|pinned| pinned.checkpoint.size()) {
        Some(pinned) if pinned > records => {
            Err(Failure::new(Why::PinnedAhead { pinned, records }).at_sequence(records).into())
        }
        _ => Ok(torn_tail),
    }
}

/// Accepts the flaw if a crash can have caused it (journal-format.md, "A torn end").
fn torn_or_damaged(flaw: Flaw, joiner: &Joiner<'_>, segments: &Segments) -> Result<TornTail, Flaw> {
    let last_begun = segments.files[..segments.begun].last();
    let at_the_end = last_begun.filter(|file| flaw.failure.segment == Some(file.number));
    let (Some(offset), Some(file)) = (flaw.torn_from, at_the_end) else {
        return Err(flaw);
    };
    if joiner.signed_up_to() > joiner.size() {
        return Err(flaw);
    }
    // In a segment whose header is torn, a batch may begin anywhere, of any version that may follow there.
    let versions = joiner.possible_versions(offset == 0);
    let (made, later_from) = match offset {
        0 => (Ok(false), 0),
        _ => (torn::has_right_checksum(&file.path, offset, versions[0]), offset + 1),
    };
    let later = |made| Ok(made || torn::good_batch_from(&file.path, later_from, joiner.size(), &versions)?);
    match made.and_then(later) {
        Ok(false) => {}
        Ok(true) => return Err(flaw),
        Err(error) => return Err(unreadable(&file.path, error).into()),
    }
    let end = torn::end_of_bytes(&file.path, offset).map_err(|error| unreadable(&file.path, error))?;
    Ok(TornTail { segment: file.number, offset, bytes: end - offset })
}

/// The file that a failure is about, where the failure does not name it.
fn file_of(failure: &Failure, segments: &Segments, data: &Path) -> Option<PathBuf> {
    let document = match failure.why {
        Why::BadAnchor(_)
        | Why::AnchorAhead { .. }
        | Why::AnchorTooOld { .. }
        | Why::BadCosignature { .. }
        | Why::MissingCosignatures { .. } => Document::Anchor,
        Why::RootMismatch { document, .. }
        | Why::HeadMismatch { document }
        | Why::BadSignature { document, .. }
        | Why::NotSigned { document, .. }
        | Why::BadCheckpoint { document, .. } => document,
        Why::BadTreeFile(_) => Document::Tree(failure.segment?),
        _ => return segments.path_of(failure.segment?).map(Path::to_owned),
    };
    match document {
        Document::Anchor => Some(data.join("anchor")),
        Document::Tree(number) => segments.trees.get(&number)?.first().cloned(),
        Document::Pinned => None,
    }
}
