//! Why a command failed: a sentence, a stable code, and advice.

use crate::term;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

pub const EXIT_OK: u8 = 0;
/// Refused, or not found.
pub const EXIT_REFUSED: u8 = 1;
pub const EXIT_USAGE: u8 = 2;
/// A verification failed.
pub const EXIT_NOT_VERIFIED: u8 = 3;
/// A log was proved to have signed two histories.
pub const EXIT_FORKED: u8 = 4;

/// Prints as `what (code); advice`.
#[derive(Debug)]
pub struct Problem {
    code: Cow<'static, str>,
    what: String,
    advice: Option<String>,
    exit: u8,
    /// The problem object of the daemon, if the problem is the daemon's.
    answered: Option<Box<Value>>,
}

impl Problem {
    pub fn refused(code: &'static str, what: impl Into<String>) -> Self {
        Self { code: code.into(), what: what.into(), advice: None, exit: EXIT_REFUSED, answered: None }
    }
    pub fn usage(code: &'static str, what: impl Into<String>) -> Self {
        Self { exit: EXIT_USAGE, ..Self::refused(code, what) }
    }
    pub fn not_verified(code: &'static str, what: impl Into<String>) -> Self {
        Self { exit: EXIT_NOT_VERIFIED, ..Self::refused(code, what) }
    }
    /// A log was proved to have signed two histories.
    pub fn forked(code: &'static str, what: impl Into<String>) -> Self {
        Self { exit: EXIT_FORKED, ..Self::refused(code, what) }
    }
    /// A refusal with a code that is known only at run time.
    pub fn coded(code: impl Into<Cow<'static, str>>, what: impl Into<String>) -> Self {
        Self { code: code.into(), what: what.into(), advice: None, exit: EXIT_REFUSED, answered: None }
    }
    /// An error of a library, whose message has the form `what; advice`.
    pub fn told(code: &'static str, error: &impl fmt::Display) -> Self {
        let text = error.to_string();
        match text.split_once("; ") {
            Some((what, advice)) => Self::refused(code, what).advice(advice),
            None => Self::refused(code, text),
        }
    }
    /// Changes the exit code to that of a failed verification.
    pub fn is_not_verified(self) -> Self {
        Self { exit: EXIT_NOT_VERIFIED, ..self }
    }
    /// Changes the exit code to that of a wrong command line.
    pub fn is_usage(self) -> Self {
        Self { exit: EXIT_USAGE, ..self }
    }
    pub fn code(&self) -> &str {
        &self.code
    }
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
    /// Adds the path that the problem is about.
    pub fn at(mut self, path: &Path) -> Self {
        self.what = format!("{}: {}", path.display(), self.what);
        self
    }

    /// Adds the problem object of the daemon.
    pub fn answered(mut self, problem: &impl Serialize) -> Self {
        self.answered = serde_json::to_value(problem).ok().map(Box::new);
        self
    }

    /// Prints the problem to stderr, as text or as one JSON object on one line, and returns the exit code.
    pub fn report(&self, program: &str, json: bool) -> u8 {
        let text = if json { self.object().to_string() } else { format!("{program}: {self}") };
        term::say(&(text + "\n"));
        self.exit
    }

    /// The problem object of the daemon, or one for a local problem.
    fn object(&self) -> Value {
        self.answered.as_deref().cloned().unwrap_or_else(|| match &self.advice {
            Some(advice) => json!({ "code": self.code, "detail": self.what, "advice": advice }),
            None => json!({ "code": self.code, "detail": self.what }),
        })
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
    fn the_code_is_between_the_message_and_the_advice() {
        let told = Problem::told("journal_in_use", &"another process has the journal open; stop it first");
        assert_eq!(told.to_string(), "another process has the journal open (journal_in_use); stop it first");
        assert_eq!(Problem::usage("x", "no").to_string(), "no (x)");
    }

    #[test]
    fn programs_get_the_daemons_own_object() {
        let answered = json!({ "status": 409, "code": "node_claimed", "detail": "It is claimed.", "holder": "ada" });
        let told = Problem::coded("node_claimed", "it is claimed").answered(&answered);
        let object = told.object();
        assert_eq!((&object["status"], &object["holder"]), (&json!(409), &json!("ada")));
        let here = Problem::usage("usage", "no").advice("give it once").object();
        assert_eq!(here, json!({ "code": "usage", "detail": "no", "advice": "give it once" }));
    }
}
