//! Data to stdout. A reader that went away has seen enough: that is no error.

use crate::problem::Problem;
use serde_json::Value;
use std::io::{self, ErrorKind, Write};

/// Prints data.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(failed(&error)),
        _ => Ok(()),
    }
}

pub(crate) fn print_json(value: &Value) -> Result<(), Problem> {
    print(&format!("{value:#}\n"))
}

pub(crate) fn failed(error: &io::Error) -> Problem {
    Problem::refused("output_failed", format!("the output could not be written: {error}"))
}
