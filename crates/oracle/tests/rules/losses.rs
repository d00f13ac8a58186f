//! Lost nodes: signs of life, and naming what ended after the node was last seen (SEMANTICS 11). The stage has the
//! sequences 0 to 12.

use crate::language::{check, play};
use leasehold_model::{ClassNo, Instant, TenantNo};

#[test]
fn a_node_was_seen_when_it_showed_life() {
    check("5 agent 1\n9 lost 1 seen=4", "seen-since");
    check("5 agent 1\n9 lost 1 seen=5", "ok");
    check("5 agent 1\n6 condition 1 load=high\n9 lost 1 seen=5", "seen-since");
    check("5 agent 2\n9 lost 1 seen=4", "ok");
    check("1 started rules=3\n5 agent 1\n9 lost 1 seen=4", "ok");
    check("2 claim 1 user=1\n3 giveback 1 user=1\n5 wiped 1\n9 lost 1 seen=4", "seen-since");
    check("2 claim 1 user=1\n3 giveback 1 user=1\n5 quarantine 1\n9 lost 1 seen=4", "ok");
    let torn = "2 grant 1 1:7:1\n3 release 1\n5 torn_down 1\n";
    check(&format!("{torn} 9 lost 1 seen=4"), "seen-since");
    check(&format!("{torn} 9 lost 1 seen=5"), "ok");
    // A node without an agent shows nothing.
    check("2 grant 1 1:7:1 node=2\n5 release 1 closed\n9 lost 2 seen=4", "ok");
}

/// Lease 1 ended at 20, 2 at 24, and lease 3 at its start; the node was last seen at 15, says record 19.
const LOST: &str = "
    10 grant 1 1:7:1
    10 grant 2 1:7:10 ttl=14
    11 grant 3 1:7:100
    11 release 3
    20 release 1
    24 expire 2
    30 lost 1 seen=15
";

#[test]
fn everything_that_ended_after_that_is_named_once() {
    check(&format!("{LOST} 40 ends 1 2 loss=19 @15 \n 40 > settled 1 loss=19"), "ok");
    check(&format!("{LOST} 40 ends 1 loss=19 @15 \n 50 ends 2 loss=19 @15 \n 50 > settled 1 loss=19"), "ok");
    check(&format!("{LOST} 40 settled 1 loss=19"), "loss");
    check(&format!("{LOST} 40 ends 1 loss=19 @15 \n 40 > settled 1 loss=19"), "loss");
    check(&format!("{LOST} 40 ends 1 2 loss=19 @15 \n 40 > settled 2 loss=19"), "loss");
    check(&format!("{LOST} 40 ends 1 2 loss=19 @15 \n 41 ends 2 loss=19 @15"), "loss");
    check(&format!("{LOST} 40 ends 1 loss=19 @15 \n 40 > ends 2 loss=19 @15"), "loss");
    check(&format!("{LOST} 40 ends 1 2 3 loss=19 @15"), "loss");
    check(&format!("{LOST} 40 ends 1 2 loss=18 @15"), "effective");
    check(&format!("{LOST} 40 ends 1 2 loss=19 @16"), "effective");
    check(&format!("{LOST} 40 ends 1 2 loss=19"), "effective");
    check(&format!("{LOST} 40 ends 1 2 loss=19 tenant=2 @15"), "one-tenant");
    let settled = format!("{LOST} 40 ends 1 2 loss=19 @15 \n 40 > settled 1 loss=19 \n");
    check(&format!("{settled} 41 settled 1 loss=19"), "loss");
    // If nothing ended after it, nothing is open.
    check("10 grant 1 1:7:1\n20 release 1\n30 lost 1 seen=20\n40 settled 1 loss=15", "loss");
    check("10 grant 1 1:7:1\n20 release 1\n30 lost 1 seen=19\n40 ends 1 loss=15 @19", "ok");
    // What the loss itself ends is not named.
    let held = "10 grant 1 1:7:1\n30 lost 1 seen=15\n30 > revoke 1 reason=node_lost\n30 > grace_ended 1 @15\n";
    check(&format!("{held} 40 settled 1 loss=14"), "loss");
    // Nothing is open by earlier rules.
    check("1 started rules=1\n10 grant 1 1:7:1\n20 release 1\n30 lost 1 seen=15\n40 settled 1 loss=16", "loss");
}

#[test]
fn named_leases_are_billed_until_the_node_was_last_seen() {
    let billed = |history: &str| {
        let oracle = play(history).expect("legal");
        let usage = oracle.usage(Instant(0)..Instant::from_secs(100), Instant::from_secs(100));
        usage.get(&(TenantNo(1), ClassNo(1))).copied().unwrap_or(0) / 7_000_000_000
    };
    assert_eq!(billed(LOST), 10 + 14);
    assert_eq!(billed(&format!("{LOST} 40 ends 1 2 loss=19 @15")), 5 + 5);
    let before = LOST.replace("seen=15", "seen=5");
    assert_eq!(billed(&format!("{before} 40 ends 1 2 loss=19 @5")), 0);
}

#[test]
fn claims_are_named_by_their_records() {
    let lost = "10 claim 1 user=1\n20 giveback 1 user=1\n30 lost 1 seen=15\n";
    check(&format!("{lost} 40 claim_end 1 loss=15 claim=13 user=1 @15 \n 40 > settled 1 loss=15"), "ok");
    check(&format!("{lost} 40 settled 1 loss=15"), "loss");
    check(&format!("{lost} 40 claim_end 1 loss=15 claim=13 @15"), "identity");
    check(&format!("{lost} 40 claim_end 1 loss=15 claim=14 user=1 @15"), "loss");
    check(&format!("{lost} 40 claim_end 2 loss=15 claim=13 user=1 @15"), "loss");
    check(&format!("{lost} 40 claim_end 1 loss=15 claim=13 user=1"), "effective");
    let twice = "40 claim_end 1 loss=15 claim=13 user=1 @15 \n 41 claim_end 1 loss=15 claim=13 user=1 @15";
    check(&format!("{lost} {twice}"), "loss");
}
