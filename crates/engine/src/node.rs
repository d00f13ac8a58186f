//! Nodes, and how their capacity is split: held, tearing down, reserved, fenced, offline or idle.

use crate::custody::{Claimer, Custody};
use crate::heat::Heat;
use crate::lease::NONE;
use crate::window::NodeWindows;
use leasehold_model::{ClassNo, Instant, Level, Name, NodeNo, PoolNo, Quanta, TeardownMode};

/// How a node's capacity of one class is split. The six parts add up to the capacity (SEMANTICS 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapacitySplit {
    pub held: u64,
    pub tearing_down: u64,
    pub reserved: u64,
    pub fenced: u64,
    pub offline: u64,
    pub idle: u64,
}

impl CapacitySplit {
    pub fn total(&self) -> u64 {
        self.held + self.tearing_down + self.reserved + self.fenced + self.offline + self.idle
    }
}

/// One class on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeClass {
    pub class: ClassNo,
    pub capacity: u64,
    pub held: u64,
    pub tearing_down: u64,
    pub fenced: u64,
    /// Kept for allocations whose victims are being torn down.
    pub reserved: u64,
    /// Quanta in use on each device; empty for kinds without devices.
    pub devices: Vec<u64>,
    /// Quanta of one device; zero for kinds without devices.
    pub per_device: u64,
}

impl NodeClass {
    pub fn new(class: ClassNo, capacity: Quanta, per_device: Option<u64>) -> Self {
        let devices = per_device.map_or(0, |unit| usize::try_from(capacity.0 / unit).expect("at most 64 devices"));
        Self {
            class,
            capacity: capacity.0,
            held: 0,
            tearing_down: 0,
            fenced: 0,
            reserved: 0,
            devices: vec![0; devices],
            per_device: per_device.unwrap_or(0),
        }
    }

    pub fn used(&self) -> u64 {
        self.held + self.tearing_down + self.reserved + self.fenced
    }
    /// What is not in use, whether or not the node is in service.
    pub fn free(&self) -> u64 {
        self.capacity - self.used()
    }

    /// The most that a request for about `quanta` could get. Up to one device must be free on one device; more than that
    /// must be whole devices.
    pub(crate) fn room_for(&self, quanta: Quanta) -> u64 {
        if self.per_device == 0 {
            return self.free();
        }
        if quanta.0 <= self.per_device {
            return self.devices.iter().map(|used| self.per_device - used).max().unwrap_or(0);
        }
        self.devices.iter().filter(|used| **used == 0).count() as u64 * self.per_device
    }

    /// How many times `quanta` would fit if nothing were in use.
    pub(crate) fn holds(&self, quanta: Quanta) -> u64 {
        match self.per_device {
            unit if unit > 0 && quanta.0 <= unit => (unit / quanta.0).saturating_mul(self.devices.len() as u64),
            _ => self.capacity / quanta.0,
        }
    }

    /// The devices that a request for `quanta` would get: the fullest one that it fits into, or the first ones that are
    /// not in use. `None` if it does not fit; an empty set for kinds without devices.
    pub fn choose_devices(&self, quanta: Quanta) -> Option<u64> {
        if quanta.0 > self.free() {
            return None;
        }
        if self.per_device == 0 {
            return Some(0);
        }
        if quanta.0 <= self.per_device {
            let room = |used: u64| self.per_device - used;
            let fitting = self.devices.iter().enumerate().filter(|(_, used)| room(**used) >= quanta.0);
            let (index, _) = fitting.min_by_key(|(index, used)| (room(**used), *index))?;
            return Some(1 << index);
        }
        let wanted = usize::try_from(quanta.0 / self.per_device).ok()?;
        let whole = self.devices.iter().enumerate().filter(|(_, used)| **used == 0).map(|(index, _)| index);
        let (count, set) = whole.take(wanted).fold((0, 0), |(count, set), index| (count + 1, set | 1 << index));
        (count == wanted).then_some(set)
    }

    /// Whether these devices exist and have room for `quanta`, spread evenly.
    pub(crate) fn can_occupy_devices(&self, devices: u64, quanta: Quanta) -> bool {
        if self.per_device == 0 {
            return true;
        }
        let each = quanta.0 / u64::from(devices.count_ones().max(1));
        let mut wanted = self.devices.iter().enumerate().filter(|(index, _)| devices >> index & 1 == 1);
        self.has_devices(devices) && wanted.all(|(_, used)| used.saturating_add(each) <= self.per_device)
    }

    /// Whether the node has these devices of the class; none where the class is not divided into devices.
    pub(crate) fn has_devices(&self, devices: u64) -> bool {
        let count = u32::try_from(self.devices.len()).expect("at most 64 devices");
        if self.per_device == 0 { devices == 0 } else { devices.checked_shr(count).unwrap_or(0) == 0 }
    }

    /// Moves `quanta` on `devices` in or out of use.
    pub(crate) fn occupy_devices(&mut self, devices: u64, quanta: Quanta, taken: bool) {
        if self.per_device == 0 {
            return;
        }
        let each = quanta.0 / u64::from(devices.count_ones().max(1));
        let mut rest = devices;
        while rest != 0 {
            let used = &mut self.devices[rest.trailing_zeros() as usize];
            *used = if taken { *used + each } else { *used - each };
            assert!(*used <= self.per_device, "more of a device is in use than it has");
            rest &= rest - 1;
        }
    }
}

