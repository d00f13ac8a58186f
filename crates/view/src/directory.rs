//! The names for numbers in records: names, classes, and live leases.
//!
//! This is a much simpler fold than the engine's: it checks and counts nothing. Its size depends on the number of
//! existing objects, not on the length of the journal.

use leasehold_model::app::STANDARD_UNITS;
use leasehold_model::body::{BelongsTo, Body, Granted};
use leasehold_model::class::ClassSpec;
use leasehold_model::id::{
    AppInstanceNo, AppTypeNo, ClassNo, LeaseNo, NodeNo, PoolNo, ProjectNo, TenantNo, TokenNo, UnitNo, UserNo,
};
use leasehold_model::instant::Instant;
use leasehold_model::name::Name;
use leasehold_model::quantity::Quanta;
use leasehold_model::record::{Hash, Record};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The names for numbers, up to the last record shown. Clones share the names until one of them learns a new name,
/// because the daemon clones it for every page.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    genesis: Option<Hash>,
    names: Arc<Names>,
    leases: BTreeMap<LeaseNo, LiveLease>,
}

#[derive(Clone, Debug, Default)]
struct Names {
    tenants: BTreeMap<TenantNo, Tenant>,
    projects: BTreeMap<ProjectNo, Owned>,
    users: BTreeMap<UserNo, Owned>,
    pools: BTreeMap<PoolNo, Name>,
    nodes: BTreeMap<NodeNo, Name>,
    classes: BTreeMap<ClassNo, ClassSpec>,
    tokens: BTreeMap<TokenNo, Name>,
    app_instances: BTreeMap<AppInstanceNo, Owned>,
    app_types: BTreeMap<AppTypeNo, Name>,
    units: BTreeMap<UnitNo, Name>,
}

#[derive(Clone, Debug)]
struct Tenant {
    name: Name,
    tag: Option<Arc<Name>>,
}

/// An object of a tenant, which is removed with the tenant.
#[derive(Clone, Debug)]
struct Owned {
    tenant: TenantNo,
    name: Name,
}

/// A lease that is not closed, from its grant.
#[derive(Clone, Debug)]
pub(super) struct LiveLease {
    pub(super) tenant: Option<TenantNo>,
    pub(super) project: Option<ProjectNo>,
    pub(super) user: Option<UserNo>,
    pub(super) workload: Option<Name>,
    pub(super) belongs_to: BelongsTo,
    /// The tenant's accounting tag at the grant; later changes do not apply to the lease.
    pub(super) tag: Option<Arc<Name>>,
    pub(super) class: ClassNo,
    pub(super) quanta: Quanta,
    pub(super) node: NodeNo,
    pub(super) devices: u64,
    pub(super) granted_at: Instant,
    pub(super) expires_at: Instant,
}

/// The fields of a live lease for lease events.
#[derive(Clone, Debug)]
pub struct KnownLease {
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub user: Option<UserNo>,
    pub workload: Option<Name>,
    pub belongs_to: BelongsTo,
    pub tag: Option<Name>,
    pub class: ClassNo,
    pub quanta: Quanta,
    pub node: NodeNo,
    pub devices: u64,
    pub granted_at: Instant,
    pub expires_at: Instant,
}

impl Directory {
    /// For a reader that starts with the genesis record, or does not need public IDs.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a reader that starts later; public IDs are computed from the hash of the genesis record.
    pub fn with_genesis(genesis: Hash) -> Self {
        Self { genesis: Some(genesis), ..Self::default() }
    }

    /// The hash of the genesis record, once it is known.
    pub fn genesis(&self) -> Option<&Hash> {
        self.genesis.as_ref()
    }

    /// The number of known leases that are not closed.
    pub fn live_leases(&self) -> usize {
        self.leases.len()
    }

    fn names_mut(&mut self) -> &mut Names {
        Arc::make_mut(&mut self.names)
    }

