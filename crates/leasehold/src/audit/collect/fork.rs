//! Evidence that the log signed two histories: what it shows now against what it signed before.
//!
//! A batch that does not fit proves nothing about the log, because anybody on the way can change it. Two signed checkpoints
//! and the hashes between them do. Which root the larger tree has at the smaller size is known to whoever has its records:
//! the daemon for its own checkpoint, the copy for the one that was collected.

use super::collector::Collector;
use crate::cli::collect::CollectArgs;
use crate::journal_files::JournalFiles;
use crate::problem::Problem;
use leasehold_client::Client;
use leasehold_journal::private_file;
use leasehold_tlog::{Checkpoint, ConsistencyBuilder, Note, hash_from_base64, leaf_hash};
use leasehold_verify::Trust;
use leasehold_verify::evidence::{Evidence, Growth, RotationRecord};
use std::cmp::Ordering;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The code of `journal.key_rotated`.
const KEY_ROTATED: u64 = 4;
const ENDING: &str = ".evidence";

/// Compares what the daemon shows with what the collector has seen before: the checkpoint that proved the copy, and the one
/// in the trust file. Returns evidence if they contradict each other, and the size of the one that was seen before.
pub(super) async fn find(collector: &Collector, trust: &Trust, args: &CollectArgs) -> Option<(Evidence, u64)> {
    let shown = collector.shown.as_ref()?;
    let proved = Note::parse(collector.mirror.note()).ok();
    let pinned = trust.pinned().map(|pinned| pinned.note.clone());
    for (seen, collected) in proved.map(|note| (note, true)).into_iter().chain(pinned.map(|note| (note, false))) {
        let Some((before, now)) = size(&seen).zip(size(shown)) else { continue };
        let evidence = match before.cmp(&now) {
            Ordering::Equal => Some(unproved(trust, seen, shown.clone(), None)),
            Ordering::Less => from_daemon(&collector.client, trust, seen, before).await,
            // Only the copy contains the records of what was seen before.
            Ordering::Greater if collected => from_copy(trust, shown.clone(), seen, args),
            Ordering::Greater => None,
        };
        if let Some(confirmed) = evidence.and_then(|evidence| confirm(evidence, trust, args)) {
            return Some((confirmed, before));
        }
    }
    None
}

/// The checkpoint in the trust file against the copy, which has more records.
pub(super) fn find_in_copy(copy: &str, trust: &Trust, args: &CollectArgs) -> Option<(Evidence, u64)> {
    let pinned = trust.pinned()?;
    let copy = Note::parse(copy).ok()?;
    let seen = pinned.checkpoint.size();
    let evidence = match seen.cmp(&size(&copy)?) {
        Ordering::Equal => unproved(trust, pinned.note.clone(), copy, None),
        Ordering::Less => from_copy(trust, pinned.note.clone(), copy, args)?,
        Ordering::Greater => return None,
    };
    Some((confirm(evidence, trust, args)?, seen))
}

fn size(note: &Note) -> Option<u64> {
    Checkpoint::from_body(note.text()).ok().map(|checkpoint| checkpoint.size())
}

fn unproved(trust: &Trust, smaller: Note, larger: Note, growth: Option<Growth>) -> Evidence {
    Evidence { origin: trust.origin().to_owned(), rotations: Vec::new(), smaller, larger, growth }
}

/// What the daemon says about its first records. A daemon that was forked by accident answers; one that lies need not.
async fn from_daemon(client: &Client, trust: &Trust, seen: Note, from: u64) -> Option<Evidence> {
    let answer = client.prove_consistency().query("from", from).await.ok()?;
    let larger = Note::parse(&answer.checkpoint.note).ok()?;
    let hashes = answer.path.iter().map(|hash| hash_from_base64(hash)).collect::<Option<Vec<_>>>()?;
    let growth = Growth { root: hash_from_base64(&answer.from_root)?, hashes };
    Some(unproved(trust, seen, larger, Some(growth)))
}

/// What the records of the copy lead to, up to the checkpoint that proved it.
fn from_copy(trust: &Trust, smaller: Note, larger: Note, args: &CollectArgs) -> Option<Evidence> {
    let (from, to) = size(&smaller).zip(size(&larger))?;
    let mut builder = ConsistencyBuilder::new(from, to).ok()?;
    let files = JournalFiles::open(&args.data, &args.archives).ok()?;
    let scanned = files.scan_from_genesis(&mut |entry| match entry.sequence < to {
        true => {
            builder.push(leaf_hash(&entry.hash));
            Ok(ControlFlow::Continue(()))
        }
        false => Ok(ControlFlow::Break(())),
    });
    scanned.ok()?;
    let (proof, root, _) = builder.finish().ok()?;
    Some(unproved(trust, smaller, larger, Some(Growth { root, hashes: proof.hashes })))
}

/// The evidence, if it convinces someone who has this trust file and nothing else. If the keys were rotated since, it
/// also needs the rotations.
fn confirm(mut evidence: Evidence, trust: &Trust, args: &CollectArgs) -> Option<Evidence> {
    // As whoever gets the file will read it.
    let convinces =
        |evidence: &Evidence| Evidence::parse(&evidence.to_text()).is_ok_and(|read| read.check(trust).is_ok());
    if convinces(&evidence) {
        return Some(evidence);
    }
    evidence.rotations = rotations(args).ok()?;
    convinces(&evidence).then_some(evidence)
}

/// The rotations in the copy, beginning with one from a key in the trust file.
fn rotations(args: &CollectArgs) -> Result<Vec<RotationRecord>, Problem> {
    let files = JournalFiles::open(&args.data, &args.archives)?;
    let mut rotations = Vec::new();
    files.scan(&mut |entry| {
        if entry.sequence >= files.signed().head.size {
            return Ok(ControlFlow::Break(()));
        }
        if entry.raw.kind() == Ok(KEY_ROTATED) {
            let (bytes, signatures) = (entry.raw.bytes.to_vec(), entry.raw.signatures.to_vec());
            rotations.push(RotationRecord { bytes, signatures });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rotations)
}

/// Stores the evidence beside the copy, under the size of the checkpoint that was seen before. A file that is there
/// already is never changed: it proves the same.
pub(super) fn store(data: &Path, evidence: &Evidence, seen: u64) -> io::Result<PathBuf> {
    let path = data.join(format!("fork-{seen}{ENDING}"));
    private_file::create(&path, &[evidence.to_text().as_bytes()])?;
    Ok(path)
}

/// The evidence that earlier runs have stored, in order of name.
pub(super) fn stored(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("fork-") && name.ends_with(ENDING))
    };
    let mut paths: Vec<PathBuf> = entries.filter(named).collect();
    paths.sort_unstable();
    paths
}
