//! `leasehold events` and `leasehold audit records`.

use super::kind_words;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold events --follow --kind lease --tenant physics       from now on, until Ctrl-C
  leasehold events --after 4711                                 what happened since, and then ends
  leasehold events --follow --json | jq -r .kind

What happened to one lease is in `leasehold lease history`.

A connection that breaks is made again and goes on where it was.")]
pub(crate) struct EventsArgs {
    /// Go on for ever with what comes
    #[arg(long)]
    pub(crate) follow: bool,
    /// Begin after this sequence [default: with --follow from now on, else the last 100 records]
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u64>,
    /// Only of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only of this kind or family of kinds: `lease.revoked`, `lease`
    #[arg(long, value_name = "WORD", value_parser = kind_words(), hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// Only of leases on this node
    #[arg(long, value_name = "NAME", requires = "follow")]
    pub(crate) node: Option<String>,
    /// Only of this lease
    #[arg(long, value_name = "LEASE", requires = "follow")]
    pub(crate) lease: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold audit records --kind lease.denied --tenant students --limit 20")]
pub(crate) struct RecordsArgs {
    /// The last sequence already seen [default: from the first record]
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u64>,
    /// Only of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only of this kind or family of kinds: `lease.granted`, `lease`
    #[arg(long, value_name = "WORD", value_parser = kind_words(), hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// How many at most [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
}
