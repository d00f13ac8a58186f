//! Credit notes, and pages that a site prints its own way.

use crate::ledger::{HOUR, Ledger, printed_figures_add_up, steps, text};
use leasehold_server::config::Config;
use serde_json::{Value, json};
use std::path::Path;

/// Chemistry used a GPU for two hours (72.00) and is given back 100.00 in the same month, with a tax of a quarter: −28.00
/// and −7.00.
#[tokio::test(flavor = "multi_thread")]
async fn more_credits_than_usage_make_a_credit_note() {
    let ledger = Ledger::open().await;
    let world = &ledger.world;
    world.put("/api/v1/tenants/chemistry/tax-rate", json!({ "rate": "0.25", "from": "2026-01" })).await.expect(200);
    ledger.pass(HOUR).await;
    let refund = json!({ "tenant": "chemistry", "project": "chemistry-main", "currency": "EUR", "reason": "outage",
        "legs": [{ "account": "receivable", "amount": "-100" }, { "account": "operator_loss", "amount": "100" }] });
    world.post("/api/v1/ledger/entries", refund).await.expect(201);
    // Only the running hours are missing from the draft.
    let draft = world.get("/api/v1/invoices/draft?tenant=chemistry&format=html").await.text;
    assert!(draft.contains("Draft credit note"), "{draft}");
    ledger.close_january().await;

    // The two kinds have a series each, and both begin with 1.
    let all = ledger.get("/api/v1/invoices?month=2026-01").await;
    let mut numbers: Vec<(&str, &str)> = all["invoices"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (text(one, "number"), text(one, "kind")))
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [("CN-000001", "credit_note"), ("INV-000001", "invoice")]);
    let sealed = world.get("/api/v1/audit/records?kind=period.closed").await.expect(200);
    let counts = &sealed["records"][0]["body"];
    assert_eq!((&counts["invoices"], &counts["credit_notes"]), (&json!(1), &json!(1)), "{counts}");

    let note = ledger.get("/api/v1/invoices/CN-1").await;
    let figures = ["adjustments", "workload", "net", "tax", "total"].map(|field| text(&note, field));
    assert_eq!(figures, ["-100.000000", "72.000000", "-28.000000", "-7.000000", "-35.000000"], "{note}");
    // Nobody owes anything by it; it lowers what the tenant owes.
    assert_eq!((text(&note, "owed"), text(&note, "status")), ("0.000000", "paid"));
    let lines: i128 = note["lines"].as_array().expect("lines").iter().map(|line| steps(&line["amount"])).sum();
    assert_eq!(lines + steps(&note["rounding"]) + steps(&note["tax"]), steps(&note["total"]));
    // It equals what its entries say, and so does the balance of the tenant.
    let entries = ledger.entries("tenant=chemistry&limit=100").await;
    let booked: Vec<&Value> = entries.iter().filter(|entry| entry["invoice"] == "CN-000001").collect();
    assert_eq!(booked.iter().map(|entry| steps(&entry["amount"])).sum::<i128>(), steps(&note["total"]));
    let balances = ledger.get("/api/v1/ledger/balances?tenant=chemistry").await;
    let balances: Vec<(&str, &str)> = balances["balances"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (text(one, "account"), text(one, "balance")))
        .collect();
    assert_eq!(balances, [("receivable", "0.000000"), ("invoiced", "-35.000000")]);

    let csv = world.get("/api/v1/invoices/CN-000001?format=csv").await;
    assert_eq!(csv.status, 200);
    let name = csv.headers["content-disposition"].to_str().expect("text");
    assert_eq!(name, "attachment; filename=\"CN-000001.csv\"");
    let rows: Vec<&str> = csv.text.lines().skip(1).collect();
    assert!(rows.iter().all(|row| row.starts_with("CN-000001,")), "{}", csv.text);
    let amounts: Vec<i128> = rows.iter().map(|row| steps(&json!(row.rsplit(',').next()))).collect();
    let [parts @ .., total, owed] = &amounts[..] else { panic!("{}", csv.text) };
    assert_eq!((parts.iter().sum::<i128>(), *total, *owed), (-35_000_000, -35_000_000, 0), "{}", csv.text);

    let page = world.get("/api/v1/invoices/CN-000001?format=html").await.text;
    for part in ["Credit note", "Credit to", "CN-000001", "\u{2212}28.00", "\u{2212}35.00", "credited against"] {
        assert!(page.contains(part), "no {part} on {page}");
    }
    // Nobody has to pay it.
    assert!(!page.contains("Bill to") && !page.contains("<dt>Due</dt>"), "{page}");
    printed_figures_add_up(&page);

    // What was paid back is recorded like a payment, with the other sign.
    let back = json!({ "tenant": "chemistry", "currency": "EUR", "amount": "-35", "reference": "refund-1" });
    assert_eq!(text(&world.post("/api/v1/payments", back).await.expect(201), "owed"), "0.000000");
    ledger.world.stop().await;
}

