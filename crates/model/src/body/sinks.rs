//! Sinks: where events are delivered to (SEMANTICS 13). Their secrets are never sealed.

use crate::id::{SinkNo, TenantNo};
use crate::instant::Instant;
use crate::name::Name;
use crate::url::WebAddress;
use crate::{fields, words};

words! {
    /// How deliveries are signed.
    pub enum SinkSignature {
        /// HMAC with SHA-256: both sides know the secret.
        Hmac = 1 "hmac",
        /// Ed25519: the receiver knows the public key only.
        Ed25519 = 2 "ed25519",
    }
}

words! {
    /// Why nothing is delivered to a sink any longer.
    pub enum SinkDisabledCause {
        /// The receiver answered 410 (Gone).
        Gone = 1 "gone",
        /// Its owner decided so.
        Requested = 2 "requested",
    }
}

fields! {
    /// A webhook was made or changed; it is enabled from now on. It is delivered the events since it was made. That of a
    /// tenant is delivered the events of this tenant only; one without a tenant is the operator's.
    pub struct SinkPut {
        pub sink: SinkNo,
        pub tenant: Option<TenantNo>,
        pub name: Name,
        pub url: WebAddress,
        /// The types of events, or families of them (`lease.*`); sorted, each once.
        pub events: Vec<Name>,
        pub signature: SinkSignature,
    }
}
fields! { pub struct SinkDeleted { pub sink: SinkNo } }
fields! { pub struct SinkDisabled { pub sink: SinkNo, pub cause: SinkDisabledCause } }

fields! {
    /// What was due to a sink was compared with what it has acknowledged, and what was missing was sent.
    pub struct AccountingReconciled {
        pub sink: SinkNo,
        pub since: Instant,
        pub until: Instant,
        /// Events of this time.
        pub due: u64,
        /// Those that the receiver had acknowledged before.
        pub acknowledged: u64,
        /// Those that wait for their ordinary delivery.
        pub pending: u64,
        /// Those that were missing, were sent, and are acknowledged now.
        pub sent: u64,
        /// Those that were sent and not acknowledged.
        pub failed: u64,
    }
}
