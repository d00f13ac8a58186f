//! Devices are real (SEMANTICS 1).

use crate::support::check;
use expect_test::expect;

#[test]
fn two_gpus_each_three_sevenths_in_use_cannot_grant_a_whole_one() {
    check(
        "
        0 a grant gpu 3/7
        0 a grant gpu 5/7
        0 a grant gpu 3/7
        0 op revoke #1 grace=0s
        0
        0 op confirm n1 #1
        1 show capacity
        1 a grant gpu 1
        1 a grant gpu 4/7
        1 a grant gpu 4/7
        1 show capacity
        ",
        expect![[""]],
    );
}

#[test]
fn a_slice_lies_inside_one_device() {
    check(
        "
        0 a grant gpu 4/7
        0 a grant gpu 4/7
        0 a grant gpu 4/7
        0 show capacity
        ",
        expect![[""]],
    );
}

#[test]
fn slices_fill_the_fullest_device_they_fit_into() {
    check(
        "
        0 a grant gpu 5/7
        0 a grant gpu 3/7
        0 a grant gpu 2/7
        0 a grant gpu 4/7
        0 a grant gpu 1/7
        0 show capacity
        ",
        expect![[""]],
    );
}

#[test]
fn several_units_take_whole_devices() {
    check(
        "
        0 op node n3 gpu 4
        0 a grant gpu 1/7 node=n3
        0 a grant gpu 3 node=n3
        0 show capacity
        1 a grant gpu 8q node=n1
        1 a grant gpu 2 node=n1
        ",
        expect![[""]],
    );
}

#[test]
fn two_leases_share_a_device_and_leave_it_one_by_one() {
    check(
        "
        0 op node n3 immediate gpu 1
        0 a grant gpu 3/7 node=n3
        0 b grant gpu 4/7 node=n3
        1 a release #0
        1 show capacity
        1 a grant gpu 1 node=n3
        2 b release #1
        2 a grant gpu 1 node=n3
        ",
        expect![[""]],
    );
}

#[test]
fn sixty_four_devices_are_the_most() {
    check(
        "
        0 op class one kind=gpu per=1
        0 op node n3 immediate one 64
        0 a grant one 64 node=n3
        0 op node n4 one 65
        ",
        expect![[""]],
    );
}

#[test]
fn the_best_fit_wins_then_the_lower_number() {
    check(
        "
        0 op node n3 core 50
        0 op node n4 core 50
        0 a grant core 10
        0 a grant core 45
        0 a grant core 41
        0 a grant core 40
        ",
        expect![[""]],
    );
}
