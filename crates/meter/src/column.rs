//! A packed column of integers: the smallest value, and the difference of each value from it, all with the same number
//! of bytes. A column of equal values takes no space per value. Access is by index.

use leasehold_model::codec::{DecodeError, Reader, put_varint, put_varint_wide};

/// Padding after the last number, because a whole word is read at any index.
const PADDING: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    least: u128,
    /// The smallest value of a column of 64-bit values, and the mask of a difference.
    short: u64,
    mask: u64,
    /// Bytes per difference; zero if all values are equal.
    wide: usize,
    count: usize,
    bytes: Vec<u8>,
}

impl Column {
    pub fn put(values: impl Iterator<Item = u64> + Clone, out: &mut Vec<u8>) {
        Self::put_wide(values.map(u128::from), out);
    }

    pub fn put_wide(values: impl Iterator<Item = u128> + Clone, out: &mut Vec<u8>) {
        let least = values.clone().min().unwrap_or(0);
        let most = values.clone().max().unwrap_or(0);
        let wide = (128 - (most - least).leading_zeros()).div_ceil(8) as usize;
        put_varint_wide(least, out);
        out.push(u8::try_from(wide).expect("at most sixteen"));
        if wide > 0 {
            for value in values {
                out.extend_from_slice(&(value - least).to_le_bytes()[..wide]);
            }
        }
    }

    pub fn get(count: usize, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let least = r.varint_wide()?;
        let wide = usize::from(r.byte()?);
        if wide > 16 {
            return Err(DecodeError::BadInteger);
        }
        let mut bytes = r.take(count * wide)?.to_vec();
        bytes.resize(bytes.len() + PADDING, 0);
        let short = u64::try_from(least).unwrap_or(0);
        let mask = if wide == 0 { 0 } else { u64::MAX >> (64 - 8 * wide.min(8)) };
        Ok(Self { least, short, mask, wide, count, bytes })
    }

    pub fn len(&self) -> usize {
        self.count
    }
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// The memory in use.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// One value of a 64-bit column. If all values are equal, the padding is read and masked out.
    #[inline]
    pub fn at(&self, place: usize) -> u64 {
        let word = u64::from_le_bytes(*self.bytes[place * self.wide..].first_chunk().expect("padded"));
        self.short.wrapping_add(word & self.mask)
    }

    #[inline]
    pub fn at_wide(&self, place: usize) -> u128 {
        if self.wide == 0 {
            return self.least;
        }
        let word = u128::from_le_bytes(*self.bytes[place * self.wide..].first_chunk().expect("padded"));
        self.least.wrapping_add(word & (u128::MAX >> (128 - 8 * self.wide)))
    }
}

/// Maps signed numbers to unsigned ones so that small absolute values stay small.
pub fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// Encodes counts as a column.
pub fn put_count(count: usize, out: &mut Vec<u8>) {
    put_varint(count as u64, out);
}
