//! The service with a scripted transport. Time is tokio's, paused: it moves when every task waits.

use crate::source::{Memory, START, Script, TestClock, answered, memory, spec};
use leasehold_deliver::{
    DeliverError, Deliveries, Limits, OnOverflow, Opened, Outcome, Parts, Place, SinkId, SinkStatus, Store, Which,
};
use leasehold_journal::{MacKey, Secret};
use leasehold_model::Instant;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn key() -> MacKey {
    Secret::new([1; 32]).books().clone()
}

struct World {
    source: Arc<Memory>,
    script: Arc<Script>,
    deliveries: Deliveries,
    disabled: Arc<Mutex<Vec<SinkId>>>,
}

const ONE: SinkId = SinkId(1);

fn start(path: &Path, source: &Arc<Memory>, script: &Arc<Script>, limits: Limits) -> World {
    let (store, opened) = Store::open(path, &key()).expect("opened");
    let disabled: Arc<Mutex<Vec<SinkId>>> = Arc::default();
    let list = Arc::clone(&disabled);
    let deliveries = Deliveries::start(Parts {
        source: Arc::clone(source) as _,
        transport: Arc::clone(script) as _,
        store,
        opened,
        clock: Arc::new(TestClock(tokio::time::Instant::now())),
        limits,
        origin: "leasehold://test".to_owned(),
        on_disabled: Arc::new(move |id| list.lock().expect("sound").push(id)),
        runtime: tokio::runtime::Handle::current(),
    });
    World { source: Arc::clone(source), script: Arc::clone(script), deliveries, disabled }
}

impl World {
    fn status(&self) -> SinkStatus {
        self.deliveries.status().into_iter().next().expect("a sink")
    }

    fn seal(&self, count: usize, keys: usize) {
        (0..count).for_each(|number| self.source.seal(&[&format!("alloc-{}", number % keys)]));
        self.deliveries.wake();
    }

    async fn until(&self, what: impl Fn(&SinkStatus) -> bool) {
        for _ in 0..100_000 {
            if what(&self.status()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            // Threads that read are not part of tokio's time.
            tokio::task::yield_now().await;
        }
        panic!("it never came to that: {:?}", self.status());
    }

    async fn drained(&self) {
        let head = self.source.records.lock().expect("sound").len() as u64;
        self.until(|status| status.lag_events == 0 && status.cursor == Place::start_of(head)).await;
    }

    fn received(&self) -> BTreeSet<String> {
        self.script.received.lock().expect("sound").iter().cloned().collect()
    }
}

fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("deliveries.redb");
    (folder, path)
}

fn at(sequence: u64) -> Instant {
    Instant::from_secs(START + sequence)
}

#[tokio::test(start_paused = true)]
async fn events_are_delivered_and_progress_survives_a_stop() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    world.seal(3_000, 50);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.drained().await;
    // New records, after the task had nothing to do.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let sealed = tokio::time::Instant::now();
    world.seal(10, 3);
    world.drained().await;
    assert!(sealed.elapsed() < Duration::from_millis(100), "it was woken");
    assert_eq!((world.received().len(), *script.requests.lock().expect("sound")), (3_010, 3_010));
    assert_eq!(world.deliveries.attempts(ONE).expect("known").len(), 100);
    world.deliveries.stop().await;
    drop(world);
    let world = start(&path, &source, &script, Limits::default());
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    let status = world.status();
    assert!(status.last_success.is_some() && status.last_error.is_none(), "it is known to be well: {status:?}");
    world.seal(1, 1);
    world.drained().await;
    assert_eq!(*script.requests.lock().expect("sound"), 3_011, "nothing is sent twice after a clean stop");
    assert_eq!(world.status().counters.delivered, 3_011);
    assert_eq!(world.status().restarted, None);
}

#[tokio::test(start_paused = true)]
async fn a_kill_repeats_at_most_what_was_delivered_since_the_last_commit() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.seal(500, 50);
    world.drained().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    std::fs::copy(&path, path.with_extension("copy")).expect("copied");
    world.seal(500, 50);
    world.drained().await;
    world.deliveries.stop().await;
    drop(world);
    // As if the process had been killed after the first commit.
    std::fs::rename(path.with_extension("copy"), &path).expect("moved");
    let world = start(&path, &source, &script, Limits::default());
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.drained().await;
    assert_eq!((world.received().len(), *script.requests.lock().expect("sound")), (1_000, 1_500));
}

