//! One sink through the troubles that it must survive, with time under the test's control.

use crate::world::{Mood, SECOND, World};
use leasehold_deliver::{Limits, OnOverflow, Place};
use leasehold_model::Span;

const HOUR: Span = Span::from_secs(3_600);

fn small() -> Limits {
    Limits { buffer_size: 100, ..Limits::default() }
}

/// `count` records, one event each, over some keys.
fn seal(world: &mut World, count: u64, keys: u64) {
    for number in 0..count {
        let key = format!("alloc-{}", number % keys);
        world.seal(&[&key]);
    }
}

/// The endpoint got everything.
fn check_all(world: &World) {
    assert_eq!(world.missing(), [], "events are missing");
    world.check_disk(0);
}

#[test]
fn the_receiver_is_down_for_a_day_at_100_events_a_minute() {
    let mut world = World::new(Limits { buffer_size: 1_000, ..Limits::default() }, 1);
    world.mood = Mood::Down;
    for minute in 0..24 * 60u64 {
        for number in 0..100 {
            let key = format!("alloc-{}", (minute * 7 + number) % 300);
            world.seal(&[&key]);
        }
        world.pass(Span::from_secs(60));
    }
    assert_eq!(world.sink.lag(world.due), 144_000);
    assert!(world.most_in_memory.0 <= 1_000, "{:?}", world.most_in_memory);
    // Probes come every 2.5 minutes on average: about 600 in a day, not one for each event.
    assert!((300..2_000).contains(&world.requests), "{} requests", world.requests);
    assert!(world.sink.is_memory_high() && world.sink.oldest().is_some());
    world.mood = Mood::Up;
    world.drain(HOUR);
    check_all(&world);
    assert_eq!(world.received.len(), 144_000, "nothing is sent twice");
    assert_eq!((world.sink.counters().dead, world.sink.counters().dropped), (0, 0));
}

#[test]
fn a_slow_receiver_gets_sixteen_requests_at_a_time() {
    let mut world = World::new(Limits::default(), 2);
    world.mood = Mood::Slow;
    seal(&mut world, 1_600, 100);
    world.pass(Span::from_secs(201));
    check_all(&world);
    assert_eq!(world.received.len(), 1_600);
}

#[test]
fn too_many_requests_holds_the_whole_sink_back() {
    let mut world = World::new(Limits::default(), 3);
    world.mood = Mood::Status(429);
    seal(&mut world, 1_000, 100);
    world.pass(Span::from_secs(29));
    assert_eq!(world.requests, 16, "what was in flight, and then nothing before Retry-After is over");
    world.pass(Span::from_secs(60));
    assert!(world.requests <= 19, "{} requests", world.requests);
    world.mood = Mood::Up;
    world.drain(HOUR);
    check_all(&world);
    assert_eq!(world.sink.counters().dead, 0);
}

#[test]
fn a_server_error_is_tried_again_and_a_lost_answer_is_sent_again() {
    for mood in [Mood::Status(500), Mood::Status(503), Mood::Status(401), Mood::Status(409), Mood::Forgetful] {
        let mut world = World::new(small(), 4);
        world.mood = mood;
        seal(&mut world, 500, 20);
        world.pass(HOUR);
        assert!(world.sink.lag(world.due) == 500 && world.sink.counters().dead == 0, "{mood:?}");
        world.mood = Mood::Up;
        world.drain(HOUR);
        check_all(&world);
    }
}

#[test]
fn gone_disables_the_sink_and_loses_nothing() {
    let mut world = World::new(small(), 5);
    seal(&mut world, 50, 10);
    world.drain(HOUR);
    world.mood = Mood::Status(410);
    seal(&mut world, 50, 10);
    world.pass(HOUR);
    assert!(world.disabled && world.sink.is_disabled());
    assert_eq!(world.sink.lag(world.due), 50);
    let requests = world.requests;
    world.pass(HOUR);
    assert_eq!(world.requests, requests, "nothing is sent any more");
    // Enabled again: it goes on where it was.
    world.mood = Mood::Up;
    world.crash();
    world.drain(HOUR);
    check_all(&world);
}

#[test]
fn a_poison_event_does_not_block_the_rest() {
    let mut world = World::new(small(), 6);
    let bad = Place { sequence: 30, position: 0 };
    world.poison.insert(bad, 404);
    seal(&mut world, 300, 10);
    world.pass(Span::from_secs(60));
    assert_eq!(world.missing(), [bad]);
    assert_eq!(world.disk.dead[&bad].status, Some(404));
    assert_eq!(world.disk.dead[&bad].reason, "the endpoint answered 404");
    // The receiver is repaired, and the letter sent again, with its own ID; the second time there is none.
    world.poison.clear();
    assert_eq!(world.heal(), 1);
    check_all(&world);
    assert_eq!((world.heal(), world.disk.dead.len()), (0, 0));
}

