//! `leasehold audit collect`: a copy of a daemon's journal, verified record by record as it grows
//! (docs/how-to/collect.md).
//!
//! [`collector`] fetches and compares, [`leasehold_journal::Mirror`] keeps; here they are put together and told of.

mod collector;
mod refusal;
mod report;

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
use leasehold_tlog::{Checkpoint, VerifierKey};
use leasehold_verify::Trust;
use refusal::Refusal;
use report::{Came, Line, Quiet};
use sha2::{Digest, Sha256};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Between two looks at the newest checkpoint.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A daemon that is not there is told soon; who follows tries again anyway.
const LISTENER_PATIENCE: Duration = Duration::from_secs(3);
/// Between two lines about what came, where they are for people and go on for long.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// A checkpoint that contradicts what was proved is kept under this name: both are signed.
const EVIDENCE: &str = "refused.checkpoint";

pub(crate) fn run(daemon: &DaemonArgs, args: &CollectArgs) -> Result<u8, Problem> {
    let trust = read_trust(&args.trust)?;
    let client = client(daemon, args)?;
    let mark: Hash = Sha256::digest(trust.to_text()).into();
    prepare(&args.data)?;
    let disk = Arc::new(RealDisk::new(&args.data));
    let mirror = Mirror::open(disk, Options::default(), trust.origin(), trust.keys().to_vec(), mark, now());
    let mut mirror = mirror.map_err(|error| Problem::told(error.code(), &error).at(&args.data))?;
    hold_against(&mut mirror, &trust, mark, args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::refused("no_runtime", format!("nothing can be run: {error}")))?;
    let collector = Collector::new(client, mirror, trust.clone(), mark);
    let done = runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
        let mut errand = Errand::new(collector, &trust, args, daemon.json);
        // Between two steps it can be left at any time: what is proved is durable.
        tokio::select! {
            done = errand.go() => done,
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
        }
    });
    // Names are looked up on a thread of their own, which nobody waits for.
    runtime.shutdown_background();
    done.map(|()| EXIT_OK)
}

/// The copy holds what the journal holds: only its owner may look into a new folder.
fn prepare(data: &Path) -> Result<(), Problem> {
    if data.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(|error| {
        Problem::refused("folder_unusable", format!("the folder cannot be made: {error}"))
            .at(data)
            .advice("name one that you may write to")
    })
}

fn signals(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Problem> {
    signal(kind).map_err(|error| Problem::refused("no_signals", format!("signals cannot be listened to: {error}")))
}

fn client(daemon: &DaemonArgs, args: &CollectArgs) -> Result<Client, Problem> {
    if daemon.url.is_some() {
        return Err(Problem::usage("usage", "the daemon is named twice").advice("leave --url out"));
    }
    let (token_file, ca_file) = (daemon.token_file.clone(), daemon.ca_file.clone());
    let named = Named { url: Some(args.from.clone()), token_file, ca_file };
    let settings = Settings::load(&named).map_err(|error| Problem::told(error.code, &error))?;
    for warning in &settings.warnings {
        term::say(&format!("leasehold: {warning}\n"));
    }
    let mut config = settings.config;
    config.timeouts.listener = LISTENER_PATIENCE;
    Client::new(&config).map_err(|error| Problem::told(error.code, &error))
}

/// A copy that was made under another trust file is first held against this one, from its files: its checkpoint may lie
/// before all that will be fetched.
fn hold_against(mirror: &mut Mirror, trust: &Trust, mark: Hash, args: &CollectArgs) -> Result<(), Problem> {
    if mirror.proved() == 0 || mirror.trust() == mark {
        return Ok(());
    }
    term::say(
        "leasehold: the trust file is not the one of the last run; the whole copy is verified against it first\n",
    );
    let pinned = trust.pinned().map_or(0, |pinned| pinned.checkpoint.size());
    let reached = pinned <= mirror.proved();
    let options = leasehold_verify::Options {
        data: args.data.clone(),
        archives: args.archives.clone(),
        // A checkpoint that lies ahead is compared when it is reached.
        trust: if reached { trust.clone() } else { unpinned(trust) },
        threads: 0,
        progress: None,
    };
    leasehold_verify::verify(&options).map_err(|failure| {
        let what = format!("the copy does not fit the trust file: {failure}");
        Problem::not_verified(failure.code(), what).advice("nothing was fetched; find out which of the two is right")
    })?;
    if reached {
        mirror.set_trust(mark).map_err(|failure| Problem::refused("copy_failed", failure.to_string()))?;
    }
    Ok(())
}

/// The same origin and keys, and no checkpoint.
fn unpinned(trust: &Trust) -> Trust {
    let mut keys = trust.keys().iter().cloned();
    let mut unpinned = Trust::new(keys.next().expect("a trust file names a key"));
    for key in keys {
        unpinned.add_key(key).expect("a key of the same origin");
    }
    trust.witnesses().iter().for_each(|witness| unpinned.add_witness(witness.clone()));
    unpinned
}

/// One run of the command.
struct Errand<'a> {
    collector: Collector,
    trust: &'a Trust,
    args: &'a CollectArgs,
    json: bool,
    line: Line,
    quiet: Quiet,
    /// Records that were proved, and bytes that were taken, when it was told last.
    told: (u64, u64),
    told_at: Option<Instant>,
    /// The daemon was not reached, and that was said.
    unreached: bool,
}

