//! Deliveries in the daemon: events of the journal to webhooks (ADR 26).
//!
//! The publishing thread counts what becomes due and wakes the tasks of webhooks; that is all the lease path has to do
//! with it. With `accounting.enabled: false` nothing here runs.

mod accounting;
mod counts;
mod figures;
mod gathered;
mod made;
mod rate;
mod source;
mod token;
pub(crate) mod work;

use crate::app::App;
use crate::config;
use counts::DueCounts;
use leasehold_cell::Cell;
use leasehold_deliver::{
    Deliveries, Guard, Limits, OnOverflow, Parts, SignatureKind, SinkId, SinkSpec, Store, Webhook, WebhookSecrets,
    process_variables,
};
use leasehold_engine::command::DisableSink;
use leasehold_engine::{Command, Sink};
use leasehold_journal::MacKey;
use leasehold_model::body::{SinkDisabledCause, SinkSignature};
use leasehold_model::{Body, Instant, Record, SinkNo};
pub(crate) use rate::Rate;
use rate::RateWindow;
use source::JournalEvents;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use token::ProviderToken;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// How often the counters of due events are noted.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// What the publishing thread knows of deliveries.
#[derive(Default)]
pub(crate) struct DeliveryHook {
    counts: Arc<DueCounts>,
    running: OnceLock<Deliveries>,
    /// Webhooks were made, changed or deleted.
    changed: Notify,
}

impl DeliveryHook {
    /// A record became durable.
    pub(crate) fn record(&self, record: &Record) {
        if self.counts.is_active() {
            self.counts.count(record);
        }
        if matches!(&record.body, leasehold_model::sink_kinds!() | Body::TenantDeleted(_)) {
            self.changed.notify_one();
        }
    }

    /// The first record that an enabled webhook still has to read, if there is such a webhook; none before deliveries run.
    pub(crate) fn needs_from(&self) -> Option<Option<u64>> {
        let sinks = self.running.get()?.status();
        Some(sinks.iter().filter(|sink| sink.enabled).map(|sink| sink.cursor.sequence).min())
    }

    /// How many events became due to webhooks that are enabled, by what they chose.
    fn chosen(&self) -> rate::Chosen {
        let specs = self.running.get().map(Deliveries::specs).unwrap_or_default();
        let of = |spec: SinkSpec| {
            let kinds = made::Kinds::named_by(&spec.events);
            ((spec.tenant, kinds), self.counts.due(spec.tenant, kinds))
        };
        specs.into_iter().filter(|spec| spec.enabled).map(of).collect()
    }

    pub(crate) fn batch_done(&self) {
        if let Some(running) = self.running.get() {
            running.wake();
        }
    }
}

/// The deliveries of a daemon.
pub(crate) struct DeliveryService {
    pub(crate) hook: Arc<DeliveryHook>,
    config: config::Accounting,
    data: PathBuf,
    key: MacKey,
    secrets: OnceLock<Arc<WebhookSecrets>>,
    rate: Mutex<RateWindow>,
    /// The token of the accounting system, if there is one, and the task that follows it.
    token: Option<Arc<ProviderToken>>,
    following: OnceLock<AbortHandle>,
    /// Why deliveries could not be started.
    trouble: OnceLock<String>,
    /// Held while a webhook is made, so that it has its secret before anything is sent.
    pub(crate) making: tokio::sync::Mutex<()>,
    /// Retries, replays and reconciliations.
    pub(crate) jobs: work::DeliveryJobs,
}

/// The time of the engine. The cell publishes to the deliveries, so they must not keep it.
struct EngineClock(Weak<Cell>);

impl leasehold_deliver::Clock for EngineClock {
    fn now(&self) -> Instant {
        self.0.upgrade().map_or(Instant(0), |cell| cell.time())
    }
}

/// The sink as the tasks see it.
fn spec(sink: &Sink) -> SinkSpec {
    let put = &sink.put;
    SinkSpec {
        id: SinkId(put.sink.0.into()),
        name: put.name.to_string(),
        tenant: put.tenant,
        url: put.url.to_string(),
        events: put.events.iter().map(ToString::to_string).collect(),
        signature: signature_kind(put.signature),
        created_at_sequence: sink.made_by,
        enabled: sink.disabled.is_none(),
    }
}

pub(crate) fn signature_kind(signature: SinkSignature) -> SignatureKind {
    match signature {
        SinkSignature::Hmac => SignatureKind::Hmac,
        SinkSignature::Ed25519 => SignatureKind::Ed25519,
    }
}

