//! The ledger of the books against the oracle's: random histories of a real engine, settled hour by hour, corrected,
//! closed and paid, with crashes in every step.

mod bills;
mod by_hand;
mod closing;
mod compare;
mod directed;
mod directed_usage;
mod evidence;
mod file_changes;
mod foreign;
mod foreign_files;
mod nonsense;
mod proof_files;
mod proof_journal;
mod proof_kinds;
mod settling;
mod stakes;
mod story;
mod tamper;
mod tamper_shares;
mod tampering;
mod timelines;
mod usage;

pub(crate) use compare::same_lines;
pub(crate) use settling::compare_lines;

use crate::from_env;
use leasehold_engine::Command;
use leasehold_engine::command::OpenLedger;
use leasehold_model::ledger::hour_of;
use leasehold_model::{Body, Instant, Record, Span};
use settling::Settled;
use std::collections::BTreeMap;
use story::{Shelf, Step, Story};

const HOUR: u64 = 3_600_000_000_000;

/// One history. Returns its story.
fn tell(seed: u64, steps: u32, shelf: Shelf) -> Step<Story> {
    told(Story::begin(seed, shelf)?, steps)
}

/// One in which the cost of control planes is shared.
fn tell_sharing(seed: u64, steps: u32) -> Step<Story> {
    let mut story = Story::begin(seed, Shelf::Memory)?;
    story.shares = true;
    told(story, steps)
}

/// A short one with several invoices, in every other of which the cost of control planes is shared.
fn brief(seed: u64) -> Step<Story> {
    let mut story = Story::begin(seed, Shelf::Memory)?;
    story.shares = seed.is_multiple_of(2);
    told(story, 80)
}

fn told(mut story: Story, steps: u32) -> Step<Story> {
    let opens_at = story.dice.below(u64::from(steps) / 2 + 1);
    for step in 0..u64::from(steps) {
        if step == opens_at {
            open(&mut story)?;
        }
        one_step(&mut story)?;
        if story.dice.one_in(4) {
            story.check_books()?;
        }
        if from_env("LEASEHOLD_ACCOUNTS_ASK", 0) == 1 {
            let mut dice = leasehold_sim::Dice::new(step);
            crate::check(&story.records, story.books(), 12, &mut dice)?;
        }
    }
    // Everything comes to rest.
    story.settle_losses()?;
    for _ in 0..3 {
        story.pass(Span(HOUR))?;
        story.settle_losses()?;
        story.settle(true)?;
        story.close(true)?;
        story.check_books()?;
    }
    story.check_recount()?;
    story.crash()?;
    story.check_recount()?;
    story.check_books()?;
    Ok(story)
}

fn open(story: &mut Story) -> Step<()> {
    let first = story.records[0].stamp;
    let from = match story.dice.below(3) {
        0 => None,
        1 => Some(hour_of(first)),
        _ => Some(hour_of(Instant(first.0 + story.dice.below(story.now.0 - first.0 + 1)))),
    };
    story.expect(Command::OpenLedger(OpenLedger { from }), &[])
}

fn one_step(story: &mut Story) -> Step<()> {
    match story.dice.below(20) {
        0..9 => (0..1 + story.dice.below(4)).try_for_each(|_| story.ask()),
        9..13 => story.wait(),
        13 => story.settle_losses(),
        14 | 15 => story.settle(false).map(drop),
        16 => story.by_hand(),
        17 => match story.dice.below(3) {
            0 => story.crash(),
            1 => story.commit(),
            _ => story.check_draft(),
        },
        _ => {
            if story.dice.one_in(2) && story.settle(false)? == Settled::Interrupted {
                return Ok(());
            }
            story.close(false).map(drop)
        }
    }
}

/// Records without which a history says little about the ledger: one of each in at most so many histories.
const KINDS: [(&str, u64); 21] = [
    ("ledger.posted", 1),
    ("ledger.hour_settled", 1),
    ("ledger.corrected", 1),
    ("ledger.adjusted", 2),
    ("ledger.disputed", 4),
    ("period.closed", 2),
    ("invoice.issued", 2),
    ("payment.recorded", 4),
    ("tax_rate.put", 2),
    ("charge_policy.put", 4),
    ("node.lost", 4),
    ("lease.end_corrected", 40),
    ("node.claimed", 2),
    ("lease.fenced", 2),
    ("prepaid.topped_up", 2),
    ("prepaid.changed", 2),
    ("prepaid.lapsed", 4),
    ("prepaid.applied", 20),
    ("lent", 1),
    ("usage.recorded", 1),
    ("units posted", 1),
];

/// Whether it posts capacity that another project holds.
fn is_lent(record: &Record) -> bool {
    let payer = record.identity.project;
    matches!(&record.body, Body::LedgerPosted(posted) if posted.lines.iter().any(|line| Some(line.key.project) != payer))
}

/// LEASEHOLD_ACCOUNTS_LEDGER sets the number of histories; LEASEHOLD_ACCOUNTS_TELL prints their records, and with
/// LEASEHOLD_ACCOUNTS_ASK=1 usage and cost are compared too.
#[test]
fn the_ledger_is_what_brute_force_says() {
    let count = from_env("LEASEHOLD_ACCOUNTS_LEDGER", 1500);
    let from = from_env("LEASEHOLD_ACCOUNTS_FROM", 0);
    let mut kinds: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut told = 0;
    for seed in from..from + count {
        let folder = tempfile::tempdir().expect("a folder");
        let shelf = if seed % 5 == 4 { Shelf::File(folder.path().join("books")) } else { Shelf::Memory };
        let story = tell(seed, 200, shelf).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        if seed % 3 == 0 {
            told += story.check_timelines().unwrap_or_else(|what| panic!("seed {seed}: {what}")) as u64;
        }
        for record in &story.records {
            *kinds.entry(record.body.word()).or_default() += 1;
            *kinds.entry("lent").or_default() += u64::from(is_lent(record));
            *kinds.entry("units posted").or_default() += u64::from(usage::posts_units(record));
        }
    }
    println!("{kinds:?}, {told} entries in timelines");
    assert!(told > count, "only {told} entries in timelines");
    // A test in which nothing happens finds nothing.
    for (kind, most) in KINDS.iter().filter(|_| count >= 100) {
        let found = kinds.get(kind).copied().unwrap_or(0);
        assert!(found * most >= count, "only {found} times {kind} in {count} histories");
    }
}
