//! The files of several months, one after the other. An adjustment of an earlier month can depend on leases that had ended
//! before the range of the invoice; the file of that month knows them.

use super::checker::Checker;
use super::{Evidence, Mismatch, NotProved, Place, Report, Verdict};
use crate::fold::Fold;
use crate::list::ClaimedNodes;
use crate::sorted::Sorted;
use crate::usage::LINES_MAX;
use leasehold_ledger::InvoiceLineKey;
use leasehold_meter::Window;
use leasehold_model::{Body, LineKey, Month, ProjectNo, Record};
use std::collections::BTreeMap;

/// What is said about adjustments of a month whose file is not there.
pub(super) fn open_adjustments(month: Month) -> String {
    format!(
        "Adjustments of {month} follow from leases that had ended before the range; they are checked with the proof of {month}."
    )
}

/// Checks what was posted in consecutive months, of which the last one is that of the invoice: for each hour in them, it is
/// all that was used, as of the last cut. Each evidence has to be proved by itself, and to begin where the one before ends.
pub fn check_together(chain: &[&Evidence]) -> Vec<Mismatch> {
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else { return Vec::new() };
    let mut checker = Checker::new(last);
    let tenants = BTreeMap::from([(first.tenant, first.list_at_start.clone())]);
    let mut fold = Fold::from_lists(first.common_at_start.clone(), tenants, all_nodes(chain));
    fold.keep(first.tenant, first.month.start());
    let records = all_records(chain);
    let (months, cut) = (first.month..=last.month, last.statement.1.cut);
    let window = Window::new(first.month.start(), last.month.end());
    let mut posted: BTreeMap<(ProjectNo, LineKey), i128> = BTreeMap::new();
    let mut used = None;
    for (sequence, record) in records {
        if sequence >= cut && used.is_none() {
            used = Some(fold.usage(first.tenant, window, LINES_MAX));
        }
        let taken = if sequence < cut { fold.take(record) } else { fold.take_after_cut(record) };
        if let Err(why) = taken {
            let why = format!("The record cannot follow those of the earlier months: {why}.");
            checker.differ(Place::Record(sequence), "a record that can follow", record.body.word(), why);
            return checker.report().mismatches;
        }
        if let (Body::LedgerPosted(posting), Some(payer)) = (&record.body, record.identity.project)
            && posting.currency == last.currency
            && months.contains(&posting.month)
        {
            let lines = posting.lines.iter().filter(|line| line.key.hour >= window.from && line.key.hour < window.to);
            for line in lines {
                let sum = posted.entry((payer, line.key.clone())).or_default();
                *sum = sum.saturating_add(line.usage.0);
            }
        }
    }
    let Some(Ok(used)) = used else {
        let why = "The lists and records make too many lines of usage.";
        checker.differ(Place::Invoice("lines"), format!("at most {LINES_MAX} lines"), "more", why);
        return checker.report().mismatches;
    };
    let of_currency = used.into_iter().filter(|((_, currency), _)| *currency == last.currency);
    let mut differences: BTreeMap<(ProjectNo, LineKey), (i128, i128)> = BTreeMap::new();
    for ((payer, _), lines) in of_currency {
        lines.into_iter().for_each(|(key, usage)| differences.entry((payer, key)).or_default().0 = usage);
    }
    posted.into_iter().for_each(|(line, usage)| differences.entry(line).or_default().1 = usage);
    for ((payer, key), (expected, found)) in differences.into_iter().filter(|(_, (expected, found))| expected != found)
    {
        let why = "What was posted for the line in these months, with adjustments, is not what it used, as of the cut.";
        checker.differ_by(Place::Line { payer, key }, expected, found, why);
    }
    checker.report().mismatches
}

/// The nodes that the tenant claimed in any of the months.
fn all_nodes(chain: &[&Evidence]) -> ClaimedNodes {
    let nodes: BTreeMap<_, _> = chain
        .iter()
        .flat_map(|evidence| evidence.claimed_nodes.nodes.iter())
        .map(|node| ((node.claim, node.node), node.clone()))
        .collect();
    let evictions: std::collections::BTreeSet<u64> =
        chain.iter().flat_map(|evidence| evidence.claimed_nodes.own_evictions.iter().copied()).collect();
    ClaimedNodes { nodes: Sorted::new(nodes.into_values()), own_evictions: Sorted::new(evictions) }
}

/// The records up to the invoice, each once.
fn all_records<'e>(chain: &[&'e Evidence]) -> BTreeMap<u64, &'e Record> {
    let issued = chain.last().and_then(|last| {
        let of = |body: &Body| {
            matches!(body, Body::InvoiceIssued(of) if (of.month, of.currency) == (last.month, last.currency))
        };
        last.records.iter().find(|evident| of(&evident.record.body)).map(|evident| evident.sequence)
    });
    let all = chain.iter().flat_map(|evidence| &evidence.records);
    all.filter(|evident| issued.is_none_or(|issued| evident.sequence <= issued))
        .map(|evident| (evident.sequence, &evident.record))
        .collect()
}

impl Report {
    /// Adds what was found about this invoice together with those of the months from `first` on. Adjustments of these
    /// months are not open any more.
    pub fn decide_from(&mut self, first: Month, of: &Evidence, found: Vec<Mismatch>) {
        let mut month = first;
        while month < of.month {
            let open = NotProved(open_adjustments(month));
            self.not_proved.retain(|what| *what != open);
            month = month.next();
        }
        let wrong = |key: &InvoiceLineKey| {
            found.iter().any(|one| match &one.place {
                Place::Line { payer, key: line } => InvoiceLineKey::of_usage(*payer, line) == *key,
                _ => false,
            })
        };
        for line in &mut self.lines {
            match line.verdict {
                _ if wrong(&line.key) => line.verdict = Verdict::Wrong,
                Verdict::NotProved if (first..of.month).contains(&line.key.month) => line.verdict = Verdict::Proved,
                _ => {}
            }
        }
        self.mismatches.extend(found);
    }
}
