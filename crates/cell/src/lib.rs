//! The pipeline of a command: decide → seal → sync → publish → reply.
//!
//! In: requests from many callers, heartbeats of nodes, a clock. Out: replies, each after its records are durable and
//! visible; the view of durable records for readers ([`Now`]).
//!
//! [`Core`] has the steps without threads, for the simulator. [`Cell`] runs the steps on threads: the next batch is
//! decided while the last one is being synced. Must never: know HTTP, reply before the records are durable, let readers
//! see the deciding state.

mod background;
mod clock;
mod core;
mod inbox;
mod notice;
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
pub use notice::{ClockJump, Notice};
pub use now::{Now, Observer};
pub use open::{Opened, StartError, StartOptions};
pub use past::state_before;
pub use queue::Submission;
pub use replay::replay;
pub use runtime::{Cell, CellOptions};
pub use snapshot::{SnapshotFailure, take_snapshot};
pub use stats::{Histogram, LATENCY_BOUNDS_NS, Published, Stats};
