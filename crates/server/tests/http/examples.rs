//! The examples of the document that asked for the billing of app runtimes, from the registry to the invoice. A core costs
//! 0.002 EUR a second and a GPU 0.01, so that two hours of them are 14.40 and 72.00.

use crate::ledger::Ledger;
use crate::world::Answer;
use leasehold_api::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const HOUR: u64 = 3600;
const STORY: &str = "7a0e1c52-90fd-4a51-8f7e-0a1f5c6b2d10";

/// A site with a tenant `bio` and one runtime, `rt`.
pub(crate) struct Site {
    pub(crate) ledger: Ledger,
}

/// What each project pays, for the control plane and for work.
pub(crate) type Lines = BTreeMap<(String, bool), Vec<String>>;

fn with(mut body: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object") };
    more.into_iter().for_each(|(key, value)| body[key] = value);
    body
}

impl Site {
    /// A tenant `bio` with these projects, and an app with prices for all its units.
    pub(crate) async fn open(projects: &[&str]) -> Self {
        let ledger = Ledger::open().await;
        let world = &ledger.world;
        world.post("/api/v1/classes", json!({ "name": "core", "kind": "cpu" })).await.expect(201);
        let node = json!({ "name": "n2", "pool": "main", "teardown": "immediate", "capacity": { "core": 64 } });
        world.post("/api/v1/nodes", node).await.expect(201);
        world.post("/api/v1/tenants", json!({ "name": "bio" })).await.expect(201);
        for project in projects {
            world.post("/api/v1/projects", json!({ "name": project, "tenant": "bio" })).await.expect(201);
        }
        let prices = [("job_hours", "0.25"), ("gpu_hours", "0.5"), ("uptime_hours", "1"), ("requests", "0.005")];
        for (unit, price) in prices {
            world.post("/api/v1/unit-prices", json!({ "usage_unit": unit, "price": price })).await.expect(201);
        }
        let units: Vec<&str> = prices.iter().map(|(unit, _)| *unit).collect();
        let app = json!({ "slug": "app", "origin": "third_party", "usage_units": units });
        world.post("/api/v1/apps", app).await.expect(201);
        Self { ledger }
    }

    pub(crate) async fn instance(&self, project: &str, backend: &str, more: Value) {
        let new =
            json!({ "name": "rt", "tenant": "bio", "project": project, "app": "app", "runtime_backend": backend });
        self.ledger.world.post("/api/v1/app-instances", with(new, more)).await.expect(201);
    }

    /// Holds something for two hours.
    pub(crate) async fn hold(&self, project: &str, class: &str, quantity: u64, more: Value) -> Value {
        let lent = more.get("attachment").is_some();
        let asked = json!({ "tenant": "bio", "project": project, "ttl": "2h", "app_instance": "rt",
            "asks": [{ "class": class, "quantity": quantity }] });
        let path = if lent { "/api/v1/allocations" } else { "/api/v1/leases" };
        self.ledger.world.post(path, with(asked, more)).await.expect(201)
    }

    /// Reports usage from 21:30 to 22:30, as the runtime does.
    pub(crate) async fn report(&self, project: &str, unit: &str, quantity: &str, more: Value) -> Value {
        self.try_report(project, unit, quantity, more).await.expect(201)
    }

    /// Reports one request more than a project may make, and returns the problem.
    pub(crate) async fn overdrawn(&self, project: &str, more: Value) -> Value {
        self.try_report(project, "requests", "1", more).await.expect(422)
    }

    async fn try_report(&self, project: &str, unit: &str, quantity: &str, more: Value) -> Answer {
        let world = &self.ledger.world;
        let rt = world.get("/api/v1/app-instances/rt?tenant=bio").await.expect(200);
        let id = format!("{project}-{unit}-{quantity}");
        let record = json!({ "id": id, "org_id": "bio", "project_id": project, "app_instance_id": rt["id"].to_string(),
            "app_slug": "app", "operating_mode": rt["operating_mode"], "control_plane_scope": rt["control_plane_scope"],
            "runtime_backend": rt["runtime_backend"], "correlation_id": STORY, "usage_unit": unit,
            "quantity": quantity, "from": "2026-01-31T21:30:00Z", "to": "2026-01-31T22:30:00Z" });
        world.send(Some(&world.operator), Method::Post, "/api/v1/usage-records", Some(with(record, more))).await
    }

    /// Closes the month. Returns the total of the invoice, and what each project pays for the control plane and for work.
    pub(crate) async fn invoice(&self) -> (String, Lines) {
        self.ledger.close_january().await;
        self.invoice_of("bio").await
    }

