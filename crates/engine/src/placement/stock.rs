//! What there is of a class: on one node, and between which limits on many.

use crate::node::NodeClass;

/// On one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stock {
    pub(crate) total: u64,
    pub(crate) free: u64,
    /// The most that a lease of up to one device can have: what is free of the emptiest device, or
    /// everything that is free where there are no devices.
    pub(crate) room: u64,
    /// Devices of which nothing is in use.
    pub(crate) whole: u64,
}

impl Stock {
    pub(crate) fn of(class: &NodeClass) -> Self {
        let free = class.free();
        if class.per_device == 0 {
            return Self { total: class.capacity, free, room: free, whole: 0 };
        }
        let least_used = class.devices.iter().copied().min().unwrap_or(class.per_device);
        let whole = class.devices.iter().filter(|used| **used == 0).count() as u64;
        Self { total: class.capacity, free, room: class.per_device - least_used, whole }
    }
}

/// On many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) free_lo: u64,
    pub(crate) free_hi: u64,
    pub(crate) total_lo: u64,
    pub(crate) total_hi: u64,
    pub(crate) room_hi: u64,
    pub(crate) whole_hi: u64,
}

impl Range {
    /// Of none.
    pub(crate) const NONE: Self =
        Self { free_lo: u64::MAX, free_hi: 0, total_lo: u64::MAX, total_hi: 0, room_hi: 0, whole_hi: 0 };

    #[inline]
    pub(crate) fn of(stock: &Stock) -> Self {
        let Stock { total, free, room, whole } = *stock;
        Self { free_lo: free, free_hi: free, total_lo: total, total_hi: total, room_hi: room, whole_hi: whole }
    }

    /// Makes room for another.
    #[inline]
    pub(crate) fn widen(&mut self, other: &Self) {
        self.free_lo = self.free_lo.min(other.free_lo);
        self.free_hi = self.free_hi.max(other.free_hi);
        self.total_lo = self.total_lo.min(other.total_lo);
        self.total_hi = self.total_hi.max(other.total_hi);
        self.room_hi = self.room_hi.max(other.room_hi);
        self.whole_hi = self.whole_hi.max(other.whole_hi);
    }

    /// Takes up that a part of these has changed. False where a limit was that part's and is it no
    /// longer: what it is now, the other parts know.
    #[inline]
    pub(crate) fn follow(&mut self, before: &Self, after: &Self) -> bool {
        let kept = (after.free_lo <= before.free_lo || self.free_lo != before.free_lo)
            && (after.free_hi >= before.free_hi || self.free_hi != before.free_hi)
            && (after.total_lo <= before.total_lo || self.total_lo != before.total_lo)
            && (after.total_hi >= before.total_hi || self.total_hi != before.total_hi)
            && (after.room_hi >= before.room_hi || self.room_hi != before.room_hi)
            && (after.whole_hi >= before.whole_hi || self.whole_hi != before.whole_hi);
        self.widen(after);
        kept
    }
}
