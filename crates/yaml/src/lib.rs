//! A file that cannot be read as configuration: which file, which line, and what was probably meant.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    Unreadable {
        file: PathBuf,
        why: String,
    },
    Wrong {
        file: PathBuf,
        /// Counted from one.
        line: Option<u64>,
        what: String,
        advice: String,
    },
}

impl LoadError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "config_unreadable",
            Self::Wrong { .. } => "config_wrong",
        }
    }

    pub(super) fn wrong(file: &Path, error: &serde_saphyr::Error) -> Self {
        use serde_saphyr::Error;
        let error = error.without_snippet();
        let (what, advice) = match error {
            Error::SerdeUnknownField { field, expected, .. } => {
                (format!("unknown key `{field}`"), meant(field, expected, "the keys here are"))
            }
            Error::SerdeUnknownVariant { variant, expected, .. } => {
                (format!("unknown value `{variant}`"), meant(variant, expected, "it is one of"))
            }
            Error::DuplicateMappingKey { key: Some(key), .. } => {
                (format!("the key `{key}` stands twice"), "keep one of the two".to_owned())
            }
            // What our own types say of a value ends with how to write it.
            Error::Message { msg, .. } => match msg.split_once("; ") {
                Some((what, advice)) => (what.to_owned(), advice.to_owned()),
                None => (msg.clone(), SEE.to_owned()),
            },
            Error::SerdeInvalidType { unexpected, expected, .. }
            | Error::SerdeInvalidValue { unexpected, expected, .. } => {
                (format!("{unexpected} stands where {expected} belongs"), SEE.to_owned())
            }
            Error::InvalidScalar { ty, .. } => (format!("the value is not {}", in_words(ty)), SEE.to_owned()),
            Error::InvalidBooleanStrict { .. } => ("the value is not true or false".to_owned(), SEE.to_owned()),
            other => (plain(other), SEE.to_owned()),
        };
        let line = error.location().map(|at| at.line()).filter(|line| *line > 0);
        Self::Wrong { file: file.to_owned(), line, what, advice }
    }
}

const SEE: &str = "`leasehold config example` shows every key";

fn in_words(kind: &str) -> &str {
    match kind {
        "u32" | "u64" => "a whole number that fits",
        "bool" => "true or false",
        other => other,
    }
}

/// The message on one line and without its place, which we say ourselves.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let text = text.lines().next().unwrap_or("this is not YAML");
    text.split(" at line ").next().unwrap_or(text).to_owned()
}

/// Farther than this from every word, nothing in particular was meant.
const NEAR: usize = 3;

fn meant(word: &str, known: &[&str], all: &str) -> String {
    if let Some(section) = section_of(word).filter(|_| !known.contains(&word)) {
        return format!("it belongs under `{section}`");
    }
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(word, known), known)).min();
    match near {
        Some((distance, known)) if distance <= NEAR.min(known.len() / 2) => format!("did you mean `{known}`?"),
        _ => format!("{all} {}", known.join(", ")),
    }
}

/// The section that has a key of this name, if it is the only one.
fn section_of(key: &str) -> Option<&'static str> {
    let mut sections = super::KEYS.iter().filter_map(|path| path.split_once('.')).filter(|(_, last)| *last == key);
    let (section, _) = sections.next()?;
    sections.next().is_none().then_some(section)
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, why } => write!(f, "{}: {why}; check the path and its rights", file.display()),
            Self::Wrong { file, line: Some(line), what, advice } => {
                write!(f, "{}: {what} at line {line}; {advice}", file.display())
            }
            Self::Wrong { file, line: None, what, advice } => write!(f, "{}: {what}; {advice}", file.display()),
        }
    }
}
impl std::error::Error for LoadError {}
