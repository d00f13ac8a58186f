//! The custody of nodes as the API shows it.

use leasehold_api as api;
use leasehold_api::When;
use leasehold_engine::{Claim, Custody, Node, State};
use leasehold_model::Name;

pub(crate) fn holder(state: &State, claim: Claim) -> api::ClaimHolder {
    let text = |name: Option<&Name>| name.map_or_else(String::new, |name| name.as_str().to_owned());
    api::ClaimHolder {
        tenant: text(state.tenant(claim.by.tenant).map(|tenant| &tenant.settings.name)),
        tenant_id: claim.by.tenant.0,
        project: text(state.project(claim.project).map(|project| &project.name)),
        project_id: claim.project.0,
        user: text(state.user(claim.by.user).map(|user| &user.name)),
        user_id: claim.by.user.0,
    }
}

pub(crate) fn custody(state: &State, custody: Custody) -> api::Custody {
    let state_word = custody.state();
    let shown =
        |since| api::Custody { state: state_word, since, holder: None, until: None, wipe_by: None, cause: None };
    match custody {
        Custody::Open => shown(None),
        Custody::Claimed(claim) => {
            let (holder, until) = (Some(holder(state, claim)), claim.until.map(When));
            api::Custody { holder, until, ..shown(Some(When(claim.since))) }
        }
        Custody::Wiping { since, limit_at, .. } => {
            api::Custody { wipe_by: Some(When(limit_at)), ..shown(Some(When(since))) }
        }
        Custody::Quarantined { cause, since } => api::Custody { cause: Some(cause), ..shown(Some(When(since))) },
    }
}

pub(crate) fn claimed_node(state: &State, node: &Node) -> api::ClaimedNode {
    api::ClaimedNode {
        node: node.name.as_str().to_owned(),
        node_id: node.number.0,
        pool: state.pool(node.pool).map_or_else(String::new, |pool| pool.name.as_str().to_owned()),
        custody: custody(state, node.custody),
    }
}