#[test]
fn a_key_that_fails_alone_waits_alone_and_is_set_aside_after_an_hour() {
    let mut world = World::new(small(), 7);
    world.poison_keys.insert("alloc-3".to_owned(), 500);
    world.seal(&["alloc-3"]);
    world.seal(&["alloc-3"]);
    let bad = Place { sequence: 0, position: 0 };
    let mut longest = 0;
    for minute in 0..300 {
        for _ in 0..20 {
            world.seal(&["alloc-1", "alloc-2"]);
            world.pass(Span::from_secs(3));
        }
        longest = longest.max(world.sink.lag(world.due));
        if minute == 55 {
            assert!(world.disk.dead.is_empty(), "set aside before an hour was over");
        }
    }
    assert!(longest <= 44, "the others waited: {longest} were behind");
    let letter = &world.disk.dead[&bad];
    assert!(letter.attempts >= 20, "{letter:?}");
    assert!(letter.dead_at_ns - letter.time_ns >= HOUR.0);
    world.poison_keys.clear();
    world.drain(HOUR);
    world.heal();
    check_all(&world);
}

#[test]
fn a_key_that_fails_alone_does_not_fill_the_memory_for_ever() {
    let mut world = World::new(small(), 16);
    world.poison_keys.insert("alloc-0".to_owned(), 500);
    world.seal(&["alloc-0", "alloc-1"]);
    world.pass(Span::from_secs(10));
    world.seal(&["alloc-2"]);
    world.pass(Span::from_secs(600));
    // More events of the key than there is room for, and then others.
    for _ in 0..150 {
        world.seal(&["alloc-0"]);
    }
    seal(&mut world, 50, 1);
    (0..50).for_each(|_| world.seal(&["alloc-5"]));
    world.pass(Span::from_secs(4 * 3_600));
    assert!(world.missing().iter().all(|place| world.disk.dead.contains_key(place)), "only the key is missing");
    assert_eq!((world.sink.lag(world.due), world.sink.dead().len()), (0, 201));
    world.poison_keys.clear();
    assert_eq!(world.heal(), 201);
    check_all(&world);
}

#[test]
fn one_key_alone_is_never_set_aside() {
    let mut world = World::new(small(), 8);
    world.poison_keys.insert("alloc-3".to_owned(), 500);
    world.seal(&["alloc-3"]);
    world.pass(Span::from_secs(86_400));
    assert!(world.disk.dead.is_empty(), "nothing says that it is the key and not the endpoint");
    world.poison_keys.clear();
    world.drain(HOUR);
    check_all(&world);
}

#[test]
fn a_key_that_fails_does_not_let_the_cursor_hide_what_is_done() {
    let mut world = World::new(small(), 9);
    world.poison_keys.insert("alloc-0".to_owned(), 500);
    world.seal(&["alloc-0"]);
    for _ in 0..500 {
        world.seal(&["alloc-1", "alloc-2", "alloc-3"]);
    }
    world.pass(Span::from_secs(60));
    assert_eq!(world.received.len(), 1_500);
    let progress = world.disk.progress.clone().expect("committed");
    assert_eq!((progress.cursor, progress.done.len()), (Place::start_of(0), 1));
    // After a crash the 1,500 events are not sent again.
    world.crash();
    world.pass(Span::from_secs(60));
    assert_eq!(world.received.len(), 1_500);
    world.poison_keys.clear();
    world.drain(HOUR);
    check_all(&world);
    assert_eq!(world.received.len(), 1_501);
}

#[test]
fn one_event_that_is_done_between_two_that_are_not_is_remembered() {
    let mut world = World::new(small(), 14);
    world.poison_keys.insert("alloc-0".to_owned(), 500);
    world.seal(&["alloc-0", "alloc-1", "alloc-0", "alloc-2", "alloc-3", "alloc-0"]);
    world.pass(Span::from_secs(5));
    world.crash();
    world.pass(Span::from_secs(5));
    assert_eq!(world.received.len(), 3, "what was delivered is not sent again");
    world.poison_keys.clear();
    world.drain(HOUR);
    check_all(&world);
    assert_eq!(world.received.len(), 6);
}

#[test]
fn what_is_in_flight_is_not_dropped() {
    let limits = Limits { disk_buffer_max_events: 50, on_overflow: OnOverflow::Drop, ..small() };
    let mut world = World::new(limits, 15);
    world.mood = Mood::Slow;
    for _ in 0..10 {
        seal(&mut world, 40, 20);
        world.pass(SECOND);
    }
    world.drain(HOUR);
    let dropped = world.sink.counters().dropped;
    assert!(dropped > 100, "{dropped} were dropped");
    assert_eq!(world.missing().len() as u64, dropped);
    // Exactly those are sent, and none that was delivered.
    assert_eq!(world.heal() as u64, dropped);
    check_all(&world);
    assert_eq!(world.received.len(), 400);
}

