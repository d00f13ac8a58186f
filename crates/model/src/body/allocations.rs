//! The life of an allocation: one record for each step of it (SEMANTICS 5).

use super::{Leases, Members, Nodes};
use crate::allocation::{AllocationSpec, AttemptEnd, WhenOverQuota};
use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::fields;
use crate::id::{AllocationNo, LeaseNo, NodeNo};
use crate::instant::Span;
use crate::limits::{ALLOCATION_LEASES_MAX, CLASSES_PER_REQUEST_MAX, RESERVATIONS_TAKEN_MAX};
use crate::name::Name;
use crate::policy::{DenyCause, Priority};

use super::admission::Member;

fields! {
    /// An allocation was submitted and waits in the queue. Its number is this record's sequence.
    pub struct AllocationSubmitted { pub spec: AllocationSpec }
    added {
        /// What the request said about exceeded quotas; absent if it left that to the tenant's default.
        1 pub when_over_quota: Option<WhenOverQuota>,
        /// The only node that it may use, if it was requested as a lease on that node.
        2 pub node: Option<NodeNo>,
    }
}
fields! {
    /// An allocation could never start, even on an empty cluster, and was not queued.
    pub struct AllocationDenied {
        pub spec: AllocationSpec,
        pub rules_version: u32,
        pub cause: DenyCause,
    }
    added {
        /// As in `allocation.submitted`.
        1 pub when_over_quota: Option<WhenOverQuota>,
    }
}
fields! {
    /// An attempt starts; its leases are granted in the records that follow.
    pub struct AllocationPlaced {
        pub allocation: AllocationNo,
        /// Counted from one.
        pub attempt: u32,
        pub first_lease: LeaseNo,
        pub leases: u32,
        pub rules_version: u32,
    }
}
fields! {
    /// A staged allocation is now running.
    pub struct AllocationStarted { pub allocation: AllocationNo }
}
fields! {
    pub struct AllocationCheckpointing { pub allocation: AllocationNo }
}
fields! {
    /// The allocation has written a checkpoint from which it can continue.
    pub struct AllocationCheckpointed { pub allocation: AllocationNo, pub bytes: u64, pub took: Span }
}
fields! {
    /// An attempt was interrupted; the allocation has a checkpoint and waits in the queue.
    pub struct AllocationSuspended { pub allocation: AllocationNo, pub end: AttemptEnd }
}
fields! {
    /// An attempt was interrupted; the allocation waits in the queue and will start from the beginning.
    pub struct AllocationRequeued { pub allocation: AllocationNo, pub end: AttemptEnd }
}
fields! {
    pub struct AllocationCompleted {
        pub allocation: AllocationNo,
        pub exit_status: Option<u32>,
        pub storage_written: u64,
    }
}
fields! {
    pub struct AllocationFailed {
        pub allocation: AllocationNo,
        pub end: AttemptEnd,
        pub exit_status: Option<u32>,
        pub storage_written: u64,
    }
}
fields! {
    pub struct AllocationCancelled { pub allocation: AllocationNo }
}
fields! {
    /// A waiting allocation was put on hold: it keeps its place and is not scheduled. A reservation of it is dropped.
    pub struct AllocationHoldSet {
        pub allocation: AllocationNo,
        /// Whether an operator did it; only an operator releases it then.
        pub by_operator: bool,
    }
    added {
        /// The reason that was given.
        1 pub reason: Option<Name>,
    }
}
fields! {
    /// The hold of a waiting allocation was released.
    pub struct AllocationHoldCleared { pub allocation: AllocationNo }
}
fields! {
    /// A waiting allocation asks for something else from now on. A reservation of it is dropped.
    pub struct AllocationChanged { pub allocation: AllocationNo, pub spec: AllocationSpec }
}

/// The node and devices of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaPlacement {
    pub node: NodeNo,
    pub members: Members,
}

