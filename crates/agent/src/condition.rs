//! The condition of the node: load, errors, throttling. The daemon records each change and raises the node's heat, so
//! levels have hysteresis.

use super::machine;
use leasehold_client::api::{Condition, Level};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Runnable tasks per core, in hundredths: the level is entered at the first value and left below the second.
const LOAD_HIGH: (u64, u64) = (200, 150);
const LOAD_CRITICAL: (u64, u64) = (400, 300);
/// How long a failed hook counts.
const FAILURES_OVER: Duration = Duration::from_secs(600);
/// So many failures within that time are critical; one is high.
const FAILURES_CRITICAL: usize = 5;

pub(crate) struct Gauge {
    cores: u64,
    load: Level,
    failed_at: VecDeque<Instant>,
    throttled_file: Option<PathBuf>,
}

impl Gauge {
    pub(crate) fn new(throttled_file: Option<PathBuf>) -> Self {
        Self { cores: machine::cores(), load: Level::Normal, failed_at: VecDeque::new(), throttled_file }
    }

    /// Counts a failed hook.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.failed_at.push_back(now);
        if self.failed_at.len() > FAILURES_CRITICAL {
            self.failed_at.pop_front();
        }
    }

    pub(crate) fn read(&mut self, now: Instant) -> Condition {
        self.load = load_level(self.load, machine::load_hundredths().unwrap_or(0), self.cores);
        self.failed_at.retain(|at| now.duration_since(*at) < FAILURES_OVER);
        let errors = match self.failed_at.len() {
            0 => Level::Normal,
            FAILURES_CRITICAL.. => Level::Critical,
            _ => Level::High,
        };
        let throttled = self.throttled_file.as_deref().is_some_and(is_set);
        Condition { load: self.load, errors, throttled }
    }
}

fn load_level(before: Level, load_hundredths: u64, cores: u64) -> Level {
    let per_core = load_hundredths / cores.max(1);
    let bound = |(enter, leave): (u64, u64), inside: bool| if inside { leave } else { enter };
    let is_critical = before == Level::Critical;
    if per_core >= bound(LOAD_CRITICAL, is_critical) {
        Level::Critical
    } else if per_core >= bound(LOAD_HIGH, is_critical || before == Level::High) {
        Level::High
    } else {
        Level::Normal
    }
}

/// Whether the file exists and is neither empty nor `0`.
fn is_set(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| !matches!(text.trim(), "" | "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_hysteresis() {
        let mut level = Level::Normal;
        let mut levels = Vec::new();
        for load in [399, 400, 301, 800, 601, 599, 301, 299] {
            level = load_level(level, load, 2);
            levels.push(level);
        }
        use Level::{Critical, High, Normal};
        assert_eq!(levels, [Normal, High, High, Critical, Critical, High, High, Normal]);
    }

    #[test]
    fn failures_count_for_a_while() {
        let mut gauge = Gauge::new(None);
        let now = Instant::now();
        assert_eq!(gauge.read(now).errors, Level::Normal);
        gauge.failed(now);
        assert_eq!(gauge.read(now).errors, Level::High);
        (0..9).for_each(|_| gauge.failed(now + Duration::from_secs(1)));
        assert_eq!(gauge.read(now + Duration::from_secs(1)).errors, Level::Critical);
        assert_eq!(gauge.read(now + FAILURES_OVER).errors, Level::Critical);
        assert_eq!(gauge.read(now + FAILURES_OVER + Duration::from_secs(1)).errors, Level::Normal);
    }

    #[test]
    fn throttling_is_what_the_file_says() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("throttled");
        let throttled = || Gauge::new(Some(file.clone())).read(Instant::now()).throttled;
        assert!(!throttled());
        for (text, is) in [("", false), ("0\n", false), ("1\n", true), ("thermal", true)] {
            fs::write(&file, text).unwrap();
            assert_eq!(throttled(), is, "{text:?}");
        }
    }
}
