//! Claims on nodes, sensitive work on them, and the wipe that follows (SEMANTICS 10).

use crate::language::check;

/// A second user of tenant 1, one of tenant 2; node 1 is claimed by the first.
const CLAIMED: &str = "
    1 user 2 tenant=1
    1 user 3 tenant=2
    10 claim 1 user=1
";

#[test]
fn a_claim_is_some_users_own() {
    check("10 claim 1 user=1", "ok");
    check("10 claim 1 2 user=1", "ok");
    check("10 claim 1", "claim");
    check("10 claim 1 user=2", "unknown-user");
    check("10 claim 1 tenant=2 user=1", "unknown-user");
    check("10 claim 1 project=2 user=1", "unknown-project");
    check("10 claim 1 tenant=3 user=1", "unknown-tenant");
    check("10 claim user=1", "claim");
    check("10 claim 2 1 user=1", "claim");
    check("10 claim 1 1 user=1", "claim");
    check("10 claim 1 3 user=1", "claim");
}

#[test]
fn only_an_empty_node_in_service_that_nobody_has_is_claimed() {
    check(&format!("{CLAIMED} 20 claim 1 user=2"), "claim");
    check(&format!("{CLAIMED} 20 claim 1 tenant=2 user=3"), "claim");
    check(&format!("{CLAIMED} 20 claim 2 tenant=2 user=3"), "ok");
    // An operator may claim a drained node; the same append must resume it.
    check("5 drain 1\n10 claim 1 user=1\n11 drain 2", "follows");
    check("5 lost 1 seen=4\n10 claim 1 user=1", "claim");
    check("5 grant 1 1:7:1\n10 claim 1 user=1", "claim");
    check("5 grant 1 1:7:1\n6 release 1\n10 claim 1 user=1", "claim");
    check("5 grant 1 1:7:1\n6 release 1\n7 torn_down 1\n10 claim 1 user=1", "ok");
    // What is fenced is still there, the operator's or not.
    check("5 grant 1 1:7:1\n6 release 1\n106 fence 1\n110 claim 1 user=1", "claim");
}

#[test]
fn the_sensitive_pool_counts_what_is_claimed_and_what_is_wiped() {
    check("5 sensitive size=1\n10 claim 1 2 user=1", "claim");
    check("5 sensitive size=2\n10 claim 1 2 user=1", "ok");
    check("5 sensitive size=1\n10 claim 1 user=1\n20 claim 2 user=1", "claim");
    check("5 sensitive size=1\n10 claim 1 user=1\n20 giveback 1 user=1\n30 claim 2 user=1", "claim");
    check("5 sensitive size=1\n10 claim 1 user=1\n20 giveback 1 user=1\n25 wiped 1\n30 claim 2 user=1", "ok");
    check("5 sensitive size=1\n6 sensitive\n10 claim 1 2 user=1", "ok");
    check("5 sensitive size=1\n6 sensitive size=1", "settings");
}

