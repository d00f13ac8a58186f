//! Signed notes (<https://c2sp.org/signed-note>): a text, a blank line, and a line per signature.
//!
//! ```text
//! If you think cryptography is the answer to your problem,
//! then you don't know what your problem is.
//!
//! — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
//! ```
//!
//! Parsing a note does not prove who wrote it: its text may be trusted only after [`Note::verify`].

use std::fmt;

use crate::atoms::{decode_base64, encode_base64};
use crate::key::{KeyId, NamedKey, VerifierKey, check_name};
use crate::limits::{NOTE_BYTES_MAX, NOTE_SIGNATURES_MAX};

const SIGNATURE_LINE_START: &str = "— ";

/// A text with the signatures that claim to belong to it. Prints as exactly the bytes it was parsed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<NoteSignature>,
}

/// One signature line: who claims to have signed, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteSignature {
    name: String,
    key_id: KeyId,
    signature: Vec<u8>,
}

/// Why a note is malformed or cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoteError {
    TooLong {
        bytes: usize,
    },
    TooManySignatures,
    /// A control character other than newline.
    ControlCharacter,
    /// The text must end in a newline.
    UnfinishedText,
    /// There is no blank line followed by whole signature lines.
    NoSignatures,
    /// A signature line (counted from 1) is not `— name base64`.
    MalformedSignature {
        line: usize,
    },
    /// A signature that claims to be by a known key is invalid.
    BadSignature {
        name: String,
        key_id: KeyId,
    },
    /// None of the signatures is by a known key.
    NoKnownSignature,
}

impl Note {
    /// A note without signatures, to which signatures are added.
    ///
    /// # Errors
    /// When the text does not end in a newline, has other control characters or is too long.
    pub fn unsigned(text: &str) -> Result<Self, NoteError> {
        check_characters(text)?;
        if !text.ends_with('\n') {
            return Err(NoteError::UnfinishedText);
        }
        Ok(Self { text: text.to_owned(), signatures: Vec::new() })
    }

    /// Parses a note without checking its signatures.
    ///
    /// # Errors
    /// When the note is malformed.
    pub fn parse(note: &str) -> Result<Self, NoteError> {
        check_characters(note)?;
        // The last blank line separates them: the text may contain blank lines.
        let border = note.rfind("\n\n").ok_or(NoteError::NoSignatures)?;
        let text = &note[..=border];
        let lines = note[border + 2..].strip_suffix('\n').ok_or(NoteError::NoSignatures)?;

        let mut signatures = Vec::new();
        for (line, number) in lines.split('\n').zip(1..) {
            if number > NOTE_SIGNATURES_MAX {
                return Err(NoteError::TooManySignatures);
            }
            let signature = NoteSignature::parse(line).ok_or(NoteError::MalformedSignature { line: number })?;
            signatures.push(signature);
        }
        Ok(Self { text: text.to_owned(), signatures })
    }

    /// What is signed, with its final newline.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    #[must_use]
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Adds a signature line at the end.
    ///
    /// # Errors
    /// When the note would go over its limits.
    pub fn add_signature(&mut self, signature: NoteSignature) -> Result<(), NoteError> {
        if self.signatures.len() >= NOTE_SIGNATURES_MAX {
            return Err(NoteError::TooManySignatures);
        }
        self.signatures.push(signature);
        let bytes = self.to_string().len();
        if bytes > NOTE_BYTES_MAX {
            self.signatures.pop();
            return Err(NoteError::TooLong { bytes });
        }
        Ok(())
    }

    /// The known keys that signed this text, at least one, each once.
    ///
    /// Signatures by other keys are ignored, so that witnesses and new keys can be added without breaking old readers.
    ///
    /// # Errors
    /// When a signature that claims to be by a known key is invalid (even if another is valid), or none is by a known key.
    pub fn verify<'k>(&self, keys: &'k [VerifierKey]) -> Result<Vec<&'k VerifierKey>, NoteError> {
        let mut signed_by: Vec<&VerifierKey> = Vec::new();
        for signature in &self.signatures {
            for key in keys.iter().filter(|key| key.named().is_named_by(signature)) {
                key.named()
                    .verify(self.text.as_bytes(), &signature.signature)
                    .map_err(|_| NoteError::BadSignature { name: key.name().to_owned(), key_id: key.id() })?;
                if !signed_by.contains(&key) {
                    signed_by.push(key);
                }
            }
        }
        if signed_by.is_empty() { Err(NoteError::NoKnownSignature) } else { Ok(signed_by) }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

impl NoteSignature {
    pub(crate) fn by(key: &NamedKey, signature: Vec<u8>) -> Self {
        Self { name: key.name.clone(), key_id: key.id, signature }
    }

    /// Reads one line, without its newline: what a witness answers is made of such lines.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (name, encoded) = line.strip_prefix(SIGNATURE_LINE_START)?.split_once(' ')?;
        check_name(name).ok()?;
        let decoded = decode_base64(encoded)?;
        let (key_id, signature) = decoded.split_first_chunk()?;
        if signature.is_empty() {
            return None;
        }
        Some(Self { name: name.to_owned(), key_id: KeyId(*key_id), signature: signature.to_vec() })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// What follows the key id; its form depends on the key's signature type.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }
}

/// The line as it stands in a note, without its newline.
impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoded = encode_base64(&[&self.key_id.0, self.signature.as_slice()].concat());
        write!(f, "{SIGNATURE_LINE_START}{} {encoded}", self.name)
    }
}

fn check_characters(text: &str) -> Result<(), NoteError> {
    if text.len() > NOTE_BYTES_MAX {
        return Err(NoteError::TooLong { bytes: text.len() });
    }
    if text.bytes().any(|byte| byte < 0x20 && byte != b'\n') {
        return Err(NoteError::ControlCharacter);
    }
    Ok(())
}

impl fmt::Display for NoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes } => write!(f, "the note has {bytes} bytes, the limit is {NOTE_BYTES_MAX}"),
            Self::TooManySignatures => {
                write!(f, "the note has more than {NOTE_SIGNATURES_MAX} signatures")
            }
            Self::ControlCharacter => f.write_str("the note has a control character other than newline"),
            Self::UnfinishedText => f.write_str("the note's text does not end in a newline"),
            Self::NoSignatures => f.write_str("the note has no blank line with whole signature lines after it"),
            Self::MalformedSignature { line } => {
                write!(f, "signature line {line} of the note is malformed")
            }
            Self::BadSignature { name, key_id } => {
                write!(f, "the note's signature in the name of {name} (key {key_id}) is false")
            }
            Self::NoKnownSignature => f.write_str("the note is not signed by any known key"),
        }
    }
}

impl std::error::Error for NoteError {}
