//! `leasehold-ray`: reports the uptime of a Ray cluster's nodes and its submitted jobs as usage records.
//!
//! In: the state API of the dashboard, a configuration, what was seen before. Out: usage records, one for each thing, unit
//! and hour. [`answer`] reads what the dashboard says, [`sighting`] remembers what was seen of each thing, [`slices`] turns
//! it into hours; none of them does I/O. Time in which nobody saw a thing, before it was gone for good, is never billed.

mod answer;
mod billing;
mod config;
mod dashboard;
mod sighting;
mod slices;

use clap::Parser;
use config::Config;
use dashboard::Dashboard;
use leasehold_adapter_kit::{AdapterArgs, Anchors, Look, Runtime, Setup, Times, run};
use leasehold_model::{Instant, RuntimeBackend};
use leasehold_terminal::{DaemonArgs, Problem, usage};
use sighting::Memory;
use std::process::ExitCode;

const NAME: &str = "leasehold-ray";
/// How long settled slices are remembered. A thing is reported from where it was left off, so that little is needed.
const SETTLED_NS: u64 = 2 * 86_400 * 1_000_000_000;

/// Report the usage of a Ray cluster to Leasehold, each hour of a node or job once
#[derive(Debug, Parser)]
#[command(name = NAME, version, about, max_term_width = 120, after_help = "\
Examples:
  leasehold-ray --config /etc/leasehold/ray.yaml
  leasehold-ray --config ray.yaml --once --dry-run

Runs in the foreground until SIGTERM or Ctrl-C; with --once it makes one pass. It can be stopped, killed and started at
any time. The log goes to stderr, with --json as JSON lines. docs/how-to/ray.md describes the configuration.")]
struct Cli {
    #[command(flatten)]
    daemon: DaemonArgs,
    #[command(flatten)]
    args: AdapterArgs,
}

fn main() -> ExitCode {
    let Cli { daemon, args } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage::report(NAME, &error)),
    };
    let started = Config::load(&args.config).and_then(|config| {
        let dashboard = Dashboard::new(&config.ray)?;
        let setup = Setup { program: NAME, daemon: &daemon, args: &args, leasehold: &config.leasehold };
        run(&setup, Ray { config: &config, dashboard })
    });
    match started {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => ExitCode::from(problem.report(NAME, daemon.json)),
    }
}

struct Ray<'a> {
    config: &'a Config,
    dashboard: Dashboard,
}

impl Runtime for Ray<'_> {
    type Memory = Memory;
    const BACKEND: RuntimeBackend = RuntimeBackend::Ray;

    async fn look(&mut self, memory: &Memory, times: Times, anchors: &Anchors) -> Result<Look<Memory>, Problem> {
        // The clock was read before the dashboard is asked: what is alive in the answer was alive then.
        let ray = &self.config.ray;
        let looked = self.dashboard.look(!ray.jobs.is_empty()).await;
        let mut memory = memory.clone();
        if times.since.is_some() {
            memory.forget_reported();
        }
        match looked {
            Ok(seen) => memory.see(&seen, times.now),
            // The last part of an hour must not wait for a cluster that never comes back. If it does come back, the
            // time in between is added by a correction.
            Err(problem) if memory.is_given_up(times.now, ray.gone_after) => {
                tracing::warn!("reporting what was last seen of the cluster: {problem}");
                memory.all_gone();
            }
            Err(problem) => return Err(problem),
        }
        let drafts = billing::drafts(ray, anchors, times, &memory);
        let (memory_if_postponed, settled_before) = (memory.clone(), Instant(times.now.0.saturating_sub(SETTLED_NS)));
        memory.reported();
        Ok(Look { drafts, memory, memory_if_postponed, settled_before })
    }
}
