//! One life of a cell, from a start to a crash, a failure or a clean shutdown.

use crate::compare::summary;
use crate::fault_disk::{FaultDisk, Faults};
use crate::wishes::wish;
use crate::{
    apps, entitlements, ledgers, losses, policies, prepaid, readings, requests, shares, sharing, sinks, usage,
};
use leasehold_cell::{
    Core, ManualClock, Now, Pending, Reply, Sealed, StartError, StartOptions, Unsealed, commit, publish, take_snapshot,
};
use leasehold_engine::command::TopUp;
use leasehold_engine::{Command, Refusal, Request, State};
use leasehold_journal::{AppendError, FileJournal, Journal, Keys, Local, OpenError, Options, PrepareError, Secret};
use leasehold_model::record::Hash;
use leasehold_model::{Identity, Instant, Name, Record, Span};
use leasehold_oracle::Dice;
use leasehold_oracle::{Caller, Oracle, RequestFacts, Wish};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// What the simulator knows across lives; no crash may change it.
pub(crate) struct Truth {
    pub(crate) oracle: Oracle,
    /// The hashes of all records that were acknowledged or found after a restart.
    pub(crate) hashes: Vec<Hash>,
    /// The records themselves.
    pub(crate) records: Vec<Record>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) clock: Arc<ManualClock>,
    /// Requests with an idempotency key, and their replies.
    pub(crate) sent: Vec<(Request, Vec<u8>, Option<RequestFacts>)>,
    pub(crate) answered: BTreeMap<usize, (Instant, Vec<Record>)>,
    pub(crate) tally: super::run::Tally,
    /// Whether the ledger is used.
    pub(crate) keeps_ledger: bool,
    /// Whether there is prepaid credit, and the last that was asked for.
    pub(crate) has_prepaid: bool,
    pub(crate) topped_up: Option<TopUp>,
}

/// How a life ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The machine stopped, or the journal failed.
    Crash,
    CleanStop,
    /// The steps of the run are used up.
    Done,
}

/// A request in flight, with the index of the keyed request that it repeats.
pub(crate) struct Asked {
    pub(crate) sent: Option<usize>,
    pub(crate) facts: Option<RequestFacts>,
    pub(crate) caller: Caller,
    pub(crate) wish: Wish,
    /// The number of leases that it renews, if it is a renewal.
    pub(crate) renews: Option<usize>,
    /// The number of records and the instant at which it was decided.
    pub(crate) decided: Rc<Cell<(u64, Instant)>>,
}

impl Asked {
    fn new(request: &Request, sent: Option<usize>, facts: Option<RequestFacts>) -> Self {
        let Identity { tenant, project, user, token, .. } = request.identity;
        let caller = Caller { tenant, project, user, token, keyed: sent.is_some() };
        let wish = match &facts {
            Some(facts) => Wish::Lease(Box::new(facts.clone())),
            None => wish(&request.command),
        };
        let renews = if let Command::Renew(renewals) = &request.command { Some(renewals.len()) } else { None };
        Self { sent, facts, caller, wish, renews, decided: Rc::default() }
    }
}

pub(crate) struct Life<'a> {
    pub(crate) truth: &'a mut Truth,
    journal: Arc<FileJournal>,
    pub(crate) core: Core,
    pub(crate) now: Now,
    /// The batch that is being appended.
    flying: Option<Pending<Asked>>,
    /// The batch that is being decided.
    pending: Pending<Asked>,
}

pub(crate) type Step<T> = Result<T, String>;

const OPTIONS: Options = Options { segment_bytes: 24 << 10, index_bytes: 2 << 10 };

/// Every run has the same secret: what a seed shows must not depend on anything else.
pub(crate) fn local() -> Local {
    Local::new(Secret::new([7; 32]))
}

fn software() -> Name {
    Name::new("leasehold sim").expect("a valid name")
}

