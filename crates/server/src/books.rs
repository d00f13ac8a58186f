//! The books in the daemon: a thread that follows the journal, and functions for requests that read them.
//!
//! The lease path never waits for the books. A request that reads the books waits until they have processed everything
//! that was durable when it arrived, so that callers read their own writes.

use crate::access::Caller;
use crate::app::App;
use crate::archive_state::ArchiveReporter;
use crate::problem::sentence;
use crate::profiles::Profiles;
use crate::turns::{Turn, TurnLimits, Turns};
use leasehold_api::{Problem, codes};
use leasehold_books::{Balance, Books, BooksError, COMMIT_RECORDS, Keeper, Opened};
use leasehold_journal::{Journal, MacKey};
use leasehold_model::Instant;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant as Stopwatch};

/// Records processed while the write lock is held.
const STEP: u64 = 1000;
/// How often the thread checks for new records if it is not woken.
const IDLE: Duration = Duration::from_millis(500);
/// Longest time between two commits, if there are changes.
const COMMIT_EVERY: Duration = Duration::from_secs(60);
/// Shortest time between two commits.
const COMMIT_PAUSE: Duration = Duration::from_secs(1);
/// Reports.
const REPORTS: TurnLimits =
    TurnLimits { what: "reports", running: 8, running_of_tenant: 4, running_of_token: 2, of_token: 32 };
/// Lookups of single leases and allocations, and lists of them. They read little.
const LOOKUPS: TurnLimits =
    TurnLimits { what: "lookups", running: 16, running_of_tenant: 10, running_of_token: 8, of_token: 256 };
/// How long a request waits for the books to catch up.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(5);

/// The books of the daemon.
pub(crate) struct BooksService {
    path: PathBuf,
    /// Authenticates the entries of the file.
    key: MacKey,
    /// Tells `leasehold journal archive` how far the books are committed.
    archiver: ArchiveReporter,
    keeper: RwLock<Option<Keeper>>,
    /// Number of records processed.
    size: AtomicU64,
    grown: (Mutex<()>, Condvar),
    thread: OnceLock<Thread>,
    waiting: AtomicU64,
    stopping: AtomicBool,
    reports: Turns,
    lookups: Turns,
    /// Sensitivity profiles of workloads.
    pub(crate) profiles: Profiles,
}

fn guard<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

impl BooksService {
    pub(crate) fn new(path: PathBuf, key: MacKey, archiver: ArchiveReporter) -> Self {
        Self {
            path,
            key,
            archiver,
            keeper: RwLock::new(None),
            size: AtomicU64::new(0),
            grown: (Mutex::new(()), Condvar::new()),
            thread: OnceLock::new(),
            waiting: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            reports: Turns::new(REPORTS),
            lookups: Turns::new(LOOKUPS),
            profiles: Profiles::default(),
        }
    }

