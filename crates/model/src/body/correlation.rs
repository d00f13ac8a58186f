//! What leases belong to: their allocation and their correlation ID (SEMANTICS 11, "Identity and correlation").

use super::Granted;
use crate::codec::{DecodeError, Field, Reader};
use crate::fields;
use crate::id::{AllocationNo, CorrelationId, IdKind, PublicId};

/// The rules version from which the leases of an allocation share its correlation ID.
const SHARED_SINCE: u32 = 4;

/// A correlation ID: the caller gave it, or it is derived from the sequence of the record that began the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Correlation {
    Given(u128),
    Derived(u64),
}

impl Correlation {
    /// The ID in a journal with this genesis.
    pub fn id(self, genesis: &[u8; 32]) -> CorrelationId {
        match self {
            Self::Given(id) => CorrelationId(id),
            Self::Derived(sequence) => CorrelationId(PublicId::new(genesis, IdKind::Correlation, 0, sequence).0),
        }
    }

    /// What the caller gave, or an ID derived from `sequence`.
    pub fn or_derived(given: Option<u128>, sequence: u64) -> Self {
        given.map_or(Self::Derived(sequence), Self::Given)
    }
}

impl Field for Correlation {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Given(id) => {
                out.push(1);
                id.put(out);
            }
            Self::Derived(sequence) => {
                out.push(2);
                sequence.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.byte()? {
            1 => Ok(Self::Given(Field::get(r)?)),
            2 => Ok(Self::Derived(Field::get(r)?)),
            code => Err(DecodeError::BadCode { field: "correlation", code: u64::from(code) }),
        }
    }
}

fields! {
    /// The allocation and the correlation ID that all leases of a record have in common.
    #[derive(Copy, PartialOrd, Ord)]
    pub struct BelongsTo {
        pub allocation: Option<AllocationNo>,
        pub correlation: Correlation,
    }
}

impl Granted {
    /// The correlation ID of the leases, granted by the record with that sequence.
    pub fn correlation_of(&self, sequence: u64) -> Correlation {
        let shared = self.allocation.filter(|_| self.rules_version >= SHARED_SINCE);
        Correlation::or_derived(self.correlation, shared.map_or(sequence, |allocation| allocation.0))
    }
}
