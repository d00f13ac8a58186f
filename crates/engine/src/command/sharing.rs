//! Sharing the cost of control planes (SEMANTICS 9 and 12).

use leasehold_model::body::{PolicyScope, Sharing};
use leasehold_model::rate::Currency;
use leasehold_model::{AppInstanceNo, fields};

fields! {
    /// Sets the sharing policy of a scope, as a whole; but a tenant leaves what operators decide as it is.
    pub struct PutSharing {
        pub of: PolicyScope,
        pub control_plane_billable: Option<bool>,
        pub distributable: Option<bool>,
        pub sharing: Option<Sharing>,
    }
}

fields! {
    /// Divides what a control plane cost in the month that is being closed.
    #[derive(Copy)]
    pub struct ShareCost { pub app_instance: AppInstanceNo, pub currency: Currency }
}
