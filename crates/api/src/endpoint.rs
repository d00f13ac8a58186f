//! The table of endpoints: what the server routes by, what the OpenAPI document is made from, and what the tests of
//! access walk through.

mod about;
mod access;
mod allocations;
mod books;
mod capacity;
mod journal;
mod leases;
mod operation;
mod prices;
mod quotas;
mod roles;
mod schemas;
mod tenancy;

use crate::token::Role;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use schemas::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// What a schema is made by.
pub type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// What an endpoint answers when all is well.
#[derive(Clone, Copy)]
pub enum Answer {
    Json(MakeSchema),
    /// Text of this media type.
    Text(&'static str),
    /// Bytes of this media type.
    Bytes(&'static str),
}

/// A parameter in the query string.
#[derive(Clone, Copy)]
pub struct Query {
    pub name: &'static str,
    pub about: &'static str,
    pub schema: MakeSchema,
}

#[derive(Clone)]
pub struct Endpoint {
    /// Stable; the OpenAPI operation id.
    pub id: &'static str,
    pub method: Method,
    pub path: &'static str,
    pub summary: &'static str,
    /// Who may call it at all; what of it they see is another matter. Empty: no token is asked for.
    pub roles: &'static [Role],
    pub query: Vec<Query>,
    pub body: Option<MakeSchema>,
    /// A request without a body means the same as one with `{}`.
    pub body_optional: bool,
    pub status: u16,
    pub answer: Answer,
    /// The status and answer where it must be waited for.
    pub or_wait: Option<(u16, MakeSchema)>,
}

impl Endpoint {
    /// Whether it changes something and so takes an `Idempotency-Key`.
    pub fn is_mutation(&self) -> bool {
        self.method != Method::Get
    }

    /// The noun it is about, for grouping.
    pub fn tag(&self) -> &'static str {
        let rest = self.path.strip_prefix("/api/v1/").unwrap_or("operation");
        rest.split(['/', '.']).next().unwrap_or(rest)
    }

    /// The names between braces in its path.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    fn query(mut self, name: &'static str, about: &'static str, schema: MakeSchema) -> Self {
        self.query.push(Query { name, about, schema });
        self
    }

    fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    fn body_or_none<T: JsonSchema>(mut self) -> Self {
        self.body_optional = true;
        self.body::<T>()
    }

    fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// What it answers where it must be waited for.
    fn or_wait<T: JsonSchema>(mut self) -> Self {
        self.or_wait = Some((202, SchemaGenerator::subschema_for::<T>));
        self
    }

    fn text(mut self, media: &'static str) -> Self {
        self.answer = Answer::Text(media);
        self
    }

    fn bytes(mut self, media: &'static str) -> Self {
        self.answer = Answer::Bytes(media);
        self
    }

    /// Over which time, and of whom.
    fn of_books(self) -> Self {
        self.query("from", "The first instant; the month's first if absent.", instant)
            .query("to", "The first instant after it; now if absent.", instant)
            .query("tenant", "Only of this tenant: its name or number.", text)
            .query("project", "Only of this project: its name or number.", text)
            .query("user", "Only of this user: its name or number.", text)
            .query("pool", "Only in this pool: its name or number.", text)
            .query("node", "Only on this node: its name or number.", text)
            .query("class", "Only of this class: its name or number.", text)
            .query("kind", "Only of this kind.", kind)
            .query("tier", "Only of this tier.", text)
            .query("priority", "Only of this priority.", priority)
            .query("tag", "Only under this accounting tag.", text)
            .query("allocation", "Only of this allocation, by number.", sequence)
            .query("app_instance", "Only of this app instance, by number.", sequence)
            .query("workload", "Only of this workload.", text)
    }

    /// By what it is told apart.
    fn grouped(self) -> Self {
        self.query(
            "by",
            "Told apart by these, with commas between: tenant, project, user, pool, node, class, kind, tier, priority, tag, allocation, app_instance, workload, held_as (lease or idle_claim). Unlike units are never added: without class or kind, class is taken as well.",
            grouping,
        )
    }

    /// Cut into stretches.
    fn bucketed(self) -> Self {
        self.query("bucket", "Cut into minutes, hours, days or months.", bucket).query(
            "zone",
            "The IANA time zone in which days and months begin; UTC if absent.",
            text,
        )
    }

    /// Of a project, or of one of its app instances.
    fn of_ceiling(self) -> Self {
        self.query("tenant", "Whose project, where a name is given.", text).query(
            "app_instance",
            "Of this app instance, by number; of the whole project if absent.",
            sequence,
        )
    }

    fn page(self) -> Self {
        self.query("cursor", "Where the page begins: `next_cursor` of the one before.", text).query(
            "limit",
            "How many items at most.",
            page_limit,
        )
    }
}

fn endpoint<T: JsonSchema>(
    id: &'static str,
    method: Method,
    path: &'static str,
    summary: &'static str,
    roles: &'static [Role],
) -> Endpoint {
    let status = 200;
    let answer = Answer::Json(SchemaGenerator::subschema_for::<T>);
    let (query, body, body_optional, or_wait) = (Vec::new(), None, false, None);
    Endpoint { id, method, path, summary, roles, query, body, body_optional, status, answer, or_wait }
}

/// Every endpoint, in the order of the document.
pub fn endpoints() -> Vec<Endpoint> {
    [
        about::endpoints(),
        tenancy::endpoints(),
        capacity::endpoints(),
        quotas::endpoints(),
        books::endpoints(),
        prices::endpoints(),
        leases::endpoints(),
        allocations::endpoints(),
        access::endpoints(),
        journal::endpoints(),
        operation::endpoints(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Role::Auditor;
    use std::collections::BTreeSet;

    #[test]
    fn ids_and_routes_are_unique() {
        let all = endpoints();
        let ids: BTreeSet<_> = all.iter().map(|e| e.id).collect();
        let routes: BTreeSet<_> = all.iter().map(|e| (e.method.word(), e.path)).collect();
        assert_eq!((ids.len(), routes.len()), (all.len(), all.len()));
    }

    #[test]
    fn auditors_change_nothing() {
        for endpoint in endpoints().iter().filter(|e| e.is_mutation()) {
            assert!(!endpoint.roles.contains(&Auditor), "{}", endpoint.id);
            assert!(!endpoint.roles.is_empty(), "{}: a change by nobody", endpoint.id);
        }
    }
}
