//! A run: one seed, one cluster, many lives.

use crate::fault_disk::{FaultDisk, Faults};
use crate::life::{End, Truth, start};
use crate::{apps_events, claims, entitlements_events, events, prepaid_events, sharing_events, usage_events};
use leasehold_cell::ManualClock;
use leasehold_journal::{FileJournal, Keys, Options};
use leasehold_model::{Instant, Record};
use leasehold_oracle::Dice;
use leasehold_oracle::{Oracle, Settings};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Counters of successful runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub seeds: u64,
    pub records: u64,
    pub requests: u64,
    pub refused: u64,
    pub repeats: u64,
    pub repeated: u64,
    pub mismatches: u64,
    pub crashes: u64,
    pub clean_stops: u64,
    pub replayed: u64,
    pub snapshots: u64,
    pub full: u64,
    pub clock_jumps: u64,
    pub flips: u64,
    pub flips_refused: u64,
    pub kinds: BTreeMap<&'static str, u64>,
    /// Refusals that the oracle predicted, by code.
    pub foretold: BTreeMap<&'static str, u64>,
    /// Notable events of claims and sensitive work, lost nodes, failed starts, prepaid credit and app runtimes.
    pub sensitive: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Adds what another run counted.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.records += other.records;
        self.requests += other.requests;
        self.refused += other.refused;
        self.repeats += other.repeats;
        self.repeated += other.repeated;
        self.mismatches += other.mismatches;
        self.crashes += other.crashes;
        self.clean_stops += other.clean_stops;
        self.replayed += other.replayed;
        self.snapshots += other.snapshots;
        self.full += other.full;
        self.clock_jumps += other.clock_jumps;
        self.flips += other.flips;
        self.flips_refused += other.flips_refused;
        for (kind, count) in &other.kinds {
            *self.kinds.entry(kind).or_insert(0) += count;
        }
        for (code, count) in &other.foretold {
            *self.foretold.entry(code).or_insert(0) += count;
        }
        for (what, count) in &other.sensitive {
            *self.sensitive.entry(what).or_insert(0) += count;
        }
    }
}

/// A seed that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub steps: u32,
    pub life: u64,
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} (steps {}, life {}): {}", self.seed, self.steps, self.life, self.what)
    }
}
impl std::error::Error for Failure {}

/// Runs one seed for `steps` steps, with as many lives as necessary.
pub fn run_seed(seed: u64, steps: u32) -> Result<Tally, Failure> {
    // In some runs only: what other kept seeds do must not change.
    let keeps_ledger = Dice::new(seed ^ 0x1ed6).one_in(3);
    tell(seed, steps, keeps_ledger).map(|(tally, _)| tally)
}

/// Like [`run_seed`], and returns all records of the journal. The ledger is not used: the simulator makes its amounts
/// up, and books that read the records would contradict them.
pub fn tell_seed(seed: u64, steps: u32) -> Result<(Tally, Vec<Record>), Failure> {
    tell(seed, steps, false)
}

/// Runs one seed for about `steps` steps on a disk without faults, with little but app runtimes, their usage and the ledger:
/// months are closed one after the other.
pub fn run_months(seed: u64, steps: u32) -> Result<Tally, Failure> {
    tell_months(seed, steps).map(|(tally, _)| tally)
}

/// Like [`run_months`], and returns all records of the journal.
pub fn tell_months(seed: u64, steps: u32) -> Result<(Tally, Vec<Record>), Failure> {
    let failed = |what: String| Failure { seed, steps, life: 1, what };
    let mut dice = Dice::new(seed ^ 0x307_745);
    let mut truth = truth(true, dice.one_in(2));
    let disk = FaultDisk::new(dice.split(), Faults::default());
    let mut life = start(&mut truth, &disk, &mut dice).map_err(failed)?.expect("the disk has no faults");
    life.settle_world(&mut dice).map_err(failed)?;
    life.live_months(steps, &mut dice).map_err(failed)?;
    count_events(&mut truth);
    Ok((truth.tally, truth.records))
}

/// Nothing was seen yet.
fn truth(keeps_ledger: bool, has_prepaid: bool) -> Truth {
    let keys = Keys::new("sim.example", &[9; 32]).expect("a valid origin");
    let settings = leasehold_engine::Settings::default();
    Truth {
        oracle: Oracle::with_settings(Settings {
            ttl_max: settings.ttl_max,
            grace_default: settings.grace_default,
            teardown_deadline: settings.teardown_deadline,
            node_timeout: settings.node_timeout,
            idempotency_window: settings.idempotency_window,
        }),
        hashes: Vec::new(),
        records: Vec::new(),
        keys: Arc::new(keys),
        clock: Arc::new(ManualClock::at(Instant::from_secs(1_767_225_600))),
        sent: Vec::new(),
        answered: BTreeMap::new(),
        tally: Tally { seeds: 1, ..Tally::default() },
        keeps_ledger,
        has_prepaid,
        topped_up: None,
    }
}

