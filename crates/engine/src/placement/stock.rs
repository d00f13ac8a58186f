//! The capacity of a class, total and free: on one node ([`Stock`]), and as a range over many nodes ([`Range`]).

use super::score::share;
use crate::node::NodeClass;

/// The capacity of a class on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stock {
    pub(crate) total: u64,
    pub(crate) free: u64,
    /// The most that a lease of up to one device can get: what is free on the emptiest device, or
    /// everything that is free for classes without devices.
    pub(crate) room: u64,
    /// Devices of which nothing is in use.
    pub(crate) whole: u32,
    /// The free share of the capacity, rounded down.
    pub(crate) share: u32,
}

impl Stock {
    pub(crate) fn of(class: &NodeClass) -> Self {
        let mut stock = Self::NONE;
        stock.refresh(class);
        stock
    }

    /// Writes the fields in place: copying a struct that was just written would stall on the store.
    #[inline]
    pub(crate) fn refresh(&mut self, class: &NodeClass) {
        (self.total, self.free) = (class.capacity, class.free());
        self.share = u32::try_from(share(self.free, self.total)).expect("free is at most the total");
        if class.per_device == 0 {
            (self.room, self.whole) = (self.free, 0);
            return;
        }
        let least_used = class.devices.iter().copied().min().unwrap_or(class.per_device);
        self.room = class.per_device - least_used;
        self.whole = class.devices.iter().map(|used| u32::from(*used == 0)).sum();
    }

    pub(crate) const NONE: Self = Self { total: 0, free: 0, room: 0, whole: 0, share: 0 };

    /// The sum of the free shares of all classes, in the form of one more class.
    pub(crate) fn sum(stocks: &[Self]) -> Self {
        let share = stocks.iter().map(|stock| stock.share).sum();
        Self { total: 0, free: 0, room: 0, whole: 0, share }
    }
}

/// The range of the capacity of a class over many nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) free_lo: u64,
    pub(crate) free_hi: u64,
    pub(crate) total_lo: u64,
    pub(crate) total_hi: u64,
    pub(crate) room_hi: u64,
    pub(crate) whole_hi: u32,
    pub(crate) share_lo: u32,
    pub(crate) share_hi: u32,
}

impl Range {
    /// The range over no nodes.
    pub(crate) const NONE: Self = Self {
        free_lo: u64::MAX,
        free_hi: 0,
        total_lo: u64::MAX,
        total_hi: 0,
        room_hi: 0,
        whole_hi: 0,
        share_lo: u32::MAX,
        share_hi: 0,
    };

    #[inline]
    pub(crate) fn of(stock: &Stock) -> Self {
        let Stock { total, free, room, whole, share } = *stock;
        Self {
            free_lo: free,
            free_hi: free,
            total_lo: total,
            total_hi: total,
            room_hi: room,
            whole_hi: whole,
            share_lo: share,
            share_hi: share,
        }
    }

    /// Extends the range to include another.
    #[inline]
    pub(crate) fn widen(&mut self, other: &Self) {
        self.free_lo = self.free_lo.min(other.free_lo);
        self.free_hi = self.free_hi.max(other.free_hi);
        self.total_lo = self.total_lo.min(other.total_lo);
        self.total_hi = self.total_hi.max(other.total_hi);
        self.room_hi = self.room_hi.max(other.room_hi);
        self.whole_hi = self.whole_hi.max(other.whole_hi);
        self.share_lo = self.share_lo.min(other.share_lo);
        self.share_hi = self.share_hi.max(other.share_hi);
    }

    /// Updates the range after a part of it has changed. Returns false if that part determined a limit
    /// and no longer does: the range must then be recomputed from all parts.
    #[inline]
    pub(crate) fn follow(&mut self, before: &Self, after: &Self) -> bool {
        let kept = (after.free_lo <= before.free_lo || self.free_lo != before.free_lo)
            && (after.free_hi >= before.free_hi || self.free_hi != before.free_hi)
            && (after.total_lo <= before.total_lo || self.total_lo != before.total_lo)
            && (after.total_hi >= before.total_hi || self.total_hi != before.total_hi)
            && (after.room_hi >= before.room_hi || self.room_hi != before.room_hi)
            && (after.whole_hi >= before.whole_hi || self.whole_hi != before.whole_hi)
            && (after.share_lo <= before.share_lo || self.share_lo != before.share_lo)
            && (after.share_hi >= before.share_hi || self.share_hi != before.share_hi);
        self.widen(after);
        kept
    }
}
