//! Capacity that is reserved while victims are torn down (SEMANTICS 3), recomputed after each record from the open
//! leases, the capacity of the nodes and the preemption decisions.
//!
//! A decision contains the placement of its replicas. Everything that is free there is reserved, up to what the
//! replica needs of each device, for the lower number first. Reserved capacity stays reserved.

use super::Accounts;
use super::capacity::NodeEvent;
use leasehold_model::body::{Body, Member, ReplicaPlacement};
use leasehold_model::{AllocationNo, ClassNo, Instant, NodeNo, Record};
use std::collections::BTreeMap;

/// A member of a replica: its node and devices, the quanta that it needs of each, and the quanta that are reserved.
#[derive(Clone, Debug)]
pub(super) struct Share {
    node: NodeNo,
    class: ClassNo,
    devices: Vec<usize>,
    each: u64,
    has: Vec<u64>,
}

/// The reserved quanta of a class on a node, from an instant on.
pub(super) type Level = (Instant, NodeNo, ClassNo, u64);

fn share(node: NodeNo, member: &Member) -> Share {
    let devices: Vec<usize> = (0..64).filter(|index| member.devices >> index & 1 == 1).collect();
    let count = devices.len().max(1);
    let each = member.quanta.0 / count as u64;
    Share { node, class: member.class, devices, each, has: vec![0; count] }
}

impl Accounts {
    /// Updates the reservations after a record was applied.
    pub(super) fn take_reservations(&mut self, record: &Record) {
        let shares = |places: &[ReplicaPlacement]| {
            places.iter().flat_map(|place| place.members.iter().map(|member| share(place.node, member))).collect()
        };
        if let Body::PreemptionDecided(decided) = &record.body {
            self.waiting.insert(decided.allocation, shares(&decided.places));
        } else if let Body::ReservationTakenOver(taken) = &record.body {
            self.waiting.retain(|number, _| !taken.dropped.contains(number));
            self.waiting.insert(taken.allocation, shares(&taken.places));
        } else if let Body::ReservationDropped(dropped) = &record.body {
            self.waiting.remove(&dropped.allocation);
        } else if let Body::AllocationCancelled(gone) = &record.body {
            self.waiting.remove(&gone.allocation);
        } else if let Body::AllocationPlaced(placed) = &record.body {
            self.waiting.remove(&placed.allocation);
        } else if let Body::AllocationHoldSet(held) = &record.body {
            self.waiting.remove(&held.allocation);
        } else if let Body::AllocationChanged(changed) = &record.body {
            self.waiting.remove(&changed.allocation);
        }
        // The capacity that was reserved for a placed allocation goes to its leases, which are granted next.
        if !matches!(record.body, Body::AllocationPlaced(_) | Body::Granted(_)) {
            let numbers: Vec<AllocationNo> = self.waiting.keys().copied().collect();
            for number in numbers {
                for place in 0..self.waiting[&number].len() {
                    let room = self.room_for(&self.waiting[&number][place]);
                    let share = &mut self.waiting.get_mut(&number).expect("it waits")[place];
                    for (has, room) in share.has.iter_mut().zip(room) {
                        *has += room.min(share.each - *has);
                    }
                }
            }
        }
        let mut now: BTreeMap<(NodeNo, ClassNo), u64> = BTreeMap::new();
        for share in self.waiting.values().flatten() {
            *now.entry((share.node, share.class)).or_default() += share.has.iter().sum::<u64>();
        }
        let mut known: BTreeMap<(NodeNo, ClassNo), u64> = BTreeMap::new();
        for (_, node, class, level) in &self.reserved {
            known.insert((*node, *class), *level);
        }
        for place in known.keys().chain(now.keys()).copied().collect::<std::collections::BTreeSet<_>>() {
            let level = now.get(&place).copied().unwrap_or(0);
            if known.get(&place).copied().unwrap_or(0) != level {
                self.reserved.push((record.stamp, place.0, place.1, level));
            }
        }
    }

    /// Free quanta for a member: of each of its devices, or the total for kinds without devices.
    fn room_for(&self, share: &Share) -> Vec<u64> {
        let mut puts =
            self.nodes.iter().filter(|(_, node, _)| *node == share.node).filter_map(|(_, _, event)| match event {
                NodeEvent::Put(put) => Some(Some(put)),
                NodeEvent::Deleted => Some(None),
                NodeEvent::Drained(_) | NodeEvent::InWindow(_) | NodeEvent::Lost(_) | NodeEvent::Unclean(_) => None,
            });
        let put = puts.next_back().flatten();
        let capacity = put.and_then(|put| put.capacity.iter().find(|(class, _)| *class == share.class));
        let Some((_, capacity)) = capacity else { return vec![0; share.has.len()] };
        let open = self
            .tenures
            .values()
            .filter(|tenure| tenure.node == share.node && tenure.class == share.class && tenure.closed_at.is_none());
        let kept = self.waiting.values().flatten().filter(|kept| kept.node == share.node && kept.class == share.class);
        if share.devices.is_empty() {
            let used = open.map(|tenure| tenure.quanta).chain(kept.flat_map(|kept| kept.has.clone())).sum::<u64>();
            return vec![capacity.0.saturating_sub(used)];
        }
        let per_device = self.classes[&share.class].quanta_per_unit;
        let mut used = [0u64; 64];
        for tenure in open {
            let on: Vec<usize> = (0..64).filter(|index| tenure.devices >> index & 1 == 1).collect();
            on.iter().for_each(|index| used[*index] += tenure.quanta / on.len() as u64);
        }
        for kept in kept {
            kept.devices.iter().zip(&kept.has).for_each(|(index, has)| used[*index] += has);
        }
        share.devices.iter().map(|index| per_device.saturating_sub(used[*index])).collect()
    }

    /// The reserved quanta of a class on a node at an instant.
    pub fn reserved_at(&self, node: NodeNo, class: ClassNo, at: Instant) -> u64 {
        let mut here = self.reserved.iter().filter(|(since, on, of, _)| *on == node && *of == class && *since <= at);
        here.next_back().map_or(0, |(.., level)| *level)
    }
}
