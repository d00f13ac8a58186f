//! Claims on nodes, sensitive work on them, and the wipe that follows (SEMANTICS 10).

use crate::support::check_on;
use expect_test::expect;

/// Three nodes with 10 cores each, the last without an agent; users ada and bob of tenant a, cyd of tenant b.
const STAGE: &str = "
    0 op class core kind=cpu per=1
    0 op pool main
    0 op node n1 core 10 rack=r1
    0 op node n2 core 10 rack=r1
    0 op node n3 immediate core 10 rack=r2
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op project a/a
    0 op project b/b
    0 op user a/ada
    0 op user a/bob
    0 op user b/cyd
";

/// For `bad_input`: what happened before, and what is asked.
pub(crate) fn bad_claims() -> Vec<(&'static str, String, String)> {
    let nodes: Vec<&str> = vec!["n2"; 257];
    let cases = [
        ("a claim on nothing", "", "10 a claim user=a/u"),
        ("a claim on a node twice", "", "10 a claim n2 n2 user=a/u"),
        ("a claim on what another has claimed", "1 b claim n2 user=b/v", "10 a claim n2 user=a/u"),
        ("a claim on a node that is lost", "1 op lose n2 seen=1", "10 a claim n2 user=a/u"),
        ("a claim on a node that runs others' work", "", "10 b claim n1 user=b/v"),
        ("the release of another tenant's node", "1 b claim n2 user=b/v", "10 a giveback n2"),
        (
            "the release of two users' nodes at once",
            "1 a claim n2 user=a/u\n 1 op node n3 core 1\n 1 b claim n3 user=b/v",
            "10 op giveback n2 n3",
        ),
        ("a claim beyond the sensitive pool", "1 op settings sensitive=0", "10 a claim n2 user=a/u"),
        ("a claim beyond max_nodes", "1 op update a nodes=1", "10 a claim n2 user=a/u"),
        ("the wipe of a node that was not released", "", "10 op wiped n2"),
        ("clearing a node that is not quarantined", "", "10 op unquarantine n2"),
        ("deleting a claimed node", "1 a claim n2 user=a/u", "10 op delete node n2"),
        ("deleting a tenant with claims", "1 b claim n2 user=b/v", "10 op delete tenant b"),
        ("deleting a project with claims", "1 b claim n2 user=b/v", "10 op delete project b/b"),
        ("deleting a user with claims", "1 b claim n2 user=b/v", "10 op delete user b/v"),
    ];
    let mut all: Vec<_> = cases.map(|(what, before, line)| (what, before.to_owned(), line.to_owned())).into();
    all.push(("a claim on too many", String::new(), format!("10 a claim {} user=a/u", nodes.join(" "))));
    all
}

