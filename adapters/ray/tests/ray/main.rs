//! The adapter as a process, a real daemon, and a server in the place of the dashboard that says what a real one said.

#[path = "../../../kit/tests/site/mod.rs"]
mod site;

use leasehold_model::{ControlPlaneScope, Instant, RuntimeBackend};
use serde_json::{Value, json};
use site::{Said, Site};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold-ray");
const ALIVE: &str = include_str!("../recorded/nodes-alive.json");
const DEAD: &str = include_str!("../recorded/nodes-dead.json");
const JOBS: &str = include_str!("../recorded/jobs.json");
const HOUR_MS: u64 = 3_600_000;

/// What the dashboard answers; `None` while it is down.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<Option<(String, String)>>>);

impl Board {
    fn says(&self, nodes: &Value, jobs: &Value) {
        *self.0.lock().unwrap() = Some((nodes.to_string(), jobs.to_string()));
    }
    fn is_down(&self) {
        *self.0.lock().unwrap() = None;
    }

    async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let board = self.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a request"));
                }
                let said = board.0.lock().unwrap().clone();
                let head = String::from_utf8(head).expect("text");
                let (status, body) = match said {
                    None => ("500 Down", String::new()),
                    Some((nodes, _)) if head.starts_with("GET /api/v0/nodes?detail=true&limit=") => ("200 OK", nodes),
                    Some((_, jobs)) if head.starts_with("GET /api/jobs/ ") => ("200 OK", jobs),
                    Some(_) => ("404 Not Found", head),
                };
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
                stream.write_all((head + &body).as_bytes()).await.expect("an answer");
            }
        });
        url
    }
}

/// The hour in which the test runs, in milliseconds.
fn this_hour() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    now / 3600 * HOUR_MS
}

/// The recorded nodes: the head up since half past, five hours ago; the worker from four hours ago.
fn nodes(recorded: &str, hour: u64, worker_end: Option<u64>) -> Value {
    let mut answer: Value = serde_json::from_str(recorded).expect("JSON");
    let list = answer["data"]["result"]["result"].as_array_mut().expect("a list");
    list[0]["start_time_ms"] = json!(hour - 5 * HOUR_MS + HOUR_MS / 2);
    list[1]["start_time_ms"] = json!(hour - 4 * HOUR_MS);
    list[1]["end_time_ms"] = json!(worker_end.unwrap_or(0));
    answer
}

/// The recorded job: half an hour within the hour before the last.
fn jobs(hour: u64, end: Value) -> Value {
    let mut answer: Value = serde_json::from_str(JOBS).expect("JSON");
    answer[0]["start_time"] = json!(hour - 2 * HOUR_MS);
    answer[0]["end_time"] = end;
    answer
}

async fn ray(scope: ControlPlaneScope, hour: u64, more: &str) -> (Site, Board) {
    let site = Site::new(RuntimeBackend::Ray, scope, &["uptime_hours", "gpu_hours", "job_hours"]).await;
    let board = Board::default();
    let url = board.serve().await;
    let begin = Instant((hour - 24 * HOUR_MS) * 1_000_000).to_string();
    let section = site.section(&begin, "");
    let own = format!("ray:\n  cluster: c\n  dashboard: {url}\n  workers: [uptime_hours, gpu_hours]\n{more}");
    site.write("config.yaml", &(section + &own));
    (site, board)
}

