//! `leasehold-slurm`: reports the runs of jobs of a Slurm cluster as usage records.
//!
//! In: the rows of `sacct`, a configuration, the state of an earlier pass. Out: usage records, one for each run and unit.
//! [`table`] reads rows, [`billing`] turns finished runs into drafts, [`window`] decides from when on sacct is asked. All
//! three do no I/O. A run is never billed before its end is known, and never under an ID that depends on when it was read.

mod billing;
mod comment;
mod config;
mod sacct;
mod table;
mod tres;
mod window;

use clap::Parser;
use config::Config;
use leasehold_adapter_kit::{AdapterArgs, Anchors, Look, Runtime, Setup, Times, run};
use leasehold_model::RuntimeBackend;
use leasehold_terminal::{DaemonArgs, Problem, usage};
use std::process::ExitCode;
use window::Memory;

const NAME: &str = "leasehold-slurm";

/// Report the usage of a Slurm cluster to Leasehold, each run of a job once
#[derive(Debug, Parser)]
#[command(name = NAME, version, about, max_term_width = 120, after_help = "\
Examples:
  leasehold-slurm --config /etc/leasehold/slurm.yaml
  leasehold-slurm --config slurm.yaml --once --dry-run
  leasehold-slurm --config slurm.yaml --once --since 2026-11-01T00:00:00Z

Runs in the foreground until SIGTERM or Ctrl-C; with --once it makes one pass. It can be stopped, killed and started at
any time. The log goes to stderr, with --json as JSON lines. docs/how-to/slurm.md describes the configuration.")]
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
        let setup = Setup { program: NAME, daemon: &daemon, args: &args, leasehold: &config.leasehold };
        run(&setup, Slurm { config: &config })
    });
    match started {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => ExitCode::from(problem.report(NAME, daemon.json)),
    }
}

struct Slurm<'a> {
    config: &'a Config,
}

impl Runtime for Slurm<'_> {
    type Memory = Memory;
    const BACKEND: RuntimeBackend = RuntimeBackend::Slurm;

    async fn look(&mut self, memory: &Memory, times: Times, anchors: &Anchors) -> Result<Look<Memory>, Problem> {
        let slurm = &self.config.slurm;
        let window = window::next(memory, times, slurm.look_back);
        let mut runs = sacct::runs(slurm, &sacct::Which::Since(window.from)).await?;
        // A run whose end became known late may have ended before the window.
        let missing = window::missing(memory, &runs);
        for some in missing.chunks(sacct::JOBS_MAX) {
            runs.extend(sacct::runs(slurm, &sacct::Which::Jobs(some)).await?);
        }
        let comments = match slurm.correlation_from_comment {
            true => sacct::comments(slurm, window.from).await?,
            false => Default::default(),
        };
        let drafts = billing::drafts(slurm, anchors, times.begin, &runs, &comments);
        let settled_before = window.settled_before();
        let memory_if_postponed = memory.clone();
        Ok(Look { drafts, memory: window::after(&window, &runs), memory_if_postponed, settled_before })
    }
}
