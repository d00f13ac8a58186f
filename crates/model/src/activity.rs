//! Activity reports of holders (SEMANTICS 8). They are used for waste, never for billing.

use crate::codec::{DecodeError, Field, Reader, get_scaled, put_scaled};
use crate::instant::Span;
use crate::quantity::Quanta;

/// A report on one lease. The time that it covers ends at the stamp of its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The length of time that the report covers.
    pub covered: Span,
    /// Busy quanta × nanoseconds.
    pub busy: u128,
    /// Time in which the holder was active.
    pub active: Span,
    /// Time spent waiting for each kind of resource, in the order of `ResourceKind`.
    pub waiting: [Span; 5],
}

/// Why a report is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadActivity {
    CoversNothing,
    /// It covers time before the grant or before the last report.
    CoversTooMuch,
    BusierThanHeld,
    ActiveLongerThanCovered,
    WaitedLongerThanCovered,
}

impl BadActivity {
    pub const fn word(self) -> &'static str {
        match self {
            Self::CoversNothing => "covers no time",
            Self::CoversTooMuch => "covers time that was not held or was reported before",
            Self::BusierThanHeld => "claims more busy time than the lease held",
            Self::ActiveLongerThanCovered => "claims more active time than it covers",
            Self::WaitedLongerThanCovered => "claims more waiting time than it covers",
        }
    }
}

impl std::fmt::Display for BadActivity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl Activity {
    /// Checks the report against `held` quanta and the `unreported` time up to now.
    pub fn check(&self, held: Quanta, unreported: Span) -> Result<(), BadActivity> {
        if self.covered == Span::ZERO {
            return Err(BadActivity::CoversNothing);
        }
        if self.covered > unreported {
            return Err(BadActivity::CoversTooMuch);
        }
        if self.busy > u128::from(held.0) * u128::from(self.covered.0) {
            return Err(BadActivity::BusierThanHeld);
        }
        if self.active > self.covered {
            return Err(BadActivity::ActiveLongerThanCovered);
        }
        if self.waiting.iter().any(|w| *w > self.covered) {
            return Err(BadActivity::WaitedLongerThanCovered);
        }
        Ok(())
    }
}

impl Field for Activity {
    fn put(&self, out: &mut Vec<u8>) {
        self.covered.put(out);
        put_scaled(self.busy, out);
        self.active.put(out);
        let mut present = 0u8;
        for (i, wait) in self.waiting.iter().enumerate() {
            present |= u8::from(*wait != Span::ZERO) << i;
        }
        out.push(present);
        for wait in self.waiting.iter().filter(|w| **w != Span::ZERO) {
            wait.put(out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut activity =
            Self { covered: Field::get(r)?, busy: get_scaled(r)?, active: Field::get(r)?, waiting: [Span::ZERO; 5] };
        let present = r.byte()?;
        if present >> 5 != 0 {
            return Err(DecodeError::BadCode { field: "waiting", code: u64::from(present) });
        }
        for (i, wait) in activity.waiting.iter_mut().enumerate() {
            if present >> i & 1 == 1 {
                *wait = Field::get(r)?;
                if *wait == Span::ZERO {
                    return Err(DecodeError::Forbidden("a waiting time of zero written out"));
                }
            }
        }
        Ok(activity)
    }
}
