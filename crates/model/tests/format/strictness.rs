//! Decoding accepts exactly the canonical bytes: whatever decodes, encodes to the same again.

use crate::arbitrary::{journals, records};
use crate::samples;
use crate::sealing::{cases, decode, encode, forge_checksum, hex, seal};
use leasehold_model::body::TenantPut;
use leasehold_model::{DecodeError, Field, Outline, RawBatch, RawRecord, Reader, Record, TenantSettings};
use leasehold_view::Directory;
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes that decode are the one encoding of what they decode to, and validation accepts what decoding accepts. Returns
/// whether they decode.
fn check_strict(bytes: &[u8]) -> bool {
    let decoded = decode(bytes);
    let outline = decoded.as_ref().map_err(Clone::clone).map(|record| Outline {
        sequence: record.sequence,
        stamp: record.stamp,
        kind: record.body.kind(),
        signers: record.signers.len(),
    });
    let validated = Record::validate(&mut Reader::new(bytes));
    assert_eq!(validated, outline, "{} is validated otherwise than it is decoded", hex(bytes));
    match decoded {
        Ok(record) => {
            let again = encode(&record);
            assert!(again == bytes, "{} decodes, but encodes to {}", hex(bytes), hex(&again));
            true
        }
        Err(_) => false,
    }
}

/// Every change of one byte to `to`, of every place.
fn check_changes_to(bytes: &[u8], to: impl Fn(u8) -> u8) {
    let mut changed = bytes.to_vec();
    for at in 0..bytes.len() {
        changed[at] = to(bytes[at]);
        check_strict(&changed);
        changed[at] = bytes[at];
    }
}

fn check_cuts_and_insertions(bytes: &[u8], inserted: u8) {
    for at in 0..bytes.len() {
        check_strict(&bytes[..at]);
        check_strict(&[&bytes[..at], &bytes[at + 1..]].concat());
        check_strict(&[&bytes[..at], &[inserted], &bytes[at..]].concat());
    }
    check_strict(&[bytes, &[inserted]].concat());
}

/// Exhaustive: each byte of a record of each kind is given each other value there is.
#[test]
fn every_change_of_a_byte_in_every_kind_is_refused_or_is_another_canonical_record() {
    for record in samples::every_kind() {
        let bytes = encode(&record);
        for mask in 1..=u8::MAX {
            check_changes_to(&bytes, |byte| byte ^ mask);
        }
        for inserted in [0, 1, 0x7f, 0x80, 0xff] {
            check_cuts_and_insertions(&bytes, inserted);
        }
    }
}

/// A batch is read only if no byte of it changed, whatever the change.
#[test]
fn every_change_of_a_byte_of_a_batch_shows() {
    let batch = seal(&samples::every_kind()[..12]);
    assert!(RawBatch::read(&batch).is_ok());
    let mut changed = batch.clone();
    for at in 0..batch.len() {
        for mask in [1, 0x80, 0xff] {
            changed[at] ^= mask;
            assert!(RawBatch::read(&changed).is_err(), "byte {at} changed by {mask:#x}");
            changed[at] = batch[at];
        }
        assert!(RawBatch::read(&batch[..at]).is_err(), "cut to {at} bytes");
    }
}

/// Reads whatever can be read of bytes that claim to be a batch, in every way there is.
fn read_everything(bytes: &[u8]) {
    let Ok(batch) = RawBatch::read(bytes) else { return };
    let mut directory = Directory::new();
    for frame in batch.records() {
        let frame = frame.expect("frames of a batch that was read are good");
        let hash = frame.hash();
        let shown = directory.show(&frame, &hash);
        assert_eq!(shown.is_ok(), frame.decode().is_ok());
        let _ = (frame.sequence(), frame.prev_hash(), frame.signature(0), frame.signature(2));
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn what_is_encoded_decodes_to_itself(record in records()) {
        let bytes = encode(&record);
        prop_assert_eq!(decode(&bytes), Ok(record));
        prop_assert!(check_strict(&bytes));
    }

    #[test]
    fn slightly_wrong_records_are_refused_or_canonical(record in records(), bit in 0..8u32, byte: u8) {
        let bytes = encode(&record);
        // A record of a thousand leases has nothing at its end that its beginning does not have.
        prop_assume!(bytes.len() < 2_000);
        check_changes_to(&bytes, |was| was ^ (1 << bit));
        check_changes_to(&bytes, |_| byte);
        check_cuts_and_insertions(&bytes, byte);
    }

    #[test]
    fn two_records_spliced_are_refused_or_canonical(a in records(), b in records(), i: prop::sample::Index, j: prop::sample::Index) {
        let (a, b) = (encode(&a), encode(&b));
        check_strict(&[&a[..i.index(a.len())], &b[j.index(b.len())..]].concat());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300), signatures in vec(any::<u8>(), 0..130)) {
        check_strict(&bytes);
        read_everything(&bytes);
        read_everything(&[b"LHB1", &bytes[..]].concat());
        let raw = RawRecord { bytes: &bytes, signatures: &signatures };
        let shown = Directory::new().show(&raw, &[0; 32]);
        prop_assert_eq!(shown.is_ok(), raw.decode().is_ok());
        let _ = (raw.sequence(), raw.signature(0), raw.signature(1), raw.signature(usize::MAX));
    }

    /// A kind and a stamp are enough to reach the decoders of the bodies; the rest is noise.
    #[test]
    fn noise_after_a_good_head_is_refused_or_canonical(
        kind in 0..128u8, parts in prop_oneof![Just(0u16), 0..4096u16], noise in vec(prop_oneof![0..4u8, any::<u8>()], 0..120),
    ) {
        let mut bytes = vec![7, 1, 2, 3, 4, 5, 6, 7, 8, kind];
        match parts {
            0..128 => bytes.push(parts.to_le_bytes()[0]),
            _ => bytes.extend([(parts & 0x7f).to_le_bytes()[0] | 0x80, (parts >> 7).to_le_bytes()[0]]),
        }
        bytes.extend(noise);
        check_strict(&bytes);
    }

    /// A forger can make any checksum fit, so nothing after it may rest on it.
    #[test]
    fn forged_batches_never_panic(records in journals(1..6), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut batch = seal(&records);
        read_everything(&batch);
        for (at, to) in changes {
            let at = at.index(batch.len());
            batch[at] = to;
        }
        forge_checksum(&mut batch);
        read_everything(&batch);
    }
}

#[test]
fn added_fields_are_absent_or_known() {
    let full = samples::tenant_with_contact();
    let bytes = full.to_bytes();
    assert_eq!(TenantPut::from_bytes(&bytes).as_ref(), Ok(&full));
    let without = TenantPut { settings: TenantSettings { contact: None, ..full.settings }, ..full };
    let flags_at = without.to_bytes().len();
    assert!(bytes.starts_with(&without.to_bytes()), "the added field follows everything else");
    let with_flags = |flags: u8| {
        let mut bytes = bytes.clone();
        bytes[flags_at] = flags;
        TenantPut::from_bytes(&bytes)
    };
    assert_eq!(with_flags(0), Err(DecodeError::Forbidden("an empty set of added fields")));
    assert_eq!(with_flags(17), Err(DecodeError::BadCode { field: "added fields", code: 17 }));
    assert_eq!(TenantPut::from_bytes(&bytes[..=flags_at]), Err(DecodeError::Truncated));
}
