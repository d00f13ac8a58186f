//! Allocations of all sorts, what is evicted for them, budgets, and nodes in
//! a user's custody.

use crate::arbitrary::{instants, leases, members, names, priorities, profiles, spans, u32s, u64s, words};
use leasehold_model::body::*;
use leasehold_model::policy::TeardownCause;
use leasehold_model::*;
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::{BoxedStrategy, Strategy, any, prop_oneof};

fn numbers() -> impl Strategy<Value = AllocationNo> {
    u64s().prop_map(AllocationNo)
}
fn asks() -> impl Strategy<Value = Asks> {
    vec((any::<u16>().prop_map(ClassNo), u64s().prop_map(Quanta)), 0..=16).prop_map(Into::into)
}
fn ends() -> impl Strategy<Value = AttemptEnd> {
    words(AttemptEnd::ALL)
}

fn specs() -> impl Strategy<Value = AllocationSpec> {
    let what = (option::of(u32s().prop_map(PoolNo)), asks(), u32s(), priorities());
    let how = (option::of(spans()), option::of(spans()), any::<[bool; 4]>(), vec((names(), names()), 0..=16));
    let domains = (option::of(words(Domain::ALL)), option::of(words(Domain::ALL)), option::of(profiles()));
    let ids = (option::of(any::<u128>()), option::of(u64s()), option::of(u64s()), option::of(u32s()));
    (what, how, domains, ids).prop_map(|((pool, asks, replicas, priority), how, (together, apart, profile), ids)| {
        let (walltime, ttl, [staged, requeue, sensitive, control_plane], labels) = how;
        let (correlation, app, attachment, source) = ids;
        AllocationSpec {
            pool,
            asks,
            replicas,
            priority,
            walltime,
            ttl,
            staged,
            requeue,
            labels,
            together,
            apart,
            profile,
            sensitive,
            control_plane,
            correlation,
            app_instance: app.map(AppInstanceNo),
            attachment: attachment.map(AttachmentNo),
            source_project: source.map(ProjectNo),
        }
    })
}

fn budgets() -> impl Strategy<Value = Budgets> {
    let hours = || option::of(u64s());
    (hours(), hours(), u32s(), option::of(u32s()), hours(), hours()).prop_map(
        |(gpu_hours, node_hours, period_days, fair_share, burst_allowance, max_pending)| Budgets {
            gpu_hours,
            node_hours,
            period_days,
            fair_share,
            burst_allowance,
            max_pending,
        },
    )
}

fn lives() -> BoxedStrategy<Body> {
    fn body<T: Into<Body>>(body: T) -> Body {
        body.into()
    }
    prop_oneof![
        (specs(), option::of(words(WhenOverQuota::ALL)), option::of(u32s())).prop_map(
            |(spec, when_over_quota, node)| body(AllocationSubmitted { spec, when_over_quota, node: node.map(NodeNo) })
        ),
        (numbers(), u32s(), u64s(), u32s(), u32s()).prop_map(|(allocation, attempt, first, leases, rules_version)| {
            body(AllocationPlaced { allocation, attempt, first_lease: LeaseNo(first), leases, rules_version })
        }),
        numbers().prop_map(|allocation| body(AllocationStarted { allocation })),
        numbers().prop_map(|allocation| body(AllocationCheckpointing { allocation })),
        (numbers(), u64s(), spans()).prop_map(|(allocation, bytes, took)| body(AllocationCheckpointed {
            allocation,
            bytes,
            took
        })),
        (numbers(), ends()).prop_map(|(allocation, end)| body(AllocationSuspended { allocation, end })),
        (numbers(), ends()).prop_map(|(allocation, end)| body(AllocationRequeued { allocation, end })),
        (numbers(), option::of(u32s()), u64s()).prop_map(|(allocation, exit_status, storage_written)| body(
            AllocationCompleted { allocation, exit_status, storage_written }
        )),
        (numbers(), ends(), option::of(u32s()), u64s()).prop_map(|(allocation, end, exit_status, storage_written)| {
            body(AllocationFailed { allocation, end, exit_status, storage_written })
        }),
        numbers().prop_map(|allocation| body(AllocationCancelled { allocation })),
        (numbers(), any::<bool>(), option::of(names())).prop_map(|(allocation, by_operator, reason)| {
            body(AllocationHoldSet { allocation, by_operator, reason })
        }),
        numbers().prop_map(|allocation| body(AllocationHoldCleared { allocation })),
        (numbers(), specs()).prop_map(|(allocation, spec)| body(AllocationChanged { allocation, spec })),
    ]
    .boxed()
}

