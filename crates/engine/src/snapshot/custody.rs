//! Encoding and decoding of the custody of nodes.

use super::BadSnapshot;
use crate::custody::{Claim, Claimer, Custody};
use crate::state::State;
use leasehold_model::codec::{DecodeError, Field, Reader};

pub(super) fn put(custody: Custody, out: &mut Vec<u8>) {
    match custody {
        Custody::Open => out.push(0),
        Custody::Claimed(claim) => {
            out.push(1);
            put_claim(claim, out);
        }
        Custody::Wiping { since, limit_at, claim } => {
            out.push(2);
            since.put(out);
            limit_at.put(out);
            put_claim(claim, out);
        }
        Custody::Quarantined { cause, since } => {
            out.push(3);
            cause.put(out);
            since.put(out);
        }
    }
}

fn put_claim(claim: Claim, out: &mut Vec<u8>) {
    claim.by.tenant.put(out);
    claim.by.user.put(out);
    claim.project.put(out);
    claim.since.put(out);
    claim.sequence.put(out);
    claim.until.put(out);
    claim.counts_cores.put(out);
}

fn get_claim(r: &mut Reader<'_>) -> Result<Claim, DecodeError> {
    let by = Claimer { tenant: Field::get(r)?, user: Field::get(r)? };
    Ok(Claim {
        by,
        project: Field::get(r)?,
        since: Field::get(r)?,
        sequence: Field::get(r)?,
        until: Field::get(r)?,
        counts_cores: Field::get(r)?,
    })
}

pub(super) fn get(r: &mut Reader<'_>) -> Result<Custody, DecodeError> {
    Ok(match r.byte()? {
        0 => Custody::Open,
        1 => Custody::Claimed(get_claim(r)?),
        2 => Custody::Wiping { since: Field::get(r)?, limit_at: Field::get(r)?, claim: get_claim(r)? },
        3 => Custody::Quarantined { cause: Field::get(r)?, since: Field::get(r)? },
        code => return Err(DecodeError::BadCode { field: "custody", code: u64::from(code) }),
    })
}

impl State {
    /// Checks that the holders of claims exist.
    pub(super) fn check_custody(&self) -> Result<(), BadSnapshot> {
        for claim in self.nodes().filter_map(|node| node.custody.claim()) {
            let of_tenant = self.tenant(claim.by.tenant).is_some()
                && self.user(claim.by.user).is_some_and(|user| user.tenant == claim.by.tenant)
                && self.project(claim.project).is_some_and(|project| project.tenant == claim.by.tenant);
            if !of_tenant {
                return Err(BadSnapshot::Inconsistent("a claim whose holder does not exist"));
            }
        }
        Ok(())
    }
}
