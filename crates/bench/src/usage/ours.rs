//! Our side, in a separate process so that its memory is that of the books: follows the journal, then answers queries.

use super::journal::given_id;
use super::leases::{MONTH, NODES, T0, TENANTS, window};
use crate::scratch;
use leasehold_books::{COMMIT_RECORDS, Dim, Filter, Keeper, LeaseQuestion, Question, TimelineQuestion, Usage};
use leasehold_journal::Journal;
use leasehold_meter::Window;
use leasehold_model::id::CorrelationId;
use leasehold_model::{Instant, LeaseNo, NodeNo, TenantNo};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant as Stopwatch;

const ASKED: &str = "--books-for-bench";

/// Timelines that are asked for.
const TIMELINES: u64 = 2000;

/// The file of the books in a data directory.
pub(super) const BOOKS: &str = "books.redb";

/// In the child: follows the journal, answers the queries, and prints the result on one line.
pub fn answer_if_asked() -> bool {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(ASKED) {
        return false;
    }
    let mut next = || arguments.next().expect("an argument");
    let (folder, windows, seed) = (next(), next(), next());
    let said = answer(Path::new(&folder), windows.parse().expect("a number"), seed.parse().expect("a number"));
    println!("{said}");
    std::io::stdout().flush().expect("the parent listens");
    true
}

/// Runs the child and returns its result.
pub(super) fn ask(folder: &Path, windows: u64, seed: u64) -> Value {
    let program = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(program);
    child.arg(ASKED).arg(folder).args([windows.to_string(), seed.to_string()]).stdout(Stdio::piped());
    let said = child.output().expect("this program starts again");
    assert!(said.status.success(), "our side failed");
    serde_json::from_slice(&said.stdout).expect("one line of JSON")
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a figure");
    line.split_whitespace().nth(1).expect("a figure").parse::<u64>().expect("a number") / 1024
}

