//! The life of an allocation (SEMANTICS 5): gangs all or none, attempts, checkpoints, ends.

use crate::support::check_on;
use expect_test::expect;

/// Four nodes of four GPUs in two racks, two of which confirm teardowns.
pub(crate) const RACKS: &str = "
    0 op class gpu kind=gpu per=1
    0 op class core kind=cpu per=1
    0 op pool main
    0 op node n1 gpu 4 core 32 immediate rack=r1 zone=z1
    0 op node n2 gpu 4 core 32 immediate rack=r1 zone=z1
    0 op node n3 gpu 4 core 32 rack=r2 zone=z1
    0 op node n4 gpu 4 core 32 rack=r2 zone=z1 labels=ssd
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op project a/a
    0 op project b/b
";

#[test]
fn a_gang_is_granted_whole_and_completes_whole() {
    check_on(
        RACKS,
        "
        0 a submit gpu 4 core 8 x=3 wall=1h
        10 show allocs
        10 a complete @1 exit=0 wrote=77
        10 show allocs
        ",
        expect![[r#"
            0 a @1 submitted, 3 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] #1 core 8 on n1 to 3600
            0 a granted #2 gpu 4[0,1,2,3] #3 core 8 on n2 to 3600
            0 a granted #4 gpu 4[0,1,2,3] #5 core 8 on n3 to 3600
              @1 running attempt 1, holds 6
            10 a @1 completed
            10 a released #0 #1 #2 #3 #4 #5
            10 a torn down #0 #1 on n1
            10 a torn down #2 #3 on n2
        "#]],
    );
}

#[test]
fn what_is_staged_says_when_it_runs() {
    check_on(
        RACKS,
        "
        0 a submit gpu 1 staged wall=1h
        1 a checkpoint @1
        2 a start @1
        3 a start @1
        3 a checkpointing @1
        3 show allocs
        4 a checkpointing @1
        5 a checkpoint @1 bytes=900 took=2s
        5 show allocs
        6 a complete @1 exit=3
        7 a complete @1
        7 a cancel @1
        7 b cancel @1
        ",
        expect![[r#"
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 1[0] on n1 to 3600
            1 refused: allocation_not_running
            2 a @1 runs
            3 refused: allocation_not_staging
            3 a @1 checkpoints
              @1 checkpointing attempt 1, holds 1
            4 refused: allocation_not_running
            5 a @1 checkpointed 900 bytes in 2s
              @1 running attempt 1, holds 1
            6 a @1 failed: reported
            6 a released #0, closed
            7 refused: allocation_over
            7 refused: allocation_over
            7 refused: allocation_not_found
        "#]],
    );
}

#[test]
fn walltime_bounds_renewal_and_ends_the_attempt() {
    check_on(
        RACKS,
        "
        0 a submit gpu 1 wall=100s ttl=40s requeue
        30 a renew #0 ttl=40s
        60 a renew #0 ttl=60s
        61 a renew #0 ttl=60s
        200 show allocs
        ",
        expect![[r#"
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 1[0] on n1 to 40
            30 a renewed #0 to 70
            60 a renewed #0 to 100
            61 refused: lifetime_reached
            200 a expired #0, closed since 100
            200 a @1 failed: walltime since 100
        "#]],
    );
}

#[test]
fn an_attempt_that_is_not_renewed_fails_or_waits_again() {
    check_on(
        RACKS,
        "
        0 a submit gpu 4 x=2 wall=1h ttl=40s
        0 b submit gpu 4 x=2 wall=1h ttl=60s requeue
        20 a renew #0 ttl=60s
        50 show allocs
        100
        200 op confirm n3 #2
        200 op confirm n4 #3
        200 show allocs
        ",
        expect![[r#"
            0 a @1 submitted, 2 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 40
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 40
            0 b @2 submitted, 2 replicas
            0 b @2 placed, attempt 1
            0 b granted #2 gpu 4[0,1,2,3] on n3 to 60
            0 b granted #3 gpu 4[0,1,2,3] on n4 to 60
            20 a renewed #0 to 80
            50 a expired #1, closed since 40
            50 a revoked #0, grace 1m (policy)
              @1 running attempt 1, holds 1
              @2 running attempt 1, holds 2
            100 b expired #2 #3 since 60
            100 a teardown of #0, grace_ended, closed since 80
            100 a @1 failed: expired since 80
            100 b @2 requeued: expired since 60
            100 b @2 placed, attempt 2
            100 b granted #4 gpu 4[0,1,2,3] on n1 to 160
            100 b granted #5 gpu 4[0,1,2,3] on n2 to 160
            200 b expired #4 #5, closed since 160
            200 b @2 requeued: expired since 160
            200 b @2 placed, attempt 3
            200 b granted #6 gpu 4[0,1,2,3] on n1 to 260
            200 b granted #7 gpu 4[0,1,2,3] on n2 to 260
            200 b torn down #2 on n3
            200 b torn down #3 on n4
              @2 running attempt 3, holds 2
        "#]],
    );
}

#[test]
fn a_lost_node_takes_the_gang_with_it() {
    check_on(
        RACKS,
        "
        0 a submit gpu 4 x=4 wall=1h requeue
        10 op lose n1 seen=8
        10 show allocs
        70 show allocs
        ",
        expect![[r#"
            0 a @1 submitted, 4 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 3600
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 3600
            0 a granted #2 gpu 4[0,1,2,3] on n3 to 3600
            0 a granted #3 gpu 4[0,1,2,3] on n4 to 3600
            10 - lost n1, last seen 8
            10 a revoked #0, grace 0s (node_lost)
            10 a teardown of #0, grace_ended, closed (node_lost) since 8
            10 a revoked #1 #2 #3, grace 1m (node_lost)
              @1 running attempt 1, holds 3
            70 a teardown of #1, grace_ended, closed
            70 a teardown of #2 #3, grace_ended
            70 a @1 requeued: node_lost
              @1 pending
        "#]],
    );
}

#[test]
fn a_revoked_gang_that_has_checkpointed_is_suspended_and_keeps_its_age() {
    check_on(
        RACKS,
        "
        0 a submit gpu 4 x=4 wall=1h
        5 b submit gpu 4 wall=1h
        10 op revoke #1 grace=60s
        30 a checkpoint @1 bytes=5 took=10s
        30 show allocs
        31 op confirm n3 #2
        31 op confirm n4 #3
        31 show allocs
        ",
        expect![[r#"
            0 a @1 submitted, 4 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 3600
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 3600
            0 a granted #2 gpu 4[0,1,2,3] on n3 to 3600
            0 a granted #3 gpu 4[0,1,2,3] on n4 to 3600
            5 b @2 submitted
            10 a revoked #0 #1 #2 #3, grace 1m (operator)
            30 a @1 checkpointed 5 bytes in 10s
            30 a teardown of #0 #1 #2 #3, ready
            30 a torn down #0 on n1
            30 a torn down #1 on n2
            30 a @1 suspended: revoked
              @1 suspended
              @2 pending
            31 a torn down #2 on n3
            31 a torn down #3 on n4
            31 a @1 placed, attempt 2
            31 a granted #4 gpu 4[0,1,2,3] on n1 to 3631
            31 a granted #5 gpu 4[0,1,2,3] on n2 to 3631
            31 a granted #6 gpu 4[0,1,2,3] on n3 to 3631
            31 a granted #7 gpu 4[0,1,2,3] on n4 to 3631
              @1 running attempt 2, holds 4
              @2 pending
        "#]],
    );
}

#[test]
fn leases_of_a_gang_are_given_back_whole() {
    check_on(
        RACKS,
        "
        0 a submit gpu 2 core 2 wall=1h
        1 a release #0
        1 a release #0 #1
        1 show allocs
        ",
        expect![[r#"
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 2[0,1] #1 core 2 on n1 to 3600
            1 refused: lease_of_allocation
            1 a @1 completed
            1 a released #0 #1, closed
        "#]],
    );
}

/// The release named as many leases of the second gang as it holds, one of which had ended already: the first allocation
/// was completed, and then the command was refused.
#[test]
fn a_release_of_parts_of_a_gang_is_refused_for_these_parts_alone() {
    check_on(
        RACKS,
        "
        0 a submit gpu 1 wall=1h
        0 a submit gpu 3 x=3 wall=1h
        1 op revoke #1 grace=30s
        2 a ready #1
        3 a release #0 #1 #2
        3 show allocs
        4 a release #2 #3
        ",
        expect![[r#"
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 1[0] on n1 to 3600
            0 a @2 submitted, 3 replicas
            0 a @2 placed, attempt 1
            0 a granted #1 gpu 3[1,2,3] on n1 to 3600
            0 a granted #2 gpu 3[0,1,2] on n2 to 3600
            0 a granted #3 gpu 3[0,1,2] on n3 to 3600
            1 a revoked #1 #2 #3, grace 30s (operator)
            2 a teardown of #1, ready, closed
            3 a @1 completed
            3 a released #0, closed
            3   but #1: lease_revoked
            3   but #2: lease_of_allocation
              @2 running attempt 1, holds 2
            4 a @2 completed
            4 a released #2 #3
            4 a torn down #2 on n2
        "#]],
    );
}

#[test]
fn replicas_lie_together_or_apart_as_asked() {
    check_on(
        RACKS,
        "
        0 a submit gpu 1 x=4 together=rack
        0 a submit gpu 1 x=2 apart=rack
        0 a submit gpu 1 x=4 apart=node
        0 a submit gpu 1 x=3 apart=rack
        0 a submit gpu 1 x=2 together=rack apart=rack
        0 a submit gpu 1 x=2 together=node apart=zone
        0 a submit gpu 1 labels=ssd
        0 a submit gpu 1 labels=nvme
        ",
        expect![[r#"
            0 a @1 submitted, 4 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 1[0] on n1 to 86400
            0 a granted #1 gpu 1[1] on n1 to 86400
            0 a granted #2 gpu 1[2] on n1 to 86400
            0 a granted #3 gpu 1[3] on n1 to 86400
            0 a @2 submitted, 2 replicas
            0 a @2 placed, attempt 1
            0 a granted #4 gpu 1[0] on n2 to 86400
            0 a granted #5 gpu 1[0] on n3 to 86400
            0 a @3 submitted, 4 replicas
            0 refused: gang_too_large
            0 refused: contradictory_affinity
            0 refused: contradictory_affinity
            0 a @4 submitted
            0 a @4 placed, attempt 1
            0 a granted #6 gpu 1[0] on n4 to 86400
            0 refused: impossible_labels
        "#]],
    );
}

#[test]
fn what_can_never_be_is_refused_and_not_queued() {
    check_on(
        RACKS,
        "
        0 op pool short standard.life=10s
        0 op node s1 pool=short gpu 1
        0 op quota q a gpu hard=6
        0 a submit gpu 4 x=5
        0 a submit gpu 5
        0 a submit gpu 1 x=0
        0 a submit gpu 1 x=2000
        0 a submit gpu 1 wall=0s
        0 a submit gpu 1 ttl=100d
        0 a submit gpu 2 pool=short
        0 a submit gpu 1 pool=short wall=1h
        0 a submit gpu 1 x=7
        0 a submit gpu 1 sensitive
        0 a start @1
        0 a complete @1
        0 show allocs
        ",
        expect![[r#"
            0 - pool.put
            0 - node.put
            0 a quota q: hard 6
            0 a denied: q used 0, requested 20, limit 6
            0 refused: gang_too_large
            0 refused: no_replicas
            0 refused: gang_too_many_leases
            0 refused: zero_ttl
            0 refused: ttl_too_long
            0 refused: gang_too_large
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 1[0] on s1 to 3600
            0 a denied: q used 1, requested 7, limit 6
            0 refused: sensitive_needs_user
            0 refused: allocation_not_staging
            0 a @1 completed
            0 a released #0
        "#]],
    );
}

#[test]
fn a_tenant_with_allocations_cannot_go() {
    check_on(
        RACKS,
        "
        0 a submit gpu 4 x=4 wall=1h
        0 b submit gpu 1
        0 op delete tenant b
        0 op delete project b/b
        0 b cancel @2
        0 op delete project b/b
        ",
        expect![[r#"
            0 a @1 submitted, 4 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 3600
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 3600
            0 a granted #2 gpu 4[0,1,2,3] on n3 to 3600
            0 a granted #3 gpu 4[0,1,2,3] on n4 to 3600
            0 b @2 submitted
            0 refused: tenant_has_allocations
            0 refused: project_has_allocations
            0 b @2 cancelled
            0 b project.deleted
        "#]],
    );
}

#[test]
fn allocations_are_counted_by_quotas_of_their_own() {
    check_on(
        RACKS,
        "
        0 op update a allocs=1
        0 a submit gpu 1
        0 a submit gpu 1
        0 show quotas
        0 a complete @1
        0 a submit gpu 1
        ",
        expect![[r#"
            0 a quota quota-0: hard 1
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 1[0] on n1 to 86400
            0 a denied: quota-0 used 1, requested 1, limit 1
              quota-0 used 1 of hard 1
            0 a @1 completed
            0 a released #0, closed
            0 a @2 submitted
            0 a @2 placed, attempt 1
            0 a granted #1 gpu 1[0] on n1 to 86400
        "#]],
    );
}

/// A limit over several nodes is told what the whole gang asks, not what was left when it was met.
#[test]
fn a_gang_is_refused_in_its_own_figures() {
    check_on(
        RACKS,
        "
        0 op update a nodes=2
        0 op quota in_pool a gpu pool=main hard=13
        0 a submit gpu 4 x=3
        0 a submit gpu 4 x=4
        0 a submit gpu 1 x=4
        0 a submit gpu 2 x=4
        0 a submit gpu 2 x=8
        ",
        expect![[r#"
            0 a quota quota-0: hard 2
            0 a quota in_pool: hard 13
            0 a denied: quota-0 used 0, requested 3, limit 2
            0 a denied: quota-0 used 0, requested 4, limit 2
            0 a @1 submitted, 4 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 1[0] on n1 to 86400
            0 a granted #1 gpu 1[1] on n1 to 86400
            0 a granted #2 gpu 1[2] on n1 to 86400
            0 a granted #3 gpu 1[3] on n1 to 86400
            0 a denied: quota-0 used 1, requested 2, limit 2
            0 a denied: quota-0 used 1, requested 3, limit 2
        "#]],
    );
}

/// Replicas that are placed outside the scope of a quota do not count in the figures of its denial.
#[test]
fn a_gang_is_refused_in_the_figures_of_its_replicas_in_the_scope() {
    check_on(
        "
        0 op class gpu kind=gpu per=1
        0 op pool main
        0 op pool other
        0 op node n1 gpu 4
        0 op node n2 gpu 4 pool=other
        0 op node n3 gpu 4 pool=other
        0 op tenant a
        0 op project a/a
        ",
        "
        0 op quota in_main a count=nodes pool=main hard=0
        0 op quota in_other a count=nodes pool=other hard=0
        0 a submit gpu 4 x=3
        0 op quota in_main hard=1
        0 a submit gpu 4 x=3
        ",
        expect![[r#"
            0 a quota in_main: hard 0
            0 a quota in_other: hard 0
            0 a denied: in_main used 0, requested 1, limit 0
            0 a quota in_main: hard 1
            0 a denied: in_other used 0, requested 2, limit 0
        "#]],
    );
}

/// What another project's was, and how it ended, is its own business.
#[test]
fn one_that_is_over_is_known_to_its_own_project_only() {
    check_on(
        RACKS,
        "
        0 op project a/q
        0 a submit gpu 1
        1 a complete @1
        2 a/q cancel @1
        2 b cancel @1
        2 a cancel @1
        ",
        expect![[r#"
            0 a project.put
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 1[0] on n1 to 86400
            1 a @1 completed
            1 a released #0, closed
            2 refused: allocation_not_found
            2 refused: allocation_not_found
            2 refused: allocation_over
        "#]],
    );
}
