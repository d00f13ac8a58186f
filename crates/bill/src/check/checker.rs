//! What a check has gathered so far.

use super::shares::Decision;
use super::{CheckedLine, Evidence, Mismatch, NotProved, Place, Report, Verdict};
use crate::list::Payer;
use crate::reported::Work;
use leasehold_ledger::{InvoiceLine, InvoiceLineKey};
use leasehold_model::body::{InvoiceIssued, PrepaidApplied};
use leasehold_model::{AppInstanceNo, EntryId, LineKey, ProjectNo, Steps};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

pub(super) struct Checker<'e> {
    pub(super) evidence: &'e Evidence,
    mismatches: Vec<Mismatch>,
    not_proved: Vec<NotProved>,
    /// The payers in the currency of the invoice.
    pub(super) payers: BTreeMap<ProjectNo, Payer>,
    /// The usage that was posted in the month, by payer and line.
    pub(super) posted: BTreeMap<(ProjectNo, LineKey), i128>,
    /// The lines of the invoice, as the entries of the month add up.
    pub(super) lines: BTreeMap<InvoiceLineKey, InvoiceLine>,
    /// What the control planes of app instances cost their owners in the month.
    pub(super) pools: BTreeMap<(AppInstanceNo, ProjectNo), Steps>,
    pub(super) decisions: BTreeMap<AppInstanceNo, Decision<'e>>,
    /// What the tenant's projects used of app instances in the month, as of the cut.
    pub(super) work: Work,
    /// App instances that were deleted after the cut: what they cost is not shared.
    pub(super) deleted: BTreeSet<AppInstanceNo>,
    /// App instances whose cost was shared.
    pub(super) shared_apps: BTreeSet<AppInstanceNo>,
    /// App instances of whose shares something is not proved.
    pub(super) partly_shared: BTreeSet<AppInstanceNo>,
    pub(super) corrected: BTreeSet<EntryId>,
    pub(super) invoice: Option<(u64, &'e InvoiceIssued)>,
    pub(super) prepaid: Vec<(u64, &'e PrepaidApplied)>,
    /// Lines of the invoice that are wrong, or not proved.
    wrong: BTreeSet<InvoiceLineKey>,
    open: BTreeSet<InvoiceLineKey>,
}

impl<'e> Checker<'e> {
    pub(super) fn new(evidence: &'e Evidence) -> Self {
        let payers = evidence.list_at_start.payers.iter().filter(|payer| payer.currency == evidence.currency);
        Self {
            evidence,
            mismatches: Vec::new(),
            not_proved: Vec::new(),
            payers: payers.map(|payer| (payer.project, *payer)).collect(),
            posted: BTreeMap::new(),
            lines: BTreeMap::new(),
            pools: BTreeMap::new(),
            decisions: BTreeMap::new(),
            work: Work::new(),
            deleted: BTreeSet::new(),
            shared_apps: BTreeSet::new(),
            partly_shared: BTreeSet::new(),
            corrected: BTreeSet::new(),
            invoice: None,
            prepaid: Vec::new(),
            wrong: BTreeSet::new(),
            open: BTreeSet::new(),
        }
    }

    /// How much was found that is not as expected.
    pub(super) fn wrong_so_far(&self) -> usize {
        self.mismatches.len()
    }

    /// Whether nothing was found yet that is not as expected.
    pub(super) fn fits_so_far(&self) -> bool {
        self.mismatches.is_empty()
    }

    /// Notes that something is not as expected.
    pub(super) fn differ(&mut self, place: Place, expected: impl Display, found: impl Display, why: impl Into<String>) {
        self.note(place, expected, found, None, why);
    }

    /// The same for two numbers.
    pub(super) fn differ_by(&mut self, place: Place, expected: i128, found: i128, why: impl Into<String>) {
        let difference = found.checked_sub(expected).map(|by| by.to_string());
        self.note(place, expected, found, difference, why);
    }

    /// The same for two amounts.
    pub(super) fn differ_in(&mut self, place: Place, expected: Steps, found: Steps, why: impl Into<String>) {
        let difference = found.0.checked_sub(expected.0).map(|by| Steps(by).to_string());
        self.note(place, expected, found, difference, why);
    }

    fn note(
        &mut self,
        place: Place,
        expected: impl Display,
        found: impl Display,
        difference: Option<String>,
        why: impl Into<String>,
    ) {
        match &place {
            Place::Line { payer, key } => drop(self.wrong.insert(InvoiceLineKey::of_usage(*payer, key))),
            Place::InvoiceLine(key) => drop(self.wrong.insert(key.clone())),
            Place::List(_)
            | Place::Records(_)
            | Place::Record(_)
            | Place::Entry(_)
            | Place::Project(_)
            | Place::Tax(_)
            | Place::Invoice(_) => {}
        }
        let (expected, found) = (expected.to_string(), found.to_string());
        self.mismatches.push(Mismatch { place, expected, found, difference, why: why.into() });
    }

    /// Notes that a line of the invoice is wrong.
    pub(super) fn spoil(&mut self, line: InvoiceLineKey) {
        self.wrong.insert(line);
    }

    /// Notes that the evidence does not tell something. Each sentence is noted once.
    pub(super) fn leave_open(&mut self, line: Option<InvoiceLineKey>, what: impl Into<String>) {
        self.open.extend(line);
        let what = NotProved(what.into());
        if !self.not_proved.contains(&what) {
            self.not_proved.push(what);
        }
    }

    /// Adds to a line of the invoice; lines of which nothing is left do not appear on it.
    pub(super) fn add_line(&mut self, key: InvoiceLineKey, usage: i128, posted: Steps) -> Option<()> {
        let line = self.lines.entry(key.clone()).or_default();
        line.usage.0 = line.usage.0.checked_add(usage).filter(|usage| usage.unsigned_abs() < 1 << 120)?;
        line.posted = line.posted.checked_add(posted)?;
        if line.usage.0 == 0 && line.posted == Steps::ZERO {
            self.lines.remove(&key);
        }
        Some(())
    }

    fn verdict(&self, key: &InvoiceLineKey) -> Verdict {
        match () {
            () if self.wrong.contains(key) => Verdict::Wrong,
            () if self.open.contains(key) => Verdict::NotProved,
            () if key.is_share() && key.app_instance.is_some_and(|app| self.partly_shared.contains(&app)) => {
                Verdict::Shared
            }
            () if key.correction => Verdict::ByHand,
            () => Verdict::Proved,
        }
    }

    pub(super) fn report(self) -> Report {
        let checked = |(key, line): (&InvoiceLineKey, &InvoiceLine)| CheckedLine {
            key: key.clone(),
            usage: line.usage.0,
            posted: line.posted,
            verdict: self.verdict(key),
        };
        Report {
            lines: self.lines.iter().map(checked).collect(),
            invoice: self.invoice.map(|(sequence, invoice)| (sequence, invoice.clone())),
            prepaid: self.prepaid.iter().map(|(sequence, applied)| (*sequence, (*applied).clone())).collect(),
            mismatches: self.mismatches,
            not_proved: self.not_proved,
        }
    }
}
