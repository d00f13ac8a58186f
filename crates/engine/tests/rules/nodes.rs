//! Draining, losing and changing nodes (SEMANTICS 3).

use crate::support::check;
use expect_test::expect;

#[test]
fn a_drained_node_keeps_what_runs_and_takes_nothing_new() {
    check(
        "
        0 a grant core 10 node=n2
        10 op drain n2
        10 show capacity
        11 a grant core 1 node=n2
        11 a grant core 1
        12 a renew #0 ttl=2h
        13 a release #0
        13 show capacity
        14 op drain n2
        15 op resume n2
        15 a grant core 1 node=n2
        16 op resume n2
        ",
        expect![[""]],
    );
}

#[test]
fn a_lost_node_bills_up_to_when_it_was_last_seen() {
    check(
        "
        0 a grant core 10 node=n1
        5 b grant core 10 node=n1
        100 op lose n1 seen=40
        100 show leases
        100 show capacity
        101 op lose n1 seen=40
        220
        220 show capacity
        230 op return n1
        230 op unfence #0 #1
        230 show capacity
        231 op return n1
        ",
        expect![[""]],
    );
}

#[test]
fn what_was_granted_after_it_was_last_seen_bills_nothing() {
    check(
        "
        0 a grant core 10 node=n1
        50 a grant core 10 node=n1
        100 op lose n1 seen=40
        100 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn a_lost_node_ends_revoking_leases_too_and_leaves_those_that_had_ended() {
    check(
        "
        0 a grant core 1 node=n1
        0 a grant core 1 node=n1
        0 a grant core 1 node=n1
        10 op revoke #0 grace=10m
        20 a release #1
        100 op lose n1 seen=15
        100 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn a_lost_node_without_an_agent_has_nothing_left_to_confirm() {
    check(
        "
        0 a grant core 10 node=n2
        100 op lose n2 seen=40
        100 show leases
        100 show capacity
        110 a grant core 1 node=n2
        120 op return n2
        120 a grant core 1 node=n2
        ",
        expect![[""]],
    );
}

#[test]
fn losing_an_empty_node() {
    check("10 op lose n1 seen=10", expect![[""]]);
}

#[test]
fn drained_and_lost_are_two_things() {
    check(
        "
        0 op drain n2
        1 op lose n2 seen=1
        2 op return n2
        2 a grant core 1 node=n2
        3 op resume n2
        3 a grant core 1 node=n2
        ",
        expect![[""]],
    );
}

#[test]
fn a_node_may_grow_and_shrink_but_not_below_what_is_leased() {
    check(
        "
        0 a grant core 150 node=n2
        1 op node n2 immediate core 149
        2 op node n2 immediate core 150
        2 show capacity
        3 op node n2 immediate core 300
        3 a grant core 150 node=n2
        4 op node n2 immediate
        5 a release #0 #1
        5 op node n2 immediate
        5 show capacity
        ",
        expect![[""]],
    );
}

#[test]
fn a_device_in_use_cannot_be_taken_away() {
    check(
        "
        0 op node n3 immediate gpu 3
        0 a grant gpu 1 node=n3
        0 a grant gpu 1 node=n3
        0 a release #0
        1 op node n3 immediate gpu 1
        2 op node n3 immediate gpu 2
        2 a grant gpu 1 node=n3
        2 show capacity
        ",
        expect![[""]],
    );
}

#[test]
fn a_node_with_leases_is_neither_deleted_nor_moved() {
    check(
        "
        0 op pool other
        0 a grant core 1 node=n1
        1 op delete node n1
        1 op node n1 pool=other core 200 gpu 2 cpu 8
        2 a release #0
        3 op delete node n1
        4 op confirm n1 #0
        5 op node n1 pool=other core 200
        6 op delete pool other
        7 op delete node n1
        8 op delete pool other
        ",
        expect![[""]],
    );
}

#[test]
fn a_fenced_lease_keeps_its_node_from_being_deleted() {
    check(
        "
        0 a grant core 1 node=n1
        0 a release #0
        120 op delete node n1
        121 op unfence #0
        121 op delete node n1
        ",
        expect![[""]],
    );
}