#[test]
fn beyond_the_threshold_alert_loses_nothing() {
    let mut world = World::new(Limits { disk_buffer_max_events: 1_000, ..small() }, 10);
    world.mood = Mood::Down;
    seal(&mut world, 5_000, 50);
    world.pass(HOUR);
    assert_eq!((world.sink.lag(world.due), world.sink.counters().dropped), (5_000, 0));
    world.mood = Mood::Up;
    world.drain(HOUR);
    check_all(&world);
}

#[test]
fn beyond_the_threshold_drop_counts_what_it_skips_and_reconcile_heals_it() {
    let limits = Limits { disk_buffer_max_events: 1_000, on_overflow: OnOverflow::Drop, ..small() };
    let mut world = World::new(limits, 11);
    world.mood = Mood::Down;
    for _ in 0..50 {
        seal(&mut world, 100, 50);
        world.pass(SECOND);
    }
    world.crash();
    world.pass(HOUR);
    assert_eq!((world.sink.lag(world.due), world.sink.counters().dropped), (1_000, 4_000));
    world.mood = Mood::Up;
    world.drain(HOUR);
    assert_eq!(world.missing().len(), 4_000);
    assert_eq!(world.heal(), 4_000);
    check_all(&world);
    assert_eq!(world.received.len(), 5_000);
    assert_eq!(world.heal(), 0, "the second time nothing is sent");
    assert_eq!((world.sink.counters().dropped, world.sink.counters().dropped_open), (4_000, 0));
    assert!(world.disk.progress.as_ref().is_some_and(|progress| progress.dropped.is_empty()));
}

#[test]
fn a_reconciliation_that_was_cancelled_leaves_nothing_behind_that_a_crash_could_lose() {
    let limits = Limits { disk_buffer_max_events: 10, on_overflow: OnOverflow::Drop, ..small() };
    let mut world = World::new(limits, 17);
    world.mood = Mood::Down;
    seal(&mut world, 40, 5);
    world.pass(SECOND);
    world.mood = Mood::Up;
    world.drain(HOUR);
    assert_eq!(world.missing().len(), 30);
    // The first job gives its events to the sink and is cancelled; the second one must wait for them.
    world.mood = Mood::Slow;
    world.heal_and_cancel();
    assert_eq!(world.heal(), 30);
    world.crash();
    assert_eq!((world.heal(), world.missing().len()), (0, 0));
}

#[test]
fn dead_letters_have_a_limit_and_become_dropped_events() {
    let mut world = World::new(Limits::default(), 12);
    world.mood = Mood::Status(404);
    seal(&mut world, 10_050, 100);
    world.pass(HOUR);
    assert_eq!((world.disk.dead.len(), world.sink.counters().dropped), (10_000, 50));
    world.mood = Mood::Up;
    assert_eq!(world.heal(), 10_050);
    check_all(&world);
}

#[test]
fn killed_at_any_moment_of_a_push() {
    // Every number of steps until the process is killed, three times in a row.
    for steps in 0..200u64 {
        let mut world = World::new(small(), steps);
        seal(&mut world, 300, 7);
        for _ in 0..3 {
            world.pass(Span::from_millis(steps * 3));
            world.crash();
        }
        world.drain(HOUR);
        check_all(&world);
    }
}

#[test]
fn memory_stays_flat_over_a_million_undelivered_events() {
    let mut world = World::new(Limits::default(), 13);
    world.mood = Mood::Down;
    seal(&mut world, 1_000_000, 5_000);
    world.pass(HOUR);
    assert_eq!(world.sink.lag(world.due), 1_000_000);
    let (events, bytes) = world.most_in_memory;
    assert!(events <= 10_000 && bytes <= 9 << 20, "{events} events and {bytes} bytes in memory");
}

/// A larger `buffer_size` holds more events, also where they are larger than most.
#[test]
fn a_raised_buffer_size_holds_that_many_events() {
    let mut world = World::new(Limits::for_events(30_000), 22);
    world.mood = Mood::Down;
    let key = "k".repeat(500);
    (0..40_000).for_each(|_| world.seal(&[&key]));
    world.pass(SECOND);
    let (events, bytes) = world.sink.in_memory();
    assert!(bytes > 30_000 * 1_000, "{bytes} bytes");
    assert_eq!(events, 30_000);
    assert!(Limits::for_events(1_000_000).memory_bytes() >= 1_000_000_000, "one webhook may have all of its memory");
}

/// An error is shown until an attempt succeeds, not for ever.
#[test]
fn a_success_ends_the_last_error() {
    let mut world = World::new(small(), 21);
    world.mood = Mood::Status(500);
    seal(&mut world, 3, 3);
    world.pass(Span::from_secs(60));
    assert_eq!(world.sink.last_error(), Some("the endpoint answered 500"));
    world.mood = Mood::Up;
    world.drain(HOUR);
    assert_eq!(world.sink.last_error(), None);
    assert!(world.sink.last_success().is_some());
}
