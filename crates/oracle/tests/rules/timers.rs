//! Timers: applied in time, in order, with the instant they were due (SEMANTICS 2).

use crate::language::{check, play};
use leasehold_model::Instant;

#[test]
fn an_expiry_comes_before_any_command_of_its_instant() {
    check("10 grant 1 1:7:1 ttl=60\n69 heartbeat", "ok");
    check("10 grant 1 1:7:1 ttl=60\n70 heartbeat", "timer-missed");
    check("10 grant 1 1:7:1 ttl=60\n70 expire 1\n70 heartbeat", "ok");
    check("10 grant 1 1:7:1 ttl=60\n10 grant 2 1:7:10 ttl=60\n70 expire 1\n70 > heartbeat", "timer-missed");
    check("10 grant 1 1:7:1 ttl=60\n90 expire 1 @70\n90 heartbeat", "ok");
}

#[test]
fn a_timer_takes_effect_when_it_is_due() {
    check("10 grant 1 1:7:1 ttl=60\n90 expire 1", "timer-effective");
    check("10 grant 1 1:7:1 ttl=60\n90 expire 1 @71", "timer-effective");
    check("10 grant 1 1:7:1 ttl=60\n69 expire 1", "timer-not-due");
    check("10 grant 1 1:7:1 ttl=60\n20 release 1\n90 expire 1 @70", "timer-not-due");
}

#[test]
fn timers_come_by_due_then_kind_then_id() {
    let three = "
        10 grant 1 1:7:1 ttl=60
        10 grant 2 1:7:10 ttl=60
        20 grant 3 1:7:100 ttl=30
    ";
    check(&format!("{three} 90 expire 3 @50 \n 90 expire 1 @70 \n 90 expire 2 @70"), "ok");
    check(&format!("{three} 90 expire 3 @50 \n 90 expire 1 2 @70"), "ok");
    check(&format!("{three} 90 expire 1 2 @70"), "timer-order");
    check(&format!("{three} 90 expire 3 @50 \n 90 expire 2 @70"), "timer-order");
    check(&format!("{three} 90 expire 1 2 3 @70"), "timer-effective");
    // At one instant an expiry comes before the end of a grace.
    let both = "
        10 grant 1 1:7:1 ttl=500
        10 grant 2 1:7:10 ttl=60
        40 revoke 1 grace=30
    ";
    check(&format!("{both} 70 expire 2 \n 70 grace_ended 1"), "ok");
    check(&format!("{both} 70 grace_ended 1"), "timer-order");
}

#[test]
fn a_timer_record_holds_one_tenant_and_one_kind_of_node() {
    let tenants = "10 grant 1 1:7:1 ttl=60\n10 grant 2 tenant=2 1:7:10 ttl=60\n10 grant 3 1:7:100 ttl=60\n";
    check(&format!("{tenants} 70 expire 1 3 \n 70 expire 2 tenant=2"), "ok");
    check(&format!("{tenants} 70 expire 1 2"), "one-tenant");
    let modes = "10 grant 1 1:7:1 ttl=60\n10 grant 2 node=2 1:7:1 ttl=60\n";
    check(&format!("{modes} 70 expire 1 \n 70 expire 2 closed"), "ok");
    check(&format!("{modes} 70 expire 1 2"), "closed");
}

#[test]
fn grace_ends_after_its_length_or_at_the_deadline() {
    let revoked = "10 grant 1 1:7:1 ttl=200\n100 revoke 1 grace=60\n";
    check(&format!("{revoked} 160 grace_ended 1"), "ok");
    check(&format!("{revoked} 170 grace_ended 1 @160"), "ok");
    check(&format!("{revoked} 160 heartbeat"), "timer-missed");
    check(&format!("{revoked} 159 grace_ended 1"), "timer-not-due");
    // Grace never reaches past the deadline; a revoked lease does not expire.
    let late = "10 grant 1 1:7:1 ttl=120\n100 revoke 1 grace=60\n";
    check(&format!("{late} 130 grace_ended 1"), "ok");
    check(&format!("{late} 130 expire 1"), "timer-not-due");
    // Grace 0 is legal, and due at once.
    check("10 grant 1 1:7:1\n100 revoke 1\n100 grace_ended 1\n100 heartbeat", "ok");
    check("10 grant 1 1:7:1\n100 revoke 1\n100 heartbeat", "timer-missed");
    check("10 grant 1 1:7:1\n10 grant 2 tenant=2 1:7:10\n100 revoke 1\n100 > revoke 2 tenant=2", "ok");
}

#[test]
fn teardown_is_limited_from_the_stamp_of_the_ending_record() {
    let released = "10 grant 1 1:7:1\n50 release 1\n";
    check(&format!("{released} 149 torn_down 1"), "ok");
    check(&format!("{released} 150 fence 1"), "ok");
    check(&format!("{released} 150 torn_down 1"), "timer-missed");
    check(&format!("{released} 149 fence 1"), "timer-not-due");
    // Noticed late: the limit runs from the stamp, not from the deadline.
    let expired = "10 grant 1 1:7:1 ttl=60\n90 expire 1 @70\n";
    check(&format!("{expired} 189 torn_down 1"), "ok");
    check(&format!("{expired} 190 fence 1"), "ok");
    // A changed setting holds for what ends after it.
    check(&format!("{released} 60 settings teardown=5 \n 149 torn_down 1"), "ok");
}

#[test]
fn a_restart_comes_before_what_came_due_and_starts_limits_afresh() {
    check("10 grant 1 1:7:1 ttl=60\n500 started", "ok");
    check("10 grant 1 1:7:1 ttl=60\n500 started\n500 heartbeat", "timer-missed");
    check("10 grant 1 1:7:1 ttl=60\n500 started\n500 expire 1 @70", "ok");
    let releasing = "10 grant 1 1:7:1\n50 release 1\n500 started\n";
    check(&format!("{releasing} 599 torn_down 1"), "ok");
    check(&format!("{releasing} 600 fence 1"), "ok");
    check(&format!("{releasing} 500 fence 1 @150"), "timer-not-due");
    let revoking = "10 grant 1 1:7:1 ttl=1000\n100 revoke 1 grace=60\n500 started\n";
    check(&format!("{revoking} 560 grace_ended 1"), "ok");
    check(&format!("{revoking} 559 grace_ended 1"), "timer-not-due");
    check("10 grant 1 1:7:1 ttl=200\n100 revoke 1 grace=60\n500 started\n500 grace_ended 1 @210", "ok");
}

#[test]
fn at_rest_nothing_is_overdue() {
    let oracle = play("10 grant 1 1:7:1 ttl=60").map_err(|(v, _)| v).expect("legal");
    oracle.check_at_rest(Instant::from_secs(69)).expect("nothing is due");
    let overdue = oracle.check_at_rest(Instant::from_secs(70)).expect_err("the expiry is due");
    assert_eq!(overdue.rule, "timer-missed");
}
