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
        expect![[r#"
            0 a tenant.put
            0 a granted #0 core 1 on n1 to 3600
            1 a tenant.put
            1 a granted #1 core 1 on n1 to 3601
            2 a renewed #0 to 7202
            3 a tenant.put
            3 a granted #2 core 1 on n1 to 3603
              #0 active core 1 0..7202 tag cost-1
              #1 active core 1 1..3601 tag cost-2
              #2 active core 1 3..3603
        "#]],
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
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            1 refused: tenant_has_leases
            1 refused: project_has_leases
            2 a released #0
            2 refused: tenant_has_leases
            2 refused: project_has_leases
            3 a torn down #0 on n1
            3 a project.deleted
            3 tenant-0 tenant.deleted
            4 refused: unknown_tenant
        "#]],
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
        expect![[r#"
            0 a project.put
            0 a user.put
            0 b user.put
            0 a quota q: hard 1
            0 b quota r: hard 1
              tenant a leases 0
              tenant b leases 0
              project a leases 0
              project b leases 0
              project p leases 0
              quota q
              quota r
              user a/u
              user b/u
            1 tenant-0 tenant.deleted
              tenant b leases 0
              project b leases 0
              quota r
              user b/u
            2 a tenant.put
            2 a project.put
            2 a granted #0 core 2 on n1 to 3602
        "#]],
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
        expect![[r#"
            0 a project.put
            0 a quota q: hard 1
            0 a quota r: hard 1
            1 a project.deleted
              tenant a leases 0
              tenant b leases 0
              project a leases 0
              project b leases 0
              quota r
            2 a project.put
            2 a granted #0 core 1 on n1 to 3602
        "#]],
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
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            0 a released #0
            120 a fenced #0
            120 refused: tenant_has_leases
            121 a unfenced #0
            121 tenant-0 tenant.deleted
        "#]],
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
        expect![[r#"
            0 b project.put
            0 refused: name_taken
            0 refused: name_taken
            0 refused: name_taken
            0 refused: name_taken
            0 refused: name_taken
            1 c tenant.put
            1 a tenant.put
            1 refused: name_taken
            2 b user.put
            2 refused: name_taken
            2 b user.deleted
        "#]],
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
        expect![[r#"
            0 tenant-1 tenant.deleted
            0 b tenant.put
            0 b project.put
            1 refused: unknown_tenant
            1 b granted #0 core 1 on n1 to 3601
        "#]],
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
        expect![[r#"
            0 - class.put
            0 - class.put
            1 - node.put
            1 refused: class_in_use
            1 refused: class_in_use
            2 - node.deleted
            2 - class.put
            3 - node.put
            3 a granted #0 new 7[0] on n3 to 3603
            3 a released #0, closed
            4 - node.deleted
            5 refused: class_in_use
            5 - class.put
        "#]],
    );
}
