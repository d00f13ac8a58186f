//! One pass: the segments, and the books beside them.

use crate::check::{BookRows, BooksChecked, Check};
use crate::saved::{get, put};
use leasehold_bill::Found;
use leasehold_books::Balance;
use leasehold_journal::{FileJournal, Scrub, ScrubDamage, ScrubStep};
use leasehold_meter::QuantaNs;
use leasehold_model::{ClassNo, LeaseNo, TenantNo};
use std::io;
use std::ops::ControlFlow;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A file of the journal is not as it was written and signed.
    Journal(ScrubDamage),
    /// A record that is intact and cannot follow those before it.
    Record { sequence: u64, what: &'static str },
    /// A figure of a closed lease differs between the books and its records.
    Lease { lease: LeaseNo, figure: &'static str, books: String, records: String },
    /// What a tenant held of a class differs from the sum over its leases, in quanta × nanoseconds.
    Total { tenant: TenantNo, class: ClassNo, books: QuantaNs, records: QuantaNs },
    /// A statement about the records of a month is not what they say.
    Statement { sequence: u64, what: String },
    /// The books lack a lease, contain one too many, or cannot be read.
    Books { what: String },
}

/// What a step did.
#[derive(Debug, Default)]
pub struct Step {
    /// Bytes that were read from the journal.
    pub bytes: u64,
    pub found: Vec<Finding>,
    pub done: bool,
}

/// A pass over the journal and the books.
pub struct Pass {
    scrub: Scrub,
    check: Check,
    /// Where statements about months are.
    statements: Found,
}

impl Pass {
    /// Begins a pass that compares the books as of `balance`, which must be covered by the newest checkpoint.
    pub fn begin(journal: &FileJournal, balance: Option<Balance>) -> Self {
        let mut check = Check::new(balance.clone().unwrap_or_default());
        if balance.is_none() {
            check.give_up("the books could not be read");
        }
        Self { scrub: journal.scrub(None), check, statements: Found::default() }
    }

    /// Goes on with a pass from the bytes of [`Self::save`]. `None` if they are of another version.
    pub fn resume(journal: &FileJournal, saved: &[u8]) -> Option<Self> {
        let (place, check, statements) = get(saved)?;
        let size = place.position.size;
        let scrub = journal.scrub(Some(place));
        (scrub.size() == size).then_some(Self { scrub, check, statements })
    }

    /// Where the pass stands. Compares the leases that wait for it first.
    pub fn save(&mut self, books: &dyn BookRows) -> (Vec<u8>, Vec<Finding>) {
        let found = self.check.compare(true, books);
        (put(&self.scrub.place(), &self.check, &self.statements), found)
    }

    pub fn scrub(&self) -> &Scrub {
        &self.scrub
    }
    /// How far the books were compared, and as of which record.
    pub fn books(&self) -> (&BooksChecked, u64) {
        (&self.check.state, self.check.balance.size)
    }
    /// The statements about months that were found so far.
    pub fn statements(&self) -> &Found {
        &self.statements
    }
    /// Closed leases that were compared.
    pub fn leases(&self) -> u64 {
        self.check.tally.closed
    }

    /// Reads and compares the next part.
    pub fn step(&mut self, books: &dyn BookRows) -> io::Result<Step> {
        let Self { scrub, check, statements } = self;
        let mut step = Step::default();
        let read = scrub.step(&mut |_, raw| {
            // It was decoded a moment ago.
            if let Ok(record) = raw.decode() {
                statements.note(&record);
                step.found.extend(check.take(&record).err());
            }
            ControlFlow::Continue(())
        })?;
        match read {
            ScrubStep::Read { bytes } => {
                step.bytes = bytes;
                if scrub.first() > 0 {
                    check.give_up(format!(
                        "the records before {} were moved away or deleted; if they were moved, add their directory to \
                         journal.archive",
                        scrub.first()
                    ));
                }
            }
            ScrubStep::Damaged(damage) => {
                check.give_up(format!("the journal is damaged at record {}", damage.sequence));
                step.found.push(Finding::Journal(damage));
            }
            ScrubStep::MovedAway { .. } => {
                check.give_up(
                    "segments were moved away or deleted while they were read; the next pass reads what is there",
                );
            }
            ScrubStep::Done => step.done = true,
        }
        step.found.extend(match step.done {
            true => check.finish(books),
            false => check.compare(false, books),
        });
        Ok(step)
    }
}
