//! The `leasehold` binary: a demo, then all commands that read the journal it wrote.

mod common;

use common::{BINARY, Said, copy, leasehold, on};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The data directory of a demo of two seconds with a history of one day, for tests that only read it.
fn demo_folder() -> &'static Path {
    static FOLDER: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, data) = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        on(&data, "demo --data {} --exit-after 2s --history 1d --seed 1").ok();
        (folder, data)
    });
    data
}

/// A copy that a test may damage.
fn damaged(damage: impl FnOnce(&Path)) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    copy(demo_folder(), folder.path());
    damage(folder.path());
    folder
}

fn change(path: PathBuf, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(&path).expect("a file");
    change(&mut bytes);
    fs::write(path, bytes).expect("a file");
}

fn refuses(said: &Said, exit: i32, code: &str) {
    assert_eq!(said.code, exit, "{said:?}");
    assert!(said.err.starts_with("leasehold: "), "{said:?}");
    assert!(said.err.contains(&format!("({code})")), "no ({code}) in {said:?}");
    assert_eq!(said.out, "", "data beside an error");
}

#[test]
fn a_demo_shows_its_events_and_how_to_verify_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let said = on(&data, "demo --data {} --exit-after 9s --history 1d --seed 2").ok();
    for told in ["Before this run", "Usage in this run", "Records", "Denied requests", "Verify it yourself"] {
        assert!(said.out.contains(told), "no {told:?} in {}", said.out);
    }
    for told in ["drained l40s-03", "hangs", "loses power", "revoked the gang", "cleared"] {
        assert!(said.err.contains(told), "no {told:?} in {}", said.err);
    }
    assert!(!said.out.contains('\x1b') && !said.err.contains('\x1b'), "colours in a pipe");
    let command = said.out.lines().find(|line| line.contains("audit verify")).expect("the command is printed");
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some(BINARY));
    assert_eq!(leasehold(words).code, 0, "the printed command works as it is");
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(data.join("key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_demo_continues_an_earlier_one() {
    let folder = damaged(|_| ());
    let before = on(folder.path(), "audit checkpoint --data {} --json").ok().json();
    let said = on(folder.path(), "demo --data {} --exit-after 1s --json").ok();
    assert!(said.err.contains("restart"), "{}", said.err);
    let report = said.json();
    let (all, this_run) = (report["records"]["all"].as_u64(), report["records"]["this_run"].as_u64());
    assert_eq!(all.unwrap() - this_run.unwrap(), before["size"].as_u64().unwrap());
    assert_eq!(report["kinds"]["node.put"], serde_json::json!({ "all": 41, "this_run": 0 }));
    on(folder.path(), "audit verify {} --trust {}/trust").ok();
}

#[test]
fn the_report_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let report = on(&data, "demo --data {} --exit-after 1s --history 6h --seed 3 --json").ok().json();
    let exported = on(&data, "audit export --data {}").ok().lines();
    assert_eq!(report["records"]["all"], exported.len());
    let tenants = report["tenants"].as_array().unwrap();
    assert_eq!(tenants.len(), 6);
    let sum = |field: &str| tenants.iter().map(|tenant| tenant[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("granted"), exported.iter().filter(|r| r["kind"] == "lease.granted").count() as u64);
    assert_eq!(sum("denied"), exported.iter().filter(|r| r["kind"] == "lease.denied").count() as u64);
    // Sequences without gaps, each linked to the one before, and no stamp past the wall clock.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    for (pair, sequence) in exported.windows(2).zip(0u64..) {
        assert_eq!(pair[0]["sequence"], sequence);
        assert_eq!(pair[1]["prev_event_hash"], pair[0]["current_event_hash"]);
        assert!(pair[1]["timestamp_ns"].as_str().unwrap().parse::<u128>().unwrap() <= now);
    }
}

#[test]
fn trust_and_checkpoint_are_read_from_the_files() {
    let data = demo_folder();
    let trust = on(data, "audit trust --data {} --json").ok().json();
    assert_eq!(trust["origin"], "demo.leasehold.local");
    assert_eq!(trust["keys"].as_array().unwrap().len(), 1);
    let checkpoint = on(data, "audit checkpoint --data {} --json").ok().json();
    assert_eq!(checkpoint["size"], trust["checkpoint"]["size"]);
    assert_eq!(checkpoint["root"], trust["checkpoint"]["root"]);
    let note = on(data, "audit checkpoint --data {}").ok().out;
    assert_eq!(note, checkpoint["note"].as_str().unwrap());
    assert!(note.starts_with("demo.leasehold.local\n"));
    // The secret key is not needed.
    let folder = damaged(|data| fs::remove_file(data.join("key")).unwrap());
    let printed = on(folder.path(), "audit trust --data {}").ok().out;
    fs::write(folder.path().join("printed"), printed).unwrap();
    let verdict = on(folder.path(), "audit verify {} --trust {}/printed --json").ok().json();
    assert_eq!(verdict["verdict"], "yes");
}

