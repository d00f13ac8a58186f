//! `leasehold audit collect`: copies a daemon's journal and verifies each record (docs/how-to/collect.md).
//!
//! [`collector`] fetches and compares, [`leasehold_journal::Mirror`] stores; this file connects them and reports.

mod collector;
mod fork;
mod refusal;
mod report;
mod statements;

use super::read_trust;
use crate::cli::collect::CollectArgs;
use crate::cli::remote::DaemonArgs;
use crate::numbers::thousands;
use crate::output::{print, print_json};
use crate::problem::{EXIT_OK, Problem};
use crate::remote::plain;
use crate::term;
use crate::time_format::now;
use collector::{Collector, Stop};
use leasehold_client::{Client, Named, Settings};
use leasehold_journal::{Mirror, Options, RealDisk};
use leasehold_model::Hash;
use leasehold_verify::evidence::Evidence;
use leasehold_verify::{Trust, Why};
use refusal::{FORKED, Refusal};
use report::{Collected, Line, Quiet};
use sha2::{Digest, Sha256};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// How often the newest checkpoint is fetched.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Short, so that a daemon that does not run is reported soon; with `--follow` it is tried again anyway.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(3);
/// How often `--follow` prints progress for people.
const REPORT_EVERY: Duration = Duration::from_secs(60);

pub(crate) fn run(daemon: &DaemonArgs, args: &CollectArgs) -> Result<u8, Problem> {
    let trust = read_trust(&args.trust)?;
    let client = client(daemon, args)?;
    let mark: Hash = Sha256::digest(trust.to_text()).into();
    prepare(&args.data)?;
    let disk = Arc::new(RealDisk::new(&args.data));
    let mirror = Mirror::open(disk, Options::default(), trust.origin(), trust.keys().to_vec(), mark, now());
    let mut mirror = mirror.map_err(|error| Problem::told(error.code(), &error).at(&args.data))?;
    verify_against_new_trust(&mut mirror, &trust, mark, args)?;
    for path in fork::stored(&args.data) {
        term::say(&format!("leasehold: this log was found to be forked before; {}\n", confirmed_by(&path, args)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Problem::refused("no_runtime", format!("the async runtime cannot be started: {error}")))?;
    let collector = Collector::new(client, mirror, trust.clone(), mark);
    let done = runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
        let mut run = Run::new(collector, &trust, args, daemon.json);
        // It can be cancelled at any await: what is proved is durable.
        tokio::select! {
            done = run.go() => done,
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
        }
    });
    // Do not wait for the thread that resolves host names.
    runtime.shutdown_background();
    done.map(|()| EXIT_OK)
}

/// Creates the directory, readable only by its owner: the copy is as confidential as the journal.
fn prepare(data: &Path) -> Result<(), Problem> {
    if data.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(|error| {
        Problem::refused("folder_unusable", format!("the directory cannot be created: {error}"))
            .at(data)
            .advice("choose a directory that you may write to")
    })
}

