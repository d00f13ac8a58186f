//! A week of a cluster: holders who come, renew with a report of what they did, and go; agents that confirm; an operator.

use super::super::activity::report;
use super::super::cluster::{H100, SLICES, TENANTS, has_agent, missing, nodes_with_agent, tenant_no};
use super::super::habits::{HABITS, Wish, wish_of};
use super::incidents::{self, Incident};
use super::pen::Pen;
use super::rhythm;
use crate::dice::Dice;
use crate::problem::Problem;
use leasehold_engine::command::{
    ConfirmTeardown, LeaseList, LoseNode, PutQuota, RegisterAgent, ReleaseOne, RenewOne, Revoke, UpdateTenant,
};
use leasehold_engine::{Command, Lease, Phase, Request};
use leasehold_model::limits::LEASES_PER_RECORD_MAX;
use leasehold_model::{
    Identity, Instant, LeaseNo, LimitKind, NodeNo, Quanta, QuotaNo, Reason, Span, TenantSettingsChange,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Holders that die without a word, and denied ones that come again, in a hundred.
const CRASHES: u64 = 2;
const COMES_AGAIN: u64 = 40;
const MINUTE: u64 = 60_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// How long a node had been silent when it was given up.
const SILENCE: Span = Span::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Arrive { tenant: usize },
    Ask { tenant: usize },
    Renew { job: u64 },
    Leave { job: u64 },
    Ready { job: u64 },
    Confirm { node: NodeNo },
    Happen(Incident),
}

/// A workload that holds leases.
struct Job {
    identity: Identity,
    leases: Vec<(LeaseNo, Quanta)>,
    node: NodeNo,
    ttl: Span,
    leaves_at: Instant,
    /// The next report covers the time from here on.
    reported_to: Instant,
    /// How much of what it holds it uses, in a hundred.
    busy: u64,
}

pub(super) struct Week {
    pen: Pen,
    dice: Dice,
    to: Instant,
    due: BinaryHeap<Reverse<(Instant, Step)>>,
    jobs: BTreeMap<u64, Job>,
    next_job: u64,
    /// Numbers are handed out in order: the next grant begins with this one.
    next_lease: LeaseNo,
    asked: u64,
    hung: Option<NodeNo>,
    lost: Option<NodeNo>,
}

impl Week {
    /// Puts the cluster, its agents and its tenants.
    pub(super) fn begin(pen: Pen, seed: u64, from: Instant, to: Instant, burst_ttl: Span) -> Result<Self, Problem> {
        let mut week = Self {
            pen,
            dice: Dice::new(seed ^ 0x0077_6565_6b00),
            to,
            due: BinaryHeap::new(),
            jobs: BTreeMap::new(),
            next_job: 0,
            next_lease: LeaseNo(0),
            asked: 0,
            hung: None,
            lost: None,
        };
        for command in missing(week.pen.state(), burst_ttl) {
            week.operate(command)?;
        }
        week.allow_evictions(false)?;
        for node in nodes_with_agent() {
            let instance = u128::from(week.dice.draw());
            week.operate(Command::RegisterAgent(RegisterAgent { node, instance, takeover: false }))?;
        }
        for tenant in 0..TENANTS.len() {
            week.next_arrival(tenant);
        }
        week.due.extend(incidents::between(from, to).map(|(at, incident)| Reverse((at, Step::Happen(incident)))));
        Ok(week)
    }

    pub(super) fn now(&self) -> Instant {
        self.pen.now()
    }

    /// Does what is due next; false once nothing is left before the end.
    pub(super) fn step(&mut self) -> Result<bool, Problem> {
        let Some(Reverse((at, step))) = self.due.pop().filter(|due| due.0.0 < self.to) else { return Ok(false) };
        self.pen.pass_to(at)?;
        match step {
            Step::Arrive { tenant } => {
                self.next_arrival(tenant);
                self.ask(tenant)?;
            }
            Step::Ask { tenant } => self.ask(tenant)?,
            Step::Renew { job } => self.renew(job)?,
            Step::Leave { job } => self.leave(job)?,
            Step::Ready { job } => self.ready(job)?,
            Step::Confirm { node } => self.confirm(node)?,
            Step::Happen(incident) => self.happen(incident)?,
        }
        Ok(true)
    }

