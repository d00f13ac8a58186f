//! How much was held.

use crate::ask::{Key, Question, Source, Workloads, payer_key};
use crate::facts::{Books, BooksError};
use crate::mix::MixMap;
use crate::nodes::Place;
use leasehold_meter::{QuantaNs, Series, Window};
use leasehold_model::{ClassNo, Instant, Name};

/// An amount of one class, for one key, over one stretch of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageLine {
    pub key: Key,
    pub class: ClassNo,
    pub bucket: u32,
    pub amount: QuantaNs,
}

pub(crate) fn bucket_no(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 stretches")
}

/// Which stretches an interval meets, and how long in each.
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

impl Books {
    /// The series that a question is about, with their keys, in order of key and class.
    pub(crate) fn series_of(&self, question: &Question) -> Vec<(Key, ClassNo, &Series)> {
        let (filter, dims) = (&question.filter, &question.dims[..]);
        let mut found: Vec<(Key, ClassNo, &Series)> = match self.source(question) {
            Source::Billing => {
                let of = |number: u32| {
                    let key = &self.billing.keys[number as usize];
                    let takes = filter.takes_payer(key);
                    takes.then(|| (payer_key(dims, key), key.class, self.billing.series(number)))
                };
                match filter.tenant {
                    Some(tenant) => {
                        self.of_tenant.get(&tenant).into_iter().flatten().filter_map(|no| of(*no)).collect()
                    }
                    None => (0..bucket_no(self.billing.keys.len())).filter_map(of).collect(),
                }
            }
            Source::Nodes => {
                let held = self.nodes.places.iter().filter(|(key, _)| key.place == Place::Held);
                held.filter(|(key, _)| filter.takes_node(key.node, key.class))
                    .map(|(key, series)| {
                        let node = |_| u64::from(key.node.0);
                        (crate::ask::key_of(dims, node), key.class, series)
                    })
                    .collect()
            }
            Source::Rows => Vec::new(),
        };
        found.sort_unstable_by_key(|(key, class, _)| (*key, *class));
        found
    }

    /// What was held, in order of key, class and stretch; what is zero is left out. The names are those of the workloads
    /// that keys may speak of.
    pub fn usage(&self, question: &Question) -> Result<(Vec<UsageLine>, Vec<Name>), BooksError> {
        if self.source(question) == Source::Rows {
            return self.usage_by_rows(question);
        }
        let series = self.series_of(question);
        let mut lines = Vec::with_capacity(series.len());
        let mut sums = vec![0; question.borders.len()];
        for same in series.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (key, class, only) = same[0];
            let mut line = |bucket: usize, amount| {
                lines.push(UsageLine { key, class, bucket: bucket_no(bucket), amount });
            };
            if same.len() == 1 {
                only.amounts(&question.borders, &self.store, line);
                continue;
            }
            sums.fill(0);
            for (_, _, one) in same {
                one.amounts(&question.borders, &self.store, |bucket, amount| sums[bucket] += amount);
            }
            sums.iter().enumerate().filter(|(_, sum)| **sum > 0).for_each(|(bucket, sum)| line(bucket, *sum));
        }
        self.sound((lines, Vec::new()))
    }

    /// As [`Self::usage`], one lease after the other.
    pub fn usage_by_rows(&self, question: &Question) -> Result<(Vec<UsageLine>, Vec<Name>), BooksError> {
        let mut sums: MixMap<(Key, ClassNo, u32), QuantaNs> = MixMap::default();
        let mut workloads = Workloads::default();
        self.scan(question, &mut workloads, |key, slice| {
            cut(&question.borders, slice.held, |bucket, length| {
                *sums.entry((key, slice.brief.class, bucket_no(bucket))).or_default() +=
                    u128::from(slice.quanta) * u128::from(length);
            });
        })?;
        let mut lines: Vec<UsageLine> =
            sums.into_iter().map(|((key, class, bucket), amount)| UsageLine { key, class, bucket, amount }).collect();
        lines.sort_unstable_by_key(|line| (line.key, line.class, line.bucket));
        Ok((lines, workloads.names))
    }
}
