//! Webhooks over real connections on loopback.

use crate::receiver::{Receiver, Reply};
use crate::source::{self, START, event, spec};
use leasehold_deliver::{Deliveries, Parts, Shown, Store, Webhook};
use leasehold_deliver::{
    Guard, Limits, Message, Outcome, SignatureKind, Signer, SinkId, SinkSpec, Transport, WebhookSecrets,
};
use leasehold_journal::Secret;
use leasehold_model::{Instant, Span};
use std::sync::Arc;

const NOW: Instant = Instant::from_secs(START);
const ONE: SinkId = SinkId(1);

struct World {
    _folder: tempfile::TempDir,
    secrets: Arc<WebhookSecrets>,
    shown: Shown,
    webhook: Webhook,
}

fn loopback() -> Guard {
    let networks = ["127.0.0.0/8", "::1/128"];
    Guard { allowed: networks.map(|network| network.parse().expect("a network")).to_vec(), allow_http: false }
}

fn world(guard: Guard, kind: SignatureKind, ca_pem: Option<&str>) -> World {
    let folder = tempfile::tempdir().expect("a directory");
    let secrets = WebhookSecrets::load(&folder.path().join("webhook-secrets.json")).expect("empty");
    let secrets = Arc::new(secrets);
    let shown = secrets.rotate(ONE, kind, NOW, Span::from_secs(60)).expect("written");
    let limits = Limits { timeout: Span::from_millis(300), ..Limits::default() };
    let webhook = Webhook::new(guard, Arc::clone(&secrets), &limits, ca_pem.map(str::as_bytes)).expect("made");
    World { _folder: folder, secrets, shown, webhook }
}

impl World {
    async fn send(&self, sink: &SinkSpec) -> Outcome {
        let message = Message::new(event(7, 0, "lease-3"), "leasehold://test");
        self.webhook.send(sink, &message, NOW).await
    }
    async fn error(&self, url: &str) -> String {
        match self.send(&spec(1, url)).await {
            Outcome::Failed(error) => error,
            answered => panic!("{url}: {answered:?}"),
        }
    }
}

#[tokio::test]
async fn requests_are_signed_cloud_events() {
    let receiver = Receiver::start(None).await;
    let world = world(loopback(), SignatureKind::Hmac, None);
    let sink = spec(1, &receiver.url("/hook?x=1"));
    assert_eq!(world.send(&sink).await, Outcome::Answered { status: 204, retry_after: None });
    let request = receiver.taken().remove(0);
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hook?x=1"));
    assert_eq!(request.header("content-type"), "application/cloudevents+json; charset=utf-8");
    assert_eq!(request.header("webhook-id"), "evt_7_0");
    assert_eq!(request.header("webhook-timestamp"), START.to_string());
    assert_eq!(request.header("host"), receiver.authority());
    let signer = Signer::parse(&world.shown.0).expect("a secret");
    assert_eq!(request.header("webhook-signature"), signer.sign("evt_7_0", START, &request.body));
    let body: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!((body["id"].as_str(), body["type"].as_str()), (Some("evt_7_0"), Some("lease.granted")));
    // During a rotation both sign, the new one first.
    let second = world.secrets.rotate(ONE, SignatureKind::Hmac, NOW, Span::from_secs(60)).expect("written");
    world.send(&sink).await;
    let request = receiver.taken().remove(0);
    let by = |shown: &Shown| Signer::parse(&shown.0).expect("a secret").sign("evt_7_0", START, &request.body);
    assert_eq!(request.header("webhook-signature"), format!("{} {}", by(&second), by(&world.shown)));
    assert_eq!(receiver.connections(), 1, "the connection is kept");
}

#[tokio::test]
async fn answers_are_read_within_limits_and_redirects_are_not_followed() {
    let receiver = Receiver::start(None).await;
    let world = world(loopback(), SignatureKind::Ed25519, None);
    let sink = spec(1, &receiver.url("/"));
    let after = |text: &'static str| Reply { status: 429, retry_after: Some(text), ..Reply::default() };
    for (reply, expected) in [
        (after("7"), Outcome::Answered { status: 429, retry_after: Some(Span::from_secs(7)) }),
        (after("nonsense"), Outcome::Answered { status: 429, retry_after: None }),
        (Reply { status: 302, location: Some("/elsewhere"), ..Reply::default() }, source::answered(302)),
        (Reply { status: 200, body_bytes: 10 << 20, ..Reply::default() }, source::answered(200)),
        (Reply { status: 500, body_bytes: 100, ..Reply::default() }, source::answered(500)),
        // What became of the request is known, whatever becomes of the body.
        (Reply { status: 200, body_bytes: 100, stalls: true, ..Reply::default() }, source::answered(200)),
    ] {
        receiver.reply(reply);
        assert_eq!(world.send(&sink).await, expected);
        assert_eq!(receiver.taken().len(), 1);
    }
    // No answer, and an answer that is lost after the event was taken.
    receiver.reply(Reply { hangs: true, ..Reply::default() });
    assert_eq!(world.send(&sink).await, Outcome::Failed("no answer within 300ms".to_owned()));
    assert_eq!(receiver.taken().len(), 1);
    receiver.reply(Reply { closes: true, ..Reply::default() });
    assert!(matches!(world.send(&sink).await, Outcome::Failed(why) if why.starts_with("the request failed")));
    // A connection that the other side closed while it was unused does not count as a failure.
    receiver.reply(Reply::default());
    assert_eq!(world.send(&sink).await, source::answered(204));
    receiver.close_idle().await;
    assert_eq!(world.send(&sink).await, source::answered(204));
}

