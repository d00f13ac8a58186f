//! `leasehold`, the one binary: parses what was asked, hands it to the command's own file, and turns the outcome into
//! an exit code.
//!
//! In: the command line, a data folder, signals. Out: data on stdout, everything else on stderr, and 0 (ok), 1
//! (refused or not found), 2 (usage) or 3 (verification failed).
//! Never: a rule of its own about leases, records or proofs; those live in the libraries below.

mod agent;
mod audit;
mod bench;
mod cli;
mod config;
mod demo;
mod dice;
mod drill;
mod folder;
mod humane;
mod numbers;
mod output;
mod place;
mod problem;
mod remote;
mod serve;
mod sim;
mod table;
mod term;

use clap::Parser;
use cli::{Cli, Command};
use problem::{EXIT_OK, Problem};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Cli { daemon, command } = match Cli::try_parse_from(cli::typed(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(cli::report_usage(&error)),
    };
    // A collector prints an object of its own about what it found, and says it to people besides.
    let as_object = daemon.json && !matches!(command, Command::Audit(cli::Audit::Collect(_)));
    let done = match command {
        Command::Remote(command) => remote::run(&daemon, *command),
        Command::Audit(cli::Audit::Collect(args)) => audit::collect(&daemon, &args),
        Command::Audit(audit) => remote::audit(&daemon, audit),
        Command::Completions(args) => cli::completions(&args).map(|()| EXIT_OK),
        Command::Demo(args) => demo::run(&args).map(|()| EXIT_OK),
        Command::Agent(args) => agent::run(&daemon, &args).map(|()| EXIT_OK),
        Command::Config(command) => config::run(&command),
        Command::Serve(args) => serve::run(&args).map(|()| EXIT_OK),
        Command::Sim(args) => sim::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Drill(args) => drill::run(&args).map(|()| EXIT_OK),
    };
    ExitCode::from(done.unwrap_or_else(|problem: Problem| problem.report(as_object)))
}
