//! The holders: they ask, renew with a report of what they did, give back, crash, retry, and heed a revocation.
//!
//! One thread, many requests under way: what is sent is a submission with a tag, what comes back is looked up by it.

use super::cluster::{TENANTS, name, project_no, tenant_no, user_no};
use super::denial::explain;
use super::habits::HABITS;
use super::scene::Scene;
use crate::dice::Dice;
use leasehold_cell::{Replies, Reply, Submission};
use leasehold_engine::command::{ReleaseOne, RenewOne, RequestLease};
use leasehold_engine::{Command, Refusal, Request};
use leasehold_model::body::Granted;
use leasehold_model::{Activity, Body, DenyCause, Identity, LeaseNo, Name, Quanta, Record, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Holders that die without a word, and requests that are sent twice, in a hundred.
const CRASHES: u64 = 6;
const RETRIES: u64 = 3;

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Arrive { tenant: usize },
    Renew { job: u64 },
    Leave { job: u64 },
    Ready { job: u64 },
}

/// What a reply will be about.
enum Sent {
    Ask {
        job: Box<Job>,
        request: Box<Request>,
    },
    /// The same request once more.
    Again,
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
    /// When the last report was answered: the next one covers the time from there on.
    heard_at: Instant,
    /// How much of what it holds it uses, in a hundred.
    busy: u64,
    crashes: bool,
}

/// Where the replies go: to the traffic's own thread, with the time they came.
struct Mail(Sender<(u64, Reply, Instant)>);

impl Replies for Mail {
    fn put(&self, tag: u64, reply: Reply) {
        // If nobody listens any more, nobody wants it.
        let _ = self.0.send((tag, reply, Instant::now()));
    }
    fn wake(&self) {}
}

struct Traffic<'a> {
    scene: &'a Scene,
    dice: Dice,
    mail: Arc<Mail>,
    due: BinaryHeap<Reverse<(Instant, Step)>>,
    under_way: BTreeMap<u64, (Instant, Sent)>,
    jobs: BTreeMap<u64, Job>,
    outbox: Vec<Submission>,
    next: u64,
    /// Keys belong to a run: the process that wrote the last run's keys is not asked about them.
    epoch: u64,
}

pub(crate) fn run(scene: &Scene, seed: u64) {
    let (sender, replies) = channel();
    let mut traffic = Traffic {
        scene,
        dice: Dice(seed),
        mail: Arc::new(Mail(sender)),
        due: BinaryHeap::new(),
        under_way: BTreeMap::new(),
        jobs: BTreeMap::new(),
        outbox: Vec::new(),
        next: 0,
        epoch: scene.cell.journal().epoch(),
    };
    for tenant in 0..TENANTS.len() {
        traffic.next_arrival(tenant, Instant::now());
    }
    while !scene.is_over() {
        traffic.listen(&replies);
        traffic.step();
    }
}

