//! Every invoice of a random history follows from the records of its tenant. The books compute usage another way, and the
//! oracle has checked each of their postings, so the crate `bill` agrees with both.

use super::evidence::evidences;
use super::story::{Shelf, Step, Story};
use super::tell;
use crate::from_env;
use leasehold_bill::{Evidence, Fold, Used, UsedLines, Verdict, check};
use leasehold_ledger::Amount;
use leasehold_meter::Window;
use leasehold_model::rate::Currency;
use leasehold_model::{Body, Instant, LineKey, Month, ProjectNo, Record, Span, TenantNo};
use std::collections::{BTreeMap, BTreeSet};

fn prove(seed: u64, evidence: &Evidence, verdicts: &mut BTreeMap<&'static str, u64>) {
    let report = check(evidence);
    let (tenant, month, currency) = (evidence.tenant, evidence.month, evidence.currency);
    assert!(report.is_proved(), "seed {seed}, {tenant} {month} {currency}: {:#?}", report.mismatches);
    let (_, invoice) = report.invoice.as_ref().expect("it is proved");
    assert_eq!(invoice.lines, report.lines.len() as u64);
    let (list, outside) = (&evidence.list_at_start, &evidence.claimed_nodes);
    for (what, is_so) in [
        ("invoices", true),
        ("with open leases", !list.leases.is_empty()),
        ("with open claims", !list.claims.is_empty()),
        ("with open attempts", !list.attempts.is_empty()),
        ("with payers", !list.payers.is_empty()),
        ("with claims", !outside.nodes.is_empty()),
        ("with own evictions", !outside.own_evictions.is_empty()),
    ] {
        *verdicts.entry(what).or_default() += u64::from(is_so);
    }
    for line in &report.lines {
        let word = match line.verdict {
            Verdict::Proved => "proved",
            Verdict::ByHand => "by hand",
            Verdict::Shared => "shared",
            Verdict::NotProved => "not proved",
            Verdict::Wrong => "wrong",
        };
        *verdicts.entry(word).or_default() += 1;
        *verdicts.entry("adjustments").or_default() += u64::from(line.key.month < month && !line.key.correction);
    }
}

/// LEASEHOLD_ACCOUNTS_BILLS sets the number of histories.
#[test]
fn every_invoice_is_proved() {
    let (from, count) = (from_env("LEASEHOLD_ACCOUNTS_FROM", 0), from_env("LEASEHOLD_ACCOUNTS_BILLS", 300));
    let mut verdicts = BTreeMap::new();
    for seed in from..from + count {
        let story = tell(seed, 200, Shelf::Memory).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        evidences(&story.records).iter().for_each(|evidence| prove(seed, evidence, &mut verdicts));
    }
    println!("{verdicts:?}");
}

/// Goes on after a month was closed: some hours of work, and then few requests until the next month is closed as well.
pub(crate) fn another_month(story: &mut Story) -> Step<()> {
    let month = Month::of(story.now);
    for step in 0..400 {
        let hours = if step < 300 { 0 } else { 24 };
        (0..story.dice.below(3)).try_for_each(|_| story.ask())?;
        let seconds = hours * 3600 + story.dice.below(600);
        story.pass(Span::from_secs(seconds))?;
        if story.dice.one_in(10) {
            story.settle_losses()?;
            story.settle(true)?;
            story.close(true)?;
        }
        if Month::of(story.now) > month {
            break;
        }
    }
    story.pass(Span(3_600_000_000_000))?;
    story.settle(true)?;
    story.close(true).map(drop)
}

/// What changes after the cut of a month is an adjustment of the next one. LEASEHOLD_ACCOUNTS_MONTHS sets the number of
/// histories.
#[test]
fn adjustments_of_a_closed_month_are_proved() {
    let (from, count) = (from_env("LEASEHOLD_ACCOUNTS_FROM", 0), from_env("LEASEHOLD_ACCOUNTS_MONTHS", 30));
    let mut verdicts = BTreeMap::new();
    for seed in from..from + count {
        let story = tell(seed, 200, Shelf::Memory);
        let mut story = story.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        another_month(&mut story).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        evidences(&story.records).iter().for_each(|evidence| prove(seed, evidence, &mut verdicts));
    }
    println!("{verdicts:?}");
}

/// What was posted for each line, and what it cost exactly.
type Posted = BTreeMap<(ProjectNo, Currency), BTreeMap<LineKey, Used>>;

fn posted(records: &[Record]) -> Posted {
    let mut all = Posted::new();
    for record in records {
        let (Body::LedgerPosted(posted), Some(project)) = (&record.body, record.identity.project) else { continue };
        for line in &posted.lines {
            let exact = Amount::decoded(&line.exact).expect("lowest terms");
            let lines = all.entry((project, posted.currency)).or_default();
            let sum = lines.entry(line.key.clone()).or_insert_with(|| Used { usage: 0, exact: Amount::zero() });
            *sum = Used { usage: sum.usage + line.usage.0, exact: sum.exact.clone() + &exact };
        }
    }
    all.values_mut().for_each(|lines| lines.retain(|_, used| used.usage != 0));
    all.retain(|_, lines| !lines.is_empty());
    all
}

/// Over a whole history, with all its hours settled: each line used what was posted for it, and costs that exactly. The
/// oracle has checked each posting.
#[test]
fn what_a_whole_history_used_is_what_was_posted() {
    let (from, count) = (from_env("LEASEHOLD_ACCOUNTS_FROM", 0), from_env("LEASEHOLD_ACCOUNTS_BILLS", 300));
    let mut lines = 0;
    for seed in from..from + count {
        let story = tell(seed, 200, Shelf::Memory).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        let mut settled = story.records.iter().rev().filter_map(|record| match &record.body {
            Body::HourSettled(settled) => Some((settled.as_of_size, settled.through)),
            _ => None,
        });
        let Some((size, through)) = settled.next() else { continue };
        let tenants: BTreeSet<TenantNo> = story.records.iter().filter_map(|record| record.identity.tenant).collect();
        let mut fold = Fold::new();
        tenants.iter().for_each(|tenant| fold.keep(*tenant, Instant(0)));
        let before = &story.records[..usize::try_from(size).expect("few")];
        for record in before {
            fold.take(record).unwrap_or_else(|why| panic!("seed {seed}: {why}: {record:?}"));
        }
        let window = Window::new(Instant(0), through);
        let mut used = UsedLines::new();
        for tenant in tenants {
            used.extend(fold.used(tenant, window).expect("small"));
        }
        let settled_before = posted(&story.records);
        lines += used.values().map(BTreeMap::len).sum::<usize>();
        assert_eq!(used, settled_before, "seed {seed}");
    }
    println!("{lines} lines");
    assert!(lines as u64 > count, "only {lines} lines");
}
