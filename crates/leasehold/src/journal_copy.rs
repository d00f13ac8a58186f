//! Copies the signed records of one directory into another and verifies each of them, for `backup` and `restore`.

use crate::numbers::{bytes, thousands};
use crate::problem::Problem;
use crate::term;
use crate::time_format::now;
use leasehold_journal::disk::Disk;
use leasehold_journal::{Failure, Mirror, Misfit, OpenError, Options, ReadOnly, RealDisk, SignedHead};
use leasehold_model::{Body, RawBatch};
use leasehold_tlog::{Note, VerifierKey};
use leasehold_verify::Trust;
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Batches are written when they reach this size.
const UNWRITTEN_BYTES_MAX: usize = 4 << 20;
/// How often the progress line is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// A directory with a journal, read-only. A daemon may be writing to it.
pub(crate) struct Source {
    path: PathBuf,
    journal: ReadOnly,
    first_key: VerifierKey,
}

/// A checkpoint that somebody has seen, and that the copied records must lead to.
pub(crate) struct Seen {
    pub(crate) size: u64,
    pub(crate) note: Note,
    pub(crate) whose: PathBuf,
}

/// The copy, proved by the checkpoint of the source.
pub(crate) struct Copied {
    pub(crate) mirror: Mirror,
    /// Records and bytes that were not in the target before.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

fn disk(path: &Path) -> Arc<dyn Disk> {
    Arc::new(RealDisk::new(path))
}

impl Source {
    pub(crate) fn open(path: &Path, archives: &[PathBuf]) -> Result<Self, Problem> {
        let archives = archives.iter().map(|archive| disk(archive)).collect();
        let journal = ReadOnly::open(disk(path), archives).map_err(|error| unreadable(path, &error))?;
        let first_key = first_key(path, &journal)?;
        Ok(Self { path: path.to_owned(), journal, first_key })
    }

    pub(crate) fn signed(&self) -> &SignedHead {
        self.journal.signed()
    }

    /// Copies everything up to the signed checkpoint into a directory: a new one, or an earlier copy of this journal.
    pub(crate) fn copy_to(&self, to: &Path, seen: &[Seen]) -> Result<Copied, Problem> {
        let signed = self.signed();
        let size = signed.head.size;
        let mark = Sha256::digest(self.first_key.public_key()).into();
        let trusted = vec![self.first_key.clone()];
        let mut mirror = Mirror::open(disk(to), Options::default(), &signed.origin, trusted, mark, now())
            .map_err(|error| target_unusable(to, &error))?;
        if mirror.size() > size {
            // What an interrupted run has copied is no part of the copy yet.
            mirror.forget_unproved().map_err(|failure| not_written(to, &failure))?;
        }
        if mirror.proved() > size {
            return Err(Problem::not_verified(
                "copy_ahead",
                format!(
                    "the copy has {} records and the journal only {}: the journal has lost records, or an older state of it was put back",
                    thousands(mirror.proved()),
                    thousands(size)
                ),
            )
            .at(to)
            .advice("keep this copy, and find out what happened to the journal"));
        }
        let (had, mut copied_bytes, mut problem) = (mirror.size(), 0, None);
        let mut line = Line::new();
        let scanned = self.journal.scan_batches(had, &mut |batch| {
            if mirror.size() >= size {
                return ControlFlow::Break(());
            }
            match take(&mut mirror, batch, seen) {
                Ok(()) => {
                    copied_bytes += batch.bytes_total() as u64;
                    line.draw(mirror.size(), size, copied_bytes);
                    ControlFlow::Continue(())
                }
                Err(stop) => {
                    problem = Some(stop);
                    ControlFlow::Break(())
                }
            }
        });
        line.clear();
        if let Some(stop) = problem {
            return Err(stop.into_problem(&self.path, to));
        }
        scanned.map_err(|error| unreadable(&self.path, &error))?;
        if mirror.size() < size {
            let error = OpenError::AnchorAhead { anchor: size, journal: mirror.size() };
            return Err(unreadable(&self.path, &error));
        }
        mirror.prove(&signed.note, now()).map_err(|misfit| Stop::from(misfit).into_problem(&self.path, to))?;
        Ok(Copied { records: mirror.size() - had, bytes: copied_bytes, mirror })
    }

