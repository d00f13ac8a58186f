//! Decides what to do next, from the daemon's answers and the state on disk. No I/O and no clock.
//!
//! The daemon's lists are authoritative: a lease is torn down as long as it is listed. So a wrong clock on the node
//! neither abandons a teardown early nor continues it on capacity that belongs to another lease already.

use super::work::{LeaseId, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The pause after the first failure; each further failure doubles it.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The pause before a failed confirmation is repeated.
const CONFIRM_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most teardowns that run at the same time.
    pub(crate) parallel: usize,
    /// How long an answer is valid. After that the daemon may have accepted another agent for the node.
    pub(crate) answer_age_max: Duration,
}

/// The teardowns that an earlier run recorded on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Started, and possibly not finished.
    pub(crate) begun: BTreeSet<LeaseId>,
    /// Finished, and possibly not confirmed.
    pub(crate) done: BTreeSet<LeaseId>,
}

/// The daemon's lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    /// The journal size that they include.
    pub(crate) size: u64,
    pub(crate) teardown: Vec<Work>,
    pub(crate) fenced: Vec<Work>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Run the hooks, and call [`Plan::ended`] when they have ended.
    Begin(Work),
    /// Stop the running hooks, because the lease no longer has the capacity. Call [`Plan::ended`] as well.
    Stop(LeaseId),
    /// Confirm these teardowns; then call [`Plan::confirmed`] or [`Plan::not_confirmed`] for each.
    Confirm(Vec<LeaseId>),
    /// Remove its state on disk.
    Forget(LeaseId),
    Log(LeaseId, Notice),
}

/// A message for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// An earlier run of the agent was interrupted during the teardown; the hooks run again.
    Again,
    /// An earlier run finished the teardown; only the confirmation is missing.
    ConfirmAgain,
    /// Its deadline passed before the teardown succeeded.
    GivenUp { failures: u32 },
    /// It was fenced already when the agent started.
    Fenced,
    /// The hooks succeeded after the deadline.
    Late,
    /// It was closed by an operator.
    ClosedElsewhere,
}

#[derive(Debug)]
enum Stage {
    Waiting { from: Instant },
    Running,
    Done { from: Instant },
    Confirming,
}

/// The state of a lease at the daemon, while its hooks may still run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DaemonState {
    TearingDown,
    Fenced,
    Closed,
}

#[derive(Debug)]
struct Teardown {
    work: Work,
    stage: Stage,
    at_daemon: DaemonState,
    failures: u32,
}

#[derive(Debug)]
pub(crate) struct Plan {
    limits: Limits,
    teardowns: BTreeMap<LeaseId, Teardown>,
    found: Found,
    /// Confirmed leases with the sequence of the confirmation: older lists still contain them.
    confirmed: BTreeMap<LeaseId, u64>,
    /// Fenced leases that were logged.
    logged: BTreeSet<LeaseId>,
    answered_at: Option<Instant>,
    stopping: bool,
    steps: Vec<Step>,
}

impl Plan {
    pub(crate) fn new(limits: Limits, found: Found) -> Self {
        Self {
            limits,
            teardowns: BTreeMap::new(),
            found,
            confirmed: BTreeMap::new(),
            logged: BTreeSet::new(),
            answered_at: None,
            stopping: false,
            steps: Vec::new(),
        }
    }

    /// Handles an answer of the daemon. Answers arrive in order.
    pub(crate) fn answered(&mut self, now: Instant, lists: &Lists) {
        self.answered_at = Some(now);
        let is_stale = |lease: &LeaseId| self.confirmed.get(lease).is_some_and(|sequence| lists.size <= *sequence);
        let due: Vec<Work> = lists.teardown.iter().filter(|work| !is_stale(&work.lease)).cloned().collect();
        self.confirmed.retain(|_, sequence| lists.size <= *sequence);
        let (found, listed) = (std::mem::take(&mut self.found), ids(&due));
        for work in due {
            self.add(now, work, &found);
        }
        let fenced = ids(&lists.fenced);
        self.drop_unlisted(&listed, &fenced);
        for lease in found.begun.union(&found.done).filter(|lease| !listed.contains(*lease)) {
            self.steps.push(Step::Forget(lease.clone()));
        }
        for lease in &fenced {
            if self.logged.insert(lease.clone()) {
                self.steps.push(Step::Log(lease.clone(), Notice::Fenced));
            }
        }
        self.logged.retain(|lease| fenced.contains(lease));
    }

    fn add(&mut self, now: Instant, work: Work, found: &Found) {
        if let Some(known) = self.teardowns.get_mut(&work.lease) {
            known.work = work;
            return;
        }
        let lease = work.lease.clone();
        let stage = if found.done.contains(&lease) {
            self.steps.push(Step::Log(lease.clone(), Notice::ConfirmAgain));
            Stage::Done { from: now }
        } else {
            if found.begun.contains(&lease) {
                self.steps.push(Step::Log(lease.clone(), Notice::Again));
            }
            Stage::Waiting { from: now }
        };
        self.teardowns.insert(lease, Teardown { work, stage, at_daemon: DaemonState::TearingDown, failures: 0 });
    }

