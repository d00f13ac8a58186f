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
        expect![[r#"
            0 a granted #0 gpu 7[0] #1 cpu 500 #2 core 5 on n1 to 3600
              #0 active gpu 7 0..3600
              #1 active cpu 500 0..3600
              #2 active core 5 0..3600
        "#]],
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
        expect![[r#"
            0 a granted #0 cpu 8000 on n1 to 3600
            1 a denied: cpu requested 1000, most free 0
              #0 active cpu 8000 0..3600
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: held 8000
              n1 core: idle 200
              n2 core: idle 200
        "#]],
    );
}

#[test]
fn enough_of_each_but_on_different_nodes_is_not_enough() {
    check(
        "
        0 a grant core 150 node=n1
        1 a grant gpu 1 core 100
        ",
        expect![[r#"
            0 a granted #0 core 150 on n1 to 3600
            1 a denied: gpu requested 7, most free 7
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] #1 cpu 1000 #2 core 1 on n1 to 3600
            10 a revoked #0 #1 #2, grace 30s (operator)
              #0 revoking gpu 7 0..3600 grace to 40
              #1 revoking cpu 1000 0..3600 grace to 40
              #2 revoking core 1 0..3600 grace to 40
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] #1 cpu 1000 #2 core 1 on n1 to 3600
            5 a released #2
            10 a revoked #0 #1, grace 30s (operator)
            11 refused: lease_released
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] #1 cpu 1000 on n1 to 3600
            5 a released #0
              #0 releasing gpu 7 0..3600 ended 5, teardown to 125
              #1 active cpu 1000 0..3600
            6 a renewed #1 to 7206
        "#]],
    );
}

#[test]
fn a_lost_node_takes_the_whole_gang() {
    check(
        "
        0 a grant gpu 1 cpu 1
        50 op lose n1 seen=20
        ",
        expect![[r#"
            0 a granted #0 gpu 7[0] #1 cpu 1000 on n1 to 3600
            50 - lost n1, last seen 20
            50 a revoked #0 #1, grace 0s (node_lost)
            50 a teardown of #0 #1, grace_ended (node_lost) since 20
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] #1 cpu 1000 on n1 to 3600
            0 b granted #2 core 1 on n1 to 3600
            5 a revoked #0 #1, grace 0s (operator)
            5 b revoked #2, grace 0s (operator)
        "#]],
    );
}
