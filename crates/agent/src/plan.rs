//! What to do next, from what the daemon answered and from what is on disk. No I/O, no clock of its own.
//!
//! The daemon's lists are the truth: a lease is torn down while it is listed so, and for no longer. So a clock that
//! goes wrong on the node neither gives a teardown up early nor keeps it going on capacity that is someone else's again.

use super::work::{LeaseId, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// After the first failure; doubled by each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Before a confirmation that was not taken is sent again.
const CONFIRM_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Teardowns at a time.
    pub(crate) parallel: usize,
    /// How long an answer is good for: after as much silence the daemon may have given the node to another agent.
    pub(crate) answer_age_max: Duration,
}

/// What an earlier run of the agent left on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Begun, and not known to be done.
    pub(crate) begun: BTreeSet<LeaseId>,
    /// Done, and not known to be confirmed.
    pub(crate) done: BTreeSet<LeaseId>,
}

/// The daemon's lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    /// How many records they know of.
    pub(crate) size: u64,
    pub(crate) teardown: Vec<Work>,
    pub(crate) fenced: Vec<Work>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Run the hooks; say [`Plan::ended`] when they are over.
    Begin(Work),
    /// Stop the hooks that run: the capacity is not the lease's any more. Say [`Plan::ended`] all the same.
    Stop(LeaseId),
    /// Say that these are torn down; then [`Plan::confirmed`] or [`Plan::not_confirmed`] for each.
    Confirm(Vec<LeaseId>),
    /// Remove what is on disk about it.
    Forget(LeaseId),
    Tell(LeaseId, Word),
}

/// What a person should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// The hooks ran at least in part before the agent was cut off, and run again.
    Again,
    /// Done before the agent was cut off; only the confirmation is missing.
    ConfirmAgain,
    /// Its deadline passed before the teardown was done.
    GivenUp { failures: u32 },
    /// Fenced already when the agent came.
    Fenced,
    /// The hooks succeeded after the deadline.
    Late,
    /// Someone else closed it.
    ClosedElsewhere,
}

#[derive(Debug)]
enum Stage {
    Waiting { from: Instant },
    Running,
    Done { from: Instant },
    Confirming,
}

/// What the daemon holds a lease for whose hooks may still run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    TearingDown,
    Fenced,
    Closed,
}

#[derive(Debug)]
struct Teardown {
    work: Work,
    stage: Stage,
    standing: Standing,
    failures: u32,
}