/// Starts a cell on the disk. `None` if the machine stopped meanwhile.
pub(crate) fn start<'a>(truth: &'a mut Truth, disk: &FaultDisk, dice: &mut Dice) -> Step<Option<Life<'a>>> {
    let now = truth.clock_wall();
    let shared: Arc<FaultDisk> = Arc::new(disk.clone());
    let opened =
        FileJournal::open(shared.clone(), OPTIONS, truth.keys.clone(), local(), now).map(|(journal, _)| journal);
    let journal = match opened {
        Err(_) if disk.has_stopped() => return Ok(None),
        Err(OpenError::NoJournal) if truth.hashes.is_empty() => {
            match FileJournal::create(shared, OPTIONS, truth.keys.clone(), local(), now) {
                Ok(journal) => journal,
                Err(_) if disk.has_stopped() => return Ok(None),
                Err(error) => return Err(format!("cannot create a journal: {error}")),
            }
        }
        Err(error) if is_disk_trouble(&error) => return Ok(None),
        Err(error) => return Err(format!("the journal was refused: {error}")),
        Ok(journal) => journal,
    };
    let journal = Arc::new(journal);
    truth.check_nothing_lost(&*journal)?;
    let mut options = StartOptions::new(software(), truth.keys.public_keys()[0]);
    options.batch_records_max = 1 + u32::try_from(dice.below(24)).expect("small");
    options.headroom_bytes = 6 << 10;
    let mut opened = Core::open(journal.clone(), truth.clock.clone(), &options);
    if let Err(StartError::Clock { last_stamp, wall }) = opened {
        let gap = wall < last_stamp || wall.since(last_stamp) > options.max_clock_gap;
        if !gap {
            return Err(format!("the clock was refused without reason: {wall} after {last_stamp}"));
        }
        options.accept_clock = true;
        opened = Core::open(journal.clone(), truth.clock.clone(), &options);
    }
    let (core, view, found) = match opened {
        Ok(opened) => opened,
        Err(StartError::Append(AppendError::Failed(_) | AppendError::Full) | StartError::Prepare(_)) => {
            return Ok(None);
        }
        Err(_) if disk.has_stopped() => return Ok(None),
        Err(error) => return Err(format!("the cell did not start: {error}")),
    };
    truth.tally.replayed += found.replayed;
    truth.observe_new(&*journal)?;
    let life = Life { truth, journal, core, now: view, flying: None, pending: Pending::new() };
    life.check_states("after a start")?;
    Ok(Some(life))
}

/// Planned faults appear as I/O errors, not as damage.
fn is_disk_trouble(error: &OpenError) -> bool {
    matches!(error, OpenError::Io { .. })
}

impl Truth {
    pub(crate) fn clock_wall(&self) -> Instant {
        leasehold_cell::Clock::wall(&*self.clock)
    }

    /// Checks that every record that was acknowledged, or found after an earlier start, is unchanged.
    fn check_nothing_lost(&self, journal: &dyn Journal) -> Step<()> {
        let head = journal.head();
        if head.size < self.hashes.len() as u64 {
            return Err(format!("{} records were known, {} are left", self.hashes.len(), head.size));
        }
        let mut wrong = None;
        let known = &self.hashes;
        let scanned = journal.scan_verified(leasehold_journal::Head::EMPTY, &mut |sequence, _, hash| {
            let place = usize::try_from(sequence).expect("small");
            match known.get(place) {
                Some(old) if old != hash => {
                    wrong = Some(sequence);
                    ControlFlow::Break(())
                }
                Some(_) => ControlFlow::Continue(()),
                None => ControlFlow::Break(()),
            }
        });
        scanned.map_err(|error| format!("the journal cannot be read: {error}"))?;
        wrong.map_or(Ok(()), |sequence| Err(format!("record {sequence} is not what was acknowledged")))
    }

    /// Passes new records to the oracle: those that were durable but not answered when the machine stopped, and those
    /// of the start itself.
    fn observe_new(&mut self, journal: &dyn Journal) -> Step<()> {
        let mut found = Vec::new();
        let scanned = journal.scan(self.hashes.len() as u64, &mut |_, raw| {
            found.push((raw.decode(), raw.hash()));
            ControlFlow::Continue(())
        });
        scanned.map_err(|error| format!("the journal cannot be read: {error}"))?;
        for (record, hash) in found {
            let record = record.map_err(|error| format!("a record cannot be read: {error}"))?;
            self.observe(&record, None)?;
            self.hashes.push(hash);
        }
        Ok(())
    }

