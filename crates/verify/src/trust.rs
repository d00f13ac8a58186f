//! The trust file: what the auditor knew before the verification (journal-format.md, "The trust file").
//!
//! It belongs to the auditor and is never taken from the directory that is verified: that would prove nothing.

use leasehold_tlog::{Checkpoint, CheckpointError, KeyError, Note, NoteError, VerifierKey, WitnessKey};
use std::fmt;

const FAMILY: &str = "leasehold-trust";
const FIRST_LINE: &str = "leasehold-trust v1";

/// The expected origin, its keys, and its last verified checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    origin: String,
    keys: Vec<VerifierKey>,
    witnesses: Vec<WitnessKey>,
    /// How many of the witnesses must have cosigned the newest checkpoint; 0 if none must.
    required: usize,
    pinned: Option<Pinned>,
}

/// The checkpoint that the auditor verified last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    pub note: Note,
    /// The content of the note. Not trusted before its signature is checked against the key in force at that size.
    pub checkpoint: Checkpoint,
}

/// Why a text is not a trust file. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustError {
    NotATrustFile,
    NewerFormat {
        version: u32,
    },
    UnknownLine {
        line: usize,
    },
    /// Lines end with LF; this one has a carriage return.
    CarriageReturn {
        line: usize,
    },
    BadKey {
        line: usize,
        why: KeyError,
    },
    /// A key with another name than the origin belongs to another log.
    ForeignKey {
        name: String,
        origin: String,
    },
    NoOrigin,
    SecondOrigin {
        line: usize,
    },
    NoKey,
    /// `require` takes a decimal number from 1 on.
    BadRequire {
        line: usize,
    },
    SecondRequire {
        line: usize,
    },
    /// There are fewer distinct witnesses than are required.
    RequireTooMany {
        line: usize,
        required: usize,
        witnesses: usize,
    },
    BadNote(NoteError),
    BadCheckpoint(CheckpointError),
    ForeignCheckpoint {
        origin: String,
    },
}

impl Trust {
    /// Trusts one key of one origin, with nothing pinned yet.
    pub fn new(key: VerifierKey) -> Self {
        Self { origin: key.name().to_owned(), keys: vec![key], witnesses: Vec::new(), required: 0, pinned: None }
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }
    pub fn keys(&self) -> &[VerifierKey] {
        &self.keys
    }
    pub fn witnesses(&self) -> &[WitnessKey] {
        &self.witnesses
    }
    /// How many distinct witnesses must have cosigned the newest checkpoint; 0 if none must.
    pub fn required(&self) -> usize {
        self.required
    }
    pub fn pinned(&self) -> Option<&Pinned> {
        self.pinned.as_ref()
    }

    /// The same without the pinned checkpoint.
    #[must_use]
    pub fn without_pinned(&self) -> Self {
        Self { pinned: None, ..self.clone() }
    }

    /// Trusts one more key of the same origin.
    ///
    /// # Errors
    /// When the key signs under another name.
    pub fn add_key(&mut self, key: VerifierKey) -> Result<(), TrustError> {
        if key.name() != self.origin {
            return Err(TrustError::ForeignKey { name: key.name().to_owned(), origin: self.origin.clone() });
        }
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
        Ok(())
    }

    pub fn add_witness(&mut self, witness: WitnessKey) {
        if !self.witnesses.contains(&witness) {
            self.witnesses.push(witness);
        }
    }

    /// Requires the cosignatures of so many distinct witnesses.
    ///
    /// # Errors
    /// When there are fewer witnesses.
    pub fn require(&mut self, required: usize) -> Result<(), TrustError> {
        self.require_in_line(required, 0)
    }

    fn require_in_line(&mut self, required: usize, line: usize) -> Result<(), TrustError> {
        let witnesses = distinct(&self.witnesses);
        if required > witnesses {
            return Err(TrustError::RequireTooMany { line, required, witnesses });
        }
        self.required = required;
        Ok(())
    }

    /// Replaces the pinned checkpoint.
    ///
    /// # Errors
    /// When the text is not a signed checkpoint of this origin. The signature itself is checked by [`crate::verify`].
    pub fn pin(&mut self, note: &str) -> Result<(), TrustError> {
        let note = Note::parse(note).map_err(TrustError::BadNote)?;
        let checkpoint = Checkpoint::from_body(note.text()).map_err(TrustError::BadCheckpoint)?;
        if checkpoint.origin() != self.origin {
            return Err(TrustError::ForeignCheckpoint { origin: checkpoint.origin().to_owned() });
        }
        if !checkpoint.extensions().is_empty() {
            return Err(TrustError::BadCheckpoint(CheckpointError::BadExtension));
        }
        self.pinned = Some(Pinned { note, checkpoint });
        Ok(())
    }

