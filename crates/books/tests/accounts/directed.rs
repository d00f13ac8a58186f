//! Short histories for single rules, checked after every record.

use crate::check;
use crate::history::{GPU, Grant, History, MEM, charges, gpu, name, prices};
use leasehold_books::{Books, Bucket, Buckets, Dim, Keeper, Question};
use leasehold_meter::{Units, Window};
use leasehold_model::body::{AllocationFailed, AllocationPlaced, AllocationSubmitted, Heartbeat, Started};
use leasehold_model::rate::{Charge, Charges, Period};
use leasehold_model::{
    AllocationNo, AllocationSpec, AttemptEnd, ClassNo, Identity, Instant, LeaseNo, Priority, ProjectNo, Quanta, Reason,
    Span, TenantNo,
};
use leasehold_sim::Dice;
use smallvec::smallvec;

pub(crate) const NODE: [(u16, u64); 2] = [(GPU, 7 * 400), (MEM, 1 << 20)];

/// 2026-03-01T10:00:00Z.
pub(crate) const TEN: u64 = 1_772_359_200;

pub(crate) fn begin() -> History {
    let mut history = History::begin(Instant::from_secs(TEN - 3600));
    history.node(0, 0, &NODE);
    history.node(1, 1, &NODE);
    history.at_secs(TEN);
    history
}

pub(crate) fn secs(secs: u64) -> Instant {
    Instant::from_secs(secs)
}

/// Checks after every record that the books answer like the oracle; returns the books at the end.
pub(crate) fn follow(history: &History) -> Books {
    let mut books = Keeper::in_memory().books;
    let mut dice = Dice::new(history.records.len() as u64);
    let every = history.records.len() / 40 + 1;
    for (i, record) in history.records.iter().enumerate() {
        books.apply(record).unwrap_or_else(|error| panic!("{error}: {record:?}"));
        if i.is_multiple_of(every) || i + 1 == history.records.len() {
            let known = &history.records[..=i];
            check(known, &books, 8, &mut dice).unwrap_or_else(|what| panic!("after record {i}: {what}"));
        }
    }
    check(&history.records, &books, 60, &mut dice).unwrap_or_else(|what| panic!("{what}"));
    books
}

fn gpu_seconds(books: &Books, from: u64, to: u64) -> String {
    let question = Question::over(Window::new(secs(from), secs(to)), &[]);
    let usage = books.usage(&question).expect("an answer");
    let amount = usage.lines().filter(|line| line.class.0 == GPU).map(|line| line.amount).sum();
    Units::of(amount, 7).decimal(3).expect("small")
}

fn cost(books: &Books, from: u64, to: u64) -> String {
    let question = Question::over(Window::new(secs(from), secs(to)), &[]);
    let (lines, _) = books.cost(&question).expect("an answer");
    let each = lines.iter().map(|line| format!("{} {}", line.money.decimal(6).expect("small"), line.currency));
    each.collect::<Vec<_>>().join(", ")
}

pub(crate) fn heartbeat(history: &mut History, at: u64) {
    history.at_secs(at);
    history.push(Heartbeat {});
}

/// SEMANTICS 2, "Vectors", through the books.
#[test]
fn the_vectors_of_the_semantics() {
    let mut history = begin();
    let two_hours = Grant { ttl: Span::from_secs(7200), ..gpu() };
    let lease = history.grant(&two_hours);
    heartbeat(&mut history, TEN + 3000);
    history.at_secs(TEN + 7200);
    history.expire(&[lease], secs(TEN + 7200), true);
    heartbeat(&mut history, TEN + 4 * 3600);
    let minute = history.grant(&Grant { ttl: Span::from_secs(60), ..gpu() });
    // Released after 61 seconds: the expiry comes first.
    history.at_secs(TEN + 4 * 3600 + 61);
    history.expire(&[minute], secs(TEN + 4 * 3600 + 60), true);
    heartbeat(&mut history, TEN + 5 * 3600);
    let books = follow(&history);
    assert_eq!(gpu_seconds(&books, TEN + 3600, TEN + 3 * 3600), "3600.000");
    assert_eq!(gpu_seconds(&books, TEN + 4 * 3600, TEN + 5 * 3600), "60.000");
    assert_eq!(cost(&books, TEN, TEN + 4 * 3600), "72.000000 EUR");
}

