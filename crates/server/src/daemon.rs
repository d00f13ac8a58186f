//! The daemon: a cell, the routes over it, and the order of startup and shutdown.

use crate::access::{new_secret, secret_hash};
use crate::agents::Agents;
use crate::app::App;
use crate::archive_state::ArchiveReporter;
use crate::books::BooksService;
use crate::config::Config;
use crate::data_directory::{DataDirectory, DataDirectoryError, software};
use crate::deliveries::{self, DeliveryService};
use crate::empty_nodes;
use crate::invoice_page::InvoicePrinting;
use crate::key_history::KeyHistory;
use crate::live::{Live, PublishObserver};
use crate::losses;
use crate::metrics::Metrics;
use crate::proofs::Proofs;
use crate::rate::Limiter;
use crate::reload::Reloader;
use crate::routes::router;
use crate::scans::Scans;
use crate::scrub::{self, ScrubService};
use crate::settings::Settings;
use crate::settlement::{self, SettlementService};
use crate::shares::{ShareLimits, Shares};
use crate::statements::StatementService;
use crate::tls::{Tls, TlsError};
use leasehold_books::Keeper;
use leasehold_cell::{Cell, Clock, Opened, Reply, StartError, StartOptions, Unsealed};
use leasehold_engine::command::IssueToken;
use leasehold_engine::{Command, Request};
use leasehold_journal::disk::Disk;
use leasehold_journal::{Journal, Keys, Local, MacKey, RealDisk, Recovered, UnprovedTail, private_file};
use leasehold_model::record::Hash;
use leasehold_model::{Identity, Instant, Name, Role, TokenScope};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::sync::watch;
use zeroize::Zeroizing;

/// Options of a start that are not part of the configuration.
pub struct Start {
    pub clock: Arc<dyn Clock>,
    /// Start although the clock is further from the last record than allowed. The jump is recorded.
    pub accept_clock: bool,
    /// What to do with records after the last checkpoint that cannot be authenticated. The decision is recorded.
    pub unproved_tail: UnprovedTail,
    /// Issue an operator token although one exists, for an operator who lost its file.
    pub new_operator_token: bool,
    /// Called once if the journal fails; the process should exit.
    pub on_failure: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Why the daemon did not start.
#[derive(Debug)]
pub enum DaemonError {
    DataDirectory(DataDirectoryError),
    Start(StartError),
    Tls(TlsError),
    Io {
        what: String,
        error: io::Error,
    },
    /// The books must be rebuilt, and a segment that this needs is missing.
    MissingSegment {
        segment: u32,
        why: &'static str,
    },
    /// The template of invoices cannot be used.
    InvoiceTemplate(String),
    /// A command that startup needs was refused.
    Refused(String),
}

impl DaemonError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::DataDirectory(error) => error.code(),
            Self::Start(error) => error.code(),
            Self::Tls(error) => error.code(),
            Self::Io { .. } => "io_failed",
            Self::MissingSegment { .. } => "journal_segment_missing",
            Self::InvoiceTemplate(_) => "invoice_template",
            Self::Refused(_) => "start_refused",
        }
    }
}

impl fmt::Display for DaemonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataDirectory(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Io { what, error } => write!(f, "{what}: {error}"),
            Self::MissingSegment { segment, why } => write!(
                f,
                "books.redb cannot be used ({why}), and journal/{segment:08}.seg is missing to rebuild it from the \
                 journal; bring the segment back, or add its directory to journal.archive"
            ),
            Self::InvoiceTemplate(why) => write!(f, "ledger.invoice_template: {why}"),
            Self::Refused(what) => f.write_str(what),
        }
    }
}
impl std::error::Error for DaemonError {}

/// A daemon that has opened its journal and accepts commands, but does not listen yet.
pub struct Daemon {
    app: Arc<App>,
    config: Config,
    directory: DataDirectory,
    live_thread: JoinHandle<()>,
    books_thread: JoinHandle<()>,
    scrub_thread: JoinHandle<()>,
    tls: Option<Tls>,
    /// The first segment that is neither in the data directory nor in an archive, if some were moved away.
    pub missing_segment: Option<u32>,
    /// The limits of connections; a reload changes them.
    limits: watch::Sender<crate::config::Limits>,
    /// The result of opening the journal.
    pub recovered: Option<Recovered>,
    pub opened: Opened,
    /// Secret of the operator token that was issued by this start.
    pub operator_token: Option<Zeroizing<String>>,
}

