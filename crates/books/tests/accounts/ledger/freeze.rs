//! Writes the seeds of `tests/frozen/rules-7`, once: `LEASEHOLD_FREEZE=1 cargo test -p leasehold-books --test accounts
//! freeze`. LEASEHOLD_FREEZE_SEARCH=COUNT looks for seeds that together hold much instead.

#[path = "../../../../sim/src/entitlements_events.rs"]
mod entitlements_events;
#[path = "../../../../sim/tests/freeze/writer.rs"]
#[allow(dead_code)]
mod writer;

use super::story::Shelf;
use crate::from_env;
use leasehold_model::{Body, DenyCause, Item, Month, Record};
use leasehold_oracle::Oracle;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The seeds, with the number of steps of each.
const SEEDS: [(u64, u32); 2] = [(2307, 70), (7025, 70)];

#[test]
fn freeze() {
    let count = from_env("LEASEHOLD_FREEZE_SEARCH", 0);
    if count > 0 {
        return search(count);
    }
    if std::env::var_os("LEASEHOLD_FREEZE").is_none() {
        return;
    }
    for (seed, steps) in SEEDS {
        let story = super::tell(seed, steps, Shelf::Memory).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/frozen/rules-7");
        let last = story.records[story.records.len() - 1].stamp;
        let mut writer = writer::Writer::new(folder.join(format!("seed-{seed}/data")), None);
        writer.write(&story.records);
        writer.close(last);
    }
}

/// What a history holds.
fn features(records: &[Record]) -> BTreeSet<String> {
    let mut notable = BTreeMap::new();
    entitlements_events::count(records, &mut notable);
    let mut found: BTreeSet<String> = notable.keys().map(|what| (*what).to_owned()).collect();
    for record in records {
        let word = record.body.word();
        found.insert(word.to_owned());
        let mut also = |what: &str| {
            found.insert(format!("{word}: {what}"));
        };
        if let Body::LedgerPosted(posted) = &record.body {
            for line in &posted.lines {
                let key = &line.key;
                let has = [
                    (matches!(key.item, Item::Unit(_)), "unit"),
                    (matches!(key.item, Item::Unit(_)) && line.usage.0 < 0, "negative unit"),
                    (matches!(key.item, Item::Unit(_)) && key.control_plane, "unit of a control plane"),
                    (matches!(key.item, Item::Unit(_)) && Month::of(key.hour) < posted.month, "late unit"),
                    (key.app_instance.is_some(), "app"),
                    (key.attachment.is_some(), "attachment"),
                    (key.control_plane, "control plane"),
                    (key.card.is_none(), "no card"),
                    (key.tag.is_some(), "tag"),
                    (record.identity.project != Some(key.project), "lent"),
                    (line.usage.0 < 0, "negative"),
                    (key.priced != key.priority, "priced"),
                ];
                has.iter().filter(|(has, _)| *has).for_each(|(_, what)| also(what));
            }
            if !posted.complete {
                also("part");
            }
        } else if let Body::UsageRecorded(recorded) = &record.body {
            also(recorded.charge.word());
            let replaces = recorded.replaces.as_ref();
            let has = [
                (record.continues, "together"),
                (recorded.no_submitter, "no submitter"),
                (recorded.report.control_plane, "control plane"),
                (recorded.report.attachment.is_some(), "attachment"),
                (record.identity.user.is_some(), "user"),
                (replaces.is_some(), "supersedes"),
                (replaces.is_some_and(|old| Some(old.project) != record.identity.project), "of another project"),
                (replaces.is_some_and(|old| Month::of(old.to) != Month::of(recorded.report.to)), "of another month"),
            ];
            has.iter().filter(|(has, _)| *has).for_each(|(_, what)| also(what));
        } else if let Body::AttachmentMade(made) = &record.body {
            also(if made.allocation.is_some() { "of an allocation" } else { "of none" });
        } else if let Body::AppInstancePut(put) = &record.body {
            also(put.scope.word());
        } else if let Body::Denied(denied) = &record.body {
            if let DenyCause::Prepaid { of_tenant, .. } = denied.cause {
                also(if of_tenant { "tenant" } else { "project" });
            }
        } else if let Body::PrepaidChanged(changed) = &record.body {
            also(changed.to.word());
            also(changed.action.word());
        } else if let Body::PrepaidApplied(applied) = &record.body {
            also(if applied.amount.0 < 0 { "back" } else { "used" });
        } else if let Body::InvoiceIssued(issued) = &record.body {
            also(issued.number.series.word());
            also(issued.currency.as_str());
        }
    }
    found
}

/// Whether the oracle, which not every story has beside it, finds nothing wrong.
fn is_expected(records: &[Record]) -> bool {
    let mut oracle = Oracle::with_settings(super::story::settings());
    records.iter().all(|record| oracle.observe(record).is_ok())
}

/// Prints a few seeds that together hold the most, the shorter ones first.
fn search(count: u64) {
    let steps = u32::try_from(from_env("LEASEHOLD_FREEZE_STEPS", 100)).expect("few");
    let most = usize::try_from(from_env("LEASEHOLD_FREEZE_MOST", 1200)).expect("few");
    let from = from_env("LEASEHOLD_ACCOUNTS_FROM", 0);
    let mut all = Vec::new();
    for seed in from..from + count {
        let story = match super::tell(seed, steps, Shelf::Memory) {
            Ok(story) => story,
            Err(what) => {
                println!("seed {seed}: {what}");
                continue;
            }
        };
        if story.records.len() <= most && is_expected(&story.records) {
            all.push((seed, story.records.len(), features(&story.records)));
        }
    }
    let everything: BTreeSet<String> = all.iter().flat_map(|(.., found)| found.clone()).collect();
    println!("{} of {count} are short, {} features", all.len(), everything.len());
    let mut have = BTreeSet::new();
    for _ in 0..5 {
        let gain = |found: &BTreeSet<String>| found.difference(&have).count();
        let best = all.iter().max_by_key(|(_, len, found)| (gain(found), usize::MAX - len)).expect("some");
        println!("seed {}: {} records, {} more", best.0, best.1, gain(&best.2));
        have.extend(best.2.iter().cloned());
    }
    println!("missing: {:?}", everything.difference(&have).collect::<Vec<_>>());
}