fn over((from, to): (u64, u64), dims: &[Dim]) -> Question {
    Question::over(Window::new(Instant::from_secs(from), Instant::from_secs(to)), dims)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Adds an answer to a hash as the peers do: each row as its numbers, in seconds.
fn hash_lines(usage: &Usage, hash: &mut Sha256) {
    for line in usage.lines() {
        assert_eq!(line.amount % 1_000_000_000, 0, "whole seconds");
        let value = (line.amount / 1_000_000_000) as u64;
        [line.key[0], line.class.0.into(), value].iter().for_each(|number| hash.update(number.to_le_bytes()));
    }
}

struct Asked {
    median_s: f64,
    sha256: String,
}

impl From<Asked> for Value {
    fn from(asked: Asked) -> Self {
        json!({ "median_s": asked.median_s, "sha256": asked.sha256 })
    }
}

/// One query over each window; additional windows warm up before.
fn windows(keeper: &Keeper, count: u64, seed: u64, shape: impl Fn((u64, u64)) -> Question) -> Asked {
    let mut hash = Sha256::new();
    let mut times = Vec::new();
    for k in (count..count + 8).chain(0..count) {
        let question = shape(window(seed, k));
        let began = Stopwatch::now();
        let usage = keeper.books.usage(&question).expect("an answer");
        let spent = began.elapsed().as_secs_f64();
        if k < count {
            times.push(spent);
            hash_lines(&usage, &mut hash);
        }
    }
    Asked { median_s: median(times), sha256: leasehold_model::hex::encode(&hash.finalize()) }
}

/// The leases on a node at an instant, for many nodes and instants: the slowest answer, and the number of leases.
fn lease_lists(keeper: &Keeper, count: u64, seed: u64) -> (f64, usize) {
    let (mut slowest, mut listed) = (0f64, 0);
    for k in 0..count {
        let at = Instant::from_secs(window(seed, k).0);
        let node = NodeNo(u32::try_from(k * 7919 % u64::from(NODES)).expect("a node"));
        let filter = Filter { node: Some(node), ..Filter::default() };
        let at = Some(Window::new(at, Instant(at.0 + 1)));
        let question = LeaseQuestion { filter, window: at, limit: 1000, ..LeaseQuestion::default() };
        let began = Stopwatch::now();
        let page = keeper.books.leases(&question, |_| true).expect("an answer");
        slowest = slowest.max(began.elapsed().as_secs_f64());
        listed += page.leases.len();
    }
    (slowest, listed)
}

/// Timelines of single IDs, given ones and derived ones in turn: the 99th percentile, the slowest, and all steps.
fn timelines(keeper: &Keeper, questions: u64) -> (f64, f64, usize) {
    let (mut times, mut steps) = (Vec::new(), 0);
    let leases = keeper.books.closed();
    for k in 0..questions {
        // Spread over the whole history, in no order.
        let lease = (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % leases;
        let lease = if k.is_multiple_of(2) { lease / 16 * 16 } else { lease / 16 * 16 + 1 };
        let (id, derived) = match given_id(lease) {
            Some(id) => (id, None),
            None => {
                let (row, _) = keeper.books.lease(LeaseNo(lease)).expect("an answer").expect("a lease");
                (0, Some(row.life.sequence))
            }
        };
        let question = TimelineQuestion { id: CorrelationId(id), derived, tenant: None, after: None, limit: 100 };
        let began = Stopwatch::now();
        let told = keeper.books.timeline(&question, |_, _| true).expect("an answer").expect("a timeline");
        times.push(began.elapsed().as_secs_f64());
        steps += told.steps.len();
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() * 99 / 100], times[times.len() - 1], steps)
}

fn answer(folder: &Path, count: u64, seed: u64) -> Value {
    let journal = scratch::open(folder);
    let (mut keeper, _) =
        Keeper::open(&folder.join(BOOKS), &*journal, scratch::local().secret.books()).expect("the books open");
    let began = Stopwatch::now();
    let size = journal.head().size;
    while keeper.books.size() < size {
        keeper.follow(&*journal, COMMIT_RECORDS).expect("the books follow");
        keeper.commit(&*journal).expect("the books are kept");
    }
    let follow_s = began.elapsed().as_secs_f64();
    drop(keeper);
    // As after a restart: everything is read from the file.
    let began = Stopwatch::now();
    let (keeper, _) =
        Keeper::open(&folder.join(BOOKS), &*journal, scratch::local().secret.books()).expect("the books open");
    let open_s = began.elapsed().as_secs_f64();
    let month = (T0, T0 + MONTH);

    let by_payer = windows(&keeper, count, seed, |window| over(window, &[Dim::Tenant]));
    let of_tenant = |tenant: u32| {
        windows(&keeper, count, seed, move |window| {
            let mut question = over(window, &[Dim::Tenant]);
            question.filter.tenant = Some(TenantNo(tenant));
            question
        })
    };
    let (tenant0, tenant99) = (of_tenant(0), of_tenant(TENANTS / 10 - 1));
    let mut best = [f64::MAX; 2];
    let mut hashes = [String::new(), String::new()];
    for _ in 0..4 {
        let mut question = over(month, &[Dim::Tenant]);
        question.borders = (0..=MONTH / 3600).map(|hour| Instant::from_secs(T0 + hour * 3600)).collect();
        let began = Stopwatch::now();
        let usage = keeper.books.usage(&question).expect("an answer");
        best[0] = best[0].min(began.elapsed().as_secs_f64());
        let mut hash = Sha256::new();
        for line in usage.lines() {
            let value = (line.amount / 1_000_000_000) as u64;
            let row = [line.key[0], line.class.0.into(), line.bucket.into(), value];
            row.iter().for_each(|number| hash.update(number.to_le_bytes()));
        }
        hashes[0] = leasehold_model::hex::encode(&hash.finalize());
        let began = Stopwatch::now();
        let (peaks, _) = keeper.books.peaks(&over(month, &[Dim::Tenant])).expect("an answer");
        best[1] = best[1].min(began.elapsed().as_secs_f64());
        let mut hash = Sha256::new();
        for line in &peaks {
            let row = [line.key[0], line.class.0.into(), line.peak];
            row.iter().for_each(|number| hash.update(number.to_le_bytes()));
        }
        hashes[1] = leasehold_model::hex::encode(&hash.finalize());
    }
    // This query reads lease by lease instead of using a series.
    let mut hash = Sha256::new();
    let mut times = Vec::new();
    for k in 0..count {
        let question = over(window(seed, k), &[Dim::Node]);
        let began = Stopwatch::now();
        let usage = keeper.books.usage_by_rows(&question).expect("an answer");
        times.push(began.elapsed().as_secs_f64());
        hash_lines(&usage, &mut hash);
    }
    let node = Asked { median_s: median(times), sha256: leasehold_model::hex::encode(&hash.finalize()) };
    let by_series = windows(&keeper, count, seed, |window| over(window, &[Dim::Node]));
    assert_eq!(by_series.sha256, node.sha256, "both ways to the same answer");
    let (lease_list_s, listed) = lease_lists(&keeper, count, seed);
    let (timeline_p99_s, timeline_worst_s, timeline_steps) = timelines(&keeper, TIMELINES);
    let [hourly, peak] = hashes;
    json!({
        "records": size, "closed": keeper.books.closed(), "follow_s": follow_s, "open_s": open_s,
        "disk_bytes": keeper.disk_bytes(), "resident_mib": resident_mib(),
        "window": Value::from(by_payer), "tenant0": Value::from(tenant0), "tenant99": Value::from(tenant99),
        "hourly": { "best_s": best[0], "sha256": hourly }, "peak": { "best_s": best[1], "sha256": peak },
        "node": Value::from(node), "node_series_median_s": by_series.median_s,
        "lease_list_s": lease_list_s, "listed": listed, "timeline_p99_s": timeline_p99_s,
        "timeline_worst_s": timeline_worst_s, "timeline_steps": timeline_steps,
    })
}