#[track_caller]
fn ok(said: &Said) {
    assert_eq!(said.code, 0, "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uptime_and_jobs_are_counted_once() {
    let hour = this_hour();
    let more = "  projects: { lattice: optics }\n  lent: { lender=optics: { attachment: 0, allocation: alloc-1 } }\n";
    let (mut site, board) = ray(ControlPlaneScope::Tenant, hour, more).await;
    let (attachment, worker) = site.lend().await;
    assert_eq!(attachment, 0);
    site.reconfigure("alloc-1 ", &format!("{worker} "));
    let half = json!(hour - 2 * HOUR_MS + HOUR_MS / 2);
    // Both ended at the full hour, so that it does not matter when the test runs.
    let mut ended = nodes(DEAD, hour, Some(hour));
    ended["data"]["result"]["result"][0]["state"] = json!("DEAD");
    ended["data"]["result"]["result"][0]["end_time_ms"] = json!(hour);
    board.says(&ended, &jobs(hour, half));
    // The head 4½ hours, the worker 4 hours with two GPUs; the job half an hour, of the project in its metadata.
    let expected = [
        ("lattice gpu_hours reported", "8"),
        ("lattice uptime_hours billed", "4.5"),
        ("lattice uptime_hours reported", "4"),
        ("optics job_hours reported", "0.5"),
    ];
    let expected = expected.map(|(what, quantity)| (what.to_owned(), quantity.to_owned())).into();
    for _ in 0..2 {
        ok(&site.run(PROGRAM, "--once").await);
        assert_eq!(site.totals().await, expected);
    }
    fs::remove_dir_all(site.path("state")).unwrap();
    site.stop_daemon().await;
    let down = site.run(PROGRAM, "--once").await;
    assert!(down.code == 1 && down.err.contains("(unreachable)"), "{down:?}");
    site.start_daemon().await;
    ok(&site.run(PROGRAM, "--once").await);
    assert_eq!(site.totals().await, expected);
    let id = format!("ray/c/node/1abde3bb27a8df4c297801b94819d62b/uptime_hours/{}", hour / HOUR_MS - 1);
    let head = site.client.show_usage_record(&id).query("source", "adapter").query("tenant", "physics");
    let head = head.await.expect("the last full hour of the head");
    assert!(head.control_plane_component && head.quantity == "1", "{head:?}");
    let id = format!("ray/c/node/6168ab420d2f0a16ee7907bb8d2e1241/gpu_hours/{}", hour / HOUR_MS - 1);
    let worker = site.client.show_usage_record(&id).query("source", "adapter").query("tenant", "physics");
    assert_eq!(worker.await.expect("the worker").attachment_id, Some(0));
    let id = id.replace("gpu_hours", "uptime_hours");
    let worker = site.client.show_usage_record(&id).query("source", "adapter").query("tenant", "physics");
    assert!(!worker.await.expect("its uptime").no_submitter, "nobody submits a worker");
    let start = hour - 2 * HOUR_MS;
    let id = format!("ray/c/job/raysubmit_QbzBeXJZzzyMBsc6-{start}/job_hours/{}", start / HOUR_MS);
    let job = site.client.show_usage_record(&id).query("source", "adapter").query("tenant", "physics");
    assert_eq!(job.await.expect("the job").requested_by_user_id.as_deref(), Some("ada"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_while_nobody_looked_ends_where_ray_says_or_where_it_was_seen() {
    let hour = this_hour();
    let (site, board) = ray(ControlPlaneScope::Project, hour, "").await;
    board.is_down();
    let down = site.run(PROGRAM, "--once").await;
    assert!(down.code == 1 && down.err.contains("(dashboard_failed)"), "{down:?}");
    let running = {
        let mut jobs = jobs(hour, Value::Null);
        jobs[0]["status"] = json!("RUNNING");
        jobs
    };
    // Ray says that the worker died a quarter past, two hours ago: 2¼ hours with two GPUs, and the head 4½ hours.
    let end = hour - 2 * HOUR_MS + HOUR_MS / 4;
    board.says(&nodes(DEAD, hour, Some(end)), &running);
    ok(&site.run(PROGRAM, "--once").await);
    let total = async |unit: &str| site.totals().await[&format!("lattice {unit} billed")].clone();
    let seen: Value = serde_json::from_slice(&fs::read(site.path("state/state.json")).unwrap()).unwrap();
    let head = seen["memory"]["things"]["node/1abde3bb27a8df4c297801b94819d62b"]["until_ms"].as_u64();
    // An hour may have ended since the test began.
    let more = (head.expect("it was seen") - hour) / HOUR_MS;
    assert_eq!(total("job_hours").await, (2 + more).to_string());
    assert_eq!(total("gpu_hours").await, "4.5");
    assert_eq!(total("uptime_hours").await, format!("{}.75", 6 + more));
    // The job is gone, and nobody says when it ended: it is billed up to the last sighting, once.
    let job = format!("job/raysubmit_QbzBeXJZzzyMBsc6-{}", hour - 2 * HOUR_MS);
    let until = seen["memory"]["things"][&job]["until_ms"].as_u64().expect("it was seen");
    board.says(&nodes(DEAD, hour, Some(end)), &json!([]));
    let thousandths = u128::from(until - (until / HOUR_MS * HOUR_MS)) * 1_000_000_000;
    let rest = (thousandths + 1_800_000) / u128::from(HOUR_MS);
    let whole = (until / HOUR_MS * HOUR_MS - (hour - 2 * HOUR_MS)) / HOUR_MS;
    for _ in 0..2 {
        ok(&site.run(PROGRAM, "--once").await);
        let expected = format!("{whole}.{rest:09}");
        let expected = expected.trim_end_matches('0').trim_end_matches('.').to_owned();
        assert_eq!(total("job_hours").await, expected);
    }
    // An answer that leaves something out is no answer.
    let mut partial = nodes(ALIVE, hour, None);
    partial["data"]["result"]["total"] = json!(3);
    board.says(&partial, &running);
    let said = site.run(PROGRAM, "--once").await;
    assert!(said.code == 1 && said.err.contains("(dashboard_unreadable)"), "{said:?}");
}