impl Daemon {
    /// Opens the journal in the data directory and starts the cell. Blocks while the journal is read.
    pub fn open(config: Config, start: Start) -> Result<Self, DaemonError> {
        let tls = match (&config.tls.cert, &config.tls.key) {
            (Some(cert), Some(key)) => Some(Tls::load(cert, key).map_err(DaemonError::Tls)?),
            _ => None,
        };
        let directory = DataDirectory::prepare(&config.data).map_err(DaemonError::DataDirectory)?;
        let open_to_all = crate::permissions::check(&directory.data).map_err(DaemonError::DataDirectory)?;
        if let Some(open) = open_to_all {
            tracing::warn!(
                path = %open.path.display(),
                mode = format!("{:04o}", open.mode),
                "all users of this machine may look into the data directory, which contains names of users and \
                 workloads; chmod 700 makes it private"
            );
        }
        let keys = directory
            .keys(config.origin.as_deref(), &config.origin_or_default())
            .map_err(DaemonError::DataDirectory)?;
        let keys = Arc::new(keys);
        let public_key = keys.public_keys()[0];
        let mut local = Local::new(directory.secret().map_err(DaemonError::DataDirectory)?);
        local.tail = start.unproved_tail;
        for archive in config.journal.archive.iter().filter(|path| !path.is_dir()) {
            let archive = archive.display();
            tracing::warn!(%archive, "a directory of journal.archive does not exist; start again once it does");
        }
        let archives = config.journal.archive.iter();
        local.archives = archives.map(|path| -> Arc<dyn Disk> { Arc::new(RealDisk::new(path)) }).collect();
        let (books_key, scrub_key) = (local.secret.books().clone(), local.secret.scrub().clone());
        let statements = StatementService::new(&directory.data, local.secret.statements().clone());
        let deliveries = DeliveryService::new(&config.accounting, &directory.data, local.secret.deliveries().clone());
        let (journal, recovered) = directory
            .open_journal(Arc::clone(&keys), config.journal_options(), local, &*start.clock)
            .map_err(DaemonError::DataDirectory)?;
        let files = Arc::new(journal);
        let journal: Arc<dyn Journal> = Arc::clone(&files) as Arc<dyn Journal>;
        // Everything that can stop the start is checked before the first record is sealed.
        check_books(&directory, &*journal, &books_key)?;
        genesis(&*journal)?;
        let mut start_options = StartOptions::new(software(), public_key);
        start_options.accept_clock = start.accept_clock;
        let mut options = config.cell_options(start_options);
        options.on_failure = start.on_failure;
        options.on_notice = Arc::new(|notice| crate::notices::log(&notice));
        let (cell, opened) =
            Cell::start(Arc::clone(&journal), Arc::clone(&start.clock), options).map_err(DaemonError::Start)?;
        let cell = Arc::new(cell);
        let wanted = config.engine.over(&cell.now().read(|state| state.settings().clone()));
        if cell.now().read(|state| *state.settings() != wanted) {
            match cell.operate(Command::ChangeSettings(wanted)) {
                // On a full disk the daemon starts all the same, to answer reads.
                Err(Unsealed::JournalFull) => tracing::warn!("the disk is full: the settings under `engine:` wait"),
                reply => sealed(reply, "the settings under `engine:` are invalid")?,
            }
        }
        let began = cell.time();
        let operator_token = first_operator_token(&cell, &directory, began, start.new_operator_token)?;
        if config.ledger.auto_open {
            settlement::open_if_unused(&cell);
        }
        let missing_segment = journal.missing_segment();
        let scrub = ScrubService::new(&directory.data, scrub_key, files, start.clock, config.scrub.clone());
        let app =
            assemble(&config, &directory, books_key, cell, journal, keys, scrub, (statements, deliveries), began)?;
        let starting = |error| DaemonError::Io { what: "cannot start the event stream thread".into(), error };
        let live_thread = app.live.start(Arc::downgrade(&app)).map_err(starting)?;
        app.books.introduce();
        let books_thread = app.books.start(Arc::clone(&app.journal));
        let starting = |error| DaemonError::Io { what: "cannot start the books thread".into(), error };
        let books_thread = books_thread.map_err(starting)?;
        let starting = |error| DaemonError::Io { what: "cannot start the scrub thread".into(), error };
        let scrub_thread = scrub::run(&app).map_err(starting)?;
        let limits = watch::Sender::new(config.limits.clone());
        Ok(Self {
            app,
            config,
            limits,
            directory,
            live_thread,
            books_thread,
            scrub_thread,
            tls,
            missing_segment,
            recovered,
            opened,
            operator_token,
        })
    }

