//! Deliveries to webhooks: what they cost those who ask for leases, how fast a backlog is delivered, and what memory it
//! needs.

use super::batches;
use super::child::Served;
use super::fetch::fetch_whole;
use super::load::{self, Loaded, Until};
use super::request::{answer, post};
use super::singles::Round;
use crate::Outcome;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as Stopwatch};
use tokio::sync::Notify;

const HOOKS: &str = "/api/v1/deliveries/webhooks";
/// Each lease of a batch is granted, started, renewed, released and completed.
const EVENTS_PER_LEASE: u64 = 5;
const EVENTS_PER_ROUND: u64 = batches::OPERATIONS * batches::CONNECTIONS * EVENTS_PER_LEASE;

const CONNECTIONS: u64 = 64;
const WEBHOOKS: u32 = 8;
const PAIRS: usize = 6;
const MEASURED: Duration = Duration::from_secs(3);

const DRAINED: u64 = 100_000;
const DRAINED_MIN: f64 = 5_000.0;

const FEW: u64 = 10_000;
const MANY: u64 = 1_000_000;
const GROWTH_MIB_MAX: f64 = 32.0;

/// The answer of a request that makes or changes something.
fn call(served: &Served, method: &str, path: &str, body: &str) -> String {
    let request = String::from_utf8(post(path, &served.token, None, body)).expect("text");
    let request = request.replacen("POST", method, 1);
    let whole = fetch_whole(served.address(), request.as_bytes());
    let (status, body, _) = answer(&whole).expect("a whole answer");
    let body = String::from_utf8_lossy(body).into_owned();
    assert!((200..300).contains(&status), "{method} {path}: {status} {body}");
    body
}

/// Makes a webhook for all events of all tenants.
fn hook(served: &Served, name: &str, port: u16) {
    let new = format!(r#"{{"name":"{name}","url":"http://127.0.0.1:{port}/hook"}}"#);
    call(served, "POST", HOOKS, &new);
}

/// A port on which nothing listens.
fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

fn load(served: &Served, seed: u64, length: Duration) -> Loaded {
    let clients = (seed..seed + CONNECTIONS).map(|n| Round::new(&served.token, n)).collect();
    load::run(served.address(), clients, Until::Passed(length))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    f64::midpoint(figures[figures.len() / 2], figures[(figures.len() - 1) / 2])
}

/// Operations with leases on two daemons in turn: one with webhooks of which none can be reached, one without any. Each
/// pair is measured within seconds, and the median of their ratios counts: machines differ from minute to minute.
pub(crate) fn leases() -> Vec<Outcome> {
    let (without, with) = (Served::start(), Served::start_with_deliveries());
    (0..WEBHOOKS).for_each(|n| hook(&with, &format!("down-{n}"), closed_port()));
    for served in [&without, &with] {
        load(served, 1, Duration::from_secs(1));
    }
    let (mut rates, mut p99s) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let seed = 1_000 * (pair as u64 + 1);
        let run = |served: &Served| {
            let loaded = load(served, seed, MEASURED);
            (loaded.per_second(), loaded.percentile(990))
        };
        // In turn, so that neither always comes first.
        let (base, ours) = if pair % 2 == 0 {
            let base = run(&without);
            (base, run(&with))
        } else {
            let ours = run(&with);
            (run(&without), ours)
        };
        eprintln!("  {:.0}/s and {:.0} us without webhooks, {:.0}/s and {:.0} us with", base.0, base.1, ours.0, ours.1);
        rates.push((ours.0, base.0));
        p99s.push((ours.1, base.1));
    }
    let of = |pairs: &[(f64, f64)], pick: fn(&(f64, f64)) -> f64| median(pairs.iter().map(pick).collect());
    let ratio = |pairs: &[(f64, f64)]| of(pairs, |pair| pair.0 / pair.1);
    let outcome = |name, unit, pairs: &[(f64, f64)], goal, is_met: fn(f64) -> bool| Outcome {
        name,
        value: of(pairs, |pair| pair.0),
        unit,
        baseline: Some(of(pairs, |pair| pair.1)),
        ratio: Some(ratio(pairs)),
        goal,
        pass: Some(is_met(ratio(pairs))),
        note: format!("{WEBHOOKS} webhooks for all events, none reachable; medians of {PAIRS} pairs in turn"),
    };
    vec![
        outcome("deliver.lease_throughput", "1/s", &rates, ">= 0.95", |ratio| ratio >= 0.95),
        outcome("deliver.lease_p99", "us", &p99s, "<= 1.05", |ratio| ratio <= 1.05),
    ]
}

