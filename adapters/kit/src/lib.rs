//! What the usage adapters share: they read what a runtime knows, and report it to Leasehold exactly once.
//!
//! In: drafts of usage records, each with a key that follows from what it is about and never from when it was read.
//! Out: usage records, a state directory, a file of what was refused, log lines on stderr.
//! Losing the state means sending again under the same IDs, never counting twice; [`deliver`] has the rules.
//! Never: a float, a random ID, a record that is dropped without being named.

mod anchors;
mod args;
mod config;
mod correlation;
mod deliver;
mod draft;
mod hours;
mod rounds;
mod state;

pub use anchors::{Anchors, Lent, Whose};
pub use args::AdapterArgs;
pub use config::{Leasehold, span};
pub use correlation::{derived, is_uuid};
pub use draft::Draft;
pub use hours::hours;
pub use rounds::{Look, Runtime, Setup, Times, run};
