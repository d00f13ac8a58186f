//! The steps of the pipeline, without threads. The caller decides which of them run concurrently.

use crate::clock::{Clock, Stamper};
use crate::inbox::{Reply, Unsealed};
use crate::notice::ClockJump;
use crate::now::Now;
use leasehold_engine::command::{Nothing, NoticeClockJump};
use leasehold_engine::{Command, Engine, FoldError, Records, Request, Sealed, Sequences};
use leasehold_journal::disk::is_out_of_files;
use leasehold_journal::{AppendError, Head, Journal, ReadError};
use leasehold_model::{Batch, Identity, Instant, Record, Span};
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A record is sealed at least this often, to prove that nothing happened in between (SEMANTICS 6).
const HEARTBEAT: Span = Span::from_secs(60);
/// The number of requests whose data is loaded into the cache together before they are decided.
pub(crate) const WARM: usize = 32;

/// A batch that is not durable yet, with the outcome of each of its requests. The replies are sent once it is durable.
pub struct Pending<T> {
    batch: Batch,
    waiting: Vec<(T, Result<Sealed<Sequences>, Unsealed>)>,
}

impl<T> Pending<T> {
    pub fn new() -> Self {
        Self { batch: Batch::new(0), waiting: Vec::new() }
    }
    /// Whether there are neither records nor requests to answer.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.waiting.is_empty()
    }
    pub fn records(&self) -> u32 {
        self.batch.count()
    }
    pub fn bytes(&self) -> usize {
        self.batch.bytes().len()
    }
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// One engine, one journal, one clock.
pub struct Core {
    engine: Engine,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    stamper: Stamper,
    /// Bytes that are kept free in the journal, enough for any single command.
    headroom_bytes: u64,
    /// The largest number of records in one batch.
    batch_records_max: u32,
    /// Jumps of the wall clock that are not recorded yet.
    unrecorded: Vec<ClockJump>,
    /// Jumps of the wall clock that nobody was told of yet.
    untold: Vec<ClockJump>,
}

impl Core {
    pub(crate) fn new(
        engine: Engine,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        stamper: Stamper,
        headroom_bytes: u64,
        batch_records_max: u32,
    ) -> Self {
        Self {
            engine,
            journal,
            clock,
            stamper,
            headroom_bytes,
            batch_records_max,
            unrecorded: Vec::new(),
            untold: Vec::new(),
        }
    }

    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }
    /// The engine. Its state is ahead of the disk, so it is for the simulator's checks, not for readers.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
    /// The stamp for the present instant.
    pub fn stamp(&mut self) -> Instant {
        self.stamper.now(&*self.clock)
    }
    /// How this core makes stamps.
    pub(crate) fn stamper(&self) -> &Stamper {
        &self.stamper
    }
    /// Whether the wall clock was set since the last call. The next tick records the jump if there is room for it.
    pub fn notice_clock(&mut self) -> bool {
        let jump = self.stamper.jumped(&*self.clock);
        self.unrecorded.extend(jump);
        self.untold.extend(jump);
        jump.is_some()
    }
    /// The jumps of the wall clock since the last call, recorded or not.
    pub fn take_jumps(&mut self) -> Vec<ClockJump> {
        std::mem::take(&mut self.untold)
    }
    /// When the next timer or heartbeat may be due.
    pub fn next_due(&self) -> Instant {
        let heartbeat = self.engine.state().last_stamp().saturating_add(HEARTBEAT);
        self.engine.next_due().map_or(heartbeat, |due| due.min(heartbeat))
    }
    pub fn is_full<T>(&self, pending: &Pending<T>) -> bool {
        pending.batch.count() >= self.batch_records_max
    }

    /// Whether the journal has room for the decided records and any one further command.
    pub fn has_room<T>(&self, pending: &Pending<T>, in_flight_bytes: usize) -> bool {
        has_room(&*self.journal, self.headroom_bytes, pending.bytes() + in_flight_bytes)
    }

    fn begin<T>(&self, pending: &mut Pending<T>) {
        if pending.batch.is_empty() {
            pending.batch.reset(self.engine.state().size());
        }
    }

    /// Decides requests from the front of `requests` into `pending` until the batch is full, and removes them.
    /// `in_flight_bytes` is the size of the batch that is being appended. If the journal has no room, all requests are
    /// removed and answered with `JournalFull`.
    pub fn decide<T>(
        &mut self,
        requests: &mut VecDeque<(T, Request)>,
        pending: &mut Pending<T>,
        in_flight_bytes: usize,
    ) {
        self.begin(pending);
        let mut until_warm = 0;
        while !requests.is_empty() && !self.is_full(pending) {
            if until_warm == 0 {
                self.engine.warm(requests.iter().take(WARM).map(|(_, request)| request));
                until_warm = WARM;
            }
            until_warm -= 1;
            if !self.has_room(pending, in_flight_bytes) {
                pending.waiting.extend(requests.drain(..).map(|(ticket, _)| (ticket, Err(Unsealed::JournalFull))));
                return;
            }
            let now = self.stamp();
            let left = self.batch_records_max - pending.batch.count();
            if !self.engine.advance(now, &mut pending.batch, left) || self.is_full(pending) {
                return;
            }
            let Some((ticket, request)) = requests.pop_front() else { return };
            let decided = self.engine.decide(now, &request, &mut pending.batch);
            pending.waiting.push((ticket, decided.map_err(Unsealed::Refused)));
        }
    }

    /// Applies what is due without a request: timers, a heartbeat record after a minute without records, a clock jump.
    /// Returns whether all of it fit into the batch and the journal.
    pub fn tick<T>(&mut self, pending: &mut Pending<T>, in_flight_bytes: usize) -> bool {
        self.begin(pending);
        // Without room, timers wait; their records will carry the instant at which they were due (SEMANTICS 6).
        if self.is_full(pending) || !self.has_room(pending, in_flight_bytes) {
            return false;
        }
        let now = self.stamp();
        let left = self.batch_records_max - pending.batch.count();
        if !self.engine.advance(now, &mut pending.batch, left) || self.is_full(pending) {
            return false;
        }
        self.notice_clock();
        for ClockJump { wall: wall_clock, .. } in std::mem::take(&mut self.unrecorded) {
            self.own(now, Command::NoticeClockJump(NoticeClockJump { wall_clock }), &mut pending.batch);
        }
        if now >= self.engine.state().last_stamp().saturating_add(HEARTBEAT) {
            self.own(now, Command::Heartbeat(Nothing {}), &mut pending.batch);
        }
        true
    }

    /// Decides a command of the cell itself.
    fn own(&mut self, now: Instant, command: Command, batch: &mut Batch) {
        let request = Request::new(Identity::default(), command);
        self.engine.decide(now, &request, batch).expect("the cell's own commands are valid");
    }
}

