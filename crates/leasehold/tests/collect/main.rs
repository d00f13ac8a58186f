//! `leasehold audit collect` against a real daemon: the copy verifies and continues after a kill, and manipulations on the
//! way or at the origin are detected.

#[path = "../common/mod.rs"]
mod common;
mod daemon;
mod evidence;
mod proxy;
mod statements;

use common::{BINARY, Said, leasehold};
use daemon::Origin;
use proxy::{Frame, Proxy, Tamper, batches, whole};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use tempfile::TempDir;

const ORIGIN: &str = "c.example";

/// An auditor: a trust file, a token and a directory for the copy.
struct Auditor {
    folder: TempDir,
    trust: PathBuf,
    token: PathBuf,
}

impl Auditor {
    fn of(origin: &Origin) -> Self {
        Self::with(origin, false)
    }
    fn with(origin: &Origin, pinned: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let trust = origin.trust(pinned, folder.path());
        let token = folder.path().join("token");
        std::fs::copy(origin.token_file(), &token).expect("a token");
        Self { folder, trust, token }
    }
    fn data(&self) -> PathBuf {
        self.folder.path().join("copy")
    }
    fn arguments(&self, url: &str) -> Vec<String> {
        let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        let (trust, data, token) = (path(&self.trust), path(&self.data()), path(&self.token));
        let words = ["audit", "collect", url, "--trust", &trust, "--data", &data, "--token-file", &token, "--json"];
        words.map(str::to_owned).to_vec()
    }
    fn collect(&self, url: &str) -> Said {
        leasehold(self.arguments(url))
    }
    fn verify(&self) -> Value {
        let (data, trust) = (self.data(), self.trust.clone());
        leasehold(["audit", "verify", data.to_str().unwrap(), "--trust", trust.to_str().unwrap(), "--json"]).ok().json()
    }
    /// Collects contradicting data, and returns the code and the message; the earlier copy still verifies.
    fn refuses(&self, url: &str) -> (String, String) {
        let said = self.collect(url);
        assert_eq!(said.code, if said.json()["code"] == "forked" { 4 } else { 3 }, "{said:?}");
        let told = said.json();
        let text = |name: &str| told[name].as_str().expect("a text").to_owned();
        assert_eq!(text("verdict"), "no");
        assert!(said.err.contains(&format!("({})", text("code"))), "{said:?}");
        if told["records"] != 0 {
            assert_eq!(self.verify()["records"], told["records"], "only what was proved is left");
        }
        (text("code"), text("sentence"))
    }
}

#[test]
fn a_copy_grows_with_its_origin_and_verifies() {
    let mut origin = Origin::named(ORIGIN);
    let size = origin.seal(20).size;
    let auditor = Auditor::with(&origin, true);
    let told = auditor.collect(&origin.url()).ok().json();
    assert!(told["records"].as_u64().unwrap() >= size, "{told}");
    assert_eq!(told["collected"], told["records"]);
    let verified = auditor.verify();
    assert_eq!((&verified["verdict"], &verified["records"]), (&Value::from("yes"), &told["records"]));
    assert_eq!(verified["proved_by"]["kind"], "pinned_checkpoint");

    // A run without new records collects nothing; the next one collects the new records.
    assert_eq!(auditor.collect(&origin.url()).ok().json()["collected"].as_u64().unwrap(), 0);
    origin.seal(5);
    assert!(auditor.collect(&origin.url()).ok().json()["collected"].as_u64().unwrap() >= 5);
    auditor.verify();

    // The other commands can read the copy.
    let exported = common::on(&auditor.data(), "audit export --data {}").ok().lines();
    assert_eq!(exported.len() as u64, auditor.verify()["records"].as_u64().unwrap());
    common::on(&auditor.data(), "audit prove --data {} --sequence 7").ok();

    // For people.
    let mut words = auditor.arguments(&origin.url());
    words.retain(|word| word != "--json");
    let said = leasehold(words).ok();
    assert!(said.out.contains("proved by the checkpoint of") && said.out.contains("leasehold-verify"), "{said:?}");
    origin.stop();
}