    /// Reads a trust file.
    ///
    /// # Errors
    /// Names the first invalid line.
    pub fn parse(text: &str) -> Result<Self, TrustError> {
        // `str::lines` would pass over it, and another verifier would not.
        if let Some(at) = text.find('\r') {
            return Err(TrustError::CarriageReturn { line: text[..at].matches('\n').count() + 1 });
        }
        let (head, note) = split_note(text);
        let mut origin = None;
        let mut keys: Vec<VerifierKey> = Vec::new();
        let mut witnesses = Vec::new();
        let mut required = None;
        let mut meaningful =
            (1..).zip(head.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        match meaningful.next() {
            Some((_, FIRST_LINE)) => {}
            Some((_, line)) => {
                return Err(match crate::text::version(&format!("{line}\n"), FAMILY) {
                    Some(version) if version > 1 => TrustError::NewerFormat { version },
                    _ => TrustError::NotATrustFile,
                });
            }
            None => return Err(TrustError::NotATrustFile),
        }
        for (line, content) in meaningful {
            let bad_key = |why| TrustError::BadKey { line, why };
            match content.split_once(' ') {
                Some(("origin", name)) if origin.is_none() => origin = Some(name.to_owned()),
                Some(("origin", _)) => return Err(TrustError::SecondOrigin { line }),
                Some(("key", key)) => keys.push(key.parse().map_err(bad_key)?),
                Some(("witness", key)) => witnesses.push(key.parse().map_err(bad_key)?),
                Some(("require", _)) if required.is_some() => return Err(TrustError::SecondRequire { line }),
                Some(("require", number)) => {
                    required = Some((line, count(number).ok_or(TrustError::BadRequire { line })?));
                }
                _ => return Err(TrustError::UnknownLine { line }),
            }
        }
        let origin = origin.ok_or(TrustError::NoOrigin)?;
        if keys.is_empty() {
            return Err(TrustError::NoKey);
        }
        let mut trust = Self { origin, keys: Vec::new(), witnesses, required: 0, pinned: None };
        keys.into_iter().try_for_each(|key| trust.add_key(key))?;
        if let Some((line, required)) = required {
            trust.require_in_line(required, line)?;
        }
        if let Some(note) = note {
            trust.pin(note)?;
        }
        Ok(trust)
    }

    /// The trust file, as [`Trust::parse`] reads it.
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\norigin {}\n", self.origin);
        self.keys.iter().for_each(|key| text.push_str(&format!("key {key}\n")));
        self.witnesses.iter().for_each(|key| text.push_str(&format!("witness {key}\n")));
        if self.required > 0 {
            text.push_str(&format!("require {}\n", self.required));
        }
        if let Some(pinned) = &self.pinned {
            text.push_str(&format!("checkpoint\n{}", pinned.note));
        }
        text
    }
}

/// The number of different public keys. A cosignature does not name its witness, so that one key under two names is one
/// witness.
pub(crate) fn distinct<'w>(witnesses: impl IntoIterator<Item = &'w WitnessKey>) -> usize {
    let keys: std::collections::BTreeSet<[u8; 32]> = witnesses.into_iter().map(WitnessKey::public_key).collect();
    keys.len()
}

/// A decimal number from 1 on, without leading zeroes.
fn count(text: &str) -> Option<usize> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| digits)
}

