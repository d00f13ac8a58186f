//! Proof files of kinds that random histories rarely have: shares of control planes, ends that were corrected after a loss,
//! files of two months together, a rotated key, and a pinned checkpoint of another size. With LEASEHOLD_PROOFS they are
//! kept for the other verifier, too.

use super::bills::another_month;
use super::evidence::evidences;
use super::proof_files::{Folder, honest, said_with};
use super::proof_journal::{Making, ORIGIN};
use super::story::{Shelf, Story};
use super::{tell, tell_sharing};
use leasehold_bill::{Evidence, NotProved, Place, Verdict, check, check_together};
use leasehold_model::{Body, Record};
use leasehold_tlog::{SigningKey, VerifierKey};
use leasehold_verify::Trust;
use leasehold_verify::invoice::verify_invoice;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(ORIGIN, &[seed; 32]).expect("a key")
}

fn trusting(key: &VerifierKey, pinned: Option<&str>) -> Trust {
    let pinned = pinned.map_or_else(String::new, |note| format!("checkpoint\n{note}"));
    Trust::parse(&format!("leasehold-trust v1\norigin {ORIGIN}\nkey {key}\n{pinned}")).expect("a trust file")
}

fn has(evidence: &Evidence, is_so: fn(&Body) -> bool) -> bool {
    evidence.records.iter().any(|evident| is_so(&evident.record.body))
}

/// Keeps the files of those invoices of a history that have such a record; all of them are proved.
fn keep_those(label: &str, records: &[Record], is_so: fn(&Body) -> bool, folder: &mut Folder) -> usize {
    let key = key(9);
    let found = evidences(records).into_iter().filter(|evidence| has(evidence, is_so));
    let found: Vec<Evidence> = found.map(|evidence| honest(records, evidence)).collect();
    for (at, evidence) in found.iter().enumerate() {
        let making = Making { records, evidences: &[evidence], key: &key, rotated_from: None, since: None };
        let bytes = making.file(0).expect("an invoice");
        let (proved, json) = said_with(&bytes, &[], &Trust::new(key.verifier()), None);
        assert!(proved, "{label}: {json}");
        folder.keep(&format!("{label}-{at}"), &bytes, &json);
    }
    found.len()
}

#[test]
fn shares_are_in_proof_files() {
    let (mut folder, mut found, mut late) = (Folder::open(), 0, 0);
    let is_share = |body: &Body| matches!(body, Body::LedgerShared(_));
    for seed in 0..40 {
        let mut story = tell_sharing(seed, 200).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        another_month(&mut story).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        late += evidences(&story.records).iter().filter(|evidence| has_share_of_the_month_before(evidence)).count();
        found += keep_those(&format!("shares-{seed:04}"), &story.records, is_share, &mut folder);
    }
    println!("{found} files with shares, {late} of them with shares of the month before");
    assert!(found > 20, "only {found} files with shares");
    assert!(late > 5, "only {late} files with shares of the month before");
}

/// The shares of a month are recorded after its cut, which is in the range of the next one.
fn has_share_of_the_month_before(evidence: &Evidence) -> bool {
    evidence
        .records
        .iter()
        .any(|evident| matches!(&evident.record.body, Body::LedgerShared(shared) if shared.month < evidence.month))
}

#[test]
fn corrected_ends_are_in_proof_files() {
    let (mut folder, mut found) = (Folder::open(), 0);
    let is_corrected = |body: &Body| matches!(body, Body::EndsCorrected(_) | Body::ClaimEndCorrected(_));
    for seed in 100..400 {
        let story = tell(seed, 200, Shelf::Memory).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        found += keep_those(&format!("ends-{seed:04}"), &story.records, is_corrected, &mut folder);
        if found >= 8 {
            return;
        }
    }
    panic!("only {found} files with corrected ends");
}

/// Two invoices of one tenant for consecutive months.
fn consecutive(story: &Story) -> Option<(Evidence, Evidence)> {
    let all = evidences(&story.records);
    let later = all.iter().rev();
    let pairs = later.flat_map(|later| all.iter().map(move |before| (before, later)));
    let mut pairs = pairs.filter(|(before, later)| {
        (before.tenant, before.currency, before.month.next()) == (later.tenant, later.currency, later.month)
    });
    let (before, later) = pairs.next()?;
    Some((honest(&story.records, before.clone()), honest(&story.records, later.clone())))
}