fn tell(seed: u64, steps: u32, keeps_ledger: bool) -> Result<(Tally, Vec<Record>), Failure> {
    let mut dice = Dice::new(seed);
    let mut truth = truth(keeps_ledger, keeps_ledger && Dice::new(seed ^ 0x9e9).one_in(2));
    let mut disk = FaultDisk::new(dice.split(), Faults::default());
    let mut left = steps;
    let mut lives = 0;
    let mut settled = false;
    while left > 0 {
        lives += 1;
        let failed = |what: String| Failure { seed, steps, life: lives, what };
        let end = match start(&mut truth, &disk, &mut dice).map_err(failed)? {
            None => End::Crash,
            Some(mut life) => {
                if !settled {
                    settled = true;
                    life.settle_world(&mut dice).map_err(failed)?;
                    disk.set_faults(Faults::draw(&mut dice, &disk));
                }
                life.run(&mut left, &disk, &mut dice).map_err(failed)?
            }
        };
        left = left.saturating_sub(1);
        match end {
            End::Crash => truth.tally.crashes += 1,
            End::CleanStop => truth.tally.clean_stops += 1,
            End::Done => {}
        }
        // Often there are faults again, sometimes during the recovery of the next start.
        disk = disk.reboot(Faults::default());
        if dice.one_in(2) {
            disk.set_faults(Faults::draw(&mut dice, &disk));
        }
        if dice.one_in(4) {
            flip_and_look(&mut truth, &disk, &mut dice).map_err(failed)?;
        }
    }
    count_events(&mut truth);
    Ok((truth.tally, truth.records))
}

fn count_events(truth: &mut Truth) {
    truth.tally.sensitive = claims::notable(&truth.records);
    events::count(&truth.records, &mut truth.tally.sensitive);
    prepaid_events::count(&truth.records, &mut truth.tally.sensitive);
    apps_events::count(&truth.records, &mut truth.tally.sensitive);
    usage_events::count(&truth.records, &mut truth.tally.sensitive);
    entitlements_events::count(&truth.records, &mut truth.tally.sensitive);
    sharing_events::count(&truth.records, &mut truth.tally.sensitive);
}

/// Flips a bit in a copy: it is detected, or is in the torn end, in padding or in something that can be rebuilt. It
/// never changes a record.
fn flip_and_look(truth: &mut Truth, disk: &FaultDisk, dice: &mut Dice) -> Result<(), String> {
    let copy = disk.reboot_copy();
    let prefix = *dice.pick(&["journal/", "anchor", "snapshots/", ""]);
    let Some((name, at)) = copy.flip_bit(prefix, dice) else { return Ok(()) };
    truth.tally.flips += 1;
    let options = Options { segment_bytes: 24 << 10, index_bytes: 2 << 10 };
    let opened =
        FileJournal::open(Arc::new(copy), options, truth.keys.clone(), crate::life::local(), truth.clock_wall());
    let Ok((journal, _)) = opened else {
        truth.tally.flips_refused += 1;
        return Ok(());
    };
    let mut wrong = None;
    let scanned = leasehold_journal::Journal::scan_verified(
        &journal,
        leasehold_journal::Head::EMPTY,
        &mut |sequence, _, hash| {
            let place = usize::try_from(sequence).expect("small");
            if truth.hashes.get(place).is_some_and(|known| known != hash) {
                wrong = Some(sequence);
            }
            std::ops::ControlFlow::Continue(())
        },
    );
    match (scanned, wrong) {
        // The damage was detected when the records were read.
        (Err(_), None) => Ok(()),
        (_, Some(sequence)) => Err(format!("a bit flipped in {name} at {at} changed record {sequence} unnoticed")),
        (Ok(_), None) => Ok(()),
    }
}

/// Runs the seeds `from..from + count`, and stops at the first that fails.
pub fn run_seeds(from: u64, count: u64, steps: u32, mut progress: impl FnMut(u64)) -> Result<Tally, Failure> {
    let mut total = Tally::default();
    for seed in from..from.saturating_add(count) {
        total.add(&run_seed(seed, steps)?);
        progress(seed);
    }
    Ok(total)
}
