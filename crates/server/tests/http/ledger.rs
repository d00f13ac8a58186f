//! The ledger over HTTP: from the hour that is posted to the invoice that is paid, and what is refused on the way.

use crate::world::{Answer, World};
use leasehold_api::{Method, Role};
use leasehold_cell::ManualClock;
use leasehold_model::{Instant, Span};
use serde_json::{Value, json};
use std::sync::Arc;

/// 2026-01-31T21:20:00Z. A GPU costs 0.01 EUR a second.
const BEGAN: Instant = Instant::from_secs(1_769_894_400);
pub(crate) const HOUR: u64 = 3600;

pub(crate) struct Ledger {
    pub(crate) world: World,
    pub(crate) clock: Arc<ManualClock>,
}

impl Ledger {
    /// Two tenants, of which physics holds two GPUs and chemistry one, each for two hours from 21:20 on.
    pub(crate) async fn open() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(shape: impl FnOnce(&mut leasehold_server::config::Config)) -> Self {
        let clock = Arc::new(ManualClock::at(BEGAN));
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::at(Arc::clone(&clock) as Arc<_>, folder, shape).await;
        world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
        world.post("/api/v1/pools", json!({ "name": "main" })).await.expect(201);
        let node = json!({ "name": "n1", "pool": "main", "teardown": "immediate", "capacity": { "h100": 8 } });
        world.post("/api/v1/nodes", node).await.expect(201);
        for (tenant, gpus) in [("physics", 2), ("chemistry", 1)] {
            world.post("/api/v1/tenants", json!({ "name": tenant })).await.expect(201);
            let project = format!("{tenant}-main");
            world.post("/api/v1/projects", json!({ "name": project, "tenant": tenant })).await.expect(201);
            let request = json!({ "tenant": tenant, "project": project, "ttl": "2h",
                "asks": [{ "class": "h100", "quantity": gpus }] });
            world.post("/api/v1/leases", request).await.expect(201);
            for role in ["tenant_admin", "project_member"] {
                let mut new = json!({ "name": format!("{tenant}-{role}"), "role": role, "tenant": tenant });
                if role == "project_member" {
                    new["project"] = project.clone().into();
                }
                let issued = world.post("/api/v1/tokens", new).await.expect(201);
                if tenant == "physics" {
                    let role = if role == "tenant_admin" { Role::TenantAdmin } else { Role::ProjectMember };
                    world.tokens.insert(role, issued["secret"].as_str().expect("a secret").to_owned());
                }
            }
        }
        let billing = json!({ "name": "billing", "role": "billing_authority" });
        let issued = world.post("/api/v1/tokens", billing).await.expect(201);
        world.tokens.insert(Role::BillingAuthority, issued["secret"].as_str().expect("a secret").to_owned());
        Self { world, clock }
    }

    /// Lets time pass, and settles what is over then.
    pub(crate) async fn pass(&self, seconds: u64) -> Value {
        self.clock.advance(Span::from_secs(seconds));
        // Something is recorded at this time, so that everything before it is known.
        let tag = json!({ "accounting_tag": format!("passed {seconds} s") });
        self.as_role(Role::Operator, Method::Patch, "/api/v1/tenants/chemistry", Some(tag)).await.expect(200);
        self.world.post("/api/v1/ledger/settle", json!({})).await.expect(200)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.world.get(path).await.expect(200)
    }

    pub(crate) async fn as_role(&self, role: Role, method: Method, path: &str, body: Option<Value>) -> Answer {
        self.world.send(Some(&self.world.tokens[&role]), method, path, body).await
    }

    pub(crate) async fn entries(&self, query: &str) -> Vec<Value> {
        self.get(&format!("/api/v1/ledger/entries?{query}")).await["entries"].as_array().expect("a list").clone()
    }

    /// The first usage entry of a tenant.
    pub(crate) async fn usage_of(&self, tenant: &str) -> Value {
        self.entries(&format!("tenant={tenant}&kind=usage")).await[0].clone()
    }

    /// Closes January, and waits until its invoices are issued. Each of them is proved, whatever is on it.
    pub(crate) async fn close_january(&self) {
        self.pass(4 * HOUR).await;
        let closing = self.world.post("/api/v1/periods/2026-01/close", json!({})).await.expect(202);
        assert_eq!(closing["period"]["month"], "2026-01");
        self.world.until("/api/v1/periods/2026-01", |period| period["state"] == "closed").await;
        self.prove_january().await;
    }
}

