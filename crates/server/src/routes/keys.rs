//! The signing keys: which there are, and their rotation (docs/how-to/rotate-the-key.md).

use crate::app::App;
use crate::context::{Answer, Context, json};
use crate::key_history::key_list;
use crate::scans::scan;
use leasehold_api::{KeyRotated, KeyRotationFinished, Problem, codes};
use leasehold_engine::Command;
use leasehold_engine::command::RotateKey;
use leasehold_journal::KeyringError;
use leasehold_model::Body;
use leasehold_tlog::{Checkpoint, VerifierKey};
use std::sync::Arc;
use std::time::Duration;

/// How long finishing a rotation waits for a checkpoint that the new key has signed. One is made within 100 ms.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(5);
const CHECKPOINT_POLL: Duration = Duration::from_millis(20);

pub(super) async fn list_keys(context: Context) -> Answer {
    json(200, &scan(&context.app, context.caller(), key_list).await?)
}

pub(super) async fn rotate_key(context: Context) -> Answer {
    let app = &context.app;
    let in_force = app.now.read(|state| *state.public_key());
    let unfinished = app.keys.still_signing(&in_force);
    let new_key = match (unfinished.last(), context.key()?) {
        // Sent again with its idempotency key, the command is the same as the first time and gets the same answer.
        (Some(_), Some(_)) => in_force,
        (Some(old), None) => return Err(rotation_unfinished(old)),
        (None, _) => prepare(app, in_force).await?,
    };
    let sealed = context.seal(Command::RotateKey(RotateKey { new_key })).await.map_err(|problem| {
        let unfinished = unfinished.last().filter(|_| problem.code == "same_key");
        unfinished.map_or(problem, rotation_unfinished)
    })?;
    let Body::KeyRotated(rotated) = &sealed.first().body else { unreachable!("the key was rotated") };
    let named = |key: &[u8; 32]| VerifierKey::new(app.journal.origin(), key).expect("a key that has signed");
    let (old, new) = (named(&rotated.old_key), named(&rotated.new_key));
    tracing::warn!(old = %old.id(), new = %new.id(), sequence = sealed.sequence(), "the signing key was rotated");
    json(
        200,
        &KeyRotated {
            sequence: sealed.sequence(),
            old_key: old.id().to_string(),
            new_key: new.id().to_string(),
            verifier_key: new.to_string(),
        },
    )
}

fn rotation_unfinished(old: &VerifierKey) -> Problem {
    codes::KEY_ROTATION_UNFINISHED.problem(format!(
        "The last rotation is not finished: key {} still signs. Finish it before the key is rotated again.",
        old.id()
    ))
}

/// Puts the new key into the key file: from then on a crash at any moment leaves both keys there.
async fn prepare(app: &Arc<App>, in_force: [u8; 32]) -> Result<[u8; 32], Problem> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|_| codes::INTERNAL.problem("The system provides no random bytes for a key."))?;
    key_file(app, move |app| app.keys.prepare_next(&app.data.join("key"), &in_force, &seed)).await
}

async fn key_file<T: Send + 'static>(
    app: &Arc<App>,
    change: impl FnOnce(&App) -> Result<T, KeyringError> + Send + 'static,
) -> Result<T, Problem> {
    let app = Arc::clone(app);
    let changed = tokio::task::spawn_blocking(move || change(&app)).await;
    let changed = changed.map_err(|_| codes::INTERNAL.problem("The key file could not be written."))?;
    changed.map_err(|error| {
        tracing::error!(%error, "cannot write the key file");
        match error {
            KeyringError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                codes::JOURNAL_FULL.problem("The disk has no space for the key file; nothing was changed.")
            }
            _ => codes::INTERNAL.problem("The key file could not be written; the daemon's log has the details."),
        }
    })
}

pub(super) async fn finish_key_rotation(context: Context) -> Answer {
    let app = &context.app;
    let in_force = app.now.read(|state| *state.public_key());
    let key = VerifierKey::new(app.journal.origin(), &in_force).expect("a key that has signed");
    // Without it, a start after a crash would need the old key to sign for the last records.
    if !app.keys.still_signing(&in_force).is_empty() && !signed_by(app, &key).await {
        return Err(codes::BUSY.problem("The new key has not signed a checkpoint yet; try again."));
    }
    let gone = key_file(app, move |app| app.keys.retire_before(&app.data.join("key"), &in_force)).await?;
    let retired: Vec<String> = gone.iter().map(|key| key.id().to_string()).collect();
    if !retired.is_empty() {
        tracing::warn!(retired = retired.join(", "), in_force = %key.id(), "the rotation of the signing key was finished");
    }
    json(200, &KeyRotationFinished { retired, key: key.id().to_string() })
}

/// Waits for a checkpoint that this key has signed.
async fn signed_by(app: &App, key: &VerifierKey) -> bool {
    let signed =
        || Checkpoint::open(&app.journal.checkpointed().note, std::slice::from_ref(key), app.journal.origin()).is_ok();
    let begun = tokio::time::Instant::now();
    while !signed() {
        if begun.elapsed() > CHECKPOINT_TIMEOUT {
            return false;
        }
        tokio::time::sleep(CHECKPOINT_POLL).await;
    }
    true
}
