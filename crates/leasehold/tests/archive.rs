//! `leasehold journal archive` on the data directory of a real daemon, running and stopped.

mod common;

use common::daemon::{Daemon, granted, refuses};
use common::{Said, on};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Records between snapshots.
const SNAPSHOT_EVERY: u64 = 20_000;

/// Writes a configuration with the smallest segments, and with the archive if it is wanted.
fn configure(folder: &Path, archive: bool) {
    let at = folder.display();
    let archive = if archive { format!("  archive: [{at}/archive]\n") } else { String::new() };
    let text = format!(
        "data: {at}/data\nlisten: 127.0.0.1:0\nrate:\n  operations_per_second: 0\njournal:\n  segment_bytes: 4MiB\n  snapshot_every: \
         {SNAPSHOT_EVERY}\n{archive}"
    );
    fs::write(folder.join("config.yaml"), text).unwrap();
}

fn serve(folder: TempDir) -> Daemon {
    Daemon::serving(folder, "--config {}/config.yaml")
}

fn segments(directory: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".seg")).collect()
}

/// Renews a lease until the journal has begun this many segments.
fn fill(daemon: &Daemon, lease: &str, begun: usize) {
    let renew = format!("{{\"lease\":\"{lease}\",\"renew\":{{\"ttl\":\"8h\"}}}}");
    let batch = format!("{{\"operations\":[{}]}}", vec![renew; 5000].join(","));
    let journal = daemon.path("data/journal");
    // The one that is allocated ahead is not begun.
    while segments(&journal).len() <= begun {
        let (status, body) = daemon.http("POST", "/api/v1/leases/batch", &batch);
        assert_eq!(status, 200, "{}", &body[..body.len().min(400)]);
    }
}

/// A stopped daemon with three full segments and a fourth.
fn stopped_with_segments() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("archive")).unwrap();
    configure(folder.path(), true);
    let daemon = serve(folder);
    daemon.furnish();
    let line = "lease request --gpu 1 --ttl 1h --tenant physics --project lattice --user ada --json";
    let lease = granted(daemon.run(line));
    fill(&daemon, &lease, 4);
    // Snapshots are taken in the background.
    let (wanted, began) = (size(&daemon) - 2 * SNAPSHOT_EVERY, Instant::now());
    while newest_snapshot(&daemon.path("data/snapshots")) < wanted {
        assert!(began.elapsed() < Duration::from_secs(60), "no snapshot");
        std::thread::sleep(Duration::from_millis(100));
    }
    (daemon.stop().0, lease)
}

fn newest_snapshot(directory: &Path) -> u64 {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".snap")?.parse().ok()).max().unwrap_or(0)
}

fn archive(folder: &Path, more: &str) -> Said {
    on(folder, &format!("journal archive --config {{}}/config.yaml --to {{}}/archive{more}"))
}

fn size(daemon: &Daemon) -> u64 {
    serde_json::from_str::<Value>(&daemon.get("/api/v1/about")).unwrap()["size"].as_u64().unwrap()
}

/// The second record and the proof that it is in the journal, each with its status.
fn old(daemon: &Daemon) -> ((u16, String), u16) {
    let (status, page) = daemon.http("GET", "/api/v1/audit/records?after=0&limit=1", "");
    let page: Value = serde_json::from_str(&page).unwrap();
    let record = page.get("records").unwrap_or(&page).to_string();
    ((status, record), daemon.http("GET", "/api/v1/audit/proofs/inclusion?sequence=1", "").0)
}

