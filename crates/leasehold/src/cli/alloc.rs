//! `leasehold alloc …`.

use super::lease::{AskArgs, WhoArgs};
use super::remote::{ChangeArgs, WatchArgs, WhoseArgs, pair, priority};
use super::times::PastArgs;
use clap::{Args, Subcommand, ValueEnum};
use leasehold_api::{AllocationState, Domain, Priority, Ttl, WhenOverQuota};

#[derive(Debug, Subcommand)]
pub(crate) enum AllocCommand {
    /// Submit a gang: it starts as a whole, or waits in the queue
    Submit(Box<SubmitArgs>),
    /// List allocations that have not ended, or those of a given time
    List(Box<AllocListArgs>),
    /// Show one allocation, also after it ended: its attempts, and why it waits
    Show(AllocShowArgs),
    /// Explain why an allocation waits, or why it was placed where it is
    Explain(AllocExplainArgs),
    /// Remove an allocation from the queue, or end it
    Cancel(AllocArgs),
    /// Put an allocation that waits on hold: it keeps its place and does not start
    Hold(HoldArgs),
    /// Release the hold of an allocation
    Release(AllocArgs),
    /// Change an allocation that waits
    Set(AllocSetArgs),
    /// Report that a checkpoint was begun or written
    Checkpoint(CheckpointArgs),
    /// Report that a staged allocation now runs
    Start(AllocArgs),
    /// Report that the work is done or has failed; the leases are released
    Complete(CompleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AllocExplainArgs {
    /// The allocation: `alloc-42` or 42
    pub(crate) allocation: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold alloc submit --gpu 8 --replicas 4 --walltime 2h --together rack --project lattice
  leasehold alloc submit --gpu 1 --walltime 30m --priority scavenger --requeue --project lattice
  leasehold alloc submit --gpu 8 --walltime 2h --project lattice --wait      # follow it until it runs or ends

Each replica is placed on one node. With a walltime, the allocation can be backfilled: it may start early where it \
delays nobody.")]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    pub(crate) asks: AskArgs,
    /// Number of replicas, each on one node; all are placed or none
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) replicas: u32,
    /// Longest time that one attempt may take, such as 2h; leases are not renewed beyond it
    #[arg(long, value_name = "DURATION")]
    pub(crate) walltime: Option<Ttl>,
    /// Initial TTL of its leases [default: the walltime, or the longest TTL of the pool]
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<Ttl>,
    /// Place all replicas in the same domain
    #[arg(long, value_enum, value_name = "DOMAIN")]
    pub(crate) together: Option<Domain>,
    /// Place each replica in a different domain
    #[arg(long, value_enum, value_name = "DOMAIN")]
    pub(crate) apart: Option<Domain>,
    /// Use only nodes with this label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// Reference of your own that is stored in the records as `affected_hcl_entry`
    #[arg(long, value_name = "TEXT")]
    pub(crate) hcl_entry: Option<String>,
    /// ID of the DRA claim that the allocation serves, stored in the records
    #[arg(long, value_name = "TEXT")]
    pub(crate) dra_claim_id: Option<String>,
    /// Begin in the state staging; `alloc start` reports when it runs
    #[arg(long)]
    pub(crate) staged: bool,
    /// Requeue instead of failing when interrupted without a checkpoint
    #[arg(long)]
    pub(crate) requeue: bool,
    /// What becomes of it if it would exceed a quota: refuse it, or let it wait for headroom [default: the tenant's]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) when_over_quota: Option<WhenOverQuota>,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Number of the attachment by which another project lends the capacity to the app instance, and pays for it
    #[arg(long, value_name = "NUMBER", requires = "app_instance")]
    pub(crate) attachment: Option<u64>,
    /// Wait until it runs or ends, and print why it waits
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

Ended allocations are included if a time (--at, --from, --until) or the state of an ended allocation is given. An \
allocation is listed for a time if it had been submitted and had not ended then.")]
pub(crate) struct AllocListArgs {
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Only allocations that request this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Only allocations in this state
    #[arg(long, value_enum, value_name = "STATE")]
    pub(crate) state: Option<AllocationState>,
    #[command(flatten)]
    pub(crate) past: PastArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AllocShowArgs {
    /// The allocation: `alloc-42` or 42
    pub(crate) allocation: String,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold alloc hold alloc-42 --reason 'input data is not complete'
  leasehold alloc release alloc-42

What an operator has put on hold is released only by an operator. Others do not wait for an allocation on hold.")]
pub(crate) struct HoldArgs {
    /// The allocation: `alloc-42` or 42
    pub(crate) allocation: String,
    /// Reason in a few words, which the record keeps
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// What can be cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllocField {
    Pool,
    Walltime,
    Ttl,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold alloc set alloc-42 --priority guaranteed
  leasehold alloc set alloc-42 --walltime 4h --requeue true
  leasehold alloc set alloc-42 --clear pool

The allocation keeps its time of submission.")]
pub(crate) struct AllocSetArgs {
    /// The allocation: `alloc-42` or 42
    pub(crate) allocation: String,
    /// New priority class, at most the highest that the tenant may use
    #[arg(long, value_name = "PRIORITY", value_parser = priority)]
    pub(crate) priority: Option<Priority>,
    /// Pool in which it must run
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Longest time that one attempt may run
    #[arg(long, value_name = "DURATION")]
    pub(crate) walltime: Option<Ttl>,
    /// TTL with which its leases are first granted
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<Ttl>,
    /// Requeue instead of failing when interrupted without a checkpoint
    #[arg(long, value_name = "BOOL")]
    pub(crate) requeue: Option<bool>,
    /// Remove this setting; repeatable
    #[arg(long, value_enum, value_name = "FIELD")]
    pub(crate) clear: Vec<AllocField>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AllocArgs {
    /// The allocation: `alloc-42` or 42
    pub(crate) allocation: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold alloc checkpoint alloc-42 --begin
  leasehold alloc checkpoint alloc-42 --bytes 80530636800 --took 45s

During the grace period of a revocation, a reported checkpoint also means that nothing runs any more: billing ends, \
and the allocation waits in the queue to be continued.")]
pub(crate) struct CheckpointArgs {
    /// The allocation: `alloc-42` or 42
    pub(crate) allocation: String,
    /// The checkpoint is being written
    #[arg(long, conflicts_with_all = ["bytes", "took"])]
    pub(crate) begin: bool,
    /// Size of the checkpoint in bytes
    #[arg(long, value_name = "N", required_unless_present = "begin")]
    pub(crate) bytes: Option<u64>,
    /// How long writing took, such as 45s
    #[arg(long, value_name = "DURATION", required_unless_present = "begin")]
    pub(crate) took: Option<Ttl>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold alloc complete alloc-42 --exit-status 0 --storage-written 1073741824")]
pub(crate) struct CompleteArgs {
    /// The allocation: `alloc-42` or 42
    pub(crate) allocation: String,
    /// Exit status of the work; above zero means that it failed [default: none, the work succeeded]
    #[arg(long, value_name = "N")]
    pub(crate) exit_status: Option<u32>,
    /// Bytes that it wrote to storage; 0 is the same as leaving it out: it is not known
    #[arg(long, value_name = "N")]
    pub(crate) storage_written: Option<u64>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
