//! The scrub: damage before the last snapshot, forged books, and passes that go on after a restart.

use crate::scrub_forgery::forge_books;
use crate::world::World;
use leasehold_api::{AuditStatus, Method, Role, ScrubBooks, ScrubFindingKind, ScrubPass, ScrubState};
use leasehold_server::config::Config;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

async fn status(world: &World) -> AuditStatus {
    serde_json::from_value(world.get("/api/v1/audit/status").await.expect(200)).expect("a status")
}

/// Runs a pass and returns it.
pub(crate) async fn scrubbed(world: &World) -> ScrubPass {
    let before = status(world).await.last.map(|last| last.began_at);
    let begun = world.send(Some(&world.operator), Method::Post, "/api/v1/audit/scrub", None).await.expect(202);
    assert_eq!(begun, json!({ "begun": true }));
    ended(world, |last| Some(last.began_at) != before).await
}

/// The last pass, once it is as wanted.
async fn ended(world: &World, is_so: impl Fn(&ScrubPass) -> bool) -> ScrubPass {
    for _ in 0..6000 {
        let status = status(world).await;
        if let (Some(last), None) = (status.last, status.present)
            && is_so(&last)
        {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the pass does not end: {:?}", status(world).await);
}

/// Grants and releases leases, so that there is something to compare.
async fn busy(world: &World, leases: usize) {
    world
        .post(
            "/api/v1/nodes",
            json!({ "name": "n9", "pool": "main", "capacity": { "h100": 8 }, "teardown": "immediate" }),
        )
        .await
        .expect(201);
    for _ in 0..leases {
        let request = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h", "node": "n9",
            "asks": [{ "class": "h100", "quantity": 2 }] });
        let granted = world.post("/api/v1/leases", request).await.expect(201);
        let lease = granted["leases"][0]["id"].as_str().expect("an id").to_owned();
        world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
    }
}

/// Seals records until there is a snapshot within the second segment: a start reads from there on.
async fn fill(world: &World) {
    let data = world.folder.path().join("data");
    let second = || fs::read_to_string(data.join("journal/00000002.tree")).ok();
    let begins = || second()?.lines().nth(1)?.strip_prefix("size ")?.parse().ok();
    let snapshot = || {
        let names =
            fs::read_dir(data.join("snapshots")).expect("a directory").map(|entry| entry.expect("a file").file_name());
        names.filter_map(|name| name.to_str()?.strip_suffix(".snap")?.parse::<u64>().ok()).max()
    };
    for round in 0.. {
        if begins().is_some_and(|begins: u64| snapshot().is_some_and(|size| size > begins)) {
            break;
        }
        // Large records, so that a few hundred are enough.
        let labels: serde_json::Map<String, Value> =
            (0..64).map(|n| (format!("{n:0>100}"), "v".repeat(120).into())).collect();
        let new =
            json!({ "name": format!("big-{round}"), "pool": "main", "capacity": { "h100": 1 }, "labels": labels });
        world.post("/api/v1/nodes", new).await.expect(201);
    }
}

/// Snapshots come early, so that a start does not read what is before them.
fn early_snapshots(config: &mut Config) {
    config.journal.snapshot_every = 100;
}

fn segment(folder: &Path) -> PathBuf {
    folder.join("data/journal/00000001.seg")
}

/// Where the batches of a segment begin.
fn batches(path: &Path) -> Vec<usize> {
    let bytes = fs::read(path).expect("a segment");
    let mut at = 96;
    let mut found = Vec::new();
    while bytes.get(at..at + 4) == Some(b"LHB2") {
        found.push(at);
        at += 16 + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().expect("four bytes")) as usize;
    }
    found
}

fn flip(path: &Path, at: usize) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).expect("a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).expect("a byte");
    file.write_all_at(&[byte[0] ^ 4], at as u64).expect("written");
}

