//! Reading the records: they are those that the statement counts, and lead from the lists at the start to those at the
//! border; and what was used is computed from them.

use super::checker::Checker;
use super::{Evident, Place};
use crate::concern::Concern;
use crate::fold::Fold;
use crate::statement::set_of;
use crate::tenant::Tenant;
use crate::usage::{LINES_MAX, TooManyLines, Usage};
use leasehold_meter::Window;
use leasehold_model::body::{PeriodStated, RecordSet};
use leasehold_model::{Body, Hash, Instant, Month};
use leasehold_tlog::{Frontier, leaf_hash};
use std::collections::BTreeMap;

/// What the records amount to.
pub(super) struct Replayed {
    /// The fold after the invoice.
    pub(super) fold: Fold,
    /// The usage up to the end of the month, as of the cut, and as of the cut of the previous month.
    pub(super) used: Usage,
    pub(super) used_before: Usage,
    /// Whether records of the range changed what something costs that had ended before it.
    pub(super) unknown: bool,
}

impl Replayed {
    pub(super) fn tenant(&self, of: leasehold_model::TenantNo) -> Option<&Tenant> {
        self.fold.tenants.get(&of)
    }
}

/// A replay in progress.
struct Replay {
    fold: Fold,
    own: Frontier,
    common: Frontier,
    at_border: bool,
    used: Option<Usage>,
    used_before: Option<Usage>,
    unknown: bool,
    /// Whether a record could not follow those before it. The others are only counted then.
    broken: bool,
}

/// How many nodes a record claims.
fn claimed_by(body: &Body) -> usize {
    if let Body::NodesClaimed(claimed) = body { claimed.nodes.0.len() } else { 0 }
}

