//! Every endpoint × every role: who is let in, who is not, and that what belongs to others does not exist.

use crate::world::World;
use leasehold_api::endpoint::{ENDPOINTS, by_id};
use leasehold_api::{Endpoint, Method, Role};
use serde_json::{Value, json};

/// A path of the endpoint about things of `physics` (or of nobody in particular).
fn path(endpoint: &Endpoint) -> String {
    let filled = [
        ("{tenant}", "physics"),
        ("{project}", "physics-main"),
        ("{user}", "physics-ada"),
        ("{class}", "h100"),
        ("{app}", "slurm"),
        ("{app_instance}", "seven"),
        ("{attachment}", "0"),
        ("{pool}", "main"),
        ("{node}", "n1"),
        ("{quota}", "0"),
        ("{card}", "0"),
        ("{policy}", "0"),
        ("{lease}", "lease-0"),
        ("{allocation}", "alloc-1"),
        ("{token}", "3"),
        ("{entry}", "entry-0-0"),
        ("{month}", "2026-01"),
        ("{number}", "INV-000001"),
        ("{correlation_id}", "5f0c1b3e-8a44-4d2e-9c55-0e6b7a1d2f33"),
        ("{code}", "quota_exceeded"),
    ];
    let path = filled.iter().fold(endpoint.path.to_owned(), |path, (name, value)| path.replace(name, value));
    match endpoint.id {
        "prove_inclusion" => format!("{path}?sequence=1"),
        "prove_consistency" => format!("{path}?from=1"),
        _ => path,
    }
}

/// A body that is read, and changes nothing that the rest of the matrix needs.
fn body(endpoint: &Endpoint) -> Option<Value> {
    endpoint.body?;
    Some(match endpoint.id {
        "change_tenant" | "update_tenant" | "change_settings" | "change_class" | "change_pool" | "change_node" => {
            json!({})
        }
        "change_project" => json!({ "name": "physics-main" }),
        "change_app" => json!({}),
        "change_app_instance" => json!({ "name": "seven" }),
        "change_user" => json!({ "name": "physics-ada" }),
        "change_quota" => json!({ "limit": { "type": "hard", "limit": 6 } }),
        "renew_lease" => json!({ "ttl": "1h" }),
        "heartbeat" => json!({ "generation": 999 }),
        "batch" => json!({ "operations": [] }),
        // Names something that is not there, or asks for what cannot be.
        _ => json!({ "nothing_of_this": true }),
    })
}

