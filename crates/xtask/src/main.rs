//! `cargo xtask`: commands for developers of Leasehold.

mod sim;

use clap::{Parser, Subcommand};
use leasehold_terminal::usage;
use std::process::ExitCode;

const NAME: &str = "xtask";

/// Commands for developers of Leasehold
#[derive(Debug, Parser)]
#[command(name = NAME, about, max_term_width = 120, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the simulator: the real engine and journal on a disk with faults
    Sim(sim::SimArgs),
}

fn main() -> ExitCode {
    let Command::Sim(args) = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return ExitCode::from(usage::report(NAME, &error)),
    };
    ExitCode::from(sim::run(&args).unwrap_or_else(|problem| problem.report(NAME, args.json)))
}
