//! Tokens: who may have which, and how long anything is done under one.

use crate::support::{STAGE, Story, check, check_on, with_instances};
use expect_test::expect;
use leasehold_engine::command::IssueToken;
use leasehold_engine::{Command, Engine, Refusal, Request, State};
use leasehold_model::limits::{TOKENS_MAX, TOKENS_PER_TENANT_MAX};
use leasehold_model::{
    AppInstanceNo, Batch, Identity, Instant, Name, NodeNo, Role, TenantNo, TokenNo, TokenScope, UserNo,
};

/// For `commands`: a scope that mostly fits the role.
pub(crate) fn some_scope(role: Role, bits: u8, state: &State) -> TokenScope {
    let tenant = TenantNo(u32::from(bits & 3));
    let project = state.projects().find(|(_, project)| project.tenant == tenant).map(|(number, _)| number);
    let of_tenant = matches!(role, Role::TenantAdmin | Role::ProjectMember | Role::AppOperator);
    TokenScope {
        tenant: (of_tenant || bits > 250).then_some(tenant),
        project: project.filter(|_| role == Role::ProjectMember),
        user: (bits & 0x1c == 0 && role == Role::TenantAdmin).then_some(UserNo(0)),
        node: (role == Role::NodeAgent).then_some(NodeNo(u32::from(bits & 7))),
        app_instances: if role == Role::AppOperator { vec![AppInstanceNo(u64::from(bits))] } else { Vec::new() },
    }
}

