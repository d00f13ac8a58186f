//! Two verifiers that share no code, this one and the one in Python (its head says how far it was written apart), give the
//! same answer to the same folder: of good journals, and of every way of tampering with one that we could think of.

mod common;
#[path = "second_verifier/converted.rs"]
mod converted;
#[path = "second_verifier/witnesses.rs"]
mod witnesses;

use common::*;
use leasehold_tlog::{Checkpoint, Frontier, Note, SigningKey, WitnessSigningKey, leaf_hash};
use leasehold_verify::{ProvedBy, Trust};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use tempfile::TempDir;

const SEGMENT_HEADER: usize = 96;
const BATCH_HEADER: usize = 16;
const SLOT: usize = 4096;

/// A folder, and what is known beforehand of the answer.
struct Case {
    name: String,
    sample: Sample,
    /// The answer, where it is known without asking.
    yes: Option<bool>,
    /// Both must name the same record.
    named: bool,
    /// Keeps the archives for as long as they are needed.
    _archive: Option<TempDir>,
}

#[derive(Default)]
struct Cases(Vec<Case>);

impl Cases {
    fn add(&mut self, name: impl Into<String>, yes: Option<bool>, change: impl FnOnce(&mut Sample)) -> &mut Case {
        let mut sample = Sample::new();
        change(&mut sample);
        self.push(name, yes, sample)
    }
    fn push(&mut self, name: impl Into<String>, yes: Option<bool>, sample: Sample) -> &mut Case {
        self.0.push(Case { name: name.into(), sample, yes, named: false, _archive: None });
        self.0.last_mut().expect("just pushed")
    }
    fn yes(&mut self, name: &str, change: impl FnOnce(&mut Sample)) -> &mut Case {
        self.add(name, Some(true), change)
    }
    fn no(&mut self, name: &str, change: impl FnOnce(&mut Sample)) -> &mut Case {
        self.add(name, Some(false), change)
    }
}

const MISSING: &str = "python3 or its module `cryptography` is missing; run `make test`, which installs it";

fn second_verifier() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/second_verifier")
}

/// The second verifier, ready to be asked. One process answers many questions, each as if it were a call of its own:
/// starting Python takes longer than the answer.
struct Second {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Second {
    fn start() -> Self {
        const ASK: &str =
            "import sys, json, verify\nfor line in sys.stdin: print(verify.main(json.loads(line)), flush=True)";
        let probe = Command::new("python3").args(["-c", "import cryptography"]).output();
        assert!(probe.is_ok_and(|output| output.status.success()), "{MISSING}");
        let mut python = Command::new("python3");
        // -B: leaves no compiled files behind.
        python.args(["-B", "-c", ASK]).env("PYTHONPATH", second_verifier());
        let mut process = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect(MISSING);
        let answers = BufReader::new(process.stdout.take().expect("it was asked for"));
        Self { process, answers }
    }