#[test]
fn exports_are_filtered() {
    let data = demo_folder();
    let kinds = |line: &str| -> Vec<String> {
        let lines = on(data, line).ok().lines();
        lines.iter().map(|record| record["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds("audit export --data {} --to 0"), ["journal.genesis"]);
    assert_eq!(kinds("audit export --data {} --from 3 --to 4 --json").len(), 2);
    assert!(kinds("audit export --data {} --kind lease").iter().all(|kind| kind.starts_with("lease.")));
    let all = on(data, "audit export --data {} --kind lease.denied").ok().lines();
    let tenant = all[0]["identity"]["tenant"].as_str().unwrap();
    let denied = on(data, &format!("audit export --data {{}} --kind lease.denied --tenant {tenant}")).ok().lines();
    assert_eq!(denied.len(), all.iter().filter(|record| record["identity"]["tenant"] == tenant).count());
    for record in denied {
        assert!(record["body"]["cause"]["type"].is_string(), "{record}");
    }
    refuses(&on(data, "audit export --data {} --tenant nobody"), 1, "unknown_tenant");
    refuses(&on(data, "audit export --data {} --from 99999999"), 1, "record_not_found");
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    let data = demo_folder();
    let mut child = Command::new(BINARY)
        .args(["audit", "export", "--data"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("journal.genesis"));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn a_record_is_proved_and_the_proof_checked_offline() {
    let folder = damaged(|_| ());
    let data = folder.path();
    let size = on(data, "audit checkpoint --data {} --json").ok().json()["size"].as_u64().unwrap();
    for sequence in [0, 1, size / 2, size - 1] {
        let line = format!("audit prove --data {{}} --sequence {sequence} --out {{}}/proof");
        let said = on(data, &line).ok();
        assert!(said.out.contains(&format!("Record {sequence} of demo.leasehold.local")), "{said:?}");
        let checked = on(data, "audit prove --check {}/proof --trust {}/trust --json").ok().json();
        assert_eq!(checked["verdict"], "proved");
        assert_eq!(checked["sequence"], sequence);
        assert_eq!(checked["record"]["sequence"], sequence);
    }
    let made = on(data, "audit prove --data {} --sequence 5 --json").ok().json();
    assert_eq!(made["record"]["current_event_hash"], made["record_hash"]);
    assert!(made["proof"].as_str().unwrap().starts_with("c2sp.org/tlog-proof@v1\n"));
    // Without --out the proof goes to stdout and the summary to stderr.
    let plain = on(data, "audit prove --data {} --sequence 5").ok();
    assert_eq!(plain.out, made["proof"].as_str().unwrap());
    assert!(plain.err.contains("Record 5"));

    refuses(&on(data, &format!("audit prove --data {{}} --sequence {size}")), 1, "record_not_found");
    change(data.join("proof"), |proof| {
        let at = proof.windows(7).position(|w| w == b"\nindex ").unwrap();
        proof[at - 5] = if proof[at - 5] == b'A' { b'B' } else { b'A' };
    });
    refuses(&on(data, "audit prove --check {}/proof --trust {}/trust"), 3, "not_proved");
    refuses(&on(data, "audit prove --check {}/key --trust {}/trust"), 2, "proof_malformed");
    refuses(&on(data, "audit prove --check {}/nothing --trust {}/trust"), 2, "file_unreadable");
    refuses(&on(data, "audit prove --check {}/proof --trust {}/key"), 2, "trust_malformed");
}

#[test]
fn consistency_is_proved_from_an_earlier_checkpoint() {
    let folder = damaged(|_| ());
    let data = folder.path();
    let seen = on(data, "audit checkpoint --data {} --json").ok().json()["size"].as_u64().unwrap();
    fs::rename(data.join("trust"), data.join("seen")).unwrap();
    on(data, "demo --data {} --exit-after 1s").ok();
    on(data, &format!("audit prove --data {{}} --consistency-from {seen} --out {{}}/proof")).ok();
    let checked = on(data, "audit prove --check {}/proof --trust {}/seen --json").ok().json();
    assert_eq!(checked["proves"], "consistency");
    assert_eq!(checked["old"]["size"], seen);
    assert!(checked["checkpoint"]["size"].as_u64().unwrap() > seen);
    on(data, "audit prove --data {} --consistency-from 10 --out {}/proof").ok();
    refuses(&on(data, "audit prove --check {}/proof --trust {}/seen"), 1, "other_size");
    refuses(&on(data, "audit prove --data {} --consistency-from 99999999"), 1, "journal_shorter");
}

#[test]
fn an_incomplete_batch_at_the_end_is_ignored() {
    let folder = damaged(|data| change(data.join("journal/00000001.seg"), |bytes| bytes.extend(b"LHB2 half a batch")));
    let whole = on(demo_folder(), "audit export --data {}").ok();
    let torn = on(folder.path(), "audit export --data {}").ok();
    assert!(whole.out == torn.out, "a torn end changes nothing");
    on(folder.path(), "audit prove --data {} --sequence 7").ok();
}

#[test]
fn errors_have_a_code_and_advice() {
    let empty = tempfile::tempdir().unwrap();
    for command in ["audit export", "audit trust", "audit checkpoint", "audit prove --sequence 1"] {
        refuses(&on(&empty.path().join("nothing"), &format!("{command} --data {{}}")), 1, "journal_not_found");
        refuses(&on(empty.path(), &format!("{command} --data {{}}")), 1, "journal_not_found");
        refuses(&on(Path::new(BINARY), &format!("{command} --data {{}}")), 1, "journal_not_found");
    }
    for line in ["audit exprt", "audit export", "audit prove --data x", "demo --exit-after 20", "demo --sed 1", "dmo"] {
        refuses(&on(empty.path(), line), 2, "usage");
    }
    let typo = on(empty.path(), "audit export --data x --kind lease.grantd");
    assert!(typo.err.contains("lease.granted"), "{typo:?}");
    assert_eq!(on(empty.path(), "--version").ok().out, concat!("leasehold ", env!("CARGO_PKG_VERSION"), "\n"));
    assert!(on(empty.path(), "audit --help").ok().out.contains("verify"));

    fs::write(empty.path().join("letter"), "dear diary").unwrap();
    refuses(&on(empty.path(), "demo --data {} --exit-after 1s"), 1, "folder_foreign");
    refuses(&on(empty.path(), "demo --data {}/letter --exit-after 1s"), 1, "folder_unusable");
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 1, "a foreign folder is left alone");
    let open = damaged(|data| {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(data.join("key"), fs::Permissions::from_mode(0o644)).unwrap();
    });
    refuses(&on(open.path(), "demo --data {} --exit-after 1s"), 1, "key_too_open");
}

#[test]
fn each_kind_of_damage_has_its_own_code() {
    let segment = |data: &Path| data.join("journal/00000001.seg");
    let reading = ["audit export", "audit trust", "audit prove --sequence 1"];
    let check = |folder: &TempDir, exit: i32, code: &str| {
        for command in reading {
            let said = on(folder.path(), &format!("{command} --data {{}}"));
            assert_eq!(said.code, exit, "{said:?}");
            assert!(said.err.contains(&format!("({code})")), "no ({code}) in {said:?}");
        }
    };
    check(&damaged(|data| change(data.join("anchor"), |b| b.fill(b'x'))), 3, "journal_anchor_damaged");
    check(&damaged(|data| fs::remove_file(data.join("anchor")).unwrap()), 3, "journal_anchor_missing");
    check(&damaged(|data| fs::write(data.join("anchor"), "").unwrap()), 3, "journal_anchor_damaged");
    check(&damaged(|data| fs::remove_file(segment(data)).unwrap()), 3, "journal_cut_off");
    check(&damaged(|data| change(segment(data), |b| b.truncate(b.len() / 2))), 3, "journal_corrupt");
    check(&damaged(|data| change(segment(data), |b| b.truncate(96))), 3, "journal_cut_off");
    check(&damaged(|data| change(segment(data), |b| b[10_000] ^= 1)), 3, "journal_corrupt");
    check(&damaged(|data| change(segment(data), |b| b[40] ^= 1)), 3, "journal_corrupt");
    check(&damaged(|data| fs::write(segment(data), "not a segment at all").unwrap()), 3, "journal_corrupt");
    // An intact segment of a later format version.
    check(
        &damaged(|data| {
            change(segment(data), |b| {
                b[8] = 3;
                let crc = crc32fast::hash(&b[..92]);
                b[92..96].copy_from_slice(&crc.to_le_bytes());
            });
        }),
        1,
        "journal_newer_format",
    );
    let newer = damaged(|data| {
        use sha2::Digest;
        let text = "leasehold-anchor v3\nanything\n";
        let end: String = sha2::Sha256::digest(text).iter().map(|b| format!("{b:02x}")).collect();
        let mut bytes = format!("{text}end {end}\n").into_bytes();
        bytes.resize(8192, 0);
        fs::write(data.join("anchor"), bytes).unwrap();
    });
    check(&newer, 1, "journal_newer_format");
    refuses(&on(newer.path(), "demo --data {} --exit-after 1s"), 1, "journal_newer_format");
    let verdict = on(newer.path(), "audit verify {} --trust {}/trust --json");
    assert_eq!((verdict.code, &verdict.json()["code"]), (3, &"newer_format".into()), "{verdict:?}");
}

#[test]
fn a_running_demo_can_be_read_but_not_opened_twice_and_ends_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let mut child = Command::new(BINARY)
        .args(["demo", "--json", "--history", "0s", "--data"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // The first status line: by then leases are being granted.
    while !line.contains(" leases  ") {
        line.clear();
        assert_ne!(err.read_line(&mut line).unwrap(), 0, "the demo ended early");
    }
    refuses(&on(data, "demo --data {} --exit-after 1s"), 1, "journal_in_use");
    let mut sizes = Vec::new();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    // Read several times, until a new checkpoint has appeared.
    while sizes.len() < 5 || (sizes[0] == sizes[sizes.len() - 1] && std::time::Instant::now() < deadline) {
        let checkpoint = on(data, "audit checkpoint --data {} --json").ok().json();
        sizes.push(checkpoint["size"].as_u64().unwrap());
        let exported = on(data, "audit export --data {}").ok().lines();
        assert!(exported.len() as u64 >= sizes[sizes.len() - 1], "an export reaches at least the checkpoint");
        on(data, "audit prove --data {} --sequence 50").ok();
        let trust = on(data, "audit trust --data {}").ok().out;
        fs::write(folder.path().join("seen.trust"), trust).unwrap();
        on(data, "audit verify {} --trust {}/seen.trust").ok();
    }
    assert!(sizes.is_sorted() && sizes[0] < sizes[sizes.len() - 1], "checkpoints follow: {sizes:?}");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{rest}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["checkpoint"]["size"], report["records"]["all"], "a clean stop signs for everything");
    on(data, "audit verify {} --trust {}/seen.trust").ok();
}

/// Frozen journals: decisions of the current rules replay with the same result; those of earlier rules are reported as such.
#[test]
fn decisions_of_earlier_rules_are_recognised() {
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/frozen");
    for (journal, rules) in [
        ("rules-1/burst", 1),
        ("rules-2/gangs", 2),
        ("rules-3/gangs", 3),
        ("rules-4/reservations", 4),
        ("rules-5/prepaid", 5),
        ("rules-6/apps", 6),
        ("rules-7/nodes", 7),
    ] {
        let folder = tempfile::tempdir().unwrap();
        copy(&frozen.join(journal).join("data"), folder.path());
        let expected = if rules == leasehold_model::RULES_VERSION { "same" } else { "other_rules" };
        let records = on(folder.path(), "audit export --data {}").ok().lines();
        let decided = |record: &&Value| {
            let kinds = ["lease.granted", "lease.denied", "allocation.submitted", "allocation.requeued"];
            kinds.iter().any(|kind| record["kind"] == *kind)
        };
        let decisions: Vec<&Value> = records.iter().filter(decided).collect();
        assert!(decisions.len() > 5, "{journal}: {decisions:?}");
        for sequence in decisions.iter().map(|record| &record["sequence"]) {
            let told = on(folder.path(), &format!("audit replay --data {{}} --sequence {sequence} --json")).ok().json();
            assert_eq!(told["replayed"], expected, "{journal}, record {sequence}: {told}");
        }
    }
}

#[test]
fn the_agent_is_a_subcommand() {
    refuses(&leasehold(["agent"]), 2, "node_needed");
}
