//! What is not open any more, kept where usage is computed: leases that were closed and claims that were released since
//! the start, and the usage that was reported.

use crate::leases::Leases;
use crate::list::{OpenClaim, OpenLease};
use crate::reported::Reported;
use leasehold_model::{Instant, LeaseNo, NodeNo};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The first instant of the month: what was closed before it is not known here.
    start: Instant,
    pub(crate) leases: Leases,
    /// When they were closed.
    pub(crate) closed_at: BTreeMap<LeaseNo, Instant>,
    /// Released claims, with the instant up to which they are billed.
    pub(crate) claims: Vec<(OpenClaim, Instant)>,
    pub(crate) reported: Reported,
    /// Whether a record changed what something costs that had ended before the start.
    pub(crate) unknown: bool,
}

impl Kept {
    pub(crate) fn since(start: Instant) -> Self {
        Self {
            start,
            leases: Leases::default(),
            closed_at: BTreeMap::new(),
            claims: Vec::new(),
            reported: Reported::default(),
            unknown: false,
        }
    }

    pub(crate) fn closed(&mut self, lease: OpenLease, at: Instant) {
        self.closed_at.insert(lease.lease, at);
        self.leases.add(&lease);
    }

    pub(crate) fn correct_end(&mut self, lease: LeaseNo, last_seen: Instant) {
        match self.leases.get_mut(lease) {
            Some(lease) => lease.correct_end(last_seen),
            None => self.unknown = true,
        }
    }

    pub(crate) fn released(&mut self, claim: OpenClaim, at: Instant) {
        self.claims.push((claim, at));
    }

    /// A claimed node was lost before the start. What leases held there then is not known.
    pub(crate) fn loss_reaches(&mut self, last_seen: Instant) {
        self.unknown |= last_seen < self.start;
    }

    pub(crate) fn correct_claim(&mut self, claim: u64, node: NodeNo, last_seen: Instant) {
        self.loss_reaches(last_seen);
        match self.claims.iter_mut().find(|(ended, _)| (ended.claim, ended.node) == (claim, node)) {
            Some((ended, to)) => *to = (*to).min(last_seen.max(ended.from)),
            None => self.unknown = true,
        }
    }
}
