//! What may be put and deleted when (SEMANTICS 1, 3, 4).

use crate::language::check;

#[test]
fn deletion_waits_for_leases() {
    let live = "10 grant 1 1:7:1\n";
    check(&format!("{live} 20 delete tenant 1"), "tenant-has-leases");
    check(&format!("{live} 20 delete project 1"), "project-has-leases");
    check(&format!("{live} 20 delete project 3"), "ok");
    check(&format!("{live} 20 delete node 1"), "node-has-leases");
    check(&format!("{live} 20 delete node 2"), "ok");
    check(&format!("{live} 20 release 1 \n 30 delete tenant 1"), "tenant-has-leases");
    check(&format!("{live} 20 release 1 \n 30 torn_down 1 \n 40 delete tenant 1"), "ok");
    check(&format!("{live} 20 release 1 \n 30 torn_down 1 \n 40 delete node 1"), "ok");
    // Fenced capacity is the operator's, not the tenant's; but it is still on the node.
    let fenced = format!("{live} 20 release 1 \n 120 fence 1 \n");
    check(&format!("{fenced} 130 delete tenant 1 \n 140 unfence 1"), "ok");
    check(&format!("{fenced} 130 delete node 1"), "node-has-leases");
}

#[test]
fn a_tenant_takes_what_is_its_own_along() {
    check("10 delete tenant 1\n11 grant 1 1:7:1", "unknown-tenant");
    check("10 delete tenant 1\n11 tenant 1", "number");
    check("10 delete tenant 1\n11 tenant 3 name=tenant-1\n12 project 4 tenant=3 name=project-1", "ok");
    check("10 delete tenant 1\n11 delete project 1", "unknown-project");
    check("10 delete tenant 1\n11 delete user 1", "unknown-user");
    check("5 quota 1 class=1 hard=3\n10 delete tenant 1\n11 delete quota 1", "unknown-quota");
    check("5 quota 1 project=1 class=1 hard=3\n10 delete project 1\n11 delete quota 1", "unknown-quota");
    check("5 quota 1 class=1 hard=3\n10 delete project 1\n11 delete quota 1", "ok");
}

#[test]
fn a_node_does_not_shrink_below_its_use() {
    check("10 grant 1 2:100\n20 node 1 1:28 2:100", "ok");
    check("10 grant 1 2:100\n20 node 1 1:28 2:99", "node-too-small");
    check("10 grant 1 2:100\n20 node 1 1:28", "node-too-small");
    check("10 grant 1 2:100\n20 release 1\n21 node 1 1:28", "node-too-small");
    // Nor does a device go on which a lease lies.
    let second = "10 grant 1 1:7:1\n10 grant 2 1:7:10\n20 release 1\n30 torn_down 1\n";
    check(&format!("{second} 40 node 1 1:14"), "ok");
    check(&format!("{second} 40 node 1 1:7"), "node-too-small");
}

#[test]
fn capacity_lists_make_sense() {
    check("5 node 3 1:7 2:5", "ok");
    check("5 node 3 1:8", "node-limits");
    check("5 node 3 1:455", "node-limits");
    check("5 node 3 2:5 2:6", "node-limits");
    check("5 node 3 3:5", "unknown-class");
    check("5 node 3 pool=2 2:5", "unknown-pool");
}

#[test]
fn a_class_in_use_stays_what_it_is() {
    check("5 class 1 gpu 8", "class-in-use");
    check("5 class 1 mem 7", "class-in-use");
    check("5 class 1 gpu 7 name=h100", "ok");
    check("5 class 3 cpu 1000\n6 class 3 cpu 100", "ok");
    check("5 class 3 cpu 0", "class");
}

#[test]
fn names_and_numbers_are_given_once() {
    check("5 tenant 3 name=tenant-1", "name-taken");
    check("5 project 4 tenant=1 name=project-1", "name-taken");
    check("5 project 4 tenant=2 name=project-1", "ok");
    check("5 project 5 tenant=2", "number");
    check("5 project 1 tenant=2", "tenant-fixed");
    check("5 user 1 tenant=2", "tenant-fixed");
    check("5 pool 2\n6 delete pool 2\n7 pool 2", "number");
    check("5 delete pool 1", "pool-has-nodes");
    check("5 delete pool 9", "unknown-pool");
}

#[test]
fn node_states_change_when_they_are_others() {
    check("5 drain 1\n6 drain 1", "node-already");
    check("5 resume 1", "node-already");
    check("5 returned 1", "node-already");
    check("5 lost 1 seen=5\n6 lost 1 seen=5", "node-already");
    check("5 drain 9", "unknown-node");
}

#[test]
fn quotas_are_sound() {
    check("5 quota 1 hard=3", "quota-limit");
    check("5 quota 1 measure=leases hard=3", "ok");
    check("5 quota 1 class=1 burst=10:9:60", "quota-limit");
    check("5 quota 1 class=1 burst=10:10:0", "quota-limit");
    check("5 quota 1 class=1 node=each burst=10:20:60", "quota-limit");
    check("5 quota 1 class=1 node=2 burst=10:20:60", "ok");
    check("5 quota 1 class=1 project=2 hard=3", "unknown-project");
    check("5 quota 1 tenant=9 class=1 hard=3", "unknown-tenant");
    check("5 quota 1 class=1 node=9 hard=3", "unknown-node");
    check("5 quota 1 class=1 hard=3\n6 quota 1 class=2 hard=3", "scope-fixed");
    check("5 quota 1 class=1 hard=3\n6 quota 1 class=1 soft=3", "ok");
    check("5 settings ttl_max=0", "settings");
}
