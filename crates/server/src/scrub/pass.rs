//! Running passes: when one is due, its thread, and what it leaves.

use super::describe::describe;
use super::pace::Pace;
use super::{AFTER_START, LOOK_EVERY, ScrubService};
use crate::app::App;
use leasehold_api::{ScrubBooks, ScrubPass, ScrubState};
use leasehold_books::{Books, BooksError, Row};
use leasehold_journal::Journal;
use leasehold_model::LeaseNo;
use leasehold_scrub::{Balance, BookRows, BooksChecked, Finding, Pass, StatementsChecked, recheck_statements};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Stopwatch};

/// How often a pass saves where it stands.
const SAVE_EVERY: Duration = Duration::from_secs(60);
/// How long a file that cannot be opened is tried again, as when there are no file descriptors left.
const TRIES: u32 = 30;

/// Starts the thread that waits for passes.
pub(crate) fn run(app: &Arc<App>) -> io::Result<JoinHandle<()>> {
    let (weak, service) = (Arc::downgrade(app), Arc::clone(&app.scrub));
    std::thread::Builder::new().name("scrub".into()).spawn(move || follow(&weak, &service))
}

/// Runs a pass whenever one is due.
fn follow(app: &Weak<App>, service: &Arc<ScrubService>) {
    let began = Stopwatch::now();
    let mut saved = service.load();
    while !service.is_stopping() {
        let resumed = saved.take();
        if resumed.is_some() || service.is_due(began.elapsed()) {
            pass(app, service, resumed.as_deref());
        } else {
            service.wait(if service.settings().enabled { LOOK_EVERY } else { AFTER_START });
        }
    }
}

/// One pass. It is fixed here, at normal priority, and runs on a thread of its own at the lowest one.
fn pass(app: &Weak<App>, service: &Arc<ScrubService>, saved: Option<&[u8]>) {
    let resumed = saved.and_then(|saved| Pass::resume(&service.journal, saved));
    let pass = match resumed {
        // After a start the books may be behind what the pass has counted, or have to be rebuilt first.
        Some(pass) if wait_for_books(app, service, pass.books().1) => pass,
        Some(mut pass) => return keep(app, service, &mut pass),
        None => {
            service.announce();
            match fixed(app, service) {
                Some(balance) => Pass::begin(&service.journal, balance),
                // The daemon stops; the next start begins anew.
                None => return service.forget(),
            }
        }
    };
    let (app, there) = (Weak::clone(app), Arc::clone(service));
    let running = std::thread::Builder::new().name("scrub-pass".into()).spawn(move || {
        // The lowest priority. If the system refuses it, the pass runs at the normal one: its rate is limited.
        let _ = rustix::process::setpriority_process(None, 19);
        go(&app, &there, pass);
    });
    match running {
        // If the thread panicked, the panic has been reported already.
        Ok(running) => {
            if running.join().is_err() {
                service.ended(ScrubState::Failed, Some("the pass failed; see the log of the daemon".into()));
            }
        }
        Err(error) => service.ended(ScrubState::Failed, Some(format!("its thread cannot be started: {error}"))),
    }
}

