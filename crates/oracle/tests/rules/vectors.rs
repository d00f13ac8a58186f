//! The vectors of SEMANTICS 2, in the units in which it states them.

use crate::language::play;
use leasehold_model::{ClassNo, Instant, TenantNo};

/// Quanta-seconds of tenant 1 in a window of seconds, as known at `now`.
fn quanta_seconds(history: &str, class: u16, window: (u64, u64), now: u64) -> u128 {
    let oracle = play(history).map_err(|(violation, line)| format!("{violation} in {line}")).expect("legal");
    let usage = oracle.usage(Instant::from_secs(window.0)..Instant::from_secs(window.1), Instant::from_secs(now));
    let ns = usage.get(&(TenantNo(1), ClassNo(class))).copied().unwrap_or(0);
    assert_eq!(ns % 1_000_000_000, 0, "whole seconds went in");
    ns / 1_000_000_000
}

const ALL: (u64, u64) = (0, 1_000_000);

#[test]
fn one_gpu_for_two_minutes() {
    let history = "1000 grant 1 1:7:1 ttl=120\n1120 expire 1";
    assert_eq!(quanta_seconds(history, 1, ALL, 5000) / 7, 120);
}

#[test]
fn eighty_gib_for_an_hour() {
    let history = "1000 grant 1 2:81920 ttl=3600\n4600 expire 1";
    assert_eq!(quanta_seconds(history, 2, ALL, 5000) / 1024, 288_000);
}

#[test]
fn ten_hours_on_four_nodes_of_four_gpus() {
    let history = "
        5 node 3 1:28
        5 node 4 1:28
        5 node 5 1:28
        10 grant 1 node=1 1:28:1111 ttl=36000
        10 grant 2 node=3 1:28:1111 ttl=36000
        10 grant 3 node=4 1:28:1111 ttl=36000
        10 grant 4 node=5 1:28:1111 ttl=36000
        36010 expire 1 2 3 4
    ";
    assert_eq!(quanta_seconds(history, 1, ALL, 50_000) / 7 / 3600, 160);
}

#[test]
fn released_after_its_deadline_bills_to_the_deadline() {
    // The expiry seals first: what the holder sends at 61 s finds an expired lease.
    let history = "100 grant 1 1:7:1 ttl=60\n161 expire 1 @160";
    assert_eq!(quanta_seconds(history, 1, ALL, 500) / 7, 60);
    crate::language::check(&format!("{history}\n161 release 1"), "phase");
}

#[test]
fn revoked_with_grace_bills_until_ready() {
    let history = "50 grant 1 1:7:1 ttl=500\n100 revoke 1 grace=60\n130 ready 1\n150 torn_down 1";
    assert_eq!(quanta_seconds(history, 1, ALL, 500) / 7, 80);
    let forced = "50 grant 1 1:7:1 ttl=500\n100 revoke 1 grace=60\n170 grace_ended 1 @160";
    assert_eq!(quanta_seconds(forced, 1, ALL, 500) / 7, 110);
}

#[test]
fn only_what_overlaps_the_window_counts() {
    let history = "36000 grant 1 1:7:1 ttl=7200\n43200 expire 1";
    assert_eq!(quanta_seconds(history, 1, (39_600, 46_800), 50_000) / 7, 3600);
    assert_eq!(quanta_seconds(history, 1, (0, 36_000), 50_000), 0);
    assert_eq!(quanta_seconds(history, 1, (43_200, 50_000), 50_000), 0);
}

#[test]
fn what_runs_bills_until_now_and_fenced_time_is_nobodys() {
    assert_eq!(quanta_seconds("100 grant 1 1:7:1 ttl=60", 1, ALL, 130) / 7, 30);
    assert_eq!(quanta_seconds("100 grant 1 1:7:1 ttl=60", 1, ALL, 500) / 7, 60);
    let fenced = "100 grant 1 1:7:1 ttl=60\n120 release 1\n220 fence 1\n900 heartbeat";
    assert_eq!(quanta_seconds(fenced, 1, ALL, 900) / 7, 20);
    let lost = "100 grant 1 1:7:1\n150 lost 1 seen=140\n150 > revoke 1 reason=node_lost\n150 > grace_ended 1 @140";
    assert_eq!(quanta_seconds(lost, 1, ALL, 900) / 7, 40);
}
