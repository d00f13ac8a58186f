//! Prepaid credit over HTTP: from the first credit to the invoice that it pays.

use crate::ledger::Ledger;
use crate::world::Answer;
use leasehold_api::{Method, Role};
use serde_json::{Value, json};

const TOP_UPS: &str = "/api/v1/prepaid/top-ups";

/// Checks a problem, and returns it.
trait Refused {
    fn refused(self, status: u16, code: &str) -> Value;
}

impl Refused for Answer {
    fn refused(self, status: u16, code: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(problem["code"], code, "{problem}");
        problem
    }
}

fn credit(amount: &str, reference: &str) -> Value {
    json!({ "tenant": "physics", "amount": amount, "reference": reference })
}

async fn account(ledger: &Ledger) -> Value {
    ledger.get("/api/v1/prepaid?tenant=physics").await["accounts"][0].clone()
}

/// The explanation of the first entry of a kind.
async fn why_of(ledger: &Ledger, kind: &str) -> String {
    let entry = ledger.entries(&format!("kind={kind}")).await[0]["id"].as_str().expect("an ID").to_owned();
    let explained = ledger.get(&format!("/api/v1/ledger/entries/{entry}/explain")).await;
    explained["arithmetic"][0].as_str().expect("words").to_owned()
}

fn figures(account: &Value) -> [&str; 4] {
    ["spent", "reserved", "balance", "available"].map(|field| account[field].as_str().expect("a figure"))
}

