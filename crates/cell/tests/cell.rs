//! The running cell: what callers and readers may rely on.

use leasehold_cell::{
    Cell, CellOptions, Clock, ClockJump, Inbox, ManualClock, Notice, Observer, Reply, Sealed, StartError, StartOptions,
    Submission, Unsealed, take_snapshot,
};
use leasehold_engine::command::{PutClass, PutNode, PutPool, PutProject, PutTenant, ReleaseOne, RequestLease};
use leasehold_engine::{Command, Refusal, Request, Settings, State};
use leasehold_journal::{FileJournal, Head, Journal, Keys, MemoryJournal, Options, RealDisk};
use leasehold_model::body::{NodeLost, PerPriority};
use leasehold_model::{
    Batch, Body, ClassNo, ClassSpec, Identity, Instant, LeaseNo, Name, NodeNo, PoolNo, ProjectNo, Quanta, Record,
    ResourceKind, Span, Strategy, TeardownMode, TenantNo, TenantSettings,
};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

const START: Instant = Instant::from_secs(1_767_225_600);

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

fn keys() -> Arc<Keys> {
    Arc::new(Keys::new("cell.example", &[5; 32]).expect("a valid origin"))
}

fn options() -> CellOptions {
    CellOptions::new(StartOptions::new(name("cell test"), keys().public_keys()[0]))
}

fn memory() -> Arc<dyn Journal> {
    let journal = MemoryJournal::new(keys());
    journal.prepare().expect("there is room");
    Arc::new(journal)
}

fn start(journal: Arc<dyn Journal>, clock: &Arc<ManualClock>) -> Cell {
    Cell::start(journal, clock.clone(), options()).expect("the cell starts").0
}

/// One class, one pool, one node of four cores, one tenant with a project.
fn settle(cell: &Cell, teardown: TeardownMode) {
    let spec =
        ClassSpec { name: name("cpu"), kind: ResourceKind::Cpu, tier: None, quanta_per_unit: 1000, premium: false };
    let world = [
        Command::PutClass(PutClass { class: None, spec }),
        Command::PutPool(PutPool {
            pool: None,
            name: name("main"),
            strategy: Strategy::Spread,
            ttl_max: PerPriority::default(),
            lifetime_max: PerPriority::default(),
            grace: None,
            weights: None,
            queue: None,
        }),
        Command::PutNode(PutNode {
            node: None,
            name: name("node-0"),
            pool: PoolNo(0),
            rack: None,
            zone: None,
            labels: vec![],
            teardown,
            capacity: vec![(ClassNo(0), Quanta(4000))],
        }),
        Command::PutTenant(PutTenant { tenant: None, settings: TenantSettings::named(name("physics")) }),
        Command::PutProject(PutProject { project: None, tenant: TenantNo(0), name: name("atlas") }),
    ];
    for command in world {
        let reply = cell.operate(command);
        assert!(matches!(reply, Ok(Sealed { repeated: false, .. })), "{reply:?}");
    }
}

fn physics() -> Identity {
    Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() }
}

fn ask(quanta: u64, ttl_secs: u64) -> Command {
    Command::Request(RequestLease::of(ClassNo(0), Quanta(quanta), Span::from_secs(ttl_secs)))
}

fn granted(reply: &Reply) -> LeaseNo {
    match reply.as_ref().map(|sealed| &sealed.first().body) {
        Ok(Body::Granted(granted)) => granted.first_lease,
        other => panic!("not a grant: {other:?}"),
    }
}

fn file(folder: &Path, segment_bytes: u64, clock: &ManualClock) -> Arc<dyn Journal> {
    let options = Options { segment_bytes, index_bytes: 4096 };
    let disk = Arc::new(RealDisk::new(folder));
    let journal =
        match FileJournal::open(disk.clone(), options, keys(), leasehold_journal::conformance::local(), clock.wall()) {
            Ok((journal, _)) => journal,
            Err(_) => FileJournal::create(disk, options, keys(), leasehold_journal::conformance::local(), clock.wall())
                .expect("a journal can be made"),
        };
    Arc::new(journal)
}

