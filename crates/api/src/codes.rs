//! The codes of problems that the HTTP layer itself raises; the engine's refusals have their own
//! (`docs/reference/codes.md` lists both).

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

/// A problem of one sort.
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
    BAD_REQUEST 400 "bad_request" "The request line, a header or the query cannot be read.";
    BAD_JSON 400 "bad_json" "The body is not JSON.";
    BAD_BODY 422 "bad_body" "The body is JSON but not what this endpoint takes, or a key stands twice in it; `field` names what is wrong where that is known.";
    BAD_QUERY 400 "bad_query" "A query parameter is unknown, given twice or cannot be read.";
    BAD_CURSOR 400 "bad_cursor" "The cursor is not one this daemon handed out.";
    UNAUTHENTICATED 401 "unauthenticated" "No token was sent, or one that is unknown, expired or revoked.";
    ROLE_FORBIDS 403 "role_forbids" "The token's role may not call this endpoint, or not set this field.";
    NOT_FOUND 404 "not_found" "There is no such thing, or it is not yours; the detail may name the nearest one.";
    METHOD_NOT_ALLOWED 405 "method_not_allowed" "The path exists, but not with this method.";
    REQUEST_TIMEOUT 408 "request_timeout" "The request did not arrive, or was not answered, in time.";
    QUOTA_EXCEEDED 409 "quota_exceeded" "A quota would be exceeded; `used`, `requested` and `limit` say by how much, in quanta where it counts those. Sealed.";
    BURST_EXHAUSTED 409 "burst_exhausted" "The burst episode is over or the lease could not end before it is. Sealed.";
    CEILING_EXCEEDED 409 "ceiling_exceeded" "A hard cost ceiling would be passed, of the `project` or of its `app_instance`; `spent`, `reserved`, `requested` and `amount` say by how much. Sealed where a request was denied.";
    NO_CAPACITY 409 "no_capacity" "No node has room; `class`, `requested` and `most_free` say for what. Where the request named a node that is claimed, being wiped, quarantined, drained or lost, `node` and `node_state` say so. Sealed.";
    BODY_TOO_LARGE 413 "body_too_large" "The body is larger than the limit.";
    NOT_JSON 415 "unsupported_media_type" "The body's Content-Type is not application/json.";
    BAD_NAME 422 "bad_name" "A name is empty, too long or has characters that cannot be seen.";
    BAD_QUANTITY 422 "bad_quantity" "A quantity cannot be read or does not fit its class.";
    BAD_ID 422 "bad_id" "An id is not 32 hexadecimal digits.";
    TENANT_NEEDED 422 "tenant_needed" "The token belongs to no tenant, so the request must name one.";
    NO_SUCH_RECORD 404 "no_such_record" "The journal has no such record, or no checkpoint covers it yet.";
    RECORD_NOT_FOUND 404 "record_not_found" "There is no record of that sequence, or it is not yours.";
    NOT_A_DECISION 404 "not_a_decision" "The record says what somebody did or what happened; it seals no decision that could be made again.";
    ARCHIVED 410 "archived" "The answer lies in a segment that was moved away.";
    TOO_MANY_OPERATIONS 422 "too_many_operations" "The batch has more operations than the limit.";
    BAD_OPERATION 422 "bad_operation" "An operation of a batch names none or more than one thing to do.";
    RATE_LIMITED 429 "rate_limited" "The token has used up its operations for now; `Retry-After` says when.";
    TOO_MANY_STREAMS 429 "too_many_streams" "Too many event streams are open.";
    BAD_WINDOW 422 "bad_window" "The window ends before it begins, lies in the future, or asks for too many stretches; `field` names the parameter.";
    BAD_GROUPING 422 "bad_grouping" "`by` names something that amounts cannot be told apart by, or too many of them.";
    TOO_MANY_LINES 422 "too_many_lines" "The answer would have more lines than the limit; narrow the window, the filter or the grouping.";
    OVERFLOW 422 "overflow" "A figure is larger than 256 bits hold.";
    BOOKS_BEHIND 503 "books_behind" "The books have not taken up everything yet; `Retry-After` says when to ask again.";
    BUSY 503 "busy" "Too many requests wait already; nothing was done. Try again.";
    STOPPING 503 "stopping" "The daemon is stopping; whether a change was sealed is not known. Send it again with its key.";
    JOURNAL_FULL 507 "journal_full" "The disk has no room for more records; reads go on.";
    INTERNAL 500 "internal" "The daemon failed; its log says more.";
}