    /// Number of records that the books have processed.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Records became durable. Called on the publishing thread, which wakes the books thread only if a request waits.
    pub(crate) fn wake(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Tells the archiver which directories this daemon reads, before it serves.
    pub(crate) fn introduce(&self) {
        self.archiver.introduce();
    }

    pub(crate) fn start(self: &Arc<Self>, journal: Arc<dyn Journal>) -> std::io::Result<JoinHandle<()>> {
        let service = Arc::clone(self);
        std::thread::Builder::new().name("books".into()).spawn(move || {
            let _ = service.thread.set(std::thread::current());
            // The lease path has precedence. If the system refuses the lower priority, the thread runs at the normal
            // one.
            let _ = rustix::process::setpriority_process(None, 10);
            let mut reported = String::new();
            while !service.is_stopping() {
                if let Err(error) = service.follow(&*journal) {
                    *guard(service.keeper.write()) = None;
                    service.size.store(0, Ordering::Relaxed);
                    // What cannot be read now may be readable later: a full disk, a segment in an archive that is not
                    // available. To rebuild the books needs more of it, not less.
                    if let BooksError::Unread(why) = error {
                        if why != reported {
                            tracing::error!(why, "the books cannot be read; this is tried again every second");
                            reported = why;
                        }
                        service.pause();
                        continue;
                    }
                    tracing::error!(%error, "the books failed and are rebuilt");
                    service.archiver.tell(0);
                    if let Err(error) = std::fs::remove_file(&service.path)
                        && error.kind() != std::io::ErrorKind::NotFound
                    {
                        tracing::error!(%error, "cannot remove the old books");
                    }
                    service.pause();
                }
            }
        })
    }

    /// Before another attempt.
    fn pause(&self) {
        if !self.is_stopping() {
            std::thread::park_timeout(Duration::from_secs(1));
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Asks the thread to commit everything and end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.thread.get().into_iter().for_each(Thread::unpark);
    }

    /// Opens the books and follows the journal until shutdown, or until the books prove to be damaged.
    fn follow(&self, journal: &dyn Journal) -> Result<(), BooksError> {
        let (keeper, opened) = Keeper::open(&self.path, journal, &self.key)?;
        if let Opened::Rebuilt(why) = opened {
            tracing::warn!(why, "the books are rebuilt from the journal");
        }
        self.set_size(keeper.books.size());
        self.archiver.tell(keeper.books.size());
        *guard(self.keeper.write()) = Some(keeper);
        let (mut last_commit, mut waiting) = (Stopwatch::now(), String::new());
        loop {
            let (taken, uncommitted) = self.with_mut(|keeper| {
                keeper.books.check()?;
                let taken = match keeper.follow(journal, STEP) {
                    // The thread looks again soon; until then, requests learn that the books are behind.
                    Err(BooksError::Unread(why)) => {
                        if why != waiting {
                            tracing::error!(why, "the books wait: the journal cannot be read at the moment");
                            waiting = why;
                        }
                        0
                    }
                    taken => taken?,
                };
                Ok((taken, keeper.uncommitted()))
            })?;
            if taken > 0 {
                self.set_size(self.size() + taken);
            }
            let stopping = self.is_stopping();
            let due = (uncommitted >= COMMIT_RECORDS && last_commit.elapsed() >= COMMIT_PAUSE)
                || last_commit.elapsed() >= COMMIT_EVERY
                || (stopping && taken < STEP);
            if due && uncommitted > 0 {
                match self.commit(journal) {
                    // If the disk is full, the books continue in memory. A restart processes the uncommitted records
                    // again.
                    Err(BooksError::Io(why) | BooksError::Unread(why)) => tracing::warn!(why, "cannot write the books"),
                    committed => committed?,
                }
                last_commit = Stopwatch::now();
            }
            if stopping && taken < STEP {
                return Ok(());
            }
            if taken < STEP {
                self.learn();
            }
            if taken == 0 {
                std::thread::park_timeout(IDLE);
            }
        }
    }

    /// Updates one workload profile. A failure is retried later; until then placement lacks the profile.
    fn learn(&self) {
        let keeper = guard(self.keeper.read());
        let keeper = keeper.as_ref().expect("this thread opened the books");
        if let Err(error) = self.profiles.learn(&keeper.books) {
            tracing::warn!(%error, "cannot compute the sensitivity of workloads");
        }
    }

    fn set_size(&self, size: u64) {
        self.size.store(size, Ordering::Release);
        let _lock = guard(self.grown.0.lock());
        self.grown.1.notify_all();
    }

    fn with_mut<T>(&self, change: impl FnOnce(&mut Keeper) -> Result<T, BooksError>) -> Result<T, BooksError> {
        let mut keeper = guard(self.keeper.write());
        change(keeper.as_mut().expect("this thread opened the books"))
    }

    /// Readers can continue while the file is written, because only this thread changes the books.
    fn commit(&self, journal: &dyn Journal) -> Result<(), BooksError> {
        let written = guard(self.keeper.read()).as_ref().expect("this thread opened the books").write(journal)?;
        let size = self.with_mut(|keeper| {
            keeper.written(written)?;
            Ok(keeper.books.size())
        })?;
        self.archiver.tell(size);
        Ok(())
    }

    fn read<T>(&self, question: impl FnOnce(&Books) -> Result<T, Problem>) -> Result<T, Problem> {
        let keeper = guard(self.keeper.read());
        let not_open = || {
            let detail = "The books are being opened or rebuilt; try again in a few seconds.";
            codes::BOOKS_BEHIND.problem(detail).with("retry_after", 5)
        };
        question(&keeper.as_ref().ok_or_else(not_open)?.books)
    }

    /// The totals as of the last record that the books have processed; none while they are being rebuilt.
    pub(crate) fn balance(&self) -> Option<Result<Balance, BooksError>> {
        guard(self.keeper.read()).as_ref().map(|keeper| keeper.books.balance())
    }

    /// Reads from the books. The books cannot grow meanwhile, so it must not take long.
    pub(crate) fn with_books<T>(&self, look: impl FnOnce(&Books) -> Result<T, BooksError>) -> Result<T, BooksError> {
        look(&guard(self.keeper.read()).as_ref().ok_or(BooksError::Damaged)?.books)
    }

    /// The books follow each record as soon as it is durable until the result is dropped, and not only when they are asked.
    pub(crate) fn keep_up(&self) -> KeepingUp<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        KeepingUp(self)
    }

    /// Waits until so many records are in the books. Blocks the thread. Returns whether they are.
    pub(crate) fn wait_for(&self, size: u64, most: Duration) -> bool {
        let began = Stopwatch::now();
        let _awake = self.keep_up();
        self.thread.get().into_iter().for_each(Thread::unpark);
        let mut lock = guard(self.grown.0.lock());
        while self.size.load(Ordering::Acquire) < size && began.elapsed() < most && !self.is_stopping() {
            lock = guard(self.grown.1.wait_timeout(lock, Duration::from_millis(100))).0;
        }
        drop(lock);
        self.size() >= size
    }

    /// Waits until everything that is durable now is in the books. Blocks the thread.
    fn catch_up(&self, size: u64) -> Result<(), Problem> {
        if self.wait_for(size, CATCH_UP_TIMEOUT) {
            return Ok(());
        }
        let taken = self.size();
        let detail = format!("The books have processed {taken} of {size} records; try again in a few seconds.");
        Err(codes::BOOKS_BEHIND.problem(detail).with("retry_after", 5))
    }
}

/// While it exists, the thread of the books is woken by every record.
#[must_use]
pub(crate) struct KeepingUp<'b>(&'b BooksService);

