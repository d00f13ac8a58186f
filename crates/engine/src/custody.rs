//! The custody of a node: open to all, claimed by a user for sensitive work, or out of service until it has been wiped
//! (SEMANTICS 10).

use crate::holder::identity;
use leasehold_model::limits::WIPE_DEADLINE;
use leasehold_model::{CustodyState, Identity, Instant, NodeNo, ProjectNo, QuarantineCause, TenantNo, UserNo};
use std::collections::{BTreeMap, BTreeSet};

/// The user whose sensitive work may run on a claimed node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claimer {
    pub tenant: TenantNo,
    pub user: UserNo,
}

impl Claimer {
    /// The claimer whose nodes a request needs; `None` unless it is sensitive.
    pub(crate) fn of(identity: &Identity, sensitive: bool) -> Option<Self> {
        let (tenant, user) = (identity.tenant?, identity.user?);
        sensitive.then_some(Self { tenant, user })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub by: Claimer,
    /// The project that pays for the idle capacity of the node.
    pub project: ProjectNo,
    pub since: Instant,
    /// The sequence of the record that made it.
    pub sequence: u64,
    /// How long the claimer expects to keep the node.
    pub until: Option<Instant>,
    /// Its core time counts in the fair share: the pool had no GPUs when it was made.
    pub(crate) counts_cores: bool,
}

impl Claim {
    /// The identity of the claimer.
    pub(crate) fn identity(&self) -> Identity {
        identity(self.by.tenant, self.project, Some(self.by.user), None)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Custody {
    /// All work may run here except sensitive work.
    #[default]
    Open,
    Claimed(Claim),
    /// Released. The node is quarantined at `limit_at` unless the wipe has been confirmed by then.
    Wiping {
        since: Instant,
        limit_at: Instant,
        /// The claim that has ended.
        claim: Claim,
    },
    Quarantined {
        cause: QuarantineCause,
        since: Instant,
    },
}

impl Custody {
    /// A wipe that starts at `stamp`, after the end of a claim.
    pub(crate) fn wiping(claim: Claim, stamp: Instant) -> Self {
        Self::Wiping { since: stamp, limit_at: stamp.saturating_add(WIPE_DEADLINE), claim }
    }

    pub const fn state(&self) -> CustodyState {
        match self {
            Self::Open => CustodyState::Open,
            Self::Claimed(_) => CustodyState::Claimed,
            Self::Wiping { .. } => CustodyState::Wiping,
            Self::Quarantined { .. } => CustodyState::Quarantined,
        }
    }

    pub const fn word(&self) -> &'static str {
        self.state().word()
    }

    pub const fn claim(&self) -> Option<Claim> {
        match self {
            Self::Claimed(claim) => Some(*claim),
            _ => None,
        }
    }

    /// The claim that ended before the wipe, while that is not confirmed.
    pub(crate) const fn ended_claim(&self) -> Option<Claim> {
        match self {
            Self::Wiping { claim, .. } => Some(*claim),
            _ => None,
        }
    }

    /// The instant by which the wipe must be confirmed.
    pub(crate) const fn wipe_due(&self) -> Option<Instant> {
        match self {
            Self::Wiping { limit_at, .. } => Some(*limit_at),
            _ => None,
        }
    }

    /// Whether it counts in `sensitive_pool_size`.
    pub(crate) const fn is_in_sensitive_pool(&self) -> bool {
        matches!(self, Self::Claimed(_) | Self::Wiping { .. })
    }

    /// Whether sensitive work of `claimer`, or ordinary work if there is none, may run here.
    pub(crate) fn is_open_to(&self, claimer: Option<Claimer>) -> bool {
        match self {
            Self::Open => claimer.is_none(),
            Self::Claimed(claim) => claimer == Some(claim.by),
            Self::Wiping { .. } | Self::Quarantined { .. } => false,
        }
    }
}

/// The nodes that each user has claimed; derived from the custody of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimedNodes {
    by_claimer: BTreeMap<Claimer, BTreeSet<NodeNo>>,
    sensitive_pool: u64,
}

impl ClaimedNodes {
    /// Updates the index for a node whose custody changes.
    pub(crate) fn change(&mut self, node: NodeNo, from: Custody, to: Custody) {
        if let Some(claim) = from.claim()
            && let Some(nodes) = self.by_claimer.get_mut(&claim.by)
        {
            nodes.remove(&node);
            if nodes.is_empty() {
                self.by_claimer.remove(&claim.by);
            }
        }
        if let Some(claim) = to.claim() {
            self.by_claimer.entry(claim.by).or_default().insert(node);
        }
        self.sensitive_pool -= u64::from(from.is_in_sensitive_pool());
        self.sensitive_pool += u64::from(to.is_in_sensitive_pool());
    }

    /// Nodes that are claimed or being wiped.
    pub(crate) fn sensitive_pool(&self) -> u64 {
        self.sensitive_pool
    }

    pub(crate) fn claimers(&self) -> impl Iterator<Item = Claimer> + '_ {
        self.by_claimer.keys().copied()
    }

    pub(crate) fn nodes_of(&self, claimer: Claimer) -> impl Iterator<Item = NodeNo> + '_ {
        self.by_claimer.get(&claimer).into_iter().flatten().copied()
    }

    pub(crate) fn has(&self, claimer: Claimer) -> bool {
        self.by_claimer.contains_key(&claimer)
    }
}
