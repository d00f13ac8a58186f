//! Hours of UTC: what runs for long is reported as it goes, in slices whose borders do not depend on when it was seen.

const HOUR_MS: u64 = 3_600_000;

/// A part of one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
}

impl Slice {
    /// The number of its hour since 1970, by which its record is named.
    pub(crate) fn hour(self) -> u64 {
        self.from_ms / HOUR_MS
    }
}

/// The slices from `start_ms` to `due_ms` of the hours that are not over at `reported_ms`. A slice is always reported from
/// the beginning of its hour, so that its content does not depend on what was reported before.
pub(crate) fn slices(start_ms: u64, due_ms: u64, reported_ms: u64) -> impl Iterator<Item = Slice> {
    let first = start_ms.max(reported_ms / HOUR_MS * HOUR_MS).max(start_ms);
    let mut from_ms = if reported_ms >= due_ms { due_ms } else { first };
    std::iter::from_fn(move || {
        let to_ms = ((from_ms / HOUR_MS + 1) * HOUR_MS).min(due_ms);
        let slice = Slice { from_ms, to_ms };
        from_ms = to_ms;
        (slice.from_ms < slice.to_ms).then_some(slice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(start: u64, due: u64, reported: u64, expected: &[(u64, u64)]) {
        let minute = 60_000;
        let found: Vec<(u64, u64)> = slices(start * minute, due * minute, reported * minute)
            .map(|slice| (slice.from_ms / minute, slice.to_ms / minute))
            .collect();
        assert_eq!(found, expected, "{start} to {due}, reported to {reported}");
    }

    #[test]
    fn hours_are_cut_at_the_full_hour() {
        check(50, 200, 0, &[(50, 60), (60, 120), (120, 180), (180, 200)]);
        check(60, 120, 0, &[(60, 120)]);
        check(50, 200, 120, &[(120, 180), (180, 200)]);
        // It ended in an hour that had begun to be reported: the whole slice again, which supersedes the part.
        check(50, 200, 190, &[(180, 200)]);
        check(50, 55, 52, &[(50, 55)]);
        check(50, 200, 200, &[]);
        check(50, 50, 0, &[]);
    }
}