#[tokio::test(start_paused = true)]
async fn without_its_file_a_sink_says_so_and_begins_where_it_was_created() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    (0..20).for_each(|_| source.seal(&["a"]));
    let mut created = spec(1, "https://a/");
    created.created_at_sequence = 5;
    let world = start(&path, &source, &script, Limits::default());
    world.deliveries.put(created.clone()).expect("added");
    world.drained().await;
    assert_eq!(world.received().len(), 15);
    world.deliveries.stop().await;
    drop(world);
    std::fs::write(&path, b"not a database, but long enough to be looked at").expect("written");
    let world = start(&path, &source, &script, Limits::default());
    world.deliveries.put(created.clone()).expect("added");
    world.drained().await;
    assert_eq!(*script.requests.lock().expect("sound"), 30);
    assert!(world.status().restarted.is_some_and(|why| why.contains("no file")));
    // A new sink is not one that lost its progress.
    let mut new = spec(2, "https://b/");
    new.created_at_sequence = 19;
    world.deliveries.put(new).expect("added");
    assert_eq!(world.deliveries.status()[1].restarted, None);
}

#[tokio::test(start_paused = true)]
async fn gone_is_reported_and_the_sink_goes_on_when_it_is_enabled_again() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    *script.otherwise.lock().expect("sound") = Some(answered(410));
    world.seal(20, 5);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.until(|status| !status.enabled).await;
    assert_eq!(*world.disabled.lock().expect("sound"), [ONE]);
    assert_eq!(world.deliveries.replay(ONE, 0, |_| {}).await, Err(DeliverError::Disabled));
    *script.otherwise.lock().expect("sound") = None;
    let mut off = spec(1, "https://a/");
    off.enabled = false;
    world.deliveries.put(off).expect("changed");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(world.received().is_empty() && !world.status().enabled);
    assert_eq!(world.status().lag_events, 20);
    world.deliveries.put(spec(1, "https://a/")).expect("changed");
    world.drained().await;
    assert_eq!(world.received().len(), 20);
    world.deliveries.remove(ONE);
    assert!(world.deliveries.status().is_empty());
    assert_eq!(world.deliveries.attempts(ONE), Err(DeliverError::UnknownSink(ONE)));
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_listed_and_sent_again() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    for sequence in [3, 50, 700] {
        script.by_id.lock().expect("sound").insert(format!("evt_{sequence}_0"), 404);
    }
    world.seal(1_000, 20);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.until(|status| status.lag_events == 0 && status.dead_letters == 3).await;
    // A change of the sink loses nothing that was not written yet.
    world.deliveries.put(spec(1, "https://b/")).expect("changed");
    let letters = world.deliveries.dead_letters(ONE, Place::start_of(4), 10).expect("listed");
    assert_eq!(letters.iter().map(|letter| letter.id.as_str()).collect::<Vec<_>>(), ["evt_50_0", "evt_700_0"]);
    let missing = world.deliveries.retry(ONE, Which::One("evt_4_0".to_owned()), |_| {}).await;
    assert_eq!(missing, Err(DeliverError::NoDeadLetter("evt_4_0".to_owned())));
    // Still refused: it stays a dead letter.
    let report = world.deliveries.retry(ONE, Which::One("evt_3_0".to_owned()), |_| {}).await.expect("sent");
    assert_eq!((report.sent, report.delivered, report.dead), (1, 0, 1));
    script.by_id.lock().expect("sound").clear();
    let report = world.deliveries.retry(ONE, Which::One("evt_3_0".to_owned()), |_| {}).await.expect("sent");
    assert_eq!((report.sent, report.delivered, report.dead), (1, 1, 0));
    let report = world.deliveries.retry(ONE, Which::All, |_| {}).await.expect("sent");
    assert_eq!((report.sent, report.delivered, report.dead), (2, 2, 0));
    assert_eq!(world.received().len(), 1_000);
    assert_eq!(world.deliveries.retry(ONE, Which::All, |_| {}).await.expect("sent").sent, 0);
    assert!(world.deliveries.dead_letters(ONE, Place::default(), 10).expect("listed").is_empty());
}

