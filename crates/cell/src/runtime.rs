//! Runs the steps of [`Core`] on threads: decider, writer and publisher; and in the background the checkpointer, the
//! allocator and the snapshotter.

use crate::background::{Allocation, allocator, checkpointer, snapshotter};
use crate::clock::{Clock, Stamper};
use crate::core::{Core, Pending, commit, publish};
use crate::inbox::{Inbox, Reply};
use crate::notice::{ClockJump, Notice};
use crate::now::Now;
use crate::open::{Opened, StartError, StartOptions};
use crate::queue::{Queue, Submission, Ticket};
use crate::stats::Stats;
use crate::watch::Watch;
use leasehold_engine::{Command, Request};
use leasehold_journal::Journal;
use leasehold_model::{Identity, Instant, NodeNo};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Options of a running cell.
#[derive(Clone)]
pub struct CellOptions {
    pub start: StartOptions,
    /// How many requests may wait. Further ones are answered `Busy`.
    pub requests_max: usize,
    /// New records are covered by a checkpoint within about this time.
    pub checkpoint_every: Duration,
    /// The number of records between two snapshots.
    pub snapshot_every: u64,
    /// Called once, with the reason, when the cell must stop: after a disk failure, or if the journal contradicts this
    /// program. The daemon ends the process here.
    pub on_failure: Arc<dyn Fn(&str) + Send + Sync>,
    /// Called with what operators should know. It runs on the threads of the cell and must be quick.
    pub on_notice: Arc<dyn Fn(Notice) + Send + Sync>,
}

impl CellOptions {
    pub fn new(start: StartOptions) -> Self {
        Self {
            start,
            requests_max: 100_000,
            checkpoint_every: Duration::from_millis(50),
            snapshot_every: 1_000_000,
            on_failure: Arc::new(|_| {}),
            on_notice: Arc::new(|_| {}),
        }
    }
}

/// What the threads share.
pub(crate) struct Shared {
    queue: Queue,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    now: Arc<Now>,
    pub(crate) stats: Stats,
    /// Background threads wait for this between two rounds.
    background: std::sync::Condvar,
    background_lock: Mutex<()>,
    stopping: AtomicBool,
    failed: Mutex<Option<String>>,
    on_failure: Arc<dyn Fn(&str) + Send + Sync>,
    pub(crate) on_notice: Arc<dyn Fn(Notice) + Send + Sync>,
    /// How stamps are made, for readers.
    stamper: Stamper,
    /// Bytes below which the journal takes no commands.
    pub(crate) headroom_bytes: u64,
    pub(crate) allocation: Mutex<Allocation>,
}

impl Shared {
    /// Stops the cell because of a failure. Only the first reason is kept.
    pub(crate) fn fail(&self, why: &str) {
        let first = {
            let mut failed = self.failed.lock().expect("no thread panics while it holds the reason");
            let first = failed.is_none();
            failed.get_or_insert_with(|| why.to_owned());
            first
        };
        self.stop();
        if first {
            (self.on_failure)(why);
        }
    }

    fn stop(&self) {
        self.queue.lock().stopping = true;
        self.stopping.store(true, Ordering::SeqCst);
        self.queue.notify();
        self.background.notify_all();
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.lock().expect("no thread panics while it holds the reason").is_some()
    }

    fn clock_jumped(&self, jump: ClockJump) {
        let stats = &self.stats;
        let count = if jump.is_forward() { &stats.clock_jumps_forward } else { &stats.clock_jumps_back };
        count.fetch_add(1, Ordering::Relaxed);
        (self.on_notice)(Notice::ClockJumped(jump));
    }

    /// Waits for `at_most` or until the cell stops. Returns whether to continue.
    pub(crate) fn rest(&self, at_most: Duration) -> bool {
        let guard = self.background_lock.lock().expect("no thread panics while it holds the lock");
        if self.stopping.load(Ordering::SeqCst) {
            return false;
        }
        drop(self.background.wait_timeout(guard, at_most).expect("no thread panics while it holds the lock"));
        !self.stopping.load(Ordering::SeqCst)
    }
}

/// Stops the cell if its thread panics, so that no caller waits forever and no step runs without the others.
struct Guard {
    name: &'static str,
    shared: Arc<Shared>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.fail(&format!("the {} panicked", self.name));
            self.shared.queue.abandon();
        }
    }
}

