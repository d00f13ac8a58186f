//! States of the past.

use crate::open::{StartError, newest_state};
use crate::replay::replay_to;
use leasehold_engine::State;
use leasehold_journal::Journal;

/// The state before a record, replayed from the newest snapshot that is not later, or from the beginning.
pub fn state_before(journal: &dyn Journal, sequence: u64) -> Result<State, StartError> {
    let (mut state, from) = newest_state(journal, sequence, &mut Vec::new())?;
    replay_to(journal, &mut state, from, sequence)?;
    Ok(state)
}
