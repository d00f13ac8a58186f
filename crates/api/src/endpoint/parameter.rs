//! Query parameters that several endpoints share.
#![allow(non_upper_case_globals, reason = "the rows of the table name parameters as the query string does")]

use super::Query;
use super::schemas::*;

const fn one(name: &'static str, about: &'static str, schema: super::MakeSchema) -> Query {
    Query { name, about, schema, required: false }
}

pub(super) const tenant: &[Query] = &[one("tenant", "Only for this tenant: name or number.", text)];
pub(super) const pool: &[Query] = &[one("pool", "Only in this pool: name or number.", text)];
pub(super) const node: &[Query] = &[one("node", "Only on this node: name or number.", text)];
pub(super) const class: &[Query] = &[one("class", "Only of this resource class: name or number.", text)];
pub(super) const priority: &[Query] = &[one("priority", "Only with this priority.", super::schemas::priority)];
/// The window of a report.
pub(super) const window: &[Query] = &[
    one("from", "First instant of the window. The beginning of the month if absent.", time),
    one("to", "First instant after the window. Now if absent.", time),
    one(
        "window",
        "The window as one word, instead of `from` and `to`: a day, a week, a month, or a length of time up to now.",
        time,
    ),
    time_zone[0],
];
pub(super) const time_zone: &[Query] = &[one(
    "time_zone",
    "IANA time zone of times that are given without an offset, and of days, weeks and months. UTC if absent.",
    text,
)];

pub(super) const whose_project: &[Query] = &[one(
    "tenant",
    "Tenant of the project: name or number. Needed if the project is given by name and the token belongs to no tenant.",
    text,
)];
pub(super) const whose_user: &[Query] = &[one(
    "tenant",
    "Tenant of the user: name or number. Needed if the user is given by name and the token belongs to no tenant.",
    text,
)];
pub(super) const whose_app: &[Query] = &[one(
    "tenant",
    "Tenant of the app instance: name or number. Needed if it is given by name and the token belongs to no tenant.",
    text,
)];
pub(super) const whose_webhook: &[Query] = &[one(
    "tenant",
    "Tenant of the webhook: name or number. Needed if it is given by name and the token belongs to no tenant.",
    text,
)];
pub(super) const of_pool: &[Query] = &[one("pool", "Only of this pool: name or number.", text)];
pub(super) const of_project: &[Query] =
    &[one("project", "Only for this project: name (with `tenant`) or number.", text)];
pub(super) const of_user: &[Query] = &[one("user", "Only for this user: name (with `tenant`) or number.", text)];

pub(super) const currency: &[Query] =
    &[one("currency", "Only in this currency: three capital letters.", super::schemas::currency)];
/// How an invoice is written.
pub(super) const invoice_format: &[Query] = &[one(
    "format",
    "JSON, comma-separated values for a spreadsheet, or a page for people that can be printed. JSON if absent.",
    super::schemas::invoice_format,
)];

/// A page of a list.
pub(super) const page: &[Query] = &[
    one("cursor", "Beginning of the page: `next_cursor` of the page before.", text),
    one("limit", "The most items that the page may have.", page_limit),
];

/// Window and filter of reports from the books.
pub(super) const books: &[Query] = &[
    window[0],
    window[1],
    window[2],
    window[3],
    tenant[0],
    one("project", "Only for this project: name or number.", text),
    one(
        "user",
        "Only for this user: name or number. A name without `tenant` means the users of that name in all tenants.",
        text,
    ),
    pool[0],
    node[0],
    class[0],
    one("kind", "Only of this kind of resource.", kind),
    one("tier", "Only of this tier.", text),
    priority[0],
    one("tag", "Only with this accounting tag.", text),
    one("allocation", "Only for this allocation: `alloc-` and its number, or the number.", text),
    one("app_instance", "Only for this app instance: name (with `tenant`) or number.", text),
    one("workload", "Only for this workload.", text),
    one("control_plane", "Only control planes of app instances (true), or only workloads (false).", flag),
];

/// Grouping.
pub(super) const grouped: &[Query] = &[one(
    "by",
    "Group by (comma-separated): tenant, project, user, pool, node, class, kind, tier, priority, tag, allocation, app_instance, workload, held_as (lease or idle_claim), control_plane (true or false), app, operating_mode, control_plane_scope, runtime_backend. Different units are never added up: class is added to the list unless it contains class or kind.",
    grouping,
)];

/// Buckets of time.
pub(super) const bucketed: &[Query] =
    &[one("bucket", "Split the window into minutes, hours, days or months.", bucket), zone[0]];
pub(super) const zone: &[Query] = &[one("zone", "Another name of `time_zone`.", text)];

/// Selects the ceiling of a project or of one of its app instances.
pub(super) const ceiling: &[Query] = &[
    whose_project[0],
    one("app_instance", "App instance: name or number. The ceiling of the whole project if absent.", text),
];