impl Field for ReplicaPlacement {
    fn put(&self, out: &mut Vec<u8>) {
        assert!((1..=CLASSES_PER_REQUEST_MAX).contains(&self.members.len()), "a replica of 1 to 16 leases");
        self.node.put(out);
        put_varint(self.members.len() as u64, out);
        for member in &self.members {
            member.class.put(out);
            member.quanta.put(out);
            member.devices.put(out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let node = Field::get(r)?;
        let n = r.count(CLASSES_PER_REQUEST_MAX)?;
        if n == 0 {
            return Err(DecodeError::Forbidden("a replica of nothing"));
        }
        let mut members = Members::new();
        for _ in 0..n {
            members.push(Member { class: Field::get(r)?, quanta: Field::get(r)?, devices: Field::get(r)? });
        }
        Ok(Self { node, members })
    }
}

/// A preemption decision (SEMANTICS 5). The revocations of the victims refer to its sequence. What they free, and what
/// is free already, is reserved for the allocation until it is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionDecided {
    /// The allocation for which leases are evicted.
    pub allocation: AllocationNo,
    pub priority: Priority,
    pub rules_version: u32,
    /// One per replica, in the order of placement.
    pub places: Vec<ReplicaPlacement>,
    pub victims: Leases,
}

impl Field for PreemptionDecided {
    fn put(&self, out: &mut Vec<u8>) {
        assert!((1..=ALLOCATION_LEASES_MAX).contains(&self.places.len()), "a gang of at most 1024");
        self.allocation.put(out);
        self.priority.put(out);
        self.rules_version.put(out);
        put_varint(self.places.len() as u64, out);
        self.places.iter().for_each(|place| place.put(out));
        self.victims.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (allocation, priority, rules_version) = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
        let n = r.count(ALLOCATION_LEASES_MAX)?;
        if n == 0 {
            return Err(DecodeError::Forbidden("an eviction for nothing"));
        }
        let places = (0..n).map(|_| ReplicaPlacement::get(r)).collect::<Result<_, _>>()?;
        Ok(Self { allocation, priority, rules_version, places, victims: Field::get(r)? })
    }
}

fields! {
    /// A reservation was dropped, because a victim was fenced or a node became unavailable.
    pub struct ReservationDropped { pub allocation: AllocationNo }
}

/// An allocation took over reservations of lower priority, and evicted what was still missing (SEMANTICS 11). It waits
/// for the teardown of its victims and of the leases that those reservations waited for; their holders wait in the
/// queue again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationTakenOver {
    /// The allocation that takes over.
    pub allocation: AllocationNo,
    pub priority: Priority,
    pub rules_version: u32,
    /// One per replica, in the order of placement.
    pub places: Vec<ReplicaPlacement>,
    /// Leases that are evicted by this decision; possibly none.
    pub victims: Leases,
    /// Leases that were ending already; possibly none.
    pub awaited: Leases,
    /// The allocations whose reservations are dropped, by number.
    pub dropped: Vec<AllocationNo>,
}

impl Field for ReservationTakenOver {
    fn put(&self, out: &mut Vec<u8>) {
        assert!((1..=ALLOCATION_LEASES_MAX).contains(&self.places.len()), "a gang of at most 1024");
        assert!((1..=RESERVATIONS_TAKEN_MAX).contains(&self.dropped.len()), "at least one reservation is taken over");
        self.allocation.put(out);
        self.priority.put(out);
        self.rules_version.put(out);
        put_varint(self.places.len() as u64, out);
        self.places.iter().for_each(|place| place.put(out));
        self.victims.put_any(out);
        self.awaited.put_any(out);
        put_varint(self.dropped.len() as u64, out);
        let mut next = 0;
        for dropped in &self.dropped {
            assert!(dropped.0 >= next, "allocation numbers in a record increase");
            put_varint(dropped.0 - next, out);
            next = dropped.0.saturating_add(1);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (allocation, priority, rules_version) = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
        let n = r.count(ALLOCATION_LEASES_MAX)?;
        if n == 0 {
            return Err(DecodeError::Forbidden("a reservation of nothing"));
        }
        let places = (0..n).map(|_| ReplicaPlacement::get(r)).collect::<Result<_, _>>()?;
        let (victims, awaited) = (Leases::get_any(r)?, Leases::get_any(r)?);
        let n = r.count(RESERVATIONS_TAKEN_MAX)?;
        if n == 0 {
            return Err(DecodeError::Forbidden("no reservation that is taken over"));
        }
        let (mut dropped, mut next) = (Vec::with_capacity(n), Some(0u64));
        for _ in 0..n {
            let step = r.varint()?;
            let number = next.and_then(|next| next.checked_add(step)).ok_or(DecodeError::BadInteger)?;
            dropped.push(AllocationNo(number));
            next = number.checked_add(1);
        }
        Ok(Self { allocation, priority, rules_version, places, victims, awaited, dropped })
    }
}

/// The head of a line has waited too long, and is protected on these nodes (SEMANTICS 11): nothing of equal or lower
/// priority starts there unless it is certain to end before the head can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadProtected {
    pub allocation: AllocationNo,
    pub rules_version: u32,
    /// At most one for each replica.
    pub nodes: Nodes,
}

impl Field for HeadProtected {
    fn put(&self, out: &mut Vec<u8>) {
        self.allocation.put(out);
        self.rules_version.put(out);
        self.nodes.put_up_to(ALLOCATION_LEASES_MAX, out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (allocation, rules_version) = (Field::get(r)?, Field::get(r)?);
        Ok(Self { allocation, rules_version, nodes: Nodes::get_up_to(ALLOCATION_LEASES_MAX, r)? })
    }
}