    fn ask(&mut self, sample: &Sample) -> Value {
        let trust = tempfile::NamedTempFile::new().unwrap();
        fs::write(trust.path(), sample.trust.to_text()).unwrap();
        let question = json!(arguments(sample, trust.path()));
        writeln!(self.process.stdin.as_mut().expect("it was asked for"), "{question}").unwrap();
        let mut line = || {
            let mut line = String::new();
            self.answers.read_line(&mut line).unwrap();
            line
        };
        let (answer, code) = (line(), line());
        let answer: Value = serde_json::from_str(&answer).expect("an answer");
        assert_eq!(code.trim(), if answer["ok"] == true { "0" } else { "3" }, "{answer}");
        answer
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        // It ends when it is asked nothing more.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn arguments<'a>(sample: &'a Sample, trust: &'a Path) -> Vec<&'a Path> {
    let mut arguments = vec![sample.path(), Path::new("--json"), Path::new("--trust"), trust];
    sample.archives.iter().for_each(|archive| arguments.extend([Path::new("--archive"), archive]));
    arguments
}

/// Where the two differ, in words.
fn compare(case: &Case, second: &mut Second) -> Result<(), String> {
    let theirs = second.ask(&case.sample);
    let ours = case.sample.verify_with(2);
    let said = match &ours {
        Ok(report) => format!("yes, {} records", report.records),
        Err(failure) => format!("no, {} {:?}: {failure}", failure.code(), failure.sequence),
    };
    let differ = |what: &str| Err(format!("{}: {what}\n  ours: {said}\n  theirs: {theirs}", case.name));
    if theirs["ok"] != ours.is_ok() {
        return differ("they do not agree");
    }
    if case.yes.is_some_and(|yes| yes != ours.is_ok()) {
        return differ("both are wrong");
    }
    match &ours {
        Ok(report) => {
            let proved_by = match &report.proved_by {
                ProvedBy::Pinned => "pinned_checkpoint",
                ProvedBy::Witness(_) => "witness",
                ProvedBy::Anchor => "anchor",
            };
            let numbers = [("records", report.records), ("first_sequence", report.first_sequence)];
            let numbers = numbers.into_iter().chain([("complete_to", report.complete_up_to)]);
            for (name, number) in numbers {
                if theirs[name] != number {
                    return differ(name);
                }
            }
            let torn = report.torn_tail.map(|torn| [u64::from(torn.segment), torn.offset, torn.bytes]);
            let their_torn = theirs["torn"]
                .as_object()
                .map(|torn| ["segment", "offset", "bytes"].map(|name| torn[name].as_u64().expect("a number")));
            match () {
                () if theirs["proved_by"] != proved_by => differ("what proves it"),
                () if theirs["missing_witnesses"] != json!(report.missing_witnesses) => differ("missing witnesses"),
                () if torn != their_torn => differ("the torn end"),
                () if theirs["warnings"] != json!(clock::warnings(report)) => differ("what it warns of"),
                () => Ok(()),
            }
        }
        Err(failure) => match failure.sequence {
            Some(sequence) if case.named && theirs["first_bad"]["sequence"] != sequence => differ("the record named"),
            None if case.named => differ("no record is named"),
            _ => Ok(()),
        },
    }
}

/// Runs every case, two at a time, and tells all differences.
fn agree(cases: &Cases) {
    let next = Mutex::new(cases.0.iter());
    let differences = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut second = Second::start();
                loop {
                    let case = next.lock().unwrap().next();
                    let Some(case) = case else { break };
                    if let Err(difference) = compare(case, &mut second) {
                        differences.lock().unwrap().push(difference);
                    }
                }
            });
        }
    });
    let differences = differences.into_inner().unwrap();
    assert!(differences.is_empty(), "of {} folders:\n{}", cases.0.len(), differences.join("\n"));
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below as u64).unwrap()
    }
}

/// The last segment that was begun.
fn last(sample: &Sample) -> u32 {
    (1..).find(|n| fs::read(sample.segment(n + 1)).map_or(true, |b| b.iter().all(|b| *b == 0))).unwrap()
}

/// The last segment without its last batch, the one after the anchor, and that batch.
fn without_last_batch(sample: &Sample) -> (Vec<u8>, Vec<Frame>) {
    let mut opened = Opened::read(&sample.segment(last(sample)));
    let batch = opened.batches.pop().unwrap();
    (opened.encode(), batch)
}

/// Puts these bytes after the last batch that the anchor knows.
fn end_with(sample: &Sample, tail: &[u8]) {
    let (mut bytes, _) = without_last_batch(sample);
    bytes.extend(tail);
    put(&sample.segment(last(sample)), &bytes);
}

/// Chain and tree at some size.
fn at_size(sample: &Sample, size: u64) -> (Frontier, [u8; 32]) {
    let (mut tree, mut head) = (Frontier::new(), [0; 32]);
    let frames = (1..=last(sample)).flat_map(|n| Opened::read(&sample.segment(n)).batches).flatten();
    for frame in frames.take(usize::try_from(size).unwrap()) {
        head = frame.hash();
        tree.push(leaf_hash(&head));
    }
    (tree, head)
}

fn key_at(size: u64) -> SigningKey {
    key(if size > ROTATED_AT { SECOND_SEED } else { FIRST_SEED })
}

fn checkpoint(sample: &Sample, size: u64, by: &SigningKey) -> String {
    Checkpoint::new(ORIGIN, size, at_size(sample, size).0.root()).unwrap().sign(by)
}

