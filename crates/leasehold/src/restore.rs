//! `leasehold restore`: a new data directory from a backup, with a new epoch (docs/how-to/back-up.md).

use crate::backup::SECRETS;
use crate::cli::backup::RestoreArgs;
use crate::journal_copy::{Copied, Seen, Source, unreadable};
use crate::numbers::{counted, thousands};
use crate::output;
use crate::problem::Problem;
use crate::term::shell_word;
use leasehold_cell::{Clock, Core, StartOptions, SystemClock};
use leasehold_journal::disk::Disk;
use leasehold_journal::{FileJournal, Journal, Keys, Local, OpenError, Options, ReadOnly, RealDisk, private_file};
use leasehold_model::Instant;
use leasehold_server::{DataDirectory, software};
use serde_json::json;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// In a directory that is being restored. One that has it and is left over from a crash can be removed.
const MARK: &str = "restoring";

pub(crate) fn run(args: &RestoreArgs, as_json: bool) -> Result<(), Problem> {
    if !args.only_copy {
        return Err(Problem::usage(
            "only_copy_needed",
            "a journal may be continued in one place only: two directories that sign the same journal prove a fork",
        )
        .advice("make sure that the old data directory never runs again, and confirm it with --only-copy"));
    }
    let source = Source::open(&args.from, &[])?;
    let keys = keys(args, &source)?;
    let seen = args.collectors.iter().map(|path| seen_by(path, args, &source)).collect::<Result<Vec<_>, _>>()?;
    let staging = Staging::begin(&args.data)?;
    let copied = source.copy_to(&staging.path, &seen)?;
    let records = copied.records;
    source.verify(&staging.path)?;
    let restored = continue_journal(args, &source, copied, keys, &staging.path)?;
    staging.finish(&args.data)?;
    report(args, &source, records, &restored, as_json)
}

fn unusable(path: &Path, error: &io::Error) -> Problem {
    Problem::refused("restore_failed", format!("cannot use the directory: {error}"))
        .at(path)
        .advice("choose a directory that you may write to")
}

/// The directory beside the data directory in which it is made, so that it is there whole or not at all. Removed again
/// if the restore fails.
struct Staging {
    path: PathBuf,
    done: bool,
}

