//! `leasehold key …` with a real daemon: both keys sign during a rotation, and a kill at any moment leaves a usable key file.

mod common;

use common::daemon::{Daemon, refuses, tells};
use leasehold_tlog::{Note, SigningKey};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// The IDs and statuses of the keys, oldest first.
fn keys(list: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let keys = list["keys"].as_array().expect("a list");
    keys.iter().map(|key| (text(&key["id"]), text(&key["status"]))).collect()
}

/// The IDs of the keys that signed the newest checkpoint, once one was made.
fn signers(daemon: &Daemon, size: u64) -> Vec<String> {
    loop {
        let checkpoint = daemon.json("audit checkpoint");
        if checkpoint["size"].as_u64().expect("a number") >= size {
            let note = Note::parse(checkpoint["note"].as_str().expect("a note")).expect("a note");
            return note.signatures().iter().map(|signature| signature.key_id().to_string()).collect();
        }
    }
}

/// Writes a record, and returns the size that covers it.
fn record(daemon: &Daemon, name: &str) -> u64 {
    daemon.json(&format!("tenant create {name}"))["sequence"].as_u64().expect("a number") + 1
}

fn verify(daemon: &Daemon) -> Value {
    daemon.run("audit verify {}/data --trust {}/old.trust --json").ok().json()
}

#[test]
fn both_keys_sign_until_the_rotation_is_finished() {
    let mut daemon = Daemon::start();
    let trust = daemon.run("audit trust --data {}/data").ok().out;
    fs::write(daemon.path("old.trust"), trust.split("checkpoint\n").next().expect("a beginning")).unwrap();
    let [(first, status)] = keys(&daemon.json("key show")).try_into().expect("one key");
    assert_eq!(status, "in_force");
    refuses(&daemon.run("key rotate --key 1 --finish extra"), 2, "usage");

    let rotated = daemon.json("key rotate --key once");
    let second = rotated["new_key"].as_str().expect("an ID").to_owned();
    assert_eq!((rotated["old_key"].as_str(), first == second), (Some(first.as_str()), false));
    // Sent again it is the same rotation; another one has to wait.
    assert_eq!(daemon.json("key rotate --key once"), rotated);
    let again = daemon.run("key rotate");
    refuses(&again, 1, "key_rotation_unfinished");
    assert_eq!(fs::metadata(daemon.path("data/key")).unwrap().permissions().mode() & 0o777, 0o600);

    // Killed at once, before or after the checkpoint that covers the rotation.
    daemon.kill_and_restart(|_| ());
    let expected =
        |statuses: [&str; 2]| vec![(first.clone(), statuses[0].into()), (second.clone(), statuses[1].into())];
    assert_eq!(keys(&daemon.json("key show")), expected(["still_signing", "in_force"]));
    let size = record(&daemon, "physics");
    assert_eq!(signers(&daemon, size), [second.clone(), first.clone()]);
    daemon.run("audit prove --sequence 1 --out {}/1.proof").ok();
    daemon.run("audit prove --check {}/1.proof --trust {}/old.trust").ok();
    let verified = verify(&daemon);
    assert_eq!(verified["rotations"][0]["new_key"].as_str(), Some(second.as_str()));

    // The key is rotated only once with the same idempotency key, also after a restart.
    assert_eq!(daemon.json("key rotate --key once")["sequence"], rotated["sequence"]);
    let shown = daemon.run("key show").ok();
    let line = format!("key {}\n", rotated["verifier_key"].as_str().expect("a key"));
    tells(&shown, &[&line, "replaced, still signing", "in force", "fingerprint", "sizes 1 to"]);

    let finished = daemon.json("key rotate --finish");
    assert_eq!(finished["retired"], serde_json::json!([first]));
    tells(&daemon.run("key rotate --finish").ok(), &["No rotation is in progress"]);
    daemon.kill_and_restart(|_| ());
    assert_eq!(keys(&daemon.json("key show")), expected(["retired", "in_force"]));
    let size = record(&daemon, "biology");
    assert_eq!(signers(&daemon, size), std::slice::from_ref(&second));
    let over_http = daemon.json("key show");
    assert_eq!(over_http["keys"][1]["from_size"].as_u64(), rotated["sequence"].as_u64().map(|sequence| sequence + 1));
    assert_eq!(daemon.json("key show --data {}/data"), over_http, "the files say the same");

    // Whoever trusts the old key accepts the new one, and gets it into the trust file.
    assert_eq!(verify(&daemon)["key_in_force"], Value::Null);
    daemon.run("audit prove --sequence 1 --out {}/2.proof").ok();
    let unknown = daemon.run("audit prove --check {}/2.proof --trust {}/old.trust");
    refuses(&unknown, 3, "not_proved");
    daemon.run("audit verify {}/data --trust {}/old.trust --update-trust {}/new.trust").ok();
    daemon.run("audit prove --check {}/2.proof --trust {}/new.trust").ok();
    // The key can be rotated again.
    daemon.run("key rotate").ok();
    assert_eq!(keys(&daemon.json("key show")).len(), 3);
}

/// A crash between the key file and the record leaves a key that never was in force: the next rotation uses it.
#[test]
fn an_interrupted_rotation_is_continued() {
    let mut daemon = Daemon::start();
    let about = daemon.json("key show");
    let origin = about["origin"].as_str().expect("an origin").to_owned();
    let left = SigningKey::from_seed(&origin, &[7; 32]).expect("a key").verifier();
    daemon.kill_and_restart(|data| {
        let key = fs::read_to_string(data.join("key")).unwrap();
        fs::write(data.join("key"), key + &format!("seed {}\n", "07".repeat(32))).unwrap();
    });
    assert_eq!(keys(&daemon.json("key show")).len(), 1, "it never was in force");
    let size = record(&daemon, "physics");
    assert_eq!(signers(&daemon, size).len(), 1, "and does not sign");
    assert_eq!(daemon.json("key rotate")["verifier_key"], left.to_string());
    daemon.run("key rotate --finish").ok();
    assert!(!fs::read_to_string(daemon.path("data/key")).unwrap().contains("leasehold-key v1"));
}

#[test]
fn only_operators_rotate() {
    let daemon = Daemon::start();
    daemon.run("token issue collector --role auditor --out {}/auditor.token").ok();
    daemon.by("auditor.token", "key show").ok();
    refuses(&daemon.by("auditor.token", "key rotate"), 1, "role_forbids");
    refuses(&daemon.by("auditor.token", "key rotate --finish"), 1, "role_forbids");
}
