//! The rules of the ledger: how exact costs become amounts that are posted.
//!
//! In: exact amounts, what a payer's earlier postings left over, weights. Out: whole steps of a currency that add up.
//!
//! Never: I/O, a clock, floating point, an amount that is rounded twice. The crate does not know where usage comes from.

pub mod exact;
pub mod posting;
pub mod residual;
pub mod share;

pub use exact::Amount;
pub use leasehold_meter::Overflow;
pub use posting::{Posted, reversed, rounded};
pub use residual::Residual;
pub use share::shared;

/// A posted amount: whole steps of 10^-6 of a currency, negative for what is given back (SEMANTICS 12, "Amounts").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Steps(pub i128);

impl Steps {
    pub const ZERO: Self = Self(0);

    pub fn checked_add(self, other: Self) -> Result<Self, Overflow> {
        self.0.checked_add(other.0).map(Self).ok_or(Overflow)
    }

    pub fn negated(self) -> Result<Self, Overflow> {
        self.0.checked_neg().map(Self).ok_or(Overflow)
    }

    pub fn sum(all: impl IntoIterator<Item = Self>) -> Result<Self, Overflow> {
        all.into_iter().try_fold(Self::ZERO, Self::checked_add)
    }
}

/// Steps in one unit of a currency.
pub const STEPS_PER_UNIT: u64 = 1_000_000;