    pub fn data_directory(&self) -> &DataDirectory {
        &self.directory
    }
    pub fn origin(&self) -> &str {
        self.app.journal.origin()
    }
    /// The cell, for code that runs in the same process.
    pub fn cell(&self) -> &Arc<Cell> {
        &self.app.cell
    }

    /// Settles every hour that is over and goes on with a month that is being closed, as the daemon does by itself while
    /// it serves, once the books have everything that is durable now. Blocks the thread.
    pub fn settle(&self) -> Result<(), String> {
        settlement::settle_durable(&self.app).map_err(|why| format!("{why:?}"))
    }

    /// Applies new configurations while the daemon serves.
    pub fn reloader(&self) -> Reloader {
        Reloader {
            app: Arc::downgrade(&self.app),
            tls: self.tls.clone(),
            limits: self.limits.clone(),
            started: self.config.clone(),
            in_force: self.config.clone(),
        }
    }

    /// Serves requests until `shutdown` completes, then finishes the requests in flight and closes the journal.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> Result<(), String> {
        let app = Arc::clone(&self.app);
        let (router, counters) = (router(&app), Arc::clone(app.metrics.connections()));
        let following = self.tls.clone().map(|tls| tokio::spawn(tls.follow()));
        let losses = tokio::spawn(losses::watch(Arc::downgrade(&app)));
        let settlement = tokio::spawn(settlement::watch(Arc::downgrade(&app)));
        // Deliveries that cannot start stop nothing else.
        let starting = Arc::clone(&app);
        let runtime = tokio::runtime::Handle::current();
        let started = tokio::task::spawn_blocking(move || starting.deliveries.start(&starting, runtime)).await;
        if let Err(error) = started {
            tracing::error!(%error, "events are not delivered");
        }
        let deliveries = tokio::spawn(deliveries::watch(Arc::downgrade(&app)));
        let after = self.config.engine.idle_node_after;
        let empty = after.map(|after| tokio::spawn(empty_nodes::watch(Arc::downgrade(&app), after)));
        let stopping = async {
            shutdown.await;
            // Event streams do not end on their own.
            app.live.stop();
        };
        crate::listen::serve(listener, self.tls.clone(), router, self.limits.subscribe(), counters, stopping).await;
        for task in following.into_iter().chain([losses, settlement, deliveries]).chain(empty) {
            task.abort();
        }
        app.deliveries.stop().await;
        drop(app);
        self.close()
    }

    /// Stops the cell and closes the journal, without or after serving.
    pub fn close(self) -> Result<(), String> {
        self.app.live.stop();
        // If the thread panicked, the panic has been reported already.
        let _ = self.live_thread.join();
        // While the books can still be read, so that the next start continues the pass.
        self.app.scrub.stop();
        let _ = self.scrub_thread.join();
        let (cell, books) = (Arc::clone(&self.app.cell), Arc::clone(&self.app.books));
        drop(self.app);
        let stopped = cell.stop();
        // After the last record, so that a restart has nothing left to process.
        books.stop();
        let _ = self.books_thread.join();
        stopped
    }
}

/// Books that cannot be used are rebuilt from the first record on, and never in part: if a segment is missing for that,
/// the daemon does not start.
fn check_books(directory: &DataDirectory, journal: &dyn Journal, key: &MacKey) -> Result<(), DaemonError> {
    let Some(segment) = journal.missing_segment() else { return Ok(()) };
    match Keeper::check(&directory.books(), journal, key) {
        Ok(()) => Ok(()),
        Err(why) => Err(DaemonError::MissingSegment { segment, why }),
    }
}

/// The hash of the first record; `None` in a new journal.
fn genesis(journal: &dyn Journal) -> Result<Option<Hash>, DaemonError> {
    journal.genesis().map_err(|error| DaemonError::Refused(format!("cannot read the first record: {error}")))
}

