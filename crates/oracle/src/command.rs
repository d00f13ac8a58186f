//! Rules over all records of one command. Some of them can be checked only after its last record.

use crate::acts::Line;
use crate::holder::Holder;
use crate::lease::{Lease, Phase};
use crate::prepaid::States;
use crate::violation::{Checked, demand};
use crate::world::World;
use leasehold_model::body::EntitlementWarned;
use leasehold_model::policy::TeardownCause;
use leasehold_model::{AllocationNo, Body, Instant, LeaseNo, NodeNo, Record, Span, TenantNo, TokenNo};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An idempotency key with its owner: keys belong to (tenant, principal) (SEMANTICS 4).
pub(crate) type IdempotencyKey = (Option<TenantNo>, Option<TokenNo>, Vec<u8>);

pub(crate) fn key_of(record: &Record) -> Option<IdempotencyKey> {
    let sent = record.idempotency.as_ref()?;
    Some((sent.owner, record.identity.token, sent.key.to_vec()))
}

/// The command whose records are being read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Command {
    /// It was checked that no timer was due before its first record.
    pub(crate) timers_checked: bool,
    /// The node that it declares lost, and when the node was last seen.
    pub(crate) lost: Option<(NodeNo, Instant)>,
    /// Gangs of which it revoked a member.
    pub(crate) revoked_gangs: BTreeSet<LeaseNo>,
    /// Leases that it ended on nodes without an agent and must close as well.
    pub(crate) must_close: BTreeSet<LeaseNo>,
    pub(crate) key: Option<IdempotencyKey>,
    /// Allocations of which it revoked a lease.
    pub(crate) revoked_of: BTreeSet<AllocationNo>,
    /// Whose leases it named as ended after a loss, and how many in the last record.
    pub(crate) corrected: Vec<(Holder, usize)>,
    /// The records that must follow, exactly.
    pub(crate) script: VecDeque<Line>,
    /// When its timer was due, if it applies one.
    pub(crate) timer: Option<Instant>,
    /// The stamp of a command that is no timer, and the states of prepaid credit before it.
    pub(crate) prepaid: Option<(Instant, States)>,
    /// Warnings about entitlements that are still to follow, in any order.
    pub(crate) warnings: Vec<EntitlementWarned>,
}

impl World {
    /// Checks a command after its last record.
    pub(crate) fn check_settled(&self, command: &Command) -> Checked {
        // Its leases end as node_lost (SEMANTICS 3).
        if let Some((node, _)) = command.lost {
            let held = self.leases.iter().find(|lease| lease.node == node && lease.phase.is_held());
            demand!(held.is_none(), "lost-unfinished", "{node} is lost and still holds {held:?}");
        }
        // An involuntary end of one member of a gang revokes the others (SEMANTICS 3).
        let spared = self.leases.iter().find(|l| l.phase == Phase::Active && command.revoked_gangs.contains(&l.gang));
        demand!(spared.is_none(), "gang-split", "the rest of its gang was revoked, but not {spared:?}");
        let spared = |of: &&AllocationNo| self.allocations.get(of).is_some_and(|of| !self.active_of(of).is_empty());
        let spared = command.revoked_of.iter().find(spared);
        demand!(spared.is_none(), "gang-split", "only a part of {spared:?} was revoked");
        // An allocation that has ended holds no leases.
        let holds = |l: &&Lease| l.phase.is_held() && l.of.is_some_and(|of| self.allocations[&of].state.is_over());
        let holds = self.leases.iter().find(holds);
        demand!(holds.is_none(), "over-and-held", "{holds:?}");
        demand!(command.script.is_empty(), "follows", "expected {:?}", command.script);
        demand!(command.warnings.is_empty(), "follows", "expected {:?}", command.warnings);
        self.check_states_said(command)?;
        let open = &command.must_close;
        demand!(open.is_empty(), "closed", "ended on nodes without an agent, but not closed: {open:?}");
        Ok(())
    }
}

/// When a key was used, and for how long it is remembered.
#[derive(Clone, Copy, Debug)]
struct RememberedKey {
    stamp: Instant,
    window: Span,
}

/// A holder's renewal, release, readiness or activity report.
fn is_idempotent(record: &Record) -> bool {
    let ready = |cause| cause == TeardownCause::Ready;
    matches!(record.body, Body::Renewed(_) | Body::Released(_) | Body::ActivityReported(_))
        || matches!(&record.body, Body::TeardownStarted(started) if ready(started.cause))
}

/// Every idempotency key that was ever used.
#[derive(Clone, Debug, Default)]
pub(crate) struct RememberedKeys(BTreeMap<IdempotencyKey, RememberedKey>);

impl RememberedKeys {
    /// A key is remembered for the window, by stamp. Within it a repeated request gets the first answer and no record.
    pub(crate) fn check(&self, record: &Record, command: &Command) -> Checked {
        let Some(key) = key_of(record) else { return Ok(()) };
        let same_command = record.continues && command.key.as_ref() == Some(&key);
        if let Some(known) = self.0.get(&key).filter(|_| !same_command) {
            let age = record.stamp.since(known.stamp);
            demand!(age >= known.window, "idempotency", "{key:?} was already used at {}", known.stamp);
        }
        Ok(())
    }

    /// `rules_version` is that of the process: since version 4, keys of commands that are idempotent by nature are
    /// remembered for ten minutes (SEMANTICS 11).
    pub(crate) fn remember(&mut self, record: &Record, window: Span, rules_version: u32) {
        if let Some(key) = key_of(record) {
            let brief = rules_version >= 4 && is_idempotent(record);
            let window = if brief { window.min(Span::from_secs(600)) } else { window };
            self.0.insert(key, RememberedKey { stamp: record.stamp, window });
        }
    }

    /// A shorter window applies to known keys at once; a longer one does not, because a key may be forgotten already.
    pub(crate) fn shorten(&mut self, window: Span) {
        for known in self.0.values_mut() {
            known.window = known.window.min(window);
        }
    }
}
