//! The deterministic state machine that decides leases.
//!
//! In: a [`Request`] and the instant it is decided at; or records read back from a journal. Out: records, encoded into
//! a batch; or a [`Refusal`] for an invalid request, which changes nothing.
//!
//! A [`State`] changes only by folding a record, so deciding changes it exactly as a replay does. What an [`Engine`]
//! and [`Readers`] keep beside the state follows the fold (`follow.rs`). Must never: read a clock, do I/O, use
//! randomness or floats, depend on the order of a hash map.

mod admission;
mod allocation;
mod apps;
mod ask;
mod assured_start;
mod budget;
mod ceiling;
mod claim_cost;
mod claims;
pub mod command;
mod custody;
mod decide;
mod entitlement;
mod evictable;
mod explain;
mod follow;
mod gang;
mod headroom;
mod heat;
mod holder;
mod idempotency;
mod index;
mod lease;
mod lease_order;
pub mod ledger;
mod naming;
mod node;
mod on_nodes;
mod overage;
mod placement;
mod policy;
mod pool_access;
mod preempt;
mod prefetch;
mod prepaid;
mod protection;
mod queue;
mod quota;
mod rate;
mod readers;
mod refusal;
mod replay;
mod reservation;
mod scheduler;
mod sealed;
mod sharing;
mod sinks;
mod snapshot;
mod state;
mod tally;
mod timer;
mod token;
mod usage;
mod view;
mod warm;
mod window;

pub use admission::{CeilingCheck, QuotaCheck, QuotaSaid};
pub use allocation::{Allocation, Hold, Over};
pub use apps::{AppInstance, AppType, Attachment, Unit, UnitPrice};
pub use assured_start::AssuredStart;
pub use budget::{Scarce, Spending};
pub use ceiling::{Ceiling, CeilingScope};
pub use claim_cost::CeilingUse;
pub use command::{Command, CommandKind, Request};
pub use custody::{Claim, Claimer, Custody};
pub use decide::Engine;
pub use decide::quote::{Evicts, Quote, Quoted};
pub use entitlement::{Entitled, Entitlement};
pub use explain::{Deciding, Explanation, QueueStanding, ReplicaPlace};
pub use heat::{HEAT_MAX, Heat};
pub use holder::Holder;
pub use lease::{Lease, Phase};
pub use naming::{ByNumber, Naming};
pub use node::{Agent, CapacitySplit, Condition, Node, NodeClass};
pub use placement::{Candidate, Exclusion, Explained, Placement};
pub use preempt::PossibleEviction;
pub use prepaid::{Credit, Prepaid, PrepaidCheck, PrepaidKey, PrepaidScope, PrepaidUse};
pub use queue::{Positions, Protection, Standing, Standings, WaitReason, Waits};
pub use quota::{Episode, Quota};
pub use rate::{ChargePolicy, RateCard};
pub use readers::Readers;
pub use refusal::{Refusal, RefusalClass, RegisteredGeneration};
pub use replay::{Replayed, asked_by, replay};
pub use sealed::{Records, Sealed, Sequences};
pub use sharing::{Division, Share, SharingRules};
pub use sinks::Sink;
pub use snapshot::BadSnapshot;
pub use state::{FoldError, OpenLoss, Settings, State};
pub use token::Token;
pub use view::View;
pub use window::{NodeWindows, Window};
