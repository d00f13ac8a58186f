//! A daemon in a temporary folder, with two tenants, a token of every role, and a way to talk to it.

use crate::conform;
use leasehold_api::{Method, Role};
use leasehold_cell::{Clock, ManualClock, SystemClock};
use leasehold_server::config::Config;
use leasehold_server::{Daemon, Start};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(crate) struct World {
    pub(crate) url: String,
    pub(crate) operator: String,
    pub(crate) tokens: BTreeMap<Role, String>,
    client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<Result<(), String>>>,
    pub(crate) folder: tempfile::TempDir,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text))
    }
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()
    }
}

impl World {
    /// A new daemon, empty but for its operator.
    pub(crate) async fn empty() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(shape: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::in_folder(folder, shape).await
    }

    pub(crate) async fn in_folder(folder: tempfile::TempDir, shape: impl FnOnce(&mut Config)) -> Self {
        Self::at(Arc::new(SystemClock::new()), folder, shape).await
    }

    /// A daemon with a clock of the test's own.
    pub(crate) async fn at(clock: Arc<dyn Clock>, folder: tempfile::TempDir, shape: impl FnOnce(&mut Config)) -> Self {
        // Two crates bring a provider each; whichever test comes first settles it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config { data: folder.path().join("data"), listen: "127.0.0.1:0".into(), ..Config::default() };
        config.journal.segment_bytes = 4 << 20;
        shape(&mut config);
        let start = Start {
            clock,
            accept_clock: false,
            unproved_tail: leasehold_server::UnprovedTail::Refuse,
            new_operator_token: false,
            on_failure: Arc::new(|why| panic!("the journal failed: {why}")),
        };
        let daemon = tokio::task::spawn_blocking(move || Daemon::open(config, start)).await.expect("no panic");
        let daemon = daemon.unwrap_or_else(|error| panic!("{error}"));
        let operator =
            std::fs::read_to_string(daemon.data_directory().operator_token()).expect("a token").trim().to_owned();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(daemon.serve(listener, async {
            let _ = stopped.await;
        }));
        let tokens = BTreeMap::from([(Role::Operator, operator.clone())]);
        Self { url, operator, tokens, client: reqwest::Client::new(), stop: Some(stop), served: Some(served), folder }
    }

    /// A pool of two nodes without agents, with so many GPUs each, at a clock that stands still.
    pub(crate) async fn of_two_nodes(clock: &Arc<ManualClock>, gpus: u64) -> Self {
        Self::of_two_nodes_with(clock, gpus, |_| {}).await
    }

    pub(crate) async fn of_two_nodes_with(
        clock: &Arc<ManualClock>,
        gpus: u64,
        shape: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let world = Self::at(Arc::clone(clock) as Arc<_>, folder, shape).await;
        world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
        world.post("/api/v1/pools", json!({ "name": "main" })).await.expect(201);
        for node in ["n1", "n2"] {
            let new = json!({ "name": node, "pool": "main", "teardown": "immediate", "capacity": { "h100": gpus } });
            world.post("/api/v1/nodes", new).await.expect(201);
        }
        world
    }

    /// Ends the daemon as SIGTERM would, and hands back its folder.
    pub(crate) async fn stop(mut self) -> tempfile::TempDir {
        let _ = self.stop.take().expect("it runs").send(());
        let served = self.served.take().expect("it runs").await.expect("no panic");
        assert_eq!(served, Ok(()));
        self.folder
    }