    pub(super) fn tenant(&self, tenant: TenantNo) -> Option<&Name> {
        self.names.tenants.get(&tenant).map(|t| &t.name)
    }
    pub(super) fn project(&self, project: ProjectNo) -> Option<&Name> {
        self.names.projects.get(&project).map(|p| &p.name)
    }
    pub(super) fn user(&self, user: UserNo) -> Option<&Name> {
        self.names.users.get(&user).map(|u| &u.name)
    }
    pub(super) fn pool(&self, pool: PoolNo) -> Option<&Name> {
        self.names.pools.get(&pool)
    }
    pub fn node(&self, node: NodeNo) -> Option<&Name> {
        self.names.nodes.get(&node)
    }
    pub(super) fn class(&self, class: ClassNo) -> Option<&ClassSpec> {
        self.names.classes.get(&class)
    }
    pub(super) fn token(&self, token: TokenNo) -> Option<&Name> {
        self.names.tokens.get(&token)
    }
    pub(super) fn app_instance(&self, app_instance: AppInstanceNo) -> Option<&Name> {
        self.names.app_instances.get(&app_instance).map(|instance| &instance.name)
    }
    pub(super) fn app_type(&self, app_type: AppTypeNo) -> Option<&Name> {
        self.names.app_types.get(&app_type)
    }
    /// The name of a usage unit, also of those that every site has.
    pub(super) fn unit(&self, unit: UnitNo) -> Option<&str> {
        let standard = STANDARD_UNITS.iter().find(|(number, ..)| *number == unit).map(|(_, name, _)| *name);
        standard.or_else(|| self.names.units.get(&unit).map(Name::as_str))
    }
    pub(super) fn lease(&self, lease: LeaseNo) -> Option<&LiveLease> {
        self.leases.get(&lease)
    }

    /// Learns only names from a record; leases are looked up when they are needed. Names of deleted objects are kept
    /// for older records.
    pub fn follow_names(&mut self, record: &Record) {
        let about_leases = matches!(&record.body, Body::Granted(_) | Body::Renewed(_));
        if !about_leases {
            // A reader that starts later has the genesis hash already.
            self.learn(record, &self.genesis.unwrap_or_default());
        }
    }

    /// Learns the leases of a grant, for a reader that looks them up one by one. `expires_at` is the latest deadline,
    /// if it was changed since.
    pub fn know_grant(&mut self, record: &Record, expires_at: Option<Instant>) {
        if let Body::Granted(granted) = &record.body {
            self.learn_grant(record, granted);
            for lease in granted_leases(granted) {
                if let (Some(lease), Some(expires_at)) = (self.leases.get_mut(&lease), expires_at) {
                    lease.expires_at = expires_at;
                }
            }
        }
    }

    /// Like [`Self::know_grant`], for one live lease.
    pub fn know_lease(&mut self, lease: LeaseNo, facts: KnownLease) {
        let live = LiveLease {
            tenant: Some(facts.tenant),
            project: Some(facts.project),
            user: facts.user,
            workload: facts.workload,
            belongs_to: facts.belongs_to,
            tag: facts.tag.map(Arc::new),
            class: facts.class,
            quanta: facts.quanta,
            node: facts.node,
            devices: facts.devices,
            granted_at: facts.granted_at,
            expires_at: facts.expires_at,
        };
        self.leases.insert(lease, live);
    }

    /// Forgets the leases that a record closes.
    pub fn forget_closed(&mut self, record: &Record) {
        let about_leases = !matches!(
            &record.body,
            Body::PoolDeleted(_)
                | Body::TenantDeleted(_)
                | Body::ProjectDeleted(_)
                | Body::UserDeleted(_)
                | Body::NodeDeleted(_)
                | Body::TokenRevoked(_)
                | Body::AppInstanceDeleted(_)
                | Body::AppTypeDeleted(_)
        );
        if about_leases {
            self.forget(record);
        }
    }

    /// The holder and the node of a known lease.
    pub fn holder(&self, lease: LeaseNo) -> Option<(Option<TenantNo>, Option<ProjectNo>, NodeNo)> {
        self.leases.get(&lease).map(|lease| (lease.tenant, lease.project, lease.node))
    }

    /// Takes the names of another directory; leases are not changed.
    pub fn share_names(&mut self, other: &Self) {
        self.names = Arc::clone(&other.names);
    }

    pub fn knows_lease(&self, lease: LeaseNo) -> bool {
        self.leases.contains_key(&lease)
    }

