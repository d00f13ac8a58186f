//! Samples about deliveries.

use super::{NEW_YEAR, name};
use leasehold_model::body::*;
use leasehold_model::*;

pub(super) fn bodies() -> Vec<Body> {
    vec![
        SinkPut {
            sink: SinkNo(0),
            tenant: None,
            name: name("biller"),
            url: WebAddress::new("https://bills.example.com/hook").expect("an address"),
            events: vec![name("allocation.*"), name("node.claimed")],
            signature: SinkSignature::Hmac,
        }
        .into(),
        SinkPut {
            sink: SinkNo(7),
            tenant: Some(TenantNo(300)),
            name: name("own"),
            url: WebAddress::new("http://10.0.0.7:8080/").expect("an address"),
            events: vec![name("*")],
            signature: SinkSignature::Ed25519,
        }
        .into(),
        SinkDisabled { sink: SinkNo(7), cause: SinkDisabledCause::Gone }.into(),
        SinkDeleted { sink: SinkNo(7) }.into(),
        AccountingReconciled {
            sink: SinkNo(0),
            since: NEW_YEAR,
            until: Instant(NEW_YEAR.0 + 86_400_000_000_000),
            due: 1000,
            acknowledged: 900,
            pending: 50,
            sent: 49,
            failed: 1,
        }
        .into(),
    ]
}
