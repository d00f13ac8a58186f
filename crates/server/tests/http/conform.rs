//! Every answer that a test reads is checked against the OpenAPI document.

use crate::schema::Schemas;
use leasehold_api::endpoint::ENDPOINTS;
use leasehold_api::{Endpoint, Method, PROBLEM_JSON};
use serde_json::Value;
use std::sync::LazyLock;

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::new(leasehold_api::openapi()));

/// Answers that any request can get before its endpoint is known.
const OF_ANY_REQUEST: [u16; 6] = [400, 404, 405, 408, 414, 431];

fn is_at(endpoint: &Endpoint, path: &str) -> bool {
    let (wanted, given) = (endpoint.path.split('/'), path.split('/'));
    wanted.clone().count() == given.clone().count()
        && wanted.zip(given).all(|(wanted, given)| wanted == given || wanted.starts_with('{'))
}

/// Partial changes are also served by PUT, for clients of earlier versions.
fn is_served(endpoint: &Endpoint, method: &str) -> bool {
    method == endpoint.method.word() || (method == "PUT" && endpoint.method == Method::Patch)
}

/// Panics unless an endpoint at this path may give this answer. If the method is not known, any of them will do.
pub(crate) fn check(method: Option<&str>, path: &str, status: u16, media: &str, text: &str) {
    let media = media.split(';').next().unwrap_or_default();
    let documented = ENDPOINTS
        .iter()
        .filter(|endpoint| is_at(endpoint, path) && method.is_none_or(|method| is_served(endpoint, method)))
        .filter_map(|endpoint| {
            let operation = &SCHEMAS.document()["paths"][endpoint.path][endpoint.method.word().to_lowercase()];
            operation["responses"][status.to_string()]["content"].get(media)
        });
    let documented: Vec<&Value> = documented.collect();
    let problem = SCHEMAS.document().pointer("/components/schemas/Problem").expect("the schema of problems");
    let problem = Some(problem).filter(|_| media == PROBLEM_JSON && OF_ANY_REQUEST.contains(&status));
    let of = documented.iter().map(|content| content.get("schema")).chain(problem.map(Some));
    let of: Vec<Option<&Value>> = of.collect();
    assert!(!of.is_empty(), "{method:?} {path}: {status} {media} is not documented: {text}");
    let Some(schemas) = of.into_iter().collect::<Option<Vec<_>>>() else {
        return text.lines().filter(|_| media == "application/x-ndjson").for_each(check_record);
    };
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON ({error}): {text}"));
    let wrong: Vec<String> = schemas.iter().filter_map(|schema| SCHEMAS.check(schema, &value).err()).collect();
    assert!(wrong.len() < schemas.len(), "{method:?} {path}: {status} is not what is documented: {wrong:?}: {text}");
}

/// Panics unless the text is a record as the document describes those of its kind.
pub(crate) fn check_record(text: &str) {
    let schema = SCHEMAS.document().pointer("/components/schemas/Record").expect("the schema of records");
    let record = serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON ({error}): {text}"));
    SCHEMAS.check(schema, &record).unwrap_or_else(|why| panic!("a record is not what is documented: {why}: {text}"));
}
