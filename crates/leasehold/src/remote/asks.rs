//! What is asked for: `--gpu 2` finds its class where there is one.

use super::node::map;
use super::told::Failed;
use super::units::Classes;
use crate::cli::lease::{AskArgs, HolderArgs};
use crate::problem::Problem;
use leasehold_api::{Ask, Kind, Quantity, RequestLease, Ttl};
use leasehold_client::Client;

/// The request, and the classes there are.
pub(super) async fn request(
    client: &Client,
    asks: &AskArgs,
    holder: &HolderArgs,
    ttl: Ttl,
) -> Result<(RequestLease, Classes), Failed> {
    let by_kind = [(&asks.gpu, Kind::Gpu, "gpu"), (&asks.cpu, Kind::Cpu, "cpu"), (&asks.mem, Kind::Mem, "mem")];
    let classes = Classes::load(client).await?;
    let mut wanted = Vec::new();
    for (quantity, kind, word) in by_kind {
        if let Some(quantity) = quantity {
            wanted.push(Ask { class: only(&classes, kind, word, quantity)?, quantity: Quantity(quantity.clone()) });
        }
    }
    wanted.extend(
        asks.classes.iter().map(|(class, quantity)| Ask { class: class.clone(), quantity: Quantity(quantity.clone()) }),
    );
    let holder = holder.clone();
    let request = RequestLease {
        tenant: holder.tenant,
        project: holder.project,
        user: holder.user,
        workload: holder.workload,
        asks: wanted,
        ttl,
        priority: holder.priority.map(Into::into),
        pool: holder.pool,
        node: holder.node,
        labels: map(&holder.labels, str::to_owned)?,
        sensitive: holder.sensitive,
        correlation_id: holder.correlation_id,
        hcl_entry: holder.hcl_entry,
        dra_claim_id: holder.dra_claim_id,
    };
    Ok((request, classes))
}

/// The one class of a kind.
fn only(classes: &Classes, kind: Kind, word: &str, quantity: &str) -> Result<String, Problem> {
    let names: Vec<&str> =
        classes.0.iter().filter(|class| class.kind == kind).map(|class| class.name.as_str()).collect();
    match names.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(Problem::refused("unknown_class", format!("there is no class of kind {word}"))
            .advice("`leasehold class list` shows those there are")),
        several => Err(Problem::usage("class_needed", format!("there is more than one class of kind {word}"))
            .advice(format!("choose with --class NAME={quantity}: {}", several.join(", ")))),
    }
}
