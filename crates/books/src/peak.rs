//! Peaks: the most that was held at the same time.

use crate::ask::{Key, Question, Source};
use crate::facts::{Books, BooksError};
use crate::usage::bucket_no;
use leasehold_model::{ClassNo, Instant, Name};
use std::collections::BTreeMap;

/// The highest level of one key and class within one interval of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeakLine {
    pub key: Key,
    pub class: ClassNo,
    pub bucket: u32,
    /// Quanta.
    pub peak: u64,
}

/// Changes of a level in order of time; a change can be the sum of several at the same instant.
fn sweep(mut points: Vec<(Instant, i128)>, borders: &[Instant], mut each: impl FnMut(usize, u128)) {
    let mut level = 0;
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
        each(bucket, u128::try_from(peak).unwrap_or(0));
    }
}

/// The peaks of several classes together: by key, group and interval.
pub type PeaksTogether<G> = BTreeMap<(Key, G, u32), u128>;

impl Books {
    /// The peaks of a question over several classes together, such as those of one kind. `group` gives the group of a
    /// class and what one of its quanta counts there, so that classes with different units per quantum can be added up.
    pub fn peaks_together<G: Ord + Clone>(
        &self,
        question: &Question,
        group: impl Fn(ClassNo) -> (G, u64),
    ) -> Result<PeaksTogether<G>, BooksError> {
        self.afford(question)?;
        let mut points: BTreeMap<(Key, G), Vec<(Instant, i128)>> = BTreeMap::new();
        let mut add = |key: Key, class: ClassNo, at: Instant, by: i128| {
            let (group, weight) = group(class);
            points.entry((key, group)).or_default().push((at, by * i128::from(weight)));
        };
        let mut workloads = self.workloads();
        if self.source(question) == Source::Rows {
            self.scan(question, &mut workloads, |key, slice| {
                if !slice.held.is_empty() {
                    add(key, slice.brief.class, slice.held.from, slice.quanta.into());
                    add(key, slice.brief.class, slice.held.to, -i128::from(slice.quanta));
                }
            })?;
        } else {
            let (plan, timeline) = self.plan(question).expect("the source is a timeline");
            let window = question.window();
            let mut series = plan.series.clone();
            series.sort_unstable();
            let (levels, later) = timeline.since(&series, window.from, &self.store);
            let first = series.iter().zip(levels).map(|(one, level)| (*one, window.from, level));
            let later = later.iter().take_while(|event| event.at < window.to);
            for (series, at, by) in first.chain(later.map(|event| (event.series, event.at, event.delta))) {
                let (key, class) = plan.groups[plan.group_of[series as usize] as usize];
                add(key, class, at, by.into());
            }
            self.sound(())?;
        }
        let mut peaks = BTreeMap::new();
        for ((key, group), points) in points {
            sweep(points, &question.borders, |bucket, peak| {
                if peak > 0 {
                    peaks.insert((key, group.clone(), bucket_no(bucket)), peak);
                }
            });
        }
        Ok(peaks)
    }

    /// The peaks of a question, in order of key, class and interval; zeros are omitted.
    pub fn peaks(&self, question: &Question) -> Result<(Vec<PeakLine>, Vec<Name>), BooksError> {
        self.afford(question)?;
        let mut lines = Vec::new();
        let mut line = |key, class, bucket, peak| {
            if peak > 0 {
                lines.push(PeakLine { key, class, bucket: bucket_no(bucket), peak });
            }
        };
        let mut workloads = self.workloads();
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
                sweep(points, &question.borders, |bucket, peak| {
                    line(key, class, bucket, u64::try_from(peak).unwrap_or(u64::MAX));
                });
            }
            return Ok((lines, workloads.names));
        }
        let (plan, timeline) = self.plan(question).expect("the source is a timeline");
        timeline.peaks(&question.borders, &plan.group_of, plan.groups.len(), &self.store, |bucket, group, peak| {
            let (key, class) = plan.groups[group as usize];
            line(key, class, bucket, peak);
        });
        lines.sort_unstable_by_key(|line| (line.key, line.class, line.bucket));
        self.sound((lines, Vec::new()))
    }
}
