//! Encoding and checksums of the file's entries.

use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};

/// Encodes an optional number: zero if absent, else the number plus one.
pub(crate) fn optional(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
}
pub(crate) fn present(value: u64) -> Option<u64> {
    value.checked_sub(1)
}

/// The checksum covers the position of the entry as well, so that a swapped entry is detected.
fn checksum(table: &str, key: u64, body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(table.as_bytes());
    sum.update(&key.to_le_bytes());
    sum.update(body);
    sum.finalize()
}

/// Adds or verifies a checksum before the bytes of an entry.
pub(crate) fn sealed(table: &str, key: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = checksum(table, key, body).to_le_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}
pub(crate) fn unsealed<'b>(table: &str, key: u64, bytes: &'b [u8]) -> Option<&'b [u8]> {
    let (sum, body) = bytes.split_first_chunk()?;
    (checksum(table, key, body) == u32::from_le_bytes(*sum)).then_some(body)
}

/// Encodes a list of fields with its length.
pub(crate) fn put_list<T: Field>(list: impl ExactSizeIterator<Item = T>, out: &mut Vec<u8>) {
    put_varint(list.len() as u64, out);
    list.for_each(|item| item.put(out));
}
pub(crate) fn get_list<T: Field>(r: &mut Reader<'_>) -> Result<Vec<T>, DecodeError> {
    let n = r.count(1 << 40)?;
    (0..n).map(|_| T::get(r)).collect()
}
