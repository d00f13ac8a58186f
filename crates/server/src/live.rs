//! The event stream: records as they become durable, each encoded once and passed to the streams that want it.
//!
//! The publishing thread only notes the sequences that some stream may want; another thread reads these records back,
//! encodes them and passes them on. A stream that falls behind reads the journal itself until it has caught up.

use crate::app::App;
use crate::record_leases::learn_leases;
use crate::records::Filter;
use crate::shares::{Share, ShareLimits, Shares};
use bytes::Bytes;
use leasehold_api::{Role, codes};
use leasehold_cell::Observer;
use leasehold_engine::State;
use leasehold_model::body::{ClassPut, NodePut, PoolPut, ProjectPut, TenantPut, TokenIssued, UserPut};
use leasehold_model::record::Hash;
use leasehold_model::{Body, Record, TenantNo, TenantSettings};
use leasehold_view::Directory;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::thread::JoinHandle;
use tokio::sync::Notify;

/// Events queued for one slow reader before it has to read the journal itself.
const WAITING_MAX: usize = 1024;

/// One encoded record.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) sequence: u64,
    pub(crate) text: Bytes,
}

impl Event {
    pub(crate) fn new(sequence: u64, kind: &str, shown: &serde_json::Value) -> Self {
        Self { sequence, text: format!("id: {sequence}\nevent: {kind}\ndata: {shown}\n\n").into() }
    }
}

/// One reader.
pub(crate) struct Stream {
    pub(crate) filter: Filter,
    waiting: Mutex<Waiting>,
    pub(crate) woken: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    fell_behind: bool,
}

impl Stream {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no one panics with events")
    }

    fn put(&self, event: Event) {
        let mut waiting = self.lock();
        if waiting.events.len() >= WAITING_MAX {
            waiting.events.clear();
            waiting.fell_behind = true;
        }
        if !waiting.fell_behind {
            waiting.events.push_back(event);
        }
        drop(waiting);
        self.woken.notify_one();
    }

    /// The queued events; `None` if some were dropped and the journal must be read instead.
    pub(crate) fn take(&self) -> Option<VecDeque<Event>> {
        let mut waiting = self.lock();
        if std::mem::take(&mut waiting.fell_behind) {
            waiting.events.clear();
            return None;
        }
        Some(std::mem::take(&mut waiting.events))
    }
}

/// Shared, so that no lock is held while events are passed on.
type Streams = Arc<Vec<Arc<Stream>>>;

/// The open streams, by the tenant of the records that they want.
#[derive(Default)]
struct Listeners {
    by_tenant: BTreeMap<TenantNo, Streams>,
    /// Streams that are not limited to one tenant.
    others: Streams,
}

impl Listeners {
    /// The streams that may want a record: those of its tenant, and those without a tenant.
    fn of(&self, record: &Record) -> Option<[Streams; 2]> {
        let own = record.identity.tenant.and_then(|tenant| self.by_tenant.get(&tenant));
        if own.is_none() && self.others.is_empty() {
            return None;
        }
        Some([own.cloned().unwrap_or_default(), Arc::clone(&self.others)])
    }
}

/// The tenant to which a stream is limited.
fn tenant_of(filter: &Filter) -> Option<TenantNo> {
    let own = match filter.caller.role {
        Role::TenantAdmin | Role::ProjectMember => filter.caller.tenant,
        _ => None,
    };
    own.or(filter.tenant)
}

/// The open streams, and the names that records are shown with.
///
/// The publishing thread takes these locks while it holds the view of durable records, so nobody may read that view
/// while holding one of them.
pub(crate) struct Live {
    /// Start of the daemon, from which keep-alive instants are counted.
    pub(crate) began: tokio::time::Instant,
    names: RwLock<Directory>,
    listeners: RwLock<Listeners>,
    streams: AtomicUsize,
    pub(crate) shares: Arc<Shares>,
    noted: Mutex<Vec<u64>>,
    changed: Condvar,
    stopping: AtomicBool,
}