fn anchor_at(sample: &Sample, size: u64, by: &SigningKey) {
    let (tree, head) = at_size(sample, size);
    write_anchor(sample, &tree, &head, by);
}

/// Cuts every record from `sequence` on, and every later segment.
fn cut(sample: &Sample, sequence: u64) {
    let segment = sample.segment_of(sequence);
    for later in segment + 1..20 {
        let _ = fs::remove_file(sample.segment(later));
        let _ = fs::remove_file(sample.tree(later));
    }
    sample.edit(segment, |opened| {
        opened.batches.iter_mut().for_each(|batch| batch.retain(|frame| frame.sequence() < sequence));
    });
}

/// A batch with these bytes as its payload and this number of records, and a checksum that fits.
fn raw_batch(payload: &[u8], records: u32) -> Vec<u8> {
    let counts = [u32::try_from(payload.len()).unwrap().to_le_bytes(), records.to_le_bytes()].concat();
    let crc = crc32fast::hash(&[counts.as_slice(), payload].concat());
    [b"LHB2".as_slice(), &counts, &crc.to_le_bytes(), payload].concat()
}

fn change_record(wanted: u64) -> impl Fn(&mut [Frame]) {
    move |frames| {
        for frame in frames.iter_mut().filter(|frame| frame.sequence() == wanted) {
            *frame.bytes.last_mut().unwrap() ^= 1;
        }
    }
}

#[test]
fn on_the_command_line() {
    let ask = |sample: &Sample, code: i32| {
        let trust = tempfile::NamedTempFile::new().unwrap();
        fs::write(trust.path(), sample.trust.to_text()).unwrap();
        let arguments = arguments(sample, trust.path());
        let mut python = Command::new("python3");
        let theirs = python.arg(second_verifier().join("verify.py")).args(&arguments).output().expect(MISSING);
        let ours = Command::new(env!("CARGO_BIN_EXE_leasehold-verify")).args(&arguments).output().unwrap();
        let why = String::from_utf8_lossy(&theirs.stderr);
        assert_eq!((theirs.status.code(), ours.status.code()), (Some(code), Some(code)), "{MISSING}? {why}");
    };
    ask(&Sample::new(), 0);
    let altered = Sample::new();
    altered.edit_record(4, |frame| *frame.bytes.last_mut().unwrap() ^= 1);
    ask(&altered, 3);
    let mut nowhere = Sample::new();
    nowhere.archives.push("/no/such/folder".into());
    ask(&nowhere, 2);
}

