//! The view of durable records that readers use: a second fold, behind the disk, never ahead of it.

use leasehold_engine::{FoldError, State};
use leasehold_model::Record;
use std::sync::{PoisonError, RwLock};

/// What is true as far as the journal can prove. The cell answers a mutation after this view has
/// applied it, so that a caller always reads its own writes.
#[derive(Debug)]
pub struct Now {
    state: RwLock<State>,
}

impl Now {
    pub fn new(state: State) -> Self {
        Self { state: RwLock::new(state) }
    }

    /// Reads the state as of one durable record. Keep it short: publishing waits meanwhile.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Applies records that have become durable.
    pub(crate) fn publish<'r>(&self, records: impl Iterator<Item = &'r Record>) -> Result<(), FoldError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            state.apply(record)?;
        }
        Ok(())
    }
}
