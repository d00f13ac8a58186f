//! The score of one node for one request (SEMANTICS 5).
//!
//! Fixed point: one is 2^20, and every division rounds down. `docs/reference/placement.md` documents the
//! formulas; the oracle implements them independently.

use super::stock::Stock;
use leasehold_model::{ClassNo, Sensitivity, Weights};

pub(crate) const ONE: u64 = 1 << ONE_BITS;
const ONE_BITS: u32 = 20;

/// `part / whole`, rounded down.
#[inline]
pub(crate) fn share(part: u64, whole: u64) -> u64 {
    if part >> (u64::BITS - ONE_BITS) == 0 {
        return (part << ONE_BITS) / whole;
    }
    u64::try_from((u128::from(part) << ONE_BITS) / u128::from(whole)).expect("a part is no larger than its whole")
}

/// The weight of a class in the means of pressure and fit, by the sensitivity of the workload to it.
pub(crate) fn class_weight(sensitivity: Option<Sensitivity>) -> u64 {
    match sensitivity {
        Some(Sensitivity::Critical) => 8,
        Some(Sensitivity::Moderate) => 4,
        Some(Sensitivity::Low) | None => 2,
        Some(Sensitivity::Indifferent | Sensitivity::Unused) => 1,
    }
}

/// One class of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassAsk {
    pub(crate) class: ClassNo,
    pub(crate) quanta: u64,
    pub(crate) weight: u64,
    /// The number of whole devices, if more than one device is requested; 0 otherwise.
    pub(crate) devices: u32,
}

impl ClassAsk {
    /// Whether it fits: `room` quanta are free in one piece, and `whole` devices are not in use at all.
    #[inline]
    pub(crate) fn fits(&self, room: u64, whole: u32) -> bool {
        if self.devices > 0 { whole >= self.devices } else { room >= self.quanta }
    }
}

/// The four terms of a score, each from 0 to [`ONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) pressure: u64,
    pub(crate) fit: u64,
    pub(crate) locality: u64,
    pub(crate) fragmentation: u64,
}

/// The weights by which the nodes of a pool are scored for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) weights: Weights,
    /// The sum of the weights of the requested classes.
    pub(crate) weight_sum: u64,
    /// How many classes are requested.
    pub(crate) classes: u64,
}

/// Sums of the terms of the classes added so far, weighted except for fragmentation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pressure: u64,
    fit: u64,
    fragmentation: u64,
}

impl Sums {
    #[inline]
    pub(super) fn add(&mut self, ask: &ClassAsk, total: u64, free: u64) {
        let used_after = total - free + ask.quanta;
        let fragmentation = share(used_after, total);
        self.pressure += ask.weight * (ONE - fragmentation);
        self.fit += ask.weight * share(ask.quanta, free);
        self.fragmentation += fragmentation;
    }
}

impl Scale {
    #[inline]
    pub(super) fn terms(&self, sums: Sums, locality: u64) -> Terms {
        // The mean over one class is its own term, and its weight is one (see `Search::new`).
        if self.classes == 1 {
            return Terms { pressure: sums.pressure, fit: sums.fit, locality, fragmentation: sums.fragmentation };
        }
        Terms {
            pressure: sums.pressure / self.weight_sum,
            fit: sums.fit / self.weight_sum,
            locality,
            fragmentation: sums.fragmentation / self.classes,
        }
    }

    #[inline]
    pub(crate) fn total(&self, terms: &Terms, heat: u16) -> u64 {
        let w = &self.weights;
        let sum = u64::from(w.pressure) * terms.pressure
            + u64::from(w.fit) * terms.fit
            + u64::from(w.locality) * terms.locality
            + u64::from(w.fragmentation) * terms.fragmentation;
        cool(sum / 1000, heat)
    }

    /// The terms of a node whose stock for the n-th ask is `stock(n)`; `None` if a class does not fit.
    #[inline]
    pub(crate) fn terms_of<'s>(
        &self,
        asks: &[ClassAsk],
        stock: impl Fn(usize) -> &'s Stock,
        locality: u64,
    ) -> Option<Terms> {
        let mut sums = Sums::default();
        for (index, ask) in asks.iter().enumerate() {
            let Stock { total, free, room, whole, .. } = *stock(index);
            if !ask.fits(room, whole) {
                return None;
            }
            sums.add(ask, total, free);
        }
        Some(self.terms(sums, locality))
    }
}

/// Reduces a score by the heat of the node.
#[inline]
pub(super) fn cool(score: u64, heat: u16) -> u64 {
    if heat == 0 { score } else { score * u64::from(1000 - heat) / 1000 }
}
