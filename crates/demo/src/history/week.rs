//! Simulates a week: holders that request, renew and release leases, agents that confirm teardowns, and an operator.

use super::super::activity::report;
use super::super::cluster::{H100, SLICES, TENANTS, has_agent, missing, nodes_with_agent, tenant_no};
use super::super::habits::{HABITS, Template, choose_request};
use super::incidents::{self, Incident};
use super::rhythm;
use super::writer::Writer;
use crate::dice::Dice;
use crate::problem::Problem;
use leasehold_engine::command::{
    ConfirmTeardown, LeaseList, LoseNode, OpenLedger, PutQuota, RegisterAgent, ReleaseOne, RenewOne, Revoke,
    UpdateTenant,
};
use leasehold_engine::{Command, Lease, Phase, Request};
use leasehold_model::limits::LEASES_PER_RECORD_MAX;
use leasehold_model::{
    Identity, Instant, LeaseNo, LimitKind, NodeNo, Quanta, QuotaNo, Reason, Span, TenantSettingsChange,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Percentage of holders that crash, and of denied requests that are tried again.
const CRASHES: u64 = 2;
const TRIES_AGAIN: u64 = 40;
const MINUTE: u64 = 60_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// How long a lost node had sent nothing.
const SILENCE: Span = Span::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Arrive { tenant: usize },
    Request { tenant: usize },
    Renew { job: u64 },
    Leave { job: u64 },
    Ready { job: u64 },
    Confirm { node: NodeNo },
    Incident(Incident),
}

/// A workload that holds leases.
struct Job {
    identity: Identity,
    leases: Vec<(LeaseNo, Quanta)>,
    node: NodeNo,
    ttl: Span,
    leaves_at: Instant,
    /// The next activity report starts here.
    reported_to: Instant,
    /// Utilisation in percent.
    busy: u64,
}

pub(super) struct Week {
    writer: Writer,
    dice: Dice,
    to: Instant,
    due: BinaryHeap<Reverse<(Instant, Step)>>,
    jobs: BTreeMap<u64, Job>,
    next_job: u64,
    /// The number of the next lease; numbers are assigned in order.
    next_lease: LeaseNo,
    requests: u64,
    hung: Option<NodeNo>,
    lost: Option<NodeNo>,
}

