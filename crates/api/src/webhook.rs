//! Webhooks: where events are delivered to, how far deliveries came, and what was not delivered.

use crate::problem::Problem;
use crate::time::{Ttl, When};
use leasehold_model::body::{SinkDisabledCause, SinkSignature};
use leasehold_model::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where events are delivered to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Webhook {
    /// Number of the webhook.
    pub webhook_id: u32,
    /// Name of the webhook, unique among those of its owner.
    pub name: String,
    /// Name of the tenant that it belongs to, whose events it gets; null for one of the operator, which gets all.
    pub tenant: Option<String>,
    /// Number of the tenant.
    pub tenant_id: Option<u32>,
    /// Where events are delivered to.
    pub url: String,
    /// Types of events, or families of them (`lease.*`), that are delivered.
    pub events: Vec<String>,
    /// How deliveries are signed.
    pub signature: SinkSignature,
    /// The record that made it. Events of later records are delivered.
    pub sequence: u64,
    /// Whether events are delivered.
    pub enabled: bool,
    /// Why nothing is delivered; null if it is enabled.
    pub disabled_cause: Option<SinkDisabledCause>,
}

/// A page of webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookList {
    /// In order of number.
    pub webhooks: Vec<Webhook>,
    /// Cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// A new webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Name of the webhook.
    pub name: String,
    /// Tenant that it belongs to: name or number. Absent for that of the token; an operator without one makes a webhook of
    /// its own, which gets the events of all tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Where events are delivered to: an https address without user name and password.
    pub url: String,
    /// Types of events, families of them (`lease.*`), `accounting` for those that accounting systems need, or `*`. All
    /// events if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// How deliveries are signed; `hmac` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<SinkSignature>,
}

/// Changes a webhook, and enables it if it was disabled. An absent field keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookChange {
    /// New name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Types of events from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
}

/// A webhook that was made or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookPut {
    /// The record that says so.
    pub sequence: u64,
    /// The webhook.
    pub webhook: Webhook,
    /// What the receiver checks signatures with: the shared secret (`whsec_…`), or the public key (`whpk_…`). It is shown
    /// once; null if no new one was made.
    pub secret: Option<String>,
}

/// Gives a webhook a new secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateWebhookSecret {
    /// How long deliveries are signed with the old secret as well; 24 hours if absent, `0s` to end it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Ttl>,
}

/// A new secret of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookSecret {
    /// What the receiver checks signatures with: the shared secret (`whsec_…`), or the public key (`whpk_…`). It is shown
    /// once.
    pub secret: String,
}

/// One attempt to deliver an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryAttempt {
    /// When it began.
    pub at: When,
    /// ID of the event.
    pub event_id: String,
    /// Type of the event.
    pub event_type: String,
    /// HTTP status of the answer; null if there was none.
    pub status: Option<u16>,
    /// Why there was no answer; null if there was one.
    pub error: Option<String>,
    /// How long it took.
    pub took: Ttl,
}

/// The last attempts of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryAttempts {
    /// The oldest first, at most 100.
    pub attempts: Vec<DeliveryAttempt>,
}

/// An event that could not be delivered and was set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    /// ID of the event.
    pub event_id: String,
    /// Type of the event.
    pub event_type: String,
    /// The record that the event was made from.
    pub sequence: u64,
    /// What the event is about.
    pub subject: String,
    /// When the event happened.
    pub time: When,
    /// When it was set aside.
    pub dead_at: When,
    /// How often it was tried.
    pub attempts: u32,
    /// Status of the last answer; null if there was none.
    pub status: Option<u16>,
    /// Why it was set aside.
    pub reason: String,
}

/// A page of events that were set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterList {
    /// In order of their records.
    pub dead_letters: Vec<DeadLetter>,
    /// Cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Sends events again that were set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryDeliveries {
    /// Only the event with this ID; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
}

/// Sends all events again from a record on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayDeliveries {
    /// The first record whose events are sent again.
    pub from_sequence: u64,
}

/// What became of events that were sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveriesSent {
    /// Events that were sent.
    pub sent: u64,
    /// Those that the receiver has acknowledged.
    pub delivered: u64,
    /// Those that it has not.
    pub failed: u64,
    /// Records that were archived or deleted, so that their events were not sent.
    pub unreadable: Vec<UnreadableRecords>,
}

/// Records that were archived or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreadableRecords {
    /// The first of them.
    pub first: u64,
    /// The last of them.
    pub last: u64,
}