#[test]
fn old_segments_are_moved_and_still_read() {
    let (folder, lease) = stopped_with_segments();
    // With the daemon running: what it needs stays, the rest goes.
    let daemon = serve(folder);
    let ((status, record), proof) = old(&daemon);
    assert_eq!((status, proof), (200, 200), "{record}");
    let planned = archive(daemon.folder.path(), " --dry-run --json").ok().json();
    let moved = archive(daemon.folder.path(), " --json").ok().json();
    assert_eq!(moved["moved"], planned["moved"], "{moved}");
    let numbers: Vec<&str> = moved["moved"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(numbers[..2], ["00000001", "00000002"], "{moved}");
    assert!(!daemon.path("data/journal/00000002.tree").exists());
    assert!(daemon.path("archive/00000002.tree").exists());
    assert_eq!(old(&daemon), ((200, record.clone()), 200));
    // The daemon may need one segment less by now, because its books go on; once they are done, nothing is left to move.
    let again = (0..10).map(|_| archive(daemon.folder.path(), "").ok()).find(|said| said.out.starts_with("nothing to"));
    assert!(again.is_some(), "there is always something to move");
    fill(&daemon, &lease, 4);

    // A restart, with the archive: the old records and their proofs are read there.
    let before = size(&daemon);
    let daemon = serve(daemon.stop().0);
    assert_eq!(size(&daemon), before + 1, "only `journal.started` was sealed");
    assert_eq!(old(&daemon), ((200, record.clone()), 200));
    let verified = daemon.run("audit trust --data {}/data --archive {}/archive").ok();
    fs::write(daemon.path("trust"), verified.out).unwrap();
    let (folder, _) = daemon.stop();
    on(folder.path(), "audit verify {}/data --archive {}/archive --trust {}/trust").ok();

    // With the archive not mounted: it starts, says so, and answers for everything but the old records.
    fs::rename(folder.path().join("archive"), folder.path().join("elsewhere")).unwrap();
    let daemon = serve(folder);
    let log = daemon.log.lock().unwrap().join("\n");
    assert!(log.contains("a directory of journal.archive does not exist"), "{log}");
    assert!(log.contains("`archived` (410)"), "{log}");
    let ((status, refused), proof) = old(&daemon);
    assert_eq!((status, proof), (410, 410), "{refused}");
    daemon.run(&format!("lease show {lease}")).ok();
    assert_eq!(daemon.http("GET", "/api/v1/usage?by=tenant", "").0, 200);
    let (folder, _) = daemon.stop();

    // Without the books it cannot start, names the segment, and has sealed nothing.
    fs::rename(folder.path().join("data/books.redb"), folder.path().join("books.redb")).unwrap();
    let sealed = newest(folder.path());
    let (folder, log) = match Daemon::try_serving(folder, "--config {}/config.yaml") {
        Ok(_) => panic!("it started without books and segments"),
        Err(refused) => refused,
    };
    assert!(log.iter().any(|line| line.contains("(journal_segment_missing)")), "{log:#?}");
    assert_eq!(newest(folder.path()), sealed);
    fs::rename(folder.path().join("elsewhere"), folder.path().join("archive")).unwrap();
    assert_eq!(old(&serve(folder)), ((200, record), 200));
}

/// The number of records in the newest checkpoint, read from the files.
fn newest(folder: &Path) -> Value {
    on(folder, "audit checkpoint --data {}/data --json").ok().json()["size"].clone()
}

#[test]
fn a_wrong_archive_is_refused_with_what_to_do() {
    let (folder, _) = stopped_with_segments();
    let path = folder.path();
    // A copy that differs is not overwritten, and the original stays.
    fs::write(path.join("archive/00000001.seg"), b"something else").unwrap();
    refuses(&archive(path, ""), 1, "archive_differs");
    assert!(path.join("data/journal/00000001.seg").exists());
    // A whole copy counts, as after an interruption.
    fs::copy(path.join("data/journal/00000001.seg"), path.join("archive/00000001.seg")).unwrap();
    fs::write(path.join("archive/00000002.seg.tmp"), b"half a copy").unwrap();
    // Damage is noticed before anything is removed.
    let second = path.join("data/journal/00000002.seg");
    let whole = fs::read(&second).unwrap();
    let mut damaged = whole.clone();
    damaged[300_000] ^= 1;
    fs::write(&second, damaged).unwrap();
    refuses(&archive(path, ""), 1, "archive_damaged");
    assert_eq!(segments(&path.join("archive")), BTreeSet::from(["00000001.seg".to_owned()]));
    fs::write(&second, whole).unwrap();
    let moved = archive(path, "").ok();
    assert!(moved.out.contains("moved 1 segment") || moved.out.contains("moved 2 segments"), "{moved:?}");

    fs::create_dir(path.join("other")).unwrap();
    let other = on(path, "journal archive --config {}/config.yaml --to {}/other");
    refuses(&other, 2, "archive_not_configured");
    assert!(other.err.contains("config.yaml") && other.err.contains("archive: ["), "{other:?}");
    refuses(&on(path, "journal archive --config {}/config.yaml --to {}/data/journal"), 2, "archive_in_data");
    refuses(&on(path, "journal archive --config {}/config.yaml --to {}/nowhere"), 1, "archive_unusable");

    // A daemon that was started without the directory would not find the segments.
    configure(path, false);
    let daemon = serve(folder);
    configure(daemon.folder.path(), true);
    refuses(&archive(daemon.folder.path(), ""), 1, "archive_not_in_daemon");
}
