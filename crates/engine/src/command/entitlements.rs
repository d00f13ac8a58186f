//! Entitlements and policies about the usage of app runtimes (SEMANTICS 9 and 12).

use leasehold_model::body::{Attribution, EntitlementScope, PolicyScope};
use leasehold_model::{UnitList, UnitQuantity, fields};

fields! {
    /// Sets how much of a unit may be used in a month. What was used already counts.
    pub struct PutEntitlement {
        pub of: EntitlementScope,
        pub soft: Option<UnitQuantity>,
        pub hard: Option<UnitQuantity>,
    }
}

fields! {
    /// Sets the policy of a scope, as a whole.
    pub struct PutAppPolicy {
        pub of: PolicyScope,
        pub units: Option<UnitList>,
        pub attribution: Option<Attribution>,
        pub billed_work: Option<UnitList>,
    }
}
