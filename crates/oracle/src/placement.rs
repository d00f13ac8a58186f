//! The score of a node, computed in the simplest way (SEMANTICS 5).
//!
//! Written from `docs/reference/placement.md`, which defines the order of divisions.

use leasehold_model::{Name, NodeNo, Sensitivity, Weights};

/// Scores are integers; this is one.
const ONE: u128 = 1 << 20;

/// One class of a request on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassSeen {
    pub asked: u64,
    pub free: u64,
    pub total: u64,
    pub sensitivity: Option<Sensitivity>,
}

/// The location of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    pub node: NodeNo,
    pub rack: Option<Name>,
    pub zone: Option<Name>,
}

/// A node before the placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    pub site: Site,
    /// Thousandths.
    pub heat: u16,
    pub classes: Vec<ClassSeen>,
}

/// The plain mean over the classes.
fn plain_mean(classes: &[ClassSeen], term: impl Fn(&ClassSeen) -> u128) -> u128 {
    classes.iter().map(term).sum::<u128>() / classes.len() as u128
}

/// The mean over the classes, weighted by the sensitivity of the workload.
fn mean(classes: &[ClassSeen], term: impl Fn(&ClassSeen) -> u128) -> u128 {
    let times = |class: &ClassSeen| match class.sensitivity {
        Some(Sensitivity::Critical) => 8,
        Some(Sensitivity::Moderate) => 4,
        Some(Sensitivity::Low) | None => 2,
        Some(Sensitivity::Indifferent | Sensitivity::Unused) => 1,
    };
    let each: Vec<u128> = classes.iter().flat_map(|class| vec![term(class); times(class)]).collect();
    each.iter().sum::<u128>() / each.len() as u128
}

fn halves(site: &Site, peer: &Site) -> u128 {
    let same_rack = site.rack.is_some() && site.rack == peer.rack && site.zone == peer.zone;
    if site.node == peer.node || same_rack {
        2
    } else if site.zone.is_some() && site.zone == peer.zone {
        1
    } else {
        0
    }
}

/// The score of a node.
pub fn score(node: &NodeSeen, peers: &[Site], weights: Weights) -> u64 {
    let in_use = |class: &ClassSeen| u128::from(class.total - class.free + class.asked) * ONE / u128::from(class.total);
    let pressure = mean(&node.classes, |class| ONE - in_use(class));
    let fit = mean(&node.classes, |class| u128::from(class.asked) * ONE / u128::from(class.free));
    let fragmentation = plain_mean(&node.classes, in_use);
    let near: u128 = peers.iter().map(|peer| halves(&node.site, peer)).sum();
    let locality = if peers.is_empty() { 0 } else { near * ONE / (2 * peers.len() as u128) };
    let weighed = [
        (weights.pressure, pressure),
        (weights.fit, fit),
        (weights.locality, locality),
        (weights.fragmentation, fragmentation),
    ];
    let sum = weighed.iter().map(|(weight, term)| u128::from(*weight) * term).sum::<u128>() / 1000;
    u64::try_from(sum * u128::from(1000 - node.heat) / 1000).expect("at most one")
}
