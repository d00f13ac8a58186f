//! Journals that an earlier version wrote, as files (`tests/frozen`): every later version verifies them, folds them to
//! what they said then, and decides their decisions again or says that it does not have the rules.
//!
//! The files are never written again. Where a difference is intended, the commit that changes an expected view says why.

mod apps;
mod apps_contents;
mod books;
mod contents;
mod further;
mod limits;
mod limits_contents;
mod money;
mod money_contents;
mod state;

use leasehold_books::Keeper;
use leasehold_cell::{Core, ManualClock, StartOptions, replay as fold, take_snapshot};
use leasehold_engine::{Replayed, State, replay};
use leasehold_journal::{FileJournal, Head, Journal, Keys, Local, Options, RealDisk, Secret};
use leasehold_model::body::Body;
use leasehold_model::{AttemptEnd, FORMAT_VERSION, Instant, Name, RULES_VERSION, Record};
use leasehold_tlog::SigningKey;
use leasehold_verify::{Trust, verify};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const ORIGIN: &str = "frozen.example";
/// How many records lie between two digests of the state.
const DIGEST_EVERY: usize = 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/frozen")
}

/// The journals that an engine folds, by the rules they were decided under.
fn folded() -> Vec<Frozen> {
    let mut all = Vec::new();
    for rules in folders(&root()).into_iter().filter(|path| name_of(path).starts_with("rules-")) {
        all.extend(folders(&rules).iter().map(|path| Frozen::open(path)));
    }
    assert!(all.len() >= 53, "only {} frozen journals were found", all.len());
    all
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// One journal: where it is kept, a copy of its data directory, and its records.
pub(crate) struct Frozen {
    pub(crate) name: String,
    /// The rules version of its last decisions.
    rules: u32,
    path: PathBuf,
    copy: TempDir,
    pub(crate) records: Vec<Record>,
}

impl Frozen {
    fn open(path: &Path) -> Self {
        let folder = name_of(path.parent().unwrap());
        let rules = folder.strip_prefix("rules-").map_or(0, |version| version.parse().unwrap());
        let name = format!("{folder}/{}", name_of(path));
        let copy = tempfile::tempdir().unwrap();
        copy_files(&path.join("data"), copy.path());
        // Git keeps no empty directory, and not every journal has snapshots.
        fs::create_dir_all(copy.path().join("snapshots")).unwrap();
        let mut frozen = Self { name, rules, path: path.to_owned(), copy, records: Vec::new() };
        frozen.verify();
        let journal = frozen.journal();
        let mut records = Vec::new();
        let scanned = journal.scan_verified(Head::EMPTY, &mut |_, raw, _| {
            records.push(raw.decode().unwrap_or_else(|error| panic!("{}: {error}", frozen.name)));
            ControlFlow::Continue(())
        });
        scanned.unwrap_or_else(|error| panic!("{}: {error}", frozen.name));
        frozen.records = records;
        frozen
    }

    /// The auditor's program says yes, from the files alone.
    fn verify(&self) {
        let options = leasehold_verify::Options {
            data: self.copy.path().to_owned(),
            archives: Vec::new(),
            trust: Trust::new(SigningKey::from_seed(ORIGIN, &[1; 32]).unwrap().verifier()),
            threads: 1,
            progress: None,
        };
        verify(&options).unwrap_or_else(|failure| panic!("{}: {failure}", self.name));
    }

    /// The copy, opened as a daemon opens its data directory.
    fn journal(&self) -> FileJournal {
        let keys = Keys::new(ORIGIN, &[1; 32]).unwrap();
        keys.add(&[2; 32]).unwrap();
        keys.add(&[3; 32]).unwrap();
        let disk = Arc::new(RealDisk::new(self.copy.path()));
        let opened = FileJournal::open(
            disk,
            // A start allocates a segment; a small one takes less time.
            Options { segment_bytes: 8 << 20, ..Options::default() },
            Arc::new(keys),
            Local::new(Secret::new([7; 32])),
            Instant(u64::MAX / 4),
        );
        let (journal, recovered) = opened.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert!(recovered.torn.is_none(), "{}: it was closed, and has no torn end", self.name);
        journal
    }

    /// Compares a text with the one that is kept. What was found is left beside the build, to be read.
    fn expect(&self, file: &str, found: &str) -> Result<(), String> {
        let kept = self.path.join(file);
        if fs::read_to_string(&kept).is_ok_and(|kept| kept == found) {
            return Ok(());
        }
        let beside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("frozen").join(&self.name);
        fs::create_dir_all(&beside).unwrap();
        fs::write(beside.join(file), found).unwrap();
        Err(format!("{}/{file} is no longer what it was: diff {} {}", self.name, kept.display(), beside.display()))
    }
}

fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy_files(&source, &target);
        } else {
            fs::copy(source, target).unwrap();
        }
    }
}

