//! The options that select the daemon and the token.

use clap::Args;
use std::path::PathBuf;

const HEADING: &str = "Connection and output";

/// The daemon and the token to use.
#[derive(Clone, Debug, Default, Args)]
pub struct DaemonArgs {
    /// URL of the daemon [default: LEASEHOLD_URL, then ~/.config/leasehold/config.yaml, then http://127.0.0.1:8420]
    #[arg(long, global = true, value_name = "URL", help_heading = HEADING)]
    pub url: Option<String>,
    /// File that contains the token [default: LEASEHOLD_TOKEN, then LEASEHOLD_TOKEN_FILE, then config.yaml]
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    pub token_file: Option<PathBuf>,
    /// Trust only the CA certificates in this PEM file [default: those of the system]
    #[arg(long = "ca", global = true, value_name = "FILE", help_heading = HEADING)]
    pub ca_file: Option<PathBuf>,
    /// Print JSON, as returned by the daemon, instead of text
    #[arg(long, global = true, help_heading = HEADING)]
    pub json: bool,
}
