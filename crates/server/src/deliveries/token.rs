//! The token of the accounting system: read at the start, tried again until it can be read, and read again when it may
//! have changed. Whatever happens to it stops nothing.

use crate::config::{Accounting, VaultSection};
use leasehold_deliver::{Clock, SecretError, SecretReader, SecretRef, Variables, Vault, VaultError};
use leasehold_model::Instant;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often it is looked whether the token has changed. The reader decides when to read it again.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// After a first reading that failed: how soon the next one is, doubled up to the most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(300);

/// How reading the token went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenState {
    /// When it was last read; none if it never was.
    pub(crate) read_at: Option<Instant>,
    /// Why it could not be read when that was tried last.
    pub(crate) trouble: Option<SecretError>,
}

impl TokenState {
    pub(crate) fn is_readable(&self) -> bool {
        self.read_at.is_some() && self.trouble.is_none()
    }
}

/// The token of the accounting system. Holds how reading it went, and not the token.
pub(crate) struct ProviderToken {
    pub(crate) reference: SecretRef,
    vault: VaultSection,
    state: Mutex<TokenState>,
}

impl ProviderToken {
    /// None if no accounting system is configured.
    pub(super) fn of(config: &Accounting) -> Option<Self> {
        let reference = config.waldur.token_secret_ref.clone()?.ok()?;
        config.provider?;
        Some(Self { reference, vault: config.vault.clone(), state: Mutex::default() })
    }

    pub(crate) fn state(&self) -> TokenState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: TokenState) -> TokenState {
        std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }

    /// Follows the token for as long as the daemon runs.
    pub(super) async fn follow(self: Arc<Self>, variables: Variables, clock: Arc<dyn Clock>) {
        let reader = self.first(&variables, &*clock).await;
        loop {
            let state = reader.state().await;
            self.set(TokenState { read_at: Some(state.read_at), trouble: state.trouble });
            tokio::time::sleep(LOOK_EVERY).await;
            // The reader logs what has changed.
            drop(reader.get(clock.now()).await);
        }
    }

    async fn first(&self, variables: &Variables, clock: &dyn Clock) -> SecretReader {
        let mut wait = RETRY_FIRST;
        loop {
            match self.load(variables, clock.now()).await {
                Ok(reader) => {
                    tracing::info!(reference = %self.reference, "the token of the accounting system was read");
                    return reader;
                }
                Err(error) => {
                    let trouble = Some(error.clone());
                    // Once, not at every attempt.
                    if self.set(TokenState { read_at: None, trouble: trouble.clone() }).trouble != trouble {
                        tracing::warn!(
                            reference = %self.reference, %error,
                            "the token of the accounting system cannot be read; this is tried again and stops nothing"
                        );
                    }
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    async fn load(&self, variables: &Variables, now: Instant) -> Result<SecretReader, SecretError> {
        let vault = match self.reference {
            SecretRef::Vault { .. } => {
                let config = self.vault.config().map_err(VaultError::Config)?.ok_or(SecretError::NoVault)?;
                Some(Arc::new(Vault::new(config, Arc::clone(variables))?))
            }
            SecretRef::File(_) | SecretRef::Env(_) | SecretRef::Credential(_) => None,
        };
        SecretReader::load(self.reference.clone(), vault, Arc::clone(variables), now).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Provider, Waldur};
    use leasehold_deliver::process_variables;
    use leasehold_model::Span;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    const START: Instant = Instant::from_secs(1_770_000_000);

    /// The time of the runtime, which the tests move, in whole seconds: its timers are exact to a millisecond.
    struct Paused(tokio::time::Instant);

    impl Clock for Paused {
        fn now(&self) -> Instant {
            START.saturating_add(Span::from_secs(self.0.elapsed().as_secs()))
        }
    }

    fn write(path: &Path, text: &str) {
        fs::write(path, text).expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("ours");
    }

    fn config(reference: &str) -> Accounting {
        let waldur = Waldur { token_secret_ref: Some(reference.parse()), ..Waldur::default() };
        Accounting { provider: Some(Provider::Waldur), waldur, ..Accounting::default() }
    }

    fn at(seconds: u64) -> Option<Instant> {
        Some(START.saturating_add(Span::from_secs(seconds)))
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_tried_again_read_and_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let token = Arc::new(ProviderToken::of(&config(&format!("file://{}", path.display()))).expect("configured"));
        let clock = Arc::new(Paused(tokio::time::Instant::now()));
        let following = tokio::spawn(Arc::clone(&token).follow(process_variables(), clock));
        // Until half a second after so many seconds.
        let began = tokio::time::Instant::now();
        let until = |seconds: u64| tokio::time::sleep_until(began + Duration::from_millis(seconds * 1_000 + 500));
        until(0).await;
        assert!(matches!(token.state(), TokenState { read_at: None, trouble: Some(SecretError::Missing { .. }) }));
        // It is tried after 1, 3, 7, 15 seconds.
        write(&path, "first\n");
        until(0).await;
        assert!(!token.state().is_readable());
        until(1).await;
        assert_eq!(token.state(), TokenState { read_at: at(1), trouble: None });
        // Rotated: noticed ten seconds later.
        write(&path, "the second\n");
        until(11).await;
        assert_eq!(token.state(), TokenState { read_at: at(11), trouble: None });
        fs::remove_file(&path).expect("it was there");
        until(21).await;
        let state = token.state();
        assert!(!state.is_readable() && state.read_at == at(11), "{state:?}");
        write(&path, "the third one\n");
        until(31).await;
        assert_eq!(token.state(), TokenState { read_at: at(31), trouble: None });
        following.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_between_attempts_grows() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let token = Arc::new(ProviderToken::of(&config(&format!("file://{}", path.display()))).expect("configured"));
        let began = tokio::time::Instant::now();
        let following = tokio::spawn(Arc::clone(&token).follow(process_variables(), Arc::new(Paused(began))));
        // The attempts are at 0, 1, 3, 7, … 255, 511 seconds, and then every 300.
        tokio::time::sleep_until(began + Duration::from_secs(1_000)).await;
        write(&path, "at last");
        tokio::time::sleep_until(began + Duration::from_secs(1_110)).await;
        assert!(!token.state().is_readable());
        tokio::time::sleep_until(began + Duration::from_secs(1_112)).await;
        assert_eq!(token.state().read_at, at(1_111));
        following.abort();
    }

    #[test]
    fn without_an_accounting_system_there_is_no_token() {
        let with = config("env://T");
        assert!(ProviderToken::of(&with).is_some());
        assert!(ProviderToken::of(&Accounting { provider: None, ..with }).is_none());
        assert!(ProviderToken::of(&config("literal")).is_none());
    }
}
