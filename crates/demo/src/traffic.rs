//! Simulated holders: they request leases, renew them with an activity report, release them, crash, repeat requests,
//! and react to revocations.
//!
//! One thread has many requests in flight. Each submission has a tag, by which its reply is recognised.

use super::activity::report;
use super::cluster::{SANDBOX, TENANTS, tenant_no};
use super::denial::explain;
use super::habits::{HABITS, choose_request};
use super::scene::{LOCK, Scene};
use crate::dice::Dice;
use leasehold_cell::{Replies, Reply, Sealed, Submission, Unsealed};
use leasehold_engine::command::{ReleaseOne, RenewOne};
use leasehold_engine::{Command, Lease, Phase, Refusal, Request, State};
use leasehold_model::body::Granted;
use leasehold_model::{Body, DenyCause, Identity, LeaseNo, Name, Quanta, Record, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Percentage of holders that crash, and of requests that are sent twice.
const CRASHES: u64 = 6;
const RETRIES: u64 = 3;
/// Leases of the generated history: the TTL with which they are renewed, and how long their holders stay.
const TTL_OF_PAST: Span = Span::from_secs(1800);
const PAST_STAYS_SECS: (u64, u64) = (30, 1800);

/// A scheduled action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Arrive { tenant: usize },
    Renew { job: u64 },
    Leave { job: u64 },
    Ready { job: u64 },
}

/// A request in flight.
enum Sent {
    Ask {
        job: Box<Job>,
        request: Box<Request>,
    },
    /// A request that was sent a second time with its key.
    Repeat,
    Renew {
        job: u64,
    },
    Leave,
}

/// A workload that holds leases, or is about to.
struct Job {
    tenant: usize,
    identity: Identity,
    leases: Vec<(LeaseNo, Quanta)>,
    ttl: Span,
    stays: Duration,
    /// When the last report was acknowledged; the next one covers the time since then.
    acknowledged_at: Instant,
    /// Utilisation in percent.
    busy: u64,
    crashes: bool,
}

/// Sends replies to the traffic thread, with the time of their arrival.
struct ReplySender(Sender<(u64, Reply, Instant)>);

impl Replies for ReplySender {
    fn put(&self, tag: u64, reply: Reply) {
        // At the end of the demo nobody receives it.
        let _ = self.0.send((tag, reply, Instant::now()));
    }
    fn wake(&self) {}
}

struct Traffic<'a> {
    scene: &'a Scene,
    dice: Dice,
    replies: Arc<ReplySender>,
    due: BinaryHeap<Reverse<(Instant, Step)>>,
    in_flight: BTreeMap<u64, (Instant, Sent)>,
    jobs: BTreeMap<u64, Job>,
    outbox: Vec<Submission>,
    next: u64,
    /// Part of the idempotency keys, so that runs do not share keys.
    epoch: u64,
}

pub(crate) fn run(scene: &Scene, seed: u64) {
    let (sender, replies) = channel();
    let mut traffic = Traffic {
        scene,
        dice: Dice::new(seed),
        replies: Arc::new(ReplySender(sender)),
        due: BinaryHeap::new(),
        in_flight: BTreeMap::new(),
        jobs: BTreeMap::new(),
        outbox: Vec::new(),
        next: 0,
        epoch: scene.cell.journal().epoch(),
    };
    traffic.take_over();
    for tenant in 0..TENANTS.len() {
        traffic.next_arrival(tenant, Instant::now());
    }
    while !scene.is_over() {
        traffic.receive(&replies);
        traffic.step();
    }
}

