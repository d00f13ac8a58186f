//! `leasehold class …`, `pool …` and `node …`.

use super::lease::instant;
use super::remote::{ChangeArgs, ChangeOneArgs, OneArgs, WatchArgs, pair, priority};
use clap::{Args, Subcommand, ValueEnum};
use leasehold_api::{BadWeight, Ttl, Weight, Weights, When};
use leasehold_api::{Kind, Strategy, Teardown};

#[derive(Debug, Subcommand)]
pub(crate) enum ClassCommand {
    /// All classes
    List,
    /// One class
    Show(OneArgs),
    /// Make a class; classes are not deleted, for the journal speaks of them for ever
    Create(ClassCreateArgs),
    /// Change a class; its kind and pieces are fixed once it is used
    Set(ClassSetArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold class create gpu-h100 --kind gpu --tier h100 --quanta-per-unit 7     in sevenths
  leasehold class create mem-dram --kind mem --tier dram")]
pub(crate) struct ClassCreateArgs {
    pub(crate) name: String,
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) kind: Kind,
    /// The tier or model: h100, dram, cxl, rdma
    #[arg(long, value_name = "TEXT")]
    pub(crate) tier: Option<String>,
    /// How many of the smallest leasable pieces make one GPU, core, GiB or Gb/s [default: by kind]
    #[arg(long, value_name = "N")]
    pub(crate) quanta_per_unit: Option<u64>,
    /// Idle capacity of it counts as premium waste
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
    /// Its name or its number
    pub(crate) class: String,
    /// A new name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) kind: Option<Kind>,
    /// The tier or model
    #[arg(long, value_name = "TEXT")]
    pub(crate) tier: Option<String>,
    /// How many of the smallest leasable pieces make one billing unit
    #[arg(long, value_name = "N")]
    pub(crate) quanta_per_unit: Option<u64>,
    /// Whether idle capacity of it counts as premium waste
    #[arg(long, value_name = "BOOL")]
    pub(crate) premium: Option<bool>,
    /// Take this setting away
    #[arg(long, value_enum, value_name = "FIELD")]
    pub(crate) clear: Vec<ClassField>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// All pools
    List,
    /// One pool
    Show(OneArgs),
    /// Make a pool
    Create(PoolCreateArgs),
    /// Change a pool; what is not named stays as it is
    Set(PoolSetArgs),
    /// Delete a pool that has no nodes
    Delete(ChangeOneArgs),
}

/// Limits of a pool. Those by priority take the place of all three.
#[derive(Debug, Args)]
pub(crate) struct PoolLimitArgs {
    /// How nodes are chosen [default: spread]
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) strategy: Option<Strategy>,
    /// The longest TTL of a priority, such as standard=8h; may be given more than once
    #[arg(long, value_name = "PRIORITY=TIME", value_parser = span_by_priority)]
    pub(crate) ttl_max: Vec<(String, Ttl)>,
    /// The longest life with renewals of a priority; may be given more than once
    #[arg(long, value_name = "PRIORITY=TIME", value_parser = span_by_priority)]
    pub(crate) lifetime_max: Vec<(String, Ttl)>,
    /// How long a revoked holder has to get ready
    #[arg(long, value_name = "TIME")]
    pub(crate) grace: Option<Ttl>,
    /// How much pressure, fit, locality and fragmentation count, such as 0.5,0.2,0.2,0.1; instead of the strategy's
    #[arg(long, value_name = "P,F,L,FR", value_parser = weights)]
    pub(crate) weights: Option<Weights>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold pool create training --strategy bin_pack --ttl-max standard=8h --grace 5m")]
pub(crate) struct PoolCreateArgs {
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
}

#[derive(Debug, Args)]
pub(crate) struct PoolSetArgs {
    /// Its name or its number
    pub(crate) pool: String,
    /// A new name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) limits: PoolLimitArgs,
    /// Take this setting away; may be given more than once
    #[arg(long, value_enum, value_name = "FIELD")]
    pub(crate) clear: Vec<PoolField>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// All nodes, and where their capacity is
    List(NodeListArgs),
    /// One node
    Show(OneArgs),
    /// Why a node gets work, or gets none
    Explain(OneArgs),
    /// Make a node
    Create(NodeCreateArgs),
    /// Change a node; what is not named stays as it is
    Set(NodeSetArgs),
    /// Delete a node that has no leases
    Delete(ChangeOneArgs),
    /// Give out no more of a node; what is held on it stays
    Drain(ChangeOneArgs),
    /// Give a drained node out again
    Resume(ChangeOneArgs),
    /// Declare a node lost: its leases end as of when it was last seen
    Lose(NodeLoseArgs),
    /// A lost node is back
    Return(ChangeOneArgs),
    /// Say that a released node is clean: it takes work again
    Wiped(ChangeOneArgs),
    /// Say that a released node could not be wiped: it is quarantined
    WipeFailed(ChangeOneArgs),
    /// Vouch that a quarantined node is clean: it takes work again
    ClearQuarantine(ChangeOneArgs),
    /// Forget the node's agent, so that another may take up the node
    DetachAgent(ChangeOneArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct NodeListArgs {
    /// Only of this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold node create gpu-17 --pool training --rack r7 --class gpu-h100=8 --class mem-dram=1TiB")]
pub(crate) struct NodeCreateArgs {
    pub(crate) name: String,
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: String,
    #[arg(long, value_name = "TEXT")]
    pub(crate) rack: Option<String>,
    #[arg(long, value_name = "TEXT")]
    pub(crate) zone: Option<String>,
    /// May be given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// Whether an agent confirms each teardown, or there is none [default: confirmed]
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) teardown: Option<Teardown>,
    /// How much it has of a class; may be given more than once, or left to its agent
    #[arg(long = "class", value_name = "NAME=QTY", value_parser = pair)]
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
    /// Its name or its number
    pub(crate) node: String,
    /// A new name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    #[arg(long, value_name = "TEXT")]
    pub(crate) rack: Option<String>,
    #[arg(long, value_name = "TEXT")]
    pub(crate) zone: Option<String>,
    /// All its labels anew; may be given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) teardown: Option<Teardown>,
    /// All its capacity anew; may be given more than once
    #[arg(long = "class", value_name = "NAME=QTY", value_parser = pair)]
    pub(crate) capacity: Vec<(String, String)>,
    /// Take this setting away; may be given more than once
    #[arg(long, value_enum, value_name = "FIELD")]
    pub(crate) clear: Vec<NodeField>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NodeLoseArgs {
    /// Its name or its number
    pub(crate) name: String,
    /// When it was last seen, such as 2026-03-01T12:00:00Z; billing stops there [default: now]
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub(crate) last_seen: Option<When>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `0.5,0.2,0.2,0.1`. Whether they add up to one is the daemon's to say.
fn weights(text: &str) -> Result<Weights, String> {
    let parts = text.split(',').map(|part| part.trim().parse().map_err(|error: BadWeight| error.to_string()));
    let parts = parts.collect::<Result<Vec<Weight>, _>>()?;
    let [pressure, fit, locality, fragmentation] = parts[..] else {
        return Err("give four: pressure, fit, locality, fragmentation".into());
    };
    Ok(Weights { pressure, fit, locality, fragmentation })
}

/// `standard=8h`.
fn span_by_priority(text: &str) -> Result<(String, Ttl), String> {
    let (word, span) = pair(text)?;
    let span = span.parse().map_err(|error: leasehold_model::instant::BadSpan| error.to_string())?;
    Ok((priority(&word)?.word().to_owned(), span))
}