/// Whether a journal has room for batches of so many bytes and any one further command.
fn has_room(journal: &dyn Journal, headroom_bytes: u64, bytes: usize) -> bool {
    journal.room() >= headroom_bytes + bytes as u64
}

/// Whether a journal has no room even for the first command of a batch. Even an empty batch has some bytes.
pub(crate) fn is_too_full(journal: &dyn Journal, headroom_bytes: u64) -> bool {
    !has_room(journal, headroom_bytes, Pending::<()>::new().bytes())
}

/// Makes a decided batch durable. After an error the cell must stop, because decisions cannot be undone.
pub fn commit<T>(journal: &dyn Journal, pending: &mut Pending<T>) -> Result<Option<Head>, AppendError> {
    if pending.batch.is_empty() {
        return Ok(None);
    }
    journal.append(&mut pending.batch).map(Some)
}

/// Why a durable batch could not be published. In each case the journal contradicts this program, and the process must
/// stop.
#[derive(Debug)]
pub enum PublishError {
    Fold(FoldError),
    Damaged(String),
    Read(ReadError),
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fold(error) => write!(f, "a durable record cannot be applied: {error}"),
            Self::Damaged(what) => write!(f, "a durable batch cannot be decoded: {what}"),
            Self::Read(error) => write!(f, "the records of a repeated request cannot be read: {error}"),
        }
    }
}
impl std::error::Error for PublishError {}

