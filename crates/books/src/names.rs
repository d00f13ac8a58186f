//! The names of tenants, projects, users, pools, nodes, app instances, apps and usage units, also of deleted ones: a
//! report on the time in which an object existed names it.

use crate::facts::Books;
use leasehold_model::body::Body;
use leasehold_model::{Instant, Name, Record, TenantNo, words};
use std::collections::BTreeMap;

words! {
    /// The kinds of objects whose names are kept. Classes are never deleted.
    pub enum NamedKind {
        Tenant = 1 "tenant",
        Project = 2 "project",
        User = 3 "user",
        Pool = 4 "pool",
        Node = 5 "node",
        AppInstance = 6 "app_instance",
        AppType = 7 "app",
        Unit = 8 "usage_unit",
    }
}

leasehold_model::fields! {
    /// An object that exists or existed. Numbers are never used again.
    pub struct NamedObject {
        /// Its name, or the last one it had.
        pub name: Name,
        /// The tenant of a project, user or app instance.
        pub tenant: Option<TenantNo>,
        pub deleted_at: Option<Instant>,
    }
}

pub(crate) type Names = BTreeMap<(NamedKind, u64), NamedObject>;

impl Books {
    pub(crate) fn follow_names(&mut self, record: &Record) {
        use NamedKind as K;
        match &record.body {
            Body::TenantPut(put) => self.name(K::Tenant, put.tenant.0, &put.settings.name, None),
            Body::ProjectPut(put) => self.name(K::Project, put.project.0, &put.name, Some(put.tenant)),
            Body::UserPut(put) => self.name(K::User, put.user.0, &put.name, Some(put.tenant)),
            Body::PoolPut(put) => self.name(K::Pool, put.pool.0, &put.name, None),
            Body::NodePut(put) => self.name(K::Node, put.node.0, &put.name, None),
            Body::TenantDeleted(gone) => {
                // Its projects and users go with it.
                let of_tenant = |object: &&mut NamedObject| object.tenant == Some(gone.tenant);
                for object in self.names.values_mut().filter(of_tenant) {
                    object.deleted_at.get_or_insert(record.stamp);
                }
                self.forget_name(K::Tenant, gone.tenant.0, record.stamp);
            }
            Body::ProjectDeleted(gone) => self.forget_name(K::Project, gone.project.0, record.stamp),
            Body::UserDeleted(gone) => self.forget_name(K::User, gone.user.0, record.stamp),
            Body::PoolDeleted(gone) => self.forget_name(K::Pool, gone.pool.0, record.stamp),
            Body::NodeDeleted(gone) => self.forget_name(K::Node, gone.node.0, record.stamp),
            Body::AppInstancePut(put) => {
                self.name(K::AppInstance, put.app_instance.0, &put.name, record.identity.tenant)
            }
            Body::AppInstanceDeleted(gone) => self.forget_name(K::AppInstance, gone.app_instance.0, record.stamp),
            Body::AppTypePut(put) => self.name(K::AppType, put.app_type.0, &put.slug, None),
            Body::AppTypeDeleted(gone) => self.forget_name(K::AppType, gone.app_type.0, record.stamp),
            Body::UsageUnitPut(put) => self.name(K::Unit, put.unit.0, &put.name, None),
            #[rustfmt::skip]
            Body::UnitPricePut(_) | Body::EntitlementPut(_) | Body::EntitlementDeleted(_) | Body::AppPolicyPut(_) | Body::SharingPut(_) | Body::AttachmentMade(_) | Body::AttachmentEnded(_)
            | Body::ClassPut(_) | Body::Granted(_) | Body::Denied(_) | Body::Released(_)
            | Body::Expired(_) | Body::Revoked(_) | Body::TeardownStarted(_) | Body::Fenced(_) | Body::Genesis(_)
            | Body::Started(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_)
            | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_) | Body::SettingsChanged(_) | Body::QuotaPut(_)
            | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::RateCardPut(_) | Body::RateCardDeleted(_)
            | Body::ChargePolicyPut(_) | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_) | Body::PlacementChanged(_)
            | Body::SensitiveChanged(_) | Body::NodeDrained(_) | Body::NodeResumed(_) | Body::NodeLost(_)
            | Body::NodeReturned(_) | Body::NodeCondition(_) | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_)
            | Body::Renewed(_) | Body::TornDown(_) | Body::Unfenced(_) | Body::ActivityReported(_)
            | Body::Preempted(_) | Body::PreemptionDecided(_) | Body::ReservationDropped(_) | Body::TokenIssued(_)
            | Body::TokenRevoked(_) | Body::AllocationSubmitted(_) | Body::AllocationDenied(_)
            | Body::AllocationPlaced(_) | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_)
            | Body::AllocationCheckpointed(_) | Body::AllocationSuspended(_) | Body::AllocationRequeued(_)
            | Body::AllocationCompleted(_) | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_)
            | Body::NodesClaimed(_) | Body::NodesReleased(_) | Body::NodeWiped(_) | Body::NodeQuarantined(_)
            | Body::QuarantineCleared(_) | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::ReservationTakenOver(_)
            | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | Body::HeadProtected(_)
            | leasehold_model::ledger_kinds!() | leasehold_model::sink_kinds!()
            | Body::Unknown { .. } => {}
        }
    }

    fn name(&mut self, kind: NamedKind, number: impl Into<u64>, name: &Name, tenant: Option<TenantNo>) {
        self.names.insert((kind, number.into()), NamedObject { name: name.clone(), tenant, deleted_at: None });
    }

    fn forget_name(&mut self, kind: NamedKind, number: impl Into<u64>, stamp: Instant) {
        if let Some(object) = self.names.get_mut(&(kind, number.into())) {
            object.deleted_at = Some(stamp);
        }
    }

    /// An object by its number, whether it still exists or not.
    pub fn named(&self, kind: NamedKind, number: impl Into<u64>) -> Option<&NamedObject> {
        self.names.get(&(kind, number.into()))
    }

    /// The deleted objects of a kind, with their numbers.
    pub fn deleted(&self, kind: NamedKind) -> impl Iterator<Item = (u64, &NamedObject)> {
        let of_kind = self.names.range((kind, 0)..=(kind, u64::MAX));
        of_kind.filter(|(_, object)| object.deleted_at.is_some()).map(|((_, number), object)| (*number, object))
    }
}
