//! The types of the HTTP API, its problems and limits, and the table of its endpoints.
//!
//! In: values only. Out: the JSON that the server writes and the client reads, and the OpenAPI document. The document
//! is generated from the same table that the server routes by and that the access tests iterate over.
//! Never: how a request is served or sent, a rule about leases, a clock.

mod about;
mod agent;
mod allocation;
mod app_policy;
mod apps;
mod audit;
mod batch;
mod books;
mod capacity;
mod ceiling;
mod claim;
mod code_page;
pub mod codes;
pub mod endpoint;
mod entitlement;
pub mod event_type;
mod explain;
mod id;
mod invoice;
mod key;
mod lease;
mod ledger;
pub mod limits;
mod moment;
mod once;
mod openapi;
mod page;
mod patch;
mod prepaid;
mod problem;
mod quantity;
mod quota;
mod rate;
mod record;
mod scrub;
mod settings;
mod sharing;
mod status;
mod tenancy;
mod time;
mod timeline;
mod token;
mod usage_record;
mod webhook;
mod weights;
mod window;

pub use about::{About, Health, WhoAmI};
pub use agent::{
    AgentRegistered, Condition, ConfirmTeardowns, DetachedAgent, Heartbeat, HeartbeatAnswer, NodeWork, RegisterAgent,
    TeardownsConfirmed,
};
pub use allocation::{
    Allocation, AllocationChange, AllocationChanged, AllocationDetail, AllocationList, Asked, Attempt,
    CheckpointReport, CompleteAllocation, FailedStart, Hold, Replica, Requested, SubmitAllocation, Submitted,
    WaitReason, Waiting, WrittenCheckpoint,
};
pub use app_policy::{AppPolicy, AppPolicyChange, AppPolicyHistory, AppPolicyList, AppPolicyPut, AppPolicyVersion};
pub use apps::{
    App, AppChange, AppInstance, AppInstanceChange, AppInstanceList, AppInstancePut, AppList, AppPut, Attachment,
    AttachmentList, AttachmentPut, NewApp, NewAppInstance, NewAttachment, NewUnitPrice, NewUsageUnit, UnitPrice,
    UnitPriceList, UnitPricePut, UsageUnit, UsageUnitList, UsageUnitPut,
};
pub use audit::{CHECKPOINT_SIZE, Checkpoint, ConsistencyProof, FIRST_SEQUENCE, InclusionProof, NEXT_FROM, RecordPage};
pub use batch::{Batch, BatchResult, BatchResults, LeaseRef, Operation};
pub use books::{
    Amount, CapacityReport, CapacityUse, CostLine, CostRate, CostRateLine, CostReport, ExactCapacity, Forecast,
    ForecastPart, FragmentedNode, KindSensitivity, Of, Quote, QuoteLine, QuoteRequest, ReportedLine, SensitivityReport,
    Stranded, Stretch, UsageLine, UsageReport, Utilisation, WasteReport, WasteSum, WastedCost, WastedLease,
    WorkloadSensitivity,
};
pub use capacity::{
    Class, ClassChange, ClassList, ClassPut, EmptyNode, LoseNode, NewClass, NewNode, NewPool, Node, NodeCapacity,
    NodeChange, NodeList, NodePut, NodeWindow, Pool, PoolChange, PoolList, PoolPut, SpansByPriority, WithReason,
};
pub use ceiling::{Ceiling, CeilingChange, CeilingList, CeilingPut, Money};
pub use claim::{ClaimHolder, ClaimList, ClaimPut, ClaimedNode, Custody, NewClaim, ReleaseNodes, ReportWipe};
pub use code_page::{CodePage, code_pages};
pub use endpoint::{Endpoint, Method};
pub use entitlement::{
    EntitledMonth, Entitlement, EntitlementChange, EntitlementList, EntitlementPut, RefusedUsage, RefusedUsageList,
};
pub use explain::{
    CandidateScore, CeilingChecked, DecidedEviction, Ending, Eviction, Explanation, NodeClassExplained,
    NodeExplanation, NodePromise, PrepaidChecked, QueuePlace, QuotaChecked, ReplicaScore, Victim,
};
pub use id::{AllocationId, BadAllocationId};
pub use invoice::{
    DatedTaxRate, Invoice, InvoiceDrafts, InvoiceFigures, InvoiceHead, InvoiceKind, InvoiceLine, InvoiceList,
    InvoiceSection, InvoiceTax, InvoiceTotal, Issuer, NewPayment, Payment, PaymentList, PaymentPut, Period,
    PeriodClosing, PeriodDetail, PeriodList, PeriodMissing, TaxRateChange, TaxRatePut, TaxRates,
};
pub use key::{KeyList, KeyRotated, KeyRotationFinished, KeyStatus, SigningKey};
pub use lease::{
    Activity, Ask, Confirmed, Fences, Granted, GrantedLease, History, Lease, LeaseEnd, LeaseList, Outcome, ReadyAnswer,
    Release, Released, Renew, Renewed, Reported, RequestLease, Revocation, Revoke, Revoked, Unfenced,
};
pub use leasehold_model::body::{Attribution, SharedAs, SharingMethod};
pub use leasehold_model::instant::WRITTEN_MAX;
pub use leasehold_model::{
    AccountKind, AllocationState, AppOrigin, AttemptEnd, CeilingMode, ControlPlaneScope, CreditSource, CustodyState,
    Domain, EntryKind, InvoiceStatus, LeaseState, Level, Measure, OperatingMode, PeriodState, PoolAccess,
    PrepaidAction, PrepaidState, Priority, QuarantineCause, ResourceKind as Kind, RevokeReason, Role, RuntimeBackend,
    Sensitivity, Strategy, TeardownMode as Teardown, UnitMeasure, WasteClass, WasteOrder, WhenOverQuota,
};
pub use ledger::{
    CorrectionPut, DraftLine, DraftPayer, ExplainedLease, ExplainedPrice, ExplainedUnitPrice, ExplainedUsage,
    LedgerAmount, LedgerBalance, LedgerBalanceList, LedgerDraft, LedgerEntry, LedgerEntryList, LedgerEntryPut,
    LedgerExplanation, LedgerLeg, LedgerLine, LedgerOpened, LedgerSettled, LedgerStatus, LedgerTotal, MonthText,
    NewCorrection, NewDispute, NewLedgerEntry, NewLeg, OpenLedger,
};
pub use moment::{BadMoment, BadZone, FORMATS as TIME_FORMATS, Moment, Toward, Zone};
pub use openapi::openapi;
pub use page::Changed;
pub use patch::Patch;
pub use prepaid::{
    CreditEnd, FundsText, NewTopUp, PrepaidAccount, PrepaidCredit, PrepaidList, PrepaidPolicy, PrepaidPolicyChange,
    PrepaidPut,
};
pub use problem::{PROBLEM_JSON, Problem};
pub use quantity::Quantity;
pub use quota::{
    AmountOrPercent, BadPercent, Holders, Limit, LimitChange, NewQuota, Nodes, Quota, QuotaChange, QuotaList, QuotaPut,
};
pub use rate::{
    CardState, Charge, ChargePolicy, ChargePolicyList, ChargePolicyPut, Charges, ChargesChange, Decimal,
    FactorsByPriority, KindPriceChange, NewChargePolicy, NewRateCard, Price, PriceChange, Prices, PricesByKind,
    PriorityFactorChange, RateCard, RateCardChange, RateCardList, RateCardPut,
};
pub use record::{LeaseEvent, LeaseEventType, Record, RecordHead, RecordIdempotency, RecordIdentity, RecordSignature};
pub use scrub::{AuditStatus, ScrubBegun, ScrubBooks, ScrubFinding, ScrubFindingKind, ScrubPass, ScrubState};
pub use settings::{Settings, SettingsChange};
pub use sharing::{
    CostShare, CostShareList, ServiceTier, ShareWeight, Sharing, SharingChange, SharingHistory, SharingList,
    SharingPolicy, SharingPut, SharingVersion, TierOfProject,
};
pub use status::{
    ClassStatus, DiskStatus, Fence, HeldInClass, LeaseCounts, NodeCounts, Quarantine, QueueStatus, Status,
    TenantStatus, WaitingByPriority,
};
pub use tenancy::{
    BudgetUse, NewProject, NewTenant, NewUser, PoolAccessChange, Project, ProjectChange, ProjectList,
    ProjectPoolAccess, ProjectPut, Tenant, TenantChange, TenantList, TenantPut, TenantUsage, User, UserChange,
    UserList, UserPut,
};
pub use time::{Ttl, When};
pub use timeline::{Timeline, TimelineInvoice, TimelineInvoiceLine, TimelineKind, TimelineStep, TimelineUsage};
pub use token::{IssuedToken, NewToken, Token, TokenList};
pub use usage_record::{
    NewUsageRecord, NewUsageRecords, UnitQuantityText, UsageAccepted, UsageAnswer, UsageRecord, UsageReports,
    UsageResult, UsageResults,
};
pub use webhook::{
    AccountingStatus, DeadLetter, DeadLetterList, DeliveriesReconciled, DeliveriesSent, DeliveryAdvice,
    DeliveryAttempt, DeliveryAttempts, DeliveryDifference, DeliveryDifferenceCause, DeliveryJob, DeliveryJobKind,
    DeliveryJobState, DeliveryStatus, DeliverySummary, NewWebhook, ProviderStatus, ReconcileAnswer,
    ReconcileDeliveries, ReplayDeliveries, ResendAnswer, RetryDeliveries, RotateWebhookSecret, UnreadableRecords,
    Webhook, WebhookChange, WebhookList, WebhookPut, WebhookSecret,
};
pub use weights::{BadWeight, Weight, Weights};
pub use window::{NewWindow, Window, WindowList, WindowPut};