fn guard<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    pub(crate) fn new(genesis: Hash, state: &State, streams_max: usize) -> Self {
        Self {
            began: tokio::time::Instant::now(),
            names: RwLock::new(names(genesis, state)),
            listeners: RwLock::default(),
            streams: AtomicUsize::new(0),
            shares: Shares::new(ShareLimits::parts_of(streams_max)),
            noted: Mutex::default(),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
        }
    }

    /// A copy of the current names; cheap, because they are shared.
    pub(crate) fn names(&self) -> Directory {
        guard(self.names.read()).clone()
    }

    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Opens a stream: every record that becomes durable from now on is offered to its filter.
    pub(crate) fn listen(self: &Arc<Self>, filter: Filter) -> Result<Listening, leasehold_api::Problem> {
        let share = self.shares.take(&filter.caller, 1).map_err(|exceeded| {
            exceeded.problem(codes::TOO_MANY_STREAMS, "event streams", "close one, or try again later")
        })?;
        self.streams.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(Stream { filter, waiting: Mutex::default(), woken: Notify::new() });
        let mut listeners = guard(self.listeners.write());
        match tenant_of(&stream.filter) {
            Some(tenant) => Arc::make_mut(listeners.by_tenant.entry(tenant).or_default()).push(stream.clone()),
            None => Arc::make_mut(&mut listeners.others).push(stream.clone()),
        }
        drop(listeners);
        Ok(Listening { stream, live: Arc::clone(self), _share: share })
    }

    fn forget(&self, stream: &Arc<Stream>) {
        let mut listeners = guard(self.listeners.write());
        let drop_from = |list: &mut Streams| {
            if let Some(place) = list.iter().position(|one| Arc::ptr_eq(one, stream)) {
                Arc::make_mut(list).swap_remove(place);
            }
        };
        match tenant_of(&stream.filter) {
            Some(tenant) => {
                if let Some(list) = listeners.by_tenant.get_mut(&tenant) {
                    drop_from(list);
                    if list.is_empty() {
                        listeners.by_tenant.remove(&tenant);
                    }
                }
            }
            None => drop_from(&mut listeners.others),
        }
        drop(listeners);
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends every stream.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.changed.notify_all();
        let listeners = guard(self.listeners.read());
        let all = listeners.by_tenant.values().chain([&listeners.others]).flat_map(|list| list.iter());
        all.for_each(|stream| stream.woken.notify_one());
    }

    /// Starts the thread that reads the noted records back and passes them on.
    pub(crate) fn start(self: &Arc<Self>, app: Weak<App>) -> std::io::Result<JoinHandle<()>> {
        let live = Arc::clone(self);
        std::thread::Builder::new().name("live-stream".into()).spawn(move || live.run(&app))
    }

    fn run(&self, app: &Weak<App>) {
        let mut directory = self.names();
        loop {
            let noted = {
                let mut noted = guard(self.noted.lock());
                while noted.is_empty() && !self.is_stopping() {
                    noted = guard(self.changed.wait(noted));
                }
                std::mem::take(&mut *noted)
            };
            let Some(app) = app.upgrade().filter(|_| !self.is_stopping()) else { return };
            directory.share_names(&self.names());
            for run in noted.chunk_by(|a, b| a + 1 == *b) {
                self.hand_out(&app, &mut directory, run[0], run[run.len() - 1]);
            }
            if self.streams() == 0 {
                // Without streams, the known leases need not be kept.
                directory = self.names();
            }
        }
    }

    fn hand_out(&self, app: &App, directory: &mut Directory, first: u64, last: u64) {
        let scanned = app.journal.scan(first, &mut |sequence, raw| {
            if sequence > last {
                return ControlFlow::Break(());
            }
            if let Ok(record) = raw.decode() {
                self.offer(app, directory, &record, &raw);
            }
            ControlFlow::Continue(())
        });
        if let Err(error) = scanned {
            tracing::error!(%error, "the event stream cannot read the journal");
        }
    }

    fn offer(&self, app: &App, directory: &mut Directory, record: &Record, raw: &leasehold_model::RawRecord<'_>) {
        // Released at once: the publishing thread takes this lock while it holds the view, which is read below.
        let listeners = guard(self.listeners.read()).of(record);
        let Some(streams) = listeners else {
            directory.forget_closed(record);
            return;
        };
        if learn_leases(app, directory, record).is_err() {
            return;
        }
        let mut event = None;
        for stream in streams.iter().flat_map(|list| list.iter()) {
            if stream.filter.takes_known(directory, record) {
                let event = event.get_or_insert_with(|| {
                    let shown = directory.show_known(raw, &raw.hash()).unwrap_or_default();
                    Event::new(record.sequence, record.body.word(), &shown)
                });
                stream.put(event.clone());
            }
        }
        directory.forget_closed(record);
    }
}

