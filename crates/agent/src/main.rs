//! `leasehold-agent`: the agent alone, in a binary small enough for every node.

use clap::Parser;
use leasehold_agent::AgentArgs;
use leasehold_terminal::{DaemonArgs, usage};
use std::process::ExitCode;

const NAME: &str = "leasehold-agent";

/// Speaks for a node: ends what ran under its leases, wipes what is left, confirms it.
#[derive(Debug, Parser)]
#[command(name = NAME, version, about, max_term_width = 120)]
struct Cli {
    #[command(flatten)]
    daemon: DaemonArgs,
    #[command(flatten)]
    args: AgentArgs,
}

fn main() -> ExitCode {
    let Cli { daemon, args } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage::report(NAME, &error)),
    };
    match leasehold_agent::run(&daemon, &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => ExitCode::from(problem.report(NAME, daemon.json)),
    }
}