    /// Nothing more is asked for; what comes due up to the end does.
    pub(super) fn pass_to_end(&mut self) -> Result<(), Problem> {
        self.pen.pass_to(self.to)
    }

    /// The agents of the past stop, so that those of the present can take the nodes up. Returns how many records there
    /// are.
    pub(super) fn close(mut self) -> Result<u64, Problem> {
        for node in nodes_with_agent() {
            self.operate(Command::DetachAgent(node))?;
        }
        self.allow_evictions(true)?;
        self.pen.close()
    }

    /// Evictions come with the present: the holders of the past know nothing of them.
    fn allow_evictions(&mut self, allowed: bool) -> Result<(), Problem> {
        for tenant in (0..TENANTS.len()).map(tenant_no) {
            let most = Some((!allowed).then_some(0));
            let update = UpdateTenant {
                settings: TenantSettingsChange { max_evicted_quanta_per_hour: most, ..TenantSettingsChange::default() },
                ..UpdateTenant::of(tenant)
            };
            self.operate(Command::UpdateTenant(update))?;
        }
        Ok(())
    }

    fn operate(&mut self, command: Command) -> Result<(), Problem> {
        self.pen.decide(Identity::default(), command)
    }

    fn schedule(&mut self, at: Instant, step: Step) {
        self.due.push(Reverse((at, step)));
    }
    fn schedule_in(&mut self, seconds: (u64, u64), step: Step) {
        let wait = Span(self.dice.between(seconds.0 * SECOND, seconds.1 * SECOND));
        self.schedule(self.now().saturating_add(wait), step);
    }

    fn next_arrival(&mut self, tenant: usize) {
        let mean = HABITS[tenant].every_minutes * MINUTE * 100 / rhythm::percent(self.now());
        let wait = Span(self.dice.between(mean / 4, mean * 7 / 4));
        self.schedule(self.now().saturating_add(wait), Step::Arrive { tenant });
    }

    fn ask(&mut self, tenant: usize) -> Result<(), Problem> {
        let wish = wish_of(tenant, &mut self.dice);
        let stays = self.dice.between(wish.stayed_minutes.0, wish.stayed_minutes.1);
        let ttl = Span((stays / 3).clamp(15, 120) * MINUTE);
        let identity = wish.identity(tenant, &mut self.dice);
        let key = format!("week-{}", self.asked);
        self.asked += 1;
        let request = Request::once(identity.clone(), Command::Request(wish.request(ttl)), key.as_bytes());
        self.pen.decide_request(request.expect("the key is short"))?;
        match self.granted(wish) {
            Some(job) => self.settle(Job { identity, ttl, ..job }, Span(stays * MINUTE)),
            None if self.dice.percent(COMES_AGAIN) => self.schedule_in((900, 3600), Step::Ask { tenant }),
            None => {}
        }
        Ok(())
    }

    /// What the last request was granted, if it was.
    fn granted(&mut self, wish: &Wish) -> Option<Job> {
        let first = self.pen.state().lease(self.next_lease)?;
        let (node, now) = (first.node, self.now());
        let numbers = (first.number.0..).take(wish.asks.len()).map(LeaseNo);
        let leases: Vec<_> = numbers.filter_map(|no| Some((no, self.pen.state().lease(no)?.quanta))).collect();
        assert_eq!(leases.len(), wish.asks.len(), "all of a request is granted, or none");
        self.next_lease = LeaseNo(self.next_lease.0 + leases.len() as u64);
        let busy = self.dice.between(15, 98);
        let identity = Identity::default();
        Some(Job { identity, leases, node, ttl: Span::ZERO, leaves_at: now, reported_to: now, busy })
    }

    fn settle(&mut self, mut job: Job, stays: Span) {
        let deadline = self.deadline(&job);
        if self.dice.percent(CRASHES) {
            // It never speaks again, and its leases end at their deadline.
            let noticed = deadline.saturating_add(Span(30 * SECOND));
            if has_agent(job.node) {
                self.schedule(noticed, Step::Confirm { node: job.node });
            }
            return;
        }
        job.leaves_at = self.now().saturating_add(stays);
        let number = self.next_job;
        self.next_job += 1;
        self.schedule(job.leaves_at, Step::Leave { job: number });
        self.jobs.insert(number, job);
        self.next_renewal(number);
    }

