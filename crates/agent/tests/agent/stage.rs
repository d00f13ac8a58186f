//! A daemon in this process with one node, and agents as processes beside it. Everything that is waited for is an
//! event; a deadline only tells a test that hangs from one that does not.

use leasehold_cell::SystemClock;
use leasehold_client::api::{
    Ask, Kind, LeaseState, NewClass, NewNode, NewPool, NewProject, NewTenant, NewToken, Release, RequestLease,
    Requested, Role,
};
use leasehold_client::{Client, Config, EventFilter, Secret};
use leasehold_server::config::{Config as DaemonConfig, Engine, Journal};
use leasehold_server::{Daemon, Start, listen};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);

/// Held while a process is begun and while a journal is opened. A process that is just being begun still has our
/// files, and with them the lock of a journal that we look into twice.
static BEGINNING: Mutex<()> = Mutex::new(());

fn beginning() -> MutexGuard<'static, ()> {
    BEGINNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a process.
fn begin(command: &mut Command) -> Child {
    let _alone = beginning();
    command.spawn().expect("it runs")
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("it takes too long: {what}"))
}

/// Whether a process runs, by its number as text.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits until a process that was killed has ended.
pub(crate) async fn gone(pid: &str) {
    within("a process ends", async {
        while is_alive(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

pub(crate) struct Stage {
    pub(crate) client: Client,
    folder: TempDir,
    url: String,
    _serving: JoinHandle<()>,
}

impl Stage {
    /// A daemon with these limits, and a node `n1` with two of `gpu` and some of `cpu`.
    pub(crate) async fn new(node_timeout: &str, teardown_deadline: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let span = |text: &str| Some(text.parse().expect("a length of time"));
        let config = DaemonConfig {
            data: folder.path().join("data"),
            engine: Engine {
                node_timeout: span(node_timeout),
                teardown_deadline: span(teardown_deadline),
                ..Engine::default()
            },
            journal: Journal { segment_bytes: 4 << 20, ..Journal::default() },
            ..DaemonConfig::default()
        };
        let start = Start {
            clock: Arc::new(SystemClock::new()),
            accept_clock: false,
            unproved_tail: leasehold_server::UnprovedTail::Refuse,
            new_operator_token: false,
            on_failure: Arc::new(|why| panic!("the journal failed: {why}")),
        };
        let opening = tokio::task::spawn_blocking(move || {
            let _alone = beginning();
            Daemon::open(config, start)
        });
        let daemon = opening.await.expect("it ends").unwrap_or_else(|error| panic!("it opens: {error}"));
        let token = daemon.operator_token.clone().expect("the first start issues one");
        let listener = listen::bind("127.0.0.1:0".parse().expect("an address")).expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = tokio::spawn(async move {
            daemon.serve(listener, std::future::pending()).await.expect("it is never told to stop");
        });
        let client = Client::new(&Config::new(&url).token(Secret::new(token.as_str()))).expect("a client");
        let stage = Self { client, folder, url, _serving: serving };
        stage.furnish().await;
        stage
    }

    async fn furnish(&self) {
        let client = &self.client;
        for (name, kind) in [("gpu", Kind::Gpu), ("cpu", Kind::Cpu), ("mem", Kind::Mem)] {
            let (tier, quanta_per_unit, premium) = (None, None, false);
            let class = NewClass { name: name.into(), kind, tier, quanta_per_unit, premium };
            client.create_class(&class).await.expect("a class");
        }
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
            labels: Default::default(),
            teardown: None,
            capacity: [("gpu".into(), "2".into()), ("cpu".into(), "4".into())].into(),
        };
        client.create_node(&node).await.expect("a node");
        let tenant = NewTenant { name: "t".into(), ..NewTenant::default() };
        client.create_tenant(&tenant).await.expect("a tenant");
        let project = NewProject { name: "p".into(), tenant: Some("t".into()) };
        client.create_project(&project).await.expect("a project");
        let token = NewToken {
            name: "n1".into(),
            role: Role::NodeAgent,
            tenant: None,
            project: None,
            user: None,
            node: Some("n1".into()),
            app_instances: vec![],
            expires_at: None,
        };
        let issued = client.issue_token(&token).await.expect("a token");
        let file = self.path("token");
        fs::write(&file, issued.secret.expect("it is shown once")).expect("it is kept");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("for ourselves");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A lease of one unit on the node, by its id.
    pub(crate) async fn lease(&self, class: &str) -> String {
        let request = RequestLease {
            tenant: Some("t".into()),
            project: Some("p".into()),
            user: None,
            workload: None,
            asks: vec![Ask { class: class.into(), quantity: "1".into() }],
            ttl: "1h".parse().expect("a length of time"),
            priority: None,
            pool: None,
            node: None,
            labels: Default::default(),
            app_instance: None,
            control_plane: false,
            sensitive: false,
            correlation_id: None,
            hcl_entry: None,
            dra_claim_id: None,
        };
        match self.client.request_lease(&request).await.expect("it can be asked") {
            Requested::Granted(granted) => granted.leases[0].uid.clone(),
            Requested::Waiting(submitted) => panic!("there is no room: {submitted:?}"),
        }
    }

    pub(crate) async fn release(&self, lease: &str) {
        self.client.release_lease(lease, &Release::default()).await.expect("it is held");
    }

    pub(crate) async fn state(&self, lease: &str) -> LeaseState {
        self.client.show_lease(lease).await.expect("it is known").state
    }

    /// How many records of this kind a lease has.
    pub(crate) async fn records(&self, lease: &str, kind: &str) -> usize {
        let history = self.client.lease_history(lease).await.expect("it is known");
        history.records.iter().filter(|record| record["kind"] == kind).count()
    }

    /// Waits for a record of a lease, also if it was there before.
    pub(crate) async fn until(&self, lease: &str, kind: &str) {
        self.record(EventFilter { lease: Some(lease.into()), ..EventFilter::default() }, kind, |_| true).await;
    }

    /// Waits for a record that says that the node is throttled.
    pub(crate) async fn until_throttled(&self) {
        let is_throttled = |record: &Value| record.to_string().contains(r#""throttled":true"#);
        self.record(EventFilter::default(), "node.condition", is_throttled).await;
    }

    async fn record(&self, filter: EventFilter, kind: &str, is_wanted: impl Fn(&Value) -> bool) {
        let filter = EventFilter { after: Some(0), kind: Some(kind.into()), ..filter };
        let mut events = self.client.events(&filter).expect("a stream");
        within(kind, async { while !is_wanted(&events.next().await.expect("an operator sees it").record) {} }).await;
    }

    /// Hooks for `gpu` that run this script in the stage's folder.
    pub(crate) fn script(&self, name: &str, script: &str) -> String {
        let path = self.path(name);
        let text = format!("#!/bin/sh\ncd {} || exit 9\n{script}\n", self.folder.path().display());
        fs::write(&path, text).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it may be run");
        format!("gpu: {{ wipe: {{ command: [{}] }} }}", path.display())
    }

    /// Starts an agent with a state folder of this name; `PIDS` in the hooks is the folder of jobs.
    pub(crate) fn agent(&self, state: &str, hooks: &str) -> Agent {
        let pids = self.path("pids");
        fs::create_dir_all(&pids).expect("a folder");
        let hooks = hooks.replace("PIDS", pids.to_str().expect("a path in UTF-8"));
        let config = self.path(&format!("{state}.yaml"));
        fs::write(&config, format!("hooks:\n  {hooks}\n")).expect("a configuration");
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-agent"));
        command.args(["--node", "n1", "--url", &self.url]).arg("--config").arg(config);
        command.arg("--state").arg(self.path(state)).arg("--token-file").arg(self.path("token"));
        for name in ["LEASEHOLD_URL", "LEASEHOLD_TOKEN", "LEASEHOLD_TOKEN_FILE", "LEASEHOLD_LOG"] {
            command.env_remove(name);
        }
        command.env("HOME", self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = begin(&mut command);
        let lines = lines(child.stderr.take().expect("a pipe"));
        Agent { child: Some(child), lines, said: String::new() }
    }
}

/// The lines of a stream, as they come.
fn lines(stream: impl std::io::Read + Send + 'static) -> UnboundedReceiver<String> {
    let (to, lines) = unbounded_channel();
    std::thread::spawn(move || {
        let heard = |line: String| to.send(line).ok();
        let _ = BufReader::new(stream).lines().map_while(Result::ok).try_for_each(heard);
    });
    lines
}

pub(crate) struct Agent {
    child: Option<Child>,
    lines: UnboundedReceiver<String>,
    said: String,
}

impl Agent {
    /// The same, once it speaks for the node.
    pub(crate) async fn registered(mut self) -> Self {
        self.says("registered as the agent of the node").await;
        self
    }

    /// Waits for a line with this in it.
    pub(crate) async fn says(&mut self, what: &str) {
        let heard = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = self.lines.recv().await {
                self.said += &format!("{line}\n");
                if line.contains(what) {
                    return true;
                }
            }
            false
        });
        let heard = heard.await.unwrap_or(false);
        let ended = self.child.as_mut().and_then(|child| child.try_wait().expect("it can be looked at"));
        assert!(heard, "it does not say {what:?} (ended: {ended:?}), but:\n{}", self.said);
    }

    /// Everything it said, once it has ended.
    pub(crate) async fn rest(&mut self) -> String {
        while let Some(line) = within("the end of its lines", self.lines.recv()).await {
            self.said += &format!("{line}\n");
        }
        self.said.clone()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().expect("it runs"))
    }

    async fn wait(&mut self) -> ExitStatus {
        let child = self.child.take().expect("it runs");
        wait(child).await
    }

    /// Its exit code, once it has ended by itself.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        self.wait().await.code()
    }

    /// Tells it to stop, and returns its exit code.
    pub(crate) async fn stop(&mut self) -> Option<i32> {
        kill_process(self.pid(), Signal::TERM).expect("it runs");
        self.ended().await
    }

    /// Ends it without a word.
    pub(crate) async fn kill(mut self) {
        kill_process(self.pid(), Signal::KILL).expect("it runs");
        assert_eq!(self.wait().await.signal(), Some(9));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn wait(mut child: Child) -> ExitStatus {
    let pid = Pid::from_child(&child);
    let waiting = tokio::task::spawn_blocking(move || child.wait());
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(ended) => ended.expect("no panic").expect("it can be waited for"),
        Err(_) => {
            let _ = kill_process(pid, Signal::KILL);
            panic!("it does not end");
        }
    }
}

/// A job in a process group of its own, as a lease's holder runs it.
pub(crate) struct Job(Child);

impl Job {
    pub(crate) fn start(stage: &Stage, lease: &str) -> Self {
        let child = begin(Command::new("sleep").arg("1000").process_group(0));
        fs::write(stage.path("pids").join(lease), child.id().to_string()).expect("a file");
        Self(child)
    }

    /// The signal that ended it.
    pub(crate) async fn ended_by(self) -> Option<i32> {
        wait(self.0).await.signal()
    }
}

/// A pipe with a name: whoever writes a line into it is heard, whoever reads waits for one.
pub(crate) struct Fifo {
    path: PathBuf,
    lines: UnboundedReceiver<String>,
    /// Held open, so that those at the other end neither wait for us nor see its end.
    held: fs::File,
}

impl Fifo {
    pub(crate) fn new(path: PathBuf) -> Self {
        let made = begin(Command::new("mkfifo").arg(&path)).wait().expect("it ends");
        assert!(made.success());
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path).expect("a pipe");
        let held = open(&path);
        let (_, lines) = unbounded_channel();
        Self { path, lines, held }
    }

    /// The next line that someone writes.
    pub(crate) async fn line(&mut self) -> String {
        if self.lines.is_closed() {
            self.lines = lines(fs::File::open(&self.path).expect("a pipe"));
        }
        within("a line in a pipe", self.lines.recv()).await.expect("it is held open")
    }

    pub(crate) fn put(&self, line: &str) {
        writeln!(&self.held, "{line}").expect("there is room");
    }
}
