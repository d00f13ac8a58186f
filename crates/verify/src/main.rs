//! `leasehold-verify`: the auditor's program. Everything is in the library.

use clap::Parser;
use leasehold_verify::cli::{VerifyArgs, run};
use std::process::ExitCode;

/// Says whether a sealed journal is whole: from its files alone, offline.
#[derive(Parser)]
#[command(name = "leasehold-verify", version, about)]
struct Cli {
    #[command(flatten)]
    verify: VerifyArgs,
}

fn main() -> ExitCode {
    ExitCode::from(run(&Cli::parse().verify))
}