#[derive(Debug)]
pub(crate) struct Plan {
    limits: Limits,
    teardowns: BTreeMap<LeaseId, Teardown>,
    found: Found,
    /// Confirmed, with the sequence that sealed it: lists that are older still name them.
    confirmed: BTreeMap<LeaseId, u64>,
    /// Fenced leases that were told of.
    told: BTreeSet<LeaseId>,
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
            told: BTreeSet::new(),
            answered_at: None,
            stopping: false,
            steps: Vec::new(),
        }
    }

    /// The daemon answered. Answers come in the order of their lists.
    pub(crate) fn answered(&mut self, now: Instant, lists: &Lists) {
        self.answered_at = Some(now);
        let is_stale = |lease: &LeaseId| self.confirmed.get(lease).is_some_and(|sequence| lists.size <= *sequence);
        let due: Vec<Work> = lists.teardown.iter().filter(|work| !is_stale(&work.lease)).cloned().collect();
        self.confirmed.retain(|_, sequence| lists.size <= *sequence);
        let (found, listed) = (std::mem::take(&mut self.found), ids(&due));
        for work in due {
            self.take_up(now, work, &found);
        }
        let fenced = ids(&lists.fenced);
        self.let_go(&listed, &fenced);
        for lease in found.begun.union(&found.done).filter(|lease| !listed.contains(*lease)) {
            self.steps.push(Step::Forget(lease.clone()));
        }
        for lease in &fenced {
            if self.told.insert(lease.clone()) {
                self.steps.push(Step::Tell(lease.clone(), Word::Fenced));
            }
        }
        self.told.retain(|lease| fenced.contains(lease));
    }

    fn take_up(&mut self, now: Instant, work: Work, found: &Found) {
        if let Some(known) = self.teardowns.get_mut(&work.lease) {
            known.work = work;
            return;
        }
        let lease = work.lease.clone();
        let stage = if found.done.contains(&lease) {
            self.steps.push(Step::Tell(lease.clone(), Word::ConfirmAgain));
            Stage::Done { from: now }
        } else {
            if found.begun.contains(&lease) {
                self.steps.push(Step::Tell(lease.clone(), Word::Again));
            }
            Stage::Waiting { from: now }
        };
        self.teardowns.insert(lease, Teardown { work, stage, standing: Standing::TearingDown, failures: 0 });
    }

    /// What the daemon does not list any more is fenced, or closed.
    fn let_go(&mut self, listed: &BTreeSet<LeaseId>, fenced: &BTreeSet<LeaseId>) {
        let mut over = Vec::new();
        for (lease, teardown) in self.teardowns.iter_mut().filter(|(lease, _)| !listed.contains(*lease)) {
            let standing = if fenced.contains(lease) { Standing::Fenced } else { Standing::Closed };
            if teardown.standing == standing {
                continue;
            }
            if standing == Standing::Fenced {
                self.told.insert(lease.clone());
                self.steps.push(Step::Tell(lease.clone(), Word::GivenUp { failures: teardown.failures }));
            }
            teardown.standing = standing;
            match teardown.stage {
                // Fenced capacity is nobody's: the hooks may finish. Closed capacity may be someone else's.
                Stage::Running if standing == Standing::Fenced => {}
                Stage::Running => {
                    self.steps.push(Step::Tell(lease.clone(), Word::ClosedElsewhere));
                    self.steps.push(Step::Stop(lease.clone()));
                }
                // Whether our own confirmation closed it is about to be answered.
                Stage::Confirming => {}
                Stage::Waiting { .. } | Stage::Done { .. } => over.push(lease.clone()),
            }
        }
        for lease in over {
            self.forget(&lease);
        }
    }

    /// The hooks of a lease are over.
    pub(crate) fn ended(&mut self, now: Instant, lease: &LeaseId, succeeded: bool) {
        let Some(teardown) = self.teardowns.get_mut(lease) else { return };
        assert!(matches!(teardown.stage, Stage::Running), "hooks ended that were not begun");
        match teardown.standing {
            Standing::TearingDown if succeeded => teardown.stage = Stage::Done { from: now },
            Standing::TearingDown => {
                teardown.stage = Stage::Waiting { from: now + pause(teardown.failures) };
                teardown.failures += 1;
            }
            Standing::Fenced | Standing::Closed => {
                if succeeded && teardown.standing == Standing::Fenced {
                    self.steps.push(Step::Tell(lease.clone(), Word::Late));
                }
                self.forget(lease);
            }
        }
    }

    /// The daemon has sealed that a lease is torn down.
    pub(crate) fn confirmed(&mut self, lease: &LeaseId, sequence: u64) {
        self.confirmed.insert(lease.clone(), sequence);
        self.forget(lease);
    }

    /// The daemon would not have it, or was not reached. If it was not for the lease's own sake, it is said again.
    pub(crate) fn not_confirmed(&mut self, now: Instant, lease: &LeaseId) {
        let Some(teardown) = self.teardowns.get_mut(lease) else { return };
        match teardown.standing {
            Standing::TearingDown => teardown.stage = Stage::Done { from: now + CONFIRM_PAUSE },
            Standing::Fenced | Standing::Closed => self.forget(lease),
        }
    }

    fn forget(&mut self, lease: &LeaseId) {
        self.teardowns.remove(lease);
        self.steps.push(Step::Forget(lease.clone()));
    }

    /// Begin nothing more; what is done is still confirmed.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether nothing runs and nothing waits to be confirmed.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.teardowns.values().all(|teardown| matches!(teardown.stage, Stage::Waiting { .. }))
    }

    pub(crate) fn running(&self) -> usize {
        self.teardowns.values().filter(|teardown| matches!(teardown.stage, Stage::Running)).count()
    }

    fn may_begin(&self, now: Instant) -> bool {
        !self.stopping && self.answered_at.is_some_and(|at| now.duration_since(at) < self.limits.answer_age_max)
    }

    /// What is to be done now, in this order.
    pub(crate) fn steps(&mut self, now: Instant) -> Vec<Step> {
        let mut steps = std::mem::take(&mut self.steps);
        if self.may_begin(now) {
            let due = |teardown: &&mut Teardown| matches!(teardown.stage, Stage::Waiting { from } if from <= now);
            let free = self.limits.parallel.saturating_sub(self.running());
            let mut waiting: Vec<&mut Teardown> = self.teardowns.values_mut().filter(due).collect();
            // Whose deadline comes first goes first.
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

    /// When to ask for steps again, if nothing happens before.
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

/// How long to wait after one more failure.
fn pause(failures_before: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << failures_before.min(16)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests;
