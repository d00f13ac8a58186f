//! `leasehold demo` as a new user meets it: a week behind it, a daemon that answers, agents that end with it, and a
//! `kill -9` that loses nothing.

mod common;

use common::{BINARY, Said, leasehold, on};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A demo that runs beside the test. One that the test gives up is killed.
struct Demo {
    child: Child,
    err: BufReader<ChildStderr>,
    told: String,
    data: PathBuf,
    url: String,
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Demo {
    /// Started on the folder, with its daemon listening.
    fn start(data: &Path, line: &str) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["demo", "--json", "--data"]).arg(data).args(line.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let err = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut demo = Self { child, err, told: String::new(), data: data.to_owned(), url: String::new() };
        let line = demo.read_to("  daemon ");
        demo.url = line.split_whitespace().nth(1).expect("an address").to_owned();
        demo
    }

    /// The next line that contains the text.
    fn read_to(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.err.read_line(&mut line).expect("it speaks UTF-8"), 0, "no {text:?} in {}", self.told);
            self.told.push_str(&line);
        }
        line
    }

    /// As the tenant whose token it handed out.
    fn tenant(&self, line: &str) -> Said {
        self.with("physics.token", line)
    }
    fn operator(&self, line: &str) -> Said {
        self.with("operator.token", line)
    }
    fn with(&self, token: &str, line: &str) -> Said {
        let token = self.data.join(token);
        let daemon = ["--url", &self.url, "--token-file", token.to_str().expect("a path in UTF-8")];
        leasehold(line.split_whitespace().chain(daemon))
    }

    /// The commands that it prints for another terminal, each without its remark.
    fn tour(&mut self) -> Vec<String> {
        self.read_to("In another terminal:");
        let mut commands = Vec::new();
        loop {
            let mut line = String::new();
            self.err.read_line(&mut line).expect("it speaks UTF-8");
            self.told.push_str(&line);
            if line.trim().is_empty() {
                return commands;
            }
            let command = line.trim_start();
            commands.push(command.split("   ").next().unwrap_or(command).trim_end().to_owned());
        }
    }

    /// Waits for its end; returns its report and all that it said.
    fn end(mut self) -> (Value, String) {
        let mut told = std::mem::take(&mut self.told);
        self.err.read_to_string(&mut told).expect("it speaks UTF-8");
        let mut out = String::new();
        self.child.stdout.take().expect("it is piped").read_to_string(&mut out).expect("it speaks UTF-8");
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{told}");
        (serde_json::from_str(&out).expect("a report"), told)
    }

    fn agents(&self) -> usize {
        agents_of(&self.data)
    }
}

/// Processes that were started for the agents of this folder: the agents, and hooks of theirs.
fn agents_of(data: &Path) -> usize {
    let mark = format!("{}.agents/", data.canonicalize().expect("a folder").display());
    let processes = fs::read_dir("/proc").expect("there is /proc").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(&mark)).count()
}