#[test]
fn a_caller_reads_what_it_wrote_and_the_journal_has_it() {
    let clock = Arc::new(ManualClock::at(START));
    let journal = memory();
    let cell = start(journal.clone(), &clock);
    settle(&cell, TeardownMode::Immediate);
    let reply = cell.call(Request::new(physics(), ask(1000, 60)));
    let lease = granted(&reply);
    assert!(cell.now().read(|state| state.lease(lease).is_some()), "visible when answered");
    assert!(journal.head().size > reply.expect("sealed").sequence(), "durable when answered");
    let denied = cell.call(Request::new(physics(), ask(4000, 60)));
    assert!(denied.as_ref().is_ok_and(|sealed| matches!(sealed.first().body, Body::Denied(_))), "{denied:?}");
    let refused = cell.call(Request::new(physics(), ask(0, 60)));
    assert_eq!(refused, Err(Unsealed::Refused(Refusal::ZeroQuantity { class: ClassNo(0) })));
    cell.stop().expect("a clean stop");
}

#[test]
fn the_same_key_gets_the_same_answer_also_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(ManualClock::at(START));
    let request = Request::once(physics(), ask(1000, 60), b"order-1").expect("a valid key");
    let first = {
        let cell = start(file(folder.path(), 4 << 20, &clock), &clock);
        settle(&cell, TeardownMode::Immediate);
        let first = cell.call(request.clone()).expect("sealed").records;
        let again = cell.call(request.clone());
        assert_eq!(again, Ok(Sealed::again(first.clone())));
        cell.stop().expect("a clean stop");
        first
    };
    let cell = start(file(folder.path(), 4 << 20, &clock), &clock);
    assert_eq!(cell.call(request), Ok(Sealed::again(first)));
    let other = Request::once(physics(), ask(2000, 60), b"order-1").expect("a valid key");
    assert!(matches!(cell.call(other), Err(Unsealed::Refused(Refusal::IdempotencyMismatch { .. }))));
}

#[test]
fn a_restart_goes_on_from_the_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(ManualClock::at(START));
    let digest = {
        let journal = file(folder.path(), 4 << 20, &clock);
        let cell = start(journal.clone(), &clock);
        settle(&cell, TeardownMode::Immediate);
        for _ in 0..20 {
            cell.call(Request::new(physics(), ask(100, 600))).expect("it is granted");
        }
        journal.checkpoint(clock.wall()).expect("what was appended reads back");
        assert!(take_snapshot(&*journal).expect("a snapshot can be taken").is_some());
        assert!(take_snapshot(&*journal).expect("nothing is wrong").is_none(), "nothing new since");
        cell.call(Request::new(physics(), ask(100, 600))).expect("it is granted");
        cell.stop().expect("a clean stop");
        let mut state = State::new();
        leasehold_cell::replay(&*journal, &mut state, Head::EMPTY).expect("the journal replays");
        state.digest()
    };
    let journal = file(folder.path(), 4 << 20, &clock);
    let (cell, opened) = Cell::start(journal.clone(), clock, options()).expect("the cell starts");
    assert!(opened.snapshot_size > 0 && opened.replayed <= 3, "{opened:?}");
    assert_eq!(cell.now().read(State::live_leases), 21);
    drop(cell);
    // The restart added a second `started` record to the fold.
    let mut state = State::new();
    leasehold_cell::replay(&*journal, &mut state, Head::EMPTY).expect("the journal replays");
    assert_ne!(state.digest(), digest, "a restart is sealed");
    assert_eq!(state.epoch(), 2);
}

#[test]
fn a_deadline_is_kept_by_the_clock_alone() {
    let clock = Arc::new(ManualClock::at(START));
    let cell = start(memory(), &clock);
    settle(&cell, TeardownMode::Immediate);
    let lease = granted(&cell.call(Request::new(physics(), ask(1000, 60))));
    clock.advance(Span::from_secs(61));
    let one = ReleaseOne { lease, activity: None };
    let release = Request::new(physics(), Command::Release(smallvec::smallvec![one]));
    let at = Instant(START.0 + Span::from_secs(60).0);
    assert_eq!(
        cell.call(release),
        Err(Unsealed::Refused(Refusal::LeaseExpired { lease, at })),
        "granted for 60 s: ends at 60 s"
    );
}

