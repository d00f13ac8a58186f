//! Evidence that makes no sense is not believed, and does not make a check panic.

use super::bills::another_month;
use super::evidence::{evidences, hash};
use super::proof_files::{file, forge, key};
use super::story::Shelf;
use super::tell;
use leasehold_bill::{Evidence, Sorted, check};
use leasehold_model::limits::USAGE_QUANTITY_MAX;
use leasehold_model::{Body, Instant, LeaseNo, Month, ProjectNo, Record, Residual, Span, Steps, TenantNo};
use leasehold_sim::Dice;
use leasehold_verify::Trust;
use leasehold_verify::invoice::verify_invoice;
use std::time::Duration;

const FAR: [u64; 4] = [0, 1, 10_000_000_000_000_000_000, u64::MAX];

/// Numbers at the ends of what a record can say.
fn distort(record: &mut Record, dice: &mut Dice) {
    let far = *dice.pick(&FAR);
    match &mut record.body {
        Body::Granted(granted) => {
            granted.members[0].quanta.0 = far;
            granted.ttl = Span(*dice.pick(&FAR));
            granted.first_lease = LeaseNo(if dice.one_in(2) { u64::MAX } else { granted.first_lease.0 });
        }
        Body::Renewed(renewed) => renewed.renewals[0].expires_at = Instant(far),
        Body::LedgerPosted(posted) => {
            let sign = if dice.one_in(2) { 1 } else { -1 };
            for line in &mut posted.lines {
                line.usage.0 = sign * ((1 << 120) - 1);
                line.posted = Steps(sign * Steps::MAX.0);
                line.key.hour = Instant(if dice.one_in(3) { far } else { line.key.hour.0 });
            }
            posted.residual = Residual::NONE;
        }
        Body::LedgerCorrected(corrected) => {
            corrected.rounding = Steps::MAX;
            corrected.reversal.iter_mut().for_each(|leg| leg.amount = Steps::MAX);
            corrected.corrects.position = u16::MAX;
        }
        Body::LedgerAdjusted(adjusted) => adjusted.legs.iter_mut().for_each(|leg| leg.amount = -Steps::MAX),
        Body::UsageRecorded(recorded) => {
            recorded.report.quantity = USAGE_QUANTITY_MAX;
            (recorded.report.from, recorded.report.to) = (Instant(*dice.pick(&FAR)), Instant(far));
        }
        Body::InvoiceIssued(invoice) => {
            invoice.total = -Steps::MAX;
            invoice.projects.iter_mut().for_each(|(_, amount)| *amount = Steps::MAX);
            invoice.taxes.iter_mut().for_each(|line| (line.net, line.rate.0) = (Steps::MAX, u64::MAX));
        }
        Body::PrepaidApplied(applied) => (applied.amount, applied.credited) = (Steps::MAX, -Steps::MAX),
        Body::TaxRatePut(put) => put.rate.0 = u64::MAX,
        Body::ClassPut(put) => put.spec.quanta_per_unit = far,
        Body::AllocationPlaced(placed) => {
            placed.leases = u32::MAX;
            placed.first_lease = LeaseNo(if dice.one_in(2) { far } else { placed.first_lease.0 });
        }
        Body::LedgerOpened(opened) => opened.from = Instant(far),
        _ => record.effective_at = Instant(far.min(record.stamp.0)),
    }
}

/// Leases of all times and sizes in the list at the start.
fn distort_list(evidence: &mut Evidence, dice: &mut Dice) {
    let leases = evidence.list_at_start.leases.iter().cloned().map(|mut lease| {
        (lease.from, lease.to) = (Instant(*dice.pick(&FAR)), Instant(*dice.pick(&FAR)));
        lease.quanta.0 = u64::MAX;
        lease
    });
    evidence.list_at_start.leases = Sorted::new(leases.collect::<Vec<_>>());
}

fn one_change(evidence: &mut Evidence, dice: &mut Dice) {
    let place = dice.index(evidence.records.len());
    match dice.below(10) {
        0 => drop(evidence.records.remove(place)),
        1 => {
            let again = evidence.records[place].clone();
            evidence.records.insert(place, again);
        }
        2 => {
            let other = dice.index(evidence.records.len());
            evidence.records.swap(place, other);
        }
        3 => evidence.records[place].record.stamp = Instant(*dice.pick(&FAR)),
        4 => evidence.records[place].record.identity.tenant = Some(TenantNo(dice.index(9).try_into().expect("small"))),
        5 => evidence.records[place].record.identity.project = Some(ProjectNo(u32::MAX)),
        6 => {
            let stated = &mut evidence.statement.1;
            (stated.from, stated.border, stated.cut) = (*dice.pick(&FAR), *dice.pick(&FAR), *dice.pick(&FAR));
        }
        7 => evidence.month = *dice.pick(&[1970, 2553].map(|year| Month::new(year, 1).expect("a month"))),
        8 => distort_list(evidence, dice),
        _ => distort(&mut evidence.records[place].record, dice),
    }
}

#[test]
fn no_evidence_makes_a_check_panic() {
    let mut refused = 0;
    for seed in 0..20 {
        let mut story = tell(seed, 200, Shelf::Memory).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        if seed % 4 == 0 {
            another_month(&mut story).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        }
        let mut dice = Dice::new(seed);
        for evidence in evidences(&story.records) {
            for _ in 0..100 {
                let mut changed = evidence.clone();
                (0..=dice.below(4)).for_each(|_| one_change(&mut changed, &mut dice));
                changed.records.iter_mut().for_each(|evident| evident.hash = hash(&evident.record));
                refused += u32::from(!check(&changed).is_proved());
            }
        }
    }
    assert!(refused > 500, "only {refused} were refused");
}

/// The same from the bytes of a file that somebody with the key has made and signed: it is judged, and soon.
#[test]
fn no_file_with_distorted_records_takes_long() {
    const MOST: Duration = Duration::from_secs(30);
    let (key, mut judged) = (key(), 0);
    let trust = Trust::new(key.verifier());
    for seed in 0..8 {
        let story = tell(seed, 200, Shelf::Memory).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        let mut dice = Dice::new(seed);
        for evidence in evidences(&story.records) {
            for list in [false, true] {
                let mut changed = evidence.clone();
                for _ in 0..=dice.below(4) {
                    let place = dice.index(changed.records.len());
                    distort(&mut changed.records[place].record, &mut dice);
                }
                if list {
                    distort_list(&mut changed, &mut dice);
                    changed.statement.1.list_at_start = changed.list_at_start.hash();
                }
                let Some(bytes) = file(&key, &forge(&story.records, changed)) else { continue };
                let began = std::time::Instant::now();
                let _ = verify_invoice(&bytes, &[], &trust);
                assert!(began.elapsed() < MOST, "seed {seed}: it took {:?}", began.elapsed());
                judged += 1;
            }
        }
    }
    assert!(judged > 20, "only {judged} files");
}
