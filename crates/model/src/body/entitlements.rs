//! Entitlements: how much of a usage unit may be used in a month (SEMANTICS 12, "Usage records").

use super::usage::UsageReport;
use crate::fields;
use crate::id::{AppInstanceNo, ProjectNo, UnitNo};
use crate::month::Month;
use crate::usage::UnitQuantity;

fields! {
    /// What an entitlement is about: a unit used by a project, on an app instance, or by a project on an app instance.
    #[derive(Copy, PartialOrd, Ord, Hash)]
    pub struct EntitlementScope {
        pub project: Option<ProjectNo>,
        pub app_instance: Option<AppInstanceNo>,
        pub unit: UnitNo,
    }
}

fields! {
    /// So much may be used in each month. Beyond the soft limit an alert is raised, beyond the hard one usage is refused.
    pub struct EntitlementPut {
        pub of: EntitlementScope,
        pub soft: Option<UnitQuantity>,
        pub hard: Option<UnitQuantity>,
    }
}
fields! { pub struct EntitlementDeleted { pub of: EntitlementScope } }

fields! {
    /// More was used in a month than the soft limit of an entitlement. It is said once for each month and limit.
    pub struct EntitlementWarned { pub of: EntitlementScope, pub month: Month, pub used: UsedInMonth, pub soft: UnitQuantity }
}

fields! {
    /// Usage was refused because an entitlement was used up. Tenant, project and user in the head are those whose usage
    /// it is.
    pub struct UsageRefused {
        pub report: UsageReport,
        pub of: EntitlementScope,
        pub month: Month,
        /// Without this usage.
        pub used: UsedInMonth,
        pub hard: UnitQuantity,
    }
}

/// What was used of a unit in a month: many reports, and more than one of them may say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsedInMonth(pub u128);

impl UsedInMonth {
    /// Sums of so many projects on so many app instances stay below it.
    const MAX: u128 = 1 << 120;
}

impl std::fmt::Display for UsedInMonth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        UnitQuantity(self.0).fmt(f)
    }
}

impl crate::codec::Field for UsedInMonth {
    fn put(&self, out: &mut Vec<u8>) {
        assert!(self.0 <= Self::MAX, "usage beyond the limit");
        crate::codec::put_scaled(self.0, out);
    }
    fn get(r: &mut crate::codec::Reader<'_>) -> Result<Self, crate::codec::DecodeError> {
        let all = Self(crate::codec::get_scaled(r)?);
        Some(all).filter(|all| all.0 <= Self::MAX).ok_or(crate::codec::DecodeError::BadInteger)
    }
}
