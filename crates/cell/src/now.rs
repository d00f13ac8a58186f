//! The view of durable records that readers use: a second fold, behind the disk, never ahead of it.

use crate::stats::Published;
use leasehold_engine::{FoldError, Readers, State};
use leasehold_model::Record;
use std::sync::{OnceLock, PoisonError, RwLock};

/// What is true as far as the journal can prove. The cell answers a mutation after this view has
/// applied it, so that a caller always reads its own writes.
pub struct Now {
    state: RwLock<Readers>,
    observer: OnceLock<Box<dyn Observer>>,
    published: Published,
}

/// Is told of each record as it becomes visible. Called on the publishing thread: be quick, and do not
/// read [`Now`] in `record`, which runs while the view is being changed.
pub trait Observer: Send + Sync {
    fn record(&self, record: &Record);
    /// All records of a batch have been told, and readers see them.
    fn batch_done(&self);
}

impl Now {
    pub fn new(state: Readers) -> Self {
        Self { state: RwLock::new(state), observer: OnceLock::new(), published: Published::default() }
    }

    /// Has `observer` told of every record from now on. There is one; a second is turned away.
    pub fn observe(&self, observer: Box<dyn Observer>) -> Result<(), Box<dyn Observer>> {
        self.observer.set(observer)
    }

    /// Reads the state as of one durable record. Keep it short, as publishing waits meanwhile; and do not read again
    /// inside: with a publisher waiting between the two, both would wait for ever.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.readers(|readers| look(readers))
    }

    /// The same with what is kept for readers beside the state: leases in order, and where something would go.
    pub fn readers<T>(&self, look: impl FnOnce(&Readers) -> T) -> T {
        #[cfg(debug_assertions)]
        let _alone = nested::Reading::begin();
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was applied since the start.
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// Applies records that have become durable.
    pub(crate) fn publish<'r>(&self, records: impl Iterator<Item = &'r Record>) -> Result<(), FoldError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let observer = self.observer.get();
        for record in records {
            state.apply(record)?;
            self.published.count(record);
            if let Some(observer) = observer {
                observer.record(record);
            }
        }
        drop(state);
        if let Some(observer) = observer {
            observer.batch_done();
        }
        Ok(())
    }
}

/// Finds a read inside a read, which would be a deadlock only now and then.
#[cfg(debug_assertions)]
mod nested {
    use std::cell::Cell;

    thread_local! {
        static READS: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) struct Reading;

    impl Reading {
        pub(super) fn begin() -> Self {
            assert!(!READS.replace(true), "the view of durable records is read inside a read of it");
            Self
        }
    }

    impl Drop for Reading {
        fn drop(&mut self) {
            READS.set(false);
        }
    }
}
