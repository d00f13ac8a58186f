//! A journal in files, with its books.

use leasehold_books::{Books, BooksError, Keeper, Row};
use leasehold_journal::{FileJournal, Journal, Keys, Local, Options, RealDisk, Secret};
use leasehold_model::{Batch, Instant, LeaseNo, Record};
use leasehold_scrub::{BookRows, Finding, Pass};
use leasehold_sim::tell_seed;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Small, so that there are several.
pub(crate) const SEGMENT_BYTES: u64 = 16 << 10;

pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) journal: FileJournal,
    pub(crate) books: Books,
    records: Vec<Record>,
}

pub(crate) fn keys() -> Arc<Keys> {
    Arc::new(Keys::new("sim.example", &[9; 32]).unwrap())
}
pub(crate) fn local() -> Local {
    Local::new(Secret::new([7; 32]))
}
pub(crate) fn options() -> Options {
    Options { segment_bytes: SEGMENT_BYTES, ..Options::default() }
}

impl World {
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self::told(seed, 300)
    }

    /// A history of so many steps.
    pub(crate) fn told(seed: u64, steps: u32) -> Self {
        let (_, records) = tell_seed(seed, steps).unwrap_or_else(|failure| panic!("{failure}"));
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(RealDisk::new(folder.path()));
        let journal = FileJournal::create(disk, options(), keys(), local(), Instant(0)).unwrap();
        for some in records.chunks(20) {
            journal.prepare().unwrap();
            let mut batch = Batch::new(some[0].sequence);
            some.iter().for_each(|record| batch.push(record));
            journal.append(&mut batch).unwrap();
        }
        journal.checkpoint(Instant(0)).unwrap();
        let books = books_of(&records);
        Self { folder, journal, books, records }
    }

    pub(crate) fn size(&self) -> u64 {
        self.records.len() as u64
    }
    pub(crate) fn books_at(&self, size: u64) -> Books {
        books_of(&self.records[..usize::try_from(size).unwrap()])
    }
    pub(crate) fn forget_books(&mut self) {
        self.books = Books::default();
    }
    pub(crate) fn segment(&self, number: u32) -> PathBuf {
        self.folder.path().join(format!("journal/{number:08}.seg"))
    }
    /// The segments that contain records.
    pub(crate) fn segments(&self) -> u32 {
        let begun = |number: &u32| std::fs::read(self.segment(*number)).is_ok_and(|bytes| bytes.starts_with(b"LHSEG"));
        u32::try_from((1..).take_while(begun).count()).unwrap()
    }

    /// The books as they are.
    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows { books: &self.books, alter: None, lose: None, mislead: None }
    }

    /// All findings of a pass.
    pub(crate) fn scrub(&self) -> Vec<Finding> {
        let mut pass = Pass::begin(&self.journal, Some(self.books.balance().unwrap()));
        run(&mut pass, &self.rows())
    }
}

fn books_of(records: &[Record]) -> Books {
    let mut books = Keeper::in_memory().books;
    records.iter().for_each(|record| books.apply(record).unwrap());
    books
}

/// Runs a pass to its end.
pub(crate) fn run(pass: &mut Pass, rows: &dyn BookRows) -> Vec<Finding> {
    let mut found = Vec::new();
    loop {
        let step = pass.step(rows).unwrap();
        found.extend(step.found);
        if step.done {
            return found;
        }
    }
}

pub(crate) type Alter = fn(&mut Row);

/// Books that somebody changed: the row of a lease altered or lost, or the index of another one wrong.
pub(crate) struct Rows<'a> {
    pub(crate) books: &'a Books,
    pub(crate) alter: Option<(LeaseNo, Alter)>,
    pub(crate) lose: Option<LeaseNo>,
    pub(crate) mislead: Option<LeaseNo>,
}

impl BookRows for Rows<'_> {
    fn closed_rows(&self, first: u64) -> Result<Vec<Row>, BooksError> {
        let mut rows = self.books.closed_rows(first)?;
        rows.retain(|row| self.lose != Some(row.lease));
        rows.iter_mut().for_each(|row| self.change(row));
        Ok(rows)
    }
    fn leases_of(&self, numbers: &[LeaseNo]) -> Result<Vec<Row>, BooksError> {
        let found = self.books.leases_of(numbers.iter().copied())?.into_iter().map(|(row, _)| row);
        let mut rows: Vec<Row> = found.filter(|row| self.mislead != Some(row.lease)).collect();
        rows.iter_mut().for_each(|row| self.change(row));
        Ok(rows)
    }
}

impl Rows<'_> {
    fn change(&self, row: &mut Row) {
        if let Some((lease, alter)) = self.alter
            && row.lease == lease
        {
            alter(row);
        }
    }
}

/// Changes one byte of a file.
pub(crate) fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    // In place: the journal has the file open.
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes[at..=at], at as u64).unwrap();
}