/// Those that would take away what the others look at.
fn is_destructive(endpoint: &Endpoint) -> bool {
    endpoint.method == Method::Delete
        || matches!(endpoint.id, "release_lease" | "revoke_lease" | "lose_node" | "drain_node")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_lets_in_its_roles_and_nobody_else() {
    let world = World::furnished().await;
    let tampered = world.operator.replace(&world.operator[10..12], "zz");
    let mut checked = 0;
    for &endpoint in ENDPOINTS {
        let (path, body) = (path(endpoint), body(endpoint));
        for token in [None, Some("lht_short"), Some(tampered.as_str())] {
            let answer = world.send(token, endpoint.method, &path, body.clone()).await;
            if endpoint.roles.is_empty() {
                assert!(answer.status < 400, "{} without a token: {answer:?}", endpoint.id);
            } else {
                assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"), "{}", endpoint.id);
                assert!(answer.headers.contains_key("www-authenticate"));
            }
        }
        for (role, token) in &world.tokens {
            let let_in = endpoint.roles.is_empty() || endpoint.roles.contains(role);
            if let_in && is_destructive(endpoint) {
                continue;
            }
            let answer = world.send(Some(token), endpoint.method, &path, body.clone()).await;
            assert!(answer.status < 500, "{} as {role}: {answer:?}", endpoint.id);
            if let_in {
                assert!(answer.status != 401, "{} as {role}: {answer:?}", endpoint.id);
                let forbidden = answer.status == 403;
                assert!(!forbidden, "{} as {role}: {answer:?}", endpoint.id);
            } else {
                assert_eq!((answer.status, answer.code().as_str()), (403, "role_forbids"), "{} as {role}", endpoint.id);
            }
            checked += 1;
        }
    }
    assert!(checked > 400, "only {checked} pairs were tried");
    world.stop().await;
}

/// Every operation of a batch × every role: let in exactly as by the endpoint that does the same alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_lets_in_the_roles_of_each_operations_own_endpoint() {
    let world = World::furnished().await;
    // A lease that does not exist: whoever is let in hears so, and nothing changes.
    for (alone, operation) in [
        (by_id::request_lease, json!({ "request": { "ttl": "1m", "asks": [{ "class": "nonesuch", "quantity": 1 }] } })),
        (by_id::renew_lease, json!({ "lease": "lease-99", "renew": { "ttl": "1m" } })),
        (by_id::release_lease, json!({ "lease": "lease-99", "release": {} })),
        (by_id::revoke_lease, json!({ "lease": "lease-99", "revoke": {} })),
        (by_id::lease_ready, json!({ "lease": "lease-99", "ready": {} })),
        (
            by_id::report_activity,
            json!({ "lease": "lease-99", "activity": { "covered": "1m", "active": "1m", "busy_quantum_ns": "0" } }),
        ),
        (by_id::confirm_teardown, json!({ "lease": "lease-99", "confirm_teardown": {} })),
        (by_id::unfence_lease, json!({ "lease": "lease-99", "unfence": {} })),
    ] {
        for (role, token) in world.tokens.iter().filter(|(role, _)| by_id::batch.roles.contains(role)) {
            let batch = json!({ "operations": [operation.clone()] });
            let answer = world.send(Some(token), Method::Post, by_id::batch.path, Some(batch)).await.expect(200);
            let result = &answer["results"][0];
            let forbidden = result["problem"]["code"] == "role_forbids";
            assert_eq!(forbidden, !alone.roles.contains(role), "{} as {role}: {result}", alone.id);
            assert!(result["status"].as_u64().is_some_and(|status| status >= 400), "{result}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_another_tenant_does_not_exist() {
    let world = World::furnished().await;
    for role in [Role::TenantAdmin, Role::ProjectMember] {
        let token = Some(world.tokens[&role].as_str());
        for path in [
            "/api/v1/tenants/chemistry",
            "/api/v1/tenants/1",
            "/api/v1/projects/chemistry-main",
            "/api/v1/projects/1",
            "/api/v1/projects?tenant=chemistry",
            "/api/v1/users/1",
            "/api/v1/users?tenant=1",
            "/api/v1/quotas/1",
            "/api/v1/quotas?tenant=chemistry",
            "/api/v1/leases/lease-1",
            "/api/v1/leases/lease-1/history",
            "/api/v1/leases?tenant=chemistry",
            "/api/v1/leases?project=1",
            "/api/v1/audit/records?tenant=chemistry",
            "/api/v1/events?tenant=chemistry",
        ] {
            let theirs = world.send(token, Method::Get, path, None).await;
            assert_eq!(theirs.status, 404, "{role} {path}: {theirs:?}");
            // It reads exactly as what is not there at all.
            let nothing = path
                .replace("chemistry", "nonesuch")
                .replace("lease-1", "lease-99")
                .replace("/1", "/99")
                .replace("=1", "=99");
            let absent = world.send(token, Method::Get, &nothing, None).await;
            let blank = |text: &str| {
                let mut value: Value = serde_json::from_str(text).expect("a problem");
                value["instance"] = Value::Null;
                value["detail"].as_str().map(|d| d.split('"').next().unwrap_or(d).to_owned())
            };
            assert_eq!((absent.status, blank(&absent.text)), (404, blank(&theirs.text)), "{role} {path}");
        }
        for (path, body) in [
            ("/api/v1/leases/lease-1/renew", json!({ "ttl": "1m" })),
            ("/api/v1/leases/lease-1/release", json!({})),
            ("/api/v1/leases/lease-1/ready", json!({})),
            (
                "/api/v1/leases",
                json!({ "tenant": "chemistry", "project": "chemistry-main", "ttl": "1m", "asks": [{ "class": "h100", "quantity": 1 }] }),
            ),
            (
                "/api/v1/leases",
                json!({ "project": "chemistry-main", "ttl": "1m", "asks": [{ "class": "h100", "quantity": 1 }] }),
            ),
        ] {
            let answer = world.send(token, Method::Post, path, Some(body)).await;
            assert_eq!(answer.status, 404, "{role} {path}: {answer:?}");
        }
        let operations = json!({ "operations": [{ "lease": "lease-1", "release": {} }, { "lease": "lease-1", "renew": { "ttl": "1m" } }] });
        let answer = world.send(token, Method::Post, "/api/v1/leases/batch", Some(operations)).await.expect(200);
        assert_eq!((&answer["results"][0]["status"], &answer["results"][1]["status"]), (&json!(404), &json!(404)));
        for list in ["tenants", "projects", "users", "quotas", "leases"] {
            let answer = world.send(token, Method::Get, &format!("/api/v1/{list}"), None).await.expect(200);
            assert!(!answer.to_string().contains("chemistry"), "{role} {list}: {answer}");
            assert_eq!(answer[list].as_array().map(Vec::len), Some(1), "{role} {list}: {answer}");
        }
        let records = world.send(token, Method::Get, "/api/v1/audit/records?limit=1000", None).await.expect(200);
        assert!(!records.to_string().contains("chemistry"), "{role}: {records}");
        assert!(!records["records"].as_array().expect("records").is_empty());
    }
    // An agent sees its node and what is on it.
    let agent = Some(world.tokens[&Role::NodeAgent].as_str());
    for (path, status) in [
        ("/api/v1/nodes/n1", 200),
        ("/api/v1/nodes/n2", 404),
        ("/api/v1/leases/lease-0", 200),
        ("/api/v1/leases/lease-1", 404),
    ] {
        let answer = world.send(agent, Method::Get, path, None).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    let nodes = world.send(agent, Method::Get, "/api/v1/nodes", None).await.expect(200);
    assert_eq!(nodes["nodes"].as_array().map(Vec::len), Some(1));
    // A billing authority changes limits, and nothing else of a tenant.
    let billing = Some(world.tokens[&Role::BillingAuthority].as_str());
    let limits =
        world.send(billing, Method::Put, "/api/v1/tenants/physics", Some(json!({ "max_nodes": 3 }))).await.expect(200);
    assert_eq!(limits["tenant"]["max_nodes"], 3);
    let name = world.send(billing, Method::Put, "/api/v1/tenants/physics", Some(json!({ "name": "x" }))).await;
    assert_eq!((name.status, name.code().as_str()), (403, "role_forbids"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_end_when_they_are_revoked_or_expire_and_their_secrets_are_nowhere() {
    let world = World::furnished().await;
    let admin = world.tokens[&Role::TenantAdmin].clone();
    // A tenant's admin issues tokens of its own tenant, and no others.
    let own = json!({ "name": "ci", "role": "project-member", "project": "physics-main" });
    let issued = world.send(Some(&admin), Method::Post, "/api/v1/tokens", Some(own)).await.expect(201);
    assert_eq!(issued["token"]["role"], "project_member", "written with an underscore, read with a hyphen");
    for word in ["tearing_down", "tearing-down"] {
        world.get(&format!("/api/v1/leases?state={word}")).await.expect(200);
    }
    assert_eq!(world.get("/api/v1/leases?state=torn_down").await.code(), "bad_query");
    for (role, extra) in
        [("operator", json!({})), ("auditor", json!({})), ("tenant_admin", json!({ "tenant": "chemistry" }))]
    {
        let mut new = json!({ "name": "more", "role": role });
        new.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        let answer = world.send(Some(&admin), Method::Post, "/api/v1/tokens", Some(new)).await;
        assert!(matches!(answer.status, 404 | 422), "{role}: {answer:?}");
    }
    let (secret, id) = (issued["secret"].as_str().expect("a secret").to_owned(), issued["token"]["id"].clone());
    assert_eq!(world.send(Some(&secret), Method::Get, "/api/v1/whoami", None).await.expect(200)["token"]["name"], "ci");
    world.send(Some(&admin), Method::Delete, &format!("/api/v1/tokens/{id}"), None).await.expect(200);
    assert_eq!(world.send(Some(&secret), Method::Get, "/api/v1/whoami", None).await.status, 401);
    // One that expires.
    let soon = leasehold_api::When(leasehold_model::Instant(
        u64::try_from(
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos(),
        )
        .expect("in range")
            + 400_000_000,
    ));
    let issued = world
        .post("/api/v1/tokens", json!({ "name": "short", "role": "auditor", "expires_at": soon }))
        .await
        .expect(201);
    let short = issued["secret"].as_str().expect("a secret").to_owned();
    let mut statuses = Vec::new();
    while statuses.last() != Some(&401) {
        statuses.push(world.send(Some(&short), Method::Get, "/api/v1/whoami", None).await.status);
    }
    assert_eq!(statuses[0], 200);
    // No answer but the first, no record and no file but operator.token has a secret in it.
    let listed = world.get("/api/v1/tokens").await.expect(200).to_string();
    let records = world.get("/api/v1/audit/records?limit=1000").await.expect(200).to_string();
    for secret in [&admin, &secret, &short, &world.operator] {
        assert!(!listed.contains(&secret[4..]) && !records.contains(&secret[4..]));
    }
    let folder = world.stop().await;
    for file in std::fs::read_dir(folder.path().join("data/journal")).expect("segments") {
        let bytes = std::fs::read(file.expect("a file").path()).expect("readable");
        assert!(!bytes.windows(64).any(|window| *window == admin.as_bytes()[4..]));
    }
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(folder.path().join("data/operator.token")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
