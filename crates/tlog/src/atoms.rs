//! The atoms all the C2SP texts are made of: decimal numbers, base64 and hashes.
//!
//! Each value has exactly one spelling. Otherwise two different texts could mean the same, and comparing bytes or
//! checking a signature would not be enough to identify a text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::hash::Hash;

/// Digits only, no sign, no leading zero.
pub(crate) fn parse_decimal(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if canonical && digits { text.parse().ok() } else { None }
}

/// RFC 4648, section 4, with padding.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The engine refuses missing padding and stray bits in the last character.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// A hash in its one base64 form, with padding.
#[must_use]
pub fn decode_hash(text: &str) -> Option<Hash> {
    decode_base64(text)?.try_into().ok()
}

/// A line that a note can carry: signed-note forbids characters below U+0020, and a newline would end it.
pub(crate) fn is_line(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte >= 0x20)
}