    /// The same of the invoice that a tenant got.
    pub(crate) async fn invoice_of(&self, tenant: &str) -> (String, Lines) {
        let list = self.ledger.get(&format!("/api/v1/invoices?tenant={tenant}")).await;
        let number = list["invoices"][0]["number"].as_str().expect("a number").to_owned();
        let invoice = self.ledger.get(&format!("/api/v1/invoices/{number}")).await;
        let mut lines = Lines::new();
        for line in invoice["lines"].as_array().expect("lines") {
            assert_eq!(line["app_instance"], "rt", "{line}");
            let project = line["project"].as_str().expect("a project").to_owned();
            let of = line["class"].as_str().or(line["usage_unit"].as_str()).or(line["section"].as_str());
            let of = of.expect("a class, a unit or a section");
            let amount = line["amount"].as_str().expect("an amount");
            lines.entry((project, line["control_plane"] == true)).or_default().push(format!("{of} {amount}"));
        }
        lines.values_mut().for_each(|all| all.sort());
        (invoice["total"].as_str().expect("a total").to_owned(), lines)
    }

    /// The steps of the story, by their events.
    pub(crate) async fn story(&self) -> Vec<String> {
        let timeline = self.ledger.get(&format!("/api/v1/timeline/{STORY}")).await;
        let steps = timeline["steps"].as_array().expect("steps").iter();
        let mut events: Vec<String> = steps.map(|step| step["event"].as_str().unwrap_or("").to_owned()).collect();
        events.dedup();
        events
    }
}

pub(crate) fn lines(expected: &[(&str, bool, &[&str])]) -> Lines {
    let line = |(project, control_plane, all): &(&str, bool, &[&str])| {
        ((project.to_string(), *control_plane), all.iter().map(ToString::to_string).collect())
    };
    expected.iter().map(line).collect()
}

const TO_THE_INVOICE: [&str; 3] = ["usage.recorded", "ledger.posted", "invoice.issued"];

/// Control plane and jobs of a project's own Slurm are on that project: 2 cores for two hours are 2 × 7200 × 0.002 = 28.80,
/// a GPU is 7200 × 0.01 = 72.00, two job-hours are 0.50.
#[tokio::test(flavor = "multi_thread")]
async fn slurm_of_a_project() {
    let site = Site::open(&["dev"]).await;
    site.instance("dev", "slurm", json!({})).await;
    site.hold("dev", "core", 2, json!({ "control_plane": true })).await;
    site.hold("dev", "h100", 1, json!({})).await;
    site.ledger.pass(2 * HOUR).await;
    assert_eq!(site.report("dev", "job_hours", "2", json!({})).await["charge"], "billed");
    let (total, found) = site.invoice().await;
    let expected: &[(&str, bool, &[&str])] =
        &[("dev", false, &["h100 72.000000", "job_hours 0.500000"]), ("dev", true, &["core 28.800000"])];
    assert_eq!(found, lines(expected));
    assert_eq!(total, "101.300000");
    assert_eq!(site.story().await, TO_THE_INVOICE);
    site.ledger.world.stop().await;
}

/// The owner `hpc` pays for the controller (28.80), `a` and `b` for the GPUs that they lend (72.00 and 144.00), and `c`,
/// which only submits, for nothing: its jobs are shown.
#[tokio::test(flavor = "multi_thread")]
async fn slurm_that_a_tenant_shares() {
    let site = Site::open(&["hpc", "a", "b", "c"]).await;
    site.instance("hpc", "slurm", json!({ "control_plane_scope": "tenant" })).await;
    let world = &site.ledger.world;
    site.hold("hpc", "core", 2, json!({ "control_plane": true })).await;
    let mut lent = Vec::new();
    for (project, gpus) in [("a", 1), ("b", 2)] {
        let lend = json!({ "app_instance": "rt", "source_project": project, "tenant": "bio" });
        let attachment = world.post("/api/v1/attachments", lend).await.expect(201)["attachment"]["id"].clone();
        let held = site.hold("hpc", "h100", gpus, json!({ "attachment": attachment })).await;
        lent.push(json!({ "attachment_id": attachment, "allocation_id": held["id"] }));
    }
    site.ledger.pass(2 * HOUR).await;
    let shown = site.report("c", "gpu_hours", "1", lent[0].clone()).await;
    assert_eq!((&shown["charge"], &shown["no_submitter"]), (&json!("reported"), &json!(false)));
    // Nobody is known to have submitted this one: it is the owner's, and marked.
    let nobodys = site.report("hpc", "gpu_hours", "2", lent[1].clone()).await;
    assert_eq!((&nobodys["charge"], &nobodys["no_submitter"]), (&json!("reported"), &json!(true)));
    let usage = site.ledger.get("/api/v1/usage?by=project&tenant=bio&from=2026-01-31T21:00:00Z").await;
    let reported: Vec<(&Value, &Value)> = usage["reported"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| (&line["project"], &line["quantity"]))
        .collect();
    assert_eq!(reported, [(&json!("hpc"), &json!("2")), (&json!("c"), &json!("1"))]);
    let (total, found) = site.invoice().await;
    let expected: &[(&str, bool, &[&str])] =
        &[("a", false, &["h100 72.000000"]), ("b", false, &["h100 144.000000"]), ("hpc", true, &["core 28.800000"])];
    assert_eq!(found, lines(expected));
    assert_eq!(total, "244.800000");
    // What is only shown is on no entry.
    assert_eq!(site.story().await, ["usage.recorded"]);
    site.ledger.world.stop().await;
}