pub(crate) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("no text {field} in {value}"))
}

/// Amounts as whole steps.
pub(crate) fn steps(amount: &Value) -> i128 {
    amount.as_str().and_then(|text| text.parse::<leasehold_model::Steps>().ok()).expect("an amount").0
}

/// What is printed adds up: the lines to their sum, that with the rounding to the net, and that with the tax to the total.
pub(crate) fn printed_figures_add_up(page: &str) {
    let number = |text: &str| {
        let text = text.rsplit("<td class=\"number\">").next().expect("a cell").split("</td>").next();
        steps(&json!(text.expect("an amount").replace(',', "").replace('\u{2212}', "-")))
    };
    let table = page.split("</tbody>").next().and_then(|page| page.split("<tbody>").nth(1)).expect("a table");
    // Headings and sums of sections have a class, lines have none.
    let lines: Vec<i128> = table.split("</tr>").filter(|row| row.contains("<tr>")).map(number).collect();
    let printed = |label: &str| {
        let row = page.split(&format!("<td>{label}")).nth(1).unwrap_or_else(|| panic!("no {label} on {page}"));
        number(row.split("</tr>").next().expect("a row"))
    };
    assert!(!lines.is_empty());
    assert_eq!(lines.iter().sum::<i128>(), printed("Sum of all lines"));
    assert_eq!(printed("Sum of all lines") + printed("Rounding"), printed("Net"));
    assert_eq!(printed("Net") + printed("Tax "), printed("Total "));
}