#[test]
fn quotas_on_nodes_count_claims() {
    check("5 quota 1 measure=nodes hard=1\n10 claim 1 2 user=1", "claim");
    check("5 quota 1 measure=nodes hard=1\n10 claim 1 user=1\n20 claim 2 user=1", "claim");
    check("5 quota 1 measure=nodes hard=1\n10 claim 1 user=1\n20 giveback 1 user=1\n20 claim 2 user=1", "ok");
    check("5 quota 1 measure=nodes soft=1\n10 claim 1 2 user=1", "ok");
    check("5 quota 1 measure=nodes hard=1 tenant=2\n10 claim 1 2 user=1", "ok");
    check("5 quota 1 measure=nodes hard=0 project=3\n10 claim 1 user=1", "ok");
    check("5 quota 1 measure=nodes hard=0 project=3\n10 claim 1 user=1 project=3", "claim");
    check("5 quota 1 measure=nodes hard=0 class=1\n10 claim 1 user=1", "claim");
    check("5 quota 1 class=1 hard=13\n10 claim 1 user=1", "claim");
    check("1 started rules=3\n5 quota 1 measure=nodes hard=0 class=1\n10 claim 1 user=1", "ok");
    check("5 quota 1 measure=nodes hard=0 priority=standard\n10 claim 1 user=1", "ok");
    check("5 quota 1 measure=nodes hard=0 node=2\n10 claim 1 user=1", "ok");
    check("5 quota 1 measure=nodes hard=0 node=1\n10 claim 1 user=1", "claim");
    // A claim has no end: it never goes into a burst.
    check("5 quota 1 measure=nodes burst=1:2:100\n10 claim 1 2 user=1", "claim");
    // The node is the tenant's already; another would be one more.
    let one = "5 quota 1 measure=nodes hard=1\n10 claim 1 user=1\n";
    check(&format!("{one} 20 grant 1 1:7:1 sensitive user=1"), "ok");
    check(&format!("{one} 20 grant 1 1:7:1 node=2"), "quota");
}

#[test]
fn a_claimed_node_is_for_its_users_sensitive_work_alone() {
    check(&format!("{CLAIMED} 20 grant 1 1:7:1 sensitive user=1"), "ok");
    check(&format!("{CLAIMED} 20 grant 1 1:7:1 sensitive user=1 project=3"), "ok");
    check(&format!("{CLAIMED} 20 grant 1 1:7:1 sensitive user=2"), "custody");
    check(&format!("{CLAIMED} 20 grant 1 1:7:1 sensitive tenant=2 user=3"), "custody");
    check(&format!("{CLAIMED} 20 grant 1 1:7:1 user=1"), "custody");
    check(&format!("{CLAIMED} 20 grant 1 1:7:1 sensitive user=1 node=2"), "custody");
    check(&format!("{CLAIMED} 20 grant 1 1:7:1 node=2"), "ok");
    check(&format!("{CLAIMED} 20 drain 1 \n 20 grant 1 1:7:1 sensitive user=1"), "node-offline");
    // The other node alone counts as room for ordinary work.
    check(&format!("{CLAIMED} 20 deny 1:28 because=capacity:1:28:14"), "ok");
    check(&format!("{CLAIMED} 20 deny 1:35 user=1 because=capacity:1:35:28"), "ok");
    check(&format!("{CLAIMED} 20 deny 1:35 because=capacity:1:35:28"), "denial");
}

#[test]
fn given_back_by_its_holder_when_nothing_runs_on_it() {
    check(&format!("{CLAIMED} 20 giveback 1 user=1"), "ok");
    check(&format!("{CLAIMED} 20 giveback 2 user=1"), "node-release");
    check(&format!("{CLAIMED} 20 giveback 1 user=2"), "node-release");
    check(&format!("{CLAIMED} 20 giveback 1 user=1 project=3"), "node-release");
    check(&format!("{CLAIMED} 20 giveback 1"), "node-release");
    check(&format!("{CLAIMED} 15 claim 2 user=2 \n 20 giveback 1 2 user=1"), "node-release");
    check(&format!("{CLAIMED} 15 claim 2 user=1 \n 20 giveback 1 2 user=1"), "ok");
    let runs = format!("{CLAIMED} 15 grant 1 1:7:1 sensitive user=1 \n");
    check(&format!("{runs} 20 giveback 1 user=1"), "node-release");
    check(&format!("{runs} 16 release 1 \n 20 giveback 1 user=1"), "node-release");
    check(&format!("{runs} 16 release 1 \n 17 torn_down 1 \n 20 giveback 1 user=1"), "ok");
    check(&format!("{runs} 16 release 1 \n 116 fence 1 \n 120 giveback 1 user=1"), "ok");
}

