//! `leasehold lease run`: holds a lease while a command runs.

use super::alloc::say_waits_for_evictions;
use super::child::{Child, Ended};
use super::failure::{Failed, plain};
use super::lease::short;
use super::lease_request;
use super::session::Session;
use super::units::Classes;
use crate::cli::lease::RunArgs;
use crate::problem::{EXIT_REFUSED, Problem};
use crate::term;
use crate::time_format;
use leasehold_api::{Granted, Kind, Requested};
use leasehold_client::{Keep, Lease, Lost, Why};
use leasehold_model::Span;
use std::time::Duration;
use tokio::time::Instant;

/// The command is killed this long before the lease ends, so that it has ended by then.
const KILL_MARGIN: Duration = Duration::from_millis(500);

pub(super) async fn run(session: &Session, args: RunArgs) -> Result<u8, Failed> {
    let client = &session.client;
    let (request, classes) = lease_request::request(client, &args.asks, &args.holder, args.ttl).await?;
    let asked_at = Instant::now();
    let lease = match client.request_lease(&request).await? {
        Requested::Granted(granted) => Lease::hold(client, granted, request.ttl.0, asked_at, Keep::default()),
        Requested::Waiting(submitted) => {
            say_waits_for_evictions(&submitted.id.to_string());
            let held = Lease::wait(client, &request, &submitted, Keep::default());
            tokio::select! {
                held = held => held?,
                _ = tokio::signal::ctrl_c() => {
                    return Err(Problem::refused("interrupted", "the request was cancelled while it waited").into());
                }
            }
        }
    };
    let names: Vec<String> = lease.ids().map(short).collect();
    term::say(&format!("leasehold: holding {} on {}\n", names.join(", "), lease.granted().node));
    let variables = variables(lease.granted(), &classes);
    let mut child = match Child::start(&args.command, &variables) {
        Ok(child) => child,
        Err(problem) => {
            release(lease).await;
            return Err(problem.into());
        }
    };
    let lost = lease.lost();
    tokio::select! {
        ended = child.ended() => {
            let ended = ended?;
            drop(child);
            release(lease).await;
            Ok(ended.status())
        }
        lost = lost => Ok(stop_command(child, lease, &lost).await?),
    }
}

/// The environment variables that describe the lease.
fn variables(granted: &Granted, classes: &Classes) -> Vec<(&'static str, String)> {
    let ids: Vec<&str> = granted.leases.iter().map(|lease| lease.uid.as_str()).collect();
    let with_devices = || granted.leases.iter().filter(|lease| !lease.devices.is_empty());
    let devices: Vec<String> =
        with_devices().map(|lease| format!("{}={}", lease.class, super::lease::devices(&lease.devices))).collect();
    let mut variables = vec![
        ("LEASEHOLD_LEASE_ID", ids.first().map_or_else(String::new, |id| (*id).to_owned())),
        ("LEASEHOLD_LEASE_IDS", ids.join(",")),
        ("LEASEHOLD_NODE", granted.node.clone()),
        ("LEASEHOLD_DEVICES", devices.join(" ")),
    ];
    let of_gpus = |class: &str| classes.named(class).is_some_and(|class| class.kind == Kind::Gpu);
    let gpus: Vec<_> = with_devices().filter(|lease| of_gpus(&lease.class)).collect();
    match gpus.as_slice() {
        [one] => variables.push(("CUDA_VISIBLE_DEVICES", super::lease::devices(&one.devices))),
        // Without GPUs the list is empty; an inherited value would name GPUs of another lease.
        [] => variables.push(("CUDA_VISIBLE_DEVICES", String::new())),
        // Each class counts its devices from zero, so that one list cannot describe several classes.
        _ => term::say(
            "leasehold: the lease has GPUs of several classes; CUDA_VISIBLE_DEVICES is not set, use LEASEHOLD_DEVICES\n",
        ),
    }
    variables
}

async fn release(lease: Lease) {
    if let Err(error) = lease.release().await {
        let problem = plain(&error);
        term::say(&format!("leasehold: the lease could not be released and ends at its deadline: {problem}\n"));
    }
}

/// Stops the command after the lease was lost. It may use the rest of the time to end by itself.
async fn stop_command(mut child: Child, lease: Lease, lost: &Lost) -> Result<u8, Problem> {
    let left = lost.until.saturating_duration_since(Instant::now());
    let left_span = Span(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
    term::say(&format!("leasehold: {lost}; the command has {} to end\n", time_format::span(left_span)));
    child.terminate();
    let kill_at = lost.until.checked_sub(KILL_MARGIN.min(left / 4)).unwrap_or(lost.until);
    let how = match tokio::time::timeout_at(kill_at, child.ended()).await {
        Ok(ended) => match ended? {
            Ended::Exited(status) => format!("it ended with status {status}"),
            Ended::Signalled(signal) => format!("it was ended by signal {signal}"),
        },
        Err(_) => {
            child.kill();
            child.ended().await?;
            "it had to be killed".to_owned()
        }
    };
    drop(child);
    if matches!(lost.why, Why::Revoked { .. }) {
        if let Err(error) = lease.ready().await {
            let problem = plain(&error);
            term::say(&format!("leasehold: the daemon could not be told that the command has ended: {problem}\n"));
        }
    } else {
        release(lease).await;
    }
    let code = match &lost.why {
        Why::Revoked { .. } => "lease_revoked",
        Why::Refused(_) => "renewal_refused",
        Why::Ended { .. } => "lease_ended",
        Why::Unreachable => "unreachable",
    };
    Problem::refused(code, format!("the command was stopped because its lease was lost; {how}"))
        .report(crate::NAME, false);
    Ok(EXIT_REFUSED)
}
