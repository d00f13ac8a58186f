//! The plain view that the simulator compares with.

use crate::language::play;
use expect_test::expect;
use leasehold_model::{ClassNo, Fraction, LeaseNo, NodeNo, QuotaNo};
use leasehold_oracle::Summary;

fn summary(history: &str) -> Summary {
    play(history).map_err(|(violation, _)| violation).expect("a legal history").summary()
}

const HISTORY: &str = "
    5 quota 1 class=1 burst=3:28:300
    5 quota 2 class=1 node=each soft=100
    10 grant 1 1:7:1 ttl=200
    20 grant 2 1:3:10 ttl=200
    30 grant 3 2:50 ttl=900
    40 release 3
    45 revoke 2 grace=60
    105 grace_ended 2
    140 fence 3
";

#[test]
fn it_says_where_everything_is() {
    let summary = summary(HISTORY);
    expect![[r#"
        CapacityLine {
            held: 7,
            tearing_down: 3,
            reserved: 0,
            fenced: 0,
            offline: 0,
            idle: 18,
            capacity: 28,
            device_use: [
                7,
                3,
                0,
                0,
            ],
        }
    "#]]
    .assert_debug_eq(&summary.capacity[&(NodeNo(1), ClassNo(1))]);
    let lines =
        format!("{:?}\n{:?}\n{:?}", summary.quotas, summary.leases[&LeaseNo(2)], summary.leases[&LeaseNo(3)].phase);
    expect![[r#"
        {QuotaNo(1): QuotaLine { limit: Burst { limit: 3, burst_limit: 28, burst_ttl: Span(300000000000) }, base: Burst { limit: 3, burst_limit: 28, burst_ttl: Span(300000000000) }, until: None, overage: Fraction { numerator: 0, denominator: 1 }, used: {(None, None, None): Fraction { numerator: 10, denominator: 1 }}, episode: Some(EpisodeLine { started_at: Instant(10000000000), below_since: None }) }, QuotaNo(2): QuotaLine { limit: Soft { limit: 100 }, base: Soft { limit: 100 }, until: None, overage: Fraction { numerator: 0, denominator: 1 }, used: {(None, None, Some(NodeNo(1))): Fraction { numerator: 10, denominator: 1 }}, episode: None }}
        LeaseLine { tenant: TenantNo(1), project: ProjectNo(1), node: NodeNo(1), class: ClassNo(1), pool: PoolNo(1), quanta: 3, devices: 2, priority: Standard, tag: Some("cost-centre-9"), granted_at: Instant(20000000000), expires_at: Instant(220000000000), phase: "tearing_down", ended_at: Some(Instant(105000000000)), limit_at: Some(Instant(205000000000)) }
        "fenced""#]].assert_eq(&lines);
}

#[test]
fn differences_are_named_line_by_line() {
    let (one, other) = (summary("10 grant 1 1:7:1"), summary("10 grant 1 1:6:1"));
    assert_eq!(one.diff(&one), "");
    expect![[r#"
        capacity (NodeNo(1), ClassNo(1)):
          - Some(CapacityLine { held: 7, tearing_down: 0, reserved: 0, fenced: 0, offline: 0, idle: 21, capacity: 28, device_use: [7, 0, 0, 0] })
          + Some(CapacityLine { held: 6, tearing_down: 0, reserved: 0, fenced: 0, offline: 0, idle: 22, capacity: 28, device_use: [6, 0, 0, 0] })
        lease LeaseNo(1):
          - Some(LeaseLine { tenant: TenantNo(1), project: ProjectNo(1), node: NodeNo(1), class: ClassNo(1), pool: PoolNo(1), quanta: 7, devices: 1, priority: Standard, tag: Some("cost-centre-9"), granted_at: Instant(10000000000), expires_at: Instant(1010000000000), phase: "active", ended_at: None, limit_at: None })
          + Some(LeaseLine { tenant: TenantNo(1), project: ProjectNo(1), node: NodeNo(1), class: ClassNo(1), pool: PoolNo(1), quanta: 6, devices: 1, priority: Standard, tag: Some("cost-centre-9"), granted_at: Instant(10000000000), expires_at: Instant(1010000000000), phase: "active", ended_at: None, limit_at: None })
    "#]].assert_eq(&one.diff(&other));
}

#[test]
fn offline_is_what_nobody_uses_of_a_node_that_takes_no_work() {
    let line = |history| summary(history).capacity[&(NodeNo(1), ClassNo(1))].clone();
    let drained = line("10 grant 1 1:7:1\n20 drain 1");
    assert_eq!((drained.held, drained.offline, drained.idle), (7, 21, 0));
    let lost = line("10 lost 1 seen=10");
    assert_eq!((lost.held, lost.offline, lost.idle), (0, 28, 0));
}

#[test]
fn closed_leases_can_be_left_out() {
    let closed = summary("10 grant 1 node=2 1:7:1\n20 release 1 closed\n30 grant 2 1:7:1");
    assert_eq!(closed.leases.len(), 2);
    assert_eq!(closed.without_closed().leases.keys().copied().collect::<Vec<_>>(), [LeaseNo(2)]);
}

#[test]
fn quotas_for_each_node_show_each() {
    let each = summary("5 quota 1 class=1 node=each hard=9\n10 grant 1 1:7:1\n11 grant 2 node=2 1:3:1");
    let used: Vec<_> = each.quotas[&QuotaNo(1)].used.clone().into_iter().collect();
    let on = |node, used| ((None, None, Some(NodeNo(node))), Fraction::new(used, 1));
    assert_eq!(used, [on(1, 7), on(2, 3)]);
}
