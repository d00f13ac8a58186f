//! Distributing the work: every thread takes the next piece, checks it by itself, and submits the result; the thread that
//! submits the next piece in order joins all pieces that are ready.
//!
//! Pieces are taken and joined in journal order, so the flaw that is reported is the first one, with any number of
//! threads.

use crate::Progress;
use crate::anchor_file::TreeFile;
use crate::chain::{Checked, check};
use crate::chunks::{ChunkReader, Flaw, Piece};
use crate::join::Joiner;
use crate::segments::Header;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

/// Pieces per thread that may be taken and not joined: while one thread is delayed, the results of the others must not
/// accumulate without limit.
const AHEAD_MAX: u64 = 8;

struct Shared<'a> {
    reader: ChunkReader<'a>,
    joiner: Joiner<'a>,
    /// Numbers of pieces taken and joined.
    taken: u64,
    joined: u64,
    waiting: BTreeMap<u64, Done>,
    flaw: Option<Flaw>,
    closed: bool,
    bytes: u64,
}

/// A checked piece that the joiner has not taken yet.
enum Done {
    Begin(Header, Vec<TreeFile>),
    Batches { begin: u64, checked: Box<Checked> },
    Flaw(Flaw),
}

impl Shared<'_> {
    fn submit(&mut self, number: u64, done: Done) {
        self.waiting.insert(number, done);
        while let Some(due) = self.waiting.remove(&self.joined) {
            self.joined += 1;
            if self.flaw.is_none() {
                self.flaw = self.join(due).err();
                self.closed |= self.flaw.is_some();
            }
        }
    }

    fn join(&mut self, due: Done) -> Result<(), Flaw> {
        match due {
            Done::Begin(header, trees) => self.joiner.begin(header, trees),
            Done::Batches { begin, checked } => self.joiner.join(*checked, begin),
            Done::Flaw(flaw) => Err(flaw),
        }
    }
}

/// Checks and joins everything that the reader returns, on `threads` threads including this one. Returns the joined
/// journal, and the flaw that ended it, if any.
pub(crate) fn run<'a>(
    reader: ChunkReader<'a>,
    joiner: Joiner<'a>,
    marks: &[u64],
    threads: usize,
    bytes_total: u64,
    progress: Option<&(dyn Fn(Progress) + Sync)>,
) -> (Joiner<'a>, Option<Flaw>) {
    let shared = Mutex::new(Shared {
        reader,
        joiner,
        taken: 0,
        joined: 0,
        waiting: BTreeMap::new(),
        flaw: None,
        closed: false,
        bytes: 0,
    });
    let room = Condvar::new();
    let ahead_max = AHEAD_MAX * threads as u64;
    let lock = || -> MutexGuard<'_, Shared<'a>> { shared.lock().expect("no thread panics while it holds the lock") };
    let work = || {
        let mut buffer = Vec::new();
        loop {
            let (number, piece) = {
                let mut shared = lock();
                while !shared.closed && shared.taken - shared.joined >= ahead_max {
                    shared = room.wait(shared).expect("no thread panics while it holds the lock");
                }
                if shared.closed {
                    return;
                }
                let Some(piece) = shared.reader.next(std::mem::take(&mut buffer)) else {
                    shared.closed = true;
                    room.notify_all();
                    return;
                };
                shared.taken += 1;
                (shared.taken - 1, piece)
            };
            let (done, bytes) = match piece {
                Piece::Begin { header, trees } => (Done::Begin(header, trees), 0),
                Piece::Flaw(flaw) => (Done::Flaw(flaw), 0),
                Piece::Batches(chunk) => {
                    let checked = Box::new(check(&chunk, marks));
                    let bytes = chunk.bytes.len() as u64;
                    buffer = chunk.bytes;
                    (Done::Batches { begin: chunk.offset, checked }, bytes)
                }
            };
            let reached = {
                let mut shared = lock();
                shared.submit(number, done);
                shared.bytes += bytes;
                room.notify_all();
                Progress { bytes: shared.bytes, bytes_total, records: shared.joiner.size() }
            };
            if let Some(progress) = progress {
                progress(reached);
            }
        }
    };
    thread::scope(|scope| {
        (1..threads).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    let shared = shared.into_inner().expect("no thread panics while it holds the lock");
    assert!(shared.waiting.is_empty() || shared.flaw.is_some(), "every piece was joined");
    (shared.joiner, shared.flaw)
}
