//! Replies, and where they are put.

use leasehold_engine::{Refusal, Sealed};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

/// What became of a request. A reply that speaks of records is given after they are durable and visible to readers.
pub type Reply = Result<Sealed, Unsealed>;

/// Why there is nothing to show for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// Not sealed; nothing changed.
    Refused(Refusal),
    /// Sealed before, as this record, in a segment that was moved away since.
    Archived { sequence: u64 },
    /// The disk has no room for more records. Reads go on; try again later.
    JournalFull,
    /// Too many requests wait already; nothing was done. Try again.
    Busy,
    /// The cell is stopping or has stopped: whether the request was sealed is not known.
    Stopped,
}

/// Where replies go. `put` is called for each, then `wake` once for many.
pub trait Replies: Send + Sync {
    fn put(&self, tag: u64, reply: Reply);
    fn wake(&self);
}

/// A box for one caller that waits for its replies.
#[derive(Debug, Default)]
pub struct Inbox {
    replies: Mutex<VecDeque<(u64, Reply)>>,
    arrived: Condvar,
}

impl Inbox {
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until there is at least one reply and takes all of them.
    pub fn take(&self, into: &mut VecDeque<(u64, Reply)>) {
        let mut replies = self.replies.lock().expect("no one panics with an inbox");
        while replies.is_empty() {
            replies = self.arrived.wait(replies).expect("no one panics with an inbox");
        }
        into.append(&mut replies);
    }
}

impl Replies for Inbox {
    fn put(&self, tag: u64, reply: Reply) {
        self.replies.lock().expect("no one panics with an inbox").push_back((tag, reply));
    }
    fn wake(&self) {
        self.arrived.notify_one();
    }
}
