//! Custody of nodes: open, claimed by a user for sensitive work, or offline until it is clean (SEMANTICS 10). Claims
//! are found by examining every node.

use crate::acts::Line;
use crate::allocation::Allocation;
use crate::command::Command;
use crate::foretell::{Caller, Foretold, Told, sealed};
use crate::lease::Lease;
use crate::quota::{Who, has_holder, is_within};
use crate::violation::{Checked, broken, demand, found};
use crate::world::{Node, Quota, World};
use leasehold_model::body::{
    NodeDeleted, NodeQuarantined, NodeResumed, NodeWiped, Nodes, NodesClaimed, NodesReleased, QuarantineCleared,
    SensitiveChanged, UserDeleted, UserPut,
};
use leasehold_model::limits::{NODES_PER_CLAIM_MAX, WIPE_DEADLINE};
use leasehold_model::{
    Body, HolderScope, Instant, LimitKind, Measure, NodeNo, ProjectNo, QuarantineCause, QuotaNo, QuotaScope, Record,
    TenantNo, UserNo,
};
use std::collections::{BTreeMap, BTreeSet};

/// The user whose sensitive work may run on a claimed node.
pub(crate) type Claimer = (TenantNo, UserNo);

/// A claim that has ended: its tenant, project and user, and the sequence of the record that made it.
pub type EndedClaim = (TenantNo, ProjectNo, UserNo, u64);

/// The custody of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Custody {
    Open,
    /// Claimed by a user and charged to a project.
    Claimed {
        tenant: TenantNo,
        project: ProjectNo,
        user: UserNo,
        since: Instant,
        /// The sequence of the record that claimed it.
        sequence: u64,
        /// How long the claimer expects to keep it.
        until: Option<Instant>,
    },
    /// Released; the wipe must be confirmed by `limit_at`.
    Wiping {
        since: Instant,
        limit_at: Instant,
        ended: EndedClaim,
    },
    Quarantined {
        cause: QuarantineCause,
        since: Instant,
    },
}

impl Custody {
    pub(crate) fn claimer(&self) -> Option<Claimer> {
        match self {
            Self::Claimed { tenant, user, .. } => Some((*tenant, *user)),
            _ => None,
        }
    }

    fn is_wiping(&self) -> bool {
        matches!(self, Self::Wiping { .. })
    }

    /// Whether `sensitive_pool_size` counts the node. Its pool and capacity cannot change until the wipe is over.
    pub(crate) fn is_in_sensitive_pool(&self) -> bool {
        self.is_wiping() || self.claimer().is_some()
    }
}

impl Node {
    /// Whether work of this claimer, or ordinary work if `None`, may be placed here.
    pub(crate) fn is_open_to(&self, claimer: Option<Claimer>) -> bool {
        let in_right_hands = match claimer {
            None => self.custody == Custody::Open,
            Some(_) => self.custody.claimer() == claimer,
        };
        self.is_in_service() && in_right_hands
    }
}

/// Sorts the nodes of a command, or returns why they are invalid.
pub(crate) fn in_order(nodes: &[NodeNo]) -> Result<Vec<NodeNo>, &'static str> {
    let named: BTreeSet<NodeNo> = nodes.iter().copied().collect();
    match nodes.len() {
        0 => Err("no_nodes"),
        count if count > NODES_PER_CLAIM_MAX => Err("too_many_nodes"),
        count if count > named.len() => Err("duplicate_node"),
        _ => Ok(named.into_iter().collect()),
    }
}

/// Whether a quota on nodes counts the claims of a user. Those on classes, kinds, priorities or app instances do not.
fn counts_claims(scope: &QuotaScope, tenant: TenantNo, project: ProjectNo, user: UserNo) -> bool {
    scope.tenant == tenant
        && scope.project.is_none_or(|of| of == project)
        && scope.class.is_none()
        && scope.priority.is_none()
        && scope.further.kind.is_none()
        && has_holder(scope, (Some(user), None))
}

impl World {
    pub(crate) fn has_claimed(&self, claimer: Claimer) -> bool {
        self.nodes.values().any(|node| node.custody.claimer() == Some(claimer))
    }

