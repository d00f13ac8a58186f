//! Usage: how much was held.

use crate::ask::{Key, LINES_MAX, Question, Source, key_of, payer_key};
use crate::facts::{Books, BooksError};
use crate::mix::MixMap;
use crate::nodes::CapacitySeries;
use crate::usage_lines::{Usage, UsageLine};
use leasehold_meter::timeline::NO_GROUP;
use leasehold_meter::{QuantaNs, Timeline, Wanted, Window};
use leasehold_model::{ClassNo, Instant};

pub(crate) fn bucket_no(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 intervals")
}

/// Calls `each` for the intervals of the question that a window overlaps, with the length of the overlap.
pub(crate) fn cut(borders: &[Instant], held: Window, mut each: impl FnMut(usize, u64)) {
    let first = borders.partition_point(|border| *border <= held.from).saturating_sub(1);
    for (place, pair) in borders.windows(2).enumerate().skip(first) {
        if pair[0] >= held.to {
            break;
        }
        let length = Window::new(pair[0], pair[1]).clip(held).length().0;
        if length > 0 {
            each(place, length);
        }
    }
}

/// The series that a question needs, each with its group, and the groups by key and class.
pub(crate) struct Plan {
    /// In order of group.
    pub(crate) series: Vec<u32>,
    /// By number; [`NO_GROUP`] for the others.
    pub(crate) group_of: Vec<u32>,
    /// In order.
    pub(crate) groups: Vec<(Key, ClassNo)>,
}

impl Plan {
    /// Creates a plan from the key and class of each series.
    fn new(mut keyed: Vec<(Key, ClassNo, u32)>, all: usize) -> Self {
        // Most questions find them sorted already.
        if !keyed.is_sorted_by_key(|(key, class, _)| (*key, *class)) {
            keyed.sort_unstable();
        }
        let mut group_of = vec![NO_GROUP; all];
        let mut groups: Vec<(Key, ClassNo)> = Vec::with_capacity(keyed.len());
        for (key, class, number) in &keyed {
            if groups.last() != Some(&(*key, *class)) {
                groups.push((*key, *class));
            }
            group_of[*number as usize] = bucket_no(groups.len() - 1);
        }
        Self { series: keyed.into_iter().map(|(_, _, number)| number).collect(), group_of, groups }
    }

    pub(crate) fn wanted(&self) -> Wanted<'_> {
        if self.series.len() == self.group_of.len() { Wanted::All } else { Wanted::These(&self.series) }
    }
}

/// The most amounts that are summed up at the same time; limits the memory of long answers.
const SUMS_AT_ONCE: usize = 1 << 22;

impl Books {
    /// The series of a question and their timeline.
    pub(crate) fn plan(&self, question: &Question) -> Option<(Plan, &Timeline)> {
        let (filter, dims) = (&question.filter, &question.dims[..]);
        match self.source(question) {
            Source::Billing => {
                let of = |number: u32| {
                    let key = &self.billing.keys[number as usize];
                    filter.takes_payer(key).then(|| (payer_key(dims, key), key.class, number))
                };
                let keyed = match filter.tenant {
                    Some(tenant) => {
                        self.of_tenant.get(&tenant).into_iter().flatten().filter_map(|no| of(*no)).collect()
                    }
                    None => self.payers.iter().filter_map(|number| of(*number)).collect(),
                };
                Some((Plan::new(keyed, self.billing.keys.len()), &self.billing.timeline))
            }
            Source::Nodes => {
                let series = &self.nodes.series;
                let held = series
                    .numbered()
                    .filter(|(_, key)| matches!(key.series, CapacitySeries::Held | CapacitySeries::ClaimedIdle));
                let wanted = held.filter(|(_, key)| filter.takes_node(key.node, key.class));
                let keyed = wanted.map(|(number, key)| (key_of(dims, |_| key.node.0.into()), key.class, number));
                Some((Plan::new(keyed.collect(), series.keys.len()), &series.timeline))
            }
            Source::Rows => None,
        }
    }

    /// The usage over the intervals of a question.
    pub fn usage(&self, question: &Question) -> Result<Usage, BooksError> {
        let Some((plan, timeline)) = self.plan(question) else {
            return self.usage_by_rows(question);
        };
        self.afford(question)?;
        let stretches = question.borders.len() - 1;
        let mut usage = Usage::default();
        let at_once = if stretches > 1 { (SUMS_AT_ONCE / stretches).max(1) } else { usize::MAX };
        let mut rest = &plan.series[..];
        let mut first = 0;
        while let Some(start) = rest.first().map(|series| plan.group_of[*series as usize] as usize) {
            debug_assert_eq!(start, first);
            let end = start.saturating_add(at_once).min(plan.groups.len());
            let here = rest.partition_point(|series| (plan.group_of[*series as usize] as usize) < end);
            let (series, later) = rest.split_at(here);
            let mut sums: Vec<QuantaNs> = vec![0; (end - start) * stretches];
            // Segments are read in the order of series, not of groups.
            let mut series = series.to_vec();
            series.sort_unstable();
            timeline.amounts(&question.borders, Wanted::These(&series), &self.store, |stretch, series, amount| {
                sums[(plan.group_of[series as usize] as usize - start) * stretches + stretch] += amount;
            });
            for (group, sums) in plan.groups[start..end].iter().zip(sums.chunks(stretches.max(1))) {
                usage.put_group(*group, sums);
            }
            if usage.len() > LINES_MAX {
                return Err(BooksError::TooMuch);
            }
            (rest, first) = (later, end);
        }
        self.sound(usage)
    }

    /// Like [`Self::usage`], from the rows of the leases.
    pub fn usage_by_rows(&self, question: &Question) -> Result<Usage, BooksError> {
        self.afford(question)?;
        let mut sums: MixMap<(Key, ClassNo, u32), QuantaNs> = MixMap::default();
        let mut workloads = self.workloads();
        self.scan(question, &mut workloads, |key, slice| {
            if sums.len() > LINES_MAX {
                return;
            }
            cut(&question.borders, slice.held, |bucket, length| {
                *sums.entry((key, slice.brief.class, bucket_no(bucket))).or_default() +=
                    u128::from(slice.quanta) * u128::from(length);
            });
        })?;
        if sums.len() > LINES_MAX {
            return Err(BooksError::TooMuch);
        }
        let mut lines: Vec<UsageLine> =
            sums.into_iter().map(|((key, class, bucket), amount)| UsageLine { key, class, bucket, amount }).collect();
        lines.sort_unstable_by_key(|line| (line.key, line.class, line.bucket));
        Ok(Usage::of(&lines, workloads.names))
    }
}
