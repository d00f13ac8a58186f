//! Tenants, projects and users: what follows them and what holds them back.

use crate::support::check;
use expect_test::expect;

#[test]
fn the_tag_of_a_lease_is_the_one_at_its_grant() {
    check(
        "
        0 op tenant a tag=cost-1
        0 a grant core 1
        1 op tenant a tag=cost-2
        1 a grant core 1
        2 a renew #0 ttl=2h
        3 op tenant a
        3 a grant core 1
        3 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn a_tenant_with_leases_is_not_deleted() {
    check(
        "
        0 a grant core 1 node=n1
        1 op delete tenant a
        1 op delete project a/a
        2 a release #0
        2 op delete tenant a
        2 op delete project a/a
        3 op confirm n1 #0
        3 op delete project a/a
        3 op delete tenant a
        4 op delete tenant a
        ",
        expect![[""]],
    );
}

#[test]
fn a_tenant_takes_projects_users_and_quotas_with_it() {
    check(
        "
        0 op project a/p
        0 op user a/u
        0 op user b/u
        0 op quota q a core hard=1
        0 op quota r b core hard=1
        0 show tenancy
        1 op delete tenant a
        1 show tenancy
        2 op tenant a
        2 op project a/a
        2 a grant core 2
        ",
        expect![[""]],
    );
}

#[test]
fn a_project_takes_its_quotas_with_it() {
    check(
        "
        0 op project a/p
        0 op quota q a/p core hard=1
        0 op quota r a core hard=1
        1 op delete project a/p
        1 show tenancy
        2 op project a/p
        2 a/p grant core 1
        ",
        expect![[""]],
    );
}

#[test]
fn a_fenced_lease_holds_its_tenant_until_it_is_cleared() {
    check(
        "
        0 a grant core 1 node=n1
        0 a release #0
        120 op delete tenant a
        121 op unfence #0
        121 op delete tenant a
        ",
        expect![[""]],
    );
}

#[test]
fn names_are_taken_within_their_room_and_given_back() {
    check(
        "
        0 op project b/a
        0 op project a/a
        0 op tenant c name=b
        0 op class c name=gpu
        0 op pool c name=main
        0 op node c name=n1
        1 op tenant a name=c
        1 op tenant d name=a
        1 op project c/a
        2 op user b/u
        2 op user b/u
        2 op delete user b/u
        ",
        expect![[""]],
    );
}

#[test]
fn numbers_are_never_handed_out_again() {
    check(
        "
        0 op delete tenant b
        0 op tenant b
        0 op project b/b
        1 op tenant b no=1
        1 b grant core 1
        ",
        expect![[""]],
    );
}

/// SEMANTICS 1: `quanta_per_unit` never changes once a class is used, also when the node that had
/// it is gone: past leases are counted in those quanta.
#[test]
fn what_a_quantum_is_never_changes_once_it_was_leased() {
    check(
        "
        0 op class new kind=gpu per=7
        0 op class new kind=gpu per=8
        1 op node n3 immediate new 1
        1 op class new kind=gpu per=7
        1 op class new kind=mem per=8
        2 op delete node n3
        2 op class new kind=gpu per=7
        3 op node n3 immediate new 1
        3 a grant new 1
        3 a release #0
        4 op delete node n3
        5 op class new kind=gpu per=8
        5 op class new kind=gpu per=7 name=newer
        ",
        expect![[""]],
    );
}