/// Makes a durable batch visible to readers and sends the replies in the order of the requests.
pub fn publish<T>(
    journal: &dyn Journal,
    now: &Now,
    pending: &mut Pending<T>,
    mut reply: impl FnMut(T, Reply),
) -> Result<(), PublishError> {
    let first = pending.batch.first_sequence();
    let records = Arc::new(decode(&pending.batch)?);
    now.publish(&records).map_err(PublishError::Fold)?;
    for (ticket, decided) in pending.waiting.drain(..) {
        let answer = match decided {
            Ok(Sealed { records: Sequences { first, .. }, repeated: true, .. }) => {
                match sealed_before(journal, first) {
                    Ok(records) => Ok(Sealed::again(records)),
                    Err(PublishError::Read(ReadError::Archived { .. })) => Err(Unsealed::Archived { sequence: first }),
                    // The caller can ask again; the request was recorded long ago.
                    Err(PublishError::Read(ReadError::Io(error))) if is_out_of_files(&error) => Err(Unsealed::Busy),
                    Err(error) => return Err(error),
                }
            }
            Ok(Sealed { records: own, refused, repeated }) => {
                let at = usize::try_from(own.first - first).expect("a batch is small");
                Ok(Sealed { records: Records::part_of(&records, at..at + own.count as usize), refused, repeated })
            }
            Err(unsealed) => Err(unsealed),
        };
        reply(ticket, answer);
    }
    pending.batch.reset(0);
    Ok(())
}

fn decode(batch: &Batch) -> Result<Vec<Record>, PublishError> {
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    let damaged = |what: &dyn fmt::Display| PublishError::Damaged(what.to_string());
    let mut records = Vec::with_capacity(batch.count() as usize);
    for frame in batch.frames() {
        let frame = frame.map_err(|damage| damaged(&damage))?;
        match frame.decode() {
            Ok(record) => records.push(record),
            Err(error) => return Err(damaged(&error)),
        }
    }
    Ok(records)
}

/// The records of an earlier command: the one at `first` and those that continue it.
pub(crate) fn sealed_before(journal: &dyn Journal, first: u64) -> Result<Records, PublishError> {
    let mut records = Vec::new();
    let mut damaged = None;
    let scanned = journal.scan(first, &mut |sequence, raw| match raw.decode() {
        Ok(record) if sequence == first || record.continues => {
            records.push(record);
            ControlFlow::Continue(())
        }
        Ok(_) => ControlFlow::Break(()),
        Err(error) => {
            damaged = Some(PublishError::Damaged(error.to_string()));
            ControlFlow::Break(())
        }
    });
    scanned.map_err(PublishError::Read)?;
    damaged.map_or_else(|| Ok(records.into()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::open::StartOptions;
    use leasehold_journal::{Keys, MemoryJournal};

    /// What `/readyz` says must be what happens to commands, to the last byte.
    #[test]
    fn a_journal_that_is_too_full_takes_no_command_and_any_other_takes_one() {
        let keys = Arc::new(Keys::new("test.example.net", &[1; 32]).expect("a valid origin"));
        let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::with_segments(keys, 4096));
        let mut seen = [false; 2];
        for slack in 0..200 {
            let headroom = journal.room() - slack;
            let clock = Arc::new(ManualClock::at(Instant(1)));
            let stamper = Stamper::start(&*clock, Instant(0));
            let core = Core::new(Engine::default(), Arc::clone(&journal), clock, stamper, headroom, 10);
            let mut pending = Pending::<()>::new();
            core.begin(&mut pending);
            let too_full = is_too_full(&*journal, headroom);
            assert_eq!(core.has_room(&pending, 0), !too_full, "with {slack} bytes beyond the headroom");
            seen[usize::from(too_full)] = true;
        }
        assert_eq!(seen, [true; 2]);
    }

    /// The decider may notice one jump while it waits and the next one only when it records the first.
    #[test]
    fn each_jump_of_the_wall_clock_is_told_and_recorded_whoever_notices_it() {
        let keys = Arc::new(Keys::new("test.example.net", &[1; 32]).expect("a valid origin"));
        let journal = MemoryJournal::new(Arc::clone(&keys));
        journal.prepare().expect("there is room");
        let clock = Arc::new(ManualClock::at(Instant::from_secs(1_000)));
        let options = StartOptions::new("test".parse().expect("a name"), keys.public_keys()[0]);
        let (mut core, _, _) = Core::open(Arc::new(journal), clock.clone(), &options).expect("it opens");
        let mut pending = Pending::<()>::new();
        clock.set_wall(Instant::from_secs(5_000));
        assert!(core.notice_clock() && !core.notice_clock());
        clock.set_wall(Instant::from_secs(2_000));
        assert!(core.tick(&mut pending, 0));
        let walls: Vec<Instant> = core.take_jumps().into_iter().map(|jump| jump.wall).collect();
        assert_eq!(walls, [Instant::from_secs(5_000), Instant::from_secs(2_000)]);
        assert_eq!((pending.batch.count(), core.take_jumps()), (2, Vec::new()));
    }
}
