//! `leasehold lease …`.

use super::remote::{ChangeArgs, WatchArgs, WhoseArgs, pair};
use super::select::LeasesArgs;
use super::times::PastArgs;
use clap::{Args, Subcommand};
use leasehold_api::{LeaseState, Priority, RevokeReason, Ttl};
use std::ffi::OsString;

#[derive(Debug, Subcommand)]
pub(crate) enum LeaseCommand {
    /// Request a lease
    Request(RequestArgs),
    /// Show what a request would cost and whether it would be granted, without changing anything
    Quote(QuoteArgs),
    /// Run a command under a lease: request it, renew it while the command runs, release it
    Run(RunArgs),
    /// Renew a lease: move its deadline
    Renew(RenewArgs),
    /// Release a lease
    Release(LeaseArgs),
    /// Revoke leases
    Revoke(Box<RevokeArgs>),
    /// Report, during the grace period, that nothing runs on a revoked lease any more
    Ready(LeaseArgs),
    /// List leases that are not closed, or those of a given time
    List(LeaseListArgs),
    /// Show one lease, also after it was closed
    Show(LeaseShowArgs),
    /// Print all records about a lease
    History(LeaseShowArgs),
    /// Explain why a lease was placed where it is, and how it ended
    Explain(LeaseShowArgs),
    /// Confirm that fenced capacity is clean, so that it can be leased again
    Unfence(Box<UnfenceArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// The lease: `lease-42`, or the 32 hexadecimal digits of its ID
    pub(crate) lease: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LeaseShowArgs {
    /// The lease: `lease-42`, or the 32 hexadecimal digits of its ID
    pub(crate) lease: String,
}

/// The quantities that are requested. All of them are placed on one node.
#[derive(Clone, Debug, Args)]
#[group(id = "asks", required = true, multiple = true)]
pub(crate) struct AskArgs {
    /// Number of GPUs, such as 2 or 1/7; if there are several GPU classes, use --class
    #[arg(long, value_name = "QUANTITY")]
    pub(crate) gpu: Option<String>,
    /// Number of cores, such as 8 or 500m; if there are several CPU classes, use --class
    #[arg(long, value_name = "QUANTITY")]
    pub(crate) cpu: Option<String>,
    /// Amount of memory, such as 80GiB; if there are several memory classes, use --class
    #[arg(long, value_name = "QUANTITY")]
    pub(crate) mem: Option<String>,
    /// Quantity of this resource class, such as gpu-h100=2; repeatable
    #[arg(long = "class", value_name = "NAME=QUANTITY", value_parser = pair)]
    pub(crate) classes: Vec<(String, String)>,
}

/// Who holds the lease, and on which nodes.
#[derive(Clone, Debug, Args)]
pub(crate) struct HolderArgs {
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Use only this node
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Use only nodes with this label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// Reference of your own that is stored in the records as `affected_hcl_entry`
    #[arg(long, value_name = "TEXT")]
    pub(crate) hcl_entry: Option<String>,
    /// ID of the DRA claim that the lease serves, stored in the records
    #[arg(long, value_name = "TEXT")]
    pub(crate) dra_claim_id: Option<String>,
}

/// Who holds the capacity, and how it is scheduled.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhoArgs {
    /// Tenant that holds the capacity [default: the tenant of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Project that is charged [default: the project of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// User that makes the request [default: the user of the token, if it has one]
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Name of the workload, by which usage can be reported
    #[arg(long, value_name = "TEXT")]
    pub(crate) workload: Option<String>,
    /// App instance of the project that it is for
    #[arg(long, value_name = "NAME")]
    pub(crate) app_instance: Option<String>,
    /// The control plane of the app instance, which usage, cost and invoices show apart from workloads
    #[arg(long, requires = "app_instance")]
    pub(crate) control_plane: bool,
    /// Priority class; a higher class may preempt a lower one [default: standard]
    #[arg(long, value_enum, value_name = "PRIORITY")]
    pub(crate) priority: Option<Priority>,
    /// Use only nodes of this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Sensitive work: use only nodes that the user has claimed; needs a user
    #[arg(long)]
    pub(crate) sensitive: bool,
    /// Correlation ID that groups related requests: a UUID or 32 hexadecimal digits [default: derived from the record]
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
    /// How long the lease is granted for, such as 10m or 1h30m
    #[arg(long, value_name = "DURATION")]
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
    /// How long the lease is granted for, such as 10m or 1h30m
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Ttl,
    #[command(flatten)]
    pub(crate) holder: HolderArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold lease run --gpu 2 --ttl 10m --project lattice -- python train.py

The environment of the command contains LEASEHOLD_LEASE_ID, LEASEHOLD_LEASE_IDS, LEASEHOLD_NODE, LEASEHOLD_DEVICES, \
and CUDA_VISIBLE_DEVICES for the granted GPUs. The lease is renewed while the command runs and released when it ends. \
The exit status is that of the command (128 plus the signal number if a signal ended it).

If the lease is revoked, the command gets SIGTERM, and SIGKILL at the end of the grace period; the exit status is \
then 1.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) asks: AskArgs,
    /// TTL of the lease, which is renewed well before it ends; if this program is killed, the lease ends after at most
    /// this time
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub(crate) ttl: Ttl,
    #[command(flatten)]
    pub(crate) holder: HolderArgs,
    /// Command to run, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold lease renew lease-42 --ttl 1h")]
pub(crate) struct RenewArgs {
    /// The lease: `lease-42`, or the 32 hexadecimal digits of its ID
    pub(crate) lease: String,
    /// New TTL counted from now, such as 10m or 1h30m
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Ttl,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold lease revoke lease-42 --grace 5m      # give the holder five minutes
  leasehold lease revoke --tenant physics         # shows which leases would be revoked
  leasehold lease revoke --tenant physics --project lattice --rack r7 --yes

The other leases of its gang are revoked as well. A selection consists of active leases unless --state is given; every \
gang gets a record of its own. If some cannot be revoked, the others are, and the exit code is 1.")]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    pub(crate) of: LeasesArgs,
    /// Reason to record [default: operator]
    #[arg(long, value_enum, value_name = "REASON")]
    pub(crate) reason: Option<RevokeReason>,
    /// Grace period, in which the holder can save its work; may be 0s [default: that of the pool]
    #[arg(long, value_name = "DURATION")]
    pub(crate) grace: Option<Ttl>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold lease unfence lease-42
  leasehold lease unfence --rack r7               # shows which leases would be unfenced
  leasehold lease unfence --rack r7 --yes")]
pub(crate) struct UnfenceArgs {
    #[command(flatten)]
    pub(crate) of: LeasesArgs,
    /// Reason in a few words, which the record keeps
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold lease list --tenant physics --state active
  leasehold lease list --node gpu-17 --watch
  leasehold lease list --node gpu-07 --at \"2026-11-12 14:03\" --time-zone Europe/Tallinn
  leasehold lease list --tenant physics --window yesterday --state closed

Closed leases are included if a time (--at, --from, --until), --alloc or --state closed is given. A lease is listed \
for a time if it was held then, that is, between its grant and the end of its billing.")]
pub(crate) struct LeaseListArgs {
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Only leases on this node
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Only leases in this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Only leases of this class
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,
    /// Only leases in this state
    #[arg(long, value_enum, value_name = "STATE")]
    pub(crate) state: Option<LeaseState>,
    /// Only leases of this allocation: `alloc-42` or 42
    #[arg(long, value_name = "ALLOCATION")]
    pub(crate) alloc: Option<String>,
    #[command(flatten)]
    pub(crate) past: PastArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}
