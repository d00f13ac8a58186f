//! Why a node that a request named cannot be used, even if it has free capacity.

use leasehold_api::Problem;
use leasehold_engine::{Custody, Node, State};
use leasehold_model::{Identity, NodeNo};

/// Replaces the detail of a capacity denial if the node that the request named is unavailable.
pub(crate) fn explain_unavailable_node(
    state: &State,
    who: &Identity,
    sensitive: bool,
    node: Option<NodeNo>,
    denied: Problem,
) -> Problem {
    let node = node.and_then(|node| state.node(node));
    let Some((node, (word, words))) = node.and_then(|node| Some((node, why(node, who, sensitive)?))) else {
        return denied;
    };
    let detail = format!("Node \"{}\" {words}; name another node, or none.", node.name);
    Problem { detail, ..denied }.with("node", node.name.as_str()).with("node_state", word)
}

/// The state as a word, and the reason as part of a sentence. The claim's holder is not named: the caller may not know
/// it.
fn why(node: &Node, who: &Identity, sensitive: bool) -> Option<(&'static str, &'static str)> {
    if node.lost {
        return Some(("lost", "is lost and unavailable until it returns"));
    }
    let words = match node.custody {
        Custody::Open => None,
        Custody::Claimed(claim) if who.tenant == Some(claim.by.tenant) && who.user == Some(claim.by.user) => {
            (!sensitive).then_some("is claimed for sensitive work, and this request is not sensitive")
        }
        Custody::Claimed(_) => Some("is claimed for another user's sensitive work"),
        Custody::Wiping { .. } => Some("is being wiped"),
        Custody::Quarantined { .. } => Some("is quarantined until an operator clears it"),
    };
    match words {
        Some(words) => Some((node.custody.word(), words)),
        None if node.windows.open > 0 && !node.drained => {
            Some(("drained", "is reserved for maintenance and accepts no new work"))
        }
        None if node.drained => Some(("drained", "is drained and accepts no new work")),
        None => None,
    }
}
