//! Tokens and agents: what may be sealed, and which answers are foretold.

use crate::language::{check, play};
use expect_test::{Expect, expect};
use leasehold_model::{Instant, Level, Name, NodeNo, Role, TenantNo, TenantSettingsChange, TokenNo, TokenScope};
use leasehold_oracle::{Caller, Wish};

#[test]
fn nothing_is_sealed_under_a_token_that_is_not_live() {
    check("5 heartbeat token=1", "token");
    check("5 token 1 role=operator\n6 heartbeat token=1", "ok");
    check("5 token 1 role=operator expires=10\n9 heartbeat token=1", "ok");
    check("5 token 1 role=operator expires=10\n10 heartbeat token=1", "token");
    check("5 token 1 role=operator\n6 withdraw 1\n7 heartbeat token=1", "token");
    check("5 token 1 role=node_agent node=2\n6 delete node 2\n7 heartbeat token=1", "token");
    check("5 token 1 role=tenant_admin tenant=2 user=1", "token-scope");
    check("5 token 1 role=tenant_admin tenant=1 user=1\n6 delete user 1\n7 heartbeat token=1", "token");
    check("5 token 1 role=project_member tenant=1 project=3\n6 delete project 3\n7 heartbeat token=1", "token");
    check("5 token 1 role=billing_authority tenant=2\n6 delete tenant 2\n7 heartbeat token=1", "token");
    // A command is decided under its token; what it does to the token comes after.
    check("5 token 1 role=tenant_admin tenant=1\n6 withdraw 1 tenant=1 token=1", "ok");
}

#[test]
fn scopes_fit_their_roles() {
    check("5 token 1 role=operator tenant=1", "token-scope");
    check("5 token 1 role=tenant_admin", "token-scope");
    check("5 token 1 role=project_member tenant=1 project=2", "token-scope");
    check("5 token 1 role=app_operator tenant=1 apps=1:2", "ok");
    check("5 token 1 role=app_operator tenant=1 apps=2:1", "token-scope");
    check("5 token 1 role=app_operator tenant=1 apps=2:2", "token-scope");
    check("5 token 1 role=app_operator tenant=1", "token-scope");
    check("5 token 1 role=node_agent node=9", "token-scope");
    check("5 token 1 role=billing_authority", "ok");
}

#[test]
fn tokens_are_issued_once_and_in_time() {
    check("5 token 1 role=operator\n6 token 1 role=operator hash=2", "number");
    check("5 token 1 role=operator\n6 token 2 role=operator", "token-twice");
    check("5 token 1 role=operator expires=6\n6 token 2 role=operator", "ok");
    check("5 token 1 role=operator expires=6\n6 withdraw 1", "unknown-token");
    check("5 token 1 role=operator\n6 withdraw 1\n6 withdraw 1", "unknown-token");
    check("5 token 1 role=operator\n6 withdraw 1\n6 token 2 role=auditor", "ok");
    check("5 token 1 role=operator expires=5", "token-expiry");
    check("5 token 1 role=tenant_admin tenant=1\n6 withdraw 1 tenant=2", "token-tenant");
}

#[test]
fn generations_count_up_and_conditions_change() {
    check("5 agent 1 generation=2", "generation");
    check("5 agent 1 generation=1\n6 agent 1 generation=2\n7 detach 1\n8 agent 1 generation=3", "ok");
    check("5 agent 1 generation=1\n7 detach 1\n8 agent 1 generation=1", "generation");
    check("5 detach 1", "node-already");
    check("5 agent 9 generation=1", "unknown-node");
    check("5 condition 1 load=high", "condition");
    check("5 agent 1 generation=1\n6 condition 1", "condition");
    check("5 agent 1 generation=1\n6 condition 1 load=high\n7 condition 1 load=high", "condition");
    check("5 agent 1 generation=1\n6 condition 1 load=high\n7 condition 1 load=high throttled", "ok");
    check("5 quota 1 measure=nodes node=each hard=3", "quota-limit");
}

#[track_caller]
fn foretold(history: &str, caller: Caller, wish: &Wish, expected: Expect) {
    let oracle = play(history).map_err(|(violation, _)| violation).expect("a legal history");
    expected.assert_eq(&format!("{:?}", oracle.foretell(&caller, wish, Instant::from_secs(100))));
}

fn issue(role: Role, tenant: Option<u32>) -> Wish {
    let scope = TokenScope { tenant: tenant.map(TenantNo), ..TokenScope::default() };
    Wish::IssueToken { name: Name::new("t").expect("a name"), hash: [1; 32], role, scope, expires_at: None }
}

