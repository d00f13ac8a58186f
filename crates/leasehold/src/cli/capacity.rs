//! `leasehold class …`, `pool …` and `node …`.

use super::remote::{ChangeArgs, ChangeOneArgs, OneArgs, WatchArgs, pair, priority};
use super::select::NodesArgs;
use super::window::{NodeReserveArgs, NodeUnreserveArgs};
use clap::{Args, Subcommand, ValueEnum};
use leasehold_api::{BadWeight, Moment, Ttl, Weight, Weights};
use leasehold_api::{Kind, Strategy, Teardown};

#[derive(Debug, Subcommand)]
pub(crate) enum ClassCommand {
    /// List all classes
    List,
    /// Show one class
    Show(OneArgs),
    /// Create a class; classes cannot be deleted, because the journal refers to them
    Create(ClassCreateArgs),
    /// Change a class; kind, tier and quanta per unit are fixed once the class is used
    Set(ClassSetArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold class create gpu-h100 --kind gpu --tier h100 --quanta-per-unit 7     # can be leased in sevenths
  leasehold class create mem-dram --kind mem --tier dram")]
pub(crate) struct ClassCreateArgs {
    /// Name of the class
    pub(crate) name: String,
    /// Kind of resource
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Kind,
    /// Tier or model, such as h100, dram, cxl or rdma
    #[arg(long, value_name = "TEXT")]
    pub(crate) tier: Option<String>,
    /// Number of quanta, the smallest leasable parts, in one GPU, core, GiB or Gb/s [default: depends on the kind]
    #[arg(long, value_name = "N")]
    pub(crate) quanta_per_unit: Option<u64>,
    /// Count unused capacity of this class as premium waste
    #[arg(long)]
    pub(crate) premium: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassField {
    Tier,
}

#[derive(Debug, Args)]
pub(crate) struct ClassSetArgs {
    /// Name or number of the class
    pub(crate) class: String,
    /// New name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Kind of resource
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// Tier or model
    #[arg(long, value_name = "TEXT")]
    pub(crate) tier: Option<String>,
    /// Number of quanta, the smallest leasable parts, in one billing unit
    #[arg(long, value_name = "N")]
    pub(crate) quanta_per_unit: Option<u64>,
    /// Whether unused capacity of this class counts as premium waste
    #[arg(long, value_name = "BOOL")]
    pub(crate) premium: Option<bool>,
    /// Remove this setting
    #[arg(long, value_enum, value_name = "FIELD")]
    pub(crate) clear: Vec<ClassField>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// List all pools
    List,
    /// Show one pool
    Show(OneArgs),
    /// Create a pool
    Create(PoolCreateArgs),
    /// Change a pool; options that are not given keep their values
    Set(PoolSetArgs),
    /// Delete a pool that has no nodes
    Delete(ChangeOneArgs),
}

/// Limits of a pool. Limits per priority class replace those of all three classes.
#[derive(Debug, Args)]
pub(crate) struct PoolLimitArgs {
    /// Placement strategy [default: spread]
    #[arg(long, value_enum, value_name = "STRATEGY")]
    pub(crate) strategy: Option<Strategy>,
    /// Longest TTL per priority class, such as standard=8h; repeatable, and replaces all earlier values
    #[arg(long, value_name = "PRIORITY=DURATION", value_parser = span_by_priority)]
    pub(crate) ttl_max: Vec<(String, Ttl)>,
    /// Longest time from grant to deadline, renewals included, per priority class; repeatable, and replaces all earlier
    /// values
    #[arg(long, value_name = "PRIORITY=DURATION", value_parser = span_by_priority)]
    pub(crate) lifetime_max: Vec<(String, Ttl)>,
    /// Grace period of revocations
    #[arg(long, value_name = "DURATION")]
    pub(crate) grace: Option<Ttl>,
    /// Weights of pressure, fit, locality and fragmentation in placement scores, such as 0.5,0.2,0.2,0.1
    /// [default: those of the strategy]
    #[arg(long, value_name = "P,F,L,FR", value_parser = weights)]
    pub(crate) weights: Option<Weights>,
    /// How long a lease is held before it may be evicted [default: 0s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) min_runtime_before_eviction: Option<Ttl>,
    /// How often an allocation is requeued before it fails [default: 10]
    #[arg(long, value_name = "COUNT")]
    pub(crate) requeue_limit: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold pool create training --strategy bin_pack --ttl-max standard=8h --grace 5m")]
pub(crate) struct PoolCreateArgs {
    /// Name of the pool
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) limits: PoolLimitArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoolField {
    TtlMax,
    LifetimeMax,
    Grace,
    Weights,
    MinRuntimeBeforeEviction,
    RequeueLimit,
}

#[derive(Debug, Args)]
pub(crate) struct PoolSetArgs {
    /// Name or number of the pool
    pub(crate) pool: String,
    /// New name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) limits: PoolLimitArgs,
    /// Remove this setting; repeatable
    #[arg(long, value_enum, value_name = "FIELD")]
    pub(crate) clear: Vec<PoolField>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List all nodes and the use of their capacity
    List(NodeListArgs),
    /// Show one node
    Show(OneArgs),
    /// Explain why a node gets work or gets none
    Explain(OneArgs),
    /// Create a node
    Create(NodeCreateArgs),
    /// Change a node; options that are not given keep their values
    Set(NodeSetArgs),
    /// Delete a node that has no leases
    Delete(ChangeOneArgs),
    /// Drain nodes: place nothing new on them; their leases continue
    Drain(Box<NodesArgs>),
    /// Resume drained nodes
    Resume(Box<NodesArgs>),
    /// Reserve nodes for maintenance: nothing runs there from its start until its end
    Reserve(Box<NodeReserveArgs>),
    /// List maintenance windows that have not ended
    Windows,
    /// Cancel a maintenance window
    Unreserve(NodeUnreserveArgs),
    /// Declare a node lost; its leases end at the time when it was last seen
    Lose(NodeLoseArgs),
    /// Report that the work of an allocation could not be started on a node; its leases are released
    FailedStart(NodeFailedStartArgs),
    /// Declare that a lost node has returned
    Return(ChangeOneArgs),
    /// Report that a released node was wiped; it becomes available again
    Wiped(ChangeOneArgs),
    /// Report that the wipe of a released node failed; it is quarantined
    WipeFailed(ChangeOneArgs),
    /// Confirm that a quarantined node is clean; it becomes available again
    ClearQuarantine(ChangeOneArgs),
    /// Remove the registration of the node's agent, so that another agent can register
    DetachAgent(ChangeOneArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct NodeListArgs {
    /// Only nodes of this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Only nodes without leases, reservations and claims for this long or longer, such as 30m; shows since when, and
    /// what they could have earned at the scavenger price
    #[arg(long, value_name = "DURATION")]
    pub(crate) empty_for: Option<Ttl>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold node create gpu-17 --pool training --rack r7 --class gpu-h100=8 --class mem-dram=1TiB")]
pub(crate) struct NodeCreateArgs {
    /// Name of the node
    pub(crate) name: String,
    /// Pool that the node belongs to
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: String,
    /// Rack that the node is in
    #[arg(long, value_name = "TEXT")]
    pub(crate) rack: Option<String>,
    /// Zone that the node is in
    #[arg(long, value_name = "TEXT")]
    pub(crate) zone: Option<String>,
    /// Label that requests can ask for; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// Whether an agent confirms teardowns, or capacity is free immediately [default: confirmed]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) teardown: Option<Teardown>,
    /// Capacity in this class, such as gpu-h100=8; repeatable [default: what the agent reports]
    #[arg(long = "class", value_name = "NAME=QUANTITY", value_parser = pair)]
    pub(crate) capacity: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodeField {
    Rack,
    Zone,
    Labels,
}

#[derive(Debug, Args)]
pub(crate) struct NodeSetArgs {
    /// Name or number of the node
    pub(crate) node: String,
    /// New name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Move the node to this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Rack that the node is in
    #[arg(long, value_name = "TEXT")]
    pub(crate) rack: Option<String>,
    /// Zone that the node is in
    #[arg(long, value_name = "TEXT")]
    pub(crate) zone: Option<String>,
    /// Label that requests can ask for; repeatable, and replaces all earlier labels
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// Whether an agent confirms teardowns, or capacity is free immediately
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) teardown: Option<Teardown>,
    /// Capacity in this class, such as gpu-h100=8; repeatable, and replaces all earlier capacity
    #[arg(long = "class", value_name = "NAME=QUANTITY", value_parser = pair)]
    pub(crate) capacity: Vec<(String, String)>,
    /// Remove this setting; repeatable
    #[arg(long, value_enum, value_name = "FIELD")]
    pub(crate) clear: Vec<NodeField>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NodeLoseArgs {
    /// Name or number of the node
    pub(crate) name: String,
    /// When the node was last seen, such as 2026-03-01T12:00, "today 14:03", or 10m for ten minutes ago; billing ends
    /// there [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) last_seen: Option<Moment>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold node failed-start gpu-17 alloc-42

Only while the allocation is staging. What is charged for its leases is set with `rate policy set --failed-start`.")]
pub(crate) struct NodeFailedStartArgs {
    /// Name or number of the node
    pub(crate) name: String,
    /// The allocation: `alloc-42` or 42
    pub(crate) allocation: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Parses `0.5,0.2,0.2,0.1`. The daemon checks that they add up to one.
fn weights(text: &str) -> Result<Weights, String> {
    let parts = text.split(',').map(|part| part.trim().parse().map_err(|error: BadWeight| error.to_string()));
    let parts = parts.collect::<Result<Vec<Weight>, _>>()?;
    let [pressure, fit, locality, fragmentation] = parts[..] else {
        return Err("expected four weights: pressure, fit, locality, fragmentation".into());
    };
    Ok(Weights { pressure, fit, locality, fragmentation })
}

/// `standard=8h`.
fn span_by_priority(text: &str) -> Result<(String, Ttl), String> {
    let (word, span) = pair(text)?;
    let span = span.parse().map_err(|error: leasehold_model::instant::BadSpan| error.to_string())?;
    Ok((priority(&word)?.word().to_owned(), span))
}
