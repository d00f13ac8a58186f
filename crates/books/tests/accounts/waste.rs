//! Waste as the books find it in a history.

use crate::books_of;
use crate::history::{GPU, Grant, History, gpu};
use leasehold_books::{Books, FRAGMENTED_LEASE_COUNT, Filter, WasteClass};
use leasehold_meter::Window;
use leasehold_model::body::Heartbeat;
use leasehold_model::{Activity, Instant, Span};

const TEN: u64 = 1_772_359_200;

fn begin() -> History {
    let mut history = History::begin(Instant::from_secs(TEN - 10));
    // 100 GPUs: a sixteenth is 43.75 quanta.
    history.node(0, 0, &[(GPU, 700)]);
    history.at_secs(TEN);
    history
}

fn headlines(books: &Books) -> Vec<WasteClass> {
    let window = Window::new(Instant::from_secs(TEN), Instant::from_secs(TEN + 100));
    let waste = books.waste(window, &Filter::default(), FRAGMENTED_LEASE_COUNT).expect("an answer");
    waste.leases.iter().map(leasehold_books::LeaseWaste::headline).collect()
}

/// More than 32 small live leases of one holder, and exactly so many of another.
#[test]
fn fragments() {
    let mut history = begin();
    for holder in [0, 1] {
        for _ in 0..33 - holder {
            history.grant(&Grant { tenant: holder, members: vec![(GPU, 7)], ..gpu() });
        }
    }
    // Not small; not of the same user; both beside 33 small ones.
    history.grant(&Grant { members: vec![(GPU, 44)], ..gpu() });
    history.grant(&Grant { user: Some(1), ..gpu() });
    history.at_secs(TEN + 100);
    history.push(Heartbeat {});
    let found = headlines(&books_of(&history.records));
    assert_eq!(found[..33], [WasteClass::Fragmented; 33]);
    assert_eq!(found[33..], [WasteClass::Unknown; 34]);
    // One of them goes: the others are few enough.
    history.release(0, true, None);
    history.push(Heartbeat {});
    assert_eq!(headlines(&books_of(&history.records)), [WasteClass::Unknown; 67]);
}

/// A lease that is busy for a fifth of what it held, of which four fifths were reported: the rest of that is wasted, and
/// so is its part of the cost.
#[test]
fn what_is_wasted_and_its_price() {
    let mut history = begin();
    let lease = history.grant(&gpu());
    history.at_secs(TEN + 100);
    let second = 1_000_000_000;
    let activity = Activity {
        covered: Span::from_secs(80),
        busy: 7 * 16 * second,
        active: Span::from_secs(80),
        ..Activity::default()
    };
    history.release(lease, true, Some(activity));
    history.push(Heartbeat {});
    let books = books_of(&history.records);
    let window = Window::new(Instant::from_secs(TEN), Instant::from_secs(TEN + 100));
    let waste = books.waste(window, &Filter::default(), FRAGMENTED_LEASE_COUNT).expect("an answer");
    let [lease] = &waste.leases[..] else { panic!("one lease: {waste:?}") };
    assert_eq!(lease.classes.to_vec(), [WasteClass::PremiumWaste, WasteClass::Overprovisioned]);
    assert_eq!((lease.held, lease.covered, lease.busy), (700 * second, 560 * second, 112 * second));
    assert_eq!(lease.wasted, 448 * second);
    // 64 of 100 GPU-seconds at 0.01.
    assert_eq!(lease.wasted_money.iter().map(|(_, money)| *money).collect::<Vec<_>>(), [640_000_000]);
}
