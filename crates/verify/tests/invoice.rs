//! `leasehold-verify invoice` as payers and scripts meet it. The files were made by a daemon and never change: every
//! version must accept them.

use expect_test::expect;
use leasehold_verify::Trust;
use leasehold_verify::invoice::verify_invoice;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/proofs").join(name)
}

fn run(proof: &PathBuf, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-verify"));
    command.arg("invoice").arg(proof).arg("--trust").arg(file("payer.trust")).args(more).output().expect("it runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn yes_comes_first_and_every_line_has_its_check() {
    let january = file("january.proof");
    let output = run(&file("february.proof"), &["--with", january.to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(0));
    expect![[r#"
        yes: INV-000003 of physics for 2026-02, 336.000000 EUR, follows from the records

          physics-main: h100 in main, standard  9.333333 GPU-hours  336.000000  proved
          total in EUR                                              336.000000

          proved      all 13 records of the file are in the journal that the operator signed at 724 records
          proved      they are all 8 records of this tenant and all 0 common ones that the operator stated for the month
          proved      what was used, hour by hour, follows from these records and the prices in force
          proved      every amount, its rounding, the tax and the total follow from that
          proved      INV-000001 of 2026-01 too, and that both are about one journal
          not proved  whether others are shown the same journal: nothing is pinned in the trust file to compare it with
          not proved  that the operator left out none of the tenant's records: whoever verifies the whole journal finds that, or the tenant by its own receipts
          not proved  that what was recorded is what happened: times and usage are those that the operator recorded
    "#]].assert_eq(&stdout(&output));
}

#[test]
fn json_says_the_same() {
    let output = run(&file("february.proof"), &["--json"]);
    assert_eq!(output.status.code(), Some(0));
    let value: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&value["verdict"], &value["issued"]["total"]), (&"yes".into(), &"336.000000".into()));
    assert_eq!(value["lines"][0]["verdict"], "proved");
    assert_eq!(value["wrong"], serde_json::json!([]));
}

#[test]
fn no_and_no_answer_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let cut = folder.path().join("cut.proof");
    let whole = fs::read(file("february.proof")).expect("a file");
    fs::write(&cut, &whole[..whole.len() - 1]).expect("a file");
    let output = run(&cut, &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).starts_with("no: ") && stdout(&output).contains("bad_file"), "{}", stdout(&output));
    // February is not earlier than January.
    let february = file("february.proof");
    let output = run(&file("january.proof"), &["--with", february.to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("is not of an earlier month"), "{}", stdout(&output));
    assert_eq!(run(&folder.path().join("none.proof"), &[]).status.code(), Some(2));
    assert_eq!(run(&file("january.proof"), &["--colour"]).status.code(), Some(2));
    assert_eq!(run(&folder.path().to_path_buf(), &[]).status.code(), Some(2));
}

/// Every byte of a file matters.
#[test]
fn no_flipped_bit_is_accepted() {
    let trust = Trust::parse(&fs::read_to_string(file("payer.trust")).expect("a file")).expect("a trust file");
    let whole = fs::read(file("february.proof")).expect("a file");
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            let accepted = verify_invoice(&flipped, &[], &trust).is_ok_and(|judged| judged.is_proved());
            assert!(!accepted, "bit {bit} of byte {at}");
        }
    }
}

/// An answer that proves nothing: the exit code, and the first line without the path.
fn refused(folder: &std::path::Path, name: &str, bytes: &[u8], trust: &std::path::Path) -> String {
    let proof = folder.join(name);
    fs::write(&proof, bytes).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-verify"));
    let output = command.arg("invoice").arg(&proof).arg("--trust").arg(trust).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3), "{name}: {}", stdout(&output));
    let text = stdout(&output);
    let code = text.lines().find_map(|line| line.trim().strip_prefix("code ")).map(str::trim);
    let said = text.lines().next().expect("a line").replace(&proof.display().to_string(), "FILE");
    format!("{name}: {}\n  {said}\n", code.unwrap_or("-"))
}

