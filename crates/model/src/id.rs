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
    /// A maintenance window of some nodes.
    WindowNo(u32) "window-";
    /// A runtime of a project.
    AppInstanceNo(u64) "app-";
    /// Capacity lent to a shared runtime.
    AttachmentNo(u64) "attachment-";
    /// A kind of app.
    AppTypeNo(u32) "app-type-";
    /// What app runtimes report their usage in.
    UnitNo(u32) "unit-";
    /// Where events are delivered to.
    SinkNo(u32) "sink-";
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
    /// An event for accounting systems, by its position among those of a record.
    AccountingEvent = 6,
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

    /// The position inside the record.
    pub fn position(self) -> u16 {
        let bytes = self.0.to_be_bytes();
        u16::from_be_bytes([bytes[6], bytes[7]])
    }
}

impl fmt::Display for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The ID that groups everything about one request. It is written as a UUID; 32 hexadecimal digits are accepted as
/// well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorrelationId(pub u128);

/// Where a UUID has its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl CorrelationId {
    /// `None` unless the text is a UUID, or its digits without hyphens.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hyphen = |at: usize| text.len() == 36 && HYPHENS.contains(&at);
        let well_formed = text.bytes().enumerate().all(|(at, byte)| match byte {
            b'-' => is_hyphen(at),
            digit => digit.is_ascii_hexdigit() && !is_hyphen(at),
        });
        let digits = text.replace('-', "");
        u128::from_str_radix(&digits, 16).ok().filter(|_| well_formed && digits.len() == 32).map(Self)
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
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

    #[test]
    fn correlation_ids_are_uuids_and_their_digits_are_accepted() {
        let id = CorrelationId(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        assert_eq!(id.to_string(), "01234567-89ab-cdef-0011-223344556677");
        for text in [
            "01234567-89ab-cdef-0011-223344556677",
            "01234567-89AB-CDEF-0011-223344556677",
            "0123456789abcdef0011223344556677",
        ] {
            assert_eq!(CorrelationId::parse(text), Some(id), "{text}");
        }
        for text in [
            "",
            "0123456789abcdef001122334455667",
            "01234567-89ab-cdef-0011-22334455667",
            "012345678-9ab-cdef-0011-223344556677",
            "01234567-89ab-cdef-00112233445566770",
            "0123456789abcdef-0011223344556677",
            "g1234567-89ab-cdef-0011-223344556677",
            "+123456789abcdef0011223344556677",
        ] {
            assert_eq!(CorrelationId::parse(text), None, "{text}");
        }
    }
}
