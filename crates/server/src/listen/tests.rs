use super::*;
use axum::Router;
use axum::body::Bytes;
use axum::extract::Extension;
use axum::routing::{get, post};
use futures_util::stream;
use leasehold_model::Span;
use std::sync::atomic::AtomicBool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

/// Long enough for everything that must happen, even on a busy machine.
const SOON: Duration = Duration::from_secs(30);
/// A timeout that the test lets pass.
const SHORT: Span = Span::from_millis(200);

struct Server {
    address: SocketAddr,
    counters: Arc<Counters>,
    /// Lets `/slow` answer.
    go: Arc<Notify>,
    /// Set when the request to `/slow` was dropped.
    given_up: Arc<AtomicBool>,
    /// `/slow` has begun.
    begun: Arc<Notify>,
    stop: oneshot::Sender<()>,
    set_limits: watch::Sender<Limits>,
    done: JoinHandle<()>,
}

/// Limits that are not reached, unless a test lowers them.
fn limits() -> Limits {
    let long = Span::from_secs(3600);
    Limits { header_timeout: long, body_timeout: long, request_timeout: long, idle_timeout: long, ..Limits::default() }
}

struct GivenUp(Arc<AtomicBool>);
impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn start(limits: Limits) -> Server {
    start_with(limits, None, GRACE)
}

fn start_with(limits: Limits, tls: Option<Tls>, grace: Duration) -> Server {
    let (go, begun, given_up) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let slow = {
        let (go, begun, given_up) = (Arc::clone(&go), Arc::clone(&begun), Arc::clone(&given_up));
        move || async move {
            let guard = GivenUp(given_up);
            begun.notify_one();
            go.notified().await;
            std::mem::forget(guard);
            "at last"
        }
    };
    let endless =
        || async { Body::from_stream(stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 65536])))) };
    let app = Router::new()
        .route("/", get(|| async { "ok" }))
        .route(
            "/peer",
            get(|Extension(peer): Extension<Peer>| async move { format!("{} {}", peer.address.ip(), peer.tls) }),
        )
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/slow", get(slow))
        .route("/endless", get(endless));
    let listener = bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = listener.local_addr().expect("bound");
    let counters = Arc::new(Counters::default());
    let (stop, stopped) = oneshot::channel();
    let (set_limits, limits) = watch::channel(limits);
    let serving = {
        let counters = Arc::clone(&counters);
        async move {
            let shutdown = async { drop(stopped.await) };
            serve_and_finish_within(grace, listener, tls, app, limits, counters, shutdown).await;
        }
    };
    Server { address, counters, go, given_up, begun, stop, set_limits, done: tokio::spawn(serving) }
}

impl Server {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("someone listens")
    }

    /// Sends bytes on a new connection and reads until it is closed.
    async fn exchange(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.expect("written");
        until_closed(&mut stream).await
    }

    fn count(&self, which: impl Fn(&Counters) -> &AtomicU64) -> u64 {
        which(&self.counters).load(Ordering::Relaxed)
    }
}

async fn until_closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A reset also closes the connection; the bytes before it count.
    let _ = tokio::time::timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("the server closes in time");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads one answer whose body ends with `end`.
async fn answer(stream: &mut (impl tokio::io::AsyncRead + Unpin), end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        let read = tokio::time::timeout(SOON, stream.read_buf(&mut bytes))
            .await
            .expect("an answer in time")
            .expect("an answer");
        assert_ne!(read, 0, "closed after {:?}", String::from_utf8_lossy(&bytes));
    }
    String::from_utf8(bytes).expect("text")
}

