//! The deterministic encoding of records and snapshots.
//!
//! Every value has exactly one encoding, and decoding accepts no other: re-encoding what was
//! decoded gives the same bytes (SEMANTICS 6). Integers are LEB128 without superfluous groups.

use std::fmt;

/// Why bytes are not a value of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end before the value does.
    Truncated,
    /// Bytes are left after the value.
    TrailingBytes(usize),
    /// An integer is written longer than it needs to be, or does not fit its type.
    BadInteger,
    /// Text that is not UTF-8 or breaks the rules for names.
    BadText,
    /// A code that is not defined for this field.
    BadCode { field: &'static str, code: u64 },
    /// A well-formed value that the format forbids here.
    Forbidden(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "the bytes end too early"),
            Self::TrailingBytes(n) => write!(f, "{n} bytes are left over"),
            Self::BadInteger => write!(f, "an integer is not in its shortest form or too large"),
            Self::BadText => write!(f, "text is not valid here"),
            Self::BadCode { field, code } => write!(f, "unknown code {code} for {field}"),
            Self::Forbidden(what) => write!(f, "not allowed: {what}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A value with one canonical encoding.
pub trait Field: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Reads past a value that [`Self::get`] would return, without building it. Where `get` fails, this fails with the
    /// same error. Whoever overrides it has to keep that; the tests of the format compare the two.
    #[inline]
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        Self::get(r).map(drop)
    }

    /// Decodes a value that must fill `bytes` to the end.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let value = Self::get(&mut r)?;
        r.finish()?;
        Ok(value)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }
}

/// A cursor over bytes that never reads past their end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bits of the fields that were added to a struct later and are present; see [`fields!`](crate::fields).
    pub fn added(&mut self, known: u64) -> Result<u64, DecodeError> {
        if self.rest.is_empty() {
            return Ok(0);
        }
        match self.varint()? {
            0 => Err(DecodeError::Forbidden("an empty set of added fields")),
            bits if bits & !known != 0 => Err(DecodeError::BadCode { field: "added fields", code: bits }),
            bits => Ok(bits),
        }
    }

    pub fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.array_ref().copied()
    }

    pub fn array_ref<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        // Most integers of a record fit one byte; the long form is the exception.
        if let [first, rest @ ..] = self.rest
            && *first < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(*first));
        }
        self.varint_long()
    }

    /// Two to nine groups; longer or invalid integers are left to [`Self::varint_wide`].
    fn varint_long(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().take(9).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 && (*byte != 0 || at == 0) {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
            if *byte == 0 {
                break;
            }
        }
        u64::try_from(self.varint_wide()?).map_err(|_| DecodeError::BadInteger)
    }

    pub fn varint_wide(&mut self) -> Result<u128, DecodeError> {
        let mut value: u128 = 0;
        let mut shift = 0u32;
        loop {
            let byte = self.byte()?;
            let group = u128::from(byte & 0x7f);
            let placed = group << shift;
            if placed >> shift != group {
                return Err(DecodeError::BadInteger);
            }
            value |= placed;
            if byte < 0x80 {
                return if byte == 0 && shift > 0 { Err(DecodeError::BadInteger) } else { Ok(value) };
            }
            shift += 7;
            if shift > 126 {
                return Err(DecodeError::BadInteger);
            }
        }
    }

    /// A count of items. Each takes at least one byte, so the count cannot exceed the remaining bytes, and a forged
    /// count cannot cause a large allocation.
    pub fn count(&mut self, max: usize) -> Result<usize, DecodeError> {
        let n = usize::try_from(self.varint()?).map_err(|_| DecodeError::BadInteger)?;
        if n > max {
            return Err(DecodeError::Forbidden("a list longer than its limit"));
        }
        if n > self.remaining() {
            return Err(DecodeError::Truncated);
        }
        Ok(n)
    }

    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            n => Err(DecodeError::TrailingBytes(n)),
        }
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "each group is seven bits")]
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[expect(clippy::cast_possible_truncation, reason = "each group is seven bits")]
pub fn put_varint_wide(mut value: u128, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The units a scaled number may be written in, coarsest first, in nanoseconds.
const SCALES: [u128; 4] = [1_000_000_000, 1_000_000, 1_000, 1];

/// Writes nanoseconds (or quantum-nanoseconds) in the coarsest unit that is exact. Whole seconds and milliseconds, the
/// usual case, take two to four bytes.
pub fn put_scaled(value: u128, out: &mut Vec<u8>) {
    if let Ok(value) = u64::try_from(value)
        && value < 1 << 62
    {
        return put_scaled_short(value, out);
    }
    assert!(value < 1 << 120, "a scaled number must leave room for its unit");
    for (unit, scale) in SCALES.into_iter().enumerate() {
        if value.is_multiple_of(scale) {
            put_varint_wide((value / scale) << 2 | unit as u128, out);
            return;
        }
    }
}

/// The fast path for values up to a century of nanoseconds.
fn put_scaled_short(value: u64, out: &mut Vec<u8>) {
    let (in_unit, unit) = if value.is_multiple_of(1_000_000_000) {
        (value / 1_000_000_000, 0)
    } else if value.is_multiple_of(1_000_000) {
        (value / 1_000_000, 1)
    } else if value.is_multiple_of(1_000) {
        (value / 1_000, 2)
    } else {
        (value, 3)
    };
    put_varint(in_unit << 2 | unit, out);
}

#[inline]
pub fn get_scaled(r: &mut Reader<'_>) -> Result<u128, DecodeError> {
    // Whole seconds that fit a word, as most are, need no arithmetic in 128 bits.
    let mut short = r.clone();
    if let Ok(word) = short.varint()
        && word & 3 == 0
        && let Some(value) = (word >> 2).checked_mul(1_000_000_000)
    {
        *r = short;
        return Ok(u128::from(value));
    }
    get_scaled_wide(r)
}

fn get_scaled_wide(r: &mut Reader<'_>) -> Result<u128, DecodeError> {
    let word = r.varint_wide()?;
    let unit = usize::try_from(word & 3).map_err(|_| DecodeError::BadInteger)?;
    let value = (word >> 2).checked_mul(SCALES[unit]).filter(|v| *v < 1 << 120).ok_or(DecodeError::BadInteger)?;
    if unit > 0 && value % SCALES[unit - 1] == 0 {
        return Err(DecodeError::Forbidden("a number in a finer unit than it needs"));
    }
    Ok(value)
}

macro_rules! integer_fields {
    ($($t:ty),*) => {$(
        impl Field for $t {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                put_varint(u64::from(*self), out);
            }
            #[inline]
            fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                <$t>::try_from(r.varint()?).map_err(|_| DecodeError::BadInteger)
            }
        }
    )*};
}
integer_fields!(u8, u16, u32, u64);

