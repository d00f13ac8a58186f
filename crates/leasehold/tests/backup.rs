//! `leasehold backup` and `leasehold restore` with a real daemon.

mod common;

use common::daemon::{Daemon, granted};
use common::{BINARY, Said, on, said};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SERVE: &str = "--listen 127.0.0.1:0 --data {}/data";
const SECRETS: [&str; 3] = ["key", "local.secret", "operator.token"];

/// A running daemon with a tenant and a lease.
fn with_lease() -> (Daemon, String) {
    let daemon = Daemon::start();
    daemon.furnish();
    let line = "lease request --gpu 1 --ttl 1h --tenant physics --project lattice --user ada --json";
    let lease = granted(daemon.run(line));
    (daemon, lease)
}

fn backup(folder: &Path, more: &str) -> Said {
    on(folder, &format!("backup {{}}/backup --data {{}}/data{more}"))
}

fn restore(folder: &Path, more: &str) -> Said {
    on(folder, &format!("restore {{}}/backup --data {{}}/restored{more}"))
}

/// Verifies a directory with the trust file of the original.
fn verify(folder: &Path, what: &str) {
    on(folder, &format!("audit verify {{}}/{what} --trust {{}}/trust")).ok();
}

/// Writes records until told to stop, in batches.
fn under_load<T>(daemon: &Daemon, lease: &str, act: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    let renew = format!("{{\"lease\":\"{lease}\",\"renew\":{{\"ttl\":\"8h\"}}}}");
    let batch = format!("{{\"operations\":[{}]}}", vec![renew; 200].join(","));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let (status, body) = daemon.http("POST", "/api/v1/leases/batch", &batch);
                assert!(matches!(status, 200 | 429), "{}", &body[..body.len().min(400)]);
                // As many operations as a token may have.
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let done = act();
        stop.store(true, Ordering::Relaxed);
        done
    })
}

/// The number of records in the journal.
fn size_of(daemon: &Daemon) -> u64 {
    serde_json::from_str::<Value>(&daemon.get("/api/v1/about")).unwrap()["size"].as_u64().expect("a size")
}

fn records_of(daemon: &Daemon, kind: &str) -> Vec<Value> {
    daemon.run(&format!("audit records --kind {kind} --json")).ok().lines()
}