/// The daemon started and `/readyz` was fine, and only proofs failed, with a bare 500.
#[tokio::test(flavor = "multi_thread")]
async fn damage_before_the_last_snapshot_is_found_and_named() {
    let mut world = World::with(early_snapshots).await;
    world.furnish().await;
    busy(&world, 40).await;
    fill(&world).await;
    let folder = world.stop().await;
    let path = segment(folder.path());
    let damaged = batches(&path)[3];
    let payload = damaged + 16 + 32 + 40;
    flip(&path, payload);

    let world = World::in_folder(folder, early_snapshots).await;
    world.get("/readyz").await.expect(200);
    let proof = world.get("/api/v1/audit/proofs/inclusion?sequence=1").await;
    assert_eq!((proof.status, proof.code()), (500, "journal_damaged".to_owned()));
    let problem = proof.json();
    assert_eq!((&problem["segment"], &problem["offset"]), (&json!(1), &json!(damaged)));
    let detail = problem["detail"].as_str().expect("a sentence");
    assert!(detail.contains("journal/00000001.seg") && detail.contains("restore the file"), "{detail}");

    let pass = scrubbed(&world).await;
    let check = |pass: &ScrubPass| {
        assert_eq!((pass.state, pass.damage_count, pass.books), (ScrubState::Complete, 1, ScrubBooks::NotCompared));
        let found = &pass.damage[0];
        assert_eq!(found.kind, ScrubFindingKind::Journal);
        assert_eq!((found.segment, found.offset), (Some(1), Some(damaged as u64)), "{found:?}");
        assert_eq!(found.file.as_deref(), Some("journal/00000001.seg"));
    };
    check(&pass);
    assert!(status(&world).await.damaged);
    let metrics = world.get("/metrics").await.text;
    assert!(metrics.contains("\nleasehold_scrub_damage 1\n"), "{metrics}");
    flip(&path, payload);

    // Its MAC. (`leasehold-scrub` is tested with every kind of byte.)
    flip(&path, damaged + 20);
    check(&scrubbed(&world).await);
    flip(&path, damaged + 20);

    // The header of the segment.
    flip(&path, 30);
    let pass = scrubbed(&world).await;
    assert_eq!((pass.damage_count, pass.damage[0].offset), (1, Some(0)), "{pass:?}");
    assert!(pass.damage[0].resumed_at.is_some(), "{pass:?}");
    flip(&path, 30);

    let pass = scrubbed(&world).await;
    assert_eq!((pass.damage_count, pass.books), (0, ScrubBooks::Compared), "{pass:?}");
    assert!(pass.leases >= 40 && pass.percent == 100 && pass.records == pass.checkpoint_size, "{pass:?}");
    assert!(!status(&world).await.damaged);
    assert!(world.get("/metrics").await.text.contains("\nleasehold_scrub_damage 0\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_books_are_found() {
    let mut world = World::empty().await;
    world.furnish().await;
    busy(&world, 5).await;
    let folder = world.stop().await;
    // One lease held three GPUs instead of two, in books with right MACs.
    forge_books(&folder.path().join("data"));
    let world = World::in_folder(folder, |_| {}).await;
    let pass = scrubbed(&world).await;
    let kinds: Vec<_> = pass.damage.iter().map(|found| (found.kind, found.figure.as_deref())).collect();
    assert_eq!(
        kinds,
        [(ScrubFindingKind::Lease, Some("quanta")), (ScrubFindingKind::Total, Some("held"))],
        "{:?}",
        pass.damage
    );
    assert_eq!((pass.damage[0].books.as_deref(), pass.damage[0].records.as_deref()), (Some("3"), Some("2")));
    assert_eq!(
        (pass.damage[1].tenant.as_deref(), pass.damage[1].class.as_deref()),
        (Some("physics"), Some("h100")),
        "{:?}",
        pass.damage[1]
    );
    // Rebuilt, they are right.
    let folder = world.stop().await;
    fs::remove_file(folder.path().join("data/books.redb")).expect("removed");
    let world = World::in_folder(folder, |_| {}).await;
    assert_eq!(scrubbed(&world).await.damage, []);
}

/// So slow that a pass never gets further than the first header.
fn slow(config: &mut Config) {
    config.scrub.bytes_per_second = 1;
}

/// A daemon that was stopped in the middle of a pass.
async fn stopped_within_a_pass(world: World) -> tempfile::TempDir {
    world.send(Some(&world.operator), Method::Post, "/api/v1/audit/scrub", None).await.expect(202);
    let is_running =
        |status: &AuditStatus| status.present.as_ref().is_some_and(|pass| pass.state == ScrubState::Running);
    while !is_running(&status(&world).await) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Another one does not begin beside it.
    let again = world.send(Some(&world.operator), Method::Post, "/api/v1/audit/scrub", None).await.expect(202);
    assert_eq!(again, json!({ "begun": false }));
    world.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_goes_on_after_a_restart_and_a_forged_progress_is_discarded() {
    let mut world = World::with(slow).await;
    world.furnish().await;
    busy(&world, 3).await;
    let folder = stopped_within_a_pass(world).await;
    let world = World::in_folder(folder, |_| {}).await;
    let pass = ended(&world, |_| true).await;
    assert_eq!((pass.state, pass.resumed, pass.damage_count), (ScrubState::Complete, 1, 0), "{pass:?}");
    assert_eq!((pass.books, pass.records), (ScrubBooks::Compared, pass.checkpoint_size), "{pass:?}");

    // The last pass is known after another restart.
    let world = World::in_folder(world.stop().await, slow).await;
    assert_eq!(status(&world).await.last, Some(pass));

    // A progress that claims to have read everything.
    let folder = stopped_within_a_pass(world).await;
    let file = folder.path().join("data/scrub");
    let mut bytes = fs::read(&file).expect("the progress");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&file, bytes).expect("written");
    let world = World::in_folder(folder, |_| {}).await;
    let known = status(&world).await;
    assert_eq!((known.last, known.present), (None, None));
    assert!(!file.exists());
    let pass = scrubbed(&world).await;
    assert_eq!((pass.state, pass.resumed, pass.damage_count), (ScrubState::Complete, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_says_what_is_signed_and_when_the_next_pass_is() {
    let world = World::furnished().await;
    let shown = status(&world).await;
    assert!(shown.scrub_enabled && shown.next_at.is_some() && !shown.damaged);
    assert!(shown.checkpoint.size + shown.unsigned_records <= shown.size + 1, "{shown:?}");
    assert_eq!(shown.scrub_every.to_string(), "1d");
    let auditor = world.send(Some(&world.tokens[&Role::Auditor]), Method::Get, "/api/v1/audit/status", None).await;
    auditor.expect(200);
    let begin = world.send(Some(&world.tokens[&Role::Auditor]), Method::Post, "/api/v1/audit/scrub", None).await;
    assert_eq!((begin.status, begin.code()), (403, "role_forbids".to_owned()));
    // Switched off, none begins by itself; an operator can still begin one.
    let off = World::with(|config| config.scrub.enabled = false).await;
    let shown = status(&off).await;
    assert_eq!((shown.scrub_enabled, shown.next_at), (false, None));
    assert_eq!(scrubbed(&off).await.damage_count, 0);
}
