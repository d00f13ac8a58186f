//! The lines of an answer about usage. A month by hours has millions of lines, so they are stored compactly: a key
//! once for all its lines, and per line only the interval and the amount.

use crate::ask::Key;
use leasehold_meter::QuantaNs;
use leasehold_model::{ClassNo, Name};

/// The amount of one class, for one key, over one interval of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageLine {
    pub key: Key,
    pub class: ClassNo,
    pub bucket: u32,
    pub amount: QuantaNs,
}

/// The lines of one key and class; they start where those of the previous group end.
struct Group {
    key: Key,
    class: ClassNo,
    end: usize,
}

/// Usage, in order of key, class and interval; zeros are omitted.
#[derive(Default)]
pub struct Usage {
    groups: Vec<Group>,
    buckets: Vec<u32>,
    amounts: Vec<QuantaNs>,
    /// The workloads that keys refer to.
    pub workloads: Vec<Name>,
}

impl Usage {
    /// From sorted lines.
    pub(crate) fn of(lines: &[UsageLine], workloads: Vec<Name>) -> Self {
        let (buckets, amounts) = lines.iter().map(|line| (line.bucket, line.amount)).unzip();
        let mut groups = Vec::new();
        let mut end = 0;
        for same in lines.chunk_by(|a, b| (a.key, a.class) == (b.key, b.class)) {
            end += same.len();
            groups.push(Group { key: same[0].key, class: same[0].class, end });
        }
        Self { groups, buckets, amounts, workloads }
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.amounts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    pub fn lines(&self) -> impl Iterator<Item = UsageLine> + Clone + '_ {
        let begins = std::iter::once(0).chain(self.groups.iter().map(|group| group.end));
        self.groups.iter().zip(begins).flat_map(move |(group, begin)| {
            let (buckets, amounts) = (&self.buckets[begin..group.end], &self.amounts[begin..group.end]);
            let line = move |(bucket, amount): (&u32, &QuantaNs)| UsageLine {
                key: group.key,
                class: group.class,
                bucket: *bucket,
                amount: *amount,
            };
            buckets.iter().zip(amounts).map(line)
        })
    }

    /// Adds the next key and class with the amounts of its intervals.
    pub(crate) fn put_group(&mut self, (key, class): (Key, ClassNo), amounts: &[QuantaNs]) {
        for (bucket, amount) in (0u32..).zip(amounts).filter(|(_, amount)| **amount > 0) {
            self.buckets.push(bucket);
            self.amounts.push(*amount);
        }
        self.groups.push(Group { key, class, end: self.amounts.len() });
    }
}
