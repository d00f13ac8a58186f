//! Whose record it is. One function decides it, from the record and from who has claimed which node.

use crate::fold::Fold;
use crate::kinds::{allocation_kinds, inventory_kinds, lease_kinds};
use leasehold_model::body::{PolicyScope, SharingPut};
use leasehold_model::{AppInstanceNo, Body, ControlPlaneScope, NodeNo, Record, TenantNo};

/// Whose bill a record can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// That of one tenant.
    Tenant(TenantNo),
    /// Those of all tenants.
    Common,
    Nobody,
}

/// What a kind of record is about, if its head names no tenant.
enum About {
    /// All bills.
    Common,
    Tenant(TenantNo),
    Node(NodeNo),
    Other,
}

impl Fold {
    /// Whose record it is, before it is taken.
    ///
    /// The records on which all bills depend come first, whoever is named in their heads: an app instance of the platform
    /// is owned by some tenant, and used by others.
    #[inline]
    pub fn concern(&self, record: &Record) -> Concern {
        let tenant = match (self.about(&record.body), record.identity.tenant) {
            (About::Common, _) => return Concern::Common,
            (_, Some(tenant)) | (About::Tenant(tenant), None) => Some(tenant),
            (About::Node(node), None) => self.claimed.get(&node).copied(),
            (About::Other, None) => None,
        };
        tenant.map_or(Concern::Nobody, Concern::Tenant)
    }

    /// Whether it is an app instance that all tenants use.
    pub(crate) fn is_of_platform(&self, app: AppInstanceNo) -> bool {
        self.common.app_instances.contains_key(&app)
    }

    fn about(&self, body: &Body) -> About {
        match body {
            Body::ClassPut(_)
            | Body::PoolPut(_)
            | Body::PoolDeleted(_)
            | Body::RateCardPut(_)
            | Body::RateCardDeleted(_)
            | Body::ChargePolicyPut(_)
            | Body::UsageUnitPut(_)
            | Body::UnitPricePut(_)
            | Body::AppTypePut(_)
            | Body::AppTypeDeleted(_)
            | Body::LedgerOpened(_) => About::Common,
            Body::AppInstancePut(put) if put.scope == ControlPlaneScope::Platform => About::Common,
            // A policy of the operator for all tenants, or for a runtime that all of them use.
            Body::SharingPut(SharingPut { of: PolicyScope { tenant: None, .. }, .. }) => About::Common,
            Body::SharingPut(put) if put.of.app_instance.is_some_and(|app| self.is_of_platform(app)) => About::Common,
            Body::AppInstanceDeleted(gone) if self.is_of_platform(gone.app_instance) => About::Common,
            Body::TenantPut(put) => About::Tenant(put.tenant),
            Body::ProjectPut(put) => About::Tenant(put.tenant),
            Body::UserPut(put) => About::Tenant(put.tenant),
            Body::NodeDrained(drained) => About::Node(drained.node),
            Body::NodeResumed(resumed) => About::Node(resumed.node),
            Body::NodeLost(lost) => About::Node(lost.node),
            Body::NodeReturned(returned) => About::Node(returned.node),
            leasehold_model::setup_kinds!()
            | leasehold_model::ledger_kinds!()
            | lease_kinds!()
            | allocation_kinds!()
            | inventory_kinds!() => About::Other,
        }
    }
}
