//! A real daemon with a tenant, two projects and a runtime, for the tests of the adapters. It can be stopped and started.
#![allow(dead_code, reason = "each adapter's tests use their part")]

use leasehold_cell::SystemClock;
use leasehold_client::api::{
    NewApp, NewAppInstance, NewAttachment, NewClass, NewNode, NewPool, NewProject, NewTenant, NewToken, NewUsageUnit,
    NewUser, Role,
};
use leasehold_client::{BookQuery, Client, Config, Secret};
use leasehold_model::{AppOrigin, ControlPlaneScope, ResourceKind, RuntimeBackend, UnitMeasure};
use leasehold_server::config::{Config as DaemonConfig, Journal};
use leasehold_server::{Daemon, Start, UnprovedTail, listen};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct Site {
    pub(crate) client: Client,
    pub(crate) folder: TempDir,
    address: SocketAddr,
    serving: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// How an adapter ended, and what it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Site {
    /// A daemon with a runtime `rt` of this backend and scope that reports in these units, owned by `lattice`.
    pub(crate) async fn new(backend: RuntimeBackend, scope: ControlPlaneScope, units: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (serving, address) = serve(folder.path(), "127.0.0.1:0".parse().expect("an address")).await;
        let token = fs::read_to_string(folder.path().join("operator")).expect("the first start issues one");
        let config = Config::new(format!("http://{address}")).token(Secret::new(token.as_str()));
        let client = Client::new(&config).expect("a client");
        let site = Self { client, folder, address, serving: Some(serving) };
        site.furnish(backend, scope, units).await;
        site
    }

    async fn furnish(&self, backend: RuntimeBackend, scope: ControlPlaneScope, units: &[&str]) {
        let client = &self.client;
        let tenant = || Some("physics".to_owned());
        client.create_tenant(&NewTenant { name: "physics".into(), ..NewTenant::default() }).await.expect("a tenant");
        for name in ["lattice", "optics"] {
            client.create_project(&NewProject { name: name.into(), tenant: tenant() }).await.expect("a project");
        }
        client.create_user(&NewUser { name: "ada".into(), tenant: tenant() }).await.expect("a user");
        for unit in units.iter().filter(|unit| ["cpu_hours", "node_hours"].contains(unit)) {
            let unit = NewUsageUnit { name: (*unit).into(), measure: UnitMeasure::Time };
            client.create_usage_unit(&unit).await.expect("a unit");
        }
        let usage_units = units.iter().map(|unit| (*unit).to_owned()).collect();
        let app = NewApp { slug: "app".into(), origin: AppOrigin::Internal, usage_units };
        client.create_app(&app).await.expect("an app");
        let instance = NewAppInstance {
            name: "rt".into(),
            project: "lattice".into(),
            tenant: tenant(),
            app: "app".into(),
            operating_mode: None,
            control_plane_scope: Some(scope),
            runtime_backend: backend,
        };
        client.create_app_instance(&instance).await.expect("a runtime");
        let token = NewToken {
            name: "adapter".into(),
            role: Role::AppOperator,
            tenant: tenant(),
            project: None,
            user: None,
            node: None,
            app_instances: vec!["rt".into()],
            expires_at: None,
        };
        let issued = client.issue_token(&token).await.expect("a token");
        self.write("token", &issued.secret.expect("it is shown once"));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("for ourselves");
    }

    /// The section `leasehold` of a configuration.
    pub(crate) fn section(&self, begin: &str, more: &str) -> String {
        let at = self.folder.path().display();
        format!(
            "leasehold:\n  url: http://{}\n  token_file: {at}/token\n  app_instance: rt\n  begin: {begin}\n  \
             state: {at}/state\n  patience: 300ms\n{more}",
            self.address
        )
    }

    /// An adapter with the configuration `config.yaml`.
    fn command(&self, program: &'static str, options: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("--config").arg(self.path("config.yaml")).args(options.split_whitespace());
        for name in ["LEASEHOLD_URL", "LEASEHOLD_TOKEN", "LEASEHOLD_TOKEN_FILE", "LEASEHOLD_LOG", "NOTIFY_SOCKET"] {
            command.env_remove(name);
        }
        command.env("HOME", self.folder.path());
        command
    }

    /// Starts an adapter that runs until it is stopped.
    pub(crate) fn begin(&self, program: &'static str, options: &str) -> Child {
        self.command(program, options).stderr(Stdio::null()).spawn().expect("it runs")
    }

    /// Waits until these totals are reached.
    pub(crate) async fn until(&self, expected: &BTreeMap<String, String>) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let totals = self.totals().await;
            if totals == *expected {
                return;
            }
            assert!(Instant::now() < deadline, "{totals:?}");
            tokio::task::yield_now().await;
        }
    }

    /// Runs an adapter beside the daemon in this process, until it ends.
    pub(crate) async fn run(&self, program: &'static str, options: &str) -> Said {
        let mut command = self.command(program, options);
        let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it ends").expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// What was reported since the beginning, by project, unit and charge.
    pub(crate) async fn totals(&self) -> BTreeMap<String, String> {
        let query = BookQuery {
            from: Some("2020-01-01T00:00:00Z".parse().expect("an instant")),
            by: vec!["project".into()],
            ..BookQuery::default()
        };
        let report = self.client.usage().asking(&query).json().await.expect("a report");
        let lines = report["reported"].as_array().expect("a list").iter().map(|line| {
            let word = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
            let key = format!("{} {} {}", word(&line["project"]), word(&line["usage_unit"]), word(&line["charge"]));
            (key, word(&line["quantity"]))
        });
        lines.collect()
    }

    /// Lets `optics` lend to the runtime: returns the number of the attachment, and an allocation of `optics` that holds a
    /// worker.
    pub(crate) async fn lend(&self) -> (u64, String) {
        let client = &self.client;
        let class =
            NewClass { name: "gpu".into(), kind: ResourceKind::Gpu, tier: None, quanta_per_unit: None, premium: false };
        client.create_class(&class).await.expect("a class");
        let pool = NewPool {
            name: "p".into(),
            strategy: None,
            ttl_max: None,
            lifetime_max: None,
            grace: None,
            weights: None,
            min_runtime_before_eviction: None,
            requeue_limit: None,
        };
        client.create_pool(&pool).await.expect("a pool");
        let node = NewNode {
            name: "n1".into(),
            pool: "p".into(),
            rack: None,
            zone: None,
            labels: BTreeMap::new(),
            teardown: None,
            capacity: [("gpu".into(), "2".into())].into(),
        };
        client.create_node(&node).await.expect("a node");
        let worker = serde_json::json!({ "tenant": "physics", "project": "optics", "ttl": "1h",
            "asks": [{ "class": "gpu", "quantity": 2 }] });
        let worker = serde_json::from_value(worker).expect("a request");
        let held = client.submit_allocation(&worker).await.expect("an allocation");
        let lent = NewAttachment {
            app_instance: "rt".into(),
            source_project: Some("optics".into()),
            tenant: Some("physics".into()),
            allocation_id: None,
        };
        let attachment = client.create_attachment(&lent).await.expect("an attachment").attachment.id;
        (attachment, held.id.to_string())
    }

    /// Replaces a text in the configuration.
    pub(crate) fn reconfigure(&self, old: &str, new: &str) {
        let config = fs::read_to_string(self.path("config.yaml")).expect("a configuration");
        assert!(config.contains(old), "no {old} in {config}");
        self.write("config.yaml", &config.replace(old, new));
    }

    pub(crate) async fn stop_daemon(&mut self) {
        let (stop, ended) = self.serving.take().expect("it runs");
        stop.send(()).expect("it listens");
        ended.await.expect("it ends");
    }

    pub(crate) async fn start_daemon(&mut self) {
        let (serving, _) = serve(self.folder.path(), self.address).await;
        self.serving = Some(serving);
        // The books are opened after the daemon listens; the adapters of the tests have little patience.
        self.totals().await;
    }
}

async fn serve(folder: &Path, address: SocketAddr) -> ((oneshot::Sender<()>, JoinHandle<()>), SocketAddr) {
    let config = DaemonConfig {
        data: folder.join("data"),
        journal: Journal { segment_bytes: 4 << 20, ..Journal::default() },
        ..DaemonConfig::default()
    };
    let start = Start {
        clock: Arc::new(SystemClock::new()),
        accept_clock: false,
        unproved_tail: UnprovedTail::Refuse,
        new_operator_token: false,
        on_failure: Arc::new(|why| panic!("the journal failed: {why}")),
    };
    let opening = tokio::task::spawn_blocking(move || Daemon::open(config, start));
    let daemon = opening.await.expect("it ends").unwrap_or_else(|error| panic!("it opens: {error}"));
    if let Some(token) = &daemon.operator_token {
        fs::write(folder.join("operator"), token.as_str()).expect("a file");
    }
    let listener = listen::bind(address).expect("the port is free");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        daemon.serve(listener, stopped).await.expect("it ends well");
    });
    ((stop, serving), address)
}