    fn deadline(&self, job: &Job) -> Instant {
        let deadlines = job.leases.iter().filter_map(|(no, _)| Some(self.pen.state().lease(*no)?.expires_at));
        deadlines.min().unwrap_or(self.now())
    }

    /// Half of what is left, and a little earlier or later than others.
    fn next_renewal(&mut self, number: u64) {
        let left = self.deadline(&self.jobs[&number]).since(self.now()).0;
        let wait = Span(left * self.dice.between(45, 56) / 100);
        let at = self.now().saturating_add(wait);
        if at < self.jobs[&number].leaves_at {
            self.schedule(at, Step::Renew { job: number });
        }
    }

    /// Where a job's leases are, as long as they are held. They stand and fall together.
    fn phase(&self, job: &Job) -> Option<Phase> {
        let first = job.leases.first().and_then(|(no, _)| self.pen.state().lease(*no));
        first.map(|lease| lease.phase).filter(|phase| phase.is_held())
    }

    fn renew(&mut self, number: u64) -> Result<(), Problem> {
        let Some(job) = self.jobs.get(&number) else { return Ok(()) };
        match self.phase(job) {
            Some(Phase::Active) => {}
            // Word of a revocation: it checkpoints, then says that it is ready.
            Some(_) => {
                self.schedule_in((20, 240), Step::Ready { job: number });
                return Ok(());
            }
            None => {
                self.jobs.remove(&number);
                return Ok(());
            }
        }
        let (before, covered) = (self.deadline(job), self.now().since(job.reported_to));
        let renewals = job.leases.iter().map(|(lease, quanta)| RenewOne {
            lease: *lease,
            ttl: job.ttl,
            activity: Some(report(*quanta, covered, job.busy)),
        });
        let (identity, renewals) = (job.identity.clone(), renewals.collect());
        self.pen.decide(identity, Command::Renew(renewals))?;
        let now = self.now();
        let job = self.jobs.get_mut(&number).expect("it was there");
        job.reported_to = now;
        if self.deadline(&self.jobs[&number]) > before {
            self.next_renewal(number);
            return Ok(());
        }
        // Its tenant has burst for long enough: it cannot stay longer than it may already, so it goes.
        self.leave(number)
    }

    fn leave(&mut self, number: u64) -> Result<(), Problem> {
        let Some(job) = self.jobs.remove(&number) else { return Ok(()) };
        if self.phase(&job).is_none() {
            return Ok(());
        }
        let covered = self.now().since(job.reported_to);
        let activity = |quanta: Quanta| (covered > Span::ZERO).then(|| report(quanta, covered, job.busy));
        let releases = job.leases.iter().map(|(no, quanta)| ReleaseOne { lease: *no, activity: activity(*quanta) });
        self.pen.decide(job.identity.clone(), Command::Release(releases.collect()))?;
        self.torn_down_soon(job.node);
        Ok(())
    }

    fn ready(&mut self, number: u64) -> Result<(), Problem> {
        let Some(job) = self.jobs.remove(&number) else { return Ok(()) };
        if self.phase(&job) == Some(Phase::Revoking) {
            let leases = job.leases.iter().map(|(no, _)| *no).collect();
            self.pen.decide(job.identity.clone(), Command::Ready(leases))?;
        }
        self.torn_down_soon(job.node);
        Ok(())
    }

    fn torn_down_soon(&mut self, node: NodeNo) {
        if has_agent(node) {
            self.schedule_in((12, 80), Step::Confirm { node });
        }
    }

    /// The agent says what it has torn down; one that hangs, or whose machine is gone, says nothing.
    fn confirm(&mut self, node: NodeNo) -> Result<(), Problem> {
        let state = self.pen.state();
        let Some(found) = state.node(node).filter(|found| !found.lost && self.hung != Some(node)) else {
            return Ok(());
        };
        let generation = found.agent.map(|agent| agent.generation);
        let waiting = state.leases_on(node).into_iter().filter(|lease| lease.phase.is_tearing_down());
        let leases: LeaseList = waiting.take(LEASES_PER_RECORD_MAX).map(|lease| lease.number).collect();
        if leases.is_empty() {
            return Ok(());
        }
        self.operate(Command::ConfirmTeardown(ConfirmTeardown { node, leases, generation }))
    }

