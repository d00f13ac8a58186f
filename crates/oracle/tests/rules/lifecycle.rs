//! From active to closed (SEMANTICS 2 and 3).

use crate::language::{check, play};
use leasehold_model::Instant;

const GRANT: &str = "10 grant 1 1:7:1 ttl=500\n";

#[test]
fn renewal_is_for_active_leases_and_never_into_the_past() {
    check(&format!("{GRANT} 20 renew 1:900"), "ok");
    check(&format!("{GRANT} 20 renew 1:30"), "ok");
    check(&format!("{GRANT} 20 renew 1:20"), "renewed-into-past");
    check(&format!("{GRANT} 20 renew 2:900"), "unknown-lease");
    check(&format!("{GRANT} 20 release 1 \n 30 renew 1:900"), "phase");
    check(&format!("{GRANT} 20 revoke 1 grace=60 \n 30 renew 1:900"), "phase");
    check(&format!("{GRANT} 510 expire 1 \n 510 renew 1:900"), "phase");
    // A renewal moves the deadline.
    check(&format!("{GRANT} 20 renew 1:900 \n 510 heartbeat"), "ok");
    check(&format!("{GRANT} 20 renew 1:30 \n 30 heartbeat"), "timer-missed");
}

#[test]
fn renewal_stops_at_the_ttl_and_lifetime_limits() {
    let pool = "5 pool 1 ttl_max=600 lifetime_max=1000\n10 grant 1 1:7:1 ttl=500\n";
    check(&format!("{pool} 20 renew 1:620"), "ok");
    check(&format!("{pool} 20 renew 1:621"), "ttl");
    check(&format!("{pool} 500 renew 1:1010"), "ok");
    check(&format!("{pool} 500 renew 1:1011"), "lifetime");
    check(&format!("{GRANT} 20 settings ttl_max=100 \n 30 renew 1:130"), "ok");
    check(&format!("{GRANT} 20 settings ttl_max=100 \n 30 renew 1:131"), "ttl");
}

#[test]
fn sealed_activity_can_be_true() {
    check(&format!("{GRANT} 20 renew 1:900 covered=10 busy=70 active=10 waiting=10"), "ok");
    check(&format!("{GRANT} 20 renew 1:900 covered=0"), "activity");
    check(&format!("{GRANT} 20 renew 1:900 covered=11"), "activity");
    check(&format!("{GRANT} 20 renew 1:900 covered=10 busy=71"), "activity");
    check(&format!("{GRANT} 20 renew 1:900 covered=10 active=11"), "activity");
    check(&format!("{GRANT} 20 renew 1:900 covered=10 waiting=11"), "activity");
    // Each stretch is reported once.
    check(&format!("{GRANT} 20 activity 1 covered=5 \n 25 release 1 covered=5"), "ok");
    check(&format!("{GRANT} 20 activity 1 covered=5 \n 25 release 1 covered=6"), "activity");
    check(&format!("{GRANT} 20 release 1 \n 25 activity 1 covered=5"), "phase");
}

#[test]
fn a_holder_releases_what_it_holds() {
    check(&format!("{GRANT} 20 release 1"), "ok");
    check(&format!("{GRANT} 20 revoke 1 grace=60 \n 30 release 1"), "ok");
    check(&format!("{GRANT} 20 release 1 \n 30 release 1"), "phase");
    check(&format!("{GRANT} 510 expire 1 \n 520 release 1"), "phase");
    check(&format!("{GRANT} 20 release 1 tenant=2"), "one-tenant");
    check(&format!("{GRANT} 20 release 1 project=1"), "ok");
    check(&format!("{GRANT} 20 release 1 project=3"), "holder");
    check(&format!("{GRANT} 20 release 1 closed"), "closed");
}

#[test]
fn nodes_without_an_agent_close_at_once() {
    let two = "10 grant 1 1:7:1\n10 grant 2 node=2 1:7:1\n10 grant 3 node=2 1:7:10\n";
    check(&format!("{two} 20 release 2 closed"), "ok");
    check(&format!("{two} 20 release 2"), "closed");
    check(&format!("{two} 20 release 1 2 closed"), "closed");
    // Of a mixed record the immediate ones are closed by what continues it.
    check(&format!("{two} 20 release 1 2 \n 20 > torn_down 2 node=2 \n 21 heartbeat"), "ok");
    check(&format!("{two} 20 release 1 2 3 \n 20 > torn_down 2 3 node=2 \n 21 heartbeat"), "ok");
    check(&format!("{two} 20 release 1 2 3 \n 20 > torn_down 2 node=2 \n 21 heartbeat"), "closed");
    check(&format!("{two} 20 release 1 2 \n 20 torn_down 2 node=2"), "closed");
    check(&format!("{two} 20 revoke 2 grace=9 \n 25 ready 2 closed"), "ok");
    check(&format!("{two} 20 revoke 2 grace=9 \n 29 grace_ended 2"), "closed");
}

#[test]
fn revocation_is_of_active_leases_with_a_reason() {
    check(&format!("{GRANT} 20 revoke 1 grace=60"), "ok");
    check(&format!("{GRANT} 20 revoke 1 grace=60 reason=none"), "reason");
    check(&format!("{GRANT} 20 revoke 1 grace=604801"), "grace");
    check(&format!("{GRANT} 20 revoke 1 grace=60 \n 30 revoke 1 grace=60"), "phase");
    check(&format!("{GRANT} 20 release 1 \n 30 revoke 1 grace=60"), "phase");
}

