//! Several classes at once: a small gang on one node, all or none (SEMANTICS 3).

use crate::support::check;
use expect_test::expect;

#[test]
fn all_classes_come_from_one_node() {
    check(
        "
        0 a grant core 5 gpu 1 cpu 500m
        0 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn all_or_none() {
    check(
        "
        0 a grant cpu 8
        1 a grant gpu 1 cpu 1
        1 show leases
        1 show capacity
        ",
        expect![[""]],
    );
}

#[test]
fn enough_of_each_but_on_different_nodes_is_not_enough() {
    check(
        "
        0 a grant core 150 node=n1
        1 a grant gpu 1 core 100
        ",
        expect![[""]],
    );
}

#[test]
fn an_involuntary_end_of_one_member_revokes_the_others() {
    check(
        "
        0 a grant gpu 1 cpu 1 core 1
        10 op revoke #1 grace=30s
        10 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn a_member_that_was_given_back_is_not_revoked() {
    check(
        "
        0 a grant gpu 1 cpu 1 core 1
        5 a release #2
        10 op revoke #0 #1 grace=30s
        11 op revoke #2
        ",
        expect![[""]],
    );
}

#[test]
fn giving_one_member_back_leaves_the_others() {
    check(
        "
        0 a grant gpu 1 cpu 1
        5 a release #0
        5 show leases
        6 a renew #1 ttl=2h
        ",
        expect![[""]],
    );
}

#[test]
fn a_lost_node_takes_the_whole_gang() {
    check(
        "
        0 a grant gpu 1 cpu 1
        50 op lose n1 seen=20
        ",
        expect![[""]],
    );
}

#[test]
fn two_members_named_are_revoked_once() {
    check(
        "
        0 a grant gpu 1 cpu 1
        0 b grant core 1
        5 op revoke #2 #1 #0 grace=0s
        ",
        expect![[""]],
    );
}