impl<'a> Errand<'a> {
    fn new(collector: Collector, trust: &'a Trust, args: &'a CollectArgs, json: bool) -> Self {
        let told = (collector.mirror.proved(), 0);
        let (line, quiet) = (Line::new(), Quiet::default());
        Self { collector, trust, args, json, line, quiet, told, told_at: None, unreached: false }
    }

    async fn go(&mut self) -> Result<(), Problem> {
        loop {
            let line = &mut self.line;
            let done = self.collector.round(&mut |progress| line.draw(progress)).await;
            self.line.clear();
            match done {
                Ok(()) => self.tell()?,
                Err(Stop::Here(problem)) => return Err(problem),
                Err(Stop::Refused(refusal)) => return Err(self.refuse(&refusal)),
                Err(Stop::Daemon(error)) if self.args.follow && !error.is_final() => {
                    if !self.unreached {
                        self.unreached = true;
                        term::say(&format!("leasehold: {}; it is tried again\n", plain(&error)));
                    }
                }
                Err(Stop::Daemon(error)) => return Err(plain(&error)),
            }
            if !self.args.follow {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Tells what came; where it goes on for long, people are not told of every record.
    fn tell(&mut self) -> Result<(), Problem> {
        if std::mem::take(&mut self.unreached) {
            term::say("leasehold: the daemon answers again\n");
        }
        self.quiet.look(&self.collector);
        let (proved, bytes) = (self.collector.mirror.proved(), self.collector.bytes);
        let first = self.told_at.is_none();
        let due = self.json || self.told_at.is_none_or(|at| at.elapsed() >= TELL_EVERY);
        if !first && (proved == self.told.0 || !due) {
            return Ok(());
        }
        let came = Came { url: &self.args.from, records: proved - self.told.0, bytes: bytes - self.told.1 };
        self.told = (proved, bytes);
        self.told_at = Some(Instant::now());
        let (mirror, data) = (&self.collector.mirror, &self.args.data);
        let object = || came.json(mirror, self.trust.origin(), data);
        match (self.json, self.args.follow) {
            (true, true) => print(&format!("{}\n", object())),
            (true, false) => print_json(&object()),
            (false, _) => print(&came.receipt(mirror, data, &self.args.trust)),
        }
    }

    /// Drops what was not proved, and says what did not fit.
    fn refuse(&mut self, refusal: &Refusal) -> Problem {
        let evidence = self.keep_evidence(refusal);
        let proved = self.collector.mirror.proved();
        let problem = Problem::not_verified(refusal.code, refusal.what.clone());
        let kept = match proved {
            0 => "nothing was kept".to_owned(),
            proved => format!(
                "the {} records that were proved before stay in {}",
                thousands(proved),
                self.args.data.display()
            ),
        };
        let advice = match (&refusal.advice, &evidence) {
            (Some(advice), _) => advice.clone(),
            (None, Some(path)) => {
                format!("{kept}; the contradicting checkpoint, signed by the same key, is in {}", path.display())
            }
            (None, None) => kept,
        };
        if let Err(failure) = self.collector.mirror.forget_unproved() {
            return problem.advice(format!("what was not proved could not be dropped: {failure}"));
        }
        if self.json {
            // The sentence follows on stderr in any case.
            let _ = print(&format!("{}\n", report::refusal_json(refusal, proved, evidence.as_ref())));
        }
        problem.advice(advice)
    }

    /// Two checkpoints of one origin and size with two roots, both signed: whoever holds them can prove it.
    fn keep_evidence(&self, refusal: &Refusal) -> Option<PathBuf> {
        let note = refusal.contradiction.as_ref()?;
        let keys: Vec<VerifierKey> = self.collector.mirror.key().into_iter().collect();
        Checkpoint::open_note(note, &keys, self.trust.origin()).ok()?;
        let path = self.args.data.join(EVIDENCE);
        match std::fs::write(&path, note.to_string()) {
            Ok(()) => Some(path),
            Err(error) => {
                term::say(&format!(
                    "leasehold: {}: the contradicting checkpoint could not be kept: {error}\n{note}",
                    path.display()
                ));
                None
            }
        }
    }
}
