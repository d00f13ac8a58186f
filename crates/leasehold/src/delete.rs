//! `leasehold journal delete`: deletes archived segments for good.

use crate::archive::{Line, archive_directory, run_by_owner, unusable, usable_archive};
use crate::cli::journal::DeleteArgs;
use crate::cli::times::TimeZoneArgs;
use crate::numbers::{bytes, counted, thousands};
use crate::output;
use crate::problem::Problem;
use crate::time_format;
use leasehold_api::Toward;
use leasehold_journal::disk::Disk;
use leasehold_journal::{Deleted, Deleter, DeletionError, DeletionPlan, Kept, Places, RealDisk, Wanted};
use leasehold_model::{Instant, Retention, hex};
use leasehold_server::config::Config;
use leasehold_server::{ArchiveState, DataDirectory};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn run(args: &DeleteArgs, times: &TimeZoneArgs) -> Result<(), Problem> {
    let now = time_format::now();
    let zone = times.time_zone.clone().unwrap_or_default();
    let before = args.before.instant(now, &zone, Toward::Past);
    let before = before.map_err(|why| Problem::told("usage", &format_args!("--before: {why}")).is_usage())?;
    let config = Config::load(&args.config).map_err(|error| Problem::told(error.code(), &error))?;
    let data = args.data.as_ref().unwrap_or(&config.data);
    let data = data.canonicalize().map_err(|error| unusable("data_unusable", data, &error))?;
    let archive = archive_directory(&args.archive, &args.config, &config, &data)?;
    is_only_an_archive(&archive)?;
    run_by_owner(&data, "delete")?;
    let directory = DataDirectory { data: data.clone() };
    let path = directory.archive_state();
    let state = ArchiveState::read(&path)
        .map_err(|error| Problem::refused("archive_state_unreadable", format!("cannot be read: {error}")).at(&path))?;
    let state = state.unwrap_or_default();
    let secret = directory.own_secret().map_err(|error| Problem::told(error.code(), &error))?;
    let places = Places { data: disk(&data), archive: disk(&archive), others: others(&config, &archive)? };
    let retention = config.journal.sensitive_retention;
    let wanted = Wanted {
        before,
        wall_clock: now,
        sensitive: retention,
        tells: &|record| record.body.tells_of_sensitive_work(),
        secret: secret.as_ref(),
        books: state.books,
        deliveries: state.deliveries,
    };
    let problem = |error: DeletionError| Problem::told(error.code(), &error).at(&archive);
    let shown = Shown { args, archive: &archive, before, retention };
    if !args.yes {
        let plan = shown.plan(&places, &wanted).map_err(problem)?;
        return shown.report(&plan, plan.planned().as_ref());
    }
    // Locked before anything is read: what is verified is what is deleted.
    let deleter = Deleter::new(places.clone()).map_err(problem)?;
    let plan = shown.plan(&places, &wanted).map_err(problem)?;
    let deleted = deleter.run(&plan).map_err(problem)?;
    shown.report(&plan, deleted.as_ref())?;
    deleter.reported().map_err(problem)
}

fn disk(path: &Path) -> Arc<dyn Disk> {
    Arc::new(RealDisk::new(path))
}

/// A data directory, also a copy of one, is not an archive to delete from, even if it is read as one.
fn is_only_an_archive(archive: &Path) -> Result<(), Problem> {
    if !archive.join("anchor").exists() {
        return Ok(());
    }
    Err(Problem::usage("archive_in_data", "this is a data directory, or a copy of one, and not an archive")
        .at(archive)
        .advice("segments are deleted only from directories to which `leasehold journal archive` has moved them"))
}

/// The other directories of `journal.archive`, all of which must be there: the oldest segments may be in them.
fn others(config: &Config, archive: &Path) -> Result<Vec<Arc<dyn Disk>>, Problem> {
    let all = config.journal.archive.iter().map(|path| usable_archive(path)).collect::<Result<Vec<PathBuf>, _>>()?;
    Ok(all.iter().filter(|path| *path != archive).map(|path| disk(path)).collect())
}

/// What the output is about.
struct Shown<'a> {
    args: &'a DeleteArgs,
    archive: &'a Path,
    before: Instant,
    retention: Retention,
}

