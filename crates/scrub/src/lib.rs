//! The scrub: reads the whole journal again and compares the books with it.
//!
//! In: a pass over the segments ([`leasehold_journal::Scrub`]), the books as of one record ([`Balance`]) and single rows
//! of them. Out: what is damaged, or differs ([`Finding`]); and bytes from which a pass goes on after a restart.
//!
//! Usage is counted again from the records alone, with the arithmetic of `meter` and no code of the books. Memory is
//! bounded for any journal. Never: a clock, a thread, a change of the journal or of the books.

mod check;
mod differ;
mod entries;
mod pass;
mod saved;
mod statements;
mod tally;

pub use check::{BookRows, BooksChecked};
pub use leasehold_books::Balance;
pub use pass::{Finding, Pass, Step};
pub use statements::{StatementsChecked, recheck_statements};
pub use tally::OPEN_MAX;