/// A running cell.
pub struct Cell {
    shared: Arc<Shared>,
    /// The threads of the pipeline, then those in the background. They are joined in this order.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

type Batchful = Pending<Ticket>;

impl Cell {
    /// Opens the journal's state and starts the threads.
    pub fn start(
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        options: CellOptions,
    ) -> Result<(Self, Opened), StartError> {
        let (core, now, opened) = Core::open(Arc::clone(&journal), Arc::clone(&clock), &options.start)?;
        let shared = Arc::new(Shared {
            queue: Queue::new(options.requests_max),
            journal,
            clock,
            now: Arc::new(now),
            stats: Stats::default(),
            background: std::sync::Condvar::new(),
            background_lock: Mutex::new(()),
            stopping: AtomicBool::new(false),
            failed: Mutex::new(None),
            on_failure: options.on_failure,
            on_notice: options.on_notice,
            stamper: core.stamper().clone(),
            headroom_bytes: options.start.headroom_bytes,
            allocation: Mutex::default(),
        });
        // One batch is being synced while another one is being decided, so the channel between holds none.
        let (to_writer, from_decider) = sync_channel::<Batchful>(1);
        let (to_publisher, from_writer) = sync_channel::<Batchful>(4);
        let (give_back, reuse) = sync_channel::<Batchful>(8);
        let run = |name: &'static str, body: Box<dyn FnOnce() + Send>| {
            let guard = Guard { name, shared: Arc::clone(&shared) };
            let thread = std::thread::Builder::new().name(name.to_owned());
            let guarded = move || {
                let _guard = guard;
                body();
            };
            thread.spawn(guarded).expect("the system can start a thread")
        };
        let on = || Arc::clone(&shared);
        let mut threads = vec![
            run("decider", {
                let shared = on();
                Box::new(move || decider(&shared, core, &to_writer, &reuse))
            }),
            run("writer", {
                let shared = on();
                Box::new(move || writer(&shared, &from_decider, &to_publisher))
            }),
            run("publisher", {
                let shared = on();
                Box::new(move || publisher(&shared, &from_writer, &give_back))
            }),
        ];
        threads.extend([
            run("checkpointer", {
                let (shared, every) = (on(), options.checkpoint_every);
                Box::new(move || checkpointer(&shared, every))
            }),
            run("allocator", {
                let shared = on();
                Box::new(move || allocator(&shared))
            }),
            run("snapshotter", {
                let (shared, every) = (on(), options.snapshot_every);
                Box::new(move || snapshotter(&shared, every))
            }),
        ]);
        Ok((Self { shared, threads: Mutex::new(threads) }, opened))
    }

    /// The view for readers.
    pub fn now(&self) -> &Arc<Now> {
        &self.shared.now
    }
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.shared.journal
    }
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }
    /// The number of requests that wait to be decided.
    pub fn queued(&self) -> usize {
        self.shared.queue.lock().requests.len()
    }
    /// The present instant by the clock of the engine. Stamps and deadlines follow it; unlike the wall clock it never goes
    /// back.
    pub fn time(&self) -> Instant {
        self.shared.stamper.at(&*self.shared.clock)
    }
    /// By how much the wall clock is ahead of the clock of the engine, in nanoseconds; negative if it is behind.
    pub fn clock_offset_ns(&self) -> i128 {
        i128::from(self.shared.clock.wall().0) - i128::from(self.time().0)
    }
    /// Why commands are answered `journal_full`, if they are.
    pub fn full(&self) -> Option<String> {
        self.shared.full()
    }
    /// Why the cell stopped, if it had to.
    pub fn failure(&self) -> Option<String> {
        self.shared.failed.lock().expect("no thread panics while it holds the reason").clone()
    }

    /// Submits requests. Each reply goes to the receiver of its submission.
    pub fn submit(&self, submissions: impl IntoIterator<Item = Submission>) {
        self.shared.queue.submit(submissions.into_iter());
    }

    /// Sends one request and waits for its reply.
    pub fn call(&self, request: Request) -> Reply {
        let inbox = Arc::new(Inbox::new());
        self.submit([Submission { request, to: inbox.clone(), tag: 0 }]);
        let mut replies = VecDeque::new();
        inbox.take(&mut replies);
        replies.pop_front().expect("take waits for a reply").1
    }

    /// Sends a command as the operator and waits for its reply.
    pub fn operate(&self, command: Command) -> Reply {
        self.call(Request::new(Identity::default(), command))
    }

    /// Reports a heartbeat of a node.
    pub fn node_seen(&self, node: NodeNo) {
        self.shared.queue.lock().seen.push(node);
        self.shared.queue.notify();
    }

    /// Shuts down cleanly: accepted requests are answered, and the journal is closed with a last checkpoint.
    pub fn stop(&self) -> Result<(), String> {
        self.join();
        let now = Instant(self.shared.clock.wall().0);
        match self.failure() {
            Some(why) => Err(why),
            None => self.shared.journal.close(now).map_err(|error| error.to_string()),
        }
    }

    fn join(&self) {
        self.shared.stop();
        let threads =
            std::mem::take(&mut *self.threads.lock().expect("no thread panics while it holds the list of threads"));
        for thread in threads {
            // A thread that panicked has reported it; the others still end in order.
            let _ = thread.join();
        }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.join();
    }
}

/// The longest sleep of the decider. With a simulated clock, a timer can be noticed this late.
const TICK: Duration = Duration::from_millis(100);

