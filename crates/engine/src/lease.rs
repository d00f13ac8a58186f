//! Live leases: everything between the grant and the confirmed teardown.

use crate::index::Index;
use crate::timer::{Entry, TimerKind};
use leasehold_model::{
    AllocationNo, ClassNo, Instant, LeaseNo, NodeNo, PoolNo, Priority, ProjectNo, Quanta, Span, TenantNo, UserNo, words,
};

words! {
    /// Where a lease is in its life (SEMANTICS 3). A closed lease is no longer kept.
    pub enum Phase {
        Active = 1 "active",
        /// Revoked, within grace: still held and billed.
        Revoking = 2 "revoking",
        /// Given back; teardown is not confirmed.
        Releasing = 3 "releasing",
        /// The deadline passed; teardown is not confirmed.
        Expired = 4 "expired",
        /// Revoked and grace is over; teardown is not confirmed.
        TearingDown = 5 "tearing_down",
        /// Teardown was not confirmed in time.
        Fenced = 6 "fenced",
    }
}

impl Phase {
    /// Still held by its holder and billed.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Active | Self::Revoking)
    }
    /// Ended, and waiting for the node's word.
    pub const fn is_tearing_down(self) -> bool {
        matches!(self, Self::Releasing | Self::Expired | Self::TearingDown)
    }
}

/// No slot: the end of a chain.
pub(crate) const NONE: u32 = u32::MAX;

/// One lease. Fields are ordered and sized so that a million of them stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub number: LeaseNo,
    /// The first lease of the request it came with.
    pub gang: LeaseNo,
    pub quanta: Quanta,
    /// Which devices, as a bit set.
    pub devices: u64,
    pub granted_at: Instant,
    pub expires_at: Instant,
    /// Where billing stopped; meaningful once it is no longer held.
    pub ended_at: Instant,
    /// When grace or the teardown limit ends; meaningful in those phases.
    pub limit_at: Instant,
    /// The grace of its revocation.
    pub grace: Span,
    /// Up to where activity was reported.
    pub reported_to: Instant,
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub user: Option<UserNo>,
    /// The allocation whose gang it belongs to.
    pub of: Option<AllocationNo>,
    pub node: NodeNo,
    pub pool: PoolNo,
    /// The accounting tag at the grant, by its place in the state's list of tags.
    pub tag: Option<u32>,
    pub class: ClassNo,
    pub gang_len: u8,
    pub phase: Phase,
    pub priority: Priority,
    pub sensitive: bool,
    pub over_soft: bool,
    /// Its gang has several replicas, which may lie on one node.
    pub(crate) crowd: bool,
    /// Neighbours in the list of its node's leases.
    pub(crate) node_next: u32,
    pub(crate) node_prev: u32,
}

impl Lease {
    /// Whether it may fall to one of higher priority, at all.
    pub(crate) fn is_evictable(&self) -> bool {
        self.phase == Phase::Active && !self.sensitive
    }

    /// The instant at which something happens to it by itself.
    pub(crate) fn true_timer(&self) -> Option<Entry> {
        let id = self.number.0;
        match self.phase {
            Phase::Active => Some(Entry::new(self.expires_at, TimerKind::Expiry, id)),
            Phase::Revoking => Some(Entry::new(self.limit_at, TimerKind::Grace, id)),
            Phase::Fenced => None,
            _ => Some(Entry::new(self.limit_at, TimerKind::Teardown, id)),
        }
    }
}

/// Lease numbers are handed out in order: one multiplication scatters them well enough.
fn hash(number: LeaseNo) -> u64 {
    number.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

const CHUNK: usize = 1024;

/// The number of a slot that holds no lease.
const VACANT: LeaseNo = LeaseNo(u64::MAX);

/// Leases by slot, slots by number. Slots live in chunks, so that growth neither copies a million
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
        debug_assert!(self.slot(number).is_none(), "{number} exists twice");
        let slot = if let Some(slot) = self.free.pop() {
            *self.at_mut(slot) = lease;
            slot
        } else {
            if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
                self.chunks.push(Vec::with_capacity(CHUNK));
            }
            let chunks = self.chunks.len();
            let chunk = self.chunks.last_mut().expect("a chunk was just made sure of");
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

    /// Every live lease, in no order that means anything: only for what does not depend on one.
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
