//! How the file's entries are made and checked.

use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};

/// A number that may be absent: one more than itself, or zero.
pub(crate) fn optional(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
}
pub(crate) fn present(value: u64) -> Option<u64> {
    value.checked_sub(1)
}

/// Over the entry's place, too: another entry's bytes are not this one's, however sound.
fn checksum(table: &str, key: u64, body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(table.as_bytes());
    sum.update(&key.to_le_bytes());
    sum.update(body);
    sum.finalize()
}

/// Bytes with a checksum before them: what the store hands back is what was given to it, at that place.
pub(crate) fn sealed(table: &str, key: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = checksum(table, key, body).to_le_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}
pub(crate) fn unsealed<'b>(table: &str, key: u64, bytes: &'b [u8]) -> Option<&'b [u8]> {
    let (sum, body) = bytes.split_first_chunk()?;
    (checksum(table, key, body) == u32::from_le_bytes(*sum)).then_some(body)
}

/// Lists of fields, with their length.
pub(crate) fn put_list<T: Field>(list: impl ExactSizeIterator<Item = T>, out: &mut Vec<u8>) {
    put_varint(list.len() as u64, out);
    list.for_each(|item| item.put(out));
}
pub(crate) fn get_list<T: Field>(r: &mut Reader<'_>) -> Result<Vec<T>, DecodeError> {
    let n = r.count(1 << 40)?;
    (0..n).map(|_| T::get(r)).collect()
}
