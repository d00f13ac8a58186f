//! A daemon in this process, with its own data directory and port.

use leasehold_cell::SystemClock;
use leasehold_client::api::{Checkpoint, NewTenant};
use leasehold_client::{Client, Config as ClientConfig, Secret};
use leasehold_server::config::Config;
use leasehold_server::{Daemon, Start};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The channel that stops the daemon, and its result.
type Serving = (oneshot::Sender<()>, JoinHandle<Result<(), String>>);

pub(crate) struct Origin {
    runtime: Runtime,
    serving: Option<Serving>,
    folder: TempDir,
    pub(crate) address: SocketAddr,
    client: Client,
    tenants: usize,
}

impl Origin {
    pub(crate) fn named(origin: &str) -> Self {
        Self::in_folder(tempfile::tempdir().expect("a folder"), origin, 0)
    }

    /// Opens the journal in a data directory, or creates it. New tenants are numbered from `tenants` on.
    pub(crate) fn in_folder(folder: TempDir, origin: &str, tenants: usize) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let mut config = Config { data: folder.path().join("data"), origin: Some(origin.into()), ..Config::default() };
        config.journal.segment_bytes = 4 << 20;
        let start = Start {
            clock: Arc::new(SystemClock::new()),
            accept_clock: false,
            unproved_tail: leasehold_server::UnprovedTail::Refuse,
            new_operator_token: false,
            on_failure: Arc::new(|why| panic!("the journal failed: {why}")),
        };
        let daemon = Daemon::open(config, start).unwrap_or_else(|error| panic!("{error}"));
        let token = std::fs::read_to_string(daemon.data_directory().operator_token()).expect("a token");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let served = runtime.spawn(daemon.serve(listener, async {
            let _ = stopped.await;
        }));
        let config = ClientConfig::new(format!("http://{address}")).token(Secret::new(token.trim()));
        let client = Client::new(&config).expect("a client");
        Self { runtime, serving: Some((stop, served)), folder, address, client, tenants }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
    pub(crate) fn token_file(&self) -> PathBuf {
        self.data().join("operator.token")
    }

    /// Writes this many records, one batch each, and waits until a checkpoint covers them.
    pub(crate) fn seal(&mut self, records: usize) -> Checkpoint {
        let mut last = 0;
        for _ in 0..records {
            self.tenants += 1;
            let new = NewTenant { name: format!("tenant-{:05}", self.tenants), ..NewTenant::default() };
            let put = self.runtime.block_on(async { self.client.create_tenant(&new).await }).expect("a tenant");
            last = put.sequence;
        }
        self.checkpoint_of(last + 1)
    }

    /// Waits for a checkpoint that covers this many records.
    pub(crate) fn checkpoint_of(&self, size: u64) -> Checkpoint {
        loop {
            let checkpoint = self.runtime.block_on(async { self.client.checkpoint().await }).expect("a checkpoint");
            if checkpoint.size >= size {
                return checkpoint;
            }
        }
    }

    /// The auditor's trust file.
    pub(crate) fn trust(&self, pinned: bool, at: &Path) -> PathBuf {
        let data = self.data();
        let said = crate::common::on(&data, "audit trust --data {}").ok().out;
        let text = if pinned { said } else { said.split("checkpoint\n").next().expect("a beginning").to_owned() };
        let path = at.join("trust");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// A copy of the data directory, including the key.
    pub(crate) fn copy(&self) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        crate::common::copy(&self.data(), &folder.path().join("data"));
        folder
    }

    pub(crate) fn stop(mut self) -> TempDir {
        let (stop, served) = self.serving.take().expect("it runs");
        let _ = stop.send(());
        self.runtime.block_on(served).expect("no panic").expect("a clean stop");
        self.folder
    }
}
