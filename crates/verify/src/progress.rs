//! A progress line on the terminal: how much is done, how fast, and the time left.

use crate::Progress;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Work that takes less time shows no progress.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(100);
const BAR_CELLS: u64 = 24;

/// Draws on stderr, if that is a terminal.
pub(crate) struct Bar {
    began: Instant,
    /// When to draw next; none if stderr is not a terminal.
    due: Mutex<Option<Instant>>,
}

impl Bar {
    pub(crate) fn new() -> Self {
        let began = Instant::now();
        let due = std::io::stderr().is_terminal().then(|| began + SHOWN_AFTER);
        Self { began, due: Mutex::new(due) }
    }

    pub(crate) fn draw(&self, progress: Progress) {
        let Ok(mut due) = self.due.try_lock() else {
            return;
        };
        let now = Instant::now();
        if due.is_some_and(|due| now >= due) {
            *due = Some(now + EVERY);
            // Failing to draw is ignored, here and below.
            let _ = write!(std::io::stderr(), "\r{}\x1b[K", line(progress, now - self.began));
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        if self.due.lock().is_ok_and(|due| due.is_some_and(|due| due > self.began + SHOWN_AFTER)) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(progress: Progress, elapsed: Duration) -> String {
    let (done, total) = (progress.bytes.min(progress.bytes_total), progress.bytes_total.max(1));
    let cells = usize::try_from(done * BAR_CELLS / total).unwrap_or(0);
    let bar = format!("{:-<24}", "#".repeat(cells));
    let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let per_second = progress.records.saturating_mul(1000) / milliseconds;
    let left = milliseconds.saturating_mul(total - done) / done.max(1) / 1000;
    let (minutes, seconds) = (left / 60, left % 60);
    let percent = done * 100 / total;
    format!("verifying [{bar}] {percent:3} %  {} records/s  {minutes}:{seconds:02} left", thousands(per_second))
}

/// `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_much_how_fast_and_how_long() {
        let progress = Progress { bytes: 250, bytes_total: 1000, records: 5_000_000 };
        assert_eq!(
            line(progress, Duration::from_secs(25)),
            "verifying [######------------------]  25 %  200,000 records/s  1:15 left"
        );
        let nothing = Progress { bytes: 0, bytes_total: 0, records: 0 };
        assert!(line(nothing, Duration::ZERO).contains("  0 %"));
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }
}
