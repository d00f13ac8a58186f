//! The books in the daemon: a thread that follows the journal, and a way for requests to ask.
//!
//! The lease path never waits for the books. A request to them waits until they have taken up everything that was durable
//! when it came, so that a caller reads its own writes.

use crate::app::App;
use crate::problem::sentence;
use crate::profiles::Profiles;
use leasehold_api::{Problem, codes};
use leasehold_books::{Books, BooksError, COMMIT_RECORDS, Keeper, Opened};
use leasehold_journal::Journal;
use leasehold_model::Instant;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant as Stopwatch};
use tokio::sync::Semaphore;

/// Records taken up between two looks at who else wants the books.
const STEP: u64 = 1000;
/// Without news the thread looks by itself.
const IDLE: Duration = Duration::from_millis(500);
/// Changes are written at the latest after this, if there are any.
const COMMIT_EVERY: Duration = Duration::from_secs(60);
/// Between two commits, however much there is.
const COMMIT_PAUSE: Duration = Duration::from_secs(1);
/// Questions that are answered at once; others wait.
const ASKING_MAX: usize = 8;
/// The same of looks at single leases and allocations, which read little.
const LOOKING_MAX: usize = 16;
/// How long a request waits for the books to catch up.
const PATIENCE: Duration = Duration::from_secs(5);

/// The daemon's books.
pub(crate) struct BooksService {
    path: PathBuf,
    keeper: RwLock<Option<Keeper>>,
    /// Records taken up.
    size: AtomicU64,
    grown: (Mutex<()>, Condvar),
    thread: OnceLock<Thread>,
    waiting: AtomicU64,
    stopping: AtomicBool,
    asking: Arc<Semaphore>,
    looking: Arc<Semaphore>,
    /// What workloads depend on, learned by the way.
    pub(crate) profiles: Profiles,
}

fn guard<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