/// The registered agent of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The number of this registration with the node, counted from one.
    pub generation: u64,
    /// Identifies the agent process; chosen by the agent.
    pub instance: u128,
}

/// The condition of a node, as last reported by its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    pub load: Level,
    pub errors: Level,
    pub throttled: bool,
}

impl Default for Condition {
    fn default() -> Self {
        Self { load: Level::Normal, errors: Level::Normal, throttled: false }
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub number: NodeNo,
    pub name: Name,
    pub pool: PoolNo,
    pub rack: Option<Name>,
    pub zone: Option<Name>,
    pub labels: Vec<(Name, Name)>,
    pub teardown: TeardownMode,
    /// Drained by an operator; see [`Self::is_drained`].
    pub drained: bool,
    /// Why it was drained, in the words of the operator.
    pub drain_reason: Option<Name>,
    pub lost: bool,
    pub windows: NodeWindows,
    pub custody: Custody,
    pub agent: Option<Agent>,
    /// The generation of the last agent that registered; zero if none did. It is kept when an agent is detached.
    pub last_generation: u64,
    pub condition: Condition,
    pub heat: Heat,
    /// Since when it was empty, in the last record that says so.
    pub(crate) empty_noted: Option<Instant>,
    /// The deadline of the last teardown that was not confirmed here.
    pub(crate) fenced_at: Option<Instant>,
    /// When what its claim counts last changed (`claims.rs`).
    pub(crate) claim_counted_since: Instant,
    /// When a lease or a claim last ended here.
    pub(crate) last_end: Instant,
    /// The last record that shows that it was running: a registration, a report or a confirmation of its agent.
    pub last_sign: Instant,
    /// In order of class number.
    pub classes: Vec<NodeClass>,
    /// The number of its leases that are being revoked or torn down.
    pub(crate) ending: u32,
    /// The newest of its leases; its leases are a linked list in the lease table.
    pub(crate) first_lease: u32,
}

impl Node {
    /// Whether it has GPUs, whatever their condition.
    pub(crate) fn has_gpus(&self) -> bool {
        self.classes.iter().any(|class| !class.devices.is_empty())
    }

    pub(crate) fn new(number: NodeNo, name: Name, pool: PoolNo) -> Self {
        Self {
            number,
            name,
            pool,
            rack: None,
            zone: None,
            labels: Vec::new(),
            teardown: TeardownMode::Confirmed,
            drained: false,
            drain_reason: None,
            lost: false,
            windows: NodeWindows::default(),
            custody: Custody::Open,
            agent: None,
            last_generation: 0,
            condition: Condition::default(),
            heat: Heat::NONE,
            empty_noted: None,
            fenced_at: None,
            claim_counted_since: Instant(0),
            last_end: Instant(0),
            last_sign: Instant(0),
            classes: Vec::new(),
            ending: 0,
            first_lease: NONE,
        }
    }

    /// Whether new work that is not sensitive may be placed here.
    pub fn is_available(&self) -> bool {
        self.is_open_to(None)
    }
    /// Whether sensitive work of `claimer`, or ordinary work if there is none, may be placed here.
    pub(crate) fn is_open_to(&self, claimer: Option<Claimer>) -> bool {
        self.is_in_service() && self.custody.is_open_to(claimer)
    }
    pub fn is_in_service(&self) -> bool {
        !self.is_drained() && !self.lost
    }
    pub fn class(&self, class: ClassNo) -> Option<&NodeClass> {
        self.classes.iter().find(|c| c.class == class)
    }
    pub(crate) fn class_mut(&mut self, class: ClassNo) -> &mut NodeClass {
        self.classes.iter_mut().find(|c| c.class == class).expect("a lease's class exists on its node")
    }
    /// For each class with devices: how many devices are partly in use, and what is free on those. This capacity cannot
    /// be given to requests for whole devices.
    pub fn free_in_parts(&self) -> impl Iterator<Item = (ClassNo, u64, u64)> + '_ {
        self.classes.iter().filter(|class| class.per_device > 0).map(|class| {
            let parts = class.devices.iter().filter(|used| **used > 0 && **used < class.per_device);
            let free = parts.clone().map(|used| class.per_device - used).sum();
            (class.class, parts.count() as u64, free)
        })
    }
    /// Whether any of its capacity is reserved for a waiting allocation.
    pub fn is_reserved(&self) -> bool {
        self.classes.iter().any(|class| class.reserved > 0)
    }
    pub fn has_leases(&self) -> bool {
        self.first_lease != NONE
    }

    pub fn split(&self, class: ClassNo) -> CapacitySplit {
        let Some(c) = self.class(class) else { return CapacitySplit::default() };
        if self.lost {
            // All of it, whatever its leases do (SEMANTICS 11).
            return CapacitySplit { offline: c.capacity, ..CapacitySplit::default() };
        }
        let free = c.free();
        // The idle capacity of a claimed node is charged to its claimer, so it does not count as offline.
        let is_usable = matches!(self.custody, Custody::Open | Custody::Claimed(_));
        let (offline, idle) = if self.is_in_service() && is_usable { (0, free) } else { (free, 0) };
        CapacitySplit {
            held: c.held,
            tearing_down: c.tearing_down,
            reserved: c.reserved,
            fenced: c.fenced,
            offline,
            idle,
        }
    }
}