#[test]
fn of_sound_journals() {
    let mut cases = Cases::default();
    cases.yes("whole", |_| {});
    for size in [1, ROTATED_AT, ROTATED_AT + 1, ANCHORED, RECORDS] {
        cases.yes(&format!("pinned at {size}"), |s| s.trust.pin(&checkpoint(s, size, &key_at(size))).unwrap());
        cases.yes(&format!("anchored at {size}"), |s| anchor_at(s, size, &key_at(size)));
    }
    cases.yes("a checkpoint of size 0 is pinned", |s| s.trust.pin(&checkpoint(s, 0, &key(FIRST_SEED))).unwrap());
    cases.yes("an anchor of size 0", |s| anchor_at(s, 0, &key(FIRST_SEED)));
    cases.yes("trees missing", |s| (2..=last(s)).for_each(|n| fs::remove_file(s.tree(n)).unwrap()));
    cases.yes("no padding", |s| {
        let opened = Opened::read(&s.segment(last(s)));
        put(&s.segment(last(s)), &opened.encode());
    });
    cases.yes("other names lie beside the segments", |s| {
        for name in ["00000000.seg", "00000000.tree", "1.seg", "00000001.seg.old", "000000001.seg", "notes.txt"] {
            put(&s.path().join("journal").join(name), b"anything");
        }
    });
    for nested in ["", "journal"] {
        let mut archived = Sample::new();
        let archive = tempfile::tempdir().unwrap();
        fs::create_dir_all(archive.path().join(nested)).unwrap();
        for number in 1..3 {
            fs::rename(archived.segment(number), archive.path().join(nested).join(format!("{number:08}.seg"))).unwrap();
        }
        fs::rename(archived.tree(2), archive.path().join(nested).join("00000002.tree")).unwrap();
        let mut late = archived.copy();
        cases.push("archived, the archive not named, the newer key not trusted", Some(false), late.copy());
        late.trust.add_key(key(SECOND_SEED).verifier()).unwrap();
        cases.push("archived, the archive not named", Some(true), late.copy());
        late.trust.pin(&checkpoint(&Sample::new(), 3, &key(FIRST_SEED))).unwrap();
        cases.push("archived, a pinned checkpoint before what is at hand", Some(false), late);
        archived.archives.push(archive.path().to_owned());
        cases.push(format!("archived {nested:?}"), Some(true), archived)._archive = Some(archive);
    }
    witnesses::add(&mut cases);
    cases.yes("cut after the anchor", |s| cut(s, ANCHORED));
    cases.yes("stamped 146 years later", |s| clock::in_the_future(s, 1 << 62));

    // Whatever a crash may leave.
    for bytes in [1, 15, 16, 30, 100] {
        cases.yes(&format!("torn after {bytes} bytes"), |s| {
            let batch = encode_batch(&without_last_batch(s).1);
            end_with(s, &batch[..bytes]);
        });
    }
    cases.yes("torn with its beginning unwritten", |s| {
        let mut batch = encode_batch(&without_last_batch(s).1);
        batch[..40].fill(0);
        end_with(s, &batch);
    });
    cases.yes("an old batch inside a torn one", |s| {
        let old = encode_batch(&Opened::read(&s.segment(1)).batches[1]);
        end_with(s, &[b"LHB2 torn".as_slice(), &old].concat());
    });
    for (name, bytes) in [("short", 50), ("of 96 bytes", 96), ("padded", 1200)] {
        cases.yes(&format!("torn header, {name}"), |s| {
            let mut header = fs::read(s.segment(1)).unwrap()[..60].to_vec();
            header.resize(bytes, 0);
            put(&s.segment(last(s) + 1), &header);
        });
    }
    cases.yes("nothing in the last segment yet", |s| {
        let (tree, head) = at_size(s, RECORDS);
        let mut header = fs::read(s.segment(1)).unwrap()[..SEGMENT_HEADER].to_vec();
        header[12..16].copy_from_slice(&(last(s) + 1).to_le_bytes());
        header[16..24].copy_from_slice(&tree.size().to_le_bytes());
        header[24..56].copy_from_slice(&head);
        mend_header(&mut header);
        put(&s.segment(last(s) + 1), &header);
    });

    // The anchor's slots.
    cases.yes("one slot twice", |s| {
        let mut slot = s.anchor_text().into_bytes();
        slot.resize(SLOT, 0);
        put(&s.anchor(), &slot.repeat(2));
    });
    cases.yes("one slot only", |s| {
        let mut slot = s.anchor_text().into_bytes();
        slot.resize(SLOT, 0);
        put(&s.anchor(), &slot);
    });
    cases.yes("one slot without its padding", |s| put(&s.anchor(), s.anchor_text().as_bytes()));
    cases.yes("the newer slot damaged", |s| {
        let bytes = fs::read(s.anchor()).unwrap();
        let newer = s.anchor_text();
        let at = bytes.windows(newer.len()).position(|window| window == newer.as_bytes()).unwrap();
        flip(&s.anchor(), at + 30, 0);
    });
    agree(&cases);
}

/// A checkpoint that the auditor may have seen before.
fn common_checkpoint(sample: &Sample) -> String {
    checkpoint(sample, 20, &key_at(20))
}

#[test]
fn of_every_kind_of_record_as_the_second_one_writes_it() {
    let folder = converted::fixtures();
    let trust = Trust::parse(&fs::read_to_string(folder.path().join("trust")).unwrap()).unwrap();
    let data = tempfile::tempdir().unwrap();
    copy_files(&folder.path().join("data"), data.path());
    let archives = vec![folder.path().join("archive")];
    let mut cases = Cases::default();
    cases.push("as written", Some(true), Sample { folder: data, trust, archives });
    agree(&cases);
}

