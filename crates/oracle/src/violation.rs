//! Violations of rules.

use std::fmt;

/// A record that the rules forbid, given all records before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub sequence: u64,
    /// The stable code of the rule.
    pub rule: &'static str,
    /// The details.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} breaks `{}`: {}", self.sequence, self.rule, self.detail)
    }
}
impl std::error::Error for Violation {}

/// A broken rule, before the record is known.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) rule: &'static str,
    pub(crate) detail: String,
}

pub(crate) type Checked = Result<(), Broken>;

impl Broken {
    pub(crate) fn at(self, sequence: u64) -> Violation {
        Violation { sequence, rule: self.rule, detail: self.detail }
    }
}

/// Returns a broken rule unless the condition holds.
macro_rules! demand {
    ($holds:expr, $rule:literal, $($detail:tt)+) => {
        if !$holds {
            return Err($crate::violation::Broken { rule: $rule, detail: format!($($detail)+) });
        }
    };
}
pub(crate) use demand;

/// Returns a broken rule.
macro_rules! broken {
    ($rule:literal, $($detail:tt)+) => {
        return Err($crate::violation::Broken { rule: $rule, detail: format!($($detail)+) })
    };
}
pub(crate) use broken;

/// Unwraps a value, or returns a broken rule.
macro_rules! found {
    ($option:expr, $rule:literal, $($detail:tt)+) => {
        match $option {
            Some(value) => value,
            None => return Err($crate::violation::Broken { rule: $rule, detail: format!($($detail)+) }),
        }
    };
}
pub(crate) use found;
