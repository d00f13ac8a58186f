//! Random queries, answered by the books page by page and by the naive model.

use crate::naive::{Allocation, Attempt, Lease, Naive};
use leasehold_books::{AllocationQuestion, Books, LeaseQuestion, Row, Story};
use leasehold_meter::Window;
use leasehold_model::{
    AllocationNo, AllocationState, ClassNo, Instant, LeaseNo, LeaseState, NodeNo, PoolNo, Priority, ProjectNo,
    TenantNo, UserNo,
};
use leasehold_sim::Dice;
use std::fmt::Debug;

fn as_naive(books: &Books, row: &Row, standing: LeaseState) -> (u64, Lease) {
    let rare = row.rare.as_deref();
    let ended = !matches!(standing, LeaseState::Active | LeaseState::Revoking);
    let lease = Lease {
        tenant: row.tenant.0,
        project: row.project.0,
        user: row.user.map(|user| user.0),
        workload: row.workload.as_ref().map(ToString::to_string),
        tag: row.tag.and_then(|tag| books.tag(tag)).map(ToString::to_string),
        node: row.node.0,
        pool: row.pool.0,
        class: row.class.0,
        priority: row.priority as u8,
        quanta: row.quanta,
        devices: row.life.devices,
        gang: row.gang().0,
        allocation: row.allocation.map(|no| no.0),
        app: row.app_instance.map(|no| no.0),
        correlation: rare.and_then(|rare| rare.correlation),
        labels: rare.map_or(0, |rare| rare.labels.len()),
        flags: (row.life.sensitive, row.life.over_soft),
        sequence: row.life.sequence,
        granted: row.held.from,
        expires: row.life.expires_at,
        ended: ended.then_some(row.held.to),
        closed: row.life.closed_at,
        fenced: rare.and_then(|rare| rare.fenced_at),
        state: standing.word(),
        ending: row.life.ending.map(|ending| (ending.sequence, ending.at)),
        revoked: row.revocation().map(|revoked| (revoked.reason, revoked.grace.0)),
    };
    (row.lease.0, lease)
}

fn story_as_naive(story: &Story) -> (u64, Allocation) {
    let outline = &story.outline;
    assert_eq!((outline.pool, outline.priority), (story.spec.pool, story.spec.priority));
    let attempt = |one: &leasehold_books::Attempt| Attempt {
        number: one.number,
        sequence: one.sequence,
        placed: one.placed_at,
        leases: (one.first_lease.0, one.leases),
        ended: one.ended_at,
        end: one.end.map(|end| end.to_string()),
        checkpoints: one.checkpoints.iter().map(|one| (one.at, one.bytes, one.took.0)).collect(),
    };
    let allocation = Allocation {
        tenant: outline.tenant.0,
        project: outline.project.0,
        user: outline.user.map(|user| user.0),
        workload: story.workload.as_ref().map(ToString::to_string),
        spec: story.spec.clone(),
        state: outline.state,
        submitted: outline.submitted_at,
        ended: outline.ended_at,
        attempts: story.attempts.iter().map(attempt).collect(),
        over: story.over.map(|over| (over.sequence, over.at, over.exit_status, over.storage_written)),
    };
    (outline.number.0, allocation)
}

/// Only the first pages of long lists are compared.
const PAGES_MAX: usize = 40;

/// How often a field of the query is set.
fn some<T>(dice: &mut Dice, one_in: u64, value: impl FnOnce(&mut Dice) -> T) -> Option<T> {
    dice.one_in(one_in).then(|| value(dice))
}

/// A window between two instants near events of the history, or a single instant.
fn window(naive: &Naive, dice: &mut Dice) -> Window {
    let mut beside = || {
        let lease = naive.leases.values().nth(dice.index(naive.leases.len())).expect("there are leases");
        let at = match dice.below(3) {
            0 => lease.granted,
            1 => lease.ended.unwrap_or(lease.expires),
            _ => lease.closed.unwrap_or(lease.granted),
        };
        Instant(at.0.saturating_add(1).saturating_sub(dice.below(3)))
    };
    let (a, b) = (beside(), beside());
    if dice.one_in(2) { Window::new(a, Instant(a.0 + 1)) } else { Window::new(a.min(b), a.max(b)) }
}