#[test]
fn a_killed_collector_continues_its_copy() {
    let mut origin = Origin::named(ORIGIN);
    let size = origin.seal(30).size;
    let auditor = Auditor::of(&origin);
    // Three batches per answer; the fourth request is never answered.
    let (asked, kill) = channel();
    let mut questions = 0;
    let few: Tamper = Box::new(move |path, body| {
        if !path.contains("/audit/batches") {
            return Some(body);
        }
        questions += 1;
        if questions == 4 {
            asked.send(()).expect("the test waits");
            return None;
        }
        Some(whole(&body).iter().take(3).flat_map(|batch| batch.bytes().to_vec()).collect())
    });
    let proxy = Proxy::before(origin.address, few);
    let mut child = Command::new(BINARY)
        .args(auditor.arguments(&proxy.url()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    kill.recv().expect("the fourth question");
    child.kill().expect("it runs");
    child.wait().expect("it ends");

    let all: u64 = {
        let fresh = Auditor::of(&origin);
        fresh.collect(&origin.url()).ok().json()["bytes"].as_u64().unwrap()
    };
    let told = auditor.collect(&origin.url()).ok().json();
    assert!(told["records"].as_u64().unwrap() >= size);
    let fetched = told["bytes"].as_u64().unwrap();
    assert!(0 < fetched && fetched < all, "{fetched} of {all}: what was stored was not fetched again");
    auditor.verify();
    origin.stop();
}

struct Following {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Following {
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn following_continues_until_a_signal() {
    let mut origin = Origin::named(ORIGIN);
    origin.seal(3);
    let auditor = Auditor::of(&origin);
    let mut arguments = auditor.arguments(&origin.url());
    arguments.push("--follow".into());
    let mut child = Command::new(BINARY).args(arguments).stdout(Stdio::piped()).spawn().expect("the binary runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut following = Following { child, lines };
    let first = following.line()["records"].as_u64().unwrap();
    let size = origin.seal(4).size;
    let mut last = first;
    while last < size {
        last = following.line()["records"].as_u64().unwrap();
    }
    // A second collector must not write to the copy.
    let second = auditor.collect(&origin.url());
    assert!(second.code == 1 && second.err.contains("(journal_in_use)"), "{second:?}");
    let id = rustix::process::Pid::from_child(&following.child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    assert!(following.child.wait().expect("it ends").success());
    auditor.verify();
    origin.stop();
}

/// Each manipulation is applied on the way, to a new copy and to an existing one.
#[test]
fn manipulations_on_the_way_are_detected() {
    let mut origin = Origin::named(ORIGIN);
    let early = origin.seal(10).size;
    let begun = Auditor::of(&origin);
    begun.collect(&origin.url()).ok();
    let size = origin.seal(10).size;
    let altered = |change: fn(&mut Vec<Frame>)| -> Tamper { Box::new(move |path, body| batches(path, body, change)) };
    let attacks: Vec<(&str, Tamper, &str)> = vec![
        (
            "a byte",
            Box::new(|path, mut body| {
                if path.contains("/audit/batches") {
                    let last = body.len() - 1;
                    body[last] ^= 1;
                }
                Some(body)
            }),
            "bad_checksum",
        ),
        (
            "a byte, mended",
            altered(|frames| {
                let at = frames.len() - 5;
                frames[at].replace("tenant-", "Tenant-");
            }),
            "broken_link",
        ),
        (
            "the last record, mended",
            altered(|frames| {
                frames.last_mut().unwrap().replace("tenant-", "Tenant-");
            }),
            "root_mismatch",
        ),
        ("a removed record", altered(|frames| drop(frames.remove(frames.len() - 5))), "gap"),
        (
            "swapped records",
            altered(|frames| {
                let at = frames.len() - 5;
                frames.swap(at, at + 1);
            }),
            "gap",
        ),
        (
            "a repeated record",
            altered(|frames| {
                let at = frames.len() - 5;
                frames.insert(at, frames[at].clone());
            }),
            "out_of_order",
        ),
        ("a record that is none", altered(|frames| frames.last_mut().unwrap().bytes.truncate(50)), "undecodable"),
        ("a stray signature", altered(|frames| frames.last_mut().unwrap().signatures = vec![1; 64]), "undecodable"),
        (
            "nothing",
            Box::new(|path, body| Some(if path.contains("/audit/batches") { Vec::new() } else { body })),
            "gap",
        ),
        (
            "something else",
            Box::new(|path, body| {
                Some(if path.contains("/audit/batches") { b"<html>what batches?</html>".to_vec() } else { body })
            }),
            "not_a_batch",
        ),
        (
            "the end of a batch",
            Box::new(|path, mut body| {
                if path.contains("/audit/batches") {
                    body.truncate(body.len() - 3);
                }
                Some(body)
            }),
            "cut_batch",
        ),
        (
            "a false signature",
            note(|text| {
                let at = text.rfind(' ').unwrap() + 20;
                let other = if &text[at..=at] == "A" { "B" } else { "A" };
                text.replace_range(at..=at, other);
            }),
            "bad_signature",
        ),
        (
            "another root",
            note(|text| {
                let at = text.match_indices('\n').nth(1).unwrap().0 + 5;
                let other = if &text[at..=at] == "A" { "B" } else { "A" };
                text.replace_range(at..=at, other);
            }),
            "bad_signature",
        ),
        ("another origin", note(|text| *text = text.replace(ORIGIN, "d.example")), "wrong_origin"),
        ("no checkpoint", note(|text| *text = "nonsense".into()), "bad_checkpoint"),
    ];
    for (attack, tamper, code) in attacks {
        let proxy = Proxy::before(origin.address, tamper);
        let fresh = Auditor::of(&origin);
        for auditor in [&fresh, &begun] {
            let (told, sentence) = auditor.refuses(&proxy.url());
            assert_eq!(told, code, "{attack}: {sentence}");
        }
        // Without the manipulation, the copy continues.
        fresh.collect(&origin.url()).ok();
        assert!(fresh.verify()["records"].as_u64().unwrap() >= size, "{attack}");
    }
    assert!(begun.verify()["records"].as_u64().unwrap() >= early);
    begun.collect(&origin.url()).ok();
    begun.verify();
    origin.stop();
}

/// Changes the note of the newest checkpoint.
fn note(change: fn(&mut String)) -> Tamper {
    Box::new(move |path, body| {
        if !path.contains("/audit/checkpoint") {
            return Some(body);
        }
        let mut answer: Value = serde_json::from_slice(&body).expect("JSON");
        let mut text = answer["note"].as_str().expect("a note").to_owned();
        change(&mut text);
        answer["note"] = text.into();
        Some(answer.to_string().into_bytes())
    })
}

#[test]
fn a_contradicting_record_is_named() {
    let mut origin = Origin::named(ORIGIN);
    origin.seal(10);
    let remove_the_eighth: Tamper = Box::new(|path, body| batches(path, body, |frames| drop(frames.remove(7))));
    let proxy = Proxy::before(origin.address, remove_the_eighth);
    let said = Auditor::of(&origin).collect(&proxy.url());
    assert_eq!((said.code, said.json()["sequence"].as_u64()), (3, Some(7)));
    assert_eq!(said.json()["sentence"], "record 7 is missing: record 8 stands in its place");
    origin.stop();
}

#[test]
fn an_older_checkpoint_is_refused() {
    let mut origin = Origin::named(ORIGIN);
    origin.seal(5);
    let auditor = Auditor::of(&origin);
    // The proxy returns the first checkpoint for every request.
    let mut first: Option<Vec<u8>> = None;
    let frozen: Tamper = Box::new(move |path, body| {
        Some(if path.contains("/audit/checkpoint") { first.get_or_insert(body).clone() } else { body })
    });
    let proxy = Proxy::before(origin.address, frozen);
    auditor.collect(&proxy.url()).ok();
    origin.seal(5);
    // A checkpoint of the size of the copy only means that there are no new records.
    assert_eq!(auditor.collect(&proxy.url()).ok().json()["collected"], 0);
    auditor.collect(&origin.url()).ok();
    let (code, sentence) = auditor.refuses(&proxy.url());
    assert_eq!(code, "journal_went_back", "{sentence}");
    origin.stop();
}

#[test]
fn another_origin_or_key_is_refused() {
    let mut origin = Origin::named(ORIGIN);
    origin.seal(3);
    let auditor = Auditor::of(&origin);
    let fresh = Auditor::of(&origin);
    auditor.collect(&origin.url()).ok();
    origin.stop();

    let mut other = Origin::named("d.example");
    other.seal(3);
    for auditor in [&auditor, &fresh] {
        std::fs::copy(other.token_file(), &auditor.token).expect("a token");
        assert_eq!(auditor.refuses(&other.url()).0, "wrong_origin");
    }
    other.stop();

    // The same origin with another key.
    let mut impostor = Origin::named(ORIGIN);
    impostor.seal(30);
    for (auditor, code) in [(&auditor, "broken_link"), (&fresh, "unknown_key")] {
        std::fs::copy(impostor.token_file(), &auditor.token).expect("a token");
        let (told, sentence) = auditor.refuses(&impostor.url());
        assert_eq!(told, code, "{sentence}");
    }
    impostor.stop();
}

#[test]
fn a_new_trust_file_is_compared_with_the_whole_copy() {
    let mut origin = Origin::named(ORIGIN);
    origin.seal(5);
    let forked = origin.copy();
    let size = origin.seal(5).size;
    let auditor = Auditor::of(&origin);
    auditor.collect(&origin.url()).ok();

    // A trust file with a checkpoint of a fork that lies within the copy.
    let mut fork = Origin::in_folder(forked, ORIGIN, 1000);
    while fork.seal(1).size < size - 1 {}
    let elsewhere = Auditor::with(&fork, true);
    fork.stop();
    let own = std::fs::read_to_string(&auditor.trust).expect("a file");
    std::fs::copy(&elsewhere.trust, &auditor.trust).expect("a file");
    let said = auditor.collect(&origin.url());
    assert!(said.code == 4 && said.err.contains("(forked)"), "{said:?}");
    auditor.confirms(size - 1, (size - 1, size));

    // The correct trust file, with the newest checkpoint.
    std::fs::write(&auditor.trust, own).expect("a file");
    auditor.collect(&origin.url()).ok();
    origin.trust(true, auditor.folder.path());
    let said = auditor.collect(&origin.url()).ok();
    assert!(said.err.contains("verified against it first"), "{said:?}");
    assert!(!auditor.collect(&origin.url()).ok().err.contains("verified against it first"));
    assert_eq!(auditor.verify()["proved_by"]["kind"], "pinned_checkpoint");
    origin.stop();
}

#[test]
fn invalid_arguments_are_refused() {
    let mut origin = Origin::named(ORIGIN);
    origin.seal(1);
    let auditor = Auditor::of(&origin);
    let refused = |said: &Said, exit: i32, code: &str| {
        assert!(said.code == exit && said.err.contains(&format!("({code})")), "{said:?}");
    };
    std::fs::write(&auditor.token, format!("lht_{}", "0".repeat(64))).expect("a file");
    refused(&auditor.collect(&origin.url()), 1, "unauthenticated");
    std::fs::copy(origin.token_file(), &auditor.token).expect("a token");
    // The daemon's own data directory cannot be the directory of a copy.
    let (data, url) = (origin.data(), origin.url());
    let words =
        ["audit", "collect", &url, "--trust", auditor.trust.to_str().unwrap(), "--data", data.to_str().unwrap()];
    refused(&leasehold(words), 1, "journal_in_use");
    let folder = origin.stop();
    refused(&leasehold(words), 1, "not_a_copy");
    refused(&auditor.collect(&url), 1, "unreachable");
    drop(folder);
}