impl BooksService {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            keeper: RwLock::new(None),
            size: AtomicU64::new(0),
            grown: (Mutex::new(()), Condvar::new()),
            thread: OnceLock::new(),
            waiting: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            asking: Arc::new(Semaphore::new(ASKING_MAX)),
            looking: Arc::new(Semaphore::new(LOOKING_MAX)),
            profiles: Profiles::default(),
        }
    }

    /// Records that the books have taken up.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Something became durable. Called on the publishing thread: a thread that sleeps is woken only if someone waits.
    pub(crate) fn news(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    pub(crate) fn start(self: &Arc<Self>, journal: Arc<dyn Journal>) -> std::io::Result<JoinHandle<()>> {
        let service = Arc::clone(self);
        std::thread::Builder::new().name("books".into()).spawn(move || {
            let _ = service.thread.set(std::thread::current());
            // The lease path goes first; where the system does not let us, the books are as important as the rest.
            let _ = rustix::process::setpriority_process(None, 10);
            while !service.is_stopping() {
                if let Err(error) = service.follow(&*journal) {
                    tracing::error!(%error, "the books are made anew");
                    *guard(service.keeper.write()) = None;
                    service.size.store(0, Ordering::Relaxed);
                    if let Err(error) = std::fs::remove_file(&service.path)
                        && error.kind() != std::io::ErrorKind::NotFound
                    {
                        tracing::error!(%error, "the old books cannot be removed");
                    }
                    std::thread::park_timeout(Duration::from_secs(1));
                }
            }
        })
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// The thread ends soon, having written everything.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.thread.get().into_iter().for_each(Thread::unpark);
    }

    /// Opens the books and follows until the end, or until they turn out to be damaged.
    fn follow(&self, journal: &dyn Journal) -> Result<(), BooksError> {
        let (keeper, opened) = Keeper::open(&self.path, journal)?;
        if let Opened::Rebuilt(why) = opened {
            tracing::warn!(why, "the books are made anew from the journal");
        }
        self.tell(keeper.books.size());
        *guard(self.keeper.write()) = Some(keeper);
        let mut last_commit = Stopwatch::now();
        loop {
            let (taken, uncommitted) = self.with_mut(|keeper| {
                keeper.books.check()?;
                let taken = keeper.follow(journal, STEP)?;
                Ok((taken, keeper.uncommitted()))
            })?;
            if taken > 0 {
                self.tell(self.size() + taken);
            }
            let stopping = self.is_stopping();
            let due = (uncommitted >= COMMIT_RECORDS && last_commit.elapsed() >= COMMIT_PAUSE)
                || last_commit.elapsed() >= COMMIT_EVERY
                || (stopping && taken < STEP);
            if due && uncommitted > 0 {
                match self.commit(journal) {
                    // A full disk: they go on in memory, and a restart takes up what was not written.
                    Err(BooksError::Io(why)) => tracing::warn!(why, "the books cannot be written"),
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

    /// What cannot be learned is tried again later; only the choice of nodes is the poorer for it.
    fn learn(&self) {
        let keeper = guard(self.keeper.read());
        let keeper = keeper.as_ref().expect("this thread has opened them");
        if let Err(error) = self.profiles.learn(&keeper.books) {
            tracing::warn!(%error, "what workloads depend on cannot be told");
        }
    }

    fn tell(&self, size: u64) {
        self.size.store(size, Ordering::Release);
        let _lock = guard(self.grown.0.lock());
        self.grown.1.notify_all();
    }

    fn with_mut<T>(&self, change: impl FnOnce(&mut Keeper) -> Result<T, BooksError>) -> Result<T, BooksError> {
        let mut keeper = guard(self.keeper.write());
        change(keeper.as_mut().expect("this thread has opened them"))
    }

    /// Readers go on while the file is written: only this thread changes the books.
    fn commit(&self, journal: &dyn Journal) -> Result<(), BooksError> {
        let written = guard(self.keeper.read()).as_ref().expect("this thread has opened them").write(journal)?;
        self.with_mut(|keeper| keeper.written(written))
    }

    fn read<T>(&self, question: impl FnOnce(&Books) -> Result<T, Problem>) -> Result<T, Problem> {
        let keeper = guard(self.keeper.read());
        question(&keeper.as_ref().ok_or_else(|| problem(&BooksError::Damaged))?.books)
    }

    /// Waits until everything that is durable now is in the books. Blocks.
    fn catch_up(&self, size: u64) -> Result<(), Problem> {
        let began = Stopwatch::now();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.thread.get().into_iter().for_each(Thread::unpark);
        let mut lock = guard(self.grown.0.lock());
        while self.size.load(Ordering::Acquire) < size && began.elapsed() < PATIENCE && !self.is_stopping() {
            lock = guard(self.grown.1.wait_timeout(lock, Duration::from_millis(100))).0;
        }
        drop(lock);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let taken = self.size();
        if taken >= size {
            return Ok(());
        }
        let detail = format!("The books have taken up {taken} of {size} records; ask again in a few seconds.");
        Err(codes::BOOKS_BEHIND.problem(detail).with("retry_after", 5))
    }
}

/// What a question is told of the time: up to where the journal is known.
pub(crate) struct Known {
    pub(crate) as_of: Instant,
}

pub(crate) fn problem(error: &BooksError) -> Problem {
    match error {
        BooksError::Overflow(overflow) => codes::OVERFLOW.problem(format!("{}.", sentence(&overflow.to_string()))),
        BooksError::TooMuch => codes::TOO_MANY_LINES.problem(format!("{}.", sentence(&error.to_string()))),
        BooksError::Damaged => {
            codes::BOOKS_BEHIND.problem(format!("{}.", sentence(&error.to_string()))).with("retry_after", 5)
        }
        error => {
            tracing::error!(%error, "the books");
            codes::INTERNAL.problem("The books failed; the daemon's log says more.")
        }
    }
}

/// Asks the books, on a thread that may wait.
pub(crate) async fn ask<T: Send + 'static>(
    app: &Arc<App>,
    question: impl FnOnce(&Books, Known) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    caught_up(app, &app.books.asking, |app| {
        let wall = app.clock.wall();
        let as_of = {
            let mut keeper = guard(app.books.keeper.write());
            let keeper = keeper.as_mut().ok_or_else(|| problem(&BooksError::Damaged))?;
            keeper.books.known_until(wall)
        };
        app.books.read(|books| question(books, Known { as_of }))
    })
    .await
}

/// Looks at single leases or allocations in the books, on a thread that may wait. Sums that others ask for do not hold
/// it up.
pub(crate) async fn look<T: Send + 'static>(
    app: &Arc<App>,
    question: impl FnOnce(&App, &Books) -> Result<T, BooksError> + Send + 'static,
) -> Result<T, Problem> {
    caught_up(app, &app.books.looking, |app| {
        app.books.read(|books| question(app, books).map_err(|error| problem(&error)))
    })
    .await
}

/// Waits for a turn, and until the books have taken up what is durable.
async fn caught_up<T: Send + 'static>(
    app: &Arc<App>,
    turns: &Arc<Semaphore>,
    answer: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = Arc::clone(turns).acquire_owned().await.expect("nobody closes it");
    let app = Arc::clone(app);
    let asked = tokio::task::spawn_blocking(move || {
        // Kept to the end, also where nobody waits for the answer any more.
        let _turn = turn;
        app.books.catch_up(app.journal.head().size)?;
        answer(&app)
    });
    asked.await.unwrap_or_else(|_| Err(codes::INTERNAL.problem("The books failed; the daemon's log says more.")))
}
