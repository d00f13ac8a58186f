//! Utilisation: what was busy of what was held (SEMANTICS 8).

use crate::ask::{Key, Question, Workloads, row_key};
use crate::facts::{Books, BooksError};
use crate::row::Row;
use crate::scan::held_until;
use leasehold_meter::{QuantaNs, Window};
use leasehold_model::{ClassNo, Name};
use std::collections::BTreeMap;

/// Sums over leases, in quanta × nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub held: QuantaNs,
    /// The part of it that reports cover.
    pub covered: QuantaNs,
    pub busy: QuantaNs,
}

impl Activity {
    pub(crate) fn of(row: &Row, held: Window) -> Self {
        let quanta = u128::from(row.quanta);
        let (covered, busy) =
            row.activity.as_ref().map_or((0, 0), |sum| (quanta * u128::from(sum.covered.0), sum.busy));
        Self { held: quanta * u128::from(held.length().0), covered, busy }
    }

    pub fn add(&mut self, other: Self) {
        self.held += other.held;
        self.covered += other.covered;
        self.busy = self.busy.saturating_add(other.busy);
    }

    /// Thousandths of the covered time that were busy, rounded down; `None` if less than half is covered.
    pub fn utilisation_permille(self) -> Option<u32> {
        if self.covered == 0 || self.covered < self.held.div_ceil(2) {
            return None;
        }
        let permille = self.busy.min(self.covered).saturating_mul(1000) / self.covered;
        Some(u32::try_from(permille).expect("at most a thousand"))
    }
}

/// By key and class, and the workloads that the keys refer to.
pub type Activities = (BTreeMap<(Key, ClassNo), Activity>, Vec<Name>);

impl Books {
    /// The activity of every lease that was held within the window of a question, each as a whole: reports do not say
    /// when a lease was busy. Idle capacity of claims is not counted.
    pub fn activity(&self, question: &Question) -> Result<Activities, BooksError> {
        self.afford(question)?;
        let (window, filter) = (question.window(), &question.filter);
        let mut workloads = self.workloads();
        let mut sums: BTreeMap<(Key, ClassNo), Activity> = BTreeMap::new();
        let mut add = |row: &Row, held: Window| {
            let key = row_key(&question.dims, row, &mut workloads);
            if row.is_lease() {
                sums.entry((key, row.class)).or_default().add(Activity::of(row, held));
            }
        };
        self.scan_rows(window, false, |row| {
            if filter.takes_row(row) {
                add(row, row.held);
            }
        })?;
        for open in self.open.values().filter(|open| filter.takes_row(&open.row)) {
            let held = held_until(open, window.to);
            if held.meets(window) {
                add(&open.row, held);
            }
        }
        self.sound((sums, workloads.names))
    }

    /// The key of a lease in the answer to a question.
    pub fn row_key(&self, question: &Question, row: &Row, workloads: &mut Workloads) -> Key {
        row_key(&question.dims, row, workloads)
    }

    /// Whether any node was ever claimed.
    pub fn has_claims(&self) -> bool {
        self.nodes.series.keys.iter().any(|key| key.series == crate::nodes::CapacitySeries::ClaimedIdle)
    }
}