/// SEMANTICS 10: while a seventh of a GPU is held, the claimer still pays for the rest.
#[test]
fn what_a_claim_leaves_idle_is_paid_for() {
    let mut history = begin();
    history.node(2, 0, &[(GPU, 14)]);
    history.claim(2, 0, 1);
    let seventh = Grant { node: 2, members: vec![(GPU, 1)], ttl: Span::from_secs(9000), ..gpu() };
    let lease = history.grant(&seventh);
    heartbeat(&mut history, TEN + 3600);
    // Drained, it is nobody's to pay; lost, neither, from when it was last seen.
    history.at_secs(TEN + 7200);
    history.drain(2, true);
    history.at_secs(TEN + 8000);
    history.drain(2, false);
    history.at_secs(TEN + 8100);
    history.lose(2, secs(TEN + 8050), &[lease], false);
    history.at_secs(TEN + 8200);
    history.find(2);
    history.at_secs(TEN + 8220);
    history.fence(lease, history.now);
    history.at_secs(TEN + 8300);
    history.unclaim(2);
    heartbeat(&mut history, TEN + 9000);
    history.wiped(2);
    heartbeat(&mut history, TEN + 9100);
    let books = follow(&history);
    assert_eq!(gpu_seconds(&books, TEN, TEN + 3600), "7200.000");
    assert_eq!(
        cost(&books, TEN, TEN + 3600),
        "105.428571 EUR",
        "a seventh at the standard rate, the rest at half as much again"
    );
    assert_eq!(gpu_seconds(&books, TEN + 7200, TEN + 8000), "114.286", "what is leased is billed while it is drained");
    assert_eq!(gpu_seconds(&books, TEN + 8050, TEN + 8200), "0.000");
    assert_eq!(gpu_seconds(&books, TEN + 8200, TEN + 8220), "40.000", "what is torn down is idle");
    assert_eq!(gpu_seconds(&books, TEN + 8220, TEN + 8300), "148.571", "what is fenced is the operator's loss");
    assert_eq!(gpu_seconds(&books, TEN + 8300, TEN + 9100), "0.000");
}

#[test]
fn leases_of_no_length() {
    let mut history = begin();
    let kept = history.grant(&gpu());
    for closed in [true, false] {
        let lease = history.grant(&gpu());
        history.release(lease, closed, None);
        if !closed {
            history.torn_down(0, lease);
        }
    }
    // Granted after its node was last seen.
    history.at_secs(TEN + 100);
    let late = history.grant(&gpu());
    history.at_secs(TEN + 110);
    history.lose(0, secs(TEN + 50), &[kept, late], true);
    heartbeat(&mut history, TEN + 200);
    let books = follow(&history);
    assert_eq!(gpu_seconds(&books, TEN, TEN + 200), "50.000");
    let (peaks, _) = books.peaks(&Question::over(Window::new(secs(TEN), secs(TEN + 200)), &[])).expect("an answer");
    assert_eq!(peaks[0].peak, 7, "what was never held is in no peak");
}

