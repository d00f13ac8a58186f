//! Books that differ from the journal.

use crate::world::{Alter, Rows, World, run};
use leasehold_books::{End, Row};
use leasehold_model::{Instant, NodeNo, Priority, TenantNo, UserNo};
use leasehold_scrub::{BooksChecked, Finding, Pass};

/// A history with closed leases, and one of them from the middle.
fn world() -> (World, Row) {
    for seed in 0.. {
        let world = World::of_seed(seed);
        let rows: Vec<Row> = world.books.closed_rows(0).unwrap().into_iter().filter(Row::is_lease).collect();
        if rows.len() > 20 {
            let row = rows[rows.len() / 2].clone();
            return (world, row);
        }
    }
    unreachable!("some history has leases")
}

fn found(world: &World, rows: &Rows<'_>) -> (Vec<Finding>, BooksChecked) {
    let mut pass = Pass::begin(&world.journal, Some(world.books.balance().unwrap()));
    let found = run(&mut pass, rows);
    (found, pass.books().0.clone())
}

#[test]
fn every_altered_figure_of_a_lease_is_found() {
    let (world, row) = world();
    let figures: [(&str, Alter); 12] = [
        ("tenant", |row| row.tenant = TenantNo(row.tenant.0 + 1)),
        ("project", |row| row.project.0 += 1),
        ("node", |row| row.node = NodeNo(row.node.0 + 1)),
        ("class", |row| row.class.0 += 1),
        ("quanta", |row| row.quanta -= 1),
        ("held_from", |row| row.held.from = Instant(row.held.from.0 + 1)),
        ("held_until", |row| row.held.to = Instant(row.held.to.0 - 1)),
        ("end", |row| row.end = if row.end == End::Preempted { End::Released } else { End::Preempted }),
        ("fenced", |row| row.fenced = !row.fenced),
        ("sequence", |row| row.life.sequence += 1),
        ("closed_at", |row| row.life.closed_at = None),
        ("user, pool, priority, allocation, app_instance, workload, devices or sensitive", |row| {
            row.user = Some(UserNo(4711));
        }),
    ];
    for (figure, alter) in figures {
        let rows = Rows { alter: Some((row.lease, alter)), ..world.rows() };
        let (findings, state) = found(&world, &rows);
        let [Finding::Lease { lease, figure: named, .. }] = &findings[..] else { panic!("{figure}: {findings:?}") };
        assert_eq!((*lease, *named, state), (row.lease, figure, BooksChecked::Compared));
    }
    let others: [Alter; 4] = [
        |row| row.priority = if row.priority == Priority::Standard { Priority::Scavenger } else { Priority::Standard },
        |row| row.workload = None,
        |row| row.life.devices ^= 1,
        |row| row.pool.0 += 1,
    ];
    let changed = others.iter().filter(|alter| {
        let rows = Rows { alter: Some((row.lease, **alter)), ..world.rows() };
        !found(&world, &rows).0.is_empty()
    });
    // A lease without a workload has none to lose.
    assert!(changed.count() >= 3);
}

#[test]
fn a_lease_too_few_or_too_many_is_found() {
    let (world, row) = world();
    let (findings, state) = found(&world, &Rows { lose: Some(row.lease), ..world.rows() });
    assert!(matches!(&findings[..], [Finding::Books { what }] if what.contains("where lease-")), "{findings:?}");
    assert!(matches!(state, BooksChecked::GivenUp(_)));
    // One more in the books than was ever closed: the journal ends before the last one is.
    // The row after those must be a lease, and not idle capacity of a claim.
    let balances = (2..10).map(|part| world.books_at(world.size() / part).balance().unwrap());
    let is_lease = |first: u64| world.books.closed_rows(first).unwrap().first().is_some_and(|row| row.is_lease());
    let mut balance = balances.into_iter().find(|balance| is_lease(balance.closed)).expect("a lease is closed next");
    balance.closed += 1;
    let mut pass = Pass::begin(&world.journal, Some(balance));
    let findings = run(&mut pass, &world.rows());
    assert!(matches!(&findings[..], [Finding::Books { what }] if what.contains("never closed")), "{findings:?}");
}

#[test]
fn an_index_that_leads_elsewhere_is_found() {
    let (world, row) = world();
    let (findings, _) = found(&world, &Rows { mislead: Some(row.lease), ..world.rows() });
    let expected = format!("lease-{}", row.lease.0);
    assert!(matches!(&findings[..], [Finding::Books { what }] if what.ends_with(&expected)), "{findings:?}");
}

#[test]
fn altered_totals_are_found() {
    let (world, _) = world();
    let balance = world.books.balance().unwrap();
    assert!(!balance.held.is_empty());
    for place in 0..balance.held.len() {
        let mut altered = balance.clone();
        altered.held[place].2 += 1;
        let (tenant, class, amount) = altered.held[place];
        let mut pass = Pass::begin(&world.journal, Some(altered));
        let expected = [Finding::Total { tenant, class, books: amount, records: amount - 1 }];
        assert_eq!(run(&mut pass, &world.rows()), expected);
    }
    // Moved from one tenant to another, which a sum over all would not show.
    let mut moved = balance.clone();
    moved.held.push((TenantNo(999), moved.held[0].1, 5));
    moved.held[0].2 -= 5;
    let mut pass = Pass::begin(&world.journal, Some(moved));
    assert_eq!(run(&mut pass, &world.rows()).len(), 2);
}
