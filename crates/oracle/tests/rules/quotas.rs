//! Quotas: used + requested ≤ limit, by a recount (SEMANTICS 4).

use crate::language::check;

#[test]
fn a_hard_quota_refuses() {
    check("5 quota 1 class=1 hard=10\n10 grant 1 1:7:1\n11 grant 2 1:3:10", "ok");
    check("5 quota 1 class=1 hard=10\n10 grant 1 1:7:1\n11 grant 2 1:4:10", "quota");
    // The example of SEMANTICS: 200, used 190, asking 8.
    let used = "5 quota 1 class=2 hard=200\n10 grant 1 2:190\n";
    check(&format!("{used} 11 grant 2 2:8"), "ok");
    check(&format!("{used} 11 quota 1 class=2 hard=195 \n 12 grant 2 2:8"), "quota");
    check(&format!("{used} 11 grant 2 2:8 \n 12 quota 1 class=2 hard=195 \n 13 heartbeat"), "ok");
}

#[test]
fn used_counts_live_and_torn_down_but_not_fenced() {
    let full = "5 quota 1 class=1 hard=7\n10 grant 1 1:7:1\n";
    check(&format!("{full} 20 grant 2 1:1:10"), "quota");
    check(&format!("{full} 20 revoke 1 grace=9 \n 21 grant 2 1:1:10"), "quota");
    check(&format!("{full} 20 release 1 \n 21 grant 2 1:1:10"), "quota");
    check(&format!("{full} 20 release 1 \n 21 torn_down 1 \n 22 grant 2 1:1:1"), "ok");
    check(&format!("{full} 20 release 1 \n 120 fence 1 \n 121 grant 2 1:1:10"), "ok");
}

#[test]
fn each_part_of_a_scope_narrows_it() {
    for (scope, refused) in [
        ("tenant=1 class=1", true),
        ("tenant=2 class=1", false),
        ("tenant=1 class=2", false),
        ("tenant=1 project=1 class=1", true),
        ("tenant=1 project=3 class=1", false),
        ("tenant=1 class=1 pool=1", true),
        ("tenant=1 class=1 node=1", true),
        ("tenant=1 class=1 node=2", false),
        ("tenant=1 class=1 node=each", true),
        ("tenant=1 class=1 priority=standard", true),
        ("tenant=1 class=1 priority=scavenger", false),
    ] {
        let expected = if refused { "quota" } else { "ok" };
        check(&format!("5 quota 1 {scope} hard=9 \n 10 grant 1 1:7:1 \n 11 grant 2 1:7:10"), expected);
    }
    // For each node: what lies elsewhere does not count.
    check("5 quota 1 class=1 node=each hard=9\n10 grant 1 1:7:1\n11 grant 2 node=2 1:7:1", "ok");
    check("5 quota 1 class=1 pool=1 hard=9\n10 grant 1 1:7:1\n11 grant 2 node=2 1:7:1", "quota");
}

#[test]
fn leases_and_nodes_are_counted_too() {
    let leases = "5 quota 1 measure=leases hard=2\n";
    check(&format!("{leases} 10 grant 1 1:7:1 2:5"), "ok");
    check(&format!("{leases} 10 grant 1 1:7:1 \n 11 grant 2 1:7:10 2:5"), "quota");
    check("5 quota 1 measure=leases class=1 hard=1\n10 grant 1 1:7:1 2:5\n11 grant 3 2:5", "ok");
    check("5 quota 1 measure=leases class=1 hard=1\n10 grant 1 1:7:1 2:5\n11 grant 3 1:5:10", "quota");
    let nodes = "5 quota 1 measure=nodes hard=1\n10 grant 1 1:7:1\n";
    check(&format!("{nodes} 11 grant 2 1:7:10"), "ok");
    check(&format!("{nodes} 11 grant 2 node=2 1:7:1"), "quota");
    check(&format!("{nodes} 11 release 1 \n 12 torn_down 1 \n 13 grant 2 node=2 1:7:1"), "ok");
    // Lowered below use it stops every new grant, also where the node is held already.
    check("10 grant 1 1:7:1\n11 grant 2 node=2 1:7:1\n12 quota 1 measure=nodes hard=1\n13 grant 3 1:7:10", "quota");
}