/// The note begins after the first line `checkpoint` and goes to the end: nothing in it is read as a comment.
fn split_note(text: &str) -> (&str, Option<&str>) {
    const BORDER: &str = "checkpoint\n";
    let mut from = 0;
    while let Some(found) = text[from..].find(BORDER) {
        let at = from + found;
        if at == 0 || text.as_bytes()[at - 1] == b'\n' {
            return (&text[..at], Some(&text[at + BORDER.len()..]));
        }
        from = at + BORDER.len();
    }
    (text, None)
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATrustFile => write!(f, "a trust file begins with the line `{FIRST_LINE}`"),
            Self::NewerFormat { version } => {
                write!(f, "version {version} is not supported (only version 1 is); use a newer leasehold-verify")
            }
            Self::UnknownLine { line } => {
                write!(
                    f,
                    "line {line} is not an origin, a key, a witness, a require line, a checkpoint or a comment that begins with #"
                )
            }
            Self::CarriageReturn { line } => {
                write!(f, "line {line} contains a carriage return; lines end with a line feed alone, as on Unix")
            }
            Self::BadKey { line, why } => write!(f, "line {line}: {why}"),
            Self::ForeignKey { name, origin } => {
                write!(f, "a key of {name:?} cannot sign for the origin {origin:?}; keys have the name of their origin")
            }
            Self::NoOrigin => f.write_str("the line `origin NAME` is missing"),
            Self::SecondOrigin { line } => write!(f, "line {line} is a second origin"),
            Self::NoKey => f.write_str("the line `key NAME+ID+BASE64` is missing"),
            Self::BadRequire { line } => {
                write!(f, "line {line}: `require` takes the number of witnesses that must have cosigned, 1 or more")
            }
            Self::SecondRequire { line } => write!(f, "line {line} is a second `require`"),
            Self::RequireTooMany { line, required, witnesses } => write!(
                f,
                "line {line} requires {required} witnesses, but the file names {witnesses} with different keys"
            ),
            Self::BadNote(error) => write!(f, "its checkpoint cannot be read: {error}"),
            Self::BadCheckpoint(error) => write!(f, "its checkpoint cannot be read: {error}"),
            Self::ForeignCheckpoint { origin } => write!(f, "its checkpoint is from another origin, {origin:?}"),
        }
    }
}
impl std::error::Error for TrustError {}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_tlog::{SigningKey, WitnessSigningKey};

    fn sample() -> Trust {
        let key = SigningKey::from_seed("c.example", &[1; 32]).unwrap();
        let mut trust = Trust::new(key.verifier());
        trust.add_key(SigningKey::from_seed("c.example", &[2; 32]).unwrap().verifier()).unwrap();
        trust.add_witness(WitnessSigningKey::from_seed("w.example", &[3; 32]).unwrap().verifier());
        trust.require(1).unwrap();
        trust.pin(&Checkpoint::new("c.example", 7, [9; 32]).unwrap().sign(&key)).unwrap();
        trust
    }

    #[test]
    fn a_wrong_number_of_required_witnesses_is_refused_with_its_line() {
        let text = sample().to_text();
        let with = |line: &str| Trust::parse(&text.replacen("require 1", line, 1));
        assert_eq!(with("require 1").unwrap().required(), 1);
        assert_eq!(with("# none").unwrap().required(), 0);
        for wrong in ["require 0", "require 01", "require +1", "require -1", "require 1 ", "require ", "require one"] {
            assert_eq!(with(wrong), Err(TrustError::BadRequire { line: 6 }), "{wrong:?}");
        }
        assert_eq!(with("require 99999999999999999999999"), Err(TrustError::BadRequire { line: 6 }));
        assert_eq!(with("require"), Err(TrustError::UnknownLine { line: 6 }));
        assert_eq!(with("require 1\nrequire 1"), Err(TrustError::SecondRequire { line: 7 }));
        assert_eq!(with("require 2"), Err(TrustError::RequireTooMany { line: 6, required: 2, witnesses: 1 }));
        // The same key under another name is not another witness.
        let alias = WitnessSigningKey::from_seed("x.example", &[3; 32]).unwrap().verifier();
        let aliased = with(&format!("require 2\nwitness {alias}"));
        assert_eq!(aliased, Err(TrustError::RequireTooMany { line: 6, required: 2, witnesses: 1 }));
        let other = WitnessSigningKey::from_seed("x.example", &[4; 32]).unwrap().verifier();
        assert_eq!(with(&format!("require 2\nwitness {other}")).unwrap().required(), 2);
    }

    #[test]
    fn what_is_printed_is_read_again() {
        let trust = sample();
        assert_eq!(Trust::parse(&trust.to_text()), Ok(trust.clone()));
        let remarked = trust.to_text().replace("\norigin", "\n# got by phone, 2026-03-01\n\norigin");
        assert_eq!(Trust::parse(&remarked), Ok(trust));
    }

    #[test]
    fn an_invalid_file_is_refused_with_its_reason() {
        let text = sample().to_text();
        let check = |text: &str, why: TrustError| assert_eq!(Trust::parse(text), Err(why), "{text}");
        check("", TrustError::NotATrustFile);
        check("origin c.example\n", TrustError::NotATrustFile);
        check("leasehold-trust v2\n", TrustError::NewerFormat { version: 2 });
        check("leasehold-trust v1\n", TrustError::NoOrigin);
        check("leasehold-trust v1\norigin a\n", TrustError::NoKey);
        check("leasehold-trust v1\norigin a\norigin b\n", TrustError::SecondOrigin { line: 3 });
        check("leasehold-trust v1\norigin a\nkey x\n", TrustError::BadKey { line: 3, why: KeyError::Malformed });
        check("leasehold-trust v1\ncolour blue\n", TrustError::UnknownLine { line: 2 });
        check(&text.replacen("c.example\nkey", "c.example\r\nkey", 1), TrustError::CarriageReturn { line: 2 });
        check(&text.replace('\n', "\r\n"), TrustError::CarriageReturn { line: 1 });
        check(
            &text.replacen("origin c.example", "origin d.example", 1),
            TrustError::ForeignKey { name: "c.example".into(), origin: "d.example".into() },
        );
        check(
            &text.replacen("\nc.example\n7", "\nd.example\n7", 1),
            TrustError::ForeignCheckpoint { origin: "d.example".into() },
        );
        check(text.split_once("\n\n").unwrap().0, TrustError::BadNote(NoteError::NoSignatures));
    }
}
