//! Losses of nodes that are not settled.

use super::BadSnapshot;
use crate::state::OpenLoss;
use leasehold_model::codec::{Field, Reader, put_varint};
use std::collections::BTreeMap;

pub(super) fn put(losses: &BTreeMap<u64, OpenLoss>, out: &mut Vec<u8>) {
    put_varint(losses.len() as u64, out);
    for (loss, open) in losses {
        loss.put(out);
        open.node.put(out);
        open.last_seen.put(out);
    }
}

/// Nodes may have been deleted since, so that they are not looked up.
pub(super) fn get(size: u64, r: &mut Reader<'_>) -> Result<BTreeMap<u64, OpenLoss>, BadSnapshot> {
    let mut losses = BTreeMap::new();
    for _ in 0..r.count(usize::MAX)? {
        let loss: u64 = Field::get(r)?;
        let open = OpenLoss { node: Field::get(r)?, last_seen: Field::get(r)? };
        let follows = losses.last_key_value().is_none_or(|(last, _)| *last < loss);
        if !follows || loss >= size {
            return Err(BadSnapshot::Inconsistent("losses of nodes are out of order"));
        }
        losses.insert(loss, open);
    }
    Ok(losses)
}
