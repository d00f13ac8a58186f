//! The agent's rounds: heartbeats, what they ask for, and what becomes of it. All state is here, in one task; calls
//! and hooks run beside it and report back.

use super::beat::Beat;
use super::condition::Gauge;
use super::confirm::{Said, confirm, is_about_agent};
use super::failure::Failure;
use super::plan::{Lists, Plan, Step, Word};
use super::register::refusal;
use super::teardown::Tools;
use super::watch::watch;
use super::wipe::Wipes;
use super::work::{LeaseId, Work};
use leasehold_client::api::{AgentRegistered, Heartbeat, HeartbeatAnswer, NodeWork};
use leasehold_client::{Client, Error};
use leasehold_terminal::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

/// For one heartbeat, also where they come faster.
const PATIENCE_MIN: Duration = Duration::from_secs(2);

/// What the tasks beside report.
enum Heard {
    Answer(Result<HeartbeatAnswer, Error>),
    Confirmed(Result<Vec<(LeaseId, Said)>, Error>),
    /// With its sequence.
    Event(Option<u64>),
}

pub(crate) struct Rounds {
    client: Client,
    node: String,
    generation: u64,
    tools: Arc<Tools>,
    plan: Plan,
    gauge: Gauge,
    beat: Beat,
    stop_timeout: Duration,
    /// Set once the agent is told to stop.
    stop_by: Option<Instant>,
    teardowns: JoinSet<Result<(), Failure>>,
    running: BTreeMap<LeaseId, AbortHandle>,
    wipes: Wipes,
    /// Classes that were told to have no hooks.
    told: BTreeSet<String>,
    reports: UnboundedSender<Heard>,
    heard: UnboundedReceiver<Heard>,
}

impl Rounds {
    pub(crate) fn new(
        client: Client,
        registered: &AgentRegistered,
        tools: Arc<Tools>,
        plan: Plan,
        gauge: Gauge,
        wipes: Wipes,
        (beat_every, stop_timeout): (Duration, Duration),
    ) -> Self {
        let (reports, heard) = unbounded_channel();
        Self {
            client,
            node: registered.node.clone(),
            generation: registered.generation,
            tools,
            plan,
            gauge,
            beat: Beat::new(Instant::now(), beat_every),
            stop_timeout,
            stop_by: None,
            teardowns: JoinSet::new(),
            running: BTreeMap::new(),
            wipes,
            told: BTreeSet::new(),
            reports,
            heard,
        }
    }

    /// Goes on until it is told to stop, or the daemon will not have this agent any more. `after` is the sequence that
    /// events are wanted from.
    pub(crate) async fn run(mut self, after: u64, mut told_to_stop: impl AsyncFnMut()) -> Result<(), Problem> {
        let reports = self.reports.clone();
        let wake = move |sequence| reports.send(Heard::Event(sequence)).is_ok();
        let watching = tokio::spawn(watch(self.client.clone(), self.node.clone(), after, wake));
        let done = self.rounds(&mut told_to_stop).await;
        watching.abort();
        let left = self.running.len();
        // Whatever still runs is killed with its group.
        self.teardowns.shutdown().await;
        if left > 0 {
            tracing::warn!(left, "teardowns were cut off; they begin again at the next start");
        }
        done
    }

    async fn rounds(&mut self, told_to_stop: &mut impl AsyncFnMut()) -> Result<(), Problem> {
        loop {
            let now = Instant::now();
            for step in self.plan.steps(now) {
                self.take(step);
            }
            if self.stop_by.is_some_and(|stop_by| self.plan.is_at_rest() || now >= stop_by) {
                return Ok(());
            }
            if self.beat.due().is_some_and(|due| due <= now) {
                self.beat(now);
            }
            let wake_at = self.wake_at(now);
            tokio::select! {
                () = told_to_stop() => {
                    if self.stop_by.is_some() {
                        tracing::info!("told twice: stopping at once");
                        return Ok(());
                    }
                    self.stop();
                }
                Some(heard) = self.heard.recv() => self.hear(heard)?,
                Some(ended) = self.teardowns.join_next_with_id() => self.ended(ended),
                // What the daemon makes of it shows in its next answer.
                () = self.wipes.ended() => self.beat.woken(None),
                () = tokio::time::sleep_until(wake_at.into()) => {}
            }
        }
    }

    fn wake_at(&self, now: Instant) -> Instant {
        let far = now + Duration::from_secs(3600);
        [self.beat.due(), self.plan.wake_at(now), self.stop_by].into_iter().flatten().min().unwrap_or(far)
    }

    fn stop(&mut self) {
        self.stop_by = Some(Instant::now() + self.stop_timeout);
        self.plan.stop();
        leasehold_service::systemd::stopping();
        let running = self.plan.running();
        tracing::info!(running, "stopping: what runs has {:?} to finish; leases stay as they are", self.stop_timeout);
    }

    fn beat(&mut self, now: Instant) {
        let beat = Heartbeat { generation: self.generation, condition: Some(self.gauge.read(now)) };
        self.beat.begin(now);
        let patience = self.beat.every().max(PATIENCE_MIN);
        let call = self.client.heartbeat(&self.node, &beat).within(patience);
        let reports = self.reports.clone();
        tokio::spawn(async move {
            // Nobody listens any more only where the agent ends.
            let _ = reports.send(Heard::Answer(call.await));
        });
    }

