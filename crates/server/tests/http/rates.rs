//! Rate cards and charge policies over HTTP: dated, public to tenants, and fixed once they hold.

use crate::world::{Answer, World};
use leasehold_api::{Method, Role};
use serde_json::{Value, json};

const CARDS: &str = "/api/v1/rate-cards";
const POLICIES: &str = "/api/v1/charge-policies";
/// Later than any clock that these tests run by.
const LATER: &str = "2100-01-01T00:00:00Z";
const MUCH_LATER: &str = "2200-01-01T00:00:00Z";

impl World {
    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Some(&self.operator), Method::Put, path, Some(body)).await
    }
    async fn delete(&self, path: &str) -> Answer {
        self.send(Some(&self.operator), Method::Delete, path, None).await
    }
}

fn states(list: &Value, of: &str) -> Vec<String> {
    let shown = |card: &Value| format!("{} {}", card["id"], card["state"].as_str().expect("a state"));
    list[of].as_array().expect("a list").iter().map(shown).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_are_set_from_now_or_from_a_day_on() {
    let world = World::furnished().await;
    // The built-in card holds while nobody has set one.
    let current = world.get("/api/v1/rate-cards/current").await.expect(200);
    assert_eq!(
        (&current["built_in"], &current["id"], &current["state"]),
        (&json!(true), &Value::Null, &json!("in_force"))
    );
    assert_eq!(
        current["prices"],
        json!({ "currency": "EUR", "classes": {}, "tiers": {},
            "kinds": { "gpu": "0.01", "cpu": "0.002", "mem": "0.001", "block": "0.0005", "net": "0.0003" },
            "priorities": { "scavenger": "0.3", "standard": "1", "guaranteed": "1.5" } })
    );
    // What is not named is as in the card in force; numbers keep as few decimals as they need.
    let prices = json!({ "kinds": { "gpu": "0.0120" }, "classes": { "h100": "0.02" }, "tiers": { "sxm": "2" } });
    let put = world.post(CARDS, json!({ "prices": prices })).await.expect(201);
    let card = &put["rate_card"];
    assert_eq!((&card["id"], &card["state"], &card["pool"]), (&json!(0), &json!("in_force"), &Value::Null));
    assert_eq!((&card["prices"]["kinds"]["gpu"], &card["prices"]["kinds"]["cpu"]), (&json!("0.012"), &json!("0.002")));
    let of_pool =
        json!({ "pool": "main", "from": LATER, "prices": { "classes": { "h100": null }, "currency": "CHF" } });
    let put = world.post(CARDS, of_pool).await.expect(201);
    let waiting = &put["rate_card"];
    assert_eq!(
        (&waiting["state"], &waiting["pool"], &waiting["from"]),
        (&json!("waiting"), &json!("main"), &json!(LATER))
    );
    assert_eq!(waiting["prices"]["classes"], json!({}));
    assert_eq!(
        (&waiting["prices"]["tiers"], &waiting["prices"]["kinds"]["gpu"]),
        (&json!({ "sxm": "2" }), &json!("0.012"))
    );
    // It can be changed while it waits, and goes.
    let changed =
        world.put("/api/v1/rate-cards/1", json!({ "from": MUCH_LATER, "prices": { "kinds": { "cpu": "0" } } })).await;
    let changed = changed.expect(200)["rate_card"].clone();
    assert_eq!((&changed["from"], &changed["pool"]), (&json!(MUCH_LATER), &json!("main")));
    assert_eq!((&changed["prices"]["currency"], &changed["prices"]["kinds"]["cpu"]), (&json!("CHF"), &json!("0")));
    assert_eq!(world.get("/api/v1/rate-cards/1").await.expect(200), changed);
    world.post(CARDS, json!({ "prices": { "kinds": { "gpu": "0.013" } } })).await.expect(201);
    let list = world.get(CARDS).await.expect(200);
    assert_eq!(states(&list, "rate_cards"), ["null past", "0 past", "1 waiting", "2 in_force"]);
    assert_eq!(states(&world.get("/api/v1/rate-cards?pool=main").await.expect(200), "rate_cards"), ["1 waiting"]);
    let page = world.get("/api/v1/rate-cards?limit=2").await.expect(200);
    let next = page["next_cursor"].as_str().expect("more").to_owned();
    let rest = world.get(&format!("/api/v1/rate-cards?cursor={next}")).await.expect(200);
    assert_eq!(states(&rest, "rate_cards"), ["1 waiting", "2 in_force"]);
    assert_eq!(world.get("/api/v1/rate-cards/current?pool=main").await.expect(200)["id"], 2);
    world.delete("/api/v1/rate-cards/1").await.expect(200);
    for path in ["/api/v1/rate-cards/1", "/api/v1/rate-cards/99", "/api/v1/rate-cards/x"] {
        let gone = world.get(path).await;
        assert_eq!((gone.status, gone.code().as_str()), (404, "unknown_rate_card"), "{path}");
    }
    assert_eq!(world.get("/api/v1/rate-cards/built-in").await.expect(200)["built_in"], true);
    // The journal says it in the same words.
    let records = world.get("/api/v1/audit/records?kind=rate_card&limit=1000").await.expect(200);
    let kinds: Vec<&Value> =
        records["records"].as_array().expect("records").iter().map(|record| &record["kind"]).collect();
    assert_eq!(kinds, ["rate_card.put", "rate_card.put", "rate_card.put", "rate_card.put", "rate_card.deleted"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_told_by_its_field() {
    let world = World::furnished().await;
    world.post(CARDS, json!({ "prices": {} })).await.expect(201);
    world.post(CARDS, json!({ "from": LATER })).await.expect(201);
    world.post(POLICIES, json!({})).await.expect(201);
    let prices = |prices: Value| json!({ "prices": prices });
    for (body, status, code, field) in [
        (prices(json!({ "kinds": { "gpu": "-0.01" } })), 422, "bad_prices", "prices.kinds.gpu"),
        (prices(json!({ "kinds": { "gpu": "0.0000000001" } })), 422, "bad_prices", "prices.kinds.gpu"),
        (prices(json!({ "kinds": { "net": "1e3" } })), 422, "bad_prices", "prices.kinds.net"),
        (prices(json!({ "kinds": { "net": "1000000.5" } })), 422, "bad_prices", "prices.kinds.net"),
        (prices(json!({ "kinds": { "net": "99999999999999999999" } })), 422, "bad_prices", "prices.kinds.net"),
        (prices(json!({ "kinds": { "gpu": "2/month" } })), 422, "bad_prices", "prices.kinds.gpu"),
        (prices(json!({ "kinds": { "gpu": "2/" } })), 422, "bad_prices", "prices.kinds.gpu"),
        (prices(json!({ "classes": { "h100": "1000001" } })), 422, "bad_prices", "prices.classes.h100"),
        (prices(json!({ "tiers": { "sxm": "1001" } })), 422, "bad_prices", "prices.tiers.sxm"),
        (prices(json!({ "priorities": { "standard": "" } })), 422, "bad_prices", "prices.priorities.standard"),
        (prices(json!({ "currency": "eur" })), 422, "bad_prices", "prices.currency"),
        (prices(json!({ "classes": { "h10O": "1" } })), 422, "unknown_class", "prices.classes.h10O"),
        (prices(json!({ "tiers": { "": "1" } })), 422, "bad_name", "prices.tiers."),
        (json!({ "from": "2020-01-01T00:00:00Z" }), 422, "start_in_past", "from"),
        (json!({ "from": LATER }), 409, "same_start", "from"),
    ] {
        let answer = world.post(CARDS, body.clone()).await;
        let told: Value = serde_json::from_str(&answer.text).expect("a problem");
        assert_eq!((answer.status, answer.code().as_str(), &told["field"]), (status, code, &json!(field)), "{body}");
    }
    // A number where a text belongs would have been rounded by somebody on the way.
    let number = world.post(CARDS, prices(json!({ "kinds": { "gpu": 0.01 } }))).await;
    assert_eq!((number.status, number.code().as_str()), (422, "bad_body"));
    let nowhere = world.post(CARDS, json!({ "pool": "nowhere" })).await;
    assert_eq!((nowhere.status, nowhere.code().as_str()), (404, "unknown_pool"));
    // What holds can only be succeeded.
    for answer in [
        world.put("/api/v1/rate-cards/0", json!({ "from": MUCH_LATER })).await,
        world.delete("/api/v1/rate-cards/0").await,
    ] {
        assert_eq!((answer.status, answer.code().as_str()), (409, "rate_card_in_force"));
    }
    for (path, body, status, code) in [
        ("/api/v1/charge-policies/0", json!({ "from": LATER }), 409, "charge_policy_in_force"),
        ("/api/v1/charge-policies/7", json!({ "from": LATER }), 404, "unknown_charge_policy"),
    ] {
        let answer = world.put(path, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}");
    }
    let never = world.post(POLICIES, json!({ "charges": { "fenced": { "minus_last": "0s" } } })).await;
    assert_eq!((never.status, never.code().as_str()), (422, "setting_out_of_range"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_made_once_under_its_key() {
    let world = World::furnished().await;
    let send = |body: Value| {
        let request = world.client().post(format!("{}{CARDS}", world.url)).header("idempotency-key", "prices-2027");
        let request = request.header("content-type", "application/json").body(body.to_string());
        request.header("authorization", format!("Bearer {}", world.operator)).send()
    };
    let body = json!({ "prices": { "kinds": { "gpu": "0.02" } } });
    let first = crate::world::read(send(body.clone()).await.expect("an answer")).await.expect(201);
    let again = crate::world::read(send(body).await.expect("an answer")).await.expect(201);
    assert_eq!(first, again);
    let other = crate::world::read(send(json!({ "from": LATER })).await.expect("an answer")).await;
    assert_eq!((other.status, other.code().as_str()), (409, "idempotency_mismatch"));
    assert_eq!(states(&world.get(CARDS).await.expect(200), "rate_cards"), ["null past", "0 in_force"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn charges_by_how_a_lease_ended() {
    let world = World::furnished().await;
    let list = world.get(POLICIES).await.expect(200);
    assert_eq!(states(&list, "charge_policies"), ["null in_force"]);
    let full = json!({ "preempted": "full", "fenced": "full", "node_lost": "full", "failed_start": "full" });
    assert_eq!(list["charge_policies"][0]["charges"], full);
    let charges = json!({ "preempted": { "minus_last": "10m" }, "failed_start": "none" });
    let put = world.post(POLICIES, json!({ "from": LATER, "charges": charges })).await.expect(201);
    let expected =
        json!({ "preempted": { "minus_last": "10m" }, "fenced": "full", "node_lost": "full", "failed_start": "none" });
    assert_eq!(put["charge_policy"]["charges"], expected);
    let put = world.put("/api/v1/charge-policies/0", json!({ "charges": { "fenced": "none" } })).await.expect(200);
    assert_eq!(
        (&put["charge_policy"]["charges"]["fenced"], &put["charge_policy"]["from"]),
        (&json!("none"), &json!(LATER))
    );
    world.post(POLICIES, json!({})).await.expect(201);
    let list = world.get(POLICIES).await.expect(200);
    assert_eq!(states(&list, "charge_policies"), ["null past", "0 waiting", "1 in_force"]);
    world.stop().await;
}

/// Prices are public to tenants; what is charged for bad ends is between operator, auditor and billing.
#[tokio::test(flavor = "multi_thread")]
async fn who_reads_and_who_sets() {
    let world = World::furnished().await;
    world.post(CARDS, json!({ "from": LATER })).await.expect(201);
    for role in Role::ALL.iter().copied() {
        let token = if role == Role::Operator { &world.operator } else { &world.tokens[&role] };
        let status = async |path: &str| world.send(Some(token), Method::Get, path, None).await.status;
        let cards = if role == Role::NodeAgent { 403 } else { 200 };
        assert_eq!([status(CARDS).await, status("/api/v1/rate-cards/current").await], [cards, cards], "{role}");
        let reads_policies = matches!(role, Role::Operator | Role::Auditor | Role::BillingAuthority);
        assert_eq!(status(POLICIES).await, if reads_policies { 200 } else { 403 }, "{role}");
        if role != Role::Operator {
            for (method, path) in
                [(Method::Post, CARDS), (Method::Put, "/api/v1/rate-cards/0"), (Method::Post, POLICIES)]
            {
                let answer = world.send(Some(token), method, path, Some(json!({}))).await;
                assert_eq!((answer.status, answer.code().as_str()), (403, "role_forbids"), "{role} {path}");
            }
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_per_hour_and_day_are_kept_as_written() {
    let world = World::furnished().await;
    let prices = json!({ "kinds": { "gpu": "2.00/h", "cpu": "0.5/s" }, "classes": { "h100": "48/d" } });
    let card = world.post(CARDS, json!({ "prices": prices })).await.expect(201)["rate_card"]["prices"].clone();
    assert_eq!((&card["kinds"]["gpu"], &card["kinds"]["cpu"]), (&json!("2/h"), &json!("0.5")));
    assert_eq!(card["classes"]["h100"], "48/d");
    let records = world.get("/api/v1/audit/records?kind=rate_card&limit=1000").await.expect(200);
    assert_eq!(records["records"][0]["body"]["kinds"]["gpu"], "2/h");
    assert_eq!(records["records"][0]["body"]["classes"]["h100"], "48/d");
    // One GPU of the class for an hour costs 2: a day of it costs 48.
    let quoted = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h", "node": "n1",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let quote = world.post("/api/v1/leases/quote", quoted).await.expect(200);
    assert!(quote.to_string().contains("\"2.000000\""), "{quote}");
    // What is not named stays as it is; a month is no period.
    let card = world.post(CARDS, json!({ "prices": { "kinds": { "mem": "1/d" } } })).await.expect(201);
    assert_eq!(card["rate_card"]["prices"]["kinds"]["gpu"], "2/h");
    let month = world.post(CARDS, json!({ "prices": { "kinds": { "gpu": "1500/month" } } })).await.expect(422);
    assert!(month["detail"].as_str().is_some_and(|detail| detail.contains("differ in length")), "{month}");
    world.stop().await;
}
