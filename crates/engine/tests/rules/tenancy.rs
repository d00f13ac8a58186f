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

#[test]
fn an_update_keeps_what_it_does_not_name_and_clears_what_it_names_empty() {
    check(
        "
        0 op update a tag=cost-1 max=guaranteed evicted=7
        0 show tenants
        1 op update a name=c
        1 show tenants
        2 op update c tag=- evicted=-
        2 show tenants
        3 op update c
        3 show tenants
        ",
        expect![[r#"
            0 a tenant.put
              a: tag cost-1, max guaranteed, evicted Some(7), quotas []
              b: tag none, max standard, evicted None, quotas []
            1 c tenant.put
              c: tag cost-1, max guaranteed, evicted Some(7), quotas []
              b: tag none, max standard, evicted None, quotas []
            2 c tenant.put
              c: tag none, max guaranteed, evicted None, quotas []
              b: tag none, max standard, evicted None, quotas []
            3 c tenant.put
              c: tag none, max guaranteed, evicted None, quotas []
              b: tag none, max standard, evicted None, quotas []
        "#]],
    );
}

/// Each limit is the hard quota of the whole tenant with the lowest number, whoever made it.
#[test]
fn limits_of_an_update_are_quotas() {
    check(
        "
        0 op quota narrow a core hard=9
        0 op quota soft a count=leases soft=9
        0 op quota twin a count=leases hard=9
        1 op update a nodes=1 leases=2
        1 show quotas
        2 a grant core 1 node=n1
        2 a grant core 1 node=n2
        2 a grant core 1 node=n1
        2 a grant core 1 node=n1
        3 op update a leases=3
        3 a grant core 1 node=n1
        4 op update a nodes=- leases=-
        4 show quotas
        5 op update a nodes=-
        6 op update a tag=t nodes=- leases=-
        6 op update a tag=t nodes=- leases=-
        7 op update b nodes=4 leases=5
        7 show tenants
        ",
        expect![[r#"
            0 a quota narrow: hard 9
            0 a quota soft: soft 9
            0 a quota twin: hard 9
            1 a quota quota-3: hard 1
            1 a quota soft: hard 2
              narrow used 0 of hard 9
              soft used 0 of hard 2
              twin used 0 of hard 9
              quota-3 used 0 of hard 1
            2 a granted #0 core 1 on n1 to 3602
            2 a denied: quota-3 used 1, requested 1, limit 1
            2 a granted #1 core 1 on n1 to 3602
            2 a denied: soft used 2, requested 1, limit 2
            3 a quota soft: hard 3
            3 a granted #2 core 1 on n1 to 3603
            4 a quota.deleted
            4 a quota.deleted
              narrow used 3 of hard 9
              twin used 3 of hard 9
            5 a tenant.put
            6 a tenant.put
            6 a quota.deleted
            6 a tenant.put
            7 b quota quota-4: hard 4
            7 b quota quota-5: hard 5
              a: tag t, max standard, evicted None, quotas [quota-0]
              b: tag none, max standard, evicted None, quotas [quota-4, quota-5]
        "#]],
    );
}

/// All or nothing: what is refused last leaves what came first undone (`World::decide` sees to it).
#[test]
fn an_update_is_atomic() {
    let quotas: Vec<String> = (0..255).map(|n| format!("0 op quota q{n} a core hard={n} by-app={n}")).collect();
    let mut story = crate::support::Story::on(crate::support::STAGE);
    story.play(&crate::support::with_instances(255));
    story.play(&quotas.join("\n"));
    story.text.clear();
    story.play(
        "
        1 op update a tag=t nodes=1 leases=1
        2 op update a name=b nodes=1
        3 op update a nodes=1
        4 op update a nodes=- leases=1
        5 b update a tag=t
        6 op update nobody tag=t
        6 show tenants
        ",
    );
    // At the limit a quota that goes makes room for the one that comes.
    let told: Vec<&str> = story.text.lines().take(7).collect();
    let expected = [
        "1 refused: too_many_quotas",
        "2 refused: name_taken",
        "3 a quota quota-255: hard 1",
        "4 a quota.deleted",
        "4 a quota quota-256: hard 1",
        "5 refused: unknown_tenant",
        "6 refused: unknown_tenant",
    ];
    assert_eq!(told, expected);
    assert!(story.text.contains("a: tag none"), "{}", story.text);
}
