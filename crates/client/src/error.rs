//! Why a call did not do what was asked.

use leasehold_api::Problem;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The daemon refused, and says why.
    Problem(Box<Problem>),
    /// The daemon was not reached, or its answer was not.
    Transport {
        /// Where it was looked for.
        url: String,
        what: String,
        /// Where a change may have arrived although no answer came: the key to send it again with.
        unanswered: Option<String>,
    },
    /// What answered does not speak this API.
    Protocol { url: String, what: String },
}

impl Error {
    /// A stable word for programs: the problem's own code, `unreachable` or `bad_answer`.
    pub fn code(&self) -> &str {
        match self {
            Self::Problem(problem) => &problem.code,
            Self::Transport { .. } => "unreachable",
            Self::Protocol { .. } => "bad_answer",
        }
    }

    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether the daemon decided against it, so that sending the same again changes nothing. Otherwise it was busy,
    /// full, stopping or not reached, and may answer differently later.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Problem(problem) if problem.status < 500 && !matches!(problem.status, 408 | 429))
    }
}

/// `what; advice`, where there is advice.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(problem) => problem.fmt(f),
            Self::Transport { url, what, unanswered: None } => {
                // A reason that comes with advice of its own needs no other.
                let advice = if what.contains("; ") { "" } else { "; check the address and that the daemon runs" };
                write!(f, "{url} cannot be reached: {what}{advice}")
            }
            Self::Transport { url, what, unanswered: Some(key) } => write!(
                f,
                "no answer from {url}: {what}; whether the change was made is not known: send it again with the \
                 idempotency key {key}"
            ),
            Self::Protocol { url, what } => {
                write!(f, "{url} does not answer like a Leasehold daemon: {what}; check the address")
            }
        }
    }
}
impl std::error::Error for Error {}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}
