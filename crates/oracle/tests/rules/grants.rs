//! Grants: what is named exists, capacity and devices are there, the terms are allowed (SEMANTICS 1, 4).

use crate::language::check;

#[test]
fn everything_a_grant_names_exists_and_belongs_together() {
    check("10 grant 1 1:7:1", "ok");
    check("10 grant 1 1:7:1 tenant=3", "unknown-tenant");
    check("10 grant 1 1:7:1 project=2", "unknown-project");
    check("10 grant 1 1:7:1 user=1", "ok");
    check("10 grant 1 1:7:1 tenant=2 user=1", "unknown-user");
    check("10 grant 1 1:7:1 sensitive", "sensitive-user");
    check("10 grant 1 1:7:1 sensitive user=1", "custody");
    check("10 grant 1 1:7:1 pool=2", "unknown-pool");
    check("10 grant 1 1:7:1 node=3", "unknown-node");
    check("10 grant 1 3:7:1", "unknown-class");
    check("5 pool 2\n10 grant 1 1:7:1 pool=2", "wrong-pool");
}

#[test]
fn drained_and_lost_nodes_take_no_new_work() {
    check("5 drain 1\n10 grant 1 1:7:1", "node-offline");
    check("5 drain 1\n6 resume 1\n10 grant 1 1:7:1", "ok");
    check("5 lost 1 seen=4\n10 grant 1 1:7:1", "node-offline");
    check("5 lost 1 seen=4\n6 returned 1\n10 grant 1 1:7:1", "ok");
    check("5 drain 1\n6 lost 1 seen=4\n7 returned 1\n10 grant 1 1:7:1", "node-offline");
}

#[test]
fn lease_numbers_follow_on() {
    check("10 grant 0 1:7:1\n10 grant 1 1:7:10", "ok");
    check("10 grant 1 1:7:1 2:5\n10 grant 3 1:7:10", "ok");
    check("10 grant 1 1:7:1 2:5\n10 grant 2 1:7:10", "number");
    check("10 grant 1 1:7:1\n10 grant 3 1:7:10", "number");
    check("10 grant 2 1:7:1", "number");
}

#[test]
fn members_are_some_of_different_classes() {
    check("10 grant 1 1:0:0", "members");
    check("10 grant 1 2:5 2:6", "members");
    check("10 grant 1", "members");
}

#[test]
fn up_to_one_unit_lies_on_the_fullest_device_with_room() {
    check("10 grant 1 1:3:1", "ok");
    check("10 grant 1 1:3:10", "devices");
    check("10 grant 1 1:3:0", "devices");
    check("10 grant 1 1:3:1\n11 grant 2 1:4:1", "ok");
    check("10 grant 1 1:3:1\n11 grant 2 1:5:10", "ok");
    check("10 grant 1 1:3:1\n11 grant 2 1:4:10", "devices");
    check("10 grant 1 1:3:1\n11 grant 2 1:5:10\n12 grant 3 1:2:10", "ok");
    check("10 grant 1 1:3:1\n11 grant 2 1:5:10\n12 grant 3 1:2:1", "devices");
    check("10 grant 1 1:3:1\n11 grant 2 1:5:10\n12 grant 3 1:4:1", "ok");
}

#[test]
fn more_than_one_unit_takes_whole_free_devices_lowest_first() {
    check("10 grant 1 1:14:11", "ok");
    check("10 grant 1 1:14:110", "devices");
    check("10 grant 1 1:1:1\n11 grant 2 1:21:1110", "ok");
    check("10 grant 1 1:1:1\n11 grant 2 1:28:1111", "capacity");
    check("10 grant 1 1:10:11", "capacity");
    // Two GPUs, each 3/7 in use, cannot grant a whole one.
    let sliced = "10 grant 1 node=2 1:4:1\n10 grant 2 node=2 1:4:10\n10 grant 3 node=2 1:1:1\n";
    check(&format!("{sliced} 11 grant 4 node=2 1:3:10"), "ok");
    check(&format!("{sliced} 11 grant 4 node=2 1:4:10"), "capacity");
    check("10 grant 1 2:5:1", "devices");
}

#[test]
fn capacity_is_taken_until_teardown_is_confirmed_or_a_fence_cleared() {
    let full = "10 grant 1 1:28:1111 ttl=40\n";
    check(&format!("{full} 11 grant 2 1:1:1"), "capacity");
    check(&format!("{full} 11 release 1 \n 12 grant 2 1:1:1"), "capacity");
    check(&format!("{full} 11 release 1 \n 12 torn_down 1 \n 13 grant 2 1:1:1"), "ok");
    check(&format!("{full} 50 expire 1 \n 60 grant 2 1:1:1"), "capacity");
    check(&format!("{full} 50 expire 1 \n 150 fence 1 \n 160 grant 2 1:1:1"), "capacity");
    check(&format!("{full} 50 expire 1 \n 150 fence 1 \n 160 unfence 1 \n 161 grant 2 1:1:1"), "ok");
    check("10 grant 1 node=2 1:14:11\n11 release 1 closed\n12 grant 2 node=2 1:14:11", "ok");
    check("10 grant 1 2:102400\n11 grant 2 2:1", "capacity");
}

#[test]
fn priority_and_ttl_stay_within_what_is_allowed() {
    check("10 grant 1 1:7:1 priority=guaranteed", "ok");
    check("10 grant 1 tenant=2 1:7:1 priority=guaranteed", "priority");
    check("10 grant 1 tenant=2 1:7:1 priority=scavenger", "ok");
    check("10 grant 1 1:7:1 ttl=0", "ttl");
    check("10 grant 1 1:7:1 ttl=1000000", "ok");
    check("10 grant 1 1:7:1 ttl=1000001", "ttl");
    // A pool's own cap counts instead of the setting, in both directions.
    check("5 pool 1 ttl_max=50\n10 grant 1 1:7:1 ttl=51", "ttl");
    check("5 pool 1 ttl_max=2000000\n10 grant 1 1:7:1 ttl=2000000", "ok");
    check("5 pool 1 lifetime_max=50\n10 grant 1 1:7:1 ttl=51", "ttl");
}
