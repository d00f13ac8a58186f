//! The `leasehold` binary: parses the command line, runs the command, and turns the result into an exit code.
//!
//! In: the command line, a data directory, signals. Out: data on stdout, everything else on stderr, and the exit code
//! 0 (success), 1 (refused or not found), 2 (wrong command line), 3 (verification failed) or 4 (a log was proved to be forked).
//! Never: a rule of its own about leases, records or proofs; those belong to the library crates.

mod archive;
mod audit;
mod backup;
mod bench;
mod cli;
mod config;
mod delete;
mod journal_copy;
mod journal_files;
mod remote;
mod restore;
mod serve;
mod time_format;

use clap::Parser;
use cli::{Cli, Command};
use leasehold_terminal::{numbers, output, problem, table, term, usage};
use problem::{EXIT_OK, Problem};
use std::process::ExitCode;

/// The prefix of messages on stderr.
const NAME: &str = "leasehold";

fn main() -> ExitCode {
    let Cli { daemon, times, command } = match Cli::try_parse_from(cli::join_negative_values(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage::report(NAME, &error)),
    };
    // The collector prints its own JSON object on stdout, and the message for people on stderr as well.
    let as_object = daemon.json && !matches!(command, Command::Audit(cli::Audit::Collect(_)));
    let done = match command {
        Command::Remote(command) => remote::run(&daemon, &times, *command),
        Command::Audit(cli::Audit::Collect(args)) => audit::collect(&daemon, &args),
        Command::Audit(audit) => remote::audit(&daemon, audit),
        Command::Key(command) => remote::key(&daemon, command),
        Command::Completions(args) => cli::completions(&args).map(|()| EXIT_OK),
        Command::Demo(args) => leasehold_demo::run(&args).map(|()| EXIT_OK),
        Command::Agent(args) => leasehold_agent::run(&daemon, &args).map(|()| EXIT_OK),
        Command::Config(command) => config::run(&command),
        Command::Journal(cli::journal::JournalCommand::Archive(args)) => archive::run(&args).map(|()| EXIT_OK),
        Command::Journal(cli::journal::JournalCommand::Delete(args)) => delete::run(&args, &times).map(|()| EXIT_OK),
        Command::Backup(args) => backup::run(&args, daemon.json).map(|()| EXIT_OK),
        Command::Restore(args) => restore::run(&args, daemon.json).map(|()| EXIT_OK),
        Command::Serve(args) => serve::run(&args).map(|()| EXIT_OK),
        Command::Bench(args) => bench::run(&args),
    };
    ExitCode::from(done.unwrap_or_else(|problem: Problem| problem.report(NAME, as_object)))
}
