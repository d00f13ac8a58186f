//! `leasehold agent` and `leasehold-agent`: the agent of one node. It ends the processes of a lease, wipes what they
//! left, and confirms the teardown only then.
//!
//! In: the daemon's answers to heartbeats, a configuration, state that an earlier run left on disk. Out: heartbeats,
//! hooks, confirmations, log lines on stderr.
//! [`plan`] decides and does no I/O; [`rounds`] carries out its steps; [`teardown`] is the teardown of one lease.
//! The agent never confirms what was not done, and never sends anything under a generation that was replaced.

mod args;
mod beat;
mod cgroup;
mod condition;
mod config;
mod confirm;
mod failure;
mod group;
mod hook;
mod job;
mod leftover;
mod machine;
mod parent;
mod plan;
mod procfs;
mod register;
mod rounds;
mod state;
mod teardown;
mod watch;
mod wipe;
mod work;

pub use args::AgentArgs;

use condition::Gauge;
use config::{Builtin, Config};
use hook::Runner;
use leasehold_client::api::AgentRegistered;
use leasehold_client::{Client, Named, Settings};
use leasehold_service::log::{self, Format, Level};
use leasehold_service::systemd;
use leasehold_terminal::{DaemonArgs, Problem};
use plan::{Limits, Plan};
use rounds::Rounds;
use state::State;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use teardown::Tools;
use tokio::signal::unix::{SignalKind, signal};
use wipe::Wipes;

/// Runs until a signal asks it to stop.
pub fn run(daemon: &DaemonArgs, args: &AgentArgs) -> Result<(), Problem> {
    if args.end_with_parent.is_some_and(|parent| !parent::end_with(parent)) {
        return Ok(());
    }
    let (config, node) = configuration(args)?;
    let format = if daemon.json { Format::Json } else { Format::Text };
    log::start(Level::default(), format).map_err(|error| Problem::usage("log_wrong", error.to_string()))?;
    let client = client(daemon, &config)?;
    prepare(&config)?;
    let state = State::open(&config.state)?;
    let runner = Runner { node: node.clone(), instance: state.instance().to_owned() };
    let tools = Tools { state, hooks: config.hooks.clone(), runner };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Problem::refused("no_threads", format!("cannot start threads: {error}")))?;
    let done = runtime.block_on(serve(client, node, config, tools));
    // A DNS lookup that still runs must not delay the exit.
    runtime.shutdown_background();
    done
}

/// The configuration file, overridden by the command line.
fn configuration(args: &AgentArgs) -> Result<(Config, String), Problem> {
    let mut config = match &args.config {
        None => Config::default(),
        Some(file) => Config::load(file).map_err(|error| Problem::told(error.code(), &error))?,
    };
    if let Some(state) = &args.state {
        config.state.clone_from(state);
    }
    config.check().map_err(|wrong| Problem::usage("config_wrong", wrong))?;
    let node = args.node.clone().or_else(|| config.node.clone()).ok_or_else(|| {
        Problem::usage("node_needed", "the name of the node is missing")
            .advice("give --node NAME, or set `node` in the file")
    })?;
    Ok((config, node))
}

/// The command line overrides the file, and the file overrides the environment.
fn client(daemon: &DaemonArgs, config: &Config) -> Result<Client, Problem> {
    let named = Named {
        url: daemon.url.clone().or_else(|| config.url.clone()),
        token_file: daemon.token_file.clone().or_else(|| config.token_file.clone()),
        ca_file: daemon.ca_file.clone().or_else(|| config.ca_file.clone()),
    };
    let settings = Settings::load(&named).map_err(|error| Problem::told(error.code, &error))?;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    Client::new(&settings.config).map_err(|error| Problem::told(error.code, &error))
}

/// Creates the directories in which jobs are found. If one is missing later, something is wrong with the node.
fn prepare(config: &Config) -> Result<(), Problem> {
    for hooks in config.hooks.values() {
        let directory = match hooks.builtin() {
            Builtin::None => continue,
            Builtin::Cgroup => &hooks.cgroup_root,
            Builtin::ProcessGroup => &hooks.pid_dir,
        };
        fs::create_dir_all(directory).map_err(|error| {
            Problem::refused("folder_unusable", error.to_string())
                .at(directory)
                .advice("create it, or choose another one under `hooks`")
        })?;
    }
    Ok(())
}

async fn serve(client: Client, node: String, config: Config, tools: Tools) -> Result<(), Problem> {
    let listen = |kind| {
        signal(kind)
            .map_err(|error| Problem::refused("no_signals", format!("cannot register signal handlers: {error}")))
    };
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let mut stop_requested = async || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let unreadable = |error: std::io::Error| Problem::refused("state_unusable", error.to_string()).at(&config.state);
    let found = tools.state.found().map_err(unreadable)?;
    let ended = leftover::end(tools.state.instance(), &found.begun);
    let ended = ended
        .map_err(|error| Problem::refused("hook_left", format!("cannot end a hook of an earlier run: {error}")))?;
    if ended > 0 {
        tracing::warn!(ended, "killed hooks of an earlier run that were still running");
    }
    let registered = tokio::select! {
        registered = register::register(&client, &node, tools.state.instance(), &config) => registered?,
        () = stop_requested() => return Ok(()),
    };
    log_registration(&registered, &config, &client);
    systemd::ready();
    let node_timeout = Duration::from(registered.node_timeout.0);
    let beat_every = config.heartbeat.map_or(node_timeout / 3, Duration::from).max(Duration::from_millis(10));
    let limits = Limits {
        parallel: usize::try_from(config.parallel).expect("at most 256"),
        answer_age_max: node_timeout.max(2 * beat_every),
    };
    let (plan, gauge) = (Plan::new(limits, found), Gauge::new(config.throttled_file.clone()));
    let times = (beat_every, config.stop_timeout.into());
    let wipes = Wipes::new(config.wipe_node.clone().map(|hook| (hook.clone(), hook.node_limit())));
    let rounds = Rounds::new(client, &registered, Arc::new(tools), plan, gauge, wipes, times);
    rounds.run(registered.sequence, stop_requested).await?;
    tracing::info!("stopped");
    Ok(())
}

/// Logs the registration, and warns about settings that do not fit those of the daemon.
fn log_registration(registered: &AgentRegistered, config: &Config, client: &Client) {
    let (node, generation) = (&registered.node, registered.generation);
    tracing::info!(node, generation, url = client.url(), "registered as the agent of the node");
    let deadline = Duration::from(registered.teardown_deadline.0);
    for (class, hooks) in config.hooks.iter().filter(|(_, hooks)| hooks.longest() > deadline) {
        tracing::warn!(
            class,
            "the hooks may take {:?}, but the daemon fences after {deadline:?}: raise its teardown_deadline, or \
             lower their timeouts",
            hooks.longest()
        );
    }
    if let Some(heartbeat) = config.heartbeat.filter(|heartbeat| heartbeat.0 >= registered.node_timeout.0.0) {
        tracing::warn!(
            "`heartbeat: {heartbeat}` is too long: the daemon declares the node lost after {}",
            registered.node_timeout
        );
    }
}
