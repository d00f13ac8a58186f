//! `leasehold journal archive`: moves old segments to a directory where the daemon still reads them.

use crate::cli::journal::ArchiveArgs;
use crate::numbers::{bytes, counted, thousands};
use crate::output;
use crate::problem::Problem;
use crate::term;
use leasehold_journal::disk::Disk;
use leasehold_journal::{Archiver, Moved, Plan, RealDisk, in_use};
use leasehold_server::config::Config;
use leasehold_server::{ArchiveState, DataDirectory};
use serde_json::json;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the progress line is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);
const BAR_CELLS: usize = 24;

pub(crate) fn run(args: &ArchiveArgs) -> Result<(), Problem> {
    let config = Config::load(&args.config).map_err(|error| Problem::told(error.code(), &error))?;
    let data = args.data.as_ref().unwrap_or(&config.data);
    let data = data.canonicalize().map_err(|error| unusable("data_unusable", data, &error))?;
    let to = archive_directory(&args.to, &args.config, &config, &data)?;
    run_by_owner(&data, "archive")?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(&data));
    let directory = DataDirectory { data: data.clone() };
    let state = known_to_daemon(&directory, disk.as_ref(), &to, args)?;
    let secret = directory.own_secret().map_err(|error| Problem::told(error.code(), &error))?;
    let problem = |error: &leasehold_journal::ArchiveError| Problem::told(error.code(), error).at(&data);
    let plan = Plan::make(&disk, secret.as_ref(), state.books).map_err(|error| problem(&error))?;
    if args.dry_run {
        let planned = Moved { segments: plan.segments().collect(), bytes: plan.bytes() };
        return report(args, &planned, &plan, &to);
    }
    let archiver = Archiver::new(disk, Arc::new(RealDisk::new(&to))).map_err(|error| problem(&error))?;
    let mut line = Line::new("archiving", plan.bytes() * 2);
    let moved = archiver.run(&plan, &mut |done| {
        line.draw(done);
        true
    });
    line.clear();
    report(args, &moved.map_err(|error| problem(&error))?, &plan, &to)
}

pub(crate) fn unusable(code: &'static str, path: &Path, error: &io::Error) -> Problem {
    Problem::refused(code, format!("cannot use the directory: {error}")).at(path).advice("check the path")
}

/// The directory of the option, which must be in the configuration and not part of the data directory.
pub(crate) fn archive_directory(
    given: &Path,
    config_file: &Path,
    config: &Config,
    data: &Path,
) -> Result<PathBuf, Problem> {
    let to = usable_archive(given)?;
    if to.starts_with(data) || same_file(&to, data) || same_file(&to, &data.join("journal")) {
        return Err(Problem::usage("archive_in_data", "the archive directory is part of the data directory")
            .at(&to)
            .advice("choose a directory outside of it"));
    }
    let configured = config.journal.archive.iter().any(|archive| archive.canonicalize().is_ok_and(|path| path == to));
    if configured {
        return Ok(to);
    }
    Err(Problem::usage(
        "archive_not_configured",
        "the daemon does not read this directory: it is not in journal.archive",
    )
    .at(&to)
    .advice(format!(
        "add it in {} under `journal:` as `archive: [{}]`, and restart the daemon",
        config_file.display(),
        to.display()
    )))
}

/// The directory itself, if it can be read.
pub(crate) fn usable_archive(given: &Path) -> Result<PathBuf, Problem> {
    let unusable_archive = |error: &io::Error| {
        Problem::refused("archive_unusable", format!("cannot use the archive directory: {error}"))
            .at(given)
            .advice("create it, or mount its disk")
    };
    let archive = given.canonicalize().map_err(|error| unusable_archive(&error))?;
    fs::read_dir(&archive).map_err(|error| unusable_archive(&error))?;
    Ok(archive)
}

fn same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    id(one).is_some() && id(one) == id(other)
}

/// Files belong to whoever makes them, and only their owner can read them.
pub(crate) fn run_by_owner(data: &Path, command: &str) -> Result<(), Problem> {
    let owner = fs::metadata(data).map_err(|error| unusable("data_unusable", data, &error))?.uid();
    if rustix::process::geteuid().as_raw() == owner {
        return Ok(());
    }
    Err(Problem::refused(
        "archive_other_user",
        "the data directory belongs to another user, who could not read the archive",
    )
    .at(data)
    .advice(format!("run the command as that user: sudo -u '#{owner}' leasehold journal {command} …")))
}