    fn observe(&mut self, record: &Record, facts: Option<&RequestFacts>) -> Step<()> {
        self.tally.records += 1;
        self.records.push(record.clone());
        *self.tally.kinds.entry(record.body.word()).or_insert(0) += 1;
        let observed = match facts {
            Some(facts) => self.oracle.observe_with_request(record, facts),
            None => self.oracle.observe(record),
        };
        observed.map_err(|violation| format!("{violation}\n  {record:?}"))
    }
}

impl Life<'_> {
    /// Creates the cluster, in the first life.
    pub(crate) fn settle_world(&mut self, dice: &mut Dice) -> Step<bool> {
        for command in requests::world(dice) {
            if !self.settle(command)? {
                return Ok(false);
            }
        }
        for step in 0..apps::FOUNDING {
            let command = self.now.read(|state| apps::founding(state, step));
            if !command.map_or(Ok(true), |command| self.settle(command))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Decides one command of an operator.
    pub(crate) fn settle(&mut self, command: Command) -> Step<bool> {
        self.settle_as(Identity::default(), command)
    }

    /// Decides one command, and makes it durable.
    pub(crate) fn settle_as(&mut self, identity: Identity, command: Command) -> Step<bool> {
        let request = Request::new(identity, command);
        let mut one = VecDeque::from([(Asked::new(&request, None, None), request)]);
        while !one.is_empty() {
            self.decide_first(&mut one);
            if !self.flush()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes room for more records, on a disk without faults.
    pub(crate) fn make_room(&self) -> Step<()> {
        self.journal.prepare().map_err(|error| format!("no room: {error:?}"))
    }

    /// Runs until something ends this life.
    pub(crate) fn run(&mut self, steps: &mut u32, disk: &FaultDisk, dice: &mut Dice) -> Step<End> {
        while *steps > 0 {
            *steps -= 1;
            let alive = self.step(disk, dice)?;
            if !alive {
                return Ok(End::Crash);
            }
            if dice.one_in(150) {
                return self.stop_cleanly();
            }
        }
        if self.flush()? { Ok(End::Done) } else { Ok(End::Crash) }
    }

    fn stop_cleanly(&mut self) -> Step<End> {
        if !self.flush()? {
            return Ok(End::Crash);
        }
        self.check_states("before a clean stop")?;
        match self.journal.close(self.truth.clock_wall()) {
            Ok(()) => Ok(End::CleanStop),
            Err(_) => Ok(End::Crash),
        }
    }

    /// Performs one random step. Returns false if the process would have ended.
    fn step(&mut self, disk: &FaultDisk, dice: &mut Dice) -> Step<bool> {
        match dice.below(24) {
            0..10 => self.ask(dice),
            10..13 => self.pass_time(dice),
            13 => {
                let in_flight = self.in_flight();
                self.core.tick(&mut self.pending, in_flight);
            }
            14..19 => return self.commit_flying(),
            19 => return self.flush(),
            20 => {
                if self.journal.checkpoint(self.truth.clock_wall()).is_err() {
                    return Ok(false);
                }
                if self.journal.checkpointed().size() != self.journal.head().size {
                    return Err("a checkpoint does not reach the head".to_owned());
                }
            }
            21 => match self.journal.prepare() {
                Ok(()) => {}
                Err(PrepareError::Full(_)) => self.truth.tally.full += 1,
                Err(PrepareError::Io(_)) if !disk.has_stopped() => {}
                Err(_) => return Ok(false),
            },
            22 => {
                // A failed snapshot does no harm.
                if dice.one_in(3) && take_snapshot(&*self.journal).is_ok_and(|taken| taken.is_some()) {
                    self.truth.tally.snapshots += 1;
                }
            }
            _ => {
                if dice.one_in(4) {
                    self.check_states("between steps")?;
                    self.check_replay()?;
                }
                if dice.one_in(6) {
                    disk.set_faults(Faults::draw(dice, disk));
                }
            }
        }
        Ok(!disk.has_stopped())
    }

    /// Whether something was decided that the oracle has not seen.
    fn is_deciding(&self) -> bool {
        self.flying.is_some() || !self.pending.is_empty()
    }

    fn in_flight(&self) -> usize {
        self.flying.as_ref().map_or(0, Pending::bytes)
    }

    /// Some requests arrive; some are repetitions, some out of order.
    fn ask(&mut self, dice: &mut Dice) {
        let now = self.core.stamp();
        let mut requests = VecDeque::new();
        for _ in 0..1 + dice.below(4) {
            if !self.truth.sent.is_empty() && dice.one_in(6) {
                let again = dice.index(self.truth.sent.len());
                let (request, _, facts) = self.truth.sent[again].clone();
                self.truth.tally.repeats += 1;
                requests.push_back((Asked::new(&request, Some(again), facts), request));
                continue;
            }
            let (identity, command, facts) = self.now.read(|state| requests::any(state, now, dice));
            // One of a few keys, so that keys collide.
            let key = dice.one_in(3).then(|| format!("key-{}", dice.below(4096)).into_bytes());
            let keyed = key.and_then(|key| Some((requests::keyed(identity.clone(), command.clone(), &key)?, key)));
            if let Some((request, key)) = keyed {
                self.truth.sent.push((request.clone(), key, facts.clone()));
                let sent = Some(self.truth.sent.len() - 1);
                requests.push_back((Asked::new(&request, sent, facts), request));
            } else {
                let request = Request::new(identity, command);
                requests.push_back((Asked::new(&request, None, facts), request));
            }
        }
        let records = &self.truth.records;
        let about_apps = self.now.read(|state| {
            let limits = [entitlements::any(state, records, now), policies::any(state, now)];
            let limits = limits.into_iter().chain([usage::aimed(state, records, now)]);
            let limits = limits.chain([sharing::any(state, records, now, false)]);
            let limits = limits.chain(usage::work(state, records, now, false).into_iter().map(Some));
            let limits = limits.chain([sinks::any(state, now)]);
            [apps::any(state, now), usage::any(state, records, now)].into_iter().chain(limits)
        });
        for (identity, command) in about_apps.flatten() {
            let request = Request::new(identity, command);
            requests.push_back((Asked::new(&request, None, None), request));
        }
        if dice.one_in(3) {
            requests.make_contiguous().reverse();
        }
        if !self.is_deciding() {
            // The daemon settles losses from its books, which have read everything by then.
            let losses = self.truth.oracle.open_losses();
            let settle = self.now.read(|state| losses::settle(state, &losses, now));
            if let Some(command) = settle {
                let request = Request::new(Identity::default(), command);
                requests.push_front((Asked::new(&request, None, None), request));
            }
            let ledger = self.truth.oracle.ledger();
            let about_money = self.now.read(|state| ledgers::any(state, ledger, now));
            // The one or the other: both may be about the hour that is settled next.
            let oracle = &self.truth.oracle;
            let about_shares = self.now.read(|state| shares::any(state, oracle, now));
            let about_money = about_money.filter(|_| about_shares.is_empty()).into_iter();
            let about_money = about_money.chain(about_shares.into_iter().rev());
            for command in about_money.filter(|_| self.truth.keeps_ledger) {
                let request = Request::new(Identity::default(), command);
                requests.push_front((Asked::new(&request, None, None), request));
            }
        }
        if self.truth.has_prepaid {
            let before = &mut self.truth.topped_up;
            if let Some(command) = self.now.read(|state| prepaid::any(state, before, now)) {
                let request = Request::new(Identity::default(), command);
                requests.push_front((Asked::new(&request, None, None), request));
            }
        }
        self.truth.tally.requests += requests.len() as u64;
        // Requests that do not fit into the batch are dropped, as if the caller had disconnected.
        while !requests.is_empty() && self.decide_first(&mut requests) {}
    }

    /// Decides the first request; returns false if it does not fit into the batch. One at a time, so that the state at
    /// each refusal is known.
    fn decide_first(&mut self, requests: &mut VecDeque<(Asked, Request)>) -> bool {
        let in_flight = self.in_flight();
        let now = self.core.stamp();
        let mut one: VecDeque<_> = requests.drain(..1).collect();
        let decided = one[0].0.decided.clone();
        self.core.decide(&mut one, &mut self.pending, in_flight);
        decided.set((self.core.engine().state().size(), now));
        let has_place = one.is_empty();
        one.into_iter().rev().for_each(|left| requests.push_front(left));
        has_place
    }

    fn pass_time(&mut self, dice: &mut Dice) {
        let span = match dice.below(8) {
            0 => Span(1),
            1 => Span::from_millis(dice.below(1000)),
            2..6 => Span::from_secs(dice.below(15)),
            6 if dice.one_in(3) => Span::from_secs(dice.below(5000)),
            6 => Span::from_secs(dice.below(90)),
            _ => {
                // Exactly to the next timer.
                self.core.next_due().since(self.core.stamp())
            }
        };
        self.truth.clock.advance(span);
        if dice.one_in(40) {
            let wall = self.truth.clock_wall();
            let jump = dice.below(20 * 86_400) * 1_000_000_000;
            self.truth.clock.set_wall(Instant(if dice.one_in(2) { wall.0 + jump } else { wall.0 - jump }));
            self.truth.tally.clock_jumps += 1;
        }
    }

    /// Finishes the batch in flight and starts the next one.
    fn commit_flying(&mut self) -> Step<bool> {
        if let Some(mut flying) = self.flying.take() {
            match commit(&*self.journal, &mut flying) {
                Ok(_) => self.publish(flying)?,
                Err(AppendError::Failed(_)) => return Ok(false),
                Err(error) => return Err(format!("a decided batch was refused: {error}")),
            }
        }
        if !self.pending.is_empty() {
            self.flying = Some(std::mem::take(&mut self.pending));
        }
        Ok(true)
    }

    /// Makes everything that was decided durable and visible.
    fn flush(&mut self) -> Step<bool> {
        Ok(self.commit_flying()? && self.commit_flying()?)
    }

    fn publish(&mut self, mut batch: Pending<Asked>) -> Step<()> {
        let mut replies: Vec<(Asked, Reply)> = Vec::new();
        let answered = batch.waiting();
        publish(&*self.journal, &self.now, &mut batch, |asked, reply| replies.push((asked, reply)))
            .map_err(|error| error.to_string())?;
        if replies.len() != answered {
            return Err(format!("{answered} requests waited, {} were answered", replies.len()));
        }
        self.observe_published(&replies)?;
        replies.into_iter().try_for_each(|(asked, reply)| self.check_reply(&asked, reply))
    }

    /// Passes durable records to the oracle, each with its request, and asks it first for the expected answer.
    fn observe_published(&mut self, replies: &[(Asked, Reply)]) -> Step<()> {
        let mut facts_of: BTreeMap<u64, &RequestFacts> = BTreeMap::new();
        for (asked, reply) in replies {
            if let (Ok(Sealed { records, repeated: false, .. }), Some(facts)) = (reply, &asked.facts) {
                facts_of.insert(records[0].sequence, facts);
            }
        }
        let mut found = VecDeque::new();
        let from = self.truth.hashes.len() as u64;
        let to = self.now.read(State::size);
        let scanned = self.journal.scan(from, &mut |sequence, raw| {
            if sequence >= to {
                return ControlFlow::Break(());
            }
            found.push_back((sequence, raw.decode(), raw.hash()));
            ControlFlow::Continue(())
        });
        scanned.map_err(|error| format!("the journal cannot be read: {error}"))?;
        let mut observe_before = |truth: &mut Truth, end: u64| -> Step<()> {
            let some = found.partition_point(|(sequence, ..)| *sequence < end);
            for (sequence, record, hash) in found.drain(..some) {
                let record = record.map_err(|error| format!("a record cannot be read: {error}"))?;
                truth.observe(&record, facts_of.get(&sequence).copied())?;
                truth.hashes.push(hash);
            }
            Ok(())
        };
        for (asked, reply) in replies {
            let (size, now) = match reply {
                Ok(Sealed { records, repeated: false, .. }) => (records[0].sequence, records[0].stamp),
                Err(Unsealed::Refused(_)) | Ok(Sealed { repeated: true, .. }) => asked.decided.get(),
                Err(Unsealed::JournalFull | Unsealed::Busy | Unsealed::Archived { .. } | Unsealed::Stopped) => continue,
            };
            observe_before(self.truth, size)?;
            self.truth.check_foretold(asked, reply, now)?;
        }
        observe_before(self.truth, to)?;
        self.truth.oracle.check_invariants().map_err(|violation| violation.to_string())
    }

    /// Checks that a repeated request with a key gets the first answer. The oracle checks that no key is used twice
    /// within the window.
    fn check_reply(&mut self, asked: &Asked, reply: Reply) -> Step<()> {
        match &reply {
            Err(Unsealed::Refused(_)) => self.truth.tally.refused += 1,
            Err(Unsealed::JournalFull) => self.truth.tally.full += 1,
            Ok(_) | Err(Unsealed::Busy | Unsealed::Archived { .. } | Unsealed::Stopped) => {}
        }
        let Some(sent) = asked.sent else { return Ok(()) };
        let (_, key, _) = &self.truth.sent[sent];
        let first = self.truth.answered.get(&sent);
        match reply {
            Ok(Sealed { records, repeated: false, .. }) => {
                let records = records.to_vec();
                let stamp = records[0].stamp;
                if records[0].idempotency.as_ref().map(|claim| claim.key.to_vec()) != Some(key.clone()) {
                    return Err("a keyed request was sealed without its key".to_owned());
                }
                self.truth.answered.insert(sent, (stamp, records));
            }
            Ok(Sealed { records, repeated: true, .. }) => {
                self.truth.tally.repeated += 1;
                if let Some((_, before)) = first
                    && before[..] != records[..]
                    && before[0].idempotency.as_ref().map(|c| c.payload)
                        == records[0].idempotency.as_ref().map(|c| c.payload)
                    && before[0].sequence == records[0].sequence
                {
                    return Err(format!("an answer changed:\n  {before:?}\n  {records:?}"));
                }
            }
            Err(Unsealed::Refused(refusal)) => {
                let mismatch = matches!(refusal, Refusal::IdempotencyMismatch { .. });
                self.truth.tally.mismatches += u64::from(mismatch);
            }
            Err(Unsealed::JournalFull | Unsealed::Busy | Unsealed::Archived { .. } | Unsealed::Stopped) => {}
        }
        Ok(())
    }

    /// Checks that the readers' state equals the oracle's.
    pub(crate) fn check_states(&self, when: &str) -> Step<()> {
        let ours = self.now.read(summary);
        let theirs = self.truth.oracle.summary().without_closed();
        if ours != theirs {
            return Err(format!("engine (-) and oracle (+) differ {when}:\n{}", ours.diff(&theirs)));
        }
        Ok(())
    }

    /// Invariant 1: the state is the fold of the journal, bit for bit. The deciding state equals the durable one only
    /// if nothing is in flight.
    pub(crate) fn check_replay(&self) -> Step<()> {
        if self.is_deciding() {
            return Ok(());
        }
        let mut fresh = State::new();
        leasehold_cell::replay(&*self.journal, &mut fresh, leasehold_journal::Head::EMPTY)
            .map_err(|error| error.to_string())?;
        let decided = self.core.engine().state();
        if fresh.digest() != decided.digest() {
            return Err("the deciding state is not the fold of the journal".to_owned());
        }
        let restored = State::from_snapshot(&fresh.to_snapshot()).map_err(|error| error.to_string())?;
        if restored.digest() != fresh.digest() {
            return Err("a restored snapshot is another state".to_owned());
        }
        readings::check(self.core.engine(), &mut fresh)?;
        readings::check_next_decisions(self.core.engine(), restored)
    }
}
