//! The OpenAPI 3.1 document, generated from the table of endpoints and the schemas of the types.

mod words;

use crate::endpoint::examples::add_examples;
use crate::endpoint::{Answer, ENDPOINTS, Endpoint};
use crate::problem::{PROBLEM_JSON, Problem};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

const ABOUT: &str = "\
Leasehold keeps the books of a shared cluster. Capacity is held by leases with a deadline, and every decision is recorded durably \
before it is answered. Instants are RFC 3339 in UTC, exact to the nanosecond. Lengths of time are written like `10m`, \
quantities like `8`, `500m`, `80GiB` or `1/7`. Objects can be referred to by name or by number; leases are `lease-3` and \
allocations `alloc-17`, and leases also have an ID of 128 bits, `uid`, which is accepted wherever a lease is named. PATCH \
changes the fields that are given and PUT replaces, except that PUT of a tenant changes as PATCH does. Lists are read with \
`cursor`, which takes `next_cursor` of the page before. Errors are RFC 9457 problems with a stable `code`, and their \
amounts have a `unit`. Objects that the token may not see are answered with 404, as if they did not exist.";

/// The document that the daemon serves. A test compares it with the checked-in copy.
pub fn openapi() -> Value {
    let mut generator =
        SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into()).into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in ENDPOINTS {
        let operation = operation(endpoint, &mut generator);
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method.word().to_lowercase()] = operation;
    }
    generator.subschema_for::<Problem>();
    let mut schemas = generator.take_definitions(true);
    schemas.sort_keys();
    add_examples(&mut schemas);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Leasehold",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    });
    words::join_words(&mut document);
    document
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": endpoint.id,
        "summary": endpoint.summary,
        "tags": [endpoint.tag()],
        "responses": responses(endpoint, generator),
    });
    if endpoint.roles.is_empty() {
        operation["security"] = json!([]);
    } else {
        let roles: Vec<&str> = endpoint.roles.iter().map(|role| role.word()).collect();
        operation["description"] = format!("Roles: {}.", roles.join(", ")).into();
    }
    let parameters = parameters(endpoint, generator);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = endpoint.body {
        operation["requestBody"] = json!({
            "required": !endpoint.body_optional,
            "content": { "application/json": { "schema": body(generator) } },
        });
    }
    operation
}

/// Describes a parameter in a path.
fn path_parameter(name: &str) -> &'static str {
    match name {
        "tenant" | "project" | "user" | "class" | "pool" | "node" | "webhook" => "Name or number.",
        "lease" => "ID of 32 hexadecimal digits, or `lease-` and the number.",
        "allocation" => "Number, or `alloc-` and the number.",
        "card" => "Number, or `built-in`.",
        "entry" => {
            "ID of 32 hexadecimal digits, or `entry-`, the sequence number of its record and its position in it."
        }
        "month" => "Month in UTC, such as `2026-11`.",
        "number" => "Number of the invoice or credit note, such as `INV-000012`.",
        "code" => "Code of a problem.",
        "sequence" => "Sequence number of the record.",
        _ => "Number.",
    }
}

fn parameters(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Vec<Value> {
    let in_path = endpoint.path_parameters().map(|name| {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 128 });
        let description = path_parameter(name);
        json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
    });
    let mut all: Vec<Value> = in_path.collect();
    for query in endpoint.query() {
        let schema = (query.schema)(generator);
        let (description, required) = (query.about, query.required);
        all.push(json!({ "name": query.name, "in": "query", "required": required, "description": description, "schema": schema }));
    }
    if endpoint.is_mutation() {
        all.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "Makes it safe to send the request again: the same key with the same payload returns the first answer, with another payload 409. The header `Idempotency-Key-Remembered-Until` of the answer says until when the key is certain to be remembered.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[!-~]+$" },
        }));
    }
    all
}

fn responses(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let mut content = match endpoint.answer {
        Answer::Json(schema) => json!({ "application/json": { "schema": schema(generator) } }),
        Answer::Text(media) | Answer::Bytes(media) | Answer::Stream(media) => json!({ media: {} }),
    };
    endpoint.also.iter().for_each(|media| content[*media] = json!({}));
    responses.insert(endpoint.status.to_string(), json!({ "description": "Success.", "content": content }));
    if let Some((status, schema)) = endpoint.or_wait {
        let content = json!({ "application/json": { "schema": schema(generator) } });
        let what = match (status, endpoint.tag()) {
            (202, "deliveries") => "It takes longer, and goes on without the caller.",
            (202, _) => "The request waits for capacity.",
            _ => "It was recorded before, or the results of several.",
        };
        responses.insert(status.to_string(), json!({ "description": what, "content": content }));
    }
    let problem = generator.subschema_for::<Problem>();
    for (status, what) in problems(endpoint) {
        let content = json!({ PROBLEM_JSON: { "schema": problem } });
        responses.insert(status.to_string(), json!({ "description": what, "content": content }));
    }
    responses.into()
}

/// The problems that an endpoint can answer with.
pub(crate) fn problems(endpoint: &Endpoint) -> Vec<(u16, &'static str)> {
    let mut all =
        vec![(400, "The request is malformed."), (408, "The request did not arrive or was not answered in time.")];
    if !endpoint.roles.is_empty() {
        all.push((401, "The token is missing, unknown, expired or revoked."));
        all.push((403, "The role of the token does not allow this."));
        all.push((429, "A rate limit was reached; try again later."));
    }
    if endpoint.path.contains('{') || endpoint.query().next().is_some() || endpoint.body.is_some() {
        all.push((404, "The object does not exist, or the token may not see it."));
    }
    if endpoint.path.contains('{') || endpoint.query().next().is_some() || endpoint.is_mutation() {
        all.push((410, "The records that it needs were moved away or deleted, or lie beyond the end of the journal."));
    }
    if endpoint.body.is_some() {
        all.push((413, "The body is too large."));
        all.push((415, "The body is not JSON."));
    }
    if endpoint.is_mutation() || endpoint.query().next().is_some() {
        all.push((422, "The request is invalid."));
    }
    if endpoint.is_mutation() {
        all.push((409, "The request conflicts with the current state, or was denied."));
        all.push((507, "The disk is full; only reads are possible."));
    } else if matches!(endpoint.tag(), "ledger" | "periods" | "invoices") {
        all.push((409, "The ledger is not open, or the month is closed."));
    }
    all.push((500, "A part of the journal is damaged, or the daemon failed."));
    all.push((503, "The daemon is busy or stopping; try again."));
    all.sort_unstable();
    all
}
