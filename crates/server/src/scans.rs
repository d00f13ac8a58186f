//! Requests that read the journal's files: off the request's thread, few at a time.
//!
//! Pages of records are bounded by what they look through. An explanation of an old decision folds the journal from a
//! snapshot on, which may take long: each token has a turn of its own, so that whoever asks for many waits for itself.

use crate::app::App;
use leasehold_api::{Problem, codes};
use leasehold_journal::ReadError;
use leasehold_model::TokenNo;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Readers of the journal's files that run at a time.
const SCANS_MAX: usize = 2;
/// Explanations that run at a time: each holds the state of its decision in memory.
const EXPLANATIONS_MAX: usize = 4;
/// Explanations of one token that run at a time.
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

    /// The turns of a token. Those that nobody holds or waits for are forgotten.
    fn own(&self, token: TokenNo) -> Arc<Semaphore> {
        let mut all = self.of_token.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, turns| Arc::strong_count(turns) > 1);
        Arc::clone(all.entry(token).or_insert_with(|| Arc::new(Semaphore::new(EXPLANATIONS_PER_TOKEN))))
    }

    /// A turn to explain: first among the token's own questions, then among everybody's.
    async fn turn(&self, token: TokenNo) -> (OwnedSemaphorePermit, OwnedSemaphorePermit) {
        const OPEN: &str = "nobody closes it";
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
        // Kept to the end, also where nobody waits for the answer any more.
        let _turn = turn;
        read(&app)
    });
    done.await.map_err(|_| codes::INTERNAL.problem("Reading the journal failed; the log says more."))?
}

/// Reads the journal's files.
pub(crate) async fn scan<T: Send + 'static>(
    app: &Arc<App>,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = Arc::clone(&app.scans.scans).acquire_owned().await;
    let turn = turn.map_err(|_| codes::BUSY.problem("Too many requests read the journal already; try again."))?;
    blocking(app, turn, read).await
}

/// Explains something that was decided, on behalf of a token.
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
            codes::ARCHIVED.problem(format!("The journal's beginning was moved away: {error}."))
        }
        error => {
            tracing::error!(%error, "the journal cannot be read");
            codes::INTERNAL.problem("The journal cannot be read; the log says more.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn one_tokens_questions_wait_for_each_other_and_for_nobody_elses() {
        let scans = Scans::new();
        let busy = scans.turn(TokenNo(1)).await;
        // Those of the same token wait, however many there are.
        let mut waiting: Vec<_> = (0..EXPLANATIONS_MAX + 3).map(|_| Box::pin(scans.turn(TokenNo(1)))).collect();
        for turn in &mut waiting {
            assert!(turn.now_or_never().is_none());
        }
        let others = [scans.turn(TokenNo(2)).await, scans.turn(TokenNo(3)).await, scans.turn(TokenNo(4)).await];
        drop(busy);
        let _next = waiting.remove(0).await;
        drop((others, waiting));
        // What nobody holds or waits for is forgotten, but for the one that is asked for.
        let _own = scans.own(TokenNo(5));
        assert_eq!(
            scans.of_token.lock().expect("nobody panicked").keys().collect::<Vec<_>>(),
            [&TokenNo(1), &TokenNo(5)]
        );
    }
}
