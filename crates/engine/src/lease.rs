//! Live leases, from the grant to the confirmed teardown.

use crate::holder::Named;
use crate::index::Fast as Index;
use crate::prefetch::prefetch;
use crate::timer::{Entry, TimerKind};
use leasehold_model::{
    AllocationNo, ClassNo, Instant, LeaseNo, NodeNo, PoolNo, Priority, ProjectNo, Quanta, Span, TenantNo, UserNo, words,
};
use std::sync::Arc;

words! {
    /// The phase of a live lease (SEMANTICS 3). Closed leases are removed from the table.
    pub enum Phase {
        Active = 1 "active",
        /// Revoked, and the grace period is running: still held and billed.
        Revoking = 2 "revoking",
        /// Released by its holder; the teardown is not confirmed.
        Releasing = 3 "releasing",
        /// The deadline has passed; the teardown is not confirmed.
        Expired = 4 "expired",
        /// Revoked, and the grace period is over; the teardown is not confirmed.
        TearingDown = 5 "tearing_down",
        /// The teardown was not confirmed in time.
        Fenced = 6 "fenced",
    }
}

impl Phase {
    /// Whether the lease is still held and billed.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Active | Self::Revoking)
    }
    /// Whether the lease has ended and the node has not yet confirmed the teardown.
    pub const fn is_tearing_down(self) -> bool {
        matches!(self, Self::Releasing | Self::Expired | Self::TearingDown)
    }
}

/// Marks the end of a list of slots.
pub(crate) const NONE: u32 = u32::MAX;

/// One lease. The fields are ordered and sized so that a million leases need little memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub number: LeaseNo,
    /// The first lease of its request.
    pub gang: LeaseNo,
    pub quanta: Quanta,
    /// Its devices, as a bit set.
    pub devices: u64,
    pub granted_at: Instant,
    pub expires_at: Instant,
    /// When billing stopped. Valid once the lease is no longer held.
    pub ended_at: Instant,
    /// The end of the grace period or the teardown deadline. Valid while one of them is running.
    pub limit_at: Instant,
    /// The grace of its revocation.
    pub grace: Span,
    /// The end of the last reported activity.
    pub reported_to: Instant,
    pub tenant: TenantNo,
    pub project: ProjectNo,
    /// Who pays: the project, or the one that lends it the capacity.
    pub payer: ProjectNo,
    pub user: Option<UserNo>,
    /// The allocation whose gang it belongs to.
    pub of: Option<AllocationNo>,
    /// The sequence from which its correlation ID is derived if the caller gave none.
    pub(crate) request: u64,
    pub(crate) named: Option<Arc<Named>>,
    pub node: NodeNo,
    pub pool: PoolNo,
    /// The tenant's accounting tag at the grant, as an index into the state's list of tags.
    pub tag: Option<u32>,
    pub class: ClassNo,
    pub gang_len: u8,
    pub phase: Phase,
    pub priority: Priority,
    pub sensitive: bool,
    pub over_soft: bool,
    /// Whether its core time counts for the fair share: it was granted on a pool without GPUs.
    pub(crate) counts_cores: bool,
    /// Whether its gang has several replicas, which may be on the same node.
    pub(crate) crowd: bool,
    /// Slots of its neighbours in the list of leases on the node.
    pub(crate) node_next: u32,
    pub(crate) node_prev: u32,
}

impl Lease {
    /// Whether a request of higher priority could evict it.
    pub(crate) fn is_evictable(&self) -> bool {
        self.phase == Phase::Active && !self.sensitive
    }

    /// Its timer: the end of the lease, of the grace period or of the teardown deadline.
    pub(crate) fn timer(&self) -> Option<Entry> {
        let id = self.number.0;
        match self.phase {
            Phase::Active => Some(Entry::new(self.expires_at, TimerKind::Expiry, id)),
            Phase::Revoking => Some(Entry::new(self.limit_at, TimerKind::Grace, id)),
            Phase::Fenced => None,
            _ => Some(Entry::new(self.limit_at, TimerKind::Teardown, id)),
        }
    }
}

/// Lease numbers are consecutive, so one multiplication distributes them well enough.
fn hash(number: LeaseNo) -> u64 {
    number.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

const CHUNK: usize = 1024;

/// The number of a slot that holds no lease.
const VACANT: LeaseNo = LeaseNo(u64::MAX);

/// Leases by slot, and slots by lease number. Slots are stored in chunks, so that growing neither copies a million
/// leases nor doubles their memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseTable {
    chunks: Vec<Vec<Lease>>,
    free: Vec<u32>,
    slots: Index,
}

impl LeaseTable {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
    #[inline]
    pub(crate) fn slot(&self, number: LeaseNo) -> Option<u32> {
        self.slots.find(hash(number), |slot| self.at(slot).number == number)
    }
    pub(crate) fn get(&self, number: LeaseNo) -> Option<&Lease> {
        self.slot(number).map(|slot| self.at(slot))
    }
    /// Loads where the index keeps a number.
    pub(crate) fn prefetch_index(&self, number: LeaseNo) {
        self.slots.prefetch(hash(number));
    }
    /// Loads the lease that most likely has this number, and returns its slot.
    pub(crate) fn prefetch(&self, number: LeaseNo) -> u32 {
        let slot = self.slots.likely(hash(number));
        if let Some(lease) = self.chunks.get(slot as usize / CHUNK).and_then(|chunk| chunk.get(slot as usize % CHUNK)) {
            prefetch(lease);
        }
        slot
    }
    pub(crate) fn at(&self, slot: u32) -> &Lease {
        &self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }
    pub(crate) fn at_mut(&mut self, slot: u32) -> &mut Lease {
        &mut self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    pub(crate) fn reserve(&mut self, leases: usize) {
        self.slots.reserve(leases);
    }

    pub(crate) fn insert(&mut self, lease: Lease) -> u32 {
        let number = lease.number;
        debug_assert!(self.slot(number).is_none(), "{number} is in the table already");
        let slot = if let Some(slot) = self.free.pop() {
            *self.at_mut(slot) = lease;
            slot
        } else {
            if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
                self.chunks.push(Vec::with_capacity(CHUNK));
            }
            let chunks = self.chunks.len();
            let chunk = self.chunks.last_mut().expect("a chunk was added if there was none");
            chunk.push(lease);
            u32::try_from((chunks - 1) * CHUNK + chunk.len() - 1).expect("fewer than 2^32 live leases")
        };
        self.slots.insert(hash(number), slot);
        slot
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let number = std::mem::replace(&mut self.at_mut(slot).number, VACANT);
        self.slots.remove(hash(number), slot);
        self.free.push(slot);
    }

    /// Every live lease in arbitrary order: only for work that does not depend on the order.
    pub(crate) fn in_any_order(&self) -> impl Iterator<Item = &Lease> {
        self.chunks.iter().flatten().filter(|lease| lease.number != VACANT)
    }
    /// Every live lease with its slot.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (u32, &Lease)> {
        (0u32..).zip(self.chunks.iter().flatten()).filter(|(_, lease)| lease.number != VACANT)
    }
    pub(crate) fn in_any_order_mut(&mut self) -> impl Iterator<Item = &mut Lease> {
        self.chunks.iter_mut().flatten().filter(|lease| lease.number != VACANT)
    }

    /// Every live lease, in order of its number.
    pub(crate) fn in_order(&self) -> Vec<&Lease> {
        let mut leases: Vec<&Lease> = self.in_any_order().collect();
        leases.sort_unstable_by_key(|lease| lease.number);
        leases
    }
}
