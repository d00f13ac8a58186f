//! What can be asked about the daemon's configuration.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong with a configuration file, all of it at once
    Check(CheckArgs),
    /// Print a file with every key, commented, at its default
    #[command(after_help = "\
Example:
  leasehold config example > leasehold.yaml")]
    Example,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The YAML file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
