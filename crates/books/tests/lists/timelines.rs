//! Timelines of the simulator's histories, compared with a pass over all records.

use crate::world::long_history;
use crate::{books_key, books_of, journal_of, keys};
use leasehold_books::{Books, Keeper, Timeline, TimelineQuestion, TimelineStep, TimelineWhat};
use leasehold_model::Record;
use leasehold_model::body::{Body, Correlation};
use leasehold_model::id::CorrelationId;
use leasehold_sim::{Dice, tell_seed};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn question(id: u128, derived: Option<u64>, limit: usize) -> TimelineQuestion {
    TimelineQuestion { id: CorrelationId(id), derived, tenant: None, after: None, limit }
}

/// The ID that a request was given.
fn given(body: &Body) -> Option<u128> {
    if let Body::AllocationSubmitted(one) = body {
        return one.spec.correlation;
    }
    if let Body::AllocationDenied(one) = body {
        return one.spec.correlation;
    }
    if let Body::UsageRecorded(one) = body {
        return Some(one.report.correlation);
    }
    if let Body::Granted(one) = body { one.correlation } else { None }
}

pub(crate) fn ids_of(records: &[Record]) -> BTreeSet<u128> {
    records.iter().filter_map(|record| given(&record.body)).collect()
}

/// The leases that a record names, of those kinds that a timeline tells.
fn leases(body: &Body) -> Vec<u64> {
    let all = |leases: &leasehold_model::body::Leases| leases.0.iter().map(|lease| lease.0).collect();
    if let Body::Granted(one) = body {
        return (one.first_lease.0..).take(one.members.len()).collect();
    }
    if let Body::Renewed(one) = body {
        return one.renewals.iter().map(|renewal| renewal.lease.0).collect();
    }
    if let Body::Released(one) = body {
        return one.leases.leases().map(|lease| lease.0).collect();
    }
    let list = if let Body::Expired(one) = body {
        &one.leases
    } else if let Body::Revoked(one) = body {
        &one.leases
    } else if let Body::TeardownStarted(one) = body {
        &one.leases
    } else if let Body::TornDown(one) = body {
        &one.leases
    } else if let Body::Fenced(one) = body {
        &one.leases
    } else if let Body::Unfenced(one) = body {
        &one.leases
    } else if let Body::WindowAnnounced(one) = body {
        &one.leases
    } else if let Body::EndsCorrected(one) = body {
        &one.leases
    } else {
        return Vec::new();
    };
    all(list)
}

/// The allocations that a record is about, with the kind that their timeline tells.
fn allocations(record: &Record) -> Vec<(u64, &'static str)> {
    let word = record.body.word();
    if matches!(record.body, Body::AllocationSubmitted(_)) {
        return vec![(record.sequence, word)];
    }
    if let Body::ReservationTakenOver(one) = &record.body {
        let dropped = one.dropped.iter().map(|dropped| (dropped.0, "reservation.dropped"));
        return dropped.chain([(one.allocation.0, word)]).collect();
    }
    // All others name one allocation, which their text shows.
    let text = format!("{:?}", record.body);
    let told = (word.starts_with("allocation.") && word != "allocation.denied")
        || ["preemption.decided", "reservation.dropped", "head.protected"].contains(&word);
    let number = text.split("allocation: AllocationNo(").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
    number.filter(|_| told).map(|number| (number, word)).into_iter().collect()
}

/// A lease or an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Life {
    Lease(u64),
    Allocation(u64),
    Denial(u64),
    Usage(u64),
}

