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
        9 op show capacity
        ",
        expect![[r#""#]],
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
        6 op show custody
        ",
        expect![[r#""#]],
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
        7 op show custody
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
        expect![[r#""#]],
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
        1803 op show capacity
        1803 op delete node n1
        ",
        expect![[r#""#]],
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
        2 op show quotas
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
        9 op show quotas
        ",
        expect![[r#""#]],
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
        8 op show waits
        8 op show allocs
        103 op show allocs
        103 op confirm n2 #1
        104 op show allocs
        ",
        expect![[r#""#]],
    );
}

#[test]
fn a_restart_gives_a_wipe_its_time_again() {
    check_on(
        STAGE,
        "
        1 a claim n1 user=a/ada
        2 a giveback n1 user=a/ada
        1000 restart
        1802
        2799.9
        2800
        ",
        expect![[r#""#]],
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
        30 op show custody
        31 a giveback n1
        32 op wiped n1
        33 op show capacity
        34 b claim n1 user=b/cyd
        35 op unfence #0
        36 b claim n1 user=b/cyd
        37 op lose n1 seen=36
        38 b giveback n1
        ",
        expect![[r#""#]],
    );
}
