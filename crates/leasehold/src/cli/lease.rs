//! `leasehold lease …`.

use super::remote::{ChangeArgs, PastArgs, WatchArgs, WhoseArgs, pair};
use clap::{Args, Subcommand};
use leasehold_api::{LeaseState, Priority, RevokeReason};
use leasehold_api::{Ttl, When};
use std::ffi::OsString;

#[derive(Debug, Subcommand)]
pub(crate) enum LeaseCommand {
    /// Ask for capacity
    Request(RequestArgs),
    /// What a request would cost, and whether it would be granted; nothing is changed
    Quote(QuoteArgs),
    /// Hold a lease while a command runs
    Run(RunArgs),
    /// Move the deadline of a lease
    Renew(RenewArgs),
    /// Give a lease back
    Release(LeaseArgs),
    /// Take a lease back from its holder
    Revoke(RevokeArgs),
    /// Say, within grace, that nothing runs on a revoked lease any more
    Ready(LeaseArgs),
    /// Leases that are not closed; or those of any time, by number
    List(LeaseListArgs),
    /// One lease, also when it is closed
    Show(LeaseShowArgs),
    /// What happened to a lease, record by record
    History(LeaseShowArgs),
    /// Why a lease was granted where it was
    Explain(LeaseShowArgs),
    /// Vouch for capacity that was fenced because its teardown was not confirmed
    Unfence(LeaseArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// The lease: `lease-42`, or its 32 digits
    pub(crate) lease: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LeaseShowArgs {
    /// The lease: `lease-42`, or its 32 digits
    pub(crate) lease: String,
}

/// How much of what. All of it lies on one node.
#[derive(Clone, Debug, Args)]
#[group(id = "asks", required = true, multiple = true)]
pub(crate) struct AskArgs {
    /// GPUs, such as 2 or 1/7, where there is one class of them
    #[arg(long, value_name = "QTY")]
    pub(crate) gpu: Option<String>,
    /// Cores, such as 8 or 500m, where there is one class of them
    #[arg(long, value_name = "QTY")]
    pub(crate) cpu: Option<String>,
    /// Memory, such as 80GiB, where there is one class of it
    #[arg(long, value_name = "QTY")]
    pub(crate) mem: Option<String>,
    /// So much of the class with this name; may be given more than once
    #[arg(long = "class", value_name = "NAME=QTY", value_parser = pair)]
    pub(crate) classes: Vec<(String, String)>,
}

/// For whom, and where.
#[derive(Clone, Debug, Args)]
pub(crate) struct HolderArgs {
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Only on this node
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Only on nodes with this label; may be given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// Kept with the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) hcl_entry: Option<String>,
    /// Kept with the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) dra_claim_id: Option<String>,
}

/// For whom.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhoArgs {
    /// Whose lease it is; a tenant's token names it itself
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// What it is charged to; a project's token names it itself
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Who asks
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Which work it is for, in your own words
    #[arg(long, value_name = "TEXT")]
    pub(crate) workload: Option<String>,
    /// Which app instance of the project it is for, by number
    #[arg(long, value_name = "N")]
    pub(crate) app_instance: Option<u64>,
    /// Who yields to whom
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) priority: Option<Priority>,
    /// Only in this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Sensitive work: on claimed nodes only, with its user named
    #[arg(long)]
    pub(crate) sensitive: bool,
    /// The story it belongs to: 32 hexadecimal digits
    #[arg(long, value_name = "ID")]
    pub(crate) correlation_id: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold lease request --gpu 2 --ttl 1h --project lattice
  leasehold lease request --class gpu-h100=2 --class mem-dram=80GiB --ttl 30m --project lattice")]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) asks: AskArgs,
    /// For how long, such as 10m or 1h30m
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Ttl,
    #[command(flatten)]
    pub(crate) holder: HolderArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold lease quote --gpu 2 --ttl 1h --project lattice --priority scavenger")]
pub(crate) struct QuoteArgs {
    #[command(flatten)]
    pub(crate) asks: AskArgs,
    /// For how long, such as 10m or 1h30m
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Ttl,
    #[command(flatten)]
    pub(crate) holder: HolderArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold lease run --gpu 2 --ttl 10m --project lattice -- python train.py

The command gets LEASEHOLD_LEASE_ID, LEASEHOLD_LEASE_IDS, LEASEHOLD_NODE, LEASEHOLD_DEVICES, and \
CUDA_VISIBLE_DEVICES for the GPUs it was granted. The lease is renewed while it runs and given back when it ends; its \
exit status is passed on (128 and the signal where one ended it).

When the lease is revoked the command gets SIGTERM, what is left of grace to end, then SIGKILL; \
the exit status is then 1.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) asks: AskArgs,
    /// How long the lease outlives this command if it is killed; it is renewed well before
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) ttl: Ttl,
    #[command(flatten)]
    pub(crate) holder: HolderArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold lease renew lease-42 --ttl 1h")]
pub(crate) struct RenewArgs {
    /// The lease: `lease-42`, or its 32 digits
    pub(crate) lease: String,
    /// From now on for this long, such as 10m or 1h30m
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Ttl,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold lease revoke lease-42 --grace 5m      warns its holder; its gang falls with it")]
pub(crate) struct RevokeArgs {
    /// The lease: `lease-42`, or its 32 digits
    pub(crate) lease: String,
    /// Why
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) reason: Option<RevokeReason>,
    /// How long the holder has to get ready; 0s is legal [default: the pool's]
    #[arg(long, value_name = "TIME")]
    pub(crate) grace: Option<Ttl>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold lease list --tenant physics --state active
  leasehold lease list --node gpu-17 --watch
  leasehold lease list --node gpu-07 --at 2026-11-12T14:03
  leasehold lease list --tenant physics --from 2026-11-01 --until 2026-11-02 --state closed

Closed leases are included where a time, an allocation or `--state closed` is asked for. A lease is \
listed for a time if it was held then, from its grant to where its billing stopped.")]
pub(crate) struct LeaseListArgs {
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Only on this node
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Only in this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Only of this class
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,
    /// Only in this state
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) state: Option<LeaseState>,
    /// Only of this allocation: `alloc-42`, or 42
    #[arg(long, value_name = "ALLOCATION")]
    pub(crate) alloc: Option<String>,
    #[command(flatten)]
    pub(crate) past: PastArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

/// An instant as people write it.
pub(crate) fn instant(text: &str) -> Result<When, String> {
    text.parse::<When>().map_err(|error| error.to_string())
}