fn no_agent_is_left(data: &Path) {
    let began = Instant::now();
    while agents_of(data) > 0 {
        assert!(began.elapsed() < Duration::from_secs(15), "{} processes are left", agents_of(data));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_nanos()
}
fn stamp(record: &Value) -> u128 {
    record["timestamp_ns"].as_str().expect("a text").parse().expect("nanoseconds")
}

/// Without our own client: anyone may ask.
fn get(url: &str, path: &str, token: &Path) -> String {
    let token = fs::read_to_string(token).expect("a token");
    let mut stream = TcpStream::connect(url.strip_prefix("http://").expect("plain HTTP")).expect("it listens");
    let head = format!("GET {path} HTTP/1.1\r\nHost: demo\r\nAuthorization: Bearer {}\r\n", token.trim());
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

const WEEK_NS: u128 = 7 * 86_400 * 1_000_000_000;

#[test]
fn a_demo_has_a_past_and_a_present_and_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");

    let began = now();
    let mut demo = Demo::start(&data, "--exit-after 6s --seed 5");
    let answer = get(&demo.url, "/api/v1/leases?limit=1", &data.join("physics.token"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    demo.read_to(" leases  ");
    assert!(demo.agents() >= 11, "all agents run, but for one whose power may have failed");
    let (report, told) = demo.end();
    no_agent_is_left(&data);
    for story in ["hangs", "revoked ", "loses power", "drained l40s-03"] {
        assert!(told.contains(story), "no {story:?} in {told}");
    }

    // The past: a week up to the start, in order, and nothing after the wall clock.
    let all = report["records"]["all"].as_u64().unwrap();
    let before = all - report["records"]["this_run"].as_u64().unwrap();
    assert!((20_000..60_000).contains(&before), "{before} records of history");
    let past = on(&data, &format!("audit export --data {{}} --kind journal --to {}", before - 1)).ok().lines();
    assert!(past.iter().map(stamp).is_sorted());
    assert!(stamp(&past[0]) >= began - WEEK_NS && stamp(&past[0]) < began - WEEK_NS + 60_000_000_000);
    let last = on(&data, &format!("audit export --data {{}} --from {}", before - 1)).ok().lines();
    assert!(stamp(&last[0]) <= now() && stamp(&last[0]) + 30_000_000_000 > began, "it ends where the demo begins");
    assert!(last.iter().map(stamp).is_sorted() && stamp(last.last().unwrap()) <= now());
    assert_eq!(last[1]["kind"], "journal.started");
    for kind in ["lease.denied", "lease.expired", "lease.revoked", "lease.fenced", "lease.unfenced", "node.lost"] {
        let count = &report["kinds"][kind];
        assert!(count["all"].as_u64() > count["this_run"].as_u64(), "no {kind} in the past: {count}");
    }
    on(&data, "audit verify {} --trust {}/trust").ok();

    // The one who watches: granted, refused with the three numbers; then the power fails for all of it.
    let mut demo = Demo::start(&data, "");
    let granted = demo.tenant("lease request --class gpu-l40s=2 --ttl 10m --project sandbox --json").ok().json();
    let lease = granted["leases"][0]["id"].as_str().unwrap_or_else(|| panic!("no lease in {granted}"));
    let refused = demo.tenant("lease request --class gpu-l40s=4 --ttl 10m --project sandbox");
    assert_eq!(refused.code, 1, "{refused:?}");
    for number in ["used 2", "requested 4", "limit 4"] {
        assert!(refused.err.contains(number), "no {number:?} in {refused:?}");
    }
    demo.read_to(" leases  ");
    kill_process(Pid::from_child(&demo.child), Signal::KILL).unwrap();
    demo.child.wait().unwrap();
    no_agent_is_left(&data);

    // Everything is as it was.
    let demo = Demo::start(&data, "--exit-after 3s");
    let shown = demo.tenant(&format!("lease show {lease} --json")).ok().json();
    assert_eq!(shown["state"], "active", "{shown}");
    demo.operator(&format!("lease revoke {lease} --grace 0s")).ok();
    let (report, told) = demo.end();
    assert!(told.contains("  restart ") && !told.contains("  history "), "a past is written once: {told}");
    assert_eq!(report["kinds"]["node.put"], serde_json::json!({ "all": 41, "this_run": 0 }));
    assert_eq!(report["kinds"]["journal.genesis"]["all"], 1);
    on(&data, "audit verify {} --trust {}/trust").ok();
    no_agent_is_left(&data);
}

/// Types every command that the demo prints into a shell, as a reader would, in order. What ends the demo is left to the
/// other test; what follows without end, and what another program does, is only looked for.
#[test]
fn every_command_of_the_tour_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut demo = Demo::start(&data, "--history 1d --seed 7");
    let commands = demo.tour();
    let export = commands.iter().find(|command| command.starts_with("export ")).expect("where the daemon is");
    let ours: Vec<&String> = commands
        .iter()
        .filter(|command| command.starts_with(BINARY) && !command.contains(" --follow") && !command.contains(" demo "))
        .collect();
    assert!(ours.len() >= 9, "{commands:?}");
    for (place, command) in ours.iter().enumerate() {
        let mut command = (*command).clone();
        if command.contains(" LEASE ") {
            let held = demo.tenant("lease list --project sandbox --json").ok().json();
            let lease = held["leases"][0]["id"].as_str().unwrap_or_else(|| panic!("no lease in {held}"));
            command = command.replace(" LEASE ", &format!(" {lease} "));
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{export}; {command}")]);
        let said = common::said(shell);
        // The second asks for more than is left, and is there to be refused.
        let expected = if place == 1 { 1 } else { 0 };
        assert_eq!(said.code, expected, "{command}: {said:?}");
    }
    for other in [" --follow ", "curl ", "kill -9 ", " demo --data "] {
        assert!(commands.iter().any(|command| command.contains(other)), "no {other:?} in {commands:?}");
    }
    drop(demo);
    no_agent_is_left(&data);
}
