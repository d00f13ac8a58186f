//! Commands about sinks (SEMANTICS 13).

use leasehold_model::body::{SinkDisabledCause, SinkSignature};
use leasehold_model::{Name, SinkNo, TenantNo, WebAddress, fields};

fields! {
    /// Makes a webhook, or changes one and enables it again. Its owner cannot change.
    pub struct PutSink {
        pub sink: Option<SinkNo>,
        /// Whose events it gets; `None` for the operator's.
        pub tenant: Option<TenantNo>,
        pub name: Name,
        pub url: WebAddress,
        pub events: Vec<Name>,
        pub signature: SinkSignature,
    }
}

fields! {
    /// Nothing more is delivered to a sink until it is put again.
    #[derive(Copy)]
    pub struct DisableSink { pub sink: SinkNo, pub cause: SinkDisabledCause }
}
