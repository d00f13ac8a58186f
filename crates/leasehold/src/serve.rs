//! `leasehold serve`: the daemon in the foreground, until it is told to stop.

use crate::cli::ServeArgs;
use crate::problem::Problem;
use crate::term;
use leasehold_cell::SystemClock;
use leasehold_server::config::Config;
use leasehold_server::{Daemon, Start, listen};
use leasehold_service::{log, systemd};
use std::io::IsTerminal;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// The file, and over it what the command line says.
fn configuration(args: &ServeArgs) -> Result<Config, Problem> {
    let mut config = match &args.config {
        None => Config::default(),
        Some(file) => Config::load(file).map_err(|error| Problem::told(error.code(), &error))?,
    };
    if let Some(data) = &args.data {
        config.data.clone_from(data);
    } else if args.config.is_none() {
        return Err(Problem::usage("data_needed", "no folder for the journal is named")
            .advice("give --data DIR, or --config FILE with `data`"));
    }
    if let Some(listen) = &args.listen {
        config.listen.clone_from(listen);
    }
    config.check().map_err(|problems| Problem::usage("config_wrong", problems.to_string().trim_end().to_owned()))?;
    Ok(config)
}

pub(crate) fn run(args: &ServeArgs) -> Result<(), Problem> {
    let config = configuration(args)?;
    log::start(config.log.level, config.log.format).map_err(|error| Problem::usage("log_wrong", error.to_string()))?;
    listen::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Problem::refused("no_threads", format!("the threads cannot start: {error}")))?;
    runtime.block_on(serve(config, args))
}

async fn serve(config: Config, args: &ServeArgs) -> Result<(), Problem> {
    let address = config.listen_address().map_err(|problem| Problem::usage("config_wrong", problem.to_string()))?;
    let secure = config.tls.cert.is_some();
    // Listening first: a port that is taken is told before the journal is touched.
    let listener = listen::bind(address).map_err(|error| {
        Problem::refused("listen_failed", format!("cannot listen on {address}: {error}"))
            .advice("choose another with --listen")
    })?;
    let address = listener.local_addr().unwrap_or(address);
    let start = Start {
        clock: Arc::new(SystemClock::new()),
        accept_clock: args.accept_clock,
        new_operator_token: args.new_operator_token,
        on_failure: Arc::new(|why| {
            // A failed disk stops the process (ARCHITECTURE, invariant 6): what was decided and not made durable
            // must not be read by anyone.
            tracing::error!(why, "the journal has failed; the daemon stops");
            term::say(&format!(
                "leasehold: the journal has failed: {why} (journal_failed); the next start finds out what was kept\n"
            ));
            std::process::exit(1);
        }),
    };
    let opening = tokio::task::spawn_blocking(move || Daemon::open(config, start)).await;
    let daemon = opening
        .map_err(|_| Problem::refused("start_failed", "the start failed; the lines above say where"))?
        .map_err(|error| Problem::told(error.code(), &error))?;
    tell(&daemon, &format!("http{}://{address}", if secure { "s" } else { "" }));
    let (mut terminate, mut interrupt) = (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: requests in flight are answered, then the journal is closed");
        systemd::stopping();
    };
    systemd::ready();
    daemon.serve(listener, shutdown).await.map_err(|why| Problem::refused("stop_failed", why))
}

fn signals(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Problem> {
    signal(kind).map_err(|error| Problem::refused("no_signals", format!("signals cannot be listened to: {error}")))
}

/// What was found at the start, and how to begin.
fn tell(daemon: &Daemon, url: &str) {
    let place = daemon.data_directory();
    if let Some(recovered) = &daemon.recovered {
        tracing::info!(
            records = recovered.size,
            snapshot = daemon.opened.snapshot_size,
            replayed = daemon.opened.replayed,
            "the journal was found whole"
        );
        if let Some(torn) = &recovered.torn {
            tracing::warn!(?torn, "an unfinished batch at the end was cut off; none of it had been acknowledged");
        }
    }
    for damaged in &daemon.opened.damaged_snapshots {
        tracing::warn!(damaged, "a snapshot could not be used");
    }
    tracing::info!(origin = daemon.origin(), data = %place.data.display(), url, "leasehold listens");
    if let Some(secret) = &daemon.operator_token {
        let file = place.operator_token();
        // Where stderr is no terminal it is a log, and a secret has no place there: the file is enough.
        let shown = match std::io::stderr().is_terminal() {
            true => format!("Operator token (also in {}):\n\n    {secret}", file.display()),
            false => format!("The operator token is in {}.", file.display()),
        };
        term::say(&format!(
            "\n{shown}\n\nTry:\n    export LEASEHOLD_URL={url} LEASEHOLD_TOKEN_FILE={}\n    leasehold token whoami\n    {url}/api/docs\n\n",
            file.display()
        ));
    }
}