#[test]
fn of_an_empty_journal() {
    use leasehold_journal::{FileJournal, Journal, Keys, Local, Options, RealDisk, Secret};
    use std::sync::Arc;
    let folder = tempfile::tempdir().unwrap();
    let keys = Arc::new(Keys::new(ORIGIN, &FIRST_SEED).unwrap());
    let layout = Options { segment_bytes: 1200, ..Options::default() };
    let (disk, local) = (Arc::new(RealDisk::new(folder.path())), Local::new(Secret::new([7; 32])));
    let journal = FileJournal::create(disk, layout, keys, local, stamp(0)).unwrap();
    journal.prepare().unwrap();
    let sample = Sample { folder, trust: Trust::new(key(FIRST_SEED).verifier()), archives: Vec::new() };
    let bare = sample.copy();
    fs::remove_file(bare.segment(1)).unwrap();
    let mut cases = Cases::default();
    cases.push("empty", Some(true), sample);
    cases.push("empty, without a segment", Some(true), bare);
    agree(&cases);
}

#[test]
fn of_tampered_journals() {
    let mut cases = Cases::default();
    let mut dice = Dice(0x5EED);

    // One bit of one byte, in any file.
    let good = Sample::new();
    let mut files: Vec<PathBuf> = vec![PathBuf::from("anchor")];
    let names = fs::read_dir(good.path().join("journal")).unwrap().map(|entry| entry.unwrap().file_name());
    files.extend(names.map(|name| Path::new("journal").join(name)));
    files.sort();
    for file in files.iter().cycle().take(files.len() * 10) {
        let bytes = fs::read(good.path().join(file)).unwrap();
        let meant = bytes.iter().rposition(|byte| *byte != 0).map_or(bytes.len(), |last| last + 1);
        let (at, bit) = (dice.roll(meant), u8::try_from(dice.roll(8)).unwrap());
        cases.add(format!("bit {bit} of byte {at} of {}", file.display()), None, |s| {
            flip(&s.path().join(file), at, bit);
        });
    }

    // One bit of a record, by someone who mends the checksum.
    for sequence in (0..RECORDS - 1).step_by(2) {
        let (at, bit) = (dice.roll(40), u8::try_from(dice.roll(8)).unwrap());
        let name = format!("bit {bit} of byte {at} of record {sequence}");
        cases.no(&name, |s| s.edit_record(sequence, |frame| frame.bytes[at] ^= 1 << bit)).named = true;
        cases
            .no(&format!("the last byte of record {sequence}"), |s| {
                s.edit_record(sequence, |frame| *frame.bytes.last_mut().unwrap() ^= 1);
            })
            .named = true;
    }
    cases.yes("the very last record, after the anchor", |s| {
        s.edit_record(RECORDS - 1, |frame| *frame.bytes.last_mut().unwrap() ^= 1);
    });

    // Records removed, inserted, swapped; the tail cut.
    for sequence in [0, 4, 11, ROTATED_AT, ANCHORED] {
        cases
            .no(&format!("record {sequence} removed"), |s| {
                s.edit(s.segment_of(sequence), |opened| {
                    let (batch, frame) = opened.find(sequence).unwrap();
                    opened.batches[batch].remove(frame);
                });
            })
            .named = true;
    }
    cases.no("a record inserted", |s| {
        s.edit(s.segment_of(10), |opened| {
            let (batch, frame) = opened.find(10).unwrap();
            let twice = opened.batches[batch][frame].clone();
            opened.batches[batch].insert(frame, twice);
        });
    });
    cases.no("records swapped", |s| s.edit(1, |opened| opened.batches[1].swap(0, 1)));
    cases.no("batches swapped", |s| s.edit(1, |opened| opened.batches.swap(1, 2)));
    cases.no("segments swapped", |s| {
        let (two, three) = (fs::read(s.segment(2)).unwrap(), fs::read(s.segment(3)).unwrap());
        put(&s.segment(2), &three);
        put(&s.segment(3), &two);
    });
    cases.no("a segment removed", |s| fs::remove_file(s.segment(2)).unwrap());
    cases.no("a segment emptied", |s| s.edit(2, |opened| opened.batches.clear()));
    for sequence in [1, 13, ANCHORED - 1] {
        cases.no(&format!("cut at {sequence}"), |s| cut(s, sequence));
    }
    cases.no("cut, with an older anchor; pinned", |s| {
        let note = s.note();
        anchor_at(s, 20, &key_at(20));
        cut(s, 20);
        s.trust.pin(&note).unwrap();
    });
    cases.no("cut, a tree file left behind", |s| {
        let (number, tree) = (last(s), fs::read(s.tree(last(s))).unwrap());
        let first = Opened::read(&s.segment(number)).batches[0][0].sequence();
        anchor_at(s, first, &key_at(first));
        cut(s, first);
        fs::remove_file(s.segment(number)).unwrap();
        put(&s.tree(number), &tree);
    });
    cases.no("a tree file beside a torn header", |s| {
        let number = last(s);
        let first = Opened::read(&s.segment(number)).batches[0][0].sequence();
        anchor_at(s, first, &key_at(first));
        put(&s.segment(number), &fs::read(s.segment(number)).unwrap()[..50]);
    });
    cases.no("a segment that was not begun is missing before another", |s| {
        let number = last(s);
        put(&s.segment(number + 1), &[0; 100]);
        put(&s.segment(number + 2), &[0; 100]);
        fs::remove_file(s.segment(number + 1)).unwrap();
    });
    cases.no("a tree file before the first segment", |s| put(&s.tree(1), &fs::read(s.tree(2)).unwrap()));
    cases.no("the tree file of another segment", |s| put(&s.tree(3), &fs::read(s.tree(2)).unwrap()));

    // Signatures and keys.
    for sequence in [NOTARISED_AT, ROTATED_AT] {
        cases
            .no(&format!("the signature of record {sequence} stripped"), |s| {
                s.edit_record(sequence, |frame| frame.signatures.truncate(frame.signatures.len() - 64));
            })
            .named = true;
        cases
            .no(&format!("the signature of record {sequence} altered"), |s| {
                s.edit_record(sequence, |frame| frame.signatures[5] ^= 1);
            })
            .named = true;
    }
    cases.no("a stray signature", |s| s.edit_record(9, |frame| frame.signatures.extend([7; 64]))).named = true;
    cases.no("the wrong origin", |s| {
        s.trust = Trust::new(SigningKey::from_seed("other.example", &FIRST_SEED).unwrap().verifier());
    });
    cases.no("the wrong key", |s| s.trust = Trust::new(key([55; 32]).verifier()));
    cases.no("the newer key only", |s| s.trust = Trust::new(key(SECOND_SEED).verifier()));
    cases.no("the anchor signed by the older key", |s| anchor_at(s, ANCHORED, &key(FIRST_SEED)));
    cases.no("an anchor of size 0 by a stranger", |s| anchor_at(s, 0, &key(SECOND_SEED)));
    cases.no("an anchor of size 0 that names another key", |s| {
        anchor_at(s, 0, &key(FIRST_SEED));
        let id = |seed| key(seed).verifier().id().to_string();
        s.forge_anchor(&s.anchor_text().replace(&id(FIRST_SEED), &id(SECOND_SEED)));
    });
    cases.no("pinned, signed by a stranger", |s| s.trust.pin(&checkpoint(s, 9, &key([55; 32]))).unwrap());
    cases.no("pinned beyond the end", |s| {
        s.trust.pin(&Checkpoint::new(ORIGIN, RECORDS + 1, [1; 32]).unwrap().sign(&key(SECOND_SEED))).unwrap();
    });
    cases.no("a false cosignature", |s| {
        let witness = WitnessSigningKey::from_seed("w.example.net", &[9; 32]).unwrap();
        let other = Checkpoint::new(ORIGIN, 3, [0; 32]).unwrap();
        let mut note = Note::parse(&s.note()).unwrap();
        note.add_signature(witness.cosign(&other, 5).unwrap()).unwrap();
        s.forge_anchor(&s.anchor_text().replace(&s.note(), &note.to_string()));
        s.trust.add_witness(witness.verifier());
    });

    // Rewritten and hashed anew.
    cases.no("rewritten by a stranger", |s| {
        rewrite(s, &[SigningKey::from_seed(ORIGIN, &[77; 32]).unwrap()], change_record(20));
    });
    cases.no("rewritten, the signed texts left as they were", |s| {
        let honest = s.copy();
        rewrite(s, &operator_keys(), change_record(20));
        put(&s.anchor(), &fs::read(honest.anchor()).unwrap());
        (2..=last(s)).for_each(|n| put(&s.tree(n), &fs::read(honest.tree(n)).unwrap()));
    });
    cases.no("rewritten, the anchor left as it was", |s| {
        let honest = fs::read(s.anchor()).unwrap();
        rewrite(s, &operator_keys(), change_record(ANCHORED - 1));
        put(&s.anchor(), &honest);
    });
    cases.yes("rewritten by the operator, with nothing remembered", |s| {
        rewrite(s, &operator_keys(), change_record(20));
    });
    cases.no("rewritten by the operator, and remembered", |s| {
        let note = s.note();
        rewrite(s, &operator_keys(), change_record(20));
        s.trust.pin(&note).unwrap();
    });
    cases
        .no("a stamp that goes back", |s| {
            rewrite(s, &operator_keys(), |frames| {
                for frame in frames.iter_mut().filter(|frame| frame.sequence() == 18) {
                    frame.bytes[33..41].copy_from_slice(&stamp(16).0.to_le_bytes());
                }
            });
        })
        .named = true;
    cases
        .no("a genesis record that continues", |s| {
            rewrite(s, &operator_keys(), |frames| {
                for frame in frames.iter_mut().filter(|frame| frame.sequence() == 0) {
                    // Link, sequence, stamp and kind lie before the parts.
                    frame.bytes.splice(42..43, [0x80, 0x10]);
                }
            });
        })
        .named = true;
    cases
        .no("a key that follows itself", |s| {
            let keys = operator_keys();
            rewrite(s, &keys, |frames| {
                for frame in frames.iter_mut().filter(|frame| frame.sequence() == ROTATED_AT) {
                    let (old, new) = (keys[0].public_key(), keys[1].public_key());
                    while let Some(at) = frame.bytes.windows(32).position(|window| *window == new) {
                        frame.bytes[at..at + 32].copy_from_slice(&old);
                    }
                }
            });
        })
        .named = true;

    of_ends_that_are_not_torn(&mut cases);
    of_headers_and_anchors(&mut cases);
    agree(&cases);
}

