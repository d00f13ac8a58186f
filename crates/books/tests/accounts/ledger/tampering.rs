//! Evidence in which one thing was changed is not believed, and the report names the place. Most changes are made by
//! somebody who states the changed records as well: only what follows from what tells them.

use super::bills::another_month;
use super::evidence::{evidences, hash};
use super::story::{Shelf, Story};
use super::tamper::{Change, Expected, changes};
use super::{tell, tell_sharing};
use leasehold_bill::{Evidence, Fold, Place, Report, Verdict, check};
use leasehold_model::body::RecordSet;
use leasehold_tlog::{Frontier, leaf_hash};
use std::collections::BTreeMap;

fn restated(evidence: Evidence) -> Option<Evidence> {
    restated_with(evidence, &|mut evidence| {
        evidence.records.iter_mut().for_each(|evident| evident.hash = hash(&evident.record));
        evidence
    })
}

/// Makes the statement fit the evidence again, as whoever forges records would. `hashed` gives records their hashes.
/// `None` if the records contradict each other.
pub(crate) fn restated_with(evidence: Evidence, hashed: &dyn Fn(Evidence) -> Evidence) -> Option<Evidence> {
    let mut evidence = hashed(evidence);
    let tenants = BTreeMap::from([(evidence.tenant, evidence.list_at_start.clone())]);
    let mut fold = Fold::from_lists(evidence.common_at_start.clone(), tenants, evidence.claimed_nodes.clone());
    let stated = &mut evidence.statement.1;
    stated.list_at_start = evidence.list_at_start.hash();
    stated.common_at_start = evidence.common_at_start.hash();
    stated.claimed_nodes = evidence.claimed_nodes.hash();
    let (mut own, mut common, mut at_border) = (Frontier::new(), Frontier::new(), false);
    let mut border = |fold: &Fold| {
        if !at_border {
            stated.list_at_border = fold.tenant_list(evidence.tenant).hash();
            stated.common_at_border = fold.common_list().hash();
        }
        at_border = true;
    };
    for evident in &evidence.records {
        if evident.sequence >= stated.border {
            border(&fold);
        }
        if evident.sequence >= stated.cut {
            continue;
        }
        match fold.take(&evident.record).ok()? {
            leasehold_bill::Concern::Tenant(_) => own.push(leaf_hash(&evident.hash)),
            leasehold_bill::Concern::Common => common.push(leaf_hash(&evident.hash)),
            leasehold_bill::Concern::Nobody => {}
        }
    }
    border(&fold);
    stated.records = RecordSet { count: own.size(), root: own.root() };
    stated.common = RecordSet { count: common.size(), root: common.root() };
    Some(evidence)
}

fn names(report: &Report, expected: Expected) -> bool {
    report.mismatches.iter().any(|mismatch| match (expected, &mismatch.place) {
        (Expected::Line, Place::Line { .. })
        | (Expected::Entry, Place::Entry(_))
        | (Expected::Record, Place::Record(_))
        | (Expected::Project, Place::Project(_))
        | (Expected::Tax, Place::Tax(_)) => true,
        (Expected::List(which), Place::List(found)) => which == *found,
        (Expected::Records(which), Place::Records(found)) => which == *found,
        (Expected::Invoice(which), Place::Invoice(found)) => which == *found,
        _ => false,
    })
}

/// How often a change was made, noticed, and noticed in the right place.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    made: u32,
    noticed: u32,
    placed: u32,
}

fn try_change(change: &Change, evidence: &Evidence, found: &mut Found) {
    let mut changed = evidence.clone();
    if !(change.make)(&mut changed) || !(change.matters)(evidence, &changed) {
        return;
    }
    let forged = if change.restated { restated(changed) } else { Some(changed) };
    // Records that contradict each other cannot even be stated.
    let Some(forged) = forged else { return };
    found.made += 1;
    let report = check(&forged);
    found.noticed += u32::from(!report.is_proved());
    found.placed += u32::from(names(&report, change.expected));
}

/// Histories of one month or two, with and without shares; those after the first 60 are all with shares.
pub(crate) fn histories(count: u64) -> impl Iterator<Item = (u64, Story)> {
    (0..count).map(|seed| {
        let shares = seed % 3 == 1 || seed >= 60;
        let told = if shares { tell_sharing(seed, 200) } else { tell(seed, 200, Shelf::Memory) };
        let mut story = told.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        if seed % 3 == 0 {
            // Only the lists of a later month have something in them.
            another_month(&mut story).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        }
        (seed, story)
    })
}

#[test]
fn every_change_is_noticed_in_its_place() {
    let mut found: BTreeMap<&str, Found> = BTreeMap::new();
    for (_, story) in histories(160) {
        for evidence in evidences(&story.records) {
            let honest = restated(evidence.clone()).expect("nothing was changed");
            assert_eq!(honest.statement, evidence.statement, "what is stated again is the same");
            // Where a line is not proved, not everything can be noticed.
            if check(&evidence).lines.iter().any(|line| line.verdict == Verdict::NotProved) {
                continue;
            }
            for change in changes() {
                try_change(change, &evidence, found.entry(change.what).or_default());
            }
        }
    }
    println!("{found:#?}");
    for change in changes() {
        let Found { made, noticed, placed } = found.get(change.what).copied().unwrap_or_default();
        assert!(made >= 2, "{}: only made {made} times", change.what);
        assert_eq!(noticed, made, "{}: of {made}, noticed", change.what);
        let often = if change.restated { placed > 0 } else { placed == made };
        assert!(often, "{}: of {made}, {placed} in the right place", change.what);
    }
}
