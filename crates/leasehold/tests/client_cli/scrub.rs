//! `leasehold audit status` and `audit scrub`, against a real daemon.

use super::{Daemon, refuses, tells};
use std::fs;
use std::os::unix::fs::FileExt;

#[test]
fn damage_is_shown_and_has_an_exit_code_of_its_own() {
    let daemon = Daemon::with_cluster();
    tells(&daemon.run("audit status").ok(), &["signed", "every 1d, next at", "none has ended yet"]);
    let scrubbed = daemon.run("audit scrub --wait").ok();
    tells(&scrubbed, &["last pass", "complete", "all totals", "No damage was found."]);
    refuses(&daemon.by("ci.token", "audit status"), 1, "role_forbids");

    // A byte of the third batch. The first record is needed to answer at all.
    let path = daemon.path("data/journal/00000001.seg");
    let bytes = fs::read(&path).unwrap();
    let next = |at: usize| at + 16 + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
    let batch = next(next(96));
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[bytes[batch + 60] ^ 1], batch as u64 + 60).unwrap();
    let place = format!("journal/00000001.seg is damaged at byte {batch} ");
    let damaged = daemon.run("audit scrub --wait");
    assert_eq!(damaged.code, 3, "{damaged:?}");
    tells(&damaged, &["Damage was found:", &place, "restore the file from a copy"]);
    let status = daemon.run("audit status --json");
    assert_eq!((status.code, &status.json()["damaged"]), (3, &true.into()));
    assert_eq!(status.json()["last"]["damage"][0]["offset"], batch);
    // A proof says the same instead of failing without a reason.
    let proof = daemon.run("audit prove --sequence 1");
    refuses(&proof, 1, "journal_damaged");
    assert!(proof.err.contains("journal/00000001.seg"), "{proof:?}");

    file.write_all_at(&bytes[batch + 60..=batch + 60], batch as u64 + 60).unwrap();
    daemon.run("audit scrub --wait").ok();
    assert_eq!(daemon.run("audit status --wait").code, 0);
    let begun = daemon.run("audit scrub").ok();
    assert!(begun.out.contains("has begun") || begun.out.contains("running already"), "{begun:?}");
}
