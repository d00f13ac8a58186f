//! `leasehold journal archive` on the data directory of a real daemon, running and stopped.

mod common;

use common::daemon::{Daemon, granted, refuses};
use common::{Said, on};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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
    stopped_after(&[])
}

/// As above, after these commands at the beginning of the journal.
fn stopped_after(lines: &[&str]) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("archive")).unwrap();
    configure(folder.path(), true);
    let daemon = serve(folder);
    daemon.furnish();
    lines.iter().for_each(|line| drop(daemon.run(line).ok()));
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

fn delete(folder: &Path, more: &str) -> Said {
    on(folder, &format!("journal delete --config {{}}/config.yaml --archive {{}}/archive {more}"))
}

/// The stamp of the newest signed record, before which everything is old enough.
fn newest_stamp(folder: &Path) -> String {
    let looked = delete(folder, "--before 2020-01-01 --json").ok().json();
    assert_eq!((&looked["deleted"], &looked["kept"]["reason"]), (&serde_json::json!([]), &"not_before".into()));
    looked["clock"].as_str().unwrap().to_owned()
}

/// Every file with its content.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn deleted_segments_are_gone_for_good_and_the_rest_goes_on() {
    let (folder, lease) = stopped_with_segments();
    let moved = archive(folder.path(), " --json").ok().json();
    assert!(moved["moved"].as_array().unwrap().len() >= 2, "{moved}");
    let daemon = serve(folder);
    let path = daemon.folder.path().to_owned();
    let trust = daemon.run("audit trust --data {}/data --archive {}/archive").ok();
    fs::write(path.join("trust"), trust.out).unwrap();

    // Nothing is deleted that is not in an archive, and nothing that is not old.
    refuses(&delete(&path, "--before 2500-01-01 --yes"), 1, "deletion_in_future");
    let elsewhere =
        |to: &str| on(&path, &format!("journal delete --config {{}}/config.yaml --archive {to} --before 1d"));
    refuses(&elsewhere("{}/data"), 2, "archive_in_data");
    refuses(&elsewhere("{}/data/journal"), 2, "archive_in_data");
    fs::create_dir(path.join("other")).unwrap();
    refuses(&elsewhere("{}/other"), 2, "archive_not_configured");
    refuses(&elsewhere("{}/nowhere"), 1, "archive_unusable");
    fs::copy(path.join("data/anchor"), path.join("archive/anchor")).unwrap();
    refuses(&delete(&path, "--before 1d"), 2, "archive_in_data");
    fs::remove_file(path.join("archive/anchor")).unwrap();

    // Shown, and not done.
    let stamp = newest_stamp(&path);
    let before = contents(&path.join("archive"));
    let planned = delete(&path, &format!("--before {stamp} --dry-run --json")).ok().json();
    let shown = delete(&path, &format!("--before {stamp}")).ok();
    assert!(shown.out.contains("would delete") && shown.out.contains("--yes"), "{shown:?}");
    assert!(contents(&path.join("archive")) == before, "nothing was changed");
    // A damaged segment stops it, and so does a missing one.
    let second = path.join("archive/00000002.seg");
    let whole = fs::read(&second).unwrap();
    let mut damaged = whole.clone();
    damaged[300_000] ^= 1;
    fs::write(&second, damaged).unwrap();
    refuses(&delete(&path, &format!("--before {stamp} --yes")), 1, "archive_damaged");
    fs::remove_file(&second).unwrap();
    refuses(&delete(&path, &format!("--before {stamp} --yes")), 1, "archive_incomplete");
    fs::write(&second, whole).unwrap();

    let last = planned["last_sequence"].as_u64().unwrap();
    let record = daemon.run(&format!("audit export --from {last} --to {last}")).ok();
    let record: Value = serde_json::from_str(record.out.lines().next().unwrap()).unwrap();
    let deleted = delete(&path, &format!("--before {stamp} --yes --json")).ok().json();
    assert_eq!((&deleted["deleted"], &deleted["last_sequence"]), (&moved["moved"], &planned["last_sequence"]));
    assert_eq!(deleted["last_hash"], record["current_event_hash"], "{record}");
    assert_eq!((&deleted["dry_run"], &deleted["first_sequence"]), (&false.into(), &0.into()));
    assert_eq!(segments(&path.join("archive")), BTreeSet::new());
    let again = delete(&path, &format!("--before {stamp} --yes")).ok();
    assert!(again.out.starts_with("nothing to delete: "), "{again:?}");

    // The running daemon answers for everything but the old records, and scrubs what is there.
    let ((status, refused), proof) = old(&daemon);
    assert_eq!((status, proof), (410, 410), "{refused}");
    assert!(refused.contains("deleted"), "{refused}");
    daemon.run(&format!("lease renew {lease} --ttl 4h")).ok();
    let scrubbed = daemon.run("audit scrub --wait --json").ok().json();
    assert!(scrubbed.to_string().contains("moved away or deleted"), "{scrubbed}");

    // So does the next one, and the verifier says what it did not read.
    let daemon = serve(daemon.stop().0);
    assert!(daemon.log.lock().unwrap().join("\n").contains("deleted for good"));
    assert_eq!(old(&daemon).0.0, 410);
    daemon.run(&format!("lease show {lease}")).ok();
    daemon.run("audit scrub --wait").ok();
    let (folder, _) = daemon.stop();
    let verified = on(folder.path(), "audit verify {}/data --archive {}/archive --trust {}/trust").ok();
    assert!(verified.out.contains("are not here: archived or deleted, and not verified"), "{verified:?}");
}

#[test]
fn records_of_sensitive_work_are_kept_until_their_time() {
    let (folder, _) = stopped_after(&[
        "node create gpu-2 --pool training --class gpu-h100=4 --teardown immediate",
        "claim make gpu-2 --tenant physics --project lattice --user ada",
    ]);
    let path = folder.path();
    let moved = archive(path, " --json").ok().json();
    let stamp = newest_stamp(path);
    let before = contents(&path.join("archive"));
    for more in ["", " --yes", " --yes --json"] {
        let kept = delete(path, &format!("--before {stamp}{more}"));
        if more.ends_with("--json") {
            assert_eq!((kept.code, kept.out.as_str()), (1, ""), "{kept:?}");
            assert!(kept.err.contains(r#""code":"sensitive_retention""#), "{kept:?}");
        } else {
            refuses(&kept, 1, "sensitive_retention");
        }
        assert!(kept.err.contains("00000001 is kept until 20") && kept.err.contains("sensitive work"), "{kept:?}");
    }
    assert!(contents(&path.join("archive")).keys().all(|name| before.contains_key(name)));
    // A period that is over, and one that is not.
    let config = fs::read_to_string(path.join("config.yaml")).unwrap();
    let with = |period: &str| fs::write(path.join("config.yaml"), format!("{config}  sensitive_retention: {period}\n"));
    with("1d").unwrap();
    refuses(&delete(path, &format!("--before {stamp} --yes")), 1, "sensitive_retention");
    with("0s").unwrap();
    let deleted = delete(path, &format!("--before {stamp} --yes --json")).ok().json();
    assert_eq!(deleted["deleted"], moved["moved"], "{deleted}");
}
