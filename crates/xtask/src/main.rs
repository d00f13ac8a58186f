//! `cargo xtask`: what developers run and users do not.

mod sim;

use clap::{Parser, Subcommand};
use leasehold_terminal::usage;
use std::process::ExitCode;

const NAME: &str = "xtask";

/// What developers of Leasehold run, and users do not.
#[derive(Debug, Parser)]
#[command(name = NAME, about, max_term_width = 120, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run seeds through the simulator: the real engine and journal on a disk that fails
    Sim(sim::SimArgs),
}

fn main() -> ExitCode {
    let Command::Sim(args) = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return ExitCode::from(usage::report(NAME, &error)),
    };
    ExitCode::from(sim::run(&args).unwrap_or_else(|problem| problem.report(NAME, args.json)))
}