/// Compares a list of leases, page by page, with the naive model.
pub(crate) fn compare_leases(books: &Books, naive: &Naive, dice: &mut Dice) {
    if naive.leases.is_empty() {
        return;
    }
    let like = naive.leases.values().nth(dice.index(naive.leases.len())).expect("there are leases").clone();
    let mut question = LeaseQuestion { limit: *dice.pick(&[1, 3, 20, 1000]), ..LeaseQuestion::default() };
    let filter = &mut question.filter;
    filter.tenant = some(dice, 3, |_| TenantNo(like.tenant));
    filter.project = some(dice, 5, |_| ProjectNo(like.project));
    filter.users = like.user.filter(|_| dice.one_in(4)).map(|user| [UserNo(user)].into());
    filter.node = some(dice, 3, |_| NodeNo(like.node));
    filter.pool = some(dice, 6, |_| PoolNo(like.pool));
    filter.classes = some(dice, 6, |_| [ClassNo(like.class)].into_iter().collect());
    filter.priority = some(dice, 6, |dice| *dice.pick(Priority::ALL));
    filter.allocation = like.allocation.filter(|_| dice.one_in(4)).map(AllocationNo);
    question.window = dice.one_in(2).then(|| window(naive, dice));
    question.standing = some(dice, 4, |dice| *dice.pick(LeaseState::ALL));
    question.after = some(dice, 3, |dice| LeaseNo(dice.below(naive.leases.len() as u64 + 2)));
    let even = dice.one_in(5);

    let asked = question.clone();
    let filter = &asked.filter;
    let expected = naive.leases.iter().filter(|(number, lease)| {
        asked.after.is_none_or(|after| **number > after.0)
            && filter.tenant.is_none_or(|no| no.0 == lease.tenant)
            && filter.project.is_none_or(|no| no.0 == lease.project)
            && filter.users.as_ref().is_none_or(|all| lease.user.is_some_and(|user| all.contains(&UserNo(user))))
            && filter.node.is_none_or(|no| no.0 == lease.node)
            && filter.pool.is_none_or(|no| no.0 == lease.pool)
            && filter.classes.as_ref().is_none_or(|all| all.iter().any(|no| no.0 == lease.class))
            && filter.priority.is_none_or(|priority| priority as u8 == lease.priority)
            && filter.allocation.is_none_or(|no| Some(no.0) == lease.allocation)
            && asked.window.is_none_or(|window| lease.is_held_within((window.from, window.to)))
            && asked.standing.is_none_or(|standing| standing.word() == lease.state)
            && !(even && lease.tenant % 2 == 1)
    });
    let (mut found, mut complete) = (Vec::new(), false);
    for _ in 0..PAGES_MAX {
        let page = books.leases(&question, |row| !(even && row.tenant.0 % 2 == 1)).expect("an answer");
        assert!(page.leases.len() <= question.limit);
        found.extend(page.leases.iter().map(|(row, standing)| as_naive(books, row, *standing)));
        match page.next {
            Some(next) => question.after = Some(next),
            None => {
                complete = true;
                break;
            }
        }
    }
    let read_to = question.after.filter(|_| !complete).map(|after| after.0);
    check_same(&asked, expected, read_to, &found);
}

/// Compares the pages with the expected list, up to the last number that was read.
fn check_same<'n, T: Clone + Debug + PartialEq + 'n>(
    asked: &dyn Debug,
    expected: impl Iterator<Item = (&'n u64, &'n T)>,
    read_to: Option<u64>,
    found: &[(u64, T)],
) {
    let within = expected.filter(|(number, _)| read_to.is_none_or(|last| **number <= last));
    let expected: Vec<_> = within.map(|(number, one)| (*number, one.clone())).collect();
    if let Some(place) = (0..expected.len().max(found.len())).find(|place| expected.get(*place) != found.get(*place)) {
        panic!("{asked:?}\n  at {place}\n  expected {:?}\n  found    {:?}", expected.get(place), found.get(place));
    }
}

/// Compares a list of allocations, page by page, with the naive model.
pub(crate) fn compare_allocations(books: &Books, naive: &Naive, dice: &mut Dice) {
    if naive.allocations.is_empty() || naive.leases.is_empty() {
        return;
    }
    let like = naive.allocations.values().nth(dice.index(naive.allocations.len())).expect("there are some").clone();
    let last = *naive.allocations.keys().last().expect("there are some");
    let mut question = AllocationQuestion {
        tenant: some(dice, 3, |_| TenantNo(like.tenant)),
        project: some(dice, 5, |_| ProjectNo(like.project)),
        user: like.user.filter(|_| dice.one_in(4)).map(UserNo),
        pool: like.spec.pool.filter(|_| dice.one_in(4)),
        priority: some(dice, 6, |_| like.spec.priority),
        state: some(dice, 3, |dice| *dice.pick(AllocationState::ALL)),
        window: dice.one_in(2).then(|| window(naive, dice)),
        after: some(dice, 3, |dice| AllocationNo(dice.below(last + 2))),
        limit: *dice.pick(&[1, 3, 20, 1000]),
    };
    let asked = question.clone();
    let expected = naive.allocations.iter().filter(|(number, one)| {
        asked.after.is_none_or(|after| **number > after.0)
            && asked.tenant.is_none_or(|no| no.0 == one.tenant)
            && asked.project.is_none_or(|no| no.0 == one.project)
            && asked.user.is_none_or(|no| Some(no.0) == one.user)
            && asked.pool.is_none_or(|no| Some(no) == one.spec.pool)
            && asked.priority.is_none_or(|priority| priority == one.spec.priority)
            && asked.state.is_none_or(|state| state == one.state)
            && asked.window.is_none_or(|window| one.exists_within((window.from, window.to)))
    });
    let (mut found, mut complete) = (Vec::new(), false);
    for _ in 0..PAGES_MAX {
        let page = books.allocations(&question, |_| true).expect("an answer");
        assert!(page.allocations.len() <= question.limit);
        found.extend(page.allocations.iter().map(story_as_naive));
        match page.next {
            Some(next) => question.after = Some(next),
            None => {
                complete = true;
                break;
            }
        }
    }
    let read_to = question.after.filter(|_| !complete).map(|after| after.0);
    check_same(&asked, expected, read_to, &found);
}

/// Compares single leases and allocations by number.
pub(crate) fn compare_one(books: &Books, naive: &Naive, dice: &mut Dice) {
    let number = dice.below(naive.leases.len() as u64 + 2);
    let found = books.lease(LeaseNo(number)).expect("an answer").map(|(row, standing)| as_naive(books, &row, standing));
    assert_eq!(found, naive.leases.get(&number).map(|lease| (number, lease.clone())));
    let last = naive.allocations.keys().last().copied().unwrap_or(0);
    let number = match naive.allocations.keys().nth(dice.index(naive.allocations.len().max(1))) {
        Some(number) if dice.percent(80) => *number,
        _ => dice.below(last + 2),
    };
    let found = books.allocation(AllocationNo(number)).expect("an answer").map(|story| story_as_naive(&story));
    assert_eq!(found, naive.allocations.get(&number).map(|one| (number, one.clone())));
}