    /// Leases that the daemon no longer lists are fenced or closed.
    fn drop_unlisted(&mut self, listed: &BTreeSet<LeaseId>, fenced: &BTreeSet<LeaseId>) {
        let mut over = Vec::new();
        for (lease, teardown) in self.teardowns.iter_mut().filter(|(lease, _)| !listed.contains(*lease)) {
            let at_daemon = if fenced.contains(lease) { DaemonState::Fenced } else { DaemonState::Closed };
            if teardown.at_daemon == at_daemon {
                continue;
            }
            if at_daemon == DaemonState::Fenced {
                self.logged.insert(lease.clone());
                self.steps.push(Step::Log(lease.clone(), Notice::GivenUp { failures: teardown.failures }));
            }
            teardown.at_daemon = at_daemon;
            match teardown.stage {
                // Nobody uses fenced capacity, so the hooks may finish. Closed capacity may be leased again.
                Stage::Running if at_daemon == DaemonState::Fenced => {}
                Stage::Running => {
                    self.steps.push(Step::Log(lease.clone(), Notice::ClosedElsewhere));
                    self.steps.push(Step::Stop(lease.clone()));
                }
                // The answer to our confirmation will tell whether it closed the lease.
                Stage::Confirming => {}
                Stage::Waiting { .. } | Stage::Done { .. } => over.push(lease.clone()),
            }
        }
        for lease in over {
            self.forget(&lease);
        }
    }

    /// Handles the end of a lease's hooks.
    pub(crate) fn ended(&mut self, now: Instant, lease: &LeaseId, succeeded: bool) {
        let Some(teardown) = self.teardowns.get_mut(lease) else { return };
        assert!(matches!(teardown.stage, Stage::Running), "only hooks that were started can end");
        match teardown.at_daemon {
            DaemonState::TearingDown if succeeded => teardown.stage = Stage::Done { from: now },
            DaemonState::TearingDown => {
                teardown.stage = Stage::Waiting { from: now + pause(teardown.failures) };
                teardown.failures += 1;
            }
            DaemonState::Fenced | DaemonState::Closed => {
                if succeeded && teardown.at_daemon == DaemonState::Fenced {
                    self.steps.push(Step::Log(lease.clone(), Notice::Late));
                }
                self.forget(lease);
            }
        }
    }

    /// The daemon has recorded the confirmation.
    pub(crate) fn confirmed(&mut self, lease: &LeaseId, sequence: u64) {
        self.confirmed.insert(lease.clone(), sequence);
        self.forget(lease);
    }

    /// The daemon refused the confirmation or was not reached. It is repeated while the lease is still listed.
    pub(crate) fn not_confirmed(&mut self, now: Instant, lease: &LeaseId) {
        let Some(teardown) = self.teardowns.get_mut(lease) else { return };
        match teardown.at_daemon {
            DaemonState::TearingDown => teardown.stage = Stage::Done { from: now + CONFIRM_PAUSE },
            DaemonState::Fenced | DaemonState::Closed => self.forget(lease),
        }
    }

    fn forget(&mut self, lease: &LeaseId) {
        self.teardowns.remove(lease);
        self.steps.push(Step::Forget(lease.clone()));
    }

    /// Starts no more teardowns; finished ones are still confirmed.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether no hook runs and no confirmation is outstanding.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.teardowns.values().all(|teardown| matches!(teardown.stage, Stage::Waiting { .. }))
    }

    pub(crate) fn running(&self) -> usize {
        self.teardowns.values().filter(|teardown| matches!(teardown.stage, Stage::Running)).count()
    }

    fn may_begin(&self, now: Instant) -> bool {
        !self.stopping && self.answered_at.is_some_and(|at| now.duration_since(at) < self.limits.answer_age_max)
    }

    /// The steps to take now, in order.
    pub(crate) fn steps(&mut self, now: Instant) -> Vec<Step> {
        let mut steps = std::mem::take(&mut self.steps);
        if self.may_begin(now) {
            let due = |teardown: &&mut Teardown| matches!(teardown.stage, Stage::Waiting { from } if from <= now);
            let free = self.limits.parallel.saturating_sub(self.running());
            let mut waiting: Vec<&mut Teardown> = self.teardowns.values_mut().filter(due).collect();
            // By deadline.
            waiting.sort_by_key(|teardown| (teardown.work.teardown_by, teardown.work.lease.clone()));
            for teardown in waiting.into_iter().take(free) {
                teardown.stage = Stage::Running;
                steps.push(Step::Begin(teardown.work.clone()));
            }
        }
        let mut done = Vec::new();
        for (lease, teardown) in &mut self.teardowns {
            if matches!(teardown.stage, Stage::Done { from } if from <= now) {
                teardown.stage = Stage::Confirming;
                done.push(lease.clone());
            }
        }
        if !done.is_empty() {
            steps.push(Step::Confirm(done));
        }
        steps
    }

    /// When to call [`Self::steps`] again, if nothing happens before.
    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let may_begin = self.may_begin(now) && self.running() < self.limits.parallel;
        let from = |teardown: &Teardown| match teardown.stage {
            Stage::Waiting { from } => may_begin.then_some(from),
            Stage::Done { from } => Some(from),
            Stage::Running | Stage::Confirming => None,
        };
        self.teardowns.values().filter_map(from).min()
    }
}

fn ids(works: &[Work]) -> BTreeSet<LeaseId> {
    works.iter().map(|work| work.lease.clone()).collect()
}

/// The pause after one more failure.
fn pause(failures_before: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << failures_before.min(16)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests;
