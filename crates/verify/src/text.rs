//! The lines that anchor, tree and trust files are made of (journal-format.md, "Anchor and tree files").

use leasehold_model::{Hash, hex};
use sha2::{Digest, Sha256};

/// Digits without a sign or a leading zero.
fn parse_number(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    if canonical && text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The text before the `end` line, if that line has its hash and nothing follows.
pub(crate) fn before_end(text: &str) -> Option<&str> {
    let lines = text.strip_suffix('\n')?;
    let end_at = lines.rfind('\n')? + 1;
    let end = hex::decode_hash(lines[end_at..].strip_prefix("end ")?)?;
    let body = &text[..end_at];
    (Sha256::digest(body).as_slice() == end).then_some(body)
}

/// The version in a first line such as `leasehold-anchor v1`; none if the text is of another family.
pub(crate) fn version(text: &str, family: &str) -> Option<u32> {
    let (line, _) = text.split_once('\n')?;
    parse_number(line.strip_prefix(family)?.strip_prefix(" v")?)?.try_into().ok()
}

/// Reads lines in order, each by the word it must begin with.
pub(crate) struct Lines<'a>(pub(crate) &'a str);

impl<'a> Lines<'a> {
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
}
