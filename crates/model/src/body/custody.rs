//! Nodes for sensitive work (SEMANTICS 10): claimed by a user, released, wiped, and quarantined if the wipe failed.

use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::fields;
use crate::id::NodeNo;
use crate::instant::Instant;
use crate::limits::NODES_PER_CLAIM_MAX;
use crate::policy::QuarantineCause;

/// Node numbers in strictly increasing order, encoded as differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes(pub Vec<NodeNo>);

impl Nodes {
    /// Encodes the numbers, of which there are at most `max`.
    pub(super) fn put_up_to(&self, max: usize, out: &mut Vec<u8>) {
        assert!((1..=max).contains(&self.0.len()), "a record names 1 to {max} nodes");
        put_varint(self.0.len() as u64, out);
        let mut next = 0;
        for node in &self.0 {
            assert!(node.0 >= next, "node numbers in a record increase");
            put_varint(u64::from(node.0 - next), out);
            next = node.0.saturating_add(1);
        }
    }

    pub(super) fn get_up_to(max: usize, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.count(max)?;
        if n == 0 {
            return Err(DecodeError::Forbidden("an empty list of nodes"));
        }
        let mut nodes = Vec::with_capacity(n);
        let mut next = 0_u64;
        for _ in 0..n {
            let number = next.checked_add(r.varint()?).ok_or(DecodeError::BadInteger)?;
            nodes.push(NodeNo(u32::try_from(number).map_err(|_| DecodeError::BadInteger)?));
            next = number + 1;
        }
        Ok(Self(nodes))
    }
}

impl Field for Nodes {
    fn put(&self, out: &mut Vec<u8>) {
        self.put_up_to(NODES_PER_CLAIM_MAX, out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::get_up_to(NODES_PER_CLAIM_MAX, r)
    }
}

impl FromIterator<NodeNo> for Nodes {
    fn from_iter<I: IntoIterator<Item = NodeNo>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

fields! {
    /// The limit on nodes that are claimed or being wiped, over all tenants.
    pub struct SensitiveChanged { pub pool_size: Option<u64> }
}
fields! {
    /// Nodes were claimed by a user; tenant, project and user are in the record's head.
    pub struct NodesClaimed { pub nodes: Nodes }
    added {
        /// How long the claimer expects to keep them. Their cost up to then is reserved under hard cost ceilings.
        1 pub until: Option<Instant>,
    }
}
fields! {
    /// Claimed nodes were released; they are offline until they are wiped. The head names the former claimer.
    pub struct NodesReleased { pub nodes: Nodes }
    added { /** The sequence of the record that claimed them. */ 1 pub claim: Option<u64> }
}
fields! {
    /// The wipe was confirmed; the node is open again.
    pub struct NodeWiped { pub node: NodeNo }
    added { /** The sequence of the claim that ended. The head names the former claimer. */ 1 pub claim: Option<u64> }
}
fields! {
    /// The wipe failed or was not confirmed in time; the node is offline until an operator clears it.
    pub struct NodeQuarantined { pub node: NodeNo, pub cause: QuarantineCause }
    added { /** The sequence of the claim that ended. The head names the former claimer. */ 1 pub claim: Option<u64> }
}
fields! {
    /// An operator declared the node clean.
    pub struct QuarantineCleared { pub node: NodeNo }
}