impl Shown<'_> {
    fn plan(&self, places: &Places, wanted: &Wanted<'_>) -> Result<DeletionPlan, DeletionError> {
        // What will be read is not known before; the archive has at most this much.
        let entries = fs::read_dir(self.archive).into_iter().flatten().flatten();
        let mut line = Line::new("verifying", entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum());
        let plan = DeletionPlan::make(places, wanted, &mut |done| {
            line.draw(done);
            true
        });
        line.clear();
        plan
    }

    fn report(&self, plan: &DeletionPlan, deleted: Option<&Deleted>) -> Result<(), Problem> {
        match (deleted, &plan.kept) {
            (None, Some(kept @ Kept::Sensitive { .. })) => {
                let problem = Problem::refused("sensitive_retention", format!("nothing was deleted: {kept}"));
                Err(problem.at(self.archive).advice("run it again after that"))
            }
            _ if self.args.json => output::print_json(&self.json(plan, deleted)),
            (Some(deleted), _) => output::print(&self.text(plan, deleted)),
            (None, Some(kept)) => output::print(&format!("nothing to delete: {kept}\n")),
            (None, None) => output::print("nothing to delete: there are no archived segments\n"),
        }
    }

    /// With `--yes`, this is what is filed as the certificate of deletion.
    fn text(&self, plan: &DeletionPlan, deleted: &Deleted) -> String {
        let verb = if self.args.yes { "deleted" } else { "would delete" };
        let (first, last) = deleted.segments.clone().into_inner();
        let count = counted(u64::from(last - first) + 1, "segment");
        let names = if first == last { format!("{first:08}") } else { format!("{first:08} to {last:08}") };
        let mut text =
            format!("{verb} {count} ({names}, {}) from {}\n\n", bytes(deleted.bytes), self.archive.display());
        let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<11}{value}\n"));
        line("origin", deleted.origin.clone());
        line("records", format!("{} to {}", thousands(deleted.first_sequence), thousands(deleted.last_sequence)));
        line("stamped", format!("{} to {}", deleted.first_stamp, deleted.last_stamp));
        line("last hash", hex::encode(&deleted.last_hash));
        line("asked for", format!("older than {}", self.before));
        line("clock", plan.clock.to_string());
        line("sensitive", format!("kept for {}", self.retention));
        if deleted.continued {
            line("note", "a part of it was deleted by an earlier run, which was interrupted".to_owned());
        }
        if let Some(kept) = &plan.kept {
            line("kept", kept.to_string());
        }
        if !self.args.yes {
            text.push_str("\nNothing was changed. Add --yes to delete them.\n");
        }
        text
    }

    fn json(&self, plan: &DeletionPlan, deleted: Option<&Deleted>) -> Value {
        let segments: Vec<String> =
            deleted.into_iter().flat_map(|deleted| deleted.segments.clone()).map(|n| format!("{n:08}")).collect();
        let kept = plan.kept.as_ref().map(|kept| {
            let until = if let Kept::Sensitive { until, .. } = kept { Some(until.to_string()) } else { None };
            json!({
                "segment": format!("{:08}", kept.segment()),
                "reason": kept.word(),
                "until": until,
                "detail": kept.to_string(),
            })
        });
        json!({
            "archive": self.archive.display().to_string(),
            "dry_run": !self.args.yes,
            "before": self.before.to_string(),
            "clock": plan.clock.to_string(),
            "sensitive_retention": self.retention.to_string(),
            "deleted": segments,
            "bytes": deleted.map_or(0, |deleted| deleted.bytes),
            "origin": plan.origin(),
            "first_sequence": deleted.map(|deleted| deleted.first_sequence),
            "last_sequence": deleted.map(|deleted| deleted.last_sequence),
            "first_stamp": deleted.map(|deleted| deleted.first_stamp.to_string()),
            "last_stamp": deleted.map(|deleted| deleted.last_stamp.to_string()),
            "last_hash": deleted.map(|deleted| hex::encode(&deleted.last_hash)),
            "continued": deleted.is_some_and(|deleted| deleted.continued),
            "kept": kept,
        })
    }
}