/// 2028-02-28T12:00Z to 2028-03-01T06:00Z, over the leap day.
#[test]
fn month_ends_and_the_leap_day() {
    let noon = 1_835_352_000;
    let mut history = History::begin(secs(noon - 10));
    history.node(0, 0, &NODE);
    history.at_secs(noon);
    let lease = history.grant(&Grant { ttl: Span::from_secs(42 * 3600), ..gpu() });
    history.card(0, None, secs(noon + 12 * 3600), prices("EUR", 20_000_000));
    history.card(1, None, secs(noon + 36 * 3600), prices("CHF", 30_000_000));
    history.at_secs(noon + 42 * 3600);
    history.expire(&[lease], secs(noon + 42 * 3600), true);
    heartbeat(&mut history, noon + 100 * 3600);
    let books = follow(&history);
    let window = Window::new(secs(noon), secs(noon + 100 * 3600));
    for (bucket, hours) in [(Bucket::Month, vec![36, 6]), (Bucket::Day, vec![12, 24, 6])] {
        let mut question = Question::over(window, &[]);
        question.borders = Buckets::new(bucket, None).expect("UTC").borders(window).expect("few");
        let usage = books.usage(&question).expect("an answer");
        let found: Vec<u128> = usage.lines().map(|line| line.amount / 7 / 3_600_000_000_000).collect();
        assert_eq!(found, hours, "{bucket}");
    }
}

/// A day of a zone begins the evening before in UTC and is called by its own date.
#[test]
fn days_of_a_zone_are_labelled_as_such() {
    // 2026-03-27T21:00Z to 2026-03-30T12:00Z; in Tallinn, clocks go forward on the 29th.
    let window = Window::new(secs(1_774_645_200), secs(1_774_872_000));
    let labels = |bucket, zone| {
        let buckets = Buckets::new(bucket, zone).expect("a zone");
        buckets.labels(&buckets.borders(window).expect("few")).expect("in time")
    };
    let days = ["2026-03-27", "2026-03-28", "2026-03-29", "2026-03-30"];
    assert_eq!(labels(Bucket::Day, Some("Europe/Tallinn")), days);
    assert_eq!(labels(Bucket::Day, None), days);
    assert_eq!(labels(Bucket::Month, Some("Europe/Tallinn")), ["2026-03"]);
    assert_eq!(labels(Bucket::Hour, Some("Europe/Tallinn"))[0], "2026-03-27T23:00+02:00");
}

/// A deadline that is replaced, and one that passes during an outage, checked at each record.
#[test]
fn renewals_and_expiries_noticed_late() {
    let mut history = begin();
    let renewed = history.grant(&Grant { ttl: Span::from_secs(60), ..gpu() });
    let forgotten: Vec<u64> = (0..3).map(|_| history.grant(&Grant { ttl: Span::from_secs(70), ..gpu() })).collect();
    for i in 1..20 {
        history.at_secs(TEN + 3 * i);
        history.renew(renewed, secs(TEN + 3 * i + 60));
    }
    // A renewal may also shorten.
    let shortened = history.grant(&Grant { ttl: Span::from_secs(2 * 86_400), ..gpu() });
    history.renew(shortened, secs(TEN + 100));
    // A day later the process is there again.
    history.at_secs(TEN + 86_400);
    history.push(Started { epoch: 2, software: name("again"), rules_version: 1, clock_accepted: None });
    history.expire(&forgotten[..1], secs(TEN + 70), true);
    history.expire(&forgotten[1..], secs(TEN + 70), false);
    history.expire(&[renewed], secs(TEN + 57 + 60), false);
    history.torn_down(0, renewed);
    history.expire(&[shortened], secs(TEN + 100), true);
    heartbeat(&mut history, TEN + 86_500);
    let books = follow(&history);
    assert_eq!(gpu_seconds(&books, TEN, TEN + 86_500), "370.000");
}

