//! What the dashboard says: `/api/v0/nodes?detail=true` and `/api/jobs/`.

use serde::Deserialize;
use serde_json::Number;
use std::collections::BTreeMap;

/// Ray divides resources into ten-thousandths.
pub(crate) const RESOURCE_PARTS: u64 = 10_000;

/// Something that runs for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Unique for ever: what users can name again has its start in it.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) start_ms: u64,
    pub(crate) life: Life,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    /// It ended, and Ray says when.
    Ended {
        end_ms: u64,
    },
    /// It ended, and Ray does not say when.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Head { resources: Resources },
    Worker { resources: Resources, labels: BTreeMap<String, String> },
    Job { submission: String, metadata: BTreeMap<String, String> },
}

/// In ten-thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, Deserialize)]
pub(crate) struct Resources {
    pub(crate) gpus: u64,
    pub(crate) cpus: u64,
}

#[derive(Deserialize)]
struct Nodes {
    result: bool,
    #[serde(default)]
    msg: String,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    result: Page,
}

#[derive(Deserialize)]
struct Page {
    total: u64,
    #[serde(default)]
    partial_failure_warning: Option<String>,
    result: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    node_id: String,
    is_head_node: bool,
    state: String,
    #[serde(default)]
    resources_total: BTreeMap<String, Number>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    start_time_ms: Option<u64>,
    end_time_ms: Option<u64>,
}

#[derive(Deserialize)]
struct Job {
    #[serde(rename = "type")]
    kind: String,
    submission_id: Option<String>,
    status: String,
    start_time: Option<u64>,
    end_time: Option<u64>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
}

/// The nodes; an answer that is not complete is an error, because what it leaves out would count as gone.
pub(crate) fn nodes(text: &[u8]) -> Result<Vec<Seen>, String> {
    let answer: Nodes = serde_json::from_slice(text).map_err(|error| format!("the list of nodes: {error}"))?;
    let page = match answer.data {
        Some(data) if answer.result => data.result,
        _ => return Err(format!("the list of nodes failed: {}", answer.msg)),
    };
    if let Some(warning) = page.partial_failure_warning.filter(|warning| !warning.is_empty()) {
        return Err(format!("the list of nodes is not complete: {warning}"));
    }
    if u64::try_from(page.result.len()) != Ok(page.total) {
        return Err(format!("the list of nodes has {} of {} nodes", page.result.len(), page.total));
    }
    page.result.into_iter().map(node).collect()
}

fn node(node: Node) -> Result<Seen, String> {
    let Node { node_id, is_head_node, state, resources_total, labels, start_time_ms, end_time_ms } = node;
    let amount = |name: &str| resources_total.get(name).map_or(Ok(0), |number| parts(&number.to_string()));
    let resources = Resources { gpus: amount("GPU")?, cpus: amount("CPU")? };
    let start_ms = start_time_ms.filter(|start| *start > 0);
    let start_ms = start_ms.ok_or_else(|| format!("the node {node_id} has no start; ask with detail=true"))?;
    let id = node_id.get(..32).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let id = id.ok_or_else(|| format!("`{node_id}` is not the ID of a node"))?;
    let kind = match is_head_node {
        true => Kind::Head { resources },
        false => Kind::Worker { resources, labels: labels.unwrap_or_default() },
    };
    let life = match (state.as_str(), end_time_ms.filter(|end| *end > 0)) {
        ("ALIVE", _) => Life::Alive,
        (_, Some(end_ms)) => Life::Ended { end_ms },
        (_, None) => Life::Gone,
    };
    Ok(Seen { id: format!("node/{id}"), kind, start_ms, life })
}

