use super::*;
use crate::config::{Format, Level, Log};
use axum::http::header::AUTHORIZATION;
use expect_test::{Expect, expect};
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no one panics with it").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Captured {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no one panics with it").clone()).expect("text")
    }
}

/// The log lines of `work`, at this level and in this format.
fn logged(log: &Log, level: Option<&str>, work: impl FnOnce()) -> String {
    let captured = Captured::default();
    let writer = captured.clone();
    let writer = move || writer.clone();
    let subscriber = leasehold_service::log::subscriber(log.level, log.format, level, writer).expect("a level");
    tracing::subscriber::with_default(subscriber, work);
    captured.text()
}

fn request(headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::new(());
    for (name, value) in headers {
        let name = HeaderName::try_from(*name).expect("a name");
        request.headers_mut().append(name, HeaderValue::from_str(value).expect("a value"));
    }
    request.extensions_mut().insert(Peer { address: "192.0.2.7:4711".parse().expect("an address"), tls: false });
    request
}

const JSON: Log = Log { level: Level::Info, format: Format::Json, requests: RequestLog::Refused };
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Compares JSON log lines, without their time and duration.
fn check_json(text: &str, expected: &Expect) {
    let lines = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("one object to a line");
        let object = line.as_object_mut().expect("an object");
        assert!(object.remove("timestamp").is_some_and(|at| at.as_str().is_some_and(|at| at.ends_with('Z'))));
        if let Some(took) = object.get_mut("took_us") {
            assert!(took.is_u64());
            *took = "some".into();
        }
        format!("{line}\n")
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn a_refused_request_is_one_line_with_its_ids_and_without_its_secrets() {
    let request = request(&[
        ("x-request-id", "build-17/step.4"),
        ("traceparent", PARENT),
        ("authorization", "Bearer lh_topsecret"),
        ("cookie", "topsecret"),
    ]);
    let log = || {
        let mut seen = LoggedRequest::of(&request);
        seen.set_token(TokenNo(12));
        seen.log_as(RequestLog::Refused, "POST", "request_lease", 409, Some("quota_exceeded"));
        seen.log_as(RequestLog::Refused, "POST", "request_lease", 500, Some("internal"));
        seen.log_as(RequestLog::Refused, "GET", "about", 200, None);
        seen.log_as(RequestLog::All, "GET", "about", 200, None);
        seen.log_as(RequestLog::None, "GET", "about", 500, None);
    };
    check_json(
        &logged(&JSON, None, log),
        &expect![[r#"
        {"token":"token-12","level":"INFO","message":"request","request_id":"build-17/step.4","method":"POST","endpoint":"request_lease","status":409,"code":"quota_exceeded","took_us":"some","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","peer":"192.0.2.7:4711"}
        {"token":"token-12","level":"ERROR","message":"request","request_id":"build-17/step.4","method":"POST","endpoint":"request_lease","status":500,"code":"internal","took_us":"some","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","peer":"192.0.2.7:4711"}
        {"token":"token-12","level":"INFO","message":"request","request_id":"build-17/step.4","method":"GET","endpoint":"about","status":200,"took_us":"some","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","peer":"192.0.2.7:4711"}
    "#]],
    );
    // Not even at the most detailed level.
    let all = logged(&Log { format: Format::Text, ..JSON }, Some("trace"), log);
    assert!(request.headers().contains_key(AUTHORIZATION) && all.contains("build-17/step.4"), "{all}");
    assert!(!all.contains("topsecret"), "{all}");
}

#[test]
fn slow_requests_are_logged_as_warnings() {
    let log = || {
        let mut seen = LoggedRequest::of(&request(&[("x-request-id", "a")]));
        seen.began = Instant::now().checked_sub(SLOW * 2).expect("a while ago");
        seen.log_as(RequestLog::Refused, "GET", "export", 200, None);
    };
    let text = logged(&JSON, None, log);
    assert!(text.contains(r#""level":"WARN""#) && text.contains(r#""endpoint":"export""#), "{text}");
}

#[test]
fn a_request_id_is_accepted_only_if_it_is_valid() {
    let taken = |id: &str| RequestId::of(request(&[("x-request-id", id)]).headers()).as_str() == id;
    for id in ["a", "0af7651916cd43dd8448eb211c80319c", "build-17/step.4", "user@host:1+2=3_x", &"x".repeat(64)] {
        assert!(taken(id), "{id}");
    }
    for id in ["", "a b", "a\"b", "a;b", "$(reboot)", "<script>", "a\u{e9}", &"x".repeat(65)] {
        assert!(!taken(id), "{id}");
    }
    let twice = request(&[("x-request-id", "a"), ("x-request-id", "b")]);
    assert_eq!(RequestId::of(twice.headers()).as_str().len(), 16);
    let mut headers = HeaderMap::new();
    let (one, other) = (LoggedRequest::begin(&headers), LoggedRequest::begin(&headers));
    assert_ne!(one.id(), other.id());
    one.set_request_id(&mut headers);
    assert_eq!(RequestId::of(&headers).as_str(), one.id());
}

#[test]
fn generated_request_ids_show_neither_number_nor_order() {
    let ids: Vec<u64> = (0..1000)
        .map(|_| u64::from_str_radix(RequestId::fresh().as_str(), 16).expect("16 hexadecimal digits"))
        .collect();
    let unique: std::collections::BTreeSet<u64> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len());
    assert!(!ids.is_sorted() && !ids.iter().rev().is_sorted());
    let close = ids.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1 << 32).count();
    assert!(close < 10, "{close} of 999 neighbours are close");
}

#[test]
fn a_traceparent_is_read_strictly() {
    let trace = Trace::parse(PARENT.as_bytes()).expect("the specification's own");
    assert_eq!(trace.id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!((trace.parent, trace.sampled), (0x00f0_67aa_0ba9_02b7, true));
    let later = format!("01{}-more", &PARENT[2..]);
    assert_eq!(Trace::parse(later.as_bytes()), Some(trace));
    let zero_trace = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
    let zero_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01";
    for bad in [
        "",
        "00",
        zero_trace,
        zero_parent,
        &PARENT.to_uppercase(),
        &format!("ff{}", &PARENT[2..]),
        &format!("{PARENT}-more"),
        &format!("01{}more", &PARENT[2..]),
        &format!(" {PARENT}"),
        &PARENT[..54],
        &PARENT.replace('-', "_"),
    ] {
        assert_eq!(Trace::parse(bad.as_bytes()), None, "{bad}");
    }
    assert_eq!(Trace::of(request(&[("traceparent", PARENT), ("traceparent", PARENT)]).headers()), None);
}
