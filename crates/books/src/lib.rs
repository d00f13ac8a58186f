//! What can be asked: who held what, when, at what peak, at what cost, and how much of it was wasted; and what became
//! of every lease and allocation.
//!
//! In: durable records, in order. Out: answers that a pass over the whole journal would give, at the cost of what they
//! are about. Kept in one file beside the journal; thrown away and rebuilt from it when that is missing, old or damaged.
//!
//! Never: ahead of what is durable, a sample, an estimate, a rounding that is not asked for. It knows numbers, not names
//! of tenants and the like, and nothing of HTTP.

mod allocations;
mod ask;
mod buckets;
mod bytes;
mod chunk;
mod claims;
mod cost;
mod facts;
mod finder;
mod follow;
mod keeper;
mod leases;
mod mix;
mod nodes;
mod overdue;
mod peak;
mod persist;
mod reserved;
mod row;
mod scan;
mod sensitivity;
mod stays;
mod store;
mod stories;
mod summary;
mod table;
mod usage;
mod usage_lines;
mod waste;

pub use allocations::{AllocationPage, AllocationQuestion};
pub use ask::{DIMS_MAX, Dim, Filter, HeldAs, Key, LINES_MAX, NONE, Question};
pub use buckets::{BUCKETS_MAX, BadBuckets, Bucket, Buckets, month_of};
pub use cost::{CostLine, LiveRate};
pub use facts::{Books, BooksError};
pub use keeper::{COMMIT_RECORDS, Keeper, Opened, Written};
pub use leases::{LeasePage, LeaseQuestion};
pub use nodes::{CapacityKey, CapacityLine, CapacitySeries};
pub use peak::PeakLine;
pub use row::{End, Ending, Life, Rare, Revocation, Row};
pub use sensitivity::{KindProfile, Sensitivity, WorkloadProfile};
pub use stories::{Attempt, Checkpoint, Outline, Over, Story};
pub use usage_lines::{Usage, UsageLine};
pub use waste::{FRAGMENTED_LEASE_COUNT, LeaseWaste, Waste, WasteClass};
