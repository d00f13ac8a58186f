//! How a command line names the daemon.

use clap::Args;
use std::path::PathBuf;

const HEADING: &str = "Which daemon";

/// Which daemon, and as whom.
#[derive(Clone, Debug, Default, Args)]
pub struct DaemonArgs {
    /// The daemon's address [default: LEASEHOLD_URL, then ~/.config/leasehold/config.yaml, then http://127.0.0.1:8420]
    #[arg(long, global = true, value_name = "URL", help_heading = HEADING)]
    pub url: Option<String>,
    /// A file that holds the token [default: LEASEHOLD_TOKEN, LEASEHOLD_TOKEN_FILE, then the settings file]
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    pub token_file: Option<PathBuf>,
    /// Trust the certificates in this PEM file and no others [default: those of the system]
    #[arg(long = "ca", global = true, value_name = "FILE", help_heading = HEADING)]
    pub ca_file: Option<PathBuf>,
    /// Print JSON, as the daemon gives it
    #[arg(long, global = true, help_heading = HEADING)]
    pub json: bool,
}
