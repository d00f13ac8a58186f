//! Policies about the usage of app runtimes (SEMANTICS 9).

use crate::app::UnitList;
use crate::id::{AppInstanceNo, AppTypeNo, TenantNo};
use crate::{fields, words};

words! {
    /// Whose the usage of a project's own runtime is.
    pub enum Attribution {
        /// That of the project that owns the runtime.
        Owner = 1 "owner",
        /// That of the project that asked for it, within the tenant.
        Caller = 2 "caller",
    }
}

fields! {
    /// What a policy is about: an app, an app as a tenant uses it, or one app instance.
    #[derive(Copy, PartialOrd, Ord, Hash)]
    pub struct PolicyScope {
        pub app_type: AppTypeNo,
        pub tenant: Option<TenantNo>,
        pub app_instance: Option<AppInstanceNo>,
    }
}

fields! {
    /// A policy from now on. What it leaves open is as the policy for the next wider scope says.
    pub struct AppPolicyPut {
        pub of: PolicyScope,
        /// Counted from 1 for each scope.
        pub version: u32,
        /// The units that are accepted, among those of the app.
        pub units: Option<UnitList>,
        pub attribution: Option<Attribution>,
        /// The units in which work on a shared runtime is charged to the project that submitted it, and credited to the
        /// one that pays for the capacity.
        pub billed_work: Option<UnitList>,
    }
}
