//! Sharing the work out: every thread takes the next piece, checks it alone, and hands in what it found; whoever hands
//! in the piece that is due puts together all that are.
//!
//! Pieces are handed out in journal order and joined in journal order, so the flaw that is told is the first one,
//! with any number of threads.

use crate::Progress;
use crate::anchor_file::TreeFile;
use crate::chain::{Checked, check};
use crate::chunks::{ChunkReader, Flaw, Piece};
use crate::join::Joiner;
use crate::segments::Header;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

/// Pieces per thread that may be handed out and not joined: a thread that is held up must not let the others pile up
/// what they found.
const AHEAD_MAX: u64 = 8;

struct Desk<'a> {
    reader: ChunkReader<'a>,
    joiner: Joiner<'a>,
    /// Pieces handed out, and pieces joined.
    out: u64,
    joined: u64,
    waiting: BTreeMap<u64, Done>,
    flaw: Option<Flaw>,
    closed: bool,
    bytes: u64,
}

/// A piece on its way to the joiner.
enum Done {
    Begin(Header, Vec<TreeFile>),
    Batches { begin: u64, checked: Box<Checked> },
    Flaw(Flaw),
}

impl Desk<'_> {
    fn hand_in(&mut self, number: u64, done: Done) {
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

/// Checks and joins everything that the reader gives, on `threads` threads of which this is one.
/// Returns how far it came and what stopped it, if anything did.
pub(crate) fn run<'a>(
    reader: ChunkReader<'a>,
    joiner: Joiner<'a>,
    marks: &[u64],
    threads: usize,
    bytes_total: u64,
    progress: Option<&(dyn Fn(Progress) + Sync)>,
) -> (Joiner<'a>, Option<Flaw>) {
    let desk = Mutex::new(Desk {
        reader,
        joiner,
        out: 0,
        joined: 0,
        waiting: BTreeMap::new(),
        flaw: None,
        closed: false,
        bytes: 0,
    });
    let room = Condvar::new();
    let ahead_max = AHEAD_MAX * threads as u64;
    let lock = || -> MutexGuard<'_, Desk<'a>> { desk.lock().expect("no one panics at the desk") };
    let work = || {
        let mut buffer = Vec::new();
        loop {
            let (number, piece) = {
                let mut desk = lock();
                while !desk.closed && desk.out - desk.joined >= ahead_max {
                    desk = room.wait(desk).expect("no one panics at the desk");
                }
                if desk.closed {
                    return;
                }
                let Some(piece) = desk.reader.next(std::mem::take(&mut buffer)) else {
                    desk.closed = true;
                    room.notify_all();
                    return;
                };
                desk.out += 1;
                (desk.out - 1, piece)
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
                let mut desk = lock();
                desk.hand_in(number, done);
                desk.bytes += bytes;
                room.notify_all();
                Progress { bytes: desk.bytes, bytes_total, records: desk.joiner.size() }
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
    let desk = desk.into_inner().expect("no one panics at the desk");
    assert!(desk.waiting.is_empty() || desk.flaw.is_some(), "every piece was joined");
    (desk.joiner, desk.flaw)
}
