//! A command line that could not be understood.

use crate::problem::{EXIT_OK, EXIT_USAGE};
use crate::term;
use clap::error::ErrorKind;

/// Prints help where it was asked for, and otherwise what was wrong; returns the exit code.
pub fn report(program: &str, error: &clap::Error) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A reader that went away has seen enough.
        let _ = error.print();
        return EXIT_OK;
    }
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        Some(rest) => {
            let (what, rest) = rest.split_once('\n').unwrap_or((rest, ""));
            let (what, colon) = what.strip_suffix(':').map_or((what, ""), |what| (what, ":"));
            term::say(&format!("{program}: {what} (usage){colon}\n{rest}"));
        }
        None => term::say(&text),
    }
    EXIT_USAGE
}