fn write(path: &Path, template: &str) {
    std::fs::write(path, template).expect("a file");
}

/// A site prints its own page: every value is escaped, lists are repeated, and drafts and invoices look different.
#[tokio::test(flavor = "multi_thread")]
async fn a_site_prints_its_own_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let template = folder.path().join("bill.html");
    write(
        &template,
        "<title>{{#is_draft}}DRAFT{{/is_draft}}{{number}}</title>{{! ours }}\n\
         {{issuer_name}} to {{tenant_name}}:\n\
         {{#sections}}{{#lines}}[{{description}}|{{project}}|{{quantity}} {{unit}}|{{amount}}]{{/lines}}{{/sections}}\n\
         {{#tenant_address}}({{.}}){{/tenant_address}}{{^taxes}}no tax{{/taxes}} total={{total}} {{currency}}\n",
    );
    let at = template.clone();
    let ledger = Ledger::with(move |config| {
        config.issuer.name = Some("A <b> site".into());
        config.ledger.invoice_template = Some(at);
    })
    .await;
    let address = json!({ "billing_address": ["<i>Lane</i> 1", "Town"] });
    ledger
        .world
        .send(Some(&ledger.world.operator), leasehold_api::Method::Patch, "/api/v1/tenants/physics", Some(address))
        .await
        .expect(200);
    ledger.pass(HOUR).await;
    let draft = ledger.world.get("/api/v1/invoices/draft?tenant=physics&format=html").await.text;
    assert!(draft.starts_with("<title>DRAFT</title>"), "{draft}");
    ledger.close_january().await;
    let number = ledger.get("/api/v1/invoices?tenant=physics").await["invoices"][0]["number"].clone();
    let number = number.as_str().expect("a number");
    let page = ledger.world.get(&format!("/api/v1/invoices/{number}?format=html")).await;
    // 2 GPU for two hours at 0.01 a second.
    let expected = format!(
        "<title>{number}</title>\nA &lt;b&gt; site to physics:\n\
         [h100, pool main, standard|physics-main|4.000000 GPU-h|144.000000]\n\
         (&lt;i&gt;Lane&lt;/i&gt; 1)(Town)no tax total=144.00 EUR\n"
    );
    assert_eq!(page.text, expected);
    assert!(page.headers["content-security-policy"].to_str().expect("text").starts_with("default-src 'none'"));
    ledger.world.stop().await;
}

/// A daemon does not start with a template that it cannot use, and says where the mistake is.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_template_is_refused_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let template = folder.path().join("bill.html");
    let start = |folder: &Path| {
        let mut config = Config { data: folder.join("data"), listen: "127.0.0.1:0".into(), ..Config::default() };
        config.ledger.invoice_template = Some(template.clone());
        let start = leasehold_server::Start {
            clock: std::sync::Arc::new(leasehold_cell::SystemClock::new()),
            accept_clock: false,
            unproved_tail: leasehold_server::UnprovedTail::Refuse,
            new_operator_token: false,
            on_failure: std::sync::Arc::new(|why| panic!("the journal failed: {why}")),
        };
        leasehold_server::Daemon::open(config, start).map(|_| ()).map_err(|error| (error.code(), error.to_string()))
    };
    for (text, why) in [
        ("<p>\n{{totl}}</p>", "line 2: there is no value `totl`; did you mean `total`?"),
        ("{{#lines}}{{amount}}", "line 1: the section `lines` is not closed"),
        ("{{total", "`{{` is not closed by `}}`"),
    ] {
        write(&template, text);
        let (code, said) = start(folder.path()).expect_err("a broken template");
        assert_eq!(code, "invoice_template");
        assert!(said.starts_with("ledger.invoice_template: ") && said.contains(why), "{said}");
    }
    std::fs::remove_file(&template).expect("it is there");
    let (_, said) = start(folder.path()).expect_err("no template");
    assert!(said.contains("cannot be read"), "{said}");
}
