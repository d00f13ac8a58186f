//! Decoding request bodies, with errors that name the invalid field.

use crate::strict::Strict;
use leasehold_api::{Problem, codes};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Deserializer;
use serde_path_to_error::{Path, Segment};

/// Decodes the body as the type that the endpoint takes.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    decode(bytes).map_err(|error| {
        // Decoded again to find the path of the error, so that valid bodies do not pay for it.
        let again = serde_path_to_error::deserialize::<_, T>(Strict(&mut Deserializer::from_slice(bytes)));
        let field = again.err().map(|again| field(again.path(), &error.to_string())).unwrap_or_default();
        problem(bytes, &error, &field)
    })
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    let mut deserializer = Deserializer::from_slice(bytes);
    let value = T::deserialize(Strict(&mut deserializer))?;
    deserializer.end()?;
    Ok(value)
}

fn problem(bytes: &[u8], error: &serde_json::Error, field: &str) -> Problem {
    // serde_json also reports a number in place of an enum as a syntax error, so check whether the body is well-formed.
    let well_formed =
        error.is_data() || std::str::from_utf8(bytes).is_ok() && serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
    if !well_formed {
        return codes::BAD_JSON.problem(format!("The body is not valid JSON: {error}."));
    }
    let text = error.to_string();
    let what = if error.is_data() { text.as_str() } else { "invalid value" };
    if field.is_empty() {
        return codes::BAD_BODY.problem(format!("Invalid body: {what}."));
    }
    let detail = format!("Invalid body at `{field}`: {what}.");
    codes::BAD_BODY.problem(detail).with("field", field)
}

/// The path of the invalid field, including the field name in the error message.
fn field(path: &Path, text: &str) -> String {
    let mut field = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => field.push_str(&format!("[{index}]")),
            Segment::Map { key: name } | Segment::Enum { variant: name } => step(&mut field, name),
            Segment::Unknown => break,
        }
    }
    let prefixes = ["missing field `", "duplicate field `"];
    if let Some(name) = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)?.split('`').next()) {
        step(&mut field, name);
    }
    field
}

fn step(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.extend(name.chars().take(64).flat_map(char::escape_debug));
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_api::{Batch, Heartbeat, NewQuota, RequestLease, SubmitAllocation};
    use serde::de::DeserializeOwned;

    fn error<T: DeserializeOwned>(body: &str) -> (String, String) {
        let problem = read::<T>(body.as_bytes()).err().expect("an invalid body");
        (problem.code, problem.members.get("field").and_then(|field| field.as_str()).unwrap_or("").to_owned())
    }

    fn check<T: DeserializeOwned>(body: &str, code: &str, field: &str) {
        assert_eq!(error::<T>(body), (code.to_owned(), field.to_owned()), "{body}");
    }

    #[test]
    fn a_well_formed_body_that_is_invalid_names_the_field() {
        check::<Heartbeat>("{\"generation\": 1, \"condition\": {\"load\": -3}}", "bad_body", "condition.load");
        check::<Heartbeat>("{\"condition\": {\"errors\": 5},\n \"generation\": 1}", "bad_body", "condition.errors");
        check::<Heartbeat>("{\"generation\": \"x\"}", "bad_body", "generation");
        check::<Heartbeat>("{\"condition\": {}}", "bad_body", "generation");
        check::<Heartbeat>("{\"generation\": 1, \"condition\": {\"heat\": 1}}", "bad_body", "condition.heat");
        check::<Heartbeat>("{\"generation\": 1, \"generation\": 2}", "bad_body", "generation");
        let asks =
            "{\"ttl\": \"1m\", \"asks\": [{\"class\": \"a\", \"quantity\": 1}, {\"class\": 7, \"quantity\": 1}]}";
        check::<RequestLease>(asks, "bad_body", "asks[1].class");
        check::<RequestLease>("{\"ttl\": \"1m\", \"asks\": [{\"class\": \"a\"}]}", "bad_body", "asks[0].quantity");
        check::<RequestLease>("[]", "bad_body", "");
    }

    #[test]
    fn an_array_is_not_accepted_where_an_object_is_meant() {
        check::<Heartbeat>("[1]", "bad_body", "");
        check::<RequestLease>("{\"ttl\": \"1m\", \"asks\": [[\"a\", 1]]}", "bad_body", "asks[0]");
        check::<SubmitAllocation>("{\"walltime\": \"1m\", \"asks\": [], \"affinity\": []}", "bad_body", "affinity");
        check::<Batch>("{\"operations\": [[]]}", "bad_body", "operations[0]");
        let quota = |limit: &str| {
            format!("{{\"tenant\": \"a\", \"class\": \"b\", \"measure\": \"quanta\", \"limit\": {limit}}}")
        };
        assert!(read::<NewQuota>(quota("{\"type\": \"hard\", \"limit\": 5}").as_bytes()).is_ok());
        check::<NewQuota>(&quota("[\"hard\", 5]"), "bad_body", "limit");
        check::<NewQuota>(&quota("{\"type\": \"hard\", \"limit\": 5, \"limit\": 6}"), "bad_body", "limit.limit");
        let problem = read::<Heartbeat>(b"[1]").expect_err("an invalid body");
        assert_eq!(problem.detail, "Invalid body: an object is expected here, not an array at line 1 column 1.");
        // Arrays that are meant are arrays.
        assert!(read::<RequestLease>(b"{\"ttl\": \"1m\", \"asks\": [{\"class\": \"a\", \"quantity\": 1}]}").is_ok());
    }

    #[test]
    fn duplicate_keys_in_a_map_are_refused() {
        let twice = "{\"ttl\": \"1m\", \"asks\": [], \"labels\": {\"gen\": \"b\", \"gen\": \"a\"}}";
        check::<RequestLease>(twice, "bad_body", "labels");
        check::<SubmitAllocation>(&twice.replace("ttl", "walltime"), "bad_body", "labels");
    }

    #[test]
    fn a_malformed_body_is_not_json() {
        for body in ["{", "nonsense", "{\"generation\": 1,}", "{\"generation\": 1} x", "{\"generation\": -}", ""] {
            check::<Heartbeat>(body, "bad_json", "");
        }
    }
}