#[test]
fn a_silent_node_is_lost_as_of_its_last_heartbeat_and_returns_with_its_next() {
    let clock = Arc::new(ManualClock::at(START));
    let cell = start(memory(), &clock);
    settle(&cell, TeardownMode::Confirmed);
    let lease = granted(&cell.call(Request::new(physics(), ask(1000, 3600))));
    clock.advance(Span::from_secs(10));
    cell.node_seen(NodeNo(0));
    // A reply to any command shows that the heartbeat before it was processed.
    cell.call(Request::new(physics(), ask(1, 60))).expect("it is granted");
    clock.advance(Span::from_secs(61));
    while !cell.now().read(|state| state.node(NodeNo(0)).is_some_and(|node| node.lost)) {
        cell.call(Request::new(physics(), ask(1, 60))).expect("it is granted");
    }
    let ended = cell.now().read(|state| state.lease(lease).expect("not torn down yet").ended_at);
    assert_eq!(ended, Instant(START.0 + Span::from_secs(10).0), "billed up to when the node was last seen");
    cell.node_seen(NodeNo(0));
    while cell.now().read(|state| state.node(NodeNo(0)).is_some_and(|node| node.lost)) {
        cell.call(Request::new(physics(), ask(1, 60))).expect("it is granted");
    }
}

/// Sends every published record to a test.
struct Publications(Mutex<mpsc::Sender<Record>>);

impl Observer for Publications {
    fn record(&self, record: &Record) {
        // The test may have ended before the cell.
        let _ = self.0.lock().expect("no test panics while it holds the sender").send(record.clone());
    }
    fn batch_done(&self) {}
}

#[test]
fn a_silent_node_is_noticed_within_a_second_of_the_timeout_without_other_work() {
    let clock = Arc::new(ManualClock::at(START));
    let cell = start(memory(), &clock);
    settle(&cell, TeardownMode::Immediate);
    let settings = cell.now().read(|state| state.settings().clone());
    let short = Settings { node_timeout: Span::from_secs(5), ..settings };
    cell.node_seen(NodeNo(0));
    // A reply to any command shows that the heartbeat before it was processed.
    cell.operate(Command::ChangeSettings(short)).expect("valid settings");
    let (to_test, records) = mpsc::channel();
    assert!(cell.now().observe(Box::new(Publications(Mutex::new(to_test)))).is_ok());
    // No request follows, and the next heartbeat record is due only after a minute.
    clock.advance(Span::from_secs(6));
    let lost = records.recv_timeout(std::time::Duration::from_secs(60)).expect("the loss is recorded");
    assert_eq!(lost.body, Body::NodeLost(NodeLost { node: NodeNo(0), last_seen: START }));
    assert_eq!(lost.stamp, Instant(START.0 + Span::from_secs(6).0));
}

#[test]
fn a_full_journal_is_reported_and_not_fatal() {
    let clock = Arc::new(ManualClock::at(START));
    // Room for two segments, and a headroom that uses up all of it.
    let mut options = options();
    let journal = memory();
    options.start.headroom_bytes = journal.room() - 2000;
    let (cell, _) = Cell::start(journal, clock, options).expect("the cell starts");
    let mut replies = Vec::new();
    for i in 0..40 {
        let spec = ClassSpec {
            name: name(&format!("class-{i}")),
            kind: ResourceKind::Cpu,
            tier: None,
            quanta_per_unit: 1,
            premium: false,
        };
        replies.push(cell.operate(Command::PutClass(PutClass { class: None, spec })));
    }
    assert!(matches!(replies[0], Ok(Sealed { repeated: false, .. })), "{:?}", replies[0]);
    let full = replies.iter().filter(|reply| **reply == Err(Unsealed::JournalFull)).count();
    assert!(full > 0 && cell.failure().is_none(), "the journal filled up without a failure");
    let sealed = replies.len() - full;
    assert_eq!(
        cell.now().read(|state| state.classes().count()),
        sealed,
        "reads still work and show the accepted classes"
    );
}

#[test]
fn jumps_of_the_wall_clock_are_noticed_with_their_size_and_change_no_time() {
    let clock = Arc::new(ManualClock::at(START));
    let (send, notices) = mpsc::channel();
    let mut options = options();
    options.on_notice = Arc::new(move |notice| send.send(notice).expect("the test waits"));
    let (cell, _) = Cell::start(memory(), clock.clone(), options).expect("the cell starts");
    for (from, to) in [(0u64, 3600), (3600, 60), (60, 59)] {
        let at = |seconds: u64| START.saturating_add(Span::from_secs(seconds));
        clock.set_wall(at(to));
        assert_eq!(cell.time(), START);
        if from.abs_diff(to) > 1 {
            let notice = notices.recv_timeout(std::time::Duration::from_secs(20)).expect("a notice");
            assert_eq!(notice, Notice::ClockJumped(ClockJump { wall: at(to), expected: at(from) }));
        }
    }
    clock.advance(Span::from_secs(5));
    assert_eq!(cell.time(), START.saturating_add(Span::from_secs(5)));
    cell.stop().expect("it stops");
    assert!(notices.try_recv().is_err(), "a second is no jump");
    let jumps = cell.now().published().kinds().find(|(kind, _)| *kind == "journal.clock_jumped");
    assert_eq!(jumps, Some(("journal.clock_jumped", 2)));
}

