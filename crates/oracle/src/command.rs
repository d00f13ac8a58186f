//! What the records of one command owe each other: a command is one append, and some of its
//! duties show only when its last record is known.

use crate::acts::Line;
use crate::lease::{Lease, Phase};
use crate::violation::{Checked, demand};
use crate::world::World;
use leasehold_model::{AllocationNo, Instant, LeaseNo, NodeNo, Record, TenantNo, TokenNo};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Whose idempotency key: it belongs to (tenant, principal) (SEMANTICS 4).
pub(crate) type ClaimKey = (Option<TenantNo>, Option<TokenNo>, Vec<u8>);

pub(crate) fn claim_of(record: &Record) -> Option<ClaimKey> {
    let claim = record.idempotency.as_ref()?;
    Some((claim.owner, record.identity.token, claim.key.to_vec()))
}

/// The command whose records are being read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Command {
    /// Its first record was seen to come after every due timer.
    pub(crate) timers_checked: bool,
    /// It declares this node lost, last seen then.
    pub(crate) lost: Option<(NodeNo, Instant)>,
    /// Gangs of which it revoked a member.
    pub(crate) revoked_gangs: BTreeSet<LeaseNo>,
    /// Leases it ended on nodes without an agent, and has not closed yet.
    pub(crate) owed_closure: BTreeSet<LeaseNo>,
    pub(crate) claim: Option<ClaimKey>,
    /// Allocations of which it revoked a lease.
    pub(crate) revoked_of: BTreeSet<AllocationNo>,
    /// The records that must follow, word for word.
    pub(crate) script: VecDeque<Line>,
}

impl World {
    /// Nothing is left open by a command that has said its last.
    pub(crate) fn check_settled(&self, command: &Command) -> Checked {
        // Its leases end as node_lost (SEMANTICS 3).
        if let Some((node, _)) = command.lost {
            let held = self.leases.iter().find(|lease| lease.node == node && lease.phase.is_held());
            demand!(held.is_none(), "lost-unfinished", "{node} is lost and still holds {held:?}");
        }
        // An involuntary end of one member of a gang revokes the others (SEMANTICS 3).
        let spared = self.leases.iter().find(|l| l.phase == Phase::Active && command.revoked_gangs.contains(&l.gang));
        demand!(spared.is_none(), "gang-split", "the rest of its gang was revoked, not {spared:?}");
        let spared = |of: &&AllocationNo| self.allocations.get(of).is_some_and(|of| !self.active_of(of).is_empty());
        let spared = command.revoked_of.iter().find(spared);
        demand!(spared.is_none(), "gang-split", "a part of {spared:?} was revoked, and not the rest");
        // What is over holds nothing.
        let holds = |l: &&Lease| l.phase.is_held() && l.of.is_some_and(|of| self.allocations[&of].state.is_over());
        let holds = self.leases.iter().find(holds);
        demand!(holds.is_none(), "over-and-held", "{holds:?}");
        demand!(command.script.is_empty(), "follows", "expected {:?}", command.script);
        let owed = &command.owed_closure;
        demand!(owed.is_empty(), "closed", "on nodes without an agent, and not closed: {owed:?}");
        Ok(())
    }
}

/// When a key was claimed, and for how long it was to live.
#[derive(Clone, Copy, Debug)]
struct Claim {
    stamp: Instant,
    window: leasehold_model::Span,
}

/// Every idempotency key ever claimed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(BTreeMap<ClaimKey, Claim>);

impl Claims {
    /// A key lives for the window, by stamp; within it, it is answered again, not claimed again.
    pub(crate) fn check(&self, record: &Record, command: &Command) -> Checked {
        let Some(key) = claim_of(record) else { return Ok(()) };
        let same_command = record.continues && command.claim.as_ref() == Some(&key);
        if let Some(claim) = self.0.get(&key).filter(|_| !same_command) {
            let age = record.stamp.since(claim.stamp);
            demand!(age >= claim.window, "idempotency", "{key:?} was claimed at {}", claim.stamp);
        }
        Ok(())
    }

    pub(crate) fn claim(&mut self, record: &Record, window: leasehold_model::Span) {
        if let Some(key) = claim_of(record) {
            self.0.insert(key, Claim { stamp: record.stamp, window });
        }
    }

    /// A shorter window forgets earlier; a longer one cannot bring back what may be forgotten.
    pub(crate) fn shorten(&mut self, window: leasehold_model::Span) {
        for claim in self.0.values_mut() {
            claim.window = claim.window.min(window);
        }
    }
}
