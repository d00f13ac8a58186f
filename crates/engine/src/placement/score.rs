//! The score of one node for one request (SEMANTICS 5), and an upper bound of it over many nodes.
//!
//! Fixed point: one is 2^20, and every division rounds down. `docs/reference/placement.md` gives the
//! same sums for people; the oracle has its own.

use super::stock::{Range, Stock};
use leasehold_model::{ClassNo, Sensitivity, Weights};

pub(crate) const ONE: u64 = 1 << ONE_BITS;
const ONE_BITS: u32 = 20;

/// `part / whole`, rounded down.
#[inline]
fn share(part: u64, whole: u64) -> u64 {
    if part >> (u64::BITS - ONE_BITS) == 0 {
        return (part << ONE_BITS) / whole;
    }
    u64::try_from((u128::from(part) << ONE_BITS) / u128::from(whole)).expect("parts are no larger than their whole")
}

/// How much a class counts in the mean, by what the workload depends on.
pub(crate) fn class_weight(sensitivity: Option<Sensitivity>) -> u64 {
    match sensitivity {
        Some(Sensitivity::Critical) => 4,
        Some(Sensitivity::Moderate) => 2,
        _ => 1,
    }
}

/// One class of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) class: ClassNo,
    pub(crate) quanta: u64,
    pub(crate) weight: u64,
    /// Whole devices, where it asks for more than one.
    pub(crate) devices: u64,
}

impl Ask {
    /// Whether it has a place there: enough in one piece, or enough whole devices.
    #[inline]
    fn fits(&self, free: u64, room: u64, whole: u64) -> bool {
        if self.devices > 0 { whole >= self.devices && free >= self.quanta } else { room >= self.quanta }
    }
}

/// The four terms, each from nothing to [`ONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) pressure: u64,
    pub(crate) fit: u64,
    pub(crate) locality: u64,
    pub(crate) fragmentation: u64,
}

/// By what a pool's nodes are scored for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) weights: Weights,
    /// Of all classes asked.
    pub(crate) weight_sum: u64,
}

/// Weighted terms of the classes seen so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    pressure: u64,
    fit: u64,
    fragmentation: u64,
}

impl Sums {
    #[inline]
    fn add(&mut self, ask: &Ask, total: u64, free: u64) {
        let used_after = total - free + ask.quanta;
        let fragmentation = share(used_after, total);
        self.pressure += ask.weight * (ONE - fragmentation);
        self.fit += ask.weight * share(ask.quanta, free);
        self.fragmentation += ask.weight * fragmentation;
    }
}

impl Scale {
    #[inline]
    fn terms(&self, sums: Sums, locality: u64) -> Terms {
        Terms {
            pressure: sums.pressure / self.weight_sum,
            fit: sums.fit / self.weight_sum,
            locality,
            fragmentation: sums.fragmentation / self.weight_sum,
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

    /// The terms of a node whose stock of the n-th ask is `stock(n)`; `None` where something does not fit.
    pub(crate) fn terms_of<'s>(
        &self,
        asks: &[Ask],
        stock: impl Fn(usize) -> &'s Stock,
        locality: u64,
    ) -> Option<Terms> {
        let mut sums = Sums::default();
        for (place, ask) in asks.iter().enumerate() {
            let Stock { total, free, room, whole } = *stock(place);
            if !ask.fits(free, room, whole) {
                return None;
            }
            sums.add(ask, total, free);
        }
        Some(self.terms(sums, locality))
    }

    #[inline]
    pub(crate) fn score<'s>(
        &self,
        asks: &[Ask],
        stock: impl Fn(usize) -> &'s Stock,
        locality: u64,
        heat: u16,
    ) -> Option<u64> {
        self.terms_of(asks, stock, locality).map(|terms| self.total(&terms, heat))
    }

    /// No node within the ranges scores more. `None` where none of them can have a place. Exact where
    /// all of them have the same.
    pub(crate) fn bound<'s>(
        &self,
        asks: &[Ask],
        range: impl Fn(usize) -> &'s Range,
        locality: u64,
        heat: u16,
    ) -> Option<u64> {
        let mut alike = true;
        for (place, ask) in asks.iter().enumerate() {
            let range = range(place);
            if !ask.fits(range.free_hi, range.room_hi, range.whole_hi) {
                return None;
            }
            alike &= range.free_lo == range.free_hi && range.total_lo == range.total_hi;
        }
        if alike {
            let mut sums = Sums::default();
            asks.iter().enumerate().for_each(|(place, ask)| sums.add(ask, range(place).total_hi, range(place).free_hi));
            return Some(self.total(&self.terms(sums, locality), heat));
        }
        let bounds = asks.iter().enumerate().map(|(place, ask)| ask.weight * self.class_bound(ask, range(place)));
        let most: u64 = bounds.sum();
        let sum = most / self.weight_sum + u64::from(self.weights.locality) * locality;
        Some(cool(sum / 1000, heat))
    }

    /// For one class, the most of `pressure * Pressure + fit * Fit + fragmentation * Fragmentation`.
    ///
    /// Without rounding, and with one capacity, that is a linear function of what is free plus a
    /// multiple of its reciprocal: convex, so it is greatest at an end. The capacity is taken that
    /// favours; what is added makes up for rounding.
    fn class_bound(&self, ask: &Ask, range: &Range) -> u64 {
        let w = &self.weights;
        let (pressure, fit, packed) = (u64::from(w.pressure), u64::from(w.fit), u64::from(w.fragmentation));
        let at = |free: u64| {
            let fits = fit * (share(ask.quanta, free) + 1);
            let left = free - ask.quanta;
            if pressure >= packed {
                let slope = pressure - packed;
                packed * ONE + slope * (share_of(left, range.total_lo) + 2) + fits
            } else {
                packed * ONE - (packed - pressure) * share_of(left, range.total_hi) + fits
            }
        };
        let least = range.free_lo.max(ask.quanta);
        if least == range.free_hi { at(least) } else { at(least).max(at(range.free_hi)) }
    }
}

/// As [`share`], of a part that may be larger than what it is compared with.
#[inline]
fn share_of(part: u64, whole: u64) -> u64 {
    if part >> (u64::BITS - ONE_BITS) == 0 {
        return (part << ONE_BITS) / whole;
    }
    u64::try_from((u128::from(part) << ONE_BITS) / u128::from(whole)).unwrap_or(u64::MAX >> 24)
}

/// Less by its heat.
#[inline]
fn cool(score: u64, heat: u16) -> u64 {
    if heat == 0 { score } else { score * u64::from(1000 - heat) / 1000 }
}