impl Week {
    /// Creates the cluster, its tenants and its agents.
    pub(super) fn begin(
        writer: Writer,
        seed: u64,
        from: Instant,
        to: Instant,
        burst_ttl: Span,
    ) -> Result<Self, Problem> {
        let mut week = Self {
            writer,
            dice: Dice::new(seed ^ 0x0077_6565_6b00),
            to,
            due: BinaryHeap::new(),
            jobs: BTreeMap::new(),
            next_job: 0,
            next_lease: LeaseNo(0),
            requests: 0,
            hung: None,
            lost: None,
        };
        // The daemon posts the hours of the week when it starts.
        week.operate(Command::OpenLedger(OpenLedger { from: None }))?;
        for command in missing(week.writer.state(), burst_ttl) {
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
        week.due.extend(incidents::between(from, to).map(|(at, incident)| Reverse((at, Step::Incident(incident)))));
        Ok(week)
    }

    pub(super) fn now(&self) -> Instant {
        self.writer.now()
    }

    /// Runs the next step; returns false at the end of the week.
    pub(super) fn step(&mut self) -> Result<bool, Problem> {
        let Some(Reverse((at, step))) = self.due.pop().filter(|due| due.0.0 < self.to) else { return Ok(false) };
        self.writer.advance_to(at)?;
        match step {
            Step::Arrive { tenant } => {
                self.next_arrival(tenant);
                self.request(tenant)?;
            }
            Step::Request { tenant } => self.request(tenant)?,
            Step::Renew { job } => self.renew(job)?,
            Step::Leave { job } => self.leave(job)?,
            Step::Ready { job } => self.ready(job)?,
            Step::Confirm { node } => self.confirm(node)?,
            Step::Incident(incident) => self.handle(incident)?,
        }
        Ok(true)
    }

    /// Applies the timers that are due before the end.
    pub(super) fn advance_to_end(&mut self) -> Result<(), Problem> {
        self.writer.advance_to(self.to)
    }

    /// Detaches the agents, so that those of the running demo can register. Returns the number of records.
    pub(super) fn close(mut self) -> Result<u64, Problem> {
        for node in nodes_with_agent() {
            self.operate(Command::DetachAgent(node))?;
        }
        self.allow_evictions(true)?;
        self.writer.close()
    }

    /// There are no evictions in the history, because its simulated holders do not handle them.
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
        self.writer.decide(Identity::default(), command)
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

    fn request(&mut self, tenant: usize) -> Result<(), Problem> {
        let template = choose_request(tenant, &mut self.dice);
        let stays = self.dice.between(template.stayed_minutes.0, template.stayed_minutes.1);
        let ttl = Span((stays / 3).clamp(15, 120) * MINUTE);
        let identity = template.identity(tenant, &mut self.dice);
        let key = format!("week-{}", self.requests);
        self.requests += 1;
        let request = Request::once(identity.clone(), Command::Request(template.request(ttl)), key.as_bytes());
        self.writer.decide_request(request.expect("the key is short"))?;
        match self.granted(template) {
            Some(job) => self.settle(Job { identity, ttl, ..job }, Span(stays * MINUTE)),
            None if self.dice.percent(TRIES_AGAIN) => self.schedule_in((900, 3600), Step::Request { tenant }),
            None => {}
        }
        Ok(())
    }

    /// The leases of the last request, if it was granted.
    fn granted(&mut self, template: &Template) -> Option<Job> {
        let first = self.writer.state().lease(self.next_lease)?;
        let (node, now) = (first.node, self.now());
        let numbers = (first.number.0..).take(template.asks.len()).map(LeaseNo);
        let leases: Vec<_> = numbers.filter_map(|no| Some((no, self.writer.state().lease(no)?.quanta))).collect();
        assert_eq!(leases.len(), template.asks.len(), "a request is granted completely or not at all");
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
        let deadlines = job.leases.iter().filter_map(|(no, _)| Some(self.writer.state().lease(*no)?.expires_at));
        deadlines.min().unwrap_or(self.now())
    }

    /// Schedules the renewal at about half of the remaining time, with some jitter.
    fn next_renewal(&mut self, number: u64) {
        let left = self.deadline(&self.jobs[&number]).since(self.now()).0;
        let wait = Span(left * self.dice.between(45, 56) / 100);
        let at = self.now().saturating_add(wait);
        if at < self.jobs[&number].leaves_at {
            self.schedule(at, Step::Renew { job: number });
        }
    }

    /// The phase of a job's leases while they are held. All of them have the same phase.
    fn phase(&self, job: &Job) -> Option<Phase> {
        let first = job.leases.first().and_then(|(no, _)| self.writer.state().lease(*no));
        first.map(|lease| lease.phase).filter(|phase| phase.is_held())
    }

    fn renew(&mut self, number: u64) -> Result<(), Problem> {
        let Some(job) = self.jobs.get(&number) else { return Ok(()) };
        match self.phase(job) {
            Some(Phase::Active) => {}
            // The lease is being revoked: the holder saves its work, then reports ready.
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
        self.writer.decide(identity, Command::Renew(renewals))?;
        let now = self.now();
        let job = self.jobs.get_mut(&number).expect("it was found above");
        job.reported_to = now;
        if self.deadline(&self.jobs[&number]) > before {
            self.next_renewal(number);
            return Ok(());
        }
        // The lease was not extended because the burst is used up, so the holder releases it.
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
        self.writer.decide(job.identity.clone(), Command::Release(releases.collect()))?;
        self.schedule_confirmation(job.node);
        Ok(())
    }

    fn ready(&mut self, number: u64) -> Result<(), Problem> {
        let Some(job) = self.jobs.remove(&number) else { return Ok(()) };
        if self.phase(&job) == Some(Phase::Revoking) {
            let leases = job.leases.iter().map(|(no, _)| *no).collect();
            self.writer.decide(job.identity.clone(), Command::Ready(leases))?;
        }
        self.schedule_confirmation(job.node);
        Ok(())
    }

    fn schedule_confirmation(&mut self, node: NodeNo) {
        if has_agent(node) {
            self.schedule_in((12, 80), Step::Confirm { node });
        }
    }

    /// The agent confirms its teardowns, unless it hangs or its node is lost.
    fn confirm(&mut self, node: NodeNo) -> Result<(), Problem> {
        let state = self.writer.state();
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

    fn handle(&mut self, incident: Incident) -> Result<(), Problem> {
        match incident {
            Incident::Drain(node) => self.operate(Command::DrainNode(node.into())),
            Incident::Resume(node) => self.operate(Command::ResumeNode(node.into())),
            Incident::Hang => {
                let node = self.busiest();
                self.hung = Some(node);
                // A teardown has to become due while the agent hangs, so that it is fenced.
                let on_node =
                    self.writer.state().leases_on(node).into_iter().filter(|lease| lease.phase == Phase::Active);
                let smallest = on_node.min_by_key(|lease| (lease.quanta, lease.number)).map(|lease| lease.number);
                smallest.map_or(Ok(()), |lease| self.revoke(lease, Span::ZERO))
            }
            Incident::Recover => self.hung.take().map_or(Ok(()), |node| self.confirm(node)),
            Incident::Lose => {
                let node = self.busiest();
                // Its agent may have confirmed something since.
                let sign = self.writer.state().node(node).map_or(Instant(0), |node| node.last_sign);
                let last_seen = Instant(self.now().0 - SILENCE.0).max(sign);
                self.lost = Some(node);
                self.operate(Command::LoseNode(LoseNode { node, last_seen }))
            }
            Incident::Return => {
                let back = self.lost.take().map(Command::ReturnNode);
                back.map_or(Ok(()), |command| self.operate(command))
            }
            Incident::ClearFences => self.clear_fences(),
            Incident::Revoke { grace } => {
                let gangs = self.writer.state().leases().into_iter().filter(|lease| is_large_gang(lease));
                let victim = gangs.max_by_key(|lease| (lease.quanta, lease.number)).map(|lease| lease.number);
                victim.map_or(Ok(()), |lease| self.revoke(lease, grace))
            }
            Incident::Raise(quota) => self.raise(quota),
        }
    }

    /// Of the nodes with an agent, the one with the most leases.
    fn busiest(&self) -> NodeNo {
        let held = |node: &NodeNo| self.writer.state().leases_on(*node).len();
        nodes_with_agent().max_by_key(held).expect("some nodes have an agent")
    }

    fn revoke(&mut self, lease: LeaseNo, grace: Span) -> Result<(), Problem> {
        let job = self.jobs.iter().find(|(_, job)| job.leases.iter().any(|(no, _)| *no == lease));
        let holder = job.map(|(number, job)| (*number, job.node));
        let leases = LeaseList::from_slice(&[lease]);
        self.operate(Command::Revoke(Revoke { leases, reason: Reason::Operator, grace: Some(grace) }))?;
        let Some((number, node)) = holder else { return Ok(()) };
        if grace == Span::ZERO {
            self.jobs.remove(&number);
            self.schedule_confirmation(node);
        } else {
            // Most holders are ready before grace ends.
            self.schedule_in((60, grace.as_secs()), Step::Ready { job: number });
        }
        Ok(())
    }

    fn clear_fences(&mut self) -> Result<(), Problem> {
        let fenced = self.writer.state().leases().into_iter().filter(|lease| lease.phase == Phase::Fenced);
        let fenced: LeaseList = fenced.take(LEASES_PER_RECORD_MAX).map(|lease| lease.number).collect();
        if fenced.is_empty() { Ok(()) } else { self.operate(Command::Unfence(fenced.into())) }
    }

    /// Raises a quota by one GPU.
    fn raise(&mut self, number: QuotaNo) -> Result<(), Problem> {
        let Some(quota) = self.writer.state().quota(number) else { return Ok(()) };
        let limit = LimitKind::Hard { limit: quota.limit.limit() + SLICES };
        let put = PutQuota::new(Some(number), quota.scope.clone(), quota.measure, limit);
        self.operate(Command::PutQuota(put))
    }
}

fn is_large_gang(lease: &Lease) -> bool {
    lease.phase == Phase::Active && lease.class == H100 && lease.gang_len > 1 && lease.reported_to > lease.granted_at
}
