//! `leasehold backup`: a verified copy of the journal up to a signed checkpoint (docs/how-to/back-up.md).

use crate::cli::backup::BackupArgs;
use crate::journal_copy::{Copied, Source};
use crate::numbers::{bytes, counted};
use crate::output;
use crate::problem::Problem;
use crate::term::shell_word;
use leasehold_journal::private_file;
use leasehold_server::config::Config;
use serde_json::json;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What a backup without `--with-secrets` leaves out. They have the same names in the backup.
pub(crate) const SECRETS: [&str; 3] = ["key", "local.secret", "operator.token"];
const CONFIG: &str = "/etc/leasehold/leasehold.yaml";
/// Segments may be moved to an archive while they are read.
const ATTEMPTS: u32 = 3;

pub(crate) fn run(args: &BackupArgs, as_json: bool) -> Result<(), Problem> {
    let (data, archives) = source(args)?;
    let to = target(&args.to, &data)?;
    let mut attempt = 1;
    let (source, copied) = loop {
        let source = Source::open(&data, &archives)?;
        match source.copy_to(&to, &[]) {
            Ok(copied) => break (source, copied),
            Err(problem) if attempt == ATTEMPTS || !may_have_moved(&problem) => return Err(problem),
            Err(_) => attempt += 1,
        }
    };
    source.verify(&to)?;
    let secrets = match args.with_secrets {
        true => copy_secrets(&data, &to)?,
        false => Vec::new(),
    };
    report(&source, &copied, &to, &secrets, as_json)
}

fn may_have_moved(problem: &Problem) -> bool {
    ["journal_segment_missing", "journal_cut_off"].contains(&problem.code())
}

/// The data directory, and the directories with its archived segments.
fn source(args: &BackupArgs) -> Result<(PathBuf, Vec<PathBuf>), Problem> {
    let file = args.config.clone().or_else(|| args.data.is_none().then(|| PathBuf::from(CONFIG)));
    let config = match &file {
        None => None,
        Some(file) if args.config.is_none() && !file.exists() => {
            return Err(Problem::usage("data_needed", format!("no data directory is given, and there is no {CONFIG}"))
                .advice("give --data DIR, or --config FILE with `data`"));
        }
        Some(file) => Some(Config::load(file).map_err(|error| Problem::told(error.code(), &error))?),
    };
    let data = args.data.clone().or_else(|| config.as_ref().map(|config| config.data.clone()));
    let data = data.expect("without --data there is a configuration");
    let data = data.canonicalize().map_err(|error| {
        Problem::refused("data_unusable", format!("cannot use the directory: {error}"))
            .at(&data)
            .advice("check the path")
    })?;
    let configured = config.map(|config| config.journal.archive).unwrap_or_default();
    Ok((data, args.archives.iter().cloned().chain(configured).collect()))
}

/// Creates the directory of the backup, readable only by its owner: it is as confidential as the journal.
fn target(to: &Path, data: &Path) -> Result<PathBuf, Problem> {
    let unusable = |error: &io::Error| {
        Problem::refused("backup_unusable", format!("cannot use the directory: {error}"))
            .at(to)
            .advice("choose a directory that you may write to")
    };
    if !to.is_dir() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(to).map_err(|error| unusable(&error))?;
    }
    let path = to.canonicalize().map_err(|error| unusable(&error))?;
    if path.starts_with(data) || data.starts_with(&path) {
        return Err(Problem::usage("backup_in_data", "the backup and the data directory contain one another")
            .at(&path)
            .advice("choose a directory elsewhere, best on another disk"));
    }
    let mut entries = fs::read_dir(&path).map_err(|error| unusable(&error))?;
    if entries.next().is_some() && !path.join("collector").exists() {
        return Err(Problem::refused("backup_not_empty", "the directory is not empty and contains no backup")
            .at(&path)
            .advice("choose an empty directory, or an earlier backup of this journal"));
    }
    Ok(path)
}

/// Copies the files with secrets, readable only by their owner. Returns their names.
fn copy_secrets(data: &Path, to: &Path) -> Result<Vec<&'static str>, Problem> {
    let mut copied = Vec::new();
    for name in SECRETS {
        let from = data.join(name);
        let failed = |what: &str, error: &io::Error| {
            Problem::refused("secret_not_copied", format!("cannot be {what}: {error}")).at(&from)
        };
        let read = match fs::read(&from).map(Zeroizing::new) {
            Ok(read) => read,
            // The secret may be a systemd credential, and the token may have been removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && name != "key" => continue,
            Err(error) => return Err(failed("read", &error)),
        };
        private_file::replace(&to.join(name), &[&read]).map_err(|error| failed("written to the backup", &error))?;
        copied.push(name);
    }
    Ok(copied)
}

fn report(source: &Source, copied: &Copied, to: &Path, secrets: &[&'static str], as_json: bool) -> Result<(), Problem> {
    let signed = source.signed();
    // Also those of an earlier run.
    let contained: Vec<_> = SECRETS.into_iter().filter(|name| to.join(name).exists()).collect();
    if as_json {
        return output::print_json(&json!({
            "origin": signed.origin,
            "to": to.display().to_string(),
            "copied": copied.records,
            "bytes": copied.bytes,
            "records": signed.head.size,
            "newest_record": copied.mirror.stamp().to_string(),
            "verified": true,
            "secrets": contained,
            "checkpoint": { "size": signed.head.size, "note": signed.note.to_string() },
        }));
    }
    let shown = shell_word(&to.display().to_string());
    let kept = match (secrets, contained.as_slice()) {
        ([], []) => "The signing key is not in the backup. Keep a copy of the file `key` elsewhere.".to_owned(),
        ([], old) => format!("An earlier run has left secrets in the backup: {}.", old.join(", ")),
        (new, _) => format!("The backup contains {}: whoever can read them can sign this journal.", new.join(", ")),
    };
    output::print(&format!(
        "Copied {} ({}) to {}; the backup has {} and was verified.\n\
         newest record  {}\n\
         {kept}\n\
         restore it with  leasehold restore {shown} --data DIR --only-copy{}\n",
        counted(copied.records, "record"),
        bytes(copied.bytes),
        to.display(),
        counted(signed.head.size, "record"),
        copied.mirror.stamp(),
        if contained.contains(&"key") { "" } else { " --key FILE" },
    ))
}