/// Compares what was due with what was acknowledged, and sends what is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReconcileDeliveries {
    /// Beginning of the time.
    pub since: When,
    /// End of the time.
    pub until: When,
    /// Only compares: nothing is sent or recorded.
    #[serde(default)]
    pub dry_run: bool,
}

/// The result of a reconciliation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveriesReconciled {
    /// Events of this time.
    pub due: u64,
    /// Events that had been acknowledged before.
    pub acknowledged: u64,
    /// Events that wait for their ordinary delivery.
    pub pending: u64,
    /// Events that were set aside.
    pub dead: u64,
    /// Events that were skipped because the webhook was too far behind.
    pub dropped: u64,
    /// Missing events that were sent and are acknowledged now; zero in a dry run.
    pub sent: u64,
    /// Missing events that were sent and not acknowledged.
    pub failed: u64,
    /// Records that were archived or deleted, so that it is not known which of their events are missing.
    pub unreadable: Vec<UnreadableRecords>,
    /// In a dry run the events that would be sent, in order, at most 1,000 of them; otherwise empty.
    pub differences: Vec<DeliveryDifference>,
    /// The record of the result; null in a dry run.
    pub sequence: Option<u64>,
}

words! {
    /// Why a receiver does not have an event.
    pub enum DeliveryDifferenceCause {
        /// It was refused, and set aside.
        SetAside "set_aside",
        /// It was skipped, because the webhook was too far behind or its record was not at hand.
        Dropped "dropped",
    }
}

/// An event that was due and that the receiver does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryDifference {
    /// ID of the event.
    pub event_id: String,
    /// Type of the event.
    pub event_type: String,
    /// The record that the event was made from.
    pub sequence: u64,
    /// What the event is about.
    pub subject: String,
    /// When the event happened.
    pub time: When,
    /// Why the receiver does not have it.
    pub cause: DeliveryDifferenceCause,
    /// Why it was set aside; null if it was dropped.
    pub reason: Option<String>,
}

words! {
    /// What is done for a webhook beside its ordinary deliveries.
    pub enum DeliveryJobKind {
        /// Events that were set aside are sent again.
        Retry "retry",
        /// All events are sent again from a record on.
        Replay "replay",
        /// What was due is compared with what was acknowledged, and what is missing is sent.
        Reconcile "reconcile",
    }
}

words! {
    /// How far a retry, replay or reconciliation is.
    pub enum DeliveryJobState {
        Running "running",
        /// It is done; the result says what was sent.
        Finished "finished",
        /// It ended early; `problem` says why.
        Failed "failed",
    }
}

/// A retry, replay or reconciliation of a webhook: the one that runs, or the last one since the daemon started. It goes on
/// when its caller disappears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryJob {
    /// Number of the job, counted since the daemon started.
    pub job: u64,
    /// Number of the webhook.
    pub webhook_id: u32,
    /// What is done.
    pub kind: DeliveryJobKind,
    /// How far it is.
    pub state: DeliveryJobState,
    /// When it began.
    pub started_at: When,
    /// When it ended; null while it runs.
    pub ended_at: Option<When>,
    /// Beginning of the time of a reconciliation.
    pub since: Option<When>,
    /// End of the time of a reconciliation.
    pub until: Option<When>,
    /// Whether a reconciliation only compares; null for a retry or replay.
    pub dry_run: Option<bool>,
    /// The first record of a replay.
    pub from_sequence: Option<u64>,
    /// The only event of a retry; null if all are sent.
    pub event_id: Option<String>,
    /// Events that are to be sent; null until they are counted.
    pub due: Option<u64>,
    /// Events of these that were acknowledged or set aside so far.
    pub done: u64,
    /// The result of a retry or replay; null for a reconciliation, or if it has not finished.
    pub resent: Option<DeliveriesSent>,
    /// The result of a reconciliation; null for a retry or replay, or if it has not finished.
    pub reconciled: Option<DeliveriesReconciled>,
    /// Why it failed; null if it did not.
    pub problem: Option<Problem>,
}

/// The answer to a retry or replay: its result, or how far it is if it takes longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ResendAnswer {
    Done(DeliveriesSent),
    Running(Box<DeliveryJob>),
}

/// The answer to a reconciliation: its result, or how far it is if it takes longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ReconcileAnswer {
    Done(DeliveriesReconciled),
    Running(Box<DeliveryJob>),
}