    /// Reads the finished copy again, and verifies it as an auditor does.
    pub(crate) fn verify(&self, copy: &Path) -> Result<(), Problem> {
        let mut trust = Trust::new(self.first_key.clone());
        trust.pin(&self.signed().note.to_string()).map_err(|error| not_verified(copy, &error.to_string()))?;
        let options = leasehold_verify::Options {
            data: copy.to_owned(),
            archives: Vec::new(),
            trust,
            threads: 0,
            progress: None,
        };
        leasehold_verify::verify(&options).map(|_| ()).map_err(|failure| not_verified(copy, &failure.to_string()))
    }
}

fn not_verified(copy: &Path, why: &str) -> Problem {
    Problem::not_verified("copy_damaged", format!("the copy was written and does not verify: {why}"))
        .at(copy)
        .advice("remove the copy and make a new one, on another disk")
}

/// The key that the first record pins.
fn first_key(path: &Path, journal: &ReadOnly) -> Result<VerifierKey, Problem> {
    let mut found = None;
    let scanned = journal.scan_from_genesis(&mut |entry| {
        if let Ok(record) = entry.raw.decode()
            && let Body::Genesis(genesis) = record.body
        {
            found = VerifierKey::new(&journal.signed().origin, &genesis.public_key).ok();
        }
        ControlFlow::Break(())
    });
    scanned.map_err(|error| unreadable(path, &error))?;
    found.ok_or_else(|| {
        Problem::refused("journal_empty", "the journal has no signed record yet")
            .at(path)
            .advice("try again in a moment, or check the path")
    })
}

/// Why copying stopped.
enum Stop {
    Misfit(Misfit),
    Failed(Failure),
    /// A checkpoint that somebody has seen is not of this journal.
    Contradicts(PathBuf, String),
}

impl From<Misfit> for Stop {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::Failed(failure) => Self::Failed(failure),
            misfit => Self::Misfit(misfit),
        }
    }
}

impl Stop {
    fn into_problem(self, from: &Path, to: &Path) -> Problem {
        match self {
            Self::Misfit(misfit) => Problem::told(misfit.code(), &misfit).is_not_verified().at(from),
            Self::Failed(failure) => not_written(to, &failure),
            Self::Contradicts(whose, why) => {
                Problem::not_verified("collector_contradicts", format!("the copy contradicts the records: {why}"))
                    .at(&whose)
                    .advice(
                        "both are signed: find out which of the two is the history that counts before you restore any",
                    )
            }
        }
    }
}

/// Verifies a batch and adds it to the copy.
fn take(mirror: &mut Mirror, batch: &RawBatch<'_>, seen: &[Seen]) -> Result<(), Stop> {
    let begin = mirror.size();
    mirror.take(batch)?;
    for one in seen.iter().filter(|one| (begin + 1..=mirror.size()).contains(&one.size)) {
        let contradicts = |why: String| Stop::Contradicts(one.whose.clone(), why);
        if one.size < mirror.size() {
            return Err(contradicts(format!("its checkpoint of {} records lies inside a batch", one.size)));
        }
        mirror.fits(&one.note).map_err(|misfit| contradicts(misfit.to_string()))?;
    }
    if mirror.pending_bytes() >= UNWRITTEN_BYTES_MAX {
        mirror.flush().map_err(Stop::Failed)?;
    }
    Ok(())
}

fn not_written(to: &Path, failure: &Failure) -> Problem {
    Problem::refused("copy_failed", failure.to_string()).at(to).advice("make room, and run the command again")
}

fn target_unusable(to: &Path, error: &OpenError) -> Problem {
    let problem = Problem::told(error.code(), error).at(to);
    match error {
        OpenError::NotACopy => problem.advice("choose an empty directory, or an earlier backup of this journal"),
        OpenError::WrongOrigin { .. } => problem.advice("choose another directory: this one is of another journal"),
        _ => problem,
    }
}

pub(crate) fn unreadable(path: &Path, error: &OpenError) -> Problem {
    let problem = Problem::told(error.code(), error).at(path);
    match error {
        OpenError::MissingSegment { .. } => problem.advice(
            "if it was archived, give its directory with --archive; if it was deleted for good, stop the daemon and copy \
             the whole data directory instead",
        ),
        OpenError::MissingAnchor => {
            problem.advice("a backup that was interrupted before its end is none; make it again")
        }
        _ if error.is_damage() => problem.is_not_verified(),
        _ => problem,
    }
}

/// The progress line; draws nothing without a terminal.
struct Line {
    drawn: Option<Instant>,
    drawable: bool,
}

impl Line {
    fn new() -> Self {
        Self { drawn: None, drawable: term::drawable().is_some() }
    }

    fn draw(&mut self, records: u64, total: u64, copied: u64) {
        let at = Instant::now();
        if !self.drawable || self.drawn.is_some_and(|drawn| at - drawn < DRAW_EVERY) {
            return;
        }
        self.drawn = Some(at);
        let (records, total) = (thousands(records), thousands(total));
        term::say(&format!("\rcopying  {records} of {total} records  {}\x1b[K", bytes(copied)));
    }

    fn clear(&mut self) {
        if self.drawn.take().is_some() {
            term::say("\r\x1b[K");
        }
    }
}
