//! Errors of a command, and advice for them.

use crate::problem::Problem;
use leasehold_client::{Client, Error, Json, Page};

/// Why a command failed: an error of the client, or a problem found locally.
pub(super) enum Failed {
    Daemon(Box<Error>),
    Here(Problem),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Daemon(Box::new(error))
    }
}
impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Here(problem)
    }
}

/// The error as a problem; for an unknown name, the existing names are added.
pub(super) async fn explain(client: &Client, json: bool, error: Error) -> Problem {
    // Programs do not need names to choose from.
    let Some(problem) = error.problem().filter(|_| !json) else { return plain(&error) };
    let unknown = problem.members.get("nearest").is_none();
    let names = match problem.code.as_str() {
        "unknown_tenant" if unknown => names(client.list_tenants(), |tenant| tenant.name).await,
        "unknown_class" if unknown => names(client.list_classes(), |class| class.name).await,
        "unknown_pool" if unknown => names(client.list_pools(), |pool| pool.name).await,
        "unknown_node" if unknown => names(client.list_nodes(), |node| node.name).await,
        _ => None,
    };
    let plain = plain(&error);
    match names {
        Some(names) => plain.advice(names),
        None => plain,
    }
}

/// The error as a problem, without further calls.
pub(crate) fn plain(error: &Error) -> Problem {
    let Some(problem) = error.problem() else {
        let text = error.to_string();
        let (what, advice) = text.split_once("; ").unwrap_or((&text, ""));
        return Problem::coded(error.code().to_owned(), what).advice(advice);
    };
    let found = Problem::coded(problem.code.clone(), problem.detail.trim_end_matches('.')).answered(problem);
    // A denial has no ID; it can be looked up only by its record.
    if let Some(sequence) = problem.members.get("sequence").and_then(serde_json::Value::as_u64) {
        return found.advice(format!(
            "recorded as record {sequence}; `leasehold audit replay --sequence {sequence}` shows how it was decided"
        ));
    }
    match (problem.code.as_str(), problem.members.get("nearest").and_then(|near| near.as_str())) {
        ("unauthenticated", _) => {
            found.advice("give a token with --token-file, LEASEHOLD_TOKEN or LEASEHOLD_TOKEN_FILE")
        }
        ("beyond_end", _) => found.advice(
            "if you did not expect this, compare `leasehold audit checkpoint` with one that you kept; then start again \
             without --after",
        ),
        (_, Some(near)) if !problem.detail.contains(near) => found.advice(format!("did you mean {near:?}?")),
        _ => found,
    }
}

/// The existing names, unless there are too many.
async fn names<P: Page>(call: leasehold_client::Call<Json<P>>, name: impl Fn(P::Item) -> String) -> Option<String> {
    const FEW: usize = 12;
    let names: Vec<String> = call.query("limit", FEW + 1).pages().next().await.ok()??.into_iter().map(name).collect();
    match names.len() {
        0 => Some("there are none yet".into()),
        1..=FEW => Some(format!("existing names: {}", names.join(", "))),
        _ => None,
    }
}