fn decisions() -> BoxedStrategy<Body> {
    let place = || (u32s(), members()).prop_map(|(node, members)| ReplicaPlacement { node: NodeNo(node), members });
    prop_oneof![
        (numbers(), priorities(), u32s(), vec(place(), 1..5), leases()).prop_map(
            |(allocation, priority, rules_version, places, victims)| {
                PreemptionDecided { allocation, priority, rules_version, places, victims }.into()
            }
        ),
        numbers().prop_map(|allocation| ReservationDropped { allocation }.into()),
        (
            (numbers(), priorities(), u32s(), vec(place(), 1..5)),
            (option::of(leases()), option::of(leases()), btree_set(numbers(), 1..9)),
        )
            .prop_map(|((allocation, priority, rules_version, places), (victims, awaited, dropped))| {
                let (victims, awaited) = (victims.unwrap_or_default(), awaited.unwrap_or_default());
                let dropped = dropped.into_iter().collect();
                ReservationTakenOver { allocation, priority, rules_version, places, victims, awaited, dropped }.into()
            }),
        (u32s(), budgets()).prop_map(|(tenant, budgets)| BudgetsPut { tenant: TenantNo(tenant), budgets }.into()),
        (specs(), u32s(), option::of(words(WhenOverQuota::ALL))).prop_map(|(spec, rules_version, when_over_quota)| {
            let cause = DenyCause::Quota { quota: QuotaNo(5), used: 195, requested: 10, limit: 200 };
            AllocationDenied { spec, rules_version, cause, when_over_quota }.into()
        }),
        (leases(), words(TeardownCause::ALL), any::<bool>(), belongs_to()).prop_map(
            |(leases, cause, closed, belongs_to)| TeardownStarted { leases, cause, closed, belongs_to }.into()
        ),
        (u32s().prop_map(NodeNo), leases(), belongs_to()).prop_map(|(node, leases, belongs_to)| TornDown {
            node,
            leases,
            belongs_to
        }
        .into()),
        (leases(), belongs_to(), option::of(names())).prop_map(|(leases, belongs_to, reason)| Unfenced {
            leases,
            belongs_to,
            reason
        }
        .into()),
    ]
    .boxed()
}

/// Nodes that are claimed, released and wiped.
fn custody() -> BoxedStrategy<Body> {
    let nodes = || btree_set(u32s().prop_map(NodeNo), 1..9).prop_map(|nodes| nodes.into_iter().collect::<Nodes>());
    let node = || u32s().prop_map(NodeNo);
    prop_oneof![
        option::of(u64s()).prop_map(|pool_size| SensitiveChanged { pool_size }.into()),
        (nodes(), option::of(instants())).prop_map(|(nodes, until)| NodesClaimed { nodes, until }.into()),
        (nodes(), u64s(), u32s()).prop_map(|(nodes, number, rules_version)| {
            HeadProtected { allocation: AllocationNo(number), rules_version, nodes }.into()
        }),
        nodes().prop_map(|nodes| NodesReleased { nodes, claim: None }.into()),
        node().prop_map(|node| NodeWiped { node, claim: None }.into()),
        (node(), words(QuarantineCause::ALL))
            .prop_map(|(node, cause)| NodeQuarantined { node, cause, claim: None }.into()),
        node().prop_map(|node| QuarantineCleared { node }.into()),
    ]
    .boxed()
}

/// What ended on lost nodes after they were last seen.
fn losses() -> BoxedStrategy<Body> {
    let node = || u32s().prop_map(NodeNo);
    prop_oneof![
        (u64s(), leases(), some_belongs_to()).prop_map(|(loss, leases, belongs_to)| EndsCorrected {
            loss,
            leases,
            belongs_to
        }
        .into()),
        (u64s(), node(), u64s()).prop_map(|(loss, node, claim)| ClaimEndCorrected { loss, node, claim }.into()),
        (u64s(), node()).prop_map(|(loss, node)| LossSettled { loss, node }.into()),
    ]
    .boxed()
}

pub(crate) fn bodies() -> BoxedStrategy<Body> {
    prop_oneof![8 => lives(), 4 => decisions(), 2 => custody(), 1 => losses()].boxed()
}

/// What the leases of a record belong to.
pub(crate) fn belongs_to() -> impl Strategy<Value = Option<BelongsTo>> {
    option::of(some_belongs_to())
}
pub(crate) fn some_belongs_to() -> impl Strategy<Value = BelongsTo> {
    let correlation =
        prop_oneof![any::<u128>().prop_map(Correlation::Given), any::<u64>().prop_map(Correlation::Derived)];
    (option::of(any::<u64>()), correlation).prop_map(|(allocation, correlation)| BelongsTo {
        allocation: allocation.map(leasehold_model::AllocationNo),
        correlation,
    })
}
