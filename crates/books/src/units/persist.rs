//! Encoding of reported usage in the state of the books; hours and IDs have entries of their own in the file.

use super::unposted::Lines;
use super::{AppAnchors, Contribution, UnitBook};
use crate::bytes::{get_list, put_list};
use crate::seal::Commit;
use leasehold_model::body::PolicyScope;
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::{AppInstanceNo, Instant, UnitMeasure, UnitNo, UsageDelta};
use std::sync::Arc;

fn put_lines(lines: &Lines, out: &mut Vec<u8>) {
    put_list(lines.iter().map(|((series, hour), used)| ((*series, *hour), UsageDelta(*used))), out);
}

fn get_lines(r: &mut Reader<'_>) -> Result<Lines, DecodeError> {
    Ok(get_list::<((u32, Instant), UsageDelta)>(r)?.into_iter().map(|(of, used)| (of, used.0)).collect())
}

impl UnitBook {
    pub(crate) fn put(&self, commit: &Commit, out: &mut Vec<u8>) {
        put_list(self.series.iter().copied(), out);
        put_list(self.prices.iter().cloned(), out);
        put_list(self.apps.iter().map(|(instance, app)| (*instance, *app)), out);
        put_list(self.measures.iter().map(|(unit, measure)| (*unit, *measure)), out);
        let heads = self.hours.heads_after(commit);
        put_varint(heads.len() as u64, out);
        for (hour, commit) in &heads {
            hour.put(out);
            commit.cursor.put(out);
            commit.hash.put(out);
        }
        put_list(self.policies.iter().map(|((of, version), sequence)| ((*of, *version), *sequence)), out);
        put_list(self.sharing.iter().map(|((of, version), sequence)| ((*of, *version), *sequence)), out);
        put_lines(&self.unposted.lines, out);
        put_list(
            self.unposted
                .recent
                .iter()
                .map(|(sequence, part)| ((*sequence, part.series), (part.hour, UsageDelta(part.by)))),
            out,
        );
        self.unposted.at_cut.is_some().put(out);
        if let Some(at_cut) = &self.unposted.at_cut {
            put_lines(at_cut, out);
        }
    }

    pub(crate) fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut units = Self::default();
        for series in get_list(r)? {
            units.number(series);
        }
        units.prices = get_list(r)?;
        units.apps = Arc::new(get_list::<(AppInstanceNo, AppAnchors)>(r)?.into_iter().collect());
        units.measures = get_list::<(UnitNo, UnitMeasure)>(r)?.into_iter().collect();
        for _ in 0..r.count(1 << 40)? {
            let hour = Field::get(r)?;
            units.hours.heads.insert(hour, Commit { cursor: Field::get(r)?, hash: Field::get(r)? });
        }
        units.policies = get_list::<((PolicyScope, u32), u64)>(r)?.into_iter().collect();
        units.sharing = get_list::<((PolicyScope, u32), u64)>(r)?.into_iter().collect();
        units.unposted.lines = get_lines(r)?;
        for ((sequence, series), (hour, by)) in get_list::<((u64, u32), (Instant, UsageDelta))>(r)? {
            units.unposted.recent.push_back((sequence, Contribution { series, hour, by: by.0 }));
        }
        if bool::get(r)? {
            units.unposted.at_cut = Some(get_lines(r)?);
        }
        let known = units.series.len();
        let lines = units.unposted.lines.keys().chain(units.unposted.at_cut.iter().flat_map(Lines::keys));
        let all = lines.map(|(series, _)| *series).chain(units.unposted.recent.iter().map(|(_, part)| part.series));
        if all.into_iter().any(|series| series as usize >= known) {
            return Err(DecodeError::BadInteger);
        }
        Ok(units)
    }
}