#[test]
fn nothing_is_done_under_a_token_that_is_not_live() {
    check(
        "
        0 op issue root role=operator
        1 a grant core 1 token=0
        2 a grant core 1 token=1
        3 op withdraw 0
        4 a grant core 1 token=0
        4 op beat token=0
        4 show tokens
        ",
        expect![[r#"
            0 - token-0 root issued to operator
            1 a granted #0 core 1 on n1 to 3601
            2 refused: token_not_live
            3 - token-0 revoked
            4 refused: token_not_live
            4 refused: token_not_live
        "#]],
    );
}

/// The key is not looked up for one who is not let in: an answer would tell what was done under it.
#[test]
fn a_dead_token_is_refused_before_its_idempotency_key() {
    check(
        "
        0 op issue ci role=tenant_admin tenant=a expires=10
        1 a grant core 1 token=0 key=k
        9.999999999 a grant core 1 token=0 key=k
        10 a grant core 1 token=0 key=k
        10 a grant core 2 token=0 key=k
        ",
        expect![[r#"
            0 a token-0 ci issued to tenant_admin
            1 a granted #0 core 1 on n1 to 3601
            9.999999999 repeated: record 12
            10 refused: token_not_live
            10 refused: token_not_live
        "#]],
    );
}

#[test]
fn tokens_die_with_what_they_are_confined_to() {
    check(
        "
        0 op project a/p
        0 op user a/u
        0 op node n3 core 1
        0 op issue project role=project_member tenant=a project=a/p
        0 op issue user role=tenant_admin tenant=a of=a/u
        0 op issue node role=node_agent node=n3
        0 op issue tenant role=billing_authority tenant=a
        0 op issue other role=tenant_admin tenant=b
        1 op delete project a/p
        1 op delete node n3
        1 show tokens
        2 op delete user a/u
        2 show tokens
        3 op delete tenant a
        3 show tokens
        4 op beat token=3
        4 op withdraw 3
        4 b grant core 1 token=4
        ",
        expect![[r#"
            0 a project.put
            0 a user.put
            0 - node.put
            0 a token-0 project issued to project_member
            0 a token-1 user issued to tenant_admin
            0 - token-2 node issued to node_agent
            0 a token-3 tenant issued to billing_authority
            0 b token-4 other issued to tenant_admin
            1 a project.deleted
            1 - node.deleted
              token-0 project project_member dead
              token-1 user tenant_admin live
              token-2 node node_agent dead
              token-3 tenant billing_authority live
              token-4 other tenant_admin live
            2 a user.deleted
              token-0 project project_member dead
              token-1 user tenant_admin dead
              token-2 node node_agent dead
              token-3 tenant billing_authority live
              token-4 other tenant_admin live
            3 tenant-0 tenant.deleted
              token-0 project project_member dead
              token-1 user tenant_admin dead
              token-2 node node_agent dead
              token-3 tenant billing_authority dead
              token-4 other tenant_admin live
            4 refused: token_not_live
            4 tenant-0 token-3 revoked
            4 b granted #0 core 1 on n1 to 3604
        "#]],
    );
}

/// A tenant deals in its own tokens, and in three roles; of others' it knows nothing.
#[test]
fn a_tenant_deals_in_its_own_tokens() {
    check_on(
        &format!("{STAGE}{}", with_instances(10)),
        "
        0 op issue bill role=billing_authority tenant=a
        0 op issue other role=tenant_admin tenant=b
        1 a issue admin role=tenant_admin tenant=a
        1 a issue member role=project_member tenant=a project=a/a
        1 a issue app role=app_operator tenant=a apps=9,3
        2 a issue x role=tenant_admin tenant=b
        2 a issue x role=operator
        2 a issue x role=auditor
        2 a issue x role=node_agent node=n1
        2 a issue x role=billing_authority tenant=a
        3 a withdraw 0
        3 a withdraw 1
        3 a withdraw 2
        3 a withdraw 2
        3 op withdraw 0
        ",
        expect![[r#"
            0 a token-0 bill issued to billing_authority
            0 b token-1 other issued to tenant_admin
            1 a token-2 admin issued to tenant_admin
            1 a token-3 member issued to project_member
            1 a token-4 app issued to app_operator
            2 refused: bad_token_scope
            2 refused: bad_token_scope
            2 refused: bad_token_scope
            2 refused: bad_token_scope
            2 refused: bad_token_scope
            3 refused: bad_token_scope
            3 refused: unknown_token
            3 a token-2 revoked
            3 refused: unknown_token
            3 a token-0 revoked
        "#]],
    );
}

/// Which parts of a scope a role needs (`+`), may have (`?`) and cannot have.
#[test]
fn each_role_has_its_scope() {
    let parts = ["tenant=a", "project=a/a", "of=a/u", "node=n1", "apps=1"];
    let mut told = String::new();
    for role in Role::ALL {
        let fits = |set: &[bool; 5]| {
            let mut story = Story::on(STAGE);
            story.play("0 op user a/u");
            story.play(&with_instances(2));
            let scope: Vec<&str> = parts.iter().zip(set).filter(|(_, on)| **on).map(|(part, _)| *part).collect();
            let answer = story.line(&format!("1 op issue t role={role} {}", scope.join(" ")));
            match answer.expect("a decision") {
                Ok(_) => true,
                Err(Refusal::BadTokenScope { .. }) => false,
                Err(other) => panic!("{role} {scope:?}: {other}"),
            }
        };
        let all: Vec<[bool; 5]> = (0..32u8).map(|bits| std::array::from_fn(|i| bits >> i & 1 == 1)).collect();
        let fitting: Vec<&[bool; 5]> = all.iter().filter(|set| fits(set)).collect();
        let mark = |i: usize| match (fitting.iter().all(|set| set[i]), fitting.iter().any(|set| set[i])) {
            (true, _) => '+',
            (false, true) => '?',
            (false, false) => '.',
        };
        told.push_str(&format!("{} {role}\n", (0..5).map(mark).collect::<String>()));
    }
    expect![[r#"
        ..... operator
        ..... auditor
        +.?.. tenant_admin
        ++?.. project_member
        ...+. node_agent
        +...+ app_operator
        ?.... billing_authority
    "#]]
    .assert_eq(&told);
}

/// Short-lived tokens, one for each job, do not pile up: one that has expired is forgotten when the
/// next comes, and its hash is free again.
#[test]
fn what_has_expired_is_forgotten() {
    check(
        "
        0 op issue job1 role=operator expires=10 hash=x
        1 op issue job2 role=operator expires=20 hash=x
        10 op withdraw 0
        10 show tokens
        10 op issue job2 role=operator expires=20 hash=x
        10 show tokens
        10 op issue job3 role=operator expires=10
        ",
        expect![[r#"
            0 - token-0 job1 issued to operator
            1 refused: token_exists
            10 refused: unknown_token
              token-0 job1 operator live
            10 - token-1 job2 issued to operator
              token-1 job2 operator live
            10 refused: token_expiry_past
        "#]],
    );
}

/// App instances are sealed in order, whatever the order they were named in.
#[test]
fn app_instances_are_in_order() {
    let mut story = Story::on(STAGE);
    story.play(&with_instances(41));
    story.play("0 op issue app role=app_operator tenant=a apps=9,3,40");
    let token = story.world.state().token(TokenNo(0)).expect("it was issued");
    assert_eq!(token.scope.app_instances.iter().map(|app| app.0).collect::<Vec<_>>(), [3, 9, 40]);
}

fn issue(engine: &mut Engine, now: u64, tenant: Option<u32>, hash: u32, expires: Option<u64>) -> Result<(), Refusal> {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&hash.to_le_bytes());
    let scope = TokenScope { tenant: tenant.map(TenantNo), ..TokenScope::default() };
    let command = Command::IssueToken(IssueToken {
        name: Name::new("t").expect("a name"),
        hash: bytes,
        role: Role::BillingAuthority,
        scope,
        expires_at: expires.map(Instant::from_secs),
    });
    let mut batch = Batch::new(engine.state().size());
    let request = Request::new(Identity::default(), command);
    engine.decide(Instant::from_secs(now), &request, &mut batch).map(|_| ())
}

#[test]
fn there_are_so_many_tokens_and_no_more() {
    let mut story = Story::on(STAGE);
    (2..10).for_each(|n| story.play(&format!("0 op tenant t{n}")));
    let mut engine = Engine::new(story.world.state().clone());
    for hash in 0..TOKENS_MAX {
        let tenant = hash / TOKENS_PER_TENANT_MAX;
        // Of the first tenant's, one expires.
        let expires = (hash == 7).then_some(100);
        issue(&mut engine, 1, Some(tenant), hash, expires).expect("not too many yet");
        if hash + 1 == TOKENS_PER_TENANT_MAX {
            let refusal = issue(&mut engine, 1, Some(0), u32::MAX, None).expect_err("one too many");
            assert_eq!(refusal, Refusal::TooManyTokens { of: "the tenant", limit: TOKENS_PER_TENANT_MAX });
        }
    }
    let full = Refusal::TooManyTokens { of: "the cell", limit: TOKENS_MAX };
    assert_eq!(issue(&mut engine, 99, None, u32::MAX, None), Err(full.clone()));
    // What has expired does not count, though no record has swept it out yet.
    issue(&mut engine, 100, Some(0), u32::MAX, None).expect("room for one");
    assert_eq!(issue(&mut engine, 100, None, u32::MAX - 1, None), Err(full));
    assert_eq!(engine.state().tokens().count(), TOKENS_MAX as usize);
    assert_eq!(engine.state().token(TokenNo(7)), None);
}
