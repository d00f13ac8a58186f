//! Writes what is decided, many decisions to an append, at instants that someone else chooses.

use crate::problem::Problem;
use leasehold_cell::{Clock, Core, ManualClock, Now, Pending, commit, publish};
use leasehold_engine::{Command, Request, State};
use leasehold_journal::Journal;
use leasehold_model::{Identity, Instant};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) struct Pen {
    core: Core,
    now: Now,
    journal: Arc<dyn Journal>,
    clock: Arc<ManualClock>,
    pending: Pending<()>,
    requests: VecDeque<((), Request)>,
}

impl Pen {
    pub(super) fn new(core: Core, now: Now, journal: Arc<dyn Journal>, clock: Arc<ManualClock>) -> Self {
        Self { core, now, journal, clock, pending: Pending::new(), requests: VecDeque::new() }
    }

    /// What was decided so far. Nobody reads the journal yet: the one who decides may look ahead of the disk.
    pub(super) fn state(&self) -> &State {
        self.core.engine().state()
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.wall()
    }

    /// Lets time pass; what comes due on the way is sealed when it is due.
    pub(super) fn pass_to(&mut self, at: Instant) -> Result<(), Problem> {
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

    /// Decides a command now.
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

    /// Makes durable what was decided, and sees to the room for more.
    fn write(&mut self) -> Result<(), Problem> {
        let failed = |why: &dyn std::fmt::Display| Problem::refused("history_not_written", why.to_string());
        commit(&*self.journal, &mut self.pending).map_err(|error| failed(&error))?;
        // What was refused changed nothing: a holder who asks in vain asks again.
        publish(&*self.journal, &self.now, &mut self.pending, |(), _| {}).map_err(|error| failed(&error))?;
        self.journal.prepare().map_err(|error| failed(&error))?;
        if self.core.has_room(&self.pending, 0) {
            return Ok(());
        }
        Err(Problem::refused("journal_full", "the disk has no room for a past").advice("name a folder on another one"))
    }

    /// Closes the journal with a checkpoint over everything; returns how many records it has.
    pub(super) fn close(mut self) -> Result<u64, Problem> {
        self.write()?;
        let records = self.journal.head().size;
        let closed = self.journal.close(self.now());
        closed.map_err(|failure| Problem::refused("history_not_written", failure.to_string()))?;
        Ok(records)
    }
}