fn signals(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Problem> {
    signal(kind)
        .map_err(|error| Problem::refused("no_signals", format!("signal handlers cannot be installed: {error}")))
}

fn client(daemon: &DaemonArgs, args: &CollectArgs) -> Result<Client, Problem> {
    if daemon.url.is_some() {
        return Err(Problem::usage("usage", "the daemon is given twice").advice("leave --url out"));
    }
    let (token_file, ca_file) = (daemon.token_file.clone(), daemon.ca_file.clone());
    let named = Named { url: Some(args.from.clone()), token_file, ca_file };
    let settings = Settings::load(&named).map_err(|error| Problem::told(error.code, &error))?;
    for warning in &settings.warnings {
        term::say(&format!("leasehold: {warning}\n"));
    }
    let mut config = settings.config;
    config.timeouts.listener = LISTENER_TIMEOUT;
    Client::new(&config).map_err(|error| Problem::told(error.code, &error))
}

/// If the trust file has changed since the last run, verifies the files of the copy against it first: the checkpoint in
/// the trust file may lie before everything that will be fetched.
fn verify_against_new_trust(mirror: &mut Mirror, trust: &Trust, mark: Hash, args: &CollectArgs) -> Result<(), Problem> {
    if mirror.proved() == 0 || [mark, statements::due(mark)].contains(&mirror.trust()) {
        return Ok(());
    }
    term::say(
        "leasehold: the trust file has changed since the last run; the whole copy is verified against it first\n",
    );
    let (options, reached) = verification(mirror, trust, args);
    leasehold_verify::verify(&options).map_err(|failure| {
        let what = format!("the copy contradicts the trust file: {failure}");
        let advice = "nothing was fetched; find out which of the two is correct";
        let found = match failure.why {
            Why::PinnedMismatch { .. } => fork::find_in_copy(mirror.note(), trust, args),
            _ => None,
        };
        let Some((evidence, seen)) = found else {
            return Problem::not_verified(failure.code(), what).advice(advice);
        };
        let stored = store(args, &evidence, seen).map(|path| confirmed_by(&path, args));
        let problem = Problem::forked(FORKED, format!("the log signed two conflicting histories: {what}"));
        problem.advice(format!("{advice}; {}", stored.unwrap_or_default()))
    })?;
    if reached {
        mirror.set_trust(mark).map_err(|failure| Problem::refused("copy_failed", failure.to_string()))?;
    }
    Ok(())
}

/// How the whole copy is verified, and whether it has reached the checkpoint in the trust file.
fn verification(mirror: &Mirror, trust: &Trust, args: &CollectArgs) -> (leasehold_verify::Options<'static>, bool) {
    let pinned = trust.pinned().map_or(0, |pinned| pinned.checkpoint.size());
    let reached = pinned <= mirror.proved();
    let options = leasehold_verify::Options {
        data: args.data.clone(),
        archives: args.archives.clone(),
        // A checkpoint beyond the copy is compared when the copy reaches it.
        trust: if reached { trust.clone() } else { trust.without_pinned() },
        threads: 0,
        progress: None,
    };
    (options, reached)
}

/// One run of the command.
struct Run<'a> {
    collector: Collector,
    trust: &'a Trust,
    args: &'a CollectArgs,
    json: bool,
    line: Line,
    quiet: Quiet,
    /// The proved records and stored bytes at the last report.
    reported: (u64, u64),
    reported_at: Option<Instant>,
    /// Whether the daemon is unreachable, and that was reported.
    unreachable: bool,
    /// The witnesses that were reported as missing.
    missing_witnesses: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(collector: Collector, trust: &'a Trust, args: &'a CollectArgs, json: bool) -> Self {
        let reported = (collector.mirror.proved(), 0);
        let (line, quiet) = (Line::new(), Quiet::default());
        let missing_witnesses = Vec::new();
        Self {
            collector,
            trust,
            args,
            json,
            line,
            quiet,
            reported,
            reported_at: None,
            unreachable: false,
            missing_witnesses,
        }
    }

    async fn go(&mut self) -> Result<(), Problem> {
        loop {
            let line = &mut self.line;
            let done = self.collector.round(&mut |progress| line.draw(progress)).await;
            self.line.clear();
            match done {
                Ok(()) => {
                    statements::recompute(self).await?;
                    self.report()?;
                }
                Err(Stop::Here(problem)) => return Err(problem),
                Err(Stop::Refused(refusal)) => return Err(self.refuse(refusal).await),
                Err(Stop::Daemon(error)) if self.args.follow && !error.is_final() => {
                    if !self.unreachable {
                        self.unreachable = true;
                        term::say(&format!("leasehold: {}; trying again\n", plain(&error)));
                    }
                }
                Err(Stop::Daemon(error)) => return Err(plain(&error)),
            }
            if !self.args.follow {
                return Ok(());
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Reports what was collected; with `--follow`, people get a report at most every minute.
    fn report(&mut self) -> Result<(), Problem> {
        if std::mem::take(&mut self.unreachable) {
            term::say("leasehold: the daemon is reachable again\n");
        }
        self.quiet.check(&self.collector);
        self.report_missing_witnesses();
        let (proved, bytes) = (self.collector.mirror.proved(), self.collector.bytes);
        let first = self.reported_at.is_none();
        let due = self.json || self.reported_at.is_none_or(|at| at.elapsed() >= REPORT_EVERY);
        if !first && (proved == self.reported.0 || !due) {
            return Ok(());
        }
        let (records, bytes_new) = (proved - self.reported.0, bytes - self.reported.1);
        let evidence = fork::stored(&self.args.data);
        let cosigned = &self.collector.cosigned;
        let collected = Collected { url: &self.args.from, records, bytes: bytes_new, evidence, cosigned };
        self.reported = (proved, bytes);
        self.reported_at = Some(Instant::now());
        let (mirror, data) = (&self.collector.mirror, &self.args.data);
        let object = || collected.json(mirror, self.trust.origin(), data);
        match (self.json, self.args.follow) {
            (true, true) => print(&format!("{}\n", object())),
            (true, false) => print_json(&object()),
            (false, _) => print(&collected.text(mirror, data, &self.args.trust)),
        }
    }

    /// Warns when the witnesses that have not cosigned change.
    fn report_missing_witnesses(&mut self) {
        let missing = &self.collector.cosigned.missing;
        if *missing != self.missing_witnesses {
            for name in missing {
                term::say(&format!("leasehold: witness {name} has not cosigned the newest checkpoint\n"));
            }
            self.missing_witnesses.clone_from(missing);
        }
    }

    /// Discards what was not proved, and reports the contradiction. If both sides of it are signed, the evidence is stored.
    async fn refuse(&mut self, refusal: Refusal) -> Problem {
        let found = fork::find(&self.collector, self.trust, self.args).await;
        let refusal = if found.is_some() { refusal.forked() } else { refusal };
        let stored = found.and_then(|(evidence, seen)| store(self.args, &evidence, seen));
        let proved = self.collector.mirror.proved();
        let problem = match refusal.code {
            FORKED => Problem::forked(refusal.code, refusal.what.clone()),
            code => Problem::not_verified(code, refusal.what.clone()),
        };
        let kept = match proved {
            0 => "nothing was stored".to_owned(),
            proved => format!(
                "the {} records that were proved before are kept in {}",
                thousands(proved),
                self.args.data.display()
            ),
        };
        let advice = match (&refusal.advice, &stored) {
            (Some(advice), _) => advice.clone(),
            (None, Some(path)) => format!("{kept}; {}", confirmed_by(path, self.args)),
            (None, None) => kept,
        };
        if let Err(failure) = self.collector.mirror.forget_unproved() {
            return problem.advice(format!("the unproved records could not be discarded: {failure}"));
        }
        if self.json {
            // The message follows on stderr in any case.
            let _ = print(&format!("{}\n", report::refusal_json(&refusal, proved, stored.as_ref())));
        }
        problem.advice(advice)
    }
}

/// How others can check the evidence.
fn confirmed_by(path: &Path, args: &CollectArgs) -> String {
    let word = |path: &Path| term::shell_word(&path.display().to_string());
    format!(
        "the evidence can be confirmed with  leasehold-verify evidence {} --trust {}",
        word(path),
        word(&args.trust)
    )
}

/// Stores evidence, or prints it if that is not possible.
fn store(args: &CollectArgs, evidence: &Evidence, seen: u64) -> Option<PathBuf> {
    match fork::store(&args.data, evidence, seen) {
        Ok(path) => Some(path),
        Err(error) => {
            let text = evidence.to_text();
            term::say(&format!("leasehold: the evidence of a fork could not be written: {error}; it is:\n{text}"));
            None
        }
    }
}
