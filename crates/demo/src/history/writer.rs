//! Decides commands at given instants and writes the records, many decisions per append.

use crate::problem::Problem;
use leasehold_cell::{Clock, Core, ManualClock, Now, Pending, commit, publish};
use leasehold_engine::{Command, Request, State};
use leasehold_journal::Journal;
use leasehold_model::{Identity, Instant};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) struct Writer {
    core: Core,
    now: Now,
    journal: Arc<dyn Journal>,
    clock: Arc<ManualClock>,
    pending: Pending<()>,
    requests: VecDeque<((), Request)>,
}

impl Writer {
    pub(super) fn new(core: Core, now: Now, journal: Arc<dyn Journal>, clock: Arc<ManualClock>) -> Self {
        Self { core, now, journal, clock, pending: Pending::new(), requests: VecDeque::new() }
    }

    /// The deciding state. Reading it is allowed here because nobody else reads the journal yet.
    pub(super) fn state(&self) -> &State {
        self.core.engine().state()
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.wall()
    }

    /// Advances the clock; timers that become due on the way are applied when they are due.
    pub(super) fn advance_to(&mut self, at: Instant) -> Result<(), Problem> {
        loop {
            let due = self.core.next_due().max(self.now()).min(at);
            self.clock.advance(due.since(self.now()));
            while !self.core.tick(&mut self.pending, 0) {
                self.write()?;
            }
            if due >= at {
                return Ok(());
            }
        }
    }

    /// Decides a command at the current instant.
    pub(super) fn decide(&mut self, identity: Identity, command: Command) -> Result<(), Problem> {
        self.decide_request(Request::new(identity, command))
    }

    pub(super) fn decide_request(&mut self, request: Request) -> Result<(), Problem> {
        self.requests.push_back(((), request));
        loop {
            if !self.core.has_room(&self.pending, 0) {
                self.write()?;
            }
            self.core.decide(&mut self.requests, &mut self.pending, 0);
            if self.requests.is_empty() {
                return Ok(());
            }
            self.write()?;
        }
    }

    /// Makes the decided records durable, and allocates space for more.
    fn write(&mut self) -> Result<(), Problem> {
        let failed = |why: &dyn std::fmt::Display| Problem::refused("history_not_written", why.to_string());
        commit(&*self.journal, &mut self.pending).map_err(|error| failed(&error))?;
        // Refusals are ignored: they change nothing.
        publish(&*self.journal, &self.now, &mut self.pending, |(), _| {}).map_err(|error| failed(&error))?;
        self.journal.prepare().map_err(|error| failed(&error))?;
        if self.core.has_room(&self.pending, 0) {
            return Ok(());
        }
        Err(Problem::refused("journal_full", "the disk has no space for the history")
            .advice("choose a data directory on another disk with --data, or a shorter --history"))
    }

    /// Closes the journal with a checkpoint over all records; returns their number.
    pub(super) fn close(mut self) -> Result<u64, Problem> {
        self.write()?;
        let records = self.journal.head().size;
        let closed = self.journal.close(self.now());
        closed.map_err(|failure| Problem::refused("history_not_written", failure.to_string()))?;
        Ok(records)
    }
}
