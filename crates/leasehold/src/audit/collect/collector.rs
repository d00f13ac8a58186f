//! Fetches the newest checkpoint and the batches up to it, and checks that they continue the copy.

use super::refusal::Refusal;
use super::statements;
use crate::problem::Problem;
use crate::time_format::now;
use leasehold_client::{Client, Error};
use leasehold_journal::{Failure, Mirror, Misfit};
use leasehold_model::body::PeriodClosed;
use leasehold_model::{Hash, RawBatch};
use leasehold_tlog::{Checkpoint, Note};
use leasehold_verify::{Cosigned, Trust, cosigned};

/// Batches are written when they reach this size.
const UNWRITTEN_BYTES_MAX: usize = 4 << 20;

/// Why collecting stopped.
pub(super) enum Stop {
    Refused(Refusal),
    Daemon(Error),
    Here(Problem),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Daemon(error)
    }
}
impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        let problem = Problem::refused("copy_failed", failure.to_string());
        Self::Here(problem.advice("the next run continues after the last record that was stored"))
    }
}
impl From<Misfit> for Stop {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::Failed(failure) => failure.into(),
            misfit => Self::Refused(misfit.into()),
        }
    }
}

/// Progress of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) records: u64,
    pub(super) records_total: u64,
    /// Bytes fetched in this run.
    pub(super) bytes: u64,
}

pub(super) struct Collector {
    pub(super) client: Client,
    pub(super) mirror: Mirror,
    trust: Trust,
    /// Hash of the trust file, stored with the copy.
    mark: Hash,
    /// Fetched batches; the bytes before `taken` are in the mirror already.
    fetched: Vec<u8>,
    taken: usize,
    /// Bytes added to the mirror in this run.
    pub(super) bytes: u64,
    /// The newest checkpoint that the daemon has shown.
    pub(super) shown: Option<Note>,
    /// Which witnesses of the trust file have cosigned it.
    pub(super) cosigned: Cosigned,
    /// Whether a month may have been closed whose statements have not been recomputed. Stored with the copy.
    pub(super) statements_due: bool,
}

impl Collector {
    pub(super) fn new(client: Client, mirror: Mirror, trust: Trust, mark: Hash) -> Self {
        // What was stored and not proved before the process ended may close a month, too.
        let statements_due = mirror.trust() == statements::due(mark) || mirror.size() > mirror.proved();
        Self {
            client,
            mirror,
            trust,
            mark,
            fetched: Vec::new(),
            taken: 0,
            bytes: 0,
            shown: None,
            cosigned: Cosigned::default(),
            statements_due,
        }
    }

    /// Fetches the newest checkpoint and all records up to it. They are proved and durable afterwards.
    pub(super) async fn round(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<(), Stop> {
        let note = self.newest().await?;
        self.shown = Some(note.clone());
        let size = self.size_of(&note)?;
        if size > 0 {
            self.cosigned = cosigned(&note, &self.trust).map_err(|why| Refusal::new(why.code(), why.to_string()))?;
        }
        while self.mirror.size() < size {
            if self.taken == self.fetched.len() {
                // Write everything before waiting for the daemon.
                self.mirror.flush()?;
                self.fetch(size).await?;
            }
            self.take_batch(size)?;
            progress(Progress { records: self.mirror.size(), records_total: size, bytes: self.bytes });
        }
        if size == 0 {
            return Ok(());
        }
        if self.statements_due {
            self.mirror.prove_with_mark(&note, now(), statements::due(self.mark))?;
        } else {
            self.mirror.prove(&note, now())?;
        }
        self.remember_trust()
    }

    async fn newest(&self) -> Result<Note, Stop> {
        let shown = self.client.checkpoint().await?;
        // Only the note is signed; the other fields of the answer are ignored.
        Ok(Note::parse(&shown.note).map_err(|error| Refusal::of_note(&error))?)
    }

    /// The size of the checkpoint, if it can continue the copy. Its signature is checked when the records have been read.
    fn size_of(&self, note: &Note) -> Result<u64, Refusal> {
        let claimed = Checkpoint::from_body(note.text()).map_err(|error| Refusal::of_note(&error))?;
        if claimed.origin() != self.trust.origin() {
            return Err(Refusal::of_origin(self.trust.origin(), claimed.origin()));
        }
        let (size, had) = (claimed.size(), self.mirror.size());
        if size < had {
            return Err(Refusal::went_back(size, had));
        }
        match self.pinned_size() {
            Some(pinned) if pinned > size => Err(Refusal::pinned_ahead(pinned, size)),
            _ => Ok(size),
        }
    }

    fn pinned_size(&self) -> Option<u64> {
        self.trust.pinned().map(|pinned| pinned.checkpoint.size())
    }

    async fn fetch(&mut self, size: u64) -> Result<(), Stop> {
        let from = self.mirror.size();
        let answered = self.client.batches().query("from", from).answer().await;
        self.taken = 0;
        self.fetched = match answered {
            Ok(bytes) if bytes.is_empty() => return Err(Refusal::withheld(from, size).into()),
            Ok(bytes) => bytes,
            // The daemon has shown a checkpoint that covers this record.
            Err(error) if error.code() == "no_such_record" => return Err(Refusal::withheld(from, size).into()),
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    /// Adds the next batch to the mirror; `size` is that of the checkpoint to reach.
    fn take_batch(&mut self, size: u64) -> Result<(), Stop> {
        let begin = self.mirror.size();
        let batch = RawBatch::read(&self.fetched[self.taken..]).map_err(|damage| Refusal::of_batch(begin, &damage))?;
        self.mirror.take(&batch)?;
        let closed = u64::from(PeriodClosed::KIND);
        self.statements_due |= batch.records().flatten().any(|record| record.kind() == Ok(closed));
        self.taken += batch.bytes_total();
        self.bytes += batch.bytes_total() as u64;
        let end = self.mirror.size();
        if end > size {
            return Err(Refusal::inside_a_batch("the daemon's answer", size, end).into());
        }
        if let Some(pinned) = self.trust.pinned().filter(|pinned| (begin + 1..=end).contains(&pinned.checkpoint.size()))
        {
            let pinned_size = pinned.checkpoint.size();
            if pinned_size < end {
                return Err(Refusal::inside_a_batch("the trust file", pinned_size, end).into());
            }
            self.mirror.fits(&pinned.note).map_err(|misfit| Refusal::pinned(&misfit, pinned_size))?;
        }
        if self.mirror.pending_bytes() >= UNWRITTEN_BYTES_MAX {
            self.mirror.flush()?;
        }
        Ok(())
    }

    /// The statements of all closed months are those that the records lead to.
    pub(super) fn statements_recomputed(&mut self) -> Result<(), Stop> {
        self.statements_due = false;
        self.remember_trust()
    }

    /// A new trust file counts as compared once the copy has reached its checkpoint.
    fn remember_trust(&mut self) -> Result<(), Stop> {
        if !self.statements_due
            && self.mirror.trust() != self.mark
            && self.pinned_size().unwrap_or(0) <= self.mirror.proved()
        {
            self.mirror.set_trust(self.mark)?;
        }
        Ok(())
    }
}