/// Uptime (one hour at 1.00) and 1000 requests at 0.005 are those of the project that owns the service, beside its GPU.
#[tokio::test(flavor = "multi_thread")]
async fn private_model_serving() {
    let site = Site::open(&["chat"]).await;
    site.instance("chat", "serving", json!({})).await;
    site.hold("chat", "h100", 1, json!({})).await;
    site.ledger.pass(2 * HOUR).await;
    site.report("chat", "uptime_hours", "1", json!({})).await;
    site.report("chat", "requests", "1000", json!({})).await;
    let (total, found) = site.invoice().await;
    let all: &[&str] = &["h100 72.000000", "requests 5.000000", "uptime_hours 1.000000"];
    assert_eq!(found, lines(&[("chat", false, all)]));
    assert_eq!(total, "78.000000");
    assert_eq!(site.story().await, TO_THE_INVOICE);
    site.ledger.world.stop().await;
}

/// The head of a Ray cluster against its workers: 4 cores for two hours (57.60) and an hour of its uptime (1.00), against
/// two GPUs (144.00) and three GPU-hours of work (1.50).
#[tokio::test(flavor = "multi_thread")]
async fn the_head_of_a_ray_cluster_and_its_workers() {
    let site = Site::open(&["train"]).await;
    site.instance("train", "ray", json!({})).await;
    site.hold("train", "core", 4, json!({ "control_plane": true })).await;
    site.hold("train", "h100", 2, json!({})).await;
    site.ledger.pass(2 * HOUR).await;
    site.report("train", "uptime_hours", "1", json!({ "control_plane_component": true })).await;
    site.report("train", "gpu_hours", "3", json!({})).await;
    let costs = site.ledger.get("/api/v1/costs?by=control_plane&tenant=bio&from=2026-01-31T21:00:00Z").await;
    let sums: BTreeMap<bool, &Value> = costs["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| (line["control_plane"] == true, &line["amount"]))
        .collect();
    assert_eq!(sums, BTreeMap::from([(true, &json!("58.600000")), (false, &json!("145.500000"))]), "{costs}");
    // By the anchors that follow from the instance, leases and what was reported together.
    let by = "app,operating_mode,control_plane_scope,runtime_backend";
    let costs = site.ledger.get(&format!("/api/v1/costs?by={by}&tenant=bio&from=2026-01-31T21:00:00Z")).await;
    let line = &costs["lines"][0];
    let anchors = ["app", "operating_mode", "control_plane_scope", "runtime_backend", "amount"].map(|name| &line[name]);
    assert_eq!(json!(anchors), json!(["app", "tenant_dedicated", "project", "ray", "204.100000"]), "{costs}");
    let usage = site.ledger.get("/api/v1/usage?by=runtime_backend,app&tenant=bio&from=2026-01-31T21:00:00Z").await;
    assert_eq!([&usage["reported"][0]["app"], &usage["lines"][0]["runtime_backend"]], [&json!("app"), &json!("ray")]);
    let (total, found) = site.invoice().await;
    let expected: &[(&str, bool, &[&str])] = &[
        ("train", false, &["gpu_hours 1.500000", "h100 144.000000"]),
        ("train", true, &["core 57.600000", "uptime_hours 1.000000"]),
    ];
    assert_eq!(found, lines(expected));
    assert_eq!(total, "204.100000");
    assert_eq!(site.story().await, TO_THE_INVOICE);
    site.ledger.world.stop().await;
}
