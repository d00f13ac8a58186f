//! The loop of an adapter: look at the runtime, send, keep the state; again after a while.

use crate::anchors::Anchors;
use crate::args::AdapterArgs;
use crate::config::Leasehold;
use crate::deliver::{Delivery, Halt, Tally};
use crate::draft::Draft;
use crate::state::{Kept, Registered, StateDirectory};
use leasehold_client::{Client, Error};
use leasehold_model::{Instant, RuntimeBackend};
use leasehold_service::log::{self, Format, Level};
use leasehold_service::systemd;
use leasehold_terminal::{DaemonArgs, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};

/// The first pause after a pass that failed; it doubles up to the usual pause.
const PAUSE: Duration = Duration::from_secs(1);

/// What the daemon answers about an app instance that was deleted.
const DELETED: &str = "app_instance_deleted";

/// A runtime whose usage is reported.
#[allow(async_fn_in_trait, reason = "the adapters run it on one thread")]
pub trait Runtime {
    /// What has to survive a restart besides what was settled.
    type Memory: Serialize + DeserializeOwned + Default + PartialEq + Clone;
    const BACKEND: RuntimeBackend;

    /// Reads what there is to report.
    async fn look(
        &mut self,
        memory: &Self::Memory,
        times: Times,
        anchors: &Anchors,
    ) -> Result<Look<Self::Memory>, Problem>;
}

/// The instants that a look depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub now: Instant,
    /// What ended before is not reported.
    pub begin: Instant,
    /// Read again from here on, whatever is remembered.
    pub since: Option<Instant>,
}

/// What there is to report.
#[derive(Debug)]
pub struct Look<M> {
    pub drafts: Vec<Draft>,
    /// To remember if all drafts were settled.
    pub memory: M,
    /// To remember if some were postponed.
    pub memory_if_postponed: M,
    /// What ended before will not be drafted again, so that it need not be remembered as settled.
    pub settled_before: Instant,
}

/// What an adapter is started with.
pub struct Setup<'a> {
    pub program: &'static str,
    pub daemon: &'a DaemonArgs,
    pub args: &'a AdapterArgs,
    pub leasehold: &'a Leasehold,
}

/// Runs one pass, or passes until a signal asks it to stop.
pub fn run(setup: &Setup<'_>, runtime: impl Runtime) -> Result<(), Problem> {
    let format = if setup.daemon.json { Format::Json } else { Format::Text };
    log::start(Level::default(), format).map_err(|error| Problem::usage("log_wrong", error.to_string()))?;
    let client = setup.leasehold.client(setup.daemon)?;
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let threads = threads.map_err(|error| Problem::refused("no_threads", format!("cannot start: {error}")))?;
    threads.block_on(async {
        if setup.args.dry_run {
            return dry_run(setup, &client, runtime).await;
        }
        let default = PathBuf::from("/var/lib").join(setup.program);
        let directory = StateDirectory::open(setup.leasehold.state.as_ref().unwrap_or(&default))?;
        let kept = directory.load()?;
        let mut rounds = Rounds { setup, client, runtime, directory, kept, unknown_users: BTreeSet::new() };
        if setup.args.once { rounds.once().await } else { rounds.repeat().await }
    })
}

fn times(setup: &Setup<'_>) -> Result<Times, Problem> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|now| u64::try_from(now.as_nanos()).ok());
    let now = now.ok_or_else(|| Problem::refused("clock_wrong", "the clock of this machine is not set"))?;
    let begin = setup.leasehold.begin.map_or(Instant(now), |begin| begin.0);
    Ok(Times { now: Instant(now), begin, since: setup.args.since.map(|since| since.0) })
}

/// Reads the anchors. `registered` is what was read before: if the instance was deleted since, what is still to be reported
/// for it is sent all the same, so that each record is refused and kept, and the pass goes on.
async fn anchors(
    setup: &Setup<'_>,
    client: &Client,
    backend: RuntimeBackend,
    registered: Option<&Registered>,
) -> Result<Anchors, Problem> {
    let section = setup.leasehold;
    let read = Anchors::read(client, &section.app_instance, section.tenant.as_deref(), &section.users).await;
    let anchors = read.or_else(|error| {
        let kept = registered.filter(|kept| error.code() == DELETED && kept.name == section.app_instance);
        let kept = kept.and_then(|kept| Anchors::kept(&kept.instance, &section.users)).ok_or_else(|| told(&error))?;
        tracing::warn!(app_instance = section.app_instance, "was deleted; usage that was not reported is refused");
        Ok(kept)
    })?;
    anchors.check_backend(backend)?;
    Ok(anchors)
}