impl Staging {
    fn begin(data: &Path) -> Result<Self, Problem> {
        let in_use = match fs::read_dir(data) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(unusable(data, &error)),
        };
        if in_use {
            return Err(Problem::refused(
                "restore_not_empty",
                "the directory is not empty; a restore never overwrites",
            )
            .at(data)
            .advice("choose a directory that does not exist, or move this one away"));
        }
        let mut name = data.file_name().unwrap_or_default().to_owned();
        name.push(".restoring");
        let path = data.with_file_name(name);
        if path.join(MARK).exists() {
            fs::remove_dir_all(&path).map_err(|error| unusable(&path, &error))?;
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(data.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
            .and_then(|()| fs::DirBuilder::new().mode(0o700).create(&path))
            .and_then(|()| fs::write(path.join(MARK), ""))
            .map_err(|error| unusable(&path, &error))?;
        Ok(Self { path, done: false })
    }

    /// Puts the directory in its place. If it returns `Ok`, that is durable.
    fn finish(mut self, data: &Path) -> Result<(), Problem> {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let finished = fs::remove_file(self.path.join(MARK))
            .and_then(|()| File::open(&self.path)?.sync_all())
            // Replaces an empty directory, and no other.
            .and_then(|()| fs::rename(&self.path, data))
            .and_then(|()| File::open(parent)?.sync_all());
        finished.map_err(|error| unusable(data, &error))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.done {
            // What is left is removed by the next restore.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The signing keys, from the option or the backup.
fn keys(args: &RestoreArgs, source: &Source) -> Result<Keys, Problem> {
    let in_backup = args.from.join(SECRETS[0]);
    let path = args.key.as_ref().unwrap_or(&in_backup);
    if args.key.is_none() && !path.exists() {
        return Err(Problem::refused("key_needed", "the backup does not contain the signing key")
            .at(&args.from)
            .advice(
                "give the file `key` of the old data directory with --key FILE; without it the journal can be read and \
                 verified, but not continued: start a new journal with another origin",
            ));
    }
    let keys = Keys::load(path).map_err(|error| Problem::refused("key_unusable", error.to_string()).at(path))?;
    let origin = &source.signed().origin;
    if keys.origin() == origin {
        return Ok(keys);
    }
    Err(Problem::refused(
        "wrong_origin",
        format!("this is the key of {:?}, and the journal is of {origin:?}", keys.origin()),
    )
    .at(path)
    .advice("give the key of this journal"))
}

/// What a collector has seen; refused if that is more than the backup contains.
fn seen_by(path: &Path, args: &RestoreArgs, source: &Source) -> Result<Seen, Problem> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(path));
    let copy = ReadOnly::open(disk, Vec::new()).map_err(|error| unreadable(path, &error))?;
    let (seen, ours) = (copy.signed(), source.signed());
    if seen.origin != ours.origin {
        let what = format!("this is a copy of the journal {:?}, and the backup is of {:?}", seen.origin, ours.origin);
        return Err(Problem::usage("wrong_origin", what).at(path).advice("name a copy of the same journal"));
    }
    let (size, had) = (seen.head.size, ours.head.size);
    if size > had {
        let what = format!(
            "the copy has {} records and the backup {}: others have seen {} that the restored journal would contradict",
            thousands(size),
            thousands(had),
            counted(size - had, "record")
        );
        let word = |path: &Path| shell_word(&path.display().to_string());
        return Err(Problem::refused("collector_ahead", what).at(path).advice(format!(
            "restore the copy instead:  leasehold restore {} --data {} --only-copy --key FILE",
            word(path),
            word(&args.data)
        )));
    }
    Ok(Seen { size, note: seen.note.clone(), whose: path.to_owned() })
}

/// What the restored journal was continued with.
struct Restored {
    epoch: u64,
    size: u64,
    key: String,
}

/// Makes the copy a data directory, and seals that it was restored and that a new epoch begins.
fn continue_journal(
    args: &RestoreArgs,
    source: &Source,
    copied: Copied,
    keys: Keys,
    data: &Path,
) -> Result<Restored, Problem> {
    let signed = source.signed();
    let failed = |error: &io::Error| Problem::refused("restore_failed", error.to_string()).at(data);
    copied.mirror.give_up().map_err(|error| failed(&error))?;
    keys.save(&data.join(SECRETS[0]))
        .map_err(|error| Problem::refused("restore_failed", error.to_string()).at(data))?;
    for name in &SECRETS[1..] {
        match fs::read(args.from.join(name)).map(Zeroizing::new) {
            Ok(read) => private_file::replace(&data.join(name), &[&read]).map_err(|error| failed(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&error)),
        }
    }
    let secret = DataDirectory { data: data.to_owned() }.secret();
    let mut local = Local::new(secret.map_err(|error| Problem::told(error.code(), &error))?);
    local.restored = Some(signed.time);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let keys = Arc::new(keys);
    let disk = Arc::new(RealDisk::new(data));
    let (journal, _) = FileJournal::open(disk, Options::default(), Arc::clone(&keys), local, clock.wall())
        .map_err(|error| not_continued(args, &error))?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let mut options = StartOptions::new(software(), keys.public_keys()[0]);
    options.accept_clock = args.accept_clock;
    let (core, now, _) = Core::open(Arc::clone(&journal), Arc::clone(&clock), &options)
        .map_err(|error| Problem::told(error.code(), &error))?;
    drop(core);
    let (epoch, size) = now.read(|state| (state.epoch(), state.size()));
    journal.close(clock.wall()).map_err(|failure| Problem::refused("restore_failed", failure.to_string()).at(data))?;
    Ok(Restored { epoch, size, key: signed.key.to_string() })
}

fn not_continued(args: &RestoreArgs, error: &OpenError) -> Problem {
    match error {
        OpenError::MissingKey { .. } => Problem::told(error.code(), error)
            .at(args.key.as_ref().unwrap_or(&args.from))
            .advice("the key was rotated since this file was copied: give the newest file `key`"),
        _ => Problem::told(error.code(), error).at(&args.from),
    }
}

fn report(
    args: &RestoreArgs,
    source: &Source,
    records: u64,
    restored: &Restored,
    as_json: bool,
) -> Result<(), Problem> {
    let (signed, data) = (source.signed(), args.data.display().to_string());
    let copied_at: Instant = signed.time;
    if as_json {
        return output::print_json(&json!({
            "origin": signed.origin,
            "data": data,
            "restored": records,
            "records": restored.size,
            "epoch": restored.epoch,
            "key": restored.key,
            "copied_at": copied_at.to_string(),
            "verified": true,
        }));
    }
    output::print(&format!(
        "Restored {} of {} to {data}; the journal goes on in epoch {}.\n\
         Everything after {copied_at} is lost. Compare the nodes with `leasehold lease list`, and tell the auditors.\n\
         start it with  leasehold serve --data {}\n",
        counted(records, "record"),
        signed.origin,
        restored.epoch,
        shell_word(&data),
    ))
}
