//! Arbitrary records about deliveries.

use crate::arbitrary::{instants, names, u32s, u64s, words};
use leasehold_model::body::*;
use leasehold_model::{Body, SinkNo, TenantNo, WebAddress};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn addresses() -> BoxedStrategy<WebAddress> {
    "https?://[a-z.]{1,20}(:[0-9]{1,4})?(/[!-~]{0,40})?"
        .prop_filter_map("an address", |text| WebAddress::new(&text).ok())
        .boxed()
}

pub(crate) fn bodies() -> BoxedStrategy<Body> {
    let sinks = || u32s().prop_map(SinkNo);
    let put = (sinks(), option::of(u32s().prop_map(TenantNo)), names(), addresses(), vec(names(), 0..4));
    prop_oneof![
        (put, words(SinkSignature::ALL)).prop_map(|((sink, tenant, name, url, events), signature)| {
            Body::from(SinkPut { sink, tenant, name, url, events, signature })
        }),
        sinks().prop_map(|sink| SinkDeleted { sink }.into()),
        (sinks(), words(SinkDisabledCause::ALL)).prop_map(|(sink, cause)| SinkDisabled { sink, cause }.into()),
        (sinks(), instants(), instants(), [u64s(), u64s(), u64s(), u64s(), u64s()]).prop_map(
            |(sink, since, until, [due, acknowledged, pending, sent, failed])| {
                AccountingReconciled { sink, since, until, due, acknowledged, pending, sent, failed }.into()
            }
        ),
    ]
    .boxed()
}
