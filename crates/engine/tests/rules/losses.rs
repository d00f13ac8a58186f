//! Lost nodes, and what ended on them after they were last seen (SEMANTICS 11).

use crate::support::check_on;
use expect_test::expect;
use leasehold_engine::command::{EndedClaim, EndedLease, SettleLoss};
use leasehold_engine::{Command, State};
use leasehold_model::body::{BelongsTo, Correlation};
use leasehold_model::{LeaseNo, ProjectNo, TenantNo, UserNo};

/// `n1` confirms teardowns, `n2` and `n3` need no confirmation.
const STAGE: &str = "
    0 op class core kind=cpu per=1
    0 op pool main
    0 op node n1 core 10
    0 op node n2 immediate core 10
    0 op node n3 immediate core 10
    0 op tenant a max=guaranteed
    0 op tenant b
    0 op project a/a
    0 op project b/b
    0 op user a/ada
";

/// For `bad_input`: the codes of the refusals below.
pub(crate) const CODES: &[&str] = &["seen_since", "no_open_loss"];

/// The command by which the daemon settles a loss, the first open one unless another is given. Closed leases count as
/// those of the first tenant.
pub(crate) fn settlement(
    state: &State,
    leases: &[LeaseNo],
    loss: Option<u64>,
    claim: Option<u64>,
    complete: bool,
) -> Command {
    let first = state.open_losses().next().map_or(0, |(loss, _)| loss);
    let (tenant, project, user) = (TenantNo(0), ProjectNo(0), UserNo(0));
    let ended = |lease: &LeaseNo| match state.lease(*lease).map(|found| found.holder()) {
        Some(of) => EndedLease {
            lease: *lease,
            tenant: of.tenant,
            project: of.project,
            user: of.user,
            workload: of.workload,
            belongs_to: of.belongs_to,
        },
        None => {
            let belongs_to = BelongsTo { allocation: None, correlation: Correlation::Derived(lease.0) };
            EndedLease { lease: *lease, tenant, project, user: None, workload: None, belongs_to }
        }
    };
    Command::SettleLoss(SettleLoss {
        loss: loss.unwrap_or(first),
        leases: leases.iter().map(ended).collect(),
        claims: claim.map(|claim| EndedClaim { claim, tenant, project, user }).into_iter().collect(),
        complete,
    })
}

/// For `laws`: settles an open loss, with all leases that are still known there and one that is not.
pub(crate) fn some_settlement(state: &State) -> Option<Command> {
    let (loss, open) = state.open_losses().next()?;
    let known = state.leases_on(open.node).into_iter().filter(|lease| !lease.phase.is_held());
    let mut leases: Vec<LeaseNo> = known.map(|lease| lease.number).collect();
    let closed = (0..u64::MAX).map(LeaseNo).find(|number| state.lease(*number).is_none()).expect("not all are live");
    leases.push(closed);
    Some(settlement(state, &leases, Some(loss), loss.is_multiple_of(2).then_some(loss), !loss.is_multiple_of(3)))
}

#[test]
fn what_ended_after_a_node_was_last_seen_is_named() {
    check_on(
        STAGE,
        "
        0 a grant core 1 node=n2 ttl=100s
        0 a grant core 2 node=n2 ttl=200s
        0 b grant core 3 node=n2 ttl=300s
        0 a grant core 4 node=n1 ttl=50s
        50 op beat
        150 op beat
        250 op lose n2 seen=90
        251 op settle #0 part
        252 op settle #1
        253 op settle #1
        254 op lose n3 seen=90
        255 op settle
        ",
        expect![[r#"
            0 a granted #0 core 1 on n2 to 100
            0 a granted #1 core 2 on n2 to 200
            0 b granted #2 core 3 on n2 to 300
            0 a granted #3 core 4 on n1 to 50
            50 a expired #3
            50 - journal.heartbeat
            150 a expired #0, closed since 100
            150 - journal.heartbeat
            250 a fenced #3 since 170
            250 a expired #1, closed since 200
            250 - lost n2, last seen 90
            250 b revoked #2, grace 0s (node_lost)
            250 b teardown of #2, grace_ended, closed (node_lost) since 90
            251 a billed to last seen only: #0 since 90
            252 a billed to last seen only: #1 since 90
            252 - loss of n2 settled
            253 refused: no_open_loss
            254 - lost n3, last seen 90
            255 refused: no_open_loss
        "#]],
    );
}

#[test]
fn a_node_is_not_lost_before_its_last_sign_of_life() {
    check_on(
        STAGE,
        "
        10 op agent n1 instance=7
        11 op lose n1 seen=9
        12 a grant core 4 node=n1 ttl=50s
        20 a release #0
        30 op confirm n1 #0
        31 op lose n1 seen=29
        32 op lose n1 seen=30
        40 a grant core 4 node=n2 ttl=50s
        41 a release #1
        42 op lose n2 seen=0
        43 op settle #1 loss=3
        44 op settle #9
        45 op settle #1
        ",
        expect![[r#"
            10 - agent 7 on n1 as generation 1
            11 refused: seen_since
            12 a granted #0 core 4 on n1 to 62
            20 a released #0
            30 a torn down #0 on n1
            31 refused: seen_since
            32 - lost n1, last seen 30
            40 a granted #1 core 4 on n2 to 90
            41 a released #1, closed
            42 - lost n2, last seen 0
            43 refused: no_open_loss
            44 refused: lease_elsewhere
            45 a billed to last seen only: #1 since 0
            45 - loss of n2 settled
        "#]],
    );
}

#[test]
fn a_lease_that_is_still_torn_down_ends_when_its_node_was_last_seen() {
    check_on(
        STAGE,
        "
        0 a grant core 4 node=n1 ttl=50s
        20 a release #0
        30 op lose n1 seen=10
        31 op settle #0
        ",
        expect![[r#"
            0 a granted #0 core 4 on n1 to 50
            20 a released #0
            30 - lost n1, last seen 10
            31 a billed to last seen only: #0 since 10
            31 - loss of n1 settled
        "#]],
    );
}

#[test]
fn a_claim_that_ended_after_its_node_was_last_seen_is_named() {
    check_on(
        STAGE,
        "
        0 a claim n1 user=a/ada
        20 a giveback n1 user=a/ada
        30 op lose n1 seen=10
        31 op settle claim=12
        ",
        expect![[r#"
            0 a claimed n1
            20 a gave back n1
            30 - lost n1, last seen 10
            31 a claim of n1 billed to last seen only since 10
            31 - loss of n1 settled
        "#]],
    );
}
