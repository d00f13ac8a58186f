//! Checks whether a replica would fit on a node if some of its leases were evicted.

use crate::ask::Ask;
use crate::lease::Lease;
use crate::node::{Node, NodeClass};
use crate::placement::Tentative;
use leasehold_model::{ClassNo, Quanta};
use smallvec::SmallVec;

/// The free capacity of a node without the leases that are evicted on trial, for the requested classes only.
pub(super) struct Trial<'a> {
    asks: &'a [(ClassNo, Quanta)],
    classes: SmallVec<[FreeCapacity; 3]>,
}

/// What is free of one class, in all and on each device.
struct FreeCapacity {
    class: ClassNo,
    unit: u64,
    free: u64,
    devices: SmallVec<[u64; 16]>,
}

impl FreeCapacity {
    fn of(class: &NodeClass) -> Self {
        let unit = class.per_device;
        let devices = class.devices.iter().map(|used| unit - used).collect();
        Self { class: class.class, unit, free: class.free(), devices }
    }

    /// The same rule as `NodeClass::choose_devices`.
    fn fits(&self, asked: u64) -> bool {
        if asked > self.free {
            return false;
        }
        match self.unit {
            0 => true,
            unit if asked <= unit => self.devices.iter().any(|free| *free >= asked),
            unit => self.devices.iter().filter(|free| **free == unit).count() as u64 >= asked / unit,
        }
    }

    fn change(&mut self, lease: &Lease, restore: bool) {
        let by = |of: &mut u64, quanta: u64| *of = if restore { *of - quanta } else { *of + quanta };
        by(&mut self.free, lease.quanta.0);
        let each = lease.quanta.0 / u64::from(lease.devices.count_ones().max(1));
        let mut rest = lease.devices;
        while rest != 0 {
            by(&mut self.devices[rest.trailing_zeros() as usize], each);
            rest &= rest - 1;
        }
    }
}

impl<'a> Trial<'a> {
    pub(super) fn new(ask: &'a Ask<'a>, node: &Node, tentative: &Tentative) -> Self {
        let asked = ask.asks.iter().filter_map(|(class, _)| tentative.class(node, *class));
        Self { asks: ask.asks, classes: asked.map(FreeCapacity::of).collect() }
    }

    pub(super) fn change(&mut self, leases: &[&Lease], restore: bool) {
        for lease in leases {
            let of_class = self.classes.iter_mut().find(|free| free.class == lease.class);
            of_class.into_iter().for_each(|free| free.change(lease, restore));
        }
    }

    pub(super) fn fits(&self) -> bool {
        self.asks.iter().zip(&self.classes).all(|((_, quanta), free)| free.fits(quanta.0))
    }
}
