//! `leasehold node reserve`, `node windows` and `node unreserve`.

use super::remote::ChangeArgs;
use super::select::PlaceArgs;
use clap::Args;
use leasehold_api::Moment;

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("selector").multiple(true))]
#[command(after_help = "\
Examples:
  leasehold node reserve gpu-17 --until 4h --reason 'fan replacement'
  leasehold node reserve --rack r7 --from 'friday 06:00' --until 'friday 10:00' --reason firmware

Nothing is granted or renewed on the nodes past the start of the window. What still runs then is revoked with the grace
of its pool. The nodes are drained until the window ends.")]
pub(crate) struct NodeReserveArgs {
    /// Names or numbers of the nodes
    #[arg(value_name = "NODE", required_unless_present = "selector", conflicts_with = "selector")]
    pub(crate) nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// When the window begins: a time, a date, a weekday, or a duration from now (2d, 12h) [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Moment>,
    /// When the window ends
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Moment,
    /// Why the nodes are reserved; shown to the holders of leases on them
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NodeUnreserveArgs {
    /// Number of the window, as `leasehold node windows` shows it
    pub(crate) window: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