/// Prices apply to held time: a change at the instant of a grant applies to the whole lease, one at the instant of a
/// release does not apply.
#[test]
fn prices_change_at_the_instant_of_a_grant_and_of_a_release() {
    let mut history = begin();
    let dear = |gpu: u64| leasehold_model::rate::Prices { tiers: Vec::new(), ..prices("EUR", gpu) };
    history.card(0, None, secs(TEN), dear(20_000_000));
    let lease = history.grant(&gpu());
    history.card(1, Some(0), secs(TEN + 100), dear(50_000_000));
    history.at_secs(TEN + 100);
    history.release(lease, true, None);
    let lease = history.grant(&gpu());
    history.card(2, Some(0), secs(TEN + 150), dear(0));
    history.at_secs(TEN + 200);
    history.release(lease, false, None);
    history.card(3, None, secs(TEN + 200), dear(999_000_000));
    heartbeat(&mut history, TEN + 300);
    let books = follow(&history);
    // 100 s at 0.02, 50 s at 0.05, 50 s for nothing.
    assert_eq!(cost(&books, TEN, TEN + 300), "4.500000 EUR");
    assert_eq!(cost(&books, TEN, TEN + 100), "2.000000 EUR");
}

/// Prices for an hour and a day are exact, also where they change within a lease.
#[test]
fn prices_per_hour_and_per_day() {
    let mut history = begin();
    let per = |gpu: u64, period| {
        let mut prices = leasehold_model::rate::Prices { tiers: Vec::new(), ..prices("EUR", gpu * 1_000_000_000) };
        prices.periods.kinds[0] = period;
        prices
    };
    history.card(0, None, secs(TEN), per(2, Period::Hour));
    let lease = history.grant(&gpu());
    history.card(1, None, secs(TEN + 900), per(48, Period::Day));
    history.card(2, None, secs(TEN + 1_800), per(1, Period::Second));
    history.at_secs(TEN + 1_801);
    history.release(lease, true, None);
    heartbeat(&mut history, TEN + 2_000);
    let books = follow(&history);
    assert_eq!(cost(&books, TEN, TEN + 1_800), "1.000000 EUR");
    assert_eq!(cost(&books, TEN, TEN + 2_000), "2.000000 EUR");
    // A sixth of a GPU-hour.
    assert_eq!(cost(&books, TEN, TEN + 600), "0.333333 EUR");
}

#[test]
fn many_leases_at_one_instant() {
    let mut history = begin();
    let mut leases = Vec::new();
    for i in 0..300 {
        let tenant = i % 3;
        let members = vec![(GPU, 1 + u64::from(i % 7)), (MEM, 100)];
        leases.push(history.grant(&Grant { tenant, project: tenant, members, ..gpu() }));
    }
    history.at_secs(TEN + 60);
    for (i, lease) in leases.iter().enumerate() {
        history.release(*lease, true, None);
        history.grant(&Grant { workload: Some("next"), ..gpu() });
        if i % 2 == 0 {
            history.release(lease + 1, false, None);
        }
    }
    heartbeat(&mut history, TEN + 120);
    follow(&history);
}

/// Hundreds of changes after a node was last seen: old segments are reopened.
pub(crate) fn late_loss() -> History {
    let mut history = begin();
    let lost: Vec<u64> = (0..5).map(|_| history.grant(&gpu())).collect();
    let mut lost_all = lost.clone();
    for i in 1..400u64 {
        history.at_secs(TEN + 3 * i);
        let node = u32::from(i % 2 == 0);
        let lease = history.grant(&Grant { node, pool: node, ..gpu() });
        if i % 50 == 0 {
            // These stay, on the node that is gone.
            lost_all.extend((node == 0).then_some(lease));
        } else {
            history.at_secs(TEN + 3 * i + 1);
            history.release(lease, true, None);
        }
        if i % 100 == 0 {
            lost_all.iter().for_each(|lease| history.renew(*lease, secs(TEN + 3 * i + 5000)));
        }
    }
    history.at_secs(TEN + 1300);
    history.lose(0, secs(TEN + 31), &lost_all, false);
    history.at_secs(TEN + 1400);
    lost_all.iter().for_each(|lease| history.torn_down(0, *lease));
    history.find(0);
    heartbeat(&mut history, TEN + 1500);
    history
}

