//! The six parts of a node's capacity where something was noticed late (SEMANTICS 3 and 11).

use crate::directed::{TEN, begin, follow, heartbeat, secs};
use crate::history::{GPU, Grant, gpu};
use leasehold_books::Books;
use leasehold_meter::Window;
use leasehold_model::{NodeNo, Span};

/// GPU-seconds of node 0, which has 400 GPUs: held, tearing down, reserved, fenced, offline, idle.
fn parts(books: &Books, from: u64, to: u64) -> [u128; 6] {
    let window = Window::new(secs(from), secs(to));
    let lines = books.capacity(window, false, true, |_, node, class| node == NodeNo(0) && class.0 == GPU);
    let lines = lines.expect("an answer");
    assert_eq!(lines.len(), 1);
    let line = &lines[0].1;
    let parts = [line.held, line.tearing_down, line.reserved, line.fenced, line.offline, line.idle];
    assert_eq!(parts.iter().sum::<u128>(), line.capacity, "the parts add up");
    parts.map(|part| part / 7 / 1_000_000_000)
}

/// A fence counts from the teardown deadline, however late it is noticed.
#[test]
fn a_fence_counts_from_its_effective_instant() {
    let mut history = begin();
    let lease = history.grant(&gpu());
    history.at_secs(TEN + 100);
    history.release(lease, false, None);
    // The teardown was due at 220; the daemon was away.
    history.at_secs(TEN + 300);
    history.fence(lease, secs(TEN + 220));
    history.at_secs(TEN + 400);
    history.unfence(lease);
    heartbeat(&mut history, TEN + 500);
    let books = follow(&history);
    assert_eq!(parts(&books, TEN, TEN + 500), [100, 120, 0, 180, 0, 400 * 500 - 400]);
    assert_eq!(parts(&books, TEN + 220, TEN + 300), [0, 0, 0, 80, 0, 399 * 80]);
}

/// Between the instant at which a lost node was last seen and its return, all of it is offline: its idle devices, its
/// leases, what was torn down and what was fenced.
#[test]
fn all_of_a_lost_node_is_offline_from_when_it_was_last_seen() {
    let mut history = begin();
    let fenced = history.grant(&gpu());
    history.at_secs(TEN + 10);
    history.release(fenced, false, None);
    history.at_secs(TEN + 20);
    history.fence(fenced, secs(TEN + 20));
    let kept = history.grant(&gpu());
    let torn = history.grant(&gpu());
    history.at_secs(TEN + 60);
    // Released after the node was last seen, while nobody knew that it was gone.
    history.release(torn, false, None);
    history.at_secs(TEN + 110);
    history.lose(0, secs(TEN + 50), &[kept], false);
    history.at_secs(TEN + 130);
    history.fence(torn, secs(TEN + 120));
    history.at_secs(TEN + 200);
    history.find(0);
    heartbeat(&mut history, TEN + 300);
    let books = follow(&history);
    assert_eq!(parts(&books, TEN + 20, TEN + 50), [60, 0, 0, 30, 0, 397 * 30]);
    assert_eq!(parts(&books, TEN + 50, TEN + 110), [0, 0, 0, 0, 400 * 60, 0]);
    assert_eq!(parts(&books, TEN + 110, TEN + 200), [0, 0, 0, 0, 400 * 90, 0]);
    assert_eq!(parts(&books, TEN + 200, TEN + 300), [0, 100, 0, 200, 0, 397 * 100]);
}

/// A node that was drained after a lease had ended there was idle in between.
#[test]
fn capacity_that_was_free_before_a_drain_was_idle() {
    let mut history = begin();
    let lease = history.grant(&Grant { ttl: Span::from_secs(40), ..gpu() });
    history.at_secs(TEN + 60);
    history.drain(0, true);
    history.at_secs(TEN + 70);
    history.expire(&[lease], secs(TEN + 40), true);
    history.at_secs(TEN + 90);
    history.drain(0, false);
    heartbeat(&mut history, TEN + 100);
    let books = follow(&history);
    assert_eq!(parts(&books, TEN, TEN + 100), [40, 0, 0, 0, 400 * 30, 400 * 70 - 40]);
    assert_eq!(parts(&books, TEN + 40, TEN + 60), [0, 0, 0, 0, 0, 400 * 20]);
}

/// A lease past its deadline is not held, even before its expiry is recorded.
#[test]
fn a_lease_that_is_overdue_is_not_held() {
    let mut history = begin();
    history.grant(&Grant { ttl: Span::from_secs(40), ..gpu() });
    heartbeat(&mut history, TEN + 100);
    let books = follow(&history);
    assert_eq!(parts(&books, TEN, TEN + 100), [40, 60, 0, 0, 0, 399 * 100]);
    assert_eq!(parts(&books, TEN + 50, TEN + 100), [0, 50, 0, 0, 0, 399 * 50]);
    assert_eq!(parts(&books, TEN, TEN + 40), [40, 0, 0, 0, 0, 399 * 40]);
}

/// Empty from the end of the last lease, teardown and fence on; idle capacity counts at the scavenger price.
#[test]
fn an_empty_node_could_have_earned() {
    let mut history = begin();
    let lease = history.grant(&gpu());
    history.at_secs(TEN + 100);
    history.release(lease, false, None);
    history.at_secs(TEN + 160);
    let books = follow(&history);
    let empty = |books: &Books, since: u64, as_of: u64| -> Vec<(u32, u64, String)> {
        let found = books.empty_nodes(secs(since), secs(as_of)).expect("an answer");
        let earned = |money: &[(leasehold_model::rate::Currency, leasehold_meter::Money)]| {
            money.iter().map(|(currency, money)| format!("{} {currency}", money.decimal(2).expect("small"))).collect()
        };
        found
            .iter()
            .map(|one| (one.node.0, (one.since.0 / 1_000_000_000).saturating_sub(TEN), earned(&one.could_have_earned)))
            .collect()
    };
    // Node 1 has been empty since it was created, an hour before; node 0 is being torn down.
    assert_eq!(empty(&books, TEN - 3600, TEN + 160).len(), 1);
    let mut history = history;
    history.torn_down(0, lease);
    heartbeat(&mut history, TEN + 260);
    let books = follow(&history);
    let found = empty(&books, TEN + 160, TEN + 260);
    // 400 GPUs for 100 s at 0.01 and 1 TiB at 0.001 a GiB, at three tenths.
    assert_eq!(found[0], (0, 160, "150.72 EUR".to_owned()));
    assert_eq!(empty(&books, TEN + 159, TEN + 260).len(), 1, "not long enough");
}