impl Traffic<'_> {
    /// Waits for replies until something is due, and takes those that are there.
    fn listen(&mut self, replies: &Receiver<(u64, Reply, Instant)>) {
        let now = Instant::now();
        let until_due = self.due.peek().map_or(Duration::from_millis(50), |due| due.0.0.saturating_duration_since(now));
        let mut reply = replies.recv_timeout(until_due.min(Duration::from_millis(50))).ok();
        while let Some((tag, answer, came)) = reply {
            self.hear(tag, answer, came);
            reply = replies.try_recv().ok();
        }
    }

    /// Does what is due and sends what came of it.
    fn step(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((at, step))) = self.due.peek().copied().filter(|due| due.0.0 <= now) {
            self.due.pop();
            match step {
                Step::Arrive { tenant } => {
                    self.ask(tenant);
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
        let mean = 1000 / HABITS[tenant].0;
        let wait = self.scene.pace.ms(self.dice.between(mean / 4, mean * 7 / 4));
        self.due.push(Reverse((after + wait, Step::Arrive { tenant })));
    }

    fn send(&mut self, request: Request, sent: Sent) {
        let tag = self.next;
        self.next += 1;
        self.under_way.insert(tag, (Instant::now(), sent));
        self.outbox.push(Submission { request, to: self.mail.clone(), tag });
    }

    fn ask(&mut self, tenant: usize) {
        let wishes = HABITS[tenant].1;
        let mut drawn = self.dice.below(wishes.iter().map(|wish| wish.weight).sum());
        let chosen = wishes.iter().find(|wish| {
            let hit = drawn < wish.weight;
            drawn = drawn.saturating_sub(wish.weight);
            hit
        });
        let wish = chosen.expect("the draw lies below the sum of weights");
        let pace = self.scene.pace;
        let (project, user) = (self.dice.below(2), self.dice.below(2));
        let at = |n: u64| usize::try_from(n).expect("0 or 1");
        let identity = Identity {
            tenant: Some(tenant_no(tenant)),
            project: Some(project_no(tenant, at(project))),
            user: Some(user_no(tenant, at(user))),
            workload: Some(name(wish.workload)),
            token: None,
        };
        let ttl = pace.span(self.dice.between(1500, 3000));
        let ask = RequestLease {
            pool: Some(wish.pool),
            asks: wish.asks.iter().map(|(class, quanta)| (*class, Quanta(*quanta))).collect(),
            priority: wish.priority,
            ..RequestLease::of(wish.asks[0].0, Quanta(wish.asks[0].1), ttl)
        };
        let key = format!("demo-{}-{}", self.epoch, self.next);
        let request = Request::once(identity.clone(), Command::Request(ask), key.as_bytes()).expect("the key is short");
        let job = Box::new(Job {
            tenant,
            identity,
            leases: Vec::new(),
            ttl,
            stays: pace.ms(self.dice.between(wish.stays.0, wish.stays.1)),
            heard_at: Instant::now(),
            busy: self.dice.between(15, 98),
            crashes: self.dice.percent(CRASHES),
        });
        self.send(request.clone(), Sent::Ask { job, request: Box::new(request) });
    }

    fn renew(&mut self, number: u64) {
        let Some(job) = self.jobs.get(&number) else { return };
        let covered = job.heard_at.elapsed();
        let renewals = job.leases.iter().map(|(lease, quanta)| RenewOne {
            lease: *lease,
            ttl: job.ttl,
            activity: Some(activity(*quanta, covered, job.busy)),
        });
        let request = Request::new(job.identity.clone(), Command::Renew(renewals.collect()));
        self.send(request, Sent::Renew { job: number });
    }

    fn leave(&mut self, number: u64) {
        let Some(job) = self.jobs.remove(&number) else { return };
        let covered = job.heard_at.elapsed();
        let releases = job
            .leases
            .iter()
            .map(|(lease, quanta)| ReleaseOne { lease: *lease, activity: Some(activity(*quanta, covered, job.busy)) });
        self.send(Request::new(job.identity.clone(), Command::Release(releases.collect())), Sent::Leave);
    }

    /// The holder has checkpointed and says so before grace ends.
    fn ready(&mut self, number: u64) {
        let Some(job) = self.jobs.remove(&number) else { return };
        let leases = job.leases.iter().map(|(lease, _)| *lease).collect();
        self.scene.note("holder", format!("{} has checkpointed and is ready before grace ends", job.title()));
        self.send(Request::new(job.identity.clone(), Command::Ready(leases)), Sent::Leave);
    }

    fn hear(&mut self, tag: u64, reply: Reply, came: Instant) {
        let Some((sent_at, sent)) = self.under_way.remove(&tag) else { return };
        let scene = self.scene;
        let mut tally = scene.tally.lock().expect("no one panics with the tally");
        match &reply {
            Reply::Sealed { .. } | Reply::Repeated { .. } => {
                let took = came.saturating_duration_since(sent_at);
                tally.latencies.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            }
            Reply::Refused(refusal) => *tally.refused.entry(refusal.code()).or_default() += 1,
            Reply::JournalFull => *tally.refused.entry("journal_full").or_default() += 1,
            Reply::Busy => *tally.refused.entry("busy").or_default() += 1,
            Reply::Archived { .. } | Reply::Stopped => return,
        }
        match (sent, reply) {
            (Sent::Ask { job, request }, Reply::Sealed { records, .. }) => match &records[0].body {
                Body::Granted(granted) => {
                    tally.granted[job.tenant] += 1;
                    drop(tally);
                    self.begin(*job, granted, came);
                    if self.dice.percent(RETRIES) {
                        self.send(*request, Sent::Again);
                    }
                }
                Body::Denied(denied) => {
                    tally.denied[job.tenant] += 1;
                    let latest = &mut tally.denials[job.tenant];
                    // A limit says more than a full house.
                    if latest.is_none() || !matches!(denied.cause, DenyCause::Capacity { .. }) {
                        let who = TENANTS[job.tenant].name;
                        *latest = Some(scene.cell.now().read(|state| explain(state, who, &denied.cause)));
                    }
                }
                _ => {}
            },
            (Sent::Again, Reply::Repeated { .. }) => tally.repeated += 1,
            (Sent::Renew { job }, Reply::Sealed { records, .. }) => {
                drop(tally);
                if let Some(held) = self.jobs.get_mut(&job) {
                    held.heard_at = came;
                    self.due.push(Reverse((came + half(renewed_for(&records[0])), Step::Renew { job })));
                }
            }
            (Sent::Renew { job }, Reply::Refused(Refusal::LeaseRevoking { .. })) => {
                // Word of the revocation: checkpoint, then say that we are ready.
                self.due.push(Reverse((came + scene.pace.ms(300), Step::Ready { job })));
            }
            (Sent::Renew { job }, Reply::Refused(Refusal::BurstOver { .. })) => {
                // It cannot stay longer than it may already, so it goes while it can.
                self.due.push(Reverse((came, Step::Leave { job })));
            }
            // Its lease is gone: so is the job.
            (Sent::Renew { job }, _) => {
                self.jobs.remove(&job);
            }
            _ => {}
        }
    }

    fn begin(&mut self, mut job: Job, granted: &Granted, came: Instant) {
        job.leases = (granted.first_lease.0..)
            .zip(&granted.members)
            .map(|(number, member)| (LeaseNo(number), member.quanta))
            .collect();
        job.heard_at = came;
        if job.crashes {
            // It never speaks again; its leases end at their deadline.
            return;
        }
        let number = self.next;
        self.next += 1;
        // By what was granted, not by what was asked for: burst may have shortened it.
        self.due.push(Reverse((came + half(granted.ttl), Step::Renew { job: number })));
        self.due.push(Reverse((came + job.stays, Step::Leave { job: number })));
        self.jobs.insert(number, job);
    }
}

impl Job {
    fn title(&self) -> String {
        let workload = self.identity.workload.as_ref().map_or("work", Name::as_str);
        format!("{}/{workload}", TENANTS[self.tenant].name)
    }
}

/// For how long a renewal holds.
fn renewed_for(record: &Record) -> Span {
    let Body::Renewed(renewed) = &record.body else { return Span::ZERO };
    let deadlines = renewed.renewals.iter().map(|renewal| renewal.expires_at.since(record.stamp));
    deadlines.min().unwrap_or(Span::ZERO)
}

fn half(ttl: Span) -> Duration {
    Duration::from_nanos(ttl.0 / 2)
}

/// What a holder says it did with `quanta` over the time `covered`.
fn activity(quanta: Quanta, covered: Duration, busy: u64) -> Activity {
    // The holder's clock is coarser than the engine's: microseconds, rounded down.
    let covered = u64::try_from(covered.as_micros()).unwrap_or(0).max(1) * 1000;
    let share = |of: u64, percent: u64| of / 100_000 * percent * 1000;
    let active = share(covered, (busy + 10).min(100));
    let waiting = share(covered, (100 - busy) / 3);
    Activity {
        covered: Span(covered),
        busy: u128::from(quanta.0) * u128::from(share(covered, busy)),
        active: Span(active),
        waiting: [Span::ZERO, Span::ZERO, Span(waiting), Span(waiting / 2), Span::ZERO],
    }
}
