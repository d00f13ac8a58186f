//! Query parameters that several endpoints take, named as in the query string or by what they select.
#![allow(non_upper_case_globals, reason = "the rows of the table name parameters as the query string does")]

use super::Query;
use super::schemas::*;

const fn one(name: &'static str, about: &'static str, schema: super::MakeSchema) -> Query {
    Query { name, about, schema, required: false }
}

pub(super) const tenant: &[Query] = &[one("tenant", "Only of this tenant: its name or number.", text)];
pub(super) const pool: &[Query] = &[one("pool", "Only in this pool: its name or number.", text)];
pub(super) const node: &[Query] = &[one("node", "Only on this node: its name or number.", text)];
pub(super) const class: &[Query] = &[one("class", "Only of this class: its name or number.", text)];
pub(super) const priority: &[Query] = &[one("priority", "Only of this priority.", super::schemas::priority)];
pub(super) const from: &[Query] = &[one("from", "The first instant; the month's first if absent.", instant)];
pub(super) const to: &[Query] = &[one("to", "The first instant after it; now if absent.", instant)];

pub(super) const whose_project: &[Query] = &[one("tenant", "Whose project, where a name is given.", text)];
pub(super) const whose_user: &[Query] = &[one("tenant", "Whose user, where a name is given.", text)];
pub(super) const of_pool: &[Query] = &[one("pool", "Only of this pool: its name or number.", text)];
pub(super) const of_project: &[Query] =
    &[one("project", "Only of this project: its name (with `tenant`) or number.", text)];
pub(super) const of_user: &[Query] = &[one("user", "Only of this user: its name (with `tenant`) or number.", text)];

/// A page of a list.
pub(super) const page: &[Query] = &[
    one("cursor", "Where the page begins: `next_cursor` of the one before.", text),
    one("limit", "How many items at most.", page_limit),
];

/// Over which time, and of whom.
pub(super) const books: &[Query] = &[
    from[0],
    to[0],
    tenant[0],
    one("project", "Only of this project: its name or number.", text),
    one("user", "Only of this user: its name or number.", text),
    pool[0],
    node[0],
    class[0],
    one("kind", "Only of this kind.", kind),
    one("tier", "Only of this tier.", text),
    priority[0],
    one("tag", "Only under this accounting tag.", text),
    one("allocation", "Only of this allocation, by number.", sequence),
    one("app_instance", "Only of this app instance, by number.", sequence),
    one("workload", "Only of this workload.", text),
];

/// By what it is told apart.
pub(super) const grouped: &[Query] = &[one(
    "by",
    "Told apart by these, with commas between: tenant, project, user, pool, node, class, kind, tier, priority, tag, allocation, app_instance, workload, held_as (lease or idle_claim). Unlike units are never added: without class or kind, class is taken as well.",
    grouping,
)];

/// Cut into stretches.
pub(super) const bucketed: &[Query] = &[
    one("bucket", "Cut into minutes, hours, days or months.", bucket),
    one("zone", "The IANA time zone in which days and months begin; UTC if absent.", text),
];

/// Of a project, or of one of its app instances.
pub(super) const ceiling: &[Query] = &[
    whose_project[0],
    one("app_instance", "Of this app instance, by number; of the whole project if absent.", sequence),
];
