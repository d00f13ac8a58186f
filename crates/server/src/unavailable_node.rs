//! Why a node that a request named takes nothing of it, however much is free there.

use leasehold_api::Problem;
use leasehold_engine::{Custody, Node, State};
use leasehold_model::{Identity, NodeNo};

/// A denial for want of room that is better told by the state of the node that was named, as it is now.
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
    let detail = format!("Node \"{}\" {words}; name another, or none.", node.name);
    Problem { detail, ..denied }.with("node", node.name.as_str()).with("node_state", word)
}

/// The state in a word, and what to say of it. Who has claimed it is nobody's business here.
fn why(node: &Node, who: &Identity, sensitive: bool) -> Option<(&'static str, &'static str)> {
    if node.lost {
        return Some(("lost", "is lost and takes nothing until it returns"));
    }
    let words = match node.custody {
        Custody::Open => None,
        Custody::Claimed(claim) if who.tenant == Some(claim.by.tenant) && who.user == Some(claim.by.user) => {
            (!sensitive).then_some("is claimed for sensitive work, which this is not")
        }
        Custody::Claimed(_) => Some("is claimed for another user's sensitive work"),
        Custody::Wiping { .. } => Some("is being wiped"),
        Custody::Quarantined { .. } => Some("is quarantined until an operator vouches for it"),
    };
    match words {
        Some(words) => Some((node.custody.word(), words)),
        None if node.drained => Some(("drained", "is drained and takes nothing new")),
        None => None,
    }
}