    /// Why a request for sensitive work is invalid, if it is: it needs a user with a claim, on the named node if one
    /// is named.
    pub(crate) fn fault_of_sensitive(&self, claimer: Option<Claimer>, on: Option<NodeNo>) -> Option<&'static str> {
        let Some(claimer) = claimer else { return Some("sensitive_needs_user") };
        let has_claim = match on {
            None => self.has_claimed(claimer),
            Some(node) => self.nodes.get(&node).is_some_and(|node| node.custody.claimer() == Some(claimer)),
        };
        (!has_claim).then_some("sensitive_needs_claim")
    }

    /// The claimed nodes that a quota on nodes counts. Before rules version 4 quotas on classes or priorities did not
    /// count them.
    pub(crate) fn nodes_claimed_under(&self, quota: &Quota, who: Who) -> BTreeSet<NodeNo> {
        if self.is_by_rules_4() {
            return self.claimed_nodes(quota, who).into_iter().collect();
        }
        let scope = &quota.put.scope;
        let counts = |node: &Node| match node.custody {
            Custody::Claimed { tenant, project, user, .. } => {
                counts_claims(scope, tenant, project, user)
                    && (scope.further.user != Some(HolderScope::Each) || who.0 == Some(user))
                    && is_within(scope, (node.put.pool, node.put.node))
            }
            _ => false,
        };
        self.nodes.values().filter(|node| counts(node)).map(|node| node.put.node).collect()
    }

    /// The quota that refuses a claim, if any. A claim has no end, so it never uses a burst.
    fn claim_exceeds(&self, by: Claimer, project: ProjectNo, nodes: &[NodeNo]) -> Option<QuotaNo> {
        if self.is_by_rules_4() {
            return self.quota_against_claim(by, project, nodes);
        }
        let stands_against = |quota: &Quota| {
            let scope = &quota.put.scope;
            let applies = quota.put.measure == Measure::Nodes && counts_claims(scope, by.0, project, by.1);
            let limit = match quota.limit() {
                LimitKind::Hard { limit } | LimitKind::Burst { limit, .. } => limit,
                LimitKind::Soft { .. } => return false,
            };
            let counted = self.nodes_counted(quota, (Some(by.1), None));
            let covered = nodes.iter().filter(|node| is_within(scope, (self.nodes[node].put.pool, **node)));
            let new = covered.filter(|node| !counted.contains(node)).count();
            applies && new > 0 && (counted.len() + new) as u64 > limit
        };
        self.quotas.iter().find(|(_, quota)| stands_against(quota)).map(|(number, _)| *number)
    }

    /// Whether it has leases, fenced ones included, or a reservation.
    fn is_in_use(&self, number: NodeNo) -> bool {
        let kept = |class| self.kept_on(number, class).iter().any(|(_, kept)| *kept > 0);
        self.leases.iter().any(|lease| lease.node == number && lease.phase.takes_capacity())
            || self.classes.keys().any(|class| kept(*class))
    }

    /// Why a node cannot be claimed, if so.
    fn fault_of_claim_on(&self, number: NodeNo, by: Claimer, by_operator: bool) -> Option<&'static str> {
        let Some(node) = self.nodes.get(&number) else { return Some("unknown_node") };
        match node.custody {
            Custody::Claimed { .. } if node.custody.claimer() == Some(by) => Some("node_already"),
            Custody::Claimed { .. } => Some("node_claimed"),
            Custody::Wiping { .. } | Custody::Quarantined { .. } => Some("node_not_ready"),
            Custody::Open if node.lost => Some("node_not_ready"),
            Custody::Open if self.is_reserved_for_maintenance(number) => Some("node_in_window"),
            Custody::Open if node.drained && !by_operator => Some("node_not_ready"),
            Custody::Open => self.is_in_use(number).then_some("node_in_use"),
        }
    }

    /// Why nodes cannot be claimed together, if so. Either all of them are claimed, or none.
    fn fault_of_claim(
        &self,
        by: Claimer,
        project: ProjectNo,
        (nodes, until): (&[NodeNo], Option<Instant>),
        by_operator: bool,
        now: Instant,
    ) -> Option<&'static str> {
        if let Some(fault) = nodes.iter().find_map(|node| self.fault_of_claim_on(*node, by, by_operator)) {
            return Some(fault);
        }
        let in_pool = self.nodes.values().filter(|node| node.custody.is_in_sensitive_pool()).count();
        if self.sensitive_pool_size.is_some_and(|limit| (in_pool + nodes.len()) as u64 > limit) {
            return Some("sensitive_pool_full");
        }
        let over_quota = self.claim_exceeds(by, project, nodes).map(|_| "claim_over_quota");
        over_quota.or_else(|| self.fault_of_claim_cost(project, nodes, until, now))
    }

    pub(crate) fn foretell_claim(
        &self,
        caller: &Caller,
        (nodes, until): (&[NodeNo], Option<Instant>),
        by_operator: bool,
        now: Instant,
    ) -> Told {
        let tenant = caller.tenant.ok_or("tenant_required")?;
        self.tenants.get(&tenant).ok_or("unknown_tenant")?;
        let project = caller.project.ok_or("project_required")?;
        self.projects.get(&project).filter(|own| own.tenant == tenant).ok_or("unknown_project")?;
        let user = caller.user.ok_or("sensitive_needs_user")?;
        self.users.get(&user).filter(|own| own.tenant == tenant).ok_or("unknown_user")?;
        let nodes = in_order(nodes)?;
        if let Some(fault) = self.fault_of_claim((tenant, user), project, (&nodes, until), by_operator, now) {
            return Err(fault);
        }
        let resumed = self.resumed_by_claim(&nodes).into_iter().map(Body::from);
        let claimed = NodesClaimed { nodes: Nodes(nodes.clone()), until };
        let bodies = std::iter::once(claimed.into()).chain(resumed).collect();
        Ok(Foretold::Sealed { tenant: caller.tenant, bodies })
    }

    /// The records that resume the drained ones of these nodes.
    fn resumed_by_claim(&self, nodes: &[NodeNo]) -> Vec<NodeResumed> {
        let drained = nodes.iter().filter(|node| self.nodes[node].drained);
        drained.map(|node| NodeResumed { node: *node, reason: None }).collect()
    }

    pub(crate) fn foretell_giving_back(&self, caller: &Caller, nodes: &[NodeNo]) -> Told {
        let nodes = in_order(nodes)?;
        let mut holder = None;
        let mut claims: BTreeMap<u64, Vec<NodeNo>> = BTreeMap::new();
        for number in &nodes {
            let Custody::Claimed { tenant, project, user, sequence, .. } =
                self.nodes.get(number).ok_or("unknown_node")?.custody
            else {
                return Err("node_not_claimed");
            };
            let may = caller.tenant.is_none_or(|own| own == tenant)
                && caller.project.is_none_or(|own| own == project)
                && caller.user.is_none_or(|own| own == user);
            if !may {
                return Err("node_not_claimed");
            }
            if *holder.get_or_insert((tenant, project, user)) != (tenant, project, user) {
                return Err("claims_differ");
            }
            if self.has_work(*number) {
                return Err("node_has_leases");
            }
            claims.entry(sequence).or_default().push(*number);
        }
        // One record for each claim.
        let released = |(claim, nodes)| NodesReleased { nodes: Nodes(nodes), claim: Some(claim) }.into();
        let tenant = holder.map(|(tenant, ..)| tenant);
        Ok(Foretold::Sealed { tenant, bodies: claims.into_iter().map(released).collect() })
    }

    /// Fences do not prevent the release of a node.
    fn has_work(&self, node: NodeNo) -> bool {
        self.leases.iter().any(|lease| lease.node == node && lease.phase.counts_for_quota())
    }

    pub(crate) fn foretell_wipe(&self, node: NodeNo, generation: Option<u64>, clean: bool) -> Told {
        self.check_generation(node, generation)?;
        let Custody::Wiping { ended: (tenant, _, _, claim), .. } = self.nodes[&node].custody else {
            return Err("node_not_wiping");
        };
        let (cause, claim) = (QuarantineCause::WipeFailed, Some(claim));
        match clean {
            true => sealed(Some(tenant), NodeWiped { node, claim }),
            false => sealed(Some(tenant), NodeQuarantined { node, cause, claim }),
        }
    }

    pub(crate) fn foretell_clearing(&self, caller: &Caller, node: NodeNo) -> Told {
        match self.nodes.get(&node).ok_or("unknown_node")?.custody {
            Custody::Quarantined { .. } => sealed(caller.tenant, QuarantineCleared { node }),
            _ => Err("node_not_quarantined"),
        }
    }

    pub(crate) fn foretell_node_gone(&self, caller: &Caller, number: NodeNo) -> Told {
        let node = self.nodes.get(&number).ok_or("unknown_node")?;
        if self.is_in_use(number) {
            return Err("node_has_leases");
        }
        if node.custody.is_in_sensitive_pool() {
            return Err("node_in_custody");
        }
        sealed(caller.tenant, NodeDeleted { node: number })
    }

    /// Only the faults that concern claims are predicted.
    pub(crate) fn foretell_tenant_gone(&self, tenant: TenantNo) -> Told {
        let leased = self.leases.iter().any(|lease| lease.tenant == tenant && lease.phase.takes_capacity());
        let lives = self.allocations.values().any(|found| found.tenant == tenant && !found.state.is_over());
        let claims = self.claims_of(|of, _, _| of == tenant).is_some();
        let owes = self.ledger.check_tenant_deleted(tenant, &self.projects_of(tenant)).is_err();
        match (leased || lives, claims) {
            (false, true) => Err("tenant_has_claims"),
            (false, false) if owes && self.tenants.contains_key(&tenant) => Err("tenant_has_balance"),
            _ if self.projects_of(tenant).into_iter().any(|of| self.has_unposted_usage(of)) => Ok(Foretold::Faulty),
            _ => Ok(Foretold::Open),
        }
    }

    pub(crate) fn foretell_project_gone(&self, project: ProjectNo) -> Told {
        let of = |holder: ProjectNo, payer: ProjectNo| holder == project || payer == project;
        let own_lease = |lease: &&Lease| of(lease.project, lease.payer);
        let leased = self.leases.iter().filter(own_lease).any(|lease| lease.phase.takes_capacity());
        let own = |found: &&Allocation| of(found.project, found.payer());
        let lives = self.allocations.values().filter(own).any(|found| !found.state.is_over());
        let claims = self.claims_of(|_, of, _| of == project).is_some();
        let owes = self.ledger.check_project_deleted(project).is_err();
        match (leased || lives, claims, self.ties_of(project)) {
            _ if !self.projects.contains_key(&project) => Err("unknown_project"),
            (false, true, _) => Err("project_has_claims"),
            (false, false, (true, _)) => Err("project_has_app_instances"),
            (false, false, (_, true)) => Err("project_has_attachments"),
            (false, false, _) if owes => Err("project_has_balance"),
            _ if self.has_unposted_usage(project) => Ok(Foretold::Faulty),
            _ => Ok(Foretold::Open),
        }
    }

    pub(crate) fn foretell_user_gone(&self, caller: &Caller, user: UserNo) -> Told {
        let visible = |own: &&UserPut| caller.tenant.is_none_or(|tenant| tenant == own.tenant);
        let found = self.users.get(&user).filter(visible).ok_or("unknown_user")?;
        if self.claims_of(|_, _, of| of == user).is_some() {
            return Err("user_has_claims");
        }
        sealed(Some(found.tenant), UserDeleted { user })
    }

    pub(crate) fn sensitive_changed(&mut self, changed: &SensitiveChanged) -> Checked {
        let old = self.sensitive_pool_size;
        demand!(old != changed.pool_size, "settings", "{old:?} is the size already");
        self.sensitive_pool_size = changed.pool_size;
        Ok(())
    }

    pub(crate) fn nodes_claimed(&mut self, command: &mut Command, record: &Record, claimed: &NodesClaimed) -> Checked {
        let (of, nodes) = (&record.identity, &claimed.nodes.0);
        let (Some(tenant), Some(project), Some(user)) = (of.tenant, of.project, of.user) else {
            broken!("claim", "a claim needs a tenant, a project and a user, not {of:?}")
        };
        demand!(self.tenants.contains_key(&tenant), "unknown-tenant", "there is no {tenant}");
        let own = self.projects.get(&project).is_some_and(|project| project.tenant == tenant);
        demand!(own, "unknown-project", "{tenant} has no {project}");
        let own = self.users.get(&user).is_some_and(|user| user.tenant == tenant);
        demand!(own, "unknown-user", "{tenant} has no {user}");
        demand!(in_order(nodes).as_ref() == Ok(nodes), "claim", "{nodes:?}");
        // Only an operator may claim drained nodes, and the same append resumes them.
        let until = claimed.until;
        let fault = self.fault_of_claim((tenant, user), project, (nodes, until), true, record.stamp);
        demand!(fault.is_none(), "claim", "must be refused: {fault:?}");
        for resumed in self.resumed_by_claim(nodes) {
            command.script.push_back(Line::of_caller(resumed, record.stamp));
        }
        for node in nodes {
            let (since, sequence) = (record.stamp, record.sequence);
            self.pass(*node, Custody::Claimed { tenant, project, user, since, sequence, until });
            self.claim_begins(record, *node);
        }
        Ok(())
    }

    /// Released nodes are offline until they are wiped.
    pub(crate) fn nodes_released(&mut self, record: &Record, released: &NodesReleased) -> Checked {
        let (of, nodes) = (&record.identity, &released.nodes.0);
        demand!(in_order(nodes).as_ref() == Ok(nodes), "node-release", "{nodes:?}");
        let mut ended = BTreeMap::new();
        for number in nodes {
            let custody = found!(self.nodes.get(number), "unknown-node", "there is no {number}").custody;
            let Custody::Claimed { tenant, project, user, sequence, .. } = custody else {
                broken!("node-release", "{number} is not claimed: {custody:?}")
            };
            let own = (of.tenant, of.project, of.user) == (Some(tenant), Some(project), Some(user));
            demand!(own, "node-release", "{number} is {custody:?}, the record of {of:?}");
            demand!(!self.has_work(*number), "node-release", "{number} still has leases");
            self.check_claim(sequence, released.claim)?;
            ended.insert(*number, (tenant, project, user, sequence));
        }
        let since = record.stamp;
        for (node, ended) in ended {
            self.claim_ends(record, node);
            self.pass(node, Custody::Wiping { since, limit_at: since.saturating_add(WIPE_DEADLINE), ended });
        }
        Ok(())
    }

    /// A record that ends a claim names it (SEMANTICS 11).
    fn check_claim(&self, sequence: u64, said: Option<u64>) -> Checked {
        let named = !self.seals_holders() || said == Some(sequence);
        demand!(named, "claim", "the claim was made by record {sequence}, not {said:?}");
        Ok(())
    }

    pub(crate) fn node_wiped(&mut self, record: &Record, wiped: &NodeWiped) -> Checked {
        self.check_wiping(record, wiped.node, wiped.claim)?;
        self.shows_life(wiped.node, record.stamp);
        self.pass(wiped.node, Custody::Open);
        Ok(())
    }

    /// The wipe failed or was not reported in time; the timeout is checked as a timer.
    pub(crate) fn node_quarantined(&mut self, record: &Record, quarantined: &NodeQuarantined) -> Checked {
        let NodeQuarantined { node, cause, claim } = *quarantined;
        self.check_wiping(record, node, claim)?;
        self.pass(node, Custody::Quarantined { cause, since: record.effective_at });
        Ok(())
    }

    /// The record carries the identity of the former claimer, and the claim.
    fn check_wiping(&self, record: &Record, number: NodeNo, claim: Option<u64>) -> Checked {
        let node = found!(self.nodes.get(&number), "unknown-node", "there is no {number}");
        let Custody::Wiping { ended: (tenant, project, user, sequence), .. } = node.custody else {
            broken!("custody", "{number} is not being wiped: {:?}", node.custody)
        };
        let of = &record.identity;
        let own = (of.tenant, of.project, of.user) == (Some(tenant), Some(project), Some(user));
        demand!(own || !self.seals_holders(), "identity", "{number} was claimed by {tenant}, the record is of {of:?}");
        self.check_claim(sequence, claim)
    }

    pub(crate) fn quarantine_cleared(&mut self, number: NodeNo) -> Checked {
        let node = found!(self.nodes.get(&number), "unknown-node", "there is no {number}");
        let is_quarantined = matches!(node.custody, Custody::Quarantined { .. });
        demand!(is_quarantined, "custody", "{number} is not quarantined: {:?}", node.custody);
        self.pass(number, Custody::Open);
        Ok(())
    }

    fn pass(&mut self, number: NodeNo, to: Custody) {
        self.nodes.get_mut(&number).expect("it was looked at").custody = to;
    }

    /// Restarts the limits of wipes after a start, so that an outage of the daemon does not quarantine the cluster.
    pub(crate) fn restart_wipes(&mut self, stamp: Instant) {
        for node in self.nodes.values_mut() {
            if let Custody::Wiping { limit_at, .. } = &mut node.custody {
                *limit_at = stamp.saturating_add(WIPE_DEADLINE);
            }
        }
    }

    /// Objects with claims cannot be deleted.
    pub(crate) fn check_no_claims(&self, of: impl Fn(TenantNo, ProjectNo, UserNo) -> bool) -> Checked {
        let claimed = self.claims_of(of);
        demand!(claimed.is_none(), "has-claims", "{claimed:?} is claimed");
        Ok(())
    }

    /// A node whose claim matches.
    fn claims_of(&self, of: impl Fn(TenantNo, ProjectNo, UserNo) -> bool) -> Option<NodeNo> {
        let held = |node: &&Node| match node.custody {
            Custody::Claimed { tenant, project, user, .. } => of(tenant, project, user),
            _ => false,
        };
        self.nodes.values().find(held).map(|node| node.put.node)
    }
}
