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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
    );
}