    /// Before a record is shown: learns what it creates or changes.
    pub(super) fn learn(&mut self, record: &Record, hash: &Hash) {
        match &record.body {
            Body::Genesis(_) if record.sequence == 0 => self.genesis = Some(*hash),
            Body::ClassPut(put) => {
                self.names_mut().classes.insert(put.class, put.spec.clone());
            }
            Body::PoolPut(put) => {
                self.names_mut().pools.insert(put.pool, put.name.clone());
            }
            Body::TenantPut(put) => {
                let tag = put.settings.accounting_tag.clone().map(Arc::new);
                self.names_mut().tenants.insert(put.tenant, Tenant { name: put.settings.name.clone(), tag });
            }
            Body::ProjectPut(put) => {
                self.names_mut().projects.insert(put.project, Owned { tenant: put.tenant, name: put.name.clone() });
            }
            Body::UserPut(put) => {
                self.names_mut().users.insert(put.user, Owned { tenant: put.tenant, name: put.name.clone() });
            }
            Body::NodePut(put) => {
                self.names_mut().nodes.insert(put.node, put.name.clone());
            }
            Body::TokenIssued(issued) => {
                self.names_mut().tokens.insert(issued.token, issued.name.clone());
            }
            Body::AppInstancePut(put) => {
                if let Some(tenant) = record.identity.tenant {
                    let owned = Owned { tenant, name: put.name.clone() };
                    self.names_mut().app_instances.insert(put.app_instance, owned);
                }
            }
            Body::AppTypePut(put) => {
                self.names_mut().app_types.insert(put.app_type, put.slug.clone());
            }
            Body::UsageUnitPut(put) => {
                self.names_mut().units.insert(put.unit, put.name.clone());
            }
            Body::Granted(granted) => self.learn_grant(record, granted),
            Body::Renewed(renewed) => {
                for renewal in &renewed.renewals {
                    if let Some(lease) = self.leases.get_mut(&renewal.lease) {
                        lease.expires_at = renewal.expires_at;
                    }
                }
            }
            // These define no names.
            #[rustfmt::skip]
            Body::UnitPricePut(_) | Body::EntitlementPut(_) | Body::EntitlementDeleted(_) | Body::AppPolicyPut(_) | Body::SharingPut(_) | leasehold_model::sink_kinds!() | Body::AppTypeDeleted(_) | Body::AppInstanceDeleted(_) | Body::AttachmentMade(_)
            | Body::AttachmentEnded(_)
            | Body::Genesis(_) | Body::Started(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_)
            | Body::SettingsChanged(_) | Body::PoolDeleted(_) | Body::TenantDeleted(_) | Body::ProjectDeleted(_)
            | Body::UserDeleted(_) | Body::QuotaPut(_) | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!()
            | Body::RateCardPut(_) | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_) | Body::BudgetsPut(_)
            | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_) | Body::PlacementChanged(_) | Body::SensitiveChanged(_)
            | Body::NodeDeleted(_) | Body::NodeDrained(_) | Body::NodeResumed(_) | Body::NodeLost(_)
            | Body::NodeReturned(_) | Body::NodeCondition(_) | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_)
            | Body::Denied(_) | Body::Released(_) | Body::Expired(_) | Body::Revoked(_) | Body::TeardownStarted(_)
            | Body::TornDown(_) | Body::Fenced(_) | Body::Unfenced(_) | Body::ActivityReported(_)
            | Body::Preempted(_) | Body::PreemptionDecided(_) | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenRevoked(_)
            | Body::AllocationSubmitted(_) | Body::AllocationDenied(_) | Body::AllocationPlaced(_)
            | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_) | Body::AllocationCheckpointed(_)
            | Body::AllocationSuspended(_) | Body::AllocationRequeued(_) | Body::AllocationCompleted(_)
            | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_) | Body::NodesClaimed(_)
            | Body::NodesReleased(_) | Body::NodeWiped(_) | Body::NodeQuarantined(_) | Body::QuarantineCleared(_)
            | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => {}
        }
    }

    fn learn_grant(&mut self, record: &Record, granted: &Granted) {
        let tenant = record.identity.tenant;
        let tag = tenant.and_then(|tenant| self.names.tenants.get(&tenant)?.tag.clone());
        let correlation = granted.correlation_of(record.sequence);
        let belongs_to = BelongsTo { allocation: granted.allocation, correlation };
        for (lease, member) in granted_leases(granted).zip(&granted.members) {
            let live = LiveLease {
                tenant,
                project: record.identity.project,
                user: record.identity.user,
                workload: record.identity.workload.clone(),
                belongs_to,
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

    /// After a record was shown: forgets what it deletes. Its own JSON still contains the names.
    pub(super) fn forget(&mut self, record: &Record) {
        match &record.body {
            Body::PoolDeleted(gone) => {
                self.names_mut().pools.remove(&gone.pool);
            }
            Body::TenantDeleted(gone) => {
                self.names_mut().tenants.remove(&gone.tenant);
                self.names_mut().projects.retain(|_, project| project.tenant != gone.tenant);
                self.names_mut().users.retain(|_, user| user.tenant != gone.tenant);
                self.names_mut().app_instances.retain(|_, instance| instance.tenant != gone.tenant);
            }
            Body::AppInstanceDeleted(gone) => {
                self.names_mut().app_instances.remove(&gone.app_instance);
            }
            Body::AppTypeDeleted(gone) => {
                self.names_mut().app_types.remove(&gone.app_type);
            }
            Body::ProjectDeleted(gone) => {
                self.names_mut().projects.remove(&gone.project);
            }
            Body::UserDeleted(gone) => {
                self.names_mut().users.remove(&gone.user);
            }
            Body::NodeDeleted(gone) => {
                self.names_mut().nodes.remove(&gone.node);
            }
            Body::TokenRevoked(revoked) => {
                self.names_mut().tokens.remove(&revoked.token);
            }
            Body::Released(released) if released.closed => self.close(released.leases.leases()),
            Body::Expired(expired) if expired.closed => self.close(expired.leases.0.iter().copied()),
            Body::TeardownStarted(started) if started.closed => self.close(started.leases.0.iter().copied()),
            Body::TornDown(torn) => self.close(torn.leases.0.iter().copied()),
            Body::Unfenced(unfenced) => self.close(unfenced.leases.0.iter().copied()),
            // These delete no names.
            #[rustfmt::skip]
            Body::UsageUnitPut(_) | Body::UnitPricePut(_) | Body::AppTypePut(_) | Body::AppInstancePut(_)
            | Body::EntitlementPut(_) | Body::EntitlementDeleted(_) | Body::AppPolicyPut(_) | Body::SharingPut(_)
            | leasehold_model::sink_kinds!() | Body::AttachmentMade(_) | Body::AttachmentEnded(_)
            | Body::Genesis(_) | Body::Started(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_)
            | Body::SettingsChanged(_) | Body::ClassPut(_) | Body::PoolPut(_) | Body::TenantPut(_)
            | Body::ProjectPut(_) | Body::UserPut(_) | Body::QuotaPut(_) | Body::QuotaDeleted(_)
            | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!() | Body::RateCardPut(_) | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_)
            | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
            | Body::NodePut(_) | Body::NodeDrained(_) | Body::NodeResumed(_) | Body::NodeLost(_)
            | Body::NodeReturned(_) | Body::NodeCondition(_) | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_)
            | Body::Granted(_) | Body::Denied(_) | Body::Renewed(_) | Body::Released(_) | Body::Expired(_)
            | Body::Revoked(_) | Body::TeardownStarted(_) | Body::Fenced(_) | Body::ActivityReported(_)
            | Body::Preempted(_) | Body::PreemptionDecided(_) | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenIssued(_)
            | Body::AllocationSubmitted(_) | Body::AllocationDenied(_) | Body::AllocationPlaced(_)
            | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_) | Body::AllocationCheckpointed(_)
            | Body::AllocationSuspended(_) | Body::AllocationRequeued(_) | Body::AllocationCompleted(_)
            | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_) | Body::NodesClaimed(_)
            | Body::NodesReleased(_) | Body::NodeWiped(_) | Body::NodeQuarantined(_) | Body::QuarantineCleared(_)
            | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => {}
        }
    }

    fn close(&mut self, leases: impl Iterator<Item = LeaseNo>) {
        for lease in leases {
            self.leases.remove(&lease);
        }
    }
}

/// The numbers of a grant's leases. In a forged journal they can exceed the largest number; those are omitted.
pub(super) fn granted_leases(granted: &Granted) -> impl Iterator<Item = LeaseNo> + '_ {
    let first = granted.first_lease.0;
    (0u64..).zip(&granted.members).map_while(move |(i, _)| first.checked_add(i).map(LeaseNo))
}