    pub(crate) async fn send(&self, token: Option<&str>, method: Method, path: &str, body: Option<Value>) -> Answer {
        let word = method.word();
        let method = reqwest::Method::from_bytes(word.as_bytes()).expect("a method");
        let retried = method == reqwest::Method::GET;
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        // A connection that the daemon closes just as it is used again: what reads may be sent twice.
        let again = request.try_clone().filter(|_| retried);
        let answer = match (request.send().await, again) {
            (Err(error), Some(again)) if error.is_request() => again.send().await,
            (answer, _) => answer,
        };
        read_to(Some(word), answer.expect("an answer")).await
    }

    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Some(&self.operator), Method::Get, path, None).await
    }
    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Some(&self.operator), Method::Post, path, Some(body)).await
    }

    /// Waits until what a path shows is as wanted, looking again after every record: the queue moves by itself, some
    /// time after the command that lets it.
    pub(crate) async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let events = self.client.get(format!("{}/api/v1/events", self.url)).bearer_auth(&self.operator);
        let mut events = events.send().await.expect("a stream");
        loop {
            let shown = self.get(path).await.expect(200);
            if is_so(&shown) {
                return shown;
            }
            let news = tokio::time::timeout(std::time::Duration::from_secs(20), events.chunk()).await;
            let Ok(Ok(Some(_))) = news else { panic!("nothing more happens, and {path} shows {shown}") };
        }
    }

    /// Two tenants with a project each, one class, one pool, two nodes, a live lease each, and a token of every role;
    /// those of tenants belong to `physics`.
    pub(crate) async fn furnished() -> Self {
        let mut world = Self::empty().await;
        world.furnish().await;
        world
    }

    pub(crate) async fn furnish(&mut self) {
        self.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
        self.post("/api/v1/pools", json!({ "name": "main" })).await.expect(201);
        for node in ["n1", "n2"] {
            let new = json!({ "name": node, "pool": "main", "capacity": { "h100": 8 } });
            self.post("/api/v1/nodes", new).await.expect(201);
        }
        for tenant in ["physics", "chemistry"] {
            self.post("/api/v1/tenants", json!({ "name": tenant })).await.expect(201);
            self.post("/api/v1/projects", json!({ "name": format!("{tenant}-main"), "tenant": tenant }))
                .await
                .expect(201);
            self.post("/api/v1/users", json!({ "name": format!("{tenant}-ada"), "tenant": tenant })).await.expect(201);
            let quota = json!({ "tenant": tenant, "class": "h100", "measure": "quanta", "limit": { "type": "hard", "limit": 6 } });
            self.post("/api/v1/quotas", quota).await.expect(201);
            let request = json!({ "tenant": tenant, "project": format!("{tenant}-main"), "ttl": "1h",
                "asks": [{ "class": "h100", "quantity": 1 }], "node": if tenant == "physics" { "n1" } else { "n2" } });
            self.post("/api/v1/leases", request).await.expect(201);
        }
        let app = json!({ "slug": "slurm", "origin": "internal", "usage_units": ["job_hours"] });
        self.post("/api/v1/apps", app).await.expect(201);
        for name in ["seven", "eight", "nine"] {
            let new = json!({ "name": name, "project": "physics-main", "tenant": "physics", "app": "slurm",
                "runtime_backend": "slurm" });
            self.post("/api/v1/app-instances", new).await.expect(201);
        }
        for role in Role::ALL.iter().copied().filter(|role| *role != Role::Operator) {
            let mut new = json!({ "name": role.word(), "role": role.word() });
            match role {
                Role::TenantAdmin => new["tenant"] = "physics".into(),
                Role::ProjectMember => {
                    new["tenant"] = "physics".into();
                    new["project"] = "physics-main".into();
                }
                Role::NodeAgent => new["node"] = "n1".into(),
                Role::AppOperator => {
                    new["tenant"] = "physics".into();
                    new["app_instances"] = json!(["seven"]);
                }
                _ => {}
            }
            let issued = self.post("/api/v1/tokens", new).await.expect(201);
            self.tokens.insert(role, issued["secret"].as_str().expect("a secret").to_owned());
        }
    }
}

/// Reads an answer to its end, and checks that the OpenAPI document describes it.
pub(crate) async fn read(answer: reqwest::Response) -> Answer {
    read_to(None, answer).await
}

async fn read_to(method: Option<&str>, answer: reqwest::Response) -> Answer {
    let path = answer.url().path().to_owned();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    // A stream of events has no end; its beginning is enough.
    let streaming = headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    let text = if streaming { String::new() } else { answer.text().await.expect("a body") };
    let media = headers.get("content-type").and_then(|media| media.to_str().ok()).unwrap_or_default();
    conform::check(method, &path, status, media, &text);
    Answer { status, headers, text }
}

/// The number in the ID of an allocation.
pub(crate) trait AllocationNumber {
    fn allocation(&self) -> u64;
}

impl AllocationNumber for Value {
    #[track_caller]
    fn allocation(&self) -> u64 {
        let number = self.as_str().and_then(|id| id.strip_prefix("alloc-")?.parse().ok());
        number.unwrap_or_else(|| panic!("{self} is not the ID of an allocation"))
    }
}