/// What arrived: IDs and subjects, in order, and when the first and the last came.
#[derive(Default)]
struct Arrived {
    events: Vec<(String, String)>,
    times: Option<(Stopwatch, Stopwatch)>,
}

struct Receiver {
    arrived: Mutex<Arrived>,
    news: Notify,
}

async fn take(request: Request<Incoming>, receiver: Arc<Receiver>) -> Result<Response<String>, Infallible> {
    let id = request.headers().get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let subject = text.split(r#""subject":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let now = Stopwatch::now();
    let mut arrived = receiver.arrived.lock().expect("no panic");
    arrived.events.push((id, subject.to_owned()));
    arrived.times = Some((arrived.times.map_or(now, |times| times.0), now));
    if arrived.events.len() as u64 == DRAINED {
        receiver.news.notify_one();
    }
    let mut answer = Response::new(String::new());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    Ok(answer)
}

/// A backlog goes all the way: from the journal, with what the books know, signed, over connections on loopback.
pub(crate) fn drain() -> Vec<Outcome> {
    let served = Served::start_with_deliveries();
    hook(&served, "drain", closed_port());
    call(&served, "POST", &format!("{HOOKS}/drain/disable"), "{}");
    batches::load(&served, 1, DRAINED / EVENTS_PER_ROUND);
    served.wait_for_books();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    let receiver = Arc::new(Receiver { arrived: Mutex::default(), news: Notify::new() });
    let listening = Arc::clone(&receiver);
    let port = runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("a socket");
                let receiver = Arc::clone(&listening);
                let service = service_fn(move |request| take(request, Arc::clone(&receiver)));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        port
    });
    let used = served.processor_seconds();
    let began = Stopwatch::now();
    // A change enables it.
    call(&served, "PATCH", &format!("{HOOKS}/drain"), &format!(r#"{{"url":"http://127.0.0.1:{port}/hook"}}"#));
    let all = async { tokio::time::timeout(Duration::from_secs(300), receiver.news.notified()).await };
    runtime.block_on(all).expect("100,000 events arrive within five minutes");
    let arrived = std::mem::take(&mut *receiver.arrived.lock().expect("no panic"));
    let (first, last) = arrived.times.expect("something arrived");
    let used = served.processor_seconds() - used;
    eprintln!(
        "  the first after {} ms, the last after {} ms; {used:.1} s of the daemon's processor time",
        (first - began).as_millis(),
        (last - began).as_millis()
    );
    check(&arrived.events);
    let per_second = DRAINED as f64 / (last - began).as_secs_f64();
    vec![
        Outcome::at_least("deliver.drain", per_second, "1/s", ">= 5000", DRAINED_MIN)
            .note("100,000 events from the journal, each signed and acknowledged, to one webhook on loopback"),
    ]
}

/// Every event came once, and for each subject in order of the records.
fn check(events: &[(String, String)]) {
    let distinct: HashSet<&str> = events.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(distinct.len() as u64, DRAINED, "every event arrived once");
    let mut last: HashMap<&str, &str> = HashMap::new();
    for (id, subject) in events {
        // The sequence of the record is at the end of an ID.
        let sequence = &id[16..];
        let before = last.insert(subject, sequence);
        assert!(before.is_none_or(|before| before <= sequence), "{subject} is in order");
    }
}

/// How much the memory of a daemon grows between a few undelivered events and a million, beyond that of a daemon without
/// webhooks that does the same.
pub(crate) fn memory() -> Vec<Outcome> {
    let grown = |served: Served, is_delivering: bool| {
        if is_delivering {
            hook(&served, "down", closed_port());
        }
        let resident = |served: &Served| {
            served.wait_for_books();
            served.resident_bytes() / f64::from(1 << 20)
        };
        // Two connections, so that there are not too many.
        batches::load_over(2, &served, 1, FEW / (2 * batches::OPERATIONS * EVENTS_PER_LEASE));
        let few = resident(&served);
        batches::load(&served, 100, MANY / EVENTS_PER_ROUND);
        let many = resident(&served);
        eprintln!("  webhook: {is_delivering}: {few:.0} MiB, then {many:.0} MiB");
        many - few
    };
    let without = grown(Served::start(), false);
    let with = grown(Served::start_with_deliveries(), true);
    vec![Outcome {
        baseline: Some(without),
        ..Outcome::at_most("deliver.memory", with - without, "MiB", "<= 32", GROWTH_MIB_MAX)
            .note("1,000,000 undelivered events, compared with 10,000; beyond a daemon without webhooks")
    }]
}