#[test]
fn a_loss_noticed_after_many_blocks() {
    let books = follow(&late_loss());
    let question = Question::over(Window::new(secs(TEN + 1300), secs(TEN + 1400)), &[Dim::Node]);
    let usage = books.usage(&question).expect("an answer");
    assert!(usage.lines().all(|line| line.key[0] == 1), "nothing was held on the lost node");
}

#[test]
fn nodes_move_between_pools_and_change_size() {
    let mut history = begin();
    for round in 0..6u64 {
        let pool = u32::try_from(round % 3).expect("small");
        history.node(0, pool, &[(GPU, 70 + 7 * round)]);
        let lease = history.grant(&Grant { pool, ..gpu() });
        history.at_secs(TEN + round * 100 + 40);
        history.drain(0, true);
        history.at_secs(TEN + round * 100 + 50);
        history.release(lease, round % 2 == 0, None);
        if round % 2 == 1 {
            history.at_secs(TEN + round * 100 + 60);
            if round == 3 {
                history.fence(lease, history.now);
                history.unfence(lease);
            } else {
                history.torn_down(0, lease);
            }
        }
        history.drain(0, false);
        history.at_secs(TEN + round * 100 + 100);
    }
    heartbeat(&mut history, TEN + 1000);
    follow(&history);
}

/// SEMANTICS 11, "Start failures and grace". Rules before version 4 charged such a lease like any other.
#[test]
fn a_victim_that_is_released_within_its_grace_is_charged_as_preempted() {
    let mut history = begin();
    history.policy(0, secs(TEN + 10), charges(Charge::None, Charge::Full, Charge::Full));
    history.at_secs(TEN);
    let names = ["evicted", "evicted by old rules", "revoked by an operator"];
    let leases = names.map(|workload| history.grant(&Grant { workload: Some(workload), ..gpu() }));
    history.at_secs(TEN + 100);
    history.revoke(leases[0], Reason::Preempted { by: 1 });
    history.revoke_by_old_rules(leases[1], Reason::Preempted { by: 1 });
    history.revoke(leases[2], Reason::Operator);
    history.at_secs(TEN + 110);
    leases.iter().for_each(|lease| history.release(*lease, true, None));
    heartbeat(&mut history, TEN + 500);
    let books = follow(&history);
    let mut question = Question::over(Window::new(secs(TEN), secs(TEN + 500)), &[]);
    let paid = names.map(|workload| {
        question.filter.workload = Some(name(workload));
        let (lines, _) = books.cost(&question).expect("an answer");
        lines.iter().map(|line| line.money.decimal(3).expect("small")).collect::<Vec<_>>().join(", ")
    });
    assert_eq!(paid, ["", "1.100", "1.100"]);
}

