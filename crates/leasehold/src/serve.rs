//! `leasehold serve`: runs the daemon in the foreground until SIGTERM or Ctrl-C.

use crate::cli::ServeArgs;
use crate::problem::Problem;
use crate::term;
use leasehold_cell::SystemClock;
use leasehold_server::config::Config;
use leasehold_server::reload::{Reloaded, Reloader};
use leasehold_server::{Daemon, Start, UnprovedTail, listen};
use leasehold_service::{log, systemd};
use std::io::IsTerminal;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

/// The configuration file, with the options of the command line applied to it.
fn configuration(args: &ServeArgs) -> Result<Config, Problem> {
    let mut config = match &args.config {
        None => Config::default(),
        Some(file) => Config::load(file).map_err(|error| Problem::told(error.code(), &error))?,
    };
    if let Some(data) = &args.data {
        config.data.clone_from(data);
    } else if args.config.is_none() {
        return Err(Problem::usage("data_needed", "no data directory is given")
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
        runtime.map_err(|error| Problem::refused("no_threads", format!("the threads cannot be started: {error}")))?;
    runtime.block_on(serve(config, args))
}

async fn serve(config: Config, args: &ServeArgs) -> Result<(), Problem> {
    let address = config.listen_address().map_err(|problem| Problem::usage("config_wrong", problem.to_string()))?;
    let secure = config.tls.cert.is_some();
    ignore_user_signals()?;
    // From now on it does not end the process; what arrives during the startup is handled after it.
    let hang_up = signals(SignalKind::hangup())?;
    // Bind first, so that a port that is in use is reported before the journal is opened.
    let listener = listen::bind(address).map_err(|error| {
        Problem::refused("listen_failed", format!("cannot listen on {address}: {error}"))
            .advice("choose another address or port with --listen")
    })?;
    let address = listener.local_addr().unwrap_or(address);
    if !secure && !address.ip().to_canonical().is_loopback() {
        tracing::warn!(
            %address,
            "listening without TLS on an address that other machines may reach: tokens cross the network unencrypted; \
             set `tls.cert` and `tls.key`, or listen on the loopback address"
        );
    }
    let start = Start {
        clock: Arc::new(SystemClock::new()),
        accept_clock: args.accept_clock,
        unproved_tail: match (args.cut_unproved_tail, args.accept_unproved_tail) {
            (true, _) => UnprovedTail::Cut,
            (_, true) => UnprovedTail::Accept,
            _ => UnprovedTail::Refuse,
        },
        new_operator_token: args.new_operator_token,
        on_failure: Arc::new(|why| {
            // A failed disk stops the process (ARCHITECTURE, invariant 6): decisions that are not durable must not be
            // visible to anyone.
            tracing::error!(why, "the journal has failed; the daemon stops");
            term::say(&format!(
                "leasehold: the journal has failed: {why} (journal_failed); the next start recovers what is durable\n"
            ));
            std::process::exit(1);
        }),
    };
    let opening = tokio::task::spawn_blocking(move || Daemon::open(config, start)).await;
    let mut daemon = opening
        .map_err(|_| Problem::refused("start_failed", "the startup failed; see the messages above"))?
        .map_err(|error| Problem::told(error.code(), &error))?;
    // Before anybody learns that it runs: from then on a signal is a clean stop.
    let (mut terminate, mut interrupt) = (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
    announce(&daemon, &format!("http{}://{address}", if secure { "s" } else { "" }));
    // It has been shown, or is in its file.
    daemon.operator_token = None;
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down: requests in flight are answered, then the journal is closed");
        systemd::stopping();
    };
    let reloading = tokio::spawn(reload_on(hang_up, daemon.reloader(), args.clone()));
    systemd::ready();
    let served = daemon.serve(listener, shutdown).await;
    reloading.abort();
    served.map_err(|why| Problem::refused("stop_failed", why))
}

/// Reads the configuration again at each SIGHUP, and logs what changed. A configuration with an error changes nothing.
async fn reload_on(mut hang_up: tokio::signal::unix::Signal, mut reloader: Reloader, args: ServeArgs) {
    while hang_up.recv().await.is_some() {
        let read = args.clone();
        // Reads files, so it must not run on a thread that serves requests.
        let Ok(config) = tokio::task::spawn_blocking(move || configuration(&read)).await else { continue };
        let applied = config.map_err(|problem| problem.to_string()).and_then(|config| {
            let level = config.log.level;
            let reloaded = reloader.reload(config).map_err(|error| error.to_string())?;
            Ok((reloaded, level))
        });
        match applied {
            Err(why) => tracing::error!("SIGHUP: the configuration cannot be used, and nothing was changed: {why}"),
            Ok((reloaded, level)) => {
                // Before the level changes, so that both levels show it.
                log_reloaded(&reloaded);
                if reloaded.keys.contains(&"log.level")
                    && let Err(error) = log::set_level(level)
                {
                    tracing::error!("SIGHUP: {error}");
                }
            }
        }
    }
}

fn log_reloaded(reloaded: &Reloaded) {
    let Reloaded { keys, certificate, restart } = reloaded;
    if keys.is_empty() && !certificate {
        tracing::info!("SIGHUP: the configuration was read again; nothing that can be reloaded has changed");
    } else {
        tracing::info!(certificate, keys = keys.join(", "), "SIGHUP: the configuration was reloaded");
    }
    if !restart.is_empty() {
        tracing::warn!(keys = restart.join(", "), "SIGHUP: these changes take effect at the next start");
    }
}

fn signals(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Problem> {
    signal(kind)
        .map_err(|error| Problem::refused("no_signals", format!("signal handlers cannot be installed: {error}")))
}

/// SIGUSR1 and SIGUSR2 would end the process without a clean stop. They are sent by mistake, or by tools that expect
/// another program.
fn ignore_user_signals() -> Result<(), Problem> {
    for (name, kind) in [("SIGUSR1", SignalKind::user_defined1()), ("SIGUSR2", SignalKind::user_defined2())] {
        let mut arriving = signals(kind)?;
        tokio::spawn(async move {
            while arriving.recv().await.is_some() {
                tracing::info!(signal = name, "ignored a signal that has no meaning here");
            }
        });
    }
    Ok(())
}

/// What this start has checked, in words.
fn checked_at_start(from: u64, size: u64) -> String {
    match from {
        0 => format!("all {size} records of the journal were read and authenticated"),
        _ if from == size => {
            format!("the end of the journal was authenticated; its {size} records are checked by the scrub")
        }
        _ => format!(
            "records {from} to {} were read and authenticated; the {from} older ones are checked by the scrub",
            size - 1
        ),
    }
}

/// Logs the recovery, and prints how to connect.
fn announce(daemon: &Daemon, url: &str) {
    let directory = daemon.data_directory();
    if let Some(recovered) = &daemon.recovered {
        // Only what was read at this start. Older records are read by the scrub.
        tracing::info!(
            records = recovered.size,
            snapshot = daemon.opened.snapshot_size,
            replayed = daemon.opened.replayed,
            checked_from = recovered.verified_from,
            "{}",
            checked_at_start(recovered.verified_from, recovered.size)
        );
        if recovered.rolled_forward > 0 {
            tracing::warn!(
                records = recovered.rolled_forward,
                "records after the last checkpoint were authenticated and signed, as after a crash"
            );
        }
        if recovered.secret_lost {
            tracing::warn!("local.secret is not the one that this directory was written with: snapshots are rebuilt");
        }
        if recovered.snapshots_missing {
            tracing::warn!("the directory of the snapshots was missing and was created again");
        }
        if recovered.converted {
            tracing::warn!("the journal was of format version 1; from now on it is written in version 2");
        }
        if let Some(tail) = &recovered.tail_resolved {
            let (action, records, bytes) = (tail.action.word(), tail.records, tail.bytes);
            tracing::warn!(action, records, bytes, "records after the anchor that could not be authenticated");
        }
        if let Some(torn) = &recovered.torn {
            tracing::warn!(?torn, "an incomplete batch at the end was discarded; none of it had been acknowledged");
        }
    }
    if let Some(segment) = daemon.missing_segment {
        tracing::warn!(
            segment,
            "old segments are neither in the data directory nor in a directory of journal.archive; requests about their \
             records are answered `archived` (410). That is right if they were deleted for good"
        );
    }
    for damaged in &daemon.opened.damaged_snapshots {
        tracing::warn!(damaged, "a snapshot could not be used");
    }
    tracing::info!(origin = daemon.origin(), data = %directory.data.display(), url, "listening");
    if let Some(secret) = &daemon.operator_token {
        let file = directory.operator_token();
        // If stderr is not a terminal it is a log, where a secret must not appear; the file is enough.
        let shown = Zeroizing::new(match std::io::stderr().is_terminal() {
            true => format!("Operator token (also in {}):\n\n    {}", file.display(), secret.as_str()),
            false => format!("The operator token is in {}.", file.display()),
        });
        term::say(&Zeroizing::new(format!(
            "\n{}\n\nTry:\n    export LEASEHOLD_URL={url} LEASEHOLD_TOKEN_FILE={}\n    leasehold token whoami\n    {url}/api/docs\n\n",
            shown.as_str(),
            file.display()
        )));
    }
}
