//! The options that all adapters have.

use clap::Args;
use leasehold_client::api::{Ttl, When};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub struct AdapterArgs {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Report once and exit; the exit code is 0 if everything was accepted
    #[arg(long)]
    pub once: bool,
    /// Time between two passes [default: `every` in the file, or 60s]
    #[arg(long, value_name = "TIME", conflicts_with = "once")]
    pub every: Option<Ttl>,
    /// Print the records since `begin`, or since --since, one JSON object per line, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Read again what ended after this instant, and send again what was refused
    #[arg(long, value_name = "INSTANT", requires = "once")]
    pub since: Option<When>,
}