#[tokio::test(flavor = "multi_thread")]
async fn hours_are_drafted_posted_and_explained() {
    let ledger = Ledger::open().await;
    let status = ledger.get("/api/v1/ledger").await;
    assert_eq!(
        (&status["open"], &status["first_open_month"]),
        (&json!(true), &json!("2026-01")),
        "a new journal: {status}"
    );
    // 20 minutes later, nothing is posted, but a draft is there: 2 GPU × 1200 s × 0.01.
    ledger.clock.advance(Span::from_secs(1200));
    let draft = ledger.get("/api/v1/ledger/draft?tenant=physics").await;
    let payer = &draft["payers"][0];
    assert_eq!((text(payer, "payer"), text(payer, "amount")), ("physics-main", "24.000000"), "{draft}");
    assert_eq!(draft["totals"], json!([{ "currency": "EUR", "amount": "24.000000" }]));
    // The hour ends at 22:00: 40 minutes of two GPUs and of one.
    let settled = ledger.pass(1300).await;
    assert_eq!((&settled["settled_through"], &settled["hours_unsettled"]), (&json!("2026-01-31T22:00:00Z"), &json!(0)));
    assert_eq!(settled["entries"], 2);
    let entry = ledger.usage_of("physics").await;
    assert_eq!((text(&entry, "amount"), text(&entry, "currency")), ("48.000000", "EUR"));
    assert_eq!(entry["line"]["unit_hours"], "1.333333333");
    assert_eq!(entry["line"]["exact"], "48/1");
    assert_eq!(entry["legs"][0], json!({ "account": "receivable", "project": "physics-main", "amount": "48.000000" }));
    assert_eq!(entry["legs"][1], json!({ "account": "revenue", "class": "h100", "amount": "-48.000000" }));
    // By either ID.
    let (id, uid) = (text(&entry, "id"), text(&entry, "uid"));
    assert_eq!(ledger.get(&format!("/api/v1/ledger/entries/{uid}")).await["id"], id);
    let explained = ledger.get(&format!("/api/v1/ledger/entries/{id}/explain")).await;
    let lease = &explained["leases"][0];
    assert_eq!((text(lease, "seconds"), text(lease, "quantity")), ("2400.000000000", "2"));
    assert_eq!((text(lease, "forgiven_seconds"), text(lease, "unit_hours")), ("0.000000000", "1.333333333"));
    assert_eq!(
        (text(&explained, "other_unit_hours"), text(&explained, "exact")),
        ("0.000000000", "48/1"),
        "{explained}"
    );
    let price = &explained["price"];
    assert_eq!((text(price, "price"), text(price, "priority_factor"), text(price, "tier_factor")), ("0.01", "1", "1"));
    let arithmetic = explained["arithmetic"].to_string();
    assert!(arithmetic.contains("48/1 EUR exactly"), "{arithmetic}");
    // Balances are derived, and sum to zero.
    let balances = ledger.get("/api/v1/ledger/balances").await;
    let sum: i128 = balances["balances"].as_array().expect("a list").iter().map(|one| steps(&one["balance"])).sum();
    assert_eq!(sum, 0, "{balances}");
    let own = ledger.get("/api/v1/ledger/balances?tenant=physics&account=receivable").await;
    assert_eq!(text(&own["balances"][0], "balance"), "48.000000");
    // One at a time, by cursor.
    let first = ledger.get("/api/v1/ledger/entries?limit=1").await;
    let cursor = text(&first, "next_cursor");
    let second = ledger.get(&format!("/api/v1/ledger/entries?limit=1&cursor={cursor}")).await;
    assert_ne!(first["entries"][0]["id"], second["entries"][0]["id"]);
    ledger.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_corrected_disputed_and_corrected_again() {
    let ledger = Ledger::open().await;
    ledger.pass(HOUR).await;
    let world = &ledger.world;
    let entry = ledger.usage_of("physics").await;
    let id = text(&entry, "id").to_owned();

    let dispute = json!({ "entry": id, "reason": "the node was slow" });
    let admin = |path: &'static str, body: Value| ledger.as_role(Role::TenantAdmin, Method::Post, path, Some(body));
    assert_eq!(admin("/api/v1/ledger/disputes", dispute.clone()).await.expect(201)["entry"]["disputed"], true);
    assert_eq!(admin("/api/v1/ledger/disputes", dispute.clone()).await.expect(409)["code"], "entry_disputed");
    assert_eq!(ledger.get("/api/v1/ledger/disputes").await["entries"][0]["id"], json!(id));
    assert_eq!(ledger.get("/api/v1/periods/2026-01").await["disputes"], json!([id]));

    let correct = json!({ "entry": id, "amount": "40.5", "reason": "agreed" });
    let put = world.post("/api/v1/ledger/corrections", correct.clone()).await.expect(201);
    assert_eq!(text(&put, "change"), "-7.500000");
    let kinds: Vec<&str> = put["entries"].as_array().expect("entries").iter().map(|one| text(one, "kind")).collect();
    assert_eq!(kinds, ["reversal", "replacement"]);
    assert_eq!(put["entries"][0]["amount"], "-48.000000");
    let again = world.post("/api/v1/ledger/corrections", correct.clone()).await.expect(409);
    assert_eq!((&again["code"], &again["corrected_by"]), (&json!("entry_corrected"), &put["entries"][0]["id"]));
    // Whoever did not get the answer asks again under the same key, and gets it, also when more was booked since.
    let other = json!({ "entry": ledger.usage_of("chemistry").await["id"], "amount": "1", "reason": "agreed" });
    let keyed = async |body: &Value| {
        let request = world.client().post(format!("{}/api/v1/ledger/corrections", world.url));
        let request = request.bearer_auth(&world.operator).header("idempotency-key", "lost");
        let request = request.header("content-type", "application/json").body(body.to_string());
        crate::world::read(request.send().await.expect("an answer")).await
    };
    let first = keyed(&other).await.expect(201);
    let by_hand = json!({ "tenant": "chemistry", "project": "chemistry-main", "currency": "EUR", "reason": "fee",
        "legs": [{ "account": "receivable", "amount": "1" }, { "account": "adjustments", "amount": "-1" }] });
    world.post("/api/v1/ledger/entries", by_hand).await.expect(201);
    assert_eq!(keyed(&other).await.expect(201), first);
    assert_eq!(keyed(&correct).await.expect(409)["code"], "idempotency_mismatch");
    // A correction of the correction: only reversed.
    let second = json!({ "entry": put["entries"][1]["id"], "reason": "free of charge" });
    let put = world.post("/api/v1/ledger/corrections", second).await.expect(201);
    assert_eq!((text(&put, "change"), put["entries"].as_array().map(Vec::len)), ("-40.500000", Some(1)));
    let explained = ledger.get(&format!("/api/v1/ledger/entries/{id}/explain")).await;
    assert_eq!(explained["corrections"].as_array().map(Vec::len), Some(3), "{explained}");
    let balance = ledger.get("/api/v1/ledger/balances?project=physics-main&tenant=physics").await;
    assert_eq!(text(&balance["balances"][0], "balance"), "0.000000");

    let close = json!({ "entry": id, "reason": "settled" });
    assert_eq!(admin("/api/v1/ledger/disputes/close", close.clone()).await.expect(200)["entry"]["disputed"], false);
    assert_eq!(admin("/api/v1/ledger/disputes/close", close).await.expect(409)["code"], "entry_not_disputed");
    ledger.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_is_closed_invoiced_and_paid() {
    let ledger = Ledger::with(|config| {
        config.issuer.name = Some("Tartu <Compute>".into());
        config.issuer.bank = vec!["EE00 1234".into()];
        config.ledger.payment_terms_days = 14;
    })
    .await;
    let world = &ledger.world;
    world.put("/api/v1/tenants/physics/tax-rate", json!({ "rate": "0.24", "from": "2026-01" })).await.expect(200);
    let address = json!({ "billing_address": ["Physics & Co", "Main Street 1"], "tax_id": "EE1" });
    let billing = ledger.as_role(Role::BillingAuthority, Method::Patch, "/api/v1/tenants/physics", Some(address)).await;
    assert_eq!(billing.expect(200)["tenant"]["billing_address"], json!(["Physics & Co", "Main Street 1"]));
    // Not before it is over, and not out of order.
    let early = world.post("/api/v1/periods/2026-01/close", json!({})).await.expect(409);
    assert_eq!(early["code"], "period_not_over");
    let preview = ledger.get("/api/v1/periods/2026-01").await;
    assert_eq!((&preview["can_close"], &preview["missing"][0]["code"]), (&json!(false), &json!("period_not_over")));
    ledger.pass(HOUR).await;
    let draft = ledger.get("/api/v1/invoices/draft?tenant=physics").await;
    assert_eq!(text(&draft["drafts"][0], "total"), "59.520000", "48 EUR and 24 %: {draft}");

    ledger.close_january().await;
    let again = world.post("/api/v1/periods/2026-01/close", json!({})).await.expect(409);
    assert_eq!(again["code"], "period_closed");
    assert_eq!(world.post("/api/v1/periods/2025-12/close", json!({})).await.expect(404)["code"], "no_such_period");
    let invoices = ledger.get("/api/v1/invoices?month=2026-01").await;
    let invoices = invoices["invoices"].as_array().expect("a list");
    assert_eq!(invoices.len(), 2);
    let own = invoices.iter().find(|one| one["tenant"] == "physics").expect("one of physics");
    // 2 GPU × 2 h × 36 EUR = 144, and 24 %.
    assert_eq!(
        (text(own, "total"), text(own, "status"), text(own, "due_at")),
        ("178.560000", "open", "2026-02-15T02:20:00Z"),
        "{own}"
    );
    let number = text(own, "number").to_owned();
    let invoice = ledger.get(&format!("/api/v1/invoices/{number}")).await;
    let lines: i128 = invoice["lines"].as_array().expect("lines").iter().map(|line| steps(&line["amount"])).sum();
    assert_eq!(lines + steps(&invoice["rounding"]) + steps(&invoice["tax"]), steps(&invoice["total"]));

    let csv = world.get(&format!("/api/v1/invoices/{number}?format=csv")).await;
    assert_eq!(csv.status, 200);
    let rows: Vec<&str> = csv.text.lines().skip(1).collect();
    let amounts: Vec<i128> = rows.iter().map(|row| steps(&json!(row.rsplit(',').next()))).collect();
    let [parts @ .., total, owed] = &amounts[..] else { panic!("{}", csv.text) };
    assert_eq!(parts.iter().sum::<i128>(), *total, "{}", csv.text);
    // No prepaid credit was used for it, so all of it is owed.
    let names: Vec<&str> = rows.iter().filter_map(|row| row.split(',').nth(1)).collect();
    assert!(names.ends_with(&["total", "owed"]) && owed == total, "{}", csv.text);
    let page = world.get(&format!("/api/v1/invoices/{number}?format=html")).await;
    assert!(page.headers.contains_key("content-security-policy"));
    for part in ["Tartu &lt;Compute&gt;", "Physics &amp; Co", "178.56", "144.000000", "15 February 2026", &number] {
        assert!(page.text.contains(part), "no {part} on {}", page.text);
    }
    assert!(!page.text.contains("<Compute>"));
    printed_figures_add_up(&page.text);

    // Paid twice under one reference is paid once.
    let pay = json!({ "invoice": number, "amount": "100", "reference": "bank-1" });
    let first = world.post("/api/v1/payments", pay.clone()).await.expect(201);
    assert_eq!((text(&first, "owed"), text(&first["payment"], "currency")), ("78.560000", "EUR"));
    assert_eq!(world.post("/api/v1/payments", pay).await.expect(201), first);
    let other = json!({ "invoice": number, "amount": "101", "reference": "bank-1" });
    assert_eq!(world.post("/api/v1/payments", other).await.expect(409)["code"], "payment_exists");
    let wrong = json!({ "invoice": number, "amount": "1", "currency": "USD", "reference": "bank-2" });
    assert_eq!(world.post("/api/v1/payments", wrong).await.expect(422)["code"], "currency_mismatch");
    let rest = json!({ "invoice": number, "amount": "78.56", "reference": "bank-3" });
    world.post("/api/v1/payments", rest).await.expect(201);
    assert_eq!(ledger.get(&format!("/api/v1/invoices/{number}")).await["status"], "paid");
    assert_eq!(ledger.get("/api/v1/payments?tenant=physics").await["payments"].as_array().map(Vec::len), Some(2));
    assert_eq!(ledger.get("/api/v1/invoices?status=paid").await["invoices"].as_array().map(Vec::len), Some(1));
    // A closed month is corrected in the open one.
    let entry = ledger.usage_of("chemistry").await;
    let correct = json!({ "entry": entry["id"], "reason": "broken" });
    let put = world.post("/api/v1/ledger/corrections", correct).await.expect(201);
    let reversal = &put["entries"][0];
    assert_eq!((text(reversal, "month"), text(reversal, "original_month")), ("2026-02", "2026-01"));
    let draft = ledger.get("/api/v1/invoices/draft?tenant=chemistry").await;
    assert_eq!(draft["drafts"][0]["lines"][0]["section"], "adjustment", "{draft}");
    let late = world.put("/api/v1/tenants/physics/tax-rate", json!({ "rate": "0.3", "from": "2026-01" })).await;
    assert_eq!(late.expect(409)["code"], "period_closed");
    ledger.world.stop().await;
}

/// A node is lost at 22:10, and the policy charges nothing for that: the 48.00 of the hour from 21:00 go back, and the
/// explanation names the policy.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_charged_names_the_policy() {
    let ledger = Ledger::open().await;
    let policy = json!({ "charges": { "node_lost": "none" } });
    let put = ledger.world.post("/api/v1/charge-policies", policy).await.expect(201);
    let number = put["charge_policy"]["id"].clone();
    ledger.pass(HOUR).await;
    let lost = json!({ "last_seen": "2026-01-31T22:10:00Z" });
    ledger.world.post("/api/v1/nodes/n1/lose", lost).await.expect(200);
    ledger.pass(HOUR).await;
    let entries = ledger.entries("tenant=physics&kind=usage").await;
    let back = entries.iter().find(|entry| entry["amount"] == "-48.000000").expect("what is given back");
    let explained = ledger.get(&format!("/api/v1/ledger/entries/{}/explain", text(back, "id"))).await;
    let lease = &explained["leases"][0];
    assert_eq!((&lease["charge_policy"], text(lease, "forgiven_seconds")), (&number, "2400.000000000"), "{explained}");
    assert_eq!(explained["charge_policies"], json!([number]));
    let words = explained["arithmetic"].to_string();
    assert!(words.contains(&format!("Charge policy {number} was in force")), "{words}");
    ledger.world.stop().await;
}

/// One line, two policies: a GPU that was released after five minutes, under the first, and two that are held, under the
/// second: 3.00 and 48.00. Neither forgives anything here.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_tells_all_charge_policies_of_its_leases() {
    let ledger = Ledger::open().await;
    let world = &ledger.world;
    let request = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let lease = world.post("/api/v1/leases", request).await.expect(201)["leases"][0]["id"].clone();
    let mut numbers = Vec::new();
    for (after, cause) in [(0, "node_lost"), (300, "preempted")] {
        ledger.clock.advance(Span::from_secs(after));
        if after > 0 {
            let lease = lease.as_str().expect("an ID");
            world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
            ledger.clock.advance(Span::from_secs(1));
        }
        let put = world.post("/api/v1/charge-policies", json!({ "charges": { cause: "none" } })).await.expect(201);
        numbers.push(put["charge_policy"]["id"].clone());
    }
    ledger.pass(HOUR).await;
    let entry = ledger.usage_of("physics").await;
    assert_eq!(entry["amount"], "51.000000");
    let explained = ledger.get(&format!("/api/v1/ledger/entries/{}/explain", text(&entry, "id"))).await;
    assert_eq!(
        (&explained["charge_policies"], &explained["leases"][0]["charge_policy"]),
        (&json!(numbers), &Value::Null)
    );
    ledger.world.stop().await;
}

