//! Requests that fail on one quota alone and evict leases of their own tenant (SEMANTICS 11, `evict_own_lower`).

use crate::support::{Story, check_on};
use expect_test::expect;

/// For `bad_input`: the code of the refusal below.
pub(crate) const CODES: &[&str] = &["evict_own_lower_unsuitable"];

/// Two nodes with 10 cores each, of which the first confirms teardowns; the pool has a grace of 60 s.
const STAGE: &str = "
    0 op class core kind=cpu per=1
    0 op pool main grace=60s
    0 op node n1 core 10
    0 op node n2 immediate core 10
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op project a/a
    0 op project a/z
    0 op project b/b
    0 op user a/ada
    0 op user a/bob
";

/// The lowest priority falls first, then the shortest remaining TTL; what turns out unneeded is put back: #1 is not
/// evicted, because #3 frees enough. A lease request becomes an allocation; it starts when its victims are gone.
#[test]
fn a_request_evicts_what_fills_its_quota() {
    check_on(
        STAGE,
        "
        0 op quota q a core hard=8 evicts=true
        0 b grant core 2 prio=scavenger ttl=1h
        0 a grant core 1 prio=scavenger ttl=30m node=n2
        0 a grant core 3 ttl=20m node=n2
        0 a grant core 4 prio=scavenger ttl=1h node=n1
        10 a grant core 4 ttl=1h
        11
        11 show waits
        11 show quotas
        20 a ready #3
        30 op confirm n1 #3
        31
        31 show quotas
        ",
        expect![[r#"
            0 a quota q: hard 8, evicts
            0 b granted #0 core 2 on n1 to 3600 scavenger
            0 a granted #1 core 1 on n2 to 1800 scavenger
            0 a granted #2 core 3 on n2 to 1200
            0 a granted #3 core 4 on n1 to 3600 scavenger
            10 a @1 submitted
            11 - evicts #3 for @1 on n2, headroom in q
            11 a revoked #3, grace 1m (preempted)
              @1 place 1: victims on n1
              q used 8 of hard 8
            20 a teardown of #3, ready
            30 a torn down #3 on n1
            31 a @1 placed, attempt 1
            31 a granted #4 core 4 on n2 to 3631
              q used 8 of hard 8
        "#]],
    );
}

/// Off by default; only the tenant's own leases that the quota counts, and only lower priorities.
#[test]
fn nothing_else_is_evicted_for_a_quota() {
    check_on(
        STAGE,
        "
        0 op quota q a/a core hard=4
        0 a grant core 4 prio=scavenger
        1 a grant core 4
        2 op quota q hard=4 evicts=true
        3 a/z grant core 2 prio=scavenger
        3 a grant core 4 prio=scavenger
        4 a grant core 5
        5 a submit core 4 prio=guaranteed wall=1h
        6
        70
        80 a submit core 4 wall=1h
        90 op quota r a core hard=6
        100 a grant core 3 prio=guaranteed
        110 op quota q hard=4 evicts=false
        120 a submit core 3 wall=1h prio=guaranteed over=wait
        ",
        expect![[r#"
            0 a quota q: hard 4
            0 a granted #0 core 4 on n1 to 3600 scavenger
            1 a denied: q used 4, requested 4, limit 4
            2 a quota q: hard 4, evicts
            3 a granted #1 core 2 on n1 to 3603 scavenger
            3 a denied: q used 4, requested 4, limit 4
            4 a denied: q used 4, requested 5, limit 4
            5 a @1 submitted
            6 - evicts #0 for @1 on n1, headroom in q
            6 a revoked #0, grace 1m (preempted)
            70 a teardown of #0, grace_ended since 66
            80 a denied: q used 4, requested 4, limit 4
            90 a quota r: hard 6
            100 a denied: q used 4, requested 3, limit 4
            110 a quota q: hard 4
            120 a @2 submitted
        "#]],
    );
}

/// While the victims are torn down, nobody else takes the headroom: what the requester needs beyond what its victims
/// still use counts as used.
#[test]
fn the_headroom_is_held_for_the_requester() {
    check_on(
        STAGE,
        "
        0 op quota q a core hard=10 evicts=true
        0 a grant core 3 prio=scavenger ttl=1h node=n1
        0 a grant core 3 prio=scavenger ttl=1h node=n2
        0 a grant core 3 ttl=1h node=n2
        10 a submit core 7 wall=1h
        20 a submit core 1 wall=1h
        30 a ready #1
        40 a submit core 1 wall=1h
        41 show quotas
        50 a ready #0
        60 op confirm n1 #0
        61
        61 show quotas
        ",
        expect![[r#"
            0 a quota q: hard 10, evicts
            0 a granted #0 core 3 on n1 to 3600 scavenger
            0 a granted #1 core 3 on n2 to 3600 scavenger
            0 a granted #2 core 3 on n2 to 3600
            10 a @1 submitted
            20 - evicts #0 #1 for @1 on n2, headroom in q
            20 a revoked #0, grace 1m (preempted)
            20 a revoked #1, grace 1m (preempted)
            20 a denied: q used 10, requested 1, limit 10
            30 a teardown of #1, ready, closed
            40 a denied: q used 10, requested 1, limit 10
              q used 6 of hard 10
            50 a teardown of #0, ready
            60 a torn down #0 on n1
            61 a @1 placed, attempt 1
            61 a granted #3 core 7 on n2 to 3661
              q used 10 of hard 10
        "#]],
    );
}

/// A requester that gives up returns the headroom to the next one.
#[test]
fn a_requester_that_gives_up_returns_the_headroom() {
    check_on(
        STAGE,
        "
        0 op quota q a core hard=6 evicts=true
        0 a grant core 6 prio=scavenger ttl=1h node=n1
        10 a submit core 6 wall=1h
        20 a submit core 6 wall=1h over=wait
        21 show waits
        30 a ready #0
        40 a cancel @1
        50 op confirm n1 #0
        51
        ",
        expect![[r#"
            0 a quota q: hard 6, evicts
            0 a granted #0 core 6 on n1 to 3600 scavenger
            10 a @1 submitted
            20 - evicts #0 for @1 on n1, headroom in q
            20 a revoked #0, grace 1m (preempted)
            20 a @2 submitted
              @1 place 1: victims on n1
              @2 place 2: quota used 6, requested 6, limit 6
            30 a teardown of #0, ready
            40 a @1 cancelled
            50 a torn down #0 on n1
            51 a @2 placed, attempt 1
            51 a granted #1 core 6 on n1 to 3651
        "#]],
    );
}

/// Gangs fall whole, also the part that the quota does not count, and `min_runtime_before_eviction` and the hourly limit
/// apply.
#[test]
fn gangs_fall_whole_and_the_limits_on_evictions_apply() {
    check_on(
        STAGE,
        "
        0 op pool main grace=0s minrun=5m
        0 op quota q a core hard=3 node=n2 evicts=true
        0 a submit core 3 x=2 prio=scavenger apart=node wall=2h
        60 a grant core 3 node=n2
        310 op update a evicted=5
        320 a grant core 3 node=n2
        340 op update a evicted=6
        350 a grant core 3 node=n2
        360
        ",
        expect![[r#"
            0 - pool.put
            0 - pool.queue_put
            0 a quota q: hard 3, evicts
            0 a @1 submitted, 2 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 core 3 on n1 to 7200 scavenger
            0 a granted #1 core 3 on n2 to 7200 scavenger
            60 a denied: q used 3, requested 3, limit 3
            310 a tenant.put
            320 a denied: q used 3, requested 3, limit 3
            340 a tenant.put
            350 a @2 submitted
            360 - evicts #0 #1 for @2 on n2, headroom in q
            360 a revoked #0 #1, grace 0s (preempted)
            360 a teardown of #0, grace_ended
            360 a teardown of #1, grace_ended, closed
            360 a @1 failed: preempted
            360 a @2 placed, attempt 1
            360 a granted #2 core 3 on n2 to 3960
        "#]],
    );
}

/// A request that another quota denies as well evicts nothing, although the same leases fill both.
#[test]
fn a_request_must_fail_on_that_quota_alone() {
    check_on(
        STAGE,
        "
        0 op quota q a core hard=4 evicts=true
        0 op quota r a/a core hard=4
        0 a grant core 4 prio=scavenger
        10 a grant core 4
        20 a submit core 4 wall=1h
        30 op delete quota r
        40 a grant core 4
        50
        ",
        expect![[r#"
            0 a quota q: hard 4, evicts
            0 a quota r: hard 4
            0 a granted #0 core 4 on n1 to 3600 scavenger
            10 a denied: q used 4, requested 4, limit 4
            20 a denied: q used 4, requested 4, limit 4
            30 a quota.deleted
            40 a @1 submitted
            50 - evicts #0 for @1 on n1, headroom in q
            50 a revoked #0, grace 1m (preempted)
        "#]],
    );
}

/// Quotas that count each user, and quotas on allocations and leases.
#[test]
fn by_user_by_leases_and_by_allocations() {
    check_on(
        STAGE,
        "
        0 op pool main grace=0s
        0 op quota u a core hard=4 by-user=each evicts=true
        0 a grant core 4 prio=scavenger user=a/ada node=n2
        0 a grant core 4 prio=scavenger user=a/bob node=n2
        1 a grant core 2 user=a/bob
        2
        10 op delete quota u
        20 op quota l a - count=leases hard=3 evicts=true
        30 a grant core 1 prio=scavenger ttl=5m
        40 a grant core 1
        50 op delete quota l
        60 op quota n a/z - count=allocations hard=1 evicts=true
        70 a/z submit core 1 prio=scavenger wall=1h
        80 a/z submit core 1 wall=1h
        90
        ",
        expect![[r#"
            0 - pool.put
            0 a quota u: hard 4, evicts
            0 a granted #0 core 4 on n2 to 3600 scavenger
            0 a granted #1 core 4 on n2 to 3600 scavenger
            1 a @1 submitted
            2 - evicts #1 for @1 on n2, headroom in u
            2 a revoked #1, grace 0s (preempted)
            2 a teardown of #1, grace_ended, closed
            2 a @1 placed, attempt 1
            2 a granted #2 core 2 on n2 to 3602
            10 a quota.deleted
            20 a quota l: hard 3, evicts
            30 a granted #3 core 1 on n2 to 330 scavenger
            40 a @2 submitted
            50 - evicts #3 for @2 on n2, headroom in l
            50 a revoked #3, grace 0s (preempted)
            50 a teardown of #3, grace_ended, closed
            50 a @2 placed, attempt 1
            50 a granted #4 core 1 on n2 to 3650
            50 a quota.deleted
            60 a quota n: hard 1, evicts
            70 a @3 submitted
            70 a @3 placed, attempt 1
            70 a granted #5 core 1 on n2 to 3670 scavenger
            80 a @4 submitted
            90 - evicts #5 for @4 on n2, headroom in n
            90 a revoked #5, grace 0s (preempted)
            90 a teardown of #5, grace_ended, closed
            90 a @3 failed: preempted
            90 a @4 placed, attempt 1
            90 a granted #6 core 1 on n2 to 3690
        "#]],
    );
}

#[test]
fn quotas_that_cannot_evict_are_refused() {
    let mut story = Story::on(STAGE);
    let mut told = String::new();
    for line in [
        "0 op quota q a core soft=4 evicts=true",
        "0 op quota q a core hard=4 node=each evicts=true",
        "0 op quota q a - count=nodes hard=4 evicts=true",
    ] {
        let refusal = story.line(line).expect("a decision").expect_err(line);
        told.push_str(&format!("{line}\n    {}: {refusal}\n", refusal.code()));
    }
    expect![[r#"
        0 op quota q a core soft=4 evicts=true
            evict_own_lower_unsuitable: only a hard or burst limit on quanta, leases or allocations, not for each node on its own, can let requests evict
        0 op quota q a core hard=4 node=each evicts=true
            evict_own_lower_unsuitable: only a hard or burst limit on quanta, leases or allocations, not for each node on its own, can let requests evict
        0 op quota q a - count=nodes hard=4 evicts=true
            evict_own_lower_unsuitable: only a hard or burst limit on quanta, leases or allocations, not for each node on its own, can let requests evict
    "#]].assert_eq(&told);
}
