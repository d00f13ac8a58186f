//! Encoding and decoding of closed leases that are remembered.

use super::BadSnapshot;
use crate::state::Gone;
use leasehold_model::codec::{Field, Reader};

pub(super) fn put(g: &Gone, out: &mut Vec<u8>) {
    g.lease.put(out);
    g.tenant.put(out);
    g.phase.put(out);
    g.at.put(out);
}

pub(super) fn get(r: &mut Reader<'_>) -> Result<Gone, BadSnapshot> {
    Ok(Gone { lease: Field::get(r)?, tenant: Field::get(r)?, phase: Field::get(r)?, at: Field::get(r)? })
}