#[test]
fn a_gang_falls_whole() {
    let gang = "10 grant 1 1:7:1 2:100 ttl=500\n10 grant 3 1:7:10\n";
    check(&format!("{gang} 20 revoke 1 2 grace=60 \n 21 heartbeat"), "ok");
    check(&format!("{gang} 20 revoke 3 grace=60 \n 21 heartbeat"), "ok");
    check(&format!("{gang} 20 revoke 1 grace=60 \n 20 > revoke 2 grace=60 \n 21 heartbeat"), "ok");
    check(&format!("{gang} 20 revoke 1 grace=60 \n 21 heartbeat"), "gang-split");
    // Giving one back is the holder's own affair.
    check(&format!("{gang} 20 release 1 \n 21 heartbeat"), "ok");
    check(&format!("{gang} 20 release 1 \n 21 revoke 2 grace=60 \n 22 heartbeat"), "ok");
}

#[test]
fn teardown_starts_only_after_a_revocation() {
    check(&format!("{GRANT} 20 revoke 1 grace=60 \n 30 ready 1"), "ok");
    check(&format!("{GRANT} 20 ready 1"), "phase");
    check(&format!("{GRANT} 20 release 1 \n 30 ready 1"), "phase");
    check(&format!("{GRANT} 20 grace_ended 1"), "timer-not-due");
}

#[test]
fn teardown_is_confirmed_by_the_node_it_is_on() {
    check(&format!("{GRANT} 20 release 1 \n 30 torn_down 1"), "ok");
    check(&format!("{GRANT} 510 expire 1 \n 520 torn_down 1"), "ok");
    check(&format!("{GRANT} 20 revoke 1 grace=60 \n 30 ready 1 \n 40 torn_down 1"), "ok");
    check(&format!("{GRANT} 20 release 1 \n 30 torn_down 1 node=2"), "elsewhere");
    check(&format!("{GRANT} 20 torn_down 1"), "phase");
    check(&format!("{GRANT} 20 release 1 \n 30 torn_down 1 \n 40 torn_down 1"), "phase");
}

#[test]
fn only_a_fence_is_cleared() {
    let fenced = format!("{GRANT} 20 release 1 \n 120 fence 1 \n");
    check(&format!("{fenced} 130 unfence 1"), "ok");
    check(&format!("{fenced} 130 torn_down 1"), "phase");
    check(&format!("{fenced} 130 unfence 1 \n 140 unfence 1"), "phase");
    check(&format!("{GRANT} 20 release 1 \n 30 unfence 1"), "phase");
}

#[test]
fn no_record_carries_two_tenants() {
    let two = "10 grant 1 1:7:1\n10 grant 2 tenant=2 1:7:10\n";
    check(&format!("{two} 20 release 1 2"), "one-tenant");
    check(&format!("{two} 20 revoke 1 2 tenant=2 grace=9"), "one-tenant");
    check(&format!("{two} 20 release 1 \n 20 > release 2 tenant=2"), "ok");
    check(&format!("{two} 20 revoke 2 1 grace=9"), "leases");
}

#[test]
fn a_lost_node_ends_its_leases_when_it_was_last_seen() {
    let held = "10 grant 1 1:7:1\n10 grant 2 tenant=2 1:7:10\n15 grant 3 1:7:100\n20 revoke 3 grace=300\n";
    let first = "30 > revoke 1 reason=node_lost\n30 > grace_ended 1 3 @25\n";
    let second = "30 > revoke 2 tenant=2 reason=node_lost\n30 > grace_ended 2 tenant=2 @25\n";
    check(&format!("{held} 30 lost 1 seen=25 \n {first} {second} 30 heartbeat"), "ok");
    check(&format!("{held} 30 lost 1 seen=25 \n {first} 30 heartbeat"), "lost-unfinished");
    check(&format!("{held} 30 lost 1 seen=31"), "last-seen");
    check(&format!("{held} 30 lost 1 seen=25 \n 30 > revoke 1 grace=5 reason=node_lost"), "lost-leases");
    check(&format!("{held} 30 lost 1 seen=25 \n 30 > revoke 1"), "lost-leases");
    check(&format!("{held} 30 lost 1 seen=25 \n 30 > revoke 1 reason=node_lost \n 30 > grace_ended 1 3"), "effective");
    check(&format!("{held} 30 lost 2 seen=25 \n 30 > revoke 1 reason=node_lost"), "elsewhere");
    check(&format!("{held} 30 lost 1 seen=25 \n 30 lost 1 seen=25"), "lost-unfinished");
}

#[test]
fn a_lost_node_seen_before_a_grant_bills_nothing() {
    let history = "100 grant 1 1:7:1\n110 lost 1 seen=50\n110 > revoke 1 reason=node_lost\n110 > grace_ended 1 @50";
    let oracle = play(history).map_err(|(v, _)| v).expect("legal");
    assert!(oracle.usage(Instant(0)..Instant::MAX, Instant::from_secs(200)).is_empty());
}
