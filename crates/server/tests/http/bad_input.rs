//! Whatever arrives: a 4xx with a problem within the time limit, never a 5xx, never silence.

use crate::world::World;
use leasehold_api::Method;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends bytes as they are and reads to the end of the connection, or of patience.
async fn raw(world: &World, bytes: &[u8]) -> String {
    let address = world.url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(address).await.expect("the daemon listens");
    // The daemon may answer and close before it has read all.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "no end of the answer: {}", String::from_utf8_lossy(&answer));
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_wrong_are_told_what_is_wrong() {
    let world = World::furnished().await;
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let long_name = "n".repeat(129);
    let cases: Vec<(&str, String, u16, &str)> = vec![
        ("/api/v1/leases", "{".into(), 400, "bad_json"),
        ("/api/v1/leases", "nonsense".into(), 400, "bad_json"),
        ("/api/v1/leases", deep, 422, "bad_body"),
        ("/api/v1/leases", "[]".into(), 422, "bad_body"),
        ("/api/v1/tenants", r#"["sneaky"]"#.into(), 422, "bad_body"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[["h100",1]],"ttl":"1m"}"#.into(), 422, "bad_body"),
        ("/api/v1/leases/batch", r#"{"operations":[[]]}"#.into(), 422, "bad_body"),
        ("/api/v1/quotas", r#"{"tenant":"physics","class":"h100","measure":"quanta","limit":["hard",5]}"#.into(), 422, "bad_body"),
        ("/api/v1/leases", "{}".into(), 422, "bad_body"),
        ("/api/v1/leases", r#"{"asks":[],"ttl":"1m","colour":"red"}"#.into(), 422, "bad_body"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[],"ttl":"1m"}"#.into(), 422, "nothing_asked"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[{"class":"h100","quantity":-1}],"ttl":"1m"}"#.into(), 422, "bad_body"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[{"class":"h100","quantity":"1/3"}],"ttl":"1m"}"#.into(), 422, "bad_quantity"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[{"class":"h100","quantity":0}],"ttl":"1m"}"#.into(), 422, "bad_quantity"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[{"class":"h100","quantity":1}],"ttl":"0s"}"#.into(), 422, "zero_ttl"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[{"class":"h100","quantity":1}],"ttl":"400d"}"#.into(), 422, "ttl_too_long"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[{"class":"h100","quantity":1}],"ttl":"soon"}"#.into(), 422, "bad_body"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[{"class":"h100","quantity":1}],"ttl":"1m","correlation_id":"x"}"#.into(), 422, "bad_id"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","asks":[{"class":"h100","quantity":1}],"ttl":"1m","labels":{"gen":"b","gen":"a"}}"#.into(), 422, "bad_body"),
        ("/api/v1/leases", r#"{"tenant":"physics","priority":7,"project":"physics-main","asks":[],"ttl":"1m"}"#.into(), 422, "bad_body"),
        ("/api/v1/nodes", r#"{"name":"n9","pool":"main","capacity":{"h100":1,"h100":2}}"#.into(), 422, "bad_body"),
        ("/api/v1/leases", r#"{"project":"physics-main","asks":[{"class":"h100","quantity":1}],"ttl":"1m"}"#.into(), 422, "tenant_needed"),
        ("/api/v1/tenants", format!(r#"{{"name":"{long_name}"}}"#), 422, "bad_name"),
        ("/api/v1/tenants", r#"{"name":"a\u0000b"}"#.into(), 422, "bad_name"),
        ("/api/v1/tenants", r#"{"name":"1"}"#.into(), 422, "bad_name"),
        ("/api/v1/tenants", r#"{"name":"phy\u115fsics"}"#.into(), 422, "bad_name"),
        ("/api/v1/tenants", r#"{"name":"x","accounting_tag":"\u3164"}"#.into(), 422, "bad_name"),
        ("/api/v1/projects", r#"{"name":"0","tenant":"physics"}"#.into(), 422, "bad_name"),
        ("/api/v1/users", r#"{"name":"42","tenant":"physics"}"#.into(), 422, "bad_name"),
        ("/api/v1/pools", r#"{"name":"3"}"#.into(), 422, "bad_name"),
        ("/api/v1/classes", r#"{"name":"7","kind":"gpu"}"#.into(), 422, "bad_name"),
        ("/api/v1/nodes", r#"{"name":"12","pool":"main","capacity":{"h100":1}}"#.into(), 422, "bad_name"),
        ("/api/v1/nodes", r#"{"name":"n9","pool":"main","labels":{"gen":"\ufe0f"},"capacity":{"h100":1}}"#.into(), 422, "bad_name"),
        ("/api/v1/tokens", r#"{"name":"5","role":"operator"}"#.into(), 422, "bad_name"),
        ("/api/v1/leases", r#"{"tenant":"physics","project":"physics-main","workload":"a\u2800","asks":[{"class":"h100","quantity":1}],"ttl":"1m"}"#.into(), 422, "bad_name"),
        ("/api/v1/tenants", r#"{"name":"physics"}"#.into(), 409, "name_taken"),
        ("/api/v1/tenants", r#"{"name":"x","name":"y"}"#.into(), 422, "bad_body"),
        ("/api/v1/quotas", r#"{"tenant":"physics","class":"h100","measure":"quanta","limit":{"type":"burst","limit":5,"burst_limit":4,"burst_ttl":"1h"}}"#.into(), 422, "burst_below_base"),
        ("/api/v1/tokens", r#"{"name":"t","role":"emperor"}"#.into(), 422, "bad_body"),
        ("/api/v1/tokens", r#"{"name":"t","role":"node_agent"}"#.into(), 422, "bad_token_scope"),
    ];
    for (path, body, status, code) in cases {
        let request = world.client().post(format!("{}{path}", world.url)).header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {}", world.operator)).body(body.clone());
        let answer = crate::world::read(request.send().await.expect("an answer")).await;
        let shown: String = body.chars().take(80).collect();
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path} {shown}: {}", answer.text);
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
    let request = world.client().post(format!("{}/api/v1/tenants", world.url)).header("content-type", "text/plain");
    let request = request.header("authorization", format!("Bearer {}", world.operator)).body("{}");
    let answer = crate::world::read(request.send().await.expect("an answer")).await;
    assert_eq!((answer.status, answer.code().as_str()), (415, "unsupported_media_type"));
    let huge = json!({ "name": "x".repeat(300 * 1024) });
    let answer = world.post("/api/v1/tenants", huge).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "body_too_large"));
    // None of it left a trace.
    let size = world.get("/api/v1/about").await.expect(200)["size"].clone();
    let last = world.get("/api/v1/audit/records?limit=1000").await.expect(200);
    assert_eq!(last["size"], size);
    assert!(!last.to_string().contains("zero_ttl"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_request_are_turned_away_in_time() {
    let world = World::with(|config| {
        config.limits.header_timeout = leasehold_model::Span::from_millis(300);
        config.limits.body_timeout = leasehold_model::Span::from_millis(300);
        config.limits.idle_timeout = leasehold_model::Span::from_millis(300);
    })
    .await;
    let auth = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", world.operator);
    let invalid_utf8 = [format!("POST /api/v1/tenants HTTP/1.1\r\nhost: x\r\n{auth}content-length: 12\r\nconnection: close\r\n\r\n{{\"name\":\"").into_bytes(), vec![0xff, b'"', b'}']].concat();
    for (what, bytes, begins) in [
        ("garbage", b"\x00\x01\x02\x03 hello\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        ("no version", b"GET /healthz\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        ("a head that never ends", b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: ".to_vec(), ""),
        ("nothing at all", Vec::new(), ""),
        (
            "a body that never ends",
            format!("POST /api/v1/tenants HTTP/1.1\r\nhost: x\r\n{auth}content-length: 100\r\n\r\n{{").into_bytes(),
            "HTTP/1.1 408",
        ),
        ("invalid UTF-8", invalid_utf8, "HTTP/1.1 4"),
        (
            "an escaped path that is no text",
            b"GET /api/v1/tenants/%ff HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_vec(),
            "HTTP/1.1 4",
        ),
        (
            "two tokens",
            format!("GET /api/v1/whoami HTTP/1.1\r\nhost: x\r\n{auth}{auth}connection: close\r\n\r\n").into_bytes(),
            "HTTP/1.1 400",
        ),
        (
            "two hosts",
            b"GET /healthz HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\n\r\n".to_vec(),
            "HTTP/1.1 400",
        ),
        (
            "a method that does not exist",
            b"BREW /healthz HTTP/1.1\r\nconnection: close\r\n\r\n".to_vec(),
            "HTTP/1.1 405",
        ),
        ("a tunnel", b"CONNECT x:80 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_vec(), "HTTP/1.1 4"),
        ("no path", b"OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_vec(), "HTTP/1.1 4"),
        (
            "two lengths",
            format!(
                "POST /api/v1/tenants HTTP/1.1\r\nhost: x\r\n{auth}content-length: 1\r\ncontent-length: 2\r\n\r\n{{}}"
            )
            .into_bytes(),
            "HTTP/1.1 400",
        ),
        (
            "a huge head",
            format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)).into_bytes(),
            "HTTP/1.1 4",
        ),
    ] {
        let answer = raw(&world, &bytes).await;
        assert!(answer.starts_with(begins), "{what}: {answer}");
        assert!(!answer.starts_with("HTTP/1.1 5"), "{what}: {answer}");
        if begins.is_empty() {
            continue;
        }
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains("\r\ncontent-type: application/problem+json"), "{what}: {answer}");
        let problem: leasehold_api::Problem = serde_json::from_str(body).expect("a problem");
        assert!(head.starts_with(&format!("HTTP/1.1 {} ", problem.status)), "{what}: {answer}");
    }
    // The daemon is none the worse for it.
    assert_eq!(world.send(None, Method::Get, "/healthz", None).await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_asks_too_often_is_told_when_to_come_back() {
    let world = World::with(|config| {
        config.rate.operations_per_second = 5;
        config.rate.burst = 10;
    })
    .await;
    let mut limited = None;
    for _ in 0..30 {
        let answer = world.get("/api/v1/whoami").await;
        if answer.status == 429 {
            limited = Some(answer);
            break;
        }
    }
    let limited = limited.expect("a limit of ten is met in thirty");
    assert_eq!(limited.code(), "rate_limited");
    assert!(limited.headers.contains_key("retry-after"));
    world.stop().await;
}