fn sealed(reply: Reply, what: &str) -> Result<(), DaemonError> {
    match reply {
        Ok(_) => Ok(()),
        Err(why) => Err(DaemonError::Refused(format!("{what}: {}", crate::problem::unanswered(&why).detail))),
    }
}

/// Issues an operator token if there is none, and writes its secret to a file that only its owner can read.
fn first_operator_token(
    cell: &Cell,
    directory: &DataDirectory,
    now: Instant,
    another: bool,
) -> Result<Option<Zeroizing<String>>, DaemonError> {
    let has_one =
        cell.now().read(|state| state.tokens().any(|token| token.role == Role::Operator && token.is_live(state, now)));
    if has_one && !another {
        return Ok(None);
    }
    let secret = new_secret()
        .map_err(|error| DaemonError::Refused(format!("the system provides no random bytes for a token: {error}")))?;
    // The file first: after a crash in between, the secret in it is invalid, and the next start issues another token.
    write_secret(directory, &secret)
        .map_err(|error| DaemonError::Io { what: "cannot write operator.token".into(), error })?;
    let issue = IssueToken {
        name: Name::new("operator").expect("a valid name"),
        hash: secret_hash(&secret),
        role: Role::Operator,
        scope: TokenScope::default(),
        expires_at: None,
    };
    let reply = cell.call(Request::new(Identity::default(), Command::IssueToken(issue)));
    sealed(reply, "cannot record the operator token")?;
    Ok(Some(secret))
}

fn write_secret(directory: &DataDirectory, secret: &str) -> io::Result<()> {
    private_file::replace(&directory.operator_token(), &[secret.as_bytes(), b"\n"])
}

/// The queue of the cell limits all operations together; operators are limited by nothing else.
fn waiting_shares(total: usize) -> Arc<Shares> {
    Shares::new(ShareLimits { all: usize::MAX, ..ShareLimits::parts_of(total) })
}

#[expect(clippy::too_many_arguments, reason = "the parts of a daemon, named once")]
fn assemble(
    config: &Config,
    directory: &DataDirectory,
    books_key: MacKey,
    cell: Arc<Cell>,
    journal: Arc<dyn Journal>,
    keys: Arc<Keys>,
    scrub: ScrubService,
    (statements, deliveries): (StatementService, DeliveryService),
    began: Instant,
) -> Result<Arc<App>, DaemonError> {
    let genesis = genesis(&*journal)?.ok_or_else(|| DaemonError::Refused("the journal has no first record".into()))?;
    let now = Arc::clone(cell.now());
    let live = now.read(|state| Live::new(genesis, state, config.limits.streams as usize));
    let live = Arc::new(live);
    let archives = config.journal.archive.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
    let needs = config.accounting.enabled.then(|| Arc::clone(&deliveries.hook));
    let archiver = ArchiveReporter::new(directory.archive_state(), archives.collect(), needs);
    let books = Arc::new(BooksService::new(directory.books(), books_key, archiver));
    let observing =
        now.observe(Box::new(PublishObserver(Arc::clone(&live), Arc::clone(&books), Arc::clone(&deliveries.hook))));
    assert!(observing.is_ok(), "a cell has one observer");
    let openapi = serde_json::to_vec_pretty(&leasehold_api::openapi()).expect("the document is valid JSON");
    Ok(Arc::new(App {
        now,
        journal,
        keys,
        key_history: KeyHistory::default(),
        live,
        books,
        settlement: SettlementService::new(config.ledger.payment_terms()),
        statements,
        proofs: Proofs::default(),
        deliveries,
        request_timeout: config.limits.request_timeout.into(),
        proof_bytes_max: config.limits.proof_bytes,
        scrub: Arc::new(scrub),
        agents: Agents::new(began),
        genesis,
        settings: Settings::new(config),
        printing: InvoicePrinting::new(config).map_err(DaemonError::InvoiceTemplate)?,
        scans: Scans::new(),
        waiting: waiting_shares(config.limits.queued_requests as usize),
        rate: Limiter::new(&config.rate),
        metrics: Metrics::new(),
        data: directory.data.clone(),
        openapi: openapi.into(),
        cell,
    }))
}
