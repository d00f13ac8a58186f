//! Builds lease requests from the options; `--gpu 2` finds its class if there is only one of that kind.

use super::failure::Failed;
use super::pairs::by_key;
use super::units::Classes;
use crate::cli::lease::{AskArgs, HolderArgs};
use crate::problem::Problem;
use leasehold_api::{Ask, Kind, Quantity, RequestLease, Ttl};
use leasehold_client::Client;

/// The request, and all classes.
pub(super) async fn request(
    client: &Client,
    asks: &AskArgs,
    holder: &HolderArgs,
    ttl: Ttl,
) -> Result<(RequestLease, Classes), Failed> {
    let (wanted, classes) = wanted(client, asks).await?;
    let HolderArgs { who, node, labels, hcl_entry, dra_claim_id } = holder.clone();
    let request = RequestLease {
        tenant: who.tenant,
        project: who.project,
        user: who.user,
        workload: who.workload,
        asks: wanted,
        ttl,
        priority: who.priority,
        pool: who.pool,
        node,
        labels: by_key("--label", &labels, String::clone)?,
        app_instance: who.app_instance,
        control_plane: who.control_plane,
        sensitive: who.sensitive,
        correlation_id: who.correlation_id,
        hcl_entry,
        dra_claim_id,
    };
    Ok((request, classes))
}

/// The requested quantities, and all classes.
pub(super) async fn wanted(client: &Client, asks: &AskArgs) -> Result<(Vec<Ask>, Classes), Failed> {
    let by_kind = [(&asks.gpu, Kind::Gpu, "gpu"), (&asks.cpu, Kind::Cpu, "cpu"), (&asks.mem, Kind::Mem, "mem")];
    by_key("--class", &asks.classes, |_| ())?;
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
    Ok((wanted, classes))
}

/// The only class of a kind.
fn only(classes: &Classes, kind: Kind, word: &str, quantity: &str) -> Result<String, Problem> {
    let names: Vec<&str> =
        classes.0.iter().filter(|class| class.kind == kind).map(|class| class.name.as_str()).collect();
    match names.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(Problem::refused("unknown_class", format!("there is no class of kind {word}"))
            .advice("`leasehold class list` lists the classes")),
        several => Err(Problem::usage("class_needed", format!("there is more than one class of kind {word}"))
            .advice(format!("choose one with --class NAME={quantity}: {}", several.join(", ")))),
    }
}
