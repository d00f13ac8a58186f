//! What is wrong with a body: that it is not JSON, or where in it something stands that does not fit.

use leasehold_api::{Problem, codes};
use serde::de::IgnoredAny;

/// The problem of a body that could not be read as what the endpoint takes.
pub(crate) fn unfit(bytes: &[u8], error: &serde_json::Error) -> Problem {
    // A number where a word belongs is called a syntax error, too: what is well formed is not one.
    let well_formed =
        error.is_data() || std::str::from_utf8(bytes).is_ok() && serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
    if !well_formed {
        return codes::BAD_JSON.problem(format!("The body is not JSON: {error}."));
    }
    let text = error.to_string();
    let what = if error.is_data() { text.as_str() } else { "it cannot have that value" };
    let field = field(bytes, error, &text);
    if field.is_empty() {
        return codes::BAD_BODY.problem(format!("The body is not what the endpoint takes: {what}."));
    }
    let detail = format!("The body is not what the endpoint takes, at `{field}`: {what}.");
    codes::BAD_BODY.problem(detail).with("field", field)
}

/// The field that the error is about, as far as it tells: where it was noticed, and the name that it says itself.
fn field(bytes: &[u8], error: &serde_json::Error, text: &str) -> String {
    let before: usize =
        bytes.split_inclusive(|b| *b == b'\n').take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let mut path = path_at(bytes, before + error.column());
    let said = ["missing field `", "unknown field `", "duplicate field `"];
    let name = said.iter().find_map(|said| text.strip_prefix(said)?.split('`').next());
    if let Some(name) = name {
        step(&mut path, name);
    }
    path
}

fn step(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.extend(name.chars().take(64).flat_map(char::escape_debug));
}

/// An object or an array that is open, and which of its members is being read.
enum Open {
    Object { key: Option<String>, reading: bool },
    Array { place: usize },
}

/// The path to the value of well-formed JSON that holds the byte before `end`, such as `asks[0].class`.
fn path_at(bytes: &[u8], end: usize) -> String {
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while at < end.min(bytes.len()) {
        let begin = at;
        at += 1;
        match (bytes[begin], open.last_mut()) {
            (b'{', _) => open.push(Open::Object { key: None, reading: false }),
            (b'[', _) => open.push(Open::Array { place: 0 }),
            (b'}' | b']', _) => {
                open.pop();
            }
            (b'"', last) => {
                at = end_of_string(bytes, at);
                if let Some(Open::Object { key, reading: false }) = last {
                    *key = serde_json::from_slice(&bytes[begin..at]).ok();
                }
            }
            (b':', Some(Open::Object { reading, .. })) => *reading = true,
            // What is noticed at a comma is about what stands before it.
            (b',', _) if at == end => {}
            (b',', Some(Open::Object { reading, .. })) => *reading = false,
            (b',', Some(Open::Array { place })) => *place += 1,
            _ => {}
        }
    }
    let mut path = String::new();
    for one in &open {
        match one {
            Open::Object { key: Some(key), reading: true } => step(&mut path, key),
            Open::Object { .. } => break,
            Open::Array { place } => path.push_str(&format!("[{place}]")),
        }
    }
    path
}

/// Where a string ends whose first character stands at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_api::{Heartbeat, RequestLease, SubmitAllocation};
    use serde::de::DeserializeOwned;

    fn told<T: DeserializeOwned>(body: &str) -> (String, String) {
        let error = serde_json::from_slice::<T>(body.as_bytes()).err().expect("a body that does not fit");
        let problem = unfit(body.as_bytes(), &error);
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