#[test]
fn a_wipe_ends_in_time_or_the_node_is_out_of_reach() {
    let given_back = format!("{CLAIMED} 20 giveback 1 user=1 \n");
    check(&format!("{given_back} 30 grant 1 1:7:1"), "custody");
    check(&format!("{given_back} 30 grant 1 1:7:1 sensitive user=1"), "custody");
    check(&format!("{given_back} 30 wiped 1 \n 31 grant 1 1:7:1"), "ok");
    check(&format!("{given_back} 30 wiped 1 \n 31 wiped 1"), "custody");
    check(&format!("{given_back} 30 quarantine 1 \n 31 grant 1 1:7:1"), "custody");
    check(&format!("{given_back} 30 quarantine 1 \n 31 wiped 1"), "custody");
    check(&format!("{given_back} 30 quarantine 1 \n 31 cleared 1 \n 32 grant 1 1:7:1"), "ok");
    check(&format!("{given_back} 30 cleared 1"), "custody");
    check(&format!("{CLAIMED} 30 wiped 1"), "custody");
    check(&format!("{given_back} 1819 wiped 1"), "ok");
    check(&format!("{given_back} 1820 wiped 1"), "timer-missed");
    check(&format!("{given_back} 1819 quarantine 1 late"), "timer-not-due");
    check(&format!("{given_back} 1820 quarantine 1 late \n 1820 heartbeat"), "ok");
    check(&format!("{given_back} 1900 quarantine 1 late @1820"), "ok");
    check(&format!("{given_back} 1900 quarantine 1 late"), "timer-effective");
    // Our outage must not quarantine the cluster.
    check(&format!("{given_back} 1000 started \n 2799 heartbeat"), "ok");
    check(&format!("{given_back} 1000 started \n 2800 heartbeat"), "timer-missed");
    check(&format!("{given_back} 1900 started \n 3699 wiped 1"), "ok");
}

#[test]
fn timers_of_wipes_come_after_those_of_leases_and_before_bursts() {
    let both = "
        10 claim 1 user=1
        20 giveback 1 user=1
        20 quota 1 class=1 burst=0:14:1790
        20 grant 1 1:7:1 node=2 ttl=10
        30 expire 1 closed
    ";
    check(&format!("{both} 1820 quarantine 1 late \n 1820 burst_ended 1"), "ok");
    check(&format!("{both} 1820 burst_ended 1"), "timer-order");
    let expiry = "10 claim 1 user=1\n20 giveback 1 user=1\n20 grant 1 1:7:1 node=2 ttl=1800\n";
    check(&format!("{expiry} 1820 expire 1 closed \n 1820 quarantine 1 late"), "ok");
    check(&format!("{expiry} 1820 quarantine 1 late"), "timer-order");
}

#[test]
fn what_is_claimed_or_wiped_stays_as_it_is() {
    check(&format!("{CLAIMED} 20 node 1 1:28 2:102400 immediate"), "ok");
    check(&format!("{CLAIMED} 20 node 1 1:35 2:102400"), "in-custody");
    check(&format!("{CLAIMED} 15 pool 2 \n 20 node 1 1:28 2:102400 pool=2"), "in-custody");
    check(&format!("{CLAIMED} 20 delete node 1"), "in-custody");
    let given_back = format!("{CLAIMED} 20 giveback 1 user=1 \n");
    check(&format!("{given_back} 30 delete node 1"), "in-custody");
    check(&format!("{given_back} 30 node 1 1:35 2:102400"), "in-custody");
    check(&format!("{given_back} 30 quarantine 1 \n 40 delete node 1"), "ok");
    check(&format!("{CLAIMED} 20 delete user 1"), "has-claims");
    check(&format!("{CLAIMED} 20 delete user 2"), "ok");
    check(&format!("{CLAIMED} 20 delete project 1"), "has-claims");
    check(&format!("{CLAIMED} 20 delete project 3"), "ok");
    check(&format!("{CLAIMED} 20 delete tenant 1"), "has-claims");
    check(&format!("{given_back} 30 delete tenant 1"), "ok");
}
