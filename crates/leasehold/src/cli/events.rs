//! `leasehold events` and `leasehold audit records`.

use super::kind_words;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold events --follow --kind lease --tenant physics       # print new records until Ctrl-C
  leasehold events --after 4711                                 # print the records after 4711
  leasehold events --follow --json | jq -r .kind
  leasehold events --follow --node gpu-17                       # new records about leases on a node

`leasehold lease history` prints the records of one lease.

If the connection breaks, the command connects again and continues with the next record.")]
pub(crate) struct EventsArgs {
    /// Print new records as they become durable, until Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
    /// Start after this sequence number [default: the last 100 records; with --follow only new ones]
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u64>,
    /// Only records of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only records of this kind (`lease.revoked`) or family of kinds (`lease`)
    #[arg(long, value_name = "KIND", value_parser = kind_words(), hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// Only new records of leases on this node; needs --follow
    #[arg(long, value_name = "NAME", requires = "follow")]
    pub(crate) node: Option<String>,
    /// Only new records of this lease, `lease-42` or its ID; needs --follow (`lease history` prints the earlier ones)
    #[arg(long, value_name = "LEASE", requires = "follow")]
    pub(crate) lease: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold audit records --kind lease.denied --tenant students --limit 20")]
pub(crate) struct RecordsArgs {
    /// Start after this sequence number [default: the first record]
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u64>,
    /// Only records of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only records of this kind (`lease.granted`) or family of kinds (`lease`)
    #[arg(long, value_name = "KIND", value_parser = kind_words(), hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// Highest number of records to print [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
}
