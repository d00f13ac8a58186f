//! The agent's main loop: heartbeats, the steps that follow from the answers, and their results. All state is here, in
//! one task; calls and hooks run in other tasks and report back.

use super::beat::Beat;
use super::condition::Gauge;
use super::confirm::{Confirmation, confirm, is_about_agent};
use super::failure::Failure;
use super::plan::{Lists, Notice, Plan, Step};
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

/// The shortest timeout of a heartbeat.
const TIMEOUT_MIN: Duration = Duration::from_secs(2);

/// Reports of the other tasks.
enum Report {
    Answer(Result<HeartbeatAnswer, Error>),
    Confirmed(Result<Vec<(LeaseId, Confirmation)>, Error>),
    /// An event with its sequence.
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
    /// Set when the agent was asked to stop.
    stop_by: Option<Instant>,
    teardowns: JoinSet<Result<(), Failure>>,
    running: BTreeMap<LeaseId, AbortHandle>,
    wipes: Wipes,
    /// Classes without hooks that were logged.
    logged: BTreeSet<String>,
    reports: UnboundedSender<Report>,
    received: UnboundedReceiver<Report>,
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
        let (reports, received) = unbounded_channel();
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
            logged: BTreeSet::new(),
            reports,
            received,
        }
    }

    /// Runs until it is asked to stop, or the daemon rejects this agent. `after` is the sequence after which events
    /// are read.
    pub(crate) async fn run(mut self, after: u64, mut stop_requested: impl AsyncFnMut()) -> Result<(), Problem> {
        let reports = self.reports.clone();
        let wake = move |sequence| reports.send(Report::Event(sequence)).is_ok();
        let watching = tokio::spawn(watch(self.client.clone(), self.node.clone(), after, wake));
        let done = self.rounds(&mut stop_requested).await;
        watching.abort();
        let left = self.running.len();
        // Hooks that still run are killed with their process groups.
        self.teardowns.shutdown().await;
        if left > 0 {
            tracing::warn!(left, "unfinished teardowns were stopped; they run again at the next start");
        }
        done
    }

    async fn rounds(&mut self, stop_requested: &mut impl AsyncFnMut()) -> Result<(), Problem> {
        loop {
            let now = Instant::now();
            for step in self.plan.steps(now) {
                self.carry_out(step);
            }
            if self.stop_by.is_some_and(|stop_by| self.plan.is_at_rest() || now >= stop_by) {
                return Ok(());
            }
            if self.beat.due().is_some_and(|due| due <= now) {
                self.beat(now);
            }
            let wake_at = self.wake_at(now);
            tokio::select! {
                () = stop_requested() => {
                    if self.stop_by.is_some() {
                        tracing::info!("second signal: stopping at once");
                        return Ok(());
                    }
                    self.stop();
                }
                Some(report) = self.received.recv() => self.handle(report)?,
                Some(ended) = self.teardowns.join_next_with_id() => self.ended(ended),
                // The next answer shows the new state of the node.
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
        tracing::info!(
            running,
            "stopping; running teardowns have {:?} to finish, leases do not end",
            self.stop_timeout
        );
    }

    fn beat(&mut self, now: Instant) {
        let beat = Heartbeat { generation: self.generation, condition: Some(self.gauge.read(now)) };
        self.beat.begin(now);
        let timeout = self.beat.every().max(TIMEOUT_MIN);
        let call = self.client.heartbeat(&self.node, &beat).within(timeout);
        let reports = self.reports.clone();
        tokio::spawn(async move {
            // Sending fails only while the agent exits.
            let _ = reports.send(Report::Answer(call.await));
        });
    }

    fn handle(&mut self, report: Report) -> Result<(), Problem> {
        let now = Instant::now();
        match report {
            Report::Event(sequence) => self.beat.woken(sequence),
            Report::Answer(answer) => self.answered(now, answer)?,
            Report::Confirmed(Ok(results)) => {
                for (lease, result) in results {
                    match result {
                        Confirmation::Confirmed(sequence) => {
                            tracing::info!(%lease, "torn down and confirmed");
                            self.plan.confirmed(&lease, sequence);
                        }
                        Confirmation::Refused(why) => {
                            tracing::warn!(%lease, "not confirmed: {why}");
                            self.plan.not_confirmed(now, &lease);
                            // The next answer shows the current state of the lease.
                            self.beat.woken(None);
                        }
                    }
                }
            }
            Report::Confirmed(Err(error)) => return Err(refusal(&error, &self.node)),
        }
        Ok(())
    }

    fn answered(&mut self, now: Instant, answer: Result<HeartbeatAnswer, Error>) -> Result<(), Problem> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if is_about_agent(&error) => return Err(refusal(&error, &self.node)),
            Err(error) => {
                if self.beat.failed(now) {
                    tracing::warn!("heartbeat failed: {error}");
                }
                return Ok(());
            }
        };
        if let Some(silence) = self.beat.answered(now, answer.sequence) {
            tracing::info!("heartbeats succeed again after {silence:?}");
        }
        for work in answer.held.iter().chain(&answer.teardown) {
            if self.tools.hooks_for(&work.class).is_none() && self.logged.insert(work.class.clone()) {
                tracing::warn!(class = work.class, "no hooks for this class: its leases cannot be torn down");
            }
        }
        let (teardown, fenced) = (readable(&answer.teardown), readable(&answer.fenced));
        self.plan.answered(now, &Lists { size: answer.sequence, teardown, fenced });
        let due = answer.wipe_by.is_some() && self.stop_by.is_none();
        self.wipes.due(due, answer.sequence, (&self.client, self.generation), &self.tools.runner);
        Ok(())
    }

    fn carry_out(&mut self, step: Step) {
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
                    let results = confirm(&client, &node, generation, leases).await;
                    let _ = reports.send(Report::Confirmed(results));
                });
            }
            Step::Forget(lease) => {
                if let Err(error) = self.tools.state.forget(&lease) {
                    tracing::warn!(%lease, "cannot write the state directory: {error}");
                }
            }
            Step::Log(lease, notice) => log(&lease, notice),
        }
    }

    fn ended(&mut self, ended: Result<(Id, Result<(), Failure>), JoinError>) {
        let now = Instant::now();
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, outcome),
            Err(error) if error.is_cancelled() => (error.id(), Err(Failure("stopped".into()))),
            Err(error) => (error.id(), Err(Failure(format!("the teardown task failed: {error}")))),
        };
        let lease = self.running.iter().find(|(_, handle)| handle.id() == id).map(|(lease, _)| lease.clone());
        let lease = lease.expect("a task that was started");
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
            tracing::error!(lease = work.lease, "ignored a lease whose ID is invalid");
        }
        read
    };
    works.iter().filter_map(read).collect()
}

fn log(lease: &LeaseId, notice: Notice) {
    match notice {
        Notice::Again => tracing::warn!(%lease, "the teardown was interrupted by a restart; its hooks run again"),
        Notice::ConfirmAgain => {
            tracing::info!(%lease, "torn down before a restart; only the confirmation is missing")
        }
        Notice::GivenUp { failures } => tracing::error!(
            %lease,
            failures,
            "NOT TORN DOWN IN TIME: the daemon has fenced the lease. Its capacity is lost until an operator checks the \
             node and runs `leasehold lease unfence {lease}`"
        ),
        Notice::Fenced => tracing::warn!(
            %lease,
            "the lease is fenced: end its processes by hand, then run `leasehold lease unfence {lease}`"
        ),
        Notice::Late => tracing::warn!(
            %lease,
            "the hooks succeeded after the deadline; the lease stays fenced until `leasehold lease unfence {lease}`"
        ),
        Notice::ClosedElsewhere => tracing::warn!(%lease, "the lease was closed by an operator; its hooks are stopped"),
    }
}