#[test]
fn soft_quotas_are_named_exactly_and_rising() {
    let soft =
        "5 quota 1 class=1 soft=7\n5 quota 2 class=1 soft=10\n5 quota 3 class=1 soft=3\n10 grant 1 1:7:1 over=3\n";
    check(&format!("{soft} 11 grant 2 1:3:10 over=1:3"), "ok");
    check(&format!("{soft} 11 grant 2 1:4:10 over=1:2:3"), "ok");
    check(&format!("{soft} 11 grant 2 1:3:10 over=1:2:3"), "over-soft");
    check(&format!("{soft} 11 grant 2 1:3:10 over=3:1"), "over-soft");
    check(&format!("{soft} 11 grant 2 1:3:10 over=1"), "over-soft");
    check(&format!("{soft} 11 grant 2 1:3:10"), "over-soft");
    check(&format!("{soft} 11 grant 2 2:3 over=1"), "over-soft");
}

#[test]
fn a_denial_by_quota_states_the_true_numbers() {
    let used = "5 quota 1 class=1 hard=10\n10 grant 1 1:7:1\n";
    check(&format!("{used} 11 deny 1:4 because=quota:1:7:4:10"), "ok");
    for wrong in ["quota:1:6:4:10", "quota:1:7:5:10", "quota:1:7:4:11", "quota:2:7:4:10", "capacity:1:4:35"] {
        check(&format!("{used} 11 deny 1:4 because={wrong}"), "denial");
    }
    check(&format!("{used} 11 deny 1:3 because=quota:1:7:3:10"), "denial");
    check(&format!("{used} 11 deny 1:4 tenant=2 because=quota:1:7:4:10"), "denial");
    // What is not valid is refused, not denied: it claims nothing.
    check(&format!("{used} 11 deny 1:4 ttl=0 because=quota:1:7:4:10"), "denial-of-invalid");
    // The first in order of number is named; a soft one never.
    let two = "5 quota 1 class=1 soft=0\n5 quota 2 class=1 hard=0\n5 quota 3 class=1 hard=0\n";
    check(&format!("{two} 11 deny 1:4 because=quota:2:0:4:0"), "ok");
    check(&format!("{two} 11 deny 1:4 because=quota:3:0:4:0"), "denial");
}

#[test]
fn a_quota_that_depends_on_the_node_filters_the_candidates() {
    let each = "5 quota 1 class=1 node=each hard=7\n10 grant 1 node=2 1:7:1\n";
    // Node 1 would do; but the record does not say whether node 2 was asked for.
    check(&format!("{each} 11 deny 1:7 because=quota:1:7:7:7"), "ok");
    check(&format!("{each} 11 deny 1:7 because=quota:1:0:7:7"), "denial");
    check(&format!("{each} 11 grant 2 1:7:1 \n 12 deny 1:7 because=quota:1:7:7:7"), "ok");
    check("5 quota 1 class=1 node=1 hard=0\n5 drain 2\n10 deny 1:7 because=quota:1:0:7:0", "ok");
    check("5 quota 1 class=1 pool=1 hard=3\n10 deny 1:7 because=quota:1:0:7:3", "ok");
}

#[test]
fn a_denial_for_want_of_room_states_the_most_free() {
    let used = "10 grant 1 1:14:11\n10 grant 2 node=2 1:7:1\n";
    check(&format!("{used} 11 deny 1:21 because=capacity:1:21:14"), "ok");
    check(&format!("{used} 11 deny 1:21 because=capacity:1:21:15"), "denial");
    check(&format!("{used} 11 deny 1:14 because=capacity:1:14:14"), "denial");
    // Enough in sum, but in pieces: what one device has left is told.
    let pieces = "5 drain 1\n10 grant 1 node=2 1:4:1\n10 grant 2 node=2 1:4:10\n";
    check(&format!("{pieces} 11 deny 1:4 because=capacity:1:4:3"), "ok");
    check(&format!("{pieces} 11 deny 1:4 because=capacity:1:4:6"), "denial");
    check("5 drain 1\n5 drain 2\n11 deny 1:4 because=capacity:1:4:0", "ok");
    // Devices come first; the ask that no node could hold alone is named.
    check("10 deny 2:999999 1:7 because=capacity:2:999999:102400", "ok");
    check("10 deny 2:999999 1:35 because=capacity:1:35:28", "ok");
    check("5 pool 2\n10 deny 1:4 pool=2 because=capacity:1:4:0", "ok");
    check("10 deny 1:4 pool=2 because=capacity:1:4:0", "denial-of-invalid");
}