/// Two GPUs at 0.01 EUR a second, held for two hours from 21:20 on: 0.02 a second, 144 in all.
#[tokio::test(flavor = "multi_thread")]
async fn credit_is_reserved_spent_and_pays_an_invoice() {
    let ledger = Ledger::open().await;
    let added = ledger.world.post(TOP_UPS, credit("100", "order 1")).await.expect(201);
    // The two hours are reserved, although the credit covers 5,000 seconds only.
    assert_eq!(figures(&added["account"]), ["0", "144", "100", "-44"], "{added}");
    assert_eq!(added["account"]["credits"][0]["left"], "100");
    // The same credit again is the first one; another amount under its reference is refused.
    let again = ledger.world.post(TOP_UPS, credit("100.00", "order 1")).await.expect(201);
    assert_eq!(again["sequence"], added["sequence"]);
    ledger.world.post(TOP_UPS, credit("99", "order 1")).await.refused(409, "top_up_exists");
    // What is not covered is denied, with the figures.
    let more = json!({ "tenant": "physics", "project": "physics-main", "ttl": "10s",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let denied = ledger.world.post("/api/v1/leases", more.clone()).await.refused(409, "prepaid_not_covered");
    assert_eq!((&denied["available"], &denied["requested"]), (&json!("-44"), &json!("0.1")), "{denied}");
    // 2,500 seconds later, 40 minutes are posted, and 100 seconds have accrued since.
    ledger.pass(2500).await;
    assert_eq!(figures(&account(&ledger).await), ["50", "94", "50", "-44"]);
    assert_eq!(account(&ledger).await["state"], "enough");
    let policy = json!({ "tenant": "physics", "low_below": "60", "low": "downgrade", "depleted": "alert" });
    let put = ledger.as_role(Role::BillingAuthority, Method::Put, "/api/v1/prepaid/policy", Some(policy)).await;
    let put = put.expect(200);
    assert_eq!((&put["account"]["state"], &put["account"]["action"]), (&json!("low"), &json!("downgrade")), "{put}");
    // Whoever follows the events of the tenant is told, once.
    let events = ledger.world.client().get(format!("{}/api/v1/events?after=0&kind=prepaid.changed", ledger.world.url));
    let events = events.bearer_auth(&ledger.world.tokens[&Role::TenantAdmin]).send().await;
    let told = crate::streams::until(&mut events.expect("a stream"), "prepaid.changed").await;
    assert_eq!(told.len(), 1, "{told:?}");
    // New work is granted again, with the lowest priority.
    let granted = ledger.world.post("/api/v1/leases", more).await.expect(201);
    assert_eq!(granted["priority"], "scavenger", "{granted}");
    let lease = granted["leases"][0]["id"].as_str().expect("an ID").to_owned();
    ledger.world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
    ledger.close_january().await;
    let page = ledger.world.get("/metrics").await.text;
    assert!(page.contains("leasehold_prepaid_accounts{state=\"depleted\"} 1"), "{page}");
    // 144 were posted: 100 from the credit, and the rest is owed. It is no longer counted as spent.
    let invoice = ledger.get("/api/v1/invoices?tenant=physics").await["invoices"][0].clone();
    let number = invoice["number"].as_str().expect("a number");
    assert_eq!((&invoice["total"], &invoice["owed"]), (&json!("144.000000"), &json!("44.000000")), "{invoice}");
    let shown = ledger.get(&format!("/api/v1/invoices/{number}")).await;
    assert_eq!(shown["prepaid"], "100.000000");
    let page = ledger.world.get(&format!("/api/v1/invoices/{number}?format=html")).await.text;
    assert!(page.contains("Paid from prepaid credit") && page.contains("100.00"), "{page}");
    assert_eq!(figures(&account(&ledger).await), ["100", "0", "0", "0"]);
    let kinds: Vec<Value> =
        ledger.entries("tenant=physics").await.into_iter().map(|entry| entry["kind"].clone()).collect();
    assert!(kinds.contains(&json!("top_up")) && kinds.contains(&json!("prepaid_use")), "{kinds:?}");
    for (kind, why) in [
        ("top_up", "Credit of 100.000000 EUR was added in advance."),
        ("prepaid_use", "100.000000 EUR of prepaid credit pay for what was posted for the month of INV-"),
    ] {
        assert!(why_of(&ledger, kind).await.starts_with(why), "{kind}");
    }
    let balances = ledger.get("/api/v1/ledger/balances?account=prepaid").await;
    let balance = &balances["balances"][0];
    assert_eq!((&balance["tenant"], &balance["balance"]), (&json!("physics"), &json!("0.000000")), "{balances}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credit_is_shown_to_those_whom_it_concerns_and_ended_by_those_who_keep_it() {
    let ledger = Ledger::open().await;
    ledger.world.post(TOP_UPS, credit("100", "order 1")).await.expect(201);
    let gift = json!({ "project": "chemistry-main", "amount": "5", "reference": "welcome", "source": "granted",
        "expires_at": "2026-02-01T00:00:00Z", "priority": 3 });
    ledger.world.post(TOP_UPS, gift).await.expect(201);
    let all = ledger.get("/api/v1/prepaid").await;
    assert_eq!(all["accounts"].as_array().map(Vec::len), Some(2), "{all}");
    for role in [Role::ProjectMember, Role::TenantAdmin] {
        let seen = ledger.as_role(role, Method::Get, "/api/v1/prepaid", None).await.expect(200);
        let tenants: Vec<&Value> =
            seen["accounts"].as_array().expect("a list").iter().map(|one| &one["tenant"]).collect();
        assert_eq!(tenants, [&json!("physics")], "{role}");
        ledger.as_role(role, Method::Post, TOP_UPS, Some(credit("1", "own"))).await.refused(403, "role_forbids");
    }
    let end = json!({ "project": "chemistry-main", "credit": 1 });
    let ended = ledger.world.post("/api/v1/prepaid/ended-credits", end.clone()).await.expect(200);
    assert_eq!((&ended["account"]["lapsed"], &ended["account"]["state"]), (&json!("5.000000"), &json!("depleted")));
    ledger.world.post("/api/v1/prepaid/ended-credits", end).await.refused(404, "unknown_credit");
    let why = why_of(&ledger, "lapse").await;
    assert_eq!(why, "5.000000 EUR of a credit were not spent when it ended, and are gone.");
    // The gift was the operator's loss, and is expired credit now.
    let balances = ledger.get("/api/v1/ledger/balances?account=expired_credits").await;
    assert_eq!(balances["balances"][0]["balance"], "-5.000000", "{balances}");
    for (new, status, code) in [
        (json!({ "tenant": "physics", "amount": "-1", "reference": "x" }), 422, "bad_top_up"),
        (json!({ "tenant": "physics", "amount": "one", "reference": "x" }), 422, "bad_body"),
        (json!({ "tenant": "physics", "amount": "1", "reference": "x", "currency": "euro" }), 422, "bad_body"),
        (json!({ "tenant": "biology", "amount": "1", "reference": "x" }), 404, "unknown_tenant"),
        (json!({ "amount": "1", "reference": "x" }), 422, "tenant_needed"),
    ] {
        ledger.world.post(TOP_UPS, new).await.refused(status, code);
    }
    let policy = json!({ "tenant": "chemistry", "low_below": "1" });
    ledger
        .as_role(Role::Operator, Method::Put, "/api/v1/prepaid/policy", Some(policy))
        .await
        .refused(409, "no_prepaid_account");
}

/// A GPU of a claimed node is 0.015 EUR a second, as guaranteed: 54.00 for an hour. The credit of 300 has 156 left besides
/// the two GPUs that physics holds for two hours.
#[tokio::test(flavor = "multi_thread")]
async fn claims_need_an_end_that_credit_covers_and_are_never_drained() {
    let ledger = Ledger::open().await;
    let world = &ledger.world;
    world.post("/api/v1/users", json!({ "name": "ada", "tenant": "physics" })).await.expect(201);
    for node in ["n2", "n3"] {
        let new = json!({ "name": node, "pool": "main", "teardown": "immediate", "capacity": { "h100": 1 } });
        world.post("/api/v1/nodes", new).await.expect(201);
    }
    world.post(TOP_UPS, credit("300", "order 1")).await.expect(201);
    let claim = |node: &str, until: Value| {
        let body =
            json!({ "nodes": [node], "tenant": "physics", "project": "physics-main", "user": "ada", "until": until });
        world.post("/api/v1/claims", body)
    };
    let endless = claim("n2", Value::Null).await.refused(422, "claim_needs_end");
    assert!(endless["detail"].as_str().is_some_and(|text| text.contains("give `until`")), "{endless}");
    let long = claim("n2", json!("2026-02-01T01:20:00Z")).await.refused(409, "claim_not_covered");
    assert_eq!((&long["requested"], &long["available"]), (&json!("216"), &json!("156")), "{long}");
    claim("n2", json!("2026-01-31T23:20:00Z")).await.expect(201);
    assert_eq!(figures(&account(&ledger).await), ["0", "252", "300", "48"]);
    let policy = json!({ "tenant": "physics", "depleted": "drain", "grace": "1m" });
    ledger.as_role(Role::BillingAuthority, Method::Put, "/api/v1/prepaid/policy", Some(policy)).await.expect(200);
    let sensitive = json!({ "tenant": "physics", "project": "physics-main", "user": "ada", "sensitive": true,
        "ttl": "6h", "asks": [{ "class": "h100", "quantity": 1 }] });
    let sensitive = world.post("/api/v1/leases", sensitive).await.expect(201);
    assert_eq!(sensitive["node"], "n2");

    // 320 EUR are booked by hand, so that nothing is left: the ordinary lease is revoked, and the claim goes on.
    let book = json!({ "tenant": "physics", "project": "physics-main", "currency": "EUR", "reason": "licence",
        "legs": [{ "account": "receivable", "amount": "320" }, { "account": "adjustments", "amount": "-320" }] });
    world.post("/api/v1/ledger/entries", book).await.expect(201);
    assert_eq!(account(&ledger).await["state"], "depleted");
    let held = async || {
        let leases = ledger.get("/api/v1/leases?tenant=physics").await;
        let mut told: Vec<String> = leases["leases"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|lease| {
                format!("{} {}", lease["node"].as_str().unwrap_or("-"), lease["state"].as_str().unwrap_or("-"))
            })
            .collect();
        told.sort();
        told
    };
    assert_eq!(held().await, ["n1 revoking", "n2 active"]);
    let records = ledger.get("/api/v1/audit/records?kind=lease.revoked").await;
    assert_eq!(records["records"][0]["reason"], "budget", "{records}");
    claim("n3", json!("2026-01-31T21:21:00Z")).await.refused(409, "claim_not_covered");
    // Three hours later it is beyond its end and still claimed, and what runs there runs.
    ledger.pass(3 * 3600).await;
    assert_eq!(held().await, ["n2 active"]);
    let claims = ledger.get("/api/v1/claims").await;
    assert_eq!(
        (&claims["nodes"][0]["node"], &claims["nodes"][0]["custody"]["state"]),
        (&json!("n2"), &json!("claimed"))
    );
    // It goes on to be paid by the credit that is no longer there: 2 GPU from 21:20 to 21:21 (1.20), 2 h 40 min of a
    // claimed node (144.00) and the 20 minutes since (18.00).
    assert_eq!(figures(&account(&ledger).await)[0], "483.2");
    ledger.world.stop().await;
}
