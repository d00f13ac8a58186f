//! `leasehold-agent`: the agent alone, as a small binary for nodes.

use clap::Parser;
use leasehold_agent::AgentArgs;
use leasehold_terminal::{DaemonArgs, usage};
use std::process::ExitCode;

const NAME: &str = "leasehold-agent";

/// Run the agent of a node: end the processes of ended leases, clean up, and confirm it
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