/// What somebody asked for names the key of the request; what the daemon books by itself has none.
#[tokio::test(flavor = "multi_thread")]
async fn entries_name_the_key_of_the_request_that_booked_them() {
    let ledger = Ledger::open().await;
    ledger.pass(HOUR).await;
    let world = &ledger.world;
    let keyed = async |path: &str, key: &[u8], body: &Value| {
        let request = world.client().post(format!("{}/api/v1/{path}", world.url)).bearer_auth(&world.operator);
        let key = reqwest::header::HeaderValue::from_bytes(key).expect("a header");
        let request = request.header("idempotency-key", key).header("content-type", "application/json");
        crate::world::read(request.body(body.to_string()).send().await.expect("an answer")).await.expect(201)
    };
    let by_hand = json!({ "tenant": "chemistry", "project": "chemistry-main", "currency": "EUR", "reason": "fee",
        "legs": [{ "account": "receivable", "amount": "1" }, { "account": "adjustments", "amount": "-1" }] });
    let put = keyed("ledger/entries", b"fee-1", &by_hand).await;
    assert_eq!(put["entry"]["idempotency_key"], "fee-1", "{put}");
    let usage = ledger.usage_of("chemistry").await;
    let correct = json!({ "entry": usage["id"], "amount": "20", "reason": "agreed" });
    for entry in keyed("ledger/corrections", b"fix-1", &correct).await["entries"].as_array().expect("entries") {
        assert_eq!(entry["idempotency_key"], "fix-1", "{entry}");
    }
    let pay = json!({ "tenant": "chemistry", "currency": "EUR", "amount": "5", "reference": "bank-1" });
    keyed("payments", b"p\xff", &pay).await;
    let credit = json!({ "tenant": "chemistry", "amount": "7", "reference": "order 1" });
    world.post("/api/v1/prepaid/top-ups", credit).await.expect(201);
    let keys = async || {
        let entries = ledger.entries("tenant=chemistry&limit=100").await;
        let told = |entry: &Value| json!([entry["kind"], entry["idempotency_key"], entry["idempotency_key_hex"]]);
        entries.iter().map(told).collect::<Vec<Value>>()
    };
    let expected = [
        json!(["usage", null, null]),
        json!(["adjustment", "fee-1", null]),
        json!(["reversal", "fix-1", null]),
        json!(["replacement", "fix-1", null]),
        json!(["payment", null, "70ff"]),
        json!(["top_up", null, null]),
    ];
    assert_eq!(keys().await, expected);
    // The books keep it on disk.
    let Ledger { world, clock } = ledger;
    let world = World::at(clock, world.stop().await, |_| {}).await;
    let entries = world.get("/api/v1/ledger/entries?tenant=chemistry&kind=adjustment").await.expect(200);
    assert_eq!(entries["entries"][0]["idempotency_key"], "fee-1");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_see_their_own_and_others_do_not_exist() {
    let ledger = Ledger::open().await;
    ledger.pass(HOUR).await;
    let foreign = ledger.usage_of("chemistry").await;
    let (own, foreign) = (ledger.usage_of("physics").await, text(&foreign, "id").to_owned());
    let of_others = json!({ "entry": foreign, "reason": "not mine" });
    for role in [Role::TenantAdmin, Role::ProjectMember] {
        let get = |path: String| ledger.as_role(role, Method::Get, path.leak(), None);
        let listed = get("/api/v1/ledger/entries".into()).await.expect(200);
        assert_eq!(listed["entries"].as_array().map(Vec::len), Some(1), "{role}: {listed}");
        assert_eq!(listed["entries"][0]["id"], own["id"]);
        for path in [format!("/api/v1/ledger/entries/{foreign}"), format!("/api/v1/ledger/entries/{foreign}/explain")] {
            assert_eq!(get(path).await.expect(404)["code"], "unknown_entry");
        }
        let balances = get("/api/v1/ledger/balances".into()).await.expect(200);
        assert_eq!(balances["balances"].as_array().map(Vec::len), Some(1), "{balances}");
        assert!(!get("/api/v1/ledger/draft".into()).await.expect(200).to_string().contains("chemistry"));
        assert_eq!(get("/api/v1/ledger".into()).await.expect(200)["entries"], Value::Null);
        assert_eq!(get("/api/v1/ledger/entries?tenant=chemistry".into()).await.expect(404)["code"], "unknown_tenant");
    }
    let dispute = json!({ "entry": foreign, "reason": "not mine" });
    let refused = ledger.as_role(Role::TenantAdmin, Method::Post, "/api/v1/ledger/disputes", Some(dispute)).await;
    assert_eq!(refused.expect(404)["code"], "unknown_entry", "of another tenant");
    let correct = json!({ "entry": own["id"], "reason": "mine" });
    let refused = ledger.as_role(Role::TenantAdmin, Method::Post, "/api/v1/ledger/corrections", Some(correct)).await;
    assert_eq!(refused.expect(403)["code"], "role_forbids");
    // An invoice is about all projects of a tenant.
    ledger.close_january().await;
    let invoices = ledger.as_role(Role::TenantAdmin, Method::Get, "/api/v1/invoices", None).await.expect(200);
    assert_eq!(invoices["invoices"].as_array().map(Vec::len), Some(1));
    assert_eq!(ledger.as_role(Role::ProjectMember, Method::Get, "/api/v1/invoices", None).await.status, 403);
    let foreign = ledger.get("/api/v1/invoices?tenant=chemistry").await["invoices"][0]["number"].clone();
    let path = format!("/api/v1/invoices/{}", foreign.as_str().expect("a number"));
    assert_eq!(
        ledger.as_role(Role::TenantAdmin, Method::Get, &path, None).await.expect(404)["code"],
        "unknown_invoice"
    );
    // A billing authority of one tenant does not close the month of all.
    let token = json!({ "name": "own billing", "role": "billing_authority", "tenant": "physics" });
    let token = ledger.world.post("/api/v1/tokens", token).await.expect(201);
    let secret = token["secret"].as_str().expect("a secret");
    let corrected =
        |body: Value| ledger.world.send(Some(secret), Method::Post, "/api/v1/ledger/corrections", Some(body));
    assert_eq!(corrected(of_others).await.expect(404)["code"], "unknown_entry", "of another tenant");
    corrected(json!({ "entry": own["id"], "reason": "mine" })).await.expect(201);
    for path in ["/api/v1/periods/2026-02/close", "/api/v1/ledger/settle", "/api/v1/ledger/open"] {
        let refused = ledger.world.send(Some(secret), Method::Post, path, None).await;
        assert_eq!(refused.expect(403)["code"], "role_forbids", "{path}");
    }
    ledger.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_by_hand_must_balance_and_bad_input_changes_nothing() {
    let ledger = Ledger::open().await;
    ledger.pass(HOUR).await;
    let world = &ledger.world;
    let post = |legs: Value| {
        let body = json!({ "tenant": "physics", "project": "physics-main", "currency": "EUR", "reason": "goodwill", "legs": legs });
        world.post("/api/v1/ledger/entries", body)
    };
    let leg = |account: &str, amount: &str| json!({ "account": account, "amount": amount });
    let before = ledger.get("/api/v1/ledger").await["entries"].clone();
    for (legs, status, code) in [
        (json!([leg("receivable", "-25"), leg("operator_loss", "24")]), 422, "unbalanced"),
        (json!([]), 422, "unbalanced"),
        (json!([leg("receivable", "-25"), leg("cash_clearing", "25")]), 422, "account_not_by_hand"),
        (json!([leg("receivable", "1"), leg("revenue", "-1")]), 422, "bad_body"),
        (json!([leg("receivable", "0.0000001"), leg("operator_loss", "-0.0000001")]), 422, "bad_body"),
        (json!([leg("receivable", "x"), leg("operator_loss", "-1")]), 422, "bad_body"),
        (json!([{ "account": "revenue", "class": "nope", "amount": "1" }]), 404, "unknown_class"),
    ] {
        let refused = post(legs.clone()).await.expect(status);
        assert_eq!(refused["code"], code, "{legs}: {refused}");
    }
    for (path, body, status, code) in [
        ("corrections", json!({ "entry": "entry-1-0", "reason": "x" }), 404, "unknown_entry"),
        ("corrections", json!({ "entry": "nonsense", "reason": "x" }), 404, "unknown_entry"),
        ("corrections", json!({ "entry": "entry-1-0", "reason": "" }), 422, "bad_name"),
        ("open", json!({}), 409, "ledger_already_open"),
    ] {
        let refused = world.post(&format!("/api/v1/ledger/{path}"), body.clone()).await.expect(status);
        assert_eq!(refused["code"], code, "{path} {body}");
    }
    for (path, code) in [
        ("ledger/entries?currency=euro", "bad_query"),
        ("ledger/entries?month=2026", "bad_month"),
        ("ledger/entries?kind=fee", "bad_query"),
        ("ledger/entries?cursor=zzz", "bad_cursor"),
        ("periods/2026-1", "no_such_period"),
        ("periods/2025-12", "no_such_period"),
        ("invoices/INV-9", "unknown_invoice"),
        ("invoices/draft", "tenant_needed"),
        ("invoices/draft?tenant=physics&month=2025-01", "period_closed"),
    ] {
        assert_eq!(world.get(&format!("/api/v1/{path}")).await.code(), code, "{path}");
    }
    assert_eq!(ledger.get("/api/v1/ledger").await["entries"], before, "nothing was booked");
    let put = post(json!([leg("receivable", "-25"), leg("operator_loss", "25")])).await.expect(201);
    assert_eq!((text(&put["entry"], "kind"), text(&put["entry"], "amount")), ("adjustment", "-25.000000"));
    let tax = world.put("/api/v1/tenants/physics/tax-rate", json!({ "rate": "1.5" })).await.expect(422);
    assert_eq!(tax["code"], "bad_tax_rate");
    // A project with leases or with a balance is not deleted.
    let delete = |path: &'static str| world.send(Some(&world.operator), Method::Delete, path, None);
    let mut codes = Vec::new();
    for seconds in [0, 4200, HOUR] {
        ledger.pass(seconds).await;
        codes.push(delete("/api/v1/projects/chemistry-main?tenant=chemistry").await.expect(409)["code"].clone());
    }
    assert_eq!(codes, ["project_has_leases", "project_has_balance", "project_has_balance"]);
    ledger.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn control_planes_and_workloads_are_apart_and_add_up() {
    let ledger = Ledger::open().await;
    let world = &ledger.world;
    let request = |more: Value| {
        let mut body = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h",
            "asks": [{ "class": "h100", "quantity": 1 }] });
        more.as_object().expect("an object").iter().for_each(|(key, value)| body[key] = value.clone());
        body
    };
    let refused = world.post("/api/v1/leases", request(json!({ "control_plane": true }))).await.expect(422);
    assert_eq!((&refused["code"], &refused["field"]), (&json!("bad_body"), &json!("control_plane")));
    crate::apps::register(world, "seven", "physics-main", json!({})).await;
    world.post("/api/v1/leases", request(json!({ "control_plane": true, "app_instance": "seven" }))).await.expect(201);
    ledger.pass(2 * HOUR).await;
    let window = "from=2026-01-31T21:00:00Z&to=2026-01-31T23:00:00Z&tenant=physics";
    let costs = ledger.get(&format!("/api/v1/costs?{window}&by=control_plane")).await;
    let lines: Vec<(bool, &str)> = costs["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| (line["control_plane"].as_bool().expect("a flag"), text(line, "amount")))
        .collect();
    // 2 GPU from 21:20 to 23:00, and 1 GPU for an hour.
    assert_eq!(lines, [(false, "120.000000"), (true, "36.000000")], "{costs}");
    assert_eq!(text(&costs["total"][0], "amount"), "156.000000");
    for (flag, seconds) in [("true", "3600.000000000"), ("false", "12000.000000000")] {
        let usage = ledger.get(&format!("/api/v1/usage?{window}&control_plane={flag}")).await;
        assert_eq!(text(&usage["lines"][0], "unit_seconds"), seconds, "{usage}");
    }
    // The lines of the ledger have all anchors of the runtime.
    let entries = ledger.entries("tenant=physics&kind=usage").await;
    let line = &entries.iter().find(|entry| entry["line"]["control_plane"] == true).expect("one")["line"];
    let anchors = ["app_instance", "app_slug", "operating_mode", "control_plane_scope", "runtime_backend"];
    assert_eq!(
        json!(anchors.map(|name| &line[name])),
        json!(["seven", "slurm", "tenant_dedicated", "project", "slurm"])
    );
    ledger.close_january().await;
    let number = ledger.get("/api/v1/invoices?tenant=physics").await["invoices"][0]["number"].clone();
    let invoice = ledger.get(&format!("/api/v1/invoices/{}", number.as_str().expect("a number"))).await;
    assert_eq!((text(&invoice, "workload"), text(&invoice, "control_plane")), ("144.000000", "36.000000"));
    assert_eq!(text(&invoice, "total"), "180.000000");
    ledger.world.stop().await;
}
