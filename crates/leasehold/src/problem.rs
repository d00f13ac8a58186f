//! Why a command did not do what was asked: a sentence, a stable code, and what to do.

use crate::term;
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

pub(crate) const EXIT_OK: u8 = 0;
/// Refused, or not found.
pub(crate) const EXIT_REFUSED: u8 = 1;
pub(crate) const EXIT_USAGE: u8 = 2;
/// What was looked at is not what it should be.
pub(crate) const EXIT_NOT_VERIFIED: u8 = 3;

/// Prints as `what (code); advice`.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Cow<'static, str>,
    what: String,
    advice: Option<String>,
    exit: u8,
}

impl Problem {
    pub(crate) fn refused(code: &'static str, what: impl Into<String>) -> Self {
        Self { code: code.into(), what: what.into(), advice: None, exit: EXIT_REFUSED }
    }
    pub(crate) fn usage(code: &'static str, what: impl Into<String>) -> Self {
        Self { exit: EXIT_USAGE, ..Self::refused(code, what) }
    }
    pub(crate) fn not_verified(code: &'static str, what: impl Into<String>) -> Self {
        Self { exit: EXIT_NOT_VERIFIED, ..Self::refused(code, what) }
    }
    /// A refusal whose code comes from elsewhere.
    pub(crate) fn coded(code: impl Into<Cow<'static, str>>, what: impl Into<String>) -> Self {
        Self { code: code.into(), what: what.into(), advice: None, exit: EXIT_REFUSED }
    }
    /// An error of a library, whose sentences are of the form `what; advice`.
    pub(crate) fn told(code: &'static str, error: &impl fmt::Display) -> Self {
        let text = error.to_string();
        match text.split_once("; ") {
            Some((what, advice)) => Self::refused(code, what).advice(advice),
            None => Self::refused(code, text),
        }
    }
    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
    /// The same, about one path.
    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.what = format!("{}: {}", path.display(), self.what);
        self
    }

    /// Says it, and returns the exit code.
    pub(crate) fn report(&self) -> u8 {
        term::say(&format!("leasehold: {self}\n"));
        self.exit
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.code)?;
        self.advice.as_ref().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_stands_between_what_is_wrong_and_what_to_do() {
        let told = Problem::told("journal_in_use", &leasehold_journal::OpenError::InUse);
        assert_eq!(told.to_string(), "another process has the journal open (journal_in_use); stop it first");
        assert_eq!(Problem::usage("x", "no").to_string(), "no (x)");
    }
}
