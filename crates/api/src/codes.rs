//! Problem codes of the HTTP layer. The engine's refusals have codes of their own (`docs/reference/codes.md` lists
//! both).

macro_rules! codes {
    ($($name:ident $status:literal $code:literal $about:literal;)*) => {
        $(
            #[doc = $about]
            pub const $name: Code = Code { status: $status, code: $code };
        )*
        /// Every code of the HTTP layer, with its status and what it means.
        pub const ALL: &[(Code, &str)] = &[$(($name, $about)),*];
    };
}

/// A kind of problem: its HTTP status and its stable code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    pub status: u16,
    pub code: &'static str,
}

impl Code {
    pub fn problem(self, detail: impl Into<String>) -> crate::Problem {
        crate::Problem::new(self.status, self.code, detail)
    }
}

codes! {
    BAD_REQUEST 400 "bad_request" "The request line, the path or a header cannot be read, or a header was sent twice.";
    BAD_JSON 400 "bad_json" "The body is not JSON.";
    BAD_BODY 422 "bad_body" "The body is JSON but not what this endpoint accepts, or it has a duplicate key; `field` names what is wrong where that is known.";
    BAD_QUERY 400 "bad_query" "A query parameter is unknown, given twice or invalid.";
    BAD_CURSOR 400 "bad_cursor" "The cursor was not issued by this daemon.";
    UNAUTHENTICATED 401 "unauthenticated" "No token was sent, or one that is unknown, expired or revoked.";
    ROLE_FORBIDS 403 "role_forbids" "The token's role may not call this endpoint, or not set this field.";
    NOT_FOUND 404 "not_found" "The object does not exist or is not visible to the caller; the detail may name the nearest one.";
    METHOD_NOT_ALLOWED 405 "method_not_allowed" "The path exists, but not with this method.";
    REQUEST_TIMEOUT 408 "request_timeout" "The request did not arrive, or was not answered, in time.";
    QUOTA_EXCEEDED 409 "quota_exceeded" "A quota would be exceeded; `used`, `requested` and `limit` say by how much, in `unit`, and as exact fractions of it for a quota on a kind. Recorded.";
    BURST_EXHAUSTED 409 "burst_exhausted" "The burst episode is over, or the lease could not end before it is. Recorded.";
    CEILING_EXCEEDED 409 "ceiling_exceeded" "A hard cost ceiling would be exceeded, of the `project` or of its `app_instance`; `spent`, `reserved`, `requested` and `amount` say by how much. Recorded if a request was denied.";
    PREPAID_NOT_COVERED 409 "prepaid_not_covered" "Prepaid credit, of the `project` or of the `tenant`, does not cover the request, or new work is blocked in its `state`; `available` and `requested` say what is missing. Recorded.";
    NO_CAPACITY 409 "no_capacity" "No node has enough capacity; `class`, `requested` and `most_free` say of what. If the request named a node that is claimed, being wiped, quarantined, drained or lost, `node` and `node_state` say so. Recorded.";
    KEY_ROTATION_UNFINISHED 409 "key_rotation_unfinished" "The last rotation of the signing key is not finished; finish it before the key is rotated again.";
    ENTRY_CORRECTED 409 "entry_corrected" "The entry was corrected already; `corrected_by` names the reversal.";
    ENTRY_NOT_CORRECTABLE 422 "entry_not_correctable" "An entry of this `kind` is not corrected by itself.";
    ENTRY_NOT_DISPUTABLE 422 "entry_not_disputable" "An entry of this `kind` belongs to no project and is not disputed by itself.";
    CURRENCY_MISMATCH 422 "currency_mismatch" "The payment is in another currency than its invoice.";
    BAD_MONTH 422 "bad_month" "A month is not written like 2026-11.";
    URI_TOO_LONG 414 "uri_too_long" "The path and the query are too long.";
    HEAD_TOO_LARGE 431 "head_too_large" "The head of the request is larger than 32 KiB or has more than 100 fields.";
    BODY_TOO_LARGE 413 "body_too_large" "The body is larger than the limit.";
    NOT_JSON 415 "unsupported_media_type" "The body's Content-Type is not application/json.";
    BAD_NAME 422 "bad_name" "A name is empty, too long, has invisible characters, or, for a new name, consists of digits only.";
    BAD_QUANTITY 422 "bad_quantity" "A quantity is malformed or does not fit its class.";
    BAD_ID 422 "bad_id" "An id is not 32 hexadecimal digits.";
    TENANT_NEEDED 422 "tenant_needed" "The token belongs to no tenant, so the request must name one.";
    NO_SUCH_RECORD 404 "no_such_record" "The journal has no such record, or no checkpoint covers it yet.";
    RECORD_NOT_FOUND 404 "record_not_found" "There is no record with that sequence, or it is not visible to the caller.";
    NOT_A_DECISION 404 "not_a_decision" "The record contains no decision that could be made again.";
    BEYOND_END 410 "beyond_end" "`after` or `Last-Event-ID` names a record that the journal does not have: it was restored from an older copy, or it is another journal; `size` says how many records it has. Compare its checkpoint with one that was kept, then start again.";
    PROOF_NOT_READY 409 "proof_not_ready" "The month of the invoice is not closed yet, or no checkpoint covers its end yet.";
    NO_STATEMENT 409 "no_statement" "The month of the invoice was closed without statements, so that its invoices cannot be proved.";
    PROOF_TOO_LARGE 422 "proof_too_large" "The proof of the invoice would be larger than the limit.";
    PROOF_FAILED 500 "proof_failed" "The invoice does not follow from the records of its month; the detail says where.";
    ARCHIVED 410 "archived" "The answer is in a segment that was moved away or deleted.";
    JOURNAL_DAMAGED 500 "journal_damaged" "A part of the journal that the answer needs is damaged; `segment`, `offset` and `sequence` say where. Restore the segment from a copy.";
    APP_INSTANCE_DELETED 410 "app_instance_deleted" "The app instance was deleted; the detail says when. What was reported for it stays.";
    MISSING_ANCHOR 422 "missing_anchor" "A usage record lacks a field that says what it is about; `field` names it.";
    UNKNOWN_ANCHOR 422 "unknown_anchor" "A usage record names something that does not exist, or that the token may not report for; `field` names it.";
    ANCHOR_MISMATCH 422 "anchor_mismatch" "A usage record says something else about its app instance than the registry; `field` names it.";
    BAD_CLOUD_EVENT 422 "bad_cloud_event" "The CloudEvent has another specversion or type than this endpoint takes, or lacks an attribute; `field` names it.";
    TOO_MANY_USAGE_IDS 429 "too_many_usage_ids" "So many IDs of usage records are remembered that no other is accepted; IDs are forgotten 35 days after the end of their usage.";
    TOO_MANY_OPERATIONS 422 "too_many_operations" "The batch has more operations than the limit.";
    ACCOUNTING_DISABLED 409 "accounting_disabled" "Deliveries of events do not run: `accounting.enabled` is false in the configuration, or they could not be started.";
    BAD_WEBHOOK_URL 422 "bad_webhook_url" "The address of a webhook is not an http or https address, contains a user name or password, or is one to which nothing may be delivered; the detail says which.";
    UNKNOWN_EVENT_TYPE 422 "unknown_event_type" "There is no event of this type; the how-to page about webhooks lists all.";
    DELIVERY_BUSY 409 "delivery_busy" "Another retry, replay or reconciliation of this webhook is running; try again when it is done.";
    NO_DEAD_LETTER 404 "no_dead_letter" "No event with this ID was set aside.";
    NO_DELIVERY_JOB 404 "no_delivery_job" "There was no retry, replay or reconciliation of this webhook since the daemon started.";
    DELIVERY_INTERRUPTED 503 "delivery_interrupted" "The webhook was changed, disabled or stopped, or the journal could not be read; the detail says which. Run it again.";
    BAD_OPERATION 422 "bad_operation" "An operation of a batch names no action, or more than one.";
    RATE_LIMITED 429 "rate_limited" "The token has used up its operations for now; `Retry-After` says when to try again.";
    TOO_MANY_STREAMS 429 "too_many_streams" "The token, its tenant or all callers together have too many event streams open; `scope` and `limit` say which limit it is.";
    TOO_MANY_WAITING 429 "too_many_waiting" "The token, its tenant or all callers together have too many requests that wait for an answer; nothing was done. `scope` and `limit` say which limit it is, and `Retry-After` when to try again.";
    BAD_WINDOW 422 "bad_window" "The window ends before it begins, is in the future, or has too many buckets; `field` names the parameter.";
    BAD_GROUPING 422 "bad_grouping" "`by` names something that cannot be grouped by, or too many dimensions.";
    TOO_MANY_LINES 422 "too_many_lines" "The answer would have more lines than the limit; narrow the window, the filter or the grouping.";
    OVERFLOW 422 "overflow" "A figure does not fit into 256 bits.";
    BOOKS_BEHIND 503 "books_behind" "The books have not processed everything yet; `Retry-After` says when to try again.";
    BUSY 503 "busy" "Too many requests are waiting; nothing was done. Try again.";
    STOPPING 503 "stopping" "The daemon is stopping; whether a change was recorded is not known. Send it again with its idempotency key.";
    DISK_FULL 503 "disk_full" "The daemon is not ready: the disk of the journal is full, and commands are refused.";
    JOURNAL_FULL 507 "journal_full" "The disk has no space for more records; reads continue.";
    INTERNAL 500 "internal" "The daemon failed; its log has the details.";
}
