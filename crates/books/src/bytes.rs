//! Small encodings that the file's entries share.

use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};

/// Encodes an optional number: zero if absent, else the number plus one.
pub(crate) fn optional(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
}
pub(crate) fn present(value: u64) -> Option<u64> {
    value.checked_sub(1)
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
