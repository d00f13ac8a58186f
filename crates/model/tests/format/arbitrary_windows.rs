//! Records of maintenance windows with all sorts of values.

use crate::arbitrary::{instants, leases, names, nodes, u32s};
use crate::arbitrary_allocations::some_belongs_to;
use leasehold_model::body::{Body, Nodes, WindowAnnounced, WindowEnded, WindowPut, WindowStarted};
use leasehold_model::{Name, WindowNo};
use proptest::collection::btree_set;
use proptest::option;
use proptest::prelude::{BoxedStrategy, Strategy, any, prop_oneof};

fn windows() -> impl Strategy<Value = WindowNo> {
    u32s().prop_map(WindowNo)
}
fn reserved() -> impl Strategy<Value = Nodes> {
    btree_set(nodes(), 1..5).prop_map(|nodes| Nodes(nodes.into_iter().collect()))
}
fn reasons() -> impl Strategy<Value = Option<Name>> {
    option::of(names())
}

pub(crate) fn bodies() -> BoxedStrategy<Body> {
    prop_oneof![
        (windows(), reserved(), instants(), instants(), reasons())
            .prop_map(|(window, nodes, from, until, reason)| WindowPut { window, nodes, from, until, reason }.into()),
        (windows(), reserved()).prop_map(|(window, nodes)| WindowStarted { window, nodes }.into()),
        (windows(), reserved(), any::<bool>(), any::<bool>())
            .prop_map(|(window, nodes, begun, cancelled)| { WindowEnded { window, nodes, begun, cancelled }.into() }),
        (windows(), instants(), instants(), reasons(), leases(), some_belongs_to(), option::of(any::<bool>()))
            .prop_map(|(window, from, until, reason, leases, belongs_to, cancelled)| {
                WindowAnnounced { window, from, until, reason, leases, belongs_to, cancelled }.into()
            }),
    ]
    .boxed()
}
