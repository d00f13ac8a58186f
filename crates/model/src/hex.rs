//! Bytes as lower-case hexadecimal digits.

use crate::record::Hash;
use std::fmt::Write;

pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Exactly 64 lower-case digits.
pub fn decode_hash(text: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = decode_byte(pair)?;
    }
    Some(hash)
}

/// Any number of bytes, two lower-case digits each.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks_exact(2).map(decode_byte).collect()
}

fn decode_byte(pair: &[u8]) -> Option<u8> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    Some(digit(pair[0])? << 4 | digit(pair[1])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_come_back_and_nothing_else_is_one() {
        assert_eq!(encode(&[0x00, 0x0f, 0xf0]), "000ff0");
        let hash = std::array::from_fn(|i| u8::try_from(i * 7).expect("below 256"));
        let text = encode(&hash);
        assert_eq!(decode_hash(&text), Some(hash));
        assert_eq!(decode(&text), Some(hash.to_vec()));
        assert_eq!((decode(""), decode("0"), decode("0G")), (Some(vec![]), None, None));
        for wrong in ["", "AB", &text[1..], &text.to_uppercase(), &format!("{text}0"), &"+".repeat(64)] {
            assert_eq!(decode_hash(wrong), None, "{wrong}");
        }
    }
}