fn decider(shared: &Shared, mut core: Core, to_writer: &SyncSender<Batchful>, reuse: &Receiver<Batchful>) {
    let mut requests: VecDeque<(Ticket, Request)> = VecDeque::new();
    let mut pending = Batchful::new();
    let mut watch = Watch::default();
    loop {
        let (in_flight, stopping) = {
            let mut waiting = shared.queue.lock();
            loop {
                let writer_wants = waiting.writer_idle && !pending.is_empty();
                let can_decide = !core.is_full(&pending);
                let work = waiting.has_work() || !requests.is_empty() || !waiting.seen.is_empty();
                if writer_wants || waiting.stopping || (can_decide && work) {
                    break;
                }
                if core.notice_clock() {
                    break;
                }
                let silent = watch.next_due(core.engine().state().settings().node_timeout);
                let due = silent.map_or(core.next_due(), |silent| silent.min(core.next_due()));
                let until_due = due.since(core.stamp());
                // If the journal has no room, timers and the loss of nodes wait, and so does the decider.
                if can_decide && until_due.0 == 0 && core.has_room(&pending, waiting.in_flight_bytes) {
                    break;
                }
                let rest = if until_due.0 == 0 { TICK } else { Duration::from_nanos(until_due.0).min(TICK) };
                waiting = shared.queue.wait(waiting, rest);
            }
            if requests.is_empty() {
                std::mem::swap(&mut requests, &mut waiting.requests);
            }
            let now = core.stamp();
            let seen = std::mem::take(&mut waiting.seen);
            let (in_flight, stopping) = (waiting.in_flight_bytes, waiting.stopping);
            drop(waiting);
            note_seen(seen, now, &mut watch, &core, &mut requests);
            (in_flight, stopping)
        };
        // Without room the loss could not be recorded, and the node would no longer be watched.
        if core.has_room(&pending, in_flight) {
            for lose in watch.take_silent(core.stamp(), core.engine().state()) {
                requests.push_front((Ticket::of_nobody(), Request::new(Identity::default(), Command::LoseNode(lose))));
            }
        }
        core.decide(&mut requests, &mut pending, in_flight);
        core.tick(&mut pending, in_flight);
        for jump in core.take_jumps() {
            shared.clock_jumped(jump);
        }
        if !pending.is_empty() {
            let idle = shared.queue.lock().writer_idle;
            if idle {
                let fresh = reuse.try_recv().unwrap_or_default();
                let full = std::mem::replace(&mut pending, fresh);
                if !hand_over(shared, full, to_writer) {
                    shared.queue.abandon();
                    return;
                }
            }
        }
        let nothing_left = requests.is_empty() && pending.is_empty() && shared.queue.lock().requests.is_empty();
        if stopping && (nothing_left || shared.has_failed()) {
            // Dropping their tickets answers the callers that still wait.
            shared.queue.abandon();
            return;
        }
    }
}

/// Records heartbeats of nodes. A lost node with a new heartbeat has returned.
fn note_seen(
    seen: Vec<NodeNo>,
    now: Instant,
    watch: &mut Watch,
    core: &Core,
    requests: &mut VecDeque<(Ticket, Request)>,
) {
    for node in seen {
        watch.seen(node, now);
        if core.engine().state().node(node).is_some_and(|node| node.lost) {
            requests.push_front((Ticket::of_nobody(), Request::new(Identity::default(), Command::ReturnNode(node))));
        }
    }
}

/// Passes the batch to the writer. Returns false if the writer has ended.
fn hand_over(shared: &Shared, batch: Batchful, to_writer: &SyncSender<Batchful>) -> bool {
    {
        let mut waiting = shared.queue.lock();
        waiting.writer_idle = false;
        waiting.in_flight_bytes = batch.bytes();
    }
    to_writer.try_send(batch).is_ok()
}

fn writer(shared: &Shared, from_decider: &Receiver<Batchful>, to_publisher: &SyncSender<Batchful>) {
    for mut batch in from_decider {
        let began = std::time::Instant::now();
        match commit(&*shared.journal, &mut batch) {
            Ok(_) => shared.stats.appended(batch.records(), began, shared.journal.last_sync()),
            Err(error) => {
                shared.fail(&format!("the journal could not append a batch: {error}"));
                return;
            }
        }
        {
            let mut waiting = shared.queue.lock();
            waiting.writer_idle = true;
            waiting.in_flight_bytes = 0;
        }
        shared.queue.notify();
        if to_publisher.send(batch).is_err() {
            return;
        }
    }
}

fn publisher(shared: &Shared, from_writer: &Receiver<Batchful>, give_back: &SyncSender<Batchful>) {
    let mut to_wake: Vec<Arc<dyn crate::inbox::Replies>> = Vec::new();
    for mut batch in from_writer {
        let began = std::time::Instant::now();
        let shown = publish(&*shared.journal, &shared.now, &mut batch, |ticket, reply| {
            to_wake.extend(ticket.answer(reply));
        });
        // Each caller is woken once, even if it got several replies.
        to_wake.sort_unstable_by_key(|to| Arc::as_ptr(to).addr());
        to_wake.dedup_by(|a, b| Arc::ptr_eq(a, b));
        to_wake.drain(..).for_each(|to| to.wake());
        shared.stats.publish_ns.add_time(began.elapsed());
        if let Err(error) = shown {
            shared.fail(&error.to_string());
            return;
        }
        // If the decider does not need the batch, it is dropped.
        let _ = give_back.try_send(batch);
    }
}