#[tokio::test(start_paused = true)]
async fn replay_sends_everything_again_and_keeps_the_cursor() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    world.seal(2_000, 20);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.drained().await;
    let mut steps = Vec::new();
    let report = world.deliveries.replay(ONE, 500, |so_far| steps.push(so_far.delivered)).await.expect("sent");
    assert_eq!((report.sent, report.delivered, steps.last()), (1_500, 1_500, Some(&1_500)));
    // Progress is told as events come to an end, not page by page.
    assert!(steps.is_sorted() && steps.iter().any(|so_far| *so_far < 500), "{steps:?}");
    assert_eq!(world.deliveries.replayable(ONE, 500).await, Ok(1_500));
    assert_eq!((world.status().cursor, *script.requests.lock().expect("sound")), (Place::start_of(2_000), 3_500));
}

#[tokio::test(start_paused = true)]
async fn reconcile_sends_what_was_dropped_and_dead_and_nothing_twice() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let limits =
        Limits { buffer_size: 200, disk_buffer_max_events: 500, on_overflow: OnOverflow::Drop, ..Limits::default() };
    let world = start(&path, &source, &script, limits);
    script.by_id.lock().expect("sound").insert("evt_2900_0".to_owned(), 422);
    *script.otherwise.lock().expect("sound") = Some(Outcome::Failed("refused".to_owned()));
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    for _ in 0..30 {
        world.seal(100, 20);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    world.until(|status| status.lag_events == 500).await;
    let status = world.status();
    assert_eq!((status.counters.dropped, status.is_over_threshold, status.is_memory_high), (2_500, false, true));
    *script.otherwise.lock().expect("sound") = None;
    world.drained().await;
    assert_eq!((world.received().len(), world.status().dead_letters), (499, 1));
    script.by_id.lock().expect("sound").clear();

    let plan = world.deliveries.plan(ONE, at(0), at(3_000)).await.expect("planned");
    assert_eq!((plan.due, plan.acknowledged, plan.pending, plan.dead, plan.dropped), (3_000, 499, 0, 1, 2_500));
    // A part first, which begins and ends in the middle of what was dropped.
    let plan = world.deliveries.plan(ONE, at(100), at(700)).await.expect("planned");
    assert_eq!((plan.due, plan.acknowledged, plan.to_send()), (600, 0, 600));
    let report = world.deliveries.reconcile(ONE, at(100), at(700), |_| {}).await.expect("sent");
    assert_eq!((report.sent, report.delivered), (600, 600));
    assert_eq!(world.deliveries.reconcile(ONE, at(100), at(700), |_| {}).await.expect("sent").sent, 0);
    assert_eq!(world.status().counters.dropped_open, 1_900);
    // Then the rest; also after a restart.
    world.deliveries.stop().await;
    drop(world);
    let world = start(&path, &source, &script, Limits::default());
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    let report = world.deliveries.reconcile(ONE, at(0), at(9_000), |_| {}).await.expect("sent");
    assert_eq!((report.sent, report.delivered), (1_901, 1_901));
    assert_eq!(world.received().len(), 3_000);
    assert_eq!(world.deliveries.reconcile(ONE, at(0), at(9_000), |_| {}).await.expect("sent").sent, 0);
    let plan = world.deliveries.plan(ONE, at(0), at(9_000)).await.expect("planned");
    assert_eq!((plan.due, plan.acknowledged, plan.to_send()), (3_000, 3_000, 0));
    assert_eq!((world.status().counters.dropped, world.status().counters.dropped_open), (2_500, 0));
}

#[tokio::test(start_paused = true)]
async fn a_plan_tells_what_is_pending() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits { buffer_size: 100, ..Limits::default() });
    world.seal(300, 10);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.drained().await;
    *script.otherwise.lock().expect("sound") = Some(Outcome::Failed("refused".to_owned()));
    world.seal(700, 10);
    world.until(|status| status.in_memory_events == 100).await;
    let plan = world.deliveries.plan(ONE, at(0), at(5_000)).await.expect("planned");
    assert_eq!((plan.due, plan.acknowledged, plan.pending, plan.to_send()), (1_000, 300, 700, 0));
    let plan = world.deliveries.plan(ONE, at(290), at(310)).await.expect("planned");
    assert_eq!((plan.due, plan.acknowledged, plan.pending), (20, 10, 10));
    let status = world.status();
    assert_eq!((status.lag_events, status.lag_records, status.on_disk_events), (700, 700, 600));
}