const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test]
async fn requests_follow_each_other_on_one_connection_and_the_peer_is_known() {
    let server = start(limits());
    let mut stream = server.connect().await;
    for _ in 0..3 {
        stream.write_all(GET.as_bytes()).await.expect("written");
        assert!(answer(&mut stream, "ok").await.starts_with("HTTP/1.1 200 OK\r\n"));
    }
    // Pipelined requests are answered in order.
    stream.write_all(format!("{GET}GET /peer HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.expect("written");
    let both = answer(&mut stream, "127.0.0.1 false").await;
    assert_eq!(both.matches("HTTP/1.1 200 OK").count(), 2, "{both}");
    assert_eq!((server.count(|c| &c.open), server.count(|c| &c.accepted)), (1, 1));
    let body = "x".repeat(100_000);
    let echoed = server
        .exchange(&format!("POST /echo HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
        .await;
    assert!(echoed.ends_with(&body));
}

#[tokio::test]
async fn malformed_requests_get_a_problem() {
    let server = start(limits());
    for (request, status) in [
        ("hello\r\n\r\n", "400"),
        ("GET\r\n\r\n", "400"),
        ("GET / HTTP/9.9\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nbad name: x\r\n\r\n", "400"),
        ("POST /echo HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd", "400"),
        ("POST /echo HTTP/1.1\r\ncontent-length: many\r\n\r\nabcd", "400"),
        (&format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(64 * 1024)), "431"),
        (&format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(101)), "431"),
        (&format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(64 * 1024)), "4"),
        // After a request that was answered.
        (&format!("{GET}hello\r\n\r\n"), "200"),
    ] {
        let answer = server.exchange(request).await;
        let shown: String = request.chars().take(60).collect();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{shown:?} was answered {answer:?}");
        let (head, body) = answer.rsplit_once("\r\n\r\n").expect("a body");
        assert!(head.contains("\r\ncontent-type: application/problem+json\r\n"), "{shown:?}: {answer:?}");
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{shown:?}: {answer:?}");
        let problem: leasehold_api::Problem = serde_json::from_str(body).expect("a problem");
        assert!(head.contains(&format!("HTTP/1.1 {} ", problem.status)), "{shown:?}: {answer:?}");
    }
}

#[tokio::test]
async fn silent_and_slow_clients_are_disconnected() {
    let server = start(Limits { header_timeout: SHORT, ..limits() });
    assert_eq!(until_closed(&mut server.connect().await).await, "");
    // The head begins in time but does not end.
    assert_eq!(server.exchange("GET / HTTP/1.1\r\nhost:").await, "");
    // The timeout starts with the first byte of each request, not only the first one.
    let mut stream = server.connect().await;
    stream.write_all(GET.as_bytes()).await.expect("written");
    answer(&mut stream, "ok").await;
    stream.write_all(b"GET /").await.expect("written");
    assert_eq!(until_closed(&mut stream).await, "");
    assert_eq!(server.count(|c| &c.timed_out), 3);
}

#[tokio::test]
async fn idle_connections_are_closed_after_their_timeout() {
    // The head timeout is short, the idle timeout is longer.
    let server = start(Limits { idle_timeout: SHORT, ..limits() });
    let mut stream = server.connect().await;
    stream.write_all(GET.as_bytes()).await.expect("written");
    let before = std::time::Instant::now();
    assert!(until_closed(&mut stream).await.ends_with("ok"));
    assert!(before.elapsed() >= Duration::from_nanos(SHORT.0), "{:?}", before.elapsed());
    assert_eq!(server.count(|c| &c.timed_out), 1);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_answered_408() {
    let server = start(Limits { body_timeout: SHORT, ..limits() });
    for part in ["content-length: 10\r\n\r\nabc", "transfer-encoding: chunked\r\n\r\n5\r\nab"] {
        let answer = server.exchange(&format!("POST /echo HTTP/1.1\r\n{part}")).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(
            answer.contains("application/problem+json") && answer.contains(r#""code":"request_timeout""#),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_answered_408() {
    let server = start(Limits { request_timeout: SHORT, ..limits() });
    let answer = server.exchange("GET /slow HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(server.given_up.load(Ordering::SeqCst), "nobody works on it any more");
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let server = start(Limits { idle_timeout: SHORT, ..limits() });
    let mut stream = server.connect().await;
    stream.write_all(b"GET /endless HTTP/1.1\r\n\r\n").await.expect("written");
    // Nothing is read until the server has closed the connection; then the end can be read.
    let gone = async {
        while server.count(|c| &c.timed_out) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, gone).await.expect("it is noticed");
    until_closed(&mut stream).await;
}

#[tokio::test]
async fn a_request_is_dropped_when_its_client_disconnects() {
    let server = start(limits());
    let mut stream = server.connect().await;
    stream.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.expect("written");
    server.begun.notified().await;
    drop(stream);
    let given_up = async {
        while !server.given_up.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, given_up).await.expect("it is noticed");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_rejected_until_others_close() {
    // The limit per address does not apply to this machine.
    let server = start(Limits { connections: 2, connections_per_address: Some(1), ..limits() });
    let mut held = vec![server.connect().await, server.connect().await];
    for stream in &mut held {
        stream.write_all(GET.as_bytes()).await.expect("written");
        answer(stream, "ok").await;
    }
    let turned_away = server.exchange(GET).await;
    assert!(turned_away.starts_with("HTTP/1.1 503 ") && turned_away.contains(r#""code":"busy""#), "{turned_away}");
    assert_eq!((server.count(|c| &c.turned_away), server.count(|c| &c.open)), (1, 2));
    // A higher limit applies at once.
    server.set_limits.send(Limits { connections: 3, ..limits() }).expect("it serves");
    let served =
        async { while !server.exchange("GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await.ends_with("ok") {} };
    tokio::time::timeout(SOON, served).await.expect("there is room");
    server.set_limits.send(Limits { connections: 2, ..limits() }).expect("it serves");
    drop(held.pop());
    let served =
        async { while !server.exchange("GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await.ends_with("ok") {} };
    tokio::time::timeout(SOON, served).await.expect("there is room");
}

#[tokio::test]
async fn shutdown_finishes_requests_in_flight_and_closes_idle_connections() {
    let server = start(limits());
    let (mut fresh, mut idle, mut busy) = (server.connect().await, server.connect().await, server.connect().await);
    idle.write_all(GET.as_bytes()).await.expect("written");
    answer(&mut idle, "ok").await;
    busy.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.expect("written");
    server.begun.notified().await;
    server.stop.send(()).expect("still serving");
    assert_eq!(until_closed(&mut idle).await, "");
    assert_eq!(until_closed(&mut fresh).await, "");
    assert!(TcpStream::connect(server.address).await.is_err(), "nobody listens any more");
    assert!(!server.done.is_finished());
    server.go.notify_one();
    let last = until_closed(&mut busy).await;
    assert!(last.starts_with("HTTP/1.1 200 OK") && last.ends_with("at last"), "{last}");
    tokio::time::timeout(SOON, server.done).await.expect("it is over").expect("in peace");
    assert_eq!(server.counters.open.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn shutdown_has_a_time_limit() {
    let server = start_with(limits(), None, Duration::from_millis(50));
    let mut busy = server.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.expect("written");
    let mut streaming = server.connect().await;
    streaming.write_all(b"GET /endless HTTP/1.1\r\n\r\n").await.expect("written");
    server.begun.notified().await;
    server.stop.send(()).expect("still serving");
    assert_eq!(until_closed(&mut busy).await, "");
    tokio::time::timeout(SOON, server.done).await.expect("it is over").expect("in peace");
    assert_eq!(server.counters.timed_out.load(Ordering::Relaxed), 0, "that was not the client's fault");
}

/// A certificate for `localhost` in two files.
fn certificate(folder: &std::path::Path) -> rustls::pki_types::CertificateDer<'static> {
    use std::os::unix::fs::PermissionsExt;
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    // Written to a temporary file and renamed, as tools do, so that no partial file is read.
    let put = |name: &str, text: String| {
        let new = folder.join(format!("{name}.new"));
        std::fs::write(&new, text).expect("written");
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).expect("its rights");
        std::fs::rename(&new, folder.join(name)).expect("moved");
    };
    put("cert.pem", made.cert.pem());
    put("key.pem", made.signing_key.serialize_pem());
    made.cert.into()
}

async fn shake(
    server: &Server,
    trusted: &rustls::pki_types::CertificateDer<'static>,
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().expect("a name"), server.connect().await).await
}

#[tokio::test]
async fn new_connections_use_a_new_certificate_and_open_ones_continue() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = certificate(folder.path());
    let tls = Tls::load(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).expect("two good files");
    let server = start_with(limits(), Some(tls.clone()), GRACE);
    let mut stream = shake(&server, &first).await.expect("the first certificate");
    assert!(matches!(tls.reload_if_changed(), crate::tls::Reload::Unchanged));

    let second = certificate(folder.path());
    assert!(matches!(tls.reload_if_changed(), crate::tls::Reload::Replaced));
    assert!(matches!(tls.reload_if_changed(), crate::tls::Reload::Unchanged));
    assert!(shake(&server, &first).await.is_err(), "the first certificate is no longer shown");
    let mut newer = shake(&server, &second).await.expect("the second certificate");

    // An unusable file keeps the previous certificate in use, and is reported once.
    std::fs::write(folder.path().join("cert.pem"), "no certificate").expect("written");
    assert!(matches!(tls.reload_if_changed(), crate::tls::Reload::Kept(_)));
    assert!(matches!(tls.reload_if_changed(), crate::tls::Reload::Unchanged));
    shake(&server, &second).await.expect("still the second certificate");

    for stream in [&mut stream, &mut newer] {
        stream.write_all(b"GET /peer HTTP/1.1\r\nconnection: close\r\n\r\n").await.expect("written");
        assert!(until_closed(stream).await.ends_with("127.0.0.1 true"));
    }
}

#[tokio::test]
async fn a_handshake_has_a_time_limit_and_blocks_no_other_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let trusted = certificate(folder.path());
    let tls = Tls::load(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).expect("two good files");
    let server = start_with(Limits { header_timeout: SHORT, ..limits() }, Some(tls), GRACE);
    let mut silent = server.connect().await;
    shake(&server, &trusted).await.expect("the silent one is in nobody's way");
    assert_eq!(until_closed(&mut silent).await, "");
    // A client that does not use TLS at all.
    let refused = server.exchange(GET).await;
    assert!(refused.starts_with("HTTP/1.1 400 Bad Request\r\n") && refused.contains("requires TLS"), "{refused:?}");
    assert!(refused.contains("\r\ncontent-type: application/problem+json\r\n"), "{refused:?}");
    // It is counted once the client has read the answer.
    let counted = async {
        while server.count(|c| &c.handshakes_failed) < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, counted).await.expect("both are counted");
}

#[test]
fn pauses_after_errors_grow_up_to_a_limit() {
    let mut backoff = Backoff::default();
    let pauses: Vec<u128> = (0..8).map(|_| backoff.next_pause().as_millis()).collect();
    assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 640, 640]);
    assert!(raise_file_limit().is_some_and(|files| files > 100));
}