#[test]
fn a_backup_of_a_running_daemon_is_restored_and_served() {
    let (daemon, lease) = with_lease();
    let trust = daemon.run("audit trust --data {}/data").ok().out;
    fs::write(daemon.path("trust"), trust).unwrap();
    let at = daemon.folder.path();
    let first = under_load(&daemon, &lease, || {
        daemon.until_signed_beyond(50);
        let first = backup(at, " --json").ok().json();
        // A second run copies what is new.
        let began = std::time::Instant::now();
        loop {
            let second = backup(at, " --json").ok().json();
            assert_eq!(second["copied"].as_u64().unwrap() + first["records"].as_u64().unwrap(), second["records"]);
            // What is not signed yet is not copied.
            if second["records"].as_u64() > first["records"].as_u64() {
                break second;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{second}");
        }
    });
    assert_eq!((&first["verified"], &first["secrets"]), (&Value::Bool(true), &serde_json::json!([])));
    assert!(SECRETS.iter().all(|name| !daemon.path("backup").join(name).exists()));
    assert_eq!(fs::metadata(daemon.path("backup")).unwrap().permissions().mode() & 0o777, 0o700);
    verify(at, "backup");

    // The old directory ends here. What it wrote after the backup is lost.
    daemon.run("tenant create lost").ok();
    let before = daemon.run(&format!("lease show {lease} --json")).ok().json();
    let (folder, _) = daemon.stop();
    let restored = restore(folder.path(), " --only-copy --key {}/data/key --json").ok().json();
    assert_eq!(restored["restored"], first["records"], "{restored}");
    verify(folder.path(), "restored");
    fs::rename(folder.path().join("data"), folder.path().join("old")).unwrap();
    fs::rename(folder.path().join("restored"), folder.path().join("data")).unwrap();
    assert_eq!(fs::metadata(folder.path().join("data")).unwrap().permissions().mode() & 0o777, 0o700);
    fs::copy(folder.path().join("old/operator.token"), folder.path().join("data/operator.token")).unwrap();

    let daemon = Daemon::serving(folder, SERVE);
    let now = daemon.run(&format!("lease show {lease} --json")).ok().json();
    assert_eq!((&now["id"], &now["uid"], &now["node"]), (&before["id"], &before["uid"], &before["node"]));
    assert_eq!(daemon.run("tenant show lost").code, 1);
    let sealed = records_of(&daemon, "journal.restored");
    assert_eq!(sealed.len(), 1);
    assert_eq!(sealed[0]["body"]["records"], first["records"], "{sealed:?}");
    let epochs: Vec<u64> =
        records_of(&daemon, "journal.started").iter().map(|one| one["body"]["epoch"].as_u64().unwrap()).collect();
    let began = restored["epoch"].as_u64().unwrap();
    assert_eq!(epochs, [1, began, began + 1], "the original, the restore, this start");
    assert!(began > 1_700_000_000, "the time of the restore, which the old directory never reaches: {began}");
    daemon.run(&format!("lease release {lease}")).ok();
    // Whoever followed the old journal further than this is told.
    let beyond = restored["records"].as_u64().unwrap() + 100_000;
    let (status, body) = daemon.http("GET", &format!("/api/v1/events?after={beyond}"), "");
    assert_eq!(status, 410, "{body}");
    let (folder, _) = daemon.stop();
    verify(folder.path(), "data");
}

#[test]
fn a_backup_with_secrets_needs_nothing_else() {
    let (daemon, lease) = with_lease();
    let (folder, _) = daemon.stop();
    let at = folder.path();
    let told = backup(at, " --with-secrets").ok();
    assert!(told.out.contains("key, local.secret, operator.token"), "{told:?}");
    for name in SECRETS {
        assert_eq!(fs::metadata(at.join("backup").join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    restore(at, " --only-copy").ok();
    fs::rename(at.join("data"), at.join("old")).unwrap();
    fs::rename(at.join("restored"), at.join("data")).unwrap();
    let daemon = Daemon::serving(folder, SERVE);
    daemon.run(&format!("lease release {lease}")).ok();
}

#[test]
fn what_cannot_be_backed_up_or_restored_is_refused() {
    let (daemon, _) = with_lease();
    let (folder, _) = daemon.stop();
    let at = folder.path();
    let refused = |said: Said, code: &str| assert!(said.code != 0 && said.err.contains(code), "no {code}: {said:?}");
    // The target of a backup.
    fs::create_dir(at.join("other")).unwrap();
    fs::write(at.join("other/file"), "mine").unwrap();
    refused(on(at, "backup {}/other --data {}/data"), "backup_not_empty");
    refused(on(at, "backup {}/data/inside --data {}/data"), "backup_in_data");
    refused(on(at, "backup {} --data {}/data"), "backup_in_data");
    refused(on(at, "backup {}/other/file --data {}/data"), "backup_unusable");
    refused(on(at, "backup {}/new --data {}/nowhere"), "data_unusable");
    refused(on(at, "backup {}/new --data {}/other"), "journal_not_found");
    assert_eq!(fs::read_dir(at.join("other")).unwrap().count(), 1, "nothing was written there");
    fs::remove_dir_all(at.join("data/inside")).unwrap_or_default();
    backup(at, "").ok();
    // The restore.
    refused(restore(at, ""), "only_copy_needed");
    refused(restore(at, " --only-copy"), "key_needed");
    refused(on(at, "restore {}/backup --data {}/other --only-copy --key {}/data/key"), "restore_not_empty");
    refused(on(at, "restore {}/other --data {}/restored --only-copy --key {}/data/key"), "journal_not_found");
    refused(restore(at, " --only-copy --key {}/other/file"), "key_unusable");
    let wrong = tempfile::tempdir().unwrap();
    let stranger = Daemon::serving(wrong, SERVE).stop().0;
    let config = format!("origin: another.example\ndata: {}/data\nlisten: 127.0.0.1:0\n", stranger.path().display());
    fs::remove_dir_all(stranger.path().join("data")).unwrap();
    fs::write(stranger.path().join("c.yaml"), config).unwrap();
    let stranger = Daemon::serving(stranger, "--config {}/c.yaml").stop().0;
    let key = stranger.path().join("data/key").display().to_string();
    refused(restore(at, &format!(" --only-copy --key {key}")), "wrong_origin");
    let data = stranger.path().join("data").display().to_string();
    refused(on(at, &format!("backup {{}}/backup --data {data}")), "journal_wrong_origin");
    assert!(!at.join("restored").exists() && !at.join("restored.restoring").exists(), "nothing is left of them");
    // A damaged backup.
    let segment = at.join("backup/journal/00000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let said = restore(at, " --only-copy --key {}/data/key");
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!at.join("restored").exists());
}

#[test]
fn a_collector_that_has_seen_more_stops_a_restore() {
    let (daemon, _) = with_lease();
    fs::write(daemon.path("trust"), daemon.run("audit trust --data {}/data").ok().out).unwrap();
    let collect = |to: &str| {
        let url = daemon.url.clone();
        let line =
            format!("audit collect {url} --trust {{}}/trust --data {{}}/{to} --token-file {{}}/data/operator.token");
        on(daemon.folder.path(), &line).ok();
    };
    collect("early");
    daemon.run("tenant create a").ok();
    daemon.until_signed_beyond(size_of(&daemon) - 1);
    backup(daemon.folder.path(), "").ok();
    daemon.run("tenant create b").ok();
    daemon.until_signed_beyond(size_of(&daemon) - 1);
    collect("late");
    let (folder, _) = daemon.stop();
    let at = folder.path();
    let key = " --only-copy --key {}/data/key";
    let said = restore(at, &format!("{key} --collector {{}}/early --collector {{}}/late"));
    assert!(said.code == 1 && said.err.contains("collector_ahead"), "{said:?}");
    assert!(!at.join("restored").exists());
    restore(at, &format!("{key} --collector {{}}/early")).ok();
    fs::remove_dir_all(at.join("restored")).unwrap();
    // The copy of the collector is as good as a backup.
    on(at, &format!("restore {{}}/late --data {{}}/restored{key} --collector {{}}/late")).ok();
    verify(at, "restored");
    // A restored journal that goes on contradicts what the collector has seen after the backup.
    fs::remove_dir_all(at.join("restored")).unwrap();
    restore(at, key).ok();
    fs::rename(at.join("data"), at.join("old")).unwrap();
    fs::rename(at.join("restored"), at.join("data")).unwrap();
    let said = on(at, "backup {}/late --data {}/data");
    assert_eq!(said.code, 3, "{said:?}");
}

#[test]
fn an_interrupted_backup_is_continued() {
    let (daemon, lease) = with_lease();
    fs::write(daemon.path("trust"), daemon.run("audit trust --data {}/data").ok().out).unwrap();
    under_load(&daemon, &lease, || std::thread::sleep(Duration::from_secs(2)));
    let at = daemon.folder.path();
    // A disk that is full: no file may become longer than this.
    let full = |blocks: u32| {
        let mut command = Command::new("sh");
        let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        command.args(["-c", &line, BINARY, "backup"]).arg(at.join("backup")).arg("--data").arg(at.join("data"));
        said(command)
    };
    let refused = full(2);
    assert!(refused.code == 1 && refused.err.contains("copy_failed"), "{refused:?}");
    let unfinished = restore(at, " --only-copy --key {}/data/key");
    assert!(unfinished.code != 0 && unfinished.err.contains("anchor"), "{unfinished:?}");
    // Killed at any time.
    let mut finished = false;
    for wait in [0, 1, 3, 8, 20, 50, 120] {
        let mut command = Command::new(BINARY);
        command.arg("backup").arg(at.join("backup")).arg("--data").arg(at.join("data"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let _ = child.kill();
        finished |= child.wait().unwrap().success();
        if daemon.path("backup/anchor").exists() {
            verify(at, "backup");
        }
    }
    let told = backup(at, " --json").ok().json();
    assert!(told["records"].as_u64().unwrap() > 1000, "{told}, finished {finished}");
    verify(at, "backup");
    // A restore that was killed leaves a directory that the next one removes.
    fs::create_dir(at.join("restored.restoring")).unwrap();
    fs::write(at.join("restored.restoring/restoring"), "").unwrap();
    fs::write(at.join("restored.restoring/anchor"), "half").unwrap();
    restore(at, " --only-copy --key {}/data/key").ok();
    verify(at, "restored");
    assert!(!at.join("restored.restoring").exists());
}