    fn hear(&mut self, heard: Heard) -> Result<(), Problem> {
        let now = Instant::now();
        match heard {
            Heard::Event(sequence) => self.beat.woken(sequence),
            Heard::Answer(answer) => self.answered(now, answer)?,
            Heard::Confirmed(Ok(said)) => {
                for (lease, said) in said {
                    match said {
                        Said::Confirmed(sequence) => {
                            tracing::info!(%lease, "torn down and confirmed");
                            self.plan.confirmed(&lease, sequence);
                        }
                        Said::Refused(why) => {
                            tracing::warn!(%lease, "not confirmed: {why}");
                            self.plan.not_confirmed(now, &lease);
                            // The daemon's lists say what it is now.
                            self.beat.woken(None);
                        }
                    }
                }
            }
            Heard::Confirmed(Err(error)) => return Err(refusal(&error, &self.node)),
        }
        Ok(())
    }

    fn answered(&mut self, now: Instant, answer: Result<HeartbeatAnswer, Error>) -> Result<(), Problem> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if is_about_agent(&error) => return Err(refusal(&error, &self.node)),
            Err(error) => {
                if self.beat.failed(now) {
                    tracing::warn!("no answer to a heartbeat: {error}");
                }
                return Ok(());
            }
        };
        if let Some(silence) = self.beat.answered(now, answer.sequence) {
            tracing::info!("the daemon answers again, after {silence:?}");
        }
        for work in answer.held.iter().chain(&answer.teardown) {
            if self.tools.hooks_for(&work.class).is_none() && self.told.insert(work.class.clone()) {
                tracing::warn!(class = work.class, "leases of this class cannot be torn down: it has no hooks");
            }
        }
        let (teardown, fenced) = (readable(&answer.teardown), readable(&answer.fenced));
        self.plan.answered(now, &Lists { size: answer.sequence, teardown, fenced });
        let due = answer.wipe_by.is_some() && self.stop_by.is_none();
        self.wipes.due(due, answer.sequence, (&self.client, self.generation), &self.tools.runner);
        Ok(())
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Begin(work) => {
                tracing::info!(lease = %work.lease, class = work.class, quantity = work.quantity, "tearing down");
                let lease = work.lease.clone();
                let handle = self.teardowns.spawn(Arc::clone(&self.tools).tear_down(work));
                self.running.insert(lease, handle);
            }
            Step::Stop(lease) => {
                if let Some(handle) = self.running.get(&lease) {
                    handle.abort();
                }
            }
            Step::Confirm(leases) => {
                let (client, node, generation) = (self.client.clone(), self.node.clone(), self.generation);
                let reports = self.reports.clone();
                tokio::spawn(async move {
                    let said = confirm(&client, &node, generation, leases).await;
                    let _ = reports.send(Heard::Confirmed(said));
                });
            }
            Step::Forget(lease) => {
                if let Err(error) = self.tools.state.forget(&lease) {
                    tracing::warn!(%lease, "the state folder cannot be written: {error}");
                }
            }
            Step::Tell(lease, word) => tell(&lease, word),
        }
    }

    fn ended(&mut self, ended: Result<(Id, Result<(), Failure>), JoinError>) {
        let now = Instant::now();
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, outcome),
            Err(error) if error.is_cancelled() => (error.id(), Err(Failure("stopped".into()))),
            Err(error) => (error.id(), Err(Failure(format!("the teardown broke off: {error}")))),
        };
        let lease = self.running.iter().find(|(_, handle)| handle.id() == id).map(|(lease, _)| lease.clone());
        let lease = lease.expect("a task that was begun");
        self.running.remove(&lease);
        if let Err(failure) = &outcome {
            self.gauge.failed(now);
            tracing::error!(%lease, "teardown failed: {failure}");
        }
        self.plan.ended(now, &lease, outcome.is_ok());
    }
}

fn readable(works: &[NodeWork]) -> Vec<Work> {
    let read = |work: &NodeWork| {
        let read = Work::read(work);
        if read.is_none() {
            tracing::error!(lease = work.lease, "the daemon names a lease by what is not an id; it is left alone");
        }
        read
    };
    works.iter().filter_map(read).collect()
}

fn tell(lease: &LeaseId, word: Word) {
    match word {
        Word::Again => tracing::warn!(%lease, "its teardown was cut off before; its hooks run again"),
        Word::ConfirmAgain => {
            tracing::info!(%lease, "was torn down before a restart; only the confirmation is missing")
        }
        Word::GivenUp { failures } => tracing::error!(
            %lease,
            failures,
            "NOT TORN DOWN IN TIME: the daemon has fenced it. Its capacity is lost until an operator has looked at the \
             node and says `leasehold lease unfence {lease}`"
        ),
        Word::Fenced => tracing::warn!(
            %lease,
            "is fenced: end what is left of it by hand, then `leasehold lease unfence {lease}`"
        ),
        Word::Late => tracing::warn!(
            %lease,
            "its hooks succeeded after the deadline; it stays fenced until `leasehold lease unfence {lease}`"
        ),
        Word::ClosedElsewhere => tracing::warn!(%lease, "was closed by someone else; its hooks are stopped"),
    }
}
