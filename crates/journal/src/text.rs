//! The small text files beside the segments: lines of `word value`, closed by a checksum line.

use leasehold_model::hex;
use leasehold_model::record::Hash;
use sha2::{Digest, Sha256};

/// Digits without a sign or a leading zero.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    (canonical && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Adds the `end` line: the hash of all before it.
pub(crate) fn close(mut text: String) -> String {
    let end = hex::encode(&Sha256::digest(text.as_bytes()));
    text.push_str("end ");
    text.push_str(&end);
    text.push('\n');
    text
}

/// What stands before the `end` line, if that line fits it and nothing follows.
pub(crate) fn open(text: &str) -> Option<&str> {
    let body = text.strip_suffix('\n')?;
    let end_at = body.rfind('\n')? + 1;
    let end = hex::decode_hash(body[end_at..].strip_prefix("end ")?)?;
    let body = &text[..end_at];
    (Sha256::digest(body.as_bytes()).as_slice() == end).then_some(body)
}

/// Lines taken one after the other, each by the word it must begin with.
pub(crate) struct Lines<'a>(pub(crate) &'a str);

impl<'a> Lines<'a> {
    /// The value after `word`, which must be the next line's first word.
    pub(crate) fn value(&mut self, word: &str) -> Option<&'a str> {
        let (line, rest) = self.0.split_once('\n')?;
        let value = line.strip_prefix(word)?.strip_prefix(' ')?;
        self.0 = rest;
        Some(value)
    }
    pub(crate) fn number(&mut self, word: &str) -> Option<u64> {
        parse_number(self.value(word)?)
    }
    pub(crate) fn hash(&mut self, word: &str) -> Option<Hash> {
        hex::decode_hash(self.value(word)?)
    }
    /// A line that is exactly `line`.
    pub(crate) fn exactly(&mut self, line: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(line)?.strip_prefix('\n')?;
        Some(())
    }
    /// All that is left.
    pub(crate) fn rest(self) -> &'a str {
        self.0
    }
}

/// The version in a first line such as `leasehold-anchor v1`, if it is of that family at all.
pub(crate) fn version(text: &str, family: &str) -> Option<u32> {
    let (line, _) = text.split_once('\n')?;
    let number = line.strip_prefix(family)?.strip_prefix(" v")?;
    parse_number(number)?.try_into().ok()
}
