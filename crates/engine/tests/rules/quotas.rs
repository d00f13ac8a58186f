//! Who may hold how much of what (SEMANTICS 4).

use crate::support::check;
use expect_test::expect;

#[test]
fn the_cut_seals_first() {
    check(
        "
        0 op quota q a core hard=200
        0 a grant core 190 node=n1
        1 op quota q hard=195
        2 a grant core 8 node=n2
        2 show quotas
        ",
        expect![[r#"
            0 a quota q: hard 200
            0 a granted #0 core 190 on n1 to 3600
            1 a quota q: hard 195
            2 a denied: q used 190, requested 8, limit 195
              q used 190 of hard 195
        "#]],
    );
}

#[test]
fn the_ask_seals_first() {
    check(
        "
        0 op quota q a core hard=200
        0 a grant core 190 node=n1
        1 a grant core 8 node=n2
        2 op quota q hard=195
        2 show quotas
        3 a grant core 1
        ",
        expect![[r#"
            0 a quota q: hard 200
            0 a granted #0 core 190 on n1 to 3600
            1 a granted #1 core 8 on n2 to 3601
            2 a quota q: hard 195
              q used 198 of hard 195
            3 a denied: q used 198, requested 1, limit 195
        "#]],
    );
}

#[test]
fn a_limit_below_use_stops_grants_and_touches_nothing_that_runs() {
    check(
        "
        0 op quota q a core hard=100
        0 a grant core 100
        1 op quota q hard=10
        2 a grant core 1
        2 show leases
        3 a renew #0 ttl=2h
        4 a release #0
        4 a grant core 1
        ",
        expect![[r#"
            0 a quota q: hard 100
            0 a granted #0 core 100 on n1 to 3600
            1 a quota q: hard 10
            2 a denied: q used 100, requested 1, limit 10
              #0 active core 100 0..3600
            3 a renewed #0 to 7203
            4 a released #0
            4 a denied: q used 100, requested 1, limit 10
        "#]],
    );
}

#[test]
fn used_counts_what_is_being_torn_down() {
    check(
        "
        0 op quota q a core hard=10
        0 a grant core 10 node=n1
        1 a release #0
        1 a grant core 1 node=n2
        2 op confirm n1 #0
        2 a grant core 10 node=n2
        ",
        expect![[r#"
            0 a quota q: hard 10
            0 a granted #0 core 10 on n1 to 3600
            1 a released #0
            1 a denied: q used 10, requested 1, limit 10
            2 a torn down #0 on n1
            2 a granted #1 core 10 on n2 to 3602
        "#]],
    );
}

#[test]
fn the_whole_limit_may_be_used_and_zero_means_none() {
    check(
        "
        0 op quota q a core hard=10
        0 op quota z b core hard=0
        0 a grant core 11
        0 a grant core 10
        0 b grant core 1
        ",
        expect![[r#"
            0 a quota q: hard 10
            0 b quota z: hard 0
            0 a denied: q used 0, requested 11, limit 10
            0 a granted #0 core 10 on n1 to 3600
            0 b denied: z used 0, requested 1, limit 0
        "#]],
    );
}

#[test]
fn soft_limits_admit_and_mark() {
    check(
        "
        0 op quota q a core soft=10
        0 a grant core 10
        0 a grant core 1
        0 show leases
        0 show quotas
        ",
        expect![[r#"
            0 a quota q: soft 10
            0 a granted #0 core 10 on n1 to 3600
            0 a granted #1 core 1 on n1 to 3600, over soft q
              #0 active core 10 0..3600
              #1 active core 1 0..3600 over_soft
              q used 11 of soft 10
        "#]],
    );
}

/// Each part of a scope, for each kind of limit.
#[test]
fn per_tenant() {
    check(
        "
        0 op quota h a core hard=10
        0 op quota s a core soft=5
        0 op quota u a core burst=7..9/60s
        0 a grant core 4
        0 b grant core 100
        0 a grant core 2
        0 a grant core 2
        0 a grant core 2
        0 show quotas
        ",
        expect![[r#"
            0 a quota h: hard 10
            0 a quota s: soft 5
            0 a quota u: burst 7
            0 a granted #0 core 4 on n1 to 3600
            0 b granted #1 core 100 on n1 to 3600
            0 a granted #2 core 2 on n1 to 3600, over soft s
            0 a granted #3 core 2 on n1 to 60, over soft s, capped by u
            0 a denied: u used 8, requested 2, limit 9
              h used 8 of hard 10
              s used 8 of soft 5
              u used 8 of burst 7..9 for 1m, episode since 0
        "#]],
    );
}

#[test]
fn per_project() {
    check(
        "
        0 op project a/p
        0 op quota h a/p core hard=10
        0 op quota s a/p core soft=5
        0 op quota u a/p core burst=7..9/60s
        0 a grant core 100
        0 a/p grant core 8
        0 a/p grant core 2
        0 show quotas
        ",
        expect![[r#"
            0 a project.put
            0 a quota h: hard 10
            0 a quota s: soft 5
            0 a quota u: burst 7
            0 a granted #0 core 100 on n1 to 3600
            0 a granted #1 core 8 on n1 to 60, over soft s, capped by u
            0 a denied: u used 8, requested 2, limit 9
              h used 8 of hard 10
              s used 8 of soft 5
              u used 8 of burst 7..9 for 1m, episode since 0
        "#]],
    );
}

#[test]
fn per_class() {
    check(
        "
        0 op quota h a gpu hard=7
        0 op quota s a cpu soft=500
        0 op quota u a core burst=5..10/60s
        0 a grant gpu 1/7 cpu 1 core 6
        0 a grant gpu 1
        0 a grant core 5
        0 show quotas
        ",
        expect![[r#"
            0 a quota h: hard 7
            0 a quota s: soft 500
            0 a quota u: burst 5
            0 a granted #0 gpu 1[0] #1 cpu 1000 #2 core 6 on n1 to 60, over soft s, capped by u
            0 a denied: h used 1, requested 7, limit 7
            0 a denied: u used 6, requested 5, limit 10
              h used 1 of hard 7
              s used 1000 of soft 500
              u used 6 of burst 5..10 for 1m, episode since 0
        "#]],
    );
}

#[test]
fn per_pool() {
    check(
        "
        0 op pool other
        0 op node n3 pool=other core 100
        0 op quota h a core hard=10 pool=other
        0 op quota s a core soft=5 pool=other
        0 op quota u a core burst=7..9/60s pool=other
        0 a grant core 50 pool=main
        0 a grant core 8 pool=other
        0 a grant core 2 pool=other
        0 a grant core 95
        0 show quotas
        ",
        expect![[r#"
            0 - pool.put
            0 - node.put
            0 a quota h: hard 10
            0 a quota s: soft 5
            0 a quota u: burst 7
            0 a granted #0 core 50 on n1 to 3600
            0 a granted #1 core 8 on n3 to 60, over soft s, capped by u
            0 a denied: u used 8, requested 2, limit 9
            0 a granted #2 core 95 on n1 to 3600
              h used 8 of hard 10
              s used 8 of soft 5
              u used 8 of burst 7..9 for 1m, episode since 0
        "#]],
    );
}

#[test]
fn per_node_one() {
    check(
        "
        0 op quota h a core hard=10 node=n2
        0 op quota s a core soft=5 node=n2
        0 op quota u a core burst=7..9/60s node=n2
        0 a grant core 50 node=n1
        0 a grant core 8 node=n2
        0 a grant core 2 node=n2
        0 a grant core 2
        0 show quotas
        ",
        expect![[r#"
            0 a quota h: hard 10
            0 a quota s: soft 5
            0 a quota u: burst 7
            0 a granted #0 core 50 on n1 to 3600
            0 a granted #1 core 8 on n2 to 60, over soft s, capped by u
            0 a denied: u used 8, requested 2, limit 9
            0 a granted #2 core 2 on n1 to 3600
              h used 8 of hard 10
              s used 8 of soft 5
              u used 8 of burst 7..9 for 1m, episode since 0
        "#]],
    );
}

#[test]
fn per_node_each() {
    check(
        "
        0 op quota h a core hard=10 node=each
        0 op quota s a core soft=5 node=each
        0 a grant core 6 node=n1
        0 a grant core 5 node=n2
        0 a grant core 5 node=n1
        0 a grant core 5
        0 a grant core 4
        0 a grant core 2
        0 show quotas
        ",
        expect![[r#"
            0 a quota h: hard 10
            0 a quota s: soft 5
            0 a granted #0 core 6 on n1 to 3600, over soft s
            0 a granted #1 core 5 on n2 to 3600
            0 a denied: h used 6, requested 5, limit 10
            0 a granted #2 core 5 on n2 to 3600, over soft s
            0 a granted #3 core 4 on n1 to 3600, over soft s
            0 a denied: h used 10, requested 2, limit 10
              h used 20 of hard 10
              s used 20 of soft 5
        "#]],
    );
}

#[test]
fn per_priority() {
    check(
        "
        0 op tenant a max=guaranteed
        0 op quota h a core hard=10 prio=guaranteed
        0 op quota s a core soft=5 prio=standard
        0 op quota u a core burst=7..9/60s prio=scavenger
        0 a grant core 10 prio=guaranteed
        0 a grant core 1 prio=guaranteed
        0 a grant core 6
        0 a grant core 8 prio=scavenger
        0 a grant core 2 prio=scavenger
        0 show quotas
        ",
        expect![[r#"
            0 a tenant.put
            0 a quota h: hard 10
            0 a quota s: soft 5
            0 a quota u: burst 7
            0 a granted #0 core 10 on n1 to 3600 guaranteed
            0 a denied: h used 10, requested 1, limit 10
            0 a granted #1 core 6 on n1 to 3600, over soft s
            0 a granted #2 core 8 on n1 to 60 scavenger, capped by u
            0 a denied: u used 8, requested 2, limit 9
              h used 10 of hard 10
              s used 6 of soft 5
              u used 8 of burst 7..9 for 1m, episode since 0
        "#]],
    );
}

#[test]
fn lease_counts() {
    check(
        "
        0 op quota h a count=leases hard=3
        0 op quota g a gpu count=leases soft=0
        0 a grant core 100
        0 a grant gpu 1 cpu 1 core 1
        0 a grant gpu 1/7 cpu 1
        0 a grant core 1
        0 show quotas
        ",
        expect![[r#"
            0 a quota h: hard 3
            0 a quota g: soft 0
            0 a granted #0 core 100 on n1 to 3600
            0 a denied: h used 1, requested 3, limit 3
            0 a granted #1 gpu 1[0] #2 cpu 1000 on n1 to 3600, over soft g
            0 a denied: h used 3, requested 1, limit 3
              h used 3 of hard 3
              g used 1 of soft 0
        "#]],
    );
}

#[test]
fn distinct_nodes() {
    check(
        "
        0 op node n3 core 10
        0 op quota q a count=nodes hard=2
        0 a grant core 1 node=n1
        0 a grant core 1 node=n2
        0 a grant core 1 node=n3
        0 a grant core 10
        0 a release #1
        1 a grant core 1 node=n3
        1 show quotas
        ",
        expect![[r#"
            0 - node.put
            0 a quota q: hard 2
            0 a granted #0 core 1 on n1 to 3600
            0 a granted #1 core 1 on n2 to 3600
            0 a denied: q used 2, requested 1, limit 2
            0 a granted #2 core 10 on n1 to 3600
            0 a released #1, closed
            1 a granted #3 core 1 on n3 to 3601
              q used 2 of hard 2
        "#]],
    );
}

#[test]
fn a_quota_of_nodes_filters_candidates_and_is_named_when_none_is_left() {
    check(
        "
        0 op node n3 core 10
        0 op quota q a count=nodes hard=1
        0 a grant core 1 node=n1
        0 a grant core 10
        0 a grant core 195
        0 a grant core 300
        ",
        expect![[r#"
            0 - node.put
            0 a quota q: hard 1
            0 a granted #0 core 1 on n1 to 3600
            0 a granted #1 core 10 on n1 to 3600
            0 a denied: q used 1, requested 1, limit 1
            0 a denied: core requested 300, most free 200
        "#]],
    );
}

#[test]
fn all_quotas_that_apply_must_pass_and_the_first_that_does_not_is_named() {
    check(
        "
        0 op quota one a core hard=10
        0 op quota two a/a core hard=5
        0 op quota three a count=leases hard=1
        0 a grant core 11
        0 a grant core 6
        0 a grant core 5
        0 a grant core 1
        ",
        expect![[r#"
            0 a quota one: hard 10
            0 a quota two: hard 5
            0 a quota three: hard 1
            0 a denied: one used 0, requested 11, limit 10
            0 a denied: two used 0, requested 6, limit 5
            0 a granted #0 core 5 on n1 to 3600
            0 a denied: two used 5, requested 1, limit 5
        "#]],
    );
}

#[test]
fn several_soft_limits_are_all_marked() {
    check(
        "
        0 op quota one a core soft=1
        0 op quota two a core soft=1 node=each
        0 op quota three a count=leases soft=0
        0 a grant core 2
        ",
        expect![[r#"
            0 a quota one: soft 1
            0 a quota two: soft 1
            0 a quota three: soft 0
            0 a granted #0 core 2 on n1 to 3600, over soft one, over soft two, over soft three
        "#]],
    );
}

#[test]
fn a_quota_made_late_counts_what_runs() {
    check(
        "
        0 a grant core 10 node=n1
        0 a grant core 10 node=n1
        0 a grant core 10 node=n1
        0 a release #1 #2
        1 op confirm n1 #2
        130 op quota q a core hard=20
        130 op quota n a core hard=20 node=each
        130 op quota d a count=nodes hard=1
        130 show quotas
        ",
        expect![[r#"
            0 a granted #0 core 10 on n1 to 3600
            0 a granted #1 core 10 on n1 to 3600
            0 a granted #2 core 10 on n1 to 3600
            0 a released #1 #2
            1 a torn down #2 on n1
            130 a fenced #1 since 120
            130 a quota q: hard 20
            130 a quota n: hard 20
            130 a quota d: hard 1
              q used 10 of hard 20
              n used 10 of hard 20
              d used 1 of hard 1
        "#]],
    );
}

#[test]
fn a_quota_that_is_deleted_limits_nothing() {
    check(
        "
        0 op quota q a core hard=1
        0 a grant core 2
        1 op delete quota q
        1 a grant core 2
        2 op delete quota q
        ",
        expect![[r#"
            0 a quota q: hard 1
            0 a denied: q used 0, requested 2, limit 1
            1 a quota.deleted
            1 a granted #0 core 2 on n1 to 3601
            2 refused: unknown_quota
        "#]],
    );
}

#[test]
fn a_tenants_max_priority() {
    check(
        "
        0 a grant core 1 prio=guaranteed
        0 a grant core 1 prio=scavenger
        1 op tenant a max=guaranteed
        1 a grant core 1 prio=guaranteed
        2 op tenant a max=scavenger
        2 a grant core 1
        2 a renew #1 ttl=2h
        ",
        expect![[r#"
            0 refused: priority_above_max
            0 a granted #0 core 1 on n1 to 3600 scavenger
            1 a tenant.put
            1 a granted #1 core 1 on n1 to 3601 guaranteed
            2 a tenant.put
            2 refused: priority_above_max
            2 a renewed #1 to 7202
        "#]],
    );
}

#[test]
fn a_denial_is_of_capacity_only_when_the_quotas_let_it_pass() {
    check(
        "
        0 op quota q a core hard=500
        0 a grant core 501
        0 a grant core 201
        ",
        expect![[r#"
            0 a quota q: hard 500
            0 a denied: q used 0, requested 501, limit 500
            0 a denied: core requested 201, most free 200
        "#]],
    );
}

#[test]
fn a_denial_on_a_named_node_speaks_of_that_node() {
    check(
        "
        0 a grant core 195 node=n1
        0 a grant core 6 node=n1
        0 op drain n2
        0 a grant core 6 node=n2
        0 a grant gpu 1 node=n2
        ",
        expect![[r#"
            0 a granted #0 core 195 on n1 to 3600
            0 a denied: core requested 6, most free 5
            0 - drained n2
            0 a denied: core requested 6, most free 0
            0 a denied: gpu requested 7, most free 0
        "#]],
    );
}