/// Keys in order, whatever order the library keeps them in.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut entries: Vec<(&String, Value)> = entries.iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by_key(|(key, _)| *key);
            entries.into_iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(entries) => entries.iter().map(sorted).collect(),
        plain => plain.clone(),
    }
}

/// One entry of a list a line, so that a difference can be read.
fn page(view: &Value) -> String {
    let mut text = String::from("{\n");
    let view = sorted(view);
    let sections = view.as_object().unwrap();
    for (at, (key, value)) in sections.iter().enumerate() {
        let comma = if at + 1 < sections.len() { "," } else { "" };
        match value.as_array().filter(|entries| !entries.is_empty()) {
            None => writeln!(text, "{key:?}: {value}{comma}").unwrap(),
            Some(entries) => {
                let lines: Vec<String> = entries.iter().map(|entry| format!("  {entry}")).collect();
                writeln!(text, "{key:?}: [\n{}\n]{comma}", lines.join(",\n")).unwrap();
            }
        }
    }
    text + "}\n"
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every journal: its state at every twentieth record and at the end, and what the books say of all of it.
#[test]
fn every_journal_folds_to_what_it_was() {
    let mut wrong = Vec::new();
    for frozen in folded() {
        let mut state = State::new();
        let mut books = Keeper::in_memory().books;
        let mut digests = String::new();
        for record in &frozen.records {
            state.apply(record).unwrap_or_else(|error| panic!("{}: {error}", frozen.name));
            books.apply(record).unwrap_or_else(|error| panic!("{}: {error}", frozen.name));
            if state.size().is_multiple_of(DIGEST_EVERY as u64) {
                writeln!(digests, "state {} {}", state.size(), digest(&page(&state::view(&state, frozen.rules))))
                    .unwrap();
            }
        }
        let (folded, booked) =
            (page(&state::view(&state, frozen.rules)), page(&books::view(&books, &frozen.records, frozen.rules)));
        writeln!(digests, "state {} {}", state.size(), digest(&folded)).unwrap();
        writeln!(digests, "books {} {}", state.size(), digest(&booked)).unwrap();
        for (file, found) in [("state.json", &folded), ("books.json", &booked), ("digests", &digests)] {
            wrong.extend(frozen.expect(file, found).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A daemon starts on every one of them, from a snapshot where its version still reads it, and takes new snapshots.
#[test]
fn a_daemon_starts_on_every_journal() {
    for frozen in folded() {
        let journal = Arc::new(frozen.journal());
        let mut plain = State::new();
        fold(&*journal, &mut plain, Head::EMPTY).unwrap_or_else(|error| panic!("{}: {error}", frozen.name));
        let last = plain.last_stamp();
        let options = StartOptions::new(Name::new("frozen").unwrap(), *plain.public_key());
        let opened = Core::open(journal.clone(), Arc::new(ManualClock::at(last)), &options);
        let (core, _, _) = opened.unwrap_or_else(|error| panic!("{}: {error}", frozen.name));
        let mut again = State::new();
        fold(&*journal, &mut again, Head::EMPTY).unwrap_or_else(|error| panic!("{}: {error}", frozen.name));
        assert_eq!(
            page(&state::view(core.engine().state(), frozen.rules)),
            page(&state::view(&again, frozen.rules)),
            "{}: the state that a start comes to is not the fold of the journal",
            frozen.name
        );
        journal.checkpoint(last).unwrap();
        let taken = take_snapshot(&*journal).unwrap_or_else(|error| panic!("{}: {error}", frozen.name));
        assert_eq!(taken, Some(journal.head().size), "{}", frozen.name);
        // The start converts a journal of an earlier format version. All of them verify as before.
        let first = journal.record(plain.size()).unwrap().unwrap().decode().unwrap();
        let mut formats = frozen.records.iter().filter_map(|record| match &record.body {
            Body::Genesis(genesis) => Some(genesis.format_version),
            Body::Converted(converted) => Some(converted.format_version),
            _ => None,
        });
        let is_old = formats.next_back() != Some(FORMAT_VERSION);
        assert_eq!(matches!(first.body, Body::Converted(_)), is_old, "{}", frozen.name);
        journal.close(last).unwrap();
        frozen.verify();
    }
}

/// The rules under which a decision was made: those it names, or those of the process that made it. None: no decision.
fn decided_under(body: &Body, of_process: u32) -> Option<u32> {
    match body {
        Body::Granted(body) => Some(body.rules_version),
        Body::Denied(body) => Some(body.rules_version),
        Body::AllocationDenied(body) => Some(body.rules_version),
        Body::AllocationPlaced(body) => Some(body.rules_version),
        Body::PreemptionDecided(body) => Some(body.rules_version),
        Body::ReservationTakenOver(body) => Some(body.rules_version),
        Body::HeadProtected(body) => Some(body.rules_version),
        // A command reports these.
        Body::AllocationFailed(body) if matches!(body.end, AttemptEnd::Reported | AttemptEnd::FailedStart) => None,
        Body::AllocationSubmitted(_)
        | Body::ReservationDropped(_)
        | Body::AllocationSuspended(_)
        | Body::AllocationRequeued(_)
        | Body::AllocationFailed(_) => Some(of_process),
        _ => None,
    }
}

/// Decisions under the rules that this version has are made again alike; of all others it says whose rules they had.
#[test]
fn every_decision_is_replayed_or_of_other_rules() {
    let mut verdicts: BTreeMap<(u32, &str), BTreeMap<&str, u32>> = BTreeMap::new();
    for frozen in folded() {
        let mut state = State::new();
        let mut of_process = 0;
        for (place, record) in frozen.records.iter().enumerate() {
            if let Body::Started(started) = &record.body {
                of_process = started.rules_version;
            }
            if !record.continues {
                let parts = frozen.records[place + 1..].iter().take_while(|next| next.continues).count();
                let found = replay(state.clone(), &frozen.records[place..=place + parts]);
                let so = |what: &str| format!("{} record {place}, {}: {what}", frozen.name, record.body.word());
                match decided_under(&record.body, of_process) {
                    None => assert_eq!(found, Replayed::NotADecision, "{}", so("it seals no decision")),
                    Some(RULES_VERSION) => assert_eq!(found, Replayed::Same, "{}", so("it is decided otherwise")),
                    Some(rules) => assert_eq!(found, Replayed::OtherRules(rules), "{}", so("it has other rules")),
                }
                let verdict = match found {
                    Replayed::Same => "same",
                    Replayed::OtherRules(_) => "other_rules",
                    _ => "no decision",
                };
                *verdicts.entry((of_process, record.body.word())).or_default().entry(verdict).or_default() += 1;
            }
            state.apply(record).unwrap_or_else(|error| panic!("{}: {error}", frozen.name));
        }
    }
    // Every kind of decision was among them under rules 3 to 7, and the most common ones under 1 and 2.
    let count = |rules, kind, verdict: &str| {
        verdicts.get(&(rules, kind)).and_then(|found| found.get(verdict)).copied().unwrap_or(0)
    };
    let of = |rules| if RULES_VERSION == rules { "same" } else { "other_rules" };
    for kind in [
        "lease.granted",
        "lease.denied",
        "preemption.decided",
        "reservation.dropped",
        "allocation.submitted",
        "allocation.denied",
        "allocation.placed",
        "allocation.suspended",
        "allocation.requeued",
        "allocation.failed",
    ] {
        assert!(count(3, kind, "other_rules") > 0, "no {kind} under rules 3 was replayed: {verdicts:#?}");
        assert!(count(4, kind, of(4)) > 0, "no {kind} under rules 4 was replayed: {verdicts:#?}");
        assert!(count(5, kind, of(5)) > 0, "no {kind} under rules 5 was replayed: {verdicts:#?}");
        assert!(count(6, kind, of(6)) > 0, "no {kind} under rules 6 was replayed: {verdicts:#?}");
        assert!(count(7, kind, of(7)) > 0, "no {kind} under rules 7 was replayed: {verdicts:#?}");
    }
    for kind in ["reservation.taken_over", "head.protected"] {
        assert!(count(4, kind, of(4)) > 0, "no {kind} under rules 4 was replayed: {verdicts:#?}");
        assert!(count(5, kind, of(5)) > 0, "no {kind} under rules 5 was replayed: {verdicts:#?}");
        assert!(count(6, kind, of(6)) > 0, "no {kind} under rules 6 was replayed: {verdicts:#?}");
        assert!(count(7, kind, of(7)) > 0, "no {kind} under rules 7 was replayed: {verdicts:#?}");
    }
    for kind in ["allocation.submitted", "allocation.placed", "allocation.requeued", "preemption.decided"] {
        assert!(count(2, kind, "other_rules") > 0, "no {kind} under rules 2: {verdicts:#?}");
    }
    assert!(count(1, "lease.granted", "other_rules") > 0 && count(1, "lease.denied", "other_rules") > 0);
}

/// The one kind that no engine ever wrote: it is verified and read, and refused by a fold.
#[test]
fn the_kind_that_was_never_written_is_read_and_not_folded() {
    let frozen = Frozen::open(&root().join("never-written/preempted"));
    let mut state = State::new();
    let folded: Vec<bool> = frozen.records.iter().map(|record| state.apply(record).is_ok()).collect();
    assert_eq!(folded, [true, true, false, false]);
    assert!(matches!(frozen.records[2].body, Body::Preempted(_)));
}