#[test]
fn refusals_are_foretold() {
    let operator = Caller::default();
    let of = |tenant: u32| Caller { tenant: Some(TenantNo(tenant)), ..operator };
    let under = |token: u32| Caller { token: Some(TokenNo(token)), ..operator };
    foretold("", under(1), &Wish::Other, expect![[r#"Refused("token_not_live")"#]]);
    foretold("5 token 1 role=operator", under(1), &Wish::Other, expect!["Open"]);
    foretold("", Caller { keyed: true, ..of(9) }, &Wish::Other, expect![[r#"Refused("unknown_tenant")"#]]);
    foretold("", of(1), &issue(Role::Operator, None), expect![[r#"Refused("bad_token_scope")"#]]);
    foretold("", of(1), &issue(Role::TenantAdmin, Some(2)), expect![[r#"Refused("bad_token_scope")"#]]);
    foretold("", operator, &issue(Role::TenantAdmin, Some(9)), expect![[r#"Refused("unknown_tenant")"#]]);
    let one = "5 token 1 role=billing_authority tenant=1 hash=1";
    foretold(one, operator, &issue(Role::Operator, None), expect![[r#"Refused("token_exists")"#]]);
    foretold(one, of(2), &Wish::RevokeToken(TokenNo(1)), expect![[r#"Refused("unknown_token")"#]]);
    foretold(one, of(1), &Wish::RevokeToken(TokenNo(1)), expect![[r#"Refused("bad_token_scope")"#]]);
    foretold(
        one,
        operator,
        &Wish::RevokeToken(TokenNo(1)),
        expect!["Sealed { tenant: Some(TenantNo(1)), bodies: [TokenRevoked(TokenRevoked { token: TokenNo(1) })] }"],
    );
}

#[test]
fn what_agents_may_say_is_foretold() {
    let (node, operator) = (NodeNo(1), Caller::default());
    let agent = "5 agent 1 generation=1 instance=7\n6 agent 1 generation=2 instance=7";
    let register = |instance, takeover| Wish::RegisterAgent { node, instance, takeover };
    foretold(agent, operator, &register(8, false), expect![[r#"Refused("agent_already_running")"#]]);
    foretold(
        agent,
        operator,
        &register(8, true),
        expect![
            "Sealed { tenant: None, bodies: [AgentRegistered(AgentRegistered { node: NodeNo(1), generation: 3, instance: 8 })] }"
        ],
    );
    let confirm = |generation| Wish::ConfirmTeardown { node, generation };
    foretold(agent, operator, &confirm(Some(1)), expect![[r#"Refused("stale_generation")"#]]);
    foretold(agent, operator, &confirm(Some(2)), expect!["Open"]);
    foretold("", operator, &confirm(Some(1)), expect![[r#"Refused("stale_generation")"#]]);
    foretold("", operator, &confirm(None), expect!["Open"]);
    let (load, errors, throttled) = (Level::Normal, Level::Normal, false);
    let report = |generation| Wish::ReportCondition { node, generation, load, errors, throttled };
    foretold(agent, operator, &report(1), expect![[r#"Refused("stale_generation")"#]]);
    foretold(agent, operator, &report(2), expect![[r#"Refused("condition_unchanged")"#]]);
    foretold("", operator, &Wish::DetachAgent(node), expect![[r#"Refused("node_already")"#]]);
}

#[test]
fn what_an_update_seals_is_foretold() {
    let operator = Caller::default();
    let update = |max_nodes, max_leases| Wish::UpdateTenant {
        tenant: TenantNo(2),
        max_nodes,
        max_leases,
        max_concurrent_allocations: None,
        budgets: Box::default(),
        settings: TenantSettingsChange {
            name: None,
            accounting_tag: None,
            max_priority: None,
            max_evicted_quanta_per_hour: None,
            ..TenantSettingsChange::default()
        },
    };
    let kinds = |history: &str, wish: &Wish| {
        let oracle = play(history).map_err(|(violation, _)| violation).expect("a legal history");
        match oracle.foretell(&operator, wish, Instant::from_secs(100)) {
            leasehold_oracle::Foretold::Sealed { bodies, .. } => {
                bodies.iter().map(leasehold_model::Body::word).collect::<Vec<_>>().join(" ")
            }
            other => format!("{other:?}"),
        }
    };
    assert_eq!(kinds("", &update(None, None)), "tenant.put");
    assert_eq!(kinds("", &update(Some(None), Some(None))), "tenant.put");
    assert_eq!(kinds("", &update(Some(Some(1)), Some(Some(2)))), "quota.updated quota.updated");
    let both = "5 quota 1 tenant=2 measure=nodes hard=1\n5 quota 2 tenant=2 measure=leases hard=1";
    assert_eq!(kinds(both, &update(Some(None), Some(Some(2)))), "quota.deleted quota.updated");
    // A quota on part of the tenant is another one.
    assert_eq!(kinds("5 quota 1 tenant=2 class=1 measure=leases hard=1", &update(None, Some(None))), "tenant.put");
}