impl DeliveryService {
    pub(crate) fn new(config: &config::Accounting, data: &Path, key: MacKey) -> Self {
        Self {
            hook: Arc::default(),
            config: config.clone(),
            data: data.to_owned(),
            key,
            secrets: OnceLock::new(),
            rate: Mutex::default(),
            token: ProviderToken::of(config).filter(|_| config.enabled).map(Arc::new),
            following: OnceLock::new(),
            trouble: OnceLock::new(),
            making: tokio::sync::Mutex::default(),
            jobs: work::DeliveryJobs::default(),
        }
    }

    pub(crate) fn config(&self) -> &config::Accounting {
        &self.config
    }

    /// The running deliveries; none unless they are enabled.
    pub(crate) fn running(&self) -> Option<&Deliveries> {
        self.hook.running.get()
    }

    pub(crate) fn secrets(&self) -> Option<&Arc<WebhookSecrets>> {
        self.secrets.get()
    }

    /// Events that become due per minute.
    pub(crate) fn events_per_minute(&self, now: Instant) -> Rate {
        let (due, chosen) = (self.hook.counts.total(), self.hook.chosen());
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).measure(now, due, &chosen)
    }

    fn note_rate(&self, now: Instant) {
        let (due, chosen) = (self.hook.counts.total(), self.hook.chosen());
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).note(now, due, chosen);
    }

    /// The token of the accounting system, if one is configured.
    pub(crate) fn token(&self) -> Option<&ProviderToken> {
        self.token.as_deref()
    }

    /// The networks and addresses that webhooks may use.
    pub(crate) fn guard(&self) -> Guard {
        let networks = self.config.webhooks.allowed_networks.iter();
        let allowed = networks.filter_map(|network| network.parse().ok()).collect();
        Guard { allowed, allow_http: self.config.webhooks.allow_http }
    }

    fn limits(&self) -> Limits {
        Limits {
            disk_buffer_max_events: self.config.disk_buffer_max_events,
            on_overflow: match self.config.on_overflow {
                config::OnOverflow::Alert => OnOverflow::Alert,
                config::OnOverflow::Drop => OnOverflow::Drop,
            },
            ..Limits::for_events(self.config.buffer_size as usize)
        }
    }

    /// Why deliveries do not run although they are enabled.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    /// Starts the deliveries, if they are enabled. Blocks while files are read. What is wrong stops nothing else.
    pub(crate) fn start(&self, app: &Arc<App>, runtime: Handle) {
        self.follow_token(app, &runtime);
        if let Err(why) = self.try_start(app, runtime) {
            tracing::error!(why, "events are not delivered; correct this and start again");
            let _ = self.trouble.set(why);
        }
    }

    fn follow_token(&self, app: &App, runtime: &Handle) {
        let Some(token) = &self.token else { return };
        tracing::warn!(
            "accounting.provider is waldur: this version reads the token for Waldur, and does not send usage to it yet"
        );
        let clock = Arc::new(EngineClock(Arc::downgrade(&app.cell)));
        let following = runtime.spawn(Arc::clone(token).follow(process_variables(), clock));
        let _ = self.following.set(following.abort_handle());
    }

    fn try_start(&self, app: &Arc<App>, runtime: Handle) -> Result<(), String> {
        if !self.config.enabled {
            return Ok(());
        }
        let secrets =
            WebhookSecrets::load(&self.data.join("webhook-secrets.json")).map_err(|error| error.to_string())?;
        let secrets = Arc::new(secrets);
        let ca = self.config.webhooks.ca.as_ref().map(|path| {
            std::fs::read(path).map_err(|error| format!("accounting.webhooks.ca: {}: {error}", path.display()))
        });
        let limits = self.limits();
        let webhook = Webhook::new(self.guard(), Arc::clone(&secrets), &limits, ca.transpose()?.as_deref());
        let webhook = webhook.map_err(|error| error.to_string())?;
        let (store, opened) =
            Store::open(&self.data.join("deliveries.redb"), &self.key).map_err(|error| error.to_string())?;
        self.forget_deleted(app, &secrets, &store);
        let (source, disabled) = (Arc::downgrade(app), Arc::downgrade(app));
        let deliveries = Deliveries::start(Parts {
            source: Arc::new(JournalEvents { app: source, counts: Arc::clone(&self.hook.counts) }),
            transport: Arc::new(webhook),
            store,
            opened,
            clock: Arc::new(EngineClock(Arc::downgrade(&app.cell))),
            limits,
            origin: format!("leasehold://{}", app.journal.origin()),
            on_disabled: Arc::new(move |sink| disable(&disabled, sink)),
            runtime,
        });
        let _ = self.secrets.set(secrets);
        let _ = self.hook.running.set(deliveries);
        self.sync(app);
        Ok(())
    }

    /// Removes what is left of webhooks that were deleted while deliveries did not run, or just before a crash. No
    /// webhook can be made yet.
    fn forget_deleted(&self, app: &App, secrets: &WebhookSecrets, store: &Store) {
        let ids: BTreeSet<SinkId> = app.now.read(|state| state.sinks().map(|sink| spec(sink).id).collect());
        match secrets.keep_only(&ids) {
            Ok(0) => {}
            Ok(webhooks) => tracing::info!(webhooks, "the secrets of deleted webhooks were removed"),
            Err(error) => tracing::warn!(%error, "the secrets of deleted webhooks are still in their file"),
        }
        let stored = store.sinks().unwrap_or_default();
        for gone in stored.into_iter().filter(|sink| !ids.contains(sink)) {
            if let Err(error) = store.forget(gone) {
                tracing::warn!(sink = gone.0, %error, "the progress of a deleted webhook is left in the file");
            }
        }
    }

    /// Makes the running webhooks those of the journal.
    pub(crate) fn sync(&self, app: &App) {
        let Some(running) = self.running() else { return };
        let wanted: Vec<SinkSpec> = app.now.read(|state| state.sinks().map(spec).collect());
        // What an accounting system would be sent is measured for it as well, so that its settings can be advised on.
        let provider = self.token.iter().map(|_| None);
        self.hook.counts.set_owners(wanted.iter().map(|sink| sink.tenant).chain(provider));
        let ids: BTreeSet<SinkId> = wanted.iter().map(|sink| sink.id).collect();
        let known: Vec<SinkId> = running.status().iter().map(|sink| sink.id).collect();
        for gone in known.into_iter().filter(|id| !ids.contains(id)) {
            running.remove(gone);
            u32::try_from(gone.0).into_iter().for_each(|gone| self.jobs.forget(SinkNo(gone)));
            if let Some(Err(error)) = self.secrets().map(|secrets| secrets.remove(gone)) {
                tracing::warn!(sink = gone.0, %error, "the secrets of a deleted webhook are still in their file");
            }
        }
        for sink in wanted {
            if running.spec(sink.id).as_ref() == Some(&sink) {
                continue;
            }
            let number = sink.id;
            if let Err(error) = running.put(sink) {
                tracing::error!(sink = number.0, %error, "a webhook cannot be served");
            }
        }
        self.note_rate(app.time());
    }

    /// Ends all deliveries, and writes how far they came.
    pub(crate) async fn stop(&self) {
        if let Some(following) = self.following.get() {
            following.abort();
        }
        if let Some(running) = self.running() {
            running.stop().await;
        }
        self.jobs.stop().await;
    }
}

