//! The running daemon as clients and operators meet it: the limit of open files, and changes of the configuration.

mod common;

use common::daemon::Daemon;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::TcpStream;

/// One connection that is used for several requests.
struct Connection {
    stream: TcpStream,
    token: String,
}

impl Connection {
    fn to(daemon: &Daemon) -> Self {
        let token = std::fs::read_to_string(daemon.path("data/operator.token")).expect("a token").trim().to_owned();
        Self { stream: connect(daemon), token }
    }

    /// The status and the body of the answer.
    fn send(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n", self.token);
        let length = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        self.stream.write_all(format!("{head}{length}{body}").as_bytes()).expect("a request");
        read_answer(&mut self.stream).expect("an answer")
    }
}

fn connect(daemon: &Daemon) -> TcpStream {
    TcpStream::connect(daemon.url.strip_prefix("http://").expect("plain HTTP")).expect("a connection")
}

/// Reads one answer with a `Content-Length`; `None` if the connection is closed before.
fn read_answer(stream: &mut TcpStream) -> Option<(u16, String)> {
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; 4096];
        let read = stream.read(&mut some).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&some[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if length.is_some_and(|length| body.len() >= length) {
            let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
            return Some((status, body.to_owned()));
        }
    }
}

/// 1,100 idle connections without a token stopped the daemon if the limit of open files was lower than
/// `limits.connections` needed: the journal could not open its segment, which counted as a failed disk.
#[test]
fn r13_b1_idle_connections_never_take_the_files_of_the_journal() {
    let daemon = Daemon::configured("journal: { segment_bytes: 4MiB, snapshot_every: 20 }", Some(200));
    let lowered = daemon.until_logged("limits.connections is lowered");
    assert!(lowered.contains("WARN") && lowered.contains("from 4096 to 100,"), "{lowered}");
    let mut early = Connection::to(&daemon);
    let mut post = |path: &str, body: &str| {
        let (status, answer) = early.send("POST", &format!("/api/v1/{path}"), body);
        assert_eq!(status, 201, "{path}: {answer}");
    };
    post("classes", r#"{"name":"core","kind":"cpu"}"#);
    post("pools", r#"{"name":"main"}"#);
    post("nodes", r#"{"name":"n1","pool":"main","capacity":{"core":1000}}"#);
    post("tenants", r#"{"name":"physics"}"#);
    post("projects", r#"{"name":"lattice","tenant":"physics"}"#);

    // More than fit, all of them idle.
    let held: Vec<TcpStream> = (0..400).map(|_| connect(&daemon)).collect();
    let lease = r#"{"tenant":"physics","project":"lattice","ttl":"1h","asks":[{"class":"core","quantity":1}]}"#;
    for _ in 0..100 {
        post("leases", lease);
    }
    // Everything that opens files works: reading the journal, checkpoints and snapshots.
    let mut get = |path: &str| {
        let (status, answer) = early.send("GET", &format!("/api/v1/{path}"), "");
        assert_eq!(status, 200, "{path}: {answer}");
        serde_json::from_str::<serde_json::Value>(&answer).expect("JSON")
    };
    let size = get("audit/records?limit=1000")["size"].as_u64().expect("a size");
    while get("audit/checkpoint")["size"].as_u64().expect("a size") < size {}
    let snapshots = || std::fs::read_dir(daemon.path("data/snapshots")).expect("a folder").count();
    while snapshots() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    get("leases/lease-1/explain");
    get("usage?by=tenant");
    // What does not fit is told so, unless too many others are being told.
    let (status, answer) = loop {
        if let Some(answer) = read_answer(&mut connect(&daemon)) {
            break answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert!(status == 503 && answer.contains(r#""code":"busy""#), "{status} {answer}");
    // With room again, new connections are served.
    drop(held);
    while daemon.run("token whoami").code != 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(!daemon.logged().iter().any(|line| line.contains("ERROR")), "{:#?}", daemon.logged());
}

/// SIGHUP ended the daemon.
#[test]
fn r13_b8_sighup_reloads_the_configuration() {
    let daemon = Daemon::configured("rate: { operations_per_second: 0 }", None);
    let reload = |config: &str, words: &str| {
        let before = daemon.logged().iter().filter(|line| line.contains(words)).count();
        std::fs::write(daemon.path("leasehold.yaml"), config).expect("written");
        kill_process(Pid::from_child(&daemon.process), Signal::HUP).expect("a signal");
        let lines = || daemon.logged().into_iter().filter(|line| line.contains(words)).collect::<Vec<_>>();
        let began = std::time::Instant::now();
        while lines().len() == before {
            assert!(began.elapsed().as_secs() < 30, "no {words:?} in {:#?}", daemon.logged());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        lines().pop().expect("it was counted")
    };
    let mut connection = Connection::to(&daemon);
    let mut statuses = || (0..8).map(|_| connection.send("GET", "/api/v1/whoami", "").0).collect::<Vec<u16>>();
    assert_eq!(statuses(), [200; 8]);

    let limited = "rate: { operations_per_second: 1, burst: 3 }\nlimits: { idle_timeout: 60s, streams: 5 }\n";
    let line = reload(limited, "take effect at the next start");
    assert!(line.contains("WARN") && line.contains("keys=\"limits.idle_timeout\""), "{line}");
    let line = daemon.until_logged("SIGHUP: the configuration was reloaded");
    assert!(
        line.contains("INFO") && line.contains("\"limits.streams, rate.operations_per_second, rate.burst\""),
        "{line}"
    );
    assert_eq!(statuses()[..4], [200, 200, 200, 429]);

    // A file with an error changes nothing, and neither does one with a value that is out of range.
    for (wrong, why) in [
        ("rate: { operations_per_second: lots }", "must be an integer"),
        ("rate: { operations_per_second: 0 }\nlimits: { connections: 0 }", "is zero"),
    ] {
        let line = reload(wrong, why);
        assert!(line.contains("ERROR") && line.contains("nothing was changed"), "{line}");
        assert!(statuses().contains(&429));
    }
    // The connection is the same one all the time, and the log level changes too.
    let line =
        reload("rate: { operations_per_second: 0 }\nlog: { level: warn }", "SIGHUP: the configuration was reloaded");
    assert!(line.contains("log.level"), "the level applies to what comes later: {line}");
    assert_eq!(statuses(), [200; 8]);
    daemon.run("token whoami").ok();
}
