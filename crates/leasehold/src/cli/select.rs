//! Selectors: several nodes or leases by what they have in common.

use super::remote::{ChangeArgs, pair};
use clap::{Args, ValueEnum};
use leasehold_api::{LeaseState, WithReason};

/// The state of a node, for selecting nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodeState {
    Ready,
    Drained,
    Lost,
    Claimed,
    Wiping,
    Quarantined,
}

/// Where nodes are, and what they are called.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlaceArgs {
    /// Only in this pool
    #[arg(long, value_name = "NAME", group = "selector")]
    pub(crate) pool: Option<String>,
    /// Only in this rack
    #[arg(long, value_name = "NAME", group = "selector")]
    pub(crate) rack: Option<String>,
    /// Only in this zone
    #[arg(long, value_name = "NAME", group = "selector")]
    pub(crate) zone: Option<String>,
    /// Only on nodes with this label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair, group = "selector")]
    pub(crate) labels: Vec<(String, String)>,
}

/// Whether a selection is changed, or only shown.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct YesArgs {
    /// Make the change; without it, a selection is only shown
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Why the operator does it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ReasonArgs {
    /// Reason in a few words; the record keeps it, and `node show` shows it while a node is drained
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

impl ReasonArgs {
    pub(crate) fn body(&self) -> WithReason {
        WithReason { reason: self.reason.clone() }
    }
}

/// Nodes by name, or a selection of them.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("selector").multiple(true))]
#[command(after_help = "\
Examples:
  leasehold node drain gpu-17 gpu-18
  leasehold node drain --rack r7                  # shows which nodes would be drained
  leasehold node drain --rack r7 --reason 'new power supplies' --yes
  leasehold node resume --zone z1 --label driver=570 --state drained --yes

Every node gets a record of its own. If some cannot be changed, the others are, and the exit code is 1.")]
pub(crate) struct NodesArgs {
    /// Names or numbers of nodes
    #[arg(value_name = "NODE", required_unless_present = "selector", conflicts_with = "selector")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Only nodes in this state
    #[arg(long, value_enum, value_name = "STATE", group = "selector")]
    pub(crate) state: Option<NodeState>,
    #[command(flatten)]
    pub(crate) reason: ReasonArgs,
    #[command(flatten)]
    pub(crate) yes: YesArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Leases by number, or a selection of them.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("selector").multiple(true))]
pub(crate) struct LeasesArgs {
    /// Leases: `lease-42`, or the 32 hexadecimal digits of the ID
    #[arg(value_name = "LEASE", required_unless_present = "selector", conflicts_with = "selector")]
    pub(crate) leases: Vec<String>,
    /// Only leases of this tenant
    #[arg(long, value_name = "NAME", group = "selector")]
    pub(crate) tenant: Option<String>,
    /// Only leases of this project
    #[arg(long, value_name = "NAME", group = "selector")]
    pub(crate) project: Option<String>,
    /// Only leases on this node
    #[arg(long, value_name = "NAME", group = "selector")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Only leases in this state
    #[arg(long, value_enum, value_name = "STATE", group = "selector")]
    pub(crate) state: Option<LeaseState>,
    #[command(flatten)]
    pub(crate) yes: YesArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