/// All records of all lives, and which lives have which ID.
#[derive(Default)]
struct Brute {
    records: BTreeMap<Life, Vec<(u64, &'static str)>>,
    of: BTreeMap<Correlation, BTreeSet<Life>>,
}

impl Brute {
    fn of(records: &[Record]) -> Self {
        let mut brute = Self::default();
        let mut of_allocation = BTreeMap::new();
        for record in records {
            for (number, kind) in allocations(record) {
                brute.records.entry(Life::Allocation(number)).or_default().push((record.sequence, kind));
            }
            for lease in leases(&record.body) {
                let told = (record.sequence, record.body.word());
                brute.records.entry(Life::Lease(lease)).or_default().push(told);
            }
            if let Body::AllocationSubmitted(one) = &record.body {
                let correlation = Correlation::or_derived(one.spec.correlation, record.sequence);
                of_allocation.insert(record.sequence, correlation);
                brute.of.entry(correlation).or_default().insert(Life::Allocation(record.sequence));
            }
            if let Body::AllocationDenied(one) = &record.body
                && let Some(id) = one.spec.correlation
            {
                let life = Life::Denial(record.sequence);
                brute.records.entry(life).or_default().push((record.sequence, "allocation.denied"));
                brute.of.entry(Correlation::Given(id)).or_default().insert(life);
            }
            if let Body::UsageRecorded(one) = &record.body {
                let life = Life::Usage(record.sequence);
                brute.records.entry(life).or_default().push((record.sequence, "usage.recorded"));
                brute.of.entry(Correlation::Given(one.report.correlation)).or_default().insert(life);
            }
            if let Body::Granted(one) = &record.body {
                let own = one.correlation_of(record.sequence);
                let shared = one.allocation.and_then(|allocation| of_allocation.get(&allocation.0));
                for correlation in shared.into_iter().chain([&own]) {
                    let lives = leases(&record.body).into_iter().map(Life::Lease);
                    brute.of.entry(*correlation).or_default().extend(lives);
                }
            }
        }
        brute
    }
}

fn whole(books: &Books, mut question: TimelineQuestion) -> Option<Timeline> {
    let mut all: Option<Timeline> = None;
    loop {
        let page = books.timeline(&question, |_, _| true).expect("readable")?;
        assert!(page.steps.len() <= question.limit);
        question.after = page.next;
        let all = all.get_or_insert_default();
        all.steps.extend(page.steps);
        if page.next.is_none() {
            return Some(all.clone());
        }
    }
}

/// Compares one ID; returns the number of steps.
fn compare(books: &Books, brute: &Brute, correlation: Correlation, dice: &mut Dice) -> usize {
    let (id, derived) = match correlation {
        Correlation::Given(id) => (id, None),
        Correlation::Derived(sequence) => (u128::MAX, Some(sequence)),
    };
    let Some(lives) = brute.of.get(&correlation) else {
        assert_eq!(whole(books, question(id, derived, 10)), None);
        return 0;
    };
    let found = whole(books, question(id, derived, 3 + dice.index(100))).expect("there is such an ID");
    assert_eq!(Some(&found.steps), whole(books, question(id, derived, 100_000)).as_ref().map(|all| &all.steps));
    if lives.len() <= 64 {
        let key = |step: &TimelineStep| (step.at, step.sequence);
        assert!(found.steps.is_sorted_by_key(key), "in order of time");
    }
    let mut shown: BTreeSet<(u64, &str)> = BTreeSet::new();
    for step in &found.steps {
        if let TimelineWhat::Record { kind, .. } = &step.what {
            assert!(shown.insert((step.sequence.expect("a record"), kind.word())), "a step once");
        }
    }
    let all: BTreeSet<(u64, &str)> = lives.iter().flat_map(|life| brute.records[life].iter().copied()).collect();
    let strange: Vec<_> = shown.difference(&all).collect();
    assert!(strange.is_empty(), "{correlation:?}: {strange:?} are not of {lives:?}");
    for life in lives {
        for (sequence, kind) in &brute.records[life] {
            // Repetitions are one step, at the last of them.
            let is_told = shown.contains(&(*sequence, *kind))
                || brute.records[life]
                    .iter()
                    .any(|(later, of)| later > sequence && of == kind && shown.contains(&(*later, of)));
            assert!(is_told, "{correlation:?}: record {sequence}, {kind} of {life:?} is missing in {shown:?}");
        }
    }
    found.steps.len()
}

/// Few IDs, so that several requests share one.
fn shared(mut records: Vec<Record>) -> Vec<Record> {
    let few = |id: &mut Option<u128>| *id = id.map(|id| id % 7);
    for record in &mut records {
        if let Body::AllocationSubmitted(one) = &mut record.body {
            few(&mut one.spec.correlation);
        } else if let Body::AllocationDenied(one) = &mut record.body {
            few(&mut one.spec.correlation);
        } else if let Body::AllocationChanged(one) = &mut record.body {
            few(&mut one.spec.correlation);
        } else if let Body::Granted(one) = &mut record.body {
            few(&mut one.correlation);
        } else if let Body::UsageRecorded(one) = &mut record.body {
            one.report.correlation %= 7;
        }
    }
    records
}

/// LEASEHOLD_TIMELINE_SEEDS and LEASEHOLD_TIMELINE_FROM choose other seeds.
#[test]
fn timelines_of_the_simulators_histories_are_what_a_pass_over_all_records_gives() {
    let from_env = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let from: u64 = from_env("LEASEHOLD_TIMELINE_FROM", 0);
    let (mut steps, mut ids) = (0, 0);
    for seed in from..from + from_env("LEASEHOLD_TIMELINE_SEEDS", 60) {
        println!("seed {seed}");
        let (_, records) = tell_seed(seed, 300).unwrap_or_else(|failure| panic!("{failure}"));
        let records = shared(records);
        let mut dice = Dice::new(seed ^ 0x0071_3e11);
        let (books, brute) = (books_of(&records), Brute::of(&records));
        for correlation in brute.of.keys() {
            steps += compare(&books, &brute, *correlation, &mut dice);
            ids += 1;
        }
        compare(&books, &brute, Correlation::Given(1000), &mut dice);
        compare(&books, &brute, Correlation::Derived(records.len() as u64), &mut dice);
    }
    assert!(steps > 4 * ids, "{steps} steps of {ids} IDs");
}

/// Many commits, so that runs of the index are merged; then a restart, and a rebuild.
#[test]
fn timelines_of_a_long_history_are_the_same_after_a_restart_and_a_rebuild() {
    let mut records = long_history(12_000, 11, keys().public_keys()[0]);
    let mut dice = Dice::new(17);
    for record in &mut records {
        if let Body::Granted(one) = &mut record.body {
            // One ID in ten is shared by thousands, the others by few.
            one.correlation =
                dice.one_in(3).then(|| if dice.one_in(10) { 1 } else { 2 + u128::from(dice.below(2000)) });
        }
    }
    let journal = journal_of(&records);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("books");
    let (mut keeper, _) = Keeper::open(&path, &journal, &books_key()).expect("opened");
    while keeper.books.size() < records.len() as u64 {
        keeper.follow(&journal, 1 + dice.below(4000)).expect("followed");
        keeper.commit(&journal).expect("committed");
    }
    drop(keeper);
    let (restarted, _) = Keeper::open(&path, &journal, &books_key()).expect("opened");
    let (rebuilt, brute) = (books_of(&records), Brute::of(&records));
    for id in (1..80).chain(1990..2010) {
        for books in [&restarted.books, &rebuilt] {
            compare(books, &brute, Correlation::Given(id), &mut dice.clone());
        }
    }
    let before = restarted.books.reads();
    let asked = 200;
    for id in 100..100 + asked {
        drop(restarted.books.timeline(&question(id, None, 100), |_, _| true).expect("readable"));
    }
    let reads = (restarted.books.reads() - before) / u64::try_from(asked).expect("small");
    assert!(reads < 80, "{reads} entries of the file for an ID");
}