/// What the daemon wrote for this command. A running daemon must have been started with the directory.
fn known_to_daemon(
    directory: &DataDirectory,
    disk: &dyn Disk,
    to: &Path,
    args: &ArchiveArgs,
) -> Result<ArchiveState, Problem> {
    let path = directory.archive_state();
    let state = ArchiveState::read(&path)
        .map_err(|error| Problem::refused("archive_state_unreadable", format!("cannot be read: {error}")).at(&path))?;
    let state = state.unwrap_or_default();
    if !state.archives.iter().any(|archive| archive == to) && in_use(disk) {
        return Err(Problem::refused(
            "archive_not_in_daemon",
            "the running daemon was started before the directory was added to journal.archive, or with another \
             configuration",
        )
        .at(to)
        .advice(format!("restart the daemon with {}, and try again", args.config.display())));
    }
    Ok(state)
}

fn report(args: &ArchiveArgs, moved: &Moved, plan: &Plan, to: &Path) -> Result<(), Problem> {
    let names: Vec<String> = moved.segments.iter().map(|number| format!("{number:08}")).collect();
    if args.json {
        return output::print_json(&json!({
            "to": to.display().to_string(),
            "dry_run": args.dry_run,
            "moved": names,
            "bytes": moved.bytes,
            "kept": plan.kept,
            "signed": plan.signed,
            "snapshot": plan.snapshot,
            "books": plan.books,
        }));
    }
    let text = match names.as_slice() {
        [] => format!("nothing to move: {}\n", why_nothing(plan)),
        [first, .., last] => summary(args, moved, plan, to, &format!("{first} to {last}")),
        [only] => summary(args, moved, plan, to, only),
    };
    output::print(&text)
}

fn summary(args: &ArchiveArgs, moved: &Moved, plan: &Plan, to: &Path, names: &str) -> String {
    let (what, stay) = if args.dry_run { ("would move", "would stay") } else { ("moved", "stay") };
    format!(
        "{what} {} ({names}, {}) to {}; {} {stay}\n",
        counted(moved.segments.len() as u64, "segment"),
        bytes(moved.bytes),
        to.display(),
        counted(plan.kept as u64, "segment")
    )
}

fn why_nothing(plan: &Plan) -> String {
    match plan.snapshot {
        None => format!(
            "there is no snapshot yet that replaces old segments; the daemon takes one every `journal.snapshot_every` \
             records, and has signed {}",
            thousands(plan.signed)
        ),
        Some(snapshot) => format!(
            "the newest snapshot covers {} records, the books {}, and the checkpoint {}; a segment can be moved once all \
             three have passed its end",
            thousands(snapshot),
            thousands(plan.books),
            thousands(plan.signed)
        ),
    }
}

/// The progress line; draws nothing without a terminal.
pub(crate) struct Line {
    doing: &'static str,
    total: u64,
    began: Instant,
    drawn: Option<Instant>,
    drawable: bool,
}

impl Line {
    pub(crate) fn new(doing: &'static str, total: u64) -> Self {
        Self { doing, total, began: Instant::now(), drawn: None, drawable: term::drawable().is_some() }
    }

    pub(crate) fn draw(&mut self, done: u64) {
        let now = Instant::now();
        if !self.drawable || self.drawn.is_some_and(|drawn| now - drawn < DRAW_EVERY) {
            return;
        }
        self.drawn = Some(now);
        let milliseconds = u64::try_from((now - self.began).as_millis()).unwrap_or(u64::MAX).max(1);
        let per_second = done.saturating_mul(1000) / milliseconds;
        let bar = term::fine_bar(done, self.total, BAR_CELLS);
        let percent = done.saturating_mul(100) / self.total.max(1);
        term::say(&format!("\r{} {bar:<BAR_CELLS$} {percent:3} %  {}/s\x1b[K", self.doing, bytes(per_second)));
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            term::say("\r\x1b[K");
        }
    }
}
