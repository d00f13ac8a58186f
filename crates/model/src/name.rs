//! Names that people give to things.

use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::limits::NAME_BYTES_MAX;
use std::fmt;

/// A name, tag, label or workload: one line of visible text of at most 128 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

/// Why a text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadName {
    Empty,
    TooLong,
    ControlCharacter,
    OuterSpace,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a name must not be empty",
            Self::TooLong => "a name can be at most 128 bytes long",
            Self::ControlCharacter => "a name must not contain control, invisible or direction-changing characters",
            Self::OuterSpace => "a name must not begin or end with a space",
        })
    }
}
impl std::error::Error for BadName {}

/// Characters that are invisible or change the writing direction. Without them, two names that look the same are
/// equal.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Letters and marks that are drawn as nothing or as a blank, beyond [`is_invisible`]. Names in old records may contain
/// them, so decoding accepts them for ever; requests that give a new name are refused.
pub fn is_blank_letter(c: char) -> bool {
    matches!(c, '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0080}'..='\u{e0fff}')
}

impl Name {
    pub fn new(text: &str) -> Result<Self, BadName> {
        Self::check(text).map(|()| Self(text.into()))
    }

    fn check(text: &str) -> Result<(), BadName> {
        if text.is_empty() {
            return Err(BadName::Empty);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(BadName::TooLong);
        }
        if text.chars().any(is_invisible) {
            return Err(BadName::ControlCharacter);
        }
        if text.trim() != text {
            return Err(BadName::OuterSpace);
        }
        Ok(())
    }

    /// The text of a name, still in the bytes that it was encoded in.
    pub(crate) fn borrow<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
        let n = r.count(NAME_BYTES_MAX)?;
        let text = std::str::from_utf8(r.take(n)?).map_err(|_| DecodeError::BadText)?;
        Self::check(text).map_err(|_| DecodeError::BadText)?;
        Ok(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::str::FromStr for Name {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        Self::new(text)
    }
}

impl Field for Name {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(self.0.len() as u64, out);
        out.extend_from_slice(self.0.as_bytes());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::borrow(r).map(|text| Self(text.into()))
    }
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        Self::borrow(r).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_old_records_are_still_decoded() {
        for old in ["1", "007", "\u{115f}", "pay\u{3164}roll", "a\u{fe0f}"] {
            let (mut bytes, name) = (Vec::new(), Name::new(old).expect("valid in a record"));
            name.put(&mut bytes);
            assert_eq!(Name::get(&mut Reader::new(&bytes)), Ok(name), "{old:?}");
        }
    }

    #[test]
    fn names_are_visible_text() {
        for good in ["physics", "Röntgen lab", "a", "team/α", &"x".repeat(128)] {
            assert!(Name::new(good).is_ok(), "{good:?}");
        }
        for (bad, why) in [
            ("", BadName::Empty),
            ("a\tb", BadName::ControlCharacter),
            ("a\u{202e}b", BadName::ControlCharacter),
            ("pay\u{200b}roll", BadName::ControlCharacter),
            (" a", BadName::OuterSpace),
            (&"x".repeat(129), BadName::TooLong),
        ] {
            assert_eq!(Name::new(bad), Err(why), "{bad:?}");
        }
    }
}
