//! Commands about prepaid credit. It belongs to a project, or to a tenant if none is named.

use leasehold_model::rate::Currency;
use leasehold_model::{CreditSource, Instant, Name, PrepaidPolicy, ProjectNo, Steps, TenantNo, fields};

fields! {
    /// Adds credit.
    pub struct TopUp {
        pub tenant: TenantNo,
        pub project: Option<ProjectNo>,
        pub currency: Currency,
        pub amount: Steps,
        /// Credits of a lower number are used first.
        pub priority: u32,
        pub expires_at: Option<Instant>,
        pub source: CreditSource,
        /// Unique within the account, so that nothing is added twice.
        pub reference: Name,
    }
}

fields! {
    /// Sets when credit counts as low, and what happens then.
    pub struct PutPrepaidPolicy {
        pub tenant: TenantNo,
        pub project: Option<ProjectNo>,
        pub currency: Currency,
        pub policy: PrepaidPolicy,
    }
}

fields! {
    /// Ends a credit before it expires: what is not spent of it lapses.
    pub struct EndCredit {
        pub tenant: TenantNo,
        pub project: Option<ProjectNo>,
        pub currency: Currency,
        pub credit: u64,
    }
}
