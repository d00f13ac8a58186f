//! Usage that the runtimes of apps report: quantities, and what makes two reports the same (SEMANTICS 9 and 12).

use crate::codec::{DecodeError, Field, Reader, get_scaled, put_scaled};
use crate::limits::USAGE_QUANTITY_MAX;
use crate::rate::{BILLION, BadDecimal, billionths};
use crate::words;
use std::fmt;
use std::str::FromStr;

/// A reported quantity of a usage unit, in billionths; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitQuantity(pub u128);

impl UnitQuantity {
    /// Parts of a unit on a line of the ledger: reported quantities are divided at the borders of months and prices, to a
    /// billionth of a billionth.
    pub const LINE_PARTS: u128 = 1_000_000_000_000_000_000;

    pub fn of_whole(units: u64) -> Self {
        Self(u128::from(units) * u128::from(BILLION))
    }
    /// The same quantity in the parts of a line.
    pub const fn in_line_parts(self) -> u128 {
        self.0 * 1_000_000_000
    }
}

impl FromStr for UnitQuantity {
    type Err = BadDecimal;

    fn from_str(text: &str) -> Result<Self, BadDecimal> {
        Some(Self(billionths(text)?)).filter(|all| *all <= USAGE_QUANTITY_MAX).ok_or(BadDecimal::TooLarge)
    }
}

/// With as few decimals as necessary.
impl fmt::Display for UnitQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_unit = u128::from(BILLION);
        let (whole, part) = (self.0 / per_unit, self.0 % per_unit);
        match part {
            0 => f.pad(&whole.to_string()),
            part => f.pad(format!("{whole}.{part:09}").trim_end_matches('0')),
        }
    }
}

impl Field for UnitQuantity {
    fn put(&self, out: &mut Vec<u8>) {
        put_scaled(self.0, out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Some(Self(get_scaled(r)?)).filter(|all| *all <= USAGE_QUANTITY_MAX).ok_or(DecodeError::BadInteger)
    }
}

words! {
    /// What a usage record does to the accounts of its project.
    pub enum UsageCharge {
        /// It is charged at the price of its unit.
        Billed = 1 "billed",
        /// It is only shown: somebody else pays for the capacity.
        Reported = 2 "reported",
    }
}

words! {
    /// Where usage comes from.
    pub enum UsageSource {
        /// Reported by the runtime of an app.
        AppRuntime "app_runtime",
        /// Leases. It is not reported, because the journal has it.
        Allocation "allocation",
    }
}