pub(super) fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl<'e> Checker<'e> {
    fn stated(&self) -> PeriodStated {
        self.evidence.statement.1
    }

    /// The records are in order.
    fn check_order(&mut self) {
        let pairs = self.evidence.records.windows(2);
        for pair in pairs.filter(|pair| pair[0].sequence >= pair[1].sequence) {
            let (before, found) = (pair[0].sequence, pair[1].sequence);
            let why = "The records are not in the order of the journal, or one is there twice.";
            self.differ(Place::Record(found), format!("a record after {before}"), format!("record {found}"), why);
        }
    }

    /// The lists are those that the statement names.
    pub(super) fn check_lists(&mut self) {
        self.check_order();
        let (evidence, stated) = (self.evidence, self.stated());
        if stated.month != evidence.month {
            let why = "The statement is about another month.";
            self.differ(Place::Invoice("month"), evidence.month, stated.month, why);
        }
        if evidence.list_at_start.tenant != evidence.tenant {
            let why = "The list at the start is that of another tenant.";
            self.differ(Place::List("tenant at start"), evidence.tenant, evidence.list_at_start.tenant, why);
        }
        self.same_list("common at start", stated.common_at_start, evidence.common_at_start.hash());
        self.same_list("tenant at start", stated.list_at_start, evidence.list_at_start.hash());
        self.same_list("claimed nodes", stated.claimed_nodes, evidence.claimed_nodes.hash());
    }

    fn same_list(&mut self, which: &'static str, stated: Hash, found: Hash) {
        if stated != found {
            let why = "The list is not the one whose SHA-256 is in the statement.";
            self.differ(Place::List(which), hex(&stated), hex(&found), why);
        }
    }

    /// Reads all records; `None` if one of them contradicts those before it.
    pub(super) fn replay(&mut self) -> Option<Replayed> {
        let evidence = self.evidence;
        let tenants = BTreeMap::from([(evidence.tenant, evidence.list_at_start.clone())]);
        let mut fold = Fold::from_lists(evidence.common_at_start.clone(), tenants, evidence.claimed_nodes.clone());
        fold.keep(evidence.tenant, evidence.month.start());
        let mut replay = Replay {
            fold,
            own: Frontier::new(),
            common: Frontier::new(),
            at_border: false,
            used: None,
            used_before: None,
            unknown: false,
            broken: false,
        };
        for evident in &evidence.records {
            self.pass_marks(&mut replay, evident.sequence);
            if !self.take(&mut replay, evident) {
                return None;
            }
            if self.invoice.is_some_and(|(sequence, _)| sequence == evident.sequence) {
                break;
            }
        }
        self.pass_marks(&mut replay, u64::MAX);
        if replay.broken {
            return None;
        }
        self.take_prepaid();
        self.check_previous_cut(&replay);
        self.check_claimed();
        Some(Replayed {
            fold: replay.fold,
            used: replay.used.unwrap_or_default(),
            used_before: replay.used_before.unwrap_or_default(),
            unknown: replay.unknown,
        })
    }

    /// What has to be done before the first record at or after the border, and at or after the cut.
    fn pass_marks(&mut self, replay: &mut Replay, sequence: u64) {
        let (stated, tenant) = (self.stated(), self.evidence.tenant);
        if sequence >= stated.border && !replay.at_border && !replay.broken {
            replay.at_border = true;
            self.same_list("common at border", stated.common_at_border, replay.fold.common_list().hash());
            self.same_list("tenant at border", stated.list_at_border, replay.fold.tenant_list(tenant).hash());
        }
        if sequence >= stated.cut && replay.used.is_none() {
            self.same_records("tenant", stated.records, set_of(&replay.own));
            self.same_records("common", stated.common, set_of(&replay.common));
            replay.used = Some(self.usage(replay));
            replay.unknown = replay.fold.has_unknown(tenant);
            self.work = replay.fold.work(tenant, self.evidence.month);
        }
    }

    /// The hours of the month and all before it.
    fn window(&self) -> Window {
        Window::new(Instant(0), self.evidence.month.end())
    }

    /// The usage as of the records so far. If it has too many lines, nothing else is computed.
    fn usage(&mut self, replay: &mut Replay) -> Usage {
        if replay.broken {
            return Usage::new();
        }
        let usage = replay.fold.usage(self.evidence.tenant, self.window(), LINES_MAX);
        usage.unwrap_or_else(|TooManyLines| {
            let (most, why) =
                (format!("at most {LINES_MAX} lines"), "The lists and records make too many lines of usage.");
            self.differ(Place::Invoice("lines"), most, "more", why);
            replay.broken = true;
            Usage::new()
        })
    }

    fn same_records(&mut self, which: &'static str, stated: RecordSet, found: RecordSet) {
        if stated.count != found.count {
            let why = "There are more or fewer records in the range than the statement counts.";
            self.differ_by(Place::Records(which), stated.count.into(), found.count.into(), why);
        } else if stated.root != found.root {
            let why = "The records in the range are not those whose root is in the statement.";
            self.differ(Place::Records(which), hex(&stated.root), hex(&found.root), why);
        }
    }

    /// Takes a record; false if nothing after it can be believed.
    fn take(&mut self, replay: &mut Replay, evident: &'e Evident) -> bool {
        let (evidence, stated) = (self.evidence, self.stated());
        let Evident { sequence, hash, record } = evident;
        let place = Place::Record(*sequence);
        if record.sequence != *sequence {
            self.differ(place, record.sequence, sequence, "The record has another sequence than its place says.");
            return false;
        }
        if *sequence < stated.from {
            let why = "The record lies before the range of the month.";
            self.differ(place, format!("at least {}", stated.from), sequence, why);
            return false;
        }
        let month = evidence.month;
        let in_order = record.stamp >= month.start() && (*sequence >= stated.border) == (record.stamp >= month.end());
        if !in_order {
            let why = "The stamp of the record does not fit the start and the border of the range.";
            self.differ(place, month, record.stamp, why);
            return false;
        }
        if let Body::PeriodClosing(closing) = &record.body {
            if closing.month.next() == month {
                replay.used_before = Some(self.usage(replay));
            }
            if (closing.month == month) != (*sequence == stated.cut) {
                let why = "The statement names another record as the cut of the month.";
                self.differ(place, stated.cut, sequence, why);
                return false;
            }
        }
        let in_range = *sequence < stated.cut;
        if let Body::AppInstanceDeleted(gone) = &record.body
            && !in_range
        {
            self.deleted.insert(gone.app_instance);
        }
        let concern = replay.fold.concern(record);
        let taken = match () {
            () if replay.broken => Ok(concern),
            () if in_range => replay.fold.take(record),
            () => replay.fold.take_after_cut(record),
        };
        if let Err(contradiction) = taken {
            let why = format!("The record cannot follow those before it: {contradiction}.");
            self.differ(place.clone(), "a record that can follow", record.body.word(), why);
            replay.broken = true;
        }
        match concern {
            Concern::Tenant(tenant) if tenant == evidence.tenant => {
                if let Body::Unknown { kind, .. } = &record.body {
                    let what = format!("What records of kind {kind} mean, which this version does not know.");
                    self.leave_open(None, what);
                }
                if in_range {
                    replay.own.push(leaf_hash(hash));
                }
                self.take_entry(&replay.fold, evident);
            }
            Concern::Tenant(other) => {
                self.differ(place, evidence.tenant, other, "The record is one of another tenant.");
                return false;
            }
            Concern::Common => {
                // Whose the others are depends on it.
                if replay.broken {
                    replay.fold.take_common(record);
                }
                if in_range {
                    replay.common.push(leaf_hash(hash));
                }
            }
            Concern::Nobody => {}
        }
        true
    }

    /// The list of claimed nodes has those of the claims in the range; that it has no others is left to be seen.
    fn check_claimed(&mut self) {
        let cut = self.stated().cut;
        let in_range = self.evidence.records.iter().filter(|evident| evident.sequence < cut);
        let claimed: usize = in_range.map(|evident| claimed_by(&evident.record.body)).sum();
        let listed = self.evidence.claimed_nodes.nodes.len();
        if listed != claimed {
            let why = "The list has nodes that the tenant did not claim in the range.";
            self.differ(Place::List("claimed nodes"), claimed, listed, why);
        }
    }

    /// Prepaid credit is applied right after the invoice.
    fn take_prepaid(&mut self) {
        let Some((issued, invoice)) = self.invoice else { return };
        for evident in self.evidence.records.iter().filter(|evident| evident.sequence > issued) {
            if let Body::PrepaidApplied(applied) = &evident.record.body
                && applied.invoice == invoice.number
            {
                self.prepaid.push((evident.sequence, applied));
            }
        }
    }

    /// Adjustments of earlier months are what changed since the cut of the previous month, if there was one.
    fn check_previous_cut(&mut self, replay: &Replay) {
        let first = replay.fold.common.opened.map(Month::of);
        if replay.used_before.is_none() && first.is_some_and(|first| first < self.evidence.month) {
            let previous = self.evidence.month.previous();
            let why = "The cut of the previous month is missing, without which adjustments cannot be told.";
            self.differ(Place::Records("cuts"), format!("period.closing of {previous}"), "none", why);
        }
    }
}
