//! Writes data to stdout. A reader that closes the pipe early is not an error.

use crate::problem::Problem;
use serde_json::Value;
use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;

/// Prints data.
pub fn print(text: &str) -> Result<(), Problem> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(failed(&error)),
        _ => Ok(()),
    }
}

pub fn print_json(value: &Value) -> Result<(), Problem> {
    print(&format!("{value:#}\n"))
}

/// Prints a part of a long output; breaks when the reader has closed the pipe.
pub fn print_on(text: &str) -> Result<ControlFlow<()>, Problem> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(failed(&error)),
    }
}

pub fn failed(error: &io::Error) -> Problem {
    Problem::refused("output_failed", format!("the output could not be written: {error}"))
}
