//! Replies to requests, and where they are delivered.

use leasehold_engine::{Refusal, Sealed};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

/// The outcome of a request. A reply with records is sent after they are durable and visible to readers.
pub type Reply = Result<Sealed, Unsealed>;

/// Why a request has no records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// The request was refused; nothing changed.
    Refused(Refusal),
    /// The request is a repetition, and its records are in a segment that has been archived.
    Archived { sequence: u64 },
    /// The disk has no room for more records; nothing was done. Reads still work. Try again later.
    JournalFull,
    /// Too many requests are waiting; nothing was done. Try again.
    Busy,
    /// The cell is stopping or has stopped. It is not known whether the request was carried out.
    Stopped,
}

/// The receiver of replies. `put` is called for each reply, then `wake` once for several.
pub trait Replies: Send + Sync {
    fn put(&self, tag: u64, reply: Reply);
    fn wake(&self);
}

/// A receiver for one caller that waits for its replies.
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
        let mut replies = self.replies.lock().expect("no thread panics while it holds the inbox");
        while replies.is_empty() {
            replies = self.arrived.wait(replies).expect("no thread panics while it holds the inbox");
        }
        into.append(&mut replies);
    }
}

impl Replies for Inbox {
    fn put(&self, tag: u64, reply: Reply) {
        self.replies.lock().expect("no thread panics while it holds the inbox").push_back((tag, reply));
    }
    fn wake(&self) {
        self.arrived.notify_one();
    }
}