#[tokio::test]
async fn addresses_are_checked_and_only_checked_ones_are_connected_to() {
    let receiver = Receiver::start(None).await;
    let strict = world(Guard::default(), SignatureKind::Hmac, None);
    for host in ["127.0.0.1", "localhost", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "0"] {
        for scheme in ["http", "https"] {
            let error = strict.error(&format!("{scheme}://{host}:{}/", receiver.port())).await;
            assert!(error.contains("is not public"), "{host}: {error}");
        }
    }
    assert!(strict.error("ftp://127.0.0.1/").await.contains("neither https"));
    assert!(strict.error("https://no-such-name.invalid/").await.contains("cannot be resolved"));
    assert!(strict.error("http://8.8.8.8/").await.contains("http is not allowed"));
    assert_eq!(receiver.connections(), 0);
    let allowed = world(loopback(), SignatureKind::Hmac, None);
    assert_eq!(allowed.send(&spec(1, &receiver.url("/"))).await, source::answered(204));
    let by_name = format!("http://localhost:{}/", receiver.port());
    assert_eq!(allowed.send(&spec(1, &by_name)).await, source::answered(204));
    assert!(
        allowed.error(&format!("http://127.0.0.1:{}/", crate::receiver::closed_port().await)).await.contains("connect")
    );
    // A sink without a secret sends nothing.
    let Outcome::Failed(error) = allowed.send(&spec(2, &receiver.url("/"))).await else { panic!("sent") };
    assert!(error.contains("no secret"), "{error}");
}

#[tokio::test]
async fn certificates_are_checked_for_the_name() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let pem = made.cert.pem();
    let receiver = Receiver::start(Some(&made)).await;
    let url = format!("https://localhost:{}/", receiver.port());
    let trusting = world(loopback(), SignatureKind::Hmac, Some(&pem));
    assert_eq!(trusting.send(&spec(1, &url)).await, source::answered(204));
    assert_eq!(trusting.send(&spec(1, &url)).await, source::answered(204));
    assert_eq!(receiver.connections(), 1);
    // Another name at the same address, and a certificate that nobody vouches for.
    let error = trusting.error(&format!("https://127.0.0.1:{}/", receiver.port())).await;
    assert!(error.contains("TLS"), "{error}");
    let strange = world(loopback(), SignatureKind::Hmac, None);
    assert!(strange.error(&url).await.contains("TLS"));
    assert_eq!(receiver.taken().len(), 2);
}

/// The whole way: service, signatures, connections, and an endpoint that misbehaves.
#[tokio::test]
async fn everything_arrives_in_order_over_real_connections() {
    // An event out of order would never be followed by the one that is missing.
    let whole = tokio::time::timeout(std::time::Duration::from_secs(120), misbehave_and_recover());
    whole.await.expect("all events in order");
}

async fn misbehave_and_recover() {
    const EVENTS: u64 = 400;
    const KEYS: u64 = 7;
    let receiver = Receiver::start(None).await;
    let World { _folder, webhook, .. } = world(loopback(), SignatureKind::Hmac, None);
    let source = source::memory();
    (0..EVENTS).for_each(|sequence| source.seal(&[&format!("alloc-{}", sequence % KEYS)]));
    let fast = Span::from_millis(1);
    let limits = Limits { backoff_base: fast, backoff_max: fast, retry_after_max: fast, ..Limits::default() };
    let key = Secret::new([1; 32]).books().clone();
    let deliveries = Deliveries::start(Parts {
        source,
        transport: Arc::new(webhook),
        store: Store::in_memory(&key).expect("made"),
        opened: leasehold_deliver::Opened::New,
        clock: Arc::new(source::TestClock(tokio::time::Instant::now())),
        limits,
        origin: "leasehold://test".to_owned(),
        on_disabled: Arc::new(|_| {}),
        runtime: tokio::runtime::Handle::current(),
    });
    deliveries.put(spec(1, &receiver.url("/"))).expect("added");
    let replies = [
        Reply { status: 500, ..Reply::default() },
        Reply { status: 429, retry_after: Some("1"), ..Reply::default() },
        Reply { closes: true, ..Reply::default() },
        Reply { hangs: true, ..Reply::default() },
    ];
    // Each in turn for a few requests, then all is well again.
    let mut taken = Vec::new();
    for reply in replies {
        receiver.reply(reply);
        while taken.len() < 5 {
            tokio::task::yield_now().await;
            taken.extend(receiver.taken());
        }
        taken.clear();
        receiver.reply(Reply::default());
        while taken.len() < 40 {
            tokio::task::yield_now().await;
            taken.extend(receiver.taken());
        }
        taken.clear();
    }
    // From the beginning, so that what arrives can be compared with what was due.
    deliveries.restart_at(ONE, 0).await.expect("moved");
    let mut next = vec![0; usize::try_from(KEYS).expect("few")];
    let mut distinct = std::collections::BTreeSet::new();
    while deliveries.status()[0].lag_events > 0 || (distinct.len() as u64) < EVENTS {
        tokio::task::yield_now().await;
        for request in receiver.taken() {
            let id = request.header("webhook-id");
            let sequence: u64 = id["evt_".len()..id.len() - "_0".len()].parse().expect("a number");
            // One that was on its way may still arrive; after that each key comes in order, from its first event.
            let key = usize::try_from(sequence % KEYS).expect("few");
            if sequence <= next[key] * KEYS + sequence % KEYS {
                next[key] = next[key].max(sequence / KEYS + 1);
                distinct.insert(sequence);
            }
        }
    }
    let status = deliveries.status().remove(0);
    assert_eq!((distinct.len() as u64, status.dead_letters, status.counters.dropped), (EVENTS, 0, 0));
    assert!(status.counters.failures >= 4);
    deliveries.stop().await;
}
