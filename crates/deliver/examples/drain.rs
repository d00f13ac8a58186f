//! How fast a backlog is delivered to a webhook on loopback: signed requests over real connections, with progress
//! written to a real file. `cargo run --release -p leasehold-deliver --example drain -- 100000`

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use leasehold_deliver::{
    Clock, Deliveries, Event, Guard, Limits, OVERLAP, Page, Parts, SignatureKind, SinkId, SinkSpec, Source,
    SourceError, Store, Webhook, WebhookSecrets,
};
use leasehold_journal::Secret;
use leasehold_model::Instant;
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const KEYS: u64 = 1_000;

struct Backlog(u64);

impl Source for Backlog {
    fn head(&self) -> u64 {
        self.0
    }
    fn read(&self, _: &SinkSpec, from: u64, most: usize) -> Result<Page, SourceError> {
        let next = self.0.min(from + most as u64);
        let event = |sequence: u64| Event {
            sequence,
            position: 0,
            id: format!("evt_{sequence:032x}"),
            kind: "lease.granted".to_owned(),
            order: format!("alloc-{}", sequence % KEYS),
            subject: format!("lease-{sequence}"),
            time: Instant::from_secs(1_770_000_000 + sequence),
            data: serde_json::json!({
                "tenant": "physics", "project": "lattice", "user": "ada", "lease": format!("lease-{sequence}"),
                "node": "node-17", "class": "gpu/h100", "quanta": "8", "expires_at": "2026-03-20T09:46:40Z",
            }),
        };
        Ok(Page { events: (from..next).map(event).collect(), next, overcounted: 0 })
    }
    fn count(&self, _: &SinkSpec, from: u64, to: u64) -> Result<u64, SourceError> {
        Ok(to - from)
    }
    fn due(&self, _: &SinkSpec) -> u64 {
        0
    }
    fn sequence_at(&self, _: Instant) -> Result<u64, SourceError> {
        Ok(0)
    }
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        Instant(u64::try_from(since.as_nanos()).expect("before 2554"))
    }
}

/// What the receiver got, in order.
type Taken = Arc<Mutex<Vec<u64>>>;

async fn take(request: Request<Incoming>, taken: Taken) -> Result<Response<Empty<Bytes>>, Infallible> {
    let id = request.headers().get("webhook-id").and_then(|id| id.to_str().ok()).and_then(|id| id.strip_prefix("evt_"));
    let sequence = id.and_then(|id| u64::from_str_radix(id, 16).ok());
    if let (Some(sequence), Ok(_)) = (sequence, request.into_body().collect().await) {
        taken.lock().expect("no panic").push(sequence);
    }
    let mut answer = Response::new(Empty::new());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    Ok(answer)
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let events = std::env::args().nth(1).map_or(100_000, |text| text.parse().expect("a number of events"));
    let taken = Taken::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
    let counter = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("a socket");
            let counter = Arc::clone(&counter);
            let service = service_fn(move |request| take(request, Arc::clone(&counter)));
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });

    let folder = tempfile::tempdir().expect("a directory");
    let id = SinkId(1);
    let secrets = Arc::new(WebhookSecrets::load(&folder.path().join("webhook-secrets.json")).expect("empty"));
    secrets.rotate(id, SignatureKind::Hmac, SystemClock.now(), OVERLAP).expect("written");
    let guard = Guard { allowed: vec!["127.0.0.0/8".parse().expect("a network")], allow_http: false };
    let limits = Limits::default();
    let webhook = Webhook::new(guard, secrets, &limits, None).expect("made");
    let key = Secret::new([1; 32]).books().clone();
    let (store, opened) = Store::open(&folder.path().join("deliveries.redb"), &key).expect("opened");
    let deliveries = Deliveries::start(Parts {
        source: Arc::new(Backlog(events)),
        transport: Arc::new(webhook),
        store,
        opened,
        clock: Arc::new(SystemClock),
        limits,
        origin: "leasehold://bench".to_owned(),
        on_disabled: Arc::new(|_| {}),
        runtime: tokio::runtime::Handle::current(),
    });
    let started = std::time::Instant::now();
    let spec = SinkSpec {
        id,
        name: "bench".to_owned(),
        tenant: None,
        url,
        events: vec!["*".to_owned()],
        signature: SignatureKind::Hmac,
        created_at_sequence: 0,
        enabled: true,
    };
    deliveries.put(spec).expect("added");
    while (taken.lock().expect("no panic").len() as u64) < events {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let millis = u64::try_from(started.elapsed().as_millis()).expect("short").max(1);
    let status = deliveries.status().remove(0);
    println!("{events} events in {millis} ms: {} a second", events * 1_000 / millis);
    println!("attempts {}, failures {}", status.counters.attempts, status.counters.failures);
    let got = taken.lock().expect("no panic").clone();
    let distinct: BTreeSet<_> = got.iter().collect();
    assert_eq!(distinct.len() as u64, events, "every event arrived once");
    let mut last = HashMap::new();
    let in_order =
        got.iter().all(|sequence| last.insert(sequence % KEYS, sequence).is_none_or(|before| before < sequence));
    assert!(in_order, "the events of each key arrived in order");
    let wake = |what: &str| {
        let (calls, begun) = (10_000_000u32, std::time::Instant::now());
        (0..calls).for_each(|_| deliveries.wake());
        println!("wake {what}: {} ps", begun.elapsed().as_nanos() * 1_000 / u128::from(calls));
    };
    wake("with a sink");
    deliveries.stop().await;
    wake("without sinks");
}
