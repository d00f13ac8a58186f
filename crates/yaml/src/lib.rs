//! Configuration files: YAML, read strictly.
//!
//! In: a file, and the type to read it as. Out: the value, or an error with the line and a suggestion.
//! Never: interpret a value; the program whose configuration it is does.

use serde::de::DeserializeOwned;
use std::fmt;
use std::path::{Path, PathBuf};

/// How errors in a file are explained.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Where every key is documented; the advice if there is no better one.
    pub see: &'static str,
    /// The section of a key, for keys that are found elsewhere.
    pub section_of: fn(&str) -> Option<&'static str>,
}

impl Reader {
    pub fn load<T: DeserializeOwned + Default>(&self, file: &Path) -> Result<T, LoadError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| LoadError::Unreadable { file: file.to_owned(), why: error.to_string() })?;
        self.parse(&text, file)
    }

    /// Parses the text of a file; `file` is its name in errors.
    pub fn parse<T: DeserializeOwned + Default>(&self, text: &str, file: &Path) -> Result<T, LoadError> {
        let options = serde_saphyr::options! {
            strict_booleans: true,
            merge_keys: serde_saphyr::MergeKeyPolicy::Error,
            with_snippet: false,
        };
        // A file with comments only changes nothing.
        let read = serde_saphyr::from_str_with_options::<Option<T>>(text, options);
        read.map(Option::unwrap_or_default).map_err(|error| self.wrong(file, &error))
    }

    /// Parses the text and collects all mistakes: an entry with one is left out, and the rest is parsed again. The value
    /// is what is left; there is none if the text is not YAML.
    pub fn parse_all<T: DeserializeOwned + Default>(&self, text: &str, file: &Path) -> (Option<T>, Vec<LoadError>) {
        let mut lines: Vec<&str> = text.lines().collect();
        let mut mistakes = Vec::new();
        loop {
            let error = match self.parse(&lines.join("\n"), file) {
                Ok(value) => return (Some(value), mistakes),
                Err(error) => error,
            };
            let line = match &error {
                LoadError::Wrong { line: Some(line), .. } => usize::try_from(*line).ok().and_then(|n| n.checked_sub(1)),
                LoadError::Wrong { line: None, .. } | LoadError::Unreadable { .. } => None,
            };
            mistakes.push(error);
            let left_out = line.is_some_and(|line| leave_out(&mut lines, line));
            if !left_out || mistakes.len() == MISTAKES_MAX {
                return (None, mistakes);
            }
        }
    }

    fn wrong(&self, file: &Path, error: &serde_saphyr::Error) -> LoadError {
        use serde_saphyr::Error;
        let error = error.without_snippet();
        let see = self.see.to_owned();
        let (what, advice) = match error {
            Error::SerdeUnknownField { field, expected, .. } => {
                let section = (self.section_of)(field).filter(|_| !expected.contains(&field.as_str()));
                let advice = section.map(|section| format!("it belongs under `{section}`"));
                (
                    format!("unknown key `{field}`"),
                    advice.unwrap_or_else(|| suggestion(field, expected, "the keys here are")),
                )
            }
            Error::SerdeUnknownVariant { variant, expected, .. } => {
                (format!("unknown value `{variant}`"), suggestion(variant, expected, "it must be one of"))
            }
            Error::DuplicateMappingKey { key: Some(key), .. } => {
                (format!("duplicate key `{key}`"), "keep one of the two".to_owned())
            }
            // Messages of our own types end with how to write the value.
            Error::Message { msg, .. } => match msg.split_once("; ") {
                Some((what, advice)) => (what.to_owned(), advice.to_owned()),
                None => (msg.clone(), see),
            },
            Error::SerdeInvalidType { unexpected, expected, .. }
            | Error::SerdeInvalidValue { unexpected, expected, .. } => {
                (format!("expected {expected}, found {unexpected}"), see)
            }
            Error::InvalidScalar { ty, .. } => (format!("the value must be {}", in_words(ty)), see),
            Error::InvalidBooleanStrict { .. } => ("the value must be true or false".to_owned(), see),
            other => (plain(other), see),
        };
        let line = error.location().map(|at| at.line()).filter(|line| *line > 0);
        LoadError::Wrong { file: file.to_owned(), line, what, advice }
    }
}

/// The most mistakes that are collected.
const MISTAKES_MAX: usize = 50;

/// Blanks an entry, that is the line and those that are indented more. Returns whether there was one.
fn leave_out(lines: &mut [&str], line: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let Some(first) = lines.get(line).copied().filter(|first| !first.trim().is_empty()) else { return false };
    let inner = lines[line + 1..].iter().take_while(|next| next.trim().is_empty() || indent(next) > indent(first));
    let end = line + 1 + inner.count();
    lines[line..end].fill("");
    true
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    Unreadable {
        file: PathBuf,
        why: String,
    },
    Wrong {
        file: PathBuf,
        /// Counted from 1.
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
}

fn in_words(kind: &str) -> &str {
    match kind {
        "u32" | "u64" => "an integer in range",
        "bool" => "true or false",
        other => other,
    }
}

/// The message on one line and without its location, which [`LoadError`] adds.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let text = text.lines().next().unwrap_or("invalid YAML");
    text.split(" at line ").next().unwrap_or(text).to_owned()
}

/// Largest edit distance of a suggestion.
const NEAR: usize = 3;

fn suggestion(word: &str, known: &[&str], all: &str) -> String {
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(word, known), known)).min();
    match near {
        Some((distance, known)) if distance <= NEAR.min(known.len() / 2) => format!("did you mean `{known}`?"),
        _ => format!("{all} {}", known.join(", ")),
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, why } => {
                write!(f, "{}: {why}; check the path and its permissions", file.display())
            }
            Self::Wrong { file, line: Some(line), what, advice } => {
                write!(f, "{}: {what} at line {line}; {advice}", file.display())
            }
            Self::Wrong { file, line: None, what, advice } => write!(f, "{}: {what}; {advice}", file.display()),
        }
    }
}
impl std::error::Error for LoadError {}