#[test]
fn files_of_two_months_are_judged_together() {
    let (key, mut folder, mut pairs) = (key(9), Folder::open(), 0);
    let trust = Trust::new(key.verifier());
    for seed in (0..60).step_by(3) {
        let mut story = tell(seed, 200, Shelf::Memory).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        another_month(&mut story).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        let Some((before, later)) = consecutive(&story) else { continue };
        pairs += 1;
        let evidences = [&before, &later];
        let making =
            Making { records: &story.records, evidences: &evidences, key: &key, rotated_from: None, since: None };
        let files = [0, 1].map(|at| making.file(at).expect("an invoice"));
        let names = ["before", "later"].map(|which| format!("pair-{seed:04}-{which}"));
        let (proved, json) = said_with(&files[0], &[], &trust, None);
        assert!(proved, "seed {seed}: {json}");
        folder.keep(&names[0], &files[0], &json);
        let given = [(names[0].clone(), files[0].clone())];
        let (proved, json) = said_with(&files[1], &given, &trust, None);
        assert!(proved, "seed {seed}: {json}");
        folder.keep(&names[1], &files[1], &json);
        // A file of another journal, in which something else is stated.
        let other = Making { evidences: &[&later, &before], ..making }.file(1).expect("an invoice");
        let other = [(format!("pair-{seed:04}-other"), other)];
        let alone = said_with(&other[0].1, &[], &trust, None);
        folder.keep(&other[0].0, &other[0].1, &alone.1);
        let (proved, json) = said_with(&files[1], &other, &trust, Some("the earlier file is of another history"));
        assert!(!proved, "seed {seed}: {json}");
        folder.keep(&format!("pair-{seed:04}-broken"), &files[1], &json);
    }
    assert!(pairs >= 5, "only {pairs} pairs");
}

/// What is posted for an hour of an earlier month follows from the files of both months, and a forged adjustment does not,
/// also where the later file alone cannot tell.
#[test]
fn adjustments_of_earlier_months_are_decided_together() {
    let mut forged = 0;
    for seed in (0..60).step_by(3) {
        let mut story = tell(seed, 200, Shelf::Memory).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        another_month(&mut story).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        let Some((before, later)) = consecutive(&story) else { continue };
        assert_eq!(check_together(&[&before, &later]), [], "seed {seed}");
        let mut changed = later.clone();
        let lines = changed.records.iter_mut().filter_map(|evident| match &mut evident.record.body {
            Body::LedgerPosted(posted) if (posted.month, posted.currency) == (later.month, later.currency) => {
                Some(&mut posted.lines)
            }
            _ => None,
        });
        let start = later.month.start();
        let Some(line) = lines.flatten().find(|line| line.key.hour < start) else { continue };
        line.usage.0 += 5;
        let key = line.key.clone();
        let found = check_together(&[&before, &changed]);
        assert_eq!(found.len(), 1, "seed {seed}: {found:?}");
        assert!(matches!(&found[0].place, Place::Line { key: of, .. } if *of == key), "seed {seed}: {found:?}");
        assert_eq!(found[0].difference.as_deref(), Some("5"), "seed {seed}");
        // The report of the later one leaves nothing of that month open.
        let mut report = check(&later);
        report.decide_from(before.month, &later, found);
        assert!(!report.is_proved() && report.lines.iter().all(|line| line.verdict != Verdict::NotProved));
        forged += 1;
    }
    assert!(forged > 0, "no adjustment was forged");
}

