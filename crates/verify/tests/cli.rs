//! The program as people and scripts meet it: exit codes, what goes where, and the trust file it keeps.

mod common;

use common::*;
use expect_test::expect;
use leasehold_model::{Instant, Span};
use leasehold_tlog::{Checkpoint, Note, WitnessSigningKey};
use leasehold_verify::Trust;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

struct Desk {
    sample: Sample,
    trust: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let sample = Sample::new();
        let trust = sample.path().join("auditor.trust");
        fs::write(&trust, sample.trust.to_text()).unwrap();
        Self { sample, trust }
    }

    fn run(&self, more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_leasehold-verify"))
            .arg(self.sample.path())
            .arg("--trust")
            .arg(&self.trust)
            .args(more)
            .output()
            .unwrap()
    }

    fn pinned_size(&self) -> u64 {
        let trust = Trust::parse(&fs::read_to_string(&self.trust).unwrap()).unwrap();
        trust.pinned().map_or(0, |pinned| pinned.checkpoint.size())
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}
fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Without what differs from run to run.
fn without_time(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("  took")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn yes_is_a_receipt() {
    let desk = Desk::new();
    let output = desk.run(&["--threads", "2"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
    expect![[r#"
        yes: 30 records, from 2023-11-14T22:13:20Z to 2023-11-14T22:13:20.029Z, all chained; the last 3 not signed

          origin      cluster-1.example.org
          segments    1 to 3, 2,817 bytes
          head        66e28f24b18062a6b78e86650d4e78b28b28db4dfbd5a219dfa74bce8fed0208
          root        bdc5a52b703e870b74db721be686a95aae321a952634b2eafa78d6772803a5fc
          signed      up to size 27, key 065033d9 is in force
          complete    up to size 27, proved only by the local anchor
          rotation    record 14: key a76249b9 to 065033d9
          note        3 records after the checkpoint are chained, not signed; missing ones cannot be detected
    "#]]
    .assert_eq(&without_time(&stdout(&output)));
}

#[test]
fn no_names_the_record() {
    let desk = Desk::new();
    desk.sample.edit_record(11, |frame| *frame.bytes.last_mut().unwrap() ^= 1);
    let output = desk.run(&[]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(3), ""));
    let text = stdout(&output).replace(&desk.sample.path().display().to_string(), "DATA");
    expect![[r#"
        no: record 11 was altered: its hash differs from the link in record 12

          record      11
          segment     1, byte 1,042
          file        DATA/journal/00000001.seg
          code        altered_record
    "#]]
    .assert_eq(&text);
}

#[test]
fn json_has_the_same_in_fields() {
    let desk = Desk::new();
    let output = desk.run(&["--json"]);
    assert_eq!(output.status.code(), Some(0));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    expect!["verdict origin records first_sequence first_stamp last_stamp bytes first_segment last_segment head root checkpoint_size records_after_checkpoint complete_up_to proved_by witnesses missing_witnesses required_witnesses keys rotations statements_recomputed torn_tail anchor_slot_damaged duplicate_segments warnings newest_checkpoint duration_ms"].assert_eq(&fields.join(" "));
    assert_eq!((&value["verdict"], &value["records"]), (&"yes".into(), &RECORDS.into()));
    assert_eq!((&value["complete_up_to"], &value["proved_by"]["kind"]), (&ANCHORED.into(), &"anchor".into()));
    assert_eq!(value["newest_checkpoint"], desk.sample.note());

    desk.sample.edit_record(11, |frame| *frame.bytes.last_mut().unwrap() ^= 1);
    let output = desk.run(&["--json"]);
    assert_eq!(output.status.code(), Some(3));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields.join(" "), "verdict code sentence sequence segment offset file agreed_up_to");
    assert_eq!((&value["verdict"], &value["code"]), (&"no".into(), &"altered_record".into()));
    assert_eq!(value["sequence"], 11);
}

/// The operator's clock, or the operator, was wrong: the journal is intact, and the auditor is told.
#[test]
fn stamps_in_the_future_are_a_warning() {
    let desk = Desk::new();
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ahead = u64::try_from(since_1970.as_nanos()).unwrap() + 3_600_000_000_000 - stamp(0).0;
    clock::in_the_future(&desk.sample, ahead);
    let output = desk.run(&[]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{}", stdout(&output));
    let text = stdout(&output);
    let warning = text.lines().find(|line| line.starts_with("  warning")).unwrap_or_else(|| panic!("{text}"));
    assert!(warning.contains("in the future of this machine's clock"), "{warning}");

    let value: serde_json::Value = serde_json::from_slice(&desk.run(&["--json"]).stdout).unwrap();
    assert_eq!((&value["verdict"], &value["warnings"][0]["code"]), (&"yes".into(), &"stamp_in_future".into()));

    let value: serde_json::Value = serde_json::from_slice(&Desk::new().run(&["--json"]).stdout).unwrap();
    assert_eq!(value["warnings"], serde_json::json!([]));
}

#[test]
fn clocks_may_differ_by_a_minute() {
    let report = Sample::new().verify().unwrap();
    let last = report.stamps.unwrap().1.0;
    let second = 1_000_000_000;
    assert_eq!(report.stamp_ahead(Instant(last + second)), None);
    assert_eq!(report.stamp_ahead(Instant(last - 60 * second)), None);
    assert_eq!(report.stamp_ahead(Instant(last - 61 * second)), Some(Span::from_secs(61)));
}

#[test]
fn a_missing_cosignature_is_a_warning_and_a_required_one_a_failure() {
    let desk = Desk::new();
    let witness = WitnessSigningKey::from_seed("w.example.net", &[9; 32]).unwrap();
    let named = desk.sample.trust.to_text() + &format!("witness {}\n", witness.verifier());
    fs::write(&desk.trust, &named).unwrap();
    let output = desk.run(&[]);
    let line = "  warning     witness w.example.net has not cosigned the checkpoint of size 27\n";
    assert!(output.status.code() == Some(0) && stdout(&output).contains(line), "{}", stdout(&output));
    let value: serde_json::Value = serde_json::from_slice(&desk.run(&["--json"]).stdout).unwrap();
    assert_eq!(value["missing_witnesses"], serde_json::json!(["w.example.net"]));
    assert_eq!(value["required_witnesses"], 0);

    fs::write(&desk.trust, named.clone() + "require 1\n").unwrap();
    let output = desk.run(&["--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &value["code"]), (Some(3), &"missing_cosignatures".into()));
    assert!(value["sentence"].as_str().unwrap().ends_with("and it has 0; missing: w.example.net"), "{value}");
    assert_eq!(value["file"], desk.sample.anchor().display().to_string());
    for (wrong, line) in [("require 2\n", 5), ("require 0\n", 5), ("require 1\nrequire 1\n", 6)] {
        fs::write(&desk.trust, named.clone() + wrong).unwrap();
        let output = desk.run(&[]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains(&format!("line {line}")), "{}", stderr(&output));
    }

    // Cosigned, it passes, and the next trust file requires the same.
    let mut note = Note::parse(&desk.sample.note()).unwrap();
    let checkpoint = Checkpoint::from_body(note.text()).unwrap();
    note.add_signature(witness.cosign(&checkpoint, 1_700_000_100).unwrap()).unwrap();
    desk.sample.forge_anchor(&desk.sample.anchor_text().replace(&desk.sample.note(), &note.to_string()));
    fs::write(&desk.trust, named + "require 1\n").unwrap();
    let output = desk.run(&["--update-trust", desk.trust.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(!stdout(&output).contains("warning"), "{}", stdout(&output));
    assert!(fs::read_to_string(&desk.trust).unwrap().contains("\nrequire 1\n"));
}

#[test]
fn what_cannot_be_answered_is_a_usage_error_with_advice() {
    let desk = Desk::new();
    let fails = |more: &[&str], word: &str| {
        let output = desk.run(more);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    };
    fails(&["--colour"], "--help");
    fails(&["--threads", "0"], "--threads");
    fails(&["--archive", "/no/such/folder"], "check the path");
    fs::write(&desk.trust, "something else").unwrap();
    fails(&[], "a trust file begins with");
    fs::remove_file(&desk.trust).unwrap();
    fails(&[], "leasehold audit trust");

    let json = desk.run(&["--json"]);
    assert_eq!(json.status.code(), Some(2));
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["verdict"], "error");

    let desk = Desk::new();
    let nowhere = Command::new(env!("CARGO_BIN_EXE_leasehold-verify"))
        .args(["/no/such/folder", "--trust"])
        .arg(&desk.trust)
        .output()
        .unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(stderr(&nowhere).contains("/no/such/folder"), "{}", stderr(&nowhere));
}

#[test]
fn the_trust_file_remembers_after_a_yes_and_only_then() {
    let desk = Desk::new();
    let trust = desk.trust.to_str().unwrap().to_owned();
    let output = desk.run(&["--update-trust", &trust]);
    assert_eq!((output.status.code(), desk.pinned_size()), (Some(0), ANCHORED), "{}", stderr(&output));
    let kept = fs::read_to_string(&desk.trust).unwrap();
    assert!(kept.contains(&key(SECOND_SEED).verifier().to_string()), "the key in force is trusted from now on");
    assert!(stdout(&desk.run(&[])).contains("proved by the checkpoint pinned in the trust file"));

    // The operator rewrites history: the memory stays as it was.
    rewrite(&desk.sample, &operator_keys(), |frames| {
        for frame in frames.iter_mut().filter(|frame| frame.sequence() == 20) {
            *frame.bytes.last_mut().unwrap() ^= 1;
        }
    });
    let output = desk.run(&["--update-trust", &trust]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("rewritten or forked"), "{}", stdout(&output));
    assert_eq!(fs::read_to_string(&desk.trust).unwrap(), kept);
}

#[test]
fn another_file_is_not_overwritten() {
    let desk = Desk::new();
    let other = desk.sample.path().join("letter.txt");
    fs::write(&other, "dear auditor").unwrap();
    let output = desk.run(&["--update-trust", other.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&other).unwrap(), "dear auditor");

    // Nor one that knows more.
    let mut knowing = desk.sample.trust.clone();
    knowing.pin(&desk.sample.note()).unwrap();
    fs::write(&other, knowing.to_text()).unwrap();
    let output = desk.run(&["--update-trust", other.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("newer checkpoint"), "{}", stderr(&output));
}

#[test]
fn help_shows_an_example_and_the_exit_codes() {
    let output = Command::new(env!("CARGO_BIN_EXE_leasehold-verify")).arg("--help").output().unwrap();
    let help = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    for word in ["Example:", "Exit codes:", "--update-trust", "--archive", "DATA_DIRECTORY"] {
        assert!(help.contains(word), "{help}");
    }
}
