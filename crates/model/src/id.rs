//! Every identifier, in one registry.
//!
//! Inside the journal things are identified by numbers that the engine assigns in order, so that a reference to a
//! lease takes about three bytes. Outside they are 128-bit [`PublicId`]s, strings in JSON, because numbers above 2^53
//! lose precision there (SEMANTICS 1).

use crate::codec::{DecodeError, Field, Reader};
use std::fmt;

macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident($t:ty) $prefix:literal;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $t);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!(concat!($prefix, "{}"), self.0))
            }
        }
        impl Field for $name {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
            #[inline]
            fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok(Self(Field::get(r)?))
            }
        }
    )*};
}

numbers! {
    /// Who pays.
    TenantNo(u32) "tenant-";
    /// The part of a tenant that a charge belongs to.
    ProjectNo(u32) "project-";
    /// A person or service of a tenant.
    UserNo(u32) "user-";
    /// A set of nodes with one strategy.
    PoolNo(u32) "pool-";
    /// A machine.
    NodeNo(u32) "node-";
    /// A resource class.
    ClassNo(u16) "class-";
    /// A limit on a scope.
    QuotaNo(u32) "quota-";
    /// The right to hold capacity until a deadline.
    LeaseNo(u64) "lease-";
    /// What a principal authenticates with.
    TokenNo(u32) "token-";
    /// A gang of leases for one workload.
    AllocationNo(u64) "alloc-";
    /// A runtime of a project.
    AppInstanceNo(u64) "app-";
    /// Capacity lent to a shared runtime.
    AttachmentNo(u64) "attachment-";
}

/// What a [`PublicId`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IdKind {
    Record = 1,
    LeaseEvent = 2,
    Lease = 3,
    Correlation = 4,
    Entry = 5,
}

/// A public 128-bit identifier: 40 bits of the journal's genesis hash, 8 bits for the kind, 16 bits for the position
/// inside a record, 64 bits for the number. It is computed and never stored, so it cannot contradict the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicId(pub u128);

impl PublicId {
    pub fn new(genesis: &[u8; 32], kind: IdKind, position: u16, number: u64) -> Self {
        let mut bytes = [0u8; 16];
        bytes[..5].copy_from_slice(&genesis[..5]);
        bytes[5] = kind as u8;
        bytes[6..8].copy_from_slice(&position.to_be_bytes());
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        Self(u128::from_be_bytes(bytes))
    }

    /// The number, if this is an ID of that kind from the journal with that genesis.
    pub fn number(self, genesis: &[u8; 32], kind: IdKind) -> Option<u64> {
        let bytes = self.0.to_be_bytes();
        if bytes[..5] != genesis[..5] || bytes[5] != kind as u8 {
            return None;
        }
        let mut number = [0u8; 8];
        number.copy_from_slice(&bytes[8..]);
        Some(u64::from_be_bytes(number))
    }
}

impl fmt::Display for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_ids_lead_back_to_their_number_and_to_no_other_journal() {
        let genesis = [7u8; 32];
        let id = PublicId::new(&genesis, IdKind::Lease, 0, 4711);
        assert_eq!(id.to_string(), "07070707070300000000000000001267");
        assert_eq!(id.number(&genesis, IdKind::Lease), Some(4711));
        assert_eq!(id.number(&genesis, IdKind::Record), None);
        assert_eq!(id.number(&[8u8; 32], IdKind::Lease), None);
    }
}