/// Prints what would be sent. The state is not even locked, so that it can be tried beside a running adapter.
async fn dry_run<R: Runtime>(setup: &Setup<'_>, client: &Client, mut runtime: R) -> Result<(), Problem> {
    let anchors = anchors(setup, client, R::BACKEND, None).await?;
    let look = runtime.look(&R::Memory::default(), times(setup)?, &anchors).await?;
    for draft in &look.drafts {
        println!("{}", serde_json::to_string(&draft.version(1)).expect("a wire type has string keys only"));
    }
    Ok(())
}

struct Rounds<'a, R: Runtime> {
    setup: &'a Setup<'a>,
    client: Client,
    runtime: R,
    directory: StateDirectory,
    /// As it is on the disk.
    kept: Kept<R::Memory>,
    unknown_users: BTreeSet<String>,
}

impl<R: Runtime> Rounds<'_, R> {
    async fn once(&mut self) -> Result<(), Problem> {
        let tally = self.pass().await?;
        self.tell(tally);
        if tally.postponed > 0 {
            let what = format!("{} records could not be recorded yet", tally.postponed);
            return Err(Problem::refused("usage_postponed", what).advice("run it again"));
        }
        if tally.refused > 0 {
            let what = format!("{} records were refused", tally.refused);
            let file = self.directory.refused_file();
            return Err(Problem::refused("usage_refused", what).advice(format!("see {}", file.display())));
        }
        Ok(())
    }

    async fn repeat(&mut self) -> Result<(), Problem> {
        let listen = |kind| {
            signal(kind).map_err(|error| Problem::refused("no_signals", format!("cannot register handlers: {error}")))
        };
        let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        let every = self.setup.args.every.map_or(self.setup.leasehold.every, |every| every.0).into();
        systemd::ready();
        let mut pause = PAUSE.min(every);
        loop {
            let stopped = tokio::select! {
                passed = self.pass() => passed,
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            };
            let wait = match stopped {
                Ok(tally) if tally.postponed == 0 => {
                    self.tell(tally);
                    pause = PAUSE.min(every);
                    every
                }
                unfinished => {
                    match unfinished {
                        Ok(tally) => self.tell(tally),
                        Err(problem) => tracing::warn!("the pass failed and will be repeated: {problem}"),
                    }
                    let wait = jittered(pause);
                    pause = (pause * 2).min(every);
                    wait
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
        }
        systemd::stopping();
        tracing::info!("stopped");
        Ok(())
    }

    /// One pass. What was settled is kept even if the pass fails on the way.
    async fn pass(&mut self) -> Result<Tally, Problem> {
        let anchors = anchors(self.setup, &self.client, R::BACKEND, self.kept.registered.as_ref()).await?;
        let look = self.runtime.look(&self.kept.memory, times(self.setup)?, &anchors).await?;
        let mut kept = self.kept.clone();
        let name = self.setup.leasehold.app_instance.clone();
        kept.registered = Some(Registered { name, instance: anchors.registered() });
        let mut delivery = Delivery {
            client: &self.client,
            directory: &self.directory,
            kept: &mut kept,
            tally: Tally::default(),
            unknown_users: &mut self.unknown_users,
            retry_refused: self.setup.args.since.is_some(),
        };
        let halted = delivery.deliver(look.drafts).await.err();
        let tally = delivery.tally;
        let complete = halted.is_none() && tally.postponed == 0;
        kept.memory = if complete { look.memory } else { look.memory_if_postponed };
        if complete {
            let before = look.settled_before.0 / 1_000_000_000;
            kept.settled.retain(|_, settled| settled.ended >= before);
        }
        if kept != self.kept {
            self.directory.save(&kept)?;
            self.kept = kept;
        }
        match halted {
            None => Ok(tally),
            Some(Halt::Disk(problem)) => Err(problem),
            Some(Halt::Daemon(error)) => Err(told(&error)),
        }
    }

    fn tell(&self, tally: Tally) {
        let Tally { recorded, repeated, corrected, refused, postponed } = tally;
        if tally != Tally::default() {
            tracing::info!(recorded, repeated, corrected, refused, postponed, "reported usage");
        }
        if refused > 0 {
            let file = self.directory.refused_file();
            tracing::warn!(refused, file = %file.display(), "records were refused; they are kept in a file");
        }
    }
}

fn told(error: &Error) -> Problem {
    let text = match error {
        // Its code is added below.
        Error::Problem(problem) => problem.detail.clone(),
        Error::Transport { .. } | Error::Protocol { .. } => error.to_string(),
    };
    let code = error.code().to_owned();
    match text.split_once("; ") {
        Some((what, advice)) => Problem::coded(code, what).advice(advice),
        None => Problem::coded(code, text),
    }
}

/// Between half the pause and all of it, so that adapters that failed together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0u8; 1];
    // Without randomness the pause is the longest one, which is as good.
    let part = getrandom::fill(&mut byte).map_or(255, |()| u32::from(byte[0]));
    pause / 2 + pause / 2 * part / 255
}
