//! How a record breaks a rule.

use std::fmt;

/// A record that the rules forbid, given all records before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub sequence: u64,
    /// A stable word for the rule.
    pub rule: &'static str,
    /// What a person needs to see it.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} breaks `{}`: {}", self.sequence, self.rule, self.detail)
    }
}
impl std::error::Error for Violation {}

/// A broken rule before it is known which record broke it.
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

/// Leaves the function with a broken rule unless the condition holds.
macro_rules! demand {
    ($holds:expr, $rule:literal, $($detail:tt)+) => {
        if !$holds {
            return Err($crate::violation::Broken { rule: $rule, detail: format!($($detail)+) });
        }
    };
}
pub(crate) use demand;

/// Leaves the function with a broken rule.
macro_rules! broken {
    ($rule:literal, $($detail:tt)+) => {
        return Err($crate::violation::Broken { rule: $rule, detail: format!($($detail)+) })
    };
}
pub(crate) use broken;

/// The value, or a broken rule where there is none.
macro_rules! found {
    ($option:expr, $rule:literal, $($detail:tt)+) => {
        match $option {
            Some(value) => value,
            None => return Err($crate::violation::Broken { rule: $rule, detail: format!($($detail)+) }),
        }
    };
}
pub(crate) use found;
