//! One field of many rows: the smallest value, and each row's distance from it in as few bytes as the largest takes. A
//! field that is the same in all rows takes nothing but itself.

use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};

/// A word is read at any place: so many bytes follow the last value.
const PADDING: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct Column {
    least: u64,
    /// Bytes of a distance; none if all are the same.
    wide: usize,
    bytes: Vec<u8>,
}

impl Column {
    pub(crate) fn put(values: impl Iterator<Item = u64> + Clone, out: &mut Vec<u8>) {
        let least = values.clone().min().unwrap_or(0);
        let most = values.clone().max().unwrap_or(0);
        let wide = (64 - (most - least).leading_zeros()).div_ceil(8) as usize;
        put_varint(least, out);
        out.push(u8::try_from(wide).expect("at most eight"));
        if wide > 0 {
            for value in values {
                out.extend_from_slice(&(value - least).to_le_bytes()[..wide]);
            }
        }
    }

    pub(crate) fn get(rows: usize, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let least = r.varint()?;
        let wide = usize::from(r.byte()?);
        if wide > 8 {
            return Err(DecodeError::BadInteger);
        }
        let mut bytes = r.take(rows * wide)?.to_vec();
        bytes.resize(bytes.len() + PADDING, 0);
        Ok(Self { least, wide, bytes })
    }

    #[inline]
    pub(crate) fn at(&self, row: usize) -> u64 {
        if self.wide == 0 {
            return self.least;
        }
        let word = u64::from_le_bytes(*self.bytes[row * self.wide..].first_chunk().expect("padded"));
        self.least.wrapping_add(word & (u64::MAX >> (64 - 8 * self.wide)))
    }
}

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