/// Every file that proves nothing is answered with the exit code 3, a code and the reason.
#[test]
fn what_proves_nothing_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let trust_text = fs::read_to_string(file("payer.trust")).expect("a file");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    };
    let trust = write("payer.trust", &trust_text);
    let key = |origin: &str| leasehold_tlog::SigningKey::from_seed(origin, &[7; 32]).expect("a key").verifier();
    let origin = Trust::parse(&trust_text).expect("a trust file").origin().to_owned();
    let unknown = write("unknown.trust", &Trust::new(key(&origin)).to_text());
    let other = write("other.trust", &Trust::new(key("other.example")).to_text());
    let keyless = write("keyless.trust", &format!("leasehold-trust v1\norigin {origin}\n"));
    let whole = fs::read(file("february.proof")).expect("a file");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    let garbled: Vec<u8> = whole.iter().map(|byte| byte ^ 0x5a).collect();
    let newer = [b"leasehold-invoice-proof v2\n", &whole[27..]].concat();
    let mut found = String::new();
    for (name, bytes, trust) in [
        ("empty", &[][..], &trust),
        ("cut", &whole[..whole.len() - 1], &trust),
        ("padded", &[&whole[..], &[0]].concat(), &trust),
        ("doubled", &[&whole[..], &whole[..]].concat(), &trust),
        ("garbled", &garbled, &trust),
        ("changed", &changed, &trust),
        ("newer", &newer, &trust),
        ("of another key", &whole, &unknown),
        ("of another origin", &whole, &other),
        ("without a key", &whole, &keyless),
    ] {
        found += &refused(folder.path(), name, bytes, trust);
    }
    expect![[r#"
        empty: not_a_proof
          no: FILE proves nothing: the file does not begin with the line `leasehold-invoice-proof v1`
        cut: bad_file
          no: FILE proves nothing: the file does not end with a whole hash: it was cut, or bytes were added
        padded: bad_file
          no: FILE proves nothing: the file does not end with a whole hash: it was cut, or bytes were added
        doubled: bad_file
          no: FILE proves nothing: the file does not end with a whole hash: it was cut, or bytes were added
        garbled: not_a_proof
          no: FILE proves nothing: the file does not begin with the line `leasehold-invoice-proof v1`
        changed: root_mismatch
          no: FILE proves nothing: its records do not lead to the root that was signed: something was changed
        newer: newer_format
          no: FILE proves nothing: the file has a newer format; use a newer leasehold-verify
        of another key: unknown_key
          no: FILE proves nothing: its checkpoint is not signed by a key of the trust file
        of another origin: wrong_origin
          no: FILE proves nothing: its checkpoint is not accepted: the checkpoint is of the log "cluster.example/leasehold", expected "other.example"
        without a key: unknown_key
          no: FILE proves nothing: the trust file names no key of the operator: the line `key NAME+ID+BASE64` is missing, without which no signature counts
    "#]].assert_eq(&found);
}

/// Somebody with the key of the operator has raised the amount of one line. The file was made by
/// `manipulated_files_are_refused` of the crate `books`.
#[test]
fn a_wrong_line_is_named_with_the_difference_and_the_reason() {
    let trust = file("forger.trust");
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-verify"));
        let output = command.arg("invoice").arg(file("wrong.proof")).arg("--trust").arg(&trust).args(more).output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(3));
        stdout(&output)
    };
    let text = run(&[]);
    let shown: String = text
        .lines()
        .filter(|line| line.starts_with("no") || line.contains("WRONG") || line.trim_start().starts_with("wrong"))
        .map(|line| format!("{line}\n"))
        .collect();
    expect![[r#"
        no: INV-000001 of tenant-1 for 2026-12 does not follow from the records: p0: gpu in pool-1, scavenger, hour of 2026-12-31T22:00:00Z: expected 0.846521, found 0.846522 (by 0.000001). Record 71 rounds the exact cost of the line to another amount.
          p0: gpu in pool-1, scavenger   0.954557 GPU-hours   90.236963  WRONG
          wrong       p0: gpu in pool-1, scavenger, hour of 2026-12-31T22:00:00Z: expected 0.846521, found 0.846522 (by 0.000001). Record 71 rounds the exact cost of the line to another amount.
          wrong       lines of the invoice: expected 21b9f5d1593568d93a935723603d03e5c1fe0d4540fa2ed5f800596913b438f3, found 7ba55fcafc53268f89f587216657422f8742b4d0ada139efb96ba092b5a6cfc3. The lines that the entries of the month make are not those of the invoice.
          wrong       p0: expected 210.447601, found 210.447600 (by -0.000001). What the project owes by the invoice is not the sum of its lines.
          wrong       tax 0: expected 231.095194, found 231.095193 (by -0.000001). What was posted with the tax rate is not the sum of the lines with it.
    "#]].assert_eq(&shown);
    assert!(!text.contains("  proved "), "{text}");
    let value: serde_json::Value = serde_json::from_str(&run(&["--json"])).expect("JSON");
    assert_eq!((&value["verdict"], &value["proved"]), (&"no".into(), &serde_json::json!([])));
    let wrong = serde_json::to_string_pretty(&value["wrong"]).expect("JSON");
    expect![[r#"
        [
          {
            "where": "p0: gpu in pool-1, scavenger, hour of 2026-12-31T22:00:00Z",
            "expected": "0.846521",
            "found": "0.846522",
            "difference": "0.000001",
            "why": "Record 71 rounds the exact cost of the line to another amount."
          },
          {
            "where": "lines of the invoice",
            "expected": "21b9f5d1593568d93a935723603d03e5c1fe0d4540fa2ed5f800596913b438f3",
            "found": "7ba55fcafc53268f89f587216657422f8742b4d0ada139efb96ba092b5a6cfc3",
            "difference": null,
            "why": "The lines that the entries of the month make are not those of the invoice."
          },
          {
            "where": "p0",
            "expected": "210.447601",
            "found": "210.447600",
            "difference": "-0.000001",
            "why": "What the project owes by the invoice is not the sum of its lines."
          },
          {
            "where": "tax 0",
            "expected": "231.095194",
            "found": "231.095193",
            "difference": "-0.000001",
            "why": "What was posted with the tax rate is not the sum of the lines with it."
          }
        ]"#]]
    .assert_eq(&wrong);
    let lines = value["lines"].as_array().expect("lines");
    assert!(lines.iter().any(|line| line["verdict"] == "wrong"), "{lines:?}");
}

/// What is wrong, by how much: expected, found and difference, in steps or as whole numbers, without what is no number.
fn figures(entries: &serde_json::Value, amount: impl Fn(&serde_json::Value) -> Option<i128>) -> Vec<[i128; 3]> {
    let of = |entry: &serde_json::Value| {
        Some([amount(&entry["expected"])?, amount(&entry["found"])?, amount(&entry["difference"])?])
    };
    let mut all: Vec<_> = entries.as_array().expect("a list").iter().filter_map(of).collect();
    all.sort_unstable();
    all
}

/// The second verifier, which others wrote, says the same figures as this one.
#[test]
fn both_verifiers_name_the_same_figures() {
    let (proof, trust) = (file("wrong.proof"), file("forger.trust"));
    let json = |command: &mut Command| -> serde_json::Value {
        let output = command.arg(&proof).arg("--trust").arg(&trust).arg("--json").output().expect("it runs");
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        serde_json::from_str(&stdout(&output)).expect("JSON")
    };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/second_verifier/invoice.py");
    let second = json(Command::new("python3").arg("-B").arg(script));
    let second = figures(&second["failures"], |value| value.as_i64().map(i128::from));
    let first = json(Command::new(env!("CARGO_BIN_EXE_leasehold-verify")).arg("invoice"));
    // Amounts are printed with six decimals.
    let first = figures(&first["wrong"], |value| value.as_str()?.replace('.', "").parse().ok());
    assert!(first.len() >= 3, "{first:?}");
    assert_eq!(first, second);
}