#[test]
fn too_many_requests_are_turned_away_and_the_rest_is_answered_in_order() {
    let clock = Arc::new(ManualClock::at(START));
    let mut options = options();
    options.requests_max = 50;
    let (cell, _) = Cell::start(memory(), clock, options).expect("the cell starts");
    let inbox = Arc::new(Inbox::new());
    let heartbeat = || Request::new(Identity::default(), Command::Heartbeat(leasehold_engine::command::Nothing {}));
    cell.submit((0..1000).map(|tag| Submission { request: heartbeat(), to: inbox.clone(), tag }));
    let mut replies = VecDeque::new();
    while replies.len() < 1000 {
        inbox.take(&mut replies);
    }
    let (busy, sealed): (Vec<_>, Vec<_>) = replies.into_iter().partition(|(_, reply)| *reply == Err(Unsealed::Busy));
    assert_eq!(busy.len(), 950);
    let tags: Vec<u64> = sealed.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(tags, (0..50).collect::<Vec<u64>>(), "those accepted were answered in order");
}

#[test]
fn a_clock_that_went_back_is_refused_unless_the_operator_accepts_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(ManualClock::at(START));
    start(file(folder.path(), 4 << 20, &clock), &clock).stop().expect("a clean stop");
    for (wall, fits) in [
        (Instant(START.0 - 1), false),
        (START, true),
        (Instant(START.0 + Span::from_secs(7 * 86_400).0), true),
        (Instant(START.0 + 20 * Span::from_secs(86_400).0), false),
    ] {
        clock.set_wall(wall);
        let folder_copy = tempfile::tempdir().expect("a folder");
        copy(folder.path(), folder_copy.path());
        let tried = Cell::start(file(folder_copy.path(), 4 << 20, &clock), clock.clone(), options());
        match tried {
            Ok(_) => assert!(fits, "{wall} was accepted"),
            Err(error) => {
                assert!(!fits && matches!(error, StartError::Clock { .. }), "{wall}: {error}");
                let mut accepting = options();
                accepting.start.accept_clock = true;
                let (cell, _) = Cell::start(file(folder_copy.path(), 4 << 20, &clock), clock.clone(), accepting)
                    .expect("it starts with accept_clock");
                let sealed = cell.journal().record(cell.now().read(State::size) - 1).expect("it can be read");
                let record = sealed.expect("it is there").decode().expect("it decodes");
                let Body::Started(started) = record.body else { panic!("not a start: {record:?}") };
                assert_eq!(
                    started.clock_accepted.map(|accepted| accepted.wall_clock),
                    Some(wall),
                    "and that is sealed"
                );
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            std::fs::create_dir(&target).expect("a folder can be made");
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}

/// A batch that raises somebody's capacity, appended by somebody without the directory's secret after a clean stop.
#[test]
fn a_forged_tail_is_neither_folded_nor_signed() {
    let clock = Arc::new(ManualClock::at(START));
    let folder = tempfile::tempdir().expect("a directory");
    let cell = start(file(folder.path(), 4 << 20, &clock), &clock);
    settle(&cell, TeardownMode::Immediate);
    let head = cell.journal().head();
    cell.stop().expect("it stops");
    let closed = leasehold_journal::OpenError::code;
    let mut forged = Batch::new(head.size);
    let mut gift = Record::new(head.size, START, leasehold_model::body::TenantDeleted { tenant: TenantNo(0) });
    gift.stamp = clock.wall();
    gift.effective_at = gift.stamp;
    forged.push(&gift);
    forged.seal(&head.hash, &*keys()).expect("nothing to sign");
    let segment = folder.path().join("journal/00000001.seg");
    let mut bytes = std::fs::read(&segment).expect("the segment");
    bytes.extend_from_slice(forged.bytes());
    std::fs::write(&segment, bytes).expect("written");

    let disk = Arc::new(RealDisk::new(folder.path()));
    let layout = Options { segment_bytes: 4 << 20, index_bytes: 4096 };
    let local = leasehold_journal::conformance::local();
    let refused = FileJournal::open(disk.clone(), layout, keys(), local.clone(), clock.wall());
    assert_eq!(refused.err().as_ref().map(closed), Some("journal_tail_unproved"));
    let local = leasehold_journal::Local { tail: leasehold_journal::UnprovedTail::Cut, ..local };
    let (journal, _) = FileJournal::open(disk, layout, keys(), local, clock.wall()).expect("it is cut");
    let cell = start(Arc::new(journal), &clock);
    assert!(cell.now().read(|state| state.tenant(TenantNo(0)).is_some()));
    let sealed = |sequence| cell.journal().record(sequence).expect("readable").expect("a record").decode();
    let resolved = sealed(head.size).expect("it decodes");
    let Body::TailResolved(tail) = resolved.body else { panic!("not what was done: {resolved:?}") };
    assert_eq!((tail.action, tail.records), (leasehold_model::body::TailAction::Cut, 1));
    assert!(matches!(sealed(head.size + 1).expect("it decodes").body, Body::Started(_)));
}

#[test]
fn a_stopped_journal_stops_the_cell_and_reports_why_once() {
    let clock = Arc::new(ManualClock::at(START));
    let journal = memory();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut options = options();
    let list = told.clone();
    options.on_failure = Arc::new(move |why| list.lock().expect("a list").push(why.to_owned()));
    let (cell, _) = Cell::start(journal.clone(), clock.clone(), options).expect("the cell starts");
    settle(&cell, TeardownMode::Immediate);
    // Closing the journal has the same effect as a disk failure: every later append fails.
    journal.close(clock.wall()).expect("it closes");
    let reply = cell.call(Request::new(physics(), ask(1000, 60)));
    assert!(matches!(reply, Err(Unsealed::Stopped | Unsealed::JournalFull)), "{reply:?}");
    if reply == Err(Unsealed::Stopped) {
        assert_eq!(told.lock().expect("a list").len(), 1);
        assert!(cell.failure().is_some());
        assert_eq!(cell.call(Request::new(physics(), ask(1000, 60))), Err(Unsealed::Stopped), "and it stays stopped");
        assert!(cell.stop().is_err());
    }
}

/// A clock that makes the decider thread panic once the trap is set.
struct Trap {
    clock: ManualClock,
    set: AtomicBool,
}

impl Trap {
    fn spring(&self) {
        let decides = std::thread::current().name() == Some("decider");
        assert!(!(decides && self.set.load(Ordering::SeqCst)), "the trap was set");
    }
}

impl Clock for Trap {
    fn wall(&self) -> Instant {
        self.spring();
        self.clock.wall()
    }
    fn monotonic(&self) -> Span {
        self.spring();
        self.clock.monotonic()
    }
}

/// Regression: requests that waited when a thread of the cell panicked were never answered.
#[test]
fn a_thread_that_panics_leaves_no_caller_waiting() {
    let trap = Arc::new(Trap { clock: ManualClock::at(START), set: AtomicBool::new(false) });
    let (cell, _) = Cell::start(memory(), trap.clone(), options()).expect("the cell starts");
    settle(&cell, TeardownMode::Immediate);
    let inbox = Arc::new(Inbox::new());
    trap.set.store(true, Ordering::SeqCst);
    let submission = |tag| Submission { request: Request::new(physics(), ask(1, 60)), to: inbox.clone(), tag };
    (0..10).for_each(|tag| cell.submit((0..10).map(|n| submission(10 * tag + n))));
    let mut replies = VecDeque::new();
    while replies.len() < 100 {
        inbox.take(&mut replies);
    }
    // Requests that were decided before the panic may have been sealed.
    assert!(replies.iter().any(|(_, reply)| *reply == Err(Unsealed::Stopped)));
    assert!(
        replies.iter().all(|(_, reply)| matches!(reply, Err(Unsealed::Stopped) | Ok(Sealed { repeated: false, .. }))),
        "{replies:?}"
    );
    let mut tags: Vec<u64> = replies.iter().map(|(tag, _)| *tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..100).collect::<Vec<u64>>(), "each is answered once");
    assert_eq!(cell.stop(), Err("the decider panicked".to_owned()));
}