/// Waits until the books have processed so many records. False if the daemon stops before.
fn wait_for_books(app: &Weak<App>, service: &ScrubService, size: u64) -> bool {
    while !service.is_stopping() {
        match app.upgrade() {
            None => return false,
            Some(app) if app.books.size() >= size => return true,
            Some(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    false
}

/// Saves a pass that could not go on.
fn keep(app: &Weak<App>, service: &ScrubService, pass: &mut Pass) {
    if let Some(app) = app.upgrade() {
        let (bytes, _) = pass.save(&Rows { app: &app, service, size: 0 });
        service.save(Some(bytes));
    }
}

/// The books as of one record that is covered by a checkpoint: what the pass compares. `None` if the daemon stops.
fn fixed(app: &Weak<App>, service: &ScrubService) -> Option<Option<Balance>> {
    let signed = service.journal.checkpointed().size();
    loop {
        if !wait_for_books(app, service, signed) {
            return None;
        }
        match app.upgrade()?.books.balance() {
            // They are being rebuilt.
            None => std::thread::sleep(Duration::from_millis(50)),
            Some(Err(error)) => {
                tracing::warn!(%error, "the scrub does not compare the books");
                return Some(None);
            }
            Some(Ok(balance)) => {
                // The checkpoint that the journal is compared with is a later one, which covers this.
                while service.journal.checkpointed().size() < balance.size {
                    if service.is_stopping() {
                        return None;
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                return Some(Some(balance));
            }
        }
    }
}

/// Reads everything, at the rate that is configured, until it is done or the daemon stops.
fn go(app: &Weak<App>, service: &ScrubService, mut pass: Pass) {
    let mut pace = Pace::new(service.settings().bytes_per_second, Stopwatch::now());
    let mut saved_at = Stopwatch::now();
    let mut tries = 0;
    let size = pass.books().1;
    loop {
        if service.is_stopping() || saved_at.elapsed() >= SAVE_EVERY {
            let Some(app) = app.upgrade() else { return };
            let (bytes, found) = pass.save(&Rows { app: &app, service, size });
            report(&app, service, &pass, found);
            service.save(Some(bytes));
            saved_at = Stopwatch::now();
        }
        if service.is_stopping() {
            return;
        }
        if let Some(pause) = pace.pause(Stopwatch::now()) {
            std::thread::sleep(pause);
            continue;
        }
        let Some(app) = app.upgrade() else { return };
        match pass.step(&Rows { app: &app, service, size }) {
            Ok(step) => {
                tries = 0;
                pace.read(step.bytes, Stopwatch::now());
                service.bytes.fetch_add(step.bytes, Ordering::Relaxed);
                report(&app, service, &pass, step.found);
                if step.done {
                    return check_statements(&app, service, &mut pass, pace);
                }
            }
            Err(error) if tries == TRIES => {
                return service.ended(ScrubState::Failed, Some(format!("the journal cannot be read: {error}")));
            }
            Err(_) => {
                tries += 1;
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    }
}

/// The end of a pass: the statements about months are made again, at the same rate.
fn check_statements(app: &Arc<App>, service: &ScrubService, pass: &mut Pass, mut pace: Pace) {
    if pass.statements().is_empty() {
        return service.ended(ScrubState::Complete, None);
    }
    let mut go_on = |bytes: u64| {
        pace.read(bytes, Stopwatch::now());
        while let Some(pause) = pace.pause(Stopwatch::now()).filter(|_| !service.is_stopping()) {
            std::thread::sleep(pause);
        }
        !service.is_stopping()
    };
    let (mut statements, mut reason) = (None, None);
    if pass.scrub().first() > 0 {
        reason = Some(format!("the records before {} were moved away or deleted", pass.scrub().first()));
    } else {
        match recheck_statements(&*service.journal, pass.statements(), &mut go_on) {
            StatementsChecked::Compared(count) => statements = Some(count),
            StatementsChecked::Wrong(finding) => service.found(vec![describe(app, finding)]),
            StatementsChecked::NotCompared(why) => reason = Some(why),
            StatementsChecked::Stopped => {
                let size = pass.books().1;
                let (bytes, _) = pass.save(&Rows { app, service, size });
                return service.save(Some(bytes));
            }
        }
    }
    service.update(|present| (present.statements, present.statements_reason) = (statements, reason));
    service.ended(ScrubState::Complete, None);
}

/// Publishes how far the pass is, and what it found.
fn report(app: &App, service: &ScrubService, pass: &Pass, found: Vec<Finding>) {
    let (scrub, (books, books_size)) = (pass.scrub(), pass.books());
    service.update(|present| {
        let total = scrub.target().size();
        let percent = scrub.size().saturating_mul(100).checked_div(total).unwrap_or(100);
        *present = ScrubPass {
            state: ScrubState::Running,
            checkpoint_size: total,
            first_sequence: scrub.first(),
            records: scrub.size(),
            percent: u8::try_from(percent.min(100)).unwrap_or(100),
            bytes: scrub.bytes(),
            batches_of_another_secret: scrub.foreign_macs(),
            books: match books {
                BooksChecked::Comparing => ScrubBooks::Comparing,
                BooksChecked::Compared => ScrubBooks::Compared,
                BooksChecked::GivenUp(_) => ScrubBooks::NotCompared,
            },
            books_reason: match books {
                BooksChecked::GivenUp(why) => Some(why.clone()),
                BooksChecked::Comparing | BooksChecked::Compared => None,
            },
            books_size,
            leases: pass.leases(),
            ..std::mem::take(present)
        };
    });
    if !found.is_empty() {
        service.found(found.into_iter().map(|finding| describe(app, finding)).collect());
    }
}

/// The books of the daemon, under their lock for each call.
struct Rows<'a> {
    app: &'a Arc<App>,
    service: &'a ScrubService,
    /// Records that the books must have processed.
    size: u64,
}

impl Rows<'_> {
    /// Reads from the books, once they are there: they may be being rebuilt.
    fn look<T>(&self, look: impl FnOnce(&Books) -> Result<T, BooksError>) -> Result<T, BooksError> {
        let weak = Arc::downgrade(self.app);
        if !wait_for_books(&weak, self.service, self.size) && self.app.books.size() < self.size {
            return Err(BooksError::Io("the daemon was stopped while the books were being rebuilt".into()));
        }
        self.app.books.with_books(look)
    }
}

impl BookRows for Rows<'_> {
    fn closed_rows(&self, first: u64) -> Result<Vec<Row>, BooksError> {
        self.look(|books| books.closed_rows(first))
    }
    fn leases_of(&self, numbers: &[LeaseNo]) -> Result<Vec<Row>, BooksError> {
        let found = self.look(|books| books.leases_of(numbers.iter().copied()))?;
        Ok(found.into_iter().map(|(row, _)| row).collect())
    }
}
