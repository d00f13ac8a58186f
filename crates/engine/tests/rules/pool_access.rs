//! Which waiting work goes behind that of others of its priority: soft quotas, and the access of projects to pools
//! (SEMANTICS 11 "Quotas"). And fair share by core time on pools without GPUs ("Waiting").

use crate::support::check_on;
use expect_test::expect;

const ONE: &str = "
    0 op class gpu kind=gpu per=1
    0 op class core kind=cpu per=1
    0 op pool main grace=60s
    0 op pool cpus grace=60s
    0 op node n1 pool=main gpu 4 core 8 immediate
    0 op node n2 pool=cpus core 8 immediate
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op project a/a
    0 op project a/z
    0 op project b/b
";

/// `a` was over its soft quota at the last whole minute, so that its work waits behind that of `b`, which was submitted
/// later; work that the quota does not count does not. Within the minute the order stays.
#[test]
fn work_over_a_soft_quota_waits_behind_others() {
    check_on(
        ONE,
        "
        0 op quota q a/a gpu soft=1
        0 a grant gpu 2 ttl=1h pool=main
        0 b grant gpu 2 ttl=1h pool=main
        10 a submit gpu 4 wall=10m pool=main
        20 b submit gpu 4 wall=10m pool=main
        30 a/z submit gpu 4 wall=10m pool=main
        40 show waits
        60 show waits
        70 a release #0
        80 show waits
        120 b grant core 1 ttl=1h pool=cpus
        120 show waits
        ",
        expect![[r#"
            0 a quota q: soft 1
            0 a granted #0 gpu 2[0,1] on n1 to 3600, over soft q
            0 b granted #1 gpu 2[2,3] on n1 to 3600
            10 a @1 submitted
            20 b @2 submitted
            30 a @3 submitted
              @1 place 1: 4 gpu short, 0 would fit
              @2 place 2: 4 gpu short, 0 would fit
              @3 place 3: 4 gpu short, 0 would fit
              @1 place 1: 4 gpu short, 0 would fit
              @2 place 2: 4 gpu short, 0 would fit
              @3 place 3: 4 gpu short, 0 would fit
            70 a released #0, closed
              @1 place 3: 2 gpu short, 0 would fit
              @2 place 1: 2 gpu short, 0 would fit
              @3 place 2: 2 gpu short, 0 would fit
            120 b granted #2 core 1 on n2 to 3720
              @1 place 1: 2 gpu short, 0 would fit
              @2 place 3: 2 gpu short, 0 would fit
              @3 place 2: 2 gpu short, 0 would fit
        "#]],
    );
}

/// A project that is deprioritised on a pool waits behind others there, not elsewhere. The rank by priority goes first.
#[test]
fn a_deprioritised_project_waits_behind_others() {
    check_on(
        ONE,
        "
        0 op access a/a main deprioritised
        0 b grant gpu 4 ttl=1h pool=main
        10 a submit gpu 4 wall=10m pool=main
        20 a submit gpu 4 wall=10m
        30 b submit gpu 4 wall=10m pool=main
        40 a submit gpu 4 wall=10m pool=main prio=guaranteed
        50 show waits
        60 op access a/a main normal
        70 show waits
        ",
        expect![[r#"
            0 a project.pool_put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600
            10 a @1 submitted
            20 a @2 submitted
            30 b @3 submitted
            40 a @4 submitted
            50 - evicts #0 for @4 on n1
            50 b revoked #0, grace 1m (preempted)
              @1 place 4: 4 gpu short, 0 would fit
              @2 place 2: 4 gpu short, 0 would fit
              @3 place 3: 4 gpu short, 0 would fit
              @4 place 1: victims on n1
            60 a project.pool_put
              @1 place 2: 4 gpu short, 0 would fit
              @2 place 3: 4 gpu short, 0 would fit
              @3 place 4: 4 gpu short, 0 would fit
              @4 place 1: victims on n1
        "#]],
    );
}

/// Nothing new is admitted to a pool on which a project is paused; what runs there is renewed.
#[test]
fn a_paused_project_is_not_admitted() {
    check_on(
        ONE,
        "
        0 a grant core 4 ttl=10m pool=cpus
        0 a submit core 8 wall=10m pool=cpus
        10 op access a/a cpus paused
        20 a grant core 1 ttl=10m pool=cpus
        20 a submit core 1 wall=10m pool=cpus
        30 a renew #0 ttl=20m
        40 a grant core 1 ttl=10m
        50 a release #0
        60
        60 show waits
        70 op access a/a main paused
        80 a grant core 1 ttl=10m
        90 op access a/a cpus normal
        100
        ",
        expect![[r#"
            0 a granted #0 core 4 on n2 to 600
            0 a @1 submitted
            10 a project.pool_put
            20 refused: pool_paused
            20 refused: pool_paused
            30 a renewed #0 to 1230
            40 a granted #1 core 1 on n1 to 640
            50 a released #0, closed
              @1 place 1: paused
            70 a project.pool_put
            80 refused: pool_paused
            90 a project.pool_put
            100 a @1 placed, attempt 1
            100 a granted #2 core 8 on n2 to 700
        "#]],
    );
}

/// On a pool without GPUs the share is one of core time: `a` has used all the cores, `b` all the GPUs.
#[test]
fn fair_share_is_by_cores_on_pools_without_gpus() {
    check_on(
        ONE,
        "
        0 op update a share=500
        0 op update b share=500
        0 a grant core 8 ttl=10m pool=cpus
        0 b grant gpu 4 ttl=10m pool=main
        300 a submit core 8 wall=10m pool=cpus
        310 b submit core 8 wall=10m pool=cpus
        320 b submit gpu 4 wall=10m pool=main
        330 a submit gpu 4 wall=10m pool=main
        360 show waits
        ",
        expect![[r#"
            0 a quota.budgets_updated
            0 b quota.budgets_updated
            0 a granted #0 core 8 on n2 to 600
            0 b granted #1 gpu 4[0,1,2,3] on n1 to 600
            300 a @1 submitted
            310 b @2 submitted
            320 b @3 submitted
            330 a @4 submitted
              @1 place 2: 8 core short, 0 would fit
              @2 place 1: 8 core short, 0 would fit
              @3 place 2: 4 gpu short, 0 would fit
              @4 place 1: 4 gpu short, 0 would fit
        "#]],
    );
}
