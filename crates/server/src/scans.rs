//! Requests that read the journal files run on blocking threads, few at a time.
//!
//! Pages of records have a limit on the records they scan. Explaining an old decision replays the journal from a
//! snapshot, which may take long: each token has its own permit, so that a token with many such requests waits only for
//! itself.

use crate::app::App;
use leasehold_api::{Problem, codes};
use leasehold_journal::ReadError;
use leasehold_model::TokenNo;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Readers of the journal files at the same time.
const SCANS_MAX: usize = 2;
/// Explanations at the same time; each holds the state of its decision in memory.
const EXPLANATIONS_MAX: usize = 4;
/// Explanations at the same time for one token.
const EXPLANATIONS_PER_TOKEN: usize = 1;

pub(crate) struct Scans {
    scans: Arc<Semaphore>,
    explanations: Arc<Semaphore>,
    of_token: Mutex<BTreeMap<TokenNo, Arc<Semaphore>>>,
}

impl Scans {
    pub(crate) fn new() -> Self {
        Self {
            scans: Arc::new(Semaphore::new(SCANS_MAX)),
            explanations: Arc::new(Semaphore::new(EXPLANATIONS_MAX)),
            of_token: Mutex::default(),
        }
    }

    /// The permits of a token. Unused ones are dropped.
    fn own(&self, token: TokenNo) -> Arc<Semaphore> {
        let mut all = self.of_token.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, turns| Arc::strong_count(turns) > 1);
        Arc::clone(all.entry(token).or_insert_with(|| Arc::new(Semaphore::new(EXPLANATIONS_PER_TOKEN))))
    }

    /// A permit to explain: first from the token's own, then from the shared ones.
    async fn turn(&self, token: TokenNo) -> (OwnedSemaphorePermit, OwnedSemaphorePermit) {
        const OPEN: &str = "the semaphore is never closed";
        let own = self.own(token).acquire_owned().await.expect(OPEN);
        (own, Arc::clone(&self.explanations).acquire_owned().await.expect(OPEN))
    }
}

async fn blocking<T: Send + 'static>(
    app: &Arc<App>,
    turn: impl Send + 'static,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let app = Arc::clone(app);
    let done = tokio::task::spawn_blocking(move || {
        // Held to the end, even if the request was dropped.
        let _turn = turn;
        read(&app)
    });
    done.await.map_err(|_| codes::INTERNAL.problem("Reading the journal failed; the daemon's log has the details."))?
}

/// Reads the journal files.
pub(crate) async fn scan<T: Send + 'static>(
    app: &Arc<App>,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = Arc::clone(&app.scans.scans).acquire_owned().await;
    let turn = turn.map_err(|_| codes::BUSY.problem("Too many requests are reading the journal; try again."))?;
    blocking(app, turn, read).await
}

/// Explains a decision, on behalf of a token.
pub(crate) async fn explain<T: Send + 'static>(
    app: &Arc<App>,
    token: TokenNo,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = app.scans.turn(token).await;
    blocking(app, turn, read).await
}

pub(crate) fn unreadable(error: &ReadError) -> Problem {
    match error {
        ReadError::Archived { .. } => {
            codes::ARCHIVED.problem(format!("The beginning of the journal has been moved away: {error}."))
        }
        ReadError::Corrupt { segment, offset, sequence, why } => damaged(*segment, *offset, *sequence, why),
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn explanations_of_one_token_wait_only_for_each_other() {
        let scans = Scans::new();
        let busy = scans.turn(TokenNo(1)).await;
        // All further explanations of the same token wait.
        let mut waiting: Vec<_> = (0..EXPLANATIONS_MAX + 3).map(|_| Box::pin(scans.turn(TokenNo(1)))).collect();
        for turn in &mut waiting {
            assert!(turn.now_or_never().is_none());
        }
        let others = [scans.turn(TokenNo(2)).await, scans.turn(TokenNo(3)).await, scans.turn(TokenNo(4)).await];
        drop(busy);
        let _next = waiting.remove(0).await;
        drop((others, waiting));
        // Unused permits are dropped, except for those of the token that asks.
        let _own = scans.own(TokenNo(5));
        assert_eq!(
            scans.of_token.lock().expect("nobody panicked").keys().collect::<Vec<_>>(),
            [&TokenNo(1), &TokenNo(5)]
        );
    }
}
