//! Why a call failed.

use leasehold_api::Problem;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The daemon refused, and says why.
    Problem(Box<Problem>),
    /// The daemon could not be reached, or its answer was lost.
    Transport {
        /// The address of the daemon.
        url: String,
        what: String,
        /// If a change may have arrived without an answer: the idempotency key to send it again with.
        unanswered: Option<String>,
    },
    /// The answer does not conform to this API.
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

    /// Whether the daemon refused the request, so that sending it again has the same result. Otherwise the daemon was busy,
    /// full, shutting down or unreachable, and a later attempt may succeed.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Problem(problem) if problem.status < 500 && !matches!(problem.status, 408 | 429))
    }
}

/// `what; advice`, if there is advice.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(problem) => problem.fmt(f),
            Self::Transport { url, what, unanswered: None } => {
                // Some reasons contain advice already.
                let advice =
                    if what.contains("; ") { "" } else { "; check the address and that the daemon is running" };
                write!(f, "{url} cannot be reached: {what}{advice}")
            }
            Self::Transport { url, what, unanswered: Some(key) } => write!(
                f,
                "no answer from {url}: {what}; the change may or may not have been made: send it again with the \
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
