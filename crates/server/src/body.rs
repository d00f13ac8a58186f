//! Reading a body: the value, or that it is not JSON, or where in it something stands that does not fit.

use leasehold_api::{Problem, codes};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_path_to_error::{Path, Segment};

/// The body as what the endpoint takes.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        // Read once more for the path; what fits does not pay for it.
        let again = serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_slice(bytes));
        let field = again.err().map(|again| field(again.path(), &error.to_string())).unwrap_or_default();
        problem(bytes, &error, &field)
    })
}

fn problem(bytes: &[u8], error: &serde_json::Error, field: &str) -> Problem {
    // A number where a word belongs is called a syntax error, too: what is well formed is not one.
    let well_formed =
        error.is_data() || std::str::from_utf8(bytes).is_ok() && serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
    if !well_formed {
        return codes::BAD_JSON.problem(format!("The body is not JSON: {error}."));
    }
    let text = error.to_string();
    let what = if error.is_data() { text.as_str() } else { "it cannot have that value" };
    if field.is_empty() {
        return codes::BAD_BODY.problem(format!("The body is not what the endpoint takes: {what}."));
    }
    let detail = format!("The body is not what the endpoint takes, at `{field}`: {what}.");
    codes::BAD_BODY.problem(detail).with("field", field)
}

/// The field that the error is about: where it was noticed, and the name that it says itself.
fn field(path: &Path, text: &str) -> String {
    let mut field = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => field.push_str(&format!("[{index}]")),
            Segment::Map { key: name } | Segment::Enum { variant: name } => step(&mut field, name),
            Segment::Unknown => break,
        }
    }
    let said = ["missing field `", "duplicate field `"];
    if let Some(name) = said.iter().find_map(|said| text.strip_prefix(said)?.split('`').next()) {
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
    use leasehold_api::{Heartbeat, RequestLease, SubmitAllocation};
    use serde::de::DeserializeOwned;

    fn told<T: DeserializeOwned>(body: &str) -> (String, String) {
        let problem = read::<T>(body.as_bytes()).err().expect("a body that does not fit");
        (problem.code, problem.members.get("field").and_then(|field| field.as_str()).unwrap_or("").to_owned())
    }

    fn check<T: DeserializeOwned>(body: &str, code: &str, field: &str) {
        assert_eq!(told::<T>(body), (code.to_owned(), field.to_owned()), "{body}");
    }

    #[test]
    fn what_is_well_formed_is_told_where_it_does_not_fit() {
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
    fn a_key_that_stands_twice_in_a_map_is_refused() {
        let twice = "{\"ttl\": \"1m\", \"asks\": [], \"labels\": {\"gen\": \"b\", \"gen\": \"a\"}}";
        check::<RequestLease>(twice, "bad_body", "labels");
        check::<SubmitAllocation>(&twice.replace("ttl", "walltime"), "bad_body", "labels");
    }

    #[test]
    fn what_is_not_well_formed_is_not_json() {
        for body in ["{", "nonsense", "{\"generation\": 1,}", "{\"generation\": 1} x", "{\"generation\": -}", ""] {
            check::<Heartbeat>(body, "bad_json", "");
        }
    }
}