impl Field for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            code => Err(DecodeError::BadCode { field: "flag", code: u64::from(code) }),
        }
    }
}

impl<const N: usize> Field for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array()
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(if bool::get(r)? { Some(T::get(r)?) } else { None })
    }
    #[inline]
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        if bool::get(r)? { T::validate(r) } else { Ok(()) }
    }
}

/// The most items of a list inside a body, unless its type has another limit.
pub const LIST_MAX: usize = 4096;

impl<T: Field> Field for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        assert!(self.len() <= LIST_MAX, "a list longer than its limit");
        put_varint(self.len() as u64, out);
        for item in self {
            item.put(out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.count(LIST_MAX)?;
        (0..n).map(|_| T::get(r)).collect()
    }
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let n = r.count(LIST_MAX)?;
        (0..n).try_for_each(|_| T::validate(r))
    }
}

impl<A: smallvec::Array> Field for smallvec::SmallVec<A>
where
    A::Item: Field,
{
    fn put(&self, out: &mut Vec<u8>) {
        assert!(self.len() <= LIST_MAX, "a list longer than its limit");
        put_varint(self.len() as u64, out);
        for item in self {
            item.put(out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.count(LIST_MAX)?;
        (0..n).map(|_| A::Item::get(r)).collect()
    }
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let n = r.count(LIST_MAX)?;
        (0..n).try_for_each(|_| A::Item::validate(r))
    }
}

impl Field for u128 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self::from_be_bytes(r.array()?))
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok((A::get(r)?, B::get(r)?))
    }
    #[inline]
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        A::validate(r)?;
        B::validate(r)
    }
}

/// Declares a struct whose encoding is its fields in order, so that encoding and decoding cannot differ.
///
/// The block `added` contains fields that were introduced after records of this shape existed. Each is an `Option` with
/// its own bit. A varint with the bits of the present fields follows the other fields; it is absent if it would be zero.
/// So old bytes stay valid, and a record without the new fields has the same bytes as before. Such a struct must be
/// encoded last, because its end is the end of the bytes.
#[macro_export]
macro_rules! fields {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* pub $field:ident : $t:ty),* $(,)? }) => {
        $crate::fields! { $(#[$meta])* pub struct $name { $($(#[$fmeta])* pub $field: $t),* } added {} }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$fmeta:meta])* pub $field:ident : $t:ty),* $(,)? }
        added { $($(#[$ameta:meta])* $bit:literal pub $added:ident : Option<$at:ty>),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$fmeta])* pub $field: $t,)* $($(#[$ameta])* pub $added: Option<$at>),* }

        impl $crate::codec::Field for $name {
            #[inline]
            #[allow(unused_variables)]
            fn put(&self, out: &mut Vec<u8>) {
                $($crate::codec::Field::put(&self.$field, out);)*
                let bits: u64 = 0 $(| if self.$added.is_some() { $bit } else { 0 })*;
                if bits != 0 {
                    $crate::codec::put_varint(bits, out);
                }
                $(if let Some(value) = &self.$added {
                    $crate::codec::Field::put(value, out);
                })*
            }
            #[inline]
            #[allow(unused_variables)]
            fn get(r: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::codec::DecodeError> {
                $(let $field = $crate::codec::Field::get(r)?;)*
                const KNOWN: u64 = 0 $(| $bit)*;
                let bits = if KNOWN == 0 { 0 } else { r.added(KNOWN)? };
                $(let $added = if bits & $bit == 0 { None } else { Some($crate::codec::Field::get(r)?) };)*
                Ok(Self { $($field,)* $($added),* })
            }
            #[inline]
            #[allow(unused_variables)]
            fn validate(r: &mut $crate::codec::Reader<'_>) -> Result<(), $crate::codec::DecodeError> {
                $(<$t as $crate::codec::Field>::validate(r)?;)*
                const KNOWN: u64 = 0 $(| $bit)*;
                let bits = if KNOWN == 0 { 0 } else { r.added(KNOWN)? };
                $(if bits & $bit != 0 {
                    <$at as $crate::codec::Field>::validate(r)?;
                })*
                Ok(())
            }
        }
    };
}