impl Drop for KeepingUp<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How far the journal has been evaluated.
pub(crate) struct Known {
    /// The instant up to which the figures are computed.
    pub(crate) as_of: Instant,
    /// The number of records that the books have processed.
    pub(crate) size: u64,
}

pub(crate) fn problem(error: &BooksError) -> Problem {
    match error {
        BooksError::Overflow(overflow) => codes::OVERFLOW.problem(format!("{}.", sentence(&overflow.to_string()))),
        BooksError::TooMuch => codes::TOO_MANY_LINES.problem(format!("{}.", sentence(&error.to_string()))),
        BooksError::Damaged | BooksError::Unread(_) => {
            codes::BOOKS_BEHIND.problem(format!("{}.", sentence(&error.to_string()))).with("retry_after", 5)
        }
        error => {
            tracing::error!(%error, "the books failed");
            codes::INTERNAL.problem("The books failed; the daemon's log has the details.")
        }
    }
}

/// Computes a report from the books on a blocking thread.
pub(crate) async fn ask<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    question: impl FnOnce(&Books, Known) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = app.books.reports.ask(caller).await?;
    when_caught_up(app, turn, |app| {
        let wall = app.time();
        let as_of = {
            let mut keeper = guard(app.books.keeper.write());
            let keeper = keeper.as_mut().ok_or_else(|| problem(&BooksError::Damaged))?;
            keeper.books.known_until(wall)
        };
        app.books.read(|books| question(books, Known { as_of, size: books.size() }))
    })
    .await
}

/// Looks up single leases or allocations in the books on a blocking thread. Lookups do not wait for reports of others.
pub(crate) async fn look_up<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    question: impl FnOnce(&App, &Books) -> Result<T, BooksError> + Send + 'static,
) -> Result<T, Problem> {
    let turn = app.books.lookups.ask(caller).await?;
    when_caught_up(app, turn, |app| app.books.read(|books| question(app, books).map_err(|error| problem(&error)))).await
}

/// Looks something up in the books as they are, without waiting until they have all records.
pub(crate) async fn glance<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    question: impl FnOnce(&Books) -> Result<T, BooksError> + Send + 'static,
) -> Result<T, Problem> {
    let turn = app.books.lookups.ask(caller).await?;
    let books = Arc::clone(&app.books);
    let answered = tokio::task::spawn_blocking(move || {
        let answer = books.with_books(question);
        drop(turn);
        answer
    });
    let answered = answered.await.map_err(|_| codes::INTERNAL.problem("The books could not be asked."))?;
    answered.map_err(|error| problem(&error))
}

/// Looks something up that may be refused, such as what the ledger is asked.
pub(crate) async fn consult<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    question: impl FnOnce(&App, &Books) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = app.books.lookups.ask(caller).await?;
    when_caught_up(app, turn, |app| app.books.read(|books| question(app, books))).await
}

/// Waits until the books have processed everything that is durable.
async fn when_caught_up<T: Send + 'static>(
    app: &Arc<App>,
    turn: Turn,
    answer: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let app = Arc::clone(app);
    let asked = tokio::task::spawn_blocking(move || {
        // Held to the end, even if the request was dropped.
        let _turn = turn;
        app.books.catch_up(app.journal.head().size)?;
        answer(&app)
    });
    asked.await.unwrap_or_else(|_| Err(codes::INTERNAL.problem("The books failed; the daemon's log has the details.")))
}