/// Follows changes of webhooks, and how many events become due, until the daemon ends. Without deliveries it has nothing
/// to do.
pub(crate) async fn watch(app: Weak<App>) {
    let enabled = app.upgrade().filter(|app| app.deliveries.config.enabled);
    let Some(hook) = enabled.map(|app| Arc::clone(&app.deliveries.hook)) else { return };
    let mut minutes = tokio::time::interval(NOTE_EVERY);
    loop {
        let has_changed = tokio::select! {
            () = hook.changed.notified() => true,
            _ = minutes.tick() => false,
        };
        let Some(app) = app.upgrade() else { return };
        if has_changed {
            let _whole = app.deliveries.making.lock().await;
            app.deliveries.sync(&app);
        } else {
            app.deliveries.note_rate(app.time());
        }
    }
}

/// The receiver of a webhook answered that it is gone.
fn disable(app: &Weak<App>, sink: SinkId) {
    let Some(app) = app.upgrade() else { return };
    let Ok(number) = u32::try_from(sink.0) else { return };
    // Sealing blocks, and this is called by a task.
    tokio::task::spawn_blocking(move || {
        let disable = DisableSink { sink: SinkNo(number), cause: SinkDisabledCause::Gone };
        match app.cell.operate(Command::DisableSink(disable)) {
            Ok(_) => tracing::warn!(sink = sink.0, "a webhook answered 410 (Gone) and is disabled"),
            Err(error) => tracing::error!(sink = sink.0, ?error, "a webhook is gone, which could not be recorded"),
        }
    });
}
