//! Charge policies of all sorts.

use crate::arbitrary::{instants, spans, u32s};
use leasehold_model::rate::{Charge, ChargePolicyPut, Charges};
use proptest::prelude::{Just, Strategy, prop_oneof};

pub(crate) fn charge_policies() -> impl Strategy<Value = ChargePolicyPut> {
    let charge = || prop_oneof![Just(Charge::Full), Just(Charge::None), spans().prop_map(Charge::MinusLast)];
    (u32s(), instants(), [charge(), charge(), charge(), charge()]).prop_map(
        |(policy, from, [preempted, fenced, node_lost, failed_start])| ChargePolicyPut {
            policy,
            from,
            charges: Charges { preempted, fenced, node_lost, failed_start },
        },
    )
}
