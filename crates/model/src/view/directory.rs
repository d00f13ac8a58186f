//! What the numbers in records mean: names, classes, and the leases that are alive.
//!
//! A far lighter fold than the engine's: it checks nothing and counts nothing. Its memory grows
//! with what exists, not with the length of the journal.

use crate::body::{Body, Granted};
use crate::class::ClassSpec;
use crate::id::{ClassNo, LeaseNo, NodeNo, PoolNo, ProjectNo, TenantNo, UserNo};
use crate::instant::Instant;
use crate::name::Name;
use crate::quantity::Quanta;
use crate::record::{Hash, Record};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The names behind the numbers, up to the last record shown.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    genesis: Option<Hash>,
    tenants: BTreeMap<TenantNo, Tenant>,
    projects: BTreeMap<ProjectNo, Owned>,
    users: BTreeMap<UserNo, Owned>,
    pools: BTreeMap<PoolNo, Name>,
    nodes: BTreeMap<NodeNo, Name>,
    classes: BTreeMap<ClassNo, ClassSpec>,
    leases: BTreeMap<LeaseNo, LiveLease>,
}

#[derive(Clone, Debug)]
struct Tenant {
    name: Name,
    tag: Option<Arc<Name>>,
}

/// Something of a tenant's, which goes when the tenant goes.
#[derive(Clone, Debug)]
struct Owned {
    tenant: TenantNo,
    name: Name,
}

/// A lease that is not closed, as its grant sealed it.
#[derive(Clone, Debug)]
pub(super) struct LiveLease {
    pub(super) tenant: Option<TenantNo>,
    pub(super) project: Option<ProjectNo>,
    /// The tenant's accounting tag at the grant: later changes of the tag do not touch the lease.
    pub(super) tag: Option<Arc<Name>>,
    pub(super) class: ClassNo,
    pub(super) quanta: Quanta,
    pub(super) node: NodeNo,
    pub(super) devices: u64,
    pub(super) granted_at: Instant,
    pub(super) expires_at: Instant,
}

impl Directory {
    /// For a reader that begins with the genesis record, or does not need public ids.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a reader that begins later: public ids are made from the hash of the genesis record.
    pub fn with_genesis(genesis: Hash) -> Self {
        Self { genesis: Some(genesis), ..Self::default() }
    }

    /// The hash of the genesis record, once it is known.
    pub fn genesis(&self) -> Option<&Hash> {
        self.genesis.as_ref()
    }

    /// Leases that are known and not closed.
    pub fn live_leases(&self) -> usize {
        self.leases.len()
    }

    pub(super) fn tenant(&self, tenant: TenantNo) -> Option<&Name> {
        self.tenants.get(&tenant).map(|t| &t.name)
    }
    pub(super) fn project(&self, project: ProjectNo) -> Option<&Name> {
        self.projects.get(&project).map(|p| &p.name)
    }
    pub(super) fn user(&self, user: UserNo) -> Option<&Name> {
        self.users.get(&user).map(|u| &u.name)
    }
    pub(super) fn pool(&self, pool: PoolNo) -> Option<&Name> {
        self.pools.get(&pool)
    }
    pub(super) fn node(&self, node: NodeNo) -> Option<&Name> {
        self.nodes.get(&node)
    }
    pub(super) fn class(&self, class: ClassNo) -> Option<&ClassSpec> {
        self.classes.get(&class)
    }
    pub(super) fn lease(&self, lease: LeaseNo) -> Option<&LiveLease> {
        self.leases.get(&lease)
    }

    /// Before a record is shown: what it brings into being or changes.
    pub(super) fn learn(&mut self, record: &Record, hash: &Hash) {
        match &record.body {
            Body::Genesis(_) if record.sequence == 0 => self.genesis = Some(*hash),
            Body::ClassPut(put) => {
                self.classes.insert(put.class, put.spec.clone());
            }
            Body::PoolPut(put) => {
                self.pools.insert(put.pool, put.name.clone());
            }
            Body::TenantPut(put) => {
                let tag = put.accounting_tag.clone().map(Arc::new);
                self.tenants.insert(put.tenant, Tenant { name: put.name.clone(), tag });
            }
            Body::ProjectPut(put) => {
                self.projects.insert(put.project, Owned { tenant: put.tenant, name: put.name.clone() });
            }
            Body::UserPut(put) => {
                self.users.insert(put.user, Owned { tenant: put.tenant, name: put.name.clone() });
            }
            Body::NodePut(put) => {
                self.nodes.insert(put.node, put.name.clone());
            }
            Body::Granted(granted) => self.learn_grant(record, granted),
            Body::Renewed(renewed) => {
                for renewal in &renewed.renewals {
                    if let Some(lease) = self.leases.get_mut(&renewal.lease) {
                        lease.expires_at = renewal.expires_at;
                    }
                }
            }
            _ => {}
        }
    }

    fn learn_grant(&mut self, record: &Record, granted: &Granted) {
        let tenant = record.identity.tenant;
        let tag = tenant.and_then(|tenant| self.tenants.get(&tenant)?.tag.clone());
        for (lease, member) in granted_leases(granted).zip(&granted.members) {
            let live = LiveLease {
                tenant,
                project: record.identity.project,
                tag: tag.clone(),
                class: member.class,
                quanta: member.quanta,
                node: granted.node,
                devices: member.devices,
                granted_at: record.stamp,
                expires_at: record.stamp.saturating_add(granted.ttl),
            };
            self.leases.insert(lease, live);
        }
    }

    /// After a record was shown: what it ended. Its own view still had the names.
    pub(super) fn forget(&mut self, record: &Record) {
        match &record.body {
            Body::PoolDeleted(gone) => {
                self.pools.remove(&gone.pool);
            }
            Body::TenantDeleted(gone) => {
                self.tenants.remove(&gone.tenant);
                self.projects.retain(|_, project| project.tenant != gone.tenant);
                self.users.retain(|_, user| user.tenant != gone.tenant);
            }
            Body::ProjectDeleted(gone) => {
                self.projects.remove(&gone.project);
            }
            Body::UserDeleted(gone) => {
                self.users.remove(&gone.user);
            }
            Body::NodeDeleted(gone) => {
                self.nodes.remove(&gone.node);
            }
            Body::Released(released) if released.closed => self.close(released.leases.leases()),
            Body::Expired(expired) if expired.closed => self.close(expired.leases.0.iter().copied()),
            Body::TeardownStarted(started) if started.closed => self.close(started.leases.0.iter().copied()),
            Body::TornDown(torn) => self.close(torn.leases.0.iter().copied()),
            Body::Unfenced(unfenced) => self.close(unfenced.leases.0.iter().copied()),
            _ => {}
        }
    }

    fn close(&mut self, leases: impl Iterator<Item = LeaseNo>) {
        for lease in leases {
            self.leases.remove(&lease);
        }
    }
}

/// The numbers of a grant's leases. A journal that was made by nobody's engine may run past the
/// last number there is: those are left out.
pub(super) fn granted_leases(granted: &Granted) -> impl Iterator<Item = LeaseNo> + '_ {
    let first = granted.first_lease.0;
    (0u64..).zip(&granted.members).map_while(move |(i, _)| first.checked_add(i).map(LeaseNo))
}
