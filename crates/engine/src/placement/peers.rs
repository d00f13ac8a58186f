//! Locality: how close a node is to the replicas that were placed before. The same rack counts one, the same zone half.

use super::node_tree::zone_bit;
use super::node_trees::{NOWHERE, NodeTrees};
use super::score::ONE;
use crate::view::View;
use leasehold_model::NodeNo;
use smallvec::SmallVec;

/// The number of peers in each zone and rack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    total: u64,
    zones: SmallVec<[(u32, u64); 4]>,
    racks: SmallVec<[(u32, u64); 8]>,
    /// Peers on nodes without a rack. Such a node counts as a rack of its own.
    nodes: SmallVec<[(NodeNo, u64); 4]>,
}

fn count<K: PartialEq>(counts: &mut SmallVec<impl smallvec::Array<Item = (K, u64)>>, key: K) {
    match counts.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += 1,
        None => counts.push((key, 1)),
    }
}

fn found<K: PartialEq>(counts: &[(K, u64)], key: &K) -> u64 {
    counts.iter().find(|(known, _)| known == key).map_or(0, |(_, count)| *count)
}

impl Peers {
    pub(crate) fn of(view: View<'_>, peers: &[NodeNo]) -> Self {
        let mut all = Self { total: peers.len() as u64, ..Self::default() };
        for peer in peers {
            let Some(node) = view.node(*peer) else { continue };
            let (zone, rack) = view.placement.trees.site(node);
            if zone != NOWHERE {
                count(&mut all.zones, zone);
            }
            match rack {
                NOWHERE => count(&mut all.nodes, *peer),
                rack => count(&mut all.racks, rack),
            }
        }
        all
    }

    pub(crate) fn is_none(&self) -> bool {
        self.total == 0
    }

    /// The locality for a sum of halves, two for each peer in the same rack and one for each in the same zone.
    fn share(&self, halves: u64) -> u64 {
        if self.total == 0 { 0 } else { halves * ONE / (2 * self.total) }
    }

    /// The locality of a node in a rack and a zone.
    pub(crate) fn locality(&self, node: NodeNo, zone: u32, rack: u32) -> u64 {
        if self.total == 0 {
            return 0;
        }
        let close = if rack == NOWHERE { found(&self.nodes, &node) } else { found(&self.racks, &rack) };
        let in_zone = if zone == NOWHERE { close } else { found(&self.zones, &zone) };
        self.share(close + in_zone)
    }

    /// The locality of a node in a zone that is in the rack of none of the peers.
    pub(crate) fn locality_of_zone(&self, zone: u32) -> u64 {
        if zone == NOWHERE { 0 } else { self.share(found(&self.zones, &zone)) }
    }

    /// The highest locality of a node in one of the zones that is in the rack of none of the peers.
    pub(crate) fn locality_within(&self, zones: u64) -> u64 {
        let counts = self.zones.iter().filter(|(zone, _)| zones & zone_bit(*zone) != 0).map(|(_, count)| *count);
        self.share(counts.max().unwrap_or(0))
    }

    /// The nodes in the rack of a peer. Their locality does not follow from their zone alone.
    pub(crate) fn close<'s>(&'s self, trees: &'s NodeTrees) -> impl Iterator<Item = NodeNo> + 's {
        let in_racks = self.racks.iter().flat_map(|(rack, _)| trees.in_rack(*rack)).copied();
        in_racks.chain(self.nodes.iter().map(|(node, _)| *node))
    }

    /// Whether a node is one of [`Self::close`].
    pub(crate) fn is_close(&self, node: NodeNo, rack: u32) -> bool {
        if rack == NOWHERE { found(&self.nodes, &node) > 0 } else { found(&self.racks, &rack) > 0 }
    }
}