/// Ends that a crash does not leave.
fn of_ends_that_are_not_torn(cases: &mut Cases) {
    let tail = |s: &Sample| encode_batch(&without_last_batch(s).1);
    cases.no("a good batch after a torn one", |s| end_with(s, &[b"LHB2 torn".as_slice(), &tail(s)].concat()));
    cases.no("a good batch after zeroes", |s| end_with(s, &[[0; 64].as_slice(), &tail(s)].concat()));
    cases.yes("a batch that begins too early after a torn one", |s| {
        let early = Opened::read(&s.segment(last(s))).batches.iter().rev().nth(1).unwrap().clone();
        let both = [early, without_last_batch(s).1].concat();
        end_with(s, &[b"LHB2 torn".as_slice(), &encode_batch(&both)].concat());
    });
    cases.yes("a batch that does not decode after a torn one", |s| {
        let mut frames = without_last_batch(s).1;
        frames.last_mut().unwrap().bytes.push(0);
        end_with(s, &[b"LHB2 torn".as_slice(), &encode_batch(&frames)].concat());
    });
    cases.no("a batch that does not decode", |s| {
        let mut frames = without_last_batch(s).1;
        frames.last_mut().unwrap().bytes.push(0);
        end_with(s, &encode_batch(&frames));
    });
    for records in [0, 1, 2, 4, 9, 1000, 65_537] {
        cases.no(&format!("a batch that counts {records} instead of 3"), |s| {
            let batch = tail(s);
            end_with(s, &raw_batch(&batch[BATCH_HEADER..], records));
        });
    }
    cases.no("a batch with nothing in it", |s| end_with(s, &raw_batch(b"", 0)));
    cases.no("a torn end that a pinned checkpoint knows", |s| {
        s.trust.pin(&checkpoint(s, ANCHORED + 1, &key(SECOND_SEED))).unwrap();
        end_with(s, &tail(s)[..50]);
    });
    cases.no("a torn end that the anchor knows", |s| {
        anchor_at(s, RECORDS, &key(SECOND_SEED));
        end_with(s, &tail(s)[..50]);
    });
    cases.no("a torn end before a later segment", |s| {
        end_with(s, &tail(s)[..50]);
        put(&s.segment(last(s) + 1), b"LHSEG");
    });
    cases.no("a torn header before a good batch", |s| {
        let mut header = fs::read(s.segment(1)).unwrap()[..60].to_vec();
        header.resize(SEGMENT_HEADER, 0);
        let mut frames = without_last_batch(s).1;
        frames.iter_mut().for_each(|frame| frame.bytes[32] += 3);
        put(&s.segment(last(s) + 1), &[header, encode_batch(&frames)].concat());
    });
    cases.yes("a torn header before an old batch", |s| {
        let mut header = fs::read(s.segment(1)).unwrap()[..60].to_vec();
        header.resize(SEGMENT_HEADER, 0);
        put(&s.segment(last(s) + 1), &[header, tail(s)].concat());
    });
}

