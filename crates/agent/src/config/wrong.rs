//! A file that cannot be read as configuration: which file, which line, and what was probably meant.

use std::fmt;
use std::io;
use std::path::Path;

/// `what; advice`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) code: &'static str,
    text: String,
}

const SEE: &str = "docs/how-to/agent.md shows every key";
/// Farther than this from every word, nothing in particular was meant.
const NEAR: usize = 3;

impl Wrong {
    pub(super) fn unreadable(file: &Path, error: &io::Error) -> Self {
        let text = format!("{}: {error}; check the path and its rights", file.display());
        Self { code: "config_unreadable", text }
    }

    pub(super) fn new(file: &Path, error: &serde_saphyr::Error) -> Self {
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
            other => (plain(other), SEE.to_owned()),
        };
        let line = error.location().map(|at| at.line()).filter(|line| *line > 0);
        let line = line.map(|line| format!(" at line {line}")).unwrap_or_default();
        Self { code: "config_wrong", text: format!("{}: {what}{line}; {advice}", file.display()) }
    }
}

/// The message on one line and without its place, which we say ourselves.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let text = text.lines().next().unwrap_or("this is not YAML");
    text.split(" at line ").next().unwrap_or(text).to_owned()
}

fn meant(word: &str, known: &[&str], all: &str) -> String {
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(word, known), known)).min();
    match near {
        Some((distance, known)) if distance <= NEAR.min(known.len() / 2) => format!("did you mean `{known}`?"),
        _ => format!("{all} {}", known.join(", ")),
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