/// SEMANTICS 11, "Start failures and grace": all leases of the attempt, whatever ended them before the report, except for
/// those that were evicted or lost with their node.
#[test]
fn all_leases_of_an_attempt_that_could_not_be_started_are_charged_as_such() {
    let mut history = begin();
    let failed_start = Charges { failed_start: Charge::None, ..charges(Charge::Full, Charge::Full, Charge::Full) };
    history.policy(0, secs(TEN + 10), failed_start);
    let allocation = AllocationNo(history.records.len() as u64);
    let spec = AllocationSpec { staged: true, ..AllocationSpec::of(smallvec![(ClassNo(GPU), Quanta(7))]) };
    let owner = Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() };
    history.push(AllocationSubmitted { spec, when_over_quota: None, node: None }).identity = owner;
    let names = ["held", "expired", "torn down", "fenced", "revoked", "evicted", "evicted and expired", "lost"];
    let first_lease = LeaseNo(0);
    history.push(AllocationPlaced { allocation, attempt: 1, first_lease, leases: 8, rules_version: 4 });
    let leases = names.map(|workload| {
        let node = u32::from(workload == "lost");
        history.grant(&Grant { workload: Some(workload), allocation: Some(allocation.0), node, ..gpu() })
    });
    let [held, expired, torn_down, fenced, revoked, evicted, evicted_and_expired, lost] = leases;
    history.at_secs(TEN + 90);
    history.expire(&[expired], history.now, true);
    history.expire(&[torn_down, fenced], history.now, false);
    history.torn_down(0, torn_down);
    history.fence(fenced, history.now);
    history.revoke(revoked, Reason::Policy);
    history.ready(revoked, false);
    history.revoke(evicted, Reason::Preempted { by: 1 });
    history.ready(evicted, true);
    history.revoke(evicted_and_expired, Reason::Preempted { by: 1 });
    history.expire(&[evicted_and_expired], history.now, true);
    history.lose(1, history.now, &[lost], true);
    history.at_secs(TEN + 100);
    let (end, storage_written) = (AttemptEnd::FailedStart, 0);
    history.push(AllocationFailed { allocation, end, exit_status: None, storage_written });
    history.release(held, true, None);
    heartbeat(&mut history, TEN + 500);
    let books = follow(&history);
    let mut question = Question::over(Window::new(secs(TEN), secs(TEN + 500)), &[]);
    let paid = names.map(|workload| {
        question.filter.workload = Some(name(workload));
        let (lines, _) = books.cost(&question).expect("an answer");
        lines.iter().map(|line| line.money.decimal(2).expect("small")).collect::<String>()
    });
    assert_eq!(paid, ["", "", "", "", "", "0.90", "0.90", "0.90"]);
}

/// The charge depends on how a lease ended, and on the policy in force at that instant.
#[test]
fn charges_by_reason() {
    let mut history = begin();
    history.card(0, None, secs(TEN + 150), prices("EUR", 40_000_000));
    let minus = |secs: u64| Charge::MinusLast(Span::from_secs(secs));
    history.policy(0, secs(TEN + 10), charges(Charge::None, minus(100), minus(30)));
    history.policy(1, secs(TEN + 300), charges(minus(10_000), Charge::Full, Charge::None));
    let mut end = |at: u64, how: u32| {
        history.at_secs(TEN);
        let priority = if how.is_multiple_of(2) { Priority::Guaranteed } else { Priority::Scavenger };
        let workload = Some(["preempted", "fenced", "lost", "operator"][how as usize]);
        let lease = history.grant(&Grant { priority, workload, node: u32::from(how == 2), ..gpu() });
        (at, how, lease)
    };
    let ends: Vec<(u64, u32, u64)> = [5, 10, 200, 299, 300, 400]
        .into_iter()
        .flat_map(|at| [0, 1, 3].map(|how| (at, how)))
        .chain([(200, 2)])
        .map(|(at, how)| end(at, how))
        .collect();
    let mut in_order = ends.clone();
    in_order.sort_unstable();
    for (at, how, lease) in in_order {
        history.at_secs(TEN + at);
        match how {
            0 => {
                history.revoke(lease, Reason::Preempted { by: 1 });
                history.ready(lease, true);
            }
            1 => {
                history.release(lease, false, None);
                history.fence(lease, history.now);
            }
            2 => history.lose(1, secs(TEN + 160), &[lease], true),
            _ => {
                history.revoke(lease, Reason::Operator);
                history.ready(lease, false);
            }
        }
    }
    heartbeat(&mut history, TEN + 500);
    let books = follow(&history);
    let mut question = Question::over(Window::new(secs(TEN), secs(TEN + 500)), &[]);
    let mut paid = |workload: &str| {
        question.filter.workload = Some(name(workload));
        let (lines, _) = books.cost(&question).expect("an answer");
        lines.iter().map(|line| line.money.decimal(3).expect("small")).collect::<Vec<_>>().join(", ")
    };
    // Only the one that ended before the policy held: 5 s at 0.01 and half as much again.
    assert_eq!(paid("preempted"), "0.075");
    // 160 s, less 30: 130 s at 0.01, the dearer time forgiven.
    assert_eq!(paid("lost"), "1.950");
}