fn of_headers_and_anchors(cases: &mut Cases) {
    for (at, field) in
        [(0, "magic"), (8, "version"), (12, "number"), (16, "sequence"), (30, "link"), (60, "origin"), (88, "zero")]
    {
        cases.no(&format!("the {field} of a header"), |s| s.edit(2, |opened| opened.header[at] ^= 2));
        // Of a segment that nobody was told about, and whose checksum fits all the same.
        cases.no(&format!("the {field} of a last header"), |s| {
            let (tree, head) = at_size(s, RECORDS);
            let mut header = fs::read(s.segment(1)).unwrap()[..SEGMENT_HEADER].to_vec();
            header[12..16].copy_from_slice(&(last(s) + 1).to_le_bytes());
            header[16..24].copy_from_slice(&tree.size().to_le_bytes());
            header[24..56].copy_from_slice(&head);
            header[at] ^= 2;
            mend_header(&mut header);
            put(&s.segment(last(s) + 1), &header);
        });
    }
    let lines = [
        ("\nsize 27", "\nsize 26"),
        ("\nkey ", "\nkey 0"),
        ("\nhead ", "\nhead 0"),
        ("\ntime ", "\ntime 0"),
        ("\nepoch ", "\n"),
    ];
    for (from, to) in lines {
        cases.no(&format!("{to:?} in the anchor"), |s| s.forge_anchor(&s.anchor_text().replacen(from, to, 1)));
    }
    cases.no("another head in the anchor", |s| {
        let text = s.anchor_text();
        let head = text.lines().find(|line| line.starts_with("head ")).unwrap();
        s.forge_anchor(&text.replace(head, &format!("head {}", "0".repeat(64))));
    });
    cases.yes("another epoch and time in the anchor", |s| {
        s.forge_anchor(&s.anchor_text().replacen("\nepoch ", "\nepoch 7", 1).replacen("\ntime 1", "\ntime 2", 1));
    });
    cases.no("a newer anchor", |s| s.forge_anchor(&s.anchor_text().replace("anchor v2", "anchor v3")));
    cases.no("slots of one counter that differ", |s| {
        let text = s.anchor_text();
        let slots = [text.clone(), with_fitting_end(&text.replacen("\ntime 1", "\ntime 2", 1))];
        let slots = slots.map(|slot| {
            let mut slot = slot.into_bytes();
            slot.resize(SLOT, 0);
            slot
        });
        put(&s.anchor(), &slots.concat());
    });
    cases.no("an anchor that is too long", |s| {
        let mut bytes = fs::read(s.anchor()).unwrap();
        bytes.push(0);
        put(&s.anchor(), &bytes);
    });
    cases.no("no anchor", |s| fs::remove_file(s.anchor()).unwrap());
    cases.no("an empty anchor", |s| put(&s.anchor(), &[0; 2 * SLOT]));
    cases.no("a signature of small order", |s| {
        // Under the neutral element as a key, this signature fits any message.
        let neutral: Vec<u8> = std::iter::once(1).chain([0; 31]).collect();
        let notary = operator_keys()[2].public_key();
        rewrite(s, &operator_keys(), |frames| {
            for frame in frames.iter_mut().filter(|frame| frame.sequence() == NOTARISED_AT) {
                let at = frame.bytes.windows(32).position(|window| *window == notary).unwrap();
                frame.bytes[at..at + 32].copy_from_slice(&neutral);
                frame.signatures.fill(0);
                frame.signatures[0] = 1;
            }
        });
    });
}
