//! Capacity comes back only when the node confirms (SEMANTICS 3).

use crate::support::check;
use expect_test::expect;

#[test]
fn capacity_stays_away_until_the_node_confirms() {
    check(
        "
        0 a grant gpu 2
        10 a release #0
        11 b grant gpu 1
        11 show capacity
        12 op confirm n1 #0
        12 b grant gpu 1
        ",
        expect![[""]],
    );
}

#[test]
fn a_node_without_an_agent_gives_back_at_once() {
    check(
        "
        0 a grant core 200 node=n2
        10 a release #0
        10 b grant core 200 node=n2 ttl=60s
        70 a grant core 200 node=n2
        80 op revoke #2 grace=10s
        85 a ready #2
        86 b grant core 200 node=n2
        ",
        expect![[""]],
    );
}

#[test]
fn both_sorts_of_nodes_in_one_command() {
    check(
        "
        0 a grant core 1 node=n1
        0 a grant core 1 node=n2
        0 a grant core 1 node=n1
        0 a grant core 1 node=n2
        10 a release #0 #1
        20 op revoke #2 #3 grace=10s
        25 a ready #2 #3
        25 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn both_sorts_of_nodes_at_one_deadline() {
    check(
        "
        0 a grant core 1 node=n1 ttl=60s
        0 a grant core 1 node=n2 ttl=60s
        0 a grant core 1 node=n2 ttl=60s
        0 b grant core 1 node=n2 ttl=60s
        60
        ",
        expect![[""]],
    );
}

#[test]
fn the_teardown_deadline_runs_from_the_stamp_not_from_the_end() {
    check(
        "
        0 a grant core 1 node=n1 ttl=60s
        500
        619.999999999
        620
        ",
        expect![[""]],
    );
}

#[test]
fn confirming_at_the_deadline_itself_is_too_late() {
    check(
        "
        0 a grant core 1 node=n1
        10 a release #0
        130 op confirm n1 #0
        ",
        expect![[""]],
    );
}

#[test]
fn a_fence_leaves_the_tenants_quota_but_not_the_capacity() {
    check(
        "
        0 op quota q a core hard=150
        0 a grant core 150 node=n1
        10 a release #0
        11 a grant core 1 node=n2
        11 show quotas
        130
        130 show quotas
        130 a grant core 100 node=n1
        130 a grant core 50 node=n1
        130 show capacity
        200 op unfence #0
        200 show quotas
        200 show capacity
        ",
        expect![[""]],
    );
}

#[test]
fn our_outage_does_not_fence_the_cluster() {
    check(
        "
        0 a grant core 1 node=n1
        10 a release #0
        500 op started
        500
        500 show leases
        600 op confirm n1 #0
        ",
        expect![[""]],
    );
}

#[test]
fn a_shorter_teardown_deadline_holds_for_what_ends_after_it() {
    check(
        "
        0 a grant core 1 node=n1
        0 a grant core 1 node=n1
        10 a release #0
        20 op settings teardown=30s
        30 a release #1
        30 show leases
        60
        ",
        expect![[""]],
    );
}