    fn happen(&mut self, incident: Incident) -> Result<(), Problem> {
        match incident {
            Incident::Drain(node) => self.operate(Command::DrainNode(node)),
            Incident::Resume(node) => self.operate(Command::ResumeNode(node)),
            Incident::Hang => {
                let node = self.busiest();
                self.hung = Some(node);
                // Someone leaves while it hangs, so that it matters.
                let on_node = self.pen.state().leases_on(node).into_iter().filter(|lease| lease.phase == Phase::Active);
                let smallest = on_node.min_by_key(|lease| (lease.quanta, lease.number)).map(|lease| lease.number);
                smallest.map_or(Ok(()), |lease| self.revoke(lease, Span::ZERO))
            }
            Incident::GoOn => self.hung.take().map_or(Ok(()), |node| self.confirm(node)),
            Incident::Lose => {
                let (node, last_seen) = (self.busiest(), Instant(self.now().0 - SILENCE.0));
                self.lost = Some(node);
                self.operate(Command::LoseNode(LoseNode { node, last_seen }))
            }
            Incident::Return => {
                let back = self.lost.take().map(Command::ReturnNode);
                back.map_or(Ok(()), |command| self.operate(command))
            }
            Incident::ClearFences => self.clear_fences(),
            Incident::Revoke { grace } => {
                let gangs = self.pen.state().leases().into_iter().filter(|lease| is_large_gang(lease));
                let victim = gangs.max_by_key(|lease| (lease.quanta, lease.number)).map(|lease| lease.number);
                victim.map_or(Ok(()), |lease| self.revoke(lease, grace))
            }
            Incident::Raise(quota) => self.raise(quota),
        }
    }

    /// Of the nodes with an agent, the one with the most leases.
    fn busiest(&self) -> NodeNo {
        let held = |node: &NodeNo| self.pen.state().leases_on(*node).len();
        nodes_with_agent().max_by_key(held).expect("there are such nodes")
    }

    fn revoke(&mut self, lease: LeaseNo, grace: Span) -> Result<(), Problem> {
        let job = self.jobs.iter().find(|(_, job)| job.leases.iter().any(|(no, _)| *no == lease));
        let holder = job.map(|(number, job)| (*number, job.node));
        let leases = LeaseList::from_slice(&[lease]);
        self.operate(Command::Revoke(Revoke { leases, reason: Reason::Operator, grace: Some(grace) }))?;
        let Some((number, node)) = holder else { return Ok(()) };
        if grace == Span::ZERO {
            self.jobs.remove(&number);
            self.torn_down_soon(node);
        } else {
            // Most are ready before grace ends.
            self.schedule_in((60, grace.as_secs()), Step::Ready { job: number });
        }
        Ok(())
    }

    fn clear_fences(&mut self) -> Result<(), Problem> {
        let fenced = self.pen.state().leases().into_iter().filter(|lease| lease.phase == Phase::Fenced);
        let fenced: LeaseList = fenced.take(LEASES_PER_RECORD_MAX).map(|lease| lease.number).collect();
        if fenced.is_empty() { Ok(()) } else { self.operate(Command::Unfence(fenced)) }
    }

    /// One GPU more.
    fn raise(&mut self, number: QuotaNo) -> Result<(), Problem> {
        let Some(quota) = self.pen.state().quota(number) else { return Ok(()) };
        let limit = LimitKind::Hard { limit: quota.limit.limit() + SLICES };
        let put = PutQuota { quota: Some(number), scope: quota.scope.clone(), measure: quota.measure, limit };
        self.operate(Command::PutQuota(put))
    }
}

fn is_large_gang(lease: &Lease) -> bool {
    lease.phase == Phase::Active && lease.class == H100 && lease.gang_len > 1 && lease.reported_to > lease.granted_at
}