/// How far the deliveries to a webhook came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryStatus {
    /// The webhook.
    pub webhook: Webhook,
    /// `delivering`, `failing` while attempts fail, or `disabled`.
    pub state: String,
    /// Whether the receiver takes events, by the last attempts; null if the webhook is disabled, or nothing was tried.
    pub reachable: Option<bool>,
    /// Records up to which everything is acknowledged, set aside or skipped.
    pub cursor: u64,
    /// Records after the cursor.
    pub lag_records: u64,
    /// Events that are due and not delivered.
    pub lag_events: u64,
    /// Events in memory.
    pub in_memory: u64,
    /// Events that are only in the journal.
    pub on_disk: u64,
    /// When the oldest event in memory happened, or if the webhook is disabled the oldest one that is due; null if there is
    /// none.
    pub oldest: Option<When>,
    /// Attempts so far.
    pub attempts: u64,
    /// Events delivered so far.
    pub delivered: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Events that are set aside now.
    pub dead_letters: u64,
    /// Events that were skipped because the webhook was too far behind.
    pub dropped: u64,
    /// Skipped events that have not been sent by a reconciliation.
    pub dropped_open: u64,
    /// Whether the events in memory fill 80 % of the limit.
    pub memory_high: bool,
    /// Whether more events are behind than `disk_buffer_max_events`.
    pub over_threshold: bool,
    /// When the next attempt is made after failures; null if nothing is awaited.
    pub next_attempt_at: Option<When>,
    /// Why the last attempt failed; null if it did not.
    pub last_error: Option<String>,
    /// When an event was delivered last.
    pub last_success: Option<When>,
    /// What is wrong on this side; null if nothing is.
    pub trouble: Option<String>,
    /// The retry, replay or reconciliation that runs, or the last one since the daemon started; null if there was none.
    pub job: Option<DeliveryJob>,
}

/// What the settings of deliveries should be, from what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryAdvice {
    /// Events that became due per minute, on average during `measured_over`, rounded up.
    pub events_per_minute: u64,
    /// Those of the webhook that was sent the most, by the types of events that it chose: `buffer_size` is for each
    /// webhook. Without webhooks the same as `events_per_minute`.
    pub busiest_webhook_events_per_minute: u64,
    /// Those of them that accounting systems need.
    pub accounting_events_per_minute: u64,
    /// How long was measured: the last hour, or the time since the daemon started.
    pub measured_over: Ttl,
    /// The configured number of events in memory.
    pub buffer_size: u32,
    /// Minutes of an outage that the memory covers at this rate; null if nothing became due.
    pub minutes_in_memory: Option<u64>,
    /// The number that covers an outage of two hours, for the busiest webhook: events per minute x 120, and at most what
    /// `buffer_size` may be.
    pub buffer_size_for_two_hours: u64,
    /// The configured time between two pushes to the accounting system; null if none is configured.
    pub push_interval_seconds: Option<u32>,
    /// Events that one push would have at this rate; null without an accounting system.
    pub events_per_push: Option<u64>,
    /// The longest time between two pushes for which the events of one fill at most 80 % of the memory; null without an
    /// accounting system, or if nothing became due.
    pub push_interval_seconds_max: Option<u64>,
}

/// The accounting system that is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderStatus {
    /// Its kind: `waldur`.
    pub provider: String,
    /// Whether usage is sent to it. False in this version, which only reads the token.
    pub sends_usage: bool,
    /// Where its token is. The token itself is never shown.
    pub token_secret_ref: String,
    /// Whether the token could be read when that was tried last.
    pub token_readable: bool,
    /// When the token was last read; null if it never was.
    pub token_read_at: Option<When>,
    /// Why the token could not be read when that was tried last; null if it could.
    pub token_trouble: Option<String>,
}

/// What an operator should know about deliveries at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliverySummary {
    /// Whether deliveries run. If not, `GET /api/v1/deliveries` says why.
    pub running: bool,
    /// Webhooks.
    pub webhooks: u64,
    /// Those that are disabled.
    pub disabled: u64,
    /// Those that are enabled and to which nothing can be delivered now.
    pub failing: u64,
    /// Events that are set aside.
    pub dead_letters: u64,
    /// Events that were skipped, and that no reconciliation has sent.
    pub dropped_open: u64,
}

/// How deliveries go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountingStatus {
    /// Whether events are delivered at all (`accounting.enabled`).
    pub enabled: bool,
    /// Why deliveries do not run although they are enabled; null if they run.
    pub trouble: Option<String>,
    /// The webhooks that the caller may see, in order of number.
    pub deliveries: Vec<DeliveryStatus>,
    /// The accounting system; null if none is configured, or for a caller that is not an operator.
    pub provider: Option<ProviderStatus>,
    /// Advice for the settings; null for a caller that is not an operator.
    pub advice: Option<DeliveryAdvice>,
}
