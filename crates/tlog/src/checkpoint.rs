//! Checkpoints (<https://c2sp.org/tlog-checkpoint>): the signed head of a log.
//!
//! ```text
//! example.com/behind-the-sofa
//! 20852163
//! CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
//! ```
//!
//! Origin, size and root, then extension lines if any: that is the text of a signed note. A checkpoint covers
//! all records before it; two of the same origin that are not consistent prove that the log was forked.

use std::fmt;

use crate::atoms::{decode_hash, encode_base64, is_line, parse_decimal};
use crate::hash::{Hash, empty_root};
use crate::key::{SigningKey, VerifierKey};
use crate::limits::{EXTENSION_BYTES_MAX, EXTENSION_LINES_MAX, NAME_BYTES_MAX, TREE_SIZE_MAX};
use crate::note::{Note, NoteError};

/// The head of a log at one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    origin: String,
    size: u64,
    root: Hash,
    extensions: Vec<String>,
}

/// Why a checkpoint cannot be created, parsed or trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointError {
    BadOrigin,
    BadSize,
    BadRoot,
    BadExtension,
    /// A tree without leaves must have the empty root.
    EmptyTreeWithARoot,
    /// Fewer than three lines, or a line without a newline.
    MissingLine,
    /// The head of some other log.
    WrongOrigin {
        expected: String,
        found: String,
    },
    /// The note around it is malformed or not signed by a known key.
    Note(NoteError),
}

impl Checkpoint {
    /// # Errors
    /// When the origin is not a single line, the size is over the limit, or an empty tree has another root.
    pub fn new(origin: &str, size: u64, root: Hash) -> Result<Self, CheckpointError> {
        if !is_line(origin) || origin.len() > NAME_BYTES_MAX {
            return Err(CheckpointError::BadOrigin);
        }
        if size > TREE_SIZE_MAX {
            return Err(CheckpointError::BadSize);
        }
        if size == 0 && root != empty_root() {
            return Err(CheckpointError::EmptyTreeWithARoot);
        }
        Ok(Self { origin: origin.to_owned(), size, root, extensions: Vec::new() })
    }

    /// Adds one opaque line after the root.
    ///
    /// # Errors
    /// When it is not a line, or there are too many.
    pub fn add_extension(&mut self, line: &str) -> Result<(), CheckpointError> {
        if !is_line(line) || line.len() > EXTENSION_BYTES_MAX || self.extensions.len() >= EXTENSION_LINES_MAX {
            return Err(CheckpointError::BadExtension);
        }
        self.extensions.push(line.to_owned());
        Ok(())
    }

    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    #[must_use]
    pub fn root(&self) -> &Hash {
        &self.root
    }

    #[must_use]
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// The text that is signed.
    #[must_use]
    pub fn body(&self) -> String {
        let mut body = format!("{}\n{}\n{}\n", self.origin, self.size, encode_base64(&self.root));
        for line in &self.extensions {
            body.push_str(line);
            body.push('\n');
        }
        body
    }

    /// Parses a text whose signature was checked before, or need not be.
    ///
    /// # Errors
    /// Names the first invalid line.
    pub fn from_body(body: &str) -> Result<Self, CheckpointError> {
        let mut lines = body.strip_suffix('\n').ok_or(CheckpointError::MissingLine)?.split('\n');
        let mut next = || lines.next().ok_or(CheckpointError::MissingLine);
        let origin = next()?;
        let size = parse_decimal(next()?).ok_or(CheckpointError::BadSize)?;
        let root = decode_hash(next()?).ok_or(CheckpointError::BadRoot)?;
        let mut checkpoint = Self::new(origin, size, root)?;
        lines.try_for_each(|line| checkpoint.add_extension(line))?;
        Ok(checkpoint)
    }

    /// The checkpoint as a note signed by the log.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> String {
        self.sign_by(std::slice::from_ref(key))
    }

    /// The checkpoint as a note signed by several keys of the log, in this order.
    #[must_use]
    pub fn sign_by(&self, keys: &[SigningKey]) -> String {
        let body = self.body();
        let signatures: String = keys.iter().map(|key| format!("{}\n", key.sign_note_text(&body))).collect();
        format!("{body}\n{signatures}")
    }

    /// The checkpoint in a note, if a known key signed it and it belongs to the expected log.
    ///
    /// # Errors
    /// When the note is malformed, not signed by a known key, of another origin, or no checkpoint.
    pub fn open(note: &str, keys: &[VerifierKey], origin: &str) -> Result<Self, CheckpointError> {
        Self::open_note(&Note::parse(note)?, keys, origin)
    }

    /// As [`Checkpoint::open`], from a note already parsed.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn open_note(note: &Note, keys: &[VerifierKey], origin: &str) -> Result<Self, CheckpointError> {
        note.verify(keys)?;
        let checkpoint = Self::from_body(note.text())?;
        if checkpoint.origin != origin {
            return Err(CheckpointError::WrongOrigin { expected: origin.to_owned(), found: checkpoint.origin });
        }
        Ok(checkpoint)
    }
}

impl From<NoteError> for CheckpointError {
    fn from(error: NoteError) -> Self {
        Self::Note(error)
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadOrigin => write!(f, "a checkpoint's origin must be one line of 1 to {NAME_BYTES_MAX} bytes"),
            Self::BadSize => {
                write!(f, "a checkpoint's size must be a decimal number without leading zeros, at most {TREE_SIZE_MAX}")
            }
            Self::BadRoot => f.write_str("a checkpoint's root must be 32 bytes in base64"),
            Self::BadExtension => write!(
                f,
                "a checkpoint has at most {EXTENSION_LINES_MAX} extension lines of 1 to {EXTENSION_BYTES_MAX} bytes"
            ),
            Self::EmptyTreeWithARoot => f.write_str("a checkpoint of size 0 must have the root of the empty tree"),
            Self::MissingLine => {
                f.write_str("a checkpoint has an origin line, a size line and a root line, each ended by a newline")
            }
            Self::WrongOrigin { expected, found } => {
                write!(f, "the checkpoint is of the log {found:?}, expected {expected:?}")
            }
            Self::Note(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CheckpointError {}
