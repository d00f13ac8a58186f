//! The way of a command: decide → seal → sync → reply → publish.
//!
//! In: requests from many callers, node heartbeats, a clock. Out: replies, each after its records are
//! durable and visible; the view of durable records that readers use ([`Now`]).
//!
//! [`Core`] is the way as plain steps, for whoever owns the threads (the simulator owns none);
//! [`Cell`] runs the steps on threads: the next batch is decided while the last one syncs.
//! Never: HTTP, an answer before its records are durable, a read of the deciding state.

mod clock;
mod core;
mod inbox;
mod now;
mod open;
mod past;
mod queue;
mod replay;
mod runtime;
mod snapshot;
mod stats;
mod watch;

pub use clock::{Clock, ManualClock, Stamper, SystemClock};
pub use core::{Core, Pending, PublishError, commit, publish};
pub use inbox::{Inbox, Replies, Reply, Unsealed};
pub use leasehold_engine::Sealed;
pub use now::{Now, Observer};
pub use open::{Opened, StartError, StartOptions};
pub use past::state_before;
pub use queue::Submission;
pub use replay::replay;
pub use runtime::{Cell, CellOptions};
pub use snapshot::{SnapshotFailure, take_snapshot};
pub use stats::{Histogram, LATENCY_BOUNDS_NS, Published, Stats};
