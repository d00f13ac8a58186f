//! Whose a lease is: records that somebody else than the holder caused are grouped by it and carry all of it
//! (SEMANTICS 11, "Identity and correlation").

use crate::lease::Lease;
use leasehold_model::body::{BelongsTo, Correlation};
use leasehold_model::{Identity, LeaseNo, Name, ProjectNo, TenantNo, UserNo};
use std::collections::BTreeMap;

/// What the caller of a request named, kept for the leases that named anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) workload: Option<Name>,
    pub(crate) correlation: Option<u128>,
}

/// The identity of a lease, with its allocation and its correlation ID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub user: Option<UserNo>,
    pub workload: Option<Name>,
    pub belongs_to: BelongsTo,
}

impl Holder {
    /// The identity in the head of a record, without a token.
    pub(crate) fn identity(&self) -> Identity {
        identity(self.tenant, self.project, self.user, self.workload.clone())
    }
}

/// The identity of a holder, without a token.
pub(crate) fn identity(tenant: TenantNo, project: ProjectNo, user: Option<UserNo>, workload: Option<Name>) -> Identity {
    Identity { tenant: Some(tenant), project: Some(project), user, workload, token: None }
}

impl Lease {
    /// The workload that its request named.
    pub fn workload(&self) -> Option<&Name> {
        self.named.as_ref()?.workload.as_ref()
    }

    /// The correlation ID that it shares with its request and its allocation.
    pub fn correlation(&self) -> Correlation {
        Correlation::or_derived(self.named.as_ref().and_then(|named| named.correlation), self.request)
    }

    pub fn holder(&self) -> Holder {
        Holder {
            tenant: self.tenant,
            project: self.project,
            user: self.user,
            workload: self.workload().cloned(),
            belongs_to: BelongsTo { allocation: self.of, correlation: self.correlation() },
        }
    }
}

/// Groups leases by their holder and something else that the leases of a record have in common. Within a group they
/// stay in the given order.
pub(crate) fn by_holder<'a, K: Ord>(
    leases: impl Iterator<Item = (&'a Lease, K)>,
) -> BTreeMap<(Holder, K), Vec<LeaseNo>> {
    let mut groups: BTreeMap<(Holder, K), Vec<LeaseNo>> = BTreeMap::new();
    for (lease, key) in leases {
        groups.entry((lease.holder(), key)).or_default().push(lease.number);
    }
    groups
}