/// The submitted jobs. Drivers that were started by hand have no submission, and are not reported.
pub(crate) fn jobs(text: &[u8]) -> Result<Vec<Seen>, String> {
    let jobs: Vec<Job> = serde_json::from_slice(text).map_err(|error| format!("the list of jobs: {error}"))?;
    let submitted = jobs.into_iter().filter(|job| job.kind == "SUBMISSION").filter_map(|job| {
        let Job { submission_id, status, start_time, end_time, metadata, .. } = job;
        // One that waits has no start.
        let (submission, start_ms) = (submission_id?, start_time.filter(|start| *start > 0)?);
        let life = match (status.as_str(), end_time.filter(|end| *end > 0)) {
            ("PENDING", _) => return None,
            ("RUNNING", _) => Life::Alive,
            (_, Some(end_ms)) => Life::Ended { end_ms },
            (_, None) => Life::Gone,
        };
        // A submission ID is whatever a user chose, and can be used again after the job was deleted.
        let id = format!("job/{}-{start_ms}", short(&submission));
        Some(Seen { id, kind: Kind::Job { submission, metadata: metadata.unwrap_or_default() }, start_ms, life })
    });
    Ok(submitted.collect())
}

/// A submission ID that fits into an ID: itself, or a digest of it.
fn short(submission: &str) -> String {
    let plain = submission.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    match plain && (1..=32).contains(&submission.len()) {
        true => submission.to_owned(),
        false => leasehold_adapter_kit::derived(&["ray", submission]),
    }
}

/// A resource in ten-thousandths, without a detour over floats: `2.0`, `0.5`.
fn parts(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not an amount of a resource");
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let padded = format!("{decimals:0<4}");
    let decimals = padded.get(..4).filter(|_| padded.bytes().all(|byte| byte.is_ascii_digit())).ok_or_else(wrong)?;
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let decimals: u64 = decimals.parse().map_err(|_| wrong())?;
    whole.checked_mul(RESOURCE_PARTS).and_then(|whole| whole.checked_add(decimals)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_real_dashboard_said_is_read() {
        let alive = nodes(include_bytes!("../tests/recorded/nodes-alive.json")).unwrap();
        let [head, worker] = &alive[..] else { panic!("{alive:?}") };
        assert_eq!(head.kind, Kind::Head { resources: Resources { gpus: 10_000, cpus: 20_000 } });
        assert_eq!((head.life, head.start_ms), (Life::Alive, 1_794_990_499_903));
        let Kind::Worker { resources, labels } = &worker.kind else { panic!("{worker:?}") };
        assert_eq!((resources.gpus, labels["lender"].as_str()), (20_000, "optics"));
        assert_eq!(worker.id, "node/6168ab420d2f0a16ee7907bb8d2e1241");
        let dead = nodes(include_bytes!("../tests/recorded/nodes-dead.json")).unwrap();
        assert_eq!(dead[1].life, Life::Ended { end_ms: 1_794_990_639_990 });
        let jobs = jobs(include_bytes!("../tests/recorded/jobs.json")).unwrap();
        assert_eq!(jobs[0].id, "job/raysubmit_QbzBeXJZzzyMBsc6-1794990501250");
        assert_eq!(jobs[0].life, Life::Ended { end_ms: 1_794_990_507_465 });
    }

    #[test]
    fn answers_that_leave_something_out_are_errors() {
        let recorded = include_str!("../tests/recorded/nodes-alive.json");
        for (from, to, why) in [
            ("\"total\": 2", "\"total\": 3", "2 of 3"),
            ("\"partial_failure_warning\": \"\"", "\"partial_failure_warning\": \"timeout\"", "not complete: timeout"),
            ("\"result\": true", "\"result\": false", "failed"),
            ("\"start_time_ms\": 1794990499903", "\"start_time_ms\": null", "has no start"),
        ] {
            let error = nodes(recorded.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn resources_are_exact() {
        for (text, expected) in [("2.0", 20_000), ("0.5", 5_000), ("8", 80_000), ("0.0001", 1)] {
            assert_eq!(parts(text), Ok(expected));
        }
        assert!(parts("-1.0").is_err() && parts("1e3").is_err() && parts("1.x").is_err());
    }

    #[test]
    fn a_submission_id_of_any_kind_fits() {
        assert_eq!(short("raysubmit_QbzBeXJZzzyMBsc6"), "raysubmit_QbzBeXJZzzyMBsc6");
        for odd in ["", "a b", "x".repeat(33).as_str(), "\u{202e}"] {
            assert_eq!(short(odd).len(), 36);
        }
    }
}
