//! Devices are real (SEMANTICS 1).

use crate::support::check;
use expect_test::expect;

#[test]
fn two_gpus_each_three_sevenths_in_use_cannot_grant_a_whole_one() {
    check(
        "
        0 a grant gpu 4/7
        0 a grant gpu 3/7
        0 a grant gpu 3/7
        0 a release #0
        0 op confirm n1 #0
        1 show capacity
        1 a grant gpu 1
        1 a grant gpu 4/7
        1 a grant gpu 4/7
        1 show capacity
        ",
        expect![[r#"
            0 a granted #0 gpu 4[0] on n1 to 3600
            0 a granted #1 gpu 3[0] on n1 to 3600
            0 a granted #2 gpu 3[1] on n1 to 3600
            0 a released #0
            0 a torn down #0 on n1
              n1 gpu: held 6, idle 8 devices [3, 3]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
            1 a denied: gpu requested 7, most free 4
            1 a granted #3 gpu 4[0] on n1 to 3601
            1 a granted #4 gpu 4[1] on n1 to 3601
              n1 gpu: held 14 devices [7, 7]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 4[0] on n1 to 3600
            0 a granted #1 gpu 4[1] on n1 to 3600
            0 a denied: gpu requested 4, most free 3
              n1 gpu: held 8, idle 6 devices [4, 4]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 5[0] on n1 to 3600
            0 a granted #1 gpu 3[1] on n1 to 3600
            0 a granted #2 gpu 2[0] on n1 to 3600
            0 a granted #3 gpu 4[1] on n1 to 3600
            0 a denied: gpu requested 1, most free 0
              n1 gpu: held 14 devices [7, 7]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
        "#]],
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
        expect![[r#"
            0 - node.put
            0 a granted #0 gpu 1[0] on n3 to 3600
            0 a granted #1 gpu 21[1,2,3] on n3 to 3600
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
              n3 gpu: held 22, idle 6 devices [1, 7, 7, 7]
            1 refused: not_whole_devices
            1 a granted #2 gpu 14[0,1] on n1 to 3601
        "#]],
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
        expect![[r#"
            0 - node.put
            0 a granted #0 gpu 3[0] on n3 to 3600
            0 b granted #1 gpu 4[0] on n3 to 3600
            1 a released #0, closed
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
              n3 gpu: held 4, idle 3 devices [4]
            1 a denied: gpu requested 7, most free 3
            2 b released #1, closed
            2 a granted #2 gpu 7[0] on n3 to 3602
        "#]],
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
        expect![[r#"
            0 - class.put
            0 - node.put
            0 a granted #0 one 64[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63] on n3 to 3600
            0 refused: too_many_devices
        "#]],
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
        expect![[r#"
            0 - node.put
            0 - node.put
            0 a granted #0 core 10 on n3 to 3600
            0 a granted #1 core 45 on n4 to 3600
            0 a granted #2 core 41 on n1 to 3600
            0 a granted #3 core 40 on n3 to 3600
        "#]],
    );
}