#[tokio::test(start_paused = true)]
async fn an_operator_moves_the_cursor_and_nothing_is_skipped_in_silence() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    *script.otherwise.lock().expect("sound") = Some(Outcome::Failed("refused".to_owned()));
    world.seal(1_000, 10);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.deliveries.restart_at(ONE, 900).await.expect("moved");
    *script.otherwise.lock().expect("sound") = None;
    world.drained().await;
    assert_eq!((world.received().len(), world.status().counters.dropped), (100, 900));
    world.deliveries.reconcile(ONE, at(0), at(2_000), |_| {}).await.expect("sent");
    assert_eq!(world.received().len(), 1_000);
    world.deliveries.restart_at(ONE, 990).await.expect("moved");
    world.drained().await;
    assert_eq!(script.received.lock().expect("sound").len(), 1_010);
    assert_eq!(world.deliveries.reconcile(ONE, at(0), at(2_000), |_| {}).await.expect("sent").sent, 0);
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_cannot_be_read_is_tried_again() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    *source.fails.lock().expect("sound") = true;
    world.seal(10, 2);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.until(|status| status.source_error.is_some()).await;
    *source.fails.lock().expect("sound") = false;
    world.drained().await;
    assert_eq!((world.received().len(), world.status().source_error), (10, None));
}

#[tokio::test(start_paused = true)]
async fn a_test_event_is_sent_once_and_sinks_have_a_limit() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    *script.otherwise.lock().expect("sound") = Some(answered(500));
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    let attempt = world.deliveries.test_event(ONE).await.expect("sent");
    assert_eq!((attempt.status, attempt.kind.as_str()), (Some(500), "leasehold.test"));
    assert_eq!(*script.requests.lock().expect("sound"), 1);
    assert_eq!(world.deliveries.attempts(ONE).expect("known"), [attempt]);
    for id in 2..=1_000 {
        let mut off = spec(id, "https://a/");
        off.enabled = false;
        world.deliveries.put(off).expect("added");
    }
    assert_eq!(world.deliveries.put(spec(1_001, "https://a/")), Err(DeliverError::TooManySinks));
    assert_eq!(Store::in_memory(&key()).map(|_| Opened::New), Ok(Opened::New));
}

/// The thread that publishes records counts an event after it is durable, so it may be read and delivered before. Then
/// it is not behind, and nobody looks again and again.
#[tokio::test(start_paused = true)]
async fn an_event_that_is_counted_after_it_was_delivered_is_not_behind() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.drained().await;
    source.miscounted.store(-3, Ordering::SeqCst);
    world.seal(5, 5);
    world.until(|_| script.received.lock().expect("sound").len() == 5).await;
    source.miscounted.store(0, Ordering::SeqCst);
    world.deliveries.wake();
    world.until(|status| status.lag_events == 0).await;
    let before = source.looks.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let looks = source.looks.load(Ordering::SeqCst) - before;
    assert!(looks < 100, "{looks} looks in a minute in which nothing happened");
}

/// Events that are counted, and turn out not to be due, do not add up to a lag that drops others.
#[tokio::test(start_paused = true)]
async fn what_is_counted_too_often_does_not_add_up() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let limits = Limits { disk_buffer_max_events: 50, on_overflow: OnOverflow::Drop, ..Limits::default() };
    let world = start(&path, &source, &script, limits);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.drained().await;
    for _ in 0..20 {
        source.miscounted.fetch_add(10, Ordering::SeqCst);
        world.seal(10, 5);
        world.drained().await;
    }
    assert_eq!((world.status().counters.dropped, world.received().len()), (0, 200));
}

