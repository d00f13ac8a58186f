//! Lost nodes (SEMANTICS 11): what ended on a node after it was last seen is billed up to that instant only, and records
//! name all of it. Until then the loss is open.

use crate::claim::Claim;
use crate::command::Command;
use crate::foretell::{Foretold, Told};
use crate::holder::Holder;
use crate::lease::Lease;
use crate::oracle::Oracle;
use crate::violation::{Broken, Checked, demand, found};
use crate::world::World;
use leasehold_model::body::{BelongsTo, ClaimEndCorrected, EndsCorrected, LossSettled, NodeLost};
use leasehold_model::limits::LEASES_PER_RECORD_MAX;
use leasehold_model::{Identity, Instant, LeaseNo, NodeNo, ProjectNo, Record, TenantNo, UserNo};
use std::collections::BTreeSet;

/// A loss after which something is still to be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) node: NodeNo,
    pub(crate) last_seen: Instant,
    /// What is still to be named: leases, and claims by the sequences of their records.
    leases: BTreeSet<LeaseNo>,
    claims: BTreeSet<u64>,
}

/// A lease that ended after its node was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedLease {
    pub lease: LeaseNo,
    pub identity: Identity,
    pub belongs_to: BelongsTo,
}

/// What is still to be named after a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenLoss {
    /// The sequence of the record that declared the node lost.
    pub loss: u64,
    pub node: NodeNo,
    pub last_seen: Instant,
    pub leases: Vec<EndedLease>,
    /// The sequence of each claim, and the claimer.
    pub claims: Vec<(u64, (TenantNo, ProjectNo, UserNo))>,
}

impl Oracle {
    /// The open losses, in order of their records.
    pub fn open_losses(&self) -> Vec<OpenLoss> {
        let world = &self.world;
        let open = |(number, loss): (&u64, &Loss)| {
            let lease = |number: LeaseNo| {
                let (identity, belongs_to) = world.lease(number).expect("it ended there").holder();
                EndedLease { lease: number, identity, belongs_to }
            };
            let claim = |sequence: u64| {
                let found = world.claims.iter().find(|claim| claim.sequence == sequence && claim.node == loss.node);
                let claim = found.expect("it ended there");
                (sequence, (claim.tenant, claim.project, claim.user))
            };
            OpenLoss {
                loss: *number,
                node: loss.node,
                last_seen: loss.last_seen,
                leases: loss.leases.iter().copied().map(lease).collect(),
                claims: loss.claims.iter().copied().map(claim).collect(),
            }
        };
        world.losses.iter().map(open).collect()
    }
}

impl World {
    /// The node, or somebody in its place, showed that it lives.
    pub(crate) fn shows_life(&mut self, number: NodeNo, stamp: Instant) {
        self.nodes.get_mut(&number).expect("it was looked up before").last_sign = Some(stamp);
    }

