//! `leasehold config …`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a configuration file and report all its errors
    Check(CheckArgs),
    /// Print a commented configuration file with the default of every key
    #[command(after_help = "\
Example:
  leasehold config example > leasehold.yaml")]
    Example,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// YAML configuration file to check
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