/// Records are deleted while a webhook is disabled: enabled again, it says which, goes on after them, and sends the rest.
/// A job says what it could not read, and sends it once it is brought back.
#[tokio::test(start_paused = true)]
async fn a_sink_goes_on_after_records_that_are_gone() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    let world = start(&path, &source, &script, Limits::default());
    script.by_id.lock().expect("sound").insert("evt_3_0".to_owned(), 400);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.seal(10, 5);
    world.drained().await;
    let mut off = spec(1, "https://a/");
    off.enabled = false;
    world.deliveries.put(off).expect("changed");
    world.seal(90, 5);
    world.until(|status| status.oldest == Some(at(10)) && status.lag_events == 90).await;
    source.begins.store(60, Ordering::SeqCst);
    world.deliveries.put(spec(1, "https://a/")).expect("enabled");
    world.drained().await;
    let status = world.status();
    assert_eq!((status.lost_records, status.source_error), (vec![(10, 60)], None));
    assert_eq!((world.received().len(), status.counters.dropped_open), (49, 1));

    script.by_id.lock().expect("sound").clear();
    let none = world.deliveries.retry(ONE, Which::All, |_| {}).await.expect("it ends");
    assert_eq!((none.sent, none.unreadable), (0, vec![(3, 4)]));
    let replay = world.deliveries.replay(ONE, 5, |_| {}).await.expect("it ends");
    assert_eq!((replay.delivered, replay.unreadable), (40, vec![(5, 60)]));
    let all = (at(0), at(100));
    assert_eq!(world.deliveries.plan(ONE, all.0, all.1).await.expect("counted").pending, 0);
    source.begins.store(0, Ordering::SeqCst);
    let plan = world.deliveries.plan(ONE, all.0, all.1).await.expect("counted");
    assert_eq!((plan.due, plan.acknowledged, plan.dead, plan.dropped), (100, 49, 1, 50));
    let missing = world.deliveries.differences(ONE, all, 1_000).await.expect("read");
    assert_eq!((missing.len(), missing[0].id.as_str(), missing[1].id.as_str()), (51, "evt_3_0", "evt_10_0"));
    assert_eq!((missing[0].set_aside.as_deref(), &missing[1].set_aside), (Some("the endpoint answered 400"), &None));
    let back = world.deliveries.reconcile(ONE, all.0, all.1, |_| {}).await.expect("sent");
    assert_eq!((back.delivered, back.unreadable), (51, vec![]));
    let status = world.status();
    assert_eq!((status.lost_records, status.counters.dropped_open, world.received().len()), (vec![], 0, 100));
}

/// Nothing is dropped because of events that turn out not to be due, however many of them have not been read.
#[tokio::test(start_paused = true)]
async fn only_what_was_counted_in_the_journal_is_dropped() {
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    *script.otherwise.lock().expect("sound") = Some(answered(500));
    let limits =
        Limits { buffer_size: 10, disk_buffer_max_events: 50, on_overflow: OnOverflow::Drop, ..Limits::default() };
    let world = start(&path, &source, &script, limits);
    world.deliveries.put(spec(1, "https://a/")).expect("added");
    world.drained().await;
    source.miscounted.store(1_000, Ordering::SeqCst);
    world.seal(40, 40);
    world.until(|status| status.in_memory_events == 10 && status.lag_events == 40).await;
    assert_eq!(world.status().counters.dropped, 0);
    world.seal(30, 30);
    world.until(|status| status.counters.dropped > 0).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((world.status().counters.dropped, world.status().lag_events), (20, 50));
}

/// A thousand sinks with a backlog need about as much memory as one may have, not a thousand times as much.
#[tokio::test(start_paused = true)]
async fn many_sinks_share_the_memory() {
    use leasehold_deliver::limits::{MEMORY_BYTES, SHARE_BYTES_MIN};
    let (_folder, path) = folder();
    let (source, script) = (memory(), Arc::<Script>::default());
    *script.otherwise.lock().expect("sound") = Some(answered(500));
    let world = start(&path, &source, &script, Limits::default());
    world.seal(3_000, 50);
    const SINKS: u64 = 1_000;
    for sink in 1..=SINKS {
        world.deliveries.put(spec(sink, "https://a/")).expect("added");
    }
    let share = (MEMORY_BYTES as u64 / SINKS).max(SHARE_BYTES_MIN as u64);
    let all_have_read = || world.deliveries.status().iter().all(|sink| sink.in_memory_events > 0);
    for _ in 0..100_000 {
        if all_have_read() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    for sink in world.deliveries.status() {
        assert!((1..=2 * share).contains(&sink.in_memory_bytes), "{} bytes of {}", sink.in_memory_bytes, sink.name);
        assert!(sink.on_disk_events > 0, "{sink:?}");
    }
}
