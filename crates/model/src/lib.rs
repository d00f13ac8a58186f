//! The types of Leasehold and their encoding in the journal.
//!
//! In: typed [`Record`]s, or bytes from a journal.
//! Out: the canonical bytes of a record (the same bytes are hashed and stored), and typed records that are decoded
//! strictly from them.
//!
//! Never: I/O, clocks, randomness, floating point. Serde is used only for word lists, behind a feature; the JSON view
//! is in the crate `view`. The byte format is specified in `docs/reference/journal-format.md`.

pub mod access;
pub mod account;
pub mod activity;
pub mod allocation;
pub mod app;
pub mod body;
pub mod ceiling;
pub mod class;
pub mod codec;
pub mod frame;
pub mod hex;
pub mod id;
pub mod instant;
pub mod ledger;
pub mod limits;
pub mod month;
pub mod name;
pub mod placement;
pub mod policy;
pub mod prepaid;
pub mod quantity;
pub mod quota;
pub mod rate;
pub mod record;
pub mod retention;
mod sensitive;
pub mod state;
pub mod tenant;
pub mod url;
pub mod usage;
pub mod word;

pub use access::{Role, TokenScope};
pub use activity::Activity;
pub use allocation::{AllocationSpec, AllocationState, AttemptEnd, Domain, WhenOverQuota};
pub use app::{AppOrigin, ControlPlaneScope, OperatingMode, RuntimeBackend, UnitList, UnitMeasure};
pub use body::{BelongsTo, Body, Correlation};
pub use ceiling::{Amount, CeilingMode};
pub use class::{ClassSpec, ResourceKind};
pub use codec::{DecodeError, Field, Reader};
pub use frame::{Batch, Damage, RawBatch, RawRecord};
pub use id::{
    AllocationNo, AppInstanceNo, AppTypeNo, AttachmentNo, ClassNo, CorrelationId, LeaseNo, NodeNo, PoolNo, ProjectNo,
    PublicId, QuotaNo, SinkNo, TenantNo, TokenNo, UnitNo, UserNo, WindowNo,
};
pub use instant::{Instant, Span};
pub use ledger::{
    Account, AccountKind, EntryId, EntryKind, InvoiceNo, Item, Leg, LineKey, Month, Residual, Steps, UsageDelta,
};
pub use name::Name;
pub use placement::{Profile, Sensitivity, Weighing, Weights};
pub use policy::{
    Budgets, DenyCause, Level, Measure, PoolAccess, Priority, QuarantineCause, Reason, Strategy, TeardownMode,
};
pub use prepaid::{CreditSource, Funds, PrepaidAction, PrepaidPolicy, PrepaidState};
pub use quantity::{Fraction, Quanta};
pub use quota::{FurtherScope, HolderScope, LimitKind, NodeScope, QuotaScope, TemporaryLimit};
pub use record::{Hash, Idempotency, Identity, Key, Outline, Record};
pub use retention::{BadRetention, Retention};
pub use state::{CustodyState, Group, InvoiceStatus, LeaseState, PeriodState, RevokeReason, WasteClass, WasteOrder};
pub use tenant::{Address, TenantSettings, TenantSettingsChange};
pub use url::{BadWebAddress, WebAddress};
pub use usage::{UnitQuantity, UsageCharge, UsageSource};
pub use word::Words;

/// The version of the byte format that this crate writes. It reads this one and those before it.
pub const FORMAT_VERSION: u32 = 2;

/// The version of the rules by which the engine decides. Each decision contains it (SEMANTICS 6), so that a replay can
/// detect other rules.
pub const RULES_VERSION: u32 = 9;