impl Traffic<'_> {
    /// Handles replies until an action is due.
    fn receive(&mut self, replies: &Receiver<(u64, Reply, Instant)>) {
        let now = Instant::now();
        let until_due = self.due.peek().map_or(Duration::from_millis(50), |due| due.0.0.saturating_duration_since(now));
        let mut reply = replies.recv_timeout(until_due.min(Duration::from_millis(50))).ok();
        while let Some((tag, answer, came)) = reply {
            self.handle(tag, answer, came);
            reply = replies.try_recv().ok();
        }
    }

    /// Runs the actions that are due and submits their requests.
    fn step(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((at, step))) = self.due.peek().copied().filter(|due| due.0.0 <= now) {
            self.due.pop();
            match step {
                Step::Arrive { tenant } => {
                    self.request(tenant);
                    self.next_arrival(tenant, at);
                }
                Step::Renew { job } => self.renew(job),
                Step::Leave { job } => self.leave(job),
                Step::Ready { job } => self.ready(job),
            }
        }
        self.scene.cell.submit(self.outbox.drain(..));
    }

    fn next_arrival(&mut self, tenant: usize, after: Instant) {
        let mean = HABITS[tenant].every_ms;
        let wait = self.scene.pace.ms(self.dice.between(mean / 4, mean * 7 / 4));
        self.due.push(Reverse((after + wait, Step::Arrive { tenant })));
    }

    fn send(&mut self, request: Request, sent: Sent) {
        let tag = self.next;
        self.next += 1;
        self.in_flight.insert(tag, (Instant::now(), sent));
        self.outbox.push(Submission { request, to: self.replies.clone(), tag });
    }

    fn request(&mut self, tenant: usize) {
        let template = choose_request(tenant, &mut self.dice);
        let pace = self.scene.pace;
        let identity = template.identity(tenant, &mut self.dice);
        let ttl = pace.span(self.dice.between(1500, 3000));
        let key = format!("demo-{}-{}", self.epoch, self.next);
        let request = Request::once(identity.clone(), Command::Request(template.request(ttl)), key.as_bytes());
        let request = request.expect("the key is short");
        let job = Box::new(Job {
            tenant,
            identity,
            leases: Vec::new(),
            ttl,
            stays: pace.ms(self.dice.between(template.stays_ms.0, template.stays_ms.1)),
            acknowledged_at: Instant::now(),
            busy: self.dice.between(15, 98),
            crashes: self.dice.percent(CRASHES),
        });
        self.send(request.clone(), Sent::Ask { job, request: Box::new(request) });
    }

    /// Continues the holders of the generated history or of an earlier run.
    fn take_over(&mut self) {
        let found = self.scene.cell.now().read(gangs_held);
        let now = Instant::now();
        for Held { tenant, identity, leases, left } in found {
            let (from, to) = PAST_STAYS_SECS;
            let stays = Duration::from_millis(self.dice.between(from * 1000, to * 1000));
            let busy = self.dice.between(15, 98);
            let job =
                Job { tenant, identity, leases, ttl: TTL_OF_PAST, stays, acknowledged_at: now, busy, crashes: false };
            self.schedule(job, left, now);
        }
    }

    fn renew(&mut self, number: u64) {
        let Some(job) = self.jobs.get(&number) else { return };
        let covered = job.unreported();
        let renewals = job.leases.iter().map(|(lease, quanta)| RenewOne {
            lease: *lease,
            ttl: job.ttl,
            activity: Some(report(*quanta, covered, job.busy)),
        });
        let request = Request::new(job.identity.clone(), Command::Renew(renewals.collect()));
        self.send(request, Sent::Renew { job: number });
    }

    fn leave(&mut self, number: u64) {
        let Some(job) = self.jobs.remove(&number) else { return };
        let covered = job.unreported();
        let releases = job
            .leases
            .iter()
            .map(|(lease, quanta)| ReleaseOne { lease: *lease, activity: Some(report(*quanta, covered, job.busy)) });
        self.send(Request::new(job.identity.clone(), Command::Release(releases.collect())), Sent::Leave);
    }

    /// Reports, before grace ends, that the holder has saved its work.
    fn ready(&mut self, number: u64) {
        let Some(job) = self.jobs.remove(&number) else { return };
        let leases = job.leases.iter().map(|(lease, _)| *lease).collect();
        self.scene.note("holder", format!("{} has written its checkpoint and is ready before grace ends", job.title()));
        self.send(Request::new(job.identity.clone(), Command::Ready(leases)), Sent::Leave);
    }

    fn handle(&mut self, tag: u64, reply: Reply, came: Instant) {
        let Some((sent_at, sent)) = self.in_flight.remove(&tag) else { return };
        let scene = self.scene;
        let mut tally = scene.tally.lock().expect(LOCK);
        match &reply {
            Ok(_) => {
                let took = came.saturating_duration_since(sent_at);
                tally.latencies.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            }
            Err(Unsealed::Refused(refusal)) => *tally.refused.entry(refusal.code()).or_default() += 1,
            Err(Unsealed::JournalFull) => *tally.refused.entry("journal_full").or_default() += 1,
            Err(Unsealed::Busy) => *tally.refused.entry("busy").or_default() += 1,
            Err(Unsealed::Archived { .. } | Unsealed::Stopped) => return,
        }
        match (sent, reply) {
            (Sent::Ask { job, request }, Ok(Sealed { records, repeated: false, .. })) => {
                if let Body::Granted(granted) = &records[0].body {
                    tally.granted[job.tenant] += 1;
                    drop(tally);
                    self.begin(*job, granted, came);
                    if self.dice.percent(RETRIES) {
                        self.send(*request, Sent::Repeat);
                    }
                } else if let Body::Denied(denied) = &records[0].body {
                    tally.denied[job.tenant] += 1;
                    let latest = &mut tally.denials[job.tenant];
                    // A quota makes a better example than a full cluster.
                    if latest.is_none() || !matches!(denied.cause, DenyCause::Capacity { .. }) {
                        let who = TENANTS[job.tenant].name;
                        *latest = Some(scene.cell.now().read(|state| explain(state, who, &denied.cause)));
                    }
                }
                // Otherwise victims are evicted first; it has become an allocation, which `gangs` handles.
            }
            (Sent::Repeat, Ok(Sealed { repeated: true, .. })) => tally.repeated += 1,
            (Sent::Renew { job }, Ok(Sealed { records, repeated: false, .. })) => {
                drop(tally);
                if let Some(held) = self.jobs.get_mut(&job) {
                    held.acknowledged_at = came;
                    self.due.push(Reverse((came + half(renewed_for(&records[0])), Step::Renew { job })));
                }
            }
            (Sent::Renew { job }, Err(Unsealed::Refused(Refusal::LeaseRevoking { .. }))) => {
                // The lease is being revoked: save the work, then report ready.
                self.due.push(Reverse((came + scene.pace.ms(300), Step::Ready { job })));
            }
            (Sent::Renew { job }, Err(Unsealed::Refused(Refusal::BurstOver { .. }))) => {
                // The lease cannot be extended, so the holder releases it.
                self.due.push(Reverse((came, Step::Leave { job })));
            }
            // The lease has ended, and the job with it.
            (Sent::Renew { job }, _) => {
                self.jobs.remove(&job);
            }
            (Sent::Ask { .. } | Sent::Repeat | Sent::Leave, _) => {}
        }
    }

    fn begin(&mut self, mut job: Job, granted: &Granted, came: Instant) {
        job.leases = (granted.first_lease.0..)
            .zip(&granted.members)
            .map(|(number, member)| (LeaseNo(number), member.quanta))
            .collect();
        job.acknowledged_at = came;
        if job.crashes {
            // The holder sends nothing more; its leases expire.
            return;
        }
        // The granted TTL can be shorter than the requested one, because of a burst.
        self.schedule(job, granted.ttl, came);
    }

    /// Schedules the renewal and the end of a job whose leases expire after `left`.
    fn schedule(&mut self, job: Job, left: Span, now: Instant) {
        let number = self.next;
        self.next += 1;
        self.due.push(Reverse((now + half(left), Step::Renew { job: number })));
        self.due.push(Reverse((now + job.stays, Step::Leave { job: number })));
        self.jobs.insert(number, job);
    }
}

