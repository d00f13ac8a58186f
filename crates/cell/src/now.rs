//! The view for readers: a second fold, of durable records only.

use crate::core::WARM;
use crate::stats::Published;
use leasehold_engine::{FoldError, Readers, State};
use leasehold_model::Record;
use std::sync::{OnceLock, PoisonError, RwLock};

/// The state after the last durable record. The cell replies to a request after this view has applied its records, so
/// that a caller always reads its own writes.
pub struct Now {
    state: RwLock<Readers>,
    observer: OnceLock<Box<dyn Observer>>,
    published: Published,
}

/// Receives each record as it becomes visible. It is called on the publishing thread and must be quick. `record` must
/// not read [`Now`], because it runs while the view is being changed.
pub trait Observer: Send + Sync {
    fn record(&self, record: &Record);
    /// All records of a batch were delivered and are visible to readers.
    fn batch_done(&self);
}

impl Now {
    pub fn new(state: Readers) -> Self {
        Self { state: RwLock::new(state), observer: OnceLock::new(), published: Published::default() }
    }

    /// Delivers every further record to `observer`. There can be only one; a second one is returned as an error.
    pub fn observe(&self, observer: Box<dyn Observer>) -> Result<(), Box<dyn Observer>> {
        self.observer.set(observer)
    }

    /// Reads the state as of one durable record. Keep it short, because publishing waits meanwhile. Do not nest reads:
    /// with a publisher waiting between the two, both would wait forever.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.readers(|readers| look(readers))
    }

    /// Like `read`, with the components for readers: leases in order and the placement index.
    pub fn readers<T>(&self, look: impl FnOnce(&Readers) -> T) -> T {
        #[cfg(debug_assertions)]
        let _alone = nested::Reading::begin();
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts of the records that were applied since startup.
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// Applies records that have become durable.
    pub(crate) fn publish(&self, records: &[Record]) -> Result<(), FoldError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let observer = self.observer.get();
        for some in records.chunks(WARM) {
            state.warm(some);
            for record in some {
                state.apply(record)?;
                self.published.count(record);
                if let Some(observer) = observer {
                    observer.record(record);
                }
            }
        }
        drop(state);
        if let Some(observer) = observer {
            observer.batch_done();
        }
        Ok(())
    }
}

/// Detects nested reads, which would otherwise cause a deadlock only occasionally.
#[cfg(debug_assertions)]
mod nested {
    use std::cell::Cell;

    thread_local! {
        static READS: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) struct Reading;

    impl Reading {
        pub(super) fn begin() -> Self {
            assert!(!READS.replace(true), "nested read of the view of durable records");
            Self
        }
    }

    impl Drop for Reading {
        fn drop(&mut self) {
            READS.set(false);
        }
    }
}
