//! `leasehold-verify`: the auditor's program. Everything is in the library.

use clap::{Parser, Subcommand};
use leasehold_verify::cli::{VerifyArgs, run};
use leasehold_verify::evidence::{self, EvidenceArgs};
use leasehold_verify::invoice::{self, InvoiceArgs};
use std::process::ExitCode;

/// Verify a sealed journal offline, from its files alone
#[derive(Parser)]
#[command(
    name = "leasehold-verify",
    version,
    about,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true
)]
struct Cli {
    #[command(flatten)]
    verify: Option<VerifyArgs>,
    #[command(subcommand)]
    other: Option<Other>,
}

#[derive(Subcommand)]
enum Other {
    /// Confirm evidence that a log signed two conflicting histories
    Evidence(EvidenceArgs),
    /// Check an invoice from its proof file, line by line
    Invoice(InvoiceArgs),
}

fn main() -> ExitCode {
    let Cli { verify, other } = Cli::parse();
    ExitCode::from(match (other, verify) {
        (Some(Other::Evidence(args)), _) => evidence::run(&args),
        (Some(Other::Invoice(args)), _) => invoice::run(&args),
        (None, Some(args)) => run(&args),
        (None, None) => unreachable!("the arguments of one of them are required"),
    })
}
