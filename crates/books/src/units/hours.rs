//! What was used in each hour. The hours of the past are pages in the file; what has changed since the last commit is in
//! memory.

use super::Contribution;
use crate::bytes::{get_list, put_list};
use crate::facts::BooksError;
use crate::seal::Commit;
use crate::store::{Store, UNIT_HOURS};
use leasehold_model::codec::Reader;
use leasehold_model::ledger::HOUR_NS;
use leasehold_model::{Instant, UsageDelta};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Default)]
pub(crate) struct UnitHours {
    /// By hour, the commit that wrote its page last.
    pub(crate) heads: BTreeMap<u64, Commit>,
    /// Changes since the last commit, by hour and series.
    fresh: BTreeMap<(u64, u32), i128>,
}

fn number_of(hour: Instant) -> u64 {
    hour.0 / HOUR_NS
}

impl UnitHours {
    pub(super) fn add(&mut self, part: Contribution) {
        *self.fresh.entry((number_of(part.hour), part.series)).or_default() += part.by;
    }

    /// What each series used in an hour; none is zero.
    fn hour(&self, hour: u64, store: &Store) -> Result<BTreeMap<u32, i128>, BooksError> {
        let written = self.heads.get(&hour).copied();
        let mut used: BTreeMap<u32, i128> = match (store.entry_of_commit(UNIT_HOURS, hour)?, written) {
            // An older version of the page, or one that a later state wrote, is not the page.
            (Some((commit, bytes)), Some(written)) if commit == written => {
                let mut r = Reader::new(&bytes);
                let list = get_list::<(u32, UsageDelta)>(&mut r).map_err(|_| store.damage())?;
                list.into_iter().map(|(series, used)| (series, used.0)).collect()
            }
            (None, None) => BTreeMap::new(),
            _ => return Err(store.damage()),
        };
        for ((_, series), by) in self.fresh.range((hour, 0)..=(hour, u32::MAX)) {
            *used.entry(*series).or_default() += by;
        }
        used.retain(|_, used| *used != 0);
        Ok(used)
    }

    /// Calls `each` with what each series used in each hour that begins within a range.
    pub(super) fn used(
        &self,
        range: Range<Instant>,
        store: &Store,
        mut each: impl FnMut(Instant, u32, i128),
    ) -> Result<(), BooksError> {
        let numbers = range.start.0.div_ceil(HOUR_NS)..range.end.0.div_ceil(HOUR_NS);
        if numbers.is_empty() {
            return Ok(());
        }
        let fresh = self.fresh.range((numbers.start, 0)..(numbers.end, 0)).map(|((hour, _), _)| *hour);
        let mut hours: Vec<u64> = self.heads.range(numbers.clone()).map(|(hour, _)| *hour).chain(fresh).collect();
        hours.sort_unstable();
        hours.dedup();
        for hour in hours {
            let used = self.hour(hour, store)?;
            used.into_iter().for_each(|(series, used)| each(Instant(hour * HOUR_NS), series, used));
        }
        Ok(())
    }

    /// The changed pages with their bytes, for a commit.
    pub(crate) fn dirty(&self, store: &Store) -> Result<Vec<(u64, Vec<u8>)>, BooksError> {
        let mut hours: Vec<u64> = self.fresh.keys().map(|(hour, _)| *hour).collect();
        hours.dedup();
        let page = |hour: u64| {
            let mut out = Vec::new();
            let used = self.hour(hour, store)?;
            put_list(used.into_iter().map(|(series, used)| (series, UsageDelta(used))), &mut out);
            Ok((hour, out))
        };
        hours.into_iter().map(page).collect()
    }

    /// The commits that wrote the pages, once one has written those that have changed.
    pub(crate) fn heads_after(&self, commit: &Commit) -> BTreeMap<u64, Commit> {
        let mut heads = self.heads.clone();
        heads.extend(self.fresh.keys().map(|(hour, _)| (*hour, *commit)));
        heads
    }

    pub(crate) fn written(&mut self, commit: &Commit) {
        self.heads = self.heads_after(commit);
        self.fresh.clear();
    }
}
