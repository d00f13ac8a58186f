//! Burst quotas: episodes, caps and ends (SEMANTICS 4).

use crate::language::check;

/// Base 7, never above 14, for 100 s.
const BURST: &str = "5 quota 1 class=1 burst=7:14:100\n10 grant 1 1:7:1\n";

#[test]
fn above_base_a_grant_ends_with_the_episode() {
    check(&format!("{BURST} 20 grant 2 1:7:10 ttl=100"), "ok");
    check(&format!("{BURST} 20 grant 2 1:7:10 ttl=100 capped_by=1"), "ok");
    check(&format!("{BURST} 20 grant 2 1:7:10 ttl=101"), "burst");
    check(&format!("{BURST} 20 grant 2 1:7:10 ttl=99 capped_by=1"), "capped-by");
    check(&format!("{BURST} 20 grant 2 1:7:10 ttl=100 capped_by=2"), "capped-by");
    check("5 quota 1 class=1 burst=7:14:100\n10 grant 1 1:7:1 ttl=100 capped_by=1", "capped-by");
    // Within the base nothing is shortened.
    check("5 quota 1 class=1 burst=7:14:100\n10 grant 1 1:7:1 ttl=5000", "ok");
    // The episode runs from its start, not from each grant.
    let running = format!("{BURST} 20 grant 2 1:3:10 ttl=50 \n");
    check(&format!("{running} 60 grant 3 1:3:10 ttl=60"), "ok");
    check(&format!("{running} 60 grant 3 1:3:10 ttl=61"), "burst");
}

#[test]
fn the_burst_limit_is_a_ceiling() {
    check(&format!("{BURST} 20 grant 2 1:14:110 ttl=50"), "quota");
    check(&format!("{BURST} 20 deny 1:14 because=quota:1:7:14:14"), "ok");
    check(&format!("{BURST} 20 deny 1:14 because=quota:1:7:14:7"), "denial");
}

#[test]
fn a_burst_cannot_be_swapped_into_for_ever() {
    let over = format!("{BURST} 20 grant 2 1:3:10 ttl=100 \n 120 expire 2 \n");
    check(&format!("{over} 120 grant 3 1:3:10 ttl=1"), "quota");
    check(&format!("{over} 120 deny 1:3 because=burst:1:120"), "ok");
    check(&format!("{over} 120 deny 1:3 because=burst:1:121"), "denial");
    // What is torn down still counts, so the time below base begins when that is confirmed.
    let below = format!("{over} 130 torn_down 2 \n");
    check(&format!("{below} 229 deny 1:3 because=burst:1:120"), "ok");
    check(&format!("{below} 230 burst_ended 1 \n 230 grant 3 1:3:10 ttl=100"), "ok");
    check(&format!("{below} 230 heartbeat"), "timer-missed");
    check(&format!("{below} 229 burst_ended 1"), "timer-not-due");
    check(&format!("{below} 240 burst_ended 1"), "timer-effective");
    check(&format!("{below} 240 burst_ended 1 @230"), "ok");
}

#[test]
fn rising_above_base_again_starts_the_time_below_afresh() {
    let again =
        format!("{BURST} 20 grant 2 1:3:10 ttl=60 \n 30 release 2 \n 40 torn_down 2 \n 50 grant 3 1:3:10 ttl=70 \n");
    check(&format!("{again} 60 release 3 \n 70 torn_down 3 \n 169 heartbeat"), "ok");
    check(&format!("{again} 60 release 3 \n 70 torn_down 3 \n 170 burst_ended 1"), "ok");
    check(&format!("{again} 60 release 3 \n 70 torn_down 3 \n 140 burst_ended 1"), "timer-not-due");
    check("5 quota 1 class=1 burst=7:14:100\n500 burst_ended 1", "timer-not-due");
    // A restart does not move it: it limits nobody else's work.
    let restart = format!("{again} 60 release 3 \n 70 torn_down 3 \n 160 started \n");
    check(&format!("{restart} 170 burst_ended 1"), "ok");
}

#[test]
fn above_base_no_lease_is_renewed_past_the_episode() {
    let over = format!("{BURST} 20 grant 2 1:3:10 ttl=50 \n");
    check(&format!("{over} 30 renew 1:120"), "ok");
    check(&format!("{over} 30 renew 1:121"), "burst");
    check(&format!("{over} 30 renew 2:121"), "burst");
    check(&format!("{over} 30 release 2 \n 31 renew 1:500"), "burst");
    check(&format!("{over} 30 release 2 \n 31 torn_down 2 \n 32 renew 1:500"), "ok");
    // Of another class it is no business of this quota.
    check(&format!("{over} 25 grant 3 2:5 \n 30 renew 3:5000"), "ok");
}

#[test]
fn limits_that_change_are_judged_when_they_change() {
    // A new quota counts what runs already.
    check("10 grant 1 1:14:11\n50 quota 1 class=1 burst=7:21:100\n60 grant 2 1:7:100 ttl=90", "ok");
    check("10 grant 1 1:14:11\n50 quota 1 class=1 burst=7:21:100\n60 grant 2 1:7:100 ttl=91", "burst");
    // Lowered below use: the episode starts with the change.
    check(&format!("{BURST} 50 quota 1 class=1 burst=3:14:100 \n 60 renew 1:150"), "ok");
    check(&format!("{BURST} 50 quota 1 class=1 burst=3:14:100 \n 60 renew 1:151"), "burst");
    // Raised above use: the time below base starts with the change.
    let raised = format!("{BURST} 20 grant 2 1:7:10 ttl=90 \n 50 quota 1 class=1 burst=20:20:100 \n 110 expire 2 \n");
    check(&format!("{raised} 111 torn_down 2 \n 150 burst_ended 1"), "ok");
    // No burst quota any more: no episode either.
    check(&format!("{BURST} 20 grant 2 1:7:10 ttl=90 \n 50 quota 1 class=1 hard=20 \n 60 renew 1:900"), "ok");
    // A fence takes use away, and that is noticed as well.
    let fenced = format!("{BURST} 20 grant 2 1:3:10 ttl=50 \n 30 release 2 \n 130 fence 2 \n");
    check(&format!("{fenced} 229 heartbeat"), "ok");
    check(&format!("{fenced} 230 burst_ended 1"), "ok");
}

#[test]
fn several_bursts_end_with_the_first() {
    let two =
        "5 quota 1 class=1 burst=0:28:100\n5 quota 2 class=1 burst=0:28:60\n5 quota 3 class=1 node=1 burst=0:28:60\n";
    check(&format!("{two} 10 grant 1 1:7:1 ttl=60 capped_by=2"), "ok");
    check(&format!("{two} 10 grant 1 1:7:1 ttl=60 capped_by=3"), "ok");
    check(&format!("{two} 10 grant 1 1:7:1 ttl=60 capped_by=1"), "capped-by");
    check(&format!("{two} 10 grant 1 1:7:1 ttl=100 capped_by=1"), "burst");
}