impl Job {
    fn title(&self) -> String {
        let workload = self.identity.workload.as_ref().map_or("work", Name::as_str);
        format!("{}/{workload}", TENANTS[self.tenant].name)
    }
    fn unreported(&self) -> Span {
        Span(u64::try_from(self.acknowledged_at.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The leases of one holder.
struct Held {
    tenant: usize,
    identity: Identity,
    leases: Vec<(LeaseNo, Quanta)>,
    left: Span,
}

/// All active leases, by gang, except those of the user of the demo and those of allocations.
fn gangs_held(state: &State) -> Vec<Held> {
    let mut gangs: BTreeMap<LeaseNo, Vec<&Lease>> = BTreeMap::new();
    let is_simulated = |lease: &&Lease| lease.project != SANDBOX && lease.of.is_none();
    for lease in state.leases().into_iter().filter(is_simulated).filter(|lease| lease.phase == Phase::Active) {
        gangs.entry(lease.gang).or_default().push(lease);
    }
    let held = |gang: Vec<&Lease>| {
        let first = gang[0];
        let tenant = (0..TENANTS.len()).find(|tenant| tenant_no(*tenant) == first.tenant)?;
        let (project, user) = (Some(first.project), first.user);
        Some(Held {
            tenant,
            identity: Identity { tenant: Some(first.tenant), project, user, workload: None, token: None },
            leases: gang.iter().map(|lease| (lease.number, lease.quanta)).collect(),
            left: first.expires_at.since(state.last_stamp()),
        })
    };
    gangs.into_values().filter_map(held).collect()
}

/// The TTL of a renewal.
fn renewed_for(record: &Record) -> Span {
    let Body::Renewed(renewed) = &record.body else { return Span::ZERO };
    let deadlines = renewed.renewals.iter().map(|renewal| renewal.expires_at.since(record.stamp));
    deadlines.min().unwrap_or(Span::ZERO)
}

fn half(ttl: Span) -> Duration {
    Duration::from_nanos(ttl.0 / 2)
}
