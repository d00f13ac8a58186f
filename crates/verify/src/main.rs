//! `leasehold-verify`: the auditor's program. Everything is in the library.

use clap::Parser;
use leasehold_verify::cli::{VerifyArgs, run};
use std::process::ExitCode;

/// Verify a sealed journal offline, from its files alone
#[derive(Parser)]
#[command(name = "leasehold-verify", version, about)]
struct Cli {
    #[command(flatten)]
    verify: VerifyArgs,
}

fn main() -> ExitCode {
    ExitCode::from(run(&Cli::parse().verify))
}
