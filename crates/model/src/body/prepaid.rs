//! Prepaid credit (SEMANTICS 12). It belongs to the project in the record's head or, if there is none, to its tenant.

use crate::fields;
use crate::instant::Instant;
use crate::ledger::{InvoiceNo, Month, Steps};
use crate::name::Name;
use crate::prepaid::{CreditSource, Funds, PrepaidAction, PrepaidPolicy, PrepaidState};
use crate::rate::Currency;

fields! {
    /// Credit was added.
    pub struct PrepaidToppedUp {
        pub currency: Currency,
        /// Its number within the account, from 1.
        pub credit: u64,
        pub amount: Steps,
        /// Credits of a lower number are used first.
        pub priority: u32,
        /// What is not spent by then lapses.
        pub expires_at: Option<Instant>,
        pub source: CreditSource,
        /// Unique within the account.
        pub reference: Name,
    }
}

fields! {
    /// When credit counts as low, and what happens then.
    pub struct PrepaidPolicyPut { pub currency: Currency, pub policy: PrepaidPolicy }
}

fields! {
    /// What was not spent of a credit is gone.
    pub struct PrepaidLapsed { pub currency: Currency, pub credit: u64, pub amount: Steps }
}

fields! {
    /// Credit went from one state to another.
    pub struct PrepaidChanged {
        pub currency: Currency,
        pub from: PrepaidState,
        pub to: PrepaidState,
        /// What is left of it, without what is reserved.
        pub balance: Funds,
        /// What happens from now on.
        pub action: PrepaidAction,
    }
}

fields! {
    /// Credit pays what was posted for a month.
    pub struct PrepaidApplied {
        pub currency: Currency,
        pub invoice: InvoiceNo,
        pub month: Month,
        /// What is taken from the credit; negative if it is given back.
        pub amount: Steps,
        /// By how much the invoice is lower. It differs by the rounding of the invoice.
        pub credited: Steps,
        /// What was posted and is not covered. The invoice asks for it, and it is no longer counted as spent.
        pub uncovered: Steps,
    }
}
