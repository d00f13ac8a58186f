//! The most that was held at once.

use crate::ask::{Key, Question, Source, Workloads};
use crate::facts::{Books, BooksError};
use crate::usage::bucket_no;
use leasehold_meter::{Point, Series, Window};
use leasehold_model::{ClassNo, Instant, Name};
use std::collections::BTreeMap;

/// The highest level of one key and class within one stretch of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeakLine {
    pub key: Key,
    pub class: ClassNo,
    pub bucket: u32,
    /// Quanta.
    pub peak: u64,
}

/// Changes of the level, swept in order of time; a change may be the sum of several at its instant.
fn sweep(mut level: i128, mut points: Vec<(Instant, i128)>, borders: &[Instant], mut each: impl FnMut(usize, u64)) {
    points.sort_unstable_by_key(|(at, _)| *at);
    let mut points = points.chunk_by(|a, b| a.0 == b.0).map(|same| (same[0].0, same.iter().map(|p| p.1).sum::<i128>()));
    let mut next = points.next();
    for (bucket, pair) in borders.windows(2).enumerate() {
        if pair[0] == pair[1] {
            continue;
        }
        while let Some((at, delta)) = next.filter(|(at, _)| *at <= pair[0]) {
            debug_assert!(at <= pair[0]);
            level += delta;
            next = points.next();
        }
        let mut peak = level;
        while let Some((_, delta)) = next.filter(|(at, _)| *at < pair[1]) {
            level += delta;
            peak = peak.max(level);
            next = points.next();
        }
        each(bucket, u64::try_from(peak).unwrap_or(0));
    }
}

impl Books {
    /// The peaks of a question, in order of key, class and stretch; what is zero is left out.
    pub fn peaks(&self, question: &Question) -> Result<(Vec<PeakLine>, Vec<Name>), BooksError> {
        let mut lines = Vec::new();
        let mut line = |key, class, bucket, peak| {
            if peak > 0 {
                lines.push(PeakLine { key, class, bucket: bucket_no(bucket), peak });
            }
        };
        let mut workloads = Workloads::default();
        if self.source(question) == Source::Rows {
            let mut points: BTreeMap<(Key, ClassNo), Vec<(Instant, i128)>> = BTreeMap::new();
            self.scan(question, &mut workloads, |key, slice| {
                if !slice.held.is_empty() {
                    let list = points.entry((key, slice.brief.class)).or_default();
                    list.push((slice.held.from, slice.quanta.into()));
                    list.push((slice.held.to, -i128::from(slice.quanta)));
                }
            })?;
            for ((key, class), points) in points {
                sweep(0, points, &question.borders, |bucket, peak| line(key, class, bucket, peak));
            }
            return Ok((lines, workloads.names));
        }
        for same in self.series_of(question).chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (key, class, only) = same[0];
            if same.len() == 1 {
                for (bucket, pair) in question.borders.windows(2).enumerate() {
                    line(key, class, bucket, only.peak(Window::new(pair[0], pair[1]), &self.store));
                }
                continue;
            }
            let all: Vec<&Series> = same.iter().map(|(_, _, series)| *series).collect();
            self.swept_together(&all, &question.borders, |bucket, peak| line(key, class, bucket, peak));
        }
        self.sound((lines, Vec::new()))
    }

    fn swept_together(&self, all: &[&Series], borders: &[Instant], each: impl FnMut(usize, u64)) {
        let [from, .., to] = borders else { return };
        let level = all.iter().map(|series| i128::from(series.at(*from, &self.store).1)).sum();
        let mut points = Vec::new();
        for series in all {
            let put = |point: Point| points.push((point.at, i128::from(point.delta)));
            series.points(Window::new(*from, *to), &self.store, put);
        }
        sweep(level, points, borders, each);
    }
}