/// A busy node becomes claimable only by draining it; while it is drained, the queue must not get it back.
#[test]
fn an_operator_claims_a_drained_and_empty_node_for_a_user() {
    check_on(
        STAGE,
        "
        0 b grant core 10 node=n1 ttl=100s
        0 b grant core 10
        0 b grant core 10
        1 b submit core 10
        2 op drain n1
        3 a claim-for n1 user=a/ada
        100 op confirm n1 #0
        101 a claim n1 user=a/ada
        102 a claim-for n1 user=a/ada
        103 a grant core 4 sensitive user=a/ada
        104 op reserve n2 from=200 until=300
        105 op drain n2
        106 a claim-for n2 user=a/ada
        ",
        expect![[r#"
            0 b granted #0 core 10 on n1 to 100
            0 b granted #1 core 10 on n2 to 3600
            0 b granted #2 core 10 on n3 to 3600
            1 b @1 submitted
            2 - drained n1
            3 refused: node_in_use
            100 b expired #0
            100 b torn down #0 on n1
            101 refused: node_not_ready
            102 a claimed n1
            102 a resumed n1
            103 a granted #3 core 4 on n1 to 3703
            104 - window-0 on n2 from 200 until 300
            104 b told of window-0: #1
            105 - drained n2
            106 refused: node_in_window
        "#]],
    );
}

#[test]
fn a_claimed_node_is_for_its_users_sensitive_work_alone() {
    check_on(
        STAGE,
        "
        1 a claim n1 user=a/ada
        2 a grant core 4 sensitive user=a/ada
        3 a grant core 4 sensitive user=a/bob
        4 a grant core 4 sensitive
        5 b grant core 10
        6 b grant core 10
        7 a grant core 1 user=a/ada
        8 a grant core 7 sensitive user=a/ada
        9 a grant core 1 sensitive user=a/ada node=n2
        9 show capacity
        ",
        expect![[r#"
            1 a claimed n1
            2 a granted #0 core 4 on n1 to 3602
            3 refused: sensitive_needs_claim
            4 refused: sensitive_needs_user
            5 b granted #1 core 10 on n2 to 3605
            6 b granted #2 core 10 on n3 to 3606
            7 a denied: core requested 1, most free 0
            8 a denied: core requested 7, most free 6
            9 refused: sensitive_needs_claim
              n1 core: held 4, idle 6
              n2 core: held 10
              n3 core: held 10
        "#]],
    );
}

#[test]
fn a_claim_is_refused_where_it_cannot_be() {
    check_on(
        STAGE,
        "
        1 b grant core 1 node=n1 ttl=100s
        2 a claim n1 user=a/ada
        2 a claim n2
        2 a claim user=a/ada
        2 a claim n2 n2 user=a/ada
        2 a claim n9 user=a/ada
        2 b claim n2 user=a/ada
        3 a claim n2 user=a/ada
        4 b claim n2 user=b/cyd
        4 a claim n2 user=a/bob
        4 a claim n3 n2 user=a/bob
        4 a claim n2 user=a/ada
        5 op drain n3
        5 b claim n3 user=b/cyd
        5 op lose n3 seen=5
        5 b claim n3 user=b/cyd
        6 op delete node n2
        6 op delete user a/ada
        6 op delete project a/a
        6 op delete tenant a
        6 op node n2 core 12 rack=r1
        6 op node n2 core 10 rack=r9
        6 show custody
        ",
        expect![[r#"
            1 b granted #0 core 1 on n1 to 101
            2 refused: node_in_use
            2 refused: sensitive_needs_user
            2 refused: no_nodes
            2 refused: duplicate_node
            2 refused: unknown_node
            2 refused: unknown_user
            3 a claimed n2
            4 refused: node_claimed
            4 refused: node_claimed
            4 refused: node_claimed
            4 refused: node_already
            5 - drained n3
            5 refused: node_not_ready
            5 - lost n3, last seen 5
            5 refused: node_not_ready
            6 refused: node_in_custody
            6 refused: user_has_claims
            6 refused: project_has_claims
            6 refused: tenant_has_claims
            6 refused: node_in_custody
            6 - node.put
              n1 open
              n2 claimed by a since 3
              n3 open
        "#]],
    );
}

#[test]
fn released_it_is_wiped_and_then_ready() {
    check_on(
        STAGE,
        "
        0 op agent n1 instance=7
        1 a claim n1 n2 user=a/ada
        2 a grant core 4 sensitive user=a/ada node=n1
        3 a giveback n1 user=a/ada
        4 a giveback n2 user=a/bob
        4 b giveback n2
        4 a giveback n3
        5 a release #0
        5 a giveback n1 user=a/ada
        6 op confirm n1 #0
        7 a giveback n1 n2
        7 show custody
        8 b claim n1 user=b/cyd
        8 a grant core 1 sensitive user=a/ada
        9 op wiped n1 generation=9
        9 op wiped n1 generation=1
        9 op wiped n1 generation=1
        10 op unclean n2
        11 b claim n2 user=b/cyd
        11 op wiped n2
        12 op unquarantine n1
        12 op unquarantine n2
        13 b claim n1 n2 user=b/cyd
        ",
        expect![[r#"
            0 - agent 7 on n1 as generation 1
            1 a claimed n1 n2
            2 a granted #0 core 4 on n1 to 3602
            3 refused: node_has_leases
            4 refused: node_not_claimed
            4 refused: node_not_claimed
            4 refused: node_not_claimed
            5 a released #0
            5 refused: node_has_leases
            6 a torn down #0 on n1
            7 a gave back n1 n2
              n1 wiping to 1807
              n2 wiping to 1807
              n3 open
            8 refused: node_not_ready
            8 refused: sensitive_needs_claim
            9 refused: stale_generation
            9 a n1 is clean
            9 refused: node_not_wiping
            10 a n2 quarantined: wipe_failed
            11 refused: node_not_ready
            11 refused: node_not_wiping
            12 refused: node_not_quarantined
            12 - n2 cleared
            13 b claimed n1 n2
        "#]],
    );
}

#[test]
fn a_wipe_that_nobody_confirms_quarantines_the_node() {
    check_on(
        STAGE,
        "
        1 a claim n1 user=a/ada
        2 a giveback n1 user=a/ada
        1801.9
        1802
        1803 show capacity
        1803 op delete node n1
        ",
        expect![[r#"
            1 a claimed n1
            2 a gave back n1
            1802 a n1 quarantined: wipe_timed_out
              n1 core: offline 10
              n2 core: idle 10
              n3 core: idle 10
            1803 - node.deleted
        "#]],
    );
}

#[test]
fn the_sensitive_pool_and_max_nodes_have_limits() {
    check_on(
        STAGE,
        "
        0 op settings sensitive=2
        0 op update a nodes=1
        1 a claim n1 n2 user=a/ada
        2 a claim n1 user=a/ada
        2 show quotas
        3 a grant core 1 sensitive user=a/ada
        4 a grant core 1
        5 b claim n2 n3 user=b/cyd
        5 b claim n2 user=b/cyd
        6 a release #0
        6 op confirm n1 #0
        7 a giveback n1
        7 a grant core 1
        8 b claim n3 user=b/cyd
        9 op wiped n1
        9 b claim n3 user=b/cyd
        9 show quotas
        ",
        expect![[r#"
            0 - settings.changed
            0 - settings.sensitive_changed
            0 a quota quota-0: hard 1
            1 refused: claim_over_quota
            2 a claimed n1
              quota-0 used 1 of hard 1
            3 a granted #0 core 1 on n1 to 3603
            4 a denied: quota-0 used 1, requested 1, limit 1
            5 refused: sensitive_pool_full
            5 b claimed n2
            6 a released #0
            6 a torn down #0 on n1
            7 a gave back n1
            7 a granted #1 core 1 on n3 to 3607
            8 refused: node_in_use
            9 a n1 is clean
            9 refused: node_in_use
              quota-0 used 1 of hard 1
        "#]],
    );
}

#[test]
fn sensitive_gangs_wait_for_their_users_nodes_and_never_evict_nor_fall() {
    check_on(
        STAGE,
        "
        1 b grant core 10 node=n1 prio=scavenger
        2 a claim n2 n3 user=a/ada
        3 a submit core 8 x=2 wall=100s sensitive user=a/ada prio=scavenger
        4 a submit core 6 wall=100s sensitive user=a/ada
        5 a submit core 2 wall=200s sensitive user=a/ada prio=scavenger
        6 a submit core 2 wall=90s sensitive user=a/ada prio=scavenger
        7 a submit core 11 sensitive user=a/ada
        7 a submit core 3 x=9 sensitive user=a/ada
        8 b submit core 4 prio=guaranteed wall=50s
        8 show waits
        8 show allocs
        103 show allocs
        103 op confirm n2 #1
        104 show allocs
        ",
        expect![[r#"
            1 b granted #0 core 10 on n1 to 3601 scavenger
            2 a claimed n2 n3
            3 a @1 submitted, 2 replicas
            3 a @1 placed, attempt 1
            3 a granted #1 core 8 on n2 to 103 scavenger
            3 a granted #2 core 8 on n3 to 103 scavenger
            4 a @2 submitted
            5 a @3 submitted
            5 a @3 placed, attempt 1
            5 a granted #3 core 2 on n2 to 205 scavenger
            6 a @4 submitted
            6 a @4 placed, attempt 1
            6 a granted #4 core 2 on n3 to 96 scavenger
            7 refused: gang_too_large
            7 refused: gang_too_large
            8 b @5 submitted
            8 - evicts #0 for @5 on n1
            8 b revoked #0, grace 1m (preempted)
              @2 place 1: 6 core short, 0 would fit, starts by 103
              @5 place 1: victims on n1
              @1 running attempt 1, holds 2
              @2 pending
              @3 running attempt 1, holds 1
              @4 running attempt 1, holds 1
              @5 pending, kept on n1
            103 b teardown of #0, grace_ended since 68
            103 a expired #4, closed since 96
            103 a expired #1
            103 a expired #2, closed
            103 a @1 failed: walltime
            103 a @4 failed: walltime since 96
            103 a @2 placed, attempt 1
            103 a granted #5 core 6 on n3 to 203
              @2 running attempt 1, holds 1
              @3 running attempt 1, holds 1
              @5 pending, kept on n1
            103 a torn down #1 on n2
              @2 running attempt 1, holds 1
              @3 running attempt 1, holds 1
              @5 pending, kept on n1
        "#]],
    );
}

#[test]
fn a_restart_gives_a_wipe_its_time_again() {
    check_on(
        STAGE,
        "
        1 a claim n1 user=a/ada
        2 a giveback n1 user=a/ada
        1000 op started
        1802
        2799.9
        2800
        ",
        expect![[r#"
            1 a claimed n1
            2 a gave back n1
            1000 - journal.started
            2800 a n1 quarantined: wipe_timed_out
        "#]],
    );
}

#[test]
fn a_lost_or_fenced_claimed_node_is_still_claimed() {
    check_on(
        STAGE,
        "
        0 op settings teardown=10s
        1 a claim n1 user=a/ada
        2 a grant core 4 sensitive user=a/ada ttl=10s
        12
        22
        30 show custody
        31 a giveback n1
        32 op wiped n1
        33 show capacity
        34 b claim n1 user=b/cyd
        35 op unfence #0
        36 b claim n1 user=b/cyd
        37 op lose n1 seen=36
        38 b giveback n1
        39 show custody
        ",
        expect![[r#"
            0 - settings.changed
            1 a claimed n1
            2 a granted #0 core 4 on n1 to 12
            12 a expired #0
            22 a fenced #0
              n1 claimed by a since 1
              n2 open
              n3 open
            31 a gave back n1
            32 a n1 is clean
              n1 core: fenced 4, idle 6
              n2 core: idle 10
              n3 core: idle 10
            34 refused: node_in_use
            35 a unfenced #0
            36 b claimed n1
            37 - lost n1, last seen 36
            38 b gave back n1
              n1 wiping to 1838
              n2 open
              n3 open
        "#]],
    );
}