#[test]
fn rotated_keys_and_pinned_checkpoints_are_decided() {
    let (old, new, mut folder) = (key(9), key(10), Folder::open());
    let story = tell(0, 200, Shelf::Memory).expect("a history");
    let evidence = evidences(&story.records).into_iter().next().expect("an invoice");
    let evidence = honest(&story.records, evidence);
    let plain = Making { records: &story.records, evidences: &[&evidence], key: &old, rotated_from: None, since: None };
    let rotated = Making { key: &new, rotated_from: Some(&old), ..plain };
    let since = story.records.len() as u64 / 3;
    let grown = Making { since: Some(since), ..plain };
    let both = Making { since: Some(since), ..rotated };
    let pin = |making: &Making<'_>, size: u64| making.checkpoint(size, &old).expect("a checkpoint");
    let (then, now) = (pin(&plain, since), pin(&plain, since + 1));
    let forked = then.replace(then.lines().nth(2).expect("a root"), now.lines().nth(2).expect("a root"));
    let forked = resigned(&forked, &old);
    let (of_old, of_new, of_other) = (old.verifier(), new.verifier(), key(8).verifier());
    for (what, making, trust, expected) in [
        ("rotated, the old key is trusted", rotated, trusting(&of_old, None), true),
        ("rotated, the new key is trusted", rotated, trusting(&of_new, None), true),
        ("rotated, another key is trusted", rotated, trusting(&of_other, None), false),
        ("not rotated, the new key is trusted", plain, trusting(&of_new, None), false),
        ("grown, nothing is pinned", grown, trusting(&of_old, None), true),
        ("grown, the earlier one is pinned", grown, trusting(&of_old, Some(&then)), true),
        ("grown, another one is pinned", grown, trusting(&of_old, Some(&now)), true),
        ("grown, a fork is pinned", grown, trusting(&of_old, Some(&forked)), false),
        ("not grown, a fork is pinned", plain, trusting(&of_old, Some(&forked)), true),
        ("rotated and grown", both, trusting(&of_old, Some(&then)), true),
        ("pinned by a key that is not trusted", both, trusting(&of_new, Some(&then)), false),
    ] {
        let bytes = making.file(0).expect("an invoice");
        let (proved, json) = said_with(&bytes, &[], &trust, None);
        assert_eq!(proved, expected, "{what}: {json}");
        folder.keep(&format!("signed-{}", what.replace([' ', ','], "_")), &bytes, &json);
    }
}

/// A record of a kind that a later version may write: it is counted, and the verifier says that it does not know it.
#[test]
fn records_of_unknown_kinds_are_named() {
    let (key, mut folder) = (key(9), Folder::open());
    for seed in 0..20 {
        let mut story = tell(seed, 200, Shelf::Memory).expect("a history");
        let before = evidences(&story.records);
        let denied = before.iter().find_map(|evidence| {
            let is_denied = |body: &Body| matches!(body, Body::Denied(_) | Body::ActivityReported(_));
            let found = evidence.records.iter().find(|evident| is_denied(&evident.record.body));
            found.filter(|evident| evident.sequence < evidence.statement.1.border).map(|evident| evident.sequence)
        });
        let Some(denied) = denied else { continue };
        let place = usize::try_from(denied).expect("few");
        story.records[place].body = Body::Unknown { kind: 9000, bytes: vec![1, 2, 3] };
        let mut all = evidences(&story.records).into_iter();
        let evidence = all.find(|evidence| evidence.records.iter().any(|evident| evident.sequence == denied));
        let evidence = honest(&story.records, evidence.expect("it is there"));
        let making =
            Making { records: &story.records, evidences: &[&evidence], key: &key, rotated_from: None, since: None };
        let bytes = making.file(0).expect("an invoice");
        let (proved, json) = said_with(&bytes, &[], &Trust::new(key.verifier()), None);
        assert!(proved, "{json}");
        let judged = verify_invoice(&bytes, &[], &Trust::new(key.verifier())).expect("a proof");
        let named = |said: &NotProved| said.to_string().contains("kind 9000");
        assert!(judged.checked.report.not_proved.iter().any(named), "{:?}", judged.checked.report.not_proved);
        return folder.keep("unknown-kind", &bytes, &json);
    }
    panic!("no history has a record that can be replaced");
}

/// A checkpoint with a changed text, signed again.
fn resigned(note: &str, key: &SigningKey) -> String {
    let (text, _) = note.split_once("\n\n").expect("a note");
    let mut lines = text.lines();
    let (_, size, root) = (lines.next(), lines.next().expect("a size"), lines.next().expect("a root"));
    let parsed = leasehold_tlog::Checkpoint::from_body(&format!("{ORIGIN}\n{size}\n{root}\n")).expect("a checkpoint");
    parsed.sign(key)
}
