//! The steps of the way, without threads. Whoever calls them decides what runs beside what.

use crate::clock::{Clock, Stamper};
use crate::inbox::{Reply, Unsealed};
use crate::now::Now;
use leasehold_engine::command::{Nothing, NoticeClockJump};
use leasehold_engine::{Command, Engine, FoldError, Records, Request, Sealed, Sequences};
use leasehold_journal::{AppendError, Head, Journal, ReadError};
use leasehold_model::{Batch, Identity, Instant, Record, Span};
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A record is sealed at least this often, so that silence is proved too (SEMANTICS 6).
const HEARTBEAT: Span = Span::from_secs(60);
/// Requests whose memory is fetched together before they are decided.
const WARM: usize = 32;

/// A batch on its way to the disk, with who waits for which of its records: what was decided for each request, from
/// which the reply is made once the batch is durable.
pub struct Pending<T> {
    batch: Batch,
    waiting: Vec<(T, Result<Sealed<Sequences>, Unsealed>)>,
}

impl<T> Pending<T> {
    pub fn new() -> Self {
        Self { batch: Batch::new(0), waiting: Vec::new() }
    }
    /// Neither records nor anyone who waits.
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
    /// Bytes kept free in the journal for what a single command may need.
    headroom_bytes: u64,
    /// The most records that go into one batch.
    batch_records_max: u32,
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
        Self { engine, journal, clock, stamper, headroom_bytes, batch_records_max }
    }

    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }
    /// The deciding state, ahead of the disk: for the simulator's checks, not for readers.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
    /// The stamp for now.
    pub fn stamp(&mut self) -> Instant {
        self.stamper.now(&*self.clock)
    }
    /// When something may come due by itself: a timer, or the next heartbeat.
    pub fn next_due(&self) -> Instant {
        let heartbeat = self.engine.state().last_stamp().saturating_add(HEARTBEAT);
        self.engine.next_due().map_or(heartbeat, |due| due.min(heartbeat))
    }
    pub fn is_full<T>(&self, pending: &Pending<T>) -> bool {
        pending.batch.count() >= self.batch_records_max
    }

    /// Whether the journal has room for what is decided and one more command, whatever it is.
    pub fn has_room<T>(&self, pending: &Pending<T>, in_flight_bytes: usize) -> bool {
        let needed = self.headroom_bytes + (pending.bytes() + in_flight_bytes) as u64;
        self.journal.room() >= needed
    }

    fn begin<T>(&self, pending: &mut Pending<T>) {
        if pending.batch.is_empty() {
            pending.batch.reset(self.engine.state().size());
        }
    }

    /// Decides requests from the front of `requests` into `pending` until the batch is full; those
    /// decided are taken out. `in_flight_bytes` are being appended meanwhile. When the journal has no
    /// room, all are taken out and answered so.
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

    /// Applies what is due by itself: timers, a heartbeat after a silent minute, word of a clock jump.
    /// Answers whether all of it fit.
    pub fn tick<T>(&mut self, pending: &mut Pending<T>, in_flight_bytes: usize) -> bool {
        self.begin(pending);
        // Without room, what is due waits and keeps its instant (SEMANTICS 6).
        if self.is_full(pending) || !self.has_room(pending, in_flight_bytes) {
            return false;
        }
        let now = self.stamp();
        let left = self.batch_records_max - pending.batch.count();
        if !self.engine.advance(now, &mut pending.batch, left) || self.is_full(pending) {
            return false;
        }
        if let Some(wall_clock) = self.stamper.jumped(&*self.clock) {
            self.own(now, Command::NoticeClockJump(NoticeClockJump { wall_clock }), &mut pending.batch);
        }
        if now >= self.engine.state().last_stamp().saturating_add(HEARTBEAT) {
            self.own(now, Command::Heartbeat(Nothing {}), &mut pending.batch);
        }
        true
    }

    /// A command of the cell's own.
    fn own(&mut self, now: Instant, command: Command, batch: &mut Batch) {
        let request = Request::new(Identity::default(), command);
        self.engine.decide(now, &request, batch).expect("the cell's own commands are valid");
    }
}

/// Makes a decided batch durable. After an error the cell must stop: what was decided cannot be
/// taken back.
pub fn commit<T>(journal: &dyn Journal, pending: &mut Pending<T>) -> Result<Option<Head>, AppendError> {
    if pending.batch.is_empty() {
        return Ok(None);
    }
    journal.append(&mut pending.batch).map(Some)
}

/// Why a durable batch could not be shown. Either way this program and its journal do not agree,
/// and the process must stop.
#[derive(Debug)]
pub enum PublishError {
    Fold(FoldError),
    Damaged(String),
    Read(ReadError),
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fold(error) => write!(f, "a sealed record does not fold: {error}"),
            Self::Damaged(what) => write!(f, "a sealed batch cannot be read: {what}"),
            Self::Read(error) => write!(f, "the record of an earlier answer cannot be read: {error}"),
        }
    }
}
impl std::error::Error for PublishError {}

/// Shows a durable batch to readers and hands out the replies, in the order of the requests.
pub fn publish<T>(
    journal: &dyn Journal,
    now: &Now,
    pending: &mut Pending<T>,
    mut reply: impl FnMut(T, Reply),
) -> Result<(), PublishError> {
    let first = pending.batch.first_sequence();
    let mut records = decode(&pending.batch)?;
    now.publish(records.iter().flatten()).map_err(PublishError::Fold)?;
    for (ticket, decided) in pending.waiting.drain(..) {
        let answer = match decided {
            Ok(Sealed { records: Sequences { first, .. }, repeated: true, .. }) => {
                match sealed_before(journal, first) {
                    Ok(records) => Ok(Sealed::again(records)),
                    Err(PublishError::Read(ReadError::Archived { .. })) => Err(Unsealed::Archived { sequence: first }),
                    Err(error) => return Err(error),
                }
            }
            Ok(Sealed { records: own, refused, repeated }) => {
                let at = usize::try_from(own.first - first).expect("a batch is small");
                let own = records[at..at + own.count as usize].iter_mut();
                let records = own.map(|r| r.take().expect("a record answers one request")).collect();
                Ok(Sealed { records, refused, repeated })
            }
            Err(unsealed) => Err(unsealed),
        };
        reply(ticket, answer);
    }
    pending.batch.reset(0);
    Ok(())
}

/// The records of a sealed batch, each to be taken by the request it answers.
fn decode(batch: &Batch) -> Result<Vec<Option<Record>>, PublishError> {
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    let damaged = |what: &dyn fmt::Display| PublishError::Damaged(what.to_string());
    let mut records = Vec::with_capacity(batch.count() as usize);
    for frame in batch.frames() {
        let frame = frame.map_err(|damage| damaged(&damage))?;
        records.push(Some(frame.decode().map_err(|error| damaged(&error))?));
    }
    Ok(records)
}

/// The records of a command that was sealed earlier: the first, and those that continue it.
pub(crate) fn sealed_before(journal: &dyn Journal, first: u64) -> Result<Records, PublishError> {
    let mut records = Records::new();
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
    damaged.map_or(Ok(records), Err)
}