/// An open stream, closed on drop.
pub(crate) struct Listening {
    pub(crate) stream: Arc<Stream>,
    live: Arc<Live>,
    _share: Share,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.live.forget(&self.stream);
    }
}

/// Notes what the cell publishes, for the event stream, the books and deliveries.
pub(crate) struct PublishObserver(
    pub(crate) Arc<Live>,
    pub(crate) Arc<crate::books::BooksService>,
    pub(crate) Arc<crate::deliveries::DeliveryHook>,
);

impl Observer for PublishObserver {
    fn record(&self, record: &Record) {
        let live = &self.0;
        if !matches!(&record.body, Body::Granted(_) | Body::Renewed(_) | Body::Released(_) | Body::Expired(_)) {
            guard(live.names.write()).follow_names(record);
        }
        if let Body::NodeQuarantined(quarantined) = &record.body {
            let names = guard(live.names.read());
            let node = names.node(quarantined.node).map_or_else(String::new, ToString::to_string);
            tracing::error!(
                sequence = record.sequence,
                node,
                cause = quarantined.cause.word(),
                "a node is quarantined: it may still contain data of a user; wipe it and run `leasehold node clear-quarantine`"
            );
        }
        self.2.record(record);
        if live.streams() == 0 {
            return;
        }
        let wanted = {
            let listeners = guard(live.listeners.read());
            let own = record.identity.tenant.is_some_and(|tenant| listeners.by_tenant.contains_key(&tenant));
            own || !listeners.others.is_empty()
        };
        if wanted {
            guard(live.noted.lock()).push(record.sequence);
        }
    }

    fn batch_done(&self) {
        self.1.wake();
        self.2.batch_done();
        if self.0.streams() > 0 && !guard(self.0.noted.lock()).is_empty() {
            self.0.changed.notify_one();
        }
    }
}

/// The names of everything that exists in the state.
fn names(genesis: Hash, state: &State) -> Directory {
    let mut names = Directory::with_genesis(genesis);
    let mut follow = |body: Body| names.follow_names(&Record::new(1, state.last_stamp(), body));
    for (class, spec) in state.classes() {
        follow(ClassPut { class, spec: spec.clone() }.into());
    }
    for (number, pool) in state.pools() {
        let (name, strategy) = (pool.name.clone(), pool.strategy);
        let (ttl_max, lifetime_max, grace) = (pool.ttl_max, pool.lifetime_max, pool.grace);
        follow(PoolPut { pool: number, name, strategy, ttl_max, lifetime_max, grace }.into());
    }
    for tenant in state.tenants() {
        let put = TenantPut {
            tenant: tenant.number,
            settings: TenantSettings {
                accounting_tag: tenant.tag.and_then(|tag| state.tag(tag)).cloned(),
                max_priority: tenant.settings.max_priority,
                max_evicted_quanta_per_hour: tenant.settings.max_evicted_quanta_per_hour,
                ..TenantSettings::named(tenant.settings.name.clone())
            },
        };
        follow(put.into());
    }
    for (number, project) in state.projects() {
        follow(ProjectPut { project: number, tenant: project.tenant, name: project.name.clone() }.into());
    }
    for (number, user) in state.users() {
        follow(UserPut { user: number, tenant: user.tenant, name: user.name.clone() }.into());
    }
    for node in state.nodes() {
        let put = NodePut {
            node: node.number,
            name: node.name.clone(),
            pool: node.pool,
            rack: None,
            zone: None,
            labels: Vec::new(),
            teardown: node.teardown,
            capacity: Vec::new(),
        };
        follow(put.into());
    }
    for token in state.tokens() {
        let issued = TokenIssued {
            token: token.number,
            name: token.name.clone(),
            hash: token.hash,
            role: token.role,
            scope: token.scope.clone(),
            expires_at: token.expires_at,
        };
        follow(issued.into());
    }
    names
}