    /// Why a node cannot be declared lost; all reasons.
    fn faults_of_loss(&self, number: NodeNo, last_seen: Instant, now: Instant) -> Vec<&'static str> {
        let Some(node) = self.nodes.get(&number) else { return vec!["unknown_node"] };
        let seen_since = self.is_by_rules_4() && node.last_sign.is_some_and(|sign| last_seen < sign);
        let faults =
            [(node.lost, "node_already"), (last_seen > now, "last_seen_in_future"), (seen_since, "seen_since")];
        faults.into_iter().filter(|(wrong, _)| *wrong).map(|(_, code)| code).collect()
    }

    pub(crate) fn foretell_loss(&self, node: NodeNo, last_seen: Instant, now: Instant) -> Told {
        match self.faults_of_loss(node, last_seen, now)[..] {
            [] => Ok(Foretold::Stands),
            [fault] => Err(fault),
            _ => Ok(Foretold::Faulty),
        }
    }

    pub(crate) fn node_lost(&mut self, record: &Record, lost: &NodeLost) -> Checked {
        let (number, last_seen, stamp) = (lost.node, lost.last_seen, record.stamp);
        if let Some(fault) = self.faults_of_loss(number, last_seen, stamp).first() {
            let rule = match *fault {
                "unknown_node" => "unknown-node",
                "node_already" => "node-already",
                "seen_since" => "seen-since",
                _ => "last-seen",
            };
            let detail = format!("{number} was last seen at {last_seen}, says a record of {stamp}");
            return Err(Broken { rule, detail });
        }
        self.nodes.get_mut(&number).expect("it is known").lost = true;
        // The loss heats the node.
        self.heats(number, 500, stamp);
        self.report_falls(number, stamp);
        let mut loss = Loss { node: number, last_seen, leases: BTreeSet::new(), claims: BTreeSet::new() };
        // Even if nothing that was billed ended: then only its end is recorded.
        let is_after = |at: Option<Instant>| at.is_some_and(|at| at > last_seen);
        let ended = self.leases.iter().any(|lease| lease.node == number && is_after(lease.end_effective));
        let released = self.claims.iter().any(|claim| claim.node == number && is_after(claim.ended.map(|(at, _)| at)));
        if (ended || released) && self.is_by_rules_4() {
            loss.leases = self.leases_ended_after(&loss);
            loss.claims = self.claims_ended_after(&loss);
            self.losses.insert(record.sequence, loss);
        }
        Ok(())
    }

    /// The leases that had ended on the node after it was last seen, and are billed for time after that.
    fn leases_ended_after(&self, loss: &Loss) -> BTreeSet<LeaseNo> {
        let ended = |lease: &&Lease| {
            let end = lease.billed_to.or(lease.ended_at);
            lease.node == loss.node && end.is_some_and(|end| end > loss.last_seen.max(lease.granted_at))
        };
        self.leases.iter().filter(ended).map(|lease| lease.number).collect()
    }

    fn claims_ended_after(&self, loss: &Loss) -> BTreeSet<u64> {
        let ended = |claim: &&Claim| {
            let end = claim.billed_to.or(claim.ended.map(|(at, _)| at));
            claim.node == loss.node && end.is_some_and(|end| end > loss.last_seen.max(claim.since))
        };
        self.claims.iter().filter(ended).map(|claim| claim.sequence).collect()
    }

    /// Leases that live on other nodes, are held or were never granted are refused.
    pub(crate) fn foretell_settling(&self, loss: u64, leases: &[LeaseNo]) -> Told {
        let node = self.losses.get(&loss).ok_or("no_open_loss")?.node;
        let is_elsewhere = |number: &LeaseNo| match self.lease(*number) {
            None => true,
            Some(lease) => lease.phase.is_held() || lease.phase.takes_capacity() && lease.node != node,
        };
        if leases.iter().any(is_elsewhere) { Err("lease_elsewhere") } else { Ok(Foretold::Stands) }
    }

    /// Leases are named for each holder, as many as fit into a record.
    pub(crate) fn ends_corrected(
        &mut self,
        command: &mut Command,
        record: &Record,
        corrected: &EndsCorrected,
    ) -> Checked {
        let (number, named) = (corrected.loss, &corrected.leases.0);
        let loss = found!(self.losses.get(&number), "loss", "record {number} is no open loss");
        let count = named.len();
        self.check_leases(record, named)?;
        demand!(count <= LEASES_PER_RECORD_MAX, "leases", "{count} leases in one record");
        let wrong = named.iter().find(|lease| !loss.leases.contains(lease));
        demand!(wrong.is_none(), "loss", "{wrong:?} is not one of {:?}, which are still to be named", loss.leases);
        self.check_carries(record, named, Some(corrected.belongs_to))?;
        let holder: Holder = (Identity { token: None, ..record.identity.clone() }, corrected.belongs_to);
        let before = command.corrected.iter().rfind(|(of, _)| *of == holder);
        let is_full = before.is_none_or(|(_, count)| *count == LEASES_PER_RECORD_MAX);
        demand!(is_full, "loss", "leases of one holder belong into one record: {holder:?}");
        command.corrected.push((holder, count));
        let last_seen = loss.last_seen;
        self.losses.get_mut(&number).expect("just found").leases.retain(|lease| !named.contains(lease));
        for lease in named {
            let lease = self.lease_mut(*lease);
            let end = last_seen.max(lease.granted_at);
            lease.billed_to = Some(lease.billed_to.map_or(end, |before| before.min(end)));
        }
        Ok(())
    }

    /// The record carries the identity of the former claimer.
    pub(crate) fn claim_end_corrected(&mut self, record: &Record, corrected: &ClaimEndCorrected) -> Checked {
        let ClaimEndCorrected { loss: number, node, claim } = *corrected;
        let loss = found!(self.losses.get(&number), "loss", "record {number} is no open loss");
        demand!(loss.node == node, "loss", "record {number} is about {}, not {node}", loss.node);
        let open = &loss.claims;
        demand!(open.contains(&claim), "loss", "record {claim} is not one of {open:?}, which are still to be named");
        let last_seen = loss.last_seen;
        let found = self.claims.iter_mut().find(|found| found.sequence == claim && found.node == node);
        let found = found!(found, "loss", "record {claim} did not claim {node}");
        let of = &record.identity;
        let own = (of.tenant, of.project, of.user) == (Some(found.tenant), Some(found.project), Some(found.user));
        demand!(own, "identity", "{node} was claimed by {}, the record is of {of:?}", found.tenant);
        let end = last_seen.max(found.since);
        found.billed_to = Some(found.billed_to.map_or(end, |before| before.min(end)));
        self.losses.get_mut(&number).expect("just found").claims.remove(&claim);
        Ok(())
    }

    /// Everything that ended on the node after it was last seen must have been named.
    pub(crate) fn loss_settled(&mut self, settled: &LossSettled) -> Checked {
        let number = settled.loss;
        let loss = found!(self.losses.remove(&number), "loss", "record {number} is no open loss");
        demand!(loss.node == settled.node, "loss", "record {number} is about {}, not {}", loss.node, settled.node);
        let Loss { leases, claims, .. } = loss;
        demand!(leases.is_empty() && claims.is_empty(), "loss", "{leases:?} and claims {claims:?} were not named");
        Ok(())
    }
}
