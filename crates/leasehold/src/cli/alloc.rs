//! `leasehold alloc …`.

use super::lease::{AskArgs, WhoArgs};
use super::remote::{ChangeArgs, PastArgs, WatchArgs, WhoseArgs, pair};
use clap::{Args, Subcommand};
use leasehold_api::Ttl;
use leasehold_api::{AllocationState, Domain};

#[derive(Debug, Subcommand)]
pub(crate) enum AllocCommand {
    /// Ask for a gang: it starts whole, or waits in the queue
    Submit(Box<SubmitArgs>),
    /// Allocations that are not over; or those of any time, by number
    List(AllocListArgs),
    /// One allocation, also when it is over: its attempts, and why it waits
    Show(AllocShowArgs),
    /// Why an allocation waits, or why it started where it did
    Explain(AllocExplainArgs),
    /// Take an allocation out of the queue, or end it
    Cancel(AllocArgs),
    /// Report a checkpoint, or that one is begun
    Checkpoint(CheckpointArgs),
    /// Say that what was staged runs
    Start(AllocArgs),
    /// Say that the work is done, or has failed; its leases are given back
    Complete(CompleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AllocExplainArgs {
    /// The allocation: its number, or `alloc-42`
    pub(crate) allocation: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold alloc submit --gpu 8 --replicas 4 --walltime 2h --together rack --project lattice
  leasehold alloc submit --gpu 1 --walltime 30m --priority scavenger --requeue --project lattice
  leasehold alloc submit --gpu 8 --walltime 2h --project lattice --wait      until it runs or ends

Each replica lies on one node. A walltime lets others be promised the place, and lets it slip in \
where it delays nobody.")]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    pub(crate) asks: AskArgs,
    /// How many times that, each on one node, all or none
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) replicas: u32,
    /// How long an attempt may run in all, such as 2h; renewal stops there
    #[arg(long, value_name = "TIME")]
    pub(crate) walltime: Option<Ttl>,
    /// What its leases are granted for at first [default: the walltime, or what the pool allows]
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<Ttl>,
    /// All replicas within one of these
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) together: Option<Domain>,
    /// No two replicas within one of these
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) apart: Option<Domain>,
    /// Only on nodes with this label; may be given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// It gets ready first, and says with `alloc start` when it runs
    #[arg(long)]
    pub(crate) staged: bool,
    /// Where it ends against its will without a checkpoint, it waits again instead of failing
    #[arg(long)]
    pub(crate) requeue: bool,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Follow it until it runs or ends
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold alloc list --state pending
  leasehold alloc list --tenant physics --watch
  leasehold alloc list --state failed --from 7d

Allocations that are over are included where a time or such a state is asked for. An allocation is \
listed for a time if it had been submitted and was not over then.")]
pub(crate) struct AllocListArgs {
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Only those that must lie in this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Only in this state
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) state: Option<AllocationState>,
    #[command(flatten)]
    pub(crate) past: PastArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AllocShowArgs {
    /// The allocation: `alloc-42`, or 42
    pub(crate) allocation: String,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AllocArgs {
    /// The allocation: `alloc-42`, or 42
    pub(crate) allocation: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold alloc checkpoint alloc-42 --begin
  leasehold alloc checkpoint alloc-42 --bytes 80530636800 --took 45s

Within the grace of a revocation a reported checkpoint also says that nothing runs any more: its \
bill ends there, and it waits in the queue to go on.")]
pub(crate) struct CheckpointArgs {
    /// The allocation: `alloc-42`, or 42
    pub(crate) allocation: String,
    /// It is being written from now on
    #[arg(long, conflicts_with_all = ["bytes", "took"])]
    pub(crate) begin: bool,
    /// How large it is
    #[arg(long, value_name = "N", required_unless_present = "begin")]
    pub(crate) bytes: Option<u64>,
    /// How long it took to write, such as 45s
    #[arg(long, value_name = "TIME", required_unless_present = "begin")]
    pub(crate) took: Option<Ttl>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold alloc complete alloc-42 --exit-status 0 --storage-written 1073741824")]
pub(crate) struct CompleteArgs {
    /// The allocation: `alloc-42`, or 42
    pub(crate) allocation: String,
    /// What it ended with; above zero it failed
    #[arg(long, value_name = "N")]
    pub(crate) exit_status: Option<u32>,
    /// Bytes of storage that it wrote
    #[arg(long, value_name = "N")]
    pub(crate) storage_written: Option<u64>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
