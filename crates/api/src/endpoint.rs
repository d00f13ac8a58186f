//! The endpoints. The server's routes and access checks, the OpenAPI document, the client's methods and the access
//! tests are all made from the table in `table.rs`, which declares each endpoint once.

pub(crate) mod examples;
mod parameter;
mod roles;
mod schemas;
#[macro_use]
mod table;

use leasehold_model::Role;
use schemars::{Schema, SchemaGenerator};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    /// Replaces an object.
    Put,
    /// Changes the fields that are given.
    Patch,
    Delete,
}

impl Method {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Generates the schema of a type.
pub type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// The answer of an endpoint on success.
#[derive(Clone, Copy)]
pub enum Answer {
    Json(MakeSchema),
    /// Text of this media type.
    Text(&'static str),
    /// Bytes of this media type.
    Bytes(&'static str),
    /// Text of this media type, sent until the caller disconnects.
    Stream(&'static str),
}

/// A parameter in the query string.
#[derive(Clone, Copy)]
pub struct Query {
    pub name: &'static str,
    pub about: &'static str,
    pub schema: MakeSchema,
    pub required: bool,
}

/// The media types of a CloudEvent, and of several.
pub const CLOUD_EVENT: &str = "application/cloudevents+json";
pub const CLOUD_EVENTS: &str = "application/cloudevents-batch+json";

pub struct Endpoint {
    /// Stable; the OpenAPI operation id.
    pub id: &'static str,
    pub method: Method,
    pub path: &'static str,
    pub summary: &'static str,
    /// Roles that may call it; what they see of it is decided by the handler. Empty if no token is needed.
    pub roles: &'static [Role],
    /// In the groups that the row of the table names.
    query: &'static [&'static [Query]],
    pub body: Option<MakeSchema>,
    /// A request without a body means the same as one with `{}`.
    pub body_optional: bool,
    pub status: u16,
    pub answer: Answer,
    /// Further media types of the answer, which a query parameter selects.
    pub also: &'static [&'static str],
    /// Status and answer if the request has to wait.
    pub or_wait: Option<(u16, MakeSchema)>,
}

impl Endpoint {
    /// Whether it changes state and therefore takes an `Idempotency-Key`.
    pub fn is_mutation(&self) -> bool {
        self.method != Method::Get
    }

    /// Whether it can be repeated without an `Idempotency-Key`, because repeating it changes nothing (SEMANTICS 11).
    pub fn is_idempotent(&self) -> bool {
        let without_key =
            [by_id::renew_lease, by_id::release_lease, by_id::lease_ready, by_id::report_activity, by_id::record_usage];
        self.method == Method::Get || without_key.iter().any(|endpoint| endpoint.id == self.id)
    }

    /// Media types beside JSON in which it takes a body.
    pub fn also_taken(&self) -> &'static [&'static str] {
        match self.id {
            "record_usage" => &[CLOUD_EVENT, CLOUD_EVENTS],
            _ => &[],
        }
    }

    /// The first part of its path, for grouping.
    pub fn tag(&self) -> &'static str {
        let rest = self.path.strip_prefix("/api/v1/").unwrap_or("operation");
        rest.split(['/', '.']).next().unwrap_or(rest)
    }

    /// Its parameters in the query string.
    pub fn query(&self) -> impl Iterator<Item = &'static Query> {
        self.query.iter().copied().flatten()
    }

    /// The names between braces in its path.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

const fn first<T: Copy>(of: &[T]) -> Option<T> {
    match of {
        [first, ..] => Some(*first),
        [] => None,
    }
}

macro_rules! schema {
    ($of:ident) => {
        SchemaGenerator::subschema_for::<$of> as MakeSchema
    };
}

macro_rules! query {
    (($name:ident $about:literal $schema:ident $($required:ident)?)) => {
        &[Query {
            name: stringify!($name),
            about: $about,
            schema: schemas::$schema,
            required: <[&str]>::len(&[$(stringify!($required))?]) > 0,
        }]
    };
    (($name:ident $constant:ident)) => {
        parameter::$constant
    };
    ($constant:ident) => {
        parameter::$constant
    };
}

macro_rules! answer {
    (Text $media:literal) => {
        Answer::Text($media)
    };
    (Bytes $media:literal) => {
        Answer::Bytes($media)
    };
    (Stream $media:literal) => {
        Answer::Stream($media)
    };
    ($of:ident) => {
        Answer::Json(schema!($of))
    };
}

macro_rules! endpoints {
    ($($id:ident {
        $summary:literal $method:ident $path:literal $({$place:ident} $($tail:literal)?)? for $roles:ident
        $(query[$($query:tt)*])? $(body $body:ident $(or $none:ident)?)?
        => $status:literal $answer:ident $($media:literal)? $(also $($also:literal)+)? $(or $wait_status:literal $wait:ident as $either:ident)?
    })*) => {
        /// Each endpoint under its id.
        #[allow(non_upper_case_globals, reason = "an endpoint is named by its id, as its handler and its call are")]
        pub mod by_id {
            use super::*;
            use crate::*;

            $(
                #[doc = $summary]
                pub const $id: &Endpoint = &Endpoint {
                    id: stringify!($id),
                    method: Method::$method,
                    path: concat!($path $(, "{", stringify!($place), "}" $(, $tail)?)?),
                    summary: $summary,
                    roles: roles::$roles,
                    query: &[$($(query!($query)),*)?],
                    body: first(&[$(schema!($body))?]),
                    body_optional: <[&str]>::len(&[$($(stringify!($none))?)?]) > 0,
                    status: $status,
                    answer: answer!($answer $($media)?),
                    also: &[$($($also),+)?],
                    or_wait: first(&[$(($wait_status, schema!($wait)))?]),
                };
            )*
        }

        /// Every endpoint, in the order of the document.
        pub const ENDPOINTS: &[&Endpoint] = &[$(by_id::$id),*];
    };
}

for_each_endpoint!(endpoints);

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_model::Role::Auditor;
    use std::collections::BTreeSet;

    #[test]
    fn ids_and_routes_are_unique() {
        let all = ENDPOINTS;
        let ids: BTreeSet<_> = all.iter().map(|e| e.id).collect();
        let routes: BTreeSet<_> = all.iter().map(|e| (e.method.word(), e.path)).collect();
        assert_eq!((ids.len(), routes.len()), (all.len(), all.len()));
    }

    #[test]
    fn auditors_change_nothing() {
        for endpoint in ENDPOINTS.iter().filter(|e| e.is_mutation()) {
            assert!(!endpoint.roles.contains(&Auditor), "{}", endpoint.id);
            assert!(!endpoint.roles.is_empty(), "{}: a change by nobody", endpoint.id);
        }
    }
}
