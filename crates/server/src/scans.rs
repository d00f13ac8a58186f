//! Requests that read the journal files run on blocking threads, few at a time.
//!
//! Pages of records have a limit on the records they scan. Explaining an old decision replays the journal from a
//! snapshot, which may take long and needs memory for a whole state.

use crate::access::Caller;
use crate::app::App;
use crate::turns::{Turn, TurnLimits, Turns};
use leasehold_api::{Problem, codes};
use leasehold_journal::ReadError;
use leasehold_journal::disk::is_out_of_files;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Readers of the journal files.
const SCANS: TurnLimits = TurnLimits {
    what: "requests that read the journal",
    running: 3,
    running_of_tenant: 1,
    running_of_token: 1,
    of_token: 16,
};
/// Explanations; each holds the state of its decision in memory.
const EXPLANATIONS: TurnLimits =
    TurnLimits { what: "explanations", running: 4, running_of_tenant: 2, running_of_token: 1, of_token: 16 };

/// Proofs of invoices; each is built in memory. The last turn is for operators.
const INVOICE_PROOFS: TurnLimits =
    TurnLimits { what: "proofs of invoices", running: 2, running_of_tenant: 1, running_of_token: 1, of_token: 4 };

pub(crate) struct Scans {
    scans: Turns,
    explanations: Turns,
    invoice_proofs: Turns,
}

impl Scans {
    pub(crate) fn new() -> Self {
        let invoice_proofs = Turns::new(INVOICE_PROOFS);
        Self { scans: Turns::new(SCANS), explanations: Turns::new(EXPLANATIONS), invoice_proofs }
    }

    /// A turn to read the journal, for work that needs something else besides.
    pub(crate) async fn turn(&self, caller: &Caller) -> Result<Turn, Problem> {
        self.scans.ask(caller).await
    }
}

/// Reads the journal files for the proof of an invoice. Those that wait do not take a reader's place.
pub(crate) async fn prove<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let proving = app.scans.invoice_proofs.ask(caller).await?;
    let turn = app.scans.scans.ask(caller).await?;
    blocking(app, (proving, turn), read).await
}

/// Runs `read` on a blocking thread. The turn is held to the end, even if the request was dropped.
pub(crate) async fn blocking<T: Send + 'static>(
    app: &Arc<App>,
    turn: impl Send + 'static,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let app = Arc::clone(app);
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        read(&app)
    });
    done.await.map_err(|_| codes::INTERNAL.problem("Reading the journal failed; the daemon's log has the details."))?
}

/// Reads the journal files.
pub(crate) async fn scan<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = app.scans.scans.ask(caller).await?;
    blocking(app, turn, read).await
}

/// Reads the journal files for an answer that has begun already: it waits for its turn and is never refused.
pub(crate) async fn scan_on<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = app.scans.scans.wait(caller).await;
    blocking(app, turn, read).await
}

/// Explains a decision, an allocation or a node.
pub(crate) async fn explain<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = app.scans.explanations.ask(caller).await?;
    blocking(app, turn, read).await
}

pub(crate) fn unreadable(error: &ReadError) -> Problem {
    match error {
        ReadError::Archived { .. } => {
            codes::ARCHIVED.problem(format!("The beginning of the journal is not here: {error}."))
        }
        ReadError::Corrupt { segment, offset, sequence, why } => damaged(*segment, *offset, *sequence, why),
        ReadError::Io(error) if is_out_of_files(error) => codes::BUSY
            .problem("Too many files are open to read the journal; try again in a few seconds.")
            .with("retry_after", 5),
        error => {
            tracing::error!(%error, "cannot read the journal");
            codes::INTERNAL.problem("Cannot read the journal; the daemon's log has the details.")
        }
    }
}

/// The answer where the journal is damaged: where that is, and what to do. Logged once for each place.
fn damaged(segment: u32, offset: u64, sequence: u64, why: &str) -> Problem {
    /// Places that were logged. They are few, or the daemon has worse problems.
    static LOGGED: Mutex<BTreeSet<(u32, u64)>> = Mutex::new(BTreeSet::new());
    const LOGGED_MAX: usize = 1000;
    let file = format!("journal/{segment:08}.seg");
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < LOGGED_MAX && logged.insert((segment, offset)) {
        tracing::error!(segment = file, offset, record = sequence, why, "the journal is damaged: a request met it");
    }
    let detail = format!(
        "The journal is damaged in {file} at byte {offset} (record {sequence}): {why}. Stop the daemon, restore the file \
         from a copy or a collector, and check it with leasehold-verify; `leasehold audit scrub` finds all damage."
    );
    let problem = codes::JOURNAL_DAMAGED.problem(detail);
    problem.with("segment", segment).with("offset", offset).with("sequence", sequence)
}
